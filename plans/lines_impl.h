/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_PLANS_LINES_IMPL_H
#define QUIRE_PLANS_LINES_IMPL_H
/*
 * A file, compressed or not, read line by line in bounded memory: one buffer that grows
 * up to the longest line allowed (QUIRE_TRACE_LINE_MAX) and no further.
 */
#include "plans/bytes_impl.h"

#include <quire/runtime/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct quire_lines {
	struct quire_bytes bytes;
	bool at_end; /* the file has no more bytes than the buffer holds */
	char *buffer;
	size_t size;
	size_t start; /* bytes [start, end) are read and not yet handed out */
	size_t end;
	size_t scanned;   /* bytes [start, scanned) hold no newline */
	int64_t line;     /* number of the line handed out last, 1-based */
	int64_t consumed; /* bytes handed out, newlines counted */
};

/* One line without its newline, lent until the next call. */
struct quire_line {
	char *text; /* may be written to, and so may the byte behind it */
	size_t length;
	bool whole; /* it ended with a newline */
};

/*
 * quire_lines_open - start to read
 * @path:    borrowed; "-" is standard input
 * Returns:  QUIRE_OK: end it with quire_lines_close; QUIRE_IO; QUIRE_NO_MEMORY.
 */
QUIRE_MUST_CHECK enum quire_status quire_lines_open(struct quire_lines *lines,
                                                    const char *path,
                                                    struct quire_refusal *refusal_out);

/*
 * quire_lines_next - the next line
 * Returns:  QUIRE_OK; QUIRE_END; QUIRE_IO; QUIRE_FORMAT {what, line}: the line is too
 *           long, or lies where compressed data is damaged or cut off; QUIRE_NO_MEMORY.
 */
QUIRE_MUST_CHECK enum quire_status quire_lines_next(struct quire_lines *lines,
                                                    struct quire_line *line_out,
                                                    struct quire_refusal *refusal_out);

/*
 * quire_lines_position - how far the file is read, and its size (-1: not known), in bytes
 * of the file: of a compressed one, those that were decompressed
 */
void quire_lines_position(const struct quire_lines *lines, int64_t *read_out,
                          int64_t *size_out);

void quire_lines_close(struct quire_lines *lines);

#endif
