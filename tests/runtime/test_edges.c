/* SPDX-License-Identifier: MIT */
/* What only shows at an edge: a queue with room for one, a runtime that has failed, a
 * step that is held while others go on, a thread that comes after one that polled. */
#include "config.h"

#include "fixture.h"
#include "tests/run_suite.h"

#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#define PAGE_SIZE 4
#define ROW       (FIXTURE_HEADS * FIXTURE_DIM)
#define MS        INT64_C(1000000)

static int64_t in_ms(int64_t ms)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec + ms * MS;
}

static void sleep_ms(long ms)
{
	const struct timespec time = {.tv_nsec = ms * MS};

	nanosleep(&time, NULL);
}

static const struct quire_segment one_token = {
	.request = 1, .span = 1, .at = QUIRE_AT_ANY};
static const struct quire_step guess = {
	.segments = &one_token, .num_segments = 1, .flags = QUIRE_STEP_SPECULATIVE};

/* ------------------------------------------------------------ the plan queue */

/* The queue's 256 places, less the two that a plan and its release may need. */
#define QUEUED 254

/* A step whose fork gives a page up. */
static uint64_t submit_with_release(struct fixture *f)
{
	static const struct quire_fork fork = {.source = "main", .target = "b"};
	const struct quire_segment segment = {.request = QUEUED, .span = 1, .at = 1};
	const struct quire_step step = {.segments = &segment,
	                                .num_segments = 1,
	                                .pre_forks = &fork,
	                                .num_pre_forks = 1};

	return submit(f, &step);
}

START_TEST(a_plan_and_its_release_fit_where_the_queue_has_room)
{
	struct fixture f;
	uint64_t ticket;

	fixture_begin(&f, "cpu:inline", QUEUED + 8, 1);
	fixture_create(&f);
	for (uint64_t r = 0; r <= QUEUED; r++) {
		must(open_now(&f, r) == QUIRE_OK);
		must(extend_now(&f, r, NULL, 1, 0).refusal.status == QUIRE_OK);
	}
	must(extend_now(&f, QUEUED, "b", 1, 0).refusal.status == QUIRE_OK);
	/* The executor sleeps: each close leaves one release in the queue. */
	for (uint64_t r = 0; r < QUEUED - (uint64_t)_i; r++) {
		must(quire_runtime_close(f.runtime, r, &ticket) == QUIRE_OK);
		while (quire_planner_poll(f.runtime))
			continue;
	}
	ticket = submit_with_release(&f);
	while (quire_planner_poll(f.runtime))
		continue;
	ck_assert_int_eq(outcome_of(&f, ticket).refusal.status, QUIRE_OK);
	fixture_end(&f);
}
END_TEST

/* ------------------------------------------------------------ a failed runtime */

static enum quire_status fail_when_told(void *argument, struct quire_plan *plan)
{
	(void)plan;
	return *(const bool *)argument ? QUIRE_IO : QUIRE_OK;
}

START_TEST(a_failed_runtime_is_drained_though_a_step_was_held)
{
	struct fixture f;
	bool fails = false;
	uint64_t held;
	struct quire_refusal refusal;

	fixture_begin(&f, "cpu:inline", 8, PAGE_SIZE);
	f.config.on_plan = fail_when_told;
	f.config.on_plan_argument = &fails;
	fixture_create(&f);
	must(open_now(&f, 1) == QUIRE_OK);
	held = submit(&f, &guess);
	settle(&f);
	fails = true;
	(void)submit(&f, &guess);
	ck_assert_int_eq(outcome_of(&f, held).refusal.status, QUIRE_CALLBACK);
	ck_assert_int_eq(quire_runtime_drain(f.runtime, QUIRE_STAGE_RETIRED, 0, &refusal),
	                 QUIRE_OK);
	fixture_end(&f);
}
END_TEST

struct late {
	struct fixture f;
	bool fails;
	uint64_t held;
	_Atomic bool is_ending;
	struct quire_outcome seen;
};

