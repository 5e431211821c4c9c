/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_TESTS_KERNELS_CACHE_FIXTURE_H
#define QUIRE_TESTS_KERNELS_CACHE_FIXTURE_H
/*
 * A cache under test beside an image of what it should hold.  The storage is reached by
 * copies alone, and what operations read is pinned: device memory may be out of reach.
 */
#include <quire/kernels/cache.h>

#include "tests/kernels/naive_cache.h"

#include <check.h>

#define FIXTURE_PINNED_MAX 64
#define FIXTURE_AROUND     0x77

struct fixture {
	struct quire_device *device;
	struct quire_dstream *dstream;
	struct quire_dstream *side; /* fills and reads the storage */
	struct quire_cache *cache;
	struct naive_image expected;
	int64_t nbytes;
	char *memory; /* of the device: the storage, and around it bytes of nobody's */
	int64_t memory_bytes;
	int64_t before; /* the storage */
	char *got;      /* pinned; the storage as it was last fetched, in @around */
	char *around;
	struct {
		void *memory;
		int64_t bytes;
	} pinned[FIXTURE_PINNED_MAX];
	int num_pinned;
};

/* Pinned memory, until the fixture ends. */
static inline void *fixture_pinned(struct fixture *f, size_t bytes)
{
	void *memory = NULL;

	ck_assert_int_lt(f->num_pinned, FIXTURE_PINNED_MAX);
	ck_assert_int_eq(quire_device_alloc_pinned(f->device, (int64_t)bytes, &memory),
	                 QUIRE_OK);
	f->pinned[f->num_pinned].memory = memory;
	f->pinned[f->num_pinned++].bytes = (int64_t)bytes;
	return memory;
}

/* Rows of elements of any value, and an offset in bytes at which they begin. */
static inline char *fixture_rows(struct fixture *f, uint64_t *seed,
                                 enum quire_dtype dtype, int64_t elements, int64_t at)
{
	size_t bytes = (size_t)(elements * quire_dtype_bytes(dtype) + at);
	char *rows = (char *)fixture_pinned(f, bytes + 1) + at;

	any_values(seed, dtype, rows, elements);
	return rows;
}

static inline int32_t *fixture_list(struct fixture *f, const int32_t *values, int64_t n)
{
	int32_t *list = fixture_pinned(f, (size_t)(n + 1) * sizeof(*list));

	if (n > 0)
		memcpy(list, values, (size_t)n * sizeof(*list));
	return list;
}

static inline void fixture_copy(struct fixture *f, void *target, const void *source)
{
	struct quire_range range = {target, source, f->memory_bytes};

	ck_assert_int_eq(quire_dstream_copy(f->side, &range, 1), QUIRE_OK);
	ck_assert_int_eq(quire_dstream_synchronize(f->side, NULL), QUIRE_OK);
}

/* The storage becomes the image. */
static inline void fixture_put(struct fixture *f)
{
	memcpy(f->got, f->expected.storage, (size_t)f->nbytes);
	fixture_copy(f, f->memory, f->around);
}

/* The bytes around the storage are always what they were. */
static inline void fixture_fetch(struct fixture *f)
{
	fixture_copy(f, f->around, f->memory);
	for (int64_t i = 0; i < f->memory_bytes; i++)
		if ((i < f->before || i >= f->before + f->nbytes) &&
		    f->around[i] != FIXTURE_AROUND)
			ck_abort_msg("byte %ld of the storage was written",
			             (long)(i - f->before));
}

/* The storage is the image, once all operations are done. */
static inline void fixture_expect(struct fixture *f, const char *when, int round)
{
	const char *expected = f->expected.storage;
	enum quire_dtype dtype = f->expected.shape.dtype;

	ck_assert_int_eq(quire_dstream_synchronize(f->dstream, NULL), QUIRE_OK);
	fixture_fetch(f);
	if (memcmp(f->got, expected, (size_t)f->nbytes) == 0)
		return;
	for (int64_t i = 0; i < naive_total(&f->expected.shape); i++) {
		uint32_t got = naive_load(dtype, f->got, i);
		uint32_t wanted = naive_load(dtype, expected, i);

		if (got != wanted)
			ck_abort_msg("%s, round %d: element %ld of %ld is %x and not %x",
			             when, round, (long)i,
			             (long)naive_total(&f->expected.shape), got, wanted);
	}
}

/* A storage whose bytes are all 0xff, NaN in every dtype; it begins at any multiple of
 * QUIRE_STORAGE_ALIGN. */
static inline void fixture_begin(struct fixture *f, const char *device,
                                 const struct quire_shape *shape)
{
	void *memory;

	*f = (struct fixture){.expected = {.shape = *shape}};
	ck_assert_int_eq(quire_device_create(device, &f->device, NULL), QUIRE_OK);
	ck_assert_int_eq(quire_dstream_create(f->device, "test", &f->dstream), QUIRE_OK);
	ck_assert_int_eq(quire_dstream_create(f->device, "side", &f->side), QUIRE_OK);
	f->nbytes = naive_total(shape) * quire_dtype_bytes(shape->dtype);
	f->before = 64 + shape->num_pages % 4 * QUIRE_STORAGE_ALIGN;
	f->memory_bytes = f->before + f->nbytes + 64;
	ck_assert_int_eq(quire_device_alloc(f->device, f->memory_bytes, &memory),
	                 QUIRE_OK);
	f->memory = memory;
	ck_assert_int_eq(quire_cache_create_on(f->device, shape, f->memory + f->before,
	                                       f->nbytes, &f->cache, NULL),
	                 QUIRE_OK);
	f->around = fixture_pinned(f, (size_t)f->memory_bytes);
	f->got = f->around + f->before;
	f->expected.storage = malloc((size_t)f->nbytes);
	memset(f->around, FIXTURE_AROUND, (size_t)f->memory_bytes);
	memset(f->expected.storage, 0xff, (size_t)f->nbytes);
	fixture_put(f);
}

static inline void fixture_end(struct fixture *f)
{
	quire_dstream_destroy(f->side);
	quire_dstream_destroy(f->dstream);
	for (int i = 0; i < f->num_pinned; i++)
		quire_device_release_pinned(f->device, f->pinned[i].memory,
		                            f->pinned[i].bytes);
	quire_cache_destroy(f->cache);
	quire_device_release(f->device, f->memory, f->memory_bytes);
	quire_device_destroy(f->device);
	free(f->expected.storage);
}

/* Any content, in the image and in the storage. */
static inline void fixture_fill(struct fixture *f, uint64_t *seed)
{
	any_bytes(seed, f->expected.storage, (size_t)f->nbytes);
	fixture_put(f);
}

#endif
