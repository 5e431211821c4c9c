/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/replay_impl.h"
#include "runtime/wake_impl.h"

#include <quire/runtime/record.h>

#include <stdlib.h>

/* ------------------------------------------------------------------ run */

/* The runtime's own opinion, once it has come to rest. */
static int check_runtime(struct cmd_run *run)
{
	struct quire_refusal refusal;
	char text[512];

	cmd_run_rest(run);
	if (quire_runtime_check(run->runtime, &refusal) == QUIRE_OK)
		return CMD_DONE;
	quire_refusal_text(&refusal, text, sizeof(text));
	cmd_tell(run->file, 0, "the self-check failed: %s", text);
	return CMD_FAILED;
}

/* What the run came to, however it ended. */
static void take_result(struct cmd_run *run)
{
	struct cmd_result *result = &run->result;

	result->wall_ns = run->is_begun ? quire_now_ns() - run->start_ns : 0;
	quire_runtime_stats(run->runtime, &result->stats);
	cmd_stats_subtract(&result->stats, run->is_begun ? &run->before : &result->stats);
	if (run->check == NULL)
		return;
	cmd_check_counts(run->check, &result->checked);
	result->checked.rows -= run->checked_before.rows;
	result->checked.tokens -= run->checked_before.tokens;
}

static int run_trace(struct cmd_run *run)
{
	int code;

	if (run->is_shown)
		cmd_progress_start("replay", &run->options->common);
	code = cmd_run_all(run);
	if (code == CMD_DONE && run->check != NULL)
		code = cmd_check_finish(run->check);
	if (code == CMD_DONE)
		code = check_runtime(run);
	take_result(run);
	if (run->is_shown)
		cmd_progress_end();
	return code;
}

/* ------------------------------------------------------------------ outcomes */

/* The trace is written again from a second reading of it. */
static int open_outcomes(struct cmd_run *run)
{
	struct quire_trace_header header = *quire_trace_header(run->reader);
	const char *outcomes = run->options->outcomes;
	struct quire_refusal refusal;

	if (outcomes == NULL)
		return CMD_DONE;
	if (run->options->pages != 0)
		header.num_pages = run->options->pages;
	if (quire_trace_open(run->shared->path, &run->again, &refusal) != QUIRE_OK)
		return cmd_tell_refusal(run->file, &refusal);
	if (quire_trace_create(outcomes, &header, &run->outcomes, &refusal) != QUIRE_OK)
		return cmd_tell_refusal(outcomes, &refusal);
	return CMD_DONE;
}

static int end_outcomes(struct cmd_run *run, int code)
{
	struct quire_trace_writer *writer = run->outcomes;
	struct quire_refusal refusal;

	run->outcomes = NULL;
	quire_trace_close(run->again);
	if (code != CMD_DONE || run->damage.found || writer == NULL) {
		quire_trace_discard(writer);
		return code;
	}
	if (quire_trace_commit(writer, &refusal) != QUIRE_OK)
		return cmd_tell_refusal(run->options->outcomes, &refusal);
	return CMD_DONE;
}

/* ------------------------------------------------------------------ record */

/* A replay is faster than any engine: it waits for its recording. */
static int begin_record(struct cmd_run *run)
{
	const struct cmd_replay_options *options = run->options;
	struct quire_record_config config;
	struct quire_refusal refusal;

	if (options->record == NULL && options->timeline == NULL)
		return CMD_DONE;
	quire_record_config_init(&config);
	config.path = options->record;
	config.timeline = options->timeline;
	config.source = quire_trace_header(run->reader)->source;
	config.digests = options->digests;
	config.waits = true;
	if (quire_runtime_record_to(run->runtime, &config, &refusal) != QUIRE_OK)
		return cmd_tell_refusal(NULL, &refusal);
	return CMD_DONE;
}

/* Whatever the replay came to, its record stays. */
static int end_record(struct cmd_run *run, int code)
{
	const struct cmd_replay_options *options = run->options;
	struct quire_refusal refusal;

	if (options->record == NULL && options->timeline == NULL)
		return code;
	if (quire_runtime_record_end(run->runtime, &refusal) == QUIRE_OK)
		return code;
	cmd_tell_refusal(NULL, &refusal);
	return code == CMD_DONE ? CMD_BAD : code;
}

