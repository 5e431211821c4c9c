/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "plans/target_impl.h"
#include "runtime/cmd/replay_impl.h"

#include <quire/runtime/limits.h>

#include <string.h>

enum {
	KEY_DEVICE = 256,
	KEY_DEPTH,
	KEY_PAGES,
	KEY_CHECK,
	KEY_SEED_DELAYS,
	KEY_THREADS,
	KEY_DIGESTS,
	KEY_NO_DIGESTS,
	KEY_OUTCOMES,
	KEY_RECORD,
	KEY_TIMELINE,
	KEY_VERIFY,
	KEY_NO_VERIFY,
	KEY_FROM,
	KEY_TO,
	KEY_TIMING,
	KEY_LOOP,
	KEY_JOBS,
};

static const struct argp_option option_list[] = {
	{"device", KEY_DEVICE, "NAME", 0,
         "cpu, cpu:inline, cpu:N, cuda[:N][+checks] (cpu)", 0},
	{"depth", KEY_DEPTH, "N", 0, "Plan slots, 1..64 (2)", 0},
	{"pages", KEY_PAGES, "N", 0,
         "Pages of the pool in place of the trace's; of outcomes only what does not hang "
         "on "
         "that is compared then",
         0},
	{"check", KEY_CHECK, NULL, 0, "Write a pattern for every token, verify reads", 0},
	{"seed-delays", KEY_SEED_DELAYS, "N", 0,
         "Delay planner and executor at random, from this seed", 0},
	{"threads", KEY_THREADS, "WHOSE", 0,
         "library: a planner and an executor thread; caller: one for all (library)", 0},
	{"digests", KEY_DIGESTS, NULL, 0, "Digest every plan (the default)", 0},
	{"no-digests", KEY_NO_DIGESTS, NULL, 0, "Digest no plan, compare no digest", 0},
	{"verify", KEY_VERIFY, NULL, 0, "Compare with the record (the default)", 0},
	{"no-verify", KEY_NO_VERIFY, NULL, 0, "Compare nothing with the record", 0},
	{"from", KEY_FROM, "LINE", 0,
         "Compare, time and count from this line of the file on", 0},
	{"to", KEY_TO, "LINE", 0, "Give nothing behind this line of the file", 0},
	{"timing", KEY_TIMING, "WHICH", 0,
         "fast: give every command at once; recorded: at its time on record (fast)", 0},
	{"loop", KEY_LOOP, "N", 0, "Replay it N times, a new runtime each time (1)", 0},
	{"jobs", KEY_JOBS, "N", 0, "Replay it N times at once, 1..64 (1)", 0},
	{"outcomes", KEY_OUTCOMES, "FILE", 0,
         "Write the trace again, each command with its outcome", 0},
	{"record", KEY_RECORD, "FILE", 0,
         "Record the run, with outcomes, pages and times", 0},
	{"timeline", KEY_TIMELINE, "FILE", 0,
         "Write a timeline for Perfetto or chrome://tracing", 0},
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

static error_t parse_timing(struct argp_state *state, const char *which)
{
	struct cmd_replay_options *options = state->input;

	if (strcmp(which, "fast") != 0 && strcmp(which, "recorded") != 0)
		return cmd_refuse_usage(
			state, "--timing must be fast or recorded, got \"%s\"", which);
	options->recorded = strcmp(which, "recorded") == 0;
	return 0;
}

/* A file that a replay writes. */
struct output {
	const char *name; /* of the option */
	const char *path; /* NULL: none */
};

#define NUM_OUTPUTS 3

static void list_outputs(const struct cmd_replay_options *options,
                         struct output outputs[NUM_OUTPUTS])
{
	outputs[0] = (struct output){"--outcomes", options->outcomes};
	outputs[1] = (struct output){"--record", options->record};
	outputs[2] = (struct output){"--timeline", options->timeline};
}

/* What is wrong with all options together. */
static error_t check_options(struct argp_state *state)
{
	const struct cmd_replay_options *options = state->input;
	struct output files[NUM_OUTPUTS];

	if (options->trace == NULL && !options->common.help)
		return cmd_refuse_usage(state, "a plan trace is wanted");
	if (options->to != 0 && options->to < options->from)
		return cmd_refuse_usage(state, "--to is before --from");
	list_outputs(options, files);
	if (options->loops > 1 || options->jobs > 1)
		for (int i = 0; i < NUM_OUTPUTS; i++)
			if (files[i].path != NULL)
				return cmd_refuse_usage(
					state,
					"%s is of one replay: without --loop and --jobs",
					files[i].name);
	return 0;
}

static error_t parse_part(int key, char *argument, struct argp_state *state)
{
	struct cmd_replay_options *options = state->input;

	switch (key) {
	case KEY_FROM:
		return cmd_parse_int(state, "--from", argument, 1, INT64_MAX,
		                     &options->from);
	case KEY_TO:
		return cmd_parse_int(state, "--to", argument, 1, INT64_MAX, &options->to);
	case KEY_TIMING:
		return parse_timing(state, argument);
	case KEY_LOOP:
		return cmd_parse_int(state, "--loop", argument, 1, CMD_LOOPS_MAX,
		                     &options->loops);
	case KEY_JOBS:
		return cmd_parse_int(state, "--jobs", argument, 1, CMD_JOBS_MAX,
		                     &options->jobs);
	default:
		return cmd_parse_common(key, argument, state);
	}
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
	case KEY_VERIFY:
	case KEY_NO_VERIFY:
		options->verify = key == KEY_VERIFY;
		return 0;
	case KEY_OUTCOMES:
		options->outcomes = argument;
		return 0;
	case KEY_TIMELINE:
		options->timeline = argument;
		return 0;
	case KEY_RECORD:
		options->record = argument;
		return 0;
	case ARGP_KEY_ARG:
		return cmd_parse_operand(state, argument, &options->trace);
	case ARGP_KEY_END:
		return check_options(state);
	default:
		return parse_part(key, argument, state);
	}
}

