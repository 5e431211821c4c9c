/* SPDX-License-Identifier: MIT */
/* What readers and writers of plan traces refuse, and in which words. */
#include "config.h"

#include "random_trace.h"

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
	{"\"table_pages\":99", "\"table_pages\":99,\"row_pages\":0",
         "limits.row_pages must be an integer 1..2147483647, got 0"},
	{"\"table_pages\":99", "\"table_pages\":99,\"row_pages\":null",
         "limits.row_pages must be an integer"},
	{"\"by hand\"", "\"a\\u0000b\"", "source must be a string of at most 255 bytes"},
	{"\"NHD\"", "\"NHD\\u0000\"",
         "cache.layout must be a string of 1..15 bytes, none"},
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
         "do must be open, close, submit, reset, rewind, release_front, promote or "
         "abandon, got \"opn\""},
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
	{"{\"do\":\"offload\"}", "\"offload\" is reserved"},
	{"{\"do\":\"reload\"}", "\"reload\" is reserved"},
	{"{\"do\":\"hold\"}", "\"hold\" is reserved"},
	{"{\"do\":\"drop\"}", "\"drop\" is reserved"},
	{"{\"do\":\"adopt\"}", "\"adopt\" is reserved"},
	{"{\"do\":\"offer\"}", "\"offer\" is reserved"},
	{"{\"do\":\"promote\"}",
         "ticket must be an integer 1..9223372036854775807, got nothing"},
	{"{\"do\":\"promote\",\"ticket\":0}", "ticket must be"},
	{"{\"do\":\"abandon\",\"ticket\":-1}", "ticket must be"},
	{"{\"do\":\"abandon\",\"ticket\":\"1\"}", "ticket must be"},
	{"{\"do\":\"abandon\",\"ticket\":9223372036854775808}", "ticket must be"},
	{"{\"do\":\"rewind\",\"tokens\":1}", "request must be"},
	{"{\"do\":\"rewind\",\"request\":1}",
         "tokens must be an integer 0..2147483647, got nothing"},
	{"{\"do\":\"rewind\",\"request\":1,\"tokens\":-1}", "tokens must be"},
	{"{\"do\":\"release_front\",\"request\":1,\"tokens\":2147483648}",
         "tokens must be"},
	{"{\"do\":\"release_front\",\"request\":1,\"tokens\":1.0}", "tokens must be"},
	{"{\"do\":\"rewind\",\"request\":1,\"tokens\":1,\"label\":\"\"}",
         "label must be a string of 1..31"},
	{"{\"do\":\"submit\",\"segments\":[[7,\"a\",1]],\"pre_forks\":{}}",
         "pre_forks must be an array, got an object"},
	{"{\"do\":\"submit\",\"segments\":[[7,\"a\",1]],\"post_forks\":null}",
         "post_forks must be an array"},
	{"{\"do\":\"submit\",\"segments\":[[7,\"a\",1]],\"pre_forks\":[\"a\"]}",
         "pre_forks[0] must be [source, target]"},
	{"{\"do\":\"submit\",\"segments\":[[7,\"a\",1]],\"post_forks\":[[\"a\",\"b\"],["
         "\"a\"]]}",
         "post_forks[1] must be [source, target]"},
	{"{\"do\":\"submit\",\"segments\":[[7,\"a\",1]],\"pre_forks\":[[\"a\",\"b\","
         "\"c\"]]}",
         "pre_forks[0] must be [source, target]"},
	{"{\"do\":\"submit\",\"segments\":[[7,\"a\",1]],\"pre_forks\":[[1,\"b\"]]}",
         "pre_forks[0]: source must be a string"},
	{"{\"do\":\"submit\",\"segments\":[[7,\"a\",1]],\"post_forks\":[[\"a\",\"\"]]}",
         "post_forks[0]: target must be a string of 1..31"},
	{"{\"do\":\"submit\",\"segments\":[[7,\"a\",1]],\"copy\":1}",
         "copy must be true or false, got 1"},
	{"{\"do\":\"submit\",\"segments\":[[7,\"a\",1]],\"speculative\":null}",
         "speculative must be true or false"},
	{"{\"do\":\"submit\",\"segments\":[[7,\"a\",1]],\"speculative\":true}",
         "id must be there: the submit is speculative"},
	{"{\"do\":\"submit\",\"segments\":[[7,\"a\",1]],\"id\":6,\"base\":5}",
         "base must stand in a speculative submit only"},
	{"{\"do\":\"submit\",\"segments\":[[7,\"a\",1]],\"base\":null}",
         "base must stand in a speculative submit only"},
	{"{\"do\":\"submit\",\"segments\":[[7,\"a\",1]],\"id\":6,\"speculative\":true,"
         "\"base\":0}",
         "base must be an integer 1.."},
	{"{\"do\":\"submit\",\"segments\":[[7,\"a\",1]],\"id\":6,\"speculative\":true,"
         "\"base\":\"5\"}",
         "base must be an integer 1.."},
	{"{\"do\":\"submit\",\"segments\":[[7,\"a\",1]],\"id\":6,\"speculative\":true,"
         "\"base\":6}",
         "base must be below the submit's own id 6, got 6"},
	{"{\"do\":\"reset\",\"request\":1,\"label\":\"a\\u0000\"}",
         "label must be a string of 1..31 bytes, none of them zero"},
	{"{\"do\":\"submit\",\"segments\":[[7,\"a\",1]],\"combined\":{\"a\\u0000\":[]}}",
         "combined[0]: name must be 1..31 bytes, none of them zero"},
	{"{\"do\":\"submit\",\"segments\":[[[7],{\"x\":[8]},1]]}",
         "segments[0]: request must be an integer 0..9223372036854775807, got an array"},
	{"{\"do\":\"submit\",\"segments\":[[7,{\"x\":[8]},1]]}",
         "segments[0]: label must be a string of 1..31 bytes, got an object"},
	{"{\"do\":\"open\",\"request\":1,\"prefix\":3}",
         "prefix must be an object, got 3"},
	{"{\"do\":\"open\",\"request\":1,\"prefix\":{\"keys\":[]}}",
         "prefix.tokens must be an integer 1..2147483647, got nothing"},
	{"{\"do\":\"open\",\"request\":1,\"prefix\":{\"tokens\":0,\"keys\":[]}}",
         "prefix.tokens must be an integer 1..2147483647, got 0"},
	{"{\"do\":\"open\",\"request\":1,\"prefix\":{\"tokens\":1}}",
         "prefix.keys must be an array, got nothing"},
	{"{\"do\":\"open\",\"request\":1,\"prefix\":{\"tokens\":1,\"keys\":[5,-1]}}",
         "prefix.keys[1]: number must be an integer 0..9223372036854775807, got -1"},
	{"{\"do\":\"open\",\"request\":1,\"outcome\":{\"status\":\"OK\",\"pages\":3}}",
         "outcome.pages must be an array, got 3"},
	{"{\"do\":\"open\",\"request\":1,\"outcome\":{\"status\":\"OK\",\"pages\":"
         "[63,64]}}",
         "outcome.pages[1]: number must be an integer 0..63, got 64"},
	{"{\"do\":\"open\",\"request\":1,\"outcome\":{\"status\":\"OK\",\"outside\":1}}",
         "outcome.outside must be true or false, got 1"},
	{"{\"do\":\"open\",\"request\":1,\"times\":3}", "times must be an array, got 3"},
	{"{\"do\":\"open\",\"request\":1,\"times\":[1]}",
         "times must be [given, decided] or [given, decided, issued], got 1"},
	{"{\"do\":\"open\",\"request\":1,\"times\":[1,2,3,4]}",
         "times must be [given, decided] or [given, decided, issued], got 4"},
	{"{\"do\":\"open\",\"request\":1,\"times\":[1,-2]}",
         "times[1]: ns must be an integer 0.."},
	{"{\"do\":\"open\",\"request\":1,\"times\":[1,2,null]}",
         "times[2]: ns must be an integer 0.."},
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

