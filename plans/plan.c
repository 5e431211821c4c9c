/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <quire/plans/plan.h>

#include "plans/paging_impl.h"
#include "runtime/refuse_impl.h"

#include <quire/runtime/assert.h>

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define ALIGNMENT 64

_Static_assert(QUIRE_LABELS_MAX <= 64, "a set of labels is one 64-bit word");
_Static_assert(QUIRE_TABLES_MAX <= INT8_MAX, "table_of holds a table's number in 8 bits");
_Static_assert(QUIRE_LABELS_MAX <= UINT8_MAX, "members holds a label id in 8 bits");

static enum quire_status check_limits(const struct quire_slot_limits *limits,
                                      struct quire_refusal *refusal_out)
{
	const struct {
		const char *name;
		int64_t value, min, max;
	} bounds[] = {
		{"tables_max", limits->tables_max, 1, QUIRE_TABLES_MAX},
		{"rows_max", limits->rows_max, 1, QUIRE_ROWS_MAX},
		{"tokens_max", limits->tokens_max, 1, QUIRE_TOKENS_MAX},
		{"pages_max", limits->pages_max, limits->block_width > 0 ? 0 : 1,
	         INT32_MAX},
		{"block_width", limits->block_width, 0, QUIRE_PAGES_MAX},
		{"copies_max", limits->copies_max, 0, QUIRE_PAGES_MAX},
		{"work_max", limits->work_max, 0, QUIRE_WORK_MAX},
		{"user_bytes", limits->user_bytes, 0, QUIRE_USER_BYTES_MAX},
	};

	for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
		int64_t value = bounds[i].value;

		if (value < bounds[i].min || value > bounds[i].max)
			return quire_refuse_bound(
				refusal_out, QUIRE_INVALID, bounds[i].name, -1, value,
				value < bounds[i].min ? bounds[i].min : bounds[i].max);
	}
	return QUIRE_OK;
}

/* Reserve @bytes at the end so far, which stays a multiple of ALIGNMENT. */
static int64_t place(int64_t *end, int64_t bytes)
{
	int64_t offset = *end;

	*end += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	return offset;
}

enum quire_status quire_slot_layout_init(const struct quire_slot_limits *limits,
                                         struct quire_slot_layout *layout_out,
                                         struct quire_refusal *refusal_out)
{
	struct quire_slot_layout layout = {.limits = *limits};
	enum quire_status status = check_limits(limits, refusal_out);
	int64_t rows = limits->rows_max;
	int64_t tokens = limits->tokens_max;
	int64_t end = 0;

	if (status != QUIRE_OK)
		return status;
	layout.qo_indptr = place(&end, (rows + 1) * 4);
	layout.kv_indptr = place(&end, (rows + 1) * 4);
	layout.kv_indices = place(&end, limits->pages_max * 4);
	layout.kv_last_page_len = place(&end, rows * 4);
	layout.last_token = place(&end, rows * 4);
	layout.slot_page = place(&end, tokens * 4);
	layout.slot_offset = place(&end, tokens * 4);
	layout.position = place(&end, tokens * 4);
	layout.row_request = place(&end, rows * 8);
	layout.row_tag = place(&end, rows * 8);
	layout.row_label = place(&end, rows * 4);
	layout.block_table = place(&end, rows * limits->block_width * 4);
	layout.table_bytes = end;
	end *= limits->tables_max;
	layout.copy_source = place(&end, (limits->copies_max + limits->work_max) * 4);
	layout.copy_target = place(&end, (limits->copies_max + limits->work_max) * 4);
	layout.copy_end = place(&end, (limits->copies_max + limits->work_max) * 4);
	layout.user = place(&end, limits->user_bytes);
	layout.slot_bytes = end;
	*layout_out = layout;
	return QUIRE_OK;
}

/* Whatever both halves hold: all of the row is written next time. */
static void forget_row(struct quire_block_row *row, int32_t block_width)
{
	row->list = 0;
	row->pages = block_width;
}

