/* SPDX-License-Identifier: MIT */
/* What a recorder wrote beside a command: its outcome and its times. */
#include "config.h"

#include "plans/trace_impl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* Room grows by doubling and is kept: no allocation once the longest list was seen. */
static enum quire_status grow_numbers(const struct quire_json *json,
                                      struct quire_trace_numbers *numbers, size_t count)
{
	size_t room = numbers->room > 0 ? numbers->room : 64;
	int64_t *grown;

	if (count <= numbers->room)
		return QUIRE_OK;
	while (room < count)
		room *= 2;
	grown = realloc(numbers->numbers, room * sizeof(*grown));
	if (grown == NULL)
		return quire_fault(json->refusal_out, QUIRE_NO_MEMORY, json->line,
		                   "no memory for a list of %zu numbers", count);
	numbers->numbers = grown;
	numbers->room = room;
	return QUIRE_OK;
}

enum quire_status
quire_trace_parse_numbers(const struct quire_json *json, const json_t *list,
                          const struct quire_trace_number_list *about,
                          struct quire_trace_numbers *numbers, int32_t *num_out)
{
	size_t count = json_array_size(list);
	enum quire_status status = quire_json_array(json, list, QUIRE_FIELD(about->name));

	if (status == QUIRE_OK)
		status = grow_numbers(json, numbers, count);
	for (size_t i = 0; i < count && status == QUIRE_OK; i++)
		status = quire_json_int(
			json, json_array_get(list, i),
			QUIRE_FIELD_AT(about->name, (int64_t)i, "number"), 0, about->max,
			&numbers->numbers[i]);
	*num_out = (int32_t)count;
	return status;
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

/* The pages that a step took; a 32-bit list, made of the numbers read. */
static enum quire_status parse_pages(struct quire_trace_reader *reader,
                                     const json_t *list,
                                     struct quire_trace_outcome *outcome)
{
	int64_t last = reader->header.num_pages - 1;
	int32_t *pages;
	enum quire_status status;

	if (list == NULL)
		return QUIRE_OK;
	status = quire_trace_parse_numbers(
		&reader->json, list,
		&(const struct quire_trace_number_list){"outcome.pages", last},
		&reader->pages, &outcome->num_pages);
	if (status != QUIRE_OK)
		return status;
	pages = (int32_t *)reader->pages.numbers;
	for (int32_t i = 0; i < outcome->num_pages; i++)
		pages[i] = (int32_t)reader->pages.numbers[i];
	outcome->has_pages = true;
	outcome->pages = pages;
	return QUIRE_OK;
}

static enum quire_status parse_outside(const struct quire_json *json,
                                       const json_t *object,
                                       struct quire_trace_outcome *outcome)
{
	const json_t *value = json_object_get(object, "outside");

	if (value == NULL)
		return QUIRE_OK;
	return quire_json_bool(json, value, QUIRE_FIELD_OF("outcome", "outside"),
	                       &outcome->is_outside);
}

static enum quire_status parse_digest_of(const struct quire_json *json,
                                         const json_t *object,
                                         struct quire_trace_outcome *outcome)
{
	const json_t *digest = json_object_get(object, "digest");

	if (digest == NULL)
		return QUIRE_OK;
	outcome->has_digest = true;
	if (json_is_string(digest) &&
	    parse_digest(json_string_value(digest), &outcome->digest))
		return QUIRE_OK;
	return quire_fault(json->refusal_out, QUIRE_FORMAT, json->line,
	                   "outcome.digest must be a string of 16 digits 0-9a-f");
}

static enum quire_status parse_outcome(struct quire_trace_reader *reader,
                                       const json_t *object,
                                       struct quire_trace_outcome *outcome)
{
	const struct quire_json *json = &reader->json;
	const json_t *detail = json_object_get(object, "detail");
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
	if (status == QUIRE_OK)
		status = parse_outside(json, object, outcome);
	if (status == QUIRE_OK)
		status = parse_digest_of(json, object, outcome);
	return status != QUIRE_OK
	               ? status
	               : parse_pages(reader, json_object_get(object, "pages"), outcome);
}

static enum quire_status parse_times(const struct quire_json *json, const json_t *list,
                                     struct quire_trace_times *times)
{
	int64_t *const to[] = {&times->given_ns, &times->decided_ns, &times->issued_ns};
	size_t count = json_array_size(list);
	enum quire_status status = quire_json_array(json, list, QUIRE_FIELD("times"));

	if (status == QUIRE_OK && (count < 2 || count > 3))
		return quire_fault(json->refusal_out, QUIRE_FORMAT, json->line,
		                   "times must be [given, decided] or [given, decided, "
		                   "issued], got %zu",
		                   count);
	times->issued_ns = -1;
	for (size_t i = 0; i < count && status == QUIRE_OK; i++)
		status = quire_json_int(json, json_array_get(list, i),
		                        QUIRE_FIELD_AT("times", (int64_t)i, "ns"), 0,
		                        INT64_MAX, to[i]);
	return status;
}

enum quire_status quire_trace_parse_outcome(struct quire_trace_reader *reader,
                                            struct quire_trace_record *record)
{
	const json_t *outcome = json_object_get(reader->json.root, "outcome");
	const json_t *times = json_object_get(reader->json.root, "times");
	enum quire_status status = QUIRE_OK;

	record->has_outcome = outcome != NULL;
	record->has_times = times != NULL;
	if (record->has_outcome)
		status = parse_outcome(reader, outcome, &record->outcome);
	if (status == QUIRE_OK && record->has_times)
		status = parse_times(&reader->json, times, &record->times);
	return status;
}
