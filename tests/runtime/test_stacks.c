/* SPDX-License-Identifier: MIT */
/* What becomes of speculative steps: refused ones, what rests on them, what they rest on,
 * and the end of the runtime. */
#include "config.h"

#include "directed.h"
#include "tests/run_suite.h"

#include <check.h>

static void plan_all(struct fixture *f)
{
	while (quire_planner_poll(f->runtime))
		continue;
}

/* ------------------------------------------------------------------ refused */

/* With @_i the planner hears of everything at once, else step by step. */
static void maybe_settle(struct fixture *f, int at_once)
{
	if (!at_once)
		settle(f);
}

START_TEST(what_rests_on_a_refused_step_is_abandoned_however_fast_the_planner_is)
{
	struct fixture f;
	uint64_t s1, s2, s3;

	directed_start(&f, 4, 2);
	extend_now(&f, 1, "x", 1, 0);
	s1 = give(&f, SPECULATIVE(1, NULL, 8, 0)); /* 4 pages, of 3 */
	maybe_settle(&f, _i);
	s2 = give(&f, SPECULATIVE(1, "a", 1, 0));
	maybe_settle(&f, _i);
	ck_assert_int_eq(promote(&f, s1), QUIRE_OK);
	maybe_settle(&f, _i);
	s3 = give(&f, SPECULATIVE(1, "b", 1, 0));
	ck_assert_int_eq(promote(&f, s2), QUIRE_OK);
	maybe_settle(&f, _i);
	ck_assert_int_eq(promote(&f, s3), QUIRE_OK);
	check_end(&f, s1, QUIRE_NO_PAGES);
	check_end(&f, s2, QUIRE_ABANDONED);
	check_end(&f, s3, QUIRE_ABANDONED);
	ck_assert_uint_eq(outcome_now(&f, s2).base, s1);
	ck_assert_uint_eq(outcome_now(&f, s3).base, s2);
	ck_assert_int_eq(look(&f, 1, "a"), QUIRE_NO_LABEL);
	fixture_end(&f);
}
END_TEST

START_TEST(a_refused_step_that_is_abandoned_was_abandoned)
{
	struct fixture f;
	uint64_t s, next;

	directed_start(&f, 4, 2);
	s = give(&f, SPECULATIVE(1, NULL, 99, 0));
	maybe_settle(&f, _i);
	ck_assert_int_eq(abandon(&f, s), QUIRE_OK);
	maybe_settle(&f, _i);
	next = give(&f, SPECULATIVE(1, NULL, 1, 0));
	ck_assert_int_eq(promote(&f, next), QUIRE_OK);
	check_end(&f, s, QUIRE_ABANDONED);
	check_end(&f, next, QUIRE_OK);
	ck_assert_uint_eq(outcome_now(&f, next).base, 0);
	fixture_end(&f);
}
END_TEST

START_TEST(a_refusal_stands_once_the_step_and_those_below_are_promoted)
{
	struct fixture f;
	uint64_t s1, s2;

	directed_start(&f, 4, 2);
	s1 = give(&f, SPECULATIVE(1, NULL, 1, 0));
	s2 = give(&f, SPECULATIVE(1, "a", 0, 0));
	settle(&f);
	check_open(&f, s2, QUIRE_NO_LABEL);
	ck_assert_int_eq(promote(&f, s2), QUIRE_OK);
	settle(&f);
	check_open(&f, s2, QUIRE_NO_LABEL); /* an abandon of s1 may still end it */
	ck_assert_int_eq(_i == 0 ? promote(&f, s1) : abandon(&f, s1), QUIRE_OK);
	check_end(&f, s2, _i == 0 ? QUIRE_NO_LABEL : QUIRE_ABANDONED);
	check_end(&f, s1, _i == 0 ? QUIRE_OK : QUIRE_ABANDONED);
	fixture_end(&f);
}
END_TEST

/* Places of steps promoted for good are free again, before the planner has come so far:
 * the queue to the executor is full, and the bottom of the stack cannot leave. */
