/* SPDX-License-Identifier: MIT */
/* Copies and memset. */
#include "tests/cuda_standin/standin_impl.h"

#include <stdlib.h>
#include <string.h>

struct copy {
	char *target;
	const char *source;
	size_t bytes;
	enum standin_place to;
	enum standin_place from;
	/* The source is read at the call. */
	bool staged;
};

struct copies {
	size_t n;
	struct copy copy[];
};

struct set {
	char *target;
	int value;
	size_t bytes;
};

/* Last to first: copies of a batch have no order, so none may count on one. */
static void run_copies(struct standin_op *op)
{
	const struct copies *copies = (const struct copies *)op->payload;

	for (size_t i = copies->n; i-- > 0;)
		memcpy(copies->copy[i].target, copies->copy[i].source,
		       copies->copy[i].bytes);
}

static void run_set(struct standin_op *op)
{
	const struct set *set = (const struct set *)op->payload;

	memset(set->target, set->value, set->bytes);
}

static bool is_allowed(enum standin_place place, bool device)
{
	return device == (place == STANDIN_DEVICE);
}

static cudaError_t check_copy(struct copy *copy, enum cudaMemcpyKind kind)
{
	bool to_device =
		kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
	bool from_device =
		kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;

	if ((unsigned int)kind > cudaMemcpyDefault)
		return cudaErrorInvalidMemcpyDirection;
	copy->to = standin_place(copy->target, copy->bytes);
	copy->from = standin_place(copy->source, copy->bytes);
	if (copy->to == STANDIN_OUTSIDE || copy->from == STANDIN_OUTSIDE)
		return cudaErrorInvalidValue;
	if (kind != cudaMemcpyDefault &&
	    !(is_allowed(copy->to, to_device) && is_allowed(copy->from, from_device)))
		return cudaErrorInvalidValue;
	return cudaSuccess;
}

static size_t staged_bytes(const struct copy *copy, size_t n)
{
	size_t bytes = 0;

	for (size_t i = 0; i < n; i++)
		bytes += copy[i].staged ? copy[i].bytes : 0;
	return bytes;
}

/* An operation that does the copies, with what is staged behind them. */
static struct standin_op *create_copies(const struct copy *copy, size_t n)
{
	size_t header = sizeof(struct copies) + n * sizeof(*copy);
	struct standin_op *op = standin_op_create(STANDIN_COPY, run_copies,
	                                          header + staged_bytes(copy, n));
	struct copies *copies;
	char *stage;

	if (op == NULL)
		return NULL;
	copies = (struct copies *)op->payload;
	copies->n = n;
	stage = op->payload + header;
	for (size_t i = 0; i < n; i++) {
		copies->copy[i] = copy[i];
		if (!copy[i].staged)
			continue;
		memcpy(stage, copy[i].source, copy[i].bytes);
		copies->copy[i].source = stage;
		stage += copy[i].bytes;
	}
	return op;
}

static cudaError_t push_copies(cudaStream_t stream, const struct copy *copy, size_t n)
{
	struct standin_op *op = create_copies(copy, n);

	return op == NULL ? cudaErrorMemoryAllocation : standin_push(stream, op);
}

/* How a copy's call ends. */
enum end { RETURNS, WAITS_WITHOUT_ORDER, WAITS };

static cudaError_t push_copy(cudaStream_t stream, const struct copy *copy, enum end end)
{
	struct standin_op *op = create_copies(copy, 1);
	cudaError_t error;

	if (op == NULL)
		return cudaErrorMemoryAllocation;
	standin_op_share(op);
	error = standin_push(stream, op);
	if (error == cudaSuccess && end == WAITS)
		standin_op_join(op);
	else if (error == cudaSuccess && end == WAITS_WITHOUT_ORDER)
		standin_op_await(op);
	standin_op_drop(op);
	if (error == cudaSuccess && end != RETURNS)
		error = standin_sticky();
	return error;
}

cudaError_t cudaMemcpyAsync(void *target, const void *source, size_t bytes,
                            enum cudaMemcpyKind kind, cudaStream_t handle)
{
	cudaError_t error = standin_enter(STANDIN_cudaMemcpyAsync);
	struct copy copy = {.target = target, .source = source, .bytes = bytes};
	enum end end = RETURNS;
	cudaStream_t stream;

	if (error != cudaSuccess)
		return error;
	stream = standin_stream_find(handle);
	if (stream == NULL)
		return standin_answer(cudaErrorInvalidResourceHandle);
	if (bytes == 0)
		return cudaSuccess;
	error = check_copy(&copy, kind);
	if (error != cudaSuccess)
		return standin_answer(error);
	if ((copy.to == STANDIN_PAGEABLE || copy.from == STANDIN_PAGEABLE ||
	     (copy.to != STANDIN_DEVICE && copy.from != STANDIN_DEVICE)) &&
	    standin_spoil_capture(stream))
		return standin_answer(cudaErrorStreamCaptureUnsupported);
	if (copy.to != STANDIN_DEVICE && copy.from != STANDIN_DEVICE)
		end = WAITS;
	else if (copy.to == STANDIN_PAGEABLE)
		end = WAITS_WITHOUT_ORDER;
	copy.staged = copy.from == STANDIN_PAGEABLE && copy.to == STANDIN_DEVICE;
	return standin_answer(push_copy(stream, &copy, end));
}

cudaError_t cudaMemcpy(void *target, const void *source, size_t bytes,
                       enum cudaMemcpyKind kind)
{
	cudaError_t error = standin_enter(STANDIN_cudaMemcpy);
	struct copy copy = {.target = target, .source = source, .bytes = bytes};
	enum end end = WAITS;
	cudaStream_t stream;

