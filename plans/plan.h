/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_PLANS_PLAN_H
#define QUIRE_PLANS_PLAN_H
/*
 * Plans: a step made executable, as index tables in a slot.
 *
 * Overview
 *   A step's rows are grouped into tables: combined labels first, in the order given
 *   (sources concatenated label by label, batch order inside), then the other labels in
 *   order of first appearance.  Each table is what one launch of an attention kernel
 *   needs (the tensors that FlashInfer's paged prefill and decode wrappers take).
 *
 * A slot
 *   One block of memory, twice: the host half (pinned), which the planner fills, and the
 *   device half with the same layout.  Every array has one fixed place per (slot, table
 *   index), so a captured CUDA graph can read it, and a later plan may patch what is
 *   there.  A struct quire_plan is a view over a slot: its pointers name the host half,
 *   and quire_plan_device() turns one into its twin.
 *
 * The tables.  Over the views i of one table, in order, with length_i after the span and
 * ps the page size (int32 unless said):
 *
 *   npages_i            = ceil(length_i / ps)
 *   qo_indptr[i+1]      = qo_indptr[i] + span_i, from 0
 *   kv_indptr[i+1]      = kv_indptr[i] + npages_i, from 0
 *   kv_indices          = concatenation of the first npages_i pages of each view
 *   kv_last_page_len[i] = length_i mod ps, or ps when that is 0 (also for length 0)
 *   last_token[i]       = qo_indptr[i+1] - 1, or -1 for span 0
 *   row_request[i]      (int64), row_label[i] (label id), row_tag[i] (uint64): the
 *   segment's token j of row i, g = length_i - span_i + j:
 *     slot_page = pages_i[g / ps], slot_offset = g mod ps, position = released_i + g
 *
 *   Padding to a captured shape (bucket_rows, bucket_tokens): rows repeat the last indptr
 *   with kv_last_page_len ps, last_token -1, request -1, label -1, tag 0; tokens are
 *   (page 0, offset 0, position 0): the sink.
 *
 *   block_table, when asked for: [bucket_rows, block_width], row i holds its npages_i
 *   pages, then zeros.  It is patched: a row that has the list of the slot's plan before
 *   gets what was appended since, and only that is uploaded, so its cost does not grow
 *   with the context.  kv_indices, whose entries all move, can be left out then.
 *
 * Source: the cycle documented for mstar.engine.resources.kv.cache; the tensors of
 * FlashInfer's paged wrappers.
 */
#include <quire/plans/step.h>
#include <quire/runtime/limits.h>
#include <quire/runtime/status.h>

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Capacities of a slot; every table has all of rows_max, tokens_max and pages_max. */
struct quire_slot_limits {
	int64_t tables_max;  /* 1..QUIRE_TABLES_MAX */
	int64_t rows_max;    /* 1..QUIRE_ROWS_MAX */
	int64_t tokens_max;  /* 1..QUIRE_TOKENS_MAX */
	int64_t pages_max;   /* of kv_indices, 1..2^31-1; 0: the block table has them */
	int64_t block_width; /* pages of one block table row; 0: no block table */
	int64_t copies_max;  /* copies of forks and first writes, 0..QUIRE_PAGES_MAX */
	int64_t work_max;    /* page copies of the built-in work, 0..QUIRE_WORK_MAX */
	int64_t user_bytes;  /* the engine's own bytes, uploaded with the tables */
};

/* Byte offsets of every array of a slot; each is a multiple of 64. */
struct quire_slot_layout {
	struct quire_slot_limits limits;
	int64_t table_bytes; /* table t starts at t * table_bytes */
	int64_t qo_indptr;   /* offsets inside a table */
	int64_t kv_indptr;
	int64_t kv_indices;
	int64_t kv_last_page_len;
	int64_t last_token;
	int64_t slot_page;
	int64_t slot_offset;
	int64_t position;
	int64_t row_request;
	int64_t row_tag;
	int64_t row_label;
	int64_t block_table;
	int64_t copy_source; /* offsets in the slot, behind the tables */
	int64_t copy_target;
	int64_t copy_end;
	int64_t user;
	int64_t slot_bytes;
};

/* What a row of a block table holds in both halves of its slot, and what of it the newest
 * plan there has changed: entries [first, end). */
