/* SPDX-License-Identifier: MIT */
/*
 * What the model says of random lists, as JSON, one list a line: the commands in the form
 * of the executable specification, each command's final answer, and the state at the end.
 *
 *   print_model FIRST_SEED LISTS COMMANDS
 *
 * Refusals that only a runtime knows (its limits, built-in work) are not in these lists.
 */
#include "config.h"

#include "model_lists.h"
#include "model_order.h"

#include <stdio.h>
#include <stdlib.h>

static struct model_order order;

/* A comma before all but the first. */
static const char *comma(int64_t i)
{
	return i > 0 ? "," : "";
}

static const char *label_name(const char *label)
{
	return model_labels[model_label(label)];
}

/* Can the specification be told of it? */
static bool is_common(const struct list_command *c)
{
	const struct quire_step *step = &c->step;

	if (c->command.kind != QUIRE_COMMAND_SUBMIT)
		return true;
	if (step->flags >= QUIRE_STEP_SPECULATIVE << 1 || step->num_work > 0)
		return false;
	for (int32_t i = 0; i < step->num_segments; i++)
		if (step->segments[i].at < QUIRE_AT_ANY)
			return false;
	for (int32_t i = 0; i < step->num_combined; i++)
		if (step->combined[i].num_labels == 0)
			return false;
	return step->num_segments <= MODEL_ROWS_MAX &&
	       ((step->bucket_rows == 0 && step->bucket_tokens == 0) ||
	        (step->bucket_rows > 0 && step->bucket_tokens > 0));
}

/* ------------------------------------------------------------------ commands */

static void print_forks(const char *name, const struct quire_fork *forks, int32_t n)
{
	printf(",\"%s\":[", name);
	for (int32_t i = 0; i < n; i++)
		printf("%s[\"%s\",\"%s\"]", comma(i), label_name(forks[i].source),
		       label_name(forks[i].target));
	printf("]");
}

static void print_step(const struct quire_step *step)
{
	printf(",\"segments\":[");
	for (int32_t i = 0; i < step->num_segments; i++) {
		const struct quire_segment *s = &step->segments[i];

		printf("%s{\"request\":%llu,\"label\":\"%s\",\"span\":%d,\"at\":",
		       comma(i), (unsigned long long)s->request, label_name(s->label),
		       s->span);
		printf(s->at == QUIRE_AT_ANY ? "null}" : "%d}", s->at);
	}
	printf("]");
	print_forks("pre_forks", step->pre_forks, step->num_pre_forks);
	print_forks("post_forks", step->post_forks, step->num_post_forks);
	printf(",\"combined\":{");
	for (int32_t c = 0; c < step->num_combined; c++) {
		printf("%s\"%s\":[", comma(c), step->combined[c].name);
		for (int32_t i = 0; i < step->combined[c].num_labels; i++)
			printf("%s\"%s\"", comma(i),
			       label_name(step->combined[c].labels[i]));
		printf("]");
	}
	printf("}");
	if (step->bucket_rows > 0)
		printf(",\"bucket\":[%d,%d]", step->bucket_tokens, step->bucket_rows);
	if ((step->flags & QUIRE_STEP_NO_COMMIT) != 0)
		printf(",\"commit\":false");
	if ((step->flags & QUIRE_STEP_COPY_FORKS) != 0)
		printf(",\"copy\":\"all\"");
	if ((step->flags & QUIRE_STEP_SPECULATIVE) != 0)
		printf(",\"speculative\":true");
}

static void print_command(int32_t number, const struct list_command *c)
{
	static const char *const names[] = {
		[QUIRE_COMMAND_OPEN] = "open",
		[QUIRE_COMMAND_CLOSE] = "close",
		[QUIRE_COMMAND_RESET] = "reset",
		[QUIRE_COMMAND_REWIND] = "rewind",
		[QUIRE_COMMAND_PROMOTE] = "promote",
		[QUIRE_COMMAND_ABANDON] = "abandon",
		[QUIRE_COMMAND_SUBMIT] = "submit",
		[QUIRE_COMMAND_RELEASE_FRONT] = "release_front",
	};
	const struct quire_command *command = &c->command;

	printf("{\"id\":\"c%d\",\"do\":\"%s\"", number, names[command->kind]);
	if (command->kind == QUIRE_COMMAND_SUBMIT) {
		print_step(command->step);
	} else if (command->kind == QUIRE_COMMAND_PROMOTE ||
	           command->kind == QUIRE_COMMAND_ABANDON) {
		printf(",\"ticket\":\"c%d\"", c->target);
	} else {
		printf(",\"request\":%llu,\"label\":\"%s\"",
		       (unsigned long long)command->request, label_name(command->label));
		if (command->kind == QUIRE_COMMAND_RESET)
			printf(",\"keep\":%s", command->keep_pages ? "true" : "false");
		else
			printf(",\"tokens\":%d", command->tokens);
	}
	printf("}");
}

/* ------------------------------------------------------------------ answers */

