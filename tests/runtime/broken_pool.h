/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_TESTS_RUNTIME_BROKEN_POOL_H
#define QUIRE_TESTS_RUNTIME_BROKEN_POOL_H
/*
 * The pool with a lock once more, with a fault of choice: what "quire stress" must see.
 * Its functions are those of alloc/pool.h, linked in their place.
 */

enum broken_pool_fault {
	BROKEN_NOTHING,
	BROKEN_TAKE_TWICE,      /* a take hands out a page that somebody has */
	BROKEN_TAKE_RANGE,      /* a take hands out a page that does not exist */
	BROKEN_TAKE_REFUSED,    /* a take is refused, although enough pages are free */
	BROKEN_TAKE_STATUS,     /* a take that is refused says AGAIN */
	BROKEN_TAKE_MISCOUNTED, /* a take that is refused says that -1 are free */
	BROKEN_TAKE_ALL,        /* the take of all pages is refused */
	BROKEN_TAKE_ORDER,      /* the take of all pages has two of them swapped */
	BROKEN_WAIT_EARLY,      /* a wait ends before its deadline */
	BROKEN_TAKE_NEVER,      /* every take is refused but that of all pages */
	BROKEN_HANG,            /* a take never comes back */
	BROKEN_FREE_LOSES,      /* a free loses the first page of its batch */
	BROKEN_FREE_REFUSED,    /* a good batch with an odd page is refused */
	BROKEN_FREE_CONTESTED,  /* a good batch with page 0 is refused, always */
	BROKEN_FREE_TWICE,      /* a page that is free is accepted, alone */
	BROKEN_BAD_ACCEPTED,    /* a bad batch is answered with OK */
	BROKEN_BAD_GIVEN,       /* a bad batch is refused, but half of it is given */
	BROKEN_BAD_PLACE,       /* a page not owned is refused for the place before */
	BROKEN_BAD_PLACE_RANGE, /* a page that does not exist, the same */
	BROKEN_BAD_STATUS,      /* a bad batch is refused with the other status */
	BROKEN_BAD_PAGE,        /* a bad batch is refused for another page */
	BROKEN_COUNT_HIGH,      /* all pages are free at times */
	BROKEN_COUNT_LOW,       /* -1 pages are free at times */
	BROKEN_CHECK,           /* the self-check names a rule */
};

extern enum broken_pool_fault broken_pool_fault;

#endif
