/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <quire/plans/requests.h>

#include "plans/fault_impl.h"
#include "plans/json_impl.h"
#include "plans/lines_impl.h"
#include "plans/requests_impl.h"

#include <quire/runtime/limits.h>
#include <quire/runtime/refuse_impl.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MILLISECONDS_MAX (QUIRE_REQUEST_SECONDS_MAX * 1000)

struct quire_requests {
	struct quire_lines lines;
	struct quire_line line; /* the last one */
	bool unread;            /* `json` is a row that nobody was given yet */
	bool is_json;
	bool is_session;      /* JSON that is one, not Mooncake's */
	struct quire_csv csv; /* of what is not JSON */
	int64_t num_rows;     /* so far */
	int64_t first_ns;     /* absolute time of the first row */
	int64_t last_ns;      /* ... and of the last */
	struct quire_json json;
	struct quire_session session; /* when is_session */
	struct quire_json_list keys;  /* of the last row */
	enum quire_status ended;      /* not QUIRE_OK: what every further read answers */
	struct quire_refusal refusal;
	char text[QUIRE_FAULT_BYTES];
};

/* The first line of JSON: a row already, or a whole session. */
static enum quire_status read_object(struct quire_requests *requests,
                                     struct quire_refusal *refusal_out)
{
	struct quire_json *json = &requests->json;

	if (memmem(requests->line.text, requests->line.length, "\"quire\"", 7) != NULL)
		return quire_fault(refusal_out, QUIRE_INVALID, 1,
		                   "a plan trace, not a request trace");
	QUIRE_TRY(quire_json_parse(json, &requests->lines, &requests->line, refusal_out));
	requests->is_session = quire_json_get(json->root, "timestamp") == NULL &&
	                       quire_json_get(json->root, "requests") != NULL;
	requests->unread = !requests->is_session;
	return requests->is_session ? quire_session_load(&requests->session, json)
	                            : QUIRE_OK;
}

/* The first line tells the format. */
static enum quire_status read_format(struct quire_requests *requests,
                                     struct quire_refusal *refusal_out)
{
	const struct quire_line *line = &requests->line;
	enum quire_status status =
		quire_lines_next(&requests->lines, &requests->line, refusal_out);

	if (status == QUIRE_END)
		return quire_fault(refusal_out, QUIRE_FORMAT, 0, "the file is empty");
	if (status != QUIRE_OK)
		return status;
	requests->is_json = line->length > 0 && line->text[0] == '{';
	if (requests->is_json)
		return read_object(requests, refusal_out);
	if (!quire_csv_header(&requests->csv, line))
		return quire_fault(refusal_out, QUIRE_FORMAT, 1,
		                   "not a request trace: the first line must be a JSON "
		                   "object (Mooncake, or a session) "
		                   "or " QUIRE_CSV_HEADERS);
	if (requests->csv.twice != NULL)
		return quire_fault(refusal_out, QUIRE_FORMAT, 1,
		                   "the first line must name the column %s once, it does "
		                   "so twice",
		                   requests->csv.twice);
	return QUIRE_OK;
}

static void free_json(struct quire_requests *requests)
{
	quire_json_free(&requests->json);
	free(requests->session.turns.items);
	free(requests->keys.items);
}

enum quire_status quire_requests_open(const char *path,
                                      struct quire_requests **requests_out,
                                      struct quire_refusal *refusal_out)
{
	struct quire_requests *requests = calloc(1, sizeof(*requests));
	enum quire_status status;

	if (requests == NULL)
		return quire_fault(refusal_out, QUIRE_NO_MEMORY, 0,
		                   "no memory for a reader");
	status = quire_lines_open(&requests->lines, path, refusal_out);
	if (status != QUIRE_OK)
		goto undo_requests;
	status = read_format(requests, refusal_out);
	if (status != QUIRE_OK)
		goto undo_lines;
	*requests_out = requests;
	return QUIRE_OK;

undo_lines:
	free_json(requests);
	quire_lines_close(&requests->lines);
undo_requests:
	free(requests);
	return status;
}