static void bind_table(struct quire_table *table, const struct quire_slot_layout *layout,
                       char *base, struct quire_block_row *block_rows)
{
	table->qo_indptr = (int32_t *)(base + layout->qo_indptr);
	table->kv_indptr = (int32_t *)(base + layout->kv_indptr);
	if (layout->limits.pages_max > 0)
		table->kv_indices = (int32_t *)(base + layout->kv_indices);
	table->kv_last_page_len = (int32_t *)(base + layout->kv_last_page_len);
	table->last_token = (int32_t *)(base + layout->last_token);
	table->slot_page = (int32_t *)(base + layout->slot_page);
	table->slot_offset = (int32_t *)(base + layout->slot_offset);
	table->position = (int32_t *)(base + layout->position);
	table->row_request = (int64_t *)(base + layout->row_request);
	table->row_tag = (uint64_t *)(base + layout->row_tag);
	table->row_label = (int32_t *)(base + layout->row_label);
	if (layout->limits.block_width == 0)
		return;
	table->block_table = (int32_t *)(base + layout->block_table);
	table->block_rows = block_rows;
	for (int64_t row = 0; row < layout->limits.rows_max; row++)
		forget_row(&block_rows[row], (int32_t)layout->limits.block_width);
}

void quire_plan_bind(struct quire_plan *plan, const struct quire_slot_layout *layout,
                     char *host, char *device, struct quire_block_row *block_rows)
{
	memset(plan, 0, sizeof(*plan));
	plan->block_width = (int32_t)layout->limits.block_width;
	plan->copy_source = (int32_t *)(host + layout->copy_source);
	plan->copy_target = (int32_t *)(host + layout->copy_target);
	plan->copy_end = (int32_t *)(host + layout->copy_end);
	plan->user = host + layout->user;
	plan->user_bytes = layout->limits.user_bytes;
	plan->host = host;
	plan->device = device;
	for (int64_t t = 0; t < layout->limits.tables_max; t++)
		bind_table(&plan->tables[t], layout, host + t * layout->table_bytes,
		           block_rows == NULL ? NULL
		                              : block_rows + t * layout->limits.rows_max);
}

void quire_plan_forget(struct quire_plan *plan)
{
	for (int32_t t = 0; t < plan->num_tables && plan->block_width > 0; t++)
		for (int32_t row = 0; row < plan->tables[t].bucket_rows; row++)
			forget_row(&plan->tables[t].block_rows[row], plan->block_width);
}

static inline uint64_t label_bit(int32_t label)
{
	QUIRE_ASSERT(label >= 0 && label < QUIRE_LABELS_MAX);
	return UINT64_C(1) << label;
}

/*
 * What is wrong with a combined label, or NULL.  @present: labels that have a segment; @taken:
 * labels of the lists before, this one's are added.
 */
static const char *combined_fault(const struct quire_combined_ids *combined,
                                  uint64_t present, uint64_t *taken)
{
	uint64_t own = 0;

	if (combined->num_labels < 1 || combined->num_labels > QUIRE_LABELS_MAX)
		return "combined: no labels, or too many";
	for (int32_t i = 0; i < combined->num_labels; i++) {
		uint64_t bit = label_bit(combined->labels[i]);

		if ((present & bit) == 0)
			return "combined: a label without a segment";
		if ((*taken & bit) != 0)
			return "combined: a label that stands there already";
		*taken |= bit;
		own |= bit;
	}
	if ((label_bit(combined->name) & present & ~own) != 0)
		return "combined: the name is a label outside the list";
	return NULL;
}

static void add_table(struct quire_grouping *grouping, int32_t name,
                      const int32_t *labels, int32_t num_labels)
{
	int32_t t = grouping->num_tables++;

	grouping->name[t] = name;
	grouping->num_members[t] = num_labels;
	for (int32_t i = 0; i < num_labels; i++) {
		grouping->members[t][i] = (uint8_t)labels[i];
		grouping->table_of[labels[i]] = (int8_t)t;
	}
}

enum quire_status quire_grouping_init(struct quire_grouping *grouping,
                                      const int32_t *labels, int32_t num_segments,
                                      const struct quire_combined_ids *combined,
                                      int32_t num_combined, int32_t tables_max,
                                      struct quire_refusal *refusal_out)
{
	uint64_t present = 0, taken = 0, names = 0;
	int32_t num_tables;

