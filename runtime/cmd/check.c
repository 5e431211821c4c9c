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
	free(check->scratch);
	free(check);
}

/* ------------------------------------------------------------------ compare */

int cmd_check_compare(struct cmd_check *check, uint64_t request, int32_t label,
                      int64_t life, int64_t count, const char *rows, int64_t line)
{
	uint64_t seed = cmd_pattern_seed(request, label, (uint64_t)life);
	int64_t layer_bytes = count * check->geometry->token_bytes;
	struct cmd_pattern_fault fault;

	for (int64_t layer = 0; layer < check->geometry->num_layers; layer++) {
		if (cmd_pattern_compare(&check->pattern, seed, layer, count,
		                        rows + layer * layer_bytes, check->scratch,
		                        &fault))
			continue;
		cmd_tell(check->run->file, line,
		         "request %" PRIu64 " label \"%s\" token %" PRId64
		         " layer %" PRId64 " %s head %" PRId64 " dim %" PRId64
		         ": expected %" PRId32 ", got %s%" PRId64,
		         request, check->streams.labels[label], fault.position, layer,
		         fault.is_value ? "V" : "K", fault.head, fault.dim,
		         fault.expected, fault.got_is_integer ? "" : "bits ", fault.got);
		return CMD_FAILED;
	}
	check->counts.rows++;
	check->counts.tokens += count;
	return CMD_DONE;
}

/* ------------------------------------------------------------------ lives */

/* A life is over: was all of it read?  The step that was to read it may be refused. */
static int end_life(struct cmd_check *check, uint64_t request, int32_t label,
                    int64_t line)
{
	struct cmd_stream *stream = cmd_streams_find(&check->streams, request, label);
	struct quire_outcome outcome;
	int code = CMD_DONE;

	if (stream == NULL)
		return CMD_DONE;
	if (stream->read_ticket != 0 &&
	    cmd_run_wait(check->run, stream->read_ticket, QUIRE_STAGE_PLANNED,
	                 &outcome) == QUIRE_OK &&
	    outcome.refusal.status != QUIRE_OK)
		stream->unread = true;
	if (stream->unread) {
		code = cmd_run_settle_all(check->run);
		if (code == CMD_DONE)
			code = cmd_check_read_now(check, stream, line);
	}
	cmd_streams_drop(&check->streams, stream);
	return code;
}

int cmd_check_finish(struct cmd_check *check)
{
	const struct cmd_stream *stream;
	int code = CMD_DONE;

	while (code == CMD_DONE && (stream = cmd_streams_any(&check->streams)) != NULL)
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

/* Note every row of a step: where it starts, and whether it is to be read. */
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
		                                             : stream->length,
			.commits = (step->flags & QUIRE_STEP_NO_COMMIT) == 0,
			.is_last = cmd_streams_is_last(&check->streams, stream),
			.is_due = stream->since_read >= READ_STEPS,
			.seed = cmd_pattern_seed(segment->request, label,
		                                 (uint64_t)stream->life),
		};
		batch->num_rows++;
	}
	return CMD_DONE;
}

static bool starts_anywhere(const struct quire_step *step)
{
	for (int32_t i = 0; i < step->num_segments; i++) {
		if (step->segments[i].at == QUIRE_AT_ANY)
			return true;
	}
	return false;
}

/* Steps that are settled make room for the buffers of this one. */
static int make_room(struct cmd_check *check, int64_t bytes)
{
	int code = CMD_DONE;

	while (code == CMD_DONE && check->bytes > 0 &&
	       check->bytes + bytes > BYTES_ON_THE_WAY)
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

static int prepare_step(struct cmd_check *check, const struct quire_trace_record *record,
                        struct quire_step *step_out, struct cmd_batch *batch)
{
	enum cmd_plan_result result;
	int code = note_rows(check, step_out, batch);

	if (code != CMD_DONE || batch->num_rows < step_out->num_segments)
		return code;
	result = cmd_batch_plan(batch, step_out, &check->streams, check->geometry,
	                        check->tokens_most);
	if (result == CMD_PLAN_TOO_WIDE) {
		cmd_tell(check->run->file, record->line,
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

static int prepare_submit(struct cmd_check *check,
                          const struct quire_trace_record *record,
                          struct quire_step *step_out, struct cmd_batch **batch_out)
{
	struct cmd_batch *batch;
	int code = CMD_DONE;

	/* Lengths are known once all outcomes are. */
	if (starts_anywhere(step_out))
		code = cmd_run_settle_all(check->run);
	if (code != CMD_DONE)
		return code;
	batch = cmd_batch_create(quire_cache_device(check->cache),
	                         step_out->num_segments);
	if (batch == NULL)
		return cmd_check_refuse_memory();
	code = prepare_step(check, record, step_out, batch);
	if (code == CMD_DONE)
		*batch_out = batch;
	else
		cmd_batch_free(batch);
	return code;
}

int cmd_check_prepare(struct cmd_check *check, const struct quire_trace_record *record,
                      struct quire_step *step_out, struct cmd_batch **batch_out)
{
	const struct quire_command *command = &record->command;
	int32_t label;
	int code = CMD_DONE;

	if (cmd_run_is_refused(check->run, record))
		return CMD_DONE;
	switch (command->kind) {
	case QUIRE_COMMAND_OPEN:
		break;
	case QUIRE_COMMAND_SUBMIT:
		return prepare_submit(check, record, step_out, batch_out);
	case QUIRE_COMMAND_RESET:
		label = cmd_streams_label(&check->streams, command->label);
		return end_life(check, command->request, label, record->line);
	case QUIRE_COMMAND_CLOSE:
		for (label = 0; label < check->streams.num_labels && code == CMD_DONE;
		     label++)
			code = end_life(check, command->request, label, record->line);
		break;
	}
	return code;
}

void cmd_check_given(struct cmd_check *check, const struct cmd_batch *batch,
                     uint64_t ticket, bool is_on_record)
{
	for (int32_t i = 0; i < batch->num_rows; i++) {
		const struct cmd_row *row = &batch->rows[i];

		if (row->is_read)
			stream_of(check, row)->read_ticket = is_on_record ? 0 : ticket;
	}
}

/* ------------------------------------------------------------------ settle */

static int settle_row(struct cmd_check *check, const struct cmd_row *row, int64_t line,
                      enum quire_status status)
{
	struct cmd_stream *stream = stream_of(check, row);

	if (status != QUIRE_OK) {
		if (stream != NULL && row->is_read)
			stream->unread = true;
		return CMD_DONE;
	}
	if (stream != NULL && row->commits)
		stream->length = row->start + row->span;
	if (!row->is_read)
		return CMD_DONE;
	return cmd_check_compare(check, row->request, row->label, row->life,
	                         row->start + row->span, row->out, line);
}

int cmd_check_settle(struct cmd_check *check, struct cmd_batch *batch, int64_t line,
                     enum quire_status status)
{
	int code = CMD_DONE;

	for (int32_t i = 0; i < batch->num_rows && code == CMD_DONE; i++)
		code = settle_row(check, &batch->rows[i], line, status);
	if (batch->buffer != NULL)
		check->bytes -= batch->bytes;
	cmd_batch_free(batch);
	return code;
}
