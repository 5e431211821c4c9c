/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "random_plan.h"
#include "tests/run_suite.h"
#include "temporary.h"

#include <quire/plans/requests.h>

#define AZURE "TIMESTAMP,ContextTokens,GeneratedTokens"

static struct temporary temporary;

static void setup(void)
{
	temporary_make(&temporary);
}

static void teardown(void)
{
	temporary_end(&temporary);
}

static enum quire_status read_text(const char *text, int64_t rows_max,
                                   struct quire_requests *requests,
                                   struct quire_refusal *refusal)
{
	temporary_fill(&temporary, text, strlen(text));
	return quire_requests_read(temporary.path, rows_max, requests, refusal);
}

static void check_rows(const struct quire_requests *requests, const char *format,
                       const struct quire_request_row *rows, int64_t num_rows)
{
	ck_assert_str_eq(requests->format, format);
	ck_assert_int_eq(requests->num_rows, num_rows);
	for (int64_t i = 0; i < num_rows; i++) {
		ck_assert_int_eq(requests->rows[i].arrival_ns, rows[i].arrival_ns);
		ck_assert_int_eq(requests->rows[i].input_tokens, rows[i].input_tokens);
		ck_assert_int_eq(requests->rows[i].output_tokens, rows[i].output_tokens);
	}
}

START_TEST(azure_rows_are_read_over_the_end_of_a_leap_day)
{
	static const char text[] = AZURE "\r\n"
					 "2024-02-28 23:59:59.9999999,4808,10\r\n"
					 "2024-02-29 00:00:00.0000000,0,8\r\n"
					 "2024-03-01 00:00:00.5,110,0\r\n"
					 "2024-03-01 00:00:01,2147483647,27";
	const struct quire_request_row rows[] = {
		{0, 4808, 10},
		{100, 0, 8},
		{INT64_C(86400) * 1000000000 + 500000100, 110, 0},
		{INT64_C(86401) * 1000000000 + 100, 2147483647, 27},
	};
	struct quire_requests requests;

	ck_assert_int_eq(read_text(text, 0, &requests, NULL), QUIRE_OK);
	check_rows(&requests, "azure", rows, 4);
	quire_requests_free(&requests);
	ck_assert_ptr_null(requests.rows);
	ck_assert_int_eq(read_text(text, 2, &requests, NULL), QUIRE_OK);
	check_rows(&requests, "azure", rows, 2);
	quire_requests_free(&requests);
}
END_TEST

START_TEST(a_year_of_days_has_the_length_that_the_calendar_gives)
{
	static const struct {
		const char *from, *to;
		int64_t days;
	} spans[] = {
		{"1970-01-01", "1971-01-01", 365},   {"1970-01-01", "2000-01-01", 10957},
		{"2000-02-28", "2000-03-01", 2},     {"2100-02-28", "2100-03-01", 1},
		{"2023-12-31", "2024-12-31", 366},   {"2024-04-30", "2024-05-01", 1},
		{"1970-01-01", "2199-12-31", 84005},
	};

	for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++) {
		struct quire_requests requests;
		char text[200];

		snprintf(text, sizeof(text), AZURE "\n%s 00:00:00,1,1\n%s 00:00:00,1,1\n",
		         spans[i].from, spans[i].to);
		ck_assert_int_eq(read_text(text, 0, &requests, NULL), QUIRE_OK);
		ck_assert_int_eq(requests.rows[1].arrival_ns,
		                 spans[i].days * 86400 * 1000000000);
		quire_requests_free(&requests);
	}
}
END_TEST

START_TEST(mooncake_rows_are_read)
{
	static const char text[] =
		"{\"timestamp\": 3000, \"input_length\": 6758, \"output_length\": 500, "
		"\"hash_ids\": [0]}\n"
		"{\"timestamp\": 3000, \"input_length\": 0, \"output_length\": 0}\n"
		"{\"output_length\": 1, \"timestamp\": 6001, \"input_length\": 7}";
	const struct quire_request_row rows[] = {
		{0, 6758, 500},
		{0, 0, 0},
		{INT64_C(3001000000), 7, 1},
	};
	struct quire_requests requests;

	ck_assert_int_eq(read_text(text, 0, &requests, NULL), QUIRE_OK);
	check_rows(&requests, "mooncake", rows, 3);
	quire_requests_free(&requests);
}
END_TEST

#define ROW      "2023-11-16 18:17:03.9799600,4808,10\n"
#define JSON_ROW "{\"timestamp\":5,\"input_length\":1,\"output_length\":1}\n"

