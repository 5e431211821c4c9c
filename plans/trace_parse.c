/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "plans/trace_impl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(QUIRE_REQUEST_MAX == INT64_MAX, "request ids are JSON integers");

/* Commands of format 1 that this version does not run. */
static const char *const reserved_commands[] = {
	"offload", "reload", "hold", "drop", "adopt", "offer",
};

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static enum quire_status copy_name(const struct quire_json *json,
                                   const struct quire_json_value *object,
                                   const char *name, char *out)
{
	const char *text;
	enum quire_status status = quire_json_string(json, quire_json_get(object, name),
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
			quire_json_object(json, quire_json_get(json->root, scopes[i]),
		                          QUIRE_FIELD(scopes[i]));

		if (status != QUIRE_OK)
			return status;
	}
	return QUIRE_OK;
}

static enum quire_status check_format(const struct quire_json *json)
{
	const struct quire_json_value *kind = quire_json_get(json->root, "quire");
	int64_t version = 0;
	enum quire_status status;

	if (!quire_json_is(kind, QUIRE_JSON_STRING) ||
	    strcmp(kind->text, "plan-trace") != 0)
		return quire_fault(json->refusal_out, QUIRE_FORMAT, json->line,
		                   "not a plan trace: quire must be \"plan-trace\"");
	status = quire_json_int(json, quire_json_get(json->root, "version"),
	                        QUIRE_FIELD("version"), 1, INT64_MAX, &version);
	if (status == QUIRE_OK && version != QUIRE_TRACE_VERSION)
		return quire_fault(json->refusal_out, QUIRE_FORMAT, json->line,
		                   "version must be %d, got %" PRId64,
		                   QUIRE_TRACE_VERSION, version);
	return status;
}

/* The one limit that may be left out. */
static enum quire_status parse_row_pages(const struct quire_json *json,
                                         struct quire_trace_header *header)
{
	const struct quire_json_value *limits = quire_json_get(json->root, "limits");
	const struct quire_json_value *value = quire_json_get(limits, "row_pages");

	if (value == NULL)
		return QUIRE_OK;
	return quire_json_int(json, value, QUIRE_FIELD_OF("limits", "row_pages"), 1,
	                      INT32_MAX, &header->row_pages_max);
}

static enum quire_status parse_fields(const struct quire_json *json,
                                      struct quire_trace_header *header)
{
	for (int i = 0; i < quire_trace_num_fields; i++) {
		const struct quire_trace_field *field = &quire_trace_fields[i];
		const struct quire_json_value *scope =
			quire_json_get(json->root, field->scope);
		enum quire_status status =
			quire_json_int(json, quire_json_get(scope, field->name),
		                       QUIRE_FIELD_OF(field->scope, field->name), 1,
		                       field->max, quire_trace_field_of(header, field));

		if (status != QUIRE_OK)
			return status;
	}
	return parse_row_pages(json, header);
}

static enum quire_status parse_source(const struct quire_json *json,
                                      struct quire_trace_header *header)
{
	const struct quire_json_value *value = quire_json_get(json->root, "source");

	if (value == NULL)
		return QUIRE_OK;
	if (!quire_json_is(value, QUIRE_JSON_STRING) || value->has_zero ||
	    value->size >= sizeof(header->source))
		return quire_fault(json->refusal_out, QUIRE_FORMAT, json->line,
		                   "source must be a string of at most %zu bytes, none "
		                   "of them zero",
		                   sizeof(header->source) - 1);
	strcpy(header->source, value->text);
	return QUIRE_OK;
}

enum quire_status quire_trace_parse_header(const struct quire_json *json,
                                           struct quire_trace_header *header)
{
	const struct quire_json_value *cache = quire_json_get(json->root, "cache");
	const struct quire_json_value *pool = quire_json_get(json->root, "pool");
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
		status = quire_json_bool(json, quire_json_get(pool, "sink"),
		                         QUIRE_FIELD_OF("pool", "sink"), &header->sink);
	if (status == QUIRE_OK)
		status = parse_source(json, header);
	if (status == QUIRE_OK)
		status = quire_trace_check_header(header, QUIRE_FORMAT, json->line,
		                                  json->refusal_out);
	return status != QUIRE_OK ? status : quire_json_finish(json);
}

enum quire_status quire_trace_parse_flag(const struct quire_json *json, const char *name,
                                         bool when, uint32_t flag, uint32_t *flags)
{
	const struct quire_json_value *value = quire_json_get(json->root, name);
	enum quire_status status;
	bool given;

	if (value == NULL)
		return QUIRE_OK;
	status = quire_json_bool(json, value, QUIRE_FIELD(name), &given);
	if (status == QUIRE_OK && given == when)
		*flags |= flag;
	return status;
}

static enum quire_status parse_request(const struct quire_json *json,
                                       struct quire_command *command)
{
	int64_t request;
	enum quire_status status =
		quire_json_int(json, quire_json_get(json->root, "request"),
	                       QUIRE_FIELD("request"), 0, INT64_MAX, &request);

	if (status == QUIRE_OK)
		command->request = (uint64_t)request;
	return status;
}

/* The stream that a command speaks of. */
static enum quire_status parse_stream(const struct quire_json *json,
                                      struct quire_command *command)
{
	const struct quire_json_value *label = quire_json_get(json->root, "label");
	enum quire_status status = parse_request(json, command);

