/* SPDX-License-Identifier: MIT */
/* Rows of steps are recorded as they were given, those too that go on and so are only
 * counted on their way. */
#include "config.h"

#include "recorded.h"
#include "tests/run_suite.h"

#include <check.h>

static struct fixture f;

#define MANY_ROWS  6
#define MANY_STEPS 1500

/* One of n. */
static uint32_t any_of(uint32_t *seed, uint32_t n)
{
	*seed = *seed * 1664525u + 1013904223u;
	return (*seed >> 8) % n;
}

/* The step after this one: as a rule all rows go on, some of them end, begin, stand where
 * they stood, change in one thing, or have a span that no trace has words for. */
static int32_t next_rows(struct quire_segment *rows, int32_t n, uint32_t *seed)
{
	static const char *const labels[] = {"main", "a", "b"};
	static const int32_t spans[] = {0, 1, 1, 3, (1 << 26) + 1};
	struct quire_segment *row = &rows[any_of(seed, (uint32_t)n)];

	for (int32_t i = 0; i < n; i++)
		if (rows[i].at >= 0 && any_of(seed, 24) != 0)
			rows[i].at += rows[i].span;
	switch (any_of(seed, 14)) {
	case 0: /* the last one takes the place of one that ended */
		*row = rows[n - 1];
		return n > 1 ? n - 1 : n;
	case 1: /* the others move up */
		memmove(row, row + 1, (size_t)(rows + n - row - 1) * sizeof(*row));
		return n > 1 ? n - 1 : n;
	case 2:
		if (n < MANY_ROWS)
			rows[n++] = (struct quire_segment){
				.request = any_of(seed, 9), .label = "main", .span = 1};
		return n;
	case 3:
		row->request ^= any_of(seed, 2) == 0 ? UINT64_C(1) << 33 : 1;
		return n;
	case 4:
		row->label = labels[any_of(seed, 3)];
		return n;
	case 5:
		row->span = spans[any_of(seed, 5)];
		return n;
	case 6:
		row->at = (int32_t)any_of(seed, 100) - 1;
		return n;
	default:
		return n;
	}
}

/* As a trace says it; a misfit makes the whole step one that is left out. */
static void print_rows(const struct quire_segment *rows, int32_t n, char *text,
                       size_t bytes)
{
	size_t at = (size_t)snprintf(text, bytes, "\"segments\":[");
	char where[16];

	for (int32_t i = 0; i < n; i++) {
		if (rows[i].span > QUIRE_TOKENS_MAX) {
			snprintf(text, bytes, "\"segments\":[[0,\"main\",0,null]]");
			return;
		}
		snprintf(where, sizeof(where), "%d", rows[i].at);
		at += (size_t)snprintf(text + at, bytes - at, "%s[%llu,\"%s\",%d,%s]",
		                       i > 0 ? "," : "",
		                       (unsigned long long)rows[i].request, rows[i].label,
		                       rows[i].span, rows[i].at < 0 ? "null" : where);
	}
	snprintf(text + at, bytes - at, "]");
}

/* What came of the steps does not matter here: every one of them is refused. */
START_TEST(every_row_is_recorded_as_it_was_given)
{
	static char wanted[MANY_STEPS][MANY_ROWS * 64];
	const struct quire_record_config config = recorded_config();
	struct quire_segment rows[MANY_ROWS] = {{.label = "main", .span = 1}};
	int32_t n = 1;
	uint32_t seed = 20261130;

	recorded_begin(&f, 8, 4);
	f.config.rows_max = MANY_ROWS;
	recorded_create(&f, &config);
	for (int32_t k = 0; k < MANY_STEPS; k++) {
		const struct quire_step step = {.segments = rows, .num_segments = n};

		print_rows(rows, n, wanted[k], sizeof(wanted[k]));
		submit_now(&f, &step);
		n = next_rows(rows, n, &seed);
	}
	fixture_end(&f);
	for (int32_t k = 0; k < MANY_STEPS; k++) {
		const char *line = recorded_line(k + 1);

		ck_assert_msg(line != NULL && strstr(line, wanted[k]) != NULL,
		              "step %d is\n%s, not\n%s", k, line, wanted[k]);
	}
}
END_TEST

/* A queue of two: every second command lies where the newest step lay. */
START_TEST(a_step_in_the_place_of_the_newest_is_recorded_as_it_was_given)
{
	const struct quire_record_config config = recorded_config();

	recorded_begin(&f, 8, 4);
	f.config.commands_max = 2;
	recorded_create(&f, &config);
	open_now(&f, 1);
	(void)outcome_of(&f, give(&f, STEP(7, NULL, 1, QUIRE_AT_ANY)));
	open_now(&f, 2);
	(void)outcome_of(&f, give(&f, STEP(8, NULL, 1, QUIRE_AT_ANY)));
	(void)outcome_of(&f, give(&f, STEP(8, NULL, 1, QUIRE_AT_ANY)));
	fixture_end(&f);
	ck_assert_lines(
		"{\"do\":\"open\",\"id\":1,\"request\":1" DONE,
		"{\"do\":\"submit\",\"id\":2,\"segments\":[[7,\"main\",1,null]]" REFUSED(
			"NO_REQUEST", "0"),
		"{\"do\":\"open\",\"id\":3,\"request\":2" DONE,
		"{\"do\":\"submit\",\"id\":4,\"segments\":[[8,\"main\",1,null]]" REFUSED(
			"NO_REQUEST", "0"),
		"{\"do\":\"submit\",\"id\":5,\"segments\":[[8,\"main\",1,null]]" REFUSED(
			"NO_REQUEST", "0"));
}
END_TEST

/* The call refuses a label too many when the segment before it has been copied already. */
START_TEST(a_call_refused_halfway_changes_no_row)
{
	static const struct quire_segment segments[] = {
		{.request = 8, .label = "main", .span = 1, .at = QUIRE_AT_ANY},
		{.request = 8, .label = "one too many", .span = 1, .at = QUIRE_AT_ANY}};
	const struct quire_step step = {.segments = segments, .num_segments = 2};
	const struct quire_record_config config = recorded_config();
	char label[8];

	recorded_begin(&f, 8, 4);
	f.config.commands_max = 2;
	recorded_create(&f, &config);
	open_now(&f, 1);
	for (int i = 1; i < QUIRE_LABELS_MAX; i++) {
		snprintf(label, sizeof(label), "l%d", i);
		reset_now(&f, 1, label, false);
	}
	(void)outcome_of(&f, give(&f, STEP(7, NULL, 1, QUIRE_AT_ANY)));
	open_now(&f, 2);
	ck_assert_int_eq(quire_runtime_submit(f.runtime, &step, NULL), QUIRE_LIMIT);
	open_now(&f, 3);
	(void)outcome_of(&f, give(&f, STEP(8, NULL, 1, QUIRE_AT_ANY)));
	fixture_end(&f);
	ck_assert_str_eq(recorded_line(QUIRE_LABELS_MAX + 4),
	                 "{\"do\":\"submit\",\"id\":68,\"segments\":[[8,\"main\",1,null]"
	                 "]" REFUSED("NO_REQUEST", "0"));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("record_rows");
	TCase *tcase = tcase_create("record_rows");

	tcase_add_test(tcase, every_row_is_recorded_as_it_was_given);
	tcase_add_test(tcase,
	               a_step_in_the_place_of_the_newest_is_recorded_as_it_was_given);
	tcase_add_test(tcase, a_call_refused_halfway_changes_no_row);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
