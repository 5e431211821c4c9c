/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "random_plan.h"
#include "tests/run_suite.h"

#include <xxhash.h>

#define PLANS 100

/* The second implementation: the byte string of docs/trace-format.md, naively, then one
 * hash. */
struct bytes {
	unsigned char *data;
	size_t size;
	size_t room;
};

static void add_byte(struct bytes *bytes, unsigned value)
{
	if (bytes->size == bytes->room) {
		bytes->room = bytes->room * 2 + 64;
		bytes->data = realloc(bytes->data, bytes->room);
		SAME(bytes->data != NULL, true);
	}
	bytes->data[bytes->size++] = (unsigned char)value;
}

static void add_number(struct bytes *bytes, uint64_t value, int width)
{
	for (int i = 0; i < width; i++)
		add_byte(bytes, (unsigned)(value >> (8 * i)) & 255u);
}

static void add_i32(struct bytes *bytes, int32_t value)
{
	add_number(bytes, (uint64_t)value, 4);
}

static void add_text(struct bytes *bytes, const char *text)
{
	int32_t length = 0;

	while (text[length] != 0)
		length++;
	add_i32(bytes, length);
	for (int32_t i = 0; i < length; i++)
		add_byte(bytes, (unsigned char)text[i]);
}

static void add_table(struct bytes *bytes, const struct quire_plan *plan,
                      const struct quire_table *table)
{
	int32_t rows = table->bucket_rows, tokens = table->bucket_tokens;

	add_text(bytes, plan->label_names[table->name]);
	add_i32(bytes, table->rows);
	add_i32(bytes, table->tokens);
	add_i32(bytes, table->pages);
	add_i32(bytes, table->bucket_rows);
	add_i32(bytes, table->bucket_tokens);
	for (int32_t i = 0; i <= rows; i++)
		add_i32(bytes, table->qo_indptr[i]);
	for (int32_t i = 0; i <= rows; i++)
		add_i32(bytes, table->kv_indptr[i]);
	for (int32_t i = 0; i < table->pages && table->kv_indices != NULL; i++)
		add_i32(bytes, table->kv_indices[i]);
	for (int32_t i = 0; i < table->rows && table->kv_indices == NULL; i++)
		for (int32_t p = 0; p < table->kv_indptr[i + 1] - table->kv_indptr[i];
		     p++)
			add_i32(bytes, table->block_table[i * plan->block_width + p]);
	for (int32_t i = 0; i < rows; i++)
		add_i32(bytes, table->kv_last_page_len[i]);
	for (int32_t i = 0; i < rows; i++)
		add_i32(bytes, table->last_token[i]);
	for (int32_t i = 0; i < tokens; i++)
		add_i32(bytes, table->slot_page[i]);
	for (int32_t i = 0; i < tokens; i++)
		add_i32(bytes, table->slot_offset[i]);
	for (int32_t i = 0; i < tokens; i++)
		add_i32(bytes, table->position[i]);
	for (int32_t i = 0; i < rows; i++)
		add_number(bytes, (uint64_t)table->row_request[i], 8);
	for (int32_t i = 0; i < rows; i++) {
		if (i < table->rows)
			add_text(bytes, plan->label_names[table->row_label[i]]);
		else
			add_i32(bytes, -1);
	}
}

static void add_copies(struct bytes *bytes, const struct quire_plan *plan, int32_t first,
                       int32_t n)
{
	add_i32(bytes, n);
	for (int32_t i = first; i < first + n; i++) {
		add_i32(bytes, plan->copy_source[i]);
		add_i32(bytes, plan->copy_target[i]);
		add_i32(bytes, plan->copy_end[i]);
	}
}

static uint64_t naive_digest(const struct quire_plan *plan)
{
	struct bytes bytes = {NULL, 0, 0};
	uint64_t digest;

	add_i32(&bytes, plan->num_tables);
	for (int32_t t = 0; t < plan->num_tables; t++)
		add_table(&bytes, plan, &plan->tables[t]);
	add_copies(&bytes, plan, 0, plan->num_pre_copies);
	add_copies(&bytes, plan, plan->num_pre_copies, plan->num_post_copies);
	digest = XXH3_64bits(bytes.data, bytes.size);
	free(bytes.data);
	return digest;
}

START_TEST(the_digest_of_random_plans_is_that_of_the_documented_bytes)
{
	for (uint64_t seed = 0; seed < PLANS; seed++) {
		struct random_plan random;

		random_plan_make(&random, 50000 + seed);
		ck_assert_uint_eq(quire_plan_digest(&random.plan),
		                  naive_digest(&random.plan));
		random_plan_end(&random);
	}
}
END_TEST

/* A plan of two labels, one row each, padded to 3 rows and 4 tokens: the bytes by hand.
 */
