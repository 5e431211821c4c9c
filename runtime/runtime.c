/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/refuse_impl.h"
#include "runtime/runtime_impl.h"

#include <quire/runtime/assert.h>

#include <signal.h>
#include <stdlib.h>

/* The address of a thread's own variable names the thread. */
static _Thread_local char own_address;

static uintptr_t this_thread(void)
{
	return (uintptr_t)&own_address;
}

/* Callbacks run on the planner's and the executor's thread, and so does whoever polls.
 * Relaxed: a thread finds its own address only if it wrote it itself. */
bool quire_may_wait(struct quire_runtime *rt)
{
	return atomic_load_explicit(&rt->planner_thread, memory_order_relaxed) !=
	               this_thread() &&
	       atomic_load_explicit(&rt->executor_thread, memory_order_relaxed) !=
	               this_thread();
}

bool quire_drives_planner(struct quire_runtime *rt)
{
	return rt->config.threads == QUIRE_THREADS_CALLER &&
	       atomic_load_explicit(&rt->planner_thread, memory_order_relaxed) ==
	               this_thread();
}

/* ------------------------------------------------------------------ config */

void quire_runtime_config_init(struct quire_runtime_config *config,
                               struct quire_cache *cache)
{
	*config = (struct quire_runtime_config){
		.config_bytes = sizeof(*config),
		.cache = cache,
		.threads = QUIRE_THREADS_LIBRARY,
		.sink = true,
		.depth = 2,
		.commands_max = 64,
		.tickets_max = 4096,
		.requests_max = 1024,
		.request_labels_max = 4,
		.rows_max = 256,
		.tokens_max = 8192,
		.tables_max = 4,
	};
}

struct bound {
	const char *what;
	int64_t got;
	int64_t least;
	int64_t most;
};

static enum quire_status check_config(const struct quire_runtime_config *config,
                                      struct quire_refusal *refusal)
{
	const struct bound bounds[] = {
		{"depth", config->depth, 1, QUIRE_DEPTH_MAX},
		{"commands_max", config->commands_max, 1, 1 << 16},
		{"tickets_max", config->tickets_max, 1, 1 << 24},
		{"requests_max", config->requests_max, 1, QUIRE_REQUESTS_MAX},
		{"request_labels_max", config->request_labels_max, 1, QUIRE_LABELS_MAX},
		{"rows_max", config->rows_max, 1, QUIRE_ROWS_MAX},
		{"tokens_max", config->tokens_max, 1, QUIRE_TOKENS_MAX},
		{"tables_max", config->tables_max, 1, QUIRE_TABLES_MAX},
		{"seq_tokens_max", config->seq_tokens_max, 0, QUIRE_SEQ_TOKENS_MAX},
		{"table_pages_max", config->table_pages_max, 0, INT32_MAX},
		{"block_width", config->block_width, 0, 1 << 24},
		{"user_bytes", config->user_bytes, 0, INT32_MAX},
		{"threads", config->threads, QUIRE_THREADS_LIBRARY, QUIRE_THREADS_CALLER},
	};

	if (config->config_bytes != sizeof(*config))
		return quire_refuse_bound(
			refusal, QUIRE_INVALID,
			"config_bytes: not of this version of the library", -1,
			(int64_t)config->config_bytes, (int64_t)sizeof(*config));
	if (config->cache == NULL)
		return quire_refuse_what(refusal, QUIRE_INVALID, "cache is NULL");
	for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
		const struct bound *b = &bounds[i];

		if (b->got < b->least || b->got > b->most)
			return quire_refuse_bound(refusal, QUIRE_INVALID, b->what, -1,
			                          b->got,
			                          b->got < b->least ? b->least : b->most);
	}
	if (config->sink && quire_cache_shape(config->cache)->num_pages < 2)
		return quire_refuse_bound(refusal, QUIRE_INVALID,
		                          "num_pages: with a sink at least two", -1, 1,
		                          2);
	return QUIRE_OK;
}

