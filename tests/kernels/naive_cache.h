/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_TESTS_KERNELS_NAIVE_CACHE_H
#define QUIRE_TESTS_KERNELS_NAIVE_CACHE_H
/* Random shapes, slots and rows, and the cache's operations element by element. */
#include <quire/kernels/cache.h>

#include "tests/alloc/random.h"
#include "tests/kernels/exact_convert.h"

/* Where an element is: a row-major count over the dimensions of the layout. */
enum naive_axis {
	AXIS_LAYER,
	AXIS_PAGE,
	AXIS_KV,
	AXIS_TOKEN,
	AXIS_HEAD,
	AXIS_DIM,
	NUM_AXES,
};

static inline const enum naive_axis *naive_axes(enum quire_layout layout, int *num_out)
{
	static const enum naive_axis nhd[] = {AXIS_LAYER, AXIS_PAGE, AXIS_KV,
	                                      AXIS_TOKEN, AXIS_HEAD, AXIS_DIM};
	static const enum naive_axis hnd[] = {AXIS_LAYER, AXIS_PAGE,  AXIS_KV,
	                                      AXIS_HEAD,  AXIS_TOKEN, AXIS_DIM};
	static const enum naive_axis mla[] = {AXIS_LAYER, AXIS_PAGE, AXIS_TOKEN,
	                                      AXIS_DIM};

	*num_out = layout == QUIRE_MLA ? 4 : 6;
	return layout == QUIRE_NHD ? nhd : layout == QUIRE_HND ? hnd : mla;
}

static inline int64_t naive_size(const struct quire_shape *s, enum naive_axis axis)
{
	const int64_t sizes[NUM_AXES] = {
		[AXIS_LAYER] = s->num_layers,
		[AXIS_PAGE] = s->num_pages,
		[AXIS_KV] = s->layout == QUIRE_MLA ? 1 : 2,
		[AXIS_TOKEN] = s->page_size,
		[AXIS_HEAD] = s->num_kv_heads,
		[AXIS_DIM] = s->head_dim,
	};

	return sizes[axis];
}

/* The number of an element. */
static inline int64_t naive_place(const struct quire_shape *s, const int64_t *at)
{
	int num;
	const enum naive_axis *axes = naive_axes(s->layout, &num);
	int64_t place = 0;

	for (int i = 0; i < num; i++)
		place = place * naive_size(s, axes[i]) + at[axes[i]];
	return place;
}

/* The next of all elements in the order of the axes above; false behind the last. */
static inline bool naive_next(const struct quire_shape *s, int64_t *at)
{
	for (int axis = NUM_AXES - 1; axis >= 0; axis--) {
		if (++at[axis] < naive_size(s, (enum naive_axis)axis))
			return true;
		at[axis] = 0;
	}
	return false;
}

static inline int64_t naive_total(const struct quire_shape *s)
{
	int64_t total = 1;

	for (int axis = 0; axis < NUM_AXES; axis++)
		total *= naive_size(s, (enum naive_axis)axis);
	return total;
}

/* Pages and tokens of the largest random shape. */
#define ANY_PAGES_MAX     12
#define ANY_PAGE_SIZE_MAX 16
#define ANY_SLOTS_MAX     (ANY_PAGES_MAX * ANY_PAGE_SIZE_MAX)

static inline struct quire_shape any_shape_of(uint64_t *seed, enum quire_layout layout,
                                              enum quire_dtype dtype)
{
	const int64_t page_sizes[] = {1, 2, 3, 8, ANY_PAGE_SIZE_MAX};
	const int64_t head_dims[] = {1, 3, 8, 20, 64, 129};
	struct quire_shape shape = {.layout = layout, .dtype = dtype};

	shape.num_layers = random_in(seed, 1, 3);
	shape.num_pages = random_in(seed, 1, ANY_PAGES_MAX);
	shape.page_size = page_sizes[random_in(seed, 0, 4)];
	shape.num_kv_heads = layout == QUIRE_MLA ? 1 : random_in(seed, 1, 3);
	shape.head_dim = head_dims[random_in(seed, 0, 5)];
	return shape;
}

