/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "random_plan.h"
#include "tests/run_suite.h"
#include "temporary.h"

#include <quire/plans/trace.h>

#include <stdio.h>

#define HEADER                                                                         \
	"{\"quire\":\"plan-trace\",\"version\":1,\"cache\":{\"layout\":\"NHD\","       \
	"\"dtype\":\"bf16\","                                                          \
	"\"num_layers\":1,\"num_kv_heads\":2,\"head_dim\":8,\"page_size\":16},"        \
	"\"pool\":{\"num_pages\":64,\"sink\":true},\"limits\":{\"rows\":4,\"tokens\":" \
	"8192,"                                                                        \
	"\"requests\":1024,\"seq_tokens\":1024,\"labels\":4,\"tables\":3,\"table_"     \
	"pages\":99},\"source\":\"by hand\"}"

static const struct quire_trace_header header = {
	.layout = "NHD",
	.dtype = "bf16",
	.num_layers = 1,
	.num_kv_heads = 2,
	.head_dim = 8,
	.page_size = 16,
	.num_pages = 64,
	.sink = true,
	.rows_max = 4,
	.tokens_max = 8192,
	.requests_max = 1024,
	.seq_tokens_max = 1024,
	.request_labels_max = 4,
	.tables_max = 3,
	.table_pages_max = 99,
	.source = "by hand",
};

static struct temporary temporary;

static void setup(void)
{
	temporary_make(&temporary);
}

static void teardown(void)
{
	temporary_end(&temporary);
}

static enum quire_status open_text(const char *text, size_t size,
                                   struct quire_trace_reader **reader,
                                   struct quire_refusal *refusal)
{
	temporary_fill(&temporary, text, size);
	return quire_trace_open(temporary.path, reader, refusal);
}

/* ---- round trip ---- */

static const char *const labels[] = {
	"main",     "a \"quoted\" \\ one",
	"\x01\n\t", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x93\x84",
	"/",        "1234567890123456789012345678901",
};

struct random_record {
	struct quire_trace_record record;
	struct quire_step step;
	struct quire_segment segments[4];
	struct quire_combined combined[2];
	const char *names[3];
};

static void random_submit(struct random_record *random, uint64_t *s)
{
	struct quire_step *step = &random->step;

	step->segments = random->segments;
	step->num_segments = random_in(s, 1, 4);
	for (int32_t i = 0; i < step->num_segments; i++)
		random->segments[i] = (struct quire_segment){
			.request = random_in(s, 0, 3) == 0
		                           ? QUIRE_REQUEST_MAX
		                           : random_next(s) >> random_in(s, 1, 63),
			.label = labels[random_in(s, 0, 5)],
			.span = random_in(s, 0, 3) == 0 ? QUIRE_TOKENS_MAX
		                                        : random_in(s, 0, 20),
			.at = random_in(s, 0, 3) == 0 ? QUIRE_AT_ANY
		                                      : random_in(s, 0, INT32_MAX - 1),
		};
	if (random_in(s, 0, 1) == 0) {
		step->bucket_tokens = random_in(s, 1, QUIRE_TOKENS_MAX);
		step->bucket_rows = random_in(s, 1, QUIRE_ROWS_MAX);
	}
	step->combined = random->combined;
	step->num_combined = random_in(s, 0, 2);
	for (int32_t i = 0; i < 3; i++)
		random->names[i] = labels[random_in(s, 0, 5)];
	random->combined[0] = (struct quire_combined){"z \" z", random->names, 2};
	random->combined[1] =
		(struct quire_combined){"a", random->names + 1, random_in(s, 0, 2)};
	step->flags = (uint32_t)random_in(s, 0, 3);
}

static void random_record_make(struct random_record *random, uint64_t *s)
{
	struct quire_trace_record *record = &random->record;

	memset(random, 0, sizeof(*random));
	record->command.kind = (enum quire_command_kind)random_in(s, 0, 3);
	record->command.request = random_next(s) >> random_in(s, 1, 63);
	record->command.label = labels[random_in(s, 0, 5)];
	record->command.keep_pages = random_in(s, 0, 1);
	record->command.step = &random->step;
	random_submit(random, s);
	record->has_outcome = random_in(s, 0, 1) == 0;
	record->outcome.status = (enum quire_status)random_in(s, 0, QUIRE_END);
	record->outcome.detail =
		random_in(s, 0, 2) == 0 ? INT64_MIN : random_in(s, 0, 99) - 50;
	record->outcome.has_digest = random_in(s, 0, 1) == 0;
	record->outcome.digest = random_next(s) >> random_in(s, 0, 63);
}

