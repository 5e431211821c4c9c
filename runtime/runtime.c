/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/record_impl.h"
#include "runtime/refuse_impl.h"
#include "runtime/runtime_impl.h"

#include <quire/runtime/assert.h>

#include <sched.h>
#include <stdalign.h>
#include <string.h>

/* ------------------------------------------------------------------ config */

void quire_runtime_config_init(struct quire_runtime_config *config,
                               struct quire_cache *cache)
{
	*config = (struct quire_runtime_config){
		.config_bytes = sizeof(*config),
		.cache = cache,
		.threads = QUIRE_THREADS_LIBRARY,
		.sink = true,
		.kv_indices = true,
		.depth = 2,
		.commands_max = 64,
		.tickets_max = 4096,
		.requests_max = 1024,
		.request_labels_max = 4,
		.speculative_max = 64,
		.rows_max = 256,
		.tokens_max = 8192,
		.tables_max = 4,
		.planner_cpu = -1,
		.executor_cpu = -1,
		.spin_ns = QUIRE_SPIN_ADAPTIVE,
		.thread_prefix = "quire",
	};
}

struct bound {
	const char *what;
	int64_t got;
	int64_t least;
	int64_t most;
};

/* What slots are a multiple of, as their arrays are. */
#define SLOT_ALIGN 64

/* Bytes of thread_prefix, so that "-executor" and a final zero go behind. */
#define PREFIX_BYTES_MAX 6

static enum quire_status check_hooks(const struct quire_runtime_config *config,
                                     struct quire_refusal *refusal)
{
	const struct quire_memory *memory = &config->hooks.memory;
	const char *prefix = config->thread_prefix;

	if (prefix == NULL)
		return quire_refuse_what(refusal, QUIRE_INVALID, "thread_prefix is NULL");
	QUIRE_TRY(quire_check_range(refusal, "thread_prefix: bytes", -1,
	                            (int64_t)strlen(prefix), 1, PREFIX_BYTES_MAX));
	if ((memory->alloc == NULL) != (memory->release == NULL))
		return quire_refuse_what(refusal, QUIRE_INVALID,
		                         "hooks.memory: one function without the other");
	if ((uintptr_t)config->slots_host % SLOT_ALIGN != 0 ||
	    (uintptr_t)config->slots_device % SLOT_ALIGN != 0)
		return quire_refuse_what(refusal, QUIRE_INVALID,
		                         "slots_host, slots_device: no multiple of 64");
	return QUIRE_OK;
}

