/* SPDX-License-Identifier: MIT */
/*
 * take + free pairs of n pages against a ring under a mutex that makes the same checks,
 * on one thread, with an idle second thread alive (otherwise the C library leaves the
 * lock's atomics out).  Both run in turns; value is the pool's median, ratio the median
 * of the turns' ratios.
 */
#include "config.h"

#include "tests/alloc/random.h"

#include <quire/alloc/pool.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PAGES           65536
#define TURNS           15
#define TURN_PAGES      (1 << 20)
#define TURN_PAIRS_MOST (1 << 18)
#define BATCH_MOST      1024

/* Ids in a ring, and a byte per page that says whether it is out. */
struct mutex_ring {
	pthread_mutex_t lock;
	uint32_t head, count;
	int32_t ids[PAGES];
	uint8_t out[PAGES];
};

static struct mutex_ring ring;
static struct quire_pool *pool;

static void ring_copy_out(int32_t *pages, uint32_t n)
{
	uint32_t first = PAGES - ring.head < n ? PAGES - ring.head : n;

	memcpy(pages, &ring.ids[ring.head], first * sizeof(*pages));
	memcpy(pages + first, ring.ids, (n - first) * sizeof(*pages));
}

static __attribute__((noinline)) bool ring_take(uint32_t n, int32_t *pages)
{
	bool fits;

	pthread_mutex_lock(&ring.lock);
	fits = n <= ring.count;
	if (fits) {
		ring_copy_out(pages, n);
		ring.head = (ring.head + n) % PAGES;
		ring.count -= n;
		for (uint32_t i = 0; i < n; i++)
			ring.out[pages[i]] = 1;
	}
	pthread_mutex_unlock(&ring.lock);
	return fits;
}

/* The place of the first page that is bad, with all undone, or n. */
static uint32_t ring_mark(const int32_t *pages, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n && (uint32_t)pages[i] < PAGES && ring.out[pages[i]]; i++)
		ring.out[pages[i]] = 0;
	if (i < n)
		for (uint32_t k = 0; k < i; k++)
			ring.out[pages[k]] = 1;
	return i;
}

static __attribute__((noinline)) bool ring_give(const int32_t *pages, uint32_t n)
{
	uint32_t tail, first;
	bool good;

	pthread_mutex_lock(&ring.lock);
	good = ring_mark(pages, n) == n;
	if (good) {
		tail = (ring.head + ring.count) % PAGES;
		first = PAGES - tail < n ? PAGES - tail : n;
		memcpy(&ring.ids[tail], pages, first * sizeof(*pages));
		memcpy(ring.ids, pages + first, (n - first) * sizeof(*pages));
		ring.count += n;
	}
	pthread_mutex_unlock(&ring.lock);
	return good;
}

static void must(bool done)
{
	if (!done)
		abort();
}

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double pool_turn(int32_t n, int pairs)
{
	int32_t pages[BATCH_MOST];
	double start = now_ns();

	for (int i = 0; i < pairs; i++) {
		must(quire_pool_try_allocate(pool, n, pages));
		must(quire_pool_free(pool, pages, n, NULL) == QUIRE_OK);
	}
	return (now_ns() - start) / pairs;
}

static double ring_turn(int32_t n, int pairs)
{
	int32_t pages[BATCH_MOST];
	double start = now_ns();

	for (int i = 0; i < pairs; i++) {
		must(ring_take((uint32_t)n, pages));
		must(ring_give(pages, (uint32_t)n));
	}
	return (now_ns() - start) / pairs;
}

/* Both FIFOs in one and the same random order. */
static void scramble(uint64_t seed)
{
	int32_t *pages = malloc(PAGES * sizeof(*pages));

	must(pages && quire_pool_try_allocate(pool, PAGES, pages));
	random_shuffle(&seed, pages, PAGES);
	for (int32_t i = 0; i < PAGES; i += 64)
		must(quire_pool_free(pool, &pages[i], 64, NULL) == QUIRE_OK);
	pthread_mutex_init(&ring.lock, NULL);
	ring.count = PAGES;
	memcpy(ring.ids, pages, PAGES * sizeof(*pages));
	free(pages);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values)
{
	qsort(values, TURNS, sizeof(*values), by_value);
	return values[TURNS / 2];
}

static void bench_pairs(int32_t n)
{
	int pairs = TURN_PAGES / n < TURN_PAIRS_MOST ? TURN_PAGES / n : TURN_PAIRS_MOST;
	double ns[TURNS], ratios[TURNS];

	pool_turn(n, pairs);
	ring_turn(n, pairs);
	for (int turn = 0; turn < TURNS; turn++) {
		ns[turn] = pool_turn(n, pairs);
		ratios[turn] = ns[turn] / ring_turn(n, pairs);
	}
	printf("pool_pair_%d %.1f ns %.2f\n", (int)n, median(ns), median(ratios));
}

static void *idle(void *arg)
{
	sem_wait(arg);
	return NULL;
}

int main(void)
{
	pthread_t thread;
	sem_t end;

	sem_init(&end, 0, 0);
	must(pthread_create(&thread, NULL, idle, &end) == 0);
	must(quire_pool_create(PAGES, &pool) == QUIRE_OK);
	scramble(1);
	bench_pairs(1);
	bench_pairs(8);
	bench_pairs(64);
	bench_pairs(1024);
	quire_pool_destroy(pool);
	sem_post(&end);
	pthread_join(thread, NULL);
	sem_destroy(&end);
	return 0;
}
