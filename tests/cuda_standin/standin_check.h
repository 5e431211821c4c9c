/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_TESTS_CUDA_STANDIN_STANDIN_CHECK_H
#define QUIRE_TESTS_CUDA_STANDIN_STANDIN_CHECK_H
/* What the stand-in's own tests share. */
#include "tests/cuda_standin/standin.h"

#include <check.h>
#include <errno.h>
#include <semaphore.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#define ck_assert_cuda(call, error) \
	ck_assert_str_eq(cudaGetErrorName(call), cudaGetErrorName(error))
#define ck_assert_ok(call) ck_assert_cuda(call, cudaSuccess)

static inline cudaStream_t new_stream(void)
{
	cudaStream_t stream = NULL;

	ck_assert_ok(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, 0));
	return stream;
}

static inline cudaEvent_t new_event(void)
{
	cudaEvent_t event = NULL;

	ck_assert_ok(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	return event;
}

static inline void *new_device_memory(size_t bytes)
{
	void *memory = NULL;

	ck_assert_ok(cudaMalloc(&memory, bytes));
	return memory;
}

static inline void *new_pinned(size_t bytes)
{
	void *memory = NULL;

	ck_assert_ok(cudaHostAlloc(&memory, bytes, cudaHostAllocDefault));
	return memory;
}

static inline void ck_assert_nothing_live(void)
{
	struct standin_live live = standin_live();

	ck_assert_int_eq(live.streams, 0);
	ck_assert_int_eq(live.events, 0);
	ck_assert_int_eq(live.graphs, 0);
	ck_assert_int_eq(live.device_blocks, 0);
	ck_assert_int_eq(live.host_blocks, 0);
}

static inline void finish(cudaStream_t stream)
{
	ck_assert_ok(cudaStreamSynchronize(stream));
}

static inline void pass_gate(void *gate)
{
	while (sem_wait((sem_t *)gate) != 0)
		continue;
}

/* What is queued after this runs once the gate is opened. */
static inline void close_gate(cudaStream_t stream, sem_t *gate)
{
	sem_init(gate, 0, 0);
	ck_assert_ok(cudaLaunchHostFunc(stream, pass_gate, gate));
}

/* Give what wrongly does not wait the time to go on; no verdict of a right program hangs
 * on it. */
static inline void let_others_run(void)
{
	usleep(20000);
}

/* Does a process that does this die of it? */
static inline bool is_deadly(void (*act)(void *argument), void *argument)
{
	int status = 0;
	pid_t child = fork();

	ck_assert_int_ge(child, 0);
	if (child == 0) {
		act(argument);
		_exit(0);
	}
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		continue;
	return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

#endif
