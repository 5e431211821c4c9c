/* SPDX-License-Identifier: MIT */
/* Forks, rewinds, released fronts and first writes: page ids counted by hand. */
#include "config.h"

#include "directed.h"
#include "tests/run_suite.h"

#include <check.h>

/* What the newest plan copies. */
static struct {
	int32_t num_pre, num_post;
	int32_t source[16], target[16], end[16];
} copies;

static enum quire_status note_copies(void *argument, const struct quire_plan *plan,
                                     struct quire_dstream *compute)
{
	int32_t n = plan->num_pre_copies + plan->num_post_copies;

	(void)argument;
	(void)compute;
	must(n <= 16);
	copies.num_pre = plan->num_pre_copies;
	copies.num_post = plan->num_post_copies;
	for (int32_t i = 0; i < n; i++) {
		copies.source[i] = plan->copy_source[i];
		copies.target[i] = plan->copy_target[i];
		copies.end[i] = plan->copy_end[i];
	}
	return QUIRE_OK;
}

static void check_copy(int32_t place, int32_t source, int32_t target, int32_t end)
{
	ck_assert_int_eq(copies.source[place], source);
	ck_assert_int_eq(copies.target[place], target);
	ck_assert_int_eq(copies.end[place], end);
}

static struct quire_outcome give_now(struct fixture *f, struct plain plain)
{
	uint64_t ticket;

	plain.run = note_copies;
	memset(&copies, 0xff, sizeof(copies));
	ticket = give(f, plain);
	settle(f);
	ck_assert_int_eq(told[ticket], 1);
	return outcome_of(f, ticket);
}

static enum quire_status front_now(struct fixture *f, uint64_t request, const char *label,
                                   int32_t tokens, int32_t *released_out)
{
	struct quire_outcome outcome;
	uint64_t ticket;

	must(quire_runtime_release_front(f->runtime, request, label, tokens, &ticket) ==
	     QUIRE_OK);
	outcome = outcome_of(f, ticket);
	*released_out = outcome.pages_released;
	return outcome.refusal.status;
}

/* ------------------------------------------------------------------ forks */

START_TEST(a_fork_shares_whole_pages_and_copies_the_partial_one)
{
	struct quire_outcome outcome;
	struct fixture f;

	directed_start(&f, 8, 4);
	extend_now(&f, 1, NULL, 10, 0); /* 0 1 2 */
	outcome = give_now(&f, (struct plain){.segments = {SEGMENT(1, "x", 1, 0)},
	                                      .pre = {{"main", "a"}},
	                                      .post = {{"a", "b"}}});
	ck_assert_int_eq(outcome.pages_taken, 3); /* 3: a, 4: x, 5: b */
	ck_assert_stream(&f, 1, "a", 10, 0, 1, 3);
	ck_assert_stream(&f, 1, "x", 1, 4);
	ck_assert_stream(&f, 1, "b", 10, 0, 1, 5);
	ck_assert_int_eq(copies.num_pre, 1);
	ck_assert_int_eq(copies.num_post, 1);
	check_copy(0, 2, 3, 2);
	check_copy(1, 3, 5, 2);
	ck_assert_uint_eq(stats_of(&f).copies, 2);
	ck_assert_uint_eq(stats_of(&f).first_writes, 0);
	fixture_end(&f);
}
END_TEST

/* c takes b's place as the other owner of page 1 before b gives it up: main's write has to
 * copy it still. */