static void compare_steps(const struct quire_step *got, const struct quire_step *right)
{
	ck_assert_int_eq(got->num_segments, right->num_segments);
	for (int32_t i = 0; i < right->num_segments; i++) {
		SAME(got->segments[i].request, right->segments[i].request);
		SAME(strcmp(got->segments[i].label, right->segments[i].label), 0);
		SAME(got->segments[i].span, right->segments[i].span);
		SAME(got->segments[i].at, right->segments[i].at);
		SAME(got->segments[i].tag, 0);
	}
	SAME(got->bucket_tokens, right->bucket_tokens);
	SAME(got->bucket_rows, right->bucket_rows);
	SAME(got->flags, right->flags);
	SAME(got->num_combined, right->num_combined);
	for (int32_t i = 0; i < right->num_combined; i++) {
		SAME(strcmp(got->combined[i].name, right->combined[i].name), 0);
		SAME(got->combined[i].num_labels, right->combined[i].num_labels);
		for (int32_t j = 0; j < right->combined[i].num_labels; j++)
			SAME(strcmp(got->combined[i].labels[j],
			            right->combined[i].labels[j]),
			     0);
	}
	SAME(got->num_work, 0);
	SAME(got->run == NULL, true);
}

static void compare_records(const struct quire_trace_record *got,
                            const struct quire_trace_record *right, int64_t line)
{
	SAME(got->line, line);
	SAME(got->id, right->id);
	SAME(got->command.kind, right->command.kind);
	if (right->command.kind == QUIRE_COMMAND_SUBMIT)
		compare_steps(got->command.step, right->command.step);
	else
		SAME(got->command.request, right->command.request);
	if (right->command.kind == QUIRE_COMMAND_RESET) {
		SAME(strcmp(got->command.label, right->command.label), 0);
		SAME(got->command.keep_pages, right->command.keep_pages);
	}
	SAME(got->has_outcome, right->has_outcome);
	if (!right->has_outcome)
		return;
	SAME(got->outcome.status, right->outcome.status);
	SAME(got->outcome.detail, right->outcome.detail);
	SAME(got->outcome.has_digest, right->outcome.has_digest);
	if (right->outcome.has_digest)
		SAME(got->outcome.digest, right->outcome.digest);
}

START_TEST(what_is_written_is_read_back)
{
	uint64_t s = 11, again = 11;
	struct quire_trace_writer *writer;
	struct quire_trace_reader *reader;
	struct quire_trace_record got;
	struct random_record random;
	int64_t done, size;

	ck_assert_int_eq(quire_trace_create(temporary.path, &header, &writer, NULL),
	                 QUIRE_OK);
	for (int i = 0; i < 5000; i++) {
		random_record_make(&random, &s);
		random.record.id = i % 3 == 0 ? (uint64_t)i * 7 + 1 : 0;
		SAME(quire_trace_write(writer, &random.record, NULL), QUIRE_OK);
	}
	ck_assert_int_eq(quire_trace_commit(writer, NULL), QUIRE_OK);
	ck_assert_int_eq(temporary_count(&temporary), 1);
	ck_assert_int_eq(quire_trace_open(temporary.path, &reader, NULL), QUIRE_OK);
	ck_assert_mem_eq(quire_trace_header(reader), &header, sizeof(header));
	for (int i = 0; i < 5000; i++) {
		random_record_make(&random, &again);
		random.record.id = i % 3 == 0 ? (uint64_t)i * 7 + 1 : 0;
		SAME(quire_trace_next(reader, &got, NULL), QUIRE_OK);
		compare_records(&got, &random.record, i + 2);
	}
	ck_assert_int_eq(quire_trace_next(reader, &got, NULL), QUIRE_END);
	quire_trace_position(reader, &done, &size);
	ck_assert_int_eq(done, size);
	ck_assert_int_gt(size, 5000);
	quire_trace_close(reader);
}
END_TEST

START_TEST(defaults_and_unknown_fields_are_read)
{
	static const char text[] = HEADER "\n"
					  "{\"do\":\"submit\",\"later\":{\"x\":[1]},"
					  "\"segments\":[[7,\"a\",5],[8,\"b\",0,null]],"
					  "\"commit\":true,\"no_wait\":false}\n"
					  "{\"request\":3,\"do\":\"reset\",\"outcome\":{"
					  "\"status\":\"NO_REQUEST\"}}\r\n";
	struct quire_trace_reader *reader;
	struct quire_trace_record got;

	ck_assert_int_eq(open_text(text, sizeof(text) - 1, &reader, NULL), QUIRE_OK);
	ck_assert_int_eq(quire_trace_next(reader, &got, NULL), QUIRE_OK);
	ck_assert_int_eq(got.command.step->num_segments, 2);
	ck_assert_int_eq(got.command.step->segments[0].at, QUIRE_AT_ANY);
	ck_assert_int_eq(got.command.step->segments[1].at, QUIRE_AT_ANY);
	ck_assert_uint_eq(got.command.step->flags, 0);
	ck_assert_int_eq(got.command.step->bucket_rows, 0);
	ck_assert(!got.has_outcome);
	ck_assert_int_eq(quire_trace_next(reader, &got, NULL), QUIRE_OK);
	ck_assert_str_eq(got.command.label, "main");
	ck_assert_int_eq(got.command.keep_pages, 0);
	ck_assert_int_eq(got.outcome.status, QUIRE_NO_REQUEST);
	ck_assert_int_eq(got.outcome.detail, 0);
	ck_assert(!got.outcome.has_digest);
	quire_trace_close(reader);
}
END_TEST

