/* SPDX-License-Identifier: MIT */
/*
 * CUDA kernels of copy_pages: as if all sources were read before any target is written,
 * without the host knowing the lists.
 *
 *   mark_targets  each page that is a target gets a mark, of the first pair that names it
 *   meet_sources  is a source marked?  And are all ids and ends right?
 *   move_pages    no: straight from page to page.  Yes: each thread takes columns of its
 *                 own, saves the column of all sources, then writes it to all targets;
 *                 columns do not meet, so threads need not wait for each other.  The
 *                 marks are taken off again.
 *
 * The lists say what to do when the kernels run, so a captured graph may be replayed with
 * others.
 */
#include "kernels/grid_cuda_impl.h"

static __device__ void check_pair(const struct quire_cuda_move *move, int64_t i)
{
	int64_t num_pages = move->geometry.num_pages;

	if (is_outside(move->source[i], num_pages))
		note_fault(move, 3 * i);
	if (is_outside(move->target[i], num_pages))
		note_fault(move, 3 * i + 1);
	else if (move->room.marks != NULL &&
	         move->room.marks[move->target[i]] != (uint32_t)(move->n - i))
		note_fault(move, 3 * move->n + i);
	if (move->end != NULL && is_outside(move->end[i], move->geometry.page_size + 1))
		note_fault(move, 3 * i + 2);
}

static __global__ void judge_pairs(struct quire_cuda_move move)
{
	int64_t rank = (int64_t)(RANKS_END - move.lane.state->first_fault);
	int64_t num_pages = move.geometry.num_pages;
	int64_t i = rank / 3;

	if (has_failed(&move) || move.lane.state->first_fault == 0)
		return;
	if (rank >= 3 * move.n)
		judge(&move, QUIRE_CUDA_TWICE, rank - 3 * move.n,
		      move.target[rank - 3 * move.n], num_pages);
	else if (rank % 3 == 0)
		judge(&move, QUIRE_CUDA_SOURCE, i, move.source[i], num_pages);
	else if (rank % 3 == 1)
		judge(&move, QUIRE_CUDA_TARGET, i, move.target[i], num_pages);
	else
		judge(&move, QUIRE_CUDA_END, i, move.end[i], move.geometry.page_size + 1);
}

static __global__ void mark_targets(struct quire_cuda_move move)
{
	if (has_failed(&move))
		return;
	FOR_ITEMS(i, move.n)
	{
		if (i == 0)
			move.lane.state->overlaps = 0;
		if (!move.lane.checks ||
		    !is_outside(move.target[i], move.geometry.num_pages))
			atomicMax(&move.room.marks[move.target[i]],
			          (uint32_t)(move.n - i));
	}
}

static __global__ void meet_sources(struct quire_cuda_move move)
{
	if (has_failed(&move))
		return;
	FOR_ITEMS(i, move.n)
	{
		int32_t source = move.source[i];

		if (move.lane.checks)
			check_pair(&move, i);
		if (move.lane.checks && is_outside(source, move.geometry.num_pages))
			continue;
		if (move.room.marks != NULL && source != move.target[i] &&
		    move.room.marks[source] != 0)
			move.lane.state->overlaps = 1;
	}
}

/* Where a plane of a page begins. */
static __device__ char *plane_of(const struct quire_cuda_move *move, int32_t page,
                                 int64_t plane)
{
	return move->storage + quire_geometry_offset(&move->geometry,
	                                             plane / move->chunks, page,
	                                             plane % move->chunks, 0);
}

/* How many columns of a plane pair i moves. */
static __device__ int64_t columns_of(const struct quire_cuda_move *move, int64_t i)
{
	return move->end != NULL ? move->end[i] * move->token_columns : move->columns;
}

template <typename Unit>
static __device__ void move_straight(const struct quire_cuda_move *move)
{
	FOR_PLANES(plane, move)
	{
		FOR_ROWS(i, move)
		{
			const char *source = plane_of(move, move->source[i], plane);
			char *target = plane_of(move, move->target[i], plane);

			if (source != target)
				copy_columns((Unit *)target, (const Unit *)source,
				             columns_of(move, i));
		}
	}
}

