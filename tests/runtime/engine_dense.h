/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_TESTS_ENGINE_DENSE_H
#define QUIRE_TESTS_ENGINE_DENSE_H
/*
 * What a toy engine should compute, without pages: every stream is a plain array of
 * tokens, and attention runs over that array in double.
 *
 * The model: a token's numbers follow from who wrote it (request and label, which a fork
 * does not change), its absolute position, and its value.  Q, K and V of both layers are
 * drawn from those by a fixed formula; each pair of query heads shares one head of K and
 * V.  A row without new tokens asks with one token of its own, which nobody writes.
 */
#include <stdbool.h>
#include <stdint.h>

#define ENGINE_LAYERS   2
#define ENGINE_KV_HEADS 2
#define ENGINE_Q_HEADS  4
#define ENGINE_DIM      8
#define ENGINE_REQUESTS 6
#define ENGINE_LABELS   4
#define ENGINE_TOKENS   192 /* of one stream */
#define ENGINE_OUT      (ENGINE_LAYERS * ENGINE_Q_HEADS * ENGINE_DIM)

enum engine_part {
	ENGINE_Q,
	ENGINE_K,
	ENGINE_V,
};

struct engine_token {
	uint64_t request;
	int32_t label; /* index in engine_labels */
	int32_t position;
	uint32_t value;
};

struct engine_stream {
	bool exists;
	int32_t released;
	int32_t length;
	struct engine_token tokens[ENGINE_TOKENS]; /* live ones */
};

struct engine_dense {
	int32_t page_size;
	struct engine_stream streams[ENGINE_REQUESTS][ENGINE_LABELS];
};

extern const char *const engine_labels[ENGINE_LABELS];

/* engine_label - the index of a label's name; NULL: "main" */
int32_t engine_label(const char *name);

/* engine_number - one number of a token: a multiple of 1/128 from -1 to 127/128 */
float engine_number(const struct engine_token *token, int32_t layer,
                    enum engine_part part, int32_t head, int32_t dim);

/* engine_question - the token that a row without new tokens asks with */
struct engine_token engine_question(uint64_t request, int32_t label, int32_t length);

/* What commands do to streams. */
void engine_dense_open(struct engine_dense *dense, int32_t request);
void engine_dense_close(struct engine_dense *dense, int32_t request);
void engine_dense_reset(struct engine_stream *stream);
void engine_dense_rewind(struct engine_stream *stream, int32_t tokens);
void engine_dense_release_front(struct engine_stream *stream, int32_t tokens,
                                int32_t page_size);
void engine_dense_fork(struct engine_dense *dense, int32_t request, const char *source,
                       const char *target);
void engine_dense_append(struct engine_stream *stream, uint64_t request, int32_t label,
                         uint32_t value);

/*
 * engine_dense_attend - causal attention of one token over a stream's first tokens
 * @out:     filled; [layer, query head, dim]; zeros when there are none
 */
void engine_dense_attend(const struct engine_stream *stream, int32_t num_tokens,
                         const struct engine_token *query, double *out);

/*
 * engine_tolerance - how far f32 may be off that, over so many tokens
 *
 * Q, K and V are multiples of 2^-7 up to 1, so eight products are summed without an
 * error.  A score, up to 2.9, is rounded twice on its way into the exponential, which has
 * an error of its own: a weight is off by less than 16 u of itself, u = 2^-24.  Sums of n
 * weights, and of n weighted numbers, are off by n u each, at worst; there is one
 * division.  All is relative to an average of numbers up to 1.
 */
double engine_tolerance(int32_t num_tokens);

#endif
