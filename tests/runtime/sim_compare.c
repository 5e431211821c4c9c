/* SPDX-License-Identifier: MIT */
/* A simulated run against the model: outcomes, tables, bytes, streams, counters. */
#include "config.h"

#include "sim_run.h"

#include <stdio.h>
#include <string.h>

bool sim_readable(const struct sim *sim, uint64_t ticket)
{
	return ticket + (uint64_t)sim->list->config.tickets_max > sim->drawn;
}

struct sim_record *sim_next(struct sim *sim)
{
	const struct model_order *order = &sim->order;

	if (order->followed == order->drawn)
		return NULL;
	return sim->by_ticket[order->entries[order->followed].ticket];
}

/* ------------------------------------------------------------------ outcomes */

static void fail_status(struct sim *sim, const struct sim_record *record,
                        const struct quire_refusal *expected,
                        const struct quire_refusal *got)
{
	char left[256], right[256];

	quire_refusal_text(expected, left, sizeof(left));
	quire_refusal_text(got, right, sizeof(right));
	sim_fail(
		sim, record,
		"outcome\n  expected %s: %s\n    what '%s' got %lld expected %lld "
		"request %llu "
		"label '%s' short %lld\n  got      %s: %s\n    what '%s' got %lld "
		"expected %lld "
		"request %llu label '%s' short %lld free %lld retiring %lld owned %lld\n",
		quire_status_name(expected->status), left,
		expected->what == NULL ? "" : expected->what, (long long)expected->got,
		(long long)expected->expected, (unsigned long long)expected->request,
		expected->label, (long long)expected->pages_short,
		quire_status_name(got->status), right, got->what == NULL ? "" : got->what,
		(long long)got->got, (long long)got->expected,
		(unsigned long long)got->request, got->label, (long long)got->pages_short,
		(long long)got->free, (long long)got->retiring, (long long)got->owned);
}

static bool same_stream(const struct quire_refusal *a, const struct quire_refusal *b)
{
	return a->request == b->request && strcmp(a->label, b->label) == 0;
}

static bool again_is_right(const struct sim *sim, const struct model_entry *entry,
                           const struct quire_refusal *got)
{
	if (got->free >= entry->need || got->retiring <= 0 || got->free < 0 ||
	    got->free + got->retiring + got->owned != sim->list->num_pages)
		return false;
	/* The model goes back as soon as an abandon is drawn; the planner had not yet. */
	return sim->any_abandon || got->owned == entry->owned;
}

/* Do the details of a refusal say what the model says? */
static bool same_details(const struct sim *sim, const struct model_entry *entry,
                         const struct quire_refusal *got)
{
	const struct quire_refusal *expected = &entry->refusal;

	switch (expected->status) {
	case QUIRE_NO_PAGES:
		return same_stream(expected, got) &&
		       expected->pages_short == got->pages_short;
	case QUIRE_AGAIN:
		return again_is_right(sim, entry, got);
	case QUIRE_STALE:
		return same_stream(expected, got) &&
		       expected->expected == got->expected && expected->got == got->got;
	case QUIRE_LIMIT:
		return same_stream(expected, got) &&
		       expected->expected == got->expected &&
		       (expected->got == 0 || expected->got == got->got) &&
		       strncmp(expected->what, got->what, strlen(expected->what)) == 0;
	case QUIRE_NO_REQUEST:
		return expected->request == got->request;
	case QUIRE_NO_LABEL:
		return same_stream(expected, got);
	case QUIRE_INVALID:
		return got->what != NULL && got->what[0] != '\0';
	default:
		return true;
	}
}

static void fail_image(struct sim *sim, const struct sim_record *record,
                       const char *which, const struct image *expected,
                       const struct image *got)
{
	char text[8192];

	snprintf(text, sizeof(text), "%s\n", which);
	image_print_difference(expected, got, text, sizeof(text));
	sim_fail(sim, record, "%s", text);
}

