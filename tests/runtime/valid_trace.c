/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "fixture.h"
#include "tests/plans/random_plan.h"
#include "valid_trace.h"

#include <inttypes.h>
#include <stdio.h>

/*
 * The state is small, so every step on top of another has a whole copy of it: to abandon
 * is to go back to a copy.  That is all that this has in common with a runtime, or with
 * anything else that keeps lengths.
 */

#define REQUESTS 4
#define LABELS   3
#define HELD_MAX 6
#define LIVE_MAX 200 /* tokens of a stream */

static const char *const names[LABELS] = {"main", "a", "b"};

struct state {
	bool open[REQUESTS];
	bool there[REQUESTS][LABELS];
	int32_t length[REQUESTS][LABELS];
};

struct maker {
	uint64_t seed;
	struct quire_trace_writer *writer;
	int32_t written;
	uint64_t id;
	struct state state; /* with all that is held */
	struct {
		uint64_t id;
		bool promoted;
		struct state before;
	} held[HELD_MAX]; /* each rests on the ones below */
	int32_t num_held;
};

static const struct quire_trace_header valid_header = {
	.layout = "NHD",
	.dtype = "f32",
	.num_layers = 1,
	.num_kv_heads = 1,
	.head_dim = 2,
	.page_size = VALID_TRACE_PAGE_SIZE,
	.num_pages = 4096,
	.sink = true,
	.rows_max = 16,
	.tokens_max = 512,
	.requests_max = REQUESTS,
	.seq_tokens_max = 1 << 20,
	.request_labels_max = LABELS,
	.tables_max = 4,
	.table_pages_max = 4096,
	.source = "by chance",
};

static int32_t in(struct maker *maker, int32_t low, int32_t high)
{
	return random_in(&maker->seed, low, high);
}

static void write_record(struct maker *maker, struct quire_trace_record *record)
{
	must(quire_trace_write(maker->writer, record, NULL) == QUIRE_OK);
	maker->written++;
}

/* ------------------------------------------------------------------ steps */

struct made_step {
	struct quire_step step;
	struct quire_segment segments[REQUESTS * LABELS];
	struct quire_fork forks[2][LABELS];
	struct quire_combined combined;
	const char *labels[LABELS];
	int32_t request[REQUESTS * LABELS], label[REQUESTS * LABELS];
};

static void apply_forks(struct state *state, const struct made_step *made, int list,
                        int32_t num)
{
	for (int32_t f = 0; f < num; f++) {
		int32_t from = (int32_t)(made->forks[list][f].source == names[1]) +
		               2 * (made->forks[list][f].source == names[2]);
		int32_t to = (int32_t)(made->forks[list][f].target == names[1]) +
		             2 * (made->forks[list][f].target == names[2]);
		bool done[REQUESTS] = {false};

		for (int32_t i = 0; i < made->step.num_segments; i++) {
			int32_t r = made->request[i];

			if (done[r] || !state->there[r][from])
				continue;
			done[r] = true;
			state->there[r][to] = true;
			state->length[r][to] = state->length[r][from];
		}
	}
}

/* Distinct targets, never their own sources. */
static int32_t make_forks(struct maker *maker, struct quire_fork *forks)
{
	int32_t num = in(maker, 0, 3) == 0 ? in(maker, 1, LABELS - 1) : 0;
	int32_t first = in(maker, 0, LABELS - 1);

	for (int32_t f = 0; f < num; f++) {
		int32_t target = (first + f) % LABELS;
		int32_t source = (target + in(maker, 1, LABELS - 1)) % LABELS;

		forks[f] = (struct quire_fork){names[source], names[target]};
	}
	return num;
}

/* Each stream of an open request may be in it; false: there is none that can. */
static bool choose_segments(struct maker *maker, const struct state *state,
                            struct made_step *made)
{
	int32_t n = 0, most = in(maker, 1, 4),
		first = in(maker, 0, REQUESTS * LABELS - 1);

	for (int32_t k = 0; k < REQUESTS * LABELS && n < most; k++) {
		int32_t place = (first + k * 5) % (REQUESTS * LABELS);

		if (!state->open[place / LABELS] || in(maker, 0, 2) == 0)
			continue;
		made->request[n] = place / LABELS;
		made->label[n++] = place % LABELS;
	}
	made->step.num_segments = n;
	return n > 0;
}

