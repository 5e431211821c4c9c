/* SPDX-License-Identifier: MIT */
/* One pass over a line: JSON text to values. */
#include "config.h"

#include "plans/json_impl.h"
#include "plans/utf8_impl.h"

#include <stdlib.h>

#define VALUES_FIRST 4096

/* The value that is open; its `integer` says which one it lies in. */
#define NONE (-1)

/* The byte behind a line is a zero: no part of a string, a number or a word. */
struct scan {
	struct quire_json *json;
	char *at;
	char *end; /* of the line */
	struct quire_json_value *values;
	size_t num_values;
	int64_t open;
	int depth;
	struct quire_json_fault *fault;
};

/* What a value was. */
enum taken {
	TAKEN_WRONG,
	TAKEN_WHOLE,
	TAKEN_OPEN, /* an array or object, and its first element or value follows */
};

static bool fail(struct scan *scan, const char *what, const char *at)
{
	*scan->fault = (struct quire_json_fault){.what = what, .at = at};
	return false;
}

static inline void skip_spaces(struct scan *scan)
{
	while (*scan->at == ' ' || *scan->at == '\t' || *scan->at == '\r' ||
	       *scan->at == '\n')
		scan->at++;
}

static bool grow(struct scan *scan)
{
	struct quire_json *json = scan->json;
	size_t room = json->values_room > 0 ? json->values_room * 2 : VALUES_FIRST;
	struct quire_json_value *values = realloc(json->values, room * sizeof(*values));

	if (values == NULL)
		return fail(scan, NULL, scan->at);
	json->values = scan->values = values;
	json->values_room = room;
	return true;
}

/* A value of the type; NULL: no memory. */
static inline struct quire_json_value *push(struct scan *scan, enum quire_json_type type)
{
	struct quire_json_value *value;

	if (scan->num_values == scan->json->values_room && !grow(scan))
		return NULL;
	value = &scan->values[scan->num_values++];
	value->type = type;
	value->has_zero = 0;
	value->span = 1;
	value->size = 0;
	return value;
}

/* ---- strings ---- */

/* Is the byte one that stands for itself in a string, and a character of its own? */
static inline bool is_plain(char c)
{
	return c != '"' && c != '\\' && (unsigned char)c >= 0x20 &&
	       (unsigned char)c < 0x80;
}

/* Four hexadecimal digits; -1: they are not. */
static int32_t hex4(const char *at)
{
	int32_t value = 0;

	for (int i = 0; i < 4; i++) {
		char c = at[i];
		char low = (char)(c | 0x20);

		if (c >= '0' && c <= '9')
			value = value * 16 + (c - '0');
		else if (low >= 'a' && low <= 'f')
			value = value * 16 + (low - 'a' + 10);
		else
			return -1;
	}
	return value;
}

static char *put_utf8(char *to, int32_t code)
{
	if (code < 0x80) {
		*to++ = (char)code;
		return to;
	}
	if (code < 0x800) {
		*to++ = (char)(0xc0 | code >> 6);
	} else {
		if (code < 0x10000) {
			*to++ = (char)(0xe0 | code >> 12);
		} else {
			*to++ = (char)(0xf0 | code >> 18);
			*to++ = (char)(0x80 | (code >> 12 & 0x3f));
		}
		*to++ = (char)(0x80 | (code >> 6 & 0x3f));
	}
	*to++ = (char)(0x80 | (code & 0x3f));
	return to;
}

/* scan->at: behind "\u". */
static bool unescape_code(struct scan *scan, char **to, bool *zero)
{
	char *start = scan->at - 2;
	int32_t code = hex4(scan->at), low;

	if (code < 0)
		return fail(scan, "\\u wants four hexadecimal digits", start);
	scan->at += 4;
	if (code >= 0xd800 && code <= 0xdfff) {
		low = scan->at[0] == '\\' && scan->at[1] == 'u' ? hex4(scan->at + 2) : -1;
		if (code >= 0xdc00 || low < 0xdc00 || low > 0xdfff)
			return fail(scan, "half of a surrogate pair", start);
		code = 0x10000 + (code - 0xd800) * 0x400 + (low - 0xdc00);
		scan->at += 6;
	}
	*zero |= code == 0;
	*to = put_utf8(*to, code);
	return true;
}

