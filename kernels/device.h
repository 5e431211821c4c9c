/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_KERNELS_DEVICE_H
#define QUIRE_KERNELS_DEVICE_H
/*
 * Devices: memory, device streams, events, copies.
 *
 *   cpu         asynchronous: every device stream is a worker thread, events are real
 *   cpu:inline  at once: every operation is done when the call returns
 *   cpu:N       N from 1 to 64: as cpu, and N - 1 threads of the device help the streams'
 *               workers with moves of 16 rows and 512 KiB or more, each with 256 KiB or
 *               more and never more of them than CPUs: one stream at a time, while the
 *               others' workers go on alone
 *
 *   cuda        the current CUDA device; cuda:N, the N-th.  With "+checks" behind it page
 *               ids, offsets and ends are looked at, on the device, before an operation
 *               moves anything; without, one that is out of range is the caller's fault
 *               and anything may be overwritten
 *
 * The rules are CUDA's, so that one runtime drives all:
 *   - Operations of one device stream run in order; between streams only events order
 *     anything.
 *   - An event stands for its newest record at the time of the call that names it.  An
 *     event that was never recorded counts as done.
 *   - A failed operation fails its device stream for good: later operations on it do
 *     nothing, events recorded on it are done and answer with the failure, and the next
 *     call on the stream or a synchronize reports the first failure (on cpu:inline, the
 *     failing call itself).  A stream that waits for such an event fails with it too.
 *     Memory and caches are as good as before: end the stream and make another.
 *   - Memory that an operation names must stay valid until the operation is done.
 *
 * On cuda, besides:
 *   - A copy from or to memory that is not pinned may wait on the calling thread, and so
 *     may one from host to host.
 *   - When a stream fails, its kernels stop at once; copies that were queued before the
 *     host has learned of it still run.
 *   - quire_event_notify calls back in the order in which a stream's events were asked
 *     for, all before quire_dstream_destroy of that stream returns.
 *   - Work on a stream can be captured in a CUDA graph, host functions excepted, once the
 *     same stream has run copy_pages with as many pairs, on a cache of as many pages:
 *     what it needs in device memory is allocated then, and stays where it is.
 *
 * Threads: a device stream may be used from any thread; two threads that use one stream
 *          at the same time get some order.  create and destroy exclude every other call
 *          on the same object.
 *
 * Source: the CUDA Runtime API, sections Stream and Event Management.
 */
#include <quire/runtime/status.h>

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct quire_device;
struct quire_dstream;
struct quire_event;

/* One copy of a batch: borrowed addresses, kept until the copy is done. */
struct quire_range {
	void *target;
	const void *source;
	int64_t bytes;
};

/*
 * quire_device_create - open a device by name
 * @name:    borrowed; "cpu", "cpu:inline", "cpu:N", "cuda", "cuda:N", the last two also
 *           with "+checks"
 * @device_out: given; end it with quire_device_destroy
 * @refusal_out: filled on refusal; NULL allowed
 * Returns:  QUIRE_OK; QUIRE_INVALID: no such device, N out of range; QUIRE_NO_MEMORY;
 *           QUIRE_DEVICE {what}: no thread to be had; CUDA: built without, no driver or
 *           one too old, no such device.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_device_create(const char *name, struct quire_device **device_out,
                    struct quire_refusal *refusal_out);

/* quire_device_destroy - @device: given, NULL is a no-op; its streams, events and memory
 * must have been given back.  It stays while a cache on it, or an export of one, lives */
QUIRE_API void quire_device_destroy(struct quire_device *device);

/* quire_device_name - the name it was opened by; lent */
QUIRE_API const char *quire_device_name(const struct quire_device *device);

/*
 * quire_device_enter - make it the calling thread's current device
 * Returns:  what quire_device_leave takes to go back.  On cpu nothing happens, nor where
 *           it fails: later calls answer with the failure.
 * Threads:  any.
 * Source:   cudaSetDevice
 */
QUIRE_API int quire_device_enter(struct quire_device *device);

/* quire_device_leave - make the device before quire_device_enter current again */
QUIRE_API void quire_device_leave(struct quire_device *device, int previous);

/*
 * quire_device_alloc - device memory, zeroed, aligned to 64 bytes or more
 * @bytes:   1 or more
 * Returns:  QUIRE_OK; QUIRE_NO_MEMORY; QUIRE_INVALID: bytes out of range.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_device_alloc(struct quire_device *device, int64_t bytes, void **memory_out);

/* quire_device_release - give device memory back; NULL is a no-op; @bytes as at alloc */
QUIRE_API void quire_device_release(struct quire_device *device, void *memory,
                                    int64_t bytes);

/* quire_device_alloc_pinned - host memory that the device can copy from and to
 * asynchronously; otherwise as quire_device_alloc */
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_device_alloc_pinned(struct quire_device *device, int64_t bytes, void **memory_out);

/* quire_device_release_pinned - as quire_device_release */
QUIRE_API void quire_device_release_pinned(struct quire_device *device, void *memory,
                                           int64_t bytes);

/* Whose operations go first where two device streams wait for the same engine. */
enum quire_priority {
	QUIRE_PRIORITY_NORMAL,
	QUIRE_PRIORITY_HIGH,
};

