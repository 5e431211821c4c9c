/* SPDX-License-Identifier: MIT */
/*
 * From events to lines.  An event is looked at when it comes: fates are written into the
 * events of the steps that they are of.  It becomes a line, and its room is given back,
 * once it and all before it are final; of a step that was planned that is when its digest
 * is there.
 */
#include "config.h"

#include "runtime/record_impl.h"
#include "runtime/refuse_impl.h"
#include "runtime/runtime_impl.h"

#include <quire/runtime/assert.h>

#include <string.h>

static struct quire_event_head *event_at(const struct quire_recording *recording,
                                         uint64_t place)
{
	return (struct quire_event_head *)(recording->notes.ring +
	                                   (place & recording->notes.mask));
}

static struct quire_event_command *command_at(const struct quire_recording *recording,
                                              uint64_t place)
{
	return (struct quire_event_command *)event_at(recording, place);
}

uint64_t quire_record_blocked(const struct quire_recording *recording)
{
	/* Relaxed: this thread's own. */
	uint64_t head = atomic_load_explicit(&recording->head, memory_order_relaxed);

	if (recording->num_open == 0 || recording->open[0] != head)
		return 0;
	return command_at(recording, head)->ticket;
}

/* ------------------------------------------------------------------ fates */

/* Is the event what a speculative step came to in the end? */
static bool is_fate(const struct quire_event_head *head)
{
	return head->kind == QUIRE_EVENT_PROMOTED ||
	       head->kind == QUIRE_EVENT_ABANDONED || head->kind == QUIRE_EVENT_FAILED;
}

/* A fate is that of one of the newest steps, as a rule.  One that was known when its step
 * was decided is in no list. */
static void close_fate(struct quire_recording *recording,
                       const struct quire_event_fate *fate)
{
	for (int32_t i = recording->num_open - 1; i >= 0; i--) {
		struct quire_event_command *event =
			command_at(recording, recording->open[i]);

		if (event->ticket != fate->ticket)
			continue;
		event->fate = (uint8_t)fate->head.kind;
		event->is_open = false;
		recording->num_open--;
		memmove(recording->open + i, recording->open + i + 1,
		        (size_t)(recording->num_open - i) * sizeof(*recording->open));
		return;
	}
}

/* What has come since the last look. */
static void look_at_new(struct quire_recording *recording)
{
	/* Pairs with the release in event_end. */
	uint64_t tail =
		atomic_load_explicit(&recording->notes.tail, memory_order_acquire);

	while (recording->seen != tail) {
		struct quire_event_head *head = event_at(recording, recording->seen);

		if (head->kind == QUIRE_EVENT_COMMAND &&
		    command_at(recording, recording->seen)->is_open) {
			QUIRE_ASSERT(recording->num_open < recording->open_max);
			recording->open[recording->num_open++] = recording->seen;
		} else if (is_fate(head)) {
			close_fate(recording, (struct quire_event_fate *)head);
		}
		recording->seen += head->bytes;
	}
}

/* ------------------------------------------------------------------ lines */

/* The final status of a command. */
static enum quire_status status_of(const struct quire_recording *recording,
                                   const struct quire_event_command *event)
{
	if (event->fate == QUIRE_EVENT_ABANDONED)
		return QUIRE_ABANDONED;
	if (event->fate == QUIRE_EVENT_FAILED)
		return quire_runtime_failed(recording->runtime)->status;
	return (enum quire_status)event->status;
}

static const char *label_name(const struct quire_recording *recording, uint32_t label)
{
	return recording->runtime->commands.labels.names[label];
}

static void fill_segment(struct quire_recording *recording, int32_t i,
                         const struct quire_segment_in *segment)
{
	recording->rows[i] = *segment;
	recording->segments[i] = (struct quire_segment){
		.request = segment->request,
		.label = label_name(recording, (uint32_t)segment->label),
		.span = segment->span,
		.at = segment->at,
	};
}

