/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "kernels/device_cpu_impl.h"
#include "tests/kernels/device_user.h"
#include "tests/run_suite.h"

#include <stdbool.h>
#include <time.h>

START_TEST(an_event_that_was_never_recorded_counts_as_done)
{
	struct quire_device *device = open_device(names[_i]);
	struct quire_dstream *dstream = new_stream(device);
	struct quire_event *event = new_event(device);
	int calls = 0;

	ck_assert_int_eq(quire_event_query(event), QUIRE_OK);
	ck_assert_int_eq(quire_event_synchronize(event), QUIRE_OK);
	ck_assert_int_eq(quire_dstream_wait_event(dstream, event), QUIRE_OK);
	finish(dstream);
	ck_assert_int_eq(quire_event_notify(event, count, &calls), QUIRE_OK);
	ck_assert_int_eq(counted(&calls), 1);
	ck_assert_int_eq(quire_event_notify(event, NULL, &calls), QUIRE_INVALID);
	quire_event_destroy(event);
	quire_dstream_destroy(dstream);
	quire_device_destroy(device);
}
END_TEST

START_TEST(an_event_is_done_when_all_before_it_is)
{
	struct quire_device *device = open_device(names[_i]);
	struct quire_dstream *dstream = new_stream(device);
	struct quire_event *event = new_event(device);
	bool gated = !IS_INLINE(_i);
	int one = 1;
	int x = 0;
	sem_t gate;

	for (int round = 0; round < 100; round++, one++) {
		if (gated)
			close_gate(dstream, &gate);
		copy_int(dstream, &x, &one);
		ck_assert_int_eq(quire_event_record(event, dstream), QUIRE_OK);
		if (gated) {
			ck_assert_int_eq(quire_event_query(event), QUIRE_AGAIN);
			sem_post(&gate);
		}
		if (round % 2 == 0)
			ck_assert_int_eq(quire_event_synchronize(event), QUIRE_OK);
		else
			while (quire_event_query(event) == QUIRE_AGAIN)
				sched_yield();
		ck_assert_int_eq(quire_event_query(event), QUIRE_OK);
		ck_assert_int_eq(x, one);
	}
	quire_event_destroy(event);
	quire_dstream_destroy(dstream);
	quire_device_destroy(device);
}
END_TEST

START_TEST(a_stream_waits_for_the_event_of_another)
{
	struct quire_device *device = open_device("cpu");
	struct quire_dstream *a = new_stream(device);
	struct quire_dstream *b = new_stream(device);
	struct quire_event *event = new_event(device);
	sem_t started;
	sem_t gate;

	for (int round = 1; round <= 5; round++) {
		int x = 0;
		int y = 0;

		sem_init(&started, 0, 0);
		close_gate(a, &gate);
		copy_int(a, &x, &round);
		ck_assert_int_eq(quire_event_record(event, a), QUIRE_OK);
		ck_assert_int_eq(quire_dstream_call(b, post, &started), QUIRE_OK);
		ck_assert_int_eq(quire_dstream_wait_event(b, event), QUIRE_OK);
		copy_int(b, &y, &x);
		pass_gate(&started);
		let_others_run();
		sem_post(&gate);
		finish(b);
		ck_assert_int_eq(y, round);
		finish(a);
	}
	quire_event_destroy(event);
	quire_dstream_destroy(b);
	quire_dstream_destroy(a);
	quire_device_destroy(device);
}
END_TEST

START_TEST(a_wait_keeps_the_record_it_named_when_the_event_is_recorded_again)
{
	struct quire_device *device = open_device("cpu");
	struct quire_dstream *slow = new_stream(device);
	struct quire_dstream *quick = new_stream(device);
	struct quire_dstream *reader = new_stream(device);
	struct quire_event *event = new_event(device);
	int one = 1;
	int x = 0;
	int y = 0;
	sem_t gate;

	close_gate(slow, &gate);
	copy_int(slow, &x, &one);
	ck_assert_int_eq(quire_event_record(event, slow), QUIRE_OK);
	ck_assert_int_eq(quire_dstream_wait_event(reader, event), QUIRE_OK);
	copy_int(reader, &y, &x);
	/* The newer record is done while the older one is not. */
	ck_assert_int_eq(quire_event_record(event, quick), QUIRE_OK);
	ck_assert_int_eq(quire_event_synchronize(event), QUIRE_OK);
	ck_assert_int_eq(quire_event_query(event), QUIRE_OK);
	ck_assert_int_eq(quire_dstream_wait_event(quick, event), QUIRE_OK);
	finish(quick);
	let_others_run();
	sem_post(&gate);
	finish(reader);
	ck_assert_int_eq(y, 1);
	finish(slow);
	ck_assert_int_eq(quire_event_query(event), QUIRE_OK);
	quire_event_destroy(event);
	quire_dstream_destroy(reader);
	quire_dstream_destroy(quick);
	quire_dstream_destroy(slow);
	quire_device_destroy(device);
}
END_TEST

