/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_RUNTIME_MEMORY_IMPL_H
#define QUIRE_RUNTIME_MEMORY_IMPL_H
/*
 * Host memory of a runtime, from its hooks.  Sizes are given again at the end, so that
 * whoever counts can.
 */
#include <quire/runtime/hooks.h>

#include <stddef.h>
#include <stdint.h>

/* quire_memory_resolve - put malloc's in where the program has no functions of its own */
void quire_memory_resolve(struct quire_memory *memory);

/* quire_memory_aligned - one zeroed object; NULL: there is no memory */
void *quire_memory_aligned(const struct quire_memory *memory, size_t bytes, size_t align);

/* quire_memory_zeroed - a zeroed array, as calloc, at a cache line; NULL: there is no
 * memory */
void *quire_memory_zeroed(const struct quire_memory *memory, int64_t n, size_t size);

/* quire_memory_free - end either; @array: NULL is a no-op; n and size as they were */
void quire_memory_free(const struct quire_memory *memory, void *array, int64_t n,
                       size_t size);

/* quire_power_of_two_from - the least power of two that is not less than n: a ring's
 * size */
static inline uint64_t quire_power_of_two_from(int64_t n)
{
	uint64_t power = 1;

	while (power < (uint64_t)n)
		power *= 2;
	return power;
}

#endif
