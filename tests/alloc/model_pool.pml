/* SPDX-License-Identifier: MIT */
/*
 * The core of alloc/pool.c for Spin: the state word, the links, the records and help.
 * Every load and compare-and-swap is one atomic step, under sequential consistency.
 *
 * A ghost FIFO (an array of page ids) moves at the instant of each CAS on S.  Asserted:
 * the pages that a take hands out are the ghost's oldest, a refusal is right at the
 * instant of its load, the last page's word at that instant is the one its free gave it,
 * no link is missing when a new one is about to be, and at the end the links spell the
 * ghost out.
 *
 * Switches: PROCS threads with OPS operations each on PAGES pages (model_pool.sh sets
 * them), and one mutant at a time, each of which must be found:
 *   NO_TAKES    S without the count of takes
 *   NO_GEN      every last word alike
 *   NO_EXPECT   help links whatever last word it finds
 *   NO_RECHECK  help does not look at S again
 *   NO_HELP     a free does not help before it appends
 */
#ifndef PAGES
#define PAGES 3
#endif
#ifndef PROCS
#define PROCS 2
#endif
#ifndef OPS
#define OPS 3
#endif

#define NONE 15
#define OWNED 0
#define CLAIMED 1
#define LINK(p) (2 + (p))
#define IS_LINK(w) ((w) >= 2 && (w) < 2 + PAGES)
#define NEXT(w) ((w) - 2)
#ifdef NO_GEN
#define LAST(g) 32
#else
#define LAST(g) (32 + (g))
#endif
#define IS_LAST(w) ((w) >= 32)

#ifdef NO_TAKES
#define TAKE_STEP 0
#else
#define TAKE_STEP 1
#endif

/* S; equal fields are an equal word. */
byte s_head, s_tail, s_count, s_takes;
byte word[PAGES];
byte rec_prev[PAGES], rec_first[PAGES], rec_expected[PAGES];

/* Ghosts: the FIFO as it should be, and the word of its last page. */
byte fifo[PAGES];
byte fifo_last;
byte done;

#define S_IS(h, t, c, k) \
	(s_head == (h) && s_tail == (t) && s_count == (c) && s_takes == (k))

inline load_state()
{
	d_step { h = s_head; t = s_tail; c = s_count; k = s_takes }
}

/* The low half of S: count and takes. */
inline help()
{
	d_step { prev = rec_prev[t]; hfirst = rec_first[t] }
	if
	:: prev == NONE -> skip
	:: else ->
		expected = rec_expected[t];
#ifdef NO_EXPECT
		expected = word[prev];
		if
		:: IS_LAST(expected) ->
#else
		if
		:: word[prev] == expected ->
#endif
			if
#ifdef NO_RECHECK
			:: true ->
#else
			:: s_count == c && s_takes == k ->
#endif
				d_step {
					if
					:: word[prev] == expected -> word[prev] = LINK(hfirst)
					:: else -> skip
					fi
				}
#ifndef NO_RECHECK
			:: else -> skip
#endif
			fi
		:: else -> skip
		fi
	fi;
	d_step { prev = 0; hfirst = 0; expected = 0 }
}

/* q: the page behind p, or NONE. */
inline page_behind(p)
{
	w = word[p];
	if
	:: IS_LINK(w) -> skip
	:: else -> help(); w = word[p]
	fi;
	q = (IS_LINK(w) -> NEXT(w) : NONE);
	w = 0
}

inline take(want)
{
	load_state();
	do
	:: c < want -> n = 0; break
	:: else ->
		last = h;
		if
		:: want == 2 -> page_behind(h); last = q
		:: else -> skip
		fi;
		q = 0;
		if
		:: last != NONE && c > want -> page_behind(last)
		:: else -> skip
		fi;
		if
		:: last == NONE || q == NONE -> load_state()
		:: else ->
			d_step {
				if
				:: S_IS(h, t, c, k) ->
					assert(fifo[0] == h && (want == 1 || fifo[1] == last));
					fifo[0] = fifo[want];
					fifo[1] = (want == 1 && PAGES > 2 -> fifo[2] : NONE);
					if
					:: PAGES > 2 -> fifo[PAGES - 1] = NONE
					:: else -> skip
					fi;
					s_head = q;
					s_count = c - want;
					s_takes = k + TAKE_STEP;
					n = want
				:: else -> n = 0; h = s_head; t = s_tail; c = s_count; k = s_takes
				fi
			}
			if
			:: n > 0 -> break
			:: else -> skip
			fi
		fi
	od;
	if
	:: n > 0 ->
		mine[0] = h;
		mine[1] = (n == 2 -> last : NONE);
		word[mine[0]] = OWNED;
		if
		:: n == 2 -> word[mine[1]] = OWNED
		:: else -> skip
		fi
	:: else -> skip
	fi;
	d_step { q = 0; last = 0 }
}

