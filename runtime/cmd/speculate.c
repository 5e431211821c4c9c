/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/replay_impl.h"

#include <inttypes.h>
#include <string.h>

/* Tell the runtime of a promote, or of an abandon. */
static enum quire_status tell(struct cmd_run *run, enum quire_command_kind kind,
                              uint64_t ticket)
{
	const struct quire_command command = {.kind = kind, .target = ticket};

	return quire_runtime_command(run->runtime, &command, NULL, NULL);
}

/* Tell the runtime of all promotes that it has to know now (cmd_fates_untold). */
static int tell_promotes(struct cmd_run *run, const struct cmd_fate *above)
{
	struct cmd_fate *fate;

	while ((fate = cmd_fates_untold(&run->fates, above)) != NULL) {
		enum quire_status status = QUIRE_OK;

		if (fate->ticket != 0)
			status = tell(run, QUIRE_COMMAND_PROMOTE, fate->ticket);
		cmd_fates_tell(&run->fates, fate);
		if (status != QUIRE_OK)
			return cmd_run_diverge(run, fate->promote_line,
			                       "promote diverged: expected OK of a step "
			                       "whose fate is open");
	}
	return CMD_DONE;
}

/* ------------------------------------------------------------------ promote, abandon */

/* Nothing that is open: the runtime has to find that too, where it knows the step.  One
 * that came late may have been open when the command was given: the record says. */
static void refuse(struct cmd_run *run, const struct quire_command *command,
                   struct cmd_fate *fate, struct cmd_pending *pending)
{
	pending->got.status = QUIRE_INVALID;
	if (fate != NULL && fate->is_late &&
	    (!pending->has_expected || pending->expected.status == QUIRE_OK)) {
		pending->got.status = QUIRE_OK;
		fate->is_late = false;
	}
	if (fate != NULL && fate->ticket != 0 && fate->is_told)
		pending->got.status = tell(run, command->kind, fate->ticket);
}

int cmd_run_decide(struct cmd_run *run, const struct quire_command *command,
                   struct cmd_pending *pending)
{
	struct cmd_fate *fate = cmd_fates_find(&run->fates, command->target);

	pending->got = (struct quire_refusal){.status = QUIRE_OK, .what = ""};
	if (fate == NULL || fate->state != CMD_FATE_OPEN) {
		refuse(run, command, fate, pending);
		return CMD_DONE;
	}
	if (command->kind == QUIRE_COMMAND_PROMOTE) {
		fate->promote_line = pending->line;
		cmd_fates_promote(&run->fates, fate);
		return tell_promotes(run, NULL);
	}
	if (fate->ticket != 0)
		pending->got.status = tell(run, command->kind, fate->ticket);
	cmd_fates_abandon(&run->fates, fate);
	return CMD_DONE;
}

/* Was it promoted behind the end of the trace, or ended with the recorded runtime?  Its
 * recorded outcome is the final one. */
static bool was_promoted(struct cmd_run *run, const struct cmd_fate *fate)
{
	const struct cmd_pending *pending = cmd_run_pending(run, fate->index);

	return !run->is_cut && pending->has_expected &&
	       pending->expected.status != QUIRE_ABANDONED;
}

int cmd_run_end_all(struct cmd_run *run)
{
	struct cmd_fate *fate;
	int code = CMD_DONE;

	while (code == CMD_DONE && (fate = cmd_fates_open(&run->fates)) != NULL) {
		enum quire_status status = QUIRE_OK;

		if (was_promoted(run, fate)) {
			fate->promote_line = fate->line;
			cmd_fates_promote(&run->fates, fate);
			code = tell_promotes(run, NULL);
			continue;
		}
		if (fate->ticket != 0)
			status = tell(run, QUIRE_COMMAND_ABANDON, fate->ticket);
		cmd_fates_abandon(&run->fates, fate);
		if (status != QUIRE_OK)
			return cmd_run_diverge(run, fate->line,
			                       "the step could not be abandoned at the "
			                       "end of the trace");
	}
	return code == CMD_DONE ? cmd_run_settle_all(run) : code;
}

/* ------------------------------------------------------------------ submit */

bool cmd_run_can_rest(struct cmd_run *run, const struct quire_trace_record *record,
                      char *text, size_t bytes)
{
	const struct cmd_fate *base = cmd_fates_find(&run->fates, record->base);

	if (!record->has_base)
		return true;
	if (base == NULL && record->base != 0) {
		snprintf(text, bytes,
		         "base %" PRIu64 " is none of the last %d speculative submits",
		         record->base, CMD_FATES);
		return false;
	}
	if (cmd_fates_may_rest(&run->fates, base))
		return true;
	snprintf(
		text, bytes,
		"base must be the newest submit whose fate is open, or one behind it, or "
		"null where another command stands behind all of these");
	return false;
}

