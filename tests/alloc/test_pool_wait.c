/* SPDX-License-Identifier: MIT */
/*
 * Takes that wait for pages.  A deadline far away tells a lost wake-up from a slow
 * machine: whoever comes to it has slept through a free.
 */
#include "config.h"

#include "tests/alloc/caller.h"
#include "tests/alloc/fifo_model.h"
#include "tests/run_suite.h"

#include <check.h>

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define PAGES     24
#define FAR_NS    10000000000
#define UNTOUCHED (-77)

static const enum quire_pool_kind kinds[] = {
	QUIRE_POOL_LOCKED,
#ifdef QUIRE_HAVE_CAS128
	QUIRE_POOL_LOCK_FREE,
#endif
};

#define KINDS ((int)(sizeof(kinds) / sizeof(kinds[0])))

static int64_t far_away(void)
{
	return quire_now_ns() + FAR_NS;
}

/* A pool of which pages 0 .. free - 1 are free and the others are the test's. */
static struct quire_pool *pool_with(int kind, int32_t free)
{
	struct quire_pool *pool;
	int32_t pages[PAGES];

	ck_assert_int_eq(quire_pool_create_kind(PAGES, kinds[kind], &pool), QUIRE_OK);
	ck_assert(quire_pool_try_allocate(pool, PAGES, pages));
	ck_assert_int_eq(quire_pool_free(pool, pages, free, NULL), QUIRE_OK);
	return pool;
}

static void give(struct quire_pool *pool, int32_t first, int32_t n)
{
	int32_t pages[PAGES];

	for (int32_t i = 0; i < n; i++)
		pages[i] = first + i;
	ck_assert_int_eq(quire_pool_free(pool, pages, n, NULL), QUIRE_OK);
}

/* What a free does to the FIFO, without its look for waiters: as if it had looked before
 * anybody announced himself. */
static void give_and_tell_nobody(struct quire_pool *pool, int32_t page)
{
	uint32_t given;

#ifdef QUIRE_HAVE_CAS128
	if (pool->kind == QUIRE_POOL_LOCK_FREE)
		given = quire_fifo_give(&pool->fifo, &page, 1, FIFO_ANY_GIVERS);
	else
#endif
		given = quire_lock_fifo_give(&pool->lock_fifo, &page, 1, FIFO_ANY_GIVERS);
	ck_assert_uint_eq(given, 1);
}

static void ck_end(struct quire_pool *pool)
{
	ck_assert_uint_eq(atomic_load(&pool->waiters), 0);
	ck_assert_int_eq(quire_pool_check(pool, NULL, NULL), QUIRE_OK);
	quire_pool_destroy(pool);
}

/* A waiter that stops at some points, with its deadline far away. */
static struct caller waiter(struct quire_pool *pool, int32_t n, uint32_t points)
{
	return (struct caller){.pool = pool,
	                       .verb = CALLER_WAITS,
	                       .n = n,
	                       .deadline_ns = far_away(),
	                       .points = points};
}

static void stop_at(struct caller *caller, bool stopped, enum quire_pool_point point)
{
	if (!stopped || caller->point != point)
		ck_abort_msg("the waiter does not come to point %d", (int)point);
}

/* It has what it waits for, and not because its time was over. */
static void ck_assert_woken(struct caller *caller, int32_t first)
{
	ck_assert_int_eq(caller->status, QUIRE_OK);
	ck_assert_int_lt(quire_now_ns(), caller->deadline_ns);
	for (int32_t i = 0; i < caller->n; i++)
		ck_assert_int_eq(caller->pages[i], first + i);
}

/* ------------------------------------------------------------- without a sleep */

START_TEST(pages_that_are_there_are_taken_at_once)
{
	static const int64_t deadlines[] = {0, -1, INT64_MIN, 1, QUIRE_NO_DEADLINE};
	struct quire_pool *pool = pool_with(_i, 10);

	for (int k = 0; k < 5; k++) {
		struct caller caller = waiter(pool, 2, AT(WAITING) | AT(SLEEPING));

		caller.deadline_ns = deadlines[k];
		ck_assert(!caller_stops(&caller));
		ck_assert_int_eq(caller.status, QUIRE_OK);
		ck_assert_pages(caller.pages, (int32_t[]){2 * k, 2 * k + 1}, 2);
	}
	ck_assert_int_eq(quire_pool_allocate_wait(pool, 0, NULL, QUIRE_NO_DEADLINE, NULL),
	                 QUIRE_OK);
	ck_end(pool);
}
END_TEST

