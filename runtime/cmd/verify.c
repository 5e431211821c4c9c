/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/check_impl.h"

#include <inttypes.h>

/* ------------------------------------------------------------------ compare */

/* Where a part of a stream's tokens lies in what was read. */
struct part {
	const struct cmd_content *content;
	struct cmd_piece piece;
	int64_t at;    /* the stream's live token that it begins with */
	int64_t count; /* tokens read, of one layer */
};

static int tell_difference(struct cmd_check *check, const struct part *part,
                           const struct cmd_pattern_fault *fault, int64_t layer,
                           int64_t line)
{
	const struct cmd_content *content = part->content;

	cmd_tell(check->run->file, line,
	         "request %" PRIu64 " label \"%s\" token %" PRId64 " layer %" PRId64
	         " %s head %" PRId64 " dim %" PRId64 ": expected %" PRId32
	         ", got %s%" PRId64,
	         content->request, check->streams.labels[content->label],
	         content->released + part->at + fault->position, layer,
	         fault->is_value ? "V" : "K", fault->head, fault->dim, fault->expected,
	         fault->got_is_integer ? "" : "bits ", fault->got);
	return CMD_FAILED;
}

static int compare_part(struct cmd_check *check, const struct part *part,
                        const char *rows, int64_t line)
{
	int64_t token_bytes = check->geometry->token_bytes;
	struct cmd_pattern_fault fault;

	for (int64_t layer = 0; layer < check->geometry->num_layers; layer++) {
		if (!cmd_pattern_compare(&check->pattern, part->piece.seed,
		                         part->piece.first, layer, part->piece.count,
		                         rows + (layer * part->count + part->at) *
		                                         token_bytes,
		                         check->scratch, &fault))
			return tell_difference(check, part, &fault, layer, line);
	}
	return CMD_DONE;
}

int cmd_check_compare(struct cmd_check *check, const struct cmd_content *content,
                      const struct cmd_piece *more, const char *rows, int64_t line)
{
	struct part part = {.content = content, .count = content->length};
	int code = CMD_DONE;

	if (more != NULL)
		part.count += more->count;
	for (int32_t i = 0; i < content->num && code == CMD_DONE; i++) {
		part.piece = content->pieces[i];
		code = compare_part(check, &part, rows, line);
		part.at += part.piece.count;
	}
	if (code == CMD_DONE && more != NULL) {
		part.piece = *more;
		code = compare_part(check, &part, rows, line);
	}
	if (code != CMD_DONE)
		return code;
	check->counts.rows++;
	check->counts.tokens += part.count;
	return CMD_DONE;
}

/* ------------------------------------------------------------------ a step */

/* A target gets what its source holds, for every request of the step.  That a request has
 * several rows does no harm: a source is never its own target. */
static int fork_contents(struct cmd_check *check, const struct cmd_batch *batch,
                         const struct cmd_fork_ids *fork)
{
	for (int32_t i = 0; i < batch->num_rows; i++) {
		uint64_t request = batch->rows[i].request;
		const struct cmd_content *source =
			cmd_contents_find(&check->contents, request, fork->source);
		struct cmd_content *target;

		if (source == NULL)
			continue;
		target = cmd_contents_make(&check->contents, request, fork->target);
		if (target == NULL || !cmd_content_copy(target, source))
			return cmd_check_refuse_memory();
	}
	return CMD_DONE;
}

static int fork_all(struct cmd_check *check, const struct cmd_batch *batch,
                    const struct cmd_fork_ids *forks, int32_t num)
{
	int code = CMD_DONE;

	for (int32_t i = 0; i < num && code == CMD_DONE; i++)
		code = fork_contents(check, batch, &forks[i]);
	return code;
}

/* What a row read, and what it leaves. */
static int settle_row(struct cmd_check *check, const struct cmd_row *row, bool commits,
                      int64_t line)
{
	const struct cmd_piece piece = {
		.seed = row->seed, .first = row->first, .count = row->span};
	struct cmd_content *content =
		cmd_contents_make(&check->contents, row->request, row->label);
	int code = CMD_DONE;

	if (content == NULL)
		return cmd_check_refuse_memory();
	if (row->is_read && row->start != content->length) {
		cmd_tell(check->run->file, line,
		         "request %" PRIu64 " label \"%s\": the step found %" PRId64
		         " tokens, expected %" PRId64,
		         row->request, check->streams.labels[row->label], row->start,
		         content->length);
		return CMD_FAILED;
	}
	if (row->is_read)
		code = cmd_check_compare(check, content, &piece, row->out, line);
	if (code == CMD_DONE && commits && !cmd_content_append(content, &piece))
		code = cmd_check_refuse_memory();
	return code;
}

