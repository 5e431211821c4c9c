/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <quire/kernels/cache.h>

#include "tests/kernels/naive_cache.h"
#include "tests/run_suite.h"

#include <check.h>

static const char *const names[] = {"cpu", "cpu:inline"};
#define NUM_NAMES 2

/* A cache whose bytes are all 0xff, NaN in every dtype, and what it should hold. */
struct fixture {
	struct quire_device *device;
	struct quire_dstream *dstream;
	struct quire_cache *cache;
	struct quire_shape shape;
	char *storage;
	char *expected;
	int64_t nbytes;
};

static void set_up(struct fixture *f, const char *name, const struct quire_shape *shape)
{
	f->shape = *shape;
	ck_assert_int_eq(quire_device_create(name, &f->device, NULL), QUIRE_OK);
	ck_assert_int_eq(quire_dstream_create(f->device, "test", &f->dstream), QUIRE_OK);
	ck_assert_int_eq(quire_cache_create(f->device, shape, &f->cache, NULL), QUIRE_OK);
	f->storage = quire_cache_data_ptr(f->cache);
	f->nbytes = quire_cache_nbytes(f->cache);
	f->expected = malloc((size_t)f->nbytes);
	memset(f->storage, 0xff, (size_t)f->nbytes);
	memset(f->expected, 0xff, (size_t)f->nbytes);
}

static void tear_down(struct fixture *f)
{
	quire_dstream_destroy(f->dstream);
	quire_cache_destroy(f->cache);
	quire_device_destroy(f->device);
	free(f->expected);
}

static void expect_storage(struct fixture *f, const char *when, int round)
{
	ck_assert_int_eq(quire_dstream_synchronize(f->dstream, NULL), QUIRE_OK);
	for (int64_t i = 0; i < f->nbytes; i++)
		if (f->storage[i] != f->expected[i])
			ck_abort_msg("%s, round %d: byte %ld of %ld differs", when, round,
			             (long)i, (long)f->nbytes);
}

START_TEST(storage_starts_as_zeros_and_properties_are_those_of_the_shape)
{
	struct quire_shape shape = {QUIRE_NHD, QUIRE_F16, 2, 3, 4, 5, 6};
	struct quire_device *device = NULL;
	struct quire_cache *cache = NULL;
	const char *storage;

	ck_assert_int_eq(quire_device_create(names[_i], &device, NULL), QUIRE_OK);
	ck_assert_int_eq(quire_cache_create(device, &shape, &cache, NULL), QUIRE_OK);
	storage = quire_cache_data_ptr(cache);
	ck_assert_ptr_eq(quire_cache_device(cache), device);
	ck_assert_mem_eq(quire_cache_shape(cache), &shape, sizeof(shape));
	ck_assert_int_eq(quire_cache_nbytes(cache), 2 * 3 * 2 * 4 * 5 * 6 * 2);
	ck_assert_int_eq(quire_cache_geometry(cache)->nbytes, quire_cache_nbytes(cache));
	for (int64_t i = 0; i < quire_cache_nbytes(cache); i++)
		if (storage[i] != 0)
			ck_abort_msg("byte %ld is not zero", (long)i);
	quire_cache_destroy(cache);
	quire_cache_destroy(NULL);
	quire_device_destroy(device);
}
END_TEST

START_TEST(a_cache_larger_than_memory_or_of_a_wrong_shape_is_refused)
{
	/* 2^24 pages of 2 * 1024 * 1024 bytes: 32 TiB. */
	struct quire_shape shape = {QUIRE_NHD, QUIRE_BF16, 1, 1 << 24, 1024, 8, 64};
	struct quire_refusal refusal = {0};
	struct quire_device *device = NULL;
	struct quire_cache *cache = NULL;

	ck_assert_int_eq(quire_device_create(names[_i], &device, NULL), QUIRE_OK);
	ck_assert_int_eq(quire_cache_create(device, &shape, &cache, &refusal),
	                 QUIRE_NO_MEMORY);
	ck_assert_int_eq(refusal.status, QUIRE_NO_MEMORY);
	ck_assert_int_eq(refusal.requested, INT64_C(1) << 45);
	ck_assert_ptr_nonnull(refusal.what);
	ck_assert_int_eq(quire_cache_create(device, &shape, &cache, NULL),
	                 QUIRE_NO_MEMORY);
	shape.page_size = 0;
	ck_assert_int_eq(quire_cache_create(device, &shape, &cache, &refusal),
	                 QUIRE_INVALID);
	ck_assert_str_eq(refusal.what, "page_size");
	ck_assert_ptr_null(cache);
	quire_device_destroy(device);
}
END_TEST

