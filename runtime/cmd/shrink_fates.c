/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/shrink_model_impl.h"

#include <string.h>

static bool is_decision(enum quire_command_kind kind)
{
	return kind == QUIRE_COMMAND_PROMOTE || kind == QUIRE_COMMAND_ABANDON;
}

/* No longer open. */
static void leave_open(struct shrink_model *model, int64_t submit)
{
	int64_t i = model->num_open;

	while (i > 0 && model->open[i - 1] != submit)
		i--;
	if (i == 0)
		return;
	memmove(&model->open[i - 1], &model->open[i],
	        (size_t)(model->num_open - i) * sizeof(*model->open));
	model->num_open--;
}

/* A submit's fate is open; with it end those that rest on it. */
static void abandon(struct shrink_model *model, const struct shrink_cut *cut,
                    int64_t target, int64_t end)
{
	for (int64_t i = target; i < end; i++) {
		int64_t base = cut->commands[i].base;

		if (!shrink_is_speculative(model, cut, i) ||
		    model->fates[i] == SHRINK_LATE)
			continue;
		if (i != target &&
		    (base == SHRINK_NONE || model->fates[base] != SHRINK_ABANDONED))
			continue;
		model->fates[i] = SHRINK_ABANDONED;
		leave_open(model, i);
	}
}

/* What a submit rests on: what the order comes to where that was so, otherwise the
 * nearest one left of those that it rested on. */
static int64_t find_base(struct shrink_model *model, const struct shrink_cut *cut,
                         int64_t i, int64_t by_order)
{
	struct shrink_command *command = &model->commands[i];
	int64_t base = command->base;

	if (model->is_first) {
		if (!command->record->has_base)
			command->base = by_order;
		command->base_by_order = command->base == by_order;
		return command->base;
	}
	if (command->base_by_order)
		return by_order;
	while (base != SHRINK_NONE && !shrink_is_speculative(model, cut, base))
		base = model->commands[base].base;
	return base;
}

static void meet_submit(struct shrink_model *model, struct shrink_cut *cut, int64_t i,
                        int64_t other)
{
	int64_t newest =
		model->num_open > 0 ? model->open[model->num_open - 1] : SHRINK_NONE;
	int64_t base = find_base(model, cut, i, newest > other ? newest : SHRINK_NONE);
	uint8_t below = base != SHRINK_NONE ? model->fates[base] : SHRINK_OPEN;

	cut->commands[i].base = base;
	model->fates[i] = SHRINK_LATE;
	if (below == SHRINK_ABANDONED || below == SHRINK_LATE)
		return;
	model->fates[i] = SHRINK_OPEN;
	model->open[model->num_open++] = i;
}

static void meet_decision(struct shrink_model *model, struct shrink_cut *cut, int64_t i)
{
	struct shrink_command *command = &model->commands[i];
	int64_t target = command->target;
	bool is_open = target != SHRINK_NONE &&
	               shrink_is_speculative(model, cut, target) &&
	               model->fates[target] == SHRINK_OPEN;

	model->ends_some[i] = false;
	if (model->is_first)
		command->had = is_open;
	if (!is_open) {
		if (command->had ||
		    (target != SHRINK_NONE && !shrink_is_speculative(model, cut, target)))
			shrink_take_away(model, cut, i);
		return;
	}
	if (shrink_asked(model, i)->kind == QUIRE_COMMAND_ABANDON) {
		model->ends_some[i] = true;
		abandon(model, cut, target, i);
		return;
	}
	model->fates[target] = SHRINK_PROMOTED;
	leave_open(model, target);
}

void shrink_find_fates(struct shrink_model *model, struct shrink_cut *cut)
{
	int64_t other = SHRINK_NONE;

	model->num_open = 0;
	for (int64_t i = 0; i < model->lines->num; i++) {
		if (cut->commands[i].is_gone)
			continue;
		if (is_decision(shrink_asked(model, i)->kind))
			meet_decision(model, cut, i);
		else if (shrink_is_speculative(model, cut, i))
			meet_submit(model, cut, i, other);
		else
			other = i;
	}
}
