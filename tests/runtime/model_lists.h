/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_TESTS_MODEL_LISTS_H
#define QUIRE_TESTS_MODEL_LISTS_H
/* Random command lists for small runtimes: mostly sensible, with every kind of fault. */
#include "model_order.h"

#include <stdint.h>

/* xorshift64*: the same numbers everywhere. */
struct dice {
	uint64_t state; /* never 0 */
};

static inline void dice_seed(struct dice *dice, uint64_t seed)
{
	dice->state = seed * 0x9e3779b97f4a7c15ull + 0x1234567;
	if (dice->state == 0)
		dice->state = 1;
}

static inline uint64_t dice_roll(struct dice *dice)
{
	dice->state ^= dice->state >> 12;
	dice->state ^= dice->state << 25;
	dice->state ^= dice->state >> 27;
	return (dice->state * 0x2545f4914f6cdd1dull) >> 16;
}

/* 0..n-1 */
static inline int32_t dice_below(struct dice *dice, int32_t n)
{
	return (int32_t)(dice_roll(dice) % (uint64_t)n);
}

static inline bool dice_percent(struct dice *dice, int32_t percent)
{
	return dice_below(dice, 100) < percent;
}

#define LIST_SEGMENTS_MAX (MODEL_ROWS_MAX + 1)
#define LIST_COMBINED_MAX 2
#define LIST_FORKS_MAX    4

/* A command with all it points to; not to be moved. */
struct list_command {
	bool dropped; /* left out, while a failing list is made smaller */
	struct quire_command command;
	int32_t target; /* PROMOTE, ABANDON: the place of a command in the list */
	struct quire_step step;
	struct quire_segment segments[LIST_SEGMENTS_MAX];
	struct quire_combined combined[LIST_COMBINED_MAX];
	const char *members[LIST_COMBINED_MAX][MODEL_LABELS + 1];
	struct quire_fork pre_forks[LIST_FORKS_MAX];
	struct quire_fork post_forks[LIST_FORKS_MAX];
	struct quire_work work;
};

struct list {
	uint64_t seed;
	struct quire_runtime_config config; /* cache and callbacks are the runner's */
	int32_t num_pages;
	int32_t page_size;
	int32_t num_commands;
	struct list_command *commands;
};

/* What a list may have in it. */
#define LIST_FORKS       (1u << 0)
#define LIST_WINDOWS     (1u << 1) /* rewind and release_front */
#define LIST_SPECULATIVE (1u << 2)
#define LIST_WIDE        (1u << 3) /* no limit but that of a stream's tokens */
#define LIST_ALL         (LIST_FORKS | LIST_WINDOWS | LIST_SPECULATIVE)
#define LIST_RECORDED    (1u << 4) /* of its run: it is recorded, and replayed */

/*
 * list_make - a list of a seed; free it with list_free
 * @features: LIST_*
 */
void list_make(struct list *list, uint64_t seed, int32_t num_commands, uint32_t features);
void list_free(struct list *list);

/* The ids that lists use; the last one is never opened. */
#define LIST_IDS 5
extern const uint64_t list_ids[LIST_IDS + 1];

/* list_step - a random step, for the state of `m`; @no_wait: it may ask not to wait */
void list_step(struct list_command *c, struct dice *dice, struct model *m, bool no_wait,
               uint32_t features);

/*
 * list_share - one stage of what seldom comes about by itself: full pages are shared, one
 * of their streams goes back into them, both write
 * @id:      the request, the same in all stages
 */
enum {
	LIST_SHARE_WRITE = 1, /* the stages in falling order */
	LIST_SHARE_REWIND,
	LIST_SHARE_FORK,
};
void list_share(struct list_command *c, struct dice *dice, struct model *m, int32_t stage,
                uint64_t id);

/* Parts of random commands. */
const char *list_label(struct dice *dice);
uint64_t list_id(struct dice *dice, struct model *m);
int32_t list_between(struct dice *dice, int32_t least, int32_t most);

/* list_print - the commands that are not dropped, one a line, on standard output */
void list_print(const struct list *list);

/*
 * list_trace - the same as a plan trace; "-" is standard output
 * What no trace can have in it is left out, and said on standard output.
 */
void list_trace(const struct list *list, const char *path);

#endif
