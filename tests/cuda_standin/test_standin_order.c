/* SPDX-License-Identifier: MIT */
/*
 * What runs before what on the stand-in: streams, events, calls that wait or do not.
 * Where something does not wait, no data tells, for that would be a race; a flag does.
 */
#include "config.h"

#include "tests/cuda_standin/standin_check.h"
#include "tests/run_suite.h"

#include <pthread.h>
#include <stdatomic.h>

static void raise_flag(void *flag)
{
	atomic_store((atomic_int *)flag, 1);
}

/* A flag that is up once the stream has come this far. */
static void queue_flag(cudaStream_t stream, atomic_int *flag)
{
	atomic_init(flag, 0);
	ck_assert_ok(cudaLaunchHostFunc(stream, raise_flag, flag));
}

static bool is_up(atomic_int *flag)
{
	return atomic_load(flag) != 0;
}

struct appended {
	int *list;
	int *length;
	int value;
};

static void append(void *argument)
{
	const struct appended *a = argument;

	a->list[(*a->length)++] = a->value;
}

START_TEST(operations_of_one_stream_run_in_order)
{
	enum { N = 500 };
	static struct appended calls[N];
	static int list[N];
	cudaStream_t stream = new_stream();
	int length = 0;

	standin_set_jitter((uint64_t)_i);
	for (int i = 0; i < N; i++) {
		calls[i] = (struct appended){list, &length, i};
		ck_assert_ok(cudaLaunchHostFunc(stream, append, &calls[i]));
	}
	finish(stream);
	ck_assert_int_eq(length, N);
	for (int i = 0; i < N; i++)
		ck_assert_int_eq(list[i], i);
}
END_TEST

START_TEST(a_stream_waits_for_an_event_and_not_without_one)
{
	bool waits = _i == 1;
	cudaStream_t first = new_stream();
	cudaStream_t second = new_stream();
	cudaEvent_t event = new_event();
	atomic_int flag;
	sem_t gate;

	close_gate(first, &gate);
	ck_assert_ok(cudaEventRecord(event, first));
	if (waits)
		ck_assert_ok(cudaStreamWaitEvent(second, event, 0));
	queue_flag(second, &flag);
	if (!waits)
		finish(second);
	let_others_run();
	ck_assert_int_eq(is_up(&flag), !waits);
	sem_post(&gate);
	finish(second);
	ck_assert(is_up(&flag));
	finish(first);
}
END_TEST

START_TEST(an_event_that_was_never_recorded_counts_as_done)
{
	cudaStream_t stream = new_stream();
	cudaEvent_t event = new_event();

	ck_assert_ok(cudaEventQuery(event));
	ck_assert_ok(cudaEventSynchronize(event));
	ck_assert_ok(cudaStreamWaitEvent(stream, event, 0));
	finish(stream);
}
END_TEST

START_TEST(a_wait_is_for_the_newest_record_at_the_call)
{
	cudaStream_t streams[] = {new_stream(), new_stream(), new_stream()};
	cudaEvent_t event = new_event();
	sem_t gates[2];
	atomic_int early;
	atomic_int late;

	for (int i = 0; i < 2; i++)
		close_gate(streams[i], &gates[i]);
	ck_assert_ok(cudaEventRecord(event, streams[0]));
	ck_assert_ok(cudaStreamWaitEvent(streams[2], event, 0));
	queue_flag(streams[2], &early);
	ck_assert_ok(cudaEventRecord(event, streams[1]));
	ck_assert_ok(cudaStreamWaitEvent(streams[2], event, 0));
	queue_flag(streams[2], &late);
	let_others_run();
	ck_assert(!is_up(&early));
	sem_post(&gates[0]);
	while (!is_up(&early))
		let_others_run();
	/* The older record is done, the newer is not. */
	ck_assert(!is_up(&late));
	ck_assert_cuda(cudaEventQuery(event), cudaErrorNotReady);
	sem_post(&gates[1]);
	ck_assert_ok(cudaEventSynchronize(event));
	ck_assert_ok(cudaEventQuery(event));
	finish(streams[2]);
	ck_assert(is_up(&late));
	finish(streams[0]);
	finish(streams[1]);
}
END_TEST

