/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "model_lists.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const uint64_t list_ids[LIST_IDS + 1] = {7, 0, 1, 1000000007, QUIRE_REQUEST_MAX, 99};

_Static_assert(LIST_IDS <= MODEL_REQUESTS_MAX, "the model has a place for every request");

static void make_shape(struct list *list, struct dice *dice, uint32_t features)
{
	struct quire_runtime_config *config = &list->config;

	list->num_pages = list_between(dice, 4, MODEL_PAGES_MAX);
	list->page_size = list_between(dice, 1, MODEL_PAGE_SIZE_MAX);
	config->sink = dice_percent(dice, 60);
	config->digests = dice_percent(dice, 50);
	config->depth = list_between(dice, 1, 5);
	config->commands_max = list_between(dice, 1, 8);
	config->tickets_max = dice_percent(dice, 15) ? list_between(dice, 1, 9) : 4096;
	config->requests_max = list_between(dice, 2, LIST_IDS);
	config->request_labels_max = list_between(dice, 2, MODEL_LABELS);
	config->rows_max = list_between(dice, 3, MODEL_ROWS_MAX);
	config->tokens_max = list_between(dice, 12, 96);
	config->tables_max = dice_percent(dice, 75) ? 4 : list_between(dice, 1, 3);
	config->speculative_max = dice_percent(dice, 30) ? list_between(dice, 1, 3) : 64;
	config->seq_tokens_max = dice_percent(dice, 60)   ? 0
	                         : dice_percent(dice, 60) ? MODEL_SEQ_MAX
	                                                  : list_between(dice, 6, 40);
	config->table_pages_max = dice_percent(dice, 85) ? 0 : list_between(dice, 3, 10);
	config->block_width =
		dice_percent(dice, 50) ? 0 : list_between(dice, 6, MODEL_PAGES_MAX);
	config->kv_indices = config->block_width == 0 || dice_percent(dice, 50);
	config->user_bytes = dice_percent(dice, 60) ? 8 * list_between(dice, 1, 700) : 0;
	if ((features & LIST_WIDE) == 0)
		return;
	config->requests_max = LIST_IDS;
	config->request_labels_max = MODEL_LABELS;
	config->rows_max = MODEL_ROWS_MAX;
	config->tokens_max = MODEL_ROWS_MAX * MODEL_SEQ_MAX;
	config->tables_max = MODEL_TABLES_MAX;
	config->table_pages_max = MODEL_ROWS_MAX * MODEL_SEQ_MAX;
	config->block_width = 0;
	config->kv_indices = true;
	config->speculative_max = ORDER_COMMANDS_MAX;
	config->tickets_max = 4096;
}

/* ------------------------------------------------------------------ a list */

/* A list while it is written, and the model that decides along with it. */
struct writer {
	struct list *list;
	struct dice dice;
	uint32_t features;
	bool no_wait;
	int32_t number; /* the command in hand */
	int32_t share;  /* the stage of list_share that comes next, 0: none */
	uint64_t share_id;
	struct model_order order;
};

static uint64_t ticket_of(int32_t number)
{
	return (uint64_t)number + 1;
}

/* Any command whose fate might be spoken of: mostly one that is open. */
static int32_t random_target(struct writer *w)
{
	int32_t first = dice_below(&w->dice, w->number + 1);

	if (dice_percent(&w->dice, 8))
		return first;
	for (int32_t i = 0; i <= w->number; i++) {
		int32_t number = (first + i) % (w->number + 1);

		if (order_is_open(&w->order, ticket_of(number)))
			return number;
	}
	return first;
}

static void make_resolve(struct writer *w, struct list_command *c)
{
	c->command.kind = dice_percent(&w->dice, 70) ? QUIRE_COMMAND_PROMOTE
	                                             : QUIRE_COMMAND_ABANDON;
	c->target = random_target(w);
}

/* As many tokens as there are, or some more. */
static void make_window(struct writer *w, struct list_command *c, bool front)
{
	struct model_request *request;
	struct model_stream *stream = NULL;
	int32_t length = 0;

	c->command.kind = front ? QUIRE_COMMAND_RELEASE_FRONT : QUIRE_COMMAND_REWIND;
	c->command.request = list_id(&w->dice, &w->order.model);
	c->command.label = list_label(&w->dice);
	request = model_find_request(&w->order.model, c->command.request);
	if (request != NULL)
		stream = model_find_stream(request, model_label(c->command.label));
	if (stream != NULL)
		length = (int32_t)stream->length;
	c->command.tokens = list_between(&w->dice, 0, length);
	if (dice_percent(&w->dice, 60) && length > w->list->page_size)
		c->command.tokens = list_between(&w->dice, 1, w->list->page_size);
	if (dice_percent(&w->dice, 5))
		c->command.tokens = length + list_between(&w->dice, 1, 3);
	if (stream != NULL && dice_percent(&w->dice, 2))
		c->command.tokens = -list_between(&w->dice, 1, 3);
}

