/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "plans/trace_impl.h"
#include "runtime/refuse_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A file of such a name is compressed. */
#define PACKED_SUFFIX ".zst"

/* The most bytes of a segment, a page, a key; and of all else in a line: 16 names of
 * combined tables with 64 labels each, 256 labels of forks, each byte escaped to six. */
#define SEGMENT_BYTES 240
#define PAGE_BYTES    9
#define KEY_BYTES     20
#define REST_BYTES    ((size_t)256 << 10)

_Static_assert(REST_BYTES + (size_t)QUIRE_ROWS_MAX * SEGMENT_BYTES <=
                       QUIRE_TRACE_LINE_MAX,
               "every step fits in a line");

static enum quire_status write_target(struct quire_trace_writer *writer, const char *at,
                                      size_t n)
{
	while (n > 0) {
		ssize_t put = write(writer->target.fd, at, n);

		if (put <= 0 && (put == 0 || errno != EINTR)) {
			writer->error = put == 0 ? EIO : errno;
			return QUIRE_IO;
		}
		at += put > 0 ? put : 0;
		n -= put > 0 ? (size_t)put : 0;
	}
	return QUIRE_OK;
}

/* Whatever a caller's function answers, it is a write that failed. */
static enum quire_status write_out(void *argument, const void *bytes, size_t n)
{
	struct quire_trace_writer *writer = argument;

	if (writer->to_target)
		return write_target(writer, bytes, n);
	return writer->output.write(writer->output.argument, bytes, n) == QUIRE_OK
	               ? QUIRE_OK
	               : QUIRE_IO;
}

void quire_trace_hand_on(struct quire_trace_writer *writer, bool end)
{
	if (writer->counting)
		writer->counted += writer->used;
	else if (writer->failure == QUIRE_OK && writer->packer != NULL)
		writer->failure = quire_packer_put(writer->packer, writer->buffer,
		                                   writer->used, end, write_out, writer);
	else if (writer->failure == QUIRE_OK && writer->used > 0)
		writer->failure = write_out(writer, writer->buffer, writer->used);
	writer->used = 0;
}

/* A writer that writes nowhere yet. */
static enum quire_status create(const struct quire_trace_header *header, bool compress,
                                struct quire_trace_writer **writer_out,
                                struct quire_refusal *refusal_out)
{
	struct quire_trace_writer *writer;

	QUIRE_TRY(quire_trace_check_header(header, QUIRE_INVALID, 0, refusal_out));
	writer = calloc(1, sizeof(*writer));
	if (writer == NULL)
		return quire_fault(refusal_out, QUIRE_NO_MEMORY, 0,
		                   "no memory for a writer");
	writer->packer = compress ? quire_packer_create() : NULL;
	if (compress && writer->packer == NULL) {
		free(writer);
		return quire_fault(refusal_out, QUIRE_NO_MEMORY, 0,
		                   "no memory to compress");
	}
	writer->header = *header;
	*writer_out = writer;
	return QUIRE_OK;
}

static void end_writer(struct quire_trace_writer *writer)
{
	quire_packer_free(writer->packer);
	free(writer);
}

static bool is_packed(const char *path)
{
	size_t length = strlen(path), suffix = strlen(PACKED_SUFFIX);

	return length > suffix && strcmp(path + length - suffix, PACKED_SUFFIX) == 0;
}

enum quire_status quire_trace_create(const char *path,
                                     const struct quire_trace_header *header,
                                     struct quire_trace_writer **writer_out,
                                     struct quire_refusal *refusal_out)
{
	struct quire_trace_writer *writer;
	enum quire_status status;

	QUIRE_TRY(create(header, is_packed(path), &writer, refusal_out));
	status = quire_target_open(&writer->target, path, refusal_out);
	if (status != QUIRE_OK) {
		end_writer(writer);
		return status;
	}
	writer->to_target = true;
	quire_trace_put_header(writer);
	*writer_out = writer;
	return QUIRE_OK;
}

enum quire_status quire_trace_create_to(const struct quire_trace_output *output,
                                        const struct quire_trace_header *header,
                                        struct quire_trace_writer **writer_out,
                                        struct quire_refusal *refusal_out)
{
	QUIRE_TRY(create(header, output->compress, writer_out, refusal_out));
	(*writer_out)->output = *output;
	quire_trace_put_header(*writer_out);
	return QUIRE_OK;
}

/* Is the line longer than a reader takes?  Only lists of pages or keys make it so. */
static bool is_too_long(struct quire_trace_writer *writer,
                        const struct quire_trace_record *record)
{
	size_t bound = REST_BYTES;

	if (record->command.kind == QUIRE_COMMAND_SUBMIT)
		bound += (size_t)record->command.step->num_segments * SEGMENT_BYTES;
	if (record->has_outcome && record->outcome.has_pages)
		bound += (size_t)record->outcome.num_pages * PAGE_BYTES;
	if (record->prefix.tokens != 0)
		bound += (size_t)record->prefix.num_keys * KEY_BYTES;
	if (bound <= QUIRE_TRACE_LINE_MAX)
		return false;
	quire_trace_hand_on(writer, false);
	writer->counting = true;
	writer->counted = 0;
	quire_trace_put_record(writer, record);
	quire_trace_hand_on(writer, false);
	writer->counting = false;
	return writer->counted > QUIRE_TRACE_LINE_MAX + 1; /* and its line feed */
}

static enum quire_status refuse_failure(const struct quire_trace_writer *writer,
                                        struct quire_refusal *refusal_out)
{
	if (writer->failure == QUIRE_NO_MEMORY)
		return quire_fault(refusal_out, QUIRE_NO_MEMORY, 0,
		                   "no memory to compress");
	if (!writer->to_target)
		return quire_fault(refusal_out, QUIRE_IO, 0, "cannot write the trace");
	errno = writer->error;
	return quire_fault(refusal_out, QUIRE_IO, 0, "cannot write to \"%s\": %m",
	                   writer->target.name);
}

enum quire_status quire_trace_write(struct quire_trace_writer *writer,
                                    const struct quire_trace_record *record,
                                    struct quire_refusal *refusal_out)
{
	QUIRE_TRY(quire_trace_check_record(record, &writer->header, writer->last_id,
	                                   refusal_out));
	if (is_too_long(writer, record))
		return quire_refuse_what(refusal_out, QUIRE_INVALID,
		                         "the line must have at most 2^24 bytes");
	quire_trace_put_record(writer, record);
	if (record->id != 0)
		writer->last_id = record->id;
	return writer->failure == QUIRE_OK ? QUIRE_OK
	                                   : refuse_failure(writer, refusal_out);
}

enum quire_status quire_trace_flush(struct quire_trace_writer *writer,
                                    struct quire_refusal *refusal_out)
{
	quire_trace_hand_on(writer, true);
	return writer->failure == QUIRE_OK ? QUIRE_OK
	                                   : refuse_failure(writer, refusal_out);
}

enum quire_status quire_trace_commit(struct quire_trace_writer *writer,
                                     struct quire_refusal *refusal_out)
{
	enum quire_status status = quire_trace_flush(writer, refusal_out);

	if (writer->to_target && status == QUIRE_OK)
		status = quire_target_commit(&writer->target, refusal_out);
	else if (writer->to_target)
		quire_target_discard(&writer->target);
	end_writer(writer);
	return status;
}

void quire_trace_discard(struct quire_trace_writer *writer)
{
	if (writer == NULL)
		return;
	if (writer->to_target)
		quire_target_discard(&writer->target);
	end_writer(writer);
}
