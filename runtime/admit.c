/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/refuse_impl.h"
#include "runtime/runtime_impl.h"

#include <quire/runtime/assert.h>

#include <string.h>

#define PREFETCH_ROWS 8

static enum quire_status refuse_stream(struct quire_runtime *rt,
                                       struct quire_refusal *refusal,
                                       enum quire_status status, const char *what,
                                       const struct quire_segment_in *segment)
{
	quire_refuse_what(refusal, status, what);
	return quire_name_stream(rt, refusal, segment->request, segment->label);
}

/* ------------------------------------------------------------------ form */

/* Does the step name a segment's stream a second time?  Each is met once a ticket. */
static bool met_before(struct quire_planner *planner,
                       const struct quire_command_cell *cell, int32_t segment)
{
	const struct quire_segment_in *wanted = &cell->segments[segment];
	/* Fibonacci hashing, high bits folded in; the table has at most 2^17 places. */
	uint64_t key =
		(wanted->request ^ wanted->request >> 32) * 64 + (uint64_t)wanted->label;

	for (uint64_t probe = key * 0x9e3779b97f4a7c15u >> 40;; probe++) {
		struct quire_met *met = &planner->met[probe & planner->met_mask];
		const struct quire_segment_in *other = &cell->segments[met->segment];

		if (met->ticket != cell->ticket) {
			met->ticket = cell->ticket;
			met->segment = segment;
			return false;
		}
		if (other->request == wanted->request && other->label == wanted->label)
			return true;
	}
}

static enum quire_status check_segments(struct quire_runtime *rt,
                                        const struct quire_command_cell *cell, bool twice,
                                        struct quire_refusal *refusal)
{
	if (cell->num_segments == 0)
		return quire_refuse_bound(refusal, QUIRE_INVALID,
		                          "segments: a step has at least one", -1, 0, 1);
	for (int32_t i = 0; i < cell->num_segments; i++) {
		const struct quire_segment_in *segment = &cell->segments[i];

		if (segment->span < 0)
			return quire_refuse_bound(refusal, QUIRE_INVALID,
			                          "segments: span", i, segment->span, 0);
		if (segment->at < QUIRE_AT_ANY)
			return quire_refuse_bound(refusal, QUIRE_INVALID, "segments: at",
			                          i, segment->at, QUIRE_AT_ANY);
		if (twice && met_before(&rt->planner, cell, i)) {
			refuse_stream(rt, refusal, QUIRE_INVALID,
			              "segments: a stream twice in one step", segment);
			refusal->index = i;
			return QUIRE_INVALID;
		}
		rt->planner.labels[i] = segment->label;
	}
	return QUIRE_OK;
}

/* A label is a target once per list, and never its own source. */
static enum quire_status check_pairs(const struct quire_forks_in *forks, const char *what,
                                     struct quire_refusal *refusal)
{
	uint64_t targets = 0;

	for (int32_t i = 0; i < forks->num; i++) {
		uint64_t target = UINT64_C(1) << forks->target[i];

		if (forks->source[i] == forks->target[i] || (targets & target) != 0)
			return quire_refuse_bound(refusal, QUIRE_INVALID, what, i, 0, 0);
		targets |= target;
	}
	return QUIRE_OK;
}

static enum quire_status check_bucket(const struct quire_runtime *rt,
                                      const struct quire_command_cell *cell,
                                      struct quire_refusal *refusal)
{
	if (cell->bucket_rows == 0 && cell->bucket_tokens == 0)
		return QUIRE_OK;
	if (!rt->config.sink)
		return quire_refuse_what(refusal, QUIRE_INVALID,
		                         "bucket: padding needs a sink");
	if (cell->bucket_rows < 1 || cell->bucket_tokens < 1)
		return quire_refuse_bound(
			refusal, QUIRE_INVALID, "bucket: rows and tokens", -1,
			cell->bucket_rows < 1 ? cell->bucket_rows : cell->bucket_tokens,
			1);
	if (cell->bucket_rows > rt->config.rows_max)
		return quire_refuse_bound(refusal, QUIRE_LIMIT,
		                          "rows_max: rows of a bucket", -1,
		                          cell->bucket_rows, rt->config.rows_max);
	if (cell->bucket_tokens > rt->config.tokens_max)
		return quire_refuse_bound(refusal, QUIRE_LIMIT,
		                          "tokens_max: tokens of a bucket", -1,
		                          cell->bucket_tokens, rt->config.tokens_max);
	return QUIRE_OK;
}

