/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_KERNELS_DTYPE_IMPL_H
#define QUIRE_KERNELS_DTYPE_IMPL_H
/*
 * Conversions between element types: one definition for the CPU (which vectorises it: no
 * branches) and for CUDA.
 *
 * Widening is exact.  Narrowing rounds to nearest, ties to even; what rounds beyond the
 * largest finite value becomes infinity; a NaN stays a NaN (made quiet, its upper payload
 * bits kept).
 *
 * Source: IEEE 754-2019, sections 3.4 and 4.3.1.
 */
#include <quire/kernels/dtype.h>

#include <stdint.h>
#include <string.h>

#define QUIRE_F32_INFINITY 0x7f800000

/* 2^-14, the smallest normal f16, as f32 bits. */
#define QUIRE_F16_NORMAL_MIN 0x38800000

/* 65520, half way from the largest finite f16 to the next power of two, as f32 bits. */
#define QUIRE_F16_OVERFLOW 0x477ff000

/* What separates the exponents of f16 and f32, at f32's place. */
#define QUIRE_F16_REBIAS ((127 - 15) << 23)

static inline QUIRE_HOST_DEVICE uint32_t quire_bits_of_f32(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static inline QUIRE_HOST_DEVICE float quire_f32_of_bits(uint32_t bits)
{
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

/*
 * value < bound ? yes : no, of numbers 0 or more.  By a mask made of the difference's
 * sign: compilers turn other forms into branches that they do not vectorise.
 */
static inline QUIRE_HOST_DEVICE uint32_t quire_select(int32_t value, int32_t bound,
                                                      uint32_t yes, uint32_t no)
{
	uint32_t mask = (uint32_t)((value - bound) >> 31);

	return (yes & mask) | (no & ~mask);
}

static inline QUIRE_HOST_DEVICE float quire_f32_of_f32(float value)
{
	return value;
}

static inline QUIRE_HOST_DEVICE float quire_f32_of_bf16(uint16_t value)
{
	return quire_f32_of_bits((uint32_t)value << 16);
}

static inline QUIRE_HOST_DEVICE uint16_t quire_bf16_of_f32(float value)
{
	uint32_t bits = quire_bits_of_f32(value);
	uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
	int32_t magnitude = (int32_t)(bits & 0x7fffffff);

	rounded = quire_select(QUIRE_F32_INFINITY, magnitude, bits | 0x400000, rounded);
	return (uint16_t)(rounded >> 16);
}

static inline QUIRE_HOST_DEVICE float quire_f32_of_f16(uint16_t value)
{
	uint32_t sign = (uint32_t)(value & 0x8000) << 16;
	int32_t magnitude = (value & 0x7fff) << 13;
	/* A subnormal f16 counts units of 2^-24: add 2^-14, then take it off again. */
	float tiny = quire_f32_of_bits((uint32_t)(magnitude + QUIRE_F16_NORMAL_MIN)) -
	             quire_f32_of_bits(QUIRE_F16_NORMAL_MIN);
	uint32_t wide = (uint32_t)(magnitude + QUIRE_F16_REBIAS);

	wide = quire_select(magnitude, 0x7c00 << 13, wide, wide + QUIRE_F16_REBIAS);
	wide = quire_select(magnitude, 0x0400 << 13, quire_bits_of_f32(tiny), wide);
	return quire_f32_of_bits(sign | wide);
}

static inline QUIRE_HOST_DEVICE uint16_t quire_f16_of_f32(float value)
{
	uint32_t bits = quire_bits_of_f32(value);
	uint32_t sign = bits >> 16 & 0x8000;
	int32_t magnitude = (int32_t)(bits & 0x7fffffff);
	/* Below 2^-14 the sum's last place is 2^-24, f16's own: the addition rounds. */
	float sum = quire_f32_of_bits((uint32_t)magnitude) + 0.5f;
	uint32_t tiny = quire_bits_of_f32(sum) - quire_bits_of_f32(0.5f);
	int32_t normal =
		(magnitude - QUIRE_F16_REBIAS + 0xfff + (magnitude >> 13 & 1)) >> 13;
	int32_t nan = 0x7e00 | (magnitude >> 13 & 0x1ff);
	uint32_t half =
		quire_select(magnitude, QUIRE_F16_NORMAL_MIN, tiny, (uint32_t)normal);

	half = quire_select(magnitude, QUIRE_F16_OVERFLOW, half, 0x7c00);
	half = quire_select(QUIRE_F32_INFINITY, magnitude, (uint32_t)nan, half);
	return (uint16_t)(sign | half);
}

#endif
