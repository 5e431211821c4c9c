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
#include <quire/plans/step.h>
#include <quire/runtime/runtime_config.h>
#include <quire/runtime/stats.h>
#include <quire/runtime/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct quire_runtime;

/*
 * quire_runtime_slots_bytes - the size of slots_host, and of slots_device
 * @config:  borrowed; as for quire_runtime_create
 * Returns:  QUIRE_OK; QUIRE_INVALID {what: the field}.
 * Threads:  any.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_runtime_slots_bytes(const struct quire_runtime_config *config, int64_t *bytes_out,
                          struct quire_refusal *refusal_out);

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
 *           no position: QUIRE_INVALID {what}: it cannot be copied or queued (what is
 *           wrong in its numbers is an outcome); QUIRE_LIMIT {what}: more
 *           segments, work or labels than the runtime was made for; QUIRE_CLOSED;
 *           QUIRE_WOULD_BLOCK: the queue is full and this thread may not wait;
 *           QUIRE_HELD {ticket}: the queue is full behind a speculative step, and waiting
 *           could be for ever: promote or abandon it first; QUIRE_DEVICE, QUIRE_CALLBACK:
 *           it has failed.
 * Threads:  any.
 * Cost:     O(segments + work) copying under a lock among clients.  PROMOTE and ABANDON
 *           are decided here, never wait, and have no outcome to wait for.
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

QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_runtime_rewind(struct quire_runtime *runtime, uint64_t request, const char *label,
                     int32_t tokens, uint64_t *ticket_out);
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_runtime_release_front(struct quire_runtime *runtime, uint64_t request,
                            const char *label, int32_t tokens, uint64_t *ticket_out);
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_runtime_promote(struct quire_runtime *runtime, uint64_t ticket);
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_runtime_abandon(struct quire_runtime *runtime, uint64_t ticket);

/* How far a command has come.  Commands other than submit, and refused ones, reach
 * RETIRED when they are decided; a speculative step comes no further than PLANNED,
 * refused or not, before its fate is known. */
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
	uint64_t base;   /* of a speculative step: the ticket it rests on; 0: none */
	int32_t pages_taken;
	int32_t pages_released;       /* of RELEASE_FRONT: so many left the front */
	struct quire_refusal refusal; /* status QUIRE_OK when it was not refused */
};

/*
 * quire_runtime_wait - wait until a ticket has come as far as a stage
 * @deadline_ns: CLOCK_MONOTONIC; QUIRE_NO_DEADLINE: no deadline; 0: do not wait
 * @outcome_out: filled on QUIRE_OK; NULL allowed
 * Returns:  QUIRE_OK: it has; its outcome may still be a refusal
 *           (outcome.refusal.status); QUIRE_TIMEOUT; QUIRE_WOULD_BLOCK: not yet, and this
 *           thread may not wait; QUIRE_INVALID {what "ticket"}: never drawn, or older
 *           than the last tickets_max; or no such stage.
 * Threads:  any.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_runtime_wait(struct quire_runtime *runtime, uint64_t ticket, enum quire_stage stage,
                   int64_t deadline_ns, struct quire_outcome *outcome_out);

/*
 * quire_runtime_wait_all - the same for several tickets: until all have come so far
 * @tickets: borrowed, n of them, 0 or more
 * Returns:  as quire_runtime_wait, of the first that answers otherwise than QUIRE_OK.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_runtime_wait_all(struct quire_runtime *runtime, const uint64_t *tickets, int64_t n,
                       enum quire_stage stage, int64_t deadline_ns);

/*
 * quire_runtime_drain - the same for all commands given so far
 * Returns:  as quire_runtime_wait, without QUIRE_INVALID; QUIRE_HELD {ticket}: a
 *           speculative step whose fate is open; whatever the stage, since what comes
 *           behind it may wait for that fate.
 * What a command but a submit gave up may still be on its way back: it has retired when
 * it was decided.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_runtime_drain(struct quire_runtime *runtime, enum quire_stage stage,
                    int64_t deadline_ns, struct quire_refusal *refusal_out);

/* A consistent picture of one stream.  What a held step did is not in it. */
struct quire_snapshot {
	int64_t length;         /* live tokens, in the planner's order */
	int64_t issued_length;  /* as the newest issued step that changed it left it */
	int64_t retired_length; /* ... the newest retired one */
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
 * @cancel:  true: commands not decided yet end as CANCELLED; false: they run.  Either way
 *           speculative steps whose fate is open are abandoned
 * Returns:  QUIRE_OK; QUIRE_CLOSED: it was shut down before.
 * Threads:  any.
 * Cost:     never waits; quire_runtime_destroy does.  Wakes quire_runtime_idle.
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
 *           or called inside a poll of the planner.
 * Threads:  with QUIRE_THREADS_CALLER only (otherwise false), one at a time, and not
 *           inside an RCU read-side section (liburcu-bp): once in requests_max closings
 *           it waits for those readers who are just looking a request up.
 */
QUIRE_API bool quire_planner_poll(struct quire_runtime *runtime);

/*
 * quire_executor_poll - let the executor publish what the device finished and run one
 * entry
 * Returns:  true: it moved; false: nothing to do until an entry or the device comes, or
 *           called inside a poll of the executor.
 * Threads:  with QUIRE_THREADS_CALLER only (otherwise false), one at a time.  The cache's
 *           device is the thread's current one inside, and again what it was behind.
 */
QUIRE_API bool quire_executor_poll(struct quire_runtime *runtime);

/*
 * quire_runtime_idle - sleep until one of the two machines may have something to do
 * @value:   of quire_runtime_idle_value, read before the polls that found nothing
 * @deadline_ns: as for quire_runtime_wait
 * Returns:  QUIRE_OK: look again; QUIRE_TIMEOUT; QUIRE_WOULD_BLOCK: inside a callback;
 *           QUIRE_INVALID: with QUIRE_THREADS_LIBRARY.
 * Threads:  whoever polls, several at a time if different threads drive the two.
 *
 *   for (;;) {
 *           uint32_t value = quire_runtime_idle_value(runtime);
 *           bool moved = quire_planner_poll(runtime);
 *
 *           moved |= quire_executor_poll(runtime);
 *           if (!moved)
 *                   (void)quire_runtime_idle(runtime, value, QUIRE_NO_DEADLINE);
 *   }
 *
 * To end such a loop set a flag, which it looks at before it sleeps, then call
 * quire_runtime_shutdown; join the thread, then quire_runtime_destroy.
 */
QUIRE_API enum quire_status quire_runtime_idle(struct quire_runtime *runtime,
                                               uint32_t value, int64_t deadline_ns);

/* quire_runtime_idle_value - changes so far.  Threads: any. */
QUIRE_API uint32_t quire_runtime_idle_value(struct quire_runtime *runtime);

#ifdef __cplusplus
}
#endif
#endif
