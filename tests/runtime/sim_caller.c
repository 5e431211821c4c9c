/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "sim_run.h"

#include <sched.h>
#include <time.h>

/*
 * One thread is client, planner and executor, as a seeded scheduler says, in bursts: so
 * the queue fills, the planner runs dry, waits for pages and for slots, and the executor
 * lags.
 */
enum actor {
	CLIENT,
	PLANNER,
	EXECUTOR,
	ACTORS,
};

/* The longest that a device may take for what it has, before a run counts as stuck. */
#define STUCK_NS 20000000000ll

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ll + now.tv_nsec;
}

/* Has the runtime decided the next ticket?  Then the model does.  False: not yet. */
static bool follow_next(struct sim *sim)
{
	struct quire_runtime_stats stats;
	struct quire_outcome outcome;
	uint64_t next = sim->decided + 1;

	if (next > sim->drawn)
		return false;
	quire_runtime_stats(sim->runtime, &stats);
	if (!sim_readable(sim, next)) {
		if (sim->cancelled || stats.commands <= sim->decided)
			return false;
		sim_follow(sim, NULL);
		return true;
	}
	if (quire_runtime_wait(sim->runtime, next, QUIRE_STAGE_PLANNED, 0, &outcome) !=
	    QUIRE_OK)
		return false;
	if (sim->cancelled && outcome.refusal.status == QUIRE_CANCELLED)
		return false;
	sim_follow(sim, &outcome);
	return true;
}

/* The planner did not move though a command is there: it must have a reason. */
static void note_wait(struct sim *sim)
{
	static struct model copy;
	struct sim_record *record = sim->by_ticket[sim->decided + 1];
	struct quire_runtime_stats stats;
	bool took;

	copy = sim->model;
	model_apply(&copy, &record->command, false, &sim->answer);
	quire_runtime_stats(sim->runtime, &stats);
	took = stats.pages_owned > sim->model.counts.pages_owned;
	if (sim->answer.refusal.status != QUIRE_OK)
		sim_fail(sim, record, "the planner waits with a command that ends as %s",
		         quire_status_name(sim->answer.refusal.status));
	else if (record->command.kind == QUIRE_COMMAND_SUBMIT && !took &&
	         stats.pages_free < sim->answer.need)
		sim->cover->page_waits++;
	else if (stats.steps_retired == stats.steps_planned &&
	         stats.pages_retiring == 0 && !quire_executor_poll(sim->runtime))
		sim_fail(sim, record, "the planner waits, and nothing is on its way");
	else
		sim->cover->slot_waits++;
}

static bool poll_planner(struct sim *sim)
{
	bool moved = quire_planner_poll(sim->runtime);
	bool decided = follow_next(sim);

	if (decided && !moved)
		sim_fail(sim, sim->by_ticket[sim->decided],
		         "decided by a poll that says no");
	if (decided && follow_next(sim))
		sim_fail(sim, sim->by_ticket[sim->decided], "two commands in one poll");
	if (decided && !sim->failed) {
		sim_compare_streams(sim);
		sim_compare_counts(sim);
	}
	sim->waiting = !moved && sim->decided < sim->drawn;
	if (sim->waiting && !sim->cancelled)
		note_wait(sim);
	if (sim->check_each && !sim->failed) {
		struct quire_refusal refusal = {.what = ""};

		if (quire_runtime_check(sim->runtime, &refusal) != QUIRE_OK)
			sim_fail(sim, sim->by_ticket[sim->decided], "check: %s",
			         refusal.what);
	}
	return moved;
}

/* Asking never waits here, and never answers anything else. */
static void ask(struct sim *sim)
{
	uint64_t ticket = sim->decided + (uint64_t)dice_below(&sim->dice, 3);
	enum quire_stage stage = (enum quire_stage)dice_below(&sim->dice, 4);
	bool patient = dice_percent(&sim->dice, 50);
	enum quire_status status, not_yet = patient ? QUIRE_WOULD_BLOCK : QUIRE_TIMEOUT;

	if (ticket >= 1 && ticket <= sim->drawn && !sim_readable(sim, ticket))
		return;
	if (ticket < 1 || ticket > sim->drawn)
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
		sim->cover->cancelled_waiting += sim->waiting;
		if (quire_runtime_shutdown(sim->runtime, true) != QUIRE_OK)
			sim_fail(sim, NULL, "shutdown is refused");
	}
	return sim_give(sim, number, dice_percent(&sim->dice, 50));
}

/* Alternate until everything is done; whatever stands still with work left is stuck. */
static void drain(struct sim *sim)
{
	int64_t idle_since = now_ns();

	while (!sim->failed) {
		struct quire_runtime_stats stats;
		bool moved = poll_planner(sim);

		moved |= quire_executor_poll(sim->runtime);
		quire_runtime_stats(sim->runtime, &stats);
		if (moved) {
			idle_since = now_ns();
			continue;
		}
		if ((sim->cancelled || sim->decided == sim->drawn) &&
		    stats.pages_retiring == 0 &&
		    stats.steps_retired == stats.steps_planned)
			return;
		if (now_ns() - idle_since > STUCK_NS) {
			sim_fail(sim, NULL, "stuck: %llu of %llu decided",
			         (unsigned long long)sim->decided,
			         (unsigned long long)sim->drawn);
			sim->stuck = true;
		}
		sched_yield();
	}
}

/* Everything behind the last decided ticket was cancelled. */
static void compare_cancelled(struct sim *sim)
{
	for (uint64_t ticket = sim->decided + 1; ticket <= sim->drawn && !sim->failed;
	     ticket++) {
		struct sim_record *record = sim->by_ticket[ticket];
		struct quire_outcome outcome;

		if (!sim_readable(sim, ticket))
			continue;
		if (quire_runtime_wait(sim->runtime, ticket, QUIRE_STAGE_RETIRED, 0,
		                       &outcome) != QUIRE_OK ||
		    outcome.refusal.status != QUIRE_CANCELLED)
			sim_fail(sim, record, "was not cancelled");
		if (record->host != NULL)
			sim_fail(sim, record, "was planned and then cancelled");
	}
}

void sim_drive_caller(struct sim *sim, const struct sim_mode *mode)
{
	int32_t number = 0, weights[ACTORS];

	for (int32_t i = 0; i < ACTORS; i++)
		weights[i] = 1 + dice_below(&sim->dice, 10);
	while (number < sim->list->num_commands && !sim->failed) {
		int32_t roll =
			dice_below(&sim->dice, weights[0] + weights[1] + weights[2]);
		enum actor actor = roll < weights[0]                ? CLIENT
		                   : roll < weights[0] + weights[1] ? PLANNER
		                                                    : EXECUTOR;

		for (int32_t burst = 1 + dice_below(&sim->dice, 8); burst > 0; burst--) {
			if (actor == CLIENT && number < sim->list->num_commands)
				number += give_next(sim, mode, number);
			else if (actor == PLANNER)
				poll_planner(sim);
			else if (actor == EXECUTOR)
				quire_executor_poll(sim->runtime);
			if (dice_percent(&sim->dice, 3))
				ask(sim);
		}
	}
	drain(sim);
	if (sim->failed)
		return;
	if (sim->cancelled)
		compare_cancelled(sim);
	sim_compare_end(sim);
}
