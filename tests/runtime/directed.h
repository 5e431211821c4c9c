/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_TESTS_RUNTIME_DIRECTED_H
#define QUIRE_TESTS_RUNTIME_DIRECTED_H
/* Small steps in one expression, page ids against a list written by hand, and how often
 * each step was told its end. */
#include "fixture.h"

#include <check.h>

#define DIRECTED_TICKETS 600

/* Of the test program that includes this. */
static int told[DIRECTED_TICKETS]; /* by ticket */
static struct quire_outcome told_outcome[DIRECTED_TICKETS];

static inline void note_done(void *argument, uint64_t ticket,
                             const struct quire_outcome *outcome)
{
	(void)argument;
	must(ticket < DIRECTED_TICKETS);
	told[ticket]++;
	told_outcome[ticket] = *outcome;
}

/* A step; a segment counts when its request is not 0, a pair when its target is named. */
struct plain {
	struct quire_segment segments[4];
	struct quire_fork pre[3];
	struct quire_fork post[3];
	uint32_t flags;
	quire_step_function run;
};

static inline int32_t count_forks(const struct quire_fork *forks)
{
	int32_t n = 0;

	while (n < 3 && forks[n].target != NULL)
		n++;
	return n;
}

static inline uint64_t give(struct fixture *f, struct plain plain)
{
	struct quire_step step = {
		.segments = plain.segments,
		.pre_forks = plain.pre,
		.num_pre_forks = count_forks(plain.pre),
		.post_forks = plain.post,
		.num_post_forks = count_forks(plain.post),
		.flags = plain.flags,
		.run = plain.run,
		.done = note_done,
	};

	while (step.num_segments < 4 && plain.segments[step.num_segments].request != 0)
		step.num_segments++;
	return submit(f, &step);
}

#define SEGMENT(r, l, s, a)                                          \
	{                                                            \
		.request = (r), .label = (l), .span = (s), .at = (a) \
	}
/* give(&f, STEP(...)): one segment, ordinary or speculative. */
#define STEP(r, l, s, a) ((struct plain){.segments = {SEGMENT(r, l, s, a)}})
#define SPECULATIVE(r, l, s, a)                            \
	((struct plain){.segments = {SEGMENT(r, l, s, a)}, \
	                .flags = QUIRE_STEP_SPECULATIVE})

static inline void directed_begin(struct fixture *f, int64_t num_pages, int64_t page_size)
{
	memset(told, 0, sizeof(told));
	fixture_begin(f, "cpu:inline", num_pages, page_size);
}

static inline void directed_start(struct fixture *f, int64_t num_pages, int64_t page_size)
{
	directed_begin(f, num_pages, page_size);
	fixture_create(f);
	must(open_now(f, 1) == QUIRE_OK);
}

static inline enum quire_status promote(struct fixture *f, uint64_t ticket)
{
	return quire_runtime_promote(f->runtime, ticket);
}

static inline enum quire_status abandon(struct fixture *f, uint64_t ticket)
{
	return quire_runtime_abandon(f->runtime, ticket);
}

static inline enum quire_status rewind_now(struct fixture *f, uint64_t request,
                                           const char *label, int32_t tokens)
{
	uint64_t ticket;

	must(quire_runtime_rewind(f->runtime, request, label, tokens, &ticket) ==
	     QUIRE_OK);
	return outcome_of(f, ticket).refusal.status;
}

/* How far a ticket has come, and with what, without moving anything. */
static inline struct quire_outcome outcome_now(struct fixture *f, uint64_t ticket)
{
	struct quire_outcome outcome;

	must(quire_runtime_wait(f->runtime, ticket, QUIRE_STAGE_QUEUED, 0, &outcome) ==
	     QUIRE_OK);
	return outcome;
}

static inline enum quire_stage stage_of(struct fixture *f, uint64_t ticket)
{
	return outcome_now(f, ticket).stage;
}

static inline enum quire_status look(struct fixture *f, uint64_t request,
                                     const char *label)
{
	struct quire_snapshot snapshot;

	return quire_runtime_snapshot(f->runtime, request, label, &snapshot, NULL, 0);
}

/* The length and the list of a stream, as readers see it. */
#define ck_assert_stream(f, request, label, tokens, ...)                           \
	check_stream(                                                              \
		(f), (request), (label), (tokens), (const int32_t[]){__VA_ARGS__}, \
		(int64_t)(sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t)))

static inline void check_stream(struct fixture *f, uint64_t request, const char *label,
                                int64_t length, const int32_t *pages, int64_t n)
{
	struct quire_snapshot snapshot;
	int32_t got[64];

	ck_assert_int_eq(
		quire_runtime_snapshot(f->runtime, request, label, &snapshot, got, 64),
		QUIRE_OK);
	ck_assert_int_eq(snapshot.length, length);
	ck_assert_int_eq(snapshot.num_pages, n);
	for (int64_t i = 0; i < n; i++)
		ck_assert_int_eq(got[i], pages[i]);
}

/* A step's end: once told, and told what its ticket says. */
static inline void check_end(struct fixture *f, uint64_t ticket, enum quire_status status)
{
	const struct quire_outcome outcome = outcome_of(f, ticket);

	ck_assert_int_eq(outcome.refusal.status, status);
	ck_assert_int_eq(told[ticket], 1);
	ck_assert_int_eq(told_outcome[ticket].refusal.status, status);
	ck_assert_int_eq(told_outcome[ticket].stage, QUIRE_STAGE_RETIRED);
	ck_assert_uint_eq(told_outcome[ticket].step, outcome.step);
	ck_assert_uint_eq(told_outcome[ticket].base, outcome.base);
}

/* What a held step is taken for: planned, its fate open, nobody told. */
static inline void check_open(struct fixture *f, uint64_t ticket,
                              enum quire_status status)
{
	const struct quire_outcome outcome = outcome_now(f, ticket);

	ck_assert_int_eq(outcome.stage, QUIRE_STAGE_PLANNED);
	ck_assert_int_eq(outcome.refusal.status, status);
	ck_assert_int_eq(told[ticket], 0);
}

#endif
