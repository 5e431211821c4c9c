/* SPDX-License-Identifier: MIT */
/*
 * Recordings under pressure: clients that speculate at once, and processes that are killed.
 *
 *   torture_record [MOMENTS]   at how many a process is killed.  12
 *
 * A recording that was read is written again and replayed by the quire command: so it does
 * not matter how far a damaged one is replayed by itself.
 */
#include "config.h"

#include "fixture.h"

#include "runtime/cmd/cmd_impl.h"

#include <quire/plans/trace.h>
#include <quire/runtime/record.h>
#include <quire/runtime/sanitize.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CLIENTS    4
#define ROUNDS     3
#define COMMANDS   400      /* of a client in a round */
#define STEPS_MAX  2000000  /* of a process that is killed ... */
#define STEPS_LONG 500      /* ... and of one that lives longer, and then gives no more */
#define SHORT_NS   30000000 /* a process's life, at most, as a rule, ... */
#define LONG_EACH  4        /* ... but one in so many lives longer, ... */
#define LONG_NS    500000000 /* ... by so much at most than LATE_NS */
#define FLUSH_NS   1000000
#define LATE_NS    400000000 /* a line that is finished is written by then, surely */
#define NUM_PAGES  96
#define PAGE_SIZE  4
#define LENGTH_MAX 40

static char folder[] = "/tmp/quire-torture-XXXXXX";
static char plain_path[64], packed_path[64], again_path[64];

static uint64_t roll(uint64_t *state, uint64_t n)
{
	*state ^= *state << 13; /* Marsaglia's xorshift64 */
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (*state >> 8) % n;
}

/* ------------------------------------------------------------------ read, replay */

/* Whole lines, written again; returns how many commands have a ticket.  @is_whole: there
 * may be nothing else. */
static uint64_t write_again(const char *path, bool is_whole)
{
	struct quire_trace_reader *reader;
	struct quire_trace_writer *writer;
	struct quire_trace_record record;
	struct quire_refusal refusal = {.what = ""};
	enum quire_status status;
	uint64_t commands = 0;

	if (quire_trace_open(path, &reader, &refusal) != QUIRE_OK)
		printf("%s: %s\n", path, refusal.what);
	must(refusal.status == QUIRE_OK);
	must(quire_trace_create(again_path, quire_trace_header(reader), &writer, NULL) ==
	     QUIRE_OK);
	while ((status = quire_trace_next(reader, &record, &refusal)) == QUIRE_OK) {
		commands += record.id != 0;
		must(quire_trace_write(writer, &record, NULL) == QUIRE_OK);
	}
	must(status == QUIRE_END || !is_whole);
	must(quire_trace_commit(writer, NULL) == QUIRE_OK);
	quire_trace_close(reader);
	return commands;
}

static void replay_again(void)
{
	char *argv[] = {"quire replay", "--quiet", "--threads", "caller",   "--device",
	                "cpu:inline",   "--depth", "8",         again_path, NULL};
	const int argc = (int)(sizeof(argv) / sizeof(argv[0])) - 1;

	must(cmd_replay(argc, argv) == CMD_DONE);
}

/* ------------------------------------------------------------------ clients */

struct client {
	struct fixture *f;
	uint64_t id;
	uint64_t dice;
	pthread_t thread;
};

static enum quire_status give(struct client *client, const struct quire_command *command,
                              uint64_t *ticket)
{
	struct quire_refusal refusal = {.what = ""};
	enum quire_status status;

	/* What is in the way is anybody's draft. */
	while ((status = quire_runtime_command(client->f->runtime, command, ticket,
	                                       &refusal)) == QUIRE_HELD ||
	       status == QUIRE_LIMIT) {
		const struct quire_command fate = {
			.kind = roll(&client->dice, 2) == 0 ? QUIRE_COMMAND_PROMOTE
		                                            : QUIRE_COMMAND_ABANDON,
			.target = refusal.ticket};

		(void)!quire_runtime_command(client->f->runtime, &fate, NULL, NULL);
	}
	return status;
}

static void give_step(struct client *client, uint64_t *draft)
{
	struct quire_segment segments[2] = {
		{.request = client->id,
	         .span = (int32_t)roll(&client->dice, 6),
	         .at = QUIRE_AT_ANY},
		{.request = client->id, .label = "draft", .span = 1, .at = QUIRE_AT_ANY}};
	static const struct quire_fork fork = {.source = "main", .target = "draft"};
	struct quire_step step = {
		.segments = segments,
		.num_segments = 1 + (int32_t)roll(&client->dice, 2),
		.pre_forks = &fork,
		.num_pre_forks = roll(&client->dice, 4) == 0,
		.flags = (roll(&client->dice, 2) == 0 ? QUIRE_STEP_SPECULATIVE : 0) |
	                 (roll(&client->dice, 8) == 0 ? QUIRE_STEP_NO_WAIT : 0)};
	const struct quire_command command = {.kind = QUIRE_COMMAND_SUBMIT,
	                                      .step = &step};
	uint64_t ticket;

	must(give(client, &command, &ticket) == QUIRE_OK);
	if ((step.flags & QUIRE_STEP_SPECULATIVE) != 0)
		*draft = ticket;
}

