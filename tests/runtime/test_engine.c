/* SPDX-License-Identifier: MIT */
/*
 * A small engine over the runtime: its paged attention, which knows a step by the device
 * half of its plan alone, equals dense attention over the same tokens, and the plans are
 * the same on every device, at every depth, whoever's threads they are.
 */
#include "config.h"

#include "engine_run.h"
#include "model_lists.h"
#include "tests/run_suite.h"

#include <check.h>
#include <string.h>

#define MAIN NULL
#define CFG  "cfg_text"
#define BEAM "beam"
#define SWAP "swap"

#define ROWS(...)                                                                       \
	.rows = {__VA_ARGS__}, .num_rows = sizeof((struct engine_row[]){__VA_ARGS__}) / \
	                                   sizeof(struct engine_row)

#define STEP(engine, ...) engine_step(engine, &(struct engine_batch){__VA_ARGS__})

#define HELD .flags = QUIRE_STEP_SPECULATIVE

static void open_requests(struct engine *engine, int32_t n)
{
	for (int32_t request = 0; request < n; request++)
		engine_command(engine, QUIRE_COMMAND_OPEN, request, NULL, 0);
}

/* ------------------------------------------------------------------ scenarios */

/* Three requests of different lengths; one's prompt comes in chunks beside the others'
 * tokens, rows change places, one is closed with steps on their way, another comes. */
static void serve(struct engine *engine)
{
	open_requests(engine, 3);
	STEP(engine, ROWS({0, MAIN, 5}, {1, MAIN, 17}));
	STEP(engine, ROWS({2, MAIN, 16}, {0, MAIN, 1}, {1, MAIN, 1}));
	STEP(engine, ROWS({1, MAIN, 1}, {2, MAIN, 16}, {0, MAIN, 1}));
	STEP(engine, ROWS({0, MAIN, 1}, {2, MAIN, 1}));
	for (int i = 0; i < 6; i++)
		STEP(engine, ROWS({2, MAIN, 1}, {0, MAIN, 1}, {1, MAIN, 1}));
	engine_command(engine, QUIRE_COMMAND_CLOSE, 1, NULL, 0);
	engine_command(engine, QUIRE_COMMAND_OPEN, 4, NULL, 0);
	STEP(engine, ROWS({0, MAIN, 1}, {4, MAIN, 40}, {2, MAIN, 1}));
	for (int i = 0; i < 10; i++)
		STEP(engine, ROWS({4, MAIN, 1}, {0, MAIN, 1}, {2, MAIN, 1}));
}

/* Two prompts of one request, guided: both labels in one step, as one table or as two;
 * the second label is read now and then without a token of its own. */
static void guide(struct engine *engine)
{
	static const char *const labels[] = {"cfg_text", "main"};
	const struct quire_combined both = {
		.name = "both", .labels = labels, .num_labels = 2};

	open_requests(engine, 2);
	STEP(engine, ROWS({0, MAIN, 19}, {0, CFG, 3}, {1, MAIN, 2}, {1, CFG, 9}),
	     .combined = both);
	for (int i = 0; i < 5; i++)
		STEP(engine, ROWS({0, MAIN, 1}, {1, MAIN, 1}, {0, CFG, 1}, {1, CFG, 1}),
		     .combined = both);
	for (int i = 0; i < 3; i++)
		STEP(engine, ROWS({1, CFG, 1}, {1, MAIN, 1}, {0, MAIN, 1}, {0, CFG, 0}));
	STEP(engine, ROWS({0, MAIN, 0}, {1, MAIN, 0}, {1, CFG, 0}), .combined = both);
	for (int i = 0; i < 3; i++)
		STEP(engine, ROWS({0, CFG, 4}, {0, MAIN, 1}), .combined = both);
}

