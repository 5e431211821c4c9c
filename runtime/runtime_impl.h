/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_RUNTIME_RUNTIME_IMPL_H
#define QUIRE_RUNTIME_RUNTIME_IMPL_H
/*
 * The inside of a runtime: who owns what.
 *
 *   planner    registry, ledger, notes, held steps, stash, plan slots until pushed; takes
 *              from the pool
 *   executor   device streams, events, issued plans; gives to the pool
 *   shared     commands (clients -> planner), entries (planner -> executor), tickets
 *   (fixed
 *              cells), and `numbers` (executor -> planner).  Nothing else crosses.
 *
 * One page id's way: the pool's FIFO -> planner.pages (one take per step) -> a stream's
 * list and a plan's kv_indices -> ... -> the ring of released pages, when its last owner
 * goes -> the executor, behind every step that may touch it -> the pool's FIFO.  Those
 * that an abandoned step took go to the stash instead, from where the next step takes
 * first.
 */
#include "plans/paging_impl.h"
#include "runtime/commands_impl.h"
#include "runtime/executor_impl.h"
#include "runtime/memory_impl.h"
#include "runtime/planner_impl.h"
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
#include <string.h>

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
	struct quire_paging paging; /* of that size */
	struct quire_device *device;
	struct quire_pool *pool;
	struct quire_ledger *ledger;
	struct quire_registry registry;
	struct quire_tickets tickets;
	struct quire_commands commands;
	struct quire_slot_layout layout;
	struct quire_slot *slots;           /* [depth] */
	struct quire_block_row *block_rows; /* of all slots, or NULL */
	char *slots_host;
	char *slots_device;
	struct quire_entries entries;
	struct quire_planner planner;
	struct quire_executor executor;
	struct quire_numbers numbers;
	struct quire_failure failure;
	struct quire_check check;
	/* NULL: none; set before the first command is given, and left. */
	struct quire_recording *_Atomic recording;
	struct quire_wake planner_wake;  /* a command, a page, a slot, a check */
	struct quire_wake executor_wake; /* an entry, an event */
	struct quire_wake client_wake;   /* a stage, room in the queue, a check done */
	/* Which threads may not wait, by their numbers; 0 for none. */
	_Atomic uint64_t planner_thread;
	_Atomic uint64_t executor_thread;
	_Atomic uint64_t recorder_thread;
	_Atomic int
		stop; /* 1: the planner's thread ends when idle, 2: the executor's too */
	pthread_t threads[2];
};

/* May this thread wait?  Not inside a callback, and not on a thread that polls. */
bool quire_may_wait(struct quire_runtime *runtime);

/* Is this thread in a callback of the runtime's? */
bool quire_is_inside(struct quire_runtime *runtime);

/* Does this thread drive the planner of a runtime without threads? */
bool quire_drives_planner(struct quire_runtime *runtime);

/* The runtime fails, unless it has already. */
void quire_runtime_fail(struct quire_runtime *runtime, enum quire_status status,
                        const char *what);

/* The same, told with the ticket of the step that failed. */
void quire_runtime_fail_step(struct quire_runtime *runtime, uint64_t ticket,
                             enum quire_status status, const char *what);

/* The recording, or NULL. */
static inline struct quire_recording *quire_recording_of(struct quire_runtime *runtime)
{
	/* Pairs with the release in install (record_thread.c). */
	return atomic_load_explicit(&runtime->recording, memory_order_acquire);
}

/* The clock of deadlines and counters. */
static inline int64_t quire_runtime_now(const struct quire_runtime *runtime)
{
	return quire_hooks_now(&runtime->config.hooks);
}

/* quire_wake_sleep, with a deadline of that clock. */
int quire_runtime_sleep(struct quire_runtime *runtime, struct quire_wake *wake,
                        uint32_t value, int64_t deadline_ns);

/* Tell the hook, if there is one; not under a lock. */
void quire_runtime_report(struct quire_runtime *runtime,
                          const struct quire_report *report);

/* The first failure, or NULL. */
static inline const struct quire_refusal *
quire_runtime_failed(struct quire_runtime *runtime)
{
	/* Pairs with the release in quire_runtime_fail. */
	if (atomic_load_explicit(&runtime->failure.happened, memory_order_acquire))
		return &runtime->failure.refusal;
	return NULL;
}

/* Name a stream in a refusal; returns its status. */
static inline enum quire_status quire_name_stream(struct quire_runtime *runtime,
                                                  struct quire_refusal *refusal,
                                                  uint64_t request, int32_t label)
{
	refusal->request = request;
	memcpy(refusal->label, runtime->commands.labels.names[label], QUIRE_LABEL_BYTES);
	return refusal->status;
}

/* Pages that a fork of a stream of this length shares with it. */
static inline int32_t quire_fork_shares(const struct quire_runtime *runtime,
                                        const struct quire_command_cell *cell,
                                        int32_t length)
{
	return (cell->flags & QUIRE_STEP_COPY_FORKS) != 0
	               ? 0
	               : quire_page_of(&runtime->paging, length);
}

/* Decide everything about a step that can refuse it, short of waiting: rows, batch,
 * grouping and `need` are set.  Nothing else is changed, refused or not. */
enum quire_status quire_admit(struct quire_runtime *runtime,
                              const struct quire_command_cell *cell,
                              struct quire_refusal *refusal);

/* Carry an admitted step out, with the pages taken for it: streams, owners and notes
 * change, its plan is in the slot.  Returns the tokens that it writes. */
