/* SPDX-License-Identifier: MIT */
/*
 * Capture, and graphs, executable or not: operations in a chain, none of which ever runs.
 * What runs is a copy of them.
 */
#include "tests/cuda_standin/standin_impl.h"

#include <stdlib.h>
#include <string.h>

struct CUgraph_st {
	struct CUgraph_st *next;
	/* A cudaGraphExec_t, made of another one. */
	bool executable;
	struct standin_op *first;
	struct standin_op *last;
};

/* Under the lock. */
static cudaGraph_t graphs;

static cudaGraph_t *find_locked(const void *handle, bool executable)
{
	cudaGraph_t *graph = &graphs;

	while (*graph != NULL &&
	       !(*graph == handle && (*graph)->executable == executable))
		graph = &(*graph)->next;
	return graph;
}

static cudaGraph_t find(const void *handle, bool executable)
{
	cudaGraph_t graph;

	standin_lock();
	graph = *find_locked(handle, executable);
	standin_unlock();
	return graph;
}

static cudaGraph_t create_locked(bool executable)
{
	cudaGraph_t graph = calloc(1, sizeof(*graph));

	if (graph == NULL)
		return NULL;
	graph->executable = executable;
	graph->next = graphs;
	graphs = graph;
	return graph;
}

void standin_graph_take_locked(cudaGraph_t graph, struct standin_op *chain)
{
	struct standin_op *op = chain;

	if (graph->first == NULL)
		graph->first = op;
	else
		graph->last->next = op;
	while (op->next != NULL)
		op = op->next;
	graph->last = op;
}

static bool end_locked(const void *handle, bool executable)
{
	cudaGraph_t *place = find_locked(handle, executable);
	cudaGraph_t graph = *place;

	if (graph == NULL)
		return false;
	*place = graph->next;
	standin_op_drop_chain_locked(graph->first);
	free(graph);
	return true;
}

void standin_graph_drop_locked(cudaGraph_t graph)
{
	(void)end_locked(graph, false);
}

int standin_count_graphs(void)
{
	int count = 0;

	for (cudaGraph_t graph = graphs; graph != NULL; graph = graph->next)
		count++;
	return count;
}

void standin_end_graphs(void)
{
	standin_lock();
	while (graphs != NULL)
		(void)end_locked(graphs, graphs->executable);
	standin_unlock();
}

/* The operations from one on, once more; false: no memory. */
static bool copy_chain(const struct standin_op *op, struct standin_op **copy_out)
{
	struct standin_op **end = copy_out;

	*copy_out = NULL;
	for (; op != NULL; op = op->next) {
		*end = standin_op_create(op->work, op->run, op->payload_bytes);
		if (*end == NULL) {
			standin_lock();
			standin_op_drop_chain_locked(*copy_out);
			standin_unlock();
			return false;
		}
		memcpy((*end)->payload, op->payload, op->payload_bytes);
		end = &(*end)->next;
	}
	return true;
}

/* ------------------------------------------------------------------ capture */

static cudaError_t begin_locked(cudaStream_t stream)
{
	if (stream->graph != NULL)
		return cudaErrorIllegalState;
	stream->graph = create_locked(false);
	return stream->graph == NULL ? cudaErrorMemoryAllocation : cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, enum cudaStreamCaptureMode mode)
{
	cudaError_t error = standin_enter(STANDIN_cudaStreamBeginCapture);
	cudaStream_t stream;

	if (error != cudaSuccess)
		return error;
	if ((unsigned int)mode > cudaStreamCaptureModeRelaxed)
		return standin_answer(cudaErrorInvalidValue);
	stream = standin_stream_find(handle);
	if (stream == NULL)
		return standin_answer(cudaErrorInvalidResourceHandle);
	if (stream->blocking)
		return standin_answer(cudaErrorStreamCaptureUnsupported);
	standin_lock();
	error = begin_locked(stream);
	standin_unlock();
	return standin_answer(error);
}

/* The graph is the caller's if the answer is cudaSuccess. */
static cudaError_t end_capture_locked(cudaStream_t stream, cudaGraph_t *graph_out)
{
	bool spoiled = stream->spoiled;

	if (stream->graph == NULL)
		return cudaErrorIllegalState;
	*graph_out = stream->graph;
	stream->graph = NULL;
	stream->spoiled = false;
	return spoiled ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t *graph_out)
{
	cudaError_t error = standin_admit(STANDIN_cudaStreamEndCapture);
	cudaGraph_t graph = NULL;
	cudaStream_t stream;

	if (error != cudaSuccess)
		return error;
	stream = standin_stream_find(handle);
	if (stream == NULL || graph_out == NULL)
		return standin_leave(STANDIN_cudaStreamEndCapture,
		                     stream == NULL ? cudaErrorInvalidResourceHandle
		                                    : cudaErrorInvalidValue);
	standin_lock();
	error = end_capture_locked(stream, &graph);
	standin_unlock();
	error = standin_leave(STANDIN_cudaStreamEndCapture, error);
	if (error != cudaSuccess) {
		standin_lock();
		standin_graph_drop_locked(graph);
		standin_unlock();
		graph = NULL;
	}
	*graph_out = graph;
	return error;
}

