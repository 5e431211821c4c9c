/* SPDX-License-Identifier: MIT */
/*
 * Threads that stop in the middle of a call, at every labelled point of the pool (which
 * is compiled into this program with QUIRE_POOL_POINTS): all others must go on, and a
 * thread that wakes up too late must do no harm.
 */
#include "config.h"

#include "tests/alloc/frozen.h"
#include "tests/run_suite.h"

#include <check.h>

#include <errno.h>
#include <stdlib.h>

#define PAGES MODEL_PAGES_MOST

/* ------------------------------------------------- beside any call that is stopped */

/* A call whose second half comes late, and what it does to the FIFO when it does. */
struct late {
	struct caller caller;
	struct fifo_model *model;
	bool is_done;
	enum quire_status status;
	int32_t pages[PAGES]; /* what a take gets */
};

static void happen(struct late *late)
{
	int32_t n = (int32_t)late->caller.n;

	late->is_done = true;
	late->status = QUIRE_OK;
	if (late->caller.verb != CALLER_TAKES)
		model_give(late->model, late->caller.pages, n);
	else if (n <= late->model->num_free)
		model_take(late->model, n, late->pages);
	else
		late->status = QUIRE_NO_PAGES;
}

/* Begin a call of n pages: whether it stops.  Behind two points it has happened. */
static bool begin(struct late *late, int32_t n, uint64_t *seed)
{
	struct caller *caller = &late->caller;

	caller->n = n;
	if (caller->verb != CALLER_TAKES)
		model_pick(late->model, n, seed, caller->pages);
	if (!caller_stops(caller)) {
		happen(late);
		return false;
	}
	if (caller->point == POOL_POINT_APPENDED || caller->point == POOL_POINT_TAKEN)
		happen(late);
	return true;
}

/* The rest of a call that was stopped. */
static void end(struct late *late)
{
	if (!late->is_done)
		happen(late);
	caller_ends(&late->caller);
}

static void ck_assert_late(struct late *late)
{
	struct caller *caller = &late->caller;

	ck_assert_int_eq(caller->status, late->status);
	if (late->status == QUIRE_NO_PAGES) {
		ck_assert_int_eq(caller->refusal.requested, caller->n);
		ck_assert_int_eq(caller->refusal.available, late->model->num_free);
	} else if (caller->verb == CALLER_TAKES) {
		ck_assert_pages(caller->pages, late->pages, (int32_t)caller->n);
		model_hold(late->model, late->pages, (int32_t)caller->n);
	}
	ck_assert_pool_is(caller->pool, late->model);
}

/* A free of this thread of up to `most` of its pages, and a take of up to all. */
static void give_some(struct quire_pool *pool, struct fifo_model *model, int32_t most,
                      uint64_t *seed)
{
	int32_t n = model_batch(most < model->num_held ? most : model->num_held, seed);
	int32_t pages[PAGES];

	model_pick(model, n, seed, pages);
	give_list(pool, pages, n);
	model_give(model, pages, n);
}

static void take_some(struct quire_pool *pool, struct fifo_model *model, int32_t n)
{
	int32_t pages[PAGES], expected[PAGES];

	take(pool, n, pages);
	model_take(model, n, expected);
	ck_assert_pages(pages, expected, n);
	model_hold(model, pages, n);
	ck_assert_int_eq(quire_pool_num_free(pool), model->num_free);
}

/* A pool of groups of every size, some pages still out. */
static struct quire_pool *scattered_pool(struct fifo_model *model, int before,
                                         uint64_t *seed)
{
	struct quire_pool *pool = empty_pool(before);

	model_init(model, PAGES);
	model_take(model, PAGES, model->held);
	model->num_held = PAGES;
	for (int i = 0; i < 4 || model->num_free < 4; i++)
		give_some(pool, model, PAGES / 6, seed);
	return pool;
}

/* One call, stopped at a point that it passed so often: whether it came there. */
static bool go_on_beside(enum caller_verb verb, enum quire_pool_point point, int passes,
                         uint64_t seed)
{
	struct fifo_model model;
	struct quire_pool *pool = scattered_pool(&model, (int)(seed % BEFORE), &seed);
	struct late late = {.caller = {.pool = pool,
	                               .verb = verb,
	                               .points = (uint32_t)1 << point,
	                               .passes = passes},
	                    .model = &model};
	int32_t most = verb == CALLER_TAKES ? model.num_free : model.num_held;
	bool stopped = begin(&late, random_in(&seed, 1, most), &seed);

	for (int round = 0; stopped && round < 12; round++) {
		/* No other free beside that of an only giver. */
		if (verb != CALLER_GIVES_ALONE)
			give_some(pool, &model, PAGES, &seed);
		take_some(pool, &model, model_batch(model.num_free, &seed));
	}
	if (stopped)
		end(&late);
	ck_assert_late(&late);
	quire_pool_destroy(pool);
	return stopped;
}

