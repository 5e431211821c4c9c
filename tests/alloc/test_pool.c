/* SPDX-License-Identifier: MIT */
/*
 * What a pool promises, against a plain array: for the lock-free kind and the kind with a
 * lock, and for both ways to give pages back.
 */
#include "config.h"

#include "alloc/pool_impl.h"
#include "tests/alloc/pool_ways.h"
#include "tests/alloc/random.h"
#include "tests/run_suite.h"

#include <check.h>

#include <limits.h>
#include <string.h>

/* ------------------------------------------------------------------ create */

START_TEST(a_new_pool_hands_out_its_pages_in_order)
{
	choose(_i);
	for (int32_t size = 1; size <= MODEL_PAGES_MOST; size++) {
		struct quire_pool *pool = pool_of(size);
		struct fifo_model model;
		int32_t pages[MODEL_PAGES_MOST];

		model_init(&model, size);
		ck_assert_pool_is(pool, &model);
		ck_assert(quire_pool_try_allocate(pool, size, pages));
		ck_assert_pages(pages, model.free, size);
		model.num_free = 0;
		ck_assert_pool_is(pool, &model);
		quire_pool_destroy(pool);
	}
}
END_TEST

START_TEST(create_refuses_sizes_out_of_range)
{
	static const int64_t sizes[] = {0,         -1,
	                                INT64_MIN, (int64_t)QUIRE_PAGES_MAX + 1,
	                                INT64_MAX, (int64_t)UINT32_MAX + 2};
	struct quire_pool *pool = (struct quire_pool *)&pool;

	choose(_i);
	for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
		ck_assert_int_eq(quire_pool_create(sizes[k], &pool), QUIRE_INVALID);
		ck_assert_int_eq(quire_pool_create_kind(sizes[k], kind, &pool),
		                 QUIRE_INVALID);
		ck_assert_ptr_eq(pool, &pool);
	}
	quire_pool_destroy(NULL);
}
END_TEST

START_TEST(a_pool_is_lock_free_where_it_can_be)
{
	struct quire_pool *pool;

	ck_assert_int_eq(quire_pool_create(1, &pool), QUIRE_OK);
#ifdef QUIRE_HAVE_CAS128
	ck_assert_int_eq(pool->kind, QUIRE_POOL_LOCK_FREE);
#else
	ck_assert_int_eq(pool->kind, QUIRE_POOL_LOCKED);
#endif
	quire_pool_destroy(pool);
#ifndef QUIRE_HAVE_CAS128
	ck_assert_int_eq(quire_pool_create_kind(1, QUIRE_POOL_LOCK_FREE, &pool),
	                 QUIRE_INVALID);
#endif
}
END_TEST

/* ------------------------------------------------------------------ order */

START_TEST(nothing_asked_and_nothing_given_succeed)
{
	struct quire_refusal refusal = {.index = UNTOUCHED};
	struct quire_pool *pool;
	int32_t page;

	choose(_i);
	pool = pool_of(1);
	for (int round = 0; round < 2; round++) {
		ck_assert_int_eq(quire_pool_allocate(pool, 0, NULL, &refusal), QUIRE_OK);
		ck_assert(quire_pool_try_allocate(pool, 0, NULL));
		ck_assert_int_eq(give(pool, NULL, 0, &refusal), QUIRE_OK);
		ck_assert_int_eq(quire_pool_num_free(pool), 1 - round);
		ck_assert_int_eq(quire_pool_try_allocate(pool, 1, &page), round == 0);
	}
	ck_assert_int_eq(refusal.index, UNTOUCHED);
	ck_end(pool);
}
END_TEST

START_TEST(a_batch_leaves_in_its_order_in_any_three_parts)
{
	struct fifo_model model;
	struct quire_pool *pool;
	uint64_t seed = 8;

	choose(_i);
	pool = empty_pool(&model, 2 * FIFO_GROUP + 2);
	for (int32_t size = 1; size <= 2 * FIFO_GROUP + 2; size++) {
		for (int32_t skip = 0; skip <= size; skip++) {
			for (int32_t n = 0; n <= size - skip; n += 1 + n / 12) {
				give_batch(pool, &model, size, &seed);
				take_run(pool, &model, skip);
				take_run(pool, &model, n);
				take_run(pool, &model, size - skip - n);
			}
		}
	}
	ck_end(pool);
}
END_TEST

