/* SPDX-License-Identifier: MIT */
/* Callbacks and the device fail somewhere in a stream of commands, or the runtime is shut
 * down: every ticket ends, nobody hangs, no page is lost. */
#include "config.h"

#include "fixture.h"
#include "tests/run_suite.h"

#include <check.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>

#define NUM_PAGES 24
#define PAGE_SIZE 4
#define COMMANDS  200
#define REQUESTS  3
#define TOKENS    4
#define ROW       (FIXTURE_HEADS * FIXTURE_DIM)
/* Nobody needs so long: who does, hangs. */
#define HANG_NS INT64_C(30000000000)

static int64_t hang_deadline(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec + HANG_NS;
}

/* ------------------------------------------------------------------ ways to fail */

enum way {
	WAY_RUN,     /* the step's function answers a failure */
	WAY_ON_PLAN, /* on_plan does */
	WAY_CALL,    /* an operation on the device stream does, later */
	WAY_PAGE,    /* the device is given a page that does not exist */
	NUM_WAYS,
};

struct scene {
	struct fixture f;
	enum way way;
	uint64_t fatal; /* the ticket of the step that fails; set before any is given */
	_Atomic int runs_after;
	uint64_t tickets[COMMANDS];
	bool is_step[COMMANDS];
	int num;
	struct wrong *wrong; /* device memory */
};

/* What the device is given to write: one page too far. */
struct wrong {
	int32_t page[TOKENS];
	int32_t offset[TOKENS];
	float rows[TOKENS * ROW];
};

static enum quire_status fail_on_device(void *argument)
{
	(void)argument;
	return QUIRE_DEVICE;
}

static enum quire_status write_wrong_page(struct scene *scene,
                                          struct quire_dstream *compute)
{
	const struct wrong *wrong = scene->wrong;
	const struct quire_slots slots = {
		.page = wrong->page, .offset = wrong->offset, .n = TOKENS};

	return quire_cache_write_tokens(scene->f.cache, compute, 0, &slots, wrong->rows,
	                                wrong->rows, QUIRE_F32, NULL, NULL);
}

static enum quire_status run(void *argument, const struct quire_plan *plan,
                             struct quire_dstream *compute)
{
	struct scene *scene = argument;
	enum quire_status ignored;

	if (plan->ticket > scene->fatal)
		atomic_fetch_add(&scene->runs_after, 1);
	if (plan->ticket != scene->fatal)
		return QUIRE_OK;
	if (scene->way == WAY_RUN)
		return QUIRE_INVALID;
	/* An inline device answers the failure at once; here it has to find it itself. */
	if (scene->way == WAY_CALL)
		ignored = quire_dstream_call(compute, fail_on_device, NULL);
	else if (scene->way == WAY_PAGE)
		ignored = write_wrong_page(scene, compute);
	else
		ignored = QUIRE_OK;
	(void)ignored;
	return QUIRE_OK;
}

static enum quire_status on_plan(void *argument, struct quire_plan *plan)
{
	struct scene *scene = argument;

	if (scene->way == WAY_ON_PLAN && plan->ticket == scene->fatal)
		return QUIRE_IO;
	return QUIRE_OK;
}

static enum quire_status status_of(enum way way)
{
	return way == WAY_RUN || way == WAY_ON_PLAN ? QUIRE_CALLBACK : QUIRE_DEVICE;
}

/* ---------------------------------------------------------- a stream of commands */

struct setting {
	int device; /* of test_devices, which all look at page ids */
	enum quire_threads threads;
	int32_t depth;
};

static const struct setting settings[] = {
	{0, QUIRE_THREADS_LIBRARY, 1}, {0, QUIRE_THREADS_LIBRARY, 2},
	{0, QUIRE_THREADS_LIBRARY, 4}, {0, QUIRE_THREADS_CALLER, 1},
	{0, QUIRE_THREADS_CALLER, 3},  {1, QUIRE_THREADS_LIBRARY, 2},
	{1, QUIRE_THREADS_CALLER, 1},  {1, QUIRE_THREADS_CALLER, 4},
};

#define NUM_SETTINGS ((int)(sizeof(settings) / sizeof(settings[0])))

/* The steps, counted from 0, of which one fails: the first, the last, some between. */
static const int places[] = {0, 1, 7, 60, 124};