	for (int32_t i = 0; i < num_segments; i++)
		present |= label_bit(labels[i]);
	for (int32_t i = 0; i < num_combined; i++) {
		uint64_t name = label_bit(combined[i].name);

		const char *fault = combined_fault(&combined[i], present, &taken);

		if (fault == NULL && (names & name) != 0)
			fault = "combined: a name twice";
		if (fault != NULL)
			return quire_refuse_bound(refusal_out, QUIRE_INVALID, fault, i, 0,
			                          0);
		names |= name;
	}
	num_tables = num_combined + __builtin_popcountll(present & ~taken);
	if (num_tables > tables_max)
		return quire_refuse_bound(refusal_out, QUIRE_LIMIT, "tables_max", -1,
		                          num_tables, tables_max);
	QUIRE_ASSERT(num_tables <= QUIRE_TABLES_MAX);

	memset(grouping->table_of, -1, sizeof(grouping->table_of));
	grouping->num_tables = 0;
	for (int32_t i = 0; i < num_combined; i++)
		add_table(grouping, combined[i].name, combined[i].labels,
		          combined[i].num_labels);
	for (int32_t i = 0; i < num_segments && grouping->num_tables < num_tables; i++) {
		if (grouping->table_of[labels[i]] < 0)
			add_table(grouping, labels[i], &labels[i], 1);
	}
	return QUIRE_OK;
}

/* Where the next row of one label goes in its table. */
struct cursor {
	struct quire_table *table;
	int32_t row;
	int32_t token;
	int32_t page;
};

/* The slots of a row with any span: page by page. */
static void put_tokens(struct quire_table *table, int32_t token,
                       const struct quire_paging *page, const struct quire_view *view)
{
	int32_t g = view->length - view->span;
	int32_t p = quire_page_of(page, g);
	int32_t offset = g - p * page->size;

	while (g < view->length) {
		int32_t run = page->size - offset;
		int32_t id = view->pages[p++];

		if (run > view->length - g)
			run = view->length - g;
		for (int32_t j = 0; j < run; j++) {
			table->slot_page[token + j] = id;
			table->slot_offset[token + j] = offset + j;
			table->position[token + j] = view->released + g + j;
		}
		token += run;
		g += run;
		offset = 0;
	}
}

/* A row that had this list before only gets what differs: a longer or shorter end. */
static void put_block_row(struct quire_table *table, int32_t row, uint64_t list,
                          const int32_t *ids, int32_t pages, int32_t block_width)
{
	int32_t *entries = table->block_table + (int64_t)row * block_width;
	struct quire_block_row *before = &table->block_rows[row];
	int32_t kept = 0;

	QUIRE_ASSERT(pages <= block_width);
	if (list != 0 && before->list == list)
		kept = pages < before->pages ? pages : before->pages;
	if (pages > kept)
		memcpy(entries + kept, ids + kept, (size_t)(pages - kept) * 4);
	if (before->pages > pages)
		memset(entries + pages, 0, (size_t)(before->pages - pages) * 4);
	*before = (struct quire_block_row){
		.list = list,
		.pages = pages,
		.first = kept,
		.end = pages > before->pages ? pages : before->pages,
	};
}

/* A slot has been read by the executor since it was written last, and is too large for the
 * nearest caches: its lines are asked for so many bytes ahead, for writing. */
#define AHEAD_BYTES 2048
#define LINE_BYTES  64

static inline void put_indices(int32_t *indices, const int32_t *pages, int32_t n)
{
	size_t bytes = (size_t)n * 4;

	/* Past the end too: it is a hint, and no access. */
	for (size_t at = 0; at < bytes; at += LINE_BYTES)
		__builtin_prefetch((void *)((uintptr_t)indices + AHEAD_BYTES + at), 1);
	memcpy(indices, pages, bytes);
}