/* The same with the end of a first batch, the whole of a second, the start of a third. */
START_TEST(a_take_goes_across_batches_of_every_length)
{
	struct fifo_model model;
	struct quire_pool *pool;
	uint64_t seed = 9;

	choose(_i);
	pool = empty_pool(&model, 3 * FIFO_GROUP);
	for (int i = 0; i < 6000; i++) {
		int32_t first = random_in(&seed, 1, FIFO_GROUP);
		int32_t second = random_in(&seed, 1, FIFO_GROUP);
		int32_t third = random_in(&seed, 1, FIFO_GROUP);
		int32_t skip = random_in(&seed, 0, first - 1);
		int32_t rest = random_in(&seed, 0, third);

		give_batch(pool, &model, first, &seed);
		give_batch(pool, &model, second, &seed);
		give_batch(pool, &model, third, &seed);
		take_run(pool, &model, skip);
		take_run(pool, &model, first - skip + second + third - rest);
		if (i % 64 == 0)
			ck_assert_pool_is(pool, &model);
		take_run(pool, &model, rest);
	}
	ck_end(pool);
}
END_TEST

/* ---------------------------------------------------------------- refusals */

static bool same_numbers(const struct quire_refusal *one, const struct quire_refusal *two)
{
	return one->status == two->status && one->page == two->page &&
	       one->index == two->index && one->line == two->line &&
	       one->expected == two->expected && one->got == two->got &&
	       one->requested == two->requested && one->available == two->available &&
	       one->pages_short == two->pages_short && one->free == two->free &&
	       one->retiring == two->retiring && one->owned == two->owned &&
	       one->request == two->request && one->label[0] == two->label[0];
}

/* All of a refusal is as expected, and its status the one answered. */
static void ck_assert_refused(enum quire_status status,
                              const struct quire_refusal *refusal,
                              const struct quire_refusal *expected)
{
	char text[200];

	if (status == expected->status && same_numbers(refusal, expected) &&
	    strcmp(refusal->what, expected->what) == 0)
		return;
	(void)quire_refusal_text(refusal, text, sizeof(text));
	ck_abort_msg("status %d, refusal %d (%s): %s; page %d index %d", (int)status,
	             (int)refusal->status, refusal->what, text, (int)refusal->page,
	             (int)refusal->index);
}

/* A number of pages that is out of range. */
static struct quire_refusal no_count(const struct fifo_model *model, int64_t n)
{
	return (struct quire_refusal){.status = QUIRE_INVALID,
	                              .what = "n",
	                              .index = -1,
	                              .got = n,
	                              .expected = model->num_pages};
}

/* Ask for n, which must be refused, and see that nothing at all has changed. */
static void refuse_take(struct quire_pool *pool, const struct fifo_model *model,
                        int64_t n)
{
	struct quire_refusal expected = {.status = QUIRE_NO_PAGES,
	                                 .what = "free pages",
	                                 .requested = n,
	                                 .available = model->num_free};
	struct quire_refusal refusal = {.label = "full", .request = 7, .owned = 3};
	int32_t pages[MODEL_PAGES_MOST];
	enum quire_status status;

	if (n < 0 || n > model->num_pages)
		expected = no_count(model, n);
	for (int32_t i = 0; i < MODEL_PAGES_MOST; i++)
		pages[i] = UNTOUCHED;
	status = quire_pool_allocate(pool, n, pages, &refusal);
	ck_assert_refused(status, &refusal, &expected);
	if (quire_pool_allocate(pool, n, pages, NULL) != expected.status)
		ck_abort_msg("without details the answer is another");
	if (quire_pool_try_allocate(pool, n, pages))
		ck_abort_msg("%ld is not refused", (long)n);
	for (int32_t i = 0; i < MODEL_PAGES_MOST; i++) {
		if (pages[i] != UNTOUCHED)
			ck_abort_msg("place %d is written", (int)i);
	}
	ck_assert_pool_is(pool, model);
}

