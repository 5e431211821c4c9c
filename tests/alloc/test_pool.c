/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "alloc/pool_impl.h"
#include "tests/alloc/random.h"
#include "tests/run_suite.h"

#include <check.h>

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define PAGES_MOST 64
#define UNTOUCHED  (-77)

/* The FIFO as a list in an array: what the pool must be at every moment. */
struct model {
	int32_t num_pages;
	int32_t num_free;
	int32_t num_held;
	int32_t free[PAGES_MOST];
	int32_t held[PAGES_MOST];
};

static struct quire_pool *pool_of(int64_t num_pages)
{
	struct quire_pool *pool = NULL;

	ck_assert_int_eq(quire_pool_create(num_pages, &pool), QUIRE_OK);
	ck_assert_ptr_nonnull(pool);
	return pool;
}

static void model_init(struct model *model, int32_t num_pages)
{
	*model = (struct model){.num_pages = num_pages, .num_free = num_pages};
	for (int32_t p = 0; p < num_pages; p++)
		model->free[p] = p;
}

static void model_take(struct model *model, int32_t n)
{
	memcpy(&model->held[model->num_held], model->free, (size_t)n * sizeof(int32_t));
	model->num_held += n;
	model->num_free -= n;
	memmove(model->free, &model->free[n], (size_t)model->num_free * sizeof(int32_t));
}

/* The last n held pages go back. */
static void model_free(struct model *model, int32_t n)
{
	model->num_held -= n;
	memcpy(&model->free[model->num_free], &model->held[model->num_held],
	       (size_t)n * sizeof(int32_t));
	model->num_free += n;
}

static void ck_assert_pool_is(const struct quire_pool *pool, const struct model *model)
{
	int32_t pages[PAGES_MOST];
	struct quire_refusal refusal;

	ck_assert_int_eq(quire_pool_check(pool, pages, &refusal), QUIRE_OK);
	ck_assert_int_eq(quire_pool_num_free(pool), model->num_free);
	ck_assert_int_eq(quire_pool_num_pages(pool), model->num_pages);
	for (int32_t i = 0; i < model->num_free; i++)
		ck_assert_int_eq(pages[i], model->free[i]);
}

START_TEST(a_new_pool_hands_out_its_pages_in_order)
{
	static const int32_t sizes[] = {1, 2, 3, 63, 64};
	int32_t pages[PAGES_MOST];

	for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
		struct quire_pool *pool = pool_of(sizes[k]);
		struct model model;

		model_init(&model, sizes[k]);
		ck_assert_pool_is(pool, &model);
		ck_assert(quire_pool_try_allocate(pool, sizes[k], pages));
		for (int32_t i = 0; i < sizes[k]; i++)
			ck_assert_int_eq(pages[i], i);
		model_take(&model, sizes[k]);
		ck_assert_pool_is(pool, &model);
		quire_pool_destroy(pool);
	}
}
END_TEST

START_TEST(create_refuses_sizes_out_of_range)
{
	static const int64_t sizes[] = {0,         -1,
	                                INT64_MIN, (int64_t)QUIRE_PAGES_MAX + 1,
	                                INT64_MAX, (int64_t)UINT32_MAX + 2};
	struct quire_pool *pool = (struct quire_pool *)&pool;

	for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
		ck_assert_int_eq(quire_pool_create(sizes[k], &pool), QUIRE_INVALID);
		ck_assert_ptr_eq(pool, &pool);
	}
	quire_pool_destroy(NULL);
}
END_TEST

