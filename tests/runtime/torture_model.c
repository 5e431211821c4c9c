/* SPDX-License-Identifier: MIT */
/*
 * torture_model: the runtime against the model, over very many random lists.
 *
 *   --lists N     of each mode; seeds from --seed on.  20000
 *   --seed N      1
 *   --commands N  of a list.  20
 *   --mode N      only this one (sim_modes.h)
 *   --features N  what lists have in them (model_lists.h)
 *   -j N          processes.  1
 *
 * Each list is run by one of the processes.  The first that fails, however it ends, ends
 * the others; what it was at is said so that these options repeat it.
 */
#include "config.h"

#include "sim_modes.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define JOBS_MAX   64
#define PROGRESS_S 10
#define LOOK_NS    50000000 /* between looks at the processes */

struct options {
	long long lists;
	long long seed;
	long long commands;
	long long mode; /* -1: all */
	long long features;
	long long jobs;
};

static bool read_options(int argc, char **argv, struct options *options)
{
	const struct {
		const char *name;
		long long *value;
		long long least, most;
	} known[] = {
		{"--lists", &options->lists, 1, INT64_C(1) << 40},
		{"--seed", &options->seed, 0, INT64_MAX / 2},
		{"--commands", &options->commands, 1, ORDER_COMMANDS_MAX},
		{"--mode", &options->mode, 0, MODES - 1},
		{"--features", &options->features, 0,
	         LIST_ALL | LIST_WIDE | LIST_RECORDED},
		{"-j", &options->jobs, 1, JOBS_MAX},
	};

	for (int i = 1; i < argc; i += 2) {
		size_t k = 0;
		char *end;

		while (k < sizeof(known) / sizeof(known[0]) &&
		       strcmp(argv[i], known[k].name) != 0)
			k++;
		if (k == sizeof(known) / sizeof(known[0]) || i + 1 == argc)
			return false;
		*known[k].value = strtoll(argv[i + 1], &end, 10);
		if (*end != '\0' || *known[k].value < known[k].least ||
		    *known[k].value > known[k].most)
			return false;
	}
	return true;
}

static bool has_mode(const struct options *options, int32_t mode)
{
	return options->mode < 0 || options->mode == mode;
}

static int32_t num_modes(const struct options *options)
{
	return options->mode < 0 ? MODES : 1;
}

/* ------------------------------------------------------------------ the processes */

/* Every list in turn is another process's; all modes of a seed are one's. */
static int run_lists(const struct options *options, struct sim_place *place, int32_t job)
{
	for (long long i = job; i < options->lists; i += options->jobs)
		for (int32_t mode = 0; mode < MODES; mode++)
			if (has_mode(options, mode) &&
			    !sim_run_list(place, (enum mode)mode,
			                  (uint64_t)(options->seed + i),
			                  (int32_t)options->commands,
			                  (uint32_t)options->features))
				return EXIT_FAILURE;
	return EXIT_SUCCESS;
}

static void start(const struct options *options, struct sim_place *places, pid_t *pids)
{
	for (int32_t job = 0; job < options->jobs; job++) {
		pids[job] = fork();
		REQUIRE(pids[job] >= 0);
		if (pids[job] == 0) {
			int status = run_lists(options, &places[job], job);

			fflush(stdout);
			_exit(status);
		}
	}
}

/* Those that have ended since the last time; false: one of them has failed. */
static bool look(const struct options *options, const struct sim_place *places,
                 pid_t *pids, int32_t *left)
{
	for (int32_t job = 0; job < options->jobs; job++) {
		int status;

		if (pids[job] == 0 || waitpid(pids[job], &status, WNOHANG) != pids[job])
			continue;
		pids[job] = 0;
		--*left;
		if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS)
			continue;
		if (WIFSIGNALED(status))
			printf("signal %d\n", WTERMSIG(status));
		sim_print_inside(&places[job], 1);
		return false;
	}
	return true;
}

static void stop(const struct options *options, pid_t *pids)
{
	for (int32_t job = 0; job < options->jobs; job++)
		if (pids[job] != 0) {
			kill(pids[job], SIGKILL);
			waitpid(pids[job], NULL, 0);
		}
}

static void print_progress(const struct options *options, const struct sim_place *places,
                           time_t seconds)
{
	long long all = options->lists * num_modes(options), done = 0;

	for (int32_t job = 0; job < options->jobs; job++)
		/* Relaxed: progress. */
		done += (long long)atomic_load_explicit(&places[job].done,
		                                        memory_order_relaxed);
	printf("%lld of %lld lists, %lld s\n", done, all, (long long)seconds);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct options options = {
		.lists = 20000,
		.seed = 1,
		.commands = 20,
		.mode = -1,
		.features = LIST_ALL,
		.jobs = 1,
	};
	const struct timespec pause = {.tv_nsec = LOOK_NS};
	struct sim_place *places;
	struct sim_cover cover = {0};
	pid_t pids[JOBS_MAX];
	time_t first = time(NULL), told = first;
	int32_t left;

	if (!read_options(argc, argv, &options)) {
		fprintf(stderr, "usage: torture_model [--lists N] [--seed N] "
		                "[--commands N] [--mode N] [--features N] [-j N]\n");
		return 2;
	}
	left = (int32_t)options.jobs;
	places = sim_places(left);
	start(&options, places, pids);
	while (left > 0) {
		if (!look(&options, places, pids, &left)) {
			stop(&options, pids);
			return EXIT_FAILURE;
		}
		if (left > 0)
			nanosleep(&pause, NULL);
		if (time(NULL) - told >= PROGRESS_S) {
			told = time(NULL);
			print_progress(&options, places, told - first);
		}
	}
	print_progress(&options, places, time(NULL) - first);
	for (int32_t job = 0; job < options.jobs; job++)
		sim_cover_add(&cover, &places[job].cover);
	sim_cover_print(&cover);
	return EXIT_SUCCESS;
}