START_TEST(queries_tell_whether_the_work_queued_so_far_is_done)
{
	cudaStream_t stream = new_stream();
	cudaEvent_t event = new_event();
	sem_t gate;

	ck_assert_ok(cudaStreamQuery(stream));
	close_gate(stream, &gate);
	ck_assert_ok(cudaEventRecord(event, stream));
	ck_assert_cuda(cudaStreamQuery(stream), cudaErrorNotReady);
	ck_assert_cuda(cudaEventQuery(event), cudaErrorNotReady);
	sem_post(&gate);
	ck_assert_ok(cudaEventSynchronize(event));
	ck_assert_ok(cudaEventQuery(event));
	finish(stream);
	ck_assert_ok(cudaStreamQuery(stream));
}
END_TEST

START_TEST(time_passes_between_two_records_that_keep_it)
{
	cudaStream_t stream = new_stream();
	cudaEvent_t events[2];
	float ms = -1;
	sem_t gate;

	for (int i = 0; i < 2; i++)
		ck_assert_ok(cudaEventCreateWithFlags(&events[i], cudaEventDefault));
	ck_assert_cuda(cudaEventElapsedTime(&ms, events[0], events[1]),
	               cudaErrorInvalidResourceHandle);
	ck_assert_ok(cudaEventRecord(events[0], stream));
	close_gate(stream, &gate);
	ck_assert_ok(cudaEventRecord(events[1], stream));
	ck_assert_cuda(cudaEventElapsedTime(&ms, events[0], events[1]),
	               cudaErrorNotReady);
	ck_assert_ok(cudaEventSynchronize(events[0]));
	let_others_run();
	sem_post(&gate);
	finish(stream);
	ck_assert_ok(cudaEventElapsedTime(&ms, events[0], events[1]));
	/* let_others_run sleeps for 20 ms. */
	ck_assert_float_ge(ms, 19);
	ck_assert_ok(cudaEventElapsedTime(&ms, events[1], events[0]));
	ck_assert_float_lt(ms, 0);
}
END_TEST

START_TEST(events_without_timing_have_no_elapsed_time)
{
	cudaStream_t stream = new_stream();
	cudaEvent_t untimed = new_event();
	cudaEvent_t timed = NULL;
	float ms = -1;

	ck_assert_ok(cudaEventCreateWithFlags(&timed, cudaEventBlockingSync));
	ck_assert_ok(cudaEventRecord(timed, stream));
	ck_assert_ok(cudaEventRecord(untimed, stream));
	finish(stream);
	ck_assert_ok(cudaEventElapsedTime(&ms, timed, timed));
	ck_assert_float_eq(ms, 0);
	ms = -1;
	ck_assert_cuda(cudaEventElapsedTime(&ms, timed, untimed),
	               cudaErrorInvalidResourceHandle);
	ck_assert_cuda(cudaEventElapsedTime(&ms, untimed, timed),
	               cudaErrorInvalidResourceHandle);
	ck_assert_cuda(cudaEventElapsedTime(NULL, timed, timed), cudaErrorInvalidValue);
	ck_assert_float_eq(ms, -1);
}
END_TEST

/* What a stream copies to the device when its gate opens after the source has changed. */
static int copied_late(int *source)
{
	cudaStream_t stream = new_stream();
	int *device = new_device_memory(sizeof(int));
	int seen = 0;
	sem_t gate;

	close_gate(stream, &gate);
	*source = 1;
	ck_assert_ok(cudaMemcpyAsync(device, source, sizeof(int), cudaMemcpyHostToDevice,
	                             stream));
	*source = 2;
	/* Behind the write, so that pinned memory is read in order: no race. */
	sem_post(&gate);
	finish(stream);
	ck_assert_ok(cudaMemcpy(&seen, device, sizeof(int), cudaMemcpyDeviceToHost));
	return seen;
}

START_TEST(pageable_memory_is_read_at_the_call_and_pinned_memory_when_it_runs)
{
	int pageable;

	ck_assert_int_eq(copied_late(&pageable), 1);
	ck_assert_int_eq(copied_late(new_pinned(sizeof(int))), 2);
}
END_TEST

static void *open_gate_soon(void *gate)
{
	let_others_run();
	sem_post((sem_t *)gate);
	return NULL;
}

