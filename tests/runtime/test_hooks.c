/* SPDX-License-Identifier: MIT */
/* Hooks: a program's own memory, slots, clock, log, and handler of failed assertions. */
#include "config.h"

#include "fixture.h"
#include "tests/run_suite.h"

#include <quire/runtime/assert.h>

#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NUM_PAGES  16
#define PAGE_SIZE  4
#define PLACES_MAX 200

/* ------------------------------------------------------------------ memory */

/* In front of each piece: what it was asked with. */
struct piece {
	void *start;
	size_t bytes;
};

struct heap {
	int64_t live_bytes;
	int64_t pieces; /* live */
	int64_t most;
	int64_t asked;
	int64_t fail_at; /* the so-many-th request fails; 0: none */
	bool wrong;
};

static void *heap_alloc(void *argument, size_t bytes, size_t align)
{
	struct heap *heap = argument;
	struct piece *piece;
	char *start;
	uintptr_t memory;

	if (++heap->asked == heap->fail_at)
		return NULL;
	start = calloc(1, bytes + align + sizeof(*piece));
	must(start != NULL);
	memory = ((uintptr_t)start + sizeof(*piece) + align - 1) / align * align;
	piece = (struct piece *)memory - 1;
	*piece = (struct piece){.start = start, .bytes = bytes};
	heap->pieces++;
	heap->live_bytes += (int64_t)bytes;
	if (heap->live_bytes > heap->most)
		heap->most = heap->live_bytes;
	return (void *)memory;
}

static void heap_release(void *argument, void *memory, size_t bytes)
{
	struct heap *heap = argument;
	struct piece *piece = (struct piece *)memory - 1;

	heap->wrong |= piece->bytes != bytes;
	heap->pieces--;
	heap->live_bytes -= (int64_t)bytes;
	free(piece->start);
}

static void heap_begin(struct fixture *f, struct heap *heap, enum quire_threads threads)
{
	*heap = (struct heap){.asked = 0};
	fixture_begin(f, "cpu:inline", NUM_PAGES, PAGE_SIZE);
	f->config.threads = threads;
	f->config.hooks.memory = (struct quire_memory){
		.alloc = heap_alloc, .release = heap_release, .argument = heap};
}

static void end_without_runtime(struct fixture *f)
{
	quire_cache_destroy(f->cache);
	quire_device_destroy(f->device);
}

START_TEST(every_byte_asked_for_is_given_back)
{
	struct heap heap;
	struct fixture f;

	heap_begin(&f, &heap, (enum quire_threads)_i);
	/* More than the fixture's, so that each array has a size of its own. */
	f.config.rows_max = 77;
	f.config.depth = 3;
	fixture_create(&f);
	ck_assert_int_gt(heap.live_bytes, (int64_t)(77 * sizeof(int32_t)));
	ck_assert_int_gt(heap.pieces, 10);
	quire_runtime_destroy(f.runtime);
	ck_assert_int_eq(heap.live_bytes, 0);
	ck_assert_int_eq(heap.pieces, 0);
	ck_assert(!heap.wrong);
	end_without_runtime(&f);
}
END_TEST

START_TEST(whichever_request_for_memory_fails_create_leaves_nothing_behind)
{
	struct quire_runtime *runtime = NULL;
	struct quire_refusal refusal;
	struct heap heap;
	struct fixture f;
	int64_t place = 1;

	heap_begin(&f, &heap, (enum quire_threads)_i);
	for (;; place++) {
		enum quire_status status;

		ck_assert_int_lt(place, PLACES_MAX);
		heap = (struct heap){.fail_at = place};
		status = quire_runtime_create(&f.config, &runtime, &refusal);
		if (status == QUIRE_OK)
			break;
		ck_assert_int_eq(status, QUIRE_NO_MEMORY);
		ck_assert_int_eq(refusal.status, QUIRE_NO_MEMORY);
		ck_assert_ptr_null(runtime);
		ck_assert_int_eq(heap.live_bytes, 0);
		ck_assert_int_eq(heap.pieces, 0);
		ck_assert(!heap.wrong);
	}
	ck_assert_int_gt(place, 10);
	quire_runtime_destroy(runtime);
	ck_assert_int_eq(heap.live_bytes, 0);
	end_without_runtime(&f);
}
END_TEST