static inline void put_row(struct cursor *at, const struct quire_paging *page,
                           const struct quire_view *view, int32_t block_width)
{
	struct quire_table *table = at->table;
	int32_t row = at->row++;
	int32_t pages = quire_pages_of(page, view->length);
	int32_t last_page_len = view->length - (pages - 1) * page->size;

	if (pages > 0 && table->kv_indices != NULL)
		put_indices(table->kv_indices + at->page, view->pages, pages);
	if (view->span == 1) {
		table->slot_page[at->token] = view->pages[pages - 1];
		table->slot_offset[at->token] = last_page_len - 1;
		table->position[at->token] = view->released + view->length - 1;
	} else {
		put_tokens(table, at->token, page, view);
	}
	at->token += view->span;
	at->page += pages;
	table->qo_indptr[row + 1] = at->token;
	table->kv_indptr[row + 1] = at->page;
	table->kv_last_page_len[row] = last_page_len;
	table->last_token[row] = view->span > 0 ? at->token - 1 : -1;
	table->row_request[row] = (int64_t)view->request;
	table->row_tag[row] = view->tag;
	table->row_label[row] = view->label;
	if (block_width > 0)
		put_block_row(table, row, view->list, view->pages, pages, block_width);
}

/* Turn the sizes of labels into their first places: members of one table lie behind each
 * other. */
static void start_members(const struct quire_grouping *grouping, int32_t t,
                          struct cursor *cursors)
{
	struct cursor next = {.table = cursors[grouping->members[t][0]].table};

	for (int32_t m = 0; m < grouping->num_members[t]; m++) {
		struct cursor *cursor = &cursors[grouping->members[t][m]];
		struct cursor size = *cursor;

		*cursor = next;
		next.row += size.row;
		next.token += size.token;
		next.page += size.page;
	}
}

static void start_cursors(struct quire_plan *plan, const struct quire_grouping *grouping,
                          const struct quire_view *views, int32_t num_views,
                          const struct quire_paging *page, struct cursor *cursors)
{
	bool combined = false;

	for (int32_t t = 0; t < grouping->num_tables; t++) {
		for (int32_t m = 0; m < grouping->num_members[t]; m++)
			cursors[grouping->members[t][m]] =
				(struct cursor){.table = &plan->tables[t]};
		combined = combined || grouping->num_members[t] > 1;
	}
	if (!combined)
		return;
	for (int32_t i = 0; i < num_views; i++) {
		cursors[views[i].label].row++;
		cursors[views[i].label].token += views[i].span;
		cursors[views[i].label].page += quire_pages_of(page, views[i].length);
	}
	for (int32_t t = 0; t < grouping->num_tables; t++)
		start_members(grouping, t, cursors);
}

static void pad_rows(struct quire_table *table, int32_t page_size, int32_t block_width)
{
	for (int32_t row = table->rows; row < table->bucket_rows; row++) {
		table->qo_indptr[row + 1] = table->tokens;
		table->kv_indptr[row + 1] = table->pages;
		table->kv_last_page_len[row] = page_size;
		table->last_token[row] = -1;
		table->row_request[row] = -1;
		table->row_tag[row] = 0;
		table->row_label[row] = -1;
	}
	for (int32_t row = table->rows; block_width > 0 && row < table->bucket_rows;
	     row++)
		put_block_row(table, row, 0, NULL, 0, block_width);
}

/* Padding tokens go to page 0, offset 0, position 0: the sink. */
static void pad_tokens(struct quire_table *table)
{
	size_t bytes = (size_t)(table->bucket_tokens - table->tokens) * 4;

	memset(table->slot_page + table->tokens, 0, bytes);
	memset(table->slot_offset + table->tokens, 0, bytes);
	memset(table->position + table->tokens, 0, bytes);
}

/* The last member's cursor has come to the end of the table. */
static void finish_table(struct quire_table *table, const struct cursor *end,
                         int32_t bucket_rows, int32_t bucket_tokens)
{
	table->rows = end->row;
	table->tokens = end->token;
	table->pages = end->page;
	table->bucket_rows = bucket_rows > 0 ? bucket_rows : end->row;
	table->bucket_tokens = bucket_rows > 0 ? bucket_tokens : end->token;
	QUIRE_ASSERT(table->rows <= table->bucket_rows);
	QUIRE_ASSERT(table->tokens <= table->bucket_tokens);
}