START_TEST(the_largest_pool_works_at_both_ends)
{
	struct quire_pool *pool = pool_of(QUIRE_PAGES_MAX);
	int32_t *pages = malloc(QUIRE_PAGES_MAX * sizeof(*pages));

	ck_assert_ptr_nonnull(pages);
	ck_assert_int_eq(quire_pool_num_free(pool), QUIRE_PAGES_MAX);
	ck_assert(quire_pool_try_allocate(pool, QUIRE_PAGES_MAX, pages));
	ck_assert_int_eq(quire_pool_num_free(pool), 0);
	ck_assert_int_eq(pages[QUIRE_PAGES_MAX - 1], QUIRE_PAGES_MAX - 1);
	ck_assert_int_eq(quire_pool_free(pool, &pages[QUIRE_PAGES_MAX - 1], 1, NULL),
	                 QUIRE_OK);
	ck_assert(quire_pool_try_allocate(pool, 1, pages));
	ck_assert_int_eq(pages[0], QUIRE_PAGES_MAX - 1);
	free(pages);
	quire_pool_destroy(pool);
}
END_TEST

START_TEST(nothing_asked_and_nothing_given_succeed)
{
	struct quire_pool *pool = pool_of(1);
	int32_t page;

	for (int round = 0; round < 2; round++) {
		ck_assert_int_eq(quire_pool_allocate(pool, 0, NULL, NULL), QUIRE_OK);
		ck_assert(quire_pool_try_allocate(pool, 0, NULL));
		ck_assert_int_eq(quire_pool_free(pool, NULL, 0, NULL), QUIRE_OK);
		ck_assert_int_eq(quire_pool_num_free(pool), 1 - round);
		ck_assert_int_eq(quire_pool_try_allocate(pool, 1, &page), round == 0);
	}
	quire_pool_destroy(pool);
}
END_TEST

/* Ask for n, which must be refused, and see that nothing at all has changed. */
static void refuse_take(struct quire_pool *pool, const struct model *model, int64_t n)
{
	bool known = n >= 0 && n <= model->num_pages;
	struct quire_refusal refusal = {0};
	int32_t pages[PAGES_MOST];
	enum quire_status status;

	for (int32_t i = 0; i < PAGES_MOST; i++)
		pages[i] = UNTOUCHED;
	status = quire_pool_allocate(pool, n, pages, &refusal);
	ck_assert_int_eq(status, known ? QUIRE_NO_PAGES : QUIRE_INVALID);
	ck_assert_int_eq(refusal.status, status);
	ck_assert_ptr_nonnull(refusal.what);
	if (known) {
		ck_assert_int_eq(refusal.requested, n);
		ck_assert_int_eq(refusal.available, model->num_free);
	} else {
		ck_assert_int_eq(refusal.got, n);
		ck_assert_int_eq(refusal.expected, model->num_pages);
		ck_assert_int_eq(refusal.index, -1);
	}
	ck_assert(!quire_pool_try_allocate(pool, n, pages));
	for (int32_t i = 0; i < PAGES_MOST; i++)
		ck_assert_int_eq(pages[i], UNTOUCHED);
	ck_assert_pool_is(pool, model);
}

START_TEST(a_take_that_does_not_fit_is_refused_whole)
{
	static const int64_t asked[] = {-1,
	                                INT64_MIN,
	                                5,
	                                INT64_MAX,
	                                (int64_t)UINT32_MAX + 1,
	                                (int64_t)UINT32_MAX + 2};
	struct quire_pool *pool = pool_of(4);
	struct model model;
	int32_t pages[4];

	model_init(&model, 4);
	for (int32_t taken = 0; taken <= 4; taken++) {
		for (size_t k = 0; k < sizeof(asked) / sizeof(asked[0]); k++)
			refuse_take(pool, &model, asked[k]);
		for (int32_t n = model.num_free + 1; n <= 4; n++)
			refuse_take(pool, &model, n);
		if (taken == 4)
			break;
		ck_assert(quire_pool_try_allocate(pool, 1, pages));
		model_take(&model, 1);
	}
	quire_pool_destroy(pool);
}
END_TEST

