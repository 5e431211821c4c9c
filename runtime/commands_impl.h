/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_RUNTIME_COMMANDS_IMPL_H
#define QUIRE_RUNTIME_COMMANDS_IMPL_H
/*
 * Commands: how they reach the planner.  Two lanes, one order.
 *
 *   ordinary lane  a bounded ring of cells.  Clients fill one at a time under `lock`,
 *   where they
 *                  also draw the position (the ticket); the planner empties it without a
 *                  lock.
 *   control lane   one fixed place per control command: never full, never waiting.  The
 *                  fate of a speculative step is in its ticket's cell, shutdown in
 *                  `shutdown`.  They draw their positions from the same counter.
 *
 * Which speculative step rests on which, and whose fate is open, hangs on the order of
 * the commands alone.  So clients keep it, under the lock, in `open`: a promote or
 * abandon is checked there, and an abandon marks all that rest on its target, newest
 * first; the planner that sees one of them marked sees those above it marked too.
 *
 * What the planner may rely on: whoever finds a command in the ordinary lane, and loads a
 * fate afterwards, finds every fate drawn before that command.
 *
 * `tail` is stored with release by the client under the lock and loaded with acquire by
 * the planner: who sees it sees the cells before it.  `head` the other way round: a
 * client that sees it may fill the cells before it again.
 */
#include "runtime/tickets_impl.h"
#include "runtime/wake_impl.h"

#include <quire/plans/plan.h>
#include <quire/plans/step.h>
#include <quire/runtime/limits.h>
#include <quire/runtime/runtime.h>
#include <quire/runtime/status.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* A segment with its label as an id. */
struct quire_segment_in {
	uint64_t request;
	int32_t label;
	int32_t span;
	int32_t at;
	uint64_t tag;
};

/* Where the next step of a segment is that goes on: at any place again, or where it ends. */
static inline int32_t quire_segment_next_at(const struct quire_segment_in *segment)
{
	return segment->at < 0
	               ? segment->at
	               : (int32_t)((uint32_t)segment->at + (uint32_t)segment->span);
}

/* Label ids of the pairs of a fork list. */
struct quire_forks_in {
	int32_t num;
	uint8_t source[QUIRE_FORKS_MAX];
	uint8_t target[QUIRE_FORKS_MAX];
};

/* A command as the planner gets it: nothing of the client's is pointed to. */
struct quire_command_cell {
	uint64_t ticket;
	uint64_t request;
	enum quire_command_kind kind;
	int32_t label;
	int32_t keep_pages;
	int32_t tokens;
	int64_t given_ns; /* of a recorded command: when, ... */
	uint64_t client;  /* ... and by which thread */
	/* Of a recorded step: leading segments that go on where those of the step before
	 * ended, all else the same. */
	int32_t num_continued;
	uint64_t base; /* of a speculative step: what it rests on; 0: none */
	int32_t num_segments;
	int32_t num_combined;
	int32_t num_work;
	int32_t bucket_tokens;
	int32_t bucket_rows;
	uint32_t flags;
	quire_step_function run;
	void *run_argument;
	struct quire_event *wait_event;
	struct quire_event *record_event;
	quire_done_function done;
	void *done_argument;
	struct quire_forks_in pre_forks;
	struct quire_forks_in post_forks;
	struct quire_segment_in *segments;   /* room for rows_max */
	struct quire_combined_ids *combined; /* room for tables_max */
	struct quire_work work[QUIRE_WORK_MAX];
};

/* Labels by id, in the order in which clients first named them; id 0 is "main".  Appended
 * under the commands' lock; `num` is stored with release after the name and loaded with
 * acquire. */
struct quire_labels {
	_Atomic int32_t num;
	char names[QUIRE_LABELS_MAX][QUIRE_LABEL_BYTES];
};

/* A speculative step that an abandon may still end. */
struct quire_open_step {
	uint64_t ticket;
	uint64_t base; /* 0: none, or promoted for good */
	bool promoted; /* so far in vain: its base is still here */
	bool ended;    /* while one is abandoned */
};

enum quire_shutdown {
	QUIRE_SHUTDOWN_NONE,
	QUIRE_SHUTDOWN_DRAIN,
	QUIRE_SHUTDOWN_CANCEL,
};

struct quire_commands {
	pthread_mutex_t
		lock; /* among clients: position, cells behind tail, labels, outcomes */
	struct quire_command_cell *cells;
	struct quire_segment_in *segments;
	struct quire_combined_ids *combined;
	uint64_t mask;
	/* Commands are recorded, with times of this clock; NULL: they are not.  Under the
	 * lock. */
	const struct quire_hooks *clock;
	/* The newest step of them, while nothing has been written over it; under the
	 * lock. */
	const struct quire_command_cell *newest_step;
	uint64_t position; /* of the newest command of either lane; under the lock */
	/* Position of the newest command of the ordinary lane that was no speculative
	 * submit; under the lock. */
	uint64_t last_other;
	/* [speculative_max], oldest first; under the lock. */
	struct quire_open_step *open;
	int32_t num_open;
	int32_t speculative_max;
	int32_t rows_max;
	int32_t tables_max;
	/* The oldest step that the planner holds, while nothing but a fate lets the
	 * planner go on; 0: something else does.  Stored by the planner, which wakes the
	 * clients then; it decides no more than whether one waits. */
	_Atomic uint64_t held;
	_Atomic uint64_t tail; /* cells filled */
	_Atomic uint64_t head; /* cells emptied */
	_Atomic int shutdown;  /* enum quire_shutdown: the control lane */
	struct quire_labels labels;
};

enum quire_status quire_commands_init(struct quire_commands *commands,
                                      const struct quire_runtime_config *config);
void quire_commands_end(struct quire_commands *commands,
                        const struct quire_memory *memory);

/*
 * Put a command at the end of the ordinary lane, or decide one of the control lane.
 * QUIRE_OK: drawn and queued; QUIRE_AGAIN: the lane, or the tickets, are full;
 * QUIRE_HELD: they are, and a fate is what they wait for; QUIRE_CLOSED; QUIRE_INVALID or
 * QUIRE_LIMIT: as quire_runtime_command says.
 */
enum quire_status quire_commands_put(struct quire_commands *commands,
                                     struct quire_tickets *tickets,
                                     const struct quire_command *command,
                                     uint64_t *ticket_out, struct quire_refusal *refusal);

/* No more commands: whose fate is open by now is abandoned.  QUIRE_OK; QUIRE_CLOSED. */
enum quire_status quire_commands_close(struct quire_commands *commands,
                                       struct quire_tickets *tickets, bool cancel);

/* The position of the newest command, and the oldest step whose fate is open, 0: none. */
uint64_t quire_commands_newest(struct quire_commands *commands, uint64_t *open_out);

/* The oldest command not emptied yet, or NULL.  Planner only. */
struct quire_command_cell *quire_commands_front(struct quire_commands *commands);

/* Done with the front.  Planner only. */
void quire_commands_pop(struct quire_commands *commands);

/* The clock that a program gave, or its own. */
static inline int64_t quire_hooks_now(const struct quire_hooks *hooks)
{
	return hooks->now_ns == NULL ? quire_now_ns()
	                             : hooks->now_ns(hooks->now_argument);
}

/* The number of this thread (threads.c): threads are numbered when they are first
 * asked for. */
uint64_t quire_this_thread(void);

/* The id of a label that some command named; -1: none did.  Any thread. */
int32_t quire_labels_find(const struct quire_labels *labels, const char *name);

#endif
