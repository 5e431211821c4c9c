/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/stress_impl.h"

#include <quire/runtime/limits.h>

#include <inttypes.h>
#include <sched.h>
#include <string.h>
#include <time.h>

/* One take in so many waits, and at most so long; one free in so many has a bad batch go
 * before it. */
#define WAITS_EVERY 128
#define WAIT_NS     100000
#define BADS_EVERY  8

/* Rest of a free that was refused for a contested page; so often, and it is wrong.  In
 * all that is shorter than what makes a thread count as stuck. */
#define RETRY_NS    100000
#define RETRIES_MAX (CMD_STRESS_LOOKS * 50)

/* ------------------------------------------------------------------ the table */

static void fail_twice(struct cmd_stress *stress, int32_t page, int32_t to, int32_t had)
{
	cmd_stress_fail(stress,
	                "page %" PRId32 " was handed out twice: to thread %" PRId32
	                " while thread %" PRId32 " had it",
	                page, to, had);
}

bool cmd_stress_receive(struct cmd_worker *worker, int32_t page)
{
	struct cmd_stress *stress = worker->stress;
	int32_t before;

	if (page < 0 || page >= stress->options.pages) {
		cmd_stress_fail(stress,
		                "thread %" PRId32 " was handed page %" PRId32
		                ", and the pool has %" PRId64,
		                worker->id, page, stress->options.pages);
		return false;
	}
	/* Relaxed, here and below: the table must not order what the pool should. */
	before = atomic_exchange_explicit(&stress->owner[page], 1 + worker->id,
	                                  memory_order_relaxed);
	if (before != 0) {
		fail_twice(stress, page, worker->id, before - 1);
		return false;
	}
	stress->uses[page]++;
	return true;
}

/* A page that a worker has goes to @to: 0, or 1 + another worker's id. */
static bool pass_on(struct cmd_worker *worker, int32_t page, int32_t to)
{
	int32_t before = atomic_exchange_explicit(&worker->stress->owner[page], to,
	                                          memory_order_relaxed);

	if (before != 1 + worker->id)
		fail_twice(worker->stress, page, before - 1, worker->id);
	return before == 1 + worker->id;
}

bool cmd_stress_release(struct cmd_worker *worker, int32_t page)
{
	worker->stress->uses[page]++;
	return pass_on(worker, page, 0);
}

/* ------------------------------------------------------------------ numbers */

static int64_t value_of(const _Atomic int64_t *number)
{
	return atomic_load_explicit(number, memory_order_relaxed);
}

/* One writer, whom somebody watches: relaxed, no order is wanted. */
static void count(_Atomic int64_t *number)
{
	atomic_store_explicit(number, value_of(number) + 1, memory_order_relaxed);
}

static int32_t lesser(int64_t a, int64_t b)
{
	return (int32_t)(a < b ? a : b);
}

/* Small batches more often than large ones. */
static int32_t batch_size(struct cmd_worker *worker, int64_t most)
{
	int32_t high = lesser(most, worker->stress->options.batch_max);

	return cmd_random_in(&worker->random, 1, cmd_random_in(&worker->random, 1, high));
}

/* Can so many pages be free, while the worker has num_held? */
static bool is_possible(const struct cmd_worker *worker, int64_t num_free)
{
	const struct cmd_stress_options *options = &worker->stress->options;
	int64_t most = options->pages - worker->num_held;

	return num_free <= most && num_free >= (options->threads == 1 ? most : 0);
}

static void check_count(struct cmd_worker *worker)
{
	int32_t num_free = quire_pool_num_free(worker->stress->pool);

	if (!is_possible(worker, num_free))
		cmd_stress_fail(worker->stress,
		                "%" PRId32 " pages are said to be free, while thread "
		                "%" PRId32 " has %" PRId32 " of %" PRId64,
		                num_free, worker->id, worker->num_held,
		                worker->stress->options.pages);
}

/* ------------------------------------------------------------------ take */

/* A take was refused: was it as it should be? */
static void check_refusal(struct cmd_worker *worker, int32_t n, enum quire_status status,
                          enum quire_status wanted, const struct quire_refusal *refusal)
{
	if (status == wanted && refusal->status == wanted && refusal->requested == n &&
	    refusal->available < n && is_possible(worker, refusal->available))
		return;
	cmd_stress_fail(worker->stress,
	                "a take of %" PRId32 " pages by thread %" PRId32
	                " was answered with %s {requested %" PRId64 ", available %" PRId64
	                "}",
	                n, worker->id, quire_status_name(status), refusal->requested,
	                refusal->available);
}