static const struct {
	const char *text;
	int64_t line;
	const char *what;
} faults[] = {
	{"", 0, "the file is empty"},
	{"\n", 1, "not a request trace"},
	{"TIMESTAMP,ContextTokens\n", 1, "not a request trace"},
	{"\x28\xb5\x2f\xfd", 1, "truncated: the file ends in the middle of a zstd"},
	{AZURE, 1, "at least one row"},
	{AZURE "\r\n", 1, "at least one row"},
	{AZURE "\n\n", 2, "TIMESTAMP must be"},
	{AZURE "\n" ROW "\n", 3, "TIMESTAMP must be"},
	{AZURE "\n" ROW "2023-11-31 18:17:04,1,1", 3, "TIMESTAMP must be"},
	{AZURE "\n2023-02-29 18:17:04,1,1", 2, "TIMESTAMP must be"},
	{AZURE "\n2023-13-01 18:17:04,1,1", 2, "TIMESTAMP must be"},
	{AZURE "\n2023-00-01 18:17:04,1,1", 2, "TIMESTAMP must be"},
	{AZURE "\n2023-01-00 18:17:04,1,1", 2, "TIMESTAMP must be"},
	{AZURE "\n1969-01-01 18:17:04,1,1", 2, "TIMESTAMP must be"},
	{AZURE "\n2200-01-01 18:17:04,1,1", 2, "TIMESTAMP must be"},
	{AZURE "\n2023-01-01 24:17:04,1,1", 2, "TIMESTAMP must be"},
	{AZURE "\n2023-01-01 18:60:04,1,1", 2, "TIMESTAMP must be"},
	{AZURE "\n2023-01-01 18:17:60,1,1", 2, "TIMESTAMP must be"},
	{AZURE "\n2023-01-01T18:17:04,1,1", 2, "TIMESTAMP must be"},
	{AZURE "\n2023-01-01 18:17:04.,1,1", 2, "TIMESTAMP must be"},
	{AZURE "\n2023-01-01 18:17:04.1234567890,1,1", 2, "TIMESTAMP must be"},
	{AZURE "\n2023-01-01 18:17:04", 2, "TIMESTAMP must be"},
	{AZURE "\n2023-01-01 18:17:04,-1,1", 2, "ContextTokens must be"},
	{AZURE "\n2023-01-01 18:17:04,2147483648,1", 2, "ContextTokens must be"},
	{AZURE "\n2023-01-01 18:17:04,99999999999999999999,1", 2,
         "ContextTokens must be"},
	{AZURE "\n2023-01-01 18:17:04,1.5,1", 2, "ContextTokens must be"},
	{AZURE "\n2023-01-01 18:17:04,1", 2, "ContextTokens must be"},
	{AZURE "\n2023-01-01 18:17:04,1,", 2, "GeneratedTokens must be"},
	{AZURE "\n2023-01-01 18:17:04,1,x", 2, "GeneratedTokens must be"},
	{AZURE "\n2023-01-01 18:17:04,1,2,3", 2, "GeneratedTokens must be"},
	{AZURE "\n2023-01-01 18:17:04,1,2147483648", 2, "GeneratedTokens must be"},
	{AZURE "\n" ROW "2023-11-16 18:17:03.9799599,1,1", 3, "before the row above"},
	{"{}", 1, "timestamp must be an integer"},
	{"{\"timestamp\":1.5}", 1, "timestamp must be an integer"},
	{"{\"timestamp\":-1}", 1, "timestamp must be an integer"},
	{"{\"timestamp\":9000000000000000}", 1, "timestamp must be an integer"},
	{JSON_ROW "{\"timestamp\":6}", 2, "input_length must be"},
	{JSON_ROW "{\"timestamp\":6,\"input_length\":1}", 2, "output_length must be"},
	{JSON_ROW "{\"timestamp\":6,\"input_length\":1,\"output_length\":2147483648}", 2,
         "output_length must be"},
	{JSON_ROW "{\"timestamp\":4,\"input_length\":1,\"output_length\":1}", 2,
         "before the row above"},
	{JSON_ROW "{\"timestamp\":6,\"input_le", 2, "truncated"},
	{JSON_ROW "\n" JSON_ROW, 2, "JSON object"},
};

START_TEST(every_fault_of_a_request_trace_is_refused_with_line_and_field)
{
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		struct quire_requests requests = {.format = "untouched"};
		struct quire_refusal refusal;

		ck_assert_msg(read_text(faults[i].text, 0, &requests, &refusal) ==
		                      QUIRE_FORMAT,
		              "fault %zu is read", i);
		ck_assert_str_eq(requests.format, "untouched");
		ck_assert_int_eq(refusal.line, faults[i].line);
		ck_assert_msg(strstr(refusal.what, faults[i].what) != NULL,
		              "fault %zu: \"%s\" lacks \"%s\"", i, refusal.what,
		              faults[i].what);
	}
}
END_TEST

/* ---- the ideal schedule, against a naive one ---- */

struct naive_event {
	int64_t tenths_of_ms;
	int64_t pages; /* below 0: given */
};

static int compare_events(const void *left, const void *right)
{
	const struct naive_event *a = left, *b = right;

	if (a->tenths_of_ms != b->tenths_of_ms)
		return a->tenths_of_ms < b->tenths_of_ms ? -1 : 1;
	return (b->pages < 0) - (a->pages < 0);
}

