/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_RUNTIME_STATUS_H
#define QUIRE_RUNTIME_STATUS_H
/*
 * Status codes and refusals: how every Quire function answers.
 *
 * A function that can refuse returns an enum quire_status; 0 (QUIRE_OK) is success.  A
 * refusal changes nothing.  Outputs are written on QUIRE_OK only.  A function that can
 * say more fills a struct quire_refusal, which quire_refusal_text() turns into one
 * sentence.  The library never prints and never exits.
 *
 * The numbers are part of trace format 1 (docs/trace-format.md): they never change.
 */
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QUIRE_API        __attribute__((visibility("default")))
#define QUIRE_MUST_CHECK __attribute__((warn_unused_result))

/*     name         value  text */
#define QUIRE_STATUS_LIST(X)                                                      \
	X(OK, 0, "done")                                                          \
	X(NO_PAGES, 1, "not enough pages")                                        \
	X(AGAIN, 2, "not yet; would fit or go on later")                          \
	X(STALE, 3, "the stream is not where the segment expects it")             \
	X(OFFLOADED, 4, "the stream is in host memory; reload it first")          \
	X(NO_REQUEST, 5, "no such request is open")                               \
	X(NO_LABEL, 6, "the request has no such label")                           \
	X(LIMIT, 7, "a limit would be exceeded")                                  \
	X(INVALID, 8, "invalid argument, or a call in the wrong state")           \
	X(HELD, 9, "behind a speculative step that is not promoted or abandoned") \
	X(WOULD_BLOCK, 10, "would have to wait where waiting is not allowed")     \
	X(ABANDONED, 11, "dropped with the speculative step it rests on")         \
	X(CANCELLED, 12, "dropped before it ran")                                 \
	X(DEVICE, 13, "the device failed, or is not there")                       \
	X(CALLBACK, 14, "a callback failed")                                      \
	X(NO_MEMORY, 15, "out of memory")                                         \
	X(TIMEOUT, 16, "the deadline passed")                                     \
	X(NOT_OWNED, 17, "the page is not owned, or was given back already")      \
	X(CLOSED, 18, "the runtime is shutting down")                             \
	X(BROKEN, 19, "an invariant does not hold")                               \
	X(IO, 20, "reading or writing a file failed")                             \
	X(FORMAT, 21, "the file does not follow its format")                      \
	X(END, 22, "end of input")

enum quire_status {
#define QUIRE_STATUS_ENUM(name, value, text) QUIRE_##name = value,
	QUIRE_STATUS_LIST(QUIRE_STATUS_ENUM)
#undef QUIRE_STATUS_ENUM
};

/* Bytes of a label with its terminating zero. */
#define QUIRE_LABEL_BYTES 32

/*
 * The details of a refusal.  Which fields carry meaning depends on the status; the others
 * are 0.
 *
 *   NO_PAGES   requested, available; in a runtime pages_short, request, label of the
 *              first page in take order that does not fit
 *   TIMEOUT    of a wait for pages: requested, available
 *   AGAIN      free, retiring, owned
 *   HELD       ticket: the speculative step that is in the way
 *   STALE      request, label, expected (the segment's `at`), got (the stream's length)
 *   LIMIT      what (the limit), got, expected (the bound)
 *   INVALID    what (the argument), index (its place in a list or -1), got, expected
 *              (bound); page, where a target is named twice; ticket, of a promote or
 *              abandon
 *   NO_MEMORY  what; requested (bytes) where it is known, otherwise 0
 *   NOT_OWNED  page, index (its place in the list)
 *   BROKEN     what (the rule), page or request and label
 *   IO, FORMAT what, line (1-based; 0: the whole file)
 */
struct quire_refusal {
	enum quire_status status;
	int32_t page;
	int64_t index;
	int64_t line;
	int64_t expected;
	int64_t got;
	int64_t requested;
	int64_t available;
	int64_t pages_short;
	int64_t free;
	int64_t retiring;
	int64_t owned;
	uint64_t request;
	uint64_t ticket;
	const char
		*what; /* static, or lent as the function says; never NULL when filled */
	char label[QUIRE_LABEL_BYTES];
};

/*
 * quire_status_name - "OK", "NO_PAGES", ...; "UNKNOWN" for a number that is no status
 * Threads:  any.
 */
QUIRE_API const char *quire_status_name(enum quire_status status);

/*
 * quire_status_text - what the status means, without a final stop
 * Threads:  any.
 */
QUIRE_API const char *quire_status_text(enum quire_status status);

/*
 * quire_refusal_text - one sentence: what was refused, where, and what would be right
 * @refusal: borrowed
 * @text:    filled, always terminated when @size > 0
 * @size:    bytes of @text
 * Returns:  the length of the whole sentence, as snprintf does.
 * Threads:  any.
 */
QUIRE_API size_t quire_refusal_text(const struct quire_refusal *refusal, char *text,
                                    size_t size);

#ifdef __cplusplus
}
#endif
#endif
