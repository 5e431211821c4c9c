/* SPDX-License-Identifier: MIT */
/*
 * Building plans beside the bare loop that copies the same page lists and fills the same
 * arrays.  One `name value unit ratio` line each; the ratio is the median of the rounds'.
 */
#include "config.h"

#include <quire/plans/plan.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROWS_MAX  1024
#define PAGES     64
#define PAGE_SIZE 16
#define ROUNDS    101
#define REPEATS   20

static const char names[1][QUIRE_LABEL_BYTES] = {"main"};

struct bench {
	struct quire_view views[ROWS_MAX];
	int32_t labels[ROWS_MAX];
	int32_t rows;
	struct quire_grouping grouping;
	struct quire_plan plan;
	struct quire_plan bare; /* the same slot shape, filled by the bare loop */
	uint64_t sink;
};

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void build(struct bench *bench)
{
	quire_plan_build(&bench->plan, &bench->grouping, bench->views, bench->rows,
	                 PAGE_SIZE, 0, 0, NULL);
}

static void build_bare(struct bench *bench)
{
	struct quire_table *table = &bench->bare.tables[0];
	int32_t page = 0, token = 0;

	for (int32_t i = 0; i < bench->rows; i++) {
		const struct quire_view *view = &bench->views[i];
		int32_t pages = (view->length + PAGE_SIZE - 1) / PAGE_SIZE;

		memcpy(table->kv_indices + page, view->pages, (size_t)pages * 4);
		page += pages;
		for (int32_t j = 0; j < view->span; j++) {
			int32_t g = view->length - view->span + j;

			table->slot_page[token] = view->pages[g / PAGE_SIZE];
			table->slot_offset[token] = g % PAGE_SIZE;
			table->position[token++] = view->released + g;
		}
		table->qo_indptr[i + 1] = token;
		table->kv_indptr[i + 1] = page;
		table->kv_last_page_len[i] = view->length - (pages - 1) * PAGE_SIZE;
	}
}

static void digest(struct bench *bench)
{
	bench->sink += quire_plan_digest(&bench->plan);
}

static int compare_doubles(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

static double time_of(struct bench *bench, void (*work)(struct bench *))
{
	int64_t start = now_ns();

	for (int i = 0; i < REPEATS; i++)
		work(bench);
	return (double)(now_ns() - start) / REPEATS;
}

static void report(struct bench *bench, const char *name, void (*work)(struct bench *))
{
	double times[ROUNDS], ratios[ROUNDS];

	for (int i = 0; i < ROUNDS; i++) {
		double bare = time_of(bench, build_bare);

		times[i] = time_of(bench, work);
		ratios[i] = times[i] / bare;
	}
	qsort(times, ROUNDS, sizeof(times[0]), compare_doubles);
	qsort(ratios, ROUNDS, sizeof(ratios[0]), compare_doubles);
	printf("%s %.2f us %.2f\n", name, times[ROUNDS / 2] / 1000, ratios[ROUNDS / 2]);
}

static void set_rows(struct bench *bench, int32_t rows, int32_t span)
{
	bench->rows = rows;
	for (int32_t i = 0; i < rows; i++) {
		bench->views[i].request = (uint64_t)i;
		bench->views[i].length =
			PAGES * PAGE_SIZE - (span == 1 ? i % PAGE_SIZE : 0);
		bench->views[i].span = span;
	}
	if (quire_grouping_init(&bench->grouping, bench->labels, rows, NULL, 0, 1,
	                        NULL) != QUIRE_OK)
		abort();
}

int main(void)
{
	struct quire_slot_limits limits = {1, ROWS_MAX, 8192, ROWS_MAX * PAGES, 0, 0, 0, 0};
	struct bench *bench = calloc(1, sizeof(*bench));
	int32_t *pages = malloc(sizeof(*pages) * ROWS_MAX * PAGES);
	struct quire_slot_layout layout;

	if (bench == NULL || pages == NULL ||
	    quire_slot_layout_init(&limits, &layout, NULL) != QUIRE_OK)
		return 1;
	for (int32_t i = 0; i < ROWS_MAX * PAGES; i++)
		pages[i] = (int32_t)((uint32_t)i * 2654435761u >> 12);
	for (int32_t i = 0; i < ROWS_MAX; i++)
		bench->views[i].pages = pages + i * PAGES;
	quire_plan_bind(&bench->plan, &layout, calloc(1, (size_t)layout.slot_bytes), NULL,
	                NULL);
	quire_plan_bind(&bench->bare, &layout, calloc(1, (size_t)layout.slot_bytes), NULL,
	                NULL);
	bench->plan.label_names = names;
	set_rows(bench, 256, 1);
	report(bench, "plan_decode_256x64_pages", build);
	report(bench, "digest_decode_256x64_pages", digest);
	set_rows(bench, 1024, 1);
	report(bench, "plan_decode_1024x64_pages", build);
	set_rows(bench, 8, 512);
	report(bench, "plan_prefill_8x512_tokens", build);
	free(bench->plan.host);
	free(bench->bare.host);
	free(pages);
	free(bench);
	return 0;
}
