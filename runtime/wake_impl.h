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
 *
 * A sleep and a wake-up cost both sides a system call, and the sleeper some 5 to 100 us
 * until it runs again.  So a thread with nothing else to do may look a while before it
 * sleeps (struct quire_spin).
 */
#include <ck_ec.h>

#include <stdbool.h>
#include <stdint.h>

struct quire_wake {
	struct ck_ec32 count;
	struct quire_wake *also; /* raised with it; NULL: none */
};

void quire_wake_init(struct quire_wake *wake);

/* Before any thread knows of @wake: whoever raises it raises @also too. */
void quire_wake_chain(struct quire_wake *wake, struct quire_wake *also);

/* The value to sleep on; read it before looking for work. */
uint32_t quire_wake_value(const struct quire_wake *wake);

/* Something may have changed: everyone who sleeps looks again. */
void quire_wake_all(struct quire_wake *wake);

/* Sleep while the value is @value, until @deadline_ns (CLOCK_MONOTONIC, INT64_MAX:
 * never). Returns 0, or -1 when the deadline passed. */
int quire_wake_sleep(struct quire_wake *wake, uint32_t value, int64_t deadline_ns);

/* A wait that adapts looks at most so long: what a sleep may cost.  So it never costs
 * more than twice what the better of looking and sleeping would have. */
#define QUIRE_SPIN_ADAPTIVE_NS 50000

/* Looks that were in vain, in a row, at most stop it for so many waits. */
#define QUIRE_SPIN_SKIPS_MAX 63

/* How one thread looks before it sleeps; its own. */
struct quire_spin {
	int64_t ns;     /* how long; 0: not at all */
	bool adapts;    /* looks less often while that is in vain */
	uint32_t skips; /* waits that sleep at once before it looks again */
	uint32_t
		backoff; /* skips after the last look in vain; less with each other one */
};

/* @spin_ns: as spin_ns of struct quire_runtime_config */
void quire_spin_init(struct quire_spin *spin, int64_t spin_ns);

/* quire_wake_sleep, after a look. */
int quire_wake_await(struct quire_wake *wake, uint32_t value, int64_t deadline_ns,
                     struct quire_spin *spin);

/* CLOCK_MONOTONIC in nanoseconds. */
int64_t quire_now_ns(void);

#endif
