/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "kernels/device_cuda_impl.h"
#include "runtime/refuse_impl.h"

#include <sched.h>
#include <stdlib.h>

static const struct cuda_device *device_of(const struct cuda_dstream *dstream)
{
	return (const struct cuda_device *)dstream->base.device;
}

/* ------------------------------------------------------------------ failure */

/* The stream fails at its newest position.  Called under the lock. */
static enum quire_status refuse(struct cuda_dstream *dstream,
                                const struct quire_refusal *refusal)
{
	struct cuda_track *track = dstream->track;

	if (atomic_load_explicit(&track->refused, memory_order_relaxed))
		return refusal->status;
	track->refusal = *refusal;
	track->refused_at = dstream->position;
	/* Release, with the acquire in quire_cuda_outcome. */
	atomic_store_explicit(&track->refused, true, memory_order_release);
	return refusal->status;
}

cudaError_t quire_cuda_lock(struct cuda_dstream *dstream)
{
	cudaError_t error;

	pthread_mutex_lock(&dstream->lock);
	dstream->position++;
	error = quire_cuda_enter(device_of(dstream), &dstream->previous);
	if (error != cudaSuccess)
		dstream->previous = device_of(dstream)->ordinal;
	return error;
}

enum quire_status quire_cuda_begin(struct cuda_dstream *dstream,
                                   struct quire_refusal *refusal_out)
{
	cudaError_t error = quire_cuda_lock(dstream);
	enum quire_status status =
		quire_cuda_outcome(dstream->track, INT64_MAX, refusal_out);

	if (status != QUIRE_OK) {
		(void)quire_cuda_end(dstream, cudaSuccess, NULL);
		return status;
	}
	return error == cudaSuccess ? QUIRE_OK
	                            : quire_cuda_end(dstream, error, refusal_out);
}

enum quire_status quire_cuda_end(struct cuda_dstream *dstream, cudaError_t error,
                                 struct quire_refusal *refusal_out)
{
	enum quire_status status = QUIRE_OK;
	struct quire_refusal refusal;

	if (error != cudaSuccess) {
		quire_cuda_refuse(error, &refusal);
		refuse(dstream, &refusal);
		status = quire_refuse(refusal_out, refusal);
	}
	quire_cuda_leave(device_of(dstream), dstream->previous);
	pthread_mutex_unlock(&dstream->lock);
	return status;
}

/* A graph may be launched after the stream failed: what is captured always looks. */
static bool is_captured(const struct cuda_dstream *dstream)
{
	enum cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
	cudaError_t error = cudaStreamIsCapturing(dstream->stream, &capture);

	/* To look is never wrong. */
	return quire_cuda_refuse(error, NULL) != QUIRE_OK ||
	       capture != cudaStreamCaptureStatusNone;
}

struct quire_cuda_lane quire_cuda_lane(const struct cuda_dstream *dstream)
{
	const struct cuda_track *track = dstream->track;

	return (struct quire_cuda_lane){
		.stream = dstream->stream,
		.state = track->state,
		.report = track->report,
		.position = dstream->position,
		/* Relaxed: set under the lock that the caller holds. */
		.guarded = atomic_load_explicit(&track->guarded, memory_order_relaxed) ||
	                   is_captured(dstream),
		.checks = device_of(dstream)->checks,
	};
}

/* From now on kernels look whether the stream has failed.  Called under the lock. */
static void guard(struct cuda_dstream *dstream)
{
	/* Relaxed: who waits for an event recorded after this has the event's lock. */
	atomic_store_explicit(&dstream->track->guarded, true, memory_order_relaxed);
}

/* ------------------------------------------------------------------ life */

/* Keep a track as long as this stream.  Called under the lock; false: no memory. */
static bool keep_leader(struct cuda_dstream *dstream, struct cuda_track *track)
{
	struct cuda_leader *leader = dstream->leaders;

	while (leader != NULL && leader->track != track)
		leader = leader->next;
	if (leader != NULL)
		return true;
	leader = malloc(sizeof(*leader));
	if (leader == NULL)
		return false;
	/* Relaxed: the event whose lock the caller holds is a user. */
	atomic_fetch_add_explicit(&track->users, 1, memory_order_relaxed);
	*leader = (struct cuda_leader){.next = dstream->leaders, .track = track};
	dstream->leaders = leader;
	return true;
}

enum quire_status quire_cuda_dstream_create(struct quire_device *base, const char *name,
                                            enum quire_priority priority,
                                            struct quire_dstream **dstream_out)
{
	const struct cuda_device *device = (struct cuda_device *)base;
	struct cuda_dstream *dstream = calloc(1, sizeof(*dstream));
	cudaError_t error;
	int previous;

