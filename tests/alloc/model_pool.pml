/* SPDX-License-Identifier: MIT */
/*
 * alloc/fifo.c for Spin: every interleaving of a few operations on a small pool.
 *
 * What is modelled
 *   S, the nodes, whose slots serve the roles root, branch and leaf in turn, and the
 *   owned marks; take, free and help with the names and the order of fifo.c.  Every load,
 *   store, exchange and compare-and-swap is one step, and what a thread does by itself
 *   belongs to the step before or after it.  S is loaded in halves.
 *
 * What is not
 *   Weak memory: a step is at once seen by everybody.  Groups of more than three pages
 *   (leaf, branch, root), hence a second branch.  The end of the count of takes.
 *   Prefetches.  The pool's sleepers.
 *
 * What is asserted
 *   A ghost FIFO, an array of page ids, moves at the instant of each CAS on S.
 *   - A take hands out what were the ghost's oldest pages at that instant; a count, and
 *     so a refusal, is right at the instant of its load.
 *   - After each CAS on S and each link, S and the nodes spell out the ghost (I1).
 *   - A page is in the FIFO, or with one running take or free, or owned (I2), and its
 *     mark tells which; so of two frees of one page at most one succeeds.
 *   - A root's LAST is none that an earlier life of its page had (I3).
 *   - Nobody writes the node of a page that is in the FIFO or with a take, but for the
 *     link (I4).
 *   - A take that starts again has seen S change, as a free whose CAS failed has, so that
 *     some thread always gets on.
 *   - At the end every mark tells the truth: a refused free has left nothing behind.
 *
 * What is searched
 *   PROCS threads with OPS operations each, on PAGES pages in groups of up to GROUP.
 *   They take up to TAKE_MAX pages at a time, hold up to HELD_MAX and give back all they
 *   hold.
 *   ANY     they give any ids instead, up to GIVE_MAX at a time
 *   ALONE   so does the first, as the only giver; the others only take
 *   OUT     with ANY and ALONE: so many pages are out at the start
 *
 * Mutants, one line spoilt by each; model_pool.sh demands that each is found
 *   HIGH_FIRST      the high half of S is loaded before the low one
 *   NO_TAKES        S does not count the takes
 *   NO_GEN          every LAST is alike
 *   EARLY_GEN       the gen of a LAST is read before the pages are claimed
 *   STALE_GEN       a free that tries again keeps the gen of its first try
 *   NO_NEWER        help links a LAST that is newer than the tail's
 *   ANY_WORD        help links a word that is no LAST
 *   NEWER_OR_SAME   help does not link a LAST as old as the tail's
 *   NO_RECHECK      help does not look at S again
 *   BLIND_LINK      help stores the link, whatever the word is by now
 *   TAKE_NO_HELP    a take that needs a link does not help
 *   FREE_NO_HELP    a free does not help before it appends
 *   LATE_REST       the pages of a group that does not go whole are read after the CAS
 *   KEEP_WALK       a take whose CAS fails takes its old run, whatever has happened
 *   HEAD_ONCE       and does not look again for the head behind it
 *   SKIP_KEPT       skip stays when the head moves to another group
 *   SKIP_STUCK      skip stays when the head stays
 *   HEAD_KEPT       an append to the empty FIFO leaves the head where it was
 *   RECORD_KEPT     and its record tells of the tail there was
 *   LATE_RECORD     the record is written after the CAS
 *   PLAIN_CLAIM     many givers claim by a load and a store
 *   NO_UNDO         a refused free keeps what it had claimed
 */
#ifndef PAGES
#define PAGES 3
#endif
#ifndef GROUP
#define GROUP 3
#endif
#ifndef PROCS
#define PROCS 2
#endif
#ifndef OPS
#define OPS 3
#endif
#ifndef TAKE_MAX
#define TAKE_MAX 2
#endif
#ifndef HELD_MAX
#define HELD_MAX 3
#endif
#ifndef GIVE_MAX
#define GIVE_MAX 2
#endif
#ifndef OUT
#define OUT 0
#endif

