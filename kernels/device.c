/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <quire/kernels/device.h>

#include "kernels/device_impl.h"
#include "runtime/refuse_impl.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

static const struct {
	const char *name;
	enum quire_status (*create)(const char *rest, struct quire_device **device_out,
	                            struct quire_refusal *refusal_out);
} kinds[] = {
	{"cpu", quire_device_create_cpu},
	{"cuda", quire_device_create_cuda},
};

enum quire_status quire_device_create(const char *name, struct quire_device **device_out,
                                      struct quire_refusal *refusal_out)
{
	size_t length = name == NULL ? 0 : strnlen(name, QUIRE_DEVICE_NAME_BYTES);

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		size_t prefix = strlen(kinds[i].name);
		struct quire_device *device;

		if (length < prefix || length >= QUIRE_DEVICE_NAME_BYTES ||
		    memcmp(name, kinds[i].name, prefix) != 0)
			continue;
		QUIRE_TRY(kinds[i].create(name + prefix, &device, refusal_out));
		memcpy(device->name, name, length + 1);
		atomic_init(&device->names, 1);
		*device_out = device;
		return QUIRE_OK;
	}
	return quire_refuse_what(refusal_out, QUIRE_INVALID, QUIRE_NO_SUCH_DEVICE);
}

void quire_device_destroy(struct quire_device *device)
{
	if (device == NULL)
		return;
	/* Acquire and release: whoever ends the last name comes behind all that others
	 * did under theirs. */
	if (atomic_fetch_sub_explicit(&device->names, 1, memory_order_acq_rel) == 1)
		device->ops->destroy(device);
}

void quire_device_retain(struct quire_device *device)
{
	/* Relaxed: who may call this holds a name already. */
	atomic_fetch_add_explicit(&device->names, 1, memory_order_relaxed);
}

const char *quire_device_name(const struct quire_device *device)
{
	return device->name;
}

int quire_device_enter(struct quire_device *device)
{
	return device->ops->enter == NULL ? -1 : device->ops->enter(device);
}

void quire_device_leave(struct quire_device *device, int previous)
{
	if (device->ops->leave != NULL)
		device->ops->leave(device, previous);
}

enum quire_status quire_device_alloc(struct quire_device *device, int64_t bytes,
                                     void **memory_out)
{
	if (bytes < 1)
		return QUIRE_INVALID;
	return device->ops->alloc(device, bytes, memory_out);
}

void quire_device_release(struct quire_device *device, void *memory, int64_t bytes)
{
	if (memory != NULL)
		device->ops->release(device, memory, bytes);
}

enum quire_status quire_device_alloc_pinned(struct quire_device *device, int64_t bytes,
                                            void **memory_out)
{
	if (bytes < 1)
		return QUIRE_INVALID;
	return device->ops->alloc_pinned(device, bytes, memory_out);
}

void quire_device_release_pinned(struct quire_device *device, void *memory, int64_t bytes)
{
	if (memory != NULL)
		device->ops->release_pinned(device, memory, bytes);
}

enum quire_status quire_dstream_create_with(struct quire_device *device, const char *name,
                                            enum quire_priority priority,
                                            struct quire_dstream **dstream_out)
{
	if (priority != QUIRE_PRIORITY_NORMAL && priority != QUIRE_PRIORITY_HIGH)
		return QUIRE_INVALID;
	return device->ops->dstream_create(device, name, priority, dstream_out);
}

enum quire_status quire_dstream_create(struct quire_device *device, const char *name,
                                       struct quire_dstream **dstream_out)
{
	return quire_dstream_create_with(device, name, QUIRE_PRIORITY_NORMAL,
	                                 dstream_out);
}

void quire_dstream_destroy(struct quire_dstream *dstream)
{
	if (dstream != NULL)
		dstream->device->ops->dstream_destroy(dstream);
}

struct quire_device *quire_dstream_device(const struct quire_dstream *dstream)
{
	return dstream->device;
}

void *quire_dstream_native(const struct quire_dstream *dstream)
{
	return dstream->device->ops->dstream_native(dstream);
}

enum quire_status quire_dstream_synchronize(struct quire_dstream *dstream,
                                            struct quire_refusal *refusal_out)
{
	return dstream->device->ops->synchronize(dstream, refusal_out);
}

enum quire_status quire_dstream_wait_event(struct quire_dstream *dstream,
                                           struct quire_event *event)
{
	if (event->device != dstream->device)
		return QUIRE_INVALID;
	return dstream->device->ops->wait_event(dstream, event);
}

static bool range_is_wrong(const struct quire_range *range)
{
	bool missing = range->target == NULL || range->source == NULL;

	return range->bytes < 0 || (range->bytes > 0 && missing);
}

enum quire_status quire_dstream_copy(struct quire_dstream *dstream,
                                     const struct quire_range *ranges, int64_t n)
{
	if (n < 0 || (n > 0 && ranges == NULL))
		return QUIRE_INVALID;
	for (int64_t i = 0; i < n; i++)
		if (range_is_wrong(&ranges[i]))
			return QUIRE_INVALID;
	return dstream->device->ops->copy(dstream, ranges, n);
}

enum quire_status quire_dstream_call(struct quire_dstream *dstream,
                                     enum quire_status (*function)(void *argument),
                                     void *argument)
{
	if (function == NULL)
		return QUIRE_INVALID;
	return dstream->device->ops->call(dstream, function, argument);
}

enum quire_status quire_event_create(struct quire_device *device,
                                     struct quire_event **event_out)
{
	return device->ops->event_create(device, false, event_out);
}

enum quire_status quire_event_create_timed(struct quire_device *device,
                                           struct quire_event **event_out)
{
	return device->ops->event_create(device, true, event_out);
}

void quire_event_destroy(struct quire_event *event)
{
	if (event != NULL)
		event->device->ops->event_destroy(event);
}

enum quire_status quire_event_record(struct quire_event *event,
                                     struct quire_dstream *dstream)
{
	if (event->device != dstream->device)
		return QUIRE_INVALID;
	return event->device->ops->event_record(event, dstream);
}

struct quire_device *quire_event_device(const struct quire_event *event)
{
	return event->device;
}

enum quire_status quire_event_query(struct quire_event *event)
{
	return event->device->ops->event_query(event);
}

enum quire_status quire_event_synchronize(struct quire_event *event)
{
	return event->device->ops->event_synchronize(event);
}

enum quire_status quire_event_elapsed(struct quire_event *first, struct quire_event *last,
                                      int64_t *ns_out)
{
	if (first->device != last->device)
		return QUIRE_INVALID;
	return first->device->ops->event_elapsed(first, last, ns_out);
}

enum quire_status quire_event_notify(struct quire_event *event,
                                     void (*function)(void *argument), void *argument)
{
	if (function == NULL)
		return QUIRE_INVALID;
	return event->device->ops->event_notify(event, function, argument);
}
