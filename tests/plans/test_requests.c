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

static enum quire_status open_text(const char *text, struct quire_requests **requests,
                                   struct quire_refusal *refusal)
{
	temporary_fill(&temporary, text, strlen(text));
	return quire_requests_open(temporary.path, requests, refusal);
}

/* The rows of @text are @rows, and then it ends, for good. */
static void check_rows(const char *text, const char *format,
                       const struct quire_request_row *rows, int64_t num_rows)
{
	struct quire_requests *requests;
	struct quire_request_row row;
	int64_t done, of;

	ck_assert_int_eq(open_text(text, &requests, NULL), QUIRE_OK);
	ck_assert_str_eq(quire_requests_format(requests), format);
	for (int64_t i = 0; i < num_rows; i++) {
		ck_assert_int_eq(quire_requests_next(requests, &row, NULL), QUIRE_OK);
		ck_assert_int_eq(row.arrival_ns, rows[i].arrival_ns);
		ck_assert_int_eq(row.input_tokens, rows[i].input_tokens);
		ck_assert_int_eq(row.output_tokens, rows[i].output_tokens);
		ck_assert_int_eq(row.prefix.tokens, rows[i].prefix.tokens);
		ck_assert_int_eq(row.prefix.num_keys, rows[i].prefix.num_keys);
		for (int32_t k = 0; k < rows[i].prefix.num_keys; k++)
			ck_assert_int_eq(row.prefix.keys[k], rows[i].prefix.keys[k]);
	}
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(quire_requests_next(requests, &row, NULL), QUIRE_END);
	quire_requests_position(requests, &done, &of);
	ck_assert_int_eq(done, (int64_t)strlen(text));
	ck_assert_int_eq(of, (int64_t)strlen(text));
	quire_requests_close(requests);
}

START_TEST(azure_rows_are_read_over_the_end_of_a_leap_day)
{
	static const char text[] = AZURE "\r\n"
					 "2024-02-28 23:59:59.9999999,4808,10\r\n"
					 "2024-02-29 00:00:00.0000000,0,8\r\n"
					 "2024-03-01 00:00:00.5,110,0\r\n"
					 "2024-03-01 00:00:01,2147483647,27";
	const struct quire_request_row rows[] = {
		{0, 4808, 10, {0}},
		{100, 0, 8, {0}},
		{INT64_C(86400) * 1000000000 + 500000100, 110, 0, {0}},
		{INT64_C(86401) * 1000000000 + 100, 2147483647, 27, {0}},
	};

	check_rows(text, "azure", rows, 4);
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
		struct quire_request_row rows[] = {{0, 1, 1, {0}}, {0, 1, 1, {0}}};
		char text[200];

		snprintf(text, sizeof(text), AZURE "\n%s 00:00:00,1,1\n%s 00:00:00,1,1\n",
		         spans[i].from, spans[i].to);
		rows[1].arrival_ns = spans[i].days * 86400 * 1000000000;
		check_rows(text, "azure", rows, 2);
	}
}
END_TEST

/* Seconds as programs print them: with a fraction, without one, with a tail of digits. */
START_TEST(columns_are_found_by_name_in_any_order)
{
	static const char burstgpt[] =
		"Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
		"5,ChatGPT,472,18,490,Conversation log\n"
		"45,,0,0,0,API log\n"
		"45.25,GPT-4,7,0,7,\n";
	const struct quire_request_row burstgpt_rows[] = {
		{0, 472, 18, {0}},
		{INT64_C(40000000000), 0, 0, {0}},
		{INT64_C(40250000000), 7, 0, {0}},
	};
	static const char vidur[] =
		"pd_ratio,num_decode_tokens,arrived_at,num_prefill_tokens\r\n"
		"1.5,44,0.0,374\r\n"
		"1.5,109,4.31457900000000002,396\r\n"
		"1.5,1,4.3145790010,2\r\n";
	const struct quire_request_row vidur_rows[] = {
		{0, 374, 44, {0}},
		{INT64_C(4314579000), 396, 109, {0}},
		{INT64_C(4314579001), 2, 1, {0}},
	};
	static const char timeless[] = "num_prefill_tokens,num_decode_tokens\n1,2\n3,4";
	const struct quire_request_row timeless_rows[] = {{0, 1, 2, {0}}, {0, 3, 4, {0}}};
	static const char marked[] = /* a byte order mark is not of a column's name */
		"\xef\xbb\xbf"
		"arrived_at,num_prefill_tokens,num_decode_tokens\n7,1,2\n9,3,4\n";
	const struct quire_request_row marked_rows[] = {
		{0, 1, 2, {0}},
		{INT64_C(2000000000), 3, 4, {0}},
	};

	check_rows(burstgpt, "burstgpt", burstgpt_rows, 3);
	check_rows(vidur, "vidur", vidur_rows, 3);
	check_rows(timeless, "vidur", timeless_rows, 2);
	check_rows(marked, "vidur", marked_rows, 2);
}
END_TEST

