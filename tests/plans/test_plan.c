/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "random_plan.h"
#include "tests/run_suite.h"

#include <stdio.h>

#define PLANS 500

/* Where the rows of one table come from: views in table order, by the rules' own words.
 */
struct model_table {
	int32_t name;
	int32_t num_rows;
	const struct quire_view *rows[RANDOM_VIEWS_MAX];
};

static void model_add_label(const struct random_plan *random, struct model_table *table,
                            int32_t label)
{
	for (int32_t i = 0; i < random->num_views; i++) {
		if (random->views[i].label == label)
			table->rows[table->num_rows++] = &random->views[i];
	}
}

/* Combined labels first, then the other labels in order of first appearance. */
static int32_t model_tables(const struct random_plan *random, struct model_table *tables)
{
	bool done[RANDOM_LABELS] = {false};
	int32_t count = 0;

	for (int32_t c = 0; c < random->num_combined; c++) {
		tables[count] = (struct model_table){.name = random->combined[c].name};
		for (int32_t i = 0; i < random->combined[c].num_labels; i++) {
			model_add_label(random, &tables[count],
			                random->combined[c].labels[i]);
			done[random->combined[c].labels[i]] = true;
		}
		count++;
	}
	for (int32_t i = 0; i < random->num_views; i++) {
		int32_t label = random->views[i].label;

		if (done[label])
			continue;
		done[label] = true;
		tables[count] = (struct model_table){.name = label};
		model_add_label(random, &tables[count++], label);
	}
	return count;
}

static int32_t ceil_div(int32_t a, int32_t b)
{
	int32_t quotient = 0;

	while (quotient * b < a)
		quotient++;
	return quotient;
}

static void check_row(const struct quire_plan *plan, const struct quire_table *table,
                      int32_t i, const struct quire_view *view, int32_t ps, int32_t width)
{
	int32_t npages = ceil_div(view->length, ps);
	int32_t first = table->qo_indptr[i];

	SAME(table->qo_indptr[i + 1], first + view->span);
	SAME(table->kv_indptr[i + 1], table->kv_indptr[i] + npages);
	for (int32_t p = 0; p < npages; p++)
		SAME(quire_row_pages(plan, table, i)[p], view->pages[p]);
	SAME(table->kv_last_page_len[i], view->length % ps == 0 ? ps : view->length % ps);
	SAME(table->last_token[i], view->span == 0 ? -1 : table->qo_indptr[i + 1] - 1);
	SAME(table->row_request[i], (int64_t)view->request);
	SAME(table->row_tag[i], view->tag);
	SAME(table->row_label[i], view->label);
	for (int32_t j = 0; j < view->span; j++) {
		int32_t g = view->length - view->span + j;

		SAME(table->slot_page[first + j], view->pages[g / ps]);
		SAME(table->slot_offset[first + j], g % ps);
		SAME(table->position[first + j], view->released + g);
	}
	for (int32_t p = 0; p < width; p++)
		SAME(table->block_table[i * width + p], p < npages ? view->pages[p] : 0);
}

static void check_padding(const struct quire_table *table, int32_t ps, int32_t width)
{
	for (int32_t i = table->rows; i < table->bucket_rows; i++) {
		SAME(table->qo_indptr[i + 1], table->tokens);
		SAME(table->kv_indptr[i + 1], table->pages);
		SAME(table->kv_last_page_len[i], ps);
		SAME(table->last_token[i], -1);
		SAME(table->row_request[i], -1);
		SAME(table->row_tag[i], 0);
		SAME(table->row_label[i], -1);
		for (int32_t p = 0; p < width; p++)
			SAME(table->block_table[i * width + p], 0);
	}
	for (int32_t t = table->tokens; t < table->bucket_tokens; t++) {
		SAME(table->slot_page[t], 0);
		SAME(table->slot_offset[t], 0);
		SAME(table->position[t], 0);
	}
}

