/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_TESTS_RUN_SUITE_H
#define QUIRE_TESTS_RUN_SUITE_H
/* The end of every test program's main: run a suite, and answer its exit status. */
#include <check.h>
#include <stdlib.h>

static inline int run_suite(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	int failed;

	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
