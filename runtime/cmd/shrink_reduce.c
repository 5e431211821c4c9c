/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/shrink_impl.h"

#include <stdlib.h>
#include <string.h>

/*
 * Rounds of passes over the smallest cut so far, until a round takes nothing away.  A
 * pass has *units*, what may be taken away by itself, and tries to take many at once,
 * then half as many, down to one (delta debugging).  So in the end no one of them can be
 * taken away.
 */

/* ------------------------------------------------------------------ units */

struct pass {
	/* Look at the best cut: before a pass, and when it has changed; NULL: no need. */
	void (*look)(struct shrink *shrink);
	/* Is there something to take? */
	bool (*is_there)(const struct shrink *shrink, int64_t unit);
	/* Take it from the trial. */
	void (*take)(struct shrink *shrink, int64_t unit);
	/* ... all that was named by take; NULL: take does it. */
	void (*sweep)(struct shrink *shrink);
};

/* Take what is there of some units. */
static bool try_units(struct shrink *shrink, const struct pass *pass, int64_t first,
                      int64_t end)
{
	while (first < end && !pass->is_there(shrink, shrink->units[first]))
		first++;
	if (first == end)
		return false;
	shrink_begin(shrink);
	for (int64_t u = first; u < end; u++) {
		if (pass->is_there(shrink, shrink->units[u]))
			pass->take(shrink, shrink->units[u]);
	}
	if (pass->sweep != NULL)
		pass->sweep(shrink);
	if (!shrink_try(shrink))
		return false;
	if (pass->look != NULL)
		pass->look(shrink);
	return true;
}

/* The last ones first: they speak of the first. */
static bool reduce_units(struct shrink *shrink, const struct pass *pass, int64_t num)
{
	bool changed = false;

	for (int64_t chunk = num; chunk > 0; chunk /= 2) {
		for (int64_t end = num; end > 0 && !shrink->is_stopped; end -= chunk)
			changed |= try_units(shrink, pass, end > chunk ? end - chunk : 0,
			                     end);
	}
	return changed;
}

/* Units 0..num-1. */
static bool reduce_all(struct shrink *shrink, const struct pass *pass, int64_t num)
{
	int64_t n = 0;

	if (pass->look != NULL)
		pass->look(shrink);
	for (int64_t unit = 0; unit < num; unit++) {
		if (pass->is_there(shrink, unit))
			shrink->units[n++] = unit;
	}
	return reduce_units(shrink, pass, n);
}

/* ------------------------------------------------------------------ commands */

static bool has_command(const struct shrink *shrink, int64_t unit)
{
	return !shrink->best.commands[unit].is_gone;
}

static void take_command(struct shrink *shrink, int64_t unit)
{
	shrink->trial.commands[unit].is_gone = true;
}

static const struct pass commands_pass = {.is_there = has_command, .take = take_command};

/* Cut commands off the end, ever fewer at a time.  Outcomes on record hold for what is
 * left, too: a step whose fate is then open was promoted behind the end unless it is
 * recorded as ABANDONED. */
static bool reduce_tail(struct shrink *shrink)
{
	int64_t num = shrink->model.lines->num, chunk;
	bool changed = false;

	while (num > 0 && !has_command(shrink, num - 1))
		num--;
	for (chunk = num; chunk > 0 && !shrink->is_stopped;) {
		int64_t end = num - chunk;

		shrink_begin(shrink);
		for (int64_t i = end; i < num; i++)
			take_command(shrink, i);
		if (!shrink_try(shrink)) {
			chunk /= 2;
			continue;
		}
		changed = true;
		num = end;
		chunk = chunk < num ? chunk : num;
	}
	return changed;
}

/* ------------------------------------------------------------------ streams */

static bool has_segment(const struct shrink *shrink, int64_t unit)
{
	const struct shrink_segment *segment = &shrink->model.segments[unit];

	return !shrink->best.segments[unit].is_gone &&
	       has_command(shrink, segment->command);
}

static void take_segment(struct shrink *shrink, int64_t unit)
{
	shrink->trial.segments[unit].is_gone = true;
}

static const struct pass segments_pass = {.is_there = has_segment, .take = take_segment};

