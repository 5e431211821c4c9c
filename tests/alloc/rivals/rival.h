/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_TESTS_ALLOC_RIVALS_RIVAL_H
#define QUIRE_TESTS_ALLOC_RIVALS_RIVAL_H
/*
 * What bench_pool measures side by side: the pool, and queues that one might have used
 * instead, all behind the few calls that a pool is made of.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rival {
	const char *name;
	bool one_giver; /* only one thread gives at a time */

	/* A FIFO of pages 0..num_pages-1 in that order; NULL: there is none here. */
	void *(*create)(int32_t num_pages);

	/* The n oldest pages or, when fewer are free, nothing; and n pages to the end.
	 * What others cannot do at one instant they do as best they can: their files say
	 * how. */
	bool (*take)(void *fifo, int32_t n, int32_t *pages_out);
	bool (*give)(void *fifo, const int32_t *pages, int32_t n);
	void (*destroy)(void *fifo);

	/* NULL, or the rival runs in a process of its own and times itself: it obeys a
	 * command and answers with so many numbers (documented_fifo.py lists them). */
	bool (*ask)(void *fifo, const char *command, double *numbers_out, int count);
};

/* The pool: any number of givers, one giver, and its FIFO with a lock, which is the ring
 * under a mutex that makes the same checks.  All ratios are to the last. */
extern const struct rival rival_pool, rival_pool_one_giver, rival_mutex_checks;

/* Those that check nothing. */
extern const struct rival rival_mutex, rival_ck_ring, rival_wfcqueue;
extern const struct rival rival_rte_ring, rival_rte_ring_rts, rival_rte_ring_hts;

/* The Python original, and the same on Python's fastest queue. */
extern const struct rival rival_python, rival_python_deque;

#define RIVALS_MAX 16

/* All of them, in the order above; how many. */
int rivals_list(const struct rival *rivals_out[RIVALS_MAX]);

/* Is this FIFO right?  Takes all some times over, with gives in scrambled order between:
 * what is wrong, or NULL.  rival_absent: there is none here. */
extern const char rival_absent[];
const char *rival_fault(const struct rival *rival);

/* Are all pages 0..num_pages-1 there, each once?  Nobody else is. */
bool rival_has_all(const struct rival *rival, void *fifo, int32_t num_pages);

/* Zeroed memory as the pool has it: a large block asks for huge pages.  End it with free;
 * out of memory it ends the program. */
void *rival_memory(size_t bytes);

/* End the program when this is false. */
void rival_must(bool done, const char *what);

#endif
