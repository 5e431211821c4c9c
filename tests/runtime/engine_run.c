/* SPDX-License-Identifier: MIT */
/* Driving a runtime as an engine does: submit ahead, look at what came of it behind. */
#include "config.h"

#include "engine_run.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_NS 20000000000ll /* more than any step takes, sanitizers included */

void engine_fail(struct engine *engine, const struct engine_record *record,
                 const char *format, ...)
{
	va_list arguments;
	size_t used;

	if (engine->text[0] != 0)
		return;
	used = (size_t)snprintf(
		engine->text, sizeof(engine->text),
		"%s, %s threads, depth %d, pages of %d: ", engine->way.device,
		engine->way.threads == QUIRE_THREADS_LIBRARY ? "the library's"
							     : "the caller's",
		engine->way.depth, engine->way.page_size);
	if (record != NULL)
		used += (size_t)snprintf(engine->text + used, sizeof(engine->text) - used,
		                         "step %d: ", record->number);
	va_start(arguments, format);
	vsnprintf(engine->text + used, sizeof(engine->text) - used, format, arguments);
	va_end(arguments);
}

/* ------------------------------------------------------------------ waiting */

static int64_t soon(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ll + now.tv_nsec + PATIENCE_NS;
}

/* With the caller's threads: move both machines, or sleep until one could move. */
static void poll_once(struct engine *engine)
{
	uint32_t value = quire_runtime_idle_value(engine->runtime);
	bool moved = quire_planner_poll(engine->runtime);

	moved |= quire_executor_poll(engine->runtime);
	if (!moved)
		must(quire_runtime_idle(engine->runtime, value, soon()) == QUIRE_OK);
}

void engine_wait(struct engine *engine, uint64_t ticket, enum quire_stage stage,
                 struct quire_outcome *outcome_out)
{
	enum quire_status status;

	while ((status = quire_runtime_wait(engine->runtime, ticket, stage, soon(),
	                                    outcome_out)) == QUIRE_WOULD_BLOCK)
		poll_once(engine);
	must(status == QUIRE_OK);
}

static void drain(struct engine *engine)
{
	enum quire_status status;

	while ((status = quire_runtime_drain(engine->runtime, QUIRE_STAGE_RETIRED, soon(),
	                                     NULL)) == QUIRE_WOULD_BLOCK)
		poll_once(engine);
	must(status == QUIRE_OK);
}

static void give(struct engine *engine, const struct quire_command *command,
                 uint64_t *ticket)
{
	enum quire_status status;

	while ((status = quire_runtime_command(engine->runtime, command, ticket, NULL)) ==
	       QUIRE_WOULD_BLOCK)
		poll_once(engine);
	must(status == QUIRE_OK);
}

/* ------------------------------------------------------------------ begin */

void engine_begin(struct engine *engine, const struct engine_way *way)
{
	const struct quire_shape shape = {
		.layout = way->layout,
		.dtype = QUIRE_F32,
		.num_layers = ENGINE_LAYERS,
		.num_pages = 1 + (way->num_tokens + way->page_size - 1) / way->page_size,
		.page_size = way->page_size,
		.num_kv_heads = ENGINE_KV_HEADS,
		.head_dim = ENGINE_DIM,
	};
	struct quire_runtime_config config;

	memset(engine, 0, sizeof(*engine));
	engine->way = *way;
	engine->dense.page_size = way->page_size;
	must(quire_device_create(way->device, &engine->device, NULL) == QUIRE_OK);
	must(quire_cache_create(engine->device, &shape, &engine->cache, NULL) ==
	     QUIRE_OK);
	must(quire_dstream_create(engine->device, "producer", &engine->producer) ==
	     QUIRE_OK);
	must(quire_dstream_create(engine->device, "reader", &engine->reader) == QUIRE_OK);
	quire_runtime_config_init(&config, engine->cache);
	config.threads = way->threads;
	config.depth = way->depth;
	config.digests = true;
	config.rows_max = ENGINE_ROWS;
	config.tables_max = ENGINE_TABLES;
	config.tokens_max = ENGINE_TABLE_TOKENS;
	config.requests_max = ENGINE_REQUESTS;
	config.user_bytes = sizeof(struct engine_user) * ENGINE_TABLES * ENGINE_ROWS;
	config.on_plan = engine_on_plan;
	must(quire_runtime_create(&config, &engine->runtime, NULL) == QUIRE_OK);
	must(quire_runtime_slots_bytes(&config, &engine->half_bytes, NULL) == QUIRE_OK);
	engine->half_bytes /= way->depth;
	engine->cache_bytes = quire_cache_nbytes(engine->cache);
	must(quire_device_alloc(engine->device,
	                        ENGINE_TABLES * (int64_t)sizeof(*engine->rows),
	                        (void **)&engine->rows) == QUIRE_OK);
}

