/* SPDX-License-Identifier: MIT */
/* Of the CUDA kernels, what the table over devices, layouts and dtypes does not reach:
 * grids smaller than the work, scratch smaller than the work, what is launched, and when
 * lists are read. */
#include "config.h"

#include "kernels/move_cuda_impl.h"
#include "tests/cuda_standin/standin.h"
#include "tests/kernels/cache_fixture.h"
#include "tests/run_suite.h"

#include <semaphore.h>

/* All tokens of all pages, whose order is turned around. */
static struct quire_slots all_slots(struct fixture *f)
{
	const struct quire_shape *shape = &f->expected.shape;
	int32_t *pages = fixture_pinned(f, (size_t)shape->num_pages * sizeof(*pages));

	for (int64_t i = 0; i < shape->num_pages; i++)
		pages[i] = (int32_t)(shape->num_pages - 1 - i);
	return (struct quire_slots){
		.page = pages,
		.n = shape->num_pages * shape->page_size,
	};
}

static void write_and_read_all(struct fixture *f, enum quire_dtype dtype)
{
	const struct quire_shape *shape = &f->expected.shape;
	struct quire_slots slots = all_slots(f);
	int64_t layer = shape->num_layers - 1;
	int64_t bytes = f->nbytes / shape->num_layers;
	char *rows[2] = {NULL, NULL};
	char *wanted = malloc((size_t)bytes);
	char *out = fixture_pinned(f, (size_t)bytes);
	uint64_t seed = 3;

	for (int kv = 0; kv < (shape->layout == QUIRE_MLA ? 1 : 2); kv++)
		rows[kv] = fixture_rows(f, &seed, dtype, slots.n * naive_row(shape), 0);
	ck_assert_int_eq(quire_cache_write_tokens(f->cache, f->dstream, layer, &slots,
	                                          rows[0], rows[1], dtype, out, NULL),
	                 QUIRE_OK);
	naive_write(&f->expected, layer, &slots, rows[0], rows[1], dtype);
	fixture_expect(f, "write", 0);
	naive_read(&f->expected, layer, &slots, wanted);
	ck_assert(memcmp(out, wanted, (size_t)bytes) == 0);
	free(wanted);
}

/* A grid has at most 32768 blocks of rows, 64 of columns (4 units to a thread) and 4096
 * of planes. */
START_TEST(what_does_not_fit_a_grid_is_reached_too)
{
	const struct {
		struct quire_shape shape;
		enum quire_dtype rows;
	} cases[] = {
		/* 33,000 rows of 257 units of one byte: one row to a block. */
		{{QUIRE_MLA, QUIRE_FP8_E4M3, 1, 3, 11000, 1, 257}, QUIRE_FP8_E4M3},
		/* 70,001 units of 4 bytes, or elements that convert one by one. */
		{{QUIRE_MLA, QUIRE_F32, 1, 2, 1, 1, 70001}, QUIRE_F32},
		{{QUIRE_NHD, QUIRE_BF16, 1, 2, 1, 1, 70001}, QUIRE_F32},
		/* 8,400 chunks. */
		{{QUIRE_HND, QUIRE_FP8_E5M2, 1, 2, 2, 4200, 1}, QUIRE_F16},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture f;

		fixture_begin(&f, "cuda", &cases[i].shape);
		write_and_read_all(&f, cases[i].rows);
		fixture_end(&f);
	}
}
END_TEST

START_TEST(pages_that_do_not_fit_a_grid_are_copied_whole)
{
	const struct quire_shape shapes[] = {
		{QUIRE_MLA, QUIRE_FP8_E4M3, 1, 4, 1, 1, 70001},
		{QUIRE_MLA, QUIRE_FP8_E4M3, 4500, 4, 1, 1, 3},
		{QUIRE_HND, QUIRE_FP8_E5M2, 2, 4, 2, 1100, 1},
	};
	/* Straight, and a chain of three. */
	const int32_t lists[][2][3] = {{{0, 1, 0}, {2, 3, 0}}, {{0, 1, 2}, {1, 2, 3}}};

	for (int i = 0; i < 6; i++) {
		const struct quire_shape *shape = &shapes[i / 2];
		int64_t n = i % 2 == 0 ? 2 : 3;
		const int32_t ends[] = {2, 1, 2};
		int32_t *source, *target, *end;
		uint64_t seed = 11;
		struct fixture f;

		fixture_begin(&f, "cuda", shape);
		source = fixture_list(&f, lists[i % 2][0], 3);
		target = fixture_list(&f, lists[i % 2][1], 3);
		end = shape->page_size == 1 ? NULL : fixture_list(&f, ends, 3);
		fixture_fill(&f, &seed);
		ck_assert_int_eq(
			end == NULL ? quire_cache_copy_pages(f.cache, f.dstream, source,
		                                             target, n, NULL)
				    : quire_cache_copy_slots(f.cache, f.dstream, source,
		                                             target, end, n, NULL),
			QUIRE_OK);
		naive_copy(&f.expected, source, target, end, n);
		fixture_expect(&f, "copy", i);
		fixture_end(&f);
	}
}
END_TEST