START_TEST(a_number_out_of_range_is_refused_and_not_waited_for)
{
	static const int64_t numbers[] = {-1, INT64_MIN, PAGES + 1, INT64_MAX,
	                                  (int64_t)UINT32_MAX + 2};
	struct quire_pool *pool = pool_with(_i, 1);

	for (int k = 0; k < 5; k++) {
		struct caller caller = waiter(pool, 1, AT(WAITING) | AT(SLEEPING));

		caller.n = numbers[k];
		caller.deadline_ns = QUIRE_NO_DEADLINE;
		caller.pages[0] = UNTOUCHED;
		ck_assert(!caller_stops(&caller));
		ck_assert_int_eq(caller.status, QUIRE_INVALID);
		ck_assert_int_eq(caller.refusal.status, QUIRE_INVALID);
		ck_assert_str_eq(caller.refusal.what, "n");
		ck_assert_int_eq(caller.refusal.index, -1);
		ck_assert_int_eq(caller.refusal.got, numbers[k]);
		ck_assert_int_eq(caller.refusal.expected, PAGES);
		ck_assert_int_eq(caller.pages[0], UNTOUCHED);
		ck_assert_int_eq(quire_pool_allocate_wait(pool, numbers[k], caller.pages,
		                                          QUIRE_NO_DEADLINE, NULL),
		                 QUIRE_INVALID);
	}
	ck_end(pool);
}
END_TEST

/* ------------------------------------------------------------------ deadlines */

/* A take of 5 of 2 pages is refused when its time is over, and changes nothing. */
static void time_out(struct quire_pool *pool, int64_t deadline_ns)
{
	struct quire_refusal refusal = {.label = "full", .index = 7};
	int32_t pages[5] = {UNTOUCHED, UNTOUCHED, UNTOUCHED, UNTOUCHED, UNTOUCHED};
	char text[100];

	ck_assert_int_eq(quire_pool_allocate_wait(pool, 5, pages, deadline_ns, &refusal),
	                 QUIRE_TIMEOUT);
	ck_assert_int_ge(quire_now_ns(), deadline_ns);
	ck_assert_int_eq(refusal.status, QUIRE_TIMEOUT);
	ck_assert_int_eq(refusal.requested, 5);
	ck_assert_int_eq(refusal.available, 2);
	ck_assert_int_eq(refusal.index, 0);
	ck_assert_int_eq(refusal.label[0], '\0');
	(void)quire_refusal_text(&refusal, text, sizeof(text));
	ck_assert_str_eq(text,
	                 "the deadline passed: free pages, 5 requested, 2 available");
	for (int i = 0; i < 5; i++)
		ck_assert_int_eq(pages[i], UNTOUCHED);
	ck_assert_int_eq(quire_pool_allocate_wait(pool, 5, pages, deadline_ns, NULL),
	                 QUIRE_TIMEOUT);
	ck_assert_free_pages(pool, (int32_t[]){0, 1}, 2);
	ck_assert_uint_eq(atomic_load(&pool->waiters), 0);
}

START_TEST(a_deadline_that_has_passed_is_not_waited_for)
{
	struct quire_pool *pool = pool_with(_i, 2);

	time_out(pool, 0);
	time_out(pool, 1);
	time_out(pool, -1);
	time_out(pool, INT64_MIN);
	time_out(pool, quire_now_ns());
	ck_end(pool);
}
END_TEST

START_TEST(a_deadline_ends_the_wait_and_not_before_its_time)
{
	struct quire_pool *pool = pool_with(_i, 2);

	time_out(pool, quire_now_ns() + 1000000);
	time_out(pool, quire_now_ns() + 30000000);
	ck_end(pool);
}
END_TEST

/* Refused is who sees too few pages after the deadline, not who slept until then. */
START_TEST(pages_that_came_in_time_are_taken_though_the_deadline_has_passed)
{
	struct quire_pool *pool = pool_with(_i, 0);
	struct caller caller = waiter(pool, 1, AT(SLEEPING));

	caller.deadline_ns = 0;
	stop_at(&caller, caller_stops(&caller), POOL_POINT_SLEEPING);
	give_and_tell_nobody(pool, 3);
	ck_assert_int_eq(caller_ends(&caller), QUIRE_OK);
	ck_assert_int_eq(caller.pages[0], 3);
	ck_end(pool);
}
END_TEST