/* Does a command name one stream? */
static bool names_stream(const struct shrink_model *model, int64_t command)
{
	switch (shrink_asked(model, command)->kind) {
	case QUIRE_COMMAND_SUBMIT:
	case QUIRE_COMMAND_PROMOTE:
	case QUIRE_COMMAND_ABANDON:
		return false;
	default:
		return true;
	}
}

/* Mark the streams that are named in what is left. */
static void mark_streams(struct shrink *shrink)
{
	const struct shrink_model *model = &shrink->model;

	memset(shrink->streams, 0, (size_t)model->num_streams * sizeof(bool));
	for (int64_t s = 0; s < model->num_segments; s++)
		shrink->streams[model->segments[s].stream] |= has_segment(shrink, s);
	for (int64_t i = 0; i < model->lines->num; i++) {
		if (names_stream(model, i) && has_command(shrink, i))
			shrink->streams[model->commands[i].stream] = true;
	}
}

static bool has_stream(const struct shrink *shrink, int64_t unit)
{
	return shrink->streams[unit];
}

static void take_stream(struct shrink *shrink, int64_t unit)
{
	shrink->taken[unit] = true;
}

static bool has_request(const struct shrink *shrink, int64_t unit)
{
	const struct shrink_model *model = &shrink->model;

	for (int32_t s = model->requests[unit].first; s != SHRINK_NONE;
	     s = model->streams[s].next) {
		if (shrink->streams[s])
			return true;
	}
	return false;
}

static void take_request(struct shrink *shrink, int64_t unit)
{
	const struct shrink_model *model = &shrink->model;

	for (int32_t s = model->requests[unit].first; s != SHRINK_NONE;
	     s = model->streams[s].next)
		shrink->taken[s] = true;
}

/* Take all that names a stream that was taken. */
static void sweep_streams(struct shrink *shrink)
{
	const struct shrink_model *model = &shrink->model;

	for (int64_t s = 0; s < model->num_segments; s++)
		shrink->trial.segments[s].is_gone |=
			shrink->taken[model->segments[s].stream];
	for (int64_t i = 0; i < model->lines->num; i++) {
		if (names_stream(model, i) && shrink->taken[model->commands[i].stream])
			take_command(shrink, i);
	}
	memset(shrink->taken, 0, (size_t)model->num_streams * sizeof(bool));
}

static const struct pass streams_pass = {
	.look = mark_streams,
	.is_there = has_stream,
	.take = take_stream,
	.sweep = sweep_streams,
};

static const struct pass requests_pass = {
	.look = mark_streams,
	.is_there = has_request,
	.take = take_request,
	.sweep = sweep_streams,
};

/* ------------------------------------------------------------------ parts */

static bool has_part(const struct shrink *shrink, int64_t unit)
{
	return has_command(shrink, unit) &&
	       shrink_has_part(&shrink->model, &shrink->best, unit, shrink->part);
}

static void take_part(struct shrink *shrink, int64_t unit)
{
	shrink->trial.commands[unit].gone_parts |= shrink->part;
}

static const struct pass parts_pass = {.is_there = has_part, .take = take_part};

static bool reduce_parts(struct shrink *shrink)
{
	bool changed = false;

	for (int p = 0; p < SHRINK_PARTS; p++) {
		shrink->part = (enum shrink_part)(1 << p);
		changed |= reduce_all(shrink, &parts_pass, shrink->model.lines->num);
	}
	return changed;
}

/* A pair of a fork list, or one of the combined labels: the command, which list, the
 * place in it. */
#define PIECES 256
#define PLACES 64

static const enum shrink_part lists[] = {SHRINK_PRE_FORKS, SHRINK_POST_FORKS,
                                         SHRINK_COMBINED};

static uint64_t gone_pieces(const struct shrink_cut_command *command, int64_t list)
{
	return list < 2 ? command->gone_forks[list] : command->gone_combined;
}

static bool has_piece(const struct shrink *shrink, int64_t unit)
{
	int64_t command = unit / PIECES, list = unit % PIECES / PLACES;

	return has_command(shrink, command) &&
	       shrink_has_part(&shrink->model, &shrink->best, command, lists[list]) &&
	       (gone_pieces(&shrink->best.commands[command], list) >> unit % PLACES &
	        1) == 0;
}