/* A prompt is shared, then both labels go on; beams are copied and change places. */
static void fork_streams(struct engine *engine)
{
	open_requests(engine, 2);
	STEP(engine, ROWS({0, MAIN, 10}, {1, MAIN, 16}), .post_forks = {{"main", CFG}},
	     .num_post_forks = 1);
	for (int i = 0; i < 4; i++)
		STEP(engine, ROWS({0, MAIN, 1}, {0, CFG, 2}, {1, CFG, 1}, {1, MAIN, 1}));
	STEP(engine, ROWS({0, MAIN, 1}, {0, BEAM, 1}), .pre_forks = {{"main", BEAM}},
	     .num_pre_forks = 1);
	for (int i = 0; i < 3; i++) {
		STEP(engine, ROWS({0, MAIN, 1}, {0, BEAM, 1}, {1, MAIN, 1}),
		     .pre_forks = {{"main", SWAP}, {BEAM, "main"}}, .num_pre_forks = 2);
		STEP(engine, ROWS({0, BEAM, 3}, {0, MAIN, 2}),
		     .pre_forks = {{SWAP, BEAM}}, .num_pre_forks = 1);
	}
	STEP(engine, ROWS({0, CFG, 1}, {0, BEAM, 1}, {1, CFG, 1}),
	     .pre_forks = {{BEAM, CFG}}, .num_pre_forks = 1,
	     .post_forks = {{CFG, "main"}, {"main", BEAM}}, .num_post_forks = 2,
	     .flags = QUIRE_STEP_COPY_FORKS);
	for (int i = 0; i < 3; i++)
		STEP(engine, ROWS({0, MAIN, 1}, {0, CFG, 1}, {0, BEAM, 1}));
}

/* Drafts: taken, given up and done again with other tokens, given up from the middle of a
 * chain, promoted before the one below, with an ordinary step waiting behind. */
static void speculate(struct engine *engine)
{
	struct engine_record *drafts[3];

	open_requests(engine, 2);
	STEP(engine, ROWS({0, MAIN, 15}, {1, MAIN, 4}));
	for (int i = 0; i < 4; i++) {
		drafts[0] = STEP(engine, ROWS({0, MAIN, 4}, {1, MAIN, 1}), HELD);
		ck_assert_int_eq(engine_planned(engine, drafts[0]), QUIRE_OK);
		ck_assert_int_eq(drafts[0]->num_runs, 0);
		if (i % 2 == 0) {
			engine_abandon(engine, drafts[0]);
			STEP(engine, ROWS({0, MAIN, 2}, {1, MAIN, 1}));
		} else {
			engine_promote(engine, drafts[0]);
		}
	}
	for (int i = 0; i < 4; i++) {
		drafts[0] = STEP(engine, ROWS({0, MAIN, 2}, {1, MAIN, 1}), HELD);
		drafts[1] = STEP(engine, ROWS({0, MAIN, 3}, {1, BEAM, 1}), HELD,
		                 .pre_forks = {{"main", BEAM}}, .num_pre_forks = 1);
		drafts[2] = STEP(engine, ROWS({1, MAIN, 5}), HELD,
		                 .post_forks = {{"main", CFG}}, .num_post_forks = 1);
		if (i % 2 == 1)
			engine_promote(engine, drafts[1]);
		engine_promote(engine, drafts[0]);
		if (i == 3) {
			STEP(engine, ROWS({0, MAIN, 1}, {1, MAIN, 1}));
			engine_promote(engine, drafts[2]);
			continue;
		}
		engine_abandon(engine, drafts[i % 2 == 1 ? 2 : 1]);
		STEP(engine, ROWS({1, MAIN, 2}, {0, MAIN, 1}));
	}
}

/* Captured shapes: more rows and tokens than there are, in steps of one table and of
 * three, some of whose rows are empty. */
static void pad(struct engine *engine)
{
	static const char *const labels[] = {"main", "beam"};
	const struct quire_combined both = {
		.name = "both", .labels = labels, .num_labels = 2};

	open_requests(engine, 3);
	STEP(engine, ROWS({0, MAIN, 9}, {1, MAIN, 1}), .bucket_rows = 4,
	     .bucket_tokens = 32);
	for (int i = 0; i < 4; i++)
		STEP(engine, ROWS({0, MAIN, 1}, {1, MAIN, 1}), .bucket_rows = 8,
		     .bucket_tokens = 8);
	STEP(engine, ROWS({0, BEAM, 2}, {1, CFG, 7}, {2, SWAP, 1}), .bucket_rows = 2,
	     .bucket_tokens = 7);
	for (int i = 0; i < 3; i++)
		STEP(engine, ROWS({0, BEAM, 1}, {0, MAIN, 0}, {1, CFG, 0}, {1, MAIN, 1}),
		     .bucket_rows = 3, .bucket_tokens = 64, .combined = both);
	STEP(engine, ROWS({1, CFG, 0}, {1, MAIN, 0}), .bucket_rows = 5,
	     .bucket_tokens = 5);
}