START_TEST(a_fork_list_moves_a_name_and_the_write_behind_it_copies)
{
	struct quire_outcome outcome;
	struct fixture f;

	directed_start(&f, 8, 4);
	give_now(&f, (struct plain){.segments = {SEGMENT(1, NULL, 8, 0)},
	                            .post = {{"main", "b"}}}); /* 0 1 */
	extend_now(&f, 1, "d", 1, 0);                          /* 2 */
	ck_assert_int_eq(rewind_now(&f, 1, NULL, 2), QUIRE_OK);
	outcome = give_now(&f, (struct plain){.segments = {SEGMENT(1, NULL, 1, 6)},
	                                      .pre = {{"b", "c"}, {"d", "b"}}});
	ck_assert_int_eq(outcome.pages_taken, 2); /* 3: b, 4: main */
	ck_assert_stream(&f, 1, NULL, 7, 0, 4);
	ck_assert_stream(&f, 1, "b", 1, 3);
	ck_assert_stream(&f, 1, "c", 8, 0, 1);
	ck_assert_int_eq(copies.num_pre, 2);
	check_copy(0, 2, 3, 1);
	check_copy(1, 1, 4, 2);
	fixture_end(&f);
}
END_TEST

/* Only the whole page is shared, so neither side copies when it goes on. */
START_TEST(both_sides_of_a_fork_in_a_page_go_on_in_pages_of_their_own)
{
	struct quire_outcome outcome;
	struct fixture f;

	directed_start(&f, 8, 16);
	give_now(&f, (struct plain){.segments = {SEGMENT(1, NULL, 20, 0)},
	                            .post = {{"main", "b"}}});
	outcome = give_now(&f, (struct plain){.segments = {SEGMENT(1, NULL, 20, 20),
	                                                   SEGMENT(1, "b", 20, 20)}});
	ck_assert_int_eq(outcome.pages_taken, 2);
	ck_assert_int_eq(copies.num_pre + copies.num_post, 0);
	ck_assert_stream(&f, 1, NULL, 40, 0, 1, 3);
	ck_assert_stream(&f, 1, "b", 40, 0, 2, 4);
	fixture_end(&f);
}
END_TEST

START_TEST(a_copying_fork_copies_every_page)
{
	struct fixture f;

	directed_start(&f, 8, 4);
	extend_now(&f, 1, NULL, 10, 0);
	give_now(&f, (struct plain){.segments = {SEGMENT(1, NULL, 0, 10)},
	                            .pre = {{"main", "a"}},
	                            .flags = QUIRE_STEP_COPY_FORKS});
	ck_assert_stream(&f, 1, "a", 10, 3, 4, 5);
	ck_assert_int_eq(copies.num_pre, 3);
	check_copy(0, 0, 3, 4);
	check_copy(1, 1, 4, 4);
	check_copy(2, 2, 5, 2);
	fixture_end(&f);
}
END_TEST

/* Whoever is left keeps the pages, and the last one gives them back. */
START_TEST(a_fork_holds_what_it_shares)
{
	struct fixture f;

	directed_start(&f, 8, 16);
	give_now(&f, (struct plain){.segments = {SEGMENT(1, NULL, 20, 0)},
	                            .post = {{"main", "b"}}});
	ck_assert_stream(&f, 1, NULL, 20, 0, 1);
	ck_assert_stream(&f, 1, "b", 20, 0, 2);
	ck_assert_int_eq(reset_now(&f, 1, _i == 0 ? "b" : "main", false), QUIRE_OK);
	ck_assert_int_eq(stats_of(&f).pages_owned, 2);
	ck_assert_int_eq(reset_now(&f, 1, _i == 0 ? "main" : "b", false), QUIRE_OK);
	ck_assert_int_eq(stats_of(&f).pages_free, 8);
	extend_now(&f, 1, "c", 8 * 16, 0);
	/* In the order in which they lost their last owner. */
	if (_i == 0)
		ck_assert_stream(&f, 1, "c", 128, 3, 4, 5, 6, 7, 2, 0, 1);
	else
		ck_assert_stream(&f, 1, "c", 128, 3, 4, 5, 6, 7, 1, 0, 2);
	fixture_end(&f);
}
END_TEST

