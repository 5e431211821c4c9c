/* SPDX-License-Identifier: MIT */
/* In steady state nothing is allocated: thousands of steps under a malloc that counts. */
#include "config.h"

#include "counting_malloc.h"
#include "tests/run_suite.h"
#include "fixture.h"

#include <check.h>
#include <semaphore.h>
#include <stdio.h>

#define SKIPPED 77

#if COUNTING_MALLOC && !defined(QUIRE_DEBUG)

#define STEPS       2000
#define PAGE_SIZE   4
#define NUM_PAGES   64
#define SPAN        3
#define LENGTH_MAX  60
#define DEADLINE_NS 20000000000
#define ROW         (FIXTURE_HEADS * FIXTURE_DIM)

/* Check allocates: between begin and end of a count nothing of it may be called, so what
 * goes wrong is noted here. */
static const char *wrong;

static void expect(bool condition, const char *what)
{
	if (!condition && wrong == NULL)
		wrong = what;
}

/* Two streams that grow together: a step writes both, reads the first, copies a page. */
struct scene {
	struct fixture f;
	int32_t length;
	float k[2 * SPAN * ROW];
	float v[2 * SPAN * ROW];
	float out[LENGTH_MAX * 2 * ROW];
	uint64_t ticket;
	uint64_t steps;
};

static void move(struct scene *scene)
{
	bool moved;

	if (scene->f.config.threads == QUIRE_THREADS_LIBRARY)
		return;
	do {
		moved = quire_planner_poll(scene->f.runtime);
		moved |= quire_executor_poll(scene->f.runtime);
	} while (moved);
}

static void await(struct scene *scene, uint64_t ticket, enum quire_stage stage)
{
	struct timespec now;
	int64_t deadline;
	struct quire_outcome outcome;
	enum quire_status status;

	clock_gettime(CLOCK_MONOTONIC, &now);
	deadline = now.tv_sec * INT64_C(1000000000) + now.tv_nsec + DEADLINE_NS;
	do {
		move(scene);
		status = quire_runtime_wait(scene->f.runtime, ticket, stage, deadline,
		                            &outcome);
	} while (status == QUIRE_WOULD_BLOCK);
	expect(status == QUIRE_OK, "a ticket comes to its stage");
	expect(outcome.refusal.status == QUIRE_OK, "nothing is refused");
}

static void step_once(struct scene *scene)
{
	const struct quire_segment segments[] = {
		{.request = 1, .span = SPAN, .at = scene->length},
		{.request = 2, .span = SPAN, .at = scene->length},
	};
	const struct quire_work work[] = {
		{.kind = QUIRE_WORK_WRITE,
	         .layer = 1,
	         .write = {.table = 0, .dtype = QUIRE_F32, .k = scene->k, .v = scene->v}},
		{.kind = QUIRE_WORK_COPY,
	         .copy = {.source_segment = 0, .target_segment = 1}},
		{.kind = QUIRE_WORK_READ,
	         .layer = 1,
	         .read = {.segment = 0,
	                  .count = scene->length + SPAN,
	                  .out = scene->out}},
	};
	const struct quire_step step = {
		.segments = segments, .num_segments = 2, .work = work, .num_work = 3};

	expect(quire_runtime_submit(scene->f.runtime, &step, &scene->ticket) == QUIRE_OK,
	       "a step is taken");
	scene->length += SPAN;
	scene->steps++;
}

/* A draft forks what there is to a label of its own and writes there: twice it is abandoned,
 * then it takes its place, and is taken back a little.  The first write behind a rewind
 * into a shared page copies. */
static void draft_once(struct scene *scene)
{
	static const struct quire_fork fork = {.source = "main", .target = "draft"};
	const struct quire_segment segment = {
		.request = 1, .label = "draft", .span = 1, .at = scene->length};
	const struct quire_step step = {.segments = &segment,
	                                .num_segments = 1,
	                                .pre_forks = &fork,
	                                .num_pre_forks = 1,
	                                .flags = QUIRE_STEP_SPECULATIVE};
	uint64_t ticket;

	expect(quire_runtime_submit(scene->f.runtime, &step, &ticket) == QUIRE_OK,
	       "a draft is taken");
	if (scene->steps % 3 != 0) {
		expect(quire_runtime_abandon(scene->f.runtime, ticket) == QUIRE_OK,
		       "a draft is abandoned");
		return;
	}
	expect(quire_runtime_promote(scene->f.runtime, ticket) == QUIRE_OK,
	       "a draft is promoted");
	expect(quire_runtime_rewind(scene->f.runtime, 1, "draft", 2, &scene->ticket) ==
	               QUIRE_OK,
	       "a rewind is taken");
}

