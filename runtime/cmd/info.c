/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "plans/lines_impl.h"
#include "runtime/cmd/cmd_impl.h"

#include <quire/plans/requests.h>
#include <quire/plans/trace.h>
#include <quire/runtime/limits.h>

#include <stdlib.h>
#include <string.h>

struct info_options {
	struct cmd_common common;
	const char *file;
	int64_t page_size;
	int64_t first; /* 0: all */
};

enum {
	KEY_PAGE_SIZE = 256,
	KEY_FIRST,
};

static const struct argp_option option_list[] = {
	{"page-size", KEY_PAGE_SIZE, "N", 0,
         "Of a request trace: tokens of a page for the ideal numbers (16)", 0},
	{"first", KEY_FIRST, "N", 0, "Of a request trace: take the first N requests only",
         0},
	CMD_COMMON_OPTIONS,
	{0},
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct info_options *options = state->input;

	switch (key) {
	case KEY_PAGE_SIZE:
		return cmd_parse_int(state, "--page-size", argument, 1,
		                     QUIRE_PAGE_SIZE_MAX, &options->page_size);
	case KEY_FIRST:
		return cmd_parse_int(state, "--first", argument, 1, INT32_MAX,
		                     &options->first);
	case ARGP_KEY_ARG:
		return cmd_parse_operand(state, argument, &options->file);
	case ARGP_KEY_END:
		if (options->file == NULL && !options->common.help)
			return cmd_refuse_usage(
				state, "a plan trace or a request trace is wanted");
		return 0;
	default:
		return cmd_parse_common(key, argument, state);
	}
}

static const struct argp argp = {
	.options = option_list,
	.parser = parse,
	.args_doc = "FILE",
	.doc = "Say what a plan trace or a request trace holds.\v"
	       "Which of the two FILE is, and whether zstd compressed it, is found by "
	       "content; \"-\" is standard input.  "
	       "The ideal numbers of a request trace are those of a schedule that serves "
	       "every request at its arrival: most pages live at once, pages taken in "
	       "all.\n"
	       "\n"
	       "Example:\n"
	       "  quire info --page-size 128 --first 1000 requests.csv",
};

/* ------------------------------------------------------------------ a plan trace */

const char *const cmd_kind_names[CMD_KINDS] = {
	[QUIRE_COMMAND_OPEN] = "open",
	[QUIRE_COMMAND_CLOSE] = "close",
	[QUIRE_COMMAND_SUBMIT] = "submit",
	[QUIRE_COMMAND_RESET] = "reset",
	[QUIRE_COMMAND_REWIND] = "rewind",
	[QUIRE_COMMAND_RELEASE_FRONT] = "release_front",
	[QUIRE_COMMAND_PROMOTE] = "promote",
	[QUIRE_COMMAND_ABANDON] = "abandon",
};

struct plan_counts {
	int64_t kinds[CMD_KINDS];
	int64_t commands;
	int64_t speculative; /* submits */
	int64_t forks;       /* pairs of them */
	int64_t segments;
	int64_t tokens;
	int64_t outcomes; /* commands recorded with one */
	int64_t refused;  /* of them */
};

static void count_record(struct plan_counts *counts,
                         const struct quire_trace_record *record)
{
	const struct quire_step *step = record->command.step;

	counts->commands++;
	counts->kinds[record->command.kind]++;
	counts->outcomes += record->has_outcome;
	counts->refused += record->has_outcome && record->outcome.status != QUIRE_OK;
	if (record->command.kind != QUIRE_COMMAND_SUBMIT)
		return;
	counts->speculative += (step->flags & QUIRE_STEP_SPECULATIVE) != 0;
	counts->forks += step->num_pre_forks + step->num_post_forks;
	counts->segments += step->num_segments;
	for (int32_t i = 0; i < step->num_segments; i++)
		counts->tokens += step->segments[i].span;
}

