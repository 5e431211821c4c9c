/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/record_impl.h"
#include "runtime/refuse_impl.h"
#include "runtime/runtime_impl.h"

#include <quire/runtime/assert.h>

#include <stdio.h>

/* Of a thread's name, with the final zero: Linux takes no more. */
#define NAME_BYTES 16

/* ------------------------------------------------------------------ create, destroy */

static enum quire_status create_events(struct quire_device *device,
                                       struct quire_event **events, int32_t n)
{
	for (int32_t i = 0; i < n; i++)
		QUIRE_TRY(quire_event_create(device, &events[i]));
	return QUIRE_OK;
}

static enum quire_status create_dstreams(struct quire_runtime *rt)
{
	struct quire_executor *executor = &rt->executor;
	char name[NAME_BYTES];

	snprintf(name, sizeof(name), "%s-upload", rt->config.thread_prefix);
	QUIRE_TRY(quire_dstream_create(rt->device, name, &executor->upload));
	snprintf(name, sizeof(name), "%s-compute", rt->config.thread_prefix);
	/* Copies on other streams wait for steps, not steps for them. */
	return quire_dstream_create_with(rt->device, name, QUIRE_PRIORITY_HIGH,
	                                 &executor->compute);
}

enum quire_status quire_executor_init(struct quire_runtime *rt)
{
	const struct quire_memory *memory = &rt->config.hooks.memory;
	struct quire_executor *executor = &rt->executor;
	int32_t depth = rt->config.depth;

	executor->upload_events =
		quire_memory_zeroed(memory, depth, sizeof(*executor->upload_events));
	executor->step_events =
		quire_memory_zeroed(memory, 2 * depth, sizeof(*executor->step_events));
	executor->steps =
		quire_memory_zeroed(memory, 2 * depth, sizeof(*executor->steps));
	if (executor->upload_events == NULL || executor->step_events == NULL ||
	    executor->steps == NULL)
		return QUIRE_NO_MEMORY;
	QUIRE_TRY(create_events(rt->device, executor->upload_events, depth));
	QUIRE_TRY(create_events(rt->device, executor->step_events, 2 * depth));
	return create_dstreams(rt);
}

/* Also ends what an unsuccessful init left half made. */
void quire_executor_end(struct quire_runtime *rt)
{
	const struct quire_memory *memory = &rt->config.hooks.memory;
	struct quire_executor *executor = &rt->executor;
	int32_t depth = rt->config.depth;

	quire_dstream_destroy(
		executor->upload); /* waits: uploads wait for compute's events */
	quire_dstream_destroy(executor->compute);
	for (int32_t i = 0; executor->upload_events != NULL && i < depth; i++)
		quire_event_destroy(executor->upload_events[i]);
	for (int32_t i = 0; executor->step_events != NULL && i < 2 * depth; i++)
		quire_event_destroy(executor->step_events[i]);
	quire_memory_free(memory, executor->steps, 2 * depth, sizeof(*executor->steps));
	quire_memory_free(memory, executor->step_events, 2 * depth,
	                  sizeof(*executor->step_events));
	quire_memory_free(memory, executor->upload_events, depth,
	                  sizeof(*executor->upload_events));
}

/* ------------------------------------------------------------------ publish */

static void wake_executor(void *argument)
{
	struct quire_runtime *rt = argument;

	quire_wake_all(&rt->executor_wake);
}

static struct quire_event *upload_event(const struct quire_runtime *rt, uint64_t step)
{
	return rt->executor.upload_events[step % (uint64_t)rt->config.depth];
}

static uint64_t step_place(const struct quire_runtime *rt, uint64_t step)
{
	return step % (2 * (uint64_t)rt->config.depth);
}

/* Is the event done?  A failure counts as done, and fails the runtime. */
static bool is_done(struct quire_runtime *rt, struct quire_event *event, uint64_t step,
                    const char *what)
{
	enum quire_status status = quire_event_query(event);

	if (status == QUIRE_AGAIN)
		return false;
	if (status != QUIRE_OK)
		quire_runtime_fail_step(rt,
		                        rt->executor.steps[step_place(rt, step)].ticket,
		                        QUIRE_DEVICE, what);
	return true;
}

