/* SPDX-License-Identifier: MIT */
/* Histories made by hand: which of them have an order, and which have none. */
#include "config.h"

#include "tests/alloc/linear_history.h"
#include "tests/run_suite.h"

#include <check.h>

/* Four pages, of which 0, 1, ... are free; nothing happens and nothing is free after. */
static struct history history_of(int32_t num_free)
{
	struct history history = {.num_pages = 4, .before.n = num_free};

	for (int32_t i = 0; i < num_free; i++)
		history.before.pages[i] = i;
	return history;
}

static void end_with(struct history *history, int32_t n, int32_t a, int32_t b, int32_t c,
                     int32_t d)
{
	history->after = (struct history_row){n, {a, b, c, d}};
}

/* One more call of a thread. */
static struct history_op *add(struct history *history, int thread, int64_t start,
                              int64_t end, struct history_op op)
{
	struct history_thread *ops = &history->threads[thread];

	op.start = start;
	op.end = end;
	ops->ops[ops->num_ops] = op;
	return &ops->ops[ops->num_ops++];
}

/* The same call, with other arguments and another answer. */
static void change(struct history_op *op, struct history_op to)
{
	to.start = op->start;
	to.end = op->end;
	*op = to;
}

static struct history_op took(int32_t n, int32_t a, int32_t b)
{
	return (struct history_op){.call = HISTORY_TRY_ALLOCATE, .n = n, .pages = {a, b}};
}

static struct history_op took_none(int32_t n, int32_t available)
{
	return (struct history_op){.call = HISTORY_ALLOCATE,
	                           .n = n,
	                           .status = QUIRE_NO_PAGES,
	                           .told = available};
}

static struct history_op gave(int32_t n, int32_t a, int32_t b)
{
	return (struct history_op){.call = HISTORY_FREE, .n = n, .pages = {a, b}};
}

static struct history_op gave_none(int32_t n, int32_t a, int32_t b, int32_t place)
{
	return (struct history_op){.call = HISTORY_FREE,
	                           .n = n,
	                           .pages = {a, b},
	                           .status = QUIRE_NOT_OWNED,
	                           .told = place};
}

static struct history_op counted(int32_t n)
{
	return (struct history_op){.call = HISTORY_NUM_FREE, .told = n};
}

START_TEST(calls_that_overlap_may_go_either_way_others_may_not)
{
	struct history history = history_of(1);
	struct history_op *second;

	add(&history, 0, 0, 2, took_none(1, 0));
	second = add(&history, 1, 1, 3, took(1, 0, 0));
	ck_assert(history_has_order(&history));
	second->start = 3;
	second->end = 4;
	ck_assert(!history_has_order(&history));
}
END_TEST

START_TEST(a_take_is_the_oldest_pages_in_their_order)
{
	struct history history = history_of(2);
	struct history_op *op = add(&history, 0, 0, 1, took(2, 0, 1));

	ck_assert(history_has_order(&history));
	change(op, took(2, 1, 0));
	ck_assert(!history_has_order(&history));
	change(op, took(2, 0, 2));
	ck_assert(!history_has_order(&history));
}
END_TEST

START_TEST(a_batch_joins_in_one_piece)
{
	struct history history = history_of(0);

	add(&history, 0, 0, 2, gave(2, 0, 1));
	add(&history, 1, 1, 3, gave(2, 2, 3));
	end_with(&history, 4, 0, 1, 2, 3);
	ck_assert(history_has_order(&history));
	end_with(&history, 4, 2, 3, 0, 1);
	ck_assert(history_has_order(&history));
	end_with(&history, 4, 0, 2, 1, 3);
	ck_assert(!history_has_order(&history));
	end_with(&history, 3, 0, 1, 2, 0);
	ck_assert(!history_has_order(&history));
}
END_TEST

