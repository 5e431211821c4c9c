/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "random_plan.h"
#include "tests/run_suite.h"
#include "temporary.h"

#include <quire/plans/import.h>

#define ROWS_MAX 60

static struct temporary temporary;

static void setup(void)
{
	temporary_make(&temporary);
}

static void teardown(void)
{
	temporary_end(&temporary);
}

/* Requests out of an array, as an import takes them. */
struct array {
	const struct quire_request_row *rows;
	int64_t num_rows;
	int64_t next;
	int64_t ends;              /* how often it said that there are no more */
	enum quire_status failure; /* at the end, in place of QUIRE_END */
};

static enum quire_status next_of_array(void *argument, struct quire_request_row *row_out,
                                       struct quire_refusal *refusal_out)
{
	struct array *array = argument;

	if (array->next < array->num_rows) {
		*row_out = array->rows[array->next++];
		return QUIRE_OK;
	}
	array->ends++;
	if (refusal_out != NULL)
		*refusal_out = (struct quire_refusal){
			.status = array->failure, .line = 77, .what = "made up"};
	return array->failure != QUIRE_OK ? array->failure : QUIRE_END;
}

static enum quire_status import_array(struct array *array,
                                      const struct quire_trace_header *header,
                                      struct quire_trace_writer *writer,
                                      struct quire_import_summary *summary,
                                      struct quire_refusal *refusal)
{
	const struct quire_import_input input = {next_of_array, array};

	array->next = 0;
	array->ends = 0;
	return quire_import_requests(&input, header, writer, summary, refusal);
}

/* The checker's own books of one request: it knows the trace and the rules, and nothing
 * of the importer. */
enum state {
	WAITING,
	RUNNING,
	PREEMPTED, /* open, and at the head of the line */
	WAS_RESET,
	CLOSED,
};

struct checker {
	const struct quire_request_row *rows;
	int64_t num_rows;
	const struct quire_trace_header *header;
	enum state states[ROWS_MAX];
	int64_t written[ROWS_MAX];
	int64_t prefill[ROWS_MAX]; /* tokens to write in chunks, before decode steps */
	int64_t last_open;
	bool admitting; /* since the last step nobody was preempted */
	int64_t steps, tokens, recomputed, preemptions, taken, peak;
};

static int64_t pages_for(const struct checker *checker, int64_t tokens)
{
	int64_t pages = 0;

	while (pages * checker->header->page_size < tokens)
		pages++;
	return pages;
}

static int64_t usable(const struct checker *checker)
{
	return checker->header->num_pages - (checker->header->sink ? 1 : 0);
}

static int64_t total(const struct checker *checker, int64_t row)
{
	return checker->rows[row].input_tokens + checker->rows[row].output_tokens;
}

static bool never_fits(const struct checker *checker, int64_t row)
{
	return total(checker, row) == 0 ||
	       total(checker, row) > checker->header->seq_tokens_max ||
	       pages_for(checker, total(checker, row)) > usable(checker);
}

static int64_t pages_used(const struct checker *checker)
{
	int64_t pages = 0;

	for (int64_t i = 0; i < checker->num_rows; i++)
		pages += pages_for(checker, checker->written[i]);
	return pages;
}

/* Does one fit that has to write @prefill tokens before it generates? */
static bool fits(const struct checker *checker, int64_t row, int64_t prefill)
{
	int64_t first = prefill + 1 <= total(checker, row) ? prefill + 1 : prefill;
	int64_t promised = 0, running = 0;

	for (int64_t i = 0; i < checker->num_rows; i++) {
		int64_t has = pages_for(checker, checker->written[i]);
		int64_t wants = pages_for(checker, checker->prefill[i]);

		if (checker->states[i] != RUNNING)
			continue;
		running++;
		promised += has > wants ? has : wants;
	}
	return running < checker->header->rows_max &&
	       running < checker->header->requests_max &&
	       promised + pages_for(checker, first) <= usable(checker);
}

/* The oldest that was preempted; -1: none. */
static int64_t oldest_preempted(const struct checker *checker)
{
	for (int64_t i = 0; i < checker->num_rows; i++) {
		if (checker->states[i] == PREEMPTED)
			return i;
	}
	return -1;
}

