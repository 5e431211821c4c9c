/* SPDX-License-Identifier: MIT */
/* Callbacks of an executor find the cache's CUDA device current, whoever polls, and who
 * polls finds the device that was current before. */
#include "config.h"

#include "fixture.h"
#include "standin.h"
#include "tests/run_suite.h"

#include <check.h>
#include <cuda_runtime_api.h>

#define OF_CACHE  1
#define OF_CALLER 2

static int current_device(void)
{
	int current = -1;

	must(cudaGetDevice(&current) == cudaSuccess);
	return current;
}

static int in_run, in_done;

static enum quire_status note_run(void *argument, const struct quire_plan *plan,
                                  struct quire_dstream *compute)
{
	(void)argument;
	(void)plan;
	(void)compute;
	in_run = current_device();
	return QUIRE_OK;
}

static void note_done(void *argument, uint64_t ticket,
                      const struct quire_outcome *outcome)
{
	(void)argument;
	(void)ticket;
	(void)outcome;
	in_done = current_device();
}

static void run_step(enum quire_threads threads)
{
	const struct quire_segment segment = {.request = 1, .span = 1, .at = 0};
	const struct quire_step step = {.segments = &segment,
	                                .num_segments = 1,
	                                .run = note_run,
	                                .done = note_done};
	struct fixture f;
	uint64_t ticket;

	in_run = in_done = -1;
	standin_set_devices(3);
	ck_assert_int_eq(cudaSetDevice(OF_CALLER), cudaSuccess);
	fixture_begin(&f, "cuda:1", 8, 4);
	f.config.threads = threads;
	fixture_create(&f);
	ck_assert_int_eq(quire_runtime_open(f.runtime, 1, &ticket), QUIRE_OK);
	ticket = submit(&f, &step);
	while (quire_runtime_wait(f.runtime, ticket, QUIRE_STAGE_RETIRED,
	                          threads == QUIRE_THREADS_CALLER ? 0 : QUIRE_NO_DEADLINE,
	                          NULL) != QUIRE_OK) {
		quire_planner_poll(f.runtime);
		quire_executor_poll(f.runtime);
		ck_assert_int_eq(current_device(), OF_CALLER);
	}
	ck_assert_int_eq(in_run, OF_CACHE);
	ck_assert_int_eq(in_done, OF_CACHE);
	quire_runtime_destroy(f.runtime);
	ck_assert_int_eq(current_device(), OF_CALLER);
	quire_cache_destroy(f.cache);
	quire_device_destroy(f.device);
}

START_TEST(a_thread_of_another_device_polls_and_keeps_its_own)
{
	run_step(QUIRE_THREADS_CALLER);
}
END_TEST

START_TEST(the_librarys_executor_runs_on_the_device_of_the_cache)
{
	run_step(QUIRE_THREADS_LIBRARY);
}
END_TEST

START_TEST(entering_and_leaving_go_to_and_from_the_device)
{
	struct quire_device *device;
	int previous;

	standin_set_devices(3);
	ck_assert_int_eq(cudaSetDevice(OF_CALLER), cudaSuccess);
	ck_assert_int_eq(quire_device_create("cuda:1", &device, NULL), QUIRE_OK);
	previous = quire_device_enter(device);
	ck_assert_int_eq(current_device(), OF_CACHE);
	quire_device_leave(device, previous);
	ck_assert_int_eq(current_device(), OF_CALLER);
	quire_device_destroy(device);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("current device");
	TCase *tcase = tcase_create("current device");

	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, a_thread_of_another_device_polls_and_keeps_its_own);
	tcase_add_test(tcase, the_librarys_executor_runs_on_the_device_of_the_cache);
	tcase_add_test(tcase, entering_and_leaving_go_to_and_from_the_device);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
