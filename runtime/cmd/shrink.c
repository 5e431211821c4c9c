/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "plans/target_impl.h"
#include "runtime/cmd/shrink_impl.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define RUNS_MAX    1000000
#define TIMEOUT_MAX 86400

/* What a default output's name has more than the trace's. */
#define SMALL ".small"

enum {
	KEY_RUNS = 256,
	KEY_TIMEOUT,
};

struct shrink_options {
	struct cmd_common common;
	const char *trace;
	char **command; /* ended by NULL */
	const char *output;
	int64_t runs;
	int64_t timeout_s;
};

static const struct argp_option option_list[] = {
	{"output", 'o', "FILE", 0,
         "Where the small trace goes (TRACE.small; \"-\": to stdout)", 0},
	{"runs", KEY_RUNS, "N", 0, "Run the program N times at most (10000)", 0},
	{"timeout", KEY_TIMEOUT, "S", 0, "End a run after S seconds (60)", 0},
	CMD_COMMON_OPTIONS,
	{0},
};

/* The trace, or the command: all that stands behind "--". */
static error_t parse_operand(struct argp_state *state, char *argument)
{
	struct shrink_options *options = state->input;

	if (options->trace == NULL) {
		options->trace = argument;
		return 0;
	}
	if (state->quoted == 0)
		return cmd_refuse_usage(state,
		                        "one trace is wanted, and the program to run "
		                        "behind \"--\"; \"%s\" is one too many",
		                        argument);
	options->command = &state->argv[state->next - 1];
	state->next = state->argc;
	return 0;
}

static error_t parse_end(struct argp_state *state)
{
	const struct shrink_options *options = state->input;

	if (options->common.help)
		return 0;
	if (options->trace == NULL || options->command == NULL)
		return cmd_refuse_usage(state, "a plan trace is wanted, and a program to "
		                               "run behind \"--\"");
	if (options->output == NULL && strcmp(options->trace, "-") == 0)
		return cmd_refuse_usage(state, "-o FILE is wanted: the trace comes from "
		                               "standard input");
	return 0;
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct shrink_options *options = state->input;

	switch (key) {
	case 'o':
		options->output = argument;
		return 0;
	case KEY_RUNS:
		return cmd_parse_int(state, "--runs", argument, 1, RUNS_MAX,
		                     &options->runs);
	case KEY_TIMEOUT:
		return cmd_parse_int(state, "--timeout", argument, 1, TIMEOUT_MAX,
		                     &options->timeout_s);
	case ARGP_KEY_ARG:
		return parse_operand(state, argument);
	case ARGP_KEY_END:
		return parse_end(state);
	default:
		return cmd_parse_common(key, argument, state);
	}
}

static const struct argp argp = {
	.options = option_list,
	.parser = parse,
	.args_doc = "TRACE -- PROGRAM [ARGUMENT...]",
	.doc = "Make a plan trace smaller for which a program fails.\v"
	       "PROGRAM is run, without a shell, on ever smaller traces: \"{}\" in an "
	       "argument stands for the file, which otherwise is the last argument.  It "
	       "fails when it ends with the exit status, or by the signal, that it ended "
	       "with on TRACE.  What it prints is lost.  Exit status 1: it does not fail "
	       "on TRACE.\n"
	       "\n"
	       "Example:\n"
	       "  quire shrink -o small.plan big.plan -- quire replay --check {}",
};

/* ------------------------------------------------------------------ the numbers */

static void report_count(struct cmd_report *report, const char *name, int64_t before,
                         int64_t after)
{
	char key[64], text[64];

	snprintf(key, sizeof(key), "%s_before", name);
	cmd_report_count(report, key, NULL, before);
	snprintf(key, sizeof(key), "%s_after", name);
	cmd_report_count(report, key, NULL, after);
	snprintf(text, sizeof(text), "%lld of %lld", (long long)after, (long long)before);
	cmd_report_text(report, NULL, name, text);
}

static const char *status_of(const struct shrink *shrink, const struct shrink_run *run)
{
	if (run->is_interrupted)
		return "interrupted";
	return shrink->is_stopped ? "runs used up" : "done";
}

static int print_report(const struct shrink_options *options, const struct shrink *shrink,
                        const struct shrink_run *run, const struct shrink_counts *before)
{
	FILE *file = strcmp(options->output, "-") == 0 ? stderr : stdout;
	struct shrink_counts after;
	struct cmd_report *report;
	char failure[128];

	if (options->common.quiet && !options->common.json)
		return CMD_DONE;
	report = cmd_report_create();
	if (report == NULL)
		return CMD_BAD;
	shrink_count(&shrink->model, &shrink->best, &after);
	shrink_run_describe(run, failure, sizeof(failure));
	cmd_report_text(report, "status", "status", status_of(shrink, run));
	cmd_report_text(report, "output", "output", options->output);
	cmd_report_text(report, "failure", "failure", failure);
	cmd_report_text(report, "method", "method",
	                shrink->is_tail_only
	                        ? "end cut off: without outcomes it does not fail"
	                        : "reduced");
	report_count(report, "commands", before->commands, after.commands);
	report_count(report, "segments", before->segments, after.segments);
	report_count(report, "requests", before->requests, after.requests);
	report_count(report, "pages", before->pages, after.pages);
	cmd_report_count(report, "runs", "runs", shrink->runs);
	return cmd_report_print(report, file, options->common.json);
}

