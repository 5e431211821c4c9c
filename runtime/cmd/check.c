/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/check_impl.h"

#include <inttypes.h>
#include <stdlib.h>

/* A row is read whole at every so many-th step, and at its last. */
#define READ_STEPS 64

/* Bytes of buffers on their way: beyond that older steps are settled first. */
#define BYTES_ON_THE_WAY (INT64_C(64) << 20)

void cmd_check_counts(const struct cmd_check *check, struct cmd_check_counts *counts_out)
{
	*counts_out = check->counts;
}

int cmd_check_refuse_memory(void)
{
	cmd_tell(NULL, 0, "no memory for --check; replay without it");
	return CMD_BAD;
}

int cmd_check_create(struct cmd_run *run, const char *path, struct quire_cache *cache,
                     struct cmd_check **check_out)
{
	const struct quire_shape *shape = quire_cache_shape(cache);
	struct cmd_check *check = calloc(1, sizeof(*check));
	int code = CMD_BAD;

	if (check == NULL)
		return cmd_check_refuse_memory();
	check->run = run;
	check->cache = cache;
	check->geometry = quire_cache_geometry(cache);
	check->tokens_most = shape->num_pages * shape->page_size;
	cmd_pattern_init(&check->pattern, check->geometry, shape->head_dim);
	check->scratch = malloc((size_t)check->geometry->row_bytes);
	if (check->scratch == NULL ||
	    quire_dstream_create(quire_cache_device(cache), "quire-check",
	                         &check->dstream) != QUIRE_OK)
		code = cmd_check_refuse_memory();
	else
		code = cmd_check_walk(check, path);
	if (code == CMD_DONE)
		*check_out = check;
	else
		cmd_check_destroy(check);
	return code;
}

void cmd_check_destroy(struct cmd_check *check)
{
	if (check == NULL)
		return;
	quire_dstream_destroy(check->dstream);
	cmd_streams_end(&check->streams);
	cmd_contents_end(&check->contents);
	free(check->scratch);
	free(check);
}

/* ------------------------------------------------------------------ lives */

/* Will the step that reads a stream last do so?  What is held may be abandoned: no. */
static bool is_read(struct cmd_check *check, const struct cmd_stream *stream)
{
	struct cmd_run *run = check->run;
	const struct cmd_pending *pending;
	struct quire_outcome outcome;

	/* Settled ones are noted already. */
	if (stream->read_by <= run->cursor)
		return true;
	pending = cmd_run_pending(run, stream->read_by - 1);
	if (pending->ticket == 0 || cmd_fates_given(&run->fates) != NULL)
		return false;
	/* All fates are given; what a step says before it has heard its own may change. */
	return cmd_run_wait(run, pending->ticket,
	                    pending->fate == NULL ? QUIRE_STAGE_PLANNED
	                                          : QUIRE_STAGE_RETIRED,
	                    &outcome) == QUIRE_OK &&
	       outcome.refusal.status == QUIRE_OK;
}

/* A life is over: was all of it read?  The step that was to read it may be refused. */
static int end_life(struct cmd_check *check, uint64_t request, int32_t label,
                    int64_t line)
{
	struct cmd_stream *stream = cmd_streams_find(&check->streams, request, label);
	struct cmd_run *run = check->run;
	int code = CMD_DONE;

	if (stream == NULL)
		return CMD_DONE;
	if (!is_read(check, stream))
		stream->unread = true;
	if (stream->unread)
		code = cmd_run_settle_all(run);
	/* Behind a held step nothing ends a life that was: the trace is wrong. */
	if (code == CMD_DONE && stream->unread && run->cursor == run->tail)
		code = cmd_check_read_now(check, stream, line);
	cmd_streams_drop(&check->streams, stream);
	return code;
}

/* A stream is forked onto: another life begins.  One without a step goes on: nothing was
 * written to it. */
static int fork_onto(struct cmd_check *check, uint64_t request, int32_t label,
                     int64_t line)
{
	struct cmd_stream *stream = cmd_streams_find(&check->streams, request, label);
	int code = CMD_DONE;

	if (stream != NULL && stream->steps == 0)
		return CMD_DONE;
	code = end_life(check, request, label, line);
	if (code != CMD_DONE)
		return code;
	stream = cmd_streams_begin(&check->streams, request, label);
	if (stream == NULL)
		return cmd_check_refuse_memory();
	stream->unread = true;
	return CMD_DONE;
}