/* Preempted ones that fit run again: no command says so. */
static void run_again(struct checker *checker)
{
	int64_t row = oldest_preempted(checker);

	while (checker->admitting && row >= 0 &&
	       fits(checker, row, checker->prefill[row])) {
		checker->states[row] = RUNNING;
		row = oldest_preempted(checker);
	}
}

/* Nobody who waits would fit: whoever is at the head of the line. */
static void check_nobody_fits(struct checker *checker)
{
	int64_t row = oldest_preempted(checker);

	if (row >= 0) {
		SAME(fits(checker, row, checker->prefill[row]), false);
		return;
	}
	row = checker->last_open + 1;
	while (row < checker->num_rows && never_fits(checker, row))
		row++;
	if (row < checker->num_rows)
		SAME(fits(checker, row, checker->rows[row].input_tokens), false);
}

static void check_open(struct checker *checker, const struct quire_trace_record *record)
{
	int64_t row = (int64_t)record->command.request;
	const struct quire_trace_prefix *prefix = &checker->rows[row].prefix;

	run_again(checker);
	SAME(checker->admitting, true);
	SAME(oldest_preempted(checker), -1);
	SAME(checker->states[row], WAITING);
	SAME(never_fits(checker, row), false);
	SAME(fits(checker, row, checker->rows[row].input_tokens), true);
	SAME(row > checker->last_open, true);
	for (int64_t i = checker->last_open + 1; i < row; i++)
		SAME(never_fits(checker, i), true); /* nobody is passed over */
	SAME(record->prefix.tokens, prefix->tokens);
	SAME(record->prefix.num_keys, prefix->num_keys);
	for (int32_t i = 0; i < prefix->num_keys; i++)
		SAME(record->prefix.keys[i], prefix->keys[i]);
	checker->last_open = row;
	checker->prefill[row] = checker->rows[row].input_tokens;
	checker->states[row] = RUNNING;
}

/* The spans by the rules, one for every row, and the pages that they take. */
static int64_t spans_by_the_rules(const struct checker *checker, int64_t *spans)
{
	int64_t budget = checker->header->tokens_max, pages = 0;

	for (int64_t i = 0; i < checker->num_rows; i++) {
		spans[i] = checker->states[i] == RUNNING &&
		           checker->written[i] >= checker->prefill[i];
		budget -= spans[i];
	}
	for (int64_t i = 0; i < checker->num_rows; i++) {
		int64_t left = checker->prefill[i] - checker->written[i];

		if (checker->states[i] == RUNNING && left > 0) {
			spans[i] = left < budget ? left : budget;
			budget -= spans[i];
		}
		pages += pages_for(checker, checker->written[i] + spans[i]) -
		         pages_for(checker, checker->written[i]);
	}
	return pages;
}

static void check_preemption(struct checker *checker, int64_t row)
{
	int64_t spans[ROWS_MAX];

	run_again(checker);
	if (checker->admitting)
		check_nobody_fits(checker);
	checker->admitting = false;
	SAME(checker->states[row], RUNNING);
	for (int64_t i = row + 1; i < checker->num_rows; i++)
		SAME(checker->states[i] == RUNNING, false); /* it is the newest */
	SAME(pages_used(checker) + spans_by_the_rules(checker, spans) > usable(checker),
	     true);
	if (checker->written[row] > checker->prefill[row])
		checker->prefill[row] = checker->written[row];
	checker->recomputed += checker->written[row];
	checker->preemptions++;
	checker->written[row] = 0;
	checker->states[row] = PREEMPTED;
}

static void check_reset(struct checker *checker, const struct quire_command *command)
{
	int64_t row = (int64_t)command->request;

	SAME(strcmp(command->label, "main"), 0);
	SAME(command->keep_pages, 0);
	if (checker->written[row] < total(checker, row)) {
		check_preemption(checker, row);
		return;
	}
	SAME(checker->states[row], RUNNING);
	checker->written[row] = 0;
	checker->states[row] = WAS_RESET;
}

