/* SPDX-License-Identifier: MIT */
/*
 * torture_convert [COUNT [SEED]]: random f32 (10^8) through every conversion: the
 * portable ones against exact arithmetic, and every other way against them, at random
 * places.
 */
#include "config.h"

#include "kernels/convert_impl.h"

#include "exact_convert.h"
#include "tests/alloc/random.h"

#include <stdio.h>
#include <time.h>

#define BLOCK 65536

static uint32_t inputs[BLOCK];
static char source[64 + sizeof(inputs)];
static char target[64 + sizeof(inputs)];
static uint32_t expected[BLOCK];

/* Half of them of all exponents, half around those of the narrower dtypes. */
static void fill_inputs(uint64_t *seed)
{
	bool all = random_next(seed) & 1;

	for (int i = 0; i < BLOCK; i++) {
		inputs[i] = (uint32_t)random_next(seed);
		if (!all)
			inputs[i] = (inputs[i] & 0x807fffff) |
			            (uint32_t)random_in(seed, 100, 145) << 23;
	}
}

static int fail(const char *what, int simd, int from, int to, uint32_t bits)
{
	printf("%s: simd %d, %s to %s, %08x\n", what, simd,
	       quire_dtype_name((enum quire_dtype)from),
	       quire_dtype_name((enum quire_dtype)to), bits);
	return 1;
}

/* The portable converter's results for f32. */
static int check_exact(enum quire_dtype to, int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		if (exact_element(to, expected, i) !=
		    exact_convert(QUIRE_F32, to, inputs[i]))
			return fail("wrong", QUIRE_SIMD_PORTABLE, QUIRE_F32, to,
			            inputs[i]);
	}
	return 0;
}

static int check_way(quire_converter convert, enum quire_dtype from, enum quire_dtype to,
                     int64_t n, uint64_t *seed)
{
	char *to_place = target + random_in(seed, 0, 63);
	char *from_place = source + random_in(seed, 0, 63);

	memcpy(from_place, inputs, (size_t)(n * quire_dtype_bytes(from)));
	convert(to_place, from_place, n);
	return memcmp(to_place, expected, (size_t)(n * quire_dtype_bytes(to))) != 0;
}

static int check_pair(enum quire_dtype from, enum quire_dtype to, int64_t n,
                      uint64_t *seed)
{
	quire_converters_of(QUIRE_SIMD_PORTABLE)
		->cached[from][to]((char *)expected, (char *)inputs, n);
	if (from == QUIRE_F32 && to != QUIRE_F32 && check_exact(to, n) != 0)
		return 1;
	for (int simd = 0; simd <= (int)quire_simd_best(); simd++) {
		const struct quire_converters *converters =
			quire_converters_of((enum quire_simd)simd);

		if (check_way(converters->cached[from][to], from, to, n, seed) != 0)
			return fail("not the portable bits", simd, from, to, inputs[0]);
		if (check_way(converters->streamed[from][to], from, to, n, seed) != 0)
			return fail("not the portable bits, streamed", simd, from, to,
			            inputs[0]);
	}
	return 0;
}

int main(int argc, char **argv)
{
	int64_t count = argc > 1 ? atoll(argv[1]) : 100000000;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)time(NULL);
	int64_t shown = 0;

	printf("torture_convert: %lld numbers, seed %llu, simd up to %d\n",
	       (long long)count, (unsigned long long)seed, (int)quire_simd_best());
	exact_prepare();
	for (int64_t done = 0; done < count; done += BLOCK) {
		int64_t n = count - done < BLOCK ? count - done : BLOCK;

		fill_inputs(&seed);
		for (int i = 0; i < 3 * QUIRE_DTYPE_COUNT; i++)
			if (check_pair((enum quire_dtype)(i / QUIRE_DTYPE_COUNT),
			               (enum quire_dtype)(i % QUIRE_DTYPE_COUNT), n,
			               &seed) != 0)
				return EXIT_FAILURE;
		if (done + n < count && done + n - shown < count / 10)
			continue;
		shown = done + n;
		printf("torture_convert: %lld converted\n", (long long)shown);
		fflush(stdout);
	}
	return EXIT_SUCCESS;
}
