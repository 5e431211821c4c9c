/* SPDX-License-Identifier: MIT */
/* The reader of a line of JSON, beside jansson and at its bounds. */
#include "config.h"

#include "plans/json_impl.h"
#include "random_plan.h"
#include "tests/run_suite.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#define LINE_BYTES 4096

/* A line in memory of its own: nothing behind it but the byte that may be written to. */
struct parsed {
	char *text;
	struct quire_json json;
	struct quire_refusal refusal;
	enum quire_status status;
};

static void parse(struct parsed *parsed, const char *text, size_t length, bool whole)
{
	struct quire_lines lines = {.line = 7};
	struct quire_line line = {.length = length, .whole = whole};

	parsed->text = malloc(length + 1);
	ck_assert_ptr_nonnull(parsed->text);
	memcpy(parsed->text, text, length);
	line.text = parsed->text;
	parsed->status = quire_json_parse(&parsed->json, &lines, &line, &parsed->refusal);
}

static void drop(struct parsed *parsed)
{
	free(parsed->text);
	quire_json_free(&parsed->json);
}

/* ---- beside jansson ---- */

/* Text that grows; what does not fit is left out, which makes the line a broken one. */
struct text {
	char bytes[LINE_BYTES];
	size_t length;
};

static void add(struct text *text, const char *piece)
{
	size_t length = strlen(piece);

	if (text->length + length > LINE_BYTES)
		return;
	memcpy(text->bytes + text->length, piece, length);
	text->length += length;
}

static const char *pick(const char *const *list, size_t num, uint64_t *s)
{
	return list[random_in(s, 0, (int32_t)num - 1)];
}

#define PICK(list, s) pick((list), sizeof(list) / sizeof((list)[0]), (s))

static void add_spaces(struct text *text, uint64_t *s)
{
	static const char *const spaces[] = {"", "", "", "", " ", "\t", "\r", " \t\r "};

	add(text, PICK(spaces, s));
}

static void add_string(struct text *text, uint64_t *s)
{
	static const char *const pieces[] = {
		"a",
		"main",
		"\\n",
		"\\\"",
		"\\\\",
		"\\/",
		"\\u0041",
		"\\u00e9",
		"\\u20AC",
		"\\ud83d\\udcc4",
		"\\u001",
		"\\u0000",
		"\\ud83d",
		"\\udcc4",
		"\\x",
		"\x7f",
		"\xc3\xa9",
		"\xe2\x82\xac",
		"\xf0\x9f\x93\x84",
		"\xc0\x80",
		"\xed\xa0\x80",
		"\xf4\x90\x80\x80",
		"\xff",
		"\x1f",
		"/{}[]:,",
	};
	/* The odd ones are rare, or no line would be whole. */
	int num = random_in(s, 0, 3);

	add(text, "\"");
	for (int i = 0; i < num; i++)
		add(text, random_in(s, 0, 19) == 0 ? PICK(pieces, s)
		                                   : pieces[random_in(s, 0, 9)]);
	add(text, "\"");
}

static void add_leaf(struct text *text, uint64_t *s)
{
	static const char *const leaves[] = {
		"0",
		"-0",
		"7",
		"-12",
		"12345678",
		"true",
		"false",
		"null",
		"1.5",
		"-0.25e-3",
		"1E5",
		"2e+2",
		"9223372036854775807",
		"-9223372036854775808",
		"\"\"",
		"9223372036854775808",
		"-9223372036854775809",
		"99999999999999999999999",
		"18446744073709551616",
		"01",
		"-",
		"1.",
		".5",
		"1e",
		"+1",
		"tru",
		"nul",
		"Infinity",
		"1.5.5",
		"--1",
		"0x1",
	};

	if (random_in(s, 0, 2) == 0)
		add_string(text, s);
	else
		add(text, random_in(s, 0, 29) == 0 ? PICK(leaves, s)
		                                   : leaves[random_in(s, 0, 14)]);
}

static void add_value(struct text *text, int depth, uint64_t *s);

static void add_pair(struct text *text, int depth, uint64_t *s)
{
	static const char *const names[] = {"\"a\"", "\"b\"", "\"\\u0061\"", "\"\"",
	                                    "\"do\""};

	add_spaces(text, s);
	if (random_in(s, 0, 3) > 0)
		add_string(text, s);
	else
		add(text, PICK(names, s));
	add_spaces(text, s);
	add(text, ":");
	add_value(text, depth, s);
}

