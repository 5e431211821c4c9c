/* SPDX-License-Identifier: MIT */
/* The issued and the retired length of a stream: against a list of all its changes. */
#include "config.h"

#include "runtime/memory_impl.h"
#include "runtime/registry_impl.h"

#include "fixture.h"
#include "tests/run_suite.h"

#include <check.h>
#include <sched.h>
#include <semaphore.h>

/* ------------------------------------------------------------------ a registry alone */

#define LABEL_MAIN 0
#define LABEL_B    1
#define CHANGES    3000
#define SEED       20261201

struct change {
	uint64_t step;
	int32_t length;
};

/* A stream, and all that ever became of it since its request was opened. */
struct history {
	struct quire_stream *stream;
	struct change changes[CHANGES];
	int num;
};

struct scene {
	struct quire_registry registry;
	struct quire_memory memory;
	struct history histories[2]; /* of request 1, by label */
	uint64_t depth;
	uint64_t planned;
	_Atomic uint64_t issued;
	_Atomic uint64_t retired;
	uint64_t random;
};

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13; /* Marsaglia's xorshift64 */
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* The newest change whose step is not after @step; before the first there was nothing. */
static int32_t length_at(const struct history *history, uint64_t step)
{
	int32_t length = 0;

	for (int i = 0; i < history->num; i++)
		if (history->changes[i].step <= step)
			length = history->changes[i].length;
	return length;
}

static void scene_begin(struct scene *scene, int32_t depth)
{
	const struct quire_registry_limits limits = {
		.requests_max = 1,
		.request_labels_max = 2,
		.changes_max = 2 * depth + 1,
		.pages_max = 1,
		.lists_more = 1,
	};

	quire_memory_resolve(&scene->memory);
	ck_assert_int_eq(quire_registry_init(&scene->registry, &limits, &scene->memory),
	                 QUIRE_OK);
	scene->depth = (uint64_t)depth;
	scene->random = SEED + (uint64_t)depth;
}

static void open_again(struct scene *scene)
{
	struct quire_request *request = quire_registry_find(&scene->registry, 1);

	if (request != NULL)
		quire_registry_close(&scene->registry, request);
	ck_assert_int_eq(quire_registry_open(&scene->registry, 1), QUIRE_OK);
	request = quire_registry_find(&scene->registry, 1);
	scene->histories[LABEL_MAIN].num = scene->histories[LABEL_B].num = 0;
	scene->histories[LABEL_MAIN].stream = quire_request_find(request, LABEL_MAIN);
	scene->histories[LABEL_B].stream = NULL;
}

/* A command, or the newest step, gives a stream another length. */
static void change(struct scene *scene, int32_t label)
{
	struct quire_request *request = quire_registry_find(&scene->registry, 1);
	struct history *history = &scene->histories[label];
	int32_t length = 1 + (int32_t)(next_random(&scene->random) % 1000000);

	if (history->stream == NULL)
		history->stream = quire_request_add(&scene->registry, request, label);
	history->stream->now.length = length;
	history->stream->now.step = scene->planned;
	quire_stream_show(&scene->registry, request, history->stream,
	                  &history->stream->now);
	history->changes[history->num++] =
		(struct change){.step = scene->planned, .length = length};
}

/* One step more; so many as may be are planned and not retired. */
static void plan(struct scene *scene)
{
	uint64_t retired = atomic_load(&scene->retired), issued, least;

	scene->planned++;
	least = scene->planned > 2 * scene->depth ? scene->planned - 2 * scene->depth : 0;
	if (retired < least)
		retired = least;
	if (next_random(&scene->random) % 4 == 0)
		retired += next_random(&scene->random) % (scene->planned + 1 - retired);
	issued = atomic_load(&scene->issued);
	if (issued < retired)
		issued = retired;
	issued += next_random(&scene->random) % (scene->planned + 1 - issued);
	atomic_store(&scene->issued, issued);
	atomic_store(&scene->retired, retired);
}

static void compare(struct scene *scene, int32_t label)
{
	const struct history *history = &scene->histories[label];
	struct quire_snapshot snapshot;
	enum quire_status status =
		quire_registry_snapshot(&scene->registry, 1, label, &scene->issued,
	                                &scene->retired, &snapshot, NULL, 0);

	if (history->stream == NULL) {
		ck_assert_int_eq(status, QUIRE_NO_LABEL);
		return;
	}
	ck_assert_int_eq(status, QUIRE_OK);
	ck_assert_int_eq(snapshot.length, length_at(history, UINT64_MAX));
	ck_assert_int_eq(snapshot.issued_length,
	                 length_at(history, atomic_load(&scene->issued)));
	ck_assert_int_eq(snapshot.retired_length,
	                 length_at(history, atomic_load(&scene->retired)));
}

START_TEST(readers_are_told_the_lengths_of_the_newest_issued_and_retired_step)
{
	static struct scene scene;

	scene_begin(&scene, _i);
	open_again(&scene);
	for (int round = 0; round < CHANGES - 1; round++) {
		uint64_t random = next_random(&scene.random);

		if (random % 1000 == 0)
			open_again(&scene);
		if (random % 3 != 0)
			plan(&scene);
		if ((random >> 8) % 4 != 0)
			change(&scene, LABEL_MAIN);
		if ((random >> 16) % 4 == 0)
			change(&scene, LABEL_B);
		compare(&scene, LABEL_MAIN);
		compare(&scene, LABEL_B);
	}
	quire_registry_end(&scene.registry, &scene.memory);
}
END_TEST

