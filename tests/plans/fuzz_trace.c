/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a plan trace: a clear refusal, or records that a writer takes and that are
 * read back as they were; those before a refusal, too.
 */
#include "config.h"

#include "fuzz_input.h"
#include "same_record.h"

#include <quire/plans/trace.h>

/* What a writer wrote. */
struct written {
	char *bytes;
	size_t size;
	size_t room;
};

static enum quire_status take(void *argument, const void *bytes, size_t n)
{
	struct written *written = argument;

	while (written->size + n > written->room) {
		written->room = written->room > 0 ? written->room * 2 : 65536;
		written->bytes = realloc(written->bytes, written->room);
		DEMAND(written->bytes != NULL);
	}
	memcpy(written->bytes + written->size, bytes, n);
	written->size += n;
	return QUIRE_OK;
}

static void demand_clear(const struct quire_refusal *refusal)
{
	DEMAND(refusal->status == QUIRE_FORMAT);
	DEMAND(refusal->line >= 0);
	DEMAND(refusal->what != NULL && strlen(refusal->what) > 4);
}

/* Reads all records, and writes them when there is a writer.  Answers how many. */
static int64_t copy(struct quire_trace_reader *reader, struct quire_trace_writer *writer)
{
	struct quire_trace_record record;
	struct quire_refusal refusal, again;
	enum quire_status status;
	int64_t num = 0;

	while ((status = quire_trace_next(reader, &record, &refusal)) == QUIRE_OK) {
		DEMAND(record.line == num + 2);
		DEMAND(quire_trace_write(writer, &record, NULL) == QUIRE_OK);
		num++;
	}
	if (status != QUIRE_END) {
		demand_clear(&refusal);
		DEMAND(refusal.line == num + 2);
	}
	DEMAND(quire_trace_next(reader, &record, &again) == status);
	DEMAND(strcmp(again.what, refusal.what) == 0);
	return num;
}

static void compare(struct quire_trace_reader *reader, const struct written *written,
                    int64_t num)
{
	struct quire_trace_record right, got;
	struct quire_trace_reader *copied;
	struct fuzz_file file;

	fuzz_file_make(&file, written->bytes, written->size);
	DEMAND(quire_trace_open(file.path, &copied, NULL) == QUIRE_OK);
	DEMAND(memcmp(quire_trace_header(copied), quire_trace_header(reader),
	              sizeof(struct quire_trace_header)) == 0);
	for (int64_t i = 0; i < num; i++) {
		DEMAND(quire_trace_next(reader, &right, NULL) == QUIRE_OK);
		DEMAND(quire_trace_next(copied, &got, NULL) == QUIRE_OK);
		DEMAND(got.line == right.line && same_record(&got, &right));
	}
	DEMAND(quire_trace_next(copied, &got, NULL) == QUIRE_END);
	quire_trace_close(copied);
	fuzz_file_end(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct written written = {.bytes = NULL};
	struct quire_trace_output output = {take, &written, size % 2 == 1};
	struct quire_trace_reader *reader;
	struct quire_trace_writer *writer;
	struct quire_refusal refusal;
	struct fuzz_file file;
	int64_t num;

	fuzz_file_make(&file, bytes, size);
	if (quire_trace_open(file.path, &reader, &refusal) != QUIRE_OK) {
		demand_clear(&refusal);
		fuzz_file_end(&file);
		return 0;
	}
	DEMAND(quire_trace_create_to(&output, quire_trace_header(reader), &writer,
	                             NULL) == QUIRE_OK);
	num = copy(reader, writer);
	DEMAND(quire_trace_commit(writer, NULL) == QUIRE_OK);
	quire_trace_close(reader);
	DEMAND(quire_trace_open(file.path, &reader, NULL) == QUIRE_OK);
	compare(reader, &written, num);
	quire_trace_close(reader);
	free(written.bytes);
	fuzz_file_end(&file);
	return 0;
}
