/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "plans/trace_impl.h"
#include "plans/utf8_impl.h"

#include "runtime/refuse_impl.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#define FIELD(scope, name, member, max)                                             \
	{                                                                           \
		(scope), (name), offsetof(struct quire_trace_header, member), (max) \
	}

const struct quire_trace_field quire_trace_fields[] = {
	FIELD("cache", "num_layers", num_layers, INT32_MAX),
	FIELD("cache", "num_kv_heads", num_kv_heads, INT32_MAX),
	FIELD("cache", "head_dim", head_dim, INT32_MAX),
	FIELD("cache", "page_size", page_size, QUIRE_PAGE_SIZE_MAX),
	FIELD("pool", "num_pages", num_pages, QUIRE_PAGES_MAX),
	FIELD("limits", "rows", rows_max, QUIRE_ROWS_MAX),
	FIELD("limits", "tokens", tokens_max, QUIRE_TOKENS_MAX),
	FIELD("limits", "requests", requests_max, QUIRE_REQUESTS_MAX),
	FIELD("limits", "seq_tokens", seq_tokens_max, QUIRE_SEQ_TOKENS_MAX),
	FIELD("limits", "labels", request_labels_max, QUIRE_LABELS_MAX),
	FIELD("limits", "tables", tables_max, QUIRE_TABLES_MAX),
	FIELD("limits", "table_pages", table_pages_max, INT32_MAX),
};
const int quire_trace_num_fields =
	sizeof(quire_trace_fields) / sizeof(quire_trace_fields[0]);

const char *const quire_trace_kinds[QUIRE_TRACE_NUM_KINDS] = {
	[QUIRE_COMMAND_OPEN] = "open",
	[QUIRE_COMMAND_CLOSE] = "close",
	[QUIRE_COMMAND_SUBMIT] = "submit",
	[QUIRE_COMMAND_RESET] = "reset",
	[QUIRE_COMMAND_REWIND] = "rewind",
	[QUIRE_COMMAND_RELEASE_FRONT] = "release_front",
	[QUIRE_COMMAND_PROMOTE] = "promote",
	[QUIRE_COMMAND_ABANDON] = "abandon",
};

static const char *const layouts[] = {"NHD", "HND", "MLA", NULL};
static const char *const dtypes[] = {"f32", "f16", "bf16", "e4m3", "e5m2", NULL};

static bool is_in(const char *const *list, const char *name)
{
	for (; *list != NULL; list++) {
		if (strcmp(*list, name) == 0)
			return true;
	}
	return false;
}

/* JSON text is UTF-8; a reader refuses anything else. */
static bool is_utf8(const char *text)
{
	while (*text != 0) {
		int length = quire_utf8_length(text);

		if (length == 0)
			return false;
		text += length;
	}
	return true;
}

/* Is @text terminated within @size bytes, and UTF-8? */
static bool is_text(const char *text, size_t size)
{
	return memchr(text, 0, size) != NULL && is_utf8(text);
}

enum quire_status quire_trace_check_header(const struct quire_trace_header *header,
                                           enum quire_status failure, int64_t line,
                                           struct quire_refusal *refusal_out)
{
	if (!is_text(header->layout, sizeof(header->layout)) ||
	    !is_in(layouts, header->layout))
		return quire_fault(refusal_out, failure, line,
		                   "cache.layout must be NHD, HND or MLA, got \"%.15s\"",
		                   header->layout);
	if (!is_text(header->dtype, sizeof(header->dtype)) ||
	    !is_in(dtypes, header->dtype))
		return quire_fault(refusal_out, failure, line,
		                   "cache.dtype must be f32, f16, bf16, e4m3 or e5m2, "
		                   "got \"%.15s\"",
		                   header->dtype);
	for (int i = 0; i < quire_trace_num_fields; i++) {
		const struct quire_trace_field *field = &quire_trace_fields[i];
		int64_t value = *(const int64_t *)((const char *)header + field->offset);

		if (value < 1 || value > field->max)
			return quire_fault(refusal_out, failure, line,
			                   "%s.%s must be an integer 1..%" PRId64
			                   ", got %" PRId64,
			                   field->scope, field->name, field->max, value);
	}
	if (header->row_pages_max < 0 || header->row_pages_max > INT32_MAX)
		return quire_fault(refusal_out, failure, line,
		                   "limits.row_pages must be an integer 1..%d, or left "
		                   "out, got %" PRId64,
		                   INT32_MAX, header->row_pages_max);
	if (strcmp(header->layout, "MLA") == 0 && header->num_kv_heads != 1)
		return quire_fault(refusal_out, failure, line,
		                   "cache.num_kv_heads must be 1 where cache.layout is "
		                   "MLA, got %" PRId64,
		                   header->num_kv_heads);
	if (!is_text(header->source, sizeof(header->source)))
		return quire_fault(refusal_out, failure, line,
		                   "source must be at most %zu bytes of UTF-8",
		                   sizeof(header->source) - 1);
	return QUIRE_OK;
}

