/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <quire/plans/requests.h>

#include "plans/blocks_impl.h"
#include "plans/fault_impl.h"

#include <quire/runtime/limits.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

/* The schedule's times: exact integers. */
#define PREFILL_NS INT64_C(100000)
#define STEP_NS    INT64_C(30000000)

/* Page takes of all rows together: more would be hours of work for no trace there is. */
#define TAKES_MAX (INT64_C(1) << 32)

/* A request alive. */
struct served {
	int64_t arrival_ns;
	int64_t input_tokens;
	int64_t output_tokens;
	int64_t pages;  /* taken so far, when nothing is shared */
	int64_t own;    /* of them: in no block below */
	int64_t blocks; /* of its prompt, those that have a full page */
	struct quire_block *block[];
};

/* What a served request does next: take the page of output step `step`, or end. */
struct event {
	int64_t time;
	int64_t step; /* above the request's output: the end */
	struct served *served;
};

/* A binary heap, soonest event first; one of each request alive. */
struct heap {
	struct event *events;
	int64_t count;
	int64_t room;
};

/* Pages of one way to count. */
struct pages {
	int64_t live;
	int64_t peak;
	int64_t takes;
};

struct quire_ideal {
	int64_t page_size;
	int64_t last_ns; /* the newest arrival */
	int64_t asked;   /* pages that all requests so far will have taken */
	struct heap heap;
	struct quire_blocks blocks;
	struct pages alone;
	struct pages shared;
	int64_t prompt_pages;
	int64_t repeated_pages;
};

static bool is_end(const struct event *event)
{
	return event->step > event->served->output_tokens;
}

/* At equal times gives come before takes. */
static bool is_before(const struct event *a, const struct event *b)
{
	if (a->time != b->time)
		return a->time < b->time;
	return is_end(a) && !is_end(b);
}

static void sink_root(struct heap *heap)
{
	struct event moved = heap->events[0];
	int64_t hole = 0;

	for (int64_t child = 1; child < heap->count; child = 2 * hole + 1) {
		if (child + 1 < heap->count &&
		    is_before(&heap->events[child + 1], &heap->events[child]))
			child++;
		if (!is_before(&heap->events[child], &moved))
			break;
		heap->events[hole] = heap->events[child];
		hole = child;
	}
	heap->events[hole] = moved;
}

/* Have room for one more event. */
static bool make_room(struct heap *heap)
{
	int64_t room = heap->room > 0 ? heap->room * 2 : 256;
	struct event *events;

	if (heap->count < heap->room)
		return true;
	events = realloc(heap->events, (size_t)room * sizeof(*events));
	if (events == NULL)
		return false;
	heap->events = events;
	heap->room = room;
	return true;
}

/* There is room. */
static void add_event(struct heap *heap, const struct event *event)
{
	int64_t hole = heap->count++;

	while (hole > 0 && is_before(event, &heap->events[(hole - 1) / 2])) {
		heap->events[hole] = heap->events[(hole - 1) / 2];
		hole = (hole - 1) / 2;
	}
	heap->events[hole] = *event;
}

static void remove_root(struct heap *heap)
{
	heap->events[0] = heap->events[--heap->count];
	if (heap->count > 0)
		sink_root(heap);
}

/* Output step k begins when the prefill and k - 1 steps are over; the end is after all.
 */
static int64_t time_of(const struct served *served, int64_t step)
{
	int64_t steps = step > served->output_tokens ? served->output_tokens : step - 1;

	return served->arrival_ns + served->input_tokens * PREFILL_NS + steps * STEP_NS;
}

/* The first output step that takes a page: the smallest k >= 1 with
 * (input + k - 1) mod page_size = 0. */
static int64_t first_take(const struct served *served, int64_t page_size)
{
	return 1 + (page_size - served->input_tokens % page_size) % page_size;
}

static void take(struct pages *pages, int64_t count)
{
	pages->takes += count;
	pages->live += count;
	if (pages->live > pages->peak)
		pages->peak = pages->live;
}