/* A chain, and a swap that loses one side. */
START_TEST(pairs_apply_in_order_and_copies_start_from_where_bytes_are)
{
	const struct quire_fork second = {_i == 0 ? "b" : "b", _i == 0 ? "c" : "main"};
	struct fixture f;

	directed_start(&f, 6, 4);
	extend_now(&f, 1, NULL, 5, 0); /* 0 1 */
	extend_now(&f, 1, "b", 3, 0);  /* 2 */
	give_now(&f, (struct plain){.segments = {SEGMENT(1, "b", 0, 5)},
	                            .pre = {{"main", "b"}, second}});
	ck_assert_int_eq(copies.num_pre, 2);
	check_copy(0, 1, 3, 1);
	check_copy(1, 1, 4, 1); /* not from 3, which the same batch fills */
	ck_assert_stream(&f, 1, "b", 5, 0, 3);
	if (_i == 0) {
		ck_assert_stream(&f, 1, NULL, 5, 0, 1);
		ck_assert_stream(&f, 1, "c", 5, 0, 4);
		extend_now(&f, 1, "d", 8, 0);
		ck_assert_stream(&f, 1, "d", 8, 5, 2);
	} else {
		ck_assert_stream(&f, 1, NULL, 5, 0, 4);
		extend_now(&f, 1, "d", 12, 0); /* b lost its page first */
		ck_assert_stream(&f, 1, "d", 12, 5, 2, 1);
	}
	fixture_end(&f);
}
END_TEST

/* Pair, then request as segments first name them, then page; then segments; then the
 * post-forks. */
START_TEST(pages_are_taken_by_pair_then_request_then_page)
{
	struct fixture f;

	directed_begin(&f, 32, 2);
	f.config.request_labels_max = 8;
	fixture_create(&f);
	for (uint64_t request = 1; request <= 3; request++) {
		ck_assert_int_eq(open_now(&f, request), QUIRE_OK);
		extend_now(&f, request, NULL, 3, 0); /* 0 1, 2 3, 4 5 */
	}
	give_now(&f, (struct plain){.segments = {SEGMENT(2, NULL, 2, 3),
	                                         SEGMENT(1, NULL, 2, 3),
	                                         SEGMENT(2, "x", 1, 0)},
	                            .pre = {{"main", "a"}, {"a", "b"}},
	                            .post = {{"x", "c"}, {"main", "d"}},
	                            .flags = QUIRE_STEP_COPY_FORKS});
	ck_assert_stream(&f, 2, "a", 3, 6, 7);
	ck_assert_stream(&f, 1, "a", 3, 8, 9);
	ck_assert_stream(&f, 2, "b", 3, 10, 11);
	ck_assert_stream(&f, 1, "b", 3, 12, 13);
	ck_assert_stream(&f, 2, NULL, 5, 2, 3, 14);
	ck_assert_stream(&f, 1, NULL, 5, 0, 1, 15);
	ck_assert_stream(&f, 2, "x", 1, 16);
	ck_assert_stream(&f, 2, "c", 1, 17);
	ck_assert_int_eq(look(&f, 1, "c"), QUIRE_NO_LABEL);
	ck_assert_stream(&f, 2, "d", 5, 18, 19, 20);
	ck_assert_stream(&f, 1, "d", 5, 21, 22, 23);
	ck_assert_int_eq(look(&f, 3, "a"), QUIRE_NO_LABEL);
	ck_assert_stream(&f, 3, NULL, 3, 4, 5);
	fixture_end(&f);
}
END_TEST

