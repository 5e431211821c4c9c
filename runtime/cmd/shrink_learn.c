/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/shrink_model_impl.h"

#include <stdlib.h>
#include <string.h>

/* Places of the index at first. */
#define FIRST_INDEX 1024

/* ------------------------------------------------------------------ streams */

static uint32_t hash(uint64_t request, const char *label)
{
	uint64_t value = request * 0x9e3779b97f4a7c15u;

	for (; *label != '\0'; label++)
		value = (value ^ (unsigned char)*label) * 0x100000001b3u;
	return (uint32_t)(value ^ value >> 32);
}

/* The place in the index where the stream is, or would be. */
static uint32_t *look(const struct shrink_model *model, uint64_t request,
                      const char *label)
{
	for (uint32_t probe = hash(request, label);; probe++) {
		uint32_t *place = &model->index[probe & model->index_mask];
		const struct shrink_stream *stream;

		if (*place == 0)
			return place;
		stream = &model->streams[*place - 1];
		if (stream->request == request && strcmp(stream->label, label) == 0)
			return place;
	}
}

struct shrink_stream *shrink_find(const struct shrink_model *model, uint64_t request,
                                  const char *label)
{
	uint32_t place = *look(model, request, label);

	return place != 0 ? &model->streams[place - 1] : NULL;
}

/* At most half of the index is taken. */
static bool grow_index(struct shrink_model *model)
{
	uint32_t places =
		model->index != NULL ? 2 * (model->index_mask + 1) : FIRST_INDEX;

	if (model->index != NULL && (uint32_t)model->num_streams * 2 <= model->index_mask)
		return true;
	free(model->index);
	model->index = calloc(places, sizeof(*model->index));
	if (model->index == NULL)
		return false;
	model->index_mask = places - 1;
	for (int32_t i = 0; i < model->num_streams; i++)
		*look(model, model->streams[i].request, model->streams[i].label) =
			(uint32_t)i + 1;
	return true;
}

/* Room for one more in a list that doubles. */
static bool grow_list(void *list, int32_t num, int32_t *room, size_t size)
{
	int32_t more = *room > 0 ? *room * 2 : FIRST_INDEX;
	void *old, *grown;

	if (num < *room)
		return true;
	memcpy(&old, list, sizeof(old));
	grown = realloc(old, (size_t)more * size);
	if (grown == NULL)
		return false;
	memcpy(list, &grown, sizeof(grown));
	*room = more;
	return true;
}

static int32_t add_one_stream(struct shrink_model *model, uint64_t request,
                              const char *label)
{
	if (!grow_list(&model->streams, model->num_streams, &model->streams_room,
	               sizeof(*model->streams)) ||
	    !grow_index(model))
		return SHRINK_NONE;
	model->streams[model->num_streams] = (struct shrink_stream){
		.request = request,
		.label = label,
		.next = SHRINK_NONE,
	};
	*look(model, request, label) = (uint32_t)model->num_streams + 1;
	return model->num_streams++;
}

/* The place of a stream, which is made known if need be; SHRINK_NONE: no memory. */
static int32_t add_stream(struct shrink_model *model, uint64_t request, const char *label)
{
	struct shrink_stream *found =
		model->index != NULL ? shrink_find(model, request, label) : NULL;
	int32_t main, place;

	if (found != NULL)
		return (int32_t)(found - model->streams);
	if (strcmp(label, QUIRE_LABEL_MAIN) == 0) {
		if (!grow_list(&model->requests, model->num_requests,
		               &model->requests_room, sizeof(*model->requests)))
			return SHRINK_NONE;
		place = add_one_stream(model, request, QUIRE_LABEL_MAIN);
		if (place == SHRINK_NONE)
			return SHRINK_NONE;
		model->streams[place].of = model->num_requests;
		model->requests[model->num_requests++] =
			(struct shrink_request){.first = place};
		return place;
	}
	main = add_stream(model, request, QUIRE_LABEL_MAIN);
	place = main != SHRINK_NONE ? add_one_stream(model, request, label) : SHRINK_NONE;
	if (place == SHRINK_NONE)
		return SHRINK_NONE;
	model->streams[place].of = model->streams[main].of;
	model->streams[place].next = model->streams[main].next;
	model->streams[main].next = place;
	return place;
}

/* ------------------------------------------------------------------ commands */

/* The streams that a step's forks may make. */
static bool add_targets(struct shrink_model *model, const struct quire_step *step,
                        const struct quire_fork *forks, int32_t num)
{
	for (int32_t f = 0; f < num; f++) {
		for (int32_t i = 0; i < step->num_segments; i++) {
			if (add_stream(model, step->segments[i].request,
			               forks[f].target) == SHRINK_NONE)
				return false;
		}
	}
	return true;
}

static bool add_step(struct shrink_model *model, struct shrink_command *command)
{
	const struct quire_step *step = command->record->command.step;

	for (int32_t i = 0; i < step->num_segments; i++) {
		const struct quire_segment *segment = &step->segments[i];
		int32_t stream = add_stream(model, segment->request, segment->label);

		if (stream == SHRINK_NONE)
			return false;
		model->segments[command->first_segment + i].stream = stream;
		model->segments[command->first_segment + i].command =
			command - model->commands;
	}
	return add_targets(model, step, step->pre_forks, step->num_pre_forks) &&
	       add_targets(model, step, step->post_forks, step->num_post_forks);
}

