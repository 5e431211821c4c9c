/* SPDX-License-Identifier: MIT */
/*
 * The runtime against a sequential model, over random command lists.
 *
 *   test_model                                  what `make check` runs
 *   test_model --seed N --lists N --commands N  longer runs; [--mode N]: only one mode,
 *                                               [--features N]: what lists have in them
 *
 * A disagreement prints the seed, the command and both sides, and then the list, with
 * every command left out that is not needed for it.
 */
#include "config.h"

#include "sim_run.h"
#include "tests/run_suite.h"

#include <quire/runtime/sanitize.h>

#include <check.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ThreadSanitizer makes lists ten times as long to run, and finds nothing in the later
 * ones. */
#ifdef QUIRE_TSAN
#define LISTS_DIVISOR 10
#else
#define LISTS_DIVISOR 1
#endif

static struct sim sim;
static volatile uint64_t current_seed;
static volatile int current_mode;
static uint32_t features = LIST_ALL;

enum mode {
	MODE_INLINE,        /* one thread, seeded scheduler, work at once */
	MODE_INLINE_CHECK,  /* the same, checked after every poll */
	MODE_INLINE_CANCEL, /* the same, shut down in the middle */
	MODE_CPU,           /* one thread, asynchronous device */
	MODE_CPU_DELAYS,    /* ... whose work is slow */
	MODE_THREADS,       /* library threads that lose time */
	MODE_THREADS_CPU,
	MODE_SIM,      /* one thread, a device whose operations the scheduler runs */
	MODE_SIM_FAIL, /* ... and one of them fails */
	MODES,
};

static struct sim_mode mode_of(enum mode mode, uint64_t seed, int32_t num_commands)
{
	struct sim_mode m = {
		.device = "cpu:inline",
		.threads = QUIRE_THREADS_CALLER,
		.cancel_at = -1,
		.seed = seed * 77 + (uint64_t)mode,
	};

	m.check_each = mode == MODE_INLINE_CHECK || mode == MODE_SIM;
	if (mode == MODE_SIM || mode == MODE_SIM_FAIL)
		m.device = "sim";
	if (mode == MODE_SIM_FAIL)
		m.fail_at = 1 + (int32_t)(seed * 7 % (uint64_t)(4 * num_commands));
	if (mode == MODE_INLINE_CANCEL)
		m.cancel_at = (int32_t)(seed * 13 % (uint64_t)num_commands);
	if (mode == MODE_CPU || mode == MODE_CPU_DELAYS || mode == MODE_THREADS_CPU)
		m.device = "cpu";
	if (mode == MODE_THREADS || mode == MODE_THREADS_CPU) {
		m.threads = QUIRE_THREADS_LIBRARY;
		m.check_each = seed % 4 == 0;
	}
	m.delays = mode == MODE_CPU_DELAYS || m.threads == QUIRE_THREADS_LIBRARY;
	return m;
}

/* A trap in the library: say where, then die as it would have. */
static void on_trap(int number)
{
	char text[80];
	int n = snprintf(text, sizeof(text), "signal %d at seed %llu, mode %d\n", number,
	                 (unsigned long long)current_seed, current_mode);

	if (write(STDOUT_FILENO, text, (size_t)n) != n)
		_exit(3);
	signal(number, SIG_DFL);
	raise(number);
}

/* Does the list still fail?  Where time plays a part, a few tries. */
static bool fails(const struct list *list, const struct sim_mode *mode)
{
	struct sim_cover scratch = {0};
	int32_t tries = mode->threads == QUIRE_THREADS_CALLER ? 1 : 5;

	for (int32_t i = 0; i < tries; i++)
		if (!sim_run(&sim, list, mode, &scratch))
			return true;
	return false;
}

/* Leave out every command that the failure does not need. */
static void shrink(struct list *list, const struct sim_mode *mode)
{
	bool smaller = true;

	while (smaller) {
		smaller = false;
		for (int32_t i = list->num_commands - 1; i >= 0; i--) {
			if (list->commands[i].dropped)
				continue;
			list->commands[i].dropped = true;
			if (fails(list, mode))
				smaller = true;
			else
				list->commands[i].dropped = false;
		}
	}
}