static void add_object(struct text *text, int depth, uint64_t *s)
{
	int num = random_in(s, 0, 30) == 0 ? random_in(s, 15, 40) : random_in(s, 0, 3);
	char name[32];

	add(text, "{");
	for (int i = 0; i < num; i++) {
		add(text, i > 0 ? "," : "");
		if (num < 4) {
			add_pair(text, depth, s);
			continue;
		}
		/* Many names: one of so many of them twice. */
		snprintf(name, sizeof(name),
		         "\"n%d\":", random_in(s, 0, 49) == 0 ? 0 : i);
		add(text, name);
		add_leaf(text, s);
	}
	add_spaces(text, s);
	add(text, "}");
}

static void add_value(struct text *text, int depth, uint64_t *s)
{
	int kind = depth > 0 ? random_in(s, 0, 5) : 5;
	int num = random_in(s, 0, 3);

	add_spaces(text, s);
	if (kind == 0) {
		add_object(text, depth - 1, s);
	} else if (kind == 1) {
		add(text, "[");
		for (int i = 0; i < num; i++) {
			add(text, i > 0 ? "," : "");
			add_value(text, depth - 1, s);
		}
		add_spaces(text, s);
		add(text, "]");
	} else {
		add_leaf(text, s);
	}
	add_spaces(text, s);
}

/* One byte less, more or other, or a piece twice. */
static void mutate(struct text *text, uint64_t *s)
{
	static const char bytes[] =
		"{}[]:,\"\\ 0123456789-+.eEtrufalsn/b\x01\x80\xc3\xe2";
	size_t at, rest;

	if (text->length == 0 || text->length + 8 > LINE_BYTES)
		return;
	at = (size_t)random_in(s, 0, (int32_t)text->length - 1);
	rest = text->length - at;
	switch (random_in(s, 0, 3)) {
	case 0:
		memmove(text->bytes + at, text->bytes + at + 1, rest - 1);
		text->length--;
		break;
	case 1:
		memmove(text->bytes + at + 1, text->bytes + at, rest);
		text->length++;
		/* fall through */
	case 2:
		text->bytes[at] = bytes[random_in(s, 0, sizeof(bytes) - 2)];
		break;
	default:
		rest = rest < 8 ? rest : 8;
		memmove(text->bytes + at + rest, text->bytes + at, text->length - at);
		text->length += rest;
		break;
	}
}

static bool same_value(const struct quire_json_value *ours, const json_t *theirs)
{
	switch (json_typeof(theirs)) {
	case JSON_NULL:
		return ours->type == QUIRE_JSON_NULL;
	case JSON_TRUE:
		return ours->type == QUIRE_JSON_TRUE;
	case JSON_FALSE:
		return ours->type == QUIRE_JSON_FALSE;
	case JSON_INTEGER:
		return ours->type == QUIRE_JSON_INTEGER &&
		       ours->integer == json_integer_value(theirs);
	case JSON_REAL:
		return ours->type == QUIRE_JSON_REAL &&
		       strtod(ours->text, NULL) == json_real_value(theirs);
	case JSON_STRING:
		return ours->type == QUIRE_JSON_STRING &&
		       ours->size == json_string_length(theirs) &&
		       ours->text[ours->size] == 0 &&
		       memcmp(ours->text, json_string_value(theirs), ours->size) == 0 &&
		       ours->has_zero == (memchr(ours->text, 0, ours->size) != NULL);
	case JSON_ARRAY:
	case JSON_OBJECT:
		break;
	}
	return false;
}

/* The same tree?  Every value knows where the one behind it is. */
static bool same_tree(const struct quire_json_value *ours, json_t *theirs)
{
	const struct quire_json_value *at = quire_json_first(ours);
	const char *name;
	json_t *value;
	size_t i;

	if (json_is_array(theirs)) {
		if (ours->type != QUIRE_JSON_ARRAY ||
		    ours->size != json_array_size(theirs))
			return false;
		json_array_foreach(theirs, i, value)
		{
			if (!same_tree(at, value))
				return false;
			at = quire_json_next(at);
		}
		return at == quire_json_next(ours);
	}
	if (!json_is_object(theirs))
		return ours->span == 1 && same_value(ours, theirs);
	if (ours->type != QUIRE_JSON_OBJECT || ours->size != json_object_size(theirs))
		return false;
	json_object_foreach(theirs, name, value)
	{
		if (at->type != QUIRE_JSON_STRING || at->size != strlen(name) ||
		    memcmp(at->text, name, at->size) != 0 ||
		    quire_json_get(ours, name) != at + 1 || !same_tree(at + 1, value))
			return false;
		at = quire_json_next(at + 1);
	}
	return at == quire_json_next(ours);
}