/* ------------------------------------------------------------------ run */

static int write_output(const struct shrink_options *options, const struct shrink *shrink)
{
	struct quire_trace_header header = shrink_header(&shrink->model, &shrink->best);
	struct quire_trace_writer *writer;
	struct quire_refusal refusal;
	int code;

	if (quire_trace_create(options->output, &header, &writer, &refusal) != QUIRE_OK)
		return cmd_tell_refusal(options->output, &refusal);
	code = shrink_write(&shrink->model, &shrink->best, writer, options->output);
	if (code != CMD_DONE) {
		quire_trace_discard(writer);
		return code;
	}
	if (quire_trace_commit(writer, &refusal) != QUIRE_OK)
		return cmd_tell_refusal(options->output, &refusal);
	return CMD_DONE;
}

/* It does not fail, or nobody waited for that. */
static int refuse(const struct shrink_options *options, const struct shrink_run *run)
{
	if (run->is_interrupted)
		cmd_tell(options->trace, 0,
		         "interrupted before it was known whether %s fails on it",
		         options->command[0]);
	else
		cmd_tell(options->trace, 0,
		         "%s does not fail on it: there is nothing to shrink",
		         options->command[0]);
	return CMD_FAILED;
}

static int shrink_trace(const struct shrink_options *options, struct shrink *shrink,
                        struct shrink_run *run)
{
	struct shrink_counts before;
	int code, written = CMD_DONE;

	shrink_count(&shrink->model, &shrink->best, &before);
	code = shrink_run_begin(run);
	if (code == CMD_DONE)
		code = shrink_reduce(shrink);
	if (code == CMD_DONE)
		code = run->code;
	cmd_progress_end();
	if (code == CMD_DONE && !shrink->is_failing)
		code = refuse(options, run);
	else if (shrink->is_failing) /* whatever ended it: it may be the work of hours */
		written = write_output(options, shrink);
	shrink_run_end(run);
	if (code == CMD_DONE)
		code = written;
	return code != CMD_DONE ? code : print_report(options, shrink, run, &before);
}

static int shrink_lines(const struct shrink_options *options,
                        const struct cmd_lines *lines)
{
	struct shrink_run run = {
		.command = options->command,
		.timeout_s = options->timeout_s,
	};
	struct shrink shrink = {
		.test = shrink_run_test,
		.argument = &run,
		.runs_max = options->runs,
	};
	int code = shrink_init(&shrink, lines);

	run.shrink = &shrink;
	if (code == CMD_DONE)
		code = shrink_trace(options, &shrink, &run);
	shrink_end(&shrink);
	return code;
}

static int run(const struct shrink_options *options)
{
	struct cmd_lines lines = {.num = 0};
	int code;

	cmd_progress_start("shrink", &options->common);
	code = cmd_lines_read(&lines, options->trace);
	if (code == CMD_DONE)
		code = shrink_lines(options, &lines);
	cmd_progress_end();
	cmd_lines_end(&lines);
	return code;
}

/* That a file cannot be made there is found before the work is done.  What is no file, a
 * pipe say, is not opened twice. */
static int check_output(const char *output)
{
	struct quire_refusal refusal;
	struct quire_target target;
	struct stat about;

	if (strcmp(output, "-") == 0 ||
	    (stat(output, &about) == 0 && !S_ISREG(about.st_mode)))
		return CMD_DONE;
	if (quire_target_open(&target, output, &refusal) != QUIRE_OK)
		return cmd_tell_refusal(output, &refusal);
	quire_target_discard(&target);
	return CMD_DONE;
}

int cmd_shrink(int argc, char **argv)
{
	struct shrink_options options = {.runs = 10000, .timeout_s = 60};
	char *output = NULL;
	int code = cmd_parse(&argp, argc, argv, &options.common, ARGP_IN_ORDER);

	if (code != CMD_DONE || options.common.help)
		return code;
	if (options.output == NULL) {
		if (asprintf(&output, "%s" SMALL, options.trace) < 0) {
			cmd_tell(NULL, 0, "no memory for a name");
			return CMD_BAD;
		}
		options.output = output;
	}
	/* It may be all there is. */
	if (cmd_is_same_file(options.trace, options.output)) {
		cmd_tell(options.output, 0, "is the trace itself; name another file");
		code = CMD_BAD;
	} else {
		code = check_output(options.output);
		if (code == CMD_DONE)
			code = run(&options);
	}
	free(output);
	return code;
}
