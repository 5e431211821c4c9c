/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/streams_impl.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
	const struct cmd_stream *x = a, *y = b;

	if (x->request != y->request)
		return x->request < y->request ? -1 : 1;
	return (x->label > y->label) - (x->label < y->label);
}

void cmd_streams_rewind(struct cmd_streams *streams)
{
	tdestroy(streams->tree, free);
	streams->tree = NULL;
	streams->lives = 0;
	streams->counting = false;
}

void cmd_streams_end(struct cmd_streams *streams)
{
	tdestroy(streams->tree, free);
	free(streams->steps);
}

int32_t cmd_streams_label(struct cmd_streams *streams, const char *label)
{
	const char *name = label != NULL ? label : QUIRE_LABEL_MAIN;

	for (int32_t i = 0; i < streams->num_labels; i++) {
		if (strcmp(streams->labels[i], name) == 0)
			return i;
	}
	if (streams->num_labels == QUIRE_LABELS_MAX || strlen(name) >= QUIRE_LABEL_BYTES)
		return -1;
	strcpy(streams->labels[streams->num_labels], name);
	return streams->num_labels++;
}

struct cmd_stream *cmd_streams_find(struct cmd_streams *streams, uint64_t request,
                                    int32_t label)
{
	const struct cmd_stream key = {.request = request, .label = label};
	struct cmd_stream **found = tfind(&key, &streams->tree, compare);

	return found != NULL ? *found : NULL;
}

/* Room for the step count of one more life. */
static bool grow(struct cmd_streams *streams)
{
	int64_t room = streams->steps_room > 0 ? streams->steps_room * 2 : 1024;
	int32_t *steps;

	if (streams->lives < streams->steps_room)
		return true;
	steps = realloc(streams->steps, (size_t)room * sizeof(*steps));
	if (steps == NULL)
		return false;
	memset(steps + streams->steps_room, 0,
	       (size_t)(room - streams->steps_room) * sizeof(*steps));
	streams->steps = steps;
	streams->steps_room = room;
	return true;
}

struct cmd_stream *cmd_streams_begin(struct cmd_streams *streams, uint64_t request,
                                     int32_t label)
{
	struct cmd_stream *stream = malloc(sizeof(*stream));

	if (stream == NULL)
		return NULL;
	*stream = (struct cmd_stream){
		.request = request,
		.label = label,
		.life = streams->lives,
	};
	if (!grow(streams) || tsearch(stream, &streams->tree, compare) == NULL) {
		free(stream);
		return NULL;
	}
	streams->lives++;
	return stream;
}

struct cmd_stream *cmd_streams_step(struct cmd_streams *streams, uint64_t request,
                                    int32_t label)
{
	struct cmd_stream *stream = cmd_streams_find(streams, request, label);

	if (stream == NULL)
		stream = cmd_streams_begin(streams, request, label);
	if (stream == NULL)
		return NULL;
	stream->steps++;
	stream->since_read++;
	if (streams->counting)
		streams->steps[stream->life]++;
	return stream;
}

bool cmd_streams_is_last(const struct cmd_streams *streams,
                         const struct cmd_stream *stream)
{
	return stream->steps == streams->steps[stream->life];
}

void cmd_streams_drop(struct cmd_streams *streams, struct cmd_stream *stream)
{
	if (stream == NULL)
		return;
	tdelete(stream, &streams->tree, compare);
	free(stream);
}

struct cmd_stream *cmd_streams_any(struct cmd_streams *streams)
{
	/* A tree is its root node, and a node begins with its item. */
	return streams->tree != NULL ? *(struct cmd_stream **)streams->tree : NULL;
}
