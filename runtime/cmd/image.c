/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/image_impl.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOM_FIRST 64

/* ------------------------------------------------------------------ labels */

int32_t cmd_image_label(struct cmd_image_labels *labels, const char *label)
{
	const char *name = label != NULL ? label : QUIRE_LABEL_MAIN;

	if (labels->num == 0)
		snprintf(labels->names[labels->num++], QUIRE_LABEL_BYTES, "%s",
		         QUIRE_LABEL_MAIN);
	for (int32_t i = 0; i < labels->num; i++) {
		if (strcmp(labels->names[i], name) == 0)
			return i;
	}
	if (labels->num == QUIRE_LABELS_MAX)
		return -1;
	snprintf(labels->names[labels->num], QUIRE_LABEL_BYTES, "%s", name);
	return labels->num++;
}

static bool note_forks(struct cmd_image_labels *labels, const struct quire_fork *forks,
                       int32_t num)
{
	bool noted = true;

	for (int32_t i = 0; i < num; i++) {
		noted &= cmd_image_label(labels, forks[i].source) >= 0;
		noted &= cmd_image_label(labels, forks[i].target) >= 0;
	}
	return noted;
}

bool cmd_image_note_labels(struct cmd_image_labels *labels, const struct quire_step *step)
{
	bool noted = true;

	for (int32_t i = 0; i < step->num_segments; i++)
		noted &= cmd_image_label(labels, step->segments[i].label) >= 0;
	for (int32_t c = 0; c < step->num_combined; c++) {
		const struct quire_combined *combined = &step->combined[c];

		noted &= cmd_image_label(labels, combined->name) >= 0;
		for (int32_t i = 0; i < combined->num_labels; i++)
			noted &= cmd_image_label(labels, combined->labels[i]) >= 0;
	}
	noted &= note_forks(labels, step->pre_forks, step->num_pre_forks);
	return noted & note_forks(labels, step->post_forks, step->num_post_forks);
}

bool cmd_image_note_command(struct cmd_image_labels *labels,
                            const struct quire_command *command)
{
	switch (command->kind) {
	case QUIRE_COMMAND_SUBMIT:
		return cmd_image_note_labels(labels, command->step);
	case QUIRE_COMMAND_RESET:
	case QUIRE_COMMAND_REWIND:
	case QUIRE_COMMAND_RELEASE_FRONT:
		return cmd_image_label(labels, command->label) >= 0;
	default:
		return true;
	}
}

/* ------------------------------------------------------------------ memory */

struct block {
	struct block *next;
	max_align_t data[];
};

void *cmd_image_alloc(struct cmd_image *image, int64_t num, int64_t bytes)
{
	struct block *block = calloc(1, sizeof(*block) + (size_t)(num * bytes));

	image->failed |= block == NULL;
	if (block == NULL)
		return NULL;
	block->next = image->blocks;
	image->blocks = block;
	return block->data;
}

/* A list of @bytes each, with room for one more. */
static void *grow(struct cmd_image *image, void *list, int32_t num, int32_t *room,
                  int64_t bytes)
{
	int32_t more = *room == 0 ? ROOM_FIRST : *room * 2;
	void *grown;

	if (num < *room)
		return list;
	grown = cmd_image_alloc(image, more, bytes);
	if (grown == NULL)
		return NULL;
	if (num > 0)
		memcpy(grown, list, (size_t)(num * bytes));
	*room = more;
	return grown;
}

/* ------------------------------------------------------------------ init */

struct seen {
	uint64_t request;
	int32_t segment; /* that names it first */
	int32_t batch;
};

static int by_request(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;

	if (x->request != y->request)
		return x->request < y->request ? -1 : 1;
	return (x->segment > y->segment) - (x->segment < y->segment);
}

static int by_segment(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;

	return (x->segment > y->segment) - (x->segment < y->segment);
}

