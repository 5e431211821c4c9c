/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/cmd_impl.h"
#include "runtime/cmd/rig_impl.h"
#include "runtime/wake_impl.h"

#include <quire/kernels/device.h>
#include <quire/kernels/layout.h>
#include <quire/runtime/limits.h>

#include <inttypes.h>
#include <time.h>
#include <unistd.h>

/* A delay comes at one poll in so many, and is shorter than so many nanoseconds. */
#define DELAY_POLLS 8
#define DELAY_NS    50000

/* Commands queued, and the rows of all of them from which on it is the fewer. */
#define QUEUED_MIN  64
#define QUEUED_MAX  128
#define QUEUED_ROWS (1 << 20)

/* What one that drives all sleeps at most: whatever moves next wakes it. */
#define DRIVE_NS 1000000

/* ------------------------------------------------------------------ hooks */

static void delay(void *argument, enum quire_role role)
{
	struct cmd_delays *delays = argument;
	uint64_t *state = &delays->state[role];
	struct timespec time = {.tv_sec = 0};

	*state ^= *state << 13; /* xorshift64 */
	*state ^= *state >> 7;
	*state ^= *state << 17;
	if (*state % DELAY_POLLS != 0)
		return;
	time.tv_nsec = (long)(*state / DELAY_POLLS % DELAY_NS);
	nanosleep(&time, NULL);
}

static void seed(struct cmd_delays *delays, int64_t value)
{
	for (int role = 0; role < 2; role++)
		delays->state[role] =
			((uint64_t)value * 2 + (uint64_t)role) * 0x9e3779b97f4a7c15u | 1;
}

/* On the planner, of every step. */
static enum quire_status keep_taken(void *argument, struct quire_plan *plan)
{
	cmd_ring_put(argument, plan->ticket, plan->taken, plan->num_taken);
	return QUIRE_OK;
}

/* ------------------------------------------------------------------ shape */

/* What pools cannot be had for is told of what says how many pages there are: the trace's
 * header or --pages. */
static void tell_memory(const struct cmd_rig_wants *wants, int64_t num_pages,
                        int64_t nbytes, int64_t memory)
{
	bool is_asked = wants->pages != 0;
	char each[48] = "";

	if (wants->jobs > 1)
		snprintf(each, sizeof(each), " in each of %" PRId64 " jobs", wants->jobs);
	cmd_tell(wants->file, is_asked ? 0 : 1,
	         "%s %" PRId64 " takes %" PRId64 " bytes%s, this machine has %" PRId64
	         "; --pages N makes it smaller",
	         is_asked ? "--pages" : "pool.num_pages", num_pages, nbytes, each,
	         memory);
}

static int check_memory(const struct cmd_rig_wants *wants,
                        const struct quire_shape *shape)
{
	int64_t memory = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
	struct quire_geometry geometry;
	struct quire_refusal refusal;

	if (quire_geometry_init(shape, &geometry, &refusal) != QUIRE_OK) {
		refusal.line = 1;
		return cmd_tell_refusal(wants->file, &refusal);
	}
	if (geometry.nbytes <= memory / wants->jobs)
		return CMD_DONE;
	tell_memory(wants, shape->num_pages, geometry.nbytes, memory);
	return CMD_BAD;
}

static int make_shape(const struct cmd_rig_wants *wants,
                      const struct quire_trace_header *header,
                      struct quire_shape *shape_out)
{
	*shape_out = (struct quire_shape){
		.num_layers = header->num_layers,
		.num_pages = wants->pages != 0 ? wants->pages : header->num_pages,
		.page_size = header->page_size,
		.num_kv_heads = header->num_kv_heads,
		.head_dim = header->head_dim,
	};
	if (wants->is_bare) {
		shape_out->num_layers = shape_out->num_kv_heads = 1;
		shape_out->head_dim = 1;
		shape_out->layout = QUIRE_MLA;
		shape_out->dtype = QUIRE_FP8_E4M3;
	} else if (quire_layout_parse(header->layout, &shape_out->layout) != QUIRE_OK ||
	           quire_dtype_parse(header->dtype, &shape_out->dtype) != QUIRE_OK) {
		cmd_tell(wants->file, 1, "no cache of layout %s and dtype %s can be made",
		         header->layout, header->dtype);
		return CMD_BAD;
	}
	if (header->sink && wants->pages == 1) {
		cmd_tell(wants->file, 0,
		         "--pages must be at least 2, got 1: the first page is the sink");
		return CMD_BAD;
	}
	return check_memory(wants, shape_out);
}