/* ---- refusals ---- */

/* Replace the first @old of the header. */
static const struct {
	const char *old, *new, *what;
} header_faults[] = {
	{"plan-trace", "plan", "quire must be \"plan-trace\""},
	{"\"quire\"", "\"q\"", "quire must be \"plan-trace\""},
	{"{\"quire\"", "[\"quire\"", "not a plan trace"},
	{"true}", "true", "JSON"},
	{"\"version\":1", "\"version\":2", "version must be 1, got 2"},
	{"\"version\":1", "\"version\":\"1\"", "version must be an integer"},
	{"\"cache\":", "\"cash\":", "cache must be an object, got nothing"},
	{"\"pool\":", "\"pol\":", "pool must be an object, got nothing"},
	{"\"limits\":{", "\"limits\":3,\"l\":{", "limits must be an object, got 3"},
	{"\"NHD\"", "\"XYZ\"", "cache.layout must be NHD, HND or MLA, got \"XYZ\""},
	{"\"NHD\"", "7", "cache.layout must be a string of 1..15 bytes, got 7"},
	{"\"bf16\"", "\"int8\"",
         "cache.dtype must be f32, f16, bf16, e4m3 or e5m2, got \"int8\""},
	{"\"bf16\"", "\"12345678901234567\"", "cache.dtype must be a string of 1..15"},
	{"\"num_layers\":1", "\"num_layers\":0",
         "cache.num_layers must be an integer 1.."},
	{"\"num_kv_heads\":2", "\"num_kv_heads\":2.5", "cache.num_kv_heads must be"},
	{"\"head_dim\":8", "\"head_dim\":null", "cache.head_dim must be an integer"},
	{"\"page_size\":16", "\"page_size\":0",
         "cache.page_size must be an integer 1..1048576, got 0"},
	{"\"page_size\":16", "\"page_size\":3000000000",
         "cache.page_size must be an integer 1..1048576, got 3000000000"},
	{"\"page_size\":16", "\"page_size\":-16", "1..1048576, got -16"},
	{"\"page_size\":16", "\"page_size\":16.0", "1..1048576, got the real number 16"},
	{"\"page_size\":16", "\"page_size\":\"16\"", "1..1048576, got the string \"16\""},
	{"\"page_size\":16", "\"page_size\":99999999999999999999999",
         "cache.page_size must be an integer 1..1048576"},
	{"\"page_size\":16", "\"x\":16",
         "cache.page_size must be an integer 1..1048576, got nothing"},
	{"\"num_pages\":64", "\"num_pages\":0",
         "pool.num_pages must be an integer 1..16777216"},
	{"\"num_pages\":64", "\"num_pages\":16777217", "1..16777216, got 16777217"},
	{"\"num_pages\":64", "\"num_pages\":1e999", ""},
	{"\"sink\":true", "\"sink\":1", "pool.sink must be true or false, got 1"},
	{",\"sink\":true", "", "pool.sink must be true or false, got nothing"},
	{"\"rows\":4", "\"rows\":65537", "limits.rows must be an integer 1..65536"},
	{"\"tokens\":8192", "\"tokens\":16777217", "limits.tokens must be"},
	{"\"requests\":1024", "\"requests\":-1", "limits.requests must be"},
	{"\"seq_tokens\":1024", "\"seq_tokens\":2147483648", "limits.seq_tokens must be"},
	{"\"labels\":4", "\"labels\":65", "limits.labels must be an integer 1..64"},
	{"\"tables\":3", "\"tables\":0", "limits.tables must be an integer 1..16"},
	{"\"table_pages\":99", "\"t\":99", "limits.table_pages must be"},
	{"\"requests\":1024", "\"requests\":1048577", "limits.requests must be"},
	{"\"by hand\"", "5", "source must be a string of at most 255 bytes"},
	{"\"by hand\"", "\"x\",\"later\":99999999999999999999", "too large for 64 bits"},
	{"\"by hand\"", "\"x\",\"source\":\"y\"", "duplicate"},
};
#define HEADER_FAULTS (sizeof(header_faults) / sizeof(header_faults[0]))

