/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <quire/plans/requests.h>

#include <quire/runtime/limits.h>

#include <stdbool.h>
#include <stdlib.h>

/* The schedule's times: exact integers. */
#define PREFILL_NS INT64_C(100000)
#define STEP_NS    INT64_C(30000000)

/* What a served request does next: take the page of output step `step`, or end. */
struct event {
	int64_t time;
	int64_t pages; /* taken so far */
	int64_t step;  /* above the row's output: the end */
	const struct quire_request_row *row;
};

/* A binary heap, soonest event first. */
struct heap {
	struct event *events;
	int64_t count;
};

static bool is_end(const struct event *event)
{
	return event->step > event->row->output_tokens;
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
static int64_t time_of(const struct quire_request_row *row, int64_t step)
{
	int64_t steps = step > row->output_tokens ? row->output_tokens : step - 1;

	return row->arrival_ns + row->input_tokens * PREFILL_NS + steps * STEP_NS;
}

/* The first output step that takes a page: the smallest k >= 1 with
 * (input + k - 1) mod page_size = 0. */
static int64_t first_take(const struct quire_request_row *row, int64_t page_size)
{
	return 1 + (page_size - row->input_tokens % page_size) % page_size;
}

struct schedule {
	struct heap heap;
	int64_t page_size;
	int64_t live;
	int64_t peak;
	int64_t takes;
};

static void take(struct schedule *schedule, int64_t pages)
{
	schedule->takes += pages;
	schedule->live += pages;
	if (schedule->live > schedule->peak)
		schedule->peak = schedule->live;
}

static void run_root(struct schedule *schedule)
{
	struct event *event = &schedule->heap.events[0];

	if (is_end(event)) {
		schedule->live -= event->pages;
		remove_root(&schedule->heap);
		return;
	}
	take(schedule, 1);
	event->pages++;
	event->step += schedule->page_size;
	event->time = time_of(event->row, event->step);
	sink_root(&schedule->heap);
}

/* Before an arrival's takes: all earlier events, and the gives of the same time. */
static void arrive(struct schedule *schedule, const struct quire_request_row *row)
{
	struct event event = {
		.row = row,
		.pages = (row->input_tokens + schedule->page_size - 1) /
	                 schedule->page_size,
		.step = first_take(row, schedule->page_size),
	};

	while (schedule->heap.count > 0 &&
	       (schedule->heap.events[0].time < row->arrival_ns ||
	        (schedule->heap.events[0].time == row->arrival_ns &&
	         is_end(&schedule->heap.events[0]))))
		run_root(schedule);
	take(schedule, event.pages);
	event.time = time_of(row, event.step);
	add_event(&schedule->heap, &event);
}

/* Page takes of all rows together: more would be hours of work for no trace there is. */
#define TAKES_MAX (INT64_C(1) << 32)

/* Times must not overflow: what quire_requests_read answers is far inside. */
static bool rows_are_sound(const struct quire_requests *requests, int64_t page_size)
{
	int64_t last = 0, takes = 0;

	for (int64_t i = 0; i < requests->num_rows; i++) {
		const struct quire_request_row *row = &requests->rows[i];

		if (row->arrival_ns < last || row->arrival_ns > INT64_MAX / 2 ||
		    row->input_tokens < 0 || row->input_tokens > QUIRE_SEQ_TOKENS_MAX ||
		    row->output_tokens < 0 || row->output_tokens > QUIRE_SEQ_TOKENS_MAX)
			return false;
		last = row->arrival_ns;
		takes += (row->input_tokens + row->output_tokens) / page_size;
	}
	return takes <= TAKES_MAX;
}

enum quire_status quire_requests_ideal(const struct quire_requests *requests,
                                       int64_t page_size, int64_t *peak_out,
                                       int64_t *takes_out)
{
	struct schedule schedule = {.page_size = page_size};

	if (page_size < 1 || page_size > QUIRE_PAGE_SIZE_MAX ||
	    !rows_are_sound(requests, page_size))
		return QUIRE_INVALID;
	schedule.heap.events =
		calloc((size_t)requests->num_rows + 1, sizeof(*schedule.heap.events));
	if (schedule.heap.events == NULL)
		return QUIRE_NO_MEMORY;
	for (int64_t i = 0; i < requests->num_rows; i++)
		arrive(&schedule, &requests->rows[i]);
	while (schedule.heap.count > 0)
		run_root(&schedule);
	free(schedule.heap.events);
	*peak_out = schedule.peak;
	*takes_out = schedule.takes;
	return QUIRE_OK;
}