/* Requests in the order in which they first appear in the segments. */
static void number_requests(struct cmd_image *image, struct seen *seen)
{
	const struct quire_step *step = image->step;
	size_t n = (size_t)step->num_segments;
	int32_t num = 0;

	for (int32_t i = 0; i < step->num_segments; i++)
		seen[i] = (struct seen){step->segments[i].request, i, 0};
	qsort(seen, n, sizeof(*seen), by_request);
	/* Until all are numbered, the first segment stands for the request. */
	for (size_t i = 0; i < n; i++)
		seen[i].batch = i > 0 && seen[i].request == seen[i - 1].request
		                        ? seen[i - 1].batch
		                        : seen[i].segment;
	qsort(seen, n, sizeof(*seen), by_segment);
	for (int32_t i = 0; i < step->num_segments; i++) {
		if (seen[i].batch == i) {
			image->requests[num] = seen[i].request;
			image->batch_of[i] = num++;
		} else {
			image->batch_of[i] = image->batch_of[seen[i].batch];
		}
	}
	image->num_requests = num;
}

bool cmd_image_init(struct cmd_image *image, const struct quire_step *step,
                    struct cmd_image_labels *labels, int32_t page_size, int32_t num_pages)
{
	struct seen *seen;

	*image = (struct cmd_image){
		.step = step,
		.labels = labels,
		.page_size = page_size,
		.num_pages = num_pages,
	};
	seen = cmd_image_alloc(image, step->num_segments, sizeof(*seen));
	image->requests = cmd_image_alloc(image, step->num_segments, 8);
	image->batch_of = cmd_image_alloc(image, step->num_segments, 4);
	image->views = cmd_image_alloc(image, step->num_segments, sizeof(*image->views));
	image->copy_of = cmd_image_alloc(image, num_pages, 4);
	if (image->failed)
		return false;
	number_requests(image, seen);
	image->streams =
		cmd_image_alloc(image, (int64_t)image->num_requests * labels->num,
	                        sizeof(*image->streams));
	return !image->failed;
}

void cmd_image_end(struct cmd_image *image)
{
	while (image->blocks != NULL) {
		struct block *block = image->blocks;

		image->blocks = block->next;
		free(block);
	}
}

struct cmd_image_stream *cmd_image_stream(const struct cmd_image *image, int32_t batch,
                                          int32_t label)
{
	return &image->streams[(int64_t)batch * image->labels->num + label];
}

/* ------------------------------------------------------------------ pages */

static int32_t take(struct cmd_image *image, const struct cmd_image_take *what)
{
	struct cmd_image_take *takes = grow(image, image->takes, image->num_takes,
	                                    &image->takes_room, sizeof(*takes));
	int32_t n = image->num_takes;

	if (takes == NULL)
		return -1;
	image->takes = takes;
	takes[image->num_takes++] = *what;
	return n < image->num_taken ? image->taken[n] : -1;
}

/* A list of @num pages that begins with those that the stream has. */
static int32_t *longer(struct cmd_image *image, const struct cmd_image_stream *stream,
                       int32_t num)
{
	int32_t *pages = cmd_image_alloc(image, num, 4);

	if (pages != NULL && stream->num_pages > 0)
		memcpy(pages, stream->pages, (size_t)stream->num_pages * 4);
	return pages;
}

static bool is_page(const struct cmd_image *image, int32_t page)
{
	return page >= 0 && page < image->num_pages;
}

/* A copy at the end of a list.  What an earlier one of the list fills stands for where
 * its bytes are before the list. */
static void copy(struct cmd_image *image, struct cmd_image_copies *copies, int32_t source,
                 int32_t target, int32_t tokens)
{
	struct cmd_image_copy *list =
		grow(image, copies->list, copies->num, &copies->room, sizeof(*list));

	if (list == NULL)
		return;
	copies->list = list;
	if (is_page(image, source) && image->copy_of[source] >= 0)
		source = list[image->copy_of[source]].source;
	if (is_page(image, target))
		image->copy_of[target] = copies->num;
	list[copies->num++] = (struct cmd_image_copy){source, target, tokens};
}

static void start_copies(struct cmd_image *image)
{
	for (int32_t i = 0; i < image->num_pages; i++)
		image->copy_of[i] = -1;
}

/* Names of a page among a request's streams. */
static int32_t owners(const struct cmd_image *image, int32_t batch, int32_t page)
{
	int32_t n = 0;

	for (int32_t label = 0; label < image->labels->num; label++) {
		const struct cmd_image_stream *stream =
			cmd_image_stream(image, batch, label);

		for (int32_t i = 0; i < stream->num_pages; i++)
			n += stream->pages[i] == page;
	}
	return n;
}

