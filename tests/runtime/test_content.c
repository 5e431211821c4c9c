/* SPDX-License-Identifier: MIT */
/* What replay --check says that streams hold, against a plain array of tokens. */
#include "config.h"

#include "runtime/cmd/content_impl.h"

#include "tests/run_suite.h"

#include <check.h>
#include <string.h>

#define STREAMS 3
#define MOST    400

/* A token as (seed, number in its pattern). */
struct token {
	uint64_t seed;
	int64_t number;
};

struct plain {
	struct token tokens[MOST];
	int64_t length, released;
};

static struct cmd_contents contents;
static struct plain plain[STREAMS];
static uint64_t state;

static void setup(void)
{
	memset(&contents, 0, sizeof(contents));
	memset(plain, 0, sizeof(plain));
	state = 88172645463325252u;
}

static void teardown(void)
{
	cmd_contents_end(&contents);
}

static int64_t below(int64_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (int64_t)(state % (uint64_t)n);
}

static void append(struct cmd_content *content, struct plain *right, int64_t number)
{
	const struct cmd_piece piece = {
		.seed = (uint64_t)below(3), .first = number, .count = below(9)};

	ck_assert(cmd_content_append(content, &piece));
	for (int64_t i = 0; i < piece.count; i++)
		right->tokens[right->length++] =
			(struct token){piece.seed, piece.first + i};
}

/* One change at random to both. */
static void change(int64_t number)
{
	int64_t k = below(STREAMS), from = below(STREAMS), cut;
	struct cmd_content *content = cmd_contents_make(&contents, 5, (int32_t)k);
	struct cmd_content *source = cmd_contents_make(&contents, 5, (int32_t)from);
	struct plain *right = &plain[k];

	cut = below(right->length + 1);
	switch (right->length > MOST - 10 ? 1 + below(4) : below(12)) {
	case 1:
		cmd_content_cut_end(content, cut);
		right->length -= cut;
		break;
	case 2:
		cmd_content_cut_front(content, cut);
		right->length -= cut;
		right->released += cut;
		memmove(right->tokens, right->tokens + cut,
		        (size_t)right->length * sizeof(struct token));
		break;
	case 3:
		if (k != from) {
			ck_assert(cmd_content_copy(content, source));
			*right = plain[from];
		}
		break;
	case 4:
		cmd_content_clear(content);
		right->length = right->released = 0;
		break;
	default:
		append(content, right, number);
		break;
	}
}

static void compare(const struct cmd_content *content, const struct plain *right)
{
	int64_t n = 0;

	ck_assert_int_eq(content->length, right->length);
	ck_assert_int_eq(content->released, right->released);
	for (int32_t p = 0; p < content->num; p++) {
		ck_assert_int_gt(content->pieces[p].count, 0);
		for (int64_t i = 0; i < content->pieces[p].count; i++, n++) {
			ck_assert_uint_eq(content->pieces[p].seed, right->tokens[n].seed);
			ck_assert_int_eq(content->pieces[p].first + i,
			                 right->tokens[n].number);
		}
	}
	ck_assert_int_eq(n, right->length);
}

START_TEST(changes_at_random_leave_the_tokens_of_a_plain_list)
{
	for (int64_t number = 0; number < 20000; number++) {
		change(number * 10);
		for (int32_t k = 0; k < STREAMS; k++) {
			const struct cmd_content *content =
				cmd_contents_find(&contents, 5, k);

			if (content != NULL)
				compare(content, &plain[k]);
		}
	}
}
END_TEST

START_TEST(tokens_that_follow_on_are_one_piece)
{
	struct cmd_content *content = cmd_contents_make(&contents, 1, 0);
	struct cmd_piece piece = {.seed = 7, .first = 3, .count = 2};

	ck_assert(cmd_content_append(content, &piece));
	piece.first = 5;
	ck_assert(cmd_content_append(content, &piece));
	ck_assert_int_eq(content->num, 1);
	piece.first = 8;
	ck_assert(cmd_content_append(content, &piece));
	ck_assert_int_eq(content->num, 2);
	piece.seed = 8;
	piece.first = 10;
	ck_assert(cmd_content_append(content, &piece));
	ck_assert_int_eq(content->num, 3);
	ck_assert_int_eq(content->length, 8);
}
END_TEST

START_TEST(requests_and_labels_hold_their_own_until_they_are_dropped)
{
	struct cmd_content *content = cmd_contents_make(&contents, 1, 0);

	ck_assert_ptr_eq(cmd_contents_make(&contents, 1, 0), content);
	ck_assert_ptr_ne(cmd_contents_make(&contents, 1, 1), content);
	ck_assert_ptr_ne(cmd_contents_make(&contents, 2, 0), content);
	ck_assert_ptr_eq(cmd_contents_find(&contents, 1, 0), content);
	cmd_contents_drop(&contents, content);
	ck_assert_ptr_null(cmd_contents_find(&contents, 1, 0));
	ck_assert_ptr_nonnull(cmd_contents_find(&contents, 2, 0));
	cmd_contents_drop(&contents, NULL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("content");
	TCase *tcase = tcase_create("content");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, changes_at_random_leave_the_tokens_of_a_plain_list);
	tcase_add_test(tcase, tokens_that_follow_on_are_one_piece);
	tcase_add_test(tcase, requests_and_labels_hold_their_own_until_they_are_dropped);
	return run_suite(suite);
}
