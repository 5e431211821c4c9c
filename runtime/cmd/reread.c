/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/check_impl.h"

#include <inttypes.h>
#include <stdlib.h>

static enum quire_status queue_reads(struct cmd_check *check,
                                     const struct quire_slots *slots, char *rows)
{
	int64_t layer_bytes = slots->n * check->geometry->token_bytes;
	enum quire_status status = QUIRE_OK;

	for (int64_t layer = 0; layer < check->geometry->num_layers && status == QUIRE_OK;
	     layer++)
		status = quire_cache_read_tokens(check->cache, check->dstream, layer,
		                                 slots, rows + layer * layer_bytes, NULL);
	return status == QUIRE_OK ? quire_dstream_synchronize(check->dstream, NULL)
	                          : status;
}

static int read_with(struct cmd_check *check, const struct cmd_content *content,
                     int32_t *pages, int64_t num_pages, char *rows, int64_t line)
{
	const char *label = check->streams.labels[content->label];
	struct quire_slots slots = {.page = pages, .n = content->length};
	struct quire_snapshot snapshot = {.length = 0};
	enum quire_status status =
		quire_runtime_snapshot(check->run->runtime, content->request, label,
	                               &snapshot, pages, num_pages);

	if (status != QUIRE_OK || snapshot.length != content->length ||
	    snapshot.released != content->released) {
		cmd_tell(check->run->file, line,
		         "request %" PRIu64 " label \"%s\": expected %" PRId64
		         " tokens behind %" PRId64 ", the runtime has %" PRId64
		         " behind %" PRId64 " (%s)",
		         content->request, label, content->length, content->released,
		         snapshot.length, snapshot.released, quire_status_text(status));
		return CMD_FAILED;
	}
	status = queue_reads(check, &slots, rows);
	if (status != QUIRE_OK) {
		cmd_tell(check->run->file, line, "reading request %" PRIu64 " failed: %s",
		         content->request, quire_status_text(status));
		return CMD_FAILED;
	}
	return cmd_check_compare(check, content, NULL, rows, line);
}

int cmd_check_read_now(struct cmd_check *check, const struct cmd_stream *stream,
                       int64_t line)
{
	const struct quire_geometry *geometry = check->geometry;
	struct quire_device *device = quire_cache_device(check->cache);
	const struct cmd_content *content =
		cmd_contents_find(&check->contents, stream->request, stream->label);
	int64_t num_pages, pages_bytes, rows_bytes;
	int32_t *pages;
	char *rows;
	int code;

	if (content == NULL || content->length == 0)
		return CMD_DONE;
	num_pages = (content->length + geometry->page_size - 1) / geometry->page_size;
	pages_bytes = num_pages * (int64_t)sizeof(int32_t);
	rows_bytes = geometry->num_layers * content->length * geometry->token_bytes;
	pages = cmd_memory_alloc(device, pages_bytes);
	rows = cmd_memory_alloc(device, rows_bytes);
	if (pages == NULL || rows == NULL)
		code = cmd_check_refuse_memory();
	else
		code = read_with(check, content, pages, num_pages, rows, line);
	cmd_memory_release(device, rows, rows_bytes);
	cmd_memory_release(device, pages, pages_bytes);
	return code;
}