START_TEST(writes_and_reads_are_those_of_the_definition)
{
	for (int round = 0; round < 400; round++) {
		uint64_t seed = (uint64_t)round * 2 + (uint64_t)_i;
		struct quire_shape shape = any_shape(&seed);
		size_t rows_bytes = 12 * 16 * 3 * 64 * sizeof(float);
		char *k = malloc(rows_bytes);
		char *v = malloc(rows_bytes);
		char *out = malloc(2 * rows_bytes);
		char *read = malloc(2 * rows_bytes);
		struct any_slots write;
		struct any_slots back;
		struct fixture f;

		set_up(&f, names[_i], &shape);
		memset(out, 0x11, 2 * rows_bytes);
		memset(read, 0x11, 2 * rows_bytes);
		for (int turn = 0; turn < 3; turn++) {
			enum quire_dtype dtype = (enum quire_dtype)random_in(&seed, 0, 2);
			int64_t layer =
				random_in(&seed, 0, (int32_t)shape.num_layers - 1);

			any_slots(&seed, &shape, &write);
			any_slots(&seed, &shape, &back);
			any_bytes(&seed, k, rows_bytes);
			any_bytes(&seed, v, rows_bytes);
			ck_assert_int_eq(quire_cache_write_tokens(f.cache, f.dstream,
			                                          layer, &write.slots, k,
			                                          v, dtype, NULL),
			                 QUIRE_OK);
			ck_assert_int_eq(quire_cache_read_tokens(f.cache, f.dstream,
			                                         layer, &back.slots, out,
			                                         NULL),
			                 QUIRE_OK);
			naive_write(&shape, f.expected, layer, &write.slots, k, v, dtype);
			naive_read(&shape, f.expected, layer, &back.slots, read);
			expect_storage(&f, "write", round);
			if (memcmp(out, read, 2 * rows_bytes) != 0)
				ck_abort_msg("round %d: read differs", round);
		}
		tear_down(&f);
		free(read);
		free(out);
		free(v);
		free(k);
	}
}
END_TEST

START_TEST(rows_may_begin_at_any_byte)
{
	struct quire_shape shape = {QUIRE_NHD, QUIRE_BF16, 1, 2, 4, 3, 23};
	static char k[4 * 3 * 23 * 4 + 1];
	static char v[4 * 3 * 23 * 4 + 1];
	int32_t pages[] = {1, 0};
	struct quire_slots slots = {.page = pages, .first = 2, .n = 4};
	uint64_t seed = 3;
	struct fixture f;

	set_up(&f, names[_i], &shape);
	any_bytes(&seed, k, sizeof(k));
	any_bytes(&seed, v, sizeof(v));
	for (int dtype = 0; dtype < QUIRE_DTYPE_COUNT; dtype++) {
		ck_assert_int_eq(quire_cache_write_tokens(f.cache, f.dstream, 0, &slots,
		                                          k + 1, v + 1,
		                                          (enum quire_dtype)dtype, NULL),
		                 QUIRE_OK);
		naive_write(&shape, f.expected, 0, &slots, k + 1, v + 1,
		            (enum quire_dtype)dtype);
		expect_storage(&f, "write", dtype);
	}
	tear_down(&f);
}
END_TEST

