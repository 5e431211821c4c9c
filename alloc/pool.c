/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "alloc/pool_impl.h"
#include "runtime/refuse_impl.h"

#include <quire/runtime/assert.h>
#include <quire/runtime/sanitize.h>

#include <ck_pr.h>

#include <stdlib.h>

#ifndef CK_F_PR_CAS_64_2_VALUE
#error "alloc/pool.c needs a 128-bit compare-and-swap: ConcurrencyKit has none here"
#endif

/*
 * Acquire on both halves pairs with the release half of state_cas(): who sees a state
 * sees the words and records published with it.  The low half differs between any two
 * states (I5), so two equal loads around the high half mean that the halves belong
 * together.
 */
static struct pool_state state_load(const struct quire_pool *pool)
{
	struct pool_state s;
	uint64_t again = atomic_load_explicit(&pool->state[0], memory_order_acquire);

	do {
		s.lo = again;
		s.hi = atomic_load_explicit(&pool->state[1], memory_order_acquire);
		again = atomic_load_explicit(&pool->state[0], memory_order_acquire);
	} while (again != s.lo);
	return s;
}

/*
 * S from *seen to `next`, or the S that is there into *seen: acquire and release, pairing
 * with itself and with state_load().  The fences are the compiler's only where the
 * instruction is a full barrier, as on x86-64.
 */
static bool state_cas(struct quire_pool *pool, struct pool_state *seen,
                      struct pool_state next)
{
	uint64_t compare[2] = {seen->lo, seen->hi};
	uint64_t set[2] = {next.lo, next.hi};
	uint64_t found[2];
	bool done;

	QUIRE_TSAN_RELEASE(&pool->state[0]);
	ck_pr_fence_release();
	done = ck_pr_cas_64_2_value((uint64_t *)(void *)pool->state, compare, set, found);
	ck_pr_fence_acquire();
	QUIRE_TSAN_ACQUIRE(&pool->state[0]);
	seen->lo = found[0];
	seen->hi = found[1];
	return done;
}

/*
 * Make the link that may be missing in state s.
 *
 * The record may be overwritten while it is read, by a free of the same page in a later
 * life.  Acquire on its halves pairs with their release stores in record_batch(): who
 * read anything of a later life sees the take that ended this one, so the comparison with
 * S turns it away.  The CAS finds the exact word of this life or fails (I3): it comes too
 * late without harm.
 */
static void help(struct quire_pool *pool, struct pool_state s)
{
	struct pool_record *record = &pool->record[state_tail(s)];
	uint64_t pages = atomic_load_explicit(&record->pages, memory_order_acquire);
	uint32_t prev = pages >> 32;
	uint32_t first = (uint32_t)pages;
	uint64_t expected;

	QUIRE_POOL_POINT(HELP_READ);
	if (prev == POOL_NO_PAGE)
		return;
	expected = atomic_load_explicit(&record->expected, memory_order_acquire);
	/* Relaxed: only spares the CAS below, which decides. */
	if (atomic_load_explicit(&pool->word[prev], memory_order_relaxed) != expected)
		return;
	/* Relaxed: the acquires above order it behind the record; no data follows from
	 * it. */
	if (atomic_load_explicit(&pool->state[0], memory_order_relaxed) != s.lo)
		return;
	QUIRE_POOL_POINT(HELP_CHECKED);
	/* Release: pairs with the acquire in page_behind(). */
	atomic_compare_exchange_strong_explicit(&pool->word[prev], &expected,
	                                        word_link(first), memory_order_release,
	                                        memory_order_relaxed);
}

/*
 * The page behind p in state s, or POOL_NO_PAGE when S has moved on.  A stale walk may
 * read the words of pages that were taken or freed since: every LINK names a page of this
 * pool, and the CAS on S that follows fails.
 */