/* ------------------------------------------------------------------ make, end */

static int run_recorded(struct cmd_run *run)
{
	int code = begin_record(run);

	if (code != CMD_DONE)
		return code;
	code = run_trace(run);
	return end_record(run, code);
}

static int run_rig(struct cmd_run *run, struct cmd_rig *rig)
{
	int code = CMD_DONE;

	run->runtime = rig->runtime;
	if (run->options->check)
		code = cmd_check_create(run, run->shared->path, rig->cache, &run->check);
	if (code == CMD_DONE)
		code = open_outcomes(run);
	if (code == CMD_DONE)
		code = run_recorded(run);
	code = end_outcomes(run, code);
	if (code != CMD_DONE && quire_runtime_shutdown(rig->runtime, true) != QUIRE_OK)
		cmd_tell(run->file, 0,
		         "the runtime was shut down before its replay was over");
	return code;
}

static int run_reader(struct cmd_run *run)
{
	const struct cmd_replay_options *options = run->options;
	const struct quire_trace_header *header = quire_trace_header(run->reader);
	const struct cmd_rig_wants wants = {
		.file = run->file,
		.device = options->device,
		.depth = (int32_t)options->depth,
		.tickets_max = 4 * CMD_PENDING,
		.pages = options->pages,
		.jobs = options->jobs,
		.seed_delays = options->seed_delays,
		.caller = options->caller,
		.digests = options->digests,
		.taken = run->taken,
	};
	struct cmd_rig rig;
	int code = cmd_rig_create(&rig, &wants, header);

	if (code != CMD_DONE)
		return code;
	code = run_rig(run, &rig);
	cmd_rig_stop(&rig);
	for (; run->head != run->tail; run->head++)
		cmd_batch_free(cmd_run_pending(run, run->head)->batch);
	cmd_check_destroy(run->check);
	cmd_rig_end(&rig);
	return code;
}

/* Rings for the pages, where the trace has any. */
static bool make_rings(struct cmd_run *run)
{
	if (!run->shared->keeps_pages)
		return true;
	run->wanted = cmd_ring_create();
	run->taken = cmd_ring_create();
	return run->wanted != NULL && run->taken != NULL;
}

static int open_run(struct cmd_run *run)
{
	const struct cmd_replay_options *options = run->options;
	struct quire_refusal refusal;
	int code;

	if (quire_trace_open(run->shared->path, &run->reader, &refusal) != QUIRE_OK)
		return cmd_tell_refusal(run->file, &refusal);
	run->compares = options->verify;
	run->is_logical = run->shared->is_logical;
	if (make_rings(run)) {
		code = run_reader(run);
	} else {
		cmd_tell(NULL, 0, "no memory for a replay");
		code = CMD_BAD;
	}
	cmd_ring_destroy(run->wanted);
	cmd_ring_destroy(run->taken);
	quire_trace_close(run->reader);
	return code;
}

/* The job gets what it has to know when the run is over. */
static int end_run(struct cmd_run *run, struct cmd_job *job, int code)
{
	cmd_marks_end(&job->abandoned);
	job->abandoned = run->abandoned;
	job->divergence = run->divergence;
	job->last_digest = run->result.digest;
	job->damage = run->damage;
	job->damage.refusal.what = job->damage.text;
	if (cmd_total_add(&job->total, &run->result))
		return code;
	cmd_tell(NULL, 0, "no memory for a replay");
	return CMD_BAD;
}

int cmd_pass(struct cmd_job *job)
{
	struct cmd_run *run = calloc(1, sizeof(*run));
	int code = CMD_BAD;

	if (run == NULL || !cmd_fates_init(&run->fates)) {
		cmd_tell(NULL, 0, "no memory for a replay");
		free(run);
		return code;
	}
	run->shared = job->shared;
	run->options = job->shared->options;
	run->file = job->shared->file;
	run->is_shown = job->number == 0;
	run->pace_ns = -1;
	code = open_run(run);
	code = end_run(run, job, code);
	cmd_fates_end(&run->fates);
	free(run);
	return code;
}
