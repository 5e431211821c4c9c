/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_ALLOC_POOL_IMPL_H
#define QUIRE_ALLOC_POOL_IMPL_H
/*
 * A pool from inside: one of two FIFOs, and where threads sleep that wait for pages.
 *
 * The FIFO with a lock serves where there is no 128-bit compare-and-swap, and wherever a
 * test or a measurement asks for it.
 */
#include "alloc/fifo_impl.h"
#include "alloc/lock_fifo_impl.h"
#include "runtime/wake_impl.h"

#include <quire/alloc/pool.h>

enum quire_pool_kind {
	QUIRE_POOL_LOCK_FREE,
	QUIRE_POOL_LOCKED,
};

struct quire_pool {
	union { /* by kind */
		struct quire_fifo fifo;
		struct quire_lock_fifo lock_fifo;
	};
	enum quire_pool_kind kind;
	int32_t num_pages;
	alignas(FIFO_LINE_BYTES) _Atomic uint32_t waiters; /* calls that wait for pages */
	struct quire_wake freed; /* raised by a free that sees a waiter */
};

/* As quire_pool_create, of a kind; QUIRE_INVALID also where there is none of it. */
QUIRE_MUST_CHECK enum quire_status quire_pool_create_kind(int64_t num_pages,
                                                          enum quire_pool_kind kind,
                                                          struct quire_pool **pool_out);

#endif