/* Where the two differ on purpose: jansson cannot have a name that holds a character
 * zero, nor a real number beyond a double, whose text is all that we keep.  (A byte zero,
 * which jansson drops behind a number, is in no line here; a test below has it.) */
static bool differs_on_purpose(const json_error_t *error)
{
	return strstr(error->text, "NUL byte in object key") != NULL ||
	       strstr(error->text, "real number overflow") != NULL;
}

static void compare(const struct text *text, int64_t *num_good, int64_t *num_bad)
{
	static const size_t flags = JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL;
	struct parsed parsed = {.status = QUIRE_OK};
	json_error_t error;
	json_t *theirs = json_loadb(text->bytes, text->length, flags, &error);
	bool ours;

	parse(&parsed, text->bytes, text->length, true);
	ours = parsed.status == QUIRE_OK && quire_json_finish(&parsed.json) == QUIRE_OK;
	if (theirs != NULL || !differs_on_purpose(&error))
		ck_assert_msg(ours == json_is_object(theirs), "%s by us: %.*s (%s)",
		              ours ? "taken" : "refused", (int)text->length, text->bytes,
		              ours ? error.text : parsed.refusal.what);
	if (ours && theirs != NULL)
		ck_assert_msg(same_tree(parsed.json.root, theirs), "other values: %.*s",
		              (int)text->length, text->bytes);
	*num_good += ours;
	*num_bad += !ours;
	json_decref(theirs);
	drop(&parsed);
}

START_TEST(lines_are_taken_and_refused_as_jansson_does)
{
	int64_t num_good = 0, num_bad = 0;
	uint64_t s = 5;

	for (int i = 0; i < 20000; i++) {
		struct text text = {.length = 0};
		int num = random_in(&s, 0, 4);

		add_spaces(&text, &s);
		add_object(&text, 4, &s);
		add_spaces(&text, &s);
		compare(&text, &num_good, &num_bad);
		for (int m = 0; m < num; m++) {
			mutate(&text, &s);
			compare(&text, &num_good, &num_bad);
		}
	}
	/* Both sorts are there. */
	ck_assert_int_gt(num_good, 15000);
	ck_assert_int_gt(num_bad, 15000);
}
END_TEST

/* ---- what is wrong, and where ---- */

static const struct {
	const char *line, *what;
} faults[] = {
	{"{\"a\" 1}", "must be one JSON object: a colon is wanted at column 6"},
	{"{\"a\":1,}", "a name in quotes is wanted at column 8"},
	{"{a:1}", "a name in quotes is wanted at column 2"},
	{"{\"a\":}", "a value is wanted at column 6"},
	{"{\"a\":nil}", "a value is wanted at column 6"},
	{"{\"a\":[1,]}", "a value is wanted at column 9"},
	{"{\"a\":[1 2]}", "a comma or ] is wanted at column 9"},
	{"{\"a\":[1}", "a comma or ] is wanted at column 8"},
	{"{\"a\":1]", "a comma or } is wanted at column 7"},
	{"{\"a\":1", "a comma or } is wanted at column 7"},
	{"{\"a\":01}", "a number that begins with 0 at column 6"},
	{"{\"a\":-}", "a digit is wanted at column 7"},
	{"{\"a\":1.}", "a digit is wanted at column 8"},
	{"{\"a\":1e+}", "a digit is wanted at column 9"},
	{"{\"a\":\"x", "a string that does not end at column 8"},
	{"{\"a\":\"x\ty\"}", "a control character in a string at column 8"},
	{"{\"a\":\"\\x\"}", "an unknown escape in a string at column 7"},
	{"{\"a\":\"\\u12g4\"}", "\\u wants four hexadecimal digits at column 7"},
	{"{\"a\":\"\\ud800\"}", "half of a surrogate pair at column 7"},
	{"{\"a\":\"\\udc00\\ud800\"}", "half of a surrogate pair at column 7"},
	{"{\"a\":\"\\ud800\\u0041\"}", "half of a surrogate pair at column 7"},
	{"{\"a\":\"\xc3(\"}", "not UTF-8 at column 7"},
	{"{\"\xff\":1}", "not UTF-8 at column 3"},
	{"{\"\xc1\xbf\":1}", "not UTF-8 at column 3"},
	{"{\"\xe0\x9f\xbf\":1}", "not UTF-8 at column 3"},
	{"{\"\xed\xa0\x80\":1}", "not UTF-8 at column 3"},
	{"{\"\xf0\x8f\xbf\xbf\":1}", "not UTF-8 at column 3"},
	{"{\"\xf4\x90\x80\x80\":1}", "not UTF-8 at column 3"},
	{"{\"\xf5\x80\x80\x80\":1}", "not UTF-8 at column 3"},
	{"{\"a\":1} {", "nothing may stand behind it at column 9"},
	{"{\"a\":1,\"b\":{\"c\":1,\"c\":2}}", "duplicate name \"c\" at column 20"},
	{"{\"a\":1,\"\\u0061\":2}", "duplicate name \"a\" at column 9"},
	{"  [1]", "must be one JSON object, at column 3"},
	{"x", "must be one JSON object, at column 1"},
	{"\xef\xbb\xbf{}", "must be one JSON object, at column 1"},
	{" \t", "an object is wanted at column 3"},
	{"", "an object is wanted at column 1"},
};

