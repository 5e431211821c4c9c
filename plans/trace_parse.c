/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "plans/trace_impl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(QUIRE_REQUEST_MAX == INT64_MAX, "request ids are JSON integers");

/* Commands of format 1 that this version does not run. */
static const char *const reserved_commands[] = {
	"promote", "abandon", "rewind", "release_front", "offload",
	"reload",  "hold",    "drop",   "adopt",         "offer",
};

/* Fields of a submit that this version does not run. */
static const char *const reserved_fields[] = {
	"pre_forks", "post_forks", "speculative", "base", "copy",
};

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static enum quire_status copy_name(const struct quire_json *json, const json_t *object,
                                   const char *name, char *out)
{
	const char *text;
	enum quire_status status = quire_json_string(json, json_object_get(object, name),
	                                             QUIRE_FIELD_OF("cache", name),
	                                             QUIRE_TRACE_NAME_BYTES - 1, &text);

	if (status == QUIRE_OK)
		strcpy(out, text);
	return status;
}

/* The three objects of a header: all are there. */
static enum quire_status check_scopes(const struct quire_json *json)
{
	static const char *const scopes[] = {"cache", "pool", "limits"};

	for (size_t i = 0; i < LENGTH(scopes); i++) {
		enum quire_status status =
			quire_json_object(json, json_object_get(json->root, scopes[i]),
		                          QUIRE_FIELD(scopes[i]));

		if (status != QUIRE_OK)
			return status;
	}
	return QUIRE_OK;
}

static enum quire_status check_format(const struct quire_json *json)
{
	const char *kind = json_string_value(json_object_get(json->root, "quire"));
	int64_t version;
	enum quire_status status;

	if (kind == NULL || strcmp(kind, "plan-trace") != 0)
		return quire_fault(json->refusal_out, QUIRE_FORMAT, json->line,
		                   "not a plan trace: quire must be \"plan-trace\"");
	status = quire_json_int(json, json_object_get(json->root, "version"),
	                        QUIRE_FIELD("version"), 1, INT64_MAX, &version);
	if (status == QUIRE_OK && version != QUIRE_TRACE_VERSION)
		return quire_fault(json->refusal_out, QUIRE_FORMAT, json->line,
		                   "version must be %d, got %" PRId64,
		                   QUIRE_TRACE_VERSION, version);
	return status;
}

static enum quire_status parse_fields(const struct quire_json *json,
                                      struct quire_trace_header *header)
{
	for (int i = 0; i < quire_trace_num_fields; i++) {
		const struct quire_trace_field *field = &quire_trace_fields[i];
		const json_t *scope = json_object_get(json->root, field->scope);
		enum quire_status status =
			quire_json_int(json, json_object_get(scope, field->name),
		                       QUIRE_FIELD_OF(field->scope, field->name), 1,
		                       field->max, quire_trace_field_of(header, field));

		if (status != QUIRE_OK)
			return status;
	}
	return QUIRE_OK;
}

static enum quire_status parse_source(const struct quire_json *json,
                                      struct quire_trace_header *header)
{
	const json_t *value = json_object_get(json->root, "source");

	if (value == NULL)
		return QUIRE_OK;
	if (!json_is_string(value) || json_string_length(value) >= sizeof(header->source))
		return quire_fault(json->refusal_out, QUIRE_FORMAT, json->line,
		                   "source must be a string of at most %zu bytes",
		                   sizeof(header->source) - 1);
	strcpy(header->source, json_string_value(value));
	return QUIRE_OK;
}

enum quire_status quire_trace_parse_header(const struct quire_json *json,
                                           struct quire_trace_header *header)
{
	const json_t *cache = json_object_get(json->root, "cache");
	const json_t *pool = json_object_get(json->root, "pool");
	enum quire_status status = check_format(json);