static void resolve_config(struct quire_runtime *rt,
                           const struct quire_runtime_config *config)
{
	const struct quire_shape *shape = quire_cache_shape(config->cache);
	int64_t all_tokens = (shape->num_pages - config->sink) * shape->page_size;

	rt->config = *config;
	rt->num_pages = (int32_t)shape->num_pages;
	rt->page_size = (int32_t)shape->page_size;
	rt->device = quire_cache_device(config->cache);
	if (rt->config.seq_tokens_max == 0)
		rt->config.seq_tokens_max = (int32_t)(all_tokens < QUIRE_SEQ_TOKENS_MAX
		                                              ? all_tokens
		                                              : QUIRE_SEQ_TOKENS_MAX);
	if (rt->config.table_pages_max == 0)
		rt->config.table_pages_max =
			rt->num_pages < 1 << 20 ? rt->num_pages : 1 << 20;
}

/* ------------------------------------------------------------------ create, destroy */

static void *array(int64_t n, size_t size)
{
	return calloc((size_t)n, size);
}

static enum quire_status init_planner(struct quire_runtime *rt)
{
	struct quire_planner *planner = &rt->planner;
	int64_t rows = rt->config.rows_max;
	int64_t met = 2;

	while (met < 2 * rows)
		met *= 2;
	planner->met_mask = (uint64_t)met - 1;
	planner->rows = array(rows, sizeof(*planner->rows));
	planner->undo = array(rows, sizeof(*planner->undo));
	planner->views = array(rows, sizeof(*planner->views));
	planner->labels = array(rows, sizeof(*planner->labels));
	planner->row_of_view = array(rows, sizeof(*planner->row_of_view));
	planner->met = array(met, sizeof(*planner->met));
	planner->pages = array(rt->num_pages, sizeof(*planner->pages));
	planner->freed = array(rt->num_pages, sizeof(*planner->freed));
	if (planner->rows == NULL || planner->undo == NULL || planner->views == NULL ||
	    planner->labels == NULL || planner->row_of_view == NULL ||
	    planner->met == NULL || planner->pages == NULL || planner->freed == NULL)
		return QUIRE_NO_MEMORY;
	return QUIRE_OK;
}

static void end_planner(struct quire_planner *planner)
{
	free(planner->freed);
	free(planner->pages);
	free(planner->met);
	free(planner->row_of_view);
	free(planner->labels);
	free(planner->views);
	free(planner->undo);
	free(planner->rows);
}

static enum quire_status init_entries(struct quire_runtime *rt)
{
	struct quire_entries *entries = &rt->entries;
	uint64_t pages = 1;
	/* Plans that may wait, and as many releases again, before the planner has to
	 * wait. */
	uint64_t ring = 256;

	while (pages < (uint64_t)rt->num_pages)
		pages *= 2;
	entries->mask = ring - 1;
	entries->pages_mask = pages - 1;
	entries->ring = array((int64_t)ring, sizeof(*entries->ring));
	entries->pages = array((int64_t)pages, sizeof(*entries->pages));
	return entries->ring == NULL || entries->pages == NULL ? QUIRE_NO_MEMORY
	                                                       : QUIRE_OK;
}

/* An allocation that failed is told by the limits that decide its size. */
static enum quire_status init_part(enum quire_status status, const char *what,
                                   struct quire_refusal *refusal)
{
	return status == QUIRE_OK ? QUIRE_OK : quire_refuse_what(refusal, status, what);
}

static enum quire_status init_slots(struct quire_runtime *rt,
                                    struct quire_refusal *refusal)
{
	const struct quire_slot_limits limits = {
		.tables_max = rt->config.tables_max,
		.rows_max = rt->config.rows_max,
		.tokens_max = rt->config.tokens_max,
		.pages_max = rt->config.table_pages_max,
		.block_width = rt->config.block_width,
		.work_max = QUIRE_WORK_MAX,
		.user_bytes = rt->config.user_bytes,
	};
	const char *what = "depth * tables_max * (rows_max, tokens_max, table_pages_max)";
	int64_t depth = rt->config.depth, bytes;
	void *host, *device;

	QUIRE_TRY(quire_slot_layout_init(&limits, &rt->layout, refusal));
	bytes = depth * rt->layout.slot_bytes;
	rt->slots = array(depth, sizeof(*rt->slots));
	if (rt->slots == NULL)
		return quire_refuse_what(refusal, QUIRE_NO_MEMORY, "depth");
	QUIRE_TRY(init_part(quire_device_alloc_pinned(rt->device, bytes, &host), what,
	                    refusal));
	rt->slots_host = host;
	QUIRE_TRY(
		init_part(quire_device_alloc(rt->device, bytes, &device), what, refusal));
	rt->slots_device = device;
	for (int64_t s = 0; s < depth; s++)
		quire_plan_bind(&rt->slots[s].plan, &rt->layout,
		                rt->slots_host + s * rt->layout.slot_bytes,
		                rt->slots_device + s * rt->layout.slot_bytes);
	return QUIRE_OK;
}

