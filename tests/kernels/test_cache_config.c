/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <quire/kernels/cache.h>
#include <quire/runtime/limits.h>

#include "tests/run_suite.h"

#include <check.h>
#include <stddef.h>
#include <string.h>

/* All that has no default, and little of it. */
static struct quire_cache_config complete(void)
{
	struct quire_cache_config config;

	quire_cache_config_init(&config);
	config.num_layers = 3;
	config.num_kv_heads = 8;
	config.head_dim = 64;
	config.max_seq_len = 1000;
	return config;
}

static void expect_accepted(const struct quire_cache_config *config, int64_t heads)
{
	struct quire_refusal refusal = {0};
	struct quire_shape shape;

	ck_assert_msg(quire_cache_config_shape(config, &shape, &refusal) == QUIRE_OK,
	              "refused for %s", refusal.what);
	ck_assert_int_eq(shape.layout, config->layout);
	ck_assert_int_eq(shape.dtype, config->dtype);
	ck_assert_int_eq(shape.num_layers, config->num_layers);
	ck_assert_int_eq(shape.num_pages, config->max_num_pages);
	ck_assert_int_eq(shape.page_size, config->page_size);
	ck_assert_int_eq(shape.num_kv_heads, heads);
	ck_assert_int_eq(shape.head_dim, config->head_dim);
}

static void expect_refused(const struct quire_cache_config *config, const char *what,
                           int64_t got, int64_t bound)
{
	struct quire_refusal refusal = {0};
	struct quire_shape shape;
	struct quire_shape before;

	memset(&shape, 0x5a, sizeof(shape));
	before = shape;
	ck_assert_int_eq(quire_cache_config_shape(config, &shape, &refusal),
	                 QUIRE_INVALID);
	ck_assert_int_eq(refusal.status, QUIRE_INVALID);
	ck_assert_str_eq(refusal.what, what);
	ck_assert_int_eq(refusal.index, -1);
	ck_assert_int_eq(refusal.got, got);
	ck_assert_int_eq(refusal.expected, bound);
	ck_assert_mem_eq(&shape, &before, sizeof(shape));
	ck_assert_int_eq(quire_cache_config_shape(config, &shape, NULL), QUIRE_INVALID);
}

START_TEST(defaults_are_the_documented_ones)
{
	struct quire_cache_config config;

	memset(&config, 0x5a, sizeof(config));
	quire_cache_config_init(&config);
	ck_assert_int_eq(config.layout, QUIRE_NHD);
	ck_assert_int_eq(config.dtype, QUIRE_BF16);
	ck_assert_int_eq(config.max_num_pages, 2048);
	ck_assert_int_eq(config.page_size, 128);
	ck_assert_int_eq(config.num_ranks, 1);
	ck_assert_int_eq(config.num_layers, 0);
	ck_assert_int_eq(config.num_kv_heads, 0);
	ck_assert_int_eq(config.num_qo_heads, 0);
	ck_assert_int_eq(config.head_dim, 0);
	ck_assert_int_eq(config.max_seq_len, 0);
	config = complete();
	expect_accepted(&config, 8);
}
END_TEST

/* Field, its bounds. */
static const struct {
	const char *name;
	size_t offset;
	int64_t min;
	int64_t max;
} fields[] = {
	{"num_layers", offsetof(struct quire_cache_config, num_layers), 1,
         INT64_C(1) << 62},
	{"num_kv_heads", offsetof(struct quire_cache_config, num_kv_heads), 1, INT64_MAX},
	{"num_qo_heads", offsetof(struct quire_cache_config, num_qo_heads), 0, INT64_MAX},
	{"head_dim", offsetof(struct quire_cache_config, head_dim), 1, INT64_C(1) << 62},
	{"max_seq_len", offsetof(struct quire_cache_config, max_seq_len), 1, 2048 * 128},
	{"max_num_pages", offsetof(struct quire_cache_config, max_num_pages), 1,
         QUIRE_PAGES_MAX},
	{"page_size", offsetof(struct quire_cache_config, page_size), 1,
         QUIRE_PAGE_SIZE_MAX},
	{"num_ranks", offsetof(struct quire_cache_config, num_ranks), 1, INT64_MAX},
};
#define NUM_FIELDS ((int)(sizeof(fields) / sizeof(fields[0])))

START_TEST(a_field_out_of_range_is_named_with_its_bound)
{
	struct quire_cache_config config = complete();
	int64_t *value = (int64_t *)((char *)&config + fields[_i].offset);
	int64_t min = fields[_i].min;
	int64_t max = fields[_i].max;

	*value = min - 1;
	expect_refused(&config, fields[_i].name, min - 1, min);
	*value = INT64_MIN;
	expect_refused(&config, fields[_i].name, INT64_MIN, min);
	if (max == INT64_MAX)
		return;
	*value = max + 1;
	expect_refused(&config, fields[_i].name, max + 1, max);
	*value = INT64_MAX;
	expect_refused(&config, fields[_i].name, INT64_MAX, max);
}
END_TEST

