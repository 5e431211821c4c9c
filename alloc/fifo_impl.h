/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_ALLOC_FIFO_IMPL_H
#define QUIRE_ALLOC_FIFO_IMPL_H
/*
 * The lock-free FIFO inside a pool: its words, its invariants, and where a test may stop
 * a thread.
 *
 * How the order is kept
 *   A batch that comes back is written into memory of its own pages.  It is cut into
 *   *groups*, each a run of up to FIFO_GROUP pages, and the last page of a group, its
 *   *root*, says which pages come before it; the roots are linked in a list.  Only roots
 *   are looked at to find the n-th oldest page.
 *
 *       leaves 0..7, branch 0, leaves 8..15, branch 1, ..., root        (one group)
 *
 *   A page's node is four 64-bit slots:
 *       as root     word, record, and the pages of its up to four branches
 *       as branch   the pages of its up to eight leaves, which come just before it
 *       as leaf     nothing
 *   Whatever describes a page comes after it, hence leaves the FIFO after it: nobody
 *   writes a node as long as something that it describes is in the FIFO.
 *
 * Glossary
 *   S         the state word: head, skip, tail, count and takes; all change together
 *   head      root of the oldest group; skip: pages of it that have been taken;
 *   tail      root of the newest group (all three mean nothing when count is 0)
 *   count     free pages; takes: how many takes have succeeded since create
 *   word      of a root: the size of its group, and
 *               LINK(next)  the root of the group behind it, in a batch or in the FIFO
 *               LAST(gen)   nothing is behind it; gen: the takes at its append
 *   record    of a batch's last root: the old tail, and the batch's first root.  With
 *             gen it is all that anybody needs to make the link old tail -> first.
 *   owned[p]  1: a caller has page p; 0: it is in the FIFO or in the hands of a running
 *             free or take
 *
 * Invariants, at any instant
 *   I1  head, and whoever its word links to, and so on, are groups that hold skip + count
 *       pages and end at tail, where the link named by tail's record counts as made.  At
 *       most that one link is missing.
 *   I2  A page is in the FIFO, or in the hands of one running free or take, or owned.
 *   I3  A page has the word LAST(gen) in one life only (from free to take): gen is read
 *       after the page was claimed, and between two claims it was taken, so takes grew.
 *   I4  The node of a page in the FIFO changes only by the link CAS, until it is taken.
 *   I5  S never holds a value twice: a take adds to takes, a free adds to count.
 *
 * takes has 49 bits.  Its low 39 share a half of S with count, so that this half alone
 * tells two states apart, unless a thread sleeps through exactly 2^39 takes between two
 * loads.
 */
#include <quire/runtime/limits.h>
#include <quire/runtime/status.h>

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Cache lines come in pairs: the prefetcher fetches the neighbour. */
#define FIFO_LINE_BYTES 128
#define FIFO_NO_PAGE    UINT32_MAX

/* Tests build the FIFO with small groups too, so that few pages make many. */
#ifndef FIFO_LEAVES
#define FIFO_LEAVES 8
#endif
#ifndef FIFO_BRANCHES
#define FIFO_BRANCHES 4
#endif
#define FIFO_RUN   (FIFO_LEAVES + 1) /* leaves and their branch */
#define FIFO_GROUP (FIFO_BRANCHES * FIFO_RUN + 1)

/*
 * S, low half: count 25 | takes 39 (low bits).
 * High half: head 24 | tail 24 | skip 6 | takes 10 (high bits).
 */
#define FIFO_COUNT_BITS    25
#define FIFO_PAGE_BITS     24
#define FIFO_SKIP_BITS     6
#define FIFO_TAKES_LO_BITS 39
#define FIFO_TAKES_HI_BITS 10
#define FIFO_TAKES_BITS    (FIFO_TAKES_LO_BITS + FIFO_TAKES_HI_BITS)

_Static_assert(QUIRE_PAGES_MAX <= 1 << FIFO_PAGE_BITS, "a page id fits its field");
_Static_assert(QUIRE_PAGES_MAX < 1 << FIFO_COUNT_BITS, "a count fits its field");
_Static_assert(FIFO_GROUP < 1 << FIFO_SKIP_BITS, "a group's size fits its field");
_Static_assert(FIFO_COUNT_BITS + FIFO_TAKES_LO_BITS == 64, "the low half is full");
_Static_assert(2 * FIFO_PAGE_BITS + FIFO_SKIP_BITS + FIFO_TAKES_HI_BITS == 64,
               "the high half is full");
_Static_assert(FIFO_LEAVES >= 1 && FIFO_LEAVES <= 8, "leaves fit four slots");
_Static_assert(FIFO_BRANCHES >= 1 && FIFO_BRANCHES <= 4, "branches fit two slots");

