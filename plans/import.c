/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <quire/plans/import.h>

#include "plans/fault_impl.h"

#include <quire/runtime/assert.h>
#include <quire/runtime/limits.h>
#include <quire/runtime/refuse_impl.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* A request that was opened and is not done. */
struct opened {
	uint64_t request;
	int64_t tokens;        /* prompt and output */
	int64_t written;       /* of them, in its stream */
	int64_t prefill;       /* of them, to write before it generates one (more) */
	int64_t pages;         /* that its stream has */
	int64_t prefill_pages; /* of `prefill` tokens */
	int64_t span;          /* tokens of the step that is being made */
};

struct import {
	const struct quire_import_input *input;
	const struct quire_trace_header *header;
	struct quire_trace_writer *writer;
	struct quire_refusal *refusal_out;
	int64_t capacity; /* pages beside the sink */
	int64_t used;     /* pages that the running requests have */
	/* The one that waits behind all that are opened, when `has_row`. */
	struct quire_request_row row;
	uint64_t row_request;
	bool has_row;
	bool at_end; /* there are no more rows */
	/* In the order in which they were opened; the first num_running run, the others
	 * were preempted and are the head of the line. */
	int64_t opened_max;
	int64_t num_opened;
	int64_t num_running;
	struct opened *opened;
	struct quire_segment *segments;
	struct quire_import_summary summary;
};

void quire_import_source(const char *format, struct quire_trace_header *header)
{
	snprintf(header->source, sizeof(header->source),
	         "%s requests: continuous batching in arrival order, decode first, "
	         "prompts in chunks, the newest preempted and recomputed",
	         format);
}

static int64_t pages_of(const struct import *import, int64_t tokens)
{
	return (tokens + import->header->page_size - 1) / import->header->page_size;
}

static enum quire_status put_command(struct import *import, enum quire_command_kind kind,
                                     uint64_t request)
{
	struct quire_trace_record record = {
		.command = {.kind = kind, .request = request, .label = QUIRE_LABEL_MAIN},
	};

	return quire_trace_write(import->writer, &record, import->refusal_out);
}

static enum quire_status check_row(const struct import *import)
{
	const struct quire_request_row *row = &import->row;

	if (row->input_tokens >= 0 && row->input_tokens <= QUIRE_SEQ_TOKENS_MAX &&
	    row->output_tokens >= 0 && row->output_tokens <= QUIRE_SEQ_TOKENS_MAX)
		return QUIRE_OK;
	return quire_fault(import->refusal_out, QUIRE_INVALID, 0,
	                   "request %" PRIu64
	                   ": tokens must be 0..2147483647, got %" PRId64 " and %" PRId64,
	                   import->row_request, row->input_tokens, row->output_tokens);
}

static bool can_ever_fit(const struct import *import, int64_t tokens)
{
	return tokens > 0 && tokens <= import->header->seq_tokens_max &&
	       pages_of(import, tokens) <= import->capacity;
}

/* Have a row that waits, unless there are no more.  Those that never fit are passed over.
 */
static enum quire_status fetch_row(struct import *import)
{
	while (!import->has_row && !import->at_end) {
		const struct quire_request_row *row = &import->row;
		enum quire_status status = import->input->next(
			import->input->argument, &import->row, import->refusal_out);

		import->at_end = status == QUIRE_END;
		if (import->at_end)
			break;
		if (status != QUIRE_OK)
			return status;
		import->row_request = (uint64_t)import->summary.requests++;
		QUIRE_TRY(check_row(import));
		import->has_row =
			can_ever_fit(import, row->input_tokens + row->output_tokens);
		import->summary.refused += !import->has_row;
	}
	return QUIRE_OK;
}

/* Open the row that waits; it does not run yet. */
static enum quire_status open_row(struct import *import)
{
	const struct quire_request_row *row = &import->row;
	struct quire_trace_record record = {
		.command = {.kind = QUIRE_COMMAND_OPEN, .request = import->row_request},
		.prefix = row->prefix,
	};

	import->opened[import->num_opened++] = (struct opened){
		.request = import->row_request,
		.tokens = row->input_tokens + row->output_tokens,
		.prefill = row->input_tokens,
		.prefill_pages = pages_of(import, row->input_tokens),
	};
	import->has_row = false;
	return quire_trace_write(import->writer, &record, import->refusal_out);
}

/* Pages of @prefill tokens and of the one generated after them, if there is one. */
static int64_t pages_to_start(const struct import *import, int64_t prefill,
                              int64_t tokens)
{
	return pages_of(import, prefill < tokens ? prefill + 1 : tokens);
}

/* Pages that the running requests have, or come to have by their prompts. */
static int64_t pages_promised(const struct import *import)
{
	int64_t pages = 0;

	for (int64_t i = 0; i < import->num_running; i++) {
		const struct opened *opened = &import->opened[i];

		pages += opened->pages > opened->prefill_pages ? opened->pages
		                                               : opened->prefill_pages;
	}
	return pages;
}

/* Let those at the head of the line run while they fit: preempted ones, then rows. */
static enum quire_status start_waiting(struct import *import)
{
	int64_t promised = pages_promised(import);

	while (import->num_running < import->opened_max) {
		const struct opened *head = &import->opened[import->num_running];
		const struct quire_request_row *row = &import->row;
		bool preempted = import->num_running < import->num_opened;
		int64_t pages;

		if (!preempted)
			QUIRE_TRY(fetch_row(import));
		if (!preempted && !import->has_row)
			break;
		pages = preempted
		                ? pages_to_start(import, head->prefill, head->tokens)
		                : pages_to_start(import, row->input_tokens,
		                                 row->input_tokens + row->output_tokens);
		if (promised + pages > import->capacity)
			break;
		if (!preempted)
			QUIRE_TRY(open_row(import));
		promised += head->prefill_pages;
		import->num_running++;
	}
	return QUIRE_OK;
}

