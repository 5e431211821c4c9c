/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/registry_impl.h"

#include "runtime/memory_impl.h"

#include <urcu-bp.h>

#include <stddef.h>
#include <stdlib.h>

/* ------------------------------------------------------------ from an id to its slot */

static _Atomic(struct quire_request_node *) *bucket_of(struct quire_registry *registry,
                                                       uint64_t id)
{
	/* Fibonacci hashing: dense ids spread, and so do ids that differ in high bits. */
	uint64_t hash = (id ^ id >> 32) * 0x9e3779b97f4a7c15u;

	return &registry->buckets[hash >> 32 & registry->buckets_mask];
}

/* Inside a read-side section, or on the planner, which alone links and unlinks. */
static struct quire_request *find_request(struct quire_registry *registry, uint64_t id)
{
	/* Acquire: pairs with the release in link_node, so that the node's fields are
	 * seen. */
	struct quire_request_node *node =
		atomic_load_explicit(bucket_of(registry, id), memory_order_acquire);

	while (node != NULL &&
	       atomic_load_explicit(&node->id, memory_order_relaxed) != id)
		node = atomic_load_explicit(&node->next, memory_order_acquire);
	return node == NULL ? NULL
	                    : atomic_load_explicit(&node->request, memory_order_relaxed);
}

/* A node that no reader can be looking at. */
static struct quire_request_node *take_node(struct quire_registry *registry)
{
	struct quire_request_node *node;

	if (registry->nodes_used < 2 * registry->requests_max)
		return &registry->nodes[registry->nodes_used++];
	if (registry->free_nodes == NULL) {
		synchronize_rcu(); /* once in requests_max closings or more */
		registry->free_nodes = registry->closed_nodes;
		registry->closed_nodes = NULL;
	}
	node = registry->free_nodes;
	registry->free_nodes = node->next_free;
	return node;
}

static void link_node(struct quire_registry *registry, struct quire_request *request)
{
	_Atomic(struct quire_request_node *) *bucket = bucket_of(registry, request->id);
	struct quire_request_node *node = take_node(registry);

	atomic_store_explicit(&node->id, request->id, memory_order_relaxed);
	atomic_store_explicit(&node->request, request, memory_order_relaxed);
	atomic_store_explicit(&node->next,
	                      atomic_load_explicit(bucket, memory_order_relaxed),
	                      memory_order_relaxed);
	request->node = node;
	/* Pairs with the acquire in find_request. */
	atomic_store_explicit(bucket, node, memory_order_release);
}

static void unlink_node(struct quire_registry *registry, struct quire_request *request)
{
	_Atomic(struct quire_request_node *) *link = bucket_of(registry, request->id);
	struct quire_request_node *node = request->node;

	while (atomic_load_explicit(link, memory_order_relaxed) != node)
		link = &atomic_load_explicit(link, memory_order_relaxed)->next;
	/* A reader that stands on the node still finds its way on.  Release, for
	 * find_request: what comes after the node was linked before. */
	atomic_store_explicit(link,
	                      atomic_load_explicit(&node->next, memory_order_relaxed),
	                      memory_order_release);
	node->next_free = registry->closed_nodes;
	registry->closed_nodes = node;
	request->node = NULL;
}

/* ------------------------------------------------------------------ create, destroy */

/* A slot not in use; memory is touched when a slot is used for the first time. */
static struct quire_request *take_slot(struct quire_registry *registry)
{
	struct quire_request *request = registry->free;
	int64_t place = registry->requests_used;

	if (request != NULL) {
		registry->free = request->next_free;
		return request;
	}
	if (registry->requests_used == registry->requests_max)
		return NULL;
	request = &registry->requests[registry->requests_used++];
	request->streams = &registry->streams[place * registry->request_labels_max];
	for (int32_t s = 0; s < registry->request_labels_max; s++) {
		struct quire_stream *stream = &request->streams[s];

		stream->shown.changes =
			registry->changes +
			(stream - registry->streams) * registry->changes_bytes;
		atomic_store_explicit(&stream->shown.request, QUIRE_NO_REQUEST_ID,
		                      memory_order_relaxed);
	}
	return request;
}

