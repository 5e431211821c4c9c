/* SPDX-License-Identifier: MIT */
/* An event names its newest record, an operation; without one it counts as done. */
#include "tests/cuda_standin/standin_impl.h"

#include <stdlib.h>

struct CUevent_st {
	struct CUevent_st *next;
	int device;
	unsigned int flags;
	struct standin_op *newest;
};

/* Under the lock. */
static cudaEvent_t events;

static cudaEvent_t *find_locked(cudaEvent_t handle)
{
	cudaEvent_t *event = &events;

	while (*event != NULL && *event != handle)
		event = &(*event)->next;
	return event;
}

/* An event as it is now, with a reference to its newest record; false: no such event. */
static bool look_up(cudaEvent_t handle, struct CUevent_st *event_out)
{
	cudaEvent_t event;

	*event_out = (struct CUevent_st){0};
	standin_lock();
	event = *find_locked(handle);
	if (event != NULL)
		*event_out = *event;
	if (event_out->newest != NULL)
		event_out->newest->users++;
	standin_unlock();
	return event != NULL;
}

int standin_count_events(void)
{
	int count = 0;

	for (cudaEvent_t event = events; event != NULL; event = event->next)
		count++;
	return count;
}

/* Takes an event out of the list and frees it; false: no such event. */
static bool end_event(cudaEvent_t handle)
{
	struct standin_op *newest = NULL;
	cudaEvent_t *place;
	cudaEvent_t event;

	standin_lock();
	place = find_locked(handle);
	event = *place;
	if (event != NULL) {
		*place = event->next;
		newest = event->newest;
		free(event);
	}
	standin_unlock();
	standin_op_drop(newest);
	return event != NULL;
}

void standin_end_events(void)
{
	while (events != NULL)
		end_event(events);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event_out, unsigned int flags)
{
	const unsigned int known = cudaEventBlockingSync | cudaEventDisableTiming;
	cudaError_t error = standin_enter(STANDIN_cudaEventCreateWithFlags);
	cudaEvent_t event;

	if (error != cudaSuccess)
		return error;
	if (event_out == NULL || (flags & ~known) != 0)
		return standin_answer(cudaErrorInvalidValue);
	standin_lock();
	event = calloc(1, sizeof(*event));
	if (event != NULL) {
		event->device = standin_device();
		event->flags = flags;
		event->next = events;
		events = event;
	}
	standin_unlock();
	if (event == NULL)
		return standin_answer(cudaErrorMemoryAllocation);
	*event_out = event;
	return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t handle)
{
	cudaError_t error = standin_admit(STANDIN_cudaEventDestroy);

	if (error != cudaSuccess)
		return error;
	return standin_leave(STANDIN_cudaEventDestroy,
	                     end_event(handle) ? cudaSuccess
	                                       : cudaErrorInvalidResourceHandle);
}

/* What comes before it in its stream is all that a record does. */
static void run_record(struct standin_op *op)
{
	(void)op;
}

/* The reference to the record is given. */
static void set_newest(cudaEvent_t handle, struct standin_op *op)
{
	cudaEvent_t event;

	standin_lock();
	event = *find_locked(handle);
	if (event != NULL) {
		struct standin_op *older = event->newest;

		event->newest = op;
		op = older;
	}
	standin_unlock();
	standin_op_drop(op);
}

/* Queued first: an event never names a record that nobody will run. */
static cudaError_t record(cudaEvent_t handle, cudaStream_t stream)
{
	struct standin_op *op = standin_op_create(STANDIN_ORDER, run_record, 0);
	cudaError_t error;

	if (op == NULL)
		return cudaErrorMemoryAllocation;
	standin_op_share(op);
	error = standin_push(stream, op);
	if (error == cudaSuccess)
		set_newest(handle, op);
	else
		standin_op_drop(op);
	return error;
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream_handle)
{
	cudaError_t error = standin_enter(STANDIN_cudaEventRecord);
	struct CUevent_st event;
	cudaStream_t stream;

	if (error != cudaSuccess)
		return error;
	stream = standin_stream_find(stream_handle);
	if (stream == NULL || !look_up(handle, &event))
		return standin_answer(cudaErrorInvalidResourceHandle);
	standin_op_drop(event.newest);
	if (event.device != stream->device)
		return standin_answer(cudaErrorInvalidResourceHandle);
	if (standin_spoil_capture(stream))
		return standin_answer(cudaErrorStreamCaptureUnsupported);
	return standin_answer(record(handle, stream));
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream_handle, cudaEvent_t handle,
                                unsigned int flags)
{
	cudaError_t error = standin_enter(STANDIN_cudaStreamWaitEvent);
	struct CUevent_st event;
	cudaStream_t stream;

	if (error != cudaSuccess)
		return error;
	stream = standin_stream_find(stream_handle);
	if (stream == NULL || !look_up(handle, &event))
		return standin_answer(cudaErrorInvalidResourceHandle);
	if (flags != cudaEventWaitDefault)
		error = cudaErrorInvalidValue;
	else if (standin_spoil_capture(stream))
		error = cudaErrorStreamCaptureUnsupported;
	else if (event.newest != NULL)
		error = standin_push_join(stream, event.newest);
	standin_op_drop(event.newest);
	return standin_answer(error);
}

cudaError_t cudaEventQuery(cudaEvent_t handle)
{
	cudaError_t error = standin_enter(STANDIN_cudaEventQuery);
	struct CUevent_st event;
	bool done;

	if (error != cudaSuccess)
		return error;
	if (!look_up(handle, &event))
		return standin_answer(cudaErrorInvalidResourceHandle);
	done = event.newest == NULL || standin_op_query(event.newest);
	standin_op_drop(event.newest);
	return standin_answer(done ? standin_sticky() : cudaErrorNotReady);
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle)
{
	cudaError_t error = standin_enter(STANDIN_cudaEventSynchronize);
	struct CUevent_st event;

	if (error != cudaSuccess)
		return error;
	if (!look_up(handle, &event))
		return standin_answer(cudaErrorInvalidResourceHandle);
	if (event.newest != NULL)
		standin_op_join(event.newest);
	standin_op_drop(event.newest);
	return standin_answer(standin_sticky());
}

static cudaError_t elapsed(const struct CUevent_st *start, const struct CUevent_st *end,
                           float *ms_out)
{
	if (start->newest == NULL || end->newest == NULL ||
	    ((start->flags | end->flags) & cudaEventDisableTiming) != 0)
		return cudaErrorInvalidResourceHandle;
	if (!standin_op_query(start->newest) || !standin_op_query(end->newest))
		return cudaErrorNotReady;
	*ms_out =
		(float)((double)(end->newest->finished_ns - start->newest->finished_ns) /
	                1e6);
	return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *ms_out, cudaEvent_t start_handle,
                                 cudaEvent_t end_handle)
{
	cudaError_t error = standin_enter(STANDIN_cudaEventElapsedTime);
	struct CUevent_st start;
	struct CUevent_st end;
	bool found;

	if (error != cudaSuccess)
		return error;
	if (ms_out == NULL)
		return standin_answer(cudaErrorInvalidValue);
	found = look_up(start_handle, &start);
	found = look_up(end_handle, &end) && found;
	error = found ? elapsed(&start, &end, ms_out) : cudaErrorInvalidResourceHandle;
	standin_op_drop(start.newest);
	standin_op_drop(end.newest);
	return standin_answer(error);
}
