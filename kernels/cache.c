/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <quire/kernels/cache.h>

#include "kernels/device_impl.h"
#include "runtime/refuse_impl.h"

#include <stdlib.h>

struct quire_cache {
	struct quire_device *device;
	struct quire_shape shape;
	struct quire_geometry geometry;
	void *storage;
};

enum quire_status quire_cache_create(struct quire_device *device,
                                     const struct quire_shape *shape,
                                     struct quire_cache **cache_out,
                                     struct quire_refusal *refusal_out)
{
	struct quire_cache *cache = malloc(sizeof(*cache));
	enum quire_status status;

	if (cache == NULL)
		return quire_refuse_what(refusal_out, QUIRE_NO_MEMORY, "cache");
	status = quire_geometry_init(shape, &cache->geometry, refusal_out);
	if (status != QUIRE_OK)
		goto undo_malloc;
	status = quire_device_alloc(device, cache->geometry.nbytes, &cache->storage);
	if (status != QUIRE_OK) {
		quire_refuse_what(refusal_out, status, "storage of the cache");
		if (refusal_out != NULL)
			refusal_out->requested = cache->geometry.nbytes;
		goto undo_malloc;
	}
	cache->device = device;
	cache->shape = *shape;
	*cache_out = cache;
	return QUIRE_OK;

undo_malloc:
	free(cache);
	return status;
}

void quire_cache_destroy(struct quire_cache *cache)
{
	if (cache == NULL)
		return;
	quire_device_release(cache->device, cache->storage, cache->geometry.nbytes);
	free(cache);
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

static enum quire_status check_range(struct quire_refusal *refusal_out, const char *what,
                                     int64_t got, int64_t max)
{
	if (got < 0 || got > max)
		return quire_refuse_bound(refusal_out, QUIRE_INVALID, what, -1, got,
		                          got < 0 ? 0 : max);
	return QUIRE_OK;
}

/* What write_tokens and read_tokens have in common. */
static enum quire_status check_tokens(const struct quire_cache *cache,
                                      const struct quire_dstream *dstream, int64_t layer,
                                      const struct quire_slots *slots,
                                      struct quire_refusal *refusal_out)
{
	/* Rows of the widest dtype, K and V, stay within int64. */
	int64_t n_max =
		INT64_MAX / (2 * (int64_t)sizeof(float)) / cache->geometry.token_stride;
	enum quire_status status;

	if (dstream->device != cache->device)
		return quire_refuse_what(refusal_out, QUIRE_INVALID,
		                         "dstream of another device");
	status = check_range(refusal_out, "layer", layer, cache->geometry.num_layers - 1);
	if (status != QUIRE_OK)
		return status;
	status = check_range(refusal_out, "n", slots->n, n_max);
	if (status != QUIRE_OK)
		return status;
	if (slots->offset == NULL) {
		status = check_range(refusal_out, "first", slots->first,
		                     QUIRE_SEQ_TOKENS_MAX);
		if (status == QUIRE_OK)
			status = check_range(refusal_out, "n", slots->n,
			                     QUIRE_SEQ_TOKENS_MAX - slots->first);
		if (status != QUIRE_OK)
			return status;
	}
	if (slots->n > 0 && slots->page == NULL)
		return quire_refuse_what(refusal_out, QUIRE_INVALID, "page is NULL");
	return QUIRE_OK;
}

static struct quire_token_move token_move(struct quire_cache *cache, int64_t layer,
                                          const struct quire_slots *slots)
{
	return (struct quire_token_move){
		.geometry = &cache->geometry,
		.storage = cache->storage,
		.layer = layer,
		.slots = *slots,
	};
}

enum quire_status quire_cache_write_tokens(struct quire_cache *cache,
                                           struct quire_dstream *dstream, int64_t layer,
                                           const struct quire_slots *slots, const void *k,
                                           const void *v, enum quire_dtype dtype,
                                           struct quire_refusal *refusal_out)
{
	enum quire_status status =
		check_tokens(cache, dstream, layer, slots, refusal_out);
	struct quire_token_move move;

	if (status == QUIRE_OK)
		status = check_range(refusal_out, "dtype", (int64_t)dtype,
		                     QUIRE_DTYPE_COUNT - 1);
	if (status != QUIRE_OK)
		return status;
	if (slots->n > 0 && (k == NULL || v == NULL))
		return quire_refuse_what(refusal_out, QUIRE_INVALID,
		                         k == NULL ? "k is NULL" : "v is NULL");
	move = token_move(cache, layer, slots);
	move.k = k;
	move.v = v;
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

	if (status != QUIRE_OK)
		return status;
	if (slots->n > 0 && out == NULL)
		return quire_refuse_what(refusal_out, QUIRE_INVALID, "out is NULL");
	move = token_move(cache, layer, slots);
	move.out = out;
	return cache->device->ops->read_tokens(dstream, &move, refusal_out);
}

enum quire_status quire_cache_copy_pages(struct quire_cache *cache,
                                         struct quire_dstream *dstream,
                                         const int32_t *source, const int32_t *target,
                                         int64_t n, struct quire_refusal *refusal_out)
{
	struct quire_page_move move = {
		.geometry = &cache->geometry,
		.storage = cache->storage,
		.source = source,
		.target = target,
		.n = n,
	};
	enum quire_status status;

	if (dstream->device != cache->device)
		return quire_refuse_what(refusal_out, QUIRE_INVALID,
		                         "dstream of another device");
	/* More pairs than pages name some target twice. */
	status = check_range(refusal_out, "n", n, cache->geometry.num_pages);
	if (status != QUIRE_OK)
		return status;
	if (n > 0 && (source == NULL || target == NULL))
		return quire_refuse_what(refusal_out, QUIRE_INVALID,
		                         source == NULL ? "source is NULL"
		                                        : "target is NULL");
	return cache->device->ops->copy_pages(dstream, &move, refusal_out);
}
