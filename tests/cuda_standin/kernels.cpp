/* SPDX-License-Identifier: MIT */
/* The kernels as C++, known to the stand-in: all take one struct. */
#include <cuda_runtime.h>

#include "tests/cuda_standin/standin.h"

#include "kernels/move.cu"
#include "kernels/pages.cu"

static void call(const void *function, const void *argument)
{
	((move_kernel)function)(*(const struct quire_cuda_move *)argument);
}

__attribute__((constructor)) static void register_kernels()
{
	standin_register(NULL, sizeof(struct quire_cuda_move), call);
}
