/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_RUNTIME_CMD_DIVERGENCE_IMPL_H
#define QUIRE_RUNTIME_CMD_DIVERGENCE_IMPL_H
/*
 * The first thing that is not as recorded: what it is, and where.  What is not known is
 * left out, in the line that tells it and in the report.
 */
#include "runtime/cmd/cmd_impl.h"

#include <quire/plans/step.h>
#include <quire/runtime/status.h>

#include <stdbool.h>
#include <stdint.h>

#define CMD_DIVERGENCE_BYTES 128
#define CMD_NOTE_BYTES       256

struct cmd_divergence {
	/* "status", "detail", "pages", "digest", "table", "order", "run"; NULL: there is
	 * none */
	const char *what;
	int64_t line; /* 0: none */
	enum quire_command_kind kind;
	uint64_t index; /* of the command in the run, from 0 */
	uint64_t step;  /* its number in the run; 0: not planned */
	bool has_stream;
	uint64_t request;
	char label[QUIRE_LABEL_BYTES];
	int32_t row; /* the segment in the step's list; -1: none */
	char table[QUIRE_LABEL_BYTES];
	const char *array;   /* of the table or of the step; NULL: none */
	int64_t array_index; /* -1: none */
	int64_t take;        /* place in take order; -1: none */
	uint64_t digest;     /* that the run got, of what "digest" and "table" are */
	uint64_t expected_digest;
	char expected[CMD_DIVERGENCE_BYTES]; /* "": note says all of it */
	char got[CMD_DIVERGENCE_BYTES];
	char note[CMD_NOTE_BYTES];
};

/* Nothing known but what and where. */
void cmd_divergence_init(struct cmd_divergence *divergence, const char *what,
                         int64_t line, enum quire_command_kind kind);

/* Add to the note, behind what it says. */
__attribute__((format(printf, 2, 3))) void
cmd_divergence_note(struct cmd_divergence *divergence, const char *format, ...);

/* What it is of: a stream. */
void cmd_divergence_name(struct cmd_divergence *divergence, uint64_t request,
                         const char *label);

/* Tell it, as one line. */
void cmd_divergence_tell(const struct cmd_divergence *divergence, const char *file);

/* Add it to a report, as "divergence". */
void cmd_divergence_report(const struct cmd_divergence *divergence,
                           struct cmd_report *report);

#endif
