/* SPDX-License-Identifier: MIT */
/* What the executor does with one plan: waits for and records events, copies before and
 * behind the work, tells the end in plan order; and what shows when it stands still. */
#include "config.h"

#include "fixture.h"
#include "tests/run_suite.h"

#include <check.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>

#define NUM_PAGES 16
#define PAGE_SIZE 4
#define STEPS     6
/* Nobody needs so long: who does, hangs. */
#define FAR_NS INT64_C(20000000000)
/* Long enough for what is not held back to happen; nothing fails when it is too short. */
#define TEMPT_NS 20000000

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void tempt(void)
{
	const struct timespec pause = {.tv_nsec = TEMPT_NS};

	nanosleep(&pause, NULL);
}

/* Poll until the ticket is there. */
static struct quire_outcome drive_to(struct fixture *f, uint64_t ticket)
{
	int64_t deadline = now_ns() + FAR_NS;
	struct quire_outcome outcome;

	for (;;) {
		uint32_t value = quire_runtime_idle_value(f->runtime);

		settle(f);
		if (quire_runtime_wait(f->runtime, ticket, QUIRE_STAGE_RETIRED, 0,
		                       &outcome) == QUIRE_OK)
			return outcome;
		must(quire_runtime_idle(f->runtime, value, deadline) == QUIRE_OK);
	}
}

static enum quire_status pass_gate(void *argument)
{
	sem_wait(argument);
	return QUIRE_OK;
}

/* ------------------------------------------------------------------ events */

static _Atomic int clock_of_calls;

/* Notes, in its argument, which call of all it is: 1, 2, ... */
static enum quire_status note_call(void *argument)
{
	atomic_store((_Atomic int *)argument, atomic_fetch_add(&clock_of_calls, 1) + 1);
	return QUIRE_OK;
}

/* A step's work: it waits at a gate of its own, then notes when. */
struct noted {
	sem_t gate;
	_Atomic int place;
};

static enum quire_status queue_note(void *argument, const struct quire_plan *plan,
                                    struct quire_dstream *compute)
{
	struct noted *noted = argument;
	enum quire_status status = quire_dstream_call(compute, pass_gate, &noted->gate);

	(void)plan;
	return status != QUIRE_OK
	               ? status
	               : quire_dstream_call(compute, note_call, (void *)&noted->place);
}

struct events {
	struct fixture f;
	struct quire_dstream *engine;
	struct quire_step step;
};

static void events_begin(struct events *e)
{
	atomic_store(&clock_of_calls, 0);
	fixture_begin(&e->f, TEST_DEVICE_LATE, NUM_PAGES, PAGE_SIZE);
	fixture_create(&e->f);
	must(quire_dstream_create(e->f.device, "engine", &e->engine) == QUIRE_OK);
	must(quire_event_create(e->f.device, &e->step.wait_event) == QUIRE_OK);
	must(quire_event_create(e->f.device, &e->step.record_event) == QUIRE_OK);
	must(open_now(&e->f, 1) == QUIRE_OK);
}

static void events_end(struct events *e)
{
	quire_dstream_destroy(e->engine);
	quire_runtime_destroy(e->f.runtime);
	quire_event_destroy(e->step.wait_event);
	quire_event_destroy(e->step.record_event);
	quire_cache_destroy(e->f.cache);
	quire_device_destroy(e->f.device);
}

