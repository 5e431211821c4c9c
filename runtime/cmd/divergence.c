/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/divergence_impl.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#define TEXT_BYTES 1024

void cmd_divergence_init(struct cmd_divergence *divergence, const char *what,
                         int64_t line, enum quire_command_kind kind)
{
	*divergence = (struct cmd_divergence){
		.what = what,
		.line = line,
		.kind = kind,
		.row = -1,
		.array_index = -1,
		.take = -1,
	};
}

void cmd_divergence_note(struct cmd_divergence *divergence, const char *format, ...)
{
	size_t used = strlen(divergence->note);
	va_list arguments;

	if (used > 0 && used + 2 < CMD_NOTE_BYTES) {
		memcpy(divergence->note + used, "; ", 3);
		used += 2;
	}
	va_start(arguments, format);
	vsnprintf(divergence->note + used, CMD_NOTE_BYTES - used, format, arguments);
	va_end(arguments);
}

void cmd_divergence_name(struct cmd_divergence *divergence, uint64_t request,
                         const char *label)
{
	divergence->has_stream = true;
	divergence->request = request;
	snprintf(divergence->label, sizeof(divergence->label), "%s", label);
}

/* ------------------------------------------------------------------ tell */

/* One line as it grows: "(a, b, c)". */
struct line {
	char text[TEXT_BYTES];
	size_t used;
	bool is_inside;
};

__attribute__((format(printf, 2, 3))) static void add(struct line *line,
                                                      const char *format, ...)
{
	va_list arguments;
	int n;

	if (line->used >= sizeof(line->text))
		return;
	va_start(arguments, format);
	n = vsnprintf(line->text + line->used, sizeof(line->text) - line->used, format,
	              arguments);
	va_end(arguments);
	line->used += n > 0 ? (size_t)n : 0;
}

/* What separates the next detail from what stands before it. */
static const char *next(struct line *line)
{
	const char *between = line->is_inside ? ", " : " (";

	line->is_inside = true;
	return between;
}

static void add_place(struct line *line, const struct cmd_divergence *divergence)
{
	if (divergence->step != 0)
		add(line, "%sstep %" PRIu64, next(line), divergence->step);
	if (divergence->row >= 0)
		add(line, "%srow %" PRId32, next(line), divergence->row);
	if (divergence->has_stream)
		add(line, "%srequest %" PRIu64 ", label \"%s\"", next(line),
		    divergence->request, divergence->label);
	if (divergence->table[0] != '\0')
		add(line, "%stable \"%s\"", next(line), divergence->table);
	if (divergence->array != NULL)
		add(line, "%s%s", next(line), divergence->array);
	if (divergence->array_index >= 0)
		add(line, "[%" PRId64 "]", divergence->array_index);
	if (divergence->take >= 0)
		add(line, "%spage %" PRId64 " in take order", next(line),
		    divergence->take);
	if (divergence->note[0] != '\0')
		add(line, "%s%s", next(line), divergence->note);
	if (line->is_inside)
		add(line, ")");
}

void cmd_divergence_tell(const struct cmd_divergence *divergence, const char *file)
{
	struct line line = {.used = 0};

	if (divergence->expected[0] == '\0') {
		cmd_tell(file, divergence->line, "%s", divergence->note);
		return;
	}
	add(&line, "%s diverged: expected %s, got %s", cmd_kind_names[divergence->kind],
	    divergence->expected, divergence->got);
	add_place(&line, divergence);
	cmd_tell(file, divergence->line, "%s", line.text);
}

/* ------------------------------------------------------------------ report */

static void report_text(struct cmd_report *report, const char *key, const char *text)
{
	if (text != NULL && text[0] != '\0')
		cmd_report_text(report, key, NULL, text);
}

static void report_count(struct cmd_report *report, const char *key, int64_t count,
                         int64_t least)
{
	if (count >= least)
		cmd_report_count(report, key, NULL, count);
}

void cmd_divergence_report(const struct cmd_divergence *divergence,
                           struct cmd_report *report)
{
	cmd_report_begin(report, "divergence");
	cmd_report_text(report, "what", NULL, divergence->what);
	report_count(report, "line", divergence->line, 1);
	if (divergence->expected[0] != '\0')
		cmd_report_text(report, "command", NULL,
		                cmd_kind_names[divergence->kind]);
	report_count(report, "step", (int64_t)divergence->step, 1);
	report_count(report, "row", divergence->row, 0);
	if (divergence->has_stream) {
		cmd_report_count(report, "request", NULL, (int64_t)divergence->request);
		cmd_report_text(report, "label", NULL, divergence->label);
	}
	report_text(report, "table", divergence->table);
	report_text(report, "array", divergence->array);
	report_count(report, "index", divergence->array_index, 0);
	report_count(report, "take", divergence->take, 0);
	report_text(report, "expected", divergence->expected);
	report_text(report, "got", divergence->got);
	report_text(report, "note", divergence->note);
	cmd_report_end(report);
}