static int32_t number_of(const struct sim *sim, const struct model_entry *entry)
{
	return (int32_t)(entry - sim->order.entries);
}

static uint64_t base_ticket(const struct sim *sim, const struct model_entry *entry)
{
	return entry->base < 0 ? 0 : sim->order.entries[entry->base].ticket;
}

static void compare_outcome(struct sim *sim, const struct sim_record *record,
                            const struct model_entry *entry,
                            const struct quire_outcome *outcome)
{
	if (outcome->refusal.status != entry->refusal.status ||
	    !same_details(sim, entry, &outcome->refusal))
		fail_status(sim, record, &entry->refusal, &outcome->refusal);
	else if (outcome->pages_taken != entry->pages_taken ||
	         outcome->pages_released != entry->pages_released ||
	         (entry->refusal.status == QUIRE_OK && outcome->step != entry->step))
		sim_fail(sim, record,
		         "%d pages taken, %d released in step %llu, expected %d, %d in "
		         "%llu",
		         outcome->pages_taken, outcome->pages_released,
		         (unsigned long long)outcome->step, entry->pages_taken,
		         entry->pages_released, (unsigned long long)entry->step);
	else if (outcome->base != base_ticket(sim, entry))
		sim_fail(sim, record, "rests on %llu, expected %llu",
		         (unsigned long long)outcome->base,
		         (unsigned long long)base_ticket(sim, entry));
}

static void compare_plan(struct sim *sim, const struct sim_record *record,
                         const struct model_entry *entry)
{
	if (entry->image == NULL) {
		if (record->host != NULL)
			sim_fail(sim, record,
			         "on_plan was called for a command that the model "
			         "refuses");
	} else if (record->host == NULL) {
		sim_fail(sim, record, "on_plan was not called");
	} else if (!image_equal(entry->image, record->host)) {
		fail_image(sim, record, "tables in on_plan", entry->image, record->host);
	}
}

void sim_follow(struct sim *sim, const struct quire_outcome *outcome)
{
	struct sim_record *record = sim_next(sim);
	struct model_entry *entry = &sim->order.entries[sim->order.followed];
	bool again = outcome != NULL && outcome->refusal.status == QUIRE_AGAIN;

	if (order_is_parked(&sim->order)) {
		sim_fail(sim, record, "was decided behind a step whose fate is open");
		return;
	}
	order_follow(&sim->order, again);
	if (entry->speculative)
		sim->unheard = true; /* of its fate: the planner looks when it holds it */
	else
		sim->shown_least = sim->order.effects;
	if (entry->fate == FATE_ABANDONED)
		return; /* what it says until the planner hears of it is provisional */
	compare_plan(sim, record, entry);
	if (entry->speculative && entry->fate == FATE_OPEN && entry->image != NULL)
		sim->cover->held_open++;
	if (entry->pages_taken > 0 && sim->stash > 0) {
		sim->cover->stash_takes++;
		sim->stash -=
			entry->pages_taken < sim->stash ? entry->pages_taken : sim->stash;
	}
	if (outcome == NULL || sim->failed)
		return;
	compare_outcome(sim, record, entry, outcome);
	if (!order_is_settled(&sim->order, number_of(sim, entry)) &&
	    outcome->stage != QUIRE_STAGE_PLANNED)
		sim_fail(sim, record, "is at stage %d though its fate is open",
		         (int)outcome->stage);
}

/* ------------------------------------------------------------------ streams */

struct picture {
	enum quire_status status;
	struct quire_snapshot snapshot;
	int32_t pages[MODEL_PAGES_MAX];
};

static struct picture pictures[LIST_IDS + 1][MODEL_LABELS];

static bool is_named(int32_t id, int32_t label)
{
	return id < LIST_IDS || label == 0;
}

