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

/* Follow everything that was given, then compare while the planner has nothing to do. */
static void catch_up(struct sim *sim, enum quire_stage stage)
{
	struct quire_outcome outcome;

	if (sim->drawn > 0)
		await(sim, sim->drawn, stage, &outcome);
	while (sim->decided < sim->drawn && !sim->failed) {
		bool read = await(sim, sim->decided + 1, QUIRE_STAGE_PLANNED, &outcome);

		if (!sim->failed)
			sim_follow(sim, read ? &outcome : NULL);
	}
	if (!sim->failed)
		sim_compare_streams(sim);
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
		sim_fail(sim, sim->by_ticket[sim->decided], "check: %s", refusal.what);
}

void sim_drive_threads(struct sim *sim, const struct sim_mode *mode)
{
	for (int32_t i = 0; i < sim->list->num_commands && !sim->failed; i++) {
		if (sim->list->commands[i].dropped)
			continue;
		while (!sim_give(sim, i, dice_percent(&sim->dice, 40)) && !sim->failed)
			sched_yield();
		if (mode->delays && dice_percent(&sim->dice, 5))
			usleep((useconds_t)(1 + dice_below(&sim->dice, 100)));
		if (sim->check_each && !sim->failed)
			check(sim);
		if (dice_percent(&sim->dice, 10) && !sim->failed)
			catch_up(sim, QUIRE_STAGE_PLANNED);
	}
	if (!sim->failed)
		catch_up(sim, QUIRE_STAGE_RETIRED);
	for (uint64_t ticket = 1; ticket <= sim->drawn && !sim->failed; ticket++) {
		struct quire_outcome outcome;

		await(sim, ticket, QUIRE_STAGE_RETIRED, &outcome);
	}
	if (sim->failed)
		return;
	await_pages(sim);
	sim_compare_end(sim);
}
