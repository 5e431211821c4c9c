/* SPDX-License-Identifier: MIT */
/* Steps in full: tables as the callbacks see them, built-in work, padding, captured
 * shapes. */
#include "fixture.h"
#include "tests/run_suite.h"

#include <check.h>

#include <math.h>

#define ROW (FIXTURE_HEADS * FIXTURE_DIM) /* elements of K or V of one token */

/* Rows whose elements tell token and element: base + 10 * token + element. */
static void fill(float *rows, int32_t tokens, float base)
{
	for (int32_t i = 0; i < tokens * ROW; i++)
		rows[i] = base + (float)(10 * (i / ROW) + i % ROW);
}

/* Where a token's K of a layer lies, by the documented formula for [L, P, 2, ps, H,
 * D]. */
static float *slot(struct fixture *f, int64_t layer, int64_t page, int64_t kv,
                   int64_t token)
{
	const struct quire_shape *s = quire_cache_shape(f->cache);
	float *data = quire_cache_data_ptr(f->cache);

	return data +
	       (((layer * s->num_pages + page) * 2 + kv) * s->page_size + token) * ROW;
}

/* ------------------------------------------------------------------ built-in work */

START_TEST(built_in_writes_land_in_the_slots_of_the_new_tokens)
{
	struct fixture f;
	float k[6 * ROW], v[6 * ROW];
	const struct quire_segment segments[] = {{.request = 1, .span = 3, .at = 3},
	                                         {.request = 2, .span = 3, .at = 0}};
	const struct quire_work work = {.kind = QUIRE_WORK_WRITE,
	                                .layer = 1,
	                                .write = {.dtype = QUIRE_F32, .k = k, .v = v}};
	const struct quire_step step = {
		.segments = segments, .num_segments = 2, .work = &work, .num_work = 1};

	fixture_start(&f, 8, 4);
	fill(k, 6, 100);
	fill(v, 6, 500);
	ck_assert_int_eq(open_now(&f, 1), QUIRE_OK);
	ck_assert_int_eq(open_now(&f, 2), QUIRE_OK);
	ck_assert_int_eq(extend_now(&f, 1, NULL, 3, 0).refusal.status,
	                 QUIRE_OK); /* page 0 */
	ck_assert_int_eq(submit_now(&f, &step).refusal.status,
	                 QUIRE_OK); /* pages 1 and 2 */
	/* Request 1: token 3 in page 0, tokens 4 and 5 in page 1; request 2: page 2. */
	ck_assert_float_eq(*slot(&f, 1, 0, 0, 3), 100);
	ck_assert_float_eq(*slot(&f, 1, 1, 0, 0), 110);
	ck_assert_float_eq(*slot(&f, 1, 1, 1, 1), 520);
	ck_assert_float_eq(*slot(&f, 1, 2, 0, 0), 130);
	ck_assert_float_eq(*slot(&f, 1, 2, 1, 2), 550);
	ck_assert_float_eq(*slot(&f, 0, 0, 0, 3), 0); /* the other layer is untouched */
	fixture_end(&f);
}
END_TEST

START_TEST(built_in_reads_gather_any_part_of_a_context)
{
	struct fixture f;
	float k[11 * ROW], v[11 * ROW], out[11 * 2 * ROW];
	const struct quire_segment segment = {.request = 1, .span = 11, .at = 0};

	fill(k, 11, 0);
	fill(v, 11, 1000);
	for (int32_t first = 0; first <= 11; first++) {
		int32_t count = 11 - first;
		const struct quire_work work[] = {
			{.kind = QUIRE_WORK_WRITE,
		         .write = {.dtype = QUIRE_F32, .k = k, .v = v}},
			{.kind = QUIRE_WORK_READ,
		         .read = {.first = first, .count = count, .out = out}}};
		const struct quire_step step = {.segments = &segment,
		                                .num_segments = 1,
		                                .work = work,
		                                .num_work = 2};

		fixture_start(&f, 8, 4);
		memset(out, 0xff, sizeof(out));
		ck_assert_int_eq(open_now(&f, 1), QUIRE_OK);
		ck_assert_int_eq(submit_now(&f, &step).refusal.status, QUIRE_OK);
		for (int32_t i = 0; i < count * 2 * ROW; i++) {
			int32_t token = first + i / (2 * ROW), kv = i / ROW % 2;

			ck_assert_float_eq(out[i],
			                   (float)(1000 * kv + 10 * token + i % ROW));
		}
		for (int32_t i = count * 2 * ROW; i < 11 * 2 * ROW; i++)
			ck_assert(isnan(out[i])); /* 0xff..: nothing behind was written */
		fixture_end(&f);
	}
}
END_TEST