START_TEST(one_function_of_memory_without_the_other_is_refused)
{
	struct quire_runtime *runtime = NULL;
	struct quire_refusal refusal;
	struct heap heap;
	struct fixture f;

	heap_begin(&f, &heap, QUIRE_THREADS_CALLER);
	if (_i == 0)
		f.config.hooks.memory.alloc = NULL;
	else
		f.config.hooks.memory.release = NULL;
	ck_assert_int_eq(quire_runtime_create(&f.config, &runtime, &refusal),
	                 QUIRE_INVALID);
	ck_assert_int_eq(heap.asked, 0);
	end_without_runtime(&f);
}
END_TEST

/* ------------------------------------------------------------------ slots */

#define GUARD 64

struct seen {
	const char *host, *device;
};

static enum quire_status see(void *argument, const struct quire_plan *plan,
                             struct quire_dstream *compute)
{
	struct seen *seen = argument;

	(void)compute;
	seen->host = plan->host;
	seen->device = plan->device;
	return QUIRE_OK;
}

static bool is_in(const char *address, const char *start, int64_t bytes)
{
	return address >= start && address < start + bytes;
}

static void *with_guard(int64_t bytes)
{
	char *memory = aligned_alloc(64, (size_t)bytes + GUARD);

	must(memory != NULL);
	memset(memory, 0x5a, (size_t)bytes + GUARD);
	return memory;
}

static bool guard_holds(const char *memory, int64_t bytes)
{
	for (int i = 0; i < GUARD; i++)
		if (memory[bytes + i] != 0x5a)
			return false;
	return true;
}

/* Bit 0 of the loop: the host half is given; bit 1: the device half. */
START_TEST(given_slots_are_used_and_not_freed)
{
	const struct quire_segment segment = {
		.request = 1, .span = 1, .at = QUIRE_AT_ANY};
	struct seen seen;
	const struct quire_step step = {.segments = &segment,
	                                .num_segments = 1,
	                                .run = see,
	                                .run_argument = &seen};
	char *host, *device;
	struct fixture f;
	int64_t bytes;

	fixture_begin(&f, "cpu:inline", NUM_PAGES, PAGE_SIZE);
	f.config.depth = 3;
	ck_assert_int_eq(quire_runtime_slots_bytes(&f.config, &bytes, NULL), QUIRE_OK);
	host = with_guard(bytes);
	device = with_guard(bytes);
	if (_i & 1)
		f.config.slots_host = host;
	if (_i & 2)
		f.config.slots_device = device;
	fixture_create(&f);
	ck_assert_int_eq(open_now(&f, 1), QUIRE_OK);
	for (int i = 0; i < 7; i++) {
		ck_assert_int_eq(submit_now(&f, &step).refusal.status, QUIRE_OK);
		ck_assert_int_eq(is_in(seen.host, host, bytes), (_i & 1) != 0);
		ck_assert_int_eq(is_in(seen.device, device, bytes), (_i & 2) != 0);
	}
	fixture_end(&f);
	ck_assert(guard_holds(host, bytes) && guard_holds(device, bytes));
	free(host); /* ours: given back by the runtime too, it would be freed twice */
	free(device);
}
END_TEST

START_TEST(slots_grow_with_depth_and_the_pool_and_crooked_ones_are_refused)
{
	struct quire_runtime *runtime = NULL;
	struct quire_refusal refusal;
	int64_t one, three;
	struct fixture f;

	fixture_begin(&f, "cpu:inline", NUM_PAGES, PAGE_SIZE);
	f.config.depth = 1;
	ck_assert_int_eq(quire_runtime_slots_bytes(&f.config, &one, NULL), QUIRE_OK);
	f.config.depth = 3;
	ck_assert_int_eq(quire_runtime_slots_bytes(&f.config, &three, NULL), QUIRE_OK);
	ck_assert_int_eq(three, 3 * one);
	f.config.depth = 0;
	ck_assert_int_eq(quire_runtime_slots_bytes(&f.config, &three, &refusal),
	                 QUIRE_INVALID);
	ck_assert_str_eq(refusal.what, "depth");
	ck_assert_int_eq(three, 3 * one);
	f.config.depth = 1;
	f.config.slots_host = (char *)&f + 1;
	ck_assert_int_eq(quire_runtime_create(&f.config, &runtime, &refusal),
	                 QUIRE_INVALID);
	end_without_runtime(&f);
}
END_TEST