START_TEST(a_step_waits_for_its_event_and_records_another)
{
	const struct quire_segment segment = {.request = 1, .span = 1, .at = 0};
	struct noted inside = {.place = 0};
	_Atomic int before = 0, behind = 0;
	struct events e = {.step = {.segments = &segment,
	                            .num_segments = 1,
	                            .run = queue_note,
	                            .run_argument = &inside}};
	uint64_t ticket;
	sem_t gate;

	sem_init(&gate, 0, 0);
	sem_init(&inside.gate, 0, 1);
	events_begin(&e);
	must(quire_dstream_call(e.engine, pass_gate, &gate) == QUIRE_OK);
	must(quire_dstream_call(e.engine, note_call, (void *)&before) == QUIRE_OK);
	must(quire_event_record(e.step.wait_event, e.engine) == QUIRE_OK);
	ticket = submit(&e.f, &e.step);
	settle(&e.f);
	ck_assert_int_eq(
		quire_runtime_wait(e.f.runtime, ticket, QUIRE_STAGE_ISSUED, 0, NULL),
		QUIRE_OK);
	tempt();
	ck_assert_int_eq(atomic_load(&inside.place), 0);
	sem_post(&gate);
	must(quire_dstream_wait_event(e.engine, e.step.record_event) == QUIRE_OK);
	must(quire_dstream_call(e.engine, note_call, (void *)&behind) == QUIRE_OK);
	ck_assert_int_eq(drive_to(&e.f, ticket).refusal.status, QUIRE_OK);
	ck_assert_int_eq(quire_dstream_synchronize(e.engine, NULL), QUIRE_OK);
	ck_assert_int_eq(atomic_load(&before), 1);
	ck_assert_int_eq(atomic_load(&inside.place), 2);
	ck_assert_int_eq(atomic_load(&behind), 3);
	events_end(&e);
	sem_destroy(&inside.gate);
	sem_destroy(&gate);
}
END_TEST

/* The event to wait for was never recorded: it counts as done. */
START_TEST(the_event_of_a_step_is_done_behind_its_work_and_not_before)
{
	const struct quire_segment segment = {.request = 1, .span = 1, .at = 0};
	struct noted inside = {.place = 0};
	struct events e = {.step = {.segments = &segment,
	                            .num_segments = 1,
	                            .run = queue_note,
	                            .run_argument = &inside}};
	uint64_t ticket;

	sem_init(&inside.gate, 0, 0);
	events_begin(&e);
	ticket = submit(&e.f, &e.step);
	settle(&e.f);
	tempt();
	ck_assert_int_eq(quire_event_query(e.step.record_event), QUIRE_AGAIN);
	sem_post(&inside.gate);
	ck_assert_int_eq(drive_to(&e.f, ticket).refusal.status, QUIRE_OK);
	ck_assert_int_eq(quire_event_query(e.step.record_event), QUIRE_OK);
	ck_assert_int_eq(atomic_load(&inside.place), 1);
	events_end(&e);
	sem_destroy(&inside.gate);
}
END_TEST

/* ------------------------------------------------------------------ copies */

#define ROW (FIXTURE_HEADS * FIXTURE_DIM)

#define SHOWN 8 /* pages, as copied to the host */

/* Which page, of layer 0, where K of its first token lies. */
#define FIRST(page) ((page)*2 * PAGE_SIZE * ROW)

/* The device's, and a stream of the test's own to and from there. */
struct bytes {
	struct quire_dstream *dstream;
	float *cache;
	float *rows; /* [ROW] */
	float shown[FIRST(SHOWN)];
};

/* Page p begins with 10 + p, the rows to write with 77. */
static void bytes_begin(struct bytes *bytes, struct fixture *f)
{
	static const float row[ROW] = {77};

	memset(bytes, 0, sizeof(*bytes));
	bytes->cache = quire_cache_data_ptr(f->cache);
	must(quire_dstream_create(f->device, "test", &bytes->dstream) == QUIRE_OK);
	must(quire_device_alloc(f->device, sizeof(row), (void **)&bytes->rows) ==
	     QUIRE_OK);
	copy_now(bytes->dstream, bytes->rows, row, sizeof(row));
	for (int page = 0; page < SHOWN; page++)
		bytes->shown[FIRST(page)] = (float)(10 + page);
	copy_now(bytes->dstream, bytes->cache, bytes->shown, sizeof(bytes->shown));
}

static int first_of(struct bytes *bytes, int page)
{
	copy_now(bytes->dstream, bytes->shown, bytes->cache, sizeof(bytes->shown));
	return (int)bytes->shown[FIRST(page)];
}

static void bytes_end(struct bytes *bytes, struct fixture *f)
{
	quire_runtime_destroy(f->runtime);
	quire_device_release(f->device, bytes->rows, ROW * sizeof(float));
	quire_dstream_destroy(bytes->dstream);
	quire_cache_destroy(f->cache);
	quire_device_destroy(f->device);
}

/* Pages behind those that the step owns.  As lists a plan has: 4 gets 3's first, 5 what
 * was in 4, 6 what the step leaves in its page 0. */
