/* SPDX-License-Identifier: MIT */
/*
 * Pools from inside: the words of the FIFO, what it counts beyond its fields' limits,
 * and every rule that quire_pool_check names.
 */
#include "config.h"

#include "alloc/pool_impl.h"
#include "tests/alloc/fifo_model.h"
#include "tests/run_suite.h"

#include <check.h>

#define UNTOUCHED (-77)
#define PAGES     (2 * FIFO_GROUP + 4)

static struct quire_pool *pool_of(int64_t num_pages, enum quire_pool_kind kind)
{
	struct quire_pool *pool = NULL;

	ck_assert_int_eq(quire_pool_create_kind(num_pages, kind, &pool), QUIRE_OK);
	return pool;
}

static void give(struct quire_pool *pool, int32_t first, int32_t n)
{
	int32_t pages[PAGES];

	for (int32_t i = 0; i < n; i++)
		pages[i] = first + i;
	ck_assert_int_eq(quire_pool_free(pool, pages, n, NULL), QUIRE_OK);
}

/*
 * Three groups: pages 1 .. FIFO_GROUP - 1, of which page 0 has been taken; three pages:
 * a leaf, a branch and a root; and one.  The link from the second to the third is not
 * made yet, and all that follows is owned.
 */
#define LEAF_TWO   FIFO_GROUP
#define BRANCH_TWO (FIFO_GROUP + 1)
#define ROOT_ONE   (FIFO_GROUP - 1)
#define ROOT_TWO   (FIFO_GROUP + 2)
#define ROOT_THREE (FIFO_GROUP + 3)
#define OWNED      (FIFO_GROUP + 4)
#define NUM_FREE   (FIFO_GROUP + 3)

static struct quire_pool *three_groups(enum quire_pool_kind kind)
{
	struct quire_pool *pool = pool_of(PAGES, kind);
	int32_t pages[PAGES];

	ck_assert(quire_pool_try_allocate(pool, PAGES, pages));
	give(pool, 0, FIFO_GROUP);
	give(pool, LEAF_TWO, 3);
	give(pool, ROOT_THREE, 1);
	ck_assert(quire_pool_try_allocate(pool, 1, pages));
	ck_assert_int_eq(pages[0], 0);
	for (int32_t i = 0; i < NUM_FREE; i++)
		pages[i] = 1 + i;
	ck_assert_free_pages(pool, pages, NUM_FREE);
	return pool;
}

static void ck_assert_broken(const struct quire_pool *pool, const char *rule,
                             int32_t page)
{
	struct quire_refusal refusal = {0};
	int32_t pages[PAGES] = {UNTOUCHED};

	ck_assert_int_eq(quire_pool_check(pool, pages, &refusal), QUIRE_BROKEN);
	ck_assert_int_eq(refusal.status, QUIRE_BROKEN);
	ck_assert_str_eq(refusal.what, rule);
	ck_assert_int_eq(refusal.page, page);
	ck_assert_int_eq(pages[0], UNTOUCHED);
	ck_assert_int_eq(quire_pool_check(pool, NULL, NULL), QUIRE_BROKEN);
}

static void ck_end(struct quire_pool *pool)
{
	ck_assert_int_eq(quire_pool_check(pool, NULL, NULL), QUIRE_OK);
	quire_pool_destroy(pool);
}

#ifdef QUIRE_HAVE_CAS128

/* ------------------------------------------------------------------ words */

static void set_state(struct quire_pool *pool, struct fifo_state s)
{
	atomic_store(&pool->fifo.state[0], s.lo);
	atomic_store(&pool->fifo.state[1], s.hi);
}

static struct fifo_state get_state(const struct quire_pool *pool)
{
	return (struct fifo_state){.lo = atomic_load(&pool->fifo.state[0]),
	                           .hi = atomic_load(&pool->fifo.state[1])};
}

static const uint64_t takes_at_limits[] = {0, 1, FIFO_MASK(FIFO_TAKES_LO_BITS),
                                           FIFO_MASK(FIFO_TAKES_LO_BITS) + 1,
                                           FIFO_MASK(FIFO_TAKES_BITS)};

