/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_PLANS_IMPORT_H
#define QUIRE_PLANS_IMPORT_H
/*
 * Import: a request trace becomes a plan trace under a continuous-batching policy.
 *
 * The policy, step by step, until every request is done:
 *   1. A request whose input + output tokens can never fit (more pages than the pool has
 *   beside
 *      the sink, or more tokens than a stream may have) is refused and counted, as is one
 *      with no tokens at all.
 *   2. Waiting requests are opened in arrival order while the one at the head fits: fewer
 *   than
 *      rows_max and than requests_max are running, and the pages that all running
 *      requests may ever need stay within the pool.  So no step is ever short of pages,
 *      and nobody is preempted.  Arrival times give the order only: the engine is always
 *      busy.  A request's id is its row in the request trace, from 0.
 *   3. A step takes at most tokens_max tokens: first one decode token of every running
 *   request
 *      whose prompt is done, then prompts in chunks, both in the order in which requests
 *      were opened.  Each request is one segment, label "main".
 *   4. A request whose output tokens are all written is reset (its pages go back) and
 *   closed,
 *      behind its last step.
 * A request writes input + output tokens: `output` decode steps follow its prompt.
 */
#include <quire/plans/requests.h>
#include <quire/plans/trace.h>
#include <quire/runtime/status.h>

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct quire_import_summary {
	int64_t requests; /* in the request trace */
	int64_t refused;  /* of them */
	int64_t steps;
	int64_t tokens;      /* written by all steps */
	int64_t pages_taken; /* by all steps */
	int64_t pages_peak;  /* most pages in use at once, the sink not counted */
};

/*
 * quire_import_source - fill header->source: from which format, under which policy
 * @requests: borrowed; its format
 * @header:  its source is filled; the other fields stay
 */
QUIRE_API void quire_import_source(const struct quire_requests *requests,
                                   struct quire_trace_header *header);

/*
 * quire_import_requests - write the plan trace of a request trace
 * @requests: borrowed; tokens of a row are 0..QUIRE_SEQ_TOKENS_MAX
 * @header:  borrowed; the header of the trace: its page_size, num_pages, sink, rows_max,
 *           tokens_max and seq_tokens_max are the policy's budgets
 * @writer:  borrowed; created with the same header, neither committed nor discarded here
 * @progress: called now and then with the requests done so far; NULL allowed
 * @summary_out: filled
 * @refusal_out: filled on refusal {what}, lent as plans/trace.h says; NULL allowed
 * Returns:  QUIRE_OK; QUIRE_INVALID: a budget that lets no step run (tokens_max below
 *           rows_max), a row out of range; QUIRE_IO; QUIRE_NO_MEMORY.  After a refusal
 *           discard the writer.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status quire_import_requests(
	const struct quire_requests *requests, const struct quire_trace_header *header,
	struct quire_trace_writer *writer,
	void (*progress)(void *argument, int64_t done, int64_t of),
	void *progress_argument, struct quire_import_summary *summary_out,
	struct quire_refusal *refusal_out);

#ifdef __cplusplus
}
#endif
#endif