/* `at` counts behind the pre-forks, and so does who has a label. */
START_TEST(a_segment_starts_where_the_pre_forks_have_left_its_stream)
{
	struct quire_outcome outcome;
	struct fixture f;

	directed_start(&f, 8, 2);
	extend_now(&f, 1, NULL, 3, 0);
	outcome = give_now(&f, (struct plain){.segments = {SEGMENT(1, "a", 1, 0)},
	                                      .pre = {{"main", "a"}}});
	ck_assert_int_eq(outcome.refusal.status, QUIRE_STALE);
	ck_assert_int_eq(outcome.refusal.got, 3);
	ck_assert_int_eq(outcome.refusal.expected, 0);
	ck_assert_int_eq(look(&f, 1, "a"), QUIRE_NO_LABEL);
	outcome = give_now(&f, (struct plain){.segments = {SEGMENT(1, "a", 1, 3),
	                                                   SEGMENT(1, "b", 0, 3)},
	                                      .pre = {{"main", "a"}, {"main", "b"}}});
	ck_assert_int_eq(outcome.refusal.status, QUIRE_OK);
	ck_assert_stream(&f, 1, "a", 4, 0, 2);
	ck_assert_stream(&f, 1, "b", 3, 0, 3);
	fixture_end(&f);
}
END_TEST

/* Only spans that commit count. */
START_TEST(only_a_post_fork_sees_what_its_own_step_writes_and_commits)
{
	struct fixture f;

	directed_start(&f, 16, 2);
	give_now(&f, (struct plain){.segments = {SEGMENT(1, "x", 3, 0)},
	                            .pre = {{"x", "a"}, {"a", "b"}},
	                            .post = {{"x", "c"}, {"y", "d"}}});
	ck_assert_int_eq(look(&f, 1, "a"), QUIRE_NO_LABEL);
	ck_assert_int_eq(look(&f, 1, "b"), QUIRE_NO_LABEL);
	ck_assert_int_eq(look(&f, 1, "d"), QUIRE_NO_LABEL);
	ck_assert_stream(&f, 1, "x", 3, 0, 1);
	ck_assert_stream(&f, 1, "c", 3, 0, 2);
	give_now(&f, (struct plain){.segments = {SEGMENT(1, "x", 4, 3)},
	                            .post = {{"x", "e"}},
	                            .flags = QUIRE_STEP_NO_COMMIT});
	ck_assert_stream(&f, 1, "x", 3, 0, 1, 3, 4);
	ck_assert_stream(&f, 1, "e", 3, 0, 5);
	fixture_end(&f);
}
END_TEST

START_TEST(a_fork_onto_a_stream_gives_up_what_it_had_behind_its_own_plan)
{
	struct fixture f;

	directed_start(&f, 8, 2);
	extend_now(&f, 1, NULL, 4, 0); /* 0 1 */
	extend_now(&f, 1, "a", 6, 0);  /* 2 3 4 */
	give_now(&f, (struct plain){.segments = {SEGMENT(1, "x", 1, 0)},
	                            .pre = {{"main", "a"}}});
	ck_assert_stream(&f, 1, "a", 4, 0, 1);
	ck_assert_stream(&f, 1, "x", 1, 5);
	extend_now(&f, 1, "x", 9, 1);
	ck_assert_stream(&f, 1, "x", 10, 5, 6, 7, 2, 3);
	fixture_end(&f);
}
END_TEST

/* ------------------------------------------------------------------ first writes */

/* The first copies, the second is then the one owner. */
START_TEST(of_two_segments_that_write_one_shared_page_the_first_copies)
{
	struct quire_outcome outcome;
	struct fixture f;

	directed_start(&f, 4, 4);
	give_now(&f, (struct plain){.segments = {SEGMENT(1, NULL, 4, 0)},
	                            .post = {{"main", "a"}}});
	ck_assert_stream(&f, 1, "a", 4, 0);
	ck_assert_int_eq(rewind_now(&f, 1, NULL, 3), QUIRE_OK);
	ck_assert_int_eq(rewind_now(&f, 1, "a", 1), QUIRE_OK);
	outcome = give_now(&f, (struct plain){.segments = {SEGMENT(1, "a", 1, 3),
	                                                   SEGMENT(1, NULL, 1, 1)}});
	ck_assert_int_eq(outcome.pages_taken, 1);
	ck_assert_int_eq(copies.num_pre, 1);
	check_copy(0, 0, 1, 3);
	ck_assert_stream(&f, 1, "a", 4, 1);
	ck_assert_stream(&f, 1, NULL, 2, 0);
	ck_assert_uint_eq(stats_of(&f).first_writes, 1);
	fixture_end(&f);
}
END_TEST

