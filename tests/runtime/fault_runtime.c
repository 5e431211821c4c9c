/* SPDX-License-Identifier: MIT */
/* Memory and threads fail at every place where they are asked for, once and from then on:
 * the answer is clear, nothing leaks, nothing is given out. */
#include "config.h"

#include "counting_malloc.h"
#include "tests/run_suite.h"
#include "fixture.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define SKIPPED 77

#if COUNTING_MALLOC

#define PLACES_MAX  2000
#define NUM_PAGES   32
#define PAGE_SIZE   4
#define DEADLINE_NS 20000000000
#define STEPS       40

/* What is made, over a device and a cache that are there. */
enum thing {
	THING_DEVICE_CPU,
	THING_DEVICE_INLINE,
	THING_POOL,
	THING_LEDGER,
	THING_CACHE,
	THING_RUNTIME_LIBRARY,
	THING_RUNTIME_CALLER,
	NUM_THINGS,
};

struct bench {
	struct fixture f;
	void *made;
	struct quire_refusal refusal;
};

static const struct quire_shape shape = {
	.layout = QUIRE_NHD,
	.dtype = QUIRE_F32,
	.num_layers = 1,
	.num_pages = NUM_PAGES,
	.page_size = PAGE_SIZE,
	.num_kv_heads = 1,
	.head_dim = 2,
};

static enum quire_status make_runtime(struct bench *bench, enum quire_threads threads)
{
	bench->f.config.threads = threads;
	return quire_runtime_create(
		&bench->f.config, (struct quire_runtime **)&bench->made, &bench->refusal);
}

static enum quire_status make(struct bench *bench, enum thing thing)
{
	switch (thing) {
	case THING_DEVICE_CPU:
		return quire_device_create("cpu", (struct quire_device **)&bench->made,
		                           &bench->refusal);
	case THING_DEVICE_INLINE:
		return quire_device_create("cpu:inline",
		                           (struct quire_device **)&bench->made,
		                           &bench->refusal);
	case THING_POOL:
		bench->refusal.status = QUIRE_NO_MEMORY; /* it has no refusal to fill */
		return quire_pool_create(NUM_PAGES, (struct quire_pool **)&bench->made);
	case THING_LEDGER:
		bench->refusal.status = QUIRE_NO_MEMORY;
		return quire_ledger_create(NUM_PAGES,
		                           (struct quire_ledger **)&bench->made);
	case THING_CACHE:
		return quire_cache_create(bench->f.device, &shape,
		                          (struct quire_cache **)&bench->made,
		                          &bench->refusal);
	case THING_RUNTIME_LIBRARY:
		return make_runtime(bench, QUIRE_THREADS_LIBRARY);
	case THING_RUNTIME_CALLER:
		return make_runtime(bench, QUIRE_THREADS_CALLER);
	case NUM_THINGS:
		break;
	}
	return QUIRE_INVALID;
}

static void end(struct bench *bench, enum thing thing)
{
	switch (thing) {
	case THING_DEVICE_CPU:
	case THING_DEVICE_INLINE:
		quire_device_destroy(bench->made);
		break;
	case THING_POOL:
		quire_pool_destroy(bench->made);
		break;
	case THING_LEDGER:
		quire_ledger_destroy(bench->made);
		break;
	case THING_CACHE:
		quire_cache_destroy(bench->made);
		break;
	case THING_RUNTIME_LIBRARY:
	case THING_RUNTIME_CALLER:
		quire_runtime_destroy(bench->made);
		break;
	case NUM_THINGS:
		break;
	}
}

static void fail_at(int64_t place, bool from_then_on)
{
	atomic_store(&counting.failed, 0);
	atomic_store(&counting.fail_on, from_then_on);
	atomic_store(&counting.fail_in, place);
}

static void fail_no_more(void)
{
	atomic_store(&counting.fail_in, 0);
	atomic_store(&counting.fail_on, false);
}

static void remember_from_here(void)
{
	counting.num_live = 0;
	atomic_store(&counting.remembers, true);
}

