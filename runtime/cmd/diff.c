/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/diff_impl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const struct argp_option option_list[] = {
	CMD_COMMON_OPTIONS,
	{0},
};

static error_t parse_end(struct argp_state *state)
{
	const struct cmd_diff *diff = state->input;

	if (diff->common.help)
		return 0;
	if (diff->names[1] == NULL)
		return cmd_refuse_usage(state, "two plan traces are wanted");
	if (strcmp(diff->names[0], "-") == 0 && strcmp(diff->names[1], "-") == 0)
		return cmd_refuse_usage(
			state, "standard input can be one of the traces, not both");
	return 0;
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct cmd_diff *diff = state->input;

	switch (key) {
	case ARGP_KEY_ARG:
		if (diff->names[1] != NULL)
			return cmd_refuse_usage(
				state, "two traces are wanted, \"%s\" is one too many",
				argument);
		diff->names[diff->names[0] != NULL] = argument;
		return 0;
	case ARGP_KEY_END:
		return parse_end(state);
	default:
		return cmd_parse_common(key, argument, state);
	}
}

static const struct argp argp = {
	.options = option_list,
	.parser = parse,
	.args_doc = "A B",
	.doc = "Compare two plan traces: tell the first difference, and how they part.\v"
	       "Commands are aligned by what they ask, whatever their ids and times are; "
	       "\"-\" is standard input.  Exit status 1: they differ.\n"
	       "\n"
	       "Example:\n"
	       "  quire diff before.plan after.plan",
};

/* ------------------------------------------------------------------ headers */

/* A field of both headers as text; told where it differs. */
static void compare_texts(struct cmd_diff *diff, const char *field, const char *a,
                          const char *b)
{
	size_t used = strlen(diff->header);

	if (strcmp(a, b) == 0)
		return;
	snprintf(diff->header + used, sizeof(diff->header) - used, "%s%s %s -> %s",
	         used > 0 ? ", " : "", field, a, b);
	diff->header_fields++;
	diff_tell(diff, 1, 1, "header: %s is %s, %s", field, a, b);
}

static void compare_numbers(struct cmd_diff *diff, const char *field, int64_t a,
                            int64_t b)
{
	char text_a[24], text_b[24];

	snprintf(text_a, sizeof(text_a), "%" PRId64, a);
	snprintf(text_b, sizeof(text_b), "%" PRId64, b);
	compare_texts(diff, field, text_a, text_b);
}

/* A limit that may be left out. */
static void compare_row_pages(struct cmd_diff *diff, int64_t a, int64_t b)
{
	if (a != 0 && b != 0)
		compare_numbers(diff, "limits.row_pages", a, b);
	else if (a != b)
		compare_texts(diff, "limits.row_pages", a != 0 ? "there" : "left out",
		              b != 0 ? "there" : "left out");
}

/* Everything but `source`, which is for people. */
static void compare_headers(struct cmd_diff *diff)
{
	const struct quire_trace_header *a = quire_trace_header(diff->a.reader);
	const struct quire_trace_header *b = quire_trace_header(diff->b.reader);

	compare_texts(diff, "cache.layout", a->layout, b->layout);
	compare_texts(diff, "cache.dtype", a->dtype, b->dtype);
	compare_numbers(diff, "cache.num_layers", a->num_layers, b->num_layers);
	compare_numbers(diff, "cache.num_kv_heads", a->num_kv_heads, b->num_kv_heads);
	compare_numbers(diff, "cache.head_dim", a->head_dim, b->head_dim);
	compare_numbers(diff, "cache.page_size", a->page_size, b->page_size);
	compare_numbers(diff, "pool.num_pages", a->num_pages, b->num_pages);
	compare_texts(diff, "pool.sink", a->sink ? "true" : "false",
	              b->sink ? "true" : "false");
	compare_numbers(diff, "limits.rows", a->rows_max, b->rows_max);
	compare_numbers(diff, "limits.tokens", a->tokens_max, b->tokens_max);
	compare_numbers(diff, "limits.requests", a->requests_max, b->requests_max);
	compare_numbers(diff, "limits.seq_tokens", a->seq_tokens_max, b->seq_tokens_max);
	compare_numbers(diff, "limits.labels", a->request_labels_max,
	                b->request_labels_max);
	compare_numbers(diff, "limits.tables", a->tables_max, b->tables_max);
	compare_numbers(diff, "limits.table_pages", a->table_pages_max,
	                b->table_pages_max);
	compare_row_pages(diff, a->row_pages_max, b->row_pages_max);
}

