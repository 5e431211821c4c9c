/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "kernels/device_cpu_impl.h"
#include "runtime/refuse_impl.h"

#include <quire/runtime/assert.h>

#include <stdlib.h>
#include <string.h>

/* Operations in a new stream's ring: a step with its upload fits, so few ever grow. */
#define CAPACITY_FIRST 256

static enum quire_status run_call(const struct cpu_op *op, struct quire_refusal *refusal)
{
	enum quire_status status = op->call.function(op->call.argument);

	if (status == QUIRE_OK)
		return QUIRE_OK;
	/* An event that answers AGAIN is not done. */
	if (status == QUIRE_AGAIN)
		status = QUIRE_CALLBACK;
	return quire_refuse_what(refusal, status,
	                         "a host function on the device stream failed");
}

static enum quire_status run_wait(const struct cpu_op *op, struct quire_refusal *refusal)
{
	enum quire_status status =
		quire_cpu_record_await(op->event.event, op->event.record);

	if (status == QUIRE_OK)
		return QUIRE_OK;
	return quire_refuse_what(refusal, status,
	                         "the device stream of an event waited for failed");
}

/* What an operation still owes to others when its stream has failed. */
static void skip(struct cpu_dstream *dstream, const struct cpu_op *op)
{
	if (op->kind == CPU_OP_RECORD)
		quire_cpu_record_complete(op->event.event, op->event.record,
		                          dstream->failure.status);
	if (op->kind == CPU_OP_WAIT)
		quire_cpu_record_drop(op->event.event, op->event.record);
}

/* Run one operation; the refusal is filled when the status is not QUIRE_OK. */
static enum quire_status run(struct cpu_dstream *dstream, const struct cpu_op *op,
                             struct quire_refusal *refusal)
{
	if (dstream->failed) {
		skip(dstream, op);
		return QUIRE_OK;
	}
	switch (op->kind) {
	case CPU_OP_COPY:
		if (op->range.bytes > 0)
			memcpy(op->range.target, op->range.source,
			       (size_t)op->range.bytes);
		return QUIRE_OK;
	case CPU_OP_CALL:
		return run_call(op, refusal);
	case CPU_OP_WAIT:
		return run_wait(op, refusal);
	case CPU_OP_RECORD:
		quire_cpu_record_complete(op->event.event, op->event.record, QUIRE_OK);
		return QUIRE_OK;
	case CPU_OP_KERNEL:
		return op->kernel.run(&op->kernel.tokens, dstream, refusal);
	}
	QUIRE_ASSERT(false);
	return QUIRE_BROKEN;
}

/* Called under the lock. */
static void note_failure(struct cpu_dstream *dstream, enum quire_status status,
                         const struct quire_refusal *refusal)
{
	if (status == QUIRE_OK || dstream->failed)
		return;
	dstream->failed = true;
	dstream->failure = *refusal;
}

static void *work(void *argument)
{
	struct cpu_dstream *dstream = argument;

	pthread_mutex_lock(&dstream->lock);
	for (;;) {
		struct quire_refusal refusal;
		enum quire_status status;
		struct cpu_op op;

		while (dstream->done == dstream->pushed && !dstream->closing) {
			dstream->sleeping = true;
			pthread_cond_wait(&dstream->work, &dstream->lock);
			dstream->sleeping = false;
		}
		if (dstream->done == dstream->pushed)
			break;
		op = dstream->ring[dstream->done & (dstream->capacity - 1)];
		pthread_mutex_unlock(&dstream->lock);
		status = run(dstream, &op, &refusal);
		pthread_mutex_lock(&dstream->lock);
		note_failure(dstream, status, &refusal);
		dstream->done++;
		if (dstream->synchronizers > 0)
			pthread_cond_broadcast(&dstream->progress);
	}
	pthread_mutex_unlock(&dstream->lock);
	return NULL;
}

/* Room for n more operations.  Called under the lock. */
static enum quire_status reserve(struct cpu_dstream *dstream, int64_t n)
{
	uint64_t need = dstream->pushed - dstream->done + (uint64_t)n;
	uint64_t capacity = dstream->capacity;
	struct cpu_op *ring;

	if (dstream->runs_inline || need <= capacity)
		return QUIRE_OK;
	while (capacity < need)
		capacity *= 2;
	ring = reallocarray(NULL, capacity, sizeof(*ring));
	if (ring == NULL)
		return QUIRE_NO_MEMORY;
	for (uint64_t p = dstream->done; p < dstream->pushed; p++)
		ring[p & (capacity - 1)] = dstream->ring[p & (dstream->capacity - 1)];
	free(dstream->ring);
	dstream->ring = ring;
	dstream->capacity = capacity;
	return QUIRE_OK;
}

