/* SPDX-License-Identifier: MIT */
/* A recording, made and ended: its memory, its files, the calls of a program. */
#include "config.h"

#include "plans/fault_impl.h"
#include "plans/target_impl.h"
#include "runtime/record_impl.h"
#include "runtime/refuse_impl.h"
#include "runtime/runtime_impl.h"

#include <quire/kernels/dtype.h>
#include <quire/kernels/layout.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BUFFER_BYTES     INT64_C(16777216)
#define BUFFER_BYTES_MAX (INT64_C(1) << 40)
#define FLUSH_NS         INT64_C(100000000)
#define FLUSH_NS_MAX     INT64_C(10000000000)
#define SOURCE_BYTES_MAX 255 /* and a final zero: as a header has room for */

/* The largest events that fit: so the planner waits for a recording, never for itself. */
#define EVENTS_MIN 4

/* ------------------------------------------------------------------ begin */

void quire_record_config_init(struct quire_record_config *config)
{
	*config = (struct quire_record_config){
		.config_bytes = sizeof(*config),
		.source = "",
		.digests = true,
		.pages = true,
		.buffer_bytes = BUFFER_BYTES,
		.flush_ns = FLUSH_NS,
	};
}

static enum quire_status check_config(const struct quire_record_config *config,
                                      struct quire_refusal *refusal)
{
	if (config->config_bytes != sizeof(*config))
		return quire_refuse_bound(
			refusal, QUIRE_INVALID,
			"config_bytes: call quire_record_config_init first", -1,
			(int64_t)config->config_bytes, (int64_t)sizeof(*config));
	if (config->path != NULL && config->write != NULL)
		return quire_refuse_what(refusal, QUIRE_INVALID,
		                         "path, write: one of them, not both");
	if (config->path == NULL && config->write == NULL && config->timeline == NULL)
		return quire_refuse_what(refusal, QUIRE_INVALID,
		                         "path, write, timeline: one has to be given");
	if (config->path != NULL && config->timeline != NULL &&
	    quire_target_is_same(config->path, config->timeline))
		return quire_refuse_what(refusal, QUIRE_INVALID,
		                         "path, timeline: two files are wanted, not one");
	if (config->source == NULL)
		return quire_refuse_what(refusal, QUIRE_INVALID, "source: NULL");
	QUIRE_TRY(quire_check_range(refusal, "source: bytes", -1,
	                            (int64_t)strlen(config->source), 0,
	                            SOURCE_BYTES_MAX));
	QUIRE_TRY(quire_check_range(refusal, "buffer_bytes", -1, config->buffer_bytes, 1,
	                            BUFFER_BYTES_MAX));
	return quire_check_range(refusal, "flush_ns", -1, config->flush_ns,
	                         QUIRE_RECORD_FLUSH_NS_MIN, FLUSH_NS_MAX);
}

/* Bytes of the largest event, and of what may be noted until the planner asks for room
 * again: its fates, a wait, and the end of the ring that an event does not fit into. */
static uint64_t largest_event(const struct quire_runtime *rt)
{
	const struct quire_event_counts most = {
		.segments = rt->config.rows_max,
		.pages = rt->num_pages,
		.combined = rt->config.tables_max,
		.pre_forks = QUIRE_FORKS_MAX,
		.post_forks = QUIRE_FORKS_MAX,
	};
	uint64_t fates =
		(uint64_t)rt->config.depth + (uint64_t)rt->config.speculative_max;

	return 2 * quire_event_bytes(&most) +
	       4 * fates * sizeof(struct quire_event_fate) +
	       2 * sizeof(struct quire_event_wait);
}

static enum quire_status allocate(struct quire_recording *recording)
{
	struct quire_runtime *rt = recording->runtime;
	const struct quire_memory *memory = &rt->config.hooks.memory;
	int64_t rows = rt->config.rows_max, tables = rt->config.tables_max;
	struct quire_record_notes *notes = &recording->notes;
	uint64_t least = EVENTS_MIN * largest_event(rt);
	uint64_t bytes = (uint64_t)recording->config.buffer_bytes;

