/* SPDX-License-Identifier: MIT */
/*
 * test_pool_linear [--histories N] [--seed N]: linearizability by brute force.
 *
 * Three threads run a few calls at once, with random stalls at the labelled points of
 * alloc/ (compiled into this program with QUIRE_POOL_POINTS), and every recorded history
 * must have an order that a sequential FIFO would have answered in the same way:
 * linear_history.h says which answers those are, those of two frees of the same page
 * included, linear_trial.h how the histories are made.
 *
 * The same search must convict two queues that are known to be wrong (linear_rings.h), in
 * as many histories as acquit the pool.  Histories depend on the scheduler too: a seed
 * repeats what is chosen, not the timing.
 *
 * Built once with the groups as shipped and once each with smaller ones, so that a few
 * pages make many groups.  What does not depend on groups is tried as shipped only.
 */
#include "config.h"

#include "alloc/pool_impl.h"
#include "tests/alloc/linear_rings.h"
#include "tests/run_suite.h"

#include <check.h>

#include <getopt.h>
#include <stdatomic.h>

#define GROUPS_AS_SHIPPED (FIFO_LEAVES == 8 && FIFO_BRANCHES == 4)
#define NS_PER_US         1000

static int64_t histories = 4000; /* of each trial */
static uint64_t seed;

struct suspect {
	const char *name;
	enum quire_pool_kind kind;
	bool one_giver;
};

static const struct suspect suspects[] = {
#ifdef QUIRE_HAVE_CAS128
	{"lock-free", QUIRE_POOL_LOCK_FREE, false},
	{"lock-free, one giver", QUIRE_POOL_LOCK_FREE, true},
#endif
#if GROUPS_AS_SHIPPED
	{"with a lock", QUIRE_POOL_LOCKED, false},
	{"with a lock, one giver", QUIRE_POOL_LOCKED, true},
#endif
};

#define NUM_SUSPECTS ((int)(sizeof(suspects) / sizeof(*suspects)))

static const struct suspect *suspect;
static struct quire_pool *pool;
static atomic_bool reached[POOL_POINTS];

void quire_pool_point(enum quire_pool_point point)
{
	/* Relaxed: a flag for the end.  The load leaves the line shared. */
	if (!atomic_load_explicit(&reached[point], memory_order_relaxed))
		atomic_store_explicit(&reached[point], true, memory_order_relaxed);
	trial_stall();
}

/* Can a history of this suspect come to the point? */
static bool is_reachable(enum quire_pool_point point)
{
	switch (point) {
	case POOL_POINT_WAITING:
	case POOL_POINT_SLEEPING:
		return true;
	case POOL_POINT_LOCKED:
		return suspect->kind == QUIRE_POOL_LOCKED;
	case POOL_POINT_SEEN:
	case POOL_POINT_CLAIMING:
		return suspect->kind == QUIRE_POOL_LOCK_FREE && !suspect->one_giver;
	default:
		return suspect->kind == QUIRE_POOL_LOCK_FREE;
	}
}

static void take_from_pool(struct history_op *op)
{
	int64_t deadline_ns =
		op->wait_us ? quire_now_ns() + (int64_t)op->wait_us * NS_PER_US : 0;
	struct quire_refusal refusal = {0};

	op->told = HISTORY_UNTOLD;
	if (op->call == HISTORY_TRY_ALLOCATE) {
		op->status = quire_pool_try_allocate(pool, op->n, op->pages)
		                     ? QUIRE_OK
		                     : QUIRE_NO_PAGES;
		return;
	}
	if (op->call == HISTORY_ALLOCATE)
		op->status = quire_pool_allocate(pool, op->n, op->pages, &refusal);
	else
		op->status = quire_pool_allocate_wait(pool, op->n, op->pages, deadline_ns,
		                                      &refusal);
	op->told = (int32_t)refusal.available;
}

static void run_on_pool(struct history_op *op)
{
	struct quire_refusal refusal = {0};

	if (op->call == HISTORY_NUM_FREE) {
		op->told = quire_pool_num_free(pool);
	} else if (history_is_take(op)) {
		take_from_pool(op);
	} else {
		op->status = suspect->one_giver
		                     ? quire_pool_free_single_giver(pool, op->pages,
		                                                    op->n, &refusal)
		                     : quire_pool_free(pool, op->pages, op->n, &refusal);
		op->told = (int32_t)refusal.index;
	}
}

static int32_t list_pool(int32_t *pages_out)
{
	struct quire_refusal refusal;

	if (quire_pool_check(pool, pages_out, &refusal)) {
		fprintf(stderr, "the pool is broken: %s, page %d\n", refusal.what,
		        refusal.page);
		return TRIAL_BROKEN;
	}
	return quire_pool_num_free(pool);
}