static void reset(struct scene *scene)
{
	bool keep = scene->steps % 2 == 0;

	for (uint64_t request = 1; request <= 2; request++)
		expect(quire_runtime_reset(scene->f.runtime, request, NULL, keep,
		                           &scene->ticket) == QUIRE_OK,
		       "a reset is taken");
	scene->length = 0;
}

static void look(struct scene *scene)
{
	struct quire_runtime_stats stats;
	struct quire_snapshot snapshot;
	int32_t pages[NUM_PAGES];

	quire_runtime_stats(scene->f.runtime, &stats);
	expect(quire_runtime_snapshot(scene->f.runtime, 1, "main", &snapshot, pages,
	                              NUM_PAGES) == QUIRE_OK,
	       "a snapshot is there");
	expect(quire_runtime_snapshot(scene->f.runtime, 3, NULL, &snapshot, NULL, 0) ==
	               QUIRE_NO_REQUEST,
	       "a snapshot of nothing is refused");
}

static void run_steps(struct scene *scene, int n)
{
	for (int i = 0; i < n; i++) {
		if (scene->length + SPAN > LENGTH_MAX)
			reset(scene);
		step_once(scene);
		draft_once(scene);
		/* Never more in flight than the warm-up had. */
		if (i % scene->f.config.depth == 0) {
			await(scene, scene->ticket, QUIRE_STAGE_RETIRED);
			look(scene);
		}
	}
	await(scene, scene->ticket, QUIRE_STAGE_RETIRED);
}

/* ------------------------------------------------------------------ warm-up */

static enum quire_status pass_gate(void *argument)
{
	sem_wait(argument);
	return QUIRE_OK;
}

static enum quire_status queue_gate(void *argument, const struct quire_plan *plan,
                                    struct quire_dstream *compute)
{
	(void)plan;
	return quire_dstream_call(compute, pass_gate, argument);
}

/* Behind a closed gate on the compute stream as many steps are issued as ever can be,
 * 2 * depth.  So every queue of the device has once been as long as it gets. */
static void fill_behind_a_gate(struct scene *scene)
{
	const struct quire_segment segment = {
		.request = 1, .span = 0, .at = QUIRE_AT_ANY};
	struct quire_step step = {
		.segments = &segment, .num_segments = 1, .run = queue_gate};
	uint64_t gate_ticket;
	sem_t gate;

	sem_init(&gate, 0, 0);
	reset(scene);
	step.run_argument = &gate;
	expect(quire_runtime_submit(scene->f.runtime, &step, &gate_ticket) == QUIRE_OK,
	       "the gate is taken");
	for (int i = 1; i < 2 * scene->f.config.depth; i++)
		step_once(scene);
	await(scene, scene->ticket, QUIRE_STAGE_ISSUED);
	sem_post(&gate);
	await(scene, scene->ticket, QUIRE_STAGE_RETIRED);
	sem_destroy(&gate);
}

static enum quire_status swallow(void *argument, const void *bytes, size_t n)
{
	(void)bytes;
	*(int64_t *)argument += (int64_t)n;
	return QUIRE_OK;
}

/* Written often, so that its thread has been everywhere. */
static void record(struct scene *scene, int64_t *bytes)
{
	struct quire_record_config config;

	quire_record_config_init(&config);
	config.write = swallow;
	config.write_argument = bytes;
	config.timeline = "/dev/null";
	config.flush_ns = 1000000;
	config.waits = true;
	ck_assert_int_eq(quire_runtime_record_to(scene->f.runtime, &config, NULL),
	                 QUIRE_OK);
}

/* @recorded: bytes of a recording; NULL: there is none */
static void begin(struct scene *scene, const char *device, enum quire_threads threads,
                  int32_t depth, int64_t *recorded)
{
	uint64_t ticket = 0;

	*scene = (struct scene){.length = 0};
	wrong = NULL;
	fixture_begin(&scene->f, device, NUM_PAGES, PAGE_SIZE);
	scene->f.config.threads = threads;
	scene->f.config.depth = depth;
	scene->f.config.digests = true;
	fixture_create(&scene->f);
	if (recorded != NULL)
		record(scene, recorded);
	for (uint64_t request = 1; request <= 2; request++)
		ck_assert_int_eq(quire_runtime_open(scene->f.runtime, request, &ticket),
		                 QUIRE_OK);
	await(scene, ticket, QUIRE_STAGE_RETIRED);
	run_steps(scene, 300);
	if (strcmp(device, "cpu:inline") != 0)
		for (int i = 0; i < 3; i++)
			fill_behind_a_gate(scene);
	ck_assert_msg(wrong == NULL, "%s", wrong);
}

/* ------------------------------------------------------------------ tests */