static enum quire_status plan_copies(void *argument, struct quire_plan *plan)
{
	static const int32_t source[] = {3, 4, 0}, target[] = {4, 5, 6};

	(void)argument;
	plan->num_pre_copies = 2;
	plan->num_post_copies = 1;
	for (int i = 0; i < 3; i++) {
		plan->copy_source[i] = source[i];
		plan->copy_target[i] = target[i];
		plan->copy_end[i] = 1;
	}
	return QUIRE_OK;
}

/* Over the first row of page 0. */
static enum quire_status queue_write(void *argument, const struct quire_plan *plan,
                                     struct quire_dstream *compute)
{
	const struct bytes *bytes = argument;
	const struct quire_range range = {.target = bytes->cache + FIRST(0),
	                                  .source = bytes->rows,
	                                  .bytes = ROW * sizeof(float)};

	(void)plan;
	return quire_dstream_copy(compute, &range, 1);
}

START_TEST(copies_are_one_batch_before_the_work_and_one_behind)
{
	const struct quire_segment segment = {.request = 1, .span = 1, .at = 0};
	struct bytes bytes;
	const struct quire_step step = {.segments = &segment,
	                                .num_segments = 1,
	                                .run = queue_write,
	                                .run_argument = &bytes};
	struct fixture f;

	fixture_begin(&f, test_devices[_i], NUM_PAGES, PAGE_SIZE);
	f.config.on_plan = plan_copies;
	fixture_create(&f);
	bytes_begin(&bytes, &f);
	ck_assert_int_eq(open_now(&f, 1), QUIRE_OK);
	ck_assert_int_eq(drive_to(&f, submit(&f, &step)).refusal.status, QUIRE_OK);
	ck_assert_int_eq(first_of(&bytes, 0), 77);
	ck_assert_int_eq(first_of(&bytes, 3), 13);
	ck_assert_int_eq(first_of(&bytes, 4), 13);
	ck_assert_int_eq(first_of(&bytes, 5), 14); /* all sources before any target */
	ck_assert_int_eq(first_of(&bytes, 6), 77); /* behind the work */
	ck_assert_int_eq(first_of(&bytes, 7), 17);
	bytes_end(&bytes, &f);
}
END_TEST

/* A pre-copy reads a page before the step writes it. */
static enum quire_status plan_early_copy(void *argument, struct quire_plan *plan)
{
	(void)argument;
	plan->num_pre_copies = 1;
	plan->copy_source[0] = 0;
	plan->copy_target[0] = 4;
	plan->copy_end[0] = 1;
	return QUIRE_OK;
}

START_TEST(what_a_step_writes_is_not_in_its_first_copies)
{
	const struct quire_segment segment = {.request = 1, .span = 1, .at = 0};
	struct quire_work work = {.kind = QUIRE_WORK_WRITE,
	                          .write = {.dtype = QUIRE_F32}};
	const struct quire_step step = {
		.segments = &segment, .num_segments = 1, .num_work = 1, .work = &work};
	struct bytes bytes;
	struct fixture f;

	fixture_begin(&f, test_devices[_i], NUM_PAGES, PAGE_SIZE);
	f.config.on_plan = plan_early_copy;
	fixture_create(&f);
	bytes_begin(&bytes, &f);
	work.write.k = work.write.v = bytes.rows;
	ck_assert_int_eq(open_now(&f, 1), QUIRE_OK);
	ck_assert_int_eq(drive_to(&f, submit(&f, &step)).refusal.status, QUIRE_OK);
	ck_assert_int_eq(first_of(&bytes, 0), 77);
	ck_assert_int_eq(first_of(&bytes, 4), 10);
	bytes_end(&bytes, &f);
}
END_TEST

/* ------------------------------------------------------------------ done */

struct told;

/* What one step's function is given. */
struct teller {
	struct told *told;
	uint64_t ticket;
};

struct told {
	struct fixture f;
	struct teller tellers[STEPS];
	sem_t gate;
	uint64_t fails_at; /* ticket */
	int num;
	uint64_t tickets[2 * STEPS];
	enum quire_status statuses[2 * STEPS];
	bool wrong;
};

