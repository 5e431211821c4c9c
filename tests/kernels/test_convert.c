/* SPDX-License-Identifier: MIT */
/*
 * The tables of converters: the portable one against exact arithmetic, and every way of
 * converting against it, for all inputs, lengths and alignments.
 */
#include "config.h"

#include "kernels/convert_impl.h"

#include "exact_convert.h"
#include "tests/alloc/random.h"
#include "tests/run_suite.h"

#include <check.h>
#include <fenv.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
#ifdef __x86_64__
#include <xmmintrin.h>
#endif

#define RANDOM_F32 1000000
#define INPUTS_MAX (EXACT_EDGES_MAX + RANDOM_F32)
#define LENGTH_MAX 200
#define BYTES_MAX  (LENGTH_MAX * (int64_t)sizeof(float))
#define LINE       QUIRE_LINE_BYTES
#define GUARD      0xa5
#define FLUSH      0x8040 /* of x86: subnormal results and operands become 0 */

/* A converter of a table that this machine has. */
struct way {
	enum quire_simd simd;
	bool streamed;
	enum quire_dtype from;
	enum quire_dtype to;
	quire_converter convert;
};
#define PAIRS (QUIRE_DTYPE_COUNT * QUIRE_DTYPE_COUNT)
#define WAYS  ((QUIRE_SIMD_AVX512 + 1) * 2 * PAIRS)

/* Way i; false where there is none. */
static bool find_way(int i, struct way *way)
{
	const struct quire_converters *converters;

	way->simd = (enum quire_simd)(i / (2 * PAIRS));
	way->streamed = i / PAIRS % 2;
	way->from = (enum quire_dtype)(i % PAIRS / QUIRE_DTYPE_COUNT);
	way->to = (enum quire_dtype)(i % QUIRE_DTYPE_COUNT);
	if (way->simd > quire_simd_best())
		return false;
	converters = quire_converters_of(way->simd);
	way->convert = way->streamed ? converters->streamed[way->from][way->to]
	                             : converters->cached[way->from][way->to];
	return way->convert != NULL;
}

static quire_converter portable(const struct way *way)
{
	return quire_converters_of(QUIRE_SIMD_PORTABLE)->cached[way->from][way->to];
}

static void fail_way(const struct way *way, const char *what, int64_t n)
{
	ck_abort_msg("%s to %s, simd %d, streamed %d: %s %lld",
	             quire_dtype_name(way->from), quire_dtype_name(way->to),
	             (int)way->simd, way->streamed, what, (long long)n);
}

/* All patterns of a narrow dtype; of f32 edges and random ones.  Returns how many. */
static int64_t fill_inputs(enum quire_dtype dtype, void *inputs)
{
	uint64_t seed = 11;
	int64_t n;

	if (dtype == QUIRE_F32) {
		n = exact_edges(inputs);
		for (int i = 0; i < RANDOM_F32; i++)
			((uint32_t *)inputs)[n++] = (uint32_t)random_next(&seed);
		return n;
	}
	n = INT64_C(1) << exact_formats[dtype].bits;
	for (int64_t i = 0; i < n; i++) {
		if (quire_dtype_bytes(dtype) == 1)
			((uint8_t *)inputs)[i] = (uint8_t)i;
		else
			((uint16_t *)inputs)[i] = (uint16_t)i;
	}
	return n;
}

static _Alignas(LINE) uint32_t inputs[INPUTS_MAX];
static _Alignas(LINE) uint32_t outputs[INPUTS_MAX];
static _Alignas(LINE) uint32_t expected[INPUTS_MAX];

START_TEST(every_number_becomes_the_nearest_one)
{
	struct way way;
	int64_t n;

	if (!find_way(_i, &way))
		return;
	n = fill_inputs(way.from, inputs);
	way.convert((char *)outputs, (char *)inputs, n);
	if (way.from == way.to && memcmp(outputs, inputs, (size_t)n) != 0)
		fail_way(&way, "a copy that differs, of", n);
	for (int64_t i = 0; i < n && way.from != way.to; i++) {
		uint32_t bits = exact_element(way.from, inputs, i);

		if (exact_element(way.to, outputs, i) !=
		    exact_convert(way.from, way.to, bits))
			fail_way(&way, "wrong for bits", bits);
	}
}
END_TEST