/* Calls that come back before, or only when, the work queued before them is done. */
enum waiting {
	COPY_TO_PAGEABLE,
	COPY_ON_THE_HOST,
	SYNC_COPY_TO_PINNED,
	SYNC_COPY_FROM_PINNED,
	SYNC_SET_PINNED,
	FREE,
	FREE_HOST,
	SYNC_STREAM,
	SYNC_DEVICE,
	WAITING,
	COPY_TO_PINNED = WAITING,
	COPY_FROM_PINNED,
	COPY_FROM_PAGEABLE,
	COPY_ON_THE_DEVICE,
	SYNC_COPY_FROM_PAGEABLE,
	SYNC_COPY_ON_THE_DEVICE,
	SYNC_SET,
	SET,
	DESTROY,
	CALLS,
};

struct memory {
	char pageable[16];
	char *pinned[2];
	char *device[2];
};

static cudaError_t call_copy(int call, struct memory *m, cudaStream_t stream)
{
	const size_t n = 16;

	switch (call) {
	case COPY_TO_PAGEABLE:
		return cudaMemcpyAsync(m->pageable, m->device[0], n, 2, stream);
	case COPY_ON_THE_HOST:
		return cudaMemcpyAsync(m->pinned[0], m->pinned[1], n, 0, stream);
	case COPY_TO_PINNED:
		return cudaMemcpyAsync(m->pinned[0], m->device[0], n, 2, stream);
	case COPY_FROM_PINNED:
		return cudaMemcpyAsync(m->device[0], m->pinned[0], n, 1, stream);
	case COPY_FROM_PAGEABLE:
		return cudaMemcpyAsync(m->device[0], m->pageable, n, 1, stream);
	case COPY_ON_THE_DEVICE:
		return cudaMemcpyAsync(m->device[0], m->device[1], n, 3, stream);
	case SET:
		return cudaMemsetAsync(m->device[0], 0, n, stream);
	default:
		return cudaErrorUnknown;
	}
}

static cudaError_t call_sync(int call, struct memory *m, cudaStream_t stream)
{
	const size_t n = 16;

	switch (call) {
	case SYNC_COPY_TO_PINNED:
		return cudaMemcpy(m->pinned[0], m->device[0], n, 2);
	case SYNC_COPY_FROM_PINNED:
		return cudaMemcpy(m->device[0], m->pinned[0], n, 1);
	case SYNC_COPY_FROM_PAGEABLE:
		return cudaMemcpy(m->device[0], m->pageable, n, 1);
	case SYNC_COPY_ON_THE_DEVICE:
		return cudaMemcpy(m->device[0], m->device[1], n, 3);
	case SYNC_SET_PINNED:
		return cudaMemset(m->pinned[0], 0, n);
	case SYNC_SET:
		return cudaMemset(m->device[0], 0, n);
	case FREE:
		return cudaFree(m->device[0]);
	case FREE_HOST:
		return cudaFreeHost(m->pinned[0]);
	case SYNC_STREAM:
		return cudaStreamSynchronize(stream);
	case SYNC_DEVICE:
		return cudaDeviceSynchronize();
	case DESTROY:
		return cudaStreamDestroy(stream);
	default:
		return call_copy(call, m, stream);
	}
}

START_TEST(calls_wait_where_cuda_does_and_only_there)
{
	struct memory memory = {
		{0},
		{new_pinned(16), new_pinned(16)},
		{new_device_memory(16), new_device_memory(16)},
	};
	cudaStream_t stream = NULL;
	pthread_t opener;
	atomic_int flag;
	sem_t gate;

	/* A blocking one: the calls on the default stream are behind it. */
	ck_assert_ok(cudaStreamCreateWithPriority(&stream, cudaStreamDefault, 0));
	close_gate(stream, &gate);
	queue_flag(stream, &flag);
	if (_i < WAITING) {
		pthread_create(&opener, NULL, open_gate_soon, &gate);
		ck_assert_ok(call_sync(_i, &memory, stream));
		ck_assert(is_up(&flag));
		pthread_join(opener, NULL);
	} else {
		ck_assert_ok(call_sync(_i, &memory, stream));
		let_others_run();
		ck_assert(!is_up(&flag));
		sem_post(&gate);
	}
	ck_assert_ok(cudaDeviceSynchronize());
	ck_assert(is_up(&flag));
}
END_TEST

