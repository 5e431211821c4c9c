/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_RUNTIME_CMD_RESULT_IMPL_H
#define QUIRE_RUNTIME_CMD_RESULT_IMPL_H
/*
 * Numbers of one replay, and of several.
 *
 * Counts and times are sums over all, peaks the highest of all; the median time of a plan
 * is the median of the runs' medians, and its p99 the largest of theirs.
 */
#include <quire/runtime/stats.h>
#include <quire/runtime/status.h>

#include <stdbool.h>
#include <stdint.h>

/* Statuses are 0..CMD_STATUSES-1. */
#define CMD_STATUSES (QUIRE_END + 1)

struct cmd_check_counts {
	int64_t rows;   /* read back and right */
	int64_t tokens; /* of them */
};

/* Of one replay, from --from on. */
struct cmd_result {
	struct quire_runtime_stats stats;
	int64_t commands;
	int64_t left_out;       /* of them: not given */
	int64_t compared;       /* outcomes found as recorded */
	int64_t pages_compared; /* of them: page by page */
	int64_t pages_missed;   /* there was no room to keep their pages */
	int64_t statuses[CMD_STATUSES];
	struct cmd_check_counts checked;
	int64_t wall_ns; /* to the self-check */
	uint64_t digest;
};

/* Of several. */
struct cmd_total {
	/* Its digest is the first one's; its wall time is the sum over the loops of a job
	 * and the longest of several jobs. */
	struct cmd_result sum;
	int64_t *medians_ns; /* [num] */
	int64_t num;
};

/* What a report has of the counters, without what was before; the peak and the times of a
 * plan stay as they are. */
void cmd_stats_subtract(struct quire_runtime_stats *stats,
                        const struct quire_runtime_stats *before);

/* One more run of the same job; false: no memory. */
bool cmd_total_add(struct cmd_total *total, const struct cmd_result *result);
/* Another job; false: no memory. */
bool cmd_total_join(struct cmd_total *total, const struct cmd_total *other);
int64_t cmd_total_median_ns(const struct cmd_total *total);
void cmd_total_end(struct cmd_total *total);

#endif
