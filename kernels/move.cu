/* SPDX-License-Identifier: MIT */
/* CUDA kernels of write_tokens, read_tokens, and a stream that follows another. */
#include "kernels/grid_cuda_impl.h"

#include "kernels/dtype_impl.h"

/* Elements that a thread converts where alignment allows: 16 bytes of a 2-byte dtype. */
#define ELEMENTS 8

static __global__ void follow(struct quire_cuda_move move)
{
	struct quire_cuda_fault fault = {};

	if (move.leader == NULL || has_failed(&move))
		return;
	fault.status = load_acquire(&move.leader->status);
	if (fault.status == QUIRE_OK || move.leader->position > move.last)
		return;
	if (move.leader == move.lane.report) {
		fault.what = move.leader->what;
		fault.position = move.leader->position;
		leave_fault(&move.lane.state->fault, &fault);
		return;
	}
	fault.what = QUIRE_CUDA_WAITED;
	fault.position = move.lane.position;
	leave_fault(&move.lane.state->fault, &fault);
	leave_fault(move.lane.report, &fault);
}

/* Pages that a stream's slots name begin at this place of its list. */
static __device__ int64_t first_page(const struct quire_cuda_move *move)
{
	return move->slots.offset != NULL ? 0
	                                  : move->slots.first / move->geometry.page_size;
}

static __global__ void check_slots(struct quire_cuda_move move)
{
	int64_t first = first_page(&move);

	if (has_failed(&move))
		return;
	FOR_ITEMS(i, move.n)
	{
		if (is_outside(move.slots.page[first + i], move.geometry.num_pages))
			note_fault(&move, first + i);
		if (move.slots.offset != NULL &&
		    is_outside(move.slots.offset[i], move.geometry.page_size))
			note_fault(&move, move.n + i);
	}
}

static __global__ void judge_slots(struct quire_cuda_move move)
{
	int64_t rank = (int64_t)(RANKS_END - move.lane.state->first_fault);

	if (has_failed(&move) || move.lane.state->first_fault == 0)
		return;
	if (move.slots.offset == NULL || rank < move.n)
		judge(&move, QUIRE_CUDA_PAGE, rank, move.slots.page[rank],
		      move.geometry.num_pages);
	else
		judge(&move, QUIRE_CUDA_OFFSET, rank - move.n,
		      move.slots.offset[rank - move.n], move.geometry.page_size);
}

template <typename Unit> static __global__ void write_units(struct quire_cuda_move move)
{
	if (has_failed(&move))
		return;
	FOR_PLANES(chunk, &move)
	{
		int64_t pieces = move.geometry.pieces;
		int64_t kv = chunk >= pieces;

		FOR_ROWS(i, &move)
		{
			struct quire_place place =
				quire_slot_place(&move.slots, move.geometry.page_size, i);
			Unit *target = (Unit *)(move.storage +
			                        quire_geometry_offset(
							&move.geometry, move.layer,
							place.page, chunk, place.token));
			const Unit *source =
				(const Unit *)move.row[kv] +
				(i * pieces + chunk - kv * pieces) * move.columns;

			copy_columns(target, source, move.columns);
		}
	}
}

template <typename Unit> static __global__ void read_units(struct quire_cuda_move move)
{
	if (has_failed(&move))
		return;
	FOR_PLANES(chunk, &move)
	{
		FOR_ROWS(i, &move)
		{
			struct quire_place place =
				quire_slot_place(&move.slots, move.geometry.page_size, i);
			const Unit *source =
				(const Unit *)(move.storage +
			                       quire_geometry_offset(
						       &move.geometry, move.layer,
						       place.page, chunk, place.token));
			Unit *target = (Unit *)move.out +
			               (i * move.planes + chunk) * move.columns;

			copy_columns(target, source, move.columns);
		}
	}
}

/* N elements, read and written in units of up to 16 bytes. */
template <typename Element, int N>
struct alignas(sizeof(Element) * N < 16 ? sizeof(Element) * N : 16) elements {
	Element at[N];
};

template <int N>
static __device__ void load_elements(float *values, const char *base,
                                     enum quire_dtype dtype, int64_t column)
{
	if (dtype == QUIRE_F32) {
		elements<float, N> wide = ((const elements<float, N> *)base)[column];

		for (int e = 0; e < N; e++)
			values[e] = wide.at[e];
		return;
	}
	elements<uint16_t, N> half = ((const elements<uint16_t, N> *)base)[column];

	for (int e = 0; e < N; e++)
		values[e] = dtype == QUIRE_F16 ? quire_f32_of_f16(half.at[e])
		                               : quire_f32_of_bf16(half.at[e]);
}

template <typename Element, int N>
static __device__ void store_elements(char *base, int64_t column, const float *values,
                                      Element (*convert)(float value))
{
	elements<Element, N> narrow;

	for (int e = 0; e < N; e++)
		narrow.at[e] = convert(values[e]);
	((elements<Element, N> *)base)[column] = narrow;
}