/* A has 40 tokens in 0 1 2, B the same in 0 1 3; how much of A goes, and whether B is
 * reset before A goes on. */
static const struct rewound {
	int32_t tokens;
	bool b_resets;
	int32_t taken;
	int32_t num;
	int32_t pages[4];
} rewound[] = {
	/* Page 1 is B's too: copied; page 2 was spare. */
	{20, false, 1, 3, {0, 4, 2}},
	{24, false, 1, 3, {0, 2, 4}}, /* 16 left: page 1 goes, 2 is written next */
	{40, false, 1, 2, {2, 4}},    /* 0 left: only page 2 stays */
	{8, false, 1, 4, {0, 1, 2, 4}},
	{7, false, 1, 4, {0, 1, 2, 4}},
	{0, false, 1, 4, {0, 1, 2, 4}},
	{20, true, 0, 3, {0, 1, 2}}, /* B is gone: nothing is anybody else's */
	{24, true, 0, 3, {0, 1, 2}},
	{40, true, 0, 3, {0, 1, 2}},
};

START_TEST(a_rewound_stream_takes_one_page_more_when_its_first_page_is_anothers_too)
{
	const struct rewound *r = &rewound[_i];
	struct fixture f;

	directed_start(&f, 8, 16);
	give_now(&f, (struct plain){.segments = {SEGMENT(1, NULL, 40, 0)},
	                            .post = {{"main", "b"}}});
	if (r->b_resets)
		ck_assert_int_eq(reset_now(&f, 1, "b", false), QUIRE_OK);
	ck_assert_int_eq(rewind_now(&f, 1, NULL, r->tokens), QUIRE_OK);
	ck_assert_int_eq(extend_now(&f, 1, NULL, 20, 40 - r->tokens).pages_taken,
	                 r->taken);
	check_stream(&f, 1, NULL, 60 - r->tokens, r->pages, r->num);
	if (!r->b_resets)
		ck_assert_stream(&f, 1, "b", 40, 0, 1, 3);
	fixture_end(&f);
}
END_TEST

/* The list is as long as a list can be, and one of its pages is changed for another. */
START_TEST(a_stream_of_the_greatest_length_may_write_a_shared_page_again)
{
	struct fixture f;

	directed_begin(&f, 8, 4);
	f.config.seq_tokens_max = 16;
	fixture_create(&f);
	ck_assert_int_eq(open_now(&f, 1), QUIRE_OK);
	give_now(&f, (struct plain){.segments = {SEGMENT(1, NULL, 16, 0)},
	                            .post = {{"main", "b"}}});
	ck_assert_int_eq(rewind_now(&f, 1, NULL, 2), QUIRE_OK);
	ck_assert_int_eq(extend_now(&f, 1, NULL, 2, 14).refusal.status, QUIRE_OK);
	ck_assert_stream(&f, 1, NULL, 16, 0, 1, 2, 4);
	ck_assert_stream(&f, 1, "b", 16, 0, 1, 2, 3);
	fixture_end(&f);
}
END_TEST

START_TEST(a_rewind_takes_back_up_to_all_tokens_and_keeps_its_own_pages)
{
	struct fixture f;

	directed_start(&f, 8, 4);
	ck_assert_int_eq(rewind_now(&f, 2, NULL, 0), QUIRE_NO_REQUEST);
	ck_assert_int_eq(rewind_now(&f, 1, "a", 0), QUIRE_NO_LABEL);
	extend_now(&f, 1, NULL, 10, 0);
	ck_assert_int_eq(rewind_now(&f, 1, NULL, 11), QUIRE_INVALID);
	ck_assert_int_eq(rewind_now(&f, 1, NULL, -1), QUIRE_INVALID);
	ck_assert_stream(&f, 1, NULL, 10, 0, 1, 2);
	ck_assert_int_eq(rewind_now(&f, 1, NULL, 9), QUIRE_OK);
	ck_assert_stream(&f, 1, NULL, 1, 0, 1, 2);
	ck_assert_int_eq(rewind_now(&f, 1, NULL, 1), QUIRE_OK);
	ck_assert_stream(&f, 1, NULL, 0, 0, 1, 2);
	ck_assert_int_eq(extend_now(&f, 1, NULL, 12, 0).pages_taken, 0);
	fixture_end(&f);
}
END_TEST