/* Take the lock with room for n operations, and for a record behind them: an event that
 * says when they are done must not fail for want of memory.  On anything but QUIRE_OK the
 * lock is not held. */
static enum quire_status enter(struct cpu_dstream *dstream, int64_t n,
                               struct quire_refusal *refusal_out)
{
	enum quire_status status;

	pthread_mutex_lock(&dstream->lock);
	if (dstream->failed) {
		status = dstream->failure.status;
		if (refusal_out != NULL)
			*refusal_out = dstream->failure;
	} else {
		status = reserve(dstream, n + 1);
		if (status != QUIRE_OK)
			quire_refuse_what(refusal_out, status,
			                  "queue of the device stream");
	}
	if (status != QUIRE_OK)
		pthread_mutex_unlock(&dstream->lock);
	return status;
}

/* Queue one operation for which there is room; inline: run it.  Called under the lock. */
static void put(struct cpu_dstream *dstream, const struct cpu_op *op)
{
	struct quire_refusal refusal;

	if (dstream->runs_inline) {
		note_failure(dstream, run(dstream, op, &refusal), &refusal);
		return;
	}
	dstream->ring[dstream->pushed & (dstream->capacity - 1)] = *op;
	dstream->pushed++;
	if (dstream->sleeping)
		pthread_cond_signal(&dstream->work);
}

/* Give the lock back; answers the failure of what an inline stream has just run. */
static enum quire_status leave(struct cpu_dstream *dstream,
                               struct quire_refusal *refusal_out)
{
	enum quire_status status = QUIRE_OK;

	if (dstream->failed) {
		status = dstream->failure.status;
		if (refusal_out != NULL)
			*refusal_out = dstream->failure;
	}
	pthread_mutex_unlock(&dstream->lock);
	return status;
}

/* Inline, the move is used where it is: one token is moved sooner than copied into an
 * operation. */
static enum quire_status submit_kernel(struct quire_dstream *base, cpu_kernel kernel,
                                       const void *move, size_t move_bytes,
                                       struct quire_refusal *refusal_out)
{
	struct cpu_dstream *dstream = (struct cpu_dstream *)base;

	QUIRE_TRY(enter(dstream, 1, refusal_out));
	if (dstream->runs_inline) {
		struct quire_refusal refusal;

		note_failure(dstream, kernel(move, dstream, &refusal), &refusal);
	} else {
		struct cpu_op op = {.kind = CPU_OP_KERNEL, .kernel.run = kernel};

		memcpy(&op.kernel.tokens, move, move_bytes);
		put(dstream, &op);
	}
	return leave(dstream, refusal_out);
}

enum quire_status quire_cpu_dstream_create(struct quire_device *device, const char *name,
                                           enum quire_priority priority,
                                           struct quire_dstream **dstream_out)
{
	struct cpu_dstream *dstream = calloc(1, sizeof(*dstream));
	enum quire_status status = QUIRE_NO_MEMORY;

	(void)priority;
	if (dstream == NULL)
		return status;
	dstream->base.device = device;
	dstream->runs_inline = ((struct cpu_device *)device)->runs_inline;
	dstream->team = ((struct cpu_device *)device)->team;
	pthread_mutex_init(&dstream->lock, NULL);
	pthread_cond_init(&dstream->work, NULL);
	pthread_cond_init(&dstream->progress, NULL);
	if (!dstream->runs_inline) {
		dstream->capacity = CAPACITY_FIRST;
		dstream->ring =
			reallocarray(NULL, CAPACITY_FIRST, sizeof(*dstream->ring));
		if (dstream->ring == NULL)
			goto undo_create;
		status = QUIRE_DEVICE;
		if (quire_cpu_thread_start(&dstream->worker, name, work, dstream) != 0)
			goto undo_ring;
	}
	*dstream_out = &dstream->base;
	return QUIRE_OK;

undo_ring:
	free(dstream->ring);
undo_create:
	pthread_cond_destroy(&dstream->progress);
	pthread_cond_destroy(&dstream->work);
	pthread_mutex_destroy(&dstream->lock);
	free(dstream);
	return status;
}

