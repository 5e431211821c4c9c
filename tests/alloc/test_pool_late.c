/* SPDX-License-Identifier: MIT */
/* Races of two or three calls, in the one order of events in which they can go wrong. */
#include "config.h"

#include "tests/alloc/frozen.h"
#include "tests/run_suite.h"

#include <check.h>

#include <stdlib.h>

/* ------------------------------------------------------------------ claims */

START_TEST(a_completed_free_is_not_hidden_behind_a_stopped_one)
{
	static const enum quire_pool_point points[] = {
		POOL_POINT_SEEN, POOL_POINT_CLAIMING, POOL_POINT_WRITTEN,
		POOL_POINT_RECORDED, POOL_POINT_APPENDED};

	for (size_t k = 0; k < sizeof(points) / sizeof(points[0]); k++) {
		struct quire_pool *pool = empty_pool(_i);
		struct caller caller = {.pool = pool,
		                        .verb = CALLER_GIVES,
		                        .n = 1,
		                        .pages = {5},
		                        .points = (uint32_t)1 << points[k]};
		int32_t pages[2], appended = points[k] == POOL_POINT_APPENDED;

		freeze(&caller);
		GIVE(pool, 3);
		ck_assert_int_eq(quire_pool_num_free(pool), 1 + appended);
		take(pool, 1 + appended, pages);
		ck_assert_int_eq(pages[appended], 3);
		ck_assert_int_eq(caller_ends(&caller), QUIRE_OK);
		ck_end(pool);
	}
}
END_TEST

/* Both have seen the page owned; the claim decides. */
START_TEST(a_free_that_saw_the_page_owned_is_refused_when_it_comes_second)
{
	struct quire_pool *pool = empty_pool(_i);
	int32_t pages[3];

	for (int32_t k = 0; k < 3; k++) {
		struct caller late = {.pool = pool,
		                      .verb = CALLER_GIVES,
		                      .n = 3,
		                      .pages = {4, 5, 6},
		                      .points = AT(SEEN)};

		freeze(&late);
		GIVE(pool, 4 + k);
		ck_assert_int_eq(caller_ends(&late), QUIRE_NOT_OWNED);
		ck_assert_int_eq(late.refusal.page, 4 + k);
		ck_assert_int_eq(late.refusal.index, k);
		ck_assert_free(pool, 4 + k);
		take(pool, 1, pages);
	}
	GIVE(pool, 4, 5, 6);
	ck_assert_free(pool, 4, 5, 6);
	ck_end(pool);
}
END_TEST

/* The first pass only reads: the good pages of a bad batch are their owner's at every
 * moment. */
START_TEST(a_plainly_bad_batch_claims_nothing)
{
	struct quire_pool *pool = empty_pool(_i);
	struct caller caller = {.pool = pool,
	                        .verb = CALLER_GIVES,
	                        .n = 3,
	                        .pages = {5, 6, 0},
	                        .points = AT(CLAIMING)};

	GIVE(pool, 0);
	ck_assert(!caller_stops(&caller));
	ck_assert_int_eq(caller.status, QUIRE_NOT_OWNED);
	ck_assert_free(pool, 0);
	ck_end(pool);
}
END_TEST

/* What a running free has claimed is refused to everybody. */
START_TEST(a_page_in_the_hands_of_a_running_free_is_not_owned)
{
	static const enum quire_pool_point points[] = {
		POOL_POINT_CLAIMING, POOL_POINT_WRITTEN, POOL_POINT_RECORDED,
		POOL_POINT_APPENDED};

	for (size_t k = 0; k < sizeof(points) / sizeof(points[0]); k++) {
		struct quire_pool *pool = empty_pool(_i);
		struct caller caller = {.pool = pool,
		                        .verb = CALLER_GIVES,
		                        .n = 2,
		                        .pages = {5, 6},
		                        .points = (uint32_t)1 << points[k],
		                        .passes = points[k] == POOL_POINT_CLAIMING};
		struct quire_refusal refusal;

		freeze(&caller);
		for (int32_t page = 5; page <= 6; page++) {
			ck_assert_int_eq(
				quire_pool_free(pool, LIST(0, page), 2, &refusal),
				QUIRE_NOT_OWNED);
			ck_assert_int_eq(refusal.page, page);
			ck_assert_int_eq(refusal.index, 1);
		}
		ck_assert_int_eq(caller_ends(&caller), QUIRE_OK);
		ck_assert_free(pool, 5, 6);
		ck_end(pool);
	}
}
END_TEST

