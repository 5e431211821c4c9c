/* SPDX-License-Identifier: MIT */
/* kernels/move.cu as C++, launched on a grid whose threads run one after the other. */
#include <cuda_runtime.h>

#include "kernels/move.cu"

static bool is_launchable(const dim3 &grid, const dim3 &block)
{
	unsigned threads = block.x * block.y * block.z;

	return threads >= 1 && threads <= 1024 && grid.x >= 1 && grid.x <= 0x7fffffff &&
	       grid.y >= 1 && grid.y <= 65535 && grid.z == 1;
}

static void run_block(move_kernel kernel, const struct quire_cuda_move *move)
{
	for (threadIdx.y = 0; threadIdx.y < blockDim.y; threadIdx.y++)
		for (threadIdx.x = 0; threadIdx.x < blockDim.x; threadIdx.x++)
			kernel(*move);
}

static cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block,
                                    void **arguments, size_t, cudaStream_t)
{
	move_kernel kernel = (move_kernel)function;
	const struct quire_cuda_move *move = (const struct quire_cuda_move *)arguments[0];

	if (!is_launchable(grid, block))
		return cudaErrorInvalidConfiguration;
	gridDim = grid;
	blockDim = block;
	for (blockIdx.y = 0; blockIdx.y < grid.y; blockIdx.y++)
		for (blockIdx.x = 0; blockIdx.x < grid.x; blockIdx.x++)
			run_block(kernel, move);
	return cudaSuccess;
}