/* ------------------------------------------------------------------ staging */

static int64_t staging_bytes(const struct engine *engine)
{
	return (int64_t)sizeof(struct engine_staging) + 2 * engine->half_bytes +
	       2 * engine->cache_bytes;
}

/* They are kept for later steps: giving pinned memory back may wait for the device. */
static struct engine_staging *take_staging(struct engine *engine)
{
	struct engine_staging *staging = engine->stagings;
	char *bytes;

	if (staging != NULL) {
		engine->stagings = staging->next;
		return staging;
	}
	must(quire_device_alloc_pinned(engine->device, staging_bytes(engine),
	                               (void **)&staging) == QUIRE_OK);
	bytes = (char *)(staging + 1);
	for (int i = 0; i < 2; i++) {
		staging->halves[i] = bytes + i * engine->half_bytes;
		staging->caches[i] =
			bytes + 2 * engine->half_bytes + i * engine->cache_bytes;
	}
	return staging;
}

static void free_stagings(struct engine *engine)
{
	while (engine->stagings != NULL) {
		struct engine_staging *staging = engine->stagings;

		engine->stagings = staging->next;
		quire_device_release_pinned(engine->device, staging,
		                            staging_bytes(engine));
	}
}

/* ------------------------------------------------------------------ other commands */

void engine_command(struct engine *engine, enum quire_command_kind kind, int32_t request,
                    const char *label, int32_t tokens)
{
	const struct quire_command command = {
		.kind = kind,
		.request = (uint64_t)request,
		.label = label,
		.keep_pages = tokens,
		.tokens = tokens,
	};
	struct engine_stream *stream =
		&engine->dense.streams[request][engine_label(label)];

	must(engine->num_commands < ENGINE_COMMANDS);
	give(engine, &command, &engine->commands[engine->num_commands++]);
	if (kind == QUIRE_COMMAND_OPEN)
		engine_dense_open(&engine->dense, request);
	else if (kind == QUIRE_COMMAND_CLOSE)
		engine_dense_close(&engine->dense, request);
	else if (kind == QUIRE_COMMAND_RESET)
		engine_dense_reset(stream);
	else if (kind == QUIRE_COMMAND_REWIND)
		engine_dense_rewind(stream, tokens);
	else if (kind == QUIRE_COMMAND_RELEASE_FRONT)
		engine_dense_release_front(stream, tokens, engine->way.page_size);
	else
		abort();
}

/* ------------------------------------------------------------------ a step, dense */

/* Every pair, for every request of the step. */
static void fork_dense(struct engine *engine, const struct engine_batch *batch,
                       const struct quire_fork *forks, int32_t n)
{
	bool done[ENGINE_REQUESTS] = {false};

	for (int32_t i = 0; i < batch->num_rows; i++) {
		int32_t request = batch->rows[i].request;

		for (int32_t pair = 0; pair < n && !done[request]; pair++)
			engine_dense_fork(&engine->dense, request, forks[pair].source,
			                  forks[pair].target);
		done[request] = true;
	}
}

static void expect_row(struct engine_record *record, const struct engine_row *row,
                       int32_t number)
{
	struct engine *engine = record->engine;
	int32_t label = engine_label(row->label);
	struct engine_stream *stream = &engine->dense.streams[row->request][label];
	int32_t at = stream->length;

	must(row->span <= ENGINE_SPAN);
	record->segments[number] = (struct quire_segment){
		.request = (uint64_t)row->request,
		.label = row->label,
		.span = row->span,
		.at = at,
		.tag = (uint64_t)(record->number * ENGINE_ROWS + number),
	};
	for (int32_t j = 0; j < row->span; j++) {
		uint32_t value = ++engine->next_value;

		record->given[number][j] = value;
		engine_dense_append(stream, (uint64_t)row->request, label, value);
		engine_dense_attend(stream, at + j + 1, &stream->tokens[at + j],
		                    record->expected[number][j]);
	}
	record->context[number] = stream->length;
	if (row->span == 0) {
		struct engine_token query =
			engine_question((uint64_t)row->request, label, stream->length);

		engine_dense_attend(stream, stream->length, &query,
		                    record->expected[number][0]);
	}
}