/* ------------------------------------------------------------------ clock */

static _Atomic int64_t fake_ns;

static int64_t fake_now(void *argument)
{
	(void)argument;
	return atomic_load(&fake_ns);
}

struct sleeper {
	struct fixture f;
	_Atomic int sleeping;
	enum quire_status status;
	int64_t until_ns, woke_ns;
};

/* For a command that nobody takes. */
static void *wait_in_vain(void *argument)
{
	struct sleeper *sleeper = argument;

	atomic_store(&sleeper->sleeping, 1);
	sleeper->status = quire_runtime_wait(sleeper->f.runtime, 1, QUIRE_STAGE_RETIRED,
	                                     sleeper->until_ns, NULL);
	sleeper->woke_ns = atomic_load(&fake_ns);
	return NULL;
}

static void *idle_in_vain(void *argument)
{
	struct sleeper *sleeper = argument;
	uint32_t value = quire_runtime_idle_value(sleeper->f.runtime);

	atomic_store(&sleeper->sleeping, 1);
	do
		sleeper->status =
			quire_runtime_idle(sleeper->f.runtime, value, sleeper->until_ns);
	while (sleeper->status == QUIRE_OK);
	sleeper->woke_ns = atomic_load(&fake_ns);
	return NULL;
}

/* On CLOCK_MONOTONIC the deadline is long over; on the program's it comes when it says
 * so. */
START_TEST(the_clock_of_a_program_decides_when_a_deadline_passes)
{
	const struct timespec pause = {.tv_nsec = 20000000};
	static struct sleeper sleeper;
	struct quire_runtime_stats stats;
	pthread_t thread;

	atomic_store(&fake_ns, 1000);
	fixture_begin(&sleeper.f, "cpu:inline", NUM_PAGES, PAGE_SIZE);
	sleeper.f.config.hooks.now_ns = fake_now;
	fixture_create(&sleeper.f);
	if (_i == 0)
		must(quire_runtime_open(sleeper.f.runtime, 1, NULL) == QUIRE_OK);
	sleeper.until_ns = 5000;
	must(pthread_create(&thread, NULL, _i == 0 ? wait_in_vain : idle_in_vain,
	                    &sleeper) == 0);
	while (atomic_load(&sleeper.sleeping) == 0)
		sched_yield();
	nanosleep(&pause, NULL);
	atomic_store(&fake_ns, 4999);
	nanosleep(&pause, NULL);
	atomic_store(&fake_ns, 5000);
	pthread_join(thread, NULL);
	ck_assert_int_eq(sleeper.status, QUIRE_TIMEOUT);
	ck_assert_int_eq(sleeper.woke_ns, 5000);
	settle(&sleeper.f);
	stats = stats_of(&sleeper.f);
	ck_assert_int_eq(stats.planner_busy_ns, 0); /* a clock that stands still */
	fixture_end(&sleeper.f);
}
END_TEST

/* ------------------------------------------------------------------ reports */

#define REPORTS_MAX 16

struct log {
	_Atomic int num;
	struct quire_report reports[REPORTS_MAX];
};

static void add_to_log(void *argument, const struct quire_report *report)
{
	struct log *log = argument;
	int place = atomic_fetch_add(&log->num, 1);

	must(place < REPORTS_MAX);
	log->reports[place] = *report;
}

/* Of a kind: how many, and the place of the last. */
static int count(const struct log *log, enum quire_report_kind kind, int *place_out)
{
	int n = 0;

	for (int i = 0; i < log->num; i++) {
		if (log->reports[i].kind != kind)
			continue;
		n++;
		*place_out = i;
	}
	return n;
}

