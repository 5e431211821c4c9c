/* SPDX-License-Identifier: MIT */
/*
 * Planning against a bare loop, side by side: one line `name value unit ratio` per case.
 *
 *   decode_B   one decode step of B rows with 64 pages each (page size 16): planner time
 *   from
 *              admit to push, mean over 16 steps so that rows cross pages; against the
 *              same tables filled by a plain loop without checks
 *   reset      giving up 64 pages of a request, and closing it
 *
 * And how soon an idle runtime moves, against its bars:
 *
 *   submit_to_issue_awake   from a submit to the step's function on the executor, whose
 *                           threads look for work all the time; of 20 us
 *   submit_to_issue_asleep  the same, of threads that sleep; of 100 us
 *   executor_waiting        share of the time in which the executor has neither an entry
 *                           nor a step on the device: 64 rows, 100 us a step, step N + 2
 *                           submitted when N has retired; of 1 %
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

static double median(double *values, int n)
{
	qsort(values, (size_t)n, sizeof(*values), compare);
	return values[n / 2];
}

/* The floor: request state in plain arrays, tables filled without a check. */
struct bare {
	int32_t batch;
	int32_t *pages;  /* [batch][PAGES_PER_ROW + 4] */
	int32_t *length; /* [batch] */
	int32_t next_page;
	int32_t *indptr, *indices, *last, *slot_page, *slot_offset, *position;
};

static void bare_begin(struct bare *b, int32_t batch)
{
	size_t n = (size_t)batch * (PAGES_PER_ROW + 4);

	b->batch = batch;
	b->next_page = 0;
	b->pages = malloc(n * 4);
	b->indices = malloc(n * 4);
	b->length = malloc((size_t)batch * 4);
	b->indptr = malloc(((size_t)batch + 1) * 4);
	b->last = malloc((size_t)batch * 4);
	b->slot_page = malloc((size_t)batch * 4);
	b->slot_offset = malloc((size_t)batch * 4);
	b->position = malloc((size_t)batch * 4);
	for (int32_t i = 0; i < batch; i++) {
		b->length[i] = (PAGES_PER_ROW - 1) * PAGE_SIZE + i % PAGE_SIZE;
		for (int32_t p = 0; p < PAGES_PER_ROW + 4; p++)
			b->pages[i * (PAGES_PER_ROW + 4) + p] = b->next_page++;
	}
}

static void bare_step(struct bare *b)
{
	int32_t at = 0;

	b->indptr[0] = 0;
	for (int32_t i = 0; i < b->batch; i++) {
		int32_t length = ++b->length[i], n = (length + PAGE_SIZE - 1) / PAGE_SIZE;
		const int32_t *pages = &b->pages[i * (PAGES_PER_ROW + 4)];

		memcpy(b->indices + at, pages, (size_t)n * 4);
		at += n;
		b->indptr[i + 1] = at;
		b->last[i] = (length - 1) % PAGE_SIZE + 1;
		b->slot_page[i] = pages[n - 1];
		b->slot_offset[i] = b->last[i] - 1;
		b->position[i] = length - 1;
	}
}

static void bare_back(struct bare *b)
{
	for (int32_t i = 0; i < b->batch; i++)
		b->length[i] -= STEPS;
}

static void bare_end(struct bare *b)
{
	free(b->position);
	free(b->slot_offset);
	free(b->slot_page);
	free(b->last);
	free(b->indptr);
	free(b->length);
	free(b->indices);
	free(b->pages);
}

static void open_batch(struct fixture *f, int32_t batch)
{
	uint64_t ticket;

	for (int32_t i = 0; i < batch; i++) {
		struct quire_segment segment = {.request = (uint64_t)i,
		                                .span = (PAGES_PER_ROW - 1) * PAGE_SIZE +
		                                        i % PAGE_SIZE};
		const struct quire_step step = {.segments = &segment, .num_segments = 1};

		must(quire_runtime_open(f->runtime, (uint64_t)i, &ticket) == QUIRE_OK);
		must(submit_now(f, &step).refusal.status == QUIRE_OK);
	}
}