/* Run one list in one mode; true: all agree. */
static bool run_list(uint64_t seed, int32_t num_commands, enum mode mode,
                     struct sim_cover *cover)
{
	struct list list;
	struct sim_mode m = mode_of(mode, seed, num_commands);
	bool agree;

	current_seed = seed;
	current_mode = (int)mode;
	list_make(&list, seed, num_commands, features);
	agree = sim_run(&sim, &list, &m, cover);
	if (!agree) {
		printf("mode %d, %s\n", (int)mode, sim.text);
		if (!sim.stuck) {
			shrink(&list, &m);
			fails(&list, &m);
			printf("smallest list: %s\n", sim.text);
		}
		list_print(&list);
	}
	list_free(&list);
	return agree;
}

static void run_mode(enum mode mode, uint64_t first, int32_t lists, int32_t num_commands,
                     struct sim_cover *cover)
{
	for (int32_t i = 0; i < lists / LISTS_DIVISOR; i++)
		ck_assert(run_list(first + (uint64_t)i, num_commands, mode, cover));
}

/* Who must meet a state. */
enum {
	MET_ALWAYS = 1,    /* every way to run lists */
	MET_BY_ONE = 2,    /* one thread, which sees the planner wait */
	MET_OTHERWISE = 4, /* tests that ask for it */
};

static const struct {
	const char *name;
	size_t offset;
	int met;
} states[] = {
#define STATE(name, met)                                     \
	{                                                    \
#name, offsetof(struct sim_cover, name), met \
	}
	STATE(refused_at_call, MET_ALWAYS),
	STATE(queue_full, MET_ALWAYS),
	STATE(page_waits, MET_ALWAYS),
	STATE(slot_waits, MET_ALWAYS),
	STATE(held_page_waits, MET_BY_ONE),
	STATE(held_slot_waits, MET_BY_ONE),
	STATE(parked, MET_BY_ONE),
	STATE(held_answers, MET_ALWAYS),
	STATE(invalid_fates, MET_ALWAYS),
	STATE(held_open, MET_ALWAYS),
	STATE(abandoned_held, MET_ALWAYS),
	STATE(abandoned_waiting_pages, MET_BY_ONE),
	STATE(abandoned_waiting_slot, MET_BY_ONE),
	STATE(abandoned_early, MET_ALWAYS),
	STATE(stash_takes, MET_ALWAYS),
	STATE(first_writes, MET_ALWAYS),
	STATE(pre_copies, MET_ALWAYS),
	STATE(post_copies, MET_ALWAYS),
	STATE(rewinds, MET_ALWAYS),
	STATE(releases, MET_ALWAYS),
	STATE(keeps, MET_ALWAYS),
	STATE(no_commits, MET_ALWAYS),
	STATE(combined, MET_ALWAYS),
	STATE(buckets, MET_ALWAYS),
	STATE(forgotten, MET_ALWAYS),
	STATE(cancelled, MET_OTHERWISE),
	STATE(cancelled_waiting, MET_OTHERWISE),
	STATE(open_at_end, MET_BY_ONE),
	STATE(failures, MET_OTHERWISE),
	STATE(failures_held, MET_OTHERWISE),
#undef STATE
};

static const uint64_t *count_of(const struct sim_cover *cover, size_t state)
{
	return (const uint64_t *)((const char *)cover + states[state].offset);
}

/* Every status and every state that the lists are there for was met. */
static void expect_states(const struct sim_cover *cover, int met)
{
	static const enum quire_status statuses[] = {
		QUIRE_OK,    QUIRE_NO_PAGES,   QUIRE_AGAIN,
		QUIRE_STALE, QUIRE_NO_REQUEST, QUIRE_NO_LABEL,
		QUIRE_LIMIT, QUIRE_INVALID,    QUIRE_ABANDONED,
	};

	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
		ck_assert_msg(cover->statuses[statuses[i]] > 0, "no command ended as %s",
		              quire_status_name(statuses[i]));
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		if ((states[i].met & met) != 0)
			ck_assert_msg(*count_of(cover, i) > 0, "never met: %s",
			              states[i].name);
}

