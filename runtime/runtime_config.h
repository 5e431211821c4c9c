/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_RUNTIME_RUNTIME_CONFIG_H
#define QUIRE_RUNTIME_RUNTIME_CONFIG_H
/*
 * What a runtime is made of: its cache, its threads, the limits that size its memory.
 */
#include <quire/kernels/cache.h>
#include <quire/plans/plan.h>
#include <quire/runtime/hooks.h>
#include <quire/runtime/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum quire_threads {
	/* The runtime starts a planner and an executor thread. */
	QUIRE_THREADS_LIBRARY,
	/* The caller polls.  The creating thread counts as the one that does, for each of
	 * the two polls until another thread has called it: only then may it wait. */
	QUIRE_THREADS_CALLER,
};

/* spin_ns that follows what pays. */
#define QUIRE_SPIN_ADAPTIVE (-1)

/* Start from quire_runtime_config_init(), then change what differs. */
struct quire_runtime_config {
	size_t config_bytes; /* sizeof(struct quire_runtime_config): the version */
	/* Kept until destroy; its pages are the pool, of this runtime alone. */
	struct quire_cache *cache;
	enum quire_threads threads;
	bool sink;    /* page 0 belongs to nobody; padding rows write there.  true */
	bool digests; /* the executor digests every plan (wait then reports it).  false */
	int32_t depth;        /* plan slots, 1..QUIRE_DEPTH_MAX.  2 */
	int32_t commands_max; /* queued commands, rounded up to a power of 2.  64 */
	int32_t tickets_max;  /* tickets whose outcome stays readable, rounded up to a
	                       * power of 2.  4096 */
	int32_t requests_max; /* open at once.  1024 */
	int32_t request_labels_max; /* labels of one request.  4 */
	int32_t speculative_max; /* speculative steps that may still be abandoned.  64 */
	int32_t rows_max;        /* segments of a step.  256 */
	int32_t tokens_max;      /* tokens of a table, padding included.  8192 */
	int32_t tables_max;      /* tables of a step.  4 */
	int32_t seq_tokens_max;  /* tokens of a stream, released ones included.
	                             * 0: as many as all pages but the sink hold */
	int64_t table_pages_max; /* entries of one kv_indices; a step that exceeds it, or
	                             * block_width, answers LIMIT after every other fault.
	                             * A page counts in every row that shares it, so with
	                             * forks a table may list more than the pool has.
	                             * 0: num_pages, at most 2^20 */
	int64_t block_width;     /* pages of a block table row; 0: no block table.  0 */
	bool kv_indices; /* plans have kv_indices; may be false with a block table, whose
	                  * cost does not grow with the context.  true */
	int64_t user_bytes; /* bytes of a slot that on_plan fills.  0 */
	/* Called on the planner for every step, after its tables are built: fills
	 * plan->user. Anything but QUIRE_OK fails the runtime with QUIRE_CALLBACK.  NULL:
	 * not called. */
	enum quire_status (*on_plan)(void *argument, struct quire_plan *plan);
	void *on_plan_argument; /* kept until destroy */
	/* Called at the start of every poll, on its thread: a place for a test to lose
	 * time in. NULL: not called. */
	void (*on_poll)(void *argument, enum quire_role role);
	void *on_poll_argument; /* kept until destroy */
	/* CPU on which the library's thread runs, from its start; -1: any.  -1 */
	int32_t planner_cpu;
	int32_t executor_cpu;
	/* How long a library thread looks for work before it sleeps, 0..10^9; 0: it
	 * sleeps at once.  QUIRE_SPIN_ADAPTIVE: up to 50 us, about what a sleep and its
	 * wake-up cost, while work does come so soon; after looks in vain it sleeps at
	 * once, up to 63 times in a row.  With one CPU for both threads it is 0.
	 * QUIRE_SPIN_ADAPTIVE */
	int64_t spin_ns;
	/* Names of threads begin so ("quire-planner", "-executor", "-upload",
	 * "-compute"), 1..6 bytes, as Linux keeps 15 in all; kept until create returns.
	 * "quire" */
	const char *thread_prefix;
	/* Storage of the plan slots, both of quire_runtime_slots_bytes, multiples of 64,
	 * kept until destroy: pinned (on cpu: any) and device memory.  The runtime
	 * overwrites them.  NULL: it asks the device for its own.  NULL */
	void *slots_host;
	void *slots_device;
	struct quire_hooks hooks; /* none */
};

/* quire_runtime_config_init - the defaults above, for a cache */
QUIRE_API void quire_runtime_config_init(struct quire_runtime_config *config,
                                         struct quire_cache *cache);

#ifdef __cplusplus
}
#endif
#endif
