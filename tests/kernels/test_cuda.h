/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_TESTS_KERNELS_TEST_CUDA_H
#define QUIRE_TESTS_KERNELS_TEST_CUDA_H
/* What the tests of the CUDA device, on the stand-in, have in common. */
#include <quire/kernels/cache.h>

#include "tests/cuda_standin/standin.h"
#include "tests/run_suite.h"

#include <check.h>
#include <semaphore.h>
#include <string.h>

static inline struct quire_device *open_device(const char *name)
{
	struct quire_device *device = NULL;

	ck_assert_int_eq(quire_device_create(name, &device, NULL), QUIRE_OK);
	return device;
}

static inline struct quire_dstream *new_stream(struct quire_device *device)
{
	struct quire_dstream *dstream = NULL;

	ck_assert_int_eq(quire_dstream_create(device, "test", &dstream), QUIRE_OK);
	return dstream;
}

static inline struct quire_event *new_event(struct quire_device *device)
{
	struct quire_event *event = NULL;

	ck_assert_int_eq(quire_event_create(device, &event), QUIRE_OK);
	return event;
}

static inline void *new_memory(struct quire_device *device, int64_t bytes)
{
	void *memory = NULL;

	ck_assert_int_eq(quire_device_alloc(device, bytes, &memory), QUIRE_OK);
	return memory;
}

static inline void *new_pinned(struct quire_device *device, int64_t bytes)
{
	void *memory = NULL;

	ck_assert_int_eq(quire_device_alloc_pinned(device, bytes, &memory), QUIRE_OK);
	return memory;
}

static inline enum quire_status copy(struct quire_dstream *dstream, void *target,
                                     const void *source, int64_t bytes)
{
	return quire_dstream_copy(dstream, &(struct quire_range){target, source, bytes},
	                          1);
}

static inline enum quire_status pass_gate(void *gate)
{
	while (sem_wait(gate) != 0)
		continue;
	return QUIRE_OK;
}

/* A stream behind a gate: what is queued after this runs once the gate is opened. */
static inline void close_gate(struct quire_dstream *dstream, sem_t *gate)
{
	sem_init(gate, 0, 0);
	ck_assert_int_eq(quire_dstream_call(dstream, pass_gate, gate), QUIRE_OK);
}

static inline enum quire_status fail_with(void *status)
{
	return *(enum quire_status *)status;
}

static inline void expect_nothing_live(void)
{
	struct standin_live live = standin_live();

	ck_assert_int_eq(live.streams, 0);
	ck_assert_int_eq(live.events, 0);
	ck_assert_int_eq(live.device_blocks, 0);
	ck_assert_int_eq(live.host_blocks, 0);
	ck_assert_int_eq(live.graphs, 0);
}

#endif
