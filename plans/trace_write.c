/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "plans/packer_impl.h"
#include "plans/target_impl.h"
#include "plans/trace_impl.h"
#include "runtime/refuse_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Bytes gathered before one write. */
#define BUFFER_BYTES ((size_t)256 << 10)

/* A file of such a name is compressed. */
#define PACKED_SUFFIX ".zst"

struct quire_trace_writer {
	struct quire_trace_header header;
	uint64_t last_id;
	struct quire_trace_output output; /* where it goes ... */
	struct quire_target target;       /* ... or, when `to_target`, a file */
	bool to_target;
	struct quire_packer *packer; /* NULL: it is not compressed */
	enum quire_status failure;   /* of the first write that failed */
	int error;                   /* errno of it; 0: not known */
	size_t used;
	char buffer[BUFFER_BYTES];
};

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

/* @end: of a frame, too */
static void hand_on(struct quire_trace_writer *writer, bool end)
{
	if (writer->failure == QUIRE_OK && writer->packer != NULL)
		writer->failure = quire_packer_put(writer->packer, writer->buffer,
		                                   writer->used, end, write_out, writer);
	else if (writer->failure == QUIRE_OK && writer->used > 0)
		writer->failure = write_out(writer, writer->buffer, writer->used);
	writer->used = 0;
}

static inline void put_bytes(struct quire_trace_writer *writer, const char *bytes,
                             size_t length)
{
	if (length > BUFFER_BYTES - writer->used)
		hand_on(writer, false);
	memcpy(writer->buffer + writer->used, bytes, length);
	writer->used += length;
}

/* Pieces are short: literals, numbers, one label. */
static inline void put(struct quire_trace_writer *writer, const char *text)
{
	put_bytes(writer, text, strlen(text));
}

static void put_u64(struct quire_trace_writer *writer, uint64_t value)
{
	char digits[20];
	size_t first = sizeof(digits);

	do {
		digits[--first] = (char)('0' + value % 10);
		value /= 10;
	} while (value > 0);
	put_bytes(writer, digits + first, sizeof(digits) - first);
}