	if (dstream == NULL)
		return QUIRE_NO_MEMORY;
	error = quire_cuda_enter(device, &previous);
	if (error != cudaSuccess)
		goto undo_create;
	error = cudaStreamCreateWithPriority(&dstream->stream, cudaStreamNonBlocking,
	                                     device->priority[priority]);
	if (error != cudaSuccess)
		goto undo_enter;
	error = quire_cuda_track_create(device, dstream->stream, name, &dstream->track);
	if (error != cudaSuccess)
		goto undo_stream;
	quire_cuda_leave(device, previous);
	dstream->base.device = base;
	pthread_mutex_init(&dstream->lock, NULL);
	*dstream_out = &dstream->base;
	return QUIRE_OK;

undo_stream:
	(void)cudaStreamDestroy(dstream->stream);
undo_enter:
	quire_cuda_leave(device, previous);
undo_create:
	free(dstream);
	return quire_cuda_refuse(error, NULL);
}

static int32_t call_state(struct cuda_call *call)
{
	/* Acquire, with the release in run_call: it is not touched any more. */
	return atomic_load_explicit(&call->state, memory_order_acquire);
}

/* A broken context does not wait for a function that runs, and calls none that has not
 * begun. */
static void free_calls(struct cuda_dstream *dstream)
{
	while (dstream->first != NULL) {
		struct cuda_call *call = dstream->first;

		while (call_state(call) == CUDA_CALL_BEGUN)
			sched_yield();
		dstream->first = call->next;
		free(call);
	}
}

static void free_leaders(struct cuda_dstream *dstream)
{
	while (dstream->leaders != NULL) {
		struct cuda_leader *leader = dstream->leaders;

		dstream->leaders = leader->next;
		quire_cuda_track_drop(leader->track);
		free(leader);
	}
}

static void free_blocks(struct cuda_block *block)
{
	while (block != NULL) {
		struct cuda_block *before = block->before;

		(void)quire_cuda_refuse(cudaFree(block->memory), NULL);
		free(block);
		block = before;
	}
}

void quire_cuda_dstream_destroy(struct quire_dstream *base)
{
	struct cuda_dstream *dstream = (struct cuda_dstream *)base;
	const struct cuda_device *device = device_of(dstream);
	int previous;

	if (quire_cuda_enter(device, &previous) != cudaSuccess)
		previous = device->ordinal;
	/* A wait that answers an error may not have waited. */
	if (cudaStreamSynchronize(dstream->stream) != cudaSuccess)
		(void)cudaDeviceSynchronize();
	quire_cuda_notifier_close(&dstream->track->notifier);
	(void)cudaStreamDestroy(dstream->stream);
	free_calls(dstream);
	free_leaders(dstream);
	free_blocks(dstream->marks);
	free_blocks(dstream->scratch);
	quire_cuda_track_drop(dstream->track);
	(void)cudaGetLastError();
	quire_cuda_leave(device, previous);
	pthread_mutex_destroy(&dstream->lock);
	free(dstream);
}

void *quire_cuda_dstream_native(const struct quire_dstream *dstream)
{
	return ((const struct cuda_dstream *)dstream)->stream;
}

/* ------------------------------------------------------------------ operations */

enum quire_status quire_cuda_synchronize(struct quire_dstream *base,
                                         struct quire_refusal *refusal_out)
{
	struct cuda_dstream *dstream = (struct cuda_dstream *)base;
	struct quire_refusal refusal;
	int previous;
	cudaError_t error = quire_cuda_enter(device_of(dstream), &previous);

	if (error == cudaSuccess) {
		error = cudaStreamSynchronize(dstream->stream);
		quire_cuda_leave(device_of(dstream), previous);
	}
	if (error != cudaSuccess) {
		quire_cuda_refuse(error, &refusal);
		pthread_mutex_lock(&dstream->lock);
		dstream->position++;
		refuse(dstream, &refusal);
		pthread_mutex_unlock(&dstream->lock);
	}
	return quire_cuda_outcome(dstream->track, INT64_MAX, refusal_out);
}

/* Wait for the newest record of an event, and fail with its stream.  The event has a
 * record that is not done, or not well; both are locked. */
static enum quire_status wait_for(struct cuda_dstream *dstream,
                                  const struct cuda_event *event, cudaError_t *error_out)
{
	struct cuda_track *track = event->track;
	enum quire_status status = quire_cuda_outcome(track, event->position, NULL);
	struct quire_cuda_lane lane;
	struct quire_refusal refusal;

	if (status != QUIRE_OK) {
		quire_refuse_what(&refusal, status,
		                  "the device stream of an event waited for failed");
		return refuse(dstream, &refusal);
	}
	/* Relaxed: set under the event's lock, or before it was taken for the record. */
	if (track == dstream->track ||
	    !atomic_load_explicit(&track->guarded, memory_order_relaxed)) {
		*error_out = cudaStreamWaitEvent(dstream->stream, event->event, 0);
		return QUIRE_OK;
	}
	if (!keep_leader(dstream, track))
		return QUIRE_NO_MEMORY;
	guard(dstream);
	lane = quire_cuda_lane(dstream);
	*error_out = cudaStreamWaitEvent(dstream->stream, event->event, 0);
	if (*error_out == cudaSuccess)
		*error_out = (cudaError_t)quire_cuda_follow(&lane, &track->state->fault,
		                                            event->position);
	return QUIRE_OK;
}

