/* SPDX-License-Identifier: MIT */
/* What a recording says, line by line, against lines written by hand. */
#include "config.h"

#include "recorded.h"
#include "tests/run_suite.h"

#include <check.h>
#include <limits.h>
#include <time.h>

static struct fixture f;

static void start(int64_t num_pages, int64_t page_size)
{
	const struct quire_record_config config = recorded_config();

	recorded_begin(&f, num_pages, page_size);
	recorded_create(&f, &config);
}

/* Ended with the runtime: every line is there. */
static void end(void)
{
	fixture_end(&f);
}

static struct quire_outcome give_now(struct plain plain)
{
	return outcome_of(&f, give(&f, plain));
}

/* ------------------------------------------------------------------ every kind */

START_TEST(every_command_with_what_came_of_it_is_a_line)
{
	uint64_t ticket;

	start(6, 4);
	open_now(&f, 1);
	give_now(STEP(1, NULL, 5, 0));
	open_now(&f, INT64_MAX);
	/* 4 of 6 pages are left; 20 tokens need 5. */
	give_now(STEP(INT64_MAX, NULL, 20, 0));
	give_now(STEP(INT64_MAX, "draft", 4, QUIRE_AT_ANY));
	give_now(STEP(1, "main", 1, 4));
	give_now(STEP(1, "none", 0, QUIRE_AT_ANY));
	give_now(STEP(2, "main", 1, 0));
	rewind_now(&f, 1, "main", 1);
	rewind_now(&f, 1, "main", 5);
	must(quire_runtime_release_front(f.runtime, 1, "main", 3, &ticket) == QUIRE_OK);
	reset_now(&f, 1, "main", true);
	reset_now(&f, INT64_MAX, "draft", false);
	close_now(&f, 1);
	close_now(&f, 1);
	end();
	ck_assert_lines(
		"{\"do\":\"open\",\"id\":1,\"request\":1" DONE,
		"{\"do\":\"submit\",\"id\":2,\"segments\":[[1,\"main\",5,0]]" OK("0,1"),
		"{\"do\":\"open\",\"id\":3,\"request\":9223372036854775807" DONE,
		"{\"do\":\"submit\",\"id\":4,\"segments\":[[9223372036854775807,"
		"\"main\",20,0]]" REFUSED("NO_PAGES", "1"),
		"{\"do\":\"submit\",\"id\":5,\"segments\":[[9223372036854775807,"
		"\"draft\",4,null]]" OK("2"),
		"{\"do\":\"submit\",\"id\":6,\"segments\":[[1,\"main\",1,4]]" REFUSED(
			"STALE", "5"),
		"{\"do\":\"submit\",\"id\":7,\"segments\":[[1,\"none\",0,null]]" REFUSED(
			"NO_LABEL", "0"),
		"{\"do\":\"submit\",\"id\":8,\"segments\":[[2,\"main\",1,0]]" REFUSED(
			"NO_REQUEST", "0"),
		"{\"do\":\"rewind\",\"id\":9,\"request\":1,\"label\":\"main\",\"tokens\":"
		"1" DONE,
		"{\"do\":\"rewind\",\"id\":10,\"request\":1,\"label\":\"main\","
		"\"tokens\":5" REFUSED("INVALID", "0"),
		"{\"do\":\"release_front\",\"id\":11,\"request\":1,\"label\":\"main\","
		"\"tokens\":3" DONE,
		"{\"do\":\"reset\",\"id\":12,\"request\":1,\"label\":\"main\",\"keep\":"
		"true" DONE,
		"{\"do\":\"reset\",\"id\":13,\"request\":9223372036854775807,\"label\":"
		"\"draft\",\"keep\":false" DONE,
		"{\"do\":\"close\",\"id\":14,\"request\":1" DONE,
		"{\"do\":\"close\",\"id\":15,\"request\":1" REFUSED("NO_REQUEST", "0"));
}
END_TEST

