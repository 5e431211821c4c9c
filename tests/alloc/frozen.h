/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_TESTS_ALLOC_FROZEN_H
#define QUIRE_TESTS_ALLOC_FROZEN_H
/*
 * Lock-free pools for tests that stop threads, and short words for what such a test does
 * by itself.  Include it in one file of a program.
 */
#include "tests/alloc/caller.h"
#include "tests/alloc/fifo_model.h"

#include <check.h>

/* Takes before a test begins: so many that a field is full, or the counter ends, at this
 * or that moment of it. */
static const uint64_t takes_before[] = {
	1,
	FIFO_MASK(FIFO_TAKES_LO_BITS) - 1,
	FIFO_MASK(FIFO_TAKES_LO_BITS),
	FIFO_MASK(FIFO_TAKES_BITS) - 2,
	FIFO_MASK(FIFO_TAKES_BITS) - 1,
	FIFO_MASK(FIFO_TAKES_BITS),
};

#define BEFORE ((int)(sizeof(takes_before) / sizeof(takes_before[0])))

static inline void take(struct quire_pool *pool, int32_t n, int32_t *pages)
{
	ck_assert_int_eq(quire_pool_allocate(pool, n, pages, NULL), QUIRE_OK);
}

static inline void give_list(struct quire_pool *pool, const int32_t *pages, int64_t n)
{
	ck_assert_int_eq(quire_pool_free(pool, pages, n, NULL), QUIRE_OK);
}

/* Lists of page ids. */
#define LIST(...)       ((int32_t[]){__VA_ARGS__})
#define LENGTH(...)     ((int32_t)(sizeof(LIST(__VA_ARGS__)) / sizeof(int32_t)))
#define GIVE(pool, ...) give_list(pool, LIST(__VA_ARGS__), LENGTH(__VA_ARGS__))
#define ck_assert_free(pool, ...) \
	ck_assert_free_pages(pool, LIST(__VA_ARGS__), LENGTH(__VA_ARGS__))

/* A pool whose pages are all out, after a number of takes. */
static inline struct quire_pool *empty_pool(int before)
{
	struct fifo_state s =
		state_make((struct fifo_place){0, 0}, 0, 0, takes_before[before]);
	struct quire_pool *pool;
	int32_t pages[MODEL_PAGES_MOST];

	ck_assert_int_eq(
		quire_pool_create_kind(MODEL_PAGES_MOST, QUIRE_POOL_LOCK_FREE, &pool),
		QUIRE_OK);
	take(pool, MODEL_PAGES_MOST, pages);
	atomic_store(&pool->fifo.state[0], s.lo);
	atomic_store(&pool->fifo.state[1], s.hi);
	return pool;
}

static inline void ck_end(struct quire_pool *pool)
{
	ck_assert_int_eq(quire_pool_check(pool, NULL, NULL), QUIRE_OK);
	quire_pool_destroy(pool);
}

/* Begin a call that must come to its point. */
static inline void freeze(struct caller *caller)
{
	if (!caller_stops(caller))
		ck_abort_msg("the call does not come to its point: status %d",
		             (int)caller->status);
}

#endif
