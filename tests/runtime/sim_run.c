/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "sim_run.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void sim_fail(struct sim *sim, const struct sim_record *record, const char *format, ...)
{
	va_list arguments;
	size_t used;

	if (sim->failed)
		return;
	sim->failed = true;
	used = (size_t)snprintf(sim->text, sizeof(sim->text), "seed %llu, command %d: ",
	                        (unsigned long long)sim->list->seed,
	                        record == NULL ? -1 : record->number);
	va_start(arguments, format);
	vsnprintf(sim->text + used, sizeof(sim->text) - used, format, arguments);
	va_end(arguments);
}

bool sim_readable(const struct sim *sim, uint64_t ticket)
{
	return ticket + (uint64_t)sim->list->config.tickets_max > sim->drawn;
}

/* ------------------------------------------------------------------ capture */

static uint64_t user_word(uint64_t ticket, int64_t i)
{
	return ticket * 0x9e3779b97f4a7c15ull + (uint64_t)i;
}

static enum quire_status on_plan(void *argument, struct quire_plan *plan)
{
	static _Thread_local struct image image;
	struct sim *sim = argument;
	struct sim_record *record = sim->by_ticket[plan->ticket];
	uint64_t *user = plan->user;

	if (record == NULL || record->host != NULL)
		return QUIRE_CALLBACK;
	image_of_plan(&image, plan, false);
	record->host = image_copy(&image);
	record->digest = quire_plan_digest(plan);
	for (int64_t i = 0; i < plan->user_bytes / 8; i++)
		user[i] = user_word(plan->ticket, i);
	return QUIRE_OK;
}

/* On the compute stream: the device half must hold this step's tables until it
 * returns. */
static enum quire_status capture_device(void *argument)
{
	static _Thread_local struct image image;
	struct sim_record *record = argument;
	const struct quire_plan *plan = &record->plan;
	const uint64_t *user =
		plan->user == NULL ? NULL : quire_plan_device(plan, plan->user);

	if (record->delay_us > 0)
		usleep((useconds_t)record->delay_us);
	image_of_plan(&image, plan, true);
	record->device = image_copy(&image);
	for (int64_t i = 0; i < plan->user_bytes / 8; i++)
		record->user_wrong |= user[i] != user_word(record->ticket, i);
	return QUIRE_OK;
}

static enum quire_status run_step(void *argument, const struct quire_plan *plan,
                                  struct quire_dstream *compute)
{
	struct sim_record *record = argument;

	record->plan = *plan;
	return quire_dstream_call(compute, capture_device, record);
}

/* ------------------------------------------------------------------ giving commands */

/* Refused at the call: it draws no position and changes nothing. */
static void follow_refused_call(struct sim *sim, const struct sim_record *record,
                                enum quire_status status)
{
	static struct model copy;

	copy = sim->model;
	model_apply(&copy, &record->command, false, &sim->answer);
	sim->cover->refused_at_call++;
	if (!sim->answer.form || sim->answer.refusal.status != status)
		sim_fail(sim, record, "the call answers %s, the model %s",
		         quire_status_name(status),
		         quire_status_name(sim->answer.refusal.status));
}

bool sim_give(struct sim *sim, int32_t number, bool try_only)
{
	const struct list_command *c = &sim->list->commands[number];
	struct sim_record *record = &sim->records[number];
	struct quire_refusal refusal = {.what = ""};
	uint64_t ticket = 0;
	enum quire_status status;

	record->sim = sim;
	record->number = number;
	record->command = c->command;
	if (c->command.kind == QUIRE_COMMAND_SUBMIT) {
		record->step = c->step;
		record->step.run = run_step;
		record->step.run_argument = record;
		record->command.step = &record->step;
	}
	record->ticket = sim->drawn + 1;
	sim->by_ticket[record->ticket] = record;
	status = try_only ? quire_runtime_try_command(sim->runtime, &record->command,
	                                              &ticket, &refusal)
	                  : quire_runtime_command(sim->runtime, &record->command, &ticket,
	                                          &refusal);
	if (status == (try_only ? QUIRE_AGAIN : QUIRE_WOULD_BLOCK)) {
		sim->cover->queue_full++;
		return false;
	}
	if (status == QUIRE_OK) {
		if (ticket != record->ticket)
			sim_fail(sim, record, "ticket %llu after %llu",
			         (unsigned long long)ticket,
			         (unsigned long long)sim->drawn);
		sim->drawn = record->ticket;
		return true;
	}
	sim->by_ticket[record->ticket] = NULL;
	if (!sim->cancelled || status != QUIRE_CLOSED)
		follow_refused_call(sim, record, status);
	return true;
}

