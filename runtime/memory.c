/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/memory_impl.h"

#include <stdlib.h>
#include <string.h>

#define LINE 64 /* arrays start at a cache line */

/* calloc, which does not touch what the system gives zeroed; its own address lies before
 * the aligned one. */
static void *malloc_alloc(void *argument, size_t bytes, size_t align)
{
	char *raw, *memory;

	(void)argument;
	if (align < sizeof(raw))
		align = sizeof(raw);
	raw = bytes > SIZE_MAX - 2 * align ? NULL : calloc(1, bytes + 2 * align);
	if (raw == NULL)
		return NULL;
	memory = raw + align + (align - (uintptr_t)raw % align) % align;
	memcpy(memory - sizeof(raw), &raw, sizeof(raw));
	return memory;
}

static void malloc_release(void *argument, void *memory, size_t bytes)
{
	char *raw;

	(void)argument;
	(void)bytes;
	memcpy(&raw, (char *)memory - sizeof(raw), sizeof(raw));
	free(raw);
}

void quire_memory_resolve(struct quire_memory *memory)
{
	if (memory->alloc == NULL)
		*memory = (struct quire_memory){.alloc = malloc_alloc,
		                                .release = malloc_release};
}

void *quire_memory_aligned(const struct quire_memory *memory, size_t bytes, size_t align)
{
	return memory->alloc(memory->argument, bytes, align);
}

void *quire_memory_zeroed(const struct quire_memory *memory, int64_t n, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow((uint64_t)n, size, &bytes))
		return NULL;
	return memory->alloc(memory->argument, bytes, LINE);
}

void quire_memory_free(const struct quire_memory *memory, void *array, int64_t n,
                       size_t size)
{
	if (array != NULL)
		memory->release(memory->argument, array, (size_t)n * size);
}
