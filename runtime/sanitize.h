/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_RUNTIME_SANITIZE_H
#define QUIRE_RUNTIME_SANITIZE_H
/*
 * What ThreadSanitizer cannot see by itself: order made by inline assembly (ck_pr) or by
 * a library that was not instrumented (liburcu).  A release on an address before such a
 * hand-over, an acquire on the same address after it; nothing in other builds.
 */
#if defined(__SANITIZE_THREAD__)
#define QUIRE_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define QUIRE_TSAN 1
#endif
#endif

#ifdef QUIRE_TSAN
void __tsan_acquire(void *address);
void __tsan_release(void *address);
#define QUIRE_TSAN_ACQUIRE(address) __tsan_acquire((void *)(address))
#define QUIRE_TSAN_RELEASE(address) __tsan_release((void *)(address))
#else
#define QUIRE_TSAN_ACQUIRE(address) ((void)0)
#define QUIRE_TSAN_RELEASE(address) ((void)0)
#endif

#endif
