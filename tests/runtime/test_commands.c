/* SPDX-License-Identifier: MIT */
/* Outcomes of commands: what is refused, how it is named, and that a refusal leaves
 * nothing. */
#include "fixture.h"
#include "tests/run_suite.h"

#include <check.h>

#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* ------------------------------------------------------------ requests and labels */

START_TEST(opening_twice_is_harmless_and_keeps_what_is_there)
{
	struct fixture f;

	fixture_start(&f, 8, 4);
	ck_assert_int_eq(open_now(&f, 5), QUIRE_OK);
	ck_assert_int_eq(extend_now(&f, 5, NULL, 6, 0).refusal.status, QUIRE_OK);
	ck_assert_int_eq(open_now(&f, 5), QUIRE_OK);
	ck_assert_int_eq(snapshot_of(&f, 5, "main").length, 6);
	ck_assert_int_eq(stats_of(&f).requests_open, 1);
	fixture_end(&f);
}
END_TEST

START_TEST(an_unknown_request_is_named)
{
	struct fixture f;
	struct quire_outcome outcome;

	fixture_start(&f, 8, 4);
	ck_assert_int_eq(close_now(&f, 9), QUIRE_NO_REQUEST);
	ck_assert_int_eq(reset_now(&f, 9, NULL, false), QUIRE_NO_REQUEST);
	outcome = extend_now(&f, 9, NULL, 1, QUIRE_AT_ANY);
	ck_assert_int_eq(outcome.refusal.status, QUIRE_NO_REQUEST);
	ck_assert_uint_eq(outcome.refusal.request, 9);
	fixture_end(&f);
}
END_TEST

START_TEST(close_gives_all_labels_back_in_creation_order)
{
	struct fixture f;
	int32_t pages[4];

	fixture_start(&f, 4, 4);
	ck_assert_int_eq(open_now(&f, 1), QUIRE_OK);
	ck_assert_int_eq(extend_now(&f, 1, "b", 4, 0).refusal.status,
	                 QUIRE_OK); /* page 0 */
	ck_assert_int_eq(extend_now(&f, 1, "main", 8, 0).refusal.status,
	                 QUIRE_OK); /* 1, 2 */
	ck_assert_int_eq(close_now(&f, 1), QUIRE_OK);
	/* FIFO now: 3, then main's (made first) 1, 2, then b's 0. */
	ck_assert_int_eq(open_now(&f, 2), QUIRE_OK);
	ck_assert_int_eq(extend_now(&f, 2, NULL, 16, 0).refusal.status, QUIRE_OK);
	ck_assert_int_eq(quire_runtime_snapshot(f.runtime, 2, NULL,
	                                        &(struct quire_snapshot){0}, pages, 4),
	                 QUIRE_OK);
	ck_assert_int_eq(pages[0], 3);
	ck_assert_int_eq(pages[1], 1);
	ck_assert_int_eq(pages[2], 2);
	ck_assert_int_eq(pages[3], 0);
	fixture_end(&f);
}
END_TEST

START_TEST(a_zero_span_segment_on_a_missing_stream_is_refused_at_admit)
{
	struct fixture f;
	struct quire_outcome outcome;

	fixture_start(&f, 8, 4);
	ck_assert_int_eq(open_now(&f, 3), QUIRE_OK);
	outcome = extend_now(&f, 3, "cfg", 0, 0);
	ck_assert_int_eq(outcome.refusal.status, QUIRE_NO_LABEL);
	ck_assert_uint_eq(outcome.refusal.request, 3);
	ck_assert_str_eq(outcome.refusal.label, "cfg");
	ck_assert_int_eq(reset_now(&f, 3, "cfg", false), QUIRE_NO_LABEL);
	/* On a stream that is there, span 0 reads. */
	ck_assert_int_eq(extend_now(&f, 3, "main", 0, 0).refusal.status, QUIRE_OK);
	ck_assert_uint_eq(snapshot_of(&f, 3, "main").generation, 0);
	fixture_end(&f);
}
END_TEST