START_TEST(a_refused_take_tells_how_many_pages_there_were)
{
	struct history history = history_of(1);
	struct history_op *op = add(&history, 0, 0, 2, took_none(3, 1));

	end_with(&history, 1, 0, 0, 0, 0);
	ck_assert(history_has_order(&history));
	op->told = 0;
	ck_assert(!history_has_order(&history));
	op->told = 2;
	ck_assert(!history_has_order(&history));
	op->told = HISTORY_UNTOLD;
	ck_assert(history_has_order(&history));
	op->n = 1;
	ck_assert(!history_has_order(&history));
}
END_TEST

START_TEST(a_count_is_the_count_at_some_instant_of_the_call)
{
	struct history history = history_of(0);
	struct history_op *op;

	add(&history, 0, 0, 9, gave(2, 0, 1));
	op = add(&history, 1, 1, 2, counted(2));
	end_with(&history, 2, 0, 1, 0, 0);
	ck_assert(history_has_order(&history));
	op->told = 1;
	ck_assert(!history_has_order(&history));
	op->told = 0;
	ck_assert(history_has_order(&history));
	op->start = 9;
	op->end = 10;
	ck_assert(!history_has_order(&history));
}
END_TEST

START_TEST(two_frees_of_a_page_both_succeed_only_with_a_take_between)
{
	struct history history = history_of(0);

	add(&history, 0, 0, 8, gave(1, 0, 0));
	add(&history, 1, 1, 9, gave(1, 0, 0));
	end_with(&history, 1, 0, 0, 0, 0);
	ck_assert(!history_has_order(&history));
	end_with(&history, 2, 0, 0, 0, 0);
	ck_assert(!history_has_order(&history));
	add(&history, 2, 2, 3, took(1, 0, 0));
	end_with(&history, 1, 0, 0, 0, 0);
	ck_assert(history_has_order(&history));
}
END_TEST

/* The one that is refused ends before the other has come into effect. */
START_TEST(a_free_may_be_refused_for_a_page_in_the_hands_of_another)
{
	struct history history = history_of(0);
	struct history_op *refused;

	add(&history, 0, 0, 9, gave(1, 0, 0));
	refused = add(&history, 1, 1, 2, gave_none(1, 0, 0, 0));
	add(&history, 1, 3, 4, counted(0));
	end_with(&history, 1, 0, 0, 0, 0);
	ck_assert(history_has_order(&history));
	history.threads[0].ops[0].start = 2;
	ck_assert(!history_has_order(&history));
	refused->end = 3;
	ck_assert(history_has_order(&history));
	change(refused, gave_none(2, 0, 1, 1));
	ck_assert(!history_has_order(&history));
}
END_TEST

START_TEST(a_free_may_be_refused_for_a_page_that_a_take_has_not_returned)
{
	struct history history = history_of(1);

	add(&history, 0, 0, 9, took(1, 0, 0));
	add(&history, 1, 1, 2, counted(0));
	add(&history, 1, 3, 4, gave_none(1, 0, 0, 0));
	ck_assert(history_has_order(&history));
	history.threads[0].ops[0].end = 3;
	ck_assert(!history_has_order(&history));
}
END_TEST

START_TEST(two_frees_of_a_page_are_both_refused_only_if_one_is_for_a_later_page)
{
	struct history history = history_of(0);
	struct history_op *other;

	add(&history, 0, 0, 2, gave_none(1, 0, 0, 0));
	other = add(&history, 1, 1, 3, gave_none(1, 0, 0, 0));
	ck_assert(!history_has_order(&history));
	history = history_of(2);
	end_with(&history, 2, 0, 1, 0, 0);
	add(&history, 0, 0, 2, gave_none(1, 2, 0, 0));
	other = add(&history, 1, 1, 3, gave_none(2, 2, 1, 1));
	ck_assert(history_has_order(&history));
	change(other, gave_none(2, 1, 2, 0));
	ck_assert(!history_has_order(&history));
	change(other, gave_none(2, 2, 1, 1));
	other->start = 2;
	ck_assert(!history_has_order(&history));
}
END_TEST

