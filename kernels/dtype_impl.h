/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_KERNELS_DTYPE_IMPL_H
#define QUIRE_KERNELS_DTYPE_IMPL_H
/*
 * Conversions between element types: one definition for the CPU and for CUDA.
 *
 * Widening is exact.  Narrowing rounds to nearest, ties to even.  What rounds beyond the
 * largest finite value becomes infinity in f16 and bf16; fp8 saturates: it becomes the
 * largest finite value, and so does infinity.  A NaN stays a NaN of its sign: made quiet,
 * its upper payload bits kept; fp8 e4m3 has one NaN of each sign; bf16 to f32 keeps even
 * a signalling one.
 *
 * Whole-number arithmetic, and one exact product of normal numbers: neither the rounding
 * mode nor the flushing of subnormals changes a result.
 *
 * Source: IEEE 754-2019, sections 3.4, 4.3.1 and 6.2.  OCP 8-bit Floating Point
 * Specification (OFP8) revision 1.0: its formats, and the saturating mode of its table 3.
 */
#include <quire/kernels/dtype.h>

#include <stdint.h>
#include <string.h>

#define QUIRE_F32_INFINITY 0x7f800000
#define QUIRE_F32_QUIET    0x400000
#define QUIRE_F32_BIAS     127

#define QUIRE_F16_INFINITY   0x7c00
#define QUIRE_F16_QUIET      0x7e00
#define QUIRE_FP8_E4M3_MAX   0x7e /* 448 */
#define QUIRE_FP8_E4M3_NAN   0x7f
#define QUIRE_FP8_E5M2_MAX   0x7b /* 57344 */
#define QUIRE_FP8_E5M2_QUIET 0x7e

/* A narrow format: the rest of its bits, but for the sign, are the exponent's. */
#define QUIRE_F16_FRACTION_BITS      10
#define QUIRE_F16_BIAS               15
#define QUIRE_FP8_E4M3_FRACTION_BITS 3
#define QUIRE_FP8_E4M3_BIAS          7
#define QUIRE_FP8_E5M2_FRACTION_BITS 2
#define QUIRE_FP8_E5M2_BIAS          15

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
 * value < bound ? yes : no, where value - bound does not overflow.  By a mask made of the
 * difference's sign: compilers turn other forms into branches that they do not vectorise.
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

	rounded = quire_select(QUIRE_F32_INFINITY, magnitude, bits | QUIRE_F32_QUIET,
	                       rounded);
	return (uint16_t)(rounded >> 16);
}

/*
 * A narrow format's bits without the sign, as an f32's.  From `special` on its exponent
 * field is full and stands for no exponent.
 */
static inline QUIRE_HOST_DEVICE uint32_t quire_widen(int32_t magnitude, int fraction_bits,
                                                     int bias, int32_t special)
{
	uint32_t rebias = (uint32_t)(QUIRE_F32_BIAS - bias) << 23;
	uint32_t wide = ((uint32_t)magnitude << (23 - fraction_bits)) + rebias;
	/* A subnormal counts units of the last place; the product is exact and normal. */
	float unit = quire_f32_of_bits(
		(uint32_t)(QUIRE_F32_BIAS + 1 - bias - fraction_bits) << 23);
	uint32_t tiny = quire_bits_of_f32((float)magnitude * unit);

	wide = quire_select(magnitude, special, wide, wide + rebias);
	return quire_select(magnitude, 1 << fraction_bits, tiny, wide);
}

/*
 * An f32's bits as those of a narrow format, without the sign.
 * @limit:  what the largest numbers become
 * @quiet:  a quiet NaN without a payload
 */
