/* SPDX-License-Identifier: MIT */
/*
 * Linearizability: three threads run a few operations at once, with random stalls at the
 * labelled points of alloc/pool.c (compiled into this program with QUIRE_POOL_POINTS).
 * For every recorded history a search (Wing and Gong, 1993) looks for one order of the
 * operations that keeps real time and that the sequential FIFO would have answered in the
 * same way.
 *
 * The same search must convict a queue that is known to be wrong: a ring with a sequence
 * number per slot, whose completed free hides behind a stalled one.
 */
#include "config.h"

#include "alloc/pool_impl.h"
#include "tests/alloc/random.h"
#include "tests/run_suite.h"

#include <check.h>

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define THREADS    3
#define OPS_MOST   4
#define PAGES_MOST 20
#define HISTORIES  40000

/* Counts every start and end of an operation: one order of all these moments. */
static atomic_int_fast64_t moment;
static _Thread_local uint64_t stall_seed;

/* One time in four, let the others run for a while. */
static void stall(void)
{
	if (!stall_seed || random_in(&stall_seed, 0, 3))
		return;
	for (int32_t i = random_in(&stall_seed, 1, 6); i > 0; i--)
		sched_yield();
}

void quire_pool_point(enum quire_pool_point point)
{
	(void)point;
	stall();
}

/* The queue on trial. */
struct queue {
	bool (*take)(int32_t n, int32_t *pages_out);
	bool (*give)(const int32_t *pages, int32_t n);
	int32_t (*num_free)(void);
};

static struct quire_pool *pool;

static bool pool_take(int32_t n, int32_t *pages_out)
{
	return quire_pool_try_allocate(pool, n, pages_out);
}

static bool pool_give(const int32_t *pages, int32_t n)
{
	return quire_pool_free(pool, pages, n, NULL) == QUIRE_OK;
}

static int32_t pool_num_free(void)
{
	return quire_pool_num_free(pool);
}

static const struct queue pool_queue = {pool_take, pool_give, pool_num_free};

/* The wrong one.  A slot may be read when its sequence number says that it is written. */
static struct {
	atomic_uint head, tail;
	atomic_uint sequence[64];
	atomic_int page[64];
} ring;

static bool ring_take(int32_t n, int32_t *pages_out)
{
	unsigned head = atomic_load(&ring.head);

	do {
		for (int32_t i = 0; i < n; i++) {
			unsigned slot = (head + (unsigned)i) % 64;

			if (atomic_load(&ring.sequence[slot]) != head + (unsigned)i + 1)
				return false;
			pages_out[i] = atomic_load(&ring.page[slot]);
		}
		stall();
	} while (!atomic_compare_exchange_strong(&ring.head, &head, head + (unsigned)n));
	return true;
}

static bool ring_give(const int32_t *pages, int32_t n)
{
	unsigned tail = atomic_fetch_add(&ring.tail, (unsigned)n);

	stall();
	for (int32_t i = 0; i < n; i++) {
		unsigned slot = (tail + (unsigned)i) % 64;

		atomic_store(&ring.page[slot], pages[i]);
		atomic_store(&ring.sequence[slot], tail + (unsigned)i + 1);
	}
	return true;
}

static int32_t ring_num_free(void)
{
	return (int32_t)(atomic_load(&ring.tail) - atomic_load(&ring.head));
}

static const struct queue ring_queue = {ring_take, ring_give, ring_num_free};

struct op {
	enum { TAKE, GIVE, COUNT } verb;
	int32_t n;
	bool done; /* taken, or given back */
	int32_t count;
	int32_t pages[PAGES_MOST];
	int64_t start, end;
};

struct worker {
	int32_t num_ops;
	struct op ops[OPS_MOST];
	int32_t num_held;
	int32_t held[PAGES_MOST];
	uint64_t seed;
	pthread_t thread;
};

static struct {
	const struct queue *queue;
	int32_t num_pages;
	int histories;
	pthread_barrier_t barrier;
	struct worker workers[THREADS];
	int32_t num_free; /* before the history */
	int32_t free[PAGES_MOST];
} trial;

