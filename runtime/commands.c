/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/commands_impl.h"

#include "runtime/refuse_impl.h"

#include <stdlib.h>
#include <string.h>

static uint64_t power_of_two_from(int32_t n)
{
	uint64_t power = 1;

	while (power < (uint64_t)n)
		power *= 2;
	return power;
}

enum quire_status quire_commands_init(struct quire_commands *commands,
                                      int32_t commands_max, int32_t rows_max,
                                      int32_t tables_max)
{
	uint64_t n = power_of_two_from(commands_max);

	commands->mask = n - 1;
	commands->rows_max = rows_max;
	commands->tables_max = tables_max;
	commands->cells = calloc(n, sizeof(*commands->cells));
	commands->segments = calloc(n * (uint64_t)rows_max, sizeof(*commands->segments));
	commands->combined =
		calloc(n * (uint64_t)tables_max, sizeof(*commands->combined));
	if (commands->cells == NULL || commands->segments == NULL ||
	    commands->combined == NULL)
		goto undo_cells;
	for (uint64_t i = 0; i < n; i++) {
		commands->cells[i].segments = &commands->segments[i * (uint64_t)rows_max];
		commands->cells[i].combined =
			&commands->combined[i * (uint64_t)tables_max];
	}
	if (pthread_mutex_init(&commands->lock, NULL) != 0)
		goto undo_cells;
	strcpy(commands->labels.names[0], QUIRE_LABEL_MAIN);
	atomic_store_explicit(&commands->labels.num, 1, memory_order_release);
	return QUIRE_OK;

undo_cells:
	free(commands->combined);
	free(commands->segments);
	free(commands->cells);
	return QUIRE_NO_MEMORY;
}

void quire_commands_end(struct quire_commands *commands)
{
	pthread_mutex_destroy(&commands->lock);
	free(commands->combined);
	free(commands->segments);
	free(commands->cells);
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
	return check_names(step, refusal);
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
	case QUIRE_COMMAND_RESET:
		if (command->request > QUIRE_REQUEST_MAX)
			return quire_refuse_what(refusal, QUIRE_INVALID,
			                         "request: more than 2^63-1");
		if (command->kind == QUIRE_COMMAND_RESET)
			return check_label(command->label, -1, refusal);
		return QUIRE_OK;
	}
	return quire_refuse_what(refusal, QUIRE_INVALID, "command: no such kind");
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
	return QUIRE_OK;
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

	if (atomic_load_explicit(&commands->shutdown, memory_order_relaxed) !=
	    QUIRE_SHUTDOWN_NONE)
		return quire_refuse_what(refusal, QUIRE_CLOSED, "");
	if (tail - head > commands->mask ||
	    !quire_ticket_is_free(tickets, commands->position + 1))
		return quire_refuse_what(refusal, QUIRE_AGAIN,
		                         "the command queue is full");
	if (command->kind == QUIRE_COMMAND_SUBMIT)
		QUIRE_TRY(copy_step(commands, cell, command->step, refusal));
	else if (command->kind == QUIRE_COMMAND_RESET)
		QUIRE_TRY(
			intern(&commands->labels, command->label, &cell->label, refusal));
	cell->kind = command->kind;
	cell->request = command->request;
	cell->keep_pages = command->keep_pages;
	cell->ticket = ++commands->position;
	if (ticket_out != NULL)
		*ticket_out = cell->ticket;
	quire_ticket_draw(tickets, cell->ticket);
	/* Pairs with the acquire in quire_commands_front. */
	atomic_store_explicit(&commands->tail, tail + 1, memory_order_release);
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
	status = put_locked(commands, tickets, command, ticket_out, refusal);
	pthread_mutex_unlock(&commands->lock);
	return status;
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
