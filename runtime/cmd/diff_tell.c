/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/diff_impl.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#define SEGMENT_TEXT 96

void diff_tell(struct cmd_diff *diff, int64_t line_a, int64_t line_b, const char *format,
               ...)
{
	va_list arguments;

	if (diff->first[0] != '\0')
		return;
	va_start(arguments, format);
	vsnprintf(diff->first, sizeof(diff->first), format, arguments);
	va_end(arguments);
	diff->first_a = line_a;
	diff->first_b = line_b;
	cmd_tell(diff->names[0], line_a, "%s:%" PRId64 ": %s", diff->names[1], line_b,
	         diff->first);
}

/* ------------------------------------------------------------------ one command */

static const char *label_of(const char *label)
{
	return label != NULL ? label : QUIRE_LABEL_MAIN;
}

/* As it stands in a trace. */
static void describe_segment(const struct quire_segment *segment, char *text)
{
	int used = snprintf(text, SEGMENT_TEXT, "[%" PRIu64 ",\"%s\",%" PRId32 ",",
	                    segment->request, label_of(segment->label), segment->span);

	if (segment->at == QUIRE_AT_ANY)
		snprintf(text + used, SEGMENT_TEXT - (size_t)used, "null]");
	else
		snprintf(text + used, SEGMENT_TEXT - (size_t)used, "%" PRId32 "]",
		         segment->at);
}

static void describe_step(const struct quire_step *step, char *text)
{
	char segment[SEGMENT_TEXT];

	describe_segment(&step->segments[0], segment);
	snprintf(text, CMD_DIFF_TEXT, "%ssubmit of %" PRId32 " segment%s, the first %s",
	         (step->flags & QUIRE_STEP_SPECULATIVE) != 0 ? "speculative " : "",
	         step->num_segments, step->num_segments == 1 ? "" : "s", segment);
}

static void describe(const struct quire_command *command, char *text)
{
	const char *kind = cmd_kind_names[command->kind];

	switch (command->kind) {
	case QUIRE_COMMAND_SUBMIT:
		describe_step(command->step, text);
		return;
	case QUIRE_COMMAND_PROMOTE:
	case QUIRE_COMMAND_ABANDON:
		snprintf(text, CMD_DIFF_TEXT, "%s of %" PRIu64, kind, command->target);
		return;
	case QUIRE_COMMAND_OPEN:
	case QUIRE_COMMAND_CLOSE:
		snprintf(text, CMD_DIFF_TEXT, "%s of request %" PRIu64, kind,
		         command->request);
		return;
	case QUIRE_COMMAND_RESET:
		snprintf(text, CMD_DIFF_TEXT, "reset of request %" PRIu64 " \"%s\"%s",
		         command->request, label_of(command->label),
		         command->keep_pages != 0 ? ", pages kept" : "");
		return;
	case QUIRE_COMMAND_REWIND:
	case QUIRE_COMMAND_RELEASE_FRONT:
		snprintf(text, CMD_DIFF_TEXT,
		         "%s of request %" PRIu64 " \"%s\" by %" PRId32 " token%s", kind,
		         command->request, label_of(command->label), command->tokens,
		         command->tokens == 1 ? "" : "s");
		return;
	}
}

/* ------------------------------------------------------------------ two commands */

static bool is_same_segment(const struct quire_segment *a, const struct quire_segment *b)
{
	return a->request == b->request && a->span == b->span && a->at == b->at &&
	       strcmp(label_of(a->label), label_of(b->label)) == 0;
}

/* The first segment that is not the other's; false: all there are in both are. */
static bool describe_segments(const struct quire_step *a, const struct quire_step *b,
                              char *text)
{
	char text_a[SEGMENT_TEXT], text_b[SEGMENT_TEXT];
	int32_t i = 0;

	while (i < a->num_segments && i < b->num_segments &&
	       is_same_segment(&a->segments[i], &b->segments[i]))
		i++;
	if (i == a->num_segments && i == b->num_segments)
		return false;
	if (i == a->num_segments || i == b->num_segments) {
		snprintf(text, CMD_DIFF_TEXT,
		         "submit: %" PRId32 " segments, %" PRId32 " segments",
		         a->num_segments, b->num_segments);
		return true;
	}
	describe_segment(&a->segments[i], text_a);
	describe_segment(&b->segments[i], text_b);
	snprintf(text, CMD_DIFF_TEXT, "submit: segments[%" PRId32 "] is %s, %s", i,
	         text_a, text_b);
	return true;
}

