/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_RUNTIME_CMD_IMAGE_IMPL_H
#define QUIRE_RUNTIME_CMD_IMAGE_IMPL_H
/*
 * What one step makes of the streams of its requests, worked out again as
 * docs/trace-format.md puts it, one page after another, from the streams before it and
 * the pages that it took.  Slow, and of nothing that the planner counts.
 *
 * Owners: without a prefix index only forks share pages, so all owners of a page are
 * streams of one request.
 */
#include <quire/plans/step.h>

#include <stdbool.h>
#include <stdint.h>

struct cmd_image_stream {
	bool is_there;
	int64_t length;
	int64_t released;
	int32_t num_pages; /* listed, spare ones included */
	int32_t *pages;
};

enum cmd_image_use {
	CMD_USE_PRE_FORK,
	CMD_USE_FIRST_WRITE,
	CMD_USE_GROWTH,
	CMD_USE_POST_FORK,
};

/* What a page was taken for. */
struct cmd_image_take {
	enum cmd_image_use use;
	int32_t part;  /* the segment, or the pair of its list */
	int32_t batch; /* the stream: place of its request, */
	int32_t label; /* and of its label */
	int32_t place; /* in the stream's list */
};

struct cmd_image_copy {
	int32_t source; /* where the bytes are before the list */
	int32_t target;
	int32_t tokens;
};

struct cmd_image_copies {
	struct cmd_image_copy *list;
	int32_t num;
	int32_t room;
};

/* A segment's stream as the step's tables show it. */
struct cmd_image_view {
	int32_t batch;
	int32_t label;
	int64_t length; /* after the span */
	int64_t released;
	const int32_t *pages;
};

/* The labels of a trace by place, "main" first, then as its lines name them, whatever
 * comes of the lines; those behind the first QUIRE_LABELS_MAX have no place. */
struct cmd_image_labels {
	char names[QUIRE_LABELS_MAX][QUIRE_LABEL_BYTES];
	int32_t num;
};

/* -1: it has no place. */
int32_t cmd_image_label(struct cmd_image_labels *labels, const char *label);

/* All labels that a step, or a command, names; false: one of them has no place. */
bool cmd_image_note_labels(struct cmd_image_labels *labels,
                           const struct quire_step *step);
bool cmd_image_note_command(struct cmd_image_labels *labels,
                            const struct quire_command *command);

struct cmd_image {
	const struct quire_step *step;   /* lent */
	struct cmd_image_labels *labels; /* lent */
	int32_t page_size;
	int32_t num_pages;  /* of the pool */
	uint64_t *requests; /* [num_requests], as they first appear in the segments */
	int32_t num_requests;
	int32_t *batch_of; /* [segments]: place of its request */
	/* [num_requests][labels], before the step: the caller's to fill, with pages from
	 * cmd_image_alloc. */
	struct cmd_image_stream *streams;
	const int32_t *taken; /* lent */
	int32_t num_taken;
	struct cmd_image_take *takes; /* [num_takes]: how many it should have taken */
	int32_t num_takes;
	int32_t takes_room;
	struct cmd_image_copies pre, post;
	struct cmd_image_view *views; /* [segments] */
	/* [num_pages]: place in its list of the copy onto a page, or -1. */
	int32_t *copy_of;
	void *blocks; /* all memory, freed at the end */
	bool failed;  /* memory ran out */
};

/* A step whose labels are noted.  false: no memory; end it all the same. */
bool cmd_image_init(struct cmd_image *image, const struct quire_step *step,
                    struct cmd_image_labels *labels, int32_t page_size,
                    int32_t num_pages);
void cmd_image_end(struct cmd_image *image);

/* Zeroed, the image's until it is ended; NULL: no memory, noted in `failed`. */
void *cmd_image_alloc(struct cmd_image *image, int64_t num, int64_t bytes);

struct cmd_image_stream *cmd_image_stream(const struct cmd_image *image, int32_t batch,
                                          int32_t label);

/* Do the step, with the pages that it took; where they are too few, -1 stands for them.
 * false: no memory. */
bool cmd_image_apply(struct cmd_image *image, const int32_t *taken, int32_t num_taken);

static inline int32_t cmd_image_pages_of(const struct cmd_image *image, int64_t tokens)
{
	return (int32_t)((tokens + image->page_size - 1) / image->page_size);
}

#endif
