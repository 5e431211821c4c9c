/* SPDX-License-Identifier: MIT */
/*
 * The FIFO under weak memory: alloc/fifo.c as it stands, with its atomic operations done
 * by a simulator that lets every load be as late as the orders written there allow.
 *
 * Three threads take and give in a small pool, in many short histories.  At each change
 * of S a plain array takes the same step, and says what every take must bring.
 */
#include "config.h"

#include "tests/alloc/weak_memory.h"
#include "tests/run_suite.h"

#include <quire/runtime/assert.h>
#include <quire/runtime/sanitize.h>

#include <check.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What the FIFO holds to be impossible is a failure with a seed. */
#undef QUIRE_ASSERT
#define QUIRE_ASSERT(condition) ((condition) ? (void)0 : weak_fail(#condition))

/* Where it changes S, the model goes along. */
static bool change_s(uint64_t *at, const uint64_t compare[2], const uint64_t set[2],
                     uint64_t *found_out);
#undef ck_pr_cas_64_2
#undef ck_pr_cas_64_2_value
#define ck_pr_cas_64_2(at, compare, set)              change_s(at, compare, set, NULL)
#define ck_pr_cas_64_2_value(at, compare, set, found) change_s(at, compare, set, found)

#include "alloc/fifo.c"

#define PAGES_MOST 12
/* A take that goes wrong may write a whole group too many. */
#define ROOM (PAGES_MOST + 64)

struct pages {
	uint32_t n;
	int32_t page[ROOM];
};

struct caller {
	enum { IDLE, TAKES, GIVES, DONE } call; /* DONE: it has changed S */
	uint32_t n;
	struct pages pages; /* that it gives, or must get */
	struct pages mine;  /* that it owns, and writes */
};

static struct quire_fifo fifo;
static enum fifo_givers givers;
static struct caller callers[WEAK_THREADS + 1];
static struct pages model; /* the FIFO, oldest first */
/*
 * Pages that their owner has not written, and that anybody gives who comes to know their
 * numbers, without any order between the two: such a free may be refused.
 */
static struct pages blind;
static char contents[PAGES_MOST];
static bool has_rogues; /* who give what is not theirs, which may refuse its owner */
static uint32_t take_percent;

/* Whose turn it is to give, where one gives at a time. */
static _Atomic uint64_t turn;
static bool turn_is_taken;

static void put(struct pages *list, int32_t page)
{
	list->page[list->n++] = page;
}

static int32_t pull(struct pages *list, uint32_t at)
{
	int32_t page = list->page[at];

	list->n--;
	memmove(&list->page[at], &list->page[at + 1], (list->n - at) * sizeof(page));
	return page;
}

static bool has(const struct pages *list, int32_t page, uint32_t *at_out)
{
	for (*at_out = 0; *at_out < list->n; ++*at_out)
		if (list->page[*at_out] == page)
			return true;
	return false;
}

static bool change_s(uint64_t *at, const uint64_t compare[2], const uint64_t set[2],
                     uint64_t *found_out)
{
	struct caller *caller = &callers[weak_me()];

	if (!weak_cas_2(at, compare, set, found_out))
		return false;
	if (caller->call == GIVES) {
		for (uint32_t i = 0; i < caller->n; i++)
			put(&model, caller->pages.page[i]);
	} else if (caller->call == TAKES && caller->n <= model.n) {
		for (caller->pages.n = 0; caller->pages.n < caller->n;)
			put(&caller->pages, pull(&model, 0));
	} else {
		weak_fail("S is changed when it must not be");
	}
	caller->call = DONE;
	return true;
}

/* ------------------------------------------------------------------ calls */

static void begin_turn(void)
{
	if (givers == FIFO_ANY_GIVERS)
		return;
	while (turn_is_taken)
		weak_pause(30);
	turn_is_taken = true;
	atomic_exchange_explicit(&turn, 0, memory_order_acq_rel);
}

static void end_turn(void)
{
	if (givers == FIFO_ANY_GIVERS)
		return;
	atomic_exchange_explicit(&turn, 0, memory_order_acq_rel);
	turn_is_taken = false;
}

/* What a call answers must be what S says. */
static void end_call(struct caller *caller, bool answer)
{
	if (answer != (caller->call == DONE))
		weak_fail("a call says what S does not");
	caller->call = IDLE;
}

