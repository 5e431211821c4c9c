/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/alloc/random.h"
#include "tests/kernels/device_user.h"
#include "tests/run_suite.h"

#include <dirent.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

START_TEST(devices_open_by_name_and_unknown_names_are_refused)
{
	const char *const wrong[] = {"",
	                             "cpu:",
	                             "CPU",
	                             "cpu:inline2",
	                             "gpu",
	                             "cpu:-1",
	                             "cpu:+2",
	                             "cpu: 2",
	                             "cpu:2x",
	                             "cpu2",
	                             "cpu:0x2",
	                             "cpu:2 ",
	                             "cpu::2",
	                             "cpu:02",
	                             "cpu:000",
	                             "cpu:000000000000000000000000000002",
	                             "cpu:99999999999999999999x",
	                             NULL};
	struct quire_device *device = open_device(names[_i]);
	struct quire_dstream *dstream = new_stream(device);

	ck_assert_str_eq(quire_device_name(device), names[_i]);
	ck_assert_ptr_eq(quire_dstream_device(dstream), device);
	ck_assert_ptr_null(quire_dstream_native(dstream));
	quire_dstream_destroy(dstream);
	quire_device_destroy(device);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct quire_refusal refusal = {0};

		device = NULL;
		ck_assert_int_eq(quire_device_create(wrong[i], &device, &refusal),
		                 QUIRE_INVALID);
		ck_assert_int_eq(refusal.status, QUIRE_INVALID);
		ck_assert_str_eq(refusal.what,
		                 "device: none of cpu, cpu:inline, cpu:N, cuda, cuda:N");
		ck_assert_ptr_null(device);
	}
	quire_device_destroy(NULL);
	quire_dstream_destroy(NULL);
	quire_event_destroy(NULL);
}
END_TEST

START_TEST(the_threads_of_a_cpu_stream_have_bounds)
{
	static const struct {
		const char *name;
		int64_t got;
		int64_t expected; /* the bound; 0: none is passed */
	} cases[] = {
		{"cpu:0", 0, 1},
		{"cpu:1", 1, 0},
		{"cpu:2", 2, 0},
		{"cpu:64", 64, 0},
		{"cpu:65", 65, 64},
		{"cpu:100", 100, 64},
		{"cpu:9999999999", 9999999999, 64},
		{"cpu:9223372036854775806", INT64_MAX - 1, 64},
		{"cpu:9223372036854775808", INT64_MAX, 64},
		{"cpu:18446744073709551620", INT64_MAX, 64}, /* 2^64 + 4 */
		{"cpu:99999999999999999999999999", INT64_MAX, 64},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct quire_device *device = NULL;
		struct quire_refusal refusal = {0};
		enum quire_status status =
			quire_device_create(cases[i].name, &device, &refusal);

		if (cases[i].expected == 0) {
			ck_assert_int_eq(status, QUIRE_OK);
			ck_assert_str_eq(quire_device_name(device), cases[i].name);
		} else {
			ck_assert_int_eq(status, QUIRE_INVALID);
			ck_assert_str_eq(refusal.what, "device: threads of cpu:N");
			ck_assert_int_eq(refusal.got, cases[i].got);
			ck_assert_int_eq(refusal.expected, cases[i].expected);
			ck_assert_ptr_null(device);
		}
		quire_device_destroy(device);
	}
}
END_TEST

/* Threads of this process whose names begin so. */
static int threads_named(const char *prefix)
{
	DIR *tasks = opendir("/proc/self/task");
	int num = 0;

	for (struct dirent *task; (task = readdir(tasks)) != NULL;) {
		char path[300];
		char name[32] = "";
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", task->d_name);
		file = fopen(path, "r");
		if (file == NULL)
			continue;
		num += fgets(name, sizeof(name), file) != NULL &&
		       strncmp(name, prefix, strlen(prefix)) == 0;
		fclose(file);
	}
	closedir(tasks);
	return num;
}

