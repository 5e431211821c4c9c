/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/result_impl.h"

#include <stdlib.h>

void cmd_stats_subtract(struct quire_runtime_stats *stats,
                        const struct quire_runtime_stats *before)
{
	stats->steps_planned -= before->steps_planned;
	stats->tokens -= before->tokens;
	stats->pages_taken -= before->pages_taken;
	stats->pages_given -= before->pages_given;
	stats->planner_busy_ns -= before->planner_busy_ns;
	stats->executor_wait_ns -= before->executor_wait_ns;
	stats->executor_run_ns -= before->executor_run_ns;
}

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static void add_stats(struct quire_runtime_stats *sum,
                      const struct quire_runtime_stats *stats)
{
	sum->steps_planned += stats->steps_planned;
	sum->tokens += stats->tokens;
	sum->pages_taken += stats->pages_taken;
	sum->pages_given += stats->pages_given;
	sum->planner_busy_ns += stats->planner_busy_ns;
	sum->executor_wait_ns += stats->executor_wait_ns;
	sum->executor_run_ns += stats->executor_run_ns;
	sum->pages_peak = larger(sum->pages_peak, stats->pages_peak);
	sum->plan_p99_ns = larger(sum->plan_p99_ns, stats->plan_p99_ns);
}

/* All but the wall time. */
static void add(struct cmd_total *total, const struct cmd_result *result)
{
	struct cmd_result *sum = &total->sum;

	add_stats(&sum->stats, &result->stats);
	sum->commands += result->commands;
	sum->left_out += result->left_out;
	sum->compared += result->compared;
	sum->pages_compared += result->pages_compared;
	sum->pages_missed += result->pages_missed;
	for (int s = 0; s < CMD_STATUSES; s++)
		sum->statuses[s] += result->statuses[s];
	sum->checked.rows += result->checked.rows;
	sum->checked.tokens += result->checked.tokens;
	if (total->num == 0)
		sum->digest = result->digest;
}

static bool add_medians(struct cmd_total *total, const int64_t *medians_ns, int64_t num)
{
	size_t bytes = (size_t)(total->num + num) * sizeof(*medians_ns);
	int64_t *grown = realloc(total->medians_ns, bytes);

	if (grown == NULL)
		return false;
	for (int64_t i = 0; i < num; i++)
		grown[total->num + i] = medians_ns[i];
	total->medians_ns = grown;
	total->num += num;
	return true;
}

bool cmd_total_add(struct cmd_total *total, const struct cmd_result *result)
{
	add(total, result);
	total->sum.wall_ns += result->wall_ns;
	return add_medians(total, &result->stats.plan_median_ns, 1);
}

bool cmd_total_join(struct cmd_total *total, const struct cmd_total *other)
{
	if (other->num == 0)
		return true;
	add(total, &other->sum);
	total->sum.wall_ns = larger(total->sum.wall_ns, other->sum.wall_ns);
	return add_medians(total, other->medians_ns, other->num);
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

int64_t cmd_total_median_ns(const struct cmd_total *total)
{
	if (total->num == 0)
		return 0;
	qsort(total->medians_ns, (size_t)total->num, sizeof(*total->medians_ns), compare);
	return total->medians_ns[total->num / 2];
}

void cmd_total_end(struct cmd_total *total)
{
	free(total->medians_ns);
	*total = (struct cmd_total){.num = 0};
}
