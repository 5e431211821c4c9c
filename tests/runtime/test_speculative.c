/* SPDX-License-Identifier: MIT */
/* Speculative steps: held until promoted, gone without a trace when abandoned. */
#include "config.h"

#include "directed.h"
#include "tests/run_suite.h"

#include <check.h>

/* ------------------------------------------------------------------ held, promoted */

START_TEST(a_held_step_is_not_shown_and_is_what_it_was_when_promoted)
{
	struct fixture f;
	uint64_t s;
	uint64_t generation;

	directed_start(&f, 8, 2);
	generation = snapshot_of(&f, 1, NULL).generation;
	s = give(&f, SPECULATIVE(1, NULL, 3, 0));
	settle(&f);
	check_open(&f, s, QUIRE_OK);
	ck_assert_uint_eq(outcome_now(&f, s).step, 1);
	ck_assert_int_eq(outcome_now(&f, s).pages_taken, 2);
	check_stream(&f, 1, NULL, 0, NULL, 0);
	ck_assert_uint_eq(snapshot_of(&f, 1, NULL).generation, generation);
	ck_assert_uint_eq(stats_of(&f).steps_held, 1);
	ck_assert_int_eq(stats_of(&f).pages_owned, 2);
	ck_assert_uint_eq(stats_of(&f).tokens, 0);
	ck_assert_int_eq(promote(&f, s), QUIRE_OK);
	check_end(&f, s, QUIRE_OK);
	ck_assert_stream(&f, 1, NULL, 3, 0, 1);
	ck_assert_uint_eq(snapshot_of(&f, 1, NULL).generation, generation + 1);
	ck_assert_uint_eq(stats_of(&f).steps_held, 0);
	ck_assert_uint_eq(stats_of(&f).steps_promoted, 1);
	ck_assert_uint_eq(stats_of(&f).tokens, 3);
	fixture_end(&f);
}
END_TEST

/* Nothing but its own promote makes a staged plan run. */
START_TEST(no_other_command_runs_a_held_step_nor_overtakes_it)
{
	struct fixture f;
	uint64_t s, other;

	directed_start(&f, 8, 2);
	ck_assert_int_eq(open_now(&f, 2), QUIRE_OK);
	s = give(&f, SPECULATIVE(1, NULL, 1, 0));
	settle(&f);
	other = give(&f, STEP(2, NULL, 2, 0));
	settle(&f);
	ck_assert_int_eq(promote(&f, other), QUIRE_INVALID);
	settle(&f);
	ck_assert_uint_eq(stats_of(&f).steps_issued, 0);
	ck_assert_int_eq(stage_of(&f, other), QUIRE_STAGE_QUEUED);
	ck_assert_int_eq(promote(&f, s), QUIRE_OK);
	check_end(&f, s, QUIRE_OK);
	check_end(&f, other, QUIRE_OK);
	ck_assert_stream(&f, 1, NULL, 1, 0);
	ck_assert_stream(&f, 2, NULL, 2, 1);
	fixture_end(&f);
}
END_TEST

START_TEST(a_stack_takes_its_place_from_the_bottom_whatever_is_promoted_first)
{
	struct fixture f;
	uint64_t s[3];

	directed_begin(&f, 8, 2);
	f.config.depth = _i;
	fixture_create(&f);
	ck_assert_int_eq(open_now(&f, 1), QUIRE_OK);
	for (int i = 0; i < 3; i++)
		s[i] = give(&f, SPECULATIVE(1, NULL, 2, 2 * i));
	settle(&f);
	ck_assert_uint_eq(stats_of(&f).steps_held, (uint64_t)(_i < 3 ? _i : 3));
	ck_assert_int_eq(promote(&f, s[2]), QUIRE_OK);
	ck_assert_int_eq(promote(&f, s[1]), QUIRE_OK);
	settle(&f);
	ck_assert_uint_eq(stats_of(&f).steps_issued, 0);
	ck_assert_int_eq(promote(&f, s[0]), QUIRE_OK);
	for (int i = 0; i < 3; i++) {
		check_end(&f, s[i], QUIRE_OK);
		ck_assert_uint_eq(outcome_now(&f, s[i]).step, (uint64_t)i + 1);
		ck_assert_uint_eq(outcome_now(&f, s[i]).base, i == 0 ? 0 : s[i - 1]);
	}
	ck_assert_stream(&f, 1, NULL, 6, 0, 1, 2);
	fixture_end(&f);
}
END_TEST

