/* SPDX-License-Identifier: MIT */
/*
 * A simulated run, recorded: the trace has every command that drew a ticket, with the
 * outcome that its ticket told, and the quire command replays it without a divergence.
 */
#include "config.h"

#include "sim_run.h"

#include "runtime/cmd/cmd_impl.h"

#include <quire/plans/trace.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Room for the longest list: a planner that waited would not be the model's. */
#define BUFFER_BYTES (1 << 18)

/* What a ticket told at the end, when it had come to its end. */
struct sim_told {
	bool known;
	struct quire_outcome outcome;
};

struct sim_recorded {
	char path[sizeof("/tmp/quire-record-XXXXXX")];
	struct sim_told *told; /* [drawn + 1] */
};

void sim_record_begin(struct sim *sim)
{
	struct sim_recorded *recorded = calloc(1, sizeof(*recorded));
	struct quire_record_config config;
	int file;

	REQUIRE(recorded != NULL);
	strcpy(recorded->path, "/tmp/quire-record-XXXXXX");
	file = mkstemp(recorded->path);
	REQUIRE(file >= 0);
	close(file);
	quire_record_config_init(&config);
	config.path = recorded->path;
	config.flush_ns = 1000000;
	config.buffer_bytes = BUFFER_BYTES;
	REQUIRE(quire_runtime_record_to(sim->runtime, &config, NULL) == QUIRE_OK);
	sim->recorded = recorded;
}

void sim_record_look(struct sim *sim)
{
	struct sim_recorded *recorded = sim->recorded;
	struct quire_record_status status;

	recorded->told = calloc(sim->drawn + 1, sizeof(*recorded->told));
	REQUIRE(recorded->told != NULL);
	for (uint64_t t = 1; t <= sim->drawn; t++)
		recorded->told[t].known =
			sim->by_ticket[t] != NULL &&
			quire_runtime_wait(sim->runtime, t, QUIRE_STAGE_RETIRED, 0,
		                           &recorded->told[t].outcome) == QUIRE_OK;
	REQUIRE(quire_runtime_record_status(sim->runtime, &status) == QUIRE_OK);
	if (!status.active)
		sim_fail(sim, NULL, "the recording has ended: %s", status.refusal.what);
}

/* ------------------------------------------------------------------ the lines */

/* What is open is abandoned at the end.  A step that was planned and then failed with the
 * device has had its tables: it is OK. */
static bool is_expected(const struct sim *sim, const struct sim_told *told,
                        const struct quire_trace_record *line, int32_t entry)
{
	enum quire_status got = line->outcome.status;

	if (!told->known)
		return sim->broken || order_is_settled(&sim->order, entry) ||
		       !sim->order.entries[entry].speculative || got == QUIRE_ABANDONED;
	if (sim->broken && told->outcome.refusal.status == QUIRE_DEVICE &&
	    line->outcome.has_digest)
		return got == QUIRE_OK;
	return got == told->outcome.refusal.status;
}

static void compare_step(struct sim *sim, const struct sim_record *record,
                         const struct sim_told *told,
                         const struct quire_trace_record *line)
{
	const struct quire_step *given = &record->step, *step = line->command.step;

	if (step->num_segments != given->num_segments ||
	    step->flags != (given->flags & QUIRE_STEP_FLAGS) ||
	    step->num_combined != given->num_combined ||
	    step->num_pre_forks != given->num_pre_forks ||
	    step->num_post_forks != given->num_post_forks)
		sim_fail(sim, record, "line %lld is another step", (long long)line->line);
	for (int32_t i = 0; i < step->num_segments && !sim->failed; i++)
		if (step->segments[i].request != given->segments[i].request ||
		    step->segments[i].span != given->segments[i].span ||
		    step->segments[i].at != given->segments[i].at ||
		    model_label(step->segments[i].label) !=
		            model_label(given->segments[i].label))
			sim_fail(sim, record, "line %lld: segment %d is another",
			         (long long)line->line, i);
	if (told->known && told->outcome.base != line->base)
		sim_fail(sim, record, "line %lld: base %llu, not %llu",
		         (long long)line->line, (unsigned long long)line->base,
		         (unsigned long long)told->outcome.base);
	if (line->outcome.status != QUIRE_OK)
		return;
	if (!line->outcome.has_digest || line->outcome.digest != record->digest)
		sim_fail(sim, record, "line %lld: another digest", (long long)line->line);
	if (!line->outcome.has_pages ||
	    (told->known && told->outcome.refusal.status == QUIRE_OK &&
	     line->outcome.num_pages != told->outcome.pages_taken))
		sim_fail(sim, record, "line %lld: %d pages", (long long)line->line,
		         line->outcome.num_pages);
}

static enum quire_status swallow(void *argument, const void *bytes, size_t n)
{
	(void)argument;
	(void)bytes;
	(void)n;
	return QUIRE_OK;
}

/* Has a trace no words for a command?  It has none for unknown flags, which are left out
 * alone. */