START_TEST(the_digest_of_a_tiny_plan_is_that_of_bytes_written_by_hand)
{
	static const unsigned char bytes[] =
		"\x02\0\0\0"
		/* "main": 1 row, 2 tokens, 2 pages, padded to 2 rows, 3 tokens */
		"\x04\0\0\0main\x01\0\0\0\x02\0\0\0\x02\0\0\0\x02\0\0\0\x03\0\0\0"
		"\0\0\0\0\x02\0\0\0\x02\0\0\0"   /* qo_indptr */
		"\0\0\0\0\x02\0\0\0\x02\0\0\0"   /* kv_indptr */
		"\x07\0\0\0\x2c\x01\0\0"         /* kv_indices 7, 300 */
		"\x01\0\0\0\x04\0\0\0"           /* kv_last_page_len 1, ps */
		"\x01\0\0\0\xff\xff\xff\xff"     /* last_token */
		"\x07\0\0\0\x2c\x01\0\0\0\0\0\0" /* slot_page, the sink */
		"\x03\0\0\0\0\0\0\0\0\0\0\0"     /* slot_offset */
		"\x0b\0\0\0\x0c\0\0\0\0\0\0\0"   /* position 8 + 3, 8 + 4 */
		"\x05\0\0\0\0\0\0\x01"           /* row_request 2^56 + 5 */
		"\xff\xff\xff\xff\xff\xff\xff\xff"
		"\x04\0\0\0main\xff\xff\xff\xff" /* labels */
		/* "cfg": 1 row, no token, 1 page, padded alike */
		"\x03\0\0\0cfg\x01\0\0\0\0\0\0\0\x01\0\0\0\x02\0\0\0\x03\0\0\0"
		"\0\0\0\0\0\0\0\0\0\0\0\0"
		"\0\0\0\0\x01\0\0\0\x01\0\0\0"
		"\x09\0\0\0"
		"\x04\0\0\0\x04\0\0\0"
		"\xff\xff\xff\xff\xff\xff\xff\xff"
		"\0\0\0\0\0\0\0\0\0\0\0\0"
		"\0\0\0\0\0\0\0\0\0\0\0\0"
		"\0\0\0\0\0\0\0\0\0\0\0\0"
		"\x06\0\0\0\0\0\0\0"
		"\xff\xff\xff\xff\xff\xff\xff\xff"
		"\x03\0\0\0cfg\xff\xff\xff\xff"
		"\0\0\0\0\0\0\0\0"; /* no copies before, none behind */
	static const char names[2][QUIRE_LABEL_BYTES] = {"main", "cfg"};
	const int32_t main_pages[] = {7, 300}, cfg_pages[] = {9};
	const struct quire_view views[] = {
		{.request = (UINT64_C(1) << 56) + 5,
	         .span = 2,
	         .length = 5,
	         .released = 8,
	         .pages = main_pages,
	         .tag = 77},
		{.request = 6, .label = 1, .length = 4, .pages = cfg_pages},
	};
	const int32_t labels[] = {0, 1};
	struct quire_slot_limits limits = {2, 2, 3, 2, 4, 0, 1, 10};
	struct quire_block_row block_rows[2 * 2];
	struct quire_slot_layout layout;
	struct quire_grouping grouping;
	struct quire_plan plan;
	char *host;

	ck_assert_int_eq(quire_slot_layout_init(&limits, &layout, NULL), QUIRE_OK);
	ck_assert_int_eq(quire_grouping_init(&grouping, labels, 2, NULL, 0, 2, NULL),
	                 QUIRE_OK);
	host = malloc((size_t)layout.slot_bytes);
	memset(host, 0x5a, (size_t)layout.slot_bytes);
	quire_plan_bind(&plan, &layout, host, host, block_rows);
	plan.label_names = names;
	quire_plan_build(&plan, &grouping, views, 2, 4, 2, 3, NULL);
	ck_assert_uint_eq(quire_plan_digest(&plan),
	                  XXH3_64bits(bytes, sizeof(bytes) - 1));
	free(host);
}
END_TEST

static void flip_and_back(const struct quire_plan *plan, void *bytes, int64_t count,
                          int64_t width)
{
	uint64_t before = quire_plan_digest(plan);

	for (int64_t i = 0; i < count; i++) {
		char *byte = (char *)bytes + i * width;

		*byte ^= 1;
		SAME(quire_plan_digest(plan) != before, true);
		*byte ^= 1;
	}
	ck_assert_uint_eq(quire_plan_digest(plan), before);
}

