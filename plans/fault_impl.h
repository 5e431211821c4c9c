/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_PLANS_FAULT_IMPL_H
#define QUIRE_PLANS_FAULT_IMPL_H
/*
 * Refusals whose text is made at run time: "segments[3]: span must be 0..16777216, got
 * -4".
 */
#include <quire/runtime/status.h>

/* Bytes of such a text with its terminating zero; longer ones are cut. */
#define QUIRE_FAULT_BYTES 512

/*
 * quire_fault - fill a refusal with a made text
 * @refusal_out: filled {status, line, what}; NULL allowed
 * @line:    in the file, 1-based; 0: the whole file
 * @format:  as printf; %m is the text of errno
 * Returns:  @status.
 * Threads:  any; the text is the thread's own, lent until its next quire_fault.
 */
enum quire_status quire_fault(struct quire_refusal *refusal_out, enum quire_status status,
                              int64_t line, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

#endif
