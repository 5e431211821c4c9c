/* SPDX-License-Identifier: MIT */
/* The pattern of replay --check: whatever is not as written is found, and named. */
#include "config.h"

#include "runtime/cmd/pattern_impl.h"

#include "kernels/dtype_impl.h"

#include "tests/run_suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define HEADS 3
#define DIMS  5
#define COUNT 7
#define SEED  0x1234

static struct cmd_pattern pattern;
static char rows[COUNT * 2 * HEADS * DIMS * 4];
static char scratch[HEADS * DIMS * 4];

static void init(enum quire_dtype dtype)
{
	const struct quire_shape shape = {
		.dtype = dtype,
		.num_layers = 2,
		.num_pages = 4,
		.page_size = 4,
		.num_kv_heads = HEADS,
		.head_dim = DIMS,
	};
	struct quire_geometry geometry;

	ck_assert_int_eq(quire_geometry_init(&shape, &geometry, NULL), QUIRE_OK);
	cmd_pattern_init(&pattern, &geometry, DIMS);
}

static char *row_of(int64_t position, int is_value)
{
	return rows + (position * 2 + is_value) * pattern.row_bytes;
}

static void write_rows(uint64_t seed, int64_t layer)
{
	for (int64_t i = 0; i < COUNT; i++) {
		cmd_pattern_fill(&pattern, seed, i, layer, 0, row_of(i, 0));
		cmd_pattern_fill(&pattern, seed, i, layer, 1, row_of(i, 1));
	}
}

static bool compare(struct cmd_pattern_fault *fault)
{
	return cmd_pattern_compare(&pattern, SEED, 0, 1, COUNT, rows, scratch, fault);
}

START_TEST(every_value_is_exact_in_every_dtype)
{
	init((enum quire_dtype)_i);
	for (int32_t i = 0; i < CMD_PATTERN_VALUES; i++) {
		float value = (float)(i - 128);
		uint32_t bits = pattern.bits[i];

		if (_i == QUIRE_F32)
			ck_assert(quire_f32_of_bits(bits) == value);
		else if (_i == QUIRE_F16)
			ck_assert(quire_f32_of_f16((uint16_t)bits) == value);
		else if (_i == QUIRE_BF16)
			ck_assert(quire_f32_of_bf16((uint16_t)bits) == value);
		else
			ck_assert_uint_eq(bits, (uint32_t)i); /* every byte */
	}
}
END_TEST

START_TEST(rows_as_written_pass)
{
	struct cmd_pattern_fault fault;

	init((enum quire_dtype)_i);
	write_rows(SEED, 1);
	ck_assert(compare(&fault));
}
END_TEST

/* Another value of the pattern, and bits that are none. */
static void spoil_and_find(int64_t position, int is_value, int64_t e, bool integer)
{
	char *element = row_of(position, is_value) + e * pattern.element_bytes;
	uint32_t right = 0, wrong = 0x7f81; /* a NaN; in f32 a tiny number */
	struct cmd_pattern_fault fault;
	int32_t value = 0;

	memcpy(&right, element, (size_t)pattern.element_bytes);
	while (pattern.bits[value] != right)
		value++;
	if (integer)
		wrong = pattern.bits[(value + 1) % CMD_PATTERN_VALUES];
	memcpy(element, &wrong, (size_t)pattern.element_bytes);
	ck_assert(!compare(&fault));
	ck_assert_int_eq(fault.position, position);
	ck_assert_int_eq(fault.is_value, is_value);
	ck_assert_int_eq(fault.head, e / DIMS);
	ck_assert_int_eq(fault.dim, e % DIMS);
	ck_assert_int_eq(fault.expected, value - 128);
	ck_assert_int_eq(fault.got_is_integer, integer);
	ck_assert_int_eq(fault.got,
	                 integer ? (value + 1) % CMD_PATTERN_VALUES - 128 : 0x7f81);
	memcpy(element, &right, (size_t)pattern.element_bytes);
}

START_TEST(every_element_that_differs_is_found_and_named)
{
	init((enum quire_dtype)_i);
	write_rows(SEED, 1);
	for (int64_t i = 0; i < COUNT * 2 * HEADS * DIMS; i++) {
		int64_t row = i / (HEADS * DIMS);

		spoil_and_find(row / 2, (int)(row % 2), i % (HEADS * DIMS), true);
		if (pattern.element_bytes > 1)
			spoil_and_find(row / 2, (int)(row % 2), i % (HEADS * DIMS),
			               false);
	}
}
END_TEST

START_TEST(rows_that_belong_elsewhere_do_not_pass)
{
	struct cmd_pattern_fault fault;
	char row[HEADS * DIMS * 4];

	init((enum quire_dtype)_i);
	write_rows(SEED + 1, 1);
	ck_assert(!compare(&fault));
	write_rows(SEED, 0);
	ck_assert(!compare(&fault));
	write_rows(SEED, 1);
	memcpy(row, row_of(4, 0), (size_t)pattern.row_bytes);
	memcpy(row_of(4, 0), row_of(4, 1), (size_t)pattern.row_bytes);
	ck_assert(!compare(&fault));
	ck_assert_int_eq(fault.position, 4);
	memcpy(row_of(4, 0), row, (size_t)pattern.row_bytes);
	memcpy(row_of(5, 0), row, (size_t)pattern.row_bytes);
	ck_assert(!compare(&fault));
	ck_assert_int_eq(fault.position, 5);
}
END_TEST

START_TEST(streams_and_lives_have_seeds_of_their_own)
{
	uint64_t seeds[4 * 4 * 4];
	int32_t n = 0;

	for (uint64_t request = 0; request < 4; request++)
		for (int32_t label = 0; label < 4; label++)
			for (uint64_t life = 0; life < 4; life++)
				seeds[n++] = cmd_pattern_seed(request, label, life);
	for (int32_t i = 0; i < n; i++)
		for (int32_t j = 0; j < i; j++)
			ck_assert_uint_ne(seeds[i], seeds[j]);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("pattern");
	TCase *tcase = tcase_create("pattern");

	suite_add_tcase(suite, tcase);
	tcase_add_loop_test(tcase, every_value_is_exact_in_every_dtype, 0,
	                    QUIRE_DTYPE_COUNT);
	tcase_add_loop_test(tcase, rows_as_written_pass, 0, QUIRE_DTYPE_COUNT);
	tcase_add_loop_test(tcase, every_element_that_differs_is_found_and_named, 0,
	                    QUIRE_DTYPE_COUNT);
	tcase_add_loop_test(tcase, rows_that_belong_elsewhere_do_not_pass, 0,
	                    QUIRE_DTYPE_COUNT);
	tcase_add_test(tcase, streams_and_lives_have_seeds_of_their_own);
	return run_suite(suite);
}