static enum quire_status check_config(const struct quire_runtime_config *config,
                                      struct quire_refusal *refusal)
{
	const struct bound bounds[] = {
		{"depth", config->depth, 1, QUIRE_DEPTH_MAX},
		{"commands_max", config->commands_max, 1, 1 << 16},
		{"tickets_max", config->tickets_max, 1, 1 << 24},
		{"requests_max", config->requests_max, 1, QUIRE_REQUESTS_MAX},
		{"request_labels_max", config->request_labels_max, 1, QUIRE_LABELS_MAX},
		{"speculative_max", config->speculative_max, 1, QUIRE_SPECULATIVE_MAX},
		{"rows_max", config->rows_max, 1, QUIRE_ROWS_MAX},
		{"tokens_max", config->tokens_max, 1, QUIRE_TOKENS_MAX},
		{"tables_max", config->tables_max, 1, QUIRE_TABLES_MAX},
		{"seq_tokens_max", config->seq_tokens_max, 0, QUIRE_SEQ_TOKENS_MAX},
		{"table_pages_max", config->table_pages_max, 0, INT32_MAX},
		{"block_width", config->block_width, 0, 1 << 24},
		{"user_bytes", config->user_bytes, 0, INT32_MAX},
		{"threads", config->threads, QUIRE_THREADS_LIBRARY, QUIRE_THREADS_CALLER},
		{"planner_cpu", config->planner_cpu, -1, CPU_SETSIZE - 1},
		{"executor_cpu", config->executor_cpu, -1, CPU_SETSIZE - 1},
		{"spin_ns", config->spin_ns, QUIRE_SPIN_ADAPTIVE, 1000000000},
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
	QUIRE_TRY(check_hooks(config, refusal));
	if (!config->kv_indices && config->block_width == 0)
		return quire_refuse_what(refusal, QUIRE_INVALID,
		                         "kv_indices: false needs a block table");
	if (config->sink && quire_cache_shape(config->cache)->num_pages < 2)
		return quire_refuse_bound(refusal, QUIRE_INVALID,
		                          "num_pages: with a sink at least two", -1, 1,
		                          2);
	return QUIRE_OK;
}

/* Of the resolved table_pages_max, which a config may leave to the pool. */
static int64_t table_pages_max(const struct quire_runtime_config *config)
{
	int64_t num_pages = quire_cache_shape(config->cache)->num_pages;

	if (config->table_pages_max != 0)
		return config->table_pages_max;
	return num_pages < 1 << 20 ? num_pages : 1 << 20;
}

static void resolve_config(struct quire_runtime *rt,
                           const struct quire_runtime_config *config)
{
	const struct quire_shape *shape = quire_cache_shape(config->cache);
	int64_t all_tokens = (shape->num_pages - config->sink) * shape->page_size;

	rt->config = *config;
	quire_memory_resolve(&rt->config.hooks.memory);
	rt->config.spin_ns = quire_threads_spin(config);
	rt->num_pages = (int32_t)shape->num_pages;
	rt->page_size = (int32_t)shape->page_size;
	rt->paging = quire_paging_of(rt->page_size);
	rt->device = quire_cache_device(config->cache);
	if (rt->config.seq_tokens_max == 0)
		rt->config.seq_tokens_max = (int32_t)(all_tokens < QUIRE_SEQ_TOKENS_MAX
		                                              ? all_tokens
		                                              : QUIRE_SEQ_TOKENS_MAX);
	rt->config.table_pages_max = table_pages_max(config);
}

/* ------------------------------------------------------------------ create, destroy */

/* Most streams that one step can change. */
static int64_t streams_of_a_step(const struct quire_runtime_config *config)
{
	int64_t requests = config->rows_max < config->requests_max ? config->rows_max
	                                                           : config->requests_max;

	return requests * config->request_labels_max;
}

/* Pieces of one block of memory, laid out twice: to find its size, and in it. */
struct carver {
	char *memory; /* NULL: sizes only */
	int64_t bytes;
};

static void *carve(struct carver *carver, int64_t n, size_t size)
{
	char *piece = carver->memory == NULL ? NULL : carver->memory + carver->bytes;

	carver->bytes += (n * (int64_t)size + QUIRE_CACHE_LINE - 1) / QUIRE_CACHE_LINE *
	                 QUIRE_CACHE_LINE;
	return piece;
}

static void carve_planner(struct quire_runtime *rt, struct carver *carver)
{
	struct quire_planner *planner = &rt->planner;
	int64_t rows = rt->config.rows_max, pages = rt->num_pages;
	int64_t met = (int64_t)planner->met_mask + 1;
	int64_t taken = (int64_t)planner->taken_mask + 1;
	int64_t notes = (int64_t)planner->notes_mask + 1;

	planner->rows = carve(carver, rows, sizeof(*planner->rows));
	planner->batch = carve(carver, rows, sizeof(*planner->batch));
	planner->made =
		carve(carver, streams_of_a_step(&rt->config), sizeof(*planner->made));
	planner->views = carve(carver, rows, sizeof(*planner->views));
	planner->labels = carve(carver, rows, sizeof(*planner->labels));
	planner->row_of_view = carve(carver, rows, sizeof(*planner->row_of_view));
	planner->met = carve(carver, met, sizeof(*planner->met));
	planner->more = carve(carver, pages, sizeof(*planner->more));
	planner->pages = carve(carver, pages, sizeof(*planner->pages));
	planner->copy_of = carve(carver, pages, sizeof(*planner->copy_of));
	planner->list = carve(carver, pages, sizeof(*planner->list));
	planner->freed = carve(carver, pages, sizeof(*planner->freed));
	planner->stash = carve(carver, pages, sizeof(*planner->stash));
	planner->taken = carve(carver, taken, sizeof(*planner->taken));
	planner->notes = carve(carver, notes, sizeof(*planner->notes));
	planner->refused =
		carve(carver, rt->config.speculative_max, sizeof(*planner->refused));
}

static enum quire_status init_planner(struct quire_runtime *rt)
{
	struct quire_planner *planner = &rt->planner;
	struct carver carver = {0};

