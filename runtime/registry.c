/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/registry_impl.h"

#include <urcu-bp.h>

#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>

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

		stream->pages = registry->pages +
		                (stream - registry->streams) * registry->pages_max;
		atomic_store_explicit(&stream->shown.request, QUIRE_NO_REQUEST_ID,
		                      memory_order_relaxed);
	}
	return request;
}

enum quire_status quire_registry_init(struct quire_registry *registry,
                                      int32_t requests_max, int32_t request_labels_max,
                                      int64_t pages_max)
{
	int64_t streams_max = (int64_t)requests_max * request_labels_max;
	uint64_t buckets = 1;

	while (buckets < 2 * (uint64_t)requests_max)
		buckets *= 2;
	*registry = (struct quire_registry){
		.requests_max = requests_max,
		.request_labels_max = request_labels_max,
		.pages_max = pages_max,
		.buckets_mask = buckets - 1,
		.pages_bytes = streams_max * pages_max * (int64_t)sizeof(int32_t),
	};
	registry->requests = calloc((size_t)requests_max, sizeof(*registry->requests));
	registry->streams = calloc((size_t)streams_max, sizeof(*registry->streams));
	registry->nodes = calloc(2 * (size_t)requests_max, sizeof(*registry->nodes));
	registry->buckets = calloc(buckets, sizeof(*registry->buckets));
	if (registry->requests == NULL || registry->streams == NULL ||
	    registry->nodes == NULL || registry->buckets == NULL)
		goto undo_slots;
	/* Address space for the longest list of every stream: memory comes as lists grow,
	 * and a list keeps its address for life, so readers need no grace period for
	 * it. */
	registry->pages =
		mmap(NULL, (size_t)registry->pages_bytes, PROT_READ | PROT_WRITE,
	             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (registry->pages == MAP_FAILED)
		goto undo_slots;
	return QUIRE_OK;

undo_slots:
	free(registry->buckets);
	free(registry->nodes);
	free(registry->streams);
	free(registry->requests);
	return QUIRE_NO_MEMORY;
}

void quire_registry_end(struct quire_registry *registry)
{
	munmap(registry->pages, (size_t)registry->pages_bytes);
	free(registry->buckets);
	free(registry->nodes);
	free(registry->streams);
	free(registry->requests);
}

/* ------------------------------------------------------------------ requests */

struct quire_request *quire_registry_find(struct quire_registry *registry, uint64_t id)
{
	return find_request(registry, id);
}

enum quire_status quire_registry_open(struct quire_registry *registry, uint64_t id)
{
	struct quire_request *request = take_slot(registry);

	if (request == NULL)
		return QUIRE_LIMIT;
	registry->num_open++;
	request->id = id;
	request->num_streams = 0;
	quire_stream_show(request, quire_request_add(registry, request, 0));
	link_node(registry, request);
	return QUIRE_OK;
}

void quire_registry_close(struct quire_registry *registry, struct quire_request *request)
{
	unlink_node(registry, request);
	request->id = QUIRE_NO_REQUEST_ID;
	for (int32_t s = 0; s < request->num_streams; s++) {
		struct quire_stream *stream = &request->streams[s];

		if (registry->generation <= stream->generation)
			registry->generation = stream->generation + 1;
		stream->length = stream->released = stream->num_pages = 0;
		quire_stream_show(request, stream);
	}
	request->num_streams = 0;
	/* Pairs with the acquire in snapshot_of. */
	atomic_store_explicit(&request->shown_streams, 0, memory_order_release);
	request->next_free = registry->free;
	registry->free = request;
	registry->num_open--;
}

struct quire_stream *quire_request_find(const struct quire_request *request,
                                        int32_t label)
{
	for (int32_t s = 0; s < request->num_streams; s++)
		if (request->streams[s].label == label)
			return &request->streams[s];
	return NULL;
}

struct quire_stream *quire_request_add(struct quire_registry *registry,
                                       struct quire_request *request, int32_t label)
{
	struct quire_stream *stream;

	if (request->num_streams == registry->request_labels_max)
		return NULL;
	stream = &request->streams[request->num_streams++];
	stream->label = label;
	stream->generation = registry->generation;
	stream->step = 0;
	stream->length = stream->released = stream->num_pages = 0;
	return stream;
}

void quire_request_remove(struct quire_request *request)
{
	request->num_streams--;
}

void quire_stream_append(struct quire_stream *stream, const int32_t *pages, int32_t n)
{
	for (int32_t i = 0; i < n; i++) /* readers may be copying: see read_shown */
		__atomic_store_n(&stream->pages[stream->num_pages + i], pages[i],
		                 __ATOMIC_RELEASE);
	stream->num_pages += n;
}

void quire_stream_show(struct quire_request *request, struct quire_stream *stream)
{
	struct quire_stream_shown *shown = &stream->shown;
	uint32_t sequence = atomic_load_explicit(&shown->sequence, memory_order_relaxed);
	int32_t place = (int32_t)(stream - request->streams) + 1;

	/* Odd first: a reader whose acquire load meets one of the release stores below
	 * also sees the odd count, or a newer one, at its second look. */
	atomic_store_explicit(&shown->sequence, sequence + 1, memory_order_relaxed);
	atomic_store_explicit(&shown->request, request->id, memory_order_release);
	atomic_store_explicit(&shown->label, stream->label, memory_order_release);
	atomic_store_explicit(&shown->generation, stream->generation,
	                      memory_order_release);
	atomic_store_explicit(&shown->step, stream->step, memory_order_release);
	atomic_store_explicit(&shown->length, stream->length, memory_order_release);
	atomic_store_explicit(&shown->released, stream->released, memory_order_release);
	atomic_store_explicit(&shown->num_pages, stream->num_pages, memory_order_release);
	atomic_store_explicit(&shown->sequence, sequence + 2, memory_order_release);
	/* Pairs with the acquire in snapshot_of. */
	if (place > atomic_load_explicit(&request->shown_streams, memory_order_relaxed))
		atomic_store_explicit(&request->shown_streams, place,
		                      memory_order_release);
}

/* One try: true when what was read belongs together.  Acquire loads, so that the second
 * look at the count comes after them. */
static bool read_shown(struct quire_stream *stream, struct quire_snapshot *snapshot,
                       uint64_t *request_out, int32_t *label_out, int32_t *pages_out,
                       int64_t pages_max)
{
	const struct quire_stream_shown *shown = &stream->shown;
	uint32_t sequence = atomic_load_explicit(&shown->sequence, memory_order_acquire);

	if (sequence % 2 != 0)
		return false;
	*request_out = atomic_load_explicit(&shown->request, memory_order_acquire);
	*label_out = atomic_load_explicit(&shown->label, memory_order_acquire);
	snapshot->generation =
		atomic_load_explicit(&shown->generation, memory_order_acquire);
	snapshot->step = atomic_load_explicit(&shown->step, memory_order_acquire);
	snapshot->length = atomic_load_explicit(&shown->length, memory_order_acquire);
	snapshot->released = atomic_load_explicit(&shown->released, memory_order_acquire);
	snapshot->num_pages =
		atomic_load_explicit(&shown->num_pages, memory_order_acquire);
	for (int64_t i = 0; i < snapshot->num_pages && i < pages_max; i++)
		pages_out[i] = __atomic_load_n(&stream->pages[i], __ATOMIC_ACQUIRE);
	return atomic_load_explicit(&shown->sequence, memory_order_relaxed) == sequence;
}

static enum quire_status snapshot_of(struct quire_request *request, uint64_t id,
                                     int32_t label, struct quire_snapshot *snapshot_out,
                                     int32_t *pages_out, int64_t pages_max)
{
	/* Pairs with the release in quire_stream_show. */
	int32_t n = atomic_load_explicit(&request->shown_streams, memory_order_acquire);

	if (n == 0)
		return QUIRE_NO_REQUEST; /* closed meanwhile: an open one has a stream */
	for (int32_t s = 0; s < n; s++) {
		struct quire_snapshot snapshot;
		uint64_t request_id;
		int32_t stream_label;

		while (!read_shown(&request->streams[s], &snapshot, &request_id,
		                   &stream_label, pages_out, pages_max))
			continue;
		if (request_id != id)
			return QUIRE_NO_REQUEST; /* closed meanwhile */
		if (stream_label == label) {
			*snapshot_out = snapshot;
			return QUIRE_OK;
		}
	}
	return QUIRE_NO_LABEL;
}

enum quire_status quire_registry_snapshot(struct quire_registry *registry, uint64_t id,
                                          int32_t label,
                                          struct quire_snapshot *snapshot_out,
                                          int32_t *pages_out, int64_t pages_max)
{
	enum quire_status status = QUIRE_NO_REQUEST;
	struct quire_request *request;

	rcu_read_lock();
	request = find_request(registry, id);
	if (request != NULL)
		status = snapshot_of(request, id, label, snapshot_out, pages_out,
		                     pages_max);
	rcu_read_unlock();
	return status;
}