/* A step rests on nothing because a command lay between that is not given here: give one
 * that changes nothing. */
static int give_between(struct cmd_run *run, int64_t line)
{
	const struct quire_command nothing = {
		.kind = QUIRE_COMMAND_REWIND,
		.request = QUIRE_REQUEST_MAX,
		.tokens = INT32_MAX,
	};
	struct cmd_pending pending = {.line = line};
	int code = cmd_run_give(run, &nothing, &pending);

	if (code == CMD_DONE)
		cmd_fates_other(&run->fates, true);
	return code;
}

/* What became of a base that was promoted for good? */
static int settle_base(struct cmd_run *run, const struct cmd_fate *base, int64_t line)
{
	int code = CMD_DONE;

	while (code == CMD_DONE && run->cursor <= base->index && cmd_run_can_settle(run))
		code = cmd_run_settle(run);
	if (code != CMD_DONE || run->cursor > base->index)
		return code;
	cmd_tell(run->file, line,
	         "base %" PRIu64 " is not decided by what stands before: it waits for "
	         "the fate of a step that is held",
	         base->id);
	return CMD_BAD;
}

/* Make the runtime let the next submit rest on @on, which is open; NULL: on nothing. */
static int rest_on(struct cmd_run *run, const struct cmd_fate *on,
                   struct cmd_pending *pending)
{
	struct cmd_fates *fates = &run->fates;
	int code = CMD_DONE;

	if (on != NULL)
		code = tell_promotes(run, on);
	else if (cmd_fates_derived(fates) != NULL && cmd_fates_base(fates) == NULL)
		code = give_between(run, pending->line);
	if (code == CMD_DONE && cmd_fates_derived(fates) != on)
		return cmd_run_diverge(run, pending->line,
		                       "submit diverged: it rests on another step than "
		                       "its base");
	pending->base_ticket = on != NULL ? on->ticket : 0;
	return code;
}

/* What its base says: is the submit given, and what does it rest on then? */
static int meet_base(struct cmd_run *run, const struct cmd_fate *base,
                     struct cmd_pending *pending, bool *is_given_out)
{
	bool is_promoted =
		base != NULL && base->state == CMD_FATE_PROMOTED && base->is_final;
	int code = CMD_DONE;

	if (is_promoted) {
		code = settle_base(run, base, pending->line);
		*is_given_out = base->is_ok;
	} else if (base != NULL) {
		*is_given_out = base->state != CMD_FATE_ABANDONED && base->ticket != 0;
	}
	if (code != CMD_DONE || !*is_given_out)
		return code;
	return rest_on(run, is_promoted ? NULL : base, pending);
}

/* Did the recorded runtime end it, by its failure or its shutdown? */
static bool ended_with_runtime(const struct quire_trace_record *record)
{
	enum quire_status status = record->outcome.status;

	return record->has_outcome &&
	       (status == QUIRE_CANCELLED || status == QUIRE_DEVICE ||
	        status == QUIRE_CALLBACK);
}

/* A bound of the runtime that a trace does not name. */
static bool is_too_many(const struct cmd_pending *pending)
{
	static const char limit[] = "speculative_max";

	return pending->ticket == 0 && pending->got.status == QUIRE_LIMIT &&
	       strncmp(pending->got.what, limit, sizeof(limit) - 1) == 0;
}

int cmd_run_speculate(struct cmd_run *run, const struct quire_trace_record *record,
                      const struct quire_command *command, struct cmd_pending *pending)
{
	struct cmd_fates *fates = &run->fates;
	struct cmd_fate *base = record->has_base ? cmd_fates_find(fates, record->base)
	                                         : cmd_fates_base(fates);
	const struct quire_refusal unnamed = pending->got;
	bool is_given = !pending->is_left_out;
	int code = CMD_DONE;

	pending->base = base != NULL ? base->id : 0;
	pending->got = (struct quire_refusal){.status = QUIRE_ABANDONED, .what = ""};
	if (is_given)
		code = meet_base(run, base, pending, &is_given);
	if (is_given && pending->is_unnamed) {
		pending->got = unnamed;
		is_given = false;
	}
	if (code == CMD_DONE && is_given)
		code = cmd_run_give(run, command, pending);
	if (code != CMD_DONE)
		return code;
	if (is_given && is_too_many(pending)) {
		cmd_tell(run->file, record->line,
		         "more than %d speculative submits whose fate is open",
		         QUIRE_SPECULATIVE_MAX);
		return CMD_BAD;
	}
	pending->fate = cmd_fates_add(fates, record->id, pending->base);
	pending->fate->ticket = pending->ticket;
	pending->fate->index = run->tail;
	pending->fate->line = record->line;
	pending->fate->is_ended = ended_with_runtime(record);
	return CMD_DONE;
}
