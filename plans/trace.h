/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_PLANS_TRACE_H
#define QUIRE_PLANS_TRACE_H
/*
 * Plan traces, format 1 (docs/trace-format.md): JSON Lines, a header and one command per
 * line.
 *
 * Reading is strict about what is named (a wrong value is refused with file line and
 * field) and lenient about what is not: unknown fields are skipped.  The names of all
 * commands of format 1 are known; those that this version does not run are refused by
 * name, as unknown ones are.  The ids that a promote, an abandon or a base speaks of are
 * passed on as they stand: whether there is such a step is for a replay to say.
 *
 * A refusal's `what` is a text made at run time: lent by a reader until it is closed, by
 * all other functions until the calling thread's next refusal from plans/.
 *
 * Threads: a reader or writer is used by one thread at a time.
 */
#include <quire/plans/step.h>
#include <quire/runtime/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QUIRE_TRACE_VERSION 1

/* Bytes of a short name in a header (layout, dtype) with its terminating zero. */
#define QUIRE_TRACE_NAME_BYTES 16

/* The first line: what the commands were written for. */
struct quire_trace_header {
	char layout[QUIRE_TRACE_NAME_BYTES];
	char dtype[QUIRE_TRACE_NAME_BYTES];
	int64_t num_layers;
	int64_t num_kv_heads;
	int64_t head_dim;
	int64_t page_size;
	int64_t num_pages;
	bool sink;
	int64_t rows_max;       /* most segments of one step */
	int64_t tokens_max;     /* most tokens of one table of a step, padding included */
	int64_t requests_max;   /* most requests open at once */
	int64_t seq_tokens_max; /* most tokens of one stream */
	int64_t request_labels_max; /* most labels of one request */
	int64_t tables_max;         /* most tables of one step */
	int64_t table_pages_max;    /* most pages of one table */
	int64_t row_pages_max;      /* most pages of one row; 0: as many as a table */
	char source[256]; /* where the trace comes from, for people; may be empty */
};

/* What a recorder wrote beside a command: its outcome. */
struct quire_trace_outcome {
	enum quire_status status;
	int64_t detail;  /* pages_short of NO_PAGES, got of STALE, otherwise 0 */
	uint64_t digest; /* of the plan, when has_digest */
	bool has_digest;
	/* What refused it is not in the trace (its built-in work): a replay leaves it
	 * out. */
	bool is_outside;
	bool has_pages;
	int32_t num_pages;
	const int32_t *pages; /* that the step took, in order; lent as a command is */
};

/* The detail of an outcome. */
static inline int64_t quire_trace_detail(const struct quire_refusal *refusal)
{
	if (refusal->status == QUIRE_NO_PAGES)
		return refusal->pages_short;
	return refusal->status == QUIRE_STALE ? refusal->got : 0;
}

/* When it was, in nanoseconds since the recording began. */
struct quire_trace_times {
	int64_t given_ns;
	int64_t decided_ns; /* by the planner */
	int64_t issued_ns;  /* of a step that was; otherwise -1 */
};

/* Names of a request's prompt, known when it is opened; no outcome hangs on them.  Key i
 * names its first (i + 1) * tokens tokens, the last one all of them where they are
 * fewer. */
struct quire_trace_prefix {
	int64_t tokens; /* 1..QUIRE_SEQ_TOKENS_MAX; 0: there are no names */
	int32_t num_keys;
	const int64_t *keys; /* 0 or more; lent as a command is */
};

struct quire_trace_record {
	int64_t line; /* in the file, 1-based */
	uint64_t id;  /* the command's own name in the trace; 0: none */
	/* All it points to is lent until the next read; `target` is an id. */
	struct quire_command command;
	/* Of a speculative submit: is the step that it rests on written out, and which is
	 * it?  0: none. */
	bool has_base;
	uint64_t base;
	struct quire_trace_prefix prefix; /* of an open */
	bool has_outcome;
	struct quire_trace_outcome outcome;
	bool has_times;
	struct quire_trace_times times;
};

