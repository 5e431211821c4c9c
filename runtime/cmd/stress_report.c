/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/stress_impl.h"

#include <inttypes.h>

static const char *const kind_names[] = {
	[QUIRE_POOL_LOCK_FREE] = "fifo",
	[QUIRE_POOL_LOCKED] = "mutex",
};

static const char *giver_name(const struct cmd_stress_options *options)
{
	return options->one_giver ? "single" : "any";
}

void cmd_stress_tell(const struct cmd_stress *stress)
{
	const struct cmd_stress_options *options = &stress->options;

	cmd_tell(NULL, 0,
	         "%s; to repeat: quire stress --threads %" PRId64 " --pages %" PRId64
	         " --batch-max %" PRId64 " --hold %" PRId64
	         " --allocator %s --giver %s --%s %" PRId64 " --seed %" PRId64,
	         stress->violation, options->threads, options->pages, options->batch_max,
	         options->hold, kind_names[options->kind], giver_name(options),
	         options->ops != 0 ? "ops" : "seconds",
	         options->ops != 0 ? options->ops : options->seconds, options->seed);
}

/* The time that so many of 100,000 takes do not exceed, to 1/16 of it. */
static int64_t quantile(const uint64_t *takes, int64_t per_100000)
{
	uint64_t total = 0, seen = 0;

	for (int32_t b = 0; b < QUIRE_HISTOGRAM_BUCKETS; b++)
		total += takes[b];
	for (int32_t b = 0; b < QUIRE_HISTOGRAM_BUCKETS; b++) {
		seen += takes[b];
		if (seen > 0 && seen * 100000 >= total * (uint64_t)per_100000)
			return quire_histogram_value(b);
	}
	return 0;
}

static void report_times(struct cmd_report *report, const struct cmd_stress *stress)
{
	uint64_t takes[QUIRE_HISTOGRAM_BUCKETS] = {0};
	int64_t max_ns = 0;

	for (int64_t t = 0; t < stress->options.threads; t++) {
		const struct cmd_worker *worker = &stress->workers[t];

		for (int32_t b = 0; b < QUIRE_HISTOGRAM_BUCKETS; b++)
			takes[b] += worker->take_ns[b];
		max_ns = worker->take_max_ns > max_ns ? worker->take_max_ns : max_ns;
	}
	cmd_report_time(report, "take_median_ns", "take, median", quantile(takes, 50000));
	cmd_report_time(report, "take_p99_ns", "take, p99", quantile(takes, 99000));
	cmd_report_time(report, "take_p999_ns", "take, p99.9", quantile(takes, 99900));
	cmd_report_time(report, "take_p9999_ns", "take, p99.99", quantile(takes, 99990));
	cmd_report_time(report, "take_max_ns", "take, longest", max_ns);
}

static void report_counts(struct cmd_report *report, const struct cmd_stress *stress)
{
	int64_t takes = 0, frees = 0, no_pages = 0, timeouts = 0, bad = 0, retries = 0;
	int64_t given = 0;
	double wall_s = (double)stress->wall_ns / 1e9;

	for (int64_t t = 0; t < stress->options.threads; t++) {
		const struct cmd_worker *worker = &stress->workers[t];

		takes += worker->takes;
		frees += worker->frees;
		no_pages += worker->no_pages;
		timeouts += worker->timeouts;
		bad += worker->bad_batches;
		retries += worker->retries;
		given += worker->pages_given;
	}
	cmd_report_count(report, "operations", "operations",
	                 takes + frees + no_pages + timeouts + bad + retries);
	cmd_report_count(report, "takes", "takes", takes);
	cmd_report_count(report, "frees", "frees", frees);
	cmd_report_count(report, "no_pages", "takes, too few free", no_pages);
	cmd_report_count(report, "timeouts", "takes, waited in vain", timeouts);
	cmd_report_count(report, "bad_batches", "bad batches refused", bad);
	cmd_report_count(report, "retries", "frees tried again", retries);
	cmd_report_count(report, "pages_taken", "pages taken",
	                 cmd_stress_pages_taken(stress));
	cmd_report_count(report, "pages_given", "pages given back", given);
	cmd_report_time(report, "wall_ns", "wall time", stress->wall_ns);
	cmd_report_real(report, "pages_per_second", "pages taken per second",
	                wall_s > 0 ? (double)stress->wall_pages / wall_s : 0, "");
}

int cmd_stress_report(const struct cmd_stress *stress, int code)
{
	const struct cmd_stress_options *options = &stress->options;
	const struct cmd_common *common = &options->common;
	struct cmd_report *report;

	if (code == CMD_BAD || (!common->json && (code != CMD_DONE || common->quiet)))
		return code;
	report = cmd_report_create();
	if (report == NULL)
		return CMD_BAD;
	cmd_report_text(report, "status", NULL, code == CMD_DONE ? "ok" : "failed");
	cmd_report_text(report, "allocator", "allocator", kind_names[options->kind]);
	cmd_report_text(report, "giver", "giver", giver_name(options));
	cmd_report_count(report, "threads", "threads", options->threads);
	cmd_report_count(report, "pages", "pages", options->pages);
	cmd_report_count(report, "seed", "seed", options->seed);
	if (!stress->is_left_behind) {
		report_counts(report, stress);
		report_times(report, stress);
	}
	cmd_report_text(report, "violation", NULL,
	                code == CMD_DONE ? NULL : stress->violation);
	cmd_report_text(report, NULL, "ownership table", "no violation");
	if (cmd_report_print(report, stdout, common->json) != CMD_DONE)
		return CMD_BAD;
	return code;
}
