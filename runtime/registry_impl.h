/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_RUNTIME_REGISTRY_IMPL_H
#define QUIRE_RUNTIME_REGISTRY_IMPL_H
/*
 * The registry: which requests are open, and their streams.
 *
 * Two sides
 *   The planner owns everything here and reads and writes its plain fields.  What other
 *   threads may see of a stream is a copy, `shown`, which the planner publishes when a
 *   change is final; so a step that may still be undone shows nothing.
 *
 * How a reader finds its way without a lock
 *   RCU (urcu-bp: threads register themselves) guards the way from a request's id to its
 *   slot: a hash table of chains whose nodes are used again only after a grace period.
 *   There are twice as many nodes as requests; when none is left the planner waits for
 *   one grace period, which readers inside a lookup hold up for no longer than it takes,
 *   and has all closed ones back.  So opening allocates nothing and its outcome depends
 *   on counts alone. Slots, streams and page lists are only ever used again, so from
 *   there on a sequence count is enough: a reader that meets an odd or changed count
 *   reads again, and one whose stream has meanwhile become another request's sees that in
 *   `shown.request`.
 *
 * Invariants (quire_runtime_check verifies them)
 *   length <= seq_tokens_max - released, released mod page_size = 0
 *   num_pages >= ceil(length / page_size); pages beyond that have one owner
 *   no page twice in one list
 *   the newest change shown has the length shown; steps of changes rise strictly
 */
#include "runtime/lists_impl.h"

#include <quire/plans/step.h>
#include <quire/runtime/runtime.h>
#include <quire/runtime/status.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* shown.request of a stream that belongs to nobody. */
#define QUIRE_NO_REQUEST_ID UINT64_MAX

/* What readers see.  Written by the planner between two steps of `sequence`, with release
 * stores; read with acquire loads: a reader that got a new value also sees the odd
 * count. */
struct quire_stream_shown {
	_Atomic uint32_t sequence; /* odd while it changes */
	_Atomic int32_t label;
	_Atomic uint64_t request;
	_Atomic uint64_t generation;
	_Atomic uint64_t step;
	_Atomic int32_t length;
	_Atomic int32_t released;
	_Atomic int32_t num_pages;
	/* Changes kept, up to changes_max, * 2^16 + the place of the newest.  They lie in
	 * a ring in fixed memory: see quire_changes_step. */
	_Atomic uint32_t newest;
	_Atomic(int32_t *) pages;
	char *changes;
};

/* What commands change of a stream; a copy of it brings everything back. */
struct quire_stream_state {
	int32_t *pages;      /* a block of the registry's lists, or NULL */
	int32_t size;        /* of that block */
	int32_t num_pages;   /* entries of pages in use, spare ones included */
	int32_t length;      /* live tokens, in the planner's order */
	int32_t released;    /* tokens released from the front */
	uint64_t generation; /* one more for every command that changed it */
	uint64_t step;       /* newest step that changed it */
	uint64_t list; /* names the list: another one when anything but its end changes */
};

/*
 * A stream as the step being admitted would leave it; of another ticket it means nothing.
 * `pages` are those of the stream that a fork gives it, which are its own up to the last
 * full one.
 */
struct quire_draft {
	uint64_t ticket;
	int32_t length;
	int32_t released;
	const int32_t *pages;
	bool forked;
};

struct quire_note;

/* One cache line is enough for a step that only grows a stream, and one for readers. */
struct quire_stream {
	_Alignas(64) struct quire_stream_state now;
	int32_t label; /* label id */
	uint64_t met;  /* ticket of the newest step that named it */
	_Alignas(64) struct quire_stream_shown shown;
	_Alignas(64) struct quire_draft draft;
	struct quire_note *note; /* newest of a step that may be undone */
};

struct quire_request {
	_Alignas(64) uint64_t id;
	uint64_t met;        /* ticket of the newest step with forks that named it */
	int32_t num_streams; /* the planner's */
	_Atomic int32_t
		shown_streams; /* what readers may look at; pairs release with acquire */
	struct quire_request *next_free;
	struct quire_request_node *node;
	struct quire_stream *streams; /* [request_labels_max], in creation order */
};

/* One entry of the hash table.  Readers follow `next` and compare `id`: stored with
 * release before the node is linked, loaded with acquire. */
struct quire_request_node {
	_Atomic(struct quire_request_node *) next;
	_Atomic uint64_t id;
	struct quire_request *_Atomic request;
	struct quire_request_node *next_free; /* the planner's: free, or closed */
};

