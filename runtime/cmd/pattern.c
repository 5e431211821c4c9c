/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/pattern_impl.h"

#include <quire/runtime/assert.h>

#include <stddef.h>
#include <string.h>

/* Values of one mix. */
#define MIX_BYTES 8

static uint64_t mix(uint64_t x)
{
	x ^= x >> 32; /* the finalizer of MurmurHash3 with one constant */
	x *= 0xd6e8feb86659fd93u;
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93u;
	return x ^ x >> 32;
}

static uint32_t f32_bits(int32_t value)
{
	float number = (float)value;
	uint32_t bits;

	memcpy(&bits, &number, sizeof(bits));
	return bits;
}

/* Integers below 2^11 are exact in binary16: its fields are the binary32's, moved. */
static uint32_t f16_bits(int32_t value)
{
	uint32_t bits = f32_bits(value);
	uint32_t sign = bits >> 16 & 0x8000;
	uint32_t exponent = bits >> 23 & 0xff;

	if (value == 0)
		return 0;
	return sign | (exponent - 127 + 15) << 10 | (bits >> 13 & 0x3ff);
}

void cmd_pattern_init(struct cmd_pattern *pattern, const struct quire_geometry *geometry,
                      int64_t head_dim)
{
	pattern->elements = geometry->pieces * geometry->token_stride;
	pattern->row_bytes = geometry->row_bytes;
	pattern->num_kv = geometry->num_kv;
	pattern->head_dim = head_dim;
	pattern->element_bytes = geometry->element_bytes;
	for (int32_t i = 0; i < CMD_PATTERN_VALUES; i++) {
		int32_t value = i - CMD_PATTERN_VALUES / 2;

		switch (geometry->dtype) {
		case QUIRE_F32:
			pattern->bits[i] = f32_bits(value);
			break;
		case QUIRE_F16:
			pattern->bits[i] = f16_bits(value);
			break;
		case QUIRE_BF16:
			pattern->bits[i] = f32_bits(value) >> 16; /* 8 bits are exact */
			break;
		case QUIRE_FP8_E4M3:
		case QUIRE_FP8_E5M2:
			pattern->bits[i] = (uint32_t)i; /* any byte: it is copied */
			break;
		}
	}
}

uint64_t cmd_pattern_seed(uint64_t request, int32_t label, uint64_t life)
{
	return mix(mix(mix(request) + (uint64_t)label) + life);
}

void cmd_pattern_fill(const struct cmd_pattern *pattern, uint64_t seed, int64_t position,
                      int64_t layer, int is_value, void *row)
{
	uint64_t start = mix(seed + mix((uint64_t)position * 2 + (uint64_t)is_value) +
	                     (uint64_t)layer * 0x9e3779b97f4a7c15u);
	uint64_t values = 0;

	for (int64_t e = 0; e < pattern->elements; e++) {
		uint32_t bits;

		if (e % MIX_BYTES == 0)
			values = e == 0 ? start : mix(start + (uint64_t)e);
		bits = pattern->bits[values & 0xff];
		values >>= 8;
		if (pattern->element_bytes == 4)
			((uint32_t *)row)[e] = bits;
		else if (pattern->element_bytes == 2)
			((uint16_t *)row)[e] = (uint16_t)bits;
		else
			((uint8_t *)row)[e] = (uint8_t)bits;
	}
}

static uint32_t element_of(const struct cmd_pattern *pattern, const void *row, int64_t e)
{
	if (pattern->element_bytes == 4)
		return ((const uint32_t *)row)[e];
	if (pattern->element_bytes == 2)
		return ((const uint16_t *)row)[e];
	return ((const uint8_t *)row)[e];
}

/* The value of some bits; false: the pattern has no such value. */
static bool value_of(const struct cmd_pattern *pattern, uint32_t bits, int64_t *value_out)
{
	for (int32_t i = 0; i < CMD_PATTERN_VALUES; i++) {
		if (pattern->bits[i] == bits) {
			*value_out = i - CMD_PATTERN_VALUES / 2;
			return true;
		}
	}
	return false;
}

static void describe(const struct cmd_pattern *pattern, const void *wanted,
                     const void *got, struct cmd_pattern_fault *fault)
{
	int64_t e = 0, value = 0;
	uint32_t bits;

	while (element_of(pattern, wanted, e) == element_of(pattern, got, e))
		e++;
	fault->head = e / pattern->head_dim;
	fault->dim = e % pattern->head_dim;
	bits = element_of(pattern, wanted, e);
	QUIRE_ASSERT(value_of(pattern, bits, &value));
	fault->expected = (int32_t)value;
	bits = element_of(pattern, got, e);
	fault->got_is_integer = value_of(pattern, bits, &fault->got);
	if (!fault->got_is_integer)
		fault->got = bits;
}

bool cmd_pattern_compare(const struct cmd_pattern *pattern, uint64_t seed, int64_t first,
                         int64_t layer, int64_t count, const void *rows, void *scratch,
                         struct cmd_pattern_fault *fault_out)
{
	const char *got = rows;

	for (int64_t i = 0; i < pattern->num_kv * count; i++, got += pattern->row_bytes) {
		int64_t position = i / pattern->num_kv;
		int is_value = (int)(i % pattern->num_kv);

		cmd_pattern_fill(pattern, seed, first + position, layer, is_value,
		                 scratch);
		if (memcmp(scratch, got, (size_t)pattern->row_bytes) == 0)
			continue;
		fault_out->position = position;
		fault_out->is_value = is_value;
		describe(pattern, scratch, got, fault_out);
		return false;
	}
	return true;
}
