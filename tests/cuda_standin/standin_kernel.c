/* SPDX-License-Identifier: MIT */
/* Kernels: functions of one struct, known by standin_register. */
#include "tests/cuda_standin/standin_impl.h"

#include <cuda_runtime.h>

#include <string.h>

#define KERNELS_MAX      64
#define BLOCK_MAX        1024
#define BLOCK_Z_MAX      64
#define GRID_X_MAX       0x7fffffff
#define GRID_YZ_MAX      65535
#define SHARED_BYTES_MAX ((size_t)48 << 10)

struct kernel {
	const void *function;
	size_t argument_bytes;
	standin_caller caller;
};

struct launch {
	const void *function;
	standin_caller caller;
	uint3 grid;
	uint3 block;
	_Alignas(16) char argument[];
};

/* Under the lock. */
static struct kernel kernels[KERNELS_MAX];
static int num_kernels;

__thread uint3 threadIdx;
__thread uint3 blockIdx;
__thread uint3 blockDim;
__thread uint3 gridDim;

/* Called under the lock. */
static struct kernel *find_kernel(const void *function)
{
	for (int i = 0; i < num_kernels; i++)
		if (kernels[i].function == function)
			return &kernels[i];
	return NULL;
}

void standin_register(const void *function, size_t argument_bytes, standin_caller caller)
{
	struct kernel *kernel;

	standin_lock();
	kernel = find_kernel(function);
	if (kernel == NULL && num_kernels < KERNELS_MAX)
		kernel = &kernels[num_kernels++];
	if (kernel != NULL)
		*kernel = (struct kernel){function, argument_bytes, caller};
	standin_unlock();
}

static bool look_up(const void *function, struct kernel *kernel_out)
{
	const struct kernel *kernel;

	standin_lock();
	kernel = find_kernel(function);
	if (kernel == NULL && function != NULL)
		kernel = find_kernel(NULL);
	if (kernel != NULL)
		*kernel_out = *kernel;
	standin_unlock();
	return kernel != NULL && function != NULL;
}

static void run_block(const struct launch *launch)
{
	for (threadIdx.z = 0; threadIdx.z < blockDim.z; threadIdx.z++)
		for (threadIdx.y = 0; threadIdx.y < blockDim.y; threadIdx.y++)
			for (threadIdx.x = 0; threadIdx.x < blockDim.x; threadIdx.x++)
				launch->caller(launch->function, launch->argument);
}

static void run_kernel(struct standin_op *op)
{
	const struct launch *launch = (const struct launch *)op->payload;

	gridDim = launch->grid;
	blockDim = launch->block;
	for (blockIdx.z = 0; blockIdx.z < gridDim.z; blockIdx.z++)
		for (blockIdx.y = 0; blockIdx.y < gridDim.y; blockIdx.y++)
			for (blockIdx.x = 0; blockIdx.x < gridDim.x; blockIdx.x++)
				run_block(launch);
}

static bool is_launchable(dim3 grid, dim3 block)
{
	return grid.x - 1 < GRID_X_MAX && grid.y - 1 < GRID_YZ_MAX &&
	       grid.z - 1 < GRID_YZ_MAX && block.x - 1 < BLOCK_MAX &&
	       block.y - 1 < BLOCK_MAX && block.z - 1 < BLOCK_Z_MAX &&
	       block.x * block.y * block.z <= BLOCK_MAX;
}

static cudaError_t push_launch(cudaStream_t stream, const struct launch *launch,
                               const void *argument, size_t argument_bytes)
{
	struct standin_op *op = standin_op_create(STANDIN_KERNEL, run_kernel,
	                                          sizeof(*launch) + argument_bytes);

	if (op == NULL)
		return cudaErrorMemoryAllocation;
	memcpy(op->payload, launch, sizeof(*launch));
	memcpy(((struct launch *)op->payload)->argument, argument, argument_bytes);
	return standin_push(stream, op);
}

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block,
                             void **arguments, size_t shared_bytes, cudaStream_t handle)
{
	cudaError_t error = standin_enter(STANDIN_cudaLaunchKernel);
	struct kernel kernel;
	cudaStream_t stream;

	if (error != cudaSuccess)
		return error;
	if (!look_up(function, &kernel))
		return standin_answer(cudaErrorInvalidDeviceFunction);
	if (!is_launchable(grid, block))
		return standin_answer(cudaErrorInvalidConfiguration);
	if (arguments == NULL || shared_bytes > SHARED_BYTES_MAX)
		return standin_answer(cudaErrorInvalidValue);
	stream = standin_stream_find(handle);
	if (stream == NULL || stream->device != standin_device())
		return standin_answer(cudaErrorInvalidResourceHandle);
	return standin_answer(
		push_launch(stream,
	                    &(struct launch){.function = function,
	                                     .caller = kernel.caller,
	                                     .grid = {grid.x, grid.y, grid.z},
	                                     .block = {block.x, block.y, block.z}},
	                    arguments[0], kernel.argument_bytes));
}