/* Relaxed: nothing but the library's own order may carry the failure to the waiter. */
static void end_slowly(void *argument, uint64_t ticket,
                       const struct quire_outcome *outcome)
{
	struct late *late = argument;

	(void)ticket;
	(void)outcome;
	atomic_store_explicit(&late->is_ending, true, memory_order_relaxed);
	sleep_ms(50);
}

static void *wait_meanwhile(void *argument)
{
	struct late *late = argument;

	while (!atomic_load_explicit(&late->is_ending, memory_order_relaxed))
		continue;
	must(quire_runtime_wait(late->f.runtime, late->held, QUIRE_STAGE_PLANNED, 0,
	                        &late->seen) == QUIRE_OK);
	return NULL;
}

/* Under ThreadSanitizer: the failure that is told was written before. */
START_TEST(who_sees_a_held_step_fail_sees_why)
{
	struct late late = {.fails = false};
	struct quire_step step = guess;
	pthread_t thread;

	fixture_begin(&late.f, "cpu:inline", 8, PAGE_SIZE);
	late.f.config.on_plan = fail_when_told;
	late.f.config.on_plan_argument = &late.fails;
	fixture_create(&late.f);
	must(open_now(&late.f, 1) == QUIRE_OK);
	step.done = end_slowly;
	step.done_argument = &late;
	late.held = submit(&late.f, &step);
	settle(&late.f);
	must(pthread_create(&thread, NULL, wait_meanwhile, &late) == 0);
	late.fails = true;
	(void)submit(&late.f, &guess);
	settle(&late.f);
	pthread_join(thread, NULL);
	ck_assert_int_eq(late.seen.stage, QUIRE_STAGE_PLANNED);
	ck_assert_int_eq(late.seen.refusal.status, QUIRE_CALLBACK);
	ck_assert_str_eq(late.seen.refusal.what, "on_plan");
	fixture_end(&late.f);
}
END_TEST

/* ------------------------------------------------------------ held steps */

/* Refusals that hang on who is faster are opt-in: all twelve fit the ring. */
START_TEST(stacked_steps_that_fit_the_ring_are_never_HELD)
{
	struct fixture f;

	fixture_begin(&f, "cpu:inline", 64, PAGE_SIZE);
	f.config.threads = QUIRE_THREADS_LIBRARY;
	f.config.depth = 16;
	f.config.commands_max = 4;
	fixture_create(&f);
	must(quire_runtime_open(f.runtime, 1, NULL) == QUIRE_OK);
	for (int i = 0; i < 12; i++)
		ck_assert_int_eq(quire_runtime_submit(f.runtime, &guess, NULL), QUIRE_OK);
	fixture_end(&f);
}
END_TEST

/* One thread, one place in the queue: it is the thread that has to poll. */
START_TEST(a_thread_that_has_to_poll_is_told_so_not_HELD)
{
	struct fixture f;
	uint64_t ticket;

	fixture_begin(&f, "cpu:inline", 8, PAGE_SIZE);
	f.config.depth = 8;
	f.config.commands_max = 1;
	fixture_create(&f);
	must(open_now(&f, 1) == QUIRE_OK);
	(void)submit(&f, &guess);
	settle(&f);
	(void)submit(&f, &guess);
	ck_assert_int_eq(quire_runtime_submit(f.runtime, &guess, &ticket),
	                 QUIRE_WOULD_BLOCK);
	settle(&f);
	ck_assert_int_eq(quire_runtime_submit(f.runtime, &guess, &ticket), QUIRE_OK);
	fixture_end(&f);
}
END_TEST

/* @late: the planner has met the step when it is abandoned. */
static struct quire_runtime_stats count_abandoned(bool late)
{
	struct fixture f;
	struct quire_runtime_stats stats;
	uint64_t ticket;

