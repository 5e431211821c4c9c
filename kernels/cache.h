/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_KERNELS_CACHE_H
#define QUIRE_KERNELS_CACHE_H
/*
 * The cache: storage of all pages, and the operations that move their bytes.
 *
 * Every operation is queued on a device stream and returns at once.  The lists and rows
 * it names are memory that the device can read (on cpu: any memory), kept until the
 * operation is done. Sizes and arguments are checked at the call; page ids and offsets
 * when the operation runs, all of them before the first byte moves: one that is out of
 * range fails the device stream with QUIRE_INVALID {what, index, got, expected} and
 * nothing of that operation is written.
 *
 * Source: KVCache of mstar.engine.resources.kv.cache.
 */
#include <quire/kernels/device.h>
#include <quire/kernels/dtype.h>
#include <quire/kernels/layout.h>
#include <quire/runtime/status.h>

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
 *   of it:
 *                    token (first + i) mod page_size of page[(first + i) / page_size]
 */
struct quire_slots {
	const int32_t *page;
	const int32_t *offset;
	int64_t first;
	int64_t n;
};

/*
 * quire_cache_create - zeroed storage for a shape on a device
 * @device:  kept until quire_cache_destroy
 * @shape:   borrowed
 * @cache_out: given; end it with quire_cache_destroy
 * @refusal_out: filled on refusal; NULL allowed
 * Returns:  QUIRE_OK; QUIRE_INVALID {what: the field}; QUIRE_NO_MEMORY {requested:
 *           bytes}.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_cache_create(struct quire_device *device, const struct quire_shape *shape,
                   struct quire_cache **cache_out, struct quire_refusal *refusal_out);

/* quire_cache_destroy - @cache: given, NULL is a no-op; no operation on it may be
 * queued */
QUIRE_API void quire_cache_destroy(struct quire_cache *cache);

/* Properties.  Threads: any.  Source: KVCache.device, .data_ptr(), .nbytes, ... */
QUIRE_API struct quire_device *quire_cache_device(const struct quire_cache *cache);
QUIRE_API const struct quire_shape *quire_cache_shape(const struct quire_cache *cache);
QUIRE_API const struct quire_geometry *
quire_cache_geometry(const struct quire_cache *cache);
QUIRE_API void *quire_cache_data_ptr(const struct quire_cache *cache);
QUIRE_API int64_t quire_cache_nbytes(const struct quire_cache *cache);

/*
 * quire_cache_write_tokens - scatter rows of K and V into slots of one layer
 * @slots:   borrowed struct; its lists kept until done
 * @k, @v:   kept until done; rows [n, num_kv_heads, head_dim] of @dtype, contiguous
 * @dtype:   converted to the cache's dtype: round to nearest even, NaN and infinities
 *           kept
 * @refusal_out: filled on refusal; NULL allowed
 * Returns:  QUIRE_OK: queued; QUIRE_INVALID: layer, n, first or dtype out of range, NULL
 *           with n > 0; QUIRE_NO_MEMORY; the stream's failure.
 *           A slot named twice gets one of its rows; which one is not specified.
 * Cost:     O(1) on the calling thread (cpu:inline: the work).
 * Source:   KVCache.write_tokens
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status quire_cache_write_tokens(
	struct quire_cache *cache, struct quire_dstream *dstream, int64_t layer,
	const struct quire_slots *slots, const void *k, const void *v,
	enum quire_dtype dtype, struct quire_refusal *refusal_out);

/*
 * quire_cache_read_tokens - gather slots of one layer
 * @out:     filled when done; [n, 2, num_kv_heads, head_dim] of the cache's dtype, K at 0
 * Returns, Cost: as quire_cache_write_tokens.
 * Source:   KVCache.read_tokens
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status quire_cache_read_tokens(
	struct quire_cache *cache, struct quire_dstream *dstream, int64_t layer,
	const struct quire_slots *slots, void *out, struct quire_refusal *refusal_out);

/*
 * quire_cache_copy_pages - copy whole pages: every layer, K and V, all tokens
 * @source, @target: page ids, kept until done; source[i] is copied to target[i]
 * @n:       pairs, 0 or more
 * Returns:  as quire_cache_write_tokens; a target named twice is found when the operation
 *           runs, as an id out of range is.
 *           All sources are read before any target is written, so a page may be in both
 *           lists.
 * Source:   KVCache.copy_pages
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status quire_cache_copy_pages(
	struct quire_cache *cache, struct quire_dstream *dstream, const int32_t *source,
	const int32_t *target, int64_t n, struct quire_refusal *refusal_out);

#ifdef __cplusplus
}
#endif
#endif