/* Nanoseconds of planner time of one decode step. */
static double quire_round(struct fixture *f, struct quire_segment *segments,
                          int32_t batch, int32_t round)
{
	const struct quire_step step = {.segments = segments, .num_segments = batch};
	int64_t before = stats_of(f).planner_busy_ns;

	for (int32_t s = 0; s < STEPS; s++) {
		if (s % 8 == 0) /* rows in changed order */
			for (int32_t i = 0; i < batch; i++)
				segments[i] = (struct quire_segment){
					.request =
						(uint64_t)((i + 7 * (round + s)) % batch),
					.span = 1,
					.at = QUIRE_AT_ANY};
		must(submit_now(f, &step).refusal.status == QUIRE_OK);
	}
	return (double)(stats_of(f).planner_busy_ns - before) / STEPS;
}

static void bench_decode(int32_t batch)
{
	struct fixture f;
	struct bare bare;
	struct quire_segment *segments = calloc((size_t)batch, sizeof(*segments));
	double ours[ROUNDS], floor[ROUNDS], ratio[ROUNDS];
	uint64_t ticket;

	fixture_begin(&f, "cpu:inline", (int64_t)batch * (PAGES_PER_ROW + 4), PAGE_SIZE);
	f.config.rows_max = batch;
	f.config.requests_max = batch;
	fixture_create(&f);
	bare_begin(&bare, batch);
	for (int32_t round = 0; round < ROUNDS; round++) {
		int64_t start;

		open_batch(&f, batch);
		ours[round] = quire_round(&f, segments, batch, round);
		start = now_ns();
		for (int32_t s = 0; s < STEPS; s++)
			bare_step(&bare);
		floor[round] = (double)(now_ns() - start) / STEPS;
		ratio[round] = ours[round] / floor[round];
		bare_back(&bare);
		for (int32_t i = 0; i < batch; i++) {
			must(quire_runtime_close(f.runtime, (uint64_t)i, &ticket) ==
			     QUIRE_OK);
			settle(&f);
		}
	}
	printf("decode_plan_%d_bare %.2f us 1\n", batch, median(floor, ROUNDS) / 1000);
	printf("decode_plan_%d %.2f us %.2f\n", batch, median(ours, ROUNDS) / 1000,
	       median(ratio, ROUNDS));
	bare_end(&bare);
	free(segments);
	fixture_end(&f);
}

/* ------------------------------------------------------------------ block tables */

#define BLOCK_ROWS  256
#define BLOCK_STEPS 64
#define BLOCK_FIRST 4 /* steps that write whole rows: a slot has not had these lists */

struct block_cost {
	double planner_us;
	double upload_us;
};

/* Steps of rows with @pages pages each, lengths staggered, in one order. */
static struct block_cost block_round(struct fixture *f, int32_t pages)
{
	struct quire_segment segments[BLOCK_ROWS];
	const struct quire_step step = {.segments = segments, .num_segments = BLOCK_ROWS};
	int64_t planner = 0, wall = 0;

	for (int32_t i = 0; i < BLOCK_ROWS; i++) {
		must(open_now(f, (uint64_t)i) == QUIRE_OK);
		must(extend_now(f, (uint64_t)i, NULL,
		                pages * PAGE_SIZE - BLOCK_STEPS - BLOCK_FIRST + i % 16, 0)
		             .refusal.status == QUIRE_OK);
		segments[i] = (struct quire_segment){
			.request = (uint64_t)i, .span = 1, .at = QUIRE_AT_ANY};
	}
	for (int32_t s = 0; s < BLOCK_FIRST; s++)
		must(submit_now(f, &step).refusal.status == QUIRE_OK);
	for (int32_t s = 0; s < BLOCK_STEPS; s++) {
		int64_t before = stats_of(f).planner_busy_ns, start_ns;
		uint64_t ticket = submit(f, &step);

		start_ns = now_ns();
		settle(f);
		wall += now_ns() - start_ns;
		planner += stats_of(f).planner_busy_ns - before;
		must(outcome_of(f, ticket).refusal.status == QUIRE_OK);
	}
	for (uint64_t i = 0; i < BLOCK_ROWS; i++)
		must(close_now(f, i) == QUIRE_OK);
	return (struct block_cost){
		.planner_us = (double)planner / BLOCK_STEPS / 1000,
		.upload_us = (double)(wall - planner) / BLOCK_STEPS / 1000,
	};
}

