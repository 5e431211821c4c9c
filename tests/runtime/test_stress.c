/* SPDX-License-Identifier: MIT */
/* quire stress over a broken pool: each fault is seen, told in one line, and ends it. */
#include "config.h"

#include "runtime/cmd/cmd_impl.h"

#include "tests/run_suite.h"
#include "tests/runtime/broken_pool.h"

#include <quire/runtime/sanitize.h>

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARGUMENTS_MAX 32
#define TEXT_BYTES    2048

/* What a run left on standard output and standard error. */
static char out[TEXT_BYTES], err[TEXT_BYTES];

/* Where a stream goes meanwhile, and where it went before. */
struct diverted {
	FILE *file;
	FILE *stream;
	int before;
};

static void divert(struct diverted *diverted, FILE *stream)
{
	fflush(stream);
	diverted->stream = stream;
	diverted->file = tmpfile();
	ck_assert_ptr_nonnull(diverted->file);
	diverted->before = dup(fileno(stream));
	dup2(fileno(diverted->file), fileno(stream));
}

static void restore(struct diverted *diverted, char *text)
{
	size_t length;

	fflush(diverted->stream);
	dup2(diverted->before, fileno(diverted->stream));
	close(diverted->before);
	rewind(diverted->file);
	length = fread(text, 1, TEXT_BYTES - 1, diverted->file);
	text[length] = '\0';
	fclose(diverted->file);
}

/* Run the words of a command line; answers the exit status. */
static int run_line(const char *line)
{
	struct diverted diverted_out, diverted_err;
	char words[TEXT_BYTES];
	char *argv[ARGUMENTS_MAX];
	int argc = 0, code;

	snprintf(words, sizeof(words), "%s", line);
	for (char *word = strtok(words, " \n"); word != NULL;
	     word = strtok(NULL, " \n")) {
		ck_assert_int_lt(argc, ARGUMENTS_MAX - 1);
		argv[argc++] = word;
	}
	argv[argc] = NULL;
	divert(&diverted_out, stdout);
	divert(&diverted_err, stderr);
	code = cmd_stress(argc, argv);
	restore(&diverted_err, err);
	restore(&diverted_out, out);
	return code;
}

/* A fault is told by a line that begins with `begin` and goes on with `then`. */
static void check_told(enum broken_pool_fault fault, const char *options,
                       const char *begin, const char *then)
{
	char line[TEXT_BYTES];
	const char *found;

	broken_pool_fault = fault;
	snprintf(line, sizeof(line), "stress --seed 7 %s", options);
	ck_assert_msg(run_line(line) == CMD_FAILED, "%s: not found", options);
	ck_assert_msg(strncmp(err, "quire: ", 7) == 0, "%s", err);
	ck_assert_msg(strncmp(err + 7, begin, strlen(begin)) == 0, "%s", err);
	found = strstr(err, then);
	ck_assert_msg(found != NULL, "%s", err);
	ck_assert_msg(strstr(found, "; to repeat: quire stress --threads ") != NULL, "%s",
	              err);
	ck_assert_msg(strstr(found, " --seed 7\n") != NULL, "%s", err);
	ck_assert_ptr_eq(strchr(err, '\n'), err + strlen(err) - 1);
	ck_assert_str_eq(out, "");
}

#define SMALL "--allocator mutex --pages 64 --batch-max 32 --ops 20000 --threads "

/* A fault that comes under way: by one thread, by two and with one giver. */
static void check_fault(enum broken_pool_fault fault, const char *begin, const char *then)
{
	check_told(fault, SMALL "1", begin, then);
	check_told(fault, SMALL "2", begin, then);
	check_told(fault, SMALL "3 --giver single", begin, then);
}

/* The same of one that shows at the end. */
static void check_end(enum broken_pool_fault fault, const char *begin, const char *then)
{
	check_told(fault, SMALL "1 --ops 200", begin, then);
	check_told(fault, SMALL "2 --ops 200", begin, then);
	check_told(fault, SMALL "3 --giver single --ops 200", begin, then);
}

START_TEST(a_sound_pool_passes)
{
	ck_assert_int_eq(run_line("stress --allocator mutex --pages 64 --ops 2000"),
	                 CMD_DONE);
	ck_assert_str_eq(err, "");
	ck_assert_ptr_nonnull(strstr(out, "ownership table          no violation\n"));
}
END_TEST

/* As check_fault() where a page may come into two hands: ThreadSanitizer sees that as a
 * race, and ends the run. */