START_TEST(threads_are_named_and_end_with_their_device)
{
	struct quire_device *device = open_device("cpu:3");
	struct quire_dstream *dstream = NULL;

	ck_assert_int_eq(threads_named("quire-helper-"), 2);
	ck_assert_int_eq(threads_named("quire-helper-2"), 1);
	ck_assert_int_eq(quire_dstream_create(device, "a-much-too-long-name", &dstream),
	                 QUIRE_OK);
	ck_assert_int_eq(threads_named("a-much-too-long"), 1);
	quire_dstream_destroy(dstream);
	quire_device_destroy(device);
	/* The kernel's list is behind what a join has seen. */
	while (threads_named("quire-helper-") > 0)
		sched_yield();
}
END_TEST

START_TEST(memory_is_zeroed_and_aligned_and_never_more_than_there_is)
{
	const int64_t sizes[] = {1, 64, 65, 4096, (2 << 20) - 1, 2 << 20, (5 << 20) + 1};
	const int64_t wrong[] = {0, -1, INT64_MIN};
	int64_t physical = sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
	const int64_t too_much[] = {physical, INT64_MAX / 2, INT64_MAX};
	struct quire_device *device = open_device(names[_i]);
	char *memory = NULL;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (int pinned = 0; pinned < 2; pinned++) {
			ck_assert_int_eq((pinned ? quire_device_alloc_pinned
			                         : quire_device_alloc)(device, sizes[i],
			                                               (void **)&memory),
			                 QUIRE_OK);
			ck_assert_uint_eq((uintptr_t)memory % 64, 0);
			ck_assert_int_eq(memory[0], 0);
			ck_assert(memcmp(memory, memory + 1, (size_t)sizes[i] - 1) == 0);
			memset(memory, 0xff, (size_t)sizes[i]);
			(pinned ? quire_device_release_pinned
			        : quire_device_release)(device, memory, sizes[i]);
		}
	}
	memory = NULL;
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(quire_device_alloc(device, wrong[i], (void **)&memory),
		                 QUIRE_INVALID);
		ck_assert_int_eq(
			quire_device_alloc_pinned(device, wrong[i], (void **)&memory),
			QUIRE_INVALID);
		ck_assert_int_eq(
			quire_device_alloc(device, too_much[i], (void **)&memory),
			QUIRE_NO_MEMORY);
		ck_assert_int_eq(
			quire_device_alloc_pinned(device, too_much[i], (void **)&memory),
			QUIRE_NO_MEMORY);
	}
	ck_assert_ptr_null(memory);
	quire_device_release(device, NULL, 7);
	quire_device_release_pinned(device, NULL, 7);
	quire_device_destroy(device);
}
END_TEST

START_TEST(large_memory_goes_back_to_the_system)
{
	const int64_t sizes[] = {2 << 20, (2 << 20) + 1, 5 << 20};
	struct quire_device *device = open_device(names[_i]);
	void *memory = NULL;

	for (int i = 0; i < 3; i++) {
		size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
		size_t bytes = (size_t)sizes[i];
		unsigned char resident;
		size_t left = 0;

		ck_assert_int_eq(quire_device_alloc(device, sizes[i], &memory), QUIRE_OK);
		memset(memory, 1, bytes);
		quire_device_release(device, memory, sizes[i]);
		/* Nothing is mapped there, or something of another thread's, untouched. */
		for (size_t at = 0; at < bytes; at += page_bytes)
			left += mincore((char *)memory + at, page_bytes, &resident) ==
			                0 &&
			        (resident & 1);
		ck_assert_uint_lt(left, bytes / page_bytes / 2);
	}
	quire_device_destroy(device);
}
END_TEST

struct appended {
	int *list;
	int *length;
	int value;
};

static enum quire_status append(void *argument)
{
	struct appended *a = argument;

	a->list[(*a->length)++] = a->value;
	return QUIRE_OK;
}

