/* SPDX-License-Identifier: MIT */
/* A step in the model: tried on a copy of the state with pages that do not exist, so that
 * a refusal has nothing to take back, then done. */
#include "config.h"

#include "model_rules.h"

#include <string.h>

/* ------------------------------------------------------------ the form of a step */

static bool label_in(const struct quire_combined *combined, int32_t label)
{
	for (int32_t i = 0; i < combined->num_labels; i++)
		if (model_label(combined->labels[i]) == label)
			return true;
	return false;
}

/* The combined table that a label goes to, or -1. */
static int32_t combined_of(const struct quire_step *step, int32_t label)
{
	for (int32_t c = 0; c < step->num_combined; c++)
		if (label_in(&step->combined[c], label))
			return c;
	return -1;
}

static int32_t segment_label(const struct quire_step *step, int32_t row)
{
	return model_label(step->segments[row].label);
}

static void add_rows(const struct quire_step *step, int32_t label,
                     struct model_table *table)
{
	for (int32_t i = 0; i < step->num_segments; i++)
		if (segment_label(step, i) == label)
			table->rows[table->num_rows++] = i;
}

int32_t model_tables(const struct quire_step *step, struct model_table *tables)
{
	int32_t n = 0;
	bool seen[MODEL_NAMES] = {false};

	for (int32_t c = 0; c < step->num_combined; c++, n++) {
		tables[n].name = model_label(step->combined[c].name);
		tables[n].num_rows = 0;
		for (int32_t i = 0; i < step->combined[c].num_labels; i++)
			add_rows(step, model_label(step->combined[c].labels[i]),
			         &tables[n]);
	}
	for (int32_t i = 0; i < step->num_segments; i++) {
		int32_t label = segment_label(step, i);

		if (seen[label] || combined_of(step, label) >= 0)
			continue;
		seen[label] = true;
		tables[n].name = label;
		tables[n].num_rows = 0;
		add_rows(step, label, &tables[n++]);
	}
	return n;
}

static int32_t table_of(const struct quire_step *step, int32_t row)
{
	struct model_table tables[MODEL_TABLES_MAX];
	int32_t n = model_tables(step, tables);

	for (int32_t t = 0; t < n; t++)
		for (int32_t i = 0; i < tables[t].num_rows; i++)
			if (tables[t].rows[i] == row)
				return t;
	return -1;
}

static bool has_segment(const struct quire_step *step, int32_t label)
{
	for (int32_t i = 0; i < step->num_segments; i++)
		if (segment_label(step, i) == label)
			return true;
	return false;
}

/* A combined list is wrong when it is empty, names a label without a segment or one that
 * an earlier place names, or when its name is also a label outside the list, or used
 * twice. */
static bool combined_wrong(const struct quire_step *step)
{
	uint32_t taken = 0, names = 0;

	for (int32_t c = 0; c < step->num_combined; c++) {
		const struct quire_combined *combined = &step->combined[c];
		int32_t name = model_label(combined->name);

		if (combined->num_labels < 1 || (names & 1u << name) != 0)
			return true;
		names |= 1u << name;
		for (int32_t i = 0; i < combined->num_labels; i++) {
			int32_t label = model_label(combined->labels[i]);

			if (!has_segment(step, label) || (taken & 1u << label) != 0)
				return true;
			taken |= 1u << label;
		}
		if (has_segment(step, name) && !label_in(combined, name))
			return true;
	}
	return false;
}

static bool stream_twice(const struct quire_step *step)
{
	for (int32_t i = 0; i < step->num_segments; i++)
		for (int32_t j = 0; j < i; j++)
			if (step->segments[i].request == step->segments[j].request &&
			    segment_label(step, i) == segment_label(step, j))
				return true;
	return false;
}

/* A label is a target once at most, and never its own source. */
static bool forks_wrong(const struct quire_fork *forks, int32_t n)
{
	uint32_t targets = 0;

	for (int32_t f = 0; f < n; f++) {
		int32_t target = model_label(forks[f].target);

		if (model_label(forks[f].source) == target ||
		    (targets & 1u << target) != 0)
			return true;
		targets |= 1u << target;
	}
	return false;
}

static bool has_bucket(const struct quire_step *step)
{
	return step->bucket_rows != 0 || step->bucket_tokens != 0;
}

