/* SPDX-License-Identifier: MIT */
/*
 * random_recording SEED TRACE TIMELINE - a recording of clients that speculate, fork and
 * give wrong commands, of a runtime of random limits whose callbacks may fail and that may
 * be shut down, with a random buffer; it may end before its runtime does.  What is recorded
 * of a step are the rows that it was given with, and what its own function was told.
 * Prints what it was.
 */
#include "config.h"

#include "fixture.h"

#include <quire/plans/trace.h>
#include <quire/runtime/record.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define CLIENTS_MAX 6
#define TICKETS_MAX (1 << 20) /* a promote of nothing draws one, too */
#define DRAFTS      8
#define ROWS_MAX    3

/* What a step's function was told. */
struct told {
	_Atomic bool is_known; /* stored behind the others */
	enum quire_status status;
	int64_t detail;
	uint64_t digest;
	int32_t pages;
	int32_t num_rows; /* what it was given with; its client's until that has ended */
	struct quire_segment rows[ROWS_MAX];
};

static struct fixture f;
static struct told told[TICKETS_MAX];
static _Atomic int plans, runs;       /* callbacks so far ... */
static int failing_plan, failing_run; /* ... and the ones that fail; 0: none does */
static int commands, speculative_percent;
static const char *const labels[] = {"main", "draft", "cfg", NULL, "a\"b\\\n\x01"};

static uint64_t roll(uint64_t *state, uint64_t n)
{
	*state ^= *state << 13; /* Marsaglia's xorshift64 */
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (*state >> 8) % n;
}

/* ------------------------------------------------------------------ callbacks */

static void note(void *argument, uint64_t ticket, const struct quire_outcome *outcome)
{
	struct told *to = &told[ticket];

	(void)argument;
	must(ticket < TICKETS_MAX && !atomic_load(&to->is_known));
	to->status = outcome->refusal.status;
	if (to->status == QUIRE_NO_PAGES)
		to->detail = outcome->refusal.pages_short;
	else if (to->status == QUIRE_STALE)
		to->detail = outcome->refusal.got;
	to->digest = outcome->digest;
	to->pages = outcome->pages_taken;
	atomic_store(&to->is_known, true);
}

static enum quire_status fill_plan(void *argument, struct quire_plan *plan)
{
	(void)argument;
	(void)plan;
	return atomic_fetch_add(&plans, 1) + 1 == failing_plan ? QUIRE_INVALID : QUIRE_OK;
}

static enum quire_status run_step(void *argument, const struct quire_plan *plan,
                                  struct quire_dstream *compute)
{
	int n = atomic_fetch_add(&runs, 1) + 1;

	(void)argument;
	(void)plan;
	(void)compute;
	if (n % 16 == 0)
		usleep(50);
	return n == failing_run ? QUIRE_INVALID : QUIRE_OK;
}

/* ------------------------------------------------------------------ clients */

struct client {
	uint64_t request;
	uint64_t dice;
	uint64_t drafts[DRAFTS];
	int num_drafts;
	int32_t num_rows;
	struct quire_segment rows[ROWS_MAX]; /* of its newest step */
	pthread_t thread;
};

/* What is in the way is anybody's draft: the oldest one, where there are too many. */
static enum quire_status give(struct client *client, const struct quire_command *command,
                              uint64_t *ticket)
{
	struct quire_refusal refusal = {.what = ""};
	enum quire_status status;

	while ((status = quire_runtime_command(f.runtime, command, ticket, &refusal)) ==
	               QUIRE_HELD ||
	       status == QUIRE_LIMIT) {
		struct quire_command fate = {.kind = roll(&client->dice, 2) == 0
		                                             ? QUIRE_COMMAND_PROMOTE
		                                             : QUIRE_COMMAND_ABANDON};

		if (status == QUIRE_LIMIT)
			(void)!quire_runtime_drain(f.runtime, QUIRE_STAGE_PLANNED, 0,
			                           &refusal);
		fate.target = refusal.ticket;
		(void)!quire_runtime_command(f.runtime, &fate, NULL, NULL);
	}
	return status;
}