#define NUM_PLACES ((int)(sizeof(places) / sizeof(places[0])))

static void put_wrong(struct scene *scene)
{
	static const struct wrong wrong = {.page = {0, 1, NUM_PAGES, 2}};
	struct quire_device *device = scene->f.device;
	struct quire_dstream *dstream;

	must(quire_device_alloc(device, sizeof(wrong), (void **)&scene->wrong) ==
	     QUIRE_OK);
	must(quire_dstream_create(device, "test", &dstream) == QUIRE_OK);
	copy_now(dstream, scene->wrong, &wrong, sizeof(wrong));
	quire_dstream_destroy(dstream);
}

static void begin(struct scene *scene, const struct setting *setting, enum way way)
{
	uint64_t ticket;

	memset(scene, 0, sizeof(*scene));
	fixture_begin(&scene->f, test_devices[setting->device], NUM_PAGES, PAGE_SIZE);
	scene->way = way;
	put_wrong(scene);
	scene->f.config.threads = setting->threads;
	scene->f.config.depth = setting->depth;
	scene->f.config.commands_max = 256;
	scene->f.config.on_plan = on_plan;
	scene->f.config.on_plan_argument = scene;
	fixture_create(&scene->f);
	for (uint64_t request = 0; request < REQUESTS; request++)
		ck_assert_int_eq(quire_runtime_open(scene->f.runtime, request, &ticket),
		                 QUIRE_OK);
}

/* Command i: five steps, then resets of all three requests, and so on.  A command that
 * the failed runtime refuses has drawn no ticket. */
static enum quire_status give(struct scene *scene, int i, uint64_t *ticket)
{
	const struct quire_segment segment = {.request = (uint64_t)i % REQUESTS,
	                                      .span = TOKENS - 1,
	                                      .at = QUIRE_AT_ANY};
	const struct quire_step step = {.segments = &segment,
	                                .num_segments = 1,
	                                .run = run,
	                                .run_argument = scene};

	if (i % 8 < 5)
		return quire_runtime_submit(scene->f.runtime, &step, ticket);
	return quire_runtime_reset(scene->f.runtime, (uint64_t)i % 8 - 5, NULL,
	                           i % 3 == 0, ticket);
}

/* Tickets are drawn one by one: the ticket of the step at @place is known before. */
static void give_all(struct scene *scene, int place)
{
	scene->fatal = REQUESTS + (uint64_t)(place / 5 * 8 + place % 5) + 1;
	for (int i = 0; i < COMMANDS; i++) {
		uint64_t ticket;
		enum quire_status status = give(scene, i, &ticket);

		if (status != QUIRE_OK) {
			ck_assert_int_eq(status, status_of(scene->way));
			return;
		}
		scene->is_step[scene->num] = i % 8 < 5;
		scene->tickets[scene->num++] = ticket;
	}
}

/* Drive the runtime until the ticket is there, or wait while its own threads do. */
static struct quire_outcome end_of(struct scene *scene, uint64_t ticket)
{
	int64_t deadline = hang_deadline();
	struct quire_outcome outcome;
	enum quire_status status;

	do {
		settle(&scene->f);
		status = quire_runtime_wait(scene->f.runtime, ticket, QUIRE_STAGE_RETIRED,
		                            deadline, &outcome);
	} while (status == QUIRE_WOULD_BLOCK);
	must(status == QUIRE_OK);
	return outcome;
}

static void check_tickets(struct scene *scene)
{
	enum quire_status expected = status_of(scene->way);

	for (int i = 0; i < scene->num; i++) {
		struct quire_outcome outcome = end_of(scene, scene->tickets[i]);
		enum quire_status status = outcome.refusal.status;

		ck_assert_int_eq(outcome.stage, QUIRE_STAGE_RETIRED);
		ck_assert(status == QUIRE_OK || status == expected);
		if (scene->is_step[i] && scene->tickets[i] >= scene->fatal)
			ck_assert_int_eq(status, expected);
	}
}

static void check_pages(struct scene *scene)
{
	int64_t deadline = hang_deadline();
	struct quire_runtime_stats stats;
	struct quire_refusal refusal;
	struct timespec now;

	do {
		settle(&scene->f);
		stats = stats_of(&scene->f);
		clock_gettime(CLOCK_MONOTONIC, &now);
		must(now.tv_sec < deadline / INT64_C(1000000000));
	} while (stats.pages_retiring != 0);
	ck_assert_int_eq(stats.pages_free + stats.pages_owned, NUM_PAGES);
	ck_assert_int_eq(quire_runtime_check(scene->f.runtime, &refusal), QUIRE_OK);
}

