/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <quire/plans/import.h>

#include "plans/fault_impl.h"

#include <quire/runtime/assert.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Steps between two calls of progress. */
#define PROGRESS_STEPS 256

/* An opened request. */
struct running {
	uint64_t request;
	int64_t prompt;  /* tokens */
	int64_t tokens;  /* prompt and output */
	int64_t written; /* of them */
};

struct import {
	const struct quire_requests *requests;
	const struct quire_trace_header *header;
	struct quire_trace_writer *writer;
	struct quire_refusal *refusal_out;
	int64_t next;     /* row at the head of the waiting line */
	int64_t capacity; /* pages beside the sink */
	int64_t promised; /* pages that all running requests may ever need */
	int64_t used;     /* pages they have */
	int64_t running_max;
	int64_t num_running;
	struct running *running; /* in the order in which they were opened */
	struct quire_segment *segments;
	struct quire_import_summary summary;
};

void quire_import_source(const struct quire_requests *requests,
                         struct quire_trace_header *header)
{
	snprintf(header->source, sizeof(header->source),
	         "%s requests: continuous batching in arrival order, decode first, "
	         "prompts in chunks",
	         requests->format);
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

static bool can_ever_fit(const struct import *import, int64_t tokens)
{
	return tokens > 0 && tokens <= import->header->seq_tokens_max &&
	       pages_of(import, tokens) <= import->capacity;
}

/* Open waiting requests while the one at the head fits. */
static enum quire_status open_waiting(struct import *import)
{
	while (import->next < import->requests->num_rows) {
		const struct quire_request_row *row =
			&import->requests->rows[import->next];
		int64_t tokens = row->input_tokens + row->output_tokens;
		int64_t pages = pages_of(import, tokens);
		enum quire_status status;

		if (!can_ever_fit(import, tokens)) {
			import->summary.refused++;
			import->next++;
			continue;
		}
		if (import->num_running == import->running_max ||
		    import->promised + pages > import->capacity)
			break;
		status = put_command(import, QUIRE_COMMAND_OPEN, (uint64_t)import->next);
		if (status != QUIRE_OK)
			return status;
		import->promised += pages;
		import->running[import->num_running++] = (struct running){
			.request = (uint64_t)import->next,
			.prompt = row->input_tokens,
			.tokens = tokens,
		};
		import->next++;
	}
	return QUIRE_OK;
}

/* One more segment of the step; the counters follow. */
static void add_segment(struct import *import, struct quire_step *step,
                        struct running *running, int64_t span)
{
	int64_t taken = pages_of(import, running->written + span) -
	                pages_of(import, running->written);

	import->segments[step->num_segments++] = (struct quire_segment){
		.request = running->request,
		.label = QUIRE_LABEL_MAIN,
		.span = (int32_t)span,
		.at = (int32_t)running->written,
	};
	running->written += span;
	import->summary.tokens += span;
	import->summary.pages_taken += taken;
	import->used += taken;
	if (import->used > import->summary.pages_peak)
		import->summary.pages_peak = import->used;
}

/* One step: decode tokens first, then prompts with what is left of the budget. */
static enum quire_status put_step(struct import *import)
{
	struct quire_step step = {.segments = import->segments};
	struct quire_trace_record record = {
		.command = {.kind = QUIRE_COMMAND_SUBMIT, .step = &step},
	};
	int64_t budget;

	for (int64_t i = 0; i < import->num_running; i++) {
		if (import->running[i].written >= import->running[i].prompt)
			add_segment(import, &step, &import->running[i], 1);
	}
	budget = import->header->tokens_max - step.num_segments;
	for (int64_t i = 0; i < import->num_running && budget > 0; i++) {
		struct running *running = &import->running[i];
		int64_t span = running->prompt - running->written;

		if (span <= 0)
			continue;
		span = span < budget ? span : budget;
		add_segment(import, &step, running, span);
		budget -= span;
	}
	QUIRE_ASSERT(step.num_segments > 0 && import->used <= import->promised);
	import->summary.steps++;
	return quire_trace_write(import->writer, &record, import->refusal_out);
}

/* Reset and close what is written to its end; the others keep their order. */
static enum quire_status close_done(struct import *import)
{
	int64_t kept = 0;

	for (int64_t i = 0; i < import->num_running; i++) {
		struct running running = import->running[i];
		enum quire_status status;

		if (running.written < running.tokens) {
			import->running[kept++] = running;
			continue;
		}
		status = put_command(import, QUIRE_COMMAND_RESET, running.request);
		if (status == QUIRE_OK)
			status =
				put_command(import, QUIRE_COMMAND_CLOSE, running.request);
		if (status != QUIRE_OK)
			return status;
		import->promised -= pages_of(import, running.tokens);
		import->used -= pages_of(import, running.tokens);
	}
	import->num_running = kept;
	return QUIRE_OK;
}

static enum quire_status check_input(const struct import *import)
{
	const struct quire_trace_header *header = import->header;

	if (header->tokens_max < header->rows_max)
		return quire_fault(import->refusal_out, QUIRE_INVALID, 0,
		                   "tokens_max must not be below rows_max %" PRId64
		                   ", got %" PRId64,
		                   header->rows_max, header->tokens_max);
	for (int64_t i = 0; i < import->requests->num_rows; i++) {
		const struct quire_request_row *row = &import->requests->rows[i];

		if (row->input_tokens < 0 || row->input_tokens > QUIRE_SEQ_TOKENS_MAX ||
		    row->output_tokens < 0 || row->output_tokens > QUIRE_SEQ_TOKENS_MAX)
			return quire_fault(
				import->refusal_out, QUIRE_INVALID, 0,
				"rows[%" PRId64 "]: tokens must be 0..2147483647", i);
	}
	return QUIRE_OK;
}

static enum quire_status run_policy(struct import *import,
                                    void (*progress)(void *argument, int64_t done,
                                                     int64_t of),
                                    void *progress_argument)
{
	enum quire_status status = open_waiting(import);

	while (status == QUIRE_OK && import->num_running > 0) {
		status = put_step(import);
		if (status == QUIRE_OK)
			status = close_done(import);
		if (status == QUIRE_OK)
			status = open_waiting(import);
		if (progress != NULL && import->summary.steps % PROGRESS_STEPS == 0)
			progress(progress_argument, import->next - import->num_running,
			         import->requests->num_rows);
	}
	return status;
}

enum quire_status quire_import_requests(
	const struct quire_requests *requests, const struct quire_trace_header *header,
	struct quire_trace_writer *writer,
	void (*progress)(void *argument, int64_t done, int64_t of),
	void *progress_argument, struct quire_import_summary *summary_out,
	struct quire_refusal *refusal_out)
{
	struct import import = {
		.requests = requests,
		.header = header,
		.writer = writer,
		.refusal_out = refusal_out,
		.capacity = header->num_pages - header->sink,
		.running_max = header->rows_max < header->requests_max
	                               ? header->rows_max
	                               : header->requests_max,
		.summary = {.requests = requests->num_rows},
	};
	enum quire_status status = check_input(&import);

	if (status != QUIRE_OK)
		return status;
	import.running = calloc((size_t)import.running_max, sizeof(*import.running));
	import.segments = calloc((size_t)import.running_max, sizeof(*import.segments));
	if (import.running == NULL || import.segments == NULL)
		status =
			quire_fault(refusal_out, QUIRE_NO_MEMORY, 0,
		                    "no memory for %" PRId64 " rows", import.running_max);
	else
		status = run_policy(&import, progress, progress_argument);
	free(import.segments);
	free(import.running);
	if (status == QUIRE_OK)
		*summary_out = import.summary;
	return status;
}