START_TEST(every_fault_of_a_header_is_refused_by_name)
{
	for (size_t i = 0; i < HEADER_FAULTS; i++) {
		const char *place = strstr(HEADER, header_faults[i].old);
		struct quire_trace_reader *reader = NULL;
		struct quire_refusal refusal;
		char text[2048];

		ck_assert_ptr_nonnull(place);
		snprintf(text, sizeof(text), "%.*s%s%s\n", (int)(place - HEADER), HEADER,
		         header_faults[i].new, place + strlen(header_faults[i].old));
		ck_assert_int_eq(open_text(text, strlen(text), &reader, &refusal),
		                 QUIRE_FORMAT);
		ck_assert_ptr_null(reader);
		ck_assert_int_eq(refusal.status, QUIRE_FORMAT);
		ck_assert_int_eq(refusal.line, 1);
		ck_assert_msg(strstr(refusal.what, header_faults[i].what) != NULL,
		              "fault %zu: \"%s\" lacks \"%s\"", i, refusal.what,
		              header_faults[i].what);
	}
}
END_TEST

static const struct {
	const char *line, *what;
} line_faults[] = {
	{"", "JSON object"},
	{"nonsense", "JSON object"},
	{"[1]", "must be one JSON object"},
	{"{\"do\":\"open\",\"request\":1} x", "JSON object"},
	{"{\"do\":\"open\",\"request\":1,\"request\":2}", "duplicate"},
	{"{}", "do must be a string of 1..64 bytes, got nothing"},
	{"{\"do\":3}", "do must be a string"},
	{"{\"do\":\"opn\",\"request\":1}",
         "do must be open, submit, reset or close, got \"opn\""},
	{"{\"do\":\"open\"}",
         "request must be an integer 0..9223372036854775807, got nothing"},
	{"{\"do\":\"open\",\"request\":-1}", "request must be"},
	{"{\"do\":\"close\",\"request\":1.5}", "request must be"},
	{"{\"do\":\"close\",\"request\":9223372036854775808}", "request must be"},
	{"{\"do\":\"close\",\"request\":1,\"x\":9223372036854775808}",
         "too large for 64 bits"},
	{"{\"do\":\"reset\",\"request\":\"1\"}", "request must be"},
	{"{\"do\":\"reset\",\"request\":1,\"label\":\"\"}",
         "label must be a string of 1..31"},
	{"{\"do\":\"reset\",\"request\":1,\"label\":"
         "\"12345678901234567890123456789012\"}",
         "label must be a string of 1..31"},
	{"{\"do\":\"reset\",\"request\":1,\"label\":null}", "label must be a string"},
	{"{\"do\":\"reset\",\"request\":1,\"keep\":0}",
         "keep must be true or false, got 0"},
	{"{\"do\":\"submit\"}", "segments must be an array, got nothing"},
	{"{\"do\":\"submit\",\"segments\":{}}",
         "segments must be an array, got an object"},
	{"{\"do\":\"submit\",\"segments\":[]}",
         "segments must be 1..4 (limits.rows), got 0"},
	{"{\"do\":\"submit\",\"segments\":[[1,\"a\",1],[2,\"a\",1],[3,\"a\",1],[4,\"a\","
         "1],[5,\"a\",1]]}",
         "segments must be 1..4 (limits.rows), got 5"},
	{"{\"do\":\"submit\",\"segments\":[7]}",
         "segments[0] must be [request, label, span, at]"},
	{"{\"do\":\"submit\",\"segments\":[[7]]}", "segments[0] must be [request"},
	{"{\"do\":\"submit\",\"segments\":[[7,\"a\"]]}", "segments[0] must be [request"},
	{"{\"do\":\"submit\",\"segments\":[[7,\"a\",1,0,0]]}",
         "segments[0] must be [request"},
	{"{\"do\":\"submit\",\"segments\":[[7,\"a\",1],[-7,\"a\",1]]}",
         "segments[1]: request must be"},
	{"{\"do\":\"submit\",\"segments\":[[7,null,1]]}",
         "segments[0]: label must be a string"},
	{"{\"do\":\"submit\",\"segments\":[[7,\"a\",1],[8,\"a\",1],[9,\"a\",-4]]}",
         "segments[2]: span must be an integer 0..16777216, got -4"},
	{"{\"do\":\"submit\",\"segments\":[[7,\"a\",16777217]]}",
         "segments[0]: span must be"},
	{"{\"do\":\"submit\",\"segments\":[[7,\"a\",null]]}",
         "segments[0]: span must be"},
	{"{\"do\":\"submit\",\"segments\":[[7,\"a\",1,-1]]}", "segments[0]: at must be"},
	{"{\"do\":\"submit\",\"segments\":[[7,\"a\",1,2147483648]]}",
         "segments[0]: at must be"},
	{"{\"do\":\"submit\",\"segments\":[[7,\"a\",1]],\"bucket\":3}",
         "bucket must be [tokens, rows]"},
	{"{\"do\":\"submit\",\"segments\":[[7,\"a\",1]],\"bucket\":[3]}",
         "bucket must be [tokens, rows]"},
	{"{\"do\":\"submit\",\"segments\":[[7,\"a\",1]],\"bucket\":[0,3]}",
         "bucket.tokens must be"},
	{"{\"do\":\"submit\",\"segments\":[[7,\"a\",1]],\"bucket\":[3,65537]}",
         "bucket.rows must be"},
	{"{\"do\":\"submit\",\"segments\":[[7,\"a\",1]],\"combined\":[]}",
         "combined must be an object"},
	{"{\"do\":\"submit\",\"segments\":[[7,\"a\",1]],\"combined\":{\"\":[\"a\"]}}",
         "combined[0]: name must be 1..31 bytes"},
	{"{\"do\":\"submit\",\"segments\":[[7,\"a\",1]],\"combined\":{\"b\":\"a\"}}",
         "combined.b must be an array"},
	{"{\"do\":\"submit\",\"segments\":[[7,\"a\",1]],\"combined\":{\"b\":[1]}}",
         "combined[0]: label must be a string"},
	{"{\"do\":\"submit\",\"segments\":[[7,\"a\",1]],\"commit\":0}",
         "commit must be true or false"},
	{"{\"do\":\"submit\",\"segments\":[[7,\"a\",1]],\"no_wait\":\"\"}",
         "no_wait must be true or false"},
	{"{\"do\":\"open\",\"request\":1,\"id\":0}", "id must be an integer 1.."},
	{"{\"do\":\"open\",\"request\":1,\"id\":5}",
         "id must be above 5, the one before, got 5"},
	{"{\"do\":\"open\",\"request\":1,\"outcome\":3}", "outcome must be an object"},
	{"{\"do\":\"open\",\"request\":1,\"outcome\":{}}",
         "outcome.status must be a string"},
	{"{\"do\":\"open\",\"request\":1,\"outcome\":{\"status\":\"FINE\"}}",
         "outcome.status must be the name of a status, got \"FINE\""},
	{"{\"do\":\"open\",\"request\":1,\"outcome\":{\"status\":\"OK\",\"detail\":\"\"}"
         "}",
         "outcome.detail must be"},
	{"{\"do\":\"open\",\"request\":1,\"outcome\":{\"status\":\"OK\",\"digest\":"
         "\"0123\"}}",
         "outcome.digest must be a string of 16 digits"},
	{"{\"do\":\"open\",\"request\":1,\"outcome\":{\"status\":\"OK\",\"digest\":"
         "\"0123456789ABCDEF\"}}",
         "outcome.digest must be a string of 16 digits"},
	{"{\"do\":\"open\",\"request\":1,\"outcome\":{\"status\":\"OK\",\"digest\":7}}",
         "outcome.digest must be a string of 16 digits"},
	{"{\"do\":\"reset\",\"request\":1,\"label\":\"\xff\"}", "JSON object"},
	{"{\"do\":\"promote\",\"ticket\":1}", "do: \"promote\" is reserved in format 1"},
	{"{\"do\":\"abandon\"}", "\"abandon\" is reserved"},
	{"{\"do\":\"rewind\"}", "\"rewind\" is reserved"},
	{"{\"do\":\"release_front\"}", "\"release_front\" is reserved"},
	{"{\"do\":\"offload\"}", "\"offload\" is reserved"},
	{"{\"do\":\"reload\"}", "\"reload\" is reserved"},
	{"{\"do\":\"hold\"}", "\"hold\" is reserved"},
	{"{\"do\":\"drop\"}", "\"drop\" is reserved"},
	{"{\"do\":\"adopt\"}", "\"adopt\" is reserved"},
	{"{\"do\":\"offer\"}", "\"offer\" is reserved"},
	{"{\"do\":\"submit\",\"pre_forks\":[]}", "pre_forks is reserved in format 1"},
	{"{\"do\":\"submit\",\"post_forks\":[]}", "post_forks is reserved"},
	{"{\"do\":\"submit\",\"speculative\":true}", "speculative is reserved"},
	{"{\"do\":\"submit\",\"base\":1}", "base is reserved"},
	{"{\"do\":\"submit\",\"copy\":true}", "copy is reserved"},
};
#define LINE_FAULTS (sizeof(line_faults) / sizeof(line_faults[0]))

