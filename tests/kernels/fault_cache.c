/* SPDX-License-Identifier: MIT */
/* Memory fails at every place where the cache or an operation on it asks for some, once
 * and from then on: the answer is clear, nothing leaks, nothing moves. */
#include "config.h"

#include "tests/runtime/counting_malloc.h"

#include "tests/kernels/cache_table.h"

#include <stdio.h>
#include <time.h>

#define SKIPPED 77

#if COUNTING_MALLOC

#define PLACES_MAX 100

enum thing {
	THING_CACHE,
	THING_CACHE_ON,
	THING_EXPORT,
	NUM_THINGS,
};

static const struct quire_shape small = {QUIRE_HND, QUIRE_BF16, 2, 4, 4, 2, 8};

static enum quire_status make(enum thing thing, struct fixture *f, void **made,
                              struct quire_refusal *refusal)
{
	static char memory[4096] __attribute__((aligned(64)));

	switch (thing) {
	case THING_CACHE:
		return quire_cache_create(f->device, &small, (struct quire_cache **)made,
		                          refusal);
	case THING_CACHE_ON:
		return quire_cache_create_on(f->device, &small, memory, sizeof(memory),
		                             (struct quire_cache **)made, refusal);
	case THING_EXPORT:
		return quire_cache_export_layer(f->cache, 1, (DLManagedTensor **)made,
		                                refusal);
	case NUM_THINGS:
		break;
	}
	return QUIRE_INVALID;
}

static void end(enum thing thing, void *made)
{
	DLManagedTensor *managed = made;

	if (thing == THING_EXPORT)
		managed->deleter(managed);
	else
		quire_cache_destroy(made);
}

static void fail_at(int64_t place, bool from_then_on)
{
	atomic_store(&counting.failed, 0);
	atomic_store(&counting.fail_on, from_then_on);
	atomic_store(&counting.fail_in, place);
}

static void fail_no_more(void)
{
	atomic_store(&counting.fail_in, 0);
	atomic_store(&counting.fail_on, false);
}

/* Make a thing with the n-th request failing; true: it was made, n is beyond the last. */
static bool try_place(struct fixture *f, enum thing thing, int64_t place,
                      bool from_then_on)
{
	struct quire_refusal refusal = {0};
	void *made = f; /* a value that nobody may touch */
	enum quire_status status;
	int64_t failed, lost;

	counting.num_live = 0;
	atomic_store(&counting.remembers, true);
	fail_at(place, from_then_on);
	status = make(thing, f, &made, &refusal);
	fail_no_more();
	failed = atomic_load(&counting.failed);
	if (status == QUIRE_OK)
		end(thing, made);
	lost = counting.num_live;
	atomic_store(&counting.remembers, false);

	ck_assert_int_eq(lost, 0);
	ck_assert_int_eq(failed > 0, status != QUIRE_OK);
	if (status == QUIRE_OK)
		return true;
	ck_assert_int_eq(status, QUIRE_NO_MEMORY);
	ck_assert_int_eq(refusal.status, QUIRE_NO_MEMORY);
	ck_assert_ptr_nonnull(refusal.what);
	ck_assert_ptr_eq(made, f);
	return false;
}

/* As few as this would mean that the failing malloc is not the one that is called. */
static const int64_t places_least[NUM_THINGS] = {2, 1, 1};

START_TEST(every_request_for_memory_of_a_create_or_an_export_may_fail)
{
	struct fixture f;

	fixture_begin(&f, "cpu:inline", &small);
	for (int mode = 0; mode < 2; mode++) {
		int64_t place = 1;

		while (!try_place(&f, (enum thing)_i, place, mode == 1))
			ck_assert_int_lt(place++, PLACES_MAX);
		ck_assert_int_gt(place, places_least[_i]);
	}
	fixture_end(&f);
}
END_TEST

/* The last to go takes the device along. */
START_TEST(nothing_is_left_of_a_device_once_its_caches_and_exports_have_ended)
{
	bool exports = _i % 2 == 1;
	DLManagedTensor *managed = NULL;
	struct quire_device *device = NULL;
	struct quire_cache *cache = NULL;
	int64_t before, lost;

	counting.num_live = 0;
	atomic_store(&counting.remembers, true);
	ck_assert_int_eq(
		quire_device_create(_i / 2 == 0 ? "cpu:inline" : "cpu:3", &device, NULL),
		QUIRE_OK);
	ck_assert_int_eq(quire_cache_create(device, &small, &cache, NULL), QUIRE_OK);
	if (exports)
		ck_assert_int_eq(quire_cache_export_layer(cache, 1, &managed, NULL),
		                 QUIRE_OK);
	quire_device_destroy(device);
	before = counting.num_live;
	quire_cache_destroy(cache);
	if (exports)
		managed->deleter(managed);
	lost = counting.num_live;
	atomic_store(&counting.remembers, false);
	ck_assert_int_ge(before, 2);
	ck_assert_int_eq(lost, 0);
}
END_TEST

#define PAGES 40

/* Turn the first n pages round with the n-th request for memory failing; false: it was
 * not asked for so often.  Whatever happens, all of the copy does or none of it. */