START_TEST(a_step_is_there_with_all_its_lists)
{
	static const char *const labels[] = {"main", "b"};
	static const struct quire_combined both = {
		.name = "both", .labels = labels, .num_labels = 2};
	static const struct quire_segment segments[] = {
		{.request = 7, .label = "main", .span = 3, .at = 0},
		{.request = UINT64_C(1) << 40, .label = "b", .span = 1, .at = 0},
		{.request = 7, .label = "b", .span = 2, .at = 3}};
	static const struct quire_fork pre = {.source = "main", .target = "b"},
				       post[] = {{.source = "b", .target = "c"},
	                                         {.source = "c", .target = NULL}};
	struct quire_step step = {.segments = segments,
	                          .num_segments = 3,
	                          .combined = &both,
	                          .num_combined = 1,
	                          .pre_forks = &pre,
	                          .num_pre_forks = 1,
	                          .post_forks = post,
	                          .num_post_forks = 2,
	                          .bucket_tokens = 8,
	                          .bucket_rows = 4,
	                          .flags = QUIRE_STEP_NO_COMMIT | QUIRE_STEP_NO_WAIT |
	                                   QUIRE_STEP_COPY_FORKS};
	const struct quire_record_config config = recorded_config();

	recorded_begin(&f, 16, 4);
	f.config.sink = true; /* of padding */
	recorded_create(&f, &config);
	open_now(&f, 7);
	open_now(&f, UINT64_C(1) << 40);
	submit_now(&f, &step);
	end();
	/* Main is empty when it is forked, so b is empty too, and not of 3 tokens. */
	ck_assert_str_eq(
		recorded_line(3),
		"{\"do\":\"submit\",\"id\":3,\"segments\":[[7,\"main\",3,0],"
		"[1099511627776,\"b\",1,0],[7,\"b\",2,3]],\"bucket\":[8,4],"
		"\"combined\":{\"both\":[\"main\",\"b\"]},\"pre_forks\":[[\"main\","
		"\"b\"]],\"post_forks\":[[\"b\",\"c\"],[\"c\",\"main\"]],\"commit\":"
		"false,"
		"\"no_wait\":true,\"copy\":true" REFUSED("STALE", "0"));
}
END_TEST

START_TEST(the_header_is_the_runtimes)
{
	struct quire_record_config config = recorded_config();

	recorded_begin(&f, 16, 4);
	f.config.sink = true;
	f.config.rows_max = 3;
	f.config.tokens_max = 44;
	f.config.requests_max = 5;
	f.config.request_labels_max = 2;
	f.config.tables_max = 2;
	f.config.block_width = 6;
	config.source = "an \"engine\"";
	recorded_create(&f, &config);
	end();
	ck_assert_str_eq(
		recorded_line(0),
		"{\"quire\":\"plan-trace\",\"version\":1,\"cache\":{\"layout\":\"NHD\","
		"\"dtype\":\"f32\",\"num_layers\":2,\"num_kv_heads\":1,\"head_dim\":2,"
		"\"page_size\":4},\"pool\":{\"num_pages\":16,\"sink\":true},\"limits\":{"
		"\"rows\":3,\"tokens\":44,\"requests\":5,\"seq_tokens\":60,\"labels\":2,"
		"\"tables\":2,\"table_pages\":16,\"row_pages\":6},\"source\":\"an "
		"\\\"engine\\\"\"}");
	ck_assert_ptr_null(recorded_line(1));
}
END_TEST

START_TEST(a_row_wider_than_the_block_table_is_over_a_limit)
{
	const struct quire_record_config config = recorded_config();

	recorded_begin(&f, 16, 4);
	f.config.block_width = 2;
	recorded_create(&f, &config);
	open_now(&f, 1);
	give_now(STEP(1, NULL, 9, 0));
	end();
	ck_assert_str_eq(recorded_line(2), "{\"do\":\"submit\",\"id\":2,\"segments\":[[1,"
	                                   "\"main\",9,0]]" REFUSED("LIMIT", "0"));
}
END_TEST

START_TEST(a_step_that_would_not_wait_is_again)
{
	struct plain no_wait = STEP(1, NULL, 4, 0);
	uint64_t ticket;

	no_wait.flags = QUIRE_STEP_NO_WAIT;
	start(2, 4);
	open_now(&f, 1);
	give_now(STEP(1, NULL, 8, 0));
	must(quire_runtime_reset(f.runtime, 1, NULL, false, &ticket) == QUIRE_OK);
	give(&f, no_wait);
	while (quire_planner_poll(f.runtime)) /* no executor: nothing is given back */
		continue;
	end();
	ck_assert_str_eq(recorded_line(4),
	                 "{\"do\":\"submit\",\"id\":4,\"segments\":[[1,\"main\",4,0]],"
	                 "\"no_wait\":true" REFUSED("AGAIN", "0"));
}
END_TEST