START_TEST(requests_and_labels_have_limits)
{
	struct fixture f;
	struct quire_outcome outcome;

	fixture_begin(&f, "cpu:inline", 8, 4);
	f.config.requests_max = 2;
	f.config.request_labels_max = 2;
	fixture_create(&f);
	ck_assert_int_eq(open_now(&f, 1), QUIRE_OK);
	ck_assert_int_eq(open_now(&f, 2), QUIRE_OK);
	ck_assert_int_eq(open_now(&f, 3), QUIRE_LIMIT);
	ck_assert_int_eq(close_now(&f, 1), QUIRE_OK);
	ck_assert_int_eq(open_now(&f, 3), QUIRE_OK);
	ck_assert_int_eq(extend_now(&f, 3, "a", 1, 0).refusal.status, QUIRE_OK);
	outcome = extend_now(&f, 3, "b", 1, 0);
	ck_assert_int_eq(outcome.refusal.status, QUIRE_LIMIT);
	ck_assert_str_eq(outcome.refusal.label, "b");
	ck_assert_int_eq(reset_now(&f, 3, "b", false), QUIRE_NO_LABEL);
	fixture_end(&f);
}
END_TEST

/* ------------------------------------------------------------------ at */

START_TEST(a_step_behind_a_refused_one_is_stale_and_writes_nothing)
{
	struct fixture f;
	uint64_t first, second;
	struct quire_segment segment = {.request = 1, .span = 16, .at = 0};
	const struct quire_step step = {.segments = &segment, .num_segments = 1};
	struct quire_outcome outcome;

	fixture_begin(&f, "cpu:inline", 3, 4); /* 16 tokens need 4 pages */
	f.config.seq_tokens_max = 100;
	fixture_create(&f);
	ck_assert_int_eq(open_now(&f, 1), QUIRE_OK);
	first = submit(&f, &step);
	segment.span = 1;
	segment.at = 16;
	second = submit(&f, &step);
	ck_assert_int_eq(outcome_of(&f, first).refusal.status, QUIRE_NO_PAGES);
	outcome = outcome_of(&f, second);
	ck_assert_int_eq(outcome.refusal.status, QUIRE_STALE);
	ck_assert_uint_eq(outcome.refusal.request, 1);
	ck_assert_str_eq(outcome.refusal.label, "main");
	ck_assert_int_eq(outcome.refusal.expected, 16);
	ck_assert_int_eq(outcome.refusal.got, 0);
	ck_assert_int_eq(stats_of(&f).steps_planned, 0);
	ck_assert_int_eq(snapshot_of(&f, 1, NULL).length, 0);
	fixture_end(&f);
}
END_TEST

START_TEST(every_wrong_at_is_stale_and_any_takes_every_length)
{
	struct fixture f;

	fixture_start(&f, 8, 4);
	ck_assert_int_eq(open_now(&f, 1), QUIRE_OK);
	ck_assert_int_eq(extend_now(&f, 1, NULL, 5, 0).refusal.status, QUIRE_OK);
	for (int32_t at = 0; at < 9; at++) {
		struct quire_refusal refusal = extend_now(&f, 1, NULL, 0, at).refusal;

		ck_assert_int_eq(refusal.status, at == 5 ? QUIRE_OK : QUIRE_STALE);
		if (at != 5) {
			ck_assert_int_eq(refusal.expected, at);
			ck_assert_int_eq(refusal.got, 5);
		}
	}
	ck_assert_int_eq(extend_now(&f, 1, NULL, 0, 5).refusal.status, QUIRE_OK);
	ck_assert_int_eq(extend_now(&f, 1, NULL, 1, 5).refusal.status, QUIRE_OK);
	ck_assert_int_eq(extend_now(&f, 1, NULL, 1, QUIRE_AT_ANY).refusal.status,
	                 QUIRE_OK);
	ck_assert_int_eq(snapshot_of(&f, 1, NULL).length, 7);
	fixture_end(&f);
}
END_TEST

/* ------------------------------------------------------------------ pages */

/* A page is taken in the step that writes its first token: ceil(length / 4) pages,
 * always. */
