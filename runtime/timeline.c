/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "plans/fault_impl.h"
#include "plans/target_impl.h"
#include "runtime/refuse_impl.h"
#include "runtime/timeline_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Lanes: the "threads" of the one "process". */
enum {
	LANE_PLANNER = 1,
	LANE_EXECUTOR,
	LANE_DEVICE,
	LANE_CLIENTS, /* and one more for each further client */
};

/* Clients that have a lane of their own; all further ones share the last. */
#define CLIENTS_MAX 32

/* Bytes of a write, and more than any one piece has. */
#define BUFFER_BYTES 65536
#define PIECE_BYTES  512

struct quire_timeline {
	int fd;
	int error; /* errno of the first write that failed; 0: none */
	int64_t start_ns;
	int64_t retired_ns; /* of the newest step written */
	uint64_t clients[CLIENTS_MAX];
	int num_clients;
	char *path; /* for messages */
	size_t used;
	char buffer[BUFFER_BYTES];
};

static const char *const command_names[] = {
	[QUIRE_COMMAND_OPEN] = "open",
	[QUIRE_COMMAND_CLOSE] = "close",
	[QUIRE_COMMAND_SUBMIT] = "plan",
	[QUIRE_COMMAND_RESET] = "reset",
	[QUIRE_COMMAND_REWIND] = "rewind",
	[QUIRE_COMMAND_RELEASE_FRONT] = "release_front",
};

/* ------------------------------------------------------------------ bytes */

static void hand_on(struct quire_timeline *timeline)
{
	size_t done = 0;

	while (timeline->error == 0 && done < timeline->used) {
		ssize_t put = write(timeline->fd, timeline->buffer + done,
		                    timeline->used - done);

		if (put > 0)
			done += (size_t)put;
		else if (put == 0 || errno != EINTR)
			timeline->error = put == 0 ? EIO : errno;
	}
	timeline->used = 0;
}

/* No stdio: what lies in the buffer of a FILE is written once more by a process that was
 * forked from this one, when it exits. */
__attribute__((format(printf, 2, 3))) static void put(struct quire_timeline *timeline,
                                                      const char *format, ...)
{
	va_list arguments;

	if (BUFFER_BYTES - timeline->used < PIECE_BYTES)
		hand_on(timeline);
	va_start(arguments, format);
	timeline->used += (size_t)vsnprintf(timeline->buffer + timeline->used,
	                                    PIECE_BYTES, format, arguments);
	va_end(arguments);
}

/* ------------------------------------------------------------------ one event */

/* Microseconds since the start, to the nanosecond. */
#define TIME_FORMAT "%" PRId64 ".%03d"
#define TIME(ns)    (ns) / 1000, (int)((ns) % 1000)

/* The beginning of an event of a lane; the caller ends it. */
static void put_event(struct quire_timeline *timeline, const char *phase, int lane,
                      int64_t at_ns)
{
	int64_t ns = at_ns > timeline->start_ns ? at_ns - timeline->start_ns : 0;

	put(timeline, ",\n{\"ph\":\"%s\",\"pid\":1,\"tid\":%d,\"ts\":" TIME_FORMAT, phase,
	    lane, TIME(ns));
}

/* The beginning of a slice. */
static void put_slice(struct quire_timeline *timeline, int lane, int64_t from_ns,
                      int64_t to_ns)
{
	int64_t ns = to_ns > from_ns ? to_ns - from_ns : 0;

	put_event(timeline, "X", lane, from_ns);
	put(timeline, ",\"dur\":" TIME_FORMAT, TIME(ns));
}

/* A step of the arrow that follows a ticket: "s", "t", "f"; it is bound to the slice of
 * its lane that is there at this time. */
static void put_flow(struct quire_timeline *timeline, const char *phase, int lane,
                     int64_t at_ns, uint64_t ticket)
{
	put_event(timeline, phase, lane, at_ns);
	put(timeline, ",\"cat\":\"step\",\"name\":\"step\",\"id\":%" PRIu64 "%s}", ticket,
	    phase[0] == 's' ? "" : ",\"bp\":\"e\"");
}

