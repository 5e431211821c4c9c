/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_TESTS_ALLOC_RANDOM_H
#define QUIRE_TESTS_ALLOC_RANDOM_H
/* Random numbers that a seed reproduces (splitmix64, public domain, Sebastiano Vigna). */
#include <stdint.h>

static inline uint64_t random_next(uint64_t *seed)
{
	uint64_t z = *seed += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/* A number in low..high. */
static inline int32_t random_in(uint64_t *seed, int32_t low, int32_t high)
{
	return low + (int32_t)(random_next(seed) % (uint64_t)((int64_t)high - low + 1));
}

static inline void random_shuffle(uint64_t *seed, int32_t *values, int32_t n)
{
	for (int32_t i = n - 1; i > 0; i--) {
		int32_t k = random_in(seed, 0, i);
		int32_t value = values[i];

		values[i] = values[k];
		values[k] = value;
	}
}

#endif
