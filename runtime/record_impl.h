/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_RUNTIME_RECORD_IMPL_H
#define QUIRE_RUNTIME_RECORD_IMPL_H
/*
 * The inside of a recording: what the planner and the executor leave for its thread.
 *
 *   events   planner -> recording: a ring of bytes, one event after another.  A command's
 *            event stays there until its line is written, so the ring is all that a
 *            recording holds back.
 *   steps    executor -> recording: a fixed cell for each of the newest steps, with
 *            the digest and the times.  The planner plans no step whose cell the
 *            recording still needs.
 *
 * The thread is never woken for an event: it looks every flush_ns, and whenever the
 * planner has filled a quarter of the ring, or of the cells.
 *
 * Orders
 *   tail       planner, release -> thread, acquire: the events before it are written.
 *   head       thread, release -> planner, acquire: the events before it are read, and
 *              may be written over.  Fates that the thread writes into events are read
 *              by nobody else.
 *   issued, retired
 *              executor, release -> thread, acquire: the cell's numbers are written, if
 *              it has the ticket that is looked for.
 *   done_step  thread, release -> planner, acquire: the cells up to it are read.  The
 *              executor, who writes them, has the step from the planner (entries.tail),
 *              so it is behind that acquire.
 *   ends, active, overrun
 *              who ends it stores them with release, overrun before one, and wakes the
 *              thread, which loads them before it looks: what was noted before the end
 *              is in the last look.  The planner and the executor load `active` relaxed:
 *              one event or cell too many is written where nobody looks any more, and
 *              there was room for it.
 *   is_waiting planner, release -> thread, acquire; the thread takes it back before it
 *              wakes the planner, which looks once more in any case.
 *   newest_step, commands, left_out
 *              relaxed: of one writer, and numbers alone.
 *   recording  of the runtime: stored with release once all of it is made, under the
 *              commands' lock, before the first command is drawn under that lock.
 */
#include "plans/fault_impl.h"
#include "runtime/commands_impl.h"
#include "runtime/counter_impl.h"
#include "runtime/executor_impl.h"
#include "runtime/record_events_impl.h"
#include "runtime/timeline_impl.h"
#include "runtime/wake_impl.h"

#include <quire/plans/trace.h>
#include <quire/runtime/record.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct quire_runtime;

/* Steps that have a cell: more than may be planned and not retired. */
#define QUIRE_RECORD_STEPS 4096

/* ------------------------------------------------------------------ steps */

/* A step whose line is written and whose end is not. */
struct quire_record_running {
	uint64_t ticket;
	uint64_t step;
};

/* ------------------------------------------------------------------ the recording */

/* What there was no room in. */
enum quire_overrun {
	QUIRE_OVERRUN_NONE,
	QUIRE_OVERRUN_BYTES,
	QUIRE_OVERRUN_STEPS,
};

/* What the planner alone writes. */
struct quire_record_notes {
	char *ring; /* [mask + 1] bytes */
	uint64_t mask;
	uint64_t end;        /* of what it has written */
	uint64_t head;       /* as it saw it last */
	uint64_t event_max;  /* bytes of the largest event and of what goes with it */
	uint64_t step_bytes; /* of its event */
	quire_counter newest_step;                        /* noted */
	_Alignas(QUIRE_CACHE_LINE) _Atomic uint64_t tail; /* stored with release */
};

struct quire_recording {
	struct quire_record_notes notes;
	/* The thread's, stored with release, loaded with acquire by the planner.  Events
	 * before `head` are not needed any more, nor are cells of steps up to
	 * `done_step`. */
	_Alignas(QUIRE_CACHE_LINE) _Atomic uint64_t head;
	_Atomic uint64_t done_step;
	_Atomic bool is_waiting; /* the planner waits for room; stored with release */
	_Atomic bool active;     /* events are noted; once false it stays so */
	/* enum quire_overrun: why that is so, where the planner ended it; before `active` */
	_Atomic int overrun;
	_Atomic bool ends;      /* the program wants it to end; stored with release */
	struct quire_wake wake; /* the thread's */
	struct quire_runtime *runtime;
	struct quire_record_config config; /* without its texts */
	char *path;                        /* NULL: none */
	int64_t start_ns;
	bool has_timeline;               /* what it alone needs is noted */
	struct quire_record_step *steps; /* [QUIRE_RECORD_STEPS] */
	pthread_t thread;
	pthread_mutex_t lock; /* of the next three */
	struct quire_refusal refusal;
	char text[QUIRE_FAULT_BYTES]; /* of the refusal, where it is made at run time */
	bool is_ended;                /* somebody has joined the thread, or will */
	quire_counter commands, left_out;

