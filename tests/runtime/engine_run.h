/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_TESTS_ENGINE_RUN_H
#define QUIRE_TESTS_ENGINE_RUN_H
/*
 * A toy engine over a runtime: it submits batches ahead, its attention reads the cache by
 * the device half of each plan, and every output is compared with the dense side.
 *
 * One engine is one run of a scenario in one way (threads, device, depth).  A record is
 * one step on its way.  The dense side moves when a step is submitted, as if it had run;
 * a refused or an abandoned one takes it back.
 */
#include "devices.h"
#include "engine_dense.h"

#define ENGINE_ROWS         8  /* of a step */
#define ENGINE_SPAN         48 /* tokens of a row */
#define ENGINE_TABLES       4
#define ENGINE_TABLE_TOKENS 128 /* with padding */
#define ENGINE_STEPS        512
#define ENGINE_COMMANDS     512

/* How a scenario is run. */
struct engine_way {
	const char *device;
	enum quire_threads threads;
	int32_t depth;
	int32_t page_size;
	enum quire_layout layout;
	int32_t num_tokens; /* that the pool holds */
};

struct engine_row {
	int32_t request;
	const char *label;
	int32_t span;
};

struct engine_batch {
	struct engine_row rows[ENGINE_ROWS];
	int32_t num_rows;
	struct quire_fork pre_forks[2];
	int32_t num_pre_forks;
	struct quire_fork post_forks[2];
	int32_t num_post_forks;
	struct quire_combined combined;
	int32_t bucket_rows;
	int32_t bucket_tokens;
	uint32_t flags;
	bool events; /* inputs come from another device stream, outputs go to a third */
};

/* What is known of a step's fate. */
enum engine_fate {
	ENGINE_RUNS,
	ENGINE_HELD,
	ENGINE_ABANDONED,
	ENGINE_REFUSED,
};

struct engine_table {
	float k[ENGINE_LAYERS][ENGINE_TABLE_TOKENS][ENGINE_KV_HEADS][ENGINE_DIM];
	float v[ENGINE_LAYERS][ENGINE_TABLE_TOKENS][ENGINE_KV_HEADS][ENGINE_DIM];
};

/*
 * What a step's work has on the host, pinned: the work is host functions, which see
 * device memory through copies on the compute stream, as it stands before the step's
 * writes and behind them.
 */
struct engine_staging {
	struct engine_staging *next;
	struct engine_table tables[ENGINE_TABLES];
	char *halves[2]; /* of the plan: its device half */
	char *caches[2];
};

struct engine_record {
	struct engine *engine;
	int32_t number;
	uint64_t ticket;
	enum engine_fate fate;
	enum quire_status refusal; /* REFUSED */
	struct engine_dense saved; /* before the step */
	struct quire_segment segments[ENGINE_ROWS];
	int32_t num_segments;
	/* The step's inputs, by row: as the client knows them, and where the work finds
	 * them. */
	uint32_t given[ENGINE_ROWS][ENGINE_SPAN];
	uint32_t values[ENGINE_ROWS][ENGINE_SPAN];
	struct quire_event *inputs; /* with batch.events */
	struct quire_event *outputs;

	/* Written by the work. */
	struct quire_plan plan;
	struct engine_staging *staging; /* until it is finished */
	const char *wrong;              /* the first thing that was */
	int32_t num_runs;
	int32_t num_done;
	enum quire_status done_status;
	int32_t seen[ENGINE_ROWS]; /* rows of all tables that were this segment's */
	float out[ENGINE_ROWS][ENGINE_SPAN][ENGINE_OUT];
	float read[ENGINE_ROWS][ENGINE_SPAN][ENGINE_OUT]; /* by the third stream */

	double expected[ENGINE_ROWS][ENGINE_SPAN][ENGINE_OUT];
	int32_t context[ENGINE_ROWS]; /* tokens that the row's last token attends to */
};

struct engine {
	struct engine_way way;
	struct quire_device *device;
	struct quire_cache *cache;
	struct quire_runtime *runtime;
	struct quire_dstream *producer;
	struct quire_dstream *reader;
	struct engine_table *rows; /* device memory: [ENGINE_TABLES], K and V to write */
	struct engine_staging *stagings; /* not in use */
	int64_t half_bytes;
	int64_t cache_bytes;
	struct engine_dense dense;
	uint32_t next_value;
	struct engine_record *records[ENGINE_STEPS];
	int32_t num_steps;
	int32_t num_finished;
	uint64_t commands[ENGINE_COMMANDS];
	int32_t num_commands;
	uint64_t digests[ENGINE_STEPS]; /* of plans; of refused steps the status */
	char text[512];                 /* what went wrong; empty: nothing */
};

/* What on_plan fills for one row. */
struct engine_user {
	uint64_t ticket;
	uint64_t tag;
	float temperature;
	int32_t table;
};

/* ------------------------------------------------------------------ a run */

void engine_begin(struct engine *engine, const struct engine_way *way);

/* engine_end - finish all steps, compare what is left in the cache, close everything */
void engine_end(struct engine *engine);

/* engine_step - submit a batch; then finish all but the newest 2 * depth steps */
struct engine_record *engine_step(struct engine *engine,
                                  const struct engine_batch *batch);

/* engine_promote, engine_abandon - the fate of a speculative step; the latter is that of
 * all that rest on it too, and takes the dense side back to before it */
void engine_promote(struct engine *engine, struct engine_record *record);
void engine_abandon(struct engine *engine, struct engine_record *record);

/* engine_planned - wait until a step is decided, and tell how */
enum quire_status engine_planned(struct engine *engine, struct engine_record *record);

/* engine_refused - a step is refused so, and the dense side as before it; of several the
 * newest comes first */
void engine_refused(struct engine *engine, struct engine_record *record,
                    enum quire_status status);

/* engine_finish - wait for all steps whose fate is known, and compare their outputs */
void engine_finish(struct engine *engine);

/* engine_command - any other command, which must succeed; @tokens: of RESET, whether it
 * keeps its pages */
void engine_command(struct engine *engine, enum quire_command_kind kind, int32_t request,
                    const char *label, int32_t tokens);

/* engine_wait - as quire_runtime_wait, polling where the caller's threads do */
void engine_wait(struct engine *engine, uint64_t ticket, enum quire_stage stage,
                 struct quire_outcome *outcome_out);

__attribute__((format(printf, 3, 4))) void engine_fail(struct engine *engine,
                                                       const struct engine_record *record,
                                                       const char *format, ...);

/* ------------------------------------------------------------------ callbacks */

enum quire_status engine_on_plan(void *argument, struct quire_plan *plan);
enum quire_status engine_work(void *argument, const struct quire_plan *plan,
                              struct quire_dstream *compute);

/* A layer of a copy of the cache as attention reads it; strides in numbers. */
struct engine_view {
	float *base;
	int64_t page;
	int64_t kv;
	int64_t token;
	int64_t head;
};

void engine_view_layer(const struct engine *engine, char *cache, int32_t layer,
                       struct engine_view *view_out);

/* engine_place - the ENGINE_DIM numbers of K (0) or V (1) of one slot and head */
static inline float *engine_place(const struct engine_view *view, int32_t kv,
                                  int32_t page, int32_t offset, int32_t head)
{
	return view->base + page * view->page + kv * view->kv + offset * view->token +
	       head * view->head;
}

#endif
