/* SPDX-License-Identifier: MIT */
/* What the cache refuses, on every device, layout and dtype: at the call, or when the
 * operation runs; named, and before a byte moves. */
#include "config.h"

#include <quire/kernels/cache.h>

#include "tests/kernels/cache_table.h"

/* A fixture for what is refused, and operands that are right. */
struct trial {
	struct fixture f;
	struct quire_slots good;
	char *row;
	char *v; /* NULL under MLA */
	char *out;
	size_t out_bytes;
};

#define TRIAL_PAGES  7
#define TRIAL_TOKENS 4
#define TRIAL_SLOTS  24

static void trial_begin(struct trial *t, int entry)
{
	struct quire_shape shape = shape_of(entry, 2, TRIAL_PAGES, TRIAL_TOKENS, 2, 3);
	const int32_t zero = 0;

	fixture_begin(&t->f, device_of(entry), &shape);
	t->good = (struct quire_slots){fixture_list(&t->f, &zero, 1),
	                               fixture_list(&t->f, &zero, 1), 0, 1};
	t->out_bytes = (size_t)t->f.nbytes;
	t->row = fixture_pinned(&t->f, TRIAL_SLOTS * 6 * sizeof(float));
	t->v = shape.layout == QUIRE_MLA ? NULL : t->row;
	t->out = fixture_pinned(&t->f, t->out_bytes);
	memset(t->out, 0x22, t->out_bytes);
}

static bool checks_indices(const char *device)
{
	return is_cpu(device) || strstr(device, "+checks") != NULL;
}

static enum quire_status write_good(struct trial *t, struct quire_refusal *refusal)
{
	return quire_cache_write_tokens(t->f.cache, t->f.dstream, 0, &t->good, t->row,
	                                t->v, QUIRE_F32, t->out, refusal);
}

static void expect_refusal(const struct quire_refusal *refusal, const char *what,
                           int64_t index, int64_t got, int64_t bound)
{
	ck_assert_int_eq(refusal->status, QUIRE_INVALID);
	ck_assert_str_eq(refusal->what, what);
	ck_assert_int_eq(refusal->index, index);
	ck_assert_int_eq(refusal->got, got);
	ck_assert_int_eq(refusal->expected, bound);
}

static void expect_untouched(struct trial *t)
{
	fixture_fetch(&t->f);
	ck_assert_mem_eq(t->f.got, t->f.expected.storage, (size_t)t->f.nbytes);
	for (size_t i = 0; i < t->out_bytes; i++)
		if (t->out[i] != 0x22)
			ck_abort_msg("byte %zu of the result was written", i);
}

/* The operation just queued fails its stream, which had not failed before: the call may
 * know already, and must on an inline device.  Nothing moves, what is queued behind it
 * does nothing, and the failure stays to be asked for.  A new stream takes its place. */
static struct quire_refusal expect_failure(struct trial *t, enum quire_status at_call)
{
	bool at_once = is_inline(quire_device_name(t->f.device));
	struct quire_refusal refusal = {0};
	struct quire_refusal again = {0};
	enum quire_status behind = write_good(t, NULL);

	ck_assert(at_call == QUIRE_INVALID || (at_call == QUIRE_OK && !at_once));
	ck_assert(behind == QUIRE_INVALID || (behind == QUIRE_OK && !at_once));
	ck_assert_int_eq(quire_dstream_synchronize(t->f.dstream, &refusal),
	                 QUIRE_INVALID);
	ck_assert_int_eq(write_good(t, &again), QUIRE_INVALID);
	expect_refusal(&again, refusal.what, refusal.index, refusal.got,
	               refusal.expected);
	memset(&again, 0, sizeof(again));
	ck_assert_int_eq(quire_dstream_synchronize(t->f.dstream, &again), QUIRE_INVALID);
	expect_refusal(&again, refusal.what, refusal.index, refusal.got,
	               refusal.expected);
	expect_untouched(t);
	quire_dstream_destroy(t->f.dstream);
	ck_assert_int_eq(quire_dstream_create(t->f.device, "test", &t->f.dstream),
	                 QUIRE_OK);
	return refusal;
}

