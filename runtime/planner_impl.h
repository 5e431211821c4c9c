/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_RUNTIME_PLANNER_IMPL_H
#define QUIRE_RUNTIME_PLANNER_IMPL_H
/*
 * The planner's own state: the step in hand, the steps it holds, and what undoes them.
 */
#include "runtime/commands_impl.h"
#include "runtime/counter_impl.h"
#include "runtime/histogram_impl.h"
#include "runtime/registry_impl.h"

#include <quire/plans/plan.h>
#include <quire/runtime/limits.h>

#include <stdbool.h>
#include <stdint.h>

enum quire_planner_state {
	QUIRE_PLANNER_FETCH, /* no command in hand */
	QUIRE_PLANNER_PAGES, /* a step is admitted and waits for its pages */
	QUIRE_PLANNER_SLOT,  /* it has its pages and waits for a slot */
};

/* A segment of the step in hand; of the one before until it is admitted. */
struct quire_row {
	struct quire_request *request;
	struct quire_stream *stream; /* NULL until the step makes it */
	int32_t length;              /* before the span */
	int32_t need;                /* pages to take, the copy's included */
	bool first_write;            /* its first page has another owner: copied */
};

/*
 * How one stream was before a step changed it.  The notes of all steps that may be undone
 * lie in one ring, oldest step first; a stream's notes are chained.  What a step made of
 * a stream is in the next note of the chain, or in `now`.
 */
struct quire_note {
	struct quire_request *request;
	struct quire_stream *stream;
	struct quire_note *older;
	struct quire_stream_state before;
	uint64_t ticket;
	bool created; /* by this step */
};

/*
 * A planned step that has not taken its place.  Any number of speculative ones wait, each
 * resting on those before; any other step passes through at once.  What belongs to one
 * ends, in each of the rings, here, and begins where the one before ends.
 */
struct quire_held {
	uint64_t ticket;
	uint64_t step;
	uint64_t notes_end;  /* in planner.notes */
	uint64_t taken_end;  /* in planner.taken */
	uint64_t staged_end; /* in entries.pages */
	int32_t need;        /* pages taken */
	int32_t first_writes;
	uint64_t tokens; /* written */
};

/* A speculative step that was refused and whose fate has not been heard. */
struct quire_refused {
	uint64_t ticket;
	uint64_t base;
	enum quire_fate fate;   /* at the newest look */
	uint64_t drawn;         /* position of it */
	uint64_t fate_position; /* the same, once the step has ended; 0 before */
	quire_done_function done;
	void *done_argument;
};

/* What a table of the step in hand comes to. */
struct quire_table_size {
	int64_t rows;
	int64_t tokens;
	int64_t pages;
};

/* How many owners more a page has than the ledger says, at this point of a step being
 * admitted; of another ticket it means none. */
struct quire_more_owners {
	uint64_t ticket;
	int32_t more;
};

/* Streams met in one step's form check: an open-addressed table that a ticket empties. */
struct quire_met {
	uint64_t ticket;
	int32_t segment;
};

struct quire_planner {
	enum quire_planner_state state;
	struct quire_command_cell *current;
	char *memory; /* all the arrays below */
	int64_t bytes;
	struct quire_row *rows;       /* [rows_max] */
	struct quire_request **batch; /* [rows_max]: requests, by first appearance; of a
	                                * step with forks */
	struct quire_request **made;  /* [streams of a step]: got a stream in the draft */
	struct quire_view *views;     /* [rows_max] */
	int32_t *labels;              /* [rows_max] */
	int32_t *row_of_view;         /* [rows_max] */
	struct quire_met *met;        /* [met_mask + 1] */
	uint64_t met_mask;
	struct quire_grouping grouping;
	int32_t num_batch;
	int32_t num_made;
	bool sharing; /* a page may have more than one owner */
	struct quire_table_size sizes[QUIRE_TABLES_MAX]; /* of the step in hand */
	int64_t widest;                                  /* pages of its longest row */
	int64_t need;                                    /* pages of the step in hand */
	int64_t fits;           /* pages that nobody owns, when it was admitted */
	uint64_t short_request; /* whose page is the first that does not fit */
	int32_t short_label;
	struct quire_more_owners *more; /* [num_pages] */
	int32_t *pages; /* [num_pages]: pages of the step in hand, in take order */
	int32_t given;  /* of them, while it is carried out */
	int32_t first_writes_in_hand; /* of the step carried out newest */
	int32_t *copy_of; /* [num_pages]: where in the plan's copies a page is a target */
	int32_t *list;    /* [num_pages]: scratch, a list being made */
	int32_t *freed;   /* [num_pages]: scratch of a release */
	int32_t *stash;   /* [num_pages]: the next one to take is the last */
	int32_t num_stash;
	struct quire_note *notes; /* [notes_mask + 1] */
	uint64_t notes_mask;
	uint64_t notes_first; /* of the oldest held step */
	uint64_t notes_end;
	int32_t *taken; /* [taken_mask + 1]: pages that held steps took */
	uint64_t taken_mask;
	uint64_t taken_first;
	uint64_t taken_end;
	struct quire_held held[QUIRE_DEPTH_MAX]; /* oldest first */
	int32_t num_held;
	struct quire_refused *refused; /* [speculative_max] */
	int32_t num_refused;
	uint64_t step;   /* newest planned */
	bool inside;     /* in a poll: a check has to wait */
	bool planned;    /* this move planned a step */
	bool parked;     /* this move waits for a fate, and nothing else can end that */
	int64_t move_ns; /* when this move began */
	int64_t plan_ns; /* spent on the step in hand so far */
	int64_t wait_since_ns; /* 0: not waiting */
	quire_counter *wait_counter;
	int64_t owned_peak;
	struct quire_histogram plan_time;
	quire_counter commands, refusals, tokens, pages_taken, pages_peak, requests_open;
	quire_counter steps, steps_held, promoted, abandoned, copies, first_writes;
	quire_counter owned, stashed, busy_ns, page_wait_ns, slot_wait_ns, record_wait_ns;
};

#endif
