/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_TESTS_ALLOC_LINEAR_TRIAL_H
#define QUIRE_TESTS_ALLOC_LINEAR_TRIAL_H
/*
 * A trial: threads run a few random calls at once on a queue, again and again, with
 * random stalls inside the calls; every such history is searched for an order.
 *
 * Between two histories the threads meet, and the last one to come judges what was, reads
 * the queue, and deals out the pages that are not in it.
 */
#include "tests/alloc/linear_history.h"

#define TRIAL_BROKEN (-1)

/* The queue on trial. */
struct trial_queue {
	const char *name;
	void (*run)(struct history_op *op); /* do what the op says, note the answer */
	/* What is free, in order, or TRIAL_BROKEN; nobody else runs. */
	int32_t (*list)(int32_t *pages_out);
};

struct trial {
	const struct trial_queue *queue;
	int32_t num_pages;
	int64_t histories;
	uint64_t seed;
	bool one_giver;     /* thread 0 gives, the others take */
	bool rogues;        /* in half of the histories some frees name other pages */
	bool one_at_a_time; /* no two calls overlap */
	bool ends_early; /* the first history without an order is printed and the last */
	/* The outcome. */
	int64_t convicted;
	int64_t overlaps; /* pairs of calls of two threads at the same time */
	int64_t contests; /* of those, frees that name the same page */
};

void trial_run(struct trial *trial);

/* Inside a call of a trial: perhaps let the others go ahead. */
void trial_stall(void);

#endif
