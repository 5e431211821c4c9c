/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_KERNELS_GRID_CUDA_IMPL_H
#define QUIRE_KERNELS_GRID_CUDA_IMPL_H
/*
 * What the kernels of move.cu and pages.cu share.
 *
 * Work is a grid of three ranges, each with a stride over what is left: x takes rows (a
 * slot, or a pair of pages), y columns (a unit of 16, 4 or 1 bytes, or a few elements)
 * and z planes (a chunk, and for pages a layer too).  One launch serves all of a call.
 *
 * All kernels take one struct and are launched by cudaLaunchKernel, and threads of one
 * kernel never wait for each other, so a plain C++ compiler can build and run them.
 */
#include <cuda_runtime.h>

#include "kernels/move_cuda_impl.h"

#define THREADS           256
#define ROW_BLOCKS_MAX    32768
#define COLUMN_BLOCKS_MAX 64
#define PLANE_BLOCKS_MAX  4096
#define ITEM_BLOCKS_MAX   1024

struct quire_cuda_move {
	struct quire_cuda_lane lane;
	struct quire_geometry geometry;
	char *storage;
	int64_t rows;
	int64_t columns;
	int64_t planes;
	/* write_tokens, read_tokens */
	int64_t layer;
	struct quire_slots slots;
	const char *row[2];
	enum quire_dtype dtype;
	char *out;
	/* copy_pages */
	const int32_t *source;
	const int32_t *target;
	const int32_t *end;
	int64_t n;
	int64_t chunks;        /* planes of a layer */
	int64_t token_columns; /* columns of one token in a chunk */
	struct quire_cuda_room room;
	int64_t scratch_threads; /* as many have a place in the scratch */
	/* follow */
	const struct quire_cuda_fault *leader;
	int64_t last;
};

#define FOR_PLANES(plane, move) \
	for (int64_t plane = blockIdx.z; plane < (move)->planes; plane += gridDim.z)

#define FOR_ROWS(row, move)                                                \
	for (int64_t row = (int64_t)blockIdx.x * blockDim.y + threadIdx.y; \
	     row < (move)->rows; row += (int64_t)gridDim.x * blockDim.y)

#define FOR_COLUMNS(column, columns)                                          \
	for (int64_t column = (int64_t)blockIdx.y * blockDim.x + threadIdx.x; \
	     column < (columns); column += (int64_t)gridDim.y * blockDim.x)

/* Of kernels on lists alone, whose grid has one dimension. */
#define FOR_ITEMS(i, n)                                                           \
	for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < (n); \
	     i += (int64_t)gridDim.x * blockDim.x)

/* Units that a thread has on the way at once. */
#define UNROLL 4

/* Copy the units of one row of one plane; source and target do not overlap. */
template <typename Unit>
static inline __device__ void copy_columns(Unit *__restrict__ target,
                                           const Unit *__restrict__ source,
                                           int64_t columns)
{
	int64_t stride = (int64_t)gridDim.y * blockDim.x;
	int64_t column = (int64_t)blockIdx.y * blockDim.x + threadIdx.x;

	for (; column + (UNROLL - 1) * stride < columns; column += UNROLL * stride) {
		Unit units[UNROLL];

		for (int u = 0; u < UNROLL; u++)
			units[u] = source[column + u * stride];
		for (int u = 0; u < UNROLL; u++)
			target[column + u * stride] = units[u];
	}
	for (; column < columns; column += stride)
		target[column] = source[column];
}

/* ------------------------------------------------------------------ faults */

/* A word that others than this stream's operations read: the host, other streams.  What
 * was written before is seen by whoever reads it with acquire. */
static inline __device__ void store_release(uint32_t *word, uint32_t value)
{
#ifdef __CUDACC__
	__threadfence_system();
	*(volatile uint32_t *)word = value;
#else
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
#endif
}

static inline __device__ uint32_t load_acquire(const uint32_t *word)
{
#ifdef __CUDACC__
	uint32_t value = *(const volatile uint32_t *)word;

	__threadfence_system();
	return value;
#else
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
#endif
}