static void check_shared(enum broken_pool_fault fault, const char *begin,
                         const char *then)
{
#ifdef QUIRE_TSAN
	check_told(fault, SMALL "1", begin, then);
#else
	check_fault(fault, begin, then);
#endif
}

START_TEST(a_page_handed_out_twice_is_seen)
{
	check_shared(BROKEN_TAKE_TWICE, "page ", " was handed out twice: to thread ");
	check_told(BROKEN_TAKE_TWICE, SMALL "1", "page ",
	           " was handed out twice: to thread 0 while thread 0 had it");
}
END_TEST

START_TEST(a_page_that_does_not_exist_is_seen)
{
	check_fault(BROKEN_TAKE_RANGE, "thread ",
	            " was handed page 64, and the pool has 64");
}
END_TEST

START_TEST(a_take_refused_without_reason_is_seen)
{
	check_fault(BROKEN_TAKE_REFUSED, "a take of ",
	            " was answered with NO_PAGES {requested ");
}
END_TEST

START_TEST(a_take_refused_with_a_wrong_status_or_number_is_seen)
{
	check_fault(BROKEN_TAKE_STATUS, "a take of ",
	            " was answered with AGAIN {requested ");
	check_fault(BROKEN_TAKE_MISCOUNTED, "a take of ", ", available -1}");
}
END_TEST

START_TEST(a_wait_that_ends_early_is_seen)
{
	check_fault(BROKEN_WAIT_EARLY, "a take of ", " did not wait until its deadline");
}
END_TEST

/* One thread knows at once, the others do when all is back. */
/* A page that is lost is missed at the end, unless it is given again before, by a batch that
 * is wrong on purpose: the pool takes it, for it never came back. */
static void check_lost(const char *options)
{
	const char *line = "stress --seed 7 " SMALL;
	char text[TEXT_BYTES];

	broken_pool_fault = BROKEN_FREE_LOSES;
	snprintf(text, sizeof(text), "%s%s", line, options);
	ck_assert_int_eq(run_line(text), CMD_FAILED);
	ck_assert_msg(strncmp(err, "quire: page ", 12) == 0, "%s", err);
	ck_assert_msg(
		strstr(err, " is lost: nobody has it, and it is not among the ") !=
				NULL ||
			strstr(err,
	                       ", free already, was given again and answered with OK") !=
				NULL,
		"%s", err);
}

START_TEST(a_page_that_is_lost_is_seen)
{
	check_told(BROKEN_FREE_LOSES, SMALL "1", "", " pages are said to be free, ");
	check_lost("2 --ops 200");
	check_lost("3 --giver single --ops 200");
}
END_TEST

START_TEST(a_good_batch_refused_is_seen)
{
	check_fault(BROKEN_FREE_REFUSED, "thread ",
	            " could not give back pages that it had: NOT_OWNED {page ");
}
END_TEST

START_TEST(a_contested_page_refused_for_ever_is_seen)
{
#ifdef QUIRE_HAVE_CAS128
	check_told(BROKEN_FREE_CONTESTED,
	           "--allocator fifo --pages 64 --ops 2000 --threads 2", "thread ",
	           " could not give back pages that it had: NOT_OWNED {page 0,");
#endif
	check_fault(BROKEN_FREE_CONTESTED, "thread ",
	            " could not give back pages that it had: NOT_OWNED {page 0,");
}
END_TEST

START_TEST(a_free_page_given_again_and_accepted_is_seen)
{
	check_end(BROKEN_FREE_TWICE, "page ",
	          ", free already, was given again and answered with OK {");
}
END_TEST

START_TEST(a_bad_batch_accepted_is_seen)
{
	check_fault(BROKEN_BAD_ACCEPTED, "a bad batch of thread ",
	            " was answered with OK {page 0, place 0}");
}
END_TEST

START_TEST(a_bad_batch_of_which_a_part_was_given_is_seen)
{
	check_shared(BROKEN_BAD_GIVEN, "", "page ");
}
END_TEST

START_TEST(a_refusal_with_a_wrong_status_place_or_page_is_seen)
{
	check_fault(BROKEN_BAD_STATUS, "a bad batch of thread ", " was answered with ");
	check_fault(BROKEN_BAD_PLACE, "a bad batch of thread ", " was answered with ");
	check_fault(BROKEN_BAD_PLACE_RANGE, "a bad batch of thread ",
	            " was answered with INVALID ");
#ifdef QUIRE_HAVE_CAS128
	check_told(BROKEN_BAD_PLACE, "--allocator fifo --ops 2000",
	           "a bad batch of thread ", " was answered with ");
#endif
	check_fault(BROKEN_BAD_PAGE, "a bad batch of thread ",
	            " was answered with NOT_OWNED {page -1, place ");
}
END_TEST