/* ------------------------------------------------------------------ without words */

START_TEST(what_refused_a_step_may_be_outside_of_the_trace)
{
	static const struct quire_segment segment = {.request = 1, .span = 1};
	static const struct quire_work work = {.kind = QUIRE_WORK_WRITE, .layer = 9};
	struct quire_step step = {.segments = &segment, .num_segments = 1};

	start(4, 4);
	open_now(&f, 1);
	step.work = &work;
	step.num_work = 1;
	ck_assert_int_eq(submit_now(&f, &step).refusal.status, QUIRE_INVALID);
	step.num_work = 0;
	step.flags = 1u << 31;
	ck_assert_int_eq(submit_now(&f, &step).refusal.status, QUIRE_INVALID);
	end();
	ck_assert_lines(
		"{\"do\":\"open\",\"id\":1,\"request\":1" DONE,
		"{\"do\":\"submit\",\"id\":2,\"segments\":[[1,\"main\",1,0]]" OUTSIDE(
			"INVALID"),
		"{\"do\":\"submit\",\"id\":3,\"segments\":[[1,\"main\",1,0]]" OUTSIDE(
			"INVALID"));
}
END_TEST

START_TEST(what_a_trace_has_no_words_for_keeps_its_place)
{
	struct quire_record_status status;
	uint64_t base;

	start(4, 4);
	open_now(&f, 1);
	give_now(STEP(1, NULL, -1, 0));
	give_now(STEP(1, NULL, (1 << 26) + 1, 0));
	give_now(STEP(1, NULL, 1, -2));
	rewind_now(&f, 1, NULL, -1);
	base = give(&f, SPECULATIVE(1, NULL, -1, 0));
	give(&f, SPECULATIVE(1, NULL, 1, 0));
	settle(&f);
	ck_assert_int_eq(abandon(&f, base), QUIRE_OK);
	settle(&f);
	do
		status = recorded_status(&f);
	while (status.commands < 9);
	ck_assert_int_eq(status.left_out, 5);
	end();
	ck_assert_lines(
		"{\"do\":\"open\",\"id\":1,\"request\":1" DONE,
		"{\"do\":\"submit\",\"id\":2,\"segments\":[[0,\"main\",0,null]]" OUTSIDE(
			"INVALID"),
		"{\"do\":\"submit\",\"id\":3,\"segments\":[[0,\"main\",0,null]]" OUTSIDE(
			"LIMIT"),
		"{\"do\":\"submit\",\"id\":4,\"segments\":[[0,\"main\",0,null]]" OUTSIDE(
			"INVALID"),
		"{\"do\":\"rewind\",\"id\":5,\"request\":1,\"label\":\"main\",\"tokens\":"
		"0" OUTSIDE("INVALID"),
		"{\"do\":\"submit\",\"id\":6,\"segments\":[[0,\"main\",0,null]],"
		"\"speculative\":true,\"base\":null" OUTSIDE("ABANDONED"),
		"{\"do\":\"submit\",\"id\":7,\"segments\":[[1,\"main\",1,0]],"
		"\"speculative\":true,\"base\":6" REFUSED("ABANDONED", "0"),
		"{\"do\":\"abandon\",\"ticket\":7" DONE,
		"{\"do\":\"abandon\",\"ticket\":6" DONE);
}
END_TEST

/* ------------------------------------------------------------------ speculation */

#define DRAFT(id, at, base)                                                      \
	"{\"do\":\"submit\",\"id\":" id ",\"segments\":[[1,\"main\",4," at "]]," \
	"\"speculative\":true,\"base\":" base
#define PROMOTE(id) "{\"do\":\"promote\",\"ticket\":" id DONE
#define ABANDON(id) "{\"do\":\"abandon\",\"ticket\":" id DONE
#define OPEN        "{\"do\":\"open\",\"id\":1,\"request\":1" DONE

/* Open is ticket 1, three drafts are 2, 3, 4. */
static void start_drafts(void)
{
	const struct quire_record_config config = recorded_config();

	recorded_begin(&f, 8, 4);
	f.config.depth = 4;
	recorded_create(&f, &config);
	open_now(&f, 1);
	for (int32_t i = 0; i < 3; i++)
		give(&f, SPECULATIVE(1, NULL, 4, 4 * i));
	settle(&f);
}

