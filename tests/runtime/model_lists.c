/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "model_lists.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const uint64_t list_ids[LIST_IDS + 1] = {7, 0, 1, 1000000007, QUIRE_REQUEST_MAX, 99};

_Static_assert(LIST_IDS <= MODEL_REQUESTS_MAX, "the model has a place for every request");

static int32_t between(struct dice *dice, int32_t least, int32_t most)
{
	return least + dice_below(dice, most - least + 1);
}

static void make_shape(struct list *list, struct dice *dice)
{
	struct quire_runtime_config *config = &list->config;

	list->num_pages = between(dice, 4, MODEL_PAGES_MAX);
	list->page_size = between(dice, 1, 4);
	config->sink = dice_percent(dice, 60);
	config->digests = dice_percent(dice, 50);
	config->depth = between(dice, 1, 5);
	config->commands_max = between(dice, 1, 8);
	config->tickets_max = dice_percent(dice, 15) ? between(dice, 1, 9) : 4096;
	config->requests_max = between(dice, 2, LIST_IDS);
	config->request_labels_max = between(dice, 2, MODEL_LABELS);
	config->rows_max = between(dice, 3, MODEL_ROWS_MAX);
	config->tokens_max = between(dice, 12, 64);
	config->tables_max = between(dice, 1, 4);
	config->seq_tokens_max = dice_percent(dice, 85) ? 0 : between(dice, 6, 40);
	config->table_pages_max = dice_percent(dice, 85) ? 0 : between(dice, 3, 10);
	config->block_width =
		dice_percent(dice, 50) ? 0 : between(dice, 6, MODEL_PAGES_MAX);
	config->user_bytes = dice_percent(dice, 60) ? 8 * between(dice, 1, 700) : 0;
}

/* ------------------------------------------------------------------ a step */

static const char *random_label(struct dice *dice)
{
	int32_t label = dice_percent(dice, 45) ? 0 : dice_below(dice, MODEL_LABELS);

	return label == 0 && dice_percent(dice, 50) ? NULL : model_labels[label];
}

static uint64_t random_id(struct dice *dice, struct model *m)
{
	uint64_t id = list_ids[dice_below(dice, LIST_IDS)];

	for (int32_t tries = 0; tries < 8 && model_find_request(m, id) == NULL; tries++)
		id = list_ids[dice_below(dice, LIST_IDS)];
	return dice_percent(dice, 1) ? list_ids[LIST_IDS] : id;
}

static int32_t random_span(struct dice *dice, int32_t page_size)
{
	int32_t kind = dice_below(dice, 100);

	if (kind < 10)
		return 0;
	if (kind < 50)
		return 1;
	if (kind < 85)
		return between(dice, 1, 2 * page_size);
	if (kind < 98)
		return between(dice, 1, 6 * page_size);
	return kind == 98 ? INT32_MAX : between(dice, 30, 100);
}

static int32_t length_of(struct model *m, const struct quire_segment *segment)
{
	struct model_request *request = model_find_request(m, segment->request);
	struct model_stream *stream =
		request == NULL ? NULL
				: model_find_stream(request, model_label(segment->label));

	return stream == NULL ? 0 : (int32_t)stream->length;
}

static bool named_before(const struct list_command *c, int32_t row)
{
	for (int32_t i = 0; i < row; i++)
		if (c->segments[i].request == c->segments[row].request &&
		    model_label(c->segments[i].label) ==
		            model_label(c->segments[row].label))
			return true;
	return false;
}

static void make_segments(struct list_command *c, struct dice *dice, struct model *m)
{
	int32_t wanted =
		dice_percent(dice, 40) ? 1 : between(dice, 1, m->config.rows_max);
	int32_t n = 0;

	for (int32_t i = 0; i < wanted; i++) {
		struct quire_segment *segment = &c->segments[n];

		segment->request = random_id(dice, m);
		segment->label = random_label(dice);
		segment->span = random_span(dice, m->page_size);
		segment->at =
			dice_percent(dice, 15) ? QUIRE_AT_ANY : length_of(m, segment);
		segment->tag = dice_roll(dice) << 20;
		if (!named_before(c, n))
			n++;
	}
	if (dice_percent(dice, 5))
		c->segments[dice_below(dice, n)].at = between(dice, 0, 9);
	if (dice_percent(dice, 1))
		c->segments[dice_below(dice, n)].at = INT32_MAX;
	c->step.segments = c->segments;
	c->step.num_segments = n;
}

/* Each label of the step goes into the first list, the second or neither. */
static void make_combined(struct list_command *c, struct dice *dice)
{
	struct quire_combined *combined = c->combined;
	int32_t place_of[MODEL_LABELS];

	for (int32_t label = 0; label < MODEL_LABELS; label++)
		place_of[label] = dice_below(dice, 3);
	for (int32_t k = 0; k < LIST_COMBINED_MAX; k++) {
		combined[k].labels = c->members[k];
		combined[k].num_labels = 0;
		combined[k].name = model_labels[MODEL_LABELS + k];
	}
	for (int32_t i = c->step.num_segments - 1; i >= 0; i--) {
		int32_t label = model_label(c->segments[i].label), k = place_of[label];

		if (k >= LIST_COMBINED_MAX)
			continue;
		place_of[label] = LIST_COMBINED_MAX;
		c->members[k][combined[k].num_labels++] = model_labels[label];
		if (dice_percent(dice, 10))
			combined[k].name = model_labels[label];
	}
	c->step.combined = combined[0].num_labels > 0 ? combined : combined + 1;
	c->step.num_combined =
		(combined[0].num_labels > 0) + (combined[1].num_labels > 0);
}

