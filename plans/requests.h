/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_PLANS_REQUESTS_H
#define QUIRE_PLANS_REQUESTS_H
/*
 * Request traces: when requests came, how many tokens they had, and names of their
 * prompts.  They are read row by row, in memory that does not grow with the file; only a
 * session, which is one line, is held as a whole.
 *
 * What a file is, is found in its first line:
 *   mooncake  JSON Lines: timestamp (ms), input_length, output_length, and, if it is
 *             there, hash_ids: one for each QUIRE_MOONCAKE_TOKENS tokens of the prompt,
 *             a part counted as a whole.  They become the row's prefix.
 *   session   of a coding agent, one JSON object on one line: block_size (tokens), and
 *             requests, a list of turns and sub-agents.  A turn has type "n" or "s" (its
 *             answer came whole, or as a stream), t (seconds), in, out, and hash_ids: one
 *             for each whole block of its prompt.  A sub-agent has type "subagent", t, and
 *             requests: turns, whose t counts from its own.  Every turn is a row, with its
 *             whole prompt, in the order of t, and at equal times of the file.  Which model
 *             a turn asked is not looked at: its pages are shared by their names alone.
 *   azure     CSV with the columns TIMESTAMP (date and time), ContextTokens,
 *             GeneratedTokens
 *   burstgpt  CSV with the columns Timestamp (seconds), Request tokens, Response tokens
 *   vidur     CSV with the columns arrived_at (seconds), num_prefill_tokens,
 *             num_decode_tokens; without arrived_at all requests come at time 0
 * A session's ids are its own, so nothing but blank lines may follow it.
 * A CSV file's first line names its columns, in any order; others are not looked at.
 * Lines end with LF or CRLF, and no field holds a comma.  Times go down to nanoseconds;
 * further digits are cut off.  A row of 0 and 0 tokens (BurstGPT has some, of requests
 * that failed) is a row like any other.
 *
 * Threads: a reader, and an ideal schedule, is used by one thread at a time.
 */
#include <quire/plans/trace.h>
#include <quire/runtime/status.h>

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Tokens that one of Mooncake's hash_ids stands for. */
#define QUIRE_MOONCAKE_TOKENS 512

struct quire_request_row {
	int64_t arrival_ns;    /* after the first row's, never before the row above */
	int64_t input_tokens;  /* prompt */
	int64_t output_tokens; /* generated */
	/* Names of the prompt, one for each prefix.tokens of input_tokens, or none; lent
	 * until the next row is asked for.  A part of a block at the end has one, too, but
	 * not in a session, where a prompt may go on behind its names. */
	struct quire_trace_prefix prefix;
};

/* A request trace that is being read. */
struct quire_requests;

/*
 * quire_requests_open - start to read a request trace
 * @path:    borrowed; "-" is standard input
 * @requests_out: given; end it with quire_requests_close
 * @refusal_out: filled on refusal {what, line}, lent as plans/trace.h says; NULL allowed
 * Returns:  QUIRE_OK; QUIRE_IO; QUIRE_FORMAT: empty, none of the formats, a first line
 *           of JSON or a session that is wrong; QUIRE_INVALID: a plan trace, which is
 *           quire_trace_open's to read; QUIRE_NO_MEMORY.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_requests_open(const char *path, struct quire_requests **requests_out,
                    struct quire_refusal *refusal_out);

/* quire_requests_format - "azure", "burstgpt", "mooncake", "session" or "vidur"; static */
QUIRE_API const char *quire_requests_format(const struct quire_requests *requests);

/*
 * quire_requests_next - the next row
 * Returns:  QUIRE_OK; QUIRE_END: no more, and there was one; QUIRE_FORMAT {what: the
 *           field or fault, line}: a field missing or out of range, a time before the row
 *           above, a wrong number of hash_ids {expected, got}, something behind a session,
 *           no row at all; QUIRE_IO; QUIRE_NO_MEMORY.  After anything but QUIRE_OK it answers the same again.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_requests_next(struct quire_requests *requests, struct quire_request_row *row_out,
                    struct quire_refusal *refusal_out);

/* quire_requests_position - bytes read so far and the file's size (-1: not known) */
QUIRE_API void quire_requests_position(const struct quire_requests *requests,
                                       int64_t *read_out, int64_t *size_out);

/* quire_requests_close - @requests: given, NULL is a no-op */
QUIRE_API void quire_requests_close(struct quire_requests *requests);

/*
 * The ideal schedule serves every request at its arrival: all ceil(input / page_size)
 * prompt pages are taken then; prefill lasts 0.1 ms a token, then each of `output` steps
 * 30 ms; step k writes token input + k and takes a page when
 * (input + k - 1) mod page_size = 0; all pages go back after the last step.  At equal
 * times gives come before takes.
 *
 * It is counted twice: once with nothing shared, and once with full prompt pages shared
 * among requests alive together.  Page j of a prompt is full when the prompt has
 * (j + 1) * page_size tokens.  Its name is the prefix key of the block that holds its
 * last token, that block's place in the prompt and its number of tokens, and j: so whole
 * pages of a part block are shared only by prompts that end where the other does.  A page
 * is taken when no request alive has one of its name, and goes back with the last one.
 * A prompt without prefix keys shares nothing, nor do the pages whose last token lies
 * behind its last key.  A page is repeated when any request before, alive or not, had one
 * of its name: what a cache that forgets nothing would find.
 */
struct quire_ideal;

struct quire_ideal_numbers {
	int64_t peak_pages; /* most pages live at one time, nothing shared */
	int64_t takes;      /* pages taken in all, nothing shared */
	int64_t shared_peak_pages;
	int64_t shared_takes;
	int64_t prompt_pages;   /* full ones of all prompts */
	int64_t repeated_pages; /* of them */
};

/*
 * quire_ideal_create - a schedule without requests
 * @ideal_out: given; end it with quire_ideal_destroy
 * Returns:  QUIRE_OK; QUIRE_INVALID: page_size is not 1..QUIRE_PAGE_SIZE_MAX;
 *           QUIRE_NO_MEMORY.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_ideal_create(int64_t page_size, struct quire_ideal **ideal_out);

/*
 * quire_ideal_add - one more request arrives
 * @row:     borrowed
 * @refusal_out: filled on refusal {what}, lent as plans/trace.h says; NULL allowed
 * Returns:  QUIRE_OK; QUIRE_INVALID: it arrives before the one before, is no row that
 *           quire_requests_next would make, or makes more than 2^32 pages in all, which
 *           no trace has; QUIRE_NO_MEMORY.  A refusal changes nothing.
 * Cost:     O(takes log(requests alive) + blocks log(distinct blocks)); memory for the
 *           requests and blocks alive (about 100 and 8 bytes) and for all distinct blocks
 *           (about 100 bytes each).
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_ideal_add(struct quire_ideal *ideal, const struct quire_request_row *row,
                struct quire_refusal *refusal_out);

/*
 * quire_ideal_finish - run it to its end; only quire_ideal_destroy may follow
 * @numbers_out: filled
 */
QUIRE_API void quire_ideal_finish(struct quire_ideal *ideal,
                                  struct quire_ideal_numbers *numbers_out);

/* quire_ideal_destroy - @ideal: given, NULL is a no-op */
QUIRE_API void quire_ideal_destroy(struct quire_ideal *ideal);

#ifdef __cplusplus
}
#endif
#endif
