/* SPDX-License-Identifier: MIT */
/* A plan is built for a step whose tables are known, then one entry after another is made
 * wrong: each is named, with its place, what it had to be and what it is. */
#include "config.h"

#include "runtime/cmd/tables_impl.h"

#include "tests/run_suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define PS    4
#define PAGES 40

/* Of the commands that a divergence may be of. */
const char *const cmd_kind_names[CMD_KINDS] = {[QUIRE_COMMAND_SUBMIT] = "submit"};

/*
 * Request 7 has main (5 tokens on pages 3, 4) and its fork b (the same pages), request 9
 * main (8 tokens on 5, 6, two of them released before).  Rows:
 *
 *   0  7 main  3 tokens at 5: page 4 has two owners, so it is copied to 20
 *   1  9 main  1 token at 8: grows by 21
 *   2  7 a     2 tokens at 0: grows by 22
 *
 * Tables: "both" is a, then main: rows 2, 0, 1, padded to 4 rows and 8 tokens.  Behind it
 * main goes to c: 7's two full pages are shared, 9's last one is copied to 23.
 */
static const struct quire_segment segments[] = {
	{.request = 7, .label = "main", .span = 3, .at = 5},
	{.request = 9, .label = NULL, .span = 1, .at = 8},
	{.request = 7, .label = "a", .span = 2, .at = 0},
};
static const char *const members[] = {"a", "main"};
static const struct quire_combined combined = {"both", members, 2};
static const struct quire_fork fork_to_c = {NULL, "c"};
static const struct quire_step step = {
	.segments = segments,
	.num_segments = 3,
	.combined = &combined,
	.num_combined = 1,
	.post_forks = &fork_to_c,
	.num_post_forks = 1,
	.bucket_rows = 4,
	.bucket_tokens = 8,
};
static const int32_t taken[] = {20, 21, 22, 23};

/* The plan's own names of labels. */
enum { MAIN, A, BOTH };
static const char names[][QUIRE_LABEL_BYTES] = {"main", "a", "both"};

static struct cmd_image image;
static struct cmd_image_labels labels;
static struct cmd_divergence divergence;
static struct quire_plan plan;
static char *slot;

static void give_stream(uint64_t batch, const char *label, int64_t length,
                        int64_t released, int32_t first)
{
	struct cmd_image_stream *stream =
		cmd_image_stream(&image, (int32_t)batch, cmd_image_label(&labels, label));

	*stream = (struct cmd_image_stream){
		.is_there = true,
		.length = length,
		.released = released,
		.num_pages = 2,
		.pages = cmd_image_alloc(&image, 2, 4),
	};
	stream->pages[0] = first;
	stream->pages[1] = first + 1;
}

static void make_image(void)
{
	memset(&labels, 0, sizeof(labels));
	ck_assert(cmd_image_label(&labels, "b") == 1);
	ck_assert(cmd_image_note_labels(&labels, &step));
	ck_assert(cmd_image_init(&image, &step, &labels, PS, PAGES));
	ck_assert(image.num_requests == 2 && image.requests[0] == 7);
	give_stream(0, "main", 5, 0, 3);
	give_stream(0, "b", 5, 0, 3);
	give_stream(1, "main", 8, 4, 5);
	ck_assert(cmd_image_apply(&image, taken, 4));
	ck_assert(image.num_takes == 4);
}

