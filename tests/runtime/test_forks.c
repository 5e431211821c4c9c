/* SPDX-License-Identifier: MIT */
/* Bytes: whatever is forked, rewound, released, written again or abandoned, every stream
 * reads back its own tokens.  Against a plain array for each stream. */
#include "config.h"

#include "fixture.h"
#include "tests/run_suite.h"

#include <check.h>

#define NUM_PAGES 2048 /* so many that no step is refused */
#define LAYERS    2    /* of the fixture's cache */
#define REQUESTS  2
#define LABELS    4
#define LENGTH    70 /* tokens of a stream, at most */
#define SEGMENTS  5
#define PAIRS     3
#define COMMANDS  300
#define SEED      20261203
#ifndef LISTS /* of each test's, of its four page sizes in turn */
#define LISTS 16
#endif
#define ROW (2 * FIXTURE_HEADS * FIXTURE_DIM) /* floats of a token: K, then V */

static const char *const names[LABELS] = {"main", "a", "b", "c"};

static uint64_t random_state;

static int32_t random_below(int32_t n)
{
	random_state ^= random_state << 13; /* Marsaglia's xorshift64 */
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (int32_t)((random_state >> 16) % (uint64_t)n);
}

/* ------------------------------------------------------------------ the model */

struct stream {
	bool exists;
	int32_t length;
	int32_t tokens[LENGTH]; /* each written token has a number of its own */
};

struct model {
	struct stream streams[REQUESTS][LABELS];
};

static struct model model;
static int32_t page_size;
static int32_t tokens_written;

static float value_of(int32_t token, int32_t layer, int32_t place)
{
	return (float)((token * LAYERS + layer) * ROW + place);
}

/* ------------------------------------------------------------------ a step */

struct pairs {
	int32_t num;
	int32_t source[PAIRS], target[PAIRS];
};

struct action {
	int32_t num; /* segments */
	int32_t request[SEGMENTS], label[SEGMENTS], span[SEGMENTS], at[SEGMENTS];
	int32_t first_token[SEGMENTS]; /* written by a segment, the next ones follow */
	struct pairs pre, post;
	uint32_t flags;
};

static void draw_pairs(struct pairs *pairs)
{
	bool taken[LABELS] = {false};

	pairs->num = 0;
	if (random_below(2) == 0)
		return;
	for (int32_t n = random_below(PAIRS + 1); n > 0; n--) {
		int32_t source = random_below(LABELS), target = random_below(LABELS);

		if (source == target || taken[target])
			continue;
		taken[target] = true;
		pairs->source[pairs->num] = source;
		pairs->target[pairs->num++] = target;
	}
}

static bool is_in_batch(const struct action *action, int32_t request)
{
	for (int32_t i = 0; i < action->num; i++)
		if (action->request[i] == request)
			return true;
	return false;
}

static void fork_all(struct model *m, const struct action *action,
                     const struct pairs *pairs)
{
	for (int32_t i = 0; i < pairs->num; i++)
		for (int32_t r = 0; r < REQUESTS; r++)
			if (is_in_batch(action, r) &&
			    m->streams[r][pairs->source[i]].exists)
				m->streams[r][pairs->target[i]] =
					m->streams[r][pairs->source[i]];
}

/* Spans around the bounds of a page. */
static int32_t draw_span(void)
{
	const int32_t spans[] = {
		0, 1, page_size - 1, page_size, page_size + 1, 2 * page_size + 1};

	return spans[random_below(6)];
}

static bool has_segment(const struct action *action, int32_t request, int32_t label)
{
	for (int32_t i = 0; i < action->num; i++)
		if (action->request[i] == request && action->label[i] == label)
			return true;
	return false;
}

/* A segment that cannot be refused, once the pre-forks have been applied to @m; false:
 * none was found. */
