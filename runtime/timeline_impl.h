/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_RUNTIME_TIMELINE_IMPL_H
#define QUIRE_RUNTIME_TIMELINE_IMPL_H
/*
 * A timeline: a file of trace events as Perfetto and chrome://tracing read them.  A file
 * that was not ended is read, too.  The recording's thread alone uses it.
 */
#include "plans/target_impl.h"
#include "runtime/record_events_impl.h"

#include <quire/runtime/status.h>

#include <stdint.h>

struct quire_timeline;

/*
 * quire_timeline_create, quire_timeline_flush, quire_timeline_end
 * @path:    borrowed; "-" is standard output
 * @start_ns: of the runtime's clock, 0 in the timeline
 * @target:  filled on QUIRE_OK: the file with its beginning, which has its name, and takes
 *           the place of what was there, when the caller commits it
 * Returns:  QUIRE_OK; QUIRE_IO {what}: of whatever was written so far; QUIRE_NO_MEMORY.
 */
enum quire_status quire_timeline_create(const char *path, int64_t start_ns,
                                        struct quire_target *target,
                                        struct quire_timeline **timeline_out,
                                        struct quire_refusal *refusal_out);
enum quire_status quire_timeline_flush(struct quire_timeline *timeline,
                                       struct quire_refusal *refusal_out);
enum quire_status quire_timeline_end(struct quire_timeline *timeline,
                                     struct quire_refusal *refusal_out);

/* A command was decided, with status OK a step was planned, of a pool of @num_pages. */
void quire_timeline_command(struct quire_timeline *timeline,
                            const struct quire_event_command *command,
                            enum quire_status status, int64_t num_pages);

/* A speculative step's fate took effect. */
void quire_timeline_fate(struct quire_timeline *timeline,
                         const struct quire_event_fate *fate);

/* The planner waited. */
void quire_timeline_wait(struct quire_timeline *timeline,
                         const struct quire_event_wait *wait);

/* A step has retired; in their order. */
void quire_timeline_step(struct quire_timeline *timeline, uint64_t ticket,
                         const struct quire_record_step *step);

#endif
