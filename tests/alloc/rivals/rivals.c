/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/alloc/random.h"
#include "tests/alloc/rivals/rival.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LINE_BYTES  ((size_t)128)
#define HUGE_BYTES  ((size_t)2 << 20)
#define CHECK_PAGES 1000
#define CHECK_BATCH 64
#define CHECK_TURNS 4

const char rival_absent[] = "there is none here";

static const struct rival *const everybody[] = {
	&rival_pool,     &rival_pool_one_giver, &rival_mutex_checks, &rival_mutex,
#ifdef QUIRE_HAVE_DPDK
	&rival_rte_ring, &rival_rte_ring_rts,   &rival_rte_ring_hts,
#endif
	&rival_ck_ring,  &rival_wfcqueue,       &rival_python,       &rival_python_deque,
};

_Static_assert(sizeof(everybody) / sizeof(*everybody) <= RIVALS_MAX, "all are listed");

int rivals_list(const struct rival *rivals_out[RIVALS_MAX])
{
	memcpy(rivals_out, everybody, sizeof(everybody));
	return sizeof(everybody) / sizeof(*everybody);
}

void rival_must(bool done, const char *what)
{
	if (done)
		return;
	fprintf(stderr, "bench_pool: %s\n", what);
	exit(EXIT_FAILURE);
}

void *rival_memory(size_t bytes)
{
	size_t align = bytes < HUGE_BYTES ? LINE_BYTES : HUGE_BYTES;
	void *block;

	rival_must(posix_memalign(&block, align, bytes) == 0, "out of memory");
	if (align == HUGE_BYTES)
		madvise(block, bytes, MADV_HUGEPAGE); /* a wish */
	memset(block, 0, bytes);
	return block;
}

/* Give pages back in batches of CHECK_BATCH, the last of which may be smaller. */
static bool give_all(const struct rival *rival, void *fifo, const int32_t *pages)
{
	for (int32_t at = 0, n; at < CHECK_PAGES; at += n) {
		n = CHECK_PAGES - at;
		if (n > CHECK_BATCH)
			n = CHECK_BATCH;
		if (!rival->give(fifo, pages + at, n))
			return false;
	}
	return true;
}

/* Take all pages by one and one more each time, which must be these. */
static const char *fault_of_takes(const struct rival *rival, void *fifo,
                                  const int32_t *expected)
{
	int32_t pages[CHECK_PAGES];
	int32_t at = 0;

	for (int32_t n = 1; at + n <= CHECK_PAGES; n = n % CHECK_BATCH + 1) {
		if (!rival->take(fifo, n, pages))
			return "refuses pages that are free";
		if (memcmp(pages, expected + at, (size_t)n * sizeof(*pages)) != 0)
			return "hands out other pages than the oldest";
		at += n;
	}
	if (rival->take(fifo, CHECK_PAGES - at + 1, pages))
		return "hands out more than is free";
	if (at < CHECK_PAGES && !rival->take(fifo, CHECK_PAGES - at, pages))
		return "takes on a refusal";
	if (at < CHECK_PAGES &&
	    memcmp(pages, expected + at, (size_t)(CHECK_PAGES - at) * sizeof(*pages)))
		return "hands out other pages than the oldest at its end";
	return NULL;
}

/* Send the oldest of these to the end, so that the end of a ring falls into a batch. */
static bool turn_by(const struct rival *rival, void *fifo, int32_t *pages, int32_t n)
{
	int32_t oldest[CHECK_PAGES];
	bool turned = rival->take(fifo, n, oldest) && rival->give(fifo, oldest, n);

	memcpy(oldest, pages, (size_t)n * sizeof(*pages));
	memmove(pages, pages + n, (size_t)(CHECK_PAGES - n) * sizeof(*pages));
	memcpy(pages + CHECK_PAGES - n, oldest, (size_t)n * sizeof(*pages));
	return turned;
}

const char *rival_fault(const struct rival *rival)
{
	int32_t pages[CHECK_PAGES];
	uint64_t seed = 1;
	void *fifo = rival->create(CHECK_PAGES);
	const char *fault = NULL;

	if (!fifo)
		return rival_absent;
	for (int32_t i = 0; i < CHECK_PAGES; i++)
		pages[i] = i;
	for (int turn = 0; turn < CHECK_TURNS && !fault; turn++) {
		fault = fault_of_takes(rival, fifo, pages);
		random_shuffle(&seed, pages, CHECK_PAGES);
		if (!fault && (!give_all(rival, fifo, pages) ||
		               !turn_by(rival, fifo, pages, CHECK_PAGES / 3)))
			fault = "refuses pages that were taken";
	}
	rival->destroy(fifo);
	return fault;
}

bool rival_has_all(const struct rival *rival, void *fifo, int32_t num_pages)
{
	size_t bytes = (size_t)num_pages * sizeof(int32_t);
	int32_t *pages = rival_memory(bytes);
	uint8_t *seen = rival_memory((size_t)num_pages);
	int32_t num_seen = 0, more;
	bool taken = rival->take(fifo, num_pages, pages);

	for (int32_t i = 0; taken && i < num_pages; i++) {
		if ((uint32_t)pages[i] < (uint32_t)num_pages && !seen[pages[i]]++)
			num_seen++;
	}
	taken = taken && num_seen == num_pages && !rival->take(fifo, 1, &more) &&
	        rival->give(fifo, pages, num_pages);
	free(seen);
	free(pages);
	return taken;
}
