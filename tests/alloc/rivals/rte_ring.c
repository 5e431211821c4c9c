/* SPDX-License-Identifier: MIT */
/*
 * DPDK's ring of ids in its three ways for many producers and many consumers: each side
 * moves its end only after those before it have (default); the last of those inside moves
 * it (relaxed tail sync); one at a time (head/tail sync).  Bulks are all or nothing; no
 * page is looked at.  A thread stopped inside holds up the others.
 */
#include "config.h"

#include "tests/alloc/rivals/rival.h"

#include <stdlib.h>

#include <rte_ring.h>
#include <rte_ring_elem.h>

static void *create(int32_t num_pages, unsigned int flags)
{
	/* A ring has a power of two of places, of which one stays empty. */
	unsigned int places = 16;
	struct rte_ring *ring;
	ssize_t bytes;

	while (places <= (unsigned int)num_pages)
		places *= 2;
	bytes = rte_ring_get_memsize_elem(sizeof(int32_t), places);
	rival_must(bytes > 0, "rte_ring: no such size");
	ring = rival_memory((size_t)bytes);
	/* On memory of our own, so without DPDK's environment. */
	rival_must(rte_ring_init(ring, "pages", places, flags) == 0,
	           "rte_ring: not made");
	for (int32_t p = 0; p < num_pages; p++) {
		rival_must(rte_ring_enqueue_bulk_elem(ring, &p, sizeof(p), 1, NULL) == 1,
		           "rte_ring: not filled");
	}
	return ring;
}

static void *create_default(int32_t num_pages)
{
	return create(num_pages, 0);
}

static void *create_rts(int32_t num_pages)
{
	return create(num_pages, RING_F_MP_RTS_ENQ | RING_F_MC_RTS_DEQ);
}

static void *create_hts(int32_t num_pages)
{
	return create(num_pages, RING_F_MP_HTS_ENQ | RING_F_MC_HTS_DEQ);
}

static bool take(void *fifo, int32_t n, int32_t *pages_out)
{
	return rte_ring_dequeue_bulk_elem(fifo, pages_out, sizeof(*pages_out),
	                                  (unsigned int)n, NULL) == (unsigned int)n;
}

static bool give(void *fifo, const int32_t *pages, int32_t n)
{
	return rte_ring_enqueue_bulk_elem(fifo, pages, sizeof(*pages), (unsigned int)n,
	                                  NULL) == (unsigned int)n;
}

const struct rival rival_rte_ring = {
	.name = "rte_ring",
	.create = create_default,
	.take = take,
	.give = give,
	.destroy = free,
};

const struct rival rival_rte_ring_rts = {
	.name = "rte_ring_rts",
	.create = create_rts,
	.take = take,
	.give = give,
	.destroy = free,
};

const struct rival rival_rte_ring_hts = {
	.name = "rte_ring_hts",
	.create = create_hts,
	.take = take,
	.give = give,
	.destroy = free,
};