/* Its segments are the spans by the rules: decode steps, then prompts, oldest first. */
static void check_segments(struct checker *checker, const struct quire_step *step)
{
	int64_t spans[ROWS_MAX], tokens = 0;
	int32_t n = 0;

	SAME(pages_used(checker) + spans_by_the_rules(checker, spans) <= usable(checker),
	     true);
	checker->taken += spans_by_the_rules(checker, spans);
	for (int prompts = 0; prompts < 2; prompts++) {
		for (int64_t i = 0; i < checker->num_rows; i++) {
			const struct quire_segment *segment = &step->segments[n];
			bool prompt = checker->written[i] < checker->prefill[i];

			if (spans[i] == 0 || prompt != (prompts == 1))
				continue;
			SAME(n < step->num_segments, true);
			SAME(segment->request, (uint64_t)i);
			SAME(strcmp(segment->label, "main"), 0);
			SAME(segment->span, spans[i]);
			SAME(segment->at, checker->written[i]);
			tokens += spans[i];
			n++;
		}
	}
	SAME(step->num_segments, n);
	SAME(n > 0 && tokens <= checker->header->tokens_max, true);
	for (int64_t i = 0; i < checker->num_rows; i++)
		checker->written[i] += spans[i];
	checker->tokens += tokens;
}

static void check_step(struct checker *checker, const struct quire_step *step)
{
	int64_t pages;

	run_again(checker);
	if (checker->admitting)
		check_nobody_fits(checker);
	for (int64_t i = 0; i < checker->num_rows; i++) {
		if (checker->states[i] == RUNNING) /* the done are closed at once */
			SAME(checker->written[i] < total(checker, i), true);
		SAME(checker->states[i] == WAS_RESET, false);
	}
	check_segments(checker, step);
	pages = pages_used(checker);
	checker->peak = pages > checker->peak ? pages : checker->peak;
	checker->admitting = true;
	checker->steps++;
}

static void check_record(struct checker *checker, const struct quire_trace_record *record)
{
	int64_t row = (int64_t)record->command.request;

	SAME(record->has_outcome, false);
	switch (record->command.kind) {
	case QUIRE_COMMAND_OPEN:
		check_open(checker, record);
		break;
	case QUIRE_COMMAND_SUBMIT:
		check_step(checker, record->command.step);
		break;
	case QUIRE_COMMAND_RESET:
		check_reset(checker, &record->command);
		break;
	case QUIRE_COMMAND_CLOSE:
		SAME(checker->states[row], WAS_RESET);
		checker->states[row] = CLOSED;
		break;
	default:
		ck_abort_msg("an importer has no use for kind %d", record->command.kind);
	}
}

static void check_summary(const struct checker *checker,
                          const struct quire_import_summary *summary)
{
	int64_t refused = 0, tokens = 0;

	for (int64_t i = 0; i < checker->num_rows; i++) {
		bool never = never_fits(checker, i);

		SAME(checker->states[i], never ? WAITING : CLOSED);
		refused += never;
		tokens += never ? 0 : total(checker, i);
	}
	SAME(pages_used(checker), 0);
	SAME(summary->requests, checker->num_rows);
	SAME(summary->refused, refused);
	SAME(summary->steps, checker->steps);
	SAME(summary->tokens, checker->tokens);
	SAME(summary->tokens, tokens + checker->recomputed);
	SAME(summary->preemptions, checker->preemptions);
	SAME(summary->tokens_recomputed, checker->recomputed);
	SAME(summary->pages_taken, checker->taken);
	SAME(summary->pages_peak, checker->peak);
}

/* Answers how many were preempted. */
static int64_t check_import(const struct quire_request_row *rows, int64_t num_rows,
                            const struct quire_trace_header *header)
{
	struct checker checker = {
		.rows = rows,
		.num_rows = num_rows,
		.header = header,
		.last_open = -1,
		.admitting = true,
	};
	struct array array = {.rows = rows, .num_rows = num_rows};
	struct quire_import_summary summary;
	struct quire_trace_writer *writer;
	struct quire_trace_reader *reader;
	struct quire_trace_record record;

	SAME(quire_trace_create(temporary.path, header, &writer, NULL), QUIRE_OK);
	SAME(import_array(&array, header, writer, &summary, NULL), QUIRE_OK);
	SAME(array.ends, 1);
	SAME(quire_trace_commit(writer, NULL), QUIRE_OK);
	SAME(quire_trace_open(temporary.path, &reader, NULL), QUIRE_OK);
	while (quire_trace_next(reader, &record, NULL) == QUIRE_OK)
		check_record(&checker, &record);
	SAME(quire_trace_next(reader, &record, NULL), QUIRE_END);
	quire_trace_close(reader);
	check_summary(&checker, &summary);
	return checker.preemptions;
}

