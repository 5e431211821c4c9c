/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_RUNTIME_CMD_BATCH_IMPL_H
#define QUIRE_RUNTIME_CMD_BATCH_IMPL_H
/*
 * One step under --check: which rows it has, the pattern that it writes, the rows that it
 * reads.  Its buffer is one block: K and V of every table and layer, then the rows read.
 */
#include "runtime/cmd/pattern_impl.h"
#include "runtime/cmd/streams_impl.h"

#include <quire/kernels/layout.h>
#include <quire/plans/plan.h>
#include <quire/plans/step.h>

#include <stdbool.h>
#include <stdint.h>

/* `start` of a row whose stream's length is not known: it is written, and not read. */
#define CMD_START_UNKNOWN (-1)

struct cmd_row {
	uint64_t request;
	uint64_t seed;
	int64_t life;
	int64_t start; /* tokens of its stream before the span */
	int64_t first; /* token of the pattern that it writes first */
	int32_t label;
	int32_t span;
	bool is_last; /* step of its stream's life */
	bool is_due;  /* to be read, now or soon */
	bool is_read;
	char *out; /* what was read: [layers, start + span, num_kv, heads, dims] */
};

struct cmd_fork_ids {
	int32_t source;
	int32_t target;
};

struct cmd_batch {
	bool commits;
	int32_t num_rows;
	int32_t num_pre_forks;
	int32_t num_post_forks;
	struct cmd_fork_ids pre_forks[QUIRE_FORKS_MAX];
	struct cmd_fork_ids post_forks[QUIRE_FORKS_MAX];
	int32_t num_work;
	int64_t bytes; /* of the buffer */
	char *buffer;  /* NULL: the step runs without work */
	struct quire_device *device;
	struct quire_grouping grouping;
	struct quire_work work[QUIRE_WORK_MAX];
	struct cmd_row rows[];
};

enum cmd_plan_result {
	CMD_PLAN_OK,
	CMD_PLAN_REFUSED,  /* the runtime will refuse the step: no work */
	CMD_PLAN_TOO_WIDE, /* more writes than a step may have work */
};

/* Memory for rows that the device can read and write, not zeroed; NULL: none to be had.
 * Released with the same @bytes; NULL is a no-op. */
void *cmd_memory_alloc(struct quire_device *device, int64_t bytes);
void cmd_memory_release(struct quire_device *device, void *memory, int64_t bytes);

/* Room for a step's rows, none noted yet; NULL: no memory.  @device: kept until
 * cmd_batch_free */
struct cmd_batch *cmd_batch_create(struct quire_device *device, int32_t rows_max);

/*
 * cmd_batch_plan - which rows are read, and how many bytes that takes
 * @batch:   its rows are noted, as many as the step has segments
 * @tokens_most: that the whole pool holds
 */
enum cmd_plan_result cmd_batch_plan(struct cmd_batch *batch,
                                    const struct quire_step *step,
                                    struct cmd_streams *streams,
                                    const struct quire_geometry *geometry,
                                    int64_t tokens_most);

/* Make the buffer and the work list; false: no memory. */
bool cmd_batch_fill(struct cmd_batch *batch, const struct quire_geometry *geometry,
                    const struct cmd_pattern *pattern);

/* NULL is a no-op. */
void cmd_batch_free(struct cmd_batch *batch);

#endif