static void take_pictures(struct sim *sim)
{
	for (int32_t id = 0; id <= LIST_IDS; id++)
		for (int32_t label = 0; label < MODEL_LABELS; label++) {
			struct picture *p = &pictures[id][label];

			if (is_named(id, label))
				p->status = quire_runtime_snapshot(
					sim->runtime, list_ids[id], model_labels[label],
					&p->snapshot, p->pages, MODEL_PAGES_MAX);
		}
}

static bool same_pages(const struct model_stream *stream, const int32_t *pages)
{
	for (int32_t k = 0; k < stream->num_pages; k++)
		if (stream->pages[k] != pages[k])
			return false;
	return true;
}

static bool same_generation(const struct sim_generation *g,
                            const struct model_stream *stream, uint64_t got)
{
	if (g->known && g->born == stream->born)
		return got == g->base + stream->changes;
	return got >= g->last;
}

/* Is this the stream as the model has it?  @stats: of the same moment. */
static bool same_picture(const struct sim_generation *g,
                         const struct model_stream *stream, const struct picture *p,
                         const struct quire_runtime_stats *stats)
{
	const struct quire_snapshot *s = &p->snapshot;

	return s->length == stream->length && s->released == stream->released &&
	       s->step == stream->step && s->num_pages == stream->num_pages &&
	       same_generation(g, stream, s->generation) &&
	       same_pages(stream, p->pages) &&
	       s->issued_length == model_length_at(stream, stats->steps_issued) &&
	       s->retired_length == model_length_at(stream, stats->steps_retired);
}

/* The first name whose picture is not the model's; false: all are. */
static bool find_difference(struct sim *sim, struct model *m,
                            const struct quire_runtime_stats *stats, int32_t *id_out,
                            int32_t *label_out, struct model_stream **stream_out)
{
	for (int32_t id = 0; id <= LIST_IDS; id++)
		for (int32_t label = 0; label < MODEL_LABELS; label++) {
			struct model_request *request =
				model_find_request(m, list_ids[id]);
			struct model_stream *stream =
				request == NULL ? NULL
						: model_find_stream(request, label);
			const struct picture *p = &pictures[id][label];
			enum quire_status expected = stream != NULL    ? QUIRE_OK
			                             : request == NULL ? QUIRE_NO_REQUEST
			                                               : QUIRE_NO_LABEL;

			if (!is_named(id, label) ||
			    (p->status == expected &&
			     (stream == NULL || same_picture(&sim->generations[id][label],
			                                     stream, p, stats))))
				continue;
			*id_out = id;
			*label_out = label;
			*stream_out = stream;
			return true;
		}
	return false;
}

static void fail_shown(struct sim *sim, int32_t id, int32_t label,
                       const struct model_stream *stream,
                       const struct quire_runtime_stats *stats)
{
	const struct picture *p = &pictures[id][label];
	const struct quire_snapshot *s = &p->snapshot;
	const struct sim_generation *g = &sim->generations[id][label];
	struct model_stream none = {0};

	if (stream == NULL)
		stream = &none;
	sim_fail(
		sim, sim->by_ticket[sim->drawn],
		"readers are shown %llu %s as no state of the model has it: %s, length "
		"%lld (issued %lld, retired %lld), released %lld, %lld pages, step %llu, "
		"generation %llu; the newest has length %lld (%lld, %lld), released "
		"%lld, %d pages, step %llu, generation %llu; effects %d..%d",
		(unsigned long long)list_ids[id], model_labels[label],
		quire_status_name(p->status), (long long)s->length,
		(long long)s->issued_length, (long long)s->retired_length,
		(long long)s->released, (long long)s->num_pages,
		(unsigned long long)s->step, (unsigned long long)s->generation,
		(long long)stream->length,
		(long long)model_length_at(stream, stats->steps_issued),
		(long long)model_length_at(stream, stats->steps_retired),
		(long long)stream->released, stream->num_pages,
		(unsigned long long)stream->step,
		(unsigned long long)(g->base + stream->changes), sim->shown_least,
		sim->order.effects);
}

