/* SPDX-License-Identifier: MIT */
/*
 * What is left of a trace: that it is valid is a runtime's word, that it is small that of
 * whoever takes one more line away.
 */
#include "config.h"

#include "runtime/cmd/shrink_impl.h"

#include "tests/plans/random_trace.h"
#include "valid_trace.h"

#include <stdlib.h>

static char whole_path[64], left_path[80];

static void make_paths(void)
{
	setup();
	snprintf(whole_path, sizeof(whole_path), "%s", temporary.path);
	snprintf(left_path, sizeof(left_path), "%s.left", temporary.path);
}

static void remove_paths(void)
{
	unlink(left_path);
	teardown();
}

static void write_bytes(const char *path, const char *bytes, size_t size)
{
	FILE *file = fopen(path, "wb");

	ck_assert_ptr_nonnull(file);
	ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
	ck_assert_int_eq(fclose(file), 0);
}

static void write_cut(const struct shrink_model *model, const struct shrink_cut *cut,
                      const char *path)
{
	struct quire_trace_header left = shrink_header(model, cut);
	FILE *file = fopen(path, "w");
	const struct quire_trace_output output = {.write = valid_trace_put,
	                                          .argument = file};
	struct quire_trace_writer *writer;

	ck_assert_ptr_nonnull(file);
	ck_assert_int_eq(quire_trace_create_to(&output, &left, &writer, NULL), QUIRE_OK);
	ck_assert_int_eq(shrink_write(model, cut, writer, path), CMD_DONE);
	ck_assert_int_eq(quire_trace_commit(writer, NULL), QUIRE_OK);
	ck_assert_int_eq(fclose(file), 0);
}

static bool is_same_file(const char *a, const char *b)
{
	FILE *files[2] = {fopen(a, "r"), fopen(b, "r")};
	int bytes[2];

	ck_assert(files[0] != NULL && files[1] != NULL);
	do {
		bytes[0] = getc(files[0]);
		bytes[1] = getc(files[1]);
	} while (bytes[0] == bytes[1] && bytes[0] != EOF);
	fclose(files[0]);
	fclose(files[1]);
	return bytes[0] == bytes[1];
}

/* ------------------------------------------------------------------ what is valid */

/* Take a few things of every kind away. */
static void cut_at_random(const struct shrink_model *model, struct shrink_cut *cut,
                          uint64_t *s)
{
	int32_t commands = random_in(s, 0, 3) * 8, segments = random_in(s, 0, 3) * 8;
	int32_t parts = random_in(s, 0, 3) * 8, numbers = random_in(s, 0, 1) * 30;

	for (int64_t i = 0; i < model->lines->num; i++) {
		struct shrink_cut_command *command = &cut->commands[i];

		command->is_gone |= random_in(s, 0, 99) < commands;
		for (int p = 0; p < SHRINK_PARTS; p++) {
			enum shrink_part part = (enum shrink_part)(1 << p);

			if (random_in(s, 0, 99) < parts &&
			    shrink_has_part(model, cut, i, part))
				command->gone_parts |= part;
		}
		if (random_in(s, 0, 99) < parts)
			command->gone_forks[random_in(s, 0, 1)] |= random_next(s);
		if (random_in(s, 0, 99) < numbers)
			command->tokens = random_in(s, 0, command->tokens);
	}
	for (int64_t k = 0; k < model->num_segments; k++) {
		struct shrink_cut_segment *segment = &cut->segments[k];

		segment->is_gone |= random_in(s, 0, 99) < segments;
		if (segment->span > 0 && random_in(s, 0, 99) < numbers)
			segment->span = random_in(s, 1, segment->span);
	}
}

static void check_cuts(uint64_t seed)
{
	struct cmd_lines lines = {.num = 0};
	struct shrink_model model = {.lines = NULL};
	struct shrink_cut cut;

	valid_trace_write(whole_path, seed, 40);
	ck_assert_msg(valid_trace_holds(whole_path, true), "seed %llu",
	              (unsigned long long)seed);
	ck_assert_int_eq(cmd_lines_read(&lines, whole_path), CMD_DONE);
	ck_assert(shrink_model_init(&model, &lines));
	for (int i = 0; i < 8; i++) {
		ck_assert(shrink_cut_init(&cut, &model));
		cut.has_outcomes = false;
		if (i > 0)
			cut_at_random(&model, &cut, &seed);
		ck_assert(shrink_settle(&model, &cut));
		write_cut(&model, &cut, left_path);
		if (i == 0) /* nothing was taken away: nothing changes */
			ck_assert(is_same_file(whole_path, left_path));
		ck_assert_msg(valid_trace_holds(left_path, true), "seed %llu, cut %d",
		              (unsigned long long)seed, i);
		shrink_cut_end(&cut);
	}
	shrink_model_end(&model);
	cmd_lines_end(&lines);
}

