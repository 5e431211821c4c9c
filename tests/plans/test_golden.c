/* SPDX-License-Identifier: MIT */
/*
 * The ideal schedule of real request traces, against numbers that others computed.  The
 * traces are not shipped: QUIRE_TRACES names a folder that holds azure2023/ and
 * mooncake/, or they lie in the default place beside the source tree.
 */
#include "config.h"

#include <quire/plans/requests.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SKIPPED 77

#define CONVERSATION "mooncake/conversation_trace.jsonl"
#define CODE         "azure2023/AzureLLMInferenceTrace_code.csv"

static const struct {
	const char *file;
	int64_t rows, page_size, peak, takes, shared_peak, shared_takes;
} golden[] = {
	{CONVERSATION, 150, 16, 54437, 137203, 53189, 132435},
	{CONVERSATION, 150, 128, 6825, 17221, 6669, 16625},
	{CONVERSATION, 1000, 16, 68766, 880611, 67102, 845603},
	{CONVERSATION, 1000, 128, 8621, 110524, 8413, 106148},
	{CODE, 1000, 16, 6384, 134856, 6384, 134856}, /* it has no names to share by */
	{CODE, 1000, 128, 815, 17292, 815, 17292},
};
#define GOLDEN (sizeof(golden) / sizeof(golden[0]))

/* Share of the conversation trace's full prompt pages that repeat, at page size 16. */
#define REPEATED_PERCENT "37.4"

/* The numbers of the first @rows rows, 0: of all; false: told. */
static bool read_ideal(const char *path, int64_t rows, int64_t page_size,
                       struct quire_ideal_numbers *numbers)
{
	struct quire_requests *requests;
	struct quire_request_row row;
	struct quire_ideal *ideal;
	enum quire_status status = QUIRE_OK;
	int64_t read = 0;

	if (quire_requests_open(path, &requests, NULL) != QUIRE_OK ||
	    quire_ideal_create(page_size, &ideal) != QUIRE_OK)
		abort();
	while (status == QUIRE_OK && (rows == 0 || read < rows)) {
		status = quire_requests_next(requests, &row, NULL);
		if (status == QUIRE_OK)
			status = quire_ideal_add(ideal, &row, NULL);
		read += status == QUIRE_OK;
	}
	quire_ideal_finish(ideal, numbers);
	quire_ideal_destroy(ideal);
	quire_requests_close(requests);
	if (rows == 0 ? status == QUIRE_END : status == QUIRE_OK)
		return true;
	fprintf(stderr, "%s: cannot be read\n", path);
	return false;
}

static int check_one(const char *path, size_t i)
{
	struct quire_ideal_numbers got;

	if (!read_ideal(path, golden[i].rows, golden[i].page_size, &got))
		return 1;
	if (got.peak_pages == golden[i].peak && got.takes == golden[i].takes &&
	    got.shared_peak_pages == golden[i].shared_peak &&
	    got.shared_takes == golden[i].shared_takes)
		return 0;
	fprintf(stderr,
	        "%s, %" PRId64 " rows, page size %" PRId64 ": %" PRId64 " / %" PRId64
	        ", shared %" PRId64 " / %" PRId64 "\n",
	        path, golden[i].rows, golden[i].page_size, got.peak_pages, got.takes,
	        got.shared_peak_pages, got.shared_takes);
	return 1;
}

static int check_repeated(const char *path)
{
	struct quire_ideal_numbers got;
	char percent[32];

	if (!read_ideal(path, 0, 16, &got))
		return 1;
	snprintf(percent, sizeof(percent), "%.1f",
	         100 * (double)got.repeated_pages / (double)got.prompt_pages);
	if (strcmp(percent, REPEATED_PERCENT) == 0)
		return 0;
	fprintf(stderr, "%s: %s %% of full prompt pages repeat\n", path, percent);
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
	snprintf(path, sizeof(path), "%s/%s", folder, CONVERSATION);
	failed += check_repeated(path);
	return failed == 0 ? 0 : 1;
}
