/* SPDX-License-Identifier: MIT */
/*
 * The ideal schedule, against one that lists every page and every event.
 */
#include "config.h"

#include "random_plan.h"
#include "tests/run_suite.h"

#include <quire/plans/requests.h>
#include <quire/runtime/limits.h>

#define ROWS_MAX  30
#define KEYS_MAX  40
#define PAGES_MAX 2000 /* full ones of all prompts together, and more */

/* Rows with the memory of their keys. */
struct rows {
	struct quire_request_row row[ROWS_MAX];
	int64_t keys[ROWS_MAX][KEYS_MAX];
	int64_t count;
};

static void run_ideal(const struct rows *rows, int64_t page_size,
                      struct quire_ideal_numbers *numbers)
{
	struct quire_ideal *ideal;

	ck_assert_int_eq(quire_ideal_create(page_size, &ideal), QUIRE_OK);
	for (int64_t i = 0; i < rows->count; i++)
		ck_assert_int_eq(quire_ideal_add(ideal, &rows->row[i], NULL), QUIRE_OK);
	quire_ideal_finish(ideal, numbers);
	quire_ideal_destroy(ideal);
}

/* ---- nothing shared: a sorted list of all events ---- */

struct naive_event {
	int64_t tenths_of_ms;
	int64_t pages; /* below 0: given */
};

static int compare_events(const void *left, const void *right)
{
	const struct naive_event *a = left, *b = right;

	if (a->tenths_of_ms != b->tenths_of_ms)
		return a->tenths_of_ms < b->tenths_of_ms ? -1 : 1;
	return (b->pages < 0) - (a->pages < 0);
}

static void naive_ideal(const struct rows *rows, int64_t ps, int64_t *peak,
                        int64_t *takes)
{
	struct naive_event *events = malloc(100000 * sizeof(*events));
	int64_t live = 0;
	size_t n = 0;

	for (int64_t i = 0; i < rows->count; i++) {
		const struct quire_request_row *row = &rows->row[i];
		int64_t now = row->arrival_ns / 100000;
		int64_t pages = 0;

		while (pages * ps < row->input_tokens)
			pages++;
		events[n++] = (struct naive_event){now, pages};
		now += row->input_tokens;
		for (int64_t k = 1; k <= row->output_tokens; k++) {
			if ((row->input_tokens + k - 1) % ps == 0) {
				events[n++] = (struct naive_event){now, 1};
				pages++;
			}
			now += 300;
		}
		events[n++] = (struct naive_event){now, -pages};
	}
	qsort(events, n, sizeof(*events), compare_events);
	*peak = 0;
	*takes = 0;
	for (size_t i = 0; i < n; i++) {
		live += events[i].pages;
		*peak = live > *peak ? live : *peak;
		*takes += events[i].pages > 0 ? events[i].pages : 0;
	}
	ck_assert_int_eq(live, 0);
	free(events);
}

/* ---- shared: every page by name, how many requests alive have it ---- */

struct page {
	int64_t key;
	int64_t part;  /* tokens of the block that holds its last token */
	int64_t block; /* that one's place */
	int64_t index; /* its own */
	int64_t live;
};

struct shared_model {
	struct page pages[PAGES_MAX];
	int64_t num_pages;
	int64_t live, peak, takes, full, repeated;
};

static struct page *page_named(struct shared_model *model, const struct page *name)
{
	for (int64_t i = 0; i < model->num_pages; i++) {
		struct page *page = &model->pages[i];

		if (page->key == name->key && page->part == name->part &&
		    page->block == name->block && page->index == name->index)
			return page;
	}
	return NULL;
}

/* Has the page a name?  Not where its last token lies behind the last key. */
static bool is_named(const struct quire_request_row *row, int64_t ps, int64_t index)
{
	return (index + 1) * ps <= row->prefix.num_keys * row->prefix.tokens;
}

static struct page name_of(const struct quire_request_row *row, int64_t ps, int64_t index)
{
	int64_t last = (index + 1) * ps - 1;
	int64_t block = last / row->prefix.tokens;
	int64_t part = row->input_tokens - block * row->prefix.tokens;

	return (struct page){
		.key = row->prefix.keys[block],
		.part = part < row->prefix.tokens ? part : row->prefix.tokens,
		.block = block,
		.index = index,
	};
}

