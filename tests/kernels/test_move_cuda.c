/* SPDX-License-Identifier: MIT */
/* The CUDA kernels, compiled as C++ for a stand-in, against the CPU's. */
#include "config.h"

#include "kernels/device_cpu_impl.h"
#include "kernels/move_cuda_impl.h"
#include "tests/kernels/naive_cache.h"
#include "tests/run_suite.h"

#include <check.h>

#define ROUNDS 300

/* Two storages of one shape with the same bytes, equally far past a multiple of 16. */
struct pair {
	struct quire_shape shape;
	struct quire_geometry geometry;
	char *blocks[2];
	char *cpu;
	char *cuda;
};

static char *shifted_block(char **block, int64_t bytes, int shift)
{
	*block = aligned_alloc(16, ((size_t)bytes + 16 + 15) / 16 * 16);
	return *block + shift;
}

static void set_up(struct pair *p, uint64_t *seed)
{
	int shift = 4 * random_in(seed, 0, 3);

	p->shape = any_shape(seed);
	ck_assert_int_eq(quire_geometry_init(&p->shape, &p->geometry, NULL), QUIRE_OK);
	p->cpu = shifted_block(&p->blocks[0], p->geometry.nbytes, shift);
	p->cuda = shifted_block(&p->blocks[1], p->geometry.nbytes, shift);
	any_bytes(seed, p->cpu, (size_t)p->geometry.nbytes);
	memcpy(p->cuda, p->cpu, (size_t)p->geometry.nbytes);
}

static void tear_down(struct pair *p)
{
	free(p->blocks[0]);
	free(p->blocks[1]);
}

static void expect_same(const struct pair *p, int round)
{
	if (memcmp(p->cpu, p->cuda, (size_t)p->geometry.nbytes) != 0)
		ck_abort_msg("round %d: %d heads of %d, page size %d", round,
		             (int)p->shape.num_kv_heads, (int)p->shape.head_dim,
		             (int)p->shape.page_size);
}

START_TEST(tokens_are_written_as_on_the_cpu)
{
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t seed = (uint64_t)round;
		struct quire_token_move move = {.k = NULL};
		struct quire_refusal refusal;
		struct any_slots any;
		char *blocks[2];
		int64_t bytes;
		struct pair p;
		char *k;
		char *v;

		set_up(&p, &seed);
		any_slots(&seed, &p.shape, &any);
		move.dtype = (enum quire_dtype)random_in(&seed, 0, QUIRE_DTYPE_COUNT - 1);
		bytes = any.slots.n * p.geometry.token_stride *
		        quire_dtype_bytes(move.dtype);
		k = shifted_block(&blocks[0], bytes, 4 * random_in(&seed, 0, 3));
		v = shifted_block(&blocks[1], bytes, 4 * random_in(&seed, 0, 3));
		any_bytes(&seed, k, (size_t)bytes);
		any_bytes(&seed, v, (size_t)bytes);
		move.geometry = &p.geometry;
		move.slots = any.slots;
		move.layer = random_in(&seed, 0, (int32_t)p.shape.num_layers - 1);
		move.k = k;
		move.v = v;
		move.storage = p.cpu;
		ck_assert_int_eq(quire_cpu_run_write_tokens(&move, &refusal), QUIRE_OK);
		move.storage = p.cuda;
		ck_assert_int_eq(quire_cuda_write_tokens(&move, NULL), 0);
		expect_same(&p, round);
		free(blocks[0]);
		free(blocks[1]);
		tear_down(&p);
	}
}
END_TEST

START_TEST(tokens_are_read_as_on_the_cpu)
{
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t seed = (uint64_t)round + 1000;
		struct quire_token_move move = {.k = NULL};
		struct quire_refusal refusal;
		struct any_slots any;
		char *blocks[2];
		int64_t bytes;
		struct pair p;
		char *cpu_out;
		char *cuda_out;
		int shift;

		set_up(&p, &seed);
		any_slots(&seed, &p.shape, &any);
		shift = 4 * random_in(&seed, 0, 3);
		bytes = any.slots.n * 2 * p.geometry.row_bytes;
		cpu_out = shifted_block(&blocks[0], bytes, shift);
		cuda_out = shifted_block(&blocks[1], bytes, shift);
		memset(cpu_out, 0, (size_t)bytes);
		memset(cuda_out, 1, (size_t)bytes);
		move.geometry = &p.geometry;
		move.slots = any.slots;
		move.layer = random_in(&seed, 0, (int32_t)p.shape.num_layers - 1);
		move.storage = p.cpu;
		move.out = cpu_out;
		ck_assert_int_eq(quire_cpu_run_read_tokens(&move, &refusal), QUIRE_OK);
		move.out = cuda_out;
		ck_assert_int_eq(quire_cuda_read_tokens(&move, NULL), 0);
		ck_assert_msg(memcmp(cpu_out, cuda_out, (size_t)bytes) == 0, "round %d",
		              round);
		expect_same(&p, round);
		free(blocks[0]);
		free(blocks[1]);
		tear_down(&p);
	}
}
END_TEST

