/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_RUNTIME_CMD_REPLAY_IMPL_H
#define QUIRE_RUNTIME_CMD_REPLAY_IMPL_H
/*
 * A replay: commands go from the trace to a runtime, their outcomes come back in order,
 * some way behind, so that the planner really is ahead.
 *
 *   replay.c    options, and what all jobs come to
 *   jobs.c      --jobs and --loop: who replays how often
 *   pass.c      one replay: everything it needs, made and ended
 *   run.c       the way there: give a command
 *   pace.c      --timing recorded: when
 *   speculate.c speculative submits, promotes and abandons
 *   fates.c     which of them rests on which
 *   settle.c    the way back: what became of a command; write it
 *   compare.c   was it so on record?
 *   explain.c   what exactly was not: the run once more, up to there
 *   summary.c   what runs come to
 *   check.c     --check: what is written, what is read, whether it is right
 *
 * On the way back a command is *settled* (what became of it is known, its reads are
 * verified), then *closed* (compared, recorded, digested).  Both go in order; but a
 * speculative step that was refused, its fate open, is settled and not closed: whatever
 * its fate, nothing of it remains.  One that is held lets nothing behind it be settled.
 */
#include "runtime/cmd/divergence_impl.h"
#include "runtime/cmd/fates_impl.h"
#include "runtime/cmd/image_impl.h"
#include "runtime/cmd/marks_impl.h"
#include "runtime/cmd/result_impl.h"
#include "runtime/cmd/rig_impl.h"
#include "runtime/cmd/ring_impl.h"

#include <quire/plans/trace.h>
#include <quire/runtime/runtime.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Commands given and not settled, where nothing is held ... */
#define CMD_WINDOW 1024

/* ... and not closed, at most: so many may follow a speculative submit until its fate is
 * known.  The runtime remembers more tickets, and CMD_FATES is more. */
#define CMD_PENDING 4096

/* A command draws one ticket, and one more may be drawn before it (give_between). */
_Static_assert(CMD_RING_KEYS > 2 * CMD_PENDING, "a ring has a place for every ticket");

#define CMD_JOBS_MAX  64
#define CMD_LOOPS_MAX 1000000

struct cmd_check;

/* A step's rows and buffers while it is on its way. */
struct cmd_batch;

struct cmd_replay_options {
	struct cmd_common common;
	const char *trace;
	const char *device;
	const char *outcomes; /* what is not asked for is NULL */
	const char *record;
	const char *timeline;
	int64_t depth;
	int64_t pages;       /* 0: the trace's */
	int64_t seed_delays; /* 0: no delays */
	int64_t from;        /* first and last line, of the file; */
	int64_t to;
	int64_t loops;
	int64_t jobs;
	bool caller; /* one thread drives everything */
	bool check;
	bool digests;
	bool verify;   /* compare with what is on record */
	bool recorded; /* commands come at their recorded times */
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
	bool is_unnamed;  /* of a label too many: refused, and not given either */
	bool is_planned;  /* a held step: it is known that it was not refused */
	bool is_unclosed; /* settled with an outcome that is not the final one */
	bool is_compared;
	int64_t line;
	enum quire_command_kind kind;
	bool has_expected;
	/* Its pages are in run->wanted. */
	struct quire_trace_outcome expected;
	struct quire_refusal got;
	struct quire_trace_outcome settled;
	uint64_t step;         /* its number, once it is settled; 0: not planned */
	struct cmd_fate *fate; /* of a speculative submit; NULL otherwise */
	uint64_t base_ticket;  /* of what it rests on here; 0: nothing */
	uint64_t base;         /* its base's id, for --outcomes; 0: none */
	struct cmd_named named;
	struct cmd_batch *batch; /* of a submit under --check; NULL otherwise */
};

/* The end of a trace that is not whole. */
struct cmd_damage {
	bool found;
	struct quire_refusal refusal; /* what: `text` */
	char text[512];
};

/* What all jobs share. */
struct cmd_shared {
	const struct cmd_replay_options *options;
	const char *file; /* for messages */
	const char *path; /* to open */
	struct quire_trace_header header;
	bool is_logical; /* another pool than the trace's: what hangs on it differs */
	bool keeps_pages; /* the trace names the pages that steps took, and they are of use */
	struct cmd_gate gate;
	atomic_bool stop; /* one of them has ended otherwise than well */
};

