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

/* The checker's own books of one request: it knows the trace, and nothing of the
 * importer. */
enum state {
	WAITING,
	OPEN,
	WAS_RESET,
	CLOSED,
};

struct checker {
	const struct quire_requests *requests;
	const struct quire_trace_header *header;
	enum state states[ROWS_MAX];
	int64_t written[ROWS_MAX];
	int64_t opened_at[ROWS_MAX]; /* place in the order of opens */
	int64_t opens, steps, tokens, pages, taken, peak, closed, last_open;
};

static int64_t pages_for(const struct checker *checker, int64_t tokens)
{
	int64_t pages = 0;

	while (pages * checker->header->page_size < tokens)
		pages++;
	return pages;
}

static int64_t total(const struct checker *checker, int64_t row)
{
	return checker->requests->rows[row].input_tokens +
	       checker->requests->rows[row].output_tokens;
}

static bool never_fits(const struct checker *checker, int64_t row)
{
	int64_t usable = checker->header->num_pages - (checker->header->sink ? 1 : 0);

	return total(checker, row) == 0 ||
	       total(checker, row) > checker->header->seq_tokens_max ||
	       pages_for(checker, total(checker, row)) > usable;
}

/* Number of requests that run, and the pages that all of them may come to need. */
static int64_t count_open(const struct checker *checker, int64_t *pages_out)
{
	int64_t count = 0;

	*pages_out = 0;
	for (int64_t i = 0; i < checker->requests->num_rows; i++) {
		if (checker->states[i] != OPEN)
			continue;
		count++;
		*pages_out += pages_for(checker, total(checker, i));
	}
	return count;
}

/* Would the head of the waiting line be opened by the rules? */
static bool head_fits(const struct checker *checker)
{
	int64_t usable = checker->header->num_pages - (checker->header->sink ? 1 : 0);
	int64_t head = checker->last_open + 1;
	int64_t pages, count = count_open(checker, &pages);

	while (head < checker->requests->num_rows && never_fits(checker, head))
		head++;
	return head < checker->requests->num_rows && count < checker->header->rows_max &&
	       count < checker->header->requests_max &&
	       pages + pages_for(checker, total(checker, head)) <= usable;
}

static void check_open(struct checker *checker, int64_t row)
{
	SAME(checker->states[row], WAITING);
	SAME(never_fits(checker, row), false);
	SAME(head_fits(checker), true);
	for (int64_t i = checker->last_open + 1; i < row; i++)
		SAME(never_fits(checker, i), true); /* nobody is passed over */
	SAME(row > checker->last_open, true);
	checker->last_open = row;
	checker->opened_at[row] = checker->opens++;
	checker->states[row] = OPEN;
}

/* One segment; @decodes: only decode tokens came before it in the step. */
static void check_segment(struct checker *checker, const struct quire_segment *segment,
                          bool *decodes, int64_t *place)
{
	int64_t row = (int64_t)segment->request;
	int64_t input = checker->requests->rows[row].input_tokens;
	bool decode = checker->written[row] >= input;
	int64_t before = pages_for(checker, checker->written[row]);

	SAME(checker->states[row], OPEN);
	SAME(strcmp(segment->label, "main"), 0);
	SAME(segment->at, checker->written[row]);
	SAME(segment->span >= 1, true);
	SAME(decode && !*decodes, false);
	if (!decode && *decodes)
		*place = -1; /* prompts start: their order begins anew */
	*decodes = decode;
	SAME(checker->opened_at[row] > *place, true);
	*place = checker->opened_at[row];
	if (decode)
		SAME(segment->span, 1);
	else
		SAME(segment->span <= input - checker->written[row], true);
	checker->written[row] += segment->span;
	SAME(checker->written[row] <= total(checker, row), true);
	checker->tokens += segment->span;
	checker->taken += pages_for(checker, checker->written[row]) - before;
	checker->pages += pages_for(checker, checker->written[row]) - before;
}

/* After a step: every request that decodes had its token, and no prompt waits beside
 * budget. */
static void check_step(struct checker *checker, const struct quire_step *step)
{
	int64_t before[ROWS_MAX], tokens = 0, place = -1, prompt_left = 0;
	bool decodes = true;

	memcpy(before, checker->written, sizeof(before));
	SAME(head_fits(checker), false);
	for (int32_t i = 0; i < step->num_segments; i++) {
		tokens += step->segments[i].span;
		check_segment(checker, &step->segments[i], &decodes, &place);
	}
	SAME(step->num_segments <= checker->header->rows_max, true);
	SAME(tokens <= checker->header->tokens_max, true);
	for (int64_t i = 0; i < checker->requests->num_rows; i++) {
		int64_t input = checker->requests->rows[i].input_tokens;

		if (checker->states[i] != OPEN)
			continue;
		SAME(before[i] < total(checker, i),
		     true); /* the done are closed at once */
		if (before[i] >= input)
			SAME(checker->written[i], before[i] + 1);
		else if (checker->written[i] < input)
			prompt_left++;
	}
	SAME(prompt_left == 0 || tokens == checker->header->tokens_max, true);
	SAME(checker->pages <= checker->header->num_pages - checker->header->sink, true);
	checker->peak = checker->pages > checker->peak ? checker->pages : checker->peak;
	checker->steps++;
}