static int settle_step(struct cmd_check *check, const struct cmd_batch *batch,
                       int64_t line)
{
	int code = fork_all(check, batch, batch->pre_forks, batch->num_pre_forks);

	for (int32_t i = 0; i < batch->num_rows && code == CMD_DONE; i++)
		code = settle_row(check, &batch->rows[i], batch->commits, line);
	if (code == CMD_DONE)
		code = fork_all(check, batch, batch->post_forks, batch->num_post_forks);
	return code;
}

/* A refused step read nothing. */
static void miss_reads(struct cmd_check *check, const struct cmd_batch *batch)
{
	for (int32_t i = 0; i < batch->num_rows; i++) {
		const struct cmd_row *row = &batch->rows[i];
		struct cmd_stream *stream =
			cmd_streams_find(&check->streams, row->request, row->label);

		if (row->is_read && stream != NULL && stream->life == row->life)
			stream->unread = true;
	}
}

/* ------------------------------------------------------------------ settle */

static int64_t pages_from_front(const struct cmd_check *check,
                                const struct cmd_content *content, int64_t tokens)
{
	int64_t page_size = check->geometry->page_size;
	int64_t pages = (content->length + page_size - 1) / page_size;

	if (pages > 0 && tokens / page_size > pages - 1)
		return pages - 1;
	return tokens / page_size;
}

/* What other commands do to what a stream holds. */
static int settle_named(struct cmd_check *check, enum quire_command_kind kind,
                        const struct cmd_named *named)
{
	struct cmd_contents *contents = &check->contents;
	struct cmd_content *content =
		cmd_contents_find(contents, named->request, named->label);

	switch (kind) {
	case QUIRE_COMMAND_OPEN:
		return cmd_contents_make(contents, named->request, named->label) != NULL
		               ? CMD_DONE
		               : cmd_check_refuse_memory();
	case QUIRE_COMMAND_CLOSE:
		for (int32_t label = 0; label < check->streams.num_labels; label++)
			cmd_contents_drop(
				contents,
				cmd_contents_find(contents, named->request, label));
		break;
	case QUIRE_COMMAND_RESET:
		if (content != NULL)
			cmd_content_clear(content);
		break;
	case QUIRE_COMMAND_REWIND:
		if (content != NULL && named->tokens <= content->length)
			cmd_content_cut_end(content, named->tokens);
		break;
	case QUIRE_COMMAND_RELEASE_FRONT:
		if (content != NULL && named->tokens <= content->length)
			cmd_content_cut_front(
				content, pages_from_front(check, content, named->tokens) *
						 check->geometry->page_size);
		break;
	case QUIRE_COMMAND_SUBMIT:
	case QUIRE_COMMAND_PROMOTE:
	case QUIRE_COMMAND_ABANDON:
		break;
	}
	return CMD_DONE;
}

int cmd_check_settle(struct cmd_check *check, struct cmd_pending *pending,
                     enum quire_status status)
{
	struct cmd_batch *batch = pending->batch;
	int code = CMD_DONE;

	/* Refused on record, it wrote no pattern; that is no divergence where the record may
	 * be of later fates. */
	check->is_lost |= batch == NULL && status == QUIRE_OK &&
	                  pending->kind == QUIRE_COMMAND_SUBMIT;
	if (batch == NULL)
		return status == QUIRE_OK
		               ? settle_named(check, pending->kind, &pending->named)
		               : CMD_DONE;
	if (check->is_lost)
		code = CMD_DONE;
	else if (status == QUIRE_OK)
		code = settle_step(check, batch, pending->line);
	else
		miss_reads(check, batch);
	if (batch->buffer != NULL)
		check->bytes -= batch->bytes;
	pending->batch = NULL;
	cmd_batch_free(batch);
	return code;
}