START_TEST(a_life_without_trouble_is_reported)
{
	bool library = _i == 0;
	struct log log = {.num = 0};
	struct fixture f;
	int created, started, ended, shutdown, failed;

	fixture_begin(&f, "cpu:inline", NUM_PAGES, PAGE_SIZE);
	f.config.threads = library ? QUIRE_THREADS_LIBRARY : QUIRE_THREADS_CALLER;
	f.config.hooks.on_report = add_to_log;
	f.config.hooks.on_report_argument = &log;
	fixture_create(&f);
	fixture_end(&f);
	ck_assert_int_eq(count(&log, QUIRE_REPORT_CREATED, &created), 1);
	ck_assert_int_eq(log.num, library ? 6 : 2);
	ck_assert_int_eq(count(&log, QUIRE_REPORT_THREAD_STARTED, &started),
	                 library ? 2 : 0);
	ck_assert_int_eq(count(&log, QUIRE_REPORT_THREAD_ENDED, &ended), library ? 2 : 0);
	ck_assert_int_eq(count(&log, QUIRE_REPORT_SHUTDOWN, &shutdown), 1);
	ck_assert_int_eq(count(&log, QUIRE_REPORT_FAILED, &failed), 0);
	ck_assert_str_eq(log.reports[shutdown].text, "draining");
	ck_assert_int_gt(shutdown, created);
	if (library) { /* the executor ends last, behind the planner */
		ck_assert_str_eq(log.reports[ended].text, "executor");
		ck_assert_int_gt(ended, shutdown);
	}
}
END_TEST

static enum quire_status fail_run(void *argument, const struct quire_plan *plan,
                                  struct quire_dstream *compute)
{
	(void)argument;
	(void)plan;
	(void)compute;
	return QUIRE_IO;
}

static enum quire_status fail_plan(void *argument, struct quire_plan *plan)
{
	(void)argument;
	return plan->step == 3 ? QUIRE_IO : QUIRE_OK;
}

static enum quire_status fail_on_device(void *argument)
{
	(void)argument;
	return QUIRE_IO;
}

static enum quire_status queue_failure(void *argument, const struct quire_plan *plan,
                                       struct quire_dstream *compute)
{
	(void)argument;
	(void)plan;
	return quire_dstream_call(compute, fail_on_device, NULL);
}

/* All that is on the device with it fails too. */
START_TEST(a_failed_device_is_reported_once_with_a_step_that_met_it)
{
	const struct quire_segment segment = {
		.request = 1, .span = 1, .at = QUIRE_AT_ANY};
	const struct quire_step step = {
		.segments = &segment, .num_segments = 1, .run = queue_failure};
	struct log log = {.num = 0};
	uint64_t first, last = 0;
	struct fixture f;
	int failed;

	fixture_begin(&f, "cpu", NUM_PAGES, PAGE_SIZE);
	f.config.depth = 5;
	f.config.hooks.on_report = add_to_log;
	f.config.hooks.on_report_argument = &log;
	fixture_create(&f);
	ck_assert_int_eq(open_now(&f, 1), QUIRE_OK);
	first = submit(&f, &step);
	for (int i = 0; i < 4; i++)
		last = submit(&f, &step);
	while (quire_runtime_wait(f.runtime, last, QUIRE_STAGE_RETIRED, 0, NULL) !=
	       QUIRE_OK)
		settle(&f);
	ck_assert_int_eq(count(&log, QUIRE_REPORT_FAILED, &failed), 1);
	ck_assert_int_eq(log.reports[failed].status, QUIRE_DEVICE);
	/* Which one depends on when its thread comes to run. */
	ck_assert_uint_ge(log.reports[failed].ticket, first);
	ck_assert_uint_le(log.reports[failed].ticket, last);
	fixture_end(&f);
}
END_TEST