struct quire_block_row {
	uint64_t list; /* 0: rubbish */
	int32_t pages; /* behind them it is zeros */
	int32_t first;
	int32_t end;
};

struct quire_table {
	int32_t name; /* label id of the label or combined name */
	int32_t rows; /* live rows, tokens and pages ... */
	int32_t tokens;
	int32_t pages;
	int32_t bucket_rows; /* ... and with padding (without a bucket: the same) */
	int32_t bucket_tokens;
	int32_t *qo_indptr;                 /* [bucket_rows + 1] */
	int32_t *kv_indptr;                 /* [bucket_rows + 1] */
	int32_t *kv_indices;                /* [pages] or NULL */
	int32_t *kv_last_page_len;          /* [bucket_rows] */
	int32_t *last_token;                /* [bucket_rows] */
	int32_t *slot_page;                 /* [bucket_tokens] */
	int32_t *slot_offset;               /* [bucket_tokens] */
	int32_t *position;                  /* [bucket_tokens] */
	int64_t *row_request;               /* [bucket_rows] */
	uint64_t *row_tag;                  /* [bucket_rows] */
	int32_t *row_label;                 /* [bucket_rows] */
	int32_t *block_table;               /* [bucket_rows, block_width] or NULL */
	struct quire_block_row *block_rows; /* [rows_max]; NULL: no block table */
};

struct quire_plan {
	uint64_t ticket;
	uint64_t step; /* steps planned so far, this one included: 1, 2, ... */
	int32_t page_size;
	int32_t num_tables;
	int32_t block_width;
	/* Copies of tokens [0, end) of one page onto another, every layer.  In this
	 * order: those of pre-forks and first writes (one batch, before the step's work),
	 * those of post-forks (one batch, behind it), whole pages of the built-in
	 * work. */
	int32_t num_pre_copies;
	int32_t num_post_copies;
	int32_t num_work_copies;
	int32_t *copy_source;
	int32_t *copy_target;
	int32_t *copy_end;
	void *user; /* user_bytes of the host half, for the on_plan callback */
	int64_t user_bytes;
	char *host;                                   /* start of the host half */
	char *device;                                 /* start of the device half */
	const char (*label_names)[QUIRE_LABEL_BYTES]; /* by label id; lent */
	struct quire_table tables[QUIRE_TABLES_MAX];
	/* The pages that the step took, in take order; during on_plan only. */
	const int32_t *taken;
	int32_t num_taken;
};

/* One row before it is in a table: the stream as this step leaves it (before commit). */
struct quire_view {
	uint64_t request;
	uint64_t tag;
	int32_t label; /* label id, 0..QUIRE_LABELS_MAX-1 */
	int32_t span;
	int32_t length;       /* live tokens after the span */
	int32_t released;     /* tokens released from the front */
	const int32_t *pages; /* at least ceil(length / page_size) */
	/* Names the list: of two views with the same name the shorter one's pages are the
	 * first ones of the longer one's.  0: it has none. */
	uint64_t list;
};

/* Which labels form which table. */
struct quire_grouping {
	int32_t num_tables;
	int32_t num_members[QUIRE_TABLES_MAX];
	int32_t name[QUIRE_TABLES_MAX];    /* label id */
	int8_t table_of[QUIRE_LABELS_MAX]; /* label id -> table, -1: not in this step */
	uint8_t members[QUIRE_TABLES_MAX][QUIRE_LABELS_MAX]; /* label ids, in row order */
};

/* A combined label by ids. */
struct quire_combined_ids {
	int32_t name;
	int32_t num_labels;
	int32_t labels[QUIRE_LABELS_MAX];
};

/* The pages of a row, on the host half: kv_indptr says how many. */
static inline const int32_t *quire_row_pages(const struct quire_plan *plan,
                                             const struct quire_table *table, int32_t row)
{
	if (table->kv_indices != NULL)
		return table->kv_indices + table->kv_indptr[row];
	return table->block_table + (int64_t)row * plan->block_width;
}

/* The host pointer's twin in the device half. */
static inline void *quire_plan_device(const struct quire_plan *plan, const void *host)
{
	return plan->device + ((const char *)host - plan->host);
}

