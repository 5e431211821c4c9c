/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/check_impl.h"

/* Rows behind a label too many are not counted: the runtime refuses the step. */
static bool count_step(struct cmd_streams *streams, const struct quire_step *step)
{
	for (int32_t i = 0; i < step->num_segments; i++) {
		const struct quire_segment *segment = &step->segments[i];
		int32_t label = cmd_streams_label(streams, segment->label);

		if (label < 0)
			break;
		if (cmd_streams_step(streams, segment->request, label) == NULL)
			return false;
	}
	return true;
}

static void drop(struct cmd_streams *streams, uint64_t request, int32_t label)
{
	cmd_streams_drop(streams, cmd_streams_find(streams, request, label));
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
	struct quire_trace_reader *reader;
	struct quire_trace_record record;
	struct quire_refusal refusal;
	enum quire_status status;
	int code = CMD_DONE;

	if (quire_trace_open(path, &reader, &refusal) != QUIRE_OK)
		return cmd_tell_refusal(check->run->file, &refusal);
	check->streams.counting = true;
	while (code == CMD_DONE &&
	       (status = quire_trace_next(reader, &record, &refusal)) != QUIRE_END) {
		if (status != QUIRE_OK)
			code = cmd_tell_refusal(check->run->file, &refusal);
		else if (!count_record(check, &record))
			code = cmd_check_refuse_memory();
	}
	quire_trace_close(reader);
	cmd_streams_rewind(&check->streams);
	return code;
}
