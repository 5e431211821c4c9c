/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "kernels/device_cuda_impl.h"
#include "runtime/refuse_impl.h"

#include <stdlib.h>

/* Scratch for copies whose pages overlap: enough threads to keep a device busy at a few
 * hundred pairs, and at any number a warp. */
#define SCRATCH_BYTES (INT64_C(16) << 20)
#define SCRATCH_LANES 32

void quire_cuda_describe(const struct quire_cuda_fault *fault,
                         struct quire_refusal *refusal)
{
	static const char *const words[] = {
		[QUIRE_CUDA_CALL] = "a host function on the device stream failed",
		[QUIRE_CUDA_WAITED] = "the device stream of an event waited for failed",
		[QUIRE_CUDA_PAGE] = "page",
		[QUIRE_CUDA_OFFSET] = "offset",
		[QUIRE_CUDA_SOURCE] = "source",
		[QUIRE_CUDA_TARGET] = "target",
		[QUIRE_CUDA_END] = "end",
		[QUIRE_CUDA_TWICE] = "target named twice",
	};
	enum quire_status status = (enum quire_status)fault->status;

	quire_refuse_what(refusal, status, words[fault->what]);
	if (fault->what >= QUIRE_CUDA_PAGE)
		refusal->index = fault->index;
	if (fault->what == QUIRE_CUDA_TWICE) {
		refusal->page = (int32_t)fault->got;
	} else {
		refusal->got = fault->got;
		refusal->expected = fault->expected;
	}
}

enum quire_status quire_cuda_move_write(struct quire_dstream *base,
                                        const struct quire_token_move *move,
                                        struct quire_refusal *refusal_out)
{
	struct cuda_dstream *dstream = (struct cuda_dstream *)base;
	enum quire_status status = quire_cuda_begin(dstream, refusal_out);
	struct quire_cuda_lane lane;

	if (status != QUIRE_OK)
		return status;
	lane = quire_cuda_lane(dstream);
	return quire_cuda_end(dstream, (cudaError_t)quire_cuda_write_tokens(&lane, move),
	                      refusal_out);
}

enum quire_status quire_cuda_move_read(struct quire_dstream *base,
                                       const struct quire_token_move *move,
                                       struct quire_refusal *refusal_out)
{
	struct cuda_dstream *dstream = (struct cuda_dstream *)base;
	enum quire_status status = quire_cuda_begin(dstream, refusal_out);
	struct quire_cuda_lane lane;

	if (status != QUIRE_OK)
		return status;
	lane = quire_cuda_lane(dstream);
	return quire_cuda_end(dstream, (cudaError_t)quire_cuda_read_tokens(&lane, move),
	                      refusal_out);
}

/* ------------------------------------------------------------------ room */

static enum quire_status add_block(struct cuda_dstream *dstream,
                                   struct cuda_block **newest, int64_t bytes,
                                   struct quire_refusal *refusal_out)
{
	enum cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
	struct cuda_block *block = malloc(sizeof(*block));
	cudaError_t error;

	if (block == NULL)
		return quire_refuse_what(refusal_out, QUIRE_NO_MEMORY,
		                         "scratch of copy_pages");
	error = cudaStreamIsCapturing(dstream->stream, &capture);
	if (error == cudaSuccess && capture != cudaStreamCaptureStatusNone) {
		free(block);
		return quire_refuse_what(refusal_out, QUIRE_INVALID,
		                         "copy_pages is captured before one as large was "
		                         "done on the device stream");
	}
	if (error == cudaSuccess)
		error = cudaMalloc(&block->memory, (size_t)bytes);
	if (error != cudaSuccess) {
		free(block);
		return quire_cuda_refuse(error, refusal_out);
	}
	error = cudaMemsetAsync(block->memory, 0, (size_t)bytes, dstream->stream);
	if (error != cudaSuccess) {
		(void)cudaFree(block->memory);
		free(block);
		return quire_cuda_refuse(error, refusal_out);
	}
	block->bytes = bytes;
	block->before = *newest;
	*newest = block;
	return QUIRE_OK;
}

/* At least so many zeroed bytes, twice what there was.  Called under the lock. */
static enum quire_status grow(struct cuda_dstream *dstream, struct cuda_block **newest,
                              int64_t bytes, struct quire_refusal *refusal_out)
{
	if (*newest != NULL && (*newest)->bytes >= bytes)
		return QUIRE_OK;
	if (*newest != NULL && bytes < 2 * (*newest)->bytes)
		bytes = 2 * (*newest)->bytes;
	return add_block(dstream, newest, bytes, refusal_out);
}

/* Never more than all that is copied. */
static int64_t scratch_wanted(const struct quire_page_move *move)
{
	int64_t all_bytes = move->geometry->nbytes / move->geometry->num_pages * move->n;
	int64_t bytes = all_bytes < SCRATCH_BYTES ? all_bytes : SCRATCH_BYTES;
	int64_t min_bytes = SCRATCH_LANES * QUIRE_CUDA_SCRATCH_MIN(move->n);

	return bytes < min_bytes ? min_bytes : bytes;
}

/* Room for a copy of two pairs or more.  Called under the lock. */
static enum quire_status take_room(struct cuda_dstream *dstream,
                                   const struct quire_page_move *move,
                                   struct quire_cuda_room *room_out,
                                   struct quire_refusal *refusal_out)
{
	int64_t marks_bytes = move->geometry->num_pages * (int64_t)sizeof(uint32_t);
	int64_t scratch_bytes = scratch_wanted(move);

	QUIRE_TRY(grow(dstream, &dstream->marks, marks_bytes, refusal_out));
	QUIRE_TRY(grow(dstream, &dstream->scratch, scratch_bytes, refusal_out));
	*room_out = (struct quire_cuda_room){
		.marks = dstream->marks->memory,
		.scratch = dstream->scratch->memory,
		.scratch_bytes = dstream->scratch->bytes,
	};
	return QUIRE_OK;
}

enum quire_status quire_cuda_move_pages(struct quire_dstream *base,
                                        const struct quire_page_move *move,
                                        struct quire_refusal *refusal_out)
{
	struct cuda_dstream *dstream = (struct cuda_dstream *)base;
	enum quire_status status = quire_cuda_begin(dstream, refusal_out);
	struct quire_cuda_room room = {.marks = NULL};
	struct quire_cuda_lane lane;

	if (status != QUIRE_OK)
		return status;
	if (move->n > 1)
		status = take_room(dstream, move, &room, refusal_out);
	if (status != QUIRE_OK) {
		/* Nothing was queued. */
		(void)quire_cuda_end(dstream, cudaSuccess, NULL);
		return status;
	}
	lane = quire_cuda_lane(dstream);
	return quire_cuda_end(dstream,
	                      (cudaError_t)quire_cuda_copy_pages(&lane, move, &room),
	                      refusal_out);
}
