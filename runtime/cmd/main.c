/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/cmd_impl.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

struct command {
	const char *name;
	char *full_name;
	int (*run)(int argc, char **argv);
};

static const struct command commands[] = {
	{"replay", "quire replay", cmd_replay}, {"import", "quire import", cmd_import},
	{"info", "quire info", cmd_info},       {"stress", "quire stress", cmd_stress},
	{"diff", "quire diff", cmd_diff},       {"shrink", "quire shrink", cmd_shrink},
};

struct main_options {
	struct cmd_common common;
	bool version;
	bool of_command; /* "help" stood before the command: its help is asked for */
	int at;          /* place of the command in argv; 0: none */
	const struct command *command;
};

static const struct argp_option option_list[] = {
	{"help", '?', NULL, 0, "Print this help", -1},
	{NULL, 'h', NULL, OPTION_ALIAS, NULL, 0},
	{"version", 'V', NULL, 0, "Print the version", -1},
	{0},
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct main_options *options = state->input;

	switch (key) {
	case 'V':
		options->version = true;
		return 0;
	case ARGP_KEY_ARG:
		if (strcmp(argument, "help") == 0 && !options->of_command) {
			options->of_command = true;
			return 0;
		}
		for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
			if (strcmp(commands[i].name, argument) == 0)
				options->command = &commands[i];
		}
		if (options->command == NULL)
			return cmd_refuse_usage(state,
			                        "\"%s\" is no command: import, replay, "
			                        "info, diff, shrink or stress is wanted",
			                        argument);
		options->at = state->next - 1;
		state->next = state->argc; /* the rest is the command's */
		return 0;
	case ARGP_KEY_END:
		options->common.help |= options->of_command && options->command == NULL;
		if (options->command == NULL && !options->common.help &&
		    !options->version)
			return cmd_refuse_usage(
				state, "a command is wanted: import, replay, info, diff, "
				       "shrink or stress");
		return 0;
	default:
		return cmd_parse_common(key, argument, state);
	}
}

static const struct argp argp = {
	.options = option_list,
	.parser = parse,
	.args_doc = "COMMAND [OPTION...] [FILE]",
	.doc = "A runtime for paged KV caches that plans ahead while the device executes "
	       "behind.\v"
	       "Commands:\n"
	       "  import   make a plan trace of a request trace\n"
	       "  replay   run a plan trace, compare and verify it\n"
	       "  info     say what a trace holds\n"
	       "  diff     compare two plan traces\n"
	       "  shrink   make a plan trace smaller for which a program fails\n"
	       "  stress   take and give pages from many threads, see that none is lost\n"
	       "\n"
	       "Example:\n"
	       "  quire import requests.csv -o requests.plan\n"
	       "  quire replay --check requests.plan\n"
	       "\n"
	       "Each command answers --help, as \"quire help COMMAND\" does.  Exit "
	       "status: 0 done, 1 a divergence or a "
	       "failed check, 2 bad input or usage.",
};

/* A closed standard stream would hand its number to the next file opened. */
static bool hold_standard_streams(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDONLY) != fd)
			return false;
	}
	return true;
}

static int tell_help(const struct command *command)
{
	static char help[] = "--help";
	char *argv[] = {command->full_name, help, NULL};

	return command->run(2, argv);
}

static int run(int argc, char **argv)
{
	struct main_options options = {.at = 0};
	int code = cmd_parse(&argp, argc, argv, &options.common, ARGP_IN_ORDER);

	if (code != CMD_DONE || options.common.help)
		return code;
	if (options.version)
		return puts(PACKAGE_STRING) == EOF ? CMD_BAD : CMD_DONE;
	if (options.of_command)
		return tell_help(options.command);
	argv[options.at] = options.command->full_name;
	return options.command->run(argc - options.at, argv + options.at);
}

int main(int argc, char **argv)
{
	static char name[] = "quire";
	char *none[] = {name, NULL};
	int code;

	if (!hold_standard_streams())
		return CMD_BAD;
	signal(SIGPIPE, SIG_IGN); /* a reader that went away is a write that fails, */
	signal(SIGXFSZ, SIG_IGN); /* and so is a file that may not grow */
	if (argc > 0)
		argv[0] = name;
	code = run(argc > 0 ? argc : 1, argc > 0 ? argv : none);
	if ((fflush(stdout) != 0 || ferror(stdout)) && code == CMD_DONE) {
		cmd_tell(NULL, 0, "standard output cannot be written to: %m");
		code = CMD_BAD;
	}
	return code;
}
