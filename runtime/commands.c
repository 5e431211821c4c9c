/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/commands_impl.h"

#include "runtime/memory_impl.h"
#include "runtime/refuse_impl.h"

#include <string.h>

static void free_cells(struct quire_commands *commands, const struct quire_memory *memory)
{
	int64_t n = (int64_t)commands->mask + 1;

	quire_memory_free(memory, commands->open, commands->speculative_max,
	                  sizeof(*commands->open));
	quire_memory_free(memory, commands->combined, n * commands->tables_max,
	                  sizeof(*commands->combined));
	quire_memory_free(memory, commands->segments, n * commands->rows_max,
	                  sizeof(*commands->segments));
	quire_memory_free(memory, commands->cells, n, sizeof(*commands->cells));
}

enum quire_status quire_commands_init(struct quire_commands *commands,
                                      const struct quire_runtime_config *config)
{
	const struct quire_memory *memory = &config->hooks.memory;
	int64_t n = (int64_t)quire_power_of_two_from(config->commands_max);
	int64_t rows = config->rows_max, tables = config->tables_max;

	commands->mask = (uint64_t)n - 1;
	commands->rows_max = config->rows_max;
	commands->tables_max = config->tables_max;
	commands->speculative_max = config->speculative_max;
	commands->cells = quire_memory_zeroed(memory, n, sizeof(*commands->cells));
	commands->segments =
		quire_memory_zeroed(memory, n * rows, sizeof(*commands->segments));
	commands->combined =
		quire_memory_zeroed(memory, n * tables, sizeof(*commands->combined));
	commands->open = quire_memory_zeroed(memory, config->speculative_max,
	                                     sizeof(*commands->open));
	if (commands->cells == NULL || commands->segments == NULL ||
	    commands->combined == NULL || commands->open == NULL)
		goto undo_cells;
	for (int64_t i = 0; i < n; i++) {
		commands->cells[i].segments = &commands->segments[i * rows];
		commands->cells[i].combined = &commands->combined[i * tables];
	}
	if (pthread_mutex_init(&commands->lock, NULL) != 0)
		goto undo_cells;
	strcpy(commands->labels.names[0], QUIRE_LABEL_MAIN);
	atomic_store_explicit(&commands->labels.num, 1, memory_order_release);
	return QUIRE_OK;

undo_cells:
	free_cells(commands, memory);
	return QUIRE_NO_MEMORY;
}

void quire_commands_end(struct quire_commands *commands,
                        const struct quire_memory *memory)
{
	pthread_mutex_destroy(&commands->lock);
	free_cells(commands, memory);
}

int32_t quire_labels_find(const struct quire_labels *labels, const char *name)
{
	/* Pairs with the release in intern. */
	int32_t num = atomic_load_explicit(&labels->num, memory_order_acquire);

	if (name == NULL)
		return 0;
	for (int32_t i = 0; i < num; i++)
		if (strcmp(labels->names[i], name) == 0)
			return i;
	return -1;
}

/* Under the lock: the label's id, made when it is new. */
static enum quire_status intern(struct quire_labels *labels, const char *name,
                                int32_t *id_out, struct quire_refusal *refusal)
{
	int32_t num = atomic_load_explicit(&labels->num, memory_order_relaxed);

	*id_out = quire_labels_find(labels, name);
	if (*id_out >= 0)
		return QUIRE_OK;
	if (num == QUIRE_LABELS_MAX)
		return quire_refuse_bound(refusal, QUIRE_LIMIT,
		                          "labels that a runtime ever sees", -1, num + 1,
		                          QUIRE_LABELS_MAX);
	strcpy(labels->names[num], name); /* its length was checked */
	atomic_store_explicit(&labels->num, num + 1, memory_order_release);
	*id_out = num;
	return QUIRE_OK;
}

static enum quire_status check_label(const char *name, int64_t index,
                                     struct quire_refusal *refusal)
{
	size_t length = name == NULL ? 1 : strnlen(name, QUIRE_LABEL_BYTES);