static bool is_label(const char *label)
{
	return label == NULL || (label[0] != 0 && is_text(label, QUIRE_LABEL_BYTES));
}

static enum quire_status refuse(struct quire_refusal *refusal_out, const char *what,
                                int64_t index)
{
	return quire_refuse_bound(refusal_out, QUIRE_INVALID, what, index, 0, 0);
}

static enum quire_status check_segments(const struct quire_step *step,
                                        struct quire_refusal *refusal_out)
{
	for (int32_t i = 0; i < step->num_segments; i++) {
		const struct quire_segment *segment = &step->segments[i];

		if (segment->request > QUIRE_REQUEST_MAX)
			return refuse(refusal_out, "segments: request must be 0..2^63-1",
			              i);
		if (!is_label(segment->label))
			return refuse(refusal_out,
			              "segments: label must be 1..31 bytes of UTF-8", i);
		if (segment->span < 0 || segment->span > QUIRE_TOKENS_MAX)
			return refuse(refusal_out, "segments: span must be 0..2^24", i);
		if (segment->at < 0 && segment->at != QUIRE_AT_ANY)
			return refuse(refusal_out,
			              "segments: at must be 0 or more, or QUIRE_AT_ANY",
			              i);
	}
	return QUIRE_OK;
}

static enum quire_status check_combined(const struct quire_step *step,
                                        struct quire_refusal *refusal_out)
{
	if (step->num_combined < 0 || step->num_combined > QUIRE_TABLES_MAX)
		return refuse(refusal_out, "num_combined must be 0..16", -1);
	for (int32_t i = 0; i < step->num_combined; i++) {
		const struct quire_combined *combined = &step->combined[i];

		if (combined->name == NULL || !is_label(combined->name))
			return refuse(refusal_out,
			              "combined: name must be 1..31 bytes of UTF-8", i);
		for (int32_t j = 0; j < i; j++) {
			if (strcmp(step->combined[j].name, combined->name) == 0)
				return refuse(refusal_out, "combined: a name twice", i);
		}
		if (combined->num_labels < 0 || combined->num_labels > QUIRE_LABELS_MAX)
			return refuse(refusal_out, "combined: must have 0..64 labels", i);
		for (int32_t j = 0; j < combined->num_labels; j++) {
			if (combined->labels[j] == NULL || !is_label(combined->labels[j]))
				return refuse(
					refusal_out,
					"combined: label must be 1..31 bytes of UTF-8",
					i);
		}
	}
	return QUIRE_OK;
}

static enum quire_status check_forks(const struct quire_fork *forks, int32_t num,
                                     const char *what, struct quire_refusal *refusal_out)
{
	if (num < 0 || num > QUIRE_FORKS_MAX)
		return refuse(refusal_out, "forks: must be 0..64 pairs", -1);
	for (int32_t i = 0; i < num; i++) {
		if (!is_label(forks[i].source) || !is_label(forks[i].target))
			return refuse(refusal_out, what, i);
	}
	return QUIRE_OK;
}

static enum quire_status check_step(const struct quire_step *step,
                                    const struct quire_trace_header *header,
                                    struct quire_refusal *refusal_out)
{
	enum quire_status status;

	if (step == NULL)
		return refuse(refusal_out, "step must be given", -1);
	if (step->num_segments < 1 || step->num_segments > header->rows_max)
		return refuse(refusal_out, "num_segments must be 1..limits.rows", -1);
	if ((step->flags & ~QUIRE_STEP_FLAGS) != 0)
		return refuse(refusal_out, "flags must be known ones", -1);
	if ((step->bucket_tokens != 0 || step->bucket_rows != 0) &&
	    (step->bucket_tokens < 1 || step->bucket_tokens > QUIRE_TOKENS_MAX ||
	     step->bucket_rows < 1 || step->bucket_rows > QUIRE_ROWS_MAX))
		return refuse(refusal_out, "bucket must be 1..2^24 tokens, 1..2^16 rows",
		              -1);
	status = check_segments(step, refusal_out);
	if (status == QUIRE_OK)
		status = check_forks(step->pre_forks, step->num_pre_forks,
		                     "pre_forks: labels must be 1..31 bytes of UTF-8",
		                     refusal_out);
	if (status == QUIRE_OK)
		status = check_forks(step->post_forks, step->num_post_forks,
		                     "post_forks: labels must be 1..31 bytes of UTF-8",
		                     refusal_out);
	return status != QUIRE_OK ? status : check_combined(step, refusal_out);
}