START_TEST(refused_steps_find_room_while_the_step_below_cannot_be_pushed)
{
	struct fixture f;
	uint64_t s[4], unused;

	directed_begin(&f, 300, 1);
	f.config.speculative_max = 2;
	fixture_create(&f);
	ck_assert_int_eq(open_now(&f, 1), QUIRE_OK);
	extend_now(&f, 1, NULL, 280, 0);
	for (int i = 0; i < 256; i++) {
		ck_assert_int_eq(
			quire_runtime_release_front(f.runtime, 1, NULL, 1, &unused),
			QUIRE_OK);
		plan_all(&f);
		if (stage_of(&f, unused) == QUIRE_STAGE_QUEUED)
			break;
	}
	/* One that waits for room, so the next one would wait too; let one out. */
	ck_assert_int_eq(stage_of(&f, unused), QUIRE_STAGE_QUEUED);
	ck_assert(quire_executor_poll(f.runtime));
	plan_all(&f);
	s[0] = give(&f, SPECULATIVE(1, "a", 1, 0));
	s[1] = give(&f, SPECULATIVE(1, "a", 1, 77));
	plan_all(&f);
	ck_assert_int_eq(promote(&f, s[0]), QUIRE_OK);
	s[2] = give(&f, SPECULATIVE(1, "a", 1, 1));
	plan_all(&f);
	check_open(&f, s[0], QUIRE_OK);
	ck_assert_int_eq(promote(&f, s[1]), QUIRE_OK);
	s[3] = give(&f, SPECULATIVE(1, "a", 1, 1));
	plan_all(&f);
	ck_assert_int_eq(promote(&f, s[2]), QUIRE_OK);
	ck_assert_int_eq(promote(&f, s[3]), QUIRE_OK);
	check_end(&f, s[0], QUIRE_OK);
	check_end(&f, s[1], QUIRE_STALE);
	check_end(&f, s[2], QUIRE_ABANDONED);
	check_end(&f, s[3], QUIRE_ABANDONED);
	fixture_end(&f);
}
END_TEST

/* ------------------------------------------------------------------ bases */

/* What draws no position is not "between". */
START_TEST(looking_and_waiting_do_not_part_a_step_from_its_base)
{
	struct quire_refusal refusal;
	struct fixture f;
	uint64_t s1, s2;

	directed_start(&f, 8, 2);
	s1 = give(&f, SPECULATIVE(1, NULL, 1, 0));
	settle(&f);
	ck_assert_int_eq(quire_runtime_wait(f.runtime, s1, QUIRE_STAGE_PLANNED, 0, NULL),
	                 QUIRE_OK);
	ck_assert_int_eq(quire_runtime_wait(f.runtime, s1, QUIRE_STAGE_ISSUED, 0, NULL),
	                 QUIRE_TIMEOUT);
	ck_assert_int_eq(quire_runtime_drain(f.runtime, QUIRE_STAGE_PLANNED, 0, &refusal),
	                 QUIRE_HELD);
	ck_assert_uint_eq(refusal.ticket, s1);
	(void)snapshot_of(&f, 1, NULL);
	(void)stats_of(&f);
	ck_assert_int_eq(quire_runtime_check(f.runtime, &refusal), QUIRE_OK);
	s2 = give(&f, SPECULATIVE(1, NULL, 1, 1));
	settle(&f);
	ck_assert_uint_eq(outcome_now(&f, s2).base, s1);
	ck_assert_int_eq(abandon(&f, s1), QUIRE_OK);
	check_end(&f, s2, QUIRE_ABANDONED);
	fixture_end(&f);
}
END_TEST

START_TEST(a_base_is_the_newest_open_step_unless_another_command_came_between)
{
	struct fixture f;
	uint64_t s[5], unused;

	directed_begin(&f, 16, 2);
	f.config.depth = 8;
	fixture_create(&f);
	ck_assert_int_eq(open_now(&f, 1), QUIRE_OK);
	s[0] = give(&f, SPECULATIVE(1, NULL, 1, 0));
	s[1] = give(&f, SPECULATIVE(1, NULL, 1, 1));
	ck_assert_int_eq(abandon(&f, s[1]), QUIRE_OK);
	s[2] = give(&f, SPECULATIVE(1, NULL, 1, 1));
	ck_assert_int_eq(promote(&f, s[2]), QUIRE_OK);
	s[3] = give(&f, SPECULATIVE(1, NULL, 1, 2));
	settle(&f);
	ck_assert_uint_eq(outcome_now(&f, s[2]).base, s[0]);
	ck_assert_uint_eq(outcome_now(&f, s[3]).base, s[0]);
	ck_assert_uint_eq(outcome_now(&f, s[3]).step, 3);
	ck_assert_int_eq(quire_runtime_open(f.runtime, 1, &unused), QUIRE_OK);
	s[4] = give(&f, SPECULATIVE(1, NULL, 1, 0));
	settle(&f);
	ck_assert_int_eq(stage_of(&f, s[4]), QUIRE_STAGE_QUEUED);
	ck_assert_int_eq(abandon(&f, s[0]), QUIRE_OK);
	for (int i = 0; i < 4; i++)
		check_end(&f, s[i], QUIRE_ABANDONED);
	check_open(&f, s[4], QUIRE_OK);
	ck_assert_uint_eq(outcome_now(&f, s[4]).base, 0);
	ck_assert_uint_eq(outcome_now(&f, s[4]).step, 1);
	ck_assert_int_eq(promote(&f, s[4]), QUIRE_OK);
	check_end(&f, s[4], QUIRE_OK);
	ck_assert_stream(&f, 1, NULL, 1, 0);
	fixture_end(&f);
}
END_TEST