static void run_op(struct worker *worker, struct op *op)
{
	int32_t most;

	op->verb = random_in(&worker->seed, 0, 8) / 4;
	most = op->verb == TAKE ? trial.num_pages / 2 + 1 : worker->num_held;
	op->n = most ? random_in(&worker->seed, 1, most) : 0;
	if (op->n == 0)
		op->verb = COUNT;
	if (op->verb == GIVE) {
		random_shuffle(&worker->seed, worker->held, worker->num_held);
		worker->num_held -= op->n;
		memcpy(op->pages, &worker->held[worker->num_held],
		       (size_t)op->n * sizeof(int32_t));
	}
	op->start = atomic_fetch_add(&moment, 1);
	if (op->verb == TAKE)
		op->done = trial.queue->take(op->n, op->pages);
	else if (op->verb == GIVE)
		op->done = trial.queue->give(op->pages, op->n);
	else
		op->count = trial.queue->num_free();
	op->end = atomic_fetch_add(&moment, 1);
	if (op->verb == TAKE && op->done) {
		memcpy(&worker->held[worker->num_held], op->pages,
		       (size_t)op->n * sizeof(int32_t));
		worker->num_held += op->n;
	}
}

static void *work(void *arg)
{
	struct worker *worker = arg;

	stall_seed = worker->seed;
	for (int k = 0; k < trial.histories; k++) {
		pthread_barrier_wait(&trial.barrier);
		worker->num_ops = random_in(&worker->seed, 3, OPS_MOST);
		for (int32_t i = 0; i < worker->num_ops; i++)
			run_op(worker, &worker->ops[i]);
		pthread_barrier_wait(&trial.barrier);
	}
	return NULL;
}

/* The sequential FIFO, by value: each step of the search has its own. */
struct fifo {
	int32_t num_free;
	int32_t free[PAGES_MOST];
};

/* Whether the FIFO would have answered like this; if so it is changed accordingly. */
static bool fifo_agrees(struct fifo *fifo, const struct op *op)
{
	size_t bytes = (size_t)op->n * sizeof(int32_t);

	if (op->verb == COUNT)
		return op->count == fifo->num_free;
	if (op->verb == GIVE) {
		if (!op->done || fifo->num_free + op->n > PAGES_MOST)
			return false;
		memcpy(&fifo->free[fifo->num_free], op->pages, bytes);
		fifo->num_free += op->n;
		return true;
	}
	if (op->n > fifo->num_free)
		return !op->done;
	if (!op->done || memcmp(fifo->free, op->pages, bytes))
		return false;
	fifo->num_free -= op->n;
	memmove(fifo->free, &fifo->free[op->n], (size_t)fifo->num_free * sizeof(int32_t));
	return true;
}

/* Whether what is left of every thread's operations, from next[] on, has an order. */
static bool has_order(const struct fifo *fifo, const int32_t *next)
{
	int64_t first_end = INT64_MAX;
	int left = 0;

	for (int t = 0; t < THREADS; t++) {
		if (next[t] == trial.workers[t].num_ops)
			continue;
		left++;
		if (trial.workers[t].ops[next[t]].end < first_end)
			first_end = trial.workers[t].ops[next[t]].end;
	}
	if (left == 0)
		return true;
	for (int t = 0; t < THREADS; t++) {
		const struct op *op = &trial.workers[t].ops[next[t]];
		struct fifo after = *fifo;
		int32_t then[THREADS];

		if (next[t] == trial.workers[t].num_ops || op->start > first_end ||
		    !fifo_agrees(&after, op))
			continue;
		memcpy(then, next, sizeof(then));
		then[t]++;
		if (has_order(&after, then))
			return true;
	}
	return false;
}

/* Pairs of operations of different threads that ran at the same time. */
static int overlaps(void)
{
	int pairs = 0;

	for (int a = 0; a < THREADS; a++) {
		for (int b = a + 1; b < THREADS; b++) {
			for (int k = 0; k < OPS_MOST * OPS_MOST; k++) {
				const struct op *x = &trial.workers[a].ops[k / OPS_MOST];
				const struct op *y = &trial.workers[b].ops[k % OPS_MOST];

				pairs += k / OPS_MOST < trial.workers[a].num_ops &&
				         k % OPS_MOST < trial.workers[b].num_ops &&
				         x->start < y->end && y->start < x->end;
			}
		}
	}
	return pairs;
}

