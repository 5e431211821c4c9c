/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "model_rules.h"

#include <string.h>

static const char *name_of(int32_t label)
{
	return model_labels[label];
}

void model_init(struct model *m, const struct quire_runtime_config *config,
                int32_t num_pages, int32_t page_size)
{
	memset(m, 0, sizeof(*m));
	m->config = *config;
	m->num_pages = num_pages;
	m->page_size = page_size;
	if (config->seq_tokens_max == 0)
		m->config.seq_tokens_max = (num_pages - config->sink) * page_size;
	if (config->table_pages_max == 0)
		m->config.table_pages_max = num_pages;
	for (int32_t page = config->sink ? 1 : 0; page < num_pages; page++)
		m->fifo[m->num_fifo++] = page;
	m->counts.pages_owned = config->sink ? 1 : 0;
}

/* ------------------------------------------------------------------ pages */

static int32_t take(struct model *m)
{
	int32_t page = m->fifo[0];

	REQUIRE(m->num_fifo > 0);
	m->num_fifo--;
	memmove(m->fifo, m->fifo + 1, sizeof(m->fifo[0]) * (size_t)m->num_fifo);
	m->counts.pages_taken++;
	m->counts.pages_owned++;
	return page;
}

static void give(struct model *m, int32_t page)
{
	m->fifo[m->num_fifo++] = page;
	m->counts.pages_given++;
	m->counts.pages_owned--;
}

/* ------------------------------------------------------------------ requests, streams */

struct model_request *model_find_request(struct model *m, uint64_t id)
{
	for (int32_t i = 0; i < MODEL_REQUESTS_MAX; i++)
		if (m->requests[i].open && m->requests[i].id == id)
			return &m->requests[i];
	return NULL;
}

struct model_stream *model_find_stream(struct model_request *request, int32_t label)
{
	for (int32_t i = 0; i < request->num_streams; i++)
		if (request->streams[i].label == label)
			return &request->streams[i];
	return NULL;
}

static struct model_stream *make_stream(struct model_request *request, int32_t label)
{
	struct model_stream *stream = &request->streams[request->num_streams++];

	memset(stream, 0, sizeof(*stream));
	stream->label = label;
	return stream;
}

static struct quire_refusal *refuse(struct model_answer *answer, enum quire_status status,
                                    const char *what)
{
	answer->refusal.status = status;
	answer->refusal.what = what;
	return &answer->refusal;
}

static void name_stream(struct quire_refusal *refusal, uint64_t request,
                        const char *label)
{
	refusal->request = request;
	strcpy(refusal->label, label);
}

static void apply_open(struct model *m, uint64_t id, struct model_answer *answer)
{
	struct model_request *request = model_find_request(m, id);
	struct quire_refusal *refusal;

	if (request != NULL)
		return;
	if (m->counts.requests_open == m->config.requests_max) {
		refusal = refuse(answer, QUIRE_LIMIT, "requests_max");
		refusal->request = id;
		refusal->expected = m->config.requests_max;
		return;
	}
	for (request = m->requests; request->open; request++)
		continue;
	request->open = true;
	request->id = id;
	request->num_streams = 0;
	make_stream(request, 0);
	m->counts.requests_open++;
}

static void apply_close(struct model *m, uint64_t id, struct model_answer *answer)
{
	struct model_request *request = model_find_request(m, id);

	if (request == NULL) {
		refuse(answer, QUIRE_NO_REQUEST, "")->request = id;
		return;
	}
	for (int32_t i = 0; i < request->num_streams; i++)
		for (int32_t k = 0; k < request->streams[i].num_pages; k++)
			give(m, request->streams[i].pages[k]);
	request->open = false;
	m->counts.requests_open--;
}

static void apply_reset(struct model *m, const struct quire_command *command,
                        struct model_answer *answer)
{
	struct model_request *request = model_find_request(m, command->request);
	int32_t label = model_label(command->label);
	struct model_stream *stream;

	if (request == NULL) {
		refuse(answer, QUIRE_NO_REQUEST, "")->request = command->request;
		return;
	}
	stream = model_find_stream(request, label);
	if (stream == NULL) {
		name_stream(refuse(answer, QUIRE_NO_LABEL, ""), command->request,
		            name_of(label));
		return;
	}
	for (int32_t k = 0; k < stream->num_pages && !command->keep_pages; k++)
		give(m, stream->pages[k]);
	if (!command->keep_pages)
		stream->num_pages = 0;
	stream->length = 0;
	stream->changes++;
	stream->step = m->counts.steps_planned;
}

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

static bool has_bucket(const struct quire_step *step)
{
	return step->bucket_rows != 0 || step->bucket_tokens != 0;
}

static bool form_wrong(const struct model *m, const struct quire_step *step)
{
	const uint32_t flags = QUIRE_STEP_NO_COMMIT | QUIRE_STEP_NO_WAIT;

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
	return stream_twice(step) || combined_wrong(step);
}

