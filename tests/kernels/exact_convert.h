/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_TESTS_KERNELS_EXACT_CONVERT_H
#define QUIRE_TESTS_KERNELS_EXACT_CONVERT_H
/*
 * What conversions must give, by exact arithmetic: a source's bits are decoded to a
 * number, and the nearest one is looked up in the table of the target's numbers.
 */
#include <quire/kernels/dtype.h>

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct exact_format {
	int bits;
	int fraction_bits;
	int bias;
	uint32_t finite; /* how many patterns from 0 on are finite */
	bool saturates;
};

static const struct exact_format exact_formats[QUIRE_DTYPE_COUNT] = {
	[QUIRE_F32] = {32, 23, 127, 255u << 23, false},
	[QUIRE_F16] = {16, 10, 15, 31 << 10, false},
	[QUIRE_BF16] = {16, 7, 127, 255 << 7, false},
	[QUIRE_FP8_E4M3] = {8, 3, 7, (15 << 3) + 7, true},
	[QUIRE_FP8_E5M2] = {8, 2, 15, 31 << 2, true},
};

/* The numbers of the dtypes narrower than f32 in the order of their patterns. */
static long double exact_numbers[QUIRE_DTYPE_COUNT][1 << 15];

static inline uint32_t exact_magnitude(enum quire_dtype dtype, uint32_t bits)
{
	return bits & ((UINT32_C(1) << (exact_formats[dtype].bits - 1)) - 1);
}

static inline bool exact_is_infinite(enum quire_dtype dtype, uint32_t bits)
{
	return dtype != QUIRE_FP8_E4M3 &&
	       exact_magnitude(dtype, bits) == exact_formats[dtype].finite;
}

static inline bool exact_is_nan(enum quire_dtype dtype, uint32_t bits)
{
	return exact_magnitude(dtype, bits) >= exact_formats[dtype].finite &&
	       !exact_is_infinite(dtype, bits);
}

/* The number without its sign; not for NaN. */
static inline long double exact_number(enum quire_dtype dtype, uint32_t bits)
{
	const struct exact_format *format = &exact_formats[dtype];
	uint32_t magnitude = exact_magnitude(dtype, bits);
	uint32_t implied = UINT32_C(1) << format->fraction_bits;
	uint32_t fraction = magnitude % implied;
	int exponent = (int)(magnitude / implied);

	if (exact_is_infinite(dtype, bits))
		return INFINITY;
	if (exponent == 0)
		return ldexpl(fraction, 1 - format->bias - format->fraction_bits);
	return ldexpl(implied + fraction,
	              exponent - format->bias - format->fraction_bits);
}

/* Fills the tables; once, before all below. */
static inline void exact_prepare(void)
{
	for (int dtype = QUIRE_F16; dtype < QUIRE_DTYPE_COUNT; dtype++)
		for (uint32_t bits = 0; bits < exact_formats[dtype].finite; bits++) {
			exact_numbers[dtype][bits] =
				exact_number((enum quire_dtype)dtype, bits);
			if (bits > 0 &&
			    exact_numbers[dtype][bits] <= exact_numbers[dtype][bits - 1])
				abort();
		}
}

/* What would follow number k, even if that is the last one. */
static inline long double exact_next(enum quire_dtype dtype, uint32_t k)
{
	const long double *numbers = exact_numbers[dtype];

	if (k + 1 < exact_formats[dtype].finite)
		return numbers[k + 1];
	return numbers[k] + (numbers[k] - numbers[k - 1]);
}

/* The pattern, without a sign, of the number nearest to value; of two, the even one. */
static inline uint32_t exact_nearest(enum quire_dtype dtype, long double value)
{
	uint32_t finite = exact_formats[dtype].finite;
	uint32_t low = 0; /* numbers[low] <= value < numbers[high] */
	uint32_t high = finite;
	long double below, above;

	while (high - low > 1) {
		uint32_t middle = (low + high) / 2;

		if (exact_numbers[dtype][middle] <= value)
			low = middle;
		else
			high = middle;
	}
	below = value - exact_numbers[dtype][low];
	above = exact_next(dtype, low) - value;
	if (below > above || (below == above && low % 2 == 1))
		low++;
	/* The pattern after the last number is infinity's. */
	return low == finite && exact_formats[dtype].saturates ? finite - 1 : low;
}

