/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_TESTS_RANDOM_PLAN_H
#define QUIRE_TESTS_RANDOM_PLAN_H
/*
 * Random steps, grouped and built into a slot that was full of rubbish before: whatever
 * the build leaves unwritten shows.
 */
#include <quire/plans/plan.h>

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define RANDOM_VIEWS_MAX 40
#define RANDOM_LABELS    6
#define RANDOM_COPIES    4 /* at most, before the work and behind it */

/* Label ids 0..RANDOM_LABELS-1 are segments' labels, the next ones names of combined. */
static const char random_label_names[RANDOM_LABELS + 2][QUIRE_LABEL_BYTES] = {
	"main", "cfg_text", "c",    "draft", "a label of exactly 31 bytes ...",
	"f",    "both",     "pair",
};

/* An assertion for millions of comparisons: Check's own write a message for each that
 * holds. */
#define SAME(got, right)                                                             \
	do {                                                                         \
		if ((got) != (right))                                                \
			ck_abort_msg("%s is %lld, not %lld", #got, (long long)(got), \
			             (long long)(right));                            \
	} while (0)

struct random_plan {
	uint64_t seed;
	int32_t page_size;
	int32_t num_views;
	struct quire_view views[RANDOM_VIEWS_MAX];
	int32_t labels[RANDOM_VIEWS_MAX];
	struct quire_combined_ids combined[2];
	int32_t num_combined;
	struct quire_grouping grouping;
	int32_t bucket_rows; /* 0: none */
	int32_t bucket_tokens;
	struct quire_slot_layout layout;
	char *host;
	char *device;
	struct quire_block_row *block_rows;
	int32_t row_of_view[RANDOM_VIEWS_MAX];
	struct quire_plan plan;
};

