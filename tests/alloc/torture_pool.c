/* SPDX-License-Identifier: MIT */
/*
 * Threads that take and free without pause.  A table says who owns each page, changed by
 * atomic exchange, so that a page in two hands is seen at once; bad batches are mixed in
 * and must be refused unchanged; at the end everything must be there, once.
 *
 *   torture_pool [--seconds N] [--ops N] [--threads N] [--pages N] [--seed S]
 *
 * --ops N: until there were N takes and N frees; --seconds N: for so long.  Without
 * threads or pages, four sizes one after the other.
 */
#include "config.h"

#include "tests/alloc/random.h"

#include <quire/alloc/pool.h>

#include <getopt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BATCH_MOST 64
#define HELD_MOST  256

struct torture {
	struct quire_pool *pool;
	int32_t threads;
	int32_t pages;
	int64_t ops; /* least takes, and frees, of each thread; 0: until stopped */
	uint64_t seed;
	atomic_bool stop;
	atomic_int *owner; /* 0, or 1 + the thread that has the page */
	int64_t *uses;     /* not atomic: the pool must order one owner before the next */
};

struct worker {
	struct torture *torture;
	int32_t id;
	uint64_t seed;
	int64_t takes, frees, refused, bad;
	int64_t pages_taken, pages_freed;
	int32_t num_held;
	int32_t held[HELD_MOST];
	pthread_t thread;
};

static void fail(const struct torture *torture, const char *what, int64_t number)
{
	fprintf(stderr, "torture_pool: %s (%lld), seed %llu\n", what, (long long)number,
	        (unsigned long long)torture->seed);
	abort();
}

static void take(struct worker *worker)
{
	struct torture *torture = worker->torture;
	int32_t most = torture->pages < BATCH_MOST ? torture->pages : BATCH_MOST;
	int32_t n = random_in(&worker->seed, 1, random_in(&worker->seed, 1, most));
	int32_t *pages = &worker->held[worker->num_held];

	if (n > HELD_MOST - worker->num_held)
		return;
	if (!quire_pool_try_allocate(torture->pool, n, pages)) {
		worker->refused++;
		return;
	}
	worker->takes++;
	worker->pages_taken += n;
	worker->num_held += n;
	for (int32_t i = 0; i < n; i++) {
		if (pages[i] < 0 || pages[i] >= torture->pages)
			fail(torture, "a page out of range was handed out", pages[i]);
		/* Relaxed: the table must not order what the pool should. */
		if (atomic_exchange_explicit(&torture->owner[pages[i]], 1 + worker->id,
		                             memory_order_relaxed))
			fail(torture, "a page was handed out twice", pages[i]);
		torture->uses[pages[i]]++;
	}
}

/* A batch of own pages with one place spoilt; none of them may be given back. */
static void free_badly(struct worker *worker, const int32_t *batch, int32_t n)
{
	struct torture *torture = worker->torture;
	int32_t at = random_in(&worker->seed, 0, n - 1);
	int32_t pages[BATCH_MOST];
	struct quire_refusal refusal;
	enum quire_status expected = QUIRE_INVALID;

	memcpy(pages, batch, (size_t)n * sizeof(*pages));
	if (at > 0 && random_in(&worker->seed, 0, 1)) {
		pages[at] = pages[random_in(&worker->seed, 0, at - 1)];
		expected = QUIRE_NOT_OWNED;
	} else {
		pages[at] = random_in(&worker->seed, 0, 1) ? torture->pages : -1;
	}
	if (quire_pool_free(torture->pool, pages, n, &refusal) != expected)
		fail(torture, "a bad batch was not refused as it should be", expected);
	if (refusal.index != at)
		fail(torture, "a refusal names another place", refusal.index);
	worker->bad++;
}

static void give(struct worker *worker)
{
	struct torture *torture = worker->torture;
	int32_t most = worker->num_held < BATCH_MOST ? worker->num_held : BATCH_MOST;
	int32_t n, *pages;

	if (most == 0)
		return;
	n = random_in(&worker->seed, 1, random_in(&worker->seed, 1, most));
	random_shuffle(&worker->seed, worker->held, worker->num_held);
	pages = &worker->held[worker->num_held - n];
	if (random_in(&worker->seed, 0, 7) == 0)
		free_badly(worker, pages, n);
	for (int32_t i = 0; i < n; i++) {
		torture->uses[pages[i]]++;
		/* Relaxed: as in take(). */
		if (atomic_exchange_explicit(&torture->owner[pages[i]], 0,
		                             memory_order_relaxed) != 1 + worker->id)
			fail(torture, "a page has another owner", pages[i]);
	}
	if (quire_pool_free(torture->pool, pages, n, NULL) != QUIRE_OK)
		fail(torture, "a good batch was refused", n);
	worker->frees++;
	worker->pages_freed += n;
	worker->num_held -= n;
}

static void *work(void *arg)
{
	struct worker *worker = arg;
	struct torture *torture = worker->torture;

	/* Relaxed: a flag, nothing follows from it. */
	while (!atomic_load_explicit(&torture->stop, memory_order_relaxed) &&
	       (torture->ops == 0 || worker->takes < torture->ops ||
	        worker->frees < torture->ops)) {
		int32_t count = quire_pool_num_free(torture->pool);

		if (count < 0 || count > torture->pages)
			fail(torture, "a count out of range", count);
		if (random_in(&worker->seed, 0, 1))
			take(worker);
		else
			give(worker);
	}
	while (worker->num_held)
		give(worker);
	return NULL;
}

