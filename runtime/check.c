/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/memory_impl.h"
#include "runtime/refuse_impl.h"
#include "runtime/runtime_impl.h"

#include <string.h>

static enum quire_status broken(struct quire_refusal *refusal, const char *what,
                                int32_t page)
{
	quire_refuse_what(refusal, QUIRE_BROKEN, what);
	refusal->page = page;
	return QUIRE_BROKEN;
}

static enum quire_status broken_stream(struct quire_runtime *rt,
                                       struct quire_refusal *refusal, const char *what,
                                       const struct quire_request *request,
                                       const struct quire_stream *stream)
{
	quire_refuse_what(refusal, QUIRE_BROKEN, what);
	refusal->request = request->id;
	memcpy(refusal->label, rt->commands.labels.names[stream->label],
	       QUIRE_LABEL_BYTES);
	return QUIRE_BROKEN;
}

/* The names of pages, as the walk meets them. */
struct names {
	int32_t *count; /* [num_pages] */
	int32_t *
		listed; /* [num_pages]: the stream, by its place in the walk, that listed it last */
	int32_t streams; /* walked so far, this one included */
};

/* What readers are told: the changes that are kept. */
static enum quire_status check_changes(struct quire_runtime *rt,
                                       const struct quire_request *request,
                                       const struct quire_stream *stream,
                                       struct quire_refusal *refusal)
{
	const struct quire_stream_shown *shown = &stream->shown;
	uint32_t max = (uint32_t)rt->registry.changes_max;
	uint32_t newest = atomic_load_explicit(&shown->newest, memory_order_relaxed);
	uint32_t n = newest >> 16, place = newest & 0xffff;
	uint64_t newer = rt->planner.step + 1;

	if (stream - request->streams >=
	    atomic_load_explicit(&request->shown_streams, memory_order_relaxed))
		return QUIRE_OK; /* made by a held step */
	if (n == 0 ||
	    atomic_load_explicit(quire_changes_length(&rt->registry, shown, place),
	                         memory_order_relaxed) !=
	            atomic_load_explicit(&shown->length, memory_order_relaxed))
		return broken_stream(rt, refusal,
		                     "the newest change of a stream has another length",
		                     request, stream);
	for (; n > 0; n--, place = (place + max - 1) % max) {
		uint64_t step = atomic_load_explicit(quire_changes_step(shown, place),
		                                     memory_order_relaxed);

		if (step >= newer)
			return broken_stream(rt, refusal,
			                     "changes of a stream are out of order",
			                     request, stream);
		newer = step;
	}
	return QUIRE_OK;
}

/* Rules of one stream; its pages' names are counted. */
static enum quire_status check_stream(struct quire_runtime *rt,
                                      const struct quire_request *request,
                                      const struct quire_stream *stream,
                                      struct names *names, struct quire_refusal *refusal)
{
	int64_t needed = quire_pages_of(&rt->paging, stream->now.length);

	if (stream->now.length < 0 || stream->now.released < 0 ||
	    stream->now.released % rt->page_size != 0 ||
	    (int64_t)stream->now.length + stream->now.released >
	            rt->config.seq_tokens_max)
		return broken_stream(rt, refusal, "lengths of a stream are out of range",
		                     request, stream);
	if (stream->now.num_pages < needed)
		return broken_stream(rt, refusal, "a stream lacks pages for its length",
		                     request, stream);
	if (stream->now.step > rt->planner.step)
		return broken_stream(rt, refusal,
		                     "a stream was changed by a step not planned yet",
		                     request, stream);
	QUIRE_TRY(check_changes(rt, request, stream, refusal));
	names->streams++;
	for (int64_t i = 0; i < stream->now.num_pages; i++) {
		int32_t page = stream->now.pages[i];

		if (page < 0 || page >= rt->num_pages)
			return broken_stream(rt, refusal,
			                     "a stream lists a page that does not exist",
			                     request, stream);
		names->count[page]++;
		if (names->listed[page] == names->streams)
			return broken_stream(rt, refusal, "a stream lists a page twice",
			                     request, stream);
		names->listed[page] = names->streams;
		if (i >= needed && quire_ledger_owners(rt->ledger, page) != 1)
			return broken(refusal, "a spare page has other owners", page);
	}
	return QUIRE_OK;
}

static enum quire_status check_streams(struct quire_runtime *rt, struct names *names,
                                       struct quire_refusal *refusal)
{
	int32_t open = 0;

