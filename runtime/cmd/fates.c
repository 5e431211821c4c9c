/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/fates_impl.h"

#include <quire/runtime/assert.h>

#include <stdlib.h>

bool cmd_fates_init(struct cmd_fates *fates)
{
	fates->ring = calloc(CMD_FATES, sizeof(*fates->ring));
	return fates->ring != NULL;
}

void cmd_fates_end(struct cmd_fates *fates)
{
	free(fates->ring);
}

void cmd_fates_other(struct cmd_fates *fates, bool is_given)
{
	fates->other = ++fates->place;
	if (is_given)
		fates->other_given = fates->place;
}

static struct cmd_fate *at(struct cmd_fates *fates, uint64_t index)
{
	return &fates->ring[index % CMD_FATES];
}

static uint64_t first(const struct cmd_fates *fates)
{
	return fates->count > CMD_FATES ? fates->count - CMD_FATES : 0;
}

struct cmd_fate *cmd_fates_find(struct cmd_fates *fates, uint64_t id)
{
	uint64_t low = first(fates), high = fates->count;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (at(fates, middle)->id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < fates->count && at(fates, low)->id == id ? at(fates, low) : NULL;
}

struct cmd_fate *cmd_fates_base(struct cmd_fates *fates)
{
	struct cmd_fate *fate = fates->newest;

	while (fate != NULL && fate->state != CMD_FATE_OPEN)
		fate = fate->older;
	return fate != NULL && fate->place > fates->other ? fate : NULL;
}

bool cmd_fates_may_rest(struct cmd_fates *fates, const struct cmd_fate *base)
{
	uint64_t place = base != NULL ? base->place : fates->other;
	const struct cmd_fate *newest = fates->newest;

	while (newest != NULL && (newest->state != CMD_FATE_OPEN || newest->is_ended))
		newest = newest->older;
	return place >= fates->other && (newest == NULL || place >= newest->place);
}

struct cmd_fate *cmd_fates_given(struct cmd_fates *fates)
{
	struct cmd_fate *fate = fates->newest;

	while (fate != NULL && fate->ticket == 0)
		fate = fate->older;
	return fate;
}

struct cmd_fate *cmd_fates_derived(struct cmd_fates *fates)
{
	struct cmd_fate *fate = cmd_fates_given(fates);

	return fate != NULL && fate->place > fates->other_given ? fate : NULL;
}

static void join(struct cmd_fates *fates, struct cmd_fate *fate)
{
	fate->older = fates->newest;
	if (fates->newest != NULL)
		fates->newest->newer = fate;
	else
		fates->oldest = fate;
	fates->newest = fate;
}

static void leave(struct cmd_fates *fates, struct cmd_fate *fate)
{
	if (fate->older != NULL)
		fate->older->newer = fate->newer;
	else
		fates->oldest = fate->newer;
	if (fate->newer != NULL)
		fate->newer->older = fate->older;
	else
		fates->newest = fate->older;
}

static bool is_listed(const struct cmd_fate *fate)
{
	return fate->state == CMD_FATE_OPEN ||
	       (fate->state == CMD_FATE_PROMOTED && !fate->is_told);
}

/* Final is what rests on nothing, or on what is promoted for good. */
static bool rests_on_final(struct cmd_fates *fates, const struct cmd_fate *fate)
{
	const struct cmd_fate *base = cmd_fates_find(fates, fate->base);

	return base == NULL || (base->is_final && base->state == CMD_FATE_PROMOTED);
}

struct cmd_fate *cmd_fates_add(struct cmd_fates *fates, uint64_t id, uint64_t base)
{
	const struct cmd_fate *below = cmd_fates_find(fates, base);
	bool is_abandoned = below != NULL && below->state == CMD_FATE_ABANDONED;
	struct cmd_fate *fate = at(fates, fates->count);

	QUIRE_ASSERT(fates->count < CMD_FATES || fate->is_final);
	*fate = (struct cmd_fate){
		.id = id,
		.base = base,
		.number = fates->count,
		.place = ++fates->place,
		.state = is_abandoned ? CMD_FATE_ABANDONED : CMD_FATE_OPEN,
		.is_late = is_abandoned,
		.is_final = is_abandoned,
		.is_told = is_abandoned,
	};
	fates->count++;
	if (!is_abandoned)
		join(fates, fate);
	return fate;
}

void cmd_fates_promote(struct cmd_fates *fates, struct cmd_fate *fate)
{
	QUIRE_ASSERT(fate->state == CMD_FATE_OPEN);
	fates->place++;
	fate->state = CMD_FATE_PROMOTED;
	fate->is_final = rests_on_final(fates, fate);
	if (!fate->is_final)
		return;
	/* What rests on it was added behind it. */
	for (uint64_t i = fate->number + 1; i < fates->count; i++) {
		struct cmd_fate *above = at(fates, i);

		if (above->state == CMD_FATE_PROMOTED)
			above->is_final = rests_on_final(fates, above);
	}
}

void cmd_fates_abandon(struct cmd_fates *fates, struct cmd_fate *fate)
{
	QUIRE_ASSERT(fate->state == CMD_FATE_OPEN);
	fates->place++;
	for (uint64_t i = fate->number; i < fates->count; i++) {
		struct cmd_fate *above = at(fates, i);
		const struct cmd_fate *base = cmd_fates_find(fates, above->base);

		if (above != fate && (base == NULL || base->state != CMD_FATE_ABANDONED))
			continue;
		if (is_listed(above))
			leave(fates, above);
		above->state = CMD_FATE_ABANDONED;
		above->is_final = true;
		above->is_told = true;
	}
}

struct cmd_fate *cmd_fates_untold(struct cmd_fates *fates, const struct cmd_fate *above)
{
	for (struct cmd_fate *fate = fates->oldest; fate != NULL; fate = fate->newer) {
		if (fate->state != CMD_FATE_PROMOTED)
			continue;
		if (fate->is_final || (above != NULL && fate->place > above->place))
			return fate;
	}
	return NULL;
}

void cmd_fates_tell(struct cmd_fates *fates, struct cmd_fate *fate)
{
	QUIRE_ASSERT(fate->state == CMD_FATE_PROMOTED && !fate->is_told);
	leave(fates, fate);
	fate->is_told = true;
}

struct cmd_fate *cmd_fates_open(struct cmd_fates *fates)
{
	struct cmd_fate *fate = fates->oldest;

	while (fate != NULL && fate->state != CMD_FATE_OPEN)
		fate = fate->newer;
	return fate;
}