	fixture_start(&f, 8, PAGE_SIZE);
	must(open_now(&f, 1) == QUIRE_OK);
	ticket = submit(&f, &guess);
	if (late)
		settle(&f);
	must(quire_runtime_abandon(f.runtime, ticket) == QUIRE_OK);
	settle(&f);
	stats = stats_of(&f);
	fixture_end(&f);
	return stats;
}

START_TEST(an_abandoned_step_counts_the_same_planned_or_not)
{
	struct quire_runtime_stats early = count_abandoned(false);
	struct quire_runtime_stats late = count_abandoned(true);

	ck_assert_uint_eq(early.commands, late.commands);
	ck_assert_uint_eq(early.steps_abandoned, late.steps_abandoned);
	ck_assert_uint_eq(early.refused, late.refused);
}
END_TEST

/* Two stacked steps of a request that is not there: the upper one is promoted, in vain,
 * then the lower one abandoned.  @late: the planner hears the one before the other. */
static uint64_t count_in_vain(bool late)
{
	static const struct quire_segment nobody = {.request = 9, .span = 1};
	const struct quire_step step = {
		.segments = &nobody, .num_segments = 1, .flags = QUIRE_STEP_SPECULATIVE};
	struct fixture f;
	uint64_t lower, upper, abandoned;

	fixture_start(&f, 8, PAGE_SIZE);
	lower = submit(&f, &step);
	upper = submit(&f, &step);
	settle(&f);
	must(quire_runtime_promote(f.runtime, upper) == QUIRE_OK);
	if (late)
		settle(&f);
	must(quire_runtime_abandon(f.runtime, lower) == QUIRE_OK);
	settle(&f);
	abandoned = stats_of(&f).steps_abandoned;
	fixture_end(&f);
	return abandoned;
}

START_TEST(a_step_promoted_in_vain_counts_as_abandoned)
{
	ck_assert_uint_eq(count_in_vain(false), 2);
	ck_assert_uint_eq(count_in_vain(true), 2);
}
END_TEST

/* ------------------------------------------------------------ what a step may name */

/* main and b share both pages; one page of b is overwritten, or that is refused. */
START_TEST(a_copy_onto_a_shared_page_leaves_its_other_owner_alone)
{
	static float rows[2 * PAGE_SIZE * ROW], read[2 * PAGE_SIZE * ROW];
	static const struct quire_fork fork = {.source = "main", .target = "b"};
	const struct quire_segment write = {.request = 1, .span = 2 * PAGE_SIZE};
	const struct quire_segment both[] = {{.request = 1, .at = 2 * PAGE_SIZE},
	                                     {.request = 1, .label = "b", .at = 8}};
	struct quire_work work = {.kind = QUIRE_WORK_WRITE,
	                          .write = {.dtype = QUIRE_F32, .k = rows, .v = rows}};
	struct quire_step step = {.segments = &write,
	                          .num_segments = 1,
	                          .work = &work,
	                          .num_work = 1,
	                          .post_forks = &fork,
	                          .num_post_forks = 1};
	struct fixture f;

	for (int i = 0; i < 2 * PAGE_SIZE * ROW; i++)
		rows[i] = (float)i;
	fixture_start(&f, 8, PAGE_SIZE);
	must(open_now(&f, 1) == QUIRE_OK);
	must(submit_now(&f, &step).refusal.status == QUIRE_OK);
	step = (struct quire_step){
		.segments = both, .num_segments = 2, .work = &work, .num_work = 1};
	work = (struct quire_work){
		.kind = QUIRE_WORK_COPY,
		.copy = {.source_page = 1, .target_segment = 1, .target_page = 0}};
	(void)submit_now(&f, &step);
	work = (struct quire_work){.kind = QUIRE_WORK_READ,
	                           .read = {.count = PAGE_SIZE, .out = read}};
	must(submit_now(&f, &step).refusal.status == QUIRE_OK);
	for (int i = 0; i < PAGE_SIZE * ROW; i++) /* K, then V, of each token */
		ck_assert_float_eq(read[2 * (i / ROW) * ROW + i % ROW], rows[i]);
	fixture_end(&f);
}
END_TEST