/* scan->at: a backslash.  What it stands for is never longer than the escape. */
static bool unescape(struct scan *scan, char **to, bool *zero)
{
	static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
	char c = scan->at[1];
	const char *place = c != 0 ? strchr(from, c) : NULL;

	if (c == 'u') {
		scan->at += 2;
		return unescape_code(scan, to, zero);
	}
	if (place == NULL)
		return fail(scan, "an unknown escape in a string", scan->at);
	*(*to)++ = into[place - from];
	scan->at += 2;
	return true;
}

/* The rest of a string from its first byte that is not plain, unescaped to @to. */
static bool take_odd_text(struct scan *scan, char **to, bool *zero)
{
	while (*scan->at != '"') {
		int length = 1;

		if (*scan->at == '\\') {
			if (!unescape(scan, to, zero))
				return false;
			continue;
		}
		if ((unsigned char)*scan->at < 0x20)
			return fail(scan,
			            scan->at == scan->end
			                    ? "a string that does not end"
			                    : "a control character in a string",
			            scan->at);
		length = quire_utf8_length(scan->at);
		if (length == 0)
			return fail(scan, "not UTF-8", scan->at);
		memmove(*to, scan->at, (size_t)length);
		*to += length;
		scan->at += length;
	}
	return true;
}

/* scan->at: behind the first quote. */
static inline bool take_string(struct scan *scan)
{
	char *start = scan->at, *end = start;
	struct quire_json_value *value;
	bool zero = false;

	while (is_plain(*end))
		end++;
	scan->at = end;
	if (*end != '"' && !take_odd_text(scan, &end, &zero))
		return false;
	scan->at++; /* the last quote: the zero may fall on it */
	*end = 0;
	value = push(scan, QUIRE_JSON_STRING);
	if (value == NULL)
		return false;
	value->text = start;
	value->size = (uint32_t)(end - start);
	value->has_zero = zero;
	return true;
}

/* ---- numbers and words ---- */

static inline bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool skip_digits(struct scan *scan)
{
	if (!is_digit(*scan->at))
		return fail(scan, "a digit is wanted", scan->at);
	while (is_digit(*scan->at))
		scan->at++;
	return true;
}

/* A number from @start that is no 64-bit integer; scan->at: behind its integer part. */
static bool take_other_number(struct scan *scan, char *start)
{
	struct quire_json_value *value;
	enum quire_json_type type = QUIRE_JSON_WIDE;

	if (*scan->at == '.') {
		type = QUIRE_JSON_REAL;
		scan->at++;
		if (!skip_digits(scan))
			return false;
	}
	if (*scan->at == 'e' || *scan->at == 'E') {
		type = QUIRE_JSON_REAL;
		scan->at++;
		if (*scan->at == '+' || *scan->at == '-')
			scan->at++;
		if (!skip_digits(scan))
			return false;
	}
	if (type == QUIRE_JSON_WIDE && scan->json->wide == NULL)
		scan->json->wide = start;
	value = push(scan, type);
	if (value == NULL)
		return false;
	value->text = start;
	value->size = (uint32_t)(scan->at - start);
	return true;
}

static inline bool take_number(struct scan *scan)
{
	char *start = scan->at, *first, *at = start;
	uint64_t magnitude = 0;
	struct quire_json_value *value;
	bool negative = *at == '-';

	at += negative;
	first = at;
	while (is_digit(*at))
		magnitude = magnitude * 10 + (uint64_t)(*at++ - '0');
	scan->at = at;
	if (at == first)
		return fail(scan, "a digit is wanted", at);
	if (*first == '0' && at - first > 1)
		return fail(scan, "a number that begins with 0", start);
	/* All numbers of 19 digits fit in 64 bits without a sign. */
	if (*at == '.' || *at == 'e' || *at == 'E' || at - first > 19 ||
	    magnitude > (uint64_t)INT64_MAX + negative)
		return take_other_number(scan, start);
	value = push(scan, QUIRE_JSON_INTEGER);
	if (value == NULL)
		return false;
	value->integer = (int64_t)(negative ? 0 - magnitude : magnitude);
	return true;
}