START_TEST(an_abandon_of_several_is_one_for_each_newest_first)
{
	start_drafts();
	ck_assert_int_eq(abandon(&f, 2), QUIRE_OK);
	settle(&f);
	give_now(STEP(1, NULL, 4, 0));
	end();
	ck_assert_lines(
		OPEN, DRAFT("2", "0", "null") REFUSED("ABANDONED", "0"),
		DRAFT("3", "4", "2") REFUSED("ABANDONED", "0"),
		DRAFT("4", "8", "3") REFUSED("ABANDONED", "0"), ABANDON("4"),
		ABANDON("3"), ABANDON("2"),
		"{\"do\":\"submit\",\"id\":6,\"segments\":[[1,\"main\",4,0]]" OK("0"));
}
END_TEST

START_TEST(promotes_stand_where_they_took_effect)
{
	start_drafts();
	ck_assert_int_eq(promote(&f, 3), QUIRE_OK); /* in vain so far */
	settle(&f);
	ck_assert_int_eq(promote(&f, 2), QUIRE_OK);
	ck_assert_int_eq(abandon(&f, 4), QUIRE_OK);
	settle(&f);
	end();
	ck_assert_lines(OPEN, DRAFT("2", "0", "null") OK("0"),
	                DRAFT("3", "4", "2") OK("1"),
	                DRAFT("4", "8", "3") REFUSED("ABANDONED", "0"), ABANDON("4"),
	                PROMOTE("2"), PROMOTE("3"));
}
END_TEST

/* Draft 3 was promoted above 2, so the fourth rests on 2: a trace that did not say so
 * would make it rest on 3. */
START_TEST(a_promote_in_vain_is_said_before_what_rests_on_it)
{
	const struct quire_record_config config = recorded_config();

	recorded_begin(&f, 8, 4);
	f.config.depth = 4;
	recorded_create(&f, &config);
	open_now(&f, 1);
	give(&f, SPECULATIVE(1, NULL, 4, 0));
	give(&f, SPECULATIVE(1, NULL, 4, 4));
	settle(&f);
	ck_assert_int_eq(promote(&f, 3), QUIRE_OK);
	give(&f, SPECULATIVE(1, NULL, 4, 8));
	settle(&f);
	if (_i == 0)
		ck_assert_int_eq(abandon(&f, 2), QUIRE_OK);
	else
		ck_assert_int_eq(promote(&f, 2), QUIRE_OK);
	settle(&f);
	end(); /* abandons 5, if it is open */
	if (_i == 0)
		ck_assert_lines(OPEN, DRAFT("2", "0", "null") REFUSED("ABANDONED", "0"),
		                DRAFT("3", "4", "2") REFUSED("ABANDONED", "0"),
		                PROMOTE("3"),
		                DRAFT("5", "8", "2") REFUSED("ABANDONED", "0"),
		                ABANDON("5"), ABANDON("2"));
	else
		ck_assert_lines(OPEN, DRAFT("2", "0", "null") OK("0"),
		                DRAFT("3", "4", "2") OK("1"), PROMOTE("3"),
		                DRAFT("5", "8", "2") REFUSED("ABANDONED", "0"),
		                PROMOTE("2"), ABANDON("5"));
}
END_TEST

/* Who rests on a refused step is refused, and ends before it. */
START_TEST(refused_drafts_end_newest_first_too)
{
	start_drafts();
	give(&f, SPECULATIVE(9, NULL, 4, 0)); /* 5: no such request */
	give(&f, SPECULATIVE(1, NULL, 4, 12));
	give(&f, SPECULATIVE(1, NULL, 4, 16));
	settle(&f);
	ck_assert_int_eq(abandon(&f, _i == 0 ? 4 : 5), QUIRE_OK);
	settle(&f);
	end();
	ck_assert_str_eq(recorded_line(8), ABANDON("7"));
	ck_assert_str_eq(recorded_line(9), ABANDON("6"));
	ck_assert_str_eq(recorded_line(10), ABANDON("5"));
	ck_assert_str_eq(recorded_line(11), ABANDON("4"));
	ck_assert_str_eq(recorded_line(12), ABANDON("3"));
	ck_assert_str_eq(recorded_line(13), ABANDON("2"));
	ck_assert_ptr_null(recorded_line(14));
}
END_TEST