START_TEST(whatever_is_taken_away_the_rest_is_valid)
{
	for (uint64_t seed = 1; seed <= 25; seed++)
		check_cuts(seed + 1000 * (uint64_t)_i);
}
END_TEST

/* ------------------------------------------------------------------ what is small */

/* What a made-up program looks for: so many of something that one line may be. */
struct wanted {
	int kind;
	int64_t count;
	uint64_t request;
	int64_t tests;
};

static int64_t count_wanted(const struct wanted *wanted,
                            const struct quire_trace_record *record)
{
	const struct quire_command *command = &record->command;
	const struct quire_step *step = command->step;
	int64_t tokens = 0, named = 0;

	if (command->kind != QUIRE_COMMAND_SUBMIT)
		return wanted->kind == 0 && command->kind == QUIRE_COMMAND_REWIND;
	for (int32_t i = 0; i < step->num_segments; i++) {
		tokens += step->segments[i].span;
		named += step->segments[i].request == wanted->request;
	}
	switch (wanted->kind) {
	case 1:
		return step->num_pre_forks;
	case 2:
		return step->num_post_forks > 0 && step->num_segments > 1;
	case 3:
		return (step->flags & QUIRE_STEP_SPECULATIVE) != 0;
	case 4:
		return record->has_base && record->base != 0;
	case 5:
		return named;
	case 6:
		return tokens;
	case 7:
		return step->num_combined;
	default:
		return 0;
	}
}

/* -1: the reader refuses it. */
static int64_t count_in_file(const struct wanted *wanted, const char *path)
{
	struct quire_trace_reader *reader;
	struct quire_trace_record record;
	enum quire_status status;
	int64_t count = 0;

	if (quire_trace_open(path, &reader, NULL) != QUIRE_OK)
		return -1;
	while ((status = quire_trace_next(reader, &record, NULL)) == QUIRE_OK)
		count += count_wanted(wanted, &record);
	quire_trace_close(reader);
	return status == QUIRE_END ? count : -1;
}

static enum shrink_answer look_for(void *argument, const char *bytes, size_t size)
{
	struct wanted *wanted = argument;
	int64_t count;

	write_bytes(left_path, bytes, size);
	count = count_in_file(wanted, left_path);
	ck_assert_int_ge(count, 0);
	wanted->tests++;
	return count >= wanted->count ? SHRINK_FAILS : SHRINK_PASSES;
}

/* Read the file, without one line (0: with all) into another file. */
static int copy_without(const char *from, const char *to, int without)
{
	FILE *in = fopen(from, "r"), *out = fopen(to, "w");
	size_t room = 0;
	char *line = NULL;
	int lines = 0;

	ck_assert(in != NULL && out != NULL);
	while (getline(&line, &room, in) > 0) {
		if (++lines != without)
			fputs(line, out);
	}
	free(line);
	fclose(in);
	ck_assert_int_eq(fclose(out), 0);
	return lines;
}

/* No line of the small trace can go: what fails without it is not valid. */
static void check_minimal(const struct wanted *wanted, const char *small)
{
	int lines = copy_without(small, left_path, 0);

	for (int line = 2; line <= lines; line++) {
		copy_without(small, left_path, line);
		if (count_in_file(wanted, left_path) < wanted->count)
			continue;
		ck_assert_msg(!valid_trace_holds(left_path, false),
		              "kind %d: line %d of %d can go", wanted->kind, line, lines);
	}
}

static void check_shrink(uint64_t seed)
{
	struct cmd_lines lines = {.num = 0};
	struct wanted wanted = {.kind = (int)(seed % 8)};
	struct shrink shrink = {.test = look_for, .argument = &wanted, .runs_max = 5000};
	int64_t count;
	char small[100];

	valid_trace_write(whole_path, seed, 60);
	wanted.request = seed % 4;
	count = count_in_file(&wanted, whole_path);
	wanted.count = 1 + (count > 1 ? (int64_t)(random_next(&seed) % 3) : 0);
	ck_assert_int_eq(cmd_lines_read(&lines, whole_path), CMD_DONE);
	ck_assert_int_eq(shrink_init(&shrink, &lines), CMD_DONE);
	ck_assert_int_eq(shrink_reduce(&shrink), CMD_DONE);
	ck_assert(shrink.is_failing == (count >= wanted.count));
	ck_assert_int_eq(shrink.runs, wanted.tests);
	if (shrink.is_failing) {
		ck_assert(!shrink.is_stopped && !shrink.is_tail_only);
		snprintf(small, sizeof(small), "%s.small", whole_path);
		shrink.best.num_pages = 4096; /* lets a runtime look at lengths alone */
		write_cut(&shrink.model, &shrink.best, small);
		ck_assert(valid_trace_holds(small, true));
		ck_assert_int_ge(count_in_file(&wanted, small), wanted.count);
		check_minimal(&wanted, small);
		unlink(small);
	}
	shrink_end(&shrink);
	cmd_lines_end(&lines);
}

