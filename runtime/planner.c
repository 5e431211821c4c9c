/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/record_impl.h"
#include "runtime/refuse_impl.h"
#include "runtime/runtime_impl.h"

#include <quire/runtime/assert.h>

#include <string.h>

/* ------------------------------------------------------------------ outcomes, waiting */

/* A command has come to its end without running.  What a speculative step answered before
 * is not counted: whether it got so far is a matter of time. */
static void count_end(struct quire_planner *planner, enum quire_status status)
{
	if (status == QUIRE_ABANDONED)
		quire_count(&planner->abandoned, 1);
	else if (status != QUIRE_OK)
		quire_count(&planner->refusals, 1);
}

static bool is_speculative(const struct quire_command_cell *cell)
{
	return cell->kind == QUIRE_COMMAND_SUBMIT &&
	       (cell->flags & QUIRE_STEP_SPECULATIVE) != 0;
}

/* The command's outcome is known: tell it, and be done with the command.  A step that may
 * still run, or be abandoned, is PLANNED. */
static void decide(struct quire_runtime *rt, const struct quire_outcome *outcome,
                   enum quire_stage stage)
{
	struct quire_planner *planner = &rt->planner;
	struct quire_command_cell *cell = quire_commands_front(&rt->commands);
	uint64_t ticket = cell->ticket;
	quire_done_function done = cell->kind == QUIRE_COMMAND_SUBMIT ? cell->done : NULL;
	void *done_argument = cell->done_argument;
	struct quire_outcome *to = &quire_ticket_cell(&rt->tickets, ticket)->outcome;

	*to = *outcome;
	to->base = cell->base;
	quire_record_command(rt, cell, to,
	                     stage == QUIRE_STAGE_RETIRED || !is_speculative(cell));
	quire_count(&planner->commands, 1);
	if (stage == QUIRE_STAGE_RETIRED)
		count_end(planner, outcome->refusal.status);
	quire_commands_pop(&rt->commands);
	planner->state = QUIRE_PLANNER_FETCH;
	planner->current = NULL;
	quire_ticket_advance(&rt->tickets, ticket, QUIRE_STAGE_PLANNED);
	if (stage == QUIRE_STAGE_RETIRED)
		quire_end_step(rt, ticket, done, done_argument);
	else
		quire_wake_all(&rt->client_wake);
}

static enum quire_fate fate_of(struct quire_runtime *rt, uint64_t ticket,
                               uint64_t *position_out)
{
	/* Pairs with the release in set_fate. */
	uint64_t fate = atomic_load_explicit(
		&quire_ticket_cell(&rt->tickets, ticket)->fate, memory_order_acquire);

	if (position_out != NULL)
		*position_out = fate / 4;
	return fate % 4;
}

/* The command is refused.  Of a speculative step that is not the last word: it keeps its
 * place until its fate is heard. */
static void refuse(struct quire_runtime *rt, const struct quire_command_cell *cell,
                   const struct quire_refusal *refusal)
{
	struct quire_planner *planner = &rt->planner;
	const struct quire_outcome outcome = {.refusal = *refusal};

	if (!is_speculative(cell)) {
		decide(rt, &outcome, QUIRE_STAGE_RETIRED);
		return;
	}
	QUIRE_ASSERT(planner->num_refused < rt->config.speculative_max);
	planner->refused[planner->num_refused++] = (struct quire_refused){
		.ticket = cell->ticket,
		.base = cell->base,
		.done = cell->done,
		.done_argument = cell->done_argument,
	};
	decide(rt, &outcome, QUIRE_STAGE_PLANNED);
}

/* The command ends undone, whatever it was. */
static void end_command(struct quire_runtime *rt, const struct quire_refusal *refusal)
{
	const struct quire_outcome outcome = {.refusal = *refusal};

	decide(rt, &outcome, QUIRE_STAGE_RETIRED);
}

static const struct quire_refusal abandoned = {
	.status = QUIRE_ABANDONED,
	.what = "",
	.index = -1,
};

/* The planner cannot go on: whose time is it?  Always false, for the caller to return. */
static bool wait_on(struct quire_runtime *rt, quire_counter *counter)
{
	struct quire_planner *planner = &rt->planner;

	if (planner->wait_since_ns == 0) {
		planner->wait_since_ns = quire_runtime_now(rt);
		planner->wait_counter = counter;
	}
	return false;
}