/* Of every step, in order: those that go on need the ones before. */
static void fill_segments(struct quire_recording *recording,
                          const struct quire_event_command *event, char *start)
{
	int32_t continued = event->num_continued, n = event->counts.segments - continued;
	const struct quire_event_segments from = quire_event_columns(
		start, n, event->is_wide ? sizeof(uint64_t) : sizeof(uint32_t));
	struct quire_segment_in segment;

	for (int32_t i = 0; i < continued; i++) {
		segment = recording->rows[i];
		segment.at = quire_segment_next_at(&segment);
		fill_segment(recording, i, &segment);
	}
	for (int32_t i = 0; i < n; i++) {
		uint32_t span_label =
			event->is_uniform ? event->span_label : from.span_label[i];

		segment = (struct quire_segment_in){
			.request = event->is_wide ? ((const uint64_t *)from.request)[i]
		                                  : ((const uint32_t *)from.request)[i],
			.label = (int32_t)(span_label % QUIRE_LABELS_MAX),
			.span = (int32_t)(span_label / QUIRE_LABELS_MAX),
			.at = from.at[i],
		};
		fill_segment(recording, continued + i, &segment);
	}
}

static void fill_combined(struct quire_recording *recording,
                          const struct quire_event_lists *lists, int32_t n)
{
	for (int32_t i = 0; i < n; i++) {
		const struct quire_combined_ids *from = &lists->combined[i];
		const char **labels = recording->combined_labels[i];

		for (int32_t k = 0; k < from->num_labels; k++)
			labels[k] = label_name(recording, (uint32_t)from->labels[k]);
		recording->combined[i] = (struct quire_combined){
			.name = label_name(recording, (uint32_t)from->name),
			.labels = labels,
			.num_labels = from->num_labels,
		};
	}
}

static void fill_forks(struct quire_recording *recording,
                       const struct quire_event_lists *lists, int32_t n)
{
	for (int32_t i = 0; i < n; i++)
		recording->forks[i] = (struct quire_fork){
			.source = label_name(recording, lists->forks[i].source),
			.target = label_name(recording, lists->forks[i].target),
		};
}

static void fill_step(struct quire_recording *recording,
                      const struct quire_event_command *event,
                      const struct quire_event_lists *lists, struct quire_step *step)
{
	const struct quire_event_counts *counts = &event->counts;

	fill_segments(recording, event, lists->segments);
	fill_combined(recording, lists, counts->combined);
	fill_forks(recording, lists, counts->pre_forks + counts->post_forks);
	*step = (struct quire_step){
		.segments = recording->segments,
		.num_segments = counts->segments,
		.combined = recording->combined,
		.num_combined = counts->combined,
		.pre_forks = recording->forks,
		.num_pre_forks = counts->pre_forks,
		.post_forks = recording->forks + counts->pre_forks,
		.num_post_forks = counts->post_forks,
		.bucket_tokens = event->bucket_tokens,
		.bucket_rows = event->bucket_rows,
		/* Those unknown are why it was refused. */
		.flags = event->flags & QUIRE_STEP_FLAGS,
	};
}

/* The cell of a step that was planned for good; NULL: it has not been issued. */
static const struct quire_record_step *issued_step(
	const struct quire_recording *recording, const struct quire_event_command *event)
{
	const struct quire_record_step *step =
		&recording->steps[event->step % QUIRE_RECORD_STEPS];

	/* Pairs with the release in quire_record_issued. */
	if (atomic_load_explicit(&step->issued, memory_order_acquire) != event->ticket)
		return NULL;
	return step;
}

static enum quire_status write_line(struct quire_recording *recording,
                                    const struct quire_trace_record *record,
                                    struct quire_refusal *refusal)
{
	QUIRE_TRY(quire_trace_write(recording->writer, record, refusal));
	quire_count(&recording->commands, 1);
	return QUIRE_OK;
}

/* What a trace has no words for was refused.  Its place in the order is another command's
 * that a trace says nothing wrong of: bases hang on that. */
static enum quire_status write_unspeakable(struct quire_recording *recording,
                                           struct quire_trace_record *record,
                                           struct quire_refusal *refusal)
{
	static const struct quire_segment nothing = {.at = QUIRE_AT_ANY};
	const struct quire_step stand_in = {
		.segments = &nothing,
		.num_segments = 1,
		.flags = record->has_base ? QUIRE_STEP_SPECULATIVE : 0};

	record->command.step = &stand_in;
	record->command.label = QUIRE_LABEL_MAIN;
	record->command.tokens = 0;
	record->outcome.is_outside = true;
	quire_count(&recording->left_out, 1);
	return write_line(recording, record, refusal);
}

