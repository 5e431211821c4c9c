/* SPDX-License-Identifier: MIT */
/* Rows that go on where those of the step before ended: an event only counts them, and
 * the line has them as they were given. */
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

/* ------------------------------------------------------------------ places */

static void start(int32_t commands_max)
{
	const struct quire_record_config config = recorded_config();

	recorded_begin(&f, 8, 4);
	f.config.commands_max = commands_max;
	recorded_create(&f, &config);
}

/* Two rows, or one; what comes of them does not matter here either. */
static enum quire_status try_rows(struct quire_segment first, struct quire_segment second)
{
	const struct quire_segment rows[] = {first, second};
	const struct quire_step step = {.segments = rows,
	                                .num_segments = second.request == 0 ? 1 : 2};
	const struct quire_command command = {.kind = QUIRE_COMMAND_SUBMIT,
	                                      .step = &step};

	return quire_runtime_try_command(f.runtime, &command, NULL, NULL);
}

static void give_rows(struct quire_segment first, struct quire_segment second)
{
	ck_assert_int_eq(try_rows(first, second), QUIRE_OK);
	settle(&f);
}

#define ROW(request, label, span, at) \
	((struct quire_segment)SEGMENT(request, label, span, at))
#define NO_ROW ((struct quire_segment){.request = 0})

#define LINE(id, rows)                                         \
	"{\"do\":\"submit\",\"id\":" id ",\"segments\":[" rows \
	"]" REFUSED("NO_REQUEST", "0")
#define OPEN(id, request) "{\"do\":\"open\",\"id\":" id ",\"request\":" request DONE

/* A queue of two: every second command lies where the newest step lay. */
START_TEST(a_step_in_the_place_of_the_newest_is_recorded_as_it_was_given)
{
	start(2);
	open_now(&f, 1);
	give_rows(ROW(7, NULL, 1, QUIRE_AT_ANY), NO_ROW);
	open_now(&f, 2);
	give_rows(ROW(8, NULL, 1, QUIRE_AT_ANY), NO_ROW);
	give_rows(ROW(8, NULL, 1, QUIRE_AT_ANY), NO_ROW);
	fixture_end(&f);
	ck_assert_lines(OPEN("1", "1"), LINE("2", "[7,\"main\",1,null]"), OPEN("3", "2"),
	                LINE("4", "[8,\"main\",1,null]"),
	                LINE("5", "[8,\"main\",1,null]"));
}
END_TEST

/* Names for all ids that there are, in a step that is refused for one more: it draws no
 * position. */
static void name_all_labels(void)
{
	static char names[QUIRE_LABELS_MAX][8];
	const char *labels[QUIRE_LABELS_MAX];
	const struct quire_combined combined = {
		.name = "all", .labels = labels, .num_labels = QUIRE_LABELS_MAX};
	const struct quire_step step = {.combined = &combined, .num_combined = 1};
	const struct quire_command command = {.kind = QUIRE_COMMAND_SUBMIT,
	                                      .step = &step};

	for (int32_t i = 0; i < QUIRE_LABELS_MAX; i++) {
		snprintf(names[i], sizeof(names[i]), "l%d", i);
		labels[i] = names[i];
	}
	ck_assert_int_eq(quire_runtime_try_command(f.runtime, &command, NULL, NULL),
	                 QUIRE_LIMIT);
}

/* The first of its rows lies in the queue when the second is refused: in a queue of two
 * over the newest step's, and what comes next seems to go on from there. */
START_TEST(a_label_too_many_is_no_step_between_two)
{
	const struct quire_segment too_many = ROW(9, "one too many", 1, 1);

	start(_i == 0 ? 2 : 64);
	name_all_labels();
	give_rows(ROW(7, NULL, 1, 0), ROW(9, NULL, 1, 0));
	open_now(&f, 1);
	ck_assert_int_eq(try_rows(ROW(7, NULL, 2, 5), too_many), QUIRE_LIMIT);
	open_now(&f, 2);
	give_rows(ROW(7, NULL, 2, 7), ROW(9, NULL, 1, 1));
	ck_assert_int_eq(try_rows(ROW(7, NULL, 2, 9), too_many), QUIRE_LIMIT);
	give_rows(ROW(7, NULL, 2, 9), ROW(9, NULL, 1, 2));
	fixture_end(&f);
	ck_assert_lines(LINE("1", "[7,\"main\",1,0],[9,\"main\",1,0]"), OPEN("2", "1"),
	                OPEN("3", "2"), LINE("4", "[7,\"main\",2,7],[9,\"main\",1,1]"),
	                LINE("5", "[7,\"main\",2,9],[9,\"main\",1,2]"));
}
END_TEST

/* What comes next goes on from the one whose place the refused step would have had. */
START_TEST(a_step_that_finds_the_queue_full_is_no_step_between_two)
{
	start(2);
	ck_assert_int_eq(try_rows(ROW(7, NULL, 1, 0), NO_ROW), QUIRE_OK);
	ck_assert_int_eq(try_rows(ROW(8, NULL, 1, 0), NO_ROW), QUIRE_OK);
	ck_assert_int_eq(try_rows(ROW(7, NULL, 1, 1), NO_ROW), QUIRE_AGAIN);
	settle(&f);
	open_now(&f, 1);
	give_rows(ROW(7, NULL, 1, 1), NO_ROW);
	give_rows(ROW(7, NULL, 1, 2), NO_ROW);
	fixture_end(&f);
	ck_assert_lines(LINE("1", "[7,\"main\",1,0]"), LINE("2", "[8,\"main\",1,0]"),
	                OPEN("3", "1"), LINE("4", "[7,\"main\",1,1]"),
	                LINE("5", "[7,\"main\",1,2]"));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("record");
	TCase *tcase = tcase_create("rows");

	tcase_set_timeout(tcase, 30);
	tcase_add_test(tcase, every_row_is_recorded_as_it_was_given);
	tcase_add_test(tcase,
	               a_step_in_the_place_of_the_newest_is_recorded_as_it_was_given);
	tcase_add_loop_test(tcase, a_label_too_many_is_no_step_between_two, 0, 2);
	tcase_add_test(tcase, a_step_that_finds_the_queue_full_is_no_step_between_two);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