struct fifo_state {
	uint64_t lo;
	uint64_t hi;
};

/* Where the FIFO begins: the oldest group, and what has been taken of it. */
struct fifo_place {
	uint32_t root;
	uint32_t skip;
};

#define FIFO_MASK(bits) (((uint64_t)1 << (bits)) - 1)

static inline uint32_t state_count(struct fifo_state s)
{
	return s.lo & FIFO_MASK(FIFO_COUNT_BITS);
}

static inline uint64_t state_takes(struct fifo_state s)
{
	uint64_t low = s.lo >> FIFO_COUNT_BITS;
	uint64_t high = s.hi >> (64 - FIFO_TAKES_HI_BITS);

	return low | high << FIFO_TAKES_LO_BITS;
}

static inline struct fifo_place state_head(struct fifo_state s)
{
	return (struct fifo_place){
		.root = s.hi & FIFO_MASK(FIFO_PAGE_BITS),
		.skip = s.hi >> 2 * FIFO_PAGE_BITS & FIFO_MASK(FIFO_SKIP_BITS),
	};
}

static inline uint32_t state_tail(struct fifo_state s)
{
	return s.hi >> FIFO_PAGE_BITS & FIFO_MASK(FIFO_PAGE_BITS);
}

static inline struct fifo_state state_make(struct fifo_place head, uint32_t tail,
                                           uint32_t count, uint64_t takes)
{
	return (struct fifo_state){
		.lo = count | takes << FIFO_COUNT_BITS,
		.hi = head.root | (uint64_t)tail << FIFO_PAGE_BITS |
	              (uint64_t)head.skip << 2 * FIFO_PAGE_BITS |
	              takes >> FIFO_TAKES_LO_BITS << (64 - FIFO_TAKES_HI_BITS),
	};
}

/*
 * A root's word: 1 | is it the last | size of the group 6 | next or gen 56.
 * Two page ids in a slot have a clear top byte in either byte order: a slot of a branch
 * is neither LINK nor LAST, and its size is 0.
 */
#define WORD_ROOT      ((uint64_t)1 << 63)
#define WORD_LAST      ((uint64_t)1 << 62)
#define WORD_SIZE_BIT  56
#define WORD_SIZE_BITS FIFO_SKIP_BITS

static inline uint64_t word_link(uint32_t next, uint32_t size)
{
	return WORD_ROOT | (uint64_t)size << WORD_SIZE_BIT | next;
}

static inline uint64_t word_last(uint64_t gen, uint32_t size)
{
	return WORD_ROOT | WORD_LAST | (uint64_t)size << WORD_SIZE_BIT | gen;
}

static inline bool word_is_link(uint64_t word)
{
	return (word & (WORD_ROOT | WORD_LAST)) == WORD_ROOT;
}

static inline bool word_is_last(uint64_t word)
{
	return (word & (WORD_ROOT | WORD_LAST)) == (WORD_ROOT | WORD_LAST);
}

static inline uint32_t word_size(uint64_t word)
{
	return word >> WORD_SIZE_BIT & FIFO_MASK(WORD_SIZE_BITS);
}

/* The root behind a LINK; the gen of a LAST. */
static inline uint64_t word_value(uint64_t word)
{
	return word & FIFO_MASK(WORD_SIZE_BIT);
}

/* Is the gen of one LAST newer than that of another?  Of two that are less than half of
 * all takes apart, so that it holds across the end of the counter. */
static inline bool word_is_newer(uint64_t word, uint64_t than)
{
	return (int64_t)((word_value(word) - word_value(than))
	                 << (64 - FIFO_TAKES_BITS)) > 0;
}

#define NODE_SLOTS    4
#define NODE_WORD     0
#define NODE_RECORD   1 /* old tail << 32 | first root; FIFO_NO_PAGE: it was empty */
#define NODE_BRANCHES 2 /* two branch pages a slot */

struct fifo_node {
	alignas(32) _Atomic uint64_t slot[NODE_SLOTS];
};

/*
 * Loads of a slot acquire, stores release, and so they pair with each other: who reads
 * anything that a page's later life wrote sees the take that ended the life before, and
 * finds S changed.  Help rests on that; a stale walk is stopped by its CAS anyway.
 */
static inline uint64_t slot_load(const _Atomic uint64_t *slot)
{
	return atomic_load_explicit(slot, memory_order_acquire);
}

static inline void slot_store(_Atomic uint64_t *slot, uint64_t value)
{
	atomic_store_explicit(slot, value, memory_order_release);
}