/* ------------------------------------------------------------------ apply */

static void fork_one(struct cmd_image *image, struct cmd_image_take what,
                     const struct quire_fork *fork, struct cmd_image_copies *copies)
{
	int32_t ps = image->page_size;
	bool copies_all = (image->step->flags & QUIRE_STEP_COPY_FORKS) != 0;
	const struct cmd_image_stream *source = cmd_image_stream(
		image, what.batch, cmd_image_label(image->labels, fork->source));
	struct cmd_image_stream *target = cmd_image_stream(image, what.batch, what.label);
	struct cmd_image_stream made = *source;
	int32_t shared = copies_all ? 0 : (int32_t)(source->length / ps);

	if (!source->is_there)
		return;
	made.num_pages = cmd_image_pages_of(image, source->length);
	made.pages = cmd_image_alloc(image, made.num_pages, 4);
	for (int32_t i = 0; i < made.num_pages && !image->failed; i++) {
		int64_t left = source->length - (int64_t)i * ps;

		made.pages[i] = source->pages[i];
		if (i < shared)
			continue;
		what.place = i;
		made.pages[i] = take(image, &what);
		copy(image, copies, source->pages[i], made.pages[i],
		     left < ps ? (int32_t)left : ps);
	}
	*target = made;
}

static void fork_all(struct cmd_image *image, enum cmd_image_use use,
                     const struct quire_fork *forks, int32_t num,
                     struct cmd_image_copies *copies)
{
	struct cmd_image_take what = {.use = use};

	for (what.part = 0; what.part < num; what.part++) {
		what.label = cmd_image_label(image->labels, forks[what.part].target);
		for (what.batch = 0; what.batch < image->num_requests && !image->failed;
		     what.batch++)
			fork_one(image, what, &forks[what.part], copies);
	}
}

/* The pages of a segment that writes. */
static void extend(struct cmd_image *image, struct cmd_image_stream *stream,
                   struct cmd_image_take what, int32_t span)
{
	int32_t first = (int32_t)(stream->length / image->page_size);
	int32_t end = cmd_image_pages_of(image, stream->length + span);
	int32_t *pages =
		longer(image, stream, end > stream->num_pages ? end : stream->num_pages);

	if (pages == NULL)
		return;
	if (first < stream->num_pages &&
	    owners(image, what.batch, stream->pages[first]) > 1) {
		what.use = CMD_USE_FIRST_WRITE;
		what.place = first;
		pages[first] = take(image, &what);
		copy(image, &image->pre, stream->pages[first], pages[first],
		     (int32_t)(stream->length % image->page_size));
	}
	what.use = CMD_USE_GROWTH;
	for (; stream->num_pages < end; stream->num_pages++) {
		what.place = stream->num_pages;
		pages[stream->num_pages] = take(image, &what);
	}
	stream->pages = pages;
}

static void do_segment(struct cmd_image *image, int32_t i)
{
	const struct quire_segment *segment = &image->step->segments[i];
	const struct cmd_image_take what = {
		.part = i,
		.batch = image->batch_of[i],
		.label = cmd_image_label(image->labels, segment->label),
	};
	struct cmd_image_stream *stream = cmd_image_stream(image, what.batch, what.label);

	stream->is_there = true;
	if (segment->span > 0)
		extend(image, stream, what, segment->span);
	image->views[i] = (struct cmd_image_view){
		.batch = what.batch,
		.label = what.label,
		.length = stream->length + segment->span,
		.released = stream->released,
		.pages = stream->pages,
	};
	if ((image->step->flags & QUIRE_STEP_NO_COMMIT) == 0)
		stream->length += segment->span;
}

bool cmd_image_apply(struct cmd_image *image, const int32_t *taken, int32_t num_taken)
{
	const struct quire_step *step = image->step;

	image->taken = taken;
	image->num_taken = num_taken;
	start_copies(image);
	fork_all(image, CMD_USE_PRE_FORK, step->pre_forks, step->num_pre_forks,
	         &image->pre);
	for (int32_t i = 0; i < step->num_segments && !image->failed; i++)
		do_segment(image, i);
	start_copies(image);
	fork_all(image, CMD_USE_POST_FORK, step->post_forks, step->num_post_forks,
	         &image->post);
	return !image->failed;
}