START_TEST(a_page_that_is_taken_but_not_handed_out_is_not_owned)
{
	struct quire_pool *pool = empty_pool(_i);
	struct caller caller = {
		.pool = pool, .verb = CALLER_TAKES, .n = 3, .points = AT(TAKEN)};
	struct quire_refusal refusal;

	GIVE(pool, 3, 1, 2, 4);
	freeze(&caller);
	ck_assert_int_eq(quire_pool_num_free(pool), 1);
	for (int32_t page = 1; page <= 4; page++) {
		ck_assert_int_eq(quire_pool_free(pool, LIST(0, page), 2, &refusal),
		                 QUIRE_NOT_OWNED);
		ck_assert_int_eq(refusal.page, page);
	}
	ck_assert_int_eq(caller_ends(&caller), QUIRE_OK);
	GIVE(pool, 1, 2, 3);
	ck_assert_free(pool, 4, 1, 2, 3);
	ck_end(pool);
}
END_TEST

/* Of two batches in opposite orders the one that meets the other's page gives back what
 * it has claimed. */
START_TEST(a_refused_claim_gives_back_what_it_held)
{
	struct quire_pool *pool = empty_pool(_i);
	struct caller first = {.pool = pool,
	                       .verb = CALLER_GIVES,
	                       .n = 2,
	                       .pages = {5, 6},
	                       .points = AT(CLAIMING)};
	struct caller second = {.pool = pool,
	                        .verb = CALLER_GIVES,
	                        .n = 3,
	                        .pages = {7, 6, 5},
	                        .points = AT(SEEN)};

	freeze(&second);
	freeze(&first);
	ck_assert_int_eq(caller_ends(&second), QUIRE_NOT_OWNED);
	ck_assert_int_eq(second.refusal.page, 5);
	ck_assert_int_eq(second.refusal.index, 2);
	GIVE(pool, 7);
	ck_assert_int_eq(caller_ends(&first), QUIRE_OK);
	ck_assert_free(pool, 7, 5, 6);
	ck_end(pool);
}
END_TEST

/* A free that is itself refused may cost another one its page for a moment, no longer. */
START_TEST(a_page_is_its_owners_again_when_a_bad_batch_is_refused)
{
	struct quire_pool *pool = empty_pool(_i);
	struct caller bad = {.pool = pool,
	                     .verb = CALLER_GIVES,
	                     .n = 3,
	                     .pages = {5, 6, 5},
	                     .points = AT(CLAIMING),
	                     .passes = 1};

	freeze(&bad);
	ck_assert_int_eq(quire_pool_free(pool, LIST(6), 1, NULL), QUIRE_NOT_OWNED);
	ck_assert_int_eq(caller_ends(&bad), QUIRE_NOT_OWNED);
	ck_assert_int_eq(bad.refusal.page, 5);
	ck_assert_int_eq(bad.refusal.index, 2);
	GIVE(pool, 6, 5);
	ck_assert_free(pool, 6, 5);
	ck_end(pool);
}
END_TEST

/* ------------------------------------------------------------------ links */

/* Page 0 leaves and comes back while a take is about to link it in its former life. */
START_TEST(a_late_helper_does_not_link_a_page_in_its_next_life)
{
	struct quire_pool *pool = empty_pool(_i);
	struct caller helper = {
		.pool = pool, .verb = CALLER_TAKES, .n = 2, .points = AT(HELP_CHECKED)};
	int32_t pages[2];

	GIVE(pool, 0);
	GIVE(pool, 1);
	freeze(&helper);
	take(pool, 2, pages);
	GIVE(pool, 0);
	ck_assert_int_eq(caller_ends(&helper), QUIRE_NO_PAGES);
	ck_assert_free(pool, 0);
	GIVE(pool, 1);
	ck_assert_free(pool, 0, 1);
	ck_end(pool);
}
END_TEST