static void *run_client(void *argument)
{
	static const enum quire_command_kind kinds[] = {
		QUIRE_COMMAND_OPEN, QUIRE_COMMAND_CLOSE, QUIRE_COMMAND_RESET,
		QUIRE_COMMAND_REWIND, QUIRE_COMMAND_RELEASE_FRONT};
	struct client *client = argument;
	uint64_t draft = 0;

	for (int i = 0; i < COMMANDS; i++) {
		struct quire_command command = {.request = client->id, .tokens = 3};
		uint64_t what = roll(&client->dice, 10);

		if (i == 0 || what == 0) {
			command.kind = kinds[i == 0 ? 0 : roll(&client->dice, 5)];
			must(give(client, &command, NULL) == QUIRE_OK);
		} else if (what < 7 || draft == 0) {
			give_step(client, &draft);
		} else {
			command.kind =
				what < 9 ? QUIRE_COMMAND_PROMOTE : QUIRE_COMMAND_ABANDON;
			command.target = draft - roll(&client->dice, 3);
			(void)!give(client, &command, NULL);
		}
	}
	return NULL;
}

static void configure(struct fixture *f)
{
	fixture_begin(f, "cpu", NUM_PAGES, PAGE_SIZE);
	f->config.threads = QUIRE_THREADS_LIBRARY;
	f->config.depth = 8;
	f->config.seq_tokens_max = LENGTH_MAX;
}

static void run_clients(uint64_t round)
{
	struct quire_record_config config;
	struct client clients[CLIENTS];
	struct fixture f;

	configure(&f);
	fixture_create(&f);
	quire_record_config_init(&config);
	config.path = plain_path;
	config.flush_ns = FLUSH_NS;
	must(quire_runtime_record_to(f.runtime, &config, NULL) == QUIRE_OK);
	for (uint64_t i = 0; i < CLIENTS; i++) {
		clients[i] = (struct client){
			.f = &f, .id = i + 1, .dice = 77 * (round * CLIENTS + i) + 1};
		must(pthread_create(&clients[i].thread, NULL, run_client, &clients[i]) ==
		     0);
	}
	for (int i = 0; i < CLIENTS; i++)
		pthread_join(clients[i].thread, NULL);
	fixture_end(&f);
	must(write_again(plain_path, true) > CLIENTS * COMMANDS / 2);
	replay_again();
}

/* An end in the middle: what is there by then replays. */
static void end_among_clients(uint64_t round)
{
	struct quire_record_config config;
	struct client clients[CLIENTS];
	struct fixture f;

	configure(&f);
	fixture_create(&f);
	quire_record_config_init(&config);
	config.path = plain_path;
	config.timeline = packed_path; /* any name will do */
	must(quire_runtime_record_to(f.runtime, &config, NULL) == QUIRE_OK);
	for (uint64_t i = 0; i < CLIENTS; i++) {
		clients[i] = (struct client){
			.f = &f, .id = i + 1, .dice = 99 * (round * CLIENTS + i) + 1};
		must(pthread_create(&clients[i].thread, NULL, run_client, &clients[i]) ==
		     0);
	}
	usleep((useconds_t)(1000 * (round + 1)));
	must(quire_runtime_record_end(f.runtime, NULL) == QUIRE_OK);
	write_again(plain_path, true);
	replay_again();
	for (int i = 0; i < CLIENTS; i++)
		pthread_join(clients[i].thread, NULL);
	fixture_end(&f);
}

/* ------------------------------------------------------------------ killed */

#ifndef QUIRE_TSAN /* a process of several threads does not fork under it */
static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ll + now.tv_nsec;
}

/* What a process has finished, seen by the one that kills it. */
struct progress {
	_Atomic bool begun;      /* record_to has returned */
	_Atomic uint64_t number; /* of commands that have retired */
	int64_t retired_ns[STEPS_MAX];
};

