/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/refuse_impl.h"
#include "runtime/runtime_impl.h"

#include <stdlib.h>
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

/* Rules of one stream; its pages' names are counted. */
static enum quire_status check_stream(struct quire_runtime *rt,
                                      const struct quire_request *request,
                                      const struct quire_stream *stream, int32_t *names,
                                      struct quire_refusal *refusal)
{
	int64_t needed = ((int64_t)stream->length + rt->page_size - 1) / rt->page_size;

	if (stream->length < 0 || stream->released < 0 ||
	    stream->released % rt->page_size != 0 ||
	    (int64_t)stream->length + stream->released > rt->config.seq_tokens_max)
		return broken_stream(rt, refusal, "lengths of a stream are out of range",
		                     request, stream);
	if (stream->num_pages < needed)
		return broken_stream(rt, refusal, "a stream lacks pages for its length",
		                     request, stream);
	if (stream->step > rt->planner.step)
		return broken_stream(rt, refusal,
		                     "a stream was changed by a step not planned yet",
		                     request, stream);
	for (int64_t i = 0; i < stream->num_pages; i++) {
		int32_t page = stream->pages[i];

		if (page < 0 || page >= rt->num_pages)
			return broken_stream(rt, refusal,
			                     "a stream lists a page that does not exist",
			                     request, stream);
		names[page]++;
		if (i >= needed && quire_ledger_owners(rt->ledger, page) != 1)
			return broken(refusal, "a spare page has other owners", page);
	}
	return QUIRE_OK;
}

static enum quire_status check_streams(struct quire_runtime *rt, int32_t *names,
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

/* free + retiring + owned = num_pages, where retiring is at most what is on its way. */
static enum quire_status check_counts(struct quire_runtime *rt,
                                      struct quire_refusal *refusal)
{
	/* Acquire: pairs with the release in the executor.  Read before the pool's count,
	 * so that a release in between can only make `free` larger. */
	uint64_t given =
		atomic_load_explicit(&rt->numbers.pages_given, memory_order_acquire);
	int64_t free = quire_pool_num_free(rt->pool);
	int64_t owned = quire_ledger_owned(rt->ledger);
	int64_t retiring = rt->num_pages - owned - free;

	if (retiring < 0)
		return broken(refusal, "more pages are free and owned than there are",
		              -1);
	if (retiring > (int64_t)(rt->entries.released - given))
		return broken(refusal,
		              "pages are neither free nor owned nor on their way back",
		              -1);
	return QUIRE_OK;
}

/* With everything given back nobody else touches the pool: the FIFO may be walked. */
static enum quire_status check_fifo(struct quire_runtime *rt, int32_t *pages,
                                    struct quire_refusal *refusal)
{
	int32_t free;

	/* Pairs with the release in the executor: its last free is over. */
	if (atomic_load_explicit(&rt->numbers.pages_given, memory_order_acquire) !=
	    rt->entries.released)
		return QUIRE_OK;
	free = quire_pool_num_free(rt->pool);
	QUIRE_TRY(quire_pool_check(rt->pool, pages, refusal));
	for (int32_t i = 0; i < free; i++)
		if (quire_ledger_owners(rt->ledger, pages[i]) != 0)
			return broken(refusal, "a page is both free and owned", pages[i]);
	if (free + quire_ledger_owned(rt->ledger) != rt->num_pages)
		return broken(refusal, "a page is neither free nor owned", -1);
	return QUIRE_OK;
}

enum quire_status quire_check_all(struct quire_runtime *rt, struct quire_refusal *refusal)
{
	struct quire_planner *planner = &rt->planner;
	enum quire_status status;
	int32_t *names = calloc((size_t)rt->num_pages, sizeof(*names));
	int32_t *pages = calloc((size_t)rt->num_pages, sizeof(*pages));

	*refusal = (struct quire_refusal){.what = "", .index = -1};
	if (names == NULL || pages == NULL) {
		status = quire_refuse_what(refusal, QUIRE_NO_MEMORY, "the self-check");
		goto out;
	}
	names[0] = rt->config.sink;
	if (planner->state == QUIRE_PLANNER_SLOT) /* owned, not yet on a stream */
		for (int32_t i = 0; i < planner->need; i++)
			names[planner->pages[i]]++;
	status = check_streams(rt, names, refusal);
	if (status == QUIRE_OK)
		status = quire_ledger_check(rt->ledger, names, refusal);
	if (status == QUIRE_OK)
		status = check_counts(rt, refusal);
	if (status == QUIRE_OK)
		status = check_fifo(rt, pages, refusal);
out:
	free(pages);
	free(names);
	return status;
}