/* Make a thing with the n-th request failing; true: it was made, n is beyond the last. */
static bool try_place(struct bench *bench, enum thing thing, int64_t place,
                      bool from_then_on)
{
	enum quire_status status;
	int64_t failed, lost;

	bench->made = bench; /* a value that nobody may touch */
	memset(&bench->refusal, 0, sizeof(bench->refusal));
	remember_from_here();
	fail_at(place, from_then_on);
	status = make(bench, thing);
	fail_no_more();
	failed = atomic_load(&counting.failed);
	if (status == QUIRE_OK)
		end(bench, thing);
	lost = counting.num_live;
	atomic_store(&counting.remembers, false);

	ck_assert_msg(lost == 0, "thing %d, place %d: %d leaked", thing, (int)place,
	              (int)lost);
	if (status == QUIRE_OK) {
		ck_assert_msg(failed == 0, "thing %d: place %d did not matter", thing,
		              (int)place);
		return true;
	}
	ck_assert_int_eq(status, QUIRE_NO_MEMORY);
	ck_assert_int_eq(bench->refusal.status, QUIRE_NO_MEMORY);
	ck_assert_ptr_eq(bench->made, bench);
	ck_assert_int_gt(failed, 0);
	return false;
}

/* As few as this would mean that the failing malloc is not the one that is called. */
static const int64_t places_least[NUM_THINGS] = {1, 1, 1, 1, 2, 20, 20};

START_TEST(every_request_for_memory_of_a_create_may_fail)
{
	struct bench bench = {.made = NULL};

	fixture_begin(&bench.f, "cpu", NUM_PAGES, PAGE_SIZE);
	bench.f.config.depth = 2;
	for (int mode = 0; mode < 2; mode++) {
		int64_t place = 1;

		while (!try_place(&bench, (enum thing)_i, place, mode == 1))
			ck_assert_int_lt(place++, PLACES_MAX);
		ck_assert_int_gt(place, places_least[_i]);
	}
	quire_cache_destroy(bench.f.cache);
	quire_device_destroy(bench.f.device);
}
END_TEST

/* Two device streams, a planner, an executor. */
#define THREADS 4

START_TEST(every_thread_of_a_create_may_fail)
{
	struct bench bench = {.made = NULL};
	enum quire_status status;
	int64_t lost;

	fixture_begin(&bench.f, "cpu", NUM_PAGES, PAGE_SIZE);
	for (int64_t place = 1; place <= THREADS; place++) {
		bench.made = &bench;
		remember_from_here();
		atomic_store(&counting.threads_fail_in, place);
		status = make(&bench, THING_RUNTIME_LIBRARY);
		lost = counting.num_live;
		atomic_store(&counting.remembers, false);
		ck_assert_int_eq(lost, 0);
		ck_assert(status == QUIRE_NO_MEMORY || status == QUIRE_DEVICE);
		ck_assert_int_eq(bench.refusal.status, status);
		ck_assert_ptr_eq(bench.made, &bench);
	}
	atomic_store(&counting.threads_fail_in, THREADS + 1);
	ck_assert_int_eq(make(&bench, THING_RUNTIME_LIBRARY), QUIRE_OK);
	atomic_store(&counting.threads_fail_in, 0);
	end(&bench, THING_RUNTIME_LIBRARY);
	quire_cache_destroy(bench.f.cache);
	quire_device_destroy(bench.f.device);
}
END_TEST

/* ------------------------------------------------------------------ recordings */

static enum quire_status swallow(void *argument, const void *bytes, size_t n)
{
	(void)argument;
	(void)bytes;
	(void)n;
	return QUIRE_OK;
}

/* Start a recording with the n-th request for memory, or for a thread, failing; true: it
 * was started. */
static bool try_recording(struct bench *bench, const struct quire_record_config *config,
                          int64_t place, bool from_then_on, bool of_threads)
{
	struct quire_runtime *runtime;
	enum quire_status status;
	int64_t lost;

	ck_assert_int_eq(quire_runtime_create(&bench->f.config, &runtime, NULL),
	                 QUIRE_OK);
	memset(&bench->refusal, 0, sizeof(bench->refusal));
	remember_from_here();
	if (of_threads)
		atomic_store(&counting.threads_fail_in, place);
	else
		fail_at(place, from_then_on);
	status = quire_runtime_record_to(runtime, config, &bench->refusal);
	fail_no_more();
	atomic_store(&counting.threads_fail_in, 0);
	lost = counting.num_live;
	if (status == QUIRE_OK) {
		ck_assert_int_eq(quire_runtime_record_end(runtime, NULL), QUIRE_OK);
		lost = 0;
	}
	atomic_store(&counting.remembers, false);
	quire_runtime_destroy(runtime);
	ck_assert_msg(lost == 0, "place %d: %d leaked", (int)place, (int)lost);
	if (status == QUIRE_OK)
		return true;
	ck_assert_int_eq(status, QUIRE_NO_MEMORY);
	ck_assert_int_eq(bench->refusal.status, QUIRE_NO_MEMORY);
	return false;
}

