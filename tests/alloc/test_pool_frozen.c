/* SPDX-License-Identifier: MIT */
/*
 * Threads that stop in the middle of a call, at every labelled point of alloc/pool.c
 * (which is compiled into this program with QUIRE_POOL_POINTS): all others must go on,
 * and a thread that wakes up too late must do no harm.
 */
#include "config.h"

#include "alloc/pool_impl.h"

#include "tests/run_suite.h"

#include <check.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

#define PAGES 8

/* A call on its own thread, which stops when it comes to `point` for the time `at`. */
struct caller {
	struct quire_pool *pool;
	enum quire_pool_point point;
	int at;
	bool takes;
	int64_t n;
	int32_t pages[PAGES];
	enum quire_status status;
	bool frozen;
	sem_t stopped; /* posted when the caller freezes, and when it ends */
	sem_t go_on;
	pthread_t thread;
};

static _Thread_local struct caller *self;

void quire_pool_point(enum quire_pool_point point)
{
	if (!self || point != self->point || --self->at != 0)
		return;
	self->frozen = true;
	sem_post(&self->stopped);
	sem_wait(&self->go_on);
}

static void *call(void *arg)
{
	struct caller *caller = arg;

	self = caller;
	if (caller->takes)
		caller->status =
			quire_pool_allocate(caller->pool, caller->n, caller->pages, NULL);
	else
		caller->status =
			quire_pool_free(caller->pool, caller->pages, caller->n, NULL);
	sem_post(&caller->stopped);
	return NULL;
}

/* Run a call up to its point: whether it stopped there. */
static bool freeze(struct caller *caller)
{
	sem_init(&caller->stopped, 0, 0);
	sem_init(&caller->go_on, 0, 0);
	ck_assert_int_eq(pthread_create(&caller->thread, NULL, call, caller), 0);
	sem_wait(&caller->stopped);
	return caller->frozen;
}

static enum quire_status finish(struct caller *caller)
{
	sem_post(&caller->go_on);
	pthread_join(caller->thread, NULL);
	sem_destroy(&caller->stopped);
	sem_destroy(&caller->go_on);
	return caller->status;
}

static void take(struct quire_pool *pool, int64_t n, int32_t *pages)
{
	ck_assert_int_eq(quire_pool_allocate(pool, n, pages, NULL), QUIRE_OK);
}

static void give(struct quire_pool *pool, int32_t page)
{
	ck_assert_int_eq(quire_pool_free(pool, &page, 1, NULL), QUIRE_OK);
}

/* A pool whose pages are all out. */
static struct quire_pool *empty_pool(void)
{
	struct quire_pool *pool;
	int32_t pages[PAGES];

	ck_assert_int_eq(quire_pool_create(PAGES, &pool), QUIRE_OK);
	take(pool, PAGES, pages);
	return pool;
}

static void ck_assert_free_pages(struct quire_pool *pool, const int32_t *expected,
                                 int32_t n)
{
	int32_t pages[PAGES];
	struct quire_refusal refusal;

	if (quire_pool_check(pool, pages, &refusal))
		ck_abort_msg("%s", refusal.what);
	ck_assert_int_eq(quire_pool_num_free(pool), n);
	for (int32_t i = 0; i < n; i++)
		ck_assert_int_eq(pages[i], expected[i]);
}

static void ck_end(struct quire_pool *pool)
{
	ck_assert_int_eq(quire_pool_check(pool, NULL, NULL), QUIRE_OK);
	quire_pool_destroy(pool);
}

/*
 * Pages 0 and 1 are free and the link between them waits for help (its own free is
 * frozen), so that takes and frees of others come through help too.  Page 7 is held by
 * `frozen`, 2 to 6 by this thread.
 */
