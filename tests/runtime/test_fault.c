/* SPDX-License-Identifier: MIT */
/* What the quire command tells: one line for a fault, one fault of several threads. */
#include "config.h"

#include "runtime/cmd/cmd_impl.h"

#include "tests/run_suite.h"

#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define THREADS 8

static FILE *told; /* standard error */
static int kept;
static pthread_barrier_t barrier;

static void setup(void)
{
	told = tmpfile();
	kept = dup(STDERR_FILENO);
	dup2(fileno(told), STDERR_FILENO);
}

static void teardown(void)
{
	dup2(kept, STDERR_FILENO);
	close(kept);
	fclose(told);
}

static int32_t lines_told(void)
{
	int32_t lines = 0;
	int c;

	rewind(told);
	while ((c = getc(told)) != EOF)
		lines += c == '\n';
	return lines;
}

START_TEST(a_fault_is_one_line)
{
	char line[80];

	cmd_tell("a\nfile", 7, "two\nlines of %s", "text");
	rewind(told);
	ck_assert(fgets(line, sizeof(line), told) != NULL);
	ck_assert_str_eq(line, "quire: a?file:7: two?lines of text\n");
	ck_assert(fgets(line, sizeof(line), told) == NULL);
}
END_TEST

static void *tell(void *gate)
{
	cmd_tell_through(gate);
	pthread_barrier_wait(&barrier);
	cmd_tell("file", 1, "a fault");
	cmd_tell("file", 2, "another");
	return NULL;
}

START_TEST(threads_with_one_gate_tell_one_fault)
{
	struct cmd_gate gate = {.told = ATOMIC_FLAG_INIT};
	pthread_t threads[THREADS];

	pthread_barrier_init(&barrier, NULL, THREADS);
	for (int i = 0; i < THREADS; i++)
		ck_assert(pthread_create(&threads[i], NULL, tell, &gate) == 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&barrier);
	ck_assert_int_eq(lines_told(), 1);
}
END_TEST

START_TEST(without_a_gate_all_are_told)
{
	struct cmd_gate gate = {.told = ATOMIC_FLAG_INIT};

	cmd_tell_through(&gate);
	cmd_tell("file", 1, "a fault");
	cmd_tell("file", 2, "another");
	cmd_tell_through(NULL);
	cmd_tell("file", 3, "one more");
	cmd_tell("file", 4, "and one");
	ck_assert_int_eq(lines_told(), 3);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("fault");
	TCase *test_case = tcase_create("fault");

	tcase_add_checked_fixture(test_case, setup, teardown);
	tcase_add_test(test_case, a_fault_is_one_line);
	tcase_add_test(test_case, threads_with_one_gate_tell_one_fault);
	tcase_add_test(test_case, without_a_gate_all_are_told);
	suite_add_tcase(suite, test_case);
	return run_suite(suite);
}
