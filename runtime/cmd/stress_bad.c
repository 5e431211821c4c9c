/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/stress_impl.h"

#include <inttypes.h>
#include <string.h>

/* What the pool has to say of a bad batch. */
struct expected {
	enum quire_status status;
	int32_t at;      /* the place that makes it bad */
	int32_t foreign; /* a place that may be refused before, or -1 */
};

/* One place holds no page of the pool, whatever else is wrong. */
static struct expected spoil_range(struct cmd_worker *worker, int32_t *pages, int32_t n)
{
	const int32_t num_pages = (int32_t)worker->stress->options.pages;
	const int32_t ids[] = {-1, num_pages, INT32_MIN, INT32_MAX};
	int32_t at = cmd_random_in(&worker->random, 0, n - 1);

	pages[cmd_random_in(&worker->random, 0, n - 1)] = pages[0];
	pages[at] = ids[cmd_random(&worker->random) % 4];
	return (struct expected){QUIRE_INVALID, at, -1};
}

/* One page is named twice.  2 <= n. */
static struct expected spoil_twice(struct cmd_worker *worker, int32_t *pages, int32_t n)
{
	int32_t at = cmd_random_in(&worker->random, 1, n - 1);

	pages[at] = pages[cmd_random_in(&worker->random, 0, at - 1)];
	return (struct expected){QUIRE_NOT_OWNED, at, -1};
}

/*
 * A contested page of somebody else's or of nobody, and, so that the batch is refused
 * whoever has it, one page twice.  A thread alone knows that nobody has it.  2 <= n.
 */
static struct expected spoil_owner(struct cmd_worker *worker, int32_t *pages, int32_t n)
{
	const struct cmd_stress *stress = worker->stress;
	int32_t last = (int32_t)(stress->options.pages - 1) / CMD_STRESS_CONTESTED;
	int32_t page = CMD_STRESS_CONTESTED * cmd_random_in(&worker->random, 0, last);
	int32_t at = cmd_random_in(&worker->random, 1, n - 1);
	int32_t foreign = cmd_random_in(&worker->random, 0, at - 1);

	/* Relaxed: nobody else says or takes back that it is the worker's own. */
	if (atomic_load_explicit(&stress->owner[page], memory_order_relaxed) ==
	    1 + worker->id)
		return spoil_twice(worker, pages, n);
	pages[foreign] = page;
	pages[at] = pages[cmd_random_in(&worker->random, 0, at - 1)];
	if (stress->options.threads == 1)
		at = foreign;
	return (struct expected){QUIRE_NOT_OWNED, at, foreign};
}

static bool is_right(const struct cmd_stress *stress, const int32_t *pages, int32_t n,
                     const struct expected *expected, const struct quire_refusal *refusal)
{
	int64_t at = refusal->index;

	if (refusal->status != expected->status || at < 0 || at >= n)
		return false;
	if (refusal->status == QUIRE_INVALID)
		return at == expected->at && refusal->got == pages[at] &&
		       refusal->expected == stress->options.pages - 1;
	return refusal->page == pages[at] &&
	       (at == expected->at || at == expected->foreign ||
	        cmd_stress_is_contested(stress, pages[at]));
}

void cmd_stress_try_bad(struct cmd_worker *worker, const int32_t *good, int32_t n)
{
	struct quire_refusal refusal = {.status = QUIRE_OK};
	int32_t *pages = worker->batch;
	struct expected expected;
	enum quire_status status;

	memcpy(pages, good, (size_t)n * sizeof(*pages));
	switch (n == 1 ? 0 : cmd_random(&worker->random) % 3) {
	case 0:
		expected = spoil_range(worker, pages, n);
		break;
	case 1:
		expected = spoil_twice(worker, pages, n);
		break;
	default:
		expected = spoil_owner(worker, pages, n);
		break;
	}
	status = cmd_stress_free(worker->stress, pages, n, &refusal);
	worker->bad_batches++;
	if (status == refusal.status &&
	    is_right(worker->stress, pages, n, &expected, &refusal))
		return;
	cmd_stress_fail(worker->stress,
	                "a bad batch of thread %" PRId32 ", %s for page %" PRId32
	                " at place %" PRId32 ", was answered with %s {page %" PRId32
	                ", place %" PRId64 "}",
	                worker->id, quire_status_name(expected.status),
	                pages[expected.at], expected.at, quire_status_name(status),
	                refusal.page, refusal.index);
}
