/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_TESTS_ALLOC_LINEAR_RINGS_H
#define QUIRE_TESTS_ALLOC_LINEAR_RINGS_H
/*
 * Two rings that are known to be wrong as a FIFO of pages, for the search to convict.
 * They know nothing of owners.  Each is right as long as no two calls overlap.
 *
 * ring_of_sequences  a slot may be read when its sequence number says that it is written:
 *                    a completed free hides behind an earlier one that is stalled.
 * ring_and_counter   the counter says how many may be taken, and each page has a ticket
 *                    of its own (as a semaphore on SCQ): batches interleave.
 */
#include "tests/alloc/linear_trial.h"

#define RING_PAGES 8

extern const struct trial_queue ring_of_sequences, ring_and_counter;

/* Empty both rings and give each pages 0..RING_PAGES-1. */
void rings_reset(void);

#endif