/* Into a function, into a file, with a timeline. */
START_TEST(every_request_for_memory_of_a_recording_may_fail)
{
	char path[] = "/tmp/quire-fault-XXXXXX", timeline[] = "/tmp/quire-fault-XXXXXX";
	struct bench bench = {.made = NULL};
	struct quire_record_config config;

	close(mkstemp(path));
	close(mkstemp(timeline));
	quire_record_config_init(&config);
	config.buffer_bytes = 1;
	config.write = _i == 0 ? swallow : NULL;
	config.path = _i == 0 ? NULL : path;
	config.timeline = _i == 2 ? timeline : NULL;
	fixture_begin(&bench.f, "cpu:inline", NUM_PAGES, PAGE_SIZE);
	for (int mode = 0; mode < 2; mode++) {
		int64_t place = 1;

		while (!try_recording(&bench, &config, place, mode == 1, false))
			ck_assert_int_lt(place++, PLACES_MAX);
		/* The recording, its eight arrays, a writer, at least. */
		ck_assert_int_gt(place, 10);
	}
	ck_assert(!try_recording(&bench, &config, 1, false, true));
	ck_assert(try_recording(&bench, &config, 2, false, true));
	quire_cache_destroy(bench.f.cache);
	quire_device_destroy(bench.f.device);
	unlink(path);
	unlink(timeline);
}
END_TEST

#ifndef QUIRE_DEBUG /* a debug build's own checks need memory */
static _Atomic int32_t gate_is_open, functions_run;

static enum quire_status wait_at_gate(void *argument)
{
	const struct timespec nap = {.tv_nsec = 100000};

	(void)argument;
	while (atomic_load(&gate_is_open) == 0)
		nanosleep(&nap, NULL);
	return QUIRE_OK;
}

static enum quire_status count_run(void *argument)
{
	(void)argument;
	atomic_fetch_add(&functions_run, 1);
	return QUIRE_OK;
}

/* An event that cannot be recorded would count as done, with all before it still to run. */
START_TEST(what_was_queued_can_be_waited_for_when_nothing_more_can_be_queued)
{
	enum quire_status status = QUIRE_OK, recorded;
	struct quire_device *device;
	struct quire_dstream *dstream;
	struct quire_event *event;
	int32_t queued = 0;

	ck_assert_int_eq(quire_device_create("cpu", &device, NULL), QUIRE_OK);
	ck_assert_int_eq(quire_dstream_create(device, "test", &dstream), QUIRE_OK);
	ck_assert_int_eq(quire_event_create(device, &event), QUIRE_OK);
	ck_assert_int_eq(quire_dstream_call(dstream, wait_at_gate, NULL), QUIRE_OK);
	fail_at(1, true);
	while (status == QUIRE_OK && queued < PLACES_MAX) {
		status = quire_dstream_call(dstream, count_run, NULL);
		queued += status == QUIRE_OK;
	}
	recorded = quire_event_record(event, dstream);
	fail_no_more(); /* before Check asks for memory of its own */
	ck_assert_int_eq(status, QUIRE_NO_MEMORY);
	ck_assert_int_eq(recorded, QUIRE_OK);
	ck_assert_int_eq(quire_event_query(event), QUIRE_AGAIN);
	atomic_store(&gate_is_open, 1);
	ck_assert_int_eq(quire_event_synchronize(event), QUIRE_OK);
	ck_assert_int_eq(atomic_load(&functions_run), queued);
	quire_dstream_destroy(dstream);
	quire_event_destroy(event);
	quire_device_destroy(device);
}
END_TEST