#if PAGES > 7 || GROUP > 3 || OUT + PROCS * OPS > 31
#error "too large for the slots below"
#endif

#define NONE      7
#define MIN(a, b) ((a) < (b) -> (a) : (b))

/* A slot, in a byte: a pair of page ids or a root's word.  A pair lies low id first. */
#define PAIR(high, low)  ((high) * 8 + (low))
#define HIGH(pair)       ((pair) / 8 % 8)
#define LOW(pair)        ((pair) % 8)
#define LINK(next, size) (64 + (size) * 16 + (next))
#ifdef NO_GEN
#define LAST(gen, size)  (128 + (size) * 32)
#else
#define LAST(gen, size)  (128 + (size) * 32 + (gen))
#endif
#define IS_LAST(word)    ((word) >= 128)
#define IS_LINK(word)    ((word) >= 64 && (word) < 128)
#define SIZE(word) \
	(IS_LAST(word) -> (word) / 32 % 4 : (IS_LINK(word) -> (word) / 16 % 4 : 0))
#define VALUE(word)      (IS_LAST(word) -> (word) % 32 : (word) % 16)

/* Where each gives what it holds, nobody else looks at the marks of pages that it holds:
 * what it does with them is one step. */
#if defined(ANY) || defined(ALONE)
#define LAWLESS
#define PRIVATELY
#else
#define PRIVATELY atomic
#endif

/* Shared memory. */
typedef state {
	byte root, skipped, tail;       /* the high half; skipped is S's skip */
	byte count, takes               /* the low half */
}

state S;
byte slot[3 * PAGES];
bool owned[PAGES];

#define WORD(page)     slot[3 * (page)]
#define RECORD(page)   slot[3 * (page) + 1] /* old tail, first root */
#define BRANCHES(page) slot[3 * (page) + 2]

/* Ghosts: the FIFO, and as sets of bits the pages in it and in who else's hands. */
byte fifo[PAGES], num_free;
byte free, taking, giving;
byte num_done;

#define BIT(page)      (1 << (page))
#define HAS(set, page) ((set) >> (page) & 1)

/* For loops and sums inside one step. */
hidden byte i, at_root, from_here, a_word, a_size;

#define SAME_LOW()   (S.count == s.count && S.takes == s.takes)
#define SAME_STATE() (SAME_LOW() && S.root == s.root && S.skipped == s.skipped && \
		      S.tail == s.tail)

inline see_high()
{
	d_step { s.root = S.root; s.skipped = S.skipped; s.tail = S.tail }
}

inline see_low()
{
	d_step {
		s.count = S.count;
		s.takes = S.takes;
		assert(s.count == num_free)
	}
}

/* The halves may be of two states, the high one of the newer. */
inline load_state()
{
#ifdef HIGH_FIRST
	see_high();
	see_low()
#else
	see_low();
	see_high()
#endif
}

/* A thread forgets what it needs no more, so that more states are equal. */
inline forget_state()
{
	s.root = 0; s.skipped = 0; s.tail = 0; s.count = 0; s.takes = 0
}

inline expect(page)
{
	assert(i < num_free && fifo[i] == (page));
	i++
}

/* I1: the groups from head on are the ghost FIFO.  Part of a step. */
inline check_fifo()
{
	assert(S.count == num_free);
	i = 0;
	at_root = S.root;
	from_here = S.skipped;
	do
	:: i == num_free -> break
	:: else ->
		a_word = WORD(at_root);
		assert(from_here < SIZE(a_word));
		if
		:: from_here + 3 == SIZE(a_word) ->
			expect(LOW(WORD(LOW(BRANCHES(at_root)))));
			from_here++
		:: else
		fi;
		if
		:: from_here + 2 == SIZE(a_word) -> expect(LOW(BRANCHES(at_root)))
		:: else
		fi;
		expect(at_root);
		from_here = 0;
		if
		:: i == num_free -> assert(at_root == S.tail && IS_LAST(a_word))
		:: i < num_free && IS_LINK(a_word) -> at_root = VALUE(a_word)
		:: else ->
			assert(HIGH(RECORD(S.tail)) == at_root);
			at_root = LOW(RECORD(S.tail))
		fi
	od
}