static uint32_t page_behind(struct quire_pool *pool, struct pool_state s, uint32_t p)
{
	/* Acquire: pairs with the release of whoever made the link. */
	uint64_t word = atomic_load_explicit(&pool->word[p], memory_order_acquire);

	if (word_tag(word) != WORD_TAG_LINK) {
		help(pool, s);
		/* Acquire: as above. */
		word = atomic_load_explicit(&pool->word[p], memory_order_acquire);
	}
	return word_tag(word) == WORD_TAG_LINK ? (uint32_t)word_value(word)
	                                       : POOL_NO_PAGE;
}

/* The last of the n oldest pages in state s, or POOL_NO_PAGE when S has moved on. */
static uint32_t run_end(struct quire_pool *pool, struct pool_state s, uint32_t n)
{
	uint32_t p = state_head(s);

	for (uint32_t i = 1; i < n && p != POOL_NO_PAGE; i++)
		p = page_behind(pool, s, p);
	return p;
}

/*
 * Take the n pages that end at `last` in state *s.  While only frees intervene (takes is
 * the same) the run stays the n oldest pages and only its new head may change.
 */
static bool take_run(struct quire_pool *pool, struct pool_state *s, uint32_t n,
                     uint32_t last)
{
	uint64_t takes = state_takes(*s);
	struct pool_state next;

	do {
		uint32_t head = 0;

		if (state_count(*s) > n)
			head = page_behind(pool, *s, last);
		if (head == POOL_NO_PAGE)
			return false;
		QUIRE_POOL_POINT(WALKED);
		next = state_make(head, state_tail(*s), state_count(*s) - n, takes + 1);
		if (state_cas(pool, s, next))
			return true;
	} while (state_takes(*s) == takes);
	return false;
}

/* Name the n taken pages from `head` on, and mark them owned. */
static void hand_out(struct quire_pool *pool, uint32_t head, uint32_t n,
                     int32_t *pages_out)
{
	uint32_t p = head;

	for (uint32_t i = 0; i < n; i++) {
		/* Relaxed: the walk before the take has acquired this link (I4). */
		uint64_t word =
			atomic_load_explicit(&pool->word[p], memory_order_relaxed);

		/* Release: pairs with the claim's acquire, so that what the page's next
		 * free writes and reads comes after this take in everybody's eyes. */
		atomic_store_explicit(&pool->word[p], WORD_OWNED, memory_order_release);
		pages_out[i] = (int32_t)p;
		p = (uint32_t)word_value(word);
	}
}

/* The n oldest pages, or what is free instead when that is fewer. */
static bool take(struct quire_pool *pool, uint32_t n, int32_t *pages_out,
                 uint32_t *available_out)
{
	struct pool_state s = state_load(pool);

	while (state_count(s) >= n) {
		uint32_t head = state_head(s);
		uint32_t last;

		QUIRE_POOL_POINT(STARTED);
		last = run_end(pool, s, n);
		if (last != POOL_NO_PAGE && take_run(pool, &s, n, last)) {
			QUIRE_POOL_POINT(TAKEN);
			hand_out(pool, head, n, pages_out);
			return true;
		}
		s = state_load(pool);
	}
	*available_out = state_count(s);
	return false;
}

/* The place of the first id that is no page, or n. */
static int64_t find_outside(const struct quire_pool *pool, const int32_t *pages,
                            int64_t n)
{
	int64_t i = 0;

	while (i < n && (uint32_t)pages[i] < pool->num_pages)
		i++;
	return i;
}

/* The place of the first page that is not owned, or n.  Touches nothing. */
static int64_t find_not_owned(struct quire_pool *pool, const int32_t *pages, int64_t n)
{
	int64_t i = 0;

	/* Relaxed: only turns a plainly bad batch away; the claim decides. */
	while (i < n && atomic_load_explicit(&pool->word[pages[i]],
	                                     memory_order_relaxed) == WORD_OWNED)
		i++;
	return i;
}