START_TEST(others_go_on_beside_a_call_that_is_stopped_at_any_point)
{
	static const uint32_t helps = AT(LOADING) | AT(HELP_READ) | AT(HELP_CHECKED);
	static const uint32_t gives = AT(WRITTEN) | AT(RECORDED) | AT(APPENDED);
	const uint32_t points_of[] = {
		[CALLER_TAKES] = helps | AT(STARTED) | AT(WALKED) | AT(TAKEN),
		[CALLER_GIVES] = helps | gives | AT(SEEN) | AT(CLAIMING),
		[CALLER_GIVES_ALONE] = helps | gives,
	};
	const enum caller_verb verbs[] = {CALLER_TAKES, CALLER_GIVES, CALLER_GIVES_ALONE};
	enum caller_verb verb = verbs[_i];
	uint32_t reached = 0;

	for (int k = 0; k < POOL_POINTS * 60; k++) {
		enum quire_pool_point point = (enum quire_pool_point)(k % POOL_POINTS);

		if (go_on_beside(verb, point, k / POOL_POINTS % 3, (uint64_t)k))
			reached |= (uint32_t)1 << point;
	}
	ck_assert_uint_eq(reached, points_of[verb]);
}
END_TEST

/* ---------------------------------------------------- pages in their next life */

enum role { ROLE_OWNED, ROLE_LEAF, ROLE_BRANCH, ROLE_ROOT, ROLES };

/* What the page at a place of a batch of n is to its group. */
static enum role role_in_batch(int32_t place, int32_t n)
{
	int32_t start = place / FIFO_GROUP * FIFO_GROUP;
	int32_t size = n - start < FIFO_GROUP ? n - start : FIFO_GROUP;

	place -= start;
	if (place == size - 1)
		return ROLE_ROOT;
	return place == size - 2 || place % FIFO_RUN == FIFO_LEAVES ? ROLE_BRANCH
	                                                            : ROLE_LEAF;
}

/* Everything leaves the pool; most pages come back.  What becomes of one of them. */
static enum role renew(struct quire_pool *pool, struct fifo_model *model, int32_t page,
                       uint64_t *seed)
{
	int32_t kept = random_in(seed, 0, model->num_free / 2);
	enum role role = ROLE_OWNED;

	take_some(pool, model, model->num_free);
	while (model->num_held > kept) {
		int32_t from = model->num_free;

		give_some(pool, model, model->num_held - kept, seed);
		for (int32_t at = from; at < model->num_free; at++) {
			if (model->free[at] == page)
				role = role_in_batch(at - from, model->num_free - from);
		}
	}
	return role;
}

static struct fifo_state state_of(const struct quire_pool *pool)
{
	return (struct fifo_state){.lo = atomic_load(&pool->fifo.state[0]),
	                           .hi = atomic_load(&pool->fifo.state[1])};
}

/* The pages of a state that a stopped call still has to do with. */
static int32_t page_of_state(const struct quire_pool *pool, int which)
{
	struct fifo_state s = state_of(pool);
	uint32_t tail = state_tail(s);

	if (which == 0)
		return (int32_t)state_head(s).root;
	if (which == 1)
		return (int32_t)tail;
	return (int32_t)(atomic_load(&pool->fifo.node[tail].slot[NODE_RECORD]) >> 32);
}

#define LATE_POINTS 8

/*
 * A call has read S, or is about to help; then all pages change their roles.  It walks
 * from a head that is owned by now, or a leaf, a branch, another root; it reads the
 * record of a tail and links an old tail that have become the same.
 */
START_TEST(a_call_that_comes_late_meets_pages_in_every_role)
{
	static const struct {
		enum caller_verb verb;
		enum quire_pool_point point;
	} stops_at[LATE_POINTS] = {
		{CALLER_TAKES, POOL_POINT_LOADING},
		{CALLER_TAKES, POOL_POINT_STARTED},
		{CALLER_TAKES, POOL_POINT_HELP_READ},
		{CALLER_TAKES, POOL_POINT_HELP_CHECKED},
		{CALLER_GIVES, POOL_POINT_LOADING},
		{CALLER_GIVES, POOL_POINT_WRITTEN},
		{CALLER_GIVES, POOL_POINT_HELP_READ},
		{CALLER_GIVES, POOL_POINT_HELP_CHECKED},
	};
	enum caller_verb verb = stops_at[_i].verb;
	int met[3][ROLES] = {{0}};

	for (uint64_t round = 0; round < 300; round++) {
		uint64_t seed = round;
		struct fifo_model model;
		struct quire_pool *pool =
			scattered_pool(&model, (int)(seed % BEFORE), &seed);
		struct late late = {
			.caller = {.pool = pool,
		                   .verb = verb,
		                   .points = (uint32_t)1 << stops_at[_i].point},
			.model = &model};
		int32_t page = page_of_state(pool, (int)(round % 3));
		int32_t most = model.num_free;
		int32_t n = verb == CALLER_GIVES ? 1 : random_in(&seed, most / 2, most);

		if (begin(&late, n, &seed)) {
			met[round % 3][renew(pool, &model, page, &seed)]++;
			end(&late);
		}
		ck_assert_late(&late);
		quire_pool_destroy(pool);
	}
	for (int k = 0; k < 3 * ROLES; k++)
		ck_assert_int_gt(met[k / ROLES][k % ROLES], 0);
}
END_TEST