START_TEST(a_page_is_taken_in_the_step_of_its_first_token)
{
	struct fixture f;

	fixture_start(&f, 8, 4);
	ck_assert_int_eq(open_now(&f, 1), QUIRE_OK);
	for (int32_t length = 0; length < 17; length++) {
		struct quire_outcome outcome = extend_now(&f, 1, NULL, 1, length);

		ck_assert_int_eq(outcome.refusal.status, QUIRE_OK);
		ck_assert_int_eq(outcome.pages_taken, length % 4 == 0 ? 1 : 0);
		ck_assert_int_eq(snapshot_of(&f, 1, NULL).num_pages, length / 4 + 1);
	}
	for (int32_t span = 3; span <= 5; span++) { /* P-1, P, P+1 from nothing */
		ck_assert_int_eq(reset_now(&f, 1, NULL, false), QUIRE_OK);
		ck_assert_int_eq(extend_now(&f, 1, NULL, span, 0).pages_taken,
		                 span == 5 ? 2 : 1);
	}
	fixture_end(&f);
}
END_TEST

START_TEST(a_refused_step_names_the_shortage_and_changes_nothing)
{
	struct fixture f;
	const struct quire_segment segments[] = {
		{.request = 1, .span = 1, .at = 8},               /* 1 page: fits */
		{.request = 2, .label = "x", .span = 8, .at = 0}, /* 2 pages: fits */
		{.request = 2,
	         .label = "y",
	         .span = 9,
	         .at = 0},                          /* 3 pages: only 2 of them fit */
		{.request = 2, .span = 4, .at = 0}, /* 1 page more */
	};
	const struct quire_step step = {.segments = segments, .num_segments = 4};
	struct quire_snapshot before, after;
	struct quire_outcome outcome;
	int32_t page = -1;

	fixture_start(&f, 7, 4);
	ck_assert_int_eq(open_now(&f, 1), QUIRE_OK);
	ck_assert_int_eq(open_now(&f, 2), QUIRE_OK);
	ck_assert_int_eq(extend_now(&f, 1, NULL, 8, 0).refusal.status, QUIRE_OK);
	before = snapshot_of(&f, 1, NULL);
	outcome = submit_now(&f, &step);
	ck_assert_int_eq(outcome.refusal.status, QUIRE_NO_PAGES);
	ck_assert_int_eq(outcome.refusal.pages_short, 2); /* 7 needed, 5 not owned */
	ck_assert_uint_eq(outcome.refusal.request, 2);
	ck_assert_str_eq(outcome.refusal.label, "y");
	ck_assert_int_eq(outcome.pages_taken, 0);
	after = snapshot_of(&f, 1, NULL);
	ck_assert_int_eq(memcmp(&before, &after, sizeof(before)), 0);
	ck_assert_int_eq(stats_of(&f).pages_free, 5);
	ck_assert_int_eq(reset_now(&f, 2, "x", false), QUIRE_NO_LABEL);
	/* The next take gives the page that it would have had. */
	ck_assert_int_eq(extend_now(&f, 2, NULL, 1, 0).refusal.status, QUIRE_OK);
	ck_assert_int_eq(quire_runtime_snapshot(f.runtime, 2, NULL, &after, &page, 1),
	                 QUIRE_OK);
	ck_assert_int_eq(page, 2); /* 0 and 1 are request 1's */
	fixture_end(&f);
}
END_TEST