static void make_other(struct writer *w, struct list_command *c)
{
	struct dice *dice = &w->dice;
	struct model *m = &w->order.model;
	int32_t kind = dice_below(dice, 100);

	if (m->counts.requests_open < 2 && dice_percent(dice, 50))
		kind = 0;
	if (kind < 7) {
		c->command.kind = QUIRE_COMMAND_OPEN;
		c->command.request = list_ids[dice_below(dice, LIST_IDS)];
	} else if (kind < 11) {
		c->command.kind = QUIRE_COMMAND_CLOSE;
		c->command.request = list_id(dice, m);
	} else if (kind < 19) {
		c->command.kind = QUIRE_COMMAND_RESET;
		c->command.request = list_id(dice, m);
		c->command.label = list_label(dice);
		c->command.keep_pages = dice_percent(dice, 40);
	} else if (kind < 36 && (w->features & LIST_WINDOWS) != 0) {
		make_window(w, c, kind >= 30);
	} else {
		list_step(c, dice, m, w->no_wait, w->features);
	}
}

/* Was the step that the next speculative one would rest on refused? */
static bool rests_on_refused(const struct writer *w)
{
	int32_t base = order_next_base(&w->order);

	return base >= 0 && w->order.entries[base].refusal.status != QUIRE_OK;
}

/* The next stage of list_share, or its first one now and then. */
static bool make_share(struct writer *w, struct list_command *c)
{
	const uint32_t features = LIST_FORKS | LIST_WINDOWS;

	if (w->share == 0 && (w->features & features) == features &&
	    dice_percent(&w->dice, 6)) {
		w->share = LIST_SHARE_FORK;
		w->share_id = list_id(&w->dice, &w->order.model);
	}
	if (w->share == 0)
		return false;
	list_share(c, &w->dice, &w->order.model, w->share--, w->share_id);
	return true;
}

/* Chains of speculative steps, fates in any order, and what waits behind them. */
static void make_command(struct writer *w, struct list_command *c)
{
	bool open = order_num_open(&w->order) > 0;
	bool speculative = (w->features & LIST_SPECULATIVE) != 0 &&
	                   w->order.model.counts.requests_open > 0;
	int32_t resolve = rests_on_refused(w) ? 60 : open ? 25 : 1;

	if (speculative && dice_percent(&w->dice, resolve)) {
		make_resolve(w, c);
		return;
	}
	speculative = speculative && dice_percent(&w->dice, open ? 70 : 15);
	if (!make_share(w, c)) {
		if (speculative)
			list_step(c, &w->dice, &w->order.model, w->no_wait, w->features);
		else
			make_other(w, c);
	}
	if (speculative && c->command.kind == QUIRE_COMMAND_SUBMIT)
		c->step.flags |= QUIRE_STEP_SPECULATIVE;
}

/* The model goes along, as far as it can. */
static void go_along(struct writer *w, const struct list_command *c)
{
	static struct model_answer answer;
	static struct model copy;
	const struct quire_command *command = &c->command;

	if (command->kind == QUIRE_COMMAND_PROMOTE ||
	    command->kind == QUIRE_COMMAND_ABANDON) {
		order_resolve(&w->order, command->kind, ticket_of(c->target));
	} else {
		copy = w->order.model;
		model_apply(&copy, command, ticket_of(w->number), false, &answer);
		if (!answer.form)
			order_draw(&w->order, command, ticket_of(w->number));
	}
	while (w->order.followed < w->order.drawn && !order_is_parked(&w->order))
		order_follow(&w->order, false);
	order_forget(&w->order, w->order.effects);
}

