/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_KERNELS_CACHE_IMPL_H
#define QUIRE_KERNELS_CACHE_IMPL_H
/*
 * What cache.c and cache_view.c share.
 */
#include <quire/kernels/cache.h>

#include "runtime/refuse_impl.h"

#include <stdatomic.h>
#include <stdbool.h>

/* The cache and each of its exports is a name; the last to end frees the storage. */
struct quire_cache {
	struct quire_device *device; /* retained */
	struct quire_shape shape;
	struct quire_geometry geometry;
	char *storage;
	bool storage_is_given;
	_Atomic int64_t names;
};

/* quire_cache_release - end one name */
void quire_cache_release(struct quire_cache *cache);

static inline enum quire_status quire_check_range(struct quire_refusal *refusal_out,
                                                  const char *what, int64_t got,
                                                  int64_t min, int64_t max)
{
	if (got < min || got > max)
		return quire_refuse_bound(refusal_out, QUIRE_INVALID, what, -1, got,
		                          got < min ? min : max);
	return QUIRE_OK;
}

#endif