static void wait_over(struct quire_runtime *rt)
{
	struct quire_planner *planner = &rt->planner;

	if (planner->wait_since_ns == 0)
		return;
	quire_count(planner->wait_counter,
	            (uint64_t)(planner->move_ns - planner->wait_since_ns));
	quire_record_wait(rt);
	planner->wait_since_ns = 0;
}

/* ------------------------------------------------------------ held steps */

/* Nothing but a fate lets the planner go on.  Always false, for the caller to return. */
static bool park(struct quire_planner *planner)
{
	planner->parked = true;
	return false;
}

/* After each move: tell clients which step they may be waiting behind. */
static void show_parked(struct quire_runtime *rt)
{
	const struct quire_planner *planner = &rt->planner;
	uint64_t held = planner->parked ? planner->held[0].ticket : 0;

	/* Relaxed: this thread's own; and seen with the wake: see commands_impl.h. */
	if (atomic_load_explicit(&rt->commands.held, memory_order_relaxed) == held)
		return;
	atomic_store_explicit(&rt->commands.held, held, memory_order_relaxed);
	if (held != 0)
		quire_wake_all(&rt->client_wake);
}

/* A held or refused step ends, abandoned or with the runtime. */
static void end_speculative(struct quire_runtime *rt, uint64_t ticket,
                            quire_done_function done, void *done_argument)
{
	struct quire_ticket_cell *cell = quire_ticket_cell(&rt->tickets, ticket);

	if (quire_runtime_failed(rt) != NULL) {
		/* Pairs with the acquire in quire_outcome_read. */
		atomic_store_explicit(&cell->failed, true, memory_order_release);
		quire_record_fate(rt, ticket, QUIRE_EVENT_FAILED);
	} else {
		atomic_store_explicit(&cell->abandoned, true, memory_order_relaxed);
		count_end(&rt->planner, QUIRE_ABANDONED);
		quire_record_fate(rt, ticket, QUIRE_EVENT_ABANDONED);
	}
	quire_end_step(rt, ticket, done, done_argument);
}

static void end_newest(struct quire_runtime *rt)
{
	struct quire_planner *planner = &rt->planner;
	struct quire_held held = planner->held[planner->num_held - 1];
	const struct quire_slot *slot =
		&rt->slots[held.step % (uint64_t)rt->config.depth];

	quire_take_back_newest(rt);
	end_speculative(rt, held.ticket, slot->done, slot->done_argument);
	quire_count_held(&rt->planner);
}

/* ------------------------------------------------------------ the step in hand */

/* The step in hand will not run: its pages go back to the front. */
static void drop_step(struct quire_runtime *rt)
{
	struct quire_planner *planner = &rt->planner;
	int64_t freed;
	enum quire_status status;

	if (planner->state != QUIRE_PLANNER_SLOT)
		return;
	status = quire_ledger_release(rt->ledger, planner->pages, planner->need,
	                              planner->freed, &freed, NULL);
	QUIRE_ASSERT(status == QUIRE_OK && freed == planner->need);
	quire_stash_put(planner, planner->pages, planner->need);
	quire_show_owned(rt);
}

static void admit_step(struct quire_runtime *rt, struct quire_command_cell *cell)
{
	struct quire_planner *planner = &rt->planner;
	struct quire_refusal refusal;

	planner->plan_ns = 0;
	if (quire_admit(rt, cell, &refusal) != QUIRE_OK) {
		refuse(rt, cell, &refusal);
		return;
	}
	planner->current = cell;
	planner->state = QUIRE_PLANNER_PAGES;
}

/* Pages are on their way, or in the hands of held steps, whose fate alone brings them. */
static bool wait_for_pages(struct quire_runtime *rt, int64_t need)
{
	int64_t held = (int64_t)(rt->entries.staged - rt->entries.released);

	if (need > rt->num_pages - quire_ledger_owned(rt->ledger) - held)
		return park(&rt->planner);
	return wait_on(rt, &rt->planner.page_wait_ns);
}

