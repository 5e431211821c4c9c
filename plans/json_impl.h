/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_PLANS_JSON_IMPL_H
#define QUIRE_PLANS_JSON_IMPL_H
/*
 * One line of JSON (RFC 8259), read strictly: every value that is asked for has a type
 * and a range, and a refusal names the line, the field, what would be right and what was
 * there.
 *
 * A line is checked as a whole, in one pass, before anything of it is handed out: it is
 * UTF-8, an object, names stand once in an object, nothing nests deeper than
 * QUIRE_JSON_DEPTH_MAX.  The pass leaves an array of values in the order of the text:
 *
 *   {"do":"open","at":[7,8]}  ->  object, "do", "open", "at", array, 7, 8
 *
 * A value knows how many of them it takes up (`span`), so the one behind it is
 * value + span.  Strings are unescaped and ended with a zero where they stand, in the
 * line; numbers are exact or not taken at all.  The array is kept from line to line: once
 * the longest line was seen, nothing is allocated.  It takes 16 bytes for each value, of
 * which a line has at most half as many as it has bytes.
 *
 * Threads: a struct quire_json is used by one thread at a time.
 */
#include "plans/lines_impl.h"

#include <quire/runtime/limits.h>
#include <quire/runtime/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Arrays and objects open at one place: what readers of any language follow. */
#define QUIRE_JSON_DEPTH_MAX 512

enum quire_json_type {
	QUIRE_JSON_NULL,
	QUIRE_JSON_FALSE,
	QUIRE_JSON_TRUE,
	QUIRE_JSON_INTEGER, /* of 64 bits */
	QUIRE_JSON_WIDE,    /* an integer of more */
	QUIRE_JSON_REAL,    /* with a fraction or an exponent */
	QUIRE_JSON_STRING,
	QUIRE_JSON_ARRAY,
	QUIRE_JSON_OBJECT, /* of pairs: a name, which is a STRING, and a value */
};

struct quire_json_value {
	union {
		int64_t integer;  /* INTEGER */
		const char *text; /* STRING; WIDE and REAL: as they stand, unended */
	};
	/* Bytes of a STRING, WIDE or REAL; elements of an ARRAY; pairs of an OBJECT. */
	uint32_t size;
	uint32_t type : 4;
	uint32_t has_zero : 1; /* a STRING that holds a character U+0000 */
	uint32_t span : 27;    /* values that it takes up, itself included */
};

_Static_assert(sizeof(struct quire_json_value) == 16, "what the memory of a line is");
_Static_assert(QUIRE_TRACE_LINE_MAX / 2 + 2 < 1 << 27, "every span fits");

struct quire_json {
	const struct quire_json_value *root; /* an object; NULL: none */
	int64_t line;
	const char *wide; /* the first number of the line beyond 64 bits; NULL: none */
	const char *text; /* of the line: what columns are counted from */
	struct quire_refusal *refusal_out; /* where refusals go; NULL allowed */

	/* Kept between lines. */
	struct quire_json_value *values;
	size_t values_room;
	uint64_t *names; /* a hash table, for objects of many names */
	size_t names_room;
};

/* The name of a field: "name", "scope.name" or "scope[index]: name". */
struct quire_place {
	const char *scope; /* NULL: none */
	int64_t index;     /* -1: none */
	const char *name;
};

#define QUIRE_FIELD(field_name) (&(const struct quire_place){NULL, -1, (field_name)})
#define QUIRE_FIELD_OF(object, field_name) \
	(&(const struct quire_place){(object), -1, (field_name)})
#define QUIRE_FIELD_AT(list, place_in_list, field_name) \
	(&(const struct quire_place){(list), (place_in_list), (field_name)})

/*
 * quire_json_parse - a line as an object
 * @json:    zeroed before its first line; end it with quire_json_free
 * @line:    borrowed; read last from @lines.  Its text is written to and lent to the
 *           values, which stand until the next parse and the next line
 * Returns:  QUIRE_OK; QUIRE_FORMAT {what, line}: not JSON, not an object, or cut off at
 *           the end of the file; QUIRE_NO_MEMORY.
 * Cost:     O(bytes).
 */
QUIRE_MUST_CHECK enum quire_status quire_json_parse(struct quire_json *json,
                                                    const struct quire_lines *lines,
                                                    const struct quire_line *line,
                                                    struct quire_refusal *refusal_out);

/*
 * quire_json_finish - after all fields were read: was every number exact?
 * Returns:  QUIRE_OK; QUIRE_FORMAT: a number in a field nobody asked for is too large.
 */
QUIRE_MUST_CHECK enum quire_status quire_json_finish(const struct quire_json *json);

/* quire_json_free - harmless when nothing was parsed */
void quire_json_free(struct quire_json *json);

static inline bool quire_json_is(const struct quire_json_value *value,
                                 enum quire_json_type type)
{
	return value != NULL && value->type == type;
}

/* quire_json_size - elements of an array, pairs of an object; 0 of all else, and NULL */
static inline uint32_t quire_json_size(const struct quire_json_value *value)
{
	return value != NULL && value->type >= QUIRE_JSON_ARRAY ? value->size : 0;
}