static void note_done(void *argument, uint64_t ticket,
                      const struct quire_outcome *outcome)
{
	struct teller *teller = argument;
	struct told *told = teller->told;
	struct quire_outcome now;
	enum quire_status status;

	told->wrong |= ticket != teller->ticket;
	told->tickets[told->num] = ticket;
	told->statuses[told->num++] = outcome->refusal.status;
	/* The ticket is not there yet, the numbers are. */
	status =
		quire_runtime_wait(told->f.runtime, ticket, QUIRE_STAGE_RETIRED, 0, &now);
	told->wrong |= status != QUIRE_TIMEOUT || outcome->stage != QUIRE_STAGE_RETIRED;
	told->wrong |= outcome->refusal.status == QUIRE_OK &&
	               stats_of(&told->f).steps_retired < outcome->step;
	told->wrong |= quire_runtime_wait(told->f.runtime, ticket, QUIRE_STAGE_RETIRED,
	                                  QUIRE_NO_DEADLINE, NULL) != QUIRE_WOULD_BLOCK;
}

static enum quire_status gate_or_fail(void *argument, const struct quire_plan *plan,
                                      struct quire_dstream *compute)
{
	struct told *told = argument;

	if (plan->ticket == told->fails_at)
		return QUIRE_INVALID;
	return quire_dstream_call(compute, pass_gate, &told->gate);
}

static void told_begin(struct told *told, int32_t depth, uint64_t fails_at)
{
	memset(told, 0, sizeof(*told));
	sem_init(&told->gate, 0, 0);
	told->fails_at = fails_at;
	fixture_begin(&told->f, TEST_DEVICE_LATE, NUM_PAGES, PAGE_SIZE);
	told->f.config.depth = depth;
	fixture_create(&told->f);
	must(open_now(&told->f, 1) == QUIRE_OK); /* ticket 1 */
}

/* Tickets 2 .. STEPS + 1, as many planned before the first is issued as there are slots;
 * the gate is closed. */
static uint64_t give_steps(struct told *told)
{
	const struct quire_segment segment = {
		.request = 1, .span = 1, .at = QUIRE_AT_ANY};
	struct quire_step step = {.segments = &segment,
	                          .num_segments = 1,
	                          .run = gate_or_fail,
	                          .run_argument = told,
	                          .done = note_done};
	uint64_t last = 0;

	for (int i = 0; i < STEPS; i++) {
		told->tellers[i] = (struct teller){told, (uint64_t)i + 2};
		step.done_argument = &told->tellers[i];
		last = submit(&told->f, &step);
	}
	while (quire_planner_poll(told->f.runtime))
		continue;
	settle(&told->f);
	return last;
}

static void open_gate(struct told *told)
{
	for (int i = 0; i < STEPS; i++)
		sem_post(&told->gate);
}

START_TEST(the_end_of_each_step_is_told_once_in_order_before_its_ticket_says_so)
{
	static struct told told;
	uint64_t last;

	told_begin(&told, _i == 0 ? STEPS : _i, 0);
	last = give_steps(&told);
	ck_assert_int_eq(told.num, 0);
	open_gate(&told);
	ck_assert_int_eq(drive_to(&told.f, last).refusal.status, QUIRE_OK);
	ck_assert_int_eq(told.num, STEPS);
	for (int i = 0; i < STEPS; i++) {
		ck_assert_uint_eq(told.tickets[i], (uint64_t)i + 2);
		ck_assert_int_eq(told.statuses[i], QUIRE_OK);
	}
	ck_assert(!told.wrong);
	fixture_end(&told.f);
	ck_assert_int_eq(told.num, STEPS);
}
END_TEST

/* Steps 2 and 3 are on the device when 4 fails; 5 to 7 never run, and end behind them. */
START_TEST(what_a_failed_runtime_does_not_run_ends_behind_what_it_runs)
{
	static struct told told;
	uint64_t last;

	told_begin(&told, STEPS, 4);
	last = give_steps(&told);
	ck_assert_int_eq(quire_runtime_failure(told.f.runtime, NULL), QUIRE_CALLBACK);
	ck_assert_int_eq(told.num, 0);
	open_gate(&told);
	ck_assert_int_eq(drive_to(&told.f, last).refusal.status, QUIRE_CALLBACK);
	ck_assert_int_eq(told.num, STEPS);
	for (int i = 0; i < STEPS; i++) {
		ck_assert_uint_eq(told.tickets[i], (uint64_t)i + 2);
		ck_assert_int_eq(told.statuses[i], QUIRE_CALLBACK);
	}
	ck_assert(!told.wrong);
	ck_assert_int_eq(stats_of(&told.f).pages_retiring, 0);
	fixture_end(&told.f);
	ck_assert_int_eq(told.num, STEPS);
}
END_TEST