/* A lane beside the stream's own, with room as small as can be. */
START_TEST(any_scratch_will_do_and_marks_are_taken_off_again)
{
	enum { PAGES = 9 };
	const struct quire_shape shape = {QUIRE_HND, QUIRE_F16, 2, PAGES, 3, 2, 5};
	struct quire_page_move move = {.n = PAGES};
	struct quire_cuda_lane lane = {.stream = NULL};
	struct quire_cuda_room room = {.marks = NULL};
	int32_t *source, *target, *end;
	uint32_t *marks;
	uint64_t seed = 4;
	struct fixture f;
	void *memory;

	fixture_begin(&f, "cuda", &shape);
	source = fixture_pinned(&f, PAGES * sizeof(*source));
	target = fixture_pinned(&f, PAGES * sizeof(*target));
	end = fixture_pinned(&f, PAGES * sizeof(*end));
	marks = fixture_pinned(&f, 4096);
	ck_assert_int_eq(quire_device_alloc(f.device, 4096, &memory), QUIRE_OK);
	lane.stream = quire_dstream_native(f.dstream);
	lane.state = memory;
	room.marks = (uint32_t *)((char *)memory + 1024);
	room.scratch = (char *)memory + 2048;
	fixture_fill(&f, &seed);
	for (int round = 0; round < 24; round++) {
		room.scratch_bytes = QUIRE_CUDA_SCRATCH_MIN(PAGES) * (1 + round % 3);
		move.geometry = quire_cache_geometry(f.cache);
		move.storage = quire_cache_data_ptr(f.cache);
		move.source = source;
		move.target = target;
		move.end = round % 2 == 0 ? NULL : end;
		any_pages(&seed, &shape, source);
		any_pages(&seed, &shape, target);
		for (int i = 0; i < PAGES; i++)
			end[i] = random_in(&seed, 0, 3);
		ck_assert_int_eq(quire_cuda_copy_pages(&lane, &move, &room), cudaSuccess);
		naive_copy(&f.expected, source, target, move.end, PAGES);
		fixture_expect(&f, "copy", round);
		ck_assert_int_eq(
			quire_dstream_copy(f.side,
		                           &(struct quire_range){marks, memory, 4096}, 1),
			QUIRE_OK);
		ck_assert_int_eq(quire_dstream_synchronize(f.side, NULL), QUIRE_OK);
		for (int i = 0; i < PAGES; i++)
			ck_assert_uint_eq(marks[256 + i], 0);
	}
	quire_device_release(f.device, memory, 4096);
	fixture_end(&f);
}
END_TEST

static enum quire_status pass_gate(void *gate)
{
	while (sem_wait(gate) != 0)
		continue;
	return QUIRE_OK;
}

START_TEST(lists_are_read_when_the_operation_runs)
{
	const struct quire_shape shape = {QUIRE_NHD, QUIRE_BF16, 2, 4, 2, 1, 8};
	int32_t *source, *target, *page;
	char *k, *v;
	uint64_t seed = 6;
	struct fixture f;
	sem_t gate;

	fixture_begin(&f, "cuda", &shape);
	source = fixture_list(&f, (int32_t[]){0, 1}, 2);
	target = fixture_list(&f, (int32_t[]){2, 3}, 2);
	page = fixture_list(&f, (int32_t[]){1, 0}, 2);
	k = fixture_rows(&f, &seed, QUIRE_BF16, 32, 0);
	v = fixture_rows(&f, &seed, QUIRE_BF16, 32, 0);
	fixture_fill(&f, &seed);
	sem_init(&gate, 0, 0);
	ck_assert_int_eq(quire_dstream_call(f.dstream, pass_gate, &gate), QUIRE_OK);
	ck_assert_int_eq(
		quire_cache_copy_pages(f.cache, f.dstream, source, target, 2, NULL),
		QUIRE_OK);
	ck_assert_int_eq(quire_cache_write_tokens(f.cache, f.dstream, 0,
	                                          &(struct quire_slots){page, NULL, 0, 4},
	                                          k, v, QUIRE_BF16, NULL, NULL),
	                 QUIRE_OK);
	/* A swap now, which the host could not have known. */
	target[0] = 1;
	target[1] = 0;
	page[0] = 3;
	naive_copy(&f.expected, source, target, NULL, 2);
	naive_write(&f.expected, 0, &(struct quire_slots){page, NULL, 0, 4}, k, v,
	            QUIRE_BF16);
	sem_post(&gate);
	fixture_expect(&f, "late lists", 0);
	fixture_end(&f);
}
END_TEST