/* ------------------------------------------------------------------ fronts */

/* Pages: min(tokens / ps, ceil(length / ps) - 1). */
START_TEST(a_released_front_is_whole_pages_but_never_the_last)
{
	for (int32_t length = 0; length <= 12; length++)
		for (int32_t tokens = 0; tokens <= length; tokens++) {
			int32_t last = (length + 3) / 4 - 1, n = tokens / 4, released;
			struct quire_snapshot snapshot;
			int32_t pages[3];
			struct fixture f;

			if (length > 0 && n > last)
				n = last;
			directed_start(&f, 4, 4);
			if (length > 0)
				extend_now(&f, 1, NULL, length, 0);
			ck_assert_int_eq(front_now(&f, 1, NULL, length + 1, &released),
			                 QUIRE_INVALID);
			ck_assert_int_eq(front_now(&f, 1, NULL, tokens, &released),
			                 QUIRE_OK);
			ck_assert_int_eq(released, n);
			ck_assert_int_eq(quire_runtime_snapshot(f.runtime, 1, NULL,
			                                        &snapshot, pages, 3),
			                 QUIRE_OK);
			ck_assert_int_eq(snapshot.length, length - 4 * n);
			ck_assert_int_eq(snapshot.released, 4 * n);
			ck_assert_int_eq(snapshot.num_pages, last + 1 - n);
			for (int32_t i = 0; i < snapshot.num_pages; i++)
				ck_assert_int_eq(pages[i], n + i);
			ck_assert_int_eq(stats_of(&f).pages_owned, last + 1 - n);
			fixture_end(&f);
		}
}
END_TEST

/* Spare pages stay behind what is released. */
START_TEST(a_fork_takes_the_released_front_over_and_a_reset_forgets_it)
{
	struct fixture f;
	int32_t released;

	directed_start(&f, 8, 2);
	extend_now(&f, 1, NULL, 7, 0); /* 0 1 2 3 */
	ck_assert_int_eq(rewind_now(&f, 1, NULL, 2), QUIRE_OK);
	ck_assert_int_eq(front_now(&f, 1, NULL, 2, &released), QUIRE_OK);
	ck_assert_int_eq(released, 1);
	ck_assert_stream(&f, 1, NULL, 3, 1, 2, 3);
	give_now(&f, (struct plain){.segments = {SEGMENT(1, "x", 1, 0)},
	                            .post = {{"main", "a"}}});
	ck_assert_stream(&f, 1, "a", 3, 1, 5);
	ck_assert_int_eq(snapshot_of(&f, 1, "a").released, 2);
	ck_assert_int_eq(reset_now(&f, 1, "a", true), QUIRE_OK);
	ck_assert_stream(&f, 1, "a", 0, 5);
	ck_assert_int_eq(snapshot_of(&f, 1, "a").released, 0);
	fixture_end(&f);
}
END_TEST

/* ------------------------------------------------------------------ refusals */

START_TEST(reading_a_label_that_is_not_there_is_refused_and_named)
{
	struct quire_outcome outcome;
	struct fixture f;

	directed_start(&f, 8, 2);
	outcome = give_now(
		&f, (struct plain){.segments = {SEGMENT(1, "a", 2, 0),
	                                        SEGMENT(1, "b", 0, QUIRE_AT_ANY)}});
	ck_assert_int_eq(outcome.refusal.status, QUIRE_NO_LABEL);
	ck_assert_uint_eq(outcome.refusal.request, 1);
	ck_assert_str_eq(outcome.refusal.label, "b");
	ck_assert_int_eq(look(&f, 1, "a"), QUIRE_NO_LABEL);
	ck_assert_int_eq(stats_of(&f).pages_free, 8);
	fixture_end(&f);
}
END_TEST