START_TEST(a_step_waits_for_pages_that_are_on_their_way_back)
{
	struct fixture f;
	uint64_t ticket;
	struct quire_segment segment = {.request = 2, .span = 16, .at = 0};
	struct quire_step step = {.segments = &segment, .num_segments = 1};
	struct quire_outcome outcome;

	fixture_start(&f, 4, 4);
	ck_assert_int_eq(open_now(&f, 1), QUIRE_OK);
	ck_assert_int_eq(open_now(&f, 2), QUIRE_OK);
	ck_assert_int_eq(extend_now(&f, 1, NULL, 16, 0).refusal.status, QUIRE_OK);
	ck_assert_int_eq(quire_runtime_reset(f.runtime, 1, NULL, false, &ticket),
	                 QUIRE_OK);
	ck_assert(quire_planner_poll(
		f.runtime)); /* released, and nobody gives it back yet */
	ck_assert_int_eq(stats_of(&f).pages_retiring, 4);

	step.flags = QUIRE_STEP_NO_WAIT;
	ticket = submit(&f, &step);
	while (quire_planner_poll(f.runtime))
		continue;
	ck_assert_int_eq(
		quire_runtime_wait(f.runtime, ticket, QUIRE_STAGE_RETIRED, 0, &outcome),
		QUIRE_OK);
	ck_assert_int_eq(outcome.refusal.status, QUIRE_AGAIN);
	ck_assert_int_eq(outcome.refusal.free, 0);
	ck_assert_int_eq(outcome.refusal.retiring, 4);
	ck_assert_int_eq(outcome.refusal.owned, 0);

	step.flags = 0;
	ticket = submit(&f, &step);
	while (quire_planner_poll(f.runtime))
		continue;
	ck_assert_int_eq(
		quire_runtime_wait(f.runtime, ticket, QUIRE_STAGE_PLANNED, 0, NULL),
		QUIRE_TIMEOUT);
	ck_assert_int_eq(quire_runtime_check(f.runtime, NULL), QUIRE_OK);
	outcome = outcome_of(&f, ticket);
	ck_assert_int_eq(outcome.refusal.status, QUIRE_OK);
	ck_assert_int_eq(outcome.pages_taken, 4);
	fixture_end(&f);
}
END_TEST

START_TEST(a_step_that_can_never_fit_is_refused_at_once)
{
	struct fixture f;
	struct quire_outcome outcome;

	fixture_start(&f, 4, 4);
	ck_assert_int_eq(open_now(&f, 1), QUIRE_OK);
	outcome = extend_now(&f, 1, NULL, 16, 0);
	ck_assert_int_eq(outcome.refusal.status, QUIRE_OK);
	outcome = extend_now(&f, 1, NULL, 1, 16);
	ck_assert_int_eq(outcome.refusal.status,
	                 QUIRE_LIMIT); /* more than a stream may hold */
	ck_assert_int_eq(open_now(&f, 2), QUIRE_OK);
	outcome = extend_now(&f, 2, NULL, 5, 0);
	ck_assert_int_eq(outcome.refusal.status, QUIRE_NO_PAGES);
	ck_assert_int_eq(outcome.refusal.pages_short, 2);
	fixture_end(&f);
}
END_TEST

/* Seven pages of four tokens beside the sink: a stream may have 28 tokens, never 29. */
START_TEST(the_sink_holds_no_tokens_of_a_stream)
{
	struct fixture f;
	struct quire_refusal refusal;

	fixture_begin(&f, "cpu:inline", 8, 4);
	f.config.sink = true;
	fixture_create(&f);
	ck_assert_int_eq(open_now(&f, 1), QUIRE_OK);
	refusal = extend_now(&f, 1, NULL, 29, 0).refusal;
	ck_assert_int_eq(refusal.status, QUIRE_LIMIT);
	ck_assert_int_eq(refusal.got, 29);
	ck_assert_int_eq(refusal.expected, 28);
	ck_assert_int_eq(extend_now(&f, 1, NULL, 28, 0).pages_taken, 7);
	fixture_end(&f);
}
END_TEST

START_TEST(a_reset_drops_content_and_gives_pages_back_or_keeps_them)
{
	struct fixture f;
	int32_t pages[2];

	fixture_start(&f, 4, 4);
	ck_assert_int_eq(open_now(&f, 1), QUIRE_OK);
	ck_assert_int_eq(extend_now(&f, 1, NULL, 7, 0).refusal.status, QUIRE_OK);
	ck_assert_int_eq(reset_now(&f, 1, NULL, true), QUIRE_OK);
	ck_assert_int_eq(snapshot_of(&f, 1, NULL).length, 0);
	ck_assert_int_eq(snapshot_of(&f, 1, NULL).num_pages, 2);
	ck_assert_uint_eq(snapshot_of(&f, 1, NULL).generation, 2);
	ck_assert_int_eq(stats_of(&f).pages_owned, 2);
	ck_assert_int_eq(extend_now(&f, 1, NULL, 8, 0).pages_taken,
	                 0); /* the spare ones serve */
	ck_assert_int_eq(quire_runtime_snapshot(f.runtime, 1, NULL,
	                                        &(struct quire_snapshot){0}, pages, 2),
	                 QUIRE_OK);
	ck_assert_int_eq(pages[0], 0);
	ck_assert_int_eq(pages[1], 1);
	ck_assert_int_eq(reset_now(&f, 1, NULL, false), QUIRE_OK);
	ck_assert_int_eq(stats_of(&f).pages_owned, 0);
	ck_assert_int_eq(stats_of(&f).pages_free, 4);
	fixture_end(&f);
}
END_TEST

