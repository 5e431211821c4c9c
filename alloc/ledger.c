/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "alloc/ledger_impl.h"
#include "runtime/refuse_impl.h"

#include <quire/runtime/assert.h>
#include <quire/runtime/limits.h>

#include <stdlib.h>

static enum quire_status refuse(enum quire_status status, const int32_t *pages, int64_t i,
                                int64_t expected, struct quire_refusal *refusal_out)
{
	return quire_refuse(refusal_out, (struct quire_refusal){.status = status,
	                                                        .what = "pages",
	                                                        .page = pages[i],
	                                                        .index = i,
	                                                        .got = pages[i],
	                                                        .expected = expected});
}

static enum quire_status refuse_count(const char *what, int64_t expected, int64_t got,
                                      struct quire_refusal *refusal_out)
{
	return quire_refuse(refusal_out, (struct quire_refusal){.status = QUIRE_BROKEN,
	                                                        .what = what,
	                                                        .page = -1,
	                                                        .expected = expected,
	                                                        .got = got});
}

/* Names beyond INT32_MAX would not fit a place's mark in owners[]. */
static enum quire_status check_list(const struct quire_ledger *ledger,
                                    const int32_t *pages, int64_t n,
                                    struct quire_refusal *refusal_out)
{
	int64_t i;

	QUIRE_ASSERT(ledger && (pages || n <= 0));
	if (n < 0 || n > INT32_MAX)
		return quire_refuse(refusal_out,
		                    (struct quire_refusal){.status = QUIRE_INVALID,
		                                           .what = "n",
		                                           .index = -1,
		                                           .got = n,
		                                           .expected = INT32_MAX});
	for (i = 0; i < n && (uint32_t)pages[i] < (uint32_t)ledger->num_pages; i++)
		;
	if (i == n)
		return QUIRE_OK;
	return refuse(QUIRE_INVALID, pages, i, ledger->num_pages - 1, refusal_out);
}

enum quire_status quire_ledger_create(int64_t num_pages, struct quire_ledger **ledger_out)
{
	struct quire_ledger *ledger;

	if (num_pages < 1 || num_pages > QUIRE_PAGES_MAX)
		return QUIRE_INVALID;
	ledger = calloc(1,
	                sizeof(*ledger) + (size_t)num_pages * sizeof(ledger->owners[0]));
	if (!ledger)
		return QUIRE_NO_MEMORY;
	ledger->num_pages = (int32_t)num_pages;
	*ledger_out = ledger;
	return QUIRE_OK;
}

void quire_ledger_destroy(struct quire_ledger *ledger)
{
	free(ledger);
}

enum quire_status quire_ledger_acquire(struct quire_ledger *ledger, const int32_t *pages,
                                       int64_t n, struct quire_refusal *refusal_out)
{
	enum quire_status status = check_list(ledger, pages, n, refusal_out);
	int64_t i;

	if (status)
		return status;
	for (i = 0; i < n && ledger->owners[pages[i]] == 0; i++)
		ledger->owners[pages[i]] = 1;
	if (i < n) {
		for (int64_t k = 0; k < i; k++)
			ledger->owners[pages[k]] = 0;
		return refuse(QUIRE_INVALID, pages, i, 0, refusal_out);
	}
	ledger->owned += (int32_t)n;
	ledger->names += n;
	return QUIRE_OK;
}

enum quire_status quire_ledger_retain(struct quire_ledger *ledger, const int32_t *pages,
                                      int64_t n, struct quire_refusal *refusal_out)
{
	enum quire_status status = check_list(ledger, pages, n, refusal_out);
	int64_t i;

	if (status)
		return status;
	for (i = 0; i < n; i++) {
		int32_t *owners = &ledger->owners[pages[i]];

		if (*owners == 0 || *owners == INT32_MAX)
			break;
		(*owners)++;
	}
	if (i == n) {
		ledger->names += n;
		return QUIRE_OK;
	}
	status = ledger->owners[pages[i]] ? QUIRE_LIMIT : QUIRE_NOT_OWNED;
	for (int64_t k = 0; k < i; k++)
		ledger->owners[pages[k]]--;
	return refuse(status, pages, i, status == QUIRE_LIMIT ? INT32_MAX : 0,
	              refusal_out);
}

enum quire_status quire_ledger_release(struct quire_ledger *ledger, const int32_t *pages,
                                       int64_t n, int32_t *freed_out,
                                       int64_t *num_freed_out,
                                       struct quire_refusal *refusal_out)
{
	enum quire_status status = check_list(ledger, pages, n, refusal_out);
	int64_t i, num_freed = 0;

	if (status)
		return status;
	QUIRE_ASSERT(num_freed_out && (freed_out || n == 0));
	for (i = 0; i < n && ledger->owners[pages[i]] > 0; i++) {
		int32_t *owners = &ledger->owners[pages[i]];

		*owners = *owners == 1 ? -(int32_t)(i + 1) : *owners - 1;
	}
	if (i < n) {
		for (int64_t k = i - 1; k >= 0; k--) {
			int32_t *owners = &ledger->owners[pages[k]];

			*owners = *owners < 0 ? 1 : *owners + 1;
		}
		return refuse(QUIRE_NOT_OWNED, pages, i, 0, refusal_out);
	}
	for (i = 0; i < n; i++) {
		int32_t page = pages[i];

		if (ledger->owners[page] == -(int32_t)(i + 1)) {
			ledger->owners[page] = 0;
			freed_out[num_freed++] = page;
		}
	}
	ledger->owned -= (int32_t)num_freed;
	ledger->names -= n;
	*num_freed_out = num_freed;
	return QUIRE_OK;
}

int32_t quire_ledger_owners(const struct quire_ledger *ledger, int32_t page)
{
	return (uint32_t)page < (uint32_t)ledger->num_pages ? ledger->owners[page] : 0;
}

int32_t quire_ledger_owned(const struct quire_ledger *ledger)
{
	return ledger->owned;
}

int64_t quire_ledger_extra(const struct quire_ledger *ledger)
{
	return ledger->names - ledger->owned;
}

enum quire_status quire_ledger_check(const struct quire_ledger *ledger,
                                     const int32_t *names,
                                     struct quire_refusal *refusal_out)
{
	int64_t owned = 0, all = 0;

	for (int32_t page = 0; page < ledger->num_pages; page++) {
		owned += ledger->owners[page] > 0;
		all += ledger->owners[page];
		if (ledger->owners[page] != names[page])
			return quire_refuse(refusal_out,
			                    (struct quire_refusal){
						    .status = QUIRE_BROKEN,
						    .what = "owners are the page's names",
						    .page = page,
						    .expected = names[page],
						    .got = ledger->owners[page]});
	}
	if (owned != ledger->owned)
		return refuse_count("owned counts pages with owners", owned,
		                    ledger->owned, refusal_out);
	if (all != ledger->names)
		return refuse_count("names counts owners", all, ledger->names,
		                    refusal_out);
	return QUIRE_OK;
}