static void expect_copy(struct fixture *f, const int32_t *source, const int32_t *target,
                        int64_t n, int round)
{
	ck_assert_int_eq(
		quire_cache_copy_pages(f->cache, f->dstream, source, target, n, NULL),
		QUIRE_OK);
	naive_copy(&f->shape, f->expected, f->nbytes, source, target, n);
	expect_storage(f, "copy", round);
}

START_TEST(every_copy_among_five_pages_reads_all_sources_first)
{
	enum { PAGES = 5, NONE = PAGES };
	struct quire_shape shape = {QUIRE_NHD, QUIRE_F16, 2, PAGES, 1, 1, 1};
	uint64_t seed = 5;
	struct fixture f;
	int all = 1;

	set_up(&f, names[_i], &shape);
	for (int page = 0; page < PAGES; page++)
		all *= PAGES + 1;
	/* Each page is no target, or that of any of the five. */
	for (int choice = 0; choice < all; choice++) {
		int32_t source[PAGES];
		int32_t target[PAGES];
		int32_t order[PAGES] = {0, 1, 2, 3, 4};
		int32_t from[PAGES];
		int n = 0;

		for (int page = 0, rest = choice; page < PAGES; page++, rest /= PAGES + 1)
			from[page] = rest % (PAGES + 1);
		random_shuffle(&seed, order, PAGES);
		for (int i = 0; i < PAGES; i++) {
			if (from[order[i]] == NONE)
				continue;
			target[n] = order[i];
			source[n++] = from[order[i]];
		}
		any_bytes(&seed, f.expected, (size_t)f.nbytes);
		memcpy(f.storage, f.expected, (size_t)f.nbytes);
		expect_copy(&f, source, target, n, choice);
	}
	tear_down(&f);
}
END_TEST

START_TEST(random_copies_of_many_pages_are_those_of_the_definition)
{
	enum { PAGES = 200 };
	struct quire_shape shape = {QUIRE_NHD, QUIRE_F32, 3, PAGES, 2, 1, 3};
	uint64_t seed = 17;
	struct fixture f;

	set_up(&f, names[_i], &shape);
	any_bytes(&seed, f.expected, (size_t)f.nbytes);
	memcpy(f.storage, f.expected, (size_t)f.nbytes);
	for (int round = 0; round < 60; round++) {
		int32_t source[PAGES];
		int32_t target[PAGES];
		int32_t n = random_in(&seed, 0, PAGES);

		for (int32_t i = 0; i < PAGES; i++)
			source[i] = target[i] = i;
		random_shuffle(&seed, target, PAGES);
		/* A permutation is all cycles, random sources are mostly chains. */
		if (round % 2 == 0)
			random_shuffle(&seed, source, PAGES);
		else
			for (int32_t i = 0; i < PAGES; i++)
				source[i] = random_in(&seed, 0, PAGES - 1);
		expect_copy(&f, source, target, round % 4 == 0 ? PAGES : n, round);
	}
	tear_down(&f);
}
END_TEST

/* The stream has failed with these details, and nothing was written. */
static void expect_failure(struct fixture *f, const char *what, int64_t index,
                           int64_t got, int64_t bound)
{
	struct quire_refusal refusal = {0};

	ck_assert_int_eq(quire_dstream_synchronize(f->dstream, &refusal), QUIRE_INVALID);
	ck_assert_int_eq(refusal.status, QUIRE_INVALID);
	ck_assert_str_eq(refusal.what, what);
	ck_assert_int_eq(refusal.index, index);
	ck_assert_int_eq(refusal.got, got);
	ck_assert_int_eq(refusal.expected, bound);
	ck_assert_mem_eq(f->storage, f->expected, (size_t)f->nbytes);
	quire_dstream_destroy(f->dstream);
	ck_assert_int_eq(quire_dstream_create(f->device, "test", &f->dstream), QUIRE_OK);
}

/* What the call itself answers: cpu queues, cpu:inline has already failed. */
static enum quire_status at_call(const char *name)
{
	return strcmp(name, "cpu") == 0 ? QUIRE_OK : QUIRE_INVALID;
}