/* Steps for ever, now and then none for a while, or for good. */
static void be_killed(struct progress *progress, const char *path, uint64_t dice,
                      uint64_t steps)
{
	struct quire_record_config config;
	struct fixture f;
	uint64_t ticket, number = 0;

	configure(&f);
	fixture_create(&f);
	quire_record_config_init(&config);
	config.path = path;
	config.flush_ns = FLUSH_NS;
	config.waits = true;
	must(quire_runtime_record_to(f.runtime, &config, NULL) == QUIRE_OK);
	atomic_store(&progress->begun, true);
	must(quire_runtime_open(f.runtime, 1, &ticket) == QUIRE_OK);
	while (number < steps) {
		const struct quire_segment segment = {
			.request = 1, .span = 1, .at = QUIRE_AT_ANY};
		const struct quire_step step = {.segments = &segment, .num_segments = 1};

		must(quire_runtime_wait(f.runtime, ticket, QUIRE_STAGE_RETIRED,
		                        QUIRE_NO_DEADLINE, NULL) == QUIRE_OK);
		progress->retired_ns[number++] = now_ns();
		atomic_store(&progress->number, number);
		if (roll(&dice, 500) == 0)
			usleep((useconds_t)roll(&dice, 5000));
		must(number % 30 == 0 ? quire_runtime_reset(f.runtime, 1, NULL, false,
		                                            &ticket) == QUIRE_OK
		                      : quire_runtime_submit(f.runtime, &step, &ticket) ==
		                                QUIRE_OK);
	}
}

static bool kill_one(struct progress *progress, const char *path, uint64_t moment)
{
	uint64_t dice = moment * 7919 + 1, lines, finished = 0;
	bool is_long = moment % LONG_EACH == LONG_EACH - 1;
	int64_t life_ns = is_long ? LATE_NS + (int64_t)roll(&dice, LONG_NS)
	                          : (int64_t)roll(&dice, SHORT_NS);
	int64_t killed_ns;
	pid_t child;

	atomic_store(&progress->begun, false);
	atomic_store(&progress->number, 0);
	fflush(stdout);
	child = fork();
	must(child >= 0);
	if (child == 0) {
		be_killed(progress, path, dice, is_long ? STEPS_LONG : STEPS_MAX);
		for (;;)
			pause();
	}
	while (!atomic_load(&progress->begun))
		usleep(100);
	usleep((useconds_t)(life_ns / 1000));
	killed_ns = now_ns();
	must(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
	while (finished < atomic_load(&progress->number) &&
	       progress->retired_ns[finished] < killed_ns - LATE_NS)
		finished++;
	lines = write_again(path, false);
	if (lines < finished)
		printf("moment %llu: %llu lines, %llu finished in time\n",
		       (unsigned long long)moment, (unsigned long long)lines,
		       (unsigned long long)finished);
	must(lines >= finished);
	replay_again();
	return finished > 0;
}

#endif

/* Does a name that ends in .zst make a compressed file? */
static bool packs(void)
{
	static const unsigned char magic[4] = {0x28, 0xb5, 0x2f, 0xfd};
	unsigned char found[4] = {0};
	struct quire_record_config config;
	struct fixture f;
	FILE *file;

	configure(&f);
	fixture_create(&f);
	quire_record_config_init(&config);
	config.path = packed_path;
	must(quire_runtime_record_to(f.runtime, &config, NULL) == QUIRE_OK);
	fixture_end(&f);
	file = fopen(packed_path, "rb");
	must(file != NULL && fread(found, 1, 4, file) == 4);
	fclose(file);
	return memcmp(found, magic, 4) == 0;
}

#ifndef QUIRE_TSAN
static void kill_many(uint64_t moments, bool is_packed)
{
	struct progress *progress = mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE,
	                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t late = 0;

	must(progress != MAP_FAILED);
	for (uint64_t moment = 0; moment < moments; moment++)
		late += kill_one(progress,
		                 is_packed && moment % 2 == 1 ? packed_path : plain_path,
		                 moment);
	printf("killed at %llu moments, %llu of them late enough\n",
	       (unsigned long long)moments, (unsigned long long)late);
	must(moments < LONG_EACH || late > 0);
	munmap(progress, sizeof(*progress));
}
#else
static void kill_many(uint64_t moments, bool is_packed)
{
	(void)is_packed;
	printf("%llu moments: not under ThreadSanitizer\n", (unsigned long long)moments);
}
#endif

int main(int argc, char **argv)
{
	uint64_t moments = argc > 1 ? (uint64_t)atoi(argv[1]) : 12;
	bool is_packed;

	must(mkdtemp(folder) != NULL);
	snprintf(plain_path, sizeof(plain_path), "%s/plain", folder);
	snprintf(packed_path, sizeof(packed_path), "%s/packed.zst", folder);
	snprintf(again_path, sizeof(again_path), "%s/again", folder);
	is_packed = packs();
	if (!is_packed)
		puts("no compressed recordings in this build: plain ones only");
	for (uint64_t round = 0; round < ROUNDS; round++) {
		run_clients(round);
		end_among_clients(round);
	}
	kill_many(moments, is_packed);
	unlink(plain_path);
	unlink(packed_path);
	unlink(again_path);
	rmdir(folder);
	return 0;
}