/* The pages of an admitted step, in one take.  They are owned from here on. */
static bool take_pages(struct quire_runtime *rt)
{
	struct quire_planner *planner = &rt->planner;
	int32_t need = (int32_t)planner->need;
	struct quire_refusal refusal;

	if (quire_stash_take(rt, need, planner->pages, &refusal) != QUIRE_OK) {
		/* At the instant of the refusal. */
		int64_t free = refusal.available + planner->num_stash;

		if ((planner->current->flags & QUIRE_STEP_NO_WAIT) == 0)
			return wait_for_pages(rt, need);
		quire_refuse_what(&refusal, QUIRE_AGAIN, "");
		refusal.owned = quire_ledger_owned(rt->ledger);
		refusal.free = free;
		refusal.retiring = rt->num_pages - refusal.owned - refusal.free;
		refuse(rt, planner->current, &refusal);
		return true;
	}
	if (quire_ledger_acquire(rt->ledger, planner->pages, need, NULL) != QUIRE_OK)
		QUIRE_ASSERT(false);
	quire_show_owned(rt);
	planner->state = QUIRE_PLANNER_SLOT;
	return true;
}

/* Build the plan in the next slot, and hold it or push it. */
static bool plan_step(struct quire_runtime *rt)
{
	struct quire_planner *planner = &rt->planner;
	struct quire_command_cell *cell = planner->current;
	bool speculative = is_speculative(cell);
	uint64_t step = planner->step + 1, depth = (uint64_t)rt->config.depth;
	/* Pairs with the release in the executor: the host half has been read. */
	uint64_t uploaded =
		atomic_load_explicit(&rt->numbers.uploaded_step, memory_order_acquire);
	struct quire_slot *slot = &rt->slots[step % depth];
	struct quire_held held;
	struct quire_outcome outcome = {
		.refusal.what = "",
		.step = step,
		.pages_taken = (int32_t)planner->need,
	};

	if (planner->num_held == rt->config.depth) /* the slot is a held step's */
		return park(planner);
	if (uploaded + depth < step ||
	    (!speculative && !quire_entries_have_room(&rt->entries)))
		return wait_on(rt, &planner->slot_wait_ns);
	quire_hold(rt, cell, quire_carry_out(rt, cell, slot));
	slot->plan.taken = planner->pages;
	slot->plan.num_taken = (int32_t)planner->need;
	if (rt->config.on_plan != NULL &&
	    rt->config.on_plan(rt->config.on_plan_argument, &slot->plan) != QUIRE_OK) {
		quire_runtime_fail_step(rt, cell->ticket, QUIRE_CALLBACK, "on_plan");
		quire_take_back_newest(rt);
		end_command(rt, quire_runtime_failed(rt));
		return true;
	}
	planner->planned = true;
	atomic_store_explicit(&planner->steps, step, memory_order_relaxed);
	quire_show_owned(rt);
	if (speculative) {
		decide(rt, &outcome, QUIRE_STAGE_PLANNED);
		quire_count_held(planner);
		return true;
	}
	/* Who waits for PLANNED finds the step in a snapshot, and the ticket says so before
	 * the executor can move it on. */
	held = quire_settle_oldest(rt);
	decide(rt, &outcome, QUIRE_STAGE_PLANNED);
	quire_push_step(rt, &held);
	return true;
}

/* ------------------------------------------------------------ the control lane */

/* A refused step was promoted: what it answered is the last word. */
static void end_refused(struct quire_runtime *rt, const struct quire_refused *refused)
{
	const struct quire_ticket_cell *cell =
		quire_ticket_cell(&rt->tickets, refused->ticket);

	quire_record_fate(rt, refused->ticket, QUIRE_EVENT_PROMOTED);
	count_end(&rt->planner, cell->outcome.refusal.status);
	quire_end_step(rt, refused->ticket, refused->done, refused->done_argument);
}

/* A refused step's ticket ends once its fate is known and nothing below can end it
 * otherwise. Its place is kept until no step that rests on it can come any more. */
static bool hear_refused(struct quire_runtime *rt, struct quire_refused *refused,
                         const struct quire_command_cell *front)
{
	struct quire_planner *planner = &rt->planner;

	if (refused->fate_position == 0) {
		if (refused->fate == QUIRE_FATE_OPEN)
			return false;
		for (int32_t i = 0;
		     refused->fate == QUIRE_FATE_PROMOTE && i < planner->num_held; i++)
			if (planner->held[i].ticket == refused->base)
				return false;
		refused->fate_position = refused->drawn;
		if (refused->fate == QUIRE_FATE_ABANDON)
			end_speculative(rt, refused->ticket, refused->done,
			                refused->done_argument);
		else
			end_refused(rt, refused);
		return true;
	}
	if (front != NULL && front->ticket < refused->fate_position)
		return false;
	planner->num_refused--;
	memmove(refused, refused + 1,
	        (size_t)(planner->refused + planner->num_refused - refused) *
	                sizeof(*refused));
	return true;
}

