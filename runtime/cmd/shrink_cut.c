/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/shrink_model_impl.h"

#include <stdlib.h>
#include <string.h>

bool shrink_cut_init(struct shrink_cut *cut, const struct shrink_model *model)
{
	cut->commands = calloc((size_t)model->lines->num + 1, sizeof(*cut->commands));
	cut->segments = calloc((size_t)model->num_segments + 1, sizeof(*cut->segments));
	cut->num_pages = model->lines->header.num_pages;
	cut->has_outcomes = true;
	if (cut->commands == NULL || cut->segments == NULL) {
		shrink_cut_end(cut);
		return false;
	}
	for (int64_t i = 0; i < model->lines->num; i++) {
		const struct shrink_command *command = &model->commands[i];
		const struct quire_command *asked = &command->record->command;
		struct shrink_cut_segment *segments =
			&cut->segments[command->first_segment];

		cut->commands[i].tokens = asked->tokens;
		cut->commands[i].base = command->base;
		if (asked->kind != QUIRE_COMMAND_SUBMIT)
			continue;
		for (int32_t j = 0; j < asked->step->num_segments; j++) {
			segments[j].span = asked->step->segments[j].span;
			segments[j].at = asked->step->segments[j].at;
		}
	}
	return true;
}

void shrink_cut_copy(struct shrink_cut *to, const struct shrink_cut *from,
                     const struct shrink_model *model)
{
	memcpy(to->commands, from->commands,
	       (size_t)model->lines->num * sizeof(*to->commands));
	memcpy(to->segments, from->segments,
	       (size_t)model->num_segments * sizeof(*to->segments));
	to->num_pages = from->num_pages;
	to->has_outcomes = from->has_outcomes;
}

void shrink_cut_end(struct shrink_cut *cut)
{
	free(cut->commands);
	free(cut->segments);
	*cut = (struct shrink_cut){.commands = NULL};
}

/* ------------------------------------------------------------------ what is left */

void shrink_take_away(struct shrink_model *model, struct shrink_cut *cut, int64_t command)
{
	cut->commands[command].is_gone = true;
	model->changed = true;
}

bool shrink_is_speculative(const struct shrink_model *model, const struct shrink_cut *cut,
                           int64_t command)
{
	return !cut->commands[command].is_gone &&
	       shrink_has_part(model, cut, command, SHRINK_SPECULATIVE);
}

static bool step_has_part(const struct quire_step *step, enum shrink_part part)
{
	switch (part) {
	case SHRINK_PRE_FORKS:
		return step->num_pre_forks > 0;
	case SHRINK_POST_FORKS:
		return step->num_post_forks > 0;
	case SHRINK_COMBINED:
		return step->num_combined > 0;
	case SHRINK_BUCKET:
		return step->bucket_rows > 0;
	case SHRINK_SPECULATIVE:
		return (step->flags & QUIRE_STEP_SPECULATIVE) != 0;
	case SHRINK_COMMIT:
		return (step->flags & QUIRE_STEP_NO_COMMIT) != 0;
	case SHRINK_NO_WAIT:
		return (step->flags & QUIRE_STEP_NO_WAIT) != 0;
	case SHRINK_COPY:
		return (step->flags & QUIRE_STEP_COPY_FORKS) != 0;
	default:
		return false;
	}
}

bool shrink_has_part(const struct shrink_model *model, const struct shrink_cut *cut,
                     int64_t command, enum shrink_part part)
{
	const struct quire_trace_record *record = model->commands[command].record;

	if ((cut->commands[command].gone_parts & part) != 0)
		return false;
	switch (part) {
	case SHRINK_KEEP:
		return record->command.kind == QUIRE_COMMAND_RESET &&
		       record->command.keep_pages != 0;
	case SHRINK_PREFIX:
		return record->prefix.tokens != 0;
	case SHRINK_TIMES:
		return record->has_times;
	case SHRINK_ID:
		return record->id != 0 && !shrink_is_speculative(model, cut, command);
	default:
		return record->command.kind == QUIRE_COMMAND_SUBMIT &&
		       step_has_part(record->command.step, part);
	}
}
