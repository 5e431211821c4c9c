/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "alloc/lock_fifo_impl.h"
#include "runtime/refuse_impl.h"

#include <stdlib.h>
#include <string.h>

bool quire_lock_fifo_init(struct quire_lock_fifo *fifo, uint32_t num_pages)
{
	fifo->num_pages = num_pages;
	fifo->head = 0;
	fifo->ring = malloc(num_pages * sizeof(*fifo->ring));
	if (!fifo->ring)
		return false;
	fifo->owned = calloc(num_pages, sizeof(*fifo->owned));
	if (!fifo->owned)
		goto undo_ring;
	if (pthread_mutex_init(&fifo->lock, NULL))
		goto undo_owned;
	for (uint32_t p = 0; p < num_pages; p++)
		fifo->ring[p] = (int32_t)p;
	atomic_init(&fifo->count, num_pages);
	return true;

undo_owned:
	free(fifo->owned);
undo_ring:
	free(fifo->ring);
	return false;
}

void quire_lock_fifo_end(struct quire_lock_fifo *fifo)
{
	pthread_mutex_destroy(&fifo->lock);
	free(fifo->owned);
	free(fifo->ring);
}

/* Relaxed: a number; what it counts is read and written under the lock. */
uint32_t quire_lock_fifo_count(const struct quire_lock_fifo *fifo)
{
	return atomic_load_explicit(&fifo->count, memory_order_relaxed);
}

static void set_count(struct quire_lock_fifo *fifo, uint32_t count)
{
	atomic_store_explicit(&fifo->count, count, memory_order_relaxed);
}

/* A place in the ring, from one that may be one turn too far. */
static uint32_t wrapped(const struct quire_lock_fifo *fifo, uint64_t place)
{
	return (uint32_t)(place < fifo->num_pages ? place : place - fifo->num_pages);
}

/* Pages in one piece from a place on, of n. */
static uint32_t piece(const struct quire_lock_fifo *fifo, uint32_t place, uint32_t n)
{
	return n < fifo->num_pages - place ? n : fifo->num_pages - place;
}

bool quire_lock_fifo_take(struct quire_lock_fifo *fifo, uint32_t n, int32_t *pages_out,
                          uint32_t *available_out)
{
	uint8_t *owned = fifo->owned;
	uint32_t count, first;

	pthread_mutex_lock(&fifo->lock);
	QUIRE_POOL_POINT(LOCKED);
	count = quire_lock_fifo_count(fifo);
	if (count >= n) {
		first = piece(fifo, fifo->head, n);
		memcpy(pages_out, &fifo->ring[fifo->head], first * sizeof(*pages_out));
		memcpy(pages_out + first, fifo->ring, (n - first) * sizeof(*pages_out));
		fifo->head = wrapped(fifo, (uint64_t)fifo->head + n);
		set_count(fifo, count - n);
		for (uint32_t i = 0; i < n; i++)
			owned[pages_out[i]] = 1;
	}
	pthread_mutex_unlock(&fifo->lock);
	*available_out = count;
	return count >= n;
}

/* The place of the first that is no page or not owned, with all undone, or n. */
static uint32_t claim_batch(struct quire_lock_fifo *fifo, const int32_t *pages,
                            uint32_t n)
{
	uint8_t *owned = fifo->owned;
	uint32_t num_pages = fifo->num_pages;
	uint32_t i;

	for (i = 0; i < n && (uint32_t)pages[i] < num_pages && owned[pages[i]]; i++)
		owned[pages[i]] = 0;
	for (uint32_t k = 0; i < n && k < i; k++)
		owned[pages[k]] = 1;
	return i;
}

/* The lock makes everybody the only giver. */
uint32_t quire_lock_fifo_give(struct quire_lock_fifo *fifo, const int32_t *pages,
                              uint32_t n, enum fifo_givers givers)
{
	uint32_t claimed, count, tail, first;

	(void)givers;

	pthread_mutex_lock(&fifo->lock);
	QUIRE_POOL_POINT(LOCKED);
	claimed = claim_batch(fifo, pages, n);
	if (claimed == n) {
		count = quire_lock_fifo_count(fifo);
		tail = wrapped(fifo, (uint64_t)fifo->head + count);
		first = piece(fifo, tail, n);
		memcpy(&fifo->ring[tail], pages, first * sizeof(*pages));
		memcpy(fifo->ring, pages + first, (n - first) * sizeof(*pages));
		set_count(fifo, count + n);
	}
	pthread_mutex_unlock(&fifo->lock);
	return claimed;
}

enum quire_status quire_lock_fifo_list(const struct quire_lock_fifo *fifo,
                                       int32_t *pages_out,
                                       struct quire_refusal *refusal_out)
{
	uint32_t count = quire_lock_fifo_count(fifo);

	if (count > fifo->num_pages || fifo->head >= fifo->num_pages)
		return quire_refuse_page(refusal_out, QUIRE_BROKEN,
		                         "the state names pages of the pool", fifo->head);
	for (uint32_t i = 0; i < count; i++)
		pages_out[i] = fifo->ring[wrapped(fifo, (uint64_t)fifo->head + i)];
	return QUIRE_OK;
}

bool quire_lock_fifo_owns(const struct quire_lock_fifo *fifo, uint32_t page)
{
	return fifo->owned[page];
}