/* @n: one in so many */
static bool is_rare(struct client *client, uint64_t n)
{
	return roll(&client->dice, n) == 0;
}

static int32_t any(struct client *client, uint64_t n)
{
	return (int32_t)roll(&client->dice, n);
}

/* Those of the step before, where they ended or once more; one of them may be gone. */
static void go_on(struct client *client)
{
	int32_t gone = any(client, 30);
	bool again = is_rare(client, 4);

	for (int32_t i = 0; i < client->num_rows && !again; i++)
		if (client->rows[i].at >= 0 && client->rows[i].span > 0)
			client->rows[i].at += client->rows[i].span;
	if (client->num_rows > 1 && gone < client->num_rows)
		client->rows[gone] = client->rows[--client->num_rows];
}

static void make_segments(struct client *client)
{
	struct quire_segment *segments = client->rows;

	if (client->num_rows > 0 && !is_rare(client, 3)) {
		go_on(client);
		return;
	}
	client->num_rows = 1 + any(client, ROWS_MAX);
	for (int32_t i = 0; i < client->num_rows; i++)
		segments[i] = (struct quire_segment){
			.request = is_rare(client, 6)
		                           ? 1 + roll(&client->dice, CLIENTS_MAX)
		                           : client->request,
			.label = labels[is_rare(client, 3) ? any(client, 5) : 0],
			.span = is_rare(client, 90) ? -1 : any(client, 7),
			.at = is_rare(client, 5) ? any(client, 12) : QUIRE_AT_ANY,
		};
	if (is_rare(client, 50))
		segments[0].request += UINT64_C(1) << 40;
}

static int32_t make_forks(struct client *client, struct quire_fork *forks)
{
	for (int i = 0; i < 2; i++)
		forks[i] = (struct quire_fork){labels[any(client, 5)],
		                               labels[any(client, 5)]};
	return is_rare(client, 5) ? any(client, 3) : 0;
}

static uint32_t make_flags(struct client *client)
{
	uint32_t flags =
		any(client, 100) < speculative_percent ? QUIRE_STEP_SPECULATIVE : 0;

	flags |= is_rare(client, 8) ? QUIRE_STEP_NO_WAIT : 0;
	flags |= is_rare(client, 8) ? QUIRE_STEP_NO_COMMIT : 0;
	flags |= is_rare(client, 8) ? QUIRE_STEP_COPY_FORKS : 0;
	return flags | (is_rare(client, 60) ? 1u << 20 : 0); /* there is no such flag */
}

static enum quire_status give_step(struct client *client)
{
	static const struct quire_combined combined = {
		.name = "both", .labels = labels, .num_labels = 2};
	struct quire_fork pre[2], post[2];
	struct quire_step step = {
		.segments = client->rows,
		.combined = &combined,
		.num_combined = is_rare(client, 6),
		.pre_forks = pre,
		.num_pre_forks = make_forks(client, pre),
		.post_forks = post,
		.num_post_forks = make_forks(client, post),
		.bucket_rows = is_rare(client, 8) ? any(client, 6) : 0,
		.bucket_tokens = is_rare(client, 8) ? any(client, 30) : 0,
		.flags = make_flags(client),
		.run = run_step,
		.done = note,
	};
	const struct quire_command command = {.kind = QUIRE_COMMAND_SUBMIT,
	                                      .step = &step};
	enum quire_status status;
	uint64_t ticket;

	make_segments(client);
	step.num_segments = client->num_rows;
	status = give(client, &command, &ticket);
	if (status != QUIRE_OK)
		return status;
	must(ticket < TICKETS_MAX);
	told[ticket].num_rows = client->num_rows;
	memcpy(told[ticket].rows, client->rows, sizeof(client->rows));
	if ((step.flags & QUIRE_STEP_SPECULATIVE) != 0)
		client->drafts[client->num_drafts++ % DRAFTS] = ticket;
	return QUIRE_OK;
}

