/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/cmd_impl.h"

#include <quire/plans/requests.h>
#include <quire/plans/trace.h>
#include <quire/runtime/limits.h>

#include <search.h>
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
	       "all; where prompts have prefix names, also with full prompt pages shared "
	       "among requests alive together, and how many of these pages a request "
	       "before had.\n"
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
	int64_t keys;     /* names of prompts, of all opens */
	int64_t repeated; /* of them: an open before had it */
	void *key_tree;   /* the distinct ones, of tsearch */
	int64_t last_ns;  /* the latest time recorded; -1: none is */
};

static int compare_keys(const void *left, const void *right)
{
	const int64_t *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

/* False: no memory. */
static bool count_key(struct plan_counts *counts, int64_t key)
{
	int64_t *made;

	counts->keys++;
	if (tfind(&key, &counts->key_tree, compare_keys) != NULL) {
		counts->repeated++;
		return true;
	}
	made = malloc(sizeof(*made));
	if (made == NULL)
		return false;
	*made = key;
	if (tsearch(made, &counts->key_tree, compare_keys) != NULL)
		return true;
	free(made);
	return false;
}

static bool count_prefix(struct plan_counts *counts,
                         const struct quire_trace_prefix *prefix)
{
	bool counted = true;

	for (int32_t i = 0; i < prefix->num_keys && counted; i++)
		counted = count_key(counts, prefix->keys[i]);
	return counted;
}

static void count_times(struct plan_counts *counts, const struct quire_trace_times *times)
{
	const int64_t all[] = {times->given_ns, times->decided_ns, times->issued_ns};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		counts->last_ns = all[i] > counts->last_ns ? all[i] : counts->last_ns;
}

static void count_record(struct plan_counts *counts,
                         const struct quire_trace_record *record)
{
	const struct quire_step *step = record->command.step;

	if (record->has_times)
		count_times(counts, &record->times);
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
	if (header->row_pages_max > 0)
		cmd_report_count(report, "row_pages_max", "pages of a row",
		                 header->row_pages_max);
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
	if (counts->keys > 0) {
		cmd_report_count(report, "prefix_keys", "prefix keys", counts->keys);
		cmd_report_share(report, "prefix_keys_repeated", "repeated of them",
		                 (double)counts->repeated / (double)counts->keys);
	}
	if (counts->last_ns >= 0)
		cmd_report_real(report, "duration_s", "duration",
		                (double)counts->last_ns / 1e9, "s");
	return cmd_report_print(report, stdout, options->common.json);
}

static int info_plan(const struct info_options *options, const struct cmd_input *input)
{
	struct plan_counts counts = {.last_ns = -1};
	struct quire_trace_reader *reader;
	struct quire_trace_record record;
	struct quire_refusal refusal;
	enum quire_status status;
	bool counted = true;
	int64_t done, of;
	int code;

	if (quire_trace_open(input->path, &reader, &refusal) != QUIRE_OK)
		return cmd_tell_refusal(input->name, &refusal);
	cmd_progress_start("info", &options->common);
	while (counted &&
	       (status = quire_trace_next(reader, &record, &refusal)) == QUIRE_OK) {
		count_record(&counts, &record);
		counted = count_prefix(&counts, &record.prefix);
		quire_trace_position(reader, &done, &of);
		cmd_progress_show(done, of);
	}
	cmd_progress_end();
	if (!counted) {
		cmd_tell(input->name, record.line, "no memory for its prefix keys");
		code = CMD_BAD;
	} else {
		/* What a damaged trace holds up to there, too. */
		code = print_plan(options, quire_trace_header(reader), &counts);
		if (code == CMD_DONE && status != QUIRE_END)
			code = cmd_tell_refusal(input->name, &refusal);
	}
	tdestroy(counts.key_tree, free);
	quire_trace_close(reader);
	return code;
}

/* ------------------------------------------------------------------ a request trace */

struct request_counts {
	int64_t requests;
	int64_t empty; /* of them: without tokens */
	int64_t last_ns;
	int64_t input;
	int64_t output;
	bool has_prefix;
};

static int print_requests(const struct info_options *options, const char *format,
                          const struct request_counts *counts,
                          const struct quire_ideal_numbers *ideal)
{
	struct cmd_report *report;

	if (options->common.quiet && !options->common.json)
		return CMD_DONE;
	report = cmd_report_create();
	if (report == NULL)
		return CMD_BAD;
	cmd_report_text(report, "kind", "file", "request-trace");
	cmd_report_text(report, "format", "format", format);
	cmd_report_count(report, "requests", "requests", counts->requests);
	cmd_report_count(report, "empty", "without tokens", counts->empty);
	cmd_report_real(report, "duration_s", "duration", (double)counts->last_ns / 1e9,
	                "s");
	cmd_report_count(report, "input_tokens", "input tokens", counts->input);
	cmd_report_count(report, "output_tokens", "output tokens", counts->output);
	cmd_report_count(report, "page_size", "page size", options->page_size);
	cmd_report_count(report, "ideal_peak_pages", "ideal peak of pages",
	                 ideal->peak_pages);
	cmd_report_count(report, "ideal_takes", "ideal pages taken", ideal->takes);
	if (counts->has_prefix) {
		cmd_report_count(report, "ideal_shared_peak_pages", "ideal peak, shared",
		                 ideal->shared_peak_pages);
		cmd_report_count(report, "ideal_shared_takes", "ideal taken, shared",
		                 ideal->shared_takes);
		cmd_report_count(report, "prompt_pages", "full prompt pages",
		                 ideal->prompt_pages);
		cmd_report_share(report, "prompt_pages_repeated", "repeated of them",
		                 ideal->prompt_pages == 0
		                         ? 0
		                         : (double)ideal->repeated_pages /
		                                   (double)ideal->prompt_pages);
	}
	return cmd_report_print(report, stdout, options->common.json);
}

static void count_row(struct request_counts *counts, const struct quire_request_row *row)
{
	counts->requests++;
	counts->empty += row->input_tokens + row->output_tokens == 0;
	counts->last_ns = row->arrival_ns;
	counts->input += row->input_tokens;
	counts->output += row->output_tokens;
	counts->has_prefix |= row->prefix.tokens != 0;
}

/* Count all rows, of which a refusal may be the reader's or the schedule's. */
static enum quire_status count_rows(const struct info_options *options,
                                    struct quire_requests *requests,
                                    struct quire_ideal *ideal,
                                    struct request_counts *counts,
                                    struct quire_refusal *refusal)
{
	struct quire_request_row row;
	enum quire_status status = QUIRE_OK;
	int64_t done, of;

	while (status == QUIRE_OK &&
	       (options->first == 0 || counts->requests < options->first)) {
		status = quire_requests_next(requests, &row, refusal);
		if (status == QUIRE_OK)
			status = quire_ideal_add(ideal, &row, refusal);
		if (status == QUIRE_OK)
			count_row(counts, &row);
		quire_requests_position(requests, &done, &of);
		cmd_progress_show(done, of);
	}
	return status == QUIRE_END ? QUIRE_OK : status;
}

static int info_requests(const struct info_options *options,
                         const struct cmd_input *input, struct quire_requests *requests)
{
	struct request_counts counts = {.requests = 0};
	struct quire_ideal_numbers numbers;
	struct quire_refusal refusal;
	struct quire_ideal *ideal;
	enum quire_status status;

	if (quire_ideal_create(options->page_size, &ideal) != QUIRE_OK) {
		cmd_tell(NULL, 0, "no memory for the ideal numbers");
		return CMD_BAD;
	}
	cmd_progress_start("info", &options->common);
	status = count_rows(options, requests, ideal, &counts, &refusal);
	if (status == QUIRE_OK)
		quire_ideal_finish(ideal, &numbers);
	cmd_progress_end();
	quire_ideal_destroy(ideal);
	if (status != QUIRE_OK)
		return cmd_tell_refusal(input->name, &refusal);
	return print_requests(options, quire_requests_format(requests), &counts,
	                      &numbers);
}

/* ------------------------------------------------------------------ which of the two */

/* The first line tells: the reader of request traces knows those of plan traces. */
static int info_file(const struct info_options *options, const struct cmd_input *input)
{
	/* Its reader's words. */
	static const char not_requests[] = "not a request trace: ";
	struct quire_requests *requests;
	struct quire_refusal refusal;
	enum quire_status status = quire_requests_open(input->path, &requests, &refusal);
	int code;

	if (status == QUIRE_INVALID)
		return info_plan(options, input);
	if (status == QUIRE_FORMAT &&
	    strncmp(refusal.what, not_requests, strlen(not_requests)) == 0) {
		cmd_tell(input->name, 1,
		         "neither a plan trace nor a request trace: the first line must "
		         "be an object with quire \"plan-trace\", with timestamp or with "
		         "requests, or the names of a request trace's columns");
		return CMD_BAD;
	}
	if (status != QUIRE_OK)
		return cmd_tell_refusal(input->name, &refusal);
	code = info_requests(options, input, requests);
	quire_requests_close(requests);
	return code;
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
