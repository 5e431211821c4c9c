/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_TESTS_RUNTIME_VALID_TRACE_H
#define QUIRE_TESTS_RUNTIME_VALID_TRACE_H
/*
 * Random plan traces without a fault: forks, rewinds, releases from the front, tables of
 * several labels, speculative steps with fates in any order and ordinary commands that
 * wait for them.  And what a runtime says of such a trace.
 */
#include <quire/plans/trace.h>

#include <stdbool.h>
#include <stdint.h>

#define VALID_TRACE_PAGE_SIZE 4

/* A trace output (quire_trace_create_to) that is a FILE: nothing waits for a disk. */
enum quire_status valid_trace_put(void *file, const void *bytes, size_t n);

/* Write a trace of at least @commands commands to a file. */
void valid_trace_write(const char *path, uint64_t seed, int32_t commands);

/* Give all commands to a runtime with more pages than they need.  True: each was OK, or
 * ABANDONED as it had to be, and rested on the base that is written out.  Otherwise, and
 * where @tell, it says what was not. */
bool valid_trace_holds(const char *path, bool tell);

#endif