/* Page 0 belongs to the runtime itself. */
static enum quire_status take_sink(struct quire_runtime *rt)
{
	int32_t page = 0;

	if (rt->config.sink) {
		QUIRE_TRY(quire_pool_allocate(rt->pool, 1, &page, NULL));
		QUIRE_ASSERT(page == 0);
		QUIRE_TRY(quire_ledger_acquire(rt->ledger, &page, 1, NULL));
	}
	atomic_store_explicit(&rt->planner.owned, rt->config.sink, memory_order_relaxed);
	rt->planner.owned_peak = rt->config.sink;
	return QUIRE_OK;
}

static void *planner_main(void *argument)
{
	struct quire_runtime *rt = argument;

	atomic_store_explicit(&rt->planner_thread, this_thread(), memory_order_relaxed);
	for (;;) {
		uint32_t value = quire_wake_value(&rt->planner_wake);

		if (quire_planner_move(rt))
			continue;
		/* Pairs with the release in stop_planner. */
		if (atomic_load_explicit(&rt->stop, memory_order_acquire) >= 1 &&
		    quire_planner_is_idle(rt))
			return NULL;
		(void)quire_wake_sleep(&rt->planner_wake, value, QUIRE_NO_DEADLINE);
	}
}

/* How long the executor may sleep: for ever; but while a failed runtime has steps on the
 * device it looks every millisecond, since it may have failed for want of memory for a
 * notice. */
static int64_t executor_deadline(struct quire_runtime *rt)
{
	if (quire_runtime_failed(rt) == NULL || quire_executor_is_idle(rt))
		return QUIRE_NO_DEADLINE;
	return quire_now_ns() + 1000000;
}

static void *executor_main(void *argument)
{
	struct quire_runtime *rt = argument;

	atomic_store_explicit(&rt->executor_thread, this_thread(), memory_order_relaxed);
	for (;;) {
		uint32_t value = quire_wake_value(&rt->executor_wake);

		if (quire_executor_move(rt))
			continue;
		/* Pairs with the release in stop_executor. */
		if (atomic_load_explicit(&rt->stop, memory_order_acquire) >= 2 &&
		    quire_executor_is_idle(rt))
			return NULL;
		(void)quire_wake_sleep(&rt->executor_wake, value, executor_deadline(rt));
	}
}

static void stop_planner(struct quire_runtime *rt)
{
	atomic_store_explicit(&rt->stop, 1, memory_order_release);
	quire_wake_all(&rt->planner_wake);
	pthread_join(rt->threads[QUIRE_ROLE_PLANNER], NULL);
}

static void stop_executor(struct quire_runtime *rt)
{
	atomic_store_explicit(&rt->stop, 2, memory_order_release);
	quire_wake_all(&rt->executor_wake);
	pthread_join(rt->threads[QUIRE_ROLE_EXECUTOR], NULL);
}

/* Signals are for the program's own threads. */
static int start_thread(struct quire_runtime *rt, enum quire_role role,
                        void *(*main)(void *argument))
{
	sigset_t all, before;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&rt->threads[role], NULL, main, rt);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}

static enum quire_status start_threads(struct quire_runtime *rt)
{
	/* Who creates a runtime without threads drives it, until somebody else polls. */
	if (rt->config.threads == QUIRE_THREADS_CALLER) {
		atomic_store_explicit(&rt->planner_thread, this_thread(),
		                      memory_order_relaxed);
		atomic_store_explicit(&rt->executor_thread, this_thread(),
		                      memory_order_relaxed);
		return QUIRE_OK;
	}
	if (start_thread(rt, QUIRE_ROLE_PLANNER, planner_main) != 0)
		return QUIRE_NO_MEMORY;
	if (start_thread(rt, QUIRE_ROLE_EXECUTOR, executor_main) != 0) {
		stop_planner(rt);
		return QUIRE_NO_MEMORY;
	}
	pthread_setname_np(rt->threads[QUIRE_ROLE_PLANNER], "quire-planner");
	pthread_setname_np(rt->threads[QUIRE_ROLE_EXECUTOR], "quire-executor");
	return QUIRE_OK;
}

