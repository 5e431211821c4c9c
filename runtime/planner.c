/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/refuse_impl.h"
#include "runtime/runtime_impl.h"

#include <quire/runtime/assert.h>

#include <string.h>

/* ------------------------------------------------------------------ outcomes, waiting */

/* The command's outcome is known: tell it, and be done with the command. */
static void decide(struct quire_runtime *rt, const struct quire_refusal *refusal,
                   enum quire_stage stage)
{
	struct quire_planner *planner = &rt->planner;
	struct quire_command_cell *cell = quire_commands_front(&rt->commands);
	struct quire_outcome *outcome =
		&quire_ticket_cell(&rt->tickets, cell->ticket)->outcome;
	bool is_plan = stage == QUIRE_STAGE_PLANNED;

	outcome->refusal = *refusal;
	outcome->step = is_plan ? planner->step : 0;
	outcome->pages_taken = is_plan ? planner->need : 0;
	quire_count(&planner->commands, 1);
	if (refusal->status != QUIRE_OK)
		quire_count(&planner->refused, 1);
	quire_ticket_advance(&rt->tickets, cell->ticket, stage);
	quire_commands_pop(&rt->commands);
	planner->state = QUIRE_PLANNER_FETCH;
	planner->current = NULL;
	quire_wake_all(&rt->client_wake);
}

static void decide_ok(struct quire_runtime *rt)
{
	static const struct quire_refusal ok = {.what = ""};

	decide(rt, &ok, QUIRE_STAGE_RETIRED);
}

/* The planner cannot go on: whose time is it?  Always false, for the caller to return. */
static bool wait_on(struct quire_planner *planner, quire_counter *counter)
{
	if (planner->wait_since_ns == 0) {
		planner->wait_since_ns = quire_now_ns();
		planner->wait_counter = counter;
	}
	return false;
}

static void wait_over(struct quire_planner *planner)
{
	if (planner->wait_since_ns != 0)
		quire_count(planner->wait_counter,
		            (uint64_t)(quire_now_ns() - planner->wait_since_ns));
	planner->wait_since_ns = 0;
}

/* ------------------------------------------------------------ towards the executor */

static void push(struct quire_runtime *rt, const struct quire_entry *entry)
{
	struct quire_entries *entries = &rt->entries;
	uint64_t tail = atomic_load_explicit(&entries->tail, memory_order_relaxed);

	QUIRE_ASSERT(quire_entries_have_room(entries));
	entries->ring[tail & entries->mask] = *entry;
	/* Pairs with the acquire in the executor: entry, slot and pages are seen with
	 * it. */
	atomic_store_explicit(&entries->tail, tail + 1, memory_order_release);
	quire_wake_all(&rt->executor_wake);
}

/* Hand pages that nobody owns to the executor, as one entry; the caller made sure of
 * room. */
static void push_release(struct quire_runtime *rt, const int32_t *pages, int64_t n)
{
	struct quire_entries *entries = &rt->entries;
	struct quire_entry entry = {.kind = QUIRE_ENTRY_RELEASE, .count = (int32_t)n};

	if (n == 0)
		return;
	for (int64_t i = 0; i < n; i++)
		entries->pages[entries->released++ & entries->pages_mask] = pages[i];
	push(rt, &entry);
}

static void show_owned(struct quire_runtime *rt)
{
	struct quire_planner *planner = &rt->planner;
	int64_t owned = quire_ledger_owned(rt->ledger);

	atomic_store_explicit(&planner->owned, (uint64_t)owned, memory_order_relaxed);
	if (owned > planner->owned_peak) {
		planner->owned_peak = owned;
		atomic_store_explicit(&planner->pages_peak,
		                      (uint64_t)owned - rt->config.sink,
		                      memory_order_relaxed);
	}
}

/* Give up pages of a list; those without an owner join planner->freed, which holds
 * @freed. */
static int64_t give_up(struct quire_runtime *rt, const int32_t *pages, int64_t n,
                       int64_t freed)
{
	int64_t more = 0;
	struct quire_refusal refusal;
	enum quire_status status = quire_ledger_release(
		rt->ledger, pages, n, rt->planner.freed + freed, &more, &refusal);

	QUIRE_ASSERT(status == QUIRE_OK);
	return freed + more;
}

/* ------------------------------------------------------------ open, close, reset */

