/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "alloc/pool_impl.h"
#include "runtime/refuse_impl.h"

#include <quire/runtime/assert.h>

#include <ck_pr.h>

#include <stdlib.h>
#include <string.h>

/*
 * One of the two FIFOs does it.  Where there is no 128-bit compare-and-swap the lock-free
 * one is not built.
 */
#ifdef QUIRE_HAVE_CAS128
#define FIFO_CALL(pool, verb, ...)                                 \
	(__builtin_expect((pool)->kind == QUIRE_POOL_LOCK_FREE, 1) \
	         ? quire_fifo_##verb(&(pool)->fifo, ##__VA_ARGS__) \
	         : quire_lock_fifo_##verb(&(pool)->lock_fifo, ##__VA_ARGS__))
#define KIND_DEFAULT QUIRE_POOL_LOCK_FREE
#else
#define FIFO_CALL(pool, verb, ...) \
	quire_lock_fifo_##verb(&(pool)->lock_fifo, ##__VA_ARGS__)
#define KIND_DEFAULT QUIRE_POOL_LOCKED
#endif

enum quire_status quire_pool_create_kind(int64_t num_pages, enum quire_pool_kind kind,
                                         struct quire_pool **pool_out)
{
	struct quire_pool *pool;

	if (num_pages < 1 || num_pages > QUIRE_PAGES_MAX)
		return QUIRE_INVALID;
	if (kind == QUIRE_POOL_LOCK_FREE && KIND_DEFAULT == QUIRE_POOL_LOCKED)
		return QUIRE_INVALID;
	pool = aligned_alloc(alignof(struct quire_pool), sizeof(*pool));
	if (!pool)
		return QUIRE_NO_MEMORY;
	pool->kind = kind;
	pool->num_pages = (int32_t)num_pages;
	atomic_init(&pool->waiters, 0);
	quire_wake_init(&pool->freed);
	if (!FIFO_CALL(pool, init, (uint32_t)num_pages)) {
		free(pool);
		return QUIRE_NO_MEMORY;
	}
	*pool_out = pool;
	return QUIRE_OK;
}

enum quire_status quire_pool_create(int64_t num_pages, struct quire_pool **pool_out)
{
	return quire_pool_create_kind(num_pages, KIND_DEFAULT, pool_out);
}

void quire_pool_destroy(struct quire_pool *pool)
{
	if (!pool)
		return;
	FIFO_CALL(pool, end);
	free(pool);
}

static bool is_count(const struct quire_pool *pool, int64_t n)
{
	return n >= 0 && n <= pool->num_pages;
}

static enum quire_status refuse_count(const struct quire_pool *pool, int64_t n,
                                      struct quire_refusal *refusal_out)
{
	return quire_refuse_bound(refusal_out, QUIRE_INVALID, "n", -1, n,
	                          pool->num_pages);
}

/* The n oldest pages; or INVALID, or NO_PAGES and what is free. */
static enum quire_status take(struct quire_pool *pool, int64_t n, int32_t *pages_out,
                              uint32_t *available_out)
{
	QUIRE_ASSERT(pool && (pages_out || n <= 0));
	if (!is_count(pool, n))
		return QUIRE_INVALID;
	if (n == 0 || FIFO_CALL(pool, take, (uint32_t)n, pages_out, available_out))
		return QUIRE_OK;
	return QUIRE_NO_PAGES;
}

/* What a take of n comes to, with the details of a refusal. */
static enum quire_status end_take(const struct quire_pool *pool, enum quire_status status,
                                  int64_t n, uint32_t available,
                                  struct quire_refusal *refusal_out)
{
	if (status == QUIRE_OK)
		return QUIRE_OK;
	if (status == QUIRE_INVALID)
		return refuse_count(pool, n, refusal_out);
	return quire_refuse(refusal_out, (struct quire_refusal){.status = status,
	                                                        .what = "free pages",
	                                                        .requested = n,
	                                                        .available = available});
}

enum quire_status quire_pool_allocate(struct quire_pool *pool, int64_t n,
                                      int32_t *pages_out,
                                      struct quire_refusal *refusal_out)
{
	uint32_t available = 0;
	enum quire_status status = take(pool, n, pages_out, &available);

	return end_take(pool, status, n, available, refusal_out);
}

bool quire_pool_try_allocate(struct quire_pool *pool, int64_t n, int32_t *pages_out)
{
	uint32_t available;

	return take(pool, n, pages_out, &available) == QUIRE_OK;
}

/*
 * No free is slept through.  The waiter announces itself and then looks for pages; the
 * free gives pages and then looks for waiters, with a full barrier between the two on
 * either side (ck_pr_fence_atomic_load): so one of them sees the other.  A free that sees
 * the waiter raises the event count, which the waiter had read before it looked.
 */
static enum quire_status wait_and_take(struct quire_pool *pool, int64_t n,
                                       int32_t *pages_out, int64_t deadline_ns,
                                       uint32_t *available_out)
{
	enum quire_status status;
	bool late = false;

	/* Relaxed, here and below: a number; the fence orders it. */
	atomic_fetch_add_explicit(&pool->waiters, 1, memory_order_relaxed);
	ck_pr_fence_atomic_load();
	for (;;) {
		uint32_t value = quire_wake_value(&pool->freed);

		QUIRE_POOL_POINT(WAITING);
		status = take(pool, n, pages_out, available_out);
		if (status == QUIRE_OK || late)
			break;
		QUIRE_POOL_POINT(SLEEPING);
		/* The clock, too: while others free without pause nothing sleeps. */
		late = quire_wake_sleep(&pool->freed, value, deadline_ns) != 0 ||
		       quire_now_ns() >= deadline_ns;
	}
	atomic_fetch_sub_explicit(&pool->waiters, 1, memory_order_relaxed);
	return status == QUIRE_OK ? QUIRE_OK : QUIRE_TIMEOUT;
}

enum quire_status quire_pool_allocate_wait(struct quire_pool *pool, int64_t n,
                                           int32_t *pages_out, int64_t deadline_ns,
                                           struct quire_refusal *refusal_out)
{
	uint32_t available = 0;
	enum quire_status status = take(pool, n, pages_out, &available);

	if (status == QUIRE_NO_PAGES)
		status = wait_and_take(pool, n, pages_out, deadline_ns, &available);
	return end_take(pool, status, n, available, refusal_out);
}

/* Why a batch cannot be given; ids that are no pages are named first. */
static enum quire_status refuse_batch(const struct quire_pool *pool, const int32_t *pages,
                                      int64_t n, int64_t bad,
                                      struct quire_refusal *refusal_out)
{
	for (int64_t i = 0; i < n; i++) {
		if ((uint32_t)pages[i] >= (uint32_t)pool->num_pages)
			return quire_refuse_bound(refusal_out, QUIRE_INVALID, "pages", i,
			                          pages[i], pool->num_pages - 1);
	}
	return quire_refuse(refusal_out, (struct quire_refusal){.status = QUIRE_NOT_OWNED,
	                                                        .what = "pages",
	                                                        .index = bad,
	                                                        .page = pages[bad]});
}

static void wake_waiters(struct quire_pool *pool)
{
	/* The free's change of the FIFO comes before this load: see the comment at
	 * wait_and_take(). */
	ck_pr_fence_atomic_load();
	if (atomic_load_explicit(&pool->waiters, memory_order_relaxed))
		quire_wake_all(&pool->freed);
}

static enum quire_status give(struct quire_pool *pool, const int32_t *pages, int64_t n,
                              enum fifo_givers givers, struct quire_refusal *refusal_out)
{
	int64_t bad;

	QUIRE_ASSERT(pool && (pages || n <= 0));
	if (!is_count(pool, n))
		return refuse_count(pool, n, refusal_out);
	if (n == 0)
		return QUIRE_OK;
	bad = FIFO_CALL(pool, give, pages, (uint32_t)n, givers);
	if (bad < n)
		return refuse_batch(pool, pages, n, bad, refusal_out);
	wake_waiters(pool);
	return QUIRE_OK;
}

enum quire_status quire_pool_free(struct quire_pool *pool, const int32_t *pages,
                                  int64_t n, struct quire_refusal *refusal_out)
{
	return give(pool, pages, n, FIFO_ANY_GIVERS, refusal_out);
}

enum quire_status quire_pool_free_single_giver(struct quire_pool *pool,
                                               const int32_t *pages, int64_t n,
                                               struct quire_refusal *refusal_out)
{
	return give(pool, pages, n, FIFO_ONE_GIVER, refusal_out);
}

int32_t quire_pool_num_free(const struct quire_pool *pool)
{
	return (int32_t)FIFO_CALL(pool, count);
}

int32_t quire_pool_num_pages(const struct quire_pool *pool)
{
	return pool->num_pages;
}

bool quire_pool_is_lock_free(const struct quire_pool *pool)
{
	return pool->kind == QUIRE_POOL_LOCK_FREE;
}

static enum quire_status broken(const char *rule, int32_t page,
                                struct quire_refusal *refusal_out)
{
	return quire_refuse_page(refusal_out, QUIRE_BROKEN, rule, (uint32_t)page);
}

/* Every page is free once, or owned; `seen` is zeroed, one byte per page. */
static enum quire_status check_pages(const struct quire_pool *pool, const int32_t *free,
                                     uint8_t *seen, struct quire_refusal *refusal_out)
{
	int32_t num_free = quire_pool_num_free(pool);

	for (int32_t i = 0; i < num_free; i++) {
		if ((uint32_t)free[i] >= (uint32_t)pool->num_pages)
			return broken("what is free is a page of the pool", free[i],
			              refusal_out);
		if (seen[free[i]]++)
			return broken("a page is free once", free[i], refusal_out);
	}
	for (int32_t p = 0; p < pool->num_pages; p++) {
		if (seen[p] + FIFO_CALL(pool, owns, (uint32_t)p) != 1)
			return broken("a page is free or owned", p, refusal_out);
	}
	return QUIRE_OK;
}

enum quire_status quire_pool_check(const struct quire_pool *pool, int32_t *pages_out,
                                   struct quire_refusal *refusal_out)
{
	size_t num_pages = (size_t)pool->num_pages;
	enum quire_status status = QUIRE_NO_MEMORY;
	int32_t *pages = malloc(num_pages * sizeof(*pages));
	uint8_t *seen = calloc(num_pages, sizeof(*seen));

	if (!pages || !seen) {
		quire_refuse_what(refusal_out, status, "the check's tables");
		goto undo_tables;
	}
	status = FIFO_CALL(pool, list, pages, refusal_out);
	if (status == QUIRE_OK)
		status = check_pages(pool, pages, seen, refusal_out);
	if (status == QUIRE_OK && pages_out)
		memcpy(pages_out, pages,
		       (size_t)quire_pool_num_free(pool) * sizeof(*pages));

undo_tables:
	free(seen);
	free(pages);
	return status;
}
