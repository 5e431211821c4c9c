/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/lists_impl.h"

#include <quire/runtime/assert.h>

#include <sys/mman.h>

enum quire_status quire_lists_init(struct quire_lists *lists, int64_t max,
                                   int64_t pages_max)
{
	int64_t pages = QUIRE_LIST_SHORTEST, all = 0;
	int32_t n = 0;

	for (; n < QUIRE_LIST_SIZES; pages *= QUIRE_LIST_GROWTH) {
		lists->sizes[n].pages = pages < pages_max ? pages : pages_max;
		lists->sizes[n].used = 0;
		lists->sizes[n].free = QUIRE_LIST_NONE;
		all += lists->sizes[n++].pages;
		if (pages >= pages_max)
			break;
	}
	lists->max = max;
	lists->num_sizes = n;
	if (__builtin_mul_overflow(all * (int64_t)sizeof(int32_t), max, &lists->bytes))
		return QUIRE_NO_MEMORY;
	lists->memory = mmap(NULL, (size_t)lists->bytes, PROT_READ | PROT_WRITE,
	                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (lists->memory == MAP_FAILED)
		return QUIRE_NO_MEMORY;
	all = 0;
	for (int32_t s = 0; s < n; s++) {
		lists->sizes[s].blocks = (int32_t *)lists->memory + all * max;
		all += lists->sizes[s].pages;
	}
	return QUIRE_OK;
}

void quire_lists_end(struct quire_lists *lists)
{
	munmap(lists->memory, (size_t)lists->bytes);
}

int32_t *quire_list_new(struct quire_lists *lists, int64_t n, int32_t *size_out)
{
	struct quire_list_size *size = lists->sizes;
	int64_t block;

	while (size->pages < n)
		size++;
	QUIRE_ASSERT(size < lists->sizes + lists->num_sizes);
	*size_out = (int32_t)(size - lists->sizes);
	block = size->free;
	if (block == QUIRE_LIST_NONE) {
		QUIRE_ASSERT(size->used < lists->max);
		return size->blocks + size->used++ * size->pages;
	}
	size->free = size->blocks[block * size->pages];
	return size->blocks + block * size->pages;
}

void quire_list_free(struct quire_lists *lists, int32_t *pages, int32_t size)
{
	struct quire_list_size *of;

	if (size == QUIRE_LIST_NONE)
		return;
	of = &lists->sizes[size];
	/* A reader may still look at it, in vain. */
	__atomic_store_n(pages, (int32_t)of->free, __ATOMIC_RELEASE);
	of->free = (pages - of->blocks) / of->pages;
}
