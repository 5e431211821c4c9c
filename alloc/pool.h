/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_ALLOC_POOL_H
#define QUIRE_ALLOC_POOL_H
/*
 * The page FIFO: a lock-free, linearizable pool of page ids 0..num_pages-1.
 *
 * Use
 *   Pages leave oldest first, initially 0, 1, 2, ...; a take of n pages is the n oldest
 *   or nothing; pages given back join the end in the order given, all at once.
 *
 * How it works
 *   A batch that is given back is written into memory that belongs to its own pages: each
 *   run of up to 37 is described by its last page, its root, which leaves the FIFO last,
 *   and the roots are linked.  So there is nothing to allocate and nothing to run out of.
 *
 * Why it is correct
 *   Everything that decides an outcome is one 128-bit word S = (head, tail, count,
 *   takes), changed by compare-and-swap only, so every operation happens at one instant:
 *     take    finds its pages from head on, then moves head and count by one CAS on S;
 *     free    writes its batch privately, then appends all of it by one CAS on S;
 *     count   and a take that fails read S once.
 *   The one step left after a free's CAS, linking the old last root to the first new one,
 *   is itself a CAS from published data, so whoever needs the link first makes it (help):
 *   no thread waits for another, and no completed free is hidden behind a stalled one.
 *   `takes` grows with every take, and between two takes the count only grows, so an
 *   equal S is the same state (no ABA).  fifo_impl.h has the invariants, fifo.c says
 *   which access pairs with which, and why.
 *
 * What says so
 *   tests/alloc/model_pool.pml     every interleaving of a small pool (Spin)
 *   tests/alloc/test_pool_linear   recorded histories have a sequential order
 *   tests/alloc/test_pool_frozen   a thread stopped anywhere holds up nobody
 *   tests/alloc/test_pool_weak     the memory orders of fifo.c are enough
 *   quire stress                   no page in two hands, and all there at the end
 *
 * Which calls exclude which
 *   create, destroy, check      need the pool to themselves
 *   free_single_giver           excludes every other free
 *   all others                  exclude nothing; any number of threads, no registration
 *   No call takes a lock or allocates memory but create, destroy and check;
 *   allocate_wait sleeps.
 *
 * Memory
 *   A free happens before the take that next returns the page: what the old holder wrote
 *   is seen by the new one.
 *
 * Where there is no 128-bit compare-and-swap the same interface stands on a ring with a
 * mutex: the same answers, but a thread stopped inside a call holds up the others.
 *
 * Source: PageAllocator of mstar.engine.resources.kv.cache; the structure follows
 * Ladan-Mozes and Shavit, "An optimistic approach to lock-free FIFO queues" (DISC 2004),
 * with counted batches as in BQ (SPAA 2018).
 */
#include <quire/runtime/limits.h>
#include <quire/runtime/status.h>

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct quire_pool;

/*
 * quire_pool_create - a pool in which all pages are free, in the order 0, 1, 2, ...
 * @num_pages:  1..QUIRE_PAGES_MAX
 * @pool_out:   given; end it with quire_pool_destroy
 * Returns:  QUIRE_OK; QUIRE_INVALID: num_pages out of range; QUIRE_NO_MEMORY.
 * Cost:     O(num_pages); 33 bytes per page (with a lock: 5), none later.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_pool_create(int64_t num_pages, struct quire_pool **pool_out);

/*
 * quire_pool_destroy - end a pool; pages still out are forgotten
 * @pool:    given, NULL is a no-op
 * Threads:  one, with the pool to itself.
 */
QUIRE_API void quire_pool_destroy(struct quire_pool *pool);

/*
 * quire_pool_allocate - take the n oldest free pages, or refuse and say why
 * @n:       pages, 0 or more; 0 succeeds
 * @pages_out: filled with n page ids, oldest first; NULL allowed when n is 0
 * @refusal_out: filled on refusal; NULL allowed
 * Returns:  QUIRE_OK; QUIRE_NO_PAGES {requested, available}: fewer are free at this
 *           instant; QUIRE_INVALID: n is negative or more than the pool has.  A refusal
 *           changes nothing.
 * Threads:  any.
 * Cost:     O(n), lock-free.
 * Source:   PageAllocator.allocate
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_pool_allocate(struct quire_pool *pool, int64_t n, int32_t *pages_out,
                    struct quire_refusal *refusal_out);

/*
 * quire_pool_try_allocate - the same, answering yes or no
 * Returns:  true: taken; false: fewer than n are free (or n is out of range), nothing
 *           changed.
 * Threads:  any.
 * Cost:     O(n), lock-free.
 * Source:   PageAllocator.try_allocate
 */
