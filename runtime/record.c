/* SPDX-License-Identifier: MIT */
/* What the planner and the executor note for a recording. */
#include "config.h"

#include "runtime/record_impl.h"
#include "runtime/runtime_impl.h"

#include <string.h>

/* The recording, while commands are noted; otherwise NULL.  Relaxed: one that has just
 * ended takes another event in vain. */
static struct quire_recording *active(struct quire_runtime *rt)
{
	struct quire_recording *recording = quire_recording_of(rt);

	if (recording == NULL ||
	    !atomic_load_explicit(&recording->active, memory_order_relaxed))
		return NULL;
	return recording;
}

/* ------------------------------------------------------------------ planner */

/* The planner's, and a guess of the recording's thread. */
enum quire_overrun quire_record_overrun(struct quire_recording *recording, uint64_t head)
{
	const struct quire_record_notes *notes = &recording->notes;
	/* Pairs with the release in the recording's thread: it has read the cells. */
	uint64_t done = atomic_load_explicit(&recording->done_step, memory_order_acquire);
	/* Relaxed: the planner's own. */
	uint64_t end = atomic_load_explicit(&notes->tail, memory_order_relaxed);
	uint64_t step = quire_counted(&notes->newest_step);

	if (end - head + notes->event_max > notes->mask + 1)
		return QUIRE_OVERRUN_BYTES;
	return step + 1 < done + QUIRE_RECORD_STEPS ? QUIRE_OVERRUN_NONE
	                                            : QUIRE_OVERRUN_STEPS;
}

/* There is no room: does the planner go on without the recording? */
static bool is_over(struct quire_recording *recording, enum quire_overrun overrun)
{
	if (!recording->config.waits) {
		/* Relaxed: the next store is not. */
		atomic_store_explicit(&recording->overrun, overrun, memory_order_relaxed);
		/* Pairs with the acquire in look. */
		atomic_store_explicit(&recording->active, false, memory_order_release);
	} else {
		/* Pairs with the acquire in answer_planner. */
		atomic_store_explicit(&recording->is_waiting, true, memory_order_release);
	}
	quire_wake_all(&recording->wake);
	return !recording->config.waits;
}

/* The event's cache lines are on their way while the command is decided: nobody has used
 * them for a whole round of the ring.  A step is as large as the one before, as a rule. */
static void prefetch(const struct quire_record_notes *notes,
                     const struct quire_command_cell *cell)
{
	uint64_t bytes = cell->kind == QUIRE_COMMAND_SUBMIT
	                         ? notes->step_bytes
	                         : sizeof(struct quire_event_command);

	for (uint64_t at = 0; at < bytes; at += QUIRE_CACHE_LINE)
		__builtin_prefetch(notes->ring + ((notes->end + at) & notes->mask), 1);
}

bool quire_record_has_room(struct quire_runtime *rt,
                           const struct quire_command_cell *cell)
{
	struct quire_recording *recording = active(rt);
	struct quire_record_notes *notes;
	enum quire_overrun overrun;

	if (recording == NULL)
		return true;
	notes = &recording->notes;
	if (quire_record_overrun(recording, notes->head) != QUIRE_OVERRUN_NONE) {
		/* Pairs with the release in the recording's thread: the events were
		 * read. */
		notes->head =
			atomic_load_explicit(&recording->head, memory_order_acquire);
		overrun = quire_record_overrun(recording, notes->head);
		if (overrun != QUIRE_OVERRUN_NONE)
			return is_over(recording, overrun);
	}
	prefetch(notes, cell);
	return true;
}

/* Room for an event of so many bytes at most, in one piece. */
static void *event_begin(struct quire_record_notes *notes, uint64_t bytes, uint32_t kind)
{
	uint64_t place = notes->end & notes->mask;
	uint64_t left = notes->mask + 1 - place;
	struct quire_event_head *head = (struct quire_event_head *)(notes->ring + place);

	if (left < bytes) {
		*head = (struct quire_event_head){.bytes = (uint32_t)left,
		                                  .kind = QUIRE_EVENT_SKIP};
		notes->end += left;
		head = (struct quire_event_head *)notes->ring;
	}
	head->kind = kind;
	return head;
}