/* A prompt of 1, 512 and 513 tokens has 1, 1 and 2 blocks, an empty one none. */
START_TEST(mooncake_rows_are_read_with_the_names_of_their_blocks)
{
	static const char text[] =
		"{\"timestamp\": 3000, \"input_length\": 513, \"output_length\": 500, "
		"\"hash_ids\": [0, 9223372036854775807]}\n"
		"{\"timestamp\": 3000, \"input_length\": 0, \"output_length\": 0, "
		"\"hash_ids\": []}\n"
		"{\"output_length\": 1, \"timestamp\": 6001, \"input_length\": 7}\r\n"
		"{\"timestamp\": 6001, \"hash_ids\": [46], \"input_length\": 512, "
		"\"output_length\": 2}\n"
		"{\"timestamp\": 6001, \"hash_ids\": [47], \"input_length\": 1, "
		"\"output_length\": 3}";
	static const int64_t keys[] = {0, INT64_MAX, 46, 47};
	const struct quire_request_row rows[] = {
		{0, 513, 500, {512, 2, keys}},
		{0, 0, 0, {0}},
		{INT64_C(3001000000), 7, 1, {0}},
		{INT64_C(3001000000), 512, 2, {512, 1, keys + 2}},
		{INT64_C(3001000000), 1, 3, {512, 1, keys + 3}},
	};

	check_rows(text, "mooncake", rows, 5);
}
END_TEST

/*
 * Blocks of 4 tokens.  Arrivals are those of the main thread, 1.5, 2, 2 and 9 s, and those
 * of the sub-agents, which began at 1.25 and 2: 1.25, 1.25 + 0.75 = 2, 2 + 0 and 2 + 7.5.
 * At 2 s there are four, in the order of the file.  What is less than a nanosecond is cut
 * off.  A prompt of 11, 3 and 0 tokens has 2, 0 and 0 whole blocks.
 */