static inline struct quire_shape any_shape(uint64_t *seed)
{
	int32_t layout = random_in(seed, 0, QUIRE_LAYOUT_COUNT - 1);
	int32_t dtype = random_in(seed, 0, QUIRE_DTYPE_COUNT - 1);

	return any_shape_of(seed, (enum quire_layout)layout, (enum quire_dtype)dtype);
}

/* Different slots, so that every write has one outcome. */
struct any_slots {
	struct quire_slots slots;
	int32_t page[ANY_SLOTS_MAX];
	int32_t offset[ANY_SLOTS_MAX];
};

static inline void any_pages(uint64_t *seed, const struct quire_shape *shape,
                             int32_t *pages)
{
	for (int32_t i = 0; i < shape->num_pages; i++)
		pages[i] = i;
	random_shuffle(seed, pages, (int32_t)shape->num_pages);
}

/* 0 .. n - 1: in order, in no order, or in runs that rise and fall. */
static inline void any_order(uint64_t *seed, int32_t *order, int32_t n)
{
	int32_t kind = random_in(seed, 0, 2);

	for (int32_t i = 0; i < n; i++)
		order[i] = i;
	if (kind == 0)
		random_shuffle(seed, order, n);
	for (int turn = 0; kind == 1 && turn < 6; turn++) {
		int32_t low = random_in(seed, 0, n - 1);
		int32_t high = random_in(seed, low, n - 1);

		for (; low < high; low++, high--) {
			int32_t value = order[low];

			order[low] = order[high];
			order[high] = value;
		}
	}
}

/* Slots of lists, scattered or in runs, or tokens of a stream. */
static inline void any_slots(uint64_t *seed, const struct quire_shape *shape,
                             struct any_slots *any)
{
	int32_t page_size = (int32_t)shape->page_size;
	int32_t total = (int32_t)shape->num_pages * page_size;
	int32_t order[ANY_SLOTS_MAX];
	int32_t pages[ANY_PAGES_MAX];
	int32_t n = random_in(seed, 0, total);
	int32_t first = random_in(seed, 0, total - n);

	any_pages(seed, shape, pages);
	any->slots = (struct quire_slots){.page = any->page, .n = n};
	if (random_in(seed, 0, 2) == 0) {
		memcpy(any->page, pages, (size_t)shape->num_pages * sizeof(*pages));
		any->slots.first = first;
		return;
	}
	any->slots.offset = any->offset;
	any_order(seed, order, total);
	for (int32_t i = 0; i < n; i++) {
		any->page[i] = pages[order[first + i] / page_size];
		any->offset[i] = order[first + i] % page_size;
	}
}

/* Bytes of any value, NaNs and infinities of every dtype among them. */
static inline void any_bytes(uint64_t *seed, void *memory, size_t bytes)
{
	char *next = memory;

	for (size_t i = 0; i < bytes; i++)
		next[i] = (char)random_next(seed);
}

/* Element i of an array at any byte. */
static inline uint32_t naive_load(enum quire_dtype dtype, const char *array, int64_t i)
{
	size_t bytes = (size_t)quire_dtype_bytes(dtype);
	uint32_t code = 0;

	/* Little endian, as all machines with these devices are. */
	memcpy(&code, array + (size_t)i * bytes, bytes);
	return code;
}

static inline void naive_store(enum quire_dtype dtype, char *array, int64_t i,
                               uint32_t code)
{
	size_t bytes = (size_t)quire_dtype_bytes(dtype);

	memcpy(array + (size_t)i * bytes, &code, bytes);
}

/* Elements of any value, most of them where the narrow dtypes have theirs. */
static inline void any_values(uint64_t *seed, enum quire_dtype dtype, char *array,
                              int64_t n)
{
	const struct exact_format *f = &exact_formats[dtype];
	uint32_t exponents =
		(UINT32_C(1) << (f->bits - 1)) - (UINT32_C(1) << f->fraction_bits);

	for (int64_t i = 0; i < n; i++) {
		uint64_t random = random_next(seed);
		uint32_t code = (uint32_t)(random >> 32);
		uint32_t exponent =
			(uint32_t)(f->bias - 20) + (uint32_t)(random >> 8) % 40;

		if (random % 4 > 0 && f->bias > 20)
			code = (code & ~exponents) | exponent << f->fraction_bits;
		naive_store(dtype, array, i, code);
	}
}