/* The ring has one slot, which the held step has. */
START_TEST(a_promote_is_heard_while_the_planner_waits_for_the_slot_below)
{
	struct fixture f;
	uint64_t s1, s2;

	directed_begin(&f, 8, 2);
	f.config.depth = 1;
	fixture_create(&f);
	ck_assert_int_eq(open_now(&f, 1), QUIRE_OK);
	s1 = give(&f, SPECULATIVE(1, NULL, 1, 0));
	s2 = give(&f, SPECULATIVE(1, NULL, 1, 1));
	settle(&f);
	check_open(&f, s1, QUIRE_OK);
	ck_assert_int_eq(stage_of(&f, s2), QUIRE_STAGE_QUEUED);
	ck_assert_int_eq(promote(&f, s1), QUIRE_OK);
	check_end(&f, s1, QUIRE_OK);
	check_open(&f, s2, QUIRE_OK);
	ck_assert_int_eq(abandon(&f, s2), QUIRE_OK);
	check_end(&f, s2, QUIRE_ABANDONED);
	ck_assert_stream(&f, 1, NULL, 1, 0);
	fixture_end(&f);
}
END_TEST

/* ------------------------------------------------------------------ abandoned */

enum state {
	HELD,
	HELD_STACK,
	WAITS_FOR_PAGES,
	WAITS_FOR_SLOT,
	NOT_REACHED,
	REFUSED,
	ON_REFUSED,
	NUM_STATES,
};

/* After main has page 0 and a has page 1, of 8: steps in some state.  How many? */
static int bring_about(struct fixture *f, enum state state, uint64_t *s)
{
	int n = 0;

	if (state == WAITS_FOR_PAGES) {
		/* It gives up page 1, which nobody has then before it is promoted. */
		s[n++] = give(f, (struct plain){.segments = {SEGMENT(1, "b", 1, 0)},
		                                .pre = {{"main", "a"}},
		                                .flags = QUIRE_STEP_SPECULATIVE});
		s[n++] = give(f, SPECULATIVE(1, "b", 12, 1)); /* 6 pages of 5 */
	} else if (state == REFUSED || state == ON_REFUSED) {
		s[n++] = give(f, SPECULATIVE(1, NULL, 1, 9));
	} else {
		s[n++] = give(f, (struct plain){.segments = {SEGMENT(1, "b", 3, 0)},
		                                .post = {{"b", "c"}},
		                                .flags = QUIRE_STEP_SPECULATIVE});
	}
	if (state == HELD_STACK || state == WAITS_FOR_SLOT || state == ON_REFUSED)
		s[n++] = give(f, SPECULATIVE(1, "b", 2, state == ON_REFUSED ? 0 : 3));
	if (state == HELD_STACK)
		s[n++] = give(f, SPECULATIVE(1, "c", 1, 3));
	if (state != NOT_REACHED)
		settle(f);
	return n;
}

static void check_state(struct fixture *f, enum state state, const uint64_t *s, int n)
{
	uint64_t held = stats_of(f).steps_held;

	if (state == HELD || state == HELD_STACK)
		ck_assert_uint_eq(held, (uint64_t)n);
	else
		ck_assert_uint_eq(held,
		                  state == WAITS_FOR_PAGES || state == WAITS_FOR_SLOT);
	if (state == WAITS_FOR_PAGES || state == WAITS_FOR_SLOT || state == NOT_REACHED)
		ck_assert_int_eq(stage_of(f, s[n - 1]), QUIRE_STAGE_QUEUED);
	if (state == WAITS_FOR_SLOT)
		ck_assert_int_eq(stats_of(f).pages_owned, 2 + 3 + 1);
	if (state == WAITS_FOR_PAGES)
		ck_assert_int_eq(stats_of(f).pages_retiring, 1);
	if (state == REFUSED || state == ON_REFUSED)
		check_open(f, s[0], QUIRE_STALE);
	if (state == ON_REFUSED)
		check_open(f, s[1], QUIRE_ABANDONED);
}