/* One thread, one place in the queue. */
START_TEST(a_blocking_command_names_the_held_step_instead_of_waiting_for_it)
{
	const struct quire_command command = {.kind = QUIRE_COMMAND_OPEN, .request = 3};
	struct quire_refusal refusal;
	struct fixture f;
	uint64_t s, parked, last;

	directed_begin(&f, 8, 2);
	f.config.commands_max = 1;
	fixture_create(&f);
	ck_assert_int_eq(open_now(&f, 1), QUIRE_OK);
	s = give(&f, SPECULATIVE(1, NULL, 1, 0));
	settle(&f);
	ck_assert_int_eq(quire_runtime_open(f.runtime, 2, &parked), QUIRE_OK);
	settle(&f);
	ck_assert_int_eq(quire_runtime_command(f.runtime, &command, &last, &refusal),
	                 QUIRE_HELD);
	ck_assert_uint_eq(refusal.ticket, s);
	ck_assert_int_eq(quire_runtime_try_command(f.runtime, &command, &last, &refusal),
	                 QUIRE_HELD);
	ck_assert_int_eq(promote(&f, s), QUIRE_OK);
	settle(&f);
	ck_assert_int_eq(quire_runtime_command(f.runtime, &command, &last, &refusal),
	                 QUIRE_OK);
	ck_assert_int_eq(outcome_of(&f, last).refusal.status, QUIRE_OK);
	fixture_end(&f);
}
END_TEST

/* ------------------------------------------------------------------ the end */

START_TEST(a_shutdown_abandons_what_is_open_and_keeps_what_was_promoted)
{
	bool cancel = _i % 2 == 1, promoted = _i / 2 == 1;
	struct fixture f;
	uint64_t s1, s2, parked;

	directed_start(&f, 8, 2);
	s1 = give(&f, SPECULATIVE(1, NULL, 1, 0));
	s2 = give(&f, SPECULATIVE(1, NULL, 99, 1));
	settle(&f);
	parked = give(&f, STEP(1, NULL, 1, promoted ? 1 : 0));
	settle(&f);
	if (promoted)
		ck_assert_int_eq(promote(&f, s1), QUIRE_OK);
	ck_assert_int_eq(quire_runtime_shutdown(f.runtime, cancel), QUIRE_OK);
	ck_assert_int_eq(promote(&f, s2), QUIRE_CLOSED);
	check_end(&f, s1, promoted ? QUIRE_OK : QUIRE_ABANDONED);
	check_end(&f, s2, QUIRE_ABANDONED);
	check_end(&f, parked, cancel ? QUIRE_CANCELLED : QUIRE_OK);
	ck_assert_int_eq(snapshot_of(&f, 1, NULL).length, promoted + !cancel);
	fixture_end(&f);
}
END_TEST

static enum quire_status fail_run(void *argument, const struct quire_plan *plan,
                                  struct quire_dstream *compute)
{
	(void)argument;
	(void)plan;
	(void)compute;
	return QUIRE_CALLBACK;
}

