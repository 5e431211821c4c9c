/* SPDX-License-Identifier: MIT */
/*
 * One list of commands, one answer: whatever the ring's depth, the device, the threads
 * and their delays, every outcome, every table, every page id and the run's digest are
 * the same.
 */
#include "config.h"

#include "model_lists.h"
#include "tests/run_suite.h"

#include <check.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIST_COMMANDS 500

/* How a list is run. */
struct way {
	int32_t depth;
	const char *device;
	enum quire_threads threads;
	bool delays;
};

/* What came of one command. */
struct result {
	uint64_t ticket; /* 0: refused at the call */
	enum quire_status status;
	int64_t detail;
	uint64_t digest;        /* the executor's */
	uint64_t planned;       /* the same, computed on the planner */
	struct image *image;    /* all tables, page ids among them */
	uint32_t delay_us;      /* of the step's work */
	struct quire_step step; /* with that work */
};

struct run {
	const struct list *list;
	struct way way;
	struct dice dice;
	struct quire_device *device;
	struct quire_cache *cache;
	struct quire_runtime *runtime;
	uint64_t drawn;
	struct result *by_ticket[LIST_COMMANDS + 2];
	struct result results[LIST_COMMANDS];
	uint64_t digest; /* of the run */
};

static enum quire_status on_plan(void *argument, struct quire_plan *plan)
{
	static _Thread_local struct image image;
	struct run *run = argument;
	struct result *result = run->by_ticket[plan->ticket];

	image_of_plan(&image, plan, false);
	result->image = image_copy(&image);
	result->planned = quire_plan_digest(plan);
	return QUIRE_OK;
}

static void lose_time(void *argument, enum quire_role role)
{
	static _Thread_local struct dice dice;
	const struct run *run = argument;
	int32_t roll;

	if (dice.state == 0)
		dice_seed(&dice, run->list->seed * 2 + (uint64_t)role);
	roll = dice_below(&dice, 100);
	if (roll < 3)
		usleep((useconds_t)(1 + dice_below(&dice, 40)));
	else if (roll < 10)
		sched_yield();
}

static enum quire_status work_slowly(void *argument)
{
	const struct result *result = argument;

	usleep(result->delay_us);
	return QUIRE_OK;
}

static enum quire_status run_step(void *argument, const struct quire_plan *plan,
                                  struct quire_dstream *compute)
{
	struct result *result = argument;

	(void)plan;
	if (result->delay_us == 0)
		return QUIRE_OK;
	return quire_dstream_call(compute, work_slowly, result);
}

/* ------------------------------------------------------------------ a run */

static void begin(struct run *run)
{
	const struct quire_shape shape = {
		.layout = QUIRE_NHD,
		.dtype = QUIRE_F32,
		.num_layers = 1,
		.num_pages = run->list->num_pages,
		.page_size = run->list->page_size,
		.num_kv_heads = 1,
		.head_dim = 1,
	};
	struct quire_runtime_config config = run->list->config;

	ck_assert_int_eq(quire_device_create(run->way.device, &run->device, NULL),
	                 QUIRE_OK);
	ck_assert_int_eq(quire_cache_create(run->device, &shape, &run->cache, NULL),
	                 QUIRE_OK);
	config.cache = run->cache;
	config.threads = run->way.threads;
	config.depth = run->way.depth;
	config.digests = true;
	config.on_plan = on_plan;
	config.on_plan_argument = run;
	if (run->way.delays && run->way.threads == QUIRE_THREADS_LIBRARY)
		config.on_poll = lose_time;
	config.on_poll_argument = run;
	ck_assert_int_eq(quire_runtime_create(&config, &run->runtime, NULL), QUIRE_OK);
}

static bool poll_one(struct run *run)
{
	bool planner = !run->way.delays || dice_percent(&run->dice, 50);
	bool moved = false;

	if (planner)
		moved = quire_planner_poll(run->runtime);
	if (!planner || !run->way.delays)
		moved |= quire_executor_poll(run->runtime);
	return moved;
}

