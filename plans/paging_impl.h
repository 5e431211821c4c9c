/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_PLANS_PAGING_IMPL_H
#define QUIRE_PLANS_PAGING_IMPL_H
/*
 * From tokens to pages, by shift where the page size is a power of two: a division costs
 * more than all the rest of a row.
 */
#include <stdint.h>

struct quire_paging {
	int32_t size;  /* tokens of a page */
	int32_t shift; /* -1: not a power of two */
};

static inline struct quire_paging quire_paging_of(int32_t page_size)
{
	return (struct quire_paging){
		.size = page_size,
		.shift = (page_size & (page_size - 1)) == 0
	                         ? __builtin_ctz((unsigned)page_size)
	                         : -1,
	};
}

/* Whole pages in so many tokens; also the page of the token at this place.  token >=
 * 0. */
static inline int32_t quire_page_of(const struct quire_paging *paging, int32_t token)
{
	return paging->shift >= 0 ? token >> paging->shift : token / paging->size;
}

/* Pages that so many tokens need. */
static inline int32_t quire_pages_of(const struct quire_paging *paging, int32_t length)
{
	return length == 0 ? 0 : quire_page_of(paging, length - 1) + 1;
}

#endif
