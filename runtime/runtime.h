/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_RUNTIME_RUNTIME_H
#define QUIRE_RUNTIME_RUNTIME_H
/*
 * The runtime: plan ahead, execute behind.
 *
 * Overview
 *   Clients give commands; each draws a ticket, its position in one order.  The planner
 *   takes them in that order, decides each outcome from its own state alone, takes pages,
 *   builds the plan of a step in a slot of a ring, and pushes it to the executor.  The
 *   executor uploads plans, runs their work on the compute stream, and gives pages back
 *   when it meets a release.  Back to the planner come only numbers: uploaded, issued and
 *   retired step, pages given.  So the same commands give the same tables, bit for bit,
 *   whatever the threads do.
 *
 * Use
 *   quire_runtime_create, quire_runtime_command (or its short forms), quire_runtime_wait,
 *   quire_runtime_destroy.  Threads are the library's, or the caller's who drives
 *   quire_planner_poll and quire_executor_poll.
 *
 * Which calls exclude which
 *   create and destroy need the runtime to themselves.  command, wait, snapshot, stats,
 *   check and shutdown may be called from any thread at any time.  quire_planner_poll
 *   runs in one thread at a time, and so does quire_executor_poll; the two may be
 *   different threads. Inside a callback, and on a thread that polls, nothing may wait:
 *   the waiting forms answer QUIRE_WOULD_BLOCK.
 */
#include <quire/kernels/cache.h>
#include <quire/plans/plan.h>
#include <quire/plans/step.h>
#include <quire/runtime/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct quire_runtime;

enum quire_threads {
	/* The runtime starts a planner and an executor thread. */
	QUIRE_THREADS_LIBRARY,
	/* The caller polls; the creating thread counts as the one that does until another
	 * polls. */
	QUIRE_THREADS_CALLER,
};

enum quire_role {
	QUIRE_ROLE_PLANNER,
	QUIRE_ROLE_EXECUTOR,
};

/* Start from quire_runtime_config_init(), then change what differs. */
struct quire_runtime_config {
	size_t config_bytes; /* sizeof(struct quire_runtime_config): the version */
	/* Kept until destroy; its pages are the pool, of this runtime alone. */
	struct quire_cache *cache;
	enum quire_threads threads;
	bool sink;    /* page 0 belongs to nobody; padding rows write there.  true */
	bool digests; /* the executor digests every plan (wait then reports it).  false */
	int32_t depth;        /* plan slots, 1..QUIRE_DEPTH_MAX.  2 */
	int32_t commands_max; /* queued commands, rounded up to a power of 2.  64 */
	int32_t tickets_max;  /* tickets whose outcome stays readable, rounded up to a
	                       * power of 2.  4096 */
	int32_t requests_max; /* open at once.  1024 */
	int32_t request_labels_max; /* labels of one request.  4 */
	int32_t rows_max;           /* segments of a step.  256 */
	int32_t tokens_max;         /* tokens of a table, padding included.  8192 */
	int32_t tables_max;         /* tables of a step.  4 */
	int32_t seq_tokens_max;     /* tokens of a stream, released ones included.
	                             * 0: as many as all pages but the sink hold */
	int64_t table_pages_max; /* entries of one kv_indices; a step that exceeds it, or
	                             * block_width, answers LIMIT after every other fault.
	                             * 0: num_pages, at most 2^20 */
	int64_t block_width;     /* pages of a block table row; 0: no block table.  0 */
	int64_t user_bytes;      /* bytes of a slot that on_plan fills.  0 */
	/* Called on the planner for every step, after its tables are built: fills
	 * plan->user. Anything but QUIRE_OK fails the runtime with QUIRE_CALLBACK.  NULL:
	 * not called. */
	enum quire_status (*on_plan)(void *argument, struct quire_plan *plan);
	void *on_plan_argument; /* kept until destroy */
	/* Called at the start of every poll, on its thread: a place for a test to lose
	 * time in. NULL: not called. */
	void (*on_poll)(void *argument, enum quire_role role);
	void *on_poll_argument; /* kept until destroy */
};

/* quire_runtime_config_init - the defaults above, for a cache */
QUIRE_API void quire_runtime_config_init(struct quire_runtime_config *config,
                                         struct quire_cache *cache);