static void fill_segments(struct maker *maker, const struct state *state,
                          struct made_step *made)
{
	for (int32_t i = 0; i < made->step.num_segments; i++) {
		int32_t r = made->request[i], l = made->label[i];
		bool there = state->there[r][l];
		int32_t length = there ? state->length[r][l] : 0;
		int32_t span = in(maker, 0, 3) == 0 && there ? 0 : in(maker, 1, 9);

		made->segments[i] = (struct quire_segment){
			.request = (uint64_t)r,
			.label = names[l],
			.span = there && length > LIVE_MAX ? 0 : span,
			.at = in(maker, 0, 4) == 0 ? QUIRE_AT_ANY : length,
		};
	}
}

/* One table of some of the labels that the step has. */
static void make_combined(struct maker *maker, struct made_step *made)
{
	int32_t num = 0;

	for (int32_t l = 0; l < LABELS; l++) {
		bool has = false;

		for (int32_t i = 0; i < made->step.num_segments; i++)
			has |= made->label[i] == l;
		if (has && in(maker, 0, 2) > 0)
			made->labels[num++] = names[l];
	}
	made->combined = (struct quire_combined){"both", made->labels, num};
	made->step.combined = &made->combined;
	made->step.num_combined = num > 0 && in(maker, 0, 2) == 0;
}

/* A step on a state, which becomes what it leaves. */
static bool make_step(struct maker *maker, struct state *state, struct made_step *made)
{
	struct quire_step *step = &made->step;
	bool commit = in(maker, 0, 7) > 0;

	*step = (struct quire_step){.segments = made->segments};
	if (!choose_segments(maker, state, made))
		return false;
	step->pre_forks = made->forks[0];
	step->post_forks = made->forks[1];
	step->num_pre_forks = make_forks(maker, made->forks[0]);
	step->num_post_forks = make_forks(maker, made->forks[1]);
	apply_forks(state, made, 0, step->num_pre_forks);
	fill_segments(maker, state, made);
	for (int32_t i = 0; i < step->num_segments; i++) {
		int32_t *length = &state->length[made->request[i]][made->label[i]];
		bool *there = &state->there[made->request[i]][made->label[i]];

		if (!*there)
			*length = 0;
		*there = true;
		*length += commit ? made->segments[i].span : 0;
	}
	apply_forks(state, made, 1, step->num_post_forks);
	make_combined(maker, made);
	if (in(maker, 0, 3) == 0) {
		step->bucket_tokens = 256;
		step->bucket_rows = 16;
	}
	step->flags = (commit ? 0u : QUIRE_STEP_NO_COMMIT) |
	              (in(maker, 0, 3) == 0 ? QUIRE_STEP_COPY_FORKS : 0u);
	return true;
}

/* ------------------------------------------------------------------ commands */

/* An ordinary command on a state; false: none was written. */
static bool write_ordinary(struct maker *maker, struct state *state)
{
	struct quire_trace_record record = {.id = 0};
	struct quire_command *command = &record.command;
	struct made_step made;
	int32_t r = in(maker, 0, REQUESTS - 1), l = in(maker, 0, LABELS - 1);
	int32_t *length = &state->length[r][l];
	int32_t kind = in(maker, 0, 11);

	command->request = (uint64_t)r;
	command->label = names[l];
	if (!state->open[r]) {
		command->kind = QUIRE_COMMAND_OPEN;
		state->open[r] = true;
		state->there[r][0] = true;
		state->length[r][0] = 0;
		record.prefix.tokens = in(maker, 0, 1);
	} else if (kind == 0) {
		command->kind = QUIRE_COMMAND_CLOSE;
		state->open[r] = false;
		for (int32_t k = 0; k < LABELS; k++)
			state->there[r][k] = false;
	} else if (kind == 1 && state->there[r][l]) {
		command->kind = QUIRE_COMMAND_RESET;
		command->keep_pages = in(maker, 0, 1);
		*length = 0;
	} else if (kind == 2 && state->there[r][l]) {
		command->kind = QUIRE_COMMAND_REWIND;
		command->tokens = in(maker, 0, *length);
		*length -= command->tokens;
	} else if (kind == 3 && state->there[r][l]) {
		int32_t pages, held = (*length + VALID_TRACE_PAGE_SIZE - 1) /
		                      VALID_TRACE_PAGE_SIZE;

		command->kind = QUIRE_COMMAND_RELEASE_FRONT;
		command->tokens = in(maker, 0, *length);
		pages = command->tokens / VALID_TRACE_PAGE_SIZE;
		if (held > 0 && pages == held)
			pages--;
		*length -= pages * VALID_TRACE_PAGE_SIZE;
	} else {
		if (!make_step(maker, state, &made))
			return false;
		command->kind = QUIRE_COMMAND_SUBMIT;
		command->step = &made.step;
		record.id = in(maker, 0, 1) == 0 ? ++maker->id : 0;
	}
	write_record(maker, &record);
	return true;
}