/* A trace has no negative times: of a program's clock that goes back, 0. */
static int64_t since_start(const struct quire_recording *recording, int64_t at_ns)
{
	return at_ns > recording->start_ns ? at_ns - recording->start_ns : 0;
}

static void fill_record(const struct quire_recording *recording,
                        const struct quire_event_command *event,
                        const struct quire_record_step *step,
                        struct quire_trace_record *record)
{
	*record = (struct quire_trace_record){
		.id = event->ticket,
		.command = {.kind = (enum quire_command_kind)event->kind,
	                    .request = event->request,
	                    .label = label_name(recording, (uint32_t)event->label),
	                    .keep_pages = event->keep_pages,
	                    .tokens = event->tokens},
		.has_base = event->kind == QUIRE_COMMAND_SUBMIT &&
	                    (event->flags & QUIRE_STEP_SPECULATIVE) != 0,
		.base = event->base,
		.has_outcome = true,
		.outcome = {.status = status_of(recording, event),
	                    .is_outside = event->is_outside},
		.has_times = true,
		.times = {.given_ns = since_start(recording, event->given_ns),
	                  .decided_ns = since_start(recording, event->decided_ns),
	                  .issued_ns = -1},
	};
	if (event->fate == 0 || event->fate == QUIRE_EVENT_PROMOTED)
		record->outcome.detail = event->detail;
	if (step != NULL) {
		record->outcome.has_digest = recording->config.digests;
		record->outcome.digest = step->digest;
		if (step->has_run)
			record->times.issued_ns = since_start(recording, step->issued_ns);
	}
}

/* It took effect, so nothing can stand in its place: all behind it would be wrong. */
static enum quire_status refuse_unspeakable(const struct quire_event_command *event,
                                            struct quire_refusal *refusal)
{
	quire_refuse_what(refusal, QUIRE_FORMAT,
	                  "label: a trace has no words for one that is not UTF-8");
	refusal->ticket = event->ticket;
	return QUIRE_FORMAT;
}

static enum quire_status write_command(struct quire_recording *recording,
                                       struct quire_event_command *event,
                                       const struct quire_record_step *step,
                                       struct quire_refusal *refusal)
{
	const struct quire_event_lists lists = quire_event_lists(event);
	enum quire_status status = QUIRE_INVALID;
	struct quire_trace_record record;
	struct quire_step as_step;

	if (recording->timeline != NULL)
		quire_timeline_command(recording->timeline, event,
		                       status_of(recording, event),
		                       recording->runtime->num_pages);
	if (recording->writer == NULL)
		return QUIRE_OK;
	fill_record(recording, event, step, &record);
	if (event->kind == QUIRE_COMMAND_SUBMIT) {
		fill_step(recording, event, &lists, &as_step);
		record.command.step = &as_step;
	}
	if (step != NULL && recording->config.pages) {
		record.outcome.has_pages = true;
		record.outcome.num_pages = event->counts.pages;
		record.outcome.pages = lists.pages;
	}
	recording->is_dirty = true;
	if (!event->is_misfit)
		status = write_line(recording, &record, refusal);
	if (status == QUIRE_INVALID && record.outcome.has_pages) {
		record.outcome.has_pages = false; /* they may be what is too long */
		status = write_line(recording, &record, refusal);
	}
	if (status != QUIRE_INVALID)
		return status;
	if (record.outcome.status == QUIRE_OK)
		return refuse_unspeakable(event, refusal);
	return write_unspeakable(recording, &record, refusal);
}

static enum quire_status write_fate(struct quire_recording *recording,
                                    const struct quire_event_fate *event,
                                    struct quire_refusal *refusal)
{
	const struct quire_trace_record record = {
		.command = {.kind = event->head.kind == QUIRE_EVENT_ABANDONED
	                                    ? QUIRE_COMMAND_ABANDON
	                                    : QUIRE_COMMAND_PROMOTE,
	                    .target = event->ticket},
		.has_outcome = true,
		.has_times = true,
		.times = {.given_ns = since_start(recording, event->given_ns),
	                  .decided_ns = since_start(recording, event->decided_ns),
	                  .issued_ns = -1},
	};

