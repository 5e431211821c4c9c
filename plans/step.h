/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_PLANS_STEP_H
#define QUIRE_PLANS_STEP_H
/*
 * Commands and steps as data: what a client asks a runtime to do.
 *
 * Words: a *stream* is one (request, label).  A *segment* adds `span` tokens to one
 * stream, whose author expects it to be `at` tokens long; span 0 reads it without
 * extending it.  A *step* is an ordered list of segments: one batch.  A *fork* gives a
 * stream another's content.  A *speculative* step is planned, and held until a later
 * command promotes it (it takes its place) or abandons it (it never was).
 */
#include <quire/runtime/limits.h>
#include <quire/runtime/status.h>

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct quire_dstream;
struct quire_event;
struct quire_outcome;
struct quire_plan;

/* `at` of a segment that takes the stream at any length. */
#define QUIRE_AT_ANY (-1)

/* The label that opening a request creates; also meant by a NULL label. */
#define QUIRE_LABEL_MAIN "main"

/* Request ids are 0..2^63-1: row_request tables are int64, padding rows hold -1. */
#define QUIRE_REQUEST_MAX 0x7fffffffffffffffull

struct quire_segment {
	uint64_t request;
	const char *label; /* NULL: "main" */
	int32_t span;      /* tokens, 0 or more */
	int32_t at;        /* tokens, or QUIRE_AT_ANY */
	uint64_t tag;      /* the user's own word, passed through to row_tag */
};

/* Several labels planned as one table under a new name: sources concatenated label by
 * label. */
struct quire_combined {
	const char *name;
	const char *const *labels;
	int32_t num_labels;
};

/*
 * One pair of a fork list, applied for every request that has a segment in the step, in
 * the order in which requests first appear there: the target gets the source's content.
 * Full pages are shared, the partial last page is copied (QUIRE_STEP_COPY_FORKS: all are
 * copied).  Pairs apply in list order, each seeing the earlier ones.  A label is a target
 * once per list at most, and never its own source.  A source that a request does not have
 * is passed over; a target that it does not have is made.
 */
struct quire_fork {
	const char *source; /* NULL: "main" */
	const char *target; /* NULL: "main" */
};

enum quire_work_kind {
	QUIRE_WORK_WRITE, /* rows of K and V into the new tokens of one table */
	QUIRE_WORK_READ,  /* tokens of one segment's stream into memory */
	/* One whole page onto another that no other stream owns, every layer. */
	QUIRE_WORK_COPY,
};

/*
 * One entry of a step's built-in work, run in list order on the compute stream.  Memory
 * is device memory (on cpu: any), kept until the step has retired.
 */
struct quire_work {
	enum quire_work_kind kind;
	int32_t layer; /* WRITE, READ */
	union {
		struct {
			/* Index in the plan's tables; padding rows are not written. */
			int32_t table;
			int32_t dtype; /* enum quire_dtype of k and v */
			/* [tokens, num_kv_heads, head_dim] in the table's order, which
			 * is not the segments' where labels are combined (plan.h); under
			 * MLA v is NULL */
			const void *k;
			const void *v;
		} write;
		struct {
			int32_t segment; /* index in the step's segments */
			int32_t first;   /* first live token to read */
			int32_t count;   /* first + count <= length after the span */
			/* [count, num_kv, num_kv_heads, head_dim] of the cache's dtype */
			void *out;
		} read;
		struct {
			int32_t source_segment;
			int32_t source_page; /* which page of the stream, from 0 */
			int32_t target_segment;
			int32_t target_page;
		} copy;
	};
};

/*
 * An engine's own work in place of the built-in list; a step may also have neither.
 * @argument: run_argument of the step
 * @plan:    lent until the function returns, with its host half: a later plan is built
 *           there
 * @compute: the compute stream.  It waits for the plan's upload already: whatever is
 *           queued here may name the device half, which stays until the step has retired.
 * Returns:  QUIRE_OK; anything else fails the runtime with QUIRE_CALLBACK.
 * Threads:  the executor's, in plan order, while the plan is issued; it may not wait
 *           (WOULD_BLOCK).  What it queues on other device streams and touches the plan's
 *           pages or tables must be joined to @compute before it returns.
 *
 * Pointers in plan->tables name the host half; kernels take their twins:
 *
 *   const struct quire_table *t = &plan->tables[0];
 *   const struct quire_slots slots = {
 *           .page = quire_plan_device(plan, t->slot_page),
 *           .offset = quire_plan_device(plan, t->slot_offset),
 *           .n = t->tokens};
 *   return quire_cache_write_tokens(cache, compute, layer, &slots, k, v, QUIRE_F32, NULL,
 *                                   NULL);
 */
typedef enum quire_status (*quire_step_function)(void *argument,
                                                 const struct quire_plan *plan,
                                                 struct quire_dstream *compute);

/*
 * A step's end, told once, whatever the end: the numbers tell of it already, its ticket
 * comes to RETIRED when the function has returned.  So who has waited for that may end
 * what @argument names.
 * @argument: done_argument of the step
 * @ticket:  of the step
 * @outcome: lent until the function returns; stage RETIRED
 * Threads:  the executor's when the step has run, in plan order; the planner's when it
 *           was refused, abandoned or cancelled.  It may not wait (WOULD_BLOCK).
 */
typedef void (*quire_done_function)(void *argument, uint64_t ticket,
                                    const struct quire_outcome *outcome);

/* Tokens are written but do not count: lengths stay, the pages taken stay on the
 * streams. */