START_TEST(a_number_that_is_no_layout_or_dtype_is_named)
{
	struct quire_cache_config config = complete();

	config.layout = (enum quire_layout)QUIRE_LAYOUT_COUNT;
	expect_refused(&config, "layout", QUIRE_LAYOUT_COUNT, QUIRE_LAYOUT_COUNT - 1);
	config = complete();
	config.dtype = (enum quire_dtype)QUIRE_DTYPE_COUNT;
	expect_refused(&config, "dtype", QUIRE_DTYPE_COUNT, QUIRE_DTYPE_COUNT - 1);
}
END_TEST

START_TEST(heads_are_spread_over_ranks_as_documented)
{
	struct quire_cache_config config = complete();

	config.layout = (enum quire_layout)_i;
	for (int64_t heads = 1; heads <= 24; heads++) {
		for (int64_t ranks = 1; ranks <= 26; ranks++) {
			config.num_kv_heads = heads;
			config.num_ranks = ranks;
			if (ranks >= heads)
				expect_accepted(&config, 1);
			else if (heads % ranks == 0)
				expect_accepted(&config, heads / ranks);
			else
				expect_refused(
					&config,
					"num_kv_heads: not a multiple of num_ranks", 0,
					0);
		}
	}
	config.num_kv_heads = 3;
	config.num_ranks = INT64_MAX;
	expect_accepted(&config, 1);
}
END_TEST

/* A latent is not spread over ranks: each of them holds it whole. */
START_TEST(mla_has_one_head_on_any_number_of_ranks)
{
	struct quire_cache_config config = complete();

	config.layout = QUIRE_MLA;
	config.num_kv_heads = 1;
	for (int64_t ranks = 1; ranks <= 8; ranks++) {
		config.num_ranks = ranks;
		expect_accepted(&config, 1);
	}
	config.num_kv_heads = 2;
	expect_refused(&config, "num_kv_heads", 2, 1);
	config.num_ranks = 1;
	expect_refused(&config, "num_kv_heads", 2, 1);
}
END_TEST

START_TEST(query_heads_are_a_multiple_of_the_others)
{
	struct quire_cache_config config = complete();

	for (int64_t heads = 0; heads <= 40; heads++) {
		config.num_qo_heads = heads;
		if (heads % 8 == 0)
			expect_accepted(&config, 8);
		else
			expect_refused(&config,
			               "num_qo_heads: not a multiple of num_kv_heads", 0,
			               0);
	}
}
END_TEST

START_TEST(the_longest_stream_fits_in_the_pool)
{
	struct quire_cache_config config = complete();

	config.max_num_pages = 7;
	config.page_size = 3;
	config.max_seq_len = 21;
	expect_accepted(&config, 8);
	config.max_seq_len = 22;
	expect_refused(&config, "max_seq_len", 22, 21);
	/* Positions are int32, however large the pool. */
	config.max_num_pages = QUIRE_PAGES_MAX;
	config.page_size = 1024;
	config.max_seq_len = QUIRE_SEQ_TOKENS_MAX;
	expect_accepted(&config, 8);
	config.max_seq_len++;
	expect_refused(&config, "max_seq_len", INT64_C(1) << 31, QUIRE_SEQ_TOKENS_MAX);
}
END_TEST

START_TEST(a_product_too_large_is_refused_and_ranks_make_it_smaller)
{
	struct quire_cache_config config = complete();

	/* 2 * 2 bytes * 2^20 pages * 2^12 tokens * 2^8 layers * 2^10 heads * 2^10 */
	config.max_num_pages = 1 << 20;
	config.page_size = 1 << 12;
	config.num_layers = 1 << 8;
	config.num_kv_heads = 1 << 10;
	config.head_dim = 1 << 10;
	expect_accepted(&config, 1 << 10);
	config.num_kv_heads *= 2;
	expect_refused(&config, "bytes of the shape", INT64_MAX, INT64_C(1) << 62);
	config.num_ranks = 2;
	expect_accepted(&config, 1 << 10);
	config.num_layers = INT64_C(1) << 40;
	expect_refused(&config, "bytes of the shape", INT64_MAX, INT64_C(1) << 62);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("cache_config");
	TCase *tcase = tcase_create("config");

	suite_add_tcase(suite, tcase);
	tcase_add_test(tcase, defaults_are_the_documented_ones);
	tcase_add_loop_test(tcase, a_field_out_of_range_is_named_with_its_bound, 0,
	                    NUM_FIELDS);
	tcase_add_test(tcase, a_number_that_is_no_layout_or_dtype_is_named);
	tcase_add_loop_test(tcase, heads_are_spread_over_ranks_as_documented, QUIRE_NHD,
	                    QUIRE_MLA);
	tcase_add_test(tcase, mla_has_one_head_on_any_number_of_ranks);
	tcase_add_test(tcase, query_heads_are_a_multiple_of_the_others);
	tcase_add_test(tcase, the_longest_stream_fits_in_the_pool);
	tcase_add_test(tcase, a_product_too_large_is_refused_and_ranks_make_it_smaller);
	return run_suite(suite);
}
