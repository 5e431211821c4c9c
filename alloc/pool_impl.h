/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_ALLOC_POOL_IMPL_H
#define QUIRE_ALLOC_POOL_IMPL_H
/*
 * The page FIFO from inside: its words, and where a test may stop a thread.
 *
 * Glossary
 *   S         the state word: head, tail, count and takes; all four change together
 *   head      the oldest free page; tail: the newest (both mean nothing when count is 0)
 *   count     free pages; takes: how many takes have succeeded since create
 *   word[p]   what page p is doing:
 *               OWNED       a caller has it
 *               CLAIMED     last page of a batch whose free has not yet read S
 *               LINK(next)  `next` is behind it, in a batch or in the FIFO
 *               LAST(gen)   nothing is behind it; gen: the takes read after its claim
 *   record[p] written for the last page of a batch before the batch is appended: the old
 *             tail, the batch's first page, and the old tail's exact word.  It is all
 *             that anybody needs to make the link old tail -> first page.
 *
 * Invariants, at any instant
 *   I1  head, word[head], ... visits `count` pages and ends at tail, where the link named
 *       by record[tail] counts as made.  At most that one link is missing.
 *   I2  A page is in the FIFO, or in the hands of one running free or take, or OWNED.
 *   I3  A word LAST(gen) of one page never comes twice: gen is read after the page is
 *       claimed, and a page published before has been taken since, so takes has grown.
 *   I4  A published page's word and record change only by the link CAS until it is taken.
 *   I5  S never holds a value twice: a take adds to takes, a free adds to count.
 *
 * takes has 55 bits.  Its low 39 share a half of S with count, so that this half alone
 * tells two states apart, unless a thread sleeps through exactly 2^39 takes between two
 * loads.
 */
#include <quire/alloc/pool.h>

#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>

#define POOL_LINE_BYTES 64
#define POOL_NO_PAGE    UINT32_MAX

/*
 * S, low half: count 25 | takes 39 (low bits).  High half: head 24 | tail 24 | takes 16.
 */
#define POOL_COUNT_BITS    25
#define POOL_PAGE_BITS     24
#define POOL_TAKES_LO_BITS 39
#define POOL_TAKES_HI_BITS 16

_Static_assert(QUIRE_PAGES_MAX <= 1 << POOL_PAGE_BITS, "a page id fits its field");
_Static_assert(QUIRE_PAGES_MAX < 1 << POOL_COUNT_BITS, "a count fits its field");
_Static_assert(POOL_COUNT_BITS + POOL_TAKES_LO_BITS == 64, "the low half is full");
_Static_assert(2 * POOL_PAGE_BITS + POOL_TAKES_HI_BITS == 64, "the high half is full");

struct pool_state {
	uint64_t lo;
	uint64_t hi;
};

static inline uint32_t state_count(struct pool_state s)
{
	return s.lo & (((uint64_t)1 << POOL_COUNT_BITS) - 1);
}

static inline uint64_t state_takes(struct pool_state s)
{
	return s.lo >> POOL_COUNT_BITS | s.hi >> 2 * POOL_PAGE_BITS << POOL_TAKES_LO_BITS;
}

static inline uint32_t state_head(struct pool_state s)
{
	return s.hi & (((uint64_t)1 << POOL_PAGE_BITS) - 1);
}

static inline uint32_t state_tail(struct pool_state s)
{
	return s.hi >> POOL_PAGE_BITS & (((uint64_t)1 << POOL_PAGE_BITS) - 1);
}

static inline struct pool_state state_make(uint32_t head, uint32_t tail, uint32_t count,
                                           uint64_t takes)
{
	struct pool_state s = {
		.lo = count | takes << POOL_COUNT_BITS,
		.hi = head | (uint64_t)tail << POOL_PAGE_BITS |
	              takes >> POOL_TAKES_LO_BITS << 2 * POOL_PAGE_BITS,
	};

	return s;
}

/* A page's word: a tag in the two low bits, next or gen above them. */
#define WORD_OWNED    ((uint64_t)0)
#define WORD_CLAIMED  ((uint64_t)1)
#define WORD_TAG_LINK 2
#define WORD_TAG_LAST 3
#define WORD_TAG_BITS 2

static inline uint64_t word_link(uint32_t next)
{
	return (uint64_t)next << WORD_TAG_BITS | WORD_TAG_LINK;
}

static inline uint64_t word_last(uint64_t gen)
{
	return gen << WORD_TAG_BITS | WORD_TAG_LAST;
}

static inline unsigned word_tag(uint64_t word)
{
	return word & ((1 << WORD_TAG_BITS) - 1);
}

/* The page behind a LINK; the gen of a LAST. */
static inline uint64_t word_value(uint64_t word)
{
	return word >> WORD_TAG_BITS;
}

struct pool_record {
	_Atomic uint64_t pages; /* old tail << 32 | first; POOL_NO_PAGE: it was empty */
	_Atomic uint64_t expected; /* the old tail's word before the link */
};

struct quire_pool {
	alignas(POOL_LINE_BYTES) _Atomic uint64_t state[2]; /* S, alone in its line */
	alignas(POOL_LINE_BYTES) uint32_t num_pages;
	_Atomic uint64_t *word;
	struct pool_record *record;
};

_Static_assert(sizeof(_Atomic uint64_t) + sizeof(struct pool_record) == 24,
               "24 bytes per page");

/*
 * Where a test may stall or freeze a thread.  Built with QUIRE_POOL_POINTS, the pool
 * calls quire_pool_point(), which the test defines; otherwise a point is nothing.
 */
enum quire_pool_point {
	POOL_POINT_SEEN,         /* free: the batch looks owned, nothing is claimed */
	POOL_POINT_CLAIMING,     /* free: one more page is claimed */
	POOL_POINT_LOADED,       /* free: S is read, the batch is ready */
	POOL_POINT_RECORDED,     /* free: the record is written, S unchanged */
	POOL_POINT_APPENDED,     /* free: S is changed, the link not made */
	POOL_POINT_STARTED,      /* take: S is read and holds enough */
	POOL_POINT_WALKED,       /* take: the run is known, S unchanged */
	POOL_POINT_TAKEN,        /* take: S is changed, the words are not */
	POOL_POINT_HELP_READ,    /* help: half of the record is read */
	POOL_POINT_HELP_CHECKED, /* help: S was still the same, the link not made */
	POOL_POINTS
};

#ifdef QUIRE_POOL_POINTS
void quire_pool_point(enum quire_pool_point point);
#define QUIRE_POOL_POINT(point) quire_pool_point(POOL_POINT_##point)
#else
#define QUIRE_POOL_POINT(point) ((void)0)
#endif

#endif
