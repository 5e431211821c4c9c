/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_RUNTIME_HISTOGRAM_IMPL_H
#define QUIRE_RUNTIME_HISTOGRAM_IMPL_H
/*
 * A histogram of times: 16 buckets for every doubling, so a quantile is right to 1/16 of
 * its value.  One writer; readers may look at any time and see each bucket whole.
 */
#include <stdatomic.h>
#include <stdint.h>

#define QUIRE_HISTOGRAM_BUCKETS (64 * 16)

struct quire_histogram {
	_Atomic uint32_t buckets[QUIRE_HISTOGRAM_BUCKETS];
};

static inline int32_t quire_histogram_bucket(int64_t ns)
{
	uint64_t value = ns < 1 ? 1 : (uint64_t)ns;
	int32_t doubling = 63 - __builtin_clzll(value);

	if (doubling < 4)
		return (int32_t)value;
	return doubling * 16 + (int32_t)(value >> (doubling - 4) & 15);
}

/* The smallest value of a bucket. */
static inline int64_t quire_histogram_value(int32_t bucket)
{
	if (bucket < 16)
		return bucket;
	return (int64_t)(16 + bucket % 16) << (bucket / 16 - 4);
}

static inline void quire_histogram_add(struct quire_histogram *histogram, int64_t ns)
{
	_Atomic uint32_t *bucket = &histogram->buckets[quire_histogram_bucket(ns)];

	/* One writer: relaxed, readers want whole counts, no order. */
	atomic_store_explicit(bucket,
	                      atomic_load_explicit(bucket, memory_order_relaxed) + 1,
	                      memory_order_relaxed);
}

/* The value that per_mille of all values do not exceed; 0 for an empty histogram. */
static inline int64_t quire_histogram_quantile(const struct quire_histogram *histogram,
                                               int64_t per_mille)
{
	uint64_t total = 0, seen = 0;

	for (int32_t b = 0; b < QUIRE_HISTOGRAM_BUCKETS; b++)
		total += atomic_load_explicit(&histogram->buckets[b],
		                              memory_order_relaxed);
	for (int32_t b = 0; b < QUIRE_HISTOGRAM_BUCKETS; b++) {
		seen += atomic_load_explicit(&histogram->buckets[b],
		                             memory_order_relaxed);
		if (seen > 0 && seen * 1000 >= total * (uint64_t)per_mille)
			return quire_histogram_value(b);
	}
	return 0;
}

#endif
