/* SPDX-License-Identifier: MIT */
/*
 * Memory and plan traces: each allocation of writing and reading one fails, once or from
 * then on, and is refused without a leak; and a line as long as those before it asks for
 * none.
 */
#include "config.h"

#include "tests/run_suite.h"
#include "tests/runtime/counting_malloc.h"

#include <quire/plans/trace.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SKIPPED 77

#if COUNTING_MALLOC

#define ROWS  100
#define PAGES 3000

static const struct quire_trace_header header = {
	.layout = "NHD",
	.dtype = "bf16",
	.num_layers = 1,
	.num_kv_heads = 1,
	.head_dim = 8,
	.page_size = 16,
	.num_pages = PAGES,
	.rows_max = ROWS,
	.tokens_max = 8192,
	.requests_max = 1024,
	.seq_tokens_max = 1024,
	.request_labels_max = 4,
	.tables_max = 4,
	.table_pages_max = 4096,
};

/* Lists that outgrow the first room of every list; the one of pages does so twice. */
static enum quire_status write_step(struct quire_trace_writer *writer, int32_t num_pages)
{
	static struct quire_segment segments[ROWS];
	static int32_t pages[PAGES];
	static int64_t keys[ROWS];
	const struct quire_step step = {.segments = segments, .num_segments = ROWS};
	const struct quire_trace_record records[] = {
		{.command = {.kind = QUIRE_COMMAND_OPEN},
	         .prefix = {.tokens = 1, .num_keys = ROWS, .keys = keys}},
		{.command = {.kind = QUIRE_COMMAND_SUBMIT, .step = &step},
	         .has_outcome = true,
	         .outcome = {.has_pages = true, .num_pages = num_pages, .pages = pages}},
	};
	enum quire_status status = quire_trace_write(writer, &records[0], NULL);

	return status != QUIRE_OK ? status : quire_trace_write(writer, &records[1], NULL);
}

static enum quire_status write_trace(const char *path, int32_t num_steps,
                                     struct quire_refusal *refusal)
{
	struct quire_trace_writer *writer;
	enum quire_status status = quire_trace_create(path, &header, &writer, refusal);

	if (status != QUIRE_OK)
		return status;
	for (int32_t i = 0; i < num_steps && status == QUIRE_OK; i++)
		status = write_step(writer, i == 0 ? ROWS : PAGES);
	if (status == QUIRE_OK)
		return quire_trace_commit(writer, refusal);
	quire_trace_discard(writer);
	return status;
}

static enum quire_status read_trace(const char *path, int64_t *num_out,
                                    struct quire_refusal *refusal)
{
	struct quire_trace_reader *reader;
	struct quire_trace_record record;
	enum quire_status status = quire_trace_open(path, &reader, refusal);

	if (status != QUIRE_OK)
		return status;
	while ((status = quire_trace_next(reader, &record, refusal)) == QUIRE_OK)
		++*num_out;
	quire_trace_close(reader);
	return status;
}

static enum quire_status work(const char *path, bool reading,
                              struct quire_refusal *refusal)
{
	int64_t num = 0;

	return reading ? read_trace(path, &num, refusal) : write_trace(path, 3, refusal);
}

/* Fails one allocation after the other, until all that there are were seen. */
static void fail_each(const char *path, bool reading, bool fail_on, int least)
{
	enum quire_status good = reading ? QUIRE_END : QUIRE_OK;
	struct quire_refusal refusal;
	enum quire_status status;
	int64_t failed, live;
	int i = 0;

	do {
		refusal.what = "";
		counting.num_live = 0;
		atomic_store(&counting.failed, 0);
		atomic_store(&counting.fail_on, fail_on);
		atomic_store(&counting.remembers, true);
		atomic_store(&counting.fail_in, ++i);
		status = work(path, reading, &refusal);
		atomic_store(&counting.fail_in, 0);
		atomic_store(&counting.remembers, false);
		failed = atomic_load(&counting.failed);
		live = counting.num_live;
		ck_assert_int_eq(status, failed > 0 ? QUIRE_NO_MEMORY : good);
		if (failed > 0)
			ck_assert_ptr_nonnull(strstr(refusal.what, "no memory"));
		ck_assert_msg(live == 0, "%d: %d pieces of memory are left", i,
		              (int)live);
	} while (failed > 0);
	ck_assert_int_gt(i, least);
}

static char path[] = "fault_trace.XXXXXX.zst";

static void setup(void)
{
	int fd = mkstemps(path, 4);

	ck_assert_int_ge(fd, 0);
	close(fd);
}

static void teardown(void)
{
	unlink(path);
}

START_TEST(an_allocation_that_fails_is_refused_and_leaks_nothing)
{
	static char plain[] = "fault_trace.plain";

	for (int compress = 0; compress < 2; compress++) {
		const char *name = compress == 1 ? path : plain;

		for (int on = 0; on < 2; on++) {
			/* A writer and its target; a packer. */
			fail_each(name, false, on == 1, compress == 1 ? 3 : 2);
			ck_assert_int_eq(write_trace(name, 3, NULL), QUIRE_OK);
			/* A reader, its buffer, values, segments, pages, keys. */
			fail_each(name, true, on == 1, compress == 1 ? 7 : 6);
		}
	}
	unlink(plain);
}
END_TEST

START_TEST(a_line_as_long_as_others_asks_for_no_memory)
{
	struct quire_trace_reader *reader;
	struct quire_trace_record record;
	enum quire_status status;
	int64_t before = 0, after, num = 0;

	ck_assert_int_eq(write_trace(path, 200, NULL), QUIRE_OK);
	ck_assert_int_eq(quire_trace_open(path, &reader, NULL), QUIRE_OK);
	while ((status = quire_trace_next(reader, &record, NULL)) == QUIRE_OK) {
		if (++num == 4)
			before = atomic_load(&counting.requests);
	}
	after = atomic_load(&counting.requests);
	ck_assert_int_eq(status, QUIRE_END);
	ck_assert_int_eq(num, 400);
	ck_assert_int_eq(after, before);
	quire_trace_close(reader);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("trace faults");
	TCase *cases = tcase_create("trace faults");

	tcase_add_checked_fixture(cases, setup, teardown);
	tcase_set_timeout(cases, 60);
	tcase_add_test(cases, an_allocation_that_fails_is_refused_and_leaks_nothing);
	tcase_add_test(cases, a_line_as_long_as_others_asks_for_no_memory);
	suite_add_tcase(suite, cases);
	return run_suite(suite);
}

#else

int main(void)
{
	puts("skipped: a sanitizer has an allocator of its own");
	return SKIPPED;
}
#endif
