/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/tables_impl.h"

#include <inttypes.h>
#include <string.h>

/* One table as it has to be: its name and the segments that are its rows. */
struct table {
	const char *name;
	int32_t *rows;
	int32_t num_rows;
};

/* Where a check is. */
struct look {
	struct cmd_image *image;
	const struct quire_plan *plan;
	struct cmd_divergence *divergence;
	const struct table *table;      /* NULL: what is the whole step's */
	const struct quire_table *seen; /* the plan's */
};

/* ------------------------------------------------------------------ one entry */

static void name_row(struct cmd_image *image, int32_t segment,
                     struct cmd_divergence *divergence)
{
	const struct cmd_image_view *view = &image->views[segment];

	divergence->row = segment;
	cmd_divergence_name(divergence, image->requests[view->batch],
	                    image->labels->names[view->label]);
}

static void found(struct look *look, const char *array, int64_t index, int32_t segment)
{
	struct cmd_divergence *divergence = look->divergence;

	divergence->what = "table";
	divergence->array = array;
	divergence->array_index = index;
	if (look->table != NULL)
		snprintf(divergence->table, sizeof(divergence->table), "%s",
		         look->table->name);
	if (segment >= 0)
		name_row(look->image, segment, divergence);
}

/* Is an entry as it has to be?  @segment: whose it is, or -1. */
static bool is_right(struct look *look, const char *array, int64_t index,
                     int64_t expected, int64_t got, int32_t segment)
{
	struct cmd_divergence *divergence = look->divergence;

	if (expected == got)
		return true;
	found(look, array, index, segment);
	snprintf(divergence->expected, CMD_DIVERGENCE_BYTES, "%" PRId64, expected);
	snprintf(divergence->got, CMD_DIVERGENCE_BYTES, "%" PRId64, got);
	return false;
}

static bool is_named(struct look *look, const char *array, int64_t index,
                     const char *expected, const char *got, int32_t segment)
{
	struct cmd_divergence *divergence = look->divergence;

	if (strcmp(expected, got) == 0)
		return true;
	found(look, array, index, segment);
	snprintf(divergence->expected, CMD_DIVERGENCE_BYTES, "\"%s\"", expected);
	snprintf(divergence->got, CMD_DIVERGENCE_BYTES, "\"%s\"", got);
	return false;
}

/* ------------------------------------------------------------------ which tables */

static int32_t pages_of_row(const struct cmd_image *image, int32_t segment)
{
	return cmd_image_pages_of(image, image->views[segment].length);
}

/* All segments of a label, in batch order, behind what the table has. */
static void add_rows(struct cmd_image *image, const char *label, struct table *table)
{
	int32_t id = cmd_image_label(image->labels, label);

	for (int32_t i = 0; i < image->step->num_segments; i++) {
		if (image->views[i].label == id)
			table->rows[table->num_rows++] = i;
	}
}

static bool start_table(struct cmd_image *image, const char *name, struct table *table)
{
	table->name = name;
	table->num_rows = 0;
	table->rows = cmd_image_alloc(image, image->step->num_segments, 4);
	return table->rows != NULL;
}

/* Combined labels in their order, then the others as they first appear.  Answers their
 * number; -1: no memory. */
static int32_t list_tables(struct cmd_image *image, struct table *tables)
{
	const struct quire_step *step = image->step;
	bool is_in[QUIRE_LABELS_MAX] = {false};
	int32_t n = 0;

	for (int32_t c = 0; c < step->num_combined; c++) {
		const struct quire_combined *combined = &step->combined[c];

		if (!start_table(image, combined->name, &tables[n]))
			return -1;
		for (int32_t i = 0; i < combined->num_labels; i++) {
			int32_t id = cmd_image_label(image->labels, combined->labels[i]);

			is_in[id] = true;
			add_rows(image, combined->labels[i], &tables[n]);
		}
		n++;
	}
	for (int32_t i = 0; i < step->num_segments; i++) {
		int32_t id = image->views[i].label;

		if (is_in[id])
			continue;
		is_in[id] = true;
		if (!start_table(image, image->labels->names[id], &tables[n]))
			return -1;
		add_rows(image, image->labels->names[id], &tables[n++]);
	}
	return n;
}

/* ------------------------------------------------------------------ one table */