uint64_t quire_carry_out(struct quire_runtime *runtime,
                         const struct quire_command_cell *cell, struct quire_slot *slot);

/* Take the newest step that was carried out back: notes from @notes_first on are its. */
void quire_take_back(struct quire_runtime *runtime, uint64_t notes_first);

/* The oldest step's notes, up to @notes_end, are not needed any more: what it made is
 * shown. */
void quire_settle(struct quire_runtime *runtime, uint64_t notes_end);

/* Give up pages; those without an owner are staged for the executor. */
void quire_give_up(struct quire_runtime *runtime, const int32_t *pages, int64_t n);

/* Hand pages that nobody owns, staged up to @end, to the executor, as one entry; the
 * caller made sure of room. */
void quire_push_release(struct quire_runtime *runtime, uint64_t end);

/* Readers see how many pages are owned. */
void quire_show_owned(struct quire_runtime *runtime);

/* Pages come back to the front of the free ones, to be taken in the order given. */
void quire_stash_put(struct quire_planner *planner, const int32_t *pages, int64_t n);

/* Take pages, those of the stash first; QUIRE_OK or QUIRE_NO_PAGES. */
enum quire_status quire_stash_take(struct quire_runtime *runtime, int32_t n,
                                   int32_t *pages, struct quire_refusal *refusal);

/* Readers see how many steps are held. */
void quire_count_held(struct quire_planner *planner);

/* The step in hand has been carried out: from here on it is the newest held one. */
void quire_hold(struct quire_runtime *runtime, const struct quire_command_cell *cell,
                uint64_t tokens);

/* The oldest held step is not held any more: readers see what it made. */
struct quire_held quire_settle_oldest(struct quire_runtime *runtime);

/* A settled step goes to the executor, and what it gives up behind it; the caller made sure
 * of room. */
void quire_push_step(struct quire_runtime *runtime, const struct quire_held *held);

/* The newest held step never was. */
void quire_take_back_newest(struct quire_runtime *runtime);

/* Fill a slot with the step whose views are there: tables, work with its addresses.  Its
 * copies follow. */
void quire_slot_fill(struct quire_runtime *runtime, const struct quire_command_cell *cell,
                     struct quire_slot *slot);

/* The addresses of whole-page copies, which lie behind those of forks. */
void quire_slot_finish(struct quire_slot *slot, int32_t page_size);

#ifdef QUIRE_DEBUG
/* Does the slot's plan read or write a page? */
bool quire_slot_names(const struct quire_slot *slot, int32_t page);
#endif

/* ------------------------------------------------------------ commands but steps */

/* Each decides its command: QUIRE_OK, or a refusal that changed nothing. */
enum quire_status quire_command_open(struct quire_runtime *runtime,
                                     const struct quire_command_cell *cell,
                                     struct quire_refusal *refusal);
enum quire_status quire_command_close(struct quire_runtime *runtime,
                                      const struct quire_command_cell *cell,
                                      struct quire_refusal *refusal);
enum quire_status quire_command_reset(struct quire_runtime *runtime,
                                      const struct quire_command_cell *cell,
                                      struct quire_refusal *refusal);
enum quire_status quire_command_rewind(struct quire_runtime *runtime,
                                       const struct quire_command_cell *cell,
                                       struct quire_refusal *refusal);
enum quire_status quire_command_release_front(struct quire_runtime *runtime,
                                              const struct quire_command_cell *cell,
                                              struct quire_refusal *refusal,
                                              int32_t *released_out);

/* ------------------------------------------------------------ outcomes */

/* What a ticket's command came to; its stage is what it was last told.  Planner and
 * executor, of a ticket in their hands, and clients under the commands' lock. */
void quire_outcome_read(struct quire_runtime *runtime, uint64_t ticket,
                        struct quire_outcome *outcome_out);

/* The end of a step that does not run: the ticket's flags are set; tell @done, then
 * whoever waits. */
void quire_end_step(struct quire_runtime *runtime, uint64_t ticket,
                    quire_done_function done, void *done_argument);

/* One move; false: nothing to do. */
bool quire_planner_move(struct quire_runtime *runtime);
bool quire_executor_move(struct quire_runtime *runtime);

/* Nothing in hand, nothing queued. */
bool quire_planner_is_idle(struct quire_runtime *runtime);
bool quire_executor_is_idle(struct quire_runtime *runtime);

enum quire_status quire_executor_init(struct quire_runtime *runtime);
void quire_executor_end(struct quire_runtime *runtime);

/* executor_stalled_ns of the counters; any thread. */
int64_t quire_executor_stalled(struct quire_runtime *runtime);

/* The library's threads, or the mark that the caller's drives; the end of either, once
 * all is done. */
enum quire_status quire_threads_start(struct quire_runtime *runtime,
                                      struct quire_refusal *refusal);
void quire_threads_stop(struct quire_runtime *runtime);

/* How long its threads look before they sleep: 0 where they would stand in each other's
 * way. */
int64_t quire_threads_spin(const struct quire_runtime_config *config);

/* ------------------------------------------------------------------ outcomes */

/* What became of a ticket so far; on the planner or the executor, for a ticket that is
 * not RETIRED yet. */
void quire_outcome_read(struct quire_runtime *runtime, uint64_t ticket,
                        struct quire_outcome *outcome_out);

/* The self-check itself, on the planner. */
enum quire_status quire_check_all(struct quire_runtime *runtime,
                                  struct quire_refusal *refusal);

#endif
