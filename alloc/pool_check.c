/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "alloc/pool_impl.h"
#include "runtime/refuse_impl.h"

/* Relaxed: the caller of a check has the pool to itself. */
static uint64_t word_alone(const struct quire_pool *pool, uint32_t p)
{
	return atomic_load_explicit(&pool->word[p], memory_order_relaxed);
}

static enum quire_status broken(const char *rule, uint32_t p,
                                struct quire_refusal *refusal_out)
{
	return quire_refuse(refusal_out, (struct quire_refusal){.status = QUIRE_BROKEN,
	                                                        .what = rule,
	                                                        .page = (int32_t)p});
}

/*
 * Since the last page visited must be the only one without a link, no page can be visited
 * twice: from a page visited twice the walk would never come to an end.
 */
static enum quire_status check_order(const struct quire_pool *pool, struct pool_state s,
                                     struct quire_refusal *refusal_out)
{
	uint32_t p = state_head(s);
	uint32_t count = state_count(s);

	for (uint32_t i = 0; i < count; i++) {
		uint64_t word = word_alone(pool, p);
		bool last = i + 1 == count;

		if (word_tag(word) != (last ? WORD_TAG_LAST : WORD_TAG_LINK))
			return broken(last ? "the last free page has no link"
			                   : "a free page is linked to the next",
			              p, refusal_out);
		if (last && p != state_tail(s))
			return broken("the walk ends at the tail", p, refusal_out);
		if (last && word_value(word) > state_takes(s))
			return broken("no page is newer than the pool", p, refusal_out);
		if (!last && word_value(word) >= pool->num_pages)
			return broken("a link names a page", p, refusal_out);
		p = (uint32_t)word_value(word);
	}
	return QUIRE_OK;
}

enum quire_status quire_pool_check(const struct quire_pool *pool, int32_t *pages_out,
                                   struct quire_refusal *refusal_out)
{
	/* Relaxed: as in word_alone(). */
	struct pool_state s = {
		.lo = atomic_load_explicit(&pool->state[0], memory_order_relaxed),
		.hi = atomic_load_explicit(&pool->state[1], memory_order_relaxed),
	};
	uint32_t p, not_owned = 0;
	enum quire_status status;

	if (state_count(s) > pool->num_pages || state_head(s) >= pool->num_pages)
		return broken("the state names pages of the pool", state_head(s),
		              refusal_out);
	status = check_order(pool, s, refusal_out);
	if (status)
		return status;
	for (p = 0; p < pool->num_pages; p++) {
		if (word_alone(pool, p) != WORD_OWNED && ++not_owned > state_count(s))
			return broken("a page is free or owned", p, refusal_out);
	}
	p = state_head(s);
	for (uint32_t i = 0; pages_out && i < state_count(s); i++) {
		pages_out[i] = (int32_t)p;
		p = (uint32_t)word_value(word_alone(pool, p));
	}
	return QUIRE_OK;
}
