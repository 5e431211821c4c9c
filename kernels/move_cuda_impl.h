/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_KERNELS_MOVE_CUDA_IMPL_H
#define QUIRE_KERNELS_MOVE_CUDA_IMPL_H
/*
 * Launching the CUDA kernels of move.cu.  @stream is a cudaStream_t; each answers a
 * cudaError_t, 0 when all was launched.  All memory, lists included, is readable by the
 * device; page ids and offsets are not checked.
 */
#include "kernels/move_impl.h"

#ifdef __cplusplus
extern "C" {
#endif

int quire_cuda_write_tokens(const struct quire_token_move *move, void *stream);
int quire_cuda_read_tokens(const struct quire_token_move *move, void *stream);

/* Bytes of scratch that are enough for any n pairs; more make fewer launches. */
#define QUIRE_CUDA_SCRATCH_MIN(n) ((n)*INT64_C(16))

/*
 * quire_cuda_copy_pages - copy pages
 * @scratch: device memory aligned to 16 bytes, kept until done; NULL when no page is in
 *           both lists: pages are then copied straight from place to place
 * @scratch_bytes: at least QUIRE_CUDA_SCRATCH_MIN(n)
 */
int quire_cuda_copy_pages(const struct quire_page_move *move, void *scratch,
                          int64_t scratch_bytes, void *stream);

#ifdef __cplusplus
}
#endif
#endif