static void model_take(struct shared_model *model, int64_t pages)
{
	model->live += pages;
	model->takes += pages;
	model->peak = model->live > model->peak ? model->live : model->peak;
}

static void model_arrive(struct shared_model *model, const struct quire_request_row *row,
                         int64_t ps)
{
	int64_t full = row->input_tokens / ps;

	model->full += full;
	if (row->input_tokens % ps != 0)
		model_take(model, 1);
	for (int64_t j = 0; j < full; j++) {
		struct page name = {.live = 0}, *page;

		if (!is_named(row, ps, j)) {
			model_take(model, 1);
			continue;
		}
		name = name_of(row, ps, j);
		page = page_named(model, &name);
		model->repeated += page != NULL;
		if (page == NULL) {
			SAME(model->num_pages < PAGES_MAX, true);
			page = &model->pages[model->num_pages++];
			*page = name;
		}
		if (page->live++ == 0)
			model_take(model, 1);
	}
}

static void model_leave(struct shared_model *model, const struct quire_request_row *row,
                        int64_t ps)
{
	int64_t full = row->input_tokens / ps;
	int64_t all = (row->input_tokens + row->output_tokens + ps - 1) / ps;

	model->live -= all - full;
	for (int64_t j = 0; j < full; j++) {
		struct page name;

		if (!is_named(row, ps, j)) {
			model->live--;
			continue;
		}
		name = name_of(row, ps, j);
		model->live -= --page_named(model, &name)->live == 0;
	}
}

/* All moments one after another, 10 a millisecond; gives before takes. */
static void run_model(struct shared_model *model, const struct rows *rows, int64_t ps)
{
	int64_t last = 0;

	memset(model, 0, sizeof(*model));
	for (int64_t now = 0; now <= last; now++) {
		for (int64_t i = 0; i < rows->count; i++) {
			const struct quire_request_row *row = &rows->row[i];
			int64_t start = row->arrival_ns / 100000;
			int64_t end =
				start + row->input_tokens + row->output_tokens * 300;

			last = end > last ? end : last;
			if (now == end && start < end)
				model_leave(model, row, ps);
		}
		for (int64_t i = 0; i < rows->count; i++) {
			const struct quire_request_row *row = &rows->row[i];
			int64_t start = row->arrival_ns / 100000;
			int64_t decode = start + row->input_tokens;
			int64_t step = (now - decode) / 300; /* from 0 */

			if (now == start)
				model_arrive(model, row, ps);
			if (now >= decode && (now - decode) % 300 == 0 &&
			    step < row->output_tokens &&
			    (row->input_tokens + step) % ps == 0)
				model_take(model, 1);
		}
	}
}

/* Prompts out of a few families: two of one family have the first blocks in common. */
static void make_rows(struct rows *rows, uint64_t *s)
{
	int32_t tokens = random_in(s, 1, 40);
	int64_t now = 0;

	rows->count = random_in(s, 0, ROWS_MAX);
	for (int64_t i = 0; i < rows->count; i++) {
		struct quire_request_row *row = &rows->row[i];
		int32_t family = random_in(s, 0, 2), same = random_in(s, 0, 6);

		/* multiples of 30 ms, and prompts of 300 tokens, make equal times */
		now += INT64_C(30000000) * random_in(s, 0, 3) * (i > 0);
		row->arrival_ns = now;
		row->input_tokens = random_in(s, 0, 1) == 0 ? random_in(s, 0, 70)
		                                            : 300 * random_in(s, 0, 2);
		row->output_tokens = random_in(s, 0, 3) == 0 ? 0 : random_in(s, 0, 99);
		if (row->output_tokens == 0 && row->input_tokens == 0)
			row->output_tokens = 1;
		row->prefix = (struct quire_trace_prefix){.tokens = 0};
		if (random_in(s, 0, 9) == 0 || row->input_tokens > tokens * KEYS_MAX)
			continue;
		row->prefix.tokens = tokens;
		row->prefix.num_keys = (int32_t)((row->input_tokens +
		                                  random_in(s, 0, 1) * (tokens - 1)) /
		                                 tokens);
		row->prefix.keys = rows->keys[i];
		for (int32_t k = 0; k < row->prefix.num_keys; k++)
			rows->keys[i][k] = k < same ? family : random_in(s, 3, 4);
	}
}

