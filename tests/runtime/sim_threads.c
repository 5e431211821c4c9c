/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "sim_run.h"

#include <sched.h>
#include <time.h>
#include <unistd.h>

/* The longest wait before a run counts as stuck. */
#define STUCK_S 20

void sim_delay(void *argument, enum quire_role role)
{
	static _Thread_local struct dice dice;
	const struct sim *sim = argument;
	int32_t roll;

	if (dice.state == 0)
		dice_seed(&dice, sim->list->seed * 2 + (role == QUIRE_ROLE_PLANNER));
	roll = dice_below(&dice, 100);
	if (roll < 4)
		usleep((useconds_t)(1 + dice_below(&dice, 60)));
	else if (roll < 12)
		sched_yield();
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ll + now.tv_nsec;
}

static int64_t deadline_ns(void)
{
	return now_ns() + STUCK_S * 1000000000ll;
}

/* Wait for a ticket and read what became of it; false: it never came, or is forgotten. */
static bool await(struct sim *sim, uint64_t ticket, enum quire_stage stage,
                  struct quire_outcome *outcome)
{
	enum quire_status status =
		quire_runtime_wait(sim->runtime, ticket, stage, deadline_ns(), outcome);

	if (status == QUIRE_INVALID && !sim_readable(sim, ticket))
		return false;
	if (status != QUIRE_OK) {
		sim_fail(sim, sim->by_ticket[ticket], "waiting for it answers %s",
		         quire_status_name(status));
		sim->stuck = true;
	}
	return status == QUIRE_OK;
}

/* Where a fate is open a step may have to wait for it: nobody waits for that step. */
static bool is_decided(struct sim *sim, uint64_t ticket)
{
	return quire_runtime_wait(sim->runtime, ticket, QUIRE_STAGE_PLANNED, 0, NULL) !=
	       QUIRE_TIMEOUT;
}

/* Follow everything that was given and can be decided, then compare while the planner has
 * nothing to do.  It is at rest once a self-check has been answered. */
static void catch_up(struct sim *sim, enum quire_stage stage)
{
	struct quire_outcome outcome;
	struct sim_record *record;

	while ((record = sim_next(sim)) != NULL && !sim->failed &&
	       !order_is_parked(&sim->order)) {
		bool read;

		if (order_num_open(&sim->order) > 0 && !is_decided(sim, record->ticket))
			return;
		read = await(sim, record->ticket, QUIRE_STAGE_PLANNED, &outcome);

		if (!sim->failed)
			sim_follow(sim, read ? &outcome : NULL);
	}
	if (stage == QUIRE_STAGE_PLANNED)
		return;
	for (int32_t i = 0; i < sim->order.followed && !sim->failed; i++)
		if (order_is_settled(&sim->order, i))
			await(sim, sim->order.entries[i].ticket, stage, &outcome);
	if (!sim->failed && sim_next(sim) == NULL && sim_lowest_open(sim) == 0)
		sim_compare_shown(sim, true);
}

/* Releases behind the last step come back on their own. */
static void await_pages(struct sim *sim)
{
	int64_t deadline = deadline_ns();
	struct quire_runtime_stats stats;

	do {
		sched_yield();
		quire_runtime_stats(sim->runtime, &stats);
	} while (stats.pages_retiring > 0 && now_ns() < deadline);
	sim->cover->page_waits += stats.page_wait_ns > 0;
	sim->cover->slot_waits += stats.slot_wait_ns > 0;
}

static void check(struct sim *sim)
{
	struct quire_refusal refusal = {.what = ""};

	if (quire_runtime_check(sim->runtime, &refusal) != QUIRE_OK)
		sim_fail(sim, sim_next(sim), "check: %s", refusal.what);
}

/* The queue may be full because fates are late: the client has to see to them. */
static void give(struct sim *sim, int32_t number)
{
	int64_t deadline = deadline_ns();

	while (!sim->failed &&
	       sim_give(sim, number, dice_percent(&sim->dice, 40)) != QUIRE_OK) {
		sched_yield();
		if (now_ns() > deadline)
			sim_fail(sim, &sim->records[number], "is never taken");
	}
}

void sim_drive_threads(struct sim *sim, const struct sim_mode *mode)
{
	for (int32_t i = 0; i < sim->list->num_commands && !sim->failed; i++) {
		if (sim->list->commands[i].dropped)
			continue;
		give(sim, i);
		if (mode->delays && dice_percent(&sim->dice, 5))
			usleep((useconds_t)(1 + dice_below(&sim->dice, 100)));
		if (sim->check_each && !sim->failed)
			check(sim);
		if (dice_percent(&sim->dice, 10) && !sim->failed)
			catch_up(sim, dice_percent(&sim->dice, 70) ? QUIRE_STAGE_PLANNED
			                                           : QUIRE_STAGE_RETIRED);
	}
	/* Here all fates are drawn in the end: what rests on an open one may wait. */
	while (sim_lowest_open(sim) != 0 && !sim->failed)
		sim_resolve(sim,
		            dice_percent(&sim->dice, 50) ? QUIRE_COMMAND_PROMOTE
		                                         : QUIRE_COMMAND_ABANDON,
		            sim_lowest_open(sim));
	if (!sim->failed)
		catch_up(sim, QUIRE_STAGE_RETIRED);
	if (sim->failed)
		return;
	await_pages(sim);
	sim_compare_end(sim);
}
