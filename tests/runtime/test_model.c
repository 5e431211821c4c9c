/* SPDX-License-Identifier: MIT */
/*
 * The runtime against a sequential model, over random command lists; torture_model runs
 * more of them.  A program that ends inside a list names it.
 */
#include "config.h"

#include "sim_modes.h"
#include "tests/run_suite.h"

#include <quire/plans/trace.h>
#include <quire/runtime/sanitize.h>

#include <check.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

/* ThreadSanitizer makes lists ten times as long to run, and finds nothing in the later
 * ones. */
#ifdef QUIRE_TSAN
#define LISTS_DIVISOR 10
#else
#define LISTS_DIVISOR 1
#endif

static struct sim_place *places; /* [MODES] */

static void run_mode(enum mode mode, uint64_t first, int32_t lists, int32_t num_commands,
                     struct sim_cover *cover)
{
	for (int32_t i = 0; i < lists / LISTS_DIVISOR; i++)
		ck_assert(sim_run_list(&places[mode], mode, first + (uint64_t)i,
		                       num_commands, LIST_ALL));
	sim_cover_add(cover, &places[mode].cover);
}

/* Every status and every state that the lists are there for was met. */
static void expect_states(const struct sim_cover *cover, int met)
{
	static const enum quire_status statuses[] = {
		QUIRE_OK,    QUIRE_NO_PAGES,   QUIRE_AGAIN,
		QUIRE_STALE, QUIRE_NO_REQUEST, QUIRE_NO_LABEL,
		QUIRE_LIMIT, QUIRE_INVALID,    QUIRE_ABANDONED,
	};
	const char *missing = sim_cover_missing(cover, met);

	if (LISTS_DIVISOR > 1) /* too few lists to demand all of it */
		return;
	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
		ck_assert_msg(cover->statuses[statuses[i]] > 0, "no command ended as %s",
		              quire_status_name(statuses[i]));
	ck_assert_msg(missing == NULL, "never met: %s", missing);
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

/* In whatever way it is driven, shut down or ended by its device. */
START_TEST(a_recorded_run_is_read_and_replayed_as_it_was)
{
	enum mode mode = (enum mode)_i;

	for (uint64_t i = 0; i < 100 / LISTS_DIVISOR; i++)
		ck_assert(sim_run_list(&places[mode], mode, 90001 + i, 50,
		                       LIST_ALL | LIST_RECORDED));
}
END_TEST

/* ------------------------------------------------------------------ as a trace */

static bool same_step(const struct quire_step *a, const struct quire_step *b)
{
	bool same = a->num_segments == b->num_segments && a->flags == b->flags &&
	            a->num_pre_forks == b->num_pre_forks &&
	            a->num_post_forks == b->num_post_forks &&
	            a->num_combined == b->num_combined &&
	            a->bucket_rows == b->bucket_rows &&
	            a->bucket_tokens == b->bucket_tokens;

	for (int32_t i = 0; same && i < a->num_segments; i++)
		same = a->segments[i].request == b->segments[i].request &&
		       model_label(a->segments[i].label) ==
		               model_label(b->segments[i].label) &&
		       a->segments[i].span == b->segments[i].span &&
		       a->segments[i].at == b->segments[i].at;
	return same;
}

static bool same_command(const struct list_command *c, const struct quire_command *read)
{
	const struct quire_command *command = &c->command;

	if (command->kind != read->kind)
		return false;
	switch (command->kind) {
	case QUIRE_COMMAND_SUBMIT:
		return same_step(command->step, read->step);
	case QUIRE_COMMAND_PROMOTE:
	case QUIRE_COMMAND_ABANDON:
		return read->target == (uint64_t)c->target + 1;
	case QUIRE_COMMAND_OPEN:
	case QUIRE_COMMAND_CLOSE:
		return command->request == read->request;
	default:
		return command->request == read->request &&
		       model_label(command->label) == model_label(read->label) &&
		       command->tokens == read->tokens &&
		       (command->keep_pages != 0) == (read->keep_pages != 0);
	}
}

/* Returns how many commands are in the trace; the others no trace can have in it. */
static int32_t compare_trace(const struct list *list, const char *path)
{
	struct quire_trace_reader *reader;
	struct quire_trace_record record;
	uint64_t last = 0;
	int32_t n = 0;

	ck_assert_int_eq(quire_trace_open(path, &reader, NULL), QUIRE_OK);
	ck_assert_int_eq(quire_trace_header(reader)->num_pages, list->num_pages);
	ck_assert_int_eq(quire_trace_header(reader)->page_size, list->page_size);
	for (; quire_trace_next(reader, &record, NULL) == QUIRE_OK; n++) {
		const struct list_command *c = &list->commands[record.id - 1];

		ck_assert_uint_gt(record.id, last);
		ck_assert(!c->dropped);
		ck_assert(same_command(c, &record.command));
		last = record.id;
	}
	ck_assert_int_eq(quire_trace_next(reader, &record, NULL), QUIRE_END);
	quire_trace_close(reader);
	return n;
}

START_TEST(the_trace_of_a_list_reads_back_as_its_commands)
{
	char path[] = "/tmp/quire-list-XXXXXX";
	int file = mkstemp(path);
	int32_t given = 0, written = 0;

	ck_assert_int_ge(file, 0);
	close(file);
	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct list list;

		list_make(&list, seed, 50, LIST_ALL);
		for (int32_t i = 0; i < list.num_commands; i++) {
			list.commands[i].dropped = (uint64_t)i % 7 == seed % 7;
			given += !list.commands[i].dropped;
		}
		list_trace(&list, path);
		written += compare_trace(&list, path);
		list_free(&list);
	}
	unlink(path);
	/* One in so many is malformed on purpose. */
	ck_assert_int_gt(written, given * 9 / 10);
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
	tcase_add_loop_test(lists, a_recorded_run_is_read_and_replayed_as_it_was, 0,
	                    MODES);
	tcase_add_test(lists, the_trace_of_a_list_reads_back_as_its_commands);
	tcase_add_test(lists, a_slot_is_planned_again_while_its_step_still_runs);
	suite_add_tcase(s, lists);
	return s;
}

int main(void)
{
	int status;

	places = sim_places(MODES);
	status = run_suite(suite());
	sim_print_inside(places, MODES);
	return status;
}