static void check_record(struct checker *checker, const struct quire_trace_record *record)
{
	int64_t row = (int64_t)record->command.request;

	SAME(record->has_outcome, false);
	switch (record->command.kind) {
	case QUIRE_COMMAND_OPEN:
		check_open(checker, row);
		break;
	case QUIRE_COMMAND_SUBMIT:
		check_step(checker, record->command.step);
		break;
	case QUIRE_COMMAND_RESET:
		SAME(checker->states[row], OPEN);
		SAME(checker->written[row], total(checker, row));
		SAME(strcmp(record->command.label, "main"), 0);
		SAME(record->command.keep_pages, 0);
		checker->states[row] = WAS_RESET;
		checker->pages -= pages_for(checker, total(checker, row));
		break;
	case QUIRE_COMMAND_CLOSE:
		SAME(checker->states[row], WAS_RESET);
		checker->states[row] = CLOSED;
		checker->closed++;
		break;
	default:
		ck_abort_msg("an importer has no use for kind %d", record->command.kind);
	}
}

static int64_t progress_done;

static void on_progress(void *argument, int64_t done, int64_t of)
{
	SAME(argument == &progress_done, true);
	SAME(done >= progress_done && done <= of, true);
	progress_done = done;
}

static void check_import(const struct quire_requests *requests,
                         const struct quire_trace_header *header)
{
	struct checker checker = {
		.requests = requests, .header = header, .last_open = -1};
	struct quire_import_summary summary;
	struct quire_trace_writer *writer;
	struct quire_trace_reader *reader;
	struct quire_trace_record record;
	int64_t refused = 0;

	progress_done = 0;
	SAME(quire_trace_create(temporary.path, header, &writer, NULL), QUIRE_OK);
	SAME(quire_import_requests(requests, header, writer, on_progress, &progress_done,
	                           &summary, NULL),
	     QUIRE_OK);
	SAME(quire_trace_commit(writer, NULL), QUIRE_OK);
	SAME(quire_trace_open(temporary.path, &reader, NULL), QUIRE_OK);
	while (quire_trace_next(reader, &record, NULL) == QUIRE_OK)
		check_record(&checker, &record);
	SAME(quire_trace_next(reader, &record, NULL), QUIRE_END);
	quire_trace_close(reader);
	for (int64_t i = 0; i < requests->num_rows; i++) {
		SAME(checker.states[i], never_fits(&checker, i) ? WAITING : CLOSED);
		refused += never_fits(&checker, i);
	}
	SAME(checker.pages, 0);
	SAME(summary.requests, requests->num_rows);
	SAME(summary.refused, refused);
	SAME(summary.steps, checker.steps);
	SAME(summary.tokens, checker.tokens);
	SAME(summary.pages_taken, checker.taken);
	SAME(summary.pages_peak, checker.peak);
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
	for (uint64_t seed = 0; seed < 150; seed++) {
		uint64_t s = seed;
		struct quire_trace_header header = make_header();
		struct quire_request_row rows[ROWS_MAX];
		struct quire_requests requests = {"azure", rows,
		                                  random_in(&s, 0, ROWS_MAX)};

		header.page_size = random_in(&s, 1, 20);
		header.num_pages = random_in(&s, 1, 80);
		header.sink = random_in(&s, 0, 1) == 0;
		header.rows_max = random_in(&s, 1, 8);
		header.requests_max = random_in(&s, 1, 8);
		header.tokens_max = header.rows_max + random_in(&s, 0, 40);
		header.seq_tokens_max = random_in(&s, 50, 400);
		for (int64_t i = 0; i < requests.num_rows; i++) {
			rows[i].arrival_ns = i;
			rows[i].input_tokens =
				random_in(&s, 0, 4) == 0 ? 0 : random_in(&s, 0, 200);
			rows[i].output_tokens =
				random_in(&s, 0, 4) == 0 ? 0 : random_in(&s, 0, 60);
		}
		check_import(&requests, &header);
	}
}
END_TEST

/* Counted by hand: 2 tokens a step for rows of (3 + 1), (0 + 0), (1 + 2), a page per 2.
 */
