/* SPDX-License-Identifier: MIT */
/*
 * What a pool costs in memory: how much, that none is asked for after create, and what
 * happens when there is none.
 */
#include "config.h"

#include "tests/runtime/counting_malloc.h"

#include "tests/alloc/pool_ways.h"
#include "tests/run_suite.h"

#include <check.h>

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

/* Page `first` and those before it, down to 0, `n` in all: a batch in reverse order. */
static void ck_assert_reversed(const int32_t *pages, int32_t first, int32_t n)
{
	for (int32_t i = 0; i < n; i++) {
		if (pages[i] != first - i)
			ck_abort_msg("place %d: page %d", (int)i, (int)pages[i]);
	}
}

/* Once for each kind, with both ways to give. */
START_TEST(the_largest_pool_works_at_both_ends)
{
	const int32_t most = QUIRE_PAGES_MAX;
	struct quire_pool *pool;
	int32_t *pages = malloc((size_t)most * sizeof(*pages));

	choose(2 * _i);
	ck_assert_ptr_nonnull(pages);
	pool = pool_of(most);
	ck_assert_int_eq(quire_pool_num_free(pool), most);
	ck_assert(quire_pool_try_allocate(pool, most, pages));
	ck_assert_int_eq(quire_pool_num_free(pool), 0);
	for (int32_t i = 0; i < most; i++) {
		if (pages[i] != i)
			ck_abort_msg("place %d: page %d", (int)i, (int)pages[i]);
		pages[i] = most - 1 - i;
	}
	ck_assert_int_eq(quire_pool_free(pool, pages, most / 2, NULL), QUIRE_OK);
	ck_assert_int_eq(quire_pool_free_single_giver(pool, pages + most / 2,
	                                              most - most / 2, NULL),
	                 QUIRE_OK);
	ck_assert_int_eq(quire_pool_num_free(pool), most);
	memset(pages, 0, (size_t)most * sizeof(*pages));
	ck_assert_int_eq(quire_pool_check(pool, pages, NULL), QUIRE_OK);
	ck_assert_reversed(pages, most - 1, most);
	ck_assert(quire_pool_try_allocate(pool, most - 1, pages));
	ck_assert_reversed(pages, most - 1, most - 1);
	ck_assert(quire_pool_try_allocate(pool, 1, pages));
	ck_assert_int_eq(pages[0], 0);
	quire_pool_destroy(pool);
	free(pages);
}
END_TEST

/* Not asked of sizes to which an alignment of two megabytes adds a good part: that is
 * address space, never touched. */
START_TEST(a_pool_takes_at_most_41_bytes_per_page)
{
	static const int32_t sizes[] = {1000, 1 << 20};

	choose(_i);
	for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
		struct quire_pool *pool = pool_of(sizes[k]);
		size_t bytes = sizeof(*pool), most = (size_t)sizes[k] * 41;

		if (kind == QUIRE_POOL_LOCK_FREE)
			bytes += malloc_usable_size(pool->fifo.node);
		else
			bytes += malloc_usable_size(pool->lock_fifo.ring) +
			         malloc_usable_size(pool->lock_fifo.owned);
		ck_assert_uint_le(bytes, most);
		quire_pool_destroy(pool);
	}
}
END_TEST

#if COUNTING_MALLOC

/* Every call, with success and refusal; 0, or how often malloc was asked. */
static int64_t requests_of_all_calls(struct quire_pool *pool, int32_t num_pages)
{
	int64_t before = atomic_load(&counting.requests);
	int32_t pages[MODEL_PAGES_MOST];
	struct quire_refusal refusal;

	for (int32_t n = 1; n <= num_pages; n++) {
		bool good =
			quire_pool_try_allocate(pool, n, pages) &&
			!quire_pool_try_allocate(pool, num_pages, pages) &&
			quire_pool_allocate(pool, num_pages, pages, &refusal) &&
			quire_pool_allocate_wait(pool, num_pages, pages, 0, &refusal) &&
			give(pool, (int32_t[]){num_pages}, 1, &refusal) &&
			!give(pool, pages, n, &refusal) &&
			give(pool, pages, 1, &refusal) &&
			quire_pool_allocate_wait(pool, num_pages, pages, 0, &refusal) ==
				QUIRE_OK &&
			!give(pool, pages, num_pages, &refusal) &&
			quire_pool_num_free(pool) == num_pages &&
			quire_pool_num_pages(pool) == num_pages;

		if (!good)
			return -1;
	}
	return atomic_load(&counting.requests) - before;
}