static void check_table(const struct random_plan *random, const struct quire_table *table,
                        const struct model_table *model)
{
	int32_t width = (int32_t)random->layout.limits.block_width;
	int32_t tokens = 0, pages = 0;

	for (int32_t i = 0; i < model->num_rows; i++) {
		tokens += model->rows[i]->span;
		pages += ceil_div(model->rows[i]->length, random->page_size);
	}
	SAME(table->name, model->name);
	SAME(table->rows, model->num_rows);
	SAME(table->tokens, tokens);
	SAME(table->pages, pages);
	SAME(table->bucket_rows,
	     random->bucket_rows > 0 ? random->bucket_rows : table->rows);
	SAME(table->bucket_tokens,
	     random->bucket_rows > 0 ? random->bucket_tokens : tokens);
	SAME(table->qo_indptr[0], 0);
	SAME(table->kv_indptr[0], 0);
	for (int32_t i = 0; i < model->num_rows; i++) {
		check_row(&random->plan, table, i, model->rows[i], random->page_size,
		          width);
		SAME(random->row_of_view[model->rows[i] - random->views], i);
	}
	check_padding(table, random->page_size, width);
}

static void check_plan(uint64_t seed)
{
	struct model_table models[RANDOM_LABELS];
	struct random_plan random;
	int32_t count;

	random_plan_make(&random, seed);
	count = model_tables(&random, models);
	SAME(random.plan.num_tables, count);
	SAME(random.plan.page_size, random.page_size);
	for (int32_t t = 0; t < count; t++)
		check_table(&random, &random.plan.tables[t], &models[t]);
	random_plan_end(&random);
}

START_TEST(every_table_of_a_random_step_is_what_the_formulas_say)
{
	for (uint64_t seed = 0; seed < PLANS; seed++)
		check_plan(seed);
}
END_TEST

/* Used bytes of a slot, listed by the header's own words. */
static void mark(char *used, const struct quire_plan *plan, const void *start,
                 int64_t bytes)
{
	memset(used + ((const char *)start - plan->host), 1, (size_t)bytes);
}

static void mark_used(char *used, const struct quire_plan *plan)
{
	int64_t copies = (int64_t)plan->num_pre_copies + plan->num_post_copies +
	                 plan->num_work_copies;

	for (int32_t t = 0; t < plan->num_tables; t++) {
		const struct quire_table *table = &plan->tables[t];
		int64_t rows = table->bucket_rows, tokens = table->bucket_tokens;

		mark(used, plan, table->qo_indptr, 4 * (rows + 1));
		mark(used, plan, table->kv_indptr, 4 * (rows + 1));
		if (table->kv_indices != NULL)
			mark(used, plan, table->kv_indices, 4 * (int64_t)table->pages);
		mark(used, plan, table->kv_last_page_len, 4 * rows);
		mark(used, plan, table->last_token, 4 * rows);
		mark(used, plan, table->slot_page, 4 * tokens);
		mark(used, plan, table->slot_offset, 4 * tokens);
		mark(used, plan, table->position, 4 * tokens);
		mark(used, plan, table->row_request, 8 * rows);
		mark(used, plan, table->row_tag, 8 * rows);
		mark(used, plan, table->row_label, 4 * rows);
		if (plan->block_width == 0)
			ck_assert_ptr_null(table->block_table);
	}
	mark(used, plan, plan->copy_source, 4 * copies);
	mark(used, plan, plan->copy_target, 4 * copies);
	mark(used, plan, plan->copy_end, 4 * copies);
	mark(used, plan, plan->user, plan->user_bytes);
}

