/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_KERNELS_DEVICE_CUDA_IMPL_H
#define QUIRE_KERNELS_DEVICE_CUDA_IMPL_H
/*
 * The CUDA device, on the CUDA runtime.
 *
 *   device_cuda.c   names, memory, statuses, the table of functions
 *   dstream_cuda.c  device streams: order, copies, host functions
 *   track_cuda.c    how a stream failed
 *   event_cuda.c    events
 *   notice_cuda.c   functions called when an event is done
 *   move_cuda.c     the cache's operations
 *   move.cu         kernels of write_tokens and read_tokens
 *   pages.cu        kernels of copy_pages
 *
 * "cuda" is device 0, "cuda:N" device N.  With "+checks" behind it kernels look at ids,
 * offsets, ends and targets named twice before anything moves.
 *
 * Failure.  Operations of a stream have positions, counted from 1 when they are queued.
 * A stream fails at one of them: in a call, which the host knows at once, or while it
 * runs, by a check, a host function or a wait for an event of a failed stream
 * (move_cuda_impl.h).  An event has the failure if it was recorded at that position or a
 * later one.  What the host learns when it comes to ask, kernels and host functions of
 * the stream see at once; copies, records and waits queued meanwhile still run.  An error
 * that breaks the CUDA context is answered by every call from then on.
 *
 * Graphs.  What a stream's copy_pages needs in device memory is allocated by its first
 * call for more than one page, and again when a cache is larger, or a call has more
 * pairs, than any before; addresses then stay until the stream is destroyed.  So work
 * that is captured was done once before, by the same stream, with as large a cache and as
 * many pairs; a graph is launched on the stream it was captured from, or ordered with it.
 * Host functions are not captured.  What a check finds in a launch is said to be at the
 * position of the capture, so events recorded since then have the failure too.
 *
 * The calling thread's current device is as before when a call returns.
 *
 * Locks, in the order in which they are taken: a stream's, an event's, a notifier's.
 */
#include "kernels/device_impl.h"
#include "kernels/move_cuda_impl.h"

#include <cuda_runtime_api.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Characters of a thread's name with the final zero: Linux takes no more. */
#define CUDA_THREAD_NAME_BYTES 16

struct cuda_device {
	struct quire_device base;
	int ordinal;
	bool checks;
	int priority[2];     /* by enum quire_priority */
	cudaStream_t stream; /* zeroes memory */
};

/* A function to call once an event is done. */
struct cuda_notice {
	struct cuda_notice *next;
	cudaEvent_t done; /* recorded on the side stream, which waited for the event */
	void (*function)(void *argument);
	void *argument;
};

/*
 * Calls functions, in the order in which they were asked for, from a thread that waits
 * for the device: a host function would not be called any more when the context is
 * broken.  It waits for a side stream, as the event may be recorded again.
 */
struct cuda_notifier {
	const struct cuda_device *device;
	char name[CUDA_THREAD_NAME_BYTES];
	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t work;  /* a notice, or closing */
	pthread_t thread;
	cudaStream_t side;
	bool started;
	bool closing;
	struct cuda_notice *first;
	struct cuda_notice *last;
	struct cuda_notice *spare;
};

/* The part of a stream that its events speak of: it stays while one of them does.
 *   users = (the stream lives) + events recorded on it last + streams that followed it */
struct cuda_track {
	_Atomic int64_t users;
	struct quire_cuda_state *state;  /* device memory */
	struct quire_cuda_fault *report; /* pinned: how it failed while it ran */
	/* How a call failed, once `refused` says so; with release. */
	_Atomic bool refused;
	int64_t refused_at;
	struct quire_refusal refusal;
	/* It may fail while it runs: it has checks, host functions or followed a stream
	 * that may.  Never taken back. */
	_Atomic bool guarded;
	struct cuda_notifier notifier;
};

enum cuda_call_state {
	CUDA_CALL_QUEUED,
	CUDA_CALL_BEGUN,
	CUDA_CALL_DONE,
};

/* A host function that was queued; used again once it is done. */
struct cuda_call {
	struct cuda_call *next;
	enum quire_status (*function)(void *argument);
	void *argument;
	struct quire_cuda_fault *report;
	int64_t position;
	_Atomic int32_t state; /* an enum cuda_call_state */
};

/* Device memory of a stream that grew; blocks before it stay, for captured graphs. */
struct cuda_block {
	struct cuda_block *before;
	void *memory;
	int64_t bytes;
};

/* A stream that this one waited for, whose track its kernels read. */
struct cuda_leader {
	struct cuda_leader *next;
	struct cuda_track *track;
};

struct cuda_dstream {
	struct quire_dstream base;
	cudaStream_t stream;
	struct cuda_track *track;
	pthread_mutex_t lock;    /* guards what follows */
	int previous;            /* the current device to go back to */
	int64_t position;        /* operations queued so far */
	struct cuda_call *first; /* host functions, in their order; some are done */
	struct cuda_call *last;
	struct cuda_leader *leaders;
	struct cuda_block *marks; /* the newest; NULL: none yet */
	struct cuda_block *scratch;
};

struct cuda_event {
	struct quire_event base;
	cudaEvent_t event;
	bool timed;
	/* Of the newest record: CUDA_EVENT_BUSY, or the status with which it is done. */
	_Atomic int32_t state;
	pthread_mutex_t lock;     /* guards what follows */
	struct cuda_track *track; /* of the newest record; NULL: never recorded */
	int64_t position;
};
#define CUDA_EVENT_BUSY (-1)