static void free_slots(struct quire_registry *registry, const struct quire_memory *memory)
{
	int64_t requests = registry->requests_max;
	int64_t streams = requests * registry->request_labels_max;

	quire_memory_free(memory, registry->buckets, (int64_t)registry->buckets_mask + 1,
	                  sizeof(*registry->buckets));
	quire_memory_free(memory, registry->nodes, 2 * requests,
	                  sizeof(*registry->nodes));
	quire_memory_free(memory, registry->changes, streams,
	                  (size_t)registry->changes_bytes);
	quire_memory_free(memory, registry->streams, streams, sizeof(*registry->streams));
	quire_memory_free(memory, registry->requests, requests,
	                  sizeof(*registry->requests));
}

enum quire_status quire_registry_init(struct quire_registry *registry,
                                      const struct quire_registry_limits *limits,
                                      const struct quire_memory *memory)
{
	int64_t requests = limits->requests_max;
	int64_t streams = requests * limits->request_labels_max;
	uint64_t buckets = quire_power_of_two_from(2 * requests);

	*registry = (struct quire_registry){
		.requests_max = limits->requests_max,
		.request_labels_max = limits->request_labels_max,
		.changes_max = limits->changes_max,
		.changes_bytes = (12 * (int64_t)limits->changes_max + 63) / 64 * 64,
		.buckets_mask = buckets - 1,
	};
	registry->requests =
		quire_memory_zeroed(memory, requests, sizeof(*registry->requests));
	registry->streams =
		quire_memory_zeroed(memory, streams, sizeof(*registry->streams));
	registry->changes =
		quire_memory_zeroed(memory, streams, (size_t)registry->changes_bytes);
	registry->nodes =
		quire_memory_zeroed(memory, 2 * requests, sizeof(*registry->nodes));
	registry->buckets =
		quire_memory_zeroed(memory, (int64_t)buckets, sizeof(*registry->buckets));
	if (registry->requests == NULL || registry->streams == NULL ||
	    registry->changes == NULL || registry->nodes == NULL ||
	    registry->buckets == NULL)
		goto undo_slots;
	if (quire_lists_init(&registry->lists, streams + limits->lists_more,
	                     limits->pages_max) != QUIRE_OK)
		goto undo_slots;
	return QUIRE_OK;

undo_slots:
	free_slots(registry, memory);
	return QUIRE_NO_MEMORY;
}

void quire_registry_end(struct quire_registry *registry,
                        const struct quire_memory *memory)
{
	quire_lists_end(&registry->lists);
	free_slots(registry, memory);
}

/* ------------------------------------------------------------------ requests */

struct quire_request *quire_registry_find(struct quire_registry *registry, uint64_t id)
{
	return find_request(registry, id);
}

enum quire_status quire_registry_open(struct quire_registry *registry, uint64_t id)
{
	struct quire_request *request = take_slot(registry);
	struct quire_stream *stream;

	if (request == NULL)
		return QUIRE_LIMIT;
	registry->num_open++;
	request->id = id;
	request->met = 0;
	request->num_streams = 0;
	stream = quire_request_add(registry, request, 0);
	quire_stream_show(registry, request, stream, &stream->now);
	link_node(registry, request);
	return QUIRE_OK;
}

void quire_registry_close(struct quire_registry *registry, struct quire_request *request)
{
	unlink_node(registry, request);
	request->id = QUIRE_NO_REQUEST_ID;
	for (int32_t s = 0; s < request->num_streams; s++) {
		struct quire_stream *stream = &request->streams[s];
		struct quire_stream_state last = stream->now;

		if (registry->generation <= last.generation)
			registry->generation = last.generation + 1;
		stream->now = (struct quire_stream_state){.size = QUIRE_LIST_NONE};
		quire_stream_show(registry, request, stream, &stream->now);
		quire_list_free(&registry->lists, last.pages, last.size);
	}
	request->num_streams = 0;
	/* Pairs with the acquire in snapshot_of. */
	atomic_store_explicit(&request->shown_streams, 0, memory_order_release);
	request->next_free = registry->free;
	registry->free = request;
	registry->num_open--;
}

struct quire_stream *quire_request_add(struct quire_registry *registry,
                                       struct quire_request *request, int32_t label)
{
	struct quire_stream *stream;

	if (request->num_streams == registry->request_labels_max)
		return NULL;
	stream = &request->streams[request->num_streams++];
	stream->label = label;
	stream->met = 0;
	stream->note = NULL;
	stream->draft.ticket = 0;
	stream->now = (struct quire_stream_state){.size = QUIRE_LIST_NONE,
	                                          .generation = registry->generation};
	quire_stream_rename_list(registry, stream);
	return stream;
}