static enum quire_status give_other(struct client *client, bool is_first)
{
	static const enum quire_command_kind kinds[] = {
		QUIRE_COMMAND_OPEN, QUIRE_COMMAND_CLOSE, QUIRE_COMMAND_RESET,
		QUIRE_COMMAND_REWIND, QUIRE_COMMAND_RELEASE_FRONT};
	const struct quire_command command = {
		.kind = kinds[is_first ? 0 : any(client, 5)],
		.request = client->request,
		.label = labels[any(client, 5)],
		.tokens = is_rare(client, 20) ? -3 : any(client, 6),
		.keep_pages = any(client, 2),
	};

	return give(client, &command, NULL);
}

/* Of one of its drafts, be it decided already. */
static void decide(struct client *client)
{
	int n = client->num_drafts < DRAFTS ? client->num_drafts : DRAFTS;
	const struct quire_command fate = {
		.kind = is_rare(client, 3) ? QUIRE_COMMAND_ABANDON
	                                   : QUIRE_COMMAND_PROMOTE,
		.target = client->drafts[any(client, (uint64_t)n)]};

	(void)!quire_runtime_command(f.runtime, &fate, NULL, NULL);
}

static void *run_client(void *argument)
{
	struct client *client = argument;
	enum quire_status status = QUIRE_OK;

	for (int i = 0; i < commands && status == QUIRE_OK; i++) {
		int32_t what = any(client, 100);

		if (i == 0 || what < 12)
			status = give_other(client, i == 0);
		else if (what < 75 || client->num_drafts == 0)
			status = give_step(client);
		else
			decide(client);
		if (is_rare(client, 40))
			usleep((useconds_t)any(client, 300));
	}
	must(status == QUIRE_OK || status == QUIRE_CLOSED || status == QUIRE_CALLBACK);
	return NULL;
}

/* ------------------------------------------------------------------ the runtime */

static void make_runtime(uint64_t *dice)
{
	struct quire_runtime_config *config = &f.config;

	fixture_begin(&f, roll(dice, 3) == 0 ? "cpu:inline" : "cpu",
	              24 + (int64_t)roll(dice, 100), 1 + (int64_t)roll(dice, 5));
	config->threads = QUIRE_THREADS_LIBRARY;
	config->depth = 1 + (int32_t)roll(dice, 8);
	config->commands_max = 1 + (int32_t)roll(dice, 40);
	config->tickets_max = roll(dice, 2) == 0 ? 4096 : 1 + (int32_t)roll(dice, 100);
	config->speculative_max = 1 + (int32_t)roll(dice, 20);
	config->rows_max = 3 + (int32_t)roll(dice, 5);
	config->tokens_max = 256;
	config->sink = roll(dice, 2) == 0;
	config->digests = true;
	config->seq_tokens_max = roll(dice, 2) == 0 ? 40 : 0;
	config->block_width = roll(dice, 3) == 0 ? 10 : 0;
	config->on_plan = fill_plan;
	commands = 50 + (int)roll(dice, 250);
	speculative_percent = (int)roll(dice, 100);
	failing_plan = roll(dice, 4) == 0 ? 1 + (int)roll(dice, 200) : 0;
	failing_run = roll(dice, 4) == 0 ? 1 + (int)roll(dice, 200) : 0;
	fixture_create(&f);
}

static void record(uint64_t *dice, const char *path, const char *timeline)
{
	static const int64_t buffers[] = {1, 4096, 65536, 16 << 20};
	static const int64_t flushes[] = {1000000, 100000000, 10000000000};
	struct quire_record_config config;

	quire_record_config_init(&config);
	config.path = path;
	config.timeline = roll(dice, 2) == 0 ? timeline : NULL;
	config.waits = roll(dice, 2) == 0;
	config.buffer_bytes = buffers[roll(dice, 4)];
	config.flush_ns = flushes[roll(dice, 3)];
	config.digests = roll(dice, 5) > 0;
	config.pages = roll(dice, 5) > 0;
	must(quire_runtime_record_to(f.runtime, &config, NULL) == QUIRE_OK);
	printf("waits %d, %lld bytes, %lld ns, ", config.waits,
	       (long long)config.buffer_bytes, (long long)config.flush_ns);
}