static void expect(struct engine_record *record, const struct engine_batch *batch)
{
	struct engine *engine = record->engine;

	record->saved = engine->dense;
	record->num_segments = batch->num_rows;
	fork_dense(engine, batch, batch->pre_forks, batch->num_pre_forks);
	for (int32_t i = 0; i < batch->num_rows; i++)
		expect_row(record, &batch->rows[i], i);
	for (int32_t i = 0; i < batch->num_rows; i++) {
		const struct engine_row *row = &batch->rows[i];

		if ((batch->flags & QUIRE_STEP_NO_COMMIT) != 0)
			engine->dense.streams[row->request][engine_label(row->label)]
				.length -= row->span;
	}
	fork_dense(engine, batch, batch->post_forks, batch->num_post_forks);
}

/* ------------------------------------------------------------------ a step, paged */

static void note_done(void *argument, uint64_t ticket,
                      const struct quire_outcome *outcome)
{
	struct engine_record *record = argument;

	(void)ticket;
	record->num_done++;
	record->done_status = outcome->refusal.status;
}

static enum quire_status produce(void *argument)
{
	struct engine_record *record = argument;

	usleep(200); /* who does not wait for the event reads zeros */
	memcpy(record->values, record->given, sizeof(record->values));
	return QUIRE_OK;
}

static enum quire_status read_outputs(void *argument)
{
	struct engine_record *record = argument;

	memcpy(record->read, record->out, sizeof(record->read));
	return QUIRE_OK;
}

static void produce_inputs(struct engine_record *record, bool events)
{
	struct engine *engine = record->engine;

	if (!events) {
		memcpy(record->values, record->given, sizeof(record->values));
		return;
	}
	must(quire_event_create(engine->device, &record->inputs) == QUIRE_OK);
	must(quire_event_create(engine->device, &record->outputs) == QUIRE_OK);
	must(quire_dstream_call(engine->producer, produce, record) == QUIRE_OK);
	must(quire_event_record(record->inputs, engine->producer) == QUIRE_OK);
}

/* The event to record may be waited for once the step is issued. */
static void consume_outputs(struct engine_record *record)
{
	struct engine *engine = record->engine;

	engine_wait(engine, record->ticket, QUIRE_STAGE_ISSUED, NULL);
	must(quire_dstream_wait_event(engine->reader, record->outputs) == QUIRE_OK);
	must(quire_dstream_call(engine->reader, read_outputs, record) == QUIRE_OK);
}

static void submit(struct engine_record *record, const struct engine_batch *batch)
{
	const struct quire_step step = {
		.segments = record->segments,
		.num_segments = record->num_segments,
		.combined = &batch->combined,
		.num_combined = batch->combined.num_labels > 0,
		.pre_forks = batch->pre_forks,
		.num_pre_forks = batch->num_pre_forks,
		.post_forks = batch->post_forks,
		.num_post_forks = batch->num_post_forks,
		.bucket_rows = batch->bucket_rows,
		.bucket_tokens = batch->bucket_tokens,
		.flags = batch->flags,
		.run = engine_work,
		.run_argument = record,
		.wait_event = record->inputs,
		.record_event = record->outputs,
		.done = note_done,
		.done_argument = record,
	};
	const struct quire_command command = {.kind = QUIRE_COMMAND_SUBMIT,
	                                      .step = &step};

	give(record->engine, &command, &record->ticket);
}

/* ------------------------------------------------------------------ what came of it */

/* The first number that is off by more than rounding explains. */
static void compare_outputs(struct engine_record *record,
                            float (*out)[ENGINE_SPAN][ENGINE_OUT], const char *whose)
{
	for (int32_t row = 0; row < record->num_segments; row++) {
		int32_t span = record->segments[row].span;
		double bound = engine_tolerance(record->context[row]);

		for (int32_t i = 0; i < (span > 0 ? span : 1) * ENGINE_OUT; i++) {
			int32_t j = i / ENGINE_OUT, number = i % ENGINE_OUT;
			double want = record->expected[row][j][number];
			double got = (double)out[row][j][number];

			if (fabs(got - want) <= bound)
				continue;
			engine_fail(record->engine, record,
			            "row %d, token %d, number %d in %s: %g, not %g", row,
			            j, number, whose, got, want);
			return;
		}
	}
}

static void compare_run(struct engine_record *record)
{
	struct engine *engine = record->engine;

	if (record->num_runs != 1)
		engine_fail(engine, record, "its work ran %d times", record->num_runs);
	if (record->wrong != NULL)
		engine_fail(engine, record, "wrong: %s", record->wrong);
	for (int32_t row = 0; row < record->num_segments; row++)
		if (record->seen[row] != 1)
			engine_fail(engine, record, "row %d is in %d tables", row,
			            record->seen[row]);
	compare_outputs(record, record->out, "its work");
}