/* Frees that are too small wake it again and again: its time is over all the same. */
START_TEST(a_deadline_that_has_passed_ends_a_wait_that_is_waked_without_pause)
{
	struct quire_pool *pool = pool_with(_i, 0);
	struct caller caller = waiter(pool, 3, AT(SLEEPING));

	caller.deadline_ns = 0;
	stop_at(&caller, caller_stops(&caller), POOL_POINT_SLEEPING);
	give(pool, 3, 1);
	ck_assert(!caller_stops_again(&caller));
	ck_assert_int_eq(caller.status, QUIRE_TIMEOUT);
	ck_assert_int_eq(caller.refusal.available, 1);
	ck_end(pool);
}
END_TEST

/* ------------------------------------------------------------ no lost wake-up */

/* A free that looked for waiters before this one announced itself wakes nobody: so it
 * must be seen. */
START_TEST(a_free_before_the_waiter_is_announced_is_seen)
{
	struct quire_pool *pool = pool_with(_i, 0);
	struct caller caller = waiter(pool, 1, AT(WAITING));

	stop_at(&caller, caller_stops(&caller), POOL_POINT_WAITING);
	give_and_tell_nobody(pool, 3);
	ck_assert_int_eq(caller_ends(&caller), QUIRE_OK);
	ck_assert_woken(&caller, 3);
	ck_end(pool);
}
END_TEST

START_TEST(a_free_between_the_announcement_and_the_look_is_seen)
{
	struct quire_pool *pool = pool_with(_i, 0);
	struct caller caller = waiter(pool, 2, AT(WAITING));

	stop_at(&caller, caller_stops(&caller), POOL_POINT_WAITING);
	give(pool, 3, 2);
	ck_assert_int_eq(caller_ends(&caller), QUIRE_OK);
	ck_assert_woken(&caller, 3);
	ck_end(pool);
}
END_TEST

/* Every free in turn comes between the look and the sleep: none is slept through, and the
 * first ones, which are too small, are left where they are. */
START_TEST(a_free_between_the_look_and_the_sleep_is_seen)
{
	struct quire_pool *pool = pool_with(_i, 0);
	struct caller caller = waiter(pool, 3, AT(SLEEPING));

	stop_at(&caller, caller_stops(&caller), POOL_POINT_SLEEPING);
	for (int32_t page = 3; page < 5; page++) {
		give(pool, page, 1);
		stop_at(&caller, caller_stops_again(&caller), POOL_POINT_SLEEPING);
		ck_assert_int_eq(quire_pool_num_free(pool), page - 2);
	}
	give(pool, 5, 1);
	ck_assert_int_eq(caller_ends(&caller), QUIRE_OK);
	ck_assert_woken(&caller, 3);
	ck_end(pool);
}
END_TEST

/* ck_ec marks its count when a thread is about to sleep in the kernel. */
static void await_sleep(const struct quire_pool *pool)
{
	const uint32_t *count = &pool->freed.count.counter;
	int64_t end = far_away();

	while (!(__atomic_load_n(count, __ATOMIC_RELAXED) >> 31)) {
		if (quire_now_ns() > end)
			ck_abort_msg("nobody sleeps");
		sched_yield();
	}
}

START_TEST(a_free_wakes_who_sleeps_and_a_small_one_lets_it_sleep_again)
{
	struct quire_pool *pool = pool_with(_i, 0);
	struct caller caller = waiter(pool, 3, AT(SLEEPING));

	stop_at(&caller, caller_stops(&caller), POOL_POINT_SLEEPING);
	for (int32_t page = 3; page < 5; page++) {
		caller_goes(&caller);
		await_sleep(pool);
		give(pool, page, 1);
		stop_at(&caller, caller_comes(&caller), POOL_POINT_SLEEPING);
	}
	caller_goes(&caller);
	await_sleep(pool);
	give(pool, 5, 1);
	ck_assert(!caller_comes(&caller));
	ck_assert_woken(&caller, 3);
	ck_end(pool);
}
END_TEST

/* The same with all waiters asleep, or at any other place of theirs. */
#define WAITERS 6

