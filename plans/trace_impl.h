/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_PLANS_TRACE_IMPL_H
#define QUIRE_PLANS_TRACE_IMPL_H
/*
 * What the reader and the writer of plan traces share: the fields of a header with their
 * ranges, the checks, the state of both.
 */
#include "plans/fault_impl.h"
#include "plans/json_impl.h"
#include "plans/lines_impl.h"
#include "plans/packer_impl.h"
#include "plans/target_impl.h"

#include <quire/plans/trace.h>
#include <quire/runtime/limits.h>

#include <stddef.h>

/* An integer field of a header. */
struct quire_trace_field {
	const char *scope;
	const char *name;
	size_t offset; /* of the int64_t in struct quire_trace_header */
	int64_t max;   /* it is 1..max */
};

extern const struct quire_trace_field quire_trace_fields[];
extern const int quire_trace_num_fields;

/* The names of the commands, by kind. */
#define QUIRE_TRACE_NUM_KINDS (QUIRE_COMMAND_ABANDON + 1)
extern const char *const quire_trace_kinds[QUIRE_TRACE_NUM_KINDS];

static inline int64_t *quire_trace_field_of(struct quire_trace_header *header,
                                            const struct quire_trace_field *field)
{
	return (int64_t *)((char *)header + field->offset);
}

/*
 * quire_trace_check_header - may a trace begin with it?
 * @failure: the status of a refusal: FORMAT for a reader, INVALID for a writer
 * Returns:  QUIRE_OK; @failure {what, line}.
 */
QUIRE_MUST_CHECK enum quire_status quire_trace_check_header(
	const struct quire_trace_header *header, enum quire_status failure, int64_t line,
	struct quire_refusal *refusal_out);

/*
 * quire_trace_check_record - may a writer append it, after a record with @last_id?
 * Returns:  QUIRE_OK; QUIRE_INVALID {what}.
 */
QUIRE_MUST_CHECK enum quire_status quire_trace_check_record(
	const struct quire_trace_record *record, const struct quire_trace_header *header,
	uint64_t last_id, struct quire_refusal *refusal_out);

/* Ids of commands are JSON integers. */
#define QUIRE_TRACE_ID_MAX INT64_MAX

struct quire_trace_reader {
	struct quire_lines lines;
	struct quire_trace_header header;
	struct quire_json json; /* the line of the last record, which points into it */
	uint64_t last_id;
	struct quire_step step;          /* of the last record, with its arrays: */
	struct quire_json_list segments; /* struct quire_segment */
	struct quire_combined combined[QUIRE_TABLES_MAX];
	const char *labels[QUIRE_TABLES_MAX][QUIRE_LABELS_MAX];
	struct quire_fork pre_forks[QUIRE_FORKS_MAX];
	struct quire_fork post_forks[QUIRE_FORKS_MAX];
	struct quire_json_list pages; /* int32_t */
	struct quire_json_list keys;  /* int64_t */
	enum quire_status ended;      /* not QUIRE_OK: what every further read answers */
	struct quire_refusal refusal;
	char text[QUIRE_FAULT_BYTES];
};

/* Bytes gathered before one write. */
#define QUIRE_TRACE_BUFFER_BYTES ((size_t)256 << 10)

struct quire_trace_writer {
	struct quire_trace_header header;
	uint64_t last_id;
	struct quire_trace_output output; /* where it goes ... */
	struct quire_target target;       /* ... or, when `to_target`, a file */
	bool to_target;
	struct quire_packer *packer; /* NULL: it is not compressed */
	enum quire_status failure;   /* of the first write that failed */
	int error;                   /* errno of it; 0: not known */
	bool counting;               /* bytes handed on go nowhere, and are counted */
	size_t counted;
	size_t used;
	char buffer[QUIRE_TRACE_BUFFER_BYTES];
};

/* quire_trace_hand_on - empty the buffer; @end: of a frame, too */
void quire_trace_hand_on(struct quire_trace_writer *writer, bool end);

/* quire_trace_put_header, quire_trace_put_record - a line, into the buffer */
void quire_trace_put_header(struct quire_trace_writer *writer);
void quire_trace_put_record(struct quire_trace_writer *writer,
                            const struct quire_trace_record *record);

/*
 * quire_trace_parse_header, quire_trace_parse_record - from the line in reader->json
 * Returns:  QUIRE_OK; QUIRE_FORMAT {what, line}; QUIRE_NO_MEMORY.
 */
QUIRE_MUST_CHECK enum quire_status quire_trace_parse_header(
	const struct quire_json *json, struct quire_trace_header *header);
QUIRE_MUST_CHECK enum quire_status quire_trace_parse_record(
	struct quire_trace_reader *reader, struct quire_trace_record *record);

/*
 * quire_trace_parse_submit - the fields of a step, into reader->step
 * quire_trace_parse_base - what a speculative submit needs beside them; id is parsed
 * Returns:  as quire_trace_parse_record.
 */
QUIRE_MUST_CHECK enum quire_status
quire_trace_parse_submit(struct quire_trace_reader *reader);
QUIRE_MUST_CHECK enum quire_status quire_trace_parse_base(
	struct quire_trace_reader *reader, struct quire_trace_record *record);

/* outcome and times, when they are there */
QUIRE_MUST_CHECK enum quire_status quire_trace_parse_outcome(
	struct quire_trace_reader *reader, struct quire_trace_record *record);

/* Set @flag when the field @name is there and has the value @when. */
QUIRE_MUST_CHECK enum quire_status quire_trace_parse_flag(const struct quire_json *json,
                                                          const char *name, bool when,
                                                          uint32_t flag, uint32_t *flags);

#endif