static bool try_copy(struct fixture *f, const int32_t *source, const int32_t *target,
                     int64_t n, int64_t place, bool from_then_on)
{
	enum quire_status status, told;
	struct quire_refusal refusal = {0};
	int64_t failed;

	fail_at(place, from_then_on);
	told = quire_cache_copy_pages(f->cache, f->dstream, source, target, n, NULL);
	status = quire_dstream_synchronize(f->dstream, &refusal);
	fail_no_more();
	failed = atomic_load(&counting.failed);
	ck_assert_int_eq(failed > 0, status != QUIRE_OK);
	ck_assert(told == status || told == QUIRE_OK);
	if (status == QUIRE_OK) {
		naive_copy(&f->expected, source, target, NULL, n);
		fixture_expect(f, "copy", (int)n);
		return false;
	}
	ck_assert_int_eq(status, QUIRE_NO_MEMORY);
	ck_assert_int_eq(refusal.status, QUIRE_NO_MEMORY);
	ck_assert_ptr_nonnull(refusal.what);
	fixture_fetch(f);
	ck_assert_mem_eq(f->got, f->expected.storage, (size_t)f->nbytes);
	quire_dstream_destroy(f->dstream);
	ck_assert_int_eq(quire_dstream_create(f->device, "test", &f->dstream), QUIRE_OK);
	return true;
}

START_TEST(a_copy_of_pages_without_memory_for_its_scratch_moves_nothing)
{
	static const int64_t counts[] = {2, 9, PAGES};
	struct quire_shape shape = {layout_of(_i), QUIRE_F32, 2, PAGES, 2, 1, 4};
	int32_t *source, *target;
	uint64_t seed = 1;
	struct fixture f;
	int64_t failures = 0;

	fixture_begin(&f, device_of(_i), &shape);
	fixture_fill(&f, &seed);
	source = fixture_pinned(&f, PAGES * sizeof(*source));
	target = fixture_pinned(&f, PAGES * sizeof(*target));
	for (int mode = 0; mode < 2; mode++) {
		for (int c = 0; c < 3; c++) {
			for (int32_t i = 0; i < counts[c]; i++) {
				source[i] = i;
				target[i] = (i + 1) % (int32_t)counts[c];
			}
			for (int64_t place = 1;
			     try_copy(&f, source, target, counts[c], place, mode == 1);
			     place++, failures++)
				ck_assert_int_lt(place, PLACES_MAX);
		}
	}
	/* At least the first copy of each turn needs some. */
	ck_assert_int_ge(failures, 2);
	fixture_end(&f);
}
END_TEST

static _Atomic bool gate_is_open;

static enum quire_status wait_at_gate(void *argument)
{
	const struct timespec nap = {.tv_nsec = 100000};

	(void)argument;
	while (!atomic_load(&gate_is_open))
		nanosleep(&nap, NULL);
	return QUIRE_OK;
}

/* The queue of a stream that stands still is full, and cannot grow. */
START_TEST(writes_that_cannot_be_queued_are_refused_and_write_nothing)
{
	enum { SLOTS = 600, ROW = 4 };
	struct quire_shape shape = {QUIRE_NHD, QUIRE_F32, 1, SLOTS, 1, 1, ROW};
	bool reads_back = _i % 2 == 1;
	struct quire_refusal refusal = {0};
	enum quire_status status = QUIRE_OK;
	int32_t *page, *offset;
	uint64_t seed = 2;
	int64_t queued = 0;
	struct fixture f;
	char *rows, *out;

	fixture_begin(&f, "cpu", &shape);
	page = fixture_pinned(&f, SLOTS * sizeof(*page));
	offset = fixture_pinned(&f, SLOTS * sizeof(*offset));
	rows = fixture_rows(&f, &seed, QUIRE_F32, (int64_t)SLOTS * ROW, 0);
	out = fixture_pinned(&f, 2 * ROW * sizeof(float));
	for (int32_t i = 0; i < SLOTS; i++)
		page[i] = i;
	/* One operation or two, as a write that is read back may be two as well. */
	for (int i = 0; i <= _i / 2; i++)
		ck_assert_int_eq(quire_dstream_call(f.dstream, wait_at_gate, NULL),
		                 QUIRE_OK);
	fail_at(1, true);
	while (status == QUIRE_OK && queued < SLOTS) {
		struct quire_slots slot = {page + queued, offset, 0, 1};
		const char *row = rows + queued * ROW * (int64_t)sizeof(float);

		status = quire_cache_write_tokens(f.cache, f.dstream, 0, &slot, row, row,
		                                  QUIRE_F32, reads_back ? out : NULL,
		                                  &refusal);
		queued += status == QUIRE_OK;
	}
	fail_no_more();
	atomic_store(&gate_is_open, true);
	ck_assert_int_eq(status, QUIRE_NO_MEMORY);
	ck_assert_int_eq(refusal.status, QUIRE_NO_MEMORY);
	naive_write(&f.expected, 0, &(struct quire_slots){page, offset, 0, queued}, rows,
	            rows, QUIRE_F32);
	fixture_expect(&f, "write", (int)queued);
	fixture_end(&f);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("fault: cache");
	TCase *tcase = tcase_create("cache");

	exact_prepare();
	suite_add_tcase(suite, tcase);
	tcase_add_loop_test(tcase,
	                    every_request_for_memory_of_a_create_or_an_export_may_fail, 0,
	                    NUM_THINGS);
	tcase_add_loop_test(
		tcase, nothing_is_left_of_a_device_once_its_caches_and_exports_have_ended,
		0, 4);
	tcase_add_loop_test(tcase,
	                    a_copy_of_pages_without_memory_for_its_scratch_moves_nothing,
	                    0, NUM_LAYOUTS);
	tcase_add_loop_test(
		tcase, writes_that_cannot_be_queued_are_refused_and_write_nothing, 0, 4);
	return run_suite(suite);
}

#else

int main(void)
{
	puts("skipped: a sanitizer has an allocator of its own");
	return SKIPPED;
}

#endif
