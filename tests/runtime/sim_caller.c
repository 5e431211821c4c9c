/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "sim_run.h"

#include "sim_device.h"

#include <sched.h>
#include <string.h>
#include <time.h>

/*
 * One thread is client, planner, executor and, with a stepped device, each of its
 * streams, as a seeded scheduler says, in bursts: so the queue fills, the planner runs
 * dry, waits for pages, slots and fates, and the executor and the device lag.
 */
enum actor {
	CLIENT,
	PLANNER,
	EXECUTOR,
	STREAMS, /* the first stream */
	ACTORS = STREAMS + SIM_STREAMS_MAX,
};

/* The longest that a device with threads may take for what it has, before a run counts as
 * stuck; otherwise the bound is on moves. */
#define STUCK_NS 20000000000ll

/* A device with threads that was quiet for so long, when nobody knows what to expect of
 * it: after a failure or a cancelling shutdown. */
#define REST_NS 2000000ll

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ll + now.tv_nsec;
}

/* ------------------------------------------------------------------ the planner */

static bool is_dropped(const struct quire_refusal *refusal)
{
	return refusal->status == QUIRE_CANCELLED || refusal->status == QUIRE_ABANDONED;
}

/* Has the runtime decided the next command?  Then the model does.  False: not yet. */
static bool follow_next(struct sim *sim)
{
	const struct sim_record *record = sim_next(sim);
	struct quire_outcome outcome;
	enum quire_status status;

	if (record == NULL || sim->broken || sim->failed)
		return false;
	status = quire_runtime_wait(sim->runtime, record->ticket, QUIRE_STAGE_PLANNED, 0,
	                            &outcome);
	if (status == QUIRE_INVALID && !sim_readable(sim, record->ticket)) {
		/* Its cell was drawn again, so it had been decided. */
		sim_follow(sim, NULL);
		return true;
	}
	if (status != QUIRE_OK || (sim->cancelled && is_dropped(&outcome.refusal)))
		return false;
	sim_follow(sim, &outcome);
	return true;
}

/* Pages that held steps have given up, and will give back once they are promoted. */
static int64_t pages_of_held(const struct sim *sim)
{
	const struct model_order *order = &sim->order;

	if (order->num_held == 0)
		return 0;
	return (int64_t)(order->model.counts.pages_given -
	                 order->held[0].before->counts.pages_given);
}

static enum sim_wait reason(struct sim *sim, const struct sim_record *record)
{
	static struct model_answer answer;
	static struct model copy;
	struct quire_runtime_stats stats;

	if (order_is_parked(&sim->order))
		return SIM_PARKED;
	copy = sim->order.model;
	if (!order_is_doomed(&sim->order))
		model_apply(&copy, &record->command, record->ticket, false, &answer);
	quire_runtime_stats(sim->runtime, &stats);
	if (order_is_doomed(&sim->order) || answer.refusal.status != QUIRE_OK)
		sim_fail(sim, record, "the planner waits with a command that ends as %s",
		         order_is_doomed(&sim->order)
		                 ? "ABANDONED"
		                 : quire_status_name(answer.refusal.status));
	else if (record->command.kind == QUIRE_COMMAND_SUBMIT &&
	         stats.pages_owned == sim->order.model.counts.pages_owned &&
	         stats.pages_free < answer.need)
		return SIM_WAITS_PAGES;
	sim->in_hand = answer.need;
	return SIM_WAITS_SLOT;
}

/* The planner did not move though a command is there: it must have a reason. */
static void note_wait(struct sim *sim)
{
	const struct sim_record *record = sim_next(sim);
	struct quire_runtime_stats stats;
	bool behind;

	sim->waiting = reason(sim, record);
	sim->cover->parked += sim->waiting == SIM_PARKED;
	sim->cover->page_waits += sim->waiting == SIM_WAITS_PAGES;
	sim->cover->slot_waits += sim->waiting == SIM_WAITS_SLOT;
	if (sim->waiting == SIM_PARKED || sim->failed)
		return;
	quire_runtime_stats(sim->runtime, &stats);
	behind = stats.steps_retired <
	                 sim->order.shown[sim->order.effects]->counts.steps_planned ||
	         stats.pages_retiring > pages_of_held(sim);
	if (behind)
		return;
	if (sim->waiting == SIM_WAITS_PAGES && pages_of_held(sim) > 0)
		sim->cover->held_page_waits++;
	else if (sim->waiting == SIM_WAITS_SLOT &&
	         sim->order.num_held == sim->list->config.depth)
		sim->cover->held_slot_waits++;
	else if (!quire_executor_poll(sim->runtime))
		sim_fail(sim, record, "the planner waits, and nothing is on its way");
}

