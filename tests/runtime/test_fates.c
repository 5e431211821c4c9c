/* SPDX-License-Identifier: MIT */
/* What a replay knows of the fates of speculative submits. */
#include "config.h"

#include "runtime/cmd/fates_impl.h"

#include "tests/run_suite.h"

#include <check.h>
#include <string.h>

static struct cmd_fates fates;

static void setup(void)
{
	memset(&fates, 0, sizeof(fates));
	ck_assert(cmd_fates_init(&fates));
}

static void teardown(void)
{
	cmd_fates_end(&fates);
}

static uint64_t id_of(const struct cmd_fate *fate)
{
	return fate != NULL ? fate->id : 0;
}

/* A submit that rests on what the trace's order says, given to the runtime. */
static struct cmd_fate *add(uint64_t id)
{
	struct cmd_fate *fate = cmd_fates_add(&fates, id, id_of(cmd_fates_base(&fates)));

	fate->ticket = id;
	return fate;
}

START_TEST(a_submit_rests_on_the_newest_that_is_open)
{
	struct cmd_fate *first = add(1), *second = add(2);

	ck_assert_uint_eq(first->base, 0);
	ck_assert_uint_eq(second->base, 1);
	cmd_fates_promote(&fates, second);
	ck_assert_uint_eq(id_of(cmd_fates_base(&fates)), 1);
	cmd_fates_abandon(&fates, first);
	ck_assert_ptr_null(cmd_fates_base(&fates));
	ck_assert_int_eq(second->state, CMD_FATE_ABANDONED);
}
END_TEST

START_TEST(other_commands_between_cut_the_two_views_each_by_itself)
{
	add(1);
	cmd_fates_other(&fates, false);
	ck_assert_ptr_null(cmd_fates_base(&fates));
	ck_assert_uint_eq(id_of(cmd_fates_derived(&fates)), 1);
	cmd_fates_other(&fates, true);
	ck_assert_ptr_null(cmd_fates_derived(&fates));
	ck_assert_uint_eq(id_of(cmd_fates_given(&fates)), 1);
	add(2);
	ck_assert_uint_eq(id_of(cmd_fates_base(&fates)), 2);
	cmd_fates_add(&fates, 3, 2); /* not given */
	ck_assert_uint_eq(id_of(cmd_fates_base(&fates)), 3);
	ck_assert_uint_eq(id_of(cmd_fates_derived(&fates)), 2);
}
END_TEST

START_TEST(a_promote_is_told_once_all_below_is_promoted)
{
	struct cmd_fate *first = add(1), *second = add(2), *third = add(3);

	cmd_fates_promote(&fates, third);
	cmd_fates_promote(&fates, second);
	ck_assert_ptr_null(cmd_fates_untold(&fates, NULL));
	ck_assert(!second->is_final);
	ck_assert_uint_eq(id_of(cmd_fates_derived(&fates)), 3);
	cmd_fates_promote(&fates, first);
	ck_assert(first->is_final && second->is_final && third->is_final);
	for (uint64_t id = 1; id <= 3; id++) {
		struct cmd_fate *fate = cmd_fates_untold(&fates, NULL);

		ck_assert_uint_eq(id_of(fate), id);
		cmd_fates_tell(&fates, fate);
	}
	ck_assert_ptr_null(cmd_fates_untold(&fates, NULL));
	ck_assert_ptr_null(cmd_fates_derived(&fates));
	ck_assert_ptr_null(cmd_fates_open(&fates));
}
END_TEST

START_TEST(a_promote_is_told_before_a_submit_on_an_older_step)
{
	struct cmd_fate *first = add(1), *second = add(2), *third = add(3);

	cmd_fates_promote(&fates, second);
	cmd_fates_promote(&fates, third);
	ck_assert_ptr_eq(cmd_fates_untold(&fates, second), third);
	cmd_fates_tell(&fates, third);
	ck_assert_ptr_null(cmd_fates_untold(&fates, second));
	ck_assert_ptr_eq(cmd_fates_untold(&fates, first), second);
	cmd_fates_tell(&fates, second);
	ck_assert_ptr_eq(cmd_fates_derived(&fates), first);
	cmd_fates_promote(&fates, first);
	ck_assert(third->is_final);
}
END_TEST