/* Is a number of the built-in work inside [0, bound)?  Named by the entry's place. */
static enum quire_status check_index(struct quire_refusal *refusal, const char *what,
                                     int32_t place, int64_t got, int64_t num)
{
	return quire_check_range(refusal, what, place, got, 0, num - 1);
}

static enum quire_status check_write(const struct quire_runtime *rt,
                                     const struct quire_work *work, int32_t place,
                                     struct quire_refusal *refusal)
{
	const struct quire_geometry *geometry = quire_cache_geometry(rt->config.cache);
	const char *what = NULL;

	if (!quire_cache_takes(rt->config.cache, (enum quire_dtype)work->write.dtype))
		what = "work: dtype: not one that the cache's can be made of";
	else if (work->write.k == NULL)
		what = "work: k is NULL";
	else if (geometry->num_kv == 2 && work->write.v == NULL)
		what = "work: v is NULL";
	else if (geometry->num_kv == 1 && work->write.v != NULL)
		what = "work: v is not NULL, but the layout has none";
	if (what == NULL)
		return QUIRE_OK;
	return quire_refuse_bound(refusal, QUIRE_INVALID, what, place, 0, 0);
}

static enum quire_status check_work_form(const struct quire_runtime *rt,
                                         const struct quire_command_cell *cell,
                                         int32_t place, struct quire_refusal *refusal)
{
	const struct quire_work *work = &cell->work[place];
	int64_t layers = quire_cache_geometry(rt->config.cache)->num_layers;
	int32_t segments = cell->num_segments;

	switch (work->kind) {
	case QUIRE_WORK_WRITE:
		QUIRE_TRY(
			check_index(refusal, "work: layer", place, work->layer, layers));
		QUIRE_TRY(check_index(refusal, "work: table", place, work->write.table,
		                      rt->planner.grouping.num_tables));
		QUIRE_TRY(check_index(refusal, "work: dtype", place, work->write.dtype,
		                      QUIRE_DTYPE_COUNT));
		return check_write(rt, work, place, refusal);
	case QUIRE_WORK_READ:
		QUIRE_TRY(
			check_index(refusal, "work: layer", place, work->layer, layers));
		QUIRE_TRY(check_index(refusal, "work: segment", place, work->read.segment,
		                      segments));
		if (work->read.first < 0 || work->read.count < 0 ||
		    work->read.out == NULL)
			return quire_refuse_bound(refusal, QUIRE_INVALID,
			                          "work: first, count or out of a read",
			                          place, 0, 0);
		return QUIRE_OK;
	case QUIRE_WORK_COPY:
		QUIRE_TRY(check_index(refusal, "work: segment", place,
		                      work->copy.source_segment, segments));
		return check_index(refusal, "work: segment", place,
		                   work->copy.target_segment, segments);
	}
	return quire_refuse_bound(refusal, QUIRE_INVALID, "work: no such kind", place,
	                          work->kind, 0);
}

static enum quire_status check_event(const struct quire_runtime *rt,
                                     const struct quire_event *event, const char *what,
                                     struct quire_refusal *refusal)
{
	if (event != NULL && quire_event_device(event) != rt->device)
		return quire_refuse_what(refusal, QUIRE_INVALID, what);
	return QUIRE_OK;
}

