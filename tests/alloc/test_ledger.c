/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "alloc/ledger_impl.h"
#include "tests/alloc/random.h"
#include "tests/run_suite.h"

#include <quire/runtime/limits.h>

#include <check.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define PAGES_MOST 24
#define NAMES_MOST 64
#define UNTOUCHED  (-77)

/* Every name as an entry of its own: a bag of page ids. */
struct bag {
	int32_t num_pages;
	int64_t num_names;
	int32_t names[100000];
};

static struct bag bag;

static struct quire_ledger *ledger_of(int64_t num_pages)
{
	struct quire_ledger *ledger = NULL;

	ck_assert_int_eq(quire_ledger_create(num_pages, &ledger), QUIRE_OK);
	bag.num_pages = (int32_t)num_pages;
	bag.num_names = 0;
	return ledger;
}

static int32_t bag_count(int32_t page)
{
	int32_t count = 0;

	for (int64_t i = 0; i < bag.num_names; i++)
		count += bag.names[i] == page;
	return count;
}

static void bag_remove(int32_t page)
{
	for (int64_t i = 0; i < bag.num_names; i++) {
		if (bag.names[i] == page) {
			bag.names[i] = bag.names[--bag.num_names];
			return;
		}
	}
	ck_abort_msg("the test removes a name that is not there");
}

static void ck_assert_ledger_is_bag(const struct quire_ledger *ledger)
{
	int32_t names[PAGES_MOST], owned = 0;
	int64_t extra = 0;

	for (int32_t page = 0; page < bag.num_pages; page++) {
		names[page] = bag_count(page);
		owned += names[page] > 0;
		extra += names[page] > 0 ? names[page] - 1 : 0;
		ck_assert_int_eq(quire_ledger_owners(ledger, page), names[page]);
	}
	ck_assert_int_eq(quire_ledger_owned(ledger), owned);
	ck_assert_int_eq(quire_ledger_extra(ledger), extra);
	ck_assert_int_eq(quire_ledger_check(ledger, names, NULL), QUIRE_OK);
}

static bool in_range(int32_t page)
{
	return page >= 0 && page < bag.num_pages;
}

/* What a list must answer, and at which place, by going through a copy of the bag. */
static enum quire_status expect(char verb, const int32_t *pages, int32_t n,
                                int64_t *index_out)
{
	int32_t counts[PAGES_MOST];

	for (int32_t i = 0; i < n; i++) {
		*index_out = i;
		if (!in_range(pages[i]))
			return QUIRE_INVALID;
	}
	for (int32_t page = 0; page < bag.num_pages; page++)
		counts[page] = bag_count(page);
	for (int32_t i = 0; i < n; i++) {
		int32_t *count = &counts[pages[i]];

		*index_out = i;
		if (verb == 'a' && *count > 0)
			return QUIRE_INVALID;
		if (verb != 'a' && *count == 0)
			return QUIRE_NOT_OWNED;
		*count += verb == 'f' ? -1 : 1;
	}
	return QUIRE_OK;
}

static void release(struct quire_ledger *ledger, const int32_t *pages, int32_t n,
                    bool in_place)
{
	int32_t freed[NAMES_MOST + 1], expected[NAMES_MOST];
	int64_t index = 0, num_freed = UNTOUCHED, num_expected = 0;
	enum quire_status status = expect('f', pages, n, &index);
	struct quire_refusal refusal = {0};

	for (int32_t i = 0; i <= NAMES_MOST; i++)
		freed[i] = UNTOUCHED;
	if (in_place)
		memcpy(freed, pages, (size_t)n * sizeof(*pages));
	ck_assert_int_eq(quire_ledger_release(ledger, in_place ? freed : pages, n, freed,
	                                      &num_freed, &refusal),
	                 status);
	if (status) {
		ck_assert_int_eq(refusal.status, status);
		ck_assert_int_eq(refusal.index, index);
		ck_assert_int_eq(refusal.page, pages[index]);
		ck_assert_int_eq(num_freed, UNTOUCHED);
		for (int32_t i = 0; i < n; i++)
			ck_assert_int_eq(freed[i], in_place ? pages[i] : UNTOUCHED);
		return;
	}
	for (int32_t i = 0; i < n; i++) {
		bag_remove(pages[i]);
		if (bag_count(pages[i]) == 0)
			expected[num_expected++] = pages[i];
	}
	ck_assert_int_eq(num_freed, num_expected);
	for (int64_t i = 0; i < num_expected; i++)
		ck_assert_int_eq(freed[i], expected[i]);
	ck_assert_int_eq(freed[NAMES_MOST], UNTOUCHED);
}