START_TEST(a_refused_draft_that_is_promoted_keeps_its_refusal)
{
	start(8, 4);
	open_now(&f, 1);
	give(&f, SPECULATIVE(1, NULL, 4, 3));
	settle(&f);
	ck_assert_int_eq(promote(&f, 2), QUIRE_OK);
	ck_assert_int_eq(promote(&f, 2), QUIRE_INVALID); /* and is not in the trace */
	settle(&f);
	end();
	ck_assert_lines(OPEN, DRAFT("2", "3", "null") REFUSED("STALE", "0"),
	                PROMOTE("2"));
}
END_TEST

/* Long enough for the recording's thread to look a few times. */
static void let_it_look(void)
{
	const struct timespec time = {.tv_nsec = 20000000};

	nanosleep(&time, NULL);
}

/* And says nothing of the refusal then: its detail would be 4. */
START_TEST(a_refused_draft_is_not_written_before_its_fate_is_known)
{
	start(8, 4);
	open_now(&f, 1);
	give_now(STEP(1, NULL, 4, 0));
	give(&f, SPECULATIVE(1, NULL, 4, 3));
	settle(&f);
	let_it_look();
	ck_assert_int_eq(recorded_status(&f).commands, 2);
	ck_assert_int_eq(abandon(&f, 3), QUIRE_OK);
	settle(&f);
	end();
	ck_assert_str_eq(recorded_line(3),
	                 DRAFT("3", "3", "null") REFUSED("ABANDONED", "0"));
	ck_assert_str_eq(recorded_line(4), ABANDON("3"));
	ck_assert_ptr_null(recorded_line(5));
}
END_TEST

START_TEST(a_step_is_not_written_before_it_is_issued)
{
	long long given, decided, issued;

	start(8, 4);
	open_now(&f, 1);
	give(&f, STEP(1, NULL, 4, 0));
	while (quire_planner_poll(f.runtime))
		continue;
	let_it_look();
	ck_assert_int_eq(recorded_status(&f).commands, 1);
	end();
	ck_assert_ptr_nonnull(recorded_line(2));
	ck_assert_int_eq(sscanf(strstr(strstr(recorded.bytes, "submit"), "\"times\":["),
	                        "\"times\":[%lld,%lld,%lld]", &given, &decided, &issued),
	                 3);
	ck_assert_int_ge(issued - decided, 20000000);
}
END_TEST

START_TEST(a_draft_that_is_abandoned_unplanned_was_submitted_all_the_same)
{
	start(8, 4);
	open_now(&f, 1);
	give(&f, SPECULATIVE(1, NULL, 4, 0));
	ck_assert_int_eq(abandon(&f, 2), QUIRE_OK);
	settle(&f);
	end();
	ck_assert_lines(OPEN, DRAFT("2", "0", "null") REFUSED("ABANDONED", "0"),
	                ABANDON("2"));
}
END_TEST

START_TEST(a_shutdown_abandons_what_is_open)
{
	start_drafts();
	end();
	ck_assert_str_eq(recorded_line(5), ABANDON("4"));
	ck_assert_str_eq(recorded_line(7), ABANDON("2"));
	ck_assert_ptr_null(recorded_line(8));
}
END_TEST

START_TEST(what_is_cancelled_is_there)
{
	start(8, 4);
	open_now(&f, 1);
	give(&f, STEP(1, NULL, 4, 0));
	give(&f, SPECULATIVE(1, NULL, 4, 4));
	ck_assert_int_eq(quire_runtime_shutdown(f.runtime, true), QUIRE_OK);
	settle(&f);
	end();
	ck_assert_lines(
		OPEN,
		"{\"do\":\"submit\",\"id\":2,\"segments\":[[1,\"main\",4,0]]" REFUSED(
			"CANCELLED", "0"),
		DRAFT("3", "4", "null") REFUSED("ABANDONED", "0"), ABANDON("3"));
}
END_TEST

/* ------------------------------------------------------------------ failures */

static enum quire_status fail_plan(void *argument, struct quire_plan *plan)
{
	(void)argument;
	return plan->step == 2 ? QUIRE_IO : QUIRE_OK;
}

