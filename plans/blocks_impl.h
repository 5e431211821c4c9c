/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_PLANS_BLOCKS_IMPL_H
#define QUIRE_PLANS_BLOCKS_IMPL_H
/*
 * The distinct blocks of prompts, by name: what pages can be shared is decided block by
 * block, since all pages whose last token lies in one block live and die together.
 */
#include <stdbool.h>
#include <stdint.h>

struct quire_block {
	/* The name: of the prefix up to its end, where it starts, how long it is. */
	int64_t key;
	int64_t start;
	int64_t tokens;
	int64_t pages; /* full ones whose last token lies in it */
	int64_t live;  /* requests alive that have it */
	bool seen;     /* a request had it */
};

struct quire_blocks {
	void *tree; /* of tsearch */
};

/*
 * quire_blocks_find - the block of @wanted's name, added as @wanted where it is missing
 * Returns:  the block, lent until quire_blocks_end; NULL: no memory.
 */
struct quire_block *quire_blocks_find(struct quire_blocks *blocks,
                                      const struct quire_block *wanted);

/* quire_blocks_end - forget all of them */
void quire_blocks_end(struct quire_blocks *blocks);

#endif
