/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_TESTS_KERNELS_DEVICE_USER_H
#define QUIRE_TESTS_KERNELS_DEVICE_USER_H
/*
 * What the tests of devices, their streams and events have in common.
 */
#include <quire/kernels/device.h>

#include <check.h>
#include <sched.h>
#include <semaphore.h>
#include <unistd.h>

/* The second one runs what is queued at once. */
static const char *const names[] = {"cpu", "cpu:inline", "cpu:3"};
#define NUM_NAMES    3
#define IS_INLINE(i) ((i) == 1)

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

static inline void finish(struct quire_dstream *dstream)
{
	ck_assert_int_eq(quire_dstream_synchronize(dstream, NULL), QUIRE_OK);
}

static inline enum quire_status pass_gate(void *gate)
{
	while (sem_wait(gate) != 0)
		continue;
	return QUIRE_OK;
}

static inline enum quire_status post(void *semaphore)
{
	sem_post(semaphore);
	return QUIRE_OK;
}

/* A stream behind a gate: what is queued after this runs once the gate is opened. */
static inline void close_gate(struct quire_dstream *dstream, sem_t *gate)
{
	sem_init(gate, 0, 0);
	ck_assert_int_eq(quire_dstream_call(dstream, pass_gate, gate), QUIRE_OK);
}

static inline void copy_int(struct quire_dstream *dstream, int *target, const int *source)
{
	struct quire_range range = {target, source, sizeof(*target)};

	ck_assert_int_eq(quire_dstream_copy(dstream, &range, 1), QUIRE_OK);
}

/* Give a stream that wrongly does not wait the time to go on; no verdict hangs on it. */
static inline void let_others_run(void)
{
	for (int i = 0; i < 20; i++) {
		sched_yield();
		usleep(50);
	}
}

static inline void count(void *counter)
{
	__atomic_add_fetch((int *)counter, 1, __ATOMIC_SEQ_CST);
}

static inline int counted(const int *counter)
{
	return __atomic_load_n(counter, __ATOMIC_SEQ_CST);
}

static inline enum quire_status fail_with(void *status)
{
	return *(enum quire_status *)status;
}

#endif
