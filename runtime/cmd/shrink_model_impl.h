/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_RUNTIME_CMD_SHRINK_MODEL_IMPL_H
#define QUIRE_RUNTIME_CMD_SHRINK_MODEL_IMPL_H
/*
 * Cuts of a plan trace, and the logical model that keeps them valid.
 *
 *   shrink_learn.c   what the whole trace says
 *   shrink_cut.c     cuts
 *   shrink_fates.c   which speculative submits end how, in a cut
 *   shrink_model.c   how long streams are, what has to go with what is gone
 *   shrink_write.c   a cut as a trace
 *
 * The trace is in memory and never changes.  A *cut* says for each of its commands and
 * segments whether it is left, and how large it is.  A cut is *valid* when it speaks of
 * nothing that is gone, and every segment has the `at` that its stream has then.  What
 * was wrong with the whole trace stays wrong.
 */
#include "runtime/cmd/cmd_impl.h"
#include "runtime/cmd/lines_impl.h"

#include <stdbool.h>
#include <stdint.h>

/* What can be taken from a command that stays. */
enum shrink_part {
	SHRINK_PRE_FORKS = 1 << 0,
	SHRINK_POST_FORKS = 1 << 1,
	SHRINK_COMBINED = 1 << 2,
	SHRINK_BUCKET = 1 << 3,
	SHRINK_SPECULATIVE = 1 << 4,
	SHRINK_COMMIT = 1 << 5,
	SHRINK_NO_WAIT = 1 << 6,
	SHRINK_COPY = 1 << 7,
	SHRINK_KEEP = 1 << 8,
	SHRINK_PREFIX = 1 << 9,
	SHRINK_TIMES = 1 << 10,
	SHRINK_ID = 1 << 11, /* of a command that no other can speak of */
};
#define SHRINK_PARTS 12

#define SHRINK_NONE (-1)

/* A stream that the trace names. */
struct shrink_stream {
	uint64_t request;
	const char *label;
	int32_t of;   /* its request, in the list of requests */
	int32_t next; /* of the same request; SHRINK_NONE: no more */
	/* The state of a walk: */
	bool is_there;
	int32_t length;
	/* Of the first walk: the newest step that changed it, the length it had. */
	int64_t changed_by;
	int32_t length_before;
};

struct shrink_request {
	int32_t first; /* of its streams: "main" */
	bool is_open;  /* state of a walk */
	int64_t met;   /* number of the step that met it last */
};

/* What the whole trace says of a segment. */
struct shrink_segment {
	int64_t command;
	int32_t stream;
	int32_t stale; /* its `at` beyond the stream's length; 0: right, or any */
	bool had_request;
	bool had_label; /* behind pre-forks */
};

/* What the whole trace says of a command. */
struct shrink_command {
	const struct quire_trace_record *record;
	int64_t first_segment; /* of a submit */
	int32_t stream;        /* of what names a request: "main" where it has no label */
	/* Its request was open, and its stream there; the step that it names was open. */
	bool had;
	/* Refused for a reason that does not lie in the lengths: it has no effect. */
	bool is_refused;
	/* Recorded as refused by what is not in the trace: only with that outcome it has
	 * no effect in a replay. */
	bool is_outside;
	bool base_by_order; /* its base is what the order of the file comes to */
	int64_t base;       /* a command; SHRINK_NONE */
	int64_t target;     /* the command that it names; SHRINK_NONE: there is none */
};

/* What a cut leaves of a segment. */
struct shrink_cut_segment {
	bool is_gone;
	int32_t span;
	int32_t at; /* QUIRE_AT_ANY: stays so */
};

/* What a cut leaves of a command. */
struct shrink_cut_command {
	bool is_gone;
	uint32_t gone_parts;    /* enum shrink_part */
	uint64_t gone_forks[2]; /* pairs, by place: pre, post */
	uint32_t gone_combined; /* by place */
	int32_t tokens;         /* of a rewind or release_front */
	int64_t base;           /* a command; SHRINK_NONE */
};

struct shrink_cut {
	struct shrink_cut_command *commands;
	struct shrink_cut_segment *segments;
	int64_t num_pages;
	bool has_outcomes; /* verbatim: what was recorded holds only for all of it */
};

/* The fate of a speculative submit. */
enum shrink_fate {
	SHRINK_OPEN,
	SHRINK_PROMOTED,
	SHRINK_ABANDONED,
	SHRINK_LATE, /* abandoned before it came */
};

