/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/runtime_impl.h"

#include <quire/runtime/assert.h>

/*
 * Carrying a step out, and taking it back.
 *
 * A step changes streams' states and the owners of pages.  A note keeps each state from
 * before, the block of its list included; so taking back puts states back, and the owners
 * follow from the difference between the two lists.
 */

#define PREFETCH_ROWS 8

/* ------------------------------------------------------------------ pages */

void quire_give_up(struct quire_runtime *rt, const int32_t *pages, int64_t n)
{
	struct quire_entries *entries = &rt->entries;
	struct quire_refusal refusal;
	int64_t freed = 0;
	enum quire_status status = quire_ledger_release(
		rt->ledger, pages, n, rt->planner.freed, &freed, &refusal);

	QUIRE_ASSERT(status == QUIRE_OK);
	for (int64_t i = 0; i < freed; i++)
		entries->pages[entries->staged++ & entries->pages_mask] =
			rt->planner.freed[i];
}

/* The next pages of those taken for the step. */
static const int32_t *next_pages(struct quire_planner *planner, int32_t n)
{
	const int32_t *pages = planner->pages + planner->given;

	planner->given += n;
	QUIRE_ASSERT(planner->given <= planner->need);
	return pages;
}

/*
 * A copy of the tokens of one page to another.  A source that the list's earlier copies
 * fill stands for where its bytes are before the list: so one batch that reads all
 * sources first is right.
 */
static void add_copy(struct quire_planner *planner, struct quire_plan *plan,
                     int32_t *count, int32_t source, int32_t target, int32_t end)
{
	int32_t first = count == &plan->num_pre_copies ? 0 : plan->num_pre_copies;
	int32_t place = first + (*count)++;
	int32_t earlier = planner->copy_of[source];

	if (earlier >= first && earlier < place && plan->copy_target[earlier] == source)
		source = plan->copy_source[earlier];
	planner->copy_of[target] = place;
	plan->copy_source[place] = source;
	plan->copy_target[place] = target;
	plan->copy_end[place] = end;
}

/* ------------------------------------------------------------------ notes */

/* Remember a stream before the step changes it for the first time. */
static struct quire_note *note_stream(struct quire_planner *planner, uint64_t ticket,
                                      struct quire_request *request,
                                      struct quire_stream *stream, bool created)
{
	struct quire_note *note = stream->note;

	if (note != NULL && note->ticket == ticket)
		return note;
	note = &planner->notes[planner->notes_end++ & planner->notes_mask];
	*note = (struct quire_note){
		.request = request,
		.stream = stream,
		.older = stream->note,
		.before = stream->now,
		.ticket = ticket,
		.created = created,
	};
	stream->note = note;
	return note;
}

/* A request's stream of a label, made when it is not there, with its note. */
static struct quire_stream *stream_to_change(struct quire_runtime *rt, uint64_t ticket,
                                             struct quire_request *request, int32_t label,
                                             const struct quire_note **note_out)
{
	struct quire_stream *stream = quire_request_find(request, label);
	bool created = stream == NULL;

	if (created)
		stream = quire_request_add(&rt->registry, request, label);
	QUIRE_ASSERT(stream != NULL); /* the draft found room */
	*note_out = note_stream(&rt->planner, ticket, request, stream, created);
	return stream;
}

/* A stream has changed, once however often the step does it.  @note: of the step, if it
 * has one. */
static void count_change(struct quire_runtime *rt, struct quire_stream *stream,
                         const struct quire_note *note)
{
	stream->now.generation =
		1 + (note == NULL ? stream->now.generation : note->before.generation);
	stream->now.step = rt->planner.step + 1;
}

/* ------------------------------------------------------------------ forks, writes */

static void fork_stream(struct quire_runtime *rt, const struct quire_command_cell *cell,
                        struct quire_request *request, int32_t source_label,
                        int32_t target_label, struct quire_plan *plan, int32_t *count)
{
	struct quire_planner *planner = &rt->planner;
	const struct quire_stream *source = quire_request_find(request, source_label);
	struct quire_stream *target;
	int32_t ps = rt->page_size, shared, n;
	const struct quire_note *note;
	const int32_t *taken;
	enum quire_status status;

	if (source == NULL)
		return;
	target = stream_to_change(rt, cell->ticket, request, target_label, &note);
	shared = quire_fork_shares(rt, cell, source->now.length);
	n = quire_pages_of(&rt->paging, source->now.length);
	taken = next_pages(planner, n - shared);
	for (int32_t i = 0; i < shared; i++)
		planner->list[i] = source->now.pages[i];
	for (int32_t i = shared; i < n; i++) {
		int32_t left = source->now.length - i * ps;

		planner->list[i] = taken[i - shared];
		add_copy(planner, plan, count, source->now.pages[i], planner->list[i],
		         left < ps ? left : ps);
	}
	status = quire_ledger_retain(rt->ledger, planner->list, shared, NULL);
	QUIRE_ASSERT(status == QUIRE_OK);
	quire_give_up(rt, target->now.pages, target->now.num_pages);
	quire_stream_replace(&rt->registry, target, planner->list, n, n,
	                     note->before.pages);
	target->now.length = source->now.length;
	target->now.released = source->now.released;
	count_change(rt, target, note);
}

