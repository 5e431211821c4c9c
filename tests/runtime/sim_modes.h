/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_TESTS_SIM_MODES_H
#define QUIRE_TESTS_SIM_MODES_H
/*
 * The ways to run a list, and what is said when one fails: the seed, the command and
 * both sides, then the list with every command left out that the failure does not need,
 * as text and as a plan trace.
 */
#include "sim_run.h"

enum mode {
	MODE_INLINE,        /* one thread, seeded scheduler, work at once */
	MODE_INLINE_CHECK,  /* the same, checked after every poll */
	MODE_INLINE_CANCEL, /* the same, shut down in the middle */
	MODE_CPU,           /* one thread, asynchronous device */
	MODE_CPU_DELAYS,    /* ... whose work is slow */
	MODE_THREADS,       /* library threads that lose time */
	MODE_THREADS_CPU,
	MODE_SIM,      /* one thread, a device whose operations the scheduler runs */
	MODE_SIM_FAIL, /* ... and one of them fails */
	MODES,
};

/* Which list a process is at.  In memory that its parent shares, and so tells of however
 * the process ended. */
struct sim_place {
	_Atomic bool inside; /* of the list below */
	enum mode mode;
	uint64_t seed;
	int32_t num_commands;
	uint32_t features;     /* LIST_* */
	_Atomic uint64_t done; /* lists so far */
	struct sim_cover cover;
};

/* sim_places - @n places, zeroed, shared with what this process forks; never freed */
struct sim_place *sim_places(int32_t n);

/*
 * sim_run_list - run the list of a seed in one mode
 * Returns:  true: all agree; otherwise all there is to say has been printed.
 */
bool sim_run_list(struct sim_place *place, enum mode mode, uint64_t seed,
                  int32_t num_commands, uint32_t features);

/* sim_print_inside - name the lists that a process ended in, one a line */
void sim_print_inside(const struct sim_place *places, int32_t n);

/* ------------------------------------------------------------------ cover */

/* Who must meet a state. */
enum {
	MET_ALWAYS = 1,    /* every way to run lists */
	MET_BY_ONE = 2,    /* one thread, which sees the planner wait */
	MET_OTHERWISE = 4, /* tests that ask for it */
};

/* sim_cover_missing - a state that the lists are there for and never met; NULL: none */
const char *sim_cover_missing(const struct sim_cover *cover, int met);

void sim_cover_add(struct sim_cover *to, const struct sim_cover *cover);
void sim_cover_print(const struct sim_cover *cover);

#endif