START_TEST(without_any_memory_requests_open_and_close_and_steps_run)
{
	struct fixture f;
	int64_t failed;

	fixture_start(&f, NUM_PAGES, PAGE_SIZE);
	ck_assert_int_eq(open_now(&f, 0), QUIRE_OK);
	/* An event keeps what it first asks for. */
	for (int32_t length = 0; length < 8; length++)
		ck_assert_int_eq(extend_now(&f, 0, NULL, 1, length).refusal.status,
		                 QUIRE_OK);
	for (uint64_t request = 1; request < 40; request++) {
		uint64_t tickets[3];
		const struct quire_segment segment = {
			.request = request, .span = 5, .at = 0};
		const struct quire_step step = {.segments = &segment, .num_segments = 1};

		ck_assert_int_eq(quire_runtime_open(f.runtime, request, &tickets[0]),
		                 QUIRE_OK);
		ck_assert_int_eq(quire_runtime_submit(f.runtime, &step, &tickets[1]),
		                 QUIRE_OK);
		ck_assert_int_eq(quire_runtime_close(f.runtime, request, &tickets[2]),
		                 QUIRE_OK);
		fail_at(1, true);
		settle(&f);
		fail_no_more();
		failed = atomic_load(&counting.failed);
		ck_assert_int_eq(failed, 0);
		for (int i = 0; i < 3; i++)
			ck_assert_int_eq(outcome_of(&f, tickets[i]).refusal.status,
			                 QUIRE_OK);
	}
	fixture_end(&f);
}
END_TEST

/* Steps on a device that has never run any, so that its queues still grow; the n-th
 * request for memory fails.  Returns how many requests failed. */
static int64_t run_steps_failing(int64_t place, bool from_then_on, int32_t depth)
{
	uint64_t tickets[STEPS + 1], first;
	const struct quire_segment segment = {
		.request = 1, .span = 1, .at = QUIRE_AT_ANY};
	const struct quire_step step = {.segments = &segment, .num_segments = 1};
	struct quire_outcome outcome;
	struct quire_refusal refusal;
	struct timespec now;
	int64_t deadline, failed;
	struct fixture f;
	int n = 0;

	fixture_begin(&f, "cpu", NUM_PAGES, PAGE_SIZE);
	f.config.threads = QUIRE_THREADS_LIBRARY;
	f.config.depth = depth;
	fixture_create(&f);
	ck_assert_int_eq(quire_runtime_open(f.runtime, 1, &first), QUIRE_OK);
	ck_assert_int_eq(quire_runtime_wait(f.runtime, first, QUIRE_STAGE_RETIRED,
	                                    QUIRE_NO_DEADLINE, NULL),
	                 QUIRE_OK);
	fail_at(place, from_then_on);
	while (n < STEPS &&
	       quire_runtime_submit(f.runtime, &step, &tickets[n]) == QUIRE_OK)
		n++;
	clock_gettime(CLOCK_MONOTONIC, &now);
	deadline = now.tv_sec * INT64_C(1000000000) + now.tv_nsec + DEADLINE_NS;
	for (int i = 0; i < n; i++) {
		enum quire_status status = quire_runtime_wait(
			f.runtime, tickets[i], QUIRE_STAGE_RETIRED, deadline, &outcome);

		must(status == QUIRE_OK); /* a hang: an exit is not to be had any more */
		must(outcome.refusal.status == QUIRE_OK ||
		     outcome.refusal.status == quire_runtime_failure(f.runtime, NULL));
	}
	fail_no_more();
	failed = atomic_load(&counting.failed);
	ck_assert(failed > 0 || n == STEPS);
	ck_assert_int_eq(quire_runtime_check(f.runtime, &refusal), QUIRE_OK);
	fixture_end(&f);
	return failed;
}

START_TEST(steps_that_find_no_memory_fail_the_runtime_and_hang_nobody)
{
	for (int mode = 0; mode < 2; mode++) {
		int64_t place = 1;

		while (run_steps_failing(place, mode == 1, _i) > 0)
			ck_assert_int_lt(place++, PLACES_MAX);
	}
}
END_TEST
#endif

int main(void)
{
	Suite *suite = suite_create("fault: memory");
	TCase *tcase = tcase_create("memory");

	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, every_request_for_memory_of_a_create_may_fail, 0,
	                    NUM_THINGS);
	tcase_add_loop_test(tcase, every_request_for_memory_of_a_recording_may_fail, 0,
	                    3);
	tcase_add_test(tcase, every_thread_of_a_create_may_fail);
#ifndef QUIRE_DEBUG
	tcase_add_test(tcase,
	               what_was_queued_can_be_waited_for_when_nothing_more_can_be_queued);
	tcase_add_test(tcase, without_any_memory_requests_open_and_close_and_steps_run);
	tcase_add_loop_test(
		tcase, steps_that_find_no_memory_fail_the_runtime_and_hang_nobody, 1, 3);
#endif
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}

#else

int main(void)
{
	puts("skipped: a sanitizer has an allocator of its own");
	return SKIPPED;
}

#endif
