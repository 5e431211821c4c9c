/* SPDX-License-Identifier: MIT */
/* Recordings that cannot go on, for want of room or words, and ends that are not allowed:
 * the runtime is none the worse for it. */
#include "config.h"

#include "recorded_run.h"
#include "tests/run_suite.h"

#include <check.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <unistd.h>

/* ------------------------------------------------------------------ full */

/* What is said of it, whole: what is full, and what would be right. */
static void check_full_text(const struct quire_refusal *refusal, const char *wanted)
{
	char text[512];

	ck_assert_int_eq(refusal->status, QUIRE_LIMIT);
	quire_refusal_text(refusal, text, sizeof(text));
	ck_assert_str_eq(text, wanted);
}

#define BYTES_FULL                                                                       \
	"limit exceeded: buffer_bytes: the recording's buffer is full (make it larger, " \
	"or set waits)"
#define STEPS_FULL                                                                      \
	"limit exceeded: waits: too many steps are planned and not on record yet (set " \
	"it, and the planner waits)"

/* Nobody waits for a write that does not come to its end, and the recording says so. */
START_TEST(a_write_that_blocks_ends_the_recording_and_holds_nobody_up)
{
	const char *wanted = _i == 0 ? BYTES_FULL : STEPS_FULL;
	struct quire_record_config config = recorded_config();
	struct quire_record_status status;

	if (_i == 0)
		config.buffer_bytes = 131072;
	start(&config);
	recorded_shut(true);
	run_steps(20);
	recorded_await_write();
	run_steps(_i == 0 ? 3000 : 5000);
	status = recorded_status(&f);
	ck_assert(!status.active);
	check_full_text(&status.refusal, wanted);
	ck_assert_int_eq(status.wait_ns, 0);
	ck_assert_int_eq(recorded.reports, 0); /* its thread stands in the write */
	recorded_shut(false);
	status = await_end();
	check_full_text(&status.refusal, wanted);
	ck_assert_int_eq(quire_runtime_record_end(f.runtime, NULL), QUIRE_LIMIT);
	fixture_end(&f);
	ck_assert_int_eq(recorded.reports, 1);
	ck_assert_int_eq(recorded.report.status, QUIRE_LIMIT);
}
END_TEST

static void *open_soon(void *argument)
{
	(void)argument;
	recorded_await_write();
	for (int i = 0; i < 100; i++)
		nap();
	recorded_shut(false);
	return NULL;
}

/* Library threads: the planner is the one who waits. */
START_TEST(a_planner_that_waits_loses_nothing)
{
	struct quire_record_config config = recorded_config();
	int lines = 0;
	pthread_t thread;
	uint64_t ticket;

	config.buffer_bytes = 1;
	config.waits = true;
	recorded_begin(&f, 64, 4);
	f.config.threads = QUIRE_THREADS_LIBRARY;
	recorded_shut(true);
	recorded_create(&f, &config);
	must(pthread_create(&thread, NULL, open_soon, NULL) == 0);
	for (int i = 0; i < 2000; i++)
		must(quire_runtime_open(f.runtime, 1, &ticket) == QUIRE_OK);
	must(quire_runtime_wait(f.runtime, ticket, QUIRE_STAGE_RETIRED, QUIRE_NO_DEADLINE,
	                        NULL) == QUIRE_OK);
	pthread_join(thread, NULL);
	ck_assert_int_gt(recorded_status(&f).wait_ns, 1000000);
	ck_assert_int_eq(quire_runtime_record_end(f.runtime, NULL), QUIRE_OK);
	ck_assert_int_eq(recorded_status(&f).commands, 2000);
	fixture_end(&f);
	while (recorded_line(lines + 1) != NULL && lines < 3) /* the first ones in full */
		lines++;
	ck_assert_int_eq(lines, 3);
	for (const char *c = recorded.bytes; *c != '\0'; c++)
		lines += *c == '\n';
	ck_assert_int_eq(lines, 3 + 1 + 2000);
}
END_TEST