START_TEST(every_fault_of_a_command_is_refused_with_line_and_field)
{
	for (size_t i = 0; i < LINE_FAULTS; i++) {
		struct quire_trace_reader *reader;
		struct quire_trace_record got, before;
		struct quire_refusal refusal, again;
		char text[2048];

		snprintf(text, sizeof(text),
		         HEADER "\n{\"do\":\"open\",\"request\":1,\"id\":5}\n"
		                "%s\n{\"do\":\"open\",\"request\":2}\n",
		         line_faults[i].line);
		ck_assert_int_eq(open_text(text, strlen(text), &reader, NULL), QUIRE_OK);
		ck_assert_int_eq(quire_trace_next(reader, &got, NULL), QUIRE_OK);
		before = got;
		ck_assert_int_eq(quire_trace_next(reader, &got, &refusal), QUIRE_FORMAT);
		ck_assert_mem_eq(&got, &before, sizeof(got));
		ck_assert_int_eq(refusal.line, 3);
		ck_assert_msg(strstr(refusal.what, line_faults[i].what) != NULL,
		              "fault %zu: \"%s\" lacks \"%s\"", i, refusal.what,
		              line_faults[i].what);
		ck_assert_int_eq(quire_trace_next(reader, &got, &again), QUIRE_FORMAT);
		ck_assert_int_eq(again.line, 3);
		ck_assert_str_eq(again.what, refusal.what);
		quire_trace_close(reader);
	}
}
END_TEST