enum quire_status quire_cuda_wait_event(struct quire_dstream *base,
                                        struct quire_event *event_base)
{
	struct cuda_dstream *dstream = (struct cuda_dstream *)base;
	struct cuda_event *event = (struct cuda_event *)event_base;
	enum quire_status status = quire_cuda_begin(dstream, NULL);
	enum quire_status end_status;
	cudaError_t error = cudaSuccess;

	if (status != QUIRE_OK)
		return status;
	pthread_mutex_lock(&event->lock);
	/* Acquire, with the release of whoever saw it done: what ran before it is before
	 * this too. */
	if (event->track != NULL &&
	    atomic_load_explicit(&event->state, memory_order_acquire) != QUIRE_OK)
		status = wait_for(dstream, event, &error);
	pthread_mutex_unlock(&event->lock);
	end_status = quire_cuda_end(dstream, error, NULL);
	return status != QUIRE_OK ? status : end_status;
}

enum quire_status quire_cuda_copy(struct quire_dstream *base,
                                  const struct quire_range *ranges, int64_t n)
{
	struct cuda_dstream *dstream = (struct cuda_dstream *)base;
	enum quire_status status = quire_cuda_begin(dstream, NULL);
	cudaError_t error = cudaSuccess;

	if (status != QUIRE_OK)
		return status;
	for (int64_t i = 0; i < n && error == cudaSuccess; i++)
		if (ranges[i].bytes > 0)
			error = cudaMemcpyAsync(ranges[i].target, ranges[i].source,
			                        (size_t)ranges[i].bytes,
			                        cudaMemcpyDefault, dstream->stream);
	return quire_cuda_end(dstream, error, NULL);
}

/* On a thread of the CUDA runtime. */
static void CUDART_CB run_call(void *argument)
{
	struct cuda_call *call = argument;
	enum quire_status status = QUIRE_OK;

	/* Relaxed: who sees it waits for the store below. */
	atomic_store_explicit(&call->state, CUDA_CALL_BEGUN, memory_order_relaxed);
	if (quire_cuda_report_status(call->report) == QUIRE_OK)
		status = call->function(call->argument);
	/* An event that answers AGAIN is not done. */
	if (status == QUIRE_AGAIN)
		status = QUIRE_CALLBACK;
	if (status != QUIRE_OK) {
		call->report->what = QUIRE_CUDA_CALL;
		call->report->position = call->position;
		__atomic_store_n(&call->report->status, (uint32_t)status,
		                 __ATOMIC_RELEASE);
	}
	/* Release, with the acquire in call_state: it is used again, or freed. */
	atomic_store_explicit(&call->state, CUDA_CALL_DONE, memory_order_release);
}

/* One that is done, or a new one; NULL: no memory.  Called under the lock. */
static struct cuda_call *take_call(struct cuda_dstream *dstream)
{
	struct cuda_call *call = dstream->first;

	if (call == NULL || call_state(call) != CUDA_CALL_DONE)
		return malloc(sizeof(*call));
	dstream->first = call->next;
	return call;
}

static void put_call(struct cuda_dstream *dstream, struct cuda_call *call)
{
	if (dstream->first == NULL)
		dstream->first = call;
	else
		dstream->last->next = call;
	dstream->last = call;
}

/* Called under the lock. */
static cudaError_t queue_call(struct cuda_dstream *dstream, struct cuda_call *call)
{
	struct quire_cuda_lane lane;
	cudaError_t error = cudaLaunchHostFunc(dstream->stream, run_call, call);

	if (error != cudaSuccess) {
		free(call);
		return error;
	}
	put_call(dstream, call);
	guard(dstream);
	lane = quire_cuda_lane(dstream);
	return (cudaError_t)quire_cuda_follow(&lane, lane.report, lane.position);
}

enum quire_status quire_cuda_call(struct quire_dstream *base,
                                  enum quire_status (*function)(void *argument),
                                  void *argument)
{
	struct cuda_dstream *dstream = (struct cuda_dstream *)base;
	enum quire_status status = quire_cuda_begin(dstream, NULL);
	enum cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
	struct cuda_call *call;
	cudaError_t error;

	if (status != QUIRE_OK)
		return status;
	error = cudaStreamIsCapturing(dstream->stream, &capture);
	if (error != cudaSuccess)
		return quire_cuda_end(dstream, error, NULL);
	/* A graph would call it again after it was used for another. */
	if (capture != cudaStreamCaptureStatusNone) {
		(void)quire_cuda_end(dstream, cudaSuccess, NULL);
		return QUIRE_INVALID;
	}
	call = take_call(dstream);
	if (call == NULL) {
		(void)quire_cuda_end(dstream, cudaSuccess, NULL);
		return QUIRE_NO_MEMORY;
	}
	*call = (struct cuda_call){
		.function = function,
		.argument = argument,
		.report = dstream->track->report,
		.position = dstream->position,
	};
	return quire_cuda_end(dstream, queue_call(dstream, call), NULL);
}