static bool is_same_forks(const struct quire_fork *a, int32_t num_a,
                          const struct quire_fork *b, int32_t num_b)
{
	bool same = num_a == num_b;

	for (int32_t i = 0; same && i < num_a; i++)
		same = strcmp(label_of(a[i].source), label_of(b[i].source)) == 0 &&
		       strcmp(label_of(a[i].target), label_of(b[i].target)) == 0;
	return same;
}

/* The segments are the same: the field that is not. */
static const char *other_field(const struct quire_step *a, const struct quire_step *b)
{
	uint32_t flags = a->flags ^ b->flags;

	if (a->bucket_tokens != b->bucket_tokens || a->bucket_rows != b->bucket_rows)
		return "bucket";
	if (!is_same_forks(a->pre_forks, a->num_pre_forks, b->pre_forks,
	                   b->num_pre_forks))
		return "pre_forks";
	if (!is_same_forks(a->post_forks, a->num_post_forks, b->post_forks,
	                   b->num_post_forks))
		return "post_forks";
	if ((flags & QUIRE_STEP_NO_COMMIT) != 0)
		return "commit";
	if ((flags & QUIRE_STEP_NO_WAIT) != 0)
		return "no_wait";
	if ((flags & QUIRE_STEP_COPY_FORKS) != 0)
		return "copy";
	if ((flags & QUIRE_STEP_SPECULATIVE) != 0)
		return "speculative";
	return "combined";
}

static void describe_both(const struct quire_command *a, const struct quire_command *b,
                          struct diff_parting *parting)
{
	if (a->kind == QUIRE_COMMAND_SUBMIT && b->kind == QUIRE_COMMAND_SUBMIT &&
	    !describe_segments(a->step, b->step, parting->both))
		snprintf(parting->both, sizeof(parting->both),
		         "submit: %s is not the same", other_field(a->step, b->step));
}

void diff_describe(const struct cmd_diff *diff, struct diff_parting *parting)
{
	bool has_a = diff_side_count(&diff->a) > 0, has_b = diff_side_count(&diff->b) > 0;

	*parting = (struct diff_parting){.both = ""};
	if (has_a)
		describe(&diff->a.last.command, parting->a);
	if (has_b)
		describe(&diff->b.last.command, parting->b);
	if (has_a && has_b)
		describe_both(&diff->a.last.command, &diff->b.last.command, parting);
}

/* ------------------------------------------------------------------ pages */

/* Which page of which row the k-th page is that the step took; false: that does not
 * follow from the step alone. */
static bool place_page(const struct cmd_diff *diff, int32_t k, int32_t *row_out,
                       int64_t *place_out)
{
	const struct quire_step *step = diff->a.last.command.step;
	int64_t page_size = quire_trace_header(diff->a.reader)->page_size;
	int64_t before = 0;
	bool found = false;

	if (!diff->a.is_plain || !diff->b.is_plain)
		return false;
	for (int32_t i = 0; i < step->num_segments; i++) {
		int64_t at = step->segments[i].at, had, has;

		if (at == QUIRE_AT_ANY)
			return false;
		had = (at + page_size - 1) / page_size;
		has = (at + step->segments[i].span + page_size - 1) / page_size;
		if (!found && k < before + has - had) {
			found = true;
			*row_out = i;
			*place_out = had + k - before;
		}
		before += has - had;
	}
	return found && before == diff_side_at(&diff->a, 0)->outcome.num_pages;
}