const char *quire_requests_format(const struct quire_requests *requests)
{
	if (requests->is_session)
		return "session";
	return requests->is_json ? "mooncake" : requests->csv.format->name;
}

/* All there is of a Mooncake row.  Without hash_ids the prefix stays empty. */
static enum quire_status parse_fields(struct quire_requests *requests,
                                      const struct quire_json *json, int64_t *ms_out,
                                      struct quire_request_row *row)
{
	const struct quire_json_value *ids = quire_json_get(json->root, "hash_ids");

	QUIRE_TRY(quire_json_int(json, quire_json_get(json->root, "timestamp"),
	                         QUIRE_FIELD("timestamp"), 0, MILLISECONDS_MAX - 1,
	                         ms_out));
	QUIRE_TRY(quire_json_int(json, quire_json_get(json->root, "input_length"),
	                         QUIRE_FIELD("input_length"), 0, QUIRE_SEQ_TOKENS_MAX,
	                         &row->input_tokens));
	QUIRE_TRY(quire_json_int(json, quire_json_get(json->root, "output_length"),
	                         QUIRE_FIELD("output_length"), 0, QUIRE_SEQ_TOKENS_MAX,
	                         &row->output_tokens));
	if (ids != NULL) {
		QUIRE_TRY(quire_json_numbers(json, ids, "hash_ids", INT64_MAX,
		                             &requests->keys, &row->prefix.num_keys));
		row->prefix.tokens = QUIRE_MOONCAKE_TOKENS;
		row->prefix.keys = requests->keys.items;
	}
	return quire_json_finish(json);
}

/* As many names as the prompt has blocks; an empty prompt has none and needs none. */
static enum quire_status check_prefix(const struct quire_requests *requests,
                                      struct quire_request_row *row,
                                      struct quire_refusal *refusal_out)
{
	int64_t right =
		(row->input_tokens + QUIRE_MOONCAKE_TOKENS - 1) / QUIRE_MOONCAKE_TOKENS;

	if (row->prefix.tokens == 0)
		return QUIRE_OK;
	if (row->prefix.num_keys != right) {
		quire_fault(refusal_out, QUIRE_FORMAT, requests->lines.line,
		            "hash_ids must be %" PRId64
		            " ids, one for each %d tokens of input_length %" PRId64
		            ", got %" PRId32,
		            right, QUIRE_MOONCAKE_TOKENS, row->input_tokens,
		            row->prefix.num_keys);
		if (refusal_out != NULL) {
			refusal_out->expected = right;
			refusal_out->got = row->prefix.num_keys;
		}
		return QUIRE_FORMAT;
	}
	if (right == 0)
		row->prefix.tokens = 0;
	return QUIRE_OK;
}

/* The line that holds the next row. */
static enum quire_status next_line(struct quire_requests *requests,
                                   struct quire_refusal *refusal_out)
{
	enum quire_status status =
		quire_lines_next(&requests->lines, &requests->line, refusal_out);

	if (status == QUIRE_END && requests->num_rows == 0)
		return quire_fault(refusal_out, QUIRE_FORMAT, requests->lines.line,
		                   "must be followed by at least one row");
	return status;
}

/* ... as an object; the first one was parsed for its format. */
static enum quire_status next_object(struct quire_requests *requests,
                                     struct quire_refusal *refusal_out)
{
	struct quire_json *json = &requests->json;

	if (requests->unread) {
		requests->unread = false;
		json->refusal_out = refusal_out;
		return QUIRE_OK;
	}
	QUIRE_TRY(next_line(requests, refusal_out));
	return quire_json_parse(json, &requests->lines, &requests->line, refusal_out);
}

static enum quire_status parse_mooncake(struct quire_requests *requests, int64_t *ns_out,
                                        struct quire_request_row *row,
                                        struct quire_refusal *refusal_out)
{
	int64_t milliseconds = 0;

