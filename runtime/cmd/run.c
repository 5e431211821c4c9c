/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/replay_impl.h"

#include <quire/plans/plan.h>

#include <inttypes.h>
#include <time.h>

/* What a thread that drives all sleeps when nothing moves: the device is at work. */
#define IDLE_NS 20000

/* Sleeps of cmd_run_rest before it gives up on a runtime that does not come to rest. */
#define RESTS_MAX 100000

#define OUTCOME_BYTES 128

static const char *const kind_names[] = {
	[QUIRE_COMMAND_OPEN] = "open",
	[QUIRE_COMMAND_CLOSE] = "close",
	[QUIRE_COMMAND_SUBMIT] = "submit",
	[QUIRE_COMMAND_RESET] = "reset",
};

/* ------------------------------------------------------------------ drive */

static void doze(void)
{
	const struct timespec time = {.tv_nsec = IDLE_NS};

	nanosleep(&time, NULL);
}

static void drive(struct cmd_run *run)
{
	bool moved = quire_planner_poll(run->runtime);

	moved |= quire_executor_poll(run->runtime);
	if (!moved)
		doze();
}

enum quire_status cmd_run_wait(struct cmd_run *run, uint64_t ticket,
                               enum quire_stage stage, struct quire_outcome *outcome_out)
{
	enum quire_status status;

	if (!run->options->caller)
		return quire_runtime_wait(run->runtime, ticket, stage, QUIRE_NO_DEADLINE,
		                          outcome_out);
	while ((status = quire_runtime_wait(run->runtime, ticket, stage, 0,
	                                    outcome_out)) == QUIRE_TIMEOUT)
		drive(run);
	return status;
}

static enum quire_status give(struct cmd_run *run, const struct quire_command *command,
                              uint64_t *ticket_out, struct quire_refusal *refusal_out)
{
	enum quire_status status;

	if (!run->options->caller)
		return quire_runtime_command(run->runtime, command, ticket_out,
		                             refusal_out);
	while ((status = quire_runtime_try_command(run->runtime, command, ticket_out,
	                                           refusal_out)) == QUIRE_AGAIN)
		drive(run);
	return status;
}

void cmd_run_rest(struct cmd_run *run)
{
	struct quire_runtime_stats stats;

	for (int i = 0; i < RESTS_MAX; i++) {
		quire_runtime_stats(run->runtime, &stats);
		if (stats.pages_retiring == 0 &&
		    stats.steps_retired == stats.steps_planned)
			return;
		if (run->options->caller)
			drive(run);
		else
			doze();
	}
}

/* ------------------------------------------------------------------ settle */

static int64_t detail_of(const struct quire_refusal *refusal)
{
	if (refusal->status == QUIRE_NO_PAGES)
		return refusal->pages_short;
	return refusal->status == QUIRE_STALE ? refusal->got : 0;
}

/* Statuses that tell of this run's machine, not of the commands. */
static bool is_failure(enum quire_status status)
{
	return status == QUIRE_DEVICE || status == QUIRE_CALLBACK ||
	       status == QUIRE_NO_MEMORY || status == QUIRE_CLOSED ||
	       status == QUIRE_CANCELLED || status == QUIRE_WOULD_BLOCK;
}

static int tell_failure(const struct cmd_run *run, int64_t line,
                        const struct quire_refusal *refusal)
{
	char text[512];

	quire_refusal_text(refusal, text, sizeof(text));
	cmd_tell(run->file, line, "the runtime failed: %s", text);
	return CMD_FAILED;
}

static void describe(const struct quire_trace_outcome *outcome, bool digest, char *text)
{
	int used =
		snprintf(text, OUTCOME_BYTES, "%s", quire_status_name(outcome->status));

	if (outcome->detail != 0)
		used += snprintf(text + used, OUTCOME_BYTES - (size_t)used, " %" PRId64,
		                 outcome->detail);
	if (digest && outcome->has_digest)
		snprintf(text + used, OUTCOME_BYTES - (size_t)used,
		         " with digest %016" PRIx64, outcome->digest);
}

static int compare(struct cmd_run *run, const struct cmd_pending *pending,
                   const struct quire_trace_outcome *got)
{
	const struct quire_trace_outcome *expected = &pending->expected;
	bool digests = expected->has_digest && got->has_digest;
	char wanted_text[OUTCOME_BYTES], got_text[OUTCOME_BYTES];

	if (!run->compares || !pending->has_expected)
		return CMD_DONE;
	if (got->status == expected->status && got->detail == expected->detail &&
	    (!digests || got->digest == expected->digest)) {
		run->compared++;
		return CMD_DONE;
	}
	describe(expected, digests, wanted_text);
	describe(got, digests, got_text);
	cmd_tell(run->file, pending->line, "%s diverged: expected %s, got %s",
	         kind_names[pending->kind], wanted_text, got_text);
	run->diverged = true;
	return CMD_FAILED;
}

static int record(struct cmd_run *run, const struct quire_trace_outcome *outcome)
{
	struct quire_trace_record again;
	struct quire_refusal refusal;

	if (run->record == NULL)
		return CMD_DONE;
	if (quire_trace_next(run->again, &again, &refusal) != QUIRE_OK)
		return cmd_tell_refusal(run->file, &refusal);
	again.has_outcome = true;
	again.outcome = *outcome;
	if (quire_trace_write(run->record, &again, &refusal) != QUIRE_OK)
		return cmd_tell_refusal(run->options->record, &refusal);
	return CMD_DONE;
}

