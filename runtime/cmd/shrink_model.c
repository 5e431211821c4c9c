/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/shrink_model_impl.h"

#include <stdlib.h>
#include <string.h>

/*
 * The logical model: which requests are open, how long every stream is, command by
 * command.  No pages: whether a step fits is the program's to find out.
 *
 *   length   open, reset: 0; a step adds its spans (not with commit false); rewind takes
 *            tokens; release_front whole pages, never the last one; a fork gives the
 *            target the source's, before the spans or behind them
 *   refused  nothing of it remains: recorded so, or by its lengths.  Where no outcomes
 *            are recorded: a step whose streams were named afterwards with the lengths
 *            that they had before it.
 *   held     A speculative step's changes are noted, and undone when it is abandoned: at
 *            the abandon, or before the next command that does not rest on it, which the
 *            runtime lets wait for its fate.
 *
 * The first walk, over the whole trace, notes what was wrong with it: segments that were
 * stale, by how much, commands of what was not there.  They stay as wrong as they are.
 */

/* ------------------------------------------------------------------ changes */

/* Note what a stream is before the step in hand changes it. */
static void note_change(struct shrink_model *model, const struct shrink_stream *stream)
{
	if (model->num_changes == model->changes_room) {
		int64_t room = model->changes_room > 0 ? 2 * model->changes_room : 1024;
		struct shrink_change *changes =
			realloc(model->changes, (size_t)room * sizeof(*changes));

		if (changes == NULL) {
			model->no_memory = true;
			return;
		}
		model->changes = changes;
		model->changes_room = room;
	}
	model->changes[model->num_changes++] = (struct shrink_change){
		.stream = (int32_t)(stream - model->streams),
		.length = stream->length,
		.is_there = stream->is_there,
	};
}

static void undo(struct shrink_model *model, int64_t first_change)
{
	while (model->num_changes > first_change) {
		const struct shrink_change *change =
			&model->changes[--model->num_changes];
		struct shrink_stream *stream = &model->streams[change->stream];

		stream->length = change->length;
		stream->is_there = change->is_there;
		stream->changed_by = SHRINK_NONE;
	}
}

/* Nothing is held any more: the fates of all are known. */
static void settle_held(struct shrink_model *model)
{
	int64_t i = 0;

	while (i < model->num_held &&
	       model->fates[model->held[i].command] == SHRINK_PROMOTED)
		i++;
	if (i < model->num_held)
		undo(model, model->held[i].first_change);
	model->num_held = 0;
	model->num_changes = 0;
}

/* The place of a held step; num_held: it is not held. */
static int64_t find_held(const struct shrink_model *model, int64_t command)
{
	int64_t i = model->num_held;

	while (i > 0 && model->held[i - 1].command != command)
		i--;
	return i > 0 ? i - 1 : model->num_held;
}

/* A submit was abandoned: what is held from there on never was. */
static void drop_held(struct shrink_model *model, int64_t target)
{
	int64_t place = find_held(model, target);

	if (place == model->num_held)
		return;
	undo(model, model->held[place].first_change);
	model->num_held = place;
}

/* ------------------------------------------------------------------ steps */

/* The distinct requests of what is left of a step's segments. */
static void find_batch(struct shrink_model *model, const struct shrink_cut *cut,
                       const struct shrink_command *command)
{
	const struct quire_step *step = command->record->command.step;

	model->num_batch = 0;
	model->met++;
	for (int64_t s = command->first_segment;
	     s < command->first_segment + step->num_segments; s++) {
		int32_t of = model->streams[model->segments[s].stream].of;
		struct shrink_request *request = &model->requests[of];

		if (cut->segments[s].is_gone || request->met == model->met)
			continue;
		request->met = model->met;
		model->batch[model->num_batch++] = of;
	}
}

static void fork_stream(struct shrink_model *model, int32_t of,
                        const struct quire_fork *fork, int64_t command)
{
	const struct shrink_request *request = &model->requests[of];
	uint64_t id = model->streams[request->first].request;
	const struct shrink_stream *source = shrink_find(model, id, fork->source);
	struct shrink_stream *target = shrink_find(model, id, fork->target);

	if (!request->is_open || source == NULL || !source->is_there || target == NULL)
		return;
	note_change(model, target);
	target->changed_by = target->is_there ? command : SHRINK_NONE;
	target->length_before = target->length;
	target->is_there = true;
	target->length = source->length;
}