START_TEST(turns_of_a_session_come_in_the_order_of_their_arrival)
{
	static const char text[] =
		"{\"id\":\"a\",\"block_size\":4,\"hash_id_scope\":\"local\","
		"\"requests\":["
		"{\"t\":1.5,\"type\":\"n\",\"in\":11,\"out\":5,\"hash_ids\":[0,7],"
		"\"stop\":\"\"},"
		"{\"t\":1.25,\"type\":\"subagent\",\"status\":\"completed\","
		"\"requests\":["
		"{\"t\":0.0,\"type\":\"s\",\"in\":3,\"out\":1,\"hash_ids\":[]},"
		"{\"t\":0.75,\"type\":\"s\",\"in\":4,\"out\":2,\"hash_ids\":[9]}]},"
		"{\"t\":2,\"type\":\"s\",\"in\":0,\"out\":0,\"hash_ids\":[]},"
		"{\"t\":2,\"type\":\"subagent\",\"requests\":["
		"{\"t\":7.5000000019,\"type\":\"n\",\"in\":8,\"out\":3,"
		"\"hash_ids\":[9,9223372036854775807]},"
		"{\"t\":0,\"type\":\"n\",\"in\":5,\"out\":4,\"hash_ids\":[1]}]},"
		"{\"requests\":[],\"type\":\"subagent\",\"t\":0},"
		"{\"t\":9,\"type\":\"n\",\"in\":12,\"out\":7,\"hash_ids\":[0,7,8]},"
		"{\"t\":2.0,\"type\":\"n\",\"in\":11,\"out\":6,\"hash_ids\":[0,7]}"
		"],\"totals\":{\"input\":54}}\n"
		" \t\r\n\n";
	static const int64_t keys[] = {0, 7, 8, 9, INT64_MAX, 1};
	const struct quire_request_row rows[] = {
		{0, 3, 1, {0}},
		{250000000, 11, 5, {4, 2, keys}},
		{750000000, 4, 2, {4, 1, keys + 3}},
		{750000000, 0, 0, {0}},
		{750000000, 5, 4, {4, 1, keys + 5}},
		{750000000, 11, 6, {4, 2, keys}},
		{INT64_C(7750000000), 12, 7, {4, 3, keys}},
		{INT64_C(8250000001), 8, 3, {4, 2, keys + 3}},
	};
	static const char mooncake[] = /* it has a time of its own */
		"{\"timestamp\":5,\"requests\":[],\"input_length\":1,"
		"\"output_length\":2}";
	const struct quire_request_row mooncake_rows[] = {{0, 1, 2, {0}}};

	check_rows(text, "session", rows, 8);
	check_rows(mooncake, "mooncake", mooncake_rows, 1);
}
END_TEST

START_TEST(a_plan_trace_is_told_from_a_request_trace)
{
	struct quire_requests *requests;
	struct quire_refusal refusal;

	ck_assert_int_eq(open_text("{\"version\":9, \"quire\":\"plan-trace\"", &requests,
	                           &refusal),
	                 QUIRE_INVALID);
	ck_assert_int_eq(refusal.line, 1);
	ck_assert_ptr_nonnull(strstr(refusal.what, "a plan trace, not a request trace"));
	unlink(temporary.path);
	ck_assert_int_eq(quire_requests_open(temporary.path, &requests, NULL), QUIRE_IO);
}
END_TEST

#define ROW      "2023-11-16 18:17:03.9799600,4808,10\n"
#define BURSTGPT "Timestamp,Request tokens,Response tokens"
#define JSON_ROW "{\"timestamp\":5,\"input_length\":1,\"output_length\":1}\n"

#define IDS(input, ids)                                                \
	"{\"timestamp\":6,\"output_length\":1,\"input_length\":" input \
	",\"hash_ids\":" ids "}\n"

#define SESSION(requests) "{\"block_size\":4,\"requests\":" requests "}\n"
#define TURN(t, ids) \
	"{\"type\":\"n\",\"t\":" t ",\"in\":7,\"out\":1,\"hash_ids\":" ids "}"
