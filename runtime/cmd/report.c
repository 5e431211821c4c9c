/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/cmd_impl.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>

/* Columns of a label. */
#define LABEL_WIDTH 24

#define TEXT_BYTES 256

/* Both forms are made as the numbers come; failed: memory ran out on the way. */
struct cmd_report {
	json_t *object;
	json_t *inner; /* what is filled now, when it is one inside; otherwise NULL */
	FILE *lines;
	char *text;
	size_t text_bytes;
	bool failed;
};

struct cmd_report *cmd_report_create(void)
{
	struct cmd_report *report = calloc(1, sizeof(*report));

	if (report == NULL)
		goto undo_none;
	report->object = json_object();
	report->lines = open_memstream(&report->text, &report->text_bytes);
	if (report->object == NULL || report->lines == NULL)
		goto undo_report;
	return report;

undo_report:
	cmd_report_discard(report);
undo_none:
	cmd_tell(NULL, 0, "no memory for a report");
	return NULL;
}

/* @value: given */
static void put(struct cmd_report *report, const char *key, json_t *value,
                const char *label, const char *text)
{
	json_t *object = report->inner != NULL ? report->inner : report->object;

	if (key != NULL)
		report->failed |= json_object_set_new(object, key, value) != 0;
	else
		json_decref(value);
	if (label != NULL)
		fprintf(report->lines, "%-*s %s\n", LABEL_WIDTH, label, text);
}

void cmd_report_count(struct cmd_report *report, const char *key, const char *label,
                      int64_t value)
{
	char text[TEXT_BYTES];

	snprintf(text, sizeof(text), "%" PRId64, value);
	put(report, key, json_integer(value), label, text);
}

void cmd_report_time(struct cmd_report *report, const char *key, const char *label,
                     int64_t ns)
{
	char text[TEXT_BYTES];

	if (ns < 10000)
		snprintf(text, sizeof(text), "%" PRId64 " ns", ns);
	else if (ns < 10000000)
		snprintf(text, sizeof(text), "%.1f us", (double)ns / 1e3);
	else if (ns < 10000000000)
		snprintf(text, sizeof(text), "%.1f ms", (double)ns / 1e6);
	else
		snprintf(text, sizeof(text), "%.2f s", (double)ns / 1e9);
	put(report, key, json_integer(ns), label, text);
}

void cmd_report_real(struct cmd_report *report, const char *key, const char *label,
                     double value, const char *unit)
{
	char text[TEXT_BYTES];

	snprintf(text, sizeof(text), value < 1000 ? "%.3g%s%s" : "%.0f%s%s", value,
	         unit[0] != '\0' ? " " : "", unit);
	put(report, key, json_real(value), label, text);
}

void cmd_report_share(struct cmd_report *report, const char *key, const char *label,
                      double share)
{
	char text[TEXT_BYTES];

	snprintf(text, sizeof(text), "%.1f %%", share * 100);
	put(report, key, json_real(share), label, text);
}

void cmd_report_text(struct cmd_report *report, const char *key, const char *label,
                     const char *text)
{
	put(report, key, text != NULL ? json_string(text) : json_null(), label,
	    text != NULL ? text : "none");
}

void cmd_report_kinds(struct cmd_report *report, const char *key, const char *label,
                      const char *const *names, const int64_t *counts, int32_t n)
{
	json_t *object = json_object();
	char text[TEXT_BYTES] = "none";
	size_t used = 0;

	for (int32_t i = 0; i < n; i++) {
		if (counts[i] == 0)
			continue;
		report->failed |= json_object_set_new(object, names[i],
		                                      json_integer(counts[i])) != 0;
		if (used < sizeof(text))
			used += (size_t)snprintf(text + used, sizeof(text) - used,
			                         "%s%" PRId64 " %s", used > 0 ? ", " : "",
			                         counts[i], names[i]);
	}
	put(report, key, object, label, text);
}

void cmd_report_begin(struct cmd_report *report, const char *key)
{
	json_t *object = json_object();

	put(report, key, object, NULL, NULL);
	report->inner = object; /* NULL: no memory, and the report failed */
}

void cmd_report_end(struct cmd_report *report)
{
	report->inner = NULL;
}

int cmd_report_print(struct cmd_report *report, FILE *file, bool json)
{
	bool written;

	report->failed |= fflush(report->lines) != 0;
	if (report->failed) {
		cmd_tell(NULL, 0, "no memory for a report");
		cmd_report_discard(report);
		return CMD_BAD;
	}
	if (json)
		written = json_dumpf(report->object, file,
		                     JSON_INDENT(2) | JSON_REAL_PRECISION(9)) == 0 &&
		          fputc('\n', file) != EOF;
	else
		written = fputs(report->text, file) != EOF;
	written &= fflush(file) == 0;
	cmd_report_discard(report);
	if (written)
		return CMD_DONE;
	clearerr(file); /* told here, and only once */
	cmd_tell(NULL, 0, "the numbers cannot be written: %m");
	return CMD_BAD;
}

void cmd_report_discard(struct cmd_report *report)
{
	if (report == NULL)
		return;
	json_decref(report->object);
	if (report->lines != NULL)
		fclose(report->lines);
	free(report->text);
	free(report);
}
