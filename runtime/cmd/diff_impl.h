/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_RUNTIME_CMD_DIFF_IMPL_H
#define QUIRE_RUNTIME_CMD_DIFF_IMPL_H
/*
 * A diff of two plan traces, A and B.
 *
 *   diff.c         options, headers, the walk over both
 *   diff_side.c    one trace: what is kept of a command, which step an id names
 *   diff_key.c     what a command asks, as one number
 *   diff_align.c   where the two go on alike
 *   diff_tell.c    the first difference, in words
 *   diff_report.c  the numbers
 *
 * Commands are aligned by their *keys*: what they ask, whatever their ids, outcomes and
 * times are.  Both traces are read once.  While commands are alike one of each is in
 * hand; where they part both are read ahead, CMD_DIFF_WINDOW commands at most, for the
 * nearest place from which they are alike again.
 *
 * An id means nothing outside of its trace.  So a promote, an abandon or a base is
 * compared by the *pair* of the step that it names: speculative submits that were aligned
 * with each other have the same number.
 */
#include "runtime/cmd/cmd_impl.h"
#include "runtime/cmd/fates_impl.h"
#include "runtime/histogram_impl.h"

#include <quire/plans/trace.h>

#include <stdbool.h>
#include <stdint.h>

/* Commands that are read ahead. */
#define CMD_DIFF_WINDOW 4096

/* Alike in a row, commands are alike again and do not merely look like each other. */
#define CMD_DIFF_RUN 3

/* Bytes of a text about one command. */
#define CMD_DIFF_TEXT 320

#define CMD_DIFF_STATUSES (QUIRE_END + 1)

struct diff_key {
	uint64_t low, high;
};

/* What a promote, an abandon or a base names. */
enum diff_name {
	DIFF_NAMES_NOTHING, /* a base only: the step rests on nothing */
	DIFF_NAMES_UNKNOWN, /* no speculative submit, or one that is forgotten */
	DIFF_NAMES_STEP,
};

/* What is kept of a command until it is aligned. */
struct diff_item {
	struct diff_key key;
	int64_t line;
	enum quire_command_kind kind;
	bool is_speculative;
	uint64_t number; /* of a speculative submit: which one it is, from 0 */
	enum diff_name names;
	uint64_t named; /* the number of the step that is named */
	bool has_prefix;
	struct diff_key prefix;
	bool has_outcome;
	struct quire_trace_outcome outcome; /* its pages are the item's own */
};

/* A speculative submit that may be named. */
struct diff_step {
	uint64_t number;
	struct diff_key key;
	uint64_t pair; /* 0: aligned with none */
};

/* How late commands were decided and issued. */
struct diff_times {
	bool any;
	struct quire_histogram decided; /* since they were given */
	struct quire_histogram issued;  /* since they were decided */
};

struct diff_side {
	const char *name; /* as the user gave it */
	struct quire_trace_reader *reader;
	struct quire_trace_record last; /* read; lent until the next is */
	struct cmd_fates fates;
	struct diff_step *steps; /* [CMD_FATES], by number */
	/* Nothing so far can have made a step take other pages than its tokens need: no
	 * page has two owners, none is spare. */
	bool is_plain;
	bool at_end;
	int64_t next_line;        /* behind what was read */
	struct diff_item *window; /* [CMD_DIFF_WINDOW], a ring */
	uint64_t head, tail;
	struct diff_times times;
};

/* Kinds of differences, in the order in which those of one pair are told; behind them
 * what one of a pair says and the other does not, which is none: it is counted. */
enum diff_what {
	DIFF_ONLY_A,
	DIFF_ONLY_B,
	DIFF_NAMED,
	DIFF_PREFIX,
	DIFF_STATUS, /* the first of an outcome */
	DIFF_DETAIL,
	DIFF_OUTSIDE,
	DIFF_DIGEST,
	DIFF_PAGES,
	DIFF_PREFIX_ONE, /* the first that is no difference */
	DIFF_OUTCOME_ONE,
	DIFF_DIGEST_ONE,
	DIFF_PAGES_ONE,
	DIFF_KINDS,
};

struct diff_count {
	int64_t count;
	int64_t line_a, line_b; /* of the first */
};

struct cmd_diff {
	struct cmd_common common;
	const char *names[2];
	struct diff_side a, b;
	char first[2 * CMD_DIFF_TEXT]; /* difference, in words; empty: none so far */
	int64_t first_a, first_b;      /* its lines */
	char header[CMD_DIFF_TEXT];    /* fields that differ */
	int64_t header_fields;
	uint64_t pairs;       /* commands aligned */
	int64_t same;         /* of them, without any difference */
	int64_t same_outcome; /* of them, with the same outcome in both */
	struct diff_count counts[DIFF_KINDS];
	int64_t statuses[CMD_DIFF_STATUSES * CMD_DIFF_STATUSES]; /* A's, B's */
};

/* ------------------------------------------------------------------ diff_key.c */

/* What a record asks.  @named: the key of the step that a promote or an abandon names. */
struct diff_key diff_key_of(const struct quire_trace_record *record,
                            const struct diff_key *named);

/* Of the names of its prompt. */
struct diff_key diff_key_of_prefix(const struct quire_trace_prefix *prefix);

/* Of CMD_DIFF_RUN commands in a row. */
struct diff_key diff_key_of_run(const struct diff_key *keys);

static inline bool diff_key_same(const struct diff_key *a, const struct diff_key *b)
{
	return a->low == b->low && a->high == b->high;
}

/* ------------------------------------------------------------------ diff_side.c */

/* What answers int answers CMD_DONE, or CMD_BAD: told. */

int diff_side_open(struct diff_side *side, const char *name);
void diff_side_close(struct diff_side *side);

/* Have @n commands in the window, fewer where the trace ends. */
int diff_side_fill(struct diff_side *side, uint64_t n);

static inline uint64_t diff_side_count(const struct diff_side *side)
{
	return side->tail - side->head;
}

/* The i-th command in the window. */
static inline struct diff_item *diff_side_at(const struct diff_side *side, uint64_t i)
{
	return &side->window[(side->head + i) % CMD_DIFF_WINDOW];
}

/* Done with the first command of the window. */
void diff_side_drop(struct diff_side *side);

/* The line of the first command of the window, or the one behind the last. */
int64_t diff_side_line(const struct diff_side *side);

/* The step of a number; NULL: forgotten. */
struct diff_step *diff_side_step(struct diff_side *side, uint64_t number);

/* ------------------------------------------------------------------ diff_align.c */

/* How many commands of each window to pass over so that the two go on alike; all of both
 * where they do not. */
void diff_align(const struct diff_side *a, const struct diff_side *b, uint64_t *skip_a,
                uint64_t *skip_b);

/* ------------------------------------------------------------------ diff_tell.c */

/* Tell the first difference, once: both places and @what. */
__attribute__((format(printf, 4, 5))) void diff_tell(struct cmd_diff *diff,
                                                     int64_t line_a, int64_t line_b,
                                                     const char *format, ...);

/* The commands in hand ask different things: both of them, or where they part. */
struct diff_parting {
	char a[CMD_DIFF_TEXT];
	char b[CMD_DIFF_TEXT];
	char both[CMD_DIFF_TEXT]; /* empty: not of one kind */
};
void diff_describe(const struct cmd_diff *diff, struct diff_parting *parting);

/* The commands in hand were aligned and differ in @what. */
void diff_tell_pair(struct cmd_diff *diff, enum diff_what what);

/* ------------------------------------------------------------------ diff_report.c */

int diff_report(struct cmd_diff *diff);

#endif
