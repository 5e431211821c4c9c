/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_KERNELS_CONVERT_IMPL_H
#define QUIRE_KERNELS_CONVERT_IMPL_H
/*
 * Converters of runs of elements on the CPU: a table of them for each kind of vector
 * instructions.  All give the same bits, those of dtype_impl.h, for every source, NaNs
 * and subnormals included, whatever the caller's rounding mode and flushing of
 * subnormals.  They may set the flags of floating-point exceptions; these must be masked:
 * those who convert see to it, whatever a program unmasks.
 *
 * Every converter is one loop over whole lines (64 bytes) of the target.  What a run has
 * before its first and after its last whole line is converted in a line of its own, so
 * nothing outside the run is read or written.
 */
#include <quire/kernels/dtype.h>

#include <stdbool.h>
#include <stdint.h>

#define QUIRE_LINE_BYTES 64

enum quire_simd {
	QUIRE_SIMD_PORTABLE, /* C; on x86-64 with SSE2's non-temporal stores */
	QUIRE_SIMD_AVX2,     /* AVX2 and F16C */
	QUIRE_SIMD_AVX512,   /* AVX-512 F, BW and VL */
};

/* n elements, at any addresses; target and source do not overlap. */
typedef void (*quire_converter)(char *target, const char *source, int64_t n);

/*
 * [from][to]; NULL: no such conversion.  From f32, f16 and bf16 there is one to every
 * dtype, from fp8 only the plain copy.
 * @cached:    ordinary stores
 * @streamed:  the whole lines of the target by non-temporal stores where the machine has
 *             them and the target is aligned to its element: an sfence must follow
 *             before others are told of the data
 */
struct quire_converters {
	quire_converter cached[QUIRE_DTYPE_COUNT][QUIRE_DTYPE_COUNT];
	quire_converter streamed[QUIRE_DTYPE_COUNT][QUIRE_DTYPE_COUNT];
};

/*
 * quire_simd_best - the widest vectors that this machine has
 * Threads:  any.
 */
enum quire_simd quire_simd_best(void);

/*
 * quire_converters_of - the table for a kind of vectors
 * @simd:     at most quire_simd_best()
 * Threads:  any.
 */
const struct quire_converters *quire_converters_of(enum quire_simd simd);

/*
 * The rest is for the files that define a table.
 */

extern const struct quire_converters quire_converters_portable;
#ifdef __x86_64__
extern const struct quire_converters quire_converters_avx2;
extern const struct quire_converters quire_converters_avx512;
#endif

/*
 * Converts whole lines of the target, or copies whole lines.
 * @streamed:  by non-temporal stores: the target is aligned to a line
 */
typedef void quire_lines(char *target, const char *source, int64_t lines, bool streamed);

/* Any run, by the function for its lines. */
void quire_convert_run(char *target, const char *source, int64_t n, int64_t target_bytes,
                       int64_t source_bytes, quire_lines *convert, bool streamed);
void quire_copy_run(char *target, const char *source, int64_t bytes, quire_lines *copy,
                    bool streamed);

/* X(to, its C type, from, its C type) for each conversion. */
#define QUIRE_CONVERSIONS(X)                 \
	X(f16, uint16_t, f32, float)         \
	X(bf16, uint16_t, f32, float)        \
	X(fp8_e4m3, uint8_t, f32, float)     \
	X(fp8_e5m2, uint8_t, f32, float)     \
	X(f32, float, f16, uint16_t)         \
	X(bf16, uint16_t, f16, uint16_t)     \
	X(fp8_e4m3, uint8_t, f16, uint16_t)  \
	X(fp8_e5m2, uint8_t, f16, uint16_t)  \
	X(f32, float, bf16, uint16_t)        \
	X(f16, uint16_t, bf16, uint16_t)     \
	X(fp8_e4m3, uint8_t, bf16, uint16_t) \
	X(fp8_e5m2, uint8_t, bf16, uint16_t)

/* X(dtype, its C type) for each dtype. */
#define QUIRE_COPIES(X)      \
	X(f32, float)        \
	X(f16, uint16_t)     \
	X(bf16, uint16_t)    \
	X(fp8_e4m3, uint8_t) \
	X(fp8_e5m2, uint8_t)

/* A converter around the function to_of_from for lines. */
#define QUIRE_CONVERTER(to, to_type, from, from_type, way, streamed)                     \
	static void to##_of_##from##_##way(char *target, const char *source, int64_t n)  \
	{                                                                                \
		quire_convert_run(target, source, n, sizeof(to_type), sizeof(from_type), \
		                  to##_of_##from, streamed);                             \
	}

/* A copier around the function copy_lines. */
#define QUIRE_COPIER(dtype, type, way, streamed)                                     \
	static void dtype##_of_##dtype##_##way(char *target, const char *source,     \
	                                       int64_t n)                            \
	{                                                                            \
		quire_copy_run(target, source, n *(int64_t)sizeof(type), copy_lines, \
		               streamed);                                            \
	}

#define QUIRE_CONVERTER_PAIR(to, to_type, from, from_type)           \
	QUIRE_CONVERTER(to, to_type, from, from_type, cached, false) \
	QUIRE_CONVERTER(to, to_type, from, from_type, streamed, true)

#define QUIRE_COPIER_PAIR(dtype, type)           \
	QUIRE_COPIER(dtype, type, cached, false) \
	QUIRE_COPIER(dtype, type, streamed, true)

#define QUIRE_CONVERTERS_FROM(from, way)                       \
	{                                                      \
		[QUIRE_F32] = f32_of_##from##_##way,           \
		[QUIRE_F16] = f16_of_##from##_##way,           \
		[QUIRE_BF16] = bf16_of_##from##_##way,         \
		[QUIRE_FP8_E4M3] = fp8_e4m3_of_##from##_##way, \
		[QUIRE_FP8_E5M2] = fp8_e5m2_of_##from##_##way, \
	}

#define QUIRE_CONVERTERS_WAY(way)                                                   \
	{                                                                           \
		[QUIRE_F32] = QUIRE_CONVERTERS_FROM(f32, way),                      \
		[QUIRE_F16] = QUIRE_CONVERTERS_FROM(f16, way),                      \
		[QUIRE_BF16] = QUIRE_CONVERTERS_FROM(bf16, way),                    \
		[QUIRE_FP8_E4M3] = {[QUIRE_FP8_E4M3] = fp8_e4m3_of_fp8_e4m3_##way}, \
		[QUIRE_FP8_E5M2] = {[QUIRE_FP8_E5M2] = fp8_e5m2_of_fp8_e5m2_##way}, \
	}

/* The table of a file that has defined copy_lines and each to_of_from. */
#define QUIRE_CONVERTERS(name)                              \
	QUIRE_CONVERSIONS(QUIRE_CONVERTER_PAIR)             \
	QUIRE_COPIES(QUIRE_COPIER_PAIR)                     \
	const struct quire_converters name = {              \
		.cached = QUIRE_CONVERTERS_WAY(cached),     \
		.streamed = QUIRE_CONVERTERS_WAY(streamed), \
	};

#endif
