/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_KERNELS_DEVICE_IMPL_H
#define QUIRE_KERNELS_DEVICE_IMPL_H
/*
 * What a kind of device implements.  Its own device, stream and event structs begin with
 * the ones below; device.c checks arguments and dispatches through the table, so an
 * implementation sees only sizes that are right and objects of one device.
 *
 * Rules of every function are those of device.h and cache.h.  An operation that fails
 * while it runs fails its stream with the struct quire_refusal that synchronize reports.
 */
#include <quire/kernels/device.h>

#include "kernels/move_impl.h"

#include <stdatomic.h>
#include <stdbool.h>

/* What is refused of a name that is none. */
#define QUIRE_NO_SUCH_DEVICE "device: none of cpu, cpu:inline, cpu:N, cuda, cuda:N"

/* Characters of a device's name with the final zero. */
#define QUIRE_DEVICE_NAME_BYTES 32

struct quire_device_ops {
	void (*destroy)(struct quire_device *device);

	/* The calling thread's current device; both NULL where there is no such thing. */
	int (*enter)(struct quire_device *device);
	void (*leave)(struct quire_device *device, int previous);

	/* Memory, zeroed; @bytes is 1 or more. */
	enum quire_status (*alloc)(struct quire_device *device, int64_t bytes,
	                           void **memory_out);
	void (*release)(struct quire_device *device, void *memory, int64_t bytes);
	enum quire_status (*alloc_pinned)(struct quire_device *device, int64_t bytes,
	                                  void **memory_out);
	void (*release_pinned)(struct quire_device *device, void *memory, int64_t bytes);

	/* Device streams. */
	enum quire_status (*dstream_create)(struct quire_device *device, const char *name,
	                                    enum quire_priority priority,
	                                    struct quire_dstream **dstream_out);
	void (*dstream_destroy)(struct quire_dstream *dstream);
	void *(*dstream_native)(const struct quire_dstream *dstream);
	enum quire_status (*synchronize)(struct quire_dstream *dstream,
	                                 struct quire_refusal *refusal_out);
	enum quire_status (*wait_event)(struct quire_dstream *dstream,
	                                struct quire_event *event);
	enum quire_status (*copy)(struct quire_dstream *dstream,
	                          const struct quire_range *ranges, int64_t n);
	enum quire_status (*call)(struct quire_dstream *dstream,
	                          enum quire_status (*function)(void *argument),
	                          void *argument);

	/* Events. */
	enum quire_status (*event_create)(struct quire_device *device, bool timed,
	                                  struct quire_event **event_out);
	void (*event_destroy)(struct quire_event *event);
	enum quire_status (*event_record)(struct quire_event *event,
	                                  struct quire_dstream *dstream);
	enum quire_status (*event_query)(struct quire_event *event);
	enum quire_status (*event_synchronize)(struct quire_event *event);
	enum quire_status (*event_elapsed)(struct quire_event *first,
	                                   struct quire_event *last, int64_t *ns_out);
	enum quire_status (*event_notify)(struct quire_event *event,
	                                  void (*function)(void *argument),
	                                  void *argument);

	/* Kernels on a cache's storage; the struct is borrowed, what it names is kept
	 * until done. */
	enum quire_status (*write_tokens)(struct quire_dstream *dstream,
	                                  const struct quire_token_move *move,
	                                  struct quire_refusal *refusal_out);
	enum quire_status (*read_tokens)(struct quire_dstream *dstream,
	                                 const struct quire_token_move *move,
	                                 struct quire_refusal *refusal_out);
	enum quire_status (*copy_pages)(struct quire_dstream *dstream,
	                                const struct quire_page_move *move,
	                                struct quire_refusal *refusal_out);
};

struct quire_device {
	const struct quire_device_ops *ops;
	char name[QUIRE_DEVICE_NAME_BYTES];
	int32_t dlpack_type; /* a DLDeviceType */
	int32_t dlpack_id;
	/* Its creator and each cache on it; the last one ends it. */
	_Atomic int64_t names;
};

struct quire_dstream {
	struct quire_device *device;
};

struct quire_event {
	struct quire_device *device;
};

/* quire_device_retain - one more name, to be ended by quire_device_destroy */
void quire_device_retain(struct quire_device *device);

/* The kinds of device, one creator each; @rest: the name behind that of the kind. */
enum quire_status quire_device_create_cpu(const char *rest,
                                          struct quire_device **device_out,
                                          struct quire_refusal *refusal_out);
enum quire_status quire_device_create_cuda(const char *rest,
                                           struct quire_device **device_out,
                                           struct quire_refusal *refusal_out);

#endif