START_TEST(an_older_record_that_ends_does_not_make_the_newest_done)
{
	struct quire_device *device = open_device("cpu");
	struct quire_dstream *first = new_stream(device);
	struct quire_dstream *second = new_stream(device);
	struct quire_event *event = new_event(device);
	int old_calls = 0;
	int new_calls = 0;
	sem_t first_gate;
	sem_t second_gate;

	close_gate(first, &first_gate);
	close_gate(second, &second_gate);
	ck_assert_int_eq(quire_event_record(event, first), QUIRE_OK);
	ck_assert_int_eq(quire_event_notify(event, count, &old_calls), QUIRE_OK);
	ck_assert_int_eq(quire_event_record(event, second), QUIRE_OK);
	for (int i = 0; i < 5; i++)
		ck_assert_int_eq(quire_event_notify(event, count, &new_calls), QUIRE_OK);
	ck_assert_int_eq(counted(&old_calls), 0);
	sem_post(&first_gate);
	finish(first);
	ck_assert_int_eq(quire_event_query(event), QUIRE_AGAIN);
	ck_assert_int_eq(counted(&old_calls), 1);
	ck_assert_int_eq(counted(&new_calls), 0);
	sem_post(&second_gate);
	finish(second);
	ck_assert_int_eq(quire_event_query(event), QUIRE_OK);
	ck_assert_int_eq(counted(&old_calls), 1);
	ck_assert_int_eq(counted(&new_calls), 5);
	quire_event_destroy(event);
	quire_dstream_destroy(second);
	quire_dstream_destroy(first);
	quire_device_destroy(device);
}
END_TEST

START_TEST(records_find_a_place_however_many_are_queued)
{
	enum { N = 1000 };
	static struct quire_event *events[N];
	struct quire_device *device = open_device("cpu");
	struct quire_dstream *dstream = new_stream(device);
	sem_t gate;

	close_gate(dstream, &gate);
	for (int i = 0; i < N; i++) {
		events[i] = new_event(device);
		ck_assert_int_eq(quire_event_record(events[i], dstream), QUIRE_OK);
	}
	for (int i = 0; i < N; i++)
		ck_assert_int_eq(quire_event_query(events[i]), QUIRE_AGAIN);
	sem_post(&gate);
	finish(dstream);
	for (int i = 0; i < N; i++) {
		ck_assert_int_eq(quire_event_query(events[i]), QUIRE_OK);
		quire_event_destroy(events[i]);
	}
	quire_dstream_destroy(dstream);
	quire_device_destroy(device);
}
END_TEST

START_TEST(a_failed_stream_lets_go_of_the_records_it_was_to_wait_for)
{
	enum { N = 3 * CPU_RECORDS };
	struct quire_device *device = open_device("cpu");
	struct quire_dstream *dstream = new_stream(device);
	struct quire_dstream *waiting = new_stream(device);
	struct quire_event *event = new_event(device);
	enum quire_status io = QUIRE_IO;
	int num_spare = 0;
	sem_t gate;
	sem_t waiting_gate;

	close_gate(dstream, &gate);
	close_gate(waiting, &waiting_gate);
	ck_assert_int_eq(quire_dstream_call(waiting, fail_with, &io), QUIRE_OK);
	for (int i = 0; i < N; i++) {
		ck_assert_int_eq(quire_event_record(event, dstream), QUIRE_OK);
		ck_assert_int_eq(quire_dstream_wait_event(waiting, event), QUIRE_OK);
	}
	sem_post(&gate);
	sem_post(&waiting_gate);
	finish(dstream);
	ck_assert_int_eq(quire_dstream_synchronize(waiting, NULL), QUIRE_IO);
	/* All N were in use at once; now the newest alone is. */
	for (struct cpu_record *record = ((struct cpu_event *)event)->spare;
	     record != NULL; record = record->next)
		num_spare++;
	ck_assert_int_eq(num_spare, N - 1);
	quire_event_destroy(event);
	quire_dstream_destroy(waiting);
	quire_dstream_destroy(dstream);
	quire_device_destroy(device);
}
END_TEST