static void take_piece(struct shrink *shrink, int64_t unit)
{
	struct shrink_cut_command *command = &shrink->trial.commands[unit / PIECES];
	int64_t list = unit % PIECES / PLACES;
	uint64_t bit = UINT64_C(1) << unit % PLACES;

	if (list < 2)
		command->gone_forks[list] |= bit;
	else
		command->gone_combined |= (uint32_t)bit;
}

static const struct pass pieces_pass = {.is_there = has_piece, .take = take_piece};

static int64_t add_pieces(struct shrink *shrink, int64_t n, int64_t command, int64_t list,
                          int32_t num)
{
	for (int32_t i = 0; i < num; i++) {
		int64_t unit = command * PIECES + list * PLACES + i;

		if (has_piece(shrink, unit))
			shrink->units[n++] = unit;
	}
	return n;
}

static bool reduce_pieces(struct shrink *shrink)
{
	int64_t n = 0;

	for (int64_t i = 0; i < shrink->model.lines->num; i++) {
		const struct quire_command *asked = shrink_asked(&shrink->model, i);

		if (asked->kind != QUIRE_COMMAND_SUBMIT)
			continue;
		n = add_pieces(shrink, n, i, 0, asked->step->num_pre_forks);
		n = add_pieces(shrink, n, i, 1, asked->step->num_post_forks);
		n = add_pieces(shrink, n, i, 2, asked->step->num_combined);
	}
	return reduce_units(shrink, &pieces_pass, n);
}

/* ------------------------------------------------------------------ numbers */

/* Units: the span of a segment; behind them the tokens of a command; behind them the
 * pages of the pool. */
static int32_t *find_number(const struct shrink *shrink, const struct shrink_cut *cut,
                            int64_t unit)
{
	int64_t command = unit - shrink->model.num_segments;

	return command < 0 ? &cut->segments[unit].span : &cut->commands[command].tokens;
}

static int64_t num_numbers(const struct shrink *shrink)
{
	return shrink->model.num_segments + shrink->model.lines->num;
}

static bool has_number(const struct shrink *shrink, int64_t unit)
{
	int64_t command = unit - shrink->model.num_segments;
	bool is_there =
		command < 0 ? has_segment(shrink, unit) : has_command(shrink, command);

	return is_there && *find_number(shrink, &shrink->best, unit) > 1;
}

static void take_number(struct shrink *shrink, int64_t unit)
{
	*find_number(shrink, &shrink->trial, unit) = 1;
}

static const struct pass numbers_pass = {.is_there = has_number, .take = take_number};

/* Make one number smaller, by ever less at a time. */
static bool lower_number(struct shrink *shrink, int64_t unit)
{
	bool changed = false;

	for (int32_t by = *find_number(shrink, &shrink->best, unit) / 2;
	     by > 0 && !shrink->is_stopped && has_number(shrink, unit);) {
		int32_t *number;

		shrink_begin(shrink);
		number = find_number(shrink, &shrink->trial, unit);
		*number = *number > by ? *number - by : 1;
		if (shrink_try(shrink))
			changed = true;
		else
			by /= 2;
	}
	return changed;
}

static bool reduce_numbers(struct shrink *shrink)
{
	bool changed = reduce_all(shrink, &numbers_pass, num_numbers(shrink));

	for (int64_t unit = 0; unit < num_numbers(shrink) && !shrink->is_stopped;
	     unit++) {
		if (has_number(shrink, unit))
			changed |= lower_number(shrink, unit);
	}
	return changed;
}

static bool reduce_pages(struct shrink *shrink)
{
	int64_t least = 1 + shrink->model.lines->header.sink;
	bool changed = false;

	for (int64_t by = shrink->best.num_pages / 2; by > 0 && !shrink->is_stopped;) {
		int64_t pages = shrink->best.num_pages - by;

		shrink_begin(shrink);
		shrink->trial.num_pages = pages > least ? pages : least;
		if (shrink_try(shrink))
			changed = true;
		else
			by /= 2;
	}
	return changed;
}