/* A submit with @pairs forks in the list @name. */
static enum quire_status read_forks(const char *name, int pairs,
                                    struct quire_refusal *refusal)
{
	struct quire_trace_reader *reader;
	struct quire_trace_record got;
	char text[4096];
	enum quire_status status;
	int used = snprintf(text, sizeof(text),
	                    HEADER "\n{\"do\":\"submit\",\"segments\":[[7,\"a\",1]],"
	                           "\"%s\":[",
	                    name);

	for (int i = 0; i < pairs; i++)
		used += snprintf(text + used, sizeof(text) - (size_t)used,
		                 "%s[\"a\",\"%d\"]", i > 0 ? "," : "", i);
	used += snprintf(text + used, sizeof(text) - (size_t)used, "]}\n");
	ck_assert_int_eq(open_text(text, (size_t)used, &reader, NULL), QUIRE_OK);
	status = quire_trace_next(reader, &got, refusal);
	if (status == QUIRE_OK)
		ck_assert_int_eq(got.command.step->num_pre_forks +
		                         got.command.step->num_post_forks,
		                 pairs);
	else
		ck_assert_ptr_nonnull(strstr(refusal->what, "must have 0..64 pairs"));
	quire_trace_close(reader);
	return status;
}

START_TEST(a_fork_list_has_64_pairs_at_most)
{
	struct quire_refusal refusal;

	ck_assert_int_eq(read_forks("pre_forks", 64, &refusal), QUIRE_OK);
	ck_assert_int_eq(read_forks("post_forks", 64, &refusal), QUIRE_OK);
	ck_assert_int_eq(read_forks("pre_forks", 65, &refusal), QUIRE_FORMAT);
	ck_assert_int_eq(read_forks("post_forks", 65, &refusal), QUIRE_FORMAT);
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

/* The same, of forks, speculative steps and other commands. */
static void spoil_new(struct random_record *random, int fault)
{
	struct quire_trace_record *record = &random->record;

	random->step.flags = QUIRE_STEP_SPECULATIVE;
	record->id = 9;
	switch (fault) {
	case 20:
		random->step.num_pre_forks = QUIRE_FORKS_MAX + 1;
		break;
	case 21:
		random->step.num_post_forks = -1;
		break;
	case 22:
		random->step.num_pre_forks = 1;
		random->forks[0][0].source = "";
		break;
	case 23:
		random->step.num_post_forks = 2;
		random->forks[1][1].target = "12345678901234567890123456789012";
		break;
	case 24:
		record->id = 0;
		break;
	case 25:
		record->has_base = true;
		record->base = 9;
		break;
	case 26:
		random->step.flags = 0;
		record->has_base = true;
		break;
	case 27:
		record->command.kind = QUIRE_COMMAND_PROMOTE;
		record->command.target = 0;
		break;
	case 28:
		record->command.kind = QUIRE_COMMAND_ABANDON;
		record->command.target = UINT64_MAX;
		break;
	case 29:
		record->command.kind = QUIRE_COMMAND_REWIND;
		record->command.tokens = -1;
		break;
	default:
		record->command.kind = QUIRE_COMMAND_RELEASE_FRONT;
		record->command.label = "";
		break;
	}
}

/* The same, of what recordings and imports add. */
static void spoil_rest(struct random_record *random, int fault)
{
	struct quire_trace_record *record = &random->record;

	record->command.kind = QUIRE_COMMAND_OPEN;
	record->prefix = (struct quire_trace_prefix){.tokens = 0};
	record->has_outcome = true;
	record->outcome.status = QUIRE_OK;
	record->outcome.has_pages = false;
	switch (fault) {
	case 31:
		record->has_times = true;
		record->times.given_ns = -1;
		break;
	case 32:
		record->has_times = true;
		record->times.decided_ns = INT64_MIN;
		break;
	case 33:
		record->prefix.tokens = -1;
		break;
	case 34:
		record->prefix = (struct quire_trace_prefix){1, 3, random->keys};
		random->keys[2] = -1;
		break;
	case 35:
		record->command.kind = QUIRE_COMMAND_CLOSE;
		record->prefix.tokens = 1;
		break;
	case 36:
		record->outcome.has_pages = true;
		record->outcome.num_pages = 3;
		random->pages[2] = (int32_t)header.num_pages;
		break;
	default:
		record->outcome.has_pages = true;
		record->outcome.num_pages = 1;
		random->pages[0] = -1;
		break;
	}
}

#define SPOILS 38

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
		random->step.flags = 16;
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
	case 19:
		record->command.kind = QUIRE_COMMAND_RESET;
		record->command.label = "\xc0\x80";
		break;
	default:
		if (fault < 31)
			spoil_new(random, fault);
		else
			spoil_rest(random, fault);
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
	for (int fault = 0; fault < SPOILS; fault++) {
		uint64_t s = 3;

		random_record_make(&random, &s);
		random.record.command.kind = QUIRE_COMMAND_SUBMIT;
		random.step.flags = 0;
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

/* A line of a step that took so many pages of eight digits each. */
static enum quire_status write_pages(int32_t num_pages, int32_t at)
{
	struct quire_trace_header large = header;
	struct quire_segment segment = {.request = 1, .at = at};
	struct quire_step step = {.segments = &segment, .num_segments = 1};
	struct quire_trace_record record = {
		.command = {.kind = QUIRE_COMMAND_SUBMIT, .step = &step},
		.has_outcome = true,
		.outcome = {.has_pages = true, .num_pages = num_pages},
	};
	int32_t *pages = malloc((size_t)num_pages * sizeof(*pages));
	struct quire_trace_writer *writer;
	struct quire_trace_reader *reader;
	struct quire_trace_record got;
	enum quire_status status;

	for (int32_t i = 0; i < num_pages; i++)
		pages[i] = QUIRE_PAGES_MAX - 1;
	record.outcome.pages = pages;
	large.num_pages = QUIRE_PAGES_MAX;
	ck_assert_int_eq(quire_trace_create(temporary.path, &large, &writer, NULL),
	                 QUIRE_OK);
	status = quire_trace_write(writer, &record, NULL);
	ck_assert_int_eq(quire_trace_commit(writer, NULL), QUIRE_OK);
	ck_assert_int_eq(quire_trace_open(temporary.path, &reader, NULL), QUIRE_OK);
	ck_assert_int_eq(quire_trace_next(reader, &got, NULL),
	                 status == QUIRE_OK ? QUIRE_OK : QUIRE_END);
	if (status == QUIRE_OK) {
		ck_assert_int_eq(got.outcome.num_pages, num_pages);
		ck_assert_int_eq(memcmp(got.outcome.pages, pages,
		                        (size_t)num_pages * sizeof(*pages)),
		                 0);
	}
	quire_trace_close(reader);
	free(pages);
	return status;
}

START_TEST(a_writer_refuses_a_line_longer_than_a_reader_takes)
{
	/* Without pages, and with an `at` of two digits, the line has 92 bytes; n pages
	 * are 9 * n - 1 bytes: 2^24 in all. */
	ck_assert_int_eq(write_pages(1864125, 10), QUIRE_OK);
	ck_assert_int_eq(write_pages(1864125, 100), QUIRE_INVALID);
	ck_assert_int_eq(write_pages(QUIRE_PAGES_MAX, 0), QUIRE_INVALID);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("trace refused");
	TCase *cases = tcase_create("trace refused");

	tcase_add_checked_fixture(cases, setup, teardown);
	tcase_set_timeout(cases, 60);
	tcase_add_test(cases, every_fault_of_a_header_is_refused_by_name);
	tcase_add_test(cases, every_fault_of_a_command_is_refused_with_line_and_field);
	tcase_add_test(cases, a_fork_list_has_64_pairs_at_most);
	tcase_add_test(cases, what_is_no_trace_at_all_is_refused);
	tcase_add_test(cases, a_writer_refuses_the_header_that_a_reader_would);
	tcase_add_test(cases,
	               a_writer_refuses_the_command_that_a_reader_would_and_goes_on);
	tcase_add_test(cases, a_writer_refuses_a_line_longer_than_a_reader_takes);
	suite_add_tcase(suite, cases);
	return run_suite(suite);
}