static void print_cover(const struct sim_cover *cover)
{
	printf("%llu lists, %llu commands:", (unsigned long long)cover->lists,
	       (unsigned long long)cover->commands);
	for (int32_t i = 0; i <= QUIRE_END; i++)
		if (cover->statuses[i] > 0)
			printf(" %s %llu", quire_status_name((enum quire_status)i),
			       (unsigned long long)cover->statuses[i]);
	printf("\n");
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		printf("%s %s %llu", i % 8 == 0 ? "\n " : ",", states[i].name,
		       (unsigned long long)*count_of(cover, i));
	printf("\n");
}

START_TEST(one_thread_in_any_order_does_what_the_model_says)
{
	struct sim_cover cover = {0};

	run_mode(MODE_INLINE, 1, 4000, 50, &cover);
	expect_states(&cover, MET_ALWAYS | MET_BY_ONE);
}
END_TEST

START_TEST(every_invariant_holds_after_every_move)
{
	struct sim_cover cover = {0};

	run_mode(MODE_INLINE_CHECK, 10001, 1500, 50, &cover);
	expect_states(&cover, MET_ALWAYS | MET_BY_ONE);
}
END_TEST

START_TEST(a_cancelling_shutdown_leaves_what_was_decided)
{
	struct sim_cover cover = {0};

	run_mode(MODE_INLINE_CANCEL, 20001, 1500, 30, &cover);
	ck_assert_uint_gt(cover.cancelled, 0);
	ck_assert_uint_gt(cover.cancelled_waiting, 0);
}
END_TEST

START_TEST(a_device_that_is_late_in_any_order_changes_nothing)
{
	struct sim_cover cover = {0};

	run_mode(MODE_SIM, 70001, 4000, 50, &cover);
	expect_states(&cover, MET_ALWAYS | MET_BY_ONE);
}
END_TEST

START_TEST(a_failing_device_ends_everything_and_loses_nothing)
{
	struct sim_cover cover = {0};

	run_mode(MODE_SIM_FAIL, 80001, 2000, 50, &cover);
	ck_assert_uint_gt(cover.failures, 0);
	ck_assert_uint_gt(cover.failures_held, 0);
}
END_TEST

START_TEST(an_asynchronous_device_changes_nothing)
{
	struct sim_cover cover = {0};

	run_mode(MODE_CPU, 30001, 400, 50, &cover);
	run_mode(MODE_CPU_DELAYS, 40001, 400, 50, &cover);
	expect_states(&cover, MET_ALWAYS);
}
END_TEST

START_TEST(library_threads_change_nothing)
{
	struct sim_cover cover = {0};

	run_mode(MODE_THREADS, 50001, 400, 50, &cover);
	run_mode(MODE_THREADS_CPU, 60001, 600, 50, &cover);
	expect_states(&cover, MET_ALWAYS);
}
END_TEST

/* ------------------------------------------------------------------ planning ahead */

#define AHEAD_US 100

static _Atomic uint64_t newest_planned;

static enum quire_status note_plan(void *argument, struct quire_plan *plan)
{
	(void)argument;
	/* Pairs with the acquire in run_behind. */
	atomic_store_explicit(&newest_planned, plan->step, memory_order_release);
	return QUIRE_OK;
}

/* Work that ends only once the next step is planned: up to ten seconds, then it has
 * failed. */
static enum quire_status run_behind(void *argument)
{
	uint64_t step = (uint64_t)(uintptr_t)argument;

	for (int32_t i = 0; i < 10000000 / AHEAD_US; i++) {
		/* Pairs with the release in note_plan. */
		if (atomic_load_explicit(&newest_planned, memory_order_acquire) > step)
			return QUIRE_OK;
		usleep(AHEAD_US);
	}
	return QUIRE_CALLBACK;
}

static enum quire_status queue_behind(void *argument, const struct quire_plan *plan,
                                      struct quire_dstream *compute)
{
	(void)argument;
	return quire_dstream_call(compute, run_behind, (void *)(uintptr_t)plan->step);
}

/* The host half is free once it is uploaded: with one slot, step n + 1 is planned in it
 * while step n still works on the device half. */
