/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <quire/kernels/layout.h>

#include "kernels/move_impl.h"

#include "tests/kernels/naive_cache.h"
#include "tests/run_suite.h"

#include <check.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* A shape of each layout; every field may grow by one. */
static const struct quire_shape small[QUIRE_LAYOUT_COUNT] = {
	{QUIRE_NHD, QUIRE_BF16, 3, 5, 4, 2, 7},
	{QUIRE_HND, QUIRE_F32, 3, 5, 4, 2, 7},
	{QUIRE_MLA, QUIRE_FP8_E4M3, 3, 5, 4, 1, 7},
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

/* Every element where the layout's dimensions put it, and each place used once. */
static void expect_all_places(const struct quire_shape *shape)
{
	int64_t at[NUM_AXES] = {0};
	int64_t total = naive_total(shape);
	int64_t bytes = quire_dtype_bytes(shape->dtype);
	char *used = calloc(1, (size_t)total);
	struct quire_geometry g;

	ck_assert_int_eq(quire_geometry_init(shape, &g, NULL), QUIRE_OK);
	ck_assert_int_eq(g.nbytes, total * bytes);
	do {
		int64_t element = at[AXIS_HEAD] * shape->head_dim + at[AXIS_DIM];
		int64_t chunk = at[AXIS_KV] * g.pieces + element / g.token_stride;
		int64_t place = quire_geometry_offset(&g, at[AXIS_LAYER], at[AXIS_PAGE],
		                                      chunk, at[AXIS_TOKEN]) +
		                element % g.token_stride * bytes;

		if (place != naive_place(shape, at) * bytes || used[place / bytes]++)
			ck_abort_msg("%s, page size %d, %d heads: element %ld is at %ld",
			             quire_layout_name(shape->layout),
			             (int)shape->page_size, (int)shape->num_kv_heads,
			             (long)naive_place(shape, at), (long)place);
	} while (naive_next(shape, at));
	ck_assert_ptr_null(memchr(used, 0, (size_t)total));
	free(used);
}

START_TEST(every_element_is_where_the_dimensions_of_the_layout_put_it)
{
	static const int64_t sizes[][3] = {
		{1, 2, 3}, {1, 3, 4}, {1, 2, 5}, {1, 2, 3}, {1, 4, 7}};
	struct quire_shape shape = {.layout = (enum quire_layout)_i};
	int all = 3 * 3 * 3 * 3 * 3;

	for (int choice = 0; choice < all; choice++) {
		shape.dtype = (enum quire_dtype)(choice % QUIRE_DTYPE_COUNT);
		shape.num_layers = sizes[0][choice % 3];
		shape.num_pages = sizes[1][choice / 3 % 3];
		shape.page_size = sizes[2][choice / 9 % 3];
		shape.num_kv_heads = sizes[3][choice / 27 % 3];
		shape.head_dim = sizes[4][choice / 81];
		if (shape.layout == QUIRE_MLA && shape.num_kv_heads > 1)
			continue;
		expect_all_places(&shape);
	}
}
END_TEST

/* Bytes from element @at to the one that is one further along an axis. */
static int64_t step_along(const struct quire_shape *shape, enum naive_axis axis)
{
	int64_t at[NUM_AXES] = {0};

	at[axis] = 1;
	return naive_place(shape, at);
}

START_TEST(strides_are_steps_along_the_dimensions)
{
	const struct quire_shape *shape = &small[_i];
	int64_t num_kv = shape->layout == QUIRE_MLA ? 1 : 2;
	int64_t bytes = quire_dtype_bytes(shape->dtype);
	int64_t row = shape->num_kv_heads * shape->head_dim;
	struct quire_geometry g;

	ck_assert_int_eq(quire_geometry_init(shape, &g, NULL), QUIRE_OK);
	ck_assert_int_eq(g.num_layers, 3);
	ck_assert_int_eq(g.num_pages, 5);
	ck_assert_int_eq(g.page_size, 4);
	ck_assert_int_eq(g.dtype, shape->dtype);
	ck_assert_int_eq(g.element_bytes, bytes);
	ck_assert_int_eq(g.num_kv, num_kv);
	ck_assert_int_eq(g.pieces, shape->layout == QUIRE_HND ? 2 : 1);
	ck_assert_int_eq(g.row_bytes, row * bytes);
	ck_assert_int_eq(g.token_bytes, num_kv * row * bytes);
	ck_assert_int_eq(g.token_stride, step_along(shape, AXIS_TOKEN));
	ck_assert_int_eq(g.page_stride, step_along(shape, AXIS_PAGE));
	ck_assert_int_eq(g.layer_stride, step_along(shape, AXIS_LAYER));
	ck_assert_int_eq(g.chunk_stride, g.page_size * g.token_stride);
	ck_assert_int_eq(g.nbytes, num_kv * 3 * 5 * 4 * row * bytes);
}
END_TEST

/* With one token a page, head and token of HND follow each other as in NHD. */
START_TEST(rows_of_pages_of_one_token_are_in_one_piece)
{
	struct quire_shape shape = small[_i];
	struct quire_geometry g;

	shape.page_size = 1;
	ck_assert_int_eq(quire_geometry_init(&shape, &g, NULL), QUIRE_OK);
	ck_assert_int_eq(g.pieces, 1);
	ck_assert_int_eq(g.token_stride, shape.num_kv_heads * shape.head_dim);
}
END_TEST

static const struct {
	const char *name;
	size_t offset;
	int64_t max;
} fields[] = {
	{"num_layers", offsetof(struct quire_shape, num_layers), INT64_C(1) << 62},
	{"num_pages", offsetof(struct quire_shape, num_pages), 1 << 24},
	{"page_size", offsetof(struct quire_shape, page_size), 1 << 20},
	{"num_kv_heads", offsetof(struct quire_shape, num_kv_heads), INT64_C(1) << 62},
	{"head_dim", offsetof(struct quire_shape, head_dim), INT64_C(1) << 62},
};
#define NUM_FIELDS (sizeof(fields) / sizeof(fields[0]))
#define HEADS_AT   3

static int64_t field_max(size_t field, enum quire_layout layout)
{
	return field == HEADS_AT && layout == QUIRE_MLA ? 1 : fields[field].max;
}

START_TEST(every_field_out_of_range_is_named_with_its_bound)
{
	const int64_t low[] = {0, -1, INT64_MIN};

	for (size_t i = 0; i < NUM_FIELDS; i++) {
		struct quire_shape shape = small[_i];
		int64_t *value = (int64_t *)((char *)&shape + fields[i].offset);
		int64_t max = field_max(i, shape.layout);

		for (size_t k = 0; k < 3; k++) {
			*value = low[k];
			expect_refused(&shape, fields[i].name, low[k], 1);
		}
		*value = max + 1;
		expect_refused(&shape, fields[i].name, max + 1, max);
		*value = INT64_MAX;
		expect_refused(&shape, fields[i].name, INT64_MAX, max);
	}
}
END_TEST

START_TEST(every_field_alone_may_be_as_large_as_its_bound_or_the_bytes_allow)
{
	for (size_t i = 0; i < NUM_FIELDS; i++) {
		struct quire_shape shape = {
			(enum quire_layout)_i, QUIRE_FP8_E5M2, 1, 1, 1, 1, 1};
		int64_t *value = (int64_t *)((char *)&shape + fields[i].offset);
		int64_t max = field_max(i, shape.layout);
		int64_t rows = shape.layout == QUIRE_MLA ? 1 : 2;
		struct quire_geometry g;

		if (max > (INT64_C(1) << 62) / rows)
			max = (INT64_C(1) << 62) / rows;
		*value = max;
		ck_assert_int_eq(quire_geometry_init(&shape, &g, NULL), QUIRE_OK);
		ck_assert_int_eq(g.nbytes, max * rows);
	}
}
END_TEST

START_TEST(a_number_that_is_no_layout_or_dtype_is_named)
{
	struct quire_shape shape = small[0];

	shape.layout = (enum quire_layout)QUIRE_LAYOUT_COUNT;
	expect_refused(&shape, "layout", 3, 2);
	shape.layout = (enum quire_layout)-1;
	expect_refused(&shape, "layout", -1, 0);
	shape = small[0];
	shape.dtype = (enum quire_dtype)QUIRE_DTYPE_COUNT;
	expect_refused(&shape, "dtype", 5, 4);
	shape.dtype = (enum quire_dtype)-1;
	expect_refused(&shape, "dtype", -1, 0);
}
END_TEST

START_TEST(the_first_of_several_wrong_fields_is_named)
{
	struct quire_shape shape = {QUIRE_NHD, QUIRE_F32, 0, 0, 0, 0, 0};

	for (size_t i = 0; i < NUM_FIELDS; i++) {
		expect_refused(&shape, fields[i].name, 0, 1);
		*(int64_t *)((char *)&shape + fields[i].offset) = 1;
	}
}
END_TEST

START_TEST(a_product_beyond_2_to_the_62_is_refused)
{
	/* 2^10 layers, 2^20 pages and tokens, and what makes 2^12 bytes a token. */
	struct quire_shape shapes[QUIRE_LAYOUT_COUNT] = {
		{QUIRE_NHD, QUIRE_BF16, 1 << 10, 1 << 20, 1 << 20, 2, 1 << 9},
		{QUIRE_HND, QUIRE_F32, 1 << 10, 1 << 20, 1 << 20, 1 << 3, 1 << 6},
		{QUIRE_MLA, QUIRE_FP8_E4M3, 1 << 10, 1 << 20, 1 << 20, 1, 1 << 12},
	};
	struct quire_shape *shape = &shapes[_i];
	struct quire_geometry g;

	ck_assert_int_eq(quire_geometry_init(shape, &g, NULL), QUIRE_OK);
	ck_assert_int_eq(g.nbytes, INT64_C(1) << 62);
	shape->num_layers++;
	expect_refused(shape, "bytes of the shape",
	               (INT64_C(1) << 62) + (INT64_C(1) << 52), INT64_C(1) << 62);
	/* A product that is 0 modulo 2^64, and one that is small. */
	shape->num_layers = INT64_C(1) << 32;
	expect_refused(shape, "bytes of the shape", INT64_MAX, INT64_C(1) << 62);
	shape->num_layers = (INT64_C(1) << 44) + 1;
	shape->page_size = shape->num_kv_heads = shape->head_dim = 1;
	expect_refused(shape, "bytes of the shape", INT64_MAX, INT64_C(1) << 62);
}
END_TEST

/* 16,384 elements a page; two bytes each. */
static const struct quire_shape far_pages[QUIRE_LAYOUT_COUNT] = {
	{QUIRE_NHD, QUIRE_BF16, 4, 1000001, 16, 8, 64},
	{QUIRE_HND, QUIRE_BF16, 4, 1000001, 16, 8, 64},
	{QUIRE_MLA, QUIRE_BF16, 4, 1000001, 32, 1, 512},
};

START_TEST(offsets_of_far_pages_keep_all_64_bits)
{
	const struct quire_shape *shape = &far_pages[_i];
	int32_t page = 1000000;
	int32_t last = (int32_t)shape->page_size - 1;
	int64_t kv = naive_size(shape, AXIS_KV) - 1;
	int64_t at[NUM_AXES] = {3, page, kv, last, 0, 0};
	struct quire_slots slots = {.page = &page, .offset = &last, .n = 1};
	struct quire_geometry g;
	uintptr_t base = 0x10000;

	ck_assert_int_eq(quire_geometry_init(shape, &g, NULL), QUIRE_OK);
	ck_assert_int_eq(g.page_stride, 16384);
	ck_assert_uint_eq(base + (uintptr_t)quire_geometry_offset(&g, 0, page, 0, 0),
	                  0x10000 + UINT64_C(32768000000));
	/* The last token of the storage, and the last of its pieces. */
	ck_assert_int_eq(quire_slot_offset(&g, &slots, 3, 0, kv),
	                 naive_place(shape, at) * 2);
	ck_assert_int_eq(
		quire_geometry_offset(&g, 3, page, g.num_kv * g.pieces - 1, last),
		INT64_C(4) * 1000001 * 32768 - g.token_stride * 2);
	/* The same token as the last of a stream that lists only this page. */
	slots = (struct quire_slots){.page = &page, .first = last, .n = 1};
	ck_assert_int_eq(quire_slot_offset(&g, &slots, 3, 0, kv),
	                 naive_place(shape, at) * 2);
}
END_TEST

START_TEST(layouts_have_names)
{
	static const char *const names[QUIRE_LAYOUT_COUNT] = {"NHD", "HND", "MLA"};
	enum quire_layout layout = (enum quire_layout)7;

	ck_assert_str_eq(quire_layout_name((enum quire_layout)QUIRE_LAYOUT_COUNT),
	                 "unknown");
	ck_assert_str_eq(quire_layout_name((enum quire_layout)UINT32_MAX), "unknown");
	ck_assert_int_eq(quire_layout_parse("nhd", &layout), QUIRE_INVALID);
	ck_assert_int_eq(quire_layout_parse("NHDX", &layout), QUIRE_INVALID);
	ck_assert_int_eq(quire_layout_parse("", &layout), QUIRE_INVALID);
	ck_assert_int_eq(quire_layout_parse(NULL, &layout), QUIRE_INVALID);
	ck_assert_int_eq(layout, 7);
	for (int i = 0; i < QUIRE_LAYOUT_COUNT; i++) {
		ck_assert_str_eq(quire_layout_name((enum quire_layout)i), names[i]);
		ck_assert_int_eq(quire_layout_parse(names[i], &layout), QUIRE_OK);
		ck_assert_int_eq(layout, i);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("layout");
	TCase *each = tcase_create("each layout");
	TCase *all = tcase_create("all layouts");

	suite_add_tcase(suite, each);
	suite_add_tcase(suite, all);
	tcase_add_loop_test(each,
	                    every_element_is_where_the_dimensions_of_the_layout_put_it, 0,
	                    QUIRE_LAYOUT_COUNT);
	tcase_add_loop_test(each, strides_are_steps_along_the_dimensions, 0,
	                    QUIRE_LAYOUT_COUNT);
	tcase_add_loop_test(each, rows_of_pages_of_one_token_are_in_one_piece, 0,
	                    QUIRE_LAYOUT_COUNT);
	tcase_add_loop_test(each, every_field_out_of_range_is_named_with_its_bound, 0,
	                    QUIRE_LAYOUT_COUNT);
	tcase_add_loop_test(
		each, every_field_alone_may_be_as_large_as_its_bound_or_the_bytes_allow,
		0, QUIRE_LAYOUT_COUNT);
	tcase_add_loop_test(each, a_product_beyond_2_to_the_62_is_refused, 0,
	                    QUIRE_LAYOUT_COUNT);
	tcase_add_loop_test(each, offsets_of_far_pages_keep_all_64_bits, 0,
	                    QUIRE_LAYOUT_COUNT);
	tcase_add_test(all, a_number_that_is_no_layout_or_dtype_is_named);
	tcase_add_test(all, the_first_of_several_wrong_fields_is_named);
	tcase_add_test(all, layouts_have_names);
	return run_suite(suite);
}
