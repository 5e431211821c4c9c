/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/runtime/broken_pool.h"

#include "alloc/pool_impl.h"
#include "runtime/refuse_impl.h"

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

enum broken_pool_fault broken_pool_fault;

/* Faults come at one call in so many, so that a run is under way. */
#define CALLS_EVERY 50

static _Atomic int64_t calls;

/* Around every change: the faults look at more than one page. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Is it the fault's turn? */
static bool is_due(enum broken_pool_fault fault)
{
	return broken_pool_fault == fault && ++calls % CALLS_EVERY == 0;
}

/* ------------------------------------------------------------------ life */

enum quire_status quire_pool_create_kind(int64_t num_pages, enum quire_pool_kind kind,
                                         struct quire_pool **pool_out)
{
	struct quire_pool *pool =
		aligned_alloc(alignof(struct quire_pool), sizeof(*pool));

	if (pool == NULL)
		return QUIRE_NO_MEMORY;
	pool->kind = kind;
	pool->num_pages = (int32_t)num_pages;
	if (!quire_lock_fifo_init(&pool->lock_fifo, (uint32_t)num_pages)) {
		free(pool);
		return QUIRE_NO_MEMORY;
	}
	calls = 0;
	*pool_out = pool;
	return QUIRE_OK;
}

void quire_pool_destroy(struct quire_pool *pool)
{
	if (pool == NULL)
		return;
	quire_lock_fifo_end(&pool->lock_fifo);
	free(pool);
}

/* ------------------------------------------------------------------ take */

static enum quire_status refuse_take(enum quire_status status, int64_t n,
                                     int64_t available, struct quire_refusal *refusal_out)
{
	return quire_refuse(refusal_out, (struct quire_refusal){.status = status,
	                                                        .what = "free pages",
	                                                        .requested = n,
	                                                        .available = available});
}

/* In place of pages_out[0], which is lost: a page that was handed out before. */
static void take_twice(const struct quire_pool *pool, int64_t n, int32_t *pages_out)
{
	for (int32_t page = 0; page < pool->num_pages; page++) {
		bool is_new = false;

		for (int64_t i = 0; i < n; i++)
			is_new |= pages_out[i] == page;
		if (!is_new && quire_lock_fifo_owns(&pool->lock_fifo, (uint32_t)page))
			pages_out[0] = page;
	}
}

static void spoil_taken(const struct quire_pool *pool, int64_t n, int32_t *pages_out)
{
	int32_t first = pages_out[0];

	if (is_due(BROKEN_TAKE_TWICE))
		take_twice(pool, n, pages_out);
	if (is_due(BROKEN_TAKE_RANGE))
		pages_out[n - 1] = pool->num_pages;
	if (broken_pool_fault == BROKEN_TAKE_ORDER && n == pool->num_pages) {
		pages_out[0] = pages_out[n - 1];
		pages_out[n - 1] = first;
	}
}

static enum quire_status take(struct quire_pool *pool, int64_t n, int32_t *pages_out,
                              struct quire_refusal *refusal_out)
{
	uint32_t available = quire_lock_fifo_count(&pool->lock_fifo);

	if ((available >= n && is_due(BROKEN_TAKE_REFUSED)) ||
	    (broken_pool_fault == BROKEN_TAKE_ALL && n == pool->num_pages))
		return refuse_take(QUIRE_NO_PAGES, n, available, refusal_out);
	if (broken_pool_fault == BROKEN_TAKE_NEVER && n != pool->num_pages)
		return refuse_take(QUIRE_NO_PAGES, n, 0, refusal_out);
	if (quire_lock_fifo_take(&pool->lock_fifo, (uint32_t)n, pages_out, &available)) {
		spoil_taken(pool, n, pages_out);
		return QUIRE_OK;
	}
	if (broken_pool_fault == BROKEN_TAKE_MISCOUNTED)
		return refuse_take(QUIRE_NO_PAGES, n, -1, refusal_out);
	return refuse_take(broken_pool_fault == BROKEN_TAKE_STATUS ? QUIRE_AGAIN
	                                                           : QUIRE_NO_PAGES,
	                   n, available, refusal_out);
}

enum quire_status quire_pool_allocate(struct quire_pool *pool, int64_t n,
                                      int32_t *pages_out,
                                      struct quire_refusal *refusal_out)
{
	enum quire_status status;

	pthread_mutex_lock(&lock);
	if (is_due(BROKEN_HANG)) {
		pthread_mutex_unlock(&lock);
		for (;;)
			pause();
	}
	status = take(pool, n, pages_out, refusal_out);
	pthread_mutex_unlock(&lock);
	return status;
}

bool quire_pool_try_allocate(struct quire_pool *pool, int64_t n, int32_t *pages_out)
{
	return quire_pool_allocate(pool, n, pages_out, NULL) == QUIRE_OK;
}

enum quire_status quire_pool_allocate_wait(struct quire_pool *pool, int64_t n,
                                           int32_t *pages_out, int64_t deadline_ns,
                                           struct quire_refusal *refusal_out)
{
	struct quire_refusal refusal;