	notes->event_max = largest_event(rt);
	notes->mask =
		quire_power_of_two_from((int64_t)(bytes > least ? bytes : least)) - 1;
	recording->open_max = rt->config.depth + rt->config.speculative_max;
	notes->ring = quire_memory_zeroed(memory, (int64_t)notes->mask + 1, 1);
	recording->steps = quire_memory_zeroed(memory, QUIRE_RECORD_STEPS,
	                                       sizeof(*recording->steps));
	recording->open = quire_memory_zeroed(memory, recording->open_max,
	                                      sizeof(*recording->open));
	recording->rows = quire_memory_zeroed(memory, rows, sizeof(*recording->rows));
	recording->segments =
		quire_memory_zeroed(memory, rows, sizeof(*recording->segments));
	recording->combined =
		quire_memory_zeroed(memory, tables, sizeof(*recording->combined));
	recording->combined_labels =
		quire_memory_zeroed(memory, tables, sizeof(*recording->combined_labels));
	recording->forks = quire_memory_zeroed(memory, 2 * QUIRE_FORKS_MAX,
	                                       sizeof(*recording->forks));
	recording->running = quire_memory_zeroed(memory, QUIRE_RECORD_STEPS,
	                                         sizeof(*recording->running));
	if (notes->ring == NULL || recording->steps == NULL || recording->open == NULL ||
	    recording->rows == NULL || recording->segments == NULL ||
	    recording->combined == NULL || recording->combined_labels == NULL ||
	    recording->forks == NULL || recording->running == NULL)
		return QUIRE_NO_MEMORY;
	/* Touched here, not by the planner. */
	memset(notes->ring, 0xff, notes->mask + 1);
	return QUIRE_OK;
}

static void end_memory(struct quire_recording *recording)
{
	const struct quire_runtime *rt = recording->runtime;
	const struct quire_memory *memory = &rt->config.hooks.memory;
	int64_t rows = rt->config.rows_max, tables = rt->config.tables_max;

	quire_memory_free(memory, recording->running, QUIRE_RECORD_STEPS,
	                  sizeof(*recording->running));
	quire_memory_free(memory, recording->forks, 2 * QUIRE_FORKS_MAX,
	                  sizeof(*recording->forks));
	quire_memory_free(memory, recording->combined_labels, tables,
	                  sizeof(*recording->combined_labels));
	quire_memory_free(memory, recording->combined, tables,
	                  sizeof(*recording->combined));
	quire_memory_free(memory, recording->rows, rows, sizeof(*recording->rows));
	quire_memory_free(memory, recording->segments, rows,
	                  sizeof(*recording->segments));
	quire_memory_free(memory, recording->open, recording->open_max,
	                  sizeof(*recording->open));
	quire_memory_free(memory, recording->steps, QUIRE_RECORD_STEPS,
	                  sizeof(*recording->steps));
	quire_memory_free(memory, recording->notes.ring,
	                  (int64_t)recording->notes.mask + 1, 1);
	pthread_mutex_destroy(&recording->lock);
	free(recording->path);
	quire_memory_free(memory, recording, 1, sizeof(*recording));
}

/* What the trace was written for. */
static void make_header(const struct quire_runtime *rt, const char *source,
                        struct quire_trace_header *header)
{
	const struct quire_runtime_config *config = &rt->config;
	const struct quire_shape *shape = quire_cache_shape(config->cache);

	*header = (struct quire_trace_header){
		.num_layers = shape->num_layers,
		.num_kv_heads = shape->num_kv_heads,
		.head_dim = shape->head_dim,
		.page_size = shape->page_size,
		.num_pages = shape->num_pages,
		.sink = config->sink,
		.rows_max = config->rows_max,
		.tokens_max = config->tokens_max,
		.requests_max = config->requests_max,
		.seq_tokens_max = config->seq_tokens_max,
		.request_labels_max = config->request_labels_max,
		.tables_max = config->tables_max,
		.table_pages_max = config->table_pages_max,
		.row_pages_max = config->block_width,
	};
	snprintf(header->layout, sizeof(header->layout), "%s",
	         quire_layout_name(shape->layout));
	snprintf(header->dtype, sizeof(header->dtype), "%s",
	         quire_dtype_name(shape->dtype));
	snprintf(header->source, sizeof(header->source), "%s", source);
}