START_TEST(operations_of_one_stream_run_in_order_however_many_are_queued)
{
	enum { N = 3000 };
	static struct appended calls[N];
	static int list[N];
	struct quire_device *device = open_device(names[_i]);
	struct quire_dstream *dstream = new_stream(device);
	bool gated = !IS_INLINE(_i);
	int length = 0;
	sem_t gate;

	for (int round = 0; round < 3; round++) {
		length = 0;
		if (gated)
			close_gate(dstream, &gate);
		for (int i = 0; i < N; i++) {
			calls[i] = (struct appended){list, &length, i * 7};
			ck_assert_int_eq(quire_dstream_call(dstream, append, &calls[i]),
			                 QUIRE_OK);
		}
		if (gated) {
			ck_assert_int_eq(length, 0);
			sem_post(&gate);
		}
		finish(dstream);
		ck_assert_int_eq(length, N);
		for (int i = 0; i < N; i++)
			if (list[i] != i * 7)
				ck_abort_msg("call %d came at place of %d", list[i] / 7,
				             i);
	}
	quire_dstream_destroy(dstream);
	quire_device_destroy(device);
}
END_TEST

START_TEST(a_batch_of_copies_keeps_its_list_and_its_order)
{
	enum { N = 700 };
	struct quire_device *device = open_device(names[_i]);
	struct quire_dstream *dstream = new_stream(device);
	struct quire_range *ranges = malloc(N * sizeof(*ranges));
	static char source[N * 3];
	static char target[N * 3];
	bool gated = !IS_INLINE(_i);
	sem_t gate;

	for (int i = 0; i < N * 3; i++)
		source[i] = (char)(i * 37 + 11);
	memset(target, 0, sizeof(target));
	if (gated)
		close_gate(dstream, &gate);
	/* All 0 to 3 bytes long; the last one writes once more where number 1 did. */
	for (int i = 0; i < N; i++)
		ranges[i] = (struct quire_range){target + 3 * (N - 1 - i), source + 3 * i,
		                                 i % 4};
	ranges[N - 1] = (struct quire_range){target + 3 * (N - 2), source, 3};
	ck_assert_int_eq(quire_dstream_copy(dstream, ranges, N), QUIRE_OK);
	/* Zero bytes may name nothing, zero ranges neither. */
	ranges[0] = (struct quire_range){NULL, NULL, 0};
	ck_assert_int_eq(quire_dstream_copy(dstream, ranges, 1), QUIRE_OK);
	ck_assert_int_eq(quire_dstream_copy(dstream, NULL, 0), QUIRE_OK);
	free(ranges);
	if (gated)
		sem_post(&gate);
	finish(dstream);
	for (int i = 0; i < N - 1; i++) {
		const char *at = target + 3 * (N - 1 - i);
		const char *from = i == 1 ? source : source + 3 * i;
		int bytes = i == 1 ? 3 : i % 4;

		for (int k = 0; k < 3; k++)
			if (at[k] != (k < bytes ? from[k] : 0))
				ck_abort_msg("byte %d of range %d", k, i);
	}
	quire_dstream_destroy(dstream);
	quire_device_destroy(device);
}
END_TEST

START_TEST(a_wrong_copy_is_refused_and_nothing_of_its_batch_runs)
{
	struct quire_device *device = open_device(names[_i]);
	struct quire_dstream *dstream = new_stream(device);
	int from = 5;
	int to = 0;
	struct quire_range ranges[] = {{&to, &from, sizeof(to)}, {&to, &from, -1}};

	ck_assert_int_eq(quire_dstream_copy(dstream, ranges, 2), QUIRE_INVALID);
	ranges[1] = (struct quire_range){NULL, &from, 1};
	ck_assert_int_eq(quire_dstream_copy(dstream, ranges, 2), QUIRE_INVALID);
	ranges[1] = (struct quire_range){&to, NULL, 1};
	ck_assert_int_eq(quire_dstream_copy(dstream, ranges, 2), QUIRE_INVALID);
	ck_assert_int_eq(quire_dstream_copy(dstream, ranges, -1), QUIRE_INVALID);
	ck_assert_int_eq(quire_dstream_copy(dstream, NULL, 1), QUIRE_INVALID);
	ck_assert_int_eq(quire_dstream_call(dstream, NULL, NULL), QUIRE_INVALID);
	finish(dstream);
	ck_assert_int_eq(to, 0);
	quire_dstream_destroy(dstream);
	quire_device_destroy(device);
}
END_TEST