/* What is behind an open fate cannot be written; who decides it may be who waits. */
START_TEST(a_buffer_full_behind_an_open_fate_ends_the_recording)
{
	struct quire_record_config config = recorded_config();
	struct quire_record_status status;
	uint64_t draft, ticket;

	config.buffer_bytes = 131072;
	config.waits = _i == 1;
	recorded_begin(&f, 64, 4);
	f.config.threads = QUIRE_THREADS_LIBRARY;
	recorded_create(&f, &config);
	/* Refused, so it does not hold up what is behind it, but its fate is open. */
	draft = give(&f, SPECULATIVE(9, NULL, 1, 0));
	for (int i = 0; i < 3000; i++)
		must(quire_runtime_open(f.runtime, 1, &ticket) == QUIRE_OK);
	must(quire_runtime_wait(f.runtime, ticket, QUIRE_STAGE_RETIRED, QUIRE_NO_DEADLINE,
	                        NULL) == QUIRE_OK);
	(void)await_end();
	must(promote(&f, draft) == QUIRE_OK);
	must(quire_runtime_record_end(f.runtime, NULL) == QUIRE_LIMIT);
	status = recorded_status(&f);
	check_full_text(&status.refusal,
	                "limit exceeded: buffer_bytes: the recording's buffer is full "
	                "behind a speculative step whose fate is open (decide it sooner, "
	                "or make the buffer larger)");
	ck_assert_uint_eq(status.refusal.ticket, draft);
	fixture_end(&f);
	ck_assert_int_eq(recorded.reports, 1);
	ck_assert_uint_eq(recorded.report.ticket, draft);
}
END_TEST

/* 4,096 steps have a cell, whatever room there is in the ring: a thread that looks every
 * ten seconds is told before they are used up. */
START_TEST(many_small_steps_wake_the_recordings_thread)
{
	struct quire_record_config config = recorded_config();
	int64_t deadline = now_ns() + PATIENCE_NS / 4;

	config.flush_ns = 10000000000;
	config.buffer_bytes = 64 << 20;
	start(&config);
	run_steps(1100);
	while (recorded_status(&f).commands < 1000) {
		nap();
		ck_assert_int_lt(now_ns(), deadline);
	}
	fixture_end(&f);
}
END_TEST

static sem_t write_came, write_goes;
static size_t write_bytes[64]; /* of the n-th write; the recording's thread's */

static enum quire_status write_by_and_by(void *argument, const void *bytes, size_t n)
{
	sem_post(&write_came);
	sem_wait(&write_goes);
	if (recorded.calls < 64)
		write_bytes[recorded.calls] = n;
	return recorded_write(argument, bytes, n);
}

/* Its cells come free on the way, and what comes meanwhile does not keep what was there
 * from being flushed. */
START_TEST(a_long_look_is_as_good_as_several)
{
	struct quire_record_config config = recorded_config();
	char timeline[] = "/tmp/quire-timeline-XXXXXX";

	sem_init(&write_came, 0, 0);
	sem_init(&write_goes, 0, 0);
	close(mkstemp(timeline));
	config.timeline = timeline;
	config.write = write_by_and_by;
	start(&config);
	sem_wait(&write_came);
	run_steps(3000); /* for one look, which writes twice */
	sem_post(&write_goes);
	sem_wait(&write_came);
	run_steps(1500); /* more than there are cells in all */
	ck_assert(recorded_status(&f).active);
	for (int i = 0; i < 64; i++)
		sem_post(&write_goes);
	ck_assert_int_eq(quire_runtime_record_end(f.runtime, NULL), QUIRE_OK);
	fixture_end(&f);
	ck_assert_int_eq(count_plans(timeline), 4500);
	ck_assert_uint_lt(write_bytes[2], write_bytes[1] - write_bytes[1] / 8);
	unlink(timeline);
}
END_TEST

/* Commands that end without being done need room like all others. */
START_TEST(a_cancelled_queue_is_longer_than_the_buffer)
{
	struct quire_record_config config = recorded_config();
	struct quire_segment segments[64];
	const struct quire_step step = {.segments = segments, .num_segments = 64};
	int lines = 0;

	for (int i = 0; i < 64; i++)
		segments[i] = (struct quire_segment){.request = 1, .span = i, .at = i};
	config.buffer_bytes = 1;
	config.waits = true;
	recorded_begin(&f, 64, 4);
	f.config.commands_max = 1024;
	f.config.rows_max = 64;
	recorded_create(&f, &config);
	for (int i = 0; i < 1000; i++)
		submit(&f, &step);
	must(quire_runtime_shutdown(f.runtime, true) == QUIRE_OK);
	fixture_end(&f);
	for (const char *c = recorded.bytes; *c != '\0'; c++)
		lines += *c == '\n';
	ck_assert_int_eq(lines, 1 + 1000);
	for (const char *c = recorded.bytes; (c = strstr(c, "\"CANCELLED\"")) != NULL;
	     c++)
		lines--;
	ck_assert_int_eq(lines, 1);
	ck_assert_int_eq(recorded.reports, 0);
}
END_TEST

