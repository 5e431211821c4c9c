/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "kernels/device_cpu_impl.h"
#include "kernels/dtype_impl.h"
#include "runtime/refuse_impl.h"

#include <string.h>

/* Elements converted at a time: a fixed count lets the compiler use whole vectors. */
#define BLOCK 64

/*
 * Converters of a run of elements.  The blocks in between make them right for memory of
 * any alignment.
 */
#define CONVERTER(from_name, from_type, to_name, to_type)                      \
	static void to_name##_of_##from_name(char *target, const char *source, \
	                                     int64_t n)                        \
	{                                                                      \
		from_type in[BLOCK];                                           \
		to_type out[BLOCK];                                            \
                                                                               \
		for (; n >= BLOCK; n -= BLOCK) {                               \
			memcpy(in, source, sizeof(in));                        \
			for (int i = 0; i < BLOCK; i++)                        \
				out[i] = quire_##to_name##_of_f32(             \
					quire_f32_of_##from_name(in[i]));      \
			memcpy(target, out, sizeof(out));                      \
			source += sizeof(in);                                  \
			target += sizeof(out);                                 \
		}                                                              \
		memcpy(in, source, (size_t)n * sizeof(in[0]));                 \
		for (int64_t i = 0; i < n; i++)                                \
			out[i] = quire_##to_name##_of_f32(                     \
				quire_f32_of_##from_name(in[i]));              \
		memcpy(target, out, (size_t)n * sizeof(out[0]));               \
	}

CONVERTER(f32, float, f16, uint16_t)
CONVERTER(f32, float, bf16, uint16_t)
CONVERTER(f16, uint16_t, f32, float)
CONVERTER(f16, uint16_t, bf16, uint16_t)
CONVERTER(bf16, uint16_t, f32, float)
CONVERTER(bf16, uint16_t, f16, uint16_t)

static void keep_2_bytes(char *target, const char *source, int64_t n)
{
	memcpy(target, source, (size_t)n * 2);
}

static void keep_4_bytes(char *target, const char *source, int64_t n)
{
	memcpy(target, source, (size_t)n * 4);
}

typedef void (*converter)(char *target, const char *source, int64_t n);

/* [from][to] */
static const converter converters[QUIRE_DTYPE_COUNT][QUIRE_DTYPE_COUNT] = {
	[QUIRE_F32] = {keep_4_bytes, f16_of_f32, bf16_of_f32},
	[QUIRE_F16] = {f32_of_f16, keep_2_bytes, bf16_of_f16},
	[QUIRE_BF16] = {f32_of_bf16, f16_of_bf16, keep_2_bytes},
};

/* The first value of list[first .. last] outside 0 .. bound - 1. */
static enum quire_status check_ids(const int32_t *list, int64_t first, int64_t last,
                                   int64_t bound, const char *what,
                                   struct quire_refusal *refusal)
{
	for (int64_t i = first; i <= last; i++) {
		if (list[i] >= 0 && list[i] < bound)
			continue;
		return quire_refuse_bound(refusal, QUIRE_INVALID, what, i, list[i],
		                          list[i] < 0 ? 0 : bound - 1);
	}
	return QUIRE_OK;
}

static enum quire_status check_slots(const struct quire_geometry *geometry,
                                     const struct quire_slots *slots,
                                     struct quire_refusal *refusal)
{
	int64_t page_size = geometry->page_size;
	int64_t num_pages = geometry->num_pages;
	enum quire_status status;

	if (slots->n == 0)
		return QUIRE_OK;
	if (slots->offset == NULL)
		return check_ids(slots->page, slots->first / page_size,
		                 (slots->first + slots->n - 1) / page_size, num_pages,
		                 "page", refusal);
	status = check_ids(slots->page, 0, slots->n - 1, num_pages, "page", refusal);
	if (status != QUIRE_OK)
		return status;
	return check_ids(slots->offset, 0, slots->n - 1, page_size, "offset", refusal);
}

/* How many slots from i on lie one behind the other in one page. */
static int64_t run_length(const struct quire_slots *slots, int64_t page_size, int64_t i)
{
	int64_t left = slots->n - i;
	int64_t length = 1;

	if (slots->offset == NULL) {
		int64_t to_page_end = page_size - (slots->first + i) % page_size;

		return left < to_page_end ? left : to_page_end;
	}
	while (length < left && slots->page[i + length] == slots->page[i] &&
	       slots->offset[i + length] == slots->offset[i] + length)
		length++;
	return length;
}

enum quire_status quire_cpu_run_write_tokens(const struct quire_token_move *move,
                                             struct quire_refusal *refusal)
{
	const struct quire_geometry *geometry = move->geometry;
	const struct quire_slots *slots = &move->slots;
	int64_t source_bytes = geometry->token_stride * quire_dtype_bytes(move->dtype);
	int64_t kv_bytes = geometry->kv_stride * geometry->element_bytes;
	converter convert = converters[move->dtype][geometry->dtype];
	enum quire_status status = check_slots(geometry, slots, refusal);
	int64_t run;

	if (status != QUIRE_OK)
		return status;
	for (int64_t i = 0; i < slots->n; i += run) {
		char *target = move->storage +
		               quire_slot_offset(geometry, slots, move->layer, i, 0);

		run = run_length(slots, geometry->page_size, i);
		convert(target, move->k + i * source_bytes, run * geometry->token_stride);
		convert(target + kv_bytes, move->v + i * source_bytes,
		        run * geometry->token_stride);
	}
	return QUIRE_OK;
}

enum quire_status quire_cpu_run_read_tokens(const struct quire_token_move *move,
                                            struct quire_refusal *refusal)
{
	const struct quire_geometry *geometry = move->geometry;
	const struct quire_slots *slots = &move->slots;
	int64_t row_bytes = geometry->row_bytes;
	int64_t kv_bytes = geometry->kv_stride * geometry->element_bytes;
	enum quire_status status = check_slots(geometry, slots, refusal);
	char *out = move->out;
	int64_t run;

	if (status != QUIRE_OK)
		return status;
	for (int64_t i = 0; i < slots->n; i += run) {
		const char *source = move->storage + quire_slot_offset(geometry, slots,
		                                                       move->layer, i, 0);

		run = run_length(slots, geometry->page_size, i);
		/* K and V alternate in the output, so rows do not join. */
		for (int64_t j = 0; j < run; j++, out += 2 * row_bytes) {
			const char *row = source + j * row_bytes;

			memcpy(out, row, (size_t)row_bytes);
			memcpy(out + row_bytes, row + kv_bytes, (size_t)row_bytes);
		}
	}
	return QUIRE_OK;
}