/* Tokens that go again: from the end, from the front, all of them, and those that were
 * written but do not count. */
static void forget(struct engine *engine)
{
	open_requests(engine, 2);
	STEP(engine, ROWS({0, MAIN, 37}, {1, MAIN, 8}));
	engine_command(engine, QUIRE_COMMAND_REWIND, 0, NULL, 5);
	STEP(engine, ROWS({0, MAIN, 3}, {1, MAIN, 1}), .flags = QUIRE_STEP_NO_COMMIT);
	STEP(engine, ROWS({0, MAIN, 2}, {1, MAIN, 1}));
	engine_command(engine, QUIRE_COMMAND_REWIND, 1, NULL, 9);
	STEP(engine, ROWS({1, MAIN, 6}, {0, MAIN, 1}), .post_forks = {{"main", CFG}},
	     .num_post_forks = 1);
	engine_command(engine, QUIRE_COMMAND_RELEASE_FRONT, 0, NULL, 30);
	for (int i = 0; i < 12; i++) {
		engine_command(engine, QUIRE_COMMAND_RELEASE_FRONT, 0, NULL, 5);
		engine_command(engine, QUIRE_COMMAND_RELEASE_FRONT, 0, CFG,
		               i < 6 ? 4 : 0);
		STEP(engine, ROWS({0, MAIN, 5}, {0, CFG, 1}, {1, CFG, 1}));
	}
	engine_command(engine, QUIRE_COMMAND_RESET, 0, NULL, 1);
	engine_command(engine, QUIRE_COMMAND_RESET, 1, NULL, 0);
	STEP(engine, ROWS({0, MAIN, 20}, {1, MAIN, 20}),
	     .flags = QUIRE_STEP_NO_COMMIT | QUIRE_STEP_COPY_FORKS,
	     .post_forks = {{"main", CFG}}, .num_post_forks = 1);
	STEP(engine, ROWS({0, MAIN, 21}, {1, CFG, 3}, {0, CFG, 1}));
}

/* Inputs come from one device stream and outputs go to another, host threads aside. */
static void pass_on(struct engine *engine)
{
	open_requests(engine, 2);
	STEP(engine, ROWS({0, MAIN, 12}, {1, MAIN, 3}), .events = true);
	for (int i = 0; i < 5; i++) {
		STEP(engine, ROWS({0, MAIN, 1}, {1, MAIN, 2}), .events = true);
		STEP(engine, ROWS({1, MAIN, 1}));
	}
	STEP(engine, ROWS({0, MAIN, 1}, {0, BEAM, 1}), .events = true,
	     .pre_forks = {{"main", BEAM}}, .num_pre_forks = 1);
	STEP(engine, ROWS({1, MAIN, 1}, {0, BEAM, 1}), .events = true,
	     .post_forks = {{"main", BEAM}}, .num_post_forks = 1);
}

/* Two requests fill the pool of 96 tokens at 48 each.  The step that finds no page is
 * refused, and so is the one submitted behind it.  One request gives way: it is computed
 * again when the other is done. */
static void preempt(struct engine *engine)
{
	struct engine_record *newest, *ahead;

	open_requests(engine, 2);
	newest = STEP(engine, ROWS({0, MAIN, 30}, {1, MAIN, 30}));
	for (int length = 31; length < 50; length++) {
		ahead = STEP(engine, ROWS({0, MAIN, 1}, {1, MAIN, 1}));
		ck_assert_int_eq(engine_planned(engine, newest), QUIRE_OK);
		newest = ahead;
	}
	ahead = STEP(engine, ROWS({1, MAIN, 1}, {0, MAIN, 1}));
	ck_assert_int_eq(engine_planned(engine, newest), QUIRE_NO_PAGES);
	ck_assert_int_eq(engine_planned(engine, ahead), QUIRE_STALE);
	engine_refused(engine, ahead, QUIRE_STALE);
	engine_refused(engine, newest, QUIRE_NO_PAGES);
	engine_command(engine, QUIRE_COMMAND_RESET, 1, NULL, 0);
	for (int i = 0; i < 20; i++)
		STEP(engine, ROWS({0, MAIN, 1}));
	engine_command(engine, QUIRE_COMMAND_CLOSE, 0, NULL, 0);
	STEP(engine, ROWS({1, MAIN, 48}));
	for (int i = 0; i < 10; i++)
		STEP(engine, ROWS({1, MAIN, 1}));
}