/* A list of page ids lies in slots as pairs, as it would lie in an array. */
static inline void load_pair(const _Atomic uint64_t *slot, int32_t pair_out[2])
{
	uint64_t value = slot_load(slot);

	memcpy(pair_out, &value, sizeof(value));
}

static inline void store_pair(_Atomic uint64_t *slot, const int32_t pair[2])
{
	uint64_t value;

	memcpy(&value, pair, sizeof(value));
	slot_store(slot, value);
}

/* The place of a run's branch in a group of `size`: the last of the run. */
static inline uint32_t branch_place(uint32_t start, uint32_t size)
{
	return start + FIFO_LEAVES < size - 1 ? start + FIFO_LEAVES : size - 2;
}

struct quire_fifo {
	alignas(FIFO_LINE_BYTES) _Atomic uint64_t state[2]; /* S, alone in its line */
	alignas(FIFO_LINE_BYTES) uint32_t num_pages;
	struct fifo_node *node;
	_Atomic uint8_t *owned;
};

_Static_assert(sizeof(struct fifo_node) + sizeof(_Atomic uint8_t) == 33,
               "33 bytes per page");

static inline _Atomic uint64_t *word_of(const struct quire_fifo *fifo, uint32_t root)
{
	return &fifo->node[root].slot[NODE_WORD];
}

static inline _Atomic uint64_t *record_of(const struct quire_fifo *fifo, uint32_t root)
{
	return &fifo->node[root].slot[NODE_RECORD];
}

/* Who else may give at the same time. */
enum fifo_givers {
	FIFO_ANY_GIVERS, /* anybody: each page is claimed by an atomic exchange */
	FIFO_ONE_GIVER,  /* nobody, by the caller's word: loads and stores do */
};

/* All pages free, in the order 0, 1, 2, ...; false: no memory.  num_pages is in range. */
bool quire_fifo_init(struct quire_fifo *fifo, uint32_t num_pages);
void quire_fifo_end(struct quire_fifo *fifo);

/* The n oldest pages, or what is free instead when that is fewer.  1 <= n. */
bool quire_fifo_take(struct quire_fifo *fifo, uint32_t n, int32_t *pages_out,
                     uint32_t *available_out);

/* Append n pages: n, or the place of the first that is no page or not owned, with nothing
 * changed.  1 <= n <= num_pages. */
uint32_t quire_fifo_give(struct quire_fifo *fifo, const int32_t *pages, uint32_t n,
                         enum fifo_givers givers);

uint32_t quire_fifo_count(const struct quire_fifo *fifo);

/*
 * Nobody else is there: what the nodes say is free into pages_out, oldest first, as many
 * as the count says; and whether a page is marked owned.
 */
enum quire_status quire_fifo_list(const struct quire_fifo *fifo, int32_t *pages_out,
                                  struct quire_refusal *refusal_out);
bool quire_fifo_owns(const struct quire_fifo *fifo, uint32_t page);

/*
 * Where a test may stall or freeze a thread.  Built with QUIRE_POOL_POINTS, FIFOs and
 * pool call quire_pool_point(), which the test defines; otherwise a point is nothing.
 */
enum quire_pool_point {
	POOL_POINT_LOADING,      /* S: the low half is read, the high half is not */
	POOL_POINT_SEEN,         /* give: the batch looks owned, nothing is claimed */
	POOL_POINT_CLAIMING,     /* give: one more page is claimed */
	POOL_POINT_WRITTEN,      /* give: the batch is in its nodes, S is read */
	POOL_POINT_RECORDED,     /* give: the record is written, S unchanged */
	POOL_POINT_APPENDED,     /* give: S is changed, the link not made */
	POOL_POINT_STARTED,      /* take: S is read and holds enough */
	POOL_POINT_WALKED,       /* take: the run is known, S unchanged */
	POOL_POINT_TAKEN,        /* take: S is changed, no page is handed out */
	POOL_POINT_HELP_READ,    /* help: the record is read, the words are not */
	POOL_POINT_HELP_CHECKED, /* help: S was still the same, the link not made */
	POOL_POINT_LOCKED,       /* the FIFO with a lock: inside it */
	POOL_POINT_WAITING,      /* allocate_wait: announced, about to look */
	POOL_POINT_SLEEPING,     /* allocate_wait: nothing found, about to sleep */
	POOL_POINTS
};

#ifdef QUIRE_POOL_POINTS
void quire_pool_point(enum quire_pool_point point);
#define QUIRE_POOL_POINT(point) quire_pool_point(POOL_POINT_##point)
#else
#define QUIRE_POOL_POINT(point) ((void)0)
#endif

#endif
