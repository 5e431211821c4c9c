/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/replay_impl.h"

#include <inttypes.h>

/* Start the run's divergence; answers CMD_FAILED when it is complete. */
static struct cmd_divergence *diverge(struct cmd_run *run,
                                      const struct cmd_pending *pending, const char *what)
{
	struct cmd_divergence *divergence = &run->divergence;

	cmd_divergence_init(divergence, what, pending->line, pending->kind);
	divergence->index = run->head;
	divergence->step = pending->step;
	return divergence;
}

int cmd_run_diverge(struct cmd_run *run, int64_t line, const char *text)
{
	cmd_divergence_init(&run->divergence, "order", line, QUIRE_COMMAND_SUBMIT);
	cmd_divergence_note(&run->divergence, "%s", text);
	return CMD_FAILED;
}

/* ------------------------------------------------------------------ outcomes */

/* A detail of 0 is worth a word only where the details are what differs. */
static void describe(const struct quire_trace_outcome *outcome, bool with_detail,
                     char *text)
{
	if (with_detail || outcome->detail != 0)
		snprintf(text, CMD_DIVERGENCE_BYTES, "%s %" PRId64,
		         quire_status_name(outcome->status), outcome->detail);
	else
		snprintf(text, CMD_DIVERGENCE_BYTES, "%s",
		         quire_status_name(outcome->status));
}

static int diverge_outcome(struct cmd_run *run, const struct cmd_pending *pending,
                           const struct quire_trace_outcome *got)
{
	const struct quire_refusal *refusal = &pending->got;
	bool same = got->status == pending->expected.status;
	struct cmd_divergence *divergence =
		diverge(run, pending, same ? "detail" : "status");

	describe(&pending->expected, same, divergence->expected);
	describe(got, same, divergence->got);
	if (got->status != refusal->status || got->status == QUIRE_OK)
		return CMD_FAILED; /* the refusal is of something else */
	if (refusal->label[0] != '\0')
		cmd_divergence_name(divergence, refusal->request, refusal->label);
	if (refusal->status == QUIRE_LIMIT || refusal->status == QUIRE_INVALID)
		cmd_divergence_note(divergence, "%s", refusal->what);
	if (run->is_logical && got->status == QUIRE_NO_PAGES)
		cmd_divergence_note(divergence,
		                    "the pool of %" PRId64
		                    " pages is too small for this trace",
		                    run->options->pages);
	return CMD_FAILED;
}

static int diverge_digest(struct cmd_run *run, const struct cmd_pending *pending,
                          const struct quire_trace_outcome *got)
{
	struct cmd_divergence *divergence = diverge(run, pending, "digest");

	divergence->expected_digest = pending->expected.digest;
	divergence->digest = got->digest;
	snprintf(divergence->expected, CMD_DIVERGENCE_BYTES, "OK with digest %016" PRIx64,
	         pending->expected.digest);
	snprintf(divergence->got, CMD_DIVERGENCE_BYTES, "OK with digest %016" PRIx64,
	         got->digest);
	return CMD_FAILED;
}

/* ------------------------------------------------------------------ pages */

static int diverge_pages(struct cmd_run *run, const struct cmd_pending *pending,
                         int32_t take, const char *expected, const char *got)
{
	struct cmd_divergence *divergence = diverge(run, pending, "pages");

	divergence->take = take;
	snprintf(divergence->expected, CMD_DIVERGENCE_BYTES, "%s", expected);
	snprintf(divergence->got, CMD_DIVERGENCE_BYTES, "%s", got);
	return CMD_FAILED;
}

static int compare_lists(struct cmd_run *run, const struct cmd_pending *pending,
                         const int32_t *wanted, int32_t num_wanted, const int32_t *taken,
                         int32_t num_taken)
{
	char expected[32], got[32];

	for (int32_t i = 0; i < num_wanted && i < num_taken; i++) {
		if (wanted[i] == taken[i])
			continue;
		snprintf(expected, sizeof(expected), "page %" PRId32, wanted[i]);
		snprintf(got, sizeof(got), "page %" PRId32, taken[i]);
		return diverge_pages(run, pending, i, expected, got);
	}
	if (num_wanted == num_taken)
		return CMD_DONE;
	snprintf(expected, sizeof(expected), "%" PRId32 " pages", num_wanted);
	snprintf(got, sizeof(got), "%" PRId32 " pages", num_taken);
	return diverge_pages(run, pending, -1, expected, got);
}

/* The pages that a step took.  Some may have found no room on their way. */
static int compare_pages(struct cmd_run *run, const struct cmd_pending *pending)
{
	const int32_t *wanted, *taken;
	int32_t num_wanted, num_taken;
	int code;

	if (!pending->expected.has_pages || run->is_logical)
		return CMD_DONE;
	if (run->taken == NULL ||
	    (wanted = cmd_ring_get(run->wanted, run->head + 1, &num_wanted)) == NULL ||
	    (taken = cmd_ring_get(run->taken, pending->ticket, &num_taken)) == NULL) {
		run->result.pages_missed++;
		return CMD_DONE;
	}
	code = compare_lists(run, pending, wanted, num_wanted, taken, num_taken);
	if (code == CMD_DONE)
		run->result.pages_compared++;
	return code;
}

int cmd_compare(struct cmd_run *run, const struct cmd_pending *pending,
                const struct quire_trace_outcome *got)
{
	const struct quire_trace_outcome *expected = &pending->expected;
	int code = CMD_DONE;

	if (!pending->is_compared)
		return CMD_DONE;
	if (got->status != expected->status || got->detail != expected->detail)
		return diverge_outcome(run, pending, got);
	if (got->status == QUIRE_OK)
		code = compare_pages(run, pending);
	if (code != CMD_DONE)
		return code;
	if (expected->has_digest && got->has_digest && !run->is_logical &&
	    got->digest != expected->digest)
		return diverge_digest(run, pending, got);
	run->result.compared++;
	return CMD_DONE;
}