static void go_on_beside(struct caller *frozen, struct caller *linker, int32_t *stopped)
{
	struct quire_pool *pool = empty_pool();
	int32_t pages[PAGES];

	give(pool, 0);
	*linker = (struct caller){.pool = pool,
	                          .point = POOL_POINT_APPENDED,
	                          .at = 1,
	                          .n = 1,
	                          .pages = {1}};
	ck_assert(freeze(linker));
	frozen->pool = pool;
	frozen->pages[0] = 7;
	frozen->pages[1] = 6;
	*stopped += freeze(frozen);
	for (int round = 0; round < 50; round++) {
		int32_t before = quire_pool_num_free(pool);

		ck_assert_int_eq(quire_pool_free(pool, (int32_t[]){2, 3}, 2, NULL),
		                 QUIRE_OK);
		give(pool, 4);
		ck_assert_int_eq(quire_pool_num_free(pool), before + 3);
		take(pool, before + 3, pages);
		ck_assert_int_eq(quire_pool_num_free(pool), 0);
		ck_assert_int_eq(pages[before], 2);
		ck_assert_int_eq(pages[before + 1], 3);
		ck_assert_int_eq(pages[before + 2], 4);
		for (int32_t i = 0; i < before; i++)
			give(pool, pages[i]);
	}
	ck_assert_int_eq(finish(frozen), QUIRE_OK);
	ck_assert_int_eq(finish(linker), QUIRE_OK);
	ck_end(pool);
}

START_TEST(others_go_on_beside_a_thread_frozen_at_any_point)
{
	int stopped[POOL_POINTS] = {0};

	for (int point = 0; point < POOL_POINTS; point++) {
		for (int k = 0; k < 4; k++) {
			struct caller frozen = {.point = (enum quire_pool_point)point,
			                        .at = 1 + k / 2,
			                        .takes = k % 2,
			                        .n = 2};
			struct caller linker;

			go_on_beside(&frozen, &linker, &stopped[point]);
		}
	}
	for (int point = 0; point < POOL_POINTS; point++)
		ck_assert_msg(stopped[point] > 0, "nothing stopped at point %d", point);
}
END_TEST

START_TEST(a_completed_free_is_not_hidden_behind_a_frozen_one)
{
	static const enum quire_pool_point points[] = {
		POOL_POINT_SEEN, POOL_POINT_CLAIMING, POOL_POINT_LOADED,
		POOL_POINT_RECORDED, POOL_POINT_APPENDED};

	for (size_t k = 0; k < sizeof(points) / sizeof(points[0]); k++) {
		struct quire_pool *pool = empty_pool();
		struct caller caller = {
			.pool = pool, .point = points[k], .at = 1, .n = 1, .pages = {5}};
		int32_t pages[2], appended = points[k] == POOL_POINT_APPENDED;

		ck_assert(freeze(&caller));
		give(pool, 3);
		ck_assert_int_eq(quire_pool_num_free(pool), 1 + appended);
		take(pool, 1 + appended, pages);
		ck_assert_int_eq(pages[appended], 3);
		ck_assert_int_eq(finish(&caller), QUIRE_OK);
		ck_end(pool);
	}
}
END_TEST

/* Both have seen the page owned; the claim decides. */
START_TEST(a_free_that_saw_the_page_owned_is_refused_when_it_comes_second)
{
	struct quire_pool *pool = empty_pool();
	struct caller late = {.pool = pool,
	                      .point = POOL_POINT_SEEN,
	                      .at = 1,
	                      .n = 3,
	                      .pages = {4, 5, 6}};

	for (int32_t k = 0; k < 3; k++) {
		int32_t pages[1];

		late.at = 1;
		late.frozen = false;
		ck_assert(freeze(&late));
		give(pool, 4 + k);
		ck_assert_int_eq(finish(&late), QUIRE_NOT_OWNED);
		ck_assert_free_pages(pool, (int32_t[]){4 + k}, 1);
		take(pool, 1, pages);
	}
	ck_assert_int_eq(quire_pool_free(pool, late.pages, 3, NULL), QUIRE_OK);
	ck_assert_free_pages(pool, late.pages, 3);
	ck_end(pool);
}
END_TEST

