/* SPDX-License-Identifier: MIT */
/* Page lists: blocks lie apart, inside one mapping, densely, and are used again. */
#include "config.h"

#include "runtime/lists_impl.h"

#include "tests/run_suite.h"

#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define S QUIRE_LIST_SHORTEST
#define G QUIRE_LIST_GROWTH

/* The sizes of blocks: each so much longer than the one before, the last one as long as a
 * stream. */
struct sizes {
	int64_t pages_max;
	int32_t num;
	int64_t pages[5];
};

static const struct sizes all_sizes[] = {
	{1, 1, {1}},
	{S - 1, 1, {S - 1}},
	{S, 1, {S}},
	{S + 1, 2, {S, S + 1}},
	{S * G, 2, {S, S *G}},
	{S * G + 1, 3, {S, S *G, S *G + 1}},
	{S * G * G * G + 7, 5, {S, S *G, S *G *G, S *G *G *G, S *G *G *G + 7}},
};

#define NUM_SIZES (int)(sizeof(all_sizes) / sizeof(all_sizes[0]))

static bool is_inside(const struct quire_lists *lists, const int32_t *pages, int64_t n)
{
	const char *first = (const char *)pages, *end = (const char *)(pages + n);

	return first >= lists->memory && end <= lists->memory + lists->bytes;
}

START_TEST(a_list_gets_the_shortest_block_that_holds_it)
{
	const struct sizes *sizes = &all_sizes[_i];
	struct quire_lists lists;

	ck_assert_int_eq(quire_lists_init(&lists, 2, sizes->pages_max), QUIRE_OK);
	ck_assert_int_eq(lists.num_sizes, sizes->num);
	ck_assert_int_eq(quire_list_room(&lists, QUIRE_LIST_NONE), 0);
	for (int32_t s = 0; s < sizes->num; s++) {
		int64_t least = s == 0 ? 0 : sizes->pages[s - 1] + 1;
		int32_t size;
		int32_t *pages = quire_list_new(&lists, least, &size);

		ck_assert_int_eq(size, s);
		ck_assert_int_eq(quire_list_room(&lists, size), sizes->pages[s]);
		quire_list_free(&lists, pages, size);
		pages = quire_list_new(&lists, sizes->pages[s], &size);
		ck_assert_int_eq(size, s);
		quire_list_free(&lists, pages, size);
	}
	quire_lists_end(&lists);
}
END_TEST

/* Every block there is, filled with its own number; whoever overlaps is found out. */
START_TEST(as_many_blocks_of_every_size_as_asked_for_lie_apart_in_the_mapping)
{
	enum { MAX = 5 };
	const struct sizes *sizes = &all_sizes[_i];
	int32_t *blocks[5][MAX];
	struct quire_lists lists;

	ck_assert_int_eq(quire_lists_init(&lists, MAX, sizes->pages_max), QUIRE_OK);
	for (int32_t s = 0; s < sizes->num; s++)
		for (int32_t b = 0; b < MAX; b++) {
			int32_t size;

			blocks[s][b] = quire_list_new(&lists, sizes->pages[s], &size);
			ck_assert(is_inside(&lists, blocks[s][b], sizes->pages[s]));
			for (int64_t i = 0; i < sizes->pages[s]; i++)
				blocks[s][b][i] = s * MAX + b;
		}
	for (int32_t s = 0; s < sizes->num; s++)
		for (int32_t b = 0; b < MAX; b++)
			for (int64_t i = 0; i < sizes->pages[s]; i++)
				ck_assert_int_eq(blocks[s][b][i], s * MAX + b);
	quire_lists_end(&lists);
}
END_TEST

START_TEST(blocks_of_one_size_lie_side_by_side)
{
	struct quire_lists lists;
	int32_t *before[2] = {NULL, NULL};

	ck_assert_int_eq(quire_lists_init(&lists, 1000, S * G * G), QUIRE_OK);
	for (int i = 0; i < 1000; i++) { /* short and long ones in turn */
		int32_t size, *shorter = quire_list_new(&lists, 1, &size);
		int32_t *longer = quire_list_new(&lists, S + 1, &size);

		if (i > 0) {
			ck_assert_ptr_eq(shorter, before[0] + S);
			ck_assert_ptr_eq(longer, before[1] + S * G);
		}
		before[0] = shorter;
		before[1] = longer;
	}
	quire_lists_end(&lists);
}
END_TEST

#define MAX    9
#define ROUNDS 20000
#define SEED   20261130

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13; /* Marsaglia's xorshift64 */
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Blocks come and go at random; those out at a time never share a page, none is lost for
 * good, and no new one is begun while an old one is free. */