START_TEST(a_reopened_request_starts_above_its_old_generation)
{
	struct fixture f;
	uint64_t old;

	fixture_start(&f, 4, 4);
	ck_assert_int_eq(open_now(&f, 1), QUIRE_OK);
	ck_assert_int_eq(extend_now(&f, 1, NULL, 2, 0).refusal.status, QUIRE_OK);
	ck_assert_int_eq(extend_now(&f, 1, NULL, 1, 2).refusal.status, QUIRE_OK);
	old = snapshot_of(&f, 1, NULL).generation;
	ck_assert_uint_eq(old, 2);
	ck_assert_int_eq(close_now(&f, 1), QUIRE_OK);
	ck_assert_int_eq(quire_runtime_snapshot(f.runtime, 1, NULL,
	                                        &(struct quire_snapshot){0}, NULL, 0),
	                 QUIRE_NO_REQUEST);
	ck_assert_int_eq(open_now(&f, 1), QUIRE_OK);
	ck_assert_uint_gt(snapshot_of(&f, 1, NULL).generation, old);
	fixture_end(&f);
}
END_TEST

/* ------------------------------------------------------------------ form */

START_TEST(a_malformed_step_is_invalid_and_names_the_fault)
{
	struct fixture f;
	const char *both[] = {"a", "b"};
	struct quire_combined combined = {
		.name = "both", .labels = both, .num_labels = 2};
	struct quire_segment segments[2] = {
		{.request = 1, .span = 1, .at = 0},
		{.request = 1, .label = "main", .span = 1, .at = 0}};
	struct quire_step step = {.segments = segments};

	fixture_start(&f, 8, 4);
	ck_assert_int_eq(open_now(&f, 1), QUIRE_OK);
	ck_assert_int_eq(submit_now(&f, &step).refusal.status,
	                 QUIRE_INVALID); /* no segment */
	step.num_segments = 2;           /* one stream twice: NULL means "main" */
	ck_assert_int_eq(submit_now(&f, &step).refusal.status, QUIRE_INVALID);
	segments[1].label = "other";
	segments[1].span = -1;
	ck_assert_int_eq(submit_now(&f, &step).refusal.index, 1);
	segments[1].span = 1;
	segments[1].at = -2;
	ck_assert_int_eq(submit_now(&f, &step).refusal.status, QUIRE_INVALID);
	segments[1].at = 0;
	step.bucket_rows = 4;
	step.bucket_tokens = 4; /* no sink to pad to */
	ck_assert_int_eq(submit_now(&f, &step).refusal.status, QUIRE_INVALID);
	step.bucket_rows = step.bucket_tokens = 0;
	step.combined = &combined; /* labels without a segment */
	step.num_combined = 1;
	ck_assert_int_eq(submit_now(&f, &step).refusal.status, QUIRE_INVALID);
	step.num_combined = 0;
	step.flags = 1u << 30;
	ck_assert_int_eq(submit_now(&f, &step).refusal.status, QUIRE_INVALID);
	step.flags = 0;
	ck_assert_int_eq(stats_of(&f).steps_planned, 0);
	ck_assert_int_eq(submit_now(&f, &step).refusal.status, QUIRE_OK);
	fixture_end(&f);
}
END_TEST

