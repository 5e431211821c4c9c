/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_TESTS_ALLOC_FIFO_MODEL_H
#define QUIRE_TESTS_ALLOC_FIFO_MODEL_H
/*
 * What a pool must be at every moment: the free pages as a list in an array, and the
 * pages that the test holds.  Include it in a file that uses all of it.
 */
#include "alloc/pool_impl.h"
#include "tests/alloc/random.h"

#include <check.h>

#include <string.h>

/* More than four whole groups. */
#define MODEL_PAGES_MOST (4 * FIFO_GROUP + 15)

/* Lengths of batches around the limits of a group: 1, 2, 8, 9, 10, 36, 37, 38, 73, ... */
static const int32_t model_batches[] = {
	1,
	2,
	3,
	FIFO_LEAVES,
	FIFO_RUN,
	FIFO_RUN + 1,
	FIFO_RUN + 2,
	FIFO_GROUP - 1,
	FIFO_GROUP,
	FIFO_GROUP + 1,
	2 * FIFO_GROUP - 1,
	2 * FIFO_GROUP,
	2 * FIFO_GROUP + 1,
	MODEL_PAGES_MOST,
};

#define MODEL_BATCHES ((int32_t)(sizeof(model_batches) / sizeof(model_batches[0])))

struct fifo_model {
	int32_t num_pages;
	int32_t num_free;
	int32_t num_held;
	int32_t free[MODEL_PAGES_MOST]; /* oldest first */
	int32_t held[MODEL_PAGES_MOST]; /* in no order */
};

static inline void model_init(struct fifo_model *model, int32_t num_pages)
{
	*model = (struct fifo_model){.num_pages = num_pages, .num_free = num_pages};
	for (int32_t p = 0; p < num_pages; p++)
		model->free[p] = p;
}

/* The n oldest pages into pages_out. */
static inline void model_take(struct fifo_model *model, int32_t n, int32_t *pages_out)
{
	memcpy(pages_out, model->free, (size_t)n * sizeof(*pages_out));
	model->num_free -= n;
	memmove(model->free, &model->free[n],
	        (size_t)model->num_free * sizeof(*pages_out));
}

static inline void model_give(struct fifo_model *model, const int32_t *pages, int32_t n)
{
	memcpy(&model->free[model->num_free], pages, (size_t)n * sizeof(*pages));
	model->num_free += n;
}

/* Pages come into the test's hand ... */
static inline void model_hold(struct fifo_model *model, const int32_t *pages, int32_t n)
{
	memcpy(&model->held[model->num_held], pages, (size_t)n * sizeof(*pages));
	model->num_held += n;
}

/* ... and n of them leave it, in any order. */
static inline void model_pick(struct fifo_model *model, int32_t n, uint64_t *seed,
                              int32_t *pages_out)
{
	random_shuffle(seed, model->held, model->num_held);
	model->num_held -= n;
	memcpy(pages_out, &model->held[model->num_held], (size_t)n * sizeof(*pages_out));
}

/* A batch's length, up to `most` pages. */
static inline int32_t model_batch(int32_t most, uint64_t *seed)
{
	int32_t n = random_in(seed, 0, 1)
	                    ? model_batches[random_in(seed, 0, MODEL_BATCHES - 1)]
	                    : random_in(seed, 0, most);

	return n < most ? n : most;
}

static inline void ck_assert_pages(const int32_t *pages, const int32_t *expected,
                                   int32_t n)
{
	for (int32_t i = 0; i < n; i++) {
		if (pages[i] != expected[i])
			ck_abort_msg("place %d: page %d, not %d", (int)i, (int)pages[i],
			             (int)expected[i]);
	}
}

/* Nobody else is there: the pool is whole and holds these pages in this order. */
static inline void ck_assert_free_pages(const struct quire_pool *pool,
                                        const int32_t *expected, int32_t n)
{
	int32_t pages[MODEL_PAGES_MOST];
	struct quire_refusal refusal;

	if (quire_pool_check(pool, pages, &refusal))
		ck_abort_msg("%s, page %d", refusal.what, (int)refusal.page);
	if (quire_pool_num_free(pool) != n)
		ck_abort_msg("%d pages free, not %d", (int)quire_pool_num_free(pool),
		             (int)n);
	ck_assert_pages(pages, expected, n);
}

static inline void ck_assert_pool_is(const struct quire_pool *pool,
                                     const struct fifo_model *model)
{
	ck_assert_int_eq(quire_pool_num_pages(pool), model->num_pages);
	ck_assert_free_pages(pool, model->free, model->num_free);
}

#endif