/*
 * The first pass only reads: the good pages of a bad batch stay their owner's at every
 * moment.
 */
START_TEST(a_plainly_bad_batch_claims_nothing)
{
	struct quire_pool *pool = empty_pool();
	struct caller caller = {.pool = pool,
	                        .point = POOL_POINT_CLAIMING,
	                        .at = 1,
	                        .n = 3,
	                        .pages = {5, 6, 0}};

	give(pool, 0);
	ck_assert(!freeze(&caller));
	ck_assert_int_eq(finish(&caller), QUIRE_NOT_OWNED);
	ck_assert_free_pages(pool, (int32_t[]){0}, 1);
	ck_end(pool);
}
END_TEST

/* The other way round: what a running free has claimed is refused to everybody. */
START_TEST(a_page_in_the_hands_of_a_running_free_is_not_owned)
{
	static const enum quire_pool_point points[] = {
		POOL_POINT_CLAIMING, POOL_POINT_LOADED, POOL_POINT_RECORDED,
		POOL_POINT_APPENDED};

	for (size_t k = 0; k < sizeof(points) / sizeof(points[0]); k++) {
		struct quire_pool *pool = empty_pool();
		struct caller caller = {.pool = pool,
		                        .point = points[k],
		                        .n = 2,
		                        .at = points[k] == POOL_POINT_CLAIMING ? 2 : 1,
		                        .pages = {5, 6}};
		struct quire_refusal refusal;

		ck_assert(freeze(&caller));
		for (int32_t page = 5; page <= 6; page++) {
			ck_assert_int_eq(
				quire_pool_free(pool, (int32_t[]){0, page}, 2, &refusal),
				QUIRE_NOT_OWNED);
			ck_assert_int_eq(refusal.page, page);
			ck_assert_int_eq(refusal.index, 1);
		}
		ck_assert_int_eq(finish(&caller), QUIRE_OK);
		ck_assert_free_pages(pool, (int32_t[]){5, 6}, 2);
		ck_end(pool);
	}
}
END_TEST

/* Page 0 leaves and comes back while a take is about to link it in its former life. */
START_TEST(a_late_helper_does_not_link_a_page_in_its_next_life)
{
	struct quire_pool *pool = empty_pool();
	struct caller linker = {.pool = pool,
	                        .point = POOL_POINT_APPENDED,
	                        .at = 1,
	                        .n = 1,
	                        .pages = {1}};
	struct caller helper = {.pool = pool,
	                        .point = POOL_POINT_HELP_CHECKED,
	                        .at = 1,
	                        .takes = true,
	                        .n = 2};
	int32_t pages[2];

	give(pool, 0);
	ck_assert(freeze(&linker));
	ck_assert(freeze(&helper));
	take(pool, 2, pages);
	give(pool, 0);
	ck_assert_int_eq(finish(&helper), QUIRE_NO_PAGES);
	ck_assert_free_pages(pool, (int32_t[]){0}, 1);
	ck_assert_int_eq(finish(&linker), QUIRE_OK);
	ck_assert_free_pages(pool, (int32_t[]){0}, 1);
	ck_end(pool);
}
END_TEST

/* The same, with the page back as the last of a batch that is not appended yet. */
START_TEST(a_late_linker_does_not_link_a_page_in_its_next_life)
{
	struct quire_pool *pool = empty_pool();
	struct caller linker = {.pool = pool,
	                        .point = POOL_POINT_APPENDED,
	                        .at = 1,
	                        .n = 1,
	                        .pages = {1}};
	struct caller again = {.pool = pool,
	                       .point = POOL_POINT_RECORDED,
	                       .at = 1,
	                       .n = 1,
	                       .pages = {0}};
	int32_t pages[2];

	give(pool, 0);
	ck_assert(freeze(&linker));
	take(pool, 2, pages);
	give(pool, 1);
	ck_assert(freeze(&again));
	ck_assert_int_eq(finish(&linker), QUIRE_OK);
	ck_assert_int_eq(finish(&again), QUIRE_OK);
	ck_assert_free_pages(pool, (int32_t[]){1, 0}, 2);
	ck_end(pool);
}
END_TEST

