/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_TESTS_ALLOC_CALLER_H
#define QUIRE_TESTS_ALLOC_CALLER_H
/*
 * One call of a pool on a thread of its own, which stops at the points that a test
 * chooses.  While it is stopped the rest of the call does not happen.
 *
 * Include it in one file of a program that is built with QUIRE_POOL_POINTS.  Only one
 * thread, the test's, handles callers; its own calls never stop.
 */
#include "alloc/pool_impl.h"
#include "tests/alloc/fifo_model.h"

#include <check.h>

#include <pthread.h>
#include <semaphore.h>
#include <time.h>

/* A caller that does not come to a stop within this time hangs. */
#define CALLER_PATIENCE_S 20

enum caller_verb {
	CALLER_TAKES,
	CALLER_WAITS, /* a take that waits for pages */
	CALLER_GIVES,
	CALLER_GIVES_ALONE,
};

#define CALLER_VERBS 4

/* Sets of points. */
#define AT(point) ((uint32_t)1 << POOL_POINT_##point)
#define AT_ANY    (((uint32_t)1 << POOL_POINTS) - 1)

struct caller {
	struct quire_pool *pool;
	enum caller_verb verb;
	int64_t n;
	int32_t pages[MODEL_PAGES_MOST];
	int64_t deadline_ns;
	uint32_t points; /* where it stops, */
	int passes;      /* after so many passes of such a point */

	bool stopped; /* at this point; otherwise it has ended, with this status */
	enum quire_pool_point point;
	enum quire_status status;
	struct quire_refusal refusal;

	sem_t come; /* posted by the caller when it stops and when it ends */
	sem_t go;
	pthread_t thread;
};

static _Thread_local struct caller *caller_self;

void quire_pool_point(enum quire_pool_point point)
{
	struct caller *caller = caller_self;

	if (!caller || !(caller->points >> point & 1) || caller->passes-- > 0)
		return;
	caller->passes = 0;
	caller->stopped = true;
	caller->point = point;
	sem_post(&caller->come);
	sem_wait(&caller->go);
}

static enum quire_status caller_call(struct caller *caller)
{
	struct quire_pool *pool = caller->pool;

	switch (caller->verb) {
	case CALLER_TAKES:
		return quire_pool_allocate(pool, caller->n, caller->pages,
		                           &caller->refusal);
	case CALLER_WAITS:
		return quire_pool_allocate_wait(pool, caller->n, caller->pages,
		                                caller->deadline_ns, &caller->refusal);
	case CALLER_GIVES:
		return quire_pool_free(pool, caller->pages, caller->n, &caller->refusal);
	case CALLER_GIVES_ALONE:
		break;
	}
	return quire_pool_free_single_giver(pool, caller->pages, caller->n,
	                                    &caller->refusal);
}

static void *caller_main(void *arg)
{
	struct caller *caller = arg;

	caller_self = caller;
	caller->status = caller_call(caller);
	caller->stopped = false;
	sem_post(&caller->come);
	return NULL;
}

/* The caller runs on, until it stops or ends: whether it stopped. */
static bool caller_comes(struct caller *caller)
{
	struct timespec patience;

	clock_gettime(CLOCK_REALTIME, &patience);
	patience.tv_sec += CALLER_PATIENCE_S;
	if (sem_timedwait(&caller->come, &patience))
		ck_abort_msg("a call hangs");
	if (caller->stopped)
		return true;
	pthread_join(caller->thread, NULL);
	sem_destroy(&caller->come);
	sem_destroy(&caller->go);
	return false;
}

/* Let it run, without waiting for it. */
static void caller_goes(struct caller *caller)
{
	caller->stopped = false;
	sem_post(&caller->go);
}

/* Begin the call: whether it stops. */
static bool caller_stops(struct caller *caller)
{
	caller->stopped = false;
	sem_init(&caller->come, 0, 0);
	sem_init(&caller->go, 0, 0);
	if (pthread_create(&caller->thread, NULL, caller_main, caller))
		ck_abort_msg("no thread");
	return caller_comes(caller);
}

/* Go on to the next of its points: whether it stops once more. */
static inline bool caller_stops_again(struct caller *caller)
{
	caller_goes(caller);
	return caller_comes(caller);
}

/* Go on to the end of the call. */
static inline enum quire_status caller_ends(struct caller *caller)
{
	caller->points = 0;
	if (caller_stops_again(caller))
		ck_abort_msg("a call stops where it should not");
	return caller->status;
}

#endif
