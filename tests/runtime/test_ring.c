/* SPDX-License-Identifier: MIT */
/* Lists of pages on their way: kept in order, refused when there is no room, never
 * written over before they are ended; a thread puts while another gets. */
#include "config.h"

#include "runtime/cmd/ring_impl.h"

#include "tests/run_suite.h"

#include <check.h>
#include <pthread.h>
#include <stdlib.h>

#define MANY 3000

static struct cmd_ring *ring;
static int32_t *pages; /* [CMD_RING_PAGES]: 0, 1, ... */

static void setup(void)
{
	ring = cmd_ring_create();
	pages = malloc(CMD_RING_PAGES * sizeof(*pages));
	for (int32_t i = 0; i < CMD_RING_PAGES; i++)
		pages[i] = i;
}

static void teardown(void)
{
	cmd_ring_destroy(ring);
	free(pages);
}

/* A key's list is [first, first + num). */
static void has(uint64_t key, int32_t first, int32_t num)
{
	int32_t got = -1, wrong = 0;
	const int32_t *list = cmd_ring_get(ring, key, &got);

	ck_assert(list != NULL);
	ck_assert_int_eq(got, num);
	for (int32_t i = 0; i < num; i++)
		wrong += list[i] != first + i;
	ck_assert_int_eq(wrong, 0);
}

static bool is_kept(uint64_t key)
{
	int32_t num;

	return cmd_ring_get(ring, key, &num) != NULL;
}

START_TEST(lists_are_kept_by_their_keys)
{
	cmd_ring_put(ring, 3, pages, 5);
	cmd_ring_put(ring, 4, pages, 0);
	cmd_ring_put(ring, 9, pages + 5, 7);
	has(3, 0, 5);
	has(4, 0, 0);
	has(9, 5, 7);
	ck_assert(!is_kept(0) && !is_kept(5) && !is_kept(3 + CMD_RING_KEYS));
	cmd_ring_end(ring, 0); /* nobody's */
	cmd_ring_end(ring, 5);
	has(9, 5, 7);
}
END_TEST

START_TEST(a_full_ring_keeps_no_more_until_some_are_ended)
{
	cmd_ring_put(ring, 1, pages, CMD_RING_PAGES / 2);
	ck_assert(!cmd_ring_is_tight(ring));
	cmd_ring_put(ring, 2, pages, CMD_RING_PAGES / 2);
	ck_assert(cmd_ring_is_tight(ring));
	cmd_ring_put(ring, 3, pages + 7, 1);
	ck_assert(!is_kept(3));
	cmd_ring_end(ring, 3); /* what was not kept ends nothing */
	cmd_ring_put(ring, 4, pages + 7, 1);
	ck_assert(!is_kept(4));
	has(1, 0, CMD_RING_PAGES / 2);
	cmd_ring_end(ring, 1);
	ck_assert(!cmd_ring_is_tight(ring));
	cmd_ring_put(ring, 5, pages + 7, 3);
	has(5, 7, 3);
	has(2, 0, CMD_RING_PAGES / 2);
}
END_TEST

START_TEST(a_list_lies_in_one_piece)
{
	cmd_ring_put(ring, 1, pages, CMD_RING_PAGES - 2);
	cmd_ring_end(ring, 1);
	cmd_ring_put(ring, 2, pages, 5);
	has(2, 0, 5);
	cmd_ring_put(ring, 3, pages, CMD_RING_PAGES - 7);
	has(3, 0, CMD_RING_PAGES - 7);
	has(2, 0, 5);
	cmd_ring_put(ring, 4, pages, 1);
	ck_assert(!is_kept(4)); /* the two that were passed over are of list 2 */
	cmd_ring_end(ring, 2);
	cmd_ring_put(ring, 5, pages, 5);
	has(5, 0, 5);
}
END_TEST

/* Lists of another length each; the putter goes on when the getter has ended some. */
static _Atomic uint64_t newest, done;

static void *put_many(void *argument)
{
	(void)argument;
	for (uint64_t key = 1; key <= MANY; key++) {
		while (key > atomic_load(&done) + 100)
			;
		cmd_ring_put(ring, key, pages + key, (int32_t)(key * 37 % 30000));
		atomic_store_explicit(&newest, key, memory_order_release);
	}
	return NULL;
}

START_TEST(one_thread_puts_while_another_gets)
{
	pthread_t thread;

	ck_assert(pthread_create(&thread, NULL, put_many, NULL) == 0);
	for (uint64_t key = 1; key <= MANY; key++) {
		while (atomic_load_explicit(&newest, memory_order_acquire) < key)
			;
		has(key, (int32_t)key, (int32_t)(key * 37 % 30000));
		cmd_ring_end(ring, key);
		atomic_store(&done, key);
	}
	pthread_join(thread, NULL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ring");
	TCase *test_case = tcase_create("ring");

	tcase_add_checked_fixture(test_case, setup, teardown);
	tcase_add_test(test_case, lists_are_kept_by_their_keys);
	tcase_add_test(test_case, a_full_ring_keeps_no_more_until_some_are_ended);
	tcase_add_test(test_case, a_list_lies_in_one_piece);
	tcase_add_test(test_case, one_thread_puts_while_another_gets);
	suite_add_tcase(suite, test_case);
	return run_suite(suite);
}