static void print_image(const struct image *image)
{
	for (int32_t at = 0; at < image->n; at += 2 + (int32_t)image->values[at + 1]) {
		printf("%s[\"%s\"", comma(at), image_kinds[image->values[at]]);
		for (int64_t i = 0; i < image->values[at + 1]; i++)
			printf(",%lld", (long long)image->values[at + 2 + i]);
		printf("]");
	}
}

static void print_refusal(const struct quire_refusal *r)
{
	printf("\"status\":\"%s\"", quire_status_name(r->status));
	if (r->status == QUIRE_NO_PAGES)
		printf(",\"pages_short\":%lld", (long long)r->pages_short);
	if (r->status == QUIRE_STALE)
		printf(",\"expected\":%lld,\"got\":%lld", (long long)r->expected,
		       (long long)r->got);
	if (r->status == QUIRE_NO_PAGES || r->status == QUIRE_STALE ||
	    r->status == QUIRE_LIMIT || r->status == QUIRE_NO_LABEL)
		printf(",\"request\":%llu,\"label\":\"%s\"",
		       (unsigned long long)r->request, r->label);
	if (r->status == QUIRE_NO_REQUEST)
		printf(",\"request\":%llu", (unsigned long long)r->request);
}

static void print_answers(void)
{
	for (int32_t i = 0; i < order.followed; i++) {
		const struct model_entry *entry = &order.entries[i];

		printf("%s\"c%d\":{", comma(i), (int)entry->ticket);
		print_refusal(&entry->refusal);
		if (entry->base >= 0)
			printf(",\"base\":\"c%d\"",
			       (int)order.entries[entry->base].ticket);
		if (entry->command->kind == QUIRE_COMMAND_RELEASE_FRONT &&
		    entry->refusal.status == QUIRE_OK)
			printf(",\"released\":%d", entry->pages_released);
		if (entry->image != NULL) {
			printf(",\"taken\":%d,\"plan\":[", entry->pages_taken);
			print_image(entry->image);
			printf("]");
		}
		printf("}");
	}
}

static void print_stream(const struct model_request *request,
                         const struct model_stream *stream)
{
	printf("[%llu,\"%s\",%lld,%lld,[", (unsigned long long)request->id,
	       model_labels[stream->label], (long long)stream->length,
	       (long long)stream->released);
	for (int32_t k = 0; k < stream->num_pages; k++)
		printf("%s%d", comma(k), stream->pages[k]);
	printf("],[");
	for (int32_t k = 0; k < stream->num_pairs; k++)
		printf("%s[%u,%d]", comma(k), stream->pairs[k].step,
		       stream->pairs[k].length);
	printf("]]");
}

static void print_state(void)
{
	const struct model *m = &order.model;
	int32_t n = 0;

	printf("{\"last_step\":%llu,\"free\":[",
	       (unsigned long long)m->counts.steps_planned);
	for (int32_t i = 0; i < m->num_fifo; i++)
		printf("%s%d", comma(i), m->fifo[i]);
	printf("],\"streams\":[");
	for (int32_t i = 0; i < MODEL_REQUESTS_MAX; i++)
		for (int32_t s = 0; m->requests[i].open && s < m->requests[i].num_streams;
		     s++) {
			printf("%s", comma(n++));
			print_stream(&m->requests[i], &m->requests[i].streams[s]);
		}
	printf("]}");
}

/* ------------------------------------------------------------------ a list */

static void decide(int32_t number, const struct list_command *c)
{
	const struct quire_command *command = &c->command;

	if (command->kind == QUIRE_COMMAND_PROMOTE ||
	    command->kind == QUIRE_COMMAND_ABANDON)
		order_resolve(&order, command->kind, (uint64_t)c->target);
	else
		order_draw(&order, command, (uint64_t)number);
	while (order.followed < order.drawn && !order_is_parked(&order))
		order_follow(&order, false);
}

static void print_list(const struct list *list)
{
	int32_t printed = 0;

	order_init(&order, &list->config, list->num_pages, list->page_size);
	printf("{\"seed\":%llu,\"config\":{\"num_pages\":%d,\"page_size\":%d,\"sink\":%s,"
	       "\"max_seq_len\":%d},\"commands\":[",
	       (unsigned long long)list->seed, list->num_pages, list->page_size,
	       list->config.sink ? "true" : "false", order.model.config.seq_tokens_max);
	for (int32_t i = 0; i < list->num_commands; i++) {
		if (!is_common(&list->commands[i]))
			continue;
		printf("%s", comma(printed++));
		print_command(i, &list->commands[i]);
		decide(i, &list->commands[i]);
	}
	printf("],\"answers\":{");
	print_answers();
	printf("},\"state\":");
	print_state();
	printf("}\n");
	order_end(&order);
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	int32_t lists = argc > 2 ? (int32_t)strtol(argv[2], NULL, 10) : 1;
	int32_t commands = argc > 3 ? (int32_t)strtol(argv[3], NULL, 10) : 40;

	for (int32_t i = 0; i < lists; i++) {
		struct list list;

		list_make(&list, seed + (uint64_t)i, commands, LIST_ALL | LIST_WIDE);
		print_list(&list);
		list_free(&list);
	}
	return 0;
}