START_TEST(a_fault_is_told_with_its_column)
{
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		struct parsed parsed = {.status = QUIRE_OK};

		parse(&parsed, faults[i].line, strlen(faults[i].line), true);
		ck_assert_int_eq(parsed.status, QUIRE_FORMAT);
		ck_assert_int_eq(parsed.refusal.line, 7);
		ck_assert_msg(strstr(parsed.refusal.what, faults[i].what) != NULL,
		              "%s: \"%s\" lacks \"%s\"", faults[i].line,
		              parsed.refusal.what, faults[i].what);
		ck_assert_ptr_null(parsed.json.root);
		drop(&parsed);
	}
}
END_TEST

START_TEST(a_last_line_that_is_cut_is_truncated_wherever_it_is_cut)
{
	static const char line[] = "{\"a\":[1,\"\\u20ac\xe2\x82\xac\",{}],\"b\":-1.5e3}";

	for (size_t length = 0; length < sizeof(line) - 1; length++) {
		struct parsed parsed = {.status = QUIRE_OK};

		parse(&parsed, line, length, false);
		ck_assert_int_eq(parsed.status, QUIRE_FORMAT);
		ck_assert_int_eq(strncmp(parsed.refusal.what, "truncated", 9), 0);
		drop(&parsed);
	}
}
END_TEST

START_TEST(a_zero_byte_is_no_part_of_a_line)
{
	static const char line[] = "{\"a\":1}";

	for (size_t at = 0; at <= sizeof(line) - 1; at++) {
		struct parsed parsed = {.status = QUIRE_OK};
		char text[sizeof(line)];

		memcpy(text, line, at);
		text[at] = 0;
		memcpy(text + at + 1, line + at, sizeof(line) - 1 - at);
		parse(&parsed, text, sizeof(line), true);
		ck_assert_int_eq(parsed.status, QUIRE_FORMAT);
		drop(&parsed);
	}
}
END_TEST

/* ---- fields ---- */

START_TEST(numbers_are_exact_or_refused)
{
	static const char line[] =
		"{\"min\":-9223372036854775808,\"max\":9223372036854775807,"
		"\"zero\":-0,\"wide\":9223372036854775808,\"below\":-9223372036854775809,"
		"\"round\":18446744073709551617,\"real\":16.0}";
	static const char *const others[] = {"wide", "below", "round", "real", "none"};
	struct parsed parsed = {.status = QUIRE_OK};
	const struct quire_json *json = &parsed.json;
	int64_t got = 5;

	parse(&parsed, line, sizeof(line) - 1, true);
	ck_assert_int_eq(parsed.status, QUIRE_OK);
	ck_assert_int_eq(quire_json_int(json, quire_json_get(json->root, "min"),
	                                QUIRE_FIELD("min"), INT64_MIN, INT64_MAX, &got),
	                 QUIRE_OK);
	ck_assert_int_eq(got, INT64_MIN);
	ck_assert_int_eq(quire_json_int(json, quire_json_get(json->root, "max"),
	                                QUIRE_FIELD("max"), INT64_MIN, INT64_MAX, &got),
	                 QUIRE_OK);
	ck_assert_int_eq(got, INT64_MAX);
	ck_assert_int_eq(quire_json_int(json, quire_json_get(json->root, "zero"),
	                                QUIRE_FIELD("zero"), 0, 0, &got),
	                 QUIRE_OK);
	ck_assert_int_eq(got, 0);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		ck_assert_int_eq(quire_json_int(json,
		                                quire_json_get(json->root, others[i]),
		                                QUIRE_FIELD(others[i]), INT64_MIN,
		                                INT64_MAX, &got),
		                 QUIRE_FORMAT);
	ck_assert_int_eq(got, 0);
	ck_assert_int_eq(quire_json_finish(json), QUIRE_FORMAT);
	ck_assert_str_eq(parsed.refusal.what,
	                 "a number is too large for 64 bits at column 72");
	drop(&parsed);
}
END_TEST