/* What is wrong with a step whatever the state. */
static enum quire_status check_form(struct quire_runtime *rt,
                                    const struct quire_command_cell *cell,
                                    struct quire_refusal *refusal)
{
	if ((cell->flags & ~QUIRE_STEP_FLAGS) != 0)
		return quire_refuse_what(refusal, QUIRE_INVALID, "flags: unknown bits");
	QUIRE_TRY(check_event(rt, cell->wait_event,
	                      "wait_event: of another device than the cache's", refusal));
	QUIRE_TRY(check_event(rt, cell->record_event,
	                      "record_event: of another device than the cache's",
	                      refusal));
	if (cell->run != NULL && cell->num_work > 0)
		return quire_refuse_what(
			refusal, QUIRE_INVALID,
			"run: a step has built-in work or a function, not both");
	QUIRE_TRY(check_segments(rt, cell, false, refusal));
	QUIRE_TRY(check_pairs(&cell->pre_forks,
	                      "pre_forks: a target twice, or its own source", refusal));
	QUIRE_TRY(check_pairs(&cell->post_forks,
	                      "post_forks: a target twice, or its own source", refusal));
	QUIRE_TRY(check_bucket(rt, cell, refusal));
	QUIRE_TRY(quire_grouping_init(
		&rt->planner.grouping, rt->planner.labels, cell->num_segments,
		cell->combined, cell->num_combined, rt->config.tables_max, refusal));
	for (int32_t i = 0; i < cell->num_work; i++)
		QUIRE_TRY(check_work_form(rt, cell, i, refusal));
	return QUIRE_OK;
}

/* ------------------------------------------------------------ the draft */

/*
 * What the step would make of the streams, in numbers: lengths, and pages to take.
 * Streams that it makes are there while it is drafted; a stream's list and owners stay as
 * they are, and `more` says how many owners a page would have gained by then.
 */

static void prefetch_row(const struct quire_planner *planner, int32_t i, int32_t n)
{
	if (i >= n || planner->rows[i].request == NULL)
		return;
	__builtin_prefetch(planner->rows[i].request);
	__builtin_prefetch(planner->rows[i].stream);
}

/* A row's request.  Most steps have the rows of the one before. */
static enum quire_status find_request(struct quire_runtime *rt,
                                      const struct quire_segment_in *segment,
                                      struct quire_row *row,
                                      struct quire_refusal *refusal)
{
	if (row->request == NULL || row->request->id != segment->request)
		row->request = quire_registry_find(&rt->registry, segment->request);
	if (row->request == NULL)
		return refuse_stream(rt, refusal, QUIRE_NO_REQUEST, "", segment);
	return QUIRE_OK;
}

static enum quire_status find_requests(struct quire_runtime *rt,
                                       const struct quire_command_cell *cell,
                                       struct quire_refusal *refusal)
{
	struct quire_planner *planner = &rt->planner;

	planner->num_batch = 0;
	for (int32_t i = 0; i < cell->num_segments; i++) {
		struct quire_row *row = &planner->rows[i];

		QUIRE_TRY(find_request(rt, &cell->segments[i], row, refusal));
		if (row->request->met == cell->ticket)
			continue;
		row->request->met = cell->ticket;
		planner->batch[planner->num_batch++] = row->request;
	}
	return QUIRE_OK;
}

/* Count pages that a stream takes; whose first one does not fit is remembered. */
static void count_pages(struct quire_planner *planner, int64_t n, uint64_t request,
                        int32_t label)
{
	bool fitted = planner->need <= planner->fits;

	planner->need += n;
	if (planner->need <= planner->fits || !fitted)
		return;
	planner->short_request = request;
	planner->short_label = label;
}

static int32_t *more_owners(struct quire_planner *planner, uint64_t ticket, int32_t page)
{
	struct quire_more_owners *more = &planner->more[page];

	if (more->ticket != ticket)
		*more = (struct quire_more_owners){.ticket = ticket};
	return &more->more;
}

/* Only forks draft streams. */
static bool is_drafted(const struct quire_command_cell *cell,
                       const struct quire_stream *stream)
{
	return cell->pre_forks.num > 0 && stream->draft.ticket == cell->ticket;
}

static struct quire_draft *draft_of(struct quire_stream *stream, uint64_t ticket)
{
	if (stream->draft.ticket != ticket)
		stream->draft = (struct quire_draft){
			.ticket = ticket,
			.length = stream->now.length,
			.released = stream->now.released,
			.pages = stream->now.pages,
		};
	return &stream->draft;
}