/* Everything is back: the walk is whole, and a take of all has every page once. */
static void drain(struct torture *torture)
{
	int32_t *pages = calloc((size_t)torture->pages, sizeof(*pages));
	struct quire_refusal refusal;

	if (!pages)
		fail(torture, "out of memory", 0);
	if (quire_pool_check(torture->pool, NULL, &refusal))
		fail(torture, refusal.what, refusal.page);
	if (quire_pool_num_free(torture->pool) != torture->pages)
		fail(torture, "pages are missing", quire_pool_num_free(torture->pool));
	if (quire_pool_allocate(torture->pool, torture->pages, pages, NULL))
		fail(torture, "the last take was refused", torture->pages);
	for (int32_t i = 0; i < torture->pages; i++) {
		if (atomic_exchange(&torture->owner[pages[i]], 1))
			fail(torture, "a page is there twice", pages[i]);
	}
	free(pages);
}

static void report(const struct torture *torture, const struct worker *workers)
{
	int64_t takes = 0, frees = 0, refused = 0, bad = 0, taken = 0, freed = 0,
		uses = 0;

	for (int32_t t = 0; t < torture->threads; t++) {
		takes += workers[t].takes;
		frees += workers[t].frees;
		refused += workers[t].refused;
		bad += workers[t].bad;
		taken += workers[t].pages_taken;
		freed += workers[t].pages_freed;
	}
	for (int32_t p = 0; p < torture->pages; p++)
		uses += torture->uses[p];
	if (taken != freed)
		fail(torture, "taken and freed pages differ", taken - freed);
	if (uses != taken + freed)
		fail(torture, "uses were lost between two owners", uses - taken - freed);
	printf("torture_pool: %d threads, %d pages: %lld takes, %lld frees, %lld "
	       "refused, "
	       "%lld bad batches, %lld pages, seed %llu\n",
	       torture->threads, torture->pages, (long long)takes, (long long)frees,
	       (long long)refused, (long long)bad, (long long)taken,
	       (unsigned long long)torture->seed);
}

static void torture_run(struct torture *torture, int64_t seconds)
{
	struct worker *workers = calloc((size_t)torture->threads, sizeof(*workers));

	torture->owner = calloc((size_t)torture->pages, sizeof(*torture->owner));
	torture->uses = calloc((size_t)torture->pages, sizeof(*torture->uses));
	torture->stop = false;
	if (!workers || !torture->owner || !torture->uses ||
	    quire_pool_create(torture->pages, &torture->pool))
		fail(torture, "out of memory", torture->pages);
	for (int32_t t = 0; t < torture->threads; t++) {
		uint64_t seed = torture->seed + (uint64_t)t;

		workers[t] = (struct worker){
			.torture = torture, .id = t, .seed = random_next(&seed)};
		if (pthread_create(&workers[t].thread, NULL, work, &workers[t]))
			fail(torture, "a thread could not be made", t);
	}
	if (seconds)
		nanosleep(&(struct timespec){.tv_sec = seconds}, NULL);
	/* Relaxed: as in work(). */
	atomic_store_explicit(&torture->stop, seconds > 0, memory_order_relaxed);
	for (int32_t t = 0; t < torture->threads; t++)
		pthread_join(workers[t].thread, NULL);
	drain(torture);
	report(torture, workers);
	quire_pool_destroy(torture->pool);
	free(torture->uses);
	free(torture->owner);
	free(workers);
}

/* A number of at least 1, or the program ends with a word. */
static int64_t number(const char *text, int64_t most)
{
	char *end;
	long long value = strtoll(text, &end, 0);

	if (*text && !*end && value >= 1 && value <= most)
		return value;
	fprintf(stderr, "torture_pool: %s is not a number from 1 to %lld\n", text,
	        (long long)most);
	exit(2);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"seconds", required_argument, NULL, 's'},
		{"ops", required_argument, NULL, 'o'},
		{"threads", required_argument, NULL, 't'},
		{"pages", required_argument, NULL, 'p'},
		{"seed", required_argument, NULL, 'r'},
		{NULL, 0, NULL, 0},
	};
	/* Unless told: many threads on few pages, few on many, and a size between. */
	static const int32_t sizes[][2] = {{16, 16}, {4, 64}, {8, 1000}, {3, 100000}};
	int64_t seconds = 0, ops = 0, threads = 0, pages = 0;
	struct torture torture = {0};
	struct timespec now;
	int option;

	clock_gettime(CLOCK_REALTIME, &now);
	torture.seed = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 's')
			seconds = number(optarg, 1 << 20);
		else if (option == 'o')
			ops = number(optarg, INT64_MAX);
		else if (option == 't')
			threads = number(optarg, 1 << 10);
		else if (option == 'p')
			pages = number(optarg, QUIRE_PAGES_MAX);
		else if (option == 'r')
			torture.seed = strtoull(optarg, NULL, 0);
		else
			return 2;
	}
	if (!seconds && !ops)
		seconds = 10;
	for (int k = 0; k < (threads || pages ? 1 : 4); k++) {
		torture.threads = threads ? (int32_t)threads : sizes[k][0];
		torture.pages = pages ? (int32_t)pages : sizes[k][1];
		torture.ops = (ops + torture.threads - 1) / torture.threads;
		torture_run(&torture, seconds);
	}
	return 0;
}
