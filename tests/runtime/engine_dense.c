/* SPDX-License-Identifier: MIT */
/* The dense side: arrays of tokens, attention in double. */
#include "config.h"

#include "engine_dense.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const engine_labels[ENGINE_LABELS] = {"main", "cfg_text", "beam", "swap"};

int32_t engine_label(const char *name)
{
	if (name == NULL)
		return 0;
	for (int32_t label = 0; label < ENGINE_LABELS; label++)
		if (strcmp(engine_labels[label], name) == 0)
			return label;
	abort();
}

/* ------------------------------------------------------------------ the model */

/* Source: the finalizer of splitmix64. */
static uint64_t mix(uint64_t word)
{
	word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9ull;
	word = (word ^ (word >> 27)) * 0x94d049bb133111ebull;
	return word ^ (word >> 31);
}

float engine_number(const struct engine_token *token, int32_t layer,
                    enum engine_part part, int32_t head, int32_t dim)
{
	uint64_t who = token->request * ENGINE_LABELS + (uint64_t)token->label;
	uint64_t word = mix(mix(who * 0x9e3779b97f4a7c15ull + token->value) +
	                    (uint64_t)(uint32_t)token->position);
	uint64_t place =
		(((uint64_t)layer * 3 + part) * ENGINE_Q_HEADS + (uint64_t)head) *
			ENGINE_DIM +
		(uint64_t)dim;

	return (float)((int32_t)(mix(word + place) >> 56) - 128) / 128;
}

struct engine_token engine_question(uint64_t request, int32_t label, int32_t length)
{
	return (struct engine_token){.request = request,
	                             .label = label,
	                             .position = length,
	                             .value = 0xffffffff};
}

/* ------------------------------------------------------------------ streams */

void engine_dense_open(struct engine_dense *dense, int32_t request)
{
	dense->streams[request][0].exists = true;
}

void engine_dense_close(struct engine_dense *dense, int32_t request)
{
	memset(dense->streams[request], 0, sizeof(dense->streams[request]));
}

void engine_dense_reset(struct engine_stream *stream)
{
	stream->length = 0;
	stream->released = 0;
}

void engine_dense_rewind(struct engine_stream *stream, int32_t tokens)
{
	stream->length -= tokens;
}

/* Whole pages, never the last one. */
void engine_dense_release_front(struct engine_stream *stream, int32_t tokens,
                                int32_t page_size)
{
	int32_t pages = tokens / page_size;
	int32_t most = (stream->length + page_size - 1) / page_size - 1;

	if (pages > most)
		pages = most;
	if (pages <= 0)
		return;
	stream->length -= pages * page_size;
	stream->released += pages * page_size;
	memmove(stream->tokens, stream->tokens + pages * page_size,
	        sizeof(stream->tokens[0]) * (size_t)stream->length);
}

void engine_dense_fork(struct engine_dense *dense, int32_t request, const char *source,
                       const char *target)
{
	struct engine_stream *streams = dense->streams[request];

	if (streams[engine_label(source)].exists)
		streams[engine_label(target)] = streams[engine_label(source)];
}

void engine_dense_append(struct engine_stream *stream, uint64_t request, int32_t label,
                         uint32_t value)
{
	if (stream->length == ENGINE_TOKENS)
		abort();
	stream->exists = true;
	stream->tokens[stream->length] = (struct engine_token){
		.request = request,
		.label = label,
		.position = stream->released + stream->length,
		.value = value,
	};
	stream->length++;
}

/* ------------------------------------------------------------------ attention */

static void attend_head(const struct engine_stream *stream, int32_t num_tokens,
                        const struct engine_token *query, int32_t layer, int32_t head,
                        double *out)
{
	int32_t kv_head = head * ENGINE_KV_HEADS / ENGINE_Q_HEADS;
	double sum = 0;

	memset(out, 0, sizeof(*out) * ENGINE_DIM);
	for (int32_t i = 0; i < num_tokens; i++) {
		const struct engine_token *token = &stream->tokens[i];
		double score = 0;

		for (int32_t d = 0; d < ENGINE_DIM; d++)
			score +=
				(double)engine_number(query, layer, ENGINE_Q, head, d) *
				(double)engine_number(token, layer, ENGINE_K, kv_head, d);
		score = exp(score / sqrt(ENGINE_DIM));
		sum += score;
		for (int32_t d = 0; d < ENGINE_DIM; d++)
			out[d] += score * (double)engine_number(token, layer, ENGINE_V,
			                                        kv_head, d);
	}
	for (int32_t d = 0; d < ENGINE_DIM && num_tokens > 0; d++)
		out[d] /= sum;
}

void engine_dense_attend(const struct engine_stream *stream, int32_t num_tokens,
                         const struct engine_token *query, double *out)
{
	for (int32_t layer = 0; layer < ENGINE_LAYERS; layer++)
		for (int32_t head = 0; head < ENGINE_Q_HEADS; head++, out += ENGINE_DIM)
			attend_head(stream, num_tokens, query, layer, head, out);
}

double engine_tolerance(int32_t num_tokens)
{
	/* Above the line and below it 16 and n; the rest is room. */
	return (64 + 2 * num_tokens) * 0x1p-24;
}
