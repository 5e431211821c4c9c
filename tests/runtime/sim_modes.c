/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "sim_modes.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static struct sim sim;

static struct sim_mode mode_of(enum mode mode, uint64_t seed, int32_t num_commands)
{
	struct sim_mode m = {
		.device = "cpu:inline",
		.threads = QUIRE_THREADS_CALLER,
		.cancel_at = -1,
		.seed = seed * 77 + (uint64_t)mode,
	};

	m.check_each = mode == MODE_INLINE_CHECK || mode == MODE_SIM;
	if (mode == MODE_SIM || mode == MODE_SIM_FAIL)
		m.device = "sim";
	if (mode == MODE_SIM_FAIL)
		m.fail_at = 1 + (int32_t)(seed * 7 % (uint64_t)(4 * num_commands));
	if (mode == MODE_INLINE_CANCEL)
		m.cancel_at = (int32_t)(seed * 13 % (uint64_t)num_commands);
	if (mode == MODE_CPU || mode == MODE_CPU_DELAYS || mode == MODE_THREADS_CPU)
		m.device = "cpu";
	if (mode == MODE_THREADS || mode == MODE_THREADS_CPU) {
		m.threads = QUIRE_THREADS_LIBRARY;
		m.check_each = seed % 4 == 0;
	}
	m.delays = mode == MODE_CPU_DELAYS || m.threads == QUIRE_THREADS_LIBRARY;
	return m;
}

/* ------------------------------------------------------------------ smaller */

/* Does the list still fail?  Where time plays a part, a few tries. */
static bool fails(const struct list *list, const struct sim_mode *mode)
{
	struct sim_cover scratch = {0};
	int32_t tries = mode->threads == QUIRE_THREADS_CALLER ? 1 : 5;

	for (int32_t i = 0; i < tries; i++)
		if (!sim_run(&sim, list, mode, &scratch))
			return true;
	return false;
}

/* Leave out runs of @length commands, from the end, as long as the list still fails.
 * Returns whether some could be left out. */
static bool leave_out(struct list *list, const struct sim_mode *mode, int32_t length)
{
	bool *dropped = calloc((size_t)list->num_commands, sizeof(*dropped));
	bool smaller = false;

	REQUIRE(dropped != NULL);
	for (int32_t end = list->num_commands; end > 0; end -= length) {
		int32_t first = end < length ? 0 : end - length, left = 0;

		for (int32_t i = first; i < end; i++) {
			dropped[i] = list->commands[i].dropped;
			left += !dropped[i];
			list->commands[i].dropped = true;
		}
		if (left > 0 && fails(list, mode)) {
			smaller = true;
			continue;
		}
		for (int32_t i = first; i < end; i++)
			list->commands[i].dropped = dropped[i];
	}
	free(dropped);
	return smaller;
}

/* Halves, quarters and so on; then one by one, until each that is left is needed. */
static void shrink(struct list *list, const struct sim_mode *mode)
{
	for (int32_t length = list->num_commands / 2; length > 1; length /= 2)
		leave_out(list, mode, length);
	while (leave_out(list, mode, 1))
		continue;
}

static void print_failure(struct list *list, const struct sim_mode *m, enum mode mode)
{
	printf("mode %d, %s\n", (int)mode, sim.text);
	/* Who only wants to know that it fails has no time for the smallest list. */
	if (getenv("QUIRE_NO_SHRINK") != NULL)
		return;
	if (!sim.stuck) {
		shrink(list, m);
		fails(list, m);
		printf("smallest list: %s\n", sim.text);
	}
	list_print(list);
	list_trace(list, "-");
}

/* ------------------------------------------------------------------ one list */

struct sim_place *sim_places(int32_t n)
{
	void *memory = mmap(NULL, (size_t)n * sizeof(struct sim_place),
	                    PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	REQUIRE(memory != MAP_FAILED);
	return memory;
}

bool sim_run_list(struct sim_place *place, enum mode mode, uint64_t seed,
                  int32_t num_commands, uint32_t features)
{
	struct sim_mode m = mode_of(mode, seed, num_commands);
	struct list list;
	bool agree;

	m.records = (features & LIST_RECORDED) != 0;
	place->mode = mode;
	place->seed = seed;
	place->num_commands = num_commands;
	place->features = features;
	/* Pairs with the acquire in sim_print_inside: the list is seen with it. */
	atomic_store_explicit(&place->inside, true, memory_order_release);
	list_make(&list, seed, num_commands, features);
	agree = sim_run(&sim, &list, &m, &place->cover);
	if (!agree)
		print_failure(&list, &m, mode);
	list_free(&list);
	atomic_store_explicit(&place->inside, false, memory_order_relaxed);
	/* Relaxed: progress. */
	atomic_fetch_add_explicit(&place->done, 1, memory_order_relaxed);
	return agree;
}

void sim_print_inside(const struct sim_place *places, int32_t n)
{
	for (int32_t i = 0; i < n; i++)
		/* Pairs with the release in sim_run_list. */
		if (atomic_load_explicit(&places[i].inside, memory_order_acquire))
			printf("ended inside: --mode %d --seed %llu --lists 1 --commands "
			       "%d --features %u\n",
			       (int)places[i].mode, (unsigned long long)places[i].seed,
			       places[i].num_commands, places[i].features);
	fflush(stdout);
}