	if (error != cudaSuccess || bytes == 0)
		return error;
	error = check_copy(&copy, kind);
	if (error != cudaSuccess)
		return standin_answer(error);
	stream = standin_stream_find(NULL);
	if (stream == NULL)
		return standin_answer(cudaErrorMemoryAllocation);
	copy.staged = copy.from == STANDIN_PAGEABLE && copy.to == STANDIN_DEVICE;
	if (copy.staged || (copy.from == STANDIN_DEVICE && copy.to == STANDIN_DEVICE))
		end = RETURNS;
	return standin_answer(push_copy(stream, &copy, end));
}

static bool is_source_order(enum cudaMemcpySrcAccessOrder order)
{
	return order == cudaMemcpySrcAccessOrderStream ||
	       order == cudaMemcpySrcAccessOrderDuringApiCall ||
	       order == cudaMemcpySrcAccessOrderAny;
}

/* Do the attributes apply to copies from the first on, each to one or more? */
static bool are_attributes(const struct cudaMemcpyAttributes *attributes,
                           const size_t *first, size_t n, size_t num_copies)
{
	if (attributes == NULL || first == NULL || n == 0 || n > num_copies ||
	    first[0] != 0)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!is_source_order(attributes[i].srcAccessOrder) ||
		    attributes[i].flags > cudaMemcpyFlagPreferOverlapWithCompute ||
		    first[i] >= num_copies || (i > 0 && first[i] <= first[i - 1]))
			return false;
	return true;
}

static cudaError_t check_batch(struct copy *copy, size_t n,
                               const struct cudaMemcpyAttributes *attributes,
                               const size_t *first, size_t num_attributes)
{
	size_t a = 0;

	for (size_t i = 0; i < n; i++) {
		cudaError_t error = copy[i].bytes == 0
		                            ? cudaErrorInvalidValue
		                            : check_copy(&copy[i], cudaMemcpyDefault);

		if (error != cudaSuccess)
			return error;
		if (a + 1 < num_attributes && first[a + 1] == i)
			a++;
		copy[i].staged = attributes[a].srcAccessOrder ==
		                         cudaMemcpySrcAccessOrderDuringApiCall &&
		                 copy[i].from != STANDIN_DEVICE;
	}
	return cudaSuccess;
}

cudaError_t cudaMemcpyBatchAsync(void *const *targets, const void *const *sources,
                                 const size_t *sizes, size_t n,
                                 struct cudaMemcpyAttributes *attributes, size_t *first,
                                 size_t num_attributes, cudaStream_t handle)
{
	cudaError_t error = standin_enter(STANDIN_cudaMemcpyBatchAsync);
	cudaStream_t stream;
	struct copy *copy;

	if (error != cudaSuccess)
		return error;
	if (targets == NULL || sources == NULL || sizes == NULL || n == 0 ||
	    handle == NULL || handle == cudaStreamLegacy ||
	    !are_attributes(attributes, first, num_attributes, n))
		return standin_answer(cudaErrorInvalidValue);
	stream = standin_stream_find(handle);
	if (stream == NULL)
		return standin_answer(cudaErrorInvalidResourceHandle);
	if (standin_spoil_capture(stream))
		return standin_answer(cudaErrorStreamCaptureUnsupported);
	copy = calloc(n, sizeof(*copy));
	if (copy == NULL)
		return standin_answer(cudaErrorMemoryAllocation);
	for (size_t i = 0; i < n; i++)
		copy[i] = (struct copy){
			.target = targets[i], .source = sources[i], .bytes = sizes[i]};
	error = check_batch(copy, n, attributes, first, num_attributes);
	if (error == cudaSuccess)
		error = push_copies(stream, copy, n);
	free(copy);
	return standin_answer(error);
}

static cudaError_t push_set(cudaStream_t stream, const struct set *set, bool waits)
{
	struct standin_op *op = standin_op_create(STANDIN_SET, run_set, sizeof(*set));
	cudaError_t error;

	if (op == NULL)
		return cudaErrorMemoryAllocation;
	*(struct set *)op->payload = *set;
	standin_op_share(op);
	error = standin_push(stream, op);
	if (error == cudaSuccess && waits) {
		standin_op_join(op);
		error = standin_sticky();
	}
	standin_op_drop(op);
	return error;
}

/* Device memory, or pinned. */
static bool is_settable(const void *target, size_t bytes, bool *pinned_out)
{
	enum standin_place place = standin_place(target, bytes);

	*pinned_out = place == STANDIN_PINNED;
	return place == STANDIN_DEVICE || place == STANDIN_PINNED;
}

cudaError_t cudaMemsetAsync(void *target, int value, size_t bytes, cudaStream_t handle)
{
	cudaError_t error = standin_enter(STANDIN_cudaMemsetAsync);
	const struct set set = {target, value, bytes};
	cudaStream_t stream;
	bool pinned;

	if (error != cudaSuccess)
		return error;
	stream = standin_stream_find(handle);
	if (stream == NULL)
		return standin_answer(cudaErrorInvalidResourceHandle);
	if (bytes == 0)
		return cudaSuccess;
	if (!is_settable(target, bytes, &pinned))
		return standin_answer(cudaErrorInvalidValue);
	return standin_answer(push_set(stream, &set, false));
}

cudaError_t cudaMemset(void *target, int value, size_t bytes)
{
	cudaError_t error = standin_enter(STANDIN_cudaMemset);
	const struct set set = {target, value, bytes};
	cudaStream_t stream;
	bool pinned;

	if (error != cudaSuccess || bytes == 0)
		return error;
	if (!is_settable(target, bytes, &pinned))
		return standin_answer(cudaErrorInvalidValue);
	stream = standin_stream_find(NULL);
	if (stream == NULL)
		return standin_answer(cudaErrorMemoryAllocation);
	return standin_answer(push_set(stream, &set, pinned));
}