/* A step has run, or never will.  Its function is told before its ticket says so: what
 * the function uses may be gone after. */
static void complete(struct quire_runtime *rt, const struct quire_issued *step)
{
	if (quire_runtime_failed(rt) != NULL)
		/* Pairs with the acquire in copy_outcome. */
		atomic_store_explicit(
			&quire_ticket_cell(&rt->tickets, step->ticket)->failed, true,
			memory_order_release);
	if (step->done != NULL) {
		struct quire_outcome outcome;

		quire_outcome_read(rt, step->ticket, &outcome);
		outcome.stage = QUIRE_STAGE_RETIRED;
		step->done(step->done_argument, step->ticket, &outcome);
	}
	quire_ticket_advance(&rt->tickets, step->ticket, QUIRE_STAGE_RETIRED);
}

/* Tell what the device has finished since the last time. */
static bool publish(struct quire_runtime *rt)
{
	struct quire_executor *executor = &rt->executor;
	uint64_t uploaded = executor->uploaded, retired = executor->retired;

	while (executor->uploaded < executor->issued &&
	       is_done(rt, upload_event(rt, executor->uploaded + 1),
	               executor->uploaded + 1, "uploading a plan"))
		executor->uploaded++;
	while (executor->retired < executor->issued &&
	       is_done(rt, executor->step_events[step_place(rt, executor->retired + 1)],
	               executor->retired + 1, "running a step"))
		executor->retired++;
	/* Pairs with the acquire of whoever reads it: the steps' writes are over.  Before
	 * the uploads: the planner that goes on with a slot also shows readers a step
	 * more, and they look for the retired length among the last 2 * depth + 1
	 * changes. */
	if (executor->retired != retired)
		atomic_store_explicit(&rt->numbers.retired_step, executor->retired,
		                      memory_order_release);
	if (executor->uploaded != uploaded) {
		/* Pairs with the acquire in plan_step: the host half may be filled
		 * again. */
		atomic_store_explicit(&rt->numbers.uploaded_step, executor->uploaded,
		                      memory_order_release);
		quire_wake_all(&rt->planner_wake);
	}
	if (executor->retired != retired) {
		atomic_store_explicit(
			&executor->run_ns,
			(uint64_t)(quire_runtime_now(rt) - executor->first_ns),
			memory_order_relaxed);
		/* Of the time that ends here, so that it is never more. */
		quire_count(&executor->wait_ns, (uint64_t)executor->waited_ns);
		executor->waited_ns = 0;
		/* The numbers first: who waited for a ticket finds them there. */
		for (uint64_t step = retired + 1; step <= executor->retired; step++) {
			const struct quire_issued *issued =
				&executor->steps[step_place(rt, step)];

			quire_record_retired(rt, step, issued->ticket);
			complete(rt, issued);
		}
		quire_wake_all(&rt->client_wake);
	}
	return executor->uploaded != uploaded || executor->retired != retired;
}

/* ------------------------------------------------------------------ issue */

static enum quire_status copy_ranges(struct quire_dstream *upload,
                                     const struct quire_plan *plan,
                                     const struct quire_slot_range *ranges, int32_t n)
{
	struct quire_range copies[QUIRE_PLAN_RANGES_MAX];

	for (int32_t i = 0; i < n; i++)
		copies[i] = (struct quire_range){
			.target = plan->device + ranges[i].offset,
			.source = plan->host + ranges[i].offset,
			.bytes = ranges[i].bytes,
		};
	return quire_dstream_copy(upload, copies, n);
}