static void fork_all(struct quire_runtime *rt, const struct quire_command_cell *cell,
                     const struct quire_forks_in *forks, struct quire_plan *plan,
                     int32_t *count)
{
	for (int32_t i = 0; i < forks->num; i++)
		for (int32_t r = 0; r < rt->planner.num_batch; r++)
			fork_stream(rt, cell, rt->planner.batch[r], forks->source[i],
			            forks->target[i], plan, count);
}

/* The first page that a row writes has another owner: the stream gets a copy of its
 * own. */
static void copy_first(struct quire_runtime *rt, struct quire_row *row,
                       struct quire_plan *plan)
{
	struct quire_stream *stream = row->stream;
	const int32_t *kept = stream->note->before.pages;
	int32_t place = quire_page_of(&rt->paging, row->length);
	int32_t old = stream->now.pages[place];
	int32_t own = *next_pages(&rt->planner, 1);

	QUIRE_ASSERT(quire_ledger_owners(rt->ledger, old) > 1);
	add_copy(&rt->planner, plan, &plan->num_pre_copies, old, own,
	         row->length - place * rt->page_size);
	if (stream->now.pages == kept)
		quire_stream_replace(&rt->registry, stream, kept, stream->now.num_pages,
		                     (int64_t)stream->now.num_pages + row->need - 1,
		                     kept);
	/* A new block, but a reader may still be lost in it: see read_shown. */
	__atomic_store_n(&stream->now.pages[place], own, __ATOMIC_RELEASE);
	quire_stream_rename_list(&rt->registry, stream);
	quire_give_up(rt, &old, 1);
	rt->planner.first_writes_in_hand++;
}

/* Must the step be undone as a whole, should it come to that, or be shown as a whole? */
static bool needs_notes(const struct quire_runtime *rt,
                        const struct quire_command_cell *cell)
{
	return (cell->flags & QUIRE_STEP_SPECULATIVE) != 0 ||
	       rt->config.on_plan != NULL ||
	       cell->pre_forks.num + cell->post_forks.num > 0;
}

/* Pages for a row's span; @note: of its stream, NULL only if the list stays in its
 * block. */
static void grow(struct quire_runtime *rt, struct quire_row *row,
                 const struct quire_note *note, struct quire_plan *plan)
{
	int32_t n = row->need - row->first_write;

	if (row->first_write)
		copy_first(rt, row, plan);
	if (n > 0)
		quire_stream_append(&rt->registry, row->stream,
		                    next_pages(&rt->planner, n), n,
		                    note == NULL ? NULL : note->before.pages);
}

/* Does the row's list move to another block? */
static bool moves(const struct quire_runtime *rt, const struct quire_row *row)
{
	const struct quire_stream_state *now = &row->stream->now;

	return row->first_write ||
	       (int64_t)now->num_pages + row->need >
	               quire_list_room(&rt->registry.lists, now->size);
}

/* A row that writes: its pages, its length. */
static void extend(struct quire_runtime *rt, const struct quire_command_cell *cell,
                   const struct quire_segment_in *segment, struct quire_row *row,
                   struct quire_plan *plan, bool notes)
{
	const struct quire_note *note = NULL;

	if (row->stream == NULL)
		row->stream = stream_to_change(rt, cell->ticket, row->request,
		                               segment->label, &note);
	else if (notes || (row->need > 0 && moves(rt, row)))
		note = note_stream(&rt->planner, cell->ticket, row->request, row->stream,
		                   false);
	if (row->need > 0)
		grow(rt, row, note, plan);
	if ((cell->flags & QUIRE_STEP_NO_COMMIT) == 0)
		row->stream->now.length += segment->span;
	count_change(rt, row->stream, note);
	if (note == NULL)
		quire_stream_show(&rt->registry, row->request, row->stream,
		                  &row->stream->now);
}

#ifdef QUIRE_DEBUG
/* A page is written only by its one owner. */
static void check_owners(const struct quire_runtime *rt,
                         const struct quire_segment_in *segment,
                         const struct quire_row *row)
{
	int32_t end = quire_pages_of(&rt->paging, row->length + segment->span);

	for (int32_t i = row->length / rt->page_size; segment->span > 0 && i < end; i++)
		QUIRE_ASSERT(quire_ledger_owners(rt->ledger, row->stream->now.pages[i]) ==
		             1);
}
#endif