START_TEST(a_take_that_does_not_fit_is_refused_whole)
{
	static const int64_t asked[] = {-1,        INT64_MIN,
	                                5,         (int64_t)UINT32_MAX + 1,
	                                INT64_MAX, (int64_t)UINT32_MAX + 2};
	struct fifo_model model;
	struct quire_pool *pool;

	choose(_i);
	pool = pool_of(4);
	model_init(&model, 4);
	for (int32_t taken = 0; taken <= 4; taken++) {
		for (size_t k = 0; k < sizeof(asked) / sizeof(asked[0]); k++)
			refuse_take(pool, &model, asked[k]);
		for (int32_t n = model.num_free + 1; n <= 4; n++)
			refuse_take(pool, &model, n);
		ck_assert_int_eq(quire_pool_allocate(pool, -1, NULL, NULL),
		                 QUIRE_INVALID);
		if (taken < 4)
			take_run(pool, &model, 1);
	}
	quire_pool_destroy(pool);
}
END_TEST

/* Pool(4): take 3, ask 2: one short, and the next take has the page it would have had. */
START_TEST(a_refused_take_leaves_the_counter_and_the_next_page)
{
	uint64_t seed = 2;

	choose(_i);
	for (int round = 0; round < 1000; round++) {
		int32_t num_pages = random_in(&seed, 1, MODEL_PAGES_MOST);
		int32_t free = random_in(&seed, 0, num_pages - 1);
		struct fifo_model model;
		struct quire_pool *pool = empty_pool(&model, num_pages);

		give_batch(pool, &model, free, &seed);
		refuse_take(pool, &model, random_in(&seed, free + 1, num_pages));
		take_run(pool, &model, free);
		refuse_take(pool, &model, random_in(&seed, 1, num_pages));
		quire_pool_destroy(pool);
	}
}
END_TEST

/* Give back a batch that must be refused, and see that nothing has changed. */
static void refuse_free(struct quire_pool *pool, const struct fifo_model *model,
                        const int32_t *pages, int64_t n,
                        const struct quire_refusal *expected)
{
	struct quire_refusal refusal = {.label = "full", .request = 7, .owned = 3};
	enum quire_status status = give(pool, pages, n, &refusal);

	ck_assert_refused(status, &refusal, expected);
	if (give(pool, pages, n, NULL) != expected->status)
		ck_abort_msg("without details the answer is another");
	ck_assert_pool_is(pool, model);
}

/* The same of a page that is free already, or named before. */
static void refuse_page(struct quire_pool *pool, const struct fifo_model *model,
                        const int32_t *pages, int32_t n, int32_t index)
{
	struct quire_refusal expected = {.status = QUIRE_NOT_OWNED,
	                                 .what = "pages",
	                                 .index = index,
	                                 .page = pages[index]};

	refuse_free(pool, model, pages, n, &expected);
}

/* The same of a batch with two such pages: one of them is named. */
static void refuse_either(struct quire_pool *pool, const struct fifo_model *model,
                          const int32_t *pages, int32_t n, int32_t one, int32_t other)
{
	struct quire_refusal refusal;
	bool is_other;

	if (give(pool, pages, n, &refusal) != QUIRE_NOT_OWNED)
		ck_abort_msg("two bad pages are taken");
	is_other = refusal.index == other;
	refuse_page(pool, model, pages, n, is_other ? other : one);
}

/* The same of an id that is no page's. */
static void refuse_id(struct quire_pool *pool, const struct fifo_model *model,
                      const int32_t *pages, int32_t n, int32_t index)
{
	struct quire_refusal expected = {.status = QUIRE_INVALID,
	                                 .what = "pages",
	                                 .index = index,
	                                 .got = pages[index],
	                                 .expected = model->num_pages - 1};

	refuse_free(pool, model, pages, n, &expected);
}