static inline __device__ bool has_failed(const struct quire_cuda_move *move)
{
	return move->lane.guarded && move->lane.state->fault.status != QUIRE_OK;
}

static inline __device__ void leave_fault(struct quire_cuda_fault *place,
                                          const struct quire_cuda_fault *fault)
{
	place->what = fault->what;
	place->position = fault->position;
	place->index = fault->index;
	place->got = fault->got;
	place->expected = fault->expected;
	store_release(&place->status, fault->status);
}

/* ------------------------------------------------------------------ checks */

/*
 * Checks of one operation have ranks, in the order in which a device that looks one after
 * the other would come to them; the first that fails is what is told.  Ranks of a list of
 * n slots: pages 0 .. n - 1, offsets n .. 2n - 1; of a stream's slots: the place in its
 * list of pages.  Ranks of n pairs: source, target and end of pair i are 3i, 3i + 1 and
 * 3i + 2; 3n + i says that its target was named before.
 */
#define RANKS_END (1ULL << 62)

static inline __device__ void note_fault(const struct quire_cuda_move *move, int64_t rank)
{
	atomicMax(&move->lane.state->first_fault, RANKS_END - (unsigned long long)rank);
}

static inline __device__ bool is_outside(int32_t value, int64_t bound)
{
	return value < 0 || value >= bound;
}

/* A single thread, behind the checks: a fault fails the stream. */
static inline __device__ void judge(const struct quire_cuda_move *move, uint32_t what,
                                    int64_t index, int32_t got, int64_t bound)
{
	struct quire_cuda_fault fault = {};

	fault.status = QUIRE_INVALID;
	fault.what = what;
	fault.position = move->lane.position;
	fault.index = index;
	fault.got = got;
	fault.expected = got < 0 ? 0 : bound - 1;
	leave_fault(&move->lane.state->fault, &fault);
	leave_fault(move->lane.report, &fault);
}

/* ------------------------------------------------------------------ launches */

typedef void (*move_kernel)(struct quire_cuda_move move);

/* Bytes of a unit: the kernels are made for each. */
static const int64_t unit_bytes[] = {16, 4, 1};

/* The widest unit that divides all sizes and addresses, given joined by `or`. */
static inline int widest_unit(uint64_t sizes)
{
	int unit = 0;

	while (sizes % (uint64_t)unit_bytes[unit] != 0)
		unit++;
	return unit;
}

static inline unsigned blocks(int64_t count, unsigned each, int64_t max)
{
	int64_t needed = (count + each - 1) / each;

	return (unsigned)(needed < max ? needed : max);
}

static inline int launch_on(const struct quire_cuda_move *move, move_kernel kernel,
                            dim3 grid, dim3 block)
{
	void *arguments[] = {(void *)move};

	return cudaLaunchKernel((const void *)kernel, grid, block, arguments, 0,
	                        (cudaStream_t)move->lane.stream);
}

/* A kernel on rows, columns and planes. */
static inline int launch(const struct quire_cuda_move *move, move_kernel kernel)
{
	unsigned wide = move->columns < THREADS ? (unsigned)move->columns : THREADS;
	dim3 block(wide, THREADS / wide, 1);
	dim3 grid(blocks(move->rows, block.y, ROW_BLOCKS_MAX),
	          blocks(move->columns, wide * UNROLL, COLUMN_BLOCKS_MAX),
	          blocks(move->planes, 1, PLANE_BLOCKS_MAX));

	return launch_on(move, kernel, grid, block);
}

/* A kernel on a list of n. */
static inline int launch_items(const struct quire_cuda_move *move, move_kernel kernel)
{
	dim3 block(THREADS, 1, 1);
	dim3 grid(blocks(move->n, THREADS, ITEM_BLOCKS_MAX), 1, 1);

	return launch_on(move, kernel, grid, block);
}

static inline int launch_one(const struct quire_cuda_move *move, move_kernel kernel)
{
	return launch_on(move, kernel, dim3(1, 1, 1), dim3(1, 1, 1));
}

#endif