/* Of a NaN: the upper bits of its fraction, made quiet where bits are not just kept. */
static inline uint32_t exact_nan(enum quire_dtype from, enum quire_dtype to,
                                 uint32_t bits)
{
	const struct exact_format *target = &exact_formats[to];
	int source_bits = exact_formats[from].fraction_bits;
	uint32_t implied = UINT32_C(1) << target->fraction_bits;
	uint64_t fraction = bits & ((UINT32_C(1) << source_bits) - 1);

	if (to == QUIRE_FP8_E4M3)
		return target->finite;
	fraction = fraction << 23 >> source_bits << target->fraction_bits >> 23;
	if (from != QUIRE_BF16 || to != QUIRE_F32)
		fraction |= implied / 2;
	return target->finite + (uint32_t)fraction;
}

static inline uint32_t exact_convert(enum quire_dtype from, enum quire_dtype to,
                                     uint32_t bits)
{
	uint32_t sign = bits >> (exact_formats[from].bits - 1);
	uint32_t magnitude;
	float value;

	if (exact_is_nan(from, bits)) {
		magnitude = exact_nan(from, to, bits);
	} else if (to == QUIRE_F32) {
		value = (float)exact_number(from, bits);
		memcpy(&magnitude, &value, sizeof(magnitude));
	} else {
		magnitude = exact_nearest(to, exact_number(from, bits));
	}
	return sign << (exact_formats[to].bits - 1) | magnitude;
}

/* The bits of one of an array of elements. */
static inline uint32_t exact_element(enum quire_dtype dtype, const void *elements,
                                     int64_t i)
{
	if (exact_formats[dtype].bits == 8)
		return ((const uint8_t *)elements)[i];
	if (exact_formats[dtype].bits == 16)
		return ((const uint16_t *)elements)[i];
	return ((const uint32_t *)elements)[i];
}

#define EXACT_EDGES_MAX (1 << 21)

static inline int64_t exact_add_edge(uint32_t *edges, int64_t n, uint32_t bits)
{
	for (uint32_t near = 0; near < 3; near++) {
		edges[n++] = (bits + near - 1) & 0x7fffffff;
		edges[n++] = ((bits + near - 1) & 0x7fffffff) | 0x80000000;
	}
	return n;
}

/*
 * The f32 where results change, and their neighbours: each number of each narrower dtype
 * and the middle between it and the next one; in every exponent, low and high NaNs
 * included, fractions with three bits somewhere.  Returns how many of EXACT_EDGES_MAX.
 */
static inline int64_t exact_edges(uint32_t *edges)
{
	int64_t n = 0;

	for (int dtype = QUIRE_F16; dtype < QUIRE_DTYPE_COUNT; dtype++)
		for (uint32_t k = 0; k < exact_formats[dtype].finite; k++) {
			long double number = exact_numbers[dtype][k];
			long double next = exact_next((enum quire_dtype)dtype, k);
			float points[2] = {(float)number, (float)((number + next) / 2)};
			uint32_t bits[2];

			memcpy(bits, points, sizeof(bits));
			n = exact_add_edge(edges, n, bits[0]);
			n = exact_add_edge(edges, n, bits[1]);
		}
	for (uint32_t exponent = 0; exponent < 256; exponent++)
		for (int bit = 0; bit < 23; bit++)
			for (uint32_t head = 0; head < 8; head++)
				n = exact_add_edge(edges, n,
				                   exponent << 23 |
				                           (head << bit & 0x7fffff));
	return n;
}

#endif