/* All n pages of mine[] at once. */
inline give()
{
	if
	:: n == 2 ->
		d_step { assert(word[mine[0]] == OWNED); word[mine[0]] = LINK(mine[1]) };
		last = mine[1]
	:: else -> last = mine[0]
	fi;
	d_step { assert(word[last] == OWNED); word[last] = CLAIMED };
	load_state();
	g = LAST(k);
	word[last] = g;
	do
	:: w = OWNED;
		if
		:: c > 0 ->
#ifndef NO_HELP
			help();
#endif
			w = word[t]
		:: else -> skip
		fi;
		rec_expected[last] = w;
		d_step {
			rec_prev[last] = (c > 0 -> t : NONE);
			rec_first[last] = mine[0]
		}
		d_step {
			if
			:: S_IS(h, t, c, k) ->
				assert(c == 0 || (w == fifo_last && word[t] == w));
				assert(word[last] == g);
				/* I1: of the links before the new one, none is missing. */
				prev = h;
				hfirst = 1;
				do
				:: hfirst < c ->
					assert(IS_LINK(word[prev]));
					prev = NEXT(word[prev]);
					hfirst++
				:: else -> break
				od;
				prev = 0;
				hfirst = 0;
				fifo[c] = mine[0];
				if
				:: n == 2 -> fifo[c + 1] = mine[1]
				:: else -> skip
				fi;
				fifo_last = g;
				if
				:: c == 0 -> s_head = mine[0]
				:: else -> skip
				fi;
				s_tail = last;
				s_count = c + n;
				q = 1
			:: else -> q = 0; h = s_head; t = s_tail; c = s_count; k = s_takes
			fi
		}
		if
		:: q == 1 -> break
		:: else -> skip
		fi
	od;
	if
	:: c > 0 ->
		d_step {
			if
			:: word[t] == w -> word[t] = LINK(mine[0])
			:: else -> skip
			fi
		}
	:: else -> skip
	fi;
	d_step { q = 0; last = 0; w = 0; g = 0; n = 0; mine[0] = 0; mine[1] = 0 }
}

/* At the end nothing is missing and the links spell the ghost out. */
inline check_end()
{
	d_step {
		h = s_head;
		c = 0;
		do
		:: c < s_count ->
			assert(fifo[c] == h);
			if
			:: c + 1 == s_count -> assert(h == s_tail && IS_LAST(word[h]))
			:: else -> assert(IS_LINK(word[h])); h = NEXT(word[h])
			fi;
			c++
		:: else -> break
		od
	}
}

proctype worker()
{
	byte h, t, c, k;                /* S as last seen */
	byte prev, hfirst, expected;    /* help */
	byte w, q, last, g, n, ops;
	byte mine[2];

	do
	:: ops == OPS -> break
	:: else ->
		ops++;
		if
		:: n == 0 ->
			if
			:: take(1)
			:: take(2)
			fi
		:: else -> give()
		fi;
		d_step { h = 0; t = 0; c = 0; k = 0 }
	od;
	done++;
	if
	:: done == PROCS -> check_end()
	:: else -> skip
	fi
}

init
{
	atomic {
		byte i;

		do
		:: i < PAGES ->
			fifo[i] = i;
			word[i] = (i + 1 < PAGES -> LINK(i + 1) : LAST(0));
			rec_prev[i] = NONE;
			i++
		:: else -> break
		od;
		fifo_last = LAST(0);
		s_tail = PAGES - 1;
		s_count = PAGES;
		i = 0;
		do
		:: i < PROCS -> run worker(); i++
		:: else -> break
		od
	}
}
