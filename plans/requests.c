/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <quire/plans/requests.h>

#include "plans/fault_impl.h"
#include "plans/json_impl.h"
#include "plans/lines_impl.h"

#include <quire/runtime/limits.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define AZURE_HEADER "TIMESTAMP,ContextTokens,GeneratedTokens"

/* Digits of a fraction of a second: a nanosecond has 9, Azure writes 7. */
#define FRACTION_DIGITS 9

/* Years whose nanoseconds, and what a request adds to them, fit in 63 bits. */
#define YEAR_MIN 1970
#define YEAR_MAX 2199

/* Milliseconds of about as many years. */
#define MILLISECONDS_MAX (INT64_C(230) * 366 * 24 * 3600 * 1000)

#define SECOND_NS INT64_C(1000000000)

/* A request trace while it is read. */
struct reading {
	struct quire_lines lines;
	struct quire_line line;
	struct quire_json json;
	struct quire_requests requests;
	int64_t rows_room;
	int64_t first_ns; /* absolute time of the first row */
	int64_t last_ns;  /* ... and of the last */
	struct quire_refusal *refusal_out;
};

/* What is left of a line of text. */
struct cursor {
	const char *at;
	const char *end;
};

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
static bool take_time(struct cursor *cursor, int64_t *ns_out)
{
	int64_t year, month, day, hour, minute, second, fraction = 0;
	const char *start;

	if (!take_number(cursor, 4, 4, YEAR_MAX, &year) || year < YEAR_MIN ||
	    !take_char(cursor, '-') || !take_number(cursor, 2, 2, 12, &month) ||
	    month < 1 || !take_char(cursor, '-') ||
	    !take_number(cursor, 2, 2, 31, &day) || !is_date(year, month, day) ||
	    !take_char(cursor, ' ') || !take_number(cursor, 2, 2, 23, &hour) ||
	    !take_char(cursor, ':') || !take_number(cursor, 2, 2, 59, &minute) ||
	    !take_char(cursor, ':') || !take_number(cursor, 2, 2, 59, &second))
		return false;
	if (take_char(cursor, '.')) {
		start = cursor->at;
		if (!take_number(cursor, 1, FRACTION_DIGITS, SECOND_NS, &fraction))
			return false;
		for (ptrdiff_t d = cursor->at - start; d < FRACTION_DIGITS; d++)
			fraction *= 10;
	}
	second += (days_of(year, month, day) * 24 + hour) * 3600 + minute * 60;
	*ns_out = second * SECOND_NS + fraction;
	return true;
}

static enum quire_status refuse_field(const struct reading *reading, const char *what)
{
	return quire_fault(reading->refusal_out, QUIRE_FORMAT, reading->lines.line,
	                   "%s, got \"%.*s\"", what,
	                   (int)(reading->line.length < 80 ? reading->line.length : 80),
	                   reading->line.text);
}

static enum quire_status parse_azure(const struct reading *reading, int64_t *ns_out,
                                     struct quire_request_row *row)
{
	struct cursor cursor = {reading->line.text,
	                        reading->line.text + reading->line.length};

	if (cursor.end > cursor.at && cursor.end[-1] == '\r')
		cursor.end--;
	if (!take_time(&cursor, ns_out) || !take_char(&cursor, ','))
		return refuse_field(reading,
		                    "TIMESTAMP must be YYYY-MM-DD HH:MM:SS[.fraction] of "
		                    "1970..2199");
	if (!take_number(&cursor, 1, 10, QUIRE_SEQ_TOKENS_MAX, &row->input_tokens) ||
	    !take_char(&cursor, ','))
		return refuse_field(reading,
		                    "ContextTokens must be an integer 0..2147483647");
	if (!take_number(&cursor, 1, 10, QUIRE_SEQ_TOKENS_MAX, &row->output_tokens) ||
	    cursor.at != cursor.end)
		return refuse_field(
			reading,
			"GeneratedTokens must be an integer 0..2147483647 at the "
			"end of the line");
	return QUIRE_OK;
}

static enum quire_status parse_mooncake(struct reading *reading, int64_t *ns_out,
                                        struct quire_request_row *row)
{
	struct quire_json *json = &reading->json;
	int64_t milliseconds = 0;
	enum quire_status status = quire_json_parse(json, &reading->lines, &reading->line,
	                                            reading->refusal_out);