static bool is_unspeakable(const struct quire_trace_header *header,
                           const struct quire_command *command)
{
	const struct quire_trace_output output = {.write = swallow};
	struct quire_trace_record record = {.id = 1, .command = *command};
	struct quire_trace_writer *writer;
	struct quire_step step;
	enum quire_status status;

	if (command->kind == QUIRE_COMMAND_SUBMIT) {
		step = *command->step;
		step.flags &= QUIRE_STEP_FLAGS;
		record.command.step = &step;
	}
	REQUIRE(quire_trace_create_to(&output, header, &writer, NULL) == QUIRE_OK);
	status = quire_trace_write(writer, &record, NULL);
	REQUIRE(quire_trace_commit(writer, NULL) == QUIRE_OK);
	return status == QUIRE_INVALID;
}

static void compare_line(struct sim *sim, const struct quire_trace_header *header,
                         const struct quire_trace_record *line)
{
	const struct sim_record *record =
		line->id <= sim->drawn ? sim->by_ticket[line->id] : NULL;
	const struct sim_told *told = &sim->recorded->told[line->id];
	int32_t entry = order_find(&sim->order, line->id);

	if (record == NULL || entry < 0 || line->command.kind != record->command.kind ||
	    (line->command.kind != QUIRE_COMMAND_SUBMIT &&
	     line->command.request != record->command.request)) {
		sim_fail(sim, record, "line %lld is of nothing that was given",
		         (long long)line->line);
		return;
	}
	if (!is_expected(sim, told, line, entry))
		sim_fail(sim, record, "line %lld says %s, its ticket %s",
		         (long long)line->line, quire_status_name(line->outcome.status),
		         told->known ? quire_status_name(told->outcome.refusal.status)
		                     : "that it is open");
	if (told->known && line->outcome.status == told->outcome.refusal.status &&
	    line->outcome.detail != quire_trace_detail(&told->outcome.refusal))
		sim_fail(sim, record, "line %lld: detail %lld", (long long)line->line,
		         (long long)line->outcome.detail);
	if (line->times.given_ns > line->times.decided_ns ||
	    (line->times.issued_ns >= 0 &&
	     line->times.decided_ns > line->times.issued_ns))
		sim_fail(sim, record, "line %lld: times go back", (long long)line->line);
	if (line->command.kind != QUIRE_COMMAND_SUBMIT)
		return;
	if (!is_unspeakable(header, &record->command))
		compare_step(sim, record, told, line);
	else if (!line->outcome.is_outside)
		sim_fail(sim, record, "line %lld: it has no words",
		         (long long)line->line);
}

/* Nothing that drew a ticket may be missing between two lines. */
static void compare_gap(struct sim *sim, uint64_t first, uint64_t end)
{
	for (uint64_t t = first; t < end && t <= sim->drawn; t++)
		if (sim->by_ticket[t] != NULL)
			sim_fail(sim, sim->by_ticket[t], "is not in the recording");
}

/* Every ticket that was drawn is there, in its order. */
static void compare_lines(struct sim *sim)
{
	struct quire_trace_reader *reader;
	struct quire_trace_record line;
	struct quire_refusal refusal = {.what = ""};
	enum quire_status status;
	uint64_t next = 1;

	REQUIRE(quire_trace_open(sim->recorded->path, &reader, NULL) == QUIRE_OK);
	while ((status = quire_trace_next(reader, &line, &refusal)) == QUIRE_OK &&
	       !sim->failed) {
		if (line.id == 0)
			continue;
		compare_gap(sim, next, line.id);
		compare_line(sim, quire_trace_header(reader), &line);
		next = line.id + 1;
	}
	if (status != QUIRE_END)
		sim_fail(sim, NULL, "line %lld of the recording is refused: %s",
		         (long long)refusal.line, refusal.what);
	compare_gap(sim, next, sim->drawn + 1);
	quire_trace_close(reader);
}

/* ------------------------------------------------------------------ the replay */

/* What the command says goes to standard error only when it is a fault. */
static void replay(struct sim *sim)
{
	char depth[16];
	char *argv[] = {"quire replay",      "--quiet",    "--threads", "caller",
	                "--device",          "cpu:inline", "--depth",   depth,
	                sim->recorded->path, NULL};
	int code;

	snprintf(depth, sizeof(depth), "%d", sim->list->config.depth);
	code = cmd_replay((int)(sizeof(argv) / sizeof(argv[0])) - 1, argv);
	if (code != CMD_DONE)
		sim_fail(sim, NULL, "quire replay of the recording ends with %d", code);
}

void sim_record_compare(struct sim *sim)
{
	struct sim_recorded *recorded = sim->recorded;

	if (recorded->told != NULL && !sim->failed) {
		compare_lines(sim);
		if (!sim->failed)
			replay(sim);
	}
	unlink(recorded->path);
	free(recorded->told);
	free(recorded);
	sim->recorded = NULL;
}
