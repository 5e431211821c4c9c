/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "alloc/fifo_impl.h"

#include <quire/runtime/assert.h>
#include <quire/runtime/sanitize.h>

#include <ck_pr.h>

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* A huge page of memory, and the block that is worth its alignment. */
#define HUGE_BYTES       ((size_t)2 << 20)
#define HUGE_BLOCK_BYTES (8 * HUGE_BYTES)

/*
 * Acquire on both halves pairs with the release in state_cas(): who sees a state sees the
 * nodes published with it.  The halves may be of two states, the high one of the newer.
 * What is decided by one load is decided by the low half; everything else ends in a
 * comparison with S, of the low half at least, which differs between any two states (I5).
 */
static struct fifo_state state_load(const struct quire_fifo *fifo)
{
	struct fifo_state s;

	s.lo = atomic_load_explicit(&fifo->state[0], memory_order_acquire);
	QUIRE_POOL_POINT(LOADING);
	s.hi = atomic_load_explicit(&fifo->state[1], memory_order_acquire);
	return s;
}

/*
 * S from *seen to `next`, or the S that is there by now into *seen.
 *
 * Release: pairs with state_load(), which is where every *seen comes from, so success
 * needs no acquire of its own.  The fence is the compiler's only where the instruction is
 * a full barrier, as on x86-64.  What the instruction itself finds when it fails may be
 * the halves of two states in the wrong order on some machines, and is not used.
 */
static bool state_cas(struct quire_fifo *fifo, struct fifo_state *seen,
                      struct fifo_state next)
{
	uint64_t compare[2] = {seen->lo, seen->hi};
	uint64_t set[2] = {next.lo, next.hi};

	QUIRE_TSAN_RELEASE(&fifo->state[0]);
	ck_pr_fence_release();
	if (ck_pr_cas_64_2((uint64_t *)(void *)fifo->state, compare, set))
		return true;
	*seen = state_load(fifo);
	return false;
}

/*
 * Make the link that may be missing in state s.
 *
 * Record and words may be overwritten while they are read, in a later life of their
 * pages.  Anything of a later life of the tail comes with a changed S (slot_load), which
 * turns it away.  The old tail may be in a later life although S is the same, once the
 * link has been made.  Its word is then the LINK of the life before (as a leaf, or as a
 * root inside of a batch not yet written), a LINK or two page ids (as such a root or a
 * branch), or, as the last root of a batch that is not appended, a LAST with a gen newer
 * than the tail's, since the tail was appended before the old tail was taken.  None of
 * these is linked.  The tail's own word is a LAST as long as S is the same: its link is
 * released after an append, so that who reads it finds S changed.  The CAS finds the
 * exact word of this life or fails (I3): it comes too late without harm.
 */
static void help(struct quire_fifo *fifo, struct fifo_state s)
{
	uint32_t tail = state_tail(s);
	uint64_t record = slot_load(record_of(fifo, tail));
	uint32_t old_tail = record >> 32;
	uint64_t word, tail_word;

	QUIRE_POOL_POINT(HELP_READ);
	if (old_tail >= fifo->num_pages)
		return;
	tail_word = slot_load(word_of(fifo, tail));
	word = slot_load(word_of(fifo, old_tail));
	if (!word_is_last(word) || word_is_newer(word, tail_word))
		return;
	/* Relaxed: the acquires above order it behind them; no data follows from it. */
	if (atomic_load_explicit(&fifo->state[0], memory_order_relaxed) != s.lo)
		return;
	QUIRE_POOL_POINT(HELP_CHECKED);
	/* Release: pairs with the acquire in slot_load(), in walks and above. */
	atomic_compare_exchange_strong_explicit(
		word_of(fifo, old_tail), &word,
		word_link((uint32_t)record, word_size(word)), memory_order_release,
		memory_order_relaxed);
}

/*
 * The root behind `root` in state s, or FIFO_NO_PAGE when S has moved on.  A stale walk
 * may read nodes of pages that were taken or freed since: every LINK names a page of this
 * pool, and the CAS on S that follows fails.
 */