#if defined(NO_NEWER)
#define MAY_LINK(word, tail_word) IS_LAST(word)
#elif defined(ANY_WORD)
#define MAY_LINK(word, tail_word) (VALUE(word) <= VALUE(tail_word))
#elif defined(NEWER_OR_SAME)
#define MAY_LINK(word, tail_word) (IS_LAST(word) && VALUE(word) < VALUE(tail_word))
#else
#define MAY_LINK(word, tail_word) (IS_LAST(word) && VALUE(word) <= VALUE(tail_word))
#endif

inline forget_help()
{
	record = 0; tail_word = 0; word = 0
}

/* Make the link that may be missing in state s. */
inline help()
{
	record = RECORD(s.tail);
	if
	:: atomic { HIGH(record) != NONE -> tail_word = WORD(s.tail) };
		word = WORD(HIGH(record));
		if
#ifdef NO_RECHECK
		:: MAY_LINK(word, tail_word) ->
#else
		:: MAY_LINK(word, tail_word) && SAME_LOW() ->
#endif
			d_step {
				if
#ifdef BLIND_LINK
				:: true ->
#else
				:: WORD(HIGH(record)) == word ->
#endif
					assert(HAS(free, HIGH(record)));
					word = LINK(LOW(record), SIZE(word));
					WORD(HIGH(record)) = word;
					check_fifo()
				:: else
				fi;
				forget_help()
			}
		:: else -> atomic { forget_help() }
		fi
	:: else -> record = 0
	fi
}

#define NEXT_ROOT(word) (IS_LINK(word) -> VALUE(word) : NONE)

/* next: the root behind root, or NONE when S has moved on. */
inline root_behind()
{
	next = NEXT_ROOT(WORD(root));
	if
	:: next == NONE ->
#ifndef TAKE_NO_HELP
		help();
#endif
		next = NEXT_ROOT(WORD(root))
	:: else
	fi
}

/* Pages [from, to) of the group of root, into mine[] from at on; ends in a step. */
inline read_group(from, to)
{
	if
	:: atomic { from + 1 < size -> branch = LOW(BRANCHES(root)) };
		if
		:: atomic { from + 2 < size -> mine[at] = LOW(WORD(branch)); at++ }
		:: else
		fi
	:: else
	fi;
	atomic {
		if
		:: from + 1 < size && to + 1 >= size -> mine[at] = branch; at++
		:: else
		fi;
		if
		:: to == size -> mine[at] = root; at++
		:: else
		fi;
		branch = 0
	}
}

/*
 * Find the n oldest pages in state s.  root: the group of the last; rest: the pages of it
 * that go when it does not go whole (already in mine[], at their place); gone: how many
 * of it are gone then.
 */
inline walk_run()
{
	do
	:: atomic {
			size = SIZE(WORD(root));
			if
			:: gone >= size -> goto moved_on
			:: gone < size && rest == size - gone -> rest = 0; break
			:: else
			fi
		};
		if
		:: rest < size - gone ->
#ifndef LATE_REST
			at = held + n - rest;
			read_group(gone, gone + rest);
#endif
			gone = gone + rest;
			break
		:: else ->
			root_behind();
			atomic {
				if
				:: next == NONE -> goto moved_on
				:: else
				fi;
				rest = rest - (size - gone);
				root = next;
				next = 0;
				gone = 0
			}
		fi
	od
}

/* next: the root of the head behind the run. */
inline find_head()
{
	if
	:: rest == 0 && s.count > n ->
		root_behind();
		if
		:: next == NONE -> goto moved_on
		:: else
		fi
	:: else -> next = (rest > 0 -> root : 0)
	fi
}

