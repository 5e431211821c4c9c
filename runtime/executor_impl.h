/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_RUNTIME_EXECUTOR_IMPL_H
#define QUIRE_RUNTIME_EXECUTOR_IMPL_H
/*
 * The executor's own state, and what crosses between it and the planner: entries one way,
 * numbers the other.
 */
#include "runtime/counter_impl.h"

#include <quire/kernels/cache.h>
#include <quire/plans/plan.h>
#include <quire/plans/step.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* ------------------------------------------------------------ planner -> executor */

enum quire_entry_kind {
	QUIRE_ENTRY_PLAN,
	QUIRE_ENTRY_RELEASE,
};

struct quire_entry {
	enum quire_entry_kind kind;
	int32_t slot;    /* PLAN */
	int32_t count;   /* RELEASE: pages, at the ring's read position */
	uint64_t ticket; /* PLAN */
	uint64_t step;   /* PLAN */
};

/*
 * The plan queue: a ring with one writer and one reader, and beside it the ring of
 * released pages.  The latter can hold every page of the pool, and a page is in it at
 * most once, so it is never full.  Behind `released`, up to `staged`, it holds what held
 * steps give up, oldest first: a promotion moves the former, an abandon the latter.
 * tail: stored with release by the planner, loaded with acquire by the executor; what was
 * written to slots, pages and entries before is seen with it.  head: the other way round.
 */
struct quire_entries {
	struct quire_entry *ring;
	uint64_t mask;
	int32_t *pages;
	uint64_t pages_mask;
	uint64_t released; /* pages handed over with an entry, the planner's */
	uint64_t staged;   /* pages written to the ring */
	_Alignas(QUIRE_CACHE_LINE) _Atomic uint64_t tail;
	_Alignas(QUIRE_CACHE_LINE) _Atomic uint64_t head;
};

static inline uint64_t quire_entries_room(struct quire_entries *entries)
{
	/* Pairs with the release in the executor. */
	return entries->mask + 1 -
	       (atomic_load_explicit(&entries->tail, memory_order_relaxed) -
	        atomic_load_explicit(&entries->head, memory_order_acquire));
}

/* Room for a plan and for what it gives up. */
static inline bool quire_entries_have_room(struct quire_entries *entries)
{
	return quire_entries_room(entries) >= 2;
}

/* Built-in work with every address found. */
struct quire_issue {
	enum quire_work_kind kind;
	int32_t layer;
	int32_t dtype;
	int32_t copy;             /* COPY: index in the plan's copy lists */
	int32_t source, target;   /* COPY: pages */
	struct quire_slots slots; /* device addresses */
	const void *k;
	const void *v;
	void *out;
};

/* A plan slot: a view over its two halves, and what the tables do not say. */
struct quire_slot {
	struct quire_plan plan;
	quire_step_function run;
	void *run_argument;
	struct quire_event *wait_event;   /* NULL: none */
	struct quire_event *record_event; /* NULL: none */
	quire_done_function done;         /* NULL: none */
	void *done_argument;
	int32_t num_work;
	struct quire_issue work[QUIRE_WORK_MAX];
};

/* ------------------------------------------------------------ executor -> planner */

/* Numbers that only grow: stored with release by the executor, loaded with acquire. */
struct quire_numbers {
	_Alignas(QUIRE_CACHE_LINE) _Atomic uint64_t uploaded_step;
	_Atomic uint64_t issued_step;
	_Atomic uint64_t retired_step;
	_Atomic uint64_t pages_given;
};

/* ------------------------------------------------------------------ executor */

/* What is still to be done for an issued step: its slot is filled again before it
 * retires. */
struct quire_issued {
	uint64_t ticket;
	quire_done_function done;
	void *done_argument;
};

struct quire_executor {
	struct quire_dstream *upload;
	struct quire_dstream *compute;
	struct quire_event **upload_events; /* [depth]: of step n at n mod depth */
	struct quire_event *
		*step_events;       /* [2 * depth]: so many may be issued, not retired */
	struct quire_issued *steps; /* [2 * depth] */
	bool inside; /* in a poll: it is not entered again from a callback */
	uint64_t uploaded;
	uint64_t issued;
	uint64_t retired;
	int64_t first_ns;   /* when the first entry came; 0: none yet */
	int64_t starved_ns; /* since when there was nothing to do; 0: there was */
	int64_t waited_ns;  /* since the newest retired step */
	quire_counter wait_ns, run_ns;
	quire_counter taken_ns;  /* when it took the newest entry */
	quire_counter pushed_ns; /* the planner's: when an entry came to an empty queue */
};

#endif