	if (length == 0 || length == QUIRE_LABEL_BYTES)
		return quire_refuse_bound(refusal, QUIRE_INVALID,
		                          "label: bytes of a name", index,
		                          (int64_t)length, QUIRE_LABEL_BYTES - 1);
	return QUIRE_OK;
}

static enum quire_status check_names(const struct quire_step *step,
                                     struct quire_refusal *refusal)
{
	for (int32_t i = 0; i < step->num_segments; i++) {
		if (step->segments[i].request > QUIRE_REQUEST_MAX)
			return quire_refuse_bound(
				refusal, QUIRE_INVALID,
				"segments: a request is more than 2^63-1", i, 0, 0);
		QUIRE_TRY(check_label(step->segments[i].label, i, refusal));
	}
	for (int32_t i = 0; i < step->num_combined; i++) {
		const struct quire_combined *combined = &step->combined[i];

		if (combined->num_labels < 0 || combined->num_labels > QUIRE_LABELS_MAX ||
		    combined->name == NULL || combined->labels == NULL)
			return quire_refuse_bound(refusal, QUIRE_INVALID, "combined", i,
			                          combined->num_labels, QUIRE_LABELS_MAX);
		QUIRE_TRY(check_label(combined->name, i, refusal));
		for (int32_t k = 0; k < combined->num_labels; k++)
			QUIRE_TRY(check_label(combined->labels[k], i, refusal));
	}
	return QUIRE_OK;
}

static enum quire_status check_forks(const struct quire_fork *forks, int32_t n,
                                     const char *what, struct quire_refusal *refusal)
{
	if (n < 0 || n > QUIRE_FORKS_MAX || (n > 0 && forks == NULL))
		return quire_refuse_bound(refusal, QUIRE_INVALID, what, -1, n,
		                          n < 0 ? 0 : QUIRE_FORKS_MAX);
	for (int32_t i = 0; i < n; i++) {
		QUIRE_TRY(check_label(forks[i].source, i, refusal));
		QUIRE_TRY(check_label(forks[i].target, i, refusal));
	}
	return QUIRE_OK;
}

/* What cannot be taken into a cell at all.  Everything else is decided by the planner, at
 * the command's place in the order. */
static enum quire_status check_size(const struct quire_commands *commands,
                                    const struct quire_step *step,
                                    struct quire_refusal *refusal)
{
	if (step == NULL)
		return quire_refuse_what(refusal, QUIRE_INVALID, "step is NULL");
	if (step->num_segments < 0 ||
	    (step->num_segments > 0 && step->segments == NULL) ||
	    step->num_combined < 0 ||
	    (step->num_combined > 0 && step->combined == NULL) || step->num_work < 0 ||
	    (step->num_work > 0 && step->work == NULL))
		return quire_refuse_what(
			refusal, QUIRE_INVALID,
			"a list of the step is NULL or has a negative length");
	if (step->num_segments > commands->rows_max)
		return quire_refuse_bound(refusal, QUIRE_LIMIT,
		                          "rows_max: segments of a step", -1,
		                          step->num_segments, commands->rows_max);
	if (step->num_combined > commands->tables_max)
		return quire_refuse_bound(refusal, QUIRE_LIMIT,
		                          "tables_max: combined labels of a step", -1,
		                          step->num_combined, commands->tables_max);
	if (step->num_work > QUIRE_WORK_MAX)
		return quire_refuse_bound(refusal, QUIRE_LIMIT, "built-in work of a step",
		                          -1, step->num_work, QUIRE_WORK_MAX);
	QUIRE_TRY(check_forks(step->pre_forks, step->num_pre_forks, "pre_forks: pairs",
	                      refusal));
	QUIRE_TRY(check_forks(step->post_forks, step->num_post_forks, "post_forks: pairs",
	                      refusal));
	return check_names(step, refusal);
}

static enum quire_status check_request(uint64_t request, struct quire_refusal *refusal)
{
	if (request > QUIRE_REQUEST_MAX)
		return quire_refuse_what(refusal, QUIRE_INVALID,
		                         "request: more than 2^63-1");
	return QUIRE_OK;
}