START_TEST(blocks_that_are_given_back_are_used_again)
{
	static const int64_t rooms[] = {S, S * G, S * G + 100};
	struct quire_lists lists;
	struct {
		int32_t *pages;
		int32_t size;
	} out[MAX];
	int64_t most[3] = {0}, now[3] = {0};
	uint64_t state = SEED;
	int n = 0;

	ck_assert_int_eq(quire_lists_init(&lists, MAX, S * G + 100), QUIRE_OK);
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t random = next_random(&state);

		if (n < MAX && random % 2 == 0) {
			int32_t size, *pages;
			int64_t wanted =
				1 + (int64_t)(random >> 8) % rooms[(random >> 40) % 3];

			pages = quire_list_new(&lists, wanted, &size);
			for (int i = 0; i < n; i++)
				if (pages == out[i].pages)
					ck_abort_msg("a block is out twice");
			for (int64_t i = 0; i < rooms[size]; i++)
				pages[i] = round;
			out[n].pages = pages;
			out[n++].size = size;
			if (++now[size] > most[size])
				most[size] = now[size];
			ck_assert_int_eq(lists.sizes[size].used, most[size]);
		} else if (n > 0) {
			int which = (int)((random >> 8) % (uint64_t)n);
			int32_t size = out[which].size;

			for (int64_t i = 1; i < rooms[size]; i++)
				if (out[which].pages[i] != out[which].pages[0])
					ck_abort_msg("blocks overlap");
			quire_list_free(&lists, out[which].pages, size);
			now[size]--;
			out[which] = out[--n];
		}
	}
	for (int s = 0; s < 3; s++)
		ck_assert_int_gt(most[s], 2);
	quire_lists_end(&lists);
}
END_TEST

START_TEST(no_list_is_no_block_to_give_back)
{
	struct quire_lists lists;
	int32_t size, *first, *second;

	ck_assert_int_eq(quire_lists_init(&lists, 2, 10), QUIRE_OK);
	quire_list_free(&lists, NULL, QUIRE_LIST_NONE);
	first = quire_list_new(&lists, 0, &size);
	second = quire_list_new(&lists, 10, &size);
	ck_assert_ptr_nonnull(first);
	ck_assert_ptr_ne(first, second);
	quire_lists_end(&lists);
}
END_TEST

/* A reader may pair a block of any list with the count of any other: up to pages_max. */
START_TEST(a_count_that_is_another_lists_does_not_lead_out_of_the_mapping)
{
	const struct sizes *sizes = &all_sizes[_i];
	struct quire_lists lists;

	ck_assert_int_eq(quire_lists_init(&lists, 3, sizes->pages_max), QUIRE_OK);
	for (int32_t s = 0; s < sizes->num; s++)
		for (int b = 0; b < 3; b++) {
			int32_t size;
			int32_t *pages = quire_list_new(&lists, sizes->pages[s], &size);

			ck_assert(is_inside(&lists, pages, sizes->pages_max));
			/* There is an address behind it, and it can be read. */
			ck_assert_int_eq(pages[sizes->pages_max - 1], 0);
		}
	quire_lists_end(&lists);
}
END_TEST

START_TEST(lists_that_no_address_space_holds_are_refused)
{
	struct quire_lists lists;

	/* 64 bytes, 2^62 + 1 times: 64 bits count them as 64. */
	ck_assert_int_eq(quire_lists_init(&lists, (INT64_C(1) << 62) + 1, 16),
	                 QUIRE_NO_MEMORY);
	/* 2^31 pages, 2^22 times: they do, but no machine has them. */
	ck_assert_int_eq(quire_lists_init(&lists, INT64_C(1) << 22, INT64_C(1) << 31),
	                 QUIRE_NO_MEMORY);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("lists");
	TCase *tcase = tcase_create("lists");

	tcase_add_loop_test(tcase, a_list_gets_the_shortest_block_that_holds_it, 0,
	                    NUM_SIZES);
	tcase_add_loop_test(
		tcase, as_many_blocks_of_every_size_as_asked_for_lie_apart_in_the_mapping,
		0, NUM_SIZES);
	tcase_add_test(tcase, blocks_of_one_size_lie_side_by_side);
	tcase_add_test(tcase, blocks_that_are_given_back_are_used_again);
	tcase_add_test(tcase, no_list_is_no_block_to_give_back);
	tcase_add_loop_test(
		tcase, a_count_that_is_another_lists_does_not_lead_out_of_the_mapping, 0,
		NUM_SIZES);
	tcase_add_test(tcase, lists_that_no_address_space_holds_are_refused);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
