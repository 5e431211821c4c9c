/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_RUNTIME_WAKE_IMPL_H
#define QUIRE_RUNTIME_WAKE_IMPL_H
/*
 * Wake: where a thread sleeps until something may have changed.
 *
 * An event count (ck_ec): read its value, look whether there is work, and sleep only
 * while the value is still the one read.  Whoever changes something raises the value
 * afterwards, so no change is slept through.  A wake carries no data: what changed is
 * published by the atomics that it speaks of, so it adds no order of its own.
 */
#include <ck_ec.h>

#include <stdint.h>

struct quire_wake {
	struct ck_ec32 count;
};

void quire_wake_init(struct quire_wake *wake);

/* The value to sleep on; read it before looking for work. */
uint32_t quire_wake_value(const struct quire_wake *wake);

/* Something may have changed: everyone who sleeps looks again. */
void quire_wake_all(struct quire_wake *wake);

/* Sleep while the value is @value, until @deadline_ns (CLOCK_MONOTONIC, INT64_MAX:
 * never). Returns 0, or -1 when the deadline passed. */
int quire_wake_sleep(struct quire_wake *wake, uint32_t value, int64_t deadline_ns);

/* CLOCK_MONOTONIC in nanoseconds. */
int64_t quire_now_ns(void);

#endif