/*
 * Claim every page of a batch, linking it to the one behind: n, or the place of the first
 * page that somebody else (or an earlier place of the same batch) has claimed, with all
 * undone.
 */
static int64_t claim_batch(struct quire_pool *pool, const int32_t *pages, int64_t n)
{
	int64_t i, k;

	QUIRE_POOL_POINT(SEEN);
	for (i = 0; i < n; i++) {
		uint64_t owned = WORD_OWNED;
		uint64_t mine =
			i + 1 < n ? word_link((uint32_t)pages[i + 1]) : WORD_CLAIMED;

		/* Acquire: pairs with the release of hand_out() and of the undo below.
		 * What is claimed here is published by the CAS on S. */
		if (!atomic_compare_exchange_strong_explicit(
			    &pool->word[pages[i]], &owned, mine, memory_order_acquire,
			    memory_order_relaxed))
			break;
		QUIRE_POOL_POINT(CLAIMING);
	}
	if (i == n)
		return n;
	for (k = 0; k < i; k++) {
		/* Release: as hand_out() does. */
		atomic_store_explicit(&pool->word[pages[k]], WORD_OWNED,
		                      memory_order_release);
	}
	return i;
}

/* Release: pairs with the acquires of help(), which may belong to an earlier life. */
static void record_batch(struct quire_pool *pool, uint32_t last, uint32_t prev,
                         uint32_t first, uint64_t expected)
{
	struct pool_record *record = &pool->record[last];

	atomic_store_explicit(&record->expected, expected, memory_order_release);
	atomic_store_explicit(&record->pages, (uint64_t)prev << 32 | first,
	                      memory_order_release);
}

/*
 * Append a claimed batch: ready its record for state *s, and change S.  A false leaves
 * the S to try next in *s.  *word_out is the old tail's word, WORD_OWNED when there is no
 * old tail.
 */
static bool append_at(struct quire_pool *pool, struct pool_state *s, uint32_t first,
                      uint32_t last, uint32_t n, uint64_t *word_out)
{
	uint32_t count = state_count(*s);
	uint32_t tail = count ? state_tail(*s) : POOL_NO_PAGE;
	uint32_t head = count ? state_head(*s) : first;

	*word_out = WORD_OWNED;
	if (count) {
		/* A record tells of one link only: that of the batch before must be
		 * made. */
		help(pool, *s);
		/* Relaxed: with S unchanged at the CAS below, this is the LAST that was
		 * published with *s; with S changed it is not used. */
		*word_out = atomic_load_explicit(&pool->word[tail], memory_order_relaxed);
	}
	record_batch(pool, last, tail, first, *word_out);
	QUIRE_POOL_POINT(RECORDED);
	return state_cas(pool, s, state_make(head, last, count + n, state_takes(*s)));
}

static void append(struct quire_pool *pool, uint32_t first, uint32_t last, uint32_t n)
{
	struct pool_state s = state_load(pool);
	uint64_t word;

	/* s was read after the claims (they acquire), which makes this word new (I3).
	 * Relaxed: published by the CAS on S. */
	atomic_store_explicit(&pool->word[last], word_last(state_takes(s)),
	                      memory_order_relaxed);
	QUIRE_POOL_POINT(LOADED);
	while (!append_at(pool, &s, first, last, n, &word))
		ck_pr_stall();
	QUIRE_POOL_POINT(APPENDED);
	/* Release: pairs with the acquire in page_behind().  May have been helped
	 * already. */
	if (word != WORD_OWNED)
		atomic_compare_exchange_strong_explicit(
			&pool->word[state_tail(s)], &word, word_link(first),
			memory_order_release, memory_order_relaxed);
}

enum quire_status quire_pool_create(int64_t num_pages, struct quire_pool **pool_out)
{
	struct pool_state s;
	struct quire_pool *pool;
	int64_t p;