	while (quire_pool_allocate(pool, n, pages_out, &refusal) != QUIRE_OK) {
		if (refusal.available >= n) /* by a fault that is not meant for here */
			continue;
		if (broken_pool_fault == BROKEN_WAIT_EARLY ||
		    quire_now_ns() >= deadline_ns)
			return refuse_take(QUIRE_TIMEOUT, n, refusal.available,
			                   refusal_out);
		sched_yield();
	}
	return QUIRE_OK;
}

/* ------------------------------------------------------------------ give */

static bool is_page(const struct quire_pool *pool, int32_t page)
{
	return page >= 0 && page < pool->num_pages;
}

static enum quire_status refuse_batch(struct quire_pool *pool, const int32_t *pages,
                                      int64_t n, int64_t at,
                                      struct quire_refusal *refusal_out)
{
	bool is_range = false;

	for (int64_t i = n - 1; i >= 0; i--) {
		if (is_page(pool, pages[i]))
			continue;
		is_range = true;
		at = i;
	}
	if (broken_pool_fault == BROKEN_BAD_ACCEPTED ||
	    (broken_pool_fault == BROKEN_FREE_TWICE && n == 1 && !is_range))
		return QUIRE_OK;
	if (broken_pool_fault == BROKEN_BAD_GIVEN)
		quire_lock_fifo_give(&pool->lock_fifo, pages, (uint32_t)at,
		                     FIFO_ANY_GIVERS);
	if (broken_pool_fault == BROKEN_BAD_STATUS)
		is_range = !is_range;
	if (broken_pool_fault == (is_range ? BROKEN_BAD_PLACE_RANGE : BROKEN_BAD_PLACE))
		at = at == 0 ? n - 1 : at - 1;
	if (is_range)
		return quire_refuse_bound(refusal_out, QUIRE_INVALID, "pages", at,
		                          pages[at], pool->num_pages - 1);
	return quire_refuse(
		refusal_out,
		(struct quire_refusal){
			.status = QUIRE_NOT_OWNED,
			.what = "pages",
			.index = at,
			.page = broken_pool_fault == BROKEN_BAD_PAGE ? -1 : pages[at]});
}

static bool is_good(const struct quire_pool *pool, const int32_t *pages, int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		if (!is_page(pool, pages[i]) ||
		    !quire_lock_fifo_owns(&pool->lock_fifo, (uint32_t)pages[i]))
			return false;
		for (int64_t k = 0; k < i; k++) {
			if (pages[k] == pages[i])
				return false;
		}
	}
	return true;
}

/* The place in a good batch for which a fault refuses it, or n. */
static int64_t refused_place(const int32_t *pages, int64_t n)
{
	int64_t i;

	for (i = 0; i < n; i++) {
		if ((broken_pool_fault == BROKEN_FREE_REFUSED && pages[i] % 2 != 0) ||
		    (broken_pool_fault == BROKEN_FREE_CONTESTED && pages[i] == 0))
			break;
	}
	return i;
}

static enum quire_status give(struct quire_pool *pool, const int32_t *pages, int64_t n,
                              struct quire_refusal *refusal_out)
{
	int64_t at = 0;

	if (is_good(pool, pages, n)) {
		at = refused_place(pages, n);
		if (at < n)
			return refuse_batch(pool, pages, n, at, refusal_out);
		if (is_due(BROKEN_FREE_LOSES)) {
			pages++;
			n--;
		}
	}
	at = quire_lock_fifo_give(&pool->lock_fifo, pages, (uint32_t)n, FIFO_ANY_GIVERS);
	return at == n ? QUIRE_OK : refuse_batch(pool, pages, n, at, refusal_out);
}

enum quire_status quire_pool_free(struct quire_pool *pool, const int32_t *pages,
                                  int64_t n, struct quire_refusal *refusal_out)
{
	enum quire_status status;

	pthread_mutex_lock(&lock);
	status = give(pool, pages, n, refusal_out);
	pthread_mutex_unlock(&lock);
	return status;
}

enum quire_status quire_pool_free_single_giver(struct quire_pool *pool,
                                               const int32_t *pages, int64_t n,
                                               struct quire_refusal *refusal_out)
{
	return quire_pool_free(pool, pages, n, refusal_out);
}

/* ------------------------------------------------------------------ inspect */

int32_t quire_pool_num_free(const struct quire_pool *pool)
{
	int32_t num_free = (int32_t)quire_lock_fifo_count(&pool->lock_fifo);

	if (is_due(BROKEN_COUNT_HIGH))
		return pool->num_pages;
	return is_due(BROKEN_COUNT_LOW) ? -1 : num_free;
}

enum quire_status quire_pool_check(const struct quire_pool *pool, int32_t *pages_out,
                                   struct quire_refusal *refusal_out)
{
	if (broken_pool_fault == BROKEN_CHECK)
		return quire_refuse(refusal_out,
		                    (struct quire_refusal){.status = QUIRE_BROKEN,
		                                           .what = "a rule made up",
		                                           .page = 7});
	return quire_lock_fifo_list(&pool->lock_fifo, pages_out, refusal_out);
}
