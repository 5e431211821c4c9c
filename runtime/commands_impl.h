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
 *   control lane   one fixed place per control command: never full, never waiting.
 *   Shutdown is
 *                  the only one so far.  It draws its position from the same counter.
 *
 * `tail` is stored with release by the client under the lock and loaded with acquire by
 * the planner: who sees it sees the cells before it.  `head` the other way round: a
 * client that sees it may fill the cells before it again.
 */
#include "runtime/tickets_impl.h"

#include <quire/plans/plan.h>
#include <quire/plans/step.h>
#include <quire/runtime/limits.h>
#include <quire/runtime/status.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* A segment with its label as an id. */
struct quire_segment_in {
	uint64_t request;
	uint64_t tag;
	int32_t label;
	int32_t span;
	int32_t at;
};

/* A command as the planner gets it: nothing of the client's is pointed to. */
struct quire_command_cell {
	uint64_t ticket;
	uint64_t request;
	enum quire_command_kind kind;
	int32_t label;
	int32_t keep_pages;
	int32_t num_segments;
	int32_t num_combined;
	int32_t num_work;
	int32_t bucket_tokens;
	int32_t bucket_rows;
	uint32_t flags;
	quire_step_function run;
	void *run_argument;
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
	uint64_t position; /* of the newest command of either lane; under the lock */
	int32_t rows_max;
	int32_t tables_max;
	_Atomic uint64_t tail; /* cells filled */
	_Atomic uint64_t head; /* cells emptied */
	_Atomic int shutdown;  /* enum quire_shutdown: the control lane */
	struct quire_labels labels;
};

enum quire_status quire_commands_init(struct quire_commands *commands,
                                      int32_t commands_max, int32_t rows_max,
                                      int32_t tables_max);
void quire_commands_end(struct quire_commands *commands);

/*
 * Put a command at the end of the ordinary lane.  QUIRE_OK: drawn and queued;
 * QUIRE_AGAIN: the lane, or the tickets, are full; QUIRE_CLOSED; QUIRE_INVALID or
 * QUIRE_LIMIT: as quire_runtime_command says.
 */
enum quire_status quire_commands_put(struct quire_commands *commands,
                                     struct quire_tickets *tickets,
                                     const struct quire_command *command,
                                     uint64_t *ticket_out, struct quire_refusal *refusal);

/* The oldest command not emptied yet, or NULL.  Planner only. */
struct quire_command_cell *quire_commands_front(struct quire_commands *commands);

/* Done with the front.  Planner only. */
void quire_commands_pop(struct quire_commands *commands);

/* The id of a label that some command named; -1: none did.  Any thread. */
int32_t quire_labels_find(const struct quire_labels *labels, const char *name);

#endif