/* A promote or abandon is answered at once, and has no outcome. */
static void give_fate(struct run *run, int32_t number)
{
	const struct list_command *c = &run->list->commands[number];
	struct quire_command command = c->command;
	uint64_t ticket = 0;

	command.target = run->results[c->target].ticket;
	run->results[number].status =
		quire_runtime_command(run->runtime, &command, &ticket, NULL);
	if (ticket > run->drawn)
		run->drawn = ticket;
}

/* Give one command, however often it takes. */
static void give(struct run *run, int32_t number)
{
	struct result *result = &run->results[number];
	struct quire_command command = run->list->commands[number].command;
	enum quire_status status;

	if (command.kind == QUIRE_COMMAND_PROMOTE ||
	    command.kind == QUIRE_COMMAND_ABANDON) {
		give_fate(run, number);
		return;
	}
	if (command.kind == QUIRE_COMMAND_SUBMIT) {
		result->step = *command.step;
		result->step.flags &= ~QUIRE_STEP_NO_WAIT;
		result->step.run = run_step;
		result->step.run_argument = result;
		command.step = &result->step;
	}
	if (run->way.delays && dice_percent(&run->dice, 10))
		result->delay_us = (uint32_t)(1 + dice_below(&run->dice, 60));
	run->by_ticket[run->drawn + 1] = result;
	do {
		for (int32_t i = dice_below(&run->dice, 4); i > 0; i--)
			poll_one(run);
		status = quire_runtime_command(run->runtime, &command, &result->ticket,
		                               NULL);
	} while (status == QUIRE_WOULD_BLOCK);
	result->status = status;
	if (status == QUIRE_OK)
		ck_assert_uint_eq(result->ticket, ++run->drawn);
}

static void finish(struct run *run, struct result *result)
{
	struct quire_outcome outcome;
	enum quire_status status;

	do {
		if (run->way.threads == QUIRE_THREADS_CALLER && !poll_one(run))
			sched_yield();
		status = quire_runtime_wait(run->runtime, result->ticket,
		                            QUIRE_STAGE_RETIRED, QUIRE_NO_DEADLINE,
		                            &outcome);
	} while (status == QUIRE_WOULD_BLOCK);
	ck_assert_int_eq(status, QUIRE_OK);
	result->status = outcome.refusal.status;
	result->digest = outcome.digest;
	if (result->status == QUIRE_ABANDONED) { /* whether it had been planned or not */
		free(result->image);
		result->image = NULL;
		result->planned = 0;
	}
	if (result->status == QUIRE_NO_PAGES)
		result->detail = outcome.refusal.pages_short;
	if (result->status == QUIRE_STALE)
		result->detail = outcome.refusal.got;
	run->digest = quire_run_digest_add(run->digest, result->status, result->detail,
	                                   result->image != NULL ? result->digest : 0);
}

static struct run *run_list(const struct list *list, const struct way *way)
{
	struct run *run = calloc(1, sizeof(*run));

	ck_assert_ptr_nonnull(run);
	run->list = list;
	run->way = *way;
	dice_seed(&run->dice, list->seed * 1000 + (uint64_t)way->depth);
	begin(run);
	for (int32_t i = 0; i < list->num_commands; i++)
		give(run, i);
	/* No fate stays open; INVALID where it is not. */
	for (int32_t i = 0; i < list->num_commands; i++)
		(void)!quire_runtime_abandon(run->runtime, run->results[i].ticket);
	for (int32_t i = 0; i < list->num_commands; i++)
		if (run->results[i].ticket > 0)
			finish(run, &run->results[i]);
	quire_runtime_destroy(run->runtime);
	quire_cache_destroy(run->cache);
	quire_device_destroy(run->device);
	return run;
}

static void free_run(struct run *run)
{
	for (int32_t i = 0; i < LIST_COMMANDS; i++)
		free(run->results[i].image);
	free(run);
}

