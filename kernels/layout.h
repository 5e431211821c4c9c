/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_KERNELS_LAYOUT_H
#define QUIRE_KERNELS_LAYOUT_H
/*
 * Layout arithmetic: where a token's bytes are.  Pure; all offsets are 64-bit.
 *
 * NHD  [layer, page, 2, token, head, dim], K at 0 and V at 1, contiguous.  In elements:
 *      token_stride = num_kv_heads * head_dim        (one row: K or V of one token)
 *      kv_stride    = page_size * token_stride
 *      page_stride  = 2 * kv_stride
 *      layer_stride = num_pages * page_stride
 *
 * Source: KVCache of mstar.engine.resources.kv.cache; the NHD layout of FlashInfer.
 */
#include <quire/kernels/dtype.h>
#include <quire/runtime/limits.h>
#include <quire/runtime/status.h>

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum quire_layout {
	QUIRE_NHD,
};

/* What a cache holds.  All fields are 1 or more; num_pages <= QUIRE_PAGES_MAX, page_size
 * <= QUIRE_PAGE_SIZE_MAX, and the whole must fit in 2^62 bytes. */
struct quire_shape {
	enum quire_layout layout;
	enum quire_dtype dtype;
	int64_t num_layers;
	int64_t num_pages;
	int64_t page_size;    /* tokens of one page */
	int64_t num_kv_heads; /* heads of one rank */
	int64_t head_dim;     /* elements of one head */
};

/* What follows from a shape: strides in elements, sizes in bytes. */
struct quire_geometry {
	int64_t num_layers;
	int64_t num_pages;
	int64_t page_size;
	int64_t token_stride;
	int64_t kv_stride;
	int64_t page_stride;
	int64_t layer_stride;
	int64_t element_bytes;
	int64_t row_bytes; /* K or V of one token of one layer */
	int64_t nbytes;    /* the whole storage */
	enum quire_dtype dtype;
};

/*
 * quire_geometry_init - check a shape and derive its strides
 * @shape:   borrowed
 * @refusal_out: filled on refusal {what: the field, got, expected: its bound}; NULL
 *           allowed
 * Returns:  QUIRE_OK; QUIRE_INVALID: a field out of range or the product too large.
 * Threads:  any.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_geometry_init(const struct quire_shape *shape, struct quire_geometry *geometry_out,
                    struct quire_refusal *refusal_out);

/*
 * quire_geometry_offset - bytes from the start of the storage to one row
 * @kv:      0 for K, 1 for V
 * Threads:  any.
 * Cost:     a few multiplications; indices are not checked.
 */
static inline QUIRE_HOST_DEVICE int64_t
quire_geometry_offset(const struct quire_geometry *geometry, int64_t layer, int64_t page,
                      int64_t kv, int64_t token)
{
	return (layer * geometry->layer_stride + page * geometry->page_stride +
	        kv * geometry->kv_stride + token * geometry->token_stride) *
	       geometry->element_bytes;
}

/* quire_layout_name - "NHD" */
QUIRE_API const char *quire_layout_name(enum quire_layout layout);

/* quire_layout_parse - QUIRE_OK; QUIRE_INVALID: no such name */
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_layout_parse(const char *name, enum quire_layout *layout_out);

#ifdef __cplusplus
}
#endif
#endif