	planner->met_mask = quire_power_of_two_from(2 * (int64_t)rt->config.rows_max) - 1;
	planner->taken_mask = quire_power_of_two_from(rt->num_pages) - 1;
	planner->notes_mask = quire_power_of_two_from(rt->config.depth *
	                                              streams_of_a_step(&rt->config)) -
	                      1;
	carve_planner(rt, &carver);
	planner->bytes = carver.bytes;
	planner->memory =
		quire_memory_zeroed(&rt->config.hooks.memory, 1, (size_t)planner->bytes);
	if (planner->memory == NULL)
		return QUIRE_NO_MEMORY;
	carver = (struct carver){.memory = planner->memory};
	carve_planner(rt, &carver);
	return QUIRE_OK;
}

static void end_planner(struct quire_runtime *rt)
{
	quire_memory_free(&rt->config.hooks.memory, rt->planner.memory, 1,
	                  (size_t)rt->planner.bytes);
}

static enum quire_status init_entries(struct quire_runtime *rt)
{
	const struct quire_memory *memory = &rt->config.hooks.memory;
	struct quire_entries *entries = &rt->entries;
	uint64_t pages = quire_power_of_two_from(rt->num_pages);
	/* Plans that may wait, and as many releases again, before the planner has to
	 * wait. */
	uint64_t ring = 256;

	entries->mask = ring - 1;
	entries->pages_mask = pages - 1;
	entries->ring =
		quire_memory_zeroed(memory, (int64_t)ring, sizeof(*entries->ring));
	entries->pages =
		quire_memory_zeroed(memory, (int64_t)pages, sizeof(*entries->pages));
	return entries->ring == NULL || entries->pages == NULL ? QUIRE_NO_MEMORY
	                                                       : QUIRE_OK;
}

static void end_entries(struct quire_runtime *rt)
{
	const struct quire_memory *memory = &rt->config.hooks.memory;
	struct quire_entries *entries = &rt->entries;

	quire_memory_free(memory, entries->pages, (int64_t)entries->pages_mask + 1,
	                  sizeof(*entries->pages));
	quire_memory_free(memory, entries->ring, (int64_t)entries->mask + 1,
	                  sizeof(*entries->ring));
}

/* An allocation that failed is told by the limits that decide its size. */
static enum quire_status init_part(enum quire_status status, const char *what,
                                   struct quire_refusal *refusal)
{
	return status == QUIRE_OK ? QUIRE_OK : quire_refuse_what(refusal, status, what);
}

static enum quire_status init_slot_layout(const struct quire_runtime_config *config,
                                          struct quire_slot_layout *layout_out,
                                          struct quire_refusal *refusal)
{
	const struct quire_slot_limits limits = {
		.tables_max = config->tables_max,
		.rows_max = config->rows_max,
		.tokens_max = config->tokens_max,
		.pages_max = config->kv_indices ? table_pages_max(config) : 0,
		.block_width = config->block_width,
		/* Each has a page that the step took. */
		.copies_max = quire_cache_shape(config->cache)->num_pages,
		.work_max = QUIRE_WORK_MAX,
		.user_bytes = config->user_bytes,
	};

	return quire_slot_layout_init(&limits, layout_out, refusal);
}

enum quire_status quire_runtime_slots_bytes(const struct quire_runtime_config *config,
                                            int64_t *bytes_out,
                                            struct quire_refusal *refusal_out)
{
	struct quire_slot_layout layout;

	QUIRE_TRY(check_config(config, refusal_out));
	QUIRE_TRY(init_slot_layout(config, &layout, refusal_out));
	*bytes_out = config->depth * layout.slot_bytes;
	return QUIRE_OK;
}

/* The two halves of all slots: given, or the device's. */
static enum quire_status init_slot_memory(struct quire_runtime *rt)
{
	int64_t bytes = rt->config.depth * rt->layout.slot_bytes;
	void *memory = rt->config.slots_host;

