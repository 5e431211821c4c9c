/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/diff_impl.h"

/* All of xxhash in this file: the state lies on the stack. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <string.h>

static void add_u64(XXH3_state_t *state, uint64_t value)
{
	XXH3_128bits_update(state, &value, sizeof(value));
}

static void add_label(XXH3_state_t *state, const char *label)
{
	const char *name = label != NULL ? label : QUIRE_LABEL_MAIN;
	size_t length = strlen(name);

	add_u64(state, length);
	XXH3_128bits_update(state, name, length);
}

static void add_forks(XXH3_state_t *state, const struct quire_fork *forks, int32_t num)
{
	add_u64(state, (uint64_t)num);
	for (int32_t i = 0; i < num; i++) {
		add_label(state, forks[i].source);
		add_label(state, forks[i].target);
	}
}

static void add_combined(XXH3_state_t *state, const struct quire_step *step)
{
	add_u64(state, (uint64_t)step->num_combined);
	for (int32_t i = 0; i < step->num_combined; i++) {
		const struct quire_combined *combined = &step->combined[i];

		add_label(state, combined->name);
		add_u64(state, (uint64_t)combined->num_labels);
		for (int32_t j = 0; j < combined->num_labels; j++)
			add_label(state, combined->labels[j]);
	}
}

static void add_step(XXH3_state_t *state, const struct quire_step *step)
{
	add_u64(state, (uint64_t)step->num_segments);
	for (int32_t i = 0; i < step->num_segments; i++) {
		const struct quire_segment *segment = &step->segments[i];

		add_u64(state, segment->request);
		add_label(state, segment->label);
		add_u64(state, (uint32_t)segment->span);
		add_u64(state, (uint32_t)segment->at);
	}
	add_combined(state, step);
	add_forks(state, step->pre_forks, step->num_pre_forks);
	add_forks(state, step->post_forks, step->num_post_forks);
	add_u64(state, (uint64_t)step->bucket_tokens);
	add_u64(state, (uint64_t)step->bucket_rows);
	add_u64(state, step->flags);
}

static struct diff_key finish(const XXH3_state_t *state)
{
	XXH128_hash_t hash = XXH3_128bits_digest(state);

	return (struct diff_key){.low = hash.low64, .high = hash.high64};
}

struct diff_key diff_key_of(const struct quire_trace_record *record,
                            const struct diff_key *named)
{
	const struct quire_command *command = &record->command;
	XXH3_state_t state;

	XXH3_128bits_reset(&state);
	add_u64(&state, command->kind);
	switch (command->kind) {
	case QUIRE_COMMAND_SUBMIT:
		add_step(&state, command->step);
		break;
	case QUIRE_COMMAND_PROMOTE:
	case QUIRE_COMMAND_ABANDON:
		add_u64(&state, named->low);
		add_u64(&state, named->high);
		break;
	case QUIRE_COMMAND_RESET:
	case QUIRE_COMMAND_REWIND:
	case QUIRE_COMMAND_RELEASE_FRONT:
		add_label(&state, command->label);
		add_u64(&state, command->kind == QUIRE_COMMAND_RESET
		                        ? command->keep_pages != 0
		                        : (uint64_t)command->tokens);
		/* fall through */
	case QUIRE_COMMAND_OPEN:
	case QUIRE_COMMAND_CLOSE:
		add_u64(&state, command->request);
		break;
	}
	return finish(&state);
}

struct diff_key diff_key_of_prefix(const struct quire_trace_prefix *prefix)
{
	XXH3_state_t state;

	XXH3_128bits_reset(&state);
	add_u64(&state, (uint64_t)prefix->tokens);
	for (int32_t i = 0; i < prefix->num_keys; i++)
		add_u64(&state, (uint64_t)prefix->keys[i]);
	return finish(&state);
}

struct diff_key diff_key_of_run(const struct diff_key *keys)
{
	XXH128_hash_t hash = XXH3_128bits(keys, CMD_DIFF_RUN * sizeof(*keys));

	return (struct diff_key){.low = hash.low64, .high = hash.high64};
}
