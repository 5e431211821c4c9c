/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/alloc/linear_trial.h"
#include "tests/alloc/random.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HELD_MOST (HISTORY_PAGES * (1 + HISTORY_OPS))
#define GATE      1000 /* times that an early thread looks for the others */
#define HANG_S    15   /* a history takes less than a millisecond */

struct worker {
	pthread_t thread;
	int number;
	uint64_t seed;
	int32_t calm; /* one stall in so many points */
	int32_t num_held;
	int32_t held[HELD_MOST]; /* to give; after a stolen page one may be there twice */
};

static struct {
	struct trial *trial;
	uint64_t seed;
	int64_t begun; /* histories */
	bool over;
	bool rogue;     /* some frees of this history name what they should not */
	int32_t wanted; /* an owned page that several frees of a history name */
	struct history history;
	struct worker workers[HISTORY_THREADS];
	pthread_mutex_t lock;
	pthread_cond_t met, ended;
	int waiting;
	atomic_int awake;
	atomic_int_fast64_t moment; /* counts every start and end of a call */
	pthread_mutex_t one_at_a_time;
} run;

static _Thread_local struct worker *self;

/*
 * A stall lasts until others have begun or ended some calls: that, not time, is what a
 * stalled thread meets when it goes on.  The others may be stalled too, or done.
 */
void trial_stall(void)
{
	int64_t until;

	if (!self || random_in(&self->seed, 1, self->calm) > 1)
		return;
	until = atomic_load(&run.moment) + random_in(&self->seed, 1, 8);
	for (int32_t left = random_in(&self->seed, 1, 12);
	     left > 0 && atomic_load(&run.moment) < until; left--)
		sched_yield();
}

/* Which history of which trial, and what is the matter with it. */
static void print_place(const char *what)
{
	const struct trial *trial = run.trial;

	fprintf(stderr, "%s, %d pages, seed %llu: history %lld %s\n", trial->queue->name,
	        trial->num_pages, (unsigned long long)trial->seed, (long long)run.begun,
	        what);
}

static void judge(void)
{
	struct trial *trial = run.trial;
	struct history *history = &run.history;

	trial->overlaps += history_overlaps(history);
	trial->contests += history_contests(history);
	run.over = history->after.n == TRIAL_BROKEN;
	if (!run.over && history_has_order(history))
		return;
	trial->convicted++;
	if (run.over || trial->ends_early) {
		print_place("has no order");
		history_print(history, stderr);
		run.over = true;
	}
}

/* Pages that are not in the queue, to the threads that give. */
static void deal_pages(void)
{
	const struct history_row *row = &run.history.before;
	bool is_free[HISTORY_PAGES] = {false};
	int32_t num_owned = 0;

	for (int32_t i = 0; i < row->n; i++)
		is_free[row->pages[i]] = true;
	for (int t = 0; t < HISTORY_THREADS; t++)
		run.workers[t].num_held = 0;
	run.wanted = 0;
	for (int32_t p = 0; p < run.trial->num_pages; p++) {
		int to = run.trial->one_giver
		                 ? 0
		                 : random_in(&run.seed, 0, HISTORY_THREADS - 1);
		struct worker *worker = &run.workers[to];

		if (is_free[p])
			continue;
		worker->held[worker->num_held++] = p;
		if (random_in(&run.seed, 0, num_owned++) == 0)
			run.wanted = p;
	}
}

/* What the last thread to come does while all others wait. */
static void between(void)
{
	static const int32_t calms[] = {1, 2, 4, 8, 32};
	struct trial *trial = run.trial;

	run.history.after.n = trial->queue->list(run.history.after.pages);
	if (run.begun)
		judge();
	run.over = run.over || run.begun == trial->histories;
	run.begun++; /* also when over: it lets the others go */
	if (run.over)
		return;
	run.history.before = run.history.after;
	run.rogue = trial->rogues && random_in(&run.seed, 0, 1);
	deal_pages();
	for (int t = 0; t < HISTORY_THREADS; t++)
		run.workers[t].calm = calms[random_in(&run.seed, 0, 4)];
}

/*
 * All threads meet.  false: the trial is over.  Sleepers wake up one after the other, in
 * which time a thread could do all its calls: so they wait a little for each other.
 */
static bool meet(void)
{
	int64_t round;

	pthread_mutex_lock(&run.lock);
	round = run.begun;
	if (++run.waiting == HISTORY_THREADS) {
		run.waiting = 0;
		atomic_store(&run.awake, 0);
		between();
		pthread_cond_broadcast(&run.met);
		if (run.over)
			pthread_cond_signal(&run.ended);
	}
	while (run.begun == round)
		pthread_cond_wait(&run.met, &run.lock);
	pthread_mutex_unlock(&run.lock);
	atomic_fetch_add(&run.awake, 1);
	for (int left = GATE; left > 0 && atomic_load(&run.awake) < HISTORY_THREADS;
	     left--)
		sched_yield();
	return !run.over;
}

/* A page that may be anybody's, or none. */
static int32_t rogue_page(struct worker *worker)
{
	int32_t num_pages = run.trial->num_pages;

	switch (random_in(&worker->seed, 0, 7)) {
	case 0:
		return random_in(&worker->seed, 0, 1) ? -1 : num_pages;
	case 1:
	case 2:
	case 3:
		return random_in(&worker->seed, 0, num_pages - 1);
	default:
		return run.wanted;
	}
}