	command->label = QUIRE_LABEL_MAIN;
	if (status == QUIRE_OK && label != NULL)
		status = quire_json_string(json, label, QUIRE_FIELD("label"),
		                           QUIRE_LABEL_BYTES - 1, &command->label);
	return status;
}

static enum quire_status parse_reset(struct quire_trace_reader *reader,
                                     struct quire_command *command)
{
	const struct quire_json *json = &reader->json;
	enum quire_status status = parse_stream(json, command);
	uint32_t keep = 0;

	if (status == QUIRE_OK)
		status = quire_trace_parse_flag(json, "keep", true, 1, &keep);
	command->keep_pages = (int32_t)keep;
	return status;
}

static enum quire_status parse_open(struct quire_trace_reader *reader,
                                    struct quire_command *command)
{
	return parse_request(&reader->json, command);
}

/* rewind, release_front */
static enum quire_status parse_tokens(struct quire_trace_reader *reader,
                                      struct quire_command *command)
{
	const struct quire_json *json = &reader->json;
	enum quire_status status = parse_stream(json, command);
	int64_t tokens = 0;

	if (status == QUIRE_OK)
		status = quire_json_int(json, quire_json_get(json->root, "tokens"),
		                        QUIRE_FIELD("tokens"), 0, QUIRE_SEQ_TOKENS_MAX,
		                        &tokens);
	command->tokens = (int32_t)tokens;
	return status;
}

/* promote, abandon: of any id, for one that does not fit has the outcome INVALID. */
static enum quire_status parse_ticket(struct quire_trace_reader *reader,
                                      struct quire_command *command)
{
	const struct quire_json *json = &reader->json;
	int64_t ticket = 0;
	enum quire_status status =
		quire_json_int(json, quire_json_get(json->root, "ticket"),
	                       QUIRE_FIELD("ticket"), 1, QUIRE_TRACE_ID_MAX, &ticket);

	command->target = (uint64_t)ticket;
	return status;
}

static enum quire_status parse_step(struct quire_trace_reader *reader,
                                    struct quire_command *command)
{
	command->step = &reader->step;
	return quire_trace_parse_submit(reader);
}

static enum quire_status parse_command(struct quire_trace_reader *reader,
                                       struct quire_command *command)
{
	static enum quire_status (*const parsers[])(struct quire_trace_reader *,
	                                            struct quire_command *) = {
		[QUIRE_COMMAND_OPEN] = parse_open,
		[QUIRE_COMMAND_CLOSE] = parse_open,
		[QUIRE_COMMAND_SUBMIT] = parse_step,
		[QUIRE_COMMAND_RESET] = parse_reset,
		[QUIRE_COMMAND_REWIND] = parse_tokens,
		[QUIRE_COMMAND_RELEASE_FRONT] = parse_tokens,
		[QUIRE_COMMAND_PROMOTE] = parse_ticket,
		[QUIRE_COMMAND_ABANDON] = parse_ticket,
	};
	const struct quire_json *json = &reader->json;
	const char *name;
	enum quire_status status = quire_json_string(
		json, quire_json_get(json->root, "do"), QUIRE_FIELD("do"), 64, &name);

	if (status != QUIRE_OK)
		return status;
	for (size_t i = 0; i < LENGTH(parsers); i++) {
		if (strcmp(name, quire_trace_kinds[i]) != 0)
			continue;
		command->kind = (enum quire_command_kind)i;
		return parsers[i](reader, command);
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
	                   "do must be open, close, submit, reset, rewind, "
	                   "release_front, promote or abandon, got \"%s\"",
	                   name);
}

/* The names of an open's prompt. */
static enum quire_status parse_prefix(struct quire_trace_reader *reader,
                                      struct quire_trace_prefix *prefix)
{
	const struct quire_json *json = &reader->json;
	const struct quire_json_value *object = quire_json_get(json->root, "prefix");
	enum quire_status status;

	if (object == NULL)
		return QUIRE_OK;
	status = quire_json_object(json, object, QUIRE_FIELD("prefix"));
	if (status == QUIRE_OK)
		status = quire_json_int(json, quire_json_get(object, "tokens"),
		                        QUIRE_FIELD_OF("prefix", "tokens"), 1,
		                        QUIRE_SEQ_TOKENS_MAX, &prefix->tokens);
	if (status == QUIRE_OK)
		status = quire_json_numbers(json, quire_json_get(object, "keys"),
		                            "prefix.keys", INT64_MAX, &reader->keys,
		                            &prefix->num_keys);
	prefix->keys = reader->keys.items;
	return status;
}

static enum quire_status parse_id(const struct quire_trace_reader *reader,
                                  uint64_t *id_out)
{
	const struct quire_json *json = &reader->json;
	const struct quire_json_value *value = quire_json_get(json->root, "id");
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
	if (status == QUIRE_OK && record->command.kind == QUIRE_COMMAND_SUBMIT)
		status = quire_trace_parse_base(reader, record);
	if (status == QUIRE_OK && record->command.kind == QUIRE_COMMAND_OPEN)
		status = parse_prefix(reader, &record->prefix);
	if (status == QUIRE_OK)
		status = quire_trace_parse_outcome(reader, record);
	if (status == QUIRE_OK)
		status = quire_json_finish(json);
	if (status == QUIRE_OK && record->id != 0)
		reader->last_id = record->id;
	return status;
}