START_TEST(a_stream_has_one_of_two_priorities)
{
	struct quire_device *device = open_device(names[_i]);
	struct quire_dstream *dstream = NULL;
	int one = 1;
	int x = 0;

	ck_assert_int_eq(quire_dstream_create_with(device, "test", (enum quire_priority)2,
	                                           &dstream),
	                 QUIRE_INVALID);
	ck_assert_ptr_null(dstream);
	ck_assert_int_eq(
		quire_dstream_create_with(device, "test", QUIRE_PRIORITY_HIGH, &dstream),
		QUIRE_OK);
	copy_int(dstream, &x, &one);
	finish(dstream);
	ck_assert_int_eq(x, 1);
	quire_dstream_destroy(dstream);
	quire_device_destroy(device);
}
END_TEST

START_TEST(the_first_failure_stays_and_is_told_by_calls_events_and_synchronize)
{
	struct quire_device *device = open_device("cpu");
	struct quire_dstream *dstream = new_stream(device);
	struct quire_event *before = new_event(device);
	struct quire_event *after = new_event(device);
	enum quire_status io = QUIRE_IO;
	enum quire_status limit = QUIRE_LIMIT;
	struct quire_refusal refusal = {0};
	int one = 1;
	int x = 0;
	sem_t gate;

	close_gate(dstream, &gate);
	ck_assert_int_eq(quire_event_record(before, dstream), QUIRE_OK);
	ck_assert_int_eq(quire_dstream_call(dstream, fail_with, &io), QUIRE_OK);
	ck_assert_int_eq(quire_dstream_call(dstream, fail_with, &limit), QUIRE_OK);
	copy_int(dstream, &x, &one);
	ck_assert_int_eq(quire_event_record(after, dstream), QUIRE_OK);
	sem_post(&gate);
	ck_assert_int_eq(quire_dstream_synchronize(dstream, &refusal), QUIRE_IO);
	ck_assert_int_eq(refusal.status, QUIRE_IO);
	ck_assert_ptr_nonnull(refusal.what);
	ck_assert_int_eq(x, 0);
	ck_assert_int_eq(quire_event_query(before), QUIRE_OK);
	ck_assert_int_eq(quire_event_query(after), QUIRE_IO);
	ck_assert_int_eq(quire_event_synchronize(after), QUIRE_IO);
	ck_assert_int_eq(quire_dstream_call(dstream, fail_with, &limit), QUIRE_IO);
	ck_assert_int_eq(quire_dstream_copy(dstream, NULL, 0), QUIRE_IO);
	ck_assert_int_eq(quire_dstream_wait_event(dstream, before), QUIRE_IO);
	ck_assert_int_eq(quire_event_record(before, dstream), QUIRE_OK);
	ck_assert_int_eq(quire_event_synchronize(before), QUIRE_IO);
	ck_assert_int_eq(quire_dstream_synchronize(dstream, NULL), QUIRE_IO);
	quire_event_destroy(after);
	quire_event_destroy(before);
	quire_dstream_destroy(dstream);
	quire_device_destroy(device);
}
END_TEST

