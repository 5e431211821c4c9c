/* SPDX-License-Identifier: MIT */
/* Pages on their way between pool, stash and executor, and the steps that are held. */
#include "config.h"

#include "runtime/refuse_impl.h"
#include "runtime/runtime_impl.h"

#include <quire/runtime/assert.h>

#include <string.h>

/* ------------------------------------------------------------ towards the executor */

static void push(struct quire_runtime *rt, const struct quire_entry *entry)
{
	struct quire_entries *entries = &rt->entries;
	uint64_t tail = atomic_load_explicit(&entries->tail, memory_order_relaxed);

	QUIRE_ASSERT(quire_entries_room(entries) > 0);
	entries->ring[tail & entries->mask] = *entry;
	/* Relaxed, both: a time for whoever asks how long it has waited. */
	if (atomic_load_explicit(&entries->head, memory_order_relaxed) == tail)
		atomic_store_explicit(&rt->executor.pushed_ns,
		                      (uint64_t)quire_runtime_now(rt),
		                      memory_order_relaxed);
	/* Pairs with the acquire in the executor: entry, slot and pages are seen with
	 * it. */
	atomic_store_explicit(&entries->tail, tail + 1, memory_order_release);
	quire_wake_all(&rt->executor_wake);
}

#ifdef QUIRE_DEBUG
/* A page that goes back may not be named by a plan that is held. */
static void check_not_held(struct quire_runtime *rt, uint64_t end)
{
	const struct quire_planner *planner = &rt->planner;

	for (int32_t h = 0; h < planner->num_held; h++) {
		uint64_t slot = planner->held[h].step % (uint64_t)rt->config.depth;

		for (uint64_t i = rt->entries.released; i < end; i++)
			QUIRE_ASSERT(!quire_slot_names(
				&rt->slots[slot],
				rt->entries.pages[i & rt->entries.pages_mask]));
	}
}
#endif

void quire_push_release(struct quire_runtime *rt, uint64_t end)
{
	struct quire_entries *entries = &rt->entries;
	struct quire_entry entry = {
		.kind = QUIRE_ENTRY_RELEASE,
		.count = (int32_t)(end - entries->released),
	};

	if (entry.count == 0)
		return;
#ifdef QUIRE_DEBUG
	check_not_held(rt, end);
#endif
	entries->released = end;
	push(rt, &entry);
}

void quire_show_owned(struct quire_runtime *rt)
{
	struct quire_planner *planner = &rt->planner;
	int64_t owned = quire_ledger_owned(rt->ledger);

	atomic_store_explicit(&planner->owned, (uint64_t)owned, memory_order_relaxed);
	if (owned > planner->owned_peak) {
		planner->owned_peak = owned;
		atomic_store_explicit(&planner->pages_peak,
		                      (uint64_t)owned - rt->config.sink,
		                      memory_order_relaxed);
	}
}

/* ------------------------------------------------------------ the stash */

void quire_stash_put(struct quire_planner *planner, const int32_t *pages, int64_t n)
{
	for (int64_t i = n; i-- > 0;)
		planner->stash[planner->num_stash++] = pages[i];
	atomic_store_explicit(&planner->stashed, (uint64_t)planner->num_stash,
	                      memory_order_relaxed);
}

enum quire_status quire_stash_take(struct quire_runtime *rt, int32_t n, int32_t *pages,
                                   struct quire_refusal *refusal)
{
	struct quire_planner *planner = &rt->planner;
	int32_t stashed = n < planner->num_stash ? n : planner->num_stash;

	QUIRE_TRY(quire_pool_allocate(rt->pool, n - stashed, pages + stashed, refusal));
	for (int32_t i = 0; i < stashed; i++)
		pages[i] = planner->stash[--planner->num_stash];
	atomic_store_explicit(&planner->stashed, (uint64_t)planner->num_stash,
	                      memory_order_relaxed);
	quire_count(&planner->pages_taken, (uint64_t)(n - stashed));
	return QUIRE_OK;
}

/* ------------------------------------------------------------ held steps */

void quire_count_held(struct quire_planner *planner)
{
	atomic_store_explicit(&planner->steps_held, (uint64_t)planner->num_held,
	                      memory_order_relaxed);
}

void quire_hold(struct quire_runtime *rt, const struct quire_command_cell *cell,
                uint64_t tokens)
{
	struct quire_planner *planner = &rt->planner;
	struct quire_held *held = &planner->held[planner->num_held++];

	for (int32_t i = 0; i < planner->need; i++)
		planner->taken[planner->taken_end++ & planner->taken_mask] =
			planner->pages[i];
	*held = (struct quire_held){
		.ticket = cell->ticket,
		.step = ++planner->step,
		.notes_end = planner->notes_end,
		.taken_end = planner->taken_end,
		.staged_end = rt->entries.staged,
		.need = (int32_t)planner->need,
		.first_writes = planner->first_writes_in_hand,
		.tokens = tokens,
	};
}

struct quire_held quire_settle_oldest(struct quire_runtime *rt)
{
	struct quire_planner *planner = &rt->planner;
	const struct quire_held held = planner->held[0];

	planner->num_held--;
	memmove(planner->held, planner->held + 1,
	        (size_t)planner->num_held * sizeof(held));
	quire_settle(rt, held.notes_end);
	planner->taken_first = held.taken_end;
	if (planner->num_held == 0) { /* the same few cache lines for every step */
		planner->notes_first = planner->notes_end = 0;
		planner->taken_first = planner->taken_end = 0;
	}
	return held;
}

void quire_push_step(struct quire_runtime *rt, const struct quire_held *held)
{
	struct quire_planner *planner = &rt->planner;
	uint64_t slot = held->step % (uint64_t)rt->config.depth;
	const struct quire_plan *plan = &rt->slots[slot].plan;
	const struct quire_entry entry = {.kind = QUIRE_ENTRY_PLAN,
	                                  .slot = (int32_t)slot,
	                                  .ticket = held->ticket,
	                                  .step = held->step};

	quire_count(&planner->tokens, held->tokens);
	quire_count(&planner->first_writes, (uint64_t)held->first_writes);
	quire_count(&planner->copies,
	            (uint64_t)(plan->num_pre_copies + plan->num_post_copies));
	push(rt, &entry);
	quire_push_release(rt, held->staged_end);
}

void quire_take_back_newest(struct quire_runtime *rt)
{
	struct quire_planner *planner = &rt->planner;
	const struct quire_held *held = &planner->held[--planner->num_held];
	const struct quire_held *below = planner->num_held == 0 ? NULL : held - 1;

	quire_take_back(rt, below == NULL ? planner->notes_first : below->notes_end);
	/* Its lists keep their names, and their ends will be others. */
	quire_plan_forget(&rt->slots[held->step % (uint64_t)rt->config.depth].plan);
	planner->taken_end = below == NULL ? planner->taken_first : below->taken_end;
	for (int32_t i = 0; i < held->need; i++)
		planner->pages[i] = planner->taken[(planner->taken_end + (uint64_t)i) &
		                                   planner->taken_mask];
	quire_stash_put(planner, planner->pages, held->need);
	rt->entries.staged = below == NULL ? rt->entries.released : below->staged_end;
	planner->step--;
	atomic_store_explicit(&planner->steps, planner->step, memory_order_relaxed);
	quire_show_owned(rt);
}
