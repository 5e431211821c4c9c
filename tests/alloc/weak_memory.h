/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_TESTS_ALLOC_WEAK_MEMORY_H
#define QUIRE_TESTS_ALLOC_WEAK_MEMORY_H
/*
 * C11 atomics as late as the standard allows: a simulated memory for short histories.
 *
 * A source file that is included after this header has its atomic operations done here,
 * with the orders that it names.  Threads are coroutines; a seed decides who runs, and
 * which of the stores that it may still see a load returns.  Operations that the end of
 * this header does not name go past it.
 *
 * The model
 *   All stores of a place are kept, in their modification order.  A view names the oldest
 *   store of each place that may still be read.  Each thread has one; each store carries
 *   one, which an acquire adds to its reader's:
 *     a release store      all that its thread has seen
 *     a relaxed store      what its thread had seen at its last release fence
 *     a read-modify-write  also what the store carries that it read (release sequence)
 *   A store may come before others in modification order that its thread knows nothing
 *   of, but never between a store and the read-modify-write that read it.
 *
 *   The 128-bit compare-and-swap is one relaxed read-modify-write of both halves.  One
 *   that fails has seen nothing, and what it returns may be the halves of two states.
 *
 *   It differs from C11 in this: no load returns a store that comes later in the run
 *   (load buffering); memory_order_seq_cst is no more than acquire and release; a relaxed
 *   store does not go on with a release sequence of its own thread (as in C++20).
 */
#include <ck_pr.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define WEAK_THREADS 3

/* A new history.  Until it runs, stores go to memory and nothing else is allowed. */
void weak_begin(uint64_t seed);

/* The history's n places of `size` bytes from `at` on, with what they hold now. */
void weak_watch(volatile void *at, uint32_t size, uint32_t n);

/*
 * Run a thread, and when it has ended WEAK_THREADS others that have seen what it has
 * seen, to their ends or until one fails: NULL, or why.  Then memory holds the last store
 * to each place.
 */
const char *weak_run(void (*first)(void), void (*others)(void));

/* For its threads. */
uint32_t weak_me(void); /* 0 .. WEAK_THREADS - 1; the first one is WEAK_THREADS */
_Noreturn void weak_fail(const char *why);
uint32_t weak_random(uint32_t n);     /* a number below n */
void weak_pause(uint32_t steps_most); /* others may run, or must for some steps */

/* Write a place that is not atomic: fails unless all its stores so far happen before. */
void weak_touch(const volatile void *at);

/* Loads that did not return the last store, since the program began. */
extern uint64_t weak_num_late;

uint64_t weak_load(const volatile void *at, memory_order order);
void weak_store(volatile void *at, uint32_t size, uint64_t value, memory_order order);
uint64_t weak_exchange(volatile void *at, uint64_t value, memory_order order);
bool weak_cas(volatile void *at, uint64_t *expected, uint64_t value, memory_order success,
              memory_order failure);
bool weak_cas_2(uint64_t *at, const uint64_t compare[2], const uint64_t set[2],
                uint64_t *found_out);
void weak_fence(memory_order order);

#undef atomic_load_explicit
#undef atomic_store_explicit
#undef atomic_exchange_explicit
#undef atomic_compare_exchange_strong_explicit
#define atomic_load_explicit(at, order) weak_load(at, order)
#define atomic_store_explicit(at, value, order) \
	weak_store(at, sizeof(*(at)), value, order)
#define atomic_exchange_explicit(at, value, order) weak_exchange(at, value, order)
#define atomic_compare_exchange_strong_explicit(at, expected, value, success, failure) \
	weak_cas(at, expected, value, success, failure)
#define ck_pr_cas_64_2(at, compare, set)              weak_cas_2(at, compare, set, NULL)
#define ck_pr_cas_64_2_value(at, compare, set, found) weak_cas_2(at, compare, set, found)
#define ck_pr_fence_acquire()                         weak_fence(memory_order_acquire)
#define ck_pr_fence_release()                         weak_fence(memory_order_release)
#define ck_pr_stall()                                 weak_pause(0)

#endif
