/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/image_impl.h"
#include "runtime/cmd/replay_impl.h"
#include "runtime/cmd/tables_impl.h"

#include <inttypes.h>
#include <stdlib.h>

/*
 * The run once more, as far as the step whose plan is not as recorded.
 *
 * One thread does everything, one command after another, on the smallest cache: outcomes
 * and tables are functions of the commands alone.  What came to nothing is left out, and
 * what was promoted is given as an ordinary step where it took effect.  So all streams
 * are there to be read when the step comes, which is looked at while it is issued.
 */
struct rerun {
	const struct cmd_shared *shared;
	const struct cmd_marks *abandoned;
	struct cmd_divergence *divergence;
	struct quire_trace_reader *reader;
	struct quire_runtime *runtime;
	struct cmd_ring *taken;
	struct cmd_image_labels labels;
	struct cmd_image image;
	bool is_right; /* the tables are as they have to be */
};

static bool give_up(struct rerun *rerun, const char *why)
{
	cmd_divergence_note(rerun->divergence, "no more is known: %s", why);
	return false;
}

/* ------------------------------------------------------------ the streams before */

static bool read_stream(struct rerun *rerun, int32_t batch, int32_t label)
{
	struct cmd_image *image = &rerun->image;
	struct cmd_image_stream *stream = cmd_image_stream(image, batch, label);
	uint64_t request = image->requests[batch];
	const char *name = rerun->labels.names[label];
	struct quire_snapshot snapshot;

	if (quire_runtime_snapshot(rerun->runtime, request, name, &snapshot, NULL, 0) !=
	    QUIRE_OK)
		return true;
	stream->is_there = true;
	stream->length = snapshot.length;
	stream->released = snapshot.released;
	stream->num_pages = (int32_t)snapshot.num_pages;
	stream->pages = cmd_image_alloc(image, snapshot.num_pages, 4);
	return stream->pages != NULL &&
	       quire_runtime_snapshot(rerun->runtime, request, name, &snapshot,
	                              stream->pages, stream->num_pages) == QUIRE_OK;
}

static bool read_streams(struct rerun *rerun, const struct quire_step *step)
{
	const struct quire_trace_header *header = quire_trace_header(rerun->reader);

	if (!cmd_image_init(&rerun->image, step, &rerun->labels,
	                    (int32_t)header->page_size, (int32_t)header->num_pages))
		return false;
	for (int32_t batch = 0; batch < rerun->image.num_requests; batch++) {
		for (int32_t label = 0; label < rerun->labels.num; label++) {
			if (!read_stream(rerun, batch, label))
				return false;
		}
	}
	return true;
}

/* ------------------------------------------------------------------ the step */

/* While the step is issued, with its host tables. */
static enum quire_status look(void *argument, const struct quire_plan *plan,
                              struct quire_dstream *compute)
{
	struct rerun *rerun = argument;
	struct cmd_divergence *divergence = rerun->divergence;
	const int32_t *taken;
	int32_t num;

	(void)compute;
	taken = cmd_ring_get(rerun->taken, plan->ticket, &num);
	if (taken == NULL || !cmd_image_apply(&rerun->image, taken, num)) {
		give_up(rerun, "no memory");
		return QUIRE_OK;
	}
	if (divergence->take >= 0 && divergence->take < rerun->image.num_takes)
		cmd_tables_place(&rerun->image, (int32_t)divergence->take, divergence);
	else if (divergence->take < 0 &&
	         divergence->digest != divergence->expected_digest)
		rerun->is_right = cmd_tables_check(&rerun->image, plan, divergence);
	return QUIRE_OK;
}

static bool give(struct rerun *rerun, const struct quire_command *command,
                 struct quire_outcome *outcome_out)
{
	uint64_t ticket;
	enum quire_status status =
		quire_runtime_command(rerun->runtime, command, &ticket, NULL);

	*outcome_out = (struct quire_outcome){.refusal.status = status};
	if (status != QUIRE_OK)
		return true; /* refused at once, as it was before */
	while ((status = quire_runtime_wait(rerun->runtime, ticket, QUIRE_STAGE_RETIRED,
	                                    0, outcome_out)) == QUIRE_TIMEOUT)
		cmd_rig_drive(rerun->runtime);
	cmd_ring_end(rerun->taken, ticket);
	return status == QUIRE_OK;
}

