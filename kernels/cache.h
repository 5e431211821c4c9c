/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_KERNELS_CACHE_H
#define QUIRE_KERNELS_CACHE_H
/*
 * The cache: storage of all pages, and the operations that move their bytes.
 *
 * Every operation is queued on a device stream and returns at once.  The lists and rows
 * it names are memory that the device can read (on cpu: any memory; on cuda: device or
 * pinned memory), kept until the operation is done; rows and what is read overlap neither
 * each other nor the storage.  An operation of n = 0 does nothing, on a failed stream
 * too.
 *
 * Sizes and arguments are checked at the call; page ids, offsets and ends when the
 * operation runs, all of them before the first byte moves: one that is out of range fails
 * the device stream with QUIRE_INVALID {what, index, got, expected} and nothing of that
 * operation is written.  A cuda device looks at them only where it was asked to
 * (device.h).
 *
 * Conversions raise no signal, whatever floating-point exceptions the caller unmasked.
 *
 * Rows of several kinds are arrays without gaps.  num_kv is 2, K at 0 and V at 1; under
 * MLA it is 1, the latent.
 *
 * Source: KVCache of mstar.engine.resources.kv.cache.
 */
#include <quire/kernels/device.h>
#include <quire/kernels/dlpack.h>
#include <quire/kernels/dtype.h>
#include <quire/kernels/layout.h>
#include <quire/runtime/status.h>

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct quire_cache;

/*
 * Which token slots an operation touches, in order.
 *
 *   offset != NULL   slot i is token offset[i] of page[i]
 *   offset == NULL   page[] lists the pages of one stream, and slot i is token first + i
 *                    of it: token (first + i) mod page_size of page[(first + i) /
 *                    page_size].  Of page[] the entries from first / page_size up to
 *                    (first + n - 1) / page_size are looked at.
 */
struct quire_slots {
	const int32_t *page;
	const int32_t *offset;
	int64_t first;
	int64_t n;
};

/* Given storage starts at a multiple of so many bytes. */
#define QUIRE_STORAGE_ALIGN 16

/*
 * A cache as a model's author describes it.  quire_cache_config_init fills in what is
 * named in brackets.  (Of the documented fields cpu_offload_pages, prefix_cache and
 * prefix_cache_salt concern who owns pages, not where they are: no cache has them.)
 */
struct quire_cache_config {
	enum quire_layout layout; /* [NHD] */
	enum quire_dtype dtype;   /* [bf16] */
	int64_t num_layers;
	int64_t num_kv_heads; /* of the whole model */
	int64_t num_qo_heads; /* [0: as num_kv_heads]; a multiple of num_kv_heads */
	int64_t head_dim;
	int64_t max_seq_len;   /* tokens of the longest stream; it fits in the pool */
	int64_t max_num_pages; /* [2048] */
	int64_t page_size;     /* [128] tokens */
	int64_t num_ranks;     /* [1] over which the heads are spread */
};

/* quire_cache_config_init - the defaults; what has none is 0.  @config: filled */
QUIRE_API void quire_cache_config_init(struct quire_cache_config *config);

/*
 * quire_cache_config_shape - check a config, and what one rank of it holds
 * @config:  borrowed
 * @shape_out: filled; num_kv_heads is 1 with as many ranks as heads or more, else
 *           heads / ranks, which must divide
 * @refusal_out: filled on refusal {what: the field, got, expected: its bound}; NULL
 *           allowed
 * Returns:  QUIRE_OK; QUIRE_INVALID: a field is 0, out of range or does not divide, or
 *           the product is too large.
 * Threads:  any.
 * Source:   KVCacheConfig of mstar.engine.resources.kv.cache
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status quire_cache_config_shape(
	const struct quire_cache_config *config, struct quire_shape *shape_out,
	struct quire_refusal *refusal_out);

/*
 * quire_cache_create - zeroed storage for a shape on a device
 * @device:  retained: quire_device_destroy may come before quire_cache_destroy
 * @shape:   borrowed
 * @cache_out: given; end it with quire_cache_destroy
 * @refusal_out: filled on refusal; NULL allowed
 * Returns:  QUIRE_OK; QUIRE_INVALID {what: the field}; QUIRE_NO_MEMORY {requested:
 *           bytes}.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_cache_create(struct quire_device *device, const struct quire_shape *shape,
                   struct quire_cache **cache_out, struct quire_refusal *refusal_out);

/*
 * quire_cache_create_on - a cache on storage that the caller owns
 * @storage: device memory, kept until the cache and the last of its exports are gone; its
 *           content stays
 * @storage_bytes: at least the nbytes of quire_geometry_init
 * Returns:  as quire_cache_create; QUIRE_INVALID {what: "storage", "storage_bytes"}: NULL
 *           or not a multiple of QUIRE_STORAGE_ALIGN, too small.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_cache_create_on(struct quire_device *device, const struct quire_shape *shape,
                      void *storage, int64_t storage_bytes,
                      struct quire_cache **cache_out, struct quire_refusal *refusal_out);

/* quire_cache_destroy - @cache: given, NULL is a no-op; no operation on it may be
 * queued.  Its storage stays while an export of it lives. */
