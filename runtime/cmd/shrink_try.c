/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/shrink_impl.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <stdlib.h>
#include <string.h>

/* A growing text. */
struct text {
	char *bytes;
	size_t used, room;
};

static enum quire_status add_text(void *argument, const void *bytes, size_t n)
{
	struct text *text = argument;

	if (text->room - text->used < n) {
		size_t room = 2 * (text->used + n);
		char *grown = realloc(text->bytes, room);

		if (grown == NULL)
			return QUIRE_NO_MEMORY;
		text->bytes = grown;
		text->room = room;
	}
	memcpy(text->bytes + text->used, bytes, n);
	text->used += n;
	return QUIRE_OK;
}

/* The trial as a trace. */
static int write_trial(struct shrink *shrink, struct text *text)
{
	const struct quire_trace_output output = {.write = add_text, .argument = text};
	struct quire_trace_header header = shrink_header(&shrink->model, &shrink->trial);
	struct quire_trace_writer *writer;
	struct quire_refusal refusal;
	int code;

	if (quire_trace_create_to(&output, &header, &writer, &refusal) != QUIRE_OK)
		return cmd_tell_refusal(NULL, &refusal);
	code = shrink_write(&shrink->model, &shrink->trial, writer, "a candidate");
	if (code != CMD_DONE) {
		quire_trace_discard(writer);
		return code;
	}
	if (quire_trace_commit(writer, &refusal) != QUIRE_OK)
		return cmd_tell_refusal(NULL, &refusal);
	return CMD_DONE;
}

/* The place of a hash among those of what was tried, or the one for it. */
static uint64_t *find_seen(struct shrink *shrink, uint64_t hash)
{
	uint64_t probe = hash;

	while (shrink->seen[probe & shrink->seen_mask] != 0 &&
	       shrink->seen[probe & shrink->seen_mask] != hash)
		probe++;
	return &shrink->seen[probe & shrink->seen_mask];
}

void shrink_stop(struct shrink *shrink, int code)
{
	shrink->is_stopped = true;
	if (shrink->code == CMD_DONE)
		shrink->code = code;
}

/* Run the program on what was not tried before. */
static bool test_text(struct shrink *shrink, const struct text *text, uint64_t hash)
{
	uint64_t *seen = find_seen(shrink, hash);
	enum shrink_answer answer;

	if (*seen != 0)
		return false;
	if (shrink->runs == shrink->runs_max) {
		shrink_stop(shrink, CMD_DONE);
		return false;
	}
	*seen = hash;
	shrink->runs++;
	answer = shrink->test(shrink->argument, text->bytes, text->used);
	if (answer == SHRINK_STOP)
		shrink_stop(shrink, CMD_DONE);
	return answer == SHRINK_FAILS;
}

/* The trial fails: it is the best so far. */
static void keep_trial(struct shrink *shrink, uint64_t hash)
{
	struct shrink_cut best = shrink->best;

	shrink->best = shrink->trial;
	shrink->trial = best;
	shrink->best_hash = hash;
	shrink->is_failing = true;
}

bool shrink_try_or(struct shrink *shrink, bool or_same)
{
	struct text text = {.bytes = NULL};
	uint64_t hash;
	bool fails;

	if (!shrink->trial.has_outcomes &&
	    !shrink_settle(&shrink->model, &shrink->trial)) {
		cmd_tell(NULL, 0, "no memory for a candidate");
		shrink_stop(shrink, CMD_BAD);
		return false;
	}
	if (write_trial(shrink, &text) != CMD_DONE) {
		free(text.bytes);
		shrink_stop(shrink, CMD_BAD);
		return false;
	}
	hash = XXH3_64bits(text.bytes, text.used) | 1;
	fails = (or_same && hash == shrink->best_hash) || test_text(shrink, &text, hash);
	free(text.bytes);
	if (fails)
		keep_trial(shrink, hash);
	return fails;
}

bool shrink_try(struct shrink *shrink)
{
	return shrink_try_or(shrink, false);
}

void shrink_begin(struct shrink *shrink)
{
	shrink_cut_copy(&shrink->trial, &shrink->best, &shrink->model);
}
