/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_RUNTIME_CMD_CMD_IMPL_H
#define QUIRE_RUNTIME_CMD_CMD_IMPL_H
/*
 * What the parts of the quire command share.  Each command is a function in a file of its
 * name; a fault is told once, as one line on standard error, by whoever finds it, and
 * from there on travels as an exit code.
 */
#include <quire/plans/step.h>
#include <quire/runtime/status.h>

#include <argp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Exit codes, and what functions answer that may end the command. */
enum cmd_exit {
	CMD_DONE = 0,
	CMD_FAILED = 1, /* a divergence, a failed check, a runtime that failed */
	CMD_BAD = 2,    /* bad input, bad usage */
};

/* argv[0] is the command's whole name. */
int cmd_replay(int argc, char **argv);
int cmd_import(int argc, char **argv);
int cmd_info(int argc, char **argv);
int cmd_stress(int argc, char **argv);
int cmd_diff(int argc, char **argv);
int cmd_shrink(int argc, char **argv);

/* The names of a trace's commands, by kind. */
#define CMD_KINDS (QUIRE_COMMAND_ABANDON + 1)
extern const char *const cmd_kind_names[CMD_KINDS];

/* ------------------------------------------------------------------ options.c */

/* What every command's options start with. */
struct cmd_common {
	bool json;
	bool quiet;
	bool help;
	bool told; /* a usage error was told */
};

/* Entries of every command's option list; the keys that cmd_parse_common knows. */
#define CMD_COMMON_OPTIONS                                                        \
	{"json", 'j', NULL, 0, "Print the numbers as one JSON object", 1},        \
		{"quiet", 'q', NULL, 0, "Print neither numbers nor progress", 1}, \
		{"help", '?', NULL, 0, "Print this help", -1},                    \
	{                                                                         \
		NULL, 'h', NULL, OPTION_ALIAS, NULL, 0                            \
	}

/* The default case of every command's parser; state->input is a struct cmd_common. */
error_t cmd_parse_common(int key, char *argument, struct argp_state *state);

/* Tell a usage error; answers EINVAL. */
__attribute__((format(printf, 2, 3))) error_t cmd_refuse_usage(struct argp_state *state,
                                                               const char *format, ...);

/* An integer argument of an option, min..max. */
error_t cmd_parse_int(struct argp_state *state, const char *option, const char *text,
                      int64_t min, int64_t max, int64_t *out);

/* One operand; a second one is a usage error. */
error_t cmd_parse_operand(struct argp_state *state, char *argument, const char **out);

/*
 * cmd_parse - parse a command's options; --help is answered
 * @common:  the command's options
 * @flags:   ARGP_IN_ORDER or 0
 * Returns:  CMD_DONE, unless common->help ended it; CMD_BAD: told.
 */
int cmd_parse(const struct argp *argp, int argc, char **argv, struct cmd_common *common,
              unsigned flags);

/* ------------------------------------------------------------------ fault.c */

/* One line on standard error: "quire: FILE:LINE: ..."; @file NULL, @line 0: none. */
__attribute__((format(printf, 3, 4))) void cmd_tell(const char *file, int64_t line,
                                                    const char *format, ...);

/* The same for a refusal of the library, whose line it takes; answers CMD_BAD. */
int cmd_tell_refusal(const char *file, const struct quire_refusal *refusal);

/* Of threads that do the same, where the first fault ends all: only one is told. */
struct cmd_gate {
	atomic_flag told; /* ATOMIC_FLAG_INIT */
};

/* From here on the calling thread tells through a gate; NULL: freely, as at the start. */
void cmd_tell_through(struct cmd_gate *gate);

/* ------------------------------------------------------------------ input.c */

/* A file to read, perhaps twice: what can be read once only is copied first. */
struct cmd_input {
	const char *name; /* as the user gave it */
	const char *path; /* to open */
	FILE *copy;       /* NULL: none */
	char copy_path[32];
};

/* CMD_DONE; CMD_BAD: told.  A name that cannot be opened is its reader's to refuse. */
int cmd_input_open(struct cmd_input *input, const char *name, bool twice);
void cmd_input_close(struct cmd_input *input);

/* Would writing to @output ("-": standard output) write over @input ("-": standard input)?
 * What was asked to be read may be all there is of it. */
bool cmd_is_same_file(const char *input, const char *output);

/* ------------------------------------------------------------------ progress.c */

/* Have a progress line where one is wanted and standard error is a terminal. */
void cmd_progress_start(const char *what, const struct cmd_common *common);
/* @of -1: not known */
void cmd_progress_show(int64_t done, int64_t of);
void cmd_progress_show_text(const char *text);
/* Take the line away; no-op when none is shown. */
void cmd_progress_end(void);

/* ------------------------------------------------------------------ report.c */

/* Named numbers, printed as aligned text or as one JSON object. */
struct cmd_report;

/* NULL: no memory, told.  Ended by cmd_report_print. */
struct cmd_report *cmd_report_create(void);
/* @label is the text's, @key JSON's; either may be NULL: not there. */
void cmd_report_count(struct cmd_report *report, const char *key, const char *label,
                      int64_t value);
void cmd_report_time(struct cmd_report *report, const char *key, const char *label,
                     int64_t ns);
void cmd_report_real(struct cmd_report *report, const char *key, const char *label,
                     double value, const char *unit);
void cmd_report_share(struct cmd_report *report, const char *key, const char *label,
                      double share);
void cmd_report_text(struct cmd_report *report, const char *key, const char *label,
                     const char *text);
/* Counts by name, those above 0. */
void cmd_report_kinds(struct cmd_report *report, const char *key, const char *label,
                      const char *const *names, const int64_t *counts, int32_t n);
/* What follows goes into an object of JSON's by that name, until it is ended: one inside
 * the report, no further ones inside that. */
void cmd_report_begin(struct cmd_report *report, const char *key);
void cmd_report_end(struct cmd_report *report);
/* Print it to @file and end it.  CMD_DONE; CMD_BAD: no memory or not written, told. */
int cmd_report_print(struct cmd_report *report, FILE *file, bool json);
/* End it without printing; NULL is a no-op. */
void cmd_report_discard(struct cmd_report *report);

#endif
