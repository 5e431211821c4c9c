/* SPDX-License-Identifier: MIT */
/*
 * GB/s of the cache's operations, each beside plain copies of the same bytes: all ways of
 * a task run in turns, in another order every round; the figures are medians of the rounds
 * and of the rounds' ratios.  At the end, the bars.
 */
#include "config.h"

#include "tests/alloc/random.h"
#include "tests/kernels/bench_moves.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS_MAX  31
#define RESULTS_MAX 1024
#define WAYS_MAX    3

/* What the names of results leave out. */
#define USUAL_ROW_BYTES 2048
#define USUAL_TOKENS    4096
#define USUAL_PAGES     256

#define WAY(way) (1u << (way))

/* One line: a way, and the quickest of some others in the same round. */
struct line {
	const char *name;
	enum bench_way way;
	unsigned base;
};

static const struct line write_lines[] = {
	{"cache_write", BENCH_WRITE, WAY(BENCH_MEMCPY_IN)},
	{"cache_write_f32_to_bf16", BENCH_WRITE_F32, WAY(BENCH_MEMCPY_IN)},
	{"cache_write_f32_by_bf16", BENCH_WRITE_F32, WAY(BENCH_WRITE)},
	{0},
};

static const struct line read_lines[] = {
	{"cache_read", BENCH_READ, WAY(BENCH_MEMCPY_OUT)},
	{0},
};

static const struct line page_lines[] = {
	{"cache_copy_pages", BENCH_COPY_PAGES, WAY(BENCH_BLOCKS) | WAY(BENCH_BLOCKS_NT)},
	{0},
};

static struct {
	char name[80];
	double ratio;
} results[RESULTS_MAX];
static int num_results;

static int rounds = 15;
static uint64_t order_seed = 7;

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values)
{
	qsort(values, (size_t)rounds, sizeof(*values), compare);
	return values[rounds / 2];
}

static void note(const char *name, double value, const char *unit, double ratio)
{
	printf("%s %.2f %s %.2f\n", name, value, unit, ratio);
	if (num_results == RESULTS_MAX)
		return;
	snprintf(results[num_results].name, sizeof(results[0].name), "%s", name);
	results[num_results++].ratio = ratio;
}

/* "cache_write" -> "cache_write_hnd_runs_row256_n16_threads2" */
static void name_of(char *name, size_t size, const char *stem,
                    const struct bench_task *task, bool of_pages)
{
	int at = snprintf(name, size, "%s", stem);

	if (task->layout == QUIRE_HND)
		at += snprintf(name + at, size - (size_t)at, "_hnd");
	if (!of_pages)
		at += snprintf(name + at, size - (size_t)at, "_%s",
		               task->in_runs ? "runs" : "scattered");
	if (task->row_bytes != USUAL_ROW_BYTES)
		at += snprintf(name + at, size - (size_t)at, "_row%lld",
		               (long long)task->row_bytes);
	if (task->n != (of_pages ? USUAL_PAGES : USUAL_TOKENS))
		at += snprintf(name + at, size - (size_t)at, "_n%lld",
		               (long long)task->n);
	if (task->threads > 1)
		snprintf(name + at, size - (size_t)at, "_threads%d", task->threads);
}

/* ns[way][round] */
static void print_line(const struct line *line, const struct bench_task *task,
                       bool of_pages, double ns[][ROUNDS_MAX])
{
	double bytes = (double)bench_move_bytes(task, of_pages);
	double speeds[ROUNDS_MAX];
	double ratios[ROUNDS_MAX];
	char name[80];

	for (int r = 0; r < rounds; r++) {
		double base = INFINITY;

		for (int way = 0; way < BENCH_WAYS; way++)
			if ((line->base & WAY(way)) && ns[way][r] < base)
				base = ns[way][r];
		speeds[r] = bytes / ns[line->way][r];
		ratios[r] = base / ns[line->way][r];
	}
	name_of(name, sizeof(name), line->name, task, of_pages);
	note(name, median(speeds), "GB/s", median(ratios));
}

static void measure(struct bench *bench, const struct line *lines,
                    const struct bench_task *task)
{
	static double ns[BENCH_WAYS][ROUNDS_MAX];
	bool of_pages = lines == page_lines;
	int32_t ways[BENCH_WAYS];
	unsigned used = 0;
	int num = 0;

	if (!bench_prepare(bench, task, of_pages))
		return;
	for (const struct line *line = lines; line->name != NULL; line++)
		used |= WAY(line->way) | line->base;
	for (int way = 0; way < BENCH_WAYS; way++)
		if (used & WAY(way))
			ways[num++] = way;
	for (int r = -1; r < rounds; r++) {
		random_shuffle(&order_seed, ways, num);
		for (int i = 0; i < num; i++) {
			double sample = bench_sample(bench, (enum bench_way)ways[i]);

			/* The first round finds pages and threads asleep. */
			if (r >= 0)
				ns[ways[i]][r] = sample;
		}
	}
	for (const struct line *line = lines; line->name != NULL; line++)
		print_line(line, task, of_pages, ns);
}

static void measure_tokens(struct bench *bench, const struct bench_task *task)
{
	static const int64_t counts[] = {1, 16, 256, USUAL_TOKENS};

	for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
		for (int in_runs = 0; in_runs < 2; in_runs++) {
			struct bench_task one = *task;

			one.n = counts[c];
			one.in_runs = in_runs;
			measure(bench, write_lines, &one);
			measure(bench, read_lines, &one);
		}
	}
}

static void measure_pages(struct bench *bench, const struct bench_task *task)
{
	static const int64_t counts[] = {1, 16, USUAL_PAGES, 1024, 4096};

	for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
		struct bench_task one = *task;

		one.n = counts[c];
		measure(bench, page_lines, &one);
	}
}