static void report(const struct trial *trial)
{
	double histories_run = (double)trial->histories;

	printf("%s, %d pages: %lld histories, %lld without an order; in each %.2f pairs "
	       "overlap, %.2f of them free the same page\n",
	       trial->queue->name, trial->num_pages, (long long)trial->histories,
	       (long long)trial->convicted, (double)trial->overlaps / histories_run,
	       (double)trial->contests / histories_run);
	fflush(stdout);
}

/* Of a few pages, of a few groups of all sizes, and of more. */
static const int32_t pool_sizes[] = {4, 5, FIFO_GROUP + 4, 3 * FIFO_GROUP + 10};

_Static_assert(3 * FIFO_GROUP + 10 <= HISTORY_PAGES, "every pool fits a history");

START_TEST(every_history_of_the_pool_has_a_sequential_order)
{
	suspect = &suspects[_i];
	for (size_t i = 0; i < sizeof(pool_sizes) / sizeof(*pool_sizes); i++) {
		struct trial_queue queue = {suspect->name, run_on_pool, list_pool};
		struct trial trial = {
			.queue = &queue,
			.num_pages = pool_sizes[i],
			.histories = histories,
			.seed = seed,
			.one_giver = suspect->one_giver,
			.rogues = true,
			.ends_early = true,
		};

		ck_assert_int_eq(
			quire_pool_create_kind(pool_sizes[i], suspect->kind, &pool),
			QUIRE_OK);
		trial_run(&trial);
		quire_pool_destroy(pool);
		report(&trial);
		ck_assert_msg(trial.convicted == 0, "a history has no order");
		ck_assert_msg(trial.overlaps > 2 * histories, "calls hardly overlap");
		ck_assert_msg(suspect->one_giver || trial.contests > histories / 20,
		              "hardly any page is freed twice at the same time");
	}
	for (int point = 0; point < POOL_POINTS; point++)
		ck_assert_msg(reached[point] == is_reachable(point),
		              "point %d: reached is %d", point, reached[point]);
}
END_TEST

static const struct trial_queue *const rings[] = {&ring_of_sequences, &ring_and_counter};

static struct trial try_ring(const struct trial_queue *ring, bool one_at_a_time)
{
	struct trial trial = {
		.queue = ring,
		.num_pages = RING_PAGES,
		.histories = histories,
		.seed = seed,
		.one_at_a_time = one_at_a_time,
	};

	rings_reset();
	trial_run(&trial);
	report(&trial);
	return trial;
}

START_TEST(the_search_convicts_a_ring_that_is_wrong)
{
	struct trial trial = try_ring(rings[_i], false);

	ck_assert_int_gt(trial.convicted, histories / 200);
}
END_TEST

/* So the ring above was convicted for what happens when calls overlap. */
START_TEST(the_search_acquits_the_same_ring_when_no_calls_overlap)
{
	struct trial trial = try_ring(rings[_i], true);

	ck_assert_int_eq(trial.convicted, 0);
	ck_assert_int_eq(trial.overlaps, 0);
}
END_TEST

/* A number of at least 1, or the program ends with a word. */
static uint64_t number(const char *text, uint64_t most)
{
	char *end;
	unsigned long long value = strtoull(text, &end, 0);

	if (*text && !*end && value >= 1 && value <= most)
		return value;
	fprintf(stderr, "test_pool_linear: %s is not a number from 1 to %llu\n", text,
	        (unsigned long long)most);
	exit(2);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"histories", required_argument, NULL, 'h'},
		{"seed", required_argument, NULL, 's'},
		{NULL, 0, NULL, 0},
	};
	Suite *suite = suite_create("pool, linearizability");
	TCase *tcase = tcase_create("all");
	int option;

	seed = (uint64_t)quire_now_ns();
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'h')
			histories = (int64_t)number(optarg, 1 << 30);
		else if (option == 's')
			seed = number(optarg, UINT64_MAX);
		else
			return 2;
	}
	printf("--histories %lld --seed %llu\n", (long long)histories,
	       (unsigned long long)seed);
	fflush(stdout);
	if (GROUPS_AS_SHIPPED) {
		tcase_add_loop_test(tcase, the_search_convicts_a_ring_that_is_wrong, 0,
		                    2);
		tcase_add_loop_test(
			tcase, the_search_acquits_the_same_ring_when_no_calls_overlap, 0,
			2);
	}
	tcase_add_loop_test(tcase, every_history_of_the_pool_has_a_sequential_order, 0,
	                    NUM_SUSPECTS);
	tcase_set_timeout(tcase, 60 + (double)histories / 100);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
