/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "plans/bytes_impl.h"

#include "plans/fault_impl.h"
#include "runtime/refuse_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>
#include <zstd_errors.h>

/* Room for the largest block of a frame. */
#define PACKED_BYTES ((size_t)256 << 10)

/* Bytes of a magic number, little endian, and of what stands before a block. */
#define MAGIC_BYTES        4
#define BLOCK_HEADER_BYTES 3

_Static_assert(MAGIC_BYTES <= QUIRE_BYTES_ROOM_MIN, "the first read finds the number");

enum quire_status quire_bytes_open(struct quire_bytes *bytes, const char *path,
                                   struct quire_refusal *refusal_out)
{
	struct stat about;

	*bytes = (struct quire_bytes){.fd = STDIN_FILENO, .file_size = -1};
	if (strcmp(path, "-") != 0)
		bytes->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (bytes->fd < 0)
		return quire_fault(refusal_out, QUIRE_IO, 0, "cannot open \"%s\": %m",
		                   path);
	if (fstat(bytes->fd, &about) == 0 && S_ISREG(about.st_mode))
		bytes->file_size = about.st_size;
	return QUIRE_OK;
}

/* Some bytes of the file; none at its end. */
static enum quire_status read_file(struct quire_bytes *bytes, int64_t line, char *into,
                                   size_t room, size_t *got_out,
                                   struct quire_refusal *refusal_out)
{
	ssize_t got;

	do {
		got = read(bytes->fd, into, room);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return quire_fault(refusal_out, QUIRE_IO, line, "cannot read: %m");
	bytes->taken += got;
	*got_out = (size_t)got;
	return QUIRE_OK;
}

static bool is_zstd(const char *text, size_t size)
{
	const unsigned char *at = (const unsigned char *)text;
	uint32_t magic;

	if (size < MAGIC_BYTES)
		return false;
	magic = at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
	        (uint32_t)at[3] << 24;
	return magic == ZSTD_MAGICNUMBER ||
	       (magic & ZSTD_MAGIC_SKIPPABLE_MASK) == ZSTD_MAGIC_SKIPPABLE_START;
}

/*
 * What the unpacker gets at a time: a block, or less.  Given more, it would not hand out
 * the blocks before one that is damaged.  It asks for a block and the header of the next.
 */
static size_t portion(size_t asked)
{
	return asked > BLOCK_HEADER_BYTES ? asked - BLOCK_HEADER_BYTES : asked;
}

static enum quire_status start_unpacker(struct quire_bytes *bytes, const char *first,
                                        size_t size, struct quire_refusal *refusal_out)
{
	bytes->packed = malloc(PACKED_BYTES);
	bytes->unpacker = ZSTD_createDCtx();
	if (bytes->packed == NULL || bytes->unpacker == NULL ||
	    ZSTD_isError(ZSTD_DCtx_setParameter(bytes->unpacker, ZSTD_d_windowLogMax,
	                                        QUIRE_WINDOW_LOG_MAX)))
		return quire_fault(refusal_out, QUIRE_NO_MEMORY, 0,
		                   "no memory to decompress");
	bytes->wanted = portion(ZSTD_initDStream(bytes->unpacker));
	memcpy(bytes->packed, first, size);
	bytes->end = size;
	return QUIRE_OK;
}

/* The first bytes, as they stand in the file: what are they? */
static enum quire_status begin(struct quire_bytes *bytes, int64_t line, char *into,
                               size_t room, size_t *got_out,
                               struct quire_refusal *refusal_out)
{
	size_t got = 0, more;

	room = room < PACKED_BYTES ? room : PACKED_BYTES;
	do {
		QUIRE_TRY(read_file(bytes, line, into + got, room - got, &more,
		                    refusal_out));
		got += more;
	} while (more > 0 && got < MAGIC_BYTES);
	bytes->begun = true;
	*got_out = got;
	if (is_zstd(into, got))
		return start_unpacker(bytes, into, got, refusal_out);
	return QUIRE_OK;
}

static enum quire_status refuse_damage(size_t error, int64_t line,
                                       struct quire_refusal *refusal_out)
{
	switch (ZSTD_getErrorCode(error)) {
	case ZSTD_error_memory_allocation:
		return quire_fault(refusal_out, QUIRE_NO_MEMORY, line,
		                   "no memory to decompress");
	case ZSTD_error_frameParameter_windowTooLarge:
		return quire_fault(refusal_out, QUIRE_FORMAT, line,
		                   "the window of a zstd frame must be at most 2^%d "
		                   "bytes",
		                   QUIRE_WINDOW_LOG_MAX);
	default:
		return quire_fault(refusal_out, QUIRE_FORMAT, line,
		                   "damaged: the file's zstd data cannot be "
		                   "decompressed: %s",
		                   ZSTD_getErrorName(error));
	}
}

/* More of the file; *end_out: there is none. */
static enum quire_status refill(struct quire_bytes *bytes, int64_t line, bool *end_out,
                                struct quire_refusal *refusal_out)
{
	bytes->start = bytes->end = 0;
	QUIRE_TRY(read_file(bytes, line, bytes->packed, PACKED_BYTES, &bytes->end,
	                    refusal_out));
	*end_out = bytes->end == 0;
	if (*end_out && bytes->in_frame)
		return quire_fault(refusal_out, QUIRE_FORMAT, line,
		                   "truncated: the file ends in the middle of a zstd "
		                   "frame");
	return QUIRE_OK;
}

static enum quire_status unpack(struct quire_bytes *bytes, int64_t line, char *into,
                                size_t room, size_t *got_out,
                                struct quire_refusal *refusal_out)
{
	ZSTD_outBuffer to = {into, room, 0};
	bool end = false;

	while (to.pos == 0) {
		ZSTD_inBuffer from;
		size_t asked;

		if (bytes->start == bytes->end && !bytes->has_more)
			QUIRE_TRY(refill(bytes, line, &end, refusal_out));
		if (end)
			break;
		from = (ZSTD_inBuffer){bytes->packed + bytes->start,
		                       bytes->end - bytes->start, 0};
		if (bytes->has_more)
			from.size = 0;
		else if (from.size > bytes->wanted)
			from.size = bytes->wanted;
		asked = ZSTD_decompressStream(bytes->unpacker, &to, &from);
		if (ZSTD_isError(asked))
			return refuse_damage(asked, line, refusal_out);
		bytes->start += from.pos;
		bytes->in_frame = asked > 0;
		bytes->has_more = asked > 0 && to.pos == to.size;
		bytes->wanted =
			portion(asked > 0 ? asked : ZSTD_initDStream(bytes->unpacker));
	}
	*got_out = to.pos;
	return QUIRE_OK;
}

enum quire_status quire_bytes_read(struct quire_bytes *bytes, int64_t line, char *into,
                                   size_t room, size_t *got_out,
                                   struct quire_refusal *refusal_out)
{
	if (!bytes->begun) {
		QUIRE_TRY(begin(bytes, line, into, room, got_out, refusal_out));
		if (bytes->unpacker == NULL)
			return QUIRE_OK;
	}
	if (bytes->unpacker == NULL)
		return read_file(bytes, line, into, room, got_out, refusal_out);
	return unpack(bytes, line, into, room, got_out, refusal_out);
}

void quire_bytes_close(struct quire_bytes *bytes)
{
	if (bytes->fd != STDIN_FILENO)
		close(bytes->fd);
	ZSTD_freeDCtx(bytes->unpacker);
	free(bytes->packed);
}