#define SUBAGENT(t, requests) \
	"{\"type\":\"subagent\",\"t\":" t ",\"requests\":" requests "}"

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
	{AZURE "\n\n", 2,
         "TIMESTAMP must be YYYY-MM-DD HH:MM:SS[.fraction] of 1970..2199, "
         "got \"\""},
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
	{AZURE "\n2023-01-01 18:17:04.12x,1,1", 2, "TIMESTAMP must be"},
	{AZURE "\n2023-01-01 18:17:04", 2,
         "must have 3 fields, as the first line, got 1"},
	{AZURE "\n2023-01-01 18:17:04,-1,1", 2, "ContextTokens must be"},
	{AZURE "\n2023-01-01 18:17:04,2147483648,1", 2, "ContextTokens must be"},
	{AZURE "\n2023-01-01 18:17:04,99999999999999999999,1", 2,
         "ContextTokens must be"},
	{AZURE "\n2023-01-01 18:17:04,1.5,1", 2, "ContextTokens must be"},
	{AZURE "\n2023-01-01 18:17:04,1", 2,
         "must have 3 fields, as the first line, got 2"},
	{AZURE "\n2023-01-01 18:17:04,1,", 2, "GeneratedTokens must be"},
	{AZURE "\n2023-01-01 18:17:04,1,x", 2, "GeneratedTokens must be"},
	{AZURE "\n2023-01-01 18:17:04,1,2,3", 2,
         "must have 3 fields, as the first line, got 4"},
	{AZURE "\n2023-01-01 18:17:04,1,2147483648", 2, "GeneratedTokens must be"},
	{AZURE "\n" ROW "2023-11-16 18:17:03.9799599,1,1", 3,
         "TIMESTAMP must not be before the row above, got one 1e-07 s earlier"},
	{BURSTGPT "\n-1,1,1", 2, "Timestamp must be seconds"},
	{BURSTGPT "\n1.,1,1", 2, "Timestamp must be seconds"},
	{BURSTGPT "\n1e3,1,1", 2, "Timestamp must be seconds"},
	{BURSTGPT "\n7274016000,1,1", 2, "Timestamp must be seconds"},
	{BURSTGPT "\n,1,1", 2, "Timestamp must be seconds"},
	{BURSTGPT "\n1,x,1", 2,
         "Request tokens must be an integer 0..2147483647, got \"x\""},
	{BURSTGPT "\n1,1,1.0", 2, "Response tokens must be"},
	{BURSTGPT "\n2,1,1\n1.5,1,1", 3, "Timestamp must not be before the row above"},
	{"Timestamp,Request tokens\n1,1", 1, "not a request trace"},
	{"timestamp,Request tokens,Response tokens\n1,1,1", 1, "not a request trace"},
	{"num_prefill_tokens,num_decode_tokens\n1,", 2, "num_decode_tokens must be"},
	{"num_prefill_tokens,num_decode_tokens,x\n1,1", 2, "must have 3 fields"},
	{"num_prefill_tokens,num_decode_tokens,num_decode_tokens\n1,2,3\n", 1,
         "must name the column num_decode_tokens once"},
	{"Request tokens,Timestamp,Request tokens,Response tokens\n1,2,3,4\n", 1,
         "must name the column Request tokens once"},
	{AZURE ",TIMESTAMP\n" ROW, 1, "must name the column TIMESTAMP once"},
	{"arrived_at,num_prefill_tokens,num_decode_tokens\nx,1,1", 2,
         "arrived_at must be"},
	{"{}", 1, "timestamp must be an integer"},
	{"{\"timestamp\":1.5}", 1, "timestamp must be an integer"},
	{"{\"timestamp\":-1}", 1, "timestamp must be an integer"},
	{"{\"timestamp\":9000000000000000}", 1, "timestamp must be an integer"},
	{JSON_ROW "{\"timestamp\":6}", 2, "input_length must be"},
	{JSON_ROW "{\"timestamp\":6,\"input_length\":1}", 2, "output_length must be"},
	{JSON_ROW "{\"timestamp\":6,\"input_length\":1,\"output_length\":2147483648}", 2,
         "output_length must be"},
	{JSON_ROW "{\"timestamp\":4,\"input_length\":1,\"output_length\":1}", 2,
         "timestamp must not be before the row above, got one 0.001 s earlier"},
	{JSON_ROW IDS("513", "[1]"), 2,
         "hash_ids must be 2 ids, one for each 512 tokens of input_length 513, got 1"},
	{JSON_ROW IDS("512", "[1,2]"), 2, "hash_ids must be 1 ids"},
	{JSON_ROW IDS("0", "[1]"), 2, "hash_ids must be 0 ids"},
	{JSON_ROW IDS("1", "[]"), 2, "hash_ids must be 1 ids"},
	{JSON_ROW IDS("1", "3"), 2, "hash_ids must be an array, got 3"},
	{JSON_ROW IDS("1", "null"), 2, "hash_ids must be an array, got null"},
	{JSON_ROW IDS("513", "[1,-1]"), 2, "hash_ids[1]: number must be an integer 0.."},
	{JSON_ROW IDS("513", "[1.5,1]"), 2, "hash_ids[0]: number must be an integer 0.."},
	{JSON_ROW "{\"timestamp\":6,\"input_le", 2, "truncated"},
	{JSON_ROW "\n" JSON_ROW, 2, "JSON object"},
	{"{\"requests\":[]}", 1,
         "block_size must be an integer 1..2147483647, got nothing"},
	{"{\"block_size\":0,\"requests\":[]}", 1, "block_size must be an integer 1.."},
	{"{\"block_size\":2147483648,\"requests\":[]}", 1, "block_size must be"},
	{SESSION("7"), 1, "requests must be an array, got 7"},
	{SESSION("[]"), 1, "requests must hold at least one turn"},
	{SESSION("[" SUBAGENT("1", "[]") "]"), 1, "requests must hold at least one turn"},
	{SESSION("[7]"), 1, "requests[0] must be an object, got 7"},
	{SESSION("[" TURN("1", "[1]") ",{}]"), 1,
         "requests[1].type must be \"n\", \"s\" or \"subagent\", got nothing"},
	{SESSION("[{\"type\":\"nn\"}]"), 1,
         "requests[0].type must be \"n\", \"s\" or \"subagent\", got the string \"nn\""},
	{SESSION("[{\"type\":\"n\\u0000\"}]"), 1, "requests[0].type must be"},
	{SESSION("[{\"type\":\"n\"}]"), 1,
         "requests[0].t must be seconds of 230 years at most, digits[.digits], got "
         "nothing"},
	{SESSION("[" TURN("-1", "[1]") "]"), 1, "requests[0].t must be seconds"},
	{SESSION("[" TURN("-0.5", "[1]") "]"), 1,
         "requests[0].t must be seconds of 230 years at most, digits[.digits], "
         "got the real number -0.5"},
	{SESSION("[" TURN("1e3", "[1]") "]"), 1, "requests[0].t must be seconds"},
	{SESSION("[" TURN("7274016000", "[1]") "]"), 1, "requests[0].t must be seconds"},
	{SESSION("[" TURN("7274016000.5", "[1]") "]"), 1, "requests[0].t must be"},
	{SESSION("[" TURN("\"1\"", "[1]") "]"), 1, "requests[0].t must be seconds"},
	{SESSION("[" SUBAGENT("null", "[]") "]"), 1, "requests[0].t must be seconds"},
	{SESSION("[" SUBAGENT("0", "{}") "]"), 1,
         "requests[0].requests must be an array, got an object"},
	{SESSION("[{\"type\":\"subagent\",\"t\":1}]"), 1,
         "requests[0].requests must be an array, got nothing"},
	{SESSION("[" SUBAGENT("0", "[" TURN("0", "[1]") ",true]") "]"), 1,
         "requests[0].requests[1] must be an object, got true"},
	{SESSION("[" SUBAGENT("0", "[" SUBAGENT("0", "[]") "]") "]"), 1,
         "requests[0].requests[0].type must be \"n\" or \"s\", got the string "
         "\"subagent\""},
	{SESSION("[" SUBAGENT("7000000000", "[" TURN("274016000", "[1]") "]") "]"), 1,
         "requests[0].requests[0].t must be seconds"},
	{SESSION("[{\"type\":\"n\",\"t\":0}]"), 1,
         "requests[0].in must be an integer 0..2147483647, got nothing"},
	{SESSION("[{\"type\":\"n\",\"t\":0,\"in\":2147483648}]"), 1,
         "requests[0].in must be"},
	{SESSION("[{\"type\":\"n\",\"t\":0,\"in\":1,\"out\":2147483648}]"), 1,
         "requests[0].out must be an integer 0..2147483647, got 2147483648"},
	{SESSION("[{\"type\":\"n\",\"t\":0,\"in\":1,\"out\":0}]"), 1,
         "requests[0].hash_ids must be an array, got nothing"},
	{SESSION("[" TURN("0", "[1]") "," TURN("0", "[1,2]") "]"), 1,
         "requests[1].hash_ids must be 1 ids, one for each whole 4 tokens of in 7, got "
         "2"},
	{SESSION("[" SUBAGENT("0", "[" TURN("0", "[]") "]") "]"), 1,
         "requests[0].requests[0].hash_ids must be 1 ids"},
	{SESSION("[" TURN("0", "[-1]") "]"), 1,
         "requests[0].hash_ids[0]: number must be an integer 0.."},
	{SESSION("[" TURN("0", "[1]") "],\"x\":99999999999999999999"), 1,
         "a number is too large for 64 bits at column"},
	{SESSION("[" TURN("0", "[1]") "]") SESSION("[" TURN("0", "[1]") "]"), 2,
         "must be blank: a session is one line, and another one is another file"},
	{SESSION("[" TURN("0", "[1]") "]") "\n \r\n }", 4, "must be blank"},
	{SESSION("[" TURN("0", "[1]") "]") "\xc2\xa0", 2, "must be blank"},
	{"{\n\"block_size\":4}\n", 1, "must be one JSON object"},
	{"{\"block_size\":4,\"requests\":[{\"type\":\"n\",", 1, "truncated"},
};

