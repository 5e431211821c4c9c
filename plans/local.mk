# SPDX-License-Identifier: MIT
nobase_quireinclude_HEADERS += \
	%D%/import.h \
	%D%/plan.h \
	%D%/requests.h \
	%D%/step.h \
	%D%/trace.h

libquire_core_la_SOURCES += \
	%D%/blocks.c \
	%D%/blocks_impl.h \
	%D%/bytes.c \
	%D%/bytes_impl.h \
	%D%/digest.c \
	%D%/fault.c \
	%D%/fault_impl.h \
	%D%/ideal.c \
	%D%/import.c \
	%D%/json.c \
	%D%/json_impl.h \
	%D%/json_names.c \
	%D%/json_scan.c \
	%D%/lines.c \
	%D%/lines_impl.h \
	%D%/packer.c \
	%D%/packer_impl.h \
	%D%/paging_impl.h \
	%D%/plan.c \
	%D%/requests.c \
	%D%/requests_csv.c \
	%D%/requests_impl.h \
	%D%/requests_session.c \
	%D%/target.c \
	%D%/target_impl.h \
	%D%/trace.c \
	%D%/trace_impl.h \
	%D%/trace_parse.c \
	%D%/trace_parse_outcome.c \
	%D%/trace_parse_step.c \
	%D%/trace_put.c \
	%D%/trace_read.c \
	%D%/trace_write.c \
	%D%/utf8_impl.h

EXTRA_DIST += %D%/sample_requests.csv
