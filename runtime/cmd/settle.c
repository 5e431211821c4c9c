/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/replay_impl.h"

#include <quire/plans/plan.h>

#include <inttypes.h>

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

static int write_outcome(struct cmd_run *run, const struct cmd_pending *pending,
                         const struct quire_trace_outcome *outcome)
{
	struct quire_trace_record again;
	struct quire_refusal refusal;

	if (run->outcomes == NULL)
		return CMD_DONE;
	if (quire_trace_next(run->again, &again, &refusal) != QUIRE_OK)
		return cmd_tell_refusal(run->file, &refusal);
	again.has_base = pending->fate != NULL;
	again.base = pending->base;
	again.has_outcome = true;
	again.outcome = *outcome;
	if (run->taken != NULL)
		again.outcome.pages = cmd_ring_get(run->taken, pending->ticket,
		                                   &again.outcome.num_pages);
	again.outcome.has_pages = run->taken != NULL && again.outcome.pages != NULL &&
	                          outcome->status == QUIRE_OK;
	if (quire_trace_write(run->outcomes, &again, &refusal) != QUIRE_OK)
		return cmd_tell_refusal(run->options->outcomes, &refusal);
	return CMD_DONE;
}

/* ------------------------------------------------------------------ settle */

/* May what becomes of a command still change? */
static bool is_open(const struct cmd_pending *pending)
{
	return pending->fate != NULL && !pending->fate->is_final;
}

/* What the runtime says of a command in the end. */
static int ask(struct cmd_run *run, struct cmd_pending *pending,
               struct quire_outcome *outcome_out)
{
	enum quire_status status;

	*outcome_out = (struct quire_outcome){.refusal = pending->got};
	if (pending->ticket == 0)
		return CMD_DONE;
	status = cmd_run_wait(run, pending->ticket, QUIRE_STAGE_RETIRED, outcome_out);
	if (status != QUIRE_OK) {
		cmd_tell(run->file, pending->line, "the outcome was lost: %s",
		         quire_status_text(status));
		return CMD_FAILED;
	}
	if (is_failure(outcome_out->refusal.status))
		return tell_failure(run, pending->line, &outcome_out->refusal);
	pending->got = outcome_out->refusal;
	pending->step = outcome_out->step;
	if (pending->fate != NULL && outcome_out->refusal.status != QUIRE_ABANDONED &&
	    outcome_out->base != pending->base_ticket)
		return cmd_run_diverge(run, pending->line,
		                       "submit diverged: it rests on another step than "
		                       "its base");
	return CMD_DONE;
}

/* Does it rest on a step that is not OK?  A runtime that refuses it at the call does not
 * look at that, nor does one that ends it with all others. */
static bool is_on_refused(struct cmd_run *run, const struct cmd_pending *pending)
{
	const struct cmd_fate *base = cmd_fates_find(&run->fates, pending->base);

	return !pending->is_left_out && base != NULL && !base->is_ok;
}

/* What became of a command, in the words of a trace. */
static int conclude(struct cmd_run *run, struct cmd_pending *pending,
                    struct quire_trace_outcome *got)
{
	struct quire_outcome outcome;
	int code = ask(run, pending, &outcome);

	if (code != CMD_DONE)
		return code;
	if (pending->fate != NULL && pending->ticket == 0 &&
	    (pending->fate->state == CMD_FATE_ABANDONED || is_on_refused(run, pending))) {
		*got = (struct quire_trace_outcome){.status = QUIRE_ABANDONED};
		return CMD_DONE;
	}
	if (pending->is_left_out) {
		*got = pending->expected;
		got->has_digest = got->has_pages = false;
		/* The recorded pool refused it, and --outcomes is of this one. */
		got->is_outside |= got->status == QUIRE_NO_PAGES;
		return CMD_DONE;
	}
	*got = (struct quire_trace_outcome){
		.status = outcome.refusal.status,
		.detail = quire_trace_detail(&outcome.refusal),
		.has_digest = run->options->digests &&
	                      pending->kind == QUIRE_COMMAND_SUBMIT &&
	                      outcome.refusal.status == QUIRE_OK,
	};
	if (got->has_digest)
		got->digest = outcome.digest;
	if (pending->fate != NULL)
		pending->fate->is_ok = got->status == QUIRE_OK;
	return CMD_DONE;
}

