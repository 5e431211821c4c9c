/* SPDX-License-Identifier: MIT */
/* Calls of several threads that begin at the same moment. */
#include "config.h"

#include "tests/alloc/pool_ways.h"
#include "tests/run_suite.h"

#include <check.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define THREADS_MOST 4
#define ROUNDS       1000

/* Threads meet at a barrier, round after round, each with one call of its own. */
struct meeting {
	struct quire_pool *pool;
	pthread_barrier_t barrier;
	int threads;
	_Atomic int arrivals; /* so far, of all rounds */
	int32_t n[THREADS_MOST];
	int32_t batch[THREADS_MOST][MODEL_PAGES_MOST];
	enum quire_status answer[THREADS_MOST];
};

struct guest {
	struct meeting *meeting;
	int place;
	bool gives;
	pthread_t thread;
};

/* A barrier wakes one after the other; here all that run go at once. */
static void go_at_once(struct meeting *meeting, int round)
{
	int spins = 0;

	/* Sequentially consistent: only the moment matters. */
	atomic_fetch_add(&meeting->arrivals, 1);
	while (atomic_load(&meeting->arrivals) < (round + 1) * meeting->threads) {
		if (++spins > 2000)
			sched_yield();
	}
}

static void *meet(void *arg)
{
	struct guest *guest = arg;
	struct meeting *meeting = guest->meeting;
	int32_t *batch = meeting->batch[guest->place];
	enum quire_status *answer = &meeting->answer[guest->place];

	for (int round = 0; round < ROUNDS; round++) {
		pthread_barrier_wait(&meeting->barrier);
		go_at_once(meeting, round);
		if (guest->gives)
			*answer = quire_pool_free(meeting->pool, batch,
			                          meeting->n[guest->place], NULL);
		else
			*answer = quire_pool_allocate(
				meeting->pool, meeting->n[guest->place], batch, NULL);
		pthread_barrier_wait(&meeting->barrier);
	}
	return NULL;
}

static void meeting_begins(struct meeting *meeting, struct guest *guests, int n,
                           bool gives)
{
	meeting->threads = n;
	meeting->arrivals = 0;
	pthread_barrier_init(&meeting->barrier, NULL, (unsigned)n + 1);
	for (int i = 0; i < n; i++) {
		guests[i] =
			(struct guest){.meeting = meeting, .place = i, .gives = gives};
		ck_assert_int_eq(
			pthread_create(&guests[i].thread, NULL, meet, &guests[i]), 0);
	}
}

static void meeting_round(struct meeting *meeting)
{
	pthread_barrier_wait(&meeting->barrier);
	pthread_barrier_wait(&meeting->barrier);
}

static void meeting_ends(struct meeting *meeting, struct guest *guests, int n)
{
	for (int i = 0; i < n; i++)
		pthread_join(guests[i].thread, NULL);
	pthread_barrier_destroy(&meeting->barrier);
}

/*
 * Who got pages has one run of the model's free list each, and together they have its
 * start.  Everything goes back then.
 */
static void ck_assert_runs(struct meeting *meeting, struct fifo_model *model, int threads,
                           int32_t n)
{
	int32_t taken = 0, pages[MODEL_PAGES_MOST];
	bool seen[MODEL_PAGES_MOST] = {false};

	for (int i = 0; i < threads; i++) {
		int32_t at = 0;

		if (meeting->answer[i])
			continue;
		while (model->free[at] != meeting->batch[i][0])
			at++;
		ck_assert_pages(meeting->batch[i], &model->free[at], n);
		if (seen[at])
			ck_abort_msg("page %d went to two", (int)model->free[at]);
		seen[at] = true;
		taken += n;
	}
	for (int32_t at = 0; at < taken; at += n) {
		if (!seen[at])
			ck_abort_msg("not the oldest pages");
	}
	model_take(model, taken, pages);
	model_hold(model, pages, taken);
}

