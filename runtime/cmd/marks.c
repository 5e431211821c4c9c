/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/marks_impl.h"

#include <stdlib.h>
#include <string.h>

#define WORDS_FIRST 64

bool cmd_marks_add(struct cmd_marks *marks, uint64_t index)
{
	uint64_t word = index / 64, room = marks->num_words;

	if (word >= room) {
		uint64_t *words;

		room = room == 0 ? WORDS_FIRST : room;
		while (word >= room)
			room *= 2;
		words = realloc(marks->words, room * sizeof(*words));
		if (words == NULL)
			return false;
		memset(words + marks->num_words, 0,
		       (room - marks->num_words) * sizeof(*words));
		marks->words = words;
		marks->num_words = room;
	}
	marks->words[word] |= UINT64_C(1) << index % 64;
	return true;
}

bool cmd_marks_has(const struct cmd_marks *marks, uint64_t index)
{
	return index / 64 < marks->num_words &&
	       (marks->words[index / 64] >> index % 64 & 1) != 0;
}

void cmd_marks_end(struct cmd_marks *marks)
{
	free(marks->words);
	*marks = (struct cmd_marks){.words = NULL};
}