static void check(struct sim *sim)
{
	struct quire_refusal refusal = {.what = ""};

	if (quire_runtime_check(sim->runtime, &refusal) != QUIRE_OK)
		sim_fail(sim, sim_next(sim), "check: %s, page %d", refusal.what,
		         refusal.page);
}

static bool poll_planner(struct sim *sim)
{
	bool moved = quire_planner_poll(sim->runtime);
	bool decided = follow_next(sim);

	if (decided && !moved)
		sim_fail(sim, sim_next(sim), "decided before it by a poll that says no");
	while (decided && follow_next(sim))
		continue;
	sim->waiting = SIM_MOVES;
	sim->in_hand = 0;
	if (sim->broken || sim->failed)
		return moved;
	if (!moved)
		sim->unheard = false;
	if (!sim->cancelled) {
		sim_compare_shown(sim, false);
		if (decided && !sim->unheard)
			sim_compare_counts(sim);
		if (!moved && sim_next(sim) != NULL)
			note_wait(sim);
	}
	if (sim->check_each && !sim->failed)
		check(sim);
	return moved;
}

/* ------------------------------------------------------------------ the others */

static bool poll_executor(struct sim *sim)
{
	bool moved = quire_executor_poll(sim->runtime);

	if (!sim->broken && quire_runtime_failure(sim->runtime, NULL) != QUIRE_OK) {
		sim->broken = true;
		sim->cover->failures_held += sim->order.num_held > 0;
		if (!sim->stepped || !sim_device_failed(sim->device))
			sim_fail(sim, NULL, "the runtime fails by itself");
	}
	return moved;
}

static bool poll_stream(struct sim *sim, int32_t stream)
{
	if (!sim->stepped || stream >= sim_device_streams(sim->device))
		return false;
	if (!sim_device_step(sim->device, stream))
		return false;
	if (sim->fail_in > 0 && --sim->fail_in == 0)
		sim_device_fail(sim->device);
	return true;
}

/* Asking never waits here, and never answers anything else. */
static void ask(struct sim *sim)
{
	uint64_t ticket = sim->drawn + 2 - (uint64_t)dice_below(&sim->dice, 6);
	enum quire_stage stage = (enum quire_stage)dice_below(&sim->dice, 4);
	bool patient = dice_percent(&sim->dice, 50);
	enum quire_status status, not_yet = patient ? QUIRE_WOULD_BLOCK : QUIRE_TIMEOUT;

	if (ticket > sim->drawn + 2 ||
	    (ticket <= sim->drawn && ticket > 0 &&
	     (!sim_readable(sim, ticket) || sim->by_ticket[ticket] == NULL)))
		return;
	if (ticket == 0 || ticket > sim->drawn)
		not_yet = QUIRE_INVALID;
	status = quire_runtime_wait(sim->runtime, ticket, stage,
	                            patient ? QUIRE_NO_DEADLINE : 0, NULL);
	if (status != not_yet && (status != QUIRE_OK || not_yet == QUIRE_INVALID))
		sim_fail(sim, NULL, "wait for ticket %llu answers %s",
		         (unsigned long long)ticket, quire_status_name(status));
}

/* Returns true when the command was taken, or answered for good. */
static bool give_next(struct sim *sim, const struct sim_mode *mode, int32_t number)
{
	if (sim->list->commands[number].dropped)
		return true;
	if (mode->cancel_at >= 0 && number >= mode->cancel_at && !sim->cancelled) {
		sim->cancelled = true;
		sim->cover->cancelled++;
		sim->cover->cancelled_waiting += sim->waiting != SIM_MOVES;
		if (quire_runtime_shutdown(sim->runtime, true) != QUIRE_OK)
			sim_fail(sim, NULL, "shutdown is refused");
	}
	return sim_give(sim, number, dice_percent(&sim->dice, 50)) == QUIRE_OK;
}

/* ------------------------------------------------------------------ rest */

/* Is all done that can be without another fate? */
static bool is_at_rest(struct sim *sim)
{
	const struct model_order *order = &sim->order;
	struct quire_runtime_stats stats;

	if (sim->broken || sim->cancelled)
		return true;
	quire_runtime_stats(sim->runtime, &stats);
	return (order->followed == order->drawn || order_num_open(order) > 0) &&
	       stats.pages_retiring == pages_of_held(sim) &&
	       stats.steps_retired == order->shown[order->effects]->counts.steps_planned;
}

