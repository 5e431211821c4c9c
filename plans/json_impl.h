/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_PLANS_JSON_IMPL_H
#define QUIRE_PLANS_JSON_IMPL_H
/*
 * One line of JSON, read strictly: every value that is asked for has a type and a range,
 * and a refusal names the line, the field, what would be right and what was there.
 */
#include "plans/lines_impl.h"

#include <quire/runtime/status.h>

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct quire_json {
	json_t *root; /* an object; NULL: none */
	int64_t line;
	bool wide; /* some number is too large for an integer: all numbers are reals */
	struct quire_refusal *refusal_out; /* where refusals go; NULL allowed */
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
 * @line:    borrowed; read last from @lines
 * Returns:  QUIRE_OK: end it with quire_json_drop; QUIRE_FORMAT: not JSON, not an object,
 *           or cut off at the end of the file; QUIRE_NO_MEMORY.
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

/* quire_json_drop - end a parsed line; harmless when there is none */
void quire_json_drop(struct quire_json *json);

/*
 * quire_json_int - an integer in min..max
 * quire_json_bool - true or false
 * quire_json_string - 1..bytes_max bytes of text, lent by the object
 * quire_json_array, quire_json_object - of that type
 * @value:   NULL: the field is missing, which is refused
 * Returns:  QUIRE_OK; QUIRE_FORMAT {what, line, expected, got}.
 */
QUIRE_MUST_CHECK enum quire_status quire_json_int(const struct quire_json *json,
                                                  const json_t *value,
                                                  const struct quire_place *place,
                                                  int64_t min, int64_t max, int64_t *out);
QUIRE_MUST_CHECK enum quire_status quire_json_bool(const struct quire_json *json,
                                                   const json_t *value,
                                                   const struct quire_place *place,
                                                   bool *out);
QUIRE_MUST_CHECK enum quire_status quire_json_string(const struct quire_json *json,
                                                     const json_t *value,
                                                     const struct quire_place *place,
                                                     size_t bytes_max, const char **out);
QUIRE_MUST_CHECK enum quire_status quire_json_array(const struct quire_json *json,
                                                    const json_t *value,
                                                    const struct quire_place *place);
QUIRE_MUST_CHECK enum quire_status quire_json_object(const struct quire_json *json,
                                                     const json_t *value,
                                                     const struct quire_place *place);

#endif
