/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_ALLOC_LEDGER_IMPL_H
#define QUIRE_ALLOC_LEDGER_IMPL_H
#include <quire/alloc/ledger.h>

/*
 * A list is applied name by name and undone from the back when a name is refused:
 * duplicates then need no care of their own.  While a release runs, a page that lost its
 * last owner at place i holds -(i + 1): it has no owner left for a later name, the undo
 * knows it, and the second pass finds the places where pages were given up, in order.
 */
struct quire_ledger {
	int32_t num_pages;
	int32_t owned;
	int64_t names; /* owners of all pages together */
	int32_t owners[];
};

#endif
