/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "kernels/cache_impl.h"
#include "kernels/device_impl.h"
#include "runtime/refuse_impl.h"

#include <stdlib.h>

_Static_assert(QUIRE_STORAGE_ALIGN == 16, "a refusal names it");

static enum quire_status take_storage(struct quire_cache *cache,
                                      struct quire_refusal *refusal_out)
{
	void *storage;
	enum quire_status status =
		quire_device_alloc(cache->device, cache->geometry.nbytes, &storage);

	if (status == QUIRE_OK) {
		cache->storage = storage;
		return QUIRE_OK;
	}
	quire_refuse_what(refusal_out, status, "storage of the cache");
	if (refusal_out != NULL)
		refusal_out->requested = cache->geometry.nbytes;
	return status;
}

static enum quire_status use_storage(struct quire_cache *cache, void *storage,
                                     int64_t storage_bytes,
                                     struct quire_refusal *refusal_out)
{
	if (storage == NULL)
		return quire_refuse_what(refusal_out, QUIRE_INVALID, "storage is NULL");
	if ((uintptr_t)storage % QUIRE_STORAGE_ALIGN != 0)
		return quire_refuse_what(refusal_out, QUIRE_INVALID,
		                         "storage: its address is not a multiple of 16");
	if (storage_bytes < cache->geometry.nbytes)
		return quire_refuse_bound(refusal_out, QUIRE_INVALID, "storage_bytes", -1,
		                          storage_bytes, cache->geometry.nbytes);
	cache->storage = storage;
	cache->storage_is_given = true;
	return QUIRE_OK;
}

/* A cache without storage. */
static enum quire_status begin_cache(struct quire_device *device,
                                     const struct quire_shape *shape,
                                     struct quire_cache **cache_out,
                                     struct quire_refusal *refusal_out)
{
	struct quire_cache *cache = calloc(1, sizeof(*cache));
	enum quire_status status;

	if (cache == NULL)
		return quire_refuse_what(refusal_out, QUIRE_NO_MEMORY, "cache");
	status = quire_geometry_init(shape, &cache->geometry, refusal_out);
	if (status != QUIRE_OK) {
		free(cache);
		return status;
	}
	cache->tokens_max = INT64_MAX / (2 * (int64_t)sizeof(float)) /
	                    (cache->geometry.pieces * cache->geometry.token_stride);
	cache->device = device;
	cache->shape = *shape;
	atomic_init(&cache->names, 1);
	*cache_out = cache;
	return QUIRE_OK;
}

/* The cache is complete, or gone. */
static enum quire_status end_create(struct quire_cache *cache, enum quire_status status,
                                    struct quire_cache **cache_out)
{
	if (status != QUIRE_OK) {
		free(cache);
		return status;
	}
	quire_device_retain(cache->device);
	*cache_out = cache;
	return QUIRE_OK;
}

enum quire_status quire_cache_create(struct quire_device *device,
                                     const struct quire_shape *shape,
                                     struct quire_cache **cache_out,
                                     struct quire_refusal *refusal_out)
{
	struct quire_cache *cache;
	enum quire_status status = begin_cache(device, shape, &cache, refusal_out);

	if (status != QUIRE_OK)
		return status;
	return end_create(cache, take_storage(cache, refusal_out), cache_out);
}

enum quire_status quire_cache_create_on(struct quire_device *device,
                                        const struct quire_shape *shape, void *storage,
                                        int64_t storage_bytes,
                                        struct quire_cache **cache_out,
                                        struct quire_refusal *refusal_out)
{
	struct quire_cache *cache;
	enum quire_status status = begin_cache(device, shape, &cache, refusal_out);

	if (status != QUIRE_OK)
		return status;
	status = use_storage(cache, storage, storage_bytes, refusal_out);
	return end_create(cache, status, cache_out);
}

void quire_cache_release(struct quire_cache *cache)
{
	/* Acquire and release: whoever ends the last name comes behind all that others
	 * did under theirs. */
	if (atomic_fetch_sub_explicit(&cache->names, 1, memory_order_acq_rel) > 1)
		return;
	if (!cache->storage_is_given)
		quire_device_release(cache->device, cache->storage,
		                     cache->geometry.nbytes);
	quire_device_destroy(cache->device);
	free(cache);
}

void quire_cache_destroy(struct quire_cache *cache)
{
	if (cache != NULL)
		quire_cache_release(cache);
}

struct quire_device *quire_cache_device(const struct quire_cache *cache)
{
	return cache->device;
}

const struct quire_shape *quire_cache_shape(const struct quire_cache *cache)
{
	return &cache->shape;
}

const struct quire_geometry *quire_cache_geometry(const struct quire_cache *cache)
{
	return &cache->geometry;
}

void *quire_cache_data_ptr(const struct quire_cache *cache)
{
	return cache->storage;
}

int64_t quire_cache_nbytes(const struct quire_cache *cache)
{
	return cache->geometry.nbytes;
}

bool quire_cache_takes(const struct quire_cache *cache, enum quire_dtype dtype)
{
	return dtype == QUIRE_F32 || dtype == QUIRE_F16 || dtype == QUIRE_BF16 ||
	       dtype == cache->geometry.dtype;
}

/* What write_tokens and read_tokens have in common. */
static enum quire_status check_tokens(const struct quire_cache *cache,
                                      const struct quire_dstream *dstream, int64_t layer,
                                      const struct quire_slots *slots,
                                      struct quire_refusal *refusal_out)
{
	const struct quire_geometry *geometry = &cache->geometry;
	enum quire_status status;

