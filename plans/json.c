/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "plans/json_impl.h"

#include "plans/fault_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Bytes of a field's name or of a value in a text. */
#define NAME_BYTES 128

/* Bytes of a string or a number in a text. */
#define SHOWN_BYTES 40

/* Elements of the first room for a list. */
#define ROOM_FIRST 64

/* How much of a text to show: whole characters. */
static int shown(const char *text, size_t size)
{
	int length = size < SHOWN_BYTES ? (int)size : SHOWN_BYTES;

	while (length > 0 && (size_t)length < size && (text[length] & 0xc0) == 0x80)
		length--;
	return length;
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static enum quire_status refuse_line(const struct quire_json *json,
                                     const struct quire_line *line,
                                     const struct quire_json_fault *fault)
{
	int64_t column = fault->at - line->text + 1;

	if (fault->what == NULL)
		return quire_fault(json->refusal_out, QUIRE_NO_MEMORY, json->line,
		                   "no memory for a line of %zu bytes", line->length);
	if (!line->whole)
		return quire_fault(json->refusal_out, QUIRE_FORMAT, json->line,
		                   "truncated: the file ends in the middle of this line");
	if (fault->name != NULL)
		return quire_fault(json->refusal_out, QUIRE_FORMAT, json->line,
		                   "must be one JSON object: %s \"%.*s\" at column "
		                   "%" PRId64,
		                   fault->what, shown(fault->name, strlen(fault->name)),
		                   fault->name, column);
	return quire_fault(json->refusal_out, QUIRE_FORMAT, json->line,
	                   "must be one JSON object: %s at column %" PRId64, fault->what,
	                   column);
}

enum quire_status quire_json_parse(struct quire_json *json,
                                   const struct quire_lines *lines,
                                   const struct quire_line *line,
                                   struct quire_refusal *refusal_out)
{
	struct quire_json_fault fault;
	size_t spaces = 0;

	json->root = NULL;
	json->line = lines->line;
	json->wide = NULL;
	json->text = line->text;
	json->refusal_out = refusal_out;
	while (spaces < line->length && is_space(line->text[spaces]))
		spaces++;
	fault = (struct quire_json_fault){.what = "an object is wanted",
	                                  .at = line->text + spaces};
	if (spaces < line->length && line->text[spaces] != '{')
		return quire_fault(refusal_out, QUIRE_FORMAT, json->line,
		                   "must be one JSON object, at column %zu", spaces + 1);
	if (spaces == line->length || !quire_json_scan(json, line->text + spaces,
	                                               line->text + line->length, &fault))
		return refuse_line(json, line, &fault);
	json->root = json->values;
	return QUIRE_OK;
}

enum quire_status quire_json_finish(const struct quire_json *json)
{
	if (json->wide == NULL)
		return QUIRE_OK;
	return quire_fault(json->refusal_out, QUIRE_FORMAT, json->line,
	                   "a number is too large for 64 bits at column %td",
	                   json->wide - json->text + 1);
}

void quire_json_free(struct quire_json *json)
{
	free(json->values);
	free(json->names);
	*json = (struct quire_json){.root = NULL};
}

static void name_place(const struct quire_place *place, char *name)
{
	if (place->scope == NULL)
		snprintf(name, NAME_BYTES, "%s", place->name);
	else if (place->index < 0)
		snprintf(name, NAME_BYTES, "%s.%s", place->scope, place->name);
	else
		snprintf(name, NAME_BYTES, "%s[%" PRId64 "]: %s", place->scope,
		         place->index, place->name);
}

static void name_value(const struct quire_json_value *value, char *name)
{
	static const char *const words[] = {
		[QUIRE_JSON_NULL] = "null",        [QUIRE_JSON_FALSE] = "false",
		[QUIRE_JSON_TRUE] = "true",        [QUIRE_JSON_ARRAY] = "an array",
		[QUIRE_JSON_OBJECT] = "an object",
	};

	if (value == NULL)
		snprintf(name, NAME_BYTES, "nothing");
	else if (value->type == QUIRE_JSON_STRING)
		snprintf(name, NAME_BYTES, "the string \"%.*s\"",
		         shown(value->text, value->size), value->text);
	else if (value->type == QUIRE_JSON_INTEGER)
		snprintf(name, NAME_BYTES, "%" PRId64, value->integer);
	else if (value->type == QUIRE_JSON_WIDE || value->type == QUIRE_JSON_REAL)
		snprintf(name, NAME_BYTES, "%s%.*s",
		         value->type == QUIRE_JSON_REAL ? "the real number " : "",
		         shown(value->text, value->size), value->text);
	else
		snprintf(name, NAME_BYTES, "%s", words[value->type]);
}

enum quire_status quire_json_refuse(const struct quire_json *json,
                                    const struct quire_json_value *value,
                                    const struct quire_place *place, const char *right)
{
	char name[NAME_BYTES], got[NAME_BYTES];

	name_place(place, name);
	name_value(value, got);
	return quire_fault(json->refusal_out, QUIRE_FORMAT, json->line,
	                   "%s must be %s, got %s", name, right, got);
}

void quire_json_refuse_int(const struct quire_json *json,
                           const struct quire_json_value *value,
                           const struct quire_place *place, int64_t min, int64_t max)
{
	char right[NAME_BYTES];

	snprintf(right, sizeof(right), "an integer %" PRId64 "..%" PRId64, min, max);
	quire_json_refuse(json, value, place, right);
	if (quire_json_is(value, QUIRE_JSON_INTEGER) && json->refusal_out != NULL) {
		json->refusal_out->expected = value->integer < min ? min : max;
		json->refusal_out->got = value->integer;
	}
}

enum quire_status quire_json_bool(const struct quire_json *json,
                                  const struct quire_json_value *value,
                                  const struct quire_place *place, bool *out)
{
	if (!quire_json_is(value, QUIRE_JSON_TRUE) &&
	    !quire_json_is(value, QUIRE_JSON_FALSE))
		return quire_json_refuse(json, value, place, "true or false");
	*out = value->type == QUIRE_JSON_TRUE;
	return QUIRE_OK;
}

enum quire_status quire_json_string(const struct quire_json *json,
                                    const struct quire_json_value *value,
                                    const struct quire_place *place, size_t bytes_max,
                                    const char **out)
{
	char right[NAME_BYTES];
	bool zero = quire_json_is(value, QUIRE_JSON_STRING) && value->has_zero;

	if (quire_json_is(value, QUIRE_JSON_STRING) && !zero && value->size >= 1 &&
	    value->size <= bytes_max) {
		*out = value->text;
		return QUIRE_OK;
	}
	snprintf(right, sizeof(right), "a string of 1..%zu bytes%s", bytes_max,
	         zero ? ", none of them zero" : "");
	return quire_json_refuse(json, value, place, right);
}

enum quire_status quire_json_array(const struct quire_json *json,
                                   const struct quire_json_value *value,
                                   const struct quire_place *place)
{
	return quire_json_is(value, QUIRE_JSON_ARRAY)
	               ? QUIRE_OK
	               : quire_json_refuse(json, value, place, "an array");
}

enum quire_status quire_json_object(const struct quire_json *json,
                                    const struct quire_json_value *value,
                                    const struct quire_place *place)
{
	return quire_json_is(value, QUIRE_JSON_OBJECT)
	               ? QUIRE_OK
	               : quire_json_refuse(json, value, place, "an object");
}

enum quire_status quire_json_room(const struct quire_json *json,
                                  struct quire_json_list *list, size_t count,
                                  size_t bytes)
{
	size_t room = list->room > 0 ? list->room : ROOM_FIRST;
	void *grown;

	if (count <= list->room)
		return QUIRE_OK;
	while (room < count)
		room *= 2;
	grown = malloc(room * bytes);
	if (grown == NULL)
		return quire_fault(json->refusal_out, QUIRE_NO_MEMORY, json->line,
		                   "no memory for a list of %zu", count);
	free(list->items);
	list->items = grown;
	list->room = room;
	return QUIRE_OK;
}

enum quire_status quire_json_numbers(const struct quire_json *json,
                                     const struct quire_json_value *list,
                                     const char *name, int64_t max,
                                     struct quire_json_list *to, int32_t *num_out)
{
	uint32_t count = quire_json_size(list);
	const struct quire_json_value *value;
	int64_t *numbers;
	enum quire_status status = quire_json_array(json, list, QUIRE_FIELD(name));

	if (status == QUIRE_OK)
		status = quire_json_room(json, to, count, sizeof(*numbers));
	if (status != QUIRE_OK)
		return status;
	numbers = to->items;
	value = quire_json_first(list);
	for (uint32_t i = 0; i < count && status == QUIRE_OK;
	     i++, value = quire_json_next(value))
		status = quire_json_int(json, value, QUIRE_FIELD_AT(name, i, "number"), 0,
		                        max, &numbers[i]);
	*num_out = (int32_t)count;
	return status;
}
