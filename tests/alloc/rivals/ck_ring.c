/* SPDX-License-Identifier: MIT */
/*
 * ConcurrencyKit's ring for many producers and many consumers.  It moves one entry at a
 * time, so a count beside it is taken from first, which makes a take all or nothing, and
 * n single moves follow: other threads' pages may come between those of a batch.
 */
#include "config.h"

#include "tests/alloc/rivals/rival.h"

#include <ck_pr.h>
#include <ck_ring.h>

#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>

struct page_id {
	int32_t page;
};

CK_RING_PROTOTYPE(pages, page_id)

struct counted_ring {
	struct ck_ring ring;
	struct page_id *places;
	alignas(128) _Atomic int32_t count; /* pages in the ring that no take counts on */
};

static bool take(void *fifo, int32_t n, int32_t *pages_out)
{
	struct counted_ring *self = fifo;
	int32_t count = atomic_load_explicit(&self->count, memory_order_acquire);

	do {
		if (count < n)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&self->count, &count, count - n,
	                                                memory_order_acq_rel,
	                                                memory_order_acquire));
	for (int32_t i = 0; i < n; i++) {
		struct page_id id;

		/* There is one for us: the count grows after the ring does. */
		while (!CK_RING_DEQUEUE_MPMC(pages, &self->ring, self->places, &id))
			ck_pr_stall();
		pages_out[i] = id.page;
	}
	return true;
}

static bool give(void *fifo, const int32_t *pages, int32_t n)
{
	struct counted_ring *self = fifo;

	for (int32_t i = 0; i < n; i++) {
		struct page_id id = {pages[i]};

		if (!CK_RING_ENQUEUE_MPMC(pages, &self->ring, self->places, &id))
			return false;
	}
	atomic_fetch_add_explicit(&self->count, n, memory_order_acq_rel);
	return true;
}

static void *create(int32_t num_pages)
{
	struct counted_ring *self = rival_memory(sizeof(*self));
	unsigned int places = 16;

	/* A power of two, of which one place stays empty. */
	while (places <= (unsigned int)num_pages)
		places *= 2;
	self->places = rival_memory(places * sizeof(*self->places));
	ck_ring_init(&self->ring, places);
	for (int32_t p = 0; p < num_pages; p++)
		rival_must(give(self, &p, 1), "ck_ring: not filled");
	return self;
}

static void destroy(void *fifo)
{
	struct counted_ring *self = fifo;

	free(self->places);
	free(self);
}

const struct rival rival_ck_ring = {
	.name = "ck_ring",
	.create = create,
	.take = take,
	.give = give,
	.destroy = destroy,
};
