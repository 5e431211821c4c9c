/* SPDX-License-Identifier: MIT */
/* What replay --check knows of streams: lives, and which step is a life's last. */
#include "config.h"

#include "runtime/cmd/streams_impl.h"

#include "tests/run_suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct cmd_streams streams;

static void setup(void)
{
	memset(&streams, 0, sizeof(streams));
	streams.counting = true;
}

static void teardown(void)
{
	cmd_streams_end(&streams);
}

/* Steps of request 7: three, a reset, one, a reset, two; one of request 8 between. */
static const char *const walk = "777r7r8 77";

/* Walk; with @last_out, note for every step whether it is its life's last. */
static void take_walk(char *last_out)
{
	for (const char *at = walk; *at != '\0'; at++) {
		uint64_t request = *at == '8' ? 8 : 7;
		struct cmd_stream *stream;

		if (*at == 'r')
			cmd_streams_drop(&streams, cmd_streams_find(&streams, 7, 0));
		if (*at == 'r' || *at == ' ')
			continue;
		stream = cmd_streams_step(&streams, request, 0);
		ck_assert_ptr_nonnull(stream);
		if (last_out != NULL)
			*last_out++ = cmd_streams_is_last(&streams, stream) ? 'L' : '.';
	}
}

START_TEST(the_second_walk_knows_the_last_step_of_every_life)
{
	char last[16] = "";

	take_walk(NULL);
	cmd_streams_rewind(&streams);
	take_walk(last);
	ck_assert_str_eq(last, "..LLL.L");
}
END_TEST

START_TEST(a_drop_ends_a_life_and_the_next_step_begins_another)
{
	struct cmd_stream *stream = cmd_streams_step(&streams, 1, 0);
	int64_t life = stream->life;

	ck_assert_ptr_eq(cmd_streams_step(&streams, 1, 0), stream);
	ck_assert_int_eq(stream->steps, 2);
	cmd_streams_drop(&streams, stream);
	ck_assert_ptr_null(cmd_streams_find(&streams, 1, 0));
	stream = cmd_streams_step(&streams, 1, 0);
	ck_assert_int_eq(stream->steps, 1);
	ck_assert_int_ne(stream->life, life);
}
END_TEST

START_TEST(requests_and_labels_have_streams_of_their_own)
{
	for (uint64_t request = 0; request < 30; request++)
		for (int32_t label = 0; label < 3; label++)
			cmd_streams_step(&streams, request << 40, label)->written =
				(int64_t)request * 3 + label;
	for (uint64_t request = 0; request < 30; request++)
		for (int32_t label = 0; label < 3; label++)
			ck_assert_int_eq(
				cmd_streams_find(&streams, request << 40, label)->written,
				(int64_t)request * 3 + label);
	for (int32_t n = 0; n < 90; n++)
		cmd_streams_drop(&streams, cmd_streams_any(&streams));
	ck_assert_ptr_null(cmd_streams_any(&streams));
}
END_TEST

START_TEST(a_label_too_many_has_no_id)
{
	char name[8];

	ck_assert_int_eq(cmd_streams_label(&streams, NULL), 0);
	ck_assert_int_eq(cmd_streams_label(&streams, QUIRE_LABEL_MAIN), 0);
	for (int32_t i = 1; i < QUIRE_LABELS_MAX; i++) {
		snprintf(name, sizeof(name), "l%d", i);
		ck_assert_int_eq(cmd_streams_label(&streams, name), i);
	}
	ck_assert_int_eq(cmd_streams_label(&streams, "one more"), -1);
	ck_assert_int_eq(cmd_streams_label(&streams, "l5"), 5);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("streams");
	TCase *tcase = tcase_create("streams");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, the_second_walk_knows_the_last_step_of_every_life);
	tcase_add_test(tcase, a_drop_ends_a_life_and_the_next_step_begins_another);
	tcase_add_test(tcase, requests_and_labels_have_streams_of_their_own);
	tcase_add_test(tcase, a_label_too_many_has_no_id);
	return run_suite(suite);
}
