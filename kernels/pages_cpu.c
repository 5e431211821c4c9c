/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "kernels/device_cpu_impl.h"
#include "runtime/refuse_impl.h"

#include <string.h>

/*
 * Copying pages as if all sources were read before any target is written.
 *
 * A page is the target of at most one copy, so copies hang together as chains and cycles
 * with chains that branch off.  A copy is ready when no copy that has yet to run reads
 * its target.  Running ready copies until there are none leaves simple cycles; each is
 * opened by saving one target, after which it is a chain.
 *
 * The result is a list of moves; SAVED stands for the scratch page.
 */
#define SAVED (-1)

struct page_step {
	int32_t source;
	int32_t target;
};

struct page_order {
	struct page_step *steps; /* room for 2n: each cycle, of 2 or more, adds one */
	int64_t num_steps;
	int32_t *map; /* open addressing: a copy's number + 1 by its target, 0 for none */
	uint32_t map_mask; /* 2^(32 - map_shift) - 1 */
	int map_shift;
	int32_t *upstream; /* of copy i: another whose target is the source of i; -1 */
	int32_t *readers;  /* of copy i: copies to run that read its target; -1: it ran */
};

/* Where a page's entry is, or would be. */
static uint32_t map_place(const struct page_order *order, const int32_t *target,
                          int32_t page)
{
	/* Fibonacci hashing: the high bits of a product with 2^32 over the golden
	 * ratio. */
	uint32_t place = (uint32_t)page * UINT32_C(0x9e3779b9) >> order->map_shift;

	while (order->map[place] != 0 && target[order->map[place] - 1] != page)
		place = (place + 1) & order->map_mask;
	return place;
}

static enum quire_status check_pages(const struct quire_page_move *move,
                                     struct quire_refusal *refusal)
{
	int64_t last = move->geometry->num_pages - 1;

	for (int64_t i = 0; i < move->n; i++) {
		int32_t source = move->source[i];
		int32_t target = move->target[i];

		if (source < 0 || source > last)
			return quire_refuse_bound(refusal, QUIRE_INVALID, "source", i,
			                          source, source < 0 ? 0 : last);
		if (target < 0 || target > last)
			return quire_refuse_bound(refusal, QUIRE_INVALID, "target", i,
			                          target, target < 0 ? 0 : last);
	}
	return QUIRE_OK;
}

/* Fill the map; a target named twice is refused. */
static enum quire_status map_targets(struct page_order *order,
                                     const struct quire_page_move *move,
                                     struct quire_refusal *refusal)
{
	memset(order->map, 0, ((size_t)order->map_mask + 1) * sizeof(*order->map));
	for (int64_t i = 0; i < move->n; i++) {
		uint32_t place = map_place(order, move->target, move->target[i]);

		if (order->map[place] != 0) {
			quire_refuse_what(refusal, QUIRE_INVALID, "target named twice");
			refusal->index = i;
			refusal->page = move->target[i];
			return QUIRE_INVALID;
		}
		order->map[place] = (int32_t)(i + 1);
	}
	return QUIRE_OK;
}

/* A copy onto itself reads nothing. */
static void count_readers(struct page_order *order, const struct quire_page_move *move)
{
	memset(order->readers, 0, (size_t)move->n * sizeof(*order->readers));
	for (int64_t i = 0; i < move->n; i++) {
		uint32_t place = map_place(order, move->target, move->source[i]);
		int32_t upstream = order->map[place] - 1;

		order->upstream[i] = upstream == i ? -1 : upstream;
		if (order->upstream[i] >= 0)
			order->readers[upstream]++;
	}
}

static void add_step(struct page_order *order, int32_t source, int32_t target)
{
	order->steps[order->num_steps++] = (struct page_step){source, target};
}

/* Run copy i, which is ready, and those that this makes ready one after the other. */
static void run_chain(struct page_order *order, const struct quire_page_move *move,
                      int64_t i)
{
	while (i >= 0 && order->readers[i] == 0) {
		order->readers[i] = -1;
		if (move->source[i] != move->target[i])
			add_step(order, move->source[i], move->target[i]);
		i = order->upstream[i];
		if (i >= 0)
			order->readers[i]--;
	}
}

/* Open the cycle that copy i is on: its target is saved, and read from there. */
static void run_cycle(struct page_order *order, const struct quire_page_move *move,
                      int64_t i)
{
	int64_t first = i;

	add_step(order, move->target[first], SAVED);
	for (; order->upstream[i] != first; i = order->upstream[i]) {
		order->readers[i] = -1;
		add_step(order, move->source[i], move->target[i]);
	}
	order->readers[i] = -1;
	add_step(order, SAVED, move->target[i]);
}

static enum quire_status plan_order(struct page_order *order,
                                    const struct quire_page_move *move,
                                    struct quire_refusal *refusal)
{
	enum quire_status status = map_targets(order, move, refusal);

	if (status != QUIRE_OK)
		return status;
	count_readers(order, move);
	for (int64_t i = 0; i < move->n; i++)
		run_chain(order, move, i);
	for (int64_t i = 0; i < move->n; i++)
		if (order->readers[i] > 0)
			run_cycle(order, move, i);
	return QUIRE_OK;
}

static char *page_or_saved(const struct quire_page_move *move, int64_t layer,
                           int32_t page, char *saved)
{
	if (page == SAVED)
		return saved;
	return move->storage + quire_geometry_offset(move->geometry, layer, page, 0, 0);
}

static void run_steps(const struct page_order *order, const struct quire_page_move *move,
                      char *saved)
{
	const struct quire_geometry *geometry = move->geometry;
	int64_t page_bytes = geometry->page_stride * geometry->element_bytes;

	for (int64_t layer = 0; layer < geometry->num_layers; layer++) {
		for (int64_t i = 0; i < order->num_steps; i++) {
			struct page_step step = order->steps[i];

			memcpy(page_or_saved(move, layer, step.target, saved),
			       page_or_saved(move, layer, step.source, saved),
			       (size_t)page_bytes);
		}
	}
}

enum quire_status quire_cpu_run_copy_pages(const struct quire_page_move *move,
                                           struct cpu_scratch *scratch,
                                           struct quire_refusal *refusal)
{
	enum quire_status status = check_pages(move, refusal);
	size_t page_bytes =
		(size_t)(move->geometry->page_stride * move->geometry->element_bytes);
	size_t n = (size_t)move->n;
	size_t map_size = 4;
	struct page_order order = {0};
	char *memory;

	if (status != QUIRE_OK || n == 0)
		return status;
	order.map_shift = 30;
	while (map_size < 2 * n) {
		map_size *= 2;
		order.map_shift--;
	}
	memory = quire_cpu_scratch_get(scratch,
	                               page_bytes + 2 * n * sizeof(*order.steps) +
	                                       (map_size + 2 * n) * sizeof(int32_t));
	if (memory == NULL)
		return quire_refuse_what(refusal, QUIRE_NO_MEMORY,
		                         "scratch of copy_pages");
	order.steps = (struct page_step *)memory;
	order.map = (int32_t *)(order.steps + 2 * n);
	order.map_mask = (uint32_t)map_size - 1;
	order.upstream = order.map + map_size;
	order.readers = order.upstream + n;
	status = plan_order(&order, move, refusal);
	if (status == QUIRE_OK)
		run_steps(&order, move, (char *)(order.readers + n));
	return status;
}
