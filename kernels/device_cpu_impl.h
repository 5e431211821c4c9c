/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_KERNELS_DEVICE_CPU_IMPL_H
#define QUIRE_KERNELS_DEVICE_CPU_IMPL_H
/*
 * The CPU devices.
 *
 *   device_cpu.c   memory, the table of functions
 *   dstream_cpu.c  device streams: a ring of operations and the worker that runs them
 *   event_cpu.c    events
 *   move_cpu.c     write_tokens, read_tokens
 *   pages_cpu.c    copy_pages
 *
 * Locks, in the order in which they are taken: a stream's, an event's, the device's.
 */
#include "kernels/device_impl.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* A function to call when a record is done; NULL: none. */
struct cpu_notice {
	struct cpu_notice *next;
	void (*function)(void *argument);
	void *argument;
};

/*
 * Records that an event has from the start.  One stands for the event; others are named
 * by waits that a stream has not reached.  More are allocated when they are needed, and
 * kept.
 */
#define CPU_RECORDS 4

struct cpu_device {
	struct quire_device base;
	bool runs_inline;
	pthread_mutex_t lock;       /* guards what follows */
	struct cpu_notice *notices; /* not in use */
};

/*
 * One record of an event.  An older record lives on beside the newest while an operation
 * names it:
 *   users = (it is the event's newest) + (its own operation is queued) + waits naming it
 */
struct cpu_record {
	struct cpu_record *next; /* in the event's list of those not in use */
	int64_t users;
	bool done;
	enum quire_status status; /* once done */
	struct cpu_notice notice; /* the first; its `next` are the others */
};

struct cpu_event {
	struct quire_event base;
	/* Of the newest record: BUSY, or the status with which it is done. */
	_Atomic int32_t state;
	pthread_mutex_t lock;      /* guards what follows */
	pthread_cond_t done;       /* some record became done */
	struct cpu_record *newest; /* NULL: never recorded */
	struct cpu_record *spare;  /* users = 0 */
	struct cpu_record records[CPU_RECORDS];
};

enum cpu_op_kind {
	CPU_OP_COPY,
	CPU_OP_CALL,
	CPU_OP_WAIT,
	CPU_OP_RECORD,
	CPU_OP_WRITE_TOKENS,
	CPU_OP_READ_TOKENS,
	CPU_OP_COPY_PAGES,
};

struct cpu_op {
	enum cpu_op_kind kind;
	union {
		struct quire_range range;
		struct {
			enum quire_status (*function)(void *argument);
			void *argument;
		} call;
		struct {
			struct cpu_event *event;
			struct cpu_record *record;
		} event;
		struct quire_token_move tokens;
		struct quire_page_move pages;
	};
};

/* Memory that grows on demand and is kept. */
struct cpu_scratch {
	void *memory;
	size_t bytes;
};

/*
 * A device stream.  Positions count operations since create:
 *   done <= pushed <= done + capacity; operation p is ring[p mod capacity]
 * Only the worker (inline: the caller, under the lock) runs operations and sets `failed`.
 */
struct cpu_dstream {
	struct quire_dstream base;
	bool runs_inline;
	pthread_t worker;
	struct cpu_scratch scratch; /* the worker's */
	pthread_mutex_t lock;       /* guards what follows */
	pthread_cond_t work;        /* for the worker: an operation, or closing */
	pthread_cond_t progress;    /* for synchronize: done moved */
	struct cpu_op *ring;
	uint64_t capacity; /* a power of two */
	uint64_t pushed;
	uint64_t done;
	int synchronizers; /* threads that wait for progress */
	bool sleeping;     /* the worker waits for work */
	bool closing;
	bool failed;
	struct quire_refusal failure; /* once failed: the first */
};

/* quire_cpu_scratch_get - at least @bytes; NULL: no memory, what was there stays */
void *quire_cpu_scratch_get(struct cpu_scratch *scratch, size_t bytes);

/* Kernels: run at once; the refusal is filled when the status is not QUIRE_OK. */
enum quire_status quire_cpu_run_write_tokens(const struct quire_token_move *move,
                                             struct quire_refusal *refusal);
enum quire_status quire_cpu_run_read_tokens(const struct quire_token_move *move,
                                            struct quire_refusal *refusal);
enum quire_status quire_cpu_run_copy_pages(const struct quire_page_move *move,
                                           struct cpu_scratch *scratch,
                                           struct quire_refusal *refusal);

/* quire_cpu_record_begin - a new newest record, to be completed; NULL: no memory */
struct cpu_record *quire_cpu_record_begin(struct cpu_event *event);

/* quire_cpu_record_complete - the record's operation has run */
void quire_cpu_record_complete(struct cpu_event *event, struct cpu_record *record,
                               enum quire_status status);

/* quire_cpu_record_name - the newest record, for a wait; NULL: it is done, and well */
struct cpu_record *quire_cpu_record_name(struct cpu_event *event);

/* quire_cpu_record_await - end a name once the record is done; answers its status */
enum quire_status quire_cpu_record_await(struct cpu_event *event,
                                         struct cpu_record *record);

/* quire_cpu_record_drop - end a name without waiting */
void quire_cpu_record_drop(struct cpu_event *event, struct cpu_record *record);

/* What the table of functions names (device_impl.h). */
enum quire_status quire_cpu_dstream_create(struct quire_device *device, const char *name,
                                           struct quire_dstream **dstream_out);
void quire_cpu_dstream_destroy(struct quire_dstream *dstream);
void *quire_cpu_dstream_native(const struct quire_dstream *dstream);
enum quire_status quire_cpu_synchronize(struct quire_dstream *dstream,
                                        struct quire_refusal *refusal_out);
enum quire_status quire_cpu_wait_event(struct quire_dstream *dstream,
                                       struct quire_event *event);
enum quire_status quire_cpu_copy(struct quire_dstream *dstream,
                                 const struct quire_range *ranges, int64_t n);
enum quire_status quire_cpu_call(struct quire_dstream *dstream,
                                 enum quire_status (*function)(void *argument),
                                 void *argument);
enum quire_status quire_cpu_write_tokens(struct quire_dstream *dstream,
                                         const struct quire_token_move *move,
                                         struct quire_refusal *refusal_out);
enum quire_status quire_cpu_read_tokens(struct quire_dstream *dstream,
                                        const struct quire_token_move *move,
                                        struct quire_refusal *refusal_out);
enum quire_status quire_cpu_copy_pages(struct quire_dstream *dstream,
                                       const struct quire_page_move *move,
                                       struct quire_refusal *refusal_out);
enum quire_status quire_cpu_event_create(struct quire_device *device,
                                         struct quire_event **event_out);
void quire_cpu_event_destroy(struct quire_event *event);
enum quire_status quire_cpu_event_record(struct quire_event *event,
                                         struct quire_dstream *dstream);
enum quire_status quire_cpu_event_query(struct quire_event *event);
enum quire_status quire_cpu_event_synchronize(struct quire_event *event);
enum quire_status quire_cpu_event_notify(struct quire_event *event,
                                         void (*function)(void *argument),
                                         void *argument);

#endif
