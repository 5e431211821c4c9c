/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_RUNTIME_LIMITS_H
#define QUIRE_RUNTIME_LIMITS_H
/*
 * Every limit of the library, with its reason and who refuses what exceeds it.  Limits
 * that a user may lower or raise at create are fields of struct quire_runtime_config;
 * these are their outermost bounds.
 */

/* Pages of one pool.  25 bits hold a count of 2^24 in the FIFO's state word.
 * Refused by quire_pool_create. */
#define QUIRE_PAGES_MAX (1 << 24)

/* Tokens of one page.  Refused by quire_cache_create, the trace reader, the runtime. */
#define QUIRE_PAGE_SIZE_MAX (1 << 20)

/* Tokens of one stream, released ones included: positions are int32.
 * Refused by admit (LIMIT). */
#define QUIRE_SEQ_TOKENS_MAX 0x7fffffff

/* Requests open at once: their streams' page lists have address space from the start.
 * Refused by the runtime's create, the trace reader. */
#define QUIRE_REQUESTS_MAX (1 << 20)

/* Plan slots in the ring.  Deeper rings only add latency.  Refused by the runtime's
 * create. */
#define QUIRE_DEPTH_MAX 64

/* Segments of a step.  Refused by admit (LIMIT) and the trace reader. */
#define QUIRE_ROWS_MAX (1 << 16)

/* Tokens of a table, padding included.  Refused by admit (LIMIT) and the trace reader. */
#define QUIRE_TOKENS_MAX (1 << 24)

/* Tables (labels and combined labels) of one step: each has its own fixed place in a
 * slot. Refused by admit (LIMIT). */
#define QUIRE_TABLES_MAX 16

/* Distinct labels that one runtime ever sees, in refused commands too.  Refused by submit
 * (LIMIT). */
#define QUIRE_LABELS_MAX 64

/* Pairs of one fork list: a label is a target once at most.  Refused at the call
 * (INVALID). */
#define QUIRE_FORKS_MAX QUIRE_LABELS_MAX

/* Speculative steps whose fate is open, of one runtime.  Refused by its create. */
#define QUIRE_SPECULATIVE_MAX 1024

/* Entries of a step's built-in work list.  Refused by submit (LIMIT). */
#define QUIRE_WORK_MAX 64

/* Bytes of a slot that the engine fills itself: more would make the upload the step.
 * Refused by quire_slot_layout_init. */
#define QUIRE_USER_BYTES_MAX (1 << 30)

/* Bytes of one line of a plan trace: what a step of QUIRE_ROWS_MAX segments may need.
 * Of a request trace, too, whose longest are sessions: some MB.  Refused by the readers. */
#define QUIRE_TRACE_LINE_MAX (16 << 20)

/* A deadline (CLOCK_MONOTONIC, ns) that never comes. */
#define QUIRE_NO_DEADLINE 0x7fffffffffffffff

#endif
