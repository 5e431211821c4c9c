/* SPDX-License-Identifier: MIT */
/* The client of a simulated run: gives commands, and sees to it that the model draws what
 * the runtime draws. */
#include "config.h"

#include "sim_run.h"

#include <string.h>

/* Refused at the call: it draws no position and changes nothing. */
static void follow_refused_call(struct sim *sim, const struct sim_record *record,
                                enum quire_status status)
{
	static struct model_answer answer;
	static struct model copy;

	copy = sim->order.model;
	model_apply(&copy, &record->command, 0, false, &answer);
	sim->cover->refused_at_call++;
	if (status == QUIRE_LIMIT && (record->step.flags & QUIRE_STEP_SPECULATIVE) != 0 &&
	    order_num_unsettled(&sim->order) == sim->list->config.speculative_max)
		return;
	if (!answer.form || answer.refusal.status != status)
		sim_fail(sim, record, "the call answers %s, the model %s",
		         quire_status_name(status),
		         quire_status_name(answer.refusal.status));
}

static enum quire_status call(struct sim *sim, const struct quire_command *command,
                              bool try_only, uint64_t *ticket,
                              struct quire_refusal *refusal)
{
	return try_only
	               ? quire_runtime_try_command(sim->runtime, command, ticket, refusal)
	               : quire_runtime_command(sim->runtime, command, ticket, refusal);
}

/* ------------------------------------------------------------------ fates */

/* What becomes of a step that the planner is known not to be past. */
static void cover_abandon(struct sim *sim, uint64_t ticket)
{
	int32_t first = order_find(&sim->order, ticket);

	for (int32_t i = first; i < sim->order.drawn; i++) {
		struct sim_cover *cover = sim->cover;

		if (sim->order.entries[i].fate != FATE_OPEN)
			continue;
		if (i < sim->order.followed)
			cover->abandoned_held +=
				sim->order.entries[i].refusal.status == QUIRE_OK;
		else if (i > sim->order.followed || sim->waiting == SIM_MOVES)
			cover->abandoned_early++;
		else if (sim->waiting == SIM_WAITS_PAGES)
			cover->abandoned_waiting_pages++;
		else if (sim->waiting == SIM_WAITS_SLOT)
			cover->abandoned_waiting_slot++;
	}
}

static void draw_fate(struct sim *sim, enum quire_command_kind kind, uint64_t ticket)
{
	int32_t taken = 0;

	if (kind == QUIRE_COMMAND_ABANDON) {
		cover_abandon(sim, ticket);
		for (int32_t i = 0; i < sim->order.num_held; i++)
			taken += sim->order.entries[sim->order.held[i].entry].pages_taken;
		sim->any_abandon = true;
	}
	REQUIRE(order_resolve(&sim->order, kind, ticket));
	for (int32_t i = 0; i < sim->order.num_held && taken > 0; i++)
		taken -= sim->order.entries[sim->order.held[i].entry].pages_taken;
	sim->stash += taken;
	sim->unheard = true;
}

/* A promote or abandon never waits, and is decided when it is given. */
static void give_fate(struct sim *sim, const struct sim_record *record,
                      enum quire_command_kind kind, uint64_t target)
{
	const struct quire_command command = {.kind = kind, .target = target};
	struct quire_refusal refusal = {.what = ""};
	bool open = order_is_open(&sim->order, target);
	enum quire_status status;
	uint64_t ticket = 0;

	status = call(sim, &command, dice_percent(&sim->dice, 50), &ticket, &refusal);
	if (ticket > sim->drawn)
		sim->drawn = ticket;
	if ((sim->cancelled && status == QUIRE_CLOSED) || sim->broken)
		return;
	if (status != (open ? QUIRE_OK : QUIRE_INVALID))
		sim_fail(sim, record, "the fate of %llu, %s, is answered with %s",
		         (unsigned long long)target, open ? "open" : "not open",
		         quire_status_name(status));
	else if (open)
		draw_fate(sim, kind, target);
	else if (refusal.ticket != target)
		sim_fail(sim, record, "INVALID names %llu, not %llu",
		         (unsigned long long)refusal.ticket, (unsigned long long)target);
	sim->cover->invalid_fates += !open;
}