static enum quire_status check_command(const struct quire_commands *commands,
                                       const struct quire_command *command,
                                       struct quire_refusal *refusal)
{
	switch (command->kind) {
	case QUIRE_COMMAND_SUBMIT:
		return check_size(commands, command->step, refusal);
	case QUIRE_COMMAND_OPEN:
	case QUIRE_COMMAND_CLOSE:
		return check_request(command->request, refusal);
	case QUIRE_COMMAND_RESET:
	case QUIRE_COMMAND_REWIND:
	case QUIRE_COMMAND_RELEASE_FRONT:
		QUIRE_TRY(check_request(command->request, refusal));
		return check_label(command->label, -1, refusal);
	case QUIRE_COMMAND_PROMOTE:
	case QUIRE_COMMAND_ABANDON:
		return QUIRE_OK;
	}
	return quire_refuse_what(refusal, QUIRE_INVALID, "command: no such kind");
}

static enum quire_status copy_forks(struct quire_labels *labels,
                                    struct quire_forks_in *to,
                                    const struct quire_fork *from, int32_t n,
                                    struct quire_refusal *refusal)
{
	int32_t id;

	for (int32_t i = 0; i < n; i++) {
		QUIRE_TRY(intern(labels, from[i].source, &id, refusal));
		to->source[i] = (uint8_t)id;
		QUIRE_TRY(intern(labels, from[i].target, &id, refusal));
		to->target[i] = (uint8_t)id;
	}
	to->num = n;
	return QUIRE_OK;
}

static enum quire_status copy_step(struct quire_commands *commands,
                                   struct quire_command_cell *cell,
                                   const struct quire_step *step,
                                   struct quire_refusal *refusal)
{
	struct quire_labels *labels = &commands->labels;

	for (int32_t i = 0; i < step->num_segments; i++) {
		const struct quire_segment *from = &step->segments[i];
		struct quire_segment_in *to = &cell->segments[i];

		QUIRE_TRY(intern(labels, from->label, &to->label, refusal));
		to->request = from->request;
		to->tag = from->tag;
		to->span = from->span;
		to->at = from->at;
	}
	for (int32_t i = 0; i < step->num_combined; i++) {
		const struct quire_combined *from = &step->combined[i];
		struct quire_combined_ids *to = &cell->combined[i];

		QUIRE_TRY(intern(labels, from->name, &to->name, refusal));
		to->num_labels = from->num_labels;
		for (int32_t k = 0; k < from->num_labels; k++)
			QUIRE_TRY(
				intern(labels, from->labels[k], &to->labels[k], refusal));
	}
	QUIRE_TRY(copy_forks(labels, &cell->pre_forks, step->pre_forks,
	                     step->num_pre_forks, refusal));
	QUIRE_TRY(copy_forks(labels, &cell->post_forks, step->post_forks,
	                     step->num_post_forks, refusal));
	if (step->num_work > 0)
		memcpy(cell->work, step->work,
		       (size_t)step->num_work * sizeof(*step->work));
	cell->num_segments = step->num_segments;
	cell->num_combined = step->num_combined;
	cell->num_work = step->num_work;
	cell->bucket_tokens = step->bucket_tokens;
	cell->bucket_rows = step->bucket_rows;
	cell->flags = step->flags;
	cell->run = step->run;
	cell->run_argument = step->run_argument;
	cell->wait_event = step->wait_event;
	cell->record_event = step->record_event;
	cell->done = step->done;
	cell->done_argument = step->done_argument;
	return QUIRE_OK;
}

static bool is_speculative(const struct quire_command *command)
{
	return command->kind == QUIRE_COMMAND_SUBMIT &&
	       (command->step->flags & QUIRE_STEP_SPECULATIVE) != 0;
}

/* When a command is given; 0 where nobody records it.  Under the lock. */
static int64_t stamp(const struct quire_commands *commands)
{
	return commands->clock == NULL ? 0 : quire_hooks_now(commands->clock);
}