static void put_i64(struct quire_trace_writer *writer, int64_t value)
{
	if (value < 0)
		put_bytes(writer, "-", 1);
	put_u64(writer, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

static void put_string(struct quire_trace_writer *writer, const char *text)
{
	const char *plain = text; /* start of what needs no escape */

	put_bytes(writer, "\"", 1);
	for (; *text != 0; text++) {
		unsigned char c = (unsigned char)*text;
		char escape[8];

		if (c >= 0x20 && c != '"' && c != '\\')
			continue;
		put_bytes(writer, plain, (size_t)(text - plain));
		if (c < 0x20)
			snprintf(escape, sizeof(escape), "\\u%04x", c);
		else
			snprintf(escape, sizeof(escape), "\\%c", c);
		put(writer, escape);
		plain = text + 1;
	}
	put_bytes(writer, plain, (size_t)(text - plain));
	put_bytes(writer, "\"", 1);
}

static void put_header(struct quire_trace_writer *writer)
{
	struct quire_trace_header *header = &writer->header;
	const char *scope = "cache";

	put(writer, "{\"quire\":\"plan-trace\",\"version\":1,\"cache\":{\"layout\":");
	put_string(writer, header->layout);
	put(writer, ",\"dtype\":");
	put_string(writer, header->dtype);
	for (int i = 0; i < quire_trace_num_fields; i++) {
		const struct quire_trace_field *field = &quire_trace_fields[i];

		if (strcmp(scope, field->scope) == 0) {
			put(writer, ",");
		} else {
			put(writer, "},\"");
			put(writer, field->scope);
			put(writer, "\":{");
			scope = field->scope;
		}
		put_string(writer, field->name);
		put(writer, ":");
		put_i64(writer, *quire_trace_field_of(header, field));
		if (field->offset == offsetof(struct quire_trace_header, num_pages))
			put(writer, header->sink ? ",\"sink\":true" : ",\"sink\":false");
	}
	if (header->row_pages_max != 0) {
		put(writer, ",\"row_pages\":");
		put_i64(writer, header->row_pages_max);
	}
	put(writer, "},\"source\":");
	put_string(writer, header->source);
	put(writer, "}\n");
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
	put_header(writer);
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
	put_header(*writer_out);
	return QUIRE_OK;
}

static void put_label(struct quire_trace_writer *writer, const char *label)
{
	put_string(writer, label != NULL ? label : QUIRE_LABEL_MAIN);
}

static void put_segments(struct quire_trace_writer *writer, const struct quire_step *step)
{
	put(writer, ",\"segments\":[");
	for (int32_t i = 0; i < step->num_segments; i++) {
		const struct quire_segment *segment = &step->segments[i];

		put(writer, i > 0 ? ",[" : "[");
		put_u64(writer, segment->request);
		put(writer, ",");
		put_label(writer, segment->label);
		put(writer, ",");
		put_i64(writer, segment->span);
		put(writer, ",");
		if (segment->at == QUIRE_AT_ANY)
			put(writer, "null");
		else
			put_i64(writer, segment->at);
		put(writer, "]");
	}
	put(writer, "]");
}

static void put_combined(struct quire_trace_writer *writer, const struct quire_step *step)
{
	put(writer, ",\"combined\":{");
	for (int32_t i = 0; i < step->num_combined; i++) {
		const struct quire_combined *combined = &step->combined[i];

		put(writer, i > 0 ? "," : "");
		put_string(writer, combined->name);
		put(writer, ":[");
		for (int32_t j = 0; j < combined->num_labels; j++) {
			put(writer, j > 0 ? "," : "");
			put_string(writer, combined->labels[j]);
		}
		put(writer, "]");
	}
	put(writer, "}");
}

static void put_forks(struct quire_trace_writer *writer, const char *name,
                      const struct quire_fork *forks, int32_t num)
{
	if (num == 0)
		return;
	put(writer, ",");
	put_string(writer, name);
	put(writer, ":[");
	for (int32_t i = 0; i < num; i++) {
		put(writer, i > 0 ? ",[" : "[");
		put_label(writer, forks[i].source);
		put(writer, ",");
		put_label(writer, forks[i].target);
		put(writer, "]");
	}
	put(writer, "]");
}

static void put_submit(struct quire_trace_writer *writer,
                       const struct quire_trace_record *record)
{
	const struct quire_step *step = record->command.step;

	put_segments(writer, step);
	if (step->bucket_rows > 0) {
		put(writer, ",\"bucket\":[");
		put_i64(writer, step->bucket_tokens);
		put(writer, ",");
		put_i64(writer, step->bucket_rows);
		put(writer, "]");
	}
	if (step->num_combined > 0)
		put_combined(writer, step);
	put_forks(writer, "pre_forks", step->pre_forks, step->num_pre_forks);
	put_forks(writer, "post_forks", step->post_forks, step->num_post_forks);
	if ((step->flags & QUIRE_STEP_NO_COMMIT) != 0)
		put(writer, ",\"commit\":false");
	if ((step->flags & QUIRE_STEP_NO_WAIT) != 0)
		put(writer, ",\"no_wait\":true");
	if ((step->flags & QUIRE_STEP_COPY_FORKS) != 0)
		put(writer, ",\"copy\":true");
	if ((step->flags & QUIRE_STEP_SPECULATIVE) != 0)
		put(writer, ",\"speculative\":true");
	if (!record->has_base)
		return;
	put(writer, ",\"base\":");
	if (record->base == 0)
		put(writer, "null");
	else
		put_u64(writer, record->base);
}

static void put_request(struct quire_trace_writer *writer,
                        const struct quire_command *command)
{
	put(writer, ",\"request\":");
	put_u64(writer, command->request);
}

static void put_stream(struct quire_trace_writer *writer,
                       const struct quire_command *command)
{
	put_request(writer, command);
	put(writer, ",\"label\":");
	put_label(writer, command->label);
}

static void put_command(struct quire_trace_writer *writer,
                        const struct quire_trace_record *record)
{
	const struct quire_command *command = &record->command;

	switch (command->kind) {
	case QUIRE_COMMAND_OPEN:
	case QUIRE_COMMAND_CLOSE:
		put_request(writer, command);
		break;
	case QUIRE_COMMAND_SUBMIT:
		put_submit(writer, record);
		break;
	case QUIRE_COMMAND_RESET:
		put_stream(writer, command);
		put(writer,
		    command->keep_pages != 0 ? ",\"keep\":true" : ",\"keep\":false");
		break;
	case QUIRE_COMMAND_REWIND:
	case QUIRE_COMMAND_RELEASE_FRONT:
		put_stream(writer, command);
		put(writer, ",\"tokens\":");
		put_i64(writer, command->tokens);
		break;
	case QUIRE_COMMAND_PROMOTE:
	case QUIRE_COMMAND_ABANDON:
		put(writer, ",\"ticket\":");
		put_u64(writer, command->target);
		break;
	}
}

static void put_pages(struct quire_trace_writer *writer,
                      const struct quire_trace_outcome *outcome)
{
	put(writer, ",\"pages\":[");
	for (int32_t i = 0; i < outcome->num_pages; i++) {
		put(writer, i > 0 ? "," : "");
		put_i64(writer, outcome->pages[i]);
	}
	put(writer, "]");
}

static void put_prefix(struct quire_trace_writer *writer,
                       const struct quire_trace_prefix *prefix)
{
	put(writer, ",\"prefix\":{\"tokens\":");
	put_i64(writer, prefix->tokens);
	put(writer, ",\"keys\":[");
	for (int32_t i = 0; i < prefix->num_keys; i++) {
		put(writer, i > 0 ? "," : "");
		put_i64(writer, prefix->keys[i]);
	}
	put(writer, "]}");
}

static void put_times(struct quire_trace_writer *writer,
                      const struct quire_trace_times *times)
{
	put(writer, ",\"times\":[");
	put_i64(writer, times->given_ns);
	put(writer, ",");
	put_i64(writer, times->decided_ns);
	if (times->issued_ns >= 0) {
		put(writer, ",");
		put_i64(writer, times->issued_ns);
	}
	put(writer, "]");
}

static void put_outcome(struct quire_trace_writer *writer,
                        const struct quire_trace_outcome *outcome)
{
	char digest[17];

	put(writer, ",\"outcome\":{\"status\":\"");
	put(writer, quire_status_name(outcome->status));
	put(writer, "\",\"detail\":");
	put_i64(writer, outcome->detail);
	if (outcome->has_digest) {
		snprintf(digest, sizeof(digest), "%016llx",
		         (unsigned long long)outcome->digest);
		put(writer, ",\"digest\":\"");
		put(writer, digest);
		put(writer, "\"");
	}
	if (outcome->is_outside)
		put(writer, ",\"outside\":true");
	if (outcome->has_pages)
		put_pages(writer, outcome);
	put(writer, "}");
}

static void put_record(struct quire_trace_writer *writer,
                       const struct quire_trace_record *record)
{
	put(writer, "{\"do\":\"");
	put(writer, quire_trace_kinds[record->command.kind]);
	put(writer, "\"");
	if (record->id != 0) {
		put(writer, ",\"id\":");
		put_u64(writer, record->id);
	}
	put_command(writer, record);
	if (record->prefix.tokens != 0)
		put_prefix(writer, &record->prefix);
	if (record->has_outcome)
		put_outcome(writer, &record->outcome);
	if (record->has_times)
		put_times(writer, &record->times);
	put(writer, "}\n");
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
	put_record(writer, record);
	if (record->id != 0)
		writer->last_id = record->id;
	return writer->failure == QUIRE_OK ? QUIRE_OK
	                                   : refuse_failure(writer, refusal_out);
}

enum quire_status quire_trace_flush(struct quire_trace_writer *writer,
                                    struct quire_refusal *refusal_out)
{
	hand_on(writer, true);
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
