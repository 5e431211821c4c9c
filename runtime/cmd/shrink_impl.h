/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_RUNTIME_CMD_SHRINK_IMPL_H
#define QUIRE_RUNTIME_CMD_SHRINK_IMPL_H
/*
 * Making a plan trace smaller for which a program fails.
 *
 *   shrink.c         options, the output, the numbers
 *   shrink_run.c     the program, run on a candidate
 *   shrink_reduce.c  which candidates are tried, in which order
 *   shrink_try.c     whether one fails
 *
 * A candidate is a cut (shrink_model_impl.h).  The smallest one that fails is kept;
 * others are copies of it with something more taken away.  Whatever is taken away only
 * makes a cut smaller, so shrinking ends, whatever the program answers.
 */
#include "runtime/cmd/shrink_model_impl.h"

#include <stddef.h>

/* ------------------------------------------------------------------ shrink_reduce.c */

enum shrink_answer {
	SHRINK_PASSES,
	SHRINK_FAILS,
	SHRINK_STOP, /* no further candidate is wanted */
};

struct shrink_counts {
	int64_t commands;
	int64_t segments;
	int64_t requests; /* opened */
	int64_t pages;    /* of the pool */
};

struct shrink {
	struct shrink_model model;
	/* Does the program fail on a trace, as at first? */
	enum shrink_answer (*test)(void *argument, const char *bytes, size_t size);
	void *argument;
	int64_t runs_max;
	int64_t runs;
	struct shrink_cut best, trial;
	bool is_failing;   /* `best` fails */
	bool is_tail_only; /* without outcomes it does not fail: the end is cut off */
	bool is_stopped;   /* while something might still have been taken away */
	int code;          /* CMD_DONE; CMD_BAD: told */
	uint64_t *seen;    /* hashes of what was tried; 0: none */
	uint64_t seen_mask;
	uint64_t best_hash;
	int64_t *units; /* of the pass */
	enum shrink_part part;
	bool *streams; /* [num_streams]: named in the best cut */
	bool *taken;   /* [num_streams]: to be taken from the trial */
};

/* @shrink: zeros but for test, argument and runs_max.  CMD_DONE; CMD_BAD: told. */
int shrink_init(struct shrink *shrink, const struct cmd_lines *lines);
void shrink_end(struct shrink *shrink);

/* Take away all that can be: `best` is what is left, if it fails at all.  CMD_DONE;
 * CMD_BAD: told. */
int shrink_reduce(struct shrink *shrink);

/* What a cut leaves. */
void shrink_count(const struct shrink_model *model, const struct shrink_cut *cut,
                  struct shrink_counts *counts_out);

/* ------------------------------------------------------------------ shrink_try.c */

/* Another trial: a copy of the best so far. */
void shrink_begin(struct shrink *shrink);

/* Does the trial fail?  Then it is the best from now on.  @or_same: also when it is the
 * same as the best. */
bool shrink_try_or(struct shrink *shrink, bool or_same);
bool shrink_try(struct shrink *shrink);

/* No further trials; @code: CMD_DONE, or CMD_BAD: told. */
void shrink_stop(struct shrink *shrink, int code);

/* ------------------------------------------------------------------ shrink_run.c */

enum shrink_end {
	SHRINK_END_NONE, /* it was not run yet */
	SHRINK_END_EXIT, /* with a status */
	SHRINK_END_SIGNAL,
	SHRINK_END_HANG, /* it did not end in time */
};

struct shrink_run {
	char **command; /* ended by NULL */
	int64_t timeout_s;
	const struct shrink *shrink; /* for the progress line */
	char *folder;                /* private; candidates lie there */
	char *path;
	char **arguments;    /* the command, with the path in it */
	enum shrink_end end; /* how it failed at first */
	int value;           /* the status or the signal */
	bool is_interrupted;
	int code; /* CMD_DONE; CMD_BAD: told */
	struct shrink_signals *signals;
};

/* CMD_DONE; CMD_BAD: told; shrink_run_end is called all the same. */
int shrink_run_begin(struct shrink_run *run);
/* Nothing of it stays behind. */
void shrink_run_end(struct shrink_run *run);

/* Run the program on a trace; @argument: a struct shrink_run. */
enum shrink_answer shrink_run_test(void *argument, const char *bytes, size_t size);

/* How it failed, in words. */
void shrink_run_describe(const struct shrink_run *run, char *text, size_t size);

#endif
