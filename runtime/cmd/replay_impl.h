/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_RUNTIME_CMD_REPLAY_IMPL_H
#define QUIRE_RUNTIME_CMD_REPLAY_IMPL_H
/*
 * A replay: commands go from the trace to a runtime, their outcomes come back in order,
 * some way behind, so that the planner really is ahead.
 *
 *   replay.c  options, and everything a replay needs, made and ended
 *   run.c     the way there and back: give a command, settle an outcome
 *   summary.c what a run comes to
 *   check.c   --check: what is written, what is read, whether it is right
 */
#include "runtime/cmd/cmd_impl.h"

#include <quire/plans/trace.h>
#include <quire/runtime/runtime.h>

#include <stdbool.h>
#include <stdint.h>

/* Commands given and not settled, at most; the runtime remembers more tickets. */
#define CMD_WINDOW 1024

/* Statuses are 0..CMD_STATUSES-1. */
#define CMD_STATUSES (QUIRE_END + 1)

struct cmd_check;

/* A step's rows and buffers while it is on its way. */
struct cmd_batch;

struct cmd_replay_options {
	struct cmd_common common;
	const char *trace;
	const char *device;
	const char *record; /* NULL: do not */
	int64_t depth;
	int64_t pages;       /* 0: the trace's */
	int64_t seed_delays; /* 0: no delays */
	bool caller;         /* one thread drives everything */
	bool check;
	bool digests;
};

/* A command on its way. */
struct cmd_pending {
	uint64_t ticket;  /* 0: refused at once, `got` says how; or left out */
	bool is_left_out; /* recorded as without effect: not given at all */
	int64_t line;
	enum quire_command_kind kind;
	bool has_expected;
	struct quire_trace_outcome expected;
	struct quire_refusal got;
	struct cmd_batch *batch; /* of a submit under --check; NULL otherwise */
};

struct cmd_run {
	const struct cmd_replay_options *options;
	const char *file; /* for messages */
	struct quire_runtime *runtime;
	struct quire_trace_reader *reader;
	struct quire_trace_reader *again; /* the commands once more, as they settle ... */
	struct quire_trace_writer *record; /* ... for the record; both NULL without one */
	struct cmd_check *check;           /* NULL: none */
	bool compares;                     /* recorded outcomes hold for this pool */
	bool diverged;
	uint64_t digest;
	int64_t compared; /* outcomes found as recorded */
	int64_t statuses[CMD_STATUSES];
	uint64_t head; /* oldest command not settled ... */
	uint64_t tail; /* ... and the next one given, both counted from 0 */
	struct cmd_pending pending[CMD_WINDOW];
};

/* ------------------------------------------------------------------ run.c */

/* What answers int answers CMD_DONE to go on, or how the replay ends, told. */

/* Give all commands of the trace, settle all outcomes. */
int cmd_run_all(struct cmd_run *run);

/* Settle the oldest command, or all that were given. */
int cmd_run_settle(struct cmd_run *run);
int cmd_run_settle_all(struct cmd_run *run);

/* Wait until a ticket has come as far as a stage; a single thread drives meanwhile. */
enum quire_status cmd_run_wait(struct cmd_run *run, uint64_t ticket,
                               enum quire_stage stage, struct quire_outcome *outcome_out);

/* Wait until all pages given up have gone back. */
void cmd_run_rest(struct cmd_run *run);

/* Was the command recorded as refused for want of time?  It has no effect here either. */
bool cmd_run_is_left_out(const struct quire_trace_record *record);

/* Is it left out, or refused as far as the record goes? */
bool cmd_run_is_refused(const struct cmd_run *run,
                        const struct quire_trace_record *record);

/* ------------------------------------------------------------------ summary.c */

/* Print how the replay went, as far as it came; @code is how it ended so far. */
int cmd_run_report(struct cmd_run *run, int64_t wall_ns, int code);

/* ------------------------------------------------------------------ check.c */

struct cmd_check_counts {
	int64_t rows;   /* read back and right */
	int64_t tokens; /* of them */
};

/*
 * cmd_check_create - walk the trace once for what the second walk has to know
 * @path:    borrowed; opened beside the run's own reader
 * @cache:   kept
 */
int cmd_check_create(struct cmd_run *run, const char *path, struct quire_cache *cache,
                     struct cmd_check **check_out);
void cmd_check_destroy(struct cmd_check *check);

/* Before a command is given: @step_out is the step with its work, @batch_out what to keep
 * until it is settled; both are left alone when there is nothing to add.  May settle
 * older ones. */
int cmd_check_prepare(struct cmd_check *check, const struct quire_trace_record *record,
                      struct quire_step *step_out, struct cmd_batch **batch_out);

/* It was given: the ticket that its reads depend on. */
void cmd_check_given(struct cmd_check *check, const struct cmd_batch *batch,
                     uint64_t ticket, bool is_on_record);

/* It has retired, or was refused: verify what it read.  @batch is given. */
int cmd_check_settle(struct cmd_check *check, struct cmd_batch *batch, int64_t line,
                     enum quire_status status);

/* The trace is over: read what no step has read.  All commands are settled. */
int cmd_check_finish(struct cmd_check *check);

/* Drop a batch unseen; NULL is a no-op. */
void cmd_batch_free(struct cmd_batch *batch);

void cmd_check_counts(const struct cmd_check *check, struct cmd_check_counts *counts_out);

#endif
