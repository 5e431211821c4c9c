/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_TESTS_MODEL_RULES_H
#define QUIRE_TESTS_MODEL_RULES_H
/*
 * The sequential model: what every command means when nothing runs beside it.
 *
 * One state, one command after the other, a plain FIFO of pages.  A page that is given up
 * joins the FIFO at once, so the model never waits; that the runtime may have to is
 * exactly what must not show.  Written from the documented rules, not from the runtime.
 *
 *   fifo + owned = all pages                    (the sink counts as owned)
 *   a page is in the fifo or listed by one stream, once
 *   num_pages of a stream >= ceil(length / page_size)
 */
#include "model_image.h"

#include <quire.h>

/* The runtimes compared are small: bounds of what a list may use. */
#define MODEL_PAGES_MAX    24
#define MODEL_REQUESTS_MAX 6
#define MODEL_ROWS_MAX     8
#define MODEL_TABLES_MAX   6

struct model_stream {
	int32_t label; /* index in model_labels */
	int32_t num_pages;
	int32_t pages[MODEL_PAGES_MAX];
	int64_t length;
	uint64_t changes; /* commands that changed it */
	uint64_t step;    /* newest step that wrote to it */
	bool based;       /* its first generation is known: base */
	uint64_t base;
};

struct model_request {
	bool open;
	uint64_t id;
	int32_t num_streams; /* in creation order */
	struct model_stream streams[MODEL_LABELS];
};

/* Counters under the names of struct quire_runtime_stats. */
struct model_counts {
	uint64_t commands;
	uint64_t refused;
	uint64_t steps_planned;
	uint64_t tokens;
	uint64_t pages_taken;
	uint64_t pages_given; /* given up: the executor follows */
	int64_t pages_owned;
	int64_t pages_peak;
	int64_t requests_open;
};

struct model {
	struct quire_runtime_config config; /* no 0 that stands for another value */
	int32_t num_pages;
	int32_t page_size;
	int32_t fifo[MODEL_PAGES_MAX]; /* oldest first */
	int32_t num_fifo;
	struct model_request requests[MODEL_REQUESTS_MAX];
	/* The highest generation that a stream of this name was seen with. */
	uint64_t last_generation[MODEL_REQUESTS_MAX][MODEL_LABELS];
	struct model_counts counts;
};

/* What the model says of one command. */
struct model_answer {
	struct quire_refusal refusal; /* status QUIRE_OK when it is not refused */
	bool form;    /* refused for its form: the call itself may answer so */
	int32_t need; /* pages that a step takes when it runs */
	int32_t pages_taken;
	uint64_t step;
	struct image image; /* of a step that runs */
};

/* The segments of one table, in row order. */
struct model_table {
	int32_t name;
	int32_t num_rows;
	int32_t rows[MODEL_ROWS_MAX];
};

void model_init(struct model *m, const struct quire_runtime_config *config,
                int32_t num_pages, int32_t page_size);

/*
 * model_apply - one command more
 * @again:   the runtime answered AGAIN: follow it if a step without waiting may be told
 *           so
 */
void model_apply(struct model *m, const struct quire_command *command, bool again,
                 struct model_answer *answer);

/* model_tables - which rows form which tables; returns the number of tables */
int32_t model_tables(const struct quire_step *step, struct model_table *tables);

/* model_plan - the tables of a step whose streams have their pages, before its commit */
void model_plan(struct model *m, const struct quire_step *step, struct image *image);

/* model_length_after - the length of a segment's stream with its span */
int64_t model_length_after(struct model *m, const struct quire_segment *segment);

static inline int64_t ceil_div(int64_t a, int64_t b)
{
	return (a + b - 1) / b;
}

/* model_find_request, model_find_stream - NULL when it is not there */
struct model_request *model_find_request(struct model *m, uint64_t id);
struct model_stream *model_find_stream(struct model_request *request, int32_t label);

#endif
