/* SPDX-License-Identifier: MIT */
/*
 * liburcu's wait-free queue: a give links its pages in private and splices them in, which
 * is one exchange; a take follows the links under the queue's own mutex.  A count beside
 * it makes the take all or nothing.  A give stopped within its splice holds up the takes.
 */
#include "config.h"

#include "tests/alloc/rivals/rival.h"

#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>

/* The queue's functions inline: no call per page. */
#define _LGPL_SOURCE
#include <urcu/wfcqueue.h>

struct counted_queue {
	struct cds_wfcq_head head;
	alignas(128) struct cds_wfcq_tail tail;
	alignas(128) _Atomic int32_t count;
	struct cds_wfcq_node *nodes; /* [num_pages] */
};

static bool take(void *fifo, int32_t n, int32_t *pages_out)
{
	struct counted_queue *self = fifo;
	bool fits;

	cds_wfcq_dequeue_lock(&self->head, &self->tail);
	/* Only takes lower it, and they hold the lock. */
	fits = atomic_load_explicit(&self->count, memory_order_acquire) >= n;
	if (fits)
		atomic_fetch_sub_explicit(&self->count, n, memory_order_acq_rel);
	for (int32_t i = 0; fits && i < n; i++) {
		pages_out[i] =
			(int32_t)(__cds_wfcq_dequeue_blocking(&self->head, &self->tail) -
		                  self->nodes);
	}
	cds_wfcq_dequeue_unlock(&self->head, &self->tail);
	return fits;
}

static bool give(void *fifo, const int32_t *pages, int32_t n)
{
	struct counted_queue *self = fifo;
	struct __cds_wfcq_head batch;
	struct cds_wfcq_tail batch_tail;
	struct cds_wfcq_node *last = &batch.node;

	__cds_wfcq_init(&batch, &batch_tail);
	/* By hand: an enqueue makes an atomic exchange of each. */
	for (int32_t i = 0; i < n; i++) {
		last->next = &self->nodes[pages[i]];
		last = last->next;
		cds_wfcq_node_init(last);
	}
	batch_tail.p = last;
	__cds_wfcq_splice_blocking(&self->head, &self->tail, &batch, &batch_tail);
	atomic_fetch_add_explicit(&self->count, n, memory_order_acq_rel);
	return true;
}

static void *create(int32_t num_pages)
{
	struct counted_queue *self = rival_memory(sizeof(*self));

	cds_wfcq_init(&self->head, &self->tail);
	self->nodes = rival_memory((size_t)num_pages * sizeof(*self->nodes));
	for (int32_t p = 0; p < num_pages; p++)
		rival_must(give(self, &p, 1), "wfcqueue: not filled");
	return self;
}

static void destroy(void *fifo)
{
	struct counted_queue *self = fifo;

	cds_wfcq_destroy(&self->head, &self->tail);
	free(self->nodes);
	free(self);
}

const struct rival rival_wfcqueue = {
	.name = "wfcqueue",
	.create = create,
	.take = take,
	.give = give,
	.destroy = destroy,
};
