/* SPDX-License-Identifier: MIT */
/* Random steps: mostly sensible, with every kind of fault. */
#include "config.h"

#include "model_lists.h"

int32_t list_between(struct dice *dice, int32_t least, int32_t most)
{
	return least + dice_below(dice, most - least + 1);
}

const char *list_label(struct dice *dice)
{
	int32_t label = dice_percent(dice, 45) ? 0 : dice_below(dice, MODEL_LABELS);

	return label == 0 && dice_percent(dice, 50) ? NULL : model_labels[label];
}

uint64_t list_id(struct dice *dice, struct model *m)
{
	uint64_t id = list_ids[dice_below(dice, LIST_IDS)];

	for (int32_t tries = 0; tries < 8 && model_find_request(m, id) == NULL; tries++)
		id = list_ids[dice_below(dice, LIST_IDS)];
	return dice_percent(dice, 1) ? list_ids[LIST_IDS] : id;
}

static int32_t random_span(struct dice *dice, int32_t page_size)
{
	int32_t kind = dice_below(dice, 100);

	if (kind < 10)
		return 0;
	if (kind < 55)
		return 1;
	if (kind < 92)
		return list_between(dice, 1, 2 * page_size);
	if (kind < 98)
		return list_between(dice, 1, 6 * page_size);
	return kind == 98 ? INT32_MAX : list_between(dice, 30, 100);
}

/* -1: there is no such stream. */
static int32_t length_of(struct model *m, uint64_t id, int32_t label)
{
	struct model_request *request = model_find_request(m, id);
	struct model_stream *stream =
		request == NULL ? NULL : model_find_stream(request, label);

	return stream == NULL ? -1 : (int32_t)stream->length;
}

static bool named_before(const struct list_command *c, int32_t row)
{
	for (int32_t i = 0; i < row; i++)
		if (c->segments[i].request == c->segments[row].request &&
		    model_label(c->segments[i].label) ==
		            model_label(c->segments[row].label))
			return true;
	return false;
}

static void make_segments(struct list_command *c, struct dice *dice, struct model *m)
{
	int32_t most = dice_percent(dice, 60) ? 2 : m->config.rows_max;
	int32_t wanted = dice_percent(dice, 45) ? 1 : list_between(dice, 1, most);
	int32_t n = 0;

	for (int32_t i = 0; i < wanted; i++) {
		struct quire_segment *segment = &c->segments[n];

		segment->request = list_id(dice, m);
		segment->label = list_label(dice);
		segment->span = random_span(dice, m->page_size);
		segment->at = length_of(m, segment->request, model_label(segment->label));
		if (segment->at < 0)
			segment->at = 0;
		if (dice_percent(dice, 15))
			segment->at = QUIRE_AT_ANY;
		segment->tag = dice_roll(dice) << 20;
		if (!named_before(c, n))
			n++;
	}
	c->step.segments = c->segments;
	c->step.num_segments = n;
}

/* Each label of the step goes into the first list, the second or neither. */
static void make_combined(struct list_command *c, struct dice *dice)
{
	struct quire_combined *combined = c->combined;
	int32_t place_of[MODEL_LABELS];

	for (int32_t label = 0; label < MODEL_LABELS; label++)
		place_of[label] = dice_below(dice, 3);
	for (int32_t k = 0; k < LIST_COMBINED_MAX; k++) {
		combined[k].labels = c->members[k];
		combined[k].num_labels = 0;
		combined[k].name = model_labels[MODEL_LABELS + k];
	}
	for (int32_t i = c->step.num_segments - 1; i >= 0; i--) {
		int32_t label = model_label(c->segments[i].label), k = place_of[label];

		if (k >= LIST_COMBINED_MAX)
			continue;
		place_of[label] = LIST_COMBINED_MAX;
		c->members[k][combined[k].num_labels++] = model_labels[label];
		if (dice_percent(dice, 10))
			combined[k].name = model_labels[label];
	}
	c->step.combined = combined[0].num_labels > 0 ? combined : combined + 1;
	c->step.num_combined =
		(combined[0].num_labels > 0) + (combined[1].num_labels > 0);
}

/* The smallest bucket that every table of the step fits in. */
static void least_bucket(const struct quire_step *step, int32_t *rows_out,
                         int32_t *tokens_out)
{
	struct model_table tables[MODEL_TABLES_MAX];
	int32_t n = model_tables(step, tables);
	int64_t rows = 1, tokens = 1;

	for (int32_t t = 0; t < n; t++) {
		int64_t sum = 0;

		for (int32_t i = 0; i < tables[t].num_rows; i++)
			sum += step->segments[tables[t].rows[i]].span;
		tokens = sum > tokens ? sum : tokens;
		rows = tables[t].num_rows > rows ? tables[t].num_rows : rows;
	}
	*rows_out = (int32_t)rows;
	*tokens_out = tokens > 1000 ? 1000 : (int32_t)tokens;
}