static inline uint64_t random_next(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* An integer in low..high. */
static inline int32_t random_in(uint64_t *state, int32_t low, int32_t high)
{
	return low + (int32_t)(random_next(state) % (uint64_t)(high - low + 1));
}

static inline void random_view(struct random_plan *random, struct quire_view *view,
                               int32_t label)
{
	uint64_t *s = &random->seed;
	int32_t ps = random->page_size;
	int32_t before = random_in(s, 0, 4) == 0 ? 0 : random_in(s, 0, 5 * ps + 3);
	int32_t kind = random_in(s, 0, 3);
	int32_t span = kind == 0 ? 0 : kind == 1 ? random_in(s, 0, 3 * ps + 2) : 1;
	int32_t count;
	int32_t *pages;

	view->request = random_next(s) >> 1;
	view->tag = random_next(s);
	view->label = label;
	view->span = span;
	view->length = before + span;
	view->released = random_in(s, 0, 2) == 0 ? ps * random_in(s, 1, 9) : 0;
	count = (view->length + ps - 1) / ps + random_in(s, 0, 2); /* spare ones too */
	pages = count > 0 ? malloc((size_t)count * sizeof(*pages)) : NULL;
	for (int32_t i = 0; i < count; i++)
		pages[i] = random_in(s, 1, 1 << 20);
	view->pages = pages;
}

/* Two disjoint lists of labels that have a segment, in any order. */
static inline void random_combined(struct random_plan *random)
{
	bool present[RANDOM_LABELS] = {false};
	int32_t start = random_in(&random->seed, 0, RANDOM_LABELS - 1);

	random->num_combined = 0;
	random->combined[0] = (struct quire_combined_ids){.name = RANDOM_LABELS};
	random->combined[1] = (struct quire_combined_ids){.name = RANDOM_LABELS + 1};
	for (int32_t i = 0; i < random->num_views; i++)
		present[random->labels[i]] = true;
	for (int32_t i = 0; i < RANDOM_LABELS; i++) {
		int32_t label = (start + i) % RANDOM_LABELS;
		int32_t list = random_in(&random->seed, 0, 3);
		struct quire_combined_ids *combined;

		if (!present[label] || list > 1)
			continue;
		combined = &random->combined[list];
		combined->labels[combined->num_labels++] = label;
	}
	if (random->combined[0].num_labels == 0)
		random->combined[0] = random->combined[1];
	random->num_combined = (random->combined[0].num_labels > 0) +
	                       (random->combined[0].name == RANDOM_LABELS &&
	                        random->combined[1].num_labels > 0);
}

static inline void random_bucket(struct random_plan *random)
{
	int32_t tokens = 0;

	random->bucket_rows = 0;
	random->bucket_tokens = 0;
	if (random_in(&random->seed, 0, 1) == 0)
		return;
	for (int32_t i = 0; i < random->num_views; i++)
		tokens += random->views[i].span;
	random->bucket_rows = random->num_views + random_in(&random->seed, 0, 9);
	random->bucket_tokens = tokens + random_in(&random->seed, 1, 20);
}

/* Limits that just fit, or are wider. */
static inline void random_slot(struct random_plan *random)
{
	struct quire_slot_limits limits = {.tables_max = RANDOM_LABELS};
	int64_t pages = 1, tokens = 1, widest = 0;

	for (int32_t i = 0; i < random->num_views; i++) {
		int64_t row = (random->views[i].length + random->page_size - 1) /
		              random->page_size;

		pages += row;
		tokens += random->views[i].span;
		widest = row > widest ? row : widest;
	}
	limits.rows_max =
		random->bucket_rows > 0 ? random->bucket_rows : random->num_views;
	limits.tokens_max =
		tokens > random->bucket_tokens ? tokens : random->bucket_tokens;
	limits.pages_max = pages;
	if (random_in(&random->seed, 0, 1) == 0)
		limits.block_width = widest + random_in(&random->seed, 1, 3);
	if (limits.block_width > 0 && random_in(&random->seed, 0, 1) == 0)
		limits.pages_max = 0;
	limits.copies_max = 2 * RANDOM_COPIES;
	limits.work_max = random_in(&random->seed, 0, 3);
	limits.user_bytes = random_in(&random->seed, 0, 200);
	ck_assert_int_eq(quire_slot_layout_init(&limits, &random->layout, NULL),
	                 QUIRE_OK);
}

static inline void random_build(struct random_plan *random)
{
	memset(random->host, 0xa5, (size_t)random->layout.slot_bytes);
	quire_plan_bind(&random->plan, &random->layout, random->host, random->device,
	                random->block_rows);
	random->plan.label_names = random_label_names;
	quire_plan_build(&random->plan, &random->grouping, random->views,
	                 random->num_views, random->page_size, random->bucket_rows,
	                 random->bucket_tokens, random->row_of_view);
}

static inline void random_copies(struct random_plan *random)
{
	struct quire_plan *plan = &random->plan;

	plan->num_pre_copies = random_in(&random->seed, 0, RANDOM_COPIES);
	plan->num_post_copies = random_in(&random->seed, 0, RANDOM_COPIES);
	for (int32_t i = 0; i < plan->num_pre_copies + plan->num_post_copies; i++) {
		plan->copy_source[i] = random_in(&random->seed, 0, 1 << 20);
		plan->copy_target[i] = random_in(&random->seed, 0, 1 << 20);
		plan->copy_end[i] = random_in(&random->seed, 1, random->page_size);
	}
}

static inline void random_plan_make(struct random_plan *random, uint64_t seed)
{
	static const int32_t sizes[] = {1, 2, 3, 7, 16, 64, 100, 128};
	int32_t labels_max;

	memset(random, 0, sizeof(*random));
	random->seed = seed;
	random->page_size = sizes[random_in(&random->seed, 0, 7)];
	random->num_views = random_in(&random->seed, 1, RANDOM_VIEWS_MAX);
	labels_max = random_in(&random->seed, 1, RANDOM_LABELS);
	for (int32_t i = 0; i < random->num_views; i++) {
		random->labels[i] = random_in(&random->seed, 0, labels_max - 1);
		random_view(random, &random->views[i], random->labels[i]);
	}
	random_combined(random);
	random_bucket(random);
	random_slot(random);
	random->host = malloc((size_t)random->layout.slot_bytes);
	random->device = malloc((size_t)random->layout.slot_bytes);
	random->block_rows = calloc((size_t)random->layout.limits.tables_max *
	                                    (size_t)random->layout.limits.rows_max,
	                            sizeof(*random->block_rows));
	ck_assert_int_eq(quire_grouping_init(&random->grouping, random->labels,
	                                     random->num_views, random->combined,
	                                     random->num_combined, RANDOM_LABELS, NULL),
	                 QUIRE_OK);
	random_build(random);
	random_copies(random);
}

static inline void random_plan_end(struct random_plan *random)
{
	for (int32_t i = 0; i < random->num_views; i++)
		free((void *)random->views[i].pages);
	free(random->host);
	free(random->device);
	free(random->block_rows);
}

#endif
