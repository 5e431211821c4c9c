/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "model_order.h"

#include <stdlib.h>
#include <string.h>

static struct model *copy_of(const struct model *m)
{
	struct model *copy = malloc(sizeof(*copy));

	REQUIRE(copy != NULL);
	*copy = *m;
	return copy;
}

/* One more command took effect: `m` is what readers may see from now on. */
static void show(struct model_order *order, const struct model *m)
{
	REQUIRE(order->effects < ORDER_COMMANDS_MAX);
	order->shown[++order->effects] = copy_of(m);
}

void order_init(struct model_order *order, const struct quire_runtime_config *config,
                int32_t num_pages, int32_t page_size)
{
	memset(order, 0, offsetof(struct model_order, answer));
	model_init(&order->model, config, num_pages, page_size);
	order->shown[0] = copy_of(&order->model);
}

void order_end(struct model_order *order)
{
	order_forget(order, order->effects);
	free(order->shown[order->effects]);
	for (int32_t i = 0; i < order->num_held; i++)
		free(order->held[i].before);
	for (int32_t i = 0; i < order->followed; i++) {
		free(order->entries[i].image);
		free(order->entries[i].reads);
	}
}

void order_forget(struct model_order *order, int32_t effects)
{
	for (; order->first_shown < effects; order->first_shown++)
		free(order->shown[order->first_shown]);
}

int32_t order_find(const struct model_order *order, uint64_t ticket)
{
	for (int32_t i = 0; i < order->drawn; i++)
		if (order->entries[i].ticket == ticket)
			return i;
	return -1;
}

static bool is_open(const struct model_entry *entry)
{
	return entry->speculative && entry->fate == FATE_OPEN;
}

bool order_is_open(const struct model_order *order, uint64_t ticket)
{
	int32_t i = order_find(order, ticket);

	return i >= 0 && is_open(&order->entries[i]);
}

/* Is its fate drawn, and that of all below it? */
static bool fate_is_final(const struct model_order *order, int32_t entry)
{
	for (; entry >= 0; entry = order->entries[entry].base) {
		if (order->entries[entry].fate == FATE_ABANDONED)
			return true;
		if (is_open(&order->entries[entry]))
			return false;
	}
	return true;
}

bool order_is_settled(const struct model_order *order, int32_t entry)
{
	const struct model_entry *own = &order->entries[entry];

	/* What rests on a refused step is ABANDONED whatever becomes of that one. */
	return fate_is_final(order, entry) ||
	       (!is_open(own) && own->refusal.status == QUIRE_ABANDONED);
}

int32_t order_num_unsettled(const struct model_order *order)
{
	int32_t n = 0;

	for (int32_t i = 0; i < order->drawn; i++)
		n += !fate_is_final(order, i);
	return n;
}

int32_t order_num_open(const struct model_order *order)
{
	int32_t n = 0;

	for (int32_t i = 0; i < order->drawn; i++)
		n += is_open(&order->entries[i]);
	return n;
}

int32_t order_next_base(const struct model_order *order)
{
	for (int32_t i = order->drawn - 1; i >= 0; i--) {
		if (order->entries[i].position <= order->last_other)
			return -1;
		if (is_open(&order->entries[i]))
			return i;
	}
	return -1;
}

void order_draw(struct model_order *order, const struct quire_command *command,
                uint64_t ticket)
{
	struct model_entry *entry = &order->entries[order->drawn];

	REQUIRE(order->drawn < ORDER_COMMANDS_MAX);
	memset(entry, 0, sizeof(*entry));
	entry->ticket = ticket;
	entry->command = command;
	entry->speculative = command->kind == QUIRE_COMMAND_SUBMIT &&
	                     (command->step->flags & QUIRE_STEP_SPECULATIVE) != 0;
	entry->base = entry->speculative ? order_next_base(order) : -1;
	entry->position = ++order->position;
	if (!entry->speculative)
		order->last_other = entry->position;
	order->drawn++;
}

/* ------------------------------------------------------------------ fates */

static void give_back(struct model_entry *entry)
{
	free(entry->image);
	free(entry->reads);
	entry->image = entry->reads = NULL;
}

