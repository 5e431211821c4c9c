/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "plans/lines_impl.h"

#include "plans/fault_impl.h"

#include <quire/runtime/limits.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Enough for most lines, and for reads that cost little beside the parsing. */
#define FIRST_BYTES ((size_t)256 << 10)

/* A line of QUIRE_TRACE_LINE_MAX bytes and its newline. */
#define BYTES_MAX ((size_t)QUIRE_TRACE_LINE_MAX + 1)

/* Behind the bytes read there is one more that may be written to. */
#define SPARE_BYTES 1

enum quire_status quire_lines_open(struct quire_lines *lines, const char *path,
                                   struct quire_refusal *refusal_out)
{
	struct stat about;

	memset(lines, 0, sizeof(*lines));
	lines->fd = STDIN_FILENO;
	if (strcmp(path, "-") != 0)
		lines->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (lines->fd < 0)
		return quire_fault(refusal_out, QUIRE_IO, 0, "cannot open \"%s\": %m",
		                   path);
	lines->file_size = -1;
	if (fstat(lines->fd, &about) == 0 && S_ISREG(about.st_mode))
		lines->file_size = about.st_size;
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
	enum quire_status status = make_room(lines, refusal_out);
	ssize_t got;

	if (status != QUIRE_OK)
		return status;
	do {
		got = read(lines->fd, lines->buffer + lines->end,
		           lines->size - lines->end);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return quire_fault(refusal_out, QUIRE_IO, lines->line + 1,
		                   "cannot read: %m");
	lines->at_end = got == 0;
	lines->end += (size_t)got;
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

void quire_lines_close(struct quire_lines *lines)
{
	if (lines->fd != STDIN_FILENO)
		close(lines->fd);
	free(lines->buffer);
}