static bool refuse_limit(struct model_answer *answer, const char *what, int64_t got,
                         int64_t expected)
{
	if (got <= expected)
		return false;
	refuse(answer, QUIRE_LIMIT, what);
	answer->refusal.got = got;
	answer->refusal.expected = expected;
	return true;
}

/* What is wrong with a step whatever the state. */
static bool refuse_form(const struct model *m, const struct quire_step *step,
                        struct model_answer *answer)
{
	struct model_table tables[MODEL_TABLES_MAX];
	const struct quire_runtime_config *config = &m->config;

	answer->form = true;
	if (refuse_limit(answer, "rows_max", step->num_segments, config->rows_max) ||
	    refuse_limit(answer, "tables_max", step->num_combined, config->tables_max))
		return true;
	if (form_wrong(m, step)) {
		refuse(answer, QUIRE_INVALID, NULL);
		return true;
	}
	if (refuse_limit(answer, "rows_max", step->bucket_rows, config->rows_max) ||
	    refuse_limit(answer, "tokens_max", step->bucket_tokens, config->tokens_max) ||
	    refuse_limit(answer, "tables_max", model_tables(step, tables),
	                 config->tables_max))
		return true;
	answer->form = false;
	return false;
}

/* ------------------------------------------------------------------ admit */

/* Streams of a request that earlier segments of the step make. */
static int32_t made_before(struct model *m, const struct quire_step *step, int32_t row)
{
	uint64_t id = step->segments[row].request;
	struct model_request *request = model_find_request(m, id);
	int32_t made = 0;

	for (int32_t i = 0; i < row; i++)
		if (step->segments[i].request == id &&
		    model_find_stream(request, segment_label(step, i)) == NULL)
			made++;
	return made;
}

static bool refuse_segment(struct model *m, const struct quire_step *step, int32_t row,
                           struct model_answer *answer)
{
	const struct quire_segment *segment = &step->segments[row];
	struct model_request *request = model_find_request(m, segment->request);
	int32_t label = segment_label(step, row);
	struct model_stream *stream = model_find_stream(request, label);
	int64_t length = stream == NULL ? 0 : stream->length;
	struct quire_refusal *refusal = &answer->refusal;
	bool refused = true;

	if (stream == NULL && segment->span == 0) {
		refuse(answer, QUIRE_NO_LABEL, "");
	} else if (segment->at != QUIRE_AT_ANY && segment->at != length) {
		refuse(answer, QUIRE_STALE, "");
		refusal->expected = segment->at;
		refusal->got = length;
	} else if (stream == NULL && request->num_streams + made_before(m, step, row) ==
	                                     m->config.request_labels_max) {
		refuse(answer, QUIRE_LIMIT, "request_labels_max");
		refusal->expected = m->config.request_labels_max;
	} else {
		refused = refuse_limit(answer, "seq_tokens_max", length + segment->span,
		                       m->config.seq_tokens_max);
	}
	if (refused)
		name_stream(refusal, segment->request, name_of(label));
	return refused;
}

/* The tokens of each table, and whether a bucket holds them. */
static bool refuse_sizes(struct model *m, const struct quire_step *step,
                         struct model_answer *answer)
{
	struct model_table tables[MODEL_TABLES_MAX];
	int32_t n = model_tables(step, tables);

	for (int32_t t = 0; t < n; t++) {
		int64_t tokens = 0;

		for (int32_t i = 0; i < tables[t].num_rows; i++)
			tokens += step->segments[tables[t].rows[i]].span;
		if (refuse_limit(answer, "tokens_max", tokens, m->config.tokens_max))
			return true;
		if (!has_bucket(step) || (tables[t].num_rows <= step->bucket_rows &&
		                          tokens <= step->bucket_tokens))
			continue;
		refuse(answer, QUIRE_INVALID, NULL);
		return true;
	}
	return false;
}

int64_t model_length_after(struct model *m, const struct quire_segment *segment)
{
	struct model_request *request = model_find_request(m, segment->request);
	struct model_stream *stream =
		model_find_stream(request, model_label(segment->label));

	return segment->span + (stream == NULL ? 0 : stream->length);
}

/* Count the pages; the first in take order that does not fit names the refusal. */
static bool refuse_pages(struct model *m, const struct quire_step *step,
                         struct model_answer *answer)
{
	int64_t need = 0, fits = m->num_pages - m->counts.pages_owned;
	bool named = false;

	for (int32_t i = 0; i < step->num_segments; i++) {
		const struct quire_segment *segment = &step->segments[i];
		struct model_request *request = model_find_request(m, segment->request);
		int32_t label = segment_label(step, i);
		struct model_stream *stream = model_find_stream(request, label);
		int64_t listed = stream == NULL ? 0 : stream->num_pages;
		int64_t pages = ceil_div(model_length_after(m, segment), m->page_size);

		need += pages > listed ? pages - listed : 0;
		if (need <= fits || named)
			continue;
		named = true;
		name_stream(&answer->refusal, segment->request, name_of(label));
	}
	answer->need = (int32_t)need;
	if (need <= fits)
		return false;
	refuse(answer, QUIRE_NO_PAGES, "");
	answer->refusal.pages_short = need - fits;
	answer->refusal.requested = need;
	answer->refusal.available = fits;
	return true;
}