static void check_ranges(uint64_t seed)
{
	struct quire_slot_range ranges[QUIRE_PLAN_RANGES_MAX];
	struct random_plan random;
	int64_t end = -1;
	int32_t count;
	char *used;

	random_plan_make(&random, seed);
	random.plan.num_work_copies = (int32_t)random.layout.limits.work_max;
	used = calloc(1, (size_t)random.layout.slot_bytes + 1);
	mark_used(used, &random.plan);
	count = quire_plan_ranges(&random.plan, ranges);
	for (int32_t i = 0; i < count; i++) {
		ck_assert_int_gt(ranges[i].offset, end);
		ck_assert_int_gt(ranges[i].bytes, 0);
		end = ranges[i].offset + ranges[i].bytes;
		ck_assert_int_le(end, random.layout.slot_bytes);
		for (int64_t b = ranges[i].offset; b < end; b++) {
			SAME(used[b], 1);
			used[b] = 0;
		}
	}
	ck_assert_ptr_null(memchr(used, 1, (size_t)random.layout.slot_bytes));
	free(used);
	random_plan_end(&random);
}

START_TEST(ranges_cover_exactly_the_used_bytes_and_never_touch)
{
	for (uint64_t seed = 1000; seed < 1100; seed++)
		check_ranges(seed);
}
END_TEST

/* Capacity of the array at each offset of a table, in the order of the struct. */
static void check_places(const struct quire_slot_layout *layout)
{
	const struct quire_slot_limits *l = &layout->limits;
	const int64_t places[][2] = {
		{layout->qo_indptr, 4 * (l->rows_max + 1)},
		{layout->kv_indptr, 4 * (l->rows_max + 1)},
		{layout->kv_indices, 4 * l->pages_max},
		{layout->kv_last_page_len, 4 * l->rows_max},
		{layout->last_token, 4 * l->rows_max},
		{layout->slot_page, 4 * l->tokens_max},
		{layout->slot_offset, 4 * l->tokens_max},
		{layout->position, 4 * l->tokens_max},
		{layout->row_request, 8 * l->rows_max},
		{layout->row_tag, 8 * l->rows_max},
		{layout->row_label, 4 * l->rows_max},
		{layout->block_table, 4 * l->rows_max * l->block_width},
		{layout->table_bytes, 0},
	};
	const int64_t behind[][2] = {
		{layout->table_bytes * l->tables_max, 0},
		{layout->copy_source, 4 * (l->copies_max + l->work_max)},
		{layout->copy_target, 4 * (l->copies_max + l->work_max)},
		{layout->copy_end, 4 * (l->copies_max + l->work_max)},
		{layout->user, l->user_bytes},
		{layout->slot_bytes, 0},
	};

	ck_assert_int_eq(layout->qo_indptr, 0);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		ck_assert_int_eq(places[i][0] % 64, 0);
	for (size_t i = 0; i + 1 < sizeof(places) / sizeof(places[0]); i++)
		ck_assert_int_ge(places[i + 1][0], places[i][0] + places[i][1]);
	for (size_t i = 0; i < sizeof(behind) / sizeof(behind[0]); i++)
		ck_assert_int_eq(behind[i][0] % 64, 0);
	for (size_t i = 0; i + 1 < sizeof(behind) / sizeof(behind[0]); i++)
		ck_assert_int_ge(behind[i + 1][0], behind[i][0] + behind[i][1]);
}

static void check_slot(uint64_t *s)
{
	struct quire_slot_limits limits = {
		.tables_max = random_in(s, 1, QUIRE_TABLES_MAX),
		.rows_max = random_in(s, 1, QUIRE_ROWS_MAX),
		.tokens_max = random_in(s, 1, QUIRE_TOKENS_MAX),
		.pages_max = random_in(s, 1, INT32_MAX),
		.block_width = random_in(s, 0, QUIRE_PAGES_MAX),
		.copies_max = random_in(s, 0, QUIRE_PAGES_MAX),
		.work_max = random_in(s, 0, QUIRE_WORK_MAX),
		.user_bytes = random_in(s, 0, 1 << 20),
	};
	struct quire_block_row *block_rows = calloc(
		(size_t)(limits.tables_max * limits.rows_max), sizeof(*block_rows));
	struct quire_slot_layout layout;
	struct quire_plan plan;
	char *host = (char *)0x10000, *device = (char *)0x7000000000000;

	ck_assert_int_eq(quire_slot_layout_init(&limits, &layout, NULL), QUIRE_OK);
	check_places(&layout);
	quire_plan_bind(&plan, &layout, host, device, block_rows);
	ck_assert_int_eq(plan.num_tables, 0);
	for (int64_t t = 0; t < limits.tables_max; t++) {
		const struct quire_table *table = &plan.tables[t];
		int64_t base = t * layout.table_bytes;

		ck_assert_ptr_eq(table->qo_indptr, host + base + layout.qo_indptr);
		ck_assert_ptr_eq(table->kv_indptr, host + base + layout.kv_indptr);
		ck_assert_ptr_eq(table->kv_indices, host + base + layout.kv_indices);
		ck_assert_ptr_eq(table->slot_page, host + base + layout.slot_page);
		ck_assert_ptr_eq(table->row_tag, host + base + layout.row_tag);
		ck_assert_ptr_eq(quire_plan_device(&plan, table->position),
		                 device + base + layout.position);
	}
	ck_assert_ptr_eq(plan.copy_target, host + layout.copy_target);
	ck_assert_ptr_eq(plan.copy_end, host + layout.copy_end);
	ck_assert_ptr_eq(plan.user, host + layout.user);
	free(block_rows);
}