static uint32_t root_behind(struct quire_fifo *fifo, struct fifo_state s, uint32_t root)
{
	uint64_t word = slot_load(word_of(fifo, root));

	if (!word_is_link(word)) {
		help(fifo, s);
		word = slot_load(word_of(fifo, root));
	}
	return word_is_link(word) ? (uint32_t)word_value(word) : FIFO_NO_PAGE;
}

/* The page of one branch: whatever role a node has, these slots hold ids of the pool. */
static uint32_t branch_of(const struct quire_fifo *fifo, uint32_t root, uint32_t branch)
{
	int32_t pair[2];

	load_pair(&fifo->node[root].slot[NODE_BRANCHES + branch / 2], pair);
	return (uint32_t)pair[branch % 2];
}

/* Leaves [from, to) of a branch into pages_out. */
static void read_leaves(const struct fifo_node *branch, uint32_t from, uint32_t to,
                        int32_t *pages_out)
{
	const _Atomic uint64_t *slot = &branch->slot[from / 2];
	uint32_t n = to - from;
	int32_t pair[2];

	if (n && from % 2) {
		load_pair(slot++, pair);
		*pages_out++ = pair[1];
		n--;
	}
#pragma GCC unroll 4
	for (uint32_t i = 0; i < n / 2; i++)
		load_pair(&slot[i], &pages_out[2 * i]);
	if (n % 2) {
		load_pair(&slot[n / 2], pair);
		pages_out[n - 1] = pair[0];
	}
}

/* Pages [from, to) of a group of `size` into pages_out. */
static void read_group(const struct quire_fifo *fifo, uint32_t root, uint32_t size,
                       uint32_t from, uint32_t to, int32_t *pages_out)
{
	uint32_t run = from / FIFO_RUN;

	for (uint32_t start = run * FIFO_RUN; from < to && from < size - 1;
	     start += FIFO_RUN) {
		uint32_t place = branch_place(start, size);
		uint32_t branch = branch_of(fifo, root, run++);
		uint32_t end = to < place ? to : place;

		read_leaves(&fifo->node[branch], from - start, end - start, pages_out);
		pages_out += end - from;
		from = end;
		if (from < to) {
			*pages_out++ = (int32_t)branch;
			from++;
		}
	}
	if (from < to)
		*pages_out = (int32_t)root;
}

/* Where a walk over the n oldest pages ended. */
struct walk {
	struct fifo_place end;    /* the group of the n-th, and how many of it would go */
	uint32_t num_rest;        /* pages in rest: the n-th oldest is the last of them */
	int32_t rest[FIFO_GROUP]; /* those of a group that would not go whole */
};

/* What a take will read of a group, and the root behind it: nodes lie anywhere. */
static void prefetch_group(const struct quire_fifo *fifo, uint32_t root, uint64_t word,
                           uint32_t from)
{
	if (word_is_link(word))
		__builtin_prefetch(&fifo->node[word_value(word)]);
	for (uint32_t i = from / FIFO_RUN; i * FIFO_RUN + 1 < word_size(word); i++)
		__builtin_prefetch(&fifo->node[branch_of(fifo, root, i)]);
}

/*
 * Find the n oldest pages in state s.  What is read of a group that goes whole can wait
 * until it is taken: then nobody else has its pages.  false: S has moved on.
 */
static bool walk_run(struct quire_fifo *fifo, struct fifo_state s, uint32_t n,
                     struct walk *walk)
{
	struct fifo_place place = state_head(s);
	uint32_t size;

	for (;;) {
		uint64_t word = slot_load(word_of(fifo, place.root));

		size = word_size(word); /* 0 of what is no root */
		if (place.skip >= size)
			return false;
		if (n < size - place.skip)
			break;
		prefetch_group(fifo, place.root, word, place.skip);
		n -= size - place.skip;
		if (n == 0) {
			walk->end = (struct fifo_place){place.root, size};
			walk->num_rest = 0;
			return true;
		}
		place = (struct fifo_place){root_behind(fifo, s, place.root), 0};
		if (place.root == FIFO_NO_PAGE)
			return false;
	}
	walk->end = (struct fifo_place){place.root, place.skip + n};
	walk->num_rest = n;
	read_group(fifo, place.root, size, place.skip, walk->end.skip, walk->rest);
	return true;
}

