/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/cmd_impl.h"

#include <quire/kernels/dtype.h>
#include <quire/kernels/layout.h>
#include <quire/plans/import.h>
#include <quire/plans/requests.h>
#include <quire/plans/trace.h>
#include <quire/runtime/limits.h>

#include <stdlib.h>
#include <string.h>

struct import_options {
	struct cmd_common common;
	const char *requests;
	const char *output;
	int64_t first; /* 0: all */
	struct quire_trace_header header;
};

enum {
	KEY_PAGE_SIZE = 256,
	KEY_PAGES,
	KEY_ROWS,
	KEY_TOKENS,
	KEY_SEQ_TOKENS,
	KEY_FIRST,
	KEY_LAYOUT,
	KEY_DTYPE,
	KEY_LAYERS,
	KEY_HEADS,
	KEY_DIMS,
};

static const struct argp_option option_list[] = {
	{"output", 'o', "TRACE", 0, "Where the plan trace goes (\"-\": to stdout)", 0},
	{"first", KEY_FIRST, "N", 0, "Take the first N requests only", 0},
	{"page-size", KEY_PAGE_SIZE, "N", 0, "Tokens of a page (16)", 0},
	{"pages", KEY_PAGES, "N", 0, "Pages of the pool, the sink included (8192)", 0},
	{"rows", KEY_ROWS, "N", 0, "Most requests of a step (256)", 0},
	{"tokens", KEY_TOKENS, "N", 0, "Most tokens of a step (2048)", 0},
	{"seq-tokens", KEY_SEQ_TOKENS, "N", 0,
         "Most tokens of a request (as many as all pages hold)", 0},
	{"layout", KEY_LAYOUT, "NAME", 0, "Layout of the cache: NHD, HND, MLA (NHD)", 0},
	{"dtype", KEY_DTYPE, "NAME", 0,
         "Element type of the cache: f32, f16, bf16, e4m3, e5m2 (bf16)", 0},
	{"layers", KEY_LAYERS, "N", 0, "Layers of the cache (1)", 0},
	{"heads", KEY_HEADS, "N", 0, "KV heads of the cache (1; MLA has no more)", 0},
	{"dims", KEY_DIMS, "N", 0, "Elements of a head (8)", 0},
	CMD_COMMON_OPTIONS,
	{0},
};

static error_t parse_layout(struct argp_state *state, const char *name)
{
	struct import_options *options = state->input;
	enum quire_layout layout;

	if (quire_layout_parse(name, &layout) != QUIRE_OK)
		return cmd_refuse_usage(
			state, "--layout must be NHD, HND or MLA, got \"%s\"", name);
	strcpy(options->header.layout, quire_layout_name(layout));
	return 0;
}

static error_t parse_dtype(struct argp_state *state, const char *name)
{
	struct import_options *options = state->input;
	enum quire_dtype dtype;

	if (quire_dtype_parse(name, &dtype) != QUIRE_OK)
		return cmd_refuse_usage(
			state, "--dtype must be f32, f16, bf16, e4m3 or e5m2, got \"%s\"",
			name);
	strcpy(options->header.dtype, quire_dtype_name(dtype));
	return 0;
}