static void event_end(struct quire_recording *recording, struct quire_event_head *head,
                      const char *end)
{
	struct quire_record_notes *notes = &recording->notes;
	uint64_t quarter = (notes->mask + 1) / 4;
	uint64_t before = atomic_load_explicit(&notes->tail, memory_order_relaxed);

	head->bytes = (uint32_t)quire_event_align((uint64_t)(end - (char *)head));
	notes->end += head->bytes;
	/* Pairs with the acquire in the recording's thread. */
	atomic_store_explicit(&notes->tail, notes->end, memory_order_release);
	if (((before ^ notes->end) & ~(quarter - 1)) != 0)
		quire_wake_all(&recording->wake);
}

/* What refused the command is not in a trace: work, a function, events, flags. */
static bool is_outside(const struct quire_refusal *refusal)
{
	static const char *const outside[] = {"work", "run", "wait_event", "record_event",
	                                      "flags"};

	if (refusal->status != QUIRE_INVALID)
		return false;
	for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++) {
		size_t length = strlen(outside[i]);

		if (strncmp(refusal->what, outside[i], length) == 0 &&
		    refusal->what[length] == ':')
			return true;
	}
	return false;
}

static uint32_t span_label(const struct quire_segment_in *segment)
{
	return (uint32_t)segment->span * QUIRE_LABELS_MAX + (uint32_t)segment->label;
}

/* Ids that do not fit into 4 bytes, and spans that differ: both are found on the way. */
static char *note_segments(const struct quire_command_cell *cell,
                           struct quire_event_command *event, char *start)
{
	const struct quire_segment_in *from = cell->segments + cell->num_continued;
	int32_t n = cell->num_segments - cell->num_continued;
	struct quire_event_segments to = quire_event_columns(start, n, sizeof(uint32_t));
	uint32_t *ids = to.request, first = n > 0 ? span_label(from) : 0, other = 0;
	uint32_t misfit = 0;
	uint64_t high = 0;

	for (int32_t i = 0; i < n; i++) {
		to.at[i] = from[i].at;
		ids[i] = (uint32_t)from[i].request;
		high |= from[i].request >> 32;
		other |= span_label(&from[i]) ^ first;
		misfit |= (uint32_t)from[i].span > QUIRE_TOKENS_MAX;
	}
	event->num_continued = cell->num_continued;
	event->span_label = first;
	event->is_misfit = misfit != 0;
	event->is_uniform = other == 0;
	event->is_wide = high != 0;
	if (event->is_wide) {
		to = quire_event_columns(start, n, sizeof(uint64_t));
		for (int32_t i = 0; i < n; i++)
			((uint64_t *)to.request)[i] = from[i].request;
	}
	if (event->is_uniform)
		return (char *)to.span_label;
	for (int32_t i = 0; i < n; i++)
		to.span_label[i] = span_label(&from[i]);
	return (char *)(to.span_label + n);
}

static void note_forks(const struct quire_forks_in *from, struct quire_event_fork *to)
{
	for (int32_t i = 0; i < from->num; i++)
		to[i] = (struct quire_event_fork){from->source[i], from->target[i]};
}

/* A step's lists, behind its event; answers where they end. */
static char *note_lists(struct quire_runtime *rt, const struct quire_command_cell *cell,
                        struct quire_event_command *event)
{
	const struct quire_event_counts *counts = &event->counts;
	struct quire_event_lists lists = quire_event_lists(event);

	if (counts->pages > 0)
		memcpy(lists.pages, rt->planner.pages,
		       (size_t)counts->pages * sizeof(*lists.pages));
	if (counts->combined > 0)
		memcpy(lists.combined, cell->combined,
		       (size_t)counts->combined * sizeof(*lists.combined));
	note_forks(&cell->pre_forks, lists.forks);
	note_forks(&cell->post_forks, lists.forks + counts->pre_forks);
	return note_segments(cell, event, lists.segments);
}

/* Relaxed, all: a picture for people, of this moment but for what the executor gives
 * meanwhile. */
static struct quire_event_numbers count_pages(struct quire_runtime *rt,
                                              const struct quire_outcome *outcome)
{
	return (struct quire_event_numbers){
		.owned = quire_ledger_owned(rt->ledger),
		.taken = outcome->pages_taken,
		.free = rt->num_pages - (int64_t)quire_counted(&rt->planner.pages_taken) +
	                (int64_t)quire_counted(&rt->numbers.pages_given) -
	                rt->config.sink + rt->planner.num_stash,
	};
}