static void begin_block(struct fixture *f, int32_t pages)
{
	fixture_begin(f, "cpu:inline", (int64_t)BLOCK_ROWS * (pages + 1), PAGE_SIZE);
	f->config.rows_max = f->config.requests_max = BLOCK_ROWS;
	f->config.tables_max = 1;
	f->config.tokens_max = PAGE_SIZE * (int32_t)(pages + 1);
	f->config.block_width = pages + 1;
	f->config.table_pages_max = (int64_t)BLOCK_ROWS * (pages + 1);
	f->config.kv_indices = false;
	fixture_create(f);
}

static void bench_block(void)
{
	enum { SHORT = 64, LONG = 4096, BLOCK_ROUNDS = 9 };
	double planner[2][BLOCK_ROUNDS], upload[2][BLOCK_ROUNDS];
	double planner_ratio[BLOCK_ROUNDS], upload_ratio[BLOCK_ROUNDS];
	struct fixture f[2];

	begin_block(&f[0], SHORT);
	begin_block(&f[1], LONG);
	for (int32_t round = 0; round < BLOCK_ROUNDS; round++) {
		for (int32_t k = 0; k < 2; k++) {
			struct block_cost cost =
				block_round(&f[k], k == 0 ? SHORT : LONG);

			planner[k][round] = cost.planner_us;
			upload[k][round] = cost.upload_us;
		}
		planner_ratio[round] = planner[1][round] / planner[0][round];
		upload_ratio[round] = upload[1][round] / upload[0][round];
	}
	printf("decode_block_64_plan %.2f us 1\n", median(planner[0], BLOCK_ROUNDS));
	printf("decode_block_4096_plan %.2f us %.2f\n", median(planner[1], BLOCK_ROUNDS),
	       median(planner_ratio, BLOCK_ROUNDS));
	printf("decode_block_64_upload %.2f us 1\n", median(upload[0], BLOCK_ROUNDS));
	printf("decode_block_4096_upload %.2f us %.2f\n", median(upload[1], BLOCK_ROUNDS),
	       median(upload_ratio, BLOCK_ROUNDS));
	fixture_end(&f[1]);
	fixture_end(&f[0]);
}

/* ------------------------------------------------------------------ prefill */

#define PREFILL_ROWS   8
#define PREFILL_TOKENS 512

static int32_t token_page[PREFILL_ROWS * PREFILL_TOKENS];
static int32_t token_offset[PREFILL_ROWS * PREFILL_TOKENS];
static int32_t token_position[PREFILL_ROWS * PREFILL_TOKENS];

static void bare_prefill(void)
{
	for (int32_t r = 0; r < PREFILL_ROWS; r++)
		for (int32_t g = 0; g < PREFILL_TOKENS; g++) {
			int32_t at = r * PREFILL_TOKENS + g;

			token_page[at] = r * (PREFILL_TOKENS / PAGE_SIZE) + g / PAGE_SIZE;
			token_offset[at] = g % PAGE_SIZE;
			token_position[at] = g;
		}
	__asm__ volatile("" ::"r"(token_page), "r"(token_offset), "r"(token_position)
	                 : "memory");
}

