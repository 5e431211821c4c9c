/* SPDX-License-Identifier: MIT */
/*
 * CUDA kernels of write_tokens, read_tokens and copy_pages.
 *
 * Work is a grid of rows and columns: threads of y take rows (a slot, or a pair of
 * pages), those of x take columns (a unit of 16, 4 or 2 bytes, or an element), both
 * striding over what is left.  All kernels take one struct and are launched by
 * cudaLaunchKernel.
 */
#include <cuda_runtime.h>

#include "kernels/move_cuda_impl.h"

#include "kernels/dtype_impl.h"

#define THREADS           256
#define ROW_BLOCKS_MAX    32768
#define COLUMN_BLOCKS_MAX 64

struct quire_cuda_move {
	struct quire_geometry geometry;
	char *storage;
	int64_t rows;
	int64_t columns;
	/* write_tokens, read_tokens */
	int64_t layer;
	struct quire_slots slots;
	const char *k;
	const char *v;
	enum quire_dtype dtype;
	char *out;
	/* copy_pages; a staged one moves `columns` of a layer from first_column on */
	const int32_t *source;
	const int32_t *target;
	int64_t n;
	char *scratch;
	int64_t first_column;
};

#define FOR_ROWS(row, move)                                                \
	for (int64_t row = (int64_t)blockIdx.x * blockDim.y + threadIdx.y; \
	     row < (move).rows; row += (int64_t)gridDim.x * blockDim.y)

#define FOR_COLUMNS(column, move)                                             \
	for (int64_t column = (int64_t)blockIdx.y * blockDim.x + threadIdx.x; \
	     column < (move).columns; column += (int64_t)gridDim.y * blockDim.x)

/* Where column 0 of row `row` is in an array of rows that stand one behind the other. */
template <typename Unit>
static __device__ Unit *unit_row(char *base, int64_t row, int64_t columns)
{
	return (Unit *)base + row * columns;
}

template <typename Unit>
static __device__ const Unit *unit_row(const char *base, int64_t row, int64_t columns)
{
	return (const Unit *)base + row * columns;
}

template <typename Unit> static __global__ void write_units(struct quire_cuda_move move)
{
	FOR_ROWS(i, move)
	{
		const struct quire_geometry *geometry = &move.geometry;
		Unit *k = (Unit *)(move.storage + quire_slot_offset(geometry, &move.slots,
		                                                    move.layer, i, 0));
		Unit *v = (Unit *)(move.storage + quire_slot_offset(geometry, &move.slots,
		                                                    move.layer, i, 1));

		FOR_COLUMNS(column, move)
		{
			k[column] = unit_row<Unit>(move.k, i, move.columns)[column];
			v[column] = unit_row<Unit>(move.v, i, move.columns)[column];
		}
	}
}

template <typename Unit> static __global__ void read_units(struct quire_cuda_move move)
{
	FOR_ROWS(i, move)
	{
		const struct quire_geometry *geometry = &move.geometry;
		const Unit *k = (const Unit *)(move.storage +
		                               quire_slot_offset(geometry, &move.slots,
		                                                 move.layer, i, 0));
		const Unit *v = (const Unit *)(move.storage +
		                               quire_slot_offset(geometry, &move.slots,
		                                                 move.layer, i, 1));

		FOR_COLUMNS(column, move)
		{
			unit_row<Unit>(move.out, 2 * i, move.columns)[column] = k[column];
			unit_row<Unit>(move.out, 2 * i + 1, move.columns)[column] =
				v[column];
		}
	}
}

static __device__ float element_load(const char *base, enum quire_dtype dtype, int64_t i)
{
	if (dtype == QUIRE_F32)
		return ((const float *)base)[i];
	if (dtype == QUIRE_F16)
		return quire_f32_of_f16(((const uint16_t *)base)[i]);
	return quire_f32_of_bf16(((const uint16_t *)base)[i]);
}