	if (num_pages < 1 || num_pages > QUIRE_PAGES_MAX)
		return QUIRE_INVALID;
	pool = aligned_alloc(alignof(struct quire_pool), sizeof(*pool));
	if (!pool)
		return QUIRE_NO_MEMORY;
	pool->word = calloc((size_t)num_pages, sizeof(*pool->word));
	if (!pool->word)
		goto undo_pool;
	pool->record = calloc((size_t)num_pages, sizeof(*pool->record));
	if (!pool->record)
		goto undo_word;
	pool->num_pages = (uint32_t)num_pages;
	for (p = 0; p < num_pages - 1; p++)
		atomic_init(&pool->word[p], word_link((uint32_t)p + 1));
	atomic_init(&pool->word[p], word_last(0));
	atomic_init(&pool->record[p].pages, (uint64_t)POOL_NO_PAGE << 32);
	s = state_make(0, (uint32_t)p, (uint32_t)num_pages, 0);
	atomic_init(&pool->state[0], s.lo);
	atomic_init(&pool->state[1], s.hi);
	*pool_out = pool;
	return QUIRE_OK;

undo_word:
	free(pool->word);
undo_pool:
	free(pool);
	return QUIRE_NO_MEMORY;
}

void quire_pool_destroy(struct quire_pool *pool)
{
	if (!pool)
		return;
	free(pool->record);
	free(pool->word);
	free(pool);
}

enum quire_status quire_pool_allocate(struct quire_pool *pool, int64_t n,
                                      int32_t *pages_out,
                                      struct quire_refusal *refusal_out)
{
	uint32_t available;

	QUIRE_ASSERT(pool && (pages_out || n <= 0));
	if (n < 0 || n > pool->num_pages)
		return quire_refuse_bound(refusal_out, QUIRE_INVALID, "n", -1, n,
		                          pool->num_pages);
	if (n == 0 || take(pool, (uint32_t)n, pages_out, &available))
		return QUIRE_OK;
	return quire_refuse(refusal_out, (struct quire_refusal){.status = QUIRE_NO_PAGES,
	                                                        .what = "free pages",
	                                                        .requested = n,
	                                                        .available = available});
}

bool quire_pool_try_allocate(struct quire_pool *pool, int64_t n, int32_t *pages_out)
{
	return quire_pool_allocate(pool, n, pages_out, NULL) == QUIRE_OK;
}

enum quire_status quire_pool_free(struct quire_pool *pool, const int32_t *pages,
                                  int64_t n, struct quire_refusal *refusal_out)
{
	int64_t bad;

	QUIRE_ASSERT(pool && (pages || n <= 0));
	if (n < 0 || n > pool->num_pages)
		return quire_refuse_bound(refusal_out, QUIRE_INVALID, "n", -1, n,
		                          pool->num_pages);
	if (n == 0)
		return QUIRE_OK;
	bad = find_outside(pool, pages, n);
	if (bad < n)
		return quire_refuse_bound(refusal_out, QUIRE_INVALID, "pages", bad,
		                          pages[bad], pool->num_pages - 1);
	bad = find_not_owned(pool, pages, n);
	if (bad == n)
		bad = claim_batch(pool, pages, n);
	if (bad < n)
		return quire_refuse(refusal_out,
		                    (struct quire_refusal){.status = QUIRE_NOT_OWNED,
		                                           .what = "pages",
		                                           .index = bad,
		                                           .page = pages[bad]});
	append(pool, (uint32_t)pages[0], (uint32_t)pages[n - 1], (uint32_t)n);
	return QUIRE_OK;
}

int32_t quire_pool_num_free(const struct quire_pool *pool)
{
	/* Acquire: pairs with state_cas(), as state_load() does; count lies in this
	 * half. */
	struct pool_state s = {
		.lo = atomic_load_explicit(&pool->state[0], memory_order_acquire)};

	return (int32_t)state_count(s);
}

int32_t quire_pool_num_pages(const struct quire_pool *pool)
{
	return (int32_t)pool->num_pages;
}
