/* SPDX-License-Identifier: MIT */
/* A list as a plan trace, for `quire replay` and whoever reads traces. */
#include "config.h"

#include "model_lists.h"

#include <quire/plans/trace.h>

#include <stdio.h>

/* Limits that a config leaves to the runtime stand in a trace. */
static struct quire_trace_header header_of(const struct list *list)
{
	const struct quire_runtime_config *config = &list->config;
	struct quire_trace_header header = {
		.layout = "NHD",
		.dtype = "f32",
		.num_layers = 1,
		.num_kv_heads = 1,
		.head_dim = 1,
		.page_size = list->page_size,
		.num_pages = list->num_pages,
		.sink = config->sink,
		.rows_max = config->rows_max,
		.tokens_max = config->tokens_max,
		.requests_max = config->requests_max,
		.seq_tokens_max = config->seq_tokens_max,
		.request_labels_max = config->request_labels_max,
		.tables_max = config->tables_max,
		.table_pages_max = config->table_pages_max,
	};

	if (header.seq_tokens_max == 0)
		header.seq_tokens_max =
			(int64_t)(list->num_pages - config->sink) * list->page_size;
	if (header.table_pages_max == 0)
		header.table_pages_max = list->num_pages;
	snprintf(header.source, sizeof(header.source), "list of seed %llu",
	         (unsigned long long)list->seed);
	return header;
}

/* Of command i the id is i + 1. */
static struct quire_trace_record record_of(const struct list *list, int32_t i)
{
	const struct list_command *c = &list->commands[i];
	struct quire_trace_record record = {.id = (uint64_t)i + 1, .command = c->command};

	if (c->command.kind == QUIRE_COMMAND_PROMOTE ||
	    c->command.kind == QUIRE_COMMAND_ABANDON)
		record.command.target = (uint64_t)c->target + 1;
	return record;
}

void list_trace(const struct list *list, const char *path)
{
	const struct quire_trace_header header = header_of(list);
	struct quire_trace_writer *writer;
	struct quire_refusal refusal;

	REQUIRE(quire_trace_create(path, &header, &writer, &refusal) == QUIRE_OK);
	for (int32_t i = 0; i < list->num_commands; i++) {
		const struct quire_trace_record record = record_of(list, i);

		if (!list->commands[i].dropped &&
		    quire_trace_write(writer, &record, &refusal) != QUIRE_OK)
			printf("not in the trace: %d: %s\n", i, refusal.what);
	}
	fflush(stdout);
	REQUIRE(quire_trace_commit(writer, &refusal) == QUIRE_OK);
}