START_TEST(an_abandon_ends_all_that_rest_on_it_and_nothing_else)
{
	struct cmd_fate *first = add(1), *second = add(2), *third = add(3), *fourth;

	cmd_fates_other(&fates, true);
	fourth = add(4);
	cmd_fates_promote(&fates, third);
	cmd_fates_abandon(&fates, second);
	ck_assert_int_eq(first->state, CMD_FATE_OPEN);
	ck_assert_int_eq(second->state, CMD_FATE_ABANDONED);
	ck_assert_int_eq(third->state, CMD_FATE_ABANDONED);
	ck_assert(second->is_final && third->is_final && !first->is_final);
	ck_assert_int_eq(fourth->state, CMD_FATE_OPEN);
	ck_assert_ptr_null(cmd_fates_untold(&fates, NULL));
	ck_assert_ptr_eq(cmd_fates_open(&fates), first);
	ck_assert_ptr_eq(cmd_fates_find(&fates, 3), third);
	ck_assert_int_eq(cmd_fates_add(&fates, 5, 3)->state, CMD_FATE_ABANDONED);
	ck_assert(cmd_fates_find(&fates, 5)->is_late);
	ck_assert_ptr_eq(cmd_fates_base(&fates), fourth);
}
END_TEST

/* Whatever the fate of a base is, nothing that is open and no other command lies between. */
START_TEST(a_base_is_the_newest_that_is_open_or_one_behind_it)
{
	struct cmd_fate *first = add(1), *second = add(2), *third = add(3), *fourth;

	ck_assert(cmd_fates_may_rest(&fates, third));
	ck_assert(!cmd_fates_may_rest(&fates, second));
	ck_assert(!cmd_fates_may_rest(&fates, NULL));
	cmd_fates_promote(&fates, second);
	cmd_fates_abandon(&fates, third);
	ck_assert(cmd_fates_may_rest(&fates, third));
	ck_assert(cmd_fates_may_rest(&fates, second));
	ck_assert(cmd_fates_may_rest(&fates, first));
	ck_assert(!cmd_fates_may_rest(&fates, NULL));
	cmd_fates_promote(&fates, first);
	ck_assert(cmd_fates_may_rest(&fates, NULL));
	ck_assert(cmd_fates_may_rest(&fates, first));
	fourth = add(4);
	cmd_fates_other(&fates, false);
	ck_assert(cmd_fates_may_rest(&fates, NULL));
	ck_assert(!cmd_fates_may_rest(&fates, fourth));
	ck_assert(!cmd_fates_may_rest(&fates, third));
}
END_TEST

START_TEST(the_newest_are_remembered)
{
	for (uint64_t id = 1; id <= 3 * CMD_FATES; id++) {
		struct cmd_fate *fate = add(id * 2);

		ck_assert_uint_eq(fate->base, 0);
		if (id % 2 == 0)
			cmd_fates_abandon(&fates, fate);
		else
			cmd_fates_promote(&fates, fate);
		if (id % 2 == 1)
			cmd_fates_tell(&fates, cmd_fates_untold(&fates, NULL));
	}
	for (uint64_t id = 1; id <= 6 * CMD_FATES; id++)
		ck_assert_uint_eq(id_of(cmd_fates_find(&fates, id)),
		                  id > 4 * CMD_FATES && id % 2 == 0 ? id : 0);
	ck_assert_ptr_null(cmd_fates_find(&fates, 6 * CMD_FATES + 1));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("fates");
	TCase *tcase = tcase_create("fates");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, a_submit_rests_on_the_newest_that_is_open);
	tcase_add_test(tcase, other_commands_between_cut_the_two_views_each_by_itself);
	tcase_add_test(tcase, a_promote_is_told_once_all_below_is_promoted);
	tcase_add_test(tcase, a_promote_is_told_before_a_submit_on_an_older_step);
	tcase_add_test(tcase, an_abandon_ends_all_that_rest_on_it_and_nothing_else);
	tcase_add_test(tcase, a_base_is_the_newest_that_is_open_or_one_behind_it);
	tcase_add_test(tcase, the_newest_are_remembered);
	return run_suite(suite);
}
