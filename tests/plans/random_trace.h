/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_TESTS_PLANS_RANDOM_TRACE_H
#define QUIRE_TESTS_PLANS_RANDOM_TRACE_H
/* Plan traces as the tests make them: a header, random records, a text as a file. */
#include "random_plan.h"
#include "tests/run_suite.h"
#include "temporary.h"

#include <quire/plans/trace.h>

#include <stdio.h>

#define HEADER                                                                         \
	"{\"quire\":\"plan-trace\",\"version\":1,\"cache\":{\"layout\":\"NHD\","       \
	"\"dtype\":\"bf16\","                                                          \
	"\"num_layers\":1,\"num_kv_heads\":2,\"head_dim\":8,\"page_size\":16},"        \
	"\"pool\":{\"num_pages\":64,\"sink\":true},\"limits\":{\"rows\":4,\"tokens\":" \
	"8192,"                                                                        \
	"\"requests\":1024,\"seq_tokens\":1024,\"labels\":4,\"tables\":3,\"table_"     \
	"pages\":99},\"source\":\"by hand\"}"

static const struct quire_trace_header header = {
	.layout = "NHD",
	.dtype = "bf16",
	.num_layers = 1,
	.num_kv_heads = 2,
	.head_dim = 8,
	.page_size = 16,
	.num_pages = 64,
	.sink = true,
	.rows_max = 4,
	.tokens_max = 8192,
	.requests_max = 1024,
	.seq_tokens_max = 1024,
	.request_labels_max = 4,
	.tables_max = 3,
	.table_pages_max = 99,
	.source = "by hand",
};

static struct temporary temporary;

static void setup(void)
{
	temporary_make(&temporary);
}

static void teardown(void)
{
	temporary_end(&temporary);
}

static inline enum quire_status open_text(const char *text, size_t size,
                                          struct quire_trace_reader **reader,
                                          struct quire_refusal *refusal)
{
	temporary_fill(&temporary, text, size);
	return quire_trace_open(temporary.path, reader, refusal);
}

static const char *const labels[] = {
	"main",     "a \"quoted\" \\ one",
	"\x01\n\t", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x93\x84",
	"/",        "1234567890123456789012345678901",
};

struct random_record {
	struct quire_trace_record record;
	struct quire_step step;
	struct quire_segment segments[4];
	struct quire_combined combined[2];
	const char *names[3];
	struct quire_fork forks[2][3];
	int32_t pages[3];
	int64_t keys[3];
};

static void random_forks(struct random_record *random, uint64_t *s)
{
	for (int32_t list = 0; list < 2; list++)
		for (int32_t i = 0; i < 3; i++)
			random->forks[list][i] =
				(struct quire_fork){.source = labels[random_in(s, 0, 5)],
			                            .target = labels[random_in(s, 0, 5)]};
	random->step.pre_forks = random->forks[0];
	random->step.post_forks = random->forks[1];
	random->step.num_pre_forks = random_in(s, 0, 3);
	random->step.num_post_forks = random_in(s, 0, 3);
}

static void random_submit(struct random_record *random, uint64_t *s)
{
	struct quire_step *step = &random->step;

	step->segments = random->segments;
	step->num_segments = random_in(s, 1, 4);
	for (int32_t i = 0; i < step->num_segments; i++)
		random->segments[i] = (struct quire_segment){
			.request = random_in(s, 0, 3) == 0
		                           ? QUIRE_REQUEST_MAX
		                           : random_next(s) >> random_in(s, 1, 63),
			.label = labels[random_in(s, 0, 5)],
			.span = random_in(s, 0, 3) == 0 ? QUIRE_TOKENS_MAX
		                                        : random_in(s, 0, 20),
			.at = random_in(s, 0, 3) == 0 ? QUIRE_AT_ANY
		                                      : random_in(s, 0, INT32_MAX - 1),
		};
	if (random_in(s, 0, 1) == 0) {
		step->bucket_tokens = random_in(s, 1, QUIRE_TOKENS_MAX);
		step->bucket_rows = random_in(s, 1, QUIRE_ROWS_MAX);
	}
	step->combined = random->combined;
	step->num_combined = random_in(s, 0, 2);
	for (int32_t i = 0; i < 3; i++)
		random->names[i] = labels[random_in(s, 0, 5)];
	random->combined[0] = (struct quire_combined){"z \" z", random->names, 2};
	random->combined[1] =
		(struct quire_combined){"a", random->names + 1, random_in(s, 0, 2)};
	step->flags = (uint32_t)random_in(s, 0, 15);
	random_forks(random, s);
}