static void expect_bad_slots(struct trial *t, const struct quire_slots *slots,
                             const char *what, int64_t index, int64_t got, int64_t bound)
{
	enum quire_dtype own = t->f.expected.shape.dtype;
	struct quire_refusal refusal;

	refusal = expect_failure(t, quire_cache_write_tokens(t->f.cache, t->f.dstream, 1,
	                                                     slots, t->row, t->v, own,
	                                                     NULL, NULL));
	expect_refusal(&refusal, what, index, got, bound);
	refusal = expect_failure(t, quire_cache_write_tokens(t->f.cache, t->f.dstream, 1,
	                                                     slots, t->row, t->v,
	                                                     QUIRE_F32, t->out, NULL));
	expect_refusal(&refusal, what, index, got, bound);
	refusal = expect_failure(t, quire_cache_read_tokens(t->f.cache, t->f.dstream, 1,
	                                                    slots, t->out, NULL));
	expect_refusal(&refusal, what, index, got, bound);
}

START_TEST(bad_pages_and_offsets_are_named_before_anything_moves)
{
	enum { N = 6 };
	const int32_t bad_pages[] = {-1, TRIAL_PAGES, INT32_MIN, INT32_MAX};
	const int32_t bad_offsets[] = {-1, TRIAL_TOKENS, INT32_MIN, INT32_MAX};
	const int32_t good_pages[N] = {6, 6, 0, 3, 4, 5};
	const int32_t good_offsets[N] = {0, 1, 3, 2, 0, 3};
	struct quire_slots slots, stream;
	int32_t *page, *offset;
	struct trial t;

	if (!checks_indices(device_of(_i)))
		return;
	trial_begin(&t, _i);
	page = fixture_list(&t.f, good_pages, N);
	offset = fixture_list(&t.f, good_offsets, N);
	slots = (struct quire_slots){page, offset, 0, N};
	/* From the last token of the first page to the first of the last. */
	stream = (struct quire_slots){page, NULL, 3, TRIAL_TOKENS * N - 6};
	for (int at = 0; at < N; at++) {
		for (int b = 0; b < 4; b++) {
			int64_t page_bound = b % 2 ? TRIAL_PAGES - 1 : 0;
			int64_t offset_bound = b % 2 ? TRIAL_TOKENS - 1 : 0;

			page[at] = bad_pages[b];
			expect_bad_slots(&t, &slots, "page", at, page[at], page_bound);
			expect_bad_slots(&t, &stream, "page", at, page[at], page_bound);
			page[at] = good_pages[at];
			offset[at] = bad_offsets[b];
			expect_bad_slots(&t, &slots, "offset", at, offset[at],
			                 offset_bound);
			offset[at] = good_offsets[at];
		}
	}
	fixture_end(&t.f);
}
END_TEST

START_TEST(pages_beside_the_tokens_of_a_stream_are_not_looked_at)
{
	const int32_t pages[] = {-1, 2, 99};
	struct quire_slots slots = {.first = TRIAL_TOKENS, .n = TRIAL_TOKENS};
	struct quire_slots alone = {.n = TRIAL_TOKENS};
	struct trial t;

	trial_begin(&t, _i);
	slots.page = fixture_list(&t.f, pages, 3);
	alone.page = slots.page + 1;
	ck_assert_int_eq(quire_cache_write_tokens(t.f.cache, t.f.dstream, 0, &slots,
	                                          t.row, t.v, QUIRE_F32, NULL, NULL),
	                 QUIRE_OK);
	naive_write(&t.f.expected, 0, &alone, t.row, t.v, QUIRE_F32);
	fixture_expect(&t.f, "write", 0);
	fixture_end(&t.f);
}
END_TEST

#define TRIAL_PAIRS 4

/* Source, target, end. */
static struct quire_refusal expect_bad_pairs(struct trial *t, int32_t *lists[3],
                                             bool with_end)
{
	struct fixture *f = &t->f;
	enum quire_status status =
		with_end ? quire_cache_copy_slots(f->cache, f->dstream, lists[0],
	                                          lists[1], lists[2], TRIAL_PAIRS, NULL)
			 : quire_cache_copy_pages(f->cache, f->dstream, lists[0],
	                                          lists[1], TRIAL_PAIRS, NULL);

	return expect_failure(t, status);
}

