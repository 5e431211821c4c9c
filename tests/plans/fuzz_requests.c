/* SPDX-License-Identifier: MIT */
/* Any bytes as a request trace: a clear refusal, or rows in order and in range. */
#include "config.h"

#include "fuzz_input.h"

#include <quire/plans/requests.h>
#include <quire/runtime/limits.h>

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct quire_requests requests;
	struct quire_refusal refusal;
	struct fuzz_file file;

	fuzz_file_make(&file, bytes, size);
	if (quire_requests_read(file.path, 0, &requests, &refusal) == QUIRE_OK) {
		DEMAND(requests.num_rows >= 1);
		DEMAND(requests.rows[0].arrival_ns == 0);
		for (int64_t i = 0; i < requests.num_rows; i++) {
			const struct quire_request_row *row = &requests.rows[i];

			DEMAND(i == 0 || row->arrival_ns >= row[-1].arrival_ns);
			DEMAND(row->input_tokens >= 0);
			DEMAND(row->input_tokens <= QUIRE_SEQ_TOKENS_MAX);
			DEMAND(row->output_tokens >= 0);
			DEMAND(row->output_tokens <= QUIRE_SEQ_TOKENS_MAX);
		}
		quire_requests_free(&requests);
	} else {
		DEMAND(refusal.status == QUIRE_FORMAT);
		DEMAND(refusal.line >= 0);
		DEMAND(strlen(refusal.what) > 4);
	}
	fuzz_file_end(&file);
	return 0;
}