static struct quire_trace_header make_header(void)
{
	struct quire_trace_header header = {
		.layout = "NHD",
		.dtype = "bf16",
		.num_layers = 1,
		.num_kv_heads = 1,
		.head_dim = 8,
		.page_size = 16,
		.num_pages = 64,
		.sink = true,
		.rows_max = 8,
		.tokens_max = 64,
		.requests_max = 1024,
		.seq_tokens_max = 1024,
		.request_labels_max = 1,
		.tables_max = 1,
		.table_pages_max = 64,
	};

	return header;
}

START_TEST(any_import_follows_the_policy_by_plain_counters)
{
	static const int64_t keys[] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3};
	int64_t preempted = 0;

	for (uint64_t seed = 0; seed < 300; seed++) {
		uint64_t s = seed;
		struct quire_trace_header header = make_header();
		struct quire_request_row rows[ROWS_MAX] = {{0}};
		int64_t num_rows = random_in(&s, 0, ROWS_MAX);

		header.page_size = random_in(&s, 1, 20);
		header.num_pages = random_in(&s, 1, 80);
		header.sink = random_in(&s, 0, 1) == 0;
		header.rows_max = random_in(&s, 1, 8);
		header.requests_max = random_in(&s, 1, 8);
		header.tokens_max = header.rows_max + random_in(&s, 0, 40);
		header.seq_tokens_max = random_in(&s, 50, 400);
		for (int64_t i = 0; i < num_rows; i++) {
			rows[i].arrival_ns = i;
			rows[i].input_tokens =
				random_in(&s, 0, 4) == 0 ? 0 : random_in(&s, 0, 200);
			rows[i].output_tokens =
				random_in(&s, 0, 4) == 0 ? 0 : random_in(&s, 0, 60);
			if (random_in(&s, 0, 1) == 0)
				rows[i].prefix = (struct quire_trace_prefix){
					.tokens = 20,
					.num_keys = random_in(&s, 0, 10),
					.keys = keys,
				};
		}
		preempted += check_import(rows, num_rows, &header);
	}
	ck_assert_int_gt(preempted, 300);
}
END_TEST

#define HEADER_OF_TWO(num_pages)                                                 \
	"{\"quire\":\"plan-trace\",\"version\":1,\"cache\":{\"layout\":\"NHD\"," \
	"\"dtype\":\"bf16\",\"num_layers\":1,\"num_kv_heads\":1,\"head_dim\":8," \
	"\"page_size\":2},\"pool\":{\"num_pages\":" num_pages                    \
	",\"sink\":true},\"limits\":"                                            \
	"{\"rows\":2,\"tokens\":2,\"requests\":1024,\"seq_tokens\":1024,"        \
	"\"labels\":1,\"tables\":1,\"table_pages\":64},\"source\":\"\"}\n"

static void import_by_hand(const struct quire_request_row *rows, int64_t num_rows,
                           int64_t num_pages, const char *right,
                           struct quire_import_summary *summary)
{
	struct array array = {.rows = rows, .num_rows = num_rows};
	struct quire_trace_header header = make_header();
	struct quire_trace_writer *writer;

	header.page_size = 2;
	header.num_pages = num_pages;
	header.rows_max = 2;
	header.tokens_max = 2;
	ck_assert_int_eq(quire_trace_create(temporary.path, &header, &writer, NULL),
	                 QUIRE_OK);
	ck_assert_int_eq(import_array(&array, &header, writer, summary, NULL), QUIRE_OK);
	ck_assert_int_eq(quire_trace_commit(writer, NULL), QUIRE_OK);
	ck_assert(temporary_holds(&temporary, right));
}

/* Counted by hand: 2 tokens a step for rows of (3 + 1), (0 + 0), (1 + 2), a page per 2.
 */
