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
 *   a page is in the fifo once, or listed by one stream or more, by each once
 *   num_pages of a stream >= ceil(length / page_size)
 *
 * The owners of a page are not counted anywhere: they are the streams that list it.  A
 * state is copied to undo a step, never undone.
 */
#include "model_image.h"

#include <quire.h>

/* The runtimes compared are small: bounds of what a list may use. */
#define MODEL_PAGES_MAX     24
#define MODEL_PAGE_SIZE_MAX 4
#define MODEL_REQUESTS_MAX  6
#define MODEL_ROWS_MAX      8
#define MODEL_TABLES_MAX    6
/* Tokens of a stream, released ones included; longer ones are a LIMIT in every list. */
#define MODEL_SEQ_MAX 160
/* A step is first tried with pages that do not exist: so many may a stream list then. */
#define MODEL_LISTED_MAX MODEL_SEQ_MAX
#define MODEL_TOKENS_MAX (MODEL_PAGES_MAX * MODEL_PAGE_SIZE_MAX)
/* (step, length) pairs of a stream: 2 * depth + 1 for the depths of lists. */
#define MODEL_PAIRS_MAX 11

struct model_pair {
	uint32_t step;
	int32_t length;
};

struct model_stream {
	int32_t label; /* index in model_labels */
	int32_t num_pages;
	int16_t pages[MODEL_LISTED_MAX];
	int64_t length;
	int64_t released;
	uint64_t changes;  /* commands that changed it */
	uint64_t touched;  /* the last of them, by its number */
	uint64_t step;     /* newest step that it was changed at */
	uint64_t born;     /* the command that made it, by its number */
	int32_t num_pairs; /* oldest first, steps rise strictly */
	struct model_pair pairs[MODEL_PAIRS_MAX];
	uint32_t content
		[MODEL_TOKENS_MAX]; /* what a reader must find in its live tokens */
};

struct model_request {
	bool open;
	uint64_t id;
	int32_t num_streams; /* in creation order */
	struct model_stream streams[MODEL_LABELS];
};

/* Counters under the names of struct quire_runtime_stats. */
struct model_counts {
	uint64_t commands; /* applied: the number of the next one is one more */
	uint64_t steps_planned;
	uint64_t tokens;
	uint64_t copies;
	uint64_t first_writes;
	uint64_t pages_taken;
	uint64_t pages_given; /* given up: the executor follows */
	int64_t pages_owned;
	int64_t pages_peak;
	int64_t requests_open;
};

/* Pages that a step takes, in take order: so many for one stream, then the next. */
struct model_take {
	uint64_t request;
	int32_t label;
	int32_t count;
};

#define MODEL_TAKES_MAX 256

struct model {
	struct quire_runtime_config config; /* no 0 that stands for another value */
	int32_t num_pages;
	int32_t page_size;
	int32_t fifo[MODEL_PAGES_MAX]; /* oldest first */
	int32_t num_fifo;
	struct model_request requests[MODEL_REQUESTS_MAX];
	struct model_counts counts;
};

/* One page copy of a plan. */
struct model_copy {
	int32_t source;
	int32_t target;
	int32_t end;
};

/* Every copy has a page of its own as target. */
#define MODEL_COPIES_MAX MODEL_PAGES_MAX

/* What the model says of one command. */
struct model_answer {
	struct quire_refusal refusal; /* status QUIRE_OK when it is not refused */
	bool form;    /* refused for its form: the call itself may answer so */
	int32_t need; /* pages that a step takes when it runs */
	int32_t pages_taken;
	int32_t pages_released;
	int32_t num_pre, num_post; /* copies */
	int32_t first_writes;      /* of the former */
	uint64_t step;
	struct image image; /* of a step that runs */
	struct image
		reads; /* what it finds in its rows' tokens, row by row in table order */
};

/* The segments of one table, in row order. */
struct model_table {
	int32_t name;
	int32_t num_rows;
	int32_t rows[MODEL_ROWS_MAX];
};

/* A step on its way through the rules: tried first, then done. */
struct model_run {
	struct model *m;
	const struct quire_step *step;
	uint64_t ticket;
	bool trying; /* pages are made up; what is taken is noted */
	int32_t num_takes;
	struct model_take takes[MODEL_TAKES_MAX];
	int32_t need;
	int32_t num_pre, num_post, first_writes;
	struct model_copy pre[MODEL_COPIES_MAX];
	struct model_copy post[MODEL_COPIES_MAX];
	struct model_answer *answer;
};

void model_init(struct model *m, const struct quire_runtime_config *config,
                int32_t num_pages, int32_t page_size);

/*
 * model_apply - one command more, of those that are not about a speculative step's fate
 * @ticket:  what its tokens are known by
 * @again:   the runtime answered AGAIN: follow it if a step without waiting may be told
 *           so
 */
void model_apply(struct model *m, const struct quire_command *command, uint64_t ticket,
                 bool again, struct model_answer *answer);

/* model_submit - model_apply of a step */
void model_submit(struct model *m, const struct quire_step *step, uint64_t ticket,
                  bool again, struct model_answer *answer);

/* model_tables - which rows form which tables; returns the number of tables */
int32_t model_tables(const struct quire_step *step, struct model_table *tables);

/* model_plan - tables and reads of a step whose streams have their pages, before its
 * commit; the copies of `run` as far as they are known */
void model_plan(struct model_run *run);

/* model_plan_copies - the copies of a step that is done, into its image */
void model_plan_copies(struct model_run *run);

/* ------------------------------------------------------------------ of streams */

/* model_fork_all - a fork list, for every request of the step; false: refused */
bool model_fork_all(struct model_run *run, const struct quire_fork *forks, int32_t n,
                    bool post);

/* model_extend - the pages that one segment writes; false: refused */
bool model_extend(struct model_run *run, int32_t row);

/* model_take - the next page of a step, for a stream */
int32_t model_take(struct model_run *run, uint64_t request, int32_t label);

/* model_owners - how many streams list a page */
int32_t model_owners(const struct model *m, int32_t page);

/* model_give_unowned - the pages of a list that nobody lists any more, in its order */
void model_give_unowned(struct model *m, const int16_t *pages, int32_t n);

/* model_changed - a command changed a stream: generation, and what readers are told */
void model_changed(struct model *m, struct model_stream *stream);

/* model_length_at - a stream's length as the newest change at or before a step left it */
int64_t model_length_at(const struct model_stream *stream, uint64_t step);

/* model_token - what a token holds */
uint32_t model_token(uint64_t ticket, uint64_t request, int32_t label, int64_t position);

/* model_find_request, model_find_stream - NULL when it is not there */
struct model_request *model_find_request(struct model *m, uint64_t id);
struct model_stream *model_find_stream(struct model_request *request, int32_t label);

/* model_make_stream - a label that is not there, with a LIMIT when there are too many */
struct model_stream *model_make_stream(struct model *m, struct model_request *request,
                                       int32_t label, struct model_answer *answer);

/* The stream of a segment, its request being open; NULL: it is not there. */
struct model_stream *model_segment_stream(struct model *m,
                                          const struct quire_segment *segment);

/* ------------------------------------------------------------------ of refusals */

struct quire_refusal *model_refuse(struct model_answer *answer, enum quire_status status,
                                   const char *what);
void model_name_stream(struct model_answer *answer, uint64_t request, int32_t label);

/* LIMIT when got exceeds the bound. */
bool model_refuse_limit(struct model_answer *answer, const char *what, int64_t got,
                        int64_t expected);

static inline int64_t ceil_div(int64_t a, int64_t b)
{
	return (a + b - 1) / b;
}

#endif
