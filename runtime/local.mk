# SPDX-License-Identifier: MIT
# runtime: streams, planner, executor; the leaf headers.
include_HEADERS += %D%/quire.h
nobase_quireinclude_HEADERS += \
	%D%/runtime_config.h \
	%D%/hooks.h \
	%D%/limits.h \
	%D%/record.h \
	%D%/runtime.h \
	%D%/stats.h \
	%D%/status.h
libquire_core_la_SOURCES += \
	%D%/admit.c \
	%D%/assert.h \
	%D%/carry.c \
	%D%/check.c \
	%D%/client.c \
	%D%/commands.c \
	%D%/commands_impl.h \
	%D%/counter_impl.h \
	%D%/executor.c \
	%D%/executor_impl.h \
	%D%/fatal.c \
	%D%/held.c \
	%D%/histogram_impl.h \
	%D%/lists.c \
	%D%/lists_impl.h \
	%D%/memory.c \
	%D%/memory_impl.h \
	%D%/planner.c \
	%D%/planner_impl.h \
	%D%/record.c \
	%D%/record_begin.c \
	%D%/record_events_impl.h \
	%D%/record_impl.h \
	%D%/record_lines.c \
	%D%/record_thread.c \
	%D%/refuse_impl.h \
	%D%/registry.c \
	%D%/registry_impl.h \
	%D%/runtime.c \
	%D%/runtime_impl.h \
	%D%/sanitize.h \
	%D%/slot.c \
	%D%/status.c \
	%D%/streams.c \
	%D%/threads.c \
	%D%/timeline.c \
	%D%/timeline_impl.h \
	%D%/tickets.c \
	%D%/tickets_impl.h \
	%D%/wake.c \
	%D%/wake_impl.h
