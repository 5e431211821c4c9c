/* SPDX-License-Identifier: MIT */
/* What runs have met. */
#include "config.h"

#include "sim_modes.h"

#include <stddef.h>
#include <stdio.h>

static const struct {
	const char *name;
	size_t offset;
	int met;
} states[] = {
#define STATE(name, met)                                     \
	{                                                    \
#name, offsetof(struct sim_cover, name), met \
	}
	STATE(refused_at_call, MET_ALWAYS),
	STATE(queue_full, MET_ALWAYS),
	STATE(page_waits, MET_ALWAYS),
	STATE(slot_waits, MET_ALWAYS),
	STATE(held_page_waits, MET_BY_ONE),
	STATE(held_slot_waits, MET_BY_ONE),
	STATE(parked, MET_BY_ONE),
	STATE(held_answers, MET_ALWAYS),
	STATE(invalid_fates, MET_ALWAYS),
	STATE(held_open, MET_ALWAYS),
	STATE(abandoned_held, MET_ALWAYS),
	STATE(abandoned_waiting_pages, MET_BY_ONE),
	STATE(abandoned_waiting_slot, MET_BY_ONE),
	STATE(abandoned_early, MET_ALWAYS),
	STATE(stash_takes, MET_ALWAYS),
	STATE(first_writes, MET_ALWAYS),
	STATE(pre_copies, MET_ALWAYS),
	STATE(post_copies, MET_ALWAYS),
	STATE(rewinds, MET_ALWAYS),
	STATE(releases, MET_ALWAYS),
	STATE(keeps, MET_ALWAYS),
	STATE(no_commits, MET_ALWAYS),
	STATE(combined, MET_ALWAYS),
	STATE(buckets, MET_ALWAYS),
	STATE(forgotten, MET_ALWAYS),
	STATE(cancelled, MET_OTHERWISE),
	STATE(cancelled_waiting, MET_OTHERWISE),
	STATE(open_at_end, MET_BY_ONE),
	STATE(failures, MET_OTHERWISE),
	STATE(failures_held, MET_OTHERWISE),
#undef STATE
};

static const uint64_t *count_of(const struct sim_cover *cover, size_t state)
{
	return (const uint64_t *)((const char *)cover + states[state].offset);
}

const char *sim_cover_missing(const struct sim_cover *cover, int met)
{
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		if ((states[i].met & met) != 0 && *count_of(cover, i) == 0)
			return states[i].name;
	return NULL;
}

_Static_assert(sizeof(struct sim_cover) % sizeof(uint64_t) == 0, "it is all counts");

void sim_cover_add(struct sim_cover *to, const struct sim_cover *cover)
{
	const uint64_t *from = (const uint64_t *)cover;
	uint64_t *sum = (uint64_t *)to;

	for (size_t i = 0; i < sizeof(*to) / sizeof(*sum); i++)
		sum[i] += from[i];
}

void sim_cover_print(const struct sim_cover *cover)
{
	printf("%llu lists, %llu commands:", (unsigned long long)cover->lists,
	       (unsigned long long)cover->commands);
	for (int32_t i = 0; i <= QUIRE_END; i++)
		if (cover->statuses[i] > 0)
			printf(" %s %llu", quire_status_name((enum quire_status)i),
			       (unsigned long long)cover->statuses[i]);
	printf("\n");
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		printf("%s %s %llu", i % 8 == 0 ? "\n " : ",", states[i].name,
		       (unsigned long long)*count_of(cover, i));
	printf("\n");
}
