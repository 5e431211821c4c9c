/* SPDX-License-Identifier: MIT */
/*
 * print_timeline TRACE TIMELINE [killed] - a run of some hundred commands that waits for
 * pages and for slots, speculates and is refused, recorded into both files; with a third
 * argument it kills itself in the middle, once something was written.
 */
#include "config.h"

#include "fixture.h"

#include <quire/runtime/record.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define STEPS 300

static enum quire_status work(void *argument)
{
	(void)argument;
	usleep(200);
	return QUIRE_OK;
}

static enum quire_status run(void *argument, const struct quire_plan *plan,
                             struct quire_dstream *compute)
{
	(void)plan;
	return quire_dstream_call(compute, work, argument);
}

/* Its steps fill the pool: the next one waits for what the reset gives up. */
static void *run_client(void *argument)
{
	struct fixture *f = argument;
	uint64_t ticket;

	for (int32_t i = 0; i < STEPS; i++) {
		const struct quire_segment segment = {
			.request = 1, .span = 13, .at = QUIRE_AT_ANY};
		const struct quire_step step = {
			.segments = &segment,
			.num_segments = 1,
			.flags = i % 3 == 0 ? QUIRE_STEP_SPECULATIVE : 0,
			.run = run};
		struct quire_refusal refusal;
		enum quire_status status;
		const struct quire_command command = {.kind = QUIRE_COMMAND_SUBMIT,
		                                      .step = &step};

		status = quire_runtime_command(f->runtime, &command, &ticket, &refusal);
		must(status == QUIRE_OK);
		if (i % 3 == 0)
			must((i % 2 == 0 ? quire_runtime_promote(f->runtime, ticket)
			                 : quire_runtime_abandon(f->runtime, ticket)) ==
			     QUIRE_OK);
		must(quire_runtime_reset(f->runtime, 1, NULL, false, &ticket) ==
		     QUIRE_OK);
	}
	return NULL;
}

/* Some forty lines of the six hundred of the whole run, or more. */
static void wait_for_bytes(const char *path, int64_t bytes)
{
	struct stat about;

	do {
		usleep(1000);
		must(stat(path, &about) == 0);
	} while (about.st_size < bytes);
}

int main(int argc, char **argv)
{
	struct quire_record_config config;
	struct fixture f;
	pthread_t client;
	uint64_t ticket;

	must(argc >= 3);
	fixture_begin(&f, "cpu", 7, 4);
	f.config.threads = QUIRE_THREADS_LIBRARY;
	f.config.sink = true;
	fixture_create(&f);
	quire_record_config_init(&config);
	config.path = argv[1];
	config.timeline = argv[2];
	config.flush_ns = 1000000;
	must(quire_runtime_record_to(f.runtime, &config, NULL) == QUIRE_OK);
	must(quire_runtime_open(f.runtime, 1, &ticket) == QUIRE_OK);
	must(pthread_create(&client, NULL, run_client, &f) == 0);
	if (argc > 3) {
		wait_for_bytes(argv[1], 8000);
		wait_for_bytes(argv[2], 8000);
		raise(SIGKILL);
	}
	pthread_join(client, NULL);
	must(quire_runtime_drain(f.runtime, QUIRE_STAGE_RETIRED, QUIRE_NO_DEADLINE,
	                         NULL) == QUIRE_OK);
	must(quire_runtime_record_end(f.runtime, NULL) == QUIRE_OK);
	fixture_end(&f);
	return 0;
}