START_TEST(arrays_of_a_slot_are_aligned_and_never_overlap)
{
	uint64_t seed = 5;

	for (int i = 0; i < 100; i++)
		check_slot(&seed);
}
END_TEST

START_TEST(a_slot_limit_out_of_range_is_refused_by_name)
{
	static const struct {
		const char *what;
		struct quire_slot_limits limits;
		int64_t got;
	} cases[] = {
		{"tables_max", {0, 1, 1, 1, 0, 0, 0, 0}, 0},
		{"tables_max",
	         {QUIRE_TABLES_MAX + 1, 1, 1, 1, 0, 0, 0, 0},
	         QUIRE_TABLES_MAX + 1},
		{"rows_max", {1, 0, 1, 1, 0, 0, 0, 0}, 0},
		{"rows_max",
	         {1, QUIRE_ROWS_MAX + 1, 1, 1, 0, 0, 0, 0},
	         QUIRE_ROWS_MAX + 1},
		{"tokens_max", {1, 1, -5, 1, 0, 0, 0, 0}, -5},
		{"tokens_max",
	         {1, 1, QUIRE_TOKENS_MAX + 1, 1, 0, 0, 0, 0},
	         QUIRE_TOKENS_MAX + 1},
		{"pages_max", {1, 1, 1, 0, 0, 0, 0, 0}, 0},
		{"pages_max", {1, 1, 1, -1, 1, 0, 0, 0}, -1},
		{"pages_max", {1, 1, 1, INT64_C(1) << 31, 0, 0, 0, 0}, INT64_C(1) << 31},
		{"block_width", {1, 1, 1, 1, -1, 0, 0, 0}, -1},
		{"copies_max",
	         {1, 1, 1, 1, 0, QUIRE_PAGES_MAX + 1, 0, 0},
	         QUIRE_PAGES_MAX + 1},
		{"work_max",
	         {1, 1, 1, 1, 0, 0, QUIRE_WORK_MAX + 1, 0},
	         QUIRE_WORK_MAX + 1},
		{"user_bytes", {1, 1, 1, 1, 0, 0, 0, INT64_MAX}, INT64_MAX},
		{"user_bytes", {1, 1, 1, 1, 0, 0, 0, -1}, -1},
	};
	struct quire_slot_layout layout, before;
	struct quire_refusal refusal;

	memset(&layout, 0x5a, sizeof(layout));
	before = layout;
	ck_assert_int_eq(quire_slot_layout_init(&cases[_i].limits, &layout, &refusal),
	                 QUIRE_INVALID);
	ck_assert_str_eq(refusal.what, cases[_i].what);
	ck_assert_int_eq(refusal.got, cases[_i].got);
	ck_assert_mem_eq(&layout, &before, sizeof(layout));
}
END_TEST