START_TEST(a_runtime_that_fails_has_all_ends_in_its_recording)
{
	const struct quire_record_config config = recorded_config();

	recorded_begin(&f, 8, 4);
	f.config.on_plan = fail_plan;
	recorded_create(&f, &config);
	open_now(&f, 1);
	give(&f, SPECULATIVE(1, NULL, 4, 0));
	give(&f, SPECULATIVE(1, NULL, 4, 4));
	give(&f, STEP(1, NULL, 4, 8));
	settle(&f);
	end();
	ck_assert_lines(
		OPEN, DRAFT("2", "0", "null") REFUSED("CALLBACK", "0"),
		DRAFT("3", "4", "2") REFUSED("CALLBACK", "0"),
		"{\"do\":\"submit\",\"id\":4,\"segments\":[[1,\"main\",4,8]]" REFUSED(
			"CALLBACK", "0"));
}
END_TEST

static enum quire_status fail_step(void *argument, const struct quire_plan *plan,
                                   struct quire_dstream *compute)
{
	(void)argument;
	(void)plan;
	(void)compute;
	return QUIRE_IO;
}

/* The planner had decided it, and all behind it saw its tokens. */
START_TEST(a_step_that_fails_when_it_is_issued_was_planned)
{
	struct plain failing = STEP(1, NULL, 4, 0);

	failing.run = fail_step;
	start(8, 4);
	open_now(&f, 1);
	give(&f, failing);
	give(&f, STEP(1, NULL, 4, 4));
	while (quire_planner_poll(f.runtime)) /* both, before the executor */
		continue;
	settle(&f);
	end();
	ck_assert_lines(
		OPEN,
		"{\"do\":\"submit\",\"id\":2,\"segments\":[[1,\"main\",4,0]]" OK("0"),
		"{\"do\":\"submit\",\"id\":3,\"segments\":[[1,\"main\",4,4]]" OK("1"));
	ck_assert_ptr_null(strstr(recorded.bytes, ",12]"));
}
END_TEST

/* ------------------------------------------------------------------ times, digests */

static int64_t tick(void *argument)
{
	return __atomic_add_fetch((int64_t *)argument, 1000, __ATOMIC_RELAXED);
}

START_TEST(times_are_of_the_runtimes_clock_from_the_recordings_begin)
{
	const struct quire_record_config config = recorded_config();
	static int64_t clock = 5000000;
	long long given, decided, issued;
	const char *times;

	recorded_begin(&f, 8, 4);
	f.config.hooks.now_ns = tick;
	f.config.hooks.now_argument = &clock;
	recorded_create(&f, &config);
	clock += 7000000;
	open_now(&f, 1);
	give_now(STEP(1, NULL, 4, 0));
	end();
	times = strstr(recorded.bytes, "\"times\":[");
	ck_assert_int_eq(sscanf(times, "\"times\":[%lld,%lld]", &given, &decided), 2);
	ck_assert_int_ge(given, 7000000);
	ck_assert_int_lt(given, 7100000);
	ck_assert_int_lt(given, decided);
	times = strstr(times + 1, "\"times\":[");
	ck_assert_int_eq(
		sscanf(times, "\"times\":[%lld,%lld,%lld]", &given, &decided, &issued),
		3);
	ck_assert_int_lt(given, decided);
	ck_assert_int_lt(decided, issued);
	ck_assert_int_lt(issued, 7100000);
}
END_TEST

/* A program's clock may not do that; if it does, times are wrong, nothing else. */
START_TEST(a_clock_that_goes_back_costs_no_line)
{
	const struct quire_record_config config = recorded_config();
	static int64_t clock = 5000000;

	recorded_begin(&f, 8, 4);
	f.config.hooks.now_ns = tick;
	f.config.hooks.now_argument = &clock;
	recorded_create(&f, &config);
	clock = 1000;
	open_now(&f, 1);
	give_now(STEP(1, NULL, 4, 0));
	ck_assert_int_eq(promote(&f, give(&f, SPECULATIVE(1, NULL, 0, 4))), QUIRE_OK);
	end();
	ck_assert_ptr_null(strstr(recorded.bytes, "\"times\":[-"));
	ck_assert_ptr_null(strstr(recorded.bytes, ",-"));
	ck_assert_ptr_nonnull(recorded_line(4));
}
END_TEST

static uint64_t digest_of_plan;

static enum quire_status digest_plan(void *argument, struct quire_plan *plan)
{
	(void)argument;
	digest_of_plan = quire_plan_digest(plan);
	return QUIRE_OK;
}