/* Bars speak of the usual rows, moved by one thread. */
static void measure_usual(struct bench *bench)
{
	struct bench_task task = {
		.layout = QUIRE_NHD,
		.row_bytes = USUAL_ROW_BYTES,
		.threads = 1,
	};

	measure_tokens(bench, &task);
	measure_pages(bench, &task);
}

static void measure_others(struct bench *bench)
{
	static const int64_t rows[] = {256, 1024, 4096, 16384};
	struct bench_task task = {.layout = QUIRE_NHD};

	for (task.threads = 1; task.threads <= BENCH_THREADS_MAX; task.threads++) {
		for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
			task.row_bytes = rows[r];
			measure_tokens(bench, &task);
			measure_pages(bench, &task);
		}
		task.row_bytes = USUAL_ROW_BYTES;
		task.layout = QUIRE_HND;
		measure_tokens(bench, &task);
		task.layout = QUIRE_NHD;
	}
	task.threads = BENCH_THREADS_MAX;
	measure_tokens(bench, &task);
	measure_pages(bench, &task);
}

/*
 * What is to be reached: of the ratios of some results the least, or the greatest where
 * the bar is a bound from above.
 */
static const struct bar {
	const char *what;
	const char *names[3];
	double limit;
	bool at_least;
} bars[] = {
	{"token writes in runs, to one memcpy",
         {"cache_write_runs_n16", "cache_write_runs_n256", "cache_write_runs"},
         0.9,
         true},
	{"scattered token writes, to one memcpy",
         {"cache_write_scattered_n16", "cache_write_scattered_n256",
          "cache_write_scattered"},
         0.65,
         true},
	{"token reads in runs, to one memcpy",
         {"cache_read_runs_n16", "cache_read_runs_n256", "cache_read_runs"},
         0.65,
         true},
	{"scattered token reads, to one memcpy",
         {"cache_read_scattered_n16", "cache_read_scattered_n256",
          "cache_read_scattered"},
         0.45,
         true},
	{"copy_pages, to the better memcpy of the same blocks",
         {"cache_copy_pages_n16", "cache_copy_pages", "cache_copy_pages_n1024"},
         0.9,
         true},
	{"writes of f32 as bf16 in runs, to those of bf16",
         {"cache_write_f32_by_bf16_runs_n16", "cache_write_f32_by_bf16_runs_n256",
          "cache_write_f32_by_bf16_runs"},
         0.8,
         true},
	{"scattered writes of f32 as bf16, to those of bf16",
         {"cache_write_f32_by_bf16_scattered_n16",
          "cache_write_f32_by_bf16_scattered_n256", "cache_write_f32_by_bf16_scattered"},
         0.8,
         true},
	{"one token of one layer, ns above two bare row copies",
         {"cache_write_one_token_above"},
         25,
         false},
	{"a call of no tokens, ns", {"cache_write_no_tokens"}, 50, false},
};

static double result(const char *name)
{
	for (int i = 0; i < num_results; i++)
		if (strcmp(results[i].name, name) == 0)
			return results[i].ratio;
	return NAN;
}

static void print_bar(const struct bar *bar)
{
	double measured = result(bar->names[0]);
	const char *verdict = "missed";

	for (int i = 1; i < 3 && bar->names[i] != NULL; i++) {
		double other = result(bar->names[i]);

		/* A result that is not there makes the whole not one. */
		if (isnan(other) || (bar->at_least ? other < measured : other > measured))
			measured = other;
	}
	if (isnan(measured))
		verdict = "not measured";
	else if (bar->at_least ? measured >= bar->limit : measured <= bar->limit)
		verdict = "met";
	printf("bar | %s | %s %g | %.3g | %s\n", bar->what,
	       bar->at_least ? ">=" : "<=", bar->limit, measured, verdict);
}

/* Calls of one kind, and what they are compared with, in turns. */
static void measure_calls(struct bench *bench)
{
	double above[ROUNDS_MAX];
	double ratios[ROUNDS_MAX];
	double one[ROUNDS_MAX];
	double none[ROUNDS_MAX];

	for (int r = -1; r < rounds; r++) {
		double bare = bench_bare_rows_ns(bench);
		double call = bench_call_ns(bench, 1);
		double empty = bench_call_ns(bench, 0);

		if (r < 0)
			continue;
		one[r] = call;
		none[r] = empty;
		ratios[r] = bare / call;
		above[r] = call - bare;
	}
	note("cache_write_one_token", median(one), "ns", median(ratios));
	note("cache_write_one_token_above", median(above), "ns", median(above));
	note("cache_write_no_tokens", median(none), "ns", median(none));
	for (int r = 0; r < rounds; r++)
		one[r] = bench_round_trip_ns(bench);
	note("device_round_trip", median(one), "ns", 1);
}

int main(int argc, char **argv)
{
	bool quick = argc == 2 && strcmp(argv[1], "--quick") == 0;
	struct bench *bench;

	if (argc > 2 || (argc == 2 && !quick)) {
		fprintf(stderr, "usage: bench_cache [--quick]\n");
		return EXIT_FAILURE;
	}
	if (quick)
		rounds = 7;
	bench = bench_new();
	if (bench == NULL) {
		fprintf(stderr, "bench_cache: no memory\n");
		return 77;
	}
	printf("# name value unit ratio\n");
	measure_usual(bench);
	measure_calls(bench);
	if (!quick)
		measure_others(bench);
	printf("# what | bar | measured\n");
	for (size_t i = 0; i < sizeof(bars) / sizeof(bars[0]); i++)
		print_bar(&bars[i]);
	return bench_end(bench) ? EXIT_SUCCESS : EXIT_FAILURE;
}
