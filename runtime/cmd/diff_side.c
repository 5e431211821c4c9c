/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/diff_impl.h"

#include <stdlib.h>
#include <string.h>

int diff_side_open(struct diff_side *side, const char *name)
{
	struct quire_refusal refusal;

	side->name = name;
	side->is_plain = true;
	side->next_line = 2;
	if (quire_trace_open(name, &side->reader, &refusal) != QUIRE_OK)
		return cmd_tell_refusal(name, &refusal);
	side->steps = calloc(CMD_FATES, sizeof(*side->steps));
	side->window = calloc(CMD_DIFF_WINDOW, sizeof(*side->window));
	if (side->steps != NULL && side->window != NULL && cmd_fates_init(&side->fates))
		return CMD_DONE;
	cmd_tell(NULL, 0, "no memory for a diff");
	return CMD_BAD;
}

void diff_side_close(struct diff_side *side)
{
	while (side->head != side->tail)
		diff_side_drop(side);
	cmd_fates_end(&side->fates);
	free(side->window);
	free(side->steps);
	quire_trace_close(side->reader);
}

void diff_side_drop(struct diff_side *side)
{
	free((void *)diff_side_at(side, 0)->outcome.pages);
	side->head++;
}

int64_t diff_side_line(const struct diff_side *side)
{
	return side->head != side->tail ? diff_side_at(side, 0)->line : side->next_line;
}

struct diff_step *diff_side_step(struct diff_side *side, uint64_t number)
{
	struct diff_step *step = &side->steps[number % CMD_FATES];

	return number < side->fates.count && step->number == number ? step : NULL;
}

/* ------------------------------------------------------------------ what an id names */

static void name_step(struct diff_item *item, const struct cmd_fate *fate)
{
	item->names = fate != NULL ? DIFF_NAMES_STEP : DIFF_NAMES_UNKNOWN;
	item->named = fate != NULL ? fate->number : 0;
}

/* A speculative submit: what it rests on, written out or not. */
static int add_submit(struct diff_side *side, const struct quire_trace_record *record,
                      struct diff_item *item)
{
	struct cmd_fates *fates = &side->fates;
	struct cmd_fate *base = record->has_base ? cmd_fates_find(fates, record->base)
	                                         : cmd_fates_base(fates);
	const struct cmd_fate *forgotten = &fates->ring[fates->count % CMD_FATES];

	if (fates->count >= CMD_FATES && !forgotten->is_final) {
		cmd_tell(side->name, record->line,
		         "the fate of the %dth speculative submit before this one is "
		         "open: a diff looks no further back",
		         CMD_FATES);
		return CMD_BAD;
	}
	if (base != NULL || (record->has_base && record->base != 0))
		name_step(item, base);
	item->is_speculative = true;
	item->number =
		cmd_fates_add(fates, record->id, base != NULL ? base->id : 0)->number;
	side->steps[item->number % CMD_FATES] =
		(struct diff_step){.number = item->number, .key = item->key};
	return CMD_DONE;
}

static void decide(struct diff_side *side, enum quire_command_kind kind,
                   struct cmd_fate *fate)
{
	struct cmd_fate *told;

	if (fate == NULL || fate->state != CMD_FATE_OPEN)
		return;
	if (kind == QUIRE_COMMAND_ABANDON) {
		cmd_fates_abandon(&side->fates, fate);
		return;
	}
	cmd_fates_promote(&side->fates, fate);
	while ((told = cmd_fates_untold(&side->fates, NULL)) != NULL)
		cmd_fates_tell(&side->fates, told);
}

/* The key of a command, and what it names; the fates go on by it. */
static int identify(struct diff_side *side, const struct quire_trace_record *record,
                    struct diff_item *item)
{
	const struct quire_command *command = &record->command;
	const struct diff_key nobody = {0, 0};
	struct cmd_fate *fate;

	switch (command->kind) {
	case QUIRE_COMMAND_PROMOTE:
	case QUIRE_COMMAND_ABANDON:
		fate = cmd_fates_find(&side->fates, command->target);
		name_step(item, fate);
		item->key = diff_key_of(
			record, fate != NULL ? &diff_side_step(side, fate->number)->key
					     : &nobody);
		decide(side, command->kind, fate);
		return CMD_DONE;
	case QUIRE_COMMAND_SUBMIT:
		item->key = diff_key_of(record, &nobody);
		if ((command->step->flags & QUIRE_STEP_SPECULATIVE) != 0)
			return add_submit(side, record, item);
		break;
	default:
		item->key = diff_key_of(record, &nobody);
		break;
	}
	cmd_fates_other(&side->fates, true);
	return CMD_DONE;
}

/* ------------------------------------------------------------------ read */

static bool keeps_plain(const struct quire_command *command)
{
	const struct quire_step *step = command->step;

	switch (command->kind) {
	case QUIRE_COMMAND_SUBMIT:
		return step->num_pre_forks + step->num_post_forks == 0 &&
		       (step->flags & QUIRE_STEP_NO_COMMIT) == 0;
	case QUIRE_COMMAND_RESET:
		return command->keep_pages == 0;
	case QUIRE_COMMAND_REWIND:
		return command->tokens == 0;
	default:
		return true;
	}
}

static void add_times(struct diff_times *times, const struct quire_trace_times *of)
{
	times->any = true;
	quire_histogram_add(&times->decided, of->decided_ns - of->given_ns);
	if (of->issued_ns >= 0)
		quire_histogram_add(&times->issued, of->issued_ns - of->decided_ns);
}

/* The item keeps its pages: the record's are lent. */
static bool keep_outcome(struct diff_item *item, const struct quire_trace_record *record)
{
	struct quire_trace_outcome *outcome = &item->outcome;
	int32_t *pages;

	item->has_outcome = record->has_outcome;
	if (!record->has_outcome)
		return true;
	*outcome = record->outcome;
	outcome->pages = NULL;
	if (!outcome->has_pages || outcome->num_pages == 0)
		return true;
	pages = malloc((size_t)outcome->num_pages * sizeof(*pages));
	if (pages == NULL)
		return false;
	memcpy(pages, record->outcome.pages, (size_t)outcome->num_pages * sizeof(*pages));
	outcome->pages = pages;
	return true;
}

static int add_record(struct diff_side *side)
{
	const struct quire_trace_record *record = &side->last;
	struct diff_item item = {.line = record->line, .kind = record->command.kind};
	int code = identify(side, record, &item);

	if (code != CMD_DONE)
		return code;
	item.has_prefix = record->prefix.tokens != 0;
	item.prefix = diff_key_of_prefix(&record->prefix);
	if (record->has_times)
		add_times(&side->times, &record->times);
	if (!keep_outcome(&item, record)) {
		cmd_tell(side->name, record->line, "no memory for its pages");
		return CMD_BAD;
	}
	side->is_plain &= keeps_plain(&record->command);
	side->next_line = record->line + 1;
	side->window[side->tail++ % CMD_DIFF_WINDOW] = item;
	return CMD_DONE;
}

int diff_side_fill(struct diff_side *side, uint64_t n)
{
	struct quire_refusal refusal;
	int code = CMD_DONE;

	while (code == CMD_DONE && !side->at_end && diff_side_count(side) < n) {
		enum quire_status status =
			quire_trace_next(side->reader, &side->last, &refusal);

		if (status != QUIRE_OK && status != QUIRE_END)
			return cmd_tell_refusal(side->name, &refusal);
		side->at_end = status == QUIRE_END;
		if (!side->at_end)
			code = add_record(side);
	}
	return code;
}