/* The smallest bucket that every table of the step fits in. */
static void least_bucket(const struct quire_step *step, int32_t *rows_out,
                         int32_t *tokens_out)
{
	struct model_table tables[MODEL_TABLES_MAX];
	int32_t n = model_tables(step, tables);
	int64_t rows = 1, tokens = 1;

	for (int32_t t = 0; t < n; t++) {
		int64_t sum = 0;

		for (int32_t i = 0; i < tables[t].num_rows; i++)
			sum += step->segments[tables[t].rows[i]].span;
		tokens = sum > tokens ? sum : tokens;
		rows = tables[t].num_rows > rows ? tables[t].num_rows : rows;
	}
	*rows_out = (int32_t)rows;
	*tokens_out = tokens > 1000 ? 1000 : (int32_t)tokens;
}

static void make_bucket(struct list_command *c, struct dice *dice)
{
	least_bucket(&c->step, &c->step.bucket_rows, &c->step.bucket_tokens);
	c->step.bucket_rows += dice_below(dice, 3);
	c->step.bucket_tokens += dice_below(dice, 5);
}

enum fault {
	FAULT_NO_SEGMENTS,
	FAULT_SPAN,
	FAULT_AT,
	FAULT_TWICE,
	FAULT_ROWS,
	FAULT_FLAGS,
	FAULT_WORK,
	FAULT_MEMBER,
	FAULT_EMPTY,
	FAULT_MEMBER_TWICE,
	FAULT_BUCKET_ROWS,
	FAULT_BUCKET_TOKENS,
	FAULT_BUCKET_NEGATIVE,
	FAULTS,
};

static void combine_one(struct list_command *c, const char *first, const char *second)
{
	c->members[0][0] = first;
	c->members[0][1] = second;
	c->combined[0].name = "both";
	c->combined[0].labels = c->members[0];
	c->combined[0].num_labels = second == NULL ? 1 : 2;
	c->step.combined = c->combined;
	c->step.num_combined = 1;
}

static void plant_in_segments(struct list_command *c, enum fault fault, struct dice *dice,
                              const struct model *m)
{
	int32_t n = c->step.num_segments, at = dice_below(dice, n);

	switch (fault) {
	case FAULT_NO_SEGMENTS:
		c->step.num_segments = 0;
		break;
	case FAULT_SPAN:
		c->segments[at].span = -between(dice, 1, 3);
		break;
	case FAULT_AT:
		c->segments[at].at = -between(dice, 2, 5);
		break;
	case FAULT_TWICE:
		if (n == m->config.rows_max)
			n--;
		c->segments[n] = c->segments[at % n];
		c->step.num_segments = n + 1;
		break;
	case FAULT_ROWS:
		c->step.num_segments = m->config.rows_max + 1;
		break;
	default:
		break;
	}
}

/* One fault of form; the step is a plain one. */
static void plant_fault(struct list_command *c, enum fault fault, struct dice *dice,
                        const struct model *m)
{
	struct quire_step *step = &c->step;

	least_bucket(step, &step->bucket_rows, &step->bucket_tokens);
	if (fault < FAULT_BUCKET_ROWS)
		step->bucket_rows = step->bucket_tokens = 0;
	switch (fault) {
	case FAULT_FLAGS:
		step->flags |= 1u << between(dice, 2, 31);
		break;
	case FAULT_WORK:
		c->work = (struct quire_work){.kind = QUIRE_WORK_WRITE};
		step->work = &c->work;
		step->num_work = 1;
		break;
	case FAULT_MEMBER: /* a label that no segment has */
		combine_one(c, "pair", NULL);
		break;
	case FAULT_EMPTY:
		combine_one(c, "main", NULL);
		c->combined[0].num_labels = 0;
		break;
	case FAULT_MEMBER_TWICE:
		combine_one(c,
		            c->segments[0].label == NULL ? "main" : c->segments[0].label,
		            NULL);
		c->members[0][1] = c->members[0][0];
		c->combined[0].num_labels = 2;
		break;
	case FAULT_BUCKET_ROWS:
		step->bucket_rows--;
		break;
	case FAULT_BUCKET_TOKENS:
		step->bucket_tokens--;
		break;
	case FAULT_BUCKET_NEGATIVE:
		step->bucket_rows = -1;
		break;
	default:
		plant_in_segments(c, fault, dice, m);
	}
}

static bool spans_are_small(const struct quire_step *step)
{
	int64_t sum = 0;

	for (int32_t i = 0; i < step->num_segments; i++)
		sum += step->segments[i].span;
	return sum < 1000;
}