START_TEST(a_length_out_of_range_is_refused_and_nothing_is_read)
{
	static const int64_t lengths[] = {-1, INT64_MIN, 4, INT64_MAX,
	                                  (int64_t)UINT32_MAX + 2};
	int32_t *unreadable = (int32_t *)alignof(int32_t);
	struct fifo_model model;
	struct quire_pool *pool;

	choose(_i);
	pool = pool_of(3);
	model_init(&model, 3);
	take_run(pool, &model, 2);
	for (size_t k = 0; k < sizeof(lengths) / sizeof(lengths[0]); k++) {
		struct quire_refusal expected = no_count(&model, lengths[k]);

		refuse_free(pool, &model, unreadable, lengths[k], &expected);
	}
	ck_assert_int_eq(give(pool, NULL, -1, NULL), QUIRE_INVALID);
	ck_end(pool);
}
END_TEST

/* 14 free, page 1 held once: [1, 1] is refused, names page 1, and changes nothing. */
START_TEST(a_batch_that_names_a_page_twice_is_refused_wherever_it_does)
{
	const int32_t most = 2 * FIFO_GROUP + 2;
	struct fifo_model model;
	struct quire_pool *pool;
	uint64_t seed = 11;

	choose(_i);
	pool = empty_pool(&model, most + 14);
	give_batch(pool, &model, 14, &seed);
	for (int32_t second = 1; second < most; second++) {
		int32_t first = 0;

		for (; first < second; first += 1 + first / 8) {
			int32_t pages[MODEL_PAGES_MOST];

			memcpy(pages, model.held, sizeof(pages));
			pages[second] = pages[first];
			refuse_page(pool, &model, pages, most, second);
			refuse_page(pool, &model, pages, second + 1, second);
		}
	}
	give_batch(pool, &model, most, &seed);
	ck_assert_pool_is(pool, &model);
	ck_end(pool);
}
END_TEST

START_TEST(a_free_page_is_refused_wherever_it_stands)
{
	const int32_t most = 2 * FIFO_GROUP + 2;
	struct fifo_model model;
	struct quire_pool *pool;
	uint64_t seed = 12;

	choose(_i);
	pool = empty_pool(&model, most + 14);
	give_batch(pool, &model, 14, &seed);
	for (int32_t index = 0; index < most; index++) {
		int32_t pages[MODEL_PAGES_MOST], other;

		memcpy(pages, model.held, sizeof(pages));
		pages[index] = model.free[index % 14];
		refuse_page(pool, &model, pages, most, index);
		refuse_page(pool, &model, pages, index + 1, index);
		/* And a second one, free too or named before. */
		if (index + 1 == most)
			continue;
		other = random_in(&seed, index + 1, most - 1);
		pages[other] = index % 2 ? model.free[13] : pages[0];
		refuse_either(pool, &model, pages, most, index, other);
	}
	ck_end(pool);
}
END_TEST

START_TEST(an_id_out_of_range_is_named_before_a_page_that_is_not_owned)
{
	const int32_t most = FIFO_GROUP + 2;
	struct fifo_model model;
	struct quire_pool *pool;
	uint64_t seed = 13;
	int32_t bad[7] = {-1, most + 3, most + 4, INT32_MIN, INT32_MAX, 1 << 24, -most};

	choose(_i);
	pool = empty_pool(&model, most + 3);
	give_batch(pool, &model, 3, &seed);
	for (int i = 0; i < 7 * most; i++) {
		int32_t index = i / 7, pages[MODEL_PAGES_MOST];

		memcpy(pages, model.held, sizeof(pages));
		pages[index] = bad[i % 7];
		refuse_id(pool, &model, pages, most, index);
		refuse_id(pool, &model, pages, index + 1, index);
		/* Nor does another one behind it. */
		if (index + 1 < most)
			pages[random_in(&seed, index + 1, most - 1)] =
				bad[random_in(&seed, 0, 6)];
		refuse_id(pool, &model, pages, most, index);
		for (int32_t other = 0; other < most; other++) {
			if ((uint32_t)pages[other] >= (uint32_t)model.num_pages)
				continue;
			pages[other] = model.free[1];
			if (other % 8 == 0)
				refuse_id(pool, &model, pages, most, index);
		}
	}
	give_batch(pool, &model, most, &seed);
	ck_end(pool);
}
END_TEST

/* ------------------------------------------------------------------ random */

