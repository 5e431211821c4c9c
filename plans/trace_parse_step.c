/* SPDX-License-Identifier: MIT */
/* A submit in a plan trace. */
#include "config.h"

#include "plans/trace_impl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static enum quire_status parse_segment(const struct quire_json *json, const json_t *value,
                                       int64_t index, struct quire_segment *segment)
{
	const json_t *at = json_array_get(value, 3);
	int64_t request, span, expected = QUIRE_AT_ANY;
	enum quire_status status;

	if (!json_is_array(value) || json_array_size(value) < 3 ||
	    json_array_size(value) > 4)
		return quire_fault(
			json->refusal_out, QUIRE_FORMAT, json->line,
			"segments[%" PRId64
			"] must be [request, label, span, at], at may be left out",
			index);
	status = quire_json_int(json, json_array_get(value, 0),
	                        QUIRE_FIELD_AT("segments", index, "request"), 0,
	                        INT64_MAX, &request);
	if (status == QUIRE_OK)
		status = quire_json_string(json, json_array_get(value, 1),
		                           QUIRE_FIELD_AT("segments", index, "label"),
		                           QUIRE_LABEL_BYTES - 1, &segment->label);
	if (status == QUIRE_OK)
		status = quire_json_int(json, json_array_get(value, 2),
		                        QUIRE_FIELD_AT("segments", index, "span"), 0,
		                        QUIRE_TOKENS_MAX, &span);
	if (status == QUIRE_OK && at != NULL && !json_is_null(at))
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

/* Room grows by doubling and is kept: no allocation once the longest step was seen. */
static enum quire_status grow_segments(struct quire_trace_reader *reader, size_t count)
{
	size_t room = reader->segments_room > 0 ? (size_t)reader->segments_room : 64;
	struct quire_segment *segments;

	if (count <= (size_t)reader->segments_room)
		return QUIRE_OK;
	while (room < count)
		room *= 2;
	segments = realloc(reader->segments, room * sizeof(*segments));
	if (segments == NULL)
		return quire_fault(reader->json.refusal_out, QUIRE_NO_MEMORY,
		                   reader->json.line, "no memory for %zu segments", room);
	reader->segments = segments;
	reader->segments_room = (int32_t)room;
	return QUIRE_OK;
}

static enum quire_status parse_segments(struct quire_trace_reader *reader)
{
	const struct quire_json *json = &reader->json;
	const json_t *list = json_object_get(json->root, "segments");
	size_t count = json_array_size(list);
	enum quire_status status = quire_json_array(json, list, QUIRE_FIELD("segments"));

	if (status != QUIRE_OK)
		return status;
	if (count < 1 || count > (size_t)reader->header.rows_max)
		return quire_fault(json->refusal_out, QUIRE_FORMAT, json->line,
		                   "segments must be 1..%" PRId64
		                   " (limits.rows), got %zu",
		                   reader->header.rows_max, count);
	status = grow_segments(reader, count);
	for (size_t i = 0; i < count && status == QUIRE_OK; i++)
		status = parse_segment(json, json_array_get(list, i), (int64_t)i,
		                       &reader->segments[i]);
	reader->step.segments = reader->segments;
	reader->step.num_segments = (int32_t)count;
	return status;
}

static enum quire_status parse_combined_labels(struct quire_trace_reader *reader,
                                               int32_t t, const json_t *list)
{
	const struct quire_json *json = &reader->json;
	struct quire_combined *combined = &reader->combined[t];
	size_t count = json_array_size(list);
	enum quire_status status =
		quire_json_array(json, list, QUIRE_FIELD_OF("combined", combined->name));

	if (status != QUIRE_OK)
		return status;
	if (count > QUIRE_LABELS_MAX)
		return quire_fault(json->refusal_out, QUIRE_FORMAT, json->line,
		                   "combined.%s must have 0..%d labels, got %zu",
		                   combined->name, QUIRE_LABELS_MAX, count);
	for (size_t i = 0; i < count && status == QUIRE_OK; i++)
		status = quire_json_string(json, json_array_get(list, i),
		                           QUIRE_FIELD_AT("combined", t, "label"),
		                           QUIRE_LABEL_BYTES - 1, &reader->labels[t][i]);
	combined->labels = reader->labels[t];
	combined->num_labels = (int32_t)count;
	return status;
}

static enum quire_status parse_combined(struct quire_trace_reader *reader)
{
	const struct quire_json *json = &reader->json;
	json_t *object = json_object_get(json->root, "combined");
	enum quire_status status = QUIRE_OK;
	const char *name;
	json_t *list;
	int32_t t = 0;

	if (object == NULL)
		return QUIRE_OK;
	status = quire_json_object(json, object, QUIRE_FIELD("combined"));
	if (status != QUIRE_OK)
		return status;
	if (json_object_size(object) > QUIRE_TABLES_MAX)
		return quire_fault(json->refusal_out, QUIRE_FORMAT, json->line,
		                   "combined must have 0..%d names, got %zu",
		                   QUIRE_TABLES_MAX, json_object_size(object));
	json_object_foreach(object, name, list)
	{
		if (strlen(name) < 1 || strlen(name) >= QUIRE_LABEL_BYTES)
			return quire_fault(json->refusal_out, QUIRE_FORMAT, json->line,
			                   "combined[%" PRId32
			                   "]: name must be 1..%d bytes",
			                   t, QUIRE_LABEL_BYTES - 1);
		reader->combined[t].name = name;
		status = parse_combined_labels(reader, t++, list);
		if (status != QUIRE_OK)
			return status;
	}
	reader->step.combined = reader->combined;
	reader->step.num_combined = t;
	return QUIRE_OK;
}

static enum quire_status parse_bucket(const struct quire_json *json,
                                      struct quire_step *step)
{
	const json_t *value = json_object_get(json->root, "bucket");
	enum quire_status status;
	int64_t tokens, rows;

	if (value == NULL)
		return QUIRE_OK;
	if (!json_is_array(value) || json_array_size(value) != 2)
		return quire_fault(json->refusal_out, QUIRE_FORMAT, json->line,
		                   "bucket must be [tokens, rows]");
	status = quire_json_int(json, json_array_get(value, 0),
	                        QUIRE_FIELD_OF("bucket", "tokens"), 1, QUIRE_TOKENS_MAX,
	                        &tokens);
	if (status == QUIRE_OK)
		status = quire_json_int(json, json_array_get(value, 1),
		                        QUIRE_FIELD_OF("bucket", "rows"), 1,
		                        QUIRE_ROWS_MAX, &rows);
	if (status != QUIRE_OK)
		return status;
	step->bucket_tokens = (int32_t)tokens;
	step->bucket_rows = (int32_t)rows;
	return QUIRE_OK;
}

static enum quire_status parse_fork(const struct quire_json *json, const char *list,
                                    int64_t index, const json_t *value,
                                    struct quire_fork *fork)
{
	enum quire_status status;

	if (!json_is_array(value) || json_array_size(value) != 2)
		return quire_fault(json->refusal_out, QUIRE_FORMAT, json->line,
		                   "%s[%" PRId64 "] must be [source, target]", list,
		                   index);
	status = quire_json_string(json, json_array_get(value, 0),
	                           QUIRE_FIELD_AT(list, index, "source"),
	                           QUIRE_LABEL_BYTES - 1, &fork->source);
	if (status == QUIRE_OK)
		status = quire_json_string(json, json_array_get(value, 1),
		                           QUIRE_FIELD_AT(list, index, "target"),
		                           QUIRE_LABEL_BYTES - 1, &fork->target);
	return status;
}

/* @forks: room for QUIRE_FORKS_MAX */
static enum quire_status parse_forks(const struct quire_json *json, const char *name,
                                     struct quire_fork *forks, int32_t *num_out)
{
	const json_t *list = json_object_get(json->root, name);
	size_t count = json_array_size(list);
	enum quire_status status;

	if (list == NULL)
		return QUIRE_OK;
	status = quire_json_array(json, list, QUIRE_FIELD(name));
	if (status == QUIRE_OK && count > QUIRE_FORKS_MAX)
		return quire_fault(json->refusal_out, QUIRE_FORMAT, json->line,
		                   "%s must have 0..%d pairs, got %zu", name,
		                   QUIRE_FORKS_MAX, count);
	for (size_t i = 0; i < count && status == QUIRE_OK; i++)
		status = parse_fork(json, name, (int64_t)i, json_array_get(list, i),
		                    &forks[i]);
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
	const json_t *base = json_object_get(json->root, "base");
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
	if (json_is_null(base))
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
