/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "kernels/cache_impl.h"
#include "kernels/device_impl.h"
#include "runtime/refuse_impl.h"

#include <stdlib.h>

static const DLDataType dlpack_types[QUIRE_DTYPE_COUNT] = {
	[QUIRE_F32] = {kDLFloat, 32, 1},
	[QUIRE_F16] = {kDLFloat, 16, 1},
	[QUIRE_BF16] = {kDLBfloat, 16, 1},
	[QUIRE_FP8_E4M3] = {QUIRE_DLPACK_FLOAT8_E4M3FN, 8, 1},
	[QUIRE_FP8_E5M2] = {QUIRE_DLPACK_FLOAT8_E5M2, 8, 1},
};

static enum quire_status check_chunk(const struct quire_geometry *geometry,
                                     const struct quire_chunk *chunk,
                                     struct quire_refusal *refusal_out)
{
	enum quire_status status = quire_check_range(
		refusal_out, "layer", -1, chunk->layer, 0, geometry->num_layers - 1);

	if (status == QUIRE_OK)
		status = quire_check_range(refusal_out, "page", -1, chunk->page, 0,
		                           geometry->num_pages - 1);
	if (status == QUIRE_OK)
		status = quire_check_range(refusal_out, "first", -1, chunk->first, 0,
		                           geometry->page_size);
	if (status == QUIRE_OK)
		status = quire_check_range(refusal_out, "end", -1, chunk->end,
		                           chunk->first, geometry->page_size);
	return status;
}

enum quire_status quire_cache_chunk_ptrs(const struct quire_cache *cache,
                                         const struct quire_chunk *chunk, uint64_t base,
                                         uint64_t *pointers, int64_t pointers_max,
                                         int64_t *num_out, int64_t *bytes_out,
                                         struct quire_refusal *refusal_out)
{
	const struct quire_geometry *geometry = &cache->geometry;
	int64_t num = geometry->num_kv * geometry->pieces;
	enum quire_status status = check_chunk(geometry, chunk, refusal_out);

	if (status != QUIRE_OK)
		return status;
	if (num > pointers_max)
		return quire_refuse_bound(refusal_out, QUIRE_LIMIT, "pointers_max", -1,
		                          pointers_max, num);
	if (base == 0)
		base = (uint64_t)(uintptr_t)cache->storage;
	for (int64_t c = 0; c < num; c++)
		pointers[c] = base + (uint64_t)quire_geometry_offset(
					     geometry, chunk->layer, chunk->page, c,
					     chunk->first);
	*num_out = num;
	*bytes_out = (chunk->end - chunk->first) * geometry->token_stride *
	             geometry->element_bytes;
	return QUIRE_OK;
}

static void set_dimension(struct quire_tensor *view, int64_t size, int64_t stride)
{
	view->shape[view->dl.ndim] = size;
	view->strides[view->dl.ndim] = stride;
	view->dl.ndim++;
}

/* A view without dimensions of what begins `offset` bytes behind @storage. */
static void begin_view(const struct quire_cache *cache, char *storage, int64_t offset,
                       struct quire_tensor *view)
{
	view->dl = (DLTensor){
		.data = storage + offset,
		.device = {(DLDeviceType)cache->device->dlpack_type,
	                   cache->device->dlpack_id},
		.dtype = dlpack_types[cache->shape.dtype],
		.shape = view->shape,
		.strides = view->strides,
	};
}

enum quire_status quire_cache_chunk_view(const struct quire_cache *cache,
                                         const struct quire_chunk *chunk, void *storage,
                                         struct quire_tensor *view_out,
                                         struct quire_refusal *refusal_out)
{
	const struct quire_geometry *geometry = &cache->geometry;
	const struct quire_shape *shape = &cache->shape;
	enum quire_status status = check_chunk(geometry, chunk, refusal_out);

	if (status != QUIRE_OK)
		return status;
	begin_view(cache, storage != NULL ? storage : cache->storage,
	           quire_geometry_offset(geometry, chunk->layer, chunk->page, 0,
	                                 chunk->first),
	           view_out);
	set_dimension(view_out, geometry->num_kv,
	              geometry->pieces * geometry->chunk_stride);
	set_dimension(view_out, chunk->end - chunk->first, geometry->token_stride);
	set_dimension(view_out, shape->num_kv_heads,
	              geometry->pieces == 1 ? shape->head_dim : geometry->chunk_stride);
	set_dimension(view_out, shape->head_dim, 1);
	return QUIRE_OK;
}

/* Sizes of one page in its layout, outermost first; all is contiguous. */
static int page_sizes(const struct quire_shape *shape, int64_t *sizes)
{
	int num = 0;

	if (shape->layout != QUIRE_MLA)
		sizes[num++] = 2;
	if (shape->layout == QUIRE_HND)
		sizes[num++] = shape->num_kv_heads;
	sizes[num++] = shape->page_size;
	if (shape->layout == QUIRE_NHD)
		sizes[num++] = shape->num_kv_heads;
	sizes[num++] = shape->head_dim;
	return num;
}

enum quire_status quire_cache_layer_view(const struct quire_cache *cache, int64_t layer,
                                         struct quire_tensor *view_out,
                                         struct quire_refusal *refusal_out)
{
	const struct quire_geometry *geometry = &cache->geometry;
	enum quire_status status = quire_check_range(refusal_out, "layer", -1, layer, 0,
	                                             geometry->num_layers - 1);
	int64_t stride = geometry->page_stride;
	int64_t sizes[QUIRE_TENSOR_DIMS_MAX];
	int num;

	if (status != QUIRE_OK)
		return status;
	begin_view(cache, cache->storage, quire_geometry_offset(geometry, layer, 0, 0, 0),
	           view_out);
	set_dimension(view_out, geometry->num_pages, stride);
	num = page_sizes(&cache->shape, sizes);
	for (int i = 0; i < num; i++) {
		stride /= sizes[i];
		set_dimension(view_out, sizes[i], stride);
	}
	return QUIRE_OK;
}

struct export
{
	DLManagedTensor managed;
	struct quire_tensor view;
};

static void end_export(DLManagedTensor *managed)
{
	quire_cache_release(managed->manager_ctx);
	free(managed); /* the first member of its export */
}

enum quire_status quire_cache_export_layer(struct quire_cache *cache, int64_t layer,
                                           DLManagedTensor **tensor_out,
                                           struct quire_refusal *refusal_out)
{
	struct export *export = malloc(sizeof(*export));
	enum quire_status status;

	if (export == NULL)
		return quire_refuse_what(refusal_out, QUIRE_NO_MEMORY, "export");
	status = quire_cache_layer_view(cache, layer, &export->view, refusal_out);
	if (status != QUIRE_OK) {
		free(export);
		return status;
	}
	/* Relaxed: who may call this holds a name already. */
	atomic_fetch_add_explicit(&cache->names, 1, memory_order_relaxed);
	export->managed = (DLManagedTensor){
		.dl_tensor = export->view.dl,
		.manager_ctx = cache,
		.deleter = end_export,
	};
	*tensor_out = &export->managed;
	return QUIRE_OK;
}