START_TEST(a_small_import_is_the_one_made_by_hand)
{
	static const char right[] = HEADER_OF_TWO(
		"64") "{\"do\":\"open\",\"request\":0}\n"
		      "{\"do\":\"open\",\"request\":2,\"prefix\":{\"tokens\":1,\"keys\":["
		      "44]}}\n"
		      "{\"do\":\"submit\",\"segments\":[[0,\"main\",2,0]]}\n"
		      "{\"do\":\"submit\",\"segments\":[[0,\"main\",1,2],[2,\"main\",1,0]"
		      "]}\n"
		      "{\"do\":\"submit\",\"segments\":[[0,\"main\",1,3],[2,\"main\",1,1]"
		      "]}\n"
		      "{\"do\":\"reset\",\"request\":0,\"label\":\"main\",\"keep\":false}"
		      "\n"
		      "{\"do\":\"close\",\"request\":0}\n"
		      "{\"do\":\"submit\",\"segments\":[[2,\"main\",1,2]]}\n"
		      "{\"do\":\"reset\",\"request\":2,\"label\":\"main\",\"keep\":false}"
		      "\n"
		      "{\"do\":\"close\",\"request\":2}\n";
	static const int64_t key = 44;
	const struct quire_request_row rows[] = {
		{0, 3, 1, {0}}, {0, 0, 0, {0}}, {0, 1, 2, {1, 1, &key}}};
	struct quire_import_summary summary;

	import_by_hand(rows, 3, 64, right, &summary);
	ck_assert_int_eq(summary.requests, 3);
	ck_assert_int_eq(summary.refused, 1);
	ck_assert_int_eq(summary.steps, 4);
	ck_assert_int_eq(summary.tokens, 7);
	ck_assert_int_eq(summary.preemptions, 0);
	ck_assert_int_eq(summary.tokens_recomputed, 0);
	ck_assert_int_eq(summary.pages_taken, 4);
	ck_assert_int_eq(summary.pages_peak, 3);
}
END_TEST

/*
 * Three pages of 2 tokens, steps of 2 tokens; rows of (1 + 4) and (1 + 3) tokens, which
 * need 3 and 2 pages.  Both start, on a page each, and both write their second token
 * there.  Their third tokens need two pages, of which there is one: request 1 gives way,
 * and its 2 tokens have to be written again.  With the third that takes 2 pages, which
 * are not there until request 0 is done, on its third page.
 */
START_TEST(a_preemption_is_the_one_made_by_hand)
{
	static const char right[] =
		HEADER_OF_TWO("4") "{\"do\":\"open\",\"request\":0}\n"
				   "{\"do\":\"open\",\"request\":1}\n"
				   "{\"do\":\"submit\",\"segments\":[[0,\"main\",1,0],[1,"
				   "\"main\",1,0]]}\n"
				   "{\"do\":\"submit\",\"segments\":[[0,\"main\",1,1],[1,"
				   "\"main\",1,1]]}\n"
				   "{\"do\":\"reset\",\"request\":1,\"label\":\"main\","
				   "\"keep\":false}\n"
				   "{\"do\":\"submit\",\"segments\":[[0,\"main\",1,2]]}\n"
				   "{\"do\":\"submit\",\"segments\":[[0,\"main\",1,3]]}\n"
				   "{\"do\":\"submit\",\"segments\":[[0,\"main\",1,4]]}\n"
				   "{\"do\":\"reset\",\"request\":0,\"label\":\"main\","
				   "\"keep\":false}\n"
				   "{\"do\":\"close\",\"request\":0}\n"
				   "{\"do\":\"submit\",\"segments\":[[1,\"main\",2,0]]}\n"
				   "{\"do\":\"submit\",\"segments\":[[1,\"main\",1,2]]}\n"
				   "{\"do\":\"submit\",\"segments\":[[1,\"main\",1,3]]}\n"
				   "{\"do\":\"reset\",\"request\":1,\"label\":\"main\","
				   "\"keep\":false}\n"
				   "{\"do\":\"close\",\"request\":1}\n";
	const struct quire_request_row rows[] = {{0, 1, 4, {0}}, {0, 1, 3, {0}}};
	struct quire_import_summary summary;

	import_by_hand(rows, 2, 4, right, &summary);
	ck_assert_int_eq(summary.steps, 8);
	ck_assert_int_eq(summary.tokens, 11);
	ck_assert_int_eq(summary.preemptions, 1);
	ck_assert_int_eq(summary.tokens_recomputed, 2);
	ck_assert_int_eq(summary.pages_taken, 6);
	ck_assert_int_eq(summary.pages_peak, 3);
}
END_TEST