START_TEST(the_counter_counts)
{
	int64_t before = atomic_load(&counting.requests), after;
	void *volatile memory[6];

	memory[0] = malloc(10);
	memory[1] = calloc(1, 10);
	memory[2] = realloc(NULL, 10);
	memory[3] = reallocarray(NULL, 1, 10);
	memory[4] = aligned_alloc(64, 64);
	memory[5] = strdup("in another library");
	after = atomic_load(&counting.requests);
	ck_assert_int_eq(after - before, 6);
	for (int i = 0; i < 6; i++)
		free(memory[i]);
}
END_TEST

static const struct {
	const char *device;
	enum quire_threads threads;
	int32_t depth;
} settings[] = {
	{"cpu", QUIRE_THREADS_LIBRARY, 1},       {"cpu", QUIRE_THREADS_LIBRARY, 4},
	{"cpu", QUIRE_THREADS_CALLER, 3},        {"cpu:inline", QUIRE_THREADS_LIBRARY, 2},
	{"cpu:inline", QUIRE_THREADS_CALLER, 1}, {"cpu:inline", QUIRE_THREADS_CALLER, 8},
};

#define NUM_SETTINGS ((int)(sizeof(settings) / sizeof(settings[0])))

/* Recorded or not. */
START_TEST(thousands_of_steps_allocate_nothing)
{
	int i = _i % NUM_SETTINGS;
	bool is_recorded = _i >= NUM_SETTINGS;
	static struct scene scene;
	int64_t before, after, bytes = 0;

	begin(&scene, settings[i].device, settings[i].threads, settings[i].depth,
	      is_recorded ? &bytes : NULL);
	before = atomic_load(&counting.requests);
	run_steps(&scene, STEPS);
	after = atomic_load(&counting.requests);
	ck_assert_msg(wrong == NULL, "%s", wrong);
	ck_assert_int_eq(after - before, 0);
	ck_assert_uint_ge(stats_of(&scene.f).steps_retired, STEPS);
	fixture_end(&scene.f);
	ck_assert_int_ge(bytes, is_recorded ? STEPS * 100 : 0);
}
END_TEST

START_TEST(refused_commands_and_full_queues_allocate_nothing)
{
	const struct quire_command open = {.kind = QUIRE_COMMAND_OPEN, .request = 1};
	static struct scene scene;
	enum quire_status status = QUIRE_OK;
	uint64_t ticket = 0, last = 0;
	int64_t before, after;

	begin(&scene, "cpu:inline", QUIRE_THREADS_CALLER, 2, NULL);
	before = atomic_load(&counting.requests);
	for (uint64_t i = 0; i < 300; i++) {
		struct quire_refusal refusal;

		if (i % 3 == 0)
			status = quire_runtime_close(scene.f.runtime, 77, &ticket);
		else if (i % 3 == 1)
			status = quire_runtime_reset(scene.f.runtime, 1, "nowhere", false,
			                             &ticket);
		else
			status = quire_runtime_try_command(scene.f.runtime, &open,
			                                   &ticket, &refusal);
		if (status == QUIRE_OK)
			last = ticket;
		else
			move(&scene);
	}
	move(&scene);
	after = atomic_load(&counting.requests);
	ck_assert_int_eq(after - before, 0);
	ck_assert_int_eq(
		quire_runtime_wait(scene.f.runtime, last, QUIRE_STAGE_RETIRED, 0, NULL),
		QUIRE_OK);
	fixture_end(&scene.f);
}
END_TEST

START_TEST(opening_and_closing_a_request_allocate_nothing)
{
	static struct scene scene;
	int64_t before, after;

	begin(&scene, "cpu:inline", QUIRE_THREADS_CALLER, 2, NULL);
	before = atomic_load(&counting.requests);
	/* More rounds than there are places for requests. */
	for (int round = 0; round < 3000; round++) {
		expect(quire_runtime_open(scene.f.runtime, 9, &scene.ticket) == QUIRE_OK,
		       "open");
		expect(quire_runtime_close(scene.f.runtime, 9, &scene.ticket) == QUIRE_OK,
		       "close");
		await(&scene, scene.ticket, QUIRE_STAGE_RETIRED);
	}
	after = atomic_load(&counting.requests);
	ck_assert_msg(wrong == NULL, "%s", wrong);
	ck_assert_int_eq(after - before, 0);
	fixture_end(&scene.f);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("no allocation");
	TCase *tcase = tcase_create("no allocation");

	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, the_counter_counts);
	tcase_add_loop_test(tcase, thousands_of_steps_allocate_nothing, 0,
	                    2 * NUM_SETTINGS);
	tcase_add_test(tcase, refused_commands_and_full_queues_allocate_nothing);
	tcase_add_test(tcase, opening_and_closing_a_request_allocate_nothing);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}

#else

int main(void)
{
	puts("skipped: a sanitizer's or a debug build allocates for itself");
	return SKIPPED;
}

#endif
