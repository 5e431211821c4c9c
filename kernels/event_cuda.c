/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "kernels/device_cuda_impl.h"

#include <stdlib.h>

enum quire_status quire_cuda_event_create(struct quire_device *base, bool timed,
                                          struct quire_event **event_out)
{
	const struct cuda_device *device = (struct cuda_device *)base;
	unsigned flags = cudaEventBlockingSync |
	                 (timed ? cudaEventDefault : cudaEventDisableTiming);
	struct cuda_event *event = calloc(1, sizeof(*event));
	cudaError_t error;
	int previous;

	if (event == NULL)
		return QUIRE_NO_MEMORY;
	error = quire_cuda_enter(device, &previous);
	if (error == cudaSuccess) {
		error = cudaEventCreateWithFlags(&event->event, flags);
		quire_cuda_leave(device, previous);
	}
	if (error != cudaSuccess) {
		free(event);
		return quire_cuda_refuse(error, NULL);
	}
	event->base.device = base;
	event->timed = timed;
	pthread_mutex_init(&event->lock, NULL);
	*event_out = &event->base;
	return QUIRE_OK;
}

void quire_cuda_event_destroy(struct quire_event *base)
{
	struct cuda_event *event = (struct cuda_event *)base;

	(void)quire_cuda_refuse(cudaEventDestroy(event->event), NULL);
	quire_cuda_track_drop(event->track);
	pthread_mutex_destroy(&event->lock);
	free(event);
}

/* The event speaks of the stream's newest operation; answers the track it spoke of
 * before.  Both are locked. */
static struct cuda_track *set_record(struct cuda_event *event,
                                     const struct cuda_dstream *dstream, int32_t state)
{
	struct cuda_track *before = event->track;

	event->track = dstream->track;
	event->position = dstream->position;
	/* Relaxed, both: the stream is a user; no data hangs on seeing the state BUSY. */
	atomic_fetch_add_explicit(&event->track->users, 1, memory_order_relaxed);
	atomic_store_explicit(&event->state, state, memory_order_relaxed);
	return before;
}

enum quire_status quire_cuda_event_record(struct quire_event *event_base,
                                          struct quire_dstream *base)
{
	struct cuda_dstream *dstream = (struct cuda_dstream *)base;
	struct cuda_event *event = (struct cuda_event *)event_base;
	int32_t state = CUDA_EVENT_BUSY;
	struct cuda_track *before;
	cudaError_t error = quire_cuda_lock(dstream);

	pthread_mutex_lock(&event->lock);
	if (error == cudaSuccess)
		error = cudaEventRecord(event->event, dstream->stream);
	if (error != cudaSuccess) {
		state = (int32_t)quire_cuda_outcome(dstream->track, dstream->position,
		                                    NULL);
		if (state == QUIRE_OK)
			state = (int32_t)quire_cuda_refuse(error, NULL);
	}
	before = set_record(event, dstream, state);
	pthread_mutex_unlock(&event->lock);
	(void)quire_cuda_end(dstream, error, NULL);
	quire_cuda_track_drop(before);
	return QUIRE_OK;
}

/* The status of the newest record, QUIRE_AGAIN while it is not done.  Called under the
 * lock. */
static enum quire_status look(struct cuda_event *event)
{
	int32_t state = atomic_load_explicit(&event->state, memory_order_relaxed);
	enum quire_status status;
	cudaError_t error;

	if (state != CUDA_EVENT_BUSY)
		return (enum quire_status)state;
	error = cudaEventQuery(event->event);
	if (error == cudaErrorNotReady) {
		/* Some runtimes count this among the errors. */
		if (cudaPeekAtLastError() == cudaErrorNotReady)
			(void)cudaGetLastError();
		return QUIRE_AGAIN;
	}
	if (error != cudaSuccess)
		return quire_cuda_refuse(error, NULL);
	status = quire_cuda_outcome(event->track, event->position, NULL);
	/* Release, with the acquire of whoever takes the state for what was done. */
	atomic_store_explicit(&event->state, (int32_t)status, memory_order_release);
	return status;
}

enum quire_status quire_cuda_event_query(struct quire_event *base)
{
	struct cuda_event *event = (struct cuda_event *)base;
	/* Acquire, with the release in look. */
	int32_t state = atomic_load_explicit(&event->state, memory_order_acquire);
	enum quire_status status;

	if (state != CUDA_EVENT_BUSY)
		return (enum quire_status)state;
	pthread_mutex_lock(&event->lock);
	status = look(event);
	pthread_mutex_unlock(&event->lock);
	return status;
}

enum quire_status quire_cuda_event_synchronize(struct quire_event *base)
{
	struct cuda_event *event = (struct cuda_event *)base;
	struct cuda_track *track;
	enum quire_status status;
	cudaError_t error;
	int64_t position;
	int32_t state;

	pthread_mutex_lock(&event->lock);
	state = atomic_load_explicit(&event->state, memory_order_relaxed);
	track = event->track;
	position = event->position;
	/* Relaxed: the event is a user. */
	if (state == CUDA_EVENT_BUSY)
		atomic_fetch_add_explicit(&track->users, 1, memory_order_relaxed);
	pthread_mutex_unlock(&event->lock);
	if (state != CUDA_EVENT_BUSY)
		return (enum quire_status)state;
	/* Without the lock, under which others query and record. */
	error = cudaEventSynchronize(event->event);
	status = error == cudaSuccess ? quire_cuda_outcome(track, position, NULL)
	                              : quire_cuda_refuse(error, NULL);
	quire_cuda_track_drop(track);
	return status;
}

/* look, for an event that tells the time. */
static enum quire_status look_at_time(struct cuda_event *event)
{
	enum quire_status status = QUIRE_INVALID;

	pthread_mutex_lock(&event->lock);
	if (event->timed && event->track != NULL)
		status = look(event);
	pthread_mutex_unlock(&event->lock);
	return status;
}

enum quire_status quire_cuda_event_elapsed(struct quire_event *first_base,
                                           struct quire_event *last_base, int64_t *ns_out)
{
	struct cuda_event *first = (struct cuda_event *)first_base;
	struct cuda_event *last = (struct cuda_event *)last_base;
	enum quire_status first_status = look_at_time(first);
	enum quire_status last_status = look_at_time(last);
	cudaError_t error;
	float ms;

	/* What can never be answered is told before what cannot be answered yet. */
	if (first_status == QUIRE_INVALID || last_status == QUIRE_INVALID)
		return QUIRE_INVALID;
	if (first_status != QUIRE_OK)
		return first_status;
	if (last_status != QUIRE_OK)
		return last_status;
	error = cudaEventElapsedTime(&ms, first->event, last->event);
	if (error != cudaSuccess)
		return quire_cuda_refuse(error, NULL);
	*ns_out = (int64_t)((double)ms * 1e6);
	return QUIRE_OK;
}

enum quire_status quire_cuda_event_notify(struct quire_event *base,
                                          void (*function)(void *argument),
                                          void *argument)
{
	struct cuda_event *event = (struct cuda_event *)base;
	enum quire_status status = QUIRE_OK;
	bool pending;

	pthread_mutex_lock(&event->lock);
	pending = look(event) == QUIRE_AGAIN;
	if (pending)
		status = quire_cuda_notifier_add(&event->track->notifier, event->event,
		                                 function, argument);
	pthread_mutex_unlock(&event->lock);
	if (pending && status != QUIRE_CLOSED)
		return status;
	function(argument);
	return QUIRE_OK;
}
