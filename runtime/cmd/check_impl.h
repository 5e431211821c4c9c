/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_RUNTIME_CMD_CHECK_IMPL_H
#define QUIRE_RUNTIME_CMD_CHECK_IMPL_H
/*
 * The inside of --check.
 *
 *   walk.c    the first walk over the trace: how many steps each life has
 *   check.c   before a command is given
 *   verify.c  after it is settled
 *   content.c what streams hold
 *   batch.c   the work of one step
 *   reread.c  reads outside of steps, where a step's own read was refused or had no room
 */
#include "runtime/cmd/batch_impl.h"
#include "runtime/cmd/content_impl.h"
#include "runtime/cmd/pattern_impl.h"
#include "runtime/cmd/replay_impl.h"
#include "runtime/cmd/streams_impl.h"

struct cmd_check {
	struct cmd_run *run;
	struct quire_cache *cache;
	const struct quire_geometry *geometry;
	struct cmd_pattern pattern;
	struct cmd_streams streams;
	struct cmd_contents contents;
	struct quire_dstream *dstream; /* for reads outside of steps */
	char *scratch;                 /* [row_bytes] */
	int64_t bytes;                 /* of buffers on their way */
	int64_t tokens_most;           /* that all pages hold */
	bool is_lost; /* a step came to something else than on record: no more is read */
	struct cmd_check_counts counts;
};

/* Tell that memory ran out; answers CMD_BAD. */
int cmd_check_refuse_memory(void);

/* The first walk over the trace. */
int cmd_check_walk(struct cmd_check *check, const char *path);

/* Compare all layers of a stream's tokens, and of @more behind them (NULL: none), with
 * what was written; a difference is told. */
int cmd_check_compare(struct cmd_check *check, const struct cmd_content *content,
                      const struct cmd_piece *more, const char *rows, int64_t line);

/* Read and compare a stream that no step on its way touches. */
int cmd_check_read_now(struct cmd_check *check, const struct cmd_stream *stream,
                       int64_t line);

#endif