/* ------------------------------------------------------------------ a life by dice */

#define LIFE_REQUESTS 4
#define LIFE_LABELS   3
#define LIFE_LENGTH   24 /* from where on a stream is read only */
#define LIFE_SPAN     6

static void roll_forks(struct dice *dice, struct quire_fork *forks, int32_t *n)
{
	int32_t source = dice_below(dice, LIFE_LABELS);
	int32_t target = (source + 1 + dice_below(dice, LIFE_LABELS - 1)) % LIFE_LABELS;

	if (!dice_percent(dice, 25))
		return;
	forks[0] = (struct quire_fork){engine_labels[source], engine_labels[target]};
	/* The second pair reads what the first has made. */
	forks[1] = (struct quire_fork){engine_labels[target], engine_labels[source]};
	*n = dice_percent(dice, 70) ? 1 : 2;
}

static void roll_row(struct engine *engine, struct dice *dice, struct engine_batch *batch,
                     int32_t request, int32_t label)
{
	const struct engine_stream *stream = &engine->dense.streams[request][label];
	int32_t span = dice_percent(dice, 60) ? 1 : dice_below(dice, LIFE_SPAN + 1);

	if (!dice_percent(dice, 45) || batch->num_rows == ENGINE_ROWS)
		return;
	if (stream->length >= LIFE_LENGTH)
		span = 0;
	if (span == 0 && !stream->exists)
		return;
	batch->rows[batch->num_rows++] =
		(struct engine_row){request, engine_labels[label], span};
}

/* The first two labels that have rows, the second first. */
static void roll_combined(struct dice *dice, struct engine_batch *batch,
                          const char *labels[2])
{
	if (!dice_percent(dice, 30))
		return;
	labels[1] = batch->rows[0].label;
	for (int32_t i = 1; i < batch->num_rows; i++) {
		labels[0] = batch->rows[i].label;
		if (strcmp(labels[0], labels[1]) != 0) {
			batch->combined = (struct quire_combined){"both", labels, 2};
			return;
		}
	}
}

static struct engine_record *roll_step(struct engine *engine, struct dice *dice,
                                       uint32_t flags)
{
	struct engine_batch batch = {.flags = flags};
	const char *labels[2];
	int32_t first = dice_below(dice, LIFE_REQUESTS);

	for (int32_t i = 0; i < LIFE_REQUESTS * LIFE_LABELS; i++)
		roll_row(engine, dice, &batch, (first + i / LIFE_LABELS) % LIFE_REQUESTS,
		         i % LIFE_LABELS);
	if (batch.num_rows == 0)
		batch.rows[batch.num_rows++] = (struct engine_row){first, "main", 0};
	roll_forks(dice, batch.pre_forks, &batch.num_pre_forks);
	roll_forks(dice, batch.post_forks, &batch.num_post_forks);
	roll_combined(dice, &batch, labels);
	if (dice_percent(dice, 30)) {
		batch.bucket_rows = ENGINE_ROWS;
		batch.bucket_tokens = ENGINE_ROWS * LIFE_SPAN;
	}
	if (dice_percent(dice, 10))
		batch.flags |= QUIRE_STEP_NO_COMMIT;
	if (dice_percent(dice, 20))
		batch.flags |= QUIRE_STEP_COPY_FORKS;
	if ((flags & QUIRE_STEP_SPECULATIVE) == 0)
		batch.events = dice_percent(dice, 10);
	return engine_step(engine, &batch);
}

/* A chain of drafts, some of which come true. */
static void roll_drafts(struct engine *engine, struct dice *dice)
{
	struct engine_record *drafts[4];
	int32_t n = 1 + dice_below(dice, 4), promoted = dice_below(dice, n + 1);

	for (int32_t i = 0; i < n; i++)
		drafts[i] = roll_step(engine, dice, QUIRE_STEP_SPECULATIVE);
	for (int32_t i = 0; i < promoted; i++)
		engine_promote(engine, drafts[i]);
	if (promoted < n)
		engine_abandon(engine, drafts[promoted]);
}