/* ------------------------------------------------------------------ standing still */

static _Atomic int64_t fake_ns;

static int64_t fake_now(void *argument)
{
	(void)argument;
	return atomic_load(&fake_ns);
}

START_TEST(an_entry_that_nobody_takes_shows_as_a_stall_of_its_age)
{
	const struct quire_segment segment = {.request = 1, .span = 1, .at = 0};
	const struct quire_step step = {.segments = &segment, .num_segments = 1};
	struct fixture f;
	uint64_t ticket;

	atomic_store(&fake_ns, 1000);
	fixture_begin(&f, TEST_DEVICE_OTHER, NUM_PAGES, PAGE_SIZE);
	f.config.hooks.now_ns = fake_now;
	fixture_create(&f);
	ck_assert_int_eq(open_now(&f, 1), QUIRE_OK);
	ck_assert_int_eq(stats_of(&f).executor_stalled_ns, 0);
	atomic_store(&fake_ns, 50000);
	ticket = submit(&f, &step);
	while (quire_planner_poll(f.runtime))
		continue;
	atomic_store(&fake_ns, 53000);
	ck_assert_int_eq(stats_of(&f).executor_stalled_ns, 3000);
	must(quire_runtime_reset(f.runtime, 1, NULL, false, &ticket) == QUIRE_OK);
	while (quire_planner_poll(f.runtime))
		continue;
	ck_assert_int_eq(stats_of(&f).executor_stalled_ns, 3000);
	ck_assert(quire_executor_poll(f.runtime)); /* takes the step, not the release */
	atomic_store(&fake_ns, 58000);
	ck_assert_int_eq(stats_of(&f).executor_stalled_ns, 5000);
	settle(&f);
	ck_assert_int_eq(stats_of(&f).executor_stalled_ns, 0);
	fixture_end(&f);
}
END_TEST

static enum quire_status stand_at_gate(void *argument, const struct quire_plan *plan,
                                       struct quire_dstream *compute)
{
	(void)plan;
	(void)compute;
	sem_wait(argument);
	return QUIRE_OK;
}

START_TEST(deadlines_pass_while_a_callback_holds_the_executor)
{
	const struct quire_segment segment = {
		.request = 1, .span = 1, .at = QUIRE_AT_ANY};
	struct quire_step step = {
		.segments = &segment, .num_segments = 1, .run = stand_at_gate};
	uint64_t first, second;
	struct fixture f;
	sem_t gate;

	sem_init(&gate, 0, 0);
	fixture_begin(&f, TEST_DEVICE_LATE, NUM_PAGES, PAGE_SIZE);
	f.config.threads = QUIRE_THREADS_LIBRARY;
	fixture_create(&f);
	step.run_argument = &gate;
	must(quire_runtime_open(f.runtime, 1, NULL) == QUIRE_OK);
	first = submit(&f, &step);
	second = submit(&f, &step);
	must(quire_runtime_wait(f.runtime, second, QUIRE_STAGE_PLANNED, now_ns() + FAR_NS,
	                        NULL) == QUIRE_OK);
	ck_assert_int_eq(quire_runtime_wait(f.runtime, first, QUIRE_STAGE_ISSUED,
	                                    now_ns() + 5000000, NULL),
	                 QUIRE_TIMEOUT);
	ck_assert_int_ge(stats_of(&f).executor_stalled_ns, 0);
	while (stats_of(&f).executor_stalled_ns < 1000000) /* it grows until it is so */
		sched_yield();
	sem_post(&gate);
	sem_post(&gate);
	must(quire_runtime_wait(f.runtime, second, QUIRE_STAGE_RETIRED, now_ns() + FAR_NS,
	                        NULL) == QUIRE_OK);
	ck_assert_int_eq(stats_of(&f).executor_stalled_ns, 0);
	fixture_end(&f);
	sem_destroy(&gate);
}
END_TEST