static void end(struct scene *scene)
{
	quire_runtime_destroy(scene->f.runtime);
	quire_cache_destroy(scene->f.cache);
	quire_device_release(scene->f.device, scene->wrong, sizeof(*scene->wrong));
	quire_device_destroy(scene->f.device);
}

static void fail_once(const struct setting *setting, enum way way, int place)
{
	static struct scene scene;
	struct quire_refusal refusal = {.what = ""};
	uint64_t ticket = 4711;

	begin(&scene, setting, way);
	give_all(&scene, place);
	check_tickets(&scene);
	ck_assert_int_eq(quire_runtime_failure(scene.f.runtime, &refusal),
	                 status_of(way));
	ck_assert_int_eq(refusal.status, status_of(way));
	ck_assert_uint_gt(strlen(refusal.what), 0);
	if (way == WAY_RUN || way == WAY_ON_PLAN)
		ck_assert_int_eq(atomic_load(&scene.runs_after), 0);
	ck_assert_int_eq(quire_runtime_open(scene.f.runtime, 9, &ticket), status_of(way));
	ck_assert_uint_eq(ticket, 4711);
	check_pages(&scene);
	end(&scene);
}

START_TEST(a_failure_ends_every_ticket_and_loses_no_page)
{
	for (int way = 0; way < NUM_WAYS; way++)
		for (int place = 0; place < NUM_PLACES; place++)
			fail_once(&settings[_i], (enum way)way, places[place]);
}
END_TEST

START_TEST(a_failed_runtime_ends_at_once_with_everything_still_in_its_queues)
{
	for (int way = 0; way < NUM_WAYS; way++) {
		static struct scene scene;

		begin(&scene, &settings[_i], (enum way)way);
		give_all(&scene, 3);
		end(&scene);
	}
}
END_TEST

START_TEST(without_a_failure_the_same_commands_all_end_well)
{
	static struct scene scene;

	begin(&scene, &settings[_i], WAY_RUN);
	give_all(&scene, COMMANDS);
	ck_assert_int_eq(scene.num, COMMANDS);
	for (int i = 0; i < scene.num; i++)
		ck_assert_int_eq(end_of(&scene, scene.tickets[i]).refusal.status,
		                 QUIRE_OK);
	check_pages(&scene);
	end(&scene);
}
END_TEST

/* ---------------------------------------------------------- clients in a full queue */

#define CLIENTS        2
#define CLIENT_TICKETS 4000

/* What ends the wait of clients whose commands nobody takes. */
enum ending {
	ENDING_CANCEL,
	ENDING_DRAIN,
	ENDING_FAILURE,
	NUM_ENDINGS,
};

struct crowd;

struct client {
	struct crowd *crowd;
	pthread_t thread;
	enum quire_status last;
	int num;
	uint64_t tickets[CLIENT_TICKETS];
};

struct crowd {
	struct fixture f;
	enum ending ending;
	sem_t gate;
	sem_t at_gate;
	_Atomic int given;
	_Atomic bool dawdles;
	struct client clients[CLIENTS];
};

static enum quire_status stand_at_gate(void *argument, const struct quire_plan *plan,
                                       struct quire_dstream *compute)
{
	struct crowd *crowd = argument;

	(void)plan;
	(void)compute;
	sem_post(&crowd->at_gate);
	sem_wait(&crowd->gate);
	return crowd->ending == ENDING_FAILURE ? QUIRE_INVALID : QUIRE_OK;
}

static void *give_until_refused(void *argument)
{
	struct client *client = argument;
	struct crowd *crowd = client->crowd;
	const struct quire_segment segment = {.request = 1, .at = QUIRE_AT_ANY};
	const struct quire_step step = {.segments = &segment, .num_segments = 1};

	while (client->num < CLIENT_TICKETS) {
		client->last = quire_runtime_submit(crowd->f.runtime, &step,
		                                    &client->tickets[client->num]);
		if (client->last != QUIRE_OK)
			break;
		client->num++;
		atomic_fetch_add(&crowd->given, 1);
	}
	return NULL;
}