/* What a recording and an import with prefix keys add. */
static void random_rest(struct random_record *random, uint64_t *s)
{
	struct quire_trace_record *record = &random->record;

	for (int i = 0; i < 3; i++) {
		random->pages[i] = random_in(s, 0, (int32_t)header.num_pages - 1);
		random->keys[i] = (int64_t)(random_next(s) >> random_in(s, 1, 63));
	}
	record->outcome.is_outside = random_in(s, 0, 1) == 0;
	record->outcome.has_pages = random_in(s, 0, 1) == 0;
	record->outcome.num_pages = random_in(s, 0, 3);
	record->outcome.pages = random->pages;
	record->has_times = random_in(s, 0, 1) == 0;
	record->times.given_ns = (int64_t)(random_next(s) >> random_in(s, 1, 63));
	record->times.decided_ns = (int64_t)(random_next(s) >> random_in(s, 1, 63));
	record->times.issued_ns =
		random_in(s, 0, 1) == 0 ? -1 : (int64_t)(random_next(s) >> 1);
	if (record->command.kind != QUIRE_COMMAND_OPEN || random_in(s, 0, 1) == 0)
		return;
	record->prefix.tokens = random_in(s, 0, 1) == 0 ? INT32_MAX : random_in(s, 1, 9);
	record->prefix.num_keys = random_in(s, 0, 3);
	record->prefix.keys = random->keys;
}

static void random_record_make(struct random_record *random, uint64_t *s)
{
	struct quire_trace_record *record = &random->record;

	memset(random, 0, sizeof(*random));
	record->command.kind =
		(enum quire_command_kind)random_in(s, 0, QUIRE_COMMAND_ABANDON);
	record->command.request = random_next(s) >> random_in(s, 1, 63);
	record->command.label = labels[random_in(s, 0, 5)];
	record->command.keep_pages = random_in(s, 0, 1);
	record->command.tokens = random_in(s, 0, 3) == 0 ? INT32_MAX : random_in(s, 0, 9);
	record->command.target = (random_next(s) >> random_in(s, 1, 63)) | 1;
	record->command.step = &random->step;
	random_submit(random, s);
	record->has_outcome = random_in(s, 0, 1) == 0;
	record->outcome.status = (enum quire_status)random_in(s, 0, QUIRE_END);
	record->outcome.detail =
		random_in(s, 0, 2) == 0 ? INT64_MIN : random_in(s, 0, 99) - 50;
	record->outcome.has_digest = random_in(s, 0, 1) == 0;
	record->outcome.digest = random_next(s) >> random_in(s, 0, 63);
	random_rest(random, s);
}

/* Ids rise; a speculative submit has one, and a base below it or none. */
static inline void random_ids(struct quire_trace_record *record, int i, uint64_t *s)
{
	bool speculative = record->command.kind == QUIRE_COMMAND_SUBMIT &&
	                   (record->command.step->flags & QUIRE_STEP_SPECULATIVE) != 0;

	if (i % 3 == 0 || speculative)
		record->id = (uint64_t)i * 7 + 1;
	record->has_base = speculative && random_in(s, 0, 2) > 0;
	if (record->has_base && record->id > 1 && random_in(s, 0, 1) > 0)
		record->base = (uint64_t)random_in(s, 0, (int32_t)record->id - 1);
}

#endif
