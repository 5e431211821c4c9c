/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_ALLOC_LEDGER_H
#define QUIRE_ALLOC_LEDGER_H
/*
 * The ledger: how many owners each page has (streams, index entries, holds, the sink).
 *
 * Invariants
 *   owned = number of pages with owners > 0.
 *   A page is acquired at 0 -> 1, retained at > 0, and given up when its last owner
 *   releases it.
 *
 * A list holds 0 to INT32_MAX names; another length is refused as INVALID {what "n",
 * got}.
 *
 * One writer: every call on one ledger comes from one thread at a time (in a runtime, the
 * planner).  Source: reference counts of paged block tables, as serving engines keep
 * them.
 */
#include <quire/runtime/status.h>

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct quire_ledger;

/*
 * quire_ledger_create - a ledger of num_pages pages that nobody owns
 * @num_pages:  1..QUIRE_PAGES_MAX
 * @ledger_out: given; end it with quire_ledger_destroy
 * Returns:  QUIRE_OK; QUIRE_INVALID: num_pages out of range; QUIRE_NO_MEMORY.
 * Cost:     4 bytes per page, none later.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_ledger_create(int64_t num_pages, struct quire_ledger **ledger_out);

/* quire_ledger_destroy - @ledger: given, NULL is a no-op */
QUIRE_API void quire_ledger_destroy(struct quire_ledger *ledger);

/*
 * quire_ledger_acquire - first owner of each of n pages that nobody owns
 * @pages:   borrowed, n page ids
 * @refusal_out: filled on refusal; NULL allowed
 * Returns:  QUIRE_OK; QUIRE_INVALID: an id out of range, owned already, or named twice
 *           {what, page, index}; nothing changed.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_ledger_acquire(struct quire_ledger *ledger, const int32_t *pages, int64_t n,
                     struct quire_refusal *refusal_out);

/*
 * quire_ledger_retain - one more owner of each of n owned pages; a page may be named
 * repeatedly
 * Returns:  QUIRE_OK; QUIRE_NOT_OWNED {page, index}; QUIRE_INVALID: an id out of range;
 *           QUIRE_LIMIT {page, index}: a page with INT32_MAX owners; nothing changed.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_ledger_retain(struct quire_ledger *ledger, const int32_t *pages, int64_t n,
                    struct quire_refusal *refusal_out);

/*
 * quire_ledger_release - one owner less for each of n pages; a page may be named as often
 * as it has owners
 * @freed_out: filled with the pages that lost their last owner, in the order in which
 *           they did (room for n; may be the same array as @pages)
 * @num_freed_out: filled with their number
 * Returns:  QUIRE_OK; QUIRE_NOT_OWNED {page, index}: a page with no owner left to
 *           release; QUIRE_INVALID: an id out of range; nothing changed.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status quire_ledger_release(
	struct quire_ledger *ledger, const int32_t *pages, int64_t n, int32_t *freed_out,
	int64_t *num_freed_out, struct quire_refusal *refusal_out);

/* quire_ledger_owners - owners of one page, 0 for an id out of range */
QUIRE_API int32_t quire_ledger_owners(const struct quire_ledger *ledger, int32_t page);

/* quire_ledger_owned - pages with at least one owner */
QUIRE_API int32_t quire_ledger_owned(const struct quire_ledger *ledger);

/* quire_ledger_extra - owners beyond each page's first, of all pages: 0 when none is
 * shared */
QUIRE_API int64_t quire_ledger_extra(const struct quire_ledger *ledger);

/*
 * quire_ledger_check - compare with an independent count of names
 * @names:   borrowed, num_pages counts: how many names each page has
 * Returns:  QUIRE_OK; QUIRE_BROKEN {what, page, expected (names), got (owners)}.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_ledger_check(const struct quire_ledger *ledger, const int32_t *names,
                   struct quire_refusal *refusal_out);

#ifdef __cplusplus
}
#endif
#endif