/* The ghost's side of a take. */
inline take_ghost()
{
	i = 0;
	do
	:: i == PAGES -> break
	:: i < n ->
		due[i] = fifo[i];
		free = free & ~BIT(fifo[i]);
		taking = taking | BIT(fifo[i]);
		i++
	:: i >= n && i < PAGES -> fifo[i - n] = fifo[i]; i++
	od;
	i = PAGES - n;
	do
	:: i == PAGES -> break
	:: else -> fifo[i] = 0; i++
	od;
	num_free = num_free - n;
	check_fifo()
}

/* S after a take. */
inline set_head()
{
	S.root = next;
#if defined(SKIP_KEPT)
	S.skipped = gone;
#elif defined(SKIP_STUCK)
	S.skipped = s.skipped;
#else
	S.skipped = (rest > 0 -> gone : 0);
#endif
	S.count = s.count - n;
#ifndef NO_TAKES
	S.takes = s.takes + 1
#endif
}

/* Take the run; while only frees intervene it stays the n oldest. */
inline take_run()
{
#ifdef HEAD_ONCE
	find_head();
	do
	::
#else
	do
	:: find_head();
#endif
		atomic {
			if
			:: SAME_STATE() ->
				d_step { set_head(); take_ghost(); next = 0 };
				break
			:: else
			fi
		};
		load_state();
#ifndef KEEP_WALK
		if
		:: s.takes != walked -> goto again
		:: else
		fi
#endif
	od
}

/* A page that comes into its owner's hands. */
inline set_owned(page, from_set)
{
	d_step {
		assert(!owned[page] && HAS(from_set, page));
		owned[page] = true;
		from_set = from_set & ~BIT(page);
		at++
	}
}

inline forget_walk()
{
	walked = 0; head = 0; skipped = 0;
	root = 0; size = 0; gone = 0; rest = 0; next = 0
}

/* Read the groups that went whole, now that nobody else has them; mark all owned. */
inline hand_out()
{
	atomic { root = head; gone = skipped; at = held; forget_state() };
	do
	:: atomic {
			at < held + n - rest ->
			next = VALUE(WORD(root));
			size = SIZE(WORD(root))
		};
		read_group(gone, size);
		atomic { root = next; gone = 0 }
	:: else -> break
	od;
#ifdef LATE_REST
	if
	:: rest > 0 ->
		size = SIZE(WORD(root));
		read_group(gone, gone + rest)
	:: else
	fi;
#endif
	PRIVATELY {
		forget_walk();
		at = 0;
		do
		:: at == n -> at = 0; break
		:: else -> assert(mine[held + at] == due[at]); due[at] = 0; at++
		od;
		do
		:: at == n -> break
		:: else -> set_owned(mine[held + at], taking)
		od;
		held = held + n;
		at = 0
	}
}

/* Forget the ids behind those held. */
inline forget_mine()
{
	at = held;
	do
	:: at == HELD_MAX -> at = 0; break
	:: else -> mine[at] = 0; at++
	od
}

/* n pages, or a refusal.  Who finds that S has moved on is right to. */
inline take()
{
	goto start;
moved_on:
	assert(!SAME_STATE());
again:
	atomic { forget_walk(); forget_mine() };
start:
	load_state();
	atomic {
		if
		:: s.count < n -> goto done
		:: else
		fi;
		walked = s.takes;
		head = s.root;
		skipped = s.skipped;
		root = head;
		gone = skipped;
		rest = n
	};
	walk_run();
	take_run();
	hand_out();
done:
	atomic { forget_state(); n = 0 }
}

inline claim(page)
{
	d_step {
		assert(!HAS(free | taking | giving, page));
		owned[page] = false;
		giving = giving | BIT(page);
		at++
	}
}