void quire_record_fate(struct quire_runtime *rt, uint64_t ticket,
                       enum quire_event_kind kind)
{
	struct quire_recording *recording = active(rt);
	struct quire_ticket_cell *cell = quire_ticket_cell(&rt->tickets, ticket);
	struct quire_event_fate *event;

	if (recording == NULL)
		return;
	event = event_begin(&recording->notes, sizeof(*event), kind);
	event->ticket = ticket;
	/* With the runtime a step ends though none was given.  Relaxed: the fate was
	 * seen. */
	event->given_ns =
		kind == QUIRE_EVENT_FAILED
			? 0
			: atomic_load_explicit(&cell->fate_ns, memory_order_relaxed);
	event->decided_ns = quire_runtime_now(rt);
	event->is_told = cell->is_promote_noted;
	event_end(recording, &event->head, (char *)(event + 1));
}

static void note_promote(struct quire_runtime *rt, uint64_t ticket)
{
	struct quire_ticket_cell *cell = quire_ticket_cell(&rt->tickets, ticket);

	if (cell->is_promote_noted)
		return;
	quire_record_fate(rt, ticket, QUIRE_EVENT_PROMOTED_ABOVE);
	cell->is_promote_noted = true;
}

/* What a speculative step rests on is the newest one whose fate was open.  So those
 * between the two, held or refused, had been promoted: a trace says so before the
 * step. */
static void note_promotes_below(struct quire_runtime *rt,
                                const struct quire_command_cell *cell)
{
	const struct quire_planner *planner = &rt->planner;

	quire_ticket_cell(&rt->tickets, cell->ticket)->is_promote_noted = false;
	for (int32_t i = 0; cell->base != 0 && i < planner->num_held; i++)
		if (planner->held[i].ticket > cell->base &&
		    planner->held[i].ticket < cell->ticket)
			note_promote(rt, planner->held[i].ticket);
	for (int32_t i = 0; cell->base != 0 && i < planner->num_refused; i++)
		if (planner->refused[i].ticket > cell->base &&
		    planner->refused[i].ticket < cell->ticket &&
		    planner->refused[i].fate_position == 0)
			note_promote(rt, planner->refused[i].ticket);
}

static struct quire_event_counts count_lists(const struct quire_recording *recording,
                                             const struct quire_command_cell *cell,
                                             const struct quire_outcome *outcome)
{
	bool took = outcome->refusal.status == QUIRE_OK && recording->config.pages;

	if (cell->kind != QUIRE_COMMAND_SUBMIT)
		return (struct quire_event_counts){.segments = 0};
	return (struct quire_event_counts){
		.segments = cell->num_segments,
		.pages = took ? outcome->pages_taken : 0,
		.combined = cell->num_combined,
		.pre_forks = cell->pre_forks.num,
		.post_forks = cell->post_forks.num,
	};
}

/* Field by field: a compiler clears the whole of a struct that is given by a list, which
 * took half the time of all this.  What only a step has is of an older one in the cell of
 * another command. */
static void note_command(struct quire_runtime *rt, const struct quire_command_cell *cell,
                         const struct quire_outcome *outcome,
                         struct quire_event_command *event)
{
	event->ticket = cell->ticket;
	event->request = cell->request;
	event->base = cell->base;
	event->step = outcome->step;
	event->client = cell->client;
	event->given_ns = cell->given_ns;
	event->started_ns = rt->planner.move_ns;
	event->decided_ns = quire_runtime_now(rt);
	event->detail = quire_trace_detail(&outcome->refusal);
	event->kind = cell->kind;
	event->status = outcome->refusal.status;
	event->label = cell->label;
	event->keep_pages = cell->keep_pages;
	event->tokens = cell->tokens;
	event->flags = cell->flags;
	event->bucket_tokens = cell->bucket_tokens;
	event->bucket_rows = cell->bucket_rows;
	event->is_misfit = false;
	event->is_outside = is_outside(&outcome->refusal);
	event->fate = 0;
}