static void open_request(struct quire_runtime *rt, const struct quire_command_cell *cell)
{
	struct quire_refusal refusal;
	enum quire_status status = QUIRE_OK;

	if (quire_registry_find(&rt->registry, cell->request) == NULL)
		status = quire_registry_open(&rt->registry, cell->request);
	if (status == QUIRE_OK) {
		atomic_store_explicit(&rt->planner.requests_open,
		                      (uint64_t)rt->registry.num_open,
		                      memory_order_relaxed);
		decide_ok(rt);
		return;
	}
	quire_refuse_bound(&refusal, status, "requests_max: open requests", -1,
	                   (int64_t)rt->config.requests_max + 1, rt->config.requests_max);
	refusal.request = cell->request;
	decide(rt, &refusal, QUIRE_STAGE_RETIRED);
}

/* The request of a command, or NULL when it was refused. */
static struct quire_request *find_or_refuse(struct quire_runtime *rt,
                                            const struct quire_command_cell *cell)
{
	struct quire_request *request = quire_registry_find(&rt->registry, cell->request);
	struct quire_refusal refusal;

	if (request != NULL)
		return request;
	quire_refuse_what(&refusal, QUIRE_NO_REQUEST, "");
	refusal.request = cell->request;
	decide(rt, &refusal, QUIRE_STAGE_RETIRED);
	return NULL;
}

static void close_request(struct quire_runtime *rt, const struct quire_command_cell *cell)
{
	struct quire_request *request = find_or_refuse(rt, cell);
	int64_t freed = 0;

	if (request == NULL)
		return;
	for (int32_t s = 0; s < request->num_streams; s++) {
		struct quire_stream *stream = &request->streams[s];

		freed = give_up(rt, stream->pages, stream->num_pages, freed);
		stream->generation++;
	}
	quire_registry_close(&rt->registry, request);
	push_release(rt, rt->planner.freed, freed);
	show_owned(rt);
	atomic_store_explicit(&rt->planner.requests_open, (uint64_t)rt->registry.num_open,
	                      memory_order_relaxed);
	decide_ok(rt);
}

/* Drop a stream's content.  Pages are given up, or with @keep only those that others own
 * too. */
static int64_t drop_content(struct quire_runtime *rt, struct quire_request *request,
                            struct quire_stream *stream, bool keep)
{
	int32_t kept = 0;
	int64_t freed = 0;

	if (!keep) {
		freed = give_up(rt, stream->pages, stream->num_pages, 0);
	} else {
		for (int32_t i = 0; i < stream->num_pages; i++) {
			int32_t page = stream->pages[i];

			if (quire_ledger_owners(rt->ledger, page) > 1)
				freed = give_up(rt, &page, 1, freed);
			else
				rt->planner.pages[kept++] = page;
		}
	}
	stream->length = stream->released = stream->num_pages = 0;
	stream->generation++;
	stream->step = rt->planner.step;
	if (kept > 0) { /* the list is written again: not while readers may copy it */
		quire_stream_show(request, stream);
		quire_stream_append(stream, rt->planner.pages, kept);
	}
	return freed;
}

static void reset_label(struct quire_runtime *rt, const struct quire_command_cell *cell)
{
	struct quire_request *request = find_or_refuse(rt, cell);
	struct quire_stream *stream;
	struct quire_refusal refusal;
	int64_t freed;

	if (request == NULL)
		return;
	stream = quire_request_find(request, cell->label);
	if (stream == NULL) {
		quire_refuse_what(&refusal, QUIRE_NO_LABEL, "");
		refusal.request = cell->request;
		memcpy(refusal.label, rt->commands.labels.names[cell->label],
		       QUIRE_LABEL_BYTES);
		decide(rt, &refusal, QUIRE_STAGE_RETIRED);
		return;
	}
	freed = drop_content(rt, request, stream, cell->keep_pages != 0);
	quire_stream_show(request, stream);
	push_release(rt, rt->planner.freed, freed);
	show_owned(rt);
	decide_ok(rt);
}

/* ------------------------------------------------------------------ a step */

/* The step in hand will not run: everything is as it was before it. */
static void take_back(struct quire_runtime *rt, const struct quire_refusal *refusal)
{
	struct quire_planner *planner = &rt->planner;

	if (planner->state == QUIRE_PLANNER_SLOT) {
		push_release(rt, planner->freed,
		             give_up(rt, planner->pages, planner->need, 0));
		show_owned(rt);
	}
	quire_undo_all(planner);
	decide(rt, refusal, QUIRE_STAGE_RETIRED);
}