/* Pool(4): take 3, ask 2: one short, and the next take has the page it would have had. */
START_TEST(a_refused_bulk_take_leaves_the_counter)
{
	uint64_t seed = 2;

	for (int round = 0; round < 200; round++) {
		int32_t num_pages = random_in(&seed, 1, PAGES_MOST);
		int32_t taken = random_in(&seed, 0, num_pages);
		struct quire_pool *pool = pool_of(num_pages);
		struct model model;
		int32_t pages[PAGES_MOST];

		model_init(&model, num_pages);
		ck_assert(quire_pool_try_allocate(pool, taken, pages));
		model_take(&model, taken);
		if (taken > 0)
			refuse_take(pool, &model,
			            num_pages - taken + random_in(&seed, 1, taken));
		if (taken < num_pages) {
			ck_assert(quire_pool_try_allocate(pool, 1, pages));
			ck_assert_int_eq(pages[0], taken);
		}
		quire_pool_destroy(pool);
	}
}
END_TEST

START_TEST(pages_come_back_in_the_order_given)
{
	static const int32_t batch[] = {5, 1, 4};
	struct quire_pool *pool = pool_of(6);
	int32_t pages[6];

	ck_assert(quire_pool_try_allocate(pool, 6, pages));
	ck_assert_int_eq(quire_pool_free(pool, batch, 3, NULL), QUIRE_OK);
	ck_assert_int_eq(quire_pool_free(pool, &(int32_t){0}, 1, NULL), QUIRE_OK);
	ck_assert(quire_pool_try_allocate(pool, 4, pages));
	ck_assert_int_eq(pages[0], 5);
	ck_assert_int_eq(pages[1], 1);
	ck_assert_int_eq(pages[2], 4);
	ck_assert_int_eq(pages[3], 0);
	quire_pool_destroy(pool);
}
END_TEST

/* Give back a batch that must be refused at `index`, and see that nothing has changed. */
static void refuse_free(struct quire_pool *pool, const struct model *model,
                        const int32_t *pages, int64_t n, enum quire_status expected,
                        int64_t index)
{
	struct quire_refusal refusal = {0};

	ck_assert_int_eq(quire_pool_free(pool, pages, n, &refusal), expected);
	ck_assert_int_eq(refusal.status, expected);
	ck_assert_int_eq(refusal.index, index);
	ck_assert_ptr_nonnull(refusal.what);
	if (expected == QUIRE_NOT_OWNED) {
		ck_assert_int_eq(refusal.page, pages[index]);
	} else if (index < 0) {
		ck_assert_int_eq(refusal.got, n);
		ck_assert_int_eq(refusal.expected, model->num_pages);
	} else {
		ck_assert_int_eq(refusal.got, pages[index]);
		ck_assert_int_eq(refusal.expected, model->num_pages - 1);
	}
	ck_assert_int_eq(quire_pool_free(pool, pages, n, NULL), expected);
	ck_assert_pool_is(pool, model);
}

/* 14 free, page 1 held once; [1, 1] is refused, names page 1, and changes nothing. */
START_TEST(one_release_that_names_a_page_twice_is_refused)
{
	struct quire_pool *pool = pool_of(16);
	struct model model;
	int32_t pages[PAGES_MOST];

	model_init(&model, 16);
	ck_assert(quire_pool_try_allocate(pool, 2, pages));
	model_take(&model, 2);
	refuse_free(pool, &model, (int32_t[]){1, 1}, 2, QUIRE_NOT_OWNED, 1);
	refuse_free(pool, &model, (int32_t[]){0, 1, 0}, 3, QUIRE_NOT_OWNED, 2);
	refuse_free(pool, &model, (int32_t[]){1, 0, 0, 1}, 4, QUIRE_NOT_OWNED, 2);
	model_free(&model, 1);
	ck_assert_int_eq(quire_pool_free(pool, &(int32_t){1}, 1, NULL), QUIRE_OK);
	ck_assert_pool_is(pool, &model);
	refuse_free(pool, &model, (int32_t[]){1}, 1, QUIRE_NOT_OWNED, 0);
	quire_pool_destroy(pool);
}
END_TEST