/*
 * Take the n pages of a walk in state *s.  While only frees intervene (takes is the same)
 * the run stays the n oldest pages and only the head after it may change.
 */
static bool take_run(struct quire_fifo *fifo, struct fifo_state *s, uint32_t n,
                     const struct walk *walk)
{
	uint64_t takes = state_takes(*s);

	do {
		struct fifo_place head = {0, 0};

		if (walk->num_rest)
			head = walk->end;
		else if (state_count(*s) > n)
			head.root = root_behind(fifo, *s, walk->end.root);
		if (head.root == FIFO_NO_PAGE)
			return false;
		__builtin_prefetch(&fifo->node[head.root]); /* for the next take */
		QUIRE_POOL_POINT(WALKED);
		if (state_cas(fifo, s,
		              state_make(head, state_tail(*s), state_count(*s) - n,
		                         takes + 1)))
			return true;
	} while (state_takes(*s) == takes);
	return false;
}

/* Name the n pages taken from `place` on, and mark them owned. */
static void hand_out(struct quire_fifo *fifo, struct fifo_place place, uint32_t n,
                     const struct walk *walk, int32_t *pages_out)
{
	_Atomic uint8_t *owned = fifo->owned;
	uint32_t at = 0;

	while (at < n - walk->num_rest) {
		uint64_t word = slot_load(word_of(fifo, place.root));
		uint32_t size = word_size(word);

		read_group(fifo, place.root, size, place.skip, size, pages_out + at);
		at += size - place.skip;
		place = (struct fifo_place){(uint32_t)word_value(word), 0};
	}
	if (walk->num_rest)
		memcpy(pages_out + at, walk->rest, walk->num_rest * sizeof(*pages_out));
	for (uint32_t i = 0; i < n; i++) {
		/* Release: pairs with the acquire of the claim, so that what the page's
		 * next free writes and reads comes after this take in everybody's eyes. */
		atomic_store_explicit(&owned[pages_out[i]], 1, memory_order_release);
	}
}

bool quire_fifo_take(struct quire_fifo *fifo, uint32_t n, int32_t *pages_out,
                     uint32_t *available_out)
{
	struct fifo_state s = state_load(fifo);

	while (state_count(s) >= n) {
		struct fifo_place head = state_head(s);
		struct walk walk;

		QUIRE_POOL_POINT(STARTED);
		if (walk_run(fifo, s, n, &walk) && take_run(fifo, &s, n, &walk)) {
			QUIRE_POOL_POINT(TAKEN);
			hand_out(fifo, head, n, &walk, pages_out);
			return true;
		}
		s = state_load(fifo);
	}
	*available_out = state_count(s);
	return false;
}

/* The place of the first page that cannot be given, or n.  Touches nothing. */
static uint32_t find_bad(const struct quire_fifo *fifo, const int32_t *pages, uint32_t n)
{
	const _Atomic uint8_t *owned = fifo->owned;
	uint32_t num_pages = fifo->num_pages;
	uint32_t i = 0;

	/* Relaxed: only turns a plainly bad batch away; the claim decides. */
	while (i < n && (uint32_t)pages[i] < num_pages &&
	       atomic_load_explicit(&owned[pages[i]], memory_order_relaxed))
		i++;
	return i;
}

/* Give back what was claimed, unseen. */
static void unclaim(struct quire_fifo *fifo, const int32_t *pages, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		/* Release: as hand_out() does. */
		atomic_store_explicit(&fifo->owned[pages[i]], 1, memory_order_release);
	}
}

/*
 * Claim every page of a batch that find_bad() let pass: n, or the place of the first page
 * that somebody else (or an earlier place of the same batch) has claimed, with all
 * undone.
 */
static uint32_t claim_batch(struct quire_fifo *fifo, const int32_t *pages, uint32_t n)
{
	_Atomic uint8_t *owned = fifo->owned;
	uint32_t i;

	QUIRE_POOL_POINT(SEEN);
	/* Acquire: pairs with the release of hand_out() and of unclaim().  What is
	 * claimed here is published by the CAS on S. */
	for (i = 0;
	     i < n && atomic_exchange_explicit(&owned[pages[i]], 0, memory_order_acquire);
	     i++)
		QUIRE_POOL_POINT(CLAIMING);
	if (i < n)
		unclaim(fifo, pages, i);
	return i;
}