static void note_generations(struct sim *sim, struct model *m)
{
	for (int32_t i = 0; i < MODEL_REQUESTS_MAX; i++)
		for (int32_t k = 0; m->requests[i].open && k < m->requests[i].num_streams;
		     k++) {
			const struct model_stream *stream = &m->requests[i].streams[k];
			int32_t id = 0;
			struct sim_generation *g;

			while (list_ids[id] != m->requests[i].id)
				id++;
			g = &sim->generations[id][stream->label];
			g->last = pictures[id][stream->label].snapshot.generation;
			g->base = g->last - stream->changes;
			g->last++;
			g->born = stream->born;
			g->known = true;
		}
}

void sim_compare_shown(struct sim *sim, bool newest)
{
	struct model_order *order = &sim->order;
	int32_t least = sim->shown > sim->shown_least ? sim->shown : sim->shown_least;
	struct quire_runtime_stats stats;
	struct model_stream *stream = NULL;
	int32_t id = 0, label = 0;

	quire_runtime_stats(sim->runtime, &stats);
	take_pictures(sim);
	for (int32_t e = newest ? order->effects : least; e <= order->effects; e++) {
		if (find_difference(sim, order->shown[e], &stats, &id, &label, &stream))
			continue;
		note_generations(sim, order->shown[e]);
		order_forget(order, e);
		sim->shown = e;
		return;
	}
	fail_shown(sim, id, label, stream, &stats);
}

/* ------------------------------------------------------------------ counters */

static void compare_count(struct sim *sim, const char *name, int64_t got,
                          int64_t expected)
{
	if (got != expected)
		sim_fail(sim, sim->by_ticket[sim->drawn], "%s is %lld, expected %lld",
		         name, (long long)got, (long long)expected);
}

/* Commands that have come to their end so: of a speculative step that is its fate's. */
static int64_t count_ended(const struct sim *sim, bool abandoned)
{
	const struct model_order *order = &sim->order;
	int64_t ended = 0;

	for (int32_t i = 0; i < order->followed; i++) {
		enum quire_status status = order->entries[i].refusal.status;

		ended += status != QUIRE_OK && order_is_settled(order, i) &&
		         (status == QUIRE_ABANDONED) == abandoned;
	}
	return ended;
}

void sim_compare_counts(struct sim *sim)
{
	const struct model_order *order = &sim->order;
	const struct model_counts *counts = &order->model.counts;
	const struct model_counts *shown = &order->shown[order->effects]->counts;
	struct quire_runtime_stats now, *stats = &now;

	quire_runtime_stats(sim->runtime, stats);
	compare_count(sim, "steps_planned", (int64_t)stats->steps_planned,
	              (int64_t)counts->steps_planned);
	compare_count(sim, "steps_held", (int64_t)stats->steps_held, sim->order.num_held);
	compare_count(sim, "pages_owned", stats->pages_owned - sim->in_hand,
	              counts->pages_owned);
	compare_count(sim, "requests_open", stats->requests_open, counts->requests_open);
	compare_count(sim, "free and retiring",
	              stats->pages_free + stats->pages_retiring + sim->in_hand,
	              sim->order.model.num_fifo);
	compare_count(sim, "tokens", (int64_t)stats->tokens, (int64_t)shown->tokens);
	compare_count(sim, "copies", (int64_t)stats->copies, (int64_t)shown->copies);
	compare_count(sim, "first_writes", (int64_t)stats->first_writes,
	              (int64_t)shown->first_writes);
	if (!sim->cancelled) {
		compare_count(sim, "refused", (int64_t)stats->refused,
		              count_ended(sim, false));
		compare_count(sim, "steps_abandoned", (int64_t)stats->steps_abandoned,
		              count_ended(sim, true));
	}
	if (sim->cancelled || sim->any_abandon)
		return; /* what was taken back had been counted, or not */
	compare_count(sim, "commands", (int64_t)stats->commands, sim->order.followed);
	compare_count(sim, "pages_taken", (int64_t)stats->pages_taken - sim->in_hand,
	              (int64_t)counts->pages_taken);
	if (sim->in_hand == 0)
		compare_count(sim, "pages_peak", stats->pages_peak, counts->pages_peak);
}

