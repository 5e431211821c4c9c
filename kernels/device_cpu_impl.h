/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_KERNELS_DEVICE_CPU_IMPL_H
#define QUIRE_KERNELS_DEVICE_CPU_IMPL_H
/*
 * The CPU devices.
 *
 *   device_cpu.c   memory, helpers that share an operation, the table of functions
 *   dstream_cpu.c  device streams: a ring of operations and the worker that runs them
 *   event_cpu.c    events
 *   move_cpu.c     write_tokens, read_tokens
 *   pages_cpu.c    copy_pages, copy_slots
 *   convert_*.c    what they move runs with (convert_impl.h)
 *
 * Locks, in the order in which they are taken: a stream's, an event's, the device's; a
 * team's are taken alone.
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

struct cpu_team;

struct cpu_device {
	struct quire_device base;
	bool runs_inline;
	struct cpu_team *team;      /* NULL: none */
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
	int64_t done_ns;          /* once done, if the event is timed */
	struct cpu_notice notice; /* the first; its `next` are the others */
};

struct cpu_event {
	struct quire_event base;
	bool timed;
	/* Of the newest record: BUSY, or the status with which it is done. */
	_Atomic int32_t state;
	pthread_mutex_t lock;      /* guards what follows */
	pthread_cond_t done;       /* some record became done */
	struct cpu_record *newest; /* NULL: never recorded */
	struct cpu_record *spare;  /* users = 0 */
	struct cpu_record records[CPU_RECORDS];
};

struct cpu_dstream;

/* An operation on a cache's storage, run at once on a stream's worker; @move: a struct
 * quire_token_move or quire_page_move.  The refusal is filled when the status is not
 * QUIRE_OK. */
typedef enum quire_status (*cpu_kernel)(const void *move, struct cpu_dstream *dstream,
                                        struct quire_refusal *refusal);

enum cpu_op_kind {
	CPU_OP_COPY,
	CPU_OP_CALL,
	CPU_OP_WAIT,
	CPU_OP_RECORD,
	CPU_OP_KERNEL,
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
		struct {
			cpu_kernel run;
			union {
				struct quire_token_move tokens;
				struct quire_page_move pages;
			};
		} kernel;
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
	struct cpu_team *team;      /* the device's */
	struct cpu_scratch scratch; /* the worker's */
	struct cpu_scratch saved;   /* the worker's: pages of cycles */
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

/* quire_cpu_thread_start - a named thread that takes no signals, and whose arithmetic
 * raises none; 0 or an error number */
int quire_cpu_thread_start(pthread_t *thread, const char *name,
                           void *(*function)(void *argument), void *argument);

/* One of the parts 0 .. parts - 1 of some work. */
typedef void (*cpu_part)(void *argument, int part, int parts);

/* quire_cpu_team_create - so many helping threads; @team_out: given */
enum quire_status quire_cpu_team_create(int num_helpers, struct cpu_team **team_out);

/* quire_cpu_team_destroy - NULL is a no-op; no stream may be at work */
void quire_cpu_team_destroy(struct cpu_team *team);

/*
 * quire_cpu_parts - in how many parts some work is done soonest
 * @team:    NULL: none; there is one part
 * @rows:    how many the work moves, and
 * @bytes:   how much; where it is little, sharing it costs more than doing it
 */
int quire_cpu_parts(const struct cpu_team *team, int64_t rows, int64_t bytes);

/* quire_cpu_parts_walking - the same where each part walks past the rows of the others */
int quire_cpu_parts_walking(const struct cpu_team *team, int64_t rows, int64_t bytes);

/*
 * quire_cpu_split - do all parts of some work: with the helpers of the device, or at once
 *                   as the only part
 * @parts:   at most what quire_cpu_parts answers for much work
 * Cost:     waits until all parts are done.
 */
void quire_cpu_split(struct cpu_team *team, int parts, cpu_part part, void *argument);

/*
 * Non-temporal stores do not read the line that they replace, nor keep it: they are twice
 * as fast where the target is not in a cache, and a quarter as fast where it is.  It is
 * not when it lies somewhere in more than half of a last-level cache: 16 MiB, the part of
 * one core group of today's servers; the machine's own word is of all groups together.
 * Little is written by ordinary stores in any case: one token of a decode step is likely
 * to be read next, and to lie beside the one before.
 */
#define CPU_STREAM_REGION_MIN (INT64_C(16) << 20)
#define CPU_STREAM_BYTES_MIN  (INT64_C(8) << 10)

static inline bool quire_cpu_streams(int64_t region_bytes, int64_t bytes)
{
	return region_bytes >= CPU_STREAM_REGION_MIN && bytes >= CPU_STREAM_BYTES_MIN;
}

/* quire_cpu_stream_end - before others are told of what was stored non-temporally, which
 * no atomic access orders */
static inline void quire_cpu_stream_end(void)
{
#ifdef __x86_64__
	__builtin_ia32_sfence();
#endif
}

/* Of floating-point arithmetic on x86-64, as a program begins: all exceptions are masked,
 * which raises no signals, rounding is to nearest.  Elsewhere there is nothing to set. */
#define CPU_FLOAT_DEFAULT UINT32_C(0x1f80)

static inline uint32_t quire_cpu_float_get(void)
{
#ifdef __x86_64__
	return __builtin_ia32_stmxcsr();
#else
	return CPU_FLOAT_DEFAULT;
#endif
}

static inline void quire_cpu_float_set(uint32_t environment)
{
#ifdef __x86_64__
	__builtin_ia32_ldmxcsr(environment);
#else
	(void)environment;
#endif
}

/* quire_cpu_check_ids - the first value of list[first .. last] outside 0 .. bound - 1 is
 * refused */
enum quire_status quire_cpu_check_ids(const int32_t *list, int64_t first, int64_t last,
                                      int64_t bound, const char *what,
                                      struct quire_refusal *refusal);

/* The kernels. */
enum quire_status quire_cpu_run_write_tokens(const void *move,
                                             struct cpu_dstream *dstream,
                                             struct quire_refusal *refusal);
enum quire_status quire_cpu_run_read_tokens(const void *move, struct cpu_dstream *dstream,
                                            struct quire_refusal *refusal);
enum quire_status quire_cpu_run_copy_pages(const void *move, struct cpu_dstream *dstream,
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
                                           enum quire_priority priority,
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
enum quire_status quire_cpu_event_create(struct quire_device *device, bool timed,
                                         struct quire_event **event_out);
void quire_cpu_event_destroy(struct quire_event *event);
enum quire_status quire_cpu_event_record(struct quire_event *event,
                                         struct quire_dstream *dstream);
enum quire_status quire_cpu_event_query(struct quire_event *event);
enum quire_status quire_cpu_event_synchronize(struct quire_event *event);
enum quire_status quire_cpu_event_elapsed(struct quire_event *first,
                                          struct quire_event *last, int64_t *ns_out);
enum quire_status quire_cpu_event_notify(struct quire_event *event,
                                         void (*function)(void *argument),
                                         void *argument);

#endif
