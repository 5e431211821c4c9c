/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_PLANS_REQUESTS_H
#define QUIRE_PLANS_REQUESTS_H
/*
 * Request traces: when requests came and how many tokens they had.
 *
 * Read by content:
 *   Azure     CSV with the header TIMESTAMP,ContextTokens,GeneratedTokens; absolute times
 *   with
 *             up to 9 digits of fraction, lines ended by LF or CRLF
 *   Mooncake  JSON Lines with timestamp (ms), input_length, output_length (hash_ids,
 *   prefix
 *             block names, are not read)
 */
#include <quire/runtime/status.h>

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct quire_request_row {
	int64_t arrival_ns;    /* after the first row's, never negative */
	int64_t input_tokens;  /* prompt */
	int64_t output_tokens; /* generated */
};

struct quire_requests {
	const char *format; /* "azure", "mooncake"; static */
	struct quire_request_row *rows;
	int64_t num_rows;
};

/*
 * quire_requests_read - read a request trace whole
 * @path:    borrowed; "-" is standard input
 * @rows_max: stop after so many rows; 0: no limit
 * @requests_out: given; end it with quire_requests_free
 * @refusal_out: filled on refusal {what, line}, lent as plans/trace.h says; NULL allowed
 * Returns:  QUIRE_OK: at least one row; QUIRE_IO; QUIRE_FORMAT: empty, neither format, a
 *           field missing or out of range, a time before the row above; QUIRE_NO_MEMORY.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status quire_requests_read(
	const char *path, int64_t rows_max, struct quire_requests *requests_out,
	struct quire_refusal *refusal_out);

/* quire_requests_free - @requests: its rows are given back */
QUIRE_API void quire_requests_free(struct quire_requests *requests);

/*
 * quire_requests_ideal - pages under an idealised schedule that serves everyone at once
 * @peak_out: filled: most pages live at one time
 * @takes_out: filled: pages taken in all
 * Returns:  QUIRE_OK; QUIRE_INVALID: page_size out of range, more than 2^32 pages, or a
 *           row that quire_requests_read would not make; QUIRE_NO_MEMORY.
 *
 * A request is served at its arrival: all ceil(input / page_size) prompt pages are taken
 * then; prefill lasts 0.1 ms a token, then each of `output` steps 30 ms; step k writes
 * token input + k and takes a page when (input + k - 1) mod page_size = 0; all pages go
 * back after the last step.  At equal times gives come before takes.  Nothing is shared.
 * Cost:     O(takes log requests) time; memory of one event per request.
 */
QUIRE_API QUIRE_MUST_CHECK enum quire_status
quire_requests_ideal(const struct quire_requests *requests, int64_t page_size,
                     int64_t *peak_out, int64_t *takes_out);

#ifdef __cplusplus
}
#endif
#endif
