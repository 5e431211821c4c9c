/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "model_image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const model_labels[MODEL_NAMES] = {"main", "a", "b", "c", "both", "pair"};

const char *const image_kinds[IMAGE_KINDS] = {
	[IMAGE_STEP] = "step",
	[IMAGE_TABLE] = "table",
	[IMAGE_COUNTS] = "rows tokens pages bucket_rows bucket_tokens",
	[IMAGE_QO_INDPTR] = "qo_indptr",
	[IMAGE_KV_INDPTR] = "kv_indptr",
	[IMAGE_KV_INDICES] = "kv_indices",
	[IMAGE_KV_LAST_PAGE_LEN] = "kv_last_page_len",
	[IMAGE_LAST_TOKEN] = "last_token",
	[IMAGE_SLOT_PAGE] = "slot_page",
	[IMAGE_SLOT_OFFSET] = "slot_offset",
	[IMAGE_POSITION] = "position",
	[IMAGE_ROW_REQUEST] = "row_request",
	[IMAGE_ROW_LABEL] = "row_label",
	[IMAGE_ROW_TAG] = "row_tag",
	[IMAGE_BLOCK_TABLE] = "block_table",
	[IMAGE_PRE_COPIES] = "pre_copies",
	[IMAGE_POST_COPIES] = "post_copies",
	[IMAGE_READS] = "reads",
};

void model_die(const char *file, int line, const char *condition)
{
	printf("%s:%d: %s does not hold\n", file, line, condition);
	fflush(stdout);
	abort();
}

int32_t model_label(const char *label)
{
	if (label == NULL)
		return 0;
	for (int32_t i = 0; i < MODEL_NAMES; i++)
		if (strcmp(label, model_labels[i]) == 0)
			return i;
	return -1;
}

void image_begin(struct image *image, enum image_kind kind)
{
	REQUIRE(image->n + 2 <= IMAGE_VALUES_MAX);
	image->values[image->n] = kind;
	image->section = image->n + 1;
	image->values[image->section] = 0;
	image->n += 2;
}

void image_add(struct image *image, int64_t value)
{
	REQUIRE(image->n < IMAGE_VALUES_MAX);
	image->values[image->n++] = value;
	image->values[image->section]++;
}

static void add_i32s(struct image *image, enum image_kind kind, const int32_t *values,
                     int64_t n)
{
	image_begin(image, kind);
	for (int64_t i = 0; i < n; i++)
		image_add(image, values[i]);
}

static void add_i64s(struct image *image, enum image_kind kind, const int64_t *values,
                     int64_t n)
{
	image_begin(image, kind);
	for (int64_t i = 0; i < n; i++)
		image_add(image, values[i]);
}

static const void *half(const struct quire_plan *plan, const void *host, bool device)
{
	return device && host != NULL ? quire_plan_device(plan, host) : host;
}

static void add_labels(struct image *image, const struct quire_plan *plan,
                       const int32_t *labels, int64_t n)
{
	image_begin(image, IMAGE_ROW_LABEL);
	for (int64_t i = 0; i < n; i++) {
		bool id = labels[i] >= 0 && labels[i] < QUIRE_LABELS_MAX;

		image_add(image,
		          id ? model_label(plan->label_names[labels[i]]) : labels[i]);
	}
}

/* The pages of all rows: from the block table where the plan has no kv_indices. */
static void add_indices(struct image *image, const struct quire_plan *plan,
                        const struct quire_table *t, bool device)
{
	const int32_t *kv_indptr = half(plan, t->kv_indptr, device);

	image_begin(image, IMAGE_KV_INDICES);
	for (int32_t row = 0; row < t->rows; row++) {
		const int32_t *pages =
			t->kv_indices != NULL
				? (const int32_t *)half(plan, t->kv_indices, device) +
					  kv_indptr[row]
				: (const int32_t *)half(plan, t->block_table, device) +
					  (int64_t)row * plan->block_width;

		for (int32_t i = 0; i < kv_indptr[row + 1] - kv_indptr[row]; i++)
			image_add(image, pages[i]);
	}
}

