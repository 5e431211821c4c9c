/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/replay_impl.h"
#include "runtime/wake_impl.h"

#include <time.h>

/* A sleep is cut short so often, to see whether another job has ended all. */
#define SLICE_NS INT64_C(10000000)

/* Sleep, or drive the runtime, until then or until another job stops. */
static void sleep_until(struct cmd_run *run, int64_t until_ns)
{
	int64_t now_ns;

	while ((now_ns = quire_now_ns()) < until_ns &&
	       !atomic_load_explicit(&run->shared->stop, memory_order_relaxed)) {
		int64_t end_ns =
			now_ns + SLICE_NS < until_ns ? now_ns + SLICE_NS : until_ns;
		const struct timespec end = {.tv_sec = end_ns / 1000000000,
		                             .tv_nsec = end_ns % 1000000000};

		if (run->options->caller)
			cmd_rig_drive(run->runtime);
		else
			clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL);
	}
}

int cmd_pace(struct cmd_run *run, const struct quire_trace_record *record)
{
	int64_t gap_ns;

	if (!record->has_times) {
		cmd_tell(run->file, record->line,
		         "times must be there for --timing recorded");
		return CMD_BAD;
	}
	if (run->pace_ns < 0) {
		run->pace_ns = record->times.given_ns;
		run->start_ns = quire_now_ns();
	}
	/* The order is that of effects: one that was given earlier comes at once. */
	gap_ns = record->times.given_ns - run->pace_ns;
	sleep_until(run, gap_ns < INT64_MAX - run->start_ns ? run->start_ns + gap_ns
	                                                    : INT64_MAX);
	return CMD_DONE;
}