void quire_plan_build(struct quire_plan *plan, const struct quire_grouping *grouping,
                      const struct quire_view *views, int32_t num_views,
                      int32_t page_size, int32_t bucket_rows, int32_t bucket_tokens,
                      int32_t *row_of_view)
{
	const struct quire_paging page = quire_paging_of(page_size);
	struct cursor cursors[QUIRE_LABELS_MAX];

	QUIRE_ASSERT(page_size >= 1 && num_views >= 0);
	plan->page_size = page_size;
	plan->num_tables = grouping->num_tables;
	for (int32_t t = 0; t < grouping->num_tables; t++) {
		plan->tables[t].qo_indptr[0] = 0;
		plan->tables[t].kv_indptr[0] = 0;
	}
	start_cursors(plan, grouping, views, num_views, &page, cursors);
	for (int32_t i = 0; i < num_views; i++) {
		struct cursor *cursor = &cursors[views[i].label];

		QUIRE_ASSERT(views[i].span >= 0 && views[i].span <= views[i].length);
		if (row_of_view != NULL)
			row_of_view[i] = cursor->row;
		put_row(cursor, &page, &views[i], plan->block_width);
	}
	for (int32_t t = 0; t < grouping->num_tables; t++) {
		struct quire_table *table = &plan->tables[t];
		int32_t last = grouping->members[t][grouping->num_members[t] - 1];

		table->name = grouping->name[t];
		finish_table(table, &cursors[last], bucket_rows, bucket_tokens);
		pad_rows(table, page_size, plan->block_width);
		pad_tokens(table);
	}
}

/* What quire_plan_ranges has so far. */
struct range_list {
	const struct quire_plan *plan;
	struct quire_slot_range *ranges;
	int32_t count;
};

static void add_range(struct range_list *list, const void *start, int64_t bytes)
{
	int64_t offset = (const char *)start - list->plan->host;
	struct quire_slot_range *last = NULL;

	if (bytes == 0)
		return;
	if (list->count > 0)
		last = &list->ranges[list->count - 1];
	if (last != NULL && last->offset + last->bytes == offset) {
		last->bytes += bytes;
		return;
	}
	list->ranges[list->count].offset = offset;
	list->ranges[list->count].bytes = bytes;
	list->count++;
}

static void add_table_ranges(struct range_list *list, const struct quire_table *table)
{
	int64_t rows = table->bucket_rows;
	int64_t tokens = table->bucket_tokens;

	add_range(list, table->qo_indptr, (rows + 1) * 4);
	add_range(list, table->kv_indptr, (rows + 1) * 4);
	if (table->kv_indices != NULL)
		add_range(list, table->kv_indices, (int64_t)table->pages * 4);
	add_range(list, table->kv_last_page_len, rows * 4);
	add_range(list, table->last_token, rows * 4);
	add_range(list, table->slot_page, tokens * 4);
	add_range(list, table->slot_offset, tokens * 4);
	add_range(list, table->position, tokens * 4);
	add_range(list, table->row_request, rows * 8);
	add_range(list, table->row_tag, rows * 8);
	add_range(list, table->row_label, rows * 4);
}

int32_t quire_plan_ranges(const struct quire_plan *plan, struct quire_slot_range *ranges)
{
	struct range_list list = {.plan = plan, .ranges = ranges};
	int64_t copies = (int64_t)plan->num_pre_copies + plan->num_post_copies +
	                 plan->num_work_copies;

	for (int32_t t = 0; t < plan->num_tables; t++)
		add_table_ranges(&list, &plan->tables[t]);
	add_range(&list, plan->copy_source, copies * 4);
	add_range(&list, plan->copy_target, copies * 4);
	add_range(&list, plan->copy_end, copies * 4);
	add_range(&list, plan->user, plan->user_bytes);
	return list.count;
}

int32_t quire_plan_patches(const struct quire_plan *plan,
                           struct quire_patch_cursor *cursor,
                           struct quire_slot_range *ranges, int32_t max)
{
	struct range_list list = {.plan = plan, .ranges = ranges};

	for (; cursor->table < plan->num_tables && plan->block_width > 0;
	     cursor->table++) {
		const struct quire_table *table = &plan->tables[cursor->table];

		for (; cursor->row < table->bucket_rows; cursor->row++) {
			const struct quire_block_row *row =
				&table->block_rows[cursor->row];
			const int32_t *entries = table->block_table +
			                         (int64_t)cursor->row * plan->block_width;

			if (list.count == max)
				return max;
			add_range(&list, entries + row->first,
			          (int64_t)(row->end - row->first) * 4);
		}
		cursor->row = 0;
	}
	return list.count;
}
