/* SPDX-License-Identifier: MIT */
/* Wakes: no change is slept through.  A deadline far away tells a lost wake-up from a
 * slow machine: whoever reaches it has slept through a change. */
#include "config.h"

#include "runtime/wake_impl.h"

#include "tests/run_suite.h"

#include <quire/runtime/limits.h>

#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#define HANDOVERS 100000
#define SLEEPERS  4
#define ROUNDS    500
#define FAR_NS    20000000000

struct token {
	struct quire_wake wake;
	_Atomic int32_t turn; /* handovers so far: even ones are the first player's */
	_Atomic bool lost;
};

struct player {
	struct token *token;
	int32_t number;
};

/* Wait for one's turn as the planner waits for commands: value, look, sleep. */
static bool await_turn(struct token *token, int32_t turn)
{
	for (;;) {
		uint32_t value = quire_wake_value(&token->wake);

		/* Pairs with the release in play. */
		if (atomic_load_explicit(&token->turn, memory_order_acquire) == turn)
			return true;
		/* Relaxed: only ends the test early. */
		if (atomic_load_explicit(&token->lost, memory_order_relaxed))
			return false;
		if (quire_wake_sleep(&token->wake, value, quire_now_ns() + FAR_NS) != 0)
			return false;
	}
}

static void *play(void *argument)
{
	struct player *player = argument;
	struct token *token = player->token;

	for (int32_t turn = player->number; turn < HANDOVERS; turn += 2) {
		if (!await_turn(token, turn)) {
			atomic_store_explicit(&token->lost, true, memory_order_relaxed);
			return NULL;
		}
		/* Pairs with the acquire in await_turn. */
		atomic_store_explicit(&token->turn, turn + 1, memory_order_release);
		quire_wake_all(&token->wake);
	}
	return NULL;
}

START_TEST(a_token_goes_to_and_fro_and_no_handover_is_slept_through)
{
	struct token token = {.turn = 0};
	struct player players[2] = {{&token, 0}, {&token, 1}};
	pthread_t threads[2];

	quire_wake_init(&token.wake);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, play, &players[i]), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	ck_assert(!atomic_load(&token.lost));
	ck_assert_int_eq(atomic_load(&token.turn), HANDOVERS);
}
END_TEST

struct gate {
	struct quire_wake open;    /* for the sleepers */
	struct quire_wake arrived; /* for the opener */
	_Atomic int32_t round;
	_Atomic int32_t through;
	_Atomic bool lost;
};

static bool await(struct gate *gate, struct quire_wake *wake, _Atomic int32_t *number,
                  int32_t least)
{
	for (;;) {
		uint32_t value = quire_wake_value(wake);

		/* Pairs with the release of whoever raises the number. */
		if (atomic_load_explicit(number, memory_order_acquire) >= least)
			return true;
		if (atomic_load_explicit(&gate->lost, memory_order_relaxed) ||
		    quire_wake_sleep(wake, value, quire_now_ns() + FAR_NS) != 0)
			break;
	}
	atomic_store_explicit(&gate->lost, true, memory_order_relaxed);
	return false;
}

static void *pass_gate(void *argument)
{
	struct gate *gate = argument;

	for (int32_t round = 1; round <= ROUNDS; round++) {
		if (!await(gate, &gate->open, &gate->round, round))
			return NULL;
		/* Release: pairs with the acquire in await. */
		atomic_fetch_add_explicit(&gate->through, 1, memory_order_release);
		quire_wake_all(&gate->arrived);
	}
	return NULL;
}

START_TEST(one_wake_reaches_everyone_who_sleeps)
{
	struct gate gate = {.round = 0};
	pthread_t threads[SLEEPERS];

	quire_wake_init(&gate.open);
	quire_wake_init(&gate.arrived);
	for (int i = 0; i < SLEEPERS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, pass_gate, &gate), 0);
	for (int32_t round = 1; round <= ROUNDS; round++) {
		/* Release: pairs with the acquire in await. */
		atomic_store_explicit(&gate.round, round, memory_order_release);
		quire_wake_all(&gate.open);
		if (!await(&gate, &gate.arrived, &gate.through, round * SLEEPERS))
			break;
	}
	for (int i = 0; i < SLEEPERS; i++)
		pthread_join(threads[i], NULL);
	ck_assert(!atomic_load(&gate.lost));
	ck_assert_int_eq(atomic_load(&gate.through), ROUNDS * SLEEPERS);
}
END_TEST

START_TEST(an_old_value_is_not_slept_on)
{
	struct quire_wake wake;
	uint32_t value;

	quire_wake_init(&wake);
	value = quire_wake_value(&wake);
	quire_wake_all(&wake);
	ck_assert_uint_ne(quire_wake_value(&wake), value);
	ck_assert_int_eq(quire_wake_sleep(&wake, value, INT64_MAX), 0);
	ck_assert_int_eq(quire_wake_sleep(&wake, value, quire_now_ns() - 1), 0);
}
END_TEST