START_TEST(a_failure_reaches_the_streams_that_wait_for_it)
{
	struct quire_device *device = open_device(names[_i]);
	struct quire_dstream *dstream = new_stream(device);
	struct quire_dstream *behind = new_stream(device);
	struct quire_dstream *late = new_stream(device);
	struct quire_event *event = new_event(device);
	enum quire_status again = QUIRE_AGAIN;
	bool gated = !IS_INLINE(_i);
	int calls = 0;
	int one = 1;
	int x = 0;
	sem_t gate;

	if (gated)
		close_gate(dstream, &gate);
	/* AGAIN would mean that the event is not done. */
	ck_assert_int_eq(quire_dstream_call(dstream, fail_with, &again),
	                 gated ? QUIRE_OK : QUIRE_CALLBACK);
	ck_assert_int_eq(quire_event_record(event, dstream), QUIRE_OK);
	ck_assert_int_eq(quire_event_notify(event, count, &calls), QUIRE_OK);
	if (gated) {
		ck_assert_int_eq(quire_dstream_wait_event(behind, event), QUIRE_OK);
		copy_int(behind, &x, &one);
		sem_post(&gate);
	} else {
		ck_assert_int_eq(quire_dstream_wait_event(behind, event), QUIRE_CALLBACK);
	}
	ck_assert_int_eq(quire_dstream_synchronize(behind, NULL), QUIRE_CALLBACK);
	ck_assert_int_eq(quire_dstream_synchronize(dstream, NULL), QUIRE_CALLBACK);
	ck_assert_int_eq(quire_event_query(event), QUIRE_CALLBACK);
	ck_assert_int_eq(counted(&calls), 1);
	ck_assert_int_eq(quire_dstream_wait_event(late, event),
	                 gated ? QUIRE_OK : QUIRE_CALLBACK);
	ck_assert_int_eq(quire_dstream_synchronize(late, NULL), QUIRE_CALLBACK);
	ck_assert_int_eq(x, 0);
	quire_event_destroy(event);
	quire_dstream_destroy(late);
	quire_dstream_destroy(behind);
	quire_dstream_destroy(dstream);
	quire_device_destroy(device);
}
END_TEST

START_TEST(destroying_a_stream_runs_what_is_queued)
{
	struct quire_device *device = open_device(names[_i]);
	struct quire_dstream *dstream = new_stream(device);
	struct quire_event *event = new_event(device);
	static struct appended calls[500];
	static int list[500];
	bool gated = !IS_INLINE(_i);
	int length = 0;
	sem_t gate;

	if (gated)
		close_gate(dstream, &gate);
	for (int i = 0; i < 500; i++) {
		calls[i] = (struct appended){list, &length, i};
		ck_assert_int_eq(quire_dstream_call(dstream, append, &calls[i]),
		                 QUIRE_OK);
	}
	ck_assert_int_eq(quire_event_record(event, dstream), QUIRE_OK);
	if (gated)
		sem_post(&gate);
	quire_dstream_destroy(dstream);
	ck_assert_int_eq(length, 500);
	ck_assert_int_eq(quire_event_query(event), QUIRE_OK);
	quire_event_destroy(event);
	quire_device_destroy(device);
}
END_TEST

static enum quire_status increment(void *counter)
{
	++*(int *)counter;
	return QUIRE_OK;
}

START_TEST(a_counter_passed_on_by_events_loses_nothing)
{
	enum { STREAMS = 4, ROUNDS = 3000 };
	struct quire_device *device = open_device(names[_i]);
	struct quire_dstream *streams[STREAMS];
	struct quire_event *events[2];
	uint64_t seed = 11;
	int counter = 0;
	int last = 0;

	for (int i = 0; i < STREAMS; i++)
		streams[i] = new_stream(device);
	events[0] = new_event(device);
	events[1] = new_event(device);
	/* Each event is recorded again while waits for its older records are queued. */
	for (int i = 0; i < ROUNDS; i++) {
		int s = random_in(&seed, 0, STREAMS - 1);
		int e = random_in(&seed, 0, 1);

		ck_assert_int_eq(quire_dstream_wait_event(streams[s], events[last]),
		                 QUIRE_OK);
		ck_assert_int_eq(quire_dstream_call(streams[s], increment, &counter),
		                 QUIRE_OK);
		ck_assert_int_eq(quire_event_record(events[e], streams[s]), QUIRE_OK);
		last = e;
	}
	ck_assert_int_eq(quire_event_synchronize(events[last]), QUIRE_OK);
	ck_assert_int_eq(counter, ROUNDS);
	for (int i = 0; i < STREAMS; i++)
		quire_dstream_destroy(streams[i]);
	quire_event_destroy(events[1]);
	quire_event_destroy(events[0]);
	quire_device_destroy(device);
}
END_TEST