/* What init made, in the order in which it is ended; each end takes what was never
 * made. */
static void end_parts(struct quire_runtime *rt)
{
	quire_executor_end(rt);
	free(rt->entries.pages);
	free(rt->entries.ring);
	end_planner(&rt->planner);
	quire_device_release(rt->device, rt->slots_device,
	                     rt->config.depth * rt->layout.slot_bytes);
	quire_device_release_pinned(rt->device, rt->slots_host,
	                            rt->config.depth * rt->layout.slot_bytes);
	free(rt->slots);
	quire_ledger_destroy(rt->ledger);
	quire_pool_destroy(rt->pool);
}

static enum quire_status init_parts(struct quire_runtime *rt,
                                    struct quire_refusal *refusal)
{
	QUIRE_TRY(init_part(quire_pool_create(rt->num_pages, &rt->pool), "num_pages",
	                    refusal));
	QUIRE_TRY(init_part(quire_ledger_create(rt->num_pages, &rt->ledger), "num_pages",
	                    refusal));
	QUIRE_TRY(init_slots(rt, refusal));
	QUIRE_TRY(init_part(init_planner(rt), "rows_max, num_pages", refusal));
	QUIRE_TRY(init_part(init_entries(rt), "num_pages", refusal));
	QUIRE_TRY(
		init_part(quire_executor_init(rt), "device streams and events", refusal));
	return take_sink(rt);
}

static enum quire_status init_all(struct quire_runtime *rt, struct quire_refusal *refusal)
{
	const struct quire_runtime_config *config = &rt->config;
	int64_t pages_max =
		((int64_t)config->seq_tokens_max + rt->page_size - 1) / rt->page_size;
	enum quire_status status;

	quire_wake_init(&rt->planner_wake);
	quire_wake_init(&rt->executor_wake);
	quire_wake_init(&rt->client_wake);
	pthread_mutex_init(&rt->check.lock, NULL); /* neither can fail on Linux */
	pthread_mutex_init(&rt->failure.lock, NULL);
	status = init_part(quire_registry_init(&rt->registry, config->requests_max,
	                                       config->request_labels_max, pages_max),
	                   "requests_max * request_labels_max * seq_tokens_max", refusal);
	if (status != QUIRE_OK)
		goto undo_locks;
	status = init_part(quire_tickets_init(&rt->tickets, config->tickets_max),
	                   "tickets_max", refusal);
	if (status != QUIRE_OK)
		goto undo_registry;
	status = init_part(quire_commands_init(&rt->commands, config->commands_max,
	                                       config->rows_max, config->tables_max),
	                   "commands_max * rows_max", refusal);
	if (status != QUIRE_OK)
		goto undo_tickets;
	status = init_parts(rt, refusal);
	if (status == QUIRE_OK)
		status = init_part(start_threads(rt), "threads", refusal);
	if (status != QUIRE_OK)
		goto undo_parts;
	return QUIRE_OK;

undo_parts:
	end_parts(rt);
	quire_commands_end(&rt->commands);
undo_tickets:
	quire_tickets_end(&rt->tickets);
undo_registry:
	quire_registry_end(&rt->registry);
undo_locks:
	pthread_mutex_destroy(&rt->failure.lock);
	pthread_mutex_destroy(&rt->check.lock);
	return status;
}

enum quire_status quire_runtime_create(const struct quire_runtime_config *config,
                                       struct quire_runtime **runtime_out,
                                       struct quire_refusal *refusal_out)
{
	struct quire_refusal unused;
	struct quire_refusal *refusal = refusal_out != NULL ? refusal_out : &unused;
	struct quire_runtime *rt;
	enum quire_status status;

	QUIRE_TRY(check_config(config, refusal));
	rt = aligned_alloc(QUIRE_CACHE_LINE, sizeof(*rt));
	if (rt == NULL)
		return quire_refuse_what(refusal, QUIRE_NO_MEMORY, "creating a runtime");
	*rt = (struct quire_runtime){0};
	resolve_config(rt, config);
	status = init_all(rt, refusal);
	if (status != QUIRE_OK) {
		free(rt);
		return status;
	}
	*runtime_out = rt;
	return QUIRE_OK;
}