START_TEST(a_list_longer_than_the_pool_is_refused_unread)
{
	static const int64_t lengths[] = {-1, INT64_MIN, 4, INT64_MAX,
	                                  (int64_t)UINT32_MAX + 2};
	struct quire_pool *pool = pool_of(3);
	struct model model;
	int32_t pages[3];

	model_init(&model, 3);
	ck_assert(quire_pool_try_allocate(pool, 2, pages));
	model_take(&model, 2);
	for (size_t k = 0; k < sizeof(lengths) / sizeof(lengths[0]); k++)
		refuse_free(pool, &model, pages, lengths[k], QUIRE_INVALID, -1);
	quire_pool_destroy(pool);
}
END_TEST

START_TEST(ids_out_of_range_are_refused_wherever_they_stand)
{
	static const int32_t bad[] = {-1, 8, 9, INT32_MIN, INT32_MAX, 1 << 24};
	struct quire_pool *pool = pool_of(8);
	struct model model;
	int32_t pages[8];

	model_init(&model, 8);
	ck_assert(quire_pool_try_allocate(pool, 6, pages));
	model_take(&model, 6);
	for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); k++) {
		for (int32_t at = 0; at < 6; at++) {
			int32_t was = pages[at];

			pages[at] = bad[k];
			refuse_free(pool, &model, pages, 6, QUIRE_INVALID, at);
			pages[at] = was;
		}
	}
	ck_assert_int_eq(quire_pool_free(pool, pages, 6, NULL), QUIRE_OK);
	quire_pool_destroy(pool);
}
END_TEST

/* One random operation on both. */
static void random_step(struct quire_pool *pool, struct model *model, uint64_t *seed)
{
	int32_t n = random_in(seed, 0, model->num_pages);
	int32_t pages[PAGES_MOST];

	if (random_in(seed, 0, 1)) {
		if (n > model->num_free) {
			refuse_take(pool, model, n);
			return;
		}
		ck_assert_int_eq(quire_pool_allocate(pool, n, pages, NULL), QUIRE_OK);
		for (int32_t i = 0; i < n; i++)
			ck_assert_int_eq(pages[i], model->free[i]);
		model_take(model, n);
		return;
	}
	n = n < model->num_held ? n : model->num_held;
	random_shuffle(seed, model->held, model->num_held);
	ck_assert_int_eq(
		quire_pool_free(pool, &model->held[model->num_held - n], n, NULL),
		QUIRE_OK);
	model_free(model, n);
}

/*
 * A batch of held pages with one place spoilt: out of range, free already, or named
 * before.
 */
static void random_bad_free(struct quire_pool *pool, const struct model *model,
                            uint64_t *seed)
{
	int32_t n = model->num_held ? random_in(seed, 1, model->num_held) : 0;
	int32_t at = n ? random_in(seed, 0, n - 1) : 0;
	int32_t pages[PAGES_MOST];

	memcpy(pages, model->held, (size_t)n * sizeof(int32_t));
	switch (random_in(seed, 0, 2)) {
	case 0:
		if (!n)
			return;
		pages[at] = random_in(seed, 0, 1) ? -1 - at : model->num_pages + at;
		refuse_free(pool, model, pages, n, QUIRE_INVALID, at);
		return;
	case 1:
		if (!n || !model->num_free)
			return;
		pages[at] = model->free[random_in(seed, 0, model->num_free - 1)];
		break;
	case 2:
		if (at == 0)
			return;
		pages[at] = pages[random_in(seed, 0, at - 1)];
		break;
	}
	refuse_free(pool, model, pages, n, QUIRE_NOT_OWNED, at);
}

START_TEST(random_operations_match_a_plain_list)
{
	static const int32_t sizes[] = {1, 2, 3, 7, 20, PAGES_MOST};
	uint64_t seed = 20;

	for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
		struct quire_pool *pool = pool_of(sizes[k]);
		struct model model;

		model_init(&model, sizes[k]);
		for (int i = 0; i < 4000; i++) {
			random_step(pool, &model, &seed);
			if (i % 4 == 0)
				random_bad_free(pool, &model, &seed);
			ck_assert_pool_is(pool, &model);
		}
		quire_pool_destroy(pool);
	}
}
END_TEST