START_TEST(nothing_is_allocated_after_create)
{
	struct quire_pool *pool;
	int64_t before = atomic_load(&counting.requests);

	choose(_i);
	pool = pool_of(MODEL_PAGES_MOST);
	ck_assert_int_gt(atomic_load(&counting.requests), before);
	ck_assert_int_eq(requests_of_all_calls(pool, MODEL_PAGES_MOST), 0);
	ck_end(pool);
}
END_TEST

/* The n-th request of memory fails, for every n: nothing is made and nothing is left. */
START_TEST(a_create_without_memory_leaves_nothing)
{
	struct quire_pool *pool = NULL;
	enum quire_status status;
	int64_t nth = 0;

	choose(_i);
	atomic_store(&counting.remembers, true);
	do {
		atomic_store(&counting.fail_in, ++nth);
		status = quire_pool_create_kind(5, kind, &pool);
		if (status == QUIRE_OK)
			break;
		ck_assert_int_eq(status, QUIRE_NO_MEMORY);
		ck_assert_ptr_null(pool);
		ck_assert_int_eq(counting.num_live, 0);
	} while (nth < 10);
	atomic_store(&counting.fail_in, 0);
	ck_assert_int_eq(status, QUIRE_OK);
	ck_assert_int_gt(nth, 2);
	quire_pool_destroy(pool);
	ck_assert_int_eq(counting.num_live, 0);
}
END_TEST

START_TEST(a_check_without_memory_says_so)
{
	struct quire_pool *pool;
	int32_t pages[5] = {UNTOUCHED};

	choose(_i);
	pool = pool_of(5);
	atomic_store(&counting.remembers, true);
	for (int64_t nth = 1; nth <= 2; nth++) {
		struct quire_refusal refusal = {0};
		enum quire_status status;

		atomic_store(&counting.fail_in, nth);
		status = quire_pool_check(pool, pages, &refusal);
		atomic_store(&counting.fail_in, 0);
		ck_assert_int_eq(status, QUIRE_NO_MEMORY);
		ck_assert_int_eq(refusal.status, QUIRE_NO_MEMORY);
		ck_assert_str_eq(refusal.what, "the check's tables");
		ck_assert_int_eq(pages[0], UNTOUCHED);
		ck_assert_int_eq(counting.num_live, 0);
	}
	ck_end(pool);
}
END_TEST

static void add_memory_tests(TCase *tcase)
{
	tcase_add_loop_test(tcase, nothing_is_allocated_after_create, 0, WAYS);
	tcase_add_loop_test(tcase, a_create_without_memory_leaves_nothing, 0, WAYS);
	tcase_add_loop_test(tcase, a_check_without_memory_says_so, 0, WAYS);
}

#else

/* A sanitizer has an allocator of its own. */
static void add_memory_tests(TCase *tcase)
{
	(void)tcase;
}

#endif

int main(void)
{
	Suite *suite = suite_create("pool, memory");
	TCase *tcase = tcase_create("all");

	tcase_add_loop_test(tcase, the_largest_pool_works_at_both_ends, 0, WAYS / 2);
	tcase_add_loop_test(tcase, a_pool_takes_at_most_41_bytes_per_page, 0, WAYS);
	add_memory_tests(tcase);
	tcase_set_timeout(tcase, 60);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