/* A request's stream of a label, made when it is not there. */
static enum quire_status find_or_add(struct quire_runtime *rt,
                                     struct quire_request *request, int32_t label,
                                     struct quire_stream **stream_out,
                                     struct quire_refusal *refusal)
{
	*stream_out = quire_request_find(request, label);
	if (*stream_out != NULL)
		return QUIRE_OK;
	*stream_out = quire_request_add(&rt->registry, request, label);
	if (*stream_out != NULL) {
		rt->planner.made[rt->planner.num_made++] = request;
		return QUIRE_OK;
	}
	quire_refuse_bound(refusal, QUIRE_LIMIT,
	                   "request_labels_max: labels of a request", -1,
	                   (int64_t)rt->config.request_labels_max + 1,
	                   rt->config.request_labels_max);
	return quire_name_stream(rt, refusal, request->id, label);
}

/* The target's names go to what it gets. */
static void draft_owners(struct quire_planner *planner, uint64_t ticket, int32_t shared,
                         const struct quire_draft *from,
                         const struct quire_stream *target)
{
	for (int32_t i = 0; i < shared; i++)
		++*more_owners(planner, ticket, from->pages[i]);
	for (int32_t i = 0; i < target->now.num_pages; i++)
		--*more_owners(planner, ticket, target->now.pages[i]);
}

/* One pair of a fork list, for one request.  Owners matter to the writes behind it. */
static enum quire_status draft_fork(struct quire_runtime *rt,
                                    const struct quire_command_cell *cell,
                                    struct quire_request *request, int32_t source_label,
                                    int32_t target_label, bool before_writes,
                                    struct quire_refusal *refusal)
{
	struct quire_planner *planner = &rt->planner;
	struct quire_stream *source = quire_request_find(request, source_label);
	struct quire_stream *target;
	struct quire_draft *from, *to;
	int32_t shared;
	bool forked;

	if (source == NULL)
		return QUIRE_OK;
	QUIRE_TRY(find_or_add(rt, request, target_label, &target, refusal));
	from = draft_of(source, cell->ticket);
	to = draft_of(target, cell->ticket);
	shared = quire_fork_shares(rt, cell, from->length);
	count_pages(planner, quire_pages_of(&rt->paging, from->length) - shared,
	            request->id, target_label);
	if (before_writes)
		draft_owners(planner, cell->ticket, shared, from, target);
	forked = before_writes || to->forked; /* when the step writes */
	*to = *from;
	to->forked = forked;
	return QUIRE_OK;
}

static enum quire_status draft_forks(struct quire_runtime *rt,
                                     const struct quire_command_cell *cell,
                                     const struct quire_forks_in *forks,
                                     struct quire_refusal *refusal)
{
	for (int32_t i = 0; i < forks->num; i++)
		for (int32_t r = 0; r < rt->planner.num_batch; r++)
			QUIRE_TRY(draft_fork(rt, cell, rt->planner.batch[r],
			                     forks->source[i], forks->target[i],
			                     forks == &cell->pre_forks, refusal));
	return QUIRE_OK;
}

/* The pages that a row with a span takes.  What a fork of this step gave it is its own
 * from the first page that it writes. */
static void draft_pages(struct quire_runtime *rt, const struct quire_command_cell *cell,
                        const struct quire_segment_in *segment, struct quire_row *row)
{
	const struct quire_stream *stream = row->stream;
	int32_t *more, end = row->length + segment->span;
	int32_t listed = stream->now.num_pages,
		first = quire_page_of(&rt->paging, row->length);
	bool forked = is_drafted(cell, stream) && stream->draft.forked;

	if (forked)
		listed = quire_pages_of(&rt->paging, row->length);
	row->need = quire_pages_of(&rt->paging, end) - listed;
	if (row->need < 0)
		row->need = 0;
	if (!forked && first < listed && rt->planner.sharing) {
		int32_t page = stream->now.pages[first];

		more = more_owners(&rt->planner, cell->ticket, page);
		row->first_write = quire_ledger_owners(rt->ledger, page) + *more > 1;
		*more -= row->first_write;
		row->need += row->first_write;
	}
	count_pages(&rt->planner, row->need, segment->request, segment->label);
}

