/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/replay_impl.h"

#include <quire/kernels/device.h>
#include <quire/kernels/layout.h>
#include <quire/runtime/limits.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S INT64_C(1000000000)

/* A delay comes at one poll in so many, and is shorter than so many nanoseconds. */
#define DELAY_POLLS 8
#define DELAY_NS    50000

/* Commands queued, and the rows of all of them from which on it is the fewer. */
#define QUEUED_MIN  64
#define QUEUED_MAX  128
#define QUEUED_ROWS (1 << 20)

enum {
	KEY_DEVICE = 256,
	KEY_DEPTH,
	KEY_PAGES,
	KEY_CHECK,
	KEY_SEED_DELAYS,
	KEY_THREADS,
	KEY_DIGESTS,
	KEY_NO_DIGESTS,
	KEY_RECORD,
};

static const struct argp_option option_list[] = {
	{"device", KEY_DEVICE, "NAME", 0,
         "cpu, cpu:inline, cpu:N, cuda[:N][+checks] (cpu)", 0},
	{"depth", KEY_DEPTH, "N", 0, "Plan slots, 1..64 (2)", 0},
	{"pages", KEY_PAGES, "N", 0,
         "Pages of the pool in place of the trace's; no outcomes are compared then", 0},
	{"check", KEY_CHECK, NULL, 0, "Write a pattern for every token, verify reads", 0},
	{"seed-delays", KEY_SEED_DELAYS, "N", 0,
         "Delay planner and executor at random, from this seed", 0},
	{"threads", KEY_THREADS, "WHOSE", 0,
         "library: a planner and an executor thread; caller: one for all (library)", 0},
	{"digests", KEY_DIGESTS, NULL, 0, "Digest every plan (the default)", 0},
	{"no-digests", KEY_NO_DIGESTS, NULL, 0, "Do not, and compare none", 0},
	{"record", KEY_RECORD, "FILE", 0, "Write the commands with their outcomes", 0},
	CMD_COMMON_OPTIONS,
	{0},
};

static error_t parse_threads(struct argp_state *state, const char *whose)
{
	struct cmd_replay_options *options = state->input;

	if (strcmp(whose, "library") != 0 && strcmp(whose, "caller") != 0)
		return cmd_refuse_usage(
			state, "--threads must be library or caller, got \"%s\"", whose);
	options->caller = strcmp(whose, "caller") == 0;
	return 0;
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct cmd_replay_options *options = state->input;

	switch (key) {
	case KEY_DEVICE:
		options->device = argument;
		return 0;
	case KEY_DEPTH:
		return cmd_parse_int(state, "--depth", argument, 1, QUIRE_DEPTH_MAX,
		                     &options->depth);
	case KEY_PAGES:
		return cmd_parse_int(state, "--pages", argument, 1, QUIRE_PAGES_MAX,
		                     &options->pages);
	case KEY_CHECK:
		options->check = true;
		return 0;
	case KEY_SEED_DELAYS:
		return cmd_parse_int(state, "--seed-delays", argument, 1, INT64_MAX,
		                     &options->seed_delays);
	case KEY_THREADS:
		return parse_threads(state, argument);
	case KEY_DIGESTS:
	case KEY_NO_DIGESTS:
		options->digests = key == KEY_DIGESTS;
		return 0;
	case KEY_RECORD:
		options->record = argument;
		return 0;
	case ARGP_KEY_ARG:
		return cmd_parse_operand(state, argument, &options->trace);
	case ARGP_KEY_END:
		if (options->trace == NULL && !options->common.help)
			return cmd_refuse_usage(state, "a plan trace is wanted");
		return 0;
	default:
		return cmd_parse_common(key, argument, state);
	}
}

static const struct argp argp = {
	.options = option_list,
	.parser = parse,
	.args_doc = "TRACE",
	.doc = "Run a plan trace, compare it with what was recorded, say how it went.\v"
	       "TRACE is a plan trace as \"quire import\" writes it; \"-\" is standard "
	       "input.  The first outcome that is not as recorded ends the replay with "
	       "exit status 1, as does a read that is not what was written.\n"
	       "\n"
	       "Example:\n"
	       "  quire replay --check --depth 8 requests.plan",
};

/* ------------------------------------------------------------------ delays */

/* One generator for each role: its polls come from one thread at a time. */
struct delays {
	uint64_t state[2];
};

