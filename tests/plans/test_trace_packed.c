/* SPDX-License-Identifier: MIT */
/* Traces compressed with zstd: what is read of them, whole and damaged, and written. */
#include "config.h"

#include "random_trace.h"
#include "same_record.h"

#include <quire/plans/requests.h>

#include <zstd.h>

#define BYTES_MAX ((size_t)4 << 20)

/* Bytes of a file as it grows. */
struct file {
	char *bytes;
	size_t size;
};

static struct file file;

static void start(void)
{
	setup();
	file.bytes = malloc(BYTES_MAX);
	ck_assert_ptr_nonnull(file.bytes);
	file.size = 0;
}

static void finish(void)
{
	free(file.bytes);
	teardown();
}

static void add_bytes(const void *bytes, size_t size)
{
	ck_assert_uint_le(file.size + size, BYTES_MAX);
	memcpy(file.bytes + file.size, bytes, size);
	file.size += size;
}

static void add_frame(const char *text, size_t size)
{
	size_t got = ZSTD_compress(file.bytes + file.size, BYTES_MAX - file.size, text,
	                           size, 3);

	ck_assert(!ZSTD_isError(got));
	file.size += got;
}

static void add_skippable(const char *content, uint32_t size)
{
	const unsigned char head[] = {0x5a,
	                              0x2a,
	                              0x4d,
	                              0x18,
	                              size & 0xff,
	                              size >> 8 & 0xff,
	                              size >> 16 & 0xff,
	                              size >> 24};

	add_bytes(head, sizeof(head));
	add_bytes(content, size);
}

static enum quire_status take(void *argument, const void *bytes, size_t n)
{
	(void)argument;
	add_bytes(bytes, n);
	return QUIRE_OK;
}

/* A new file each time: writing over one waits for the disk. */
static enum quire_status open_file(struct quire_trace_reader **reader,
                                   struct quire_refusal *refusal)
{
	unlink(temporary.path);
	return open_text(file.bytes, file.size, reader, refusal);
}

/* How many records a file has before it ends or is refused, and how that is. */
static int64_t count(enum quire_status *end_out, struct quire_refusal *refusal,
                     char what[QUIRE_TRACE_NAME_BYTES])
{
	struct quire_trace_reader *reader;
	struct quire_trace_record got;
	int64_t num = 0;

	*end_out = open_file(&reader, refusal);
	if (*end_out != QUIRE_OK) {
		snprintf(what, QUIRE_TRACE_NAME_BYTES, "%s", refusal->what);
		return -1;
	}
	while ((*end_out = quire_trace_next(reader, &got, refusal)) == QUIRE_OK) {
		ck_assert_int_eq(got.command.kind, QUIRE_COMMAND_OPEN);
		ck_assert_uint_eq(got.command.request, (uint64_t)num);
		num++;
	}
	snprintf(what, QUIRE_TRACE_NAME_BYTES, "%s", refusal->what);
	quire_trace_close(reader);
	return num;
}

/* Line @i of a trace whose requests are 0, 1, 2, ...; the first one is the header. */
static int put_line(char *line, size_t size, int i)
{
	if (i == 0)
		return snprintf(line, size, "%s\n", HEADER);
	return snprintf(line, size, "{\"do\":\"open\",\"request\":%d}\n", i - 1);
}

static void add_lines(int first, int end, bool frames)
{
	char text[65536], line[1024];
	size_t length = 0;

	for (int i = first; i < end; i++) {
		int got = put_line(line, sizeof(line), i);

		if (frames)
			add_frame(line, (size_t)got);
		memcpy(text + length, line, (size_t)got);
		length += (size_t)got;
		ck_assert_uint_lt(length, sizeof(text) - sizeof(line));
	}
	if (!frames)
		add_frame(text, length);
}

/* ---- whole files ---- */

