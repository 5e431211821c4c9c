/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/check_impl.h"

static void drop(struct cmd_streams *streams, uint64_t request, int32_t label)
{
	cmd_streams_drop(streams, cmd_streams_find(streams, request, label));
}

/* Lives that forks begin and end, as the second walk has them (fork_onto). */
static bool count_forks(struct cmd_streams *streams, const struct quire_step *step,
                        const struct quire_fork *forks, int32_t num)
{
	for (int32_t f = 0; f < num; f++) {
		int32_t label = cmd_streams_label(streams, forks[f].target);

		for (int32_t i = 0; i < step->num_segments; i++) {
			uint64_t request = step->segments[i].request;
			struct cmd_stream *stream =
				cmd_streams_find(streams, request, label);

			if (stream != NULL && stream->steps == 0)
				continue;
			cmd_streams_drop(streams, stream);
			if (cmd_streams_begin(streams, request, label) == NULL)
				return false;
		}
	}
	return true;
}

/* Has a list a label too many?  Then the runtime refuses the step. */
static bool is_too_many(struct cmd_streams *streams, const struct quire_fork *forks,
                        int32_t num)
{
	for (int32_t f = 0; f < num; f++) {
		if (cmd_streams_label(streams, forks[f].source) < 0 ||
		    cmd_streams_label(streams, forks[f].target) < 0)
			return true;
	}
	return false;
}

/* Rows behind a label too many are not counted: the runtime refuses the step. */
static bool count_step(struct cmd_streams *streams, const struct quire_step *step)
{
	if (is_too_many(streams, step->pre_forks, step->num_pre_forks) ||
	    is_too_many(streams, step->post_forks, step->num_post_forks))
		return true;
	if (!count_forks(streams, step, step->pre_forks, step->num_pre_forks))
		return false;
	for (int32_t i = 0; i < step->num_segments; i++) {
		const struct quire_segment *segment = &step->segments[i];
		int32_t label = cmd_streams_label(streams, segment->label);

		if (label < 0)
			return true;
		if (cmd_streams_step(streams, segment->request, label) == NULL)
			return false;
	}
	return count_forks(streams, step, step->post_forks, step->num_post_forks);
}

/* Count one command; false: no memory. */
static bool count_record(struct cmd_check *check, const struct quire_trace_record *record)
{
	struct cmd_streams *streams = &check->streams;
	const struct quire_command *command = &record->command;
	int32_t label;

	if (cmd_run_is_refused(check->run, record))
		return true;
	switch (command->kind) {
	case QUIRE_COMMAND_OPEN:
	case QUIRE_COMMAND_REWIND:
	case QUIRE_COMMAND_RELEASE_FRONT:
	case QUIRE_COMMAND_PROMOTE:
	case QUIRE_COMMAND_ABANDON:
		break;
	case QUIRE_COMMAND_SUBMIT:
		return count_step(streams, command->step);
	case QUIRE_COMMAND_RESET:
		label = cmd_streams_label(streams, command->label);
		drop(streams, command->request, label);
		break;
	case QUIRE_COMMAND_CLOSE:
		for (label = 0; label < streams->num_labels; label++)
			drop(streams, command->request, label);
		break;
	}
	return true;
}

int cmd_check_walk(struct cmd_check *check, const char *path)
{
	struct cmd_image_labels labels = {.num = 0};
	struct quire_trace_reader *reader;
	struct quire_trace_record record;
	struct quire_refusal refusal;
	int64_t to = check->run->options->to;
	int code = CMD_DONE;

	if (quire_trace_open(path, &reader, &refusal) != QUIRE_OK)
		return cmd_tell_refusal(check->run->file, &refusal);
	check->streams.counting = true;
	/* As far as the second walk will come: a trace that is damaged ends there. */
	while (code == CMD_DONE && quire_trace_next(reader, &record, NULL) == QUIRE_OK &&
	       (to == 0 || record.line <= to)) {
		if (cmd_image_note_command(&labels, &record.command) &&
		    !count_record(check, &record))
			code = cmd_check_refuse_memory();
	}
	quire_trace_close(reader);
	cmd_streams_rewind(&check->streams);
	return code;
}