/* What is free between two histories, in order. */
static void read_fifo(void)
{
	unsigned head = atomic_load(&ring.head);

	trial.num_free = trial.queue->num_free();
	if (trial.queue == &pool_queue) {
		ck_assert_int_eq(quire_pool_check(pool, trial.free, NULL), QUIRE_OK);
		return;
	}
	for (int32_t i = 0; i < trial.num_free; i++)
		trial.free[i] = atomic_load(&ring.page[(head + (unsigned)i) % 64]);
}

/* Run the trial: how many histories have no order. */
static int convictions(const struct queue *queue, int32_t num_pages, int histories,
                       uint64_t seed, int64_t *overlaps_out)
{
	int convicted = 0;

	trial.queue = queue;
	trial.num_pages = num_pages;
	trial.histories = histories;
	pthread_barrier_init(&trial.barrier, NULL, THREADS + 1);
	for (int t = 0; t < THREADS; t++) {
		trial.workers[t] = (struct worker){.seed = random_next(&seed)};
		ck_assert_int_eq(pthread_create(&trial.workers[t].thread, NULL, work,
		                                &trial.workers[t]),
		                 0);
	}
	for (int k = 0; k < histories; k++) {
		struct fifo fifo;

		read_fifo();
		fifo.num_free = trial.num_free;
		memcpy(fifo.free, trial.free, sizeof(fifo.free));
		pthread_barrier_wait(&trial.barrier);
		pthread_barrier_wait(&trial.barrier);
		*overlaps_out += overlaps();
		convicted += !has_order(&fifo, (int32_t[THREADS]){0});
	}
	for (int t = 0; t < THREADS; t++)
		pthread_join(trial.workers[t].thread, NULL);
	pthread_barrier_destroy(&trial.barrier);
	return convicted;
}

static uint64_t new_seed(void)
{
	const char *given = getenv("QUIRE_TEST_SEED");
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return given ? strtoull(given, NULL, 0)
	             : (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

START_TEST(every_history_of_the_pool_has_a_sequential_order)
{
	static const int32_t sizes[] = {4, 5, 7, PAGES_MOST};
	int32_t num_pages = sizes[_i];
	uint64_t seed = new_seed();
	int64_t pairs = 0;

	ck_assert_int_eq(quire_pool_create(num_pages, &pool), QUIRE_OK);
	ck_assert_msg(convictions(&pool_queue, num_pages, HISTORIES / 4, seed, &pairs) ==
	                      0,
	              "a history without an order, QUIRE_TEST_SEED=%llu",
	              (unsigned long long)seed);
	ck_assert_msg(pairs > HISTORIES / 4, "the operations hardly overlap");
	quire_pool_destroy(pool);
}
END_TEST

START_TEST(the_search_convicts_a_ring_that_hides_a_completed_free)
{
	int64_t pairs = 0;

	for (int32_t p = 0; p < 8; p++)
		ring_give(&p, 1);
	ck_assert_int_gt(convictions(&ring_queue, 8, HISTORIES / 4, new_seed(), &pairs),
	                 0);
}
END_TEST

/* Two operations that overlap may go either way, two that do not may not. */
START_TEST(the_search_keeps_real_time)
{
	struct fifo fifo = {.num_free = 1, .free = {0}};

	memset(&trial, 0, sizeof(trial));
	trial.workers[0].num_ops = trial.workers[1].num_ops = 1;
	trial.workers[0].ops[0] = (struct op){.verb = TAKE, .n = 1, .start = 0, .end = 2};
	trial.workers[1].ops[0] =
		(struct op){.verb = TAKE, .n = 1, .done = true, .start = 1, .end = 3};
	ck_assert(has_order(&fifo, (int32_t[THREADS]){0}));
	trial.workers[1].ops[0].pages[0] = 1;
	ck_assert(!has_order(&fifo, (int32_t[THREADS]){0}));
	trial.workers[1].ops[0].pages[0] = 0;
	trial.workers[1].ops[0].start = 3;
	trial.workers[1].ops[0].end = 4;
	ck_assert(!has_order(&fifo, (int32_t[THREADS]){0}));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("pool, linearizability");
	TCase *tcase = tcase_create("all");

	tcase_add_test(tcase, the_search_keeps_real_time);
	tcase_add_test(tcase, the_search_convicts_a_ring_that_hides_a_completed_free);
	tcase_add_loop_test(tcase, every_history_of_the_pool_has_a_sequential_order, 0,
	                    4);
	tcase_set_timeout(tcase, 120);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