/* The upload overwrites the device half once the slot's last reader is done. */
static enum quire_status queue_upload(struct quire_runtime *rt,
                                      const struct quire_slot *slot, uint64_t step)
{
	struct quire_executor *executor = &rt->executor;
	struct quire_slot_range ranges[QUIRE_PLAN_RANGES_MAX];
	struct quire_patch_cursor cursor = {0};
	int32_t n = quire_plan_ranges(&slot->plan, ranges);
	uint64_t depth = (uint64_t)rt->config.depth;

	if (step > depth)
		QUIRE_TRY(quire_dstream_wait_event(
			executor->upload,
			executor->step_events[step_place(rt, step - depth)]));
	while (n > 0) {
		QUIRE_TRY(copy_ranges(executor->upload, &slot->plan, ranges, n));
		n = quire_plan_patches(&slot->plan, &cursor, ranges,
		                       QUIRE_PLAN_RANGES_MAX);
	}
	QUIRE_TRY(quire_event_record(upload_event(rt, step), executor->upload));
	return quire_dstream_wait_event(executor->compute, upload_event(rt, step));
}

static enum quire_status queue_work(struct quire_runtime *rt,
                                    const struct quire_slot *slot)
{
	struct quire_dstream *compute = rt->executor.compute;
	struct quire_cache *cache = rt->config.cache;
	const struct quire_plan *plan = &slot->plan;
	int32_t copies = plan->num_pre_copies + plan->num_post_copies;
	const int32_t *source = quire_plan_device(plan, plan->copy_source + copies);
	const int32_t *target = quire_plan_device(plan, plan->copy_target + copies);

	for (int32_t i = 0; i < slot->num_work; i++) {
		const struct quire_issue *work = &slot->work[i];

		switch (work->kind) {
		case QUIRE_WORK_WRITE:
			QUIRE_TRY(quire_cache_write_tokens(
				cache, compute, work->layer, &work->slots, work->k,
				work->v, (enum quire_dtype)work->dtype, NULL, NULL));
			break;
		case QUIRE_WORK_READ:
			QUIRE_TRY(quire_cache_read_tokens(cache, compute, work->layer,
			                                  &work->slots, work->out, NULL));
			break;
		case QUIRE_WORK_COPY:
			QUIRE_TRY(quire_cache_copy_pages(cache, compute,
			                                 source + work->copy,
			                                 target + work->copy, 1, NULL));
			break;
		}
	}
	return QUIRE_OK;
}

/* Copies [first, first + n) of the plan's list, as one batch. */
static enum quire_status queue_copies(struct quire_runtime *rt,
                                      const struct quire_plan *plan, int32_t first,
                                      int32_t n)
{
	return quire_cache_copy_slots(rt->config.cache, rt->executor.compute,
	                              quire_plan_device(plan, plan->copy_source + first),
	                              quire_plan_device(plan, plan->copy_target + first),
	                              quire_plan_device(plan, plan->copy_end + first), n,
	                              NULL);
}

/* Queue all that comes before the engine's own work: the upload, the wait for what the
 * step waits for, the copies, the built-in work. */
static enum quire_status queue_front(struct quire_runtime *rt,
                                     const struct quire_slot *slot, uint64_t step)
{
	const struct quire_plan *plan = &slot->plan;

	QUIRE_TRY(queue_upload(rt, slot, step));
	if (slot->wait_event != NULL)
		QUIRE_TRY(
			quire_dstream_wait_event(rt->executor.compute, slot->wait_event));
	QUIRE_TRY(queue_copies(rt, plan, 0, plan->num_pre_copies));
	return queue_work(rt, slot);
}

/* Queue all that comes behind. */
static enum quire_status queue_back(struct quire_runtime *rt,
                                    const struct quire_slot *slot)
{
	const struct quire_plan *plan = &slot->plan;

	QUIRE_TRY(queue_copies(rt, plan, plan->num_pre_copies, plan->num_post_copies));
	if (slot->record_event != NULL)
		return quire_event_record(slot->record_event, rt->executor.compute);
	return QUIRE_OK;
}