void sim_resolve(struct sim *sim, enum quire_command_kind kind, uint64_t ticket)
{
	give_fate(sim, NULL, kind, ticket);
}

uint64_t sim_lowest_open(const struct sim *sim)
{
	for (int32_t i = 0; i < sim->order.drawn; i++)
		if (sim->order.entries[i].speculative &&
		    sim->order.entries[i].fate == FATE_OPEN)
			return sim->order.entries[i].ticket;
	return 0;
}

void sim_make_way(struct sim *sim, uint64_t ticket)
{
	const struct list *list = sim->list;

	for (int32_t i = 0; i < list->num_commands; i++) {
		const struct list_command *c = &list->commands[i];
		enum quire_command_kind kind = c->command.kind;

		if (c->dropped || sim->records[i].given ||
		    (kind != QUIRE_COMMAND_PROMOTE && kind != QUIRE_COMMAND_ABANDON) ||
		    sim->records[c->target].ticket != ticket)
			continue;
		sim->records[i].given = true;
		give_fate(sim, &sim->records[i], kind, ticket);
		return;
	}
	give_fate(sim, NULL, QUIRE_COMMAND_PROMOTE, ticket);
}

/* ------------------------------------------------------------------ other commands */

static void prepare(struct sim *sim, struct sim_record *record, int32_t number)
{
	const struct list_command *c = &sim->list->commands[number];

	record->sim = sim;
	record->number = number;
	record->command = c->command;
	if (c->command.kind != QUIRE_COMMAND_SUBMIT)
		return;
	record->step = c->step;
	record->step.run = sim_run_step;
	record->step.run_argument = record;
	record->step.done = sim_done;
	record->step.done_argument = record;
	record->command.step = &record->step;
}

/* The queue is full: behind a step whose fate is open, or for a while. */
static enum quire_status not_taken(struct sim *sim, const struct sim_record *record,
                                   enum quire_status status,
                                   const struct quire_refusal *refusal)
{
	if (status != QUIRE_HELD) {
		sim->cover->queue_full++;
		return QUIRE_AGAIN;
	}
	sim->cover->held_answers++;
	if (!order_is_open(&sim->order, refusal->ticket))
		sim_fail(sim, record, "HELD by %llu, whose fate is not open",
		         (unsigned long long)refusal->ticket);
	else
		sim_make_way(sim, refusal->ticket);
	return QUIRE_HELD;
}

enum quire_status sim_give(struct sim *sim, int32_t number, bool try_only)
{
	const struct list_command *c = &sim->list->commands[number];
	struct sim_record *record = &sim->records[number];
	struct quire_refusal refusal = {.what = ""};
	enum quire_status status;
	uint64_t ticket = 0, expected = sim->drawn + 1;

	if (record->given)
		return QUIRE_OK;
	prepare(sim, record, number);
	if (c->command.kind == QUIRE_COMMAND_PROMOTE ||
	    c->command.kind == QUIRE_COMMAND_ABANDON) {
		record->given = true;
		give_fate(sim, record, c->command.kind, sim->records[c->target].ticket);
		return QUIRE_OK;
	}
	sim->by_ticket[expected] = record;
	record->ticket = expected;
	status = call(sim, &record->command, try_only, &ticket, &refusal);
	if (status == QUIRE_OK) {
		if (ticket != expected)
			sim_fail(sim, record, "ticket %llu after %llu",
			         (unsigned long long)ticket,
			         (unsigned long long)sim->drawn);
		sim->drawn = expected;
		record->given = true;
		order_draw(&sim->order, &record->command, expected);
		return QUIRE_OK;
	}
	sim->by_ticket[expected] = NULL;
	record->ticket = 0;
	if (status == QUIRE_HELD ||
	    status == (try_only ? QUIRE_AGAIN : QUIRE_WOULD_BLOCK))
		return not_taken(sim, record, status, &refusal);
	record->given = true;
	if ((!sim->cancelled || status != QUIRE_CLOSED) && !sim->broken)
		follow_refused_call(sim, record, status);
	return QUIRE_OK;
}