/* device_cuda.c */

/* quire_cuda_enter - make a device current; on cudaSuccess end with quire_cuda_leave */
cudaError_t quire_cuda_enter(const struct cuda_device *device, int *previous_out);
void quire_cuda_leave(const struct cuda_device *device, int previous);

/* quire_cuda_refuse - the status of an error, which is taken off the calling thread;
 * cudaSuccess is QUIRE_OK and fills nothing */
enum quire_status quire_cuda_refuse(cudaError_t error, struct quire_refusal *refusal_out);

/* dstream_cuda.c */

/* quire_cuda_lock - lock a stream, failed or not, for an operation at its next position;
 * ended by quire_cuda_end whatever it answers */
cudaError_t quire_cuda_lock(struct cuda_dstream *dstream);

/*
 * quire_cuda_begin - quire_cuda_lock, if the stream has not failed
 * Returns:  QUIRE_OK: the stream is locked and its device current, until quire_cuda_end;
 *           the stream's failure.
 */
enum quire_status quire_cuda_begin(struct cuda_dstream *dstream,
                                   struct quire_refusal *refusal_out);

/* quire_cuda_end - an error of the operation fails the stream */
enum quire_status quire_cuda_end(struct cuda_dstream *dstream, cudaError_t error,
                                 struct quire_refusal *refusal_out);

/* quire_cuda_lane - for a launch, within an operation */
struct quire_cuda_lane quire_cuda_lane(const struct cuda_dstream *dstream);

/* track_cuda.c */

/* quire_cuda_track_create - of a stream that was just made */
cudaError_t quire_cuda_track_create(const struct cuda_device *device, cudaStream_t stream,
                                    const char *name, struct cuda_track **track_out);

/* quire_cuda_track_drop - end one use; NULL is a no-op */
void quire_cuda_track_drop(struct cuda_track *track);

/* quire_cuda_report_status - QUIRE_OK, or the status of a fault that can be read now */
uint32_t quire_cuda_report_status(const struct quire_cuda_fault *report);

/* quire_cuda_outcome - the failure that a record at a position has; @refusal_out filled
 * with the first failure, NULL allowed */
enum quire_status quire_cuda_outcome(const struct cuda_track *track, int64_t position,
                                     struct quire_refusal *refusal_out);

/* move_cuda.c: the words for a fault; the refusal's status is set. */
void quire_cuda_describe(const struct quire_cuda_fault *fault,
                         struct quire_refusal *refusal);

/* notice_cuda.c */
void quire_cuda_notifier_init(struct cuda_notifier *notifier,
                              const struct cuda_device *device, const char *name);

/*
 * quire_cuda_notifier_add - call a function when an event's newest record is done
 * Returns:  QUIRE_OK; QUIRE_CLOSED: all operations of the stream are done;
 *           QUIRE_NO_MEMORY, QUIRE_DEVICE: it will not be called.
 */
enum quire_status quire_cuda_notifier_add(struct cuda_notifier *notifier,
                                          cudaEvent_t event,
                                          void (*function)(void *argument),
                                          void *argument);

/* quire_cuda_notifier_close - call all that is left, then end the thread */
void quire_cuda_notifier_close(struct cuda_notifier *notifier);

/* What the table of functions names (device_impl.h). */
enum quire_status quire_cuda_dstream_create(struct quire_device *device, const char *name,
                                            enum quire_priority priority,
                                            struct quire_dstream **dstream_out);
void quire_cuda_dstream_destroy(struct quire_dstream *dstream);
void *quire_cuda_dstream_native(const struct quire_dstream *dstream);
enum quire_status quire_cuda_synchronize(struct quire_dstream *dstream,
                                         struct quire_refusal *refusal_out);
enum quire_status quire_cuda_wait_event(struct quire_dstream *dstream,
                                        struct quire_event *event);
enum quire_status quire_cuda_copy(struct quire_dstream *dstream,
                                  const struct quire_range *ranges, int64_t n);
enum quire_status quire_cuda_call(struct quire_dstream *dstream,
                                  enum quire_status (*function)(void *argument),
                                  void *argument);
enum quire_status quire_cuda_event_create(struct quire_device *device, bool timed,
                                          struct quire_event **event_out);
void quire_cuda_event_destroy(struct quire_event *event);
enum quire_status quire_cuda_event_record(struct quire_event *event,
                                          struct quire_dstream *dstream);
enum quire_status quire_cuda_event_query(struct quire_event *event);
enum quire_status quire_cuda_event_synchronize(struct quire_event *event);
enum quire_status quire_cuda_event_elapsed(struct quire_event *first,
                                           struct quire_event *last, int64_t *ns_out);
enum quire_status quire_cuda_event_notify(struct quire_event *event,
                                          void (*function)(void *argument),
                                          void *argument);
enum quire_status quire_cuda_move_write(struct quire_dstream *dstream,
                                        const struct quire_token_move *move,
                                        struct quire_refusal *refusal_out);
enum quire_status quire_cuda_move_read(struct quire_dstream *dstream,
                                       const struct quire_token_move *move,
                                       struct quire_refusal *refusal_out);
enum quire_status quire_cuda_move_pages(struct quire_dstream *dstream,
                                        const struct quire_page_move *move,
                                        struct quire_refusal *refusal_out);

#endif
