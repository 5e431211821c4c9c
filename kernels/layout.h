/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_KERNELS_LAYOUT_H
#define QUIRE_KERNELS_LAYOUT_H
/*
 * Layout arithmetic: where a token's bytes are.  Pure; all offsets are 64-bit.
 *
 *   NHD  [layer, page, 2, token, head, dim]   K at 0 and V at 1
 *   HND  [layer, page, 2, head, token, dim]   K at 0 and V at 1
 *   MLA  [layer, page, token, dim]            one latent per token, one head
 *
 * All are contiguous, and one description serves all three.  A page of one layer is a
 * list of chunks of equal size; a chunk holds a part of every token of the page, one
 * behind the other:
 *
 *          chunks of a page   part of a token in a chunk
 *   NHD    2                  num_kv_heads * head_dim
 *   HND    2 * num_kv_heads   head_dim; with page_size 1 as NHD
 *   MLA    1                  head_dim
 *
 * The row of a token (its K, its V, or its latent) is one piece of each of `pieces`
 * chunks, in their order: chunks [0, pieces) hold K, chunks [pieces, 2 * pieces) hold V.
 *
 * Source: KVCache of mstar.engine.resources.kv.cache; the NHD and HND layouts of
 * FlashInfer.
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
	QUIRE_HND,
	QUIRE_MLA,
};
#define QUIRE_LAYOUT_COUNT 3

/* What a cache holds.  All sizes are 1 or more; num_pages <= QUIRE_PAGES_MAX, page_size
 * <= QUIRE_PAGE_SIZE_MAX, the whole must fit in 2^62 bytes, and MLA has one head. */
struct quire_shape {
	enum quire_layout layout;
	enum quire_dtype dtype;
	int64_t num_layers;
	int64_t num_pages;
	int64_t page_size;    /* tokens of one page */
	int64_t num_kv_heads; /* heads of one rank */
	int64_t head_dim;     /* elements of one head; under MLA, of the latent */
};

/*
 * What follows from a shape: strides in elements, sizes in bytes.
 *   chunk_stride = page_size * token_stride
 *   page_stride  = num_kv * pieces * chunk_stride
 *   layer_stride = num_pages * page_stride
 *   row_bytes    = pieces * token_stride * element_bytes
 *   token_bytes  = num_kv * row_bytes
 */
struct quire_geometry {
	int64_t num_layers;
	int64_t num_pages;
	int64_t page_size;
	int64_t num_kv;       /* rows of a token: 2, K and V; under MLA 1 */
	int64_t pieces;       /* of a row */
	int64_t token_stride; /* elements of one piece */
	int64_t chunk_stride;
	int64_t page_stride;
	int64_t layer_stride;
	int64_t element_bytes;
	int64_t row_bytes;   /* K or V of one token of one layer */
	int64_t token_bytes; /* all rows of one token of one layer */
	int64_t nbytes;      /* the whole storage */
	enum quire_dtype dtype;
};

/*
 * quire_geometry_init - check a shape and derive its strides
 * @shape:   borrowed
 * @geometry_out: filled
 * @refusal_out: filled on refusal {what: the field, got, expected: its bound}; NULL
 *           allowed
 * Returns:  QUIRE_OK; QUIRE_INVALID: a field out of range or the product too large.
 * Threads:  any.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_geometry_init(const struct quire_shape *shape, struct quire_geometry *geometry_out,
                    struct quire_refusal *refusal_out);

/*
 * quire_geometry_offset - bytes from the start of the storage to one token in one chunk
 * @chunk:   0 .. num_kv * pieces - 1
 * Threads:  any.
 * Cost:     a few multiplications; indices are not checked.
 */
static inline QUIRE_HOST_DEVICE int64_t
quire_geometry_offset(const struct quire_geometry *geometry, int64_t layer, int64_t page,
                      int64_t chunk, int64_t token)
{
	return (layer * geometry->layer_stride + page * geometry->page_stride +
	        chunk * geometry->chunk_stride + token * geometry->token_stride) *
	       geometry->element_bytes;
}

/* quire_layout_name - "NHD", "HND", "MLA"; "unknown" for a number that is no layout */
QUIRE_API const char *quire_layout_name(enum quire_layout layout);

/* quire_layout_parse - QUIRE_OK; QUIRE_INVALID: no such name */
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_layout_parse(const char *name, enum quire_layout *layout_out);

#ifdef __cplusplus
}
#endif
#endif