void list_make(struct list *list, uint64_t seed, int32_t num_commands, uint32_t features)
{
	static struct writer w;

	memset(list, 0, sizeof(*list));
	list->seed = seed;
	list->num_commands = num_commands;
	list->commands = calloc((size_t)num_commands, sizeof(*list->commands));
	REQUIRE(list->commands != NULL);
	w.list = list;
	w.features = features;
	w.share = 0;
	dice_seed(&w.dice, seed);
	quire_runtime_config_init(&list->config, NULL);
	make_shape(list, &w.dice, features);
	/* Outcomes that may be forgotten cannot tell of AGAIN. */
	w.no_wait = (features & LIST_WIDE) == 0 &&
	            list->config.tickets_max > 2 * num_commands &&
	            dice_percent(&w.dice, 50);
	order_init(&w.order, &list->config, list->num_pages, list->page_size);
	for (w.number = 0; w.number < num_commands; w.number++) {
		struct list_command *c = &list->commands[w.number];

		/* Most lists end with every fate known. */
		if (num_commands - w.number <= order_num_open(&w.order) &&
		    dice_percent(&w.dice, 90))
			make_resolve(&w, c);
		else
			make_command(&w, c);
		go_along(&w, c);
	}
	order_end(&w.order);
}

void list_free(struct list *list)
{
	free(list->commands);
	list->commands = NULL;
}

/* ------------------------------------------------------------------ as text */

static void print_forks(const char *when, const struct quire_fork *forks, int32_t n)
{
	for (int32_t i = 0; i < n; i++)
		printf(" %s %s->%s", when, model_labels[model_label(forks[i].source)],
		       model_labels[model_label(forks[i].target)]);
}

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
	print_forks("pre", step->pre_forks, step->num_pre_forks);
	print_forks("post", step->post_forks, step->num_post_forks);
	if (step->bucket_rows != 0 || step->bucket_tokens != 0)
		printf(" bucket %dx%d", step->bucket_rows, step->bucket_tokens);
	printf("%s%s%s%s\n",
	       (step->flags & QUIRE_STEP_NO_COMMIT) != 0 ? " no-commit" : "",
	       (step->flags & QUIRE_STEP_NO_WAIT) != 0 ? " no-wait" : "",
	       (step->flags & QUIRE_STEP_COPY_FORKS) != 0 ? " copy" : "",
	       (step->flags & QUIRE_STEP_SPECULATIVE) != 0 ? " speculative" : "");
}

static void print_command(const struct list_command *c)
{
	static const char *const names[] = {
		[QUIRE_COMMAND_OPEN] = "open",
		[QUIRE_COMMAND_CLOSE] = "close",
		[QUIRE_COMMAND_RESET] = "reset",
		[QUIRE_COMMAND_REWIND] = "rewind",
		[QUIRE_COMMAND_PROMOTE] = "promote",
		[QUIRE_COMMAND_ABANDON] = "abandon",
		[QUIRE_COMMAND_RELEASE_FRONT] = "release_front",
	};
	const struct quire_command *command = &c->command;
	const char *label = model_labels[model_label(command->label)];

	switch (command->kind) {
	case QUIRE_COMMAND_SUBMIT:
		print_step(command->step);
		break;
	case QUIRE_COMMAND_OPEN:
	case QUIRE_COMMAND_CLOSE:
		printf("%s %llu\n", names[command->kind],
		       (unsigned long long)command->request);
		break;
	case QUIRE_COMMAND_RESET:
		printf("reset %llu %s%s\n", (unsigned long long)command->request, label,
		       command->keep_pages ? " keep" : "");
		break;
	case QUIRE_COMMAND_REWIND:
	case QUIRE_COMMAND_RELEASE_FRONT:
		printf("%s %llu %s %d\n", names[command->kind],
		       (unsigned long long)command->request, label, command->tokens);
		break;
	case QUIRE_COMMAND_PROMOTE:
	case QUIRE_COMMAND_ABANDON:
		printf("%s %d\n", names[command->kind], c->target);
		break;
	}
}

void list_print(const struct list *list)
{
	const struct quire_runtime_config *c = &list->config;

	printf("seed %llu: %d pages of %d%s, depth %d, queue %d, tickets %d, requests "
	       "%d, "
	       "labels %d, speculative %d, rows %d, tokens %d, tables %d, seq %d, table "
	       "pages %lld, "
	       "block %lld\n",
	       (unsigned long long)list->seed, list->num_pages, list->page_size,
	       c->sink ? ", sink" : "", c->depth, c->commands_max, c->tickets_max,
	       c->requests_max, c->request_labels_max, c->speculative_max, c->rows_max,
	       c->tokens_max, c->tables_max, c->seq_tokens_max,
	       (long long)c->table_pages_max, (long long)c->block_width);
	for (int32_t i = 0; i < list->num_commands; i++) {
		if (list->commands[i].dropped)
			continue;
		printf("  %3d  ", i);
		print_command(&list->commands[i]);
	}
	fflush(stdout);
}