static void flip_each_entry(struct quire_plan *plan, struct quire_table *table)
{
	int64_t rows = table->bucket_rows, tokens = table->bucket_tokens;

	flip_and_back(plan, table->qo_indptr, rows + 1, 4);
	flip_and_back(plan, table->kv_indptr, rows + 1, 4);
	if (table->kv_indices != NULL)
		flip_and_back(plan, table->kv_indices, table->pages, 4);
	flip_and_back(plan, table->kv_last_page_len, rows, 4);
	flip_and_back(plan, table->last_token, rows, 4);
	flip_and_back(plan, table->slot_page, tokens, 4);
	flip_and_back(plan, table->slot_offset, tokens, 4);
	flip_and_back(plan, table->position, tokens, 4);
	flip_and_back(plan, table->row_request, rows, 8);
	flip_and_back(plan, table->row_label, table->rows, 4);
	flip_and_back(plan, &table->rows, 1, 4);
	flip_and_back(plan, &table->name, 1, 4);
}

static void flip_copies(struct quire_plan *plan)
{
	int32_t copies = plan->num_pre_copies + plan->num_post_copies;

	flip_and_back(plan, plan->copy_source, copies, 4);
	flip_and_back(plan, plan->copy_target, copies, 4);
	flip_and_back(plan, plan->copy_end, copies, 4);
	if (copies > 0) { /* which side of the work a copy stands on counts, too */
		uint64_t before = quire_plan_digest(plan);
		int32_t pre = plan->num_pre_copies;

		plan->num_pre_copies = pre > 0 ? pre - 1 : pre + 1;
		plan->num_post_copies = copies - plan->num_pre_copies;
		SAME(quire_plan_digest(plan) != before, true);
		plan->num_pre_copies = pre;
		plan->num_post_copies = copies - pre;
	}
}

START_TEST(any_changed_entry_changes_the_digest)
{
	for (uint64_t seed = 0; seed < 10; seed++) {
		struct random_plan random;

		random_plan_make(&random, 60000 + seed);
		for (int32_t t = 0; t < random.plan.num_tables; t++)
			flip_each_entry(&random.plan, &random.plan.tables[t]);
		flip_copies(&random.plan);
		random_plan_end(&random);
	}
}
END_TEST

START_TEST(what_is_not_named_is_not_in_the_digest)
{
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct random_plan random;
		struct quire_table *table;
		uint64_t before;

		random_plan_make(&random, 70000 + seed);
		table = &random.plan.tables[0];
		before = quire_plan_digest(&random.plan);
		table->row_tag[0] += 1;
		if (table->block_table != NULL && table->kv_indices != NULL)
			table->block_table[0] += 1;
		memset(random.plan.user, 0, (size_t)random.plan.user_bytes);
		random.plan.num_work_copies = (int32_t)random.layout.limits.work_max;
		random.plan.ticket = 9;
		random.plan.step = 9;
		ck_assert_uint_eq(quire_plan_digest(&random.plan), before);
		random_plan_end(&random);
	}
}
END_TEST

START_TEST(the_run_digest_is_that_of_28_bytes_and_hangs_on_each_part)
{
	const unsigned char bytes[28] = {0x08, 7,           6,    5,    4,    3,    2,
	                                 1,    QUIRE_STALE, 0,    0,    0,    0xfe, 0xff,
	                                 0xff, 0xff,        0xff, 0xff, 0xff, 0xff, 0xef,
	                                 0xcd, 0xab,        0x89, 0x67, 0x45, 0x23, 0x01};
	uint64_t run = 0x0102030405060708, digest = 0x0123456789abcdef;
	uint64_t right = quire_run_digest_add(run, QUIRE_STALE, -2, digest);

	ck_assert_uint_eq(right, XXH3_64bits(bytes, sizeof(bytes)));
	ck_assert_uint_ne(right, quire_run_digest_add(run + 1, QUIRE_STALE, -2, digest));
	ck_assert_uint_ne(right, quire_run_digest_add(run, QUIRE_OK, -2, digest));
	ck_assert_uint_ne(right, quire_run_digest_add(run, QUIRE_STALE, -1, digest));
	ck_assert_uint_ne(right, quire_run_digest_add(run, QUIRE_STALE, -2, digest + 1));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("digest");
	TCase *cases = tcase_create("digest");

	tcase_add_test(cases, the_digest_of_random_plans_is_that_of_the_documented_bytes);
	tcase_add_test(cases, the_digest_of_a_tiny_plan_is_that_of_bytes_written_by_hand);
	tcase_add_test(cases, any_changed_entry_changes_the_digest);
	tcase_add_test(cases, what_is_not_named_is_not_in_the_digest);
	tcase_add_test(cases, the_run_digest_is_that_of_28_bytes_and_hangs_on_each_part);
	tcase_set_timeout(cases, 60);
	suite_add_tcase(suite, cases);
	return run_suite(suite);
}
