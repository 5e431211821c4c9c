/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "kernels/device_cpu_impl.h"

#include <quire/runtime/assert.h>

#include <stdlib.h>
#include <time.h>

/* The newest record is not done. */
#define BUSY (-1)

enum quire_status quire_cpu_event_create(struct quire_device *device, bool timed,
                                         struct quire_event **event_out)
{
	struct cpu_event *event = calloc(1, sizeof(*event));

	if (event == NULL)
		return QUIRE_NO_MEMORY;
	event->base.device = device;
	event->timed = timed;
	pthread_mutex_init(&event->lock, NULL);
	pthread_cond_init(&event->done, NULL);
	for (int r = 0; r < CPU_RECORDS; r++) {
		event->records[r].next = event->spare;
		event->spare = &event->records[r];
	}
	*event_out = &event->base;
	return QUIRE_OK;
}

/* Called under the event's lock. */
static void drop_locked(struct cpu_event *event, struct cpu_record *record)
{
	QUIRE_ASSERT(record->users > 0);
	if (--record->users > 0)
		return;
	record->next = event->spare;
	event->spare = record;
}

void quire_cpu_event_destroy(struct quire_event *base)
{
	struct cpu_event *event = (struct cpu_event *)base;

	/* Its last completion may have been seen by a query before it left the lock. */
	pthread_mutex_lock(&event->lock);
	if (event->newest != NULL)
		drop_locked(event, event->newest);
	pthread_mutex_unlock(&event->lock);
	while (event->spare != NULL) {
		struct cpu_record *record = event->spare;

		event->spare = record->next;
		if (record < event->records || record >= event->records + CPU_RECORDS)
			free(record);
	}
	pthread_cond_destroy(&event->done);
	pthread_mutex_destroy(&event->lock);
	free(event);
}

struct cpu_record *quire_cpu_record_begin(struct cpu_event *event)
{
	struct cpu_record *record;

	pthread_mutex_lock(&event->lock);
	record = event->spare;
	if (record == NULL)
		record = malloc(sizeof(*record));
	else
		event->spare = record->next;
	if (record != NULL) {
		*record = (struct cpu_record){.users = 2};
		if (event->newest != NULL)
			drop_locked(event, event->newest);
		event->newest = record;
		/* Relaxed: whoever learns of this record by other means is ordered by
		 * them; no data hangs on seeing BUSY. */
		atomic_store_explicit(&event->state, BUSY, memory_order_relaxed);
	}
	pthread_mutex_unlock(&event->lock);
	return record;
}

