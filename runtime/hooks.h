/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_RUNTIME_HOOKS_H
#define QUIRE_RUNTIME_HOOKS_H
/*
 * Hooks: what a program may do in a runtime's place.  All are optional; 0 everywhere is a
 * runtime on its own.
 */
#include <quire/runtime/status.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whose thread. */
enum quire_role {
	QUIRE_ROLE_PLANNER,
	QUIRE_ROLE_EXECUTOR,
};

/*
 * Host memory: both functions or neither.  Asked at create and given back by destroy (or
 * by a create that fails); a self-check also asks for some while it runs.  Page lists,
 * which are address space more than memory, the pool, the ledger and the device have
 * their own.
 */
struct quire_memory {
	/* Zeroed memory, at an address that is a multiple of @align, a power of two;
	 * NULL: there is none.  What is never used need not be touched. */
	void *(*alloc)(void *argument, size_t bytes, size_t align);
	/* @memory is never NULL; @bytes as at alloc. */
	void (*release)(void *argument, void *memory, size_t bytes);
	void *argument; /* kept until destroy */
};

enum quire_report_kind {
	QUIRE_REPORT_CREATED,
	QUIRE_REPORT_THREAD_STARTED, /* a thread of the library, after on_thread ... */
	QUIRE_REPORT_THREAD_ENDED,   /* ... and before it is gone; text: which */
	QUIRE_REPORT_FAILED,         /* once; text: what failed */
	QUIRE_REPORT_SHUTDOWN,       /* text: "draining" or "cancelling" */
	/* A recording has ended by itself (record.h), once, on its own thread; text: why,
	 * lent until this returns. */
	QUIRE_REPORT_RECORDING_ENDED,
};

/* Something rare. */
struct quire_report {
	enum quire_report_kind kind;
	enum quire_status status; /* FAILED, RECORDING_ENDED: how; otherwise QUIRE_OK */
	const char *text;         /* static but where it is said; never NULL */
	uint64_t ticket;          /* of the step concerned; 0: of none */
};

struct quire_hooks {
	struct quire_memory memory;
	/* Told of rare things, at once, on the thread where they happen; may not wait,
	 * nor destroy the runtime. */
	void (*on_report)(void *argument, const struct quire_report *report);
	void *on_report_argument; /* kept until destroy */
	/* Called first on each thread of the library, before it does anything: a place
	 * for priorities, memory policies, a profiler's registration.  (The device is
	 * made the thread's current one right after it.) */
	void (*on_thread)(void *argument, enum quire_role role);
	void *on_thread_argument; /* kept until destroy */
	/* The clock of deadlines and of all times in the counters, in nanoseconds: more
	 * than 0, never going back.  NULL: CLOCK_MONOTONIC.  With another one, who waits
	 * until a deadline looks at it every millisecond of real time.  Any thread calls
	 * it. */
	int64_t (*now_ns)(void *argument);
	void *now_argument; /* kept until destroy */
};

/*
 * A failed assertion: a bug of the library, or a call that it does not allow.
 * @condition, @file: static
 * Threads:  the one that found it, which traps if the function returns.
 */
typedef void (*quire_fatal_function)(const char *condition, const char *file, int line);

/*
 * quire_set_fatal_handler - be called before the process traps at a failed assertion
 * @handler: of the whole process, the newest counts; NULL: none, as at the start
 * Threads:  any.
 */
QUIRE_API void quire_set_fatal_handler(quire_fatal_function handler);

#ifdef __cplusplus
}
#endif
#endif
