/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/lines_impl.h"

#include "runtime/cmd/cmd_impl.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES ((size_t)1 << 20)
#define FIRST_ROOM  1024

struct cmd_lines_block {
	struct cmd_lines_block *next;
	size_t used, size;
	_Alignas(8) char bytes[];
};

/* Memory until cmd_lines_end; NULL: there is none. */
static void *allocate(struct cmd_lines *lines, size_t size)
{
	struct cmd_lines_block *block = lines->blocks;
	void *bytes;

	size = (size + 7) & ~(size_t)7;
	if (block == NULL || block->size - block->used < size) {
		size_t room = size > BLOCK_BYTES ? size : BLOCK_BYTES;

		block = malloc(sizeof(*block) + room);
		if (block == NULL)
			return NULL;
		*block = (struct cmd_lines_block){.next = lines->blocks, .size = room};
		lines->blocks = block;
	}
	bytes = block->bytes + block->used;
	block->used += size;
	return bytes;
}

/* A copy of a list; false: no memory.  *copy_out is NULL for none. */
static bool copy_list(struct cmd_lines *lines, const void *list, int32_t num, size_t size,
                      void *copy_out)
{
	void *copy = NULL;

	if (num > 0) {
		copy = allocate(lines, (size_t)num * size);
		if (copy == NULL)
			return false;
		memcpy(copy, list, (size_t)num * size);
	}
	memcpy(copy_out, &copy, sizeof(copy));
	return true;
}

static int compare_labels(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* The one pointer of a label. */
static bool keep_label(struct cmd_lines *lines, const char **label)
{
	const char *name = *label != NULL ? *label : QUIRE_LABEL_MAIN;
	const char **found = tfind(name, &lines->labels, compare_labels);
	char *kept;

	if (found != NULL) {
		*label = *found;
		return true;
	}
	kept = allocate(lines, strlen(name) + 1);
	if (kept == NULL)
		return false;
	strcpy(kept, name);
	*label = kept;
	return tsearch(kept, &lines->labels, compare_labels) != NULL;
}

static bool copy_segments(struct cmd_lines *lines, struct quire_step *step)
{
	struct quire_segment *segments;

	if (!copy_list(lines, step->segments, step->num_segments, sizeof(*segments),
	               &segments))
		return false;
	for (int32_t i = 0; i < step->num_segments; i++) {
		if (!keep_label(lines, &segments[i].label))
			return false;
	}
	step->segments = segments;
	return true;
}

static bool copy_forks(struct cmd_lines *lines, const struct quire_fork **list,
                       int32_t num)
{
	struct quire_fork *forks;

	if (!copy_list(lines, *list, num, sizeof(*forks), &forks))
		return false;
	for (int32_t i = 0; i < num; i++) {
		if (!keep_label(lines, &forks[i].source) ||
		    !keep_label(lines, &forks[i].target))
			return false;
	}
	*list = forks;
	return true;
}

static bool copy_combined(struct cmd_lines *lines, struct quire_step *step)
{
	struct quire_combined *combined;

	if (!copy_list(lines, step->combined, step->num_combined, sizeof(*combined),
	               &combined))
		return false;
	for (int32_t i = 0; i < step->num_combined; i++) {
		const char **labels;

		if (!keep_label(lines, &combined[i].name) ||
		    !copy_list(lines, combined[i].labels, combined[i].num_labels,
		               sizeof(*labels), &labels))
			return false;
		for (int32_t j = 0; j < combined[i].num_labels; j++) {
			if (!keep_label(lines, &labels[j]))
				return false;
		}
		combined[i].labels = labels;
	}
	step->combined = combined;
	return true;
}

static bool copy_step(struct cmd_lines *lines, struct quire_command *command)
{
	struct quire_step *step;

	if (command->kind != QUIRE_COMMAND_SUBMIT)
		return true;
	if (!copy_list(lines, command->step, 1, sizeof(*step), &step))
		return false;
	command->step = step;
	return copy_segments(lines, step) && copy_combined(lines, step) &&
	       copy_forks(lines, &step->pre_forks, step->num_pre_forks) &&
	       copy_forks(lines, &step->post_forks, step->num_post_forks);
}

/* Let all that a record points to be the lines' own. */
static bool keep_record(struct cmd_lines *lines, struct quire_trace_record *record)
{
	struct quire_trace_outcome *outcome = &record->outcome;
	struct quire_trace_prefix *prefix = &record->prefix;

	if (record->has_outcome && outcome->has_pages &&
	    !copy_list(lines, outcome->pages, outcome->num_pages, sizeof(int32_t),
	               &outcome->pages))
		return false;
	if (prefix->tokens != 0 && !copy_list(lines, prefix->keys, prefix->num_keys,
	                                      sizeof(int64_t), &prefix->keys))
		return false;
	return keep_label(lines, &record->command.label) &&
	       copy_step(lines, &record->command);
}

static bool add_record(struct cmd_lines *lines, const struct quire_trace_record *record)
{
	if (lines->num == lines->room) {
		int64_t room = lines->room > 0 ? lines->room * 2 : FIRST_ROOM;
		struct quire_trace_record *records =
			realloc(lines->records, (size_t)room * sizeof(*records));

		if (records == NULL)
			return false;
		lines->records = records;
		lines->room = room;
	}
	lines->records[lines->num] = *record;
	return keep_record(lines, &lines->records[lines->num++]);
}

static int read_all(struct cmd_lines *lines, const char *name,
                    struct quire_trace_reader *reader)
{
	struct quire_trace_record record;
	struct quire_refusal refusal;
	enum quire_status status;
	int64_t done, of;

	while ((status = quire_trace_next(reader, &record, &refusal)) == QUIRE_OK) {
		if (!add_record(lines, &record)) {
			cmd_tell(name, record.line, "no memory for so much of the trace");
			return CMD_BAD;
		}
		quire_trace_position(reader, &done, &of);
		cmd_progress_show(done, of);
	}
	return status == QUIRE_END ? CMD_DONE : cmd_tell_refusal(name, &refusal);
}

int cmd_lines_read(struct cmd_lines *lines, const char *name)
{
	struct quire_trace_reader *reader;
	struct quire_refusal refusal;
	int code;

	if (quire_trace_open(name, &reader, &refusal) != QUIRE_OK)
		return cmd_tell_refusal(name, &refusal);
	lines->header = *quire_trace_header(reader);
	code = read_all(lines, name, reader);
	quire_trace_close(reader);
	return code;
}

static void leave_alone(void *label)
{
	(void)label;
}

void cmd_lines_end(struct cmd_lines *lines)
{
	tdestroy(lines->labels, leave_alone);
	while (lines->blocks != NULL) {
		struct cmd_lines_block *next = lines->blocks->next;

		free(lines->blocks);
		lines->blocks = next;
	}
	free(lines->records);
}
