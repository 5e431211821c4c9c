/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_TESTS_ALLOC_POOL_WAYS_H
#define QUIRE_TESTS_ALLOC_POOL_WAYS_H
/*
 * Pools of both kinds, and both ways to give pages back: tests run once for each.
 * Include it in one file of a program.
 */
#include "alloc/pool_impl.h"
#include "tests/alloc/fifo_model.h"

#include <check.h>

#define UNTOUCHED (-77)

typedef enum quire_status give_function(struct quire_pool *pool, const int32_t *pages,
                                        int64_t n, struct quire_refusal *refusal_out);

static const struct {
	enum quire_pool_kind kind;
	give_function *give;
} ways[] = {
	{QUIRE_POOL_LOCKED, quire_pool_free},
	{QUIRE_POOL_LOCKED, quire_pool_free_single_giver},
#ifdef QUIRE_HAVE_CAS128
	{QUIRE_POOL_LOCK_FREE, quire_pool_free},
	{QUIRE_POOL_LOCK_FREE, quire_pool_free_single_giver},
#endif
};

#define WAYS ((int)(sizeof(ways) / sizeof(ways[0])))

/* Every test runs once for each of them. */
static enum quire_pool_kind kind;
static give_function *give;

static inline void choose(int way)
{
	kind = ways[way].kind;
	give = ways[way].give;
}

static inline struct quire_pool *pool_of(int64_t num_pages)
{
	struct quire_pool *pool = NULL;

	ck_assert_int_eq(quire_pool_create_kind(num_pages, kind, &pool), QUIRE_OK);
	ck_assert_ptr_nonnull(pool);
	return pool;
}

/* A pool and its model, with all pages in the test's hand. */
static inline struct quire_pool *empty_pool(struct fifo_model *model, int32_t num_pages)
{
	struct quire_pool *pool = pool_of(num_pages);
	int32_t pages[MODEL_PAGES_MOST];

	model_init(model, num_pages);
	ck_assert(quire_pool_try_allocate(pool, num_pages, pages));
	model_take(model, num_pages, model->held);
	model->num_held = num_pages;
	return pool;
}

static inline void ck_end(struct quire_pool *pool)
{
	ck_assert_int_eq(quire_pool_check(pool, NULL, NULL), QUIRE_OK);
	quire_pool_destroy(pool);
}

/* A batch of n of the model's held pages, in any order; they are free then. */
static inline void give_batch(struct quire_pool *pool, struct fifo_model *model,
                              int32_t n, uint64_t *seed)
{
	int32_t pages[MODEL_PAGES_MOST];

	model_pick(model, n, seed, pages);
	if (give(pool, pages, n, NULL))
		ck_abort_msg("a batch of %d is refused", (int)n);
	model_give(model, pages, n);
}

/* Take n pages, which must be there. */
static inline void take_run(struct quire_pool *pool, struct fifo_model *model, int32_t n)
{
	int32_t pages[MODEL_PAGES_MOST + 1], expected[MODEL_PAGES_MOST];

	pages[n] = UNTOUCHED;
	if (quire_pool_allocate(pool, n, pages, NULL))
		ck_abort_msg("a take of %d of %d is refused", (int)n,
		             (int)model->num_free);
	model_take(model, n, expected);
	ck_assert_pages(pages, expected, n);
	ck_assert_int_eq(pages[n], UNTOUCHED);
	model_hold(model, expected, n);
	if (quire_pool_num_free(pool) != model->num_free)
		ck_abort_msg("%d free", (int)quire_pool_num_free(pool));
}

#endif