START_TEST(a_count_that_cannot_be_is_seen)
{
	check_fault(BROKEN_COUNT_HIGH, "64 pages are said to be free, while thread ",
	            " of 64");
	check_fault(BROKEN_COUNT_LOW, "-1 pages are said to be free, while thread ",
	            " of 64");
}
END_TEST

START_TEST(a_self_check_that_fails_is_told)
{
	check_end(BROKEN_CHECK,
	          "the pool's self-check failed: ", "a rule made up, page 7");
}
END_TEST

START_TEST(a_take_of_all_that_is_refused_or_in_another_order_is_seen)
{
	check_end(BROKEN_TAKE_ALL,
	          "a take of all 64 pages was refused at the end, 64 were available", "");
	check_end(BROKEN_TAKE_ORDER, "page ", " came out at place ");
}
END_TEST

START_TEST(a_thread_that_does_not_come_back_is_named)
{
	broken_pool_fault = BROKEN_HANG;
	ck_assert_int_eq(run_line("stress --json --seconds 9 --threads 2"), CMD_FAILED);
	ck_assert_ptr_nonnull(strstr(err, "quire: thread "));
	ck_assert_ptr_nonnull(strstr(
		err, " has not come back from a call of the pool for 2 s; to repeat: "));
	ck_assert_ptr_nonnull(strstr(out, "\"status\": \"failed\""));
}
END_TEST

START_TEST(a_run_in_which_nothing_moves_is_ended)
{
	check_told(BROKEN_TAKE_NEVER, SMALL "2", "no take has succeeded for 2 s", "");
}
END_TEST

START_TEST(the_command_line_that_is_told_does_it_again)
{
	char first[TEXT_BYTES];

	check_told(BROKEN_TAKE_TWICE, "--pages 300 --ops 2000 --threads 1 --hold 99", "",
	           "");
	snprintf(first, sizeof(first), "%s", err);
	ck_assert_int_eq(run_line(strstr(first, "stress --threads")), CMD_FAILED);
	ck_assert_str_eq(err, first);
}
END_TEST

START_TEST(json_has_the_violation)
{
	broken_pool_fault = BROKEN_TAKE_RANGE;
	ck_assert_int_eq(run_line("stress --json --pages 9 --ops 2000 --threads 2"),
	                 CMD_FAILED);
	ck_assert_ptr_nonnull(strstr(out, "\"status\": \"failed\""));
	ck_assert_ptr_nonnull(strstr(out, "\"violation\": \"thread "));
	ck_assert_ptr_nonnull(strstr(out, " was handed page 9, and the pool has 9\""));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("stress");
	TCase *tcase = tcase_create("stress");

	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, a_sound_pool_passes);
	tcase_add_test(tcase, a_page_handed_out_twice_is_seen);
	tcase_add_test(tcase, a_page_that_does_not_exist_is_seen);
	tcase_add_test(tcase, a_take_refused_without_reason_is_seen);
	tcase_add_test(tcase, a_take_refused_with_a_wrong_status_or_number_is_seen);
	tcase_add_test(tcase, a_wait_that_ends_early_is_seen);
	tcase_add_test(tcase, a_page_that_is_lost_is_seen);
	tcase_add_test(tcase, a_good_batch_refused_is_seen);
	tcase_add_test(tcase, a_contested_page_refused_for_ever_is_seen);
	tcase_add_test(tcase, a_free_page_given_again_and_accepted_is_seen);
	tcase_add_test(tcase, a_bad_batch_accepted_is_seen);
	tcase_add_test(tcase, a_bad_batch_of_which_a_part_was_given_is_seen);
	tcase_add_test(tcase, a_refusal_with_a_wrong_status_place_or_page_is_seen);
	tcase_add_test(tcase, a_count_that_cannot_be_is_seen);
	tcase_add_test(tcase, a_self_check_that_fails_is_told);
	tcase_add_test(tcase, a_take_of_all_that_is_refused_or_in_another_order_is_seen);
	tcase_add_test(tcase, a_thread_that_does_not_come_back_is_named);
	tcase_add_test(tcase, a_run_in_which_nothing_moves_is_ended);
	tcase_add_test(tcase, the_command_line_that_is_told_does_it_again);
	tcase_add_test(tcase, json_has_the_violation);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