struct client {
	struct quire_dstream *dstream;
	struct quire_event *event;
	int *counter;
	int *notices;
};

static void *use_stream(void *argument)
{
	struct client *client = argument;
	uintptr_t wrong = 0;

	for (int i = 0; i < 500; i++) {
		wrong += quire_dstream_call(client->dstream, increment,
		                            client->counter) != QUIRE_OK;
		wrong += quire_event_record(client->event, client->dstream) != QUIRE_OK;
		wrong += quire_event_notify(client->event, count, client->notices) !=
		         QUIRE_OK;
		wrong += quire_dstream_wait_event(client->dstream, client->event) !=
		         QUIRE_OK;
		if (i % 16 == 0)
			wrong += quire_event_synchronize(client->event) != QUIRE_OK;
	}
	return (void *)wrong;
}

START_TEST(threads_that_share_a_stream_and_an_event_get_some_order)
{
	enum { THREADS = 3 };
	struct quire_device *device = open_device(names[_i]);
	struct quire_dstream *dstream = new_stream(device);
	struct quire_event *event = new_event(device);
	pthread_t threads[THREADS];
	int counter = 0;
	int notices = 0;
	struct client client = {dstream, event, &counter, &notices};

	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, use_stream, &client),
		                 0);
	for (int i = 0; i < THREADS; i++) {
		void *wrong;

		pthread_join(threads[i], &wrong);
		ck_assert_ptr_null(wrong);
	}
	finish(dstream);
	ck_assert_int_eq(counter, THREADS * 500);
	quire_dstream_destroy(dstream);
	ck_assert_int_eq(counted(&notices), THREADS * 500);
	ck_assert_int_eq(quire_event_query(event), QUIRE_OK);
	quire_event_destroy(event);
	quire_device_destroy(device);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("device");
	TCase *both = tcase_create("every cpu device");
	TCase *threads = tcase_create("cpu");

	suite_add_tcase(suite, both);
	suite_add_tcase(suite, threads);
	tcase_set_timeout(both, 30);
	tcase_set_timeout(threads, 30);
	tcase_add_loop_test(both, devices_open_by_name_and_unknown_names_are_refused, 0,
	                    NUM_NAMES);
	tcase_add_test(threads, the_threads_of_a_cpu_stream_have_bounds);
	tcase_add_test(threads, threads_are_named_and_end_with_their_device);
	tcase_add_loop_test(both,
	                    memory_is_zeroed_and_aligned_and_never_more_than_there_is, 0,
	                    NUM_NAMES);
	tcase_add_loop_test(both, large_memory_goes_back_to_the_system, 0, NUM_NAMES);
	tcase_add_loop_test(both,
	                    operations_of_one_stream_run_in_order_however_many_are_queued,
	                    0, NUM_NAMES);
	tcase_add_loop_test(both, a_batch_of_copies_keeps_its_list_and_its_order, 0,
	                    NUM_NAMES);
	tcase_add_loop_test(both, a_wrong_copy_is_refused_and_nothing_of_its_batch_runs,
	                    0, NUM_NAMES);
	tcase_add_loop_test(both, a_failure_reaches_the_streams_that_wait_for_it, 0,
	                    NUM_NAMES);
	tcase_add_loop_test(both, destroying_a_stream_runs_what_is_queued, 0, NUM_NAMES);
	tcase_add_loop_test(both, a_counter_passed_on_by_events_loses_nothing, 0,
	                    NUM_NAMES);
	tcase_add_loop_test(both, threads_that_share_a_stream_and_an_event_get_some_order,
	                    0, NUM_NAMES);
	tcase_add_loop_test(both, a_stream_has_one_of_two_priorities, 0, NUM_NAMES);
	tcase_add_test(
		threads,
		the_first_failure_stays_and_is_told_by_calls_events_and_synchronize);
	return run_suite(suite);
}
