/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/refuse_impl.h"
#include "runtime/runtime_impl.h"

#include <quire/runtime/assert.h>

#include <string.h>

static int64_t ceil_div(int64_t a, int64_t b)
{
	return (a + b - 1) / b;
}

static enum quire_status refuse_stream(struct quire_runtime *rt,
                                       struct quire_refusal *refusal,
                                       enum quire_status status, const char *what,
                                       const struct quire_segment_in *segment)
{
	quire_refuse_what(refusal, status, what);
	refusal->request = segment->request;
	memcpy(refusal->label, rt->commands.labels.names[segment->label],
	       QUIRE_LABEL_BYTES);
	return status;
}

/* ------------------------------------------------------------------ the undo log */

/* Remember a stream before the step changes it. */
static void note(struct quire_planner *planner, const struct quire_row *row, bool created)
{
	planner->undo[planner->num_undo++] = (struct quire_undo){
		.request = row->request,
		.stream = row->stream,
		.generation = row->stream->generation,
		.step = row->stream->step,
		.length = row->stream->length,
		.num_pages = row->stream->num_pages,
		.created = created,
	};
}

void quire_undo_all(struct quire_planner *planner)
{
	while (planner->num_undo > 0) {
		const struct quire_undo *undo = &planner->undo[--planner->num_undo];

		undo->stream->generation = undo->generation;
		undo->stream->step = undo->step;
		undo->stream->length = undo->length;
		undo->stream->num_pages = undo->num_pages;
		if (undo->created)
			quire_request_remove(undo->request);
	}
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
                                        const struct quire_command_cell *cell,
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
		if (met_before(&rt->planner, cell, i)) {
			refuse_stream(rt, refusal, QUIRE_INVALID,
			              "segments: a stream twice in one step", segment);
			refusal->index = i;
			return QUIRE_INVALID;
		}
		rt->planner.labels[i] = segment->label;
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

/* What is wrong with a step whatever the state. */
static enum quire_status check_form(struct quire_runtime *rt,
                                    const struct quire_command_cell *cell,
                                    struct quire_refusal *refusal)
{
	if (cell->flags & ~(uint32_t)(QUIRE_STEP_NO_COMMIT | QUIRE_STEP_NO_WAIT))
		return quire_refuse_what(refusal, QUIRE_INVALID, "flags: unknown bits");
	if (cell->run != NULL && cell->num_work > 0)
		return quire_refuse_what(
			refusal, QUIRE_INVALID,
			"run: a step has built-in work or a function, not both");
	QUIRE_TRY(check_segments(rt, cell, refusal));
	QUIRE_TRY(check_bucket(rt, cell, refusal));
	QUIRE_TRY(quire_grouping_init(
		&rt->planner.grouping, rt->planner.labels, cell->num_segments,
		cell->combined, cell->num_combined, rt->config.tables_max, refusal));
	for (int32_t i = 0; i < cell->num_work; i++)
		QUIRE_TRY(check_work_form(rt, cell, i, refusal));
	return QUIRE_OK;
}

/* ------------------------------------------------------------ requests, segments */

static enum quire_status find_requests(struct quire_runtime *rt,
                                       const struct quire_command_cell *cell,
                                       struct quire_refusal *refusal)
{
	for (int32_t i = 0; i < cell->num_segments; i++) {
		struct quire_row *row = &rt->planner.rows[i];

		row->request =
			quire_registry_find(&rt->registry, cell->segments[i].request);
		if (row->request == NULL)
			return refuse_stream(rt, refusal, QUIRE_NO_REQUEST, "",
			                     &cell->segments[i]);
	}
	return QUIRE_OK;
}

static enum quire_status extend(struct quire_runtime *rt,
                                const struct quire_segment_in *segment,
                                struct quire_row *row, struct quire_refusal *refusal)
{
	int64_t end;
	bool created = false;

	row->stream = quire_request_find(row->request, segment->label);
	if (row->stream == NULL && segment->span == 0)
		return refuse_stream(rt, refusal, QUIRE_NO_LABEL, "", segment);
	row->length = row->stream == NULL ? 0 : row->stream->length;
	if (segment->at != QUIRE_AT_ANY && segment->at != row->length) {
		refuse_stream(rt, refusal, QUIRE_STALE, "at", segment);
		refusal->expected = segment->at;
		refusal->got = row->length;
		return QUIRE_STALE;
	}
	if (row->stream == NULL) {
		row->stream =
			quire_request_add(&rt->registry, row->request, segment->label);
		created = true;
	}
	if (row->stream == NULL) {
		refuse_stream(rt, refusal, QUIRE_LIMIT,
		              "request_labels_max: labels of a request", segment);
		refusal->got = refusal->expected = rt->config.request_labels_max;
		refusal->got++;
		return QUIRE_LIMIT;
	}
	note(&rt->planner, row, created);
	end = (int64_t)row->length + segment->span;
	if (row->stream->released + end > rt->config.seq_tokens_max) {
		refuse_stream(rt, refusal, QUIRE_LIMIT,
		              "seq_tokens_max: tokens of a stream", segment);
		refusal->got = row->stream->released + end;
		refusal->expected = rt->config.seq_tokens_max;
		return QUIRE_LIMIT;
	}
	row->need = 0;
	if (segment->span > 0 && ceil_div(end, rt->page_size) > row->stream->num_pages)
		row->need =
			(int32_t)ceil_div(end, rt->page_size) - row->stream->num_pages;
	return QUIRE_OK;
}

/* ------------------------------------------------------------ sizes, work, pages */

/* The pages of a row once its span is written. */
static int64_t row_pages(const struct quire_runtime *rt,
                         const struct quire_command_cell *cell, int32_t segment)
{
	return ceil_div((int64_t)rt->planner.rows[segment].length +
	                        cell->segments[segment].span,
	                rt->page_size);
}

/* Do the tables' tokens fit a slot, and the bucket the tables? */
static enum quire_status check_tables(const struct quire_runtime *rt,
                                      const struct quire_command_cell *cell,
                                      struct quire_refusal *refusal)
{
	int64_t rows[QUIRE_TABLES_MAX] = {0};
	int64_t tokens[QUIRE_TABLES_MAX] = {0};

	for (int32_t i = 0; i < cell->num_segments; i++) {
		int32_t t = rt->planner.grouping.table_of[cell->segments[i].label];

		rows[t]++;
		tokens[t] += cell->segments[i].span;
	}
	for (int32_t t = 0; t < rt->planner.grouping.num_tables; t++) {
		if (tokens[t] > rt->config.tokens_max)
			return quire_refuse_bound(refusal, QUIRE_LIMIT,
			                          "tokens_max: tokens of a table", -1,
			                          tokens[t], rt->config.tokens_max);
		if (cell->bucket_rows > 0 && rows[t] > cell->bucket_rows)
			return quire_refuse_bound(refusal, QUIRE_INVALID,
			                          "bucket: too few rows", -1,
			                          cell->bucket_rows, rows[t]);
		if (cell->bucket_rows > 0 && tokens[t] > cell->bucket_tokens)
			return quire_refuse_bound(refusal, QUIRE_INVALID,
			                          "bucket: too few tokens", -1,
			                          cell->bucket_tokens, tokens[t]);
	}
	return QUIRE_OK;
}

/* Do the tables' pages fit a slot?  Asked last: a step that the pool cannot hold is told
 * so. */
static enum quire_status check_room(const struct quire_runtime *rt,
                                    const struct quire_command_cell *cell,
                                    struct quire_refusal *refusal)
{
	int64_t pages[QUIRE_TABLES_MAX] = {0};
	int64_t block_width = rt->config.block_width;

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
	return QUIRE_OK;
}

/* Does the built-in work stay inside its streams? */
static enum quire_status check_work(const struct quire_runtime *rt,
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
		if (work->kind == QUIRE_WORK_COPY) {
			QUIRE_TRY(check_index(
				refusal, "work: source_page", i, work->copy.source_page,
				row_pages(rt, cell, work->copy.source_segment)));
			QUIRE_TRY(check_index(
				refusal, "work: target_page", i, work->copy.target_page,
				row_pages(rt, cell, work->copy.target_segment)));
		}
	}
	return QUIRE_OK;
}