/* Hand-counted: lengths P-1, P, P+1 reached by one token, and by a prompt from 0. */
START_TEST(a_page_is_taken_with_its_first_token_and_not_before_or_after)
{
	const int32_t pages[] = {11, 12};
	const struct quire_view views[] = {
		{.request = 1, .span = 1, .length = 15, .pages = pages},
		{.request = 2, .span = 1, .length = 16, .pages = pages},
		{.request = 3, .span = 1, .length = 17, .pages = pages},
		{.request = 4, .span = 17, .length = 17, .pages = pages, .released = 32},
		{.request = 5, .span = 2, .length = 17, .pages = pages},
		{.request = 6, .span = 0, .length = 0},
	};
	const int32_t labels[6] = {0};
	const int32_t qo_indptr[] = {0, 1, 2, 3, 20, 22, 22};
	const int32_t kv_indptr[] = {0, 1, 2, 4, 6, 8, 8};
	const int32_t kv_indices[] = {11, 11, 11, 12, 11, 12, 11, 12};
	const int32_t last_page_len[] = {15, 16, 1, 1, 1, 16};
	const int32_t last_token[] = {0, 1, 2, 19, 21, -1};
	const int32_t slot_page[] = {11, 11, 12, 11, 11, 11, 11, 11, 11, 11, 11,
	                             11, 11, 11, 11, 11, 11, 11, 11, 12, 11, 12};
	const int32_t slot_offset[] = {14, 15, 0,  0,  1,  2,  3,  4,  5, 6,  7,
	                               8,  9,  10, 11, 12, 13, 14, 15, 0, 15, 0};
	const int32_t position[] = {14, 15, 16, 32, 33, 34, 35, 36, 37, 38, 39,
	                            40, 41, 42, 43, 44, 45, 46, 47, 48, 15, 16};
	struct quire_slot_limits limits = {1, 6, 22, 8, 0, 0, 0, 0};
	struct quire_slot_layout layout;
	struct quire_grouping grouping;
	struct quire_plan plan;
	char *host;

	ck_assert_int_eq(quire_slot_layout_init(&limits, &layout, NULL), QUIRE_OK);
	ck_assert_int_eq(quire_grouping_init(&grouping, labels, 6, NULL, 0, 1, NULL),
	                 QUIRE_OK);
	host = malloc((size_t)layout.slot_bytes);
	quire_plan_bind(&plan, &layout, host, host, NULL);
	quire_plan_build(&plan, &grouping, views, 6, 16, 0, 0, NULL);
	ck_assert_mem_eq(plan.tables[0].qo_indptr, qo_indptr, sizeof(qo_indptr));
	ck_assert_mem_eq(plan.tables[0].kv_indptr, kv_indptr, sizeof(kv_indptr));
	ck_assert_mem_eq(plan.tables[0].kv_indices, kv_indices, sizeof(kv_indices));
	ck_assert_mem_eq(plan.tables[0].kv_last_page_len, last_page_len,
	                 sizeof(last_page_len));
	ck_assert_mem_eq(plan.tables[0].last_token, last_token, sizeof(last_token));
	ck_assert_mem_eq(plan.tables[0].slot_page, slot_page, sizeof(slot_page));
	ck_assert_mem_eq(plan.tables[0].slot_offset, slot_offset, sizeof(slot_offset));
	ck_assert_mem_eq(plan.tables[0].position, position, sizeof(position));
	free(host);
}
END_TEST