#define QUIRE_STEP_NO_COMMIT (1u << 0)
/* Answer AGAIN where the step would have to wait for retiring pages, or for those in the
 * hands of a held step. */
#define QUIRE_STEP_NO_WAIT (1u << 1)
/* Forks copy every page; otherwise full pages are shared. */
#define QUIRE_STEP_COPY_FORKS (1u << 2)
/* Planned and held until promoted or abandoned. */
#define QUIRE_STEP_SPECULATIVE (1u << 3)
/* All of them. */
#define QUIRE_STEP_FLAGS                                                     \
	(QUIRE_STEP_NO_COMMIT | QUIRE_STEP_NO_WAIT | QUIRE_STEP_COPY_FORKS | \
	 QUIRE_STEP_SPECULATIVE)

struct quire_step {
	/* At least 1, a stream in one of them at most.  Inside a label theirs is the order
	 * of the rows (plan.h). */
	const struct quire_segment *segments;
	int32_t num_segments;
	int32_t num_combined;
	const struct quire_combined *combined;
	int32_t num_pre_forks;
	int32_t num_post_forks;
	const struct quire_fork *pre_forks;  /* before the step's writes and `at` */
	const struct quire_fork *post_forks; /* of what the spans that commit have left */
	int32_t bucket_tokens; /* captured shape: every table is padded to it; ... */
	int32_t bucket_rows;   /* ... both 0: no padding */
	uint32_t flags;        /* QUIRE_STEP_* */
	int32_t num_work;
	const struct quire_work *work; /* built-in work, or ... */
	quire_step_function run;       /* ... the engine's own; not both */
	void *run_argument;            /* kept until retired */
	/* What the compute stream waits for before it touches a page, and what it records
	 * behind the step's work; NULL: nothing.  Both kept until retired.  The former is
	 * recorded before the command is given and not again before the step is issued;
	 * the latter may be waited for once it is.  Both of the cache's device. */
	struct quire_event *wait_event;
	struct quire_event *record_event;
	quire_done_function done; /* NULL: not called */
	void *done_argument;      /* kept until it was called */
};

/*
 * What commands do, and what they may answer beside QUIRE_OK.  Each is decided at its
 * place in the order; a refusal changes nothing.
 *
 *   OPEN    a request with its label "main"; harmless when it is open.  LIMIT.
 *   CLOSE   gives up all labels, in creation order, and ends the request.  NO_REQUEST.
 *   RESET   drops a label's content: its length is 0.  Its pages are given up or, with
 *           keep_pages, kept where nobody else owns them.  NO_REQUEST, NO_LABEL.
 *   REWIND  takes the last `tokens` tokens of a label back.  Pages past the new length
 *           are kept where nobody else owns them.  NO_REQUEST, NO_LABEL; INVALID: more
 *           than there are.
 *   RELEASE_FRONT
 *           gives up whole pages from a label's front: tokens / page_size, but never the
 *           last page.  The length shrinks by so much; positions stay.  As REWIND.
 *   SUBMIT  one step, all or nothing: takes the pages that its forks and segments need,
 *           builds its tables, runs its work.  A segment with span > 0 makes a label that
 *           is not there.  The first page that a segment writes is copied to a new one
 *           when anybody else owns it.  Named is the first fault in this order: form
 *           (INVALID, LIMIT); requests (NO_REQUEST); pre-forks (LIMIT); segments one by
 *           one (NO_LABEL: span 0 and no such label, STALE, LIMIT); post-forks (LIMIT);
 *           tokens and bucket (LIMIT, INVALID); built-in work (INVALID); pages (NO_PAGES;
 *           AGAIN with QUIRE_STEP_NO_WAIT only); room in the slot (LIMIT).
 *   PROMOTE a speculative step takes its place for good, once the one below it has.
 *   ABANDON a speculative step, and all that rest on it, never were, planned or not,
 *           refused or not: their outcome is ABANDONED.
 *           Both are decided when they are given, and never wait: INVALID: `target` is no
 *           speculative step whose fate is open.
 *
 * A speculative step rests on the newest one before it whose fate is open (not promoted,
 * not abandoned, nor any below it abandoned), if nothing but speculative submits,
 * promotes and abandons came between.  It is planned as if that one had run.  Until its
 * fate is known its outcome is provisional; what rests on a refused step is ABANDONED.
 * All other commands behind a held step wait for its fate.
 */
enum quire_command_kind {
	QUIRE_COMMAND_OPEN,
	QUIRE_COMMAND_CLOSE,
	QUIRE_COMMAND_SUBMIT,
	QUIRE_COMMAND_RESET,
	QUIRE_COMMAND_REWIND,
	QUIRE_COMMAND_RELEASE_FRONT,
	QUIRE_COMMAND_PROMOTE,
	QUIRE_COMMAND_ABANDON,
};

struct quire_command {
	enum quire_command_kind kind;
	uint64_t request;   /* OPEN, CLOSE, RESET, REWIND, RELEASE_FRONT */
	const char *label;  /* RESET, REWIND, RELEASE_FRONT; NULL: "main" */
	int32_t keep_pages; /* RESET: not 0 to keep solely owned pages on the stream */
	int32_t tokens;     /* REWIND, RELEASE_FRONT: 0..length */
	uint64_t target;    /* PROMOTE, ABANDON: the ticket of a speculative step */
	const struct quire_step *step; /* SUBMIT */
};

#ifdef __cplusplus
}
#endif
#endif
