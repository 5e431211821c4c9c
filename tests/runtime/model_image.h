/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_TESTS_MODEL_IMAGE_H
#define QUIRE_TESTS_MODEL_IMAGE_H
/*
 * The image of a plan: all its tables as one list of numbers, to compare and to print.
 * An image is a sequence of sections: kind, count, values.
 */
#include <quire.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the model and its runner take for granted, inside Check and outside. */
#define REQUIRE(condition)                                         \
	do {                                                       \
		if (!(condition))                                  \
			model_die(__FILE__, __LINE__, #condition); \
	} while (0)
_Noreturn void model_die(const char *file, int line, const char *condition);

/* The labels that lists use; an image names labels by their place here. */
#define MODEL_LABELS 4                  /* of streams */
#define MODEL_NAMES  (MODEL_LABELS + 2) /* and of combined tables */
extern const char *const model_labels[MODEL_NAMES];

#define IMAGE_VALUES_MAX 8192

enum image_kind {
	IMAGE_STEP,
	IMAGE_TABLE,
	IMAGE_COUNTS,
	IMAGE_QO_INDPTR,
	IMAGE_KV_INDPTR,
	IMAGE_KV_INDICES,
	IMAGE_KV_LAST_PAGE_LEN,
	IMAGE_LAST_TOKEN,
	IMAGE_SLOT_PAGE,
	IMAGE_SLOT_OFFSET,
	IMAGE_POSITION,
	IMAGE_ROW_REQUEST,
	IMAGE_ROW_LABEL,
	IMAGE_ROW_TAG,
	IMAGE_BLOCK_TABLE,
	IMAGE_PRE_COPIES, /* source, target, end of each */
	IMAGE_POST_COPIES,
	IMAGE_READS, /* not in a plan: what its work finds in one row's tokens */
	IMAGE_KINDS,
};

extern const char *const image_kinds[IMAGE_KINDS];

struct image {
	int32_t n;
	int32_t section; /* where the open section's count stands */
	int64_t values[IMAGE_VALUES_MAX];
};

/* model_label - a label's place in model_labels; NULL means "main"; -1: none of them */
int32_t model_label(const char *label);

void image_begin(struct image *image, enum image_kind kind);
void image_add(struct image *image, int64_t value);

/*
 * image_of_plan - the image of a plan's tables
 * @device:  read the device half
 */
void image_of_plan(struct image *image, const struct quire_plan *plan, bool device);

/* image_copy - only as much memory as it needs; free() it */
struct image *image_copy(const struct image *image);

bool image_equal(const struct image *a, const struct image *b);

/* image_print_difference - the sections in which two images differ, as text */
void image_print_difference(const struct image *expected, const struct image *got,
                            char *text, size_t size);

#endif