static void tell_pages(struct cmd_diff *diff, const struct diff_item *a,
                       const struct diff_item *b)
{
	const struct quire_trace_outcome *of_a = &a->outcome, *of_b = &b->outcome;
	const struct quire_segment *segments = diff->a.last.command.step->segments;
	int64_t place = 0;
	int32_t k = 0, row = 0;

	while (k < of_a->num_pages && k < of_b->num_pages &&
	       of_a->pages[k] == of_b->pages[k])
		k++;
	if (k == of_a->num_pages || k == of_b->num_pages)
		diff_tell(diff, a->line, b->line,
		          "submit: took %" PRId32 " pages, %" PRId32 " pages",
		          of_a->num_pages, of_b->num_pages);
	else if (place_page(diff, k, &row, &place))
		diff_tell(diff, a->line, b->line,
		          "submit: pages[%" PRId32 "] is %" PRId32 ", %" PRId32
		          ": page %" PRId64 " of segments[%" PRId32 "], request %" PRIu64
		          " \"%s\"",
		          k, of_a->pages[k], of_b->pages[k], place, row,
		          segments[row].request, label_of(segments[row].label));
	else
		diff_tell(diff, a->line, b->line,
		          "submit: pages[%" PRId32 "] is %" PRId32 ", %" PRId32, k,
		          of_a->pages[k], of_b->pages[k]);
}

/* ------------------------------------------------------------------ pairs */

static void describe_named(const struct diff_item *item,
                           const struct quire_trace_record *record, char *text)
{
	uint64_t id = record->command.kind == QUIRE_COMMAND_SUBMIT
	                      ? record->base
	                      : record->command.target;

	if (item->names == DIFF_NAMES_NOTHING)
		snprintf(text, SEGMENT_TEXT, "nothing");
	else if (id != 0)
		snprintf(text, SEGMENT_TEXT, "step %" PRIu64, id);
	else
		snprintf(text, SEGMENT_TEXT, "the newest open step");
}

static void tell_named(struct cmd_diff *diff, const struct diff_item *a,
                       const struct diff_item *b)
{
	char text_a[SEGMENT_TEXT], text_b[SEGMENT_TEXT];

	describe_named(a, &diff->a.last, text_a);
	describe_named(b, &diff->b.last, text_b);
	diff_tell(diff, a->line, b->line, "%s: %s %s, %s, which is not the same",
	          cmd_kind_names[a->kind],
	          a->kind == QUIRE_COMMAND_SUBMIT ? "rests on" : "is of", text_a, text_b);
}

void diff_tell_pair(struct cmd_diff *diff, enum diff_what what)
{
	const struct diff_item *a = diff_side_at(&diff->a, 0);
	const struct diff_item *b = diff_side_at(&diff->b, 0);
	const struct quire_trace_outcome *of_a = &a->outcome, *of_b = &b->outcome;
	const char *kind = cmd_kind_names[a->kind];

	switch (what) {
	case DIFF_NAMED:
		tell_named(diff, a, b);
		return;
	case DIFF_PREFIX:
		diff_tell(diff, a->line, b->line, "%s: prefix is not the same", kind);
		return;
	case DIFF_STATUS:
		diff_tell(diff, a->line, b->line, "%s: status is %s, %s", kind,
		          quire_status_name(of_a->status),
		          quire_status_name(of_b->status));
		return;
	case DIFF_DETAIL:
		diff_tell(diff, a->line, b->line,
		          "%s: detail of %s is %" PRId64 ", %" PRId64, kind,
		          quire_status_name(of_a->status), of_a->detail, of_b->detail);
		return;
	case DIFF_OUTSIDE:
		diff_tell(diff, a->line, b->line, "%s: outside is %s, %s", kind,
		          of_a->is_outside ? "true" : "false",
		          of_b->is_outside ? "true" : "false");
		return;
	case DIFF_DIGEST:
		diff_tell(diff, a->line, b->line,
		          "%s: digest is %016" PRIx64 ", %016" PRIx64, kind, of_a->digest,
		          of_b->digest);
		return;
	case DIFF_PAGES:
		tell_pages(diff, a, b);
		return;
	default:
		return;
	}
}