START_TEST(frames_of_any_sort_are_one_text)
{
	struct quire_refusal refusal;
	enum quire_status end;
	char what[QUIRE_TRACE_NAME_BYTES];

	add_skippable("not a trace", 11);
	add_frame("", 0);
	add_lines(0, 3, true);
	add_skippable("", 0);
	add_lines(3, 100, false);
	add_frame("", 0);
	add_frame("{\"do\":\"op", 9);
	add_frame("en\",\"request\":99}", 17);
	add_skippable("the end", 7);
	ck_assert_int_eq(count(&end, &refusal, what), 100);
	ck_assert_int_eq(end, QUIRE_END);
}
END_TEST

START_TEST(nothing_in_frames_is_an_empty_file)
{
	struct quire_trace_reader *reader;
	struct quire_refusal refusal;

	add_frame("", 0);
	add_skippable("x", 1);
	ck_assert_int_eq(open_file(&reader, &refusal), QUIRE_FORMAT);
	ck_assert_str_eq(refusal.what, "the file is empty");
}
END_TEST

START_TEST(what_is_written_packed_is_read_back)
{
	uint64_t s = 12, again = 12;
	struct quire_trace_writer *writer;
	struct quire_trace_reader *reader;
	struct quire_trace_record got;
	struct random_record random;
	char path[sizeof(temporary.path) + 4];
	unsigned char magic[4];
	int64_t done, size, before = 0;
	FILE *stream;

	snprintf(path, sizeof(path), "%s.zst", temporary.path);
	ck_assert_int_eq(quire_trace_create(path, &header, &writer, NULL), QUIRE_OK);
	for (int i = 0; i < 5000; i++) {
		random_record_make(&random, &s);
		random_ids(&random.record, i, &s);
		SAME(quire_trace_write(writer, &random.record, NULL), QUIRE_OK);
	}
	ck_assert_int_eq(quire_trace_commit(writer, NULL), QUIRE_OK);
	ck_assert_int_eq(temporary_count(&temporary), 1);
	stream = fopen(path, "rb");
	ck_assert_uint_eq(fread(magic, 1, 4, stream), 4);
	fclose(stream);
	ck_assert_int_eq(memcmp(magic, "\x28\xb5\x2f\xfd", 4), 0);
	ck_assert_int_eq(quire_trace_open(path, &reader, NULL), QUIRE_OK);
	for (int i = 0; i < 5000; i++) {
		random_record_make(&random, &again);
		random_ids(&random.record, i, &again);
		SAME(quire_trace_next(reader, &got, NULL), QUIRE_OK);
		SAME(got.line, i + 2);
		SAME(same_record(&got, &random.record), true);
		quire_trace_position(reader, &done, &size);
		SAME(done >= before && done <= size, true);
		before = done;
	}
	ck_assert_int_eq(quire_trace_next(reader, &got, NULL), QUIRE_END);
	quire_trace_position(reader, &done, &size);
	ck_assert_int_eq(done, size);
	quire_trace_close(reader);
	unlink(path);
	temporary_fill(&temporary, "", 0);
}
END_TEST

/* ---- flushes ---- */

START_TEST(a_flush_ends_a_frame_and_what_was_written_can_be_read)
{
	struct quire_trace_output output = {.write = take, .compress = true};
	struct quire_trace_record record = {.command.kind = QUIRE_COMMAND_OPEN};
	struct quire_trace_writer *writer;
	struct quire_refusal refusal;
	enum quire_status end;
	char what[QUIRE_TRACE_NAME_BYTES];
	size_t before;

	ck_assert_int_eq(quire_trace_create_to(&output, &header, &writer, NULL),
	                 QUIRE_OK);
	for (int i = 0; i < 5; i++) {
		before = file.size;
		record.command.request = (uint64_t)i;
		ck_assert_int_eq(quire_trace_write(writer, &record, NULL), QUIRE_OK);
		ck_assert_uint_eq(file.size, before);
		ck_assert_int_eq(quire_trace_flush(writer, NULL), QUIRE_OK);
		/* One frame and no more, with a checksum (bit 2 of its fifth byte). */
		ck_assert_uint_eq(ZSTD_findFrameCompressedSize(file.bytes + before,
		                                               file.size - before),
		                  file.size - before);
		ck_assert_int_eq(file.bytes[before + 4] & 4, 4);
		ck_assert_int_eq(count(&end, &refusal, what), i + 1);
		ck_assert_int_eq(end, QUIRE_END);
	}
	before = file.size;
	ck_assert_int_eq(quire_trace_flush(writer, NULL), QUIRE_OK);
	ck_assert_int_eq(quire_trace_commit(writer, NULL), QUIRE_OK);
	ck_assert_uint_eq(file.size, before);
}
END_TEST