/* ------------------------------------------------------------------ the end */

static void compare_device(struct sim *sim, const struct sim_record *record,
                           const struct model_entry *entry)
{
	if (entry->image == NULL ||
	    !order_is_settled(&sim->order, number_of(sim, entry))) {
		if (record->device != NULL)
			sim_fail(sim, record, "work of a step ran that never took place");
	} else if (record->device == NULL) {
		sim_fail(sim, record, "the step's work did not run");
	} else if (!image_equal(entry->image, record->device)) {
		fail_image(sim, record, "tables on the device", entry->image,
		           record->device);
	} else if (record->user_wrong) {
		sim_fail(sim, record, "user bytes on the device are not this step's");
	} else if (!image_equal(entry->reads, record->reads)) {
		fail_image(sim, record, "tokens read", entry->reads, record->reads);
	}
}

static void compare_done(struct sim *sim, const struct sim_record *record,
                         const struct model_entry *entry, bool settled)
{
	if (record->command.kind != QUIRE_COMMAND_SUBMIT)
		return;
	if (record->num_done != (settled ? 1 : 0))
		sim_fail(sim, record, "its end was told %d times", record->num_done);
	else if (settled && record->done_status != entry->refusal.status)
		sim_fail(sim, record, "its end was told as %s, not %s",
		         quire_status_name(record->done_status),
		         quire_status_name(entry->refusal.status));
}

static void compare_final(struct sim *sim, const struct model_entry *entry)
{
	struct sim_record *record = sim->by_ticket[entry->ticket];
	bool settled = order_is_settled(&sim->order, number_of(sim, entry)), readable;
	struct quire_outcome outcome;
	enum quire_status status;

	readable = sim_readable(sim, entry->ticket);
	status = quire_runtime_wait(sim->runtime, entry->ticket,
	                            settled ? QUIRE_STAGE_RETIRED : QUIRE_STAGE_PLANNED,
	                            0, &outcome);
	sim->cover->forgotten += !readable;
	if (status == QUIRE_OK) {
		compare_outcome(sim, record, entry, &outcome);
		if (outcome.stage !=
		    (settled ? QUIRE_STAGE_RETIRED : QUIRE_STAGE_PLANNED))
			sim_fail(sim, record, "is at stage %d at the end",
			         (int)outcome.stage);
		if (settled && entry->image != NULL && sim->list->config.digests &&
		    outcome.digest != record->digest)
			sim_fail(sim, record, "digest %016llx, expected %016llx",
			         (unsigned long long)outcome.digest,
			         (unsigned long long)record->digest);
	} else if (readable || status != QUIRE_INVALID) {
		sim_fail(sim, record, "answers %s at the end", quire_status_name(status));
	}
	if (settled && entry->fate != FATE_ABANDONED)
		compare_plan(sim, record, entry);
	compare_device(sim, record, entry);
	compare_done(sim, record, entry, settled);
}

/* Every live token that readers are shown, at rest. */
static void compare_bytes(struct sim *sim)
{
	struct model *m = sim->order.shown[sim->order.effects];
	int32_t ps = sim->list->page_size;

	for (int32_t i = 0; i < MODEL_REQUESTS_MAX; i++)
		for (int32_t k = 0; m->requests[i].open && k < m->requests[i].num_streams;
		     k++) {
			const struct model_stream *s = &m->requests[i].streams[k];

			for (int64_t g = 0; g < s->length; g++)
				if (sim_token_in_cache(sim, s->pages[g / ps],
				                       (int32_t)(g % ps)) !=
				    (int64_t)s->content[g])
					sim_fail(sim, NULL,
					         "token %lld of %llu %s is not what was "
					         "written",
					         (long long)g,
					         (unsigned long long)m->requests[i].id,
					         model_labels[s->label]);
		}
}

