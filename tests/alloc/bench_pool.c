/* SPDX-License-Identifier: MIT */
/*
 * The pool beside what one might have used instead: a ring under a mutex, with the same
 * checks and without, DPDK's and ConcurrencyKit's rings, liburcu's queue, the Python
 * original.  All run in turns, round by round; each is checked before it is timed.
 */
#include "config.h"

#include "tests/alloc/rivals/cases.h"
#include "tests/alloc/rivals/measure.h"

#include <getopt.h>
#include <math.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	void (*run)(const struct rival_list *list, const struct effort *effort);
} cases[] = {
	{"pairs", case_pairs},
	{"sizes", case_sizes},
	{"taker_giver", case_taker_giver},
	{"mixed_4", case_mixed_4},
	{"mixed_16", case_mixed_16},
};

#define NUM_CASES (sizeof(cases) / sizeof(*cases))

static const struct effort whole = {
	.pair_rounds = 101,
	.size_rounds = 45,
	.thread_rounds = 15,
	.size_pages_max = 1 << 24,
	.thread_s = 0.1,
};

static const struct effort quick = {
	.pair_rounds = 15,
	.size_rounds = 9,
	.thread_rounds = 3,
	.size_pages_max = 1 << 16,
	.thread_s = 0.03,
};

/*
 * What the pool is to reach: the median ratio of two rivals' rounds or, without `to`, the
 * median of one's.
 */
static const struct bar {
	const char *what;
	const char *measure;
	const char *rival, *to;
	double limit;
	bool at_least; /* or at most */
} bars[] = {
	{"one thread, n = 1, to the mutex with checks", "pair_1", "pool", "mutex_checks",
         1.4, false},
	{"one thread, n = 64, to the mutex with checks", "pair_64", "pool",
         "mutex_checks", 2.8, false},
	{"one thread, n = 64, one giver, to the same", "pair_64", "pool_one_giver",
         "mutex_checks", 1.6, false},
	{"taker and giver, to the mutex with checks", "taker_giver", "pool",
         "mutex_checks", 1.3, true},
	{"taker and giver, one giver, to the same", "taker_giver", "pool_one_giver",
         "mutex_checks", 1.3, true},
	{"taker and giver, p99.9 of a take, ns", "taker_giver_p999", "pool", NULL, 1000,
         false},
	{"taker and giver, one giver, p99.9 of a take, ns", "taker_giver_p999",
         "pool_one_giver", NULL, 1000, false},
	{"16 threads, to the mutex with checks", "mixed_16", "pool", "mutex_checks", 1.0,
         true},
	{"16 threads, to rte_ring RTS", "mixed_16", "pool", "rte_ring_rts", 2.5, true},
	{"16 threads, to the default rte_ring", "mixed_16", "pool", "rte_ring", 30, true},
	{"16 threads, p99.99 of a take, mutex with checks to pool", "mixed_16_p9999",
         "mutex_checks", "pool", 30, true},
	{"one thread, n = 1, Python to pool", "pair_1", "python", "pool", 60, true},
	{"one thread, n = 64, Python to pool", "pair_64", "python", "pool", 200, true},
	{"bytes per page", "bytes_16M", "pool", NULL, 41, false},
};

static const struct rival *named(const char *name)
{
	const struct rival *rivals[RIVALS_MAX];
	int num = rivals_list(rivals);

	for (int i = 0; i < num; i++) {
		if (strcmp(rivals[i]->name, name) == 0)
			return rivals[i];
	}
	return NULL;
}

static void print_bar(const struct bar *bar)
{
	const struct rival *rival = named(bar->rival);
	double measured =
		bar->to ? measure_ratio(bar->measure, rival, named(bar->to), 0.5)
			: measure_value(bar->measure, rival, 0.5);
	const char *verdict = "missed";

	if (isnan(measured))
		verdict = "not measured";
	else if (bar->at_least ? measured >= bar->limit : measured <= bar->limit)
		verdict = "met";
	printf("bar | %s | %s %g | %.4g | %s\n", bar->what,
	       bar->at_least ? ">=" : "<=", bar->limit, measured, verdict);
}

/* The rivals that can be had here and keep their order; a wrong one ends the program. */
static void find_rivals(struct rival_list *list_out)
{
	const struct rival *rivals[RIVALS_MAX];
	int num = rivals_list(rivals);

	list_out->num = 0;
	for (int i = 0; i < num; i++) {
		const char *fault = rival_fault(rivals[i]);

		if (fault == rival_absent) {
			printf("# %s: left out, %s\n", rivals[i]->name, fault);
			continue;
		}
		if (fault)
			fprintf(stderr, "bench_pool: %s %s\n", rivals[i]->name, fault);
		rival_must(!fault, "a rival that is not right is not measured");
		list_out->rivals[list_out->num++] = rivals[i];
	}
}

static void print_usage(FILE *stream)
{
	fputs("usage: bench_pool [--quick] [--case NAME]...\n"
	      "  --quick      few and short rounds, no large pool\n"
	      "  --case NAME  only this one of:",
	      stream);
	for (size_t i = 0; i < NUM_CASES; i++)
		fprintf(stream, " %s", cases[i].name);
	fputs("\nEach line: name value unit ratio, the quartiles of value and ratio,\n"
	      "rounds; the ratio is to mutex_checks in the same rounds.  At the end,\n"
	      "the bars.\n",
	      stream);
}

/* Marks the case of that name; false: there is none. */
static bool want(bool wanted[], const char *name)
{
	for (size_t i = 0; i < NUM_CASES; i++) {
		if (strcmp(cases[i].name, name) == 0) {
			wanted[i] = true;
			return true;
		}
	}
	return false;
}

static const struct effort *parse_options(int argc, char **argv, bool wanted[])
{
	static const struct option options[] = {
		{"quick", no_argument, NULL, 'q'},
		{"case", required_argument, NULL, 'c'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	const struct effort *effort = &whole;
	bool some = false, right = true;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'h') {
			print_usage(stdout);
			exit(EXIT_SUCCESS);
		}
		if (option == 'q')
			effort = &quick;
		else if (option == 'c')
			some = want(wanted, optarg);
		right = right && (option == 'q' || (option == 'c' && some));
	}
	if (!right || optind < argc) {
		print_usage(stderr);
		exit(EXIT_FAILURE);
	}
	for (size_t i = 0; i < NUM_CASES; i++)
		wanted[i] = wanted[i] || !some;
	return effort;
}

static void *idle(void *arg)
{
	sem_wait(arg);
	return NULL;
}

int main(int argc, char **argv)
{
	bool wanted[NUM_CASES] = {0};
	const struct effort *effort = parse_options(argc, argv, wanted);
	struct rival_list list;
	pthread_t thread;
	sem_t end;

	/* A rival's process that ends is found out by the missing answer. */
	signal(SIGPIPE, SIG_IGN);
	/* In a process of one thread the C library leaves the atomics of a lock out. */
	sem_init(&end, 0, 0);
	rival_must(pthread_create(&thread, NULL, idle, &end) == 0, "no thread");
	find_rivals(&list);
	printf("# name value unit ratio value_q1 value_q3 ratio_q1 ratio_q3 rounds\n");
	for (size_t i = 0; i < NUM_CASES; i++) {
		if (wanted[i])
			cases[i].run(&list, effort);
	}
	printf("# what | bar | measured\n");
	for (size_t i = 0; i < sizeof(bars) / sizeof(*bars); i++)
		print_bar(&bars[i]);
	sem_post(&end);
	pthread_join(thread, NULL);
	sem_destroy(&end);
	return EXIT_SUCCESS;
}
