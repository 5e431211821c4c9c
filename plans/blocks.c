/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "plans/blocks_impl.h"

#include <search.h>
#include <stdlib.h>

static int order(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

static int compare_names(const void *left, const void *right)
{
	const struct quire_block *a = left, *b = right;
	int way = order(a->key, b->key);

	if (way == 0)
		way = order(a->start, b->start);
	return way != 0 ? way : order(a->tokens, b->tokens);
}

struct quire_block *quire_blocks_find(struct quire_blocks *blocks,
                                      const struct quire_block *wanted)
{
	struct quire_block **node = tfind(wanted, &blocks->tree, compare_names);
	struct quire_block *made;

	if (node != NULL)
		return *node;
	made = malloc(sizeof(*made));
	if (made == NULL)
		return NULL;
	*made = *wanted;
	if (tsearch(made, &blocks->tree, compare_names) == NULL) {
		free(made);
		return NULL;
	}
	return made;
}

void quire_blocks_end(struct quire_blocks *blocks)
{
	tdestroy(blocks->tree, free);
	blocks->tree = NULL;
}