/* @list: 0: pre-forks, 1: post-forks */
static void fork_all(struct shrink_model *model, const struct shrink_cut *cut, int64_t i,
                     int list)
{
	const struct quire_step *step = shrink_asked(model, i)->step;
	const struct quire_fork *forks = list == 0 ? step->pre_forks : step->post_forks;
	int32_t num = list == 0 ? step->num_pre_forks : step->num_post_forks;

	if (!shrink_has_part(model, cut, i,
	                     list == 0 ? SHRINK_PRE_FORKS : SHRINK_POST_FORKS))
		return;
	for (int32_t f = 0; f < num; f++) {
		if ((cut->commands[i].gone_forks[list] >> f & 1) != 0)
			continue;
		for (int32_t r = 0; r < model->num_batch; r++)
			fork_stream(model, model->batch[r], &forks[f], i);
	}
}

/* A segment's `at` is not its stream's length.  Without outcomes: had the newest step
 * before this one that changed the stream no effect, it would be. */
static bool was_refused(struct shrink_model *model, const struct shrink_stream *stream,
                        const struct shrink_command *now, int32_t at)
{
	struct shrink_command *step;

	if (stream->changed_by == SHRINK_NONE || stream->length_before != at)
		return false;
	step = &model->commands[stream->changed_by];
	if (step->record->has_outcome || step == now)
		return false;
	step->is_refused = true;
	model->again = true; /* it is refused from now on, so there is an end */
	return true;
}

/* In the first walk: what is wrong with a segment?  What was recorded as OK is right. */
static void learn_segment(struct shrink_model *model,
                          const struct shrink_command *command,
                          struct shrink_segment *segment, int32_t at)
{
	const struct quire_trace_record *record = command->record;
	struct shrink_stream *stream = &model->streams[segment->stream];

	segment->had_request = model->requests[stream->of].is_open;
	segment->had_label = stream->is_there;
	segment->stale = at == QUIRE_AT_ANY ? 0 : at - stream->length;
	if (segment->stale == 0 || !segment->had_request)
		return;
	if ((record->has_outcome && record->outcome.status == QUIRE_OK) ||
	    was_refused(model, stream, command, at)) {
		stream->length = at;
		segment->stale = 0;
	}
}

/* The segment's `at` for what its stream is now; does the step stand with it? */
static bool place_segment(struct shrink_model *model,
                          const struct shrink_segment *segment,
                          struct shrink_cut_segment *cut)
{
	const struct shrink_stream *stream = &model->streams[segment->stream];
	int64_t at = (int64_t)stream->length + segment->stale;

	if (at < 0) /* as stale the other way */
		at = (int64_t)stream->length - segment->stale;
	if (cut->at != QUIRE_AT_ANY)
		cut->at = at <= INT32_MAX ? (int32_t)at : INT32_MAX;
	return segment->stale == 0 && model->requests[stream->of].is_open &&
	       (stream->is_there || cut->span > 0);
}

static void write_segment(struct shrink_model *model, int64_t command, int32_t place,
                          int32_t span)
{
	struct shrink_stream *stream = &model->streams[place];
	int64_t length = (int64_t)stream->length + span;

	note_change(model, stream);
	stream->changed_by = command;
	stream->length_before = stream->length;
	stream->is_there = true;
	stream->length = length <= INT32_MAX ? (int32_t)length : INT32_MAX;
}

/* Does the segment speak of something that is gone? */
static bool is_lost(const struct shrink_model *model,
                    const struct shrink_segment *segment,
                    const struct shrink_cut_segment *cut, bool labels)
{
	const struct shrink_stream *stream = &model->streams[segment->stream];

	if (labels)
		return segment->had_label && !stream->is_there && cut->span == 0;
	return segment->had_request && !model->requests[stream->of].is_open;
}

