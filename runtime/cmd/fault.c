/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/cmd_impl.h"

#include <inttypes.h>
#include <stdarg.h>

#define TEXT_BYTES 1024

static _Thread_local struct cmd_gate *gate_of_thread;

void cmd_tell_through(struct cmd_gate *gate)
{
	gate_of_thread = gate;
}

/* Bytes of a file or of its name: one line stays one line. */
static void keep_one_line(char *text)
{
	for (; *text != '\0'; text++) {
		if ((unsigned char)*text < ' ')
			*text = '?';
	}
}

void cmd_tell(const char *file, int64_t line, const char *format, ...)
{
	char text[TEXT_BYTES], name[TEXT_BYTES];
	va_list arguments;

	if (gate_of_thread != NULL && atomic_flag_test_and_set(&gate_of_thread->told))
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	snprintf(name, sizeof(name), "%s", file != NULL ? file : "");
	keep_one_line(text);
	keep_one_line(name);
	cmd_progress_end();
	if (file == NULL)
		fprintf(stderr, "quire: %s\n", text);
	else if (line <= 0)
		fprintf(stderr, "quire: %s: %s\n", name, text);
	else
		fprintf(stderr, "quire: %s:%" PRId64 ": %s\n", name, line, text);
}

/* What plans/ refuses says all of it in `what`, also the file where no line of it can be
 * read or written; the others are put into words. */
int cmd_tell_refusal(const char *file, const struct quire_refusal *refusal)
{
	char text[TEXT_BYTES];
	bool whole = refusal->status == QUIRE_IO || refusal->status == QUIRE_FORMAT ||
	             (refusal->status == QUIRE_INVALID && refusal->expected == 0 &&
	              refusal->got == 0);

	if (!whole)
		quire_refusal_text(refusal, text, sizeof(text));
	if (refusal->status == QUIRE_IO && refusal->line == 0)
		file = NULL;
	cmd_tell(file, refusal->line, "%s", whole ? refusal->what : text);
	return CMD_BAD;
}