static void make_bucket(struct list_command *c, struct dice *dice)
{
	least_bucket(&c->step, &c->step.bucket_rows, &c->step.bucket_tokens);
	c->step.bucket_rows += dice_below(dice, 3);
	c->step.bucket_tokens += dice_below(dice, 5);
}

enum fault {
	FAULT_NO_SEGMENTS,
	FAULT_SPAN,
	FAULT_AT,
	FAULT_TWICE,
	FAULT_ROWS,
	FAULT_FLAGS,
	FAULT_WORK,
	FAULT_MEMBER,
	FAULT_EMPTY,
	FAULT_MEMBER_TWICE,
	FAULT_FORK_SELF,
	FAULT_FORK_TWICE,
	FAULT_BUCKET_ROWS,
	FAULT_BUCKET_TOKENS,
	FAULT_BUCKET_NEGATIVE,
	FAULTS,
};

static void combine_one(struct list_command *c, const char *first, const char *second)
{
	c->members[0][0] = first;
	c->members[0][1] = second;
	c->combined[0].name = "both";
	c->combined[0].labels = c->members[0];
	c->combined[0].num_labels = second == NULL ? 1 : 2;
	c->step.combined = c->combined;
	c->step.num_combined = 1;
}

/* One pair more, before or after: the first pair of a step says which. */
static void add_fork(struct list_command *c, bool post, const char *source,
                     const char *target)
{
	struct quire_fork *forks = post ? c->post_forks : c->pre_forks;
	int32_t *n = post ? &c->step.num_post_forks : &c->step.num_pre_forks;

	forks[*n] = (struct quire_fork){.source = source, .target = target};
	(*n)++;
	c->step.pre_forks = c->pre_forks;
	c->step.post_forks = c->post_forks;
}

/* Pairs that may be in a chain: a label that was a target is a likely source. */
static void make_forks(struct list_command *c, struct dice *dice, bool post)
{
	int32_t wanted = dice_percent(dice, 60) ? 1 : list_between(dice, 2, 3);
	int32_t source = dice_percent(dice, 60) ? 0 : dice_below(dice, MODEL_LABELS);
	uint32_t targets = 0;

	for (int32_t i = 0; i < wanted; i++) {
		int32_t target = dice_below(dice, MODEL_LABELS);

		if (target == source || (targets & 1u << target) != 0)
			continue;
		targets |= 1u << target;
		add_fork(c, post, source == 0 ? NULL : model_labels[source],
		         model_labels[target]);
		source = dice_percent(dice, 50) ? target : dice_below(dice, MODEL_LABELS);
	}
}

/* What a segment's label will be as long as once the pre-forks are applied: its author
 * knows. */
static void expect_forks(struct list_command *c, struct model *m)
{
	for (int32_t i = 0; i < c->step.num_segments; i++) {
		struct quire_segment *segment = &c->segments[i];
		int32_t label = model_label(segment->label);

		if (segment->at == QUIRE_AT_ANY)
			continue;
		for (int32_t f = c->step.num_pre_forks - 1; f >= 0; f--)
			if (model_label(c->pre_forks[f].target) == label &&
			    length_of(m, segment->request,
			              model_label(c->pre_forks[f].source)) >= 0)
				label = model_label(c->pre_forks[f].source);
		segment->at = length_of(m, segment->request, label);
		if (segment->at < 0)
			segment->at = 0;
	}
}

static void plant_in_segments(struct list_command *c, enum fault fault, struct dice *dice,
                              const struct model *m)
{
	int32_t n = c->step.num_segments, at = dice_below(dice, n);

	switch (fault) {
	case FAULT_NO_SEGMENTS:
		c->step.num_segments = 0;
		break;
	case FAULT_SPAN:
		c->segments[at].span = -list_between(dice, 1, 3);
		break;
	case FAULT_AT:
		c->segments[at].at = -list_between(dice, 2, 5);
		break;
	case FAULT_TWICE:
		if (n == m->config.rows_max)
			n--;
		c->segments[n] = c->segments[at % n];
		c->step.num_segments = n + 1;
		break;
	case FAULT_ROWS:
		c->step.num_segments = m->config.rows_max + 1;
		break;
	default:
		break;
	}
}