/* What became of a command, in the words of a trace; its batch is checked. */
static int conclude(struct cmd_run *run, struct cmd_pending *pending,
                    struct quire_trace_outcome *got)
{
	struct quire_outcome outcome = {.refusal = pending->got};
	struct cmd_batch *batch = pending->batch;
	enum quire_status status = QUIRE_OK;

	if (pending->is_left_out) {
		*got = pending->expected;
		got->has_digest = false;
		return CMD_DONE;
	}
	if (pending->ticket != 0)
		status =
			cmd_run_wait(run, pending->ticket, QUIRE_STAGE_RETIRED, &outcome);
	if (status != QUIRE_OK) {
		cmd_tell(run->file, pending->line, "the outcome was lost: %s",
		         quire_status_text(status));
		return CMD_FAILED;
	}
	if (is_failure(outcome.refusal.status))
		return tell_failure(run, pending->line, &outcome.refusal);
	*got = (struct quire_trace_outcome){
		.status = outcome.refusal.status,
		.detail = detail_of(&outcome.refusal),
		.has_digest = run->options->digests &&
	                      pending->kind == QUIRE_COMMAND_SUBMIT &&
	                      outcome.refusal.status == QUIRE_OK,
	};
	if (got->has_digest)
		got->digest = outcome.digest;
	pending->batch = NULL;
	if (batch == NULL)
		return CMD_DONE;
	return cmd_check_settle(run->check, batch, pending->line, got->status);
}

int cmd_run_settle(struct cmd_run *run)
{
	struct cmd_pending *pending = &run->pending[run->head % CMD_WINDOW];
	struct quire_trace_outcome got;
	int code = conclude(run, pending, &got);

	if (code == CMD_DONE)
		code = compare(run, pending, &got);
	if (code == CMD_DONE)
		code = record(run, &got);
	if (code != CMD_DONE)
		return code;
	run->head++;
	run->statuses[got.status]++;
	run->digest = quire_run_digest_add(run->digest, got.status, got.detail,
	                                   got.has_digest ? got.digest : 0);
	return CMD_DONE;
}

int cmd_run_settle_all(struct cmd_run *run)
{
	int code = CMD_DONE;

	while (code == CMD_DONE && run->head != run->tail)
		code = cmd_run_settle(run);
	return code;
}

/* ------------------------------------------------------------------ give */

bool cmd_run_is_left_out(const struct quire_trace_record *record)
{
	enum quire_status status = record->outcome.status;

	return record->has_outcome &&
	       (status == QUIRE_AGAIN || status == QUIRE_HELD ||
	        status == QUIRE_WOULD_BLOCK || status == QUIRE_TIMEOUT);
}

bool cmd_run_is_refused(const struct cmd_run *run,
                        const struct quire_trace_record *record)
{
	return cmd_run_is_left_out(record) || (run->compares && record->has_outcome &&
	                                       record->outcome.status != QUIRE_OK);
}

/* Give one command, or what it comes to when it is not given. */
static int give_record(struct cmd_run *run, const struct quire_trace_record *record)
{
	struct quire_command command = record->command;
	struct quire_step step = {.num_segments = 0};
	struct cmd_pending pending = {
		.line = record->line,
		.kind = command.kind,
		.has_expected = record->has_outcome,
		.expected = record->outcome,
		.is_left_out = cmd_run_is_left_out(record),
	};
	int code = CMD_DONE;

	if (command.kind == QUIRE_COMMAND_SUBMIT) {
		step = *command.step;
		/* Time decided when it was recorded: AGAIN is left out, all else waits. */
		step.flags &= ~(uint32_t)QUIRE_STEP_NO_WAIT;
		command.step = &step;
	}
	if (!pending.is_left_out && run->check != NULL)
		code = cmd_check_prepare(run->check, record, &step, &pending.batch);
	if (code == CMD_DONE && run->tail - run->head == CMD_WINDOW)
		code = cmd_run_settle(run);
	if (code != CMD_DONE) {
		cmd_batch_free(pending.batch);
		return code;
	}
	if (!pending.is_left_out)
		give(run, &command, &pending.ticket, &pending.got);
	if (pending.batch != NULL)
		cmd_check_given(run->check, pending.batch, pending.ticket,
		                run->compares && record->has_outcome);
	run->pending[run->tail++ % CMD_WINDOW] = pending;
	return CMD_DONE;
}

int cmd_run_all(struct cmd_run *run)
{
	struct quire_trace_record record;
	struct quire_refusal refusal;
	int64_t done, of;

	for (;;) {
		enum quire_status status =
			quire_trace_next(run->reader, &record, &refusal);
		int code;

		if (status == QUIRE_END)
			break;
		if (status != QUIRE_OK)
			return cmd_tell_refusal(run->file, &refusal);
		code = give_record(run, &record);
		if (code != CMD_DONE)
			return code;
		quire_trace_position(run->reader, &done, &of);
		cmd_progress_show(done, of);
	}
	return cmd_run_settle_all(run);
}