/* Calls of entry points that wait for the device or allocate. */
static int64_t waits_and_allocations(void)
{
	return standin_calls(STANDIN_cudaStreamSynchronize) +
	       standin_calls(STANDIN_cudaDeviceSynchronize) +
	       standin_calls(STANDIN_cudaEventSynchronize) +
	       standin_calls(STANDIN_cudaMemcpy) + standin_calls(STANDIN_cudaMemset) +
	       standin_calls(STANDIN_cudaMalloc) + standin_calls(STANDIN_cudaFree) +
	       standin_calls(STANDIN_cudaHostAlloc) + standin_calls(STANDIN_cudaFreeHost);
}

/* Pinned lists and rows for the operations below. */
struct operands {
	struct quire_slots slots;
	int32_t *source;
	int32_t *target;
	int32_t *end;
	char *k;
	char *v;
	char *out;
};

#define NUM_OPERATIONS 6

static enum quire_status operate(struct fixture *f, const struct operands *o, int number)
{
	switch (number) {
	case 0:
		return quire_cache_write_tokens(f->cache, f->dstream, 1, &o->slots, o->k,
		                                o->v, QUIRE_F32, NULL, NULL);
	case 1:
		return quire_cache_write_tokens(f->cache, f->dstream, 1, &o->slots, o->k,
		                                o->v, QUIRE_F32, o->out, NULL);
	case 2:
		return quire_cache_read_tokens(f->cache, f->dstream, 1, &o->slots, o->out,
		                               NULL);
	case 3:
		return quire_cache_copy_pages(f->cache, f->dstream, o->source, o->target,
		                              1, NULL);
	case 4:
		return quire_cache_copy_pages(f->cache, f->dstream, o->source, o->target,
		                              2, NULL);
	default:
		return quire_cache_copy_slots(f->cache, f->dstream, o->source, o->target,
		                              o->end, 2, NULL);
	}
}

START_TEST(each_operation_is_a_few_launches_and_waits_for_nothing)
{
	const struct quire_shape shape = {QUIRE_HND, QUIRE_BF16, 3, 4, 2, 2, 8};
	/* Read back is one more; two pairs or more are looked at by two kernels. */
	const int64_t wanted[NUM_OPERATIONS] = {1, 2, 1, 1, 3, 3};
	struct operands o;
	uint64_t seed = 8;
	struct fixture f;

	fixture_begin(&f, "cuda", &shape);
	o.slots = all_slots(&f);
	o.source = fixture_list(&f, (int32_t[]){0, 1}, 2);
	o.target = fixture_list(&f, (int32_t[]){1, 2}, 2);
	o.end = fixture_list(&f, (int32_t[]){1, 2}, 2);
	o.k = fixture_rows(&f, &seed, QUIRE_F32, o.slots.n * 16, 0);
	o.v = fixture_rows(&f, &seed, QUIRE_F32, o.slots.n * 16, 0);
	o.out = fixture_pinned(&f, (size_t)f.nbytes);
	/* In the first turn the stream takes what memory it needs. */
	for (int turn = 0; turn < 2; turn++) {
		int64_t waits = waits_and_allocations();

		for (int i = 0; i < NUM_OPERATIONS; i++) {
			int64_t launches = standin_calls(STANDIN_cudaLaunchKernel);

			ck_assert_int_eq(operate(&f, &o, i), QUIRE_OK);
			launches = standin_calls(STANDIN_cudaLaunchKernel) - launches;
			ck_assert_int_eq(launches, wanted[i]);
		}
		if (turn == 1)
			ck_assert_int_eq(waits_and_allocations(), waits);
	}
	ck_assert_int_eq(quire_dstream_synchronize(f.dstream, NULL), QUIRE_OK);
	fixture_end(&f);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("cuda_moves");
	TCase *tcase = tcase_create("stand-in");

	exact_prepare();
	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, what_does_not_fit_a_grid_is_reached_too);
	tcase_add_test(tcase, pages_that_do_not_fit_a_grid_are_copied_whole);
	tcase_add_test(tcase, any_scratch_will_do_and_marks_are_taken_off_again);
	tcase_add_test(tcase, lists_are_read_when_the_operation_runs);
	tcase_add_test(tcase, each_operation_is_a_few_launches_and_waits_for_nothing);
	return run_suite(suite);
}
