/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "plans/trace_impl.h"

#include <stdlib.h>
#include <string.h>

static enum quire_status read_header(struct quire_trace_reader *reader,
                                     struct quire_refusal *refusal_out)
{
	struct quire_line line;
	enum quire_status status = quire_lines_next(&reader->lines, &line, refusal_out);

	if (status == QUIRE_END)
		return quire_fault(refusal_out, QUIRE_FORMAT, 0, "the file is empty");
	if (status != QUIRE_OK)
		return status;
	if (line.length == 0 || line.text[0] != '{')
		return quire_fault(
			refusal_out, QUIRE_FORMAT, 1,
			"not a plan trace: the first line must be an object with "
			"quire \"plan-trace\"");
	status = quire_json_parse(&reader->json, &reader->lines, &line, refusal_out);
	return status != QUIRE_OK
	               ? status
	               : quire_trace_parse_header(&reader->json, &reader->header);
}

enum quire_status quire_trace_open(const char *path,
                                   struct quire_trace_reader **reader_out,
                                   struct quire_refusal *refusal_out)
{
	struct quire_trace_reader *reader = calloc(1, sizeof(*reader));
	enum quire_status status;

	if (reader == NULL)
		return quire_fault(refusal_out, QUIRE_NO_MEMORY, 0,
		                   "no memory for a reader");
	status = quire_lines_open(&reader->lines, path, refusal_out);
	if (status != QUIRE_OK)
		goto undo_reader;
	status = read_header(reader, refusal_out);
	if (status != QUIRE_OK)
		goto undo_lines;
	*reader_out = reader;
	return QUIRE_OK;

undo_lines:
	quire_json_free(&reader->json);
	quire_lines_close(&reader->lines);
undo_reader:
	free(reader);
	return status;
}

const struct quire_trace_header *
quire_trace_header(const struct quire_trace_reader *reader)
{
	return &reader->header;
}

static enum quire_status next_record(struct quire_trace_reader *reader,
                                     struct quire_trace_record *record,
                                     struct quire_refusal *refusal)
{
	struct quire_line line;
	enum quire_status status = quire_lines_next(&reader->lines, &line, refusal);

	if (status == QUIRE_OK)
		status = quire_json_parse(&reader->json, &reader->lines, &line, refusal);
	return status != QUIRE_OK ? status : quire_trace_parse_record(reader, record);
}

enum quire_status quire_trace_next(struct quire_trace_reader *reader,
                                   struct quire_trace_record *record_out,
                                   struct quire_refusal *refusal_out)
{
	struct quire_trace_record record;

	if (reader->ended == QUIRE_OK) {
		reader->refusal = (struct quire_refusal){.status = QUIRE_END, .what = ""};
		reader->ended = next_record(reader, &record, &reader->refusal);
		if (reader->ended == QUIRE_OK) {
			*record_out = record;
			return QUIRE_OK;
		}
		strcpy(reader->text, reader->refusal.what);
		reader->refusal.what = reader->text;
	}
	if (refusal_out != NULL)
		*refusal_out = reader->refusal;
	return reader->ended;
}

void quire_trace_position(const struct quire_trace_reader *reader, int64_t *read_out,
                          int64_t *size_out)
{
	quire_lines_position(&reader->lines, read_out, size_out);
}

void quire_trace_close(struct quire_trace_reader *reader)
{
	if (reader == NULL)
		return;
	quire_json_free(&reader->json);
	quire_lines_close(&reader->lines);
	free(reader->segments.items);
	free(reader->pages.items);
	free(reader->keys.items);
	free(reader);
}