static void add_row(struct quire_runtime *rt, const struct quire_segment_in *segment,
                    int32_t end)
{
	struct quire_planner *planner = &rt->planner;
	struct quire_table_size *size =
		&planner->sizes[planner->grouping.table_of[segment->label]];
	int32_t pages = quire_pages_of(&rt->paging, end);

	size->rows++;
	size->tokens += segment->span;
	size->pages += pages;
	if (planner->widest < pages)
		planner->widest = pages;
}

static enum quire_status draft_segment(struct quire_runtime *rt,
                                       const struct quire_command_cell *cell,
                                       const struct quire_segment_in *segment,
                                       struct quire_row *row,
                                       struct quire_refusal *refusal)
{
	int64_t end;
	int32_t released = 0;

	row->stream = quire_request_find(row->request, segment->label);
	row->length = row->need = 0;
	row->first_write = false;
	if (row->stream == NULL && segment->span == 0)
		return refuse_stream(rt, refusal, QUIRE_NO_LABEL, "", segment);
	if (row->stream != NULL) {
		bool drafted = is_drafted(cell, row->stream);

		row->length =
			drafted ? row->stream->draft.length : row->stream->now.length;
		released =
			drafted ? row->stream->draft.released : row->stream->now.released;
	}
	if (segment->at != QUIRE_AT_ANY && segment->at != row->length) {
		refuse_stream(rt, refusal, QUIRE_STALE, "at", segment);
		refusal->expected = segment->at;
		refusal->got = row->length;
		return QUIRE_STALE;
	}
	if (row->stream == NULL)
		QUIRE_TRY(find_or_add(rt, row->request, segment->label, &row->stream,
		                      refusal));
	if (row->stream->met == cell->ticket)
		return quire_refuse_what(refusal, QUIRE_INVALID, ""); /* named below */
	row->stream->met = cell->ticket;
	end = (int64_t)row->length + segment->span;
	if (released + end > rt->config.seq_tokens_max) {
		refuse_stream(rt, refusal, QUIRE_LIMIT,
		              "seq_tokens_max: tokens of a stream", segment);
		refusal->got = released + end;
		refusal->expected = rt->config.seq_tokens_max;
		return QUIRE_LIMIT;
	}
	if (segment->span > 0)
		draft_pages(rt, cell, segment, row);
	add_row(rt, segment, (int32_t)end);
	return QUIRE_OK;
}

static enum quire_status draft(struct quire_runtime *rt,
                               const struct quire_command_cell *cell,
                               struct quire_refusal *refusal)
{
	struct quire_planner *planner = &rt->planner;
	bool commit = (cell->flags & QUIRE_STEP_NO_COMMIT) == 0;

	planner->need = 0;
	planner->num_made = 0;
	planner->widest = 0;
	memset(planner->sizes, 0, sizeof(planner->sizes));
	planner->fits = rt->num_pages - quire_ledger_owned(rt->ledger);
	planner->sharing = cell->pre_forks.num > 0 || quire_ledger_extra(rt->ledger) > 0;
	if (cell->pre_forks.num + cell->post_forks.num > 0)
		QUIRE_TRY(find_requests(rt, cell, refusal));
	QUIRE_TRY(draft_forks(rt, cell, &cell->pre_forks, refusal));
	for (int32_t i = 0; i < cell->num_segments; i++) {
		prefetch_row(planner, i + PREFETCH_ROWS, cell->num_segments);
		QUIRE_TRY(
			find_request(rt, &cell->segments[i], &planner->rows[i], refusal));
		QUIRE_TRY(draft_segment(rt, cell, &cell->segments[i], &planner->rows[i],
		                        refusal));
	}
	if (cell->post_forks.num == 0)
		return QUIRE_OK;
	for (int32_t i = 0; i < cell->num_segments; i++)
		draft_of(planner->rows[i].stream, cell->ticket)->length +=
			commit ? cell->segments[i].span : 0;
	return draft_forks(rt, cell, &cell->post_forks, refusal);
}