	if (memory == NULL)
		QUIRE_TRY(quire_device_alloc_pinned(rt->device, bytes, &memory));
	rt->slots_host = memory;
	memory = rt->config.slots_device;
	if (memory == NULL)
		QUIRE_TRY(quire_device_alloc(rt->device, bytes, &memory));
	rt->slots_device = memory;
	return QUIRE_OK;
}

/* Rows of the block tables of one slot. */
static int64_t block_rows(const struct quire_runtime *rt)
{
	return (int64_t)rt->config.tables_max * rt->config.rows_max;
}

static enum quire_status init_slots(struct quire_runtime *rt,
                                    struct quire_refusal *refusal)
{
	const char *what = "depth * tables_max * (rows_max, tokens_max, table_pages_max)";
	const struct quire_memory *memory = &rt->config.hooks.memory;
	int64_t depth = rt->config.depth;

	QUIRE_TRY(init_slot_layout(&rt->config, &rt->layout, refusal));
	rt->slots = quire_memory_zeroed(memory, depth, sizeof(*rt->slots));
	if (rt->config.block_width > 0)
		rt->block_rows = quire_memory_zeroed(memory, depth * block_rows(rt),
		                                     sizeof(*rt->block_rows));
	if (rt->slots == NULL || (rt->config.block_width > 0 && rt->block_rows == NULL))
		return quire_refuse_what(refusal, QUIRE_NO_MEMORY, what);
	QUIRE_TRY(init_part(init_slot_memory(rt), what, refusal));
	for (int64_t s = 0; s < depth; s++)
		quire_plan_bind(&rt->slots[s].plan, &rt->layout,
		                rt->slots_host + s * rt->layout.slot_bytes,
		                rt->slots_device + s * rt->layout.slot_bytes,
		                rt->block_rows == NULL
		                        ? NULL
		                        : rt->block_rows + s * block_rows(rt));
	return QUIRE_OK;
}

static void end_slots(struct quire_runtime *rt)
{
	int64_t bytes = rt->config.depth * rt->layout.slot_bytes;

	if (rt->config.slots_device == NULL)
		quire_device_release(rt->device, rt->slots_device, bytes);
	if (rt->config.slots_host == NULL)
		quire_device_release_pinned(rt->device, rt->slots_host, bytes);
	quire_memory_free(&rt->config.hooks.memory, rt->slots, rt->config.depth,
	                  sizeof(*rt->slots));
	quire_memory_free(&rt->config.hooks.memory, rt->block_rows,
	                  rt->config.depth * block_rows(rt), sizeof(*rt->block_rows));
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

/* What init made, in the order in which it is ended; each end takes what was never
 * made. */
static void end_parts(struct quire_runtime *rt)
{
	quire_executor_end(rt);
	end_entries(rt);
	end_planner(rt);
	end_slots(rt);
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
	const struct quire_registry_limits limits = {
		.requests_max = config->requests_max,
		.request_labels_max = config->request_labels_max,
		/* So many steps may be planned and not retired, and one change before. */
		.changes_max = 2 * config->depth + 1,
		.pages_max = quire_pages_of(&rt->paging, config->seq_tokens_max),
		/* What readers may have of streams that the steps held, or the command in
		 * hand, change. */
		.lists_more = config->depth * streams_of_a_step(config) + 1,
	};
	enum quire_status status;

	quire_wake_init(&rt->planner_wake);
	quire_wake_init(&rt->executor_wake);
	quire_wake_init(&rt->client_wake);
	pthread_mutex_init(&rt->check.lock, NULL); /* neither can fail on Linux */
	pthread_mutex_init(&rt->failure.lock, NULL);
	status = init_part(
		quire_registry_init(&rt->registry, &limits, &config->hooks.memory),
		"requests_max * request_labels_max * seq_tokens_max", refusal);
	if (status != QUIRE_OK)
		goto undo_locks;
	status = init_part(quire_tickets_init(&rt->tickets, config->tickets_max,
	                                      &config->hooks.memory),
	                   "tickets_max", refusal);
	if (status != QUIRE_OK)
		goto undo_registry;
	status = init_part(quire_commands_init(&rt->commands, config),
	                   "commands_max * rows_max", refusal);
	if (status != QUIRE_OK)
		goto undo_tickets;
	status = init_parts(rt, refusal);
	if (status == QUIRE_OK)
		status = quire_threads_start(rt, refusal);
	if (status != QUIRE_OK)
		goto undo_parts;
	return QUIRE_OK;

undo_parts:
	end_parts(rt);
	quire_commands_end(&rt->commands, &rt->config.hooks.memory);
undo_tickets:
	quire_tickets_end(&rt->tickets, &rt->config.hooks.memory);
undo_registry:
	quire_registry_end(&rt->registry, &rt->config.hooks.memory);
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
	struct quire_memory memory;
	struct quire_runtime *rt;
	enum quire_status status;

	QUIRE_TRY(check_config(config, refusal));
	memory = config->hooks.memory;
	quire_memory_resolve(&memory);
	rt = quire_memory_aligned(&memory, sizeof(*rt), alignof(struct quire_runtime));
	if (rt == NULL)
		return quire_refuse_what(refusal, QUIRE_NO_MEMORY, "creating a runtime");
	resolve_config(rt, config);
	status = init_all(rt, refusal);
	if (status != QUIRE_OK) {
		quire_memory_free(&memory, rt, 1, sizeof(*rt));
		return status;
	}
	quire_runtime_report(
		rt, &(struct quire_report){.kind = QUIRE_REPORT_CREATED, .text = ""});
	*runtime_out = rt;
	return QUIRE_OK;
}

void quire_runtime_destroy(struct quire_runtime *rt)
{
	struct quire_memory memory;

	if (rt == NULL)
		return;
	if (quire_runtime_shutdown(rt, false) == QUIRE_OK)
		quire_wake_all(&rt->planner_wake);
	quire_threads_stop(rt);
	quire_record_destroy(rt);
	memory = rt->config.hooks.memory;
	end_parts(rt);
	quire_commands_end(&rt->commands, &rt->config.hooks.memory);
	quire_tickets_end(&rt->tickets, &rt->config.hooks.memory);
	quire_registry_end(&rt->registry, &rt->config.hooks.memory);
	pthread_mutex_destroy(&rt->failure.lock);
	pthread_mutex_destroy(&rt->check.lock);
	quire_memory_free(&memory, rt, 1, sizeof(*rt));
}

/* ------------------------------------------------------------------ failure, shutdown */

void quire_runtime_report(struct quire_runtime *rt, const struct quire_report *report)
{
	const struct quire_hooks *hooks = &rt->config.hooks;

	if (hooks->on_report != NULL)
		hooks->on_report(hooks->on_report_argument, report);
}

void quire_runtime_fail_step(struct quire_runtime *rt, uint64_t ticket,
                             enum quire_status status, const char *what)
{
	const struct quire_report report = {.kind = QUIRE_REPORT_FAILED,
	                                    .status = status,
	                                    .text = what,
	                                    .ticket = ticket};
	bool first;

	pthread_mutex_lock(&rt->failure.lock);
	first = quire_runtime_failed(rt) == NULL;
	if (first) {
		quire_refuse_what(&rt->failure.refusal, status, what);
		rt->failure.refusal.ticket = ticket;
		/* Pairs with the acquire in quire_runtime_failed. */
		atomic_store_explicit(&rt->failure.happened, true, memory_order_release);
	}
	pthread_mutex_unlock(&rt->failure.lock);
	quire_wake_all(&rt->planner_wake);
	quire_wake_all(&rt->executor_wake);
	quire_wake_all(&rt->client_wake);
	if (first)
		quire_runtime_report(rt, &report);
}

void quire_runtime_fail(struct quire_runtime *rt, enum quire_status status,
                        const char *what)
{
	quire_runtime_fail_step(rt, 0, status, what);
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
	const struct quire_report report = {.kind = QUIRE_REPORT_SHUTDOWN,
	                                    .text = cancel ? "cancelling" : "draining"};
	enum quire_status status =
		quire_commands_close(&rt->commands, &rt->tickets, cancel);

	quire_wake_all(&rt->planner_wake);
	quire_wake_all(&rt->client_wake); /* who waits for room waits in vain */
	if (status == QUIRE_OK)
		quire_runtime_report(rt, &report);
	return status;
}
