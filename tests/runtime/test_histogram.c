/* SPDX-License-Identifier: MIT */
/* The histogram of times: buckets that cover every value, quantiles right to 1/16. */
#include "config.h"

#include "runtime/histogram_impl.h"

#include "tests/run_suite.h"

#include <check.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define SEED       20260607
#define NUM_VALUES 5000

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13; /* Marsaglia's xorshift64 */
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Any magnitude is as likely as any other. */
static int64_t random_time(uint64_t *state)
{
	return (int64_t)(next_random(state) >> (1 + next_random(state) % 62));
}

/* The bucket's value is not above the value, and less than 1/16 of it below. */
static void check_round_trip(int64_t ns)
{
	int32_t bucket = quire_histogram_bucket(ns);
	int64_t value = ns < 1 ? 1 : ns;
	int64_t low;

	ck_assert_int_ge(bucket, 0);
	ck_assert_int_lt(bucket, QUIRE_HISTOGRAM_BUCKETS);
	low = quire_histogram_value(bucket);
	ck_assert_int_le(low, value);
	ck_assert_int_le(value - low, value / 16);
	ck_assert_int_eq(quire_histogram_bucket(low), bucket);
}

START_TEST(every_magnitude_comes_back_to_a_sixteenth)
{
	for (int64_t ns = -2; ns < 5000; ns++)
		check_round_trip(ns);
	for (int bit = 0; bit < 63; bit++)
		for (int64_t off = -2; off <= 2; off++)
			if (((int64_t)1 << bit) + off > 0)
				check_round_trip(((int64_t)1 << bit) + off);
	check_round_trip(INT64_MAX - 1);
	check_round_trip(INT64_MAX);
	check_round_trip(INT64_MIN);
}
END_TEST

START_TEST(a_longer_time_is_never_in_an_earlier_bucket)
{
	uint64_t state = SEED;

	for (int64_t ns = 1; ns < 100000; ns++)
		ck_assert_int_le(quire_histogram_bucket(ns - 1),
		                 quire_histogram_bucket(ns));
	for (int i = 0; i < 10000; i++) {
		int64_t a = random_time(&state), b = random_time(&state);
		int64_t shorter = a < b ? a : b, longer = a < b ? b : a;

		ck_assert_int_le(quire_histogram_bucket(shorter),
		                 quire_histogram_bucket(longer));
	}
}
END_TEST

START_TEST(an_empty_histogram_answers_zero)
{
	static struct quire_histogram histogram;

	ck_assert_int_eq(quire_histogram_quantile(&histogram, 500), 0);
	ck_assert_int_eq(quire_histogram_quantile(&histogram, 1000), 0);
}
END_TEST

START_TEST(one_value_is_every_quantile)
{
	static struct quire_histogram histogram;

	quire_histogram_add(&histogram, 12);
	for (int64_t per_mille = 0; per_mille <= 1000; per_mille++)
		ck_assert_int_eq(quire_histogram_quantile(&histogram, per_mille), 12);
}
END_TEST

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* The smallest of the sorted values that per_mille of them do not exceed. */
static int64_t true_quantile(const int64_t *sorted, int64_t n, int64_t per_mille)
{
	int64_t rank = (n * per_mille + 999) / 1000;

	return sorted[rank < 1 ? 0 : rank - 1];
}

START_TEST(quantiles_follow_a_sorted_array_to_a_sixteenth)
{
	static struct quire_histogram histogram;
	static int64_t values[NUM_VALUES];
	uint64_t state = SEED;

	for (int n = 1; n <= NUM_VALUES; n++) {
		values[n - 1] = 1 + random_time(&state) / 2;
		quire_histogram_add(&histogram, values[n - 1]);
		if (n % 500 != 0 && n != 1 && n != 2 && n != 3)
			continue;
		qsort(values, (size_t)n, sizeof(values[0]), by_value);
		for (int64_t per_mille = 1; per_mille <= 1000; per_mille++) {
			int64_t want = true_quantile(values, n, per_mille);
			int64_t got = quire_histogram_quantile(&histogram, per_mille);

			ck_assert_int_le(got, want);
			ck_assert_int_le(want - got, want / 16);
		}
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("histogram");
	TCase *tcase = tcase_create("histogram");

	tcase_add_test(tcase, every_magnitude_comes_back_to_a_sixteenth);
	tcase_add_test(tcase, a_longer_time_is_never_in_an_earlier_bucket);
	tcase_add_test(tcase, an_empty_histogram_answers_zero);
	tcase_add_test(tcase, one_value_is_every_quantile);
	tcase_add_test(tcase, quantiles_follow_a_sorted_array_to_a_sixteenth);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
