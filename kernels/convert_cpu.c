/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "kernels/convert_impl.h"
#include "kernels/dtype_impl.h"

#ifdef __x86_64__
#include <cpuid.h>
#include <emmintrin.h>
#endif
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

/* Bytes before the first line that a non-temporal store can fill. */
static int64_t unaligned_bytes(const char *target)
{
	return (int64_t)(-(uintptr_t)target % QUIRE_LINE_BYTES);
}

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Less than a line. */
static void convert_part(char *target, const char *source, int64_t n,
                         int64_t target_bytes, int64_t source_bytes, quire_lines *convert)
{
	_Alignas(QUIRE_LINE_BYTES) char in[QUIRE_LINE_BYTES * sizeof(float)] = {0};
	_Alignas(QUIRE_LINE_BYTES) char out[QUIRE_LINE_BYTES];

	memcpy(in, source, (size_t)(n * source_bytes));
	convert(out, in, 1, false);
	memcpy(target, out, (size_t)(n * target_bytes));
}

void quire_convert_run(char *target, const char *source, int64_t n, int64_t target_bytes,
                       int64_t source_bytes, quire_lines *convert, bool streamed)
{
	/* By shifts: dividing would take as long as converting a short row. */
	int shift = __builtin_ctz((unsigned int)target_bytes);
	int line_shift = __builtin_ctz(QUIRE_LINE_BYTES) - shift;
	int64_t head = unaligned_bytes(target);
	int64_t lines;

	/* A target between two elements never comes to the start of a line. */
	if ((head & (target_bytes - 1)) != 0)
		streamed = false;
	head = streamed ? smaller(head >> shift, n) : 0;
	if (head != 0)
		convert_part(target, source, head, target_bytes, source_bytes, convert);
	target += head * target_bytes;
	source += head * source_bytes;
	n -= head;
	lines = n >> line_shift;
	convert(target, source, lines, streamed);
	n -= lines << line_shift;
	target += lines * QUIRE_LINE_BYTES;
	source += (lines << line_shift) * source_bytes;
	if (n != 0)
		convert_part(target, source, n, target_bytes, source_bytes, convert);
}

void quire_copy_run(char *target, const char *source, int64_t bytes, quire_lines *copy,
                    bool streamed)
{
	int64_t head = streamed ? smaller(unaligned_bytes(target), bytes) : 0;
	int64_t lines = (bytes - head) / QUIRE_LINE_BYTES;
	int64_t copied = head + lines * QUIRE_LINE_BYTES;

	if (head != 0)
		memcpy(target, source, (size_t)head);
	copy(target + head, source + head, lines, streamed);
	if (copied < bytes)
		memcpy(target + copied, source + copied, (size_t)(bytes - copied));
}

static inline void store_line(char *target, const void *line, bool streamed)
{
#ifdef __x86_64__
	const __m128i *from = line;
	__m128i *to = (__m128i *)target;

	if (streamed) {
		for (size_t i = 0; i < QUIRE_LINE_BYTES / sizeof(*to); i++)
			_mm_stream_si128(to + i, _mm_loadu_si128(from + i));
		return;
	}
#else
	(void)streamed;
#endif
	memcpy(target, line, QUIRE_LINE_BYTES);
}

static void copy_lines(char *target, const char *source, int64_t lines, bool streamed)
{
	for (int64_t i = 0; i < lines; i++)
		store_line(target + i * QUIRE_LINE_BYTES, source + i * QUIRE_LINE_BYTES,
		           streamed);
}

#define LINES(to, to_type, from, from_type)                                              \
	static void to##_of_##from(char *target, const char *source, int64_t lines,      \
	                           bool streamed)                                        \
	{                                                                                \
		enum { COUNT = QUIRE_LINE_BYTES / sizeof(to_type) };                     \
		from_type in[COUNT];                                                     \
		_Alignas(QUIRE_LINE_BYTES) to_type out[COUNT];                           \
                                                                                         \
		for (; lines > 0; lines--) {                                             \
			memcpy(in, source, sizeof(in));                                  \
			for (int i = 0; i < COUNT; i++)                                  \
				out[i] =                                                 \
					quire_##to##_of_f32(quire_f32_of_##from(in[i])); \
			store_line(target, out, streamed);                               \
			target += sizeof(out);                                           \
			source += sizeof(in);                                            \
		}                                                                        \
	}

QUIRE_CONVERSIONS(LINES)

QUIRE_CONVERTERS(quire_converters_portable)

#ifdef __x86_64__

static enum quire_simd find_best(void)
{
	unsigned int eax, ebx, ecx = 0, edx;

	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	    __builtin_cpu_supports("avx512vl"))
		return QUIRE_SIMD_AVX512;
	/* Not every compiler knows F16C by name.  That AVX2 is there tells that the
	 * system keeps the registers, too. */
	if (__builtin_cpu_supports("avx2") && __get_cpuid(1, &eax, &ebx, &ecx, &edx) &&
	    (ecx & bit_F16C))
		return QUIRE_SIMD_AVX2;
	return QUIRE_SIMD_PORTABLE;
}

enum quire_simd quire_simd_best(void)
{
	/* Threads that race to decide it come to the same answer. */
	static _Atomic int best = -1;
	int known = atomic_load_explicit(&best, memory_order_relaxed);

	if (known < 0) {
		known = (int)find_best();
		atomic_store_explicit(&best, known, memory_order_relaxed);
	}
	return (enum quire_simd)known;
}

const struct quire_converters *quire_converters_of(enum quire_simd simd)
{
	if (simd == QUIRE_SIMD_AVX512)
		return &quire_converters_avx512;
	if (simd == QUIRE_SIMD_AVX2)
		return &quire_converters_avx2;
	return &quire_converters_portable;
}

#else

enum quire_simd quire_simd_best(void)
{
	return QUIRE_SIMD_PORTABLE;
}

const struct quire_converters *quire_converters_of(enum quire_simd simd)
{
	(void)simd;
	return &quire_converters_portable;
}

#endif
