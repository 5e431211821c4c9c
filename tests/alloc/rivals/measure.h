/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_TESTS_ALLOC_RIVALS_MEASURE_H
#define QUIRE_TESTS_ALLOC_RIVALS_MEASURE_H
/*
 * Figures of rounds: every rival adds one value per round to a measure, in the same round
 * as the others, so that ratios are of values taken close together.
 */
#include "tests/alloc/rivals/rival.h"

#include <stdint.h>

#define ROUNDS_MAX 128

double measure_now_ns(void);

/* Of up to ROUNDS_MAX values; not a number for none. */
double quantile_of(const double *values, int num, double quantile);

/* Add what a rival showed in a round of `measure`. */
void measure_add(const char *measure, const struct rival *rival, double value);

/* A quantile of a rival's rounds, and of the ratios to another's in the same rounds; not
 * a number when there are none. */
double measure_value(const char *measure, const struct rival *rival, double quantile);
double measure_ratio(const char *measure, const struct rival *rival,
                     const struct rival *to, double quantile);

/* One line per rival: `measure.rival value unit ratio`, then the lower and the upper
 * quartile of the value and of the ratio, and the number of rounds.  Value is a quantile
 * of the rounds; ratio, to the FIFO with a lock, the median of theirs. */
void measure_print(const char *measure, const char *unit, double quantile);

/*
 * How long things take: a clock of few cycles, and counts of its ticks with 16 steps to a
 * doubling.  Quantiles are the upper ends of steps: true or up to 1/16 too large.
 */
struct times;

struct times *times_create(void);
void times_add(struct times *times, uint64_t ticks);
void times_merge(struct times *times, const struct times *more);
double times_quantile_ns(const struct times *times, double quantile);

static inline uint64_t ticks_now(void)
{
#ifdef __x86_64__
	return __builtin_ia32_rdtsc();
#else
	return (uint64_t)measure_now_ns();
#endif
}

#endif