START_TEST(a_small_import_is_the_one_made_by_hand)
{
	static const char right[] =
		"{\"quire\":\"plan-trace\",\"version\":1,\"cache\":{\"layout\":\"NHD\","
		"\"dtype\":\"bf16\",\"num_layers\":1,\"num_kv_heads\":1,\"head_dim\":8,"
		"\"page_size\":2},\"pool\":{\"num_pages\":64,\"sink\":true},\"limits\":"
		"{\"rows\":2,\"tokens\":2,\"requests\":1024,\"seq_tokens\":1024,"
		"\"labels\":1,\"tables\":1,\"table_pages\":64},\"source\":\"\"}\n"
		"{\"do\":\"open\",\"request\":0}\n"
		"{\"do\":\"open\",\"request\":2}\n"
		"{\"do\":\"submit\",\"segments\":[[0,\"main\",2,0]]}\n"
		"{\"do\":\"submit\",\"segments\":[[0,\"main\",1,2],[2,\"main\",1,0]]}\n"
		"{\"do\":\"submit\",\"segments\":[[0,\"main\",1,3],[2,\"main\",1,1]]}\n"
		"{\"do\":\"reset\",\"request\":0,\"label\":\"main\",\"keep\":false}\n"
		"{\"do\":\"close\",\"request\":0}\n"
		"{\"do\":\"submit\",\"segments\":[[2,\"main\",1,2]]}\n"
		"{\"do\":\"reset\",\"request\":2,\"label\":\"main\",\"keep\":false}\n"
		"{\"do\":\"close\",\"request\":2}\n";
	struct quire_request_row rows[] = {{0, 3, 1}, {0, 0, 0}, {0, 1, 2}};
	struct quire_requests requests = {"azure", rows, 3};
	struct quire_trace_header header = make_header();
	struct quire_import_summary summary;
	struct quire_trace_writer *writer;

	header.page_size = 2;
	header.rows_max = 2;
	header.tokens_max = 2;
	ck_assert_int_eq(quire_trace_create(temporary.path, &header, &writer, NULL),
	                 QUIRE_OK);
	ck_assert_int_eq(quire_import_requests(&requests, &header, writer, NULL, NULL,
	                                       &summary, NULL),
	                 QUIRE_OK);
	ck_assert_int_eq(quire_trace_commit(writer, NULL), QUIRE_OK);
	ck_assert(temporary_holds(&temporary, right));
	ck_assert_int_eq(summary.refused, 1);
	ck_assert_int_eq(summary.steps, 4);
	ck_assert_int_eq(summary.tokens, 7);
	ck_assert_int_eq(summary.pages_taken, 4);
	ck_assert_int_eq(summary.pages_peak, 3);
}
END_TEST

START_TEST(budgets_and_rows_out_of_range_are_refused)
{
	struct quire_request_row rows[] = {{0, 3, 1}, {0, -1, 0}};
	struct quire_requests requests = {"azure", rows, 1};
	struct quire_trace_header header = make_header();
	struct quire_import_summary summary = {.steps = -7};
	struct quire_trace_writer *writer;
	struct quire_refusal refusal;

	ck_assert_int_eq(quire_trace_create(temporary.path, &header, &writer, NULL),
	                 QUIRE_OK);
	requests.num_rows = 2;
	ck_assert_int_eq(quire_import_requests(&requests, &header, writer, NULL, NULL,
	                                       &summary, &refusal),
	                 QUIRE_INVALID);
	ck_assert_ptr_nonnull(strstr(refusal.what, "rows[1]"));
	requests.num_rows = 1;
	header.tokens_max = header.rows_max - 1;
	ck_assert_int_eq(quire_import_requests(&requests, &header, writer, NULL, NULL,
	                                       &summary, &refusal),
	                 QUIRE_INVALID);
	ck_assert_ptr_nonnull(
		strstr(refusal.what, "tokens_max must not be below rows_max 8"));
	ck_assert_int_eq(summary.steps, -7);
	quire_trace_discard(writer);
	ck_assert_int_eq(temporary_count(&temporary), 0);
}
END_TEST

START_TEST(a_full_disk_ends_an_import)
{
	struct quire_request_row rows[] = {{0, 3, 50000}};
	struct quire_requests requests = {"mooncake", rows, 1};
	struct quire_trace_header header = make_header();
	struct quire_import_summary summary;
	struct quire_trace_writer *writer;

	header.num_pages = 50000;
	header.seq_tokens_max = 1 << 20;
	quire_import_source(&requests, &header);
	ck_assert_ptr_nonnull(strstr(header.source, "mooncake"));
	ck_assert_ptr_nonnull(strstr(header.source, "decode first"));
	ck_assert_int_eq(quire_trace_create("/dev/full", &header, &writer, NULL),
	                 QUIRE_OK);
	ck_assert_int_eq(quire_import_requests(&requests, &header, writer, NULL, NULL,
	                                       &summary, NULL),
	                 QUIRE_IO);
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
	tcase_add_test(cases, budgets_and_rows_out_of_range_are_refused);
	tcase_add_test(cases, a_full_disk_ends_an_import);
	suite_add_tcase(suite, cases);
	return run_suite(suite);
}
