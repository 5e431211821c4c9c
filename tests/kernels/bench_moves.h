/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_TESTS_KERNELS_BENCH_MOVES_H
#define QUIRE_TESTS_KERNELS_BENCH_MOVES_H
/*
 * Moves of many bytes to be timed: the cache's own, and plain copies of as many.
 *
 * The cache is 512 MiB on huge pages, in four layers of pages of 16 tokens.  Its slots and
 * pages are used in turn, none again before most others, so those of a move are in no
 * cache of the machine.  The rows on the other side are the same in every move.
 */
#include <quire/kernels/cache.h>

#include <stdbool.h>
#include <stdint.h>

#define BENCH_CACHE_BYTES (INT64_C(512) << 20)
#define BENCH_LAYERS      4
#define BENCH_PAGE_TOKENS 16

/* A move is repeated until so many bytes have been moved. */
#define BENCH_SAMPLE_BYTES (INT64_C(16) << 20)

/* The largest move; f32 rows of it take twice as much. */
#define BENCH_MOVE_BYTES_MAX (INT64_C(64) << 20)

#define BENCH_THREADS_MAX 2

struct bench_task {
	enum quire_layout layout;
	int64_t row_bytes; /* K or V of a token; elements are of 2 bytes */
	int64_t n;         /* tokens or pages of a move */
	int threads;       /* 1 or 2 */
	bool in_runs;      /* whole pages, or slots all over the cache */
};

enum bench_way {
	BENCH_MEMCPY_IN,  /* one memcpy to somewhere in the cache */
	BENCH_WRITE,      /* write_tokens, bf16 to bf16 */
	BENCH_WRITE_F32,  /* write_tokens, f32 to bf16 */
	BENCH_MEMCPY_OUT, /* one memcpy from somewhere in the cache */
	BENCH_READ,       /* read_tokens */
	BENCH_BLOCKS,     /* memcpy of each page of each layer */
	BENCH_BLOCKS_NT,  /* the same with non-temporal stores */
	BENCH_COPY_PAGES, /* copy_pages */
	BENCH_WAYS,
};

struct bench;

/* bench_new - NULL: no memory; end it with bench_end */
struct bench *bench_new(void);

/* bench_end - @bench: given; false: some operation had failed */
bool bench_end(struct bench *bench);

/* bench_move_bytes - of one move of a task, in the cache */
int64_t bench_move_bytes(const struct bench_task *task, bool of_pages);

/* bench_prepare - begin with another task; false: the cache has not so much */
bool bench_prepare(struct bench *bench, const struct bench_task *task, bool of_pages);

/* bench_sample - ns per move of the task, one way; waits until all is done */
double bench_sample(struct bench *bench, enum bench_way way);

/* bench_bare_rows_ns - two memcpy of a row, K and V of one token
 * that is in the cache of the core */
double bench_bare_rows_ns(struct bench *bench);

/* bench_call_ns - one write_tokens of the same on cpu:inline; @n: 0 or 1 tokens */
double bench_call_ns(struct bench *bench, int64_t n);

/* bench_round_trip_ns - record on a device stream to synchronize: to another thread and
 * back */
double bench_round_trip_ns(struct bench *bench);

#endif