static bool check_counts(struct look *look)
{
	const struct quire_step *step = look->image->step;
	const struct quire_table *seen = look->seen;
	const struct table *table = look->table;
	bool is_padded = step->bucket_rows > 0;
	int64_t tokens = 0, pages = 0;

	for (int32_t r = 0; r < table->num_rows; r++) {
		tokens += step->segments[table->rows[r]].span;
		pages += pages_of_row(look->image, table->rows[r]);
	}
	return is_named(look, "name", -1, table->name,
	                look->plan->label_names[seen->name], -1) &&
	       is_right(look, "rows", -1, table->num_rows, seen->rows, -1) &&
	       is_right(look, "tokens", -1, tokens, seen->tokens, -1) &&
	       is_right(look, "pages", -1, pages, seen->pages, -1) &&
	       is_right(look, "bucket_rows", -1,
	                is_padded ? step->bucket_rows : table->num_rows,
	                seen->bucket_rows, -1) &&
	       is_right(look, "bucket_tokens", -1,
	                is_padded ? step->bucket_tokens : tokens, seen->bucket_tokens,
	                -1);
}

static bool check_indptrs(struct look *look)
{
	const struct quire_table *seen = look->seen;
	int64_t tokens = 0, pages = 0;
	bool right = is_right(look, "qo_indptr", 0, 0, seen->qo_indptr[0], -1) &&
	             is_right(look, "kv_indptr", 0, 0, seen->kv_indptr[0], -1);

	for (int32_t r = 0; r < seen->bucket_rows && right; r++) {
		int32_t segment = r < seen->rows ? look->table->rows[r] : -1;

		if (segment >= 0) {
			tokens += look->image->step->segments[segment].span;
			pages += pages_of_row(look->image, segment);
		}
		right = is_right(look, "qo_indptr", r + 1, tokens, seen->qo_indptr[r + 1],
		                 segment) &&
		        is_right(look, "kv_indptr", r + 1, pages, seen->kv_indptr[r + 1],
		                 segment);
	}
	return right;
}

/* What a table says of each row. */
static bool check_rows(struct look *look)
{
	const struct quire_table *seen = look->seen;
	const struct cmd_image *image = look->image;
	int64_t ps = image->page_size;
	int64_t tokens = 0;
	bool right = true;

	for (int32_t r = 0; r < seen->bucket_rows && right; r++) {
		int32_t segment = r < seen->rows ? look->table->rows[r] : -1;
		int64_t length = 0, request = -1, last = -1;
		const char *label = "", *got_label = "";

		if (segment >= 0) {
			const struct cmd_image_view *view = &image->views[segment];
			int32_t span = image->step->segments[segment].span;

			tokens += span;
			length = view->length;
			request = (int64_t)image->requests[view->batch];
			label = image->labels->names[view->label];
			last = span > 0 ? tokens - 1 : -1;
		}
		if (seen->row_label[r] >= 0)
			got_label = look->plan->label_names[seen->row_label[r]];
		right = is_right(look, "kv_last_page_len", r,
		                 length % ps != 0 ? length % ps : ps,
		                 seen->kv_last_page_len[r], segment) &&
		        is_right(look, "last_token", r, last, seen->last_token[r],
		                 segment) &&
		        is_right(look, "row_request", r, request, seen->row_request[r],
		                 segment) &&
		        is_named(look, "row_label", r, label, got_label, segment);
	}
	return right;
}

static bool check_pages(struct look *look)
{
	const struct quire_table *seen = look->seen;
	bool right = true;
	int64_t at = 0;

	for (int32_t r = 0; r < seen->rows && right; r++) {
		int32_t segment = look->table->rows[r];
		const int32_t *got = quire_row_pages(look->plan, seen, r);

		for (int32_t i = 0; i < pages_of_row(look->image, segment) && right; i++)
			right = is_right(look, "kv_indices", at++,
			                 look->image->views[segment].pages[i], got[i],
			                 segment);
	}
	return right;
}

static bool check_token(struct look *look, int64_t at, int64_t page, int64_t offset,
                        int64_t position, int32_t segment)
{
	const struct quire_table *seen = look->seen;

	return is_right(look, "slot_page", at, page, seen->slot_page[at], segment) &&
	       is_right(look, "slot_offset", at, offset, seen->slot_offset[at],
	                segment) &&
	       is_right(look, "position", at, position, seen->position[at], segment);
}

static bool check_tokens(struct look *look)
{
	const struct cmd_image *image = look->image;
	bool right = true;
	int64_t at = 0;

	for (int32_t r = 0; r < look->seen->rows && right; r++) {
		int32_t segment = look->table->rows[r];
		const struct cmd_image_view *view = &image->views[segment];
		int32_t span = image->step->segments[segment].span;

		for (int32_t j = 0; j < span && right; j++) {
			int64_t g = view->length - span + j;

			right = check_token(look, at++, view->pages[g / image->page_size],
			                    g % image->page_size, view->released + g,
			                    segment);
		}
	}
	while (at < look->seen->bucket_tokens && right)
		right = check_token(look, at++, 0, 0, 0, -1);
	return right;
}