static void write_guess(struct maker *maker)
{
	struct quire_trace_record record = {.id = ++maker->id};
	struct state before = maker->state;
	struct made_step made;

	if (!make_step(maker, &maker->state, &made))
		return;
	made.step.flags |= QUIRE_STEP_SPECULATIVE;
	record.command.kind = QUIRE_COMMAND_SUBMIT;
	record.command.step = &made.step;
	record.has_base = in(maker, 0, 3) > 0;
	for (int32_t i = maker->num_held - 1; i >= 0 && record.base == 0; i--)
		record.base = maker->held[i].promoted ? 0 : maker->held[i].id;
	if (!record.has_base)
		record.base = 0;
	write_record(maker, &record);
	maker->held[maker->num_held].id = record.id;
	maker->held[maker->num_held].promoted = false;
	maker->held[maker->num_held++].before = before;
}

static void write_decision(struct maker *maker, enum quire_command_kind kind, int32_t i)
{
	struct quire_trace_record record = {
		.command = {.kind = kind, .target = maker->held[i].id}};

	write_record(maker, &record);
}

static void promote(struct maker *maker, int32_t i)
{
	int32_t done = 0;

	write_decision(maker, QUIRE_COMMAND_PROMOTE, i);
	maker->held[i].promoted = true;
	while (done < maker->num_held && maker->held[done].promoted)
		done++;
	memmove(&maker->held[0], &maker->held[done],
	        (size_t)(maker->num_held - done) * sizeof(maker->held[0]));
	maker->num_held -= done;
}

static void abandon(struct maker *maker, int32_t i)
{
	write_decision(maker, QUIRE_COMMAND_ABANDON, i);
	maker->state = maker->held[i].before;
	maker->num_held = i;
}

/* The fates of all that is held, after ordinary commands that have to wait for them. */
static void write_waiting(struct maker *maker)
{
	int32_t left = in(maker, 0, maker->num_held); /* are promoted */
	struct state state;

	while (left < maker->num_held && maker->held[left].promoted)
		left++;
	state = left < maker->num_held ? maker->held[left].before : maker->state;
	for (int32_t n = in(maker, 0, 2); n > 0; n--)
		(void)write_ordinary(maker, &state);
	if (left < maker->num_held)
		abandon(maker, left);
	while (maker->num_held > 0) {
		int32_t i = in(maker, 0, maker->num_held - 1);

		while (maker->held[i].promoted)
			i = (i + 1) % maker->num_held;
		promote(maker, i);
	}
	maker->state = state;
}

static void write_one(struct maker *maker)
{
	int32_t i = maker->num_held > 0 ? in(maker, 0, maker->num_held - 1) : 0;

	if (maker->num_held == 0 && in(maker, 0, 2) > 0) {
		(void)write_ordinary(maker, &maker->state);
		return;
	}
	if (maker->num_held == HELD_MAX || in(maker, 0, 4) == 0) {
		write_waiting(maker);
		return;
	}
	if (maker->num_held == 0 || in(maker, 0, 2) > 0)
		write_guess(maker);
	else if (!maker->held[i].promoted && in(maker, 0, 2) == 0)
		abandon(maker, i);
	else if (!maker->held[i].promoted)
		promote(maker, i);
}

enum quire_status valid_trace_put(void *file, const void *bytes, size_t n)
{
	return fwrite(bytes, 1, n, file) == n ? QUIRE_OK : QUIRE_IO;
}

void valid_trace_write(const char *path, uint64_t seed, int32_t commands)
{
	static struct maker maker;
	FILE *file = fopen(path, "w");
	const struct quire_trace_output output = {.write = valid_trace_put,
	                                          .argument = file};

	must(file != NULL);
	memset(&maker, 0, sizeof(maker));
	maker.seed = seed;
	must(quire_trace_create_to(&output, &valid_header, &maker.writer, NULL) ==
	     QUIRE_OK);
	while (maker.written < commands)
		write_one(&maker);
	must(quire_trace_commit(maker.writer, NULL) == QUIRE_OK);
	must(fclose(file) == 0);
}

/* ------------------------------------------------------------------ a runtime's word */

#define COMMANDS_MAX 4096

struct given {
	uint64_t id, base, ticket;
	bool has_base;
	int64_t line;
	enum quire_command_kind kind;
};

static uint64_t ticket_of(const struct given *given, int32_t n, uint64_t id)
{
	for (int32_t i = 0; i < n; i++) {
		if (id != 0 && given[i].id == id)
			return given[i].ticket;
	}
	return 0;
}

