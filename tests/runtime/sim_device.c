/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "sim_device.h"

#include "kernels/device_impl.h"
#include "model_image.h"
#include "runtime/refuse_impl.h"

#include <stdlib.h>
#include <string.h>

/* Functions told of one record. */
#define NOTIFY_MAX 4

/* One record of an event: done when the stream has come to it. */
struct sim_record_of {
	struct sim_record_of *next; /* of all the device's */
	bool done;
	enum quire_status status;
	int32_t num_notify;
	void (*function[NOTIFY_MAX])(void *argument);
	void *argument[NOTIFY_MAX];
};

struct sim_event {
	struct quire_event base;
	struct sim_record_of *newest; /* NULL: never recorded */
};

enum op_kind {
	OP_WAIT,
	OP_RECORD,
	OP_COPY,
	OP_CALL,
	OP_WRITE_TOKENS,
	OP_READ_TOKENS,
	OP_COPY_PAGES,
};

struct op {
	struct op *next;
	enum op_kind kind;
	struct sim_record_of *record;
	enum quire_status (*function)(void *argument);
	void *argument;
	struct quire_token_move tokens;
	struct quire_page_move pages;
	int64_t n;
	struct quire_range ranges[];
};

struct sim_stream {
	struct quire_dstream base;
	struct op *head; /* next to run */
	struct op **tail;
	enum quire_status failed;
};

struct sim_device {
	struct quire_device base;
	int32_t num_streams;
	struct sim_stream *streams[SIM_STREAMS_MAX];
	struct sim_record_of *records;
	bool fail_next;
	bool failed;
	/* Moves are run by the cpu device, at once. */
	struct quire_device *cpu;
	struct quire_dstream *cpu_stream;
};

static struct sim_device *of(const struct quire_device *device)
{
	return (struct sim_device *)(uintptr_t)device;
}

/* ------------------------------------------------------------------ memory */

static enum quire_status sim_alloc(struct quire_device *device, int64_t bytes,
                                   void **memory_out)
{
	size_t length = ((size_t)bytes + 63) / 64 * 64;

	(void)device;
	*memory_out = aligned_alloc(64, length);
	if (*memory_out == NULL)
		return QUIRE_NO_MEMORY;
	memset(*memory_out, 0, length);
	return QUIRE_OK;
}

static void sim_release(struct quire_device *device, void *memory, int64_t bytes)
{
	(void)device;
	(void)bytes;
	free(memory);
}

/* ------------------------------------------------------------------ queues */

static struct op *queue(struct quire_dstream *dstream, enum op_kind kind, int64_t ranges)
{
	struct sim_stream *stream = (struct sim_stream *)dstream;
	struct op *op = calloc(1, sizeof(*op) + sizeof(op->ranges[0]) * (size_t)ranges);

	REQUIRE(op != NULL);
	op->kind = kind;
	*stream->tail = op;
	stream->tail = &op->next;
	return op;
}

static enum quire_status failure(const struct quire_dstream *dstream)
{
	return ((const struct sim_stream *)dstream)->failed;
}

static void finish(struct sim_record_of *record, enum quire_status status)
{
	record->status = status;
	record->done = true;
	for (int32_t i = 0; i < record->num_notify; i++)
		record->function[i](record->argument[i]);
}

static enum quire_status run_move(struct sim_device *device, const struct op *op)
{
	const struct quire_device_ops *cpu = device->cpu->ops;
	struct quire_dstream *dstream = device->cpu_stream;

	if (op->kind == OP_COPY_PAGES)
		return cpu->copy_pages(dstream, &op->pages, NULL);
	if (op->kind == OP_WRITE_TOKENS)
		return cpu->write_tokens(dstream, &op->tokens, NULL);
	return cpu->read_tokens(dstream, &op->tokens, NULL);
}

static enum quire_status run_op(struct sim_device *device, const struct op *op)
{
	if (device->fail_next) {
		device->fail_next = false;
		device->failed = true;
		return QUIRE_DEVICE;
	}
	switch (op->kind) {
	case OP_COPY:
		for (int64_t i = 0; i < op->n; i++)
			memcpy(op->ranges[i].target, op->ranges[i].source,
			       (size_t)op->ranges[i].bytes);
		return QUIRE_OK;
	case OP_CALL:
		return op->function(op->argument);
	default:
		return run_move(device, op);
	}
}