/* Newest first, as all that an abandon ends: who has seen one of them abandoned, and
 * looks at those above it then, sees them so. */
static bool hear_all_refused(struct quire_runtime *rt,
                             const struct quire_command_cell *front)
{
	struct quire_planner *planner = &rt->planner;
	bool moved = false;

	for (int32_t i = 0; i < planner->num_refused; i++)
		planner->refused[i].fate = fate_of(rt, planner->refused[i].ticket,
		                                   &planner->refused[i].drawn);
	for (int32_t i = planner->num_refused - 1; i >= 0; i--)
		moved |= hear_refused(rt, &planner->refused[i], front);
	return moved;
}

static bool newest_is_abandoned(struct quire_runtime *rt)
{
	const struct quire_planner *planner = &rt->planner;

	return planner->num_held > 0 &&
	       fate_of(rt, planner->held[planner->num_held - 1].ticket, NULL) ==
	               QUIRE_FATE_ABANDON;
}

/*
 * Promotes and abandons, heard in every state.  @front is what the ordinary lane offered
 * before: whatever fate was drawn earlier is seen here.
 */
static bool hear(struct quire_runtime *rt, const struct quire_command_cell *front)
{
	struct quire_planner *planner = &rt->planner;
	bool ends = newest_is_abandoned(rt), moved;

	/* After the look at what is below: who is abandoned there is so here. */
	if (planner->current != NULL &&
	    fate_of(rt, planner->current->ticket, NULL) == QUIRE_FATE_ABANDON) {
		drop_step(rt);
		end_command(rt, &abandoned);
		return true;
	}
	moved = hear_all_refused(rt, front);
	if (ends) { /* and no step is in hand: it would rest on that one */
		end_newest(rt);
		return true;
	}
	while (planner->num_held > 0 &&
	       fate_of(rt, planner->held[0].ticket, NULL) == QUIRE_FATE_PROMOTE &&
	       quire_entries_have_room(&rt->entries)) {
		const struct quire_held held = quire_settle_oldest(rt);

		quire_count(&planner->promoted, 1);
		quire_record_fate(rt, held.ticket, QUIRE_EVENT_PROMOTED);
		quire_push_step(rt, &held);
		quire_count_held(planner);
		moved = true;
	}
	return moved;
}

/* Does a stacked step rest on one that was refused? */
static bool rests_on_refused(const struct quire_planner *planner, uint64_t base)
{
	for (int32_t i = 0; base != 0 && i < planner->num_refused; i++)
		if (planner->refused[i].ticket == base)
			return true;
	return false;
}

/* ------------------------------------------------------------------ the machine */

static void run_command(struct quire_runtime *rt, const struct quire_command_cell *cell)
{
	struct quire_outcome outcome = {.refusal.what = ""};
	struct quire_refusal refusal;
	enum quire_status status = QUIRE_OK;

	if (cell->kind == QUIRE_COMMAND_OPEN)
		status = quire_command_open(rt, cell, &refusal);
	else if (cell->kind == QUIRE_COMMAND_CLOSE)
		status = quire_command_close(rt, cell, &refusal);
	else if (cell->kind == QUIRE_COMMAND_RESET)
		status = quire_command_reset(rt, cell, &refusal);
	else if (cell->kind == QUIRE_COMMAND_REWIND)
		status = quire_command_rewind(rt, cell, &refusal);
	else
		status = quire_command_release_front(rt, cell, &refusal,
		                                     &outcome.pages_released);
	if (status != QUIRE_OK) {
		refuse(rt, cell, &refusal);
		return;
	}
	quire_push_release(rt, rt->entries.staged);
	quire_show_owned(rt);
	atomic_store_explicit(&rt->planner.requests_open, (uint64_t)rt->registry.num_open,
	                      memory_order_relaxed);
	decide(rt, &outcome, QUIRE_STAGE_RETIRED);
}

/* Was it abandoned before it was reached? */
static bool is_doomed(struct quire_runtime *rt, const struct quire_command_cell *cell)
{
	return is_speculative(cell) &&
	       fate_of(rt, cell->ticket, NULL) == QUIRE_FATE_ABANDON;
}