static void configure(struct fixture *f, const struct quire_trace_header *header)
{
	fixture_begin(f, "cpu:inline", header->num_pages, header->page_size);
	f->config.sink = header->sink;
	f->config.depth = 64;
	f->config.commands_max = 1024;
	f->config.tickets_max = 2 * COMMANDS_MAX;
	f->config.speculative_max = 64;
	f->config.requests_max = (int32_t)header->requests_max;
	f->config.request_labels_max = (int32_t)header->request_labels_max;
	f->config.rows_max = (int32_t)header->rows_max;
	f->config.tokens_max = (int32_t)header->tokens_max;
	f->config.tables_max = (int32_t)header->tables_max;
	f->config.seq_tokens_max = (int32_t)header->seq_tokens_max;
	fixture_create(f);
}

/* Give one command.  What is refused at the call is not OK either. */
static bool give(struct fixture *f, const struct quire_trace_record *record,
                 struct given *given, int32_t n)
{
	struct quire_command command = record->command;

	given[n] = (struct given){
		.id = record->id,
		.base = record->base,
		.has_base = record->has_base,
		.line = record->line,
		.kind = command.kind,
	};
	settle(f);
	if (command.kind != QUIRE_COMMAND_PROMOTE &&
	    command.kind != QUIRE_COMMAND_ABANDON)
		return quire_runtime_try_command(f->runtime, &command, &given[n].ticket,
		                                 NULL) == QUIRE_OK;
	command.target = ticket_of(given, n, command.target);
	return quire_runtime_try_command(f->runtime, &command, NULL, NULL) == QUIRE_OK;
}

/* Was no speculative step refused, as far as they are planned?  Once they are abandoned
 * nobody can tell. */
static bool stand(struct fixture *f, const struct given *given, int32_t n)
{
	struct quire_outcome outcome;

	settle(f);
	for (int32_t i = 0; i < n; i++) {
		if (given[i].kind == QUIRE_COMMAND_SUBMIT &&
		    quire_runtime_wait(f->runtime, given[i].ticket, QUIRE_STAGE_PLANNED,
		                       0, &outcome) == QUIRE_OK &&
		    outcome.refusal.status != QUIRE_OK &&
		    outcome.refusal.status != QUIRE_ABANDONED)
			return false;
	}
	return true;
}

/* Is it as it has to be? */
static bool came_out(struct fixture *f, const struct given *given, int32_t i,
                     struct quire_outcome *outcome)
{
	if (given[i].ticket == 0) /* a promote, an abandon: answered at the call */
		return true;
	outcome->refusal = (struct quire_refusal){.status = QUIRE_END, .what = ""};
	if (quire_runtime_wait(f->runtime, given[i].ticket, QUIRE_STAGE_RETIRED, 0,
	                       outcome) != QUIRE_OK)
		return false;
	if (given[i].base != 0 && ticket_of(given, i, given[i].base) == 0)
		return false;
	if (given[i].kind == QUIRE_COMMAND_SUBMIT &&
	    outcome->refusal.status == QUIRE_ABANDONED)
		return true;
	return outcome->refusal.status == QUIRE_OK &&
	       (!given[i].has_base ||
	        outcome->base == ticket_of(given, i, given[i].base));
}

bool valid_trace_holds(const char *path, bool tell)
{
	static struct given given[COMMANDS_MAX];
	struct quire_trace_reader *reader;
	struct quire_trace_record record;
	struct fixture f;
	bool holds = true;
	int32_t n = 0;

	must(quire_trace_open(path, &reader, NULL) == QUIRE_OK);
	configure(&f, quire_trace_header(reader));
	while (holds && quire_trace_next(reader, &record, NULL) == QUIRE_OK) {
		must(n < COMMANDS_MAX);
		if (record.command.kind == QUIRE_COMMAND_ABANDON)
			holds = stand(&f, given, n);
		holds &= give(&f, &record, given, n++);
		if (!holds && tell)
			fprintf(stderr, "%s:%" PRId64 ": does not hold by then\n", path,
			        record.line);
	}
	for (int32_t i = 0; i < n; i++) { /* whatever is open still, one by one */
		holds = holds && stand(&f, given, n);
		must(quire_runtime_abandon(f.runtime, given[i].ticket) != QUIRE_CLOSED);
	}
	settle(&f);
	for (int32_t i = 0; holds && i < n; i++) {
		struct quire_outcome outcome;
		char text[256];

		holds = came_out(&f, given, i, &outcome);
		if (holds || !tell)
			continue;
		quire_refusal_text(&outcome.refusal, text, sizeof(text));
		fprintf(stderr, "%s:%" PRId64 ": does not hold: %s\n", path,
		        given[i].line, text);
	}
	quire_trace_close(reader);
	fixture_end(&f);
	return holds;
}
