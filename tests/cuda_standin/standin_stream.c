/* SPDX-License-Identifier: MIT */
/*
 * Streams and their operations.  A stream, once made, stays in the list until the reset,
 * so that its newest operation can be waited for when it is destroyed.
 */
#include "tests/cuda_standin/standin_impl.h"

#include <stdlib.h>

struct host_call {
	cudaHostFn_t function;
	void *argument;
};

/* Under the lock. */
static cudaStream_t streams;
static uint64_t num_made;

static void append_locked(cudaStream_t stream, struct standin_op *op)
{
	if (stream->first == NULL)
		stream->first = op;
	else
		stream->last->next = op;
	stream->last = op;
	standin_op_drop_locked(stream->newest);
	stream->newest = op;
	op->users++;
	pthread_cond_signal(&stream->work);
}

static void run_join(struct standin_op *op)
{
	struct standin_op *joined = *(struct standin_op **)op->payload;

	standin_op_join(joined);
	standin_op_drop(joined);
}

static cudaError_t append_join_locked(cudaStream_t stream, struct standin_op *joined)
{
	struct standin_op *op = standin_op_create_locked(STANDIN_ORDER, run_join,
	                                                 sizeof(struct standin_op *));

	if (op == NULL)
		return cudaErrorMemoryAllocation;
	*(struct standin_op **)op->payload = joined;
	joined->users++;
	append_locked(stream, op);
	return cudaSuccess;
}

/* Called under the lock: the stream goes on behind all that another has queued. */
static cudaError_t follow_locked(cudaStream_t stream, cudaStream_t other)
{
	if (other == stream || other->newest == NULL || other->device != stream->device)
		return cudaSuccess;
	return append_join_locked(stream, other->newest);
}

/* Called under the lock: the default stream waits for the blocking ones, they for it. */
static cudaError_t follow_default_locked(cudaStream_t stream)
{
	cudaError_t error = cudaSuccess;

	for (cudaStream_t other = streams; other != NULL && error == cudaSuccess;
	     other = other->next)
		if (stream->blocking && other->blocking &&
		    (stream->is_default || other->is_default))
			error = follow_locked(stream, other);
	return error;
}

/* Called under the lock: the chain goes to the graph of a stream that captures. */
static cudaError_t push_locked(cudaStream_t stream, struct standin_op *chain)
{
	cudaError_t error = stream->spoiled ? cudaErrorStreamCaptureInvalidated
	                                    : follow_default_locked(stream);

	if (error != cudaSuccess) {
		standin_op_drop_chain_locked(chain);
		return error;
	}
	if (stream->graph != NULL) {
		standin_graph_take_locked(stream->graph, chain);
		return cudaSuccess;
	}
	while (chain != NULL) {
		struct standin_op *op = chain;

		chain = op->next;
		op->next = NULL;
		append_locked(stream, op);
	}
	return cudaSuccess;
}

cudaError_t standin_push(cudaStream_t stream, struct standin_op *chain)
{
	cudaError_t error;

	for (struct standin_op *op = chain; op != NULL; op = op->next)
		standin_edge_release(&op->ready);
	standin_lock();
	error = push_locked(stream, chain);
	standin_unlock();
	return error;
}

cudaError_t standin_push_join(cudaStream_t stream, struct standin_op *joined)
{
	cudaError_t error;

	standin_lock();
	error = follow_default_locked(stream);
	if (error == cudaSuccess)
		error = append_join_locked(stream, joined);
	standin_unlock();
	return error;
}

bool standin_spoil_capture(cudaStream_t only)
{
	bool spoils = false;

	standin_lock();
	for (cudaStream_t stream = streams; stream != NULL; stream = stream->next)
		if (stream->graph != NULL && (only == NULL || stream == only)) {
			stream->spoiled = true;
			spoils = true;
		}
	standin_unlock();
	return spoils;
}

static void free_stream(cudaStream_t stream)
{
	pthread_cond_destroy(&stream->work);
	free(stream);
}

static void close_locked(cudaStream_t stream)
{
	stream->closed = true;
	standin_graph_drop_locked(stream->graph);
	stream->graph = NULL;
	pthread_cond_signal(&stream->work);
}

static cudaStream_t create_stream_locked(bool is_default, bool blocking)
{
	cudaStream_t stream = calloc(1, sizeof(*stream));

	if (stream == NULL)
		return NULL;
	stream->device = standin_device();
	stream->is_default = is_default;
	stream->blocking = blocking;
	stream->random = ++num_made * UINT64_C(0x9e3779b97f4a7c15);
	pthread_cond_init(&stream->work, NULL);
	if (!standin_thread_start_locked(stream)) {
		free_stream(stream);
		return NULL;
	}
	stream->next = streams;
	streams = stream;
	return stream;
}

cudaStream_t standin_stream_find(cudaStream_t handle)
{
	bool is_default = handle == NULL || handle == cudaStreamLegacy;
	cudaStream_t stream;

	standin_lock();
	stream = streams;
	while (stream != NULL &&
	       !(is_default ? stream->is_default && stream->device == standin_device()
	                    : stream == handle && !stream->closed && !stream->is_default))
		stream = stream->next;
	if (stream == NULL && is_default)
		stream = create_stream_locked(true, true);
	standin_unlock();
	return stream;
}

