/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_TESTS_CUDA_STANDIN_CUDA_RUNTIME_H
#define QUIRE_TESTS_CUDA_STANDIN_CUDA_RUNTIME_H
/*
 * The stand-in's cuda_runtime.h: what kernels need on top of the runtime's calls, for a
 * plain compiler.  A kernel is a function; its grid's threads run one after the other, so
 * there is no __syncthreads.
 */
#include <cuda_runtime_api.h>

#define __global__
#define __device__
#define __host__

#ifdef __cplusplus
extern "C" {
#endif

/* Of the kernel's thread that runs; streams, threads of the host, have their own. */
extern __thread uint3 threadIdx;
extern __thread uint3 blockIdx;
extern __thread uint3 blockDim;
extern __thread uint3 gridDim;

#ifdef __cplusplus
}

struct alignas(8) uint2 {
	unsigned int x, y;
};

struct alignas(16) uint4 {
	unsigned int x, y, z, w;
};

/* Relaxed, as a device's are. */
#define STANDIN_ATOMICS(Type)                                                            \
	static inline Type atomicAdd(Type *address, Type value)                          \
	{                                                                                \
		return __atomic_fetch_add(address, value, __ATOMIC_RELAXED);             \
	}                                                                                \
	static inline Type atomicExch(Type *address, Type value)                         \
	{                                                                                \
		return __atomic_exchange_n(address, value, __ATOMIC_RELAXED);            \
	}                                                                                \
	static inline Type atomicCAS(Type *address, Type compare, Type value)            \
	{                                                                                \
		__atomic_compare_exchange_n(address, &compare, value, false,             \
		                            __ATOMIC_RELAXED, __ATOMIC_RELAXED);         \
		return compare;                                                          \
	}                                                                                \
	static inline Type atomicMax(Type *address, Type value)                          \
	{                                                                                \
		Type old = __atomic_load_n(address, __ATOMIC_RELAXED);                   \
                                                                                         \
		while (old < value &&                                                    \
		       !__atomic_compare_exchange_n(address, &old, value, false,         \
		                                    __ATOMIC_RELAXED, __ATOMIC_RELAXED)) \
			;                                                                \
		return old;                                                              \
	}
STANDIN_ATOMICS(int)
STANDIN_ATOMICS(unsigned int)
STANDIN_ATOMICS(unsigned long long)
#undef STANDIN_ATOMICS

static inline void __threadfence()
{
	__sync_synchronize();
}

static inline void __threadfence_system()
{
	__sync_synchronize();
}
#endif

#endif