/* One more segment of the step; answers the pages that it takes. */
static int64_t add_segment(struct import *import, struct quire_step *step,
                           struct opened *opened, int64_t span)
{
	import->segments[step->num_segments++] = (struct quire_segment){
		.request = opened->request,
		.label = QUIRE_LABEL_MAIN,
		.span = (int32_t)span,
		.at = (int32_t)opened->written,
	};
	opened->span = span;
	return pages_of(import, opened->written + span) - opened->pages;
}

/* Make a step: decode tokens first, then prompts with what is left of the budget.
 * Answers the pages that it takes. */
static int64_t make_step(struct import *import, struct quire_step *step)
{
	int64_t pages = 0, budget;

	*step = (struct quire_step){.segments = import->segments};
	for (int64_t i = 0; i < import->num_running; i++) {
		struct opened *opened = &import->opened[i];

		opened->span = 0;
		if (opened->written >= opened->prefill)
			pages += add_segment(import, step, opened, 1);
	}
	budget = import->header->tokens_max - step->num_segments;
	for (int64_t i = 0; i < import->num_running && budget > 0; i++) {
		struct opened *opened = &import->opened[i];
		int64_t span = opened->prefill - opened->written;

		if (span <= 0)
			continue;
		span = span < budget ? span : budget;
		pages += add_segment(import, step, opened, span);
		budget -= span;
	}
	return pages;
}

/* Take the newest running request's pages; it goes to the head of the line. */
static enum quire_status preempt_newest(struct import *import)
{
	struct opened *newest = &import->opened[--import->num_running];

	import->summary.preemptions++;
	import->summary.tokens_recomputed += newest->written;
	import->used -= newest->pages;
	if (newest->prefill < newest->written) {
		newest->prefill = newest->written;
		newest->prefill_pages = newest->pages;
	}
	newest->written = 0;
	newest->pages = 0;
	return put_command(import, QUIRE_COMMAND_RESET, newest->request);
}

/* One step, with as many running requests as have pages for it. */
static enum quire_status put_step(struct import *import)
{
	struct quire_step step;
	struct quire_trace_record record = {
		.command = {.kind = QUIRE_COMMAND_SUBMIT, .step = &step},
	};
	int64_t pages = make_step(import, &step);

	while (import->used + pages > import->capacity) {
		QUIRE_ASSERT(import->num_running > 1);
		QUIRE_TRY(preempt_newest(import));
		pages = make_step(import, &step);
	}
	QUIRE_ASSERT(step.num_segments > 0);
	for (int64_t i = 0; i < import->num_running; i++) {
		struct opened *opened = &import->opened[i];

		opened->written += opened->span;
		opened->pages = pages_of(import, opened->written);
		import->summary.tokens += opened->span;
	}
	import->used += pages;
	import->summary.pages_taken += pages;
	if (import->used > import->summary.pages_peak)
		import->summary.pages_peak = import->used;
	import->summary.steps++;
	return quire_trace_write(import->writer, &record, import->refusal_out);
}

/* Reset and close what is written to its end; the others keep their order. */
static enum quire_status close_done(struct import *import)
{
	int64_t kept = 0, running = 0;

	for (int64_t i = 0; i < import->num_opened; i++) {
		struct opened opened = import->opened[i];

		if (opened.written < opened.tokens) {
			running += i < import->num_running;
			import->opened[kept++] = opened;
			continue;
		}
		QUIRE_TRY(put_command(import, QUIRE_COMMAND_RESET, opened.request));
		QUIRE_TRY(put_command(import, QUIRE_COMMAND_CLOSE, opened.request));
		import->used -= opened.pages;
	}
	import->num_opened = kept;
	import->num_running = running;
	return QUIRE_OK;
}

static enum quire_status run_policy(struct import *import)
{
	QUIRE_TRY(start_waiting(import));
	while (import->num_running > 0) {
		QUIRE_TRY(put_step(import));
		QUIRE_TRY(close_done(import));
		QUIRE_TRY(start_waiting(import));
	}
	QUIRE_ASSERT(import->num_opened == 0 && import->used == 0 && import->at_end);
	return QUIRE_OK;
}

enum quire_status quire_import_requests(const struct quire_import_input *input,
                                        const struct quire_trace_header *header,
                                        struct quire_trace_writer *writer,
                                        struct quire_import_summary *summary_out,
                                        struct quire_refusal *refusal_out)
{
	struct import import = {
		.input = input,
		.header = header,
		.writer = writer,
		.refusal_out = refusal_out,
		.capacity = header->num_pages - header->sink,
		.opened_max = header->rows_max < header->requests_max
	                              ? header->rows_max
	                              : header->requests_max,
	};
	enum quire_status status;

	if (header->tokens_max < header->rows_max)
		return quire_fault(refusal_out, QUIRE_INVALID, 0,
		                   "tokens_max must not be below rows_max %" PRId64
		                   ", got %" PRId64,
		                   header->rows_max, header->tokens_max);
	import.opened = calloc((size_t)import.opened_max, sizeof(*import.opened));
	import.segments = calloc((size_t)import.opened_max, sizeof(*import.segments));
	if (import.opened == NULL || import.segments == NULL)
		status = quire_fault(refusal_out, QUIRE_NO_MEMORY, 0,
		                     "no memory for %" PRId64 " rows", import.opened_max);
	else
		status = run_policy(&import);
	free(import.segments);
	free(import.opened);
	if (status == QUIRE_OK)
		*summary_out = import.summary;
	return status;
}
