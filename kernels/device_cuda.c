/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "kernels/device_cuda_impl.h"
#include "runtime/refuse_impl.h"

#include <stdlib.h>
#include <string.h>

cudaError_t quire_cuda_enter(const struct cuda_device *device, int *previous_out)
{
	cudaError_t error = cudaGetDevice(previous_out);

	if (error == cudaSuccess && *previous_out != device->ordinal)
		error = cudaSetDevice(device->ordinal);
	return error;
}

void quire_cuda_leave(const struct cuda_device *device, int previous)
{
	if (previous != device->ordinal)
		(void)cudaSetDevice(previous);
}

enum quire_status quire_cuda_refuse(cudaError_t error, struct quire_refusal *refusal_out)
{
	if (error == cudaSuccess)
		return QUIRE_OK;
	(void)cudaGetLastError();
	switch (error) {
	case cudaErrorMemoryAllocation:
		return quire_refuse_what(refusal_out, QUIRE_NO_MEMORY,
		                         "memory of the CUDA device, or pinned memory");
	case cudaErrorInsufficientDriver:
		return quire_refuse_what(refusal_out, QUIRE_DEVICE,
		                         "the NVIDIA driver is too old for this program");
	case cudaErrorStubLibrary:
		return quire_refuse_what(refusal_out, QUIRE_DEVICE,
		                         "the CUDA driver found is a stub library");
	case cudaErrorNoDevice:
		return quire_refuse_what(refusal_out, QUIRE_DEVICE,
		                         "no CUDA device here");
	case cudaErrorNoKernelImageForDevice:
	case cudaErrorUnsupportedPtxVersion:
		return quire_refuse_what(refusal_out, QUIRE_DEVICE,
		                         "no kernels were built for this CUDA device");
	default:
		/* A text of the runtime's that stays. */
		return quire_refuse_what(refusal_out, QUIRE_DEVICE,
		                         cudaGetErrorString(error));
	}
}

/* ------------------------------------------------------------------ memory */

static cudaError_t alloc_zeroed(const struct cuda_device *device, size_t bytes,
                                void **memory_out)
{
	cudaError_t error = cudaMalloc(memory_out, bytes);

	if (error != cudaSuccess)
		return error;
	error = cudaMemsetAsync(*memory_out, 0, bytes, device->stream);
	if (error == cudaSuccess)
		error = cudaStreamSynchronize(device->stream);
	if (error != cudaSuccess)
		(void)cudaFree(*memory_out);
	return error;
}

static enum quire_status cuda_alloc(struct quire_device *base, int64_t bytes,
                                    void **memory_out)
{
	const struct cuda_device *device = (struct cuda_device *)base;
	void *memory;
	int previous;
	cudaError_t error = quire_cuda_enter(device, &previous);

	if (error != cudaSuccess)
		return quire_cuda_refuse(error, NULL);
	error = alloc_zeroed(device, (size_t)bytes, &memory);
	quire_cuda_leave(device, previous);
	if (error == cudaSuccess)
		*memory_out = memory;
	return quire_cuda_refuse(error, NULL);
}

static void cuda_release(struct quire_device *device, void *memory, int64_t bytes)
{
	(void)device;
	(void)bytes;
	(void)quire_cuda_refuse(cudaFree(memory), NULL);
}

static enum quire_status cuda_alloc_pinned(struct quire_device *base, int64_t bytes,
                                           void **memory_out)
{
	const struct cuda_device *device = (struct cuda_device *)base;
	void *memory;
	int previous;
	cudaError_t error = quire_cuda_enter(device, &previous);

	if (error != cudaSuccess)
		return quire_cuda_refuse(error, NULL);
	error = cudaHostAlloc(&memory, (size_t)bytes,
	                      cudaHostAllocPortable | cudaHostAllocMapped);
	quire_cuda_leave(device, previous);
	if (error != cudaSuccess)
		return quire_cuda_refuse(error, NULL);
	memset(memory, 0, (size_t)bytes);
	*memory_out = memory;
	return QUIRE_OK;
}

static void cuda_release_pinned(struct quire_device *device, void *memory, int64_t bytes)
{
	(void)device;
	(void)bytes;
	(void)quire_cuda_refuse(cudaFreeHost(memory), NULL);
}

static void cuda_destroy(struct quire_device *base)
{
	struct cuda_device *device = (struct cuda_device *)base;

	(void)quire_cuda_refuse(cudaStreamDestroy(device->stream), NULL);
	free(device);
}

/* -1: not entered, so that there is nothing to leave. */
static int cuda_enter(struct quire_device *device)
{
	int previous;
	cudaError_t error = quire_cuda_enter((struct cuda_device *)device, &previous);

	return quire_cuda_refuse(error, NULL) == QUIRE_OK ? previous : -1;
}

static void cuda_leave(struct quire_device *device, int previous)
{
	if (previous >= 0)
		quire_cuda_leave((struct cuda_device *)device, previous);
}

