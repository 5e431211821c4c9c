/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "plans/requests_impl.h"

#include "plans/fault_impl.h"

#include <quire/runtime/limits.h>
#include <quire/runtime/refuse_impl.h>

#include <stddef.h>
#include <string.h>

/* Digits of a fraction of a second that count. */
#define FRACTION_DIGITS 9

/* Years within QUIRE_REQUEST_SECONDS_MAX. */
#define YEAR_MIN 1970
#define YEAR_MAX 2199

/* Bytes of a field in a refusal. */
#define SHOWN_BYTES 80

static const struct quire_csv_format formats[] = {
	{.name = "azure",
         .time = "TIMESTAMP",
         .input = "ContextTokens",
         .output = "GeneratedTokens",
         .dated = true},
	{.name = "burstgpt",
         .time = "Timestamp",
         .input = "Request tokens",
         .output = "Response tokens"},
	{.name = "vidur",
         .time = "arrived_at",
         .input = "num_prefill_tokens",
         .output = "num_decode_tokens",
         .timeless = true},
};

/* What is left of a text. */
struct cursor {
	const char *at;
	const char *end;
};

/* A line as a text, without a carriage return at its end. */
static struct cursor text_of(const struct quire_line *line)
{
	struct cursor cursor = {line->text, line->text + line->length};

	if (cursor.end > cursor.at && cursor.end[-1] == '\r')
		cursor.end--;
	return cursor;
}

/* The field at the front of @rest, which then is what follows its comma; false: it was
 * the last one. */
static bool next_field(struct cursor *rest, struct cursor *field)
{
	const char *comma = memchr(rest->at, ',', (size_t)(rest->end - rest->at));

	field->at = rest->at;
	field->end = comma != NULL ? comma : rest->end;
	rest->at = comma != NULL ? comma + 1 : rest->end;
	return comma != NULL;
}

static bool is_name(const struct cursor *field, const char *name)
{
	size_t length = (size_t)(field->end - field->at);

	return length == strlen(name) && memcmp(field->at, name, length) == 0;
}

/* Some programs begin a text file with one. */
static void skip_byte_order_mark(struct cursor *text)
{
	static const char mark[] = "\xef\xbb\xbf";

	if (text->end - text->at >= 3 && memcmp(text->at, mark, 3) == 0)
		text->at += 3;
}

/* The field is the column of that name. */
static void set_column(struct quire_csv *csv, int *column, const char *name)
{
	if (*column >= 0)
		csv->twice = name;
	*column = csv->num_fields;
}

/* The columns of @rest, as those of @format; false: one is missing. */
static bool find_columns(struct quire_csv *csv, const struct quire_csv_format *format,
                         struct cursor rest)
{
	bool more;

	*csv = (struct quire_csv){
		.format = format, .time = -1, .input = -1, .output = -1};
	do {
		struct cursor field;

		more = next_field(&rest, &field);
		if (is_name(&field, format->time))
			set_column(csv, &csv->time, format->time);
		else if (is_name(&field, format->input))
			set_column(csv, &csv->input, format->input);
		else if (is_name(&field, format->output))
			set_column(csv, &csv->output, format->output);
		csv->num_fields++;
	} while (more);
	return csv->input >= 0 && csv->output >= 0 &&
	       (csv->time >= 0 || format->timeless);
}

bool quire_csv_header(struct quire_csv *csv, const struct quire_line *line)
{
	struct cursor text = text_of(line);

	skip_byte_order_mark(&text);
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		if (find_columns(csv, &formats[i], text))
			return true;
	}
	return false;
}

/* Take an unsigned number of @digits_min..@digits_max digits, above @max not at all. */
static bool take_number(struct cursor *cursor, int digits_min, int digits_max,
                        int64_t max, int64_t *out)
{
	int64_t value = 0;
	int digits = 0;

	while (cursor->at < cursor->end && *cursor->at >= '0' && *cursor->at <= '9') {
		if (++digits > digits_max)
			return false;
		value = value * 10 + (*cursor->at++ - '0');
	}
	*out = value;
	return digits >= digits_min && value <= max;
}

static bool take_char(struct cursor *cursor, char c)
{
	if (cursor->at == cursor->end || *cursor->at != c)
		return false;
	cursor->at++;
	return true;
}

/* A point and digits, or nothing: nanoseconds. */
static bool take_fraction(struct cursor *cursor, int64_t *ns_out)
{
	int digits = 0;

	*ns_out = 0;
	if (!take_char(cursor, '.'))
		return true;
	for (; cursor->at < cursor->end && *cursor->at >= '0' && *cursor->at <= '9';
	     cursor->at++) {
		if (digits < FRACTION_DIGITS)
			*ns_out = *ns_out * 10 + (*cursor->at - '0');
		digits++;
	}
	for (int d = digits; d < FRACTION_DIGITS; d++)
		*ns_out *= 10;
	return digits > 0;
}