static bool add_segment(struct action *action, const struct model *m, int32_t request)
{
	int32_t label = random_below(LABELS), n = action->num, span = draw_span();
	const struct stream *stream = &m->streams[request][label];

	if (has_segment(action, request, label) || (!stream->exists && span == 0) ||
	    stream->length + span > LENGTH)
		return false;
	action->request[n] = request;
	action->label[n] = label;
	action->span[n] = span;
	action->at[n] = stream->length;
	action->first_token[n] = tokens_written;
	tokens_written += span;
	action->num++;
	return true;
}

/* What the segments and the post-forks make of @m. */
static void apply(const struct action *action, struct model *m)
{
	for (int32_t i = 0; i < action->num; i++) {
		struct stream *s = &m->streams[action->request[i]][action->label[i]];

		s->exists = true;
		for (int32_t t = 0; t < action->span[i]; t++)
			s->tokens[s->length + t] = action->first_token[i] + t;
		if ((action->flags & QUIRE_STEP_NO_COMMIT) == 0)
			s->length += action->span[i];
	}
	fork_all(m, action, &action->post);
}

/* A segment at least of every request that was in the batch when its pre-forks were
 * applied; false: some could not be found. */
static bool draw_segments(struct action *action, const struct model *m, int32_t request,
                          bool both)
{
	action->num = 0;
	for (int tries = 0; tries < 20 && !is_in_batch(action, request); tries++)
		add_segment(action, m, request);
	for (int tries = 0; both && tries < 20 && !is_in_batch(action, 1 - request);
	     tries++)
		add_segment(action, m, 1 - request);
	while (action->num < SEGMENTS && random_below(3) != 0)
		add_segment(action, m, both ? random_below(REQUESTS) : request);
	return is_in_batch(action, request) &&
	       (!both || is_in_batch(action, 1 - request));
}

/* A step, applied to @m; false: there is none. */
static bool draw_step(struct action *action, struct model *m)
{
	bool both = random_below(2) == 0;
	int32_t request = random_below(REQUESTS);

	*action = (struct action){.num = 1, .request = {request}};
	if (random_below(4) == 0)
		action->flags |= QUIRE_STEP_NO_COMMIT;
	if (random_below(3) == 0)
		action->flags |= QUIRE_STEP_COPY_FORKS;
	if (random_below(3) == 0)
		action->flags |= QUIRE_STEP_SPECULATIVE;
	draw_pairs(&action->pre);
	draw_pairs(&action->post);
	fork_all(m, action, &action->pre);
	action->request[0] = 1 - request;
	if (both)
		fork_all(m, action, &action->pre);
	if (!draw_segments(action, m, request, both))
		return false;
	apply(action, m);
	return true;
}

/* ------------------------------------------------------------------ the runtime */

/* The device may work behind the polls. */
static struct quire_outcome finish(struct fixture *f, uint64_t ticket)
{
	struct quire_outcome outcome;

	for (;;) {
		uint32_t value = quire_runtime_idle_value(f->runtime);

		settle(f);
		if (quire_runtime_wait(f->runtime, ticket, QUIRE_STAGE_RETIRED, 0,
		                       &outcome) != QUIRE_TIMEOUT)
			return outcome;
		ck_assert_int_eq(quire_runtime_idle(f->runtime, value, QUIRE_NO_DEADLINE),
		                 QUIRE_OK);
	}
}

/* K and V of a table's new tokens, packed as the rows are. */
struct rows {
	float k[SEGMENTS * LENGTH * FIXTURE_DIM];
	float v[SEGMENTS * LENGTH * FIXTURE_DIM];
};

/* In the device's memory, and a stream of the test's own to and from there. */
static struct {
	struct quire_dstream *dstream;
	struct rows (*rows)[LAYERS];         /* [LABELS] */
	float (*reads)[LAYERS][LENGTH][ROW]; /* [REQUESTS * LABELS] */
} there;

#define ROWS_BYTES  ((int64_t)(LABELS * sizeof(*there.rows)))
#define READS_BYTES ((int64_t)(REQUESTS * LABELS * sizeof(*there.reads)))