static void dawdle(void *argument, enum quire_role role)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	struct crowd *crowd = argument;

	if (role == QUIRE_ROLE_EXECUTOR && atomic_load(&crowd->dawdles))
		nanosleep(&pause, NULL);
}

static void crowd_begin(struct crowd *crowd, enum ending ending, int32_t depth)
{
	uint64_t ticket;

	memset(crowd, 0, sizeof(*crowd));
	crowd->ending = ending;
	sem_init(&crowd->gate, 0, 0);
	sem_init(&crowd->at_gate, 0, 0);
	fixture_begin(&crowd->f, TEST_DEVICE_LATE, NUM_PAGES, PAGE_SIZE);
	crowd->f.config.threads = QUIRE_THREADS_LIBRARY;
	crowd->f.config.depth = depth;
	crowd->f.config.commands_max = 4;
	crowd->f.config.tickets_max = 1 << 14;
	crowd->f.config.on_poll = dawdle;
	crowd->f.config.on_poll_argument = crowd;
	fixture_create(&crowd->f);
	ck_assert_int_eq(quire_runtime_open(crowd->f.runtime, 1, &ticket), QUIRE_OK);
}

static void start_clients(struct crowd *crowd)
{
	for (int i = 0; i < CLIENTS; i++) {
		crowd->clients[i].crowd = crowd;
		must(pthread_create(&crowd->clients[i].thread, NULL, give_until_refused,
		                    &crowd->clients[i]) == 0);
	}
}

static void join_clients(struct crowd *crowd)
{
	for (int i = 0; i < CLIENTS; i++) {
		struct timespec limit;

		clock_gettime(CLOCK_REALTIME, &limit);
		limit.tv_sec += HANG_NS / INT64_C(1000000000);
		must(pthread_timedjoin_np(crowd->clients[i].thread, NULL, &limit) == 0);
	}
}

/* Every ticket ends; once one was cancelled or failed, so were all drawn after it. */
static void check_clients(struct crowd *crowd, enum quire_status closed,
                          enum quire_status dropped)
{
	for (int c = 0; c < CLIENTS; c++) {
		struct client *client = &crowd->clients[c];
		enum quire_status before = QUIRE_OK;

		ck_assert_int_eq(client->last, closed);
		for (int i = 0; i < client->num; i++) {
			struct quire_outcome outcome;

			must(quire_runtime_wait(crowd->f.runtime, client->tickets[i],
			                        QUIRE_STAGE_RETIRED, hang_deadline(),
			                        &outcome) == QUIRE_OK);
			ck_assert(outcome.refusal.status == QUIRE_OK ||
			          outcome.refusal.status == dropped);
			ck_assert(before == QUIRE_OK || outcome.refusal.status == before);
			before = outcome.refusal.status;
		}
	}
}

static void crowd_end(struct crowd *crowd)
{
	struct quire_refusal refusal;

	ck_assert_int_eq(quire_runtime_check(crowd->f.runtime, &refusal), QUIRE_OK);
	fixture_end(&crowd->f);
	sem_destroy(&crowd->at_gate);
	sem_destroy(&crowd->gate);
}

/* With the executor held at a gate, the clients fill the command queue behind it and
 * sleep.  More cannot be taken than slots and queue hold: then both clients wait, or soon
 * will. */
static void fill_the_queue(struct crowd *crowd)
{
	const struct quire_segment segment = {.request = 1, .at = QUIRE_AT_ANY};
	const struct quire_step step = {.segments = &segment,
	                                .num_segments = 1,
	                                .run = stand_at_gate,
	                                .run_argument = crowd};
	int least = crowd->f.config.commands_max + crowd->f.config.depth;
	uint64_t ticket;

	ck_assert_int_eq(quire_runtime_submit(crowd->f.runtime, &step, &ticket),
	                 QUIRE_OK);
	sem_wait(&crowd->at_gate);
	start_clients(crowd);
	while (atomic_load(&crowd->given) < least - 1)
		sched_yield();
}