/* A span that is over every limit is told otherwise, and does not go on. */
static int32_t count_continued(const struct quire_command_cell *cell,
                               const struct quire_command_cell *before)
{
	int32_t n = cell->num_segments < before->num_segments ? cell->num_segments
	                                                      : before->num_segments;

	for (int32_t i = 0; i < n; i++) {
		const struct quire_segment_in *segment = &cell->segments[i];
		const struct quire_segment_in *last = &before->segments[i];

		if (segment->request != last->request || segment->label != last->label ||
		    segment->span != last->span ||
		    (uint32_t)segment->span > QUIRE_TOKENS_MAX ||
		    segment->at != quire_segment_next_at(last))
			return i;
	}
	return n;
}

/* Of a recorded step.  The one before lies in its cell until a step takes its place. */
static void note_step(struct quire_commands *commands, struct quire_command_cell *cell)
{
	if (commands->clock == NULL)
		return;
	cell->num_continued = commands->newest_step == NULL
	                              ? 0
	                              : count_continued(cell, commands->newest_step);
	commands->newest_step = cell;
}

/* Under the lock: the names, then all that has no name. */
static enum quire_status fill_cell(struct quire_commands *commands,
                                   struct quire_command_cell *cell,
                                   const struct quire_command *command,
                                   struct quire_refusal *refusal)
{
	if (command->kind == QUIRE_COMMAND_SUBMIT) {
		if (commands->newest_step == cell)
			commands->newest_step = NULL;
		QUIRE_TRY(copy_step(commands, cell, command->step, refusal));
		note_step(commands, cell);
	} else if (command->kind != QUIRE_COMMAND_OPEN &&
	           command->kind != QUIRE_COMMAND_CLOSE) {
		QUIRE_TRY(
			intern(&commands->labels, command->label, &cell->label, refusal));
	}
	cell->kind = command->kind;
	cell->request = command->request;
	cell->keep_pages = command->keep_pages;
	cell->tokens = command->tokens;
	cell->given_ns = stamp(commands);
	cell->client = commands->clock == NULL ? 0 : quire_this_thread();
	return QUIRE_OK;
}

/* ------------------------------------------------ speculative steps, under the lock */

static struct quire_open_step *find_open(struct quire_commands *commands, uint64_t ticket)
{
	for (int32_t i = commands->num_open - 1; i >= 0; i--)
		if (commands->open[i].ticket == ticket)
			return &commands->open[i];
	return NULL;
}

/* A new speculative step: what does it rest on? */
static uint64_t open_step(struct quire_commands *commands, uint64_t position)
{
	uint64_t base = 0;

	for (int32_t i = commands->num_open - 1; i >= 0 && base == 0; i--)
		if (!commands->open[i].promoted)
			base = commands->open[i].ticket;
	if (base <= commands->last_other)
		base = 0;
	commands->open[commands->num_open++] =
		(struct quire_open_step){.ticket = position, .base = base};
	return base;
}

/* The step that has to be promoted or abandoned before a ticket can come to its end; 0:
 * that hangs on no fate. */
static uint64_t unresolved_below(struct quire_commands *commands, uint64_t ticket)
{
	struct quire_open_step *step = find_open(commands, ticket);

	while (step != NULL && step->promoted)
		step = find_open(commands, step->base);
	return step == NULL ? 0 : step->ticket;
}

/* The place of a ticket that ended without its fate may be another's by now. */
static void set_fate(struct quire_commands *commands, struct quire_tickets *tickets,
                     uint64_t ticket, enum quire_fate fate)
{
	struct quire_ticket_cell *cell = quire_ticket_cell(tickets, ticket);

	if (quire_ticket_of(tickets, ticket) != ticket)
		return;
	/* Relaxed: who sees the fate sees its time, or that of a later one. */
	atomic_store_explicit(&cell->fate_ns, stamp(commands), memory_order_relaxed);
	/* Pairs with the acquire in the planner. */
	atomic_store_explicit(&cell->fate, commands->position * 4 + fate,
	                      memory_order_release);
}

