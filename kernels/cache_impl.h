/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_KERNELS_CACHE_IMPL_H
#define QUIRE_KERNELS_CACHE_IMPL_H
/*
 * A cache, for cache.c and cache_view.c.
 */
#include <quire/kernels/cache.h>

#include <stdatomic.h>
#include <stdbool.h>

/* The cache and each of its exports is a name; the last to end frees the storage. */
struct quire_cache {
	struct quire_device *device; /* retained */
	struct quire_shape shape;
	struct quire_geometry geometry;
	int64_t tokens_max; /* rows of so many, of the widest dtype, stay within int64 */
	char *storage;
	bool storage_is_given;
	_Atomic int64_t names;
};

/* quire_cache_release - end one name */
void quire_cache_release(struct quire_cache *cache);

#endif