/* One fault of form; the step is a plain one. */
static void plant_fault(struct list_command *c, enum fault fault, struct dice *dice,
                        const struct model *m)
{
	struct quire_step *step = &c->step;
	bool post;

	least_bucket(step, &step->bucket_rows, &step->bucket_tokens);
	if (fault < FAULT_BUCKET_ROWS)
		step->bucket_rows = step->bucket_tokens = 0;
	switch (fault) {
	case FAULT_FLAGS:
		step->flags |= 1u << list_between(dice, 4, 31);
		break;
	case FAULT_WORK:
		c->work = (struct quire_work){.kind = QUIRE_WORK_WRITE};
		step->work = &c->work;
		step->num_work = 1;
		break;
	case FAULT_MEMBER: /* a label that no segment has */
		combine_one(c, "pair", NULL);
		break;
	case FAULT_EMPTY:
		combine_one(c, "main", NULL);
		c->combined[0].num_labels = 0;
		break;
	case FAULT_MEMBER_TWICE:
		combine_one(c,
		            c->segments[0].label == NULL ? "main" : c->segments[0].label,
		            NULL);
		c->members[0][1] = c->members[0][0];
		c->combined[0].num_labels = 2;
		break;
	case FAULT_FORK_SELF:
		add_fork(c, dice_percent(dice, 50), "main",
		         dice_percent(dice, 50) ? "main" : NULL);
		break;
	case FAULT_FORK_TWICE:
		post = dice_percent(dice, 50);
		add_fork(c, post, "a", "b");
		add_fork(c, post, "a", "main");
		add_fork(c, post, "main", "b");
		break;
	case FAULT_BUCKET_ROWS:
		step->bucket_rows--;
		break;
	case FAULT_BUCKET_TOKENS:
		step->bucket_tokens--;
		break;
	case FAULT_BUCKET_NEGATIVE:
		step->bucket_rows = -1;
		break;
	default:
		plant_in_segments(c, fault, dice, m);
	}
}

static bool spans_are_small(const struct quire_step *step)
{
	int64_t sum = 0;

	for (int32_t i = 0; i < step->num_segments; i++)
		sum += step->segments[i].span;
	return sum < 1000;
}

static void make_flags(struct list_command *c, struct dice *dice, bool no_wait,
                       uint32_t features)
{
	if (dice_percent(dice, 12))
		c->step.flags |= QUIRE_STEP_NO_COMMIT;
	if (no_wait && dice_percent(dice, 40))
		c->step.flags |= QUIRE_STEP_NO_WAIT;
	if ((features & LIST_FORKS) != 0 && dice_percent(dice, 15))
		c->step.flags |= QUIRE_STEP_COPY_FORKS;
}

/* Steps that expect another length than there is. */
static void make_stale(struct list_command *c, struct dice *dice)
{
	int32_t n = c->step.num_segments;

	if (dice_percent(dice, 5))
		c->segments[dice_below(dice, n)].at = list_between(dice, 0, 9);
	if (dice_percent(dice, 1))
		c->segments[dice_below(dice, n)].at = INT32_MAX;
}

void list_step(struct list_command *c, struct dice *dice, struct model *m, bool no_wait,
               uint32_t features)
{
	bool forks = (features & LIST_FORKS) != 0;

	make_segments(c, dice, m);
	c->command.kind = QUIRE_COMMAND_SUBMIT;
	c->command.step = &c->step;
	make_flags(c, dice, no_wait, features);
	if (dice_percent(dice, 6) && spans_are_small(&c->step)) {
		enum fault fault = (enum fault)dice_below(dice, FAULTS);

		if (!forks && (fault == FAULT_FORK_SELF || fault == FAULT_FORK_TWICE))
			fault = FAULT_TWICE;
		plant_fault(c, fault, dice, m);
		return;
	}
	if (forks && dice_percent(dice, 25))
		make_forks(c, dice, false);
	if (forks && dice_percent(dice, 25))
		make_forks(c, dice, true);
	if (dice_percent(dice, 95))
		expect_forks(c, m);
	make_stale(c, dice);
	if (dice_percent(dice, 25))
		make_combined(c, dice);
	if (dice_percent(dice, m->config.sink ? 25 : 1) && spans_are_small(&c->step))
		make_bucket(c, dice);
}

void list_share(struct list_command *c, struct dice *dice, struct model *m, int32_t stage,
                uint64_t id)
{
	int32_t most = stage == LIST_SHARE_FORK ? 2 * m->page_size : m->page_size;

	c->command.request = id;
	c->command.label = dice_percent(dice, 50) ? "a" : NULL;
	if (stage == LIST_SHARE_REWIND) {
		c->command.kind = QUIRE_COMMAND_REWIND;
		c->command.tokens = list_between(dice, 1, m->page_size);
		return;
	}
	c->command.kind = QUIRE_COMMAND_SUBMIT;
	c->command.step = &c->step;
	for (int32_t i = 0; i < 2; i++)
		c->segments[i] = (struct quire_segment){
			.request = id,
			.label = model_labels[i],
			.span = list_between(dice, 1, most),
			.at = QUIRE_AT_ANY,
			.tag = dice_roll(dice),
		};
	c->step.segments = c->segments;
	c->step.num_segments = stage == LIST_SHARE_FORK ? 1 : 2;
	if (stage == LIST_SHARE_FORK)
		add_fork(c, true, NULL, "a");
}