/* The number of this thread in its grid, and of all in it. */
static __device__ int64_t thread_number()
{
	int64_t block =
		((int64_t)blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;

	return (block * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
}

static __device__ int64_t thread_count()
{
	return (int64_t)gridDim.z * gridDim.y * gridDim.x * blockDim.y * blockDim.x;
}

template <typename Unit>
static __device__ void move_saved(const struct quire_cuda_move *move)
{
	int64_t threads = thread_count() < move->scratch_threads ? thread_count()
	                                                         : move->scratch_threads;
	int64_t thread = thread_number();
	Unit *saved = (Unit *)move->room.scratch + thread;

	if (thread >= threads)
		return;
	for (int64_t at = thread; at < move->planes * move->columns; at += threads) {
		int64_t plane = at / move->columns;
		int64_t column = at % move->columns;

		for (int64_t i = 0; i < move->n; i++)
			if (column < columns_of(move, i))
				saved[i * threads] = ((const Unit *)plane_of(
					move, move->source[i], plane))[column];
		for (int64_t i = 0; i < move->n; i++)
			if (column < columns_of(move, i))
				((Unit *)plane_of(move, move->target[i], plane))[column] =
					saved[i * threads];
	}
}

template <typename Unit> static __global__ void move_pages(struct quire_cuda_move move)
{
	if (has_failed(&move))
		return;
	if (move.room.marks == NULL) {
		move_straight<Unit>(&move);
		return;
	}
	for (int64_t i = thread_number(); i < move.n; i += thread_count())
		move.room.marks[move.target[i]] = 0;
	if (move.lane.state->overlaps != 0)
		move_saved<Unit>(&move);
	else
		move_straight<Unit>(&move);
}

static const move_kernel page_kernels[] = {move_pages<uint4>, move_pages<uint32_t>,
                                           move_pages<uint8_t>};

/* Planes and columns: without ends a page of a layer is one piece. */
static int split_pages(struct quire_cuda_move *move)
{
	const struct quire_geometry *geometry = &move->geometry;
	int64_t token_bytes = geometry->token_stride * geometry->element_bytes;
	int64_t plane_bytes = geometry->page_stride * geometry->element_bytes;
	int unit = widest_unit((uint64_t)plane_bytes | (uint64_t)move->storage);

	move->chunks = 1;
	if (move->end != NULL) {
		move->chunks = geometry->num_kv * geometry->pieces;
		plane_bytes = geometry->chunk_stride * geometry->element_bytes;
		unit = widest_unit((uint64_t)token_bytes | (uint64_t)move->storage);
		move->token_columns = token_bytes / unit_bytes[unit];
	}
	move->planes = geometry->num_layers * move->chunks;
	move->columns = plane_bytes / unit_bytes[unit];
	return unit;
}

extern "C" int quire_cuda_copy_pages(const struct quire_cuda_lane *lane,
                                     const struct quire_page_move *pages,
                                     const struct quire_cuda_room *room)
{
	struct quire_cuda_move move = {};
	int error = cudaSuccess;
	int unit;

	move.lane = *lane;
	move.geometry = *pages->geometry;
	move.storage = pages->storage;
	move.source = pages->source;
	move.target = pages->target;
	move.end = pages->end;
	move.n = pages->n;
	move.rows = pages->n;
	unit = split_pages(&move);
	/* One pair reads no other pair's target. */
	if (move.n > 1) {
		move.room = *room;
		move.scratch_threads = room->scratch_bytes / (move.n * unit_bytes[unit]);
		error = launch_items(&move, mark_targets);
	}
	if (error == cudaSuccess && (move.n > 1 || lane->checks))
		error = launch_items(&move, meet_sources);
	if (error == cudaSuccess && lane->checks)
		error = launch_one(&move, judge_pairs);
	return error != cudaSuccess ? error : launch(&move, page_kernels[unit]);
}
