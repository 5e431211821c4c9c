/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/cmd_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

#define TEXT_BYTES 512

error_t cmd_refuse_usage(struct argp_state *state, const char *format, ...)
{
	struct cmd_common *common = state->input;
	char text[TEXT_BYTES];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (!common->told)
		cmd_tell(NULL, 0, "%s; see \"%s --help\"", text, state->name);
	common->told = true;
	return EINVAL;
}

error_t cmd_parse_int(struct argp_state *state, const char *option, const char *text,
                      int64_t min, int64_t max, int64_t *out)
{
	char *end;
	long long value;

	errno = 0;
	value = strtoll(text, &end, 10);
	if (end == text || *end != '\0' || errno != 0 || value < min || value > max)
		return cmd_refuse_usage(state,
		                        "%s must be an integer %" PRId64 "..%" PRId64
		                        ", got \"%s\"",
		                        option, min, max, text);
	*out = value;
	return 0;
}

error_t cmd_parse_operand(struct argp_state *state, char *argument, const char **out)
{
	if (*out != NULL)
		return cmd_refuse_usage(
			state, "one file is wanted, \"%s\" is one too many", argument);
	*out = argument;
	return 0;
}

error_t cmd_parse_common(int key, char *argument, struct argp_state *state)
{
	struct cmd_common *common = state->input;

	(void)argument;
	switch (key) {
	case 'j':
		common->json = true;
		return 0;
	case 'q':
		common->quiet = true;
		return 0;
	case '?':
	case 'h':
		common->help = true;
		return 0;
	case ARGP_KEY_ERROR:
		return cmd_refuse_usage(
			state,
			"\"%s\": not an option here, or a value missing or unwanted",
			state->argv[state->next > 1 ? state->next - 1 : 1]);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int cmd_parse(const struct argp *argp, int argc, char **argv, struct cmd_common *common,
              unsigned flags)
{
	error_t error = argp_parse(argp, argc, argv,
	                           flags | ARGP_NO_HELP | ARGP_NO_ERRS | ARGP_NO_EXIT,
	                           NULL, common);

	if (error != 0 && !common->told)
		cmd_tell(NULL, 0, "options cannot be parsed; see \"%s --help\"", argv[0]);
	if (error != 0)
		return CMD_BAD;
	if (common->help)
		argp_help(argp, stdout, ARGP_HELP_STD_HELP, argv[0]);
	return CMD_DONE;
}