static void take(struct caller *caller, uint32_t n, bool is_blind)
{
	int32_t got[ROOM];
	uint32_t available;
	bool done;

	caller->n = n;
	caller->call = TAKES;
	done = quire_fifo_take(&fifo, n, got, &available);
	end_call(caller, done);
	if (!done && available >= n)
		weak_fail("a take is refused what there is");
	for (uint32_t i = 0; done && i < n; i++) {
		if (got[i] != caller->pages.page[i])
			weak_fail("a take does not bring the oldest pages");
		if (!is_blind)
			weak_touch(&contents[got[i]]);
		put(is_blind ? &blind : &caller->mine, got[i]);
	}
}

/* caller->pages, which were `from`. */
static void give(struct caller *caller, struct pages *from)
{
	struct pages pages = caller->pages;
	bool done;

	for (uint32_t i = 0; from != &blind && i < pages.n; i++)
		weak_touch(&contents[pages.page[i]]);
	begin_turn();
	caller->n = pages.n;
	caller->call = GIVES;
	done = quire_fifo_give(&fifo, pages.page, pages.n, givers) == pages.n;
	end_call(caller, done);
	end_turn();
	if (!done && from != &blind && !has_rogues)
		weak_fail("a free is refused");
	for (uint32_t i = 0; !done && i < pages.n; i++)
		put(from, pages.page[i]);
}

/* Whoever owns the page, it is refused. */
static void give_twice(struct caller *caller, int32_t page, int32_t other)
{
	const int32_t pages[] = {page, other, page};

	begin_turn();
	end_call(caller, quire_fifo_give(&fifo, pages, 3, givers) == 3);
	end_turn();
}

/* ------------------------------------------------------- random histories */

/* How many of n: mostly one or all. */
static uint32_t some(uint32_t n)
{
	uint32_t kind = weak_random(4);

	if (n < 2 || kind > 1)
		return 1;
	return kind ? n : 1 + weak_random(n);
}

static void call_any(struct caller *caller)
{
	struct pages *from = weak_random(2) ? &blind : &caller->mine;

	if (weak_random(100) < take_percent) {
		take(caller, some(model.n), weak_random(4));
	} else if (has_rogues && weak_random(4) == 0) {
		give_twice(caller,
		           blind.n ? blind.page[weak_random(blind.n)]
		                   : (int32_t)weak_random(fifo.num_pages),
		           (int32_t)weak_random(fifo.num_pages));
	} else if (from->n) {
		caller->pages.n = 0;
		for (uint32_t n = some(from->n); n; n--)
			put(&caller->pages, pull(from, weak_random(from->n)));
		give(caller, from);
	}
}

/* Alone, so that the others find pools of all kinds; then leaves its pages to them. */
static void random_first(void)
{
	struct caller *caller = &callers[weak_me()];

	for (uint32_t n = weak_random(6); n; n--)
		call_any(caller);
	while (caller->mine.n)
		put(&callers[weak_random(WEAK_THREADS)].mine, pull(&caller->mine, 0));
}

static void random_others(void)
{
	for (uint32_t n = 4 + weak_random(12); n; n--)
		call_any(&callers[weak_me()]);
}

/* ------------------------------------------------------------------ plays */

/*
 * Races that chance seldom finds, as scripts of letters with a digit each:
 *   t  take so many pages, blindly     f  wait until that page is free
 *   g  give that page when it is blind d  give it twice, with page 0 in between
 */
struct play {
	uint32_t num_pages;
	const char *script[WEAK_THREADS + 1]; /* the last: what the first thread does */
};

static const struct play plays[] = {
	/* A free helps in a state whose two pages have come back in the other order. */
	{3, {"g2", "t2f1g0", "g1", "t3g0g1"}},
	/* A free finds its tail linked on, and the page before it on its way back. */
	{5, {"g0", "g2", "g3g4", "t5g0g1t1"}},
	/* A page that a refused free has held in between is given. */
	{2, {"t1", "d0", "g0", ""}},
};
static const struct play *play;

/* Is page n there?  Not for ever: calls of others may have been refused. */
static bool comes(const struct pages *list, int32_t page, uint32_t *at_out)
{
	for (uint32_t i = 0; i < 10 && !has(list, page, at_out); i++)
		weak_pause(30);
	return has(list, page, at_out);
}