/* The same for a caller who is the only giver, with every check. */
static uint32_t claim_alone(struct quire_fifo *fifo, const int32_t *pages, uint32_t n)
{
	_Atomic uint8_t *owned = fifo->owned;
	uint32_t num_pages = fifo->num_pages;
	uint32_t i;

	for (i = 0; i < n && (uint32_t)pages[i] < num_pages; i++) {
		/* Acquire: as above.  Nobody else changes a 1. */
		if (!atomic_load_explicit(&owned[pages[i]], memory_order_acquire))
			break;
		/* Relaxed: published by the CAS on S. */
		atomic_store_explicit(&owned[pages[i]], 0, memory_order_relaxed);
	}
	if (i < n)
		unclaim(fifo, pages, i);
	return i;
}

/* The pages before a group's root, into the nodes of the group. */
static void write_group(struct quire_fifo *fifo, const int32_t *pages, uint32_t size)
{
	struct fifo_node *node = fifo->node;
	int32_t branches[FIFO_BRANCHES + 1] = {0};
	uint32_t num_branches = 0;

	for (uint32_t start = 0; start < size - 1; start += FIFO_RUN) {
		uint32_t place = branch_place(start, size);
		uint32_t num_pairs = (place - start + 1) / 2;
		_Atomic uint64_t *slot = node[pages[place]].slot;

		/* The last pair may take the branch with it. */
#pragma GCC unroll 4
		for (uint32_t i = 0; i < num_pairs; i++)
			store_pair(&slot[i], &pages[start + 2 * i]);
		branches[num_branches++] = pages[place];
	}
	for (uint32_t i = 0; i < num_branches; i += 2)
		store_pair(&node[pages[size - 1]].slot[NODE_BRANCHES + i / 2],
		           &branches[i]);
}

/* What an append needs to know of a claimed batch. */
struct batch {
	uint32_t first_root;
	uint32_t last_root;
	uint32_t last_size;
	uint32_t n;
};

/* Everything of a batch but the last root's word and record. */
static struct batch write_batch(struct quire_fifo *fifo, const int32_t *pages, uint32_t n)
{
	uint32_t size = n < FIFO_GROUP ? n : FIFO_GROUP;
	struct batch batch = {.first_root = (uint32_t)pages[size - 1], .n = n};

	for (;;) {
		uint32_t next;

		if (size > 1)
			write_group(fifo, pages, size);
		n -= size;
		if (n == 0)
			break;
		next = n < FIFO_GROUP ? n : FIFO_GROUP;
		slot_store(word_of(fifo, (uint32_t)pages[size - 1]),
		           word_link((uint32_t)pages[size + next - 1], size));
		pages += size;
		size = next;
	}
	batch.last_root = (uint32_t)pages[size - 1];
	batch.last_size = size;
	return batch;
}

/*
 * Append a written batch: ready its last root for state *s, and change S.  A false leaves
 * the S to try next in *s.
 *
 * A record tells of one link only, so that of the batch before must be made first; the
 * new one is left to whoever comes to need it (help).  s was read after the claims (they
 * acquire), which makes the last root's word new (I3).
 */
static bool append_at(struct quire_fifo *fifo, struct fifo_state *s,
                      const struct batch *batch)
{
	uint32_t count = state_count(*s);
	uint32_t old_tail = FIFO_NO_PAGE;
	struct fifo_place head = {batch->first_root, 0};

	QUIRE_ASSERT(count + batch->n <= fifo->num_pages);
	if (count) {
		help(fifo, *s);
		old_tail = state_tail(*s);
		head = state_head(*s);
	}
	slot_store(word_of(fifo, batch->last_root),
	           word_last(state_takes(*s), batch->last_size));
	slot_store(record_of(fifo, batch->last_root),
	           (uint64_t)old_tail << 32 | batch->first_root);
	QUIRE_POOL_POINT(RECORDED);
	return state_cas(
		fifo, s,
		state_make(head, batch->last_root, count + batch->n, state_takes(*s)));
}

