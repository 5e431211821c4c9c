/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_PLANS_REQUESTS_IMPL_H
#define QUIRE_PLANS_REQUESTS_IMPL_H
/*
 * Request traces in CSV: which columns they have, and what a row says.
 */
#include "plans/lines_impl.h"

#include <quire/plans/requests.h>
#include <quire/runtime/status.h>

#include <stdbool.h>
#include <stdint.h>

#define QUIRE_SECOND_NS INT64_C(1000000000)

/* Seconds of a time: of about 230 years, whose nanoseconds, and what a request adds to
 * them, fit in 63 bits. */
#define QUIRE_REQUEST_SECONDS_MAX (INT64_C(230) * 366 * 24 * 3600)

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

#endif
