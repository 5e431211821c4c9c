/* SPDX-License-Identifier: MIT */
/*
 * Conversions against their definition in long double arithmetic: a number is sign * n *
 * 2^q with a whole n, and narrowing picks the nearest such number of the target, ties to
 * even n.
 */
#include "config.h"

#include "kernels/dtype_impl.h"

#include "tests/alloc/random.h"
#include "tests/run_suite.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>

struct format {
	int fraction_bits;
	int exponent_min; /* of the smallest normal number */
	int exponent_max; /* of the largest finite one */
};

static const struct format f16 = {10, -14, 15};
static const struct format bf16 = {7, -126, 127};

/* The number that bits stand for; NaN for all NaNs. */
static long double decode(struct format format, uint32_t bits)
{
	uint32_t fraction = bits & ((1u << format.fraction_bits) - 1);
	int field =
		(bits >> format.fraction_bits) & (uint32_t)(2 * format.exponent_max + 1);
	long double magnitude;

	if (field == 2 * format.exponent_max + 1)
		magnitude = fraction == 0 ? INFINITY : NAN;
	else if (field == 0)
		magnitude = ldexpl(fraction, format.exponent_min - format.fraction_bits);
	else
		magnitude = ldexpl((1 << format.fraction_bits) + (int)fraction,
		                   field - format.exponent_max - format.fraction_bits);
	return bits & 0x8000 ? -magnitude : magnitude;
}

/* The nearest number of the format, ties to even; not for NaN. */
static long double nearest(struct format format, long double value)
{
	long double magnitude = fabsl(value);
	long double limit = ldexpl(1, format.exponent_max + 1);
	long double quantum;
	long double count;
	long double rest;
	int exponent;

	if (magnitude == 0 || isinf(magnitude))
		return value;
	frexpl(magnitude, &exponent);
	exponent -= 1;
	if (exponent < format.exponent_min)
		exponent = format.exponent_min;
	quantum = ldexpl(1, exponent - format.fraction_bits);
	count = floorl(magnitude / quantum);
	rest = magnitude / quantum - count;
	if (rest > 0.5L || (rest == 0.5L && fmodl(count, 2) == 1))
		count += 1;
	magnitude = count * quantum >= limit ? (long double)INFINITY : count * quantum;
	return copysignl(magnitude, value);
}

static int same(long double a, long double b)
{
	return isnan(a) || isnan(b) ? isnan(a) && isnan(b)
	                            : a == b && signbit(a) == signbit(b);
}

/* ck_assert costs a system call: only for what is wrong. */
static void check_narrowing(uint32_t bits)
{
	float value = quire_f32_of_bits(bits);
	uint16_t half = quire_f16_of_f32(value);
	uint16_t brain = quire_bf16_of_f32(value);

	if (!same(decode(f16, half), isnan(value) ? value : nearest(f16, value)) ||
	    half >> 15 != bits >> 31)
		ck_abort_msg("f16 of %08x is %04x", bits, half);
	if (!same(decode(bf16, brain), isnan(value) ? value : nearest(bf16, value)) ||
	    brain >> 15 != bits >> 31)
		ck_abort_msg("bf16 of %08x is %04x", bits, brain);
}

START_TEST(every_f16_and_bf16_widens_to_its_number)
{
	for (uint32_t bits = 0; bits < 0x10000; bits++) {
		float of_f16 = quire_f32_of_f16((uint16_t)bits);
		float of_bf16 = quire_f32_of_bf16((uint16_t)bits);

		if (!same(of_f16, decode(f16, bits)))
			ck_abort_msg("f16 %04x", bits);
		if (!same(of_bf16, decode(bf16, bits)))
			ck_abort_msg("bf16 %04x", bits);
	}
}
END_TEST

START_TEST(what_was_widened_narrows_to_the_same_bits)
{
	for (uint32_t bits = 0; bits < 0x10000; bits++) {
		uint16_t half = quire_f16_of_f32(quire_f32_of_f16((uint16_t)bits));
		uint16_t brain = quire_bf16_of_f32(quire_f32_of_bf16((uint16_t)bits));

		if (half != bits && !isnan(decode(f16, bits)))
			ck_abort_msg("f16 %04x came back as %04x", bits, half);
		if (brain != bits && !isnan(decode(bf16, bits)))
			ck_abort_msg("bf16 %04x came back as %04x", bits, brain);
	}
}
END_TEST