	if (status == QUIRE_OK && quire_json_get(json->root, "quire") != NULL)
		status = quire_fault(reading->refusal_out, QUIRE_FORMAT,
		                     reading->lines.line,
		                     "a plan trace, not a request trace");
	if (status == QUIRE_OK)
		status = quire_json_int(json, quire_json_get(json->root, "timestamp"),
		                        QUIRE_FIELD("timestamp"), 0, MILLISECONDS_MAX,
		                        &milliseconds);
	if (status == QUIRE_OK)
		status = quire_json_int(json, quire_json_get(json->root, "input_length"),
		                        QUIRE_FIELD("input_length"), 0,
		                        QUIRE_SEQ_TOKENS_MAX, &row->input_tokens);
	if (status == QUIRE_OK)
		status = quire_json_int(json, quire_json_get(json->root, "output_length"),
		                        QUIRE_FIELD("output_length"), 0,
		                        QUIRE_SEQ_TOKENS_MAX, &row->output_tokens);
	if (status == QUIRE_OK)
		status = quire_json_finish(json);
	*ns_out = milliseconds * 1000000;
	return status;
}

static enum quire_status add_row(struct reading *reading,
                                 const struct quire_request_row *row)
{
	struct quire_requests *requests = &reading->requests;
	int64_t room = reading->rows_room > 0 ? reading->rows_room * 2 : 1024;
	struct quire_request_row *rows;

	if (requests->num_rows == reading->rows_room) {
		rows = realloc(requests->rows, (size_t)room * sizeof(*rows));
		if (rows == NULL)
			return quire_fault(reading->refusal_out, QUIRE_NO_MEMORY,
			                   reading->lines.line,
			                   "no memory for %" PRId64 " requests", room);
		requests->rows = rows;
		reading->rows_room = room;
	}
	requests->rows[requests->num_rows++] = *row;
	return QUIRE_OK;
}

static enum quire_status read_row(struct reading *reading)
{
	bool azure = strcmp(reading->requests.format, "azure") == 0;
	struct quire_request_row row;
	int64_t ns = 0;
	enum quire_status status = azure ? parse_azure(reading, &ns, &row)
	                                 : parse_mooncake(reading, &ns, &row);

	if (status != QUIRE_OK)
		return status;
	if (reading->requests.num_rows == 0)
		reading->first_ns = ns;
	else if (ns < reading->last_ns && azure)
		return refuse_field(reading,
		                    "TIMESTAMP must not be before the row above");
	else if (ns < reading->last_ns)
		return quire_fault(reading->refusal_out, QUIRE_FORMAT,
		                   reading->lines.line,
		                   "timestamp must not be before the row above, got "
		                   "%" PRId64,
		                   ns / 1000000);
	reading->last_ns = ns;
	row.arrival_ns = ns - reading->first_ns;
	return add_row(reading, &row);
}

/* The first line tells the format; in Azure's it is no row. */
static enum quire_status read_format(struct reading *reading, bool *row_out)
{
	enum quire_status status =
		quire_lines_next(&reading->lines, &reading->line, reading->refusal_out);
	size_t length = reading->line.length;
	const char *text = reading->line.text;

	if (status == QUIRE_END)
		return quire_fault(reading->refusal_out, QUIRE_FORMAT, 0,
		                   "the file is empty");
	if (status != QUIRE_OK)
		return status;
	if (length > 0 && text[length - 1] == '\r')
		length--;
	*row_out = length > 0 && text[0] == '{';
	if (!*row_out &&
	    (length != strlen(AZURE_HEADER) || memcmp(text, AZURE_HEADER, length) != 0))
		return quire_fault(reading->refusal_out, QUIRE_FORMAT, 1,
		                   "not a request trace: the first line must be "
		                   "\"" AZURE_HEADER "\" or a JSON object");
	reading->requests.format = *row_out ? "mooncake" : "azure";
	return QUIRE_OK;
}

static enum quire_status read_rows(struct reading *reading, int64_t rows_max)
{
	bool row = false;
	enum quire_status status = read_format(reading, &row);

	if (status == QUIRE_OK && row)
		status = read_row(reading);
	while (status == QUIRE_OK &&
	       (rows_max == 0 || reading->requests.num_rows < rows_max)) {
		status = quire_lines_next(&reading->lines, &reading->line,
		                          reading->refusal_out);
		if (status == QUIRE_OK)
			status = read_row(reading);
	}
	if (status == QUIRE_END && reading->requests.num_rows == 0)
		return quire_fault(reading->refusal_out, QUIRE_FORMAT,
		                   reading->lines.line,
		                   "must be followed by at least one row");
	return status == QUIRE_END ? QUIRE_OK : status;
}

enum quire_status quire_requests_read(const char *path, int64_t rows_max,
                                      struct quire_requests *requests_out,
                                      struct quire_refusal *refusal_out)
{
	struct reading reading = {.refusal_out = refusal_out};
	enum quire_status status = quire_lines_open(&reading.lines, path, refusal_out);

	if (status != QUIRE_OK)
		return status;
	status = read_rows(&reading, rows_max);
	quire_json_free(&reading.json);
	quire_lines_close(&reading.lines);
	if (status == QUIRE_OK)
		*requests_out = reading.requests;
	else
		free(reading.requests.rows);
	return status;
}

void quire_requests_free(struct quire_requests *requests)
{
	free(requests->rows);
	requests->rows = NULL;
	requests->num_rows = 0;
}