bool cmd_run_can_settle(struct cmd_run *run)
{
	struct cmd_pending *pending = cmd_run_pending(run, run->cursor);
	struct quire_outcome outcome;

	if (run->cursor == run->tail || pending->is_planned)
		return run->cursor != run->tail && !is_open(pending);
	if (!is_open(pending) || pending->ticket == 0)
		return true;
	/* Nothing is held below it, so it is planned without anybody's help. */
	pending->is_planned = cmd_run_wait(run, pending->ticket, QUIRE_STAGE_PLANNED,
	                                   &outcome) == QUIRE_OK &&
	                      outcome.refusal.status == QUIRE_OK;
	return !pending->is_planned;
}

/* What the run comes to, from --from on. */
static void count(struct cmd_run *run, const struct cmd_pending *pending,
                  const struct quire_trace_outcome *got)
{
	struct cmd_result *result = &run->result;

	if (!run->is_begun || run->head < run->first)
		return;
	result->commands++;
	result->left_out += pending->is_left_out;
	result->statuses[got->status]++;
	result->digest = quire_run_digest_add(result->digest, got->status, got->detail,
	                                      got->has_digest ? got->digest : 0);
}

/* Its lists of pages are done with; another run up to here leaves out what came to
 * nothing. */
static int forget(struct cmd_run *run, const struct cmd_pending *pending,
                  const struct quire_trace_outcome *got)
{
	if (run->taken != NULL) {
		cmd_ring_end(run->wanted, run->head + 1);
		cmd_ring_end(run->taken, pending->ticket);
	}
	if (got->status != QUIRE_ABANDONED || !run->compares ||
	    cmd_marks_add(&run->abandoned, run->head))
		return CMD_DONE;
	cmd_tell(NULL, 0, "no memory for a replay");
	return CMD_BAD;
}

/* Close the oldest command. */
static int close_oldest(struct cmd_run *run)
{
	struct cmd_pending *pending = cmd_run_pending(run, run->head);
	struct quire_trace_outcome *got = &pending->settled;
	int code = CMD_DONE;

	if (pending->is_unclosed)
		code = conclude(run, pending, got);
	if (code == CMD_DONE)
		code = cmd_compare(run, pending, got);
	if (code == CMD_DONE)
		code = write_outcome(run, pending, got);
	if (code == CMD_DONE)
		code = forget(run, pending, got);
	if (code != CMD_DONE)
		return code;
	count(run, pending, got);
	run->head++;
	return CMD_DONE;
}

static int close_settled(struct cmd_run *run)
{
	int code = CMD_DONE;

	while (code == CMD_DONE && run->head != run->cursor &&
	       !is_open(cmd_run_pending(run, run->head)))
		code = close_oldest(run);
	return code;
}

int cmd_run_settle(struct cmd_run *run)
{
	struct cmd_pending *pending = cmd_run_pending(run, run->cursor);
	enum quire_status status = QUIRE_ABANDONED; /* or refused: nothing remains */
	int code = CMD_DONE;

	pending->is_unclosed = is_open(pending);
	if (!pending->is_unclosed) {
		code = conclude(run, pending, &pending->settled);
		status = pending->settled.status;
	}
	if (code == CMD_DONE && run->check != NULL)
		code = cmd_check_settle(run->check, pending, status);
	if (code != CMD_DONE)
		return code;
	run->cursor++;
	return close_settled(run);
}

int cmd_run_settle_all(struct cmd_run *run)
{
	int code = CMD_DONE;

	while (code == CMD_DONE && cmd_run_can_settle(run))
		code = cmd_run_settle(run);
	return code != CMD_DONE ? code : close_settled(run);
}
