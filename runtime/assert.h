/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_RUNTIME_ASSERT_H
#define QUIRE_RUNTIME_ASSERT_H
/*
 * Two tiers of assertions.  Both speak of programmers' errors inside Quire, never of
 * input.
 *
 *   QUIRE_ASSERT(condition)  O(1), in every build: entry conditions, invariants around a
 *   change.
 *   QUIRE_CHECK(call)        O(n), with --enable-debug only: a quire_<noun>_check() that
 *   must
 *                            answer QUIRE_OK.
 *
 * A failed assertion is a bug of the library: going on would corrupt somebody's pages, so
 * the process traps where it stands (__builtin_trap, which prints nothing), once the
 * handler of quire_set_fatal_handler, if there is one, was told.
 */
#ifdef __cplusplus
extern "C" {
#endif

/* quire_assert_failed - tell the handler, then trap */
__attribute__((noreturn, cold)) void quire_assert_failed(const char *condition,
                                                         const char *file, int line);

#ifdef __cplusplus
}
#endif

#define QUIRE_ASSERT(condition)                                              \
	do {                                                                 \
		if (__builtin_expect(!(condition), 0))                       \
			quire_assert_failed(#condition, __FILE__, __LINE__); \
	} while (0)

#ifdef QUIRE_DEBUG
#define QUIRE_CHECK(call) QUIRE_ASSERT((call) == QUIRE_OK)
#else
#define QUIRE_CHECK(call) ((void)0)
#endif

#endif