/* Days since 1970-01-01 of a date of the Gregorian calendar; @month counts from 1. */
static int64_t days_of(int64_t year, int64_t month, int64_t day)
{
	static const int before[] = {0,   31,  59,  90,  120, 151,
	                             181, 212, 243, 273, 304, 334};
	bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
	int64_t past = year - 1;
	int64_t leaps = past / 4 - past / 100 + past / 400;
	int64_t leaps_1970 = 1969 / 4 - 1969 / 100 + 1969 / 400;

	return (year - 1970) * 365 + leaps - leaps_1970 + before[month - 1] +
	       (leap && month > 2) + day - 1;
}

static bool is_date(int64_t year, int64_t month, int64_t day)
{
	int64_t next =
		month == 12 ? days_of(year + 1, 1, 1) : days_of(year, month + 1, 1);

	return day >= 1 && day <= next - days_of(year, month, 1);
}

/* "2023-11-16 18:17:03.9799600" in nanoseconds since 1970; the fraction may be left out.
 */
static bool take_date(struct cursor *cursor, int64_t *ns_out)
{
	int64_t year, month, day, hour, minute, second, fraction;

	if (!take_number(cursor, 4, 4, YEAR_MAX, &year) || year < YEAR_MIN ||
	    !take_char(cursor, '-') || !take_number(cursor, 2, 2, 12, &month) ||
	    month < 1 || !take_char(cursor, '-') ||
	    !take_number(cursor, 2, 2, 31, &day) || !is_date(year, month, day) ||
	    !take_char(cursor, ' ') || !take_number(cursor, 2, 2, 23, &hour) ||
	    !take_char(cursor, ':') || !take_number(cursor, 2, 2, 59, &minute) ||
	    !take_char(cursor, ':') || !take_number(cursor, 2, 2, 59, &second) ||
	    !take_fraction(cursor, &fraction))
		return false;
	second += (days_of(year, month, day) * 24 + hour) * 3600 + minute * 60;
	*ns_out = second * QUIRE_SECOND_NS + fraction;
	return true;
}

/* "4.314579" */
static bool take_seconds(struct cursor *cursor, int64_t *ns_out)
{
	int64_t second, fraction;

	if (!take_number(cursor, 1, 10, QUIRE_REQUEST_SECONDS_MAX - 1, &second) ||
	    !take_fraction(cursor, &fraction))
		return false;
	*ns_out = second * QUIRE_SECOND_NS + fraction;
	return true;
}

bool quire_request_seconds(const char *text, size_t size, int64_t *ns_out)
{
	struct cursor cursor = {text, text + size};

	return take_seconds(&cursor, ns_out) && cursor.at == cursor.end;
}

/* Where refusals of a row go. */
struct fault_place {
	int64_t line;
	struct quire_refusal *refusal_out;
};

static enum quire_status refuse_field(const struct fault_place *place, const char *name,
                                      const char *right, const struct cursor *field)
{
	ptrdiff_t length = field->end - field->at;

	return quire_fault(place->refusal_out, QUIRE_FORMAT, place->line,
	                   "%s must be %s, got \"%.*s\"", name, right,
	                   (int)(length < SHOWN_BYTES ? length : SHOWN_BYTES), field->at);
}

static enum quire_status parse_time(const struct quire_csv_format *format,
                                    const struct cursor *field, int64_t *ns_out,
                                    const struct fault_place *place)
{
	struct cursor cursor = *field;
	bool taken = format->dated ? take_date(&cursor, ns_out)
	                           : take_seconds(&cursor, ns_out);

	if (taken && cursor.at == cursor.end)
		return QUIRE_OK;
	return refuse_field(place, format->time,
	                    format->dated ? "YYYY-MM-DD HH:MM:SS[.fraction] of 1970..2199"
	                                  : QUIRE_REQUEST_SECONDS,
	                    field);
}

static enum quire_status parse_tokens(const char *name, const struct cursor *field,
                                      int64_t *out, const struct fault_place *place)
{
	struct cursor cursor = *field;

	if (take_number(&cursor, 1, 10, QUIRE_SEQ_TOKENS_MAX, out) &&
	    cursor.at == cursor.end)
		return QUIRE_OK;
	return refuse_field(place, name, "an integer 0..2147483647", field);
}

enum quire_status quire_csv_row(const struct quire_csv *csv,
                                const struct quire_line *line, int64_t number,
                                int64_t *ns_out, struct quire_request_row *row,
                                struct quire_refusal *refusal_out)
{
	const struct fault_place place = {number, refusal_out};
	struct cursor rest = text_of(line);
	int num_fields = 0;
	bool more;

	*ns_out = 0;
	do {
		struct cursor field;

		more = next_field(&rest, &field);
		if (num_fields == csv->time)
			QUIRE_TRY(parse_time(csv->format, &field, ns_out, &place));
		else if (num_fields == csv->input)
			QUIRE_TRY(parse_tokens(csv->format->input, &field,
			                       &row->input_tokens, &place));
		else if (num_fields == csv->output)
			QUIRE_TRY(parse_tokens(csv->format->output, &field,
			                       &row->output_tokens, &place));
		num_fields++;
	} while (more);
	if (num_fields != csv->num_fields)
		return quire_fault(refusal_out, QUIRE_FORMAT, number,
		                   "a row must have %d fields, as the first line, got %d",
		                   csv->num_fields, num_fields);
	return QUIRE_OK;
}