static int fork_list(struct cmd_check *check, const struct quire_step *step,
                     const struct cmd_fork_ids *forks, int32_t num, int64_t line)
{
	int code = CMD_DONE;

	for (int32_t f = 0; f < num; f++) {
		for (int32_t i = 0; i < step->num_segments && code == CMD_DONE; i++)
			code = fork_onto(check, step->segments[i].request,
			                 forks[f].target, line);
	}
	return code;
}

int cmd_check_finish(struct cmd_check *check)
{
	const struct cmd_stream *stream;
	int code = CMD_DONE;

	while (code == CMD_DONE && !check->is_lost &&
	       (stream = cmd_streams_any(&check->streams)) != NULL)
		code = end_life(check, stream->request, stream->label, 0);
	return code;
}

/* ------------------------------------------------------------------ prepare */

/* The row's stream, as long as it lives the same life. */
static struct cmd_stream *stream_of(struct cmd_check *check, const struct cmd_row *row)
{
	struct cmd_stream *stream =
		cmd_streams_find(&check->streams, row->request, row->label);

	return stream != NULL && stream->life == row->life ? stream : NULL;
}

/* Note every row of a step: what it writes, and whether it is to be read. */
static int note_rows(struct cmd_check *check, const struct quire_step *step,
                     struct cmd_batch *batch)
{
	for (int32_t i = 0; i < step->num_segments; i++) {
		const struct quire_segment *segment = &step->segments[i];
		struct cmd_row *row = &batch->rows[i];
		int32_t label = cmd_streams_label(&check->streams, segment->label);
		struct cmd_stream *stream;

		if (label < 0)
			return CMD_DONE; /* the runtime refuses it */
		stream = cmd_streams_step(&check->streams, segment->request, label);
		if (stream == NULL)
			return cmd_check_refuse_memory();
		*row = (struct cmd_row){
			.request = segment->request,
			.label = label,
			.life = stream->life,
			.span = segment->span,
			.start = segment->at != QUIRE_AT_ANY ? segment->at
		                                             : CMD_START_UNKNOWN,
			.first = stream->written,
			.is_last = cmd_streams_is_last(&check->streams, stream),
			.is_due = stream->since_read >= READ_STEPS,
			.seed = cmd_pattern_seed(segment->request, label,
		                                 (uint64_t)stream->life),
		};
		stream->written += segment->span;
		batch->num_rows++;
	}
	return CMD_DONE;
}

static bool is_forked_onto(const struct cmd_batch *batch, int32_t label)
{
	for (int32_t i = 0; i < batch->num_pre_forks; i++) {
		if (batch->pre_forks[i].target == label)
			return true;
	}
	return false;
}

/* Where a row starts that is to be read and does not say so: known once all outcomes are,
 * unless a fork of the step itself or a held step says. */
static int find_starts(struct cmd_check *check, struct cmd_batch *batch)
{
	for (int32_t i = 0; i < batch->num_rows; i++) {
		struct cmd_row *row = &batch->rows[i];
		const struct cmd_content *content;
		int code;

		if (row->start != CMD_START_UNKNOWN || !(row->is_last || row->is_due) ||
		    is_forked_onto(batch, row->label))
			continue;
		code = cmd_run_settle_all(check->run);
		if (code != CMD_DONE)
			return code;
		if (check->run->cursor != check->run->tail)
			continue;
		content = cmd_contents_find(&check->contents, row->request, row->label);
		row->start = content != NULL ? content->length : 0;
	}
	return CMD_DONE;
}

/* Steps that are settled make room for the buffers of this one. */
static int make_room(struct cmd_check *check, int64_t bytes)
{
	int code = CMD_DONE;

	while (code == CMD_DONE && check->bytes > 0 &&
	       check->bytes + bytes > BYTES_ON_THE_WAY && cmd_run_can_settle(check->run))
		code = cmd_run_settle(check->run);
	return code;
}

/* What the streams' records say of a step that is about to be given. */
static void mark_streams(struct cmd_check *check, const struct cmd_batch *batch)
{
	for (int32_t i = 0; i < batch->num_rows; i++) {
		const struct cmd_row *row = &batch->rows[i];
		struct cmd_stream *stream = stream_of(check, row);

		if (row->is_read) {
			stream->since_read = 0;
			stream->unread = false;
		} else if (row->span > 0) {
			stream->unread = true;
		}
	}
}

/* The ids of a fork list; false: a label too many, the runtime refuses the step. */
static bool note_forks(struct cmd_check *check, const struct quire_fork *forks,
                       int32_t num, struct cmd_fork_ids *ids)
{
	for (int32_t i = 0; i < num; i++) {
		ids[i].source = cmd_streams_label(&check->streams, forks[i].source);
		ids[i].target = cmd_streams_label(&check->streams, forks[i].target);
		if (ids[i].source < 0 || ids[i].target < 0)
			return false;
	}
	return true;
}

