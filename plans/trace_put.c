/* SPDX-License-Identifier: MIT */
/* The text of a plan trace: a header and records as JSON. */
#include "config.h"

#include "plans/trace_impl.h"

#include <stdio.h>
#include <string.h>

static inline void put_bytes(struct quire_trace_writer *writer, const char *bytes,
                             size_t length)
{
	if (length > sizeof(writer->buffer) - writer->used)
		quire_trace_hand_on(writer, false);
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

void quire_trace_put_header(struct quire_trace_writer *writer)
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

void quire_trace_put_record(struct quire_trace_writer *writer,
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
