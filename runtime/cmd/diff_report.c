/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/diff_impl.h"

#include <inttypes.h>

#define NAME_BYTES 48

static const struct {
	const char *key, *label;
} whats[DIFF_KINDS] = {
	[DIFF_ONLY_A] = {"only_a", "only in A"},
	[DIFF_ONLY_B] = {"only_b", "only in B"},
	[DIFF_NAMED] = {"other_step", "name another step"},
	[DIFF_PREFIX] = {"other_prefix", "other prefix"},
	[DIFF_STATUS] = {"other_status", "other status"},
	[DIFF_DETAIL] = {"other_detail", "other detail"},
	[DIFF_OUTSIDE] = {"other_outside", "other outside"},
	[DIFF_DIGEST] = {"other_digest", "other digest"},
	[DIFF_PAGES] = {"other_pages", "other pages"},
	[DIFF_PREFIX_ONE] = {"prefix_in_one", "prefix in one"},
	[DIFF_OUTCOME_ONE] = {"outcome_in_one", "outcome in one"},
	[DIFF_DIGEST_ONE] = {"digest_in_one", "digest in one"},
	[DIFF_PAGES_ONE] = {"pages_in_one", "pages in one"},
};

/* How many, and the lines of the first. */
static void report_what(struct cmd_report *report, const struct cmd_diff *diff, int what)
{
	const struct diff_count *count = &diff->counts[what];
	char key[NAME_BYTES], text[2 * NAME_BYTES];

	cmd_report_count(report, whats[what].key, NULL, count->count);
	if (count->count == 0) {
		snprintf(text, sizeof(text), "0");
	} else {
		snprintf(text, sizeof(text),
		         "%" PRId64 ", first A:%" PRId64 " B:%" PRId64, count->count,
		         count->line_a, count->line_b);
		snprintf(key, sizeof(key), "%s_line_a", whats[what].key);
		cmd_report_count(report, key, NULL, count->line_a);
		snprintf(key, sizeof(key), "%s_line_b", whats[what].key);
		cmd_report_count(report, key, NULL, count->line_b);
	}
	cmd_report_text(report, NULL, whats[what].label, text);
}

static void report_statuses(struct cmd_report *report, const struct cmd_diff *diff)
{
	enum { PAIRS = CMD_DIFF_STATUSES * CMD_DIFF_STATUSES };
	static char texts[PAIRS][NAME_BYTES];
	const char *names[PAIRS];

	for (int i = 0; i < PAIRS; i++) {
		snprintf(texts[i], NAME_BYTES, "%s -> %s",
		         quire_status_name((enum quire_status)(i / CMD_DIFF_STATUSES)),
		         quire_status_name((enum quire_status)(i % CMD_DIFF_STATUSES)));
		names[i] = texts[i];
	}
	cmd_report_kinds(report, "statuses", "statuses", names, diff->statuses, PAIRS);
}

static void report_quantiles(struct cmd_report *report,
                             const struct quire_histogram *histogram, const char *key,
                             const char *label)
{
	static const struct {
		const char *key, *label;
		int64_t per_mille;
	} quantiles[] = {{"median_ns", "median", 500}, {"p99_ns", "p99", 990}};
	char full_key[NAME_BYTES], full_label[NAME_BYTES];

	for (int q = 0; q < 2; q++) {
		snprintf(full_key, sizeof(full_key), "%s_%s", key, quantiles[q].key);
		snprintf(full_label, sizeof(full_label), "%s, %s", label,
		         quantiles[q].label);
		cmd_report_time(
			report, full_key, full_label,
			quire_histogram_quantile(histogram, quantiles[q].per_mille));
	}
}

static void report_times(struct cmd_report *report, const struct cmd_diff *diff)
{
	static const char *const texts[] = {"in neither", "in A only", "in B only",
	                                    "not compared"};
	int which = diff->a.times.any + 2 * diff->b.times.any;

	cmd_report_text(report, "times", "times", texts[which]);
	if (which < 3)
		return;
	report_quantiles(report, &diff->a.times.decided, "given_to_decided_a",
	                 "A: until decided");
	report_quantiles(report, &diff->b.times.decided, "given_to_decided_b",
	                 "B: until decided");
	report_quantiles(report, &diff->a.times.issued, "decided_to_issued_a",
	                 "A: until issued");
	report_quantiles(report, &diff->b.times.issued, "decided_to_issued_b",
	                 "B: until issued");
}

static void report_first(struct cmd_report *report, const struct cmd_diff *diff)
{
	if (diff->first[0] == '\0')
		return;
	cmd_report_text(report, "first", NULL, diff->first);
	cmd_report_count(report, "first_line_a", NULL, diff->first_a);
	cmd_report_count(report, "first_line_b", NULL, diff->first_b);
}

int diff_report(struct cmd_diff *diff)
{
	bool same = diff->first[0] == '\0';
	int code = same ? CMD_DONE : CMD_FAILED;
	struct cmd_report *report;

	if (diff->common.quiet && !diff->common.json)
		return code;
	report = cmd_report_create();
	if (report == NULL)
		return CMD_BAD;
	cmd_report_text(report, "status", "status", same ? "same" : "different");
	cmd_report_text(report, "a", "A", diff->names[0]);
	cmd_report_text(report, "b", "B", diff->names[1]);
	report_first(report, diff);
	cmd_report_count(report, "header_fields", NULL, diff->header_fields);
	cmd_report_text(report, "header", "header",
	                diff->header_fields > 0 ? diff->header : "same");
	cmd_report_count(report, "aligned", "commands aligned", (int64_t)diff->pairs);
	cmd_report_count(report, "same", "same in all", diff->same);
	cmd_report_count(report, "same_outcome", "same outcome", diff->same_outcome);
	for (int what = 0; what < DIFF_KINDS; what++)
		report_what(report, diff, what);
	report_statuses(report, diff);
	report_times(report, diff);
	if (cmd_report_print(report, stdout, diff->common.json) != CMD_DONE)
		return CMD_BAD;
	return code;
}