static void naive_ideal(const struct quire_requests *requests, int64_t ps, int64_t *peak,
                        int64_t *takes)
{
	struct naive_event *events = malloc(100000 * sizeof(*events));
	int64_t live = 0;
	size_t n = 0;

	for (int64_t i = 0; i < requests->num_rows; i++) {
		const struct quire_request_row *row = &requests->rows[i];
		int64_t now = row->arrival_ns / 100000;
		int64_t pages = 0;

		while (pages * ps < row->input_tokens)
			pages++;
		events[n++] = (struct naive_event){now, pages};
		now += row->input_tokens;
		for (int64_t k = 1; k <= row->output_tokens; k++) {
			if ((row->input_tokens + k - 1) % ps == 0) {
				events[n++] = (struct naive_event){now, 1};
				pages++;
			}
			now += 300;
		}
		events[n++] = (struct naive_event){now, -pages};
	}
	qsort(events, n, sizeof(*events), compare_events);
	*peak = 0;
	*takes = 0;
	for (size_t i = 0; i < n; i++) {
		live += events[i].pages;
		*peak = live > *peak ? live : *peak;
		*takes += events[i].pages > 0 ? events[i].pages : 0;
	}
	ck_assert_int_eq(live, 0);
	free(events);
}

START_TEST(the_ideal_schedule_is_that_of_a_naive_simulation)
{
	uint64_t s = 4;

	for (int round = 0; round < 300; round++) {
		struct quire_request_row rows[30];
		struct quire_requests requests = {"test", rows, random_in(&s, 0, 30)};
		int64_t ps = random_in(&s, 1, 40), peak, takes, right_peak, right_takes;
		int64_t now = 0;

		for (int64_t i = 0; i < requests.num_rows; i++) {
			/* multiples of 30 ms, and prompts of 300 tokens, make equal times
			 */
			now += INT64_C(30000000) * random_in(&s, 0, 3) * (i > 0);
			rows[i].arrival_ns = now;
			rows[i].input_tokens = random_in(&s, 0, 1) == 0
			                               ? random_in(&s, 0, 70)
			                               : 300 * random_in(&s, 0, 2);
			rows[i].output_tokens =
				random_in(&s, 0, 3) == 0 ? 0 : random_in(&s, 0, 99);
		}
		naive_ideal(&requests, ps, &right_peak, &right_takes);
		ck_assert_int_eq(quire_requests_ideal(&requests, ps, &peak, &takes),
		                 QUIRE_OK);
		ck_assert_int_eq(peak, right_peak);
		ck_assert_int_eq(takes, right_takes);
	}
}
END_TEST

/* A leaves at the very time at which B comes: 1 + 2 pages never live together. */
START_TEST(at_equal_times_gives_come_before_takes)
{
	struct quire_request_row rows[] = {{0, 300, 1}, {60000000, 600, 0}};
	struct quire_requests requests = {"test", rows, 2};
	int64_t peak, takes;

	ck_assert_int_eq(quire_requests_ideal(&requests, 301, &peak, &takes), QUIRE_OK);
	ck_assert_int_eq(peak, 2);
	ck_assert_int_eq(takes, 3);
	rows[1].arrival_ns--;
	ck_assert_int_eq(quire_requests_ideal(&requests, 301, &peak, &takes), QUIRE_OK);
	ck_assert_int_eq(peak, 3);
}
END_TEST

START_TEST(an_ideal_of_rows_out_of_range_is_refused)
{
	struct quire_request_row rows[] = {{5, 300, 1}, {4, 1, 1}};
	struct quire_requests requests = {"test", rows, 2};
	int64_t peak = -7, takes = -7;

	ck_assert_int_eq(quire_requests_ideal(&requests, 16, &peak, &takes),
	                 QUIRE_INVALID);
	requests.num_rows = 1;
	ck_assert_int_eq(quire_requests_ideal(&requests, 0, &peak, &takes),
	                 QUIRE_INVALID);
	ck_assert_int_eq(
		quire_requests_ideal(&requests, QUIRE_PAGE_SIZE_MAX + 1, &peak, &takes),
		QUIRE_INVALID);
	rows[0].input_tokens = -1;
	ck_assert_int_eq(quire_requests_ideal(&requests, 16, &peak, &takes),
	                 QUIRE_INVALID);
	rows[0].input_tokens = 1;
	rows[0].output_tokens = INT64_C(1) << 31;
	ck_assert_int_eq(quire_requests_ideal(&requests, 16, &peak, &takes),
	                 QUIRE_INVALID);
	ck_assert_int_eq(peak, -7);
	ck_assert_int_eq(takes, -7);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("requests");
	TCase *cases = tcase_create("requests");

	tcase_add_checked_fixture(cases, setup, teardown);
	tcase_set_timeout(cases, 60);
	tcase_add_test(cases, azure_rows_are_read_over_the_end_of_a_leap_day);
	tcase_add_test(cases, a_year_of_days_has_the_length_that_the_calendar_gives);
	tcase_add_test(cases, mooncake_rows_are_read);
	tcase_add_test(cases,
	               every_fault_of_a_request_trace_is_refused_with_line_and_field);
	tcase_add_test(cases, the_ideal_schedule_is_that_of_a_naive_simulation);
	tcase_add_test(cases, at_equal_times_gives_come_before_takes);
	tcase_add_test(cases, an_ideal_of_rows_out_of_range_is_refused);
	suite_add_tcase(suite, cases);
	return run_suite(suite);
}
