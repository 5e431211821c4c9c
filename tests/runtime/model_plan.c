/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "model_rules.h"

/* One row's stream as the step leaves it. */
struct row {
	const struct quire_segment *segment;
	const struct model_stream *stream;
	int64_t length;
	int64_t pages;
};

static void add_constant(struct image *image, int64_t value, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		image_add(image, value);
}

static void plan_rows(struct image *image, const struct row *rows, int32_t n,
                      int32_t padding, int32_t page_size)
{
	int64_t sum = 0;

	image_begin(image, IMAGE_KV_LAST_PAGE_LEN);
	for (int32_t i = 0; i < n; i++)
		image_add(image, rows[i].length % page_size == 0
		                         ? page_size
		                         : rows[i].length % page_size);
	add_constant(image, page_size, padding);
	image_begin(image, IMAGE_LAST_TOKEN);
	for (int32_t i = 0; i < n; i++) {
		sum += rows[i].segment->span;
		image_add(image, rows[i].segment->span == 0 ? -1 : sum - 1);
	}
	add_constant(image, -1, padding);
}

static void plan_names(struct image *image, const struct row *rows, int32_t n,
                       int32_t padding)
{
	image_begin(image, IMAGE_ROW_REQUEST);
	for (int32_t i = 0; i < n; i++)
		image_add(image, (int64_t)rows[i].segment->request);
	add_constant(image, -1, padding);
	image_begin(image, IMAGE_ROW_LABEL);
	for (int32_t i = 0; i < n; i++)
		image_add(image, rows[i].stream->label);
	add_constant(image, -1, padding);
	image_begin(image, IMAGE_ROW_TAG);
	for (int32_t i = 0; i < n; i++)
		image_add(image, (int64_t)rows[i].segment->tag);
	add_constant(image, 0, padding);
}

static void plan_indptrs(struct image *image, const struct row *rows, int32_t n,
                         int32_t padding)
{
	int64_t tokens = 0, pages = 0;

	image_begin(image, IMAGE_QO_INDPTR);
	image_add(image, 0);
	for (int32_t i = 0; i < n; i++)
		image_add(image, tokens += rows[i].segment->span);
	add_constant(image, tokens, padding);
	image_begin(image, IMAGE_KV_INDPTR);
	image_add(image, 0);
	for (int32_t i = 0; i < n; i++)
		image_add(image, pages += rows[i].pages);
	add_constant(image, pages, padding);
	image_begin(image, IMAGE_KV_INDICES);
	for (int32_t i = 0; i < n; i++)
		for (int64_t k = 0; k < rows[i].pages; k++)
			image_add(image, rows[i].stream->pages[k]);
}

/* Token by token: where it is written and which position it has. */
static void plan_tokens(struct image *image, const struct row *rows, int32_t n,
                        int32_t padding, int32_t page_size)
{
	static const enum image_kind kinds[] = {IMAGE_SLOT_PAGE, IMAGE_SLOT_OFFSET,
	                                        IMAGE_POSITION};

	for (int32_t kind = 0; kind < 3; kind++) {
		image_begin(image, kinds[kind]);
		for (int32_t i = 0; i < n; i++) {
			int64_t first = rows[i].length - rows[i].segment->span;

			for (int64_t g = first; g < rows[i].length; g++)
				image_add(image,
				          kind == 0 ? rows[i].stream->pages[g / page_size]
				          : kind == 1 ? g % page_size
				                      : rows[i].stream->released + g);
		}
		add_constant(image, 0, padding);
	}
}

static void plan_block(struct image *image, const struct row *rows, int32_t n,
                       int32_t padding, int64_t width)
{
	if (width == 0)
		return;
	image_begin(image, IMAGE_BLOCK_TABLE);
	for (int32_t i = 0; i < n; i++) {
		for (int64_t k = 0; k < rows[i].pages; k++)
			image_add(image, rows[i].stream->pages[k]);
		add_constant(image, 0, width - rows[i].pages);
	}
	add_constant(image, 0, padding * width);
}

static int32_t sum_pages(const struct row *rows, int32_t n)
{
	int64_t pages = 0;

	for (int32_t i = 0; i < n; i++)
		pages += rows[i].pages;
	return (int32_t)pages;
}

static void plan_table(const struct model *m, const struct quire_step *step, int32_t name,
                       const struct row *rows, int32_t n, struct image *image)
{
	int32_t tokens = 0, spare_rows = 0, spare_tokens = 0;

	for (int32_t i = 0; i < n; i++)
		tokens += rows[i].segment->span;
	if (step->bucket_rows > 0) {
		spare_rows = step->bucket_rows - n;
		spare_tokens = step->bucket_tokens - tokens;
	}
	image_begin(image, IMAGE_TABLE);
	image_add(image, name);
	image_begin(image, IMAGE_COUNTS);
	image_add(image, n);
	image_add(image, tokens);
	image_add(image, sum_pages(rows, n));
	image_add(image, n + spare_rows);
	image_add(image, tokens + spare_tokens);
	plan_indptrs(image, rows, n, spare_rows);
	plan_rows(image, rows, n, spare_rows, m->page_size);
	plan_tokens(image, rows, n, spare_tokens, m->page_size);
	plan_names(image, rows, n, spare_rows);
	plan_block(image, rows, n, spare_rows, m->config.block_width);
}

/* What the step's work finds in each row's tokens, its own among them. */
static void plan_reads(struct image *reads, const struct row *rows, int32_t n)
{
	for (int32_t i = 0; i < n; i++) {
		image_begin(reads, IMAGE_READS);
		for (int64_t g = 0; g < rows[i].length; g++)
			image_add(reads, rows[i].stream->content[g]);
	}
}

void model_plan(struct model_run *run)
{
	struct model *m = run->m;
	const struct quire_step *step = run->step;
	struct image *image = &run->answer->image;
	struct model_table tables[MODEL_TABLES_MAX];
	int32_t num_tables = model_tables(step, tables);

	image_begin(image, IMAGE_STEP);
	image_add(image, (int64_t)m->counts.steps_planned);
	image_add(image, m->page_size);
	image_add(image, num_tables);
	image_add(image, 0);
	for (int32_t t = 0; t < num_tables; t++) {
		struct row rows[MODEL_ROWS_MAX];

		for (int32_t i = 0; i < tables[t].num_rows; i++) {
			rows[i].segment = &step->segments[tables[t].rows[i]];
			rows[i].stream = model_segment_stream(m, rows[i].segment);
			rows[i].length = rows[i].stream->length + rows[i].segment->span;
			rows[i].pages = ceil_div(rows[i].length, m->page_size);
		}
		plan_table(m, step, tables[t].name, rows, tables[t].num_rows, image);
		plan_reads(&run->answer->reads, rows, tables[t].num_rows);
	}
}

static void plan_list(struct image *image, enum image_kind kind,
                      const struct model_copy *copies, int32_t n)
{
	image_begin(image, kind);
	for (int32_t i = 0; i < n; i++) {
		image_add(image, copies[i].source);
		image_add(image, copies[i].target);
		image_add(image, copies[i].end);
	}
}

void model_plan_copies(struct model_run *run)
{
	plan_list(&run->answer->image, IMAGE_PRE_COPIES, run->pre, run->num_pre);
	plan_list(&run->answer->image, IMAGE_POST_COPIES, run->post, run->num_post);
}