START_TEST(every_way_gives_the_portable_bits)
{
	struct way way;
	int64_t n;

	if (!find_way(_i, &way))
		return;
	n = fill_inputs(way.from, inputs);
	way.convert((char *)outputs, (char *)inputs, n);
	portable (&way)((char *)expected, (char *)inputs, n);
	if (memcmp(outputs, expected, (size_t)(n * quire_dtype_bytes(way.to))) != 0)
		fail_way(&way, "not the portable bits, of", n);
}
END_TEST

/* Where one conversion puts its run, between guards. */
struct place {
	int64_t n;
	int source_at;
	int target_at;
};

static char run_source[LINE + BYTES_MAX];
static char run_expected[BYTES_MAX];

static void check_place(const struct way *way, struct place place)
{
	static _Alignas(LINE) char source[LINE + BYTES_MAX];
	static _Alignas(LINE) unsigned char target[3 * LINE + BYTES_MAX];
	int64_t bytes = place.n * quire_dtype_bytes(way->to);
	int64_t at = LINE + place.target_at;

	memcpy(source + place.source_at, run_source, BYTES_MAX);
	memset(target, GUARD, sizeof(target));
	way->convert((char *)target + at, source + place.source_at, place.n);
	if (memcmp(target + at, run_expected, (size_t)bytes) != 0)
		fail_way(way, "wrong for a length of", place.n);
	for (int64_t i = 0; i < (int64_t)sizeof(target); i++)
		if ((i < at || i >= at + bytes) && target[i] != GUARD)
			fail_way(way, "wrote at byte", i - at);
}

START_TEST(runs_of_any_length_and_alignment_convert_and_nothing_else_is_written)
{
	struct way way;
	uint64_t seed = 5;

	if (!find_way(_i, &way))
		return;
	for (int64_t i = 0; i < BYTES_MAX; i++)
		run_source[i] = (char)random_next(&seed);
	portable (&way)(run_expected, run_source, LENGTH_MAX);
	/* Every two of length, source and target; the third is random. */
	for (int a = 0; a < LINE; a++) {
		for (int b = 0; b < LINE; b++)
			check_place(&way, (struct place){random_in(&seed, 0, LENGTH_MAX),
			                                 a, b});
		for (int n = 0; n <= LENGTH_MAX; n++) {
			check_place(&way, (struct place){n, a, random_in(&seed, 0, 63)});
			check_place(&way, (struct place){n, random_in(&seed, 0, 63), a});
		}
	}
}
END_TEST