static void expect_bad_slots(struct fixture *f, const struct quire_slots *slots,
                             const char *what, int64_t index, int64_t got, int64_t bound)
{
	static const char rows[8 * 64];
	enum quire_status status = at_call(quire_device_name(f->device));
	char out[8 * 64];
	char before[8 * 64];

	memset(out, 0x22, sizeof(out));
	memset(before, 0x22, sizeof(before));
	ck_assert_int_eq(quire_cache_write_tokens(f->cache, f->dstream, 1, slots, rows,
	                                          rows, QUIRE_F32, NULL),
	                 status);
	expect_failure(f, what, index, got, bound);
	ck_assert_int_eq(
		quire_cache_read_tokens(f->cache, f->dstream, 1, slots, out, NULL),
		status);
	expect_failure(f, what, index, got, bound);
	ck_assert_mem_eq(out, before, sizeof(out));
}

/* 65,600 pages of 32 KiB: the last ones lie beyond 2^31 bytes.  Only a few are touched. */
START_TEST(pages_beyond_two_gigabytes_are_where_they_should_be)
{
	enum { LAST = 65599, ROW = 256 };
	const struct quire_shape shape = {
		.layout = QUIRE_NHD,
		.dtype = QUIRE_F32,
		.num_layers = 1,
		.num_pages = LAST + 1,
		.page_size = 16,
		.num_kv_heads = 1,
		.head_dim = ROW,
	};
	static float k[ROW], v[ROW], out[2 * ROW];
	const int32_t last = LAST, before = LAST - 1, offset = 15;
	const struct quire_slots written = {.page = &last, .offset = &offset, .n = 1};
	const struct quire_slots read = {.page = &before, .offset = &offset, .n = 1};
	struct quire_device *device;
	struct quire_dstream *dstream;
	struct quire_cache *cache;
	const char *data;

	ck_assert_int_eq(quire_device_create("cpu:inline", &device, NULL), QUIRE_OK);
	ck_assert_int_eq(quire_dstream_create(device, "test", &dstream), QUIRE_OK);
	ck_assert_int_eq(quire_cache_create(device, &shape, &cache, NULL), QUIRE_OK);
	for (int i = 0; i < ROW; i++) {
		k[i] = (float)i;
		v[i] = (float)-i;
	}
	ck_assert_int_eq(quire_cache_write_tokens(cache, dstream, 0, &written, k, v,
	                                          QUIRE_F32, NULL),
	                 QUIRE_OK);
	data = quire_cache_data_ptr(cache);
	ck_assert_int_eq(
		memcmp(data + (int64_t)LAST * 32768 + 15 * ROW * 4, k, sizeof(k)), 0);
	ck_assert_int_eq(quire_cache_copy_pages(cache, dstream, &last, &before, 1, NULL),
	                 QUIRE_OK);
	ck_assert_int_eq(quire_cache_read_tokens(cache, dstream, 0, &read, out, NULL),
	                 QUIRE_OK);
	ck_assert_int_eq(memcmp(out, k, sizeof(k)), 0);
	ck_assert_int_eq(memcmp(out + ROW, v, sizeof(v)), 0);
	quire_cache_destroy(cache);
	quire_dstream_destroy(dstream);
	quire_device_destroy(device);
}
END_TEST