/*
 * quire_runtime_create - a runtime, idle
 * @config:  borrowed
 * @runtime_out: given; end it with quire_runtime_destroy
 * @refusal_out: filled on refusal {what: the field, got, expected}; NULL allowed
 * Returns:  QUIRE_OK; QUIRE_INVALID: a field out of range; QUIRE_NO_MEMORY; QUIRE_DEVICE.
 * Cost:     all memory of the runtime, two device streams, with QUIRE_THREADS_LIBRARY two
 *           threads.  Nothing is allocated later, but the queues of the cpu device grow
 *           to their longest.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status quire_runtime_create(
	const struct quire_runtime_config *config, struct quire_runtime **runtime_out,
	struct quire_refusal *refusal_out);

/*
 * quire_runtime_destroy - shut down, draining, if that was not done; end everything
 * @runtime: given, NULL is a no-op
 * Threads:  one, with the runtime to itself, and not inside a callback; with
 *           QUIRE_THREADS_CALLER it polls what is left.
 * Cost:     waits for all queued steps.
 */
QUIRE_API void quire_runtime_destroy(struct quire_runtime *runtime);

/*
 * quire_runtime_command - give a command; waits while the queue is full
 * @command: borrowed; strings, segments and work lists are copied
 * @ticket_out: filled: its position, 1, 2, ...; NULL allowed
 * @refusal_out: filled on refusal; NULL allowed
 * Returns:  QUIRE_OK: queued, see quire_runtime_wait for its outcome.  Otherwise it drew
 *           no position: QUIRE_INVALID {what}: malformed; QUIRE_LIMIT {what}: more
 *           segments, work or labels than the runtime was made for; QUIRE_CLOSED;
 *           QUIRE_WOULD_BLOCK: the queue is full and this thread may not wait;
 *           QUIRE_DEVICE, QUIRE_CALLBACK: it has failed.
 * Threads:  any.
 * Cost:     O(segments + work) copying under a lock among clients.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_runtime_command(struct quire_runtime *runtime, const struct quire_command *command,
                      uint64_t *ticket_out, struct quire_refusal *refusal_out);

/*
 * quire_runtime_try_command - the same, never waiting for the queue
 * Returns:  as above, and QUIRE_AGAIN: the queue is full.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status quire_runtime_try_command(
	struct quire_runtime *runtime, const struct quire_command *command,
	uint64_t *ticket_out, struct quire_refusal *refusal_out);

/* Short forms of quire_runtime_command. */
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_runtime_open(struct quire_runtime *runtime, uint64_t request, uint64_t *ticket_out);
QUIRE_API QUIRE_MUST_CHECK enum quire_status quire_runtime_close(
	struct quire_runtime *runtime, uint64_t request, uint64_t *ticket_out);
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_runtime_submit(struct quire_runtime *runtime, const struct quire_step *step,
                     uint64_t *ticket_out);
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_runtime_reset(struct quire_runtime *runtime, uint64_t request, const char *label,
                    bool keep_pages, uint64_t *ticket_out);

/* How far a command has come.  Commands other than submit, and refused ones, reach
 * RETIRED when they are decided. */
enum quire_stage {
	QUIRE_STAGE_QUEUED,
	QUIRE_STAGE_PLANNED, /* decided; of a step: its tables are built */
	QUIRE_STAGE_ISSUED,  /* handed to the device */
	QUIRE_STAGE_RETIRED, /* its event is done */
};

/* What became of a command. */
struct quire_outcome {
	enum quire_stage stage;
	uint64_t step;   /* of a planned step: its number */
	uint64_t digest; /* of a plan, from ISSUED on, when the runtime digests */
	int32_t pages_taken;
	struct quire_refusal refusal; /* status QUIRE_OK when it was not refused */
};

/*
 * quire_runtime_wait - wait until a ticket has come as far as a stage
 * @deadline_ns: CLOCK_MONOTONIC; QUIRE_NO_DEADLINE: no deadline; 0: do not wait
 * @outcome_out: filled on QUIRE_OK; NULL allowed
 * Returns:  QUIRE_OK: it has; its outcome may still be a refusal
 *           (outcome.refusal.status); QUIRE_TIMEOUT; QUIRE_WOULD_BLOCK: not yet, and this
 *           thread may not wait; QUIRE_INVALID {what "ticket"}: never drawn, or older
 *           than the last tickets_max.
 * Threads:  any.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_runtime_wait(struct quire_runtime *runtime, uint64_t ticket, enum quire_stage stage,
                   int64_t deadline_ns, struct quire_outcome *outcome_out);

/* A consistent picture of one stream. */
struct quire_snapshot {
	int64_t length; /* live tokens, in the planner's order */
	int64_t released;
	uint64_t generation;
	uint64_t step;     /* newest step that changed it; 0: none */
	int64_t num_pages; /* listed, spare ones included */
};