/* The streams that the draft made go; the step will make them when it is carried out. */
static void end_draft(struct quire_planner *planner,
                      const struct quire_command_cell *cell)
{
	if (planner->num_made == 0)
		return;
	for (int32_t i = 0; i < planner->num_made; i++)
		planner->made[i]->num_streams--;
	for (int32_t i = 0; i < cell->num_segments; i++) {
		struct quire_row *row = &planner->rows[i];

		if (row->request != NULL &&
		    row->stream >= row->request->streams + row->request->num_streams)
			row->stream = NULL;
	}
}

/* ------------------------------------------------------------ sizes, work, pages */

/* The pages of a row once its span is written. */
static int64_t row_pages(const struct quire_runtime *rt,
                         const struct quire_command_cell *cell, int32_t segment)
{
	return quire_pages_of(&rt->paging, rt->planner.rows[segment].length +
	                                           cell->segments[segment].span);
}

/* Do the tables' tokens fit a slot, and the bucket the tables? */
static enum quire_status check_tables(const struct quire_runtime *rt,
                                      const struct quire_command_cell *cell,
                                      struct quire_refusal *refusal)
{
	for (int32_t t = 0; t < rt->planner.grouping.num_tables; t++) {
		const struct quire_table_size *size = &rt->planner.sizes[t];

		if (size->tokens > rt->config.tokens_max)
			return quire_refuse_bound(refusal, QUIRE_LIMIT,
			                          "tokens_max: tokens of a table", -1,
			                          size->tokens, rt->config.tokens_max);
		if (cell->bucket_rows > 0 && size->rows > cell->bucket_rows)
			return quire_refuse_bound(refusal, QUIRE_INVALID,
			                          "bucket: too few rows", -1,
			                          cell->bucket_rows, size->rows);
		if (cell->bucket_rows > 0 && size->tokens > cell->bucket_tokens)
			return quire_refuse_bound(refusal, QUIRE_INVALID,
			                          "bucket: too few tokens", -1,
			                          cell->bucket_tokens, size->tokens);
	}
	return QUIRE_OK;
}

static bool have_room(const struct quire_runtime *rt)
{
	for (int32_t t = 0; t < rt->planner.grouping.num_tables; t++)
		if (rt->planner.sizes[t].pages > rt->config.table_pages_max)
			return false;
	return rt->config.block_width == 0 ||
	       rt->planner.widest <= rt->config.block_width;
}

/* Do the tables' pages fit a slot?  Asked last: a step that the pool cannot hold is told
 * so.  Named is the first row that does not. */
static enum quire_status check_room(const struct quire_runtime *rt,
                                    const struct quire_command_cell *cell,
                                    struct quire_refusal *refusal)
{
	int64_t pages[QUIRE_TABLES_MAX] = {0};
	int64_t block_width = rt->config.block_width;

	if (have_room(rt))
		return QUIRE_OK;
	for (int32_t i = 0; i < cell->num_segments; i++) {
		int32_t t = rt->planner.grouping.table_of[cell->segments[i].label];
		int64_t width = row_pages(rt, cell, i);

		pages[t] += width;
		if (block_width > 0 && width > block_width)
			return quire_refuse_bound(refusal, QUIRE_LIMIT,
			                          "block_width: pages of a row", i, width,
			                          block_width);
		if (pages[t] > rt->config.table_pages_max)
			return quire_refuse_bound(refusal, QUIRE_LIMIT,
			                          "table_pages_max: pages of a table", i,
			                          pages[t], rt->config.table_pages_max);
	}
	QUIRE_ASSERT(false);
	return QUIRE_OK;
}

/* Will another stream own a page of a row, too, when the step's work runs? */
static bool is_shared(struct quire_runtime *rt, const struct quire_command_cell *cell,
                      int32_t segment, int32_t place)
{
	struct quire_planner *planner = &rt->planner;
	const struct quire_row *row = &planner->rows[segment];
	int32_t first = quire_page_of(&rt->paging, row->length);

	if (is_drafted(cell, row->stream) && row->stream->draft.forked)
		return place < quire_fork_shares(rt, cell, row->length);
	if (!planner->sharing || place >= row->stream->now.num_pages ||
	    (row->first_write && place == first))
		return false;
	return quire_ledger_owners(rt->ledger, row->stream->now.pages[place]) +
	               *more_owners(planner, cell->ticket,
	                            row->stream->now.pages[place]) >
	       1;
}