static void there_begin(struct quire_device *device)
{
	ck_assert_int_eq(quire_dstream_create(device, "test", &there.dstream), QUIRE_OK);
	ck_assert_int_eq(quire_device_alloc(device, ROWS_BYTES, (void **)&there.rows),
	                 QUIRE_OK);
	ck_assert_int_eq(quire_device_alloc(device, READS_BYTES, (void **)&there.reads),
	                 QUIRE_OK);
}

static void there_end(struct quire_device *device)
{
	quire_device_release(device, there.reads, READS_BYTES);
	quire_device_release(device, there.rows, ROWS_BYTES);
	quire_dstream_destroy(there.dstream);
}

static void pack(const struct action *action, int32_t label, int32_t layer,
                 struct rows *rows)
{
	int32_t n = 0;

	for (int32_t i = 0; i < action->num; i++)
		for (int32_t t = 0; action->label[i] == label && t < action->span[i];
		     t++, n++)
			for (int32_t d = 0; d < FIXTURE_DIM; d++) {
				int32_t token = action->first_token[i] + t;

				rows->k[n * FIXTURE_DIM + d] = value_of(token, layer, d);
				rows->v[n * FIXTURE_DIM + d] =
					value_of(token, layer, FIXTURE_DIM + d);
			}
}

/* Writes for every table: labels in order of first appearance. */
static int32_t add_writes(const struct action *action, struct quire_work *work)
{
	static struct rows rows[LABELS][LAYERS];
	bool seen[LABELS] = {false};
	int32_t num_work = 0, table = 0;

	for (int32_t i = 0; i < action->num; i++) {
		int32_t label = action->label[i];

		if (seen[label])
			continue;
		seen[label] = true;
		for (int32_t layer = 0; layer < LAYERS; layer++) {
			pack(action, label, layer, &rows[table][layer]);
			work[num_work++] = (struct quire_work){
				.kind = QUIRE_WORK_WRITE,
				.layer = layer,
				.write = {.table = table,
			                  .dtype = QUIRE_F32,
			                  .k = there.rows[table][layer].k,
			                  .v = there.rows[table][layer].v}};
		}
		table++;
	}
	copy_now(there.dstream, there.rows, rows, ROWS_BYTES);
	return num_work;
}

static int32_t name_pairs(const struct pairs *pairs, struct quire_fork *forks)
{
	for (int32_t i = 0; i < pairs->num; i++)
		forks[i] = (struct quire_fork){names[pairs->source[i]],
		                               names[pairs->target[i]]};
	return pairs->num;
}

/* Run the step; of a speculative one it is drawn whether it is promoted: true. */
static bool run_step(struct fixture *f, const struct action *action)
{
	struct quire_segment segments[SEGMENTS];
	struct quire_work work[LABELS * LAYERS];
	struct quire_fork pre[PAIRS], post[PAIRS];
	bool speculative = (action->flags & QUIRE_STEP_SPECULATIVE) != 0;
	bool kept = !speculative || random_below(2) == 0;
	const struct quire_step step = {
		.segments = segments,
		.num_segments = action->num,
		.pre_forks = pre,
		.num_pre_forks = name_pairs(&action->pre, pre),
		.post_forks = post,
		.num_post_forks = name_pairs(&action->post, post),
		.flags = action->flags,
		.work = work,
		.num_work = add_writes(action, work),
	};
	uint64_t ticket;

	for (int32_t i = 0; i < action->num; i++)
		segments[i] =
			(struct quire_segment){.request = (uint64_t)action->request[i],
		                               .label = names[action->label[i]],
		                               .span = action->span[i],
		                               .at = action->at[i]};
	ticket = submit(f, &step);
	if (speculative) {
		settle(f);
		ck_assert_int_eq(kept ? quire_runtime_promote(f->runtime, ticket)
		                      : quire_runtime_abandon(f->runtime, ticket),
		                 QUIRE_OK);
	}
	ck_assert_int_eq(finish(f, ticket).refusal.status,
	                 kept ? QUIRE_OK : QUIRE_ABANDONED);
	return kept;
}

