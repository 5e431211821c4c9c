/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <quire/kernels/layout.h>

#include "kernels/move_impl.h"

#include "tests/run_suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static const struct quire_shape small = {
	.layout = QUIRE_NHD,
	.dtype = QUIRE_BF16,
	.num_layers = 3,
	.num_pages = 5,
	.page_size = 4,
	.num_kv_heads = 2,
	.head_dim = 7,
};

static void expect_refused(const struct quire_shape *shape, const char *what, int64_t got,
                           int64_t bound)
{
	struct quire_geometry geometry;
	struct quire_geometry before;
	struct quire_refusal refusal = {0};

	memset(&geometry, 0x5a, sizeof(geometry));
	before = geometry;
	ck_assert_int_eq(quire_geometry_init(shape, &geometry, &refusal), QUIRE_INVALID);
	ck_assert_int_eq(refusal.status, QUIRE_INVALID);
	ck_assert_str_eq(refusal.what, what);
	ck_assert_int_eq(refusal.index, -1);
	ck_assert_int_eq(refusal.got, got);
	ck_assert_int_eq(refusal.expected, bound);
	ck_assert_mem_eq(&geometry, &before, sizeof(geometry));
	ck_assert_int_eq(quire_geometry_init(shape, &geometry, NULL), QUIRE_INVALID);
}

START_TEST(an_offset_counts_what_lies_before_it)
{
	const enum quire_dtype dtypes[] = {QUIRE_F32, QUIRE_F16, QUIRE_BF16};
	const int64_t element_bytes[] = {4, 2, 2};
	struct quire_shape shape = small;
	struct quire_geometry g;
	int64_t before = 0;

	shape.dtype = dtypes[_i];
	ck_assert_int_eq(quire_geometry_init(&shape, &g, NULL), QUIRE_OK);
	for (int64_t layer = 0; layer < shape.num_layers; layer++)
		for (int64_t page = 0; page < shape.num_pages; page++)
			for (int64_t kv = 0; kv < 2; kv++)
				for (int64_t token = 0; token < shape.page_size;
				     token++) {
					ck_assert_int_eq(quire_geometry_offset(&g, layer,
					                                       page, kv,
					                                       token),
					                 before);
					for (int64_t head = 0; head < shape.num_kv_heads;
					     head++)
						before += shape.head_dim *
						          element_bytes[_i];
				}
	ck_assert_int_eq(g.nbytes, before);
	ck_assert_int_eq(g.row_bytes, 14 * element_bytes[_i]);
	ck_assert_int_eq(g.element_bytes, element_bytes[_i]);
	ck_assert_int_eq(g.num_layers, 3);
	ck_assert_int_eq(g.num_pages, 5);
	ck_assert_int_eq(g.page_size, 4);
	ck_assert_int_eq(g.dtype, shape.dtype);
	ck_assert_int_eq(g.token_stride, 2 * 7);
	ck_assert_int_eq(g.kv_stride, 4 * 2 * 7);
	ck_assert_int_eq(g.page_stride, 2 * 4 * 2 * 7);
	ck_assert_int_eq(g.layer_stride, 5 * 2 * 4 * 2 * 7);
}
END_TEST

START_TEST(every_field_out_of_range_is_named_with_its_bound)
{
	static const struct {
		const char *name;
		size_t offset;
		int64_t max;
	} fields[] = {
		{"num_layers", offsetof(struct quire_shape, num_layers),
	         INT64_C(1) << 62},
		{"num_pages", offsetof(struct quire_shape, num_pages), 1 << 24},
		{"page_size", offsetof(struct quire_shape, page_size), 1 << 20},
		{"num_kv_heads", offsetof(struct quire_shape, num_kv_heads),
	         INT64_C(1) << 62},
		{"head_dim", offsetof(struct quire_shape, head_dim), INT64_C(1) << 62},
	};
	const int64_t low[] = {0, -1, INT64_MIN};

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		struct quire_shape shape = small;
		int64_t *value = (int64_t *)((char *)&shape + fields[i].offset);

		for (size_t k = 0; k < 3; k++) {
			*value = low[k];
			expect_refused(&shape, fields[i].name, low[k], 1);
		}
		*value = fields[i].max + 1;
		expect_refused(&shape, fields[i].name, fields[i].max + 1, fields[i].max);
		*value = INT64_MAX;
		expect_refused(&shape, fields[i].name, INT64_MAX, fields[i].max);
	}
}
END_TEST

START_TEST(a_number_that_is_no_layout_or_dtype_is_named)
{
	struct quire_shape shape = small;

	shape.layout = (enum quire_layout)1;
	expect_refused(&shape, "layout", 1, 0);
	shape.layout = QUIRE_NHD;
	shape.dtype = (enum quire_dtype)3;
	expect_refused(&shape, "dtype", 3, 2);
}
END_TEST