/*
 * Two threads, three free pages, each asks two: exactly one succeeds.  So with any number
 * of threads that ask as many pages each: as many succeed as have room.
 */
START_TEST(of_threads_that_ask_at_once_as_many_succeed_as_fit)
{
	struct guest guests[THREADS_MOST];
	struct fifo_model model;
	struct meeting meeting;
	int threads = 2 + _i / WAYS;
	uint64_t seed = 18 + (uint64_t)_i;

	choose(_i % WAYS);
	meeting.pool = empty_pool(&model, MODEL_PAGES_MOST);
	meeting_begins(&meeting, guests, threads, false);
	for (int round = 0; round < ROUNDS; round++) {
		int32_t n = round % 2 ? 2 : random_in(&seed, 1, FIFO_GROUP / 2);
		int32_t fit = random_in(&seed, 0, threads);
		int32_t free = n * fit + random_in(&seed, 0, n - 1), won = 0;

		give_batch(meeting.pool, &model, free, &seed);
		for (int i = 0; i < threads; i++)
			meeting.n[i] = n;
		meeting_round(&meeting);
		for (int i = 0; i < threads; i++)
			won += meeting.answer[i] == QUIRE_OK;
		if (won != fit)
			ck_abort_msg("%d of %d threads got %d of %d pages", (int)won,
			             threads, (int)n, (int)free);
		ck_assert_runs(&meeting, &model, threads, n);
		ck_assert_pool_is(meeting.pool, &model);
		take_run(meeting.pool, &model, model.num_free);
	}
	meeting_ends(&meeting, guests, threads);
	quire_pool_destroy(meeting.pool);
}
END_TEST

/*
 * Two frees name some of the same pages.  One page: whoever claims it succeeds.  Several
 * pages, in any order: at most one of the two does, and behind a lock exactly one.
 */
START_TEST(of_frees_that_name_one_page_at_once_at_most_one_succeeds)
{
	struct guest guests[2];
	struct fifo_model model;
	struct meeting meeting;
	uint64_t seed = 19 + (uint64_t)_i;

	choose(_i);
	meeting.pool = empty_pool(&model, 2 * FIFO_GROUP);
	meeting_begins(&meeting, guests, 2, true);
	for (int round = 0; round < ROUNDS; round++) {
		int32_t n = round % 2 ? 1 : random_in(&seed, 1, FIFO_GROUP);
		int32_t common = random_in(&seed, 1, n);
		int won;

		random_shuffle(&seed, model.held, model.num_held);
		memcpy(meeting.batch[0], model.held, (size_t)n * sizeof(int32_t));
		memcpy(meeting.batch[1], &model.held[n - common],
		       (size_t)n * sizeof(int32_t));
		random_shuffle(&seed, meeting.batch[0], n);
		random_shuffle(&seed, meeting.batch[1], n);
		meeting.n[0] = meeting.n[1] = n;
		meeting_round(&meeting);
		won = (meeting.answer[0] == QUIRE_OK) + (meeting.answer[1] == QUIRE_OK);
		if (won > 1 || (won == 0 && (common == 1 || kind == QUIRE_POOL_LOCKED)))
			ck_abort_msg("%d of two frees succeed", won);
		ck_assert_free_pages(meeting.pool,
		                     meeting.batch[meeting.answer[1] == QUIRE_OK],
		                     won * n);
		ck_assert(
			quire_pool_try_allocate(meeting.pool, won * n, meeting.batch[0]));
	}
	meeting_ends(&meeting, guests, 2);
	ck_end(meeting.pool);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("pool, together");
	TCase *tcase = tcase_create("all");

	tcase_add_loop_test(tcase, of_threads_that_ask_at_once_as_many_succeed_as_fit, 0,
	                    3 * WAYS);
	tcase_add_loop_test(
		tcase, of_frees_that_name_one_page_at_once_at_most_one_succeeds, 0, WAYS);
	tcase_set_timeout(tcase, 60);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
