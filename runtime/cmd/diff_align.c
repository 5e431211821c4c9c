/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/diff_impl.h"

/* Places of a window by a part of the key: lists in the window's order. */
struct places {
	uint16_t first[CMD_DIFF_WINDOW]; /* 0: none, otherwise a place and 1 */
	uint16_t next[CMD_DIFF_WINDOW];
};

_Static_assert(CMD_DIFF_WINDOW < UINT16_MAX, "a place and 1 is an uint16_t");

/* Two windows, and what is looked for. */
struct search {
	const struct diff_side *a, *b;
	struct places in_a, in_b;
	bool surely; /* what is alike has to be alike for certain */
};

static uint16_t *list_of(struct places *places, const struct diff_key *key)
{
	return &places->first[key->low % CMD_DIFF_WINDOW];
}

static void sort_places(struct places *places, const struct diff_side *side)
{
	*places = (struct places){.first = {0}};
	for (uint64_t i = diff_side_count(side); i-- > 0;) {
		uint16_t *first = list_of(places, &diff_side_at(side, i)->key);

		places->next[i] = *first;
		*first = (uint16_t)(i + 1);
	}
}

/* Is there one command only with this key? */
static bool is_unique(struct places *places, const struct diff_side *side,
                      const struct diff_key *key)
{
	int count = 0;

	for (uint16_t at = *list_of(places, key); at != 0 && count < 2;
	     at = places->next[at - 1])
		count += diff_key_same(&diff_side_at(side, at - 1)->key, key);
	return count == 1;
}

/* Do CMD_DIFF_RUN commands look alike from there, or all to the end of both windows? */
static bool is_run(const struct search *search, uint64_t i, uint64_t j)
{
	for (uint64_t k = 0; k < CMD_DIFF_RUN; k++) {
		bool a_ends = i + k == diff_side_count(search->a);
		bool b_ends = j + k == diff_side_count(search->b);

		if (a_ends || b_ends)
			return a_ends && b_ends;
		if (!diff_key_same(&diff_side_at(search->a, i + k)->key,
		                   &diff_side_at(search->b, j + k)->key))
			return false;
	}
	return true;
}

/* Are the commands of two places alike?  Of those that come again and again, only if more
 * follow that are. */
static bool is_alike(struct search *search, uint64_t i, uint64_t j)
{
	const struct diff_key *key = &diff_side_at(search->a, i)->key;

	if (!diff_key_same(key, &diff_side_at(search->b, j)->key))
		return false;
	return !search->surely || is_run(search, i, j) ||
	       (is_unique(&search->in_a, search->a, key) &&
	        is_unique(&search->in_b, search->b, key));
}

/* The place with the fewest commands before it; false: there is none. */
static bool find(struct search *search, uint64_t *skip_a, uint64_t *skip_b)
{
	uint64_t best = UINT64_MAX;

	for (uint64_t i = 0; i < diff_side_count(search->a) && i < best; i++) {
		uint16_t at = *list_of(&search->in_b, &diff_side_at(search->a, i)->key);

		for (; at != 0 && i + at - 1 < best; at = search->in_b.next[at - 1]) {
			uint64_t j = at - 1;

			if (!is_alike(search, i, j))
				continue;
			best = i + j;
			*skip_a = i;
			*skip_b = j;
		}
	}
	return best != UINT64_MAX;
}

void diff_align(const struct diff_side *a, const struct diff_side *b, uint64_t *skip_a,
                uint64_t *skip_b)
{
	struct search search = {.a = a, .b = b, .surely = true};

	sort_places(&search.in_a, a);
	sort_places(&search.in_b, b);
	if (find(&search, skip_a, skip_b))
		return;
	search.surely = false;
	if (find(&search, skip_a, skip_b))
		return;
	*skip_a = diff_side_count(a);
	*skip_b = diff_side_count(b);
}
