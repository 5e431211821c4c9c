/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_RUNTIME_CMD_RING_IMPL_H
#define QUIRE_RUNTIME_CMD_RING_IMPL_H
/*
 * Lists of pages on their way: put by one thread under keys that grow, got by another (or
 * the same), which ends them in the order of the keys.  The getter learns elsewhere that
 * a key was put, with what orders the two; so nothing here waits or locks.
 *
 * Room is made once.  A list that finds none is not kept, and the getter is told.
 *
 * Invariant: ended <= put <= ended + CMD_RING_PAGES, and what lies between the two is
 * never written over.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Pages in the ring: CMD_WINDOW steps of 4,096 pages, address space until it is used. */
#define CMD_RING_PAGES (1 << 22)

/* Keys of the newest lists; more than may be on their way (replay_impl.h). */
#define CMD_RING_KEYS (1 << 14)

struct cmd_ring_list {
	uint64_t key;
	uint64_t end;  /* of its pages, counted from the first page ever put */
	int32_t num;   /* pages; -1: not kept */
	int32_t start; /* place of the first one */
};

struct cmd_ring {
	_Atomic uint64_t put;   /* the putter's */
	_Atomic uint64_t ended; /* the getter's */
	struct cmd_ring_list lists[CMD_RING_KEYS];
	int32_t pages[CMD_RING_PAGES];
};

/* NULL: no memory. */
struct cmd_ring *cmd_ring_create(void);
void cmd_ring_destroy(struct cmd_ring *ring);

/* @key: above all before it, at least 1.  Threads: the putter. */
void cmd_ring_put(struct cmd_ring *ring, uint64_t key, const int32_t *pages, int32_t num);

/*
 * cmd_ring_get - the pages of a key, lent until it is ended
 * Returns:  NULL: none was put, or it was not kept.
 * Threads:  the getter.
 */
const int32_t *cmd_ring_get(const struct cmd_ring *ring, uint64_t key, int32_t *num_out);

/* The getter is done with a key, and with all before it; one without a list, or 0, is
 * passed over. */
void cmd_ring_end(struct cmd_ring *ring, uint64_t key);

/* Is less than half of it free?  Threads: the getter. */
bool cmd_ring_is_tight(const struct cmd_ring *ring);

#endif
