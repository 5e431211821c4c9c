/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_PLANS_LINES_IMPL_H
#define QUIRE_PLANS_LINES_IMPL_H
/*
 * A file read line by line in bounded memory: one buffer that grows up to the longest
 * line allowed (QUIRE_TRACE_LINE_MAX) and no further.
 */
#include <quire/runtime/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct quire_lines {
	int fd;
	bool at_end; /* the file has no more bytes than the buffer holds */
	char *buffer;
	size_t size;
	size_t start; /* bytes [start, end) are read and not yet handed out */
	size_t end;
	size_t scanned;    /* bytes [start, scanned) hold no newline */
	int64_t line;      /* number of the line handed out last, 1-based */
	int64_t consumed;  /* bytes handed out, newlines counted */
	int64_t file_size; /* -1: not known */
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
 * Returns:  QUIRE_OK; QUIRE_END; QUIRE_IO; QUIRE_FORMAT: the line is too long;
 *           QUIRE_NO_MEMORY.
 */
QUIRE_MUST_CHECK enum quire_status quire_lines_next(struct quire_lines *lines,
                                                    struct quire_line *line_out,
                                                    struct quire_refusal *refusal_out);

void quire_lines_close(struct quire_lines *lines);

#endif