START_TEST(the_default_stream_and_blocking_streams_wait_for_each_other)
{
	bool blocking = _i == 1;
	cudaStream_t stream = NULL;
	atomic_int flag;
	sem_t gate;

	ck_assert_ok(cudaStreamCreateWithPriority(
		&stream, blocking ? cudaStreamDefault : cudaStreamNonBlocking, 0));
	close_gate(stream, &gate);
	queue_flag(NULL, &flag);
	if (!blocking)
		finish(NULL);
	let_others_run();
	ck_assert_int_eq(is_up(&flag), !blocking);
	sem_post(&gate);
	finish(NULL);
	finish(stream);
	close_gate(cudaStreamLegacy, &gate);
	queue_flag(stream, &flag);
	if (!blocking)
		finish(stream);
	let_others_run();
	ck_assert_int_eq(is_up(&flag), !blocking);
	sem_post(&gate);
	finish(stream);
	finish(NULL);
}
END_TEST

START_TEST(a_destroyed_stream_lets_its_queue_finish_and_is_gone)
{
	cudaStream_t stream = new_stream();
	cudaEvent_t event = new_event();
	atomic_int flag;
	sem_t gate;

	close_gate(stream, &gate);
	queue_flag(stream, &flag);
	ck_assert_ok(cudaEventRecord(event, stream));
	ck_assert_int_eq(standin_live().streams, 1);
	ck_assert_ok(cudaStreamDestroy(stream));
	ck_assert_int_eq(standin_live().streams, 0);
	ck_assert_cuda(cudaStreamQuery(stream), cudaErrorInvalidResourceHandle);
	ck_assert_cuda(cudaStreamDestroy(stream), cudaErrorInvalidResourceHandle);
	ck_assert_cuda(cudaStreamDestroy(NULL), cudaErrorInvalidResourceHandle);
	ck_assert_cuda(cudaEventRecord(event, stream), cudaErrorInvalidResourceHandle);
	ck_assert(!is_up(&flag));
	sem_post(&gate);
	ck_assert_ok(cudaEventSynchronize(event));
	ck_assert(is_up(&flag));
}
END_TEST

START_TEST(an_event_may_be_destroyed_while_it_is_waited_for)
{
	cudaStream_t first = new_stream();
	cudaStream_t second = new_stream();
	cudaEvent_t event = new_event();
	atomic_int flag;
	sem_t gate;

	close_gate(first, &gate);
	ck_assert_ok(cudaEventRecord(event, first));
	ck_assert_ok(cudaStreamWaitEvent(second, event, 0));
	queue_flag(second, &flag);
	ck_assert_ok(cudaEventDestroy(event));
	ck_assert_int_eq(standin_live().events, 0);
	ck_assert_cuda(cudaEventQuery(event), cudaErrorInvalidResourceHandle);
	ck_assert_cuda(cudaEventDestroy(event), cudaErrorInvalidResourceHandle);
	let_others_run();
	ck_assert(!is_up(&flag));
	sem_post(&gate);
	finish(second);
	finish(first);
}
END_TEST

START_TEST(wrong_handles_and_flags_are_refused)
{
	cudaStream_t stream = new_stream();
	cudaEvent_t event = new_event();
	enum cudaStreamCaptureStatus status;

	ck_assert_cuda(cudaStreamCreateWithPriority(NULL, 0, 0), cudaErrorInvalidValue);
	ck_assert_cuda(cudaStreamCreateWithPriority(&stream, 2, 0),
	               cudaErrorInvalidValue);
	ck_assert_cuda(cudaEventCreateWithFlags(&event, 0x10), cudaErrorInvalidValue);
	ck_assert_cuda(cudaEventCreateWithFlags(NULL, 0), cudaErrorInvalidValue);
	ck_assert_cuda(cudaEventRecord(NULL, stream), cudaErrorInvalidResourceHandle);
	ck_assert_cuda(cudaStreamWaitEvent(stream, NULL, 0),
	               cudaErrorInvalidResourceHandle);
	ck_assert_cuda(cudaStreamWaitEvent(stream, event, 2), cudaErrorInvalidValue);
	ck_assert_cuda(cudaStreamSynchronize(cudaStreamPerThread),
	               cudaErrorInvalidResourceHandle);
	ck_assert_cuda(cudaLaunchHostFunc(stream, NULL, NULL), cudaErrorInvalidValue);
	ck_assert_cuda(cudaStreamIsCapturing(stream, NULL), cudaErrorInvalidValue);
	status = cudaStreamCaptureStatusActive;
	ck_assert_ok(cudaStreamIsCapturing(stream, &status));
	ck_assert_int_eq(status, cudaStreamCaptureStatusNone);
	status = cudaStreamCaptureStatusActive;
	ck_assert_ok(
		cudaStreamGetCaptureInfo(stream, &status, NULL, NULL, NULL, NULL, NULL));
	ck_assert_int_eq(status, cudaStreamCaptureStatusNone);
}
END_TEST