	QUIRE_TRY(next_object(requests, refusal_out));
	QUIRE_TRY(parse_fields(requests, &requests->json, &milliseconds, row));
	*ns_out = milliseconds * (QUIRE_SECOND_NS / 1000);
	return check_prefix(requests, row, refusal_out);
}

/* Behind the last turn: was all of the session right, and does nothing follow? */
static enum quire_status end_session(struct quire_requests *requests,
                                     struct quire_refusal *refusal_out)
{
	struct quire_line *line = &requests->line;

	QUIRE_TRY(quire_json_finish(&requests->json));
	for (;;) {
		QUIRE_TRY(quire_lines_next(&requests->lines, line, refusal_out));
		for (size_t i = 0; i < line->length; i++) {
			if (memchr(" \t\r", line->text[i], 3) == NULL)
				return quire_fault(
					refusal_out, QUIRE_FORMAT, requests->lines.line,
					"must be blank: a session is one line, and "
					"another one is another file");
		}
	}
}

static enum quire_status parse_turn(struct quire_requests *requests, int64_t *ns_out,
                                    struct quire_request_row *row,
                                    struct quire_refusal *refusal_out)
{
	enum quire_status status;

	requests->json.refusal_out = refusal_out;
	status = quire_session_next(&requests->session, &requests->json, &requests->keys,
	                            ns_out, row);
	return status == QUIRE_END ? end_session(requests, refusal_out) : status;
}

static enum quire_status parse_row(struct quire_requests *requests, int64_t *ns_out,
                                   struct quire_request_row *row,
                                   struct quire_refusal *refusal_out)
{
	if (requests->is_session)
		return parse_turn(requests, ns_out, row, refusal_out);
	if (requests->is_json)
		return parse_mooncake(requests, ns_out, row, refusal_out);
	QUIRE_TRY(next_line(requests, refusal_out));
	return quire_csv_row(&requests->csv, &requests->line, requests->lines.line,
	                     ns_out, row, refusal_out);
}

static enum quire_status next_row(struct quire_requests *requests,
                                  struct quire_request_row *row,
                                  struct quire_refusal *refusal_out)
{
	int64_t ns = 0;

	*row = (struct quire_request_row){.input_tokens = 0};
	QUIRE_TRY(parse_row(requests, &ns, row, refusal_out));
	if (requests->num_rows == 0)
		requests->first_ns = ns;
	else if (ns < requests->last_ns)
		return quire_fault(
			refusal_out, QUIRE_FORMAT, requests->lines.line,
			"%s must not be before the row above, got one %.9g s earlier",
			requests->is_json ? "timestamp" : requests->csv.format->time,
			(double)(requests->last_ns - ns) / (double)QUIRE_SECOND_NS);
	requests->last_ns = ns;
	requests->num_rows++;
	row->arrival_ns = ns - requests->first_ns;
	return QUIRE_OK;
}

enum quire_status quire_requests_next(struct quire_requests *requests,
                                      struct quire_request_row *row_out,
                                      struct quire_refusal *refusal_out)
{
	struct quire_request_row row;

	if (requests->ended == QUIRE_OK) {
		requests->refusal =
			(struct quire_refusal){.status = QUIRE_END, .what = ""};
		requests->ended = next_row(requests, &row, &requests->refusal);
		if (requests->ended == QUIRE_OK) {
			*row_out = row;
			return QUIRE_OK;
		}
		strcpy(requests->text, requests->refusal.what);
		requests->refusal.what = requests->text;
	}
	if (refusal_out != NULL)
		*refusal_out = requests->refusal;
	return requests->ended;
}

void quire_requests_position(const struct quire_requests *requests, int64_t *read_out,
                             int64_t *size_out)
{
	quire_lines_position(&requests->lines, read_out, size_out);
}

void quire_requests_close(struct quire_requests *requests)
{
	if (requests == NULL)
		return;
	quire_lines_close(&requests->lines);
	free_json(requests);
	free(requests);
}