/* ------------------------------------------------------------------ outcomes */

static void cover_command(struct sim *sim, const struct sim_record *record)
{
	const struct quire_step *step = record->command.step;
	struct sim_cover *cover = sim->cover;

	cover->commands++;
	cover->statuses[sim->answer.refusal.status]++;
	if (sim->answer.refusal.status != QUIRE_OK)
		return;
	if (record->command.kind == QUIRE_COMMAND_RESET)
		cover->keeps += record->command.keep_pages != 0;
	if (record->command.kind != QUIRE_COMMAND_SUBMIT)
		return;
	cover->no_commits += (step->flags & QUIRE_STEP_NO_COMMIT) != 0;
	cover->combined += step->num_combined > 0;
	cover->buckets += step->bucket_rows > 0;
}

static void fail_status(struct sim *sim, const struct sim_record *record,
                        const struct quire_refusal *got)
{
	const struct quire_refusal *expected = &sim->answer.refusal;
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

/* Do the details of a refusal say what the model says? */
static bool same_details(const struct sim *sim, const struct quire_refusal *got)
{
	const struct quire_refusal *expected = &sim->answer.refusal;

	switch (expected->status) {
	case QUIRE_NO_PAGES:
		return same_stream(expected, got) &&
		       expected->pages_short == got->pages_short;
	case QUIRE_AGAIN:
		return got->free < sim->answer.need && got->retiring > 0 &&
		       got->free >= 0 && got->owned == sim->model.counts.pages_owned &&
		       got->free + got->retiring + got->owned == sim->model.num_pages;
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

static void compare_plan(struct sim *sim, struct sim_record *record)
{
	record->expected = image_copy(&sim->answer.image);
	if (record->host == NULL)
		sim_fail(sim, record, "on_plan was not called");
	else if (!image_equal(record->expected, record->host))
		fail_image(sim, record, "tables in on_plan", record->expected,
		           record->host);
}

void sim_follow(struct sim *sim, const struct quire_outcome *outcome)
{
	struct sim_record *record = sim->by_ticket[++sim->decided];
	bool again = outcome != NULL && outcome->refusal.status == QUIRE_AGAIN;
	const struct model_answer *answer = &sim->answer;

	model_apply(&sim->model, &record->command, again, &sim->answer);
	cover_command(sim, record);
	if (answer->refusal.status == QUIRE_OK &&
	    record->command.kind == QUIRE_COMMAND_SUBMIT)
		compare_plan(sim, record);
	else if (record->host != NULL)
		sim_fail(sim, record,
		         "on_plan was called for a command that the model refuses");
	if (outcome == NULL || sim->failed)
		return;
	if (outcome->refusal.status != answer->refusal.status ||
	    !same_details(sim, &outcome->refusal))
		fail_status(sim, record, &outcome->refusal);
	else if (outcome->pages_taken != answer->pages_taken ||
	         outcome->step != answer->step)
		sim_fail(sim, record, "%d pages taken in step %llu, expected %d in %llu",
		         outcome->pages_taken, (unsigned long long)outcome->step,
		         answer->pages_taken, (unsigned long long)answer->step);
}

/* ------------------------------------------------------------------ state */

static void compare_stream(struct sim *sim, int32_t id, struct model_stream *stream,
                           const struct quire_snapshot *got, const int32_t *pages)
{
	uint64_t *last = &sim->model.last_generation[id][stream->label];

	if (!stream->based) {
		stream->based = true;
		stream->base = got->generation - stream->changes;
		if (got->generation < *last)
			sim_fail(sim, NULL,
			         "a new stream of generation %llu where %llu was seen",
			         (unsigned long long)got->generation,
			         (unsigned long long)*last);
	}
	if (got->length != stream->length || got->released != 0 ||
	    got->num_pages != stream->num_pages || got->step != stream->step ||
	    got->generation != stream->base + stream->changes ||
	    memcmp(pages, stream->pages, sizeof(pages[0]) * (size_t)stream->num_pages) !=
	            0)
		sim_fail(sim, sim->by_ticket[sim->decided],
		         "stream %llu %s after it: length %lld, %lld pages, step %llu, "
		         "generation %llu; expected %lld, %d pages, step %llu, "
		         "generation %llu",
		         (unsigned long long)list_ids[id], model_labels[stream->label],
		         (long long)got->length, (long long)got->num_pages,
		         (unsigned long long)got->step,
		         (unsigned long long)got->generation, (long long)stream->length,
		         stream->num_pages, (unsigned long long)stream->step,
		         (unsigned long long)(stream->base + stream->changes));
	*last = got->generation + 1;
}

static void compare_name(struct sim *sim, int32_t id, int32_t label)
{
	struct model_request *request = model_find_request(&sim->model, list_ids[id]);
	struct model_stream *stream =
		request == NULL ? NULL : model_find_stream(request, label);
	enum quire_status status, expected = QUIRE_OK;
	struct quire_snapshot snapshot;
	int32_t pages[MODEL_PAGES_MAX];

	if (stream == NULL)
		expected = request == NULL ? QUIRE_NO_REQUEST : QUIRE_NO_LABEL;
	status = quire_runtime_snapshot(sim->runtime, list_ids[id], model_labels[label],
	                                &snapshot, pages, MODEL_PAGES_MAX);
	if (status != expected)
		sim_fail(sim, sim->by_ticket[sim->decided],
		         "snapshot of %llu %s answers %s, expected %s",
		         (unsigned long long)list_ids[id], model_labels[label],
		         quire_status_name(status), quire_status_name(expected));
	else if (stream != NULL)
		compare_stream(sim, id, stream, &snapshot, pages);
}

static void compare_count(struct sim *sim, const char *name, int64_t got,
                          int64_t expected)
{
	if (got != expected)
		sim_fail(sim, sim->by_ticket[sim->decided], "%s is %lld, expected %lld",
		         name, (long long)got, (long long)expected);
}

void sim_compare_counts(struct sim *sim)
{
	const struct model_counts *counts = &sim->model.counts;
	struct quire_runtime_stats now, *stats = &now;

	quire_runtime_stats(sim->runtime, stats);
	compare_count(sim, "steps_planned", (int64_t)stats->steps_planned,
	              (int64_t)counts->steps_planned);
	compare_count(sim, "tokens", (int64_t)stats->tokens, (int64_t)counts->tokens);
	compare_count(sim, "pages_owned", stats->pages_owned, counts->pages_owned);
	compare_count(sim, "requests_open", stats->requests_open, counts->requests_open);
	compare_count(sim, "free and retiring", stats->pages_free + stats->pages_retiring,
	              sim->model.num_fifo);
	if (sim->cancelled) /* a step taken back had taken pages, and was refused */
		return;
	compare_count(sim, "commands", (int64_t)stats->commands,
	              (int64_t)counts->commands);
	compare_count(sim, "refused", (int64_t)stats->refused, (int64_t)counts->refused);
	compare_count(sim, "pages_taken", (int64_t)stats->pages_taken,
	              (int64_t)counts->pages_taken);
	compare_count(sim, "pages_peak", stats->pages_peak, counts->pages_peak);
}

void sim_compare_streams(struct sim *sim)
{
	for (int32_t id = 0; id <= LIST_IDS; id++)
		for (int32_t label = 0; label < MODEL_LABELS; label++)
			if (id < LIST_IDS || label == 0)
				compare_name(sim, id, label);
}

static void compare_retired(struct sim *sim, struct sim_record *record)
{
	struct quire_outcome outcome;
	enum quire_status status;

	status = quire_runtime_wait(sim->runtime, record->ticket, QUIRE_STAGE_RETIRED, 0,
	                            &outcome);
	if (!sim_readable(sim, record->ticket)) {
		sim->cover->forgotten++;
		if (status != QUIRE_INVALID && status != QUIRE_OK)
			sim_fail(sim, record, "an old ticket answers %s",
			         quire_status_name(status));
	} else if (status != QUIRE_OK || outcome.stage != QUIRE_STAGE_RETIRED) {
		sim_fail(sim, record, "is not retired at the end: %s, stage %d",
		         quire_status_name(status), (int)outcome.stage);
	} else if (record->expected != NULL && sim->list->config.digests &&
	           outcome.digest != record->digest) {
		sim_fail(sim, record, "digest %016llx, expected %016llx",
		         (unsigned long long)outcome.digest,
		         (unsigned long long)record->digest);
	}
	if (record->expected == NULL)
		return;
	if (record->device == NULL)
		sim_fail(sim, record, "the step's work did not run");
	else if (!image_equal(record->expected, record->device))
		fail_image(sim, record, "tables on the device", record->expected,
		           record->device);
	else if (record->user_wrong)
		sim_fail(sim, record, "user bytes on the device are not this step's");
}

void sim_compare_end(struct sim *sim)
{
	struct quire_runtime_stats stats;
	struct quire_refusal refusal;

	for (uint64_t ticket = 1; ticket <= sim->decided; ticket++)
		compare_retired(sim, sim->by_ticket[ticket]);
	sim_compare_streams(sim);
	if (quire_runtime_check(sim->runtime, &refusal) != QUIRE_OK)
		sim_fail(sim, NULL, "check at the end: %s", refusal.what);
	sim_compare_counts(sim);
	quire_runtime_stats(sim->runtime, &stats);
	if (!sim->cancelled)
		compare_count(sim, "pages_given", (int64_t)stats.pages_given,
		              (int64_t)sim->model.counts.pages_given);
	compare_count(sim, "steps_retired", (int64_t)stats.steps_retired,
	              (int64_t)sim->model.counts.steps_planned);
	compare_count(sim, "steps_issued", (int64_t)stats.steps_issued,
	              (int64_t)sim->model.counts.steps_planned);
	compare_count(sim, "pages_free", stats.pages_free, sim->model.num_fifo);
}

/* ------------------------------------------------------------------ a run */

static void begin(struct sim *sim, const struct sim_mode *mode)
{
	const struct quire_shape shape = {
		.layout = QUIRE_NHD,
		.dtype = QUIRE_F32,
		.num_layers = 1,
		.num_pages = sim->list->num_pages,
		.page_size = sim->list->page_size,
		.num_kv_heads = 1,
		.head_dim = 1,
	};
	struct quire_runtime_config config = sim->list->config;

	REQUIRE(quire_device_create(mode->device, &sim->device, NULL) == QUIRE_OK);
	REQUIRE(quire_cache_create(sim->device, &shape, &sim->cache, NULL) == QUIRE_OK);
	config.cache = sim->cache;
	config.threads = mode->threads;
	config.on_plan = on_plan;
	config.on_plan_argument = sim;
	if (mode->delays && mode->threads == QUIRE_THREADS_LIBRARY) {
		config.on_poll = sim_delay;
		config.on_poll_argument = sim;
	}
	REQUIRE(quire_runtime_create(&config, &sim->runtime, NULL) == QUIRE_OK);
}

static void end(struct sim *sim)
{
	if (sim->stuck)
		return;
	quire_runtime_destroy(sim->runtime);
	quire_cache_destroy(sim->cache);
	quire_device_destroy(sim->device);
	for (int32_t i = 0; i < sim->list->num_commands; i++) {
		free(sim->records[i].expected);
		free(sim->records[i].host);
		free(sim->records[i].device);
	}
	free(sim->records);
	free(sim->by_ticket);
}

bool sim_run(struct sim *sim, const struct list *list, const struct sim_mode *mode,
             struct sim_cover *cover)
{
	memset(sim, 0, sizeof(*sim));
	sim->list = list;
	sim->cover = cover;
	sim->check_each = mode->check_each;
	dice_seed(&sim->dice, mode->seed);
	model_init(&sim->model, &list->config, list->num_pages, list->page_size);
	sim->records = calloc((size_t)list->num_commands, sizeof(*sim->records));
	sim->by_ticket = calloc((size_t)list->num_commands + 2, sizeof(*sim->by_ticket));
	REQUIRE(sim->records != NULL);
	REQUIRE(sim->by_ticket != NULL);
	for (int32_t i = 0; i < list->num_commands; i++)
		if (mode->delays && dice_percent(&sim->dice, 15))
			sim->records[i].delay_us = 1 + dice_below(&sim->dice, 150);
	begin(sim, mode);
	cover->lists++;
	if (mode->threads == QUIRE_THREADS_CALLER)
		sim_drive_caller(sim, mode);
	else
		sim_drive_threads(sim, mode);
	end(sim);
	return !sim->failed;
}