/* Form comes first, then requests, then segments in order, then pages. */
START_TEST(the_first_fault_in_the_fixed_order_is_named)
{
	struct fixture f;
	struct quire_segment segments[] = {
		{.request = 1, .span = 1000, .at = 0},            /* no pages */
		{.request = 1, .label = "a", .span = 1, .at = 7}, /* stale */
		{.request = 2, .span = 1, .at = 0},               /* no request */
		{.request = 2, .span = 1, .at = 0}, /* the same stream again */
	};
	struct quire_step step = {.segments = segments, .num_segments = 4};

	fixture_begin(&f, "cpu:inline", 8, 4);
	f.config.seq_tokens_max = 2000;
	fixture_create(&f);
	ck_assert_int_eq(open_now(&f, 1), QUIRE_OK);
	ck_assert_int_eq(submit_now(&f, &step).refusal.status, QUIRE_INVALID);
	step.num_segments = 3;
	ck_assert_int_eq(submit_now(&f, &step).refusal.status, QUIRE_NO_REQUEST);
	step.num_segments = 2;
	ck_assert_int_eq(submit_now(&f, &step).refusal.status, QUIRE_STALE);
	segments[1].at = 0;
	ck_assert_int_eq(submit_now(&f, &step).refusal.status, QUIRE_NO_PAGES);
	segments[0].span = 3000;
	ck_assert_int_eq(submit_now(&f, &step).refusal.status,
	                 QUIRE_LIMIT); /* seq_tokens_max */
	segments[0].span = 24;
	ck_assert_int_eq(submit_now(&f, &step).refusal.status, QUIRE_OK);
	fixture_end(&f);
}
END_TEST

START_TEST(what_cannot_be_queued_draws_no_position)
{
	struct fixture f;
	uint64_t ticket = 77, last;
	struct quire_refusal refusal;
	const struct quire_segment *many = calloc(300, sizeof(*many));
	const struct quire_segment odd = {
		.request = 1,
		.label = "a label that is longer than any label may be",
		.span = 1};
	const struct quire_segment far = {.request = UINT64_MAX, .span = 1};
	struct quire_step step = {.segments = many, .num_segments = 300};
	struct quire_command command = {.kind = QUIRE_COMMAND_SUBMIT, .step = &step};

	fixture_start(&f, 8, 4);
	ck_assert_int_eq(quire_runtime_command(f.runtime, &command, &ticket, &refusal),
	                 QUIRE_LIMIT);
	ck_assert_int_eq(refusal.got, 300);
	ck_assert_int_eq(refusal.expected, 256);
	step.num_segments = 1;
	step.segments = NULL;
	ck_assert_int_eq(quire_runtime_command(f.runtime, &command, &ticket, NULL),
	                 QUIRE_INVALID);
	step.segments = &odd;
	ck_assert_int_eq(quire_runtime_command(f.runtime, &command, &ticket, NULL),
	                 QUIRE_INVALID);
	step.segments = &far;
	ck_assert_int_eq(quire_runtime_command(f.runtime, &command, &ticket, NULL),
	                 QUIRE_INVALID);
	command.step = NULL;
	ck_assert_int_eq(quire_runtime_command(f.runtime, &command, &ticket, NULL),
	                 QUIRE_INVALID);
	command.kind = (enum quire_command_kind)99;
	ck_assert_int_eq(quire_runtime_command(f.runtime, &command, &ticket, NULL),
	                 QUIRE_INVALID);
	ck_assert_uint_eq(ticket, 77);
	ck_assert_int_eq(quire_runtime_open(f.runtime, 1, &last), QUIRE_OK);
	ck_assert_uint_eq(last, 1);
	free((void *)many);
	fixture_end(&f);
}
END_TEST

/* ------------------------------------------------------------------ tickets, shutdown */

START_TEST(tickets_rise_by_one_and_old_ones_are_forgotten)
{
	struct fixture f;
	uint64_t ticket;

	fixture_begin(&f, "cpu:inline", 8, 4);
	f.config.tickets_max = 4;
	fixture_create(&f);
	for (uint64_t i = 1; i <= 9; i++) {
		ck_assert_int_eq(quire_runtime_open(f.runtime, i, &ticket), QUIRE_OK);
		ck_assert_uint_eq(ticket, i);
		settle(&f);
	}
	for (uint64_t i = 0; i <= 12; i++)
		ck_assert_int_eq(
			quire_runtime_wait(f.runtime, i, QUIRE_STAGE_RETIRED, 0, NULL),
			i >= 6 && i <= 9 ? QUIRE_OK : QUIRE_INVALID);
	fixture_end(&f);
}
END_TEST

