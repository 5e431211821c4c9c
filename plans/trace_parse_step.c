/* SPDX-License-Identifier: MIT */
/* A submit in a plan trace. */
#include "config.h"

#include "plans/trace_impl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static enum quire_status parse_segment(const struct quire_json *json,
                                       const struct quire_json_value *value,
                                       int64_t index, struct quire_segment *segment)
{
	const struct quire_json_value *request_at, *label, *span_at, *at;
	int64_t request = 0, span = 0, expected = QUIRE_AT_ANY;
	enum quire_status status;

	if (!quire_json_is(value, QUIRE_JSON_ARRAY) || value->size < 3 || value->size > 4)
		return quire_fault(
			json->refusal_out, QUIRE_FORMAT, json->line,
			"segments[%" PRId64
			"] must be [request, label, span, at], at may be left out",
			index);
	request_at = quire_json_first(value);
	label = quire_json_next(request_at);
	span_at = quire_json_next(label);
	at = quire_json_next(span_at);
	status = quire_json_int(json, request_at,
	                        QUIRE_FIELD_AT("segments", index, "request"), 0,
	                        INT64_MAX, &request);
	if (status == QUIRE_OK)
		status = quire_json_string(json, label,
		                           QUIRE_FIELD_AT("segments", index, "label"),
		                           QUIRE_LABEL_BYTES - 1, &segment->label);
	if (status == QUIRE_OK)
		status = quire_json_int(json, span_at,
		                        QUIRE_FIELD_AT("segments", index, "span"), 0,
		                        QUIRE_TOKENS_MAX, &span);
	if (status == QUIRE_OK && value->size == 4 && !quire_json_is(at, QUIRE_JSON_NULL))
		status = quire_json_int(json, at, QUIRE_FIELD_AT("segments", index, "at"),
		                        0, QUIRE_SEQ_TOKENS_MAX, &expected);
	if (status != QUIRE_OK)
		return status;
	segment->request = (uint64_t)request;
	segment->span = (int32_t)span;
	segment->at = (int32_t)expected;
	segment->tag = 0;
	return QUIRE_OK;
}

static enum quire_status parse_segments(struct quire_trace_reader *reader)
{
	const struct quire_json *json = &reader->json;
	const struct quire_json_value *list = quire_json_get(json->root, "segments");
	uint32_t count = quire_json_size(list);
	const struct quire_json_value *value;
	struct quire_segment *segments;
	enum quire_status status = quire_json_array(json, list, QUIRE_FIELD("segments"));

	if (status != QUIRE_OK)
		return status;
	if (count < 1 || count > reader->header.rows_max)
		return quire_fault(json->refusal_out, QUIRE_FORMAT, json->line,
		                   "segments must be 1..%" PRId64
		                   " (limits.rows), got %" PRIu32,
		                   reader->header.rows_max, count);
	status = quire_json_room(json, &reader->segments, count, sizeof(*segments));
	if (status != QUIRE_OK)
		return status;
	segments = reader->segments.items;
	value = quire_json_first(list);
	for (uint32_t i = 0; i < count && status == QUIRE_OK;
	     i++, value = quire_json_next(value))
		status = parse_segment(json, value, i, &segments[i]);
	reader->step.segments = segments;
	reader->step.num_segments = (int32_t)count;
	return status;
}

static enum quire_status parse_combined_labels(struct quire_trace_reader *reader,
                                               int32_t t,
                                               const struct quire_json_value *list)
{
	const struct quire_json *json = &reader->json;
	struct quire_combined *combined = &reader->combined[t];
	uint32_t count = quire_json_size(list);
	const struct quire_json_value *value;
	enum quire_status status =
		quire_json_array(json, list, QUIRE_FIELD_OF("combined", combined->name));

	if (status != QUIRE_OK)
		return status;
	if (count > QUIRE_LABELS_MAX)
		return quire_fault(json->refusal_out, QUIRE_FORMAT, json->line,
		                   "combined.%s must have 0..%d labels, got %" PRIu32,
		                   combined->name, QUIRE_LABELS_MAX, count);
	value = quire_json_first(list);
	for (uint32_t i = 0; i < count && status == QUIRE_OK;
	     i++, value = quire_json_next(value))
		status = quire_json_string(json, value,
		                           QUIRE_FIELD_AT("combined", t, "label"),
		                           QUIRE_LABEL_BYTES - 1, &reader->labels[t][i]);
	combined->labels = reader->labels[t];
	combined->num_labels = (int32_t)count;
	return status;
}

