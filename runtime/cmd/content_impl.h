/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_RUNTIME_CMD_CONTENT_IMPL_H
#define QUIRE_RUNTIME_CMD_CONTENT_IMPL_H
/*
 * What every stream holds under --check, by the outcomes settled so far.
 *
 * A stream's tokens are a list of *pieces* of patterns: `count` tokens of the pattern
 * `seed` from its token `first` on.  No token of a pattern is written twice, so what was
 * rewound, abandoned, not committed or overwritten differs from what is there.  A fork
 * copies the list.  A speculative step adds to it once its fate is known: nothing behind
 * a held step is settled before.
 */
#include <stdbool.h>
#include <stdint.h>

struct cmd_piece {
	uint64_t seed;
	int64_t first;
	int64_t count; /* > 0 */
};

struct cmd_content {
	uint64_t request;
	int32_t label;
	int32_t num;
	int32_t room;
	struct cmd_piece *pieces;
	int64_t length; /* tokens of all pieces */
	int64_t released;
};

struct cmd_contents {
	void *tree; /* of struct cmd_content, by (request, label) */
};

void cmd_contents_end(struct cmd_contents *contents);

/* NULL: there is none. */
struct cmd_content *cmd_contents_find(struct cmd_contents *contents, uint64_t request,
                                      int32_t label);

/* The same, made empty if need be; NULL: no memory. */
struct cmd_content *cmd_contents_make(struct cmd_contents *contents, uint64_t request,
                                      int32_t label);

/* NULL is a no-op. */
void cmd_contents_drop(struct cmd_contents *contents, struct cmd_content *content);

/* At the end; false: no memory. */
bool cmd_content_append(struct cmd_content *content, const struct cmd_piece *piece);

/* @to gets all that @from is; false: no memory. */
bool cmd_content_copy(struct cmd_content *to, const struct cmd_content *from);

/* Drop so many tokens, 0..length, from the end; from the front, where they count as
 * released. */
void cmd_content_cut_end(struct cmd_content *content, int64_t tokens);
void cmd_content_cut_front(struct cmd_content *content, int64_t tokens);

/* Nothing is left, nothing counts as released. */
void cmd_content_clear(struct cmd_content *content);

#endif
