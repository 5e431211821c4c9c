/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "model_rules.h"

#include <string.h>

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
	REQUIRE(m->config.seq_tokens_max <= MODEL_SEQ_MAX);
	for (int32_t page = config->sink ? 1 : 0; page < num_pages; page++)
		m->fifo[m->num_fifo++] = page;
	m->counts.pages_owned = config->sink ? 1 : 0;
}

/* ------------------------------------------------------------------ pages */

int32_t model_owners(const struct model *m, int32_t page)
{
	int32_t owners = 0;

	for (int32_t i = 0; i < MODEL_REQUESTS_MAX; i++)
		for (int32_t s = 0; m->requests[i].open && s < m->requests[i].num_streams;
		     s++) {
			const struct model_stream *stream = &m->requests[i].streams[s];

			for (int32_t k = 0; k < stream->num_pages; k++)
				owners += stream->pages[k] == page;
		}
	return owners;
}

void model_give_unowned(struct model *m, const int16_t *pages, int32_t n)
{
	for (int32_t i = 0; i < n; i++) {
		if (pages[i] >= MODEL_PAGES_MAX || model_owners(m, pages[i]) > 0)
			continue;
		m->fifo[m->num_fifo++] = pages[i];
		m->counts.pages_given++;
		m->counts.pages_owned--;
	}
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

struct model_stream *model_make_stream(struct model *m, struct model_request *request,
                                       int32_t label, struct model_answer *answer)
{
	struct model_stream *stream = &request->streams[request->num_streams];

	if (request->num_streams == m->config.request_labels_max) {
		model_refuse(answer, QUIRE_LIMIT, "request_labels_max")->expected =
			m->config.request_labels_max;
		model_name_stream(answer, request->id, label);
		return NULL;
	}
	request->num_streams++;
	memset(stream, 0, sizeof(*stream));
	stream->label = label;
	stream->born = m->counts.commands + 1;
	return stream;
}

void model_changed(struct model *m, struct model_stream *stream)
{
	uint64_t command = m->counts.commands + 1;
	uint64_t step = m->counts.steps_planned;
	struct model_pair *pairs = stream->pairs;

	if (stream->touched != command) /* once a command, whatever it did */
		stream->changes++;
	stream->touched = command;
	stream->step = step;
	if (stream->num_pairs > 0 && pairs[stream->num_pairs - 1].step == step)
		stream->num_pairs--;
	if (stream->num_pairs == MODEL_PAIRS_MAX) {
		memmove(pairs, pairs + 1, sizeof(pairs[0]) * (MODEL_PAIRS_MAX - 1));
		stream->num_pairs--;
	}
	pairs[stream->num_pairs].step = (uint32_t)step;
	pairs[stream->num_pairs++].length = (int32_t)stream->length;
}

int64_t model_length_at(const struct model_stream *stream, uint64_t step)
{
	for (int32_t i = stream->num_pairs - 1; i >= 0; i--)
		if (stream->pairs[i].step <= step)
			return stream->pairs[i].length;
	return 0;
}

/* ------------------------------------------------------------------ refusals */

struct quire_refusal *model_refuse(struct model_answer *answer, enum quire_status status,
                                   const char *what)
{
	answer->refusal.status = status;
	answer->refusal.what = what;
	return &answer->refusal;
}

void model_name_stream(struct model_answer *answer, uint64_t request, int32_t label)
{
	answer->refusal.request = request;
	strcpy(answer->refusal.label, model_labels[label]);
}

bool model_refuse_limit(struct model_answer *answer, const char *what, int64_t got,
                        int64_t expected)
{
	if (got <= expected)
		return false;
	model_refuse(answer, QUIRE_LIMIT, what);
	answer->refusal.got = got;
	answer->refusal.expected = expected;
	return true;
}

/* ------------------------------------------------------------------ commands */

static void apply_open(struct model *m, uint64_t id, struct model_answer *answer)
{
	struct model_request *request = model_find_request(m, id);
	struct quire_refusal *refusal;

	if (request != NULL)
		return;
	if (m->counts.requests_open == m->config.requests_max) {
		refusal = model_refuse(answer, QUIRE_LIMIT, "requests_max");
		refusal->request = id;
		refusal->expected = m->config.requests_max;
		return;
	}
	for (request = m->requests; request->open; request++)
		continue;
	request->open = true;
	request->id = id;
	request->num_streams = 0;
	model_make_stream(m, request, 0, answer);
	m->counts.requests_open++;
}

static void apply_close(struct model *m, uint64_t id, struct model_answer *answer)
{
	struct model_request *request = model_find_request(m, id);

	if (request == NULL) {
		model_refuse(answer, QUIRE_NO_REQUEST, "")->request = id;
		return;
	}
	for (int32_t i = 0; i < request->num_streams; i++) {
		struct model_stream *stream = &request->streams[i];
		int32_t n = stream->num_pages;

		stream->num_pages = 0;
		model_give_unowned(m, stream->pages, n);
	}
	request->open = false;
	m->counts.requests_open--;
}

/* The stream that a command other than a step names. */
static struct model_stream *named_stream(struct model *m,
                                         const struct quire_command *command,
                                         struct model_answer *answer)
{
	struct model_request *request = model_find_request(m, command->request);
	int32_t label = model_label(command->label);
	struct model_stream *stream;

	if (request == NULL) {
		model_refuse(answer, QUIRE_NO_REQUEST, "")->request = command->request;
		return NULL;
	}
	stream = model_find_stream(request, label);
	if (stream == NULL) {
		model_refuse(answer, QUIRE_NO_LABEL, "");
		model_name_stream(answer, command->request, label);
	}
	return stream;
}

/* Pages from `first` on stay where nobody else lists them, if they may stay at all. */
static void drop_pages(struct model *m, struct model_stream *stream, int64_t first,
                       bool keep)
{
	int16_t dropped[MODEL_LISTED_MAX];
	int32_t num_dropped = 0, kept = (int32_t)first;

	for (int32_t k = kept; k < stream->num_pages; k++)
		if (!keep || model_owners(m, stream->pages[k]) > 1)
			dropped[num_dropped++] = stream->pages[k];
		else
			stream->pages[kept++] = stream->pages[k];
	stream->num_pages = kept;
	model_give_unowned(m, dropped, num_dropped);
}

static void apply_reset(struct model *m, const struct quire_command *command,
                        struct model_answer *answer)
{
	struct model_stream *stream = named_stream(m, command, answer);

	if (stream == NULL)
		return;
	drop_pages(m, stream, 0, command->keep_pages != 0);
	stream->length = 0;
	stream->released = 0;
	model_changed(m, stream);
}

/* Between 0 and the length, or INVALID; a negative number may be refused at the call. */
static bool tokens_wrong(const struct quire_command *command,
                         const struct model_stream *stream, struct model_answer *answer)
{
	if (command->tokens >= 0 && command->tokens <= stream->length)
		return false;
	model_refuse(answer, QUIRE_INVALID, NULL);
	answer->form = command->tokens < 0;
	return true;
}

static void apply_rewind(struct model *m, const struct quire_command *command,
                         struct model_answer *answer)
{
	struct model_stream *stream = named_stream(m, command, answer);
	int64_t needed;

	if (stream == NULL || tokens_wrong(command, stream, answer))
		return;
	stream->length -= command->tokens;
	needed = ceil_div(stream->length, m->page_size);
	drop_pages(m, stream, needed, true);
	model_changed(m, stream);
}

static void apply_release_front(struct model *m, const struct quire_command *command,
                                struct model_answer *answer)
{
	struct model_stream *stream = named_stream(m, command, answer);
	int16_t front[MODEL_LISTED_MAX];
	int64_t count, last, tokens;

	if (stream == NULL || tokens_wrong(command, stream, answer))
		return;
	count = command->tokens / m->page_size;
	last = ceil_div(stream->length, m->page_size) - 1;
	if (count > last)
		count = last < 0 ? 0 : last;
	tokens = count * m->page_size;
	memcpy(front, stream->pages, sizeof(front));
	stream->num_pages -= (int32_t)count;
	stream->length -= tokens;
	stream->released += tokens;
	memmove(stream->pages, stream->pages + count,
	        sizeof(stream->pages[0]) * (size_t)stream->num_pages);
	memmove(stream->content, stream->content + tokens,
	        sizeof(stream->content[0]) * (size_t)stream->length);
	model_give_unowned(m, front, (int32_t)count);
	model_changed(m, stream);
	answer->pages_released = (int32_t)count;
}

void model_apply(struct model *m, const struct quire_command *command, uint64_t ticket,
                 bool again, struct model_answer *answer)
{
	memset(answer, 0, offsetof(struct model_answer, image));
	answer->image.n = 0;
	answer->reads.n = 0;
	switch (command->kind) {
	case QUIRE_COMMAND_OPEN:
		apply_open(m, command->request, answer);
		break;
	case QUIRE_COMMAND_CLOSE:
		apply_close(m, command->request, answer);
		break;
	case QUIRE_COMMAND_SUBMIT:
		model_submit(m, command->step, ticket, again, answer);
		break;
	case QUIRE_COMMAND_RESET:
		apply_reset(m, command, answer);
		break;
	case QUIRE_COMMAND_REWIND:
		apply_rewind(m, command, answer);
		break;
	case QUIRE_COMMAND_RELEASE_FRONT:
		apply_release_front(m, command, answer);
		break;
	case QUIRE_COMMAND_PROMOTE:
	case QUIRE_COMMAND_ABANDON:
		REQUIRE(!"a command about a step's fate");
	}
	m->counts.commands++;
	REQUIRE(m->num_fifo + m->counts.pages_owned == m->num_pages);
}