static enum quire_status parse_combined(struct quire_trace_reader *reader)
{
	const struct quire_json *json = &reader->json;
	const struct quire_json_value *object = quire_json_get(json->root, "combined");
	uint32_t count = quire_json_size(object);
	const struct quire_json_value *name;
	enum quire_status status;

	if (object == NULL)
		return QUIRE_OK;
	status = quire_json_object(json, object, QUIRE_FIELD("combined"));
	if (status != QUIRE_OK)
		return status;
	if (count > QUIRE_TABLES_MAX)
		return quire_fault(json->refusal_out, QUIRE_FORMAT, json->line,
		                   "combined must have 0..%d names, got %" PRIu32,
		                   QUIRE_TABLES_MAX, count);
	name = quire_json_first(object);
	for (uint32_t t = 0; t < count; t++, name = quire_json_next(name + 1)) {
		if (name->size < 1 || name->size >= QUIRE_LABEL_BYTES || name->has_zero)
			return quire_fault(json->refusal_out, QUIRE_FORMAT, json->line,
			                   "combined[%" PRIu32
			                   "]: name must be 1..%d bytes, none of them "
			                   "zero",
			                   t, QUIRE_LABEL_BYTES - 1);
		reader->combined[t].name = name->text;
		status = parse_combined_labels(reader, (int32_t)t, name + 1);
		if (status != QUIRE_OK)
			return status;
	}
	reader->step.combined = reader->combined;
	reader->step.num_combined = (int32_t)count;
	return QUIRE_OK;
}

static enum quire_status parse_bucket(const struct quire_json *json,
                                      struct quire_step *step)
{
	const struct quire_json_value *value = quire_json_get(json->root, "bucket");
	const struct quire_json_value *first;
	int64_t tokens = 0, rows = 0;
	enum quire_status status;

	if (value == NULL)
		return QUIRE_OK;
	if (!quire_json_is(value, QUIRE_JSON_ARRAY) || value->size != 2)
		return quire_fault(json->refusal_out, QUIRE_FORMAT, json->line,
		                   "bucket must be [tokens, rows]");
	first = quire_json_first(value);
	status = quire_json_int(json, first, QUIRE_FIELD_OF("bucket", "tokens"), 1,
	                        QUIRE_TOKENS_MAX, &tokens);
	if (status == QUIRE_OK)
		status = quire_json_int(json, quire_json_next(first),
		                        QUIRE_FIELD_OF("bucket", "rows"), 1,
		                        QUIRE_ROWS_MAX, &rows);
	step->bucket_tokens = (int32_t)tokens;
	step->bucket_rows = (int32_t)rows;
	return status;
}

static enum quire_status parse_fork(const struct quire_json *json, const char *list,
                                    int64_t index, const struct quire_json_value *value,
                                    struct quire_fork *fork)
{
	const struct quire_json_value *source;
	enum quire_status status;

	if (!quire_json_is(value, QUIRE_JSON_ARRAY) || value->size != 2)
		return quire_fault(json->refusal_out, QUIRE_FORMAT, json->line,
		                   "%s[%" PRId64 "] must be [source, target]", list,
		                   index);
	source = quire_json_first(value);
	status = quire_json_string(json, source, QUIRE_FIELD_AT(list, index, "source"),
	                           QUIRE_LABEL_BYTES - 1, &fork->source);
	if (status == QUIRE_OK)
		status = quire_json_string(json, quire_json_next(source),
		                           QUIRE_FIELD_AT(list, index, "target"),
		                           QUIRE_LABEL_BYTES - 1, &fork->target);
	return status;
}