/*
 * quire_dstream_create_with - a device stream
 * @name:    borrowed: the worker thread's name, of which 15 characters are kept
 * @priority: a wish; on cpu all are equal
 * @dstream_out: given; end it with quire_dstream_destroy
 * Returns:  QUIRE_OK; QUIRE_NO_MEMORY; QUIRE_DEVICE; QUIRE_INVALID: no such priority.
 * Cost:     on cpu one thread.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status quire_dstream_create_with(
	struct quire_device *device, const char *name, enum quire_priority priority,
	struct quire_dstream **dstream_out);

/* quire_dstream_create - quire_dstream_create_with of normal priority */
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_dstream_create(struct quire_device *device, const char *name,
                     struct quire_dstream **dstream_out);

/* quire_dstream_destroy - wait for all of its operations, then end it; NULL is a no-op */
QUIRE_API void quire_dstream_destroy(struct quire_dstream *dstream);

/* quire_dstream_device - the device it belongs to; lent */
QUIRE_API struct quire_device *quire_dstream_device(const struct quire_dstream *dstream);

/* quire_dstream_native - the device's own handle (a cudaStream_t); NULL on cpu */
QUIRE_API void *quire_dstream_native(const struct quire_dstream *dstream);

/*
 * quire_dstream_synchronize - wait until everything queued so far is done
 * @refusal_out: filled on refusal: what failed first; NULL allowed
 * Returns:  QUIRE_OK; QUIRE_DEVICE or the status of the first operation that failed.
 * Cost:     waits for the device.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status quire_dstream_synchronize(
	struct quire_dstream *dstream, struct quire_refusal *refusal_out);

/*
 * quire_dstream_wait_event - later operations of the stream wait for the event
 * Returns:  QUIRE_OK; QUIRE_INVALID: an event of another device; QUIRE_NO_MEMORY; the
 *           stream's failure.
 * Cost:     queues; never waits on the calling thread.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_dstream_wait_event(struct quire_dstream *dstream, struct quire_event *event);

/*
 * quire_dstream_copy - queue n copies as one operation (any of host, pinned, device
 * memory)
 * @ranges:  borrowed: the list is copied at the call, the memory it names is kept until
 *           done
 * @n:       0 or more
 * Returns:  QUIRE_OK; QUIRE_INVALID: a negative size, NULL with bytes; QUIRE_NO_MEMORY;
 *           the stream's failure.
 * Cost:     queues; never waits on the calling thread.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status quire_dstream_copy(
	struct quire_dstream *dstream, const struct quire_range *ranges, int64_t n);

/*
 * quire_dstream_call - queue a host function
 * @function: called with @argument in stream order, on a thread of the device; it may not
 *           call functions of the device.  A return other than QUIRE_OK fails the stream
 *           with it (QUIRE_AGAIN, which means not yet, with QUIRE_CALLBACK).
 * @argument: kept until the function returned
 * Returns:  QUIRE_OK; QUIRE_INVALID: function is NULL; QUIRE_NO_MEMORY; the stream's
 *           failure.
 * Source:   cudaLaunchHostFunc
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_dstream_call(struct quire_dstream *dstream,
                   enum quire_status (*function)(void *argument), void *argument);

/* quire_event_create - an event, not recorded: it counts as done.  @event_out: given. */
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_event_create(struct quire_device *device, struct quire_event **event_out);

/* quire_event_create_timed - as quire_event_create, of an event that also notes when it
 * was done */
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_event_create_timed(struct quire_device *device, struct quire_event **event_out);

/* quire_event_destroy - @event: given, NULL is a no-op; no queued operation may name
 * it */
QUIRE_API void quire_event_destroy(struct quire_event *event);

/* quire_event_device - the device whose streams may record it and wait for it; lent */
QUIRE_API struct quire_device *quire_event_device(const struct quire_event *event);

/*
 * quire_event_record - the event is done when everything queued on the stream so far is
 * Returns:  QUIRE_OK; QUIRE_INVALID: an event of another device; QUIRE_NO_MEMORY.  On a
 *           failed stream it still records: the event is then done and answers with the
 *           failure.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_event_record(struct quire_event *event, struct quire_dstream *dstream);

/*
 * quire_event_query - is it done?
 * Returns:  QUIRE_OK: done; QUIRE_AGAIN: not yet; otherwise done on a failed stream.
 * Cost:     one atomic load when not yet done.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status quire_event_query(struct quire_event *event);

/*
 * quire_event_synchronize - wait until it is done
 * Returns:  QUIRE_OK; the failure of the stream it was recorded on.
 * Cost:     waits for the device.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_event_synchronize(struct quire_event *event);

/*
 * quire_event_elapsed - time from one event to another, both timed and done
 * @ns_out:  filled; negative when @last was done first
 * Returns:  QUIRE_OK; QUIRE_AGAIN: one is not yet done; QUIRE_INVALID: one was never
 *           recorded, is not timed or is of another device; the failure of the stream
 *           that one was recorded on.
 * Source:   cudaEventElapsedTime
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_event_elapsed(struct quire_event *first, struct quire_event *last, int64_t *ns_out);

/*
 * quire_event_notify - have a function called once the event's newest record is done
 * @function: called once, on a thread of the device or at once on this one; it must be
 *           short and may not call functions of the device
 * @argument: kept until the function returned
 * Returns:  QUIRE_OK; QUIRE_INVALID: function is NULL; QUIRE_NO_MEMORY.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status quire_event_notify(
	struct quire_event *event, void (*function)(void *argument), void *argument);

#ifdef __cplusplus
}
#endif
#endif