static bool step(struct sim_device *device, struct sim_stream *stream)
{
	struct op *op = stream->head;

	if (op == NULL || (op->kind == OP_WAIT && !op->record->done))
		return false;
	stream->head = op->next;
	if (stream->head == NULL)
		stream->tail = &stream->head;
	if (op->kind == OP_RECORD)
		finish(op->record, stream->failed);
	else if (op->kind == OP_WAIT && stream->failed == QUIRE_OK)
		stream->failed = op->record->status;
	else if (op->kind != OP_WAIT && stream->failed == QUIRE_OK)
		stream->failed = run_op(device, op);
	free(op);
	return true;
}

int32_t sim_device_streams(const struct quire_device *device)
{
	return of(device)->num_streams;
}

bool sim_device_step(struct quire_device *device, int32_t stream)
{
	return of(device)->streams[stream] != NULL &&
	       step(of(device), of(device)->streams[stream]);
}

void sim_device_fail(struct quire_device *device)
{
	of(device)->fail_next = true;
}

bool sim_device_failed(const struct quire_device *device)
{
	return of(device)->failed;
}

/* Somebody waits on the host: whatever can run does, until nothing is left of the stream,
 * or the record is done. */
static void run_until(struct sim_device *device, const struct sim_stream *stream,
                      const struct sim_record_of *record)
{
	while (stream != NULL ? stream->head != NULL : !record->done) {
		bool moved = false;

		for (int32_t i = 0; i < device->num_streams; i++)
			moved |= sim_device_step(&device->base, i);
		REQUIRE(moved); /* otherwise it would wait for ever */
	}
}

/* ------------------------------------------------------------------ streams */

static enum quire_status sim_dstream_create(struct quire_device *device, const char *name,
                                            enum quire_priority priority,
                                            struct quire_dstream **dstream_out)
{
	struct sim_stream *stream = calloc(1, sizeof(*stream));

	(void)name;
	(void)priority;
	REQUIRE(stream != NULL);
	REQUIRE(of(device)->num_streams < SIM_STREAMS_MAX);
	stream->base.device = device;
	stream->tail = &stream->head;
	of(device)->streams[of(device)->num_streams++] = stream;
	*dstream_out = &stream->base;
	return QUIRE_OK;
}

static void sim_dstream_destroy(struct quire_dstream *dstream)
{
	struct sim_device *device = of(dstream->device);
	struct sim_stream *stream = (struct sim_stream *)dstream;

	run_until(device, stream, NULL);
	for (int32_t i = 0; i < device->num_streams; i++)
		if (device->streams[i] == stream)
			device->streams[i] = NULL;
	free(stream);
}

static void *sim_dstream_native(const struct quire_dstream *dstream)
{
	(void)dstream;
	return NULL;
}

static enum quire_status sim_synchronize(struct quire_dstream *dstream,
                                         struct quire_refusal *refusal_out)
{
	run_until(of(dstream->device), (struct sim_stream *)dstream, NULL);
	if (refusal_out != NULL && failure(dstream) != QUIRE_OK)
		*refusal_out = (struct quire_refusal){.status = failure(dstream),
		                                      .what = "sim: an operation"};
	return failure(dstream);
}

static enum quire_status sim_wait_event(struct quire_dstream *dstream,
                                        struct quire_event *event)
{
	struct sim_record_of *record = ((struct sim_event *)event)->newest;

	QUIRE_TRY(failure(dstream));
	if (record != NULL)
		queue(dstream, OP_WAIT, 0)->record = record;
	return QUIRE_OK;
}

static enum quire_status sim_copy(struct quire_dstream *dstream,
                                  const struct quire_range *ranges, int64_t n)
{
	struct op *op;

	QUIRE_TRY(failure(dstream));
	op = queue(dstream, OP_COPY, n);
	op->n = n;
	if (n > 0)
		memcpy(op->ranges, ranges, sizeof(ranges[0]) * (size_t)n);
	return QUIRE_OK;
}

static enum quire_status sim_call(struct quire_dstream *dstream,
                                  enum quire_status (*function)(void *argument),
                                  void *argument)
{
	struct op *op;

	QUIRE_TRY(failure(dstream));
	op = queue(dstream, OP_CALL, 0);
	op->function = function;
	op->argument = argument;
	return QUIRE_OK;
}

static enum quire_status queue_tokens(struct quire_dstream *dstream, enum op_kind kind,
                                      const struct quire_token_move *move)
{
	QUIRE_TRY(failure(dstream));
	queue(dstream, kind, 0)->tokens = *move;
	return QUIRE_OK;
}

static enum quire_status sim_write_tokens(struct quire_dstream *dstream,
                                          const struct quire_token_move *move,
                                          struct quire_refusal *refusal_out)
{
	(void)refusal_out;
	return queue_tokens(dstream, OP_WRITE_TOKENS, move);
}