static enum quire_status check_base(const struct quire_trace_record *record,
                                    struct quire_refusal *refusal_out)
{
	if ((record->command.step->flags & QUIRE_STEP_SPECULATIVE) == 0)
		return record->has_base
		               ? refuse(refusal_out,
		                        "base must stand in a speculative submit", -1)
		               : QUIRE_OK;
	if (record->id == 0)
		return refuse(refusal_out, "a speculative submit needs an id", -1);
	if (record->has_base && record->base >= record->id)
		return refuse(refusal_out, "base must be below the submit's id", -1);
	return QUIRE_OK;
}

static enum quire_status check_prefix(const struct quire_trace_record *record,
                                      struct quire_refusal *refusal_out)
{
	const struct quire_trace_prefix *prefix = &record->prefix;

	if (prefix->tokens == 0)
		return QUIRE_OK;
	if (record->command.kind != QUIRE_COMMAND_OPEN)
		return refuse(refusal_out, "prefix must stand in an open", -1);
	if (prefix->tokens < 0 || prefix->tokens > QUIRE_SEQ_TOKENS_MAX)
		return refuse(refusal_out, "prefix.tokens must be 1..2^31-1", -1);
	for (int32_t i = 0; i < prefix->num_keys; i++) {
		if (prefix->keys[i] < 0)
			return refuse(refusal_out, "prefix.keys must be 0..2^63-1", i);
	}
	return QUIRE_OK;
}

static enum quire_status check_outcome(const struct quire_trace_record *record,
                                       const struct quire_trace_header *header,
                                       struct quire_refusal *refusal_out)
{
	const struct quire_trace_outcome *outcome = &record->outcome;
	const struct quire_trace_times *times = &record->times;

	if (record->has_times && (times->given_ns < 0 || times->decided_ns < 0))
		return refuse(refusal_out, "times must be 0 or more", -1);
	if (!record->has_outcome)
		return QUIRE_OK;
	if (strcmp(quire_status_name(outcome->status), "UNKNOWN") == 0)
		return refuse(refusal_out, "outcome.status must be a known status", -1);
	for (int32_t i = 0; outcome->has_pages && i < outcome->num_pages; i++) {
		if (outcome->pages[i] < 0 || outcome->pages[i] >= header->num_pages)
			return refuse(refusal_out,
			              "outcome.pages must be 0..pool.num_pages-1", i);
	}
	return QUIRE_OK;
}

enum quire_status quire_trace_check_record(const struct quire_trace_record *record,
                                           const struct quire_trace_header *header,
                                           uint64_t last_id,
                                           struct quire_refusal *refusal_out)
{
	const struct quire_command *command = &record->command;
	enum quire_status status;

	if (record->id != 0 && (record->id <= last_id || record->id > QUIRE_TRACE_ID_MAX))
		return refuse(refusal_out,
		              "id must be above the one before, at most 2^63-1", -1);
	QUIRE_TRY(check_prefix(record, refusal_out));
	QUIRE_TRY(check_outcome(record, header, refusal_out));
	switch (command->kind) {
	case QUIRE_COMMAND_SUBMIT:
		status = check_step(command->step, header, refusal_out);
		return status != QUIRE_OK ? status : check_base(record, refusal_out);
	case QUIRE_COMMAND_PROMOTE:
	case QUIRE_COMMAND_ABANDON:
		if (command->target < 1 || command->target > QUIRE_TRACE_ID_MAX)
			return refuse(refusal_out, "target must be 1..2^63-1", -1);
		return QUIRE_OK;
	case QUIRE_COMMAND_REWIND:
	case QUIRE_COMMAND_RELEASE_FRONT:
		if (command->tokens < 0)
			return refuse(refusal_out, "tokens must be 0 or more", -1);
		/* fall through */
	case QUIRE_COMMAND_RESET:
		if (!is_label(command->label))
			return refuse(refusal_out, "label must be 1..31 bytes of UTF-8",
			              -1);
		break;
	case QUIRE_COMMAND_OPEN:
	case QUIRE_COMMAND_CLOSE:
		break;
	default:
		return refuse(refusal_out, "kind must be a known command", -1);
	}
	if (command->request > QUIRE_REQUEST_MAX)
		return refuse(refusal_out, "request must be 0..2^63-1", -1);
	return QUIRE_OK;
}