static inline QUIRE_HOST_DEVICE uint32_t quire_narrow(uint32_t bits, int fraction_bits,
                                                      int bias, int32_t limit,
                                                      uint32_t quiet)
{
	int32_t magnitude = (int32_t)(bits & 0x7fffffff);
	int32_t exponent = (magnitude >> 23) - (QUIRE_F32_BIAS - bias);
	/* Below the normal numbers the exponent stays and the shift grows. */
	int32_t field = (int32_t)quire_select(1, exponent, (uint32_t)exponent, 1);
	int32_t shift = 23 - fraction_bits + field - exponent;
	uint32_t significand = (uint32_t)(magnitude & 0x7fffff) | 0x800000;
	uint32_t payload = (uint32_t)magnitude >> (23 - fraction_bits) &
	                   ((1u << (fraction_bits - 1)) - 1);
	uint32_t narrow;

	/* A shift of 25 leaves 0 of every significand. */
	shift = (int32_t)quire_select(shift, 25, (uint32_t)shift, 25);
	significand += (1u << (shift - 1)) - 1 + (significand >> shift & 1);
	/* The significand's upper bit counts in the exponent, as a carry of it does. */
	narrow = (significand >> shift) + ((uint32_t)(field - 1) << fraction_bits);
	narrow = quire_select((int32_t)narrow, limit, narrow, (uint32_t)limit);
	return quire_select(QUIRE_F32_INFINITY, magnitude, quiet | payload, narrow);
}

static inline QUIRE_HOST_DEVICE float quire_f32_of_f16(uint16_t value)
{
	uint32_t sign = (uint32_t)(value & 0x8000) << 16;
	int32_t magnitude = value & 0x7fff;
	uint32_t wide = quire_widen(magnitude, QUIRE_F16_FRACTION_BITS, QUIRE_F16_BIAS,
	                            QUIRE_F16_INFINITY);

	wide = quire_select(QUIRE_F16_INFINITY, magnitude, wide | QUIRE_F32_QUIET, wide);
	return quire_f32_of_bits(sign | wide);
}

static inline QUIRE_HOST_DEVICE uint16_t quire_f16_of_f32(float value)
{
	uint32_t bits = quire_bits_of_f32(value);
	uint32_t half = quire_narrow(bits, QUIRE_F16_FRACTION_BITS, QUIRE_F16_BIAS,
	                             QUIRE_F16_INFINITY, QUIRE_F16_QUIET);

	return (uint16_t)((bits >> 16 & 0x8000) | half);
}

static inline QUIRE_HOST_DEVICE float quire_f32_of_fp8_e4m3(uint8_t value)
{
	uint32_t sign = (uint32_t)(value & 0x80) << 24;

	return quire_f32_of_bits(sign |
	                         quire_widen(value & 0x7f, QUIRE_FP8_E4M3_FRACTION_BITS,
	                                     QUIRE_FP8_E4M3_BIAS, QUIRE_FP8_E4M3_NAN));
}

static inline QUIRE_HOST_DEVICE uint8_t quire_fp8_e4m3_of_f32(float value)
{
	uint32_t bits = quire_bits_of_f32(value);
	uint32_t byte =
		quire_narrow(bits, QUIRE_FP8_E4M3_FRACTION_BITS, QUIRE_FP8_E4M3_BIAS,
	                     QUIRE_FP8_E4M3_MAX, QUIRE_FP8_E4M3_NAN);

	return (uint8_t)((bits >> 24 & 0x80) | byte);
}

/* An fp8 e5m2 is the upper half of an f16. */
static inline QUIRE_HOST_DEVICE float quire_f32_of_fp8_e5m2(uint8_t value)
{
	return quire_f32_of_f16((uint16_t)(value << 8));
}

static inline QUIRE_HOST_DEVICE uint8_t quire_fp8_e5m2_of_f32(float value)
{
	uint32_t bits = quire_bits_of_f32(value);
	uint32_t byte =
		quire_narrow(bits, QUIRE_FP8_E5M2_FRACTION_BITS, QUIRE_FP8_E5M2_BIAS,
	                     QUIRE_FP8_E5M2_MAX, QUIRE_FP8_E5M2_QUIET);

	return (uint8_t)((bits >> 24 & 0x80) | byte);
}

#endif
