/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <quire/runtime/assert.h>
#include <quire/runtime/hooks.h>

#include <stdatomic.h>
#include <stddef.h>

static _Atomic(quire_fatal_function) fatal_handler;

void quire_set_fatal_handler(quire_fatal_function handler)
{
	/* Pairs with the acquire in quire_assert_failed: what the handler uses was made
	 * before it was set. */
	atomic_store_explicit(&fatal_handler, handler, memory_order_release);
}

void quire_assert_failed(const char *condition, const char *file, int line)
{
	/* Pairs with the release in quire_set_fatal_handler. */
	quire_fatal_function handler =
		atomic_load_explicit(&fatal_handler, memory_order_acquire);

	if (handler != NULL)
		handler(condition, file, line);
	__builtin_trap();
}