static void act(void)
{
	struct caller *caller = &callers[weak_me()];
	uint32_t at = 0;

	for (const char *s = play->script[weak_me()]; *s; s += 2) {
		uint32_t n = (uint32_t)(s[1] - '0');
		const struct pages *where = *s == 'f' ? &model : &blind;
		bool is_there = *s != 't' && comes(where, (int32_t)n, &at);

		if (*s == 't') {
			take(caller, n, true);
		} else if (*s == 'd') {
			give_twice(caller, (int32_t)n, 0);
		} else if (*s == 'g' && is_there) {
			caller->pages.n = 0;
			put(&caller->pages, pull(&blind, at));
			give(caller, &blind);
		}
	}
}

/* -------------------------------------------------------------- histories */

static const char *check_end(void)
{
	struct quire_refusal refusal;
	struct pages pages;
	uint32_t at;

	if (quire_fifo_list(&fifo, pages.page, &refusal) != QUIRE_OK)
		return refusal.what;
	if (state_count((struct fifo_state){.lo = fifo.state[0]}) != model.n ||
	    memcmp(pages.page, model.page, model.n * sizeof(*pages.page)))
		return "at the end other pages are free";
	for (uint32_t page = 0; page < fifo.num_pages; page++)
		if (quire_fifo_owns(&fifo, page) == has(&model, (int32_t)page, &at))
			return "at the end a page is marked wrong";
	return NULL;
}

/* The play's, or a random one. */
static const char *run_history(uint64_t seed)
{
	const char *wrong;
	uint32_t num_pages;

	weak_begin(seed);
	memset(callers, 0, sizeof(callers));
	model.n = blind.n = 0;
	turn_is_taken = false;
	has_rogues = weak_random(2);
	take_percent = 20 + 20 * weak_random(4);
	num_pages = 2 + weak_random(weak_random(2) ? 5 : PAGES_MOST - 1);
	if (!quire_fifo_init(&fifo, play ? play->num_pages : num_pages))
		return "no memory";
	for (uint32_t page = 0; page < fifo.num_pages; page++)
		put(&model, (int32_t)page);
	weak_watch(fifo.state, sizeof(*fifo.state), 2);
	weak_watch(fifo.node->slot, sizeof(*fifo.node->slot),
	           fifo.num_pages * NODE_SLOTS);
	weak_watch(fifo.owned, sizeof(*fifo.owned), fifo.num_pages);
	weak_watch(contents, sizeof(*contents), fifo.num_pages);
	weak_watch(&turn, sizeof(turn), 1);
	wrong = play ? weak_run(act, act) : weak_run(random_first, random_others);
	if (!wrong)
		wrong = check_end();
	quire_fifo_end(&fifo);
	return wrong;
}

static uint64_t first_seed;
static uint64_t num_histories = 15000;

static void run_histories(uint64_t n)
{
	for (uint64_t seed = first_seed; seed < first_seed + n; seed++) {
		const char *wrong = run_history(seed);

		if (wrong)
			ck_abort_msg("%s: QUIRE_TEST_SEED=%llu", wrong,
			             (unsigned long long)seed);
	}
	ck_assert_msg(weak_num_late >= n / 4, "hardly any load is late");
}

START_TEST(every_history_is_one_of_the_sequential_fifo)
{
	givers = (enum fifo_givers)_i;
	play = NULL;
	run_histories(num_histories);
}
END_TEST

START_TEST(so_are_histories_of_races_that_chance_seldom_finds)
{
	givers = FIFO_ANY_GIVERS;
	play = &plays[_i];
	run_histories(2 * num_histories);
}
END_TEST

int main(int argc, char **argv)
{
	const char *seed = getenv("QUIRE_TEST_SEED");
	Suite *suite = suite_create("pool, weak memory");
	TCase *tcase = tcase_create("all");

#ifdef QUIRE_TSAN
	puts("skipped: the simulator's threads are coroutines");
	return 77;
#endif
	first_seed = seed ? strtoull(seed, NULL, 0) : (uint64_t)time(NULL) << 20;
	if (argc == 3 && strcmp(argv[1], "--histories") == 0)
		num_histories = strtoull(argv[2], NULL, 0);
	printf("QUIRE_TEST_SEED=%llu --histories %llu\n", (unsigned long long)first_seed,
	       (unsigned long long)num_histories);
	fflush(stdout);
	tcase_add_loop_test(tcase, every_history_is_one_of_the_sequential_fifo, 0, 2);
	tcase_add_loop_test(tcase, so_are_histories_of_races_that_chance_seldom_finds, 0,
	                    sizeof(plays) / sizeof(plays[0]));
	tcase_set_timeout(tcase, 60 + (double)num_histories / 50);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
