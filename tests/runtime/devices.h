/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_TESTS_RUNTIME_DEVICES_H
#define QUIRE_TESTS_RUNTIME_DEVICES_H
/*
 * The devices of suites that run on any, and bytes to and from their memory.
 *
 * A suite runs once over the devices of the CPU and, built once more with its own
 * TEST_DEVICES, over CUDA.  The first device is one that works behind its caller.  Of the
 * others nothing is known: one may be done when a call returns.  Their memory is not
 * touched but by their streams.
 */
#include <quire.h>

#include <stdio.h>
#include <stdlib.h>

#ifndef TEST_DEVICES
#define TEST_DEVICES "cpu", "cpu:inline", "cpu:2"
#endif

static const char *const test_devices[3] = {TEST_DEVICES};

#define TEST_DEVICE_LATE  (test_devices[0])
#define TEST_DEVICE_OTHER (test_devices[1])

/* An assertion that also works outside of Check, whose own ones do not, and on any
 * thread. */
#define must(condition)                                                                 \
	do {                                                                            \
		if (!(condition)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			abort();                                                        \
		}                                                                       \
	} while (0)

/* Behind what is on the stream, and done when it returns. */
static inline void copy_now(struct quire_dstream *dstream, void *target,
                            const void *source, int64_t bytes)
{
	const struct quire_range range = {
		.target = target, .source = source, .bytes = bytes};

	must(quire_dstream_copy(dstream, &range, 1) == QUIRE_OK);
	must(quire_dstream_synchronize(dstream, NULL) == QUIRE_OK);
}

#endif