struct quire_registry {
	_Atomic(struct quire_request_node *) *buckets;
	uint64_t buckets_mask;
	struct quire_request_node *nodes;        /* [2 * requests_max] */
	int32_t nodes_used;                      /* from here on never linked */
	struct quire_request_node *free_nodes;   /* may be linked */
	struct quire_request_node *closed_nodes; /* may be, after a grace period */
	struct quire_request *requests;          /* [requests_max] */
	struct quire_stream *streams;            /* [requests_max * request_labels_max] */
	int32_t requests_used;      /* from here on never opened, nor touched */
	struct quire_request *free; /* slots before that, not in use */
	struct quire_lists lists;
	uint64_t list_names;   /* given so far */
	char *changes;         /* of all streams */
	int64_t changes_bytes; /* of one */
	int32_t changes_max;
	uint64_t generation; /* where a new stream starts: above any closed one's */
	int32_t requests_max;
	int32_t request_labels_max;
	int32_t num_open;
};

struct quire_registry_limits {
	int32_t requests_max;
	int32_t request_labels_max;
	int32_t changes_max; /* (step, length) pairs that a stream keeps */
	int64_t pages_max;   /* of one stream */
	int64_t lists_more;  /* lists that notes keep, beside one of each stream */
};

enum quire_status quire_registry_init(struct quire_registry *registry,
                                      const struct quire_registry_limits *limits,
                                      const struct quire_memory *memory);

/* Frees everything; no reader may be inside. */
void quire_registry_end(struct quire_registry *registry,
                        const struct quire_memory *memory);

/* The open request of an id, or NULL.  Planner only. */
struct quire_request *quire_registry_find(struct quire_registry *registry, uint64_t id);

/* Open a request that is not open: QUIRE_OK, or QUIRE_LIMIT. */
enum quire_status quire_registry_open(struct quire_registry *registry, uint64_t id);

/* Close an open request; its streams' pages were given up before. */
void quire_registry_close(struct quire_registry *registry, struct quire_request *request);

/* A request's stream of a label, or NULL. */
static inline struct quire_stream *quire_request_find(const struct quire_request *request,
                                                      int32_t label)
{
	for (int32_t s = 0; s < request->num_streams; s++)
		if (request->streams[s].label == label)
			return &request->streams[s];
	return NULL;
}

/* What steps and commands made of a stream's length: all steps, then all lengths, so that
 * the few that are kept share a cache line. */
static inline _Atomic uint64_t *quire_changes_step(const struct quire_stream_shown *shown,
                                                   uint32_t place)
{
	return (_Atomic uint64_t *)(void *)shown->changes + place;
}

static inline _Atomic int32_t *
quire_changes_length(const struct quire_registry *registry,
                     const struct quire_stream_shown *shown, uint32_t place)
{
	return (_Atomic int32_t *)(void *)(shown->changes + 8 * registry->changes_max) +
	       place;
}

/* Ask early for what a change of a stream will touch; NULL is a no-op. */
static inline void quire_stream_prefetch(const struct quire_registry *registry,
                                         const struct quire_stream *stream)
{
	if (stream == NULL)
		return;
	__builtin_prefetch(stream, 1);
	__builtin_prefetch(&stream->shown, 1);
	__builtin_prefetch(registry->changes +
	                           (stream - registry->streams) * registry->changes_bytes,
	                   1);
}

/* A new, empty stream, not shown yet; NULL when the request has request_labels_max. */
struct quire_stream *quire_request_add(struct quire_registry *registry,
                                       struct quire_request *request, int32_t label);

/* The list has changed otherwise than at its end. */
static inline void quire_stream_rename_list(struct quire_registry *registry,
                                            struct quire_stream *stream)
{
	stream->now.list = ++registry->list_names;
}

/*
 * quire_stream_replace - another list in another block
 * @pages:   borrowed, n of them; may lie in the old list
 * @room:    pages that the block should hold, n or more
 * @kept:    the old block stays if it is this one: readers or a note have it
 */
void quire_stream_replace(struct quire_registry *registry, struct quire_stream *stream,
                          const int32_t *pages, int32_t n, int64_t room,
                          const int32_t *kept);

/* Append pages to a stream's list; @kept: as above, should the list have to move. */
void quire_stream_append(struct quire_registry *registry, struct quire_stream *stream,
                         const int32_t *pages, int32_t n, const int32_t *kept);

/* Let readers see a stream in this state. */
void quire_stream_show(struct quire_registry *registry, struct quire_request *request,
                       struct quire_stream *stream,
                       const struct quire_stream_state *state);

/*
 * Any thread: QUIRE_OK, QUIRE_NO_REQUEST, QUIRE_NO_LABEL.
 * @issued, @retired: step numbers that only grow; read with acquire
 */
enum quire_status quire_registry_snapshot(struct quire_registry *registry, uint64_t id,
                                          int32_t label, const _Atomic uint64_t *issued,
                                          const _Atomic uint64_t *retired,
                                          struct quire_snapshot *snapshot_out,
                                          int32_t *pages_out, int64_t pages_max);

#endif