START_TEST(a_failure_is_reported_once_with_its_step)
{
	const struct quire_segment segment = {
		.request = 1, .span = 1, .at = QUIRE_AT_ANY};
	struct quire_step step = {.segments = &segment, .num_segments = 1};
	struct log log = {.num = 0};
	struct quire_refusal refusal;
	uint64_t tickets[5];
	int failed, shutdown;
	struct fixture f;

	fixture_begin(&f, "cpu:inline", NUM_PAGES, PAGE_SIZE);
	f.config.hooks.on_report = add_to_log;
	f.config.hooks.on_report_argument = &log;
	if (_i == 1)
		f.config.on_plan = fail_plan;
	fixture_create(&f);
	ck_assert_int_eq(open_now(&f, 1), QUIRE_OK);
	for (int i = 0; i < 5; i++) {
		step.run = _i == 0 && i == 2 ? fail_run : NULL;
		tickets[i] = submit(&f, &step);
	}
	settle(&f);
	ck_assert_int_eq(count(&log, QUIRE_REPORT_FAILED, &failed), 1);
	ck_assert_int_eq(log.reports[failed].status, QUIRE_CALLBACK);
	ck_assert_uint_eq(log.reports[failed].ticket, tickets[2]);
	ck_assert_int_eq(quire_runtime_failure(f.runtime, &refusal), QUIRE_CALLBACK);
	ck_assert_str_eq(log.reports[failed].text, refusal.what);
	ck_assert_uint_eq(refusal.ticket, tickets[2]);
	ck_assert_int_eq(quire_runtime_shutdown(f.runtime, true), QUIRE_OK);
	ck_assert_int_eq(quire_runtime_shutdown(f.runtime, true), QUIRE_CLOSED);
	fixture_end(&f);
	ck_assert_int_eq(count(&log, QUIRE_REPORT_SHUTDOWN, &shutdown), 1);
	ck_assert_str_eq(log.reports[shutdown].text, "cancelling");
}
END_TEST

/* ------------------------------------------------------------------ assertions */

#define TOLD 42

static void exit_when_told(const char *condition, const char *file, int line)
{
	bool right = strcmp(condition, "1 + 1 == 3") == 0 &&
	             strstr(file, "test_hooks.c") != NULL && line > 0;

	_exit(right ? TOLD : 1);
}

static void return_when_told(const char *condition, const char *file, int line)
{
	(void)condition;
	(void)file;
	(void)line;
}

/* How a child ends whose assertion fails. */
static int end_of_child(quire_fatal_function handler)
{
	int status;
	pid_t child = fork();

	must(child >= 0);
	if (child == 0) {
		quire_set_fatal_handler(handler);
		QUIRE_ASSERT(1 + 1 == 3);
		_exit(0);
	}
	must(waitpid(child, &status, 0) == child);
	return status;
}

START_TEST(a_failed_assertion_tells_the_handler_and_traps)
{
	int status = end_of_child(exit_when_told);

	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), TOLD);
	ck_assert(WIFSIGNALED(end_of_child(return_when_told)));
	ck_assert(WIFSIGNALED(end_of_child(NULL)));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("hooks");
	TCase *tcase = tcase_create("hooks");

	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, every_byte_asked_for_is_given_back, 0, 2);
	tcase_add_loop_test(
		tcase, whichever_request_for_memory_fails_create_leaves_nothing_behind, 0,
		2);
	tcase_add_loop_test(tcase, one_function_of_memory_without_the_other_is_refused, 0,
	                    2);
	tcase_add_loop_test(tcase, given_slots_are_used_and_not_freed, 0, 4);
	tcase_add_test(tcase,
	               slots_grow_with_depth_and_the_pool_and_crooked_ones_are_refused);
	tcase_add_loop_test(tcase, the_clock_of_a_program_decides_when_a_deadline_passes,
	                    0, 2);
	tcase_add_loop_test(tcase, a_life_without_trouble_is_reported, 0, 2);
	tcase_add_loop_test(tcase, a_failure_is_reported_once_with_its_step, 0, 2);
	tcase_add_test(tcase, a_failed_device_is_reported_once_with_a_step_that_met_it);
	tcase_add_test(tcase, a_failed_assertion_tells_the_handler_and_traps);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
