/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "plans/json_impl.h"

#include "plans/fault_impl.h"

#include <inttypes.h>
#include <stdio.h>

/* Bytes of a field's name or of a value in a text. */
#define NAME_BYTES 128

enum quire_status quire_json_parse(struct quire_json *json,
                                   const struct quire_lines *lines,
                                   const struct quire_line *line,
                                   struct quire_refusal *refusal_out)
{
	json_error_t error;
	json_t *root =
		json_loadb(line->text, line->length, JSON_REJECT_DUPLICATES, &error);

	*json = (struct quire_json){.line = lines->line, .refusal_out = refusal_out};
	if (root == NULL && json_error_code(&error) == json_error_numeric_overflow) {
		json->wide = true;
		root = json_loadb(line->text, line->length,
		                  JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL,
		                  &error);
	}
	if (root == NULL && json_error_code(&error) == json_error_out_of_memory)
		return quire_fault(refusal_out, QUIRE_NO_MEMORY, json->line,
		                   "no memory for a line of %zu bytes", line->length);
	if (root == NULL && !line->whole)
		return quire_fault(refusal_out, QUIRE_FORMAT, json->line,
		                   "truncated: the file ends in the middle of this line");
	if (root == NULL)
		return quire_fault(refusal_out, QUIRE_FORMAT, json->line,
		                   "must be one JSON object: %s at column %d", error.text,
		                   error.column);
	if (!json_is_object(root)) {
		json_decref(root);
		return quire_fault(refusal_out, QUIRE_FORMAT, json->line,
		                   "must be one JSON object");
	}
	json->root = root;
	return QUIRE_OK;
}

enum quire_status quire_json_finish(const struct quire_json *json)
{
	if (!json->wide)
		return QUIRE_OK;
	return quire_fault(json->refusal_out, QUIRE_FORMAT, json->line,
	                   "a number is too large for 64 bits");
}

void quire_json_drop(struct quire_json *json)
{
	json_decref(json->root);
	json->root = NULL;
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

static void name_value(const struct quire_json *json, const json_t *value, char *name)
{
	if (value == NULL)
		snprintf(name, NAME_BYTES, "nothing");
	else if (json_is_string(value))
		snprintf(name, NAME_BYTES, "the string \"%.40s\"",
		         json_string_value(value));
	else if (json_is_integer(value))
		snprintf(name, NAME_BYTES, "%" JSON_INTEGER_FORMAT,
		         json_integer_value(value));
	else if (json_is_real(value))
		snprintf(name, NAME_BYTES, json->wide ? "%.0f" : "the real number %.17g",
		         json_real_value(value));
	else if (json_is_boolean(value))
		snprintf(name, NAME_BYTES, json_is_true(value) ? "true" : "false");
	else
		snprintf(name, NAME_BYTES,
		         json_is_null(value)    ? "null"
		         : json_is_array(value) ? "an array"
		                                : "an object");
}

static enum quire_status refuse_value(const struct quire_json *json, const json_t *value,
                                      const struct quire_place *place, const char *right)
{
	char name[NAME_BYTES], got[NAME_BYTES];

	name_place(place, name);
	name_value(json, value, got);
	return quire_fault(json->refusal_out, QUIRE_FORMAT, json->line,
	                   "%s must be %s, got %s", name, right, got);
}

/* In a wide line all numbers are reals; the line is refused in the end anyway. */
static bool integer_of(const struct quire_json *json, const json_t *value, int64_t *out)
{
	double real = json_real_value(value);

	if (json_is_integer(value)) {
		*out = json_integer_value(value);
		return true;
	}
	if (!json->wide || !json_is_real(value) || !(real > -9e18 && real < 9e18))
		return false;
	*out = (int64_t)real;
	return true;
}

enum quire_status quire_json_int(const struct quire_json *json, const json_t *value,
                                 const struct quire_place *place, int64_t min,
                                 int64_t max, int64_t *out)
{
	enum quire_status status;
	char right[NAME_BYTES];
	int64_t got = 0;
	bool integer = integer_of(json, value, &got);

	if (integer && got >= min && got <= max) {
		*out = got;
		return QUIRE_OK;
	}
	snprintf(right, sizeof(right), "an integer %" PRId64 "..%" PRId64, min, max);
	status = refuse_value(json, value, place, right);
	if (integer && json->refusal_out != NULL) {
		json->refusal_out->expected = got < min ? min : max;
		json->refusal_out->got = got;
	}
	return status;
}

enum quire_status quire_json_bool(const struct quire_json *json, const json_t *value,
                                  const struct quire_place *place, bool *out)
{
	if (!json_is_boolean(value))
		return refuse_value(json, value, place, "true or false");
	*out = json_is_true(value);
	return QUIRE_OK;
}

enum quire_status quire_json_string(const struct quire_json *json, const json_t *value,
                                    const struct quire_place *place, size_t bytes_max,
                                    const char **out)
{
	char right[NAME_BYTES];

	if (json_is_string(value) && json_string_length(value) >= 1 &&
	    json_string_length(value) <= bytes_max) {
		*out = json_string_value(value);
		return QUIRE_OK;
	}
	snprintf(right, sizeof(right), "a string of 1..%zu bytes", bytes_max);
	return refuse_value(json, value, place, right);
}

enum quire_status quire_json_array(const struct quire_json *json, const json_t *value,
                                   const struct quire_place *place)
{
	return json_is_array(value) ? QUIRE_OK
	                            : refuse_value(json, value, place, "an array");
}

enum quire_status quire_json_object(const struct quire_json *json, const json_t *value,
                                    const struct quire_place *place)
{
	return json_is_object(value) ? QUIRE_OK
	                             : refuse_value(json, value, place, "an object");
}