/* ------------------------------------------------------------------ comparing */

static void compare(const struct run *expected, const struct run *got)
{
	for (int32_t i = 0; i < expected->list->num_commands; i++) {
		const struct result *a = &expected->results[i], *b = &got->results[i];

		ck_assert_msg(
			a->status == b->status && a->detail == b->detail,
			"seed %llu, command %d: %s %lld, but %s %lld at depth %d on %s",
			(unsigned long long)got->list->seed, i,
			quire_status_name(a->status), (long long)a->detail,
			quire_status_name(b->status), (long long)b->detail,
			got->way.depth, got->way.device);
		ck_assert_uint_eq(b->digest, a->digest);
		ck_assert_uint_eq(b->digest, b->planned);
		ck_assert((a->image == NULL) == (b->image == NULL));
		ck_assert_msg(a->image == NULL || image_equal(a->image, b->image),
		              "seed %llu, command %d: other tables at depth %d on %s",
		              (unsigned long long)got->list->seed, i, got->way.depth,
		              got->way.device);
	}
	ck_assert_uint_eq(got->digest, expected->digest);
}

/* Room for every outcome, and for all that waits behind a held step, so that every list is
 * given in its own order; the lists are long, and their pools small: pages go round. */
static void make_list(struct list *list, uint64_t seed)
{
	list_make(list, seed, LIST_COMMANDS, LIST_ALL);
	list->config.tickets_max = 4096;
	list->config.commands_max = LIST_COMMANDS;
}

static void run_every_way(uint64_t seed)
{
	static const int32_t depths[] = {1, 2, 3, 5, 16, 64};
	static const char *const devices[] = {"cpu", "cpu:inline"};
	const struct way first = {
		.depth = 1, .device = "cpu:inline", .threads = QUIRE_THREADS_CALLER};
	struct list list;
	struct run *expected;
	int32_t plans = 0;

	make_list(&list, seed);
	expected = run_list(&list, &first);
	for (int32_t i = 0; i < LIST_COMMANDS; i++)
		plans += expected->results[i].image != NULL;
	ck_assert_int_gt(plans, LIST_COMMANDS / 30);
	for (int32_t i = 0; i < 6 * 2 * 2 * 2; i++) {
		const struct way way = {
			.depth = depths[i / 8],
			.device = devices[i / 4 % 2],
			.threads = i / 2 % 2 == 0 ? QUIRE_THREADS_LIBRARY
		                                  : QUIRE_THREADS_CALLER,
			.delays = i % 2 == 0,
		};
		struct run *run = run_list(&list, &way);

		compare(expected, run);
		free_run(run);
	}
	free_run(expected);
	list_free(&list);
}

START_TEST(the_digest_of_a_run_depends_on_its_commands_alone)
{
	run_every_way((uint64_t)_i);
}
END_TEST

/* A digest that never differs would be as equal. */
START_TEST(another_list_has_another_digest)
{
	const struct way way = {
		.depth = 2, .device = "cpu:inline", .threads = QUIRE_THREADS_CALLER};
	uint64_t digests[6];

	for (uint64_t seed = 0; seed < 6; seed++) {
		struct list list;
		struct run *run;

		make_list(&list, 101 + seed);
		run = run_list(&list, &way);
		digests[seed] = run->digest;
		for (uint64_t other = 0; other < seed; other++)
			ck_assert_uint_ne(digests[other], digests[seed]);
		free_run(run);
		list_free(&list);
	}
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("same digest");
	TCase *ways = tcase_create("ways");

	tcase_set_timeout(ways, 120);
	tcase_add_loop_test(ways, the_digest_of_a_run_depends_on_its_commands_alone, 101,
	                    107);
	tcase_add_test(ways, another_list_has_another_digest);
	suite_add_tcase(s, ways);
	return s;
}

int main(void)
{
	return run_suite(suite());
}
