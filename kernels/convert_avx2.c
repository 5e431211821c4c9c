/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "kernels/convert_impl.h"
#include "kernels/dtype_impl.h"

#ifdef __x86_64__
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,f16c")))

/* The i-th 8 elements from source on, as the bits of 8 f32. */

AVX2 static inline __m256i load_f32(const char *source, int i)
{
	return _mm256_loadu_si256((const __m256i *)(source + 32 * i));
}

AVX2 static inline __m256i load_f16(const char *source, int i)
{
	const __m128i *from = (const __m128i *)(source + 16 * i);

	return _mm256_castps_si256(_mm256_cvtph_ps(_mm_loadu_si128(from)));
}

AVX2 static inline __m256i load_bf16(const char *source, int i)
{
	const __m128i *from = (const __m128i *)(source + 16 * i);

	return _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(from)), 16);
}

/* Half a line of a narrow type, from the bits of f32. */

AVX2 static inline __m256i half_of_f16(__m256i a, __m256i b)
{
	__m128i low = _mm256_cvtps_ph(_mm256_castsi256_ps(a), _MM_FROUND_TO_NEAREST_INT);
	__m128i high = _mm256_cvtps_ph(_mm256_castsi256_ps(b), _MM_FROUND_TO_NEAREST_INT);

	return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

AVX2 static inline __m256i is_nan(__m256i bits)
{
	__m256 numbers = _mm256_castsi256_ps(bits);

	return _mm256_castps_si256(_mm256_cmp_ps(numbers, numbers, _CMP_UNORD_Q));
}

AVX2 static inline __m256i narrow_bf16(__m256i bits)
{
	__m256i nan = is_nan(bits);
	__m256i quiet = _mm256_and_si256(nan, _mm256_set1_epi32(QUIRE_F32_QUIET));
	__m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
	__m256i half = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
	__m256i rounded = _mm256_add_epi32(bits, _mm256_andnot_si256(nan, half));

	return _mm256_srli_epi32(_mm256_or_si256(rounded, quiet), 16);
}

AVX2 static inline __m256i half_of_bf16(__m256i a, __m256i b)
{
	/* Packing works within 128 bits: the middle quarters change places after it. */
	return _mm256_permute4x64_epi64(
		_mm256_packus_epi32(narrow_bf16(a), narrow_bf16(b)),
		_MM_SHUFFLE(3, 1, 2, 0));
}

/* quire_narrow and the sign, for 8 words. */
AVX2 static inline __m256i narrow_fp8(__m256i bits, int fraction_bits, int bias,
                                      int limit, int quiet)
{
	const __m256i one = _mm256_set1_epi32(1);
	const __m256i fraction = _mm256_set1_epi32(0x7fffff);
	__m256i rebias = _mm256_set1_epi32(QUIRE_F32_BIAS - bias + 1);
	__m256i magnitude = _mm256_and_si256(bits, _mm256_set1_epi32(0x7fffffff));
	__m256i exponent = _mm256_srli_epi32(magnitude, 23);
	__m256i field = _mm256_max_epi32(exponent, rebias);
	__m256i shift =
		_mm256_min_epi32(_mm256_add_epi32(_mm256_sub_epi32(field, exponent),
	                                          _mm256_set1_epi32(23 - fraction_bits)),
	                         _mm256_set1_epi32(25));
	__m256i significand = _mm256_or_si256(_mm256_and_si256(magnitude, fraction),
	                                      _mm256_set1_epi32(0x800000));
	__m256i odd = _mm256_and_si256(_mm256_srlv_epi32(significand, shift), one);
	__m256i half = _mm256_sllv_epi32(one, _mm256_sub_epi32(shift, one));
	__m256i rounded =
		_mm256_srlv_epi32(_mm256_add_epi32(_mm256_add_epi32(significand, odd),
	                                           _mm256_sub_epi32(half, one)),
	                          shift);
	__m256i narrow = _mm256_add_epi32(
		rounded,
		_mm256_slli_epi32(_mm256_sub_epi32(field, rebias), fraction_bits));
	__m256i payload =
		_mm256_and_si256(_mm256_srli_epi32(magnitude, 23 - fraction_bits),
	                         _mm256_set1_epi32((1 << (fraction_bits - 1)) - 1));

	narrow = _mm256_min_epi32(narrow, _mm256_set1_epi32(limit));
	narrow = _mm256_blendv_epi8(
		narrow, _mm256_or_si256(payload, _mm256_set1_epi32(quiet)), is_nan(bits));
	return _mm256_or_si256(narrow, _mm256_and_si256(_mm256_srli_epi32(bits, 24),
	                                                _mm256_set1_epi32(0x80)));
}

AVX2 static inline __m256i narrow_fp8_e4m3(__m256i bits)
{
	return narrow_fp8(bits, QUIRE_FP8_E4M3_FRACTION_BITS, QUIRE_FP8_E4M3_BIAS,
	                  QUIRE_FP8_E4M3_MAX, QUIRE_FP8_E4M3_NAN);
}

AVX2 static inline __m256i narrow_fp8_e5m2(__m256i bits)
{
	return narrow_fp8(bits, QUIRE_FP8_E5M2_FRACTION_BITS, QUIRE_FP8_E5M2_BIAS,
	                  QUIRE_FP8_E5M2_MAX, QUIRE_FP8_E5M2_QUIET);
}

AVX2 static inline __m256i half_of_bytes(__m256i a, __m256i b, __m256i c, __m256i d)
{
	const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
	__m256i low = _mm256_packus_epi32(a, b);
	__m256i high = _mm256_packus_epi32(c, d);

	return _mm256_permutevar8x32_epi32(_mm256_packus_epi16(low, high), order);
}

#define HALF_f32(load, s)  load(s, 0)
#define HALF_f16(load, s)  half_of_f16(load(s, 0), load(s, 1))
#define HALF_bf16(load, s) half_of_bf16(load(s, 0), load(s, 1))
#define HALF_fp8(narrow, load, s)                                                 \
	half_of_bytes(narrow(load(s, 0)), narrow(load(s, 1)), narrow(load(s, 2)), \
	              narrow(load(s, 3)))
#define HALF_fp8_e4m3(load, s) HALF_fp8(narrow_fp8_e4m3, load, s)
#define HALF_fp8_e5m2(load, s) HALF_fp8(narrow_fp8_e5m2, load, s)

#define LOOP(store, to, from, step)                                             \
	for (int64_t i = 0; i < 2 * lines; i++, target += 32, source += (step)) \
	store((__m256i *)target, HALF_##to(load_##from, source))

/* A loop for each way of storing: the compiler does not split one. */
#define LINES(to, to_type, from, from_type)                                              \
	AVX2 static void to##_of_##from(char *target, const char *source, int64_t lines, \
	                                bool streamed)                                   \
	{                                                                                \
		const int64_t step = 32 / sizeof(to_type) * sizeof(from_type);           \
                                                                                         \
		if (streamed)                                                            \
			LOOP(_mm256_stream_si256, to, from, step);                       \
		else                                                                     \
			LOOP(_mm256_storeu_si256, to, from, step);                       \
	}

QUIRE_CONVERSIONS(LINES)

AVX2 static void copy_lines(char *target, const char *source, int64_t lines,
                            bool streamed)
{
	if (streamed)
		LOOP(_mm256_stream_si256, f32, f32, 32);
	else
		LOOP(_mm256_storeu_si256, f32, f32, 32);
}

QUIRE_CONVERTERS(quire_converters_avx2)

#endif
