/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/ring_impl.h"

#include <stdlib.h>
#include <string.h>

struct cmd_ring *cmd_ring_create(void)
{
	return calloc(1, sizeof(struct cmd_ring));
}

void cmd_ring_destroy(struct cmd_ring *ring)
{
	free(ring);
}

void cmd_ring_put(struct cmd_ring *ring, uint64_t key, const int32_t *pages, int32_t num)
{
	struct cmd_ring_list *list = &ring->lists[key % CMD_RING_KEYS];
	uint64_t put = atomic_load_explicit(&ring->put, memory_order_relaxed);
	/* Pairs with the release in cmd_ring_end: the getter has read what lay there. */
	uint64_t ended = atomic_load_explicit(&ring->ended, memory_order_acquire);
	uint64_t place = put % CMD_RING_PAGES;

	/* A list lies in one piece. */
	if (place + (uint64_t)num > CMD_RING_PAGES) {
		put += CMD_RING_PAGES - place;
		place = 0;
	}
	*list = (struct cmd_ring_list){.key = key, .num = -1};
	if (put + (uint64_t)num > ended + CMD_RING_PAGES)
		return;
	if (num > 0)
		memcpy(ring->pages + place, pages, (size_t)num * sizeof(*pages));
	list->num = num;
	list->start = (int32_t)place;
	list->end = put + (uint64_t)num;
	/* Relaxed: only how full it is. */
	atomic_store_explicit(&ring->put, list->end, memory_order_relaxed);
}

/* The list of a key, if it was kept.  Key 0 is that of places never used. */
static const struct cmd_ring_list *find(const struct cmd_ring *ring, uint64_t key)
{
	const struct cmd_ring_list *list = &ring->lists[key % CMD_RING_KEYS];

	return key != 0 && list->key == key && list->num >= 0 ? list : NULL;
}

const int32_t *cmd_ring_get(const struct cmd_ring *ring, uint64_t key, int32_t *num_out)
{
	const struct cmd_ring_list *list = find(ring, key);

	if (list == NULL)
		return NULL;
	*num_out = list->num;
	return ring->pages + list->start;
}

void cmd_ring_end(struct cmd_ring *ring, uint64_t key)
{
	const struct cmd_ring_list *list = find(ring, key);

	if (list == NULL)
		return;
	/* Pairs with the acquire in cmd_ring_put. */
	atomic_store_explicit(&ring->ended, list->end, memory_order_release);
}

bool cmd_ring_is_tight(const struct cmd_ring *ring)
{
	uint64_t put = atomic_load_explicit(&ring->put, memory_order_relaxed);
	uint64_t ended = atomic_load_explicit(&ring->ended, memory_order_relaxed);

	return put - ended > CMD_RING_PAGES / 2;
}
