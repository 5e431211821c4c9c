/* SPDX-License-Identifier: MIT */
/* One thread takes and gives. */
#include "config.h"

#include "tests/alloc/random.h"
#include "tests/alloc/rivals/cases.h"
#include "tests/alloc/rivals/measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PAIR_PAGES    65536
#define PAIR_MOST     1024
#define TURN_PAGES    PAIR_PAGES
#define SLICES        16 /* of a turn, so that one cut by another process does no harm */
#define BATCH         64 /* of `sizes`, and in which FIFOs are scrambled */
#define WINDOW_PAGES  (1 << 21)
#define SLOW_SHARE    64 /* of the pages that others take, for who runs elsewhere */
#define SLOW_SIZE_MAX (1 << 20)

/* Memory is measured of pools from this size on: smaller ones may lie in memory that was
 * there. */
#define MEASURED_MIN (1 << 24)

/* Every page of the pool in one and the same random order. */
static int32_t *random_order(int32_t num_pages)
{
	int32_t *pages = rival_memory((size_t)num_pages * sizeof(*pages));
	uint64_t seed = 1;

	for (int32_t p = 0; p < num_pages; p++)
		pages[p] = p;
	random_shuffle(&seed, pages, num_pages);
	return pages;
}

/* A FIFO of all pages in that order. */
static void *create_scrambled(const struct rival *rival, const int32_t *order,
                              int32_t num_pages)
{
	void *fifo = rival->create(num_pages);
	int32_t pages[BATCH];

	rival_must(fifo, "a FIFO cannot be made");
	if (rival->ask) {
		rival_must(rival->ask(fifo, "scramble 64", NULL, 0), "no answer");
		return fifo;
	}
	for (int32_t at = 0; at < num_pages; at += BATCH)
		rival_must(rival->take(fifo, BATCH, pages), "a take fails");
	for (int32_t at = 0; at < num_pages; at += BATCH)
		rival_must(rival->give(fifo, order + at, BATCH), "a give fails");
	return fifo;
}

static double pair_ns(const struct rival *rival, void *fifo, int32_t n, int32_t turns)
{
	int32_t pages[PAIR_MOST];
	char command[64];
	double start, answer;

	if (rival->ask) {
		snprintf(command, sizeof(command), "pairs %d %d", (int)n,
		         (int)(turns / SLOW_SHARE + 1));
		rival_must(rival->ask(fifo, command, &answer, 1), "no answer");
		return answer;
	}
	start = measure_now_ns();
	for (int32_t i = 0; i < turns; i++) {
		if (!rival->take(fifo, n, pages) || !rival->give(fifo, pages, n))
			rival_must(false, "a take or a give fails");
	}
	return (measure_now_ns() - start) / turns;
}

/* Once around the FIFO for the caches, which the rival before has filled with its own,
 * and once against the clock: the median of its slices. */
static double turn_ns(const struct rival *rival, void *fifo, int32_t n)
{
	int32_t turns = TURN_PAGES / n / SLICES;
	double ns[SLICES];

	if (rival->ask)
		return pair_ns(rival, fifo, n, turns);
	pair_ns(rival, fifo, n, TURN_PAGES / n);
	for (int i = 0; i < SLICES; i++)
		ns[i] = pair_ns(rival, fifo, n, turns);
	return quantile_of(ns, SLICES, 0.5);
}

/* Round by round, and each round begins with another rival. */
static void pair_rounds(const struct rival_list *list, void *const *fifos, int32_t n,
                        int rounds)
{
	char measure[32];

	snprintf(measure, sizeof(measure), "pair_%d", (int)n);
	for (int round = 0; round < rounds; round++) {
		for (int k = 0; k < list->num; k++) {
			int i = (round + k) % list->num;

			measure_add(measure, list->rivals[i],
			            turn_ns(list->rivals[i], fifos[i], n));
		}
	}
	measure_print(measure, "ns", 0.5);
}

void case_pairs(const struct rival_list *list, const struct effort *effort)
{
	static const int32_t sizes[] = {1, 8, 16, 64, PAIR_MOST};
	int32_t *order = random_order(PAIR_PAGES);
	void *fifos[RIVALS_MAX];

	for (int i = 0; i < list->num; i++)
		fifos[i] = create_scrambled(list->rivals[i], order, PAIR_PAGES);
	free(order);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		pair_rounds(list, fifos, sizes[i], effort->pair_rounds);
	for (int i = 0; i < list->num; i++)
		list->rivals[i]->destroy(fifos[i]);
}

/* What a round of `sizes` works on. */
struct phases {
	int32_t window;      /* pages that are out between the phases */
	int32_t slice_pages; /* timed in one */
	int repeats;
	uint64_t seed;
	int32_t *pages; /* [window] */
};

/* One slice of a phase, ns per page. */
static double slice_ns(const struct rival *rival, void *fifo, const struct phases *phases,
                       int32_t at, bool give)
{
	int32_t end = at + phases->slice_pages;
	double start = measure_now_ns();

	for (; at < end; at += BATCH) {
		if (!(give ? rival->give(fifo, phases->pages + at, BATCH)
		           : rival->take(fifo, BATCH, phases->pages + at)))
			rival_must(false, "a take or a give fails");
	}
	return (measure_now_ns() - start) / phases->slice_pages;
}

/* Take a window, shuffle it, give it back, some times over: ns per page of either, the
 * median of the slices. */