static void add(struct quire_ledger *ledger, char verb, const int32_t *pages, int32_t n)
{
	int64_t index = 0;
	enum quire_status status = expect(verb, pages, n, &index);
	struct quire_refusal refusal = {0};

	if (verb == 'a')
		ck_assert_int_eq(quire_ledger_acquire(ledger, pages, n, &refusal),
		                 status);
	else
		ck_assert_int_eq(quire_ledger_retain(ledger, pages, n, &refusal), status);
	ck_assert_int_eq(refusal.status, status);
	if (status) {
		ck_assert_int_eq(refusal.index, index);
		ck_assert_int_eq(refusal.page, pages[index]);
		ck_assert_ptr_nonnull(refusal.what);
		return;
	}
	for (int32_t i = 0; i < n; i++)
		bag.names[bag.num_names++] = pages[i];
}

START_TEST(random_lists_match_a_bag_of_names)
{
	static const int32_t sizes[] = {1, 2, 5, PAGES_MOST};
	static const char verbs[] = {'a', 'r', 'f', 'f'};
	uint64_t seed = 4;

	for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
		struct quire_ledger *ledger = ledger_of(sizes[k]);

		for (int i = 0; i < 6000; i++) {
			char verb = verbs[random_in(&seed, 0, 3)];
			int32_t n = random_in(&seed, 0, random_in(&seed, 1, 8));
			bool stray = random_in(&seed, 0, 15) == 0;
			int32_t pages[NAMES_MOST];

			for (int32_t j = 0; j < n; j++)
				pages[j] = random_in(&seed, stray ? -1 : 0,
				                     sizes[k] - !stray);
			if (verb == 'f')
				release(ledger, pages, n, random_in(&seed, 0, 1));
			else
				add(ledger, verb, pages, n);
			ck_assert_ledger_is_bag(ledger);
		}
		quire_ledger_destroy(ledger);
	}
}
END_TEST

/* 14 free, page 1 has two owners: [1, 1] gives it back once, 15 free. */
START_TEST(a_release_that_names_a_page_twice_gives_it_back_once)
{
	struct quire_ledger *ledger = ledger_of(16);
	int32_t freed[3];
	int64_t num_freed;

	ck_assert_int_eq(quire_ledger_acquire(ledger, (int32_t[]){1, 2}, 2, NULL),
	                 QUIRE_OK);
	ck_assert_int_eq(quire_ledger_retain(ledger, (int32_t[]){1}, 1, NULL), QUIRE_OK);
	ck_assert_int_eq(16 - quire_ledger_owned(ledger), 14);
	ck_assert_int_eq(quire_ledger_release(ledger, (int32_t[]){1, 1, 1}, 3, freed,
	                                      &num_freed, NULL),
	                 QUIRE_NOT_OWNED);
	ck_assert_int_eq(quire_ledger_owners(ledger, 1), 2);
	ck_assert_int_eq(quire_ledger_release(ledger, (int32_t[]){1, 1}, 2, freed,
	                                      &num_freed, NULL),
	                 QUIRE_OK);
	ck_assert_int_eq(num_freed, 1);
	ck_assert_int_eq(freed[0], 1);
	ck_assert_int_eq(16 - quire_ledger_owned(ledger), 15);
	quire_ledger_destroy(ledger);
}
END_TEST

/* The order is that of the last names, not of the first. */
START_TEST(pages_are_given_up_in_the_order_of_their_last_release)
{
	struct quire_ledger *ledger = ledger_of(4);
	int32_t pages[] = {3, 0, 2, 0, 3};
	int64_t num_freed;

	ck_assert_int_eq(quire_ledger_acquire(ledger, (int32_t[]){0, 2, 3}, 3, NULL),
	                 QUIRE_OK);
	ck_assert_int_eq(quire_ledger_retain(ledger, (int32_t[]){3, 0}, 2, NULL),
	                 QUIRE_OK);
	ck_assert_int_eq(quire_ledger_release(ledger, pages, 5, pages, &num_freed, NULL),
	                 QUIRE_OK);
	ck_assert_int_eq(num_freed, 3);
	ck_assert_int_eq(pages[0], 2);
	ck_assert_int_eq(pages[1], 0);
	ck_assert_int_eq(pages[2], 3);
	quire_ledger_destroy(ledger);
}
END_TEST