/* A reference to the newest operation; NULL: there never was one. */
static struct standin_op *newest_of(cudaStream_t stream)
{
	struct standin_op *op;

	standin_lock();
	op = stream->newest;
	if (op != NULL)
		op->users++;
	standin_unlock();
	return op;
}

/* The next stream of a device, destroyed or not; behind NULL comes the first. */
static cudaStream_t stream_after(cudaStream_t stream, int device)
{
	standin_lock();
	do
		stream = stream == NULL ? streams : stream->next;
	while (stream != NULL && stream->device != device);
	standin_unlock();
	return stream;
}

static void join_stream(cudaStream_t stream)
{
	struct standin_op *op = newest_of(stream);

	if (op == NULL)
		return;
	standin_op_join(op);
	standin_op_drop(op);
}

void standin_join_device(int device)
{
	cudaStream_t stream = NULL;

	while ((stream = stream_after(stream, device)) != NULL)
		join_stream(stream);
}

int standin_count_streams(void)
{
	int count = 0;

	for (cudaStream_t stream = streams; stream != NULL; stream = stream->next)
		count += !stream->closed && !stream->is_default;
	return count;
}

void standin_end_streams(void)
{
	standin_lock();
	for (cudaStream_t stream = streams; stream != NULL; stream = stream->next)
		close_locked(stream);
	standin_threads_end_locked();
	while (streams != NULL) {
		cudaStream_t stream = streams;

		streams = stream->next;
		standin_op_drop_locked(stream->newest);
		free_stream(stream);
	}
	standin_unlock();
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream_out, unsigned int flags,
                                         int priority)
{
	cudaError_t error = standin_enter(STANDIN_cudaStreamCreateWithPriority);
	cudaStream_t stream;

	/* Out of range is the nearest in it; threads have none. */
	(void)priority;
	if (error != cudaSuccess)
		return error;
	if (stream_out == NULL || (flags & ~(unsigned int)cudaStreamNonBlocking) != 0)
		return standin_answer(cudaErrorInvalidValue);
	standin_lock();
	stream = create_stream_locked(false, flags != cudaStreamNonBlocking);
	standin_unlock();
	if (stream == NULL)
		return standin_answer(cudaErrorMemoryAllocation);
	*stream_out = stream;
	return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t handle)
{
	cudaError_t error = standin_admit(STANDIN_cudaStreamDestroy);
	cudaStream_t stream;

	if (error != cudaSuccess)
		return error;
	stream = standin_stream_find(handle);
	if (stream == NULL || stream->is_default)
		return standin_leave(STANDIN_cudaStreamDestroy,
		                     cudaErrorInvalidResourceHandle);
	standin_lock();
	close_locked(stream);
	standin_unlock();
	return standin_leave(STANDIN_cudaStreamDestroy, cudaSuccess);
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle)
{
	cudaError_t error = standin_enter(STANDIN_cudaStreamSynchronize);
	cudaStream_t stream;

	if (error != cudaSuccess)
		return error;
	stream = standin_stream_find(handle);
	if (stream == NULL)
		return standin_answer(cudaErrorInvalidResourceHandle);
	if (standin_spoil_capture(stream))
		return standin_answer(cudaErrorStreamCaptureUnsupported);
	join_stream(stream);
	return standin_answer(standin_sticky());
}

cudaError_t cudaStreamQuery(cudaStream_t handle)
{
	cudaError_t error = standin_enter(STANDIN_cudaStreamQuery);
	cudaStream_t stream;
	struct standin_op *op;
	bool done;

	if (error != cudaSuccess)
		return error;
	stream = standin_stream_find(handle);
	if (stream == NULL)
		return standin_answer(cudaErrorInvalidResourceHandle);
	if (standin_spoil_capture(stream))
		return standin_answer(cudaErrorStreamCaptureUnsupported);
	op = newest_of(stream);
	done = op == NULL || standin_op_query(op);
	standin_op_drop(op);
	return standin_answer(done ? standin_sticky() : cudaErrorNotReady);
}

static void run_host_function(struct standin_op *op)
{
	const struct host_call *call = (const struct host_call *)op->payload;

	standin_host_function(true);
	call->function(call->argument);
	standin_host_function(false);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void *argument)
{
	cudaError_t error = standin_enter(STANDIN_cudaLaunchHostFunc);
	cudaStream_t stream;
	struct standin_op *op;

	if (error != cudaSuccess)
		return error;
	stream = standin_stream_find(handle);
	if (stream == NULL)
		return standin_answer(cudaErrorInvalidResourceHandle);
	if (function == NULL)
		return standin_answer(cudaErrorInvalidValue);
	op = standin_op_create(STANDIN_HOST_FUNCTION, run_host_function,
	                       sizeof(struct host_call));
	if (op == NULL)
		return standin_answer(cudaErrorMemoryAllocation);
	*(struct host_call *)op->payload = (struct host_call){function, argument};
	return standin_answer(standin_push(stream, op));
}