static void put_lane(struct quire_timeline *timeline, int lane, const char *name)
{
	put(timeline,
	    ",\n{\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"name\":\"thread_name\","
	    "\"args\":{\"name\":\"%s\"}}",
	    lane, name);
}

/* The lane of a client, made when it is new. */
static int client_lane(struct quire_timeline *timeline, uint64_t client)
{
	char name[32];
	int i = 0;

	while (i < timeline->num_clients && timeline->clients[i] != client)
		i++;
	if (i == CLIENTS_MAX)
		return LANE_CLIENTS + CLIENTS_MAX - 1;
	if (i == timeline->num_clients) {
		timeline->clients[timeline->num_clients++] = client;
		snprintf(name, sizeof(name), "client %d", i + 1);
		put_lane(timeline, LANE_CLIENTS + i, name);
	}
	return LANE_CLIENTS + i;
}

/* ------------------------------------------------------------------ what happened */

void quire_timeline_wait(struct quire_timeline *timeline,
                         const struct quire_event_wait *wait)
{
	put_slice(timeline, LANE_PLANNER, wait->from_ns, wait->to_ns);
	put(timeline, ",\"cat\":\"wait\",\"name\":\"%s\"}", wait->what);
}

static void put_counters(struct quire_timeline *timeline,
                         const struct quire_event_command *command, int64_t num_pages)
{
	const struct quire_event_numbers *numbers = &command->numbers;

	put_event(timeline, "C", LANE_PLANNER, command->decided_ns);
	put(timeline,
	    ",\"name\":\"pages\",\"args\":{\"free\":%" PRId64 ",\"retiring\":%" PRId64
	    ",\"owned\":%" PRId64 "}}",
	    numbers->free, num_pages - numbers->free - numbers->owned, numbers->owned);
}

void quire_timeline_command(struct quire_timeline *timeline,
                            const struct quire_event_command *command,
                            enum quire_status status, int64_t num_pages)
{
	const char *name = command_names[command->kind];
	int lane = client_lane(timeline, command->client);

	put_slice(timeline, lane, command->given_ns, command->given_ns);
	put(timeline, ",\"cat\":\"client\",\"name\":\"%s %" PRIu64 "\"}",
	    command->kind == QUIRE_COMMAND_SUBMIT ? "submit" : name, command->ticket);
	put_slice(timeline, LANE_PLANNER, command->started_ns, command->decided_ns);
	put(timeline,
	    ",\"cat\":\"planner\",\"name\":\"%s %" PRIu64
	    "\",\"args\":{\"status\":\"%s\",\"rows\":%d,\"pages\":%" PRId64 "}}",
	    name, command->ticket, quire_status_name(status),
	    (int)command->counts.segments, command->numbers.taken);
	put_counters(timeline, command, num_pages);
	if (command->step != 0 && status == QUIRE_OK)
		put_flow(timeline, "s", LANE_PLANNER, command->started_ns,
		         command->ticket);
}

void quire_timeline_fate(struct quire_timeline *timeline,
                         const struct quire_event_fate *fate)
{
	static const char *const names[] = {
		[QUIRE_EVENT_PROMOTED] = "promote",
		[QUIRE_EVENT_ABANDONED] = "abandon",
		[QUIRE_EVENT_FAILED] = "failed",
		[QUIRE_EVENT_PROMOTED_ABOVE] = "promote",
	};

	put_event(timeline, "i", LANE_PLANNER, fate->decided_ns);
	put(timeline, ",\"s\":\"t\",\"cat\":\"planner\",\"name\":\"%s %" PRIu64 "\"}",
	    names[fate->head.kind], fate->ticket);
}

/* The device runs one step after another: this one since it was issued, or since the one
 * before has retired. */
