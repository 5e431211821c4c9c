/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_RUNTIME_STATS_H
#define QUIRE_RUNTIME_STATS_H
/*
 * What a runtime has done so far, in numbers.
 */
#include <quire/runtime/status.h>

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct quire_runtime;

/* Counters since create; times in nanoseconds.  Each is exact once the runtime is
 * idle. */
struct quire_runtime_stats {
	uint64_t commands;      /* decided */
	uint64_t refused;       /* of them; a speculative step when its fate is known */
	uint64_t steps_planned; /* the newest number: an abandoned step's is used again */
	uint64_t steps_issued;
	uint64_t steps_retired;
	uint64_t steps_held; /* now: planned, their fate not known */
	uint64_t steps_promoted;
	uint64_t
		steps_abandoned; /* refused ones and those that rest on them too; they are
	                           * not among `refused` */
	/* Copies of pages by forks and first writes; this and the next two once a step has
	 * taken its place, promoted or ordinary. */
	uint64_t copies;
	uint64_t first_writes; /* of them */
	uint64_t tokens;       /* written */
	uint64_t pages_taken;  /* from the FIFO, by steps that never ran too */
	uint64_t pages_given;  /* by the executor */
	int64_t pages_free;
	int64_t pages_retiring; /* released by the planner, not yet given back */
	int64_t pages_owned;    /* the sink counts */
	int64_t pages_peak;     /* most owned at once, the sink not counted */
	int64_t requests_open;
	int64_t planner_busy_ns; /* deciding, planning and pushing, waits left out */
	int64_t plan_median_ns;  /* of one step, to 1/16 of its value */
	int64_t plan_p99_ns;
	int64_t page_wait_ns;     /* the planner waited for retiring pages */
	int64_t slot_wait_ns;     /* ... for a slot's upload, or room in the plan queue */
	int64_t executor_wait_ns; /* no entry for the executor, no step on the device */
	int64_t executor_run_ns;  /* from the first entry to the newest retired step */
	/* For how long the executor has taken nothing though a plan or a release waits
	 * for it; 0: none waits. */
	int64_t executor_stalled_ns;
};

/*
 * quire_runtime_stats - read the counters
 * Threads:  any.
 */
QUIRE_API void quire_runtime_stats(struct quire_runtime *runtime,
                                   struct quire_runtime_stats *stats_out);

#ifdef __cplusplus
}
#endif
#endif