START_TEST(clients_that_wait_in_a_full_queue_are_told)
{
	static struct crowd crowd;
	enum ending ending = (enum ending)(_i % NUM_ENDINGS);

	for (int32_t depth = 1; depth <= 4; depth++) {
		crowd_begin(&crowd, ending, depth);
		fill_the_queue(&crowd);
		if (ending == ENDING_FAILURE) {
			sem_post(&crowd.gate);
			join_clients(&crowd);
			check_clients(&crowd, QUIRE_CALLBACK, QUIRE_CALLBACK);
			crowd_end(&crowd);
			continue;
		}
		ck_assert_int_eq(
			quire_runtime_shutdown(crowd.f.runtime, ending == ENDING_CANCEL),
			QUIRE_OK);
		join_clients(&crowd); /* before the gate opens */
		ck_assert_int_eq(quire_runtime_shutdown(crowd.f.runtime, true),
		                 QUIRE_CLOSED);
		sem_post(&crowd.gate);
		check_clients(&crowd, QUIRE_CLOSED,
		              ending == ENDING_CANCEL ? QUIRE_CANCELLED : QUIRE_OK);
		crowd_end(&crowd);
	}
}
END_TEST

START_TEST(what_waits_in_the_queue_is_cancelled_or_drained_as_was_asked)
{
	static struct crowd crowd;
	bool cancel = _i == 1;
	struct quire_outcome outcome;
	uint64_t last = 0;

	crowd_begin(&crowd, ENDING_DRAIN, 1);
	fill_the_queue(&crowd);
	ck_assert_int_eq(quire_runtime_shutdown(crowd.f.runtime, cancel), QUIRE_OK);
	join_clients(&crowd);
	sem_post(&crowd.gate);
	for (int c = 0; c < CLIENTS; c++)
		for (int i = 0; i < crowd.clients[c].num; i++)
			if (crowd.clients[c].tickets[i] > last)
				last = crowd.clients[c].tickets[i];
	must(quire_runtime_wait(crowd.f.runtime, last, QUIRE_STAGE_RETIRED,
	                        hang_deadline(), &outcome) == QUIRE_OK);
	ck_assert_int_eq(outcome.refusal.status, cancel ? QUIRE_CANCELLED : QUIRE_OK);
	crowd_end(&crowd);
}
END_TEST

START_TEST(a_shutdown_at_any_moment_ends_every_ticket)
{
	static struct crowd crowd;
	uint64_t state = 20260609;

	for (int round = 0; round < 40; round++) {
		bool cancel = round % 2 == 0;
		struct timespec pause = {.tv_nsec = 0};

		crowd_begin(&crowd, ENDING_DRAIN, 1 + round % 4);
		start_clients(&crowd);
		state = state * 6364136223846793005u + 1442695040888963407u;
		pause.tv_nsec = (long)(state >> 33) % 1500000;
		nanosleep(&pause, NULL);
		ck_assert_int_eq(quire_runtime_shutdown(crowd.f.runtime, cancel),
		                 QUIRE_OK);
		join_clients(&crowd);
		/* A client that was fast has given all of its own. */
		for (int c = 0; c < CLIENTS; c++)
			if (crowd.clients[c].num == CLIENT_TICKETS)
				crowd.clients[c].last = QUIRE_CLOSED;
		check_clients(&crowd, QUIRE_CLOSED, cancel ? QUIRE_CANCELLED : QUIRE_OK);
		crowd_end(&crowd);
	}
}
END_TEST

/* With every page taken, resets and a step that needs all pages wait behind a gate.  Once
 * it is open, the second release is the last that moves: it alone can wake the planner,
 * which by then sleeps again, since the executor dawdles between any two moves. */