/* The caller's thread does what is left. */
static void poll_to_the_end(struct quire_runtime *rt)
{
	atomic_store_explicit(&rt->planner_thread, this_thread(), memory_order_relaxed);
	atomic_store_explicit(&rt->executor_thread, this_thread(), memory_order_relaxed);
	for (;;) {
		uint32_t value = quire_wake_value(&rt->executor_wake);
		bool moved = quire_planner_move(rt);

		moved |= quire_executor_move(rt);
		if (moved)
			continue;
		if (quire_planner_is_idle(rt) && quire_executor_is_idle(rt))
			return;
		(void)quire_wake_sleep(&rt->executor_wake, value, executor_deadline(rt));
	}
}

void quire_runtime_destroy(struct quire_runtime *rt)
{
	if (rt == NULL)
		return;
	if (quire_runtime_shutdown(rt, false) == QUIRE_OK)
		quire_wake_all(&rt->planner_wake);
	if (rt->config.threads == QUIRE_THREADS_CALLER) {
		poll_to_the_end(rt);
	} else {
		QUIRE_ASSERT(quire_may_wait(rt)); /* not inside a callback */
		stop_planner(rt);
		stop_executor(rt);
	}
	end_parts(rt);
	quire_commands_end(&rt->commands);
	quire_tickets_end(&rt->tickets);
	quire_registry_end(&rt->registry);
	pthread_mutex_destroy(&rt->failure.lock);
	pthread_mutex_destroy(&rt->check.lock);
	free(rt);
}

/* ------------------------------------------------------------------ failure, shutdown */

void quire_runtime_fail(struct quire_runtime *rt, enum quire_status status,
                        const char *what)
{
	pthread_mutex_lock(&rt->failure.lock);
	if (quire_runtime_failed(rt) == NULL) {
		quire_refuse_what(&rt->failure.refusal, status, what);
		/* Pairs with the acquire in quire_runtime_failed. */
		atomic_store_explicit(&rt->failure.happened, true, memory_order_release);
	}
	pthread_mutex_unlock(&rt->failure.lock);
	quire_wake_all(&rt->planner_wake);
	quire_wake_all(&rt->executor_wake);
	quire_wake_all(&rt->client_wake);
}

enum quire_status quire_runtime_failure(struct quire_runtime *rt,
                                        struct quire_refusal *refusal_out)
{
	const struct quire_refusal *failure = quire_runtime_failed(rt);

	if (failure == NULL)
		return QUIRE_OK;
	if (refusal_out != NULL)
		*refusal_out = *failure;
	return failure->status;
}

enum quire_status quire_runtime_shutdown(struct quire_runtime *rt, bool cancel)
{
	enum quire_status status = QUIRE_CLOSED;

	pthread_mutex_lock(&rt->commands.lock);
	if (atomic_load_explicit(&rt->commands.shutdown, memory_order_relaxed) ==
	    QUIRE_SHUTDOWN_NONE) {
		rt->commands.position++;
		/* Pairs with the acquire in the planner. */
		atomic_store_explicit(&rt->commands.shutdown,
		                      cancel ? QUIRE_SHUTDOWN_CANCEL
		                             : QUIRE_SHUTDOWN_DRAIN,
		                      memory_order_release);
		status = QUIRE_OK;
	}
	pthread_mutex_unlock(&rt->commands.lock);
	quire_wake_all(&rt->planner_wake);
	quire_wake_all(&rt->client_wake); /* who waits for room waits in vain */
	return status;
}

/* ------------------------------------------------------------------ polls */

bool quire_planner_poll(struct quire_runtime *rt)
{
	if (rt->config.threads != QUIRE_THREADS_CALLER || rt->planner.inside)
		return false;
	atomic_store_explicit(&rt->planner_thread, this_thread(), memory_order_relaxed);
	return quire_planner_move(rt);
}

bool quire_executor_poll(struct quire_runtime *rt)
{
	if (rt->config.threads != QUIRE_THREADS_CALLER || rt->executor.inside)
		return false;
	atomic_store_explicit(&rt->executor_thread, this_thread(), memory_order_relaxed);
	return quire_executor_move(rt);
}