QUIRE_API void quire_cache_destroy(struct quire_cache *cache);

/*
 * Properties: num_layers, page_size, dtype and layout are in the shape.
 * Threads:  any.
 * Source:   KVCache.device, .data_ptr(), .nbytes, .num_layers, ...
 */
QUIRE_API struct quire_device *quire_cache_device(const struct quire_cache *cache);
QUIRE_API const struct quire_shape *quire_cache_shape(const struct quire_cache *cache);
QUIRE_API const struct quire_geometry *
quire_cache_geometry(const struct quire_cache *cache);
QUIRE_API void *quire_cache_data_ptr(const struct quire_cache *cache);
QUIRE_API int64_t quire_cache_nbytes(const struct quire_cache *cache);

/* quire_cache_takes - may rows of this dtype be written to the cache?  f32, f16, bf16 and
 * its own.  Threads: any. */
QUIRE_API bool quire_cache_takes(const struct quire_cache *cache, enum quire_dtype dtype);

/* Tokens [first, end) of one page of one layer. */
struct quire_chunk {
	int64_t layer;
	int64_t page;
	int64_t first;
	int64_t end;
};

/*
 * quire_cache_chunk_ptrs - where some tokens of a page are, piece by piece
 * @base:    address of the storage, of this cache (0) or of one of the same shape
 *           elsewhere
 * @pointers: filled; num_kv * pieces addresses, in the order of the chunks (layout.h)
 * @pointers_max: of @pointers
 * @num_out: filled; how many
 * @bytes_out: filled; the size of each, (end - first) * token_stride * element_bytes
 * Returns:  QUIRE_OK; QUIRE_INVALID {what: layer, page, first, end}; QUIRE_LIMIT {what:
 *           "pointers_max", expected: what is needed}.
 *           The chunks of a whole page follow one another: one transfer of num * bytes
 *           takes them all.
 * Threads:  any.
 * Source:   KVCache.chunk_ptrs
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status quire_cache_chunk_ptrs(
	const struct quire_cache *cache, const struct quire_chunk *chunk, uint64_t base,
	uint64_t *pointers, int64_t pointers_max, int64_t *num_out, int64_t *bytes_out,
	struct quire_refusal *refusal_out);

/* Dimensions of a view. */
#define QUIRE_TENSOR_DIMS_MAX 5

/* A DLPack tensor with its shape and strides; not to be copied, as it points into
 * itself. */
struct quire_tensor {
	DLTensor dl;
	int64_t shape[QUIRE_TENSOR_DIMS_MAX];
	int64_t strides[QUIRE_TENSOR_DIMS_MAX];
};