template <int N>
static __device__ void convert_elements(char *base, enum quire_dtype dtype,
                                        int64_t column, const float *values)
{
	switch (dtype) {
	case QUIRE_F32:
		store_elements<float, N>(base, column, values, quire_f32_of_f32);
		break;
	case QUIRE_F16:
		store_elements<uint16_t, N>(base, column, values, quire_f16_of_f32);
		break;
	case QUIRE_BF16:
		store_elements<uint16_t, N>(base, column, values, quire_bf16_of_f32);
		break;
	case QUIRE_FP8_E4M3:
		store_elements<uint8_t, N>(base, column, values, quire_fp8_e4m3_of_f32);
		break;
	case QUIRE_FP8_E5M2:
		store_elements<uint8_t, N>(base, column, values, quire_fp8_e5m2_of_f32);
		break;
	}
}

/* write_tokens between two dtypes; a column is N elements. */
template <int N> static __global__ void write_elements(struct quire_cuda_move move)
{
	int64_t pieces = move.geometry.pieces;
	int64_t piece_bytes = move.columns * N *
	                      (move.dtype == QUIRE_F32 ? (int64_t)sizeof(float)
	                                               : (int64_t)sizeof(uint16_t));

	if (has_failed(&move))
		return;
	FOR_PLANES(chunk, &move)
	{
		int64_t kv = chunk >= pieces;

		FOR_ROWS(i, &move)
		{
			struct quire_place place =
				quire_slot_place(&move.slots, move.geometry.page_size, i);
			char *target =
				move.storage +
				quire_geometry_offset(&move.geometry, move.layer,
			                              place.page, chunk, place.token);
			const char *source =
				move.row[kv] +
				(i * pieces + chunk - kv * pieces) * piece_bytes;

			FOR_COLUMNS(column, move.columns)
			{
				float values[N];

				load_elements<N>(values, source, move.dtype, column);
				convert_elements<N>(target, move.geometry.dtype, column,
				                    values);
			}
		}
	}
}

static const move_kernel write_kernels[] = {write_units<uint4>, write_units<uint32_t>,
                                            write_units<uint8_t>};
static const move_kernel read_kernels[] = {read_units<uint4>, read_units<uint32_t>,
                                           read_units<uint8_t>};

static struct quire_cuda_move of_tokens(const struct quire_cuda_lane *lane,
                                        const struct quire_token_move *tokens)
{
	struct quire_cuda_move move = {};
	int64_t page_size = tokens->geometry->page_size;

	move.lane = *lane;
	move.geometry = *tokens->geometry;
	move.storage = tokens->storage;
	move.rows = tokens->slots.n;
	move.planes = move.geometry.num_kv * move.geometry.pieces;
	move.layer = tokens->layer;
	move.slots = tokens->slots;
	move.row[0] = tokens->row[0];
	move.row[1] = tokens->row[1];
	move.dtype = tokens->dtype;
	move.out = tokens->out;
	/* What there is to check: page ids. */
	move.n = tokens->slots.n;
	if (tokens->slots.offset == NULL)
		move.n = (tokens->slots.first + tokens->slots.n - 1) / page_size -
		         tokens->slots.first / page_size + 1;
	return move;
}

static int launch_checks(const struct quire_cuda_move *move)
{
	int error;

	if (!move->lane.checks)
		return cudaSuccess;
	error = launch_items(move, check_slots);
	return error != cudaSuccess ? error : launch_one(move, judge_slots);
}

static int64_t piece_bytes(const struct quire_cuda_move *move)
{
	return move->geometry.token_stride * move->geometry.element_bytes;
}

static int launch_write(struct quire_cuda_move *move)
{
	int64_t elements = move->geometry.token_stride;
	uint64_t bases =
		(uint64_t)move->storage | (uint64_t)move->row[0] | (uint64_t)move->row[1];
	int unit = widest_unit(bases | (uint64_t)piece_bytes(move));

	if (move->dtype == move->geometry.dtype) {
		move->columns = piece_bytes(move) / unit_bytes[unit];
		return launch(move, write_kernels[unit]);
	}
	if (elements % ELEMENTS == 0 && bases % 16 == 0) {
		move->columns = elements / ELEMENTS;
		return launch(move, write_elements<ELEMENTS>);
	}
	move->columns = elements;
	return launch(move, write_elements<1>);
}

static int launch_read(struct quire_cuda_move *move)
{
	int unit = widest_unit((uint64_t)piece_bytes(move) | (uint64_t)move->storage |
	                       (uint64_t)move->out);

	move->columns = piece_bytes(move) / unit_bytes[unit];
	return launch(move, read_kernels[unit]);
}

extern "C" int quire_cuda_write_tokens(const struct quire_cuda_lane *lane,
                                       const struct quire_token_move *tokens)
{
	struct quire_cuda_move move = of_tokens(lane, tokens);
	int error = launch_checks(&move);

	if (error == cudaSuccess)
		error = launch_write(&move);
	if (error == cudaSuccess && move.out != NULL)
		error = launch_read(&move);
	return error;
}

extern "C" int quire_cuda_read_tokens(const struct quire_cuda_lane *lane,
                                      const struct quire_token_move *tokens)
{
	struct quire_cuda_move move = of_tokens(lane, tokens);
	int error = launch_checks(&move);

	return error != cudaSuccess ? error : launch_read(&move);
}

extern "C" int quire_cuda_follow(const struct quire_cuda_lane *lane,
                                 const struct quire_cuda_fault *leader, int64_t last)
{
	struct quire_cuda_move move = {};

	move.lane = *lane;
	move.leader = leader;
	move.last = last;
	return launch_one(&move, follow);
}