static uint64_t extend_all(struct quire_runtime *rt,
                           const struct quire_command_cell *cell, struct quire_plan *plan)
{
	struct quire_planner *planner = &rt->planner;
	bool notes = needs_notes(rt, cell);
	uint64_t tokens = 0;

	for (int32_t i = 0; i < cell->num_segments; i++) {
		const struct quire_segment_in *segment = &cell->segments[i];
		struct quire_row *row = &planner->rows[i];

		if (i + PREFETCH_ROWS < cell->num_segments)
			quire_stream_prefetch(&rt->registry,
			                      planner->rows[i + PREFETCH_ROWS].stream);
		if (row->stream == NULL) /* a pre-fork may have made it by now */
			row->stream = quire_request_find(row->request, segment->label);
		if (segment->span > 0)
			extend(rt, cell, segment, row, plan, notes);
		tokens += (uint64_t)segment->span;
		planner->views[i] = (struct quire_view){
			.request = segment->request,
			.tag = segment->tag,
			.label = segment->label,
			.span = segment->span,
			.length = row->length + segment->span,
			.released = row->stream->now.released,
			.pages = row->stream->now.pages,
			.list = row->stream->now.list,
		};
	}
	return tokens;
}

uint64_t quire_carry_out(struct quire_runtime *rt, const struct quire_command_cell *cell,
                         struct quire_slot *slot)
{
	struct quire_planner *planner = &rt->planner;
	struct quire_plan *plan = &slot->plan;
	uint64_t tokens;

	planner->given = planner->first_writes_in_hand = 0;
	plan->num_pre_copies = plan->num_post_copies = 0;
	fork_all(rt, cell, &cell->pre_forks, plan, &plan->num_pre_copies);
	tokens = extend_all(rt, cell, plan);
#ifdef QUIRE_DEBUG
	for (int32_t i = 0; i < cell->num_segments; i++)
		check_owners(rt, &cell->segments[i], &planner->rows[i]);
#endif
	quire_slot_fill(rt, cell, slot);
	fork_all(rt, cell, &cell->post_forks, plan, &plan->num_post_copies);
	quire_slot_finish(slot, rt->page_size);
	QUIRE_ASSERT(planner->given == planner->need);
	return tokens;
}

/* ------------------------------------------------------------------ back, or for good */

/* Where two lists of a stream differ, the names go from @from to @to.  A list that still
 * lies in its block has only grown behind the other. */
static void give_names_back(struct quire_runtime *rt, const struct quire_note *note,
                            bool regain)
{
	const struct quire_stream_state *to = &note->before;
	const struct quire_stream_state *from = &note->stream->now;
	int32_t n = regain ? to->num_pages : from->num_pages;

	for (int32_t i = 0; i < n; i++) {
		int32_t old = i < to->num_pages ? to->pages[i] : -1;
		int32_t new = i < from->num_pages ? from->pages[i] : -1;
		int64_t freed;
		enum quire_status status;

		if (old == new)
			continue;
		if (!regain)
			status = quire_ledger_release(rt->ledger, &new, 1,
			                              rt->planner.freed, &freed, NULL);
		else if (quire_ledger_owners(rt->ledger, old) == 0)
			status = quire_ledger_acquire(rt->ledger, &old, 1, NULL);
		else
			status = quire_ledger_retain(rt->ledger, &old, 1, NULL);
		QUIRE_ASSERT(status == QUIRE_OK);
	}
}

void quire_take_back(struct quire_runtime *rt, uint64_t notes_first)
{
	struct quire_planner *planner = &rt->planner;

	/* Nobody's last name goes while it still has another to come. */
	for (uint64_t i = notes_first; i < planner->notes_end; i++)
		give_names_back(rt, &planner->notes[i & planner->notes_mask], true);
	for (uint64_t i = notes_first; i < planner->notes_end; i++)
		give_names_back(rt, &planner->notes[i & planner->notes_mask], false);
	while (planner->notes_end > notes_first) {
		struct quire_note *note =
			&planner->notes[--planner->notes_end & planner->notes_mask];
		struct quire_stream *stream = note->stream;

		if (stream->now.pages != note->before.pages)
			quire_list_free(&rt->registry.lists, stream->now.pages,
			                stream->now.size);
		stream->now = note->before;
		stream->note = note->older;
		if (note->created)
			note->request->num_streams--;
	}
}

void quire_settle(struct quire_runtime *rt, uint64_t notes_end)
{
	struct quire_planner *planner = &rt->planner;

	for (; planner->notes_first < notes_end; planner->notes_first++) {
		struct quire_note *note =
			&planner->notes[planner->notes_first & planner->notes_mask];
		struct quire_note *newer = note->stream->note;
		const struct quire_stream_state *after = &note->stream->now;

		if (newer == note) {
			note->stream->note = NULL;
		} else {
			while (newer->older != note)
				newer = newer->older;
			newer->older = NULL;
			after = &newer->before;
		}
		quire_stream_show(&rt->registry, note->request, note->stream, after);
		if (after->pages != note->before.pages)
			quire_list_free(&rt->registry.lists, note->before.pages,
			                note->before.size);
	}
}