static cudaError_t answer_capture(cudaStream_t handle,
                                  enum cudaStreamCaptureStatus *status_out)
{
	cudaStream_t stream;

	if (status_out == NULL)
		return cudaErrorInvalidValue;
	stream = standin_stream_find(handle);
	if (stream == NULL)
		return cudaErrorInvalidResourceHandle;
	standin_lock();
	*status_out = stream->graph == NULL ? cudaStreamCaptureStatusNone
	              : stream->spoiled     ? cudaStreamCaptureStatusInvalidated
	                                    : cudaStreamCaptureStatusActive;
	standin_unlock();
	return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle,
                                  enum cudaStreamCaptureStatus *status_out)
{
	cudaError_t error = standin_enter(STANDIN_cudaStreamIsCapturing);

	if (error != cudaSuccess)
		return error;
	return standin_answer(answer_capture(handle, status_out));
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle,
                                     enum cudaStreamCaptureStatus *status_out,
                                     unsigned long long *id_out, cudaGraph_t *graph_out,
                                     const cudaGraphNode_t **dependencies_out,
                                     const cudaGraphEdgeData **edges_out,
                                     size_t *num_dependencies_out)
{
	cudaError_t error = standin_enter(STANDIN_cudaStreamGetCaptureInfo);

	if (error != cudaSuccess)
		return error;
	/* What they would be filled with is not modelled. */
	if (id_out != NULL || graph_out != NULL || dependencies_out != NULL ||
	    edges_out != NULL || num_dependencies_out != NULL)
		return standin_answer(cudaErrorNotSupported);
	return standin_answer(answer_capture(handle, status_out));
}

/* ------------------------------------------------------------------ graphs */

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec_out, cudaGraph_t handle,
                                 unsigned long long flags)
{
	cudaError_t error = standin_enter(STANDIN_cudaGraphInstantiate);
	struct standin_op *chain;
	cudaGraph_t graph, exec;

	if (error != cudaSuccess)
		return error;
	graph = find(handle, false);
	if (graph == NULL || exec_out == NULL || flags != 0)
		return standin_answer(cudaErrorInvalidValue);
	if (!copy_chain(graph->first, &chain))
		return standin_answer(cudaErrorMemoryAllocation);
	standin_lock();
	exec = create_locked(true);
	if (exec != NULL)
		exec->first = chain;
	else
		standin_op_drop_chain_locked(chain);
	standin_unlock();
	if (exec == NULL)
		return standin_answer(cudaErrorMemoryAllocation);
	*exec_out = (cudaGraphExec_t)exec;
	return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t handle, cudaStream_t stream_handle)
{
	cudaError_t error = standin_enter(STANDIN_cudaGraphLaunch);
	struct standin_op *chain;
	cudaStream_t stream;
	cudaGraph_t exec;

	if (error != cudaSuccess)
		return error;
	exec = find(handle, true);
	if (exec == NULL)
		return standin_answer(cudaErrorInvalidValue);
	stream = standin_stream_find(stream_handle);
	if (stream == NULL)
		return standin_answer(cudaErrorInvalidResourceHandle);
	if (!copy_chain(exec->first, &chain))
		return standin_answer(cudaErrorMemoryAllocation);
	return standin_answer(chain == NULL ? cudaSuccess : standin_push(stream, chain));
}

static cudaError_t destroy(const void *handle, bool executable)
{
	bool found;

	standin_lock();
	found = end_locked(handle, executable);
	standin_unlock();
	return found ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaGraphDestroy(cudaGraph_t handle)
{
	cudaError_t error = standin_admit(STANDIN_cudaGraphDestroy);

	if (error != cudaSuccess)
		return error;
	return standin_leave(STANDIN_cudaGraphDestroy, destroy(handle, false));
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t handle)
{
	cudaError_t error = standin_admit(STANDIN_cudaGraphExecDestroy);

	if (error != cudaSuccess)
		return error;
	return standin_leave(STANDIN_cudaGraphExecDestroy, destroy(handle, true));
}