/* Pages of rows and tables, segment by segment. */
static bool refuse_tables(struct model *m, const struct quire_step *step,
                          struct model_answer *answer)
{
	int64_t width = m->config.block_width;
	int64_t listed[MODEL_ROWS_MAX];

	for (int32_t i = 0; i < step->num_segments; i++) {
		int32_t table = table_of(step, i);
		int64_t pages = 0;

		listed[i] =
			ceil_div(model_length_after(m, &step->segments[i]), m->page_size);
		for (int32_t j = 0; j <= i; j++)
			if (table_of(step, j) == table)
				pages += listed[j];
		if (width > 0 && refuse_limit(answer, "block_width", listed[i], width))
			return true;
		if (refuse_limit(answer, "table_pages_max", pages,
		                 m->config.table_pages_max))
			return true;
	}
	return false;
}

static bool refuse_step(struct model *m, const struct quire_step *step,
                        struct model_answer *answer)
{
	if (refuse_form(m, step, answer))
		return true;
	for (int32_t i = 0; i < step->num_segments; i++) {
		if (model_find_request(m, step->segments[i].request) != NULL)
			continue;
		refuse(answer, QUIRE_NO_REQUEST, "")->request = step->segments[i].request;
		return true;
	}
	for (int32_t i = 0; i < step->num_segments; i++)
		if (refuse_segment(m, step, i, answer))
			return true;
	return refuse_sizes(m, step, answer) || refuse_pages(m, step, answer) ||
	       refuse_tables(m, step, answer);
}

/* ------------------------------------------------------------------ effect */

static void grow(struct model *m, const struct quire_segment *segment)
{
	struct model_request *request = model_find_request(m, segment->request);
	int32_t label = model_label(segment->label);
	struct model_stream *stream = model_find_stream(request, label);

	if (stream == NULL)
		stream = make_stream(request, label);
	while ((int64_t)stream->num_pages * m->page_size < stream->length + segment->span)
		stream->pages[stream->num_pages++] = take(m);
}

static void commit(struct model *m, const struct quire_step *step)
{
	for (int32_t i = 0; i < step->num_segments; i++) {
		const struct quire_segment *segment = &step->segments[i];
		struct model_request *request = model_find_request(m, segment->request);
		struct model_stream *stream =
			model_find_stream(request, model_label(segment->label));

		m->counts.tokens += (uint64_t)segment->span;
		if (segment->span == 0)
			continue;
		stream->changes++;
		stream->step = m->counts.steps_planned;
		if ((step->flags & QUIRE_STEP_NO_COMMIT) == 0)
			stream->length += segment->span;
	}
}

static void apply_submit(struct model *m, const struct quire_step *step, bool again,
                         struct model_answer *answer)
{
	uint64_t taken = m->counts.pages_taken;

	if (refuse_step(m, step, answer))
		return;
	if (again && answer->need > 0 && (step->flags & QUIRE_STEP_NO_WAIT) != 0) {
		refuse(answer, QUIRE_AGAIN, "");
		return;
	}
	m->counts.steps_planned++;
	for (int32_t i = 0; i < step->num_segments; i++)
		grow(m, &step->segments[i]);
	model_plan(m, step, &answer->image);
	commit(m, step);
	answer->step = m->counts.steps_planned;
	answer->pages_taken = (int32_t)(m->counts.pages_taken - taken);
	REQUIRE(answer->pages_taken == answer->need);
}

void model_apply(struct model *m, const struct quire_command *command, bool again,
                 struct model_answer *answer)
{
	int64_t sink = m->config.sink ? 1 : 0;

	memset(answer, 0, offsetof(struct model_answer, image));
	answer->image.n = 0;
	switch (command->kind) {
	case QUIRE_COMMAND_OPEN:
		apply_open(m, command->request, answer);
		break;
	case QUIRE_COMMAND_CLOSE:
		apply_close(m, command->request, answer);
		break;
	case QUIRE_COMMAND_SUBMIT:
		apply_submit(m, command->step, again, answer);
		break;
	case QUIRE_COMMAND_RESET:
		apply_reset(m, command, answer);
		break;
	}
	m->counts.commands++;
	if (answer->refusal.status != QUIRE_OK)
		m->counts.refused++;
	if (m->counts.pages_owned - sink > m->counts.pages_peak)
		m->counts.pages_peak = m->counts.pages_owned - sink;
	REQUIRE(m->num_fifo + m->counts.pages_owned == m->num_pages);
}