START_TEST(bad_pages_and_offsets_are_named_before_anything_moves)
{
	enum { N = 6, PAGES = 7, TOKENS = 4 };
	struct quire_shape shape = {QUIRE_NHD, QUIRE_BF16, 2, PAGES, TOKENS, 1, 3};
	const int32_t bad_pages[] = {-1, PAGES, INT32_MIN, INT32_MAX};
	const int32_t bad_offsets[] = {-1, TOKENS, INT32_MIN, INT32_MAX};
	struct fixture f;

	set_up(&f, names[_i], &shape);
	for (int at = 0; at < N; at++) {
		for (int b = 0; b < 4; b++) {
			int32_t page[N] = {6, 6, 0, 3, 4, 5};
			int32_t offset[N] = {0, 1, 3, 2, 0, 3};
			struct quire_slots slots = {page, offset, 0, N};
			struct quire_slots stream = {page, NULL, 3, 4 * N - 6};
			int32_t good = page[at];

			page[at] = bad_pages[b];
			expect_bad_slots(&f, &slots, "page", at, bad_pages[b],
			                 b % 2 ? PAGES - 1 : 0);
			expect_bad_slots(&f, &stream, "page", at, bad_pages[b],
			                 b % 2 ? PAGES - 1 : 0);
			page[at] = good;
			offset[at] = bad_offsets[b];
			expect_bad_slots(&f, &slots, "offset", at, bad_offsets[b],
			                 b % 2 ? TOKENS - 1 : 0);
		}
	}
	tear_down(&f);
}
END_TEST

START_TEST(pages_beside_the_tokens_of_a_stream_are_not_looked_at)
{
	struct quire_shape shape = {QUIRE_NHD, QUIRE_BF16, 1, 4, 4, 1, 3};
	static const char rows[4 * 3 * 2];
	int32_t page[] = {-1, 2, 99};
	struct quire_slots slots = {page, NULL, 4, 4};
	struct fixture f;

	set_up(&f, names[_i], &shape);
	ck_assert_int_eq(quire_cache_write_tokens(f.cache, f.dstream, 0, &slots, rows,
	                                          rows, QUIRE_BF16, NULL),
	                 QUIRE_OK);
	naive_write(&shape, f.expected, 0, &(struct quire_slots){page + 1, NULL, 0, 4},
	            rows, rows, QUIRE_BF16);
	expect_storage(&f, "write", 0);
	tear_down(&f);
}
END_TEST

START_TEST(copies_of_bad_pages_and_targets_named_twice_are_refused)
{
	enum { N = 4, PAGES = 6 };
	struct quire_shape shape = {QUIRE_NHD, QUIRE_BF16, 2, PAGES, 2, 1, 1};
	const int32_t bad[] = {-1, PAGES, INT32_MIN, INT32_MAX};
	enum quire_status status = at_call(names[_i]);
	struct fixture f;

	set_up(&f, names[_i], &shape);
	for (int at = 0; at < N; at++) {
		int32_t source[N] = {0, 1, 2, 5};
		int32_t target[N] = {4, 5, 0, 1};

		for (int b = 0; b < 4; b++) {
			int32_t *lists[] = {source, target};

			for (int l = 0; l < 2; l++) {
				int32_t good = lists[l][at];

				lists[l][at] = bad[b];
				ck_assert_int_eq(quire_cache_copy_pages(f.cache,
				                                        f.dstream, source,
				                                        target, N, NULL),
				                 status);
				expect_failure(&f, l == 0 ? "source" : "target", at,
				               bad[b], b % 2 ? PAGES - 1 : 0);
				lists[l][at] = good;
			}
		}
		for (int twice = 0; twice < at; twice++) {
			int32_t good = target[at];

			target[at] = target[twice];
			ck_assert_int_eq(quire_cache_copy_pages(f.cache, f.dstream,
			                                        source, target, N, NULL),
			                 status);
			expect_failure(&f, "target named twice", at, 0, 0);
			target[at] = good;
		}
	}
	tear_down(&f);
}
END_TEST

static void expect_write_refused(struct fixture *f, int64_t layer,
                                 const struct quire_slots *slots, const void *k,
                                 const void *v, int dtype, const char *what)
{
	struct quire_refusal refusal = {0};
	char out[64];

	ck_assert_int_eq(quire_cache_write_tokens(f->cache, f->dstream, layer, slots, k,
	                                          v, (enum quire_dtype)dtype, &refusal),
	                 QUIRE_INVALID);
	ck_assert_str_eq(refusal.what, what);
	ck_assert_int_eq(refusal.status, QUIRE_INVALID);
	if (k == NULL || v == NULL || dtype == QUIRE_DTYPE_COUNT)
		return;
	ck_assert_int_eq(quire_cache_read_tokens(f->cache, f->dstream, layer, slots, out,
	                                         &refusal),
	                 QUIRE_INVALID);
	ck_assert_str_eq(refusal.what, what);
}

