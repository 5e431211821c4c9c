/* SPDX-License-Identifier: MIT */
/* Statuses and refusals: every one has a name, a meaning and a sentence that is never cut
 * short without saying so. */
#include "config.h"

#include <quire/runtime/status.h>

#include "tests/run_suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* The numbers of trace format 1, written down once more by hand. */
static const struct {
	const char *name;
	int number;
} known[] = {
	{"OK", 0},         {"NO_PAGES", 1},   {"AGAIN", 2},        {"STALE", 3},
	{"OFFLOADED", 4},  {"NO_REQUEST", 5}, {"NO_LABEL", 6},     {"LIMIT", 7},
	{"INVALID", 8},    {"HELD", 9},       {"WOULD_BLOCK", 10}, {"ABANDONED", 11},
	{"CANCELLED", 12}, {"DEVICE", 13},    {"CALLBACK", 14},    {"NO_MEMORY", 15},
	{"TIMEOUT", 16},   {"NOT_OWNED", 17}, {"CLOSED", 18},      {"BROKEN", 19},
	{"IO", 20},        {"FORMAT", 21},    {"END", 22},
};

#define NUM_KNOWN ((int)(sizeof(known) / sizeof(known[0])))
#define TEXT_MAX  512

/* Every field differs from every other, so that a sentence shows which ones it took. */
static struct quire_refusal full_refusal(int status)
{
	return (struct quire_refusal){
		.status = (enum quire_status)status,
		.page = 1001,
		.index = 1002,
		.line = 1003,
		.expected = 1004,
		.got = 1005,
		.requested = 1006,
		.available = 1007,
		.pages_short = 1008,
		.free = 1009,
		.retiring = 1010,
		.owned = 1011,
		.request = 1012,
		.ticket = 1013,
		.what = "the-argument",
		.label = "the-label",
	};
}

START_TEST(names_and_numbers_never_change)
{
	for (int i = 0; i < NUM_KNOWN; i++)
		ck_assert_str_eq(quire_status_name((enum quire_status)known[i].number),
		                 known[i].name);
	ck_assert_str_eq(quire_status_name((enum quire_status)NUM_KNOWN), "UNKNOWN");
	ck_assert_str_eq(quire_status_name((enum quire_status)99), "UNKNOWN");
}
END_TEST

START_TEST(every_status_has_a_meaning_of_its_own)
{
	for (int i = 0; i <= NUM_KNOWN; i++) {
		const char *text = quire_status_text((enum quire_status)i);

		ck_assert_uint_gt(strlen(text), 0);
		ck_assert_int_ne(text[strlen(text) - 1], '.');
		for (int k = 0; k < i; k++)
			ck_assert_str_ne(text, quire_status_text((enum quire_status)k));
	}
}
END_TEST

START_TEST(every_status_gives_a_sentence)
{
	for (int i = 0; i <= NUM_KNOWN; i++) {
		const struct quire_refusal full = full_refusal(i);
		const struct quire_refusal bare = {.status = (enum quire_status)i,
		                                   .what = ""};
		char text[TEXT_MAX];

		ck_assert_uint_lt(quire_refusal_text(&full, text, sizeof(text)),
		                  sizeof(text));
		ck_assert_uint_gt(strlen(text), 3);
		ck_assert_ptr_null(strchr(text, '\n'));
		ck_assert_ptr_null(strstr(text, "(null)"));
		ck_assert_uint_lt(quire_refusal_text(&bare, text, sizeof(text)),
		                  sizeof(text));
		ck_assert_ptr_null(strstr(text, "(null)"));
	}
}
END_TEST

/* What snprintf promises, for every status and every size. */
START_TEST(a_short_buffer_gets_the_start_and_the_true_length)
{
	for (int i = 0; i <= NUM_KNOWN; i++) {
		const struct quire_refusal refusal = full_refusal(i);
		char whole[TEXT_MAX];
		size_t length = quire_refusal_text(&refusal, whole, sizeof(whole));

		ck_assert_uint_eq(length, strlen(whole));
		ck_assert_uint_eq(quire_refusal_text(&refusal, NULL, 0), length);
		for (size_t size = 1; size <= length + 2; size++) {
			size_t kept = size - 1 < length ? size - 1 : length;
			char *text = malloc(
				size); /* so that a sanitizer sees a byte too many */

			ck_assert_ptr_nonnull(text);
			ck_assert_uint_eq(quire_refusal_text(&refusal, text, size),
			                  length);
			ck_assert_uint_eq(strlen(text), kept);
			ck_assert_int_eq(memcmp(text, whole, kept), 0);
			free(text);
		}
	}
}
END_TEST