/* It never was: also in what it answers. */
static void end_as_abandoned(struct model_entry *entry)
{
	give_back(entry);
	memset(&entry->refusal, 0, sizeof(entry->refusal));
	entry->refusal.status = QUIRE_ABANDONED;
	entry->need = entry->pages_taken = 0;
	entry->step = 0;
}

/* A step and all that rest on it. */
static void abandon(struct model_order *order, int32_t i)
{
	order->entries[i].fate = FATE_ABANDONED;
	if (i < order->followed)
		end_as_abandoned(&order->entries[i]);
	for (int32_t above = i + 1; above < order->drawn; above++)
		if (order->entries[above].base == i &&
		    order->entries[above].fate != FATE_ABANDONED)
			abandon(order, above);
}

/* Back to the state before the lowest held step that is abandoned. */
static void take_back(struct model_order *order)
{
	int32_t lowest = 0;

	while (lowest < order->num_held &&
	       order->entries[order->held[lowest].entry].fate != FATE_ABANDONED)
		lowest++;
	if (lowest == order->num_held)
		return;
	order->model = *order->held[lowest].before;
	for (int32_t i = lowest; i < order->num_held; i++) {
		REQUIRE(order->entries[order->held[i].entry].fate == FATE_ABANDONED);
		free(order->held[i].before);
	}
	order->num_held = lowest;
}

/* Held steps take their place, from the lowest up, as far as they are promoted. */
static void promote_held(struct model_order *order)
{
	while (order->num_held > 0 &&
	       order->entries[order->held[0].entry].fate == FATE_PROMOTED) {
		free(order->held[0].before);
		order->num_held--;
		memmove(order->held, order->held + 1,
		        sizeof(order->held[0]) * (size_t)order->num_held);
		show(order, order->num_held > 0 ? order->held[0].before : &order->model);
	}
}

bool order_resolve(struct model_order *order, enum quire_command_kind kind,
                   uint64_t ticket)
{
	int32_t i = order_find(order, ticket);

	if (i < 0 || !is_open(&order->entries[i]))
		return false;
	order->position++;
	if (kind == QUIRE_COMMAND_PROMOTE)
		order->entries[i].fate = FATE_PROMOTED;
	else
		abandon(order, i);
	take_back(order);
	promote_held(order);
	return true;
}

/* ------------------------------------------------------------------ turns */

bool order_is_doomed(const struct model_order *order)
{
	const struct model_entry *entry = &order->entries[order->followed];

	if (entry->fate == FATE_ABANDONED)
		return true;
	return entry->base >= 0 && order->entries[entry->base].refusal.status != QUIRE_OK;
}

bool order_is_parked(const struct model_order *order)
{
	return order->num_held > 0 && order->entries[order->followed].base < 0 &&
	       !order_is_doomed(order);
}

void order_follow(struct model_order *order, bool again)
{
	struct model_entry *entry = &order->entries[order->followed];
	struct model_answer *answer = &order->answer;
	struct model *before = NULL;

	REQUIRE(order->followed < order->drawn);
	REQUIRE(!order_is_parked(order));
	if (order_is_doomed(order)) {
		order->followed++;
		end_as_abandoned(entry);
		return;
	}
	if (entry->speculative)
		before = copy_of(&order->model);
	model_apply(&order->model, entry->command, entry->ticket, again, answer);
	entry->refusal = answer->refusal;
	entry->need = answer->need;
	entry->owned = order->model.counts.pages_owned;
	entry->pages_taken = answer->pages_taken;
	entry->pages_released = answer->pages_released;
	entry->num_pre = answer->num_pre;
	entry->num_post = answer->num_post;
	entry->first_writes = answer->first_writes;
	entry->step = answer->step;
	order->followed++;
	if (answer->image.n > 0) {
		entry->image = image_copy(&answer->image);
		entry->reads = image_copy(&answer->reads);
	}
	if (!entry->speculative) {
		show(order, &order->model);
	} else if (answer->refusal.status == QUIRE_OK) {
		order->held[order->num_held].entry = order->followed - 1;
		order->held[order->num_held++].before = before;
		before = NULL;
		promote_held(order);
	}
	free(before);
}
