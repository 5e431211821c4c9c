/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_ALLOC_LOCK_FIFO_IMPL_H
#define QUIRE_ALLOC_LOCK_FIFO_IMPL_H
/*
 * The FIFO with a lock: a ring of page ids and the same ownership marks, under one mutex.
 *
 * What a pool rests on where there is no 128-bit compare-and-swap, and what the lock-free
 * FIFO is measured against.  It gives the same answers, but a thread that is stopped
 * inside holds up all others.
 */
#include "alloc/fifo_impl.h"

#include <pthread.h>

struct quire_lock_fifo {
	pthread_mutex_t lock;
	uint32_t num_pages;
	uint32_t head;          /* place of the oldest page in the ring */
	_Atomic uint32_t count; /* written under the lock */
	int32_t *ring;          /* [num_pages] */
	uint8_t *owned;         /* [num_pages] */
};

/* As the functions of fifo_impl.h. */
bool quire_lock_fifo_init(struct quire_lock_fifo *fifo, uint32_t num_pages);
void quire_lock_fifo_end(struct quire_lock_fifo *fifo);
bool quire_lock_fifo_take(struct quire_lock_fifo *fifo, uint32_t n, int32_t *pages_out,
                          uint32_t *available_out);
uint32_t quire_lock_fifo_give(struct quire_lock_fifo *fifo, const int32_t *pages,
                              uint32_t n, enum fifo_givers givers);
uint32_t quire_lock_fifo_count(const struct quire_lock_fifo *fifo);
enum quire_status quire_lock_fifo_list(const struct quire_lock_fifo *fifo,
                                       int32_t *pages_out,
                                       struct quire_refusal *refusal_out);
bool quire_lock_fifo_owns(const struct quire_lock_fifo *fifo, uint32_t page);

#endif
