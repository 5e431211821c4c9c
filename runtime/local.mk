# SPDX-License-Identifier: MIT
# runtime: streams, planner, executor; the leaf headers.
include_HEADERS += %D%/quire.h
nobase_quireinclude_HEADERS += \
	%D%/limits.h \
	%D%/runtime.h \
	%D%/status.h
libquire_core_la_SOURCES += \
	%D%/admit.c \
	%D%/assert.h \
	%D%/check.c \
	%D%/client.c \
	%D%/commands.c \
	%D%/commands_impl.h \
	%D%/executor.c \
	%D%/histogram_impl.h \
	%D%/planner.c \
	%D%/refuse_impl.h \
	%D%/registry.c \
	%D%/registry_impl.h \
	%D%/runtime.c \
	%D%/runtime_impl.h \
	%D%/sanitize.h \
	%D%/slot.c \
	%D%/status.c \
	%D%/tickets.c \
	%D%/tickets_impl.h \
	%D%/wake.c \
	%D%/wake_impl.h