START_TEST(one_free_wakes_all_who_wait)
{
	struct caller callers[WAITERS];
	int32_t seen[PAGES] = {0};
	struct quire_pool *pool = pool_with(_i, 0);

	for (int i = 0; i < WAITERS; i++) {
		callers[i] = waiter(pool, 2, i % 2 ? AT(WAITING) : AT(SLEEPING));
		ck_assert(caller_stops(&callers[i]));
		callers[i].points = 0;
		if (i % 3 == 0)
			caller_goes(&callers[i]);
	}
	await_sleep(pool);
	ck_assert_uint_eq(atomic_load(&pool->waiters), WAITERS);
	give(pool, 5, 2 * WAITERS);
	for (int i = 0; i < WAITERS; i++) {
		if (i % 3)
			caller_goes(&callers[i]);
		ck_assert(!caller_comes(&callers[i]));
		ck_assert_woken(&callers[i], callers[i].pages[0]);
		seen[callers[i].pages[0]]++;
	}
	/* Each had a run of two, and no two the same. */
	for (int32_t page = 5; page < 5 + 2 * WAITERS; page += 2)
		ck_assert_int_eq(seen[page], 1);
	ck_assert_int_eq(quire_pool_num_free(pool), 0);
	ck_end(pool);
}
END_TEST

/* Of two waiters one free is enough for one: the other sleeps again, until the next. */
START_TEST(who_finds_the_pages_gone_waits_for_the_next)
{
	struct quire_pool *pool = pool_with(_i, 0);
	struct caller one = waiter(pool, 2, AT(SLEEPING)), two = one;

	stop_at(&one, caller_stops(&one), POOL_POINT_SLEEPING);
	stop_at(&two, caller_stops(&two), POOL_POINT_SLEEPING);
	give(pool, 0, 3);
	ck_assert_int_eq(caller_ends(&one), QUIRE_OK);
	ck_assert_woken(&one, 0);
	stop_at(&two, caller_stops_again(&two), POOL_POINT_SLEEPING);
	ck_assert_uint_eq(atomic_load(&pool->waiters), 1);
	give(pool, 3, 1);
	ck_assert_int_eq(caller_ends(&two), QUIRE_OK);
	ck_assert_woken(&two, 2);
	ck_end(pool);
}
END_TEST

START_TEST(a_free_by_the_only_giver_wakes_too)
{
	struct quire_pool *pool = pool_with(_i, 0);
	struct caller caller = waiter(pool, 1, AT(SLEEPING));
	int32_t page = 7;

	stop_at(&caller, caller_stops(&caller), POOL_POINT_SLEEPING);
	ck_assert_int_eq(quire_pool_free_single_giver(pool, &page, 1, NULL), QUIRE_OK);
	ck_assert_int_eq(caller_ends(&caller), QUIRE_OK);
	ck_assert_woken(&caller, 7);
	ck_end(pool);
}
END_TEST

/* ------------------------------------------------------------------ no waste */

START_TEST(only_a_free_that_gives_pages_beside_a_waiter_raises_the_count)
{
	struct quire_pool *pool = pool_with(_i, 0);
	struct caller caller = waiter(pool, 1, AT(SLEEPING));
	uint32_t value = quire_wake_value(&pool->freed);
	int32_t page;

	give(pool, 0, 3);
	ck_assert(quire_pool_try_allocate(pool, 3, caller.pages));
	ck_assert_uint_eq(quire_wake_value(&pool->freed), value);

	stop_at(&caller, caller_stops(&caller), POOL_POINT_SLEEPING);
	ck_assert_uint_eq(atomic_load(&pool->waiters), 1);
	ck_assert_int_eq(quire_pool_free(pool, NULL, 0, NULL), QUIRE_OK);
	ck_assert_int_eq(quire_pool_free(pool, (int32_t[]){PAGES}, 1, NULL),
	                 QUIRE_INVALID);
	ck_assert_int_eq(quire_pool_free(pool, (int32_t[]){1, 1}, 2, NULL),
	                 QUIRE_NOT_OWNED);
	ck_assert_uint_eq(quire_wake_value(&pool->freed), value);
	give(pool, 0, 2);
	ck_assert_uint_ne(quire_wake_value(&pool->freed), value);
	value = quire_wake_value(&pool->freed);
	ck_assert_int_eq(caller_ends(&caller), QUIRE_OK);

	give(pool, 0, 1);
	ck_assert_int_eq(quire_pool_allocate_wait(pool, PAGES, caller.pages, 0, NULL),
	                 QUIRE_TIMEOUT);
	give(pool, 2, 1);
	ck_assert_int_eq(quire_pool_allocate_wait(pool, 1, &page, 0, NULL), QUIRE_OK);
	give(pool, page, 1);
	ck_assert_uint_eq(quire_wake_value(&pool->freed), value);
	ck_end(pool);
}
END_TEST