	if (recording->timeline != NULL)
		quire_timeline_fate(recording->timeline, event);
	if (event->head.kind == QUIRE_EVENT_FAILED || event->is_told ||
	    recording->writer == NULL)
		return QUIRE_OK;
	recording->is_dirty = true;
	return write_line(recording, &record, refusal);
}

/* ------------------------------------------------------------------ the timeline's */

/* Steps that have retired since the last look, of those written. */
static void look_at_retired(struct quire_recording *recording)
{
	while (recording->num_running > 0) {
		const struct quire_record_running *running =
			&recording
				 ->running[recording->first_running % QUIRE_RECORD_STEPS];
		const struct quire_record_step *step =
			&recording->steps[running->step % QUIRE_RECORD_STEPS];

		/* Pairs with the release in quire_record_retired. */
		if (step->has_run &&
		    atomic_load_explicit(&step->retired, memory_order_acquire) !=
		            running->ticket)
			return;
		if (step->has_run)
			quire_timeline_step(recording->timeline, running->ticket, step);
		recording->first_running++;
		recording->num_running--;
		recording->is_dirty = true;
		/* Pairs with the acquire in quire_record_overrun. */
		atomic_store_explicit(&recording->done_step, running->step,
		                      memory_order_release);
	}
}

/* The step's line is written; with a timeline its cell is needed until it has retired,
 * and those before it may not be needed any more: a look may be a long one. */
static void end_step(struct quire_recording *recording,
                     const struct quire_event_command *event)
{
	if (recording->timeline == NULL) {
		/* Pairs with the acquire in quire_record_overrun. */
		atomic_store_explicit(&recording->done_step, event->step,
		                      memory_order_release);
		return;
	}
	recording->running[(recording->first_running + recording->num_running++) %
	                   QUIRE_RECORD_STEPS] = (struct quire_record_running){
		.ticket = event->ticket, .step = event->step};
	look_at_retired(recording);
}

/* ------------------------------------------------------------------ one look */

/* Write what a command's event says.  *done_out false: it is not final yet. */
static enum quire_status write_if_final(struct quire_recording *recording,
                                        struct quire_event_command *event, bool *done_out,
                                        struct quire_refusal *refusal)
{
	bool is_step = event->kind == QUIRE_COMMAND_SUBMIT &&
	               status_of(recording, event) == QUIRE_OK;
	const struct quire_record_step *step = NULL;

	if (!event->is_open && is_step)
		step = issued_step(recording, event);
	*done_out = !event->is_open && (step != NULL || !is_step);
	if (!*done_out)
		return QUIRE_OK;
	QUIRE_TRY(write_command(recording, event, step, refusal));
	if (is_step)
		end_step(recording, event);
	return QUIRE_OK;
}

static enum quire_status write_event(struct quire_recording *recording,
                                     struct quire_event_head *head, bool *done_out,
                                     struct quire_refusal *refusal)
{
	*done_out = true;
	if (head->kind == QUIRE_EVENT_COMMAND)
		return write_if_final(recording, (struct quire_event_command *)head,
		                      done_out, refusal);
	if (is_fate(head) || head->kind == QUIRE_EVENT_PROMOTED_ABOVE)
		return write_fate(recording, (struct quire_event_fate *)head, refusal);
	if (head->kind == QUIRE_EVENT_WAITED)
		quire_timeline_wait(recording->timeline, (struct quire_event_wait *)head);
	return QUIRE_OK;
}

/* What comes meanwhile is for the next look: between them is the flush. */
enum quire_status quire_record_look(struct quire_recording *recording,
                                    struct quire_refusal *refusal)
{
	/* Relaxed: this thread's own. */
	uint64_t head = atomic_load_explicit(&recording->head, memory_order_relaxed);
	bool done = true;

	look_at_new(recording);
	while (head != recording->seen) {
		struct quire_event_head *event = event_at(recording, head);

		QUIRE_TRY(write_event(recording, event, &done, refusal));
		if (!done)
			break;
		head += event->bytes;
		/* Pairs with the acquire in the planner: it has been read. */
		atomic_store_explicit(&recording->head, head, memory_order_release);
	}
	if (recording->timeline != NULL)
		look_at_retired(recording);
	return QUIRE_OK;
}
