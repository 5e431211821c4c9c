/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "alloc/fifo_impl.h"
#include "runtime/refuse_impl.h"

static enum quire_status broken(const char *rule, uint32_t page,
                                struct quire_refusal *refusal_out)
{
	return quire_refuse_page(refusal_out, QUIRE_BROKEN, rule, page);
}

/* The id at a place of a list that begins in a slot of a page. */
static uint32_t listed(const struct quire_fifo *fifo, uint32_t page, uint32_t slot,
                       uint32_t place)
{
	int32_t pair[2];

	load_pair(&fifo->node[page].slot[slot + place / 2], pair);
	return (uint32_t)pair[place % 2];
}

/* What a group says is the page at one of its places. */
static uint32_t page_at(const struct quire_fifo *fifo, uint32_t root, uint32_t size,
                        uint32_t place)
{
	uint32_t start = place / FIFO_RUN * FIFO_RUN;
	uint32_t branch;

	if (place == size - 1)
		return root;
	branch = listed(fifo, root, NODE_BRANCHES, place / FIFO_RUN);
	if (place == branch_place(start, size) || branch >= fifo->num_pages)
		return branch;
	return listed(fifo, branch, 0, place - start);
}

/* The root behind another; the one link that may be missing is the tail's record. */
static uint32_t next_root(const struct quire_fifo *fifo, struct fifo_state s,
                          uint32_t root)
{
	uint64_t word = slot_load(word_of(fifo, root));
	uint64_t record = slot_load(record_of(fifo, state_tail(s)));

	if (word_is_link(word))
		return (uint32_t)word_value(word);
	return record >> 32 == root ? (uint32_t)record : FIFO_NO_PAGE;
}

/* One group of the list, of which `left` more free pages must come. */
static enum quire_status check_group(const struct quire_fifo *fifo, struct fifo_state s,
                                     struct fifo_place at, uint32_t left,
                                     struct quire_refusal *refusal_out)
{
	uint64_t word = slot_load(word_of(fifo, at.root));
	uint32_t size = word_size(word);

	if (!(word & WORD_ROOT) || size > FIFO_GROUP || at.skip >= size)
		return broken("a group has a root", at.root, refusal_out);
	if (left < size - at.skip)
		return broken("the groups hold as many pages as are free", at.root,
		              refusal_out);
	if (left > size - at.skip)
		return next_root(fifo, s, at.root) < fifo->num_pages
		               ? QUIRE_OK
		               : broken("a group is linked to the next", at.root,
		                        refusal_out);
	if (!word_is_last(word))
		return broken("the last group has no link", at.root, refusal_out);
	if (at.root != state_tail(s))
		return broken("the walk ends at the tail", at.root, refusal_out);
	if (word_is_newer(word, word_last(state_takes(s), size)))
		return broken("no group is newer than the pool", at.root, refusal_out);
	return QUIRE_OK;
}

enum quire_status quire_fifo_list(const struct quire_fifo *fifo, int32_t *pages_out,
                                  struct quire_refusal *refusal_out)
{
	/* Relaxed, here and below: the caller of a check has the pool to itself. */
	struct fifo_state s = {
		.lo = atomic_load_explicit(&fifo->state[0], memory_order_relaxed),
		.hi = atomic_load_explicit(&fifo->state[1], memory_order_relaxed),
	};
	struct fifo_place at = state_head(s);
	uint32_t left = state_count(s);

	if (left > fifo->num_pages ||
	    (left && (at.root >= fifo->num_pages || state_tail(s) >= fifo->num_pages)))
		return broken("the state names pages of the pool", at.root, refusal_out);
	while (left) {
		uint64_t word = slot_load(word_of(fifo, at.root));

		QUIRE_TRY(check_group(fifo, s, at, left, refusal_out));
		for (uint32_t place = at.skip; place < word_size(word); place++) {
			*pages_out++ =
				(int32_t)page_at(fifo, at.root, word_size(word), place);
			left--;
		}
		at = (struct fifo_place){next_root(fifo, s, at.root), 0};
	}
	return QUIRE_OK;
}

bool quire_fifo_owns(const struct quire_fifo *fifo, uint32_t page)
{
	return atomic_load_explicit(&fifo->owned[page], memory_order_relaxed);
}
