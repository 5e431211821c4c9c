/* SPDX-License-Identifier: MIT */
/* One table: every operation of the cache, on every device, layout and dtype, against its
 * definition element by element. */
#include "config.h"

#include <quire/kernels/cache.h>

#include "tests/kernels/cache_table.h"

START_TEST(storage_starts_as_zeros_and_properties_are_those_of_the_shape)
{
	struct quire_shape shape = shape_of(_i, 2, 3, 4, 5, 6);
	int64_t rows = shape.layout == QUIRE_MLA ? 1 : 2 * 5;
	int64_t nbytes = 2 * 3 * 4 * 6 * rows * quire_dtype_bytes(shape.dtype);
	struct quire_cache *cache = NULL;
	struct quire_range range;
	struct fixture f;

	fixture_begin(&f, device_of(_i), &shape);
	ck_assert_int_eq(quire_cache_create(f.device, &shape, &cache, NULL), QUIRE_OK);
	ck_assert_ptr_eq(quire_cache_device(cache), f.device);
	ck_assert_mem_eq(quire_cache_shape(cache), &shape, sizeof(shape));
	ck_assert_int_eq(quire_cache_nbytes(cache), nbytes);
	ck_assert_int_eq(quire_cache_geometry(cache)->nbytes, nbytes);
	range = (struct quire_range){f.got, quire_cache_data_ptr(cache), nbytes};
	ck_assert_int_eq(quire_dstream_copy(f.side, &range, 1), QUIRE_OK);
	ck_assert_int_eq(quire_dstream_synchronize(f.side, NULL), QUIRE_OK);
	for (int64_t i = 0; i < nbytes; i++)
		if (f.got[i] != 0)
			ck_abort_msg("byte %ld is not zero", (long)i);
	quire_cache_destroy(cache);
	fixture_end(&f);
}
END_TEST