static void roll_command(struct engine *engine, struct dice *dice)
{
	int32_t request = dice_below(dice, LIFE_REQUESTS);
	int32_t label = dice_below(dice, LIFE_LABELS), roll = dice_below(dice, 100);
	const struct engine_stream *stream = &engine->dense.streams[request][label];

	if (roll < 20) {
		engine_command(engine, QUIRE_COMMAND_CLOSE, request, NULL, 0);
		engine_command(engine, QUIRE_COMMAND_OPEN, request, NULL, 0);
	} else if (!stream->exists) {
		return;
	} else if (roll < 35) {
		engine_command(engine, QUIRE_COMMAND_RESET, request, engine_labels[label],
		               dice_below(dice, 2));
	} else {
		engine_command(engine,
		               roll < 70 ? QUIRE_COMMAND_REWIND
		                         : QUIRE_COMMAND_RELEASE_FRONT,
		               request, engine_labels[label],
		               dice_below(dice, stream->length + 1));
	}
}

static void live(struct engine *engine, struct dice *dice)
{
	open_requests(engine, LIFE_REQUESTS);
	for (int32_t i = 0; i < 120; i++) {
		int32_t roll = dice_below(dice, 100);

		if (roll < 25)
			roll_command(engine, dice);
		else if (roll < 85)
			roll_step(engine, dice, 0);
		else
			roll_drafts(engine, dice);
	}
}

static void live_first(struct engine *engine)
{
	struct dice dice;

	dice_seed(&dice, 1);
	live(engine, &dice);
}

static void live_second(struct engine *engine)
{
	struct dice dice;

	dice_seed(&dice, 2);
	live(engine, &dice);
}

/* ------------------------------------------------------------------ every way */

#define WAYS (3 * 3)

/* Each device at each depth; each of both with either kind of threads. */
static struct engine_way way_number(int32_t i, int32_t page_size, int32_t num_tokens)
{
	return (struct engine_way){
		.device = test_devices[i % 3],
		.threads = i % 2 == 0 ? QUIRE_THREADS_CALLER : QUIRE_THREADS_LIBRARY,
		.depth = 1 + i / 3,
		.page_size = page_size,
		.layout = i % 4 < 2 ? QUIRE_NHD : QUIRE_HND,
		.num_tokens = num_tokens,
	};
}

/* The plans of the first way are what those of all others must be. */
static void run_every_way(void (*scenario)(struct engine *), int32_t number,
                          int32_t num_tokens)
{
	static const int32_t page_sizes[] = {1, 3, 16};
	static struct engine first, other;

	for (int32_t i = 0; i < WAYS; i++) {
		const struct engine_way way =
			way_number(i, page_sizes[number], num_tokens);
		struct engine *engine = i == 0 ? &first : &other;

		engine_begin(engine, &way);
		scenario(engine);
		engine_end(engine);
		ck_assert_msg(engine->text[0] == 0, "%s", engine->text);
		ck_assert_int_gt(engine->num_steps, 0);
		ck_assert_int_eq(engine->num_steps, first.num_steps);
		for (int32_t step = 0; step < engine->num_steps; step++)
			ck_assert_msg(engine->digests[step] == first.digests[step],
			              "step %d has another digest on %s at depth %d",
			              step, way.device, way.depth);
	}
}

START_TEST(prefill_in_chunks_and_decode_equal_dense_attention)
{
	run_every_way(serve, _i, 512);
}
END_TEST

START_TEST(two_labels_of_a_request_in_one_step_attend_each_to_its_own)
{
	run_every_way(guide, _i, 512);
}
END_TEST

START_TEST(forks_go_on_from_the_same_tokens_and_do_not_disturb_each_other)
{
	run_every_way(fork_streams, _i, 512);
}
END_TEST

START_TEST(drafts_count_once_promoted_and_leave_nothing_when_abandoned)
{
	run_every_way(speculate, _i, 512);
}
END_TEST

START_TEST(padding_writes_to_the_sink_and_nowhere_else)
{
	run_every_way(pad, _i, 512);
}
END_TEST

START_TEST(what_was_taken_back_or_released_is_not_attended_to)
{
	run_every_way(forget, _i, 512);
}
END_TEST

START_TEST(a_step_waits_for_its_inputs_and_tells_when_its_outputs_are_there)
{
	run_every_way(pass_on, _i, 512);
}
END_TEST

