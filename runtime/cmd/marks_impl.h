/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_RUNTIME_CMD_MARKS_IMPL_H
#define QUIRE_RUNTIME_CMD_MARKS_IMPL_H
/*
 * A set of commands, by their place in a run: one bit each.
 */
#include <stdbool.h>
#include <stdint.h>

struct cmd_marks {
	uint64_t *words;
	uint64_t num_words;
};

/* false: no memory */
bool cmd_marks_add(struct cmd_marks *marks, uint64_t index);
bool cmd_marks_has(const struct cmd_marks *marks, uint64_t index);
void cmd_marks_end(struct cmd_marks *marks);

#endif