START_TEST(equal_commands_give_equal_pages)
{
	struct quire_pool *first = pool_of(32), *second = pool_of(32);
	struct model one, two;
	uint64_t seed_one = 9, seed_two = 9;

	model_init(&one, 32);
	model_init(&two, 32);
	for (int i = 0; i < 500; i++) {
		random_step(first, &one, &seed_one);
		random_step(second, &two, &seed_two);
		ck_assert_int_eq(one.num_held, two.num_held);
		ck_assert_mem_eq(one.held, two.held,
		                 (size_t)one.num_held * sizeof(int32_t));
	}
	quire_pool_destroy(first);
	quire_pool_destroy(second);
}
END_TEST

/* Takes are counted over 55 bits in two fields: no carry may be lost between them. */
START_TEST(the_state_word_keeps_every_field_apart)
{
	static const uint64_t takes[] = {0, 1, ((uint64_t)1 << 39) - 1, (uint64_t)1 << 39,
	                                 ((uint64_t)1 << 55) - 1};
	static const uint32_t pages[] = {0, 1, 0x555555, QUIRE_PAGES_MAX - 1};
	static const uint32_t counts[] = {0, 1, QUIRE_PAGES_MAX - 1, QUIRE_PAGES_MAX};

	for (int i = 0; i < 5 * 4 * 4 * 4; i++) {
		uint32_t head = pages[i / 5 % 4], tail = pages[i / 20 % 4];
		uint32_t count = counts[i / 80];
		struct pool_state s = state_make(head, tail, count, takes[i % 5]);

		ck_assert_uint_eq(state_head(s), head);
		ck_assert_uint_eq(state_tail(s), tail);
		ck_assert_uint_eq(state_count(s), count);
		ck_assert_uint_eq(state_takes(s), takes[i % 5]);
	}
}
END_TEST

START_TEST(takes_are_counted_past_the_low_half)
{
	uint64_t many = ((uint64_t)1 << POOL_TAKES_LO_BITS) - 2;
	struct quire_pool *pool = pool_of(3);
	struct pool_state s = state_make(0, 2, 3, many);
	struct model model;
	uint64_t seed = 55;

	atomic_store(&pool->state[0], s.lo);
	atomic_store(&pool->state[1], s.hi);
	model_init(&model, 3);
	for (int i = 0; i < 100; i++) {
		random_step(pool, &model, &seed);
		ck_assert_pool_is(pool, &model);
	}
	s.lo = atomic_load(&pool->state[0]);
	s.hi = atomic_load(&pool->state[1]);
	ck_assert_uint_gt(state_takes(s), many + 2);
	ck_assert_uint_lt(state_takes(s), many + 102);
	quire_pool_destroy(pool);
}
END_TEST

static void ck_assert_broken(const struct quire_pool *pool, int32_t page)
{
	struct quire_refusal refusal = {0};
	int32_t pages[8] = {UNTOUCHED};

	ck_assert_int_eq(quire_pool_check(pool, pages, &refusal), QUIRE_BROKEN);
	ck_assert_int_eq(refusal.status, QUIRE_BROKEN);
	ck_assert_int_eq(refusal.page, page);
	ck_assert_ptr_nonnull(refusal.what);
	ck_assert_int_eq(pages[0], UNTOUCHED);
}