START_TEST(a_reopened_request_remembers_no_length_of_the_one_before)
{
	static struct scene scene;
	struct quire_snapshot snapshot;

	scene_begin(&scene, 2);
	open_again(&scene);
	for (int i = 0; i < 10; i++) {
		plan(&scene);
		change(&scene, LABEL_MAIN);
	}
	open_again(&scene);
	ck_assert_int_eq(quire_registry_snapshot(&scene.registry, 1, LABEL_MAIN,
	                                         &scene.issued, &scene.retired, &snapshot,
	                                         NULL, 0),
	                 QUIRE_OK);
	ck_assert_int_eq(snapshot.issued_length, 0);
	ck_assert_int_eq(snapshot.retired_length, 0);
	ck_assert_uint_eq(snapshot.step, 0);
	quire_registry_end(&scene.registry, &scene.memory);
}
END_TEST

/* ---------------------------------------------------------- a runtime, a slow device */

#define FIRST_SPAN 5

static enum quire_status wait_at_gate(void *argument)
{
	sem_wait(argument);
	return QUIRE_OK;
}

/* An event that is not done before somebody posts @gate. */
static void close_gate(struct fixture *f, sem_t *gate, struct quire_dstream **dstream_out,
                       struct quire_event **event_out)
{
	ck_assert_int_eq(sem_init(gate, 0, 0), 0);
	ck_assert_int_eq(quire_dstream_create(f->device, "gate", dstream_out), QUIRE_OK);
	ck_assert_int_eq(quire_event_create(f->device, event_out), QUIRE_OK);
	ck_assert_int_eq(quire_dstream_call(*dstream_out, wait_at_gate, gate), QUIRE_OK);
	ck_assert_int_eq(quire_event_record(*event_out, *dstream_out), QUIRE_OK);
}

static void submit_one(struct fixture *f, int32_t span, struct quire_event *wait)
{
	const struct quire_segment segment = {
		.request = 1, .span = span, .at = QUIRE_AT_ANY};
	const struct quire_step step = {
		.segments = &segment, .num_segments = 1, .wait_event = wait};

	submit(f, &step);
}

/* Step n leaves FIRST_SPAN + n - 1 tokens. */
static void compare_steps(struct fixture *f)
{
	const struct quire_snapshot snapshot = snapshot_of(f, 1, "main");
	const struct quire_runtime_stats stats = stats_of(f);

	ck_assert_int_eq(snapshot.length, FIRST_SPAN + (int64_t)stats.steps_planned - 1);
	ck_assert_int_eq(snapshot.issued_length,
	                 FIRST_SPAN + (int64_t)stats.steps_issued - 1);
	ck_assert_int_eq(snapshot.retired_length,
	                 FIRST_SPAN + (int64_t)stats.steps_retired - 1);
}

static void poll_both(struct fixture *f)
{
	if (!quire_planner_poll(f->runtime) && !quire_executor_poll(f->runtime))
		sched_yield();
	compare_steps(f);
}

START_TEST(with_twice_the_depth_planned_and_not_retired_the_lengths_are_right)
{
	uint64_t most = 1 + 2 * (uint64_t)_i;
	int32_t steps = 3 * _i + 4;
	struct quire_dstream *dstream;
	struct quire_event *event;
	struct fixture f;
	sem_t gate;

	fixture_begin(&f, "cpu", 64, 4);
	f.config.depth = _i;
	fixture_create(&f);
	close_gate(&f, &gate, &dstream, &event);
	ck_assert_int_eq(open_now(&f, 1), QUIRE_OK);
	submit_one(&f, FIRST_SPAN, NULL);
	while (stats_of(&f).steps_retired < 1)
		settle(&f);
	for (int32_t i = 0; i < steps; i++)
		submit_one(&f, 1, i == 0 ? event : NULL);
	while (stats_of(&f).steps_issued < most)
		poll_both(&f);
	for (int i = 0; i < 1000; i++)
		poll_both(&f);
	ck_assert_uint_eq(stats_of(&f).steps_planned, most);
	ck_assert_uint_eq(stats_of(&f).steps_retired, 1);
	sem_post(&gate);
	while (stats_of(&f).steps_retired < 1 + (uint64_t)steps)
		poll_both(&f);
	quire_event_destroy(event);
	quire_dstream_destroy(dstream);
	sem_destroy(&gate);
	fixture_end(&f);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("lengths");
	TCase *tcase = tcase_create("lengths");

	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(
		tcase, readers_are_told_the_lengths_of_the_newest_issued_and_retired_step,
		1, 5);
	tcase_add_test(tcase, a_reopened_request_remembers_no_length_of_the_one_before);
	tcase_add_loop_test(
		tcase, with_twice_the_depth_planned_and_not_retired_the_lengths_are_right,
		1, 5);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