static enum quire_status check_copy(struct quire_runtime *rt,
                                    const struct quire_command_cell *cell, int32_t place,
                                    struct quire_refusal *refusal)
{
	const struct quire_work *work = &cell->work[place];

	QUIRE_TRY(check_index(refusal, "work: source_page", place, work->copy.source_page,
	                      row_pages(rt, cell, work->copy.source_segment)));
	QUIRE_TRY(check_index(refusal, "work: target_page", place, work->copy.target_page,
	                      row_pages(rt, cell, work->copy.target_segment)));
	if (is_shared(rt, cell, work->copy.target_segment, work->copy.target_page))
		return quire_refuse_bound(refusal, QUIRE_INVALID,
		                          "work: target_page: another stream owns it too",
		                          place, 0, 0);
	return QUIRE_OK;
}

/* Does the built-in work stay inside its streams? */
static enum quire_status check_work(struct quire_runtime *rt,
                                    const struct quire_command_cell *cell,
                                    struct quire_refusal *refusal)
{
	for (int32_t i = 0; i < cell->num_work; i++) {
		const struct quire_work *work = &cell->work[i];
		int32_t segment = work->read.segment;

		if (work->kind == QUIRE_WORK_READ) {
			int64_t end = (int64_t)rt->planner.rows[segment].length +
			              cell->segments[segment].span;

			if ((int64_t)work->read.first + work->read.count > end)
				return quire_refuse_bound(
					refusal, QUIRE_INVALID, "work: tokens of a read",
					i, (int64_t)work->read.first + work->read.count,
					end);
		}
		if (work->kind == QUIRE_WORK_COPY)
			QUIRE_TRY(check_copy(rt, cell, i, refusal));
	}
	return QUIRE_OK;
}

/* Does the step fit by the planner's own count?  Releases on their way do not matter
 * here. */
static enum quire_status check_pages(struct quire_runtime *rt,
                                     struct quire_refusal *refusal)
{
	const struct quire_planner *planner = &rt->planner;

	if (planner->need <= planner->fits)
		return QUIRE_OK;
	quire_refuse_what(refusal, QUIRE_NO_PAGES, "");
	refusal->requested = planner->need;
	refusal->available = planner->fits;
	refusal->pages_short = planner->need - planner->fits;
	return quire_name_stream(rt, refusal, planner->short_request,
	                         planner->short_label);
}

static enum quire_status check_draft(struct quire_runtime *rt,
                                     const struct quire_command_cell *cell,
                                     struct quire_refusal *refusal)
{
	QUIRE_TRY(draft(rt, cell, refusal));
	QUIRE_TRY(check_tables(rt, cell, refusal));
	QUIRE_TRY(check_work(rt, cell, refusal));
	QUIRE_TRY(check_pages(rt, refusal));
	return check_room(rt, cell, refusal);
}

/*
 * The faults are found in one walk over the rows.  Which of several is named is settled
 * after it, for steps that are refused anyway: a stream that is there twice is a fault of
 * form, and a request that is not there comes before what is wrong with a stream.
 */
enum quire_status quire_admit(struct quire_runtime *rt,
                              const struct quire_command_cell *cell,
                              struct quire_refusal *refusal)
{
	enum quire_status form = check_form(rt, cell, refusal), status = form;
	struct quire_refusal first;

	if (form == QUIRE_OK) {
		status = check_draft(rt, cell, refusal);
		end_draft(&rt->planner, cell);
	}
	if (status == QUIRE_OK)
		return QUIRE_OK;
	first = *refusal;
	QUIRE_TRY(check_segments(rt, cell, true, refusal));
	if (form == QUIRE_OK)
		QUIRE_TRY(find_requests(rt, cell, refusal));
	*refusal = first;
	return status;
}