static enum quire_status write_file(void *argument, const void *bytes, size_t n)
{
	struct quire_recording *recording = argument;
	const char *at = bytes;

	while (n > 0) {
		ssize_t put = write(recording->fd, at, n);

		if (put <= 0 && (put == 0 || errno != EINTR)) {
			recording->error = put == 0 ? EIO : errno;
			return QUIRE_IO;
		}
		at += put > 0 ? put : 0;
		n -= put > 0 ? (size_t)put : 0;
	}
	return QUIRE_OK;
}

static bool is_compressed(const char *path)
{
	size_t length = strlen(path);

	return length >= 4 && strcmp(path + length - 4, ".zst") == 0;
}

/* A file that has its header before it has its name: whatever becomes of the process,
 * there is a trace.  On QUIRE_OK @target is to be ended. */
static enum quire_status open_file(struct quire_recording *recording,
                                   const struct quire_trace_header *header,
                                   struct quire_target *target,
                                   struct quire_refusal *refusal)
{
	const struct quire_trace_output output = {
		.write = write_file,
		.argument = recording,
		.compress = is_compressed(recording->path),
	};
	enum quire_status status;

	QUIRE_TRY(quire_target_open(target, recording->path, refusal));
	recording->fd = fcntl(target->fd, F_DUPFD_CLOEXEC, 0);
	status = recording->fd >= 0
	                 ? quire_trace_create_to(&output, header, &recording->writer,
	                                         refusal)
	                 : quire_fault(refusal, QUIRE_IO, 0, "cannot write to \"%s\": %m",
	                               recording->path);
	if (status == QUIRE_OK &&
	    quire_trace_flush(recording->writer, NULL) != QUIRE_OK) {
		errno = recording->error;
		status = quire_fault(refusal, QUIRE_IO, 0, "cannot write to \"%s\": %m",
		                     recording->path);
	}
	if (status != QUIRE_OK)
		quire_target_discard(target);
	return status;
}

/* The files to come; used where the config names them. */
struct targets {
	struct quire_target trace;
	struct quire_target timeline;
};

/* A recording that does not begin takes nothing's place. */
static void discard_targets(const struct quire_recording *recording,
                            struct targets *targets)
{
	if (recording->path != NULL)
		quire_target_discard(&targets->trace);
	if (recording->timeline != NULL)
		quire_target_discard(&targets->timeline);
}

static enum quire_status commit_targets(const struct quire_recording *recording,
                                        struct targets *targets,
                                        struct quire_refusal *refusal)
{
	enum quire_status status = QUIRE_OK;

	if (recording->timeline != NULL)
		status = quire_target_commit(&targets->timeline, refusal);
	if (recording->path == NULL)
		return status;
	if (status == QUIRE_OK)
		return quire_target_commit(&targets->trace, refusal);
	quire_target_discard(&targets->trace);
	return status;
}

/* On QUIRE_OK the targets are to be ended. */
static enum quire_status open_files(struct quire_recording *recording,
                                    const struct quire_record_config *config,
                                    struct targets *targets,
                                    struct quire_refusal *refusal)
{
	const struct quire_trace_output output = {.write = config->write,
	                                          .argument = config->write_argument};
	struct quire_trace_header header;
	enum quire_status status = QUIRE_OK;

	make_header(recording->runtime, config->source, &header);
	if (recording->path != NULL)
		QUIRE_TRY(open_file(recording, &header, &targets->trace, refusal));
	else if (config->write != NULL)
		QUIRE_TRY(quire_trace_create_to(&output, &header, &recording->writer,
		                                refusal));
	if (config->timeline != NULL)
		status = quire_timeline_create(config->timeline, recording->start_ns,
		                               &targets->timeline, &recording->timeline,
		                               refusal);
	if (status != QUIRE_OK)
		discard_targets(recording, targets); /* there is no timeline's */
	return status;
}

static void discard_files(struct quire_recording *recording)
{
	quire_trace_discard(recording->writer);
	if (recording->fd >= 0)
		close(recording->fd);
	if (recording->timeline != NULL)
		(void)quire_timeline_end(recording->timeline, NULL);
}

