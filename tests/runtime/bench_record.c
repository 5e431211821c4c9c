/* SPDX-License-Identifier: MIT */
/*
 * What a recording costs, side by side with the same runtime without one: one line `name
 * value unit ratio` per case.
 *
 *   record_planner_B    one decode step of B rows with 64 pages each (page size 16):
 *                       planner time from admit to push, mean over 16 steps
 *   record_client_B     the same of the client: the call of submit, with nobody else at
 *                       the lock
 *   record_executor_B   the same of the executor: issue of a step without work on
 *                       cpu:inline, uploads included, mean over 16 steps; it digests the
 *                       plans
 *   record_lines        what the recording's thread makes of it: bytes of lines per
 *                       second, while it has some to make
 */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PAGE_SIZE     16
#define PAGES_PER_ROW 64
#define ROUNDS        41
#define STEPS         16 /* of one round: every row crosses a page once */

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values)
{
	qsort(values, ROUNDS, sizeof(*values), compare);
	return values[ROUNDS / 2];
}

struct cost {
	double client_ns;
	double planner_ns;
	double executor_ns;
};

/* A runtime, and its costs in each round. */
struct side {
	struct fixture f;
	struct quire_segment *segments;
	double client[ROUNDS];
	double planner[ROUNDS];
	double executor[ROUNDS];
};

static enum quire_status count_bytes(void *argument, const void *bytes, size_t n)
{
	(void)bytes;
	*(int64_t *)argument += (int64_t)n;
	return QUIRE_OK;
}

static void side_begin(struct side *side, int32_t batch, int64_t *bytes)
{
	struct quire_record_config config;

	fixture_begin(&side->f, "cpu:inline", (int64_t)batch * (PAGES_PER_ROW + 4),
	              PAGE_SIZE);
	side->f.config.rows_max = batch;
	side->f.config.requests_max = batch;
	fixture_create(&side->f);
	side->segments = calloc((size_t)batch, sizeof(*side->segments));
	if (bytes == NULL)
		return;
	quire_record_config_init(&config);
	config.flush_ns = 1000000; /* its thread is at work all the time */
	config.write = count_bytes;
	config.write_argument = bytes;
	must(quire_runtime_record_to(side->f.runtime, &config, NULL) == QUIRE_OK);
}

static void side_end(struct side *side)
{
	free(side->segments);
	fixture_end(&side->f);
}

/* An engine gives its recording time; steps that do nothing come faster than lines. */
static void rest(struct fixture *f)
{
	struct quire_record_status status;

	do {
		if (quire_runtime_record_status(f->runtime, &status) != QUIRE_OK)
			return;
		must(status.active);
	} while (status.buffered_bytes > 0);
}

/* A step, its planner's time by the counters, the others' by the clock. */
static struct cost run_step(struct fixture *f, const struct quire_step *step)
{
	int64_t before = stats_of(f).planner_busy_ns, start;
	struct cost cost;
	uint64_t ticket;

	start = now_ns();
	must(quire_runtime_submit(f->runtime, step, &ticket) == QUIRE_OK);
	cost.client_ns = (double)(now_ns() - start);
	while (quire_planner_poll(f->runtime))
		continue;
	cost.planner_ns = (double)(stats_of(f).planner_busy_ns - before);
	start = now_ns();
	while (quire_executor_poll(f->runtime))
		continue;
	cost.executor_ns = (double)(now_ns() - start);
	must(outcome_of(f, ticket).refusal.status == QUIRE_OK);
	return cost;
}

static void run_round(struct side *side, int32_t batch, int32_t round)
{
	struct fixture *f = &side->f;
	const struct quire_step step = {.segments = side->segments,
	                                .num_segments = batch};

	for (int32_t i = 0; i < batch; i++) {
		must(open_now(f, (uint64_t)i) == QUIRE_OK);
		must(extend_now(f, (uint64_t)i, NULL,
		                (PAGES_PER_ROW - 1) * PAGE_SIZE + i % PAGE_SIZE, 0)
		             .refusal.status == QUIRE_OK);
	}
	rest(f);
	for (int32_t s = 0; s < STEPS; s++) {
		struct cost cost;

		if (s % 8 == 0) /* rows in changed order */
			for (int32_t i = 0; i < batch; i++)
				side->segments[i] = (struct quire_segment){
					.request =
						(uint64_t)((i + 7 * (round + s)) % batch),
					.span = 1,
					.at = QUIRE_AT_ANY};
		cost = run_step(f, &step);
		side->client[round] += cost.client_ns / STEPS;
		side->planner[round] += cost.planner_ns / STEPS;
		side->executor[round] += cost.executor_ns / STEPS;
	}
	for (int32_t i = 0; i < batch; i++)
		must(close_now(f, (uint64_t)i) == QUIRE_OK);
	rest(f);
}

static void print_ratio(const char *name, int32_t batch, double *with, double *without)
{
	double ratio[ROUNDS];

	for (int i = 0; i < ROUNDS; i++)
		ratio[i] = with[i] / without[i];
	printf("%s_%d %.2f us %.3f\n", name, batch, median(with) / 1000, median(ratio));
}

static void bench_decode(int32_t batch)
{
	struct side *with = calloc(1, sizeof(*with));
	struct side *without = calloc(1, sizeof(*without));
	int64_t bytes = 0;

	side_begin(with, batch, &bytes);
	side_begin(without, batch, NULL);
	for (int32_t round = 0; round < ROUNDS; round++) {
		run_round(round % 2 == 0 ? with : without, batch, round);
		run_round(round % 2 == 0 ? without : with, batch, round);
	}
	print_ratio("record_planner", batch, with->planner, without->planner);
	print_ratio("record_client", batch, with->client, without->client);
	print_ratio("record_executor", batch, with->executor, without->executor);
	side_end(with);
	side_end(without);
	printf("record_lines_%d %.1f MB 1\n", batch, (double)bytes / 1e6);
	free(without);
	free(with);
}

int main(void)
{
	bench_decode(16);
	bench_decode(256);
	bench_decode(1024);
	return 0;
}