START_TEST(a_cache_larger_than_memory_or_of_a_wrong_shape_is_refused)
{
	/* 2^24 pages of 2 * 1024 * 1024 bytes: 32 TiB. */
	struct quire_shape shape = {QUIRE_NHD, QUIRE_BF16, 1, 1 << 24, 1024, 8, 64};
	struct quire_refusal refusal = {0};
	struct quire_device *device = NULL;
	struct quire_cache *cache = NULL;

	ck_assert_int_eq(quire_device_create(device_of(_i), &device, NULL), QUIRE_OK);
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

/* Memory for the largest operation on a shape. */
struct operands {
	struct any_slots *write;
	struct any_slots *read;
	char *k;
	char *v;
	char *out;
	char *back;
	char *wanted;
	size_t out_bytes;
};

static void any_operands(struct fixture *f, uint64_t *seed, enum quire_dtype dtype,
                         struct operands *o)
{
	const struct quire_shape *shape = &f->expected.shape;
	int64_t elements = shape->num_pages * shape->page_size * naive_row(shape);

	o->write = fixture_pinned(f, sizeof(*o->write));
	o->read = fixture_pinned(f, sizeof(*o->read));
	any_slots(seed, shape, o->write);
	any_slots(seed, shape, o->read);
	o->k = fixture_rows(f, seed, dtype, elements, 0);
	o->v = shape->layout == QUIRE_MLA ? NULL
	                                  : fixture_rows(f, seed, dtype, elements, 0);
	/* As many bytes as the storage of a layer, and some that nobody may touch. */
	o->out_bytes = (size_t)(f->nbytes / shape->num_layers) + 64;
	o->out = fixture_pinned(f, o->out_bytes);
	o->back = fixture_pinned(f, o->out_bytes);
	o->wanted = malloc(o->out_bytes);
	memset(o->out, 0x11, o->out_bytes);
	memset(o->back, 0x11, o->out_bytes);
	memset(o->wanted, 0x11, o->out_bytes);
}

/* A write, read back at once where @reads_back, and a read behind it. */
static void expect_tokens(struct fixture *f, uint64_t *seed, bool reads_back, int round)
{
	const struct quire_shape *shape = &f->expected.shape;
	int64_t layer = random_in(seed, 0, (int32_t)shape->num_layers - 1);
	enum quire_dtype dtype = any_source(seed, shape->dtype);
	struct operands o;

	any_operands(f, seed, dtype, &o);
	ck_assert_int_eq(quire_cache_write_tokens(f->cache, f->dstream, layer,
	                                          &o.write->slots, o.k, o.v, dtype,
	                                          reads_back ? o.back : NULL, NULL),
	                 QUIRE_OK);
	ck_assert_int_eq(quire_cache_read_tokens(f->cache, f->dstream, layer,
	                                         &o.read->slots, o.out, NULL),
	                 QUIRE_OK);
	naive_write(&f->expected, layer, &o.write->slots, o.k, o.v, dtype);
	fixture_expect(f, "write", round);
	naive_read(&f->expected, layer, &o.read->slots, o.wanted);
	ck_assert_msg(memcmp(o.out, o.wanted, o.out_bytes) == 0, "round %d: read differs",
	              round);
	memset(o.wanted, 0x11, o.out_bytes);
	if (reads_back)
		naive_read(&f->expected, layer, &o.write->slots, o.wanted);
	ck_assert_msg(memcmp(o.back, o.wanted, o.out_bytes) == 0,
	              "round %d: what was read back differs", round);
	free(o.wanted);
}

START_TEST(writes_and_reads_are_those_of_the_definition)
{
	for (int round = 0; round < 24; round++) {
		uint64_t seed = (uint64_t)(round * NUM_ENTRIES + _i);
		struct quire_shape shape =
			any_shape_of(&seed, layout_of(_i), dtype_of(_i));
		struct fixture f;

		fixture_begin(&f, device_of(_i), &shape);
		for (int turn = 0; turn < 4; turn++)
			expect_tokens(&f, &seed, turn % 2 == 0, round);
		fixture_end(&f);
	}
}
END_TEST

START_TEST(rows_may_begin_at_any_byte)
{
	enum { N = 6 };
	struct quire_shape shape = shape_of(_i, 1, 2, 4, 3, 23);
	const int32_t pages[] = {1, 0};
	uint64_t seed = 3;

	for (int64_t at = 0; is_cpu(device_of(_i)) && at < 9; at++) {
		enum quire_dtype dtype = any_source(&seed, shape.dtype);
		int64_t elements = N * naive_row(&shape);
		struct fixture f;
		struct quire_slots slots = {.first = 1, .n = N};
		char *k, *v, *out, *wanted;
		size_t bytes;

		fixture_begin(&f, device_of(_i), &shape);
		bytes = (size_t)(f.nbytes / 8 * N);
		slots.page = fixture_list(&f, pages, 2);
		k = fixture_rows(&f, &seed, dtype, elements, at);
		v = shape.layout == QUIRE_MLA
		            ? NULL
		            : fixture_rows(&f, &seed, dtype, elements, 8 - at);
		out = (char *)fixture_pinned(&f, bytes + 16) + at;
		wanted = malloc(bytes + 8);
		memset(out, 0x11, bytes + 8);
		memset(wanted, 0x11, bytes + 8);
		ck_assert_int_eq(quire_cache_write_tokens(f.cache, f.dstream, 0, &slots,
		                                          k, v, dtype, out, NULL),
		                 QUIRE_OK);
		naive_write(&f.expected, 0, &slots, k, v, dtype);
		fixture_expect(&f, "write", (int)at);
		naive_read(&f.expected, 0, &slots, wanted);
		ck_assert_msg(memcmp(out, wanted, bytes + 8) == 0, "read, at %d",
		              (int)at);
		free(wanted);
		fixture_end(&f);
	}
}
END_TEST

START_TEST(nothing_is_done_for_no_tokens_and_no_pages)
{
	struct quire_shape shape = shape_of(_i, 2, 3, 4, 2, 5);
	const struct quire_slots none = {NULL, NULL, 0, 0};
	const struct quire_slots none_of_a_stream = {NULL, NULL, QUIRE_SEQ_TOKENS_MAX, 0};
	struct fixture f;
	char *out;

	fixture_begin(&f, device_of(_i), &shape);
	out = fixture_pinned(&f, 8);
	memset(out, 0x11, 8);
	for (int64_t layer = 0; layer < 2; layer++) {
		ck_assert_int_eq(quire_cache_write_tokens(f.cache, f.dstream, layer,
		                                          &none, NULL, NULL, QUIRE_F32,
		                                          NULL, NULL),
		                 QUIRE_OK);
		ck_assert_int_eq(quire_cache_write_tokens(f.cache, f.dstream, layer,
		                                          &none_of_a_stream, out, out,
		                                          shape.dtype, out, NULL),
		                 QUIRE_OK);
		ck_assert_int_eq(quire_cache_read_tokens(f.cache, f.dstream, layer, &none,
		                                         NULL, NULL),
		                 QUIRE_OK);
	}
	ck_assert_int_eq(quire_cache_copy_pages(f.cache, f.dstream, NULL, NULL, 0, NULL),
	                 QUIRE_OK);
	ck_assert_int_eq(
		quire_cache_copy_slots(f.cache, f.dstream, NULL, NULL, NULL, 0, NULL),
		QUIRE_OK);
	fixture_expect(&f, "nothing", 0);
	for (int i = 0; i < 8; i++)
		ck_assert_int_eq(out[i], 0x11);
	fixture_end(&f);
}
END_TEST

/* Is row i of @rows, K or V (as @at says) of a token, what the storage holds there? */
static bool is_row(struct fixture *f, int64_t *at, const char *rows, int64_t i,
                   enum quire_dtype dtype)
{
	const struct quire_shape *s = &f->expected.shape;

	for (int64_t e = 0; e < naive_row(s); e++) {
		uint32_t code = naive_load(dtype, rows, i * naive_row(s) + e);

		if (dtype != s->dtype)
			code = exact_convert(dtype, s->dtype, code);
		at[AXIS_HEAD] = e / s->head_dim;
		at[AXIS_DIM] = e % s->head_dim;
		if (naive_load(s->dtype, f->got, naive_place(s, at)) != code)
			return false;
	}
	return true;
}

/* Padding rows all name token 0 of page 0.  They are many enough to be shared out among
 * workers. */
START_TEST(padding_rows_change_the_sink_alone_which_becomes_one_of_them)
{
	enum { REAL = 8, N = 64 };
	struct quire_shape shape = shape_of(_i, 2, 5, 2, 2, 512);
	uint64_t seed = (uint64_t)_i;
	int64_t at[NUM_AXES] = {[AXIS_LAYER] = 1};
	enum quire_dtype dtype = QUIRE_F32;
	struct quire_slots real;
	struct quire_slots all;
	const char *rows[2];
	int32_t page[N] = {0};
	int32_t offset[N] = {0};
	struct fixture f;

	fixture_begin(&f, device_of(_i), &shape);
	for (int32_t i = 0; i < REAL; i++) {
		page[i] = 1 + i / 2;
		offset[i] = i % 2;
	}
	all = (struct quire_slots){fixture_list(&f, page, N), fixture_list(&f, offset, N),
	                           0, N};
	real = all;
	real.n = REAL;
	for (int kv = 0; kv < 2; kv++)
		rows[kv] = fixture_rows(&f, &seed, dtype, N * naive_row(&shape), 0);
	if (shape.layout == QUIRE_MLA)
		rows[1] = NULL;
	ck_assert_int_eq(quire_cache_write_tokens(f.cache, f.dstream, 1, &all, rows[0],
	                                          rows[1], dtype, NULL, NULL),
	                 QUIRE_OK);
	ck_assert_int_eq(quire_dstream_synchronize(f.dstream, NULL), QUIRE_OK);
	fixture_fetch(&f);
	naive_write(&f.expected, 1, &real, rows[0], rows[1], dtype);
	for (int64_t kv = 0; kv < naive_size(&shape, AXIS_KV); kv++) {
		int64_t i = REAL;

		at[AXIS_KV] = kv;
		while (i < N && !is_row(&f, at, rows[kv], i, dtype))
			i++;
		ck_assert_msg(i < N, "the sink holds none of the rows");
		naive_write_row(&f.expected, at, rows[kv], i, dtype);
	}
	fixture_expect(&f, "padding", 0);
	fixture_end(&f);
}
END_TEST

/* Copy pages, or with @end their first tokens. */
static void expect_copy(struct fixture *f, const int32_t *source, const int32_t *target,
                        const int32_t *end, int64_t n, int round)
{
	enum quire_status status =
		end == NULL ? quire_cache_copy_pages(f->cache, f->dstream, source, target,
	                                             n, NULL)
			    : quire_cache_copy_slots(f->cache, f->dstream, source, target,
	                                             end, n, NULL);

	ck_assert_int_eq(status, QUIRE_OK);
	naive_copy(&f->expected, source, target, end, n);
	fixture_expect(f, "copy", round);
}

/* Copies number @choice of all among a few pages, in any order: each page is no target,
 * or that of any of them.  Answers how many. */
static int any_copies(uint64_t *seed, int32_t pages, int choice, int32_t *source,
                      int32_t *target)
{
	int32_t order[8];
	int32_t from[8];
	int n = 0;

	for (int32_t page = 0; page < pages; page++, choice /= (int)pages + 1) {
		from[page] = choice % (pages + 1);
		order[page] = page;
	}
	random_shuffle(seed, order, pages);
	for (int32_t i = 0; i < pages; i++) {
		if (from[order[i]] == pages)
			continue;
		target[n] = order[i];
		source[n++] = from[order[i]];
	}
	return n;
}

START_TEST(every_copy_among_five_pages_reads_all_sources_first)
{
	enum { PAGES = 5, ALL = 6 * 6 * 6 * 6 * 6 };
	struct quire_shape shape = {layout_of(_i), QUIRE_F16, 2, PAGES, 1, 1, 1};
	uint64_t seed = 5;
	int32_t *source, *target;
	struct fixture f;

	fixture_begin(&f, device_of(_i), &shape);
	source = fixture_pinned(&f, PAGES * sizeof(*source));
	target = fixture_pinned(&f, PAGES * sizeof(*target));
	for (int choice = 0; choice < ALL; choice++) {
		int n = any_copies(&seed, PAGES, choice, source, target);

		fixture_fill(&f, &seed);
		expect_copy(&f, source, target, NULL, n, choice);
	}
	fixture_end(&f);
}
END_TEST

/* Chains, cycles and branches, each copy of as many tokens as chance says. */
START_TEST(every_copy_of_slots_among_four_pages_reads_all_sources_first)
{
	enum { PAGES = 4, ALL = 5 * 5 * 5 * 5, TOKENS = 3 };
	struct quire_shape shape = {layout_of(_i), QUIRE_BF16, 2, PAGES, TOKENS, 1, 2};
	uint64_t seed = 6;
	int32_t *source, *target, *end;
	struct fixture f;

	shape.num_kv_heads = shape.layout == QUIRE_MLA ? 1 : 2;
	fixture_begin(&f, device_of(_i), &shape);
	source = fixture_pinned(&f, PAGES * sizeof(*source));
	target = fixture_pinned(&f, PAGES * sizeof(*target));
	end = fixture_pinned(&f, PAGES * sizeof(*end));
	for (int choice = 0; choice < ALL; choice++) {
		int n = any_copies(&seed, PAGES, choice, source, target);

		for (int turn = 0; turn < 4; turn++) {
			for (int i = 0; i < n; i++)
				end[i] = random_in(&seed, 0, TOKENS);
			fixture_fill(&f, &seed);
			expect_copy(&f, source, target, end, n, choice);
		}
	}
	fixture_end(&f);
}
END_TEST

/* Every pair of ends in a swap, and every end of a single copy. */
START_TEST(slots_are_copied_up_to_every_end)
{
	enum { TOKENS = 4 };
	struct quire_shape shape = shape_of(_i, 2, 3, TOKENS, 3, 5);
	const int32_t swapped[] = {2, 0};
	const int32_t swap[] = {0, 2};
	uint64_t seed = 7;
	int32_t *source, *target, *end;
	struct fixture f;

	fixture_begin(&f, device_of(_i), &shape);
	source = fixture_list(&f, swap, 2);
	target = fixture_list(&f, swapped, 2);
	end = fixture_pinned(&f, 2 * sizeof(*end));
	for (int choice = 0; choice < (TOKENS + 1) * (TOKENS + 1); choice++) {
		end[0] = choice % (TOKENS + 1);
		end[1] = choice / (TOKENS + 1);
		fixture_fill(&f, &seed);
		expect_copy(&f, source, target, end, 2, choice);
		expect_copy(&f, source, target, end, 1, choice);
	}
	fixture_end(&f);
}
END_TEST

START_TEST(random_copies_of_pages_and_slots_are_those_of_the_definition)
{
	enum { PAGES = 60 };
	uint64_t seed = (uint64_t)_i + 17;
	struct quire_shape shape = shape_of(_i, 2, PAGES, random_in(&seed, 1, 4), 2,
	                                    random_in(&seed, 1, 64));
	int32_t *source, *target, *end;
	struct fixture f;

	fixture_begin(&f, device_of(_i), &shape);
	source = fixture_pinned(&f, PAGES * sizeof(*source));
	target = fixture_pinned(&f, PAGES * sizeof(*target));
	end = fixture_pinned(&f, PAGES * sizeof(*end));
	fixture_fill(&f, &seed);
	for (int round = 0; round < 12; round++) {
		int32_t n = round % 4 == 0 ? PAGES : random_in(&seed, 0, PAGES);

		any_pages(&seed, &shape, target);
		/* A permutation is all cycles, random sources are mostly chains. */
		any_pages(&seed, &shape, source);
		for (int32_t i = 0; i < PAGES; i++) {
			if (round % 2 == 1)
				source[i] = random_in(&seed, 0, PAGES - 1);
			end[i] = random_in(&seed, 0, (int32_t)shape.page_size);
		}
		expect_copy(&f, source, target, round % 3 == 0 ? NULL : end, n, round);
	}
	fixture_end(&f);
}
END_TEST

/* Pages that in all are more than 2^31 bytes, of which only a few are touched. */
START_TEST(pages_beyond_two_gigabytes_are_where_they_should_be)
{
	enum { ROW = 256, TOKENS = 16 };
	const bool is_mla = _i == QUIRE_MLA;
	const int32_t last = is_mla ? 131199 : 65599, before = last - 1,
		      offset = TOKENS - 1;
	const struct quire_shape shape = {
		.layout = (enum quire_layout)_i,
		.dtype = QUIRE_F32,
		.num_layers = 1,
		.num_pages = last + 1,
		.page_size = TOKENS,
		.num_kv_heads = is_mla ? 1 : 2,
		.head_dim = is_mla ? ROW : ROW / 2,
	};
	const struct quire_slots written = {.page = &last, .offset = &offset, .n = 1};
	const struct quire_slots read = {.page = &before, .offset = &offset, .n = 1};
	int64_t at[NUM_AXES] = {0, last, 0, offset, 0, 0};
	static float k[ROW], v[ROW], out[2 * ROW];
	struct quire_device *device;
	struct quire_dstream *dstream;
	struct quire_cache *cache;
	const float *data;

	ck_assert_int_eq(quire_device_create("cpu:inline", &device, NULL), QUIRE_OK);
	ck_assert_int_eq(quire_dstream_create(device, "test", &dstream), QUIRE_OK);
	ck_assert_int_eq(quire_cache_create(device, &shape, &cache, NULL), QUIRE_OK);
	ck_assert_int_gt(quire_cache_nbytes(cache), INT64_C(1) << 31);
	for (int i = 0; i < ROW; i++) {
		k[i] = (float)i;
		v[i] = (float)-i;
	}
	ck_assert_int_eq(quire_cache_write_tokens(cache, dstream, 0, &written, k,
	                                          is_mla ? NULL : v, QUIRE_F32, NULL,
	                                          NULL),
	                 QUIRE_OK);
	data = quire_cache_data_ptr(cache);
	for (int i = 0; i < ROW; i++) {
		at[AXIS_HEAD] = i / shape.head_dim;
		at[AXIS_DIM] = i % shape.head_dim;
		if (memcmp(&data[naive_place(&shape, at)], &k[i], sizeof(*k)) != 0)
			ck_abort_msg("element %d is not there", i);
	}
	ck_assert_int_eq(quire_cache_copy_pages(cache, dstream, &last, &before, 1, NULL),
	                 QUIRE_OK);
	ck_assert_int_eq(quire_cache_read_tokens(cache, dstream, 0, &read, out, NULL),
	                 QUIRE_OK);
	ck_assert_mem_eq(out, k, sizeof(k));
	if (!is_mla)
		ck_assert_mem_eq(out + ROW, v, sizeof(v));
	quire_cache_destroy(cache);
	quire_dstream_destroy(dstream);
	quire_device_destroy(device);
}
END_TEST

START_TEST(streams_copy_pages_at_the_same_time)
{
	enum { STREAMS = 3, PAGES = 16, ROUNDS = 100 };
	struct quire_shape shape = {
		layout_of(_i), QUIRE_F32, 2, PAGES * STREAMS, 4, 1, 8};
	int32_t *source[STREAMS], *target[STREAMS];
	struct quire_dstream *streams[STREAMS];
	uint64_t seed = 23;
	struct fixture f;

	fixture_begin(&f, device_of(_i), &shape);
	fixture_fill(&f, &seed);
	/* Each stream turns its own pages round: one cycle, through the scratch page. */
	for (int s = 0; s < STREAMS; s++) {
		ck_assert_int_eq(quire_dstream_create(f.device, "test", &streams[s]),
		                 QUIRE_OK);
		source[s] = fixture_pinned(&f, PAGES * sizeof(*source[s]));
		target[s] = fixture_pinned(&f, PAGES * sizeof(*target[s]));
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
			naive_copy(&f.expected, source[s], target[s], NULL, PAGES);
	}
	fixture_expect(&f, "copy", 0);
	fixture_end(&f);
}
END_TEST

int main(void)
{
	const struct table_test tests[] = {
		{storage_starts_as_zeros_and_properties_are_those_of_the_shape,
	         NUM_ENTRIES},
		{a_cache_larger_than_memory_or_of_a_wrong_shape_is_refused, NUM_DEVICES},
		{writes_and_reads_are_those_of_the_definition, NUM_ENTRIES},
		{rows_may_begin_at_any_byte, NUM_ENTRIES},
		{nothing_is_done_for_no_tokens_and_no_pages, NUM_ENTRIES},
		{padding_rows_change_the_sink_alone_which_becomes_one_of_them,
	         NUM_ENTRIES},
		{every_copy_among_five_pages_reads_all_sources_first, NUM_LAYOUTS},
		{every_copy_of_slots_among_four_pages_reads_all_sources_first,
	         NUM_LAYOUTS},
		{slots_are_copied_up_to_every_end, NUM_ENTRIES},
		{random_copies_of_pages_and_slots_are_those_of_the_definition,
	         NUM_ENTRIES},
		{pages_beyond_two_gigabytes_are_where_they_should_be, QUIRE_LAYOUT_COUNT},
		{streams_copy_pages_at_the_same_time, NUM_LAYOUTS},
	};

	return run_table("cache", tests, sizeof(tests) / sizeof(tests[0]));
}