START_TEST(the_largest_fields_are_accepted_and_1_is_enough)
{
	struct quire_shape shape = {QUIRE_NHD, QUIRE_F32, 1, 1 << 24, 1 << 20, 1, 1};
	struct quire_geometry g;

	ck_assert_int_eq(quire_geometry_init(&shape, &g, NULL), QUIRE_OK);
	ck_assert_int_eq(g.nbytes, INT64_C(1) << (24 + 20 + 1 + 2));
	shape = (struct quire_shape){QUIRE_NHD, QUIRE_F32, 1, 1, 1, 1, 1};
	ck_assert_int_eq(quire_geometry_init(&shape, &g, NULL), QUIRE_OK);
	ck_assert_int_eq(g.nbytes, 8);
}
END_TEST

START_TEST(a_product_beyond_2_to_the_62_is_refused)
{
	/* 2 * 2 bytes * 2^20 * 2^20 * 2^10 * 2^10 = 2^62 */
	struct quire_shape shape = {QUIRE_NHD, QUIRE_BF16, 1 << 10, 1 << 20,
	                            1 << 20,   1,          1 << 10};
	struct quire_geometry g;

	ck_assert_int_eq(quire_geometry_init(&shape, &g, NULL), QUIRE_OK);
	ck_assert_int_eq(g.nbytes, INT64_C(1) << 62);
	shape.num_layers++;
	expect_refused(&shape, "bytes of the shape",
	               (INT64_C(1) << 62) + (INT64_C(1) << 52), INT64_C(1) << 62);
	/* A product that would be 0 modulo 2^64. */
	shape.num_layers = INT64_C(1) << 32;
	shape.num_kv_heads = INT64_C(1) << 32;
	expect_refused(&shape, "bytes of the shape", INT64_MAX, INT64_C(1) << 62);
}
END_TEST

START_TEST(offsets_of_far_pages_keep_all_64_bits)
{
	/* A page of 16,384 elements: 2 * 16 tokens * 8 heads * 64. */
	struct quire_shape shape = {QUIRE_NHD, QUIRE_BF16, 4, 1000001, 16, 8, 64};
	int32_t page = 1000000;
	int32_t offset = 15;
	struct quire_slots slots = {.page = &page, .offset = &offset, .n = 1};
	struct quire_geometry g;
	uintptr_t base = 0x10000;

	ck_assert_int_eq(quire_geometry_init(&shape, &g, NULL), QUIRE_OK);
	ck_assert_int_eq(g.page_stride, 16384);
	ck_assert_uint_eq(base + (uintptr_t)quire_geometry_offset(&g, 0, 1000000, 0, 0),
	                  0x10000 + UINT64_C(32768000000));
	/* Layer 3, V, token 15: the last row of the storage. */
	ck_assert_int_eq(quire_slot_offset(&g, &slots, 3, 0, 1),
	                 INT64_C(4) * 1000001 * 32768 - 1024);
	/* The same token as number 15 of a stream that lists only this page. */
	slots = (struct quire_slots){.page = &page, .first = 15, .n = 1};
	ck_assert_int_eq(quire_slot_offset(&g, &slots, 3, 0, 1),
	                 INT64_C(4) * 1000001 * 32768 - 1024);
}
END_TEST

START_TEST(layouts_have_names)
{
	enum quire_layout layout = (enum quire_layout)7;

	ck_assert_str_eq(quire_layout_name(QUIRE_NHD), "NHD");
	ck_assert_str_eq(quire_layout_name((enum quire_layout)7), "unknown");
	ck_assert_int_eq(quire_layout_parse("nhd", &layout), QUIRE_INVALID);
	ck_assert_int_eq(quire_layout_parse("", &layout), QUIRE_INVALID);
	ck_assert_int_eq(quire_layout_parse(NULL, &layout), QUIRE_INVALID);
	ck_assert_int_eq(layout, 7);
	ck_assert_int_eq(quire_layout_parse("NHD", &layout), QUIRE_OK);
	ck_assert_int_eq(layout, QUIRE_NHD);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("layout");
	TCase *tcase = tcase_create("layout");

	suite_add_tcase(suite, tcase);
	tcase_add_loop_test(tcase, an_offset_counts_what_lies_before_it, 0, 3);
	tcase_add_test(tcase, every_field_out_of_range_is_named_with_its_bound);
	tcase_add_test(tcase, a_number_that_is_no_layout_or_dtype_is_named);
	tcase_add_test(tcase, the_largest_fields_are_accepted_and_1_is_enough);
	tcase_add_test(tcase, a_product_beyond_2_to_the_62_is_refused);
	tcase_add_test(tcase, offsets_of_far_pages_keep_all_64_bits);
	tcase_add_test(tcase, layouts_have_names);
	return run_suite(suite);
}
