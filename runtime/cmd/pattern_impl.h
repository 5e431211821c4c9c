/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_RUNTIME_CMD_PATTERN_IMPL_H
#define QUIRE_RUNTIME_CMD_PATTERN_IMPL_H
/*
 * The pattern that replay --check writes and looks for: every element of every row is a
 * small integer, -128..127, which all dtypes of two bytes and more hold exactly, or any
 * byte of the others (rows of the cache's own dtype are copied).  It depends on the
 * stream, on which life of it (a reset begins a new one), on the token's number in that
 * life (counted as written: a token that is rewound is not written again), layer, K or V,
 * head and dim; so a row that belongs elsewhere, or was left over, does not
 * pass.
 */
#include <quire/kernels/layout.h>

#include <stdbool.h>
#include <stdint.h>

#define CMD_PATTERN_VALUES 256

struct cmd_pattern {
	int64_t elements;  /* of a row: num_kv_heads * head_dim */
	int64_t row_bytes; /* K or V of one token of one layer */
	int64_t num_kv;    /* rows of a token */
	int64_t head_dim;
	int64_t element_bytes;
	uint32_t bits[CMD_PATTERN_VALUES]; /* value - 128 in the dtype */
};

/* Where a read differs from the pattern. */
struct cmd_pattern_fault {
	int64_t position; /* in what was read */
	int64_t head;
	int64_t dim;
	int32_t is_value; /* 1 in V, 0 in K */
	int32_t expected;
	bool got_is_integer; /* got is one of the pattern's values, otherwise its bits */
	int64_t got;
};

void cmd_pattern_init(struct cmd_pattern *pattern, const struct quire_geometry *geometry,
                      int64_t head_dim);

/* The seed of one life of a stream. */
uint64_t cmd_pattern_seed(uint64_t request, int32_t label, uint64_t life);

/* Fill one row. */
void cmd_pattern_fill(const struct cmd_pattern *pattern, uint64_t seed, int64_t position,
                      int64_t layer, int is_value, void *row);

/*
 * cmd_pattern_compare - are tokens [first, first + count) of one layer as written?
 * @rows:    borrowed, [count, num_kv, num_kv_heads, head_dim]
 * @scratch: filled, row_bytes
 * Returns:  true; false: @fault_out is filled with the first difference.
 */
bool cmd_pattern_compare(const struct cmd_pattern *pattern, uint64_t seed, int64_t first,
                         int64_t layer, int64_t count, const void *rows, void *scratch,
                         struct cmd_pattern_fault *fault_out);

#endif