START_TEST(no_byte_behind_the_buffer_is_touched)
{
	for (int i = 0; i <= NUM_KNOWN; i++) {
		const struct quire_refusal refusal = full_refusal(i);

		for (size_t size = 0; size < 64; size++) {
			char text[65];

			memset(text, 0x7f, sizeof(text));
			(void)quire_refusal_text(&refusal, text, size);
			for (size_t k = size; k < sizeof(text); k++)
				ck_assert_int_eq(text[k], 0x7f);
		}
	}
}
END_TEST

/* The fields that status.h promises for a status are in its sentence. */
static const struct {
	enum quire_status status;
	const char *words[5];
} promised[] = {
	{QUIRE_NO_PAGES, {"not enough pages", "1008", "1012", "the-label"}},
	{QUIRE_AGAIN, {"1009", "1010", "1011"}},
	{QUIRE_STALE, {"1012", "the-label", "1004", "1005"}},
	{QUIRE_OFFLOADED, {"1012", "the-label"}},
	{QUIRE_HELD, {"speculative", "the-argument", "1013"}},
	{QUIRE_NO_REQUEST, {"1012"}},
	{QUIRE_NO_LABEL, {"1012", "the-label"}},
	{QUIRE_LIMIT, {"the-argument", "1005", "1004", "1012", "the-label"}},
	{QUIRE_INVALID, {"the-argument", "1002", "1005", "1004"}},
	{QUIRE_NOT_OWNED, {"1001", "1002"}},
	{QUIRE_DEVICE, {"the device failed", "the-argument"}},
	{QUIRE_CALLBACK, {"a callback failed", "the-argument"}},
	{QUIRE_NO_MEMORY, {"out of memory", "the-argument", "1006"}},
	{QUIRE_BROKEN, {"the-argument", "1012", "the-label"}},
	{QUIRE_IO, {"the-argument", "1003"}},
	{QUIRE_FORMAT, {"the-argument", "1003"}},
};

START_TEST(a_sentence_names_what_the_header_promises)
{
	for (size_t i = 0; i < sizeof(promised) / sizeof(promised[0]); i++) {
		const struct quire_refusal refusal = full_refusal(promised[i].status);
		char text[TEXT_MAX];

		(void)quire_refusal_text(&refusal, text, sizeof(text));
		for (int w = 0; w < 5 && promised[i].words[w] != NULL; w++)
			ck_assert_msg(strstr(text, promised[i].words[w]) != NULL,
			              "%s lacks %s: %s",
			              quire_status_name(promised[i].status),
			              promised[i].words[w], text);
	}
}
END_TEST

START_TEST(a_pool_refusal_names_what_was_asked_and_what_is_there)
{
	const struct quire_refusal refusal = {
		.status = QUIRE_NO_PAGES, .requested = 7, .available = 3, .what = ""};
	char text[TEXT_MAX];

	(void)quire_refusal_text(&refusal, text, sizeof(text));
	ck_assert_str_eq(text, "not enough pages: 7 requested, 3 available");
}
END_TEST

START_TEST(a_broken_rule_names_its_page_when_no_stream_is_named)
{
	struct quire_refusal refusal = {
		.status = QUIRE_BROKEN, .what = "a rule", .page = 0};
	char text[TEXT_MAX];

	(void)quire_refusal_text(&refusal, text, sizeof(text));
	ck_assert_str_eq(text, "an invariant does not hold: a rule, page 0");
	refusal.page = -1;
	(void)quire_refusal_text(&refusal, text, sizeof(text));
	ck_assert_str_eq(text, "an invariant does not hold: a rule");
}
END_TEST

START_TEST(a_place_or_a_bound_that_says_nothing_is_left_out)
{
	struct quire_refusal refusal = {
		.status = QUIRE_INVALID, .what = "x is NULL", .index = -1};
	char text[TEXT_MAX];

	(void)quire_refusal_text(&refusal, text, sizeof(text));
	ck_assert_str_eq(text, "invalid: x is NULL");
	refusal.index = 0;
	(void)quire_refusal_text(&refusal, text, sizeof(text));
	ck_assert_str_eq(text, "invalid: x is NULL [0]");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("status");
	TCase *tcase = tcase_create("status");

	tcase_add_test(tcase, names_and_numbers_never_change);
	tcase_add_test(tcase, every_status_has_a_meaning_of_its_own);
	tcase_add_test(tcase, every_status_gives_a_sentence);
	tcase_add_test(tcase, a_short_buffer_gets_the_start_and_the_true_length);
	tcase_add_test(tcase, no_byte_behind_the_buffer_is_touched);
	tcase_add_test(tcase, a_sentence_names_what_the_header_promises);
	tcase_add_test(tcase, a_pool_refusal_names_what_was_asked_and_what_is_there);
	tcase_add_test(tcase, a_broken_rule_names_its_page_when_no_stream_is_named);
	tcase_add_test(tcase, a_place_or_a_bound_that_says_nothing_is_left_out);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
