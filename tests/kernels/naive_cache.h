/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_TESTS_KERNELS_NAIVE_CACHE_H
#define QUIRE_TESTS_KERNELS_NAIVE_CACHE_H
/* Random shapes, slots and rows, and the cache's operations element by element. */
#include <quire/kernels/cache.h>

#include "kernels/dtype_impl.h"
#include "tests/alloc/random.h"

#include <stdlib.h>
#include <string.h>

static inline struct quire_shape any_shape(uint64_t *seed)
{
	const int64_t page_sizes[] = {1, 2, 3, 8, 16};
	const int64_t head_dims[] = {1, 3, 8, 20, 64};
	struct quire_shape shape = {.layout = QUIRE_NHD};

	shape.dtype = (enum quire_dtype)random_in(seed, 0, QUIRE_DTYPE_COUNT - 1);
	shape.num_layers = random_in(seed, 1, 3);
	shape.num_pages = random_in(seed, 1, 12);
	shape.page_size = page_sizes[random_in(seed, 0, 4)];
	shape.num_kv_heads = random_in(seed, 1, 3);
	shape.head_dim = head_dims[random_in(seed, 0, 4)];
	return shape;
}

/* Different slots, so that every write has one outcome. */
struct any_slots {
	struct quire_slots slots;
	int32_t page[12 * 16];
	int32_t offset[12 * 16];
};

static inline void any_pages(uint64_t *seed, const struct quire_shape *shape,
                             int32_t *pages)
{
	for (int32_t i = 0; i < shape->num_pages; i++)
		pages[i] = i;
	random_shuffle(seed, pages, (int32_t)shape->num_pages);
}

/* Slots of lists, scattered or in runs, or tokens of a stream. */
static inline void any_slots(uint64_t *seed, const struct quire_shape *shape,
                             struct any_slots *any)
{
	int32_t page_size = (int32_t)shape->page_size;
	int32_t total = (int32_t)shape->num_pages * page_size;
	int32_t order[12 * 16];
	int32_t pages[12];
	int32_t n = random_in(seed, 0, total);
	int32_t first = random_in(seed, 0, total - n);

	any_pages(seed, shape, pages);
	any->slots = (struct quire_slots){.page = any->page, .n = n};
	if (random_in(seed, 0, 2) == 0) {
		memcpy(any->page, pages, sizeof(pages));
		any->slots.first = first;
		return;
	}
	any->slots.offset = any->offset;
	for (int32_t i = 0; i < total; i++)
		order[i] = i;
	if (random_in(seed, 0, 1) == 0)
		random_shuffle(seed, order, total);
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

static inline float naive_load(const char *array, enum quire_dtype dtype, int64_t i)
{
	uint16_t half;
	float value;

	if (dtype == QUIRE_F32) {
		memcpy(&value, array + 4 * i, 4);
		return value;
	}
	memcpy(&half, array + 2 * i, 2);
	return dtype == QUIRE_F16 ? quire_f32_of_f16(half) : quire_f32_of_bf16(half);
}

static inline void naive_store(char *array, enum quire_dtype dtype, int64_t i,
                               float value)
{
	uint16_t half =
		dtype == QUIRE_F16 ? quire_f16_of_f32(value) : quire_bf16_of_f32(value);

	if (dtype == QUIRE_F32)
		memcpy(array + 4 * i, &value, 4);
	else
		memcpy(array + 2 * i, &half, 2);
}

/* Element number of [layer, page, kv, token, element]. */
static inline int64_t naive_index(const struct quire_shape *s, int64_t layer,
                                  int64_t page, int64_t kv, int64_t token,
                                  int64_t element)
{
	int64_t row = s->num_kv_heads * s->head_dim;

	return (((layer * s->num_pages + page) * 2 + kv) * s->page_size + token) * row +
	       element;
}

static inline void naive_place(const struct quire_shape *s,
                               const struct quire_slots *slots, int64_t i, int64_t *page,
                               int64_t *token)
{
	if (slots->offset != NULL) {
		*page = slots->page[i];
		*token = slots->offset[i];
		return;
	}
	*page = slots->page[0];
	*token = 0;
	for (int64_t left = slots->first + i, next = 1; left > 0; left--) {
		if (++*token < s->page_size)
			continue;
		*token = 0;
		*page = slots->page[next++];
	}
}

static inline void naive_write(const struct quire_shape *s, char *storage, int64_t layer,
                               const struct quire_slots *slots, const char *k,
                               const char *v, enum quire_dtype dtype)
{
	int64_t row = s->num_kv_heads * s->head_dim;

	for (int64_t i = 0; i < slots->n; i++) {
		int64_t page;
		int64_t token;

		naive_place(s, slots, i, &page, &token);
		for (int64_t e = 0; e < row; e++) {
			int64_t to_k = naive_index(s, layer, page, 0, token, e);
			int64_t to_v = naive_index(s, layer, page, 1, token, e);
			int64_t bytes = quire_dtype_bytes(dtype);

			if (dtype == s->dtype) {
				memcpy(storage + to_k * bytes, k + (i * row + e) * bytes,
				       (size_t)bytes);
				memcpy(storage + to_v * bytes, v + (i * row + e) * bytes,
				       (size_t)bytes);
				continue;
			}
			naive_store(storage, s->dtype, to_k,
			            naive_load(k, dtype, i * row + e));
			naive_store(storage, s->dtype, to_v,
			            naive_load(v, dtype, i * row + e));
		}
	}
}

static inline void naive_read(const struct quire_shape *s, const char *storage,
                              int64_t layer, const struct quire_slots *slots, char *out)
{
	int64_t row = s->num_kv_heads * s->head_dim;
	int64_t bytes = quire_dtype_bytes(s->dtype);

	for (int64_t i = 0; i < slots->n; i++)
		for (int64_t kv = 0; kv < 2; kv++)
			for (int64_t e = 0; e < row; e++) {
				int64_t page;
				int64_t token;

				naive_place(s, slots, i, &page, &token);
				memcpy(out + ((i * 2 + kv) * row + e) * bytes,
				       storage +
				               naive_index(s, layer, page, kv, token, e) *
				                       bytes,
				       (size_t)bytes);
			}
}

/* All sources from a picture of the storage taken before. */
static inline void naive_copy(const struct quire_shape *s, char *storage, int64_t nbytes,
                              const int32_t *source, const int32_t *target, int64_t n)
{
	int64_t page_bytes = nbytes / s->num_layers / s->num_pages;
	char *before = malloc((size_t)nbytes);

	memcpy(before, storage, (size_t)nbytes);
	for (int64_t layer = 0; layer < s->num_layers; layer++)
		for (int64_t i = 0; i < n; i++)
			memcpy(storage + (layer * s->num_pages + target[i]) * page_bytes,
			       before + (layer * s->num_pages + source[i]) * page_bytes,
			       (size_t)page_bytes);
	free(before);
}

#endif