START_TEST(a_built_in_page_copy_moves_every_layer_of_one_page)
{
	struct fixture f;
	float k[4 * ROW], v[4 * ROW], out[4 * 2 * ROW];
	const struct quire_segment segments[] = {{.request = 1, .span = 4, .at = 0},
	                                         {.request = 2, .span = 9, .at = 0}};
	const struct quire_work work[] = {
		{.kind = QUIRE_WORK_COPY,
	         .copy = {.source_segment = 0,
	                  .source_page = 0,
	                  .target_segment = 1,
	                  .target_page = 2}},
		{.kind = QUIRE_WORK_READ,
	         .layer = 1,
	         .read = {.segment = 1, .first = 8, .count = 1, .out = out}}};
	struct quire_step step = {.segments = segments, .num_segments = 1};
	struct quire_work write[] = {{.kind = QUIRE_WORK_WRITE,
	                              .layer = 0,
	                              .write = {.dtype = QUIRE_F32, .k = k, .v = v}},
	                             {.kind = QUIRE_WORK_WRITE,
	                              .layer = 1,
	                              .write = {.dtype = QUIRE_F32, .k = v, .v = k}}};
	struct quire_segment again[2];

	fixture_start(&f, 8, 4);
	fill(k, 4, 100);
	fill(v, 4, 500);
	ck_assert_int_eq(open_now(&f, 1), QUIRE_OK);
	ck_assert_int_eq(open_now(&f, 2), QUIRE_OK);
	step.work = write;
	step.num_work = 2;
	ck_assert_int_eq(submit_now(&f, &step).refusal.status, QUIRE_OK); /* page 0 */
	memcpy(again, segments, sizeof(again));
	again[0].span = 0;
	again[0].at = 4;
	step.segments = again;
	step.num_segments = 2;
	step.work = work;
	ck_assert_int_eq(submit_now(&f, &step).refusal.status,
	                 QUIRE_OK); /* pages 1, 2, 3 */
	for (int32_t token = 0; token < 4; token++) {
		ck_assert_float_eq(*slot(&f, 0, 3, 0, token), (float)(100 + 10 * token));
		ck_assert_float_eq(*slot(&f, 0, 3, 1, token), (float)(500 + 10 * token));
		ck_assert_float_eq(*slot(&f, 1, 3, 0, token), (float)(500 + 10 * token));
	}
	ck_assert_float_eq(out[0], 500); /* the read came after the copy */
	fixture_end(&f);
}
END_TEST