/* The same, with the page back as the last of a batch that is not appended yet. */
START_TEST(a_late_helper_does_not_link_a_page_that_is_on_its_way_back)
{
	struct quire_pool *pool = empty_pool(_i);
	struct caller helper = {
		.pool = pool, .verb = CALLER_TAKES, .n = 2, .points = AT(HELP_CHECKED)};
	struct caller again = {.pool = pool,
	                       .verb = CALLER_GIVES,
	                       .n = 1,
	                       .pages = {0},
	                       .points = AT(RECORDED)};
	int32_t pages[2];

	GIVE(pool, 0);
	GIVE(pool, 1);
	freeze(&helper);
	take(pool, 2, pages);
	GIVE(pool, 1);
	freeze(&again);
	ck_assert_int_eq(caller_ends(&helper), QUIRE_NO_PAGES);
	ck_assert_int_eq(caller_ends(&again), QUIRE_OK);
	ck_assert_free(pool, 1, 0);
	ck_end(pool);
}
END_TEST

/*
 * Page 1 is the tail and its record still names page 0, long since linked and taken.
 * Page 0 is on its way back, and nothing has changed since: only its gen tells.
 */
START_TEST(help_leaves_alone_a_page_that_is_on_its_way_back)
{
	struct quire_pool *pool = empty_pool(_i);
	struct caller back = {.pool = pool,
	                      .verb = CALLER_GIVES,
	                      .n = 1,
	                      .pages = {0},
	                      .points = AT(RECORDED)};
	struct caller helper = {.pool = pool,
	                        .verb = CALLER_GIVES,
	                        .n = 1,
	                        .pages = {2},
	                        .points = AT(RECORDED)};
	int32_t pages[2];

	GIVE(pool, 0);
	GIVE(pool, 1);
	take(pool, 1, pages);
	ck_assert_int_eq(pages[0], 0);
	freeze(&back);
	freeze(&helper);
	ck_assert_int_eq(caller_ends(&back), QUIRE_OK);
	/* Not all of the check: page 2 is still in the helper's hands. */
	ck_assert_int_eq(quire_fifo_list(&pool->fifo, pages, NULL), QUIRE_OK);
	ck_assert_pages(pages, LIST(1, 0), 2);
	ck_assert_int_eq(caller_ends(&helper), QUIRE_OK);
	ck_assert_free(pool, 1, 0, 2);
	ck_end(pool);
}
END_TEST

/* First a whole group that ends with `root`, then page `last`: a batch of two groups. */
static int32_t two_groups(int32_t *pages, int32_t root, int32_t last)
{
	for (int32_t i = 0; i < FIFO_GROUP - 1; i++)
		pages[i] = 5 + i;
	pages[FIFO_GROUP - 1] = root;
	pages[FIFO_GROUP] = last;
	return FIFO_GROUP + 1;
}

/*
 * The same tail behind the same page twice, in batches with different first roots, and a
 * helper that has read the first record.
 */
START_TEST(a_helper_does_not_believe_the_record_of_a_former_life)
{
	struct quire_pool *pool = empty_pool(_i);
	struct caller helper = {.pool = pool,
	                        .verb = CALLER_GIVES,
	                        .n = 1,
	                        .pages = {4},
	                        .points = AT(HELP_READ)};
	int32_t pages[MODEL_PAGES_MOST], expected[MODEL_PAGES_MOST], n;

	GIVE(pool, 0);
	n = two_groups(pages, 1, 2);
	give_list(pool, pages, n);
	freeze(&helper);
	take(pool, 1 + n, pages);
	GIVE(pool, 0);
	n = two_groups(expected + 1, 3, 2);
	expected[0] = 0;
	expected[1 + n] = 4;
	give_list(pool, expected + 1, n);
	ck_assert_int_eq(caller_ends(&helper), QUIRE_OK);
	ck_assert_free_pages(pool, expected, n + 2);
	ck_end(pool);
}
END_TEST