START_TEST(the_ideal_schedule_is_that_of_a_naive_simulation)
{
	static struct rows rows;
	uint64_t s = 4;

	for (int round = 0; round < 300; round++) {
		struct quire_ideal_numbers numbers;
		int64_t ps = random_in(&s, 1, 40), peak, takes;

		make_rows(&rows, &s);
		naive_ideal(&rows, ps, &peak, &takes);
		run_ideal(&rows, ps, &numbers);
		ck_assert_int_eq(numbers.peak_pages, peak);
		ck_assert_int_eq(numbers.takes, takes);
	}
}
END_TEST

START_TEST(shared_pages_are_those_of_a_model_that_names_every_page)
{
	static struct shared_model model;
	static struct rows rows;
	uint64_t s = 5;
	int64_t saved = 0, repeated = 0;

	for (int round = 0; round < 100; round++) {
		struct quire_ideal_numbers numbers;
		int64_t ps = random_in(&s, 8, 60);

		make_rows(&rows, &s);
		run_model(&model, &rows, ps);
		run_ideal(&rows, ps, &numbers);
		ck_assert_int_eq(numbers.shared_peak_pages, model.peak);
		ck_assert_int_eq(numbers.shared_takes, model.takes);
		ck_assert_int_eq(numbers.prompt_pages, model.full);
		ck_assert_int_eq(numbers.repeated_pages, model.repeated);
		saved += numbers.takes - numbers.shared_takes;
		repeated += numbers.repeated_pages;
	}
	/* It was not for nothing: pages were shared, and some repeated later on. */
	ck_assert_int_gt(saved, 1000);
	ck_assert_int_gt(repeated, saved);
}
END_TEST

/* A leaves at the very time at which B comes: 1 + 2 pages never live together. */
START_TEST(at_equal_times_gives_come_before_takes)
{
	struct rows rows = {
		.row = {{0, 300, 1, {0}}, {60000000, 600, 0, {0}}},
		.count = 2,
	};
	struct quire_ideal_numbers numbers;

	run_ideal(&rows, 301, &numbers);
	ck_assert_int_eq(numbers.peak_pages, 2);
	ck_assert_int_eq(numbers.takes, 3);
	rows.row[1].arrival_ns--;
	run_ideal(&rows, 301, &numbers);
	ck_assert_int_eq(numbers.peak_pages, 3);
}
END_TEST

/*
 * Blocks of 8 tokens, pages of 3: a prompt of 8 has the full pages (0..2), (3..5), and
 * one of 16 has those and (6..8), (9..11), (12..14).  Page (6..8) lies in both blocks and
 * has the second one's name.
 */