static const struct argp argp = {
	.options = option_list,
	.parser = parse,
	.args_doc = "TRACE",
	.doc = "Run a plan trace, compare it with what was recorded, say how it went.\v"
	       "TRACE is a plan trace as \"quire import\" writes it; \"-\" is standard "
	       "input.  The first outcome, page or table that is not as recorded is "
	       "named and "
	       "ends the replay with exit status 1, as does a read that is not what was "
	       "written.\n"
	       "\n"
	       "Example:\n"
	       "  quire replay --check --depth 8 requests.plan",
};

/* ------------------------------------------------------------------ all of it */

/* Does the record of the part that is replayed name pages?  The first step that does tells,
 * which most often is the first of all. */
static bool has_pages(struct quire_trace_reader *reader, int64_t to)
{
	struct quire_trace_record record;

	while (quire_trace_next(reader, &record, NULL) == QUIRE_OK &&
	       (to == 0 || record.line <= to)) {
		if (record.has_outcome && record.outcome.has_pages)
			return true;
	}
	return false;
}

/* What is known of the trace before anything is made. */
static int look_ahead(struct cmd_shared *shared)
{
	const struct cmd_replay_options *options = shared->options;
	struct quire_trace_reader *reader;
	struct quire_refusal refusal;

	if (quire_trace_open(shared->path, &reader, &refusal) != QUIRE_OK)
		return cmd_tell_refusal(shared->file, &refusal);
	shared->header = *quire_trace_header(reader);
	shared->is_logical =
		options->pages != 0 && options->pages != shared->header.num_pages;
	if (options->outcomes != NULL || (options->verify && !shared->is_logical))
		shared->keeps_pages = has_pages(reader, options->to);
	quire_trace_close(reader);
	return CMD_DONE;
}

/* What all jobs came to: told, reported, told. */
static int tell_all(struct cmd_shared *shared, struct cmd_job *job, int code)
{
	const char *what = job->divergence.what;

	if (what != NULL) {
		if (strcmp(what, "digest") == 0 || strcmp(what, "pages") == 0)
			cmd_explain(shared, job);
		cmd_divergence_tell(&job->divergence, shared->file);
	}
	code = cmd_summary_print(shared, job, code);
	if (code == CMD_DONE && job->damage.found)
		return cmd_tell_refusal(shared->file, &job->damage.refusal);
	return code;
}

/* No file may be written over that is read, or written, too; but the outcomes are the
 * trace again, and there once it was read. */
static int check_outputs(const struct cmd_replay_options *options)
{
	struct output outputs[NUM_OUTPUTS];

	list_outputs(options, outputs);
	for (int i = 0; i < NUM_OUTPUTS; i++) {
		const char *path = outputs[i].path;

		if (path != NULL && i > 0 && cmd_is_same_file(options->trace, path)) {
			cmd_tell(path, 0, "is the trace itself; name another file for %s",
			         outputs[i].name);
			return CMD_BAD;
		}
		for (int j = 0; j < i && path != NULL; j++) {
			if (outputs[j].path == NULL ||
			    !quire_target_is_same(outputs[j].path, path))
				continue;
			cmd_tell(path, 0, "cannot be both %s and %s; name another file",
			         outputs[j].name, outputs[i].name);
			return CMD_BAD;
		}
	}
	return CMD_DONE;
}

static int replay_input(const struct cmd_replay_options *options,
                        const struct cmd_input *input)
{
	struct cmd_shared shared = {
		.options = options,
		.file = input->name,
		.path = input->path,
		.gate.told = ATOMIC_FLAG_INIT,
	};
	struct cmd_job job;
	int code = look_ahead(&shared);

	if (code != CMD_DONE)
		return code;
	code = cmd_jobs_run(&shared, &job);
	code = tell_all(&shared, &job, code);
	cmd_job_end(&job);
	return code;
}

int cmd_replay(int argc, char **argv)
{
	struct cmd_replay_options options = {
		.device = "cpu",
		.depth = 2,
		.loops = 1,
		.jobs = 1,
		.digests = true,
		.verify = true,
	};
	struct cmd_input input;
	int code = cmd_parse(&argp, argc, argv, &options.common, 0);

	if (code != CMD_DONE || options.common.help)
		return code;
	code = check_outputs(&options);
	if (code != CMD_DONE)
		return code;
	/* Every job, every loop, and whoever explains reads it anew. */
	code = cmd_input_open(&input, options.trace, true);
	if (code != CMD_DONE)
		return code;
	code = replay_input(&options, &input);
	cmd_input_close(&input);
	return code;
}