/*
 * A helper has read that page 1 is to be linked to page 0.  Now page 1 is a branch or a
 * leaf, and page 0 the tail: its words look as they did, but S has changed.
 */
START_TEST(a_helper_does_not_believe_a_tail_that_is_no_root_any_more)
{
	static const int32_t batches[2][3] = {{2, 1, 3}, {1, 2, 3}};

	for (int k = 0; k < 2; k++) {
		struct quire_pool *pool = empty_pool(_i);
		struct caller helper = {.pool = pool,
		                        .verb = CALLER_TAKES,
		                        .n = 2,
		                        .points = AT(HELP_READ)};
		int32_t pages[2];

		GIVE(pool, 0);
		GIVE(pool, 1);
		freeze(&helper);
		take(pool, 2, pages);
		give_list(pool, batches[k], 3);
		GIVE(pool, 0);
		ck_assert_int_eq(caller_ends(&helper), QUIRE_OK);
		ck_assert_pages(helper.pages, batches[k], 2);
		ck_assert_free(pool, 3, 0);
		ck_end(pool);
	}
}
END_TEST

/* ----------------------------------------------------------------- appends */

START_TEST(of_two_frees_behind_one_tail_the_second_finds_the_first)
{
	struct quire_pool *pool = empty_pool(_i);
	struct caller one = {.pool = pool,
	                     .verb = CALLER_GIVES,
	                     .n = 1,
	                     .pages = {1},
	                     .points = AT(RECORDED)};
	struct caller two = one;

	two.pages[0] = 2;
	GIVE(pool, 0);
	freeze(&one);
	freeze(&two);
	ck_assert_int_eq(caller_ends(&two), QUIRE_OK);
	ck_assert_int_eq(caller_ends(&one), QUIRE_OK);
	ck_assert_free(pool, 0, 2, 1);
	ck_end(pool);
}
END_TEST

/* An append to an empty FIFO that is not empty any more, and the other way round. */
START_TEST(a_free_notices_that_the_pool_has_filled_or_emptied)
{
	struct quire_pool *pool = empty_pool(_i);
	struct caller first = {.pool = pool,
	                       .verb = CALLER_GIVES,
	                       .n = 2,
	                       .pages = {5, 6},
	                       .points = AT(RECORDED)};
	struct caller second = first;
	int32_t pages[4];

	freeze(&first);
	GIVE(pool, 7);
	GIVE(pool, 8);
	ck_assert_int_eq(caller_ends(&first), QUIRE_OK);
	ck_assert_free(pool, 7, 8, 5, 6);
	second.pages[0] = 1;
	second.pages[1] = 2;
	freeze(&second);
	take(pool, 4, pages);
	ck_assert_int_eq(caller_ends(&second), QUIRE_OK);
	ck_assert_free(pool, 1, 2);
	ck_end(pool);
}
END_TEST

/* ------------------------------------------------------------------ takes */

/* The same root with the same skip and count, and another page before it. */
START_TEST(a_take_notices_that_the_group_of_its_head_is_another)
{
	struct quire_pool *pool = empty_pool(_i);
	struct caller caller = {
		.pool = pool, .verb = CALLER_TAKES, .n = 1, .points = AT(WALKED)};
	int32_t pages[3];

	GIVE(pool, 0, 1, 3);
	freeze(&caller);
	take(pool, 3, pages);
	GIVE(pool, 2, 1, 3);
	ck_assert_int_eq(caller_ends(&caller), QUIRE_OK);
	ck_assert_int_eq(caller.pages[0], 2);
	ck_assert_free(pool, 1, 3);
	ck_end(pool);
}
END_TEST

/* A taker has read pages of a group; another take raises the skip. */
START_TEST(a_take_notices_that_its_group_has_got_shorter)
{
	for (int32_t others = 1; others < 3; others++) {
		struct quire_pool *pool = empty_pool(_i);
		struct caller caller = {
			.pool = pool, .verb = CALLER_TAKES, .n = 1, .points = AT(WALKED)};
		int32_t pages[2];

		GIVE(pool, 0, 1, 2);
		freeze(&caller);
		take(pool, others, pages);
		ck_assert_int_eq(caller_ends(&caller), QUIRE_OK);
		ck_assert_int_eq(caller.pages[0], others);
		ck_assert_int_eq(quire_pool_num_free(pool), 2 - others);
		ck_end(pool);
	}
}
END_TEST

