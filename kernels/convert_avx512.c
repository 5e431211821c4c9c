/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "kernels/convert_impl.h"
#include "kernels/dtype_impl.h"

#ifdef __x86_64__
#include <immintrin.h>

#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl")))

#define ROUND_NEAREST (_MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)

/* The i-th 16 elements from source on, as the bits of 16 f32. */

AVX512 static inline __m512i load_f32(const char *source, int i)
{
	return _mm512_loadu_si512(source + 64 * i);
}

AVX512 static inline __m512i load_f16(const char *source, int i)
{
	const __m256i *from = (const __m256i *)(source + 32 * i);

	return _mm512_castps_si512(_mm512_cvtph_ps(_mm256_loadu_si256(from)));
}

AVX512 static inline __m512i load_bf16(const char *source, int i)
{
	const __m256i *from = (const __m256i *)(source + 32 * i);

	return _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(from)), 16);
}

/* A line of a narrow type, from the bits of f32. */

AVX512 static inline __m512i line_of_f16(__m512i a, __m512i b)
{
	__m256i low = _mm512_cvtps_ph(_mm512_castsi512_ps(a), ROUND_NEAREST);
	__m256i high = _mm512_cvtps_ph(_mm512_castsi512_ps(b), ROUND_NEAREST);

	return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

AVX512 static inline __mmask16 is_nan(__m512i bits)
{
	__m512 numbers = _mm512_castsi512_ps(bits);

	return _mm512_cmp_ps_mask(numbers, numbers, _CMP_UNORD_Q);
}

/* Rounded, in the upper half of each word: the instruction for it flushes subnormals. */
AVX512 static inline __m512i round_bf16(__m512i bits)
{
	__m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
	__m512i rounded =
		_mm512_add_epi32(_mm512_add_epi32(bits, odd), _mm512_set1_epi32(0x7fff));

	return _mm512_mask_or_epi32(rounded, is_nan(bits), bits,
	                            _mm512_set1_epi32(QUIRE_F32_QUIET));
}

AVX512 static inline __m512i line_of_bf16(__m512i a, __m512i b)
{
	__m512i upper_halves = _mm512_set_epi16(
		63, 61, 59, 57, 55, 53, 51, 49, 47, 45, 43, 41, 39, 37, 35, 33, 31, 29,
		27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);

	return _mm512_permutex2var_epi16(round_bf16(a), upper_halves, round_bf16(b));
}

/*
 * The lower byte of each word.  The sum of a number below 2^(e + 1) and of 2^(e + 23 -
 * fraction_bits) has the number in units of the target's last place in its lower bits,
 * rounded.
 */
AVX512 static inline __m128i narrow_fp8(__m512i bits, int fraction_bits, int bias,
                                        float largest, int quiet)
{
	const int spare = 23 - fraction_bits;
	const int least = (QUIRE_F32_BIAS - bias + 1) << 23;
	__mmask16 nan = is_nan(bits);
	__m512i magnitude =
		_mm512_min_epi32(_mm512_and_si512(bits, _mm512_set1_epi32(0x7fffffff)),
	                         _mm512_castps_si512(_mm512_set1_ps(largest)));
	__m512i power = _mm512_max_epi32(
		_mm512_and_si512(magnitude, _mm512_set1_epi32(QUIRE_F32_INFINITY)),
		_mm512_set1_epi32(least));
	__m512i high = _mm512_add_epi32(power, _mm512_set1_epi32(spare << 23));
	__m512i sum = _mm512_castps_si512(
		_mm512_add_round_ps(_mm512_castsi512_ps(magnitude),
	                            _mm512_castsi512_ps(high), ROUND_NEAREST));
	__m512i exponent = _mm512_sub_epi32(_mm512_srli_epi32(power, spare),
	                                    _mm512_set1_epi32(least >> spare));
	__m512i narrow = _mm512_add_epi32(_mm512_sub_epi32(sum, high), exponent);
	__m512i payload =
		_mm512_and_si512(_mm512_srli_epi32(bits, spare),
	                         _mm512_set1_epi32((1 << (fraction_bits - 1)) - 1));
	__m512i sign =
		_mm512_and_si512(_mm512_srli_epi32(bits, 24), _mm512_set1_epi32(0x80));

	narrow = _mm512_mask_or_epi32(narrow, nan, payload, _mm512_set1_epi32(quiet));
	return _mm512_cvtepi32_epi8(_mm512_or_si512(narrow, sign));
}

AVX512 static inline __m128i narrow_fp8_e4m3(__m512i bits)
{
	return narrow_fp8(bits, QUIRE_FP8_E4M3_FRACTION_BITS, QUIRE_FP8_E4M3_BIAS, 448,
	                  QUIRE_FP8_E4M3_NAN);
}

AVX512 static inline __m128i narrow_fp8_e5m2(__m512i bits)
{
	return narrow_fp8(bits, QUIRE_FP8_E5M2_FRACTION_BITS, QUIRE_FP8_E5M2_BIAS, 57344,
	                  QUIRE_FP8_E5M2_QUIET);
}

AVX512 static inline __m512i line_of_quarters(__m128i a, __m128i b, __m128i c, __m128i d)
{
	__m512i line = _mm512_castsi128_si512(a);

	line = _mm512_inserti32x4(line, b, 1);
	line = _mm512_inserti32x4(line, c, 2);
	return _mm512_inserti32x4(line, d, 3);
}

#define LINE_f32(load, s)  load(s, 0)
#define LINE_f16(load, s)  line_of_f16(load(s, 0), load(s, 1))
#define LINE_bf16(load, s) line_of_bf16(load(s, 0), load(s, 1))
#define LINE_fp8(narrow, load, s)                                                    \
	line_of_quarters(narrow(load(s, 0)), narrow(load(s, 1)), narrow(load(s, 2)), \
	                 narrow(load(s, 3)))
#define LINE_fp8_e4m3(load, s) LINE_fp8(narrow_fp8_e4m3, load, s)
#define LINE_fp8_e5m2(load, s) LINE_fp8(narrow_fp8_e5m2, load, s)

#define LOOP(store, to, from, step)                                \
	for (; lines > 0; lines--, target += 64, source += (step)) \
	store((__m512i *)target, LINE_##to(load_##from, source))

/* A loop for each way of storing: the compiler does not split one. */
#define LINES(to, to_type, from, from_type)                                    \
	AVX512 static void to##_of_##from(char *target, const char *source,    \
	                                  int64_t lines, bool streamed)        \
	{                                                                      \
		const int64_t step = 64 / sizeof(to_type) * sizeof(from_type); \
                                                                               \
		if (streamed)                                                  \
			LOOP(_mm512_stream_si512, to, from, step);             \
		else                                                           \
			LOOP(_mm512_storeu_si512, to, from, step);             \
	}

QUIRE_CONVERSIONS(LINES)

AVX512 static void copy_lines(char *target, const char *source, int64_t lines,
                              bool streamed)
{
	if (streamed)
		LOOP(_mm512_stream_si512, f32, f32, 64);
	else
		LOOP(_mm512_storeu_si512, f32, f32, 64);
}

QUIRE_CONVERTERS(quire_converters_avx512)

#endif
