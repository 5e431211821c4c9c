/* SPDX-License-Identifier: MIT */
/* What a step does to streams before and after its tables are built: forks, copies on
 * first write, growth. */
#include "config.h"

#include "model_rules.h"

#include <string.h>

uint32_t model_token(uint64_t ticket, uint64_t request, int32_t label, int64_t position)
{
	uint64_t mixed = ticket * 0x9e3779b97f4a7c15ull;

	mixed = (mixed ^ request ^ (uint64_t)label << 40) * 0xbf58476d1ce4e5b9ull;
	mixed = (mixed ^ mixed >> 31 ^ (uint64_t)position) * 0x94d049bb133111ebull;
	return (uint32_t)(mixed >> 32);
}

struct model_stream *model_segment_stream(struct model *m,
                                          const struct quire_segment *segment)
{
	return model_find_stream(model_find_request(m, segment->request),
	                         model_label(segment->label));
}

static void note_take(struct model_run *run, uint64_t request, int32_t label)
{
	struct model_take *take = &run->takes[run->num_takes];

	if (run->num_takes > 0 && take[-1].request == request &&
	    take[-1].label == label) {
		take[-1].count++;
		return;
	}
	REQUIRE(run->num_takes < MODEL_TAKES_MAX);
	*take = (struct model_take){.request = request, .label = label, .count = 1};
	run->num_takes++;
}

int32_t model_take(struct model_run *run, uint64_t request, int32_t label)
{
	struct model *m = run->m;
	int32_t page = m->fifo[0];

	if (run->trying) {
		note_take(run, request, label);
		return MODEL_PAGES_MAX + run->need++;
	}
	REQUIRE(m->num_fifo > 0);
	m->num_fifo--;
	memmove(m->fifo, m->fifo + 1, sizeof(m->fifo[0]) * (size_t)m->num_fifo);
	m->counts.pages_taken++;
	m->counts.pages_owned++;
	run->need++;
	return page;
}

/* ------------------------------------------------------------------ copies */

/* Where a page's bytes are before a list of copies runs. */
static int32_t origin_of(const struct model_copy *copies, int32_t n, int32_t page)
{
	for (int32_t i = n - 1; i >= 0; i--)
		if (copies[i].target == page)
			return copies[i].source;
	return page;
}

static void add_copy(struct model_run *run, bool post, int32_t source, int32_t target,
                     int64_t end)
{
	struct model_copy *copies = post ? run->post : run->pre;
	int32_t *n = post ? &run->num_post : &run->num_pre;

	if (run->trying)
		return;
	REQUIRE(*n < MODEL_COPIES_MAX);
	copies[*n].source = origin_of(copies, *n, source);
	copies[*n].target = target;
	copies[*n].end = (int32_t)end;
	(*n)++;
}

/* ------------------------------------------------------------------ forks */

static bool fork_one(struct model_run *run, struct model_request *request,
                     int32_t source_label, int32_t target_label, bool post)
{
	struct model *m = run->m;
	struct model_stream *source = model_find_stream(request, source_label);
	struct model_stream *target = model_find_stream(request, target_label);
	bool copy_all = (run->step->flags & QUIRE_STEP_COPY_FORKS) != 0;
	int16_t old[MODEL_LISTED_MAX], pages[MODEL_LISTED_MAX];
	int32_t num_old, num_pages = 0;

	if (source == NULL)
		return true;
	if (target == NULL)
		target = model_make_stream(m, request, target_label, run->answer);
	if (target == NULL)
		return false;
	for (int64_t k = 0; k * m->page_size < source->length; k++) {
		int64_t tokens = source->length - k * m->page_size;
		int32_t page = source->pages[k];

		if (tokens > m->page_size)
			tokens = m->page_size;
		if (copy_all || tokens < m->page_size) {
			page = model_take(run, request->id, target_label);
			add_copy(run, post, source->pages[k], page, tokens);
		}
		pages[num_pages++] = (int16_t)page;
	}
	num_old = target->num_pages;
	memcpy(old, target->pages, sizeof(old));
	memcpy(target->pages, pages, sizeof(pages));
	target->num_pages = num_pages;
	target->length = source->length;
	target->released = source->released;
	memcpy(target->content, source->content, sizeof(target->content));
	if (!run->trying)
		model_give_unowned(m, old, num_old);
	model_changed(m, target);
	return true;
}

bool model_fork_all(struct model_run *run, const struct quire_fork *forks, int32_t n,
                    bool post)
{
	const struct quire_step *step = run->step;

	for (int32_t f = 0; f < n; f++)
		for (int32_t i = 0; i < step->num_segments; i++) {
			uint64_t id = step->segments[i].request;
			bool first = true;

			for (int32_t j = 0; j < i; j++)
				first &= step->segments[j].request != id;
			if (first && !fork_one(run, model_find_request(run->m, id),
			                       model_label(forks[f].source),
			                       model_label(forks[f].target), post))
				return false;
		}
	return true;
}

/* ------------------------------------------------------------------ segments */

static bool refuse_segment(struct model_run *run, const struct quire_segment *segment,
                           const struct model_stream *stream)
{
	struct model_answer *answer = run->answer;
	int64_t length = stream == NULL ? 0 : stream->length;
	bool refused = true;

	if (stream == NULL && segment->span == 0) {
		model_refuse(answer, QUIRE_NO_LABEL, "");
	} else if (segment->at != QUIRE_AT_ANY && segment->at != length) {
		model_refuse(answer, QUIRE_STALE, "");
		answer->refusal.expected = segment->at;
		answer->refusal.got = length;
	} else {
		refused = false;
	}
	if (refused)
		model_name_stream(answer, segment->request, model_label(segment->label));
	return refused;
}

/* The first page that is written is this stream's alone, or it is copied to one that
 * is. */
static void own_first(struct model_run *run, const struct quire_segment *segment,
                      struct model_stream *stream)
{
	int64_t first = stream->length / run->m->page_size;
	int32_t old, page;

	if (first >= stream->num_pages || model_owners(run->m, stream->pages[first]) < 2)
		return;
	old = stream->pages[first];
	page = model_take(run, segment->request, stream->label);
	add_copy(run, false, old, page, stream->length % run->m->page_size);
	run->first_writes++;
	stream->pages[first] = (int16_t)page;
}

bool model_extend(struct model_run *run, int32_t row)
{
	const struct quire_segment *segment = &run->step->segments[row];
	struct model *m = run->m;
	struct model_request *request = model_find_request(m, segment->request);
	int32_t label = model_label(segment->label);
	struct model_stream *stream = model_find_stream(request, label);
	int64_t end;

	if (refuse_segment(run, segment, stream))
		return false;
	if (stream == NULL)
		stream = model_make_stream(m, request, label, run->answer);
	if (stream == NULL)
		return false;
	end = stream->length + segment->span;
	if (model_refuse_limit(run->answer, "seq_tokens_max", stream->released + end,
	                       m->config.seq_tokens_max)) {
		model_name_stream(run->answer, segment->request, label);
		return false;
	}
	if (segment->span == 0)
		return true;
	own_first(run, segment, stream);
	while ((int64_t)stream->num_pages * m->page_size < end)
		stream->pages[stream->num_pages++] =
			(int16_t)model_take(run, segment->request, label);
	for (int64_t g = stream->length; g < end && !run->trying; g++)
		stream->content[g] = model_token(run->ticket, segment->request, label,
		                                 stream->released + g);
	return true;
}
