/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_RUNTIME_CMD_RIG_IMPL_H
#define QUIRE_RUNTIME_CMD_RIG_IMPL_H
/*
 * What a trace runs on: a device, a cache, a runtime, made as its header says.
 */
#include "runtime/cmd/ring_impl.h"

#include <quire/kernels/cache.h>
#include <quire/plans/trace.h>
#include <quire/runtime/runtime.h>

#include <stdbool.h>
#include <stdint.h>

struct cmd_rig_wants {
	const char *file;   /* for messages */
	const char *device; /* its name */
	int32_t depth;
	int32_t tickets_max;
	int64_t pages;       /* 0: the trace's */
	int64_t jobs;        /* rigs of this kind at once */
	int64_t seed_delays; /* 0: no delays */
	bool caller;         /* the calling thread polls */
	bool digests;
	bool is_bare; /* the smallest elements there are: tables do not depend on them */
	struct cmd_ring *taken; /* filled: what each ticket took; NULL: not wanted */
};

/* One generator for each role: its polls come from one thread at a time. */
struct cmd_delays {
	uint64_t state[2];
};

struct cmd_rig {
	struct quire_device *device;
	struct quire_cache *cache;
	struct quire_runtime *runtime;
	struct cmd_delays delays;
};

/* CMD_DONE; CMD_BAD: told.  @rig stays where it is until it is ended. */
int cmd_rig_create(struct cmd_rig *rig, const struct cmd_rig_wants *wants,
                   const struct quire_trace_header *header);
/* End the runtime: nothing is on its way any more. */
void cmd_rig_stop(struct cmd_rig *rig);
void cmd_rig_end(struct cmd_rig *rig);

/* Let a runtime whose caller polls go on, or sleep until it may, or a little. */
void cmd_rig_drive(struct quire_runtime *runtime);

#endif
