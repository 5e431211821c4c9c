/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_RUNTIME_REGISTRY_IMPL_H
#define QUIRE_RUNTIME_REGISTRY_IMPL_H
/*
 * The registry: which requests are open, and their streams.
 *
 * Two sides
 *   The planner owns everything here and reads and writes its plain fields.  What other
 *   threads may see of a stream is a copy, `shown`, which the planner publishes when a
 *   command is final; so a step that may still be undone shows nothing.
 *
 * How a reader finds its way without a lock
 *   RCU (urcu-bp: threads register themselves) guards the way from a request's id to its
 *   slot: a hash table of chains whose nodes are used again only after a grace period.
 *   There are twice as many nodes as requests; when none is left the planner waits for
 *   one grace period, which readers inside a lookup hold up for no longer than it takes,
 *   and has all closed ones back.  So opening allocates nothing and its outcome depends
 *   on counts alone. Slots, streams and page arrays are only ever used again, so from
 *   there on a sequence count is enough: a reader that meets an odd or changed count
 *   reads again, and one whose stream has meanwhile become another request's sees that in
 *   `shown.request`.
 *
 * Invariants (quire_runtime_check verifies them)
 *   length <= seq_tokens_max - released, released mod page_size = 0
 *   num_pages >= ceil(length / page_size); pages beyond that have one owner
 *   no page twice in one list
 */
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
};

struct quire_stream {
	uint64_t generation; /* one more for every command that changed it */
	uint64_t step;       /* newest step that changed it */
	int32_t label;       /* label id */
	int32_t length;      /* live tokens, in the planner's order */
	int32_t released;    /* tokens released from the front */
	int32_t num_pages;   /* entries of pages in use, spare ones included */
	/* Fixed address, room for pages_max of the registry; the planner stores with
	 * release, readers load with acquire (see read_shown). */
	int32_t *pages;
	struct quire_stream_shown shown;
};

struct quire_request {
	uint64_t id;
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
	int32_t *pages;             /* all page arrays, reserved, touched as used */
	int64_t pages_bytes;
	int64_t pages_max;   /* of one stream */
	uint64_t generation; /* where a new stream starts: above any closed one's */
	int32_t requests_max;
	int32_t request_labels_max;
	int32_t num_open;
};

enum quire_status quire_registry_init(struct quire_registry *registry,
                                      int32_t requests_max, int32_t request_labels_max,
                                      int64_t pages_max);

/* Frees everything; no reader may be inside. */
void quire_registry_end(struct quire_registry *registry);

/* The open request of an id, or NULL.  Planner only. */
struct quire_request *quire_registry_find(struct quire_registry *registry, uint64_t id);

/* Open a request that is not open: QUIRE_OK, or QUIRE_LIMIT. */
enum quire_status quire_registry_open(struct quire_registry *registry, uint64_t id);

/* Close an open request; its streams' pages were given up before. */
void quire_registry_close(struct quire_registry *registry, struct quire_request *request);

/* A request's stream of a label, or NULL. */
struct quire_stream *quire_request_find(const struct quire_request *request,
                                        int32_t label);

/* A new, empty stream, not shown yet; NULL when the request has request_labels_max. */
struct quire_stream *quire_request_add(struct quire_registry *registry,
                                       struct quire_request *request, int32_t label);

/* Take back the newest stream, which was never shown. */
void quire_request_remove(struct quire_request *request);

/* Append pages to a stream's list. */
void quire_stream_append(struct quire_stream *stream, const int32_t *pages, int32_t n);

/* Let readers see a stream as it is now. */
void quire_stream_show(struct quire_request *request, struct quire_stream *stream);

/* Any thread: QUIRE_OK, QUIRE_NO_REQUEST, QUIRE_NO_LABEL. */
enum quire_status quire_registry_snapshot(struct quire_registry *registry, uint64_t id,
                                          int32_t label,
                                          struct quire_snapshot *snapshot_out,
                                          int32_t *pages_out, int64_t pages_max);

#endif