static bool take_waiting(struct cmd_worker *worker, int32_t n)
{
	struct quire_refusal refusal = {.status = QUIRE_OK};
	int64_t deadline_ns = quire_now_ns() + cmd_random_in(&worker->random, 0, WAIT_NS);
	enum quire_status status = quire_pool_allocate_wait(
		worker->stress->pool, n, worker->batch, deadline_ns, &refusal);

	if (status == QUIRE_OK)
		return true;
	if (quire_now_ns() < deadline_ns)
		cmd_stress_fail(worker->stress,
		                "a take of %" PRId32 " pages by thread %" PRId32
		                " did not wait until its deadline",
		                n, worker->id);
	check_refusal(worker, n, status, QUIRE_TIMEOUT, &refusal);
	worker->timeouts++;
	return false;
}

static bool take_at_once(struct cmd_worker *worker, int32_t n, bool with_refusal)
{
	struct quire_refusal refusal = {.status = QUIRE_OK};
	enum quire_status status = QUIRE_NO_PAGES;
	int64_t start_ns = quire_now_ns();
	int64_t ns;

	if (with_refusal)
		status = quire_pool_allocate(worker->stress->pool, n, worker->batch,
		                             &refusal);
	else if (quire_pool_try_allocate(worker->stress->pool, n, worker->batch))
		status = QUIRE_OK;
	if (status == QUIRE_OK) {
		ns = quire_now_ns() - start_ns;
		worker->take_ns[quire_histogram_bucket(ns)]++;
		worker->take_max_ns = ns > worker->take_max_ns ? ns : worker->take_max_ns;
		return true;
	}
	if (with_refusal)
		check_refusal(worker, n, status, QUIRE_NO_PAGES, &refusal);
	worker->no_pages++;
	return false;
}

/* Places of the ring, or of the array, that are free. */
static int64_t room(const struct cmd_worker *worker)
{
	int64_t hold = worker->stress->options.hold;

	if (worker->gives_pages)
		return hold - worker->num_held;
	/* Acquire: pairs with the giver's release, who has read what was there. */
	return hold -
	       (int64_t)(atomic_load_explicit(&worker->ring_tail, memory_order_relaxed) -
	                 atomic_load_explicit(&worker->ring_head, memory_order_acquire));
}

/* Into the array, or into the ring for the giver. */
static void keep(struct cmd_worker *worker, int32_t n)
{
	uint64_t size = (uint64_t)worker->stress->options.hold;
	uint64_t tail;

	if (worker->gives_pages) {
		memcpy(&worker->held[worker->num_held], worker->batch,
		       (size_t)n * sizeof(*worker->held));
		worker->num_held += n;
		return;
	}
	tail = atomic_load_explicit(&worker->ring_tail, memory_order_relaxed);
	for (int32_t i = 0; i < n; i++)
		worker->held[tail++ % size] = worker->batch[i];
	/* Release: pairs with the giver's acquire. */
	atomic_store_explicit(&worker->ring_tail, tail, memory_order_release);
}

/* @most: places that are free */
static void take(struct cmd_worker *worker, int64_t most)
{
	uint64_t way = cmd_random(&worker->random) % WAITS_EVERY;
	int32_t n = batch_size(worker, most);

	if (way == 0 ? !take_waiting(worker, n) : !take_at_once(worker, n, way % 2 != 0))
		return;
	for (int32_t i = 0; i < n; i++) {
		if (!cmd_stress_receive(worker, worker->batch[i]))
			return;
	}
	keep(worker, n);
	worker->pages_taken += n;
	count(&worker->takes);
}

/* ------------------------------------------------------------------ give */

enum quire_status cmd_stress_free(const struct cmd_stress *stress, const int32_t *pages,
                                  int64_t n, struct quire_refusal *refusal_out)
{
	if (stress->options.one_giver)
		return quire_pool_free_single_giver(stress->pool, pages, n, refusal_out);
	return quire_pool_free(stress->pool, pages, n, refusal_out);
}

/* Is it a good batch that was refused because a bad one named a page of it, too? */
static bool is_beside_bad(const struct cmd_stress *stress, const int32_t *pages,
                          int32_t n, const struct quire_refusal *refusal)
{
	return refusal->status == QUIRE_NOT_OWNED && refusal->index >= 0 &&
	       refusal->index < n && refusal->page == pages[refusal->index] &&
	       cmd_stress_is_contested(stress, refusal->page);
}

bool cmd_stress_give(struct cmd_worker *worker, const int32_t *pages, int32_t n)
{
	const struct timespec rest = {.tv_nsec = RETRY_NS};
	struct cmd_stress *stress = worker->stress;
	struct quire_refusal refusal = {.status = QUIRE_OK};
	enum quire_status status;

	for (int32_t i = 0; i < n; i++) {
		if (!cmd_stress_release(worker, pages[i]))
			return false;
	}
	for (int32_t i = 0; i < RETRIES_MAX; i++) {
		status = cmd_stress_free(stress, pages, n, &refusal);
		if (status == QUIRE_OK || !is_beside_bad(stress, pages, n, &refusal))
			break;
		worker->retries++;
		nanosleep(&rest, NULL);
	}
	if (status != QUIRE_OK) {
		cmd_stress_fail(stress,
		                "thread %" PRId32 " could not give back pages that it "
		                "had: %s {page %" PRId32 ", place %" PRId64 "}",
		                worker->id, quire_status_name(status), refusal.page,
		                refusal.index);
		return false;
	}
	worker->pages_given += n;
	count(&worker->frees);
	return true;
}