/*
 * quire_cache_chunk_view - some tokens of a page as [num_kv, tokens, heads, dim]
 * @storage: lent to the view: the cache's own (NULL) or one of the same shape
 * @view_out: filled
 * Returns:  QUIRE_OK; QUIRE_INVALID {what: layer, page, first, end}.
 * Threads:  any.
 * Source:   KVCache.chunk_view
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status quire_cache_chunk_view(
	const struct quire_cache *cache, const struct quire_chunk *chunk, void *storage,
	struct quire_tensor *view_out, struct quire_refusal *refusal_out);

/*
 * quire_cache_layer_view - one layer in its layout, what attention reads
 * @view_out: filled; NHD [pages, 2, tokens, heads, dim], HND [pages, 2, heads, tokens,
 *           dim], MLA [pages, tokens, dim]
 * Returns:  QUIRE_OK; QUIRE_INVALID {what: "layer"}.
 * Threads:  any.
 * Source:   KVCache.layer_view
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_cache_layer_view(const struct quire_cache *cache, int64_t layer,
                       struct quire_tensor *view_out, struct quire_refusal *refusal_out);

/*
 * quire_cache_export_layer - a layer for another library, by DLPack
 * @tensor_out: given; its deleter, from any thread, ends it.  Until then the storage
 *           stays, whatever becomes of the cache.  Nothing orders it with device streams:
 *           synchronize first, or wait for an event.  (NumPy makes a tensor of this
 *           version of DLPack read-only, and has no bf16 or fp8.)
 * Returns:  QUIRE_OK; QUIRE_INVALID {what: "layer"}; QUIRE_NO_MEMORY.
 * Threads:  any.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_cache_export_layer(struct quire_cache *cache, int64_t layer,
                         DLManagedTensor **tensor_out, struct quire_refusal *refusal_out);

/*
 * quire_cache_write_tokens - scatter rows of K and V into slots of one layer
 * @slots:   borrowed struct; its lists kept until done
 * @k, @v:   kept until done; rows [n, num_kv_heads, head_dim] of @dtype; under MLA k is
 *           the latent and v is NULL
 * @dtype:   f32, f16 or bf16, converted to the cache's dtype; or the cache's own, copied.
 *           Rounded to nearest even, NaN kept; beyond the largest value f16 and bf16 get
 *           infinity, fp8 its largest value, for infinities too
 * @out:     NULL, or filled when done with what was written, read back: as
 *           quire_cache_read_tokens
 * @refusal_out: filled on refusal; NULL allowed
 * Returns:  QUIRE_OK: queued; QUIRE_INVALID: layer, n, first or dtype out of range, NULL
 *           with n > 0; QUIRE_NO_MEMORY; the stream's failure.
 *           Where a slot is named twice, each of its bytes comes from one of those rows;
 *           from which, is not specified.
 * Threads:  any, as the device stream (device.h).
 * Cost:     O(1) on the calling thread (cpu:inline: the work).
 * Source:   KVCache.write_tokens
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status quire_cache_write_tokens(
	struct quire_cache *cache, struct quire_dstream *dstream, int64_t layer,
	const struct quire_slots *slots, const void *k, const void *v,
	enum quire_dtype dtype, void *out, struct quire_refusal *refusal_out);

/*
 * quire_cache_read_tokens - gather slots of one layer
 * @out:     filled when done; [n, num_kv, num_kv_heads, head_dim] of the cache's dtype
 * Returns, Threads, Cost: as quire_cache_write_tokens.
 * Source:   KVCache.read_tokens
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status quire_cache_read_tokens(
	struct quire_cache *cache, struct quire_dstream *dstream, int64_t layer,
	const struct quire_slots *slots, void *out, struct quire_refusal *refusal_out);

/*
 * quire_cache_copy_pages - copy whole pages: every layer, K and V, all tokens
 * @source, @target: page ids, kept until done; source[i] is copied to target[i]
 * @n:       pairs, 0 .. num_pages
 * Returns:  as quire_cache_write_tokens; a target named twice is found when the operation
 *           runs, as an id out of range is.
 *           All sources are read before any target is written, so a page may be in both
 *           lists.
 * Threads, Cost: as quire_cache_write_tokens.
 * Source:   KVCache.copy_pages
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status quire_cache_copy_pages(
	struct quire_cache *cache, struct quire_dstream *dstream, const int32_t *source,
	const int32_t *target, int64_t n, struct quire_refusal *refusal_out);

/*
 * quire_cache_copy_slots - copy the first tokens of pages: every layer, K and V
 * @end:     kept until done; tokens [0, end[i]) of source[i] are copied to target[i]
 * Otherwise as quire_cache_copy_pages.  The documented member is n = 1.
 * Source:   KVCache.copy_slots
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_cache_copy_slots(struct quire_cache *cache, struct quire_dstream *dstream,
                       const int32_t *source, const int32_t *target, const int32_t *end,
                       int64_t n, struct quire_refusal *refusal_out);

#ifdef __cplusplus
}
#endif
#endif