START_TEST(a_full_queue_says_again_or_would_block)
{
	struct fixture f;
	uint64_t ticket;
	const struct quire_command open = {.kind = QUIRE_COMMAND_OPEN, .request = 1};

	fixture_begin(&f, "cpu:inline", 8, 4);
	f.config.commands_max = 2;
	fixture_create(&f);
	ck_assert_int_eq(quire_runtime_command(f.runtime, &open, &ticket, NULL),
	                 QUIRE_OK);
	ck_assert_int_eq(quire_runtime_command(f.runtime, &open, &ticket, NULL),
	                 QUIRE_OK);
	ck_assert_int_eq(quire_runtime_try_command(f.runtime, &open, &ticket, NULL),
	                 QUIRE_AGAIN);
	ck_assert_int_eq(quire_runtime_command(f.runtime, &open, &ticket, NULL),
	                 QUIRE_WOULD_BLOCK);
	ck_assert_int_eq(quire_runtime_wait(f.runtime, 1, QUIRE_STAGE_PLANNED,
	                                    QUIRE_NO_DEADLINE, NULL),
	                 QUIRE_WOULD_BLOCK);
	settle(&f);
	ck_assert_int_eq(quire_runtime_command(f.runtime, &open, &ticket, NULL),
	                 QUIRE_OK);
	ck_assert_uint_eq(ticket, 3);
	fixture_end(&f);
}
END_TEST

START_TEST(a_cancelling_shutdown_takes_a_waiting_step_back)
{
	struct fixture f;
	uint64_t waiting, queued, ticket;
	struct quire_segment segment = {
		.request = 2, .label = "new", .span = 16, .at = 0};
	const struct quire_step step = {.segments = &segment, .num_segments = 1};

	fixture_start(&f, 4, 4);
	ck_assert_int_eq(open_now(&f, 1), QUIRE_OK);
	ck_assert_int_eq(open_now(&f, 2), QUIRE_OK);
	ck_assert_int_eq(extend_now(&f, 1, NULL, 16, 0).refusal.status, QUIRE_OK);
	ck_assert_int_eq(quire_runtime_reset(f.runtime, 1, NULL, false, &ticket),
	                 QUIRE_OK);
	waiting = submit(&f, &step);
	queued = submit(&f, &step);
	while (quire_planner_poll(f.runtime))
		continue;
	ck_assert_int_eq(quire_runtime_shutdown(f.runtime, true), QUIRE_OK);
	ck_assert_int_eq(quire_runtime_shutdown(f.runtime, false), QUIRE_CLOSED);
	ck_assert_int_eq(quire_runtime_open(f.runtime, 3, &ticket), QUIRE_CLOSED);
	ck_assert_int_eq(outcome_of(&f, waiting).refusal.status, QUIRE_CANCELLED);
	ck_assert_int_eq(outcome_of(&f, queued).refusal.status, QUIRE_CANCELLED);
	ck_assert_int_eq(quire_runtime_snapshot(f.runtime, 2, "new",
	                                        &(struct quire_snapshot){0}, NULL, 0),
	                 QUIRE_NO_LABEL);
	ck_assert_int_eq(stats_of(&f).pages_free, 4);
	fixture_end(&f);
}
END_TEST

START_TEST(a_ticket_that_nobody_wants_need_not_be_kept)
{
	struct fixture f;
	uint64_t ticket;

	fixture_start(&f, 8, 4);
	ck_assert_int_eq(quire_runtime_open(f.runtime, 1, NULL), QUIRE_OK);
	ck_assert_int_eq(quire_runtime_close(f.runtime, 1, &ticket), QUIRE_OK);
	ck_assert_uint_eq(ticket, 2);
	ck_assert_int_eq(outcome_of(&f, ticket).refusal.status, QUIRE_OK);
	fixture_end(&f);
}
END_TEST