static bool form_wrong(const struct model *m, const struct quire_step *step)
{
	const uint32_t flags = QUIRE_STEP_NO_COMMIT | QUIRE_STEP_NO_WAIT |
	                       QUIRE_STEP_COPY_FORKS | QUIRE_STEP_SPECULATIVE;

	if (step->num_segments < 1 || (step->flags & ~flags) != 0)
		return true;
	if (step->num_work > 0) /* the runner gives every step a callback */
		return true;
	for (int32_t i = 0; i < step->num_segments; i++)
		if (step->segments[i].span < 0 || step->segments[i].at < QUIRE_AT_ANY)
			return true;
	if (has_bucket(step) &&
	    (!m->config.sink || step->bucket_rows < 1 || step->bucket_tokens < 1))
		return true;
	return stream_twice(step) || combined_wrong(step) ||
	       forks_wrong(step->pre_forks, step->num_pre_forks) ||
	       forks_wrong(step->post_forks, step->num_post_forks);
}

/* What is wrong with a step whatever the state. */
static bool refuse_form(const struct model *m, const struct quire_step *step,
                        struct model_answer *answer)
{
	struct model_table tables[MODEL_TABLES_MAX];
	const struct quire_runtime_config *config = &m->config;

	answer->form = true;
	if (model_refuse_limit(answer, "rows_max", step->num_segments,
	                       config->rows_max) ||
	    model_refuse_limit(answer, "tables_max", step->num_combined,
	                       config->tables_max))
		return true;
	if (form_wrong(m, step)) {
		model_refuse(answer, QUIRE_INVALID, NULL);
		return true;
	}
	if (model_refuse_limit(answer, "rows_max", step->bucket_rows, config->rows_max) ||
	    model_refuse_limit(answer, "tokens_max", step->bucket_tokens,
	                       config->tokens_max) ||
	    model_refuse_limit(answer, "tables_max", model_tables(step, tables),
	                       config->tables_max))
		return true;
	answer->form = false;
	return false;
}

/* ------------------------------------------------------------------ admit */

/* The tokens of each table, and whether a bucket holds them. */
static bool refuse_sizes(const struct model *m, const struct quire_step *step,
                         struct model_answer *answer)
{
	struct model_table tables[MODEL_TABLES_MAX];
	int32_t n = model_tables(step, tables);

	for (int32_t t = 0; t < n; t++) {
		int64_t tokens = 0;

		for (int32_t i = 0; i < tables[t].num_rows; i++)
			tokens += step->segments[tables[t].rows[i]].span;
		if (model_refuse_limit(answer, "tokens_max", tokens,
		                       m->config.tokens_max))
			return true;
		if (!has_bucket(step) || (tables[t].num_rows <= step->bucket_rows &&
		                          tokens <= step->bucket_tokens))
			continue;
		model_refuse(answer, QUIRE_INVALID, NULL);
		return true;
	}
	return false;
}

/* Count the pages; the first in take order that does not fit names the refusal. */
static bool refuse_pages(struct model_run *run)
{
	const struct model *m = run->m;
	struct model_answer *answer = run->answer;
	int64_t fits = m->num_pages - m->counts.pages_owned, taken = 0;

	answer->need = run->need;
	if (run->need <= fits)
		return false;
	model_refuse(answer, QUIRE_NO_PAGES, "");
	answer->refusal.pages_short = run->need - fits;
	answer->refusal.requested = run->need;
	answer->refusal.available = fits;
	for (int32_t i = 0; i < run->num_takes && taken <= fits; i++) {
		taken += run->takes[i].count;
		if (taken > fits)
			model_name_stream(answer, run->takes[i].request,
			                  run->takes[i].label);
	}
	return true;
}

/* Pages of rows and tables, segment by segment; of rows as the step leaves them before
 * its commit. */
static bool refuse_room(const struct model *m, const struct quire_step *step,
                        const int64_t *listed, struct model_answer *answer)
{
	int64_t width = m->config.block_width;

	for (int32_t i = 0; i < step->num_segments; i++) {
		int32_t table = table_of(step, i);
		int64_t pages = 0;

		for (int32_t j = 0; j <= i; j++)
			if (table_of(step, j) == table)
				pages += listed[j];
		if (width > 0 &&
		    model_refuse_limit(answer, "block_width", listed[i], width))
			return true;
		if (model_refuse_limit(answer, "table_pages_max", pages,
		                       m->config.table_pages_max))
			return true;
	}
	return false;
}