START_TEST(built_in_work_outside_its_streams_is_invalid_and_named)
{
	struct fixture f;
	float rows[4 * ROW];
	const struct quire_segment segment = {.request = 1, .span = 4, .at = 0};
	struct quire_work bad[] = {
		{.kind = QUIRE_WORK_WRITE, .layer = 2, .write = {.k = rows, .v = rows}},
		{.kind = QUIRE_WORK_WRITE, .write = {.table = 1, .k = rows, .v = rows}},
		{.kind = QUIRE_WORK_WRITE, .write = {.dtype = 17, .k = rows, .v = rows}},
		{.kind = QUIRE_WORK_WRITE,
	         .write = {.dtype = QUIRE_FP8_E4M3, .k = rows, .v = rows}},
		{.kind = QUIRE_WORK_WRITE, .write = {.k = rows}},
		{.kind = QUIRE_WORK_READ, .layer = -1, .read = {.count = 1, .out = rows}},
		{.kind = QUIRE_WORK_READ,
	         .read = {.segment = 1, .count = 1, .out = rows}},
		{.kind = QUIRE_WORK_READ, .read = {.first = 3, .count = 2, .out = rows}},
		{.kind = QUIRE_WORK_READ, .read = {.first = -1, .count = 2, .out = rows}},
		{.kind = QUIRE_WORK_READ, .read = {.count = 1}},
		{.kind = QUIRE_WORK_READ,
	         .read = {.first = INT32_MAX, .count = INT32_MAX, .out = rows}},
		{.kind = QUIRE_WORK_COPY, .copy = {.source_page = 1}},
		{.kind = QUIRE_WORK_COPY, .copy = {.target_page = 1}},
		{.kind = QUIRE_WORK_COPY, .copy = {.target_segment = -1}},
		{.kind = (enum quire_work_kind)9},
	};
	struct quire_step step = {.segments = &segment, .num_segments = 1, .num_work = 2};
	struct quire_work work[2] = {
		{.kind = QUIRE_WORK_READ, .read = {.first = 3, .count = 1, .out = rows}}};

	fixture_start(&f, 8, 4);
	ck_assert_int_eq(open_now(&f, 1), QUIRE_OK);
	step.work = work;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct quire_outcome outcome;

		work[1] = bad[i];
		outcome = submit_now(&f, &step);
		ck_assert_int_eq(outcome.refusal.status, QUIRE_INVALID);
		ck_assert_int_eq(outcome.refusal.index, 1);
	}
	ck_assert_int_eq(stats_of(&f).pages_taken, 0);
	step.num_work = 1;
	ck_assert_int_eq(submit_now(&f, &step).refusal.status, QUIRE_OK);
	fixture_end(&f);
}
END_TEST

/* Two layers of 8 pages of 4 latents of 2 elements. */
START_TEST(under_mla_a_write_has_no_v_and_a_read_half_the_rows)
{
	struct fixture f;
	const struct quire_shape shape = {QUIRE_MLA, QUIRE_F32, 2, 8, 4, 1, 2};
	float rows[] = {1, 2, 3, 4, 5, 6};
	float out[6] = {0};
	const struct quire_segment segment = {.request = 1, .span = 3, .at = 0};
	struct quire_work work[] = {
		{.kind = QUIRE_WORK_WRITE, .layer = 1, .write = {.k = rows, .v = rows}},
		{.kind = QUIRE_WORK_READ, .layer = 1, .read = {.count = 3, .out = out}},
	};
	struct quire_step step = {
		.segments = &segment, .num_segments = 1, .work = work, .num_work = 2};

	fixture_begin(&f, "cpu:inline", 8, 4);
	quire_cache_destroy(f.cache);
	ck_assert_int_eq(quire_cache_create(f.device, &shape, &f.cache, NULL), QUIRE_OK);
	f.config.cache = f.cache;
	fixture_create(&f);
	ck_assert_int_eq(open_now(&f, 1), QUIRE_OK);
	ck_assert_int_eq(submit_now(&f, &step).refusal.status, QUIRE_INVALID);
	work[0].write.v = NULL;
	ck_assert_int_eq(submit_now(&f, &step).refusal.status, QUIRE_OK);
	ck_assert_mem_eq(out, rows, sizeof(rows));
	fixture_end(&f);
}
END_TEST

/* ------------------------------------------------------------------ tables */

static int32_t seen_rows, seen_tokens, seen_last[4];
static int64_t seen_request[4];

static enum quire_status look(void *argument, struct quire_plan *plan)
{
	const struct quire_table *table = &plan->tables[0];

	(void)argument;
	seen_rows = table->bucket_rows;
	seen_tokens = table->bucket_tokens;
	for (int32_t i = 0; i < table->bucket_rows && i < 4; i++) {
		seen_last[i] = table->kv_last_page_len[i];
		seen_request[i] = table->row_request[i];
	}
	for (int32_t i = table->tokens; i < table->bucket_tokens; i++) {
		ck_assert_int_eq(table->slot_page[i], 0);
		ck_assert_int_eq(table->slot_offset[i], 0);
	}
	return QUIRE_OK;
}

/* Padding goes to the sink: a write over all padded tokens leaves every other page
 * alone. */