/* ------------------------------------------------------------------ the step */

/* The plan's copies [first, first + num) against a list. */
static bool check_copies(struct look *look, const char *array, int32_t first, int32_t num,
                         const struct cmd_image_copies *copies)
{
	const struct quire_plan *plan = look->plan;
	bool right = is_right(look, array, -1, copies->num, num, -1);

	look->table = NULL;
	for (int32_t i = 0; i < copies->num && right; i++) {
		const struct cmd_image_copy *copy = &copies->list[i];

		right = is_right(look, array, i, copy->source,
		                 plan->copy_source[first + i], -1) &&
		        is_right(look, array, i, copy->target,
		                 plan->copy_target[first + i], -1) &&
		        is_right(look, array, i, copy->tokens, plan->copy_end[first + i],
		                 -1);
	}
	return right;
}

bool cmd_tables_check(struct cmd_image *image, const struct quire_plan *plan,
                      struct cmd_divergence *divergence)
{
	struct look look = {.image = image, .plan = plan, .divergence = divergence};
	struct table tables[QUIRE_LABELS_MAX + QUIRE_TABLES_MAX];
	int32_t num = list_tables(image, tables);
	bool right = is_right(&look, "pages taken", -1, image->num_takes,
	                      image->num_taken, -1) &&
	             is_right(&look, "num_tables", -1, num, plan->num_tables, -1);

	for (int32_t t = 0; t < num && right; t++) {
		look.table = &tables[t];
		look.seen = &plan->tables[t];
		right = check_counts(&look) && check_indptrs(&look) &&
		        check_pages(&look) && check_rows(&look) && check_tokens(&look);
	}
	look.table = NULL;
	return right &&
	       check_copies(&look, "pre-copies", 0, plan->num_pre_copies, &image->pre) &&
	       check_copies(&look, "post-copies", plan->num_pre_copies,
	                    plan->num_post_copies, &image->post);
}

/* ------------------------------------------------------------------ a page's place */

/* The segment whose row lists the page; -1: none does. */
static int32_t row_of(const struct cmd_image *image, const struct cmd_image_take *take)
{
	for (int32_t i = 0; i < image->step->num_segments; i++) {
		const struct cmd_image_view *view = &image->views[i];

		if (take->use != CMD_USE_POST_FORK && view->batch == take->batch &&
		    view->label == take->label && take->place < pages_of_row(image, i))
			return i;
	}
	return -1;
}

/* Its place in kv_indices. */
static void place_in_table(struct cmd_image *image, int32_t segment, int32_t place,
                           struct cmd_divergence *divergence)
{
	struct table tables[QUIRE_LABELS_MAX + QUIRE_TABLES_MAX];
	int32_t num = list_tables(image, tables);

	for (int32_t t = 0; t < num; t++) {
		int64_t at = 0;

		for (int32_t r = 0; r < tables[t].num_rows; r++) {
			if (tables[t].rows[r] == segment) {
				snprintf(divergence->table, sizeof(divergence->table),
				         "%s", tables[t].name);
				divergence->array = "kv_indices";
				divergence->array_index = at + place;
			}
			at += pages_of_row(image, tables[t].rows[r]);
		}
	}
}

void cmd_tables_place(struct cmd_image *image, int32_t take,
                      struct cmd_divergence *divergence)
{
	const struct cmd_image_take *what = &image->takes[take];
	const struct quire_step *step = image->step;
	bool is_pre = what->use == CMD_USE_PRE_FORK;
	int32_t segment = row_of(image, what);

	cmd_divergence_name(divergence, image->requests[what->batch],
	                    image->labels->names[what->label]);
	if (segment >= 0) {
		divergence->row = segment;
		place_in_table(image, segment, what->place, divergence);
	}
	cmd_divergence_note(divergence, "page %" PRId32 " of the stream", what->place);
	if (is_pre || what->use == CMD_USE_POST_FORK) {
		const struct quire_fork *fork = is_pre ? &step->pre_forks[what->part]
		                                       : &step->post_forks[what->part];

		cmd_divergence_note(
			divergence, "for %s[%" PRId32 "], \"%s\" to \"%s\"",
			is_pre ? "pre_forks" : "post_forks", what->part,
			fork->source != NULL ? fork->source : QUIRE_LABEL_MAIN,
			fork->target != NULL ? fork->target : QUIRE_LABEL_MAIN);
	} else if (what->use == CMD_USE_FIRST_WRITE) {
		cmd_divergence_note(divergence, "for the copy on first write");
	}
}