START_TEST(bad_sources_targets_and_ends_are_named_before_anything_moves)
{
	static const char *const names[] = {"source", "target", "end"};
	const int32_t good[3][TRIAL_PAIRS] = {{0, 1, 2, 5}, {4, 5, 0, 1}, {4, 0, 1, 4}};
	int32_t *lists[3];
	struct trial t;

	if (!checks_indices(device_of(_i)))
		return;
	trial_begin(&t, _i);
	for (int l = 0; l < 3; l++)
		lists[l] = fixture_list(&t.f, good[l], TRIAL_PAIRS);
	for (int trial = 0; trial < 3 * TRIAL_PAIRS * 4; trial++) {
		int l = trial % 3;
		int at = trial / 3 % TRIAL_PAIRS;
		int32_t last = l == 2 ? TRIAL_TOKENS : TRIAL_PAGES - 1;
		const int32_t bad[] = {-1, last + 1, INT32_MIN, INT32_MAX};
		int b = trial / 3 / TRIAL_PAIRS;
		struct quire_refusal refusal;

		lists[l][at] = bad[b];
		refusal = expect_bad_pairs(&t, lists, true);
		expect_refusal(&refusal, names[l], at, bad[b], b % 2 ? last : 0);
		if (l < 2) {
			refusal = expect_bad_pairs(&t, lists, false);
			expect_refusal(&refusal, names[l], at, bad[b], b % 2 ? last : 0);
		}
		lists[l][at] = good[l][at];
	}
	fixture_end(&t.f);
}
END_TEST

START_TEST(a_target_named_twice_is_refused_before_anything_moves)
{
	const int32_t good[3][TRIAL_PAIRS] = {{0, 1, 2, 5}, {4, 5, 0, 1}, {4, 0, 1, 4}};
	int32_t *lists[3];
	struct trial t;

	if (!checks_indices(device_of(_i)))
		return;
	trial_begin(&t, _i);
	for (int l = 0; l < 3; l++)
		lists[l] = fixture_list(&t.f, good[l], TRIAL_PAIRS);
	for (int first = 0; first < TRIAL_PAIRS; first++) {
		for (int second = first + 1; second < TRIAL_PAIRS; second++) {
			struct quire_refusal refusal;

			lists[1][second] = lists[1][first];
			for (int with_end = 0; with_end < 2; with_end++) {
				refusal = expect_bad_pairs(&t, lists, with_end == 1);
				ck_assert_str_eq(refusal.what, "target named twice");
				ck_assert_int_eq(refusal.page, good[1][first]);
				/* Many threads look at once elsewhere. */
				ck_assert(refusal.index == second ||
				          (refusal.index == first &&
				           !is_cpu(device_of(_i))));
			}
			lists[1][second] = good[1][second];
		}
	}
	fixture_end(&t.f);
}
END_TEST

/* Refused at the call, by a write and, where it may be said of both, by a read. */
static void expect_slots_refused(struct trial *t, int64_t layer, struct quire_slots slots,
                                 const char *what, int64_t got, int64_t bound)
{
	struct quire_refusal refusal = {0};

	ck_assert_int_eq(quire_cache_write_tokens(t->f.cache, t->f.dstream, layer, &slots,
	                                          t->row, t->v, QUIRE_F32, t->out,
	                                          &refusal),
	                 QUIRE_INVALID);
	expect_refusal(&refusal, what, -1, got, bound);
	memset(&refusal, 0, sizeof(refusal));
	ck_assert_int_eq(quire_cache_read_tokens(t->f.cache, t->f.dstream, layer, &slots,
	                                         t->out, &refusal),
	                 QUIRE_INVALID);
	expect_refusal(&refusal, what, -1, got, bound);
	ck_assert_int_eq(quire_cache_read_tokens(t->f.cache, t->f.dstream, layer, &slots,
	                                         t->out, NULL),
	                 QUIRE_INVALID);
}