	/* The rest is the thread's alone, once it runs. */
	struct quire_trace_writer *writer; /* NULL: none */
	struct quire_timeline *timeline;   /* NULL: none */
	int fd;                            /* the trace's; -1: none */
	int error;                         /* errno of the write that failed */
	uint64_t seen;                     /* events before it were looked at */
	uint64_t *open; /* [open_max]: events whose fate is open, oldest first */
	int32_t num_open;
	int32_t open_max;
	/* [QUIRE_RECORD_STEPS], with a timeline: steps that have not retired, a ring. */
	struct quire_record_running *running;
	uint64_t first_running;
	int32_t num_running;
	int64_t flushed_ns;
	bool is_dirty;                   /* since then something was written */
	struct quire_segment_in *rows;   /* [rows_max]: of the newest line of a step */
	struct quire_segment *segments;  /* [rows_max]: of the line being written */
	struct quire_combined *combined; /* [tables_max] */
	const char *(*combined_labels)[QUIRE_LABELS_MAX]; /* [tables_max] */
	struct quire_fork *forks;                         /* [2 * QUIRE_FORKS_MAX] */
};

/* What is too full for the largest event and the next step; @head: events before it are
 * not needed. */
enum quire_overrun quire_record_overrun(struct quire_recording *recording, uint64_t head);

/* Is there room for whatever the planner does next?  It asks before each command; what
 * it hears of fates has a margin.  False: it has to wait.  Planner only. */
bool quire_record_has_room(struct quire_runtime *runtime,
                           const struct quire_command_cell *cell);

/* The command came to this; @is_final: not a speculative step whose fate is open.
 * Planner only. */
void quire_record_command(struct quire_runtime *runtime,
                          const struct quire_command_cell *cell,
                          const struct quire_outcome *outcome, bool is_final);

/* A speculative step's fate took effect.  Planner only. */
void quire_record_fate(struct quire_runtime *runtime, uint64_t ticket,
                       enum quire_event_kind kind);

/* The planner's wait is over, before its notes of it are gone.  Planner only. */
void quire_record_wait(struct quire_runtime *runtime);

/* Are digests of plans recorded?  Executor only. */
bool quire_record_digests(struct quire_runtime *runtime);

/* A step was issued, or would have been but for a failure; it has retired.  Executor
 * only. */
void quire_record_issued(struct quire_runtime *runtime, const struct quire_entry *entry);
void quire_record_retired(struct quire_runtime *runtime, uint64_t step, uint64_t ticket);

/* End with the runtime, whose own threads have ended. */
void quire_record_destroy(struct quire_runtime *runtime);

/* ------------------------------------------------------------------ its thread */

/* The least flush_ns, and how often the thread looks while the planner waits. */
#define QUIRE_RECORD_FLUSH_NS_MIN INT64_C(1000000)

/* What the thread runs; @recording: all of it is made. */
void *quire_record_main(void *recording);

/* What a recording without room is refused with; @ticket: of the step whose open fate
 * keeps it so, 0: that is not why. */
struct quire_refusal quire_record_full(const struct quire_recording *recording,
                                       uint64_t ticket);

/* Look at what is there, and write what can be written.  QUIRE_OK; QUIRE_IO. */
enum quire_status quire_record_look(struct quire_recording *recording,
                                    struct quire_refusal *refusal);

/* The speculative step whose open fate keeps all else from being written; 0: none. */
uint64_t quire_record_blocked(const struct quire_recording *recording);

#endif
