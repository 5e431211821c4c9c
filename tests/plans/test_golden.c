/* SPDX-License-Identifier: MIT */
/*
 * The ideal schedule of real request traces, against numbers that others computed.  The
 * traces are not shipped: QUIRE_TRACES names a folder that holds azure2023/ and
 * mooncake/, or they lie in the default place beside the source tree.
 */
#include "config.h"

#include <quire/plans/requests.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SKIPPED 77

static const struct {
	const char *file;
	int64_t rows, page_size, peak, takes;
} golden[] = {
	{"mooncake/conversation_trace.jsonl", 150, 16, 54437, 137203},
	{"mooncake/conversation_trace.jsonl", 150, 128, 6825, 17221},
	{"mooncake/conversation_trace.jsonl", 1000, 16, 68766, 880611},
	{"mooncake/conversation_trace.jsonl", 1000, 128, 8621, 110524},
	{"azure2023/AzureLLMInferenceTrace_code.csv", 1000, 16, 6384, 134856},
	{"azure2023/AzureLLMInferenceTrace_code.csv", 1000, 128, 815, 17292},
};
#define GOLDEN (sizeof(golden) / sizeof(golden[0]))

static int check_one(const char *path, size_t i)
{
	struct quire_requests requests;
	int64_t peak = -1, takes = -1;

	if (quire_requests_read(path, golden[i].rows, &requests, NULL) != QUIRE_OK ||
	    requests.num_rows != golden[i].rows ||
	    quire_requests_ideal(&requests, golden[i].page_size, &peak, &takes) !=
	            QUIRE_OK) {
		fprintf(stderr, "%s: cannot be read\n", path);
		return 1;
	}
	quire_requests_free(&requests);
	if (peak == golden[i].peak && takes == golden[i].takes)
		return 0;
	fprintf(stderr,
	        "%s, %" PRId64 " rows, page size %" PRId64 ": %" PRId64 " / %" PRId64
	        ", not %" PRId64 " / %" PRId64 "\n",
	        path, golden[i].rows, golden[i].page_size, peak, takes, golden[i].peak,
	        golden[i].takes);
	return 1;
}

int main(void)
{
	const char *folder = getenv("QUIRE_TRACES");
	int failed = 0;
	char path[4096];

	if (folder == NULL)
		folder = TOP_SRCDIR "/../shared/traces";
	for (size_t i = 0; i < GOLDEN; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, golden[i].file);
		if (access(path, R_OK) != 0) {
			fprintf(stderr, "skipped: %s is not there; set QUIRE_TRACES\n",
			        path);
			return SKIPPED;
		}
		failed += check_one(path, i);
	}
	return failed == 0 ? 0 : 1;
}
