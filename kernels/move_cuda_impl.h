/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_KERNELS_MOVE_CUDA_IMPL_H
#define QUIRE_KERNELS_MOVE_CUDA_IMPL_H
/*
 * Launching the kernels of move.cu and pages.cu.  Each function answers a cudaError_t, 0
 * when all was launched, and never waits for the device.  All memory, lists included, is
 * readable by the device and read there alone.
 *
 * A kernel that finds a fault, and a host function that fails, leave a struct
 * quire_cuda_fault twice: in the report, pinned memory that the host reads, and in the
 * state, device memory that later kernels of the stream look at: they then do nothing.
 */
#include "kernels/move_impl.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a fault speaks of; move_cuda.c has the words. */
enum quire_cuda_what {
	QUIRE_CUDA_CALL,   /* a host function */
	QUIRE_CUDA_WAITED, /* the stream of an event that was waited for */
	QUIRE_CUDA_PAGE,   /* from here on: index, got, expected are filled */
	QUIRE_CUDA_OFFSET,
	QUIRE_CUDA_SOURCE,
	QUIRE_CUDA_TARGET,
	QUIRE_CUDA_END,
	QUIRE_CUDA_TWICE, /* a target; index, got: the page */
};

/* The first failure of a device stream while it ran.  Written once. */
struct quire_cuda_fault {
	uint32_t status; /* an enum quire_status, 0: none; stored last, with release */
	uint32_t what;
	int64_t position; /* of the operation that failed */
	int64_t index;
	int64_t got;
	int64_t expected;
};

/* A device stream's own, in device memory.  Only its operations write it. */
struct quire_cuda_state {
	struct quire_cuda_fault fault;
	/* Of the operation that runs: the first check that failed; 0: none. */
	unsigned long long first_fault;
	/* Of the copy that runs: some page is a source and a target. */
	uint32_t overlaps;
};

/* What a launch needs of its device stream. */
struct quire_cuda_lane {
	void *stream;                    /* a cudaStream_t */
	struct quire_cuda_state *state;  /* device memory */
	struct quire_cuda_fault *report; /* pinned */
	int64_t position;                /* of the operation */
	bool guarded; /* the stream may have failed: kernels look before they run */
	bool checks;  /* look at ids, offsets and ends; implies guarded */
};

int quire_cuda_write_tokens(const struct quire_cuda_lane *lane,
                            const struct quire_token_move *move);
int quire_cuda_read_tokens(const struct quire_cuda_lane *lane,
                           const struct quire_token_move *move);

/* Device memory for copies of two pairs or more, kept until done. */
struct quire_cuda_room {
	uint32_t *marks; /* of each page, 0 before and after every copy */
	char *scratch;   /* aligned to 16 bytes */
	int64_t scratch_bytes;
};

/* Bytes of scratch that n pairs need at the least; more of it is faster. */
#define QUIRE_CUDA_SCRATCH_MIN(n) ((n)*INT64_C(16))

/* quire_cuda_copy_pages - @room: all 0 will do for one pair */
int quire_cuda_copy_pages(const struct quire_cuda_lane *lane,
                          const struct quire_page_move *move,
                          const struct quire_cuda_room *room);

/*
 * quire_cuda_follow - fail if another stream had failed at one of its positions up to
 * @last; NULL does nothing, which shows whether kernels run at all
 * @leader:  its state, read when the kernel runs; or the stream's own report, in which a
 *           host function may have left a fault
 */
int quire_cuda_follow(const struct quire_cuda_lane *lane,
                      const struct quire_cuda_fault *leader, int64_t last);

#ifdef __cplusplus
}
#endif
#endif