static void admit_step(struct quire_runtime *rt, struct quire_command_cell *cell)
{
	struct quire_planner *planner = &rt->planner;
	struct quire_refusal refusal;

	planner->plan_ns = 0;
	if (quire_admit(rt, cell, &refusal) != QUIRE_OK) {
		decide(rt, &refusal, QUIRE_STAGE_RETIRED);
		return;
	}
	planner->current = cell;
	planner->state = QUIRE_PLANNER_PAGES;
}

/* The pages of an admitted step, in one take.  They are owned from here on. */
static bool take_pages(struct quire_runtime *rt)
{
	struct quire_planner *planner = &rt->planner;
	struct quire_refusal refusal;
	enum quire_status status;

	status = quire_pool_allocate(rt->pool, planner->need, planner->pages, &refusal);
	if (status != QUIRE_OK) {
		int64_t free = refusal.available; /* at the instant of the refusal */

		if ((planner->current->flags & QUIRE_STEP_NO_WAIT) == 0)
			return wait_on(planner, &planner->page_wait_ns);
		quire_refuse_what(&refusal, QUIRE_AGAIN, "");
		refusal.owned = quire_ledger_owned(rt->ledger);
		refusal.free = free;
		refusal.retiring = rt->num_pages - refusal.owned - refusal.free;
		take_back(rt, &refusal);
		return true;
	}
	status =
		quire_ledger_acquire(rt->ledger, planner->pages, planner->need, &refusal);
	QUIRE_ASSERT(status == QUIRE_OK);
	quire_count(&planner->pages_taken, (uint64_t)planner->need);
	show_owned(rt);
	planner->state = QUIRE_PLANNER_SLOT;
	return true;
}

/* Give the streams their pages and lengths; returns the tokens that the step writes. */
static uint64_t extend_streams(struct quire_runtime *rt,
                               const struct quire_command_cell *cell)
{
	struct quire_planner *planner = &rt->planner;
	bool commit = (cell->flags & QUIRE_STEP_NO_COMMIT) == 0;
	int32_t given = 0;
	uint64_t tokens = 0;

	for (int32_t i = 0; i < cell->num_segments; i++) {
		const struct quire_row *row = &planner->rows[i];
		int32_t span = cell->segments[i].span;

		if (span == 0)
			continue;
		quire_stream_append(row->stream, planner->pages + given, row->need);
		given += row->need;
		row->stream->generation++;
		row->stream->step = planner->step + 1;
		row->stream->length += commit ? span : 0;
		tokens += (uint64_t)span;
	}
	QUIRE_ASSERT(given == planner->need);
	return tokens;
}

/* Build the plan in the next slot and push it. */
static bool plan_step(struct quire_runtime *rt)
{
	struct quire_planner *planner = &rt->planner;
	struct quire_command_cell *cell = planner->current;
	static const struct quire_refusal ok = {.what = ""};
	uint64_t step = planner->step + 1, tokens;
	uint64_t depth = (uint64_t)rt->config.depth;
	/* Pairs with the release in the executor: the host half has been read. */
	uint64_t uploaded =
		atomic_load_explicit(&rt->numbers.uploaded_step, memory_order_acquire);
	struct quire_slot *slot = &rt->slots[step % depth];
	struct quire_entry entry = {.kind = QUIRE_ENTRY_PLAN,
	                            .slot = (int32_t)(step % depth),
	                            .ticket = cell->ticket,
	                            .step = step};

	if (uploaded + depth < step || !quire_entries_have_room(&rt->entries))
		return wait_on(planner, &planner->slot_wait_ns);
	tokens = extend_streams(rt, cell);
	quire_slot_fill(rt, cell, slot);
	if (rt->config.on_plan != NULL &&
	    rt->config.on_plan(rt->config.on_plan_argument, &slot->plan) != QUIRE_OK) {
		quire_runtime_fail(rt, QUIRE_CALLBACK, "on_plan");
		take_back(rt, quire_runtime_failed(rt));
		return true;
	}
	planner->step = step;
	for (int32_t i = 0; i < cell->num_segments; i++)
		if (cell->segments[i].span > 0)
			quire_stream_show(planner->rows[i].request,
			                  planner->rows[i].stream);
	planner->num_undo = 0;
	quire_count(&planner->steps, 1);
	quire_count(&planner->tokens, tokens);
	decide(rt, &ok,
	       QUIRE_STAGE_PLANNED); /* before the executor can move the ticket on */
	push(rt, &entry);
	return true;
}