/* The oldest command.  What rests on no held step waits until there is none. */
static bool fetch(struct quire_runtime *rt, struct quire_command_cell *cell)
{
	struct quire_planner *planner = &rt->planner;

	if (cell == NULL)
		return false;
	if (!quire_record_has_room(rt, cell))
		return wait_on(rt, &planner->record_wait_ns);
	if (is_doomed(rt, cell)) {
		end_command(rt, &abandoned);
		return true;
	}
	/* A place among the refused comes free when the executor makes room: those that
	 * wait for a fate have theirs in the clients' list. */
	if (is_speculative(cell) && planner->num_refused == rt->config.speculative_max)
		return wait_on(rt, &planner->slot_wait_ns);
	if (rests_on_refused(planner, cell->base)) {
		refuse(rt, cell, &abandoned);
		return true;
	}
	if (planner->num_held > 0 && cell->base == 0)
		return park(planner);
	if (cell->kind == QUIRE_COMMAND_SUBMIT) {
		admit_step(rt, cell);
		return true;
	}
	if (!quire_entries_have_room(&rt->entries))
		return wait_on(rt, &planner->slot_wait_ns);
	run_command(rt, cell);
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

/* End what is in hand, or held, or the oldest command, without doing it. */
static bool drop_one(struct quire_runtime *rt, const struct quire_refusal *refusal,
                     const struct quire_command_cell *front)
{
	struct quire_planner *planner = &rt->planner;

	if (planner->current != NULL) {
		drop_step(rt);
		end_command(rt, refusal);
		return true;
	}
	if (quire_runtime_failed(rt) != NULL && planner->num_held > 0) {
		end_newest(rt);
		return true;
	}
	if (quire_runtime_failed(rt) != NULL && planner->num_refused > 0) {
		struct quire_refused last = planner->refused[--planner->num_refused];

		if (last.fate_position == 0)
			end_speculative(rt, last.ticket, last.done, last.done_argument);
		return true;
	}
	if (front == NULL)
		return false;
	if (!quire_record_has_room(rt, front))
		return wait_on(rt, &planner->record_wait_ns);
	end_command(rt, is_doomed(rt, front) ? &abandoned : refusal);
	return true;
}

static bool move_one(struct quire_runtime *rt)
{
	struct quire_planner *planner = &rt->planner;
	/* Looked at before the fates: see hear. */
	struct quire_command_cell *front = quire_commands_front(&rt->commands);
	const struct quire_refusal *refusal = stopped(rt);

	if (quire_runtime_failed(rt) == NULL && hear(rt, front))
		return true;
	if (refusal != NULL)
		return drop_one(rt, refusal, front);
	switch (planner->state) {
	case QUIRE_PLANNER_FETCH:
		return fetch(rt, front);
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

#ifdef QUIRE_DEBUG
/* A program's memory hook may have nothing left for the walk. */
static enum quire_status check_move(struct quire_runtime *rt)
{
	struct quire_refusal refusal;
	enum quire_status status = quire_check_all(rt, &refusal);

	return status == QUIRE_NO_MEMORY ? QUIRE_OK : status;
}
#endif

bool quire_planner_move(struct quire_runtime *rt)
{
	struct quire_planner *planner = &rt->planner;
	int64_t spent_ns;
	bool moved;

	if (rt->config.on_poll != NULL)
		rt->config.on_poll(rt->config.on_poll_argument, QUIRE_ROLE_PLANNER);
	planner->inside = true;
	planner->planned = planner->parked = false;
	moved = answer_check(rt);
	planner->move_ns = quire_runtime_now(rt);
	if (move_one(rt)) {
		moved = true;
		wait_over(rt);
		spent_ns = quire_runtime_now(rt) - planner->move_ns;
		quire_count(&planner->busy_ns, (uint64_t)spent_ns);
		planner->plan_ns += spent_ns;
		if (planner->planned)
			quire_histogram_add(&planner->plan_time, planner->plan_ns);
		QUIRE_CHECK(check_move(rt));
	}
	show_parked(rt);
	planner->inside = false;
	return moved;
}

bool quire_planner_is_idle(struct quire_runtime *rt)
{
	return rt->planner.state == QUIRE_PLANNER_FETCH && rt->planner.num_held == 0 &&
	       rt->planner.num_refused == 0 &&
	       quire_commands_front(&rt->commands) == NULL;
}