START_TEST(wrong_arguments_are_refused_at_the_call_and_the_stream_goes_on)
{
	struct quire_shape shape = {QUIRE_NHD, QUIRE_BF16, 2, 4, 4, 1, 3};
	int32_t page[1] = {0};
	struct quire_slots good = {page, NULL, 0, 1};
	struct quire_slots none = {NULL, NULL, 0, 0};
	const int64_t n_max = INT64_MAX / 8 / 3;
	struct quire_refusal refusal = {0};
	struct fixture other;
	struct fixture f;
	char row[6] = {0};

	set_up(&f, names[_i], &shape);
	set_up(&other, names[_i], &shape);
	expect_write_refused(&f, -1, &good, row, row, QUIRE_BF16, "layer");
	expect_write_refused(&f, 2, &good, row, row, QUIRE_BF16, "layer");
	expect_write_refused(&f, 0, &(struct quire_slots){page, NULL, 0, -1}, row, row, 0,
	                     "n");
	expect_write_refused(&f, 0, &(struct quire_slots){page, page, 0, n_max + 1}, row,
	                     row, 0, "n");
	expect_write_refused(&f, 0, &(struct quire_slots){page, NULL, -1, 1}, row, row, 0,
	                     "first");
	expect_write_refused(&f, 0, &(struct quire_slots){page, NULL, INT64_MAX, 1}, row,
	                     row, 0, "first");
	expect_write_refused(&f, 0, &(struct quire_slots){page, NULL, 5, INT32_MAX - 4},
	                     row, row, 0, "n");
	expect_write_refused(&f, 0, &(struct quire_slots){NULL, NULL, 0, 1}, row, row, 0,
	                     "page is NULL");
	expect_write_refused(&f, 0, &good, NULL, row, QUIRE_BF16, "k is NULL");
	expect_write_refused(&f, 0, &good, row, NULL, QUIRE_BF16, "v is NULL");
	expect_write_refused(&f, 0, &good, row, row, QUIRE_DTYPE_COUNT, "dtype");
	ck_assert_int_eq(
		quire_cache_read_tokens(f.cache, f.dstream, 0, &good, NULL, &refusal),
		QUIRE_INVALID);
	ck_assert_str_eq(refusal.what, "out is NULL");
	ck_assert_int_eq(
		quire_cache_copy_pages(f.cache, f.dstream, page, page, -1, &refusal),
		QUIRE_INVALID);
	ck_assert_str_eq(refusal.what, "n");
	ck_assert_int_eq(
		quire_cache_copy_pages(f.cache, f.dstream, page, page, 5, &refusal),
		QUIRE_INVALID);
	ck_assert_int_eq(refusal.expected, 4);
	ck_assert_int_eq(
		quire_cache_copy_pages(f.cache, f.dstream, NULL, page, 1, &refusal),
		QUIRE_INVALID);
	ck_assert_str_eq(refusal.what, "source is NULL");
	ck_assert_int_eq(quire_cache_copy_pages(f.cache, f.dstream, page, NULL, 1, NULL),
	                 QUIRE_INVALID);
	ck_assert_int_eq(
		quire_cache_copy_pages(f.cache, other.dstream, page, page, 1, NULL),
		QUIRE_INVALID);
	ck_assert_int_eq(quire_cache_write_tokens(f.cache, other.dstream, 0, &good, row,
	                                          row, QUIRE_BF16, NULL),
	                 QUIRE_INVALID);
	/* No tokens and no pages are nothing to do. */
	ck_assert_int_eq(quire_cache_write_tokens(f.cache, f.dstream, 0, &none, NULL,
	                                          NULL, QUIRE_F32, NULL),
	                 QUIRE_OK);
	ck_assert_int_eq(
		quire_cache_read_tokens(f.cache, f.dstream, 0, &none, NULL, NULL),
		QUIRE_OK);
	ck_assert_int_eq(quire_cache_copy_pages(f.cache, f.dstream, NULL, NULL, 0, NULL),
	                 QUIRE_OK);
	expect_storage(&f, "refusals", 0);
	tear_down(&other);
	tear_down(&f);
}
END_TEST