void quire_cpu_dstream_destroy(struct quire_dstream *base)
{
	struct cpu_dstream *dstream = (struct cpu_dstream *)base;

	if (!dstream->runs_inline) {
		pthread_mutex_lock(&dstream->lock);
		dstream->closing = true;
		pthread_cond_signal(&dstream->work);
		pthread_mutex_unlock(&dstream->lock);
		pthread_join(dstream->worker, NULL);
	}
	free(dstream->ring);
	free(dstream->saved.memory);
	free(dstream->scratch.memory);
	pthread_cond_destroy(&dstream->progress);
	pthread_cond_destroy(&dstream->work);
	pthread_mutex_destroy(&dstream->lock);
	free(dstream);
}

void *quire_cpu_dstream_native(const struct quire_dstream *dstream)
{
	(void)dstream;
	return NULL;
}

enum quire_status quire_cpu_synchronize(struct quire_dstream *base,
                                        struct quire_refusal *refusal_out)
{
	struct cpu_dstream *dstream = (struct cpu_dstream *)base;
	uint64_t end;

	pthread_mutex_lock(&dstream->lock);
	end = dstream->pushed;
	dstream->synchronizers++;
	while (dstream->done < end)
		pthread_cond_wait(&dstream->progress, &dstream->lock);
	dstream->synchronizers--;
	return leave(dstream, refusal_out);
}

enum quire_status quire_cpu_wait_event(struct quire_dstream *base,
                                       struct quire_event *event)
{
	struct cpu_dstream *dstream = (struct cpu_dstream *)base;
	struct cpu_op op = {
		.kind = CPU_OP_WAIT,
		.event.event = (struct cpu_event *)event,
	};
	enum quire_status status = enter(dstream, 1, NULL);

	if (status != QUIRE_OK)
		return status;
	op.event.record = quire_cpu_record_name(op.event.event);
	if (op.event.record != NULL)
		put(dstream, &op);
	return leave(dstream, NULL);
}

enum quire_status quire_cpu_event_record(struct quire_event *event,
                                         struct quire_dstream *base)
{
	struct cpu_dstream *dstream = (struct cpu_dstream *)base;
	struct cpu_op op = {
		.kind = CPU_OP_RECORD,
		.event.event = (struct cpu_event *)event,
	};
	enum quire_status status;

	pthread_mutex_lock(&dstream->lock);
	status = reserve(dstream, 1);
	if (status == QUIRE_OK) {
		op.event.record = quire_cpu_record_begin(op.event.event);
		if (op.event.record == NULL)
			status = QUIRE_NO_MEMORY;
		else
			put(dstream, &op);
	}
	pthread_mutex_unlock(&dstream->lock);
	return status;
}

enum quire_status quire_cpu_copy(struct quire_dstream *base,
                                 const struct quire_range *ranges, int64_t n)
{
	struct cpu_dstream *dstream = (struct cpu_dstream *)base;
	enum quire_status status = enter(dstream, n, NULL);

	if (status != QUIRE_OK)
		return status;
	for (int64_t i = 0; i < n; i++)
		put(dstream, &(struct cpu_op){.kind = CPU_OP_COPY, .range = ranges[i]});
	return leave(dstream, NULL);
}

enum quire_status quire_cpu_call(struct quire_dstream *base,
                                 enum quire_status (*function)(void *argument),
                                 void *argument)
{
	struct cpu_dstream *dstream = (struct cpu_dstream *)base;
	struct cpu_op op = {.kind = CPU_OP_CALL, .call = {function, argument}};

	QUIRE_TRY(enter(dstream, 1, NULL));
	put(dstream, &op);
	return leave(dstream, NULL);
}

enum quire_status quire_cpu_write_tokens(struct quire_dstream *dstream,
                                         const struct quire_token_move *move,
                                         struct quire_refusal *refusal_out)
{
	return submit_kernel(dstream, quire_cpu_run_write_tokens, move, sizeof(*move),
	                     refusal_out);
}

enum quire_status quire_cpu_read_tokens(struct quire_dstream *dstream,
                                        const struct quire_token_move *move,
                                        struct quire_refusal *refusal_out)
{
	return submit_kernel(dstream, quire_cpu_run_read_tokens, move, sizeof(*move),
	                     refusal_out);
}

enum quire_status quire_cpu_copy_pages(struct quire_dstream *dstream,
                                       const struct quire_page_move *move,
                                       struct quire_refusal *refusal_out)
{
	return submit_kernel(dstream, quire_cpu_run_copy_pages, move, sizeof(*move),
	                     refusal_out);
}
