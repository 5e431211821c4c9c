/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_KERNELS_MOVE_IMPL_H
#define QUIRE_KERNELS_MOVE_IMPL_H
/*
 * The cache's operations as data, and their index arithmetic: slot i -> (page, token) ->
 * byte offset.  One definition for every device.
 */
#include <quire/kernels/cache.h>
#include <quire/kernels/layout.h>

#include <stdint.h>

/* write_tokens and read_tokens; the pointers are kept until the operation is done. */
struct quire_token_move {
	const struct quire_geometry *geometry;
	char *storage;
	int64_t layer;
	struct quire_slots slots;
	const char *row[2];     /* write: K and V; under MLA the latent and NULL */
	enum quire_dtype dtype; /* write: of the rows */
	char *out;              /* read; after a write: what was written, or NULL */
};

/* copy_pages and copy_slots; the pointers are kept until the operation is done. */
struct quire_page_move {
	const struct quire_geometry *geometry;
	char *storage;
	const int32_t *source;
	const int32_t *target;
	const int32_t *end; /* tokens [0, end[i]) of pair i; NULL: all tokens */
	int64_t n;
};

/* Which page and which token of it slot i is. */
struct quire_place {
	int64_t page;
	int64_t token;
};

static inline QUIRE_HOST_DEVICE struct quire_place
quire_slot_place(const struct quire_slots *slots, int64_t page_size, int64_t i)
{
	struct quire_place place;

	if (slots->offset != NULL) {
		place.page = slots->page[i];
		place.token = slots->offset[i];
	} else {
		/* Both fit in 32 bits (limits.h), where a division is much cheaper. */
		uint32_t token = (uint32_t)(slots->first + i);
		uint32_t size = (uint32_t)page_size;

		place.page = slots->page[token / size];
		place.token = token % size;
	}
	return place;
}

/* Bytes from the start of the storage to the first piece of K (kv 0) or V (kv 1) of slot
 * i; the others follow chunk_stride elements apart. */
static inline QUIRE_HOST_DEVICE int64_t
quire_slot_offset(const struct quire_geometry *geometry, const struct quire_slots *slots,
                  int64_t layer, int64_t i, int64_t kv)
{
	struct quire_place place = quire_slot_place(slots, geometry->page_size, i);

	return quire_geometry_offset(geometry, layer, place.page, kv * geometry->pieces,
	                             place.token);
}

#endif