/* ------------------------------------------------------------------ aligned */

static bool is_same_step(struct cmd_diff *diff, const struct diff_item *a,
                         const struct diff_item *b)
{
	const struct diff_step *step_a = NULL, *step_b = NULL;

	if (a->names == DIFF_NAMES_STEP)
		step_a = diff_side_step(&diff->a, a->named);
	if (b->names == DIFF_NAMES_STEP)
		step_b = diff_side_step(&diff->b, b->named);
	if (step_a == NULL || step_b == NULL)
		return step_a == step_b && (a->names == DIFF_NAMES_NOTHING) ==
		                                   (b->names == DIFF_NAMES_NOTHING);
	return step_a->pair == step_b->pair && diff_key_same(&step_a->key, &step_b->key);
}

static bool is_same_list(const struct quire_trace_outcome *a,
                         const struct quire_trace_outcome *b)
{
	return a->num_pages == b->num_pages &&
	       (a->num_pages == 0 ||
	        memcmp(a->pages, b->pages, (size_t)a->num_pages * sizeof(*a->pages)) ==
	                0);
}

/* Both were recorded: mark in what they differ. */
static void compare_outcomes(const struct quire_trace_outcome *a,
                             const struct quire_trace_outcome *b, bool *differs)
{
	differs[DIFF_STATUS] = a->status != b->status;
	if (differs[DIFF_STATUS])
		return;
	differs[DIFF_DETAIL] = a->detail != b->detail;
	differs[DIFF_OUTSIDE] = a->is_outside != b->is_outside;
	differs[DIFF_DIGEST] = a->has_digest && b->has_digest && a->digest != b->digest;
	differs[DIFF_PAGES] = a->has_pages && b->has_pages && !is_same_list(a, b);
	differs[DIFF_DIGEST_ONE] = a->has_digest != b->has_digest;
	differs[DIFF_PAGES_ONE] = a->has_pages != b->has_pages;
}

static void count_difference(struct cmd_diff *diff, enum diff_what what, int64_t line_a,
                             int64_t line_b)
{
	struct diff_count *count = &diff->counts[what];

	if (count->count++ == 0) {
		count->line_a = line_a;
		count->line_b = line_b;
	}
}

static void compare_pair(struct cmd_diff *diff)
{
	const struct diff_item *a = diff_side_at(&diff->a, 0);
	const struct diff_item *b = diff_side_at(&diff->b, 0);
	bool both = a->has_outcome && b->has_outcome, same = true, outcome = both;
	bool differs[DIFF_KINDS] = {
		[DIFF_NAMED] = !is_same_step(diff, a, b),
		[DIFF_PREFIX] = a->has_prefix && b->has_prefix &&
	                        !diff_key_same(&a->prefix, &b->prefix),
		[DIFF_PREFIX_ONE] = a->has_prefix != b->has_prefix,
		[DIFF_OUTCOME_ONE] = a->has_outcome != b->has_outcome,
	};

	if (both)
		compare_outcomes(&a->outcome, &b->outcome, differs);
	for (int what = 0; what < DIFF_KINDS; what++) {
		if (!differs[what])
			continue;
		count_difference(diff, (enum diff_what)what, a->line, b->line);
		if (what >= DIFF_PREFIX_ONE)
			continue;
		same = false;
		outcome &= what < DIFF_STATUS;
		if (diff->first[0] == '\0')
			diff_tell_pair(diff, (enum diff_what)what);
	}
	if (differs[DIFF_STATUS])
		diff->statuses[(int)a->outcome.status * CMD_DIFF_STATUSES +
		               (int)b->outcome.status]++;
	diff->same += same;
	diff->same_outcome += outcome;
}

static void take_pair(struct cmd_diff *diff)
{
	const struct diff_item *a = diff_side_at(&diff->a, 0);
	const struct diff_item *b = diff_side_at(&diff->b, 0);

	diff->pairs++;
	if (a->is_speculative) {
		diff->a.steps[a->number % CMD_FATES].pair = diff->pairs;
		diff->b.steps[b->number % CMD_FATES].pair = diff->pairs;
	}
	compare_pair(diff);
	diff_side_drop(&diff->a);
	diff_side_drop(&diff->b);
}