START_TEST(what_is_no_trace_at_all_is_refused)
{
	struct quire_trace_reader *reader = NULL;
	struct quire_refusal refusal;

	ck_assert_int_eq(open_text("", 0, &reader, &refusal), QUIRE_FORMAT);
	ck_assert_str_eq(refusal.what, "the file is empty");
	ck_assert_int_eq(open_text("\n", 1, &reader, &refusal), QUIRE_FORMAT);
	ck_assert_int_eq(open_text("TIMESTAMP,Con", 13, &reader, NULL), QUIRE_FORMAT);
	ck_assert_int_eq(quire_trace_open("no/such/file", &reader, &refusal), QUIRE_IO);
	ck_assert_ptr_nonnull(strstr(refusal.what, "no/such/file"));
	ck_assert_int_eq(quire_trace_open(temporary.folder, &reader, &refusal), QUIRE_IO);
	ck_assert_ptr_null(reader);
	quire_trace_close(NULL);
}
END_TEST

START_TEST(a_line_beyond_the_limit_is_refused_in_bounded_memory)
{
	size_t size = sizeof(HEADER) + QUIRE_TRACE_LINE_MAX + 1;
	char *text = malloc(size);
	struct quire_trace_reader *reader;
	struct quire_trace_record got;
	struct quire_refusal refusal;

	memset(text, ' ', size);
	memcpy(text, HEADER "\n", sizeof(HEADER));
	memcpy(text + sizeof(HEADER), "{\"do\":\"open\",\"request\":1}", 25);
	ck_assert_int_eq(open_text(text, size - 1, &reader, NULL), QUIRE_OK);
	ck_assert_int_eq(quire_trace_next(reader, &got, NULL), QUIRE_OK);
	quire_trace_close(reader);
	ck_assert_int_eq(open_text(text, size, &reader, NULL), QUIRE_OK);
	ck_assert_int_eq(quire_trace_next(reader, &got, &refusal), QUIRE_FORMAT);
	ck_assert_int_eq(refusal.line, 2);
	ck_assert_ptr_nonnull(strstr(refusal.what, "longer than"));
	quire_trace_close(reader);
	free(text);
}
END_TEST

START_TEST(cut_at_any_byte_the_whole_lines_before_stay_usable)
{
	static const char text[] = HEADER
		"\n"
		"{\"do\":\"open\",\"request\":1}\n"
		"{\"do\":\"submit\",\"segments\":[[1,\"main\",5,0]],\"combined\":{\"b\":["
		"\"main\"]}}\n"
		"{\"do\":\"reset\",\"request\":1,\"label\":\"main\",\"keep\":false}\n"
		"{\"do\":\"close\",\"request\":1}\n";
	static const enum quire_command_kind kinds[] = {
		QUIRE_COMMAND_OPEN,
		QUIRE_COMMAND_SUBMIT,
		QUIRE_COMMAND_RESET,
		QUIRE_COMMAND_CLOSE,
	};

	for (size_t cut = 1; cut < sizeof(text); cut++) {
		struct quire_trace_reader *reader;
		struct quire_trace_record got;
		struct quire_refusal refusal;
		int lines = 0; /* whole ones; a last one that lacks its newline alone
		                  counts */
		bool partial = text[cut - 1] != '\n' && text[cut] != '\n';

		for (size_t i = 0; i < cut; i++)
			lines += text[i] == '\n';
		lines += text[cut - 1] != '\n' && text[cut] == '\n';
		if (lines == 0) {
			SAME(open_text(text, cut, &reader, &refusal), QUIRE_FORMAT);
			SAME(strncmp(refusal.what, "truncated", 9), 0);
			continue;
		}
		SAME(open_text(text, cut, &reader, NULL), QUIRE_OK);
		for (int i = 0; i + 1 < lines; i++) {
			SAME(quire_trace_next(reader, &got, NULL), QUIRE_OK);
			SAME(got.command.kind, kinds[i]);
		}
		SAME(quire_trace_next(reader, &got, &refusal),
		     partial ? QUIRE_FORMAT : QUIRE_END);
		if (partial) {
			SAME(refusal.line, lines + 1);
			SAME(strncmp(refusal.what, "truncated", 9), 0);
		}
		quire_trace_close(reader);
	}
}
END_TEST