static void add_table(struct image *image, const struct quire_plan *plan,
                      const struct quire_table *t, bool device)
{
	const int32_t counts[] = {t->rows, t->tokens, t->pages, t->bucket_rows,
	                          t->bucket_tokens};
	int64_t rows = t->bucket_rows, tokens = t->bucket_tokens;

	image_begin(image, IMAGE_TABLE);
	image_add(image, model_label(plan->label_names[t->name]));
	add_i32s(image, IMAGE_COUNTS, counts, 5);
	add_i32s(image, IMAGE_QO_INDPTR, half(plan, t->qo_indptr, device), rows + 1);
	add_i32s(image, IMAGE_KV_INDPTR, half(plan, t->kv_indptr, device), rows + 1);
	add_indices(image, plan, t, device);
	add_i32s(image, IMAGE_KV_LAST_PAGE_LEN, half(plan, t->kv_last_page_len, device),
	         rows);
	add_i32s(image, IMAGE_LAST_TOKEN, half(plan, t->last_token, device), rows);
	add_i32s(image, IMAGE_SLOT_PAGE, half(plan, t->slot_page, device), tokens);
	add_i32s(image, IMAGE_SLOT_OFFSET, half(plan, t->slot_offset, device), tokens);
	add_i32s(image, IMAGE_POSITION, half(plan, t->position, device), tokens);
	add_i64s(image, IMAGE_ROW_REQUEST, half(plan, t->row_request, device), rows);
	add_labels(image, plan, half(plan, t->row_label, device), rows);
	add_i64s(image, IMAGE_ROW_TAG, half(plan, t->row_tag, device), rows);
	if (t->block_table != NULL)
		add_i32s(image, IMAGE_BLOCK_TABLE, half(plan, t->block_table, device),
		         rows * plan->block_width);
}

static void add_copies(struct image *image, const struct quire_plan *plan,
                       enum image_kind kind, int32_t first, int32_t n, bool device)
{
	const int32_t *source = half(plan, plan->copy_source, device);
	const int32_t *target = half(plan, plan->copy_target, device);
	const int32_t *end = half(plan, plan->copy_end, device);

	image_begin(image, kind);
	for (int32_t i = first; i < first + n; i++) {
		image_add(image, source[i]);
		image_add(image, target[i]);
		image_add(image, end[i]);
	}
}

void image_of_plan(struct image *image, const struct quire_plan *plan, bool device)
{
	image->n = 0;
	image_begin(image, IMAGE_STEP);
	image_add(image, (int64_t)plan->step);
	image_add(image, plan->page_size);
	image_add(image, plan->num_tables);
	image_add(image, plan->num_work_copies);
	for (int32_t t = 0; t < plan->num_tables; t++)
		add_table(image, plan, &plan->tables[t], device);
	add_copies(image, plan, IMAGE_PRE_COPIES, 0, plan->num_pre_copies, device);
	add_copies(image, plan, IMAGE_POST_COPIES, plan->num_pre_copies,
	           plan->num_post_copies, device);
}

struct image *image_copy(const struct image *image)
{
	size_t bytes =
		offsetof(struct image, values) + sizeof(int64_t) * (size_t)image->n;
	struct image *copy = malloc(bytes);

	REQUIRE(copy != NULL);
	memcpy(copy, image, bytes);
	return copy;
}

bool image_equal(const struct image *a, const struct image *b)
{
	return a->n == b->n &&
	       memcmp(a->values, b->values, sizeof(int64_t) * (size_t)a->n) == 0;
}

/* One section as text; returns where the next one begins. */
static int32_t print_section(const struct image *image, int32_t at, const char *side,
                             char *text, size_t size)
{
	size_t used = strlen(text);
	int64_t kind = image->values[at], count = image->values[at + 1];

	used += (size_t)snprintf(text + used, size - used, "  %-8s %s:", side,
	                         image_kinds[kind]);
	for (int64_t i = 0; i < count && used + 24 < size; i++)
		used += (size_t)snprintf(text + used, size - used, " %lld",
		                         (long long)image->values[at + 2 + i]);
	if (used + 2 < size)
		strcpy(text + used, "\n");
	return at + 2 + (int32_t)count;
}

static bool section_equal(const struct image *a, int32_t i, const struct image *b,
                          int32_t j)
{
	int64_t count = a->values[i + 1];

	return a->values[i] == b->values[j] && count == b->values[j + 1] &&
	       memcmp(&a->values[i], &b->values[j],
	              sizeof(int64_t) * (size_t)(count + 2)) == 0;
}

void image_print_difference(const struct image *expected, const struct image *got,
                            char *text, size_t size)
{
	int32_t i = 0, j = 0;

	while (i < expected->n && j < got->n && strlen(text) + 200 < size) {
		if (section_equal(expected, i, got, j)) {
			i += 2 + (int32_t)expected->values[i + 1];
			j += 2 + (int32_t)got->values[j + 1];
			continue;
		}
		i = print_section(expected, i, "expected", text, size);
		j = print_section(got, j, "got", text, size);
	}
}
