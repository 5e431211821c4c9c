/* SPDX-License-Identifier: MIT */
/*
 * Programs that wait where they must, or leave out one wait.  The latter are reported by
 * ThreadSanitizer, although the accesses come in the right order, a pause between them.
 */
#include "config.h"

#include "tests/cuda_standin/standin_check.h"
#include "tests/run_suite.h"

#include <cuda_runtime.h>

struct race {
	cudaStream_t streams[2];
	cudaEvent_t event;
	int *device;
	int *pinned;
	int pageable;
};

static void upload(struct race *race, cudaStream_t stream)
{
	ck_assert_ok(cudaMemcpyAsync(race->device, race->pinned, sizeof(int),
	                             cudaMemcpyHostToDevice, stream));
}

static void download(struct race *race, cudaStream_t stream)
{
	ck_assert_ok(cudaMemcpyAsync(race->pinned + 1, race->device, sizeof(int),
	                             cudaMemcpyDeviceToHost, stream));
}

static void race_between_streams(struct race *race, bool waits)
{
	upload(race, race->streams[0]);
	ck_assert_ok(cudaEventRecord(race->event, race->streams[0]));
	if (waits)
		ck_assert_ok(cudaStreamWaitEvent(race->streams[1], race->event, 0));
	let_others_run();
	download(race, race->streams[1]);
}

static void race_of_an_early_record(struct race *race, bool waits)
{
	if (!waits)
		ck_assert_ok(cudaEventRecord(race->event, race->streams[0]));
	upload(race, race->streams[0]);
	if (waits)
		ck_assert_ok(cudaEventRecord(race->event, race->streams[0]));
	ck_assert_ok(cudaStreamWaitEvent(race->streams[1], race->event, 0));
	let_others_run();
	download(race, race->streams[1]);
}

static void race_of_a_pinned_source(struct race *race, bool waits)
{
	upload(race, race->streams[0]);
	if (waits)
		finish(race->streams[0]);
	let_others_run();
	*race->pinned = 2;
}

static void race_of_a_pinned_target(struct race *race, bool waits)
{
	download(race, race->streams[0]);
	ck_assert_ok(cudaEventRecord(race->event, race->streams[0]));
	let_others_run();
	if (waits)
		ck_assert_ok(cudaEventQuery(race->event));
	race->pinned[1]++;
}

static void race_of_a_pageable_target(struct race *race, bool waits)
{
	ck_assert_ok(cudaMemcpyAsync(&race->pageable, race->device, sizeof(int),
	                             cudaMemcpyDeviceToHost, race->streams[0]));
	if (waits)
		finish(race->streams[0]);
	race->pageable++;
}

static void race_of_a_destroyed_stream(struct race *race, bool waits)
{
	download(race, race->streams[0]);
	ck_assert_ok(cudaStreamDestroy(race->streams[0]));
	let_others_run();
	if (waits)
		ck_assert_ok(cudaDeviceSynchronize());
	race->pinned[1]++;
}

static void race_of_another_stream_s_synchronize(struct race *race, bool waits)
{
	download(race, race->streams[0]);
	ck_assert_ok(cudaEventRecord(race->event, race->streams[1]));
	let_others_run();
	if (waits)
		finish(race->streams[0]);
	finish(race->streams[1]);
	race->pinned[1]++;
}

/* cudaMemcpy from pageable memory ends when the source is read, not when it is copied. */
static void race_of_a_pageable_source(struct race *race, bool waits)
{
	ck_assert_ok(cudaMemcpy(race->device, &race->pageable, sizeof(int),
	                        cudaMemcpyHostToDevice));
	if (waits)
		finish(NULL);
	let_others_run();
	download(race, race->streams[0]);
}

static void increment(int *value)
{
	*value += 1;
}

static void call_increment(const void *function, const void *argument)
{
	((void (*)(int *))function)(*(int *const *)argument);
}

static void race_of_a_kernel(struct race *race, bool waits)
{
	void *arguments[] = {&race->device};

	standin_register((const void *)increment, sizeof(int *), call_increment);
	upload(race, race->streams[0]);
	ck_assert_ok(cudaEventRecord(race->event, race->streams[0]));
	if (waits)
		ck_assert_ok(cudaStreamWaitEvent(race->streams[1], race->event, 0));
	let_others_run();
	ck_assert_ok(cudaLaunchKernel((const void *)increment, (dim3){1, 1, 1},
	                              (dim3){1, 1, 1}, arguments, 0, race->streams[1]));
}

static void (*const races[])(struct race *race, bool waits) = {
	race_between_streams,
	race_of_an_early_record,
	race_of_a_pinned_source,
	race_of_a_pinned_target,
	race_of_a_pageable_target,
	race_of_a_destroyed_stream,
	race_of_another_stream_s_synchronize,
	race_of_a_pageable_source,
	race_of_a_kernel,
};

#define NUM_RACES ((int)(sizeof(races) / sizeof(races[0])))

static void run_race(int i, bool waits)
{
	struct race race = {
		.streams = {new_stream(), new_stream()},
		.event = new_event(),
		.device = new_device_memory(sizeof(int)),
		.pinned = new_pinned(2 * sizeof(int)),
	};

	*race.pinned = 1;
	races[i](&race, waits);
	ck_assert_ok(cudaDeviceSynchronize());
}

START_TEST(programs_with_all_waits_are_no_races)
{
	run_race(_i, true);
}
END_TEST

#ifdef __SANITIZE_THREAD__
/* ThreadSanitizer's, of a process that it has something to report on. */
#define STATUS_RACE 66

START_TEST(a_program_without_one_of_its_waits_is_a_reported_race)
{
	run_race(_i, false);
}
END_TEST
#endif

static void add_races(Suite *suite)
{
	TCase *tcase = tcase_create("races");

	tcase_add_checked_fixture(tcase, NULL, standin_reset);
	tcase_add_loop_test(tcase, programs_with_all_waits_are_no_races, 0, NUM_RACES);
#ifdef __SANITIZE_THREAD__
	tcase_add_loop_exit_test(tcase,
	                         a_program_without_one_of_its_waits_is_a_reported_race,
	                         STATUS_RACE, 0, NUM_RACES);
#endif
	suite_add_tcase(suite, tcase);
}

int main(void)
{
	Suite *suite = suite_create("standin race");

	add_races(suite);
	return run_suite(suite);
}
