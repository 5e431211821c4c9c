/* SPDX-License-Identifier: MIT */
/* The pool, as its callers know it. */
#include "config.h"

#include "alloc/pool_impl.h"
#include "tests/alloc/rivals/rival.h"

static void *create(int32_t num_pages, enum quire_pool_kind kind)
{
	struct quire_pool *pool;

	return quire_pool_create_kind(num_pages, kind, &pool) == QUIRE_OK ? pool : NULL;
}

static void *create_lock_free(int32_t num_pages)
{
	return create(num_pages, QUIRE_POOL_LOCK_FREE);
}

static void *create_locked(int32_t num_pages)
{
	return create(num_pages, QUIRE_POOL_LOCKED);
}

static bool take(void *fifo, int32_t n, int32_t *pages_out)
{
	return quire_pool_try_allocate(fifo, n, pages_out);
}

static bool give(void *fifo, const int32_t *pages, int32_t n)
{
	return quire_pool_free(fifo, pages, n, NULL) == QUIRE_OK;
}

static bool give_alone(void *fifo, const int32_t *pages, int32_t n)
{
	return quire_pool_free_single_giver(fifo, pages, n, NULL) == QUIRE_OK;
}

static void destroy(void *fifo)
{
	quire_pool_destroy(fifo);
}

const struct rival rival_pool = {
	.name = "pool",
	.create = create_lock_free,
	.take = take,
	.give = give,
	.destroy = destroy,
};

const struct rival rival_pool_one_giver = {
	.name = "pool_one_giver",
	.one_giver = true,
	.create = create_lock_free,
	.take = take,
	.give = give_alone,
	.destroy = destroy,
};

const struct rival rival_mutex_checks = {
	.name = "mutex_checks",
	.create = create_locked,
	.take = take,
	.give = give,
	.destroy = destroy,
};
