/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/diff_impl.h"

/* A key of a window: where it comes first, and how often. */
struct place {
	struct diff_key key;
	uint16_t first;
	uint16_t count;
	uint16_t
		next; /* of those with the same end of the key; 0: none, or a place and 1 */
};

struct places {
	struct place list[CMD_DIFF_WINDOW];
	uint16_t heads[CMD_DIFF_WINDOW];
	uint16_t num;
};

_Static_assert(CMD_DIFF_WINDOW < UINT16_MAX, "a place and 1 is an uint16_t");

/* Two windows.  A run is the key of a place and of those behind it.  What is alike is found
 * by the first place of its key, so a search takes a time that goes with the windows. */
struct search {
	const struct diff_side *a, *b;
	struct places keys_a, keys_b, runs_b;
};

static struct place *find_place(struct places *places, const struct diff_key *key)
{
	uint16_t at = places->heads[key->low % CMD_DIFF_WINDOW];

	while (at != 0 && !diff_key_same(&places->list[at - 1].key, key))
		at = places->list[at - 1].next;
	return at != 0 ? &places->list[at - 1] : NULL;
}

/* From the last place to the first. */
static void add_place(struct places *places, const struct diff_key *key, uint64_t i)
{
	struct place *place = find_place(places, key);
	uint16_t *head = &places->heads[key->low % CMD_DIFF_WINDOW];

	if (place == NULL) {
		place = &places->list[places->num++];
		*place = (struct place){.key = *key, .next = *head};
		*head = places->num;
	}
	place->first = (uint16_t)i;
	place->count++;
}

/* CMD_DIFF_RUN commands from there; false: there are fewer. */
static bool run_of(const struct diff_side *side, uint64_t i, struct diff_key *run)
{
	struct diff_key keys[CMD_DIFF_RUN];

	if (i + CMD_DIFF_RUN > diff_side_count(side))
		return false;
	for (uint64_t k = 0; k < CMD_DIFF_RUN; k++)
		keys[k] = diff_side_at(side, i + k)->key;
	*run = diff_key_of_run(keys);
	return true;
}

static void index_windows(struct search *search)
{
	search->keys_a.num = search->keys_b.num = search->runs_b.num = 0;
	for (int head = 0; head < CMD_DIFF_WINDOW; head++)
		search->keys_a.heads[head] = search->keys_b.heads[head] =
			search->runs_b.heads[head] = 0;
	for (uint64_t i = diff_side_count(search->a); i-- > 0;)
		add_place(&search->keys_a, &diff_side_at(search->a, i)->key, i);
	for (uint64_t j = diff_side_count(search->b); j-- > 0;) {
		struct diff_key run;

		add_place(&search->keys_b, &diff_side_at(search->b, j)->key, j);
		if (run_of(search->b, j, &run))
			add_place(&search->runs_b, &run, j);
	}
}

/* The first place of B that is like that of A for certain: what comes again and again, only
 * if more follow that are. */
static const struct place *find_sure(struct search *search, uint64_t i)
{
	const struct diff_key *key = &diff_side_at(search->a, i)->key;
	const struct place *in_b = find_place(&search->keys_b, key);
	struct diff_key run;

	if (in_b == NULL ||
	    (in_b->count == 1 && find_place(&search->keys_a, key)->count == 1))
		return in_b;
	return run_of(search->a, i, &run) ? find_place(&search->runs_b, &run) : NULL;
}

/* Where both go on: so many commands are passed over in each. */
struct meeting {
	uint64_t skip_a, skip_b;
	const struct diff_key *key;
};

/* The fewer the nearer; then as many of one as of the other; then whatever is the same
 * when A and B change places. */
static bool is_nearer(const struct meeting *one, const struct meeting *than)
{
	uint64_t sum = one->skip_a + one->skip_b, other = than->skip_a + than->skip_b;
	uint64_t longer = one->skip_a > one->skip_b ? one->skip_a : one->skip_b;
	uint64_t longer_other = than->skip_a > than->skip_b ? than->skip_a : than->skip_b;

	if (sum != other)
		return sum < other;
	if (longer != longer_other)
		return longer < longer_other;
	return one->key->low < than->key->low;
}

/* The nearest; false: they do not meet. */
static bool find(struct search *search, bool surely, uint64_t *skip_a, uint64_t *skip_b)
{
	static const struct diff_key none;
	struct meeting best = {
		.skip_a = CMD_DIFF_WINDOW, .skip_b = CMD_DIFF_WINDOW, .key = &none};

	for (uint64_t i = 0;
	     i < diff_side_count(search->a) && i <= best.skip_a + best.skip_b; i++) {
		const struct place *place =
			surely ? find_sure(search, i)
			       : find_place(&search->keys_b,
		                            &diff_side_at(search->a, i)->key);
		struct meeting meeting = {.skip_a = i};

		if (place == NULL)
			continue;
		meeting.skip_b = place->first;
		meeting.key = &place->key;
		if (is_nearer(&meeting, &best))
			best = meeting;
	}
	*skip_a = best.skip_a;
	*skip_b = best.skip_b;
	return best.key != &none;
}

void diff_align(const struct diff_side *a, const struct diff_side *b, uint64_t *skip_a,
                uint64_t *skip_b)
{
	struct search search;

	search.a = a;
	search.b = b;
	index_windows(&search);
	if (find(&search, true, skip_a, skip_b) || find(&search, false, skip_a, skip_b))
		return;
	*skip_a = diff_side_count(a);
	*skip_b = diff_side_count(b);
}