/* Call what waited for a record, then keep the allocated nodes for the next ones. */
static void call_notices(struct cpu_device *device, const struct cpu_notice *first)
{
	struct cpu_notice *last = NULL;

	if (first->function != NULL)
		first->function(first->argument);
	for (struct cpu_notice *notice = first->next; notice != NULL;
	     notice = notice->next) {
		notice->function(notice->argument);
		last = notice;
	}
	if (last == NULL)
		return;
	pthread_mutex_lock(&device->lock);
	last->next = device->notices;
	device->notices = first->next;
	pthread_mutex_unlock(&device->lock);
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void quire_cpu_record_complete(struct cpu_event *event, struct cpu_record *record,
                               enum quire_status status)
{
	struct cpu_device *device = (struct cpu_device *)event->base.device;
	struct cpu_notice notice;

	pthread_mutex_lock(&event->lock);
	QUIRE_ASSERT(!record->done);
	record->done = true;
	record->status = status;
	if (event->timed)
		record->done_ns = now_ns();
	notice = record->notice;
	/* Release, with the acquire in quire_cpu_event_query: what ran before is seen
	 * there. */
	if (record == event->newest)
		atomic_store_explicit(&event->state, (int32_t)status,
		                      memory_order_release);
	pthread_cond_broadcast(&event->done);
	drop_locked(event, record);
	pthread_mutex_unlock(&event->lock);
	/* From here on the event may be gone. */
	call_notices(device, &notice);
}

struct cpu_record *quire_cpu_record_name(struct cpu_event *event)
{
	struct cpu_record *record;

	pthread_mutex_lock(&event->lock);
	record = event->newest;
	if (record != NULL && record->done && record->status == QUIRE_OK)
		record = NULL;
	if (record != NULL)
		record->users++;
	pthread_mutex_unlock(&event->lock);
	return record;
}

enum quire_status quire_cpu_record_await(struct cpu_event *event,
                                         struct cpu_record *record)
{
	enum quire_status status;

	pthread_mutex_lock(&event->lock);
	while (!record->done)
		pthread_cond_wait(&event->done, &event->lock);
	status = record->status;
	drop_locked(event, record);
	pthread_mutex_unlock(&event->lock);
	return status;
}

void quire_cpu_record_drop(struct cpu_event *event, struct cpu_record *record)
{
	pthread_mutex_lock(&event->lock);
	drop_locked(event, record);
	pthread_mutex_unlock(&event->lock);
}

enum quire_status quire_cpu_event_query(struct quire_event *base)
{
	struct cpu_event *event = (struct cpu_event *)base;
	/* Acquire, with the release in quire_cpu_record_complete. */
	int32_t state = atomic_load_explicit(&event->state, memory_order_acquire);

	return state == BUSY ? QUIRE_AGAIN : (enum quire_status)state;
}

enum quire_status quire_cpu_event_synchronize(struct quire_event *base)
{
	struct cpu_event *event = (struct cpu_event *)base;
	struct cpu_record *record = quire_cpu_record_name(event);

	return record == NULL ? QUIRE_OK : quire_cpu_record_await(event, record);
}

/* When the newest record of a timed event was done. */
static enum quire_status done_at(struct quire_event *base, int64_t *ns_out)
{
	struct cpu_event *event = (struct cpu_event *)base;
	enum quire_status status = QUIRE_INVALID;

	pthread_mutex_lock(&event->lock);
	if (event->timed && event->newest != NULL) {
		status = event->newest->done ? event->newest->status : QUIRE_AGAIN;
		*ns_out = event->newest->done_ns;
	}
	pthread_mutex_unlock(&event->lock);
	return status;
}

enum quire_status quire_cpu_event_elapsed(struct quire_event *first,
                                          struct quire_event *last, int64_t *ns_out)
{
	int64_t from_ns;
	int64_t to_ns;
	enum quire_status first_status = done_at(first, &from_ns);
	enum quire_status last_status = done_at(last, &to_ns);

	/* What can never be answered is told before what cannot be answered yet. */
	if (first_status == QUIRE_INVALID || last_status == QUIRE_INVALID)
		return QUIRE_INVALID;
	if (first_status != QUIRE_OK)
		return first_status;
	if (last_status == QUIRE_OK)
		*ns_out = to_ns - from_ns;
	return last_status;
}

static struct cpu_notice *take_notice(struct cpu_device *device)
{
	struct cpu_notice *notice;

	pthread_mutex_lock(&device->lock);
	notice = device->notices;
	if (notice != NULL)
		device->notices = notice->next;
	pthread_mutex_unlock(&device->lock);
	return notice != NULL ? notice : malloc(sizeof(*notice));
}

/* Have one more function called for a record that is not done.  Called under the event's
 * lock. */
static enum quire_status add_notice(struct cpu_event *event,
                                    const struct cpu_notice *notice)
{
	struct cpu_notice *first = &event->newest->notice;
	struct cpu_notice *more;

	if (first->function == NULL) {
		*first = *notice;
		return QUIRE_OK;
	}
	more = take_notice((struct cpu_device *)event->base.device);
	if (more == NULL)
		return QUIRE_NO_MEMORY;
	*more = *notice;
	more->next = first->next;
	first->next = more;
	return QUIRE_OK;
}

enum quire_status quire_cpu_event_notify(struct quire_event *base,
                                         void (*function)(void *argument), void *argument)
{
	struct cpu_event *event = (struct cpu_event *)base;
	struct cpu_notice notice = {.function = function, .argument = argument};
	enum quire_status status = QUIRE_OK;
	bool pending;

	pthread_mutex_lock(&event->lock);
	pending = event->newest != NULL && !event->newest->done;
	if (pending)
		status = add_notice(event, &notice);
	pthread_mutex_unlock(&event->lock);
	if (!pending)
		function(argument);
	return status;
}