/* Everything is as if they had never been: page ids, step numbers, generations. */
START_TEST(abandon_leaves_nothing_in_whatever_state_it_finds_a_step)
{
	enum state state = (enum state)(_i % NUM_STATES);
	bool top_first = _i >= NUM_STATES;
	uint64_t s[3], generations[2], step;
	struct fixture f;
	int n;

	directed_begin(&f, 8, 2);
	f.config.depth = state == WAITS_FOR_SLOT ? 1 : 4;
	fixture_create(&f);
	ck_assert_int_eq(open_now(&f, 1), QUIRE_OK);
	extend_now(&f, 1, NULL, 2, 0);
	extend_now(&f, 1, "a", 2, 0);
	generations[0] = snapshot_of(&f, 1, NULL).generation;
	generations[1] = snapshot_of(&f, 1, "a").generation;
	n = bring_about(&f, state, s);
	check_state(&f, state, s, n);
	for (int i = n - 1; top_first && i > 0; i--) {
		ck_assert_int_eq(abandon(&f, s[i]), QUIRE_OK);
		settle(&f);
	}
	ck_assert_int_eq(abandon(&f, s[0]), QUIRE_OK);
	for (int i = 0; i < n; i++) {
		check_end(&f, s[i], QUIRE_ABANDONED);
		ck_assert_uint_eq(outcome_now(&f, s[i]).step, 0);
		ck_assert_int_eq(outcome_now(&f, s[i]).pages_taken, 0);
		ck_assert_int_eq(abandon(&f, s[i]), QUIRE_INVALID);
		ck_assert_int_eq(promote(&f, s[i]), QUIRE_INVALID);
	}
	ck_assert_int_eq(look(&f, 1, "b"), QUIRE_NO_LABEL);
	ck_assert_int_eq(look(&f, 1, "c"), QUIRE_NO_LABEL);
	ck_assert_uint_eq(snapshot_of(&f, 1, NULL).generation, generations[0]);
	ck_assert_uint_eq(snapshot_of(&f, 1, "a").generation, generations[1]);
	ck_assert_int_eq(stats_of(&f).pages_owned, 2);
	ck_assert_int_eq(stats_of(&f).pages_free, 6);
	ck_assert_uint_eq(stats_of(&f).steps_held, 0);
	ck_assert_uint_eq(stats_of(&f).steps_abandoned, (uint64_t)n);
	step = give(&f, STEP(1, "d", 12, 0));
	check_end(&f, step, QUIRE_OK);
	ck_assert_uint_eq(outcome_now(&f, step).step, 3);
	ck_assert_stream(&f, 1, "d", 12, 2, 3, 4, 5, 6, 7);
	fixture_end(&f);
}
END_TEST

/* Three steps hold 0, 1 and 2; only the upper two go. */
START_TEST(pages_of_abandoned_steps_are_taken_next_in_the_order_they_were_taken_in)
{
	struct fixture f;
	uint64_t s[3];

	directed_begin(&f, 8, 2);
	f.config.depth = 4;
	fixture_create(&f);
	ck_assert_int_eq(open_now(&f, 1), QUIRE_OK);
	for (int i = 0; i < 3; i++)
		s[i] = give(&f, SPECULATIVE(1, NULL, 4, 4 * i));
	settle(&f);
	ck_assert_int_eq(abandon(&f, s[1]), QUIRE_OK);
	settle(&f);
	check_end(&f, s[1], QUIRE_ABANDONED);
	check_end(&f, s[2], QUIRE_ABANDONED);
	ck_assert_int_eq(stats_of(&f).pages_free, 6);
	ck_assert_int_eq(promote(&f, s[0]), QUIRE_OK);
	extend_now(&f, 1, "a", 2, 0); /* others were free before */
	extend_now(&f, 1, "b", 8, 0);
	ck_assert_stream(&f, 1, NULL, 4, 0, 1);
	ck_assert_stream(&f, 1, "a", 2, 2);
	ck_assert_stream(&f, 1, "b", 8, 3, 4, 5, 6);
	fixture_end(&f);
}
END_TEST

/* Labels by a segment and by a fork, and not a byte of the cache. */
START_TEST(a_staged_fork_moves_no_byte)
{
	struct fixture f;
	char *before, *storage;
	size_t bytes;
	uint64_t s;

	directed_start(&f, 8, 2);
	bytes = (size_t)quire_cache_nbytes(f.cache);
	storage = quire_cache_data_ptr(f.cache);
	before = malloc(bytes);
	ck_assert_ptr_nonnull(before);
	extend_now(&f, 1, NULL, 3, 0);
	for (size_t i = 0; i < bytes; i++)
		storage[i] = (char)(i * 7 + 1);
	memcpy(before, storage, bytes);
	s = give(&f, (struct plain){
			     .segments = {SEGMENT(1, "a", 3, 3), SEGMENT(1, "b", 3, 0)},
			     .pre = {{"main", "a"}},
			     .post = {{"a", "c"}},
			     .flags = QUIRE_STEP_SPECULATIVE});
	settle(&f);
	check_open(&f, s, QUIRE_OK);
	ck_assert_mem_eq(storage, before, bytes);
	ck_assert_int_eq(abandon(&f, s), QUIRE_OK);
	check_end(&f, s, QUIRE_ABANDONED);
	ck_assert_mem_eq(storage, before, bytes);
	ck_assert_stream(&f, 1, NULL, 3, 0, 1);
	free(before);
	fixture_end(&f);
}
END_TEST