START_TEST(the_check_finds_every_kind_of_damage)
{
	/* Pages 0 to 3 are free, 4 to 7 owned; one word is spoilt at a time. */
	static const struct {
		int32_t at;
		uint64_t word;
		int32_t named;
	} damage[] = {
		{1, WORD_OWNED, 1},    /* a hole in the FIFO */
		{1, WORD_TAG_LAST, 1}, /* an end in the middle */
		{1, (uint64_t)0 << 2 | WORD_TAG_LINK,
	         1}, /* a ring, left at the last step */
		{1, (uint64_t)8 << 2 | WORD_TAG_LINK, 1},  /* a link out of the pool */
		{3, (uint64_t)4 << 2 | WORD_TAG_LINK, 3},  /* no end */
		{3, (uint64_t)99 << 2 | WORD_TAG_LAST, 3}, /* an end from the future */
		{6, WORD_CLAIMED, 6},                      /* neither free nor owned */
		{7, (uint64_t)0 << 2 | WORD_TAG_LINK, 7},
	};
	struct quire_pool *pool = pool_of(8);
	int32_t pages[8];
	struct pool_state s;

	ck_assert(quire_pool_try_allocate(pool, 8, pages));
	ck_assert_int_eq(quire_pool_free(pool, (int32_t[]){0, 1, 2, 3}, 4, NULL),
	                 QUIRE_OK);
	for (size_t k = 0; k < sizeof(damage) / sizeof(damage[0]); k++) {
		_Atomic uint64_t *word = &pool->word[damage[k].at];
		uint64_t was = atomic_load(word);

		ck_assert_int_eq(quire_pool_check(pool, pages, NULL), QUIRE_OK);
		atomic_store(word, damage[k].word);
		ck_assert_broken(pool, damage[k].named);
		atomic_store(word, was);
	}
	s.lo = atomic_load(&pool->state[0]);
	for (uint32_t count = 0; count <= 9; count++) {
		s = state_make(0, 3, count, 1);
		atomic_store(&pool->state[0], s.lo);
		ck_assert_int_eq(quire_pool_check(pool, NULL, NULL),
		                 count == 4 ? QUIRE_OK : QUIRE_BROKEN);
	}
	s = state_make(0, 2, 4, 1);
	atomic_store(&pool->state[0], s.lo);
	atomic_store(&pool->state[1], s.hi);
	ck_assert_broken(pool, 3);
	quire_pool_destroy(pool);
}
END_TEST

/* Two threads meet at a barrier, round after round, each with one call of its own. */
struct meeting {
	struct quire_pool *pool;
	pthread_barrier_t barrier;
	int rounds;
	int32_t batch[2][2];
	int64_t num_batch;
	bool won[2];
	enum quire_status answer[2];
};

struct meeting_side {
	struct meeting *meeting;
	int side;
};

static void take_two(struct meeting *meeting, int side)
{
	meeting->won[side] =
		quire_pool_try_allocate(meeting->pool, 2, meeting->batch[side]);
}

static void *take_two_each_round(void *arg)
{
	struct meeting_side *side = arg;
	struct meeting *meeting = side->meeting;

	for (int round = 0; round < meeting->rounds; round++) {
		pthread_barrier_wait(&meeting->barrier);
		take_two(meeting, side->side);
		pthread_barrier_wait(&meeting->barrier);
	}
	return NULL;
}

START_TEST(of_two_threads_that_ask_two_of_three_pages_one_gets_them)
{
	struct meeting meeting = {.pool = pool_of(3), .rounds = 3000};
	struct meeting_side other = {&meeting, 1};
	pthread_t thread;

	pthread_barrier_init(&meeting.barrier, NULL, 2);
	ck_assert_int_eq(pthread_create(&thread, NULL, take_two_each_round, &other), 0);
	for (int round = 0; round < meeting.rounds; round++) {
		int winner;

		pthread_barrier_wait(&meeting.barrier);
		take_two(&meeting, 0);
		pthread_barrier_wait(&meeting.barrier);
		ck_assert_int_eq(meeting.won[0] + meeting.won[1], 1);
		winner = meeting.won[1];
		ck_assert_int_eq(quire_pool_num_free(meeting.pool), 1);
		ck_assert_int_eq(meeting.batch[winner][0], 2 * round % 3);
		ck_assert_int_eq(meeting.batch[winner][1], (2 * round + 1) % 3);
		ck_assert_int_eq(
			quire_pool_free(meeting.pool, meeting.batch[winner], 2, NULL),
			QUIRE_OK);
		ck_assert_int_eq(quire_pool_check(meeting.pool, NULL, NULL), QUIRE_OK);
	}
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&meeting.barrier);
	quire_pool_destroy(meeting.pool);
}
END_TEST