START_TEST(an_event_belongs_to_one_device)
{
	struct quire_device *device = open_device(names[_i]);
	struct quire_device *other = open_device(names[_i]);
	struct quire_dstream *dstream = new_stream(device);
	struct quire_event *event = new_event(other);

	ck_assert_int_eq(quire_event_record(event, dstream), QUIRE_INVALID);
	ck_assert_int_eq(quire_dstream_wait_event(dstream, event), QUIRE_INVALID);
	ck_assert_int_eq(quire_event_query(event), QUIRE_OK);
	finish(dstream);
	quire_event_destroy(event);
	quire_dstream_destroy(dstream);
	quire_device_destroy(other);
	quire_device_destroy(device);
}
END_TEST

static struct quire_event *new_timed_event(struct quire_device *device)
{
	struct quire_event *event = NULL;

	ck_assert_int_eq(quire_event_create_timed(device, &event), QUIRE_OK);
	return event;
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static enum quire_status note_time(void *ns)
{
	*(int64_t *)ns = now_ns();
	return QUIRE_OK;
}

/* Each clock reading lies between two others, so no bound hangs on speed. */
START_TEST(elapsed_time_lies_between_that_inside_and_that_outside_the_events)
{
	struct quire_device *device = open_device(names[_i]);
	struct quire_dstream *dstream = new_stream(device);
	struct quire_event *first = new_timed_event(device);
	struct quire_event *last = new_timed_event(device);

	for (int round = 0; round < 20; round++) {
		int64_t noted[4];
		int64_t forth = -1;
		int64_t back = 0;

		ck_assert_int_eq(quire_dstream_call(dstream, note_time, &noted[0]),
		                 QUIRE_OK);
		ck_assert_int_eq(quire_event_record(first, dstream), QUIRE_OK);
		ck_assert_int_eq(quire_dstream_call(dstream, note_time, &noted[1]),
		                 QUIRE_OK);
		ck_assert_int_eq(quire_dstream_call(dstream, note_time, &noted[2]),
		                 QUIRE_OK);
		ck_assert_int_eq(quire_event_record(last, dstream), QUIRE_OK);
		ck_assert_int_eq(quire_dstream_call(dstream, note_time, &noted[3]),
		                 QUIRE_OK);
		finish(dstream);
		ck_assert_int_eq(quire_event_elapsed(first, last, &forth), QUIRE_OK);
		ck_assert_int_eq(quire_event_elapsed(last, first, &back), QUIRE_OK);
		ck_assert_int_ge(forth, noted[2] - noted[1]);
		ck_assert_int_le(forth, noted[3] - noted[0]);
		ck_assert_int_gt(noted[3], 0);
		ck_assert_int_eq(back, -forth);
	}
	quire_event_destroy(last);
	quire_event_destroy(first);
	quire_dstream_destroy(dstream);
	quire_device_destroy(device);
}
END_TEST

START_TEST(elapsed_time_needs_two_timed_and_recorded_events_of_one_device)
{
	struct quire_device *device = open_device(names[_i]);
	struct quire_device *other = open_device(names[_i]);
	struct quire_dstream *dstream = new_stream(device);
	struct quire_dstream *elsewhere = new_stream(other);
	struct quire_event *timed = new_timed_event(device);
	struct quire_event *unrecorded = new_timed_event(device);
	struct quire_event *foreign = new_timed_event(other);
	struct quire_event *untimed = new_event(device);
	struct quire_event *const wrong[] = {unrecorded, foreign, untimed};
	int64_t ns = 7;

	ck_assert_int_eq(quire_event_record(timed, dstream), QUIRE_OK);
	ck_assert_int_eq(quire_event_record(untimed, dstream), QUIRE_OK);
	ck_assert_int_eq(quire_event_record(foreign, elsewhere), QUIRE_OK);
	finish(dstream);
	finish(elsewhere);
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(quire_event_elapsed(timed, wrong[i], &ns),
		                 QUIRE_INVALID);
		ck_assert_int_eq(quire_event_elapsed(wrong[i], timed, &ns),
		                 QUIRE_INVALID);
	}
	ck_assert_int_eq(ns, 7);
	ck_assert_int_eq(quire_event_elapsed(timed, timed, &ns), QUIRE_OK);
	ck_assert_int_eq(ns, 0);
	quire_event_destroy(untimed);
	quire_event_destroy(foreign);
	quire_event_destroy(unrecorded);
	quire_event_destroy(timed);
	quire_dstream_destroy(elsewhere);
	quire_dstream_destroy(dstream);
	quire_device_destroy(other);
	quire_device_destroy(device);
}
END_TEST