static void report_header(struct cmd_report *report,
                          const struct quire_trace_header *header)
{
	cmd_report_text(report, "kind", "file", "plan-trace");
	if (header->source[0] != '\0')
		cmd_report_text(report, "source", "source", header->source);
	cmd_report_text(report, "layout", "layout", header->layout);
	cmd_report_text(report, "dtype", "dtype", header->dtype);
	cmd_report_count(report, "layers", "layers", header->num_layers);
	cmd_report_count(report, "heads", "heads", header->num_kv_heads);
	cmd_report_count(report, "dims", "dims", header->head_dim);
	cmd_report_count(report, "page_size", "page size", header->page_size);
	cmd_report_count(report, "pages", "pages", header->num_pages);
	cmd_report_count(report, "sink", "pages for the sink", header->sink);
	cmd_report_count(report, "rows_max", "rows at most", header->rows_max);
	cmd_report_count(report, "tokens_max", "tokens at most", header->tokens_max);
	cmd_report_count(report, "requests_max", "requests at most",
	                 header->requests_max);
	cmd_report_count(report, "seq_tokens_max", "tokens of a stream",
	                 header->seq_tokens_max);
	cmd_report_count(report, "request_labels_max", "labels at most",
	                 header->request_labels_max);
	cmd_report_count(report, "tables_max", "tables at most", header->tables_max);
	cmd_report_count(report, "table_pages_max", "pages of a table",
	                 header->table_pages_max);
}

static int print_plan(const struct info_options *options,
                      const struct quire_trace_header *header,
                      const struct plan_counts *counts)
{
	struct cmd_report *report;

	if (options->common.quiet && !options->common.json)
		return CMD_DONE;
	report = cmd_report_create();
	if (report == NULL)
		return CMD_BAD;
	report_header(report, header);
	cmd_report_count(report, "commands", "commands", counts->commands);
	cmd_report_kinds(report, "commands_by_kind", "commands by kind", cmd_kind_names,
	                 counts->kinds, CMD_KINDS);
	cmd_report_count(report, "requests", "requests opened",
	                 counts->kinds[QUIRE_COMMAND_OPEN]);
	cmd_report_count(report, "steps", "steps", counts->kinds[QUIRE_COMMAND_SUBMIT]);
	cmd_report_count(report, "speculative", "speculative of them",
	                 counts->speculative);
	cmd_report_count(report, "forks", "forks", counts->forks);
	cmd_report_count(report, "segments", "segments", counts->segments);
	cmd_report_count(report, "tokens", "tokens", counts->tokens);
	cmd_report_count(report, "outcomes", "outcomes recorded", counts->outcomes);
	cmd_report_count(report, "refused", "refused of them", counts->refused);
	return cmd_report_print(report, stdout, options->common.json);
}

static int info_plan(const struct info_options *options, const struct cmd_input *input)
{
	struct plan_counts counts = {.commands = 0};
	struct quire_trace_reader *reader;
	struct quire_trace_record record;
	struct quire_refusal refusal;
	enum quire_status status;
	int64_t done, of;
	int code;

	if (quire_trace_open(input->path, &reader, &refusal) != QUIRE_OK)
		return cmd_tell_refusal(input->name, &refusal);
	cmd_progress_start("info", &options->common);
	while ((status = quire_trace_next(reader, &record, &refusal)) == QUIRE_OK) {
		count_record(&counts, &record);
		quire_trace_position(reader, &done, &of);
		cmd_progress_show(done, of);
	}
	cmd_progress_end();
	if (status == QUIRE_END)
		code = print_plan(options, quire_trace_header(reader), &counts);
	else
		code = cmd_tell_refusal(input->name, &refusal);
	quire_trace_close(reader);
	return code;
}

/* ------------------------------------------------------------------ a request trace */