START_TEST(nothing_of_what_is_left_can_go)
{
	for (uint64_t seed = 1; seed <= 32; seed++)
		check_shrink(seed + 1000 * (uint64_t)_i);
}
END_TEST

/* ------------------------------------------------------------------ any trace at all */

/* Fails now and then, whatever the trace holds; the first time for sure. */
static enum shrink_answer toss(void *argument, const char *bytes, size_t size)
{
	uint64_t *s = argument;
	bool first = *s % 2 == 0;

	write_bytes(left_path, bytes, size);
	ck_assert_int_ge(count_in_file(&(struct wanted){.kind = 0}, left_path), 0);
	*s |= 1;
	return first || random_in(s, 0, 2) == 0 ? SHRINK_FAILS : SHRINK_PASSES;
}

/* Few streams, and small numbers: what is wrong is so in every way. */
static void narrow(struct random_record *random, uint64_t *s)
{
	struct quire_command *command = &random->record.command;
	int32_t kind = random_in(s, 0, 4);

	if (kind < 3)
		command->kind = kind == 0 ? QUIRE_COMMAND_OPEN : QUIRE_COMMAND_SUBMIT;
	command->request %= 2;
	command->label = labels[random_in(s, 0, 1)];
	random->step.num_segments = random_in(s, 1, 2);
	for (int32_t k = 0; k < random->step.num_segments; k++)
		random->segments[k] = (struct quire_segment){
			.request = (uint64_t)random_in(s, 0, 1),
			.label = labels[random_in(s, 0, 1)],
			.span = random_in(s, 0, 2),
			.at = random_in(s, 0, 1) == 0 ? QUIRE_AT_ANY : random_in(s, 0, 3),
		};
	for (int list = 0; list < 2; list++) {
		int32_t from = random_in(s, 0, 1);

		random->forks[list][0] =
			(struct quire_fork){labels[from], labels[1 - from]};
	}
	random->step.num_pre_forks = random_in(s, 0, 2) == 0;
	random->step.num_post_forks = random_in(s, 0, 2) == 0;
	if (random_in(s, 0, 2) > 0)
		random->step.flags &= ~(uint32_t)QUIRE_STEP_NO_COMMIT;
}

static void write_rubbish(uint64_t seed)
{
	FILE *file = fopen(whole_path, "w");
	const struct quire_trace_output output = {.write = valid_trace_put,
	                                          .argument = file};
	struct random_record random;
	struct quire_trace_writer *writer;
	uint64_t s = seed;
	int num = random_in(&s, 0, 30);

	ck_assert_ptr_nonnull(file);
	ck_assert_int_eq(quire_trace_create_to(&output, &header, &writer, NULL),
	                 QUIRE_OK);
	for (int i = 1; i <= num; i++) {
		random_record_make(&random, &s);
		narrow(&random, &s);
		if (random.record.command.kind == QUIRE_COMMAND_SUBMIT &&
		    (random.step.flags & QUIRE_STEP_SPECULATIVE) != 0)
			random.record.id = (uint64_t)i;
		if (random.record.command.kind != QUIRE_COMMAND_OPEN)
			random.record.prefix.tokens = 0;
		random.record.has_outcome &= seed % 2 == 0;
		random.record.outcome.is_outside = random_in(&s, 0, 3) == 0;
		random.record.command.target = (uint64_t)random_in(&s, 1, num);
		ck_assert_int_eq(quire_trace_write(writer, &random.record, NULL),
		                 QUIRE_OK);
	}
	ck_assert_int_eq(quire_trace_commit(writer, NULL), QUIRE_OK);
	ck_assert_int_eq(fclose(file), 0);
}

START_TEST(a_trace_of_rubbish_and_a_program_of_whims_come_to_an_end)
{
	for (uint64_t seed = 1; seed <= 80; seed++) {
		struct cmd_lines lines = {.num = 0};
		uint64_t s = (seed + 1000 * (uint64_t)_i) * 2;
		struct shrink shrink = {.test = toss, .argument = &s, .runs_max = 2000};
		struct shrink_counts counts;

		write_rubbish(seed + 1000 * (uint64_t)_i);
		ck_assert_int_eq(cmd_lines_read(&lines, whole_path), CMD_DONE);
		ck_assert_int_eq(shrink_init(&shrink, &lines), CMD_DONE);
		ck_assert_int_eq(shrink_reduce(&shrink), CMD_DONE);
		ck_assert(shrink.is_failing && !shrink.is_stopped);
		ck_assert_int_lt(shrink.runs, 2000);
		shrink_count(&shrink.model, &shrink.best, &counts);
		ck_assert_int_le(counts.commands, lines.num);
		shrink_end(&shrink);
		cmd_lines_end(&lines);
	}
}
END_TEST