/* ------------------------------------------------------------------ apart */

static void tell_parting(struct cmd_diff *diff, const struct diff_parting *parting,
                         bool in_a, bool in_b)
{
	int64_t line_a = diff_side_line(&diff->a), line_b = diff_side_line(&diff->b);

	if (!in_b)
		diff_tell(diff, line_a, line_b, "only in %s: %s", diff->names[0],
		          parting->a);
	else if (!in_a)
		diff_tell(diff, line_a, line_b, "only in %s: %s", diff->names[1],
		          parting->b);
	else if (parting->both[0] != '\0')
		diff_tell(diff, line_a, line_b, "%s", parting->both);
	else
		diff_tell(diff, line_a, line_b, "%s against %s", parting->a, parting->b);
}

static void pass_over(struct cmd_diff *diff, uint64_t skip_a, uint64_t skip_b)
{
	int64_t line_a = diff_side_line(&diff->a), line_b = diff_side_line(&diff->b);

	for (; skip_a > 0; skip_a--) {
		count_difference(diff, DIFF_ONLY_A, diff_side_line(&diff->a), line_b);
		diff_side_drop(&diff->a);
	}
	for (; skip_b > 0; skip_b--) {
		count_difference(diff, DIFF_ONLY_B, line_a, diff_side_line(&diff->b));
		diff_side_drop(&diff->b);
	}
}

/* The commands in hand ask different things: go on where they are alike again. */
static int part(struct cmd_diff *diff)
{
	bool is_first = diff->first[0] == '\0';
	struct diff_parting parting;
	uint64_t skip_a, skip_b;
	int code;

	if (is_first) /* before the windows are filled: the records are lent */
		diff_describe(diff, &parting);
	code = diff_side_fill(&diff->a, CMD_DIFF_WINDOW);
	if (code == CMD_DONE)
		code = diff_side_fill(&diff->b, CMD_DIFF_WINDOW);
	if (code != CMD_DONE)
		return code;
	diff_align(&diff->a, &diff->b, &skip_a, &skip_b);
	if (is_first)
		tell_parting(diff, &parting, skip_a > 0, skip_b > 0);
	pass_over(diff, skip_a, skip_b);
	return CMD_DONE;
}

/* ------------------------------------------------------------------ walk */

static void show_progress(const struct cmd_diff *diff)
{
	int64_t done_a, of_a, done_b, of_b;

	quire_trace_position(diff->a.reader, &done_a, &of_a);
	quire_trace_position(diff->b.reader, &done_b, &of_b);
	cmd_progress_show(done_a + done_b, of_a < 0 || of_b < 0 ? -1 : of_a + of_b);
}

static int walk(struct cmd_diff *diff)
{
	struct diff_side *a = &diff->a, *b = &diff->b;
	int code;

	for (;;) {
		code = diff_side_fill(a, 1);
		if (code == CMD_DONE)
			code = diff_side_fill(b, 1);
		if (code != CMD_DONE || diff_side_count(a) + diff_side_count(b) == 0)
			return code;
		if (diff_side_count(a) > 0 && diff_side_count(b) > 0 &&
		    diff_key_same(&diff_side_at(a, 0)->key, &diff_side_at(b, 0)->key))
			take_pair(diff);
		else
			code = part(diff);
		if (code != CMD_DONE)
			return code;
		show_progress(diff);
	}
}

static int run(struct cmd_diff *diff)
{
	int code = diff_side_open(&diff->a, diff->names[0]);

	if (code == CMD_DONE)
		code = diff_side_open(&diff->b, diff->names[1]);
	if (code != CMD_DONE)
		return code;
	cmd_progress_start("diff", &diff->common);
	compare_headers(diff);
	code = walk(diff);
	cmd_progress_end();
	return code != CMD_DONE ? code : diff_report(diff);
}

int cmd_diff(int argc, char **argv)
{
	struct cmd_diff *diff = calloc(1, sizeof(*diff));
	int code;

	if (diff == NULL) {
		cmd_tell(NULL, 0, "no memory for a diff");
		return CMD_BAD;
	}
	code = cmd_parse(&argp, argc, argv, &diff->common, 0);
	if (code == CMD_DONE && !diff->common.help) {
		code = run(diff);
		diff_side_close(&diff->a);
		diff_side_close(&diff->b);
	}
	free(diff);
	return code;
}