static __device__ void element_store(char *base, enum quire_dtype dtype, int64_t i,
                                     float value)
{
	if (dtype == QUIRE_F32)
		((float *)base)[i] = value;
	else if (dtype == QUIRE_F16)
		((uint16_t *)base)[i] = quire_f16_of_f32(value);
	else
		((uint16_t *)base)[i] = quire_bf16_of_f32(value);
}

/* write_tokens between two dtypes; columns are elements. */
static __global__ void write_elements(struct quire_cuda_move move)
{
	FOR_ROWS(i, move)
	{
		const struct quire_geometry *geometry = &move.geometry;
		char *k = move.storage +
		          quire_slot_offset(geometry, &move.slots, move.layer, i, 0);
		char *v = move.storage +
		          quire_slot_offset(geometry, &move.slots, move.layer, i, 1);

		FOR_COLUMNS(column, move)
		{
			int64_t from = i * move.columns + column;

			element_store(k, geometry->dtype, column,
			              element_load(move.k, move.dtype, from));
			element_store(v, geometry->dtype, column,
			              element_load(move.v, move.dtype, from));
		}
	}
}

static __device__ char *page_at(const struct quire_cuda_move *move, int64_t layer,
                                int32_t page)
{
	return move->storage + quire_geometry_offset(&move->geometry, layer, page, 0, 0);
}

/* Straight from page to page; a row is one pair in one layer. */
template <typename Unit> static __global__ void copy_units(struct quire_cuda_move move)
{
	FOR_ROWS(row, move)
	{
		int64_t layer = row / move.n;
		int64_t i = row % move.n;
		const Unit *source = (const Unit *)page_at(&move, layer, move.source[i]);
		Unit *target = (Unit *)page_at(&move, layer, move.target[i]);

		FOR_COLUMNS(column, move)
		target[column] = source[column];
	}
}

/* A part of every source page into the scratch. */
template <typename Unit> static __global__ void save_units(struct quire_cuda_move move)
{
	FOR_ROWS(i, move)
	{
		const Unit *source =
			(const Unit *)page_at(&move, move.layer, move.source[i]);
		Unit *saved = unit_row<Unit>(move.scratch, i, move.columns);

		FOR_COLUMNS(column, move)
		saved[column] = source[move.first_column + column];
	}
}

/* The saved part into every target page. */
template <typename Unit> static __global__ void restore_units(struct quire_cuda_move move)
{
	FOR_ROWS(i, move)
	{
		const Unit *saved = unit_row<Unit>(move.scratch, i, move.columns);
		Unit *target = (Unit *)page_at(&move, move.layer, move.target[i]);

		FOR_COLUMNS(column, move)
		target[move.first_column + column] = saved[column];
	}
}

typedef void (*move_kernel)(struct quire_cuda_move move);

/* One of each kind for units of 16, 4 and 2 bytes. */
static const move_kernel write_kernels[] = {write_units<uint4>, write_units<uint32_t>,
                                            write_units<uint16_t>};
static const move_kernel read_kernels[] = {read_units<uint4>, read_units<uint32_t>,
                                           read_units<uint16_t>};
static const move_kernel copy_kernels[] = {copy_units<uint4>, copy_units<uint32_t>,
                                           copy_units<uint16_t>};
static const move_kernel save_kernels[] = {save_units<uint4>, save_units<uint32_t>,
                                           save_units<uint16_t>};
static const move_kernel restore_kernels[] = {
	restore_units<uint4>, restore_units<uint32_t>, restore_units<uint16_t>};

static const int64_t unit_bytes[] = {16, 4, 2};

/* The widest unit that divides all sizes and addresses, given joined by `or`. */
static int widest_unit(uint64_t sizes)
{
	int unit = 0;

	while (unit < 2 && sizes % (uint64_t)unit_bytes[unit] != 0)
		unit++;
	return unit;
}

static int64_t at_most(int64_t value, int64_t max)
{
	return value < max ? value : max;
}

