/* SPDX-License-Identifier: MIT */
/* Names and sizes of dtypes, and the arithmetic that the CPU and CUDA share. */
#include "config.h"

#include "kernels/dtype_impl.h"

#include "exact_convert.h"
#include "tests/alloc/random.h"
#include "tests/run_suite.h"

#include <check.h>

static uint32_t narrow(enum quire_dtype dtype, float value)
{
	if (dtype == QUIRE_F16)
		return quire_f16_of_f32(value);
	if (dtype == QUIRE_BF16)
		return quire_bf16_of_f32(value);
	if (dtype == QUIRE_FP8_E4M3)
		return quire_fp8_e4m3_of_f32(value);
	return quire_fp8_e5m2_of_f32(value);
}

static float widen(enum quire_dtype dtype, uint32_t bits)
{
	if (dtype == QUIRE_F16)
		return quire_f32_of_f16((uint16_t)bits);
	if (dtype == QUIRE_BF16)
		return quire_f32_of_bf16((uint16_t)bits);
	if (dtype == QUIRE_FP8_E4M3)
		return quire_f32_of_fp8_e4m3((uint8_t)bits);
	return quire_f32_of_fp8_e5m2((uint8_t)bits);
}

/* ck_assert costs a system call: only for what is wrong. */
static void check_narrowing(uint32_t bits)
{
	for (int dtype = QUIRE_F16; dtype < QUIRE_DTYPE_COUNT; dtype++) {
		uint32_t got = narrow((enum quire_dtype)dtype, quire_f32_of_bits(bits));

		if (got != exact_convert(QUIRE_F32, (enum quire_dtype)dtype, bits))
			ck_abort_msg("%s of %08x is %04x",
			             quire_dtype_name((enum quire_dtype)dtype), bits,
			             got);
	}
}

START_TEST(every_narrow_number_widens_to_itself)
{
	enum quire_dtype dtype = (enum quire_dtype)_i;

	for (uint32_t bits = 0; bits < 1u << exact_formats[dtype].bits; bits++) {
		uint32_t wide = quire_bits_of_f32(widen(dtype, bits));

		if (wide != exact_convert(dtype, QUIRE_F32, bits))
			ck_abort_msg("%s %04x", quire_dtype_name(dtype), bits);
	}
}
END_TEST

START_TEST(what_was_widened_narrows_to_the_same_bits)
{
	enum quire_dtype dtype = (enum quire_dtype)_i;

	for (uint32_t bits = 0; bits < 1u << exact_formats[dtype].bits; bits++) {
		uint32_t back = narrow(dtype, widen(dtype, bits));
		bool kept =
			!exact_is_nan(dtype, bits) && !(exact_formats[dtype].saturates &&
		                                        exact_is_infinite(dtype, bits));

		if (kept && back != bits)
			ck_abort_msg("%s %04x came back as %04x", quire_dtype_name(dtype),
			             bits, back);
	}
}
END_TEST

START_TEST(edges_round_to_nearest_even)
{
	uint32_t *edges = malloc(EXACT_EDGES_MAX * sizeof(*edges));
	int64_t n = exact_edges(edges);

	for (int64_t i = 0; i < n; i++)
		check_narrowing(edges[i]);
	free(edges);
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

START_TEST(known_numbers_become_fp8_by_hand)
{
	ck_assert_uint_eq(quire_fp8_e4m3_of_f32(1.0f), 0x38);
	ck_assert_uint_eq(quire_fp8_e4m3_of_f32(-448.0f), 0xfe);
	ck_assert_uint_eq(quire_fp8_e4m3_of_f32(465.0f), 0x7e);
	ck_assert_uint_eq(quire_fp8_e4m3_of_f32(-INFINITY), 0xfe);
	ck_assert_uint_eq(quire_fp8_e4m3_of_f32(NAN), 0x7f);
	ck_assert_uint_eq(quire_fp8_e4m3_of_f32(-NAN), 0xff);
	ck_assert_uint_eq(quire_fp8_e4m3_of_f32(0.001953125f), 0x01);
	ck_assert_uint_eq(quire_fp8_e4m3_of_f32(0.0009765625f), 0x00);
	ck_assert_uint_eq(quire_fp8_e4m3_of_f32(-0.0f), 0x80);
	/* 1 + 2^-4 and 1 + 3 * 2^-4 are ties. */
	ck_assert_uint_eq(quire_fp8_e4m3_of_f32(1.0625f), 0x38);
	ck_assert_uint_eq(quire_fp8_e4m3_of_f32(1.1875f), 0x3a);
	ck_assert_uint_eq(quire_fp8_e5m2_of_f32(1.0f), 0x3c);
	ck_assert_uint_eq(quire_fp8_e5m2_of_f32(57344.0f), 0x7b);
	ck_assert_uint_eq(quire_fp8_e5m2_of_f32(-61440.0f), 0xfb);
	ck_assert_uint_eq(quire_fp8_e5m2_of_f32(INFINITY), 0x7b);
	ck_assert_uint_eq(quire_fp8_e5m2_of_f32(NAN), 0x7e);
	ck_assert_uint_eq(quire_fp8_e5m2_of_f32(1.52587890625e-5f), 0x01);
	ck_assert_float_eq(quire_f32_of_fp8_e4m3(0x7e), 448.0f);
	ck_assert_float_eq(quire_f32_of_fp8_e4m3(0x81), -0.001953125f);
	ck_assert_float_eq(quire_f32_of_fp8_e5m2(0x7b), 57344.0f);
	ck_assert_float_infinite(quire_f32_of_fp8_e5m2(0xfc));
}
END_TEST

START_TEST(dtypes_have_names_and_sizes)
{
	static const struct {
		enum quire_dtype dtype;
		const char *name;
		int64_t bytes;
	} all[] = {{QUIRE_F32, "f32", 4},
	           {QUIRE_F16, "f16", 2},
	           {QUIRE_BF16, "bf16", 2},
	           {QUIRE_FP8_E4M3, "e4m3", 1},
	           {QUIRE_FP8_E5M2, "e5m2", 1}};
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
	ck_assert_str_eq(quire_dtype_name((enum quire_dtype)QUIRE_DTYPE_COUNT),
	                 "unknown");
	ck_assert_int_eq(quire_dtype_bytes((enum quire_dtype)QUIRE_DTYPE_COUNT), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("dtype");
	TCase *tcase = tcase_create("dtype");

	exact_prepare();
	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, every_narrow_number_widens_to_itself, QUIRE_F16,
	                    QUIRE_DTYPE_COUNT);
	tcase_add_loop_test(tcase, what_was_widened_narrows_to_the_same_bits, QUIRE_F16,
	                    QUIRE_DTYPE_COUNT);
	tcase_add_test(tcase, edges_round_to_nearest_even);
	tcase_add_test(tcase, random_numbers_round_to_nearest_even);
	tcase_add_test(tcase, known_numbers_convert_by_hand);
	tcase_add_test(tcase, known_numbers_become_fp8_by_hand);
	tcase_add_test(tcase, dtypes_have_names_and_sizes);
	return run_suite(suite);
}