START_TEST(the_state_word_keeps_every_field_apart)
{
	static const uint32_t pages[] = {0, 1, 0x555555, QUIRE_PAGES_MAX - 1};
	static const uint32_t skips[] = {0, 1, FIFO_MASK(FIFO_SKIP_BITS)};
	static const uint32_t counts[] = {0, 1, QUIRE_PAGES_MAX - 1, QUIRE_PAGES_MAX};

	for (int i = 0; i < 5 * 4 * 4 * 4 * 3; i++) {
		uint64_t takes = takes_at_limits[i % 5];
		uint32_t root = pages[i / 5 % 4], tail = pages[i / 20 % 4];
		uint32_t count = counts[i / 80 % 4], skip = skips[i / 320];
		struct fifo_state s =
			state_make((struct fifo_place){root, skip}, tail, count, takes);

		ck_assert_uint_eq(state_head(s).root, root);
		ck_assert_uint_eq(state_head(s).skip, skip);
		ck_assert_uint_eq(state_tail(s), tail);
		ck_assert_uint_eq(state_count(s), count);
		ck_assert_uint_eq(state_takes(s), takes);
	}
}
END_TEST

START_TEST(a_root_word_keeps_every_field_apart)
{
	static const uint32_t sizes[] = {1, 2, FIFO_GROUP};

	for (int i = 0; i < 5 * 3; i++) {
		uint64_t takes = takes_at_limits[i % 5];
		uint32_t size = sizes[i / 5], next = (uint32_t)takes % QUIRE_PAGES_MAX;
		uint64_t last = word_last(takes, size), link = word_link(next, size);

		ck_assert(word_is_last(last) && !word_is_link(last));
		ck_assert(word_is_link(link) && !word_is_last(link));
		ck_assert_uint_eq(word_size(last), size);
		ck_assert_uint_eq(word_size(link), size);
		ck_assert_uint_eq(word_value(last), takes);
		ck_assert_uint_eq(word_value(link), next);
	}
}
END_TEST

/* A slot of a branch holds a pair of ids, in the order in which an array would. */
START_TEST(two_page_ids_are_no_word)
{
	const int32_t pairs[][2] = {{0, 0},
	                            {QUIRE_PAGES_MAX - 1, 0},
	                            {0, QUIRE_PAGES_MAX - 1},
	                            {QUIRE_PAGES_MAX - 1, QUIRE_PAGES_MAX - 1}};

	for (int i = 0; i < 4; i++) {
		uint64_t slot;

		memcpy(&slot, pairs[i], sizeof(slot));
		ck_assert(!word_is_last(slot));
		ck_assert(!word_is_link(slot));
	}
}
END_TEST

START_TEST(the_newer_word_is_newer_across_the_end_of_the_counter_too)
{
	uint64_t end = FIFO_MASK(FIFO_TAKES_BITS);

	for (int i = 0; i < 5; i++) {
		uint64_t takes = takes_at_limits[i];
		uint64_t old = word_last(takes, 1);

		for (uint64_t later = 1; later < end / 2; later = later * 5 + 1) {
			uint64_t word = word_last((takes + later) & end, FIFO_GROUP);

			ck_assert(word_is_newer(word, old));
			ck_assert(!word_is_newer(old, word));
		}
		ck_assert(!word_is_newer(word_last(takes, FIFO_GROUP), old));
	}
}
END_TEST

/* Takes and frees at random; `takes` is raised by each take of the model's. */
static void random_round(struct quire_pool *pool, struct fifo_model *model,
                         uint64_t *seed, uint64_t *takes)
{
	int32_t pages[MODEL_PAGES_MOST], expected[MODEL_PAGES_MOST];
	int32_t n = model_batch(model->num_free, seed);

	ck_assert(quire_pool_try_allocate(pool, n, pages));
	model_take(model, n, expected);
	ck_assert_pages(pages, expected, n);
	model_hold(model, pages, n);
	*takes += n > 0;
	n = model_batch(model->num_held, seed);
	model_pick(model, n, seed, pages);
	ck_assert_int_eq(quire_pool_free(pool, pages, n, NULL), QUIRE_OK);
	model_give(model, pages, n);
	ck_assert_pool_is(pool, model);
}