/* What a cache should hold. */
struct naive_image {
	struct quire_shape shape;
	char *storage;
};

/* Elements of K or V of one token. */
static inline int64_t naive_row(const struct quire_shape *s)
{
	return s->num_kv_heads * s->head_dim;
}

/* Which page and token of it slot i is. */
static inline void naive_slot(const struct quire_shape *s,
                              const struct quire_slots *slots, int64_t i, int64_t *at)
{
	if (slots->offset != NULL) {
		at[AXIS_PAGE] = slots->page[i];
		at[AXIS_TOKEN] = slots->offset[i];
		return;
	}
	at[AXIS_PAGE] = slots->page[0];
	at[AXIS_TOKEN] = 0;
	for (int64_t left = slots->first + i, next = 1; left > 0; left--) {
		if (++at[AXIS_TOKEN] < s->page_size)
			continue;
		at[AXIS_TOKEN] = 0;
		at[AXIS_PAGE] = slots->page[next++];
	}
}

/* Row i of an array becomes K or V (as @at says) of a token. */
static inline void naive_write_row(struct naive_image *image, int64_t *at,
                                   const char *rows, int64_t i, enum quire_dtype dtype)
{
	const struct quire_shape *s = &image->shape;

	for (int64_t e = 0; e < naive_row(s); e++) {
		uint32_t code = naive_load(dtype, rows, i * naive_row(s) + e);

		if (dtype != s->dtype)
			code = exact_convert(dtype, s->dtype, code);
		at[AXIS_HEAD] = e / s->head_dim;
		at[AXIS_DIM] = e % s->head_dim;
		naive_store(s->dtype, image->storage, naive_place(s, at), code);
	}
}

static inline void naive_write(struct naive_image *image, int64_t layer,
                               const struct quire_slots *slots, const char *k,
                               const char *v, enum quire_dtype dtype)
{
	int64_t at[NUM_AXES] = {[AXIS_LAYER] = layer};

	for (int64_t i = 0; i < slots->n; i++) {
		naive_slot(&image->shape, slots, i, at);
		for (int64_t kv = 0; kv < naive_size(&image->shape, AXIS_KV); kv++) {
			at[AXIS_KV] = kv;
			naive_write_row(image, at, kv == 0 ? k : v, i, dtype);
		}
	}
}

static inline void naive_read(const struct naive_image *image, int64_t layer,
                              const struct quire_slots *slots, char *out)
{
	const struct quire_shape *s = &image->shape;
	int64_t at[NUM_AXES] = {[AXIS_LAYER] = layer};
	int64_t next = 0;

	for (int64_t i = 0; i < slots->n; i++) {
		naive_slot(s, slots, i, at);
		for (int64_t e = 0; e < naive_size(s, AXIS_KV) * naive_row(s); e++) {
			at[AXIS_KV] = e / naive_row(s);
			at[AXIS_HEAD] = e % naive_row(s) / s->head_dim;
			at[AXIS_DIM] = e % s->head_dim;
			naive_store(
				s->dtype, out, next++,
				naive_load(s->dtype, image->storage, naive_place(s, at)));
		}
	}
}

/* Tokens [0, end[i]) of pages, all of them without @end; all sources from a picture of
 * the storage taken before. */
static inline void naive_copy(struct naive_image *image, const int32_t *source,
                              const int32_t *target, const int32_t *end, int64_t n)
{
	const struct quire_shape *s = &image->shape;
	size_t nbytes = (size_t)(naive_total(s) * quire_dtype_bytes(s->dtype));
	char *before = malloc(nbytes);

	memcpy(before, image->storage, nbytes);
	for (int64_t i = 0; i < n; i++) {
		struct quire_shape page = *s;
		int64_t at[NUM_AXES] = {0};

		page.num_pages = 1;
		do {
			uint32_t code;

			if (end != NULL && at[AXIS_TOKEN] >= end[i])
				continue;
			at[AXIS_PAGE] = source[i];
			code = naive_load(s->dtype, before, naive_place(s, at));
			at[AXIS_PAGE] = target[i];
			naive_store(s->dtype, image->storage, naive_place(s, at), code);
			at[AXIS_PAGE] = 0;
		} while (naive_next(&page, at));
	}
	free(before);
}

#endif
