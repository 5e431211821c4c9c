/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/shrink_model_impl.h"

#include <stdlib.h>
#include <string.h>

/* A step as a cut leaves it; the lists of the trace stay as they are. */
struct leftover {
	struct quire_step step;
	struct quire_segment *segments; /* [segments_max] */
	struct quire_fork forks[2][QUIRE_FORKS_MAX];
	struct quire_combined combined[QUIRE_TABLES_MAX];
	const char *labels[QUIRE_TABLES_MAX][QUIRE_LABELS_MAX];
};

struct quire_trace_header shrink_header(const struct shrink_model *model,
                                        const struct shrink_cut *cut)
{
	struct quire_trace_header header = model->lines->header;

	header.num_pages = cut->num_pages;
	return header;
}

static void leave_segments(struct leftover *left, const struct quire_step *step,
                           const struct shrink_cut_segment *segments)
{
	left->step.segments = left->segments;
	left->step.num_segments = 0;
	for (int32_t i = 0; i < step->num_segments; i++) {
		struct quire_segment *segment = &left->segments[left->step.num_segments];

		if (segments[i].is_gone)
			continue;
		*segment = step->segments[i];
		segment->span = segments[i].span;
		segment->at = segments[i].at;
		left->step.num_segments++;
	}
}

/* Returns how many. */
static int32_t leave_forks(struct quire_fork *left, const struct quire_fork *forks,
                           int32_t num, uint64_t gone)
{
	int32_t n = 0;

	for (int32_t i = 0; i < num; i++) {
		if ((gone >> i & 1) == 0)
			left[n++] = forks[i];
	}
	return n;
}

/* Equal labels of a trace in memory are one pointer. */
static bool has_label(const struct quire_step *step, const char *label)
{
	for (int32_t i = 0; i < step->num_segments; i++) {
		if (step->segments[i].label == label)
			return true;
	}
	return false;
}

/* A table of several labels goes without those whose segments are all gone. */
static void leave_combined(struct leftover *left, const struct quire_step *step,
                           uint32_t gone)
{
	left->step.combined = left->combined;
	left->step.num_combined = 0;
	for (int32_t i = 0; i < step->num_combined; i++) {
		int32_t place = left->step.num_combined;
		struct quire_combined combined = step->combined[i];
		int32_t num = 0;

		for (int32_t j = 0; j < combined.num_labels; j++) {
			const char *label = combined.labels[j];

			if (has_label(&left->step, label) || !has_label(step, label))
				left->labels[place][num++] = label;
		}
		if ((gone >> i & 1) != 0 || (num == 0 && combined.num_labels > 0))
			continue;
		combined.labels = left->labels[place];
		combined.num_labels = num;
		left->combined[place] = combined;
		left->step.num_combined++;
	}
}

static uint32_t flag_of(enum shrink_part part)
{
	switch (part) {
	case SHRINK_SPECULATIVE:
		return QUIRE_STEP_SPECULATIVE;
	case SHRINK_COMMIT:
		return QUIRE_STEP_NO_COMMIT;
	case SHRINK_NO_WAIT:
		return QUIRE_STEP_NO_WAIT;
	case SHRINK_COPY:
		return QUIRE_STEP_COPY_FORKS;
	default:
		return 0;
	}
}

/* Parts that are taken as a whole. */
static void leave_parts(struct quire_step *step, uint32_t gone)
{
	for (int p = 0; p < SHRINK_PARTS; p++) {
		enum shrink_part part = (enum shrink_part)(1 << p);

		if ((gone & part) != 0)
			step->flags &= ~flag_of(part);
	}
	if ((gone & SHRINK_PRE_FORKS) != 0)
		step->num_pre_forks = 0;
	if ((gone & SHRINK_POST_FORKS) != 0)
		step->num_post_forks = 0;
	if ((gone & SHRINK_COMBINED) != 0)
		step->num_combined = 0;
	if ((gone & SHRINK_BUCKET) != 0)
		step->bucket_tokens = step->bucket_rows = 0;
}

static void leave_step(const struct shrink_model *model, const struct shrink_cut *cut,
                       int64_t i, struct leftover *left)
{
	const struct quire_step *step = shrink_asked(model, i)->step;
	const struct shrink_cut_command *command = &cut->commands[i];

	left->step = *step;
	leave_segments(left, step, &cut->segments[model->commands[i].first_segment]);
	left->step.pre_forks = left->forks[0];
	left->step.num_pre_forks =
		leave_forks(left->forks[0], step->pre_forks, step->num_pre_forks,
	                    command->gone_forks[0]);
	left->step.post_forks = left->forks[1];
	left->step.num_post_forks =
		leave_forks(left->forks[1], step->post_forks, step->num_post_forks,
	                    command->gone_forks[1]);
	leave_combined(left, step, command->gone_combined);
	leave_parts(&left->step, command->gone_parts);
}

static struct quire_trace_record leave_record(const struct shrink_model *model,
                                              const struct shrink_cut *cut, int64_t i,
                                              struct leftover *left)
{
	struct quire_trace_record record = *model->commands[i].record;
	const struct shrink_cut_command *command = &cut->commands[i];

	record.has_outcome = false;
	record.command.tokens = command->tokens;
	record.has_base = record.has_base && shrink_is_speculative(model, cut, i);
	record.base = command->base != SHRINK_NONE
	                      ? model->commands[command->base].record->id
	                      : 0;
	if ((command->gone_parts & SHRINK_KEEP) != 0)
		record.command.keep_pages = 0;
	if ((command->gone_parts & SHRINK_PREFIX) != 0)
		record.prefix.tokens = 0;
	if ((command->gone_parts & SHRINK_TIMES) != 0)
		record.has_times = false;
	if ((command->gone_parts & SHRINK_ID) != 0)
		record.id = 0;
	if (record.command.kind == QUIRE_COMMAND_SUBMIT) {
		leave_step(model, cut, i, left);
		record.command.step = &left->step;
	}
	return record;
}

int shrink_write(const struct shrink_model *model, const struct shrink_cut *cut,
                 struct quire_trace_writer *writer, const char *name)
{
	struct leftover left;
	struct quire_trace_record record;
	struct quire_refusal refusal;
	enum quire_status status = QUIRE_OK;

	left.segments =
		malloc(((size_t)model->segments_max + 1) * sizeof(*left.segments));
	if (left.segments == NULL) {
		cmd_tell(NULL, 0, "no memory for a candidate");
		return CMD_BAD;
	}
	for (int64_t i = 0; i < model->lines->num && status == QUIRE_OK; i++) {
		if (cut->commands[i].is_gone)
			continue;
		record = cut->has_outcomes ? *model->commands[i].record
		                           : leave_record(model, cut, i, &left);
		status = quire_trace_write(writer, &record, &refusal);
	}
	free(left.segments);
	return status == QUIRE_OK ? CMD_DONE : cmd_tell_refusal(name, &refusal);
}