/* Only a free came between: the run stays, and only the new head is looked up again. */
START_TEST(a_take_of_all_goes_on_when_more_pages_came)
{
	struct quire_pool *pool = empty_pool(_i);
	struct caller caller = {.pool = pool,
	                        .verb = CALLER_TAKES,
	                        .n = 2,
	                        .points = AT(STARTED) | AT(WALKED)};

	GIVE(pool, 3, 1);
	freeze(&caller);
	for (int32_t more = 5; more < 8; more++) {
		ck_assert(caller_stops_again(&caller));
		ck_assert_int_eq(caller.point, POOL_POINT_WALKED);
		GIVE(pool, more);
	}
	ck_assert_int_eq(caller_ends(&caller), QUIRE_OK);
	ck_assert_pages(caller.pages, LIST(3, 1), 2);
	ck_assert_free(pool, 5, 6, 7);
	ck_end(pool);
}
END_TEST

START_TEST(a_take_is_refused_when_its_pages_went_to_another)
{
	struct quire_pool *pool = empty_pool(_i);
	struct caller caller = {.pool = pool,
	                        .verb = CALLER_TAKES,
	                        .n = 2,
	                        .pages = {-7, -7},
	                        .points = AT(WALKED)};
	int32_t pages[1];

	GIVE(pool, 3, 1);
	freeze(&caller);
	take(pool, 1, pages);
	ck_assert_int_eq(caller_ends(&caller), QUIRE_NO_PAGES);
	ck_assert_int_eq(caller.refusal.available, 1);
	ck_assert_pages(caller.pages, LIST(-7, -7), 2);
	ck_assert_free(pool, 1);
	ck_end(pool);
}
END_TEST

static void add_loop(TCase *tcase, const TTest *test)
{
	tcase_add_loop_test(tcase, test, 0, BEFORE);
}

static void add_claim_tests(TCase *tcase)
{
	add_loop(tcase, a_completed_free_is_not_hidden_behind_a_stopped_one);
	add_loop(tcase, a_free_that_saw_the_page_owned_is_refused_when_it_comes_second);
	add_loop(tcase, a_plainly_bad_batch_claims_nothing);
	add_loop(tcase, a_page_in_the_hands_of_a_running_free_is_not_owned);
	add_loop(tcase, a_page_that_is_taken_but_not_handed_out_is_not_owned);
	add_loop(tcase, a_refused_claim_gives_back_what_it_held);
	add_loop(tcase, a_page_is_its_owners_again_when_a_bad_batch_is_refused);
}

static void add_link_tests(TCase *tcase)
{
	add_loop(tcase, a_late_helper_does_not_link_a_page_in_its_next_life);
	add_loop(tcase, a_late_helper_does_not_link_a_page_that_is_on_its_way_back);
	add_loop(tcase, help_leaves_alone_a_page_that_is_on_its_way_back);
	add_loop(tcase, a_helper_does_not_believe_the_record_of_a_former_life);
	add_loop(tcase, a_helper_does_not_believe_a_tail_that_is_no_root_any_more);
}

static void add_other_tests(TCase *tcase)
{
	add_loop(tcase, of_two_frees_behind_one_tail_the_second_finds_the_first);
	add_loop(tcase, a_free_notices_that_the_pool_has_filled_or_emptied);
	add_loop(tcase, a_take_notices_that_the_group_of_its_head_is_another);
	add_loop(tcase, a_take_notices_that_its_group_has_got_shorter);
	add_loop(tcase, a_take_of_all_goes_on_when_more_pages_came);
	add_loop(tcase, a_take_is_refused_when_its_pages_went_to_another);
}

int main(void)
{
	Suite *suite = suite_create("pool, late calls");
	TCase *tcase = tcase_create("all");

	add_claim_tests(tcase);
	add_link_tests(tcase);
	add_other_tests(tcase);
	tcase_set_timeout(tcase, 60);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