/* @_i: it is waited for, or recorded. */
START_TEST(an_event_of_another_device_is_the_fault_of_its_step)
{
	struct quire_step step = {.segments = &one_token, .num_segments = 1};
	struct quire_device *other;
	struct quire_event *event;
	struct fixture f;

	fixture_start(&f, 8, PAGE_SIZE);
	must(quire_device_create("cpu", &other, NULL) == QUIRE_OK);
	must(quire_event_create(other, &event) == QUIRE_OK);
	must(open_now(&f, 1) == QUIRE_OK);
	step.wait_event = _i == 0 ? event : NULL;
	step.record_event = _i == 0 ? NULL : event;
	ck_assert_int_eq(submit_now(&f, &step).refusal.status, QUIRE_INVALID);
	ck_assert_int_eq(quire_runtime_failure(f.runtime, NULL), QUIRE_OK);
	fixture_end(&f);
	quire_event_destroy(event);
	quire_device_destroy(other);
}
END_TEST

/* ------------------------------------------------------------ threads */

static void *create_runtime(void *argument)
{
	fixture_create(argument);
	return NULL;
}

static void *wait_a_little(void *argument)
{
	static enum quire_status status;
	struct fixture *f = argument;

	status = quire_runtime_wait(f->runtime, 1, QUIRE_STAGE_RETIRED, in_ms(20), NULL);
	return &status;
}

static enum quire_status *run_thread(void *(*main)(void *argument), struct fixture *f)
{
	pthread_t thread;
	void *status;

	must(pthread_create(&thread, NULL, main, f) == 0);
	pthread_join(thread, &status);
	return status;
}

/* A new thread's own variables may lie where those of one that is gone lay. */
START_TEST(a_thread_may_wait_though_one_that_is_gone_drove)
{
	struct fixture f;

	fixture_begin(&f, "cpu:inline", 8, PAGE_SIZE);
	(void)run_thread(create_runtime, &f);
	must(quire_runtime_open(f.runtime, 1, NULL) == QUIRE_OK);
	ck_assert_int_eq(*run_thread(wait_a_little, &f), QUIRE_TIMEOUT);
	settle(&f);
	fixture_end(&f);
}
END_TEST

/* ------------------------------------------------------------------ suite */

static Suite *make_suite(void)
{
	Suite *suite = suite_create("edges");
	TCase *queue = tcase_create("a plan and what it gives up find room");
	TCase *failed = tcase_create("a failed runtime");
	TCase *held = tcase_create("what rests on a held step");
	TCase *named = tcase_create("what a step names");
	TCase *threads = tcase_create("threads come and go");

	tcase_add_loop_test(queue, a_plan_and_its_release_fit_where_the_queue_has_room, 0,
	                    3);
	suite_add_tcase(suite, queue);
	tcase_add_test(failed, a_failed_runtime_is_drained_though_a_step_was_held);
	tcase_add_test(failed, who_sees_a_held_step_fail_sees_why);
	suite_add_tcase(suite, failed);
	tcase_add_test(held, stacked_steps_that_fit_the_ring_are_never_HELD);
	tcase_add_test(held, a_thread_that_has_to_poll_is_told_so_not_HELD);
	tcase_add_test(held, an_abandoned_step_counts_the_same_planned_or_not);
	tcase_add_test(held, a_step_promoted_in_vain_counts_as_abandoned);
	suite_add_tcase(suite, held);
	tcase_add_test(named, a_copy_onto_a_shared_page_leaves_its_other_owner_alone);
	tcase_add_loop_test(named, an_event_of_another_device_is_the_fault_of_its_step, 0,
	                    2);
	suite_add_tcase(suite, named);
	tcase_add_test(threads, a_thread_may_wait_though_one_that_is_gone_drove);
	suite_add_tcase(suite, threads);
	return suite;
}

int main(void)
{
	return run_suite(make_suite());
}