/* Read to the end, or to the first refusal. */
static enum quire_status read_all(struct quire_requests *requests,
                                  struct quire_refusal *refusal)
{
	struct quire_request_row row;
	enum quire_status status;

	do
		status = quire_requests_next(requests, &row, refusal);
	while (status == QUIRE_OK);
	return status;
}

START_TEST(every_fault_of_a_request_trace_is_refused_with_line_and_field)
{
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		struct quire_requests *requests = NULL;
		struct quire_refusal refusal, again;
		enum quire_status status = open_text(faults[i].text, &requests, &refusal);

		if (status == QUIRE_OK) {
			status = read_all(requests, &refusal);
			ck_assert_int_eq(read_all(requests, &again), status);
			ck_assert_str_eq(again.what, refusal.what);
			ck_assert_int_eq(again.line, refusal.line);
		}
		ck_assert_msg(status == QUIRE_FORMAT, "fault %zu is read", i);
		ck_assert_int_eq(refusal.line, faults[i].line);
		ck_assert_msg(strstr(refusal.what, faults[i].what) != NULL,
		              "fault %zu: \"%s\" lacks \"%s\"", i, refusal.what,
		              faults[i].what);
		quire_requests_close(requests);
	}
}
END_TEST

START_TEST(a_wrong_number_of_names_is_told_in_numbers)
{
	struct quire_requests *requests;
	struct quire_refusal refusal;

	ck_assert_int_eq(open_text(IDS("1025", "[1]"), &requests, &refusal), QUIRE_OK);
	ck_assert_int_eq(read_all(requests, &refusal), QUIRE_FORMAT);
	ck_assert_int_eq(refusal.expected, 3);
	ck_assert_int_eq(refusal.got, 1);
	quire_requests_close(requests);
	ck_assert_int_eq(
		open_text(SESSION("[" TURN("0", "[1,2,3]") "]"), &requests, &refusal),
		QUIRE_OK);
	ck_assert_int_eq(read_all(requests, &refusal), QUIRE_FORMAT);
	ck_assert_int_eq(refusal.expected, 1);
	ck_assert_int_eq(refusal.got, 3);
	quire_requests_close(requests);
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
	tcase_add_test(cases, columns_are_found_by_name_in_any_order);
	tcase_add_test(cases, mooncake_rows_are_read_with_the_names_of_their_blocks);
	tcase_add_test(cases, turns_of_a_session_come_in_the_order_of_their_arrival);
	tcase_add_test(cases, a_plan_trace_is_told_from_a_request_trace);
	tcase_add_test(cases,
	               every_fault_of_a_request_trace_is_refused_with_line_and_field);
	tcase_add_test(cases, a_wrong_number_of_names_is_told_in_numbers);
	suite_add_tcase(suite, cases);
	return run_suite(suite);
}