/* ------------------------------------------------------------------ config */

/* So many commands wait behind a held step, as far as their rows take a bounded room.
 * Cells of a much longer queue would be cold whenever they are used again. */
static int32_t commands_max(int64_t rows_max)
{
	return QUEUED_ROWS / rows_max < QUEUED_MAX ? QUEUED_MIN : QUEUED_MAX;
}

/* The width of the engine's block table refuses steps (LIMIT), so the runtime gets one of
 * that width, though nobody reads it; where table_pages is not more, that one refuses. */
static int64_t block_width(const struct quire_trace_header *header)
{
	return header->row_pages_max < header->table_pages_max ? header->row_pages_max
	                                                       : 0;
}

static void make_config(struct cmd_rig *rig, const struct cmd_rig_wants *wants,
                        const struct quire_trace_header *header,
                        struct quire_runtime_config *config)
{
	quire_runtime_config_init(config, rig->cache);
	config->threads = wants->caller ? QUIRE_THREADS_CALLER : QUIRE_THREADS_LIBRARY;
	config->sink = header->sink;
	config->digests = wants->digests;
	config->depth = wants->depth;
	config->tickets_max = wants->tickets_max;
	config->speculative_max = QUIRE_SPECULATIVE_MAX;
	config->commands_max = commands_max(header->rows_max);
	config->requests_max = (int32_t)header->requests_max;
	config->request_labels_max = (int32_t)header->request_labels_max;
	config->rows_max = (int32_t)header->rows_max;
	config->tokens_max = (int32_t)header->tokens_max;
	config->tables_max = (int32_t)header->tables_max;
	config->table_pages_max = header->table_pages_max;
	config->seq_tokens_max = (int32_t)header->seq_tokens_max;
	config->block_width = block_width(header);
	if (wants->seed_delays != 0) {
		seed(&rig->delays, wants->seed_delays);
		config->on_poll = delay;
		config->on_poll_argument = &rig->delays;
	}
	if (wants->taken != NULL) {
		config->on_plan = keep_taken;
		config->on_plan_argument = wants->taken;
	}
}

int cmd_rig_create(struct cmd_rig *rig, const struct cmd_rig_wants *wants,
                   const struct quire_trace_header *header)
{
	struct quire_runtime_config config;
	struct quire_shape shape;
	struct quire_refusal refusal;
	int code = make_shape(wants, header, &shape);

	if (code != CMD_DONE)
		return code;
	if (quire_device_create(wants->device, &rig->device, &refusal) != QUIRE_OK)
		return cmd_tell_refusal(NULL, &refusal);
	if (quire_cache_create(rig->device, &shape, &rig->cache, &refusal) != QUIRE_OK)
		goto undo_device;
	make_config(rig, wants, header, &config);
	if (quire_runtime_create(&config, &rig->runtime, &refusal) != QUIRE_OK)
		goto undo_cache;
	return CMD_DONE;

undo_cache:
	quire_cache_destroy(rig->cache);
undo_device:
	quire_device_destroy(rig->device);
	refusal.line = 1;
	return cmd_tell_refusal(wants->file, &refusal);
}

void cmd_rig_stop(struct cmd_rig *rig)
{
	quire_runtime_destroy(rig->runtime);
	rig->runtime = NULL;
}

void cmd_rig_end(struct cmd_rig *rig)
{
	cmd_rig_stop(rig);
	quire_cache_destroy(rig->cache);
	quire_device_destroy(rig->device);
}

void cmd_rig_drive(struct quire_runtime *runtime)
{
	uint32_t value = quire_runtime_idle_value(runtime);
	bool moved = quire_planner_poll(runtime);

	moved |= quire_executor_poll(runtime);
	if (!moved)
		(void)quire_runtime_idle(runtime, value, quire_now_ns() + DRIVE_NS);
}