START_TEST(a_step_that_waits_for_pages_is_woken_by_their_release)
{
	static struct crowd crowd;
	const int32_t tokens = NUM_PAGES * PAGE_SIZE;
	struct quire_segment segment = {.request = 1, .span = tokens / 2, .at = 0};
	const struct quire_step take = {.segments = &segment, .num_segments = 1};
	const struct quire_segment nothing = {.request = 1, .at = QUIRE_AT_ANY};
	const struct quire_step stand = {.segments = &nothing,
	                                 .num_segments = 1,
	                                 .run = stand_at_gate,
	                                 .run_argument = &crowd};
	struct quire_outcome outcome;
	uint64_t ticket, reset = 0, last;

	crowd_begin(&crowd, ENDING_DRAIN, 4);
	atomic_store(&crowd.dawdles, true);
	ck_assert_int_eq(quire_runtime_open(crowd.f.runtime, 2, &ticket), QUIRE_OK);
	(void)submit(&crowd.f, &take);
	segment.request = 2;
	(void)submit(&crowd.f, &take);
	(void)submit(&crowd.f, &stand);
	sem_wait(&crowd.at_gate);
	for (uint64_t request = 1; request <= 2; request++)
		ck_assert_int_eq(quire_runtime_reset(crowd.f.runtime, request, NULL,
		                                     false, &reset),
		                 QUIRE_OK);
	segment.span = tokens;
	last = submit(&crowd.f, &take);
	must(quire_runtime_wait(crowd.f.runtime, reset, QUIRE_STAGE_RETIRED,
	                        hang_deadline(), NULL) == QUIRE_OK);
	ck_assert_int_eq(
		quire_runtime_wait(crowd.f.runtime, last, QUIRE_STAGE_PLANNED, 0, NULL),
		QUIRE_TIMEOUT);
	sem_post(&crowd.gate);
	must(quire_runtime_wait(crowd.f.runtime, last, QUIRE_STAGE_RETIRED,
	                        hang_deadline(), &outcome) == QUIRE_OK);
	ck_assert_int_eq(outcome.refusal.status, QUIRE_OK);
	ck_assert_int_eq(outcome.pages_taken, NUM_PAGES);
	crowd_end(&crowd);
}
END_TEST

/* ---------------------------------------------------------- destroy by another thread */

struct stranger {
	struct fixture f;
	uint64_t ticket;
	enum quire_status waited;
	int runs;
};

/* Waiting for itself: it has to be told, whoever drives. */
static enum quire_status wait_for_itself(void *argument, const struct quire_plan *plan,
                                         struct quire_dstream *compute)
{
	struct stranger *stranger = argument;

	(void)compute;
	stranger->runs++;
	stranger->waited = quire_runtime_wait(stranger->f.runtime, plan->ticket,
	                                      QUIRE_STAGE_RETIRED, hang_deadline(), NULL);
	return QUIRE_OK;
}

static void *destroy(void *argument)
{
	struct stranger *stranger = argument;

	quire_runtime_destroy(stranger->f.runtime);
	return NULL;
}

START_TEST(destroy_on_a_thread_that_never_polled_runs_what_is_left_and_may_not_wait)
{
	static struct stranger stranger;
	const struct quire_segment segment = {.request = 1, .span = 1, .at = 0};
	const struct quire_step step = {.segments = &segment,
	                                .num_segments = 1,
	                                .run = wait_for_itself,
	                                .run_argument = &stranger};
	pthread_t thread;

	fixture_begin(&stranger.f, TEST_DEVICE_OTHER, NUM_PAGES, PAGE_SIZE);
	fixture_create(&stranger.f);
	ck_assert_int_eq(open_now(&stranger.f, 1), QUIRE_OK);
	stranger.ticket = submit(&stranger.f, &step);
	ck_assert_int_eq(pthread_create(&thread, NULL, destroy, &stranger), 0);
	pthread_join(thread, NULL);
	ck_assert_int_eq(stranger.runs, 1);
	ck_assert_int_eq(stranger.waited, QUIRE_WOULD_BLOCK);
	quire_cache_destroy(stranger.f.cache);
	quire_device_destroy(stranger.f.device);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("fault: steps");
	TCase *tcase = tcase_create("steps");

	tcase_set_timeout(tcase, 90);
	tcase_add_loop_test(tcase, a_failure_ends_every_ticket_and_loses_no_page, 0,
	                    NUM_SETTINGS);
	tcase_add_loop_test(
		tcase, a_failed_runtime_ends_at_once_with_everything_still_in_its_queues,
		0, NUM_SETTINGS);
	tcase_add_loop_test(tcase, without_a_failure_the_same_commands_all_end_well, 0,
	                    NUM_SETTINGS);
	tcase_add_loop_test(tcase, clients_that_wait_in_a_full_queue_are_told, 0,
	                    NUM_ENDINGS);
	tcase_add_loop_test(tcase,
	                    what_waits_in_the_queue_is_cancelled_or_drained_as_was_asked,
	                    0, 2);
	tcase_add_test(tcase, a_step_that_waits_for_pages_is_woken_by_their_release);
	tcase_add_test(tcase, a_shutdown_at_any_moment_ends_every_ticket);
	tcase_add_test(
		tcase,
		destroy_on_a_thread_that_never_polled_runs_what_is_left_and_may_not_wait);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