START_TEST(a_page_with_all_the_owners_there_can_be_takes_no_more)
{
	struct quire_ledger *ledger = ledger_of(2);
	struct quire_refusal refusal = {0};

	ck_assert_int_eq(quire_ledger_acquire(ledger, (int32_t[]){0, 1}, 2, NULL),
	                 QUIRE_OK);
	ledger->owners[1] = INT32_MAX - 1;
	ck_assert_int_eq(quire_ledger_retain(ledger, (int32_t[]){0, 1, 1}, 3, &refusal),
	                 QUIRE_LIMIT);
	ck_assert_int_eq(refusal.page, 1);
	ck_assert_int_eq(refusal.index, 2);
	ck_assert_int_eq(refusal.expected, INT32_MAX);
	ck_assert_int_eq(quire_ledger_owners(ledger, 0), 1);
	ck_assert_int_eq(quire_ledger_owners(ledger, 1), INT32_MAX - 1);
	ck_assert_int_eq(quire_ledger_retain(ledger, (int32_t[]){1}, 1, NULL), QUIRE_OK);
	quire_ledger_destroy(ledger);
}
END_TEST

START_TEST(sizes_and_lengths_out_of_range_are_refused)
{
	static const int64_t sizes[] = {0,         -1,
	                                INT64_MIN, (int64_t)QUIRE_PAGES_MAX + 1,
	                                INT64_MAX, (int64_t)UINT32_MAX + 2};
	struct quire_ledger *ledger = (struct quire_ledger *)&ledger;
	struct quire_refusal refusal;
	int32_t page = 0;
	int64_t num_freed = UNTOUCHED;

	for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
		ck_assert_int_eq(quire_ledger_create(sizes[k], &ledger), QUIRE_INVALID);
		ck_assert_ptr_eq(ledger, &ledger);
	}
	quire_ledger_destroy(NULL);
	ledger = ledger_of(1);
	for (int64_t n = -1; n; n = n == -1 ? INT64_MIN : n < 0 ? INT64_C(1) << 31 : 0) {
		ck_assert_int_eq(quire_ledger_acquire(ledger, &page, n, &refusal),
		                 QUIRE_INVALID);
		ck_assert_int_eq(refusal.got, n);
		ck_assert_int_eq(refusal.index, -1);
		ck_assert_int_eq(quire_ledger_retain(ledger, &page, n, NULL),
		                 QUIRE_INVALID);
		ck_assert_int_eq(
			quire_ledger_release(ledger, &page, n, &page, &num_freed, NULL),
			QUIRE_INVALID);
		ck_assert_int_eq(num_freed, UNTOUCHED);
	}
	ck_assert_int_eq(quire_ledger_owners(ledger, -1), 0);
	ck_assert_int_eq(quire_ledger_owners(ledger, 1), 0);
	ck_assert_int_eq(quire_ledger_owners(ledger, INT32_MIN), 0);
	quire_ledger_destroy(ledger);
}
END_TEST

START_TEST(the_check_names_the_page_whose_owners_differ)
{
	struct quire_ledger *ledger = ledger_of(3);
	struct quire_refusal refusal = {0};

	ck_assert_int_eq(quire_ledger_acquire(ledger, (int32_t[]){0, 2}, 2, NULL),
	                 QUIRE_OK);
	ck_assert_int_eq(quire_ledger_retain(ledger, (int32_t[]){2}, 1, NULL), QUIRE_OK);
	ck_assert_int_eq(quire_ledger_check(ledger, (int32_t[]){1, 0, 2}, NULL),
	                 QUIRE_OK);
	ck_assert_int_eq(quire_ledger_check(ledger, (int32_t[]){1, 0, 3}, &refusal),
	                 QUIRE_BROKEN);
	ck_assert_int_eq(refusal.page, 2);
	ck_assert_int_eq(refusal.expected, 3);
	ck_assert_int_eq(refusal.got, 2);
	ledger->owned = 3;
	ck_assert_int_eq(quire_ledger_check(ledger, (int32_t[]){1, 0, 2}, &refusal),
	                 QUIRE_BROKEN);
	ck_assert_int_eq(refusal.expected, 2);
	ck_assert_int_eq(refusal.got, 3);
	quire_ledger_destroy(ledger);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ledger");
	TCase *tcase = tcase_create("all");

	tcase_add_test(tcase, random_lists_match_a_bag_of_names);
	tcase_add_test(tcase, a_release_that_names_a_page_twice_gives_it_back_once);
	tcase_add_test(tcase, pages_are_given_up_in_the_order_of_their_last_release);
	tcase_add_test(tcase, a_page_with_all_the_owners_there_can_be_takes_no_more);
	tcase_add_test(tcase, sizes_and_lengths_out_of_range_are_refused);
	tcase_add_test(tcase, the_check_names_the_page_whose_owners_differ);
	tcase_set_timeout(tcase, 60);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