/* ---- writing ---- */

START_TEST(nothing_is_written_over_before_commit)
{
	struct quire_trace_record record = {.command.kind = QUIRE_COMMAND_OPEN};
	struct quire_trace_writer *writer;

	temporary_fill(&temporary, "old", 3);
	ck_assert_int_eq(quire_trace_create(temporary.path, &header, &writer, NULL),
	                 QUIRE_OK);
	for (int i = 0; i < 20000; i++)
		SAME(quire_trace_write(writer, &record, NULL), QUIRE_OK);
	ck_assert(temporary_holds(&temporary, "old"));
	quire_trace_discard(writer);
	ck_assert(temporary_holds(&temporary, "old"));
	ck_assert_int_eq(temporary_count(&temporary), 1);
	ck_assert_int_eq(quire_trace_create(temporary.path, &header, &writer, NULL),
	                 QUIRE_OK);
	ck_assert_int_eq(quire_trace_write(writer, &record, NULL), QUIRE_OK);
	ck_assert_int_eq(quire_trace_commit(writer, NULL), QUIRE_OK);
	ck_assert(temporary_holds(&temporary,
	                          HEADER "\n{\"do\":\"open\",\"request\":0}\n"));
	ck_assert_int_eq(temporary_count(&temporary), 1);
	quire_trace_discard(NULL);
}
END_TEST

START_TEST(a_full_disk_and_a_lost_folder_are_refused_cleanly)
{
	struct quire_trace_record record = {.command.kind = QUIRE_COMMAND_OPEN};
	enum quire_status status = QUIRE_OK;
	struct quire_trace_writer *writer;
	struct quire_refusal refusal;

	temporary_fill(&temporary, "old", 3);
	ck_assert_int_eq(quire_trace_create("/dev/full", &header, &writer, NULL),
	                 QUIRE_OK);
	ck_assert_int_eq(quire_trace_commit(writer, &refusal), QUIRE_IO);
	ck_assert_ptr_nonnull(strstr(refusal.what, "/dev/full"));
	ck_assert_int_eq(quire_trace_create("/dev/full", &header, &writer, NULL),
	                 QUIRE_OK);
	for (int i = 0; i < 100000 && status == QUIRE_OK; i++)
		status = quire_trace_write(writer, &record, &refusal);
	ck_assert_int_eq(status, QUIRE_IO);
	ck_assert_int_eq(quire_trace_write(writer, &record, &refusal), QUIRE_IO);
	quire_trace_discard(writer);
	ck_assert_int_eq(
		quire_trace_create("no/such/folder/x", &header, &writer, &refusal),
		QUIRE_IO);
	ck_assert_int_eq(quire_trace_create(temporary.folder, &header, &writer, &refusal),
	                 QUIRE_IO);
	ck_assert_int_eq(temporary_count(&temporary), 1);
	ck_assert(temporary_holds(&temporary, "old"));
}
END_TEST

START_TEST(a_writer_refuses_the_header_that_a_reader_would)
{
	struct quire_trace_writer *writer = NULL;
	struct quire_trace_header bad[8];
	struct quire_refusal refusal;

	for (int i = 0; i < 8; i++)
		bad[i] = header;
	strcpy(bad[0].layout, "NDH");
	strcpy(bad[1].dtype, "int8");
	bad[2].page_size = 0;
	bad[3].num_pages = QUIRE_PAGES_MAX + 1;
	bad[4].seq_tokens_max = -1;
	strcpy(bad[5].source, "\xc3(");
	memset(bad[6].source, 'x', sizeof(bad[6].source));
	strcpy(bad[7].layout, "MLA"); /* of two heads */
	for (int i = 0; i < 8; i++)
		ck_assert_int_eq(
			quire_trace_create(temporary.path, &bad[i], &writer, &refusal),
			QUIRE_INVALID);
	ck_assert_ptr_null(writer);
	ck_assert_int_eq(temporary_count(&temporary), 0);
}
END_TEST

