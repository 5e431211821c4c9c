/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_TESTS_KERNELS_STANDIN_CUDA_RUNTIME_H
#define QUIRE_TESTS_KERNELS_STANDIN_CUDA_RUNTIME_H
/*
 * What kernels/move.cu needs of the CUDA runtime, for a plain C++ compiler: the threads
 * of a grid run one after the other.
 */
#include <stddef.h>

#define __global__
#define __device__
#define __host__

struct alignas(16) uint4 {
	unsigned x, y, z, w;
};

struct dim3 {
	unsigned x = 1, y = 1, z = 1;
};

/* Of the thread that runs. */
static dim3 threadIdx;
static dim3 blockIdx;
static dim3 blockDim;
static dim3 gridDim;

typedef int cudaError_t;
typedef struct standin_stream *cudaStream_t;

static const cudaError_t cudaSuccess = 0;
static const cudaError_t cudaErrorInvalidConfiguration = 9;

/* Defined behind the kernels, whose argument it knows. */
static cudaError_t cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block,
                                    void **arguments, size_t shared_bytes,
                                    cudaStream_t stream);

#endif