static void bench_prefill(void)
{
	struct quire_segment segments[PREFILL_ROWS];
	const struct quire_step step = {.segments = segments,
	                                .num_segments = PREFILL_ROWS};
	double ours[ROUNDS], floor[ROUNDS], ratio[ROUNDS];
	struct fixture f;

	fixture_start(&f, PREFILL_ROWS * PREFILL_TOKENS / PAGE_SIZE, PAGE_SIZE);
	for (int32_t round = 0; round < ROUNDS; round++) {
		int64_t before, start;

		for (uint64_t i = 0; i < PREFILL_ROWS; i++) {
			must(open_now(&f, i) == QUIRE_OK);
			segments[i] = (struct quire_segment){.request = i,
			                                     .span = PREFILL_TOKENS};
		}
		before = stats_of(&f).planner_busy_ns;
		must(submit_now(&f, &step).refusal.status == QUIRE_OK);
		ours[round] = (double)(stats_of(&f).planner_busy_ns - before);
		start = now_ns();
		bare_prefill();
		floor[round] = (double)(now_ns() - start);
		ratio[round] = ours[round] / floor[round];
		for (uint64_t i = 0; i < PREFILL_ROWS; i++)
			must(close_now(&f, i) == QUIRE_OK);
	}
	printf("prefill_8x512_bare %.2f us 1\n", median(floor, ROUNDS) / 1000);
	printf("prefill_8x512 %.2f us %.2f\n", median(ours, ROUNDS) / 1000,
	       median(ratio, ROUNDS));
	fixture_end(&f);
}

/* ------------------------------------------------------------------ reset */

/* The floor of a reset: the ids go to a ring. */
static double bare_reset(int32_t requests)
{
	static int32_t ring[1 << 15], lists[1 << 15];
	int64_t start = now_ns();

	for (int32_t i = 0; i < requests; i++)
		memcpy(ring + i * PAGES_PER_ROW, lists + i * PAGES_PER_ROW,
		       PAGES_PER_ROW * sizeof(*ring));
	__asm__ volatile("" ::"r"(ring) : "memory");
	return (double)(now_ns() - start) / requests;
}

static void bench_reset(void)
{
	struct fixture f;
	enum { REQUESTS = 256 };
	double per_request[ROUNDS], floor[ROUNDS], ratio[ROUNDS];
	uint64_t ticket;

	fixture_begin(&f, "cpu:inline", REQUESTS * PAGES_PER_ROW, PAGE_SIZE);
	fixture_create(&f);
	for (int32_t round = 0; round < ROUNDS; round++) {
		int64_t before;

		open_batch(&f, REQUESTS);
		before = stats_of(&f).planner_busy_ns;
		for (uint64_t i = 0; i < REQUESTS; i++) {
			must(quire_runtime_reset(f.runtime, i, NULL, false, &ticket) ==
			     QUIRE_OK);
			settle(&f);
		}
		per_request[round] =
			(double)(stats_of(&f).planner_busy_ns - before) / REQUESTS;
		floor[round] = bare_reset(REQUESTS);
		ratio[round] = per_request[round] / floor[round];
		for (uint64_t i = 0; i < REQUESTS; i++) {
			must(quire_runtime_close(f.runtime, i, &ticket) == QUIRE_OK);
			settle(&f);
		}
	}
	printf("reset_64_pages_bare %.3f us 1\n", median(floor, ROUNDS) / 1000);
	printf("reset_64_pages %.3f us %.2f\n", median(per_request, ROUNDS) / 1000,
	       median(ratio, ROUNDS));
	fixture_end(&f);
}

/* ------------------------------------------------------------------ latency */

#define SUBMITS         400
#define SUBMIT_PAUSE_NS 1000000
#define AWAKE_NS        1000000000
#define AWAKE_BAR_US    20
#define ASLEEP_BAR_US   100

static enum quire_status note_time(void *argument, const struct quire_plan *plan,
                                   struct quire_dstream *compute)
{
	(void)plan;
	(void)compute;
	*(int64_t *)argument = now_ns();
	return QUIRE_OK;
}

static void wait_for(struct fixture *f, uint64_t ticket)
{
	must(quire_runtime_wait(f->runtime, ticket, QUIRE_STAGE_RETIRED,
	                        QUIRE_NO_DEADLINE, NULL) == QUIRE_OK);
}