	for (int32_t r = 0; r < rt->registry.requests_used; r++) {
		const struct quire_request *request = &rt->registry.requests[r];

		if (request->node == NULL)
			continue;
		open++;
		if (quire_registry_find(&rt->registry, request->id) != request)
			return broken(refusal, "an open request is not found by its id",
			              -1);
		for (int32_t s = 0; s < request->num_streams; s++)
			QUIRE_TRY(check_stream(rt, request, &request->streams[s], names,
			                       refusal));
	}
	if (open != rt->registry.num_open)
		return broken(refusal, "the count of open requests is wrong", -1);
	return QUIRE_OK;
}

/* free + retiring + owned = num_pages, where retiring is at most what is on its way, or
 * in the hands of held steps. */
static enum quire_status check_counts(struct quire_runtime *rt,
                                      struct quire_refusal *refusal)
{
	/* Acquire: pairs with the release in the executor.  Read before the pool's count,
	 * so that a release in between can only make `free` larger. */
	uint64_t given =
		atomic_load_explicit(&rt->numbers.pages_given, memory_order_acquire);
	int64_t free = quire_pool_num_free(rt->pool) + rt->planner.num_stash;
	int64_t owned = quire_ledger_owned(rt->ledger);
	int64_t retiring = rt->num_pages - owned - free;

	if (retiring < 0)
		return broken(refusal, "more pages are free and owned than there are",
		              -1);
	if (retiring > (int64_t)(rt->entries.staged - given))
		return broken(refusal,
		              "pages are neither free nor owned nor on their way back",
		              -1);
	return QUIRE_OK;
}

/* Pages that may be taken next: nobody owns them, and each is there once. */
static enum quire_status check_free(struct quire_runtime *rt, const int32_t *pages,
                                    int64_t n, int32_t *names,
                                    struct quire_refusal *refusal)
{
	for (int64_t i = 0; i < n; i++) {
		if (quire_ledger_owners(rt->ledger, pages[i]) != 0)
			return broken(refusal, "a page is both free and owned", pages[i]);
		if (names[pages[i]]++ != 0)
			return broken(refusal, "a page is free twice", pages[i]);
	}
	return QUIRE_OK;
}

/* With everything given back nobody else touches the pool: the FIFO may be walked. */
static enum quire_status check_fifo(struct quire_runtime *rt, int32_t *pages,
                                    int32_t *names, struct quire_refusal *refusal)
{
	int64_t free;

	/* Pairs with the release in the executor: its last free is over. */
	if (atomic_load_explicit(&rt->numbers.pages_given, memory_order_acquire) !=
	    rt->entries.staged)
		return QUIRE_OK;
	free = quire_pool_num_free(rt->pool);
	QUIRE_TRY(quire_pool_check(rt->pool, pages, refusal));
	QUIRE_TRY(check_free(rt, pages, free, names, refusal));
	if (free + rt->planner.num_stash + quire_ledger_owned(rt->ledger) !=
	    rt->num_pages)
		return broken(refusal, "a page is neither free nor owned", -1);
	return QUIRE_OK;
}

/* @names and @pages: room for all pages, zeroed. */
static enum quire_status check_pages(struct quire_runtime *rt, int32_t *names,
                                     int32_t *pages, struct quire_refusal *refusal)
{
	struct quire_planner *planner = &rt->planner;
	struct names walk = {.count = names, .listed = pages};

	names[0] = rt->config.sink;
	if (planner->state == QUIRE_PLANNER_SLOT) /* owned, not yet on a stream */
		for (int32_t i = 0; i < planner->need; i++)
			names[planner->pages[i]]++;
	QUIRE_TRY(check_streams(rt, &walk, refusal));
	QUIRE_TRY(quire_ledger_check(rt->ledger, names, refusal));
	QUIRE_TRY(check_counts(rt, refusal));
	memset(names, 0, (size_t)rt->num_pages * sizeof(*names));
	QUIRE_TRY(check_free(rt, planner->stash, planner->num_stash, names, refusal));
	return check_fifo(rt, pages, names, refusal);
}

enum quire_status quire_check_all(struct quire_runtime *rt, struct quire_refusal *refusal)
{
	const struct quire_memory *memory = &rt->config.hooks.memory;
	enum quire_status status;
	int32_t *names = quire_memory_zeroed(memory, rt->num_pages, sizeof(*names));
	int32_t *pages = quire_memory_zeroed(memory, rt->num_pages, sizeof(*pages));

	*refusal = (struct quire_refusal){.what = "", .index = -1};
	if (names == NULL || pages == NULL)
		status = quire_refuse_what(refusal, QUIRE_NO_MEMORY, "the self-check");
	else
		status = check_pages(rt, names, pages, refusal);
	quire_memory_free(memory, pages, rt->num_pages, sizeof(*pages));
	quire_memory_free(memory, names, rt->num_pages, sizeof(*names));
	return status;
}