/* ------------------------------------------------------------------ all of it */

static bool reduce_once(struct shrink *shrink)
{
	const struct shrink_model *model = &shrink->model;
	bool changed = reduce_tail(shrink);

	changed |= reduce_all(shrink, &requests_pass, model->num_requests);
	changed |= reduce_all(shrink, &commands_pass, model->lines->num);
	changed |= reduce_all(shrink, &streams_pass, model->num_streams);
	changed |= reduce_all(shrink, &segments_pass, model->num_segments);
	changed |= reduce_parts(shrink);
	changed |= reduce_pieces(shrink);
	changed |= reduce_numbers(shrink);
	changed |= reduce_pages(shrink);
	return changed && !shrink->is_stopped;
}

/* Does it fail without outcomes, too?  What was recorded as refused by something outside
 * of the trace, and what rests on that, goes with them. */
static bool drop_outcomes(struct shrink *shrink)
{
	const struct shrink_model *model = &shrink->model;

	shrink_begin(shrink);
	shrink->trial.has_outcomes = false;
	for (int64_t i = 0; i < model->lines->num; i++) {
		const struct shrink_command *command = &model->commands[i];

		if (command->is_outside ||
		    (command->base != SHRINK_NONE &&
		     shrink->trial.commands[command->base].is_gone))
			take_command(shrink, i);
	}
	return shrink_try_or(shrink, true);
}

int shrink_reduce(struct shrink *shrink)
{
	shrink_begin(shrink);
	if (!shrink_try(shrink))
		return shrink->code;
	if (!drop_outcomes(shrink)) {
		shrink->is_tail_only = !shrink->is_stopped;
		if (shrink->is_tail_only)
			(void)reduce_tail(shrink);
		return shrink->code;
	}
	while (reduce_once(shrink))
		;
	return shrink->code;
}

/* ------------------------------------------------------------------ make */

void shrink_count(const struct shrink_model *model, const struct shrink_cut *cut,
                  struct shrink_counts *counts_out)
{
	*counts_out = (struct shrink_counts){.pages = cut->num_pages};
	for (int64_t i = 0; i < model->lines->num; i++) {
		counts_out->commands += !cut->commands[i].is_gone;
		counts_out->requests +=
			!cut->commands[i].is_gone &&
			shrink_asked(model, i)->kind == QUIRE_COMMAND_OPEN;
	}
	for (int64_t s = 0; s < model->num_segments; s++)
		counts_out->segments +=
			!cut->segments[s].is_gone &&
			!cut->commands[model->segments[s].command].is_gone;
}

static int64_t most(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

int shrink_init(struct shrink *shrink, const struct cmd_lines *lines)
{
	struct shrink_model *model = &shrink->model;
	int64_t units;
	uint64_t seen = 4;

	while (seen < 2 * (uint64_t)shrink->runs_max)
		seen *= 2;
	shrink->seen_mask = seen - 1;
	if (!shrink_model_init(model, lines) || !shrink_cut_init(&shrink->best, model) ||
	    !shrink_cut_init(&shrink->trial, model))
		goto refuse;
	units = most(num_numbers(shrink), most(model->num_streams, model->num_pieces));
	shrink->units = calloc((size_t)units + 1, sizeof(*shrink->units));
	shrink->streams = calloc((size_t)model->num_streams + 1, sizeof(bool));
	shrink->taken = calloc((size_t)model->num_streams + 1, sizeof(bool));
	shrink->seen = calloc(seen, sizeof(*shrink->seen));
	if (shrink->units != NULL && shrink->streams != NULL && shrink->taken != NULL &&
	    shrink->seen != NULL)
		return CMD_DONE;

refuse:
	cmd_tell(NULL, 0, "no memory to shrink so much of a trace");
	return CMD_BAD;
}

void shrink_end(struct shrink *shrink)
{
	free(shrink->units);
	free(shrink->streams);
	free(shrink->taken);
	free(shrink->seen);
	shrink_cut_end(&shrink->best);
	shrink_cut_end(&shrink->trial);
	shrink_model_end(&shrink->model);
}