/* A page between two that may not be touched. */
static char *lone_page(long page)
{
	char *pages = mmap(NULL, 3 * (size_t)page, PROT_READ | PROT_WRITE,
	                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(pages, MAP_FAILED);
	ck_assert_int_eq(mprotect(pages, (size_t)page, PROT_NONE), 0);
	ck_assert_int_eq(mprotect(pages + 2 * page, (size_t)page, PROT_NONE), 0);
	return pages + page;
}

START_TEST(nothing_outside_a_run_is_touched)
{
	long page = sysconf(_SC_PAGESIZE);
	char *source = lone_page(page);
	char *target = lone_page(page);
	struct way way;

	if (!find_way(_i, &way))
		return;
	for (int64_t n = 0; n <= LENGTH_MAX; n++) {
		int64_t source_bytes = n * quire_dtype_bytes(way.from);
		int64_t target_bytes = n * quire_dtype_bytes(way.to);

		way.convert(target, source, n);
		way.convert(target + page - target_bytes, source, n);
		way.convert(target, source + page - source_bytes, n);
		way.convert(target + page - target_bytes, source + page - source_bytes,
		            n);
	}
}
END_TEST

static void convert_under(const struct way *way, int rounding, int64_t n)
{
#ifdef __x86_64__
	unsigned int control = _mm_getcsr();
#endif

	ck_assert_int_eq(fesetround(rounding), 0);
#ifdef __x86_64__
	_mm_setcsr(_mm_getcsr() | FLUSH);
#endif
	way->convert((char *)outputs, (char *)inputs, n);
#ifdef __x86_64__
	_mm_setcsr(control);
#endif
	ck_assert_int_eq(fesetround(FE_TONEAREST), 0);
}

START_TEST(the_rounding_mode_and_the_flushing_of_subnormals_change_nothing)
{
	const int roundings[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
	struct way way;
	int64_t n;

	if (!find_way(_i, &way))
		return;
	n = fill_inputs(way.from, inputs);
	portable (&way)((char *)expected, (char *)inputs, n);
	for (int i = 0; i < 4; i++) {
		convert_under(&way, roundings[i], n);
		if (memcmp(outputs, expected, (size_t)(n * quire_dtype_bytes(way.to))) !=
		    0)
			fail_way(&way, "other bits in rounding mode", i);
	}
}
END_TEST

START_TEST(every_table_has_all_conversions_but_those_from_fp8)
{
	for (int simd = 0; simd <= (int)quire_simd_best(); simd++)
		for (int i = 0; i < PAIRS; i++) {
			const struct quire_converters *converters =
				quire_converters_of((enum quire_simd)simd);
			int from = i / QUIRE_DTYPE_COUNT;
			int to = i % QUIRE_DTYPE_COUNT;
			bool there = from <= QUIRE_BF16 || from == to;

			ck_assert_int_eq(converters->cached[from][to] != NULL, there);
			ck_assert_int_eq(converters->streamed[from][to] != NULL, there);
		}
}
END_TEST

/* Whether the system names this flag among the processor's. */
static bool processor_has(const char *flags, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = flags; (at = strstr(at, name)) != NULL; at += length)
		if (at[-1] == ' ' && (at[length] == ' ' || at[length] == '\n'))
			return true;
	return false;
}

START_TEST(the_best_kind_is_what_the_system_says_of_the_processor)
{
	static char line[1 << 14];
	FILE *file = fopen("/proc/cpuinfo", "r");
	enum quire_simd best = QUIRE_SIMD_PORTABLE;
	bool found = false;

	while (file != NULL && !found && fgets(line, sizeof(line), file) != NULL)
		found = strncmp(line, "flags", 5) == 0;
	if (file != NULL)
		fclose(file);
	if (!found)
		return;
	if (processor_has(line, "avx2") && processor_has(line, "f16c"))
		best = QUIRE_SIMD_AVX2;
	if (processor_has(line, "avx512f") && processor_has(line, "avx512bw") &&
	    processor_has(line, "avx512vl"))
		best = QUIRE_SIMD_AVX512;
	ck_assert_int_eq(quire_simd_best(), best);
	ck_assert_int_eq(quire_simd_best(), best);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("convert");
	TCase *tcase = tcase_create("convert");

	exact_prepare();
	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, every_number_becomes_the_nearest_one, 0, 2 * PAIRS);
	tcase_add_loop_test(tcase, every_way_gives_the_portable_bits, 0, WAYS);
	tcase_add_loop_test(
		tcase,
		runs_of_any_length_and_alignment_convert_and_nothing_else_is_written, 0,
		WAYS);
	tcase_add_loop_test(tcase, nothing_outside_a_run_is_touched, 0, WAYS);
	tcase_add_loop_test(
		tcase, the_rounding_mode_and_the_flushing_of_subnormals_change_nothing, 0,
		WAYS);
	tcase_add_test(tcase, every_table_has_all_conversions_but_those_from_fp8);
	tcase_add_test(tcase, the_best_kind_is_what_the_system_says_of_the_processor);
	return run_suite(suite);
}