static enum quire_status write_all_tokens(void *argument, const struct quire_plan *plan,
                                          struct quire_dstream *compute)
{
	struct fixture *f = argument;
	static float rows[64 * ROW];
	const struct quire_table *table = &plan->tables[0];
	const struct quire_slots slots = {
		.page = quire_plan_device(plan, table->slot_page),
		.offset = quire_plan_device(plan, table->slot_offset),
		.n = table->bucket_tokens};

	fill(rows, table->bucket_tokens, 1);
	return quire_cache_write_tokens(f->cache, compute, 0, &slots, rows, rows,
	                                QUIRE_F32, NULL, NULL);
}

START_TEST(padding_rows_write_to_the_sink_and_nowhere_else)
{
	struct fixture f;
	const struct quire_segment segments[] = {{.request = 1, .span = 1, .at = 0},
	                                         {.request = 2, .span = 2, .at = 0}};
	struct quire_step step = {.segments = segments,
	                          .num_segments = 2,
	                          .bucket_rows = 4,
	                          .bucket_tokens = 60,
	                          .run = write_all_tokens,
	                          .run_argument = &f};
	struct quire_refusal refusal;

	fixture_begin(&f, "cpu:inline", 8, 4);
	f.config.sink = true;
	f.config.on_plan = look;
	fixture_create(&f);
	ck_assert_int_eq(open_now(&f, 1), QUIRE_OK);
	ck_assert_int_eq(open_now(&f, 2), QUIRE_OK);
	ck_assert_int_eq(submit_now(&f, &step).refusal.status, QUIRE_OK);
	ck_assert_int_eq(seen_rows, 4);
	ck_assert_int_eq(seen_tokens, 60);
	ck_assert_int_eq(seen_last[0], 1);
	ck_assert_int_eq(seen_last[1], 2);
	ck_assert_int_eq(seen_last[2], 4); /* as an empty row */
	ck_assert_int_eq(seen_request[1], 2);
	ck_assert_int_eq(seen_request[3], -1);
	ck_assert_float_eq(*slot(&f, 0, 1, 0, 0),
	                   1); /* the live tokens are where they belong */
	ck_assert_float_eq(*slot(&f, 0, 2, 0, 1), 21);
	for (int64_t page = 0; page < 8; page++)
		for (int64_t token = 0; token < 4; token++) {
			bool live = (page == 1 && token == 0) || (page == 2 && token < 2);

			ck_assert(isfinite(*slot(&f, 0, page, 0, token)));
			if (!live && !(page == 0 && token == 0))
				ck_assert_float_eq(*slot(&f, 0, page, 0, token), 0);
		}
	step.bucket_tokens = 2; /* less than the three that the step would add */
	ck_assert_int_eq(reset_now(&f, 1, NULL, false), QUIRE_OK);
	ck_assert_int_eq(reset_now(&f, 2, NULL, false), QUIRE_OK);
	refusal = submit_now(&f, &step).refusal;
	ck_assert_int_eq(refusal.status, QUIRE_INVALID);
	ck_assert_int_eq(refusal.got, 2);
	ck_assert_int_eq(refusal.expected, 3);
	fixture_end(&f);
}
END_TEST

START_TEST(tokens_that_are_not_committed_do_not_count)
{
	struct fixture f;
	const struct quire_segment segment = {.request = 1, .span = 6, .at = 3};
	struct quire_step step = {
		.segments = &segment, .num_segments = 1, .flags = QUIRE_STEP_NO_COMMIT};

	fixture_start(&f, 8, 4);
	ck_assert_int_eq(open_now(&f, 1), QUIRE_OK);
	ck_assert_int_eq(extend_now(&f, 1, NULL, 3, 0).pages_taken, 1);
	ck_assert_int_eq(submit_now(&f, &step).pages_taken, 2);
	ck_assert_int_eq(snapshot_of(&f, 1, NULL).length, 3);
	ck_assert_int_eq(snapshot_of(&f, 1, NULL).num_pages, 3);
	ck_assert_uint_eq(snapshot_of(&f, 1, NULL).generation, 2);
	step.flags = 0;
	ck_assert_int_eq(submit_now(&f, &step).pages_taken, 0); /* the same slots again */
	ck_assert_int_eq(snapshot_of(&f, 1, NULL).length, 9);
	fixture_end(&f);
}
END_TEST