/* Take such segments away; @labels: by their labels.  Returns whether there were any. */
static bool lose_segments(struct shrink_model *model, struct shrink_cut *cut, int64_t i,
                          bool labels)
{
	int64_t first = model->commands[i].first_segment;
	int32_t num = shrink_asked(model, i)->step->num_segments, left = 0;
	bool lost = false;

	if (model->is_first)
		return false;
	for (int64_t s = first; s < first + num; s++) {
		struct shrink_cut_segment *segment = &cut->segments[s];

		if (!segment->is_gone &&
		    is_lost(model, &model->segments[s], segment, labels))
			segment->is_gone = lost = true;
		left += !segment->is_gone;
	}
	if (left == 0)
		shrink_take_away(model, cut, i);
	return lost;
}

/* Give every segment its place; can the step have an effect? */
static bool place_segments(struct shrink_model *model, struct shrink_cut *cut, int64_t i)
{
	const struct shrink_command *command = &model->commands[i];
	const struct quire_step *step = command->record->command.step;
	bool stands = true;

	for (int32_t j = 0; j < step->num_segments; j++) {
		int64_t s = command->first_segment + j;

		if (model->is_first)
			learn_segment(model, command, &model->segments[s],
			              step->segments[j].at);
		if (!cut->segments[s].is_gone)
			stands &= place_segment(model, &model->segments[s],
			                        &cut->segments[s]);
	}
	return stands && !command->is_refused;
}

static void write_segments(struct shrink_model *model, const struct shrink_cut *cut,
                           int64_t i)
{
	const struct shrink_command *command = &model->commands[i];
	bool commits = !shrink_has_part(model, cut, i, SHRINK_COMMIT);

	for (int32_t j = 0; j < command->record->command.step->num_segments; j++) {
		int64_t s = command->first_segment + j;

		if (!cut->segments[s].is_gone && cut->segments[s].span > 0)
			write_segment(model, i, model->segments[s].stream,
			              commits ? cut->segments[s].span : 0);
	}
}

/* The recorded outcome of a step that stood, as far as its lengths go. */
static void learn_outcome(struct shrink_command *command)
{
	const struct quire_trace_record *record = command->record;

	if (record->has_outcome && record->outcome.status != QUIRE_OK &&
	    record->outcome.status != QUIRE_ABANDONED)
		command->is_refused = true;
}

/* Does the step have an effect?  Its changes are noted. */
static bool take_step(struct shrink_model *model, struct shrink_cut *cut, int64_t i)
{
	int64_t first_change = model->num_changes;
	bool stands;

	lose_segments(model, cut, i, false);
	find_batch(model, cut, &model->commands[i]);
	fork_all(model, cut, i, 0);
	if (lose_segments(model, cut, i, true)) {
		undo(model, first_change); /* some forks are of fewer requests */
		find_batch(model, cut, &model->commands[i]);
		fork_all(model, cut, i, 0);
	}
	stands = place_segments(model, cut, i);
	if (stands && model->is_first) {
		learn_outcome(&model->commands[i]);
		stands = !model->commands[i].is_refused;
	}
	if (!stands || cut->commands[i].is_gone) {
		undo(model, first_change);
		return false;
	}
	write_segments(model, cut, i);
	fork_all(model, cut, i, 1);
	return true;
}

/* ------------------------------------------------------------------ commands */

/* Does what a submit rests on stand?  Whatever else is held is settled. */
static bool meet_base(struct shrink_model *model, const struct shrink_cut *cut, int64_t i)
{
	int64_t base = cut->commands[i].base;

	if (model->fates[i] == SHRINK_LATE)
		return false;
	if (base == SHRINK_NONE || find_held(model, base) == model->num_held)
		settle_held(model);
	return base == SHRINK_NONE || model->has_effect[base];
}

static void do_speculative(struct shrink_model *model, struct shrink_cut *cut, int64_t i)
{
	bool stands = meet_base(model, cut, i);
	int64_t first_change = model->num_changes;

	model->has_effect[i] = take_step(model, cut, i) && stands;
	if (!model->has_effect[i]) {
		undo(model, first_change);
		return;
	}
	model->held[model->num_held++] =
		(struct shrink_held){.command = i, .first_change = first_change};
}

static void do_open(struct shrink_model *model, struct shrink_request *request)
{
	struct shrink_stream *stream = &model->streams[request->first];

	if (request->is_open)
		return;
	request->is_open = true;
	stream->is_there = true;
	stream->length = 0;
	stream->changed_by = SHRINK_NONE;
}

