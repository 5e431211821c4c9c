/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_PLANS_BYTES_IMPL_H
#define QUIRE_PLANS_BYTES_IMPL_H
/*
 * What a file holds: its bytes, or, where its first four are a magic number of zstd, what
 * its frames decompress to (skippable and empty frames are none).  Memory is bounded: a
 * buffer, and for zstd a window of at most 2^QUIRE_WINDOW_LOG_MAX bytes.
 */
#include <quire/runtime/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QUIRE_WINDOW_LOG_MAX 27

/* Least room of a read. */
#define QUIRE_BYTES_ROOM_MIN 4

struct quire_bytes {
	int fd;
	bool begun;                   /* is it known whether they are compressed? */
	struct ZSTD_DCtx_s *unpacker; /* NULL: they are not */
	char *packed;                 /* bytes [start, end) are not decompressed yet */
	size_t start;
	size_t end;
	size_t wanted;     /* bytes that the unpacker gets next, at most */
	bool in_frame;     /* it lacks the end of a frame */
	bool has_more;     /* it may hold more, for there was no room */
	int64_t taken;     /* bytes read from the file */
	int64_t file_size; /* -1: not known */
};

/*
 * quire_bytes_open - start to read
 * @path:    borrowed; "-" is standard input
 * Returns:  QUIRE_OK: end it with quire_bytes_close; QUIRE_IO.
 */
QUIRE_MUST_CHECK enum quire_status quire_bytes_open(struct quire_bytes *bytes,
                                                    const char *path,
                                                    struct quire_refusal *refusal_out);

/*
 * quire_bytes_read - the next bytes
 * @line:    of a text: the one they belong to, for a refusal
 * @into:    filled; @room: at least QUIRE_BYTES_ROOM_MIN
 * @got_out: filled; 0: there are no more
 * Returns:  QUIRE_OK; QUIRE_IO; QUIRE_FORMAT: the zstd data is damaged or ends too early;
 *           whole blocks before that were handed out; QUIRE_NO_MEMORY.
 */
QUIRE_MUST_CHECK enum quire_status quire_bytes_read(struct quire_bytes *bytes,
                                                    int64_t line, char *into, size_t room,
                                                    size_t *got_out,
                                                    struct quire_refusal *refusal_out);

void quire_bytes_close(struct quire_bytes *bytes);

#endif
