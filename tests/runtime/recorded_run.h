/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_TESTS_RUNTIME_RECORDED_RUN_H
#define QUIRE_TESTS_RUNTIME_RECORDED_RUN_H
/* Runs of steps under a recording that may end by itself. */
#include "recorded.h"

#include <time.h>

#define PATIENCE_NS 20000000000ll

static struct fixture f;

static inline int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ll + now.tv_nsec;
}

static inline void nap(void)
{
	const struct timespec time = {.tv_nsec = 200000};

	nanosleep(&time, NULL);
}

/* A recording that has ended says why; its thread has a little time for that. */
static inline struct quire_record_status await_end(void)
{
	int64_t deadline = now_ns() + PATIENCE_NS;
	struct quire_record_status status;

	do {
		nap();
		status = recorded_status(&f);
		ck_assert_int_lt(now_ns(), deadline);
	} while (status.active || status.refusal.status == QUIRE_OK);
	return status;
}

/* Steps of one row; false: one was refused. */
static inline bool give_steps(int n)
{
	bool good = true;

	for (int i = 0; i < n; i++)
		good &= extend_now(&f, 1, NULL, i % 5 == 4 ? 0 : 1, QUIRE_AT_ANY)
		                        .refusal.status == QUIRE_OK &&
		        (i % 64 < 63 || i == n - 1 ||
		         reset_now(&f, 1, NULL, false) == QUIRE_OK);
	return good & (reset_now(&f, 1, NULL, false) == QUIRE_OK);
}

static inline void run_steps(int n)
{
	ck_assert(give_steps(n));
}

static inline void start(const struct quire_record_config *config)
{
	recorded_begin(&f, 64, 4);
	recorded_create(&f, config);
	ck_assert_int_eq(open_now(&f, 1), QUIRE_OK);
}

/* The steps that a timeline says were planned, in their order and once; how many. */
static inline int count_plans(const char *path)
{
	static char text[4 << 20];
	FILE *file = fopen(path, "r");
	long before = 0;
	int n = 0;

	ck_assert_ptr_nonnull(file);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	ck_assert_str_eq(text + strlen(text) - 3, "\n]\n");
	for (char *c = text; (c = strstr(c, "\"plan ")) != NULL; n++) {
		long ticket = strtol(c + strlen("\"plan "), &c, 10);

		ck_assert_int_gt(ticket, before);
		before = ticket;
	}
	return n;
}

#endif
