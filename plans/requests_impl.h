/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_PLANS_REQUESTS_IMPL_H
#define QUIRE_PLANS_REQUESTS_IMPL_H
/*
 * Request traces in CSV: which columns they have, and what a row says.  Sessions of coding
 * agents: one JSON object, whose turns are the rows.
 */
#include "plans/json_impl.h"
#include "plans/lines_impl.h"

#include <quire/plans/requests.h>
#include <quire/runtime/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QUIRE_SECOND_NS INT64_C(1000000000)

/* Seconds of a time: of about 230 years, whose nanoseconds, and what a request adds to
 * them, fit in 63 bits. */
#define QUIRE_REQUEST_SECONDS_MAX (INT64_C(230) * 366 * 24 * 3600)

/* What quire_request_seconds takes, for a refusal. */
#define QUIRE_REQUEST_SECONDS "seconds of 230 years at most, digits[.digits]"

/*
 * quire_request_seconds - "4.314579" in nanoseconds; digits beyond them are cut off
 * @text:    borrowed; of @size bytes
 * Returns:  false: it is not QUIRE_REQUEST_SECONDS.
 */
bool quire_request_seconds(const char *text, size_t size, int64_t *ns_out);

/* One format: its name and those of its columns. */
struct quire_csv_format {
	const char *name;
	const char *time;
	const char *input;
	const char *output;
	bool dated;    /* a time is a date and a time of day, not seconds */
	bool timeless; /* the column may be missing: all times are 0 */
};

/* What the first line of a file said: which field of a row is what. */
struct quire_csv {
	const struct quire_csv_format *format;
	int num_fields;
	int time; /* -1: there is none */
	int input;
	int output;
	const char *twice; /* a column that is there twice; NULL: none */
};

/* quire_csv_header - the columns of @line; false: they are those of no format */
bool quire_csv_header(struct quire_csv *csv, const struct quire_line *line);

/* The first lines that quire_csv_header knows, for a refusal. */
#define QUIRE_CSV_HEADERS                                  \
	"a list of columns with TIMESTAMP, ContextTokens " \
	"and GeneratedTokens (Azure), Timestamp, Request " \
	"tokens and Response tokens (BurstGPT) or "        \
	"num_prefill_tokens and num_decode_tokens (Vidur)"

/*
 * quire_csv_row - a row's time and tokens
 * @line:    borrowed
 * @number:  of the line
 * @ns_out:  filled; absolute, 0 or more
 * @row:     its tokens are filled
 * Returns:  QUIRE_OK; QUIRE_FORMAT {what, line}.
 */
QUIRE_MUST_CHECK enum quire_status quire_csv_row(const struct quire_csv *csv,
                                                 const struct quire_line *line,
                                                 int64_t number, int64_t *ns_out,
                                                 struct quire_request_row *row,
                                                 struct quire_refusal *refusal_out);

/* A session that was read; zeroed before, and turns.items is to be freed. */
struct quire_session {
	int64_t block_tokens;         /* that one of hash_ids names */
	struct quire_json_list turns; /* in the order of arrival */
	int64_t num_turns;
	int64_t next; /* the turn to hand out */
};

/*
 * quire_session_load - find and sort the turns of a session
 * @json:    borrowed; its line is the session, and stays until the last turn
 * Returns:  QUIRE_OK; QUIRE_FORMAT {what, line}; QUIRE_NO_MEMORY.
 * Cost:     O(values log(turns)).
 */
QUIRE_MUST_CHECK enum quire_status quire_session_load(struct quire_session *session,
                                                      const struct quire_json *json);

/*
 * quire_session_next - the next turn's time, tokens and names
 * @json:    borrowed; as it was loaded from
 * @keys:    what becomes the row's keys
 * @ns_out:  filled; absolute, 0 or more
 * Returns:  QUIRE_OK; QUIRE_END; QUIRE_FORMAT {what, line, expected, got};
 *           QUIRE_NO_MEMORY.
 */
QUIRE_MUST_CHECK enum quire_status quire_session_next(struct quire_session *session,
                                                      const struct quire_json *json,
                                                      struct quire_json_list *keys,
                                                      int64_t *ns_out,
                                                      struct quire_request_row *row);

#endif