/* The plan as a planner makes it, by hand where that is not quire_plan_build's. */
static void make_plan(void)
{
	static const int32_t pages[3][3] = {{3, 20}, {5, 6, 21}, {22}};
	static const int32_t ids[] = {MAIN, MAIN, A};
	const struct quire_view views[] = {
		{.request = 7, .label = MAIN, .span = 3, .length = 8, .pages = pages[0]},
		{.request = 9,
	         .label = MAIN,
	         .span = 1,
	         .length = 9,
	         .released = 4,
	         .pages = pages[1]},
		{.request = 7, .label = A, .span = 2, .length = 2, .pages = pages[2]},
	};
	const struct quire_combined_ids both = {
		.name = BOTH, .num_labels = 2, .labels = {A, MAIN}};
	const struct quire_slot_limits limits = {
		.tables_max = 2,
		.rows_max = 4,
		.tokens_max = 8,
		.pages_max = 16,
		.copies_max = 4,
	};
	struct quire_slot_layout layout;
	struct quire_grouping grouping;

	ck_assert(quire_slot_layout_init(&limits, &layout, NULL) == QUIRE_OK);
	slot = calloc(1, (size_t)layout.slot_bytes);
	quire_plan_bind(&plan, &layout, slot, slot, NULL);
	ck_assert(quire_grouping_init(&grouping, ids, 3, &both, 1, 2, NULL) == QUIRE_OK);
	quire_plan_build(&plan, &grouping, views, 3, PS, 4, 8, NULL);
	plan.label_names = names;
	plan.num_pre_copies = plan.num_post_copies = 1;
	plan.copy_source[0] = 4;
	plan.copy_target[0] = 20;
	plan.copy_end[0] = 1;
	plan.copy_source[1] = 21;
	plan.copy_target[1] = 23;
	plan.copy_end[1] = 1;
}

static void setup(void)
{
	make_image();
	make_plan();
	cmd_divergence_init(&divergence, "digest", 12, QUIRE_COMMAND_SUBMIT);
}

static void teardown(void)
{
	cmd_image_end(&image);
	free(slot);
}

/* ------------------------------------------------------------------ tests */

START_TEST(a_plan_as_it_has_to_be_is_right)
{
	ck_assert(cmd_tables_check(&image, &plan, &divergence));
	ck_assert_str_eq(divergence.what, "digest");
}
END_TEST

/* One number is one too much: it is found, and named. */
static void one_wrong(int32_t *entry, const char *array, int64_t index, int32_t row)
{
	char expected[16], got[16];

	cmd_divergence_init(&divergence, "digest", 12, QUIRE_COMMAND_SUBMIT);
	snprintf(expected, sizeof(expected), "%d", *entry);
	snprintf(got, sizeof(got), "%d", *entry + 1);
	++*entry;
	ck_assert(!cmd_tables_check(&image, &plan, &divergence));
	--*entry;
	ck_assert_str_eq(divergence.what, "table");
	ck_assert_str_eq(divergence.array, array);
	ck_assert_int_eq(divergence.array_index, index);
	ck_assert_str_eq(divergence.expected, expected);
	ck_assert_str_eq(divergence.got, got);
	ck_assert_int_eq(divergence.row, row);
	ck_assert(divergence.has_stream == (row >= 0));
	if (row < 0)
		return;
	ck_assert_uint_eq(divergence.request, segments[row].request);
	ck_assert_str_eq(divergence.label, row == 2 ? "a" : "main");
}

static void all_wrong(int32_t *entries, const char *array, const int32_t *rows, int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		one_wrong(&entries[i], array, i, rows[i]);
		ck_assert_str_eq(divergence.table, "both");
	}
}

START_TEST(each_wrong_entry_of_a_table_is_named)
{
	struct quire_table *table = &plan.tables[0];
	static const int32_t of_indptr[] = {-1, 2, 0, 1, -1};
	static const int32_t of_page[] = {2, 0, 0, 1, 1, 1};
	static const int32_t of_row[] = {2, 0, 1, -1};
	static const int32_t of_token[] = {2, 2, 0, 0, 0, 1, -1, -1};

	ck_assert_int_eq(table->pages, 6);
	all_wrong(table->qo_indptr, "qo_indptr", of_indptr, 5);
	all_wrong(table->kv_indptr, "kv_indptr", of_indptr, 5);
	all_wrong(table->kv_indices, "kv_indices", of_page, 6);
	all_wrong(table->kv_last_page_len, "kv_last_page_len", of_row, 4);
	all_wrong(table->last_token, "last_token", of_row, 4);
	all_wrong(table->slot_page, "slot_page", of_token, 8);
	all_wrong(table->slot_offset, "slot_offset", of_token, 8);
	all_wrong(table->position, "position", of_token, 8);
}
END_TEST