static enum quire_status refuse_bytes(void *argument, const void *bytes, size_t n)
{
	(void)bytes;
	(void)n;
	(*(int *)argument)++;
	return QUIRE_NO_MEMORY;
}

START_TEST(an_output_that_fails_is_an_io_error_from_then_on)
{
	struct quire_trace_record record = {.command.kind = QUIRE_COMMAND_OPEN};

	for (int compress = 0; compress < 2; compress++) {
		int calls = 0;
		struct quire_trace_output output = {refuse_bytes, &calls, compress == 1};
		struct quire_trace_writer *writer;
		struct quire_refusal refusal;

		ck_assert_int_eq(quire_trace_create_to(&output, &header, &writer, NULL),
		                 QUIRE_OK);
		ck_assert_int_eq(quire_trace_write(writer, &record, NULL), QUIRE_OK);
		ck_assert_int_eq(quire_trace_flush(writer, &refusal), QUIRE_IO);
		ck_assert_int_eq(quire_trace_write(writer, &record, &refusal), QUIRE_IO);
		ck_assert_int_eq(quire_trace_commit(writer, &refusal), QUIRE_IO);
		ck_assert_int_eq(calls, 1);
	}
}
END_TEST

/* ---- damage ---- */

/* A frame for each line: what lies before the cut is read, and the frame cut is told. */
START_TEST(cut_at_any_byte_the_frames_before_stay_usable)
{
	size_t ends[12], size;

	for (int i = 0; i < 12; i++) {
		add_lines(i, i + 1, true);
		ends[i] = file.size;
	}
	size = file.size;
	for (size_t cut = 4; cut < size; cut++) {
		struct quire_refusal refusal;
		char what[QUIRE_TRACE_NAME_BYTES];
		enum quire_status end;
		int64_t num, lines = 0;
		bool between = false;

		for (int i = 0; i < 12; i++) {
			lines += ends[i] <= cut;
			between |= ends[i] == cut;
		}
		file.size = cut;
		num = count(&end, &refusal, what);
		SAME(num, lines - 1);
		SAME(end, between ? QUIRE_END : QUIRE_FORMAT);
		if (!between) {
			SAME(strncmp(what, "truncated", 9), 0);
			SAME(refusal.line, lines + 1);
		}
	}
}
END_TEST

/* Whatever bit is wrong: refused in the end, or it changed nothing. */
START_TEST(no_flipped_bit_goes_unseen)
{
	struct quire_trace_output output = {.write = take, .compress = true};
	struct quire_trace_record record = {.command.kind = QUIRE_COMMAND_OPEN};
	struct quire_trace_writer *writer;
	struct quire_trace_record got;

	ck_assert_int_eq(quire_trace_create_to(&output, &header, &writer, NULL),
	                 QUIRE_OK);
	for (int i = 0; i < 60; i++) {
		record.command.request = (uint64_t)i;
		SAME(quire_trace_write(writer, &record, NULL), QUIRE_OK);
		if (i % 20 == 0)
			SAME(quire_trace_flush(writer, NULL), QUIRE_OK);
	}
	ck_assert_int_eq(quire_trace_commit(writer, NULL), QUIRE_OK);
	for (size_t bit = 0; bit < file.size * 8; bit++) {
		struct quire_trace_reader *reader;
		struct quire_refusal refusal;
		enum quire_status status;
		uint64_t num = 0;
		bool same = true;

		file.bytes[bit / 8] ^= (char)(1 << bit % 8);
		status = open_file(&reader, &refusal);
		if (status == QUIRE_OK) {
			while ((status = quire_trace_next(reader, &got, &refusal)) ==
			       QUIRE_OK) {
				same &= got.command.kind == QUIRE_COMMAND_OPEN &&
				        got.command.request == num++;
			}
			quire_trace_close(reader);
		}
		if (status == QUIRE_END)
			SAME(same && num == 60, true);
		else
			SAME(status, QUIRE_FORMAT);
		file.bytes[bit / 8] ^= (char)(1 << bit % 8);
	}
}
END_TEST