/* Readers may be copying from where the block was used before: see read_shown. */
static void store_pages(int32_t *to, const int32_t *pages, int32_t n)
{
	for (int32_t i = 0; i < n; i++)
		__atomic_store_n(&to[i], pages[i], __ATOMIC_RELEASE);
}

/* Another block; the old one stays if it is @kept. */
static void move_list(struct quire_registry *registry, struct quire_stream *stream,
                      const int32_t *pages, int32_t n, int64_t room, const int32_t *kept)
{
	struct quire_stream_state *now = &stream->now;
	int32_t *old = now->pages;
	int32_t old_size = now->size;

	now->pages = quire_list_new(&registry->lists, room, &now->size);
	store_pages(now->pages, pages, n);
	now->num_pages = n;
	if (old != kept)
		quire_list_free(&registry->lists, old, old_size);
}

void quire_stream_replace(struct quire_registry *registry, struct quire_stream *stream,
                          const int32_t *pages, int32_t n, int64_t room,
                          const int32_t *kept)
{
	move_list(registry, stream, pages, n, room, kept);
	quire_stream_rename_list(registry, stream);
}

void quire_stream_append(struct quire_registry *registry, struct quire_stream *stream,
                         const int32_t *pages, int32_t n, const int32_t *kept)
{
	struct quire_stream_state *now = &stream->now;
	int64_t needed = (int64_t)now->num_pages + n;

	if (needed > quire_list_room(&registry->lists, now->size))
		move_list(registry, stream, now->pages, now->num_pages, needed, kept);
	store_pages(now->pages + now->num_pages, pages, n);
	now->num_pages += n;
}

/* A later change at the same step replaces the one before. */
static void show_change(struct quire_registry *registry, struct quire_stream_shown *shown,
                        const struct quire_stream_state *state)
{
	uint32_t newest = atomic_load_explicit(&shown->newest, memory_order_relaxed);
	uint32_t n = newest >> 16, place = newest & 0xffff;

	if (n == 0 || atomic_load_explicit(quire_changes_step(shown, place),
	                                   memory_order_relaxed) != state->step) {
		place = n == 0 || place + 1 == (uint32_t)registry->changes_max
		                ? 0
		                : place + 1;
		n += n < (uint32_t)registry->changes_max;
	}
	atomic_store_explicit(quire_changes_step(shown, place), state->step,
	                      memory_order_release);
	atomic_store_explicit(quire_changes_length(registry, shown, place), state->length,
	                      memory_order_release);
	atomic_store_explicit(&shown->newest, n << 16 | place, memory_order_release);
}

void quire_stream_show(struct quire_registry *registry, struct quire_request *request,
                       struct quire_stream *stream,
                       const struct quire_stream_state *state)
{
	struct quire_stream_shown *shown = &stream->shown;
	uint32_t sequence = atomic_load_explicit(&shown->sequence, memory_order_relaxed);
	int32_t place = (int32_t)(stream - request->streams) + 1;

	/* Odd first: a reader whose acquire load meets one of the release stores below
	 * also sees the odd count, or a newer one, at its second look. */
	atomic_store_explicit(&shown->sequence, sequence + 1, memory_order_relaxed);
	atomic_store_explicit(&shown->request, request->id, memory_order_release);
	atomic_store_explicit(&shown->label, stream->label, memory_order_release);
	atomic_store_explicit(&shown->generation, state->generation,
	                      memory_order_release);
	atomic_store_explicit(&shown->step, state->step, memory_order_release);
	atomic_store_explicit(&shown->length, state->length, memory_order_release);
	atomic_store_explicit(&shown->released, state->released, memory_order_release);
	atomic_store_explicit(&shown->num_pages, state->num_pages, memory_order_release);
	atomic_store_explicit(&shown->pages, state->pages, memory_order_release);
	if (request->id == QUIRE_NO_REQUEST_ID) /* the slot's next stream starts anew */
		atomic_store_explicit(&shown->newest, 0, memory_order_release);
	else
		show_change(registry, shown, state);
	atomic_store_explicit(&shown->sequence, sequence + 2, memory_order_release);
	/* Pairs with the acquire in snapshot_of. */
	if (place > atomic_load_explicit(&request->shown_streams, memory_order_relaxed))
		atomic_store_explicit(&request->shown_streams, place,
		                      memory_order_release);
}

