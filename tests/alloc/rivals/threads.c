/* SPDX-License-Identifier: MIT */
/* Several threads take and give, on two cores. */
#include "config.h"

#include "tests/alloc/random.h"
#include "tests/alloc/rivals/cases.h"
#include "tests/alloc/rivals/measure.h"

#include <ck_pr.h>

#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define THREAD_PAGES 65536
#define BATCH_MOST   64
#define HELD_MOST    1024 /* of one thread; of all together less than the pool has */
#define THREADS_MAX  16
#define STEPS        4096
#define NUM_MARKS    5

_Static_assert(THREADS_MAX *HELD_MOST < THREAD_PAGES, "no take of `mixed` need fail");
_Static_assert((THREAD_PAGES & (THREAD_PAGES - 1)) == 0, "the ring's places are masked");

/* What is reported of the times of takes. */
static const struct {
	const char *name;
	double quantile;
} marks[NUM_MARKS] = {
	{"p50", 0.5}, {"p99", 0.99}, {"p999", 0.999}, {"p9999", 0.9999}, {"max", 1}};

struct worker {
	struct crew *crew;
	pthread_t thread;
	int id;
	int8_t steps[STEPS]; /* batch sizes, in order; < 0: a give */
	uint64_t ops;        /* takes and gives that succeeded before the end */
	struct times *takes;
	int32_t num_held;
	int32_t held[HELD_MOST];
};

/* The threads of a round.  The ring hands pages from a taker to a giver; no more can be
 * in it than the pool has. */
struct crew {
	const struct rival *rival;
	void *fifo;
	int num_workers;
	void *(*work)(void *worker);
	pthread_barrier_t ready;
	alignas(128) _Atomic bool stop;
	alignas(128) _Atomic uint64_t head; /* pages handed over so far */
	alignas(128) _Atomic uint64_t tail; /* pages given back so far */
	alignas(128) struct worker workers[THREADS_MAX];
	int32_t ring[THREAD_PAGES];
};

/* The first two cores that we may run on; false: there is one only. */
static bool two_cores(int cores_out[2])
{
	cpu_set_t allowed;
	int num = 0;

	CPU_ZERO(&allowed);
	sched_getaffinity(0, sizeof(allowed), &allowed);
	for (int core = 0; core < CPU_SETSIZE && num < 2; core++) {
		if (CPU_ISSET(core, &allowed))
			cores_out[num++] = core;
	}
	return num == 2;
}