START_TEST(an_unsound_combined_list_is_refused_with_its_place)
{
	/* Segments of labels 0, 1, 2; the second list is the one that is wrong. */
	static const struct {
		struct quire_combined_ids ids;
		const char *what;
	} second[] = {
		{{.name = 9, .num_labels = 0}, "no labels"},
		{{.name = 9, .num_labels = 1, .labels = {3}}, "without a segment"},
		{{.name = 9, .num_labels = 2, .labels = {1, 1}}, "stands there already"},
		{{.name = 9, .num_labels = 2, .labels = {1, 0}}, "stands there already"},
		{{.name = 8, .num_labels = 1, .labels = {1}}, "a name twice"},
		{{.name = 2, .num_labels = 1, .labels = {1}}, "outside the list"},
		{{.name = 0, .num_labels = 1, .labels = {1}}, "outside the list"},
	};
	const int32_t labels[] = {0, 1, 2, 1};
	struct quire_combined_ids combined[] = {
		{.name = 8, .num_labels = 1, .labels = {0}},
		second[_i].ids,
	};
	struct quire_grouping grouping, before;
	struct quire_refusal refusal;

	memset(&grouping, 0x5a, sizeof(grouping));
	before = grouping;
	ck_assert_int_eq(
		quire_grouping_init(&grouping, labels, 4, combined, 2, 16, &refusal),
		QUIRE_INVALID);
	ck_assert_ptr_nonnull(strstr(refusal.what, second[_i].what));
	ck_assert_int_eq(refusal.index, 1);
	ck_assert_mem_eq(&grouping, &before, sizeof(grouping));
}
END_TEST

START_TEST(a_combined_label_may_bear_the_name_of_one_of_its_own)
{
	const int32_t labels[] = {2, 1, 0, 2};
	const struct quire_combined_ids combined[] = {
		{.name = 1, .num_labels = 2, .labels = {0, 1}},
	};
	struct quire_grouping grouping;

	ck_assert_int_eq(quire_grouping_init(&grouping, labels, 4, combined, 1, 2, NULL),
	                 QUIRE_OK);
	ck_assert_int_eq(grouping.num_tables, 2);
	ck_assert_int_eq(grouping.name[0], 1);
	ck_assert_int_eq(grouping.num_members[0], 2);
	ck_assert_int_eq(grouping.members[0][0], 0);
	ck_assert_int_eq(grouping.members[0][1], 1);
	ck_assert_int_eq(grouping.name[1], 2);
	ck_assert_int_eq(grouping.table_of[0], 0);
	ck_assert_int_eq(grouping.table_of[1], 0);
	ck_assert_int_eq(grouping.table_of[2], 1);
	ck_assert_int_eq(grouping.table_of[3], -1);
}
END_TEST

START_TEST(one_table_more_than_a_slot_holds_is_refused)
{
	int32_t labels[QUIRE_LABELS_MAX];
	struct quire_grouping grouping;
	struct quire_refusal refusal;

	for (int32_t i = 0; i < QUIRE_LABELS_MAX; i++)
		labels[i] = i;
	for (int32_t n = 1; n <= QUIRE_TABLES_MAX; n++) {
		ck_assert_int_eq(
			quire_grouping_init(&grouping, labels, n, NULL, 0, n, NULL),
			QUIRE_OK);
		ck_assert_int_eq(grouping.num_tables, n);
		ck_assert_int_eq(quire_grouping_init(&grouping, labels, n + 1, NULL, 0, n,
		                                     &refusal),
		                 QUIRE_LIMIT);
		ck_assert_str_eq(refusal.what, "tables_max");
		ck_assert_int_eq(refusal.expected, n);
		ck_assert_int_eq(refusal.got, n + 1);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("plan");
	TCase *cases = tcase_create("plan");

	tcase_add_test(cases, every_table_of_a_random_step_is_what_the_formulas_say);
	tcase_add_test(cases, ranges_cover_exactly_the_used_bytes_and_never_touch);
	tcase_add_test(cases, arrays_of_a_slot_are_aligned_and_never_overlap);
	tcase_add_loop_test(cases, a_slot_limit_out_of_range_is_refused_by_name, 0, 13);
	tcase_add_test(cases,
	               a_page_is_taken_with_its_first_token_and_not_before_or_after);
	tcase_add_loop_test(cases, an_unsound_combined_list_is_refused_with_its_place, 0,
	                    7);
	tcase_add_test(cases, a_combined_label_may_bear_the_name_of_one_of_its_own);
	tcase_add_test(cases, one_table_more_than_a_slot_holds_is_refused);
	tcase_set_timeout(cases, 60);
	suite_add_tcase(suite, cases);
	return run_suite(suite);
}
