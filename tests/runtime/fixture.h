/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_TESTS_RUNTIME_FIXTURE_H
#define QUIRE_TESTS_RUNTIME_FIXTURE_H
/* A device, a small f32 cache and a runtime over it, driven by the test itself. */
#include "devices.h"

#include <string.h>

struct fixture {
	struct quire_device *device;
	struct quire_cache *cache;
	struct quire_runtime *runtime;
	struct quire_runtime_config config;
};

#define FIXTURE_HEADS 1
#define FIXTURE_DIM   2

/* Step one: a cache and a config to change; caller-driven, without a sink. */
static inline void fixture_begin(struct fixture *f, const char *device, int64_t num_pages,
                                 int64_t page_size)
{
	const struct quire_shape shape = {
		.layout = QUIRE_NHD,
		.dtype = QUIRE_F32,
		.num_layers = 2,
		.num_pages = num_pages,
		.page_size = page_size,
		.num_kv_heads = FIXTURE_HEADS,
		.head_dim = FIXTURE_DIM,
	};

	memset(f, 0, sizeof(*f));
	must(quire_device_create(device, &f->device, NULL) == QUIRE_OK);
	must(quire_cache_create(f->device, &shape, &f->cache, NULL) == QUIRE_OK);
	quire_runtime_config_init(&f->config, f->cache);
	f->config.threads = QUIRE_THREADS_CALLER;
	f->config.sink = false;
}

/* Step two: the runtime. */
static inline void fixture_create(struct fixture *f)
{
	must(quire_runtime_create(&f->config, &f->runtime, NULL) == QUIRE_OK);
}

static inline void fixture_start(struct fixture *f, int64_t num_pages, int64_t page_size)
{
	fixture_begin(f, "cpu:inline", num_pages, page_size);
	fixture_create(f);
}

static inline void fixture_end(struct fixture *f)
{
	struct quire_refusal refusal;

	if (f->config.threads == QUIRE_THREADS_CALLER)
		must(quire_runtime_check(f->runtime, &refusal) == QUIRE_OK);
	quire_runtime_destroy(f->runtime);
	quire_cache_destroy(f->cache);
	quire_device_destroy(f->device);
}

/* Poll both machines until neither moves. */
static inline void settle(struct fixture *f)
{
	bool moved;

	do {
		moved = quire_planner_poll(f->runtime);
		moved |= quire_executor_poll(f->runtime);
	} while (moved);
}

/* The outcome of a ticket, once everything has settled. */
static inline struct quire_outcome outcome_of(struct fixture *f, uint64_t ticket)
{
	struct quire_outcome outcome;

	settle(f);
	must(quire_runtime_wait(f->runtime, ticket, QUIRE_STAGE_RETIRED, 0, &outcome) ==
	     QUIRE_OK);
	return outcome;
}

static inline enum quire_status open_now(struct fixture *f, uint64_t request)
{
	uint64_t ticket;

	must(quire_runtime_open(f->runtime, request, &ticket) == QUIRE_OK);
	return outcome_of(f, ticket).refusal.status;
}

static inline enum quire_status close_now(struct fixture *f, uint64_t request)
{
	uint64_t ticket;

	must(quire_runtime_close(f->runtime, request, &ticket) == QUIRE_OK);
	return outcome_of(f, ticket).refusal.status;
}

static inline enum quire_status reset_now(struct fixture *f, uint64_t request,
                                          const char *label, bool keep)
{
	uint64_t ticket;

	must(quire_runtime_reset(f->runtime, request, label, keep, &ticket) == QUIRE_OK);
	return outcome_of(f, ticket).refusal.status;
}

static inline uint64_t submit(struct fixture *f, const struct quire_step *step)
{
	uint64_t ticket;

	must(quire_runtime_submit(f->runtime, step, &ticket) == QUIRE_OK);
	return ticket;
}

static inline struct quire_outcome submit_now(struct fixture *f,
                                              const struct quire_step *step)
{
	return outcome_of(f, submit(f, step));
}

/* One segment, one step. */
static inline struct quire_outcome extend_now(struct fixture *f, uint64_t request,
                                              const char *label, int32_t span, int32_t at)
{
	const struct quire_segment segment = {
		.request = request, .label = label, .span = span, .at = at};
	const struct quire_step step = {.segments = &segment, .num_segments = 1};

	return submit_now(f, &step);
}

static inline struct quire_snapshot snapshot_of(struct fixture *f, uint64_t request,
                                                const char *label)
{
	struct quire_snapshot snapshot;

	must(quire_runtime_snapshot(f->runtime, request, label, &snapshot, NULL, 0) ==
	     QUIRE_OK);
	return snapshot;
}

static inline struct quire_runtime_stats stats_of(struct fixture *f)
{
	struct quire_runtime_stats stats;

	quire_runtime_stats(f->runtime, &stats);
	return stats;
}

#endif