static const struct quire_device_ops cuda_ops = {
	.destroy = cuda_destroy,
	.enter = cuda_enter,
	.leave = cuda_leave,
	.alloc = cuda_alloc,
	.release = cuda_release,
	.alloc_pinned = cuda_alloc_pinned,
	.release_pinned = cuda_release_pinned,
	.dstream_create = quire_cuda_dstream_create,
	.dstream_destroy = quire_cuda_dstream_destroy,
	.dstream_native = quire_cuda_dstream_native,
	.synchronize = quire_cuda_synchronize,
	.wait_event = quire_cuda_wait_event,
	.copy = quire_cuda_copy,
	.call = quire_cuda_call,
	.event_create = quire_cuda_event_create,
	.event_destroy = quire_cuda_event_destroy,
	.event_record = quire_cuda_event_record,
	.event_query = quire_cuda_event_query,
	.event_synchronize = quire_cuda_event_synchronize,
	.event_elapsed = quire_cuda_event_elapsed,
	.event_notify = quire_cuda_event_notify,
	.write_tokens = quire_cuda_move_write,
	.read_tokens = quire_cuda_move_read,
	.copy_pages = quire_cuda_move_pages,
};

/* ------------------------------------------------------------------ create */

/* "", ":N", "+checks", ":N+checks"; false: neither. */
static bool parse(const char *name, struct cuda_device *device)
{
	if (*name == ':') {
		name++;
		if (*name < '0' || *name > '9')
			return false;
		/* device.c bounds the length; beyond 9 digits there is no device. */
		for (int digits = 0; *name >= '0' && *name <= '9'; name++, digits++) {
			if (digits == 9)
				return false;
			device->ordinal = device->ordinal * 10 + (*name - '0');
		}
	}
	device->checks = strcmp(name, "+checks") == 0;
	return device->checks || *name == '\0';
}

/* Is there a driver, and the device? */
static enum quire_status find(const struct cuda_device *device,
                              struct quire_refusal *refusal_out)
{
	int version = 0;
	int count = 0;
	cudaError_t error = cudaDriverGetVersion(&version);

	if (error == cudaSuccess)
		error = cudaGetDeviceCount(&count);
	/* A stub of the driver has no version either, but is another error. */
	if (error == cudaErrorInsufficientDriver && version == 0) {
		(void)cudaGetLastError();
		return quire_refuse_what(refusal_out, QUIRE_DEVICE,
		                         "no NVIDIA driver here");
	}
	if (error == cudaSuccess && count == 0)
		error = cudaErrorNoDevice;
	if (error != cudaSuccess)
		return quire_cuda_refuse(error, refusal_out);
	if (device->ordinal >= count)
		return quire_refuse_bound(refusal_out, QUIRE_INVALID,
		                          "device: number of a CUDA device", -1,
		                          device->ordinal, count - 1);
	return QUIRE_OK;
}

/* Its stream; and one kernel, which shows whether any will run. */
static cudaError_t start(struct cuda_device *device)
{
	struct quire_cuda_lane lane = {.stream = NULL};
	int *priority = device->priority;
	cudaError_t error = cudaDeviceGetStreamPriorityRange(
		&priority[QUIRE_PRIORITY_NORMAL], &priority[QUIRE_PRIORITY_HIGH]);

	if (error != cudaSuccess)
		return error;
	error = cudaStreamCreateWithPriority(&device->stream, cudaStreamNonBlocking,
	                                     priority[QUIRE_PRIORITY_NORMAL]);
	if (error != cudaSuccess)
		return error;
	lane.stream = device->stream;
	error = (cudaError_t)quire_cuda_follow(&lane, NULL, 0);
	if (error == cudaSuccess)
		error = cudaStreamSynchronize(device->stream);
	if (error != cudaSuccess)
		(void)cudaStreamDestroy(device->stream);
	return error;
}

enum quire_status quire_device_create_cuda(const char *rest,
                                           struct quire_device **device_out,
                                           struct quire_refusal *refusal_out)
{
	struct cuda_device *device = calloc(1, sizeof(*device));
	enum quire_status status;
	cudaError_t error;
	int previous;

	if (device == NULL)
		return quire_refuse_what(refusal_out, QUIRE_NO_MEMORY, "device");
	if (!parse(rest, device)) {
		status = quire_refuse_what(refusal_out, QUIRE_INVALID,
		                           QUIRE_NO_SUCH_DEVICE);
		goto undo_device;
	}
	status = find(device, refusal_out);
	if (status != QUIRE_OK)
		goto undo_device;
	error = quire_cuda_enter(device, &previous);
	if (error == cudaSuccess) {
		error = start(device);
		quire_cuda_leave(device, previous);
	}
	status = quire_cuda_refuse(error, refusal_out);
	if (status != QUIRE_OK)
		goto undo_device;
	device->base.ops = &cuda_ops;
	device->base.dlpack_type = kDLCUDA;
	device->base.dlpack_id = device->ordinal;
	*device_out = &device->base;
	return QUIRE_OK;

undo_device:
	free(device);
	return status;
}