static void end_served(struct quire_ideal *ideal, struct served *served)
{
	ideal->alone.live -= served->pages;
	ideal->shared.live -= served->own;
	for (int64_t i = 0; i < served->blocks; i++) {
		if (--served->block[i]->live == 0)
			ideal->shared.live -= served->block[i]->pages;
	}
	free(served);
}

static void run_root(struct quire_ideal *ideal)
{
	struct event *event = &ideal->heap.events[0];

	if (is_end(event)) {
		end_served(ideal, event->served);
		remove_root(&ideal->heap);
		return;
	}
	take(&ideal->alone, 1);
	take(&ideal->shared, 1);
	event->served->pages++;
	event->served->own++;
	event->step += ideal->page_size;
	event->time = time_of(event->served, event->step);
	sink_root(&ideal->heap);
}

/* Before an arrival's takes: all earlier events, and the gives of the same time. */
static void run_until(struct quire_ideal *ideal, int64_t now)
{
	const struct heap *heap = &ideal->heap;

	while (heap->count > 0 &&
	       (heap->events[0].time < now ||
	        (heap->events[0].time == now && is_end(&heap->events[0]))))
		run_root(ideal);
}

/* Find the blocks of a prompt that have full pages.  False: no memory. */
static bool find_blocks(struct quire_ideal *ideal, const struct quire_request_row *row,
                        struct served *served)
{
	const struct quire_trace_prefix *prefix = &row->prefix;
	int64_t ps = ideal->page_size;

	for (int32_t i = 0; i < prefix->num_keys; i++) {
		int64_t start = i * prefix->tokens;
		int64_t left = row->input_tokens - start;
		int64_t tokens = left < prefix->tokens ? left : prefix->tokens;
		struct quire_block wanted = {
			.key = prefix->keys[i],
			.start = start,
			.tokens = tokens,
			.pages = (start + tokens) / ps - start / ps,
		};
		struct quire_block *block;

		if (wanted.pages == 0)
			continue;
		block = quire_blocks_find(&ideal->blocks, &wanted);
		if (block == NULL)
			return false;
		served->block[served->blocks++] = block;
		served->own -= block->pages;
	}
	return true;
}

/* A request alive of @row; NULL: no memory. */
static struct served *make_served(struct quire_ideal *ideal,
                                  const struct quire_request_row *row)
{
	int64_t ps = ideal->page_size;
	struct served *served =
		malloc(sizeof(*served) +
	               (size_t)row->prefix.num_keys * sizeof(struct quire_block *));

	if (served == NULL)
		return NULL;
	*served = (struct served){
		.arrival_ns = row->arrival_ns,
		.input_tokens = row->input_tokens,
		.output_tokens = row->output_tokens,
		.pages = (row->input_tokens + ps - 1) / ps,
	};
	served->own = served->pages;
	if (find_blocks(ideal, row, served))
		return served;
	free(served);
	return NULL;
}

/* Is there a key for every block of the prompt, or for every whole one, or none? */
static bool prefix_is_sound(const struct quire_request_row *row)
{
	const struct quire_trace_prefix *prefix = &row->prefix;
	int64_t tokens = prefix->tokens, input = row->input_tokens;

	if (tokens == 0)
		return prefix->num_keys == 0;
	return tokens > 0 && tokens <= QUIRE_SEQ_TOKENS_MAX &&
	       (prefix->num_keys == input / tokens ||
	        prefix->num_keys == (input + tokens - 1) / tokens);
}