static void *free_each_round(void *arg)
{
	struct meeting_side *side = arg;
	struct meeting *meeting = side->meeting;

	for (int round = 0; round < meeting->rounds; round++) {
		pthread_barrier_wait(&meeting->barrier);
		meeting->answer[1] = quire_pool_free(meeting->pool, meeting->batch[1],
		                                     meeting->num_batch, NULL);
		pthread_barrier_wait(&meeting->barrier);
	}
	return NULL;
}

/*
 * One page each: exactly one free succeeds.  Two pages in opposite orders: at most one.
 */
START_TEST(of_two_frees_that_name_one_page_at_most_one_succeeds)
{
	struct meeting meeting = {.pool = pool_of(4), .rounds = 3000};
	struct meeting_side other = {&meeting, 1};
	pthread_t thread;

	pthread_barrier_init(&meeting.barrier, NULL, 2);
	ck_assert_int_eq(pthread_create(&thread, NULL, free_each_round, &other), 0);
	for (int round = 0; round < meeting.rounds; round++) {
		int32_t pages[2];
		int won;

		meeting.num_batch = 1 + round % 2;
		ck_assert(quire_pool_try_allocate(meeting.pool, 2, pages));
		memcpy(meeting.batch[0], pages, sizeof(pages));
		meeting.batch[1][0] = pages[meeting.num_batch - 1];
		meeting.batch[1][1] = pages[0];
		pthread_barrier_wait(&meeting.barrier);
		meeting.answer[0] = quire_pool_free(meeting.pool, meeting.batch[0],
		                                    meeting.num_batch, NULL);
		pthread_barrier_wait(&meeting.barrier);
		won = (meeting.answer[0] == QUIRE_OK) + (meeting.answer[1] == QUIRE_OK);
		ck_assert_int_le(won, 1);
		ck_assert_int_ge(won, meeting.num_batch == 1);
		ck_assert_int_eq(quire_pool_check(meeting.pool, NULL, NULL), QUIRE_OK);
		if (won == 0)
			ck_assert_int_eq(quire_pool_free(meeting.pool, pages, 2, NULL),
			                 QUIRE_OK);
		else if (meeting.num_batch == 1)
			ck_assert_int_eq(
				quire_pool_free(meeting.pool, &pages[1], 1, NULL),
				QUIRE_OK);
		ck_assert_int_eq(quire_pool_num_free(meeting.pool), 4);
	}
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&meeting.barrier);
	quire_pool_destroy(meeting.pool);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("pool");
	TCase *alone = tcase_create("alone");
	TCase *together = tcase_create("together");

	tcase_add_test(alone, a_new_pool_hands_out_its_pages_in_order);
	tcase_add_test(alone, create_refuses_sizes_out_of_range);
	tcase_add_test(alone, the_largest_pool_works_at_both_ends);
	tcase_add_test(alone, nothing_asked_and_nothing_given_succeed);
	tcase_add_test(alone, a_take_that_does_not_fit_is_refused_whole);
	tcase_add_test(alone, a_refused_bulk_take_leaves_the_counter);
	tcase_add_test(alone, pages_come_back_in_the_order_given);
	tcase_add_test(alone, one_release_that_names_a_page_twice_is_refused);
	tcase_add_test(alone, a_list_longer_than_the_pool_is_refused_unread);
	tcase_add_test(alone, ids_out_of_range_are_refused_wherever_they_stand);
	tcase_add_test(alone, random_operations_match_a_plain_list);
	tcase_add_test(alone, equal_commands_give_equal_pages);
	tcase_add_test(alone, the_state_word_keeps_every_field_apart);
	tcase_add_test(alone, takes_are_counted_past_the_low_half);
	tcase_add_test(alone, the_check_finds_every_kind_of_damage);
	tcase_add_test(together,
	               of_two_threads_that_ask_two_of_three_pages_one_gets_them);
	tcase_add_test(together, of_two_frees_that_name_one_page_at_most_one_succeeds);
	tcase_set_timeout(alone, 60);
	tcase_set_timeout(together, 60);
	suite_add_tcase(suite, alone);
	suite_add_tcase(suite, together);
	return run_suite(suite);
}
