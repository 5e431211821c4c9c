/* SPDX-License-Identifier: MIT */
/* The thread of a stream, which runs its operations. */
#include "tests/cuda_standin/standin_impl.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#define JITTER_MAX_US 300

/* Under the lock. */
static int num_threads;
/* Operations that run and may touch device memory. */
static int num_running;

/* The next operation, once there is one; NULL: destroyed, and nothing is left. */
static struct standin_op *next_op(cudaStream_t stream)
{
	struct standin_op *op;

	standin_lock();
	while (stream->first == NULL && !stream->closed)
		standin_wait(&stream->work);
	op = stream->first;
	if (op != NULL)
		stream->first = op->next;
	standin_unlock();
	return op;
}

static bool begin(const struct standin_op *op)
{
	bool may_run;

	standin_lock();
	may_run = standin_may_run(op->work);
	if (op->work < STANDIN_HOST_FUNCTION) {
		num_running++;
		standin_open_memory();
	}
	standin_unlock();
	return may_run;
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void finish(cudaStream_t stream, struct standin_op *op)
{
	standin_edge_release(&op->ran);
	standin_lock();
	op->finished_ns = now_ns();
	if (op->work < STANDIN_HOST_FUNCTION)
		num_running--;
	/* Before anybody can see the operation done.  While more is queued it stays open,
	 * for speed. */
	if (num_running == 0 && stream->first == NULL)
		standin_close_memory();
	op->done = true;
	standin_op_drop_locked(op);
	pthread_cond_broadcast(&standin_done);
	standin_unlock();
}

/* xorshift64 */
static uint64_t next_random(uint64_t *random)
{
	*random ^= *random << 13;
	*random ^= *random >> 7;
	*random ^= *random << 17;
	return *random;
}

/* Half of the operations run at once. */
static void jitter(cudaStream_t stream)
{
	uint64_t seed = standin_jitter();
	uint64_t random;

	if (seed == 0)
		return;
	random = next_random(&stream->random) ^ seed;
	random = next_random(&random) >> 16;
	if (random % 4 == 0)
		sched_yield();
	else if (random % 4 == 1)
		usleep((useconds_t)(random / 4 % JITTER_MAX_US));
}

static void *stream_main(void *argument)
{
	cudaStream_t stream = argument;
	struct standin_op *op;

	while ((op = next_op(stream)) != NULL) {
		standin_edge_acquire(&op->ready);
		jitter(stream);
		if (begin(op))
			op->run(op);
		finish(stream, op);
	}
	standin_lock();
	num_threads--;
	pthread_cond_broadcast(&standin_done);
	standin_unlock();
	return NULL;
}

bool standin_thread_start_locked(cudaStream_t stream)
{
	pthread_attr_t attributes;
	pthread_t thread;
	bool started;

	if (pthread_attr_init(&attributes) != 0)
		return false;
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	started = pthread_create(&thread, &attributes, stream_main, stream) == 0;
	pthread_attr_destroy(&attributes);
	num_threads += started;
	return started;
}

void standin_threads_end_locked(void)
{
	while (num_threads > 0)
		standin_wait(&standin_done);
}
