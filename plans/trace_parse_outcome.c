/* SPDX-License-Identifier: MIT */
/* What a recorder wrote beside a command: its outcome and its times. */
#include "config.h"

#include "plans/trace_impl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

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

/* 16 lower-case hexadecimal digits. */
static bool parse_digest(const char *text, uint64_t *digest_out)
{
	uint64_t digest = 0;

	for (int i = 0; i < 16; i++) {
		bool digit = text[i] >= '0' && text[i] <= '9';

		if (!digit && !(text[i] >= 'a' && text[i] <= 'f'))
			return false;
		digest = digest << 4 |
		         (uint64_t)(digit ? text[i] - '0' : text[i] - 'a' + 10);
	}
	*digest_out = digest;
	return true;
}

/* The pages that a step took. */
static enum quire_status parse_pages(struct quire_trace_reader *reader,
                                     const struct quire_json_value *list,
                                     struct quire_trace_outcome *outcome)
{
	const struct quire_json *json = &reader->json;
	int64_t last = reader->header.num_pages - 1;
	uint32_t count = quire_json_size(list);
	const struct quire_json_value *value;
	enum quire_status status;
	int64_t page = 0;
	int32_t *pages;

	if (list == NULL)
		return QUIRE_OK;
	status = quire_json_array(json, list, QUIRE_FIELD("outcome.pages"));
	if (status == QUIRE_OK)
		status = quire_json_room(json, &reader->pages, count, sizeof(*pages));
	if (status != QUIRE_OK)
		return status;
	pages = reader->pages.items;
	value = quire_json_first(list);
	for (uint32_t i = 0; i < count; i++, value = quire_json_next(value)) {
		status = quire_json_int(json, value,
		                        QUIRE_FIELD_AT("outcome.pages", i, "number"), 0,
		                        last, &page);
		if (status != QUIRE_OK)
			return status;
		pages[i] = (int32_t)page;
	}
	outcome->has_pages = true;
	outcome->num_pages = (int32_t)count;
	outcome->pages = pages;
	return QUIRE_OK;
}

static enum quire_status parse_outside(const struct quire_json *json,
                                       const struct quire_json_value *object,
                                       struct quire_trace_outcome *outcome)
{
	const struct quire_json_value *value = quire_json_get(object, "outside");

	if (value == NULL)
		return QUIRE_OK;
	return quire_json_bool(json, value, QUIRE_FIELD_OF("outcome", "outside"),
	                       &outcome->is_outside);
}

static enum quire_status parse_digest_of(const struct quire_json *json,
                                         const struct quire_json_value *object,
                                         struct quire_trace_outcome *outcome)
{
	const struct quire_json_value *digest = quire_json_get(object, "digest");

	if (digest == NULL)
		return QUIRE_OK;
	outcome->has_digest = true;
	if (quire_json_is(digest, QUIRE_JSON_STRING) && digest->size == 16 &&
	    parse_digest(digest->text, &outcome->digest))
		return QUIRE_OK;
	return quire_fault(json->refusal_out, QUIRE_FORMAT, json->line,
	                   "outcome.digest must be a string of 16 digits 0-9a-f");
}

static enum quire_status parse_outcome(struct quire_trace_reader *reader,
                                       const struct quire_json_value *object,
                                       struct quire_trace_outcome *outcome)
{
	const struct quire_json *json = &reader->json;
	const struct quire_json_value *detail = quire_json_get(object, "detail");
	const char *text;
	enum quire_status status =
		quire_json_object(json, object, QUIRE_FIELD("outcome"));

	if (status == QUIRE_OK)
		status =
			quire_json_string(json, quire_json_get(object, "status"),
		                          QUIRE_FIELD_OF("outcome", "status"), 64, &text);
	if (status == QUIRE_OK && !parse_status(text, &outcome->status))
		return quire_fault(
			json->refusal_out, QUIRE_FORMAT, json->line,
			"outcome.status must be the name of a status, got \"%s\"", text);
	if (status == QUIRE_OK && detail != NULL)
		status = quire_json_int(json, detail, QUIRE_FIELD_OF("outcome", "detail"),
		                        INT64_MIN, INT64_MAX, &outcome->detail);
	if (status == QUIRE_OK)
		status = parse_outside(json, object, outcome);
	if (status == QUIRE_OK)
		status = parse_digest_of(json, object, outcome);
	return status != QUIRE_OK
	               ? status
	               : parse_pages(reader, quire_json_get(object, "pages"), outcome);
}

static enum quire_status parse_times(const struct quire_json *json,
                                     const struct quire_json_value *list,
                                     struct quire_trace_times *times)
{
	int64_t *const to[] = {&times->given_ns, &times->decided_ns, &times->issued_ns};
	uint32_t count = quire_json_size(list);
	const struct quire_json_value *value;
	enum quire_status status = quire_json_array(json, list, QUIRE_FIELD("times"));

	if (status == QUIRE_OK && (count < 2 || count > 3))
		return quire_fault(json->refusal_out, QUIRE_FORMAT, json->line,
		                   "times must be [given, decided] or [given, decided, "
		                   "issued], got %" PRIu32,
		                   count);
	if (status != QUIRE_OK)
		return status;
	times->issued_ns = -1;
	value = quire_json_first(list);
	for (uint32_t i = 0; i < count && status == QUIRE_OK;
	     i++, value = quire_json_next(value))
		status = quire_json_int(json, value, QUIRE_FIELD_AT("times", i, "ns"), 0,
		                        INT64_MAX, to[i]);
	return status;
}

enum quire_status quire_trace_parse_outcome(struct quire_trace_reader *reader,
                                            struct quire_trace_record *record)
{
	const struct quire_json_value *outcome =
		quire_json_get(reader->json.root, "outcome");
	const struct quire_json_value *times = quire_json_get(reader->json.root, "times");
	enum quire_status status = QUIRE_OK;

	record->has_outcome = outcome != NULL;
	record->has_times = times != NULL;
	if (record->has_outcome)
		status = parse_outcome(reader, outcome, &record->outcome);
	if (status == QUIRE_OK && record->has_times)
		status = parse_times(&reader->json, times, &record->times);
	return status;
}