/* Takes are counted in two fields: nothing is lost between them, nor at the end. */
START_TEST(takes_are_counted_past_their_limits)
{
	static const uint64_t limits[] = {FIFO_MASK(FIFO_TAKES_LO_BITS),
	                                  FIFO_MASK(FIFO_TAKES_BITS)};
	uint64_t seed = 55;

	for (int i = 0; i < 2 * 50; i++) {
		uint64_t takes = limits[i % 2] - (uint64_t)(i / 2);
		struct quire_pool *pool = pool_of(PAGES, QUIRE_POOL_LOCK_FREE);
		struct fifo_model model;
		int32_t pages[PAGES];

		model_init(&model, PAGES);
		ck_assert(quire_pool_try_allocate(pool, PAGES, pages));
		model_take(&model, PAGES, pages);
		model_hold(&model, pages, PAGES);
		set_state(pool, state_make((struct fifo_place){0, 0}, 0, 0, takes));
		for (int round = 0; round < 100; round++)
			random_round(pool, &model, &seed, &takes);
		ck_assert_uint_eq(state_takes(get_state(pool)),
		                  takes & FIFO_MASK(FIFO_TAKES_BITS));
		ck_end(pool);
	}
}
END_TEST

/* ------------------------------------------------- damage, lock-free kind */

static struct quire_pool *three_lock_free_groups(void)
{
	return three_groups(QUIRE_POOL_LOCK_FREE);
}

/* Put a word into a slot of a page, see what the check says, and put back the old. */
static void break_slot(struct quire_pool *pool, int32_t page, int slot, uint64_t word,
                       const char *rule, int32_t named)
{
	_Atomic uint64_t *place = &pool->fifo.node[page].slot[slot];
	uint64_t was = atomic_exchange(place, word);

	ck_assert_uint_ne(word, was);
	ck_assert_broken(pool, rule, named);
	atomic_store(place, was);
	ck_assert_int_eq(quire_pool_check(pool, NULL, NULL), QUIRE_OK);
}

/* The same with the state. */
static void break_state(struct quire_pool *pool, int32_t head, uint32_t skip,
                        int32_t tail, int32_t count, const char *rule, int32_t named)
{
	struct fifo_state was = get_state(pool);
	struct fifo_place place = {(uint32_t)head, skip};

	set_state(pool,
	          state_make(place, (uint32_t)tail, (uint32_t)count, state_takes(was)));
	ck_assert_broken(pool, rule, named);
	set_state(pool, was);
	ck_assert_int_eq(quire_pool_check(pool, NULL, NULL), QUIRE_OK);
}

/* The same with one id of a list of pairs. */
static void break_id(struct quire_pool *pool, int32_t page, int slot, int32_t id,
                     const char *rule, int32_t named)
{
	uint64_t word = atomic_load(&pool->fifo.node[page].slot[slot]);

	memcpy(&word, &id, sizeof(id));
	break_slot(pool, page, slot, word, rule, named);
}

START_TEST(the_check_names_a_state_that_names_no_page)
{
	struct quire_pool *pool = three_lock_free_groups();
	static const char rule[] = "the state names pages of the pool";

	break_state(pool, PAGES, 1, ROOT_THREE, NUM_FREE, rule, PAGES);
	break_state(pool, ROOT_ONE, 1, PAGES, NUM_FREE, rule, ROOT_ONE);
	break_state(pool, ROOT_ONE, 1, ROOT_THREE, PAGES + 1, rule, ROOT_ONE);
	ck_end(pool);
}
END_TEST

START_TEST(an_empty_pool_has_a_state_that_names_anything)
{
	struct quire_pool *pool = pool_of(PAGES, QUIRE_POOL_LOCK_FREE);
	int32_t pages[PAGES];

	ck_assert(quire_pool_try_allocate(pool, PAGES, pages));
	set_state(pool, state_make((struct fifo_place){PAGES, 63}, PAGES, 0, 1));
	ck_assert_int_eq(quire_pool_check(pool, pages, NULL), QUIRE_OK);
	give(pool, 3, 2);
	ck_assert_free_pages(pool, (int32_t[]){3, 4}, 2);
	ck_end(pool);
}
END_TEST

START_TEST(the_check_names_a_group_without_a_root)
{
	struct quire_pool *pool = three_lock_free_groups();
	static const char rule[] = "a group has a root";
	uint64_t pair = atomic_load(&pool->fifo.node[BRANCH_TWO].slot[0]);
	uint64_t word = word_link(ROOT_TWO, FIFO_GROUP);

	break_slot(pool, ROOT_ONE, NODE_WORD, 0, rule, ROOT_ONE);
	break_slot(pool, ROOT_ONE, NODE_WORD, word & ~WORD_ROOT, rule, ROOT_ONE);
	break_slot(pool, ROOT_ONE, NODE_WORD, word_link(ROOT_TWO, FIFO_GROUP + 1), rule,
	           ROOT_ONE);
	break_slot(pool, ROOT_ONE, NODE_WORD, word_link(ROOT_TWO, 1), rule, ROOT_ONE);
	break_slot(pool, ROOT_TWO, NODE_WORD, pair, rule, ROOT_TWO);
	break_slot(pool, ROOT_THREE, NODE_WORD, word_last(1, 0), rule, ROOT_THREE);
	break_state(pool, ROOT_ONE, FIFO_GROUP, ROOT_THREE, NUM_FREE, rule, ROOT_ONE);
	ck_end(pool);
}
END_TEST