/*
 * Pages for a free, from the end of what the worker holds, in random order; for a rogue
 * one of them is another page, and perhaps there is page 0 too.
 */
static void choose_pages(struct worker *worker, struct history_op *op)
{
	bool rogue = run.rogue && random_in(&worker->seed, 0, 1);

	random_shuffle(&worker->seed, worker->held, worker->num_held);
	memcpy(op->pages, &worker->held[worker->num_held - op->n],
	       (size_t)op->n * sizeof(int32_t));
	if (rogue && op->n < run.trial->num_pages && random_in(&worker->seed, 0, 1))
		op->pages[op->n++] = 0;
	if (rogue)
		op->pages[random_in(&worker->seed, 0, op->n - 1)] = rogue_page(worker);
}

/* A number of pages, small ones more often. */
static int32_t choose_number(struct worker *worker, int32_t most)
{
	return random_in(&worker->seed, 1, random_in(&worker->seed, 1, most));
}

static void choose_op(struct worker *worker, struct history_op *op)
{
	/* As often as they are listed. */
	static const enum history_call calls[] = {
		HISTORY_FREE,     HISTORY_FREE,          HISTORY_FREE,
		HISTORY_FREE,     HISTORY_TRY_ALLOCATE,  HISTORY_TRY_ALLOCATE,
		HISTORY_ALLOCATE, HISTORY_ALLOCATE_WAIT, HISTORY_NUM_FREE,
	};
	int32_t last = sizeof(calls) / sizeof(*calls) - 1;
	const struct trial *trial = run.trial;
	int32_t num_pages = trial->num_pages;
	int32_t most = worker->num_held < num_pages ? worker->num_held : num_pages;

	op->call = calls[random_in(&worker->seed, 0, last)];
	if (trial->one_giver &&
	    (op->call == HISTORY_FREE || op->call == HISTORY_TRY_ALLOCATE))
		op->call = worker->number == 0 ? HISTORY_FREE : HISTORY_TRY_ALLOCATE;
	if (op->call == HISTORY_FREE && most == 0)
		op->call = HISTORY_TRY_ALLOCATE;
	if (op->call == HISTORY_FREE) {
		op->n = choose_number(worker, most);
		choose_pages(worker, op);
	} else if (history_is_take(op)) {
		op->n = choose_number(worker, num_pages / 2 + 1);
		op->wait_us = random_in(&worker->seed, 0, 1)
		                      ? random_in(&worker->seed, 1, 20)
		                      : 0;
	}
}

static void run_op(struct worker *worker, struct history_op *op)
{
	choose_op(worker, op);
	if (run.trial->one_at_a_time)
		pthread_mutex_lock(&run.one_at_a_time);
	op->start = atomic_fetch_add(&run.moment, 1);
	run.trial->queue->run(op);
	op->end = atomic_fetch_add(&run.moment, 1);
	if (run.trial->one_at_a_time)
		pthread_mutex_unlock(&run.one_at_a_time);
	if (op->call == HISTORY_NUM_FREE || op->status != QUIRE_OK)
		return;
	if (history_is_take(op)) {
		memcpy(&worker->held[worker->num_held], op->pages,
		       (size_t)op->n * sizeof(int32_t));
		worker->num_held += op->n;
	} else {
		worker->num_held -= op->n < worker->num_held ? op->n : worker->num_held;
	}
}

static void *work(void *arg)
{
	struct worker *worker = arg;
	struct history_thread *thread = &run.history.threads[worker->number];

	self = worker;
	while (meet()) {
		thread->num_ops = random_in(&worker->seed, 3, HISTORY_OPS);
		for (int32_t i = 0; i < thread->num_ops; i++)
			run_op(worker, &thread->ops[i]);
	}
	return NULL;
}

/* Until the trial is over, or no history has come to its end for long. */
static void await_end(void)
{
	struct timespec deadline;

	pthread_mutex_lock(&run.lock);
	while (!run.over) {
		int64_t begun = run.begun;

		clock_gettime(CLOCK_REALTIME, &deadline);
		deadline.tv_sec += HANG_S;
		if (pthread_cond_timedwait(&run.ended, &run.lock, &deadline) &&
		    run.begun == begun) {
			print_place("hangs");
			abort();
		}
	}
	pthread_mutex_unlock(&run.lock);
}

void trial_run(struct trial *trial)
{
	memset(&run, 0, sizeof(run));
	run.trial = trial;
	run.seed = trial->seed;
	run.history.num_pages = trial->num_pages;
	pthread_mutex_init(&run.one_at_a_time, NULL);
	pthread_mutex_init(&run.lock, NULL);
	pthread_cond_init(&run.met, NULL);
	pthread_cond_init(&run.ended, NULL);
	for (int t = 0; t < HISTORY_THREADS; t++) {
		struct worker *worker = &run.workers[t];

		worker->number = t;
		worker->seed = random_next(&run.seed);
		if (pthread_create(&worker->thread, NULL, work, worker)) {
			perror("pthread_create");
			abort();
		}
	}
	await_end();
	for (int t = 0; t < HISTORY_THREADS; t++)
		pthread_join(run.workers[t].thread, NULL);
	pthread_mutex_destroy(&run.one_at_a_time);
	pthread_cond_destroy(&run.ended);
	pthread_cond_destroy(&run.met);
	pthread_mutex_destroy(&run.lock);
}