/* Refused by what a trace does not hold: time, the machine, the engine's own work. */
static bool is_outside(const struct quire_trace_record *record)
{
	switch (record->outcome.status) {
	case QUIRE_AGAIN:
	case QUIRE_HELD:
	case QUIRE_WOULD_BLOCK:
	case QUIRE_TIMEOUT:
	case QUIRE_DEVICE:
	case QUIRE_CALLBACK:
	case QUIRE_CANCELLED:
		return record->has_outcome;
	default:
		return record->has_outcome && record->outcome.is_outside;
	}
}

/* The newest of @num submits, by id, whose id is @id. */
static int64_t find_submit(const struct shrink_model *model, const int64_t *submits,
                           int64_t num, uint64_t id)
{
	int64_t low = 0, high = num;

	while (low < high) {
		int64_t middle = low + (high - low) / 2;

		if (model->commands[submits[middle]].record->id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < num && model->commands[submits[low]].record->id == id ? submits[low]
	                                                                   : SHRINK_NONE;
}

/* What the ids of promotes, abandons and bases stand for; @submits: room for all. */
static void resolve_ids(struct shrink_model *model, int64_t *submits)
{
	int64_t num = 0;

	for (int64_t i = 0; i < model->lines->num; i++) {
		struct shrink_command *command = &model->commands[i];
		const struct quire_command *asked = &command->record->command;

		command->base = SHRINK_NONE;
		command->target = SHRINK_NONE;
		if (asked->kind == QUIRE_COMMAND_PROMOTE ||
		    asked->kind == QUIRE_COMMAND_ABANDON)
			command->target = find_submit(model, submits, num, asked->target);
		if (asked->kind != QUIRE_COMMAND_SUBMIT ||
		    (asked->step->flags & QUIRE_STEP_SPECULATIVE) == 0)
			continue;
		command->base = find_submit(model, submits, num, command->record->base);
		submits[num++] = i;
	}
}

static bool add_command(struct shrink_model *model, int64_t i)
{
	struct shrink_command *command = &model->commands[i];
	const struct quire_command *asked = &command->record->command;
	const char *label = QUIRE_LABEL_MAIN;

	command->is_outside = is_outside(command->record);
	switch (asked->kind) {
	case QUIRE_COMMAND_SUBMIT:
		return add_step(model, command);
	case QUIRE_COMMAND_PROMOTE:
	case QUIRE_COMMAND_ABANDON:
		return true;
	case QUIRE_COMMAND_RESET:
	case QUIRE_COMMAND_REWIND:
	case QUIRE_COMMAND_RELEASE_FRONT:
		label = asked->label;
		break;
	case QUIRE_COMMAND_OPEN:
	case QUIRE_COMMAND_CLOSE:
		break;
	}
	command->stream = add_stream(model, asked->request, label);
	return command->stream != SHRINK_NONE;
}

/* ------------------------------------------------------------------ make */

static void count_segments(struct shrink_model *model)
{
	for (int64_t i = 0; i < model->lines->num; i++) {
		const struct quire_command *asked = &model->lines->records[i].command;

		if (asked->kind != QUIRE_COMMAND_SUBMIT)
			continue;
		model->num_segments += asked->step->num_segments;
		model->num_pieces += asked->step->num_pre_forks +
		                     asked->step->num_post_forks +
		                     asked->step->num_combined;
		if (asked->step->num_segments > model->segments_max)
			model->segments_max = asked->step->num_segments;
	}
}

static bool make_arrays(struct shrink_model *model)
{
	size_t n = (size_t)model->lines->num + 1; /* not one of them is empty */

	model->commands = calloc(n, sizeof(*model->commands));
	model->segments =
		calloc((size_t)model->num_segments + 1, sizeof(*model->segments));
	model->fates = calloc(n, sizeof(*model->fates));
	model->has_effect = calloc(n, sizeof(*model->has_effect));
	model->ends_some = calloc(n, sizeof(*model->ends_some));
	model->open = calloc(n, sizeof(*model->open));
	model->held = calloc(n, sizeof(*model->held));
	model->batch = calloc((size_t)model->segments_max + 1, sizeof(*model->batch));
	return model->commands != NULL && model->segments != NULL &&
	       model->fates != NULL && model->has_effect != NULL &&
	       model->ends_some != NULL && model->open != NULL && model->held != NULL &&
	       model->batch != NULL;
}

/* Walk over the whole trace until no more steps are found to have been refused. */
static bool learn(struct shrink_model *model)
{
	struct shrink_cut whole;

	if (!shrink_cut_init(&whole, model))
		return false;
	model->is_first = true;
	do {
		model->again = false;
		shrink_walk(model, &whole);
	} while (model->again && !model->no_memory);
	model->is_first = false;
	shrink_cut_end(&whole);
	return !model->no_memory;
}

bool shrink_model_init(struct shrink_model *model, const struct cmd_lines *lines)
{
	int64_t segments = 0;

	model->lines = lines;
	count_segments(model);
	if (!make_arrays(model))
		return false;
	for (int64_t i = 0; i < lines->num; i++) {
		struct shrink_command *command = &model->commands[i];

		command->record = &lines->records[i];
		command->first_segment = segments;
		if (command->record->command.kind == QUIRE_COMMAND_SUBMIT)
			segments += command->record->command.step->num_segments;
		if (!add_command(model, i))
			return false;
	}
	resolve_ids(model, model->open);
	return learn(model);
}

void shrink_model_end(struct shrink_model *model)
{
	free(model->commands);
	free(model->segments);
	free(model->streams);
	free(model->requests);
	free(model->index);
	free(model->fates);
	free(model->has_effect);
	free(model->ends_some);
	free(model->open);
	free(model->held);
	free(model->changes);
	free(model->batch);
}