START_TEST(the_check_names_groups_that_hold_more_than_is_free)
{
	struct quire_pool *pool = three_lock_free_groups();
	static const char rule[] = "the groups hold as many pages as are free";

	break_state(pool, ROOT_ONE, 1, ROOT_THREE, NUM_FREE - 2, rule, ROOT_TWO);
	break_state(pool, ROOT_ONE, 1, ROOT_THREE, 1, rule, ROOT_ONE);
	break_slot(pool, ROOT_THREE, NODE_WORD, word_last(1, 2), rule, ROOT_THREE);
	ck_end(pool);
}
END_TEST

START_TEST(the_check_names_a_group_that_is_not_linked_to_the_next)
{
	struct quire_pool *pool = three_lock_free_groups();
	static const char rule[] = "a group is linked to the next";
	uint64_t record = (uint64_t)ROOT_ONE << 32 | ROOT_THREE;

	break_slot(pool, ROOT_ONE, NODE_WORD, word_last(1, FIFO_GROUP), rule, ROOT_ONE);
	break_slot(pool, ROOT_ONE, NODE_WORD, word_link(PAGES, FIFO_GROUP), rule,
	           ROOT_ONE);
	break_slot(pool, ROOT_THREE, NODE_RECORD, record, rule, ROOT_TWO);
	record = (uint64_t)ROOT_TWO << 32 | PAGES;
	break_slot(pool, ROOT_THREE, NODE_RECORD, record, rule, ROOT_TWO);
	break_state(pool, ROOT_ONE, 1, ROOT_THREE, NUM_FREE + 1, rule, ROOT_THREE);
	ck_end(pool);
}
END_TEST

START_TEST(the_check_names_a_last_group_with_a_link)
{
	struct quire_pool *pool = three_lock_free_groups();
	static const char rule[] = "the last group has no link";

	break_slot(pool, ROOT_THREE, NODE_WORD, word_link(ROOT_ONE, 1), rule, ROOT_THREE);
	break_slot(pool, ROOT_THREE, NODE_WORD, word_link(OWNED, 1), rule, ROOT_THREE);
	ck_end(pool);
}
END_TEST

START_TEST(the_check_names_a_walk_that_ends_before_the_tail)
{
	struct quire_pool *pool = three_lock_free_groups();
	static const char rule[] = "the walk ends at the tail";

	break_state(pool, ROOT_ONE, 1, ROOT_THREE, NUM_FREE - 1, rule, ROOT_TWO);
	break_state(pool, ROOT_ONE, 0, ROOT_THREE, NUM_FREE, rule, ROOT_TWO);
	atomic_store(&pool->fifo.node[ROOT_TWO].slot[NODE_WORD],
	             word_link(ROOT_THREE, 3));
	break_state(pool, ROOT_ONE, 1, ROOT_TWO, NUM_FREE, rule, ROOT_THREE);
	ck_end(pool);
}
END_TEST

START_TEST(the_check_names_a_group_from_the_future)
{
	struct quire_pool *pool = three_lock_free_groups();
	uint64_t takes = state_takes(get_state(pool));

	break_slot(pool, ROOT_THREE, NODE_WORD, word_last(takes + 1, 1),
	           "no group is newer than the pool", ROOT_THREE);
	ck_end(pool);
}
END_TEST

START_TEST(the_check_names_what_is_no_page_in_a_group)
{
	struct quire_pool *pool = three_lock_free_groups();
	static const char rule[] = "what is free is a page of the pool";

	break_id(pool, BRANCH_TWO, 0, PAGES, rule, PAGES);
	break_id(pool, BRANCH_TWO, 0, -1, rule, -1);
	break_id(pool, ROOT_TWO, NODE_BRANCHES, PAGES, rule, PAGES);
	break_id(pool, ROOT_TWO, NODE_BRANCHES, INT32_MIN, rule, INT32_MIN);
	ck_end(pool);
}
END_TEST

