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
 * planner has filled a quarter of the ring.
 */
#include "plans/fault_impl.h"
#include "runtime/commands_impl.h"
#include "runtime/counter_impl.h"
#include "runtime/executor_impl.h"
#include "runtime/wake_impl.h"

#include <quire/plans/trace.h>
#include <quire/runtime/record.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct quire_runtime;
struct quire_timeline;

/* Steps that have a cell: more than may be planned and not retired. */
#define QUIRE_RECORD_STEPS 4096

/* ------------------------------------------------------------------ events */

enum quire_event_kind {
	QUIRE_EVENT_SKIP, /* what is left at the end of the ring */
	QUIRE_EVENT_COMMAND,
	QUIRE_EVENT_PROMOTED,
	QUIRE_EVENT_ABANDONED,
	QUIRE_EVENT_FAILED, /* a speculative step ended with the runtime */
	/* A speculative step has been promoted; it rests on one whose fate is open. */
	QUIRE_EVENT_PROMOTED_ABOVE,
	QUIRE_EVENT_WAITED, /* the planner did; with a timeline */
};

/* Every event begins so, at a multiple of 8. */
struct quire_event_head {
	uint32_t bytes; /* with all that belongs to it, a multiple of 8 */
	uint32_t kind;
};

/* What the pool is in numbers; with a timeline. */
struct quire_event_numbers {
	int64_t free;
	int64_t owned;
};

/* The lists of a step, and how long they are. */
struct quire_event_counts {
	int32_t segments;
	int32_t pages;
	int32_t combined;
	int32_t pre_forks;
	int32_t post_forks;
};

/* Its lists lie behind it. */
struct quire_event_command {
	struct quire_event_head head;
	uint64_t ticket;
	uint64_t request;
	uint64_t base;
	uint64_t step; /* of a planned one */
	uint64_t client;
	int64_t given_ns;
	int64_t started_ns;
	int64_t decided_ns;
	int64_t detail;
	struct quire_event_numbers numbers;
	int32_t kind;
	int32_t status;
	int32_t label;
	int32_t keep_pages;
	int32_t tokens;
	uint32_t flags;
	int32_t bucket_tokens;
	int32_t bucket_rows;
	struct quire_event_counts counts;
	uint32_t span_label; /* of all segments, when is_uniform */
	bool is_uniform;
	bool is_wide; /* ids of 8 bytes */
	bool is_outside;
	/* A span that an event has no room for, and a trace no words. */
	bool is_misfit;
	bool is_open; /* its fate, which the recording's thread writes here */
	uint8_t fate; /* enum quire_event_kind; 0: none, or not yet */
};

struct quire_event_fork {
	uint8_t source;
	uint8_t target;
};

/*
 * Segments are most of an event, so they lie there as columns, each as narrow as it may
 * be: what a planner pays is the memory that it writes.  `request` follows `at`; it has 4
 * bytes where all ids fit into them, otherwise 8.  `span_label` is left out where all are
 * the same.
 */
struct quire_event_segments {
	int32_t *at;
	void *request;
	uint32_t *span_label; /* span * QUIRE_LABELS_MAX + label */
};

struct quire_event_lists {
	struct quire_combined_ids *combined;
	int32_t *pages;
	struct quire_event_fork *forks; /* pre, then post */
	char *segments;                 /* at a multiple of 8 */
};

static inline uint64_t quire_event_align(uint64_t bytes)
{
	return (bytes + 7) & ~UINT64_C(7);
}

/* Where the lists of an event lie. */
static inline struct quire_event_lists
quire_event_lists(struct quire_event_command *event)
{
	const struct quire_event_counts *counts = &event->counts;
	struct quire_event_lists lists;

	lists.combined = (struct quire_combined_ids *)(event + 1);
	lists.pages = (int32_t *)(lists.combined + counts->combined);
	lists.forks = (struct quire_event_fork *)(lists.pages + counts->pages);
	lists.segments = (char *)(lists.forks + counts->pre_forks + counts->post_forks);
	lists.segments = (char *)event +
	                 quire_event_align((uint64_t)(lists.segments - (char *)event));
	return lists;
}

/* The columns of n segments, with ids of that many bytes. */
static inline struct quire_event_segments quire_event_columns(char *start, int32_t n,
                                                              size_t id_bytes)
{
	struct quire_event_segments columns;

	columns.at = (int32_t *)start;
	columns.request = start + quire_event_align((uint64_t)n * sizeof(int32_t));
	columns.span_label = (uint32_t *)((char *)columns.request +
	                                  quire_event_align((uint64_t)n * id_bytes));
	return columns;
}