START_TEST(a_slot_is_planned_again_while_its_step_still_runs)
{
	const struct quire_shape shape = {.layout = QUIRE_NHD,
	                                  .dtype = QUIRE_F32,
	                                  .num_layers = 1,
	                                  .num_pages = 8,
	                                  .page_size = 4,
	                                  .num_kv_heads = 1,
	                                  .head_dim = 1};
	const struct quire_segment segment = {
		.request = 1, .span = 1, .at = QUIRE_AT_ANY};
	struct quire_step step = {
		.segments = &segment, .num_segments = 1, .run = queue_behind};
	struct quire_runtime_config config;
	struct quire_runtime *runtime;
	struct quire_device *device;
	struct quire_cache *cache;
	struct quire_outcome outcome;
	uint64_t ticket;

	ck_assert_int_eq(quire_device_create("cpu", &device, NULL), QUIRE_OK);
	ck_assert_int_eq(quire_cache_create(device, &shape, &cache, NULL), QUIRE_OK);
	quire_runtime_config_init(&config, cache);
	config.depth = 1;
	/* So that an upload ends well after the executor has nothing else to do. */
	config.user_bytes = 32 << 20;
	config.on_plan = note_plan;
	ck_assert_int_eq(quire_runtime_create(&config, &runtime, NULL), QUIRE_OK);
	ck_assert_int_eq(quire_runtime_open(runtime, 1, &ticket), QUIRE_OK);
	for (int32_t i = 0; i < 5; i++)
		ck_assert_int_eq(quire_runtime_submit(runtime, &step, &ticket), QUIRE_OK);
	step.run = NULL; /* the last one waits for nobody */
	ck_assert_int_eq(quire_runtime_submit(runtime, &step, &ticket), QUIRE_OK);
	ck_assert_int_eq(quire_runtime_wait(runtime, ticket, QUIRE_STAGE_RETIRED,
	                                    QUIRE_NO_DEADLINE, &outcome),
	                 QUIRE_OK);
	ck_assert_int_eq(outcome.refusal.status, QUIRE_OK);
	quire_runtime_destroy(runtime);
	quire_cache_destroy(cache);
	quire_device_destroy(device);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("model");
	TCase *lists = tcase_create("lists");

	tcase_set_timeout(lists, 60);
	tcase_add_test(lists, one_thread_in_any_order_does_what_the_model_says);
	tcase_add_test(lists, every_invariant_holds_after_every_move);
	tcase_add_test(lists, a_cancelling_shutdown_leaves_what_was_decided);
	tcase_add_test(lists, a_device_that_is_late_in_any_order_changes_nothing);
	tcase_add_test(lists, a_failing_device_ends_everything_and_loses_nothing);
	tcase_add_test(lists, an_asynchronous_device_changes_nothing);
	tcase_add_test(lists, library_threads_change_nothing);
	tcase_add_test(lists, a_slot_is_planned_again_while_its_step_still_runs);
	suite_add_tcase(s, lists);
	return s;
}

/* Longer runs: all modes, or one, over the seeds asked for. */
static int run_long(int argc, char **argv)
{
	uint64_t seed = 1;
	int32_t lists = 1, commands = 50, only = -1;

	for (int i = 1; i + 1 < argc; i += 2) {
		long long value = strtoll(argv[i + 1], NULL, 10);

		if (strcmp(argv[i], "--seed") == 0)
			seed = (uint64_t)value;
		else if (strcmp(argv[i], "--lists") == 0)
			lists = (int32_t)value;
		else if (strcmp(argv[i], "--commands") == 0)
			commands = (int32_t)value;
		else if (strcmp(argv[i], "--mode") == 0)
			only = (int32_t)value;
		else if (strcmp(argv[i], "--features") == 0)
			features = (uint32_t)value;
		else
			return 2;
	}
	for (int32_t mode = 0; mode < MODES; mode++) {
		struct sim_cover cover = {0};

		for (int32_t i = 0; i < lists && (only < 0 || only == mode); i++)
			if (!run_list(seed + (uint64_t)i, commands, (enum mode)mode,
			              &cover))
				return 1;
		if (cover.lists > 0)
			print_cover(&cover);
	}
	return 0;
}

int main(int argc, char **argv)
{
	signal(SIGILL, on_trap);
	signal(SIGTRAP, on_trap);
	signal(SIGABRT, on_trap);
	if (argc > 1)
		return run_long(argc, argv);
	return run_suite(suite());
}