struct cmd_run {
	const struct cmd_replay_options *options;
	const char *file; /* for messages */
	struct cmd_shared *shared;
	struct quire_runtime *runtime;
	struct quire_trace_reader *reader;
	struct quire_trace_reader *again; /* the commands once more, as they settle ... */
	struct quire_trace_writer
		*outcomes;       /* ... for --outcomes; both NULL without it */
	struct cmd_check *check; /* NULL: none */
	struct cmd_ring *wanted; /* pages on record, by place in the run from 1 ... */
	struct cmd_ring *taken;  /* ... and taken here, by ticket; NULL: not compared */
	bool compares;           /* with the record */
	bool is_logical;         /* shared->is_logical */
	bool is_shown;           /* its progress */
	bool is_begun;           /* --from was reached: from here on it counts */
	bool is_cut;             /* --to was */
	int64_t start_ns;        /* when that was */
	int64_t pace_ns; /* of the first command that came at its time; -1: none */
	uint64_t first;  /* the first command that counts, as below */
	struct quire_runtime_stats before;      /* what was counted before it ... */
	struct cmd_check_counts checked_before; /* ... and checked */
	struct cmd_result result;
	struct cmd_marks abandoned; /* commands that came to nothing */
	struct cmd_divergence divergence;
	struct cmd_damage damage;
	struct cmd_fates fates;
	struct cmd_image_labels labels; /* that the trace has named so far */
	uint64_t head;                  /* oldest command not closed, ... */
	uint64_t cursor;                /* ... not settled, ... */
	uint64_t tail; /* ... and the next one given, all counted from 0 */
	struct cmd_pending pending[CMD_PENDING];
};

/* What answers int answers CMD_DONE to go on, or how the replay ends, told or noted as a
 * divergence. */

/* ------------------------------------------------------------------ jobs.c */

/* What one job has come to. */
struct cmd_job {
	struct cmd_shared *shared;
	int64_t number;
	struct cmd_total total;
	uint64_t last_digest; /* of the newest run */
	struct cmd_divergence divergence;
	struct cmd_damage damage;
	struct cmd_marks abandoned; /* commands of the newest run */
};

/*
 * cmd_jobs_run - replay as often as the options say
 * @job_out: filled: the numbers of all, and the first divergence; end it
 * Returns:  how it ended: of the job that did first.
 */
int cmd_jobs_run(struct cmd_shared *shared, struct cmd_job *job_out);
void cmd_job_end(struct cmd_job *job);

/* ------------------------------------------------------------------ pass.c */

/* One replay for a job. */
int cmd_pass(struct cmd_job *job);

/* ------------------------------------------------------------------ run.c */

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

/* Was the command refused for a reason that is not in the trace, when it was recorded?
 * It has no effect here either. */
bool cmd_is_left_out(const struct quire_trace_record *record);

/* Is it left out of this run, or refused as far as the record goes? */
bool cmd_run_is_refused(const struct cmd_run *run,
                        const struct quire_trace_record *record);

/* ------------------------------------------------------------------ pace.c */

/* Wait until a command's recorded time has come. */
int cmd_pace(struct cmd_run *run, const struct quire_trace_record *record);

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

/* ------------------------------------------------------------------ compare.c */

/* A command is closed: compare what it came to with the record. */
int cmd_compare(struct cmd_run *run, const struct cmd_pending *pending,
                const struct quire_trace_outcome *got);

/* Something else than an outcome is not as it has to be; answers CMD_FAILED. */
int cmd_run_diverge(struct cmd_run *run, int64_t line, const char *text);

/* ------------------------------------------------------------------ summary.c */

/* Print what all jobs came to; @code is how they ended. */
int cmd_summary_print(const struct cmd_shared *shared, struct cmd_job *job, int code);

/* ------------------------------------------------------------------ explain.c */

/* Find out where a plan, or its pages, are not as recorded, by another run up to there;
 * what is found is added. */
void cmd_explain(const struct cmd_shared *shared, struct cmd_job *job);

/* ------------------------------------------------------------------ speculate.c */

/* Can the trace have the base that a speculative submit names?  false: @text, of @bytes,
 * says why not. */
bool cmd_run_can_rest(struct cmd_run *run, const struct quire_trace_record *record,
                      char *text, size_t bytes);

/* A speculative submit: give it, or do not where its base says what becomes of it. */
int cmd_run_speculate(struct cmd_run *run, const struct quire_trace_record *record,
                      const struct quire_command *command, struct cmd_pending *pending);

/* A promote or an abandon. */
int cmd_run_decide(struct cmd_run *run, const struct quire_command *command,
                   struct cmd_pending *pending);

/* The trace is over: promote what is open and was promoted as far as the record goes, as
 * in a trace that was cut; abandon all else. */
int cmd_run_end_all(struct cmd_run *run);

/* ------------------------------------------------------------------ check.c */

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