static enum quire_status status_of(const struct engine_record *record)
{
	if (record->fate == ENGINE_ABANDONED)
		return QUIRE_ABANDONED;
	return record->fate == ENGINE_REFUSED ? record->refusal : QUIRE_OK;
}

static void finish_one(struct engine *engine)
{
	struct engine_record *record = engine->records[engine->num_finished];
	struct quire_outcome outcome;
	enum quire_status status;

	engine_wait(engine, record->ticket, QUIRE_STAGE_RETIRED, &outcome);
	status = outcome.refusal.status;
	if (status != status_of(record))
		engine_fail(engine, record, "answered %s, not %s",
		            quire_status_name(status),
		            quire_status_name(status_of(record)));
	if (record->num_done != 1 || record->done_status != status)
		engine_fail(engine, record, "its end was told %d times, as %s",
		            record->num_done, quire_status_name(record->done_status));
	if (record->fate == ENGINE_RUNS)
		compare_run(record);
	else if (record->num_runs != 0)
		engine_fail(engine, record, "ran, though it never was");
	engine->digests[engine->num_finished++] =
		status == QUIRE_OK ? outcome.digest : (uint64_t)status;
	record->staging->next = engine->stagings;
	engine->stagings = record->staging;
	record->staging = NULL;
}

/* Finish the oldest steps, all but the newest ones, as far as their fate is known. */
static void finish_all_but(struct engine *engine, int32_t newest)
{
	while (engine->num_finished + newest < engine->num_steps &&
	       engine->records[engine->num_finished]->fate != ENGINE_HELD)
		finish_one(engine);
}

struct engine_record *engine_step(struct engine *engine, const struct engine_batch *batch)
{
	struct engine_record *record = calloc(1, sizeof(*record));

	must(record != NULL && engine->num_steps < ENGINE_STEPS);
	record->engine = engine;
	record->number = engine->num_steps;
	record->staging = take_staging(engine);
	if ((batch->flags & QUIRE_STEP_SPECULATIVE) != 0)
		record->fate = ENGINE_HELD;
	expect(record, batch);
	produce_inputs(record, batch->events);
	submit(record, batch);
	if (batch->events)
		consume_outputs(record);
	engine->records[engine->num_steps++] = record;
	finish_all_but(engine, 2 * engine->way.depth);
	return record;
}

enum quire_status engine_planned(struct engine *engine, struct engine_record *record)
{
	struct quire_outcome outcome;

	engine_wait(engine, record->ticket, QUIRE_STAGE_PLANNED, &outcome);
	return outcome.refusal.status;
}

void engine_refused(struct engine *engine, struct engine_record *record,
                    enum quire_status status)
{
	record->fate = ENGINE_REFUSED;
	record->refusal = status;
	engine->dense = record->saved;
}

void engine_finish(struct engine *engine)
{
	finish_all_but(engine, 0);
}

/* ------------------------------------------------------------------ fates */

void engine_promote(struct engine *engine, struct engine_record *record)
{
	must(quire_runtime_promote(engine->runtime, record->ticket) == QUIRE_OK);
	record->fate = ENGINE_RUNS;
}

void engine_abandon(struct engine *engine, struct engine_record *record)
{
	must(quire_runtime_abandon(engine->runtime, record->ticket) == QUIRE_OK);
	for (int32_t i = record->number; i < engine->num_steps; i++)
		if (engine->records[i]->fate == ENGINE_HELD)
			engine->records[i]->fate = ENGINE_ABANDONED;
	engine->dense = record->saved;
}

/* ------------------------------------------------------------------ end */

/* In a copy of the cache. */
static bool token_is_there(const struct engine *engine, char *cache,
                           const struct engine_token *token, int32_t page, int32_t offset)
{
	for (int32_t layer = 0; layer < ENGINE_LAYERS; layer++) {
		struct engine_view view;

		engine_view_layer(engine, cache, layer, &view);
		for (int32_t i = 0; i < ENGINE_KV_HEADS * ENGINE_DIM; i++) {
			int32_t head = i / ENGINE_DIM, d = i % ENGINE_DIM;
			float k = engine_place(&view, 0, page, offset, head)[d];
			float v = engine_place(&view, 1, page, offset, head)[d];

			if (k != engine_number(token, layer, ENGINE_K, head, d) ||
			    v != engine_number(token, layer, ENGINE_V, head, d))
				return false;
		}
	}
	return true;
}