/* ------------------------------------------------------------------ no words */

/* Latin-1, and the beginning of a character. */
static const char *const wordless[] = {"gr\xfcn", "\xe2\x82"};

/* What was refused by such a name, or never took effect, has another command in its place;
 * what took effect can have none. */
START_TEST(a_label_that_is_no_text_ends_the_recording_where_it_takes_effect)
{
	const struct quire_record_config config = recorded_config();
	struct quire_record_status status;
	const char *label = wordless[_i];

	start(&config);
	ck_assert_int_eq(reset_now(&f, 1, label, false), QUIRE_NO_LABEL);
	ck_assert_int_eq(extend_now(&f, 1, label, 0, 1).refusal.status, QUIRE_NO_LABEL);
	ck_assert_int_eq(abandon(&f, give(&f, SPECULATIVE(1, label, 4, 0))), QUIRE_OK);
	run_steps(3);
	status = recorded_status(&f);
	ck_assert(status.active);
	ck_assert_int_eq(extend_now(&f, 1, label, 4, 0).refusal.status, QUIRE_OK);
	run_steps(3);
	status = await_end();
	ck_assert_int_eq(status.refusal.status, QUIRE_FORMAT);
	ck_assert_ptr_nonnull(strstr(status.refusal.what, "UTF-8"));
	ck_assert_uint_eq(status.refusal.ticket, 10);
	ck_assert_int_eq(status.left_out, 3);
	ck_assert_int_eq(quire_runtime_record_end(f.runtime, NULL), QUIRE_FORMAT);
	fixture_end(&f);
	ck_assert_int_eq(recorded.report.status, QUIRE_FORMAT);
	ck_assert_ptr_nonnull(recorded_line(9)); /* an abandon is one more */
	ck_assert_ptr_null(recorded_line(10));
}
END_TEST

/* As a target of a fork, and as the name of a table. */
START_TEST(a_label_that_is_no_text_is_found_wherever_it_stands)
{
	const struct quire_record_config config = recorded_config();
	const struct quire_segment segment = {.request = 1, .span = 4, .at = 0};
	const struct quire_fork fork = {.source = "main", .target = wordless[0]};
	static const char *const labels[] = {"main"};
	const struct quire_combined combined = {
		.name = wordless[1], .labels = labels, .num_labels = 1};
	const struct quire_step step = {.segments = &segment,
	                                .num_segments = 1,
	                                .post_forks = &fork,
	                                .num_post_forks = _i == 0,
	                                .combined = &combined,
	                                .num_combined = _i == 1};

	start(&config);
	ck_assert_int_eq(submit_now(&f, &step).refusal.status, QUIRE_OK);
	ck_assert_int_eq(await_end().refusal.status, QUIRE_FORMAT);
	fixture_end(&f);
	ck_assert_ptr_null(recorded_line(2));
}
END_TEST

/* A line with all these pages would be longer than a reader takes. */
START_TEST(a_step_of_millions_of_pages_is_there_without_them)
{
	enum { PAGES = 2300000 };
	const struct quire_record_config config = recorded_config();

	recorded_begin(&f, PAGES, 1);
	f.config.tokens_max = PAGES;
	f.config.table_pages_max = PAGES;
	recorded_create(&f, &config);
	ck_assert_int_eq(open_now(&f, 1), QUIRE_OK);
	ck_assert_int_eq(extend_now(&f, 1, NULL, PAGES - 1, 0).refusal.status, QUIRE_OK);
	ck_assert_int_eq(extend_now(&f, 1, NULL, 1, PAGES - 1).refusal.status, QUIRE_OK);
	ck_assert_int_eq(quire_runtime_record_end(f.runtime, NULL), QUIRE_OK);
	fixture_end(&f);
	ck_assert_lines(
		"{\"do\":\"open\",\"id\":1,\"request\":1" DONE,
		"{\"do\":\"submit\",\"id\":2,\"segments\":[[1,\"main\",2299999,0]]" DONE,
		"{\"do\":\"submit\",\"id\":3,\"segments\":[[1,\"main\",1,2299999]]" OK(
			"2299999"));
}
END_TEST