/*
 * quire_json_first - the first element of an array, the first name of an object
 * quire_json_next - the value behind @value
 * There is one while fewer than quire_json_size were seen; names and values of an object
 * take turns.
 */
static inline const struct quire_json_value *
quire_json_first(const struct quire_json_value *value)
{
	return value + 1;
}

static inline const struct quire_json_value *
quire_json_next(const struct quire_json_value *value)
{
	return value + value->span;
}

/*
 * quire_json_get - the value of a name
 * @object:  NULL, or no object: it has no names
 * Returns:  NULL: there is none.
 * Cost:     O(pairs of @object).
 */
static inline const struct quire_json_value *
quire_json_get(const struct quire_json_value *object, const char *name)
{
	const struct quire_json_value *at;
	size_t size = strlen(name);

	if (!quire_json_is(object, QUIRE_JSON_OBJECT))
		return NULL;
	at = object + 1;
	for (uint32_t i = 0; i < object->size; i++) {
		if (at->size == size && memcmp(at->text, name, size) == 0)
			return at + 1;
		at = quire_json_next(at + 1);
	}
	return NULL;
}

/*
 * quire_json_refuse - @value is not what it must be
 * @value:   NULL: the field is missing
 * @right:   what it must be, in words
 * Returns:  QUIRE_FORMAT {what, line}.
 */
enum quire_status quire_json_refuse(const struct quire_json *json,
                                    const struct quire_json_value *value,
                                    const struct quire_place *place, const char *right);

/* quire_json_refuse_int - fills what quire_json_int refuses with */
void quire_json_refuse_int(const struct quire_json *json,
                           const struct quire_json_value *value,
                           const struct quire_place *place, int64_t min, int64_t max);

/*
 * quire_json_int - an integer in min..max
 * quire_json_bool - true or false
 * quire_json_string - 1..bytes_max bytes of text, none of them zero; lent by the line
 * quire_json_array, quire_json_object - of that type
 * @value:   NULL: the field is missing, which is refused
 * Returns:  QUIRE_OK; QUIRE_FORMAT {what, line, expected, got}.
 */
QUIRE_MUST_CHECK static inline enum quire_status
quire_json_int(const struct quire_json *json, const struct quire_json_value *value,
               const struct quire_place *place, int64_t min, int64_t max, int64_t *out)
{
	if (!quire_json_is(value, QUIRE_JSON_INTEGER) || value->integer < min ||
	    value->integer > max) {
		quire_json_refuse_int(json, value, place, min, max);
		return QUIRE_FORMAT;
	}
	*out = value->integer;
	return QUIRE_OK;
}

QUIRE_MUST_CHECK enum quire_status quire_json_bool(const struct quire_json *json,
                                                   const struct quire_json_value *value,
                                                   const struct quire_place *place,
                                                   bool *out);
QUIRE_MUST_CHECK enum quire_status quire_json_string(const struct quire_json *json,
                                                     const struct quire_json_value *value,
                                                     const struct quire_place *place,
                                                     size_t bytes_max, const char **out);
QUIRE_MUST_CHECK enum quire_status quire_json_array(const struct quire_json *json,
                                                    const struct quire_json_value *value,
                                                    const struct quire_place *place);
QUIRE_MUST_CHECK enum quire_status quire_json_object(const struct quire_json *json,
                                                     const struct quire_json_value *value,
                                                     const struct quire_place *place);

/* What is made of an array, for one line after the other. */
struct quire_json_list {
	void *items; /* to be freed; NULL: none yet */
	size_t room; /* items that fit */
};

/*
 * quire_json_room - room for @count items of @bytes each, the same for all calls
 * @list:    zeroed at first; what it held is not kept
 * Returns:  QUIRE_OK; QUIRE_NO_MEMORY {what, line}: @list is as it was.
 * Cost:     room doubles and is kept: no allocation once the longest list was seen.
 */
QUIRE_MUST_CHECK enum quire_status quire_json_room(const struct quire_json *json,
                                                   struct quire_json_list *list,
                                                   size_t count, size_t bytes);

/*
 * quire_json_numbers - an array of integers 0..max, as int64_t
 * @list:    NULL: the field is missing, which is refused
 * @to:      as for quire_json_room; its items are the numbers
 */
QUIRE_MUST_CHECK enum quire_status quire_json_numbers(const struct quire_json *json,
                                                      const struct quire_json_value *list,
                                                      const char *name, int64_t max,
                                                      struct quire_json_list *to,
                                                      int32_t *num_out);

/* ---- between json.c and json_scan.c ---- */

/* Why a line is no JSON, and where. */
struct quire_json_fault {
	const char *what; /* NULL: no memory */
	const char *name; /* a name that stands twice; NULL: none */
	const char *at;   /* in the line */
};

/*
 * quire_json_scan - check a line that begins with an object and fill json->values
 * @text:    @end is one byte that may be written to
 * Returns:  false {fault_out}.
 */
bool quire_json_scan(struct quire_json *json, char *text, char *end,
                     struct quire_json_fault *fault_out);

/*
 * quire_json_names_unique - do all names of an object stand there once?
 * Returns:  false {fault_out}.
 * Cost:     O(names).
 */
bool quire_json_names_unique(struct quire_json *json,
                             const struct quire_json_value *object,
                             struct quire_json_fault *fault_out);

#endif