/* One change each that makes a good submit bad. */
static void spoil(struct random_record *random, int fault)
{
	struct quire_trace_record *record = &random->record;

	switch (fault) {
	case 0:
		random->step.num_segments = 0;
		break;
	case 1:
		random->step.num_segments = 5;
		break;
	case 2:
		random->segments[0].span = -1;
		break;
	case 3:
		random->segments[0].span = QUIRE_TOKENS_MAX + 1;
		break;
	case 4:
		random->segments[0].at = -2;
		break;
	case 5:
		random->segments[0].request = QUIRE_REQUEST_MAX + 1;
		break;
	case 6:
		random->segments[0].label = "";
		break;
	case 7:
		random->segments[0].label = "\xed\xa0\x80";
		break; /* a surrogate */
	case 8:
		random->segments[0].label = "12345678901234567890123456789012";
		break;
	case 9:
		random->step.bucket_tokens = 0;
		random->step.bucket_rows = 3;
		break;
	case 10:
		random->step.flags = 4;
		break;
	case 11:
		random->step.num_combined = 2;
		random->combined[1].name = "z \" z";
		break;
	case 12:
		random->step.num_combined = 1;
		random->combined[0].name = NULL;
		break;
	case 13:
		record->command.step = NULL;
		break;
	case 14:
		record->id = 3;
		break;
	case 15:
		record->id = UINT64_MAX;
		break;
	case 16:
		record->has_outcome = true;
		record->outcome.status = (enum quire_status)77;
		break;
	case 17:
		record->command.kind = (enum quire_command_kind)9;
		break;
	case 18:
		record->command.kind = QUIRE_COMMAND_CLOSE;
		record->command.request = QUIRE_REQUEST_MAX + 1;
		break;
	default:
		record->command.kind = QUIRE_COMMAND_RESET;
		record->command.label = "\xc0\x80";
		break;
	}
}

START_TEST(a_writer_refuses_the_command_that_a_reader_would_and_goes_on)
{
	struct quire_trace_record good = {.command.kind = QUIRE_COMMAND_OPEN, .id = 3};
	struct quire_trace_writer *writer;
	struct quire_refusal refusal;
	struct random_record random;

	ck_assert_int_eq(quire_trace_create(temporary.path, &header, &writer, NULL),
	                 QUIRE_OK);
	ck_assert_int_eq(quire_trace_write(writer, &good, NULL), QUIRE_OK);
	for (int fault = 0; fault < 20; fault++) {
		uint64_t s = 3;

		random_record_make(&random, &s);
		random.record.command.kind = QUIRE_COMMAND_SUBMIT;
		spoil(&random, fault);
		ck_assert_msg(quire_trace_write(writer, &random.record, &refusal) ==
		                      QUIRE_INVALID,
		              "fault %d was written", fault);
		ck_assert_int_eq(refusal.status, QUIRE_INVALID);
	}
	good.id = 4;
	ck_assert_int_eq(quire_trace_write(writer, &good, NULL), QUIRE_OK);
	ck_assert_int_eq(quire_trace_commit(writer, NULL), QUIRE_OK);
	ck_assert(temporary_holds(&temporary,
	                          HEADER "\n{\"do\":\"open\",\"id\":3,\"request\":0}\n{"
	                                 "\"do\":\"open\",\"id\":4,\"request\":0}\n"));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("trace");
	TCase *cases = tcase_create("trace");

	tcase_add_checked_fixture(cases, setup, teardown);
	tcase_set_timeout(cases, 60);
	tcase_add_test(cases, what_is_written_is_read_back);
	tcase_add_test(cases, defaults_and_unknown_fields_are_read);
	tcase_add_test(cases, every_fault_of_a_header_is_refused_by_name);
	tcase_add_test(cases, every_fault_of_a_command_is_refused_with_line_and_field);
	tcase_add_test(cases, what_is_no_trace_at_all_is_refused);
	tcase_add_test(cases, a_line_beyond_the_limit_is_refused_in_bounded_memory);
	tcase_add_test(cases, cut_at_any_byte_the_whole_lines_before_stay_usable);
	tcase_add_test(cases, nothing_is_written_over_before_commit);
	tcase_add_test(cases, a_full_disk_and_a_lost_folder_are_refused_cleanly);
	tcase_add_test(cases, a_writer_refuses_the_header_that_a_reader_would);
	tcase_add_test(cases,
	               a_writer_refuses_the_command_that_a_reader_would_and_goes_on);
	suite_add_tcase(suite, cases);
	return run_suite(suite);
}