START_TEST(a_deadline_ends_the_sleep_and_not_before_its_time)
{
	struct quire_wake wake;
	int64_t deadline = quire_now_ns() + 3000000;

	quire_wake_init(&wake);
	ck_assert_int_eq(quire_wake_sleep(&wake, quire_wake_value(&wake), deadline), -1);
	ck_assert_int_ge(quire_now_ns(), deadline);
	ck_assert_int_eq(quire_wake_sleep(&wake, quire_wake_value(&wake), 0), -1);
}
END_TEST

START_TEST(a_wake_raises_the_one_chained_to_it_and_not_the_other_way_round)
{
	struct quire_wake first, also;
	uint32_t of_first, of_also;

	quire_wake_init(&first);
	quire_wake_init(&also);
	quire_wake_chain(&first, &also);
	of_first = quire_wake_value(&first);
	of_also = quire_wake_value(&also);
	quire_wake_all(&first);
	ck_assert_uint_ne(quire_wake_value(&first), of_first);
	ck_assert_uint_ne(quire_wake_value(&also), of_also);
	of_first = quire_wake_value(&first);
	quire_wake_all(&also);
	ck_assert_uint_eq(quire_wake_value(&first), of_first);
}
END_TEST

/* Look and sleep at a wake that nobody raises, far longer than an adaptive look. */
static void wait_in_vain(struct quire_spin *spin)
{
	struct quire_wake wake;

	quire_wake_init(&wake);
	ck_assert_int_eq(quire_wake_await(&wake, quire_wake_value(&wake),
	                                  quire_now_ns() + 200000, spin),
	                 -1);
}

/* Wait at a wake that was raised already. */
static void wait_with_luck(struct quire_spin *spin)
{
	struct quire_wake wake;
	uint32_t value;

	quire_wake_init(&wake);
	value = quire_wake_value(&wake);
	quire_wake_all(&wake);
	ck_assert_int_eq(quire_wake_await(&wake, value, QUIRE_NO_DEADLINE, spin), 0);
}

/* Of one look and the next there are so many waits more each time: 2n + 1, from 0. */
START_TEST(looks_in_vain_are_followed_by_more_and_more_waits_without)
{
	static const uint32_t expected[] = {1, 3, 7, 15, 31, 63, 63};
	struct quire_spin spin;

	quire_spin_init(&spin, -1);
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		ck_assert_uint_eq(spin.skips, 0);
		wait_in_vain(&spin);
		ck_assert_uint_eq(spin.skips, expected[i]);
		for (uint32_t left = expected[i]; left > 0; left--) {
			wait_with_luck(&spin); /* says nothing of looks: it slept */
			ck_assert_uint_eq(spin.skips, left - 1);
		}
	}
	/* A look that pays halves: 31, 15, 7; the next in vain makes 15 of that. */
	for (int i = 0; i < 3; i++)
		wait_with_luck(&spin);
	ck_assert_uint_eq(spin.skips, 0);
	wait_in_vain(&spin);
	ck_assert_uint_eq(spin.skips, 15);
}
END_TEST

START_TEST(a_fixed_look_is_never_left_out_and_none_never_made)
{
	struct quire_spin fixed, none;

	quire_spin_init(&fixed, 1000);
	quire_spin_init(&none, 0);
	for (int i = 0; i < 3; i++) {
		wait_in_vain(&fixed);
		wait_in_vain(&none);
		ck_assert_uint_eq(fixed.skips, 0);
		ck_assert_uint_eq(none.skips, 0);
	}
}
END_TEST

START_TEST(a_look_ends_at_the_deadline_however_long_it_might_be)
{
	struct quire_spin spin;
	int64_t start_ns = quire_now_ns();

	quire_spin_init(&spin, FAR_NS);
	wait_in_vain(&spin);
	ck_assert_int_lt(quire_now_ns() - start_ns, FAR_NS);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("wake");
	TCase *tcase = tcase_create("wake");

	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase, a_token_goes_to_and_fro_and_no_handover_is_slept_through);
	tcase_add_test(tcase, one_wake_reaches_everyone_who_sleeps);
	tcase_add_test(tcase, an_old_value_is_not_slept_on);
	tcase_add_test(tcase, a_deadline_ends_the_sleep_and_not_before_its_time);
	tcase_add_test(tcase,
	               a_wake_raises_the_one_chained_to_it_and_not_the_other_way_round);
	tcase_add_test(tcase, looks_in_vain_are_followed_by_more_and_more_waits_without);
	tcase_add_test(tcase, a_fixed_look_is_never_left_out_and_none_never_made);
	tcase_add_test(tcase, a_look_ends_at_the_deadline_however_long_it_might_be);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
