/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_RUNTIME_RUNTIME_IMPL_H
#define QUIRE_RUNTIME_RUNTIME_IMPL_H
/*
 * The inside of a runtime: who owns what.
 *
 *   planner    registry, ledger, undo log, rows, plan slots until pushed; takes from the
 *   pool
 *   executor   device streams, events, issued plans; gives to the pool
 *   shared     commands (clients -> planner), entries (planner -> executor), tickets
 *   (fixed
 *              cells), and `numbers` (executor -> planner).  Nothing else crosses.
 *
 * One page id's way: the pool's FIFO -> planner.pages (one take per step) -> a stream's
 * list and a plan's kv_indices -> ... -> the ring of released pages, when its last owner
 * goes -> the executor, behind every step that may touch it -> the pool's FIFO.
 */
#include "runtime/commands_impl.h"
#include "runtime/histogram_impl.h"
#include "runtime/registry_impl.h"
#include "runtime/tickets_impl.h"
#include "runtime/wake_impl.h"

#include <quire/alloc/ledger.h>
#include <quire/alloc/pool.h>
#include <quire/kernels/cache.h>
#include <quire/plans/plan.h>
#include <quire/runtime/runtime.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define QUIRE_CACHE_LINE 64

/* A counter with one writer; readers want a whole value, no order. */
typedef _Atomic uint64_t quire_counter;

static inline void quire_count(quire_counter *counter, uint64_t more)
{
	atomic_store_explicit(counter,
	                      atomic_load_explicit(counter, memory_order_relaxed) + more,
	                      memory_order_relaxed);
}