START_TEST(pages_of_a_part_block_are_shared_by_prompts_of_one_length)
{
	static const int64_t keys[] = {7, 8};
	struct rows rows = {.count = 2};
	static const struct {
		int64_t input, second, takes, repeated;
	} cases[] = {
		{16, 16, 6 + 1, 5}, /* whole blocks: five shared, a page of their own each */
		{15, 15, 5, 5},     /* the same part block */
		{16, 15, 6 + 3, 2}, /* another length: the first block only */
		{16, 8, 6 + 1, 2},  {5, 5, 2 + 1, 1}, {5, 4, 2 + 2, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct quire_ideal_numbers numbers;

		for (int r = 0; r < 2; r++) {
			int64_t input = r == 0 ? cases[i].input : cases[i].second;

			rows.row[r] = (struct quire_request_row){
				0, input, 0, {8, (int32_t)((input + 7) / 8), keys}};
		}
		run_ideal(&rows, 3, &numbers);
		ck_assert_int_eq(numbers.shared_takes, cases[i].takes);
		ck_assert_int_eq(numbers.shared_peak_pages, cases[i].takes);
		ck_assert_int_eq(numbers.repeated_pages, cases[i].repeated);
		rows.row[1].arrival_ns =
			1000000000; /* the first is gone: nothing shared */
		run_ideal(&rows, 3, &numbers);
		ck_assert_int_eq(numbers.shared_takes, numbers.takes);
		ck_assert_int_eq(numbers.repeated_pages, cases[i].repeated);
	}
}
END_TEST

/* Blocks of 8 tokens, pages of 3, and only the whole first block of 15 tokens has a name:
 * it holds the last tokens of 2 of the 5 full pages. */
START_TEST(pages_behind_the_last_key_are_shared_with_nobody)
{
	static const int64_t keys[] = {7};
	const struct rows rows = {
		.row = {{0, 15, 0, {8, 1, keys}}, {0, 15, 0, {8, 1, keys}}},
		.count = 2,
	};
	struct quire_ideal_numbers numbers;

	run_ideal(&rows, 3, &numbers);
	ck_assert_int_eq(numbers.takes, 10);
	ck_assert_int_eq(numbers.shared_takes, 8);
	ck_assert_int_eq(numbers.shared_peak_pages, 8);
	ck_assert_int_eq(numbers.prompt_pages, 10);
	ck_assert_int_eq(numbers.repeated_pages, 2);
}
END_TEST

static const struct quire_request_row bad_rows[] = {
	{4, 1, 1, {0}},
	{INT64_MAX, 1, 1, {0}},
	{5, -1, 1, {0}},
	{5, 1, -1, {0}},
	{5, INT64_C(1) << 31, 1, {0}},
	{5, 1, INT64_C(1) << 31, {0}},
	{5, 17, 1, {8, 1, NULL}},
	{5, 9, 1, {8, 3, NULL}},
	{5, 9, 1, {0, 1, NULL}},
	{5, 9, 1, {-8, 2, NULL}},
};

START_TEST(rows_out_of_range_are_refused_and_change_nothing)
{
	const struct quire_request_row good = {5, 300, 1, {0}};
	struct quire_ideal_numbers numbers;
	struct quire_refusal refusal;
	struct quire_ideal *ideal;

	ck_assert_int_eq(quire_ideal_create(0, &ideal), QUIRE_INVALID);
	ck_assert_int_eq(quire_ideal_create(QUIRE_PAGE_SIZE_MAX + 1, &ideal),
	                 QUIRE_INVALID);
	ck_assert_int_eq(quire_ideal_create(16, &ideal), QUIRE_OK);
	ck_assert_int_eq(quire_ideal_add(ideal, &good, NULL), QUIRE_OK);
	for (size_t i = 0; i < sizeof(bad_rows) / sizeof(bad_rows[0]); i++) {
		ck_assert_int_eq(quire_ideal_add(ideal, &bad_rows[i], &refusal),
		                 QUIRE_INVALID);
		ck_assert_int_eq(quire_ideal_add(ideal, &bad_rows[i], NULL),
		                 QUIRE_INVALID);
	}
	quire_ideal_finish(ideal, &numbers);
	ck_assert_int_eq(numbers.peak_pages, 19);
	ck_assert_int_eq(numbers.takes, 19);
	quire_ideal_destroy(ideal);
}
END_TEST

START_TEST(more_than_2_to_the_32_pages_are_refused_before_they_are_taken)
{
	const struct quire_request_row endless = {0, 1, INT32_MAX, {0}};
	struct quire_refusal refusal;
	struct quire_ideal *ideal;

	ck_assert_int_eq(quire_ideal_create(1, &ideal), QUIRE_OK);
	ck_assert_int_eq(quire_ideal_add(ideal, &endless, &refusal), QUIRE_OK);
	ck_assert_int_eq(quire_ideal_add(ideal, &endless, &refusal), QUIRE_OK);
	ck_assert_int_eq(quire_ideal_add(ideal, &endless, &refusal), QUIRE_INVALID);
	ck_assert_ptr_nonnull(strstr(refusal.what, "more than 2^32 pages"));
	quire_ideal_destroy(ideal); /* two requests alive */
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ideal");
	TCase *cases = tcase_create("ideal");

	tcase_set_timeout(cases, 60);
	tcase_add_test(cases, the_ideal_schedule_is_that_of_a_naive_simulation);
	tcase_add_test(cases, shared_pages_are_those_of_a_model_that_names_every_page);
	tcase_add_test(cases, at_equal_times_gives_come_before_takes);
	tcase_add_test(cases, pages_of_a_part_block_are_shared_by_prompts_of_one_length);
	tcase_add_test(cases, pages_behind_the_last_key_are_shared_with_nobody);
	tcase_add_test(cases, rows_out_of_range_are_refused_and_change_nothing);
	tcase_add_test(cases,
	               more_than_2_to_the_32_pages_are_refused_before_they_are_taken);
	suite_add_tcase(suite, cases);
	return run_suite(suite);
}