/* Signals are for the program's own threads. */
static enum quire_status start_thread(struct quire_recording *recording,
                                      struct quire_refusal *refusal)
{
	sigset_t all, before;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&recording->thread, NULL, quire_record_main, recording);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error != 0)
		return quire_refuse_what(refusal, QUIRE_NO_MEMORY,
		                         "a recording's thread");
	pthread_setname_np(recording->thread, "quire-record");
	return QUIRE_OK;
}

static void join(struct quire_recording *recording)
{
	/* Pair with the acquires in look: whichever it sees first, it sees what was noted
	 * before this call. */
	atomic_store_explicit(&recording->active, false, memory_order_release);
	atomic_store_explicit(&recording->ends, true, memory_order_release);
	quire_wake_all(&recording->wake);
	quire_wake_all(&recording->runtime->planner_wake);
	pthread_join(recording->thread, NULL);
}

/* Under the commands' lock: may it be recorded? */
static enum quire_status check_unused(struct quire_runtime *rt,
                                      struct quire_refusal *refusal)
{
	if (quire_recording_of(rt) != NULL)
		return quire_refuse_what(refusal, QUIRE_INVALID,
		                         "the runtime was recorded before");
	if (rt->commands.position != 0)
		return quire_refuse_what(refusal, QUIRE_INVALID,
		                         "a command was given before the recording");
	return QUIRE_OK;
}

/* Commands are noted from the first one on: whoever draws a position sees it.  The files
 * have their names when nothing else can refuse it. */
static enum quire_status install(struct quire_recording *recording,
                                 struct targets *targets, struct quire_refusal *refusal)
{
	struct quire_runtime *rt = recording->runtime;
	struct quire_commands *commands = &rt->commands;
	enum quire_status status;

	pthread_mutex_lock(&commands->lock);
	status = check_unused(rt, refusal);
	if (status == QUIRE_OK)
		status = commit_targets(recording, targets, refusal);
	else
		discard_targets(recording, targets);
	if (status == QUIRE_OK) {
		commands->clock = &rt->config.hooks;
		/* Pairs with the acquire in quire_recording_of. */
		atomic_store_explicit(&rt->recording, recording, memory_order_release);
	}
	pthread_mutex_unlock(&commands->lock);
	return status;
}

/* Files and thread, or nothing. */
static enum quire_status start(struct quire_recording *recording,
                               const struct quire_record_config *config,
                               struct quire_refusal *refusal)
{
	struct targets targets;
	enum quire_status status = open_files(recording, config, &targets, refusal);

	if (status != QUIRE_OK)
		goto undo_files;
	status = start_thread(recording, refusal);
	if (status != QUIRE_OK)
		goto undo_targets;
	status = install(recording, &targets, refusal);
	if (status != QUIRE_OK)
		join(recording); /* which closes the files */
	return status;

undo_targets:
	discard_targets(recording, &targets);
undo_files:
	discard_files(recording);
	return status;
}

/* A pipe that nobody reads is a write that failed, here as on the recording's thread, and
 * not the end of the process. */
static enum quire_status start_without_signal(struct quire_recording *recording,
                                              const struct quire_record_config *config,
                                              struct quire_refusal *refusal)
{
	const struct timespec no_time = {.tv_sec = 0};
	sigset_t broken_pipe, pending, before;
	enum quire_status status;

	sigemptyset(&broken_pipe);
	sigaddset(&broken_pipe, SIGPIPE);
	sigpending(&pending);
	pthread_sigmask(SIG_BLOCK, &broken_pipe, &before);
	status = start(recording, config, refusal);
	if (!sigismember(&pending, SIGPIPE))
		(void)sigtimedwait(&broken_pipe, NULL, &no_time);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return status;
}

static enum quire_status begin(struct quire_recording *recording,
                               const struct quire_record_config *config,
                               struct quire_refusal *refusal)
{
	recording->config = *config;
	recording->path = config->path == NULL ? NULL : strdup(config->path);
	recording->config.path = recording->config.timeline = recording->config.source =
		NULL;
	recording->refusal = (struct quire_refusal){.status = QUIRE_OK, .what = ""};
	recording->fd = -1;
	recording->has_timeline = config->timeline != NULL;
	recording->start_ns = quire_runtime_now(recording->runtime);
	atomic_store_explicit(&recording->active, true, memory_order_relaxed);
	quire_wake_init(&recording->wake);
	pthread_mutex_init(&recording->lock, NULL); /* cannot fail on Linux */
	if (allocate(recording) != QUIRE_OK ||
	    (config->path != NULL && recording->path == NULL))
		return quire_refuse_what(refusal, QUIRE_NO_MEMORY,
		                         "buffer_bytes, rows_max, num_pages");
	return start_without_signal(recording, config, refusal);
}