static void expect_rows_refused(struct trial *t, const void *k, const void *v,
                                enum quire_dtype dtype, const char *what)
{
	struct quire_refusal refusal = {0};

	ck_assert_int_eq(quire_cache_write_tokens(t->f.cache, t->f.dstream, 0, &t->good,
	                                          k, v, dtype, t->out, &refusal),
	                 QUIRE_INVALID);
	ck_assert_int_eq(refusal.status, QUIRE_INVALID);
	ck_assert_msg(strncmp(refusal.what, what, strlen(what)) == 0, "%s: %s", what,
	              refusal.what);
}

static void expect_pairs_refused(struct trial *t, const int32_t *source,
                                 const int32_t *target, int64_t n, const char *what,
                                 int64_t bound)
{
	struct quire_refusal refusal = {0};

	ck_assert_int_eq(quire_cache_copy_pages(t->f.cache, t->f.dstream, source, target,
	                                        n, &refusal),
	                 QUIRE_INVALID);
	expect_refusal(&refusal, what, -1, source && target ? n : 0, bound);
	memset(&refusal, 0, sizeof(refusal));
	ck_assert_int_eq(quire_cache_copy_slots(t->f.cache, t->f.dstream, source, target,
	                                        t->good.page, n, &refusal),
	                 QUIRE_INVALID);
	expect_refusal(&refusal, what, -1, source && target ? n : 0, bound);
	ck_assert_int_eq(
		quire_cache_copy_pages(t->f.cache, t->f.dstream, source, target, n, NULL),
		QUIRE_INVALID);
}

static void expect_still_good(struct trial *t)
{
	expect_untouched(t);
	ck_assert_int_eq(write_good(t, NULL), QUIRE_OK);
	naive_write(&t->f.expected, 0, &t->good, t->row, t->v, QUIRE_F32);
	fixture_expect(&t->f, "write", 0);
}

START_TEST(wrong_sizes_are_refused_at_the_call_and_the_stream_goes_on)
{
	const int32_t *page;
	int64_t n_max;
	struct trial t;

	trial_begin(&t, _i);
	page = t.good.page;
	n_max = INT64_MAX / 8 / naive_row(&t.f.expected.shape);
	expect_slots_refused(&t, -1, t.good, "layer", -1, 0);
	expect_slots_refused(&t, INT64_MIN, t.good, "layer", INT64_MIN, 0);
	expect_slots_refused(&t, 2, t.good, "layer", 2, 1);
	expect_slots_refused(&t, 2, (struct quire_slots){.n = 0}, "layer", 2, 1);
	expect_slots_refused(&t, 0, (struct quire_slots){page, NULL, 0, -1}, "n", -1, 0);
	expect_slots_refused(&t, 0, (struct quire_slots){page, page, 0, n_max + 1}, "n",
	                     n_max + 1, n_max);
	expect_slots_refused(&t, 0, (struct quire_slots){page, NULL, -1, 1}, "first", -1,
	                     0);
	expect_slots_refused(&t, 0, (struct quire_slots){page, NULL, INT64_MAX, 1},
	                     "first", INT64_MAX, INT32_MAX);
	expect_slots_refused(&t, 0, (struct quire_slots){page, NULL, 5, INT32_MAX - 4},
	                     "n", INT32_MAX - 4, INT32_MAX - 5);
	expect_slots_refused(&t, 0, (struct quire_slots){NULL, NULL, 0, 1},
	                     "page is NULL", 0, 0);
	expect_slots_refused(&t, 0, (struct quire_slots){NULL, page, 0, 1},
	                     "page is NULL", 0, 0);
	expect_pairs_refused(&t, page, page, -1, "n", 0);
	expect_pairs_refused(&t, page, page, TRIAL_PAGES + 1, "n", TRIAL_PAGES);
	expect_pairs_refused(&t, page, page, INT64_MAX, "n", TRIAL_PAGES);
	expect_still_good(&t);
	fixture_end(&t.f);
}
END_TEST

