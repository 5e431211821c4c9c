/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/replay_impl.h"
#include "runtime/wake_impl.h"

#include <quire/plans/plan.h>

#include <inttypes.h>
#include <time.h>

/* What a thread sleeps that cannot be woken: the library's threads are at work. */
#define IDLE_NS 20000

/* Sleeps of cmd_run_rest before it gives up on a runtime that does not come to rest. */
#define RESTS_MAX 100000

/* ------------------------------------------------------------------ drive */

static void doze(void)
{
	const struct timespec time = {.tv_nsec = IDLE_NS};

	nanosleep(&time, NULL);
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
		cmd_rig_drive(run->runtime);
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
			cmd_rig_drive(run->runtime);
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
			cmd_rig_drive(run->runtime);
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

/* Refusals that hang on time, or on the machine. */
static bool is_of_its_run(enum quire_status status)
{
	return status == QUIRE_AGAIN || status == QUIRE_HELD ||
	       status == QUIRE_WOULD_BLOCK || status == QUIRE_TIMEOUT ||
	       status == QUIRE_DEVICE || status == QUIRE_CALLBACK ||
	       status == QUIRE_CANCELLED;
}

bool cmd_is_left_out(const struct quire_trace_record *record)
{
	return record->has_outcome && !is_decision(record->command.kind) &&
	       (is_of_its_run(record->outcome.status) ||
	        (record->outcome.is_outside && record->outcome.status != QUIRE_OK) ||
	        may_have_been_again(record));
}

/* A step that the recorded pool was too small for says nothing of another one: it may fit
 * here, and must have no effect all the same. */
static bool is_left_out(const struct cmd_run *run,
                        const struct quire_trace_record *record)
{
	return cmd_is_left_out(record) || (run->is_logical && record->has_outcome &&
	                                   record->outcome.status == QUIRE_NO_PAGES);
}

/* Does the command have to come out as on record? */
static bool compares(const struct cmd_run *run, const struct quire_trace_record *record)
{
	return run->compares && record->has_outcome && record->line >= run->options->from;
}

bool cmd_run_is_refused(const struct cmd_run *run,
                        const struct quire_trace_record *record)
{
	return is_left_out(run, record) ||
	       (compares(run, record) && record->outcome.status != QUIRE_OK);
}

/* Are enough commands on their way, or enough pages of them? */
static bool is_ahead(const struct cmd_run *run)
{
	return run->tail - run->cursor >= CMD_WINDOW ||
	       (run->taken != NULL &&
	        (cmd_ring_is_tight(run->taken) || cmd_ring_is_tight(run->wanted)));
}

/* Room for one more; some way ahead of what is settled. */
static int make_room(struct cmd_run *run)
{
	int code = CMD_DONE;

	while (code == CMD_DONE && is_ahead(run) && cmd_run_can_settle(run))
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

	if (!pending->is_left_out && !pending->is_unnamed)
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

static void make_pending(struct cmd_run *run, const struct quire_trace_record *record,
                         struct cmd_pending *pending)
{
	*pending = (struct cmd_pending){
		.line = record->line,
		.kind = record->command.kind,
		.has_expected = record->has_outcome,
		.expected = record->outcome,
		.is_left_out = is_left_out(run, record),
		.is_compared = compares(run, record),
	};
	pending->expected.pages = NULL; /* lent; they are kept elsewhere */
	/* The runtime is not given all commands, so it cannot count the labels. */
	if (cmd_image_note_command(&run->labels, &record->command))
		return;
	pending->is_unnamed = true;
	pending->got = (struct quire_refusal){
		.status = QUIRE_LIMIT,
		.what = "a label that is not among the first 64 of the trace",
	};
}

/* The command is on its way, or what it comes to is known. */
static void put_pending(struct cmd_run *run, const struct quire_trace_record *record,
                        const struct cmd_pending *pending)
{
	if (pending->batch != NULL)
		cmd_check_given(run->check, pending->batch, run->tail,
		                pending->is_compared);
	if (run->taken != NULL && record->outcome.has_pages)
		cmd_ring_put(run->wanted, run->tail + 1, record->outcome.pages,
		             record->outcome.num_pages);
	*cmd_run_pending(run, run->tail++) = *pending;
}

/* Give one command, or what it comes to when it is not given. */
static int give_record(struct cmd_run *run, const struct quire_trace_record *record)
{
	struct quire_command command = record->command;
	struct quire_step step = {.num_segments = 0};
	struct cmd_pending pending;
	int code = CMD_DONE;

	make_pending(run, record, &pending);
	if (command.kind == QUIRE_COMMAND_SUBMIT) {
		step = *command.step;
		/* Time decided when it was recorded: AGAIN is left out, all else
		 * waits. */
		step.flags &= ~(uint32_t)QUIRE_STEP_NO_WAIT;
		command.step = &step;
	}
	if (!pending.is_left_out && !pending.is_unnamed && run->check != NULL)
		code = cmd_check_prepare(run->check, record, &step, &pending);
	if (code == CMD_DONE)
		code = make_room(run);
	if (code == CMD_DONE)
		code = give_command(run, record, &command, &pending);
	if (code == CMD_DONE)
		put_pending(run, record, &pending);
	else
		cmd_batch_free(pending.batch);
	return code;
}

/* ------------------------------------------------------------------ all of it */

/* --from is reached: what was before does not count.  Where nothing is held it has all
 * come to rest. */
static int begin(struct cmd_run *run)
{
	int code = cmd_run_settle_all(run);

	if (code != CMD_DONE)
		return code;
	if (run->cursor == run->tail)
		cmd_run_rest(run);
	quire_runtime_stats(run->runtime, &run->before);
	if (run->check != NULL)
		cmd_check_counts(run->check, &run->checked_before);
	run->first = run->tail;
	run->start_ns = quire_now_ns();
	run->is_begun = true;
	return CMD_DONE;
}

/* The next command of those asked for; QUIRE_END: there are no more. */
static enum quire_status next(struct cmd_run *run, struct quire_trace_record *record)
{
	const struct cmd_replay_options *options = run->options;
	struct quire_refusal *refusal = &run->damage.refusal;
	enum quire_status status = quire_trace_next(run->reader, record, refusal);

	if (status != QUIRE_OK && status != QUIRE_END) {
		run->damage.found = true;
		snprintf(run->damage.text, sizeof(run->damage.text), "%s", refusal->what);
		refusal->what = run->damage.text;
		return QUIRE_END;
	}
	if (status == QUIRE_OK && options->to != 0 && record->line > options->to) {
		run->is_cut = true;
		return QUIRE_END;
	}
	if (status == QUIRE_OK &&
	    !cmd_run_can_rest(run, record, run->damage.text, sizeof(run->damage.text))) {
		run->damage.found = true;
		*refusal = (struct quire_refusal){.status = QUIRE_FORMAT,
		                                  .line = record->line,
		                                  .what = run->damage.text};
		return QUIRE_END;
	}
	return status;
}

/* One command, at its time. */
static int give_next(struct cmd_run *run, const struct quire_trace_record *record)
{
	int64_t done, of;
	int code = CMD_DONE;

	if (atomic_load_explicit(&run->shared->stop, memory_order_relaxed))
		return CMD_FAILED; /* another job told why */
	if (!run->is_begun && record->line >= run->options->from)
		code = begin(run);
	if (code == CMD_DONE && run->is_begun && run->options->recorded)
		code = cmd_pace(run, record);
	if (code == CMD_DONE)
		code = give_record(run, record);
	if (run->is_shown) {
		quire_trace_position(run->reader, &done, &of);
		cmd_progress_show(done, of);
	}
	return code;
}

/* A part of the trace does not say what becomes of the steps that are open where it ends:
 * their outcomes on record may be of later fates, and so may those of what waits for
 * them, which is all behind the first but promotes and abandons. */
static void leave_open_uncompared(struct cmd_run *run)
{
	bool is_open = false;

	for (uint64_t i = run->head; i < run->tail; i++) {
		struct cmd_pending *pending = cmd_run_pending(run, i);

		is_open |= pending->fate != NULL && !pending->fate->is_final;
		pending->is_compared &= !is_open || is_decision(pending->kind);
	}
}

int cmd_run_all(struct cmd_run *run)
{
	struct quire_trace_record record;
	int64_t last = 1;
	int code = CMD_DONE;

	if (run->options->from == 0)
		code = begin(run);
	while (code == CMD_DONE && next(run, &record) == QUIRE_OK) {
		last = record.line;
		code = give_next(run, &record);
	}
	if (code != CMD_DONE)
		return code;
	if (run->options->from > last && !run->damage.found) {
		cmd_tell(run->file, 0,
		         "--from %" PRId64 " is behind the last line, which is %" PRId64,
		         run->options->from, last);
		return CMD_BAD;
	}
	if (run->is_cut)
		leave_open_uncompared(run);
	return cmd_run_end_all(run);
}