START_TEST(streams_copy_pages_at_the_same_time)
{
	enum { STREAMS = 3, PAGES = 16, ROUNDS = 100 };
	struct quire_shape shape = {QUIRE_NHD, QUIRE_F32, 2, PAGES * STREAMS, 4, 2, 8};
	static int32_t source[STREAMS][PAGES];
	static int32_t target[STREAMS][PAGES];
	struct quire_dstream *streams[STREAMS];
	uint64_t seed = 23;
	struct fixture f;

	set_up(&f, names[_i], &shape);
	any_bytes(&seed, f.expected, (size_t)f.nbytes);
	memcpy(f.storage, f.expected, (size_t)f.nbytes);
	/* Each stream turns its own pages round: one cycle, through the scratch page. */
	for (int s = 0; s < STREAMS; s++) {
		ck_assert_int_eq(quire_dstream_create(f.device, "test", &streams[s]),
		                 QUIRE_OK);
		for (int i = 0; i < PAGES; i++) {
			source[s][i] = s * PAGES + i;
			target[s][i] = s * PAGES + (i + 1) % PAGES;
		}
	}
	for (int round = 0; round < ROUNDS; round++)
		for (int s = 0; s < STREAMS; s++)
			ck_assert_int_eq(quire_cache_copy_pages(f.cache, streams[s],
			                                        source[s], target[s],
			                                        PAGES, NULL),
			                 QUIRE_OK);
	for (int s = 0; s < STREAMS; s++) {
		ck_assert_int_eq(quire_dstream_synchronize(streams[s], NULL), QUIRE_OK);
		quire_dstream_destroy(streams[s]);
		for (int round = 0; round < ROUNDS % PAGES; round++)
			naive_copy(&shape, f.expected, f.nbytes, source[s], target[s],
			           PAGES);
	}
	expect_storage(&f, "copy", 0);
	tear_down(&f);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("cache");
	TCase *both = tcase_create("cpu and cpu:inline");

	suite_add_tcase(suite, both);
	tcase_set_timeout(both, 60);
	tcase_add_loop_test(both,
	                    storage_starts_as_zeros_and_properties_are_those_of_the_shape,
	                    0, NUM_NAMES);
	tcase_add_loop_test(both,
	                    a_cache_larger_than_memory_or_of_a_wrong_shape_is_refused, 0,
	                    NUM_NAMES);
	tcase_add_loop_test(both, writes_and_reads_are_those_of_the_definition, 0,
	                    NUM_NAMES);
	tcase_add_loop_test(both, rows_may_begin_at_any_byte, 0, NUM_NAMES);
	tcase_add_loop_test(both, every_copy_among_five_pages_reads_all_sources_first, 0,
	                    NUM_NAMES);
	tcase_add_loop_test(both, random_copies_of_many_pages_are_those_of_the_definition,
	                    0, NUM_NAMES);
	tcase_add_test(both, pages_beyond_two_gigabytes_are_where_they_should_be);
	tcase_add_loop_test(both, bad_pages_and_offsets_are_named_before_anything_moves,
	                    0, NUM_NAMES);
	tcase_add_loop_test(both, pages_beside_the_tokens_of_a_stream_are_not_looked_at,
	                    0, NUM_NAMES);
	tcase_add_loop_test(both, copies_of_bad_pages_and_targets_named_twice_are_refused,
	                    0, NUM_NAMES);
	tcase_add_loop_test(
		both, wrong_arguments_are_refused_at_the_call_and_the_stream_goes_on, 0,
		NUM_NAMES);
	tcase_add_loop_test(both, streams_copy_pages_at_the_same_time, 0, NUM_NAMES);
	return run_suite(suite);
}