static void delay(void *argument, enum quire_role role)
{
	struct delays *delays = argument;
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

static void seed(struct delays *delays, int64_t value)
{
	for (int role = 0; role < 2; role++)
		delays->state[role] =
			((uint64_t)value * 2 + (uint64_t)role) * 0x9e3779b97f4a7c15u | 1;
}

/* ------------------------------------------------------------------ run */

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* The runtime's own opinion, once it has come to rest. */
static int check_runtime(struct cmd_run *run)
{
	struct quire_refusal refusal;
	char text[512];

	cmd_run_rest(run);
	if (quire_runtime_check(run->runtime, &refusal) == QUIRE_OK)
		return CMD_DONE;
	quire_refusal_text(&refusal, text, sizeof(text));
	cmd_tell(run->file, 0, "the self-check failed: %s", text);
	return CMD_FAILED;
}

static int run_trace(struct cmd_run *run)
{
	int64_t start_ns = now_ns();
	int64_t wall_ns;
	int code;

	cmd_progress_start("replay", &run->options->common);
	code = cmd_run_all(run);
	if (code == CMD_DONE && run->check != NULL)
		code = cmd_check_finish(run->check);
	if (code == CMD_DONE)
		code = check_runtime(run);
	wall_ns = now_ns() - start_ns;
	cmd_progress_end();
	return cmd_run_report(run, wall_ns, code);
}

/* ------------------------------------------------------------------ make */

/* A pool that cannot be had is the trace's fault, or that of --pages. */
static int check_memory(const struct cmd_run *run, const struct quire_shape *shape)
{
	int64_t memory = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
	struct quire_geometry geometry;
	struct quire_refusal refusal;

	if (quire_geometry_init(shape, &geometry, &refusal) != QUIRE_OK) {
		refusal.line = 1;
		return cmd_tell_refusal(run->file, &refusal);
	}
	if (geometry.nbytes <= memory)
		return CMD_DONE;
	cmd_tell(run->file, 1,
	         "pool.num_pages %" PRId64 " takes %" PRId64
	         " bytes, this machine has %" PRId64 "; --pages N makes it smaller",
	         shape->num_pages, geometry.nbytes, memory);
	return CMD_BAD;
}

static int make_shape(const struct cmd_run *run, struct quire_shape *shape_out)
{
	const struct quire_trace_header *header = quire_trace_header(run->reader);

	*shape_out = (struct quire_shape){
		.num_layers = header->num_layers,
		.num_pages = run->options->pages != 0 ? run->options->pages
	                                              : header->num_pages,
		.page_size = header->page_size,
		.num_kv_heads = header->num_kv_heads,
		.head_dim = header->head_dim,
	};
	if (quire_layout_parse(header->layout, &shape_out->layout) != QUIRE_OK ||
	    quire_dtype_parse(header->dtype, &shape_out->dtype) != QUIRE_OK) {
		cmd_tell(run->file, 1, "no cache of layout %s and dtype %s can be made",
		         header->layout, header->dtype);
		return CMD_BAD;
	}
	return check_memory(run, shape_out);
}

/* So many commands wait behind a held step, as far as their rows take a bounded room.  Cells
 * of a much longer queue would be cold whenever they are used again. */
static int32_t commands_max(int64_t rows_max)
{
	return QUEUED_ROWS / rows_max < QUEUED_MAX ? QUEUED_MIN : QUEUED_MAX;
}

static void make_config(const struct cmd_run *run, struct delays *delays,
                        struct quire_cache *cache, struct quire_runtime_config *config)
{
	const struct cmd_replay_options *options = run->options;
	const struct quire_trace_header *header = quire_trace_header(run->reader);

	quire_runtime_config_init(config, cache);
	config->threads = options->caller ? QUIRE_THREADS_CALLER : QUIRE_THREADS_LIBRARY;
	config->sink = header->sink;
	config->digests = options->digests;
	config->depth = (int32_t)options->depth;
	config->tickets_max = 4 * CMD_PENDING;
	config->speculative_max = QUIRE_SPECULATIVE_MAX;
	config->commands_max = commands_max(header->rows_max);
	config->requests_max = (int32_t)header->requests_max;
	config->request_labels_max = (int32_t)header->request_labels_max;
	config->rows_max = (int32_t)header->rows_max;
	config->tokens_max = (int32_t)header->tokens_max;
	config->tables_max = (int32_t)header->tables_max;
	config->table_pages_max = header->table_pages_max;
	config->block_width = header->row_pages_max;
	config->seq_tokens_max = (int32_t)header->seq_tokens_max;
	if (options->seed_delays != 0) {
		seed(delays, options->seed_delays);
		config->on_poll = delay;
		config->on_poll_argument = delays;
	}
}

/* The record is written from a second reading of the trace. */
static int open_record(struct cmd_run *run, const char *path)
{
	struct quire_trace_header header = *quire_trace_header(run->reader);
	const char *record = run->options->record;
	struct quire_refusal refusal;

	if (record == NULL)
		return CMD_DONE;
	if (run->options->pages != 0)
		header.num_pages = run->options->pages;
	if (quire_trace_open(path, &run->again, &refusal) != QUIRE_OK)
		return cmd_tell_refusal(run->file, &refusal);
	if (quire_trace_create(record, &header, &run->record, &refusal) != QUIRE_OK)
		return cmd_tell_refusal(record, &refusal);
	return CMD_DONE;
}

static int end_record(struct cmd_run *run, int code)
{
	struct quire_trace_writer *writer = run->record;
	struct quire_refusal refusal;

	run->record = NULL;
	quire_trace_close(run->again);
	if (code != CMD_DONE || writer == NULL) {
		quire_trace_discard(writer);
		return code;
	}
	if (quire_trace_commit(writer, &refusal) != QUIRE_OK)
		return cmd_tell_refusal(run->options->record, &refusal);
	return CMD_DONE;
}

static int replay_cache(struct cmd_run *run, const char *path, struct quire_cache *cache)
{
	struct delays delays;
	struct quire_runtime_config config;
	struct quire_refusal refusal;
	int code = CMD_DONE;

	make_config(run, &delays, cache, &config);
	if (quire_runtime_create(&config, &run->runtime, &refusal) != QUIRE_OK) {
		refusal.line = 1;
		return cmd_tell_refusal(run->file, &refusal);
	}
	if (run->options->check)
		code = cmd_check_create(run, path, cache, &run->check);
	if (code == CMD_DONE)
		code = open_record(run, path);
	if (code == CMD_DONE)
		code = run_trace(run);
	code = end_record(run, code);
	if (code != CMD_DONE && quire_runtime_shutdown(run->runtime, true) != QUIRE_OK)
		cmd_tell(run->file, 0,
		         "the runtime was shut down before its replay was over");
	quire_runtime_destroy(run->runtime);
	for (; run->head != run->tail; run->head++)
		cmd_batch_free(cmd_run_pending(run, run->head)->batch);
	cmd_check_destroy(run->check);
	return code;
}

static int replay_device(struct cmd_run *run, const char *path)
{
	struct quire_shape shape;
	struct quire_device *device;
	struct quire_cache *cache;
	struct quire_refusal refusal;
	int code = make_shape(run, &shape);

	if (code != CMD_DONE)
		return code;
	if (quire_device_create(run->options->device, &device, &refusal) != QUIRE_OK)
		return cmd_tell_refusal(NULL, &refusal);
	if (quire_cache_create(device, &shape, &cache, &refusal) != QUIRE_OK) {
		refusal.line = 1;
		code = cmd_tell_refusal(run->file, &refusal);
		goto undo_device;
	}
	code = replay_cache(run, path, cache);
	quire_cache_destroy(cache);

undo_device:
	quire_device_destroy(device);
	return code;
}

static int replay_input(struct cmd_run *run, const struct cmd_input *input)
{
	const struct cmd_replay_options *options = run->options;
	struct quire_refusal refusal;
	int code;

	if (quire_trace_open(input->path, &run->reader, &refusal) != QUIRE_OK)
		return cmd_tell_refusal(input->name, &refusal);
	run->compares = options->pages == 0 ||
	                options->pages == quire_trace_header(run->reader)->num_pages;
	code = replay_device(run, input->path);
	quire_trace_close(run->reader);
	return code;
}

int cmd_replay(int argc, char **argv)
{
	struct cmd_replay_options options = {
		.device = "cpu",
		.depth = 2,
		.digests = true,
	};
	struct cmd_run *run;
	struct cmd_input input;
	int code = cmd_parse(&argp, argc, argv, &options.common, 0);

	if (code != CMD_DONE || options.common.help)
		return code;
	run = calloc(1, sizeof(*run));
	if (run == NULL || !cmd_fates_init(&run->fates)) {
		cmd_tell(NULL, 0, "no memory for a replay");
		free(run);
		return CMD_BAD;
	}
	run->options = &options;
	run->file = options.trace;
	code = cmd_input_open(&input, options.trace,
	                      options.check || options.record != NULL);
	if (code == CMD_DONE) {
		code = replay_input(run, &input);
		cmd_input_close(&input);
	}
	cmd_fates_end(&run->fates);
	free(run);
	return code;
}