/* Where the last block of the frame at @start begins (RFC 8878, 3.1.1). */
static size_t last_block(size_t start_of_frame, size_t header_bytes)
{
	size_t at = start_of_frame + header_bytes;

	for (;;) {
		const unsigned char *head = (unsigned char *)file.bytes + at;
		uint32_t block =
			head[0] | (uint32_t)head[1] << 8 | (uint32_t)head[2] << 16;
		bool rle = (block >> 1 & 3) == 1;

		if ((block & 1) != 0)
			return at;
		at += 3 + (rle ? 1 : block >> 3);
		ck_assert_uint_lt(at, file.size);
	}
}

START_TEST(blocks_before_a_damaged_one_are_handed_out)
{
	struct quire_trace_output output = {.write = take, .compress = true};
	struct quire_trace_record record = {.command.kind = QUIRE_COMMAND_OPEN};
	struct quire_trace_writer *writer;
	struct quire_refusal refusal;
	char what[QUIRE_TRACE_NAME_BYTES];
	enum quire_status end;
	int64_t cut, damaged;
	size_t block, size;

	ck_assert_int_eq(quire_trace_create_to(&output, &header, &writer, NULL),
	                 QUIRE_OK);
	for (int i = 0; i < 40000; i++) {
		record.command.request = (uint64_t)i;
		SAME(quire_trace_write(writer, &record, NULL), QUIRE_OK);
	}
	ck_assert_int_eq(quire_trace_commit(writer, NULL), QUIRE_OK);
	size = file.size;
	/* Header: magic, descriptor (checksum, no size), window. */
	ck_assert_int_eq(file.bytes[4], 4);
	block = last_block(0, 6);
	file.size = block;
	cut = count(&end, &refusal, what);
	ck_assert_int_eq(end, QUIRE_FORMAT);
	ck_assert_str_eq(what, "truncated: the ");
	ck_assert_int_gt(cut, 20000);
	ck_assert_int_lt(cut, 40000);
	file.size = size;
	file.bytes[block] |= 6; /* the block type that there is not */
	damaged = count(&end, &refusal, what);
	ck_assert_int_eq(end, QUIRE_FORMAT);
	ck_assert_str_eq(what, "damaged: the fi");
	ck_assert_int_eq(damaged, cut);
	ck_assert_int_eq(refusal.line, cut + 2);
}
END_TEST

/* The third block ends a line that is longer than the buffer at first, so there is no
 * room for the rest of it, in which more lines lie; and then the file ends. */
START_TEST(a_block_is_handed_out_to_its_end)
{
	static const size_t block_bytes = 131072, long_bytes = 390000;
	char *text = malloc(4 * block_bytes), line[1024];
	struct quire_refusal refusal;
	char what[QUIRE_TRACE_NAME_BYTES];
	size_t length = 0, size;
	int64_t num = 0;
	enum quire_status end;

	memset(text, ' ', long_bytes);
	for (int i = 0; length < 3 * block_bytes + 1000; i++) {
		size = (size_t)put_line(line, sizeof(line), i);
		memcpy(text + length, line, size);
		length += size;
		if (i == 1) { /* spaces behind its object */
			text[length - 1] = ' ';
			text[long_bytes - 1] = '\n';
			length = long_bytes;
		}
		num += length <= 3 * block_bytes;
	}
	add_frame(text, length);
	/* Header: magic, descriptor, four bytes of size. */
	file.size = last_block(0, 9);
	ck_assert_int_gt(num, 10);
	ck_assert_int_eq(count(&end, &refusal, what), num - 1);
	ck_assert_int_eq(end, QUIRE_FORMAT);
	ck_assert_str_eq(what, "truncated: the ");
	free(text);
}
END_TEST