START_TEST(the_check_names_a_page_that_is_free_twice)
{
	struct quire_pool *pool = three_lock_free_groups();
	static const char rule[] = "a page is free once";

	break_id(pool, BRANCH_TWO, 0, 1, rule, 1);
	break_id(pool, BRANCH_TWO, 0, BRANCH_TWO, rule, BRANCH_TWO);
	break_id(pool, BRANCH_TWO, 0, ROOT_THREE, rule, ROOT_THREE);
	ck_end(pool);
}
END_TEST

START_TEST(the_check_names_a_page_that_is_neither_or_both)
{
	struct quire_pool *pool = three_lock_free_groups();
	static const char rule[] = "a page is free or owned";

	break_id(pool, BRANCH_TWO, 0, OWNED, rule, LEAF_TWO);
	for (int32_t page = 0; page < PAGES; page++) {
		_Atomic uint8_t *owned = &pool->fifo.owned[page];

		atomic_store(owned, !atomic_load(owned));
		ck_assert_broken(pool, rule, page);
		atomic_store(owned, !atomic_load(owned));
	}
	ck_end(pool);
}
END_TEST

static void add_lock_free_tests(TCase *tcase)
{
	tcase_add_test(tcase, the_state_word_keeps_every_field_apart);
	tcase_add_test(tcase, a_root_word_keeps_every_field_apart);
	tcase_add_test(tcase, two_page_ids_are_no_word);
	tcase_add_test(tcase, the_newer_word_is_newer_across_the_end_of_the_counter_too);
	tcase_add_test(tcase, takes_are_counted_past_their_limits);
	tcase_add_test(tcase, the_check_names_a_state_that_names_no_page);
	tcase_add_test(tcase, an_empty_pool_has_a_state_that_names_anything);
	tcase_add_test(tcase, the_check_names_a_group_without_a_root);
	tcase_add_test(tcase, the_check_names_groups_that_hold_more_than_is_free);
	tcase_add_test(tcase, the_check_names_a_group_that_is_not_linked_to_the_next);
	tcase_add_test(tcase, the_check_names_a_last_group_with_a_link);
	tcase_add_test(tcase, the_check_names_a_walk_that_ends_before_the_tail);
	tcase_add_test(tcase, the_check_names_a_group_from_the_future);
	tcase_add_test(tcase, the_check_names_what_is_no_page_in_a_group);
	tcase_add_test(tcase, the_check_names_a_page_that_is_free_twice);
	tcase_add_test(tcase, the_check_names_a_page_that_is_neither_or_both);
}

#else

static void add_lock_free_tests(TCase *tcase)
{
	(void)tcase;
}

#endif

/* ----------------------------------------------- damage, kind with a lock */

START_TEST(the_check_names_every_damage_of_a_ring)
{
	struct quire_pool *pool = three_groups(QUIRE_POOL_LOCKED);
	struct quire_lock_fifo *fifo = &pool->lock_fifo;
	static const char state[] = "the state names pages of the pool";
	uint32_t head = fifo->head, count = quire_lock_fifo_count(fifo);
	int32_t *oldest = &fifo->ring[head];
	int32_t was = *oldest;

	fifo->head = PAGES;
	ck_assert_broken(pool, state, PAGES);
	fifo->head = head;
	atomic_store(&fifo->count, PAGES + 1);
	ck_assert_broken(pool, state, (int32_t)head);
	atomic_store(&fifo->count, count);
	*oldest = PAGES;
	ck_assert_broken(pool, "what is free is a page of the pool", PAGES);
	*oldest = -1;
	ck_assert_broken(pool, "what is free is a page of the pool", -1);
	*oldest = ROOT_TWO;
	ck_assert_broken(pool, "a page is free once", ROOT_TWO);
	*oldest = OWNED;
	ck_assert_broken(pool, "a page is free or owned", was);
	*oldest = was;
	for (int32_t page = 0; page < PAGES; page++) {
		fifo->owned[page] = !fifo->owned[page];
		ck_assert_broken(pool, "a page is free or owned", page);
		fifo->owned[page] = !fifo->owned[page];
	}
	ck_end(pool);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("pool from inside");
	TCase *tcase = tcase_create("all");

	add_lock_free_tests(tcase);
	tcase_add_test(tcase, the_check_names_every_damage_of_a_ring);
	tcase_set_timeout(tcase, 60);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