	memset(header, 0, sizeof(*header));
	if (status == QUIRE_OK)
		status = check_scopes(json);
	if (status == QUIRE_OK)
		status = copy_name(json, cache, "layout", header->layout);
	if (status == QUIRE_OK)
		status = copy_name(json, cache, "dtype", header->dtype);
	if (status == QUIRE_OK)
		status = parse_fields(json, header);
	if (status == QUIRE_OK)
		status = quire_json_bool(json, json_object_get(pool, "sink"),
		                         QUIRE_FIELD_OF("pool", "sink"), &header->sink);
	if (status == QUIRE_OK)
		status = parse_source(json, header);
	if (status == QUIRE_OK)
		status = quire_trace_check_header(header, QUIRE_FORMAT, json->line,
		                                  json->refusal_out);
	return status != QUIRE_OK ? status : quire_json_finish(json);
}

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

/* Set @flag when the field is there and has the value @when. */
static enum quire_status parse_flag(const struct quire_json *json, const char *name,
                                    bool when, uint32_t flag, uint32_t *flags)
{
	const json_t *value = json_object_get(json->root, name);
	enum quire_status status;
	bool given;

	if (value == NULL)
		return QUIRE_OK;
	status = quire_json_bool(json, value, QUIRE_FIELD(name), &given);
	if (status == QUIRE_OK && given == when)
		*flags |= flag;
	return status;
}

static enum quire_status parse_submit(struct quire_trace_reader *reader)
{
	const struct quire_json *json = &reader->json;
	struct quire_step *step = &reader->step;
	enum quire_status status;

	memset(step, 0, sizeof(*step));
	for (size_t i = 0; i < LENGTH(reserved_fields); i++) {
		if (json_object_get(json->root, reserved_fields[i]) != NULL)
			return quire_fault(
				json->refusal_out, QUIRE_FORMAT, json->line,
				"%s is reserved in format 1, not run by this version",
				reserved_fields[i]);
	}
	status = parse_segments(reader);
	if (status == QUIRE_OK)
		status = parse_bucket(json, step);
	if (status == QUIRE_OK)
		status = parse_combined(reader);
	if (status == QUIRE_OK)
		status = parse_flag(json, "commit", false, QUIRE_STEP_NO_COMMIT,
		                    &step->flags);
	if (status == QUIRE_OK)
		status = parse_flag(json, "no_wait", true, QUIRE_STEP_NO_WAIT,
		                    &step->flags);
	return status;
}

static enum quire_status parse_request(const struct quire_json *json,
                                       struct quire_command *command)
{
	int64_t request;
	enum quire_status status =
		quire_json_int(json, json_object_get(json->root, "request"),
	                       QUIRE_FIELD("request"), 0, INT64_MAX, &request);

	if (status == QUIRE_OK)
		command->request = (uint64_t)request;
	return status;
}

static enum quire_status parse_reset(const struct quire_json *json,
                                     struct quire_command *command)
{
	const json_t *label = json_object_get(json->root, "label");
	enum quire_status status = parse_request(json, command);
	uint32_t keep = 0;

	command->label = QUIRE_LABEL_MAIN;
	if (status == QUIRE_OK && label != NULL)
		status = quire_json_string(json, label, QUIRE_FIELD("label"),
		                           QUIRE_LABEL_BYTES - 1, &command->label);
	if (status == QUIRE_OK)
		status = parse_flag(json, "keep", true, 1, &keep);
	command->keep_pages = (int32_t)keep;
	return status;
}

static enum quire_status parse_command(struct quire_trace_reader *reader,
                                       struct quire_command *command)
{
	const struct quire_json *json = &reader->json;
	const char *name;
	enum quire_status status = quire_json_string(
		json, json_object_get(json->root, "do"), QUIRE_FIELD("do"), 64, &name);

	if (status != QUIRE_OK)
		return status;
	if (strcmp(name, "submit") == 0) {
		command->kind = QUIRE_COMMAND_SUBMIT;
		command->step = &reader->step;
		return parse_submit(reader);
	}
	if (strcmp(name, "open") == 0) {
		command->kind = QUIRE_COMMAND_OPEN;
		return parse_request(json, command);
	}
	if (strcmp(name, "close") == 0) {
		command->kind = QUIRE_COMMAND_CLOSE;
		return parse_request(json, command);
	}
	if (strcmp(name, "reset") == 0) {
		command->kind = QUIRE_COMMAND_RESET;
		return parse_reset(json, command);
	}
	for (size_t i = 0; i < LENGTH(reserved_commands); i++) {
		if (strcmp(name, reserved_commands[i]) == 0)
			return quire_fault(
				json->refusal_out, QUIRE_FORMAT, json->line,
				"do: \"%s\" is reserved in format 1, not run by this "
				"version",
				name);
	}
	return quire_fault(json->refusal_out, QUIRE_FORMAT, json->line,
	                   "do must be open, submit, reset or close, got \"%s\"", name);
}