/*
 * Page 1 is the tail and its record still names page 0, long since linked and taken.
 * Page 0 is on its way back: a helper must see that its word is not the one recorded.
 */
START_TEST(help_leaves_alone_a_page_that_is_on_its_way_back)
{
	struct quire_pool *pool = empty_pool();
	struct caller caller = {
		.pool = pool, .point = POOL_POINT_LOADED, .at = 1, .n = 1, .pages = {0}};
	int32_t pages[1];

	give(pool, 0);
	give(pool, 1);
	take(pool, 1, pages);
	ck_assert_int_eq(pages[0], 0);
	ck_assert(freeze(&caller));
	give(pool, 2);
	ck_assert_int_eq(finish(&caller), QUIRE_OK);
	ck_assert_free_pages(pool, (int32_t[]){1, 2, 0}, 3);
	ck_end(pool);
}
END_TEST

/*
 * The same tail behind the same page twice, in batches with different first pages, and a
 * helper that has read half of the first record: it must not make a link out of both
 * halves.
 */
START_TEST(a_helper_does_not_believe_a_record_of_two_lives)
{
	struct quire_pool *pool = empty_pool();
	struct caller first = {.pool = pool,
	                       .point = POOL_POINT_APPENDED,
	                       .at = 1,
	                       .n = 2,
	                       .pages = {1, 2}};
	struct caller second = {.pool = pool,
	                        .point = POOL_POINT_APPENDED,
	                        .at = 1,
	                        .n = 2,
	                        .pages = {3, 2}};
	struct caller helper = {.pool = pool,
	                        .point = POOL_POINT_HELP_READ,
	                        .at = 1,
	                        .n = 1,
	                        .pages = {4}};
	int32_t pages[3];

	give(pool, 0);
	ck_assert(freeze(&first));
	ck_assert(freeze(&helper));
	take(pool, 3, pages);
	give(pool, 0);
	ck_assert(freeze(&second));
	ck_assert_int_eq(finish(&helper), QUIRE_OK);
	ck_assert_int_eq(finish(&first), QUIRE_OK);
	ck_assert_int_eq(finish(&second), QUIRE_OK);
	ck_assert_free_pages(pool, (int32_t[]){0, 3, 2, 4}, 4);
	ck_end(pool);
}
END_TEST

/*
 * The tail comes to be the tail again with the same count: only the takes tell the
 * states apart.
 */
START_TEST(a_free_notices_that_the_same_tail_is_not_the_same_state)
{
	struct quire_pool *pool = empty_pool();
	struct caller caller = {.pool = pool,
	                        .point = POOL_POINT_RECORDED,
	                        .at = 1,
	                        .n = 1,
	                        .pages = {5}};
	int32_t pages[1];

	give(pool, 0);
	ck_assert(freeze(&caller));
	take(pool, 1, pages);
	give(pool, 0);
	ck_assert_int_eq(finish(&caller), QUIRE_OK);
	ck_assert_free_pages(pool, (int32_t[]){0, 5}, 2);
	ck_end(pool);
}
END_TEST

/*
 * A take walked 0, 1; meanwhile the FIFO became 0, 2: same head, same count, another
 * run.
 */