QUIRE_API QUIRE_MUST_CHECK bool quire_pool_try_allocate(struct quire_pool *pool,
                                                        int64_t n, int32_t *pages_out);

/*
 * quire_pool_allocate_wait - the same, waiting until others have given back enough
 * @deadline_ns: CLOCK_MONOTONIC; QUIRE_NO_DEADLINE: no deadline; 0: do not wait
 * Returns:  QUIRE_OK; QUIRE_TIMEOUT {requested, available}: the deadline passed and fewer
 *           were free; QUIRE_INVALID: as above.  A refusal changes nothing.
 *           Nobody queues: pages go to whoever comes first when there are enough, so a
 *           large request may see many small ones go by.  To end a wait early, wait with
 *           a deadline and look again.
 * Threads:  any.  Frees that find nobody waiting pay one load for it.
 * Cost:     as allocate; then it sleeps, and looks again after each free.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_pool_allocate_wait(struct quire_pool *pool, int64_t n, int32_t *pages_out,
                         int64_t deadline_ns, struct quire_refusal *refusal_out);

/*
 * quire_pool_free - give pages back: one batch, appended at once, in the given order
 * @pages:   borrowed, n page ids
 * @n:       0 or more; 0 succeeds
 * @refusal_out: filled on refusal; NULL allowed
 * Returns:  QUIRE_OK; QUIRE_INVALID {index, got, expected}: an id out of range, or n is
 *           negative or more than the pool has; QUIRE_NOT_OWNED {page, index}: a page
 *           that is free already or named twice; of several, any one.  A refusal changes
 *           nothing.
 *           Of two frees that overlap in time and name the same page at most one
 *           succeeds; beside a free that is itself refused, both may be.
 * Threads:  any.
 * Cost:     O(n), lock-free; a refusal is wait-free.
 * Source:   PageAllocator.free
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_pool_free(struct quire_pool *pool, const int32_t *pages, int64_t n,
                struct quire_refusal *refusal_out);

/*
 * quire_pool_free_single_giver - the same, faster, where one thread gives at a time
 * Returns:  as quire_pool_free.  No page is ever given twice either, as long as no other
 *           free of the pool runs at the same time; that is the caller's promise, and so
 *           is order between givers that take turns.  Broken, it may let a double free
 *           through.
 * Threads:  any, one free at a time; takes and counts may run beside it.
 * Cost:     O(n), lock-free; one atomic operation less per page.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_pool_free_single_giver(struct quire_pool *pool, const int32_t *pages, int64_t n,
                             struct quire_refusal *refusal_out);

/*
 * quire_pool_num_free - pages that a take could have at this instant
 * Threads:  any.
 * Cost:     one load, wait-free.
 * Source:   PageAllocator.num_free
 */
QUIRE_API int32_t quire_pool_num_free(const struct quire_pool *pool);

/* quire_pool_num_pages - the size given at create.  Threads: any. */
QUIRE_API int32_t quire_pool_num_pages(const struct quire_pool *pool);

/* quire_pool_is_lock_free - false where there is no 128-bit compare-and-swap.  Threads:
 * any. */
QUIRE_API bool quire_pool_is_lock_free(const struct quire_pool *pool);

/*
 * quire_pool_check - walk the FIFO and verify every link, mark and count
 * @pages_out: filled with the free pages, oldest first (room for num_pages); NULL allowed
 * @refusal_out: filled on refusal {what, page}; NULL allowed
 * Returns:  QUIRE_OK; QUIRE_BROKEN: which rule, at which page; QUIRE_NO_MEMORY.
 * Threads:  one, with no other call on the pool at the same time.
 * Cost:     O(num_pages); 5 bytes per page while it runs.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_pool_check(const struct quire_pool *pool, int32_t *pages_out,
                 struct quire_refusal *refusal_out);

#ifdef __cplusplus
}
#endif
#endif