enum quire_status quire_runtime_record_to(struct quire_runtime *rt,
                                          const struct quire_record_config *config,
                                          struct quire_refusal *refusal_out)
{
	struct quire_recording *recording;
	enum quire_status status;

	QUIRE_TRY(check_config(config, refusal_out));
	/* Before a file is made: one of the same name may be the recording's that is. */
	pthread_mutex_lock(&rt->commands.lock);
	status = check_unused(rt, refusal_out);
	pthread_mutex_unlock(&rt->commands.lock);
	if (status != QUIRE_OK)
		return status;
	recording = quire_memory_aligned(&rt->config.hooks.memory, sizeof(*recording),
	                                 alignof(struct quire_recording));
	if (recording == NULL)
		return quire_refuse_what(refusal_out, QUIRE_NO_MEMORY, "a recording");
	recording->runtime = rt;
	status = begin(recording, config, refusal_out);
	if (status != QUIRE_OK)
		end_memory(recording);
	return status;
}

/* ------------------------------------------------------------------ end */

enum quire_status quire_runtime_record_status(struct quire_runtime *rt,
                                              struct quire_record_status *status_out)
{
	struct quire_recording *recording = quire_recording_of(rt);

	if (recording == NULL)
		return QUIRE_INVALID;
	/* Pairs with the release in is_over. */
	status_out->active =
		atomic_load_explicit(&recording->active, memory_order_acquire);
	pthread_mutex_lock(&recording->lock);
	status_out->refusal = recording->refusal;
	pthread_mutex_unlock(&recording->lock);
	/* The thread, which will say so, may be in a write.  Relaxed: before `active`. */
	if (status_out->refusal.status == QUIRE_OK &&
	    atomic_load_explicit(&recording->overrun, memory_order_relaxed))
		status_out->refusal = quire_record_full(recording, 0);
	status_out->commands = (int64_t)quire_counted(&recording->commands);
	status_out->left_out = (int64_t)quire_counted(&recording->left_out);
	/* Acquire: a tail that the head's thread saw is seen here, too, so it is not
	 * beyond this head. */
	status_out->buffered_bytes =
		-(int64_t)atomic_load_explicit(&recording->head, memory_order_acquire);
	status_out->buffered_bytes += (int64_t)atomic_load_explicit(
		&recording->notes.tail, memory_order_relaxed);
	status_out->wait_ns = (int64_t)quire_counted(&rt->planner.record_wait_ns);
	return QUIRE_OK;
}

enum quire_status quire_runtime_record_end(struct quire_runtime *rt,
                                           struct quire_refusal *refusal_out)
{
	struct quire_recording *recording = quire_recording_of(rt);
	bool is_ended;

	if (recording == NULL)
		return quire_refuse_what(refusal_out, QUIRE_INVALID,
		                         "nothing is recorded");
	if (quire_is_inside(rt) ||
	    (rt->config.threads == QUIRE_THREADS_LIBRARY && !quire_may_wait(rt)))
		return quire_refuse_what(refusal_out, QUIRE_WOULD_BLOCK,
		                         "a recording's end waits for its thread");
	pthread_mutex_lock(&recording->lock);
	is_ended = recording->is_ended;
	recording->is_ended = true;
	pthread_mutex_unlock(&recording->lock);
	if (is_ended)
		return quire_refuse_what(refusal_out, QUIRE_INVALID,
		                         "the recording was ended before");
	join(recording);
	return quire_refuse(refusal_out, recording->refusal);
}

void quire_record_destroy(struct quire_runtime *rt)
{
	struct quire_recording *recording = quire_recording_of(rt);

	if (recording == NULL)
		return;
	if (!recording->is_ended)
		join(recording);
	end_memory(recording);
}