/* A frame of one raw block whose window is 2^@log bytes. */
static enum quire_status open_window(int log, struct quire_refusal *refusal)
{
	uint32_t size = sizeof(HEADER); /* the text, and a line feed */
	const unsigned char head[] = {0x28,
	                              0xb5,
	                              0x2f,
	                              0xfd,
	                              0,
	                              (unsigned char)((log - 10) << 3),
	                              (size << 3 | 1) & 0xff,
	                              size << 3 >> 8 & 0xff,
	                              size << 3 >> 16};
	struct quire_trace_reader *reader = NULL;
	enum quire_status status;

	file.size = 0;
	add_bytes(head, sizeof(head));
	add_bytes(HEADER "\n", size);
	status = open_file(&reader, refusal);
	quire_trace_close(reader);
	return status;
}

START_TEST(a_window_has_a_bound)
{
	struct quire_refusal refusal;

	ck_assert_int_eq(open_window(20, &refusal), QUIRE_OK);
	ck_assert_int_eq(open_window(27, &refusal), QUIRE_OK);
	ck_assert_int_eq(open_window(28, &refusal), QUIRE_FORMAT);
	ck_assert_str_eq(refusal.what,
	                 "the window of a zstd frame must be at most 2^27 bytes");
	ck_assert_int_eq(refusal.line, 1);
}
END_TEST

START_TEST(what_follows_a_frame_is_a_frame)
{
	struct quire_refusal refusal;
	char what[QUIRE_TRACE_NAME_BYTES];
	enum quire_status end;

	add_lines(0, 3, false);
	add_bytes("{\"do\":\"open\",\"request\":2}\n", 26);
	ck_assert_int_eq(count(&end, &refusal, what), 2);
	ck_assert_int_eq(end, QUIRE_FORMAT);
	ck_assert_str_eq(what, "damaged: the fi");
	ck_assert_int_eq(refusal.line, 4);
}
END_TEST

/* ---- request traces ---- */

START_TEST(request_traces_are_read_packed_too)
{
	static const char azure[] = "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
				    "2023-11-16 18:17:03.9799600,4808,10\r\n"
				    "2023-11-16 18:17:04.0799600,3,7";
	struct quire_requests *requests;
	struct quire_request_row row;

	add_frame(azure, sizeof(azure) - 1);
	temporary_fill(&temporary, file.bytes, file.size);
	ck_assert_int_eq(quire_requests_open(temporary.path, &requests, NULL), QUIRE_OK);
	ck_assert_int_eq(quire_requests_next(requests, &row, NULL), QUIRE_OK);
	ck_assert_int_eq(quire_requests_next(requests, &row, NULL), QUIRE_OK);
	ck_assert_int_eq(row.arrival_ns, 100000000);
	ck_assert_int_eq(row.input_tokens, 3);
	ck_assert_int_eq(row.output_tokens, 7);
	ck_assert_int_eq(quire_requests_next(requests, &row, NULL), QUIRE_END);
	quire_requests_close(requests);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("trace packed");
	TCase *cases = tcase_create("trace packed");

	tcase_add_checked_fixture(cases, start, finish);
	tcase_set_timeout(cases, 60);
	tcase_add_test(cases, frames_of_any_sort_are_one_text);
	tcase_add_test(cases, nothing_in_frames_is_an_empty_file);
	tcase_add_test(cases, what_is_written_packed_is_read_back);
	tcase_add_test(cases, a_flush_ends_a_frame_and_what_was_written_can_be_read);
	tcase_add_test(cases, an_output_that_fails_is_an_io_error_from_then_on);
	tcase_add_test(cases, cut_at_any_byte_the_frames_before_stay_usable);
	tcase_add_test(cases, no_flipped_bit_goes_unseen);
	tcase_add_test(cases, blocks_before_a_damaged_one_are_handed_out);
	tcase_add_test(cases, a_block_is_handed_out_to_its_end);
	tcase_add_test(cases, a_window_has_a_bound);
	tcase_add_test(cases, what_follows_a_frame_is_a_frame);
	tcase_add_test(cases, request_traces_are_read_packed_too);
	suite_add_tcase(suite, cases);
	return run_suite(suite);
}