static void cover_end(struct sim *sim)
{
	const struct model_order *order = &sim->order;
	struct sim_cover *cover = sim->cover;

	for (int32_t i = 0; i < order->followed; i++) {
		const struct model_entry *entry = &order->entries[i];
		const struct quire_step *step = entry->command->step;

		cover->commands++;
		cover->statuses[entry->refusal.status]++;
		if (entry->refusal.status != QUIRE_OK)
			continue;
		cover->rewinds += entry->command->kind == QUIRE_COMMAND_REWIND;
		cover->releases += entry->pages_released > 0;
		cover->keeps += entry->command->kind == QUIRE_COMMAND_RESET &&
		                entry->command->keep_pages != 0;
		if (entry->command->kind != QUIRE_COMMAND_SUBMIT)
			continue;
		cover->no_commits += (step->flags & QUIRE_STEP_NO_COMMIT) != 0;
		cover->combined += step->num_combined > 0;
		cover->buckets += step->bucket_rows > 0;
		cover->pre_copies += entry->num_pre > 0;
		cover->post_copies += entry->num_post > 0;
		cover->first_writes += entry->first_writes > 0;
	}
	cover->open_at_end += order_num_open(order) > 0;
}

void sim_compare_end(struct sim *sim)
{
	const struct model_order *order = &sim->order;
	struct quire_runtime_stats stats;
	struct quire_refusal refusal;
	uint64_t steps = order->shown[order->effects]->counts.steps_planned;

	for (int32_t i = 0; i < order->followed && !sim->failed; i++)
		compare_final(sim, &order->entries[i]);
	sim_compare_shown(sim, true);
	if (quire_runtime_check(sim->runtime, &refusal) != QUIRE_OK)
		sim_fail(sim, NULL, "check at the end: %s", refusal.what);
	sim_compare_counts(sim);
	compare_bytes(sim);
	quire_runtime_stats(sim->runtime, &stats);
	compare_count(sim, "steps_retired", (int64_t)stats.steps_retired, (int64_t)steps);
	compare_count(sim, "steps_issued", (int64_t)stats.steps_issued, (int64_t)steps);
	if (order->num_held == 0)
		compare_count(sim, "pages_free", stats.pages_free, order->model.num_fifo);
	cover_end(sim);
}

void sim_compare_broken(struct sim *sim)
{
	struct quire_runtime_stats stats;
	struct quire_refusal refusal = {.what = ""};

	for (int32_t i = 0; i < sim->order.drawn && !sim->failed; i++) {
		const struct model_entry *entry = &sim->order.entries[i];
		const struct sim_record *record = sim->by_ticket[entry->ticket];
		enum quire_status status = quire_runtime_wait(
			sim->runtime, entry->ticket, QUIRE_STAGE_RETIRED, 0, NULL);

		if (status != QUIRE_OK &&
		    (status != QUIRE_INVALID || sim_readable(sim, entry->ticket)))
			sim_fail(sim, record, "has not ended after a failure: %s",
			         quire_status_name(status));
		if (record->command.kind == QUIRE_COMMAND_SUBMIT && record->num_done != 1)
			sim_fail(sim, record, "its end was told %d times after a failure",
			         record->num_done);
	}
	if (quire_runtime_failure(sim->runtime, NULL) != QUIRE_DEVICE)
		sim_fail(sim, NULL, "the device's failure is not the runtime's");
	if (quire_runtime_check(sim->runtime, &refusal) != QUIRE_OK)
		sim_fail(sim, NULL, "check after a failure: %s", refusal.what);
	quire_runtime_stats(sim->runtime, &stats);
	compare_count(sim, "free, retiring and owned pages",
	              stats.pages_free + stats.pages_retiring + stats.pages_owned,
	              sim->list->num_pages);
	compare_count(sim, "steps held", (int64_t)stats.steps_held, 0);
	sim->cover->failures++;
}