/* at: held, or the place of the first page that is not owned, with nothing claimed. */
inline claim_batch()
{
	at = 0;
#ifndef ALONE
	do
	:: atomic { at < held && owned[mine[at]] -> at++ }
	:: at == held -> at = 0; break
	:: else -> goto refused
	od;
#endif
	do
#if defined(ALONE) || defined(PLAIN_CLAIM)
	:: at < held && owned[mine[at]] -> claim(mine[at])
#else
	:: atomic { at < held && owned[mine[at]] -> claim(mine[at]) }
#endif
	:: else -> break
	od;
#ifndef NO_UNDO
	if
	:: at < held ->
		n = at;
		at = 0;
		do
		:: at < n -> set_owned(mine[at], giving)
		:: else -> n = 0; goto refused
		od
	:: else
	fi
#endif
}

/* A store to a slot of a page that a free has claimed. */
inline store(place, page, value)
{
	d_step {
		assert(HAS(giving, page) && !HAS(free | taking, page)); /* I4 */
		place = value
	}
}

/* The pages before root, which is mine[at + size - 1]. */
inline write_group()
{
	if
	:: size == 3 ->
		branch = mine[at + 1];
		store(WORD(branch), branch, PAIR(branch, mine[at]));
		/* Branches of more leaves fill more slots, and so may this one. */
		if
		:: true ->
			store(RECORD(branch), branch, PAIR(branch, mine[at]));
			store(BRANCHES(branch), branch, PAIR(branch, mine[at]))
		:: true
		fi;
		branch = 0
	:: else
	fi;
	if
	:: size > 1 -> store(BRANCHES(root), root, PAIR(0, mine[at + size - 2]))
	:: else
	fi
}

/* All of a batch but the word and the record of its last root. */
inline write_batch()
{
	atomic {
		at = 0;
		size = MIN(held, GROUP);
		root = mine[size - 1];
		first_root = root
	};
	do
	:: write_group();
		at = at + size;
		if
		:: at == held -> break
		:: else
		fi;
		n = MIN(held - at, GROUP);
		store(WORD(root), root, LINK(mine[at + n - 1], size));
		atomic { size = n; n = 0; root = mine[at + size - 1] }
	od;
	at = 0
}

/* S after a free. */
inline set_tail()
{
#ifndef HEAD_KEPT
	if
	:: s.count == 0 -> S.root = first_root; S.skipped = 0
	:: else
	fi;
#endif
	S.tail = root;
	S.count = s.count + held
}

/* The ghost's side of a free. */
inline give_ghost()
{
	i = 0;
	do
	:: i == held -> break
	:: else ->
		fifo[num_free] = mine[i];
		num_free++;
		free = free | BIT(mine[i]);
		giving = giving & ~BIT(mine[i]);
		i++
	od;
#ifndef LATE_RECORD
	check_fifo()
#endif
}

#if defined(EARLY_GEN) || defined(STALE_GEN)
#define GEN gen
#else
#define GEN s.takes
#endif

/* root's word and record, for state s. */
inline write_last()
{
	if
	:: s.count > 0 ->
#ifndef FREE_NO_HELP
		help();
#endif
		old_tail = s.tail
#ifdef RECORD_KEPT
	:: else -> old_tail = s.tail
#else
	:: else -> old_tail = NONE
#endif
	fi;
	store(WORD(root), root, LAST(GEN, size));
#ifndef LATE_RECORD
	store(RECORD(root), root, PAIR(old_tail, first_root))
#endif
}

/* Append the written batch, the last root of which is root. */
inline append()
{
	load_state();
#ifdef STALE_GEN
	gen = s.takes;
#endif
	/* I3 */
	assert(!IS_LAST(WORD(root)) || VALUE(WORD(root)) < VALUE(LAST(GEN, size)));
	do
	:: write_last();
		atomic {
			if
			:: SAME_STATE() ->
				d_step { set_tail(); give_ghost(); held = 0 };
				break
			:: else
			fi
		};
		load_state()
	od;
#ifdef LATE_RECORD
	atomic { RECORD(root) = PAIR(old_tail, first_root); check_fifo() };
#endif
	atomic { root = 0; size = 0; first_root = 0; old_tail = 0; forget_state() }
}