/* Queue a plan, all but its step event.  What was queued before a failure still runs. */
static void queue_plan(struct quire_runtime *rt, const struct quire_slot *slot,
                       const struct quire_entry *entry)
{
	enum quire_status status = queue_front(rt, slot, entry->step);

	if (status == QUIRE_OK && slot->run != NULL &&
	    slot->run(slot->run_argument, &slot->plan, rt->executor.compute) !=
	            QUIRE_OK) {
		quire_runtime_fail_step(rt, entry->ticket, QUIRE_CALLBACK,
		                        "the function of a step");
		return;
	}
	if (status == QUIRE_OK)
		status = queue_back(rt, slot);
	if (status != QUIRE_OK)
		quire_runtime_fail_step(rt, entry->ticket, QUIRE_DEVICE,
		                        "queueing a step");
}

static enum quire_status finish_plan(struct quire_runtime *rt, uint64_t step)
{
	struct quire_executor *executor = &rt->executor;
	struct quire_event *done = executor->step_events[step_place(rt, step)];

	QUIRE_TRY(quire_event_record(done, executor->compute));
	QUIRE_TRY(quire_event_notify(upload_event(rt, step), wake_executor, rt));
	return quire_event_notify(done, wake_executor, rt);
}

/* Does anybody want the digests of plans? */
static bool digests(struct quire_runtime *rt)
{
	return rt->config.digests || quire_record_digests(rt);
}

static void issue(struct quire_runtime *rt, const struct quire_entry *entry)
{
	struct quire_executor *executor = &rt->executor;
	struct quire_ticket_cell *cell = quire_ticket_cell(&rt->tickets, entry->ticket);
	const struct quire_slot *slot = &rt->slots[entry->slot];
	const struct quire_issued issued = {.ticket = entry->ticket,
	                                    .done = slot->done,
	                                    .done_argument = slot->done_argument};

	if (digests(rt)) /* seen with the stage: see quire_ticket_advance */
		atomic_store_explicit(&cell->digest, quire_plan_digest(&slot->plan),
		                      memory_order_relaxed);
	if (quire_runtime_failed(rt) != NULL) {
		quire_record_issued(rt, entry);
		complete(rt, &issued);
		quire_wake_all(&rt->client_wake);
		return;
	}
	QUIRE_ASSERT(entry->step == executor->issued + 1);
	executor->steps[step_place(rt, entry->step)] = issued;
	queue_plan(rt, slot, entry);
	if (finish_plan(rt, entry->step) != QUIRE_OK)
		quire_runtime_fail_step(rt, entry->ticket, QUIRE_DEVICE,
		                        "recording a step's event");
	executor->issued = entry->step;
	quire_record_issued(rt, entry);
	/* Pairs with the acquire of whoever reads it. */
	atomic_store_explicit(&rt->numbers.issued_step, entry->step,
	                      memory_order_release);
	quire_ticket_advance(&rt->tickets, entry->ticket, QUIRE_STAGE_ISSUED);
	quire_wake_all(&rt->client_wake);
}

/* ------------------------------------------------------------------ release */

#ifdef QUIRE_DEBUG
/* A page that goes back may not be named by a plan still queued. */
static void check_not_named(struct quire_runtime *rt, int32_t page)
{
	struct quire_entries *entries = &rt->entries;
	uint64_t tail = atomic_load_explicit(&entries->tail, memory_order_acquire);

	for (uint64_t e = atomic_load_explicit(&entries->head, memory_order_relaxed);
	     e != tail; e++) {
		const struct quire_entry *entry = &entries->ring[e & entries->mask];

		QUIRE_ASSERT(entry->kind != QUIRE_ENTRY_PLAN ||
		             !quire_slot_names(&rt->slots[entry->slot], page));
	}
}
#endif

/* Give pages back at this place in the order: one batch, two where the ring wraps. */
static void release(struct quire_runtime *rt, int64_t count)
{
	struct quire_entries *entries = &rt->entries;
	uint64_t given =
		atomic_load_explicit(&rt->numbers.pages_given, memory_order_relaxed);

	while (count > 0) {
		uint64_t place = given & entries->pages_mask;
		int64_t room = (int64_t)(entries->pages_mask + 1 - place);
		int64_t n = count < room ? count : room;
		enum quire_status status;

#ifdef QUIRE_DEBUG
		for (int64_t i = 0; i < n; i++)
			check_not_named(rt, entries->pages[place + (uint64_t)i]);
#endif
		status = quire_pool_free_single_giver(rt->pool, entries->pages + place, n,
		                                      NULL);
		QUIRE_ASSERT(status == QUIRE_OK);
		given += (uint64_t)n;
		count -= n;
	}
	/* Pairs with the acquire in the planner's check. */
	atomic_store_explicit(&rt->numbers.pages_given, given, memory_order_release);
}