static bool parse_status(const char *name, enum quire_status *status_out)
{
	static const struct {
		const char *name;
		enum quire_status status;
	} names[] = {
#define STATUS_NAME(name, value, text) {#name, QUIRE_##name},
		QUIRE_STATUS_LIST(STATUS_NAME)
#undef STATUS_NAME
	};

	for (size_t i = 0; i < LENGTH(names); i++) {
		if (strcmp(names[i].name, name) == 0) {
			*status_out = names[i].status;
			return true;
		}
	}
	return false;
}

/* Exactly 16 lower-case hexadecimal digits. */
static bool parse_digest(const char *text, uint64_t *digest_out)
{
	if (strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16)
		return false;
	*digest_out = strtoull(text, NULL, 16);
	return true;
}

static enum quire_status parse_outcome(const struct quire_json *json,
                                       struct quire_trace_outcome *outcome)
{
	const json_t *object = json_object_get(json->root, "outcome");
	const json_t *detail = json_object_get(object, "detail");
	const json_t *digest = json_object_get(object, "digest");
	const char *text;
	enum quire_status status =
		quire_json_object(json, object, QUIRE_FIELD("outcome"));

	if (status == QUIRE_OK)
		status =
			quire_json_string(json, json_object_get(object, "status"),
		                          QUIRE_FIELD_OF("outcome", "status"), 64, &text);
	if (status == QUIRE_OK && !parse_status(text, &outcome->status))
		return quire_fault(
			json->refusal_out, QUIRE_FORMAT, json->line,
			"outcome.status must be the name of a status, got \"%s\"", text);
	if (status == QUIRE_OK && detail != NULL)
		status = quire_json_int(json, detail, QUIRE_FIELD_OF("outcome", "detail"),
		                        INT64_MIN, INT64_MAX, &outcome->detail);
	if (status != QUIRE_OK || digest == NULL)
		return status;
	outcome->has_digest = true;
	if (!json_is_string(digest) ||
	    !parse_digest(json_string_value(digest), &outcome->digest))
		return quire_fault(json->refusal_out, QUIRE_FORMAT, json->line,
		                   "outcome.digest must be a string of 16 digits 0-9a-f");
	return QUIRE_OK;
}

static enum quire_status parse_id(const struct quire_trace_reader *reader,
                                  uint64_t *id_out)
{
	const struct quire_json *json = &reader->json;
	const json_t *value = json_object_get(json->root, "id");
	enum quire_status status;
	int64_t id;

	if (value == NULL)
		return QUIRE_OK;
	status = quire_json_int(json, value, QUIRE_FIELD("id"), 1, QUIRE_TRACE_ID_MAX,
	                        &id);
	if (status != QUIRE_OK)
		return status;
	if ((uint64_t)id <= reader->last_id)
		return quire_fault(json->refusal_out, QUIRE_FORMAT, json->line,
		                   "id must be above %" PRIu64
		                   ", the one before, got %" PRId64,
		                   reader->last_id, id);
	*id_out = (uint64_t)id;
	return QUIRE_OK;
}

enum quire_status quire_trace_parse_record(struct quire_trace_reader *reader,
                                           struct quire_trace_record *record)
{
	const struct quire_json *json = &reader->json;
	enum quire_status status;

	memset(record, 0, sizeof(*record));
	record->line = json->line;
	status = parse_command(reader, &record->command);
	if (status == QUIRE_OK)
		status = parse_id(reader, &record->id);
	record->has_outcome = json_object_get(json->root, "outcome") != NULL;
	if (status == QUIRE_OK && record->has_outcome)
		status = parse_outcome(json, &record->outcome);
	if (status == QUIRE_OK)
		status = quire_json_finish(json);
	if (status == QUIRE_OK && record->id != 0)
		reader->last_id = record->id;
	return status;
}