START_TEST(digests_are_those_of_the_plans_whether_or_not_the_runtime_wants_them)
{
	struct quire_record_config config = recorded_config();
	char digest[64];

	config.digests = _i / 2 == 1;
	config.pages = false;
	recorded_begin(&f, 8, 4);
	f.config.digests = _i % 2 == 1;
	f.config.on_plan = digest_plan;
	recorded_create(&f, &config);
	open_now(&f, 1);
	give_now(STEP(1, NULL, 4, 0));
	end();
	snprintf(digest, sizeof(digest), ",\"digest\":\"%016llx\"}",
	         (unsigned long long)digest_of_plan);
	ck_assert_int_eq(strstr(recorded_line(2), digest) != NULL, config.digests);
	ck_assert_int_eq(strstr(recorded_line(2), "digest") != NULL, config.digests);
	ck_assert_ptr_null(strstr(recorded_line(2), "pages"));
}
END_TEST

/* ------------------------------------------------------------------ the end */

START_TEST(what_had_retired_is_in_a_recording_that_ends_before_its_runtime)
{
	struct quire_refusal refusal;

	start(8, 4);
	open_now(&f, 1);
	give_now(STEP(1, NULL, 4, 0));
	give(&f, SPECULATIVE(1, NULL, 4, 4)); /* its fate is open: left out */
	settle(&f);
	ck_assert_int_eq(quire_runtime_record_end(f.runtime, &refusal), QUIRE_OK);
	ck_assert(!recorded_status(&f).active);
	ck_assert_int_eq(recorded_status(&f).refusal.status, QUIRE_OK);
	ck_assert_int_eq(recorded_status(&f).commands, 2);
	ck_assert_int_eq(promote(&f, 3), QUIRE_OK);
	give_now(STEP(1, NULL, 4, 8)); /* nobody notes it */
	end();
	ck_assert_lines(
		OPEN,
		"{\"do\":\"submit\",\"id\":2,\"segments\":[[1,\"main\",4,0]]" OK("0"));
	ck_assert_int_eq(recorded.reports, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("record");
	TCase *tcase = tcase_create("lines");

	tcase_set_timeout(tcase, 30);
	tcase_add_test(tcase, every_command_with_what_came_of_it_is_a_line);
	tcase_add_test(tcase, a_step_is_there_with_all_its_lists);
	tcase_add_test(tcase, the_header_is_the_runtimes);
	tcase_add_test(tcase, a_row_wider_than_the_block_table_is_over_a_limit);
	tcase_add_test(tcase, a_step_that_would_not_wait_is_again);
	tcase_add_test(tcase, what_refused_a_step_may_be_outside_of_the_trace);
	tcase_add_test(tcase, what_a_trace_has_no_words_for_keeps_its_place);
	tcase_add_test(tcase, an_abandon_of_several_is_one_for_each_newest_first);
	tcase_add_test(tcase, promotes_stand_where_they_took_effect);
	tcase_add_loop_test(tcase, a_promote_in_vain_is_said_before_what_rests_on_it, 0,
	                    2);
	tcase_add_loop_test(tcase, refused_drafts_end_newest_first_too, 0, 2);
	tcase_add_test(tcase, a_refused_draft_that_is_promoted_keeps_its_refusal);
	tcase_add_test(tcase, a_refused_draft_is_not_written_before_its_fate_is_known);
	tcase_add_test(tcase, a_step_is_not_written_before_it_is_issued);
	tcase_add_test(tcase,
	               a_draft_that_is_abandoned_unplanned_was_submitted_all_the_same);
	tcase_add_test(tcase, a_shutdown_abandons_what_is_open);
	tcase_add_test(tcase, what_is_cancelled_is_there);
	tcase_add_test(tcase, a_runtime_that_fails_has_all_ends_in_its_recording);
	tcase_add_test(tcase, a_step_that_fails_when_it_is_issued_was_planned);
	tcase_add_test(tcase, times_are_of_the_runtimes_clock_from_the_recordings_begin);
	tcase_add_test(tcase, a_clock_that_goes_back_costs_no_line);
	tcase_add_loop_test(
		tcase,
		digests_are_those_of_the_plans_whether_or_not_the_runtime_wants_them, 0,
		4);
	tcase_add_test(tcase,
	               what_had_retired_is_in_a_recording_that_ends_before_its_runtime);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