START_TEST(pages_are_copied_as_on_the_cpu)
{
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t seed = (uint64_t)round + 2000;
		struct cpu_scratch scratch = {NULL, 0};
		struct quire_page_move move = {.n = 0};
		struct quire_refusal refusal;
		bool staged = round % 3 != 0;
		int32_t source[12];
		int32_t target[12];
		char *saved = NULL;
		int64_t saved_bytes;
		struct pair p;

		set_up(&p, &seed);
		any_pages(&seed, &p.shape, target);
		move.n = random_in(&seed, 0,
		                   (int32_t)p.shape.num_pages / (staged ? 1 : 2));
		/* Straight copies take their sources from pages that are no target. */
		for (int64_t i = 0; i < move.n; i++)
			source[i] = staged ? random_in(&seed, 0,
			                               (int32_t)p.shape.num_pages - 1)
			                   : target[p.shape.num_pages - 1 - i];
		move.geometry = &p.geometry;
		move.source = source;
		move.target = target;
		move.storage = p.cpu;
		ck_assert_int_eq(quire_cpu_run_copy_pages(&move, &scratch, &refusal),
		                 QUIRE_OK);
		saved_bytes = QUIRE_CUDA_SCRATCH_MIN(move.n) * random_in(&seed, 1, 5);
		if (staged)
			saved = aligned_alloc(16, (size_t)saved_bytes + 16);
		move.storage = p.cuda;
		ck_assert_int_eq(quire_cuda_copy_pages(&move, saved, saved_bytes, NULL),
		                 0);
		expect_same(&p, round);
		free(saved);
		free(scratch.memory);
		tear_down(&p);
	}
}
END_TEST

START_TEST(rows_and_columns_beyond_the_grid_are_reached)
{
	/* 70,000 columns of 16 bytes, of which 64 * 256 fit a grid; 40,000 rows, of which
	 * 32,768 do. */
	const struct quire_shape shapes[] = {
		{QUIRE_NHD, QUIRE_F32, 1, 2, 1, 1, 280000},
		{QUIRE_NHD, QUIRE_F16, 1, 2, 20000, 1, 129},
	};
	static int32_t pages[] = {1, 0};

	for (int i = 0; i < 2; i++) {
		struct quire_geometry geometry;
		struct quire_token_move move = {.dtype = shapes[i].dtype};
		uint64_t seed = 9;
		char *storage;
		char *out;
		char *k;
		char *v;

		ck_assert_int_eq(quire_geometry_init(&shapes[i], &geometry, NULL),
		                 QUIRE_OK);
		storage = calloc(1, (size_t)geometry.nbytes);
		out = calloc(1, (size_t)geometry.nbytes);
		k = malloc((size_t)geometry.nbytes / 2);
		v = malloc((size_t)geometry.nbytes / 2);
		any_bytes(&seed, k, (size_t)geometry.nbytes / 2);
		any_bytes(&seed, v, (size_t)geometry.nbytes / 2);
		move.geometry = &geometry;
		move.storage = storage;
		move.slots =
			(struct quire_slots){pages, NULL, 0, 2 * shapes[i].page_size};
		move.k = k;
		move.v = v;
		move.out = out;
		ck_assert_int_eq(quire_cuda_write_tokens(&move, NULL), 0);
		/* Page 1 holds the first half of the tokens; within a page K stands
		 * before V. */
		ck_assert(memcmp(storage + geometry.nbytes / 2, k,
		                 (size_t)geometry.nbytes / 4) == 0);
		ck_assert(memcmp(storage + geometry.nbytes / 4, v + geometry.nbytes / 4,
		                 (size_t)geometry.nbytes / 4) == 0);
		ck_assert_int_eq(quire_cuda_read_tokens(&move, NULL), 0);
		for (int64_t row = 0; row < move.slots.n; row++) {
			const char *got = out + 2 * row * geometry.row_bytes;
			size_t bytes = (size_t)geometry.row_bytes;

			if (memcmp(got, k + row * geometry.row_bytes, bytes) != 0 ||
			    memcmp(got + bytes, v + row * geometry.row_bytes, bytes) != 0)
				ck_abort_msg("row %ld differs", (long)row);
		}
		free(v);
		free(k);
		free(out);
		free(storage);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("move_cuda");
	TCase *tcase = tcase_create("stand-in");

	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, tokens_are_written_as_on_the_cpu);
	tcase_add_test(tcase, tokens_are_read_as_on_the_cpu);
	tcase_add_test(tcase, pages_are_copied_as_on_the_cpu);
	tcase_add_test(tcase, rows_and_columns_beyond_the_grid_are_reached);
	return run_suite(suite);
}