static void conclude(struct rerun *rerun, const struct quire_outcome *outcome)
{
	struct cmd_divergence *divergence = rerun->divergence;

	if (divergence->digest == divergence->expected_digest)
		return; /* pages */
	if (outcome->refusal.status != QUIRE_OK)
		give_up(rerun, "a second run refused the step");
	else if (outcome->digest != divergence->digest)
		cmd_divergence_note(divergence,
		                    "a second run, on one thread, gives digest "
		                    "%016" PRIx64 ": the tables hang on timing",
		                    outcome->digest);
	else if (rerun->is_right)
		cmd_divergence_note(divergence,
		                    "every entry is as the streams before and the pages "
		                    "taken make it: the recorded digest is of other "
		                    "tables");
	else if (divergence->array != NULL)
		cmd_divergence_note(divergence,
		                    "the digest on record is %016" PRIx64
		                    ", that of this plan %016" PRIx64,
		                    divergence->expected_digest, divergence->digest);
}

static void look_at_step(struct rerun *rerun, const struct quire_command *command)
{
	struct quire_command again = *command;
	struct quire_step step = *command->step;
	struct quire_outcome outcome;

	step.flags &= ~(uint32_t)(QUIRE_STEP_NO_WAIT | QUIRE_STEP_SPECULATIVE);
	step.run = look;
	step.run_argument = rerun;
	again.step = &step;
	if (!cmd_image_note_labels(&rerun->labels, &step)) {
		give_up(rerun, "there are too many labels");
		return;
	}
	if (!read_streams(rerun, &step)) {
		give_up(rerun, "no memory");
		return;
	}
	if (give(rerun, &again, &outcome))
		conclude(rerun, &outcome);
	else
		give_up(rerun, "the outcome of a second run was lost");
}

/* ------------------------------------------------------------------ up to there */

/* A command before the step, which is number @index of the run. */
static bool pass_by(struct rerun *rerun, const struct quire_trace_record *record,
                    uint64_t index)
{
	struct quire_command command = record->command;
	bool named = cmd_image_note_command(&rerun->labels, &command);
	struct quire_step step;
	struct quire_outcome outcome;

	if (!named || command.kind == QUIRE_COMMAND_PROMOTE ||
	    command.kind == QUIRE_COMMAND_ABANDON || cmd_is_left_out(record) ||
	    cmd_marks_has(rerun->abandoned, index))
		return true;
	if (command.kind == QUIRE_COMMAND_SUBMIT) {
		step = *command.step;
		step.flags &= ~(uint32_t)(QUIRE_STEP_NO_WAIT | QUIRE_STEP_SPECULATIVE);
		command.step = &step;
	}
	return give(rerun, &command, &outcome) ||
	       give_up(rerun, "the outcome of a second run was lost");
}

static void run_up_to(struct rerun *rerun)
{
	struct quire_trace_record record;

	for (uint64_t index = 0;; index++) {
		if (quire_trace_next(rerun->reader, &record, NULL) != QUIRE_OK) {
			give_up(rerun, "the trace has changed");
			return;
		}
		if (record.line == rerun->divergence->line) {
			look_at_step(rerun, &record.command);
			return;
		}
		if (!pass_by(rerun, &record, index))
			return;
	}
}

static void run_again(struct rerun *rerun)
{
	const struct cmd_rig_wants wants = {
		.file = rerun->shared->file,
		.device = "cpu:inline",
		.depth = 1,
		.tickets_max = 4,
		.jobs = 1,
		.caller = true,
		.digests = true,
		.is_bare = true,
		.taken = rerun->taken,
	};
	struct cmd_gate silent = {.told = ATOMIC_FLAG_INIT};
	struct cmd_rig rig;
	int code;

	/* The divergence is what is told. */
	atomic_flag_test_and_set(&silent.told);
	cmd_tell_through(&silent);
	code = cmd_rig_create(&rig, &wants, quire_trace_header(rerun->reader));
	cmd_tell_through(NULL);
	if (code != CMD_DONE) {
		give_up(rerun, "a second run cannot be made");
		return;
	}
	rerun->runtime = rig.runtime;
	run_up_to(rerun);
	cmd_rig_end(&rig);
	cmd_image_end(&rerun->image);
}

void cmd_explain(const struct cmd_shared *shared, struct cmd_job *job)
{
	struct rerun rerun = {
		.shared = shared,
		.abandoned = &job->abandoned,
		.divergence = &job->divergence,
		.taken = cmd_ring_create(),
	};

	if (rerun.taken == NULL)
		give_up(&rerun, "no memory");
	else if (quire_trace_open(shared->path, &rerun.reader, NULL) != QUIRE_OK)
		give_up(&rerun, "the trace cannot be read again");
	else
		run_again(&rerun);
	quire_trace_close(rerun.reader);
	cmd_ring_destroy(rerun.taken);
}