/* ------------------------------------------------------------------ end in a callback */

static _Atomic int ends; /* of a recording, refused inside a callback */

static void try_end(void)
{
	struct quire_refusal refusal;

	if (quire_runtime_record_end(f.runtime, &refusal) == QUIRE_WOULD_BLOCK &&
	    refusal.status == QUIRE_WOULD_BLOCK)
		atomic_fetch_add(&ends, 1);
}

static enum quire_status end_on_plan(void *argument, struct quire_plan *plan)
{
	(void)argument;
	(void)plan;
	try_end();
	return QUIRE_OK;
}

static enum quire_status end_in_step(void *argument, const struct quire_plan *plan,
                                     struct quire_dstream *compute)
{
	(void)argument;
	(void)plan;
	(void)compute;
	try_end();
	return QUIRE_OK;
}

static void end_when_done(void *argument, uint64_t ticket,
                          const struct quire_outcome *outcome)
{
	(void)argument;
	(void)ticket;
	(void)outcome;
	try_end();
}

static enum quire_status end_in_write(void *argument, const void *bytes, size_t n)
{
	(void)argument;
	(void)bytes;
	(void)n;
	try_end();
	return QUIRE_IO;
}

static void end_in_report(void *argument, const struct quire_report *report)
{
	(void)argument;
	if (report->kind == QUIRE_REPORT_RECORDING_ENDED)
		try_end();
}

START_TEST(no_callback_may_end_the_recording)
{
	static const struct quire_segment segment = {.request = 1, .span = 1};
	const struct quire_step step = {.segments = &segment,
	                                .num_segments = 1,
	                                .run = end_in_step,
	                                .done = end_when_done};
	struct quire_record_config config = recorded_config();
	uint64_t ticket;

	config.write = end_in_write;
	recorded_begin(&f, 64, 4);
	f.config.threads = _i == 0 ? QUIRE_THREADS_LIBRARY : QUIRE_THREADS_CALLER;
	f.config.on_plan = end_on_plan;
	f.config.hooks.on_report = end_in_report;
	recorded_create(&f, &config);
	must(quire_runtime_open(f.runtime, 1, &ticket) == QUIRE_OK);
	must(quire_runtime_submit(f.runtime, &step, &ticket) == QUIRE_OK);
	if (_i == 1)
		settle(&f);
	must(quire_runtime_wait(f.runtime, ticket, QUIRE_STAGE_RETIRED, QUIRE_NO_DEADLINE,
	                        NULL) == QUIRE_OK);
	ck_assert_int_eq(await_end().refusal.status, QUIRE_IO);
	ck_assert_int_eq(quire_runtime_record_end(f.runtime, NULL), QUIRE_IO);
	fixture_end(&f);
	/* on_plan, the step, its end; writes and the report. */
	ck_assert_int_ge(atomic_load(&ends), 5);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("record limits");
	TCase *tcase = tcase_create("limits");

	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(
		tcase, a_write_that_blocks_ends_the_recording_and_holds_nobody_up, 0, 2);
	tcase_add_test(tcase, a_planner_that_waits_loses_nothing);
	tcase_add_loop_test(tcase, a_buffer_full_behind_an_open_fate_ends_the_recording,
	                    0, 2);
	tcase_add_test(tcase, many_small_steps_wake_the_recordings_thread);
	tcase_add_test(tcase, a_long_look_is_as_good_as_several);
	tcase_add_test(tcase, a_cancelled_queue_is_longer_than_the_buffer);
	tcase_add_loop_test(
		tcase, a_label_that_is_no_text_ends_the_recording_where_it_takes_effect,
		0, 2);
	tcase_add_loop_test(tcase, a_label_that_is_no_text_is_found_wherever_it_stands, 0,
	                    2);
	tcase_add_test(tcase, a_step_of_millions_of_pages_is_there_without_them);
	tcase_add_loop_test(tcase, no_callback_may_end_the_recording, 0, 2);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
