/* SPDX-License-Identifier: MIT */
/* Any bytes as a request trace: a clear refusal, or rows in order and in range. */
#include "config.h"

#include "fuzz_input.h"

#include <quire/plans/requests.h>
#include <quire/runtime/limits.h>

#include <string.h>

/* Rows in order and in range, as many as there are; what ends them. */
static enum quire_status read_rows(struct quire_requests *requests,
                                   struct quire_refusal *refusal)
{
	struct quire_request_row row;
	enum quire_status status;
	int64_t rows = 0, last_ns = 0;

	while ((status = quire_requests_next(requests, &row, refusal)) == QUIRE_OK) {
		DEMAND(row.arrival_ns >= last_ns);
		DEMAND(rows > 0 || row.arrival_ns == 0);
		DEMAND(row.input_tokens >= 0 && row.input_tokens <= QUIRE_SEQ_TOKENS_MAX);
		DEMAND(row.output_tokens >= 0);
		DEMAND(row.output_tokens <= QUIRE_SEQ_TOKENS_MAX);
		for (int32_t i = 0; i < row.prefix.num_keys; i++)
			DEMAND(row.prefix.keys[i] >= 0);
		last_ns = row.arrival_ns;
		rows++;
	}
	DEMAND(status != QUIRE_END || rows > 0);
	return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct quire_requests *requests = NULL;
	struct quire_refusal refusal;
	struct fuzz_file file;
	enum quire_status status;

	fuzz_file_make(&file, bytes, size);
	status = quire_requests_open(file.path, &requests, &refusal);
	if (status == QUIRE_OK)
		status = read_rows(requests, &refusal);
	if (status != QUIRE_END) {
		/* INVALID: a plan trace. */
		DEMAND(status == QUIRE_FORMAT || status == QUIRE_INVALID);
		DEMAND(refusal.status == status);
		DEMAND(refusal.line >= 0);
		DEMAND(strlen(refusal.what) > 4);
	}
	quire_requests_close(requests);
	fuzz_file_end(&file);
	return 0;
}