/* ------------------------------------------------------------------ pages of a base */

/* Main has 0, a has 1; the fork gives page 1 up, and b has 2. */
static uint64_t hold_a_release(struct fixture *f)
{
	uint64_t s;

	extend_now(f, 1, NULL, 2, 0);
	extend_now(f, 1, "a", 2, 0);
	s = give(f, (struct plain){.segments = {SEGMENT(1, "b", 1, 0)},
	                           .pre = {{"main", "a"}},
	                           .flags = QUIRE_STEP_SPECULATIVE});
	settle(f);
	check_open(f, s, QUIRE_OK);
	ck_assert_int_eq(stats_of(f).pages_owned, 2);
	ck_assert_int_eq(stats_of(f).pages_retiring, 1);
	return s;
}

START_TEST(a_page_that_a_held_step_gave_up_is_nobodys_until_the_promote)
{
	struct quire_refusal refusal;
	struct fixture f;
	uint64_t s;

	directed_start(&f, 8, 2);
	s = hold_a_release(&f);
	ck_assert_int_eq(stats_of(&f).pages_free, 5);
	ck_assert_int_eq(quire_runtime_check(f.runtime, &refusal), QUIRE_OK);
	ck_assert_int_eq(_i == 0 ? promote(&f, s) : abandon(&f, s), QUIRE_OK);
	settle(&f);
	ck_assert_int_eq(stats_of(&f).pages_retiring, 0);
	ck_assert_int_eq(stats_of(&f).pages_free, 6);
	if (_i == 0) { /* behind all others */
		ck_assert_stream(&f, 1, "a", 2, 0);
		extend_now(&f, 1, "c", 12, 0);
		ck_assert_stream(&f, 1, "c", 12, 3, 4, 5, 6, 7, 1);
	} else {
		ck_assert_stream(&f, 1, "a", 2, 1);
		extend_now(&f, 1, "c", 12, 0);
		ck_assert_stream(&f, 1, "c", 12, 2, 3, 4, 5, 6, 7);
	}
	fixture_end(&f);
}
END_TEST

/* Two held steps give up 1 and 2; only the lower one is promoted. */
START_TEST(a_promote_releases_what_its_own_step_gave_up_and_no_more)
{
	struct fixture f;
	uint64_t s1, s2;

	directed_start(&f, 8, 2);
	extend_now(&f, 1, "c", 2, 0);
	ck_assert_stream(&f, 1, "c", 2, 0);
	extend_now(&f, 1, NULL, 2, 0); /* 1 */
	extend_now(&f, 1, "a", 2, 0);  /* 2 */
	s1 = give(&f, (struct plain){.segments = {SEGMENT(1, NULL, 0, 2)},
	                             .pre = {{"c", "main"}},
	                             .flags = QUIRE_STEP_SPECULATIVE});
	s2 = give(&f, (struct plain){.segments = {SEGMENT(1, NULL, 0, 2)},
	                             .pre = {{"main", "a"}},
	                             .flags = QUIRE_STEP_SPECULATIVE});
	settle(&f);
	ck_assert_int_eq(stats_of(&f).pages_retiring, 2);
	ck_assert_int_eq(promote(&f, s1), QUIRE_OK);
	check_end(&f, s1, QUIRE_OK);
	check_open(&f, s2, QUIRE_OK);
	ck_assert_int_eq(stats_of(&f).pages_retiring, 1);
	ck_assert_int_eq(stats_of(&f).pages_free, 6);
	ck_assert_int_eq(_i == 0 ? promote(&f, s2) : abandon(&f, s2), QUIRE_OK);
	settle(&f);
	ck_assert_stream(&f, 1, NULL, 2, 0);
	ck_assert_stream(&f, 1, "a", 2, _i == 0 ? 0 : 2);
	ck_assert_int_eq(stats_of(&f).pages_free, _i == 0 ? 7 : 6);
	fixture_end(&f);
}
END_TEST