static void do_close(struct shrink_model *model, struct shrink_request *request)
{
	request->is_open = false;
	for (int32_t s = request->first; s != SHRINK_NONE; s = model->streams[s].next) {
		model->streams[s].is_there = false;
		model->streams[s].length = 0;
		model->streams[s].changed_by = SHRINK_NONE;
	}
}

/* A rewind or a release from the front.  What was too much in the whole trace is refused;
 * what is too much now becomes less. */
static void do_tokens(struct shrink_model *model, struct shrink_cut *cut, int64_t i,
                      struct shrink_stream *stream)
{
	struct shrink_command *command = &model->commands[i];
	int64_t page_size = model->lines->header.page_size, pages;
	int32_t *tokens = &cut->commands[i].tokens;

	if (model->is_first)
		command->is_refused |= *tokens > stream->length;
	if (command->is_refused)
		return;
	if (*tokens > stream->length)
		*tokens = stream->length;
	stream->changed_by = SHRINK_NONE;
	if (command->record->command.kind == QUIRE_COMMAND_REWIND) {
		stream->length -= *tokens;
		return;
	}
	pages = *tokens / page_size;
	if (stream->length > 0 && pages > (stream->length - 1) / page_size)
		pages = (stream->length - 1) / page_size; /* the last one stays */
	stream->length -= (int32_t)(pages * page_size);
}

/* Of a request or a stream that is there. */
static void do_named(struct shrink_model *model, struct shrink_cut *cut, int64_t i,
                     struct shrink_stream *stream)
{
	switch (shrink_asked(model, i)->kind) {
	case QUIRE_COMMAND_CLOSE:
		do_close(model, &model->requests[stream->of]);
		return;
	case QUIRE_COMMAND_RESET:
		stream->length = 0;
		stream->changed_by = SHRINK_NONE;
		return;
	default:
		do_tokens(model, cut, i, stream);
		return;
	}
}

/* All but submits, promotes and abandons. */
static void do_other(struct shrink_model *model, struct shrink_cut *cut, int64_t i)
{
	struct shrink_command *command = &model->commands[i];
	struct shrink_stream *stream = &model->streams[command->stream];
	bool is_open = command->record->command.kind == QUIRE_COMMAND_OPEN;
	bool is_there =
		is_open || (model->requests[stream->of].is_open && stream->is_there);

	if (model->is_first) {
		command->had = is_there;
		if (is_there)
			learn_outcome(command);
	}
	if (!is_there) {
		if (command->had)
			shrink_take_away(model, cut, i);
		return;
	}
	if (command->is_refused)
		return;
	if (is_open)
		do_open(model, &model->requests[stream->of]);
	else
		do_named(model, cut, i, stream);
}

static void do_command(struct shrink_model *model, struct shrink_cut *cut, int64_t i)
{
	switch (shrink_asked(model, i)->kind) {
	case QUIRE_COMMAND_PROMOTE:
		return;
	case QUIRE_COMMAND_ABANDON:
		if (model->ends_some[i])
			drop_held(model, model->commands[i].target);
		return;
	case QUIRE_COMMAND_SUBMIT:
		if (shrink_is_speculative(model, cut, i)) {
			do_speculative(model, cut, i);
			return;
		}
		settle_held(model);
		(void)take_step(model, cut, i);
		return;
	default:
		settle_held(model);
		do_other(model, cut, i);
		return;
	}
}

void shrink_walk(struct shrink_model *model, struct shrink_cut *cut)
{
	model->changed = false;
	model->num_held = 0;
	model->num_changes = 0;
	for (int32_t r = 0; r < model->num_requests; r++)
		model->requests[r].is_open = false;
	for (int32_t s = 0; s < model->num_streams; s++) {
		model->streams[s].is_there = false;
		model->streams[s].length = 0;
		model->streams[s].changed_by = SHRINK_NONE;
	}
	shrink_find_fates(model, cut);
	for (int64_t i = 0; i < model->lines->num && !model->no_memory; i++) {
		if (!cut->commands[i].is_gone)
			do_command(model, cut, i);
	}
}

bool shrink_settle(struct shrink_model *model, struct shrink_cut *cut)
{
	do
		shrink_walk(model, cut);
	while (model->changed && !model->no_memory);
	return !model->no_memory;
}