/* ------------------------------------------------------------------ reading back */

static float read_rows[REQUESTS * LABELS][LAYERS][LENGTH][ROW];

static void compare(const struct stream *stream, float rows[LAYERS][LENGTH][ROW])
{
	for (int32_t layer = 0; layer < LAYERS; layer++)
		for (int32_t t = 0; t < stream->length; t++)
			for (int32_t i = 0; i < ROW; i++)
				ck_assert_float_eq(rows[layer][t][i],
				                   value_of(stream->tokens[t], layer, i));
}

/* Every stream's whole context, in one step. */
static void read_all(struct fixture *f)
{
	const struct stream *streams[REQUESTS * LABELS];
	struct quire_segment segments[REQUESTS * LABELS];
	struct quire_work work[REQUESTS * LABELS * LAYERS];
	struct quire_step step = {.segments = segments, .work = work};
	struct quire_refusal refusal;

	for (int32_t r = 0; r < REQUESTS; r++)
		for (int32_t l = 0; l < LABELS; l++) {
			const struct stream *stream = &model.streams[r][l];
			int32_t n = step.num_segments;

			if (!stream->exists)
				continue;
			streams[n] = stream;
			segments[n] = (struct quire_segment){.request = (uint64_t)r,
			                                     .label = names[l],
			                                     .at = stream->length};
			for (int32_t layer = 0; layer < LAYERS; layer++)
				work[step.num_work++] = (struct quire_work){
					.kind = QUIRE_WORK_READ,
					.layer = layer,
					.read = {.segment = n,
				                 .count = stream->length,
				                 .out = there.reads[n][layer]}};
			step.num_segments++;
		}
	ck_assert_int_eq(finish(f, submit(f, &step)).refusal.status, QUIRE_OK);
	copy_now(there.dstream, read_rows, there.reads, READS_BYTES);
	for (int32_t n = 0; n < step.num_segments; n++)
		compare(streams[n], read_rows[n]);
	ck_assert_int_eq(quire_runtime_check(f->runtime, &refusal), QUIRE_OK);
}

/* ------------------------------------------------------------------ other commands */

static void take_back(struct fixture *f, int32_t request, int32_t label, int32_t tokens)
{
	uint64_t ticket;

	ck_assert_int_eq(quire_runtime_rewind(f->runtime, (uint64_t)request, names[label],
	                                      tokens, &ticket),
	                 QUIRE_OK);
	ck_assert_int_eq(finish(f, ticket).refusal.status, QUIRE_OK);
	model.streams[request][label].length -= tokens;
}

static void change_stream(struct fixture *f, int32_t request, int32_t label)
{
	struct stream *stream = &model.streams[request][label];
	struct quire_command command = {.request = (uint64_t)request,
	                                .label = names[label],
	                                .tokens = random_below(stream->length + 1)};
	int32_t last = (stream->length + page_size - 1) / page_size - 1, front;
	uint64_t ticket;

	if (!stream->exists)
		return;
	switch (random_below(5)) {
	case 0:
		command.kind = QUIRE_COMMAND_RESET;
		command.keep_pages = random_below(2);
		stream->length = 0;
		break;
	case 1:
		command.kind = QUIRE_COMMAND_RELEASE_FRONT;
		front = command.tokens / page_size;
		front = (stream->length == 0 || front < last ? front : last) * page_size;
		stream->length -= front;
		memmove(stream->tokens, stream->tokens + front,
		        (size_t)stream->length * sizeof(stream->tokens[0]));
		break;
	default:
		take_back(f, request, label, command.tokens);
		return;
	}
	ck_assert_int_eq(quire_runtime_command(f->runtime, &command, &ticket, NULL),
	                 QUIRE_OK);
	ck_assert_int_eq(finish(f, ticket).refusal.status, QUIRE_OK);
}