START_TEST(a_refusal_shows_whole_characters)
{
	static const char line[] =
		"{\"a\":\"123456789012345678901234567890123456789\xe2\x82"
		"\xac\"}";
	struct parsed parsed = {.status = QUIRE_OK};
	int64_t got;

	parse(&parsed, line, sizeof(line) - 1, true);
	ck_assert_int_eq(quire_json_int(&parsed.json,
	                                quire_json_get(parsed.json.root, "a"),
	                                QUIRE_FIELD_AT("list", 3, "a"), 1, 9, &got),
	                 QUIRE_FORMAT);
	ck_assert_str_eq(parsed.refusal.what,
	                 "list[3]: a must be an integer 1..9, got the string "
	                 "\"123456789012345678901234567890123456789\"");
	drop(&parsed);
}
END_TEST

START_TEST(a_text_has_no_zero_in_it)
{
	static const char line[] = "{\"a\":\"x\\u0000y\",\"\\u0000\":\"\"}";
	struct parsed parsed = {.status = QUIRE_OK};
	const char *got;

	parse(&parsed, line, sizeof(line) - 1, true);
	ck_assert_int_eq(parsed.status, QUIRE_OK);
	ck_assert_int_eq(quire_json_string(&parsed.json,
	                                   quire_json_get(parsed.json.root, "a"),
	                                   QUIRE_FIELD("a"), 31, &got),
	                 QUIRE_FORMAT);
	ck_assert_str_eq(parsed.refusal.what,
	                 "a must be a string of 1..31 bytes, none of them zero, got the "
	                 "string \"x\"");
	ck_assert_ptr_null(quire_json_get(parsed.json.root, ""));
	drop(&parsed);
}
END_TEST

/* ---- bounds ---- */

/* @head, then @piece as often as it fits in @size bytes, numbered where it has a %d, then
 * @tail. */
static char *repeat(const char *head, const char *piece, const char *tail, size_t size,
                    size_t *length_out)
{
	char *text = malloc(size);
	size_t length = strlen(head), room = size - strlen(tail) - 32;

	ck_assert_ptr_nonnull(text);
	memcpy(text, head, length);
	for (int i = 0; length < room; i++)
		length += (size_t)snprintf(text + length, 32, piece, i);
	memcpy(text + length, tail, strlen(tail));
	*length_out = length + strlen(tail);
	return text;
}

/* Lines of the longest length: had any of them a quadratic cost, it would be hours. */
START_TEST(the_worst_lines_take_no_longer_than_others)
{
	static const struct {
		const char *head, *piece, *tail;
		enum quire_status status;
	} worst[] = {
		{"{", "\"%d\":1,", "\"x\":1}", QUIRE_OK},
		{"{", "\"%d\":1,", "\"0\":1}", QUIRE_FORMAT},
		{"{\"a\":[", "[],", "[]]}", QUIRE_OK},
		{"{\"a\":[", "{},", "{}]}", QUIRE_OK},
		{"{\"a\":[", "{\"a\":1,\"b\":1},", "1]}", QUIRE_OK},
		{"{\"a\":[", "1,", "1]}", QUIRE_OK},
		{"{\"a\":", "[", "", QUIRE_FORMAT},
		{"", "{\"a\":", "", QUIRE_FORMAT},
		{"{\"a\":\"", "\\u00e9", "\"}", QUIRE_OK},
		{"{\"a\":\"", "\\\\", "\"}", QUIRE_OK},
		{"{\"a\":", "9", "}", QUIRE_OK},
		{"{\"a\":", "0", "}", QUIRE_FORMAT},
		{"{", "   ", "}", QUIRE_OK},
	};

	for (size_t i = 0; i < sizeof(worst) / sizeof(worst[0]); i++) {
		struct parsed parsed = {.status = QUIRE_OK};
		size_t length;
		char *text = repeat(worst[i].head, worst[i].piece, worst[i].tail,
		                    QUIRE_TRACE_LINE_MAX, &length);

		parse(&parsed, text, length, true);
		ck_assert_msg(parsed.status == worst[i].status, "line %zu: %s", i,
		              parsed.status == QUIRE_OK ? "taken" : parsed.refusal.what);
		drop(&parsed);
		free(text);
	}
}
END_TEST