START_TEST(what_follows_a_refused_step_finds_the_stream_too_short)
{
	struct quire_outcome outcome;
	struct fixture f;
	uint64_t first, second;

	directed_start(&f, 4, 4);
	extend_now(&f, 1, "x", 1, 0);
	first = give(&f, STEP(1, NULL, 16, 0));
	second = give(&f, STEP(1, NULL, 1, 16));
	check_end(&f, first, QUIRE_NO_PAGES);
	check_end(&f, second, QUIRE_STALE);
	outcome = outcome_now(&f, second);
	ck_assert_int_eq(outcome.refusal.expected, 16);
	ck_assert_int_eq(outcome.refusal.got, 0);
	check_stream(&f, 1, NULL, 0, NULL, 0);
	fixture_end(&f);
}
END_TEST

/* What the step itself gives up does not count. */
START_TEST(a_copying_fork_that_needs_its_targets_pages_is_refused_at_once)
{
	struct quire_outcome outcome;
	struct fixture f;

	directed_start(&f, 4, 2);
	extend_now(&f, 1, NULL, 4, 0);
	extend_now(&f, 1, "b", 4, 0);
	outcome = give_now(&f, (struct plain){.segments = {SEGMENT(1, NULL, 0, 4)},
	                                      .pre = {{"main", "b"}},
	                                      .flags = QUIRE_STEP_COPY_FORKS});
	ck_assert_int_eq(outcome.refusal.status, QUIRE_NO_PAGES);
	ck_assert_int_eq(outcome.refusal.pages_short, 2);
	ck_assert_uint_eq(outcome.refusal.request, 1);
	ck_assert_str_eq(outcome.refusal.label, "b");
	ck_assert_stream(&f, 1, "b", 4, 2, 3);
	fixture_end(&f);
}
END_TEST

/* In take order, forks before segments before post-forks. */
START_TEST(a_shortage_names_whose_page_is_the_first_that_does_not_fit)
{
	static const struct {
		int32_t free;
		const char *label;
	} cases[] = {{0, "a"}, {1, "a"}, {2, "x"}, {3, "x"}, {4, "b"}, {5, "b"}};
	struct quire_outcome outcome;
	struct fixture f;

	directed_begin(&f, 10, 2);
	f.config.request_labels_max = 8;
	fixture_create(&f);
	ck_assert_int_eq(open_now(&f, 1), QUIRE_OK);
	extend_now(&f, 1, NULL, 4, 0);
	extend_now(&f, 1, "y", 2 * (8 - cases[_i].free), 0);
	outcome = give_now(&f, (struct plain){.segments = {SEGMENT(1, "x", 4, 0)},
	                                      .pre = {{"main", "a"}},
	                                      .post = {{"x", "b"}},
	                                      .flags = QUIRE_STEP_COPY_FORKS});
	ck_assert_int_eq(outcome.refusal.status, QUIRE_NO_PAGES);
	ck_assert_str_eq(outcome.refusal.label, cases[_i].label);
	ck_assert_int_eq(outcome.refusal.pages_short, 6 - cases[_i].free);
	ck_assert_int_eq(look(&f, 1, "a"), QUIRE_NO_LABEL);
	fixture_end(&f);
}
END_TEST