/* Who is promoted and rests on nobody any more cannot be abandoned any more. */
static void promote(struct quire_commands *commands, struct quire_tickets *tickets,
                    struct quire_open_step *step)
{
	int32_t kept = 0;

	step->promoted = true;
	set_fate(commands, tickets, step->ticket, QUIRE_FATE_PROMOTE);
	for (int32_t i = 0; i < commands->num_open; i++) { /* bases come first */
		struct quire_open_step open = commands->open[i];
		bool rests = false;

		for (int32_t k = 0; k < kept && open.base != 0; k++)
			rests |= commands->open[k].ticket == open.base;
		open.base = rests ? open.base : 0;
		if (!open.promoted || rests)
			commands->open[kept++] = open;
	}
	commands->num_open = kept;
}

/* Abandon the step at a place, or all whose fate is open, and whatever rests on them.
 * Bases come first in the list; fates are told newest first. */
static void abandon_from(struct quire_commands *commands, struct quire_tickets *tickets,
                         int32_t first, bool all)
{
	int32_t n = commands->num_open, kept = first;

	for (int32_t i = first; i < n; i++) {
		struct quire_open_step *open = &commands->open[i];

		open->ended = all ? !open->promoted : i == first;
		for (int32_t k = first; k < i && !open->ended; k++)
			open->ended = commands->open[k].ended &&
			              commands->open[k].ticket == open->base;
	}
	for (int32_t i = n - 1; i >= first; i--)
		if (commands->open[i].ended)
			set_fate(commands, tickets, commands->open[i].ticket,
			         QUIRE_FATE_ABANDON);
	for (int32_t i = first; i < n; i++)
		if (!commands->open[i].ended)
			commands->open[kept++] = commands->open[i];
	commands->num_open = kept;
}

/* The lane is full, or the cell of the next ticket (of @stuck, 0: it is free) is in use. 
 * Does that wait for a fate, be it in line behind what the planner holds?  Under the
 * lock. */
static enum quire_status refuse_full(struct quire_commands *commands, uint64_t stuck,
                                     bool in_line, struct quire_refusal *refusal)
{
	uint64_t ticket = unresolved_below(commands, stuck);

	if (ticket == 0 && in_line)
		ticket = unresolved_below(
			commands,
			atomic_load_explicit(&commands->held, memory_order_relaxed));
	if (ticket == 0)
		return quire_refuse_what(refusal, QUIRE_AGAIN,
		                         "the command queue is full");
	quire_refuse_what(refusal, QUIRE_HELD, "");
	refusal->ticket = ticket;
	return QUIRE_HELD;
}

/* Under the lock. */
static enum quire_status put_locked(struct quire_commands *commands,
                                    struct quire_tickets *tickets,
                                    const struct quire_command *command,
                                    uint64_t *ticket_out, struct quire_refusal *refusal)
{
	uint64_t tail = atomic_load_explicit(&commands->tail, memory_order_relaxed);
	/* Pairs with the release in quire_commands_pop. */
	uint64_t head = atomic_load_explicit(&commands->head, memory_order_acquire);
	struct quire_command_cell *cell = &commands->cells[tail & commands->mask];
	uint64_t position = commands->position + 1;

	if (tail - head > commands->mask)
		return refuse_full(commands, 0, true, refusal);
	if (!quire_ticket_is_free(tickets, position))
		return refuse_full(commands, quire_ticket_of(tickets, position),
		                   quire_ticket_is_queued(tickets, position), refusal);
	if (is_speculative(command) && commands->num_open == commands->speculative_max)
		return quire_refuse_bound(
			refusal, QUIRE_LIMIT, "speculative_max: steps whose fate is open",
			-1, (int64_t)commands->num_open + 1, commands->speculative_max);
	QUIRE_TRY(fill_cell(commands, cell, command, refusal));
	cell->ticket = commands->position = position;
	cell->base = 0;
	if (is_speculative(command))
		cell->base = open_step(commands, position);
	else
		commands->last_other = position;
	if (ticket_out != NULL)
		*ticket_out = position;
	quire_ticket_draw(tickets, position);
	/* Pairs with the acquire in quire_commands_front. */
	atomic_store_explicit(&commands->tail, tail + 1, memory_order_release);
	return QUIRE_OK;
}