/*
 * quire_runtime_snapshot - read a stream while the planner goes on
 * @label:   borrowed; NULL: "main"
 * @pages_out: filled with up to @pages_max page ids, in order, unspecified on refusal;
 *           NULL allowed when pages_max is 0
 * Returns:  QUIRE_OK; QUIRE_NO_REQUEST; QUIRE_NO_LABEL.
 * Threads:  any, but it may not be called from a signal handler.
 * Cost:     O(pages copied); no lock: RCU finds the stream, a sequence count guards it.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status quire_runtime_snapshot(
	struct quire_runtime *runtime, uint64_t request, const char *label,
	struct quire_snapshot *snapshot_out, int32_t *pages_out, int64_t pages_max);

/* Counters since create; times in nanoseconds.  Each is exact once the runtime is
 * idle. */
struct quire_runtime_stats {
	uint64_t commands; /* decided */
	uint64_t refused;  /* of them */
	uint64_t steps_planned;
	uint64_t steps_issued;
	uint64_t steps_retired;
	uint64_t tokens;      /* written by planned steps */
	uint64_t pages_taken; /* from the FIFO, those of cancelled steps included */
	uint64_t pages_given; /* by the executor */
	int64_t pages_free;
	int64_t pages_retiring; /* released by the planner, not yet given back */
	int64_t pages_owned;    /* the sink counts */
	int64_t pages_peak;     /* most owned at once, the sink not counted */
	int64_t requests_open;
	int64_t planner_busy_ns; /* deciding, planning and pushing, waits left out */
	int64_t plan_median_ns;  /* of one step, to 1/16 of its value */
	int64_t plan_p99_ns;
	int64_t page_wait_ns;     /* the planner waited for retiring pages */
	int64_t slot_wait_ns;     /* ... for a slot's upload, or room in the plan queue */
	int64_t executor_wait_ns; /* no entry for the executor, no step on the device */
	int64_t executor_run_ns;  /* from the first entry to the newest retired step */
};

/*
 * quire_runtime_stats - read the counters
 * Threads:  any.
 */
QUIRE_API void quire_runtime_stats(struct quire_runtime *runtime,
                                   struct quire_runtime_stats *stats_out);

/*
 * quire_runtime_check - walk everything and name the first broken rule
 * @refusal_out: filled on refusal {what: the rule, page or request and label}; NULL
 *           allowed
 * Returns:  QUIRE_OK; QUIRE_BROKEN; QUIRE_WOULD_BLOCK: called in on_plan, in a step's
 *           function on the library's executor thread, or on a thread that polls the
 *           executor alone; QUIRE_NO_MEMORY.
 * Threads:  any; the planner walks, between two commands.
 * Cost:     O(pages + streams); waits for the planner.
 *
 * Rules: free + retiring + owned = num_pages; owners of every page = its names; no page
 * both owned and free; no page listed twice by a stream; with everything given back, the
 * FIFO holds exactly what nobody owns; spare pages have one owner; a stream has the pages
 * its length needs.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_runtime_check(struct quire_runtime *runtime, struct quire_refusal *refusal_out);

/*
 * quire_runtime_shutdown - no more commands
 * @cancel:  true: commands not decided yet end as CANCELLED; false: they run
 * Returns:  QUIRE_OK; QUIRE_CLOSED: it was shut down before.
 * Threads:  any.
 * Cost:     never waits; quire_runtime_destroy does.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_runtime_shutdown(struct quire_runtime *runtime, bool cancel);

/*
 * quire_runtime_failure - has it failed, and how?
 * Returns:  QUIRE_OK: it has not; QUIRE_DEVICE or QUIRE_CALLBACK {what}: every ticket not
 *           complete by then ended with it.
 * Threads:  any.
 */
QUIRE_API enum quire_status quire_runtime_failure(struct quire_runtime *runtime,
                                                  struct quire_refusal *refusal_out);

/*
 * quire_planner_poll - let the planner move by one command or one wait, never waiting
 * Returns:  true: it moved; false: nothing to do until a command, a page or a slot comes,
 *           or called inside a poll.
 * Threads:  with QUIRE_THREADS_CALLER only (otherwise false), one at a time, and not
 *           inside an RCU read-side section (liburcu-bp): once in requests_max closings
 *           it waits for those readers who are just looking a request up.
 */
QUIRE_API bool quire_planner_poll(struct quire_runtime *runtime);

/*
 * quire_executor_poll - let the executor publish what the device finished and run one
 * entry
 * Returns:  true: it moved; false: nothing to do until an entry or the device comes, or
 *           called inside a poll.
 * Threads:  with QUIRE_THREADS_CALLER only (otherwise false), one at a time.
 */
QUIRE_API bool quire_executor_poll(struct quire_runtime *runtime);

#ifdef __cplusplus
}
#endif
#endif