static void call_cuda(void *answer)
{
	*(cudaError_t *)answer = cudaDeviceSynchronize();
}

START_TEST(host_functions_may_not_call_cuda)
{
	cudaStream_t stream = new_stream();
	cudaError_t answer = cudaSuccess;

	ck_assert_ok(cudaLaunchHostFunc(stream, call_cuda, &answer));
	finish(stream);
	ck_assert_cuda(answer, cudaErrorNotPermitted);
	ck_assert_ok(cudaDeviceSynchronize());
}
END_TEST

struct arrival {
	atomic_int *arrived;
	int place;
};

static void arrive(void *argument)
{
	struct arrival *arrival = argument;

	arrival->place = atomic_fetch_add(arrival->arrived, 1);
}

START_TEST(jitter_shows_that_streams_have_no_order_and_an_event_makes_one)
{
	cudaStream_t streams[] = {new_stream(), new_stream()};
	cudaEvent_t event = new_event();
	int second_came_first = 0;

	standin_set_jitter(1);
	for (int round = 0; round < 400; round++) {
		atomic_int arrived = 0;
		struct arrival arrivals[] = {{&arrived, -1}, {&arrived, -1}};

		ck_assert_ok(cudaLaunchHostFunc(streams[0], arrive, &arrivals[0]));
		ck_assert_ok(cudaEventRecord(event, streams[0]));
		if (_i == 1)
			ck_assert_ok(cudaStreamWaitEvent(streams[1], event, 0));
		ck_assert_ok(cudaLaunchHostFunc(streams[1], arrive, &arrivals[1]));
		finish(streams[0]);
		finish(streams[1]);
		second_came_first += arrivals[1].place == 0;
	}
	if (_i == 0)
		ck_assert_int_gt(second_came_first, 0);
	else
		ck_assert_int_eq(second_came_first, 0);
}
END_TEST

static void add_order(Suite *suite)
{
	TCase *tcase = tcase_create("order");

	tcase_add_checked_fixture(tcase, NULL, standin_reset);
	tcase_add_loop_test(tcase, operations_of_one_stream_run_in_order, 0, 2);
	tcase_add_loop_test(tcase, a_stream_waits_for_an_event_and_not_without_one, 0, 2);
	tcase_add_test(tcase, an_event_that_was_never_recorded_counts_as_done);
	tcase_add_test(tcase, a_wait_is_for_the_newest_record_at_the_call);
	tcase_add_test(tcase, queries_tell_whether_the_work_queued_so_far_is_done);
	tcase_add_test(tcase, time_passes_between_two_records_that_keep_it);
	tcase_add_test(tcase, events_without_timing_have_no_elapsed_time);
	tcase_add_test(
		tcase,
		pageable_memory_is_read_at_the_call_and_pinned_memory_when_it_runs);
	tcase_add_loop_test(tcase, calls_wait_where_cuda_does_and_only_there, 0, CALLS);
	tcase_add_loop_test(
		tcase, the_default_stream_and_blocking_streams_wait_for_each_other, 0, 2);
	tcase_add_test(tcase, a_destroyed_stream_lets_its_queue_finish_and_is_gone);
	tcase_add_test(tcase, an_event_may_be_destroyed_while_it_is_waited_for);
	tcase_add_test(tcase, wrong_handles_and_flags_are_refused);
	tcase_add_test(tcase, host_functions_may_not_call_cuda);
	tcase_add_loop_test(
		tcase, jitter_shows_that_streams_have_no_order_and_an_event_makes_one, 0,
		2);
	suite_add_tcase(suite, tcase);
}

int main(void)
{
	Suite *suite = suite_create("standin order");

	add_order(suite);
	return run_suite(suite);
}