/* Whatever can move moves, until nothing does; what then has work left is stuck. */
static void settle(struct sim *sim)
{
	int64_t since = now_ns();
	int32_t idle = 0;

	while (!sim->failed && idle < 3) {
		bool moved = poll_planner(sim);

		moved |= poll_executor(sim);
		for (int32_t i = 0; i < SIM_STREAMS_MAX; i++)
			moved |= poll_stream(sim, i);
		if (moved) {
			since = now_ns();
			idle = 0;
			continue;
		}
		if (sim->threaded &&
		    (!is_at_rest(sim) || sim->broken || sim->cancelled) &&
		    now_ns() - since < (is_at_rest(sim) ? REST_NS : STUCK_NS)) {
			sched_yield();
			continue;
		}
		idle++;
	}
	if (sim->failed || is_at_rest(sim))
		return;
	sim_fail(sim, sim_next(sim), "stands still: %d of %d followed, %d open",
	         sim->order.followed, sim->order.drawn, order_num_open(&sim->order));
	sim->stuck = true;
}

/* Everything behind the last followed command was dropped, and so was what was held. */
static void compare_cancelled(struct sim *sim)
{
	struct model_order *order = &sim->order;

	for (int32_t i = order->followed; i < order->drawn && !sim->failed; i++) {
		struct sim_record *record = sim->by_ticket[order->entries[i].ticket];
		struct quire_outcome outcome;

		if (sim_readable(sim, record->ticket) &&
		    (quire_runtime_wait(sim->runtime, record->ticket, QUIRE_STAGE_RETIRED,
		                        0, &outcome) != QUIRE_OK ||
		     !is_dropped(&outcome.refusal)))
			sim_fail(sim, record, "was not cancelled");
		if (record->device != NULL)
			sim_fail(sim, record, "was run and then cancelled");
	}
	while (sim_lowest_open(sim) != 0)
		order_resolve(order, QUIRE_COMMAND_ABANDON, sim_lowest_open(sim));
	sim->any_abandon = true;
}

static void finish(struct sim *sim)
{
	settle(sim);
	if (sim->failed)
		return;
	if (sim->broken) {
		sim_compare_broken(sim);
		return;
	}
	if (sim->cancelled)
		compare_cancelled(sim);
	if (!sim->failed)
		sim_compare_end(sim);
}

/* ------------------------------------------------------------------ the scheduler */

static void act(struct sim *sim, const struct sim_mode *mode, int32_t actor,
                int32_t *number)
{
	if (actor == CLIENT && *number < sim->list->num_commands)
		*number += give_next(sim, mode, *number);
	else if (actor == PLANNER)
		poll_planner(sim);
	else if (actor == EXECUTOR)
		poll_executor(sim);
	else if (actor >= STREAMS)
		poll_stream(sim, actor - STREAMS);
	if (dice_percent(&sim->dice, 3))
		ask(sim);
}

static int32_t draw_actor(struct sim *sim, const int32_t *weights, int32_t sum)
{
	int32_t roll = dice_below(&sim->dice, sum), actor = 0;

	while (roll >= weights[actor])
		roll -= weights[actor++];
	return actor;
}

void sim_drive_caller(struct sim *sim, const struct sim_mode *mode)
{
	int32_t number = 0, weights[ACTORS], sum = 0;
	int64_t moves = 0, moves_max = 20000 + 4000 * (int64_t)sim->list->num_commands;

	sim->threaded = strcmp(mode->device, "cpu") == 0;
	if (sim->threaded) /* the device's threads have a time of their own */
		moves_max *= 100;
	sim->fail_in = mode->fail_at;
	for (int32_t i = 0; i < ACTORS; i++) {
		bool present = i < STREAMS || sim->stepped;

		weights[i] = present ? 1 + dice_below(&sim->dice, 10) : 0;
		sum += weights[i];
	}
	while (number < sim->list->num_commands && !sim->failed) {
		int32_t actor = draw_actor(sim, weights, sum);

		for (int32_t burst = 1 + dice_below(&sim->dice, 8); burst > 0; burst--)
			act(sim, mode, actor, &number);
		if (++moves > moves_max)
			sim_fail(sim, NULL, "does not come to an end: command %d of %d",
			         number, sim->list->num_commands);
	}
	finish(sim);
}