/* @forks: room for QUIRE_FORKS_MAX */
static enum quire_status parse_forks(const struct quire_json *json, const char *name,
                                     struct quire_fork *forks, int32_t *num_out)
{
	const struct quire_json_value *list = quire_json_get(json->root, name);
	uint32_t count = quire_json_size(list);
	const struct quire_json_value *value;
	enum quire_status status;

	if (list == NULL)
		return QUIRE_OK;
	status = quire_json_array(json, list, QUIRE_FIELD(name));
	if (status != QUIRE_OK)
		return status;
	if (count > QUIRE_FORKS_MAX)
		return quire_fault(json->refusal_out, QUIRE_FORMAT, json->line,
		                   "%s must have 0..%d pairs, got %" PRIu32, name,
		                   QUIRE_FORKS_MAX, count);
	value = quire_json_first(list);
	for (uint32_t i = 0; i < count && status == QUIRE_OK;
	     i++, value = quire_json_next(value))
		status = parse_fork(json, name, i, value, &forks[i]);
	*num_out = (int32_t)count;
	return status;
}

static enum quire_status parse_flags(const struct quire_json *json, uint32_t *flags)
{
	static const struct {
		const char *name;
		bool when;
		uint32_t flag;
	} fields[] = {
		{"commit", false, QUIRE_STEP_NO_COMMIT},
		{"no_wait", true, QUIRE_STEP_NO_WAIT},
		{"copy", true, QUIRE_STEP_COPY_FORKS},
		{"speculative", true, QUIRE_STEP_SPECULATIVE},
	};
	enum quire_status status = QUIRE_OK;

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		status = quire_trace_parse_flag(json, fields[i].name, fields[i].when,
		                                fields[i].flag, flags);
		if (status != QUIRE_OK)
			return status;
	}
	return status;
}

enum quire_status quire_trace_parse_submit(struct quire_trace_reader *reader)
{
	const struct quire_json *json = &reader->json;
	struct quire_step *step = &reader->step;
	enum quire_status status;

	memset(step, 0, sizeof(*step));
	step->pre_forks = reader->pre_forks;
	step->post_forks = reader->post_forks;
	status = parse_segments(reader);
	if (status == QUIRE_OK)
		status = parse_bucket(json, step);
	if (status == QUIRE_OK)
		status = parse_combined(reader);
	if (status == QUIRE_OK)
		status = parse_forks(json, "pre_forks", reader->pre_forks,
		                     &step->num_pre_forks);
	if (status == QUIRE_OK)
		status = parse_forks(json, "post_forks", reader->post_forks,
		                     &step->num_post_forks);
	return status != QUIRE_OK ? status : parse_flags(json, &step->flags);
}

enum quire_status quire_trace_parse_base(struct quire_trace_reader *reader,
                                         struct quire_trace_record *record)
{
	const struct quire_json *json = &reader->json;
	const struct quire_json_value *base = quire_json_get(json->root, "base");
	bool speculative = (reader->step.flags & QUIRE_STEP_SPECULATIVE) != 0;
	enum quire_status status;
	int64_t id;

	if (speculative && record->id == 0)
		return quire_fault(json->refusal_out, QUIRE_FORMAT, json->line,
		                   "id must be there: the submit is speculative");
	if (base == NULL)
		return QUIRE_OK;
	if (!speculative)
		return quire_fault(json->refusal_out, QUIRE_FORMAT, json->line,
		                   "base must stand in a speculative submit only");
	record->has_base = true;
	if (quire_json_is(base, QUIRE_JSON_NULL))
		return QUIRE_OK;
	status = quire_json_int(json, base, QUIRE_FIELD("base"), 1, QUIRE_TRACE_ID_MAX,
	                        &id);
	if (status != QUIRE_OK)
		return status;
	if ((uint64_t)id >= record->id)
		return quire_fault(json->refusal_out, QUIRE_FORMAT, json->line,
		                   "base must be below the submit's own id %" PRIu64
		                   ", got %" PRId64,
		                   record->id, id);
	record->base = (uint64_t)id;
	return QUIRE_OK;
}