/* ------------------------------------------------------------------ callbacks */

static enum quire_status stamp_user_bytes(void *argument, struct quire_plan *plan)
{
	(void)argument;
	ck_assert_int_eq(plan->user_bytes, 24);
	memset(plan->user, (int)plan->step, 24);
	return QUIRE_OK;
}

static enum quire_status read_user_bytes(void *argument, const struct quire_plan *plan,
                                         struct quire_dstream *compute)
{
	const struct quire_range range = {.target = argument,
	                                  .source = quire_plan_device(plan, plan->user),
	                                  .bytes = 24};

	return quire_dstream_copy(compute, &range, 1);
}

START_TEST(user_bytes_travel_with_the_tables)
{
	struct fixture f;
	unsigned char got[24] = {0};
	const struct quire_segment segment = {
		.request = 1, .span = 1, .at = QUIRE_AT_ANY};
	const struct quire_step step = {.segments = &segment,
	                                .num_segments = 1,
	                                .run = read_user_bytes,
	                                .run_argument = got};

	fixture_begin(&f, "cpu:inline", 8, 4);
	f.config.user_bytes = 24;
	f.config.on_plan = stamp_user_bytes;
	fixture_create(&f);
	ck_assert_int_eq(open_now(&f, 1), QUIRE_OK);
	for (int32_t i = 1; i <= 5; i++) {
		ck_assert_int_eq(submit_now(&f, &step).refusal.status, QUIRE_OK);
		ck_assert_int_eq(got[0], i);
		ck_assert_int_eq(got[23], i);
	}
	fixture_end(&f);
}
END_TEST

static enum quire_status poll_planner(void *argument, struct quire_plan *plan)
{
	struct fixture *f = argument;

	(void)plan;
	ck_assert(!quire_planner_poll(f->runtime));
	return QUIRE_OK;
}

static enum quire_status poll_executor(void *argument, const struct quire_plan *plan,
                                       struct quire_dstream *compute)
{
	struct fixture *f = argument;

	(void)plan;
	(void)compute;
	ck_assert(!quire_executor_poll(f->runtime));
	return QUIRE_OK;
}

START_TEST(a_poll_inside_a_poll_does_nothing)
{
	struct fixture f;
	const struct quire_segment segment = {
		.request = 1, .span = 1, .at = QUIRE_AT_ANY};
	const struct quire_step step = {.segments = &segment,
	                                .num_segments = 1,
	                                .run = poll_executor,
	                                .run_argument = &f};
	uint64_t ticket = 0;

	fixture_begin(&f, "cpu:inline", 8, 4);
	f.config.depth = 3;
	f.config.on_plan = poll_planner;
	f.config.on_plan_argument = &f;
	fixture_create(&f);
	ck_assert_int_eq(open_now(&f, 1), QUIRE_OK);
	for (int i = 0; i < 3; i++) /* all planned before the first is issued */
		ticket = submit(&f, &step);
	while (quire_planner_poll(f.runtime))
		continue;
	ck_assert_int_eq(outcome_of(&f, ticket).refusal.status, QUIRE_OK);
	ck_assert_uint_eq(stats_of(&f).steps_retired, 3);
	fixture_end(&f);
}
END_TEST

static enum quire_status refuse_second_plan(void *argument, struct quire_plan *plan)
{
	(void)argument;
	return plan->step < 2 ? QUIRE_OK : QUIRE_INVALID;
}

