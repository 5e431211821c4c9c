/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/replay_impl.h"

#include <inttypes.h>
#include <string.h>

static void report_runtime(struct cmd_report *report,
                           const struct quire_runtime_stats *stats)
{
	double busy_s = (double)stats->planner_busy_ns / 1e9;
	double run_ns = (double)stats->executor_run_ns;

	cmd_report_count(report, "pages_taken", "pages taken",
	                 (int64_t)stats->pages_taken);
	cmd_report_count(report, "pages_given", "pages given back",
	                 (int64_t)stats->pages_given);
	cmd_report_count(report, "pages_peak", "pages at the peak", stats->pages_peak);
	cmd_report_time(report, "plan_median_ns", "plan of a step, median",
	                stats->plan_median_ns);
	cmd_report_time(report, "plan_p99_ns", "plan of a step, p99", stats->plan_p99_ns);
	cmd_report_time(report, "planner_busy_ns", "planner busy",
	                stats->planner_busy_ns);
	cmd_report_real(report, "takes_per_planner_second", "pages per planner's s",
	                busy_s > 0 ? (double)stats->pages_taken / busy_s : 0, "");
	cmd_report_share(report, "executor_wait_share", "executor waiting",
	                 run_ns > 0 ? (double)stats->executor_wait_ns / run_ns : 0);
}

static void report_run(struct cmd_report *report, const struct cmd_run *run)
{
	const char *names[CMD_STATUSES];
	int64_t refused[CMD_STATUSES];
	char digest[20];

	for (int32_t s = 0; s < CMD_STATUSES; s++) {
		names[s] = quire_status_name((enum quire_status)s);
		refused[s] = s == QUIRE_OK ? 0 : run->statuses[s];
	}
	cmd_report_kinds(report, "refused", "refused", names, refused, CMD_STATUSES);
	cmd_report_count(report, "compared", "outcomes as recorded", run->compared);
	if (run->check != NULL) {
		struct cmd_check_counts counts;

		cmd_check_counts(run->check, &counts);
		cmd_report_count(report, "checked_rows", "rows read and right",
		                 counts.rows);
		cmd_report_count(report, "checked_tokens", "tokens of them",
		                 counts.tokens);
	}
	snprintf(digest, sizeof(digest), "%016" PRIx64, run->digest);
	cmd_report_text(report, "digest", "digest",
	                run->options->digests ? digest : NULL);
}

int cmd_run_report(struct cmd_run *run, int64_t wall_ns, int code)
{
	const struct cmd_common *common = &run->options->common;
	double wall_s = (double)wall_ns / 1e9;
	const char *record = run->options->record;
	/* Standard output may be the trace's. */
	FILE *file = record != NULL && strcmp(record, "-") == 0 ? stderr : stdout;
	struct quire_runtime_stats stats;
	struct cmd_report *report;

	if (code == CMD_BAD || (!common->json && (code != CMD_DONE || common->quiet)))
		return code;
	report = cmd_report_create();
	if (report == NULL)
		return CMD_BAD;
	quire_runtime_stats(run->runtime, &stats);
	cmd_report_text(report, "status", NULL,
	                run->diverged      ? "diverged"
	                : code == CMD_DONE ? "ok"
	                                   : "failed");
	cmd_report_text(report, "device", "device", run->options->device);
	cmd_report_text(report, "layout", "layout",
	                quire_trace_header(run->reader)->layout);
	cmd_report_text(report, "dtype", "dtype", quire_trace_header(run->reader)->dtype);
	cmd_report_count(report, "commands", "commands", (int64_t)run->head);
	cmd_report_count(report, "steps", "steps", (int64_t)stats.steps_planned);
	cmd_report_count(report, "tokens", "tokens", (int64_t)stats.tokens);
	report_runtime(report, &stats);
	cmd_report_time(report, "wall_ns", "wall time", wall_ns);
	cmd_report_real(report, "steps_per_second", "steps per second",
	                wall_s > 0 ? (double)stats.steps_planned / wall_s : 0, "");
	report_run(report, run);
	if (cmd_report_print(report, file, common->json) != CMD_DONE)
		return CMD_BAD;
	return code;
}