static void bench_latency(const char *name, int64_t spin_ns, double bar_us)
{
	const struct timespec pause = {.tv_nsec = SUBMIT_PAUSE_NS};
	const struct quire_segment segment = {.request = 1, .at = QUIRE_AT_ANY};
	int64_t issued_ns = 0;
	const struct quire_step step = {.segments = &segment,
	                                .num_segments = 1,
	                                .run = note_time,
	                                .run_argument = &issued_ns};
	static double us[SUBMITS];
	struct fixture f;
	uint64_t ticket;

	fixture_begin(&f, "cpu:inline", 64, PAGE_SIZE);
	f.config.threads = QUIRE_THREADS_LIBRARY;
	f.config.spin_ns = spin_ns;
	fixture_create(&f);
	must(quire_runtime_open(f.runtime, 1, &ticket) == QUIRE_OK);
	wait_for(&f, ticket);
	for (int i = 0; i < SUBMITS; i++) {
		int64_t start_ns;

		nanosleep(&pause, NULL);
		start_ns = now_ns();
		wait_for(&f, submit(&f, &step));
		us[i] = (double)(issued_ns - start_ns) / 1000;
	}
	printf("%s %.1f us %.2f\n", name, median(us, SUBMITS),
	       median(us, SUBMITS) / bar_us);
	fixture_end(&f);
}

/* ------------------------------------------------------------------ closed loop */

#define LOOP_ROWS    64
#define LOOP_STEPS   4000
#define LOOP_ROUNDS  5
#define LOOP_STEP_NS 100000
#define LOOP_BAR     1.0 /* per cent */

/* What a step takes on a device that is not one of the CPUs. */
static enum quire_status take_time(void *argument)
{
	const struct timespec time = {.tv_nsec = LOOP_STEP_NS};

	(void)argument;
	nanosleep(&time, NULL);
	return QUIRE_OK;
}

static enum quire_status queue_time(void *argument, const struct quire_plan *plan,
                                    struct quire_dstream *compute)
{
	(void)plan;
	return quire_dstream_call(compute, take_time, argument);
}

static double loop_share(void)
{
	struct quire_segment segments[LOOP_ROWS];
	const struct quire_step step = {
		.segments = segments, .num_segments = LOOP_ROWS, .run = queue_time};
	uint64_t tickets[LOOP_STEPS];
	struct quire_runtime_stats stats;
	struct fixture f;
	double share;

	fixture_begin(&f, "cpu", LOOP_ROWS * (LOOP_STEPS / PAGE_SIZE + 1), PAGE_SIZE);
	f.config.threads = QUIRE_THREADS_LIBRARY;
	fixture_create(&f);
	for (uint64_t i = 0; i < LOOP_ROWS; i++) {
		must(quire_runtime_open(f.runtime, i, NULL) == QUIRE_OK);
		segments[i] = (struct quire_segment){
			.request = i, .span = 1, .at = QUIRE_AT_ANY};
	}
	for (int i = 0; i < LOOP_STEPS; i++) {
		if (i >= 2)
			wait_for(&f, tickets[i - 2]);
		tickets[i] = submit(&f, &step);
	}
	wait_for(&f, tickets[LOOP_STEPS - 1]);
	stats = stats_of(&f);
	share = 100 * (double)stats.executor_wait_ns / (double)stats.executor_run_ns;
	fixture_end(&f);
	return share;
}

static void bench_loop(void)
{
	double shares[LOOP_ROUNDS];

	for (int i = 0; i < LOOP_ROUNDS; i++)
		shares[i] = loop_share();
	printf("executor_waiting %.3f %% %.2f\n", median(shares, LOOP_ROUNDS),
	       median(shares, LOOP_ROUNDS) / LOOP_BAR);
}

int main(void)
{
	bench_decode(16);
	bench_decode(64);
	bench_decode(256);
	bench_decode(1024);
	bench_block();
	bench_prefill();
	bench_reset();
	bench_latency("submit_to_issue_awake", AWAKE_NS, AWAKE_BAR_US);
	bench_latency("submit_to_issue_asleep", 0, ASLEEP_BAR_US);
	bench_loop();
	return 0;
}
