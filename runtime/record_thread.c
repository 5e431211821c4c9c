/* SPDX-License-Identifier: MIT */
/* The thread of a recording: when it looks, what it makes of failures, how it ends. */
#include "config.h"

#include "plans/fault_impl.h"
#include "runtime/record_impl.h"
#include "runtime/runtime_impl.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

/* The first reason counts. */
static void fail(struct quire_recording *recording, const struct quire_refusal *refusal)
{
	pthread_mutex_lock(&recording->lock);
	if (recording->refusal.status == QUIRE_OK) {
		recording->refusal = *refusal;
		snprintf(recording->text, sizeof(recording->text), "%s", refusal->what);
		recording->refusal.what = recording->text;
	}
	pthread_mutex_unlock(&recording->lock);
	/* Pairs with nothing: see active in record.c. */
	atomic_store_explicit(&recording->active, false, memory_order_relaxed);
	quire_wake_all(&recording->runtime->planner_wake);
	quire_wake_all(&recording->wake); /* its own: it does not sleep any more */
}

/* The trace could not be written: the writer only knows that its function said so. */
static void fail_trace(struct quire_recording *recording,
                       const struct quire_refusal *refusal)
{
	struct quire_refusal with_cause;

	if (recording->error == 0) {
		fail(recording, refusal);
		return;
	}
	errno = recording->error;
	(void)quire_fault(&with_cause, QUIRE_IO, 0, "cannot write to \"%s\": %m",
	                  recording->path);
	fail(recording, &with_cause);
}

struct quire_refusal quire_record_full(const struct quire_recording *recording,
                                       uint64_t ticket)
{
	struct quire_refusal refusal = {
		.status = QUIRE_LIMIT,
		.what = "buffer_bytes: the recording's buffer is full (make it larger, "
			"or set waits)",
		.index = -1,
		.ticket = ticket,
	};

	if (ticket != 0) {
		refusal.what = "buffer_bytes: the recording's buffer is full behind a "
			       "speculative step whose fate is open (decide it sooner, "
			       "or make the buffer larger)";
	} else if (atomic_load_explicit(&recording->overrun, memory_order_relaxed) ==
	           QUIRE_OVERRUN_STEPS) {
		refusal.what = "waits: too many steps are planned and not on record yet "
			       "(set it, and the planner waits)";
	}
	return refusal;
}

static void fail_full(struct quire_recording *recording)
{
	const struct quire_refusal refusal =
		quire_record_full(recording, quire_record_blocked(recording));

	fail(recording, &refusal);
}

/* A planner that waits is woken once there is room.  A wait that hangs on an open fate
 * would be for ever. */
static void answer_planner(struct quire_recording *recording)
{
	uint64_t head = atomic_load_explicit(&recording->head, memory_order_relaxed);

	/* Pairs with the release in is_over. */
	if (!atomic_load_explicit(&recording->is_waiting, memory_order_acquire))
		return;
	if (quire_record_overrun(recording, head) == QUIRE_OVERRUN_NONE) {
		atomic_store_explicit(&recording->is_waiting, false,
		                      memory_order_relaxed);
		quire_wake_all(&recording->runtime->planner_wake);
	} else if (quire_record_blocked(recording) != 0) {
		fail_full(recording);
	}
}

/* When what was written has to leave the writers. */
static int64_t flush_deadline(const struct quire_recording *recording)
{
	return recording->flushed_ns + recording->config.flush_ns;
}

/* All that was written leaves the writers, in time. */
static void flush(struct quire_recording *recording)
{
	int64_t now_ns = quire_now_ns();
	struct quire_refusal refusal;

	if (!recording->is_dirty || now_ns < flush_deadline(recording))
		return;
	recording->is_dirty = false;
	recording->flushed_ns = now_ns;
	if (recording->writer != NULL &&
	    quire_trace_flush(recording->writer, &refusal) != QUIRE_OK)
		fail_trace(recording, &refusal);
	if (recording->timeline != NULL &&
	    quire_timeline_flush(recording->timeline, &refusal) != QUIRE_OK)
		fail(recording, &refusal);
}

static void close_files(struct quire_recording *recording)
{
	struct quire_refusal refusal = {.status = QUIRE_IO, .what = ""};

	if (recording->writer != NULL &&
	    quire_trace_commit(recording->writer, &refusal) != QUIRE_OK)
		fail_trace(recording, &refusal);
	if (recording->fd >= 0 && close(recording->fd) != 0) {
		recording->error = errno;
		fail_trace(recording, &refusal);
	}
	if (recording->timeline != NULL &&
	    quire_timeline_end(recording->timeline, &refusal) != QUIRE_OK)
		fail(recording, &refusal);
	recording->writer = NULL;
	recording->fd = -1;
	recording->timeline = NULL;
}

static void report_end(struct quire_recording *recording)
{
	struct quire_report report = {.kind = QUIRE_REPORT_RECORDING_ENDED};

	pthread_mutex_lock(&recording->lock);
	report.status = recording->refusal.status;
	report.text = recording->refusal.what;
	report.ticket = recording->refusal.ticket;
	pthread_mutex_unlock(&recording->lock);
	if (report.status != QUIRE_OK)
		quire_runtime_report(recording->runtime, &report);
}

/* One look.  False: it is over. */
static bool look(struct quire_recording *recording)
{
	/* Both before the look, which is the last one then.  Pair with the releases in join
	 * and is_over: what was noted before is seen, and why it ends. */
	bool ends = atomic_load_explicit(&recording->ends, memory_order_acquire);
	bool active = atomic_load_explicit(&recording->active, memory_order_acquire);
	struct quire_refusal refusal;

	if (quire_record_look(recording, &refusal) != QUIRE_OK) {
		fail_trace(recording, &refusal);
		return false; /* another look would tell the timeline the same again */
	}
	answer_planner(recording);
	/* Relaxed: stored before `active`. */
	if (!active && atomic_load_explicit(&recording->overrun, memory_order_relaxed))
		fail_full(recording);
	return !ends && active;
}

/* When it looks again, unless it is woken. */
static int64_t look_deadline(const struct quire_recording *recording)
{
	int64_t look_ns = quire_now_ns() + recording->config.flush_ns;

	/* The executor, whom a waiting planner may hang on, wakes nobody.  Relaxed: the
	 * planner wakes this thread once it is stored. */
	if (atomic_load_explicit(&recording->is_waiting, memory_order_relaxed))
		return quire_now_ns() + QUIRE_RECORD_FLUSH_NS_MIN;
	return recording->is_dirty && flush_deadline(recording) < look_ns
	               ? flush_deadline(recording)
	               : look_ns;
}

void *quire_record_main(void *argument)
{
	struct quire_recording *recording = argument;

	atomic_store_explicit(&recording->runtime->recorder_thread, quire_this_thread(),
	                      memory_order_relaxed);
	for (;;) {
		uint32_t value = quire_wake_value(&recording->wake);

		if (!look(recording))
			break;
		flush(recording);
		(void)quire_wake_sleep(&recording->wake, value, look_deadline(recording));
	}
	close_files(recording);
	report_end(recording);
	return NULL;
}