/* Where a trace goes that is no file by name. */
struct quire_trace_output {
	/* Takes all bytes, in order.  Anything but QUIRE_OK ends the writer: its
	 * functions answer QUIRE_IO from then on. */
	enum quire_status (*write)(void *argument, const void *bytes, size_t n);
	void *argument; /* kept until the writer is ended */
	bool compress;  /* zstd, a frame at each flush */
};

struct quire_trace_reader;
struct quire_trace_writer;

/*
 * quire_trace_open - open a plan trace and read its header
 * @path:    borrowed; "-" is standard input; zstd is found by content
 * @reader_out: given; end it with quire_trace_close
 * @refusal_out: filled on refusal {what, line}; NULL allowed
 * Returns:  QUIRE_OK; QUIRE_IO: cannot be read; QUIRE_FORMAT: empty, not a plan trace,
 *           another version, a header field missing or out of range; QUIRE_NO_MEMORY.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_trace_open(const char *path, struct quire_trace_reader **reader_out,
                 struct quire_refusal *refusal_out);

/* quire_trace_header - the header; lent until quire_trace_close */
QUIRE_API const struct quire_trace_header *
quire_trace_header(const struct quire_trace_reader *reader);

/*
 * quire_trace_next - the next command
 * Returns:  QUIRE_OK; QUIRE_END: no more; QUIRE_FORMAT {what: the field or fault, line};
 *           QUIRE_IO.  After a refusal the reader stays where it is and answers the same
 *           again; whole lines before it were good.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_trace_next(struct quire_trace_reader *reader, struct quire_trace_record *record_out,
                 struct quire_refusal *refusal_out);

/* quire_trace_position - bytes of the file read so far, decompressed where they are
 * compressed, and its size (-1: not known) */
QUIRE_API void quire_trace_position(const struct quire_trace_reader *reader,
                                    int64_t *read_out, int64_t *size_out);

/* quire_trace_close - @reader: given, NULL is a no-op */
QUIRE_API void quire_trace_close(struct quire_trace_reader *reader);

/*
 * quire_trace_create - write a plan trace beside @path under a temporary name
 * @path:    borrowed; "-" is standard output; one that ends in ".zst" is compressed
 * @header:  borrowed; checked as the reader checks it
 * @writer_out: given; end it with quire_trace_commit or quire_trace_discard
 * Returns:  QUIRE_OK; QUIRE_INVALID {what: the field}; QUIRE_IO; QUIRE_NO_MEMORY.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status quire_trace_create(
	const char *path, const struct quire_trace_header *header,
	struct quire_trace_writer **writer_out, struct quire_refusal *refusal_out);

/*
 * quire_trace_create_to - the same, to a function
 * @output:  borrowed
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status quire_trace_create_to(
	const struct quire_trace_output *output, const struct quire_trace_header *header,
	struct quire_trace_writer **writer_out, struct quire_refusal *refusal_out);

/*
 * quire_trace_write - append one command; its line number is ignored
 * Returns:  QUIRE_OK; QUIRE_INVALID: a command that the reader would refuse; QUIRE_IO;
 *           QUIRE_NO_MEMORY: none to compress.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status quire_trace_write(
	struct quire_trace_writer *writer, const struct quire_trace_record *record,
	struct quire_refusal *refusal_out);

/*
 * quire_trace_flush - hand out all that was written so far; of a compressed trace a frame
 * ends here, and a reader has every line of it though nothing else follows
 * Returns:  QUIRE_OK; QUIRE_IO; QUIRE_NO_MEMORY: none to compress.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_trace_flush(struct quire_trace_writer *writer, struct quire_refusal *refusal_out);

/*
 * quire_trace_commit - flush, and give the file its name in one step; ends the writer
 * @writer:  given
 * Returns:  QUIRE_OK; QUIRE_IO, QUIRE_NO_MEMORY: nothing was written over, the temporary
 *           file is removed.
 *           A writer to a function only flushes.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_trace_commit(struct quire_trace_writer *writer, struct quire_refusal *refusal_out);

/* quire_trace_discard - remove what was written to a file; @writer: given, NULL is a no-op */
QUIRE_API void quire_trace_discard(struct quire_trace_writer *writer);

#ifdef __cplusplus
}
#endif
#endif
