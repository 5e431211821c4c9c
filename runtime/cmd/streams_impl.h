/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_RUNTIME_CMD_STREAMS_IMPL_H
#define QUIRE_RUNTIME_CMD_STREAMS_IMPL_H
/*
 * What replay --check knows of each stream as commands are given (what it holds is known
 * later: content_impl.h).
 *
 * A stream's *life* goes from its first step, or a fork onto it, to a reset, a close or
 * another fork onto it.  The trace is walked
 * twice: the first walk counts the steps of every life, so that the second knows a life's
 * last step when it comes.  Lives are numbered as they begin, the same in both walks.
 */
#include <quire/plans/step.h>

#include <stdbool.h>
#include <stdint.h>

struct cmd_stream {
	uint64_t request;
	int32_t label;
	int64_t life;
	int32_t steps;      /* of this life, so far */
	int32_t since_read; /* of them, since one that reads it whole */
	int64_t written;    /* tokens of this life's pattern that steps were given */
	uint64_t
		read_by; /* newest command that reads it, from 1; 0: none, or on record */
	bool unread;     /* something was written or forked since */
};

struct cmd_streams {
	void *tree; /* of struct cmd_stream, by (request, label) */
	char labels[QUIRE_LABELS_MAX][QUIRE_LABEL_BYTES];
	int32_t num_labels;
	int32_t *steps; /* [life]: steps in all; counted in the first walk */
	int64_t steps_room;
	int64_t lives; /* begun so far */
	bool counting; /* the first walk */
};

/* Forget all streams and begin the walk that follows the first. */
void cmd_streams_rewind(struct cmd_streams *streams);
void cmd_streams_end(struct cmd_streams *streams);

/* The id of a label; -1: there are too many, a runtime refuses whatever names it. */
int32_t cmd_streams_label(struct cmd_streams *streams, const char *label);

/* NULL: there is none. */
struct cmd_stream *cmd_streams_find(struct cmd_streams *streams, uint64_t request,
                                    int32_t label);

/* One more step of a stream, whose life begins with it if need be; NULL: no memory. */
struct cmd_stream *cmd_streams_step(struct cmd_streams *streams, uint64_t request,
                                    int32_t label);

/* A fork onto a stream that has none: its life begins; NULL: no memory. */
struct cmd_stream *cmd_streams_begin(struct cmd_streams *streams, uint64_t request,
                                     int32_t label);

/* In the second walk: is the step just counted the last one of its life? */
bool cmd_streams_is_last(const struct cmd_streams *streams,
                         const struct cmd_stream *stream);

/* A stream's life ends; its next step begins another.  NULL is a no-op. */
void cmd_streams_drop(struct cmd_streams *streams, struct cmd_stream *stream);

/* Any one stream; NULL: none is left. */
struct cmd_stream *cmd_streams_any(struct cmd_streams *streams);

#endif
