/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_RUNTIME_CMD_LINES_IMPL_H
#define QUIRE_RUNTIME_CMD_LINES_IMPL_H
/*
 * A plan trace whole in memory: what a reader lends from one command to the next is kept
 * until the end.  Equal labels are one pointer.
 */
#include <quire/plans/trace.h>

#include <stdint.h>

struct cmd_lines_block;

struct cmd_lines {
	struct quire_trace_header header;
	struct quire_trace_record *records;
	int64_t num;
	int64_t room;
	void *labels;                   /* a tree of texts */
	struct cmd_lines_block *blocks; /* what the records point to */
};

/*
 * cmd_lines_read - read all of a trace
 * @lines:   zeros; ended with cmd_lines_end whatever this answers
 * @name:    a file, "-": standard input
 * Returns:  CMD_DONE; CMD_BAD: told.
 */
int cmd_lines_read(struct cmd_lines *lines, const char *name);
void cmd_lines_end(struct cmd_lines *lines);

#endif