/* ------------------------------------------------------------------ the machine */

static bool fetch(struct quire_runtime *rt)
{
	struct quire_command_cell *cell = quire_commands_front(&rt->commands);

	if (cell == NULL)
		return false;
	if (cell->kind == QUIRE_COMMAND_SUBMIT) {
		admit_step(rt, cell);
		return true;
	}
	if (!quire_entries_have_room(&rt->entries))
		return wait_on(&rt->planner, &rt->planner.slot_wait_ns);
	if (cell->kind == QUIRE_COMMAND_OPEN)
		open_request(rt, cell);
	else if (cell->kind == QUIRE_COMMAND_CLOSE)
		close_request(rt, cell);
	else
		reset_label(rt, cell);
	return true;
}

/* Why nothing may be decided any more: NULL, a cancelling shutdown, or the failure. */
static const struct quire_refusal *stopped(struct quire_runtime *rt)
{
	static const struct quire_refusal cancelled = {
		.status = QUIRE_CANCELLED,
		.what = "the runtime was shut down",
		.index = -1};
	const struct quire_refusal *failure = quire_runtime_failed(rt);

	if (failure != NULL)
		return failure;
	/* Pairs with the release in quire_runtime_shutdown. */
	if (atomic_load_explicit(&rt->commands.shutdown, memory_order_acquire) ==
	    QUIRE_SHUTDOWN_CANCEL)
		return &cancelled;
	return NULL;
}

/* End what is in hand, or the oldest command, without doing it. */
static bool drop_one(struct quire_runtime *rt, const struct quire_refusal *refusal)
{
	if (rt->planner.state == QUIRE_PLANNER_FETCH) {
		if (quire_commands_front(&rt->commands) == NULL)
			return false;
		decide(rt, refusal, QUIRE_STAGE_RETIRED);
		return true;
	}
	if (!quire_entries_have_room(&rt->entries))
		return wait_on(&rt->planner, &rt->planner.slot_wait_ns);
	take_back(rt, refusal);
	return true;
}

static bool move_one(struct quire_runtime *rt)
{
	const struct quire_refusal *refusal = stopped(rt);

	if (refusal != NULL)
		return drop_one(rt, refusal);
	switch (rt->planner.state) {
	case QUIRE_PLANNER_FETCH:
		return fetch(rt);
	case QUIRE_PLANNER_PAGES:
		return take_pages(rt);
	case QUIRE_PLANNER_SLOT:
		return plan_step(rt);
	}
	QUIRE_ASSERT(false);
	return false;
}

/* A self-check is done between two moves. */
static bool answer_check(struct quire_runtime *rt)
{
	struct quire_check *check = &rt->check;

	/* Pairs with the release of the asker. */
	if (atomic_load_explicit(&check->state, memory_order_acquire) !=
	    QUIRE_CHECK_ASKED)
		return false;
	check->status = quire_check_all(rt, &check->refusal);
	/* Pairs with the acquire of the asker. */
	atomic_store_explicit(&check->state, QUIRE_CHECK_DONE, memory_order_release);
	quire_wake_all(&rt->client_wake);
	return true;
}

bool quire_planner_move(struct quire_runtime *rt)
{
	struct quire_planner *planner = &rt->planner;
	uint64_t steps = planner->step;
	int64_t start_ns, spent_ns;
	bool moved;

	if (rt->config.on_poll != NULL)
		rt->config.on_poll(rt->config.on_poll_argument, QUIRE_ROLE_PLANNER);
	planner->inside = true;
	moved = answer_check(rt);
	start_ns = quire_now_ns();
	if (move_one(rt)) {
		moved = true;
		wait_over(planner);
		spent_ns = quire_now_ns() - start_ns;
		quire_count(&planner->busy_ns, (uint64_t)spent_ns);
		planner->plan_ns += spent_ns;
		if (planner->step != steps)
			quire_histogram_add(&planner->plan_time, planner->plan_ns);
		QUIRE_CHECK(quire_check_all(rt, &(struct quire_refusal){0}));
	}
	planner->inside = false;
	return moved;
}

bool quire_planner_is_idle(struct quire_runtime *rt)
{
	return rt->planner.state == QUIRE_PLANNER_FETCH &&
	       quire_commands_front(&rt->commands) == NULL;
}