static bool take_word(struct scan *scan)
{
	static const struct {
		const char *word;
		enum quire_json_type type;
	} words[] = {
		{"null", QUIRE_JSON_NULL},
		{"false", QUIRE_JSON_FALSE},
		{"true", QUIRE_JSON_TRUE},
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		size_t length = strlen(words[i].word);

		if (strncmp(scan->at, words[i].word, length) == 0) {
			scan->at += length;
			return push(scan, words[i].type) != NULL;
		}
	}
	return fail(scan, "a value is wanted", scan->at);
}

/* ---- arrays and objects ---- */

/* A name and its colon. */
static inline bool take_name(struct scan *scan)
{
	skip_spaces(scan);
	if (*scan->at != '"')
		return fail(scan, "a name in quotes is wanted", scan->at);
	scan->at++;
	if (!take_string(scan))
		return false;
	skip_spaces(scan);
	if (*scan->at != ':')
		return fail(scan, "a colon is wanted", scan->at);
	scan->at++;
	return true;
}

static inline bool close_value(struct scan *scan)
{
	struct quire_json_value *value = &scan->values[scan->open];

	scan->open = value->integer;
	scan->depth--;
	value->span =
		(uint32_t)(scan->num_values - (size_t)(value - scan->values)) & 0x7ffffff;
	return value->type == QUIRE_JSON_ARRAY || value->size < 2 ||
	       quire_json_names_unique(scan->json, value, scan->fault);
}

/* scan->at: a bracket. */
static inline enum taken take_open(struct scan *scan)
{
	bool object = *scan->at == '{';
	struct quire_json_value *value =
		push(scan, object ? QUIRE_JSON_OBJECT : QUIRE_JSON_ARRAY);

	if (value == NULL)
		return TAKEN_WRONG;
	if (++scan->depth > QUIRE_JSON_DEPTH_MAX) {
		fail(scan, "nested too deep", scan->at);
		return TAKEN_WRONG;
	}
	value->integer = scan->open;
	scan->open = value - scan->values;
	scan->at++;
	skip_spaces(scan);
	if (*scan->at == (object ? '}' : ']')) {
		scan->at++;
		return close_value(scan) ? TAKEN_WHOLE : TAKEN_WRONG;
	}
	return !object || take_name(scan) ? TAKEN_OPEN : TAKEN_WRONG;
}

static inline enum taken take_value(struct scan *scan)
{
	bool good;

	skip_spaces(scan);
	switch (*scan->at) {
	case '{':
	case '[':
		return take_open(scan);
	case '"':
		scan->at++;
		good = take_string(scan);
		break;
	case '-':
	case '0':
	case '1':
	case '2':
	case '3':
	case '4':
	case '5':
	case '6':
	case '7':
	case '8':
	case '9':
		good = take_number(scan);
		break;
	default:
		good = take_word(scan);
		break;
	}
	return good ? TAKEN_WHOLE : TAKEN_WRONG;
}

/* Behind a whole value: ends of what it lies in, or a comma, and then the next name. */
static inline bool take_behind(struct scan *scan)
{
	while (scan->depth > 0) {
		struct quire_json_value *open = &scan->values[scan->open];
		bool object = open->type == QUIRE_JSON_OBJECT;

		open->size++;
		skip_spaces(scan);
		if (*scan->at == ',') {
			scan->at++;
			return !object || take_name(scan);
		}
		if (*scan->at != (object ? '}' : ']'))
			return fail(scan,
			            object ? "a comma or } is wanted"
			                   : "a comma or ] is wanted",
			            scan->at);
		scan->at++;
		if (!close_value(scan))
			return false;
	}
	return true;
}

bool quire_json_scan(struct quire_json *json, char *text, char *end,
                     struct quire_json_fault *fault_out)
{
	struct scan scan = {.json = json,
	                    .at = text,
	                    .end = end,
	                    .values = json->values,
	                    .open = NONE,
	                    .fault = fault_out};
	enum taken taken;

	*end = 0;
	do {
		taken = take_value(&scan);
		if (taken == TAKEN_WRONG || (taken == TAKEN_WHOLE && !take_behind(&scan)))
			return false;
	} while (scan.depth > 0);
	skip_spaces(&scan);
	if (scan.at != end)
		return fail(&scan, "nothing may stand behind it", scan.at);
	return true;
}
