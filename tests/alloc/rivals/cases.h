/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_TESTS_ALLOC_RIVALS_CASES_H
#define QUIRE_TESTS_ALLOC_RIVALS_CASES_H
/* What bench_pool has its rivals do, and the measures that come of it. */
#include "tests/alloc/rivals/rival.h"

#include <stdint.h>

/* Who takes part: rivals that were found to be right. */
struct rival_list {
	int num;
	const struct rival *rivals[RIVALS_MAX];
};

/* How much of it: the whole bench, or a short one. */
struct effort {
	int pair_rounds;
	int size_rounds; /* of large pools fewer */
	int thread_rounds;
	int32_t size_pages_max; /* largest pool of `sizes` */
	double thread_s; /* a round of several threads; of 16, three times as long */
};

/*
 * pairs: one thread takes and gives n = 1, 8, 16, 64, 1024 in turns; 65,536 pages in
 * scrambled order.  Measures pair_<n>, ns per pair.
 */
void case_pairs(const struct rival_list *list, const struct effort *effort);

/*
 * sizes: one thread takes a whole pool (of the largest: 2^21 pages) in batches of 64,
 * and gives it back in random order, 1k to 16M pages.  Measures take_<pages>,
 * give_<pages>, ns per page; bytes_<pages>, memory per page.
 */
void case_sizes(const struct rival_list *list, const struct effort *effort);

/*
 * taker_giver: one thread takes 1..64, a ring hands the pages to another on a second
 * core, which gives 1..64.  mixed_4, mixed_16: so many threads on two cores, each takes
 * 1..64 or gives 1..64 of what it holds, without pause.  Measures <case>, millions of
 * takes and gives a second that succeeded; <case>_p50 .. _p9999, _max: ns of a take that
 * succeeded.
 */
void case_taker_giver(const struct rival_list *list, const struct effort *effort);
void case_mixed_4(const struct rival_list *list, const struct effort *effort);
void case_mixed_16(const struct rival_list *list, const struct effort *effort);

#endif
