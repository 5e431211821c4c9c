/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "plans/lines_impl.h"

#include "plans/fault_impl.h"
#include "runtime/refuse_impl.h"

#include <quire/runtime/limits.h>

#include <stdlib.h>
#include <string.h>

/* Enough for most lines, and for reads that cost little beside the parsing. */
#define FIRST_BYTES ((size_t)256 << 10)

/* A line of QUIRE_TRACE_LINE_MAX bytes and its newline. */
#define BYTES_MAX ((size_t)QUIRE_TRACE_LINE_MAX + 1)

/* Behind the bytes read there is one more that may be written to. */
#define SPARE_BYTES 1

enum quire_status quire_lines_open(struct quire_lines *lines, const char *path,
                                   struct quire_refusal *refusal_out)
{
	memset(lines, 0, sizeof(*lines));
	QUIRE_TRY(quire_bytes_open(&lines->bytes, path, refusal_out));
	lines->size = FIRST_BYTES;
	lines->buffer = malloc(lines->size + SPARE_BYTES);
	if (lines->buffer == NULL) {
		quire_lines_close(lines);
		return quire_fault(refusal_out, QUIRE_NO_MEMORY, 0,
		                   "no memory for a buffer of %zu bytes", FIRST_BYTES);
	}
	return QUIRE_OK;
}

/* Make room behind the unread bytes: move them to the front, or double the buffer. */
static enum quire_status make_room(struct quire_lines *lines,
                                   struct quire_refusal *refusal_out)
{
	size_t size = lines->size * 2 < BYTES_MAX ? lines->size * 2 : BYTES_MAX;
	char *buffer;

	if (lines->start > 0) {
		memmove(lines->buffer, lines->buffer + lines->start,
		        lines->end - lines->start);
		lines->end -= lines->start;
		lines->scanned -= lines->start;
		lines->start = 0;
	}
	if (lines->end < lines->size)
		return QUIRE_OK;
	if (lines->size == BYTES_MAX)
		return quire_fault(refusal_out, QUIRE_FORMAT, lines->line + 1,
		                   "the line is longer than %d bytes",
		                   QUIRE_TRACE_LINE_MAX);
	buffer = realloc(lines->buffer, size + SPARE_BYTES);
	if (buffer == NULL)
		return quire_fault(refusal_out, QUIRE_NO_MEMORY, lines->line + 1,
		                   "no memory for a line of %zu bytes", size);
	lines->buffer = buffer;
	lines->size = size;
	return QUIRE_OK;
}

static enum quire_status read_more(struct quire_lines *lines,
                                   struct quire_refusal *refusal_out)
{
	size_t got = 0;

	QUIRE_TRY(make_room(lines, refusal_out));
	QUIRE_TRY(quire_bytes_read(&lines->bytes, lines->line + 1,
	                           lines->buffer + lines->end, lines->size - lines->end,
	                           &got, refusal_out));
	lines->at_end = got == 0;
	lines->end += got;
	return QUIRE_OK;
}

static void hand_out(struct quire_lines *lines, size_t end, bool whole,
                     struct quire_line *line_out)
{
	line_out->text = lines->buffer + lines->start;
	line_out->length = end - lines->start;
	line_out->whole = whole;
	lines->consumed += (int64_t)(end - lines->start) + whole;
	lines->start = end + whole;
	lines->scanned = lines->start;
	lines->line++;
}

enum quire_status quire_lines_next(struct quire_lines *lines, struct quire_line *line_out,
                                   struct quire_refusal *refusal_out)
{
	for (;;) {
		char *newline = memchr(lines->buffer + lines->scanned, '\n',
		                       lines->end - lines->scanned);
		enum quire_status status;

		if (newline != NULL) {
			hand_out(lines, (size_t)(newline - lines->buffer), true,
			         line_out);
			return QUIRE_OK;
		}
		lines->scanned = lines->end;
		if (lines->at_end)
			break;
		status = read_more(lines, refusal_out);
		if (status != QUIRE_OK)
			return status;
	}
	if (lines->start == lines->end)
		return QUIRE_END;
	hand_out(lines, lines->end, false, line_out);
	return QUIRE_OK;
}

void quire_lines_position(const struct quire_lines *lines, int64_t *read_out,
                          int64_t *size_out)
{
	const struct quire_bytes *bytes = &lines->bytes;

	*read_out = lines->consumed;
	if (bytes->unpacker != NULL)
		*read_out = bytes->taken - (int64_t)(bytes->end - bytes->start);
	*size_out = bytes->file_size;
}

void quire_lines_close(struct quire_lines *lines)
{
	quire_bytes_close(&lines->bytes);
	free(lines->buffer);
}
