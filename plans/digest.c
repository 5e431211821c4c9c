/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <quire/plans/plan.h>

#include <quire/runtime/assert.h>

/* Everything of xxhash inside this file: the state may live on the stack, whatever
 * version of the shared library is there at run time. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <string.h>

/* Arrays are hashed as they lie in memory. */
_Static_assert(
	__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	"digests are over little-endian bytes: this host would need byte swapping");

static void add_bytes(XXH3_state_t *state, const void *bytes, int64_t size)
{
	if (size > 0)
		XXH3_64bits_update(state, bytes, (size_t)size);
}

static void add_i32(XXH3_state_t *state, int32_t value)
{
	add_bytes(state, &value, 4);
}

static void add_i32s(XXH3_state_t *state, const int32_t *values, int64_t count)
{
	add_bytes(state, values, count * 4);
}

static void add_name(XXH3_state_t *state, const char *name)
{
	int32_t length = (int32_t)strlen(name);

	add_i32(state, length);
	add_bytes(state, name, length);
}

static void add_table(XXH3_state_t *state, const struct quire_plan *plan,
                      const struct quire_table *table)
{
	const int32_t counts[] = {table->rows, table->tokens, table->pages,
	                          table->bucket_rows, table->bucket_tokens};
	int64_t rows = table->bucket_rows;
	int64_t tokens = table->bucket_tokens;

	add_name(state, plan->label_names[table->name]);
	add_i32s(state, counts, 5);
	add_i32s(state, table->qo_indptr, rows + 1);
	add_i32s(state, table->kv_indptr, rows + 1);
	for (int32_t i = 0; table->kv_indices == NULL && i < table->rows; i++)
		add_i32s(state, quire_row_pages(plan, table, i),
		         table->kv_indptr[i + 1] - table->kv_indptr[i]);
	if (table->kv_indices != NULL)
		add_i32s(state, table->kv_indices, table->pages);
	add_i32s(state, table->kv_last_page_len, rows);
	add_i32s(state, table->last_token, rows);
	add_i32s(state, table->slot_page, tokens);
	add_i32s(state, table->slot_offset, tokens);
	add_i32s(state, table->position, tokens);
	add_bytes(state, table->row_request, rows * 8);
	for (int64_t i = 0; i < rows; i++) {
		if (table->row_label[i] < 0)
			add_i32(state, -1);
		else
			add_name(state, plan->label_names[table->row_label[i]]);
	}
}

/* Copies [first, first + n) of the plan's lists. */
static void add_copies(XXH3_state_t *state, const struct quire_plan *plan, int32_t first,
                       int32_t n)
{
	add_i32(state, n);
	for (int32_t i = first; i < first + n; i++) {
		add_i32(state, plan->copy_source[i]);
		add_i32(state, plan->copy_target[i]);
		add_i32(state, plan->copy_end[i]);
	}
}

uint64_t quire_plan_digest(const struct quire_plan *plan)
{
	XXH3_state_t state;

	XXH3_64bits_reset(&state);
	add_i32(&state, plan->num_tables);
	for (int32_t t = 0; t < plan->num_tables; t++)
		add_table(&state, plan, &plan->tables[t]);
	add_copies(&state, plan, 0, plan->num_pre_copies);
	add_copies(&state, plan, plan->num_pre_copies, plan->num_post_copies);
	return XXH3_64bits_digest(&state);
}

uint64_t quire_run_digest_add(uint64_t run, enum quire_status status, int64_t detail,
                              uint64_t plan_digest)
{
	int32_t number = (int32_t)status;
	char bytes[28];

	memcpy(bytes, &run, 8);
	memcpy(bytes + 8, &number, 4);
	memcpy(bytes + 12, &detail, 8);
	memcpy(bytes + 20, &plan_digest, 8);
	return XXH3_64bits(bytes, sizeof(bytes));
}