static void pin(int id)
{
	int cores[2];
	cpu_set_t set;

	rival_must(two_cores(cores), "one core only");
	CPU_ZERO(&set);
	CPU_SET(cores[id % 2], &set);
	pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

static bool stopped(const struct crew *crew)
{
	return atomic_load_explicit(&crew->stop, memory_order_relaxed);
}

/* Take n pages against the clock. */
static bool timed_take(struct worker *worker, int32_t n, int32_t *pages_out)
{
	struct crew *crew = worker->crew;
	uint64_t start = ticks_now();
	bool taken = crew->rival->take(crew->fifo, n, pages_out);

	if (taken)
		times_add(worker->takes, ticks_now() - start);
	return taken;
}

static void give(struct worker *worker, const int32_t *pages, int32_t n)
{
	struct crew *crew = worker->crew;

	if (!crew->rival->give(crew->fifo, pages, n))
		rival_must(false, "a give fails");
}

static void *taker(void *arg)
{
	struct worker *worker = arg;
	struct crew *crew = worker->crew;
	uint64_t head = 0;
	int32_t pages[BATCH_MOST];

	pin(worker->id);
	pthread_barrier_wait(&crew->ready);
	while (!stopped(crew)) {
		int32_t n = abs(worker->steps[worker->ops % STEPS]);

		if (!timed_take(worker, n, pages)) {
			ck_pr_stall();
			continue;
		}
		for (int32_t i = 0; i < n; i++)
			crew->ring[(head + (uint64_t)i) % THREAD_PAGES] = pages[i];
		head += (uint64_t)n;
		/* Release and acquire: the pages come with the count. */
		atomic_store_explicit(&crew->head, head, memory_order_release);
		worker->ops++;
	}
	return NULL;
}

/* Give the n pages of the ring that are next; they are there. */
static void give_handed(struct worker *worker, uint64_t tail, int32_t n)
{
	struct crew *crew = worker->crew;
	int32_t pages[BATCH_MOST];

	for (int32_t i = 0; i < n; i++)
		pages[i] = crew->ring[(tail + (uint64_t)i) % THREAD_PAGES];
	give(worker, pages, n);
	/* Relaxed: read when the threads are gone. */
	atomic_store_explicit(&crew->tail, tail + (uint64_t)n, memory_order_relaxed);
}

static void *giver(void *arg)
{
	struct worker *worker = arg;
	struct crew *crew = worker->crew;
	uint64_t tail = 0;

	pin(worker->id);
	pthread_barrier_wait(&crew->ready);
	while (!stopped(crew)) {
		uint64_t head = atomic_load_explicit(&crew->head, memory_order_acquire);
		int32_t n = abs(worker->steps[worker->ops % STEPS]);

		/* Whole batches only: a fast giver's would be smaller than others'. */
		if (head - tail < (uint64_t)n) {
			ck_pr_stall();
			continue;
		}
		give_handed(worker, tail, n);
		tail += (uint64_t)n;
		worker->ops++;
	}
	return NULL;
}

static void *taker_or_giver(void *arg)
{
	struct worker *worker = arg;

	return worker->id == 0 ? taker(arg) : giver(arg);
}

static void *mixer(void *arg)
{
	struct worker *worker = arg;
	struct crew *crew = worker->crew;

	pin(worker->id);
	pthread_barrier_wait(&crew->ready);
	for (uint64_t step = 0; !stopped(crew); step++) {
		int32_t n = worker->steps[step % STEPS];

		if (n > 0 && worker->num_held + n <= HELD_MOST) {
			if (!timed_take(worker, n, worker->held + worker->num_held))
				continue;
			worker->num_held += n;
			worker->ops++;
		} else if (worker->num_held) {
			n = abs(n) < worker->num_held ? abs(n) : worker->num_held;
			worker->num_held -= n;
			give(worker, worker->held + worker->num_held, n);
			worker->ops++;
		}
	}
	return NULL;
}

/* Give back what the ring and the workers still hold: one thread does, because what waits
 * for its turn among many would wait for long. */
static void give_rest(struct crew *crew)
{
	uint64_t head = atomic_load_explicit(&crew->head, memory_order_relaxed);
	uint64_t tail = atomic_load_explicit(&crew->tail, memory_order_relaxed);

	for (; tail < head; tail++)
		give_handed(&crew->workers[0], tail, 1);
	atomic_store_explicit(&crew->head, 0, memory_order_relaxed);
	atomic_store_explicit(&crew->tail, 0, memory_order_relaxed);
	for (int i = 0; i < crew->num_workers; i++) {
		struct worker *worker = &crew->workers[i];

		if (worker->num_held)
			give(worker, worker->held, worker->num_held);
		worker->num_held = 0;
	}
}

static void start_worker(struct crew *crew, int id)
{
	struct worker *worker = &crew->workers[id];
	uint64_t seed = (uint64_t)id + 1;

	worker->crew = crew;
	worker->id = id;
	worker->ops = 0;
	worker->takes = times_create();
	for (int i = 0; i < STEPS; i++) {
		worker->steps[i] = (int8_t)random_in(&seed, 1, BATCH_MOST);
		if (random_next(&seed) >> 63)
			worker->steps[i] = (int8_t)-worker->steps[i];
	}
	rival_must(pthread_create(&worker->thread, NULL, crew->work, worker) == 0,
	           "a thread cannot be started");
}

/* Takes and gives a second, then the marks of the takes in ns. */
static void time_crew(struct crew *crew, double seconds, double results_out[])
{
	struct timespec nap = {.tv_sec = (time_t)seconds};
	struct times *takes = times_create();
	double start, elapsed, ops = 0;

	nap.tv_nsec = (long)((seconds - (double)nap.tv_sec) * 1e9);
	atomic_store_explicit(&crew->stop, false, memory_order_relaxed);
	pthread_barrier_init(&crew->ready, NULL, (unsigned int)crew->num_workers + 1);
	for (int i = 0; i < crew->num_workers; i++)
		start_worker(crew, i);
	pthread_barrier_wait(&crew->ready);
	start = measure_now_ns();
	nanosleep(&nap, NULL);
	atomic_store_explicit(&crew->stop, true, memory_order_relaxed);
	elapsed = measure_now_ns() - start;
	for (int i = 0; i < crew->num_workers; i++) {
		pthread_join(crew->workers[i].thread, NULL);
		ops += (double)crew->workers[i].ops;
		times_merge(takes, crew->workers[i].takes);
		free(crew->workers[i].takes);
	}
	pthread_barrier_destroy(&crew->ready);
	results_out[0] = ops / elapsed * 1e9;
	for (int i = 0; i < NUM_MARKS; i++)
		results_out[1 + i] = times_quantile_ns(takes, marks[i].quantile);
	free(takes);
}

/* A case: what its threads do, and how often. */
struct plan {
	const char *name;
	int num_workers;
	void *(*work)(void *worker);
	const char *command; /* for who runs elsewhere; the seconds follow */
	int rounds;
	double seconds;
};

static void add_results(const struct plan *plan, const struct rival *rival,
                        const double results[])
{
	char measure[32];

	measure_add(plan->name, rival, results[0] / 1e6);
	for (int i = 0; i < NUM_MARKS; i++) {
		snprintf(measure, sizeof(measure), "%s_%s", plan->name, marks[i].name);
		measure_add(measure, rival, results[1 + i]);
	}
}

static void time_round(const struct plan *plan, struct crew *crew)
{
	double results[1 + NUM_MARKS];
	char command[64];

	if (crew->rival->ask) {
		snprintf(command, sizeof(command), "%s %g", plan->command, plan->seconds);
		rival_must(crew->rival->ask(crew->fifo, command, results, 1 + NUM_MARKS),
		           "no answer");
	} else {
		time_crew(crew, plan->seconds, results);
		give_rest(crew);
		rival_must(rival_has_all(crew->rival, crew->fifo, THREAD_PAGES),
		           "pages are lost, or in two hands");
	}
	add_results(plan, crew->rival, results);
}

static void print_results(const struct plan *plan)
{
	char measure[32];

	measure_print(plan->name, "M/s", 0.5);
	for (int i = 0; i < NUM_MARKS; i++) {
		snprintf(measure, sizeof(measure), "%s_%s", plan->name, marks[i].name);
		measure_print(measure, "ns", marks[i].quantile < 1 ? 0.5 : 1);
	}
}

static void bench_threads(const struct rival_list *list, const struct plan *plan)
{
	/* Threads that spin for a turn end their last call late: who does sits out the
	 * rounds for which it has no time left. */
	double budget_ns = 2 * plan->rounds * plan->seconds * 1e9;
	double spent_ns[RIVALS_MAX] = {0};
	void *fifos[RIVALS_MAX];
	struct crew *crew;
	int cores[2];

	if (!two_cores(cores)) {
		printf("# %s: left out, there is one core only\n", plan->name);
		return;
	}
	crew = rival_memory(sizeof(*crew));
	crew->num_workers = plan->num_workers;
	crew->work = plan->work;
	for (int i = 0; i < list->num; i++) {
		fifos[i] = list->rivals[i]->create(THREAD_PAGES);
		rival_must(fifos[i], "a FIFO cannot be made");
	}
	for (int round = 0; round < plan->rounds; round++) {
		for (int k = 0; k < list->num; k++) {
			int i = (round + k) % list->num;
			double start = measure_now_ns();

			if (spent_ns[i] > budget_ns)
				continue;
			crew->rival = list->rivals[i];
			crew->fifo = fifos[i];
			time_round(plan, crew);
			spent_ns[i] += measure_now_ns() - start;
		}
	}
	print_results(plan);
	for (int i = 0; i < list->num; i++)
		list->rivals[i]->destroy(fifos[i]);
	free(crew);
}

void case_taker_giver(const struct rival_list *list, const struct effort *effort)
{
	bench_threads(list, &(struct plan){.name = "taker_giver",
	                                   .num_workers = 2,
	                                   .work = taker_or_giver,
	                                   .command = "taker_giver 64",
	                                   .rounds = effort->thread_rounds,
	                                   .seconds = effort->thread_s});
}

/* Without those that allow one giver only. */
static struct rival_list many_givers(const struct rival_list *list)
{
	struct rival_list many = {0};

	for (int i = 0; i < list->num; i++) {
		if (!list->rivals[i]->one_giver)
			many.rivals[many.num++] = list->rivals[i];
	}
	return many;
}

void case_mixed_4(const struct rival_list *list, const struct effort *effort)
{
	struct rival_list many = many_givers(list);

	bench_threads(&many, &(struct plan){.name = "mixed_4",
	                                    .num_workers = 4,
	                                    .work = mixer,
	                                    .command = "mixed 4 64 1024",
	                                    .rounds = effort->thread_rounds,
	                                    .seconds = effort->thread_s});
}

void case_mixed_16(const struct rival_list *list, const struct effort *effort)
{
	struct rival_list many = many_givers(list);

	bench_threads(&many, &(struct plan){.name = "mixed_16",
	                                    .num_workers = 16,
	                                    .work = mixer,
	                                    .command = "mixed 16 64 1024",
	                                    .rounds = effort->thread_rounds,
	                                    .seconds = 3 * effort->thread_s});
}
