/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_KERNELS_DTYPE_H
#define QUIRE_KERNELS_DTYPE_H
/*
 * Element types of a cache: names, sizes.
 */
#include <quire/runtime/status.h>

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Marks the inline arithmetic that the CPU and CUDA kernels share. */
#ifdef __CUDACC__
#define QUIRE_HOST_DEVICE __host__ __device__
#else
#define QUIRE_HOST_DEVICE
#endif

enum quire_dtype {
	QUIRE_F32,      /* IEEE 754 binary32 */
	QUIRE_F16,      /* IEEE 754 binary16 */
	QUIRE_BF16,     /* the upper half of a binary32 */
	QUIRE_FP8_E4M3, /* OCP OFP8 E4M3: no infinities, largest 448 */
	QUIRE_FP8_E5M2, /* OCP OFP8 E5M2: largest finite 57344 */
};
#define QUIRE_DTYPE_COUNT 5

/* quire_dtype_bytes - bytes of one element; 0 for a number that is no dtype */
QUIRE_API int64_t quire_dtype_bytes(enum quire_dtype dtype);

/*
 * quire_dtype_name - "f32", "f16", "bf16", "e4m3", "e5m2"
 * Returns:  the name; "unknown" for a number that is no dtype.
 */
QUIRE_API const char *quire_dtype_name(enum quire_dtype dtype);

/*
 * quire_dtype_parse - the dtype of a name
 * Returns:  QUIRE_OK; QUIRE_INVALID: no such name.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_dtype_parse(const char *name, enum quire_dtype *dtype_out);

#ifdef __cplusplus
}
#endif
#endif