void quire_timeline_step(struct quire_timeline *timeline, uint64_t ticket,
                         const struct quire_record_step *step)
{
	int64_t from_ns = step->issued_ns > timeline->retired_ns ? step->issued_ns
	                                                         : timeline->retired_ns;

	timeline->retired_ns = step->retired_ns;
	put_slice(timeline, LANE_EXECUTOR, step->started_ns, step->issued_ns);
	put(timeline, ",\"cat\":\"executor\",\"name\":\"issue %" PRIu64 "\"}", ticket);
	put_flow(timeline, "t", LANE_EXECUTOR, step->started_ns, ticket);
	put_slice(timeline, LANE_DEVICE, from_ns, step->retired_ns);
	put(timeline, ",\"cat\":\"device\",\"name\":\"step %" PRIu64 "\"}", ticket);
	put_flow(timeline, "f", LANE_DEVICE, from_ns, ticket);
}

/* ------------------------------------------------------------------ the file */

static enum quire_status refuse_failure(const struct quire_timeline *timeline, int error,
                                        struct quire_refusal *refusal_out)
{
	errno = error;
	return quire_fault(refusal_out, QUIRE_IO, 0, "cannot write to \"%s\": %m",
	                   timeline->path);
}

static void put_beginning(struct quire_timeline *timeline)
{
	put(timeline, "[{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":"
	              "{\"name\":\"quire\"}}");
	put_lane(timeline, LANE_PLANNER, "planner");
	put_lane(timeline, LANE_EXECUTOR, "executor");
	put_lane(timeline, LANE_DEVICE, "device");
}

/* It begins before it has its name. */
static enum quire_status open_file(struct quire_timeline *timeline,
                                   struct quire_target *target,
                                   struct quire_refusal *refusal_out)
{
	enum quire_status status;

	QUIRE_TRY(quire_target_open(target, timeline->path, refusal_out));
	timeline->fd = fcntl(target->fd, F_DUPFD_CLOEXEC, 0);
	if (timeline->fd < 0)
		timeline->error = errno;
	put_beginning(timeline);
	status = quire_timeline_flush(timeline, refusal_out);
	if (status != QUIRE_OK)
		quire_target_discard(target);
	return status;
}

static void end_memory(struct quire_timeline *timeline)
{
	free(timeline->path);
	free(timeline);
}

enum quire_status quire_timeline_create(const char *path, int64_t start_ns,
                                        struct quire_target *target,
                                        struct quire_timeline **timeline_out,
                                        struct quire_refusal *refusal_out)
{
	struct quire_timeline *timeline = calloc(1, sizeof(*timeline));
	enum quire_status status;

	if (timeline != NULL)
		timeline->path = strdup(path);
	if (timeline == NULL || timeline->path == NULL) {
		free(timeline);
		return quire_refuse_what(refusal_out, QUIRE_NO_MEMORY, "a timeline");
	}
	timeline->fd = -1;
	timeline->start_ns = start_ns;
	status = open_file(timeline, target, refusal_out);
	if (status != QUIRE_OK) {
		if (timeline->fd >= 0)
			close(timeline->fd);
		end_memory(timeline);
		return status;
	}
	*timeline_out = timeline;
	return QUIRE_OK;
}

enum quire_status quire_timeline_flush(struct quire_timeline *timeline,
                                       struct quire_refusal *refusal_out)
{
	hand_on(timeline);
	if (timeline->error != 0)
		return refuse_failure(timeline, timeline->error, refusal_out);
	return QUIRE_OK;
}

enum quire_status quire_timeline_end(struct quire_timeline *timeline,
                                     struct quire_refusal *refusal_out)
{
	enum quire_status status;

	put(timeline, "\n]\n");
	status = quire_timeline_flush(timeline, refusal_out);
	if (close(timeline->fd) != 0 && status == QUIRE_OK)
		status = refuse_failure(timeline, errno, refusal_out);
	end_memory(timeline);
	return status;
}
