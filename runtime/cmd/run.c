/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/replay_impl.h"
#include "runtime/wake_impl.h"

#include <quire/plans/plan.h>

#include <inttypes.h>
#include <time.h>

/* What a thread sleeps that cannot be woken: the library's threads are at work. */
#define IDLE_NS 20000

/* What one that drives all sleeps at most: whatever moves next wakes it. */
#define DRIVE_NS 1000000

/* Sleeps of cmd_run_rest before it gives up on a runtime that does not come to rest. */
#define RESTS_MAX 100000

/* ------------------------------------------------------------------ drive */

static void doze(void)
{
	const struct timespec time = {.tv_nsec = IDLE_NS};

	nanosleep(&time, NULL);
}

static void drive(struct cmd_run *run)
{
	uint32_t value = quire_runtime_idle_value(run->runtime);
	bool moved = quire_planner_poll(run->runtime);

	moved |= quire_executor_poll(run->runtime);
	if (!moved)
		(void)quire_runtime_idle(run->runtime, value, quire_now_ns() + DRIVE_NS);
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

int cmd_run_give(struct cmd_run *run, const struct quire_command *command,
                 struct cmd_pending *pending)
{
	struct quire_refusal *got = &pending->got;
	enum quire_status status;

	if (!run->options->caller)
		status = quire_runtime_command(run->runtime, command, &pending->ticket,
		                               got);
	else
		while ((status = quire_runtime_try_command(run->runtime, command,
		                                           &pending->ticket, got)) ==
		       QUIRE_AGAIN)
			drive(run);
	if (status != QUIRE_HELD)
		return CMD_DONE;
	cmd_tell(run->file, pending->line,
	         "the queue is full behind a speculative step that is held: its promote "
	         "or abandon comes too late, or --depth is too small for the steps that "
	         "are held at once");
	return CMD_FAILED;
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

/* ------------------------------------------------------------------ give */

/* Promote or abandon. */
static bool is_decision(enum quire_command_kind kind)
{
	return kind == QUIRE_COMMAND_PROMOTE || kind == QUIRE_COMMAND_ABANDON;
}

/* What such a step answered before it was abandoned may have been AGAIN: others went by
 * that would have to wait behind it. */
static bool may_have_been_again(const struct quire_trace_record *record)
{
	const uint32_t flags = QUIRE_STEP_SPECULATIVE | QUIRE_STEP_NO_WAIT;

	return record->outcome.status == QUIRE_ABANDONED &&
	       record->command.kind == QUIRE_COMMAND_SUBMIT &&
	       (record->command.step->flags & flags) == flags;
}

bool cmd_run_is_left_out(const struct quire_trace_record *record)
{
	enum quire_status status = record->outcome.status;

	return record->has_outcome && !is_decision(record->command.kind) &&
	       (status == QUIRE_AGAIN || status == QUIRE_HELD ||
	        status == QUIRE_WOULD_BLOCK || status == QUIRE_TIMEOUT ||
	        status == QUIRE_DEVICE || status == QUIRE_CALLBACK ||
	        status == QUIRE_CANCELLED || record->outcome.is_outside ||
	        may_have_been_again(record));
}

bool cmd_run_is_refused(const struct cmd_run *run,
                        const struct quire_trace_record *record)
{
	return cmd_run_is_left_out(record) || (run->compares && record->has_outcome &&
	                                       record->outcome.status != QUIRE_OK);
}

/* Room for one more; some way ahead of what is settled. */
static int make_room(struct cmd_run *run)
{
	int code = CMD_DONE;

	while (code == CMD_DONE && run->tail - run->cursor >= CMD_WINDOW &&
	       cmd_run_can_settle(run))
		code = cmd_run_settle(run);
	if (code == CMD_DONE && run->tail - run->head == CMD_PENDING)
		code = cmd_run_settle_all(run);
	if (code != CMD_DONE || run->tail - run->head < CMD_PENDING)
		return code;
	cmd_tell(run->file, cmd_run_pending(run, run->head)->line,
	         "the fate of a speculative step is open %d commands later: a replay "
	         "looks no further ahead",
	         CMD_PENDING);
	return CMD_BAD;
}

/* Any other command than a speculative submit, a promote or an abandon. */
static int give_ordinary(struct cmd_run *run, const struct quire_command *command,
                         struct cmd_pending *pending)
{
	int code = CMD_DONE;

	if (!pending->is_left_out)
		code = cmd_run_give(run, command, pending);
	cmd_fates_other(&run->fates, pending->ticket != 0);
	return code;
}

static int give_command(struct cmd_run *run, const struct quire_trace_record *record,
                        const struct quire_command *command, struct cmd_pending *pending)
{
	if (is_decision(command->kind))
		return cmd_run_decide(run, command, pending);
	if (command->kind == QUIRE_COMMAND_SUBMIT &&
	    (command->step->flags & QUIRE_STEP_SPECULATIVE) != 0)
		return cmd_run_speculate(run, record, command, pending);
	return give_ordinary(run, command, pending);
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
		/* Time decided when it was recorded: AGAIN is left out, all else
		 * waits. */
		step.flags &= ~(uint32_t)QUIRE_STEP_NO_WAIT;
		command.step = &step;
	}
	if (!pending.is_left_out && run->check != NULL)
		code = cmd_check_prepare(run->check, record, &step, &pending);
	if (code == CMD_DONE)
		code = make_room(run);
	if (code == CMD_DONE)
		code = give_command(run, record, &command, &pending);
	if (code != CMD_DONE) {
		cmd_batch_free(pending.batch);
		return code;
	}
	if (pending.batch != NULL)
		cmd_check_given(run->check, pending.batch, run->tail,
		                run->compares && record->has_outcome);
	*cmd_run_pending(run, run->tail++) = pending;
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
	return cmd_run_end_all(run);
}