/*
 * Whole groups are read after they were taken.  Meanwhile the pages before them, which
 * were of the same group, and those behind become roots, branches and leaves.
 */
START_TEST(a_stopped_take_keeps_its_pages_while_all_others_go_round)
{
	uint64_t seed = 16;

	for (int32_t skip = 0; skip < FIFO_GROUP; skip++) {
		struct fifo_model model;
		struct quire_pool *pool = scattered_pool(&model, _i, &seed);
		struct late late = {.caller = {.pool = pool,
		                               .verb = CALLER_TAKES,
		                               .points = AT(TAKEN)},
		                    .model = &model};
		int32_t pages[PAGES], rest = FIFO_GROUP - skip;

		take_some(pool, &model, model.num_free);
		model_pick(&model, 2 * FIFO_GROUP + 2, &seed, pages);
		give_list(pool, pages, 2 * FIFO_GROUP + 2);
		model_give(&model, pages, 2 * FIFO_GROUP + 2);
		take_some(pool, &model, skip);
		ck_assert(begin(&late, random_in(&seed, rest, rest + FIFO_GROUP), &seed));
		for (int round = 0; round < 20; round++) {
			give_some(pool, &model, PAGES, &seed);
			take_some(pool, &model, model_batch(model.num_free, &seed));
		}
		end(&late);
		ck_assert_late(&late);
		quire_pool_destroy(pool);
	}
}
END_TEST

/* ------------------------------------------------------- many calls, step by step */

#define DANCERS 3
#define STEPS   600

/* A call that goes from point to point. */
struct dancer {
	struct late late;
	bool is_live;
	uint32_t passed; /* points */
	int32_t loaded;  /* pages free when it last read S */
};

/* Several of them, one at a time, in a random order. */
struct dance {
	struct quire_pool *pool;
	struct fifo_model model;
	struct dancer dancers[DANCERS];
	bool only_giver; /* the first gives alone, the others take */
	uint64_t seed;
	int64_t ends;
	int64_t retries; /* of calls that found S changed */
};

/* A caller has run a step: what S says that it has done. */
static void observe(struct dance *dance, struct late *late, struct fifo_state before)
{
	struct fifo_state s = state_of(dance->pool);
	bool took = state_takes(s) != state_takes(before);

	if (took || state_count(s) != state_count(before)) {
		if (late->is_done || took != (late->caller.verb == CALLER_TAKES))
			ck_abort_msg("a call happens twice, or is another");
		happen(late);
	}
	if (state_count(s) != (uint32_t)dance->model.num_free)
		ck_abort_msg("%u free, not %d", (unsigned)state_count(s),
		             (int)dance->model.num_free);
}

/* It has ended: as the model says that it must. */
static void observe_end(struct dance *dance, const struct dancer *dancer)
{
	const struct late *late = &dancer->late;
	const struct caller *caller = &late->caller;
	bool is_refused = caller->status == QUIRE_NO_PAGES;

	if (late->is_done == is_refused || (!is_refused && caller->status))
		ck_abort_msg("a call ends with %d", (int)caller->status);
	if (is_refused &&
	    (caller->n <= dancer->loaded || caller->refusal.available != dancer->loaded))
		ck_abort_msg("%d are refused, %d were free", (int)caller->n,
		             (int)dancer->loaded);
	if (!is_refused && caller->verb == CALLER_TAKES) {
		ck_assert_pages(caller->pages, late->pages, (int32_t)caller->n);
		model_hold(&dance->model, late->pages, (int32_t)caller->n);
	}
}

/* A page that is nobody's, or in the hands of a call, cannot be given. */
static void refuse_page(struct dance *dance, int32_t page)
{
	if (quire_pool_free(dance->pool, &page, 1, NULL) != QUIRE_NOT_OWNED)
		ck_abort_msg("page %d can be given", (int)page);
}

