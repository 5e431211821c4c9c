/* SPDX-License-Identifier: MIT */
/*
 * Operations.  They are made and freed under the lock, so that ThreadSanitizer takes no
 * notice of who the last user is.
 */
#include "tests/cuda_standin/standin_impl.h"

#include <stdlib.h>

struct standin_op *standin_op_create_locked(enum standin_work work,
                                            void (*run)(struct standin_op *op),
                                            size_t payload_bytes)
{
	struct standin_op *op = calloc(1, sizeof(*op) + payload_bytes);

	if (op == NULL)
		return NULL;
	op->users = 1;
	op->work = work;
	op->run = run;
	op->payload_bytes = payload_bytes;
	return op;
}

struct standin_op *standin_op_create(enum standin_work work,
                                     void (*run)(struct standin_op *op),
                                     size_t payload_bytes)
{
	struct standin_op *op;

	standin_lock();
	op = standin_op_create_locked(work, run, payload_bytes);
	standin_unlock();
	return op;
}

void standin_op_drop_locked(struct standin_op *op)
{
	if (op != NULL && --op->users == 0)
		free(op);
}

void standin_op_drop_chain_locked(struct standin_op *op)
{
	while (op != NULL) {
		struct standin_op *next = op->next;

		standin_op_drop_locked(op);
		op = next;
	}
}

void standin_op_drop(struct standin_op *op)
{
	standin_lock();
	standin_op_drop_locked(op);
	standin_unlock();
}

void standin_op_share(struct standin_op *op)
{
	standin_lock();
	op->users++;
	standin_unlock();
}

void standin_op_await(struct standin_op *op)
{
	standin_lock();
	while (!op->done)
		standin_wait(&standin_done);
	standin_unlock();
}

void standin_op_join(struct standin_op *op)
{
	standin_op_await(op);
	standin_edge_acquire(&op->ran);
}

bool standin_op_query(struct standin_op *op)
{
	bool done;

	standin_lock();
	done = op->done;
	standin_unlock();
	if (done)
		standin_edge_acquire(&op->ran);
	return done;
}