static int launch(move_kernel kernel, const struct quire_cuda_move *move, void *stream)
{
	void *arguments[] = {(void *)move};
	unsigned wide = 1;
	dim3 block;
	dim3 grid;

	if (move->rows == 0)
		return cudaSuccess;
	while (wide < THREADS && wide < move->columns)
		wide *= 2;
	block.x = wide;
	block.y = THREADS / wide;
	grid.x = (unsigned)at_most((move->rows + block.y - 1) / block.y, ROW_BLOCKS_MAX);
	grid.y = (unsigned)at_most((move->columns + block.x - 1) / block.x,
	                           COLUMN_BLOCKS_MAX);
	return cudaLaunchKernel((const void *)kernel, grid, block, arguments, 0,
	                        (cudaStream_t)stream);
}

static struct quire_cuda_move of_tokens(const struct quire_token_move *tokens)
{
	struct quire_cuda_move move = {};

	move.geometry = *tokens->geometry;
	move.storage = tokens->storage;
	move.rows = tokens->slots.n;
	move.layer = tokens->layer;
	move.slots = tokens->slots;
	move.k = tokens->k;
	move.v = tokens->v;
	move.dtype = tokens->dtype;
	move.out = tokens->out;
	return move;
}

extern "C" int quire_cuda_write_tokens(const struct quire_token_move *tokens,
                                       void *stream)
{
	struct quire_cuda_move move = of_tokens(tokens);
	int unit =
		widest_unit((uint64_t)move.geometry.row_bytes | (uint64_t)move.storage |
	                    (uint64_t)move.k | (uint64_t)move.v);

	if (move.dtype != move.geometry.dtype) {
		move.columns = move.geometry.token_stride;
		return launch(write_elements, &move, stream);
	}
	move.columns = move.geometry.row_bytes / unit_bytes[unit];
	return launch(write_kernels[unit], &move, stream);
}

extern "C" int quire_cuda_read_tokens(const struct quire_token_move *tokens, void *stream)
{
	struct quire_cuda_move move = of_tokens(tokens);
	int unit = widest_unit((uint64_t)move.geometry.row_bytes |
	                       (uint64_t)move.storage | (uint64_t)move.out);

	move.columns = move.geometry.row_bytes / unit_bytes[unit];
	return launch(read_kernels[unit], &move, stream);
}

/* Through the scratch: a part of all sources is saved, then written to all targets. */
static int copy_staged(struct quire_cuda_move *move, int unit, int64_t scratch_bytes,
                       void *stream)
{
	int64_t columns = move->columns;
	int64_t part = at_most(scratch_bytes / (move->n * unit_bytes[unit]), columns);
	int error = cudaSuccess;

	move->rows = move->n;
	for (move->layer = 0; move->layer < move->geometry.num_layers; move->layer++) {
		for (int64_t first = 0; first < columns && error == cudaSuccess;
		     first += part) {
			move->first_column = first;
			move->columns = at_most(part, columns - first);
			error = launch(save_kernels[unit], move, stream);
			if (error == cudaSuccess)
				error = launch(restore_kernels[unit], move, stream);
		}
	}
	return error;
}

extern "C" int quire_cuda_copy_pages(const struct quire_page_move *pages, void *scratch,
                                     int64_t scratch_bytes, void *stream)
{
	struct quire_cuda_move move = {};
	int64_t page_bytes =
		pages->geometry->page_stride * pages->geometry->element_bytes;
	int unit = widest_unit((uint64_t)page_bytes | (uint64_t)pages->storage);

	move.geometry = *pages->geometry;
	move.storage = pages->storage;
	move.rows = pages->n * move.geometry.num_layers;
	move.columns = page_bytes / unit_bytes[unit];
	move.source = pages->source;
	move.target = pages->target;
	move.n = pages->n;
	move.scratch = (char *)scratch;
	if (pages->n == 0 || scratch == NULL)
		return launch(copy_kernels[unit], &move, stream);
	return copy_staged(&move, unit, scratch_bytes, stream);
}
