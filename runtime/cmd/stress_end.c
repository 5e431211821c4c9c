/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/stress_impl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Pages that are free, given once more. */
#define AGAIN_TIMES 64

/* A page that is free is given; is it refused? */
static bool check_again(struct cmd_stress *stress, int32_t page)
{
	struct quire_refusal refusal = {.status = QUIRE_OK};
	enum quire_status status = cmd_stress_free(stress, &page, 1, &refusal);

	if (status == QUIRE_NOT_OWNED && refusal.page == page && refusal.index == 0)
		return true;
	cmd_stress_fail(stress,
	                "page %" PRId32 ", free already, was given again and answered "
	                "with %s {page %" PRId32 ", place %" PRId64 "}",
	                page, quire_status_name(status), refusal.page, refusal.index);
	return false;
}

/* What a worker has left goes back; some of it is tried again at once. */
static bool give_back(struct cmd_worker *worker)
{
	const struct cmd_stress_options *options = &worker->stress->options;
	uint64_t head = worker->ring_head;
	uint64_t num_ring = worker->ring_tail - head;
	int32_t num_left = worker->num_held + (int32_t)num_ring;

	for (int32_t at = 0, n; at < num_left; at += n) {
		n = num_left - at;
		if (n > options->batch_max)
			n = (int32_t)options->batch_max;
		for (int32_t i = 0; i < n; i++)
			worker->batch[i] = worker->held[(head + (uint64_t)(at + i)) %
			                                (uint64_t)options->hold];
		if (!cmd_stress_give(worker, worker->batch, n) ||
		    !check_again(worker->stress, worker->batch[n - 1]))
			return false;
	}
	return true;
}

/* All pages were taken: each is there, once, in the order that was listed. */
static bool check_all(struct cmd_stress *stress, const int32_t *pages, int32_t n,
                      const int32_t *listed)
{
	struct cmd_worker *worker = &stress->workers[0];
	int64_t num_pages = stress->options.pages;

	for (int32_t i = 0; i < n; i++) {
		if (!cmd_stress_receive(worker, pages[i]))
			return false;
	}
	for (int32_t page = 0; page < num_pages; page++) {
		if (stress->owner[page] != 0)
			continue;
		cmd_stress_fail(stress,
		                "page %" PRId32 " is lost: nobody has it, and it is not "
		                "among the %" PRId32 " that are free at the end",
		                page, n);
		return false;
	}
	for (int32_t i = 0; listed != NULL && i < n; i++) {
		if (listed[i] == pages[i])
			continue;
		cmd_stress_fail(stress,
		                "page %" PRId32 " came out at place %" PRId32
		                ", where the self-check had found page %" PRId32,
		                pages[i], i, listed[i]);
		return false;
	}
	return true;
}

/* A take of everything, and everything back. */
static bool take_all(struct cmd_stress *stress, int32_t *pages, const int32_t *listed)
{
	struct quire_refusal refusal = {.status = QUIRE_OK};
	struct cmd_worker *worker = &stress->workers[0];
	int32_t n = quire_pool_num_free(stress->pool);

	if (n < 0 || n > stress->options.pages) {
		cmd_stress_fail(stress,
		                "%" PRId32 " pages are said to be free at the end", n);
		return false;
	}
	if (quire_pool_allocate(stress->pool, n, pages, &refusal) != QUIRE_OK) {
		cmd_stress_fail(stress,
		                "a take of all %" PRId32 " pages was refused at the end, "
		                "%" PRId64 " were available",
		                n, refusal.available);
		return false;
	}
	worker->takes++;
	worker->pages_taken += n;
	return check_all(stress, pages, n, listed) && cmd_stress_give(worker, pages, n);
}

/* Every page that was taken was given, and no use was overwritten. */
static bool check_uses(struct cmd_stress *stress)
{
	int64_t taken = cmd_stress_pages_taken(stress), given = 0, uses = 0;

	for (int64_t t = 0; t < stress->options.threads; t++)
		given += stress->workers[t].pages_given;
	for (int64_t page = 0; page < stress->options.pages; page++)
		uses += stress->uses[page];
	if (uses == taken + given && taken == given)
		return true;
	cmd_stress_fail(stress,
	                "%" PRId64 " pages were taken and %" PRId64 " given, but %" PRId64
	                " uses were counted",
	                taken, given, uses);
	return false;
}

static void check_pool(struct cmd_stress *stress, int32_t *pages, int32_t *listed)
{
	struct quire_refusal refusal;
	enum quire_status status = quire_pool_check(stress->pool, listed, &refusal);
	char text[128];

	/* A page that is lost is named, however the self-check would put it. */
	if (!take_all(stress, pages, status == QUIRE_OK ? listed : NULL) ||
	    !check_uses(stress))
		return;
	if (status == QUIRE_OK)
		status = quire_pool_check(stress->pool, listed, &refusal);
	if (status != QUIRE_OK) {
		quire_refusal_text(&refusal, text, sizeof(text));
		cmd_stress_fail(stress, "the pool's self-check failed: %s", text);
		return;
	}
	for (int i = 0; i < AGAIN_TIMES; i++) {
		uint64_t *random = &stress->workers[0].random;
		int32_t last = (int32_t)stress->options.pages - 1;

		if (!check_again(stress, cmd_random_in(random, 0, last)))
			return;
	}
}

int cmd_stress_end(struct cmd_stress *stress)
{
	size_t bytes = (size_t)stress->options.pages * sizeof(int32_t);
	int32_t *pages = malloc(bytes);
	int32_t *listed = malloc(bytes);
	bool is_back = true;
	int code = CMD_DONE;

	if (pages == NULL || listed == NULL) {
		cmd_tell(NULL, 0, "no memory to look at %" PRId64 " pages",
		         stress->options.pages);
		code = CMD_BAD;
		goto undo_pages;
	}
	for (int64_t t = 0; is_back && t < stress->options.threads; t++)
		is_back = give_back(&stress->workers[t]);
	if (is_back)
		check_pool(stress, pages, listed);

undo_pages:
	free(listed);
	free(pages);
	return code;
}
