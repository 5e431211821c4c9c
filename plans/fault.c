/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "plans/fault_impl.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char fault_text[QUIRE_FAULT_BYTES];

enum quire_status quire_fault(struct quire_refusal *refusal_out, enum quire_status status,
                              int64_t line, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(fault_text, sizeof(fault_text), format, arguments);
	va_end(arguments);
	if (refusal_out != NULL) {
		memset(refusal_out, 0, sizeof(*refusal_out));
		refusal_out->status = status;
		refusal_out->line = line;
		refusal_out->index = -1;
		refusal_out->what = fault_text;
	}
	return status;
}