START_TEST(missing_rows_and_lists_are_refused_at_the_call)
{
	struct quire_refusal refusal = {0};
	const int32_t *page;
	struct trial t;

	trial_begin(&t, _i);
	page = t.good.page;
	expect_rows_refused(&t, NULL, t.v, QUIRE_F32, "k is NULL");
	if (layout_of(_i) == QUIRE_MLA)
		expect_rows_refused(&t, t.row, t.row, QUIRE_F32, "v is not NULL");
	else
		expect_rows_refused(&t, t.row, NULL, QUIRE_F32, "v is NULL");
	ck_assert_int_eq(quire_cache_read_tokens(t.f.cache, t.f.dstream, 0, &t.good, NULL,
	                                         &refusal),
	                 QUIRE_INVALID);
	expect_refusal(&refusal, "out is NULL", -1, 0, 0);
	expect_pairs_refused(&t, NULL, page, 1, "source is NULL", 0);
	expect_pairs_refused(&t, page, NULL, 1, "target is NULL", 0);
	ck_assert_int_eq(quire_cache_copy_slots(t.f.cache, t.f.dstream, page, page, NULL,
	                                        1, &refusal),
	                 QUIRE_INVALID);
	expect_refusal(&refusal, "end is NULL", -1, 0, 0);
	expect_still_good(&t);
	fixture_end(&t.f);
}
END_TEST

/* f32, f16 and bf16 convert to all, every dtype to itself; no other pair does. */
START_TEST(rows_of_a_dtype_that_does_not_convert_are_refused_at_the_call)
{
	struct trial t;

	trial_begin(&t, _i);
	for (int dtype = 0; dtype <= QUIRE_DTYPE_COUNT; dtype++) {
		bool takes = dtype < QUIRE_FP8_E4M3 || dtype == (int)dtype_of(_i);

		ck_assert_int_eq(quire_cache_takes(t.f.cache, (enum quire_dtype)dtype),
		                 takes);
		if (!takes)
			expect_rows_refused(&t, t.row, t.v, (enum quire_dtype)dtype,
			                    "dtype");
	}
	expect_rows_refused(&t, t.row, t.v, (enum quire_dtype)UINT32_MAX, "dtype");
	expect_still_good(&t);
	fixture_end(&t.f);
}
END_TEST

START_TEST(streams_of_another_device_are_refused)
{
	struct quire_refusal refusal = {0};
	struct quire_device *device;
	struct trial t;

	trial_begin(&t, _i);
	quire_dstream_destroy(t.f.dstream);
	ck_assert_int_eq(quire_device_create("cpu:inline", &device, NULL), QUIRE_OK);
	ck_assert_int_eq(quire_dstream_create(device, "other", &t.f.dstream), QUIRE_OK);
	expect_rows_refused(&t, t.row, t.v, QUIRE_F32, "dstream of another device");
	ck_assert_int_eq(quire_cache_read_tokens(t.f.cache, t.f.dstream, 0, &t.good,
	                                         t.out, &refusal),
	                 QUIRE_INVALID);
	expect_refusal(&refusal, "dstream of another device", -1, 0, 0);
	expect_pairs_refused(&t, t.good.page, NULL, 1, "dstream of another device", 0);
	expect_untouched(&t);
	quire_dstream_destroy(t.f.dstream);
	t.f.dstream = NULL;
	fixture_end(&t.f);
	quire_device_destroy(device);
}
END_TEST

int main(void)
{
	const struct table_test tests[] = {
		{bad_pages_and_offsets_are_named_before_anything_moves, NUM_ENTRIES},
		{pages_beside_the_tokens_of_a_stream_are_not_looked_at, NUM_ENTRIES},
		{bad_sources_targets_and_ends_are_named_before_anything_moves,
	         NUM_ENTRIES},
		{a_target_named_twice_is_refused_before_anything_moves, NUM_ENTRIES},
		{wrong_sizes_are_refused_at_the_call_and_the_stream_goes_on, NUM_ENTRIES},
		{missing_rows_and_lists_are_refused_at_the_call, NUM_ENTRIES},
		{rows_of_a_dtype_that_does_not_convert_are_refused_at_the_call,
	         NUM_ENTRIES},
		{streams_of_another_device_are_refused, NUM_ENTRIES},
	};

	return run_table("cache_refused", tests, sizeof(tests) / sizeof(tests[0]));
}
