/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_TESTS_RUNTIME_COUNTING_MALLOC_H
#define QUIRE_TESTS_RUNTIME_COUNTING_MALLOC_H
/*
 * The test program's own malloc in front of glibc's: it counts, and fails on demand.
 * Include it in one file of a program.  Nothing is replaced where COUNTING_MALLOC is 0: a
 * sanitizer has an allocator of its own.
 *
 * Failing and remembering concern this program alone, the library linked into it
 * included, not the shared libraries: liburcu ends the process when an allocation of its
 * own fails.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define COUNTING_MALLOC 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define COUNTING_MALLOC 0
#endif
#endif
#ifndef COUNTING_MALLOC
#define COUNTING_MALLOC 1
#endif

#if COUNTING_MALLOC
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

/* glibc's own names of what is replaced here; __executable_start and etext are the
 * linker's. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t align, size_t size);
void __libc_free(void *memory);
extern const char __executable_start[], etext[];

#define REMEMBERED_MAX 4096

/* In front of glibc's for the shared libraries too, and called, so that there is a
 * caller. */
#define REPLACES __attribute__((visibility("default"), noinline))

static struct {
	_Atomic int64_t requests; /* of anybody */
	_Atomic int64_t
		fail_in;      /* requests of the program until one fails; 0: none does */
	_Atomic bool fail_on; /* from then on all fail */
	_Atomic int64_t failed;
	_Atomic bool remembers;
	_Atomic int64_t threads_fail_in; /* the same for pthread_create */
	atomic_flag lock;                /* guards what follows */
	int64_t num_live;
	void *live[REMEMBERED_MAX]; /* what the program got since and did not free */
} counting;

static bool is_program(const void *caller)
{
	return (const char *)caller >= __executable_start && (const char *)caller < etext;
}

/* Sequentially consistent throughout: this is for certainty, not for speed. */
static bool has_to_fail(const void *caller)
{
	int64_t left;

	atomic_fetch_add(&counting.requests, 1);
	if (!is_program(caller) || atomic_load(&counting.fail_in) == 0)
		return false;
	left = atomic_fetch_sub(&counting.fail_in, 1);
	if (left == 1 && atomic_load(&counting.fail_on))
		atomic_store(&counting.fail_in, 1);
	if (left == 1)
		atomic_fetch_add(&counting.failed, 1);
	return left == 1;
}

static void *remember(const void *caller, void *memory)
{
	if (memory == NULL || !atomic_load(&counting.remembers) || !is_program(caller))
		return memory;
	while (atomic_flag_test_and_set(&counting.lock))
		continue;
	if (counting.num_live == REMEMBERED_MAX)
		abort();
	counting.live[counting.num_live++] = memory;
	atomic_flag_clear(&counting.lock);
	return memory;
}

static void forget(const void *memory)
{
	if (memory == NULL || !atomic_load(&counting.remembers))
		return;
	while (atomic_flag_test_and_set(&counting.lock))
		continue;
	for (int64_t i = counting.num_live - 1; i >= 0; i--) {
		if (counting.live[i] != memory)
			continue;
		counting.live[i] = counting.live[--counting.num_live];
		break;
	}
	atomic_flag_clear(&counting.lock);
}

static void *none(void)
{
	errno = ENOMEM;
	return NULL;
}

REPLACES void *malloc(size_t size)
{
	const void *caller = __builtin_return_address(0);

	return has_to_fail(caller) ? none() : remember(caller, __libc_malloc(size));
}

REPLACES void *calloc(size_t n, size_t size)
{
	const void *caller = __builtin_return_address(0);

	return has_to_fail(caller) ? none() : remember(caller, __libc_calloc(n, size));
}

REPLACES void *realloc(void *memory, size_t size)
{
	const void *caller = __builtin_return_address(0);

	if (has_to_fail(caller))
		return none();
	forget(memory);
	return remember(caller, __libc_realloc(memory, size));
}

REPLACES void *reallocarray(void *memory, size_t n, size_t size)
{
	const void *caller = __builtin_return_address(0);
	size_t bytes;

	if (has_to_fail(caller) || __builtin_mul_overflow(n, size, &bytes))
		return none();
	forget(memory);
	return remember(caller, __libc_realloc(memory, bytes));
}

REPLACES void *aligned_alloc(size_t align, size_t size)
{
	const void *caller = __builtin_return_address(0);

	return has_to_fail(caller) ? none()
	                           : remember(caller, __libc_memalign(align, size));
}

REPLACES int posix_memalign(void **memory_out, size_t align, size_t size)
{
	const void *caller = __builtin_return_address(0);
	void *memory = has_to_fail(caller)
	                       ? NULL
	                       : remember(caller, __libc_memalign(align, size));

	if (memory == NULL)
		return ENOMEM;
	*memory_out = memory;
	return 0;
}

REPLACES void free(void *memory)
{
	forget(memory);
	__libc_free(memory);
}

REPLACES int pthread_create(pthread_t *restrict thread,
                            const pthread_attr_t *restrict attributes,
                            void *(*function)(void *), void *restrict argument)
{
	static int (*create)(pthread_t *restrict, const pthread_attr_t *restrict,
	                     void *(*)(void *), void *restrict);
	const void *caller = __builtin_return_address(0);

	if (is_program(caller) && atomic_load(&counting.threads_fail_in) > 0 &&
	    atomic_fetch_sub(&counting.threads_fail_in, 1) == 1)
		return EAGAIN;
	if (create == NULL)
		*(void **)&create = dlsym(RTLD_NEXT, "pthread_create");
	return create(thread, attributes, function, argument);
}
#endif

#endif
