/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_RUNTIME_CMD_CHECK_IMPL_H
#define QUIRE_RUNTIME_CMD_CHECK_IMPL_H
/*
 * The inside of --check.
 *
 *   walk.c    the first walk over the trace: how many steps each life has
 *   check.c   before a command is given, after it is settled
 *   batch.c   the work of one step
 *   reread.c  reads outside of steps, where a step's own read was refused or had no room
 */
#include "runtime/cmd/batch_impl.h"
#include "runtime/cmd/pattern_impl.h"
#include "runtime/cmd/replay_impl.h"
#include "runtime/cmd/streams_impl.h"

struct cmd_check {
	struct cmd_run *run;
	struct quire_cache *cache;
	const struct quire_geometry *geometry;
	struct cmd_pattern pattern;
	struct cmd_streams streams;
	struct quire_dstream *dstream; /* for reads outside of steps */
	char *scratch;                 /* [row_bytes] */
	int64_t bytes;                 /* of buffers on their way */
	int64_t tokens_most;           /* that all pages hold */
	struct cmd_check_counts counts;
};

/* Tell that memory ran out; answers CMD_BAD. */
int cmd_check_refuse_memory(void);

/* The first walk over the trace. */
int cmd_check_walk(struct cmd_check *check, const char *path);

/* Compare all layers of tokens [0, count) with the pattern; a difference is told. */
int cmd_check_compare(struct cmd_check *check, uint64_t request, int32_t label,
                      int64_t life, int64_t count, const char *rows, int64_t line);

/* Read and compare a stream that no step on its way touches. */
int cmd_check_read_now(struct cmd_check *check, const struct cmd_stream *stream,
                       int64_t line);

#endif