/* Whatever is wrong with it: what nothing is taken from stays as it is. */
START_TEST(a_trace_of_rubbish_is_left_as_it_is)
{
	for (uint64_t seed = 1; seed <= 3000; seed += 2) {
		struct cmd_lines lines = {.num = 0};
		struct shrink_model model = {.lines = NULL};
		struct shrink_cut cut;

		write_rubbish(seed);
		ck_assert_int_eq(cmd_lines_read(&lines, whole_path), CMD_DONE);
		ck_assert(shrink_model_init(&model, &lines));
		ck_assert(shrink_cut_init(&cut, &model));
		cut.has_outcomes = false;
		ck_assert(shrink_settle(&model, &cut));
		write_cut(&model, &cut, left_path);
		ck_assert(is_same_file(whole_path, left_path));
		shrink_cut_end(&cut);
		shrink_model_end(&model);
		cmd_lines_end(&lines);
	}
}
END_TEST

/* ------------------------------------------------------------------ when to stop */

static enum shrink_answer fail_three_times(void *argument, const char *bytes, size_t size)
{
	int *tests = argument;

	(void)bytes;
	(void)size;
	return ++*tests <= 3 ? SHRINK_FAILS : SHRINK_STOP;
}

START_TEST(who_is_told_to_stop_asks_no_more)
{
	struct cmd_lines lines = {.num = 0};
	int tests = 0;
	struct shrink shrink = {
		.test = fail_three_times, .argument = &tests, .runs_max = 100};

	valid_trace_write(whole_path, 7, 60);
	ck_assert_int_eq(cmd_lines_read(&lines, whole_path), CMD_DONE);
	ck_assert_int_eq(shrink_init(&shrink, &lines), CMD_DONE);
	ck_assert_int_eq(shrink_reduce(&shrink), CMD_DONE);
	ck_assert(shrink.is_failing && shrink.is_stopped);
	ck_assert_int_eq(tests, 4);
	shrink_end(&shrink);
	cmd_lines_end(&lines);
}
END_TEST

/* How many runs it takes, where there may be @bound; is it over with them? */
static int64_t count_runs(int64_t bound, bool *is_stopped)
{
	struct cmd_lines lines = {.num = 0};
	struct wanted wanted = {.kind = 3, .count = 2};
	struct shrink shrink = {.test = look_for, .argument = &wanted, .runs_max = bound};

	valid_trace_write(whole_path, 11, 100);
	ck_assert_int_eq(cmd_lines_read(&lines, whole_path), CMD_DONE);
	ck_assert_int_eq(shrink_init(&shrink, &lines), CMD_DONE);
	ck_assert_int_eq(shrink_reduce(&shrink), CMD_DONE);
	ck_assert(shrink.is_failing);
	*is_stopped = shrink.is_stopped;
	shrink_end(&shrink);
	cmd_lines_end(&lines);
	return wanted.tests;
}

START_TEST(runs_have_a_bound)
{
	bool is_stopped;
	int64_t enough = count_runs(100000, &is_stopped);

	ck_assert(!is_stopped);
	ck_assert_int_gt(enough, 10);
	ck_assert_int_eq(count_runs(enough, &is_stopped), enough);
	ck_assert(!is_stopped);
	for (int64_t bound = 1; bound < enough; bound += 3) {
		ck_assert_int_eq(count_runs(bound, &is_stopped), bound);
		ck_assert(is_stopped);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("shrink");
	TCase *tests = tcase_create("shrink");

	tcase_add_checked_fixture(tests, make_paths, remove_paths);
	tcase_set_timeout(tests, 30);
	tcase_add_loop_test(tests, whatever_is_taken_away_the_rest_is_valid, 0, 4);
	tcase_add_loop_test(tests, nothing_of_what_is_left_can_go, 0, 4);
	tcase_add_loop_test(
		tests, a_trace_of_rubbish_and_a_program_of_whims_come_to_an_end, 0, 2);
	tcase_add_test(tests, a_trace_of_rubbish_is_left_as_it_is);
	tcase_add_test(tests, who_is_told_to_stop_asks_no_more);
	tcase_add_test(tests, runs_have_a_bound);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