static error_t parse_end(struct argp_state *state)
{
	struct import_options *options = state->input;
	struct quire_trace_header *header = &options->header;

	if (options->common.help)
		return 0;
	if (options->requests == NULL)
		return cmd_refuse_usage(state, "a request trace is wanted");
	if (options->output == NULL)
		return cmd_refuse_usage(state, "-o TRACE is wanted");
	if (header->tokens_max < header->rows_max)
		return cmd_refuse_usage(
			state, "--tokens must be at least --rows %lld, got %lld",
			(long long)header->rows_max, (long long)header->tokens_max);
	if (header->seq_tokens_max == 0) {
		int64_t all = (header->num_pages - 1) * header->page_size;

		header->seq_tokens_max =
			all < QUIRE_SEQ_TOKENS_MAX ? all : QUIRE_SEQ_TOKENS_MAX;
	}
	header->requests_max = header->rows_max;
	header->request_labels_max = 1;
	header->tables_max = 1;
	header->table_pages_max = header->num_pages;
	return 0;
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct import_options *options = state->input;
	struct quire_trace_header *header = &options->header;

	switch (key) {
	case 'o':
		options->output = argument;
		return 0;
	case KEY_FIRST:
		return cmd_parse_int(state, "--first", argument, 1, INT32_MAX,
		                     &options->first);
	case KEY_PAGE_SIZE:
		return cmd_parse_int(state, "--page-size", argument, 1,
		                     QUIRE_PAGE_SIZE_MAX, &header->page_size);
	case KEY_PAGES:
		return cmd_parse_int(state, "--pages", argument, 2, QUIRE_PAGES_MAX,
		                     &header->num_pages);
	case KEY_ROWS:
		return cmd_parse_int(state, "--rows", argument, 1, QUIRE_ROWS_MAX,
		                     &header->rows_max);
	case KEY_TOKENS:
		return cmd_parse_int(state, "--tokens", argument, 1, QUIRE_TOKENS_MAX,
		                     &header->tokens_max);
	case KEY_SEQ_TOKENS:
		return cmd_parse_int(state, "--seq-tokens", argument, 1,
		                     QUIRE_SEQ_TOKENS_MAX, &header->seq_tokens_max);
	case KEY_LAYOUT:
		return parse_layout(state, argument);
	case KEY_DTYPE:
		return parse_dtype(state, argument);
	case KEY_LAYERS:
		return cmd_parse_int(state, "--layers", argument, 1, INT32_MAX,
		                     &header->num_layers);
	case KEY_HEADS:
		return cmd_parse_int(state, "--heads", argument, 1, INT32_MAX,
		                     &header->num_kv_heads);
	case KEY_DIMS:
		return cmd_parse_int(state, "--dims", argument, 1, INT32_MAX,
		                     &header->head_dim);
	case ARGP_KEY_ARG:
		return cmd_parse_operand(state, argument, &options->requests);
	case ARGP_KEY_END:
		return parse_end(state);
	default:
		return cmd_parse_common(key, argument, state);
	}
}

static const struct argp argp = {
	.options = option_list,
	.parser = parse,
	.args_doc = "REQUESTS -o TRACE",
	.doc = "Make a plan trace of a request trace, under a continuous-batching policy."
	       "\v"
	       "REQUESTS is a CSV file of Azure, BurstGPT or Vidur, Mooncake JSON Lines, "
	       "or a coding-agent session (one JSON object on one line), "
	       "found by content; \"-\" is standard input.  Requests run in arrival "
	       "order, "
	       "decode steps first, prompts in chunks; where pages run short the newest "
	       "is "
	       "preempted and computed again later; one that can never fit is refused "
	       "and counted.\n"
	       "\n"
	       "Example:\n"
	       "  quire import --pages 4096 requests.csv -o requests.plan",
};

/* The request trace, as the importer asks for it. */
struct reading {
	struct quire_requests *requests;
	int64_t left; /* rows that may still be read */
	bool failed;  /* a row was refused */
};

static enum quire_status next_row(void *argument, struct quire_request_row *row_out,
                                  struct quire_refusal *refusal_out)
{
	struct reading *reading = argument;
	enum quire_status status;
	int64_t done, of;

	if (reading->left-- <= 0)
		return QUIRE_END;
	status = quire_requests_next(reading->requests, row_out, refusal_out);
	reading->failed = status != QUIRE_OK && status != QUIRE_END;
	quire_requests_position(reading->requests, &done, &of);
	cmd_progress_show(done, of);
	return status;
}