START_TEST(a_request_that_gave_way_is_computed_again)
{
	run_every_way(preempt, _i, 96);
}
END_TEST

START_TEST(a_life_by_dice_equals_dense_attention)
{
	run_every_way(live_first, _i, 800);
	run_every_way(live_second, _i, 800);
}
END_TEST

/* ------------------------------------------------------------------ the test itself */

/* The tolerance leaves no room for one token more, less or different. */
START_TEST(dense_attention_tells_one_token_from_another)
{
	struct engine_stream stream = {.length = 0};
	double whole[ENGINE_OUT], other[ENGINE_OUT];

	for (uint32_t i = 0; i < ENGINE_TOKENS; i++)
		engine_dense_append(&stream, 3, 1, i);
	engine_dense_attend(&stream, ENGINE_TOKENS, &stream.tokens[7], whole);
	for (int32_t kind = 0; kind < 4; kind++) {
		struct engine_stream changed = stream;
		struct engine_token *token = &changed.tokens[ENGINE_TOKENS / 2];
		double off = 0;

		token->value += kind == 0;
		token->position += kind == 1;
		token->label += kind == 2;
		changed.length -= kind == 3;
		engine_dense_attend(&changed, changed.length, &stream.tokens[7], other);
		for (int32_t i = 0; i < ENGINE_OUT; i++)
			off = off > whole[i] - other[i] ? off : whole[i] - other[i];
		ck_assert_double_gt(off, 10 * engine_tolerance(ENGINE_TOKENS));
	}
}
END_TEST

/* Over one token attention is its V; over two of equal scores their mean. */
START_TEST(dense_attention_is_right_where_it_can_be_told_by_hand)
{
	struct engine_stream stream = {.length = 0};
	double out[ENGINE_OUT];
	struct engine_token query;

	engine_dense_append(&stream, 1, 0, 5);
	query = engine_question(1, 0, 1);
	engine_dense_attend(&stream, 1, &query, out);
	ck_assert_double_eq(out[0],
	                    (double)engine_number(&stream.tokens[0], 0, ENGINE_V, 0, 0));
	ck_assert_double_eq(out[ENGINE_OUT - 1],
	                    (double)engine_number(&stream.tokens[0], ENGINE_LAYERS - 1,
	                                          ENGINE_V, ENGINE_KV_HEADS - 1,
	                                          ENGINE_DIM - 1));
	stream.tokens[1] = stream.tokens[0];
	engine_dense_attend(&stream, 2, &query, out);
	ck_assert_double_eq(out[0],
	                    (double)engine_number(&stream.tokens[0], 0, ENGINE_V, 0, 0));
	engine_dense_attend(&stream, 0, &query, out);
	ck_assert_double_eq(out[0], 0);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("engine");
	TCase *own = tcase_create("dense side"), *ways = tcase_create("ways");

	tcase_add_test(own, dense_attention_tells_one_token_from_another);
	tcase_add_test(own, dense_attention_is_right_where_it_can_be_told_by_hand);
	suite_add_tcase(s, own);
	tcase_set_timeout(ways, 120);
	tcase_add_loop_test(ways, prefill_in_chunks_and_decode_equal_dense_attention, 0,
	                    3);
	tcase_add_loop_test(
		ways, two_labels_of_a_request_in_one_step_attend_each_to_its_own, 0, 3);
	tcase_add_loop_test(
		ways, forks_go_on_from_the_same_tokens_and_do_not_disturb_each_other, 0,
		3);
	tcase_add_loop_test(
		ways, drafts_count_once_promoted_and_leave_nothing_when_abandoned, 0, 3);
	tcase_add_loop_test(ways, padding_writes_to_the_sink_and_nowhere_else, 0, 3);
	tcase_add_loop_test(ways, what_was_taken_back_or_released_is_not_attended_to, 0,
	                    3);
	tcase_add_loop_test(
		ways, a_step_waits_for_its_inputs_and_tells_when_its_outputs_are_there, 0,
		3);
	tcase_add_loop_test(ways, a_request_that_gave_way_is_computed_again, 0, 3);
	tcase_add_loop_test(ways, a_life_by_dice_equals_dense_attention, 0, 3);
	suite_add_tcase(s, ways);
	return s;
}

int main(void)
{
	return run_suite(suite());
}