/* Bytes of the largest event with so many of everything. */
static inline uint64_t quire_event_bytes(const struct quire_event_counts *counts)
{
	uint64_t bytes = sizeof(struct quire_event_command);

	bytes += (uint64_t)counts->combined * sizeof(struct quire_combined_ids);
	bytes += (uint64_t)counts->pages * sizeof(int32_t);
	bytes += ((uint64_t)counts->pre_forks + (uint64_t)counts->post_forks) *
	         sizeof(struct quire_event_fork);
	/* at, request and span_label, each at a multiple of 8 */
	return quire_event_align(bytes) + (uint64_t)counts->segments * 16 + 24;
}

/* PROMOTED, PROMOTED_ABOVE, ABANDONED, FAILED. */
struct quire_event_fate {
	struct quire_event_head head;
	uint64_t ticket;
	int64_t given_ns; /* of FAILED it is not known */
	int64_t decided_ns;
	bool is_told; /* PROMOTED_ABOVE said so before: there is no line of it */
};

/* WAITED. */
struct quire_event_wait {
	struct quire_event_head head;
	int64_t from_ns;
	int64_t to_ns;
	const char *what; /* static: what it waited for */
};

/* ------------------------------------------------------------------ steps */

/* One step as the executor saw it; its numbers are stored before the ticket. */
struct quire_record_step {
	/* Stored with release, loaded with acquire. */
	_Atomic uint64_t issued;  /* ticket of the step */
	_Atomic uint64_t retired; /* the same, once it has */
	uint64_t digest;
	int64_t started_ns;
	int64_t issued_ns;
	int64_t retired_ns;
	bool has_run; /* false: the runtime had failed */
};

/* A step whose line is written and whose end is not. */
struct quire_record_running {
	uint64_t ticket;
	uint64_t step;
};

/* ------------------------------------------------------------------ the recording */

/* What the planner alone writes. */
struct quire_record_notes {
	char *ring; /* [mask + 1] bytes */
	uint64_t mask;
	uint64_t end;       /* of what it has written */
	uint64_t head;      /* as it saw it last */
	uint64_t event_max; /* bytes of the largest event and of what goes with it */
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
	_Atomic bool is_overrun; /* that is because there was no room; before `active` */
	_Atomic bool ends;       /* the program wants it to end; stored with release */
	struct quire_wake wake;  /* the thread's */
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
	struct quire_segment *segments;  /* [rows_max]: of the line being written */
	struct quire_combined *combined; /* [tables_max] */
	const char *(*combined_labels)[QUIRE_LABELS_MAX]; /* [tables_max] */
	struct quire_fork *forks;                         /* [2 * QUIRE_FORKS_MAX] */
};

/* Is there room for the largest event, and a cell for the next step?  @head: events
 * before it are not needed. */
bool quire_record_fits(struct quire_recording *recording, uint64_t head);

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

/* Look at what is there, and write what can be written.  QUIRE_OK; QUIRE_IO. */
enum quire_status quire_record_look(struct quire_recording *recording,
                                    struct quire_refusal *refusal);

/* The speculative step whose open fate keeps all else from being written; 0: none. */
uint64_t quire_record_blocked(const struct quire_recording *recording);

/* ------------------------------------------------------------------ timeline */

/*
 * A timeline: a file of trace events as Perfetto and chrome://tracing read them.  A file
 * that was not ended is read, too.
 *
 * quire_timeline_create, quire_timeline_flush, quire_timeline_end
 * Returns:  QUIRE_OK; QUIRE_IO {what}: of whatever was written so far; QUIRE_NO_MEMORY.
 */
enum quire_status quire_timeline_create(const char *path, int64_t start_ns,
                                        struct quire_timeline **timeline_out,
                                        struct quire_refusal *refusal_out);
enum quire_status quire_timeline_flush(struct quire_timeline *timeline,
                                       struct quire_refusal *refusal_out);
enum quire_status quire_timeline_end(struct quire_timeline *timeline,
                                     struct quire_refusal *refusal_out);

/* A command was decided, with status OK a step was planned, of a pool of @num_pages. */
void quire_timeline_command(struct quire_timeline *timeline,
                            const struct quire_event_command *command,
                            enum quire_status status, int64_t num_pages);

/* A speculative step's fate took effect. */
void quire_timeline_fate(struct quire_timeline *timeline,
                         const struct quire_event_fate *fate);

/* The planner waited. */
void quire_timeline_wait(struct quire_timeline *timeline,
                         const struct quire_event_wait *wait);

/* A step has retired; in their order. */
void quire_timeline_step(struct quire_timeline *timeline, uint64_t ticket,
                         const struct quire_record_step *step);

#endif