/* A reader on its way: what it looks for, and what it has found. */
struct reading {
	const struct quire_registry *registry;
	const _Atomic uint64_t *issued;
	const _Atomic uint64_t *retired;
	struct quire_snapshot snapshot;
	uint64_t request;
	int32_t label;
	int32_t *pages_out;
	int64_t pages_max;
};

/* The length that the newest change up to a step left, among those that are kept; a
 * stream with newer ones only was not there then. */
static int64_t length_at(const struct reading *reading,
                         const struct quire_stream_shown *shown, uint64_t step)
{
	uint32_t newest = atomic_load_explicit(&shown->newest, memory_order_acquire);
	uint32_t place = newest & 0xffff;

	for (uint32_t n = newest >> 16; n > 0; n--) {
		if (atomic_load_explicit(quire_changes_step(shown, place),
		                         memory_order_acquire) <= step)
			return atomic_load_explicit(
				quire_changes_length(reading->registry, shown, place),
				memory_order_acquire);
		place = place == 0 ? (uint32_t)reading->registry->changes_max - 1
		                   : place - 1;
	}
	return 0;
}

/* One try: true when what was read belongs together.  Acquire loads, so that the second
 * look at the count comes after them. */
static bool read_shown(struct reading *reading, const struct quire_stream *stream)
{
	const struct quire_stream_shown *shown = &stream->shown;
	struct quire_snapshot *snapshot = &reading->snapshot;
	uint32_t sequence = atomic_load_explicit(&shown->sequence, memory_order_acquire);
	const int32_t *pages;

	if (sequence % 2 != 0)
		return false;
	reading->request = atomic_load_explicit(&shown->request, memory_order_acquire);
	reading->label = atomic_load_explicit(&shown->label, memory_order_acquire);
	snapshot->generation =
		atomic_load_explicit(&shown->generation, memory_order_acquire);
	snapshot->step = atomic_load_explicit(&shown->step, memory_order_acquire);
	snapshot->length = atomic_load_explicit(&shown->length, memory_order_acquire);
	snapshot->released = atomic_load_explicit(&shown->released, memory_order_acquire);
	snapshot->num_pages =
		atomic_load_explicit(&shown->num_pages, memory_order_acquire);
	pages = atomic_load_explicit(&shown->pages, memory_order_acquire);
	for (int64_t i = 0;
	     pages != NULL && i < snapshot->num_pages && i < reading->pages_max; i++)
		reading->pages_out[i] = __atomic_load_n(&pages[i], __ATOMIC_ACQUIRE);
	/* Pair with the releases in the executor. */
	snapshot->issued_length =
		length_at(reading, shown,
	                  atomic_load_explicit(reading->issued, memory_order_acquire));
	snapshot->retired_length =
		length_at(reading, shown,
	                  atomic_load_explicit(reading->retired, memory_order_acquire));
	return atomic_load_explicit(&shown->sequence, memory_order_relaxed) == sequence;
}

static enum quire_status snapshot_of(struct reading *reading,
                                     struct quire_request *request, uint64_t id,
                                     int32_t label)
{
	/* Pairs with the release in quire_stream_show. */
	int32_t n = atomic_load_explicit(&request->shown_streams, memory_order_acquire);

	if (n == 0)
		return QUIRE_NO_REQUEST; /* closed meanwhile: an open one has a stream */
	for (int32_t s = 0; s < n; s++) {
		while (!read_shown(reading, &request->streams[s]))
			continue;
		if (reading->request != id)
			return QUIRE_NO_REQUEST; /* closed meanwhile */
		if (reading->label == label)
			return QUIRE_OK;
	}
	return QUIRE_NO_LABEL;
}

enum quire_status quire_registry_snapshot(struct quire_registry *registry, uint64_t id,
                                          int32_t label, const _Atomic uint64_t *issued,
                                          const _Atomic uint64_t *retired,
                                          struct quire_snapshot *snapshot_out,
                                          int32_t *pages_out, int64_t pages_max)
{
	enum quire_status status = QUIRE_NO_REQUEST;
	struct reading reading = {
		.registry = registry,
		.issued = issued,
		.retired = retired,
		.pages_out = pages_out,
		.pages_max = pages_max,
	};
	struct quire_request *request;

	rcu_read_lock();
	request = find_request(registry, id);
	if (request != NULL)
		status = snapshot_of(&reading, request, id, label);
	rcu_read_unlock();
	if (status == QUIRE_OK)
		*snapshot_out = reading.snapshot;
	return status;
}