START_TEST(a_take_notices_that_the_run_behind_its_head_is_another)
{
	struct quire_pool *pool = empty_pool();
	struct caller caller = {
		.pool = pool, .point = POOL_POINT_WALKED, .at = 1, .takes = true, .n = 1};
	int32_t pages[3];

	ck_assert_int_eq(quire_pool_free(pool, (int32_t[]){0, 1, 3}, 3, NULL), QUIRE_OK);
	ck_assert(freeze(&caller));
	take(pool, 3, pages);
	ck_assert_int_eq(quire_pool_free(pool, (int32_t[]){0, 2, 3}, 3, NULL), QUIRE_OK);
	ck_assert_int_eq(finish(&caller), QUIRE_OK);
	ck_assert_int_eq(caller.pages[0], 0);
	ck_assert_free_pages(pool, (int32_t[]){2, 3}, 2);
	ck_end(pool);
}
END_TEST

/* Only a free came between: the run stays, and the new head is looked up again. */
START_TEST(a_take_of_all_goes_on_when_more_pages_came)
{
	struct quire_pool *pool = empty_pool();
	struct caller caller = {
		.pool = pool, .point = POOL_POINT_WALKED, .at = 1, .takes = true, .n = 2};

	ck_assert_int_eq(quire_pool_free(pool, (int32_t[]){3, 1}, 2, NULL), QUIRE_OK);
	ck_assert(freeze(&caller));
	ck_assert_int_eq(quire_pool_free(pool, (int32_t[]){6, 0}, 2, NULL), QUIRE_OK);
	ck_assert_int_eq(finish(&caller), QUIRE_OK);
	ck_assert_int_eq(caller.pages[0], 3);
	ck_assert_int_eq(caller.pages[1], 1);
	ck_assert_free_pages(pool, (int32_t[]){6, 0}, 2);
	ck_end(pool);
}
END_TEST

START_TEST(a_take_is_refused_when_its_pages_went_to_another)
{
	struct quire_pool *pool = empty_pool();
	struct caller caller = {.pool = pool,
	                        .point = POOL_POINT_WALKED,
	                        .at = 1,
	                        .takes = true,
	                        .n = 2,
	                        .pages = {-7, -7}};
	int32_t pages[1];

	ck_assert_int_eq(quire_pool_free(pool, (int32_t[]){3, 1}, 2, NULL), QUIRE_OK);
	ck_assert(freeze(&caller));
	take(pool, 1, pages);
	ck_assert_int_eq(finish(&caller), QUIRE_NO_PAGES);
	ck_assert_int_eq(caller.pages[0], -7);
	ck_assert_int_eq(caller.pages[1], -7);
	ck_assert_free_pages(pool, (int32_t[]){1}, 1);
	ck_end(pool);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("pool, frozen threads");
	TCase *tcase = tcase_create("all");

	tcase_add_test(tcase, others_go_on_beside_a_thread_frozen_at_any_point);
	tcase_add_test(tcase, a_completed_free_is_not_hidden_behind_a_frozen_one);
	tcase_add_test(tcase,
	               a_free_that_saw_the_page_owned_is_refused_when_it_comes_second);
	tcase_add_test(tcase, a_plainly_bad_batch_claims_nothing);
	tcase_add_test(tcase, a_page_in_the_hands_of_a_running_free_is_not_owned);
	tcase_add_test(tcase, a_late_helper_does_not_link_a_page_in_its_next_life);
	tcase_add_test(tcase, a_late_linker_does_not_link_a_page_in_its_next_life);
	tcase_add_test(tcase, help_leaves_alone_a_page_that_is_on_its_way_back);
	tcase_add_test(tcase, a_helper_does_not_believe_a_record_of_two_lives);
	tcase_add_test(tcase, a_free_notices_that_the_same_tail_is_not_the_same_state);
	tcase_add_test(tcase, a_take_notices_that_the_run_behind_its_head_is_another);
	tcase_add_test(tcase, a_take_of_all_goes_on_when_more_pages_came);
	tcase_add_test(tcase, a_take_is_refused_when_its_pages_went_to_another);
	tcase_set_timeout(tcase, 10);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