static int print_requests(const struct info_options *options,
                          const struct quire_requests *requests)
{
	const struct quire_request_row *rows = requests->rows;
	int64_t input = 0, output = 0, peak, takes;
	struct cmd_report *report;

	if (quire_requests_ideal(requests, options->page_size, &peak, &takes) !=
	    QUIRE_OK) {
		cmd_tell(options->file, 0,
		         "the %lld requests need more than 2^32 pages, or more memory "
		         "than "
		         "there is",
		         (long long)requests->num_rows);
		return CMD_BAD;
	}
	if (options->common.quiet && !options->common.json)
		return CMD_DONE;
	for (int64_t i = 0; i < requests->num_rows; i++) {
		input += rows[i].input_tokens;
		output += rows[i].output_tokens;
	}
	report = cmd_report_create();
	if (report == NULL)
		return CMD_BAD;
	cmd_report_text(report, "kind", "file", "request-trace");
	cmd_report_text(report, "format", "format", requests->format);
	cmd_report_count(report, "requests", "requests", requests->num_rows);
	cmd_report_real(report, "duration_s", "duration",
	                (double)rows[requests->num_rows - 1].arrival_ns / 1e9, "s");
	cmd_report_count(report, "input_tokens", "input tokens", input);
	cmd_report_count(report, "output_tokens", "output tokens", output);
	cmd_report_count(report, "page_size", "page size", options->page_size);
	cmd_report_count(report, "ideal_peak_pages", "ideal peak of pages", peak);
	cmd_report_count(report, "ideal_takes", "ideal pages taken", takes);
	return cmd_report_print(report, stdout, options->common.json);
}

static int info_requests(const struct info_options *options,
                         const struct cmd_input *input)
{
	struct quire_requests requests;
	struct quire_refusal refusal;
	int code;

	if (quire_requests_read(input->path, options->first, &requests, &refusal) !=
	    QUIRE_OK)
		return cmd_tell_refusal(input->name, &refusal);
	code = print_requests(options, &requests);
	quire_requests_free(&requests);
	return code;
}

/* ------------------------------------------------------------------ which of the two */

enum file_kind {
	FILE_PLAN,
	FILE_REQUESTS, /* or a file that its reader refuses */
	FILE_NEITHER,
};

/* A plan trace's first line is an object that says so, a request trace's an object or a
 * list of names. */
static enum file_kind kind_of(const char *path)
{
	enum file_kind kind = FILE_REQUESTS;
	struct quire_lines lines;
	struct quire_line line;

	if (quire_lines_open(&lines, path, NULL) != QUIRE_OK)
		return kind;
	if (quire_lines_next(&lines, &line, NULL) == QUIRE_OK && line.length > 0) {
		if (line.text[0] == '{' &&
		    memmem(line.text, line.length, "\"quire\"", 7) != NULL)
			kind = FILE_PLAN;
		else if (line.text[0] != '{' &&
		         (line.length < 10 || memcmp(line.text, "TIMESTAMP,", 10) != 0))
			kind = FILE_NEITHER;
	}
	quire_lines_close(&lines);
	return kind;
}

static int info_file(const struct info_options *options, const struct cmd_input *input)
{
	switch (kind_of(input->path)) {
	case FILE_PLAN:
		return info_plan(options, input);
	case FILE_REQUESTS:
		return info_requests(options, input);
	case FILE_NEITHER:
		break;
	}
	cmd_tell(input->name, 1,
	         "neither a plan trace nor a request trace: the first line must be an "
	         "object with quire \"plan-trace\", one with timestamp, or "
	         "TIMESTAMP,ContextTokens,GeneratedTokens");
	return CMD_BAD;
}

int cmd_info(int argc, char **argv)
{
	struct info_options options = {.page_size = 16};
	struct cmd_input input;
	int code = cmd_parse(&argp, argc, argv, &options.common, 0);

	if (code != CMD_DONE || options.common.help)
		return code;
	code = cmd_input_open(&input, options.file, true);
	if (code != CMD_DONE)
		return code;
	code = info_file(&options, &input);
	cmd_input_close(&input);
	return code;
}