static void time_phases(const struct rival *rival, void *fifo,
                        const struct phases *phases, double ns_out[2])
{
	double take_ns[ROUNDS_MAX], give_ns[ROUNDS_MAX];
	uint64_t seed = phases->seed;
	int num_takes = 0, num_gives = 0;

	for (int repeat = 0; repeat < phases->repeats; repeat++) {
		for (int32_t at = 0; at < phases->window; at += phases->slice_pages)
			take_ns[num_takes++] = slice_ns(rival, fifo, phases, at, false);
		random_shuffle(&seed, phases->pages, phases->window);
		for (int32_t at = 0; at < phases->window; at += phases->slice_pages)
			give_ns[num_gives++] = slice_ns(rival, fifo, phases, at, true);
	}
	ns_out[0] = quantile_of(take_ns, num_takes, 0.5);
	ns_out[1] = quantile_of(give_ns, num_gives, 0.5);
}

static void ask_phases(const struct rival *rival, void *fifo, int32_t window,
                       double ns_out[2])
{
	char command[64];

	if (window > WINDOW_PAGES / SLOW_SHARE)
		window = WINDOW_PAGES / SLOW_SHARE;
	snprintf(command, sizeof(command), "phases %d %d", BATCH, (int)window);
	rival_must(rival->ask(fifo, command, ns_out, 2), "no answer");
}

/* Bytes that this process has in memory. */
static double resident_bytes(void)
{
	FILE *statm = fopen("/proc/self/statm", "r");
	long total, resident = 0;

	if (statm && fscanf(statm, "%ld %ld", &total, &resident) != 2)
		resident = 0;
	if (statm)
		fclose(statm);
	return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

/* The FIFOs of one size; NULL: of those that would take too long. */
static void create_sized(const struct rival_list *list, int32_t num_pages,
                         const char *measure, void **fifos_out)
{
	int32_t *order = random_order(num_pages);

	for (int i = 0; i < list->num; i++) {
		const struct rival *rival = list->rivals[i];
		double before = resident_bytes();

		fifos_out[i] = NULL;
		if (rival->ask && num_pages > SLOW_SIZE_MAX) {
			printf("# %s: left out of %d pages, too slow\n", rival->name,
			       (int)num_pages);
			continue;
		}
		fifos_out[i] = create_scrambled(rival, order, num_pages);
		if (!rival->ask && num_pages >= MEASURED_MIN)
			measure_add(measure, rival,
			            (resident_bytes() - before) / num_pages);
	}
	free(order);
}

static void size_round(const struct rival *rival, void *fifo, const struct phases *phases,
                       const char *const measures[2])
{
	double ns[2];

	if (rival->ask) {
		ask_phases(rival, fifo, phases->window, ns);
	} else {
		/* Once for the caches, as far as the pool fits them. */
		if (phases->window <= TURN_PAGES)
			time_phases(rival, fifo, phases, ns);
		time_phases(rival, fifo, phases, ns);
	}
	measure_add(measures[0], rival, ns[0]);
	measure_add(measures[1], rival, ns[1]);
}

static void size_rounds(const struct rival_list *list, void *const *fifos, int rounds,
                        struct phases *phases, const char *const measures[2])
{
	for (int round = 0; round < rounds; round++) {
		phases->seed = (uint64_t)round;
		for (int k = 0; k < list->num; k++) {
			int i = (round + k) % list->num;

			if (fifos[i])
				size_round(list->rivals[i], fifos[i], phases, measures);
		}
	}
}

/* At most 64 slices: as many turns of a small pool, as many parts of a large one. */
static struct phases phases_of(int32_t num_pages)
{
	int32_t window = num_pages < WINDOW_PAGES ? num_pages : WINDOW_PAGES;
	struct phases phases = {.window = window, .slice_pages = window, .repeats = 1};

	if (window < TURN_PAGES)
		phases.repeats = TURN_PAGES / window;
	else
		phases.slice_pages = window > 64 * 4096 ? window / 64 : 4096;
	phases.pages = rival_memory((size_t)window * sizeof(*phases.pages));
	return phases;
}

static void bench_size(const struct rival_list *list, int rounds, int32_t num_pages,
                       const char *label)
{
	char take[32], give[32], bytes[32];
	const char *const measures[2] = {take, give};
	struct phases phases = phases_of(num_pages);
	void *fifos[RIVALS_MAX];

	snprintf(take, sizeof(take), "take_%s", label);
	snprintf(give, sizeof(give), "give_%s", label);
	snprintf(bytes, sizeof(bytes), "bytes_%s", label);
	create_sized(list, num_pages, bytes, fifos);
	size_rounds(list, fifos, rounds, &phases, measures);
	measure_print(take, "ns/page", 0.5);
	measure_print(give, "ns/page", 0.5);
	measure_print(bytes, "bytes/page", 0.5);
	for (int i = 0; i < list->num; i++) {
		if (fifos[i])
			list->rivals[i]->destroy(fifos[i]);
	}
	free(phases.pages);
}

void case_sizes(const struct rival_list *list, const struct effort *effort)
{
	static const struct {
		int32_t num_pages;
		const char *label;
		int share; /* of the rounds */
	} sizes[] = {{1 << 10, "1k", 1},
	             {1 << 16, "64k", 1},
	             {1 << 20, "1M", 5},
	             {1 << 24, "16M", 9}};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		if (sizes[i].num_pages <= effort->size_pages_max)
			bench_size(list, effort->size_rounds / sizes[i].share,
			           sizes[i].num_pages, sizes[i].label);
	}
}