static int print_summary(const struct import_options *options,
                         const struct quire_import_summary *summary)
{
	bool on_output = options->common.json && strcmp(options->output, "-") != 0;
	struct cmd_report *report;

	if (options->common.quiet && !options->common.json)
		return CMD_DONE;
	report = cmd_report_create();
	if (report == NULL)
		return CMD_BAD;
	cmd_report_count(report, "requests", "requests", summary->requests);
	cmd_report_count(report, "refused", "requests refused", summary->refused);
	cmd_report_count(report, "steps", "steps", summary->steps);
	cmd_report_count(report, "tokens", "tokens", summary->tokens);
	cmd_report_count(report, "preemptions", "preemptions", summary->preemptions);
	cmd_report_count(report, "tokens_recomputed", "tokens recomputed",
	                 summary->tokens_recomputed);
	cmd_report_count(report, "pages_taken", "pages taken", summary->pages_taken);
	cmd_report_count(report, "pages_peak", "pages at the peak", summary->pages_peak);
	return cmd_report_print(report, on_output ? stdout : stderr,
	                        options->common.json);
}

/* A trace without a step is of no use to anybody. */
static int refuse_all(const struct import_options *options,
                      const struct quire_import_summary *summary)
{
	const struct quire_trace_header *header = &options->header;

	cmd_tell(options->requests, 0,
	         "no request can be served: each of the %lld has no tokens, more than "
	         "%lld tokens or more than the %lld pages of %lld that there are",
	         (long long)summary->requests, (long long)header->seq_tokens_max,
	         (long long)(header->num_pages - header->sink),
	         (long long)header->page_size);
	return CMD_BAD;
}

/* Write the trace; a file there stays unless all went well. */
static int write_trace(const struct import_options *options,
                       struct quire_requests *requests)
{
	struct reading reading = {
		.requests = requests,
		.left = options->first > 0 ? options->first : INT64_MAX,
	};
	const struct quire_import_input input = {next_row, &reading};
	struct quire_import_summary summary;
	struct quire_trace_writer *writer;
	struct quire_refusal refusal;
	int code = CMD_DONE;

	if (quire_trace_create(options->output, &options->header, &writer, &refusal) !=
	    QUIRE_OK)
		return cmd_tell_refusal(options->output, &refusal);
	cmd_progress_start("import", &options->common);
	if (quire_import_requests(&input, &options->header, writer, &summary, &refusal) !=
	    QUIRE_OK)
		code = cmd_tell_refusal(
			reading.failed ? options->requests : options->output, &refusal);
	else if (summary.steps == 0)
		code = refuse_all(options, &summary);
	cmd_progress_end();
	if (code != CMD_DONE) {
		quire_trace_discard(writer);
		return code;
	}
	if (quire_trace_commit(writer, &refusal) != QUIRE_OK)
		return cmd_tell_refusal(options->output, &refusal);
	return print_summary(options, &summary);
}

int cmd_import(int argc, char **argv)
{
	struct import_options options = {
		.header =
			{
				.layout = "NHD",
				.dtype = "bf16",
				.num_layers = 1,
				.num_kv_heads = 1,
				.head_dim = 8,
				.page_size = 16,
				.num_pages = 8192,
				.sink = true,
				.rows_max = 256,
				.tokens_max = 2048,
			},
	};
	struct quire_requests *requests;
	struct quire_refusal refusal;
	int code = cmd_parse(&argp, argc, argv, &options.common, 0);

	if (code != CMD_DONE || options.common.help)
		return code;
	if (cmd_is_same_file(options.requests, options.output)) {
		cmd_tell(options.output, 0,
		         "is the request trace itself; name another file");
		return CMD_BAD;
	}
	if (quire_requests_open(options.requests, &requests, &refusal) != QUIRE_OK)
		return cmd_tell_refusal(options.requests, &refusal);
	quire_import_source(quire_requests_format(requests), &options.header);
	code = write_trace(&options, requests);
	quire_requests_close(requests);
	return code;
}
