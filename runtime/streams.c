/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/refuse_impl.h"
#include "runtime/runtime_impl.h"

/* The commands that change streams at once: everything but steps. */

enum quire_status quire_command_open(struct quire_runtime *rt,
                                     const struct quire_command_cell *cell,
                                     struct quire_refusal *refusal)
{
	if (quire_registry_find(&rt->registry, cell->request) != NULL)
		return QUIRE_OK;
	if (quire_registry_open(&rt->registry, cell->request) == QUIRE_OK)
		return QUIRE_OK;
	quire_refuse_bound(refusal, QUIRE_LIMIT, "requests_max: open requests", -1,
	                   (int64_t)rt->config.requests_max + 1, rt->config.requests_max);
	refusal->request = cell->request;
	return QUIRE_LIMIT;
}

static enum quire_status find_request(struct quire_runtime *rt,
                                      const struct quire_command_cell *cell,
                                      struct quire_request **request_out,
                                      struct quire_refusal *refusal)
{
	*request_out = quire_registry_find(&rt->registry, cell->request);
	if (*request_out != NULL)
		return QUIRE_OK;
	quire_refuse_what(refusal, QUIRE_NO_REQUEST, "");
	refusal->request = cell->request;
	return QUIRE_NO_REQUEST;
}

static enum quire_status find_stream(struct quire_runtime *rt,
                                     const struct quire_command_cell *cell,
                                     struct quire_request **request_out,
                                     struct quire_stream **stream_out,
                                     struct quire_refusal *refusal)
{
	QUIRE_TRY(find_request(rt, cell, request_out, refusal));
	*stream_out = quire_request_find(*request_out, cell->label);
	if (*stream_out != NULL)
		return QUIRE_OK;
	quire_refuse_what(refusal, QUIRE_NO_LABEL, "");
	return quire_name_stream(rt, refusal, cell->request, cell->label);
}

enum quire_status quire_command_close(struct quire_runtime *rt,
                                      const struct quire_command_cell *cell,
                                      struct quire_refusal *refusal)
{
	struct quire_request *request;

	QUIRE_TRY(find_request(rt, cell, &request, refusal));
	for (int32_t s = 0; s < request->num_streams; s++) {
		struct quire_stream *stream = &request->streams[s];

		quire_give_up(rt, stream->now.pages, stream->now.num_pages);
		stream->now.generation++;
	}
	quire_registry_close(&rt->registry, request);
	return QUIRE_OK;
}

/* Pages of a list from a place on: those with other owners are given up, the others are
 * kept, in order, behind @kept pages that planner.list holds already.  Returns all that
 * are kept. */
static int32_t keep_own(struct quire_runtime *rt, const struct quire_stream *stream,
                        int32_t first, int32_t kept)
{
	for (int32_t i = first; i < stream->now.num_pages; i++) {
		int32_t page = stream->now.pages[i];

		if (quire_ledger_owners(rt->ledger, page) > 1)
			quire_give_up(rt, &page, 1);
		else
			rt->planner.list[kept++] = page;
	}
	return kept;
}

/* The command's change of a stream is complete; @pages and @size: its block before. */
static void show_change(struct quire_runtime *rt, struct quire_request *request,
                        struct quire_stream *stream, int32_t *pages, int32_t size)
{
	stream->now.generation++;
	stream->now.step = rt->planner.step;
	quire_stream_show(&rt->registry, request, stream, &stream->now);
	if (stream->now.pages != pages)
		quire_list_free(&rt->registry.lists, pages, size);
}

/* The list becomes planner.list; readers may be copying the old one. */
static void set_list(struct quire_runtime *rt, struct quire_stream *stream, int32_t n)
{
	if (n < stream->now.num_pages)
		quire_stream_replace(&rt->registry, stream, rt->planner.list, n, n,
		                     stream->now.pages);
}

enum quire_status quire_command_reset(struct quire_runtime *rt,
                                      const struct quire_command_cell *cell,
                                      struct quire_refusal *refusal)
{
	struct quire_request *request;
	struct quire_stream *stream;
	struct quire_stream_state before;

	QUIRE_TRY(find_stream(rt, cell, &request, &stream, refusal));
	before = stream->now;
	stream->now.length = stream->now.released = 0;
	if (cell->keep_pages != 0) {
		set_list(rt, stream, keep_own(rt, stream, 0, 0));
	} else {
		quire_give_up(rt, stream->now.pages, stream->now.num_pages);
		stream->now.num_pages = 0; /* shown before the block is written again */
		quire_stream_rename_list(&rt->registry, stream);
	}
	show_change(rt, request, stream, before.pages, before.size);
	return QUIRE_OK;
}

/* Are a command's tokens within a stream's length? */
static enum quire_status check_tokens(struct quire_runtime *rt,
                                      const struct quire_command_cell *cell,
                                      const struct quire_stream *stream,
                                      struct quire_refusal *refusal)
{
	if (quire_check_range(refusal, "tokens", -1, cell->tokens, 0,
	                      stream->now.length) == QUIRE_OK)
		return QUIRE_OK;
	return quire_name_stream(rt, refusal, cell->request, cell->label);
}

enum quire_status quire_command_rewind(struct quire_runtime *rt,
                                       const struct quire_command_cell *cell,
                                       struct quire_refusal *refusal)
{
	struct quire_request *request;
	struct quire_stream *stream;
	struct quire_stream_state before;
	int32_t needed;

	QUIRE_TRY(find_stream(rt, cell, &request, &stream, refusal));
	QUIRE_TRY(check_tokens(rt, cell, stream, refusal));
	before = stream->now;
	stream->now.length -= cell->tokens;
	needed = quire_pages_of(&rt->paging, stream->now.length);
	if (needed > 0)
		memcpy(rt->planner.list, before.pages, (size_t)needed * sizeof(int32_t));
	set_list(rt, stream, keep_own(rt, stream, needed, needed));
	show_change(rt, request, stream, before.pages, before.size);
	return QUIRE_OK;
}

enum quire_status quire_command_release_front(struct quire_runtime *rt,
                                              const struct quire_command_cell *cell,
                                              struct quire_refusal *refusal,
                                              int32_t *released_out)
{
	struct quire_request *request;
	struct quire_stream *stream;
	struct quire_stream_state before;
	int32_t n, needed;

	QUIRE_TRY(find_stream(rt, cell, &request, &stream, refusal));
	QUIRE_TRY(check_tokens(rt, cell, stream, refusal));
	before = stream->now;
	needed = quire_pages_of(&rt->paging, before.length);
	n = quire_page_of(&rt->paging, cell->tokens);
	if (needed > 0 && n > needed - 1) /* the last page stays */
		n = needed - 1;
	if (n > 0) {
		quire_give_up(rt, before.pages, n);
		quire_stream_replace(&rt->registry, stream, before.pages + n,
		                     before.num_pages - n, before.num_pages - n,
		                     before.pages);
	}
	stream->now.length -= n * rt->page_size;
	stream->now.released += n * rt->page_size;
	show_change(rt, request, stream, before.pages, before.size);
	*released_out = n;
	return QUIRE_OK;
}