/* What a reader is told of a stream at rest, and every byte of it. */
static void compare_stream(struct engine *engine, char *cache, int32_t request,
                           int32_t label)
{
	const struct engine_stream *stream = &engine->dense.streams[request][label];
	struct quire_snapshot snapshot;
	int32_t pages[ENGINE_TOKENS];
	int32_t ps = engine->way.page_size;

	must(quire_runtime_snapshot(engine->runtime, (uint64_t)request,
	                            engine_labels[label], &snapshot, pages,
	                            ENGINE_TOKENS) == QUIRE_OK);
	if (snapshot.length != stream->length || snapshot.released != stream->released ||
	    snapshot.issued_length != stream->length ||
	    snapshot.retired_length != stream->length)
		engine_fail(engine, NULL,
		            "%d %s: lengths %lld, %lld, %lld after %lld, not %d "
		            "after %d",
		            request, engine_labels[label], (long long)snapshot.length,
		            (long long)snapshot.issued_length,
		            (long long)snapshot.retired_length,
		            (long long)snapshot.released, stream->length,
		            stream->released);
	for (int32_t i = 0; i < stream->length && engine->text[0] == 0; i++)
		if (!token_is_there(engine, cache, &stream->tokens[i], pages[i / ps],
		                    i % ps))
			engine_fail(engine, NULL, "%d %s: token %d is another", request,
			            engine_labels[label], i);
}

static void compare_streams(struct engine *engine)
{
	char *cache = malloc((size_t)engine->cache_bytes);

	must(cache != NULL);
	copy_now(engine->reader, cache, quire_cache_data_ptr(engine->cache),
	         engine->cache_bytes);
	for (int32_t request = 0; request < ENGINE_REQUESTS; request++)
		for (int32_t label = 0; label < ENGINE_LABELS; label++)
			if (engine->dense.streams[request][label].exists)
				compare_stream(engine, cache, request, label);
	free(cache);
}

static void compare_reads(struct engine *engine)
{
	must(quire_dstream_synchronize(engine->reader, NULL) == QUIRE_OK);
	for (int32_t i = 0; i < engine->num_steps; i++)
		if (engine->records[i]->outputs != NULL)
			compare_outputs(engine->records[i], engine->records[i]->read,
			                "another device stream");
}

static void compare_commands(struct engine *engine)
{
	for (int32_t i = 0; i < engine->num_commands; i++) {
		struct quire_outcome outcome;

		engine_wait(engine, engine->commands[i], QUIRE_STAGE_RETIRED, &outcome);
		if (outcome.refusal.status != QUIRE_OK)
			engine_fail(engine, NULL,
			            "command %d of those that are no steps: %s", i,
			            quire_status_name(outcome.refusal.status));
	}
}

/* All requests closed: nobody owns a page but the runtime its sink. */
static void compare_pages(struct engine *engine)
{
	struct quire_runtime_stats stats;
	struct quire_refusal refusal;

	/* A close is over when it is decided; its pages go back behind. */
	for (int i = 0; i < 20000; i++) {
		quire_runtime_stats(engine->runtime, &stats);
		if (stats.pages_retiring == 0)
			break;
		if (engine->way.threads == QUIRE_THREADS_CALLER)
			poll_once(engine);
		else
			usleep(1000);
	}
	if (stats.pages_owned != 1 || stats.pages_retiring != 0)
		engine_fail(engine, NULL, "%lld pages owned, %lld retiring at the end",
		            (long long)stats.pages_owned,
		            (long long)stats.pages_retiring);
	if (quire_runtime_check(engine->runtime, &refusal) != QUIRE_OK)
		engine_fail(engine, NULL, "broken: %s, page %d", refusal.what,
		            refusal.page);
}

static void free_records(struct engine *engine)
{
	for (int32_t i = 0; i < engine->num_steps; i++) {
		quire_event_destroy(engine->records[i]->inputs);
		quire_event_destroy(engine->records[i]->outputs);
		free(engine->records[i]);
	}
}

void engine_end(struct engine *engine)
{
	engine_finish(engine);
	must(engine->num_finished == engine->num_steps);
	drain(engine);
	compare_reads(engine);
	compare_streams(engine);
	for (int32_t request = 0; request < ENGINE_REQUESTS; request++)
		if (engine->dense.streams[request][0].exists)
			engine_command(engine, QUIRE_COMMAND_CLOSE, request, NULL, 0);
	compare_commands(engine);
	drain(engine);
	compare_pages(engine);
	quire_runtime_destroy(engine->runtime);
	quire_dstream_destroy(engine->reader);
	quire_dstream_destroy(engine->producer);
	free_records(engine);
	free_stagings(engine);
	quire_device_release(engine->device, engine->rows,
	                     ENGINE_TABLES * (int64_t)sizeof(*engine->rows));
	quire_cache_destroy(engine->cache);
	quire_device_destroy(engine->device);
}