/* At the end: the FIFO is right, and every other page is owned. */
inline check_end()
{
	check_fifo();
	i = 0;
	do
	:: i == PAGES -> break
	:: else -> assert(owned[i] == !HAS(free, i)); i++
	od
}

/* Forget what was held. */
inline drop()
{
	atomic { held = 0; forget_mine() }
}

/* All of mine[]. */
inline give()
{
#ifdef EARLY_GEN
	load_state();
	gen = s.takes;
	atomic { forget_state() };
#endif
	PRIVATELY { claim_batch() }
	write_batch();
	append();
refused:
#ifndef LAWLESS
	assert(held == 0);
#endif
	drop()
}

/* Any ids into mine[]. */
inline draw()
{
	atomic {
		do
		:: at < PAGES - 1 -> at++
		:: true ->
			mine[held] = at;
			held++;
			at = 0;
			if
			:: held < GIVE_MAX
			:: held > 0 -> break
			fi
		od
	}
}

proctype worker(bool gives)
{
	state s;
	byte n, held, mine[HELD_MAX];
	byte root, size, branch, at;
	byte walked, head, skipped, gone, rest, next; /* take */
	byte first_root, old_tail;              /* give */
	byte record, tail_word, word;           /* help */
	byte due[TAKE_MAX];                     /* ghost: what a take must hand out */
	byte num_ops;
#if defined(EARLY_GEN) || defined(STALE_GEN)
	byte gen;
#endif

	do
	:: num_ops == OPS -> break
	:: else ->
		num_ops++;
		if
		:: held < HELD_MAX ->
			n = 1;
			do
			:: n < MIN(TAKE_MAX, HELD_MAX - held) -> n++
			:: true -> break
			od;
			take();
#ifdef LAWLESS
			drop()
		:: gives -> draw(); give()
#else
		:: held > 0 -> give()
#endif
		fi
	od;
	atomic {
		num_done++;
		if
		:: num_done == PROCS -> check_end()
		:: else
		fi
	}
}

/* As quire_fifo_init() leaves it, and then OUT pages taken, one by one. */
inline set_up()
{
	i = 0;
	do
	:: i == PAGES -> break
	:: else ->
		a_size = MIN(PAGES - i, GROUP);
		i = i + a_size;
		at_root = i - 1;
		if
		:: a_size == 3 -> WORD(at_root - 1) = PAIR(at_root - 1, at_root - 2)
		:: else
		fi;
		if
		:: a_size > 1 -> BRANCHES(at_root) = PAIR(0, at_root - 1)
		:: else
		fi;
		if
		:: i < PAGES ->
			WORD(at_root) = LINK(at_root + MIN(PAGES - i, GROUP), a_size)
		:: else -> WORD(at_root) = LAST(0, a_size)
		fi;
		if
		:: i - a_size <= OUT && OUT < i ->
			S.root = at_root;
			S.skipped = OUT - (i - a_size)
		:: else
		fi
	od;
	RECORD(PAGES - 1) = PAIR(NONE, 0);
	S.tail = PAGES - 1;
	S.count = PAGES - OUT;
	S.takes = OUT;
	num_free = PAGES - OUT;
	i = 0;
	do
	:: i == PAGES -> break
	:: i < OUT -> owned[i] = true; i++
	:: i >= OUT && i < PAGES -> fifo[i - OUT] = i; free = free | BIT(i); i++
	od;
	check_fifo()
}

init
{
	d_step { set_up() };
	atomic {
		i = 0;
		do
		:: i == PROCS -> break
#ifdef ALONE
		:: else -> run worker(i == 0); i++
#else
		:: else -> run worker(true); i++
#endif
		od
	}
}