/*
 * quire_slot_layout_init - where every array of a slot lies
 * @limits:  borrowed
 * Returns:  QUIRE_OK; QUIRE_INVALID {what: the field, got, expected}.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status quire_slot_layout_init(
	const struct quire_slot_limits *limits, struct quire_slot_layout *layout_out,
	struct quire_refusal *refusal_out);

/*
 * quire_plan_bind - a plan as a view over a slot: all pointers set, no table yet
 * @host, @device: kept; slot_bytes each, whatever they hold
 * @block_rows: kept; [tables_max * rows_max], filled; NULL without a block table
 */
QUIRE_API void quire_plan_bind(struct quire_plan *plan,
                               const struct quire_slot_layout *layout, char *host,
                               char *device, struct quire_block_row *block_rows);

/*
 * quire_plan_forget - the plan will not be uploaded: its slot's device half has other
 * block tables than the host half, and the next plan there writes its rows anew
 */
QUIRE_API void quire_plan_forget(struct quire_plan *plan);

/*
 * quire_grouping_init - which tables a step has
 * @labels:  borrowed; label id of each segment, in batch order
 * @combined: borrowed; ids
 * @tables_max: tables that a slot holds
 * Returns:  QUIRE_OK; QUIRE_INVALID {what "combined: ...", index}: an empty list, a label
 *           without a segment or in two lists, a name that is also a label outside its
 *           list, or a name twice; QUIRE_LIMIT {what "tables_max"}.
 * Cost:     O(segments + labels).
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status quire_grouping_init(
	struct quire_grouping *grouping, const int32_t *labels, int32_t num_segments,
	const struct quire_combined_ids *combined, int32_t num_combined,
	int32_t tables_max, struct quire_refusal *refusal_out);

/*
 * quire_plan_build - fill a bound plan's tables; pure arithmetic
 * @plan:    bound; ticket, step, label_names are the caller's
 * @views:   borrowed, in batch order; counts within the slot's limits (the caller
 *           checked)
 * @bucket_rows, @bucket_tokens: captured shape, both 0 for none; not less than any table
 *           needs
 * @row_of_view: filled, [num_views]: each view's row in its table; NULL allowed
 * Cost:     O(rows + tokens + pages); no allocation.
 */
QUIRE_API void quire_plan_build(struct quire_plan *plan,
                                const struct quire_grouping *grouping,
                                const struct quire_view *views, int32_t num_views,
                                int32_t page_size, int32_t bucket_rows,
                                int32_t bucket_tokens, int32_t *row_of_view);

/* Bytes [offset, offset + bytes) of a slot. */
struct quire_slot_range {
	int64_t offset;
	int64_t bytes;
};

/* Upper bound of quire_plan_ranges: 11 arrays a table, three copy lists, user bytes. */
#define QUIRE_PLAN_RANGES_MAX (QUIRE_TABLES_MAX * 11 + 4)

/*
 * quire_plan_ranges - what an upload has to copy: the used parts of the host half, block
 * tables left out
 * @ranges:  filled, room for QUIRE_PLAN_RANGES_MAX; empty ranges are left out
 * Returns:  their number.
 */
QUIRE_API int32_t quire_plan_ranges(const struct quire_plan *plan,
                                    struct quire_slot_range *ranges);

/* How far quire_plan_patches has come; {0} at the start. */
struct quire_patch_cursor {
	int32_t table;
	int32_t row;
};

/*
 * quire_plan_patches - what else: the parts of block table rows that the plan has changed
 * @cursor:  where to go on, moved
 * @ranges:  filled, at most @max of them
 * Returns:  their number; 0: there are no more.
 */
QUIRE_API int32_t quire_plan_patches(const struct quire_plan *plan,
                                     struct quire_patch_cursor *cursor,
                                     struct quire_slot_range *ranges, int32_t max);

/*
 * quire_plan_digest - XXH3-64 of the plan's tables, as docs/trace-format.md defines it
 * Cost:     O(rows + tokens + pages); no allocation.
 */
QUIRE_API uint64_t quire_plan_digest(const struct quire_plan *plan);

/*
 * quire_run_digest_add - the digest of a run, one command later (docs/trace-format.md)
 * @run:     the run so far, 0 at its start
 * @detail:  pages_short of NO_PAGES, got of STALE, otherwise 0
 * @plan_digest: of a submit with status OK, otherwise 0
 */
QUIRE_API uint64_t quire_run_digest_add(uint64_t run, enum quire_status status,
                                        int64_t detail, uint64_t plan_digest);

#ifdef __cplusplus
}
#endif
#endif