START_TEST(every_exponent_rounds_edge_fractions_to_nearest_even)
{
	for (uint32_t exponent = 0; exponent < 256; exponent++)
		for (int bit = 0; bit < 23; bit++)
			for (uint32_t head = 0; head < 8; head++)
				for (int near = -1; near <= 1; near++) {
					/* head's bits from `bit` upward, and their two
					 * neighbours */
					uint32_t fraction =
						((head << bit) + (uint32_t)near) &
						0x7fffff;

					check_narrowing(exponent << 23 | fraction);
					check_narrowing(0x80000000 | exponent << 23 |
					                fraction);
				}
}
END_TEST

START_TEST(random_numbers_round_to_nearest_even)
{
	uint64_t seed = 7;

	for (int i = 0; i < 1000000; i++)
		check_narrowing((uint32_t)random_next(&seed));
	/* Half of those are beyond f16: more of them around its exponents. */
	for (int i = 0; i < 1000000; i++)
		check_narrowing((uint32_t)random_in(&seed, 100, 145) << 23 |
		                ((uint32_t)random_next(&seed) & 0x807fffff));
}
END_TEST

START_TEST(known_numbers_convert_by_hand)
{
	ck_assert_uint_eq(quire_f16_of_f32(1.0f), 0x3c00);
	ck_assert_uint_eq(quire_f16_of_f32(-2.0f), 0xc000);
	ck_assert_uint_eq(quire_f16_of_f32(65504.0f), 0x7bff);
	ck_assert_uint_eq(quire_f16_of_f32(65519.9f), 0x7bff);
	ck_assert_uint_eq(quire_f16_of_f32(65520.0f), 0x7c00);
	ck_assert_uint_eq(quire_f16_of_f32(-INFINITY), 0xfc00);
	ck_assert_uint_eq(quire_f16_of_f32(5.9604645e-8f), 0x0001);
	ck_assert_uint_eq(quire_f16_of_f32(2.9802322e-8f), 0x0000);
	ck_assert_uint_eq(quire_f16_of_f32(-0.0f), 0x8000);
	/* 1 + 2^-11 and 1 + 3 * 2^-11 are ties. */
	ck_assert_uint_eq(quire_f16_of_f32(1.00048828125f), 0x3c00);
	ck_assert_uint_eq(quire_f16_of_f32(1.00146484375f), 0x3c02);
	ck_assert_uint_eq(quire_bf16_of_f32(1.0f), 0x3f80);
	ck_assert_uint_eq(quire_bf16_of_f32(1.00390625f), 0x3f80);
	ck_assert_uint_eq(quire_bf16_of_f32(1.01171875f), 0x3f82);
	ck_assert_uint_eq(quire_bf16_of_f32(3.4028235e38f), 0x7f80);
	ck_assert_uint_eq(quire_bf16_of_f32(1e-39f), 0x000b);
}
END_TEST

START_TEST(dtypes_have_names_and_sizes)
{
	static const struct {
		enum quire_dtype dtype;
		const char *name;
		int64_t bytes;
	} all[] = {{QUIRE_F32, "f32", 4}, {QUIRE_F16, "f16", 2}, {QUIRE_BF16, "bf16", 2}};
	enum quire_dtype dtype;

	for (int i = 0; i < QUIRE_DTYPE_COUNT; i++) {
		ck_assert_str_eq(quire_dtype_name(all[i].dtype), all[i].name);
		ck_assert_int_eq(quire_dtype_bytes(all[i].dtype), all[i].bytes);
		ck_assert_int_eq(quire_dtype_parse(all[i].name, &dtype), QUIRE_OK);
		ck_assert_int_eq(dtype, all[i].dtype);
	}
	dtype = QUIRE_F16;
	ck_assert_int_eq(quire_dtype_parse("f64", &dtype), QUIRE_INVALID);
	ck_assert_int_eq(quire_dtype_parse("", &dtype), QUIRE_INVALID);
	ck_assert_int_eq(quire_dtype_parse(NULL, &dtype), QUIRE_INVALID);
	ck_assert_int_eq(dtype, QUIRE_F16);
	ck_assert_str_eq(quire_dtype_name((enum quire_dtype)3), "unknown");
	ck_assert_int_eq(quire_dtype_bytes((enum quire_dtype)3), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("dtype");
	TCase *tcase = tcase_create("dtype");

	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, every_f16_and_bf16_widens_to_its_number);
	tcase_add_test(tcase, what_was_widened_narrows_to_the_same_bits);
	tcase_add_test(tcase, every_exponent_rounds_edge_fractions_to_nearest_even);
	tcase_add_test(tcase, random_numbers_round_to_nearest_even);
	tcase_add_test(tcase, known_numbers_convert_by_hand);
	tcase_add_test(tcase, dtypes_have_names_and_sizes);
	return run_suite(suite);
}
