/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_PLANS_IMPORT_H
#define QUIRE_PLANS_IMPORT_H
/*
 * Import: a request trace becomes a plan trace under a continuous-batching policy, as
 * engines have it: prompts reserve their pages, what they generate does not, and where
 * pages run short the newest request gives way and is computed again later.
 *
 * The policy, until every request is done:
 *   1. A request whose input + output tokens can never fit (more pages than the pool has
 *      beside the sink, or more tokens than a stream may have) is refused and counted, as
 *      is one with no tokens at all.  A request's id is its row in the request trace,
 *      from 0, refused ones counted.  Its prompt's names are its open's prefix.
 *   2. Requests wait in the order in which they came; times give that order only: the
 *      engine is always busy.  Between two steps the one at the head is opened while it
 *      fits: fewer than rows_max and than requests_max are running, and the pages of its
 *      prompt and of its first generated token do not exceed what is left beside the
 *      running ones.  Of each of those count the pages that it has, or those that its
 *      prompt comes to, whichever is more.
 *   3. A step takes at most tokens_max tokens: first one decode token of every running
 *      request whose prompt is done, then prompts in chunks, both in the order in which
 *      requests were opened.  Each request is one segment, label "main".
 *   4. When a step would take more pages than are free, the newest running request is
 *      preempted, and the step made anew without it, until it fits: its stream is reset,
 *      so that its pages go back, and it waits, still open, at the head of the line.
 *      When it fits by rule 2, it runs again: what it had written, generated tokens
 *      too, counts as its prompt and is computed again in chunks; then it goes on.
 *   5. A request whose output tokens are all written is reset (its pages go back) and
 *      closed, behind its last step.
 * A request writes input + output tokens: `output` decode steps follow its prompt.
 *
 * No step is ever short of pages: one fits when what it takes is free by the count of
 * pages in use, which is the runtime's.  Everything ends: whoever is the oldest fits
 * alone, has its share of every step, and is never preempted.
 */
#include <quire/plans/requests.h>
#include <quire/plans/trace.h>
#include <quire/runtime/status.h>

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Where an import takes its requests from, one by one, as it has room for them. */
struct quire_import_input {
	/* The next request, in the order of arrival; what it points to is lent until the
	 * next call.  QUIRE_END: no more.  Anything else ends the import, which answers
	 * the same. */
	enum quire_status (*next)(void *argument, struct quire_request_row *row_out,
	                          struct quire_refusal *refusal_out);
	void *argument; /* kept until the import ends */
};

struct quire_import_summary {
	int64_t requests; /* in the request trace */
	int64_t refused;  /* of them */
	int64_t steps;
	int64_t tokens;            /* written by all steps, again or not */
	int64_t preemptions;       /* one request may be preempted several times */
	int64_t tokens_recomputed; /* written a second time or more often */
	int64_t pages_taken;       /* by all steps */
	int64_t pages_peak;        /* most pages in use at once, the sink not counted */
};

/*
 * quire_import_source - fill header->source: from which format, under which policy
 * @format:  borrowed; as quire_requests_format names it
 * @header:  its source is filled; the other fields stay
 */
QUIRE_API void quire_import_source(const char *format, struct quire_trace_header *header);

/*
 * quire_import_requests - write the plan trace of a request trace
 * @input:   borrowed
 * @header:  borrowed; the header of the trace: its page_size, num_pages, sink, rows_max,
 *           tokens_max, requests_max and seq_tokens_max are the policy's budgets
 * @writer:  borrowed; created with the same header, neither committed nor discarded here
 * @summary_out: filled; no step at all: there was no request that fits
 * @refusal_out: filled on refusal {what}, lent as plans/trace.h says; NULL allowed
 * Returns:  QUIRE_OK; QUIRE_INVALID: a budget that lets no step run (tokens_max below
 *           rows_max), a row out of range; QUIRE_IO; QUIRE_NO_MEMORY; what @input
 *           answered.  After a refusal discard the writer.
 * Cost:     O(running requests) per step; memory for rows_max requests, whatever the
 *           length of the trace.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status quire_import_requests(
	const struct quire_import_input *input, const struct quire_trace_header *header,
	struct quire_trace_writer *writer, struct quire_import_summary *summary_out,
	struct quire_refusal *refusal_out);

#ifdef __cplusplus
}
#endif
#endif