static inline uint64_t quire_counted(const quire_counter *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

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
 * most once, so it is never full.  tail: stored with release by the planner, loaded with
 * acquire by the executor; what was written to slots, pages and entries before is seen
 * with it.  head: the other way round.
 */
struct quire_entries {
	struct quire_entry *ring;
	uint64_t mask;
	int32_t *pages;
	uint64_t pages_mask;
	uint64_t released; /* pages written to the ring, the planner's */
	_Alignas(QUIRE_CACHE_LINE) _Atomic uint64_t tail;
	_Alignas(QUIRE_CACHE_LINE) _Atomic uint64_t head;
};

static inline bool quire_entries_have_room(struct quire_entries *entries)
{
	/* Pairs with the release in the executor. */
	return atomic_load_explicit(&entries->tail, memory_order_relaxed) -
	               atomic_load_explicit(&entries->head, memory_order_acquire) <=
	       entries->mask;
}

/* Built-in work with every address found. */
struct quire_issue {
	enum quire_work_kind kind;
	int32_t layer;
	int32_t dtype;
	int32_t copy;             /* COPY: index in the plan's copy lists */
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

/* ------------------------------------------------------------------ planner */

enum quire_planner_state {
	QUIRE_PLANNER_FETCH, /* no command in hand */
	QUIRE_PLANNER_PAGES, /* a step is admitted and waits for its pages */
	QUIRE_PLANNER_SLOT,  /* it has its pages and waits for a slot */
};

/* A segment of the step in hand. */
struct quire_row {
	struct quire_request *request;
	struct quire_stream *stream;
	int32_t length; /* before the span */
	int32_t need;   /* pages to take */
};

/* How one stream was before the step in hand. */
struct quire_undo {
	struct quire_request *request;
	struct quire_stream *stream;
	uint64_t generation;
	uint64_t step;
	int32_t length;
	int32_t num_pages;
	bool created; /* by this step */
};

/* Streams met in one step's form check: an open-addressed table that a ticket empties. */
struct quire_met {
	uint64_t ticket;
	int32_t segment;
};

struct quire_planner {
	enum quire_planner_state state;
	struct quire_command_cell *current;
	struct quire_row *rows;   /* [rows_max] */
	struct quire_undo *undo;  /* [rows_max] */
	struct quire_view *views; /* [rows_max] */
	int32_t *labels;          /* [rows_max] */
	int32_t *row_of_view;     /* [rows_max] */
	struct quire_met *met;    /* [met_mask + 1] */
	uint64_t met_mask;
	struct quire_grouping grouping;
	int32_t num_undo;
	int32_t need;          /* pages of the step in hand */
	int32_t *pages;        /* [num_pages]: those pages, in take order */
	int32_t *freed;        /* [num_pages]: pages that lost their last owner */
	uint64_t step;         /* newest planned */
	bool inside;           /* in a poll: a check has to wait */
	int64_t plan_ns;       /* spent on the step in hand so far */
	int64_t wait_since_ns; /* 0: not waiting */
	quire_counter *wait_counter;
	int64_t owned_peak;
	struct quire_histogram plan_time;
	quire_counter commands, refused, tokens, pages_taken, pages_peak, requests_open;
	quire_counter steps, owned, busy_ns, page_wait_ns, slot_wait_ns;
};

/* ------------------------------------------------------------------ executor */

struct quire_executor {
	struct quire_dstream *upload;
	struct quire_dstream *compute;
	struct quire_event **upload_events; /* [depth]: of step n at n mod depth */
	struct quire_event *
		*step_events; /* [2 * depth]: so many may be issued, not retired */
	uint64_t *tickets;    /* [2 * depth] */
	bool inside;          /* in a poll: it is not entered again from a callback */
	uint64_t uploaded;
	uint64_t issued;
	uint64_t retired;
	int64_t first_ns;   /* when the first entry came; 0: none yet */
	int64_t starved_ns; /* since when there was nothing to do; 0: there was */
	quire_counter wait_ns, run_ns;
};

/* ------------------------------------------------------------------ all of it */

enum quire_check_state {
	QUIRE_CHECK_IDLE,
	QUIRE_CHECK_ASKED,
	QUIRE_CHECK_DONE,
};

/* A self-check that some thread asked the planner for.  `state` hands `status` and
 * `refusal` over: stored with release, loaded with acquire, both ways. */
struct quire_check {
	pthread_mutex_t lock; /* one asker at a time */
	_Atomic int state;
	enum quire_status status;
	struct quire_refusal refusal;
};

/* The first failure; `happened` is stored with release once it is written, under the
 * lock. */
struct quire_failure {
	pthread_mutex_t lock;
	_Atomic bool happened;
	struct quire_refusal refusal;
};

struct quire_runtime {
	struct quire_runtime_config config; /* resolved: no 0 that means a default */
	int32_t num_pages;
	int32_t page_size;
	struct quire_device *device;
	struct quire_pool *pool;
	struct quire_ledger *ledger;
	struct quire_registry registry;
	struct quire_tickets tickets;
	struct quire_commands commands;
	struct quire_slot_layout layout;
	struct quire_slot *slots; /* [depth] */
	char *slots_host;
	char *slots_device;
	struct quire_entries entries;
	struct quire_planner planner;
	struct quire_executor executor;
	struct quire_numbers numbers;
	struct quire_failure failure;
	struct quire_check check;
	struct quire_wake planner_wake;  /* a command, a page, a slot, a check */
	struct quire_wake executor_wake; /* an entry, an event */
	struct quire_wake client_wake;   /* a stage, room in the queue, a check done */
	/* Which threads may not wait: an address of the thread's own, 0 for none. */
	_Atomic uintptr_t planner_thread;
	_Atomic uintptr_t executor_thread;
	_Atomic int
		stop; /* 1: the planner's thread ends when idle, 2: the executor's too */
	pthread_t threads[2];
};

/* May this thread wait?  Not inside a callback, and not on a thread that polls. */
bool quire_may_wait(struct quire_runtime *runtime);

/* Does this thread drive the planner of a runtime without threads? */
bool quire_drives_planner(struct quire_runtime *runtime);

/* The runtime fails, unless it has already. */
void quire_runtime_fail(struct quire_runtime *runtime, enum quire_status status,
                        const char *what);

/* The first failure, or NULL. */
static inline const struct quire_refusal *
quire_runtime_failed(struct quire_runtime *runtime)
{
	/* Pairs with the release in quire_runtime_fail. */
	if (atomic_load_explicit(&runtime->failure.happened, memory_order_acquire))
		return &runtime->failure.refusal;
	return NULL;
}

/* Decide everything about a step that can refuse it, short of waiting: rows, undo log,
 * grouping and `need` are set.  A refusal leaves nothing behind. */
enum quire_status quire_admit(struct quire_runtime *runtime,
                              const struct quire_command_cell *cell,
                              struct quire_refusal *refusal);

/* Take back all that the undo log holds. */
void quire_undo_all(struct quire_planner *planner);

/* Fill a slot with the admitted step: tables, work with its addresses. */
void quire_slot_fill(struct quire_runtime *runtime, const struct quire_command_cell *cell,
                     struct quire_slot *slot);

/* One move; false: nothing to do. */
bool quire_planner_move(struct quire_runtime *runtime);
bool quire_executor_move(struct quire_runtime *runtime);

/* Nothing in hand, nothing queued. */
bool quire_planner_is_idle(struct quire_runtime *runtime);
bool quire_executor_is_idle(struct quire_runtime *runtime);

enum quire_status quire_executor_init(struct quire_runtime *runtime);
void quire_executor_end(struct quire_runtime *runtime);

/* The self-check itself, on the planner. */
enum quire_status quire_check_all(struct quire_runtime *runtime,
                                  struct quire_refusal *refusal);

#endif