/* Pages out of the ring of one of the threads that only take. */
static void fetch(struct cmd_worker *giver)
{
	const struct cmd_stress_options *options = &giver->stress->options;
	int32_t from = cmd_random_in(&giver->random, 1, (int32_t)options->threads - 1);
	struct cmd_worker *taker = &giver->stress->workers[from];
	uint64_t head = atomic_load_explicit(&taker->ring_head, memory_order_relaxed);
	/* Acquire: pairs with the release in keep(). */
	uint64_t tail = atomic_load_explicit(&taker->ring_tail, memory_order_acquire);
	int32_t n = lesser((int64_t)(tail - head), options->hold - giver->num_held);

	for (int32_t i = n ? cmd_random_in(&giver->random, 1, n) : 0; i > 0; i--) {
		int32_t page = taker->held[head++ % (uint64_t)options->hold];

		if (!pass_on(taker, page, 1 + giver->id))
			return;
		giver->held[giver->num_held++] = page;
	}
	/* Release: pairs with the acquire in room(). */
	atomic_store_explicit(&taker->ring_head, head, memory_order_release);
}

/* Move n pages, drawn at random, to the end of what a worker holds. */
static const int32_t *draw(struct cmd_worker *worker, int32_t n)
{
	int32_t *held = worker->held;

	for (int32_t end = worker->num_held - 1; end >= worker->num_held - n; end--) {
		int32_t k = cmd_random_in(&worker->random, 0, end);
		int32_t page = held[k];

		held[k] = held[end];
		held[end] = page;
	}
	return &held[worker->num_held - n];
}

static void give(struct cmd_worker *worker)
{
	int32_t n = batch_size(worker, worker->num_held);
	const int32_t *pages = draw(worker, n);

	if (cmd_random(&worker->random) % BADS_EVERY == 0)
		cmd_stress_try_bad(worker, pages, n);
	if (cmd_stress_give(worker, pages, n))
		worker->num_held -= n;
}

/* ------------------------------------------------------------------ the thread */

/* Everybody goes on until the last has its ops: no thread runs alone. */
static void count_turn(struct cmd_worker *worker)
{
	struct cmd_stress *stress = worker->stress;
	int64_t ops = stress->options.ops;

	count(&worker->turns);
	if (ops == 0 || worker->is_done ||
	    (worker->takes_pages && value_of(&worker->takes) < ops) ||
	    (worker->gives_pages && value_of(&worker->frees) < ops))
		return;
	worker->is_done = true;
	/* Relaxed, both: numbers; joining the threads orders all that they did. */
	if (atomic_fetch_sub_explicit(&stress->lacking, 1, memory_order_relaxed) == 1)
		atomic_store_explicit(&stress->stop, true, memory_order_relaxed);
}

static void turn(struct cmd_worker *worker)
{
	int64_t most = worker->takes_pages ? room(worker) : 0;

	check_count(worker);
	if (!worker->takes_pages)
		fetch(worker);
	if (most == 0 && worker->num_held == 0)
		sched_yield(); /* the others have to move first */
	else if (worker->num_held == 0 ||
	         (most != 0 && cmd_random(&worker->random) % 2 != 0))
		take(worker, most);
	else
		give(worker);
	count_turn(worker);
}

/* All begin together, when all are there. */
static void wait_for_start(struct cmd_stress *stress)
{
	for (;;) {
		uint32_t value = quire_wake_value(&stress->start);

		/* Relaxed: a flag; what a thread reads was there before the thread. */
		if (atomic_load_explicit(&stress->started, memory_order_relaxed))
			return;
		quire_wake_sleep(&stress->start, value, QUIRE_NO_DEADLINE);
	}
}

void *cmd_stress_work(void *argument)
{
	struct cmd_worker *worker = argument;
	struct cmd_stress *stress = worker->stress;

	wait_for_start(stress);
	/* Relaxed: a flag that tells of nothing else. */
	while (!atomic_load_explicit(&stress->stop, memory_order_relaxed))
		turn(worker);
	/* Relaxed, both: as in count_turn(). */
	atomic_store_explicit(&worker->turns, CMD_STRESS_ENDED, memory_order_relaxed);
	atomic_fetch_sub_explicit(&stress->running, 1, memory_order_relaxed);
	quire_wake_all(&stress->wake);
	return NULL;
}