struct waiter {
	struct fixture f;
	uint64_t ticket;
	enum quire_status status;
};

static void *wait_shortly(void *argument)
{
	struct waiter *waiter = argument;

	waiter->status =
		quire_runtime_wait(waiter->f.runtime, waiter->ticket, QUIRE_STAGE_RETIRED,
	                           now_ns() + 5000000, NULL);
	return NULL;
}

START_TEST(deadlines_pass_while_nobody_polls)
{
	const struct quire_segment segment = {.request = 1, .span = 1, .at = 0};
	const struct quire_step step = {.segments = &segment, .num_segments = 1};
	static struct waiter waiter;
	pthread_t thread;

	fixture_begin(&waiter.f, TEST_DEVICE_OTHER, NUM_PAGES, PAGE_SIZE);
	fixture_create(&waiter.f);
	ck_assert_int_eq(open_now(&waiter.f, 1), QUIRE_OK);
	waiter.ticket = submit(&waiter.f, &step);
	must(pthread_create(&thread, NULL, wait_shortly, &waiter) == 0);
	pthread_join(thread, NULL);
	ck_assert_int_eq(waiter.status, QUIRE_TIMEOUT);
	ck_assert_int_eq(drive_to(&waiter.f, waiter.ticket).refusal.status, QUIRE_OK);
	fixture_end(&waiter.f);
}
END_TEST

/* An engine's stream that failed takes the step with it that waits for its event. */
static enum quire_status fail_on_device(void *argument)
{
	(void)argument;
	return QUIRE_IO;
}

START_TEST(a_step_that_waits_for_what_failed_fails_the_runtime)
{
	const struct quire_segment segment = {.request = 1, .span = 1, .at = 0};
	struct quire_step step = {.segments = &segment, .num_segments = 1};
	struct quire_dstream *engine;
	struct quire_refusal refusal;
	struct fixture f;
	uint64_t ticket;

	fixture_begin(&f, TEST_DEVICE_LATE, NUM_PAGES, PAGE_SIZE);
	fixture_create(&f);
	must(quire_dstream_create(f.device, "engine", &engine) == QUIRE_OK);
	must(quire_event_create(f.device, &step.wait_event) == QUIRE_OK);
	must(quire_dstream_call(engine, fail_on_device, NULL) == QUIRE_OK);
	must(quire_event_record(step.wait_event, engine) == QUIRE_OK);
	must(open_now(&f, 1) == QUIRE_OK);
	ticket = submit(&f, &step);
	ck_assert_int_eq(drive_to(&f, ticket).refusal.status, QUIRE_DEVICE);
	ck_assert_int_eq(quire_runtime_failure(f.runtime, &refusal), QUIRE_DEVICE);
	ck_assert_uint_eq(refusal.ticket, ticket);
	quire_dstream_destroy(engine);
	quire_runtime_destroy(f.runtime);
	quire_event_destroy(step.wait_event);
	quire_cache_destroy(f.cache);
	quire_device_destroy(f.device);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("executor");
	TCase *tcase = tcase_create("executor");

	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, a_step_waits_for_its_event_and_records_another);
	tcase_add_test(tcase, the_event_of_a_step_is_done_behind_its_work_and_not_before);
	tcase_add_loop_test(tcase, copies_are_one_batch_before_the_work_and_one_behind, 0,
	                    2);
	tcase_add_loop_test(tcase, what_a_step_writes_is_not_in_its_first_copies, 0, 2);
	tcase_add_loop_test(
		tcase,
		the_end_of_each_step_is_told_once_in_order_before_its_ticket_says_so, 0,
		3);
	tcase_add_test(tcase,
	               what_a_failed_runtime_does_not_run_ends_behind_what_it_runs);
	tcase_add_test(tcase, an_entry_that_nobody_takes_shows_as_a_stall_of_its_age);
	tcase_add_test(tcase, deadlines_pass_while_a_callback_holds_the_executor);
	tcase_add_test(tcase, deadlines_pass_while_nobody_polls);
	tcase_add_test(tcase, a_step_that_waits_for_what_failed_fails_the_runtime);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
