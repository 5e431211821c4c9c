/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "random_trace.h"
#include "same_record.h"

START_TEST(what_is_written_is_read_back)
{
	uint64_t s = 11, again = 11;
	struct quire_trace_writer *writer;
	struct quire_trace_reader *reader;
	struct quire_trace_record got;
	struct random_record random;
	int64_t done, size;

	ck_assert_int_eq(quire_trace_create(temporary.path, &header, &writer, NULL),
	                 QUIRE_OK);
	for (int i = 0; i < 5000; i++) {
		random_record_make(&random, &s);
		random_ids(&random.record, i, &s);
		SAME(quire_trace_write(writer, &random.record, NULL), QUIRE_OK);
	}
	ck_assert_int_eq(quire_trace_commit(writer, NULL), QUIRE_OK);
	ck_assert_int_eq(temporary_count(&temporary), 1);
	ck_assert_int_eq(quire_trace_open(temporary.path, &reader, NULL), QUIRE_OK);
	ck_assert_mem_eq(quire_trace_header(reader), &header, sizeof(header));
	for (int i = 0; i < 5000; i++) {
		random_record_make(&random, &again);
		random_ids(&random.record, i, &again);
		SAME(quire_trace_next(reader, &got, NULL), QUIRE_OK);
		SAME(got.line, i + 2);
		SAME(same_record(&got, &random.record), true);
	}
	ck_assert_int_eq(quire_trace_next(reader, &got, NULL), QUIRE_END);
	quire_trace_position(reader, &done, &size);
	ck_assert_int_eq(done, size);
	ck_assert_int_gt(size, 5000);
	quire_trace_close(reader);
}
END_TEST

START_TEST(defaults_and_unknown_fields_are_read)
{
	static const char text[] = HEADER "\n"
					  "{\"do\":\"submit\",\"later\":{\"x\":[1]},"
					  "\"segments\":[[7,\"a\",5],[8,\"b\",0,null]],"
					  "\"commit\":true,\"no_wait\":false}\n"
					  "{\"request\":3,\"do\":\"reset\",\"outcome\":{"
					  "\"status\":\"NO_REQUEST\"}}\r\n"
					  "{\"do\":\"submit\",\"id\":9,"
					  "\"segments\":[[7,\"a\",5]],"
					  "\"speculative\":true,\"copy\":false}\n"
					  "{\"do\":\"submit\",\"id\":10,"
					  "\"segments\":[[7,\"a\",5]],"
					  "\"speculative\":true,\"base\":null}\n"
					  "{\"do\":\"rewind\",\"request\":3,"
					  "\"tokens\":2147483647}\n";
	struct quire_trace_reader *reader;
	struct quire_trace_record got;

	ck_assert_int_eq(open_text(text, sizeof(text) - 1, &reader, NULL), QUIRE_OK);
	ck_assert_int_eq(quire_trace_next(reader, &got, NULL), QUIRE_OK);
	ck_assert_int_eq(got.command.step->num_segments, 2);
	ck_assert_int_eq(got.command.step->segments[0].at, QUIRE_AT_ANY);
	ck_assert_int_eq(got.command.step->segments[1].at, QUIRE_AT_ANY);
	ck_assert_uint_eq(got.command.step->flags, 0);
	ck_assert_int_eq(got.command.step->bucket_rows, 0);
	ck_assert(!got.has_outcome);
	ck_assert_int_eq(quire_trace_next(reader, &got, NULL), QUIRE_OK);
	ck_assert_str_eq(got.command.label, "main");
	ck_assert_int_eq(got.command.keep_pages, 0);
	ck_assert_int_eq(got.outcome.status, QUIRE_NO_REQUEST);
	ck_assert_int_eq(got.outcome.detail, 0);
	ck_assert(!got.outcome.has_digest);
	ck_assert_int_eq(quire_trace_next(reader, &got, NULL), QUIRE_OK);
	ck_assert_uint_eq(got.command.step->flags, QUIRE_STEP_SPECULATIVE);
	ck_assert_int_eq(got.command.step->num_pre_forks, 0);
	ck_assert_int_eq(got.command.step->num_post_forks, 0);
	ck_assert(!got.has_base);
	ck_assert_int_eq(quire_trace_next(reader, &got, NULL), QUIRE_OK);
	ck_assert(got.has_base);
	ck_assert_uint_eq(got.base, 0);
	ck_assert_int_eq(quire_trace_next(reader, &got, NULL), QUIRE_OK);
	ck_assert_str_eq(got.command.label, "main");
	ck_assert_int_eq(got.command.tokens, INT32_MAX);
	quire_trace_close(reader);
}
END_TEST

START_TEST(a_line_beyond_the_limit_is_refused_in_bounded_memory)
{
	size_t size = sizeof(HEADER) + QUIRE_TRACE_LINE_MAX + 1;
	char *text = malloc(size);
	struct quire_trace_reader *reader;
	struct quire_trace_record got;
	struct quire_refusal refusal;

	memset(text, ' ', size);
	memcpy(text, HEADER "\n", sizeof(HEADER));
	memcpy(text + sizeof(HEADER), "{\"do\":\"open\",\"request\":1}", 25);
	ck_assert_int_eq(open_text(text, size - 1, &reader, NULL), QUIRE_OK);
	ck_assert_int_eq(quire_trace_next(reader, &got, NULL), QUIRE_OK);
	quire_trace_close(reader);
	ck_assert_int_eq(open_text(text, size, &reader, NULL), QUIRE_OK);
	ck_assert_int_eq(quire_trace_next(reader, &got, &refusal), QUIRE_FORMAT);
	ck_assert_int_eq(refusal.line, 2);
	ck_assert_ptr_nonnull(strstr(refusal.what, "longer than"));
	quire_trace_close(reader);
	free(text);
}
END_TEST

