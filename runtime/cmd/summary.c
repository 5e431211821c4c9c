/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/replay_impl.h"

#include <inttypes.h>
#include <string.h>

static void report_runtime(struct cmd_report *report, const struct cmd_shared *shared,
                           const struct cmd_total *total)
{
	const struct quire_runtime_stats *stats = &total->sum.stats;
	double busy_s = (double)stats->planner_busy_ns / 1e9;
	double run_ns = (double)stats->executor_run_ns;

	cmd_report_count(report, "pages_taken", "pages taken",
	                 (int64_t)stats->pages_taken);
	cmd_report_count(report, "pages_given", "pages given back",
	                 (int64_t)stats->pages_given);
	/* These are of all that ran, and would count what was before --from. */
	if (shared->options->from == 0) {
		cmd_report_count(report, "pages_peak", "pages at the peak",
		                 stats->pages_peak);
		cmd_report_time(report, "plan_median_ns", "plan of a step, median",
		                cmd_total_median_ns(total));
		cmd_report_time(report, "plan_p99_ns", "plan of a step, p99",
		                stats->plan_p99_ns);
	}
	cmd_report_time(report, "planner_busy_ns", "planner busy",
	                stats->planner_busy_ns);
	cmd_report_real(report, "takes_per_planner_second", "pages per planner's s",
	                busy_s > 0 ? (double)stats->pages_taken / busy_s : 0, "");
	cmd_report_share(report, "executor_wait_share", "executor waiting",
	                 run_ns > 0 ? (double)stats->executor_wait_ns / run_ns : 0);
}

/* What of the record was compared.  A replay that stopped may have found its first. */
static const char *compared_text(const struct cmd_shared *shared,
                                 const struct cmd_result *sum)
{
	if (!shared->options->verify)
		return "nothing: --no-verify";
	if (sum->compared == 0 && !atomic_load(&shared->stop))
		return "nothing: no outcome to compare is on record";
	return shared->is_logical ? "statuses and details: the pool is not the trace's"
	                          : "all that is on record";
}

static void report_compared(struct cmd_report *report, const struct cmd_shared *shared,
                            const struct cmd_result *sum)
{
	const char *names[CMD_STATUSES];
	int64_t refused[CMD_STATUSES];

	for (int32_t s = 0; s < CMD_STATUSES; s++) {
		names[s] = quire_status_name((enum quire_status)s);
		refused[s] = s == QUIRE_OK ? 0 : sum->statuses[s];
	}
	cmd_report_kinds(report, "refused", "refused", names, refused, CMD_STATUSES);
	cmd_report_count(report, "left_out", "commands left out", sum->left_out);
	cmd_report_text(report, "compares", "compared is", compared_text(shared, sum));
	cmd_report_count(report, "compared", "outcomes as recorded", sum->compared);
	if (sum->pages_compared > 0)
		cmd_report_count(report, "pages_compared", "their pages, too",
		                 sum->pages_compared);
	if (sum->pages_missed > 0)
		cmd_report_count(report, "pages_not_kept", "their pages not kept",
		                 sum->pages_missed);
}

static void report_numbers(struct cmd_report *report, const struct cmd_shared *shared,
                           const struct cmd_total *total)
{
	const struct cmd_replay_options *options = shared->options;
	const struct cmd_result *sum = &total->sum;
	double wall_s = (double)sum->wall_ns / 1e9;
	char digest[20];

	cmd_report_text(report, "device", "device", options->device);
	cmd_report_text(report, "layout", "layout", shared->header.layout);
	cmd_report_text(report, "dtype", "dtype", shared->header.dtype);
	if (options->jobs > 1)
		cmd_report_count(report, "jobs", "jobs", options->jobs);
	if (options->loops > 1)
		cmd_report_count(report, "loops", "loops of each", options->loops);
	cmd_report_count(report, "commands", "commands", sum->commands);
	cmd_report_count(report, "steps", "steps", (int64_t)sum->stats.steps_planned);
	cmd_report_count(report, "tokens", "tokens", (int64_t)sum->stats.tokens);
	report_runtime(report, shared, total);
	cmd_report_time(report, "wall_ns", "wall time", sum->wall_ns);
	cmd_report_real(report, "steps_per_second", "steps per second",
	                wall_s > 0 ? (double)sum->stats.steps_planned / wall_s : 0, "");
	report_compared(report, shared, sum);
	if (options->check) {
		cmd_report_count(report, "checked_rows", "rows read and right",
		                 sum->checked.rows);
		cmd_report_count(report, "checked_tokens", "tokens of them",
		                 sum->checked.tokens);
	}
	snprintf(digest, sizeof(digest), "%016" PRIx64, sum->digest);
	cmd_report_text(report, "digest", "digest", options->digests ? digest : NULL);
}

static bool is_output(const char *path)
{
	return path != NULL && strcmp(path, "-") == 0;
}

int cmd_summary_print(const struct cmd_shared *shared, struct cmd_job *job, int code)
{
	const struct cmd_replay_options *options = shared->options;
	const char *status = code == CMD_DONE ? "ok" : "failed";
	/* Standard output may be a file's. */
	FILE *file = is_output(options->outcomes) || is_output(options->record) ||
	                             is_output(options->timeline)
	                     ? stderr
	                     : stdout;
	struct cmd_report *report;

	if (code == CMD_BAD ||
	    (!options->common.json && (code != CMD_DONE || options->common.quiet)))
		return code;
	report = cmd_report_create();
	if (report == NULL)
		return CMD_BAD;
	if (job->divergence.what != NULL)
		status = "diverged";
	else if (code == CMD_DONE && job->damage.found)
		status = "damaged";
	cmd_report_text(report, "status", NULL, status);
	report_numbers(report, shared, &job->total);
	if (job->divergence.what != NULL)
		cmd_divergence_report(&job->divergence, report);
	if (cmd_report_print(report, file, options->common.json) != CMD_DONE)
		return CMD_BAD;
	return code;
}