static enum quire_status sim_read_tokens(struct quire_dstream *dstream,
                                         const struct quire_token_move *move,
                                         struct quire_refusal *refusal_out)
{
	(void)refusal_out;
	return queue_tokens(dstream, OP_READ_TOKENS, move);
}

static enum quire_status sim_copy_pages(struct quire_dstream *dstream,
                                        const struct quire_page_move *move,
                                        struct quire_refusal *refusal_out)
{
	(void)refusal_out;
	QUIRE_TRY(failure(dstream));
	queue(dstream, OP_COPY_PAGES, 0)->pages = *move;
	return QUIRE_OK;
}

/* ------------------------------------------------------------------ events */

static enum quire_status sim_event_create(struct quire_device *device, bool timed,
                                          struct quire_event **event_out)
{
	struct sim_event *event = calloc(1, sizeof(*event));

	REQUIRE(event != NULL && !timed);
	event->base.device = device;
	*event_out = &event->base;
	return QUIRE_OK;
}

static void sim_event_destroy(struct quire_event *event)
{
	free(event);
}

static enum quire_status sim_event_record(struct quire_event *event,
                                          struct quire_dstream *dstream)
{
	struct sim_device *device = of(event->device);
	struct sim_record_of *record = calloc(1, sizeof(*record));

	REQUIRE(record != NULL);
	record->next = device->records;
	device->records = record;
	((struct sim_event *)event)->newest = record;
	queue(dstream, OP_RECORD, 0)->record = record;
	return QUIRE_OK;
}

static enum quire_status sim_event_query(struct quire_event *event)
{
	const struct sim_record_of *record = ((struct sim_event *)event)->newest;

	if (record == NULL)
		return QUIRE_OK;
	return record->done ? record->status : QUIRE_AGAIN;
}

static enum quire_status sim_event_synchronize(struct quire_event *event)
{
	struct sim_record_of *record = ((struct sim_event *)event)->newest;

	if (record != NULL)
		run_until(of(event->device), NULL, record);
	return sim_event_query(event);
}

static enum quire_status sim_event_elapsed(struct quire_event *first,
                                           struct quire_event *last, int64_t *ns_out)
{
	(void)first;
	(void)last;
	(void)ns_out;
	return QUIRE_INVALID; /* no event is timed */
}

static enum quire_status sim_event_notify(struct quire_event *event,
                                          void (*function)(void *argument),
                                          void *argument)
{
	struct sim_record_of *record = ((struct sim_event *)event)->newest;

	if (record == NULL || record->done) {
		function(argument);
		return QUIRE_OK;
	}
	REQUIRE(record->num_notify < NOTIFY_MAX);
	record->function[record->num_notify] = function;
	record->argument[record->num_notify++] = argument;
	return QUIRE_OK;
}

/* ------------------------------------------------------------------ the device */

static void sim_destroy(struct quire_device *base)
{
	struct sim_device *device = of(base);

	while (device->records != NULL) {
		struct sim_record_of *next = device->records->next;

		free(device->records);
		device->records = next;
	}
	quire_dstream_destroy(device->cpu_stream);
	quire_device_destroy(device->cpu);
	free(device);
}

static const struct quire_device_ops ops = {
	.destroy = sim_destroy,
	.alloc = sim_alloc,
	.release = sim_release,
	.alloc_pinned = sim_alloc,
	.release_pinned = sim_release,
	.dstream_create = sim_dstream_create,
	.dstream_destroy = sim_dstream_destroy,
	.dstream_native = sim_dstream_native,
	.synchronize = sim_synchronize,
	.wait_event = sim_wait_event,
	.copy = sim_copy,
	.call = sim_call,
	.event_create = sim_event_create,
	.event_destroy = sim_event_destroy,
	.event_record = sim_event_record,
	.event_query = sim_event_query,
	.event_synchronize = sim_event_synchronize,
	.event_elapsed = sim_event_elapsed,
	.event_notify = sim_event_notify,
	.write_tokens = sim_write_tokens,
	.read_tokens = sim_read_tokens,
	.copy_pages = sim_copy_pages,
};

struct quire_device *sim_device_create(void)
{
	struct sim_device *device = calloc(1, sizeof(*device));

	REQUIRE(device != NULL);
	device->base.ops = &ops;
	strcpy(device->base.name, "sim");
	atomic_init(&device->base.names, 1);
	REQUIRE(quire_device_create("cpu:inline", &device->cpu, NULL) == QUIRE_OK);
	REQUIRE(quire_dstream_create(device->cpu, "sim", &device->cpu_stream) ==
	        QUIRE_OK);
	return &device->base;
}