START_TEST(a_failure_ends_held_refused_and_parked_steps_once)
{
	struct fixture f;
	uint64_t fails, s1, s2, s3, parked;
	uint64_t unused;

	directed_start(&f, 8, 2);
	fails = give(&f, (struct plain){.segments = {SEGMENT(1, NULL, 1, 0)},
	                                .run = fail_run});
	s1 = give(&f, SPECULATIVE(1, "a", 3, 0));
	s2 = give(&f, SPECULATIVE(1, "a", 99, 3));
	s3 = give(&f, SPECULATIVE(1, "a", 1, 3));
	parked = give(&f, STEP(1, "b", 1, 0));
	plan_all(&f);
	check_open(&f, s1, QUIRE_OK);
	check_open(&f, s3, QUIRE_ABANDONED);
	if (_i == 1)
		ck_assert_int_eq(promote(&f, s2), QUIRE_OK);
	settle(&f);
	check_end(&f, fails, QUIRE_CALLBACK);
	check_end(&f, s1, QUIRE_CALLBACK);
	check_end(&f, s2, QUIRE_CALLBACK);
	check_end(&f, s3, QUIRE_CALLBACK);
	check_end(&f, parked, QUIRE_CALLBACK);
	ck_assert_int_eq(look(&f, 1, "a"), QUIRE_NO_LABEL);
	ck_assert_int_eq(stats_of(&f).pages_owned, 1);
	ck_assert_int_eq(promote(&f, s1), QUIRE_CALLBACK);
	ck_assert_int_eq(quire_runtime_open(f.runtime, 2, &unused), QUIRE_CALLBACK);
	fixture_end(&f);
}
END_TEST

static enum quire_status fail_plan(void *argument, struct quire_plan *plan)
{
	return plan->ticket == *(const uint64_t *)argument ? QUIRE_CALLBACK : QUIRE_OK;
}

/* @_i: the step that fails is ordinary, at the bottom, or in the middle of a stack. */
START_TEST(a_failing_on_plan_takes_its_own_step_and_all_held_ones_back)
{
	uint64_t fatal, s[3];
	struct fixture f;

	directed_begin(&f, 8, 2);
	f.config.depth = 4;
	f.config.on_plan = fail_plan;
	f.config.on_plan_argument = &fatal;
	fixture_create(&f);
	fatal = 0;
	ck_assert_int_eq(open_now(&f, 1), QUIRE_OK);
	extend_now(&f, 1, NULL, 3, 0);
	fatal = 3 + (uint64_t)(_i == 2);
	for (int i = 0; i < 3; i++)
		s[i] = give(&f,
		            (struct plain){
				    .segments = {SEGMENT(1, "a", 3, 3 + 3 * i)},
				    .pre = {{i == 0 ? "main" : "b", i == 0 ? "a" : "c"}},
				    .flags = _i == 0 ? 0 : QUIRE_STEP_SPECULATIVE});
	settle(&f);
	for (int i = 0; i < 3; i++)
		check_end(&f, s[i], QUIRE_CALLBACK);
	ck_assert_int_eq(look(&f, 1, "a"), QUIRE_NO_LABEL);
	ck_assert_stream(&f, 1, NULL, 3, 0, 1);
	ck_assert_int_eq(stats_of(&f).pages_owned, 2);
	ck_assert_int_eq(stats_of(&f).pages_free, 6);
	ck_assert_uint_eq(stats_of(&f).steps_issued, 1);
	fixture_end(&f);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("stacks");
	TCase *tcase = tcase_create("stacks");

	tcase_add_loop_test(
		tcase,
		what_rests_on_a_refused_step_is_abandoned_however_fast_the_planner_is, 0,
		2);
	tcase_add_loop_test(tcase, a_refused_step_that_is_abandoned_was_abandoned, 0, 2);
	tcase_add_loop_test(
		tcase, a_refusal_stands_once_the_step_and_those_below_are_promoted, 0, 2);
	tcase_add_test(tcase,
	               refused_steps_find_room_while_the_step_below_cannot_be_pushed);
	tcase_add_test(tcase, looking_and_waiting_do_not_part_a_step_from_its_base);
	tcase_add_test(
		tcase,
		a_base_is_the_newest_open_step_unless_another_command_came_between);
	tcase_add_test(tcase,
	               a_blocking_command_names_the_held_step_instead_of_waiting_for_it);
	tcase_add_loop_test(tcase,
	                    a_shutdown_abandons_what_is_open_and_keeps_what_was_promoted,
	                    0, 4);
	tcase_add_loop_test(tcase, a_failure_ends_held_refused_and_parked_steps_once, 0,
	                    2);
	tcase_add_loop_test(
		tcase, a_failing_on_plan_takes_its_own_step_and_all_held_ones_back, 0, 3);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