/* ------------------------------------------------------------------ together */

#define TURNS   1500
#define PLAYERS 4

struct player {
	struct quire_pool *pool;
	int32_t most;
	uint64_t seed;
	int64_t waits; /* turns that found too few pages at once */
	bool lost;
	pthread_barrier_t *start;
	pthread_t thread;
};

/* Take some pages and give them back, again and again; the others come in between. */
static void *play(void *arg)
{
	struct player *player = arg;
	int32_t pages[PAGES];

	pthread_barrier_wait(player->start);
	for (int turn = 0; turn < TURNS && !player->lost; turn++) {
		int32_t n = random_in(&player->seed, 1, player->most);

		player->waits += quire_pool_num_free(player->pool) < n;
		player->lost = quire_pool_allocate_wait(player->pool, n, pages,
		                                        far_away(), NULL);
		sched_yield();
		if (!player->lost)
			player->lost = quire_pool_free(player->pool, pages, n, NULL);
	}
	return NULL;
}

/* There are enough pages for one at a time, or for two: whoever waits is waked by who has
 * them. */
START_TEST(pages_go_round_among_waiters_and_nobody_sleeps_for_ever)
{
	int32_t free = 1 + _i / KINDS * 3;
	struct quire_pool *pool = pool_with(_i % KINDS, free);
	struct player players[PLAYERS];
	pthread_barrier_t start;
	int64_t waits = 0;

	pthread_barrier_init(&start, NULL, PLAYERS);
	for (int i = 0; i < PLAYERS; i++) {
		players[i] = (struct player){
			.pool = pool, .most = free, .seed = (uint64_t)i, .start = &start};
		ck_assert_int_eq(
			pthread_create(&players[i].thread, NULL, play, &players[i]), 0);
	}
	for (int i = 0; i < PLAYERS; i++) {
		pthread_join(players[i].thread, NULL);
		ck_assert(!players[i].lost);
		waits += players[i].waits;
	}
	pthread_barrier_destroy(&start);
	ck_assert_int_gt(waits, 0);
	ck_assert_int_eq(quire_pool_num_free(pool), free);
	ck_end(pool);
}
END_TEST

static void add_loop(TCase *tcase, const TTest *test)
{
	tcase_add_loop_test(tcase, test, 0, KINDS);
}

int main(void)
{
	Suite *suite = suite_create("pool, waiting");
	TCase *tcase = tcase_create("all");

	add_loop(tcase, pages_that_are_there_are_taken_at_once);
	add_loop(tcase, a_number_out_of_range_is_refused_and_not_waited_for);
	add_loop(tcase, a_deadline_that_has_passed_is_not_waited_for);
	add_loop(tcase, a_deadline_ends_the_wait_and_not_before_its_time);
	add_loop(tcase, pages_that_came_in_time_are_taken_though_the_deadline_has_passed);
	add_loop(tcase,
	         a_deadline_that_has_passed_ends_a_wait_that_is_waked_without_pause);
	add_loop(tcase, a_free_before_the_waiter_is_announced_is_seen);
	add_loop(tcase, a_free_between_the_announcement_and_the_look_is_seen);
	add_loop(tcase, a_free_between_the_look_and_the_sleep_is_seen);
	add_loop(tcase, a_free_wakes_who_sleeps_and_a_small_one_lets_it_sleep_again);
	add_loop(tcase, one_free_wakes_all_who_wait);
	add_loop(tcase, who_finds_the_pages_gone_waits_for_the_next);
	add_loop(tcase, a_free_by_the_only_giver_wakes_too);
	add_loop(tcase, only_a_free_that_gives_pages_beside_a_waiter_raises_the_count);
	tcase_add_loop_test(tcase,
	                    pages_go_round_among_waiters_and_nobody_sleeps_for_ever, 0,
	                    2 * KINDS);
	tcase_set_timeout(tcase, 60);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