static int plan_step(struct cmd_check *check, int64_t line, struct quire_step *step_out,
                     struct cmd_batch *batch)
{
	enum cmd_plan_result result = cmd_batch_plan(batch, step_out, &check->streams,
	                                             check->geometry, check->tokens_most);
	int code;

	if (result == CMD_PLAN_TOO_WIDE) {
		cmd_tell(check->run->file, line,
		         "--check writes every layer of every table, at most %d in a "
		         "step, got %" PRId64 " layers and %" PRId32 " tables",
		         QUIRE_WORK_MAX, check->geometry->num_layers,
		         batch->grouping.num_tables);
		return CMD_BAD;
	}
	mark_streams(check, batch);
	if (result == CMD_PLAN_REFUSED)
		return CMD_DONE;
	code = make_room(check, batch->bytes);
	if (code != CMD_DONE)
		return code;
	if (!cmd_batch_fill(batch, check->geometry, &check->pattern))
		return cmd_check_refuse_memory();
	check->bytes += batch->bytes;
	step_out->work = batch->work;
	step_out->num_work = batch->num_work;
	return CMD_DONE;
}

static int prepare_step(struct cmd_check *check, int64_t line,
                        struct quire_step *step_out, struct cmd_batch *batch)
{
	int code;

	if (!note_forks(check, step_out->pre_forks, step_out->num_pre_forks,
	                batch->pre_forks) ||
	    !note_forks(check, step_out->post_forks, step_out->num_post_forks,
	                batch->post_forks))
		return CMD_DONE;
	batch->num_pre_forks = step_out->num_pre_forks;
	batch->num_post_forks = step_out->num_post_forks;
	batch->commits = (step_out->flags & QUIRE_STEP_NO_COMMIT) == 0;
	code = fork_list(check, step_out, batch->pre_forks, batch->num_pre_forks, line);
	if (code == CMD_DONE)
		code = note_rows(check, step_out, batch);
	if (code != CMD_DONE || batch->num_rows < step_out->num_segments)
		return code;
	code = find_starts(check, batch);
	if (code == CMD_DONE)
		code = plan_step(check, line, step_out, batch);
	if (code == CMD_DONE)
		code = fork_list(check, step_out, batch->post_forks,
		                 batch->num_post_forks, line);
	return code;
}

static int prepare_submit(struct cmd_check *check, int64_t line,
                          struct quire_step *step_out, struct cmd_batch **batch_out)
{
	struct cmd_batch *batch = cmd_batch_create(quire_cache_device(check->cache),
	                                           step_out->num_segments);
	int code;

	if (batch == NULL)
		return cmd_check_refuse_memory();
	code = prepare_step(check, line, step_out, batch);
	if (code == CMD_DONE)
		*batch_out = batch;
	else
		cmd_batch_free(batch);
	return code;
}

int cmd_check_prepare(struct cmd_check *check, const struct quire_trace_record *record,
                      struct quire_step *step_out, struct cmd_pending *pending)
{
	const struct quire_command *command = &record->command;
	struct cmd_named *named = &pending->named;
	int32_t label;
	int code = CMD_DONE;

	*named = (struct cmd_named){
		.request = command->request,
		.label = cmd_streams_label(&check->streams, command->label),
		.tokens = command->tokens,
	};
	if (cmd_run_is_refused(check->run, record))
		return CMD_DONE;
	switch (command->kind) {
	case QUIRE_COMMAND_OPEN:
	case QUIRE_COMMAND_REWIND:
	case QUIRE_COMMAND_RELEASE_FRONT:
	case QUIRE_COMMAND_PROMOTE:
	case QUIRE_COMMAND_ABANDON:
		break;
	case QUIRE_COMMAND_SUBMIT:
		return prepare_submit(check, record->line, step_out, &pending->batch);
	case QUIRE_COMMAND_RESET:
		return end_life(check, command->request, named->label, record->line);
	case QUIRE_COMMAND_CLOSE:
		for (label = 0; label < check->streams.num_labels && code == CMD_DONE;
		     label++)
			code = end_life(check, command->request, label, record->line);
		break;
	}
	return code;
}

void cmd_check_given(struct cmd_check *check, const struct cmd_batch *batch,
                     uint64_t index, bool is_on_record)
{
	for (int32_t i = 0; i < batch->num_rows; i++) {
		const struct cmd_row *row = &batch->rows[i];
		struct cmd_stream *stream = stream_of(check, row);

		if (row->is_read && stream != NULL)
			stream->read_by = is_on_record ? 0 : index + 1;
	}
}
