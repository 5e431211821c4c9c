/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_TESTS_ALLOC_LINEAR_HISTORY_H
#define QUIRE_TESTS_ALLOC_LINEAR_HISTORY_H
/*
 * A history: what a few threads asked of a page FIFO at the same time, what they were
 * told, and when.  The search (Wing and Gong, 1993) looks for one order of the calls that
 * keeps real time and in which a sequential FIFO would have given the same answers.
 *
 * The sequential FIFO: a row of free pages; all other pages are owned.
 *   take n     OK: the n in front leave, in that order, and are owned.
 *              Refused: the row is shorter than n, and as long as the refusal says.
 *   free       OK: every page of the batch is owned and named once; all join the end.
 *              QUIRE_INVALID at i: page i is the first that is no page of the pool.
 *              QUIRE_NOT_OWNED at i: page i is free, or named before; those before it
 *              are owned.  (Another place may be bad too: it need not be the first that
 *              is named twice.)
 *   num_free   The length of the row.
 *   The end    The row is the one found after the last call.
 *
 * Two frees of a page at the same time
 *   A page does not change hands at one instant: a call that takes or gives it has it in
 *   its hands for a while.  Hence one exception, for refused frees alone, which change
 *   nothing: a page that another overlapping call has in its hands may count as owned or
 *   as free, wherever the refused free stands in the order.  In the hands of
 *     a take or free that succeeds   are its pages;
 *     a free that is refused         are the pages before the refused place.
 *   So of two frees of a page that overlap one may be refused though the other comes
 *   later in the order, but not both, unless one was refused for a later page.  Both
 *   succeed in no order, unless a take comes between: a free that succeeds must own.
 */
#include <quire/runtime/status.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define HISTORY_THREADS 3
#define HISTORY_OPS     6   /* of a thread, at most */
#define HISTORY_PAGES   128 /* of a pool, at most */
#define HISTORY_UNTOLD  (-1)

enum history_call {
	HISTORY_TRY_ALLOCATE,
	HISTORY_ALLOCATE,
	HISTORY_ALLOCATE_WAIT,
	HISTORY_FREE,
	HISTORY_NUM_FREE,
	HISTORY_CALLS
};

struct history_op {
	enum history_call call;
	int32_t n;
	int32_t wait_us;              /* allocate_wait: its deadline from now; 0: none */
	int32_t pages[HISTORY_PAGES]; /* what to free; what was taken */
	enum quire_status status;
	int32_t told;       /* num_free: the number; a refused take: what is there, or */
			    /* HISTORY_UNTOLD; a refused free: the place */
	int64_t start, end; /* all starts and ends of a run lie on one line */
};

struct history_thread {
	int32_t num_ops;
	struct history_op ops[HISTORY_OPS];
};

struct history_row {
	int32_t n;
	int32_t pages[HISTORY_PAGES];
};

struct history {
	int32_t num_pages;
	struct history_row before, after;
	struct history_thread threads[HISTORY_THREADS];
};

static inline bool history_is_take(const struct history_op *op)
{
	return op->call < HISTORY_FREE;
}

/* Is there an order? */
bool history_has_order(const struct history *history);

/* Pairs of calls of different threads that ran at the same time ... */
int32_t history_overlaps(const struct history *history);

/* ... and of those, frees that name the same page of the pool. */
int32_t history_contests(const struct history *history);

/* For people: who, what, when, answers. */
void history_print(const struct history *history, FILE *file);

#endif