/* One random operation on both. */
static void random_step(struct quire_pool *pool, struct fifo_model *model, uint64_t *seed)
{
	int32_t n = model_batch(model->num_pages, seed);

	if (random_in(seed, 0, 1) == 0)
		give_batch(pool, model, n < model->num_held ? n : model->num_held, seed);
	else if (n > model->num_free)
		refuse_take(pool, model, n);
	else
		take_run(pool, model, n);
}

/*
 * A batch of held pages with one place spoilt: out of range, free already, or named
 * before.
 */
static void random_bad_free(struct quire_pool *pool, const struct fifo_model *model,
                            uint64_t *seed)
{
	int32_t n = model->num_held ? random_in(seed, 1, model->num_held) : 0;
	int32_t at = n ? random_in(seed, 0, n - 1) : 0;
	int32_t pages[MODEL_PAGES_MOST];

	memcpy(pages, model->held, (size_t)n * sizeof(int32_t));
	switch (random_in(seed, 0, 2)) {
	case 0:
		if (!n)
			return;
		pages[at] = random_in(seed, 0, 1) ? -1 - at : model->num_pages + at;
		refuse_id(pool, model, pages, n, at);
		return;
	case 1:
		if (!n || !model->num_free)
			return;
		pages[at] = model->free[random_in(seed, 0, model->num_free - 1)];
		break;
	case 2:
		if (at == 0)
			return;
		pages[at] = pages[random_in(seed, 0, at - 1)];
		break;
	}
	refuse_page(pool, model, pages, n, at);
}

START_TEST(random_operations_match_a_plain_list)
{
	static const int32_t sizes[] = {1,
	                                2,
	                                3,
	                                FIFO_RUN,
	                                FIFO_GROUP,
	                                FIFO_GROUP + 1,
	                                3 * FIFO_GROUP,
	                                MODEL_PAGES_MOST};
	uint64_t seed = 20;

	choose(_i);
	for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
		struct quire_pool *pool = pool_of(sizes[k]);
		struct fifo_model model;

		model_init(&model, sizes[k]);
		for (int i = 0; i < 2500; i++) {
			random_step(pool, &model, &seed);
			if (i % 4 == 0)
				random_bad_free(pool, &model, &seed);
			if (i % 5 == 0)
				ck_assert_pool_is(pool, &model);
		}
		quire_pool_destroy(pool);
	}
}
END_TEST

static void add_order_tests(TCase *tcase)
{
	tcase_add_loop_test(tcase, nothing_asked_and_nothing_given_succeed, 0, WAYS);
	tcase_add_loop_test(tcase, a_batch_leaves_in_its_order_in_any_three_parts, 0,
	                    WAYS);
	tcase_add_loop_test(tcase, a_take_goes_across_batches_of_every_length, 0, WAYS);
	tcase_add_loop_test(tcase, random_operations_match_a_plain_list, 0, WAYS);
}

static void add_refusal_tests(TCase *tcase)
{
	tcase_add_loop_test(tcase, a_take_that_does_not_fit_is_refused_whole, 0, WAYS);
	tcase_add_loop_test(tcase, a_refused_take_leaves_the_counter_and_the_next_page, 0,
	                    WAYS);
	tcase_add_loop_test(tcase, a_length_out_of_range_is_refused_and_nothing_is_read,
	                    0, WAYS);
	tcase_add_loop_test(tcase,
	                    a_batch_that_names_a_page_twice_is_refused_wherever_it_does,
	                    0, WAYS);
	tcase_add_loop_test(tcase, a_free_page_is_refused_wherever_it_stands, 0, WAYS);
	tcase_add_loop_test(tcase,
	                    an_id_out_of_range_is_named_before_a_page_that_is_not_owned,
	                    0, WAYS);
}

int main(void)
{
	Suite *suite = suite_create("pool");
	TCase *tcase = tcase_create("all");

	tcase_add_loop_test(tcase, a_new_pool_hands_out_its_pages_in_order, 0, WAYS);
	tcase_add_loop_test(tcase, create_refuses_sizes_out_of_range, 0, WAYS);
	tcase_add_test(tcase, a_pool_is_lock_free_where_it_can_be);
	add_order_tests(tcase);
	add_refusal_tests(tcase);
	tcase_set_timeout(tcase, 60);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