START_TEST(a_refused_free_names_a_place_that_is_bad_behind_good_ones)
{
	struct history history = history_of(2);
	struct history_op *op = add(&history, 0, 0, 1, gave_none(2, 2, 1, 1));

	end_with(&history, 2, 0, 1, 0, 0);
	ck_assert(history_has_order(&history));
	op->told = 0;
	ck_assert(!history_has_order(&history));
	op->told = 2;
	ck_assert(!history_has_order(&history));
	op->pages[0] = 0;
	op->told = 1;
	ck_assert(!history_has_order(&history));
	op->pages[0] = op->pages[1] = 3;
	ck_assert(history_has_order(&history));
	op->told = 0;
	ck_assert(!history_has_order(&history));
}
END_TEST

START_TEST(an_id_out_of_range_is_invalid_and_named_first)
{
	struct history history = history_of(2);
	struct history_op *op = add(&history, 0, 0, 1, gave_none(2, 1, 4, 1));

	end_with(&history, 2, 0, 1, 0, 0);
	op->status = QUIRE_INVALID;
	ck_assert(history_has_order(&history));
	op->told = 0;
	ck_assert(!history_has_order(&history));
	op->status = QUIRE_NOT_OWNED;
	ck_assert(!history_has_order(&history));
	op->pages[1] = 0;
	op->status = QUIRE_INVALID;
	ck_assert(!history_has_order(&history));
}
END_TEST

START_TEST(a_free_of_what_is_not_owned_never_succeeds)
{
	struct history history = history_of(2);
	struct history_op *op = add(&history, 0, 0, 1, gave(2, 2, 3));

	end_with(&history, 4, 0, 1, 2, 3);
	ck_assert(history_has_order(&history));
	op->pages[1] = history.after.pages[3] = 1;
	ck_assert(!history_has_order(&history));
	op->pages[1] = history.after.pages[3] = 2;
	ck_assert(!history_has_order(&history));
	op->pages[1] = history.after.pages[3] = 4;
	ck_assert(!history_has_order(&history));
}
END_TEST

START_TEST(overlaps_and_contests_are_counted_once_per_pair)
{
	struct history history = history_of(0);

	add(&history, 0, 0, 3, gave(1, 0, 0));
	add(&history, 0, 4, 6, gave(2, 1, 2));
	add(&history, 1, 1, 5, gave_none(2, 3, 0, 1));
	add(&history, 2, 2, 7, counted(0));
	ck_assert_int_eq(history_overlaps(&history), 5);
	ck_assert_int_eq(history_contests(&history), 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("histories");
	TCase *tcase = tcase_create("all");

	tcase_add_test(tcase, calls_that_overlap_may_go_either_way_others_may_not);
	tcase_add_test(tcase, a_take_is_the_oldest_pages_in_their_order);
	tcase_add_test(tcase, a_batch_joins_in_one_piece);
	tcase_add_test(tcase, a_refused_take_tells_how_many_pages_there_were);
	tcase_add_test(tcase, a_count_is_the_count_at_some_instant_of_the_call);
	tcase_add_test(tcase, two_frees_of_a_page_both_succeed_only_with_a_take_between);
	tcase_add_test(tcase, a_free_may_be_refused_for_a_page_in_the_hands_of_another);
	tcase_add_test(tcase,
	               a_free_may_be_refused_for_a_page_that_a_take_has_not_returned);
	tcase_add_test(
		tcase,
		two_frees_of_a_page_are_both_refused_only_if_one_is_for_a_later_page);
	tcase_add_test(tcase, a_refused_free_names_a_place_that_is_bad_behind_good_ones);
	tcase_add_test(tcase, an_id_out_of_range_is_invalid_and_named_first);
	tcase_add_test(tcase, a_free_of_what_is_not_owned_never_succeeds);
	tcase_add_test(tcase, overlaps_and_contests_are_counted_once_per_pair);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