START_TEST(each_wrong_count_is_named)
{
	struct quire_table *table = &plan.tables[0];

	one_wrong(&table->rows, "rows", -1, -1);
	one_wrong(&table->tokens, "tokens", -1, -1);
	one_wrong(&table->pages, "pages", -1, -1);
	one_wrong(&table->bucket_rows, "bucket_rows", -1, -1);
	one_wrong(&table->bucket_tokens, "bucket_tokens", -1, -1);
	one_wrong(&plan.num_tables, "num_tables", -1, -1);
	one_wrong(&plan.num_pre_copies, "pre-copies", -1, -1);
	one_wrong(&image.num_taken, "pages taken", -1, -1);
}
END_TEST

START_TEST(each_wrong_copy_is_named)
{
	int32_t *const lists[] = {plan.copy_source, plan.copy_target, plan.copy_end};

	for (int i = 0; i < 3; i++) {
		one_wrong(&lists[i][0], "pre-copies", 0, -1);
		one_wrong(&lists[i][1], "post-copies", 0, -1);
	}
}
END_TEST

START_TEST(wrong_names_are_named)
{
	struct quire_table *table = &plan.tables[0];

	table->row_label[1] = A;
	ck_assert(!cmd_tables_check(&image, &plan, &divergence));
	ck_assert_str_eq(divergence.array, "row_label");
	ck_assert_int_eq(divergence.array_index, 1);
	ck_assert_str_eq(divergence.expected, "\"main\"");
	ck_assert_str_eq(divergence.got, "\"a\"");
	table->row_label[1] = MAIN;
	table->row_request[2] = 8;
	ck_assert(!cmd_tables_check(&image, &plan, &divergence));
	ck_assert_str_eq(divergence.array, "row_request");
	ck_assert_str_eq(divergence.expected, "9");
	table->row_request[2] = 9;
	table->name = A;
	ck_assert(!cmd_tables_check(&image, &plan, &divergence));
	ck_assert_str_eq(divergence.array, "name");
	ck_assert_str_eq(divergence.expected, "\"both\"");
}
END_TEST

START_TEST(pages_taken_have_their_places)
{
	static const struct {
		uint64_t request;
		const char *label;
		int32_t row;
		int64_t index;
	} places[] = {
		{7, "main", 0, 2}, {9, "main", 1, 5}, {7, "a", 2, 0}, {9, "c", -1, -1}};

	for (int32_t i = 0; i < 4; i++) {
		cmd_divergence_init(&divergence, "pages", 12, QUIRE_COMMAND_SUBMIT);
		cmd_tables_place(&image, i, &divergence);
		ck_assert_uint_eq(divergence.request, places[i].request);
		ck_assert_str_eq(divergence.label, places[i].label);
		ck_assert_int_eq(divergence.row, places[i].row);
		ck_assert_int_eq(divergence.array_index, places[i].index);
	}
	ck_assert(strstr(divergence.note, "post_forks[0], \"main\" to \"c\"") != NULL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("tables");
	TCase *test_case = tcase_create("tables");

	tcase_add_checked_fixture(test_case, setup, teardown);
	tcase_add_test(test_case, a_plan_as_it_has_to_be_is_right);
	tcase_add_test(test_case, each_wrong_entry_of_a_table_is_named);
	tcase_add_test(test_case, each_wrong_count_is_named);
	tcase_add_test(test_case, each_wrong_copy_is_named);
	tcase_add_test(test_case, wrong_names_are_named);
	tcase_add_test(test_case, pages_taken_have_their_places);
	suite_add_tcase(suite, test_case);
	return run_suite(suite);
}