/* A call begins: whether it stops. */
static bool dancer_begins(struct dance *dance, struct dancer *dancer)
{
	struct fifo_model *model = &dance->model;
	struct caller *caller = &dancer->late.caller;
	bool is_first = dancer == dance->dancers;
	bool gives = dance->only_giver ? is_first : random_in(&dance->seed, 0, 1) == 0;
	int32_t most = FIFO_GROUP + FIFO_RUN;

	*dancer = (struct dancer){
		.late = {.caller = {.pool = dance->pool}, .model = model}};
	gives = gives && model->num_held;
	caller->verb = CALLER_TAKES;
	if (gives)
		caller->verb = dance->only_giver ? CALLER_GIVES_ALONE : CALLER_GIVES;
	if (gives && model->num_held < most)
		most = model->num_held;
	caller->n = random_in(&dance->seed, 1, most);
	if (gives)
		model_pick(model, (int32_t)caller->n, &dance->seed, caller->pages);
	/* Claims are many, and all alike. */
	caller->points = caller->n > 3 ? AT_ANY & ~AT(CLAIMING) : AT_ANY;
	return caller_stops(caller);
}

/* One step of one of them, and what it has done. */
static void dance_step(struct dance *dance, struct dancer *dancer)
{
	static const uint32_t first_points = AT(STARTED) | AT(WALKED) | AT(RECORDED);
	struct caller *caller = &dancer->late.caller;
	struct fifo_state before = state_of(dance->pool);

	if (dancer->is_live)
		dancer->is_live = caller_stops_again(caller);
	else
		dancer->is_live = dancer_begins(dance, dancer);
	observe(dance, &dancer->late, before);
	if (!dancer->is_live) {
		observe_end(dance, dancer);
		dance->ends++;
		return;
	}
	dance->retries += (dancer->passed & first_points) >> caller->point & 1;
	dancer->passed |= (uint32_t)1 << caller->point;
	if (caller->point == POOL_POINT_LOADING)
		dancer->loaded = dance->model.num_free;
	if (caller->point == POOL_POINT_RECORDED && !dance->only_giver)
		refuse_page(dance, caller->pages[0]);
}

START_TEST(calls_that_take_turns_in_any_order_do_what_they_do_alone)
{
	struct dance dance = {.only_giver = _i};

	for (int round = 0; round < 40; round++) {
		dance.seed = (uint64_t)round;
		dance.pool = scattered_pool(&dance.model, round % BEFORE, &dance.seed);
		for (int step = 0; step < STEPS; step++) {
			int i = random_in(&dance.seed, 0, DANCERS - 1);

			dance_step(&dance, &dance.dancers[i]);
			if (dance.model.num_free && !dance.only_giver)
				refuse_page(&dance, dance.model.free[0]);
		}
		for (int i = 0; i < DANCERS; i++) {
			while (dance.dancers[i].is_live)
				dance_step(&dance, &dance.dancers[i]);
		}
		ck_assert_pool_is(dance.pool, &dance.model);
		quire_pool_destroy(dance.pool);
	}
	ck_assert_int_gt(dance.ends, 1000);
	ck_assert_int_gt(dance.retries, dance.ends / 10);
}
END_TEST

/* ------------------------------------------------------------ with a lock */

/* What the lock-free kind is there to avoid. */
START_TEST(with_a_lock_a_stopped_call_holds_up_the_others)
{
	static const enum caller_verb verbs[] = {CALLER_TAKES, CALLER_GIVES};
	struct quire_pool *pool;
	int32_t pages[1];

	ck_assert_int_eq(quire_pool_create_kind(PAGES, QUIRE_POOL_LOCKED, &pool),
	                 QUIRE_OK);
	take(pool, 1, pages);
	for (int k = 0; k < 2; k++) {
		struct caller caller = {
			.pool = pool, .verb = verbs[k], .n = 1, .points = AT(LOCKED)};

		freeze(&caller);
		ck_assert_int_eq(pthread_mutex_trylock(&pool->lock_fifo.lock), EBUSY);
		ck_assert_int_eq(quire_pool_num_free(pool), PAGES - 1 - k);
		ck_assert_int_eq(caller_ends(&caller), QUIRE_OK);
	}
	ck_end(pool);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("pool, frozen threads");
	TCase *tcase = tcase_create("all");

	tcase_add_loop_test(
		tcase, others_go_on_beside_a_call_that_is_stopped_at_any_point, 0, 3);
	tcase_add_loop_test(tcase, a_call_that_comes_late_meets_pages_in_every_role, 0,
	                    LATE_POINTS);
	tcase_add_loop_test(tcase,
	                    a_stopped_take_keeps_its_pages_while_all_others_go_round, 0,
	                    BEFORE);
	tcase_add_loop_test(
		tcase, calls_that_take_turns_in_any_order_do_what_they_do_alone, 0, 2);
	tcase_add_test(tcase, with_a_lock_a_stopped_call_holds_up_the_others);
	tcase_set_timeout(tcase, 60);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