/* The recording ends, or the runtime, or both, while clients are at it. */
static void disturb(uint64_t *dice)
{
	uint64_t how = roll(dice, 4);

	usleep((useconds_t)roll(dice, 20000));
	if (how == 1 || how == 3) /* it may have ended by itself */
		(void)!quire_runtime_record_end(f.runtime, NULL);
	if (how >= 2)
		must(quire_runtime_shutdown(f.runtime, roll(dice, 2) == 0) == QUIRE_OK);
	printf("disturbed %d, failed: %s\n", (int)how,
	       quire_status_name(quire_runtime_failure(f.runtime, NULL)));
}

/* One that a trace has no words for has another in its place: of a request that there is
 * not. */
static void compare_rows(const struct quire_trace_record *record)
{
	const struct quire_step *step = record->command.step;
	const struct told *as = &told[record->id];

	if (record->outcome.is_outside && step->segments[0].request == 0)
		return;
	must(step->num_segments == as->num_rows);
	for (int32_t i = 0; i < as->num_rows; i++) {
		const struct quire_segment *row = &step->segments[i], *to = &as->rows[i];

		must(row->request == to->request && row->span == to->span &&
		     row->at == to->at);
		must(strcmp(row->label, to->label == NULL ? "main" : to->label) == 0);
	}
}

/* A step that was planned and failed on the device is OK on record. */
static void compare_step(const struct quire_trace_record *record)
{
	const struct quire_trace_outcome *outcome = &record->outcome;
	const struct told *as = &told[record->id];

	compare_rows(record);
	must(atomic_load(&as->is_known));
	if (outcome->status == QUIRE_OK && as->status == QUIRE_CALLBACK)
		return;
	must(as->status == outcome->status);
	must(outcome->is_outside || as->detail == outcome->detail);
	if (outcome->status != QUIRE_OK)
		return;
	must(!outcome->has_digest || outcome->digest == as->digest);
	must(!outcome->has_pages || outcome->num_pages == as->pages);
}

/* Nothing but whole lines. */
static void compare(const char *path)
{
	struct quire_trace_reader *reader;
	struct quire_trace_record record;
	struct quire_refusal refusal;
	enum quire_status status;

	must(quire_trace_open(path, &reader, &refusal) == QUIRE_OK);
	while ((status = quire_trace_next(reader, &record, &refusal)) == QUIRE_OK)
		if (record.command.kind == QUIRE_COMMAND_SUBMIT)
			compare_step(&record);
	if (status != QUIRE_END)
		fprintf(stderr, "%s: %s\n", path, refusal.what);
	must(status == QUIRE_END);
	quire_trace_close(reader);
}

int main(int argc, char **argv)
{
	struct client clients[CLIENTS_MAX];
	uint64_t dice;
	int num_clients;

	must(argc == 4);
	dice = strtoull(argv[1], NULL, 10) * UINT64_C(0x9e3779b97f4a7c15) + 1;
	for (int i = 0; i < 10; i++)
		(void)roll(&dice, 2);
	num_clients = 1 + (int)roll(&dice, CLIENTS_MAX);
	make_runtime(&dice);
	printf("seed %s: %d clients, ", argv[1], num_clients);
	record(&dice, argv[2], argv[3]);
	for (int i = 0; i < num_clients; i++) {
		clients[i] = (struct client){.request = (uint64_t)i + 1,
		                             .dice = dice + 77 * (uint64_t)i + 1};
		must(pthread_create(&clients[i].thread, NULL, run_client, &clients[i]) ==
		     0);
	}
	disturb(&dice);
	for (int i = 0; i < num_clients; i++)
		pthread_join(clients[i].thread, NULL);
	fixture_end(&f);
	compare(argv[2]);
	return 0;
}