/* ------------------------------------------------------------------ the machine */

static bool has_entry(struct quire_runtime *rt)
{
	/* Pairs with the release in push. */
	return atomic_load_explicit(&rt->entries.tail, memory_order_acquire) !=
	       atomic_load_explicit(&rt->entries.head, memory_order_relaxed);
}

/* Of a failed runtime, what will not run ends behind what still runs: in plan order. */
static bool has_to_stay(struct quire_runtime *rt, const struct quire_entry *entry)
{
	return entry->kind == QUIRE_ENTRY_PLAN && quire_runtime_failed(rt) != NULL &&
	       rt->executor.retired != rt->executor.issued;
}

static bool run_entry(struct quire_runtime *rt)
{
	struct quire_entries *entries = &rt->entries;
	struct quire_executor *executor = &rt->executor;
	uint64_t head = atomic_load_explicit(&entries->head, memory_order_relaxed);
	struct quire_entry entry;
	int64_t now_ns;

	if (!has_entry(rt))
		return false;
	entry = entries->ring[head & entries->mask];
	if (has_to_stay(rt, &entry))
		return false;
	now_ns = quire_runtime_now(rt);
	/* Relaxed: a reader wants a recent time, and nothing with it. */
	atomic_store_explicit(&executor->taken_ns, (uint64_t)now_ns,
	                      memory_order_relaxed);
	if (executor->first_ns == 0)
		executor->first_ns = now_ns;
	if (executor->starved_ns != 0)
		executor->waited_ns += now_ns - executor->starved_ns;
	executor->starved_ns = 0;
	/* Pairs with the acquire in quire_entries_room. */
	atomic_store_explicit(&entries->head, head + 1, memory_order_release);
	if (entry.kind == QUIRE_ENTRY_PLAN)
		issue(rt, &entry);
	else
		release(rt, entry.count);
	quire_wake_all(&rt->planner_wake); /* room for an entry, perhaps pages */
	return true;
}

bool quire_executor_move(struct quire_runtime *rt)
{
	struct quire_executor *executor = &rt->executor;
	bool moved;

	if (rt->config.on_poll != NULL)
		rt->config.on_poll(rt->config.on_poll_argument, QUIRE_ROLE_EXECUTOR);
	executor->inside = true;
	moved = publish(rt);
	moved |= run_entry(rt);
	executor->inside = false;
	if (!moved && executor->first_ns != 0 && executor->starved_ns == 0 &&
	    executor->retired == executor->issued)
		executor->starved_ns = quire_runtime_now(rt);
	return moved;
}

int64_t quire_executor_stalled(struct quire_runtime *rt)
{
	struct quire_executor *executor = &rt->executor;
	/* Pairs with the releases in push and run_entry.  The tail first: a queue emptied
	 * in between does not seem to hold something. */
	uint64_t tail = atomic_load_explicit(&rt->entries.tail, memory_order_acquire);
	uint64_t head = atomic_load_explicit(&rt->entries.head, memory_order_acquire);
	int64_t since_ns = (int64_t)quire_counted(&executor->taken_ns);
	int64_t pushed_ns = (int64_t)quire_counted(&executor->pushed_ns);
	int64_t stalled_ns;

	if (head >= tail)
		return 0;
	if (pushed_ns > since_ns)
		since_ns = pushed_ns;
	stalled_ns = quire_runtime_now(rt) - since_ns;
	return stalled_ns > 0 ? stalled_ns : 1; /* something waits */
}

bool quire_executor_is_idle(struct quire_runtime *rt)
{
	return !has_entry(rt) && rt->executor.retired == rt->executor.issued;
}