/* @depth containers, the object of the line among them. */
static enum quire_status parse_nested(int depth, const char *what)
{
	struct parsed parsed = {.status = QUIRE_OK};
	char text[QUIRE_JSON_DEPTH_MAX * 8];
	int length = sprintf(text, "{\"a\":");

	for (int i = 1; i < depth; i++)
		text[length++] = '[';
	for (int i = 1; i < depth; i++)
		text[length++] = ']';
	text[length++] = depth > 1 ? '}' : '1';
	if (depth == 1)
		text[length++] = '}';
	parse(&parsed, text, (size_t)length, true);
	if (parsed.status != QUIRE_OK)
		ck_assert_ptr_nonnull(strstr(parsed.refusal.what, what));
	drop(&parsed);
	return parsed.status;
}

START_TEST(nothing_nests_deeper_than_the_bound)
{
	ck_assert_int_eq(parse_nested(1, ""), QUIRE_OK);
	ck_assert_int_eq(parse_nested(512, ""), QUIRE_OK);
	/* The 513th bracket: five bytes, and 511 brackets before it. */
	ck_assert_int_eq(parse_nested(513, "nested too deep at column 517"),
	                 QUIRE_FORMAT);
}
END_TEST

/* Sixteen names are compared one by one, more go through a table. */
START_TEST(a_name_twice_is_found_among_any_number)
{
	for (int num = 1; num < 70; num++) {
		for (int twice = 0; twice < num; twice++) {
			struct parsed parsed = {.status = QUIRE_OK};
			char text[2048];
			int length = sprintf(text, "{");

			for (int i = 0; i < num; i++)
				length += sprintf(text + length, "\"%d\":{\"x\":%d},", i,
				                  i);
			length += sprintf(text + length, "\"%d\":0}", twice);
			parse(&parsed, text, (size_t)length, true);
			ck_assert_int_eq(parsed.status, QUIRE_FORMAT);
			ck_assert_ptr_nonnull(
				strstr(parsed.refusal.what, "duplicate name"));
			drop(&parsed);
		}
	}
}
END_TEST

START_TEST(memory_is_kept_from_line_to_line)
{
	struct quire_json json = {.root = NULL};
	struct quire_lines lines = {.line = 1};
	const struct quire_json_value *values = NULL;
	const uint64_t *names = NULL;
	size_t length;
	char *text = repeat("{", "\"%d\":1,", "\"x\":1}", 1 << 20, &length);
	char *copy = malloc(length + 1);

	for (int i = 0; i < 4; i++) {
		struct quire_line line = {copy, i % 2 == 0 ? length : 2, true};

		memcpy(copy, i % 2 == 0 ? text : "{}", line.length);
		ck_assert_int_eq(quire_json_parse(&json, &lines, &line, NULL), QUIRE_OK);
		if (i == 0) {
			values = json.values;
			names = json.names;
		}
		ck_assert_ptr_eq(json.values, values);
		ck_assert_ptr_eq(json.names, names);
	}
	free(copy);
	free(text);
	quire_json_free(&json);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("json");
	TCase *cases = tcase_create("json");

	tcase_set_timeout(cases, 60);
	tcase_add_test(cases, lines_are_taken_and_refused_as_jansson_does);
	tcase_add_test(cases, a_fault_is_told_with_its_column);
	tcase_add_test(cases, a_last_line_that_is_cut_is_truncated_wherever_it_is_cut);
	tcase_add_test(cases, a_zero_byte_is_no_part_of_a_line);
	tcase_add_test(cases, numbers_are_exact_or_refused);
	tcase_add_test(cases, a_refusal_shows_whole_characters);
	tcase_add_test(cases, a_text_has_no_zero_in_it);
	tcase_add_test(cases, the_worst_lines_take_no_longer_than_others);
	tcase_add_test(cases, nothing_nests_deeper_than_the_bound);
	tcase_add_test(cases, a_name_twice_is_found_among_any_number);
	tcase_add_test(cases, memory_is_kept_from_line_to_line);
	suite_add_tcase(suite, cases);
	return run_suite(suite);
}