START_TEST(budgets_and_rows_out_of_range_are_refused)
{
	const struct quire_request_row rows[] = {{0, 3, 1, {0}}, {0, -1, 0, {0}}};
	struct array array = {.rows = rows, .num_rows = 2};
	struct quire_trace_header header = make_header();
	struct quire_import_summary summary = {.steps = -7};
	struct quire_trace_writer *writer;
	struct quire_refusal refusal;

	ck_assert_int_eq(quire_trace_create(temporary.path, &header, &writer, NULL),
	                 QUIRE_OK);
	ck_assert_int_eq(import_array(&array, &header, writer, &summary, &refusal),
	                 QUIRE_INVALID);
	ck_assert_ptr_nonnull(strstr(refusal.what, "request 1: tokens must be"));
	array.num_rows = 1;
	header.tokens_max = header.rows_max - 1;
	ck_assert_int_eq(import_array(&array, &header, writer, &summary, &refusal),
	                 QUIRE_INVALID);
	ck_assert_ptr_nonnull(
		strstr(refusal.what, "tokens_max must not be below rows_max 8"));
	ck_assert_int_eq(summary.steps, -7);
	quire_trace_discard(writer);
	ck_assert_int_eq(temporary_count(&temporary), 0);
}
END_TEST

START_TEST(what_the_requests_answer_ends_an_import)
{
	const struct quire_request_row rows[] = {{0, 3, 1, {0}}, {0, 3, 1, {0}}};
	struct quire_trace_header header = make_header();

	header.rows_max = 1; /* the second is asked for when the first is done */
	for (int64_t n = 0; n <= 2; n++) {
		struct array array = {
			.rows = rows, .num_rows = n, .failure = QUIRE_FORMAT};
		struct quire_import_summary summary = {.steps = -7};
		struct quire_trace_writer *writer;
		struct quire_refusal refusal;

		ck_assert_int_eq(
			quire_trace_create(temporary.path, &header, &writer, NULL),
			QUIRE_OK);
		ck_assert_int_eq(
			import_array(&array, &header, writer, &summary, &refusal),
			QUIRE_FORMAT);
		ck_assert_str_eq(refusal.what, "made up");
		ck_assert_int_eq(refusal.line, 77);
		ck_assert_int_eq(array.ends, 1);
		ck_assert_int_eq(summary.steps, -7);
		quire_trace_discard(writer);
	}
}
END_TEST

/* One row is asked for ahead of those that run, and no more: a trace need not fit in
 * memory. */
START_TEST(requests_are_asked_for_when_there_is_room_for_them)
{
	struct quire_request_row rows[ROWS_MAX];
	struct array array = {.rows = rows, .num_rows = ROWS_MAX};
	const struct quire_import_input input = {next_of_array, &array};
	struct quire_trace_header header = make_header();
	struct quire_import_summary summary;
	struct quire_trace_writer *writer;

	for (int64_t i = 0; i < ROWS_MAX; i++)
		rows[i] = (struct quire_request_row){0, 3, 50000, {0}};
	header.num_pages = 50000;
	header.seq_tokens_max = 1 << 20;
	quire_import_source("mooncake", &header);
	ck_assert_ptr_nonnull(strstr(header.source, "mooncake"));
	ck_assert_ptr_nonnull(strstr(header.source, "decode first"));
	/* The disk is full before the first request is done. */
	ck_assert_int_eq(quire_trace_create("/dev/full", &header, &writer, NULL),
	                 QUIRE_OK);
	ck_assert_int_eq(quire_import_requests(&input, &header, writer, &summary, NULL),
	                 QUIRE_IO);
	ck_assert_int_eq(array.next, header.rows_max);
	quire_trace_discard(writer);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("import");
	TCase *cases = tcase_create("import");

	tcase_add_checked_fixture(cases, setup, teardown);
	tcase_set_timeout(cases, 60);
	tcase_add_test(cases, any_import_follows_the_policy_by_plain_counters);
	tcase_add_test(cases, a_small_import_is_the_one_made_by_hand);
	tcase_add_test(cases, a_preemption_is_the_one_made_by_hand);
	tcase_add_test(cases, budgets_and_rows_out_of_range_are_refused);
	tcase_add_test(cases, what_the_requests_answer_ends_an_import);
	tcase_add_test(cases, requests_are_asked_for_when_there_is_room_for_them);
	suite_add_tcase(suite, cases);
	return run_suite(suite);
}
