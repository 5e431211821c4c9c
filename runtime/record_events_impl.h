/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_RUNTIME_RECORD_EVENTS_IMPL_H
#define QUIRE_RUNTIME_RECORD_EVENTS_IMPL_H
/* What the planner and the executor leave for a recording: events, and cells of steps. */
#include "runtime/commands_impl.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* What the pool is in numbers, and what the command took of it; with a timeline. */
struct quire_event_numbers {
	int64_t free;
	int64_t owned;
	int64_t taken;
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
	int32_t num_continued; /* segments that are not here */
	uint32_t span_label;   /* of all segments here, when is_uniform */
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
 * Segments are most of an event, and what a planner pays is the memory that it writes.  So
 * the leading ones that go on where those of the step before ended are only counted, which
 * the client did: in a decode plan that is all of them.  The others lie here as columns,
 * each as narrow as it may be.  `request` follows `at`; it has 4 bytes where all ids fit
 * into them, otherwise 8.  `span_label` is left out where all are the same.
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

#endif
