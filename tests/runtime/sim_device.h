/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_TESTS_SIM_DEVICE_H
#define QUIRE_TESTS_SIM_DEVICE_H
/*
 * A device without threads: its streams are queues, and an operation runs when the test
 * says so.  So a scheduler decides how late each one is, out of step between streams, and
 * which one fails.  Rules of streams and events are those of device.h.
 *
 *   an event is done when its newest record has been run
 *   a stream whose head waits for a record that has not been run is blocked
 */
#include <quire/kernels/device.h>

#include <stdbool.h>
#include <stdint.h>

#define SIM_STREAMS_MAX 4

/* sim_device_create - end it with quire_device_destroy */
struct quire_device *sim_device_create(void);

/* sim_device_streams - streams made so far; they are numbered in that order */
int32_t sim_device_streams(const struct quire_device *device);

/* sim_device_step - run the operation at a stream's head; false: there is none, or it is
 * blocked */
bool sim_device_step(struct quire_device *device, int32_t stream);

/* sim_device_fail - the next operation that moves or calls anything fails its stream */
void sim_device_fail(struct quire_device *device);

/* sim_device_failed - has an operation failed for that? */
bool sim_device_failed(const struct quire_device *device);

#endif