/* ------------------------------------------------------------------ effect */

static void commit(struct model_run *run)
{
	const struct quire_step *step = run->step;

	for (int32_t i = 0; i < step->num_segments; i++) {
		struct model_stream *stream =
			model_segment_stream(run->m, &step->segments[i]);

		run->m->counts.tokens += (uint64_t)step->segments[i].span;
		if (step->segments[i].span == 0)
			continue;
		if ((step->flags & QUIRE_STEP_NO_COMMIT) == 0)
			stream->length += step->segments[i].span;
		model_changed(run->m, stream);
	}
}

/* All of a step on the state of the run; false: refused on the way.  @listed: filled, the
 * pages of each row. */
static bool run_step(struct model_run *run, int64_t *listed)
{
	const struct quire_step *step = run->step;
	struct model *m = run->m;

	m->counts.steps_planned++;
	if (!model_fork_all(run, step->pre_forks, step->num_pre_forks, false))
		return false;
	for (int32_t i = 0; i < step->num_segments; i++)
		if (!model_extend(run, i))
			return false;
	for (int32_t i = 0; i < step->num_segments; i++)
		listed[i] = ceil_div(model_segment_stream(m, &step->segments[i])->length +
		                             step->segments[i].span,
		                     m->page_size);
	if (!run->trying)
		model_plan(run);
	commit(run);
	return model_fork_all(run, step->post_forks, step->num_post_forks, true);
}

static void begin(struct model_run *run, struct model *m, const struct quire_step *step,
                  struct model_answer *answer)
{
	memset(run, 0, offsetof(struct model_run, takes));
	run->num_pre = run->num_post = run->first_writes = run->need = 0;
	run->m = m;
	run->step = step;
	run->answer = answer;
}

static bool refuse_step(struct model *m, const struct quire_step *step,
                        struct model_answer *answer)
{
	static struct model copy;
	static struct model_run run;
	int64_t listed[MODEL_ROWS_MAX];

	if (refuse_form(m, step, answer))
		return true;
	for (int32_t i = 0; i < step->num_segments; i++) {
		if (model_find_request(m, step->segments[i].request) != NULL)
			continue;
		model_refuse(answer, QUIRE_NO_REQUEST, "")->request =
			step->segments[i].request;
		return true;
	}
	copy = *m;
	begin(&run, &copy, step, answer);
	run.trying = true;
	if (!run_step(&run, listed))
		return true;
	run.m = m;
	return refuse_sizes(m, step, answer) || refuse_pages(&run) ||
	       refuse_room(m, step, listed, answer);
}

static void count_step(struct model *m, const struct model_run *run, int64_t owned)
{
	int64_t sink = m->config.sink ? 1 : 0;

	m->counts.copies += (uint64_t)(run->num_pre + run->num_post);
	m->counts.first_writes += (uint64_t)run->first_writes;
	/* All are taken before any is given up. */
	if (owned + run->need - sink > m->counts.pages_peak)
		m->counts.pages_peak = owned + run->need - sink;
}

void model_submit(struct model *m, const struct quire_step *step, uint64_t ticket,
                  bool again, struct model_answer *answer)
{
	static struct model_run run;
	int64_t listed[MODEL_ROWS_MAX], owned = m->counts.pages_owned;

	if (refuse_step(m, step, answer))
		return;
	if (again && answer->need > 0 && (step->flags & QUIRE_STEP_NO_WAIT) != 0) {
		model_refuse(answer, QUIRE_AGAIN, "");
		return;
	}
	begin(&run, m, step, answer);
	run.ticket = ticket;
	REQUIRE(run_step(&run, listed));
	REQUIRE(run.need == answer->need);
	model_plan_copies(&run);
	count_step(m, &run, owned);
	answer->step = m->counts.steps_planned;
	answer->pages_taken = run.need;
	answer->num_pre = run.num_pre;
	answer->num_post = run.num_post;
	answer->first_writes = run.first_writes;
}