/* A speculative step whose fate is not needed yet. */
struct shrink_held {
	int64_t command;
	int64_t first_change;
};

/* What a stream was before a change. */
struct shrink_change {
	int32_t stream;
	int32_t length;
	bool is_there;
};

/* A trace with what is known of it, and the state of a walk over a cut. */
struct shrink_model {
	const struct cmd_lines *lines;
	struct shrink_command *commands; /* [lines->num] */
	struct shrink_segment *segments; /* of all steps */
	int64_t num_segments;
	int32_t segments_max; /* of one step */
	struct shrink_stream *streams;
	int32_t num_streams, streams_room;
	int64_t num_pieces; /* pairs of forks, combined labels */
	struct shrink_request *requests;
	int32_t num_requests, requests_room;
	uint32_t *index; /* places of streams and 1, hashed */
	uint32_t index_mask;
	bool is_first; /* the walk that finds out what the trace says */
	bool again;    /* the first walk has to be made once more */
	bool changed;  /* the walk took commands away */
	bool no_memory;
	uint8_t *fates;   /* [lines->num]: enum shrink_fate */
	bool *has_effect; /* [lines->num]: of a speculative submit */
	bool *ends_some;  /* [lines->num]: of an abandon: its step was open */
	int64_t *open;    /* submits whose fate is open, oldest first */
	int64_t num_open;
	struct shrink_held *held; /* oldest first */
	int64_t num_held;
	struct shrink_change *changes; /* of the held steps, and of the one in hand */
	int64_t num_changes, changes_room;
	int32_t *batch; /* [segments_max]: requests of the step in hand */
	int32_t num_batch;
	int64_t met; /* steps so far */
};

/* ------------------------------------------------------------------ shrink_learn.c */

/*
 * shrink_model_init - find out what a trace says
 * @model:   zeros; ended with shrink_model_end whatever this answers
 * @lines:   kept
 * Returns:  false: no memory.
 */
bool shrink_model_init(struct shrink_model *model, const struct cmd_lines *lines);
void shrink_model_end(struct shrink_model *model);

/* The stream of a label; NULL: the trace names none. */
struct shrink_stream *shrink_find(const struct shrink_model *model, uint64_t request,
                                  const char *label);

/* ------------------------------------------------------------------ shrink_cut.c */

static inline const struct quire_command *shrink_asked(const struct shrink_model *model,
                                                       int64_t command)
{
	return &model->commands[command].record->command;
}

/* A cut that leaves everything; false: no memory. */
bool shrink_cut_init(struct shrink_cut *cut, const struct shrink_model *model);
void shrink_cut_copy(struct shrink_cut *to, const struct shrink_cut *from,
                     const struct shrink_model *model);
void shrink_cut_end(struct shrink_cut *cut);

/* Is a part there to be taken from what a cut leaves of a command? */
bool shrink_has_part(const struct shrink_model *model, const struct shrink_cut *cut,
                     int64_t command, enum shrink_part part);

/* Does a cut leave it, and a speculative submit? */
bool shrink_is_speculative(const struct shrink_model *model, const struct shrink_cut *cut,
                           int64_t command);

/* Take a command away in a walk. */
void shrink_take_away(struct shrink_model *model, struct shrink_cut *cut,
                      int64_t command);

/* ------------------------------------------------------------------ shrink_fates.c */

/* Fates and bases of what a cut leaves: they follow from the order alone.  Takes promotes
 * and abandons of what is gone away. */
void shrink_find_fates(struct shrink_model *model, struct shrink_cut *cut);

/* ------------------------------------------------------------------ shrink_model.c */

/* Walk over a cut.  Takes away what speaks of something that is gone, and gives every
 * segment its `at`. */
void shrink_walk(struct shrink_model *model, struct shrink_cut *cut);

/* Walk until nothing has to be taken away any more: the cut is valid.  false: no
 * memory. */
bool shrink_settle(struct shrink_model *model, struct shrink_cut *cut);

/* ------------------------------------------------------------------ shrink_write.c */

/* Write what a cut leaves; the refusal is told of @name.  CMD_DONE; CMD_BAD: told. */
int shrink_write(const struct shrink_model *model, const struct shrink_cut *cut,
                 struct quire_trace_writer *writer, const char *name);

/* The header of a cut. */
struct quire_trace_header shrink_header(const struct shrink_model *model,
                                        const struct shrink_cut *cut);

#endif