/* Times must not overflow: what quire_requests_next answers is far inside. */
static enum quire_status check_row(const struct quire_ideal *ideal,
                                   const struct quire_request_row *row,
                                   struct quire_refusal *refusal_out)
{
	if (row->arrival_ns < ideal->last_ns || row->arrival_ns > INT64_MAX / 2)
		return quire_fault(refusal_out, QUIRE_INVALID, 0,
		                   "arrival_ns must be %" PRId64 "..%" PRId64
		                   ", got %" PRId64,
		                   ideal->last_ns, INT64_MAX / 2, row->arrival_ns);
	if (row->input_tokens < 0 || row->input_tokens > QUIRE_SEQ_TOKENS_MAX ||
	    row->output_tokens < 0 || row->output_tokens > QUIRE_SEQ_TOKENS_MAX)
		return quire_fault(refusal_out, QUIRE_INVALID, 0,
		                   "tokens must be 0..2147483647, got %" PRId64
		                   " and %" PRId64,
		                   row->input_tokens, row->output_tokens);
	if (!prefix_is_sound(row))
		return quire_fault(refusal_out, QUIRE_INVALID, 0,
		                   "prefix must have a key for every %" PRId64
		                   " of %" PRId64 " tokens, got %" PRId32,
		                   row->prefix.tokens, row->input_tokens,
		                   row->prefix.num_keys);
	if (ideal->asked + (row->input_tokens + row->output_tokens) / ideal->page_size >
	    TAKES_MAX)
		return quire_fault(refusal_out, QUIRE_INVALID, 0,
		                   "the requests up to here need more than 2^32 pages");
	return QUIRE_OK;
}

enum quire_status quire_ideal_create(int64_t page_size, struct quire_ideal **ideal_out)
{
	struct quire_ideal *ideal;

	if (page_size < 1 || page_size > QUIRE_PAGE_SIZE_MAX)
		return QUIRE_INVALID;
	ideal = calloc(1, sizeof(*ideal));
	if (ideal == NULL)
		return QUIRE_NO_MEMORY;
	ideal->page_size = page_size;
	*ideal_out = ideal;
	return QUIRE_OK;
}

/* Take a prompt's pages: of a block only when nobody alive has it. */
static void take_prompt(struct quire_ideal *ideal, const struct served *served)
{
	take(&ideal->alone, served->pages);
	take(&ideal->shared, served->own);
	for (int64_t i = 0; i < served->blocks; i++) {
		struct quire_block *block = served->block[i];

		if (block->live++ == 0)
			take(&ideal->shared, block->pages);
		if (block->seen)
			ideal->repeated_pages += block->pages;
		block->seen = true;
	}
}

enum quire_status quire_ideal_add(struct quire_ideal *ideal,
                                  const struct quire_request_row *row,
                                  struct quire_refusal *refusal_out)
{
	enum quire_status status = check_row(ideal, row, refusal_out);
	struct event event = {.served = NULL};

	if (status != QUIRE_OK)
		return status;
	if (make_room(&ideal->heap))
		event.served = make_served(ideal, row);
	if (event.served == NULL)
		return quire_fault(refusal_out, QUIRE_NO_MEMORY, 0,
		                   "no memory for one more request");
	run_until(ideal, row->arrival_ns);
	take_prompt(ideal, event.served);
	ideal->last_ns = row->arrival_ns;
	ideal->asked += (row->input_tokens + row->output_tokens) / ideal->page_size;
	ideal->prompt_pages += row->input_tokens / ideal->page_size;
	event.step = first_take(event.served, ideal->page_size);
	event.time = time_of(event.served, event.step);
	add_event(&ideal->heap, &event);
	return QUIRE_OK;
}

void quire_ideal_finish(struct quire_ideal *ideal,
                        struct quire_ideal_numbers *numbers_out)
{
	while (ideal->heap.count > 0)
		run_root(ideal);
	*numbers_out = (struct quire_ideal_numbers){
		.peak_pages = ideal->alone.peak,
		.takes = ideal->alone.takes,
		.shared_peak_pages = ideal->shared.peak,
		.shared_takes = ideal->shared.takes,
		.prompt_pages = ideal->prompt_pages,
		.repeated_pages = ideal->repeated_pages,
	};
}

void quire_ideal_destroy(struct quire_ideal *ideal)
{
	if (ideal == NULL)
		return;
	for (int64_t i = 0; i < ideal->heap.count; i++)
		free(ideal->heap.events[i].served);
	free(ideal->heap.events);
	quire_blocks_end(&ideal->blocks);
	free(ideal);
}