static void append(struct quire_fifo *fifo, const struct batch *batch)
{
	struct fifo_state s = state_load(fifo);

	QUIRE_POOL_POINT(WRITTEN);
	while (!append_at(fifo, &s, batch))
		ck_pr_stall();
	QUIRE_POOL_POINT(APPENDED);
}

static void prefetch_page(const struct quire_fifo *fifo, int32_t page)
{
	if ((uint32_t)page < fifo->num_pages)
		__builtin_prefetch(&fifo->node[page], 1);
}

/* The nodes that a batch, not looked at yet, will be written into. */
static void prefetch_batch(const struct quire_fifo *fifo, const int32_t *pages,
                           uint32_t n)
{
	for (uint32_t at = 0, size; at < n; at += size) {
		size = n - at < FIFO_GROUP ? n - at : FIFO_GROUP;
		for (uint32_t start = 0; start < size - 1; start += FIFO_RUN)
			prefetch_page(fifo, pages[at + branch_place(start, size)]);
		prefetch_page(fifo, pages[at + size - 1]);
	}
}

uint32_t quire_fifo_give(struct quire_fifo *fifo, const int32_t *pages, uint32_t n,
                         enum fifo_givers givers)
{
	struct batch batch;
	uint32_t bad;

	if (n > 1)
		prefetch_batch(fifo, pages, n);
	if (givers == FIFO_ONE_GIVER) {
		bad = claim_alone(fifo, pages, n);
	} else {
		bad = find_bad(fifo, pages, n);
		if (bad == n)
			bad = claim_batch(fifo, pages, n);
	}
	if (bad < n)
		return bad;
	batch = write_batch(fifo, pages, n);
	append(fifo, &batch);
	return n;
}

uint32_t quire_fifo_count(const struct quire_fifo *fifo)
{
	/* Acquire: pairs with state_cas(), as state_load() does; count lies in this
	 * half. */
	return state_count((struct fifo_state){
		.lo = atomic_load_explicit(&fifo->state[0], memory_order_acquire)});
}

/*
 * Nodes and marks in one zeroed block.  Pages of the FIFO lie anywhere in it, so a large
 * one asks for huge pages of memory, which spares a walk of the page table per access.
 */
static struct fifo_node *allocate_nodes(uint32_t num_pages)
{
	size_t bytes = num_pages * (sizeof(struct fifo_node) + sizeof(_Atomic uint8_t));
	size_t align = bytes < HUGE_BLOCK_BYTES ? FIFO_LINE_BYTES : HUGE_BYTES;
	void *block;

	if (posix_memalign(&block, align, bytes))
		return NULL;
	if (align == HUGE_BYTES)
		madvise(block, bytes, MADV_HUGEPAGE); /* a wish */
	memset(block, 0, bytes);
	return block;
}

bool quire_fifo_init(struct quire_fifo *fifo, uint32_t num_pages)
{
	int32_t pages[FIFO_GROUP];
	struct fifo_place head = {0, 0};
	struct fifo_state s;
	uint32_t root = 0;

	fifo->num_pages = num_pages;
	fifo->node = allocate_nodes(num_pages);
	if (!fifo->node)
		return false;
	fifo->owned = (_Atomic uint8_t *)(fifo->node + num_pages);
	for (uint32_t at = 0, size; at < num_pages; at += size) {
		uint32_t left = num_pages - at;

		size = left < FIFO_GROUP ? left : FIFO_GROUP;
		for (uint32_t i = 0; i < size; i++)
			pages[i] = (int32_t)(at + i);
		write_group(fifo, pages, size);
		root = at + size - 1;
		left -= size;
		slot_store(
			word_of(fifo, root),
			left ? word_link(root + (left < FIFO_GROUP ? left : FIFO_GROUP),
		                         size)
			     : word_last(0, size));
		if (at == 0)
			head.root = root;
	}
	slot_store(record_of(fifo, root), (uint64_t)FIFO_NO_PAGE << 32);
	s = state_make(head, root, num_pages, 0);
	atomic_init(&fifo->state[0], s.lo);
	atomic_init(&fifo->state[1], s.hi);
	return true;
}

void quire_fifo_end(struct quire_fifo *fifo)
{
	free(fifo->node);
}
