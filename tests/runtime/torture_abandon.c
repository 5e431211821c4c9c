/* SPDX-License-Identifier: MIT */
/* A base is abandoned while the planner goes on with the step above it: whenever that is
 * heard, the pages come back in the order in which they were taken. */
#include "config.h"

#include "fixture.h"
#include "tests/run_suite.h"

#include <check.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define ROUNDS 4000
#define SEED   20261204

struct scene {
	struct fixture f;
	_Atomic bool over;
	_Atomic int32_t first_page; /* of the newest plan */
};

static enum quire_status note_page(void *argument, struct quire_plan *plan)
{
	struct scene *scene = argument;

	/* Read by who has seen the step PLANNED. */
	atomic_store_explicit(&scene->first_page, plan->tables[0].kv_indices[0],
	                      memory_order_relaxed);
	return QUIRE_OK;
}

static void *poll_planner(void *argument)
{
	struct scene *scene = argument;

	/* Relaxed: only ends the loop. */
	while (!atomic_load_explicit(&scene->over, memory_order_relaxed))
		quire_planner_poll(scene->f.runtime);
	return NULL;
}

static void wait_for(struct scene *scene, uint64_t ticket, enum quire_stage stage)
{
	while (quire_runtime_wait(scene->f.runtime, ticket, stage, 0, NULL) != QUIRE_OK)
		sched_yield();
}

static uint64_t submit_speculative(struct scene *scene, const char *label, int32_t span)
{
	const struct quire_segment segment = {
		.request = 1, .label = label, .span = span, .at = 0};
	const struct quire_step step = {
		.segments = &segment, .num_segments = 1, .flags = QUIRE_STEP_SPECULATIVE};

	return submit(&scene->f, &step);
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13; /* Marsaglia's xorshift64 */
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* The ring has one slot: the upper step waits for it with its page in hand. */
static void go_round(struct scene *scene, uint64_t *state)
{
	uint64_t lower = submit_speculative(scene, "a", 4);
	uint64_t upper = submit_speculative(scene, "b", 2), next;

	if (next_random(state) % 4 != 0)
		while (stats_of(&scene->f).pages_owned < 3)
			sched_yield();
	for (volatile uint64_t i = next_random(state) % 300; i > 0; i--)
		continue;
	ck_assert_int_eq(quire_runtime_abandon(scene->f.runtime, lower), QUIRE_OK);
	wait_for(scene, lower, QUIRE_STAGE_RETIRED);
	wait_for(scene, upper, QUIRE_STAGE_RETIRED);
	next = submit_speculative(scene, "a", 6);
	wait_for(scene, next, QUIRE_STAGE_PLANNED);
	ck_assert_int_eq(atomic_load_explicit(&scene->first_page, memory_order_relaxed),
	                 0);
	ck_assert_int_eq(quire_runtime_abandon(scene->f.runtime, next), QUIRE_OK);
	wait_for(scene, next, QUIRE_STAGE_RETIRED);
}

START_TEST(an_abandon_finds_the_upper_step_in_hand_and_it_goes_first)
{
	static struct scene scene;
	uint64_t state = SEED;
	pthread_t planner;

	fixture_begin(&scene.f, "cpu:inline", 8, 2);
	scene.f.config.depth = 1;
	scene.f.config.on_plan = note_page;
	scene.f.config.on_plan_argument = &scene;
	fixture_create(&scene.f);
	ck_assert_int_eq(open_now(&scene.f, 1), QUIRE_OK);
	ck_assert_int_eq(pthread_create(&planner, NULL, poll_planner, &scene), 0);
	for (int round = 0; round < ROUNDS; round++)
		go_round(&scene, &state);
	atomic_store(&scene.over, true);
	pthread_join(planner, NULL);
	settle(&scene.f); /* from here on this thread drives the planner */
	ck_assert_uint_eq(stats_of(&scene.f).steps_abandoned, 3 * ROUNDS);
	fixture_end(&scene.f);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("abandon");
	TCase *tcase = tcase_create("abandon");

	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, an_abandon_finds_the_upper_step_in_hand_and_it_goes_first);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
