/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_RUNTIME_RECORD_H
#define QUIRE_RUNTIME_RECORD_H
/*
 * Recording: what a runtime was asked, in the order in which it took effect, what came of
 * it, and when; as a plan trace (docs/trace-format.md), as a timeline, or both.
 *
 * Overview
 *   The planner notes every command in a buffer, the executor the digest of every plan; a
 *   thread of the recording makes lines of it, and writes them.  Neither waits for it,
 *   unless `waits` is set.  A line is written once its outcome is final: that of a
 *   speculative step, and all behind it, when its fate is known.
 *
 * What is in it
 *   Every command that drew a ticket, with its outcome; the digest and the pages of every
 *   step; promotes and abandons where they took effect, an abandon that ended several
 *   steps as one for each, newest first.  A promote above an open fate stands before the
 *   first step that rests on it all the same.  A step that was planned and then failed on
 *   the device is OK: so it was to all behind it.  What a call itself refused is not in
 *   it (a full queue, a promote of nothing), nor are tags, work, callbacks and external
 *   events.
 *
 * When it goes wrong
 *   A write that fails, a full buffer, or a command that a trace has no words for though
 *   it was not refused, ends the recording, never the runtime: a report tells so
 *   (hooks.h), on the recording's thread, and so does, at once,
 *   quire_runtime_record_status.  A write that never returns holds up that thread alone,
 *   and who waits for it: quire_runtime_record_end and quire_runtime_destroy.  What is in
 *   the file by then stays: whole lines, and perhaps the beginning of one more.  A
 *   process that is killed leaves such a file, too.
 */
#include <quire/runtime/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct quire_runtime;

/* Start from quire_record_config_init(), then change what differs. */
struct quire_record_config {
	size_t config_bytes; /* sizeof(struct quire_record_config): the version */
	/* The plan trace; what is there is replaced at once, by a file with a header.
	 * One that ends in ".zst" is compressed; "-" is standard output.  Borrowed.
	 * NULL: see `write` */
	const char *path;
	/* The plan trace, in place of a file: all bytes, in order, on the recording's
	 * thread.  Anything but QUIRE_OK ends the recording.  It may not call the
	 * runtime.  NULL: no plan trace, or a file */
	enum quire_status (*write)(void *argument, const void *bytes, size_t n);
	void *write_argument; /* kept until the recording has ended */
	/* The timeline, for Perfetto or chrome://tracing: a JSON array, that lacks its
	 * end when the process died or the write failed; these two read it all the same.
	 * Replaced as `path`; "-" is standard output.  Borrowed.  NULL: none */
	const char *timeline;
	/* Where the trace comes from, for people; at most 255 bytes.  Borrowed.  "" */
	const char *source;
	bool digests; /* of every plan, by the executor.  true */
	/* That every step took; left out where the line would have more than 2^24 bytes.
	 * true */
	bool pages;
	/* A full buffer, or 4,096 planned steps that are not written yet: true: the planner
	 * waits; false: the recording ends with QUIRE_LIMIT.  false */
	bool waits;
	/* Bytes of the buffer, rounded up to a power of 2 and to what four of the largest
	 * commands take.  16 MiB */
	int64_t buffer_bytes;
	/* A finished line is written, and a frame of a compressed file ended, at the
	 * latest so many nanoseconds later, 10^6..10^10.  10^8 */
	int64_t flush_ns;
};

struct quire_record_status {
	/* QUIRE_OK: it goes on, or was ended by the program.  QUIRE_IO: a write failed;
	 * QUIRE_LIMIT: the buffer was full, or 4,096 planned steps were not written yet
	 * {ticket: whose fate is open, if that is why};
	 * QUIRE_FORMAT {ticket}: a command took effect that a trace has no words for: a
	 * label that is not UTF-8. */
	struct quire_refusal refusal; /* its `what` is lent until destroy */
	bool active;                  /* commands are being noted */
	int64_t commands; /* lines made of them; promotes and abandons count */
	/* Of them, refused commands that a trace has no words for: the line has their
	 * place and their status, and says that what refused them is not in it. */
	int64_t left_out;
	int64_t buffered_bytes; /* of the buffer, in use */
	int64_t wait_ns;        /* the planner waited for room */
};

/* quire_record_config_init - the defaults above */
QUIRE_API void quire_record_config_init(struct quire_record_config *config);

/*
 * quire_runtime_record_to - record from the first command on
 * @config:  borrowed
 * Returns:  QUIRE_OK: end it with quire_runtime_record_end, or with the runtime;
 *           QUIRE_INVALID {what}: a field is wrong; a command was given before; it was
 *           recorded before: no file was touched; QUIRE_IO: a file cannot be made;
 *           QUIRE_NO_MEMORY.  Whatever it refuses, what `path` names stays as it was.
 * Threads:  any, one at a time; before the first command.
 * Cost:     the buffer, 64 bytes for each of 4,096 steps, one thread.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status quire_runtime_record_to(
	struct quire_runtime *runtime, const struct quire_record_config *config,
	struct quire_refusal *refusal_out);

/*
 * quire_runtime_record_status - how it goes
 * Returns:  QUIRE_OK; QUIRE_INVALID: nothing is or was recorded.
 * Threads:  any.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status quire_runtime_record_status(
	struct quire_runtime *runtime, struct quire_record_status *status_out);

/*
 * quire_runtime_record_end - note nothing more, write what is there, close the files
 * @refusal_out: filled on refusal; NULL allowed
 * Returns:  QUIRE_OK; QUIRE_IO, QUIRE_LIMIT, QUIRE_FORMAT {what, ticket}: it ended by
 *           itself before, or the end could not be written; QUIRE_INVALID: nothing was
 *           recorded, or it was ended before; QUIRE_WOULD_BLOCK: inside a callback.
 * Threads:  any that may wait.  Commands given meanwhile may or may not be in it.
 * Cost:     waits for the recording's thread.  What rests on an open fate, and what has
 *           not been issued, is left out with all behind it.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status quire_runtime_record_end(
	struct quire_runtime *runtime, struct quire_refusal *refusal_out);

#ifdef __cplusplus
}
#endif
#endif
