/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_RUNTIME_CMD_STRESS_IMPL_H
#define QUIRE_RUNTIME_CMD_STRESS_IMPL_H
/*
 * A stress run: threads take pages from one pool and give them back without pause, and an
 * ownership table says at any time who has each page.
 *
 *   stress.c        options, and everything a run needs, made and ended
 *   stress_run.c    its threads, started, watched and stopped
 *   stress_work.c   what a thread does: take, hand over, give
 *   stress_bad.c    batches that must be refused
 *   stress_end.c    when all is quiet: every page is there, once
 *   stress_report.c what is printed
 *
 * What sees what
 *   The table is changed by one relaxed atomic exchange per page and change: it finds a
 *   page in two hands, and must not make the order that the pool owes.  Whether the pool
 *   does is seen by `uses`, which is not atomic: a taker writes after the giver before
 *   it, so ThreadSanitizer reports an order that is missing, and without it increments
 *   that were lost are missed at the end.
 *
 * Contested pages
 *   A bad batch may name a page of somebody else's.  While it is being refused, the
 *   page's owner may be refused too (alloc/pool.h), and has to try again.  Only every
 *   16th page is put to that: for all others each answer of the pool is known.
 *
 * With one giver, the other threads only take; what one has lies in a ring from which the
 * giver fetches it.
 */
#include "runtime/cmd/cmd_impl.h"

/* The kind of FIFO is no choice of the public interface: nobody wants the slower one, but
 * to compare.  The command is linked with the whole core, so it can ask for either. */
#include "alloc/pool_impl.h"
#include "runtime/histogram_impl.h"
#include "runtime/wake_impl.h"

#include <quire/alloc/pool.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Between two looks at the threads; so many looks without a move, and one is stuck. */
#define CMD_STRESS_LOOK_NS INT64_C(100000000)
#ifndef CMD_STRESS_LOOKS
#define CMD_STRESS_LOOKS 600
#endif

#define CMD_STRESS_CONTESTED 16

/* The turns of a thread that has ended. */
#define CMD_STRESS_ENDED (-1)

struct cmd_stress_options {
	struct cmd_common common;
	int64_t threads;
	int64_t seconds; /* 0: ops end the run */
	int64_t ops;     /* takes, and frees, of each thread; 0: time ends the run */
	int64_t pages;
	int64_t seed;
	int64_t batch_max;
	int64_t hold; /* pages that a thread has at most */
	enum quire_pool_kind kind;
	bool one_giver;
};

/* A thread and what it has; counted by the thread, watched by others. */
struct cmd_worker {
	struct cmd_stress *stress;
	pthread_t thread;
	int32_t id;
	bool takes_pages;
	bool gives_pages;
	bool is_done; /* has its ops */
	uint64_t random;
	int32_t *batch; /* [batch_max]: pages just taken, or a bad batch */
	int32_t *held;  /* [hold]: num_held pages; where others give, the ring */
	int32_t num_held;
	_Atomic uint64_t ring_head; /* written by the giver */
	_Atomic uint64_t ring_tail; /* written by the thread */
	_Atomic int64_t turns;
	_Atomic int64_t takes;
	_Atomic int64_t frees;
	int64_t no_pages;
	int64_t timeouts;
	int64_t bad_batches;
	int64_t retries; /* frees tried again for a contested page */
	int64_t pages_taken;
	int64_t pages_given;
	int64_t seen_turns; /* by who watches, and ... */
	int32_t still;      /* ... looks since they changed */
	int64_t take_max_ns;
	uint64_t take_ns[QUIRE_HISTOGRAM_BUCKETS];
};

enum {
	CMD_STRESS_SOUND,
	CMD_STRESS_BREAKING, /* the violation is being written */
	CMD_STRESS_BROKEN,
};

struct cmd_stress {
	struct cmd_stress_options options;
	struct quire_pool *pool;
	/* [pages]: 0, or 1 + id of the thread that has the page */
	_Atomic int32_t *owner;
	int64_t *uses; /* [pages]: taken and given, so often */
	struct cmd_worker *workers;
	_Atomic bool started;
	_Atomic bool stop;
	_Atomic int64_t running; /* threads */
	_Atomic int64_t lacking; /* threads that lack ops */
	struct quire_wake start; /* raised when all threads are there */
	struct quire_wake wake;  /* raised when a thread ends and at a violation */
	_Atomic int verdict;
	char violation[256];
	int64_t seen_takes; /* as in struct cmd_worker, of all threads */
	int32_t still;
	bool is_dry; /* takes did not grow for so long that the run was stopped */
	int64_t wall_ns;
	int64_t wall_pages; /* taken in that time, until all is given back */
	/* Threads did not stop after a violation: they use all this until the process
	 * ends. */
	bool is_left_behind;
};

/* splitmix64 (public domain, Sebastiano Vigna). */
static inline uint64_t cmd_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/* A number in low..high. */
static inline int32_t cmd_random_in(uint64_t *state, int32_t low, int32_t high)
{
	return low + (int32_t)(cmd_random(state) % (uint64_t)((int64_t)high - low + 1));
}

/* ------------------------------------------------------------------ stress_run.c */

/* Start the threads, watch them, look at what they leave, print.  CMD_DONE; CMD_FAILED: a
 * violation, told; CMD_BAD: told. */
int cmd_stress_run(struct cmd_stress *stress);

/* What all threads have taken. */
int64_t cmd_stress_pages_taken(const struct cmd_stress *stress);

/* Note a violation, the first one only, and stop the run. */
__attribute__((format(printf, 2, 3))) void cmd_stress_fail(struct cmd_stress *stress,
                                                           const char *format, ...);

/* May a free of the page be refused beside a bad batch? */
bool cmd_stress_is_contested(const struct cmd_stress *stress, int32_t page);

/* ------------------------------------------------------------------ stress_work.c */

/* A thread: @worker is a struct cmd_worker. */
void *cmd_stress_work(void *worker);

/* A page changes hands: the table and the use, or a violation. */
bool cmd_stress_receive(struct cmd_worker *worker, int32_t page);
bool cmd_stress_release(struct cmd_worker *worker, int32_t page);

/* Give pages that a worker has back; false: a violation. */
bool cmd_stress_give(struct cmd_worker *worker, const int32_t *pages, int32_t n);

/* One free, as the options say. */
enum quire_status cmd_stress_free(const struct cmd_stress *stress, const int32_t *pages,
                                  int64_t n, struct quire_refusal *refusal_out);

/* ------------------------------------------------------------------ stress_bad.c */

/* Spoil a batch of a worker's own pages and try to give it. */
void cmd_stress_try_bad(struct cmd_worker *worker, const int32_t *pages, int32_t n);

/* ------------------------------------------------------------------ stress_end.c */

/* No thread runs: give back what is left, look at everything.  CMD_DONE, violations
 * included; CMD_BAD: no memory, told. */
int cmd_stress_end(struct cmd_stress *stress);

/* ------------------------------------------------------------------ stress_report.c */

/* A violation, with the command line that repeats it. */
void cmd_stress_tell(const struct cmd_stress *stress);

/* Print how the run went; @code is how it ended so far. */
int cmd_stress_report(const struct cmd_stress *stress, int code);

#endif