/* Does the step fit by the planner's own count?  Releases on their way do not matter
 * here. */
static enum quire_status count_pages(struct quire_runtime *rt,
                                     const struct quire_command_cell *cell,
                                     struct quire_refusal *refusal)
{
	int64_t fits = rt->num_pages - quire_ledger_owned(rt->ledger);
	int64_t need = 0;
	int32_t first = -1; /* the segment of the first page that does not fit */

	for (int32_t i = 0; i < cell->num_segments; i++) {
		need += rt->planner.rows[i].need;
		if (need > fits && first < 0)
			first = i;
	}
	if (need > fits) {
		refuse_stream(rt, refusal, QUIRE_NO_PAGES, "", &cell->segments[first]);
		refusal->requested = need;
		refusal->available = fits;
		refusal->pages_short = need - fits;
		return QUIRE_NO_PAGES;
	}
	rt->planner.need = (int32_t)need;
	return QUIRE_OK;
}

static enum quire_status admit(struct quire_runtime *rt,
                               const struct quire_command_cell *cell,
                               struct quire_refusal *refusal)
{
	QUIRE_TRY(check_form(rt, cell, refusal));
	QUIRE_TRY(find_requests(rt, cell, refusal));
	for (int32_t i = 0; i < cell->num_segments; i++)
		QUIRE_TRY(extend(rt, &cell->segments[i], &rt->planner.rows[i], refusal));
	QUIRE_TRY(check_tables(rt, cell, refusal));
	QUIRE_TRY(check_work(rt, cell, refusal));
	QUIRE_TRY(count_pages(rt, cell, refusal));
	return check_room(rt, cell, refusal);
}

enum quire_status quire_admit(struct quire_runtime *rt,
                              const struct quire_command_cell *cell,
                              struct quire_refusal *refusal)
{
	enum quire_status status;

	QUIRE_ASSERT(rt->planner.num_undo == 0);
	status = admit(rt, cell, refusal);
	if (status != QUIRE_OK)
		quire_undo_all(&rt->planner);
	return status;
}