/* A fork at the end of a page, then back into that page, by one or both. */
static void rewind_into_shared(struct fixture *f, int32_t request, int32_t source)
{
	struct action action = {
		.num = 1,
		.request = {request},
		.label = {source},
		.at = {model.streams[request][source].length},
		.post = {1, {source}, {(source + 1 + random_below(LABELS - 1)) % LABELS}},
	};
	int32_t rest = page_size - action.at[0] % page_size;

	if (action.at[0] + rest > LENGTH)
		return;
	action.span[0] = rest;
	action.first_token[0] = tokens_written;
	tokens_written += rest;
	apply(&action, &model);
	run_step(f, &action);
	take_back(f, request, source, random_below(page_size));
	if (random_below(2) == 0)
		take_back(f, request, action.post.target[0], random_below(page_size));
}

static void open_again(struct fixture *f, int32_t request)
{
	ck_assert_int_eq(close_now(f, (uint64_t)request), QUIRE_OK);
	ck_assert_int_eq(open_now(f, (uint64_t)request), QUIRE_OK);
	memset(model.streams[request], 0, sizeof(model.streams[request]));
	model.streams[request][0].exists = true;
}

static void go_on(struct fixture *f)
{
	struct model after = model;
	struct action action;
	int32_t kind = random_below(40);

	if (kind == 0) {
		open_again(f, random_below(REQUESTS));
	} else if (kind < 10) {
		change_stream(f, random_below(REQUESTS), random_below(LABELS));
	} else if (kind < 20) {
		rewind_into_shared(f, random_below(REQUESTS), random_below(LABELS));
	} else if (draw_step(&action, &after)) {
		if (run_step(f, &action))
			model = after;
	}
}

static void run_list(const char *device, int32_t size, uint64_t seed)
{
	struct quire_runtime_stats stats;
	struct fixture f;

	page_size = size;
	random_state = seed;
	tokens_written = 1;
	memset(&model, 0, sizeof(model));
	fixture_begin(&f, device, NUM_PAGES, size);
	f.config.depth = 1 + (int32_t)(seed % 4);
	fixture_create(&f);
	there_begin(f.device);
	for (int32_t r = 0; r < REQUESTS; r++) {
		ck_assert_int_eq(open_now(&f, (uint64_t)r), QUIRE_OK);
		model.streams[r][0].exists = true;
	}
	for (int i = 0; i < COMMANDS; i++) {
		go_on(&f);
		read_all(&f);
	}
	stats = stats_of(&f);
	ck_assert_uint_gt(stats.copies, stats.first_writes);
	/* Where a page has more than one token, some were rewound into. */
	if (size == 1)
		ck_assert_uint_eq(stats.first_writes, 0);
	else
		ck_assert_uint_gt(stats.first_writes, 10);
	quire_runtime_destroy(f.runtime);
	there_end(f.device);
	quire_cache_destroy(f.cache);
	quire_device_destroy(f.device);
}

static const int32_t page_sizes[] = {1, 2, 4, 16};

START_TEST(every_stream_reads_back_its_own_tokens)
{
	run_list(TEST_DEVICE_OTHER, page_sizes[_i % 4], SEED + (uint64_t)_i);
}
END_TEST

START_TEST(every_stream_reads_back_its_own_tokens_from_a_device_that_is_behind)
{
	run_list(TEST_DEVICE_LATE, page_sizes[_i % 4], SEED + 100 + (uint64_t)_i);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("forks");
	TCase *tcase = tcase_create("forks");

	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, every_stream_reads_back_its_own_tokens, 0, LISTS);
	tcase_add_loop_test(
		tcase,
		every_stream_reads_back_its_own_tokens_from_a_device_that_is_behind, 0,
		4);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