/* Each step has the fault named, and all those that come after it in the order. */
START_TEST(the_first_fault_in_the_order_of_faults_is_named)
{
	static const enum quire_status expected[] = {
		QUIRE_INVALID,    /* form: a target twice */
		QUIRE_NO_REQUEST, /* ... */
		QUIRE_LIMIT,      /* pre-forks: labels */
		QUIRE_STALE,      /* segments */
		QUIRE_LIMIT,      /* post-forks: labels */
		QUIRE_NO_PAGES,
	};
	static const char *const labels[] = {"", "main", "d", "main", "e", "main"};
	struct plain plain = {
		.segments = {SEGMENT(1, NULL, 6, 0), SEGMENT(7, NULL, 1, 0)},
		.pre = {{"main", "d"}, {"a", "d"}},
		.post = {{"main", "e"}},
	};
	struct quire_outcome outcome;
	struct fixture f;

	directed_begin(&f, 4, 2);
	f.config.request_labels_max = 2;
	fixture_create(&f);
	ck_assert_int_eq(open_now(&f, 1), QUIRE_OK);
	extend_now(&f, 1, "a", 3, 0);
	plain.segments[0].at = 9;
	if (_i >= 1)
		plain.pre[1].target = NULL;
	if (_i >= 2)
		plain.segments[1].request = 0;
	if (_i >= 3)
		plain.pre[0].target = NULL;
	if (_i >= 4)
		plain.segments[0].at = 0;
	if (_i >= 5)
		plain.post[0].target = NULL;
	outcome = give_now(&f, plain);
	ck_assert_int_eq(outcome.refusal.status, expected[_i]);
	ck_assert_str_eq(outcome.refusal.label, labels[_i]);
	ck_assert_int_eq(stats_of(&f).pages_owned, 2);
	fixture_end(&f);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sharing");
	TCase *tcase = tcase_create("sharing");

	tcase_add_test(tcase, a_fork_shares_whole_pages_and_copies_the_partial_one);
	tcase_add_test(tcase, a_fork_list_moves_a_name_and_the_write_behind_it_copies);
	tcase_add_test(tcase, both_sides_of_a_fork_in_a_page_go_on_in_pages_of_their_own);
	tcase_add_test(tcase, a_copying_fork_copies_every_page);
	tcase_add_loop_test(tcase, a_fork_holds_what_it_shares, 0, 2);
	tcase_add_loop_test(
		tcase, pairs_apply_in_order_and_copies_start_from_where_bytes_are, 0, 2);
	tcase_add_test(tcase, pages_are_taken_by_pair_then_request_then_page);
	tcase_add_test(tcase, a_segment_starts_where_the_pre_forks_have_left_its_stream);
	tcase_add_test(tcase, only_a_post_fork_sees_what_its_own_step_writes_and_commits);
	tcase_add_test(tcase,
	               a_fork_onto_a_stream_gives_up_what_it_had_behind_its_own_plan);
	tcase_add_test(tcase,
	               of_two_segments_that_write_one_shared_page_the_first_copies);
	tcase_add_loop_test(
		tcase,
		a_rewound_stream_takes_one_page_more_when_its_first_page_is_anothers_too,
		0, (int)(sizeof(rewound) / sizeof(rewound[0])));
	tcase_add_test(tcase,
	               a_stream_of_the_greatest_length_may_write_a_shared_page_again);
	tcase_add_test(tcase,
	               a_rewind_takes_back_up_to_all_tokens_and_keeps_its_own_pages);
	tcase_add_test(tcase, a_released_front_is_whole_pages_but_never_the_last);
	tcase_add_test(tcase,
	               a_fork_takes_the_released_front_over_and_a_reset_forgets_it);
	tcase_add_test(tcase, reading_a_label_that_is_not_there_is_refused_and_named);
	tcase_add_test(tcase, what_follows_a_refused_step_finds_the_stream_too_short);
	tcase_add_test(tcase,
	               a_copying_fork_that_needs_its_targets_pages_is_refused_at_once);
	tcase_add_loop_test(
		tcase, a_shortage_names_whose_page_is_the_first_that_does_not_fit, 0, 6);
	tcase_add_loop_test(tcase, the_first_fault_in_the_order_of_faults_is_named, 0, 6);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