static void make_step(struct list_command *c, struct dice *dice, struct model *m,
                      bool no_wait)
{
	make_segments(c, dice, m);
	c->command.step = &c->step;
	if (dice_percent(dice, 12))
		c->step.flags |= QUIRE_STEP_NO_COMMIT;
	if (no_wait && dice_percent(dice, 40))
		c->step.flags |= QUIRE_STEP_NO_WAIT;
	if (dice_percent(dice, 6) && spans_are_small(&c->step)) {
		plant_fault(c, (enum fault)dice_below(dice, FAULTS), dice, m);
		return;
	}
	if (dice_percent(dice, 25))
		make_combined(c, dice);
	if (dice_percent(dice, m->config.sink ? 25 : 1) && spans_are_small(&c->step))
		make_bucket(c, dice);
}

static void make_command(struct list_command *c, struct dice *dice, struct model *m,
                         bool no_wait)
{
	int32_t kind = dice_below(dice, 100);

	if (m->counts.requests_open == 0 && dice_percent(dice, 80))
		kind = 0;
	if (kind < 9) {
		c->command.kind = QUIRE_COMMAND_OPEN;
		c->command.request = list_ids[dice_below(dice, LIST_IDS)];
	} else if (kind < 15) {
		c->command.kind = QUIRE_COMMAND_CLOSE;
		c->command.request = random_id(dice, m);
	} else if (kind < 30) {
		c->command.kind = QUIRE_COMMAND_RESET;
		c->command.request = random_id(dice, m);
		c->command.label = random_label(dice);
		c->command.keep_pages = dice_percent(dice, 40);
	} else {
		c->command.kind = QUIRE_COMMAND_SUBMIT;
		make_step(c, dice, m, no_wait);
	}
}

void list_make(struct list *list, uint64_t seed, int32_t num_commands)
{
	static struct model_answer answer;
	struct model m;
	struct dice dice;
	bool no_wait;

	memset(list, 0, sizeof(*list));
	list->seed = seed;
	list->num_commands = num_commands;
	list->commands = calloc((size_t)num_commands, sizeof(*list->commands));
	REQUIRE(list->commands != NULL);
	dice_seed(&dice, seed);
	quire_runtime_config_init(&list->config, NULL);
	make_shape(list, &dice);
	no_wait = list->config.tickets_max > num_commands && dice_percent(&dice, 50);
	model_init(&m, &list->config, list->num_pages, list->page_size);
	for (int32_t i = 0; i < num_commands; i++) {
		make_command(&list->commands[i], &dice, &m, no_wait);
		model_apply(&m, &list->commands[i].command, false, &answer);
	}
}

void list_free(struct list *list)
{
	free(list->commands);
	list->commands = NULL;
}

/* ------------------------------------------------------------------ as text */

static void print_step(const struct quire_step *step)
{
	printf("submit");
	for (int32_t i = 0; i < step->num_segments; i++)
		printf(" (%llu %s +%d at %d)",
		       (unsigned long long)step->segments[i].request,
		       model_labels[model_label(step->segments[i].label)],
		       step->segments[i].span, step->segments[i].at);
	for (int32_t c = 0; c < step->num_combined; c++) {
		printf(" %s = {", step->combined[c].name);
		for (int32_t i = 0; i < step->combined[c].num_labels; i++)
			printf(" %s", step->combined[c].labels[i]);
		printf(" }");
	}
	if (step->bucket_rows != 0 || step->bucket_tokens != 0)
		printf(" bucket %dx%d", step->bucket_rows, step->bucket_tokens);
	printf("%s%s\n", (step->flags & QUIRE_STEP_NO_COMMIT) != 0 ? " no-commit" : "",
	       (step->flags & QUIRE_STEP_NO_WAIT) != 0 ? " no-wait" : "");
}

void list_print(const struct list *list)
{
	const struct quire_runtime_config *c = &list->config;

	printf("seed %llu: %d pages of %d%s, depth %d, queue %d, tickets %d, requests "
	       "%d, "
	       "labels %d, rows %d, tokens %d, tables %d, seq %d, table pages %lld, "
	       "block %lld\n",
	       (unsigned long long)list->seed, list->num_pages, list->page_size,
	       c->sink ? ", sink" : "", c->depth, c->commands_max, c->tickets_max,
	       c->requests_max, c->request_labels_max, c->rows_max, c->tokens_max,
	       c->tables_max, c->seq_tokens_max, (long long)c->table_pages_max,
	       (long long)c->block_width);
	for (int32_t i = 0; i < list->num_commands; i++) {
		const struct quire_command *command = &list->commands[i].command;

		if (list->commands[i].dropped)
			continue;
		printf("  %3d  ", i);
		if (command->kind == QUIRE_COMMAND_SUBMIT)
			print_step(command->step);
		else if (command->kind == QUIRE_COMMAND_RESET)
			printf("reset %llu %s%s\n", (unsigned long long)command->request,
			       model_labels[model_label(command->label)],
			       command->keep_pages ? " keep" : "");
		else
			printf("%s %llu\n",
			       command->kind == QUIRE_COMMAND_OPEN ? "open" : "close",
			       (unsigned long long)command->request);
	}
	fflush(stdout);
}