START_TEST(cut_at_any_byte_the_whole_lines_before_stay_usable)
{
	static const char text[] = HEADER
		"\n"
		"{\"do\":\"open\",\"request\":1}\n"
		"{\"do\":\"submit\",\"segments\":[[1,\"main\",5,0]],\"combined\":{\"b\":["
		"\"main\"]}}\n"
		"{\"do\":\"reset\",\"request\":1,\"label\":\"main\",\"keep\":false}\n"
		"{\"do\":\"close\",\"request\":1}\n";
	static const enum quire_command_kind kinds[] = {
		QUIRE_COMMAND_OPEN,
		QUIRE_COMMAND_SUBMIT,
		QUIRE_COMMAND_RESET,
		QUIRE_COMMAND_CLOSE,
	};

	for (size_t cut = 1; cut < sizeof(text); cut++) {
		struct quire_trace_reader *reader;
		struct quire_trace_record got;
		struct quire_refusal refusal;
		int lines = 0; /* whole ones; a last one that lacks its newline alone
		                  counts */
		bool partial = text[cut - 1] != '\n' && text[cut] != '\n';

		for (size_t i = 0; i < cut; i++)
			lines += text[i] == '\n';
		lines += text[cut - 1] != '\n' && text[cut] == '\n';
		if (lines == 0) {
			SAME(open_text(text, cut, &reader, &refusal), QUIRE_FORMAT);
			SAME(strncmp(refusal.what, "truncated", 9), 0);
			continue;
		}
		SAME(open_text(text, cut, &reader, NULL), QUIRE_OK);
		for (int i = 0; i + 1 < lines; i++) {
			SAME(quire_trace_next(reader, &got, NULL), QUIRE_OK);
			SAME(got.command.kind, kinds[i]);
		}
		SAME(quire_trace_next(reader, &got, &refusal),
		     partial ? QUIRE_FORMAT : QUIRE_END);
		if (partial) {
			SAME(refusal.line, lines + 1);
			SAME(strncmp(refusal.what, "truncated", 9), 0);
		}
		quire_trace_close(reader);
	}
}
END_TEST

/* ---- writing ---- */

START_TEST(nothing_is_written_over_before_commit)
{
	struct quire_trace_record record = {.command.kind = QUIRE_COMMAND_OPEN};
	struct quire_trace_writer *writer;

	temporary_fill(&temporary, "old", 3);
	ck_assert_int_eq(quire_trace_create(temporary.path, &header, &writer, NULL),
	                 QUIRE_OK);
	for (int i = 0; i < 20000; i++)
		SAME(quire_trace_write(writer, &record, NULL), QUIRE_OK);
	ck_assert(temporary_holds(&temporary, "old"));
	quire_trace_discard(writer);
	ck_assert(temporary_holds(&temporary, "old"));
	ck_assert_int_eq(temporary_count(&temporary), 1);
	ck_assert_int_eq(quire_trace_create(temporary.path, &header, &writer, NULL),
	                 QUIRE_OK);
	ck_assert_int_eq(quire_trace_write(writer, &record, NULL), QUIRE_OK);
	ck_assert_int_eq(quire_trace_commit(writer, NULL), QUIRE_OK);
	ck_assert(temporary_holds(&temporary,
	                          HEADER "\n{\"do\":\"open\",\"request\":0}\n"));
	ck_assert_int_eq(temporary_count(&temporary), 1);
	quire_trace_discard(NULL);
}
END_TEST

START_TEST(a_full_disk_and_a_lost_folder_are_refused_cleanly)
{
	struct quire_trace_record record = {.command.kind = QUIRE_COMMAND_OPEN};
	enum quire_status status = QUIRE_OK;
	struct quire_trace_writer *writer;
	struct quire_refusal refusal;

	temporary_fill(&temporary, "old", 3);
	ck_assert_int_eq(quire_trace_create("/dev/full", &header, &writer, NULL),
	                 QUIRE_OK);
	ck_assert_int_eq(quire_trace_commit(writer, &refusal), QUIRE_IO);
	ck_assert_ptr_nonnull(strstr(refusal.what, "/dev/full"));
	ck_assert_int_eq(quire_trace_create("/dev/full", &header, &writer, NULL),
	                 QUIRE_OK);
	for (int i = 0; i < 100000 && status == QUIRE_OK; i++)
		status = quire_trace_write(writer, &record, &refusal);
	ck_assert_int_eq(status, QUIRE_IO);
	ck_assert_int_eq(quire_trace_write(writer, &record, &refusal), QUIRE_IO);
	quire_trace_discard(writer);
	ck_assert_int_eq(
		quire_trace_create("no/such/folder/x", &header, &writer, &refusal),
		QUIRE_IO);
	ck_assert_int_eq(quire_trace_create(temporary.folder, &header, &writer, &refusal),
	                 QUIRE_IO);
	ck_assert_int_eq(temporary_count(&temporary), 1);
	ck_assert(temporary_holds(&temporary, "old"));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("trace");
	TCase *cases = tcase_create("trace");

	tcase_add_checked_fixture(cases, setup, teardown);
	tcase_set_timeout(cases, 60);
	tcase_add_test(cases, what_is_written_is_read_back);
	tcase_add_test(cases, defaults_and_unknown_fields_are_read);
	tcase_add_test(cases, a_line_beyond_the_limit_is_refused_in_bounded_memory);
	tcase_add_test(cases, cut_at_any_byte_the_whole_lines_before_stay_usable);
	tcase_add_test(cases, nothing_is_written_over_before_commit);
	tcase_add_test(cases, a_full_disk_and_a_lost_folder_are_refused_cleanly);
	suite_add_tcase(suite, cases);
	return run_suite(suite);
}