/* With the only other thread of the test not taking a signal, none of the runtime's does. */
START_TEST(threads_of_the_runtime_take_no_signals)
{
	struct fixture f;
	struct timespec second = {.tv_sec = 1};
	sigset_t usr1;

	fixture_begin(&f, "cpu", 8, 4);
	f.config.threads = QUIRE_THREADS_LIBRARY;
	fixture_create(&f); /* while the signal is not blocked */
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	ck_assert_int_eq(pthread_sigmask(SIG_BLOCK, &usr1, NULL), 0);
	/* Any thread that could take it would end the process here, once it runs. */
	ck_assert_int_eq(kill(getpid(), SIGUSR1), 0);
	nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
	ck_assert_int_eq(sigtimedwait(&usr1, NULL, &second), SIGUSR1);
	fixture_end(&f);
}
END_TEST

START_TEST(a_config_out_of_range_names_its_field)
{
	struct fixture f;
	struct quire_refusal refusal;
	struct quire_runtime_config good;

	fixture_begin(&f, "cpu:inline", 8, 4);
	good = f.config;
	f.config.depth = 0;
	ck_assert_int_eq(quire_runtime_create(&f.config, &f.runtime, &refusal),
	                 QUIRE_INVALID);
	ck_assert_str_eq(refusal.what, "depth");
	ck_assert_int_eq(refusal.expected, 1);
	f.config.depth = QUIRE_DEPTH_MAX + 1;
	ck_assert_int_eq(quire_runtime_create(&f.config, &f.runtime, &refusal),
	                 QUIRE_INVALID);
	ck_assert_int_eq(refusal.expected, QUIRE_DEPTH_MAX);
	f.config = good;
	f.config.config_bytes--;
	ck_assert_int_eq(quire_runtime_create(&f.config, &f.runtime, &refusal),
	                 QUIRE_INVALID);
	f.config = good;
	f.config.cache = NULL;
	ck_assert_int_eq(quire_runtime_create(&f.config, &f.runtime, &refusal),
	                 QUIRE_INVALID);
	f.config = good;
	fixture_create(&f);
	fixture_end(&f);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("commands");
	TCase *requests = tcase_create("requests"), *pages = tcase_create("pages");
	TCase *form = tcase_create("form"), *tickets = tcase_create("tickets");

	tcase_add_test(requests, opening_twice_is_harmless_and_keeps_what_is_there);
	tcase_add_test(requests, an_unknown_request_is_named);
	tcase_add_test(requests, close_gives_all_labels_back_in_creation_order);
	tcase_add_test(requests,
	               a_zero_span_segment_on_a_missing_stream_is_refused_at_admit);
	tcase_add_test(requests, requests_and_labels_have_limits);
	tcase_add_test(requests, a_step_behind_a_refused_one_is_stale_and_writes_nothing);
	tcase_add_test(requests, every_wrong_at_is_stale_and_any_takes_every_length);
	tcase_add_test(pages, a_page_is_taken_in_the_step_of_its_first_token);
	tcase_add_test(pages, a_refused_step_names_the_shortage_and_changes_nothing);
	tcase_add_test(pages, a_step_waits_for_pages_that_are_on_their_way_back);
	tcase_add_test(pages, a_step_that_can_never_fit_is_refused_at_once);
	tcase_add_test(pages, the_sink_holds_no_tokens_of_a_stream);
	tcase_add_test(pages, a_reset_drops_content_and_gives_pages_back_or_keeps_them);
	tcase_add_test(pages, a_reopened_request_starts_above_its_old_generation);
	tcase_add_test(form, a_malformed_step_is_invalid_and_names_the_fault);
	tcase_add_test(form, the_first_fault_in_the_fixed_order_is_named);
	tcase_add_test(form, what_cannot_be_queued_draws_no_position);
	tcase_add_test(tickets, tickets_rise_by_one_and_old_ones_are_forgotten);
	tcase_add_test(tickets, a_full_queue_says_again_or_would_block);
	tcase_add_test(tickets, a_cancelling_shutdown_takes_a_waiting_step_back);
	tcase_add_test(tickets, a_ticket_that_nobody_wants_need_not_be_kept);
	tcase_add_test(tickets, threads_of_the_runtime_take_no_signals);
	tcase_add_test(tickets, a_config_out_of_range_names_its_field);
	suite_add_tcase(s, requests);
	suite_add_tcase(s, pages);
	suite_add_tcase(s, form);
	suite_add_tcase(s, tickets);
	return s;
}

int main(void)
{
	return run_suite(suite());
}