/* Promote or abandon: decided here, at its position.  Under the lock. */
static enum quire_status decide_fate(struct quire_commands *commands,
                                     struct quire_tickets *tickets,
                                     const struct quire_command *command,
                                     uint64_t *ticket_out, struct quire_refusal *refusal)
{
	struct quire_open_step *step = find_open(commands, command->target);

	commands->position++;
	if (ticket_out != NULL)
		*ticket_out = commands->position;
	if (step == NULL || step->promoted) {
		quire_refuse_what(refusal, QUIRE_INVALID,
		                  "ticket: no speculative step whose fate is open");
		refusal->ticket = command->target;
		return QUIRE_INVALID;
	}
	if (command->kind == QUIRE_COMMAND_PROMOTE)
		promote(commands, tickets, step);
	else
		abandon_from(commands, tickets, (int32_t)(step - commands->open), false);
	return QUIRE_OK;
}

enum quire_status quire_commands_put(struct quire_commands *commands,
                                     struct quire_tickets *tickets,
                                     const struct quire_command *command,
                                     uint64_t *ticket_out, struct quire_refusal *refusal)
{
	enum quire_status status;

	QUIRE_TRY(check_command(commands, command, refusal));
	pthread_mutex_lock(&commands->lock);
	if (atomic_load_explicit(&commands->shutdown, memory_order_relaxed) !=
	    QUIRE_SHUTDOWN_NONE)
		status = quire_refuse_what(refusal, QUIRE_CLOSED, "");
	else if (command->kind == QUIRE_COMMAND_PROMOTE ||
	         command->kind == QUIRE_COMMAND_ABANDON)
		status = decide_fate(commands, tickets, command, ticket_out, refusal);
	else
		status = put_locked(commands, tickets, command, ticket_out, refusal);
	pthread_mutex_unlock(&commands->lock);
	return status;
}

enum quire_status quire_commands_close(struct quire_commands *commands,
                                       struct quire_tickets *tickets, bool cancel)
{
	enum quire_status status = QUIRE_CLOSED;

	pthread_mutex_lock(&commands->lock);
	if (atomic_load_explicit(&commands->shutdown, memory_order_relaxed) ==
	    QUIRE_SHUTDOWN_NONE) {
		commands->position++;
		abandon_from(commands, tickets, 0, true);
		/* Pairs with the acquire in the planner. */
		atomic_store_explicit(&commands->shutdown,
		                      cancel ? QUIRE_SHUTDOWN_CANCEL
		                             : QUIRE_SHUTDOWN_DRAIN,
		                      memory_order_release);
		status = QUIRE_OK;
	}
	pthread_mutex_unlock(&commands->lock);
	return status;
}

uint64_t quire_commands_newest(struct quire_commands *commands, uint64_t *open_out)
{
	uint64_t position;

	pthread_mutex_lock(&commands->lock);
	position = commands->position;
	*open_out = 0;
	for (int32_t i = 0; i < commands->num_open && *open_out == 0; i++)
		if (!commands->open[i].promoted)
			*open_out = commands->open[i].ticket;
	pthread_mutex_unlock(&commands->lock);
	return position;
}

struct quire_command_cell *quire_commands_front(struct quire_commands *commands)
{
	uint64_t head = atomic_load_explicit(&commands->head, memory_order_relaxed);

	/* Pairs with the release in put_locked. */
	if (head == atomic_load_explicit(&commands->tail, memory_order_acquire))
		return NULL;
	return &commands->cells[head & commands->mask];
}

void quire_commands_pop(struct quire_commands *commands)
{
	uint64_t head = atomic_load_explicit(&commands->head, memory_order_relaxed);

	/* Pairs with the acquire in put_locked. */
	atomic_store_explicit(&commands->head, head + 1, memory_order_release);
}