void quire_record_command(struct quire_runtime *rt, const struct quire_command_cell *cell,
                          const struct quire_outcome *outcome, bool is_final)
{
	struct quire_recording *recording = active(rt);
	struct quire_event_counts counts;
	struct quire_event_command *event;
	char *end;

	if (recording == NULL)
		return;
	if (cell->kind == QUIRE_COMMAND_SUBMIT)
		note_promotes_below(rt, cell);
	counts = count_lists(recording, cell, outcome);
	event = event_begin(&recording->notes, quire_event_bytes(&counts),
	                    QUIRE_EVENT_COMMAND);
	note_command(rt, cell, outcome, event);
	event->counts = counts;
	event->is_open = !is_final;
	end = (char *)(event + 1);
	if (recording->has_timeline)
		event->numbers = count_pages(rt, outcome);
	if (cell->kind == QUIRE_COMMAND_SUBMIT)
		end = note_lists(rt, cell, event);
	if (outcome->step != 0)
		atomic_store_explicit(&recording->notes.newest_step, outcome->step,
		                      memory_order_relaxed);
	event_end(recording, &event->head, end);
	if (cell->kind == QUIRE_COMMAND_SUBMIT)
		recording->notes.step_bytes = event->head.bytes;
	/* A quarter of the cells is as good a reason as a quarter of the ring. */
	if (outcome->step != 0 && outcome->step % (QUIRE_RECORD_STEPS / 4) == 0)
		quire_wake_all(&recording->wake);
	/* It was abandoned before it was planned. */
	if (is_final && outcome->refusal.status == QUIRE_ABANDONED)
		quire_record_fate(rt, cell->ticket, QUIRE_EVENT_ABANDONED);
}

static const char *what_waits(const struct quire_planner *planner)
{
	if (planner->wait_counter == &planner->page_wait_ns)
		return "wait for pages";
	return planner->wait_counter == &planner->slot_wait_ns ? "wait for a slot"
	                                                       : "wait for the recording";
}

/* Any number of waits may come before the planner asks for room again: one that does not
 * fit is left out. */
void quire_record_wait(struct quire_runtime *rt)
{
	struct quire_recording *recording = active(rt);
	const struct quire_planner *planner = &rt->planner;
	struct quire_event_wait *event;

	if (recording == NULL || !recording->has_timeline ||
	    quire_record_overrun(recording, recording->notes.head) != QUIRE_OVERRUN_NONE)
		return;
	event = event_begin(&recording->notes, sizeof(*event), QUIRE_EVENT_WAITED);
	event->from_ns = planner->wait_since_ns;
	event->to_ns = planner->move_ns;
	event->what = what_waits(planner);
	event_end(recording, &event->head, (char *)(event + 1));
}

/* ------------------------------------------------------------------ executor */

static struct quire_record_step *step_cell(struct quire_recording *recording,
                                           uint64_t step)
{
	return &recording->steps[step % QUIRE_RECORD_STEPS];
}

bool quire_record_digests(struct quire_runtime *rt)
{
	const struct quire_recording *recording = active(rt);

	return recording != NULL && recording->config.digests;
}

void quire_record_issued(struct quire_runtime *rt, const struct quire_entry *entry)
{
	struct quire_recording *recording = active(rt);
	struct quire_record_step *cell;

	if (recording == NULL)
		return;
	cell = step_cell(recording, entry->step);
	cell->digest = atomic_load_explicit(
		&quire_ticket_cell(&rt->tickets, entry->ticket)->digest,
		memory_order_relaxed); /* this thread's own */
	cell->started_ns = (int64_t)quire_counted(&rt->executor.taken_ns);
	cell->issued_ns = quire_runtime_now(rt);
	cell->has_run = quire_runtime_failed(rt) == NULL;
	/* Pairs with the acquire in the recording's thread. */
	atomic_store_explicit(&cell->issued, entry->ticket, memory_order_release);
}

void quire_record_retired(struct quire_runtime *rt, uint64_t step, uint64_t ticket)
{
	struct quire_recording *recording = active(rt);
	struct quire_record_step *cell;

	if (recording == NULL || !recording->has_timeline)
		return;
	cell = step_cell(recording, step);
	cell->retired_ns = quire_runtime_now(rt);
	/* Pairs with the acquire in the recording's thread. */
	atomic_store_explicit(&cell->retired, ticket, memory_order_release);
}
