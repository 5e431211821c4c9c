/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_RUNTIME_COUNTER_IMPL_H
#define QUIRE_RUNTIME_COUNTER_IMPL_H
/* Counters of a runtime, and the line that its hot fields keep to themselves. */
#include <stdatomic.h>
#include <stdint.h>

#define QUIRE_CACHE_LINE 64

/* A counter with one writer; readers want a whole value, no order. */
typedef _Atomic uint64_t quire_counter;

static inline void quire_count(quire_counter *counter, uint64_t more)
{
	atomic_store_explicit(counter,
	                      atomic_load_explicit(counter, memory_order_relaxed) + more,
	                      memory_order_relaxed);
}

static inline uint64_t quire_counted(const quire_counter *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

#endif