START_TEST(a_step_that_fits_waits_for_the_pages_that_its_base_gives_up)
{
	struct fixture f;
	uint64_t s1, s2;

	directed_start(&f, 4, 2);
	s1 = hold_a_release(&f);
	s2 = give(&f, SPECULATIVE(1, "b", 5, 1)); /* 2 pages more, of 3 and 1 */
	settle(&f);
	ck_assert_int_eq(stage_of(&f, s2), QUIRE_STAGE_QUEUED);
	ck_assert_int_eq(_i == 0 ? promote(&f, s1) : abandon(&f, s1), QUIRE_OK);
	settle(&f);
	if (_i == 0) {
		check_end(&f, s1, QUIRE_OK);
		check_open(&f, s2, QUIRE_OK);
		ck_assert_int_eq(promote(&f, s2), QUIRE_OK);
		check_end(&f, s2, QUIRE_OK);
		ck_assert_stream(&f, 1, "b", 6, 2, 3, 1);
	} else {
		check_end(&f, s1, QUIRE_ABANDONED);
		check_end(&f, s2, QUIRE_ABANDONED);
		extend_now(&f, 1, "c", 4, 0);
		ck_assert_stream(&f, 1, "c", 4, 2, 3);
	}
	fixture_end(&f);
}
END_TEST

START_TEST(a_step_that_may_not_wait_is_told_again_and_ends_what_rests_on_it)
{
	struct quire_outcome outcome;
	struct fixture f;
	uint64_t s1, s2, s3;

	directed_start(&f, 4, 2);
	s1 = hold_a_release(&f);
	s2 = give(&f,
	          (struct plain){.segments = {SEGMENT(1, "b", 5, 1)},
	                         .flags = QUIRE_STEP_SPECULATIVE | QUIRE_STEP_NO_WAIT});
	s3 = give(&f, SPECULATIVE(1, "b", 1, 1));
	settle(&f);
	check_open(&f, s2, QUIRE_AGAIN);
	check_open(&f, s3, QUIRE_ABANDONED);
	outcome = outcome_now(&f, s2);
	ck_assert_int_eq(outcome.refusal.free, 1);
	ck_assert_int_eq(outcome.refusal.retiring, 1);
	ck_assert_int_eq(outcome.refusal.owned, 2);
	ck_assert_int_eq(promote(&f, s3), QUIRE_OK);
	ck_assert_int_eq(promote(&f, s2), QUIRE_OK);
	ck_assert_int_eq(promote(&f, s1), QUIRE_OK);
	check_end(&f, s1, QUIRE_OK);
	check_end(&f, s2, QUIRE_AGAIN);
	check_end(&f, s3, QUIRE_ABANDONED);
	ck_assert_stream(&f, 1, "b", 1, 2);
	fixture_end(&f);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("speculative");
	TCase *tcase = tcase_create("speculative");

	tcase_add_test(tcase, a_held_step_is_not_shown_and_is_what_it_was_when_promoted);
	tcase_add_test(tcase, no_other_command_runs_a_held_step_nor_overtakes_it);
	tcase_add_loop_test(
		tcase, a_stack_takes_its_place_from_the_bottom_whatever_is_promoted_first,
		1, 5);
	tcase_add_test(tcase,
	               a_promote_is_heard_while_the_planner_waits_for_the_slot_below);
	tcase_add_loop_test(tcase,
	                    abandon_leaves_nothing_in_whatever_state_it_finds_a_step, 0,
	                    2 * NUM_STATES);
	tcase_add_test(
		tcase,
		pages_of_abandoned_steps_are_taken_next_in_the_order_they_were_taken_in);
	tcase_add_test(tcase, a_staged_fork_moves_no_byte);
	tcase_add_loop_test(tcase,
	                    a_page_that_a_held_step_gave_up_is_nobodys_until_the_promote,
	                    0, 2);
	tcase_add_loop_test(
		tcase, a_promote_releases_what_its_own_step_gave_up_and_no_more, 0, 2);
	tcase_add_loop_test(
		tcase, a_step_that_fits_waits_for_the_pages_that_its_base_gives_up, 0, 2);
	tcase_add_test(tcase,
	               a_step_that_may_not_wait_is_told_again_and_ends_what_rests_on_it);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