	if (dstream->device != cache->device)
		return quire_refuse_what(refusal_out, QUIRE_INVALID,
		                         "dstream of another device");
	status = quire_check_range(refusal_out, "layer", -1, layer, 0,
	                           geometry->num_layers - 1);
	if (status == QUIRE_OK)
		status = quire_check_range(refusal_out, "n", -1, slots->n, 0,
		                           cache->tokens_max);
	if (status == QUIRE_OK && slots->offset == NULL) {
		status = quire_check_range(refusal_out, "first", -1, slots->first, 0,
		                           QUIRE_SEQ_TOKENS_MAX);
		if (status == QUIRE_OK)
			status = quire_check_range(refusal_out, "n", -1, slots->n, 0,
			                           QUIRE_SEQ_TOKENS_MAX - slots->first);
	}
	if (status == QUIRE_OK && slots->n > 0 && slots->page == NULL)
		status = quire_refuse_what(refusal_out, QUIRE_INVALID, "page is NULL");
	return status;
}

/* Every field but those of rows; in place, which one token notices. */
static void begin_move(struct quire_token_move *move, struct quire_cache *cache,
                       int64_t layer, const struct quire_slots *slots, void *out)
{
	move->geometry = &cache->geometry;
	move->storage = cache->storage;
	move->layer = layer;
	move->slots = *slots;
	move->out = out;
}

static enum quire_status check_rows(const struct quire_cache *cache, const void *k,
                                    const void *v, struct quire_refusal *refusal_out)
{
	if (k == NULL)
		return quire_refuse_what(refusal_out, QUIRE_INVALID, "k is NULL");
	if (cache->geometry.num_kv == 1 && v != NULL)
		return quire_refuse_what(refusal_out, QUIRE_INVALID,
		                         "v is not NULL, but MLA has none");
	if (cache->geometry.num_kv == 2 && v == NULL)
		return quire_refuse_what(refusal_out, QUIRE_INVALID, "v is NULL");
	return QUIRE_OK;
}

enum quire_status quire_cache_write_tokens(struct quire_cache *cache,
                                           struct quire_dstream *dstream, int64_t layer,
                                           const struct quire_slots *slots, const void *k,
                                           const void *v, enum quire_dtype dtype,
                                           void *out, struct quire_refusal *refusal_out)
{
	enum quire_status status =
		check_tokens(cache, dstream, layer, slots, refusal_out);
	struct quire_token_move move;

	if (status == QUIRE_OK && !quire_cache_takes(cache, dtype))
		status =
			quire_refuse_what(refusal_out, QUIRE_INVALID,
		                          "dtype: neither f32, f16, bf16 nor that of the "
		                          "cache");
	if (status != QUIRE_OK || slots->n == 0)
		return status;
	status = check_rows(cache, k, v, refusal_out);
	if (status != QUIRE_OK)
		return status;
	begin_move(&move, cache, layer, slots, out);
	move.row[0] = k;
	move.row[1] = v;
	move.dtype = dtype;
	return cache->device->ops->write_tokens(dstream, &move, refusal_out);
}

enum quire_status quire_cache_read_tokens(struct quire_cache *cache,
                                          struct quire_dstream *dstream, int64_t layer,
                                          const struct quire_slots *slots, void *out,
                                          struct quire_refusal *refusal_out)
{
	enum quire_status status =
		check_tokens(cache, dstream, layer, slots, refusal_out);
	struct quire_token_move move;

	if (status != QUIRE_OK || slots->n == 0)
		return status;
	if (out == NULL)
		return quire_refuse_what(refusal_out, QUIRE_INVALID, "out is NULL");
	begin_move(&move, cache, layer, slots, out);
	move.row[0] = NULL;
	move.row[1] = NULL;
	move.dtype = cache->geometry.dtype;
	return cache->device->ops->read_tokens(dstream, &move, refusal_out);
}

static enum quire_status move_pages(struct quire_cache *cache,
                                    struct quire_dstream *dstream,
                                    struct quire_page_move *move,
                                    struct quire_refusal *refusal_out)
{
	enum quire_status status;

	if (dstream->device != cache->device)
		return quire_refuse_what(refusal_out, QUIRE_INVALID,
		                         "dstream of another device");
	/* More pairs than pages name some target twice. */
	status = quire_check_range(refusal_out, "n", -1, move->n, 0,
	                           cache->geometry.num_pages);
	if (status != QUIRE_OK || move->n == 0)
		return status;
	if (move->source == NULL || move->target == NULL)
		return quire_refuse_what(refusal_out, QUIRE_INVALID,
		                         move->source == NULL ? "source is NULL"
		                                              : "target is NULL");
	move->geometry = &cache->geometry;
	move->storage = cache->storage;
	return cache->device->ops->copy_pages(dstream, move, refusal_out);
}

enum quire_status quire_cache_copy_pages(struct quire_cache *cache,
                                         struct quire_dstream *dstream,
                                         const int32_t *source, const int32_t *target,
                                         int64_t n, struct quire_refusal *refusal_out)
{
	struct quire_page_move move = {.source = source, .target = target, .n = n};

	return move_pages(cache, dstream, &move, refusal_out);
}

enum quire_status quire_cache_copy_slots(struct quire_cache *cache,
                                         struct quire_dstream *dstream,
                                         const int32_t *source, const int32_t *target,
                                         const int32_t *end, int64_t n,
                                         struct quire_refusal *refusal_out)
{
	struct quire_page_move move = {
		.source = source, .target = target, .end = end, .n = n};

	if (n > 0 && end == NULL)
		return quire_refuse_what(refusal_out, QUIRE_INVALID, "end is NULL");
	return move_pages(cache, dstream, &move, refusal_out);
}