START_TEST(a_failing_on_plan_takes_its_step_back_and_fails_the_runtime)
{
	struct fixture f;
	struct quire_refusal refusal;
	uint64_t ticket;

	fixture_begin(&f, "cpu:inline", 8, 4);
	f.config.on_plan = refuse_second_plan;
	fixture_create(&f);
	ck_assert_int_eq(open_now(&f, 1), QUIRE_OK);
	ck_assert_int_eq(extend_now(&f, 1, NULL, 5, 0).refusal.status, QUIRE_OK);
	ck_assert_int_eq(extend_now(&f, 1, NULL, 9, 5).refusal.status, QUIRE_CALLBACK);
	ck_assert_int_eq(quire_runtime_failure(f.runtime, &refusal), QUIRE_CALLBACK);
	ck_assert_str_eq(refusal.what, "on_plan");
	ck_assert_int_eq(quire_runtime_open(f.runtime, 2, &ticket), QUIRE_CALLBACK);
	ck_assert_int_eq(snapshot_of(&f, 1, NULL).length, 5);
	ck_assert_int_eq(snapshot_of(&f, 1, NULL).num_pages, 2);
	ck_assert_uint_eq(snapshot_of(&f, 1, NULL).generation, 1);
	ck_assert_int_eq(stats_of(&f).pages_free, 6);
	fixture_end(&f);
}
END_TEST

static enum quire_status look_at_blocks(void *argument, struct quire_plan *plan)
{
	memcpy(argument, plan->tables[0].block_table, 6 * sizeof(int32_t));
	return QUIRE_OK;
}

START_TEST(a_block_table_lists_each_rows_pages)
{
	struct fixture f;
	struct quire_outcome outcome;
	int32_t blocks[6] = {-1, -1, -1, -1, -1, -1};
	const int32_t expected[6] = {0, 1, 0, 2, 3, 4};
	const struct quire_segment segments[] = {{.request = 1, .span = 1, .at = 7},
	                                         {.request = 2, .span = 9, .at = 0}};
	const struct quire_step step = {.segments = segments, .num_segments = 2};

	fixture_begin(&f, "cpu:inline", 8, 4);
	f.config.block_width = 3;
	f.config.on_plan = look_at_blocks;
	f.config.on_plan_argument = blocks;
	fixture_create(&f);
	ck_assert_int_eq(open_now(&f, 1), QUIRE_OK);
	ck_assert_int_eq(open_now(&f, 2), QUIRE_OK);
	ck_assert_int_eq(extend_now(&f, 1, NULL, 7, 0).refusal.status,
	                 QUIRE_OK); /* pages 0, 1 */
	ck_assert_int_eq(submit_now(&f, &step).pages_taken, 3);
	for (int32_t i = 0; i < 6; i++)
		ck_assert_int_eq(blocks[i], expected[i]);
	ck_assert_int_eq(close_now(&f, 1), QUIRE_OK);
	ck_assert_int_eq(close_now(&f, 2), QUIRE_OK);
	ck_assert_int_eq(open_now(&f, 1), QUIRE_OK);
	ck_assert_int_eq(extend_now(&f, 1, NULL, 12, 0).refusal.status, QUIRE_OK);
	outcome = extend_now(&f, 1, NULL, 1, 12);
	ck_assert_int_eq(outcome.refusal.status, QUIRE_LIMIT);
	ck_assert_int_eq(outcome.refusal.got, 4);
	ck_assert_int_eq(outcome.refusal.expected, 3);
	fixture_end(&f);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("steps");
	TCase *work = tcase_create("work"), *tables = tcase_create("tables");
	TCase *callbacks = tcase_create("callbacks");

	tcase_add_test(work, built_in_writes_land_in_the_slots_of_the_new_tokens);
	tcase_add_test(work, built_in_reads_gather_any_part_of_a_context);
	tcase_add_test(work, a_built_in_page_copy_moves_every_layer_of_one_page);
	tcase_add_test(work, built_in_work_outside_its_streams_is_invalid_and_named);
	tcase_add_test(work, under_mla_a_write_has_no_v_and_a_read_half_the_rows);
	tcase_add_test(tables, padding_rows_write_to_the_sink_and_nowhere_else);
	tcase_add_test(tables, tokens_that_are_not_committed_do_not_count);
	tcase_add_test(tables, a_block_table_lists_each_rows_pages);
	tcase_add_test(callbacks, a_poll_inside_a_poll_does_nothing);
	tcase_add_test(callbacks, user_bytes_travel_with_the_tables);
	tcase_add_test(callbacks,
	               a_failing_on_plan_takes_its_step_back_and_fails_the_runtime);
	suite_add_tcase(s, work);
	suite_add_tcase(s, tables);
	suite_add_tcase(s, callbacks);
	return s;
}

int main(void)
{
	return run_suite(suite());
}
