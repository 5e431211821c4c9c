/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_RUNTIME_CMD_REPLAY_IMPL_H
#define QUIRE_RUNTIME_CMD_REPLAY_IMPL_H
/*
 * A replay: commands go from the trace to a runtime, their outcomes come back in order,
 * some way behind, so that the planner really is ahead.
 *
 *   replay.c    options, and everything a replay needs, made and ended
 *   run.c       the way there: give a command
 *   speculate.c speculative submits, promotes and abandons
 *   fates.c     which of them rests on which
 *   settle.c    the way back: compare an outcome, record it
 *   summary.c   what a run comes to
 *   check.c     --check: what is written, what is read, whether it is right
 *
 * On the way back a command is *settled* (what became of it is known, its reads are
 * verified), then *closed* (compared, recorded, digested).  Both go in order; but a
 * speculative step that was refused, its fate open, is settled and not closed: whatever
 * its fate, nothing of it remains.  One that is held lets nothing behind it be settled.
 */
#include "runtime/cmd/cmd_impl.h"
#include "runtime/cmd/fates_impl.h"

#include <quire/plans/trace.h>
#include <quire/runtime/runtime.h>

#include <stdbool.h>
#include <stdint.h>

/* Commands given and not settled, where nothing is held ... */
#define CMD_WINDOW 1024

/* ... and not closed, at most: so many may follow a speculative submit until its fate is
 * known.  The runtime remembers more tickets, and CMD_FATES is more. */
#define CMD_PENDING 4096

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

/* What --check keeps of a command that is no submit. */
struct cmd_named {
	uint64_t request;
	int32_t label; /* an id */
	int32_t tokens;
};

/* A command on its way. */
struct cmd_pending {
	uint64_t ticket;  /* 0: not given, or refused at once: see `got` */
	bool is_left_out; /* recorded as without effect: not given at all */
	bool is_planned;  /* a held step: it is known that it was not refused */
	bool is_unclosed; /* settled with an outcome that is not the final one */
	int64_t line;
	enum quire_command_kind kind;
	bool has_expected;
	struct quire_trace_outcome expected;
	struct quire_refusal got;
	struct quire_trace_outcome settled;
	struct cmd_fate *fate; /* of a speculative submit; NULL otherwise */
	uint64_t base_ticket;  /* of what it rests on here; 0: nothing */
	uint64_t base;         /* its base's id, for the record; 0: none */
	struct cmd_named named;
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
	struct cmd_fates fates;
	uint64_t head;   /* oldest command not closed, ... */
	uint64_t cursor; /* ... not settled, ... */
	uint64_t tail;   /* ... and the next one given, all counted from 0 */
	struct cmd_pending pending[CMD_PENDING];
};

/* ------------------------------------------------------------------ run.c */

/* What answers int answers CMD_DONE to go on, or how the replay ends, told. */

/* Give all commands of the trace, settle all outcomes. */
int cmd_run_all(struct cmd_run *run);

/* Give one command to the runtime.  CMD_FAILED: it cannot be given, ever. */
int cmd_run_give(struct cmd_run *run, const struct quire_command *command,
                 struct cmd_pending *pending);

/* Wait until a ticket has come as far as a stage; a single thread drives meanwhile. */
enum quire_status cmd_run_wait(struct cmd_run *run, uint64_t ticket,
                               enum quire_stage stage, struct quire_outcome *outcome_out);

/* Wait until all pages given up have gone back. */
void cmd_run_rest(struct cmd_run *run);

/* ------------------------------------------------------------------ settle.c */

static inline struct cmd_pending *cmd_run_pending(struct cmd_run *run, uint64_t index)
{
	return &run->pending[index % CMD_PENDING];
}

/* Can another command be settled?  Not when all are, or when the next is held. */
bool cmd_run_can_settle(struct cmd_run *run);

/* Settle the next command, which can be; close what can be. */
int cmd_run_settle(struct cmd_run *run);

/* Settle all that can be. */
int cmd_run_settle_all(struct cmd_run *run);

/* Tell that a command came to something else than expected; answers CMD_FAILED. */
int cmd_run_diverge(struct cmd_run *run, int64_t line, const char *what);

/* ------------------------------------------------------------------ speculate.c */

/* A speculative submit: give it, or do not where its base says what becomes of it. */
int cmd_run_speculate(struct cmd_run *run, const struct quire_trace_record *record,
                      const struct quire_command *command, struct cmd_pending *pending);

/* A promote or an abandon. */
int cmd_run_decide(struct cmd_run *run, const struct quire_command *command,
                   struct cmd_pending *pending);

/* The trace is over: promote what is open and was promoted as far as the record goes, as
 * in a trace that was cut; abandon all else. */
int cmd_run_end_all(struct cmd_run *run);

/* ------------------------------------------------------------------ run.c */

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

/* Before a command is given: @step_out is the step with its work, named and batch of
 * @pending what to keep until it is settled; all are left alone when there is nothing to
 * add.  May settle older ones. */
int cmd_check_prepare(struct cmd_check *check, const struct quire_trace_record *record,
                      struct quire_step *step_out, struct cmd_pending *pending);

/* It was given, or not, as command @index of the run. */
void cmd_check_given(struct cmd_check *check, const struct cmd_batch *batch,
                     uint64_t index, bool is_on_record);

/* It has retired, or was refused: verify what it read, note what the streams hold.  Its
 * batch is given. */
int cmd_check_settle(struct cmd_check *check, struct cmd_pending *pending,
                     enum quire_status status);

/* The trace is over: read what no step has read.  All commands are settled. */
int cmd_check_finish(struct cmd_check *check);

/* Drop a batch unseen; NULL is a no-op. */
void cmd_batch_free(struct cmd_batch *batch);

void cmd_check_counts(const struct cmd_check *check, struct cmd_check_counts *counts_out);

#endif