START_TEST(elapsed_time_waits_for_both_events_and_tells_their_failure)
{
	struct quire_device *device = open_device("cpu");
	struct quire_dstream *dstream = new_stream(device);
	struct quire_event *first = new_timed_event(device);
	struct quire_event *last = new_timed_event(device);
	enum quire_status io = QUIRE_IO;
	int64_t ns = 7;
	sem_t gate;

	ck_assert_int_eq(quire_event_record(first, dstream), QUIRE_OK);
	finish(dstream);
	close_gate(dstream, &gate);
	ck_assert_int_eq(quire_event_record(last, dstream), QUIRE_OK);
	ck_assert_int_eq(quire_event_elapsed(first, last, &ns), QUIRE_AGAIN);
	ck_assert_int_eq(quire_event_elapsed(last, first, &ns), QUIRE_AGAIN);
	sem_post(&gate);
	finish(dstream);
	ck_assert_int_eq(quire_dstream_call(dstream, fail_with, &io), QUIRE_OK);
	ck_assert_int_eq(quire_event_record(last, dstream), QUIRE_OK);
	ck_assert_int_eq(quire_dstream_synchronize(dstream, NULL), QUIRE_IO);
	ck_assert_int_eq(quire_event_elapsed(first, last, &ns), QUIRE_IO);
	ck_assert_int_eq(quire_event_elapsed(last, first, &ns), QUIRE_IO);
	ck_assert_int_eq(ns, 7);
	quire_event_destroy(last);
	quire_event_destroy(first);
	quire_dstream_destroy(dstream);
	quire_device_destroy(device);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("event");
	TCase *both = tcase_create("every cpu device");
	TCase *threads = tcase_create("cpu");

	suite_add_tcase(suite, both);
	suite_add_tcase(suite, threads);
	tcase_set_timeout(both, 30);
	tcase_set_timeout(threads, 30);
	tcase_add_loop_test(both, an_event_that_was_never_recorded_counts_as_done, 0,
	                    NUM_NAMES);
	tcase_add_loop_test(both, an_event_is_done_when_all_before_it_is, 0, NUM_NAMES);
	tcase_add_loop_test(both, an_event_belongs_to_one_device, 0, NUM_NAMES);
	tcase_add_loop_test(
		both, elapsed_time_lies_between_that_inside_and_that_outside_the_events,
		0, NUM_NAMES);
	tcase_add_loop_test(
		both, elapsed_time_needs_two_timed_and_recorded_events_of_one_device, 0,
		NUM_NAMES);
	tcase_add_test(threads, a_stream_waits_for_the_event_of_another);
	tcase_add_test(threads,
	               a_wait_keeps_the_record_it_named_when_the_event_is_recorded_again);
	tcase_add_test(threads, an_older_record_that_ends_does_not_make_the_newest_done);
	tcase_add_test(threads, records_find_a_place_however_many_are_queued);
	tcase_add_test(threads,
	               a_failed_stream_lets_go_of_the_records_it_was_to_wait_for);
	tcase_add_test(threads,
	               elapsed_time_waits_for_both_events_and_tells_their_failure);
	return run_suite(suite);
}
