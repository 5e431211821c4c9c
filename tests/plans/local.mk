# SPDX-License-Identifier: MIT
check_PROGRAMS += \
	%D%/test_digest \
	%D%/test_golden \
	%D%/test_import \
	%D%/test_patch \
	%D%/test_plan \
	%D%/test_requests \
	%D%/test_trace \
	%D%/test_trace_refused

TESTS += \
	%D%/test_digest \
	%D%/test_golden \
	%D%/test_import \
	%D%/test_patch \
	%D%/test_plan \
	%D%/test_requests \
	%D%/test_trace \
	%D%/test_trace_refused

%C%_test_digest_SOURCES = %D%/test_digest.c %D%/random_plan.h
%C%_test_digest_LDADD = $(TEST_LIBS)
%C%_test_digest_CFLAGS = $(TEST_CFLAGS)

%C%_test_golden_SOURCES = %D%/test_golden.c
%C%_test_golden_LDADD = $(TEST_LIBS)
%C%_test_golden_CFLAGS = $(TEST_CFLAGS) -DTOP_SRCDIR='"$(abs_top_srcdir)"'

%C%_test_import_SOURCES = %D%/test_import.c %D%/random_plan.h %D%/temporary.h
%C%_test_import_LDADD = $(TEST_LIBS)
%C%_test_import_CFLAGS = $(TEST_CFLAGS)

%C%_test_patch_SOURCES = %D%/test_patch.c %D%/random_plan.h
%C%_test_patch_LDADD = $(TEST_LIBS)
%C%_test_patch_CFLAGS = $(TEST_CFLAGS)

%C%_test_plan_SOURCES = %D%/test_plan.c %D%/random_plan.h
%C%_test_plan_LDADD = $(TEST_LIBS)
%C%_test_plan_CFLAGS = $(TEST_CFLAGS)

%C%_test_requests_SOURCES = %D%/test_requests.c %D%/random_plan.h %D%/temporary.h
%C%_test_requests_LDADD = $(TEST_LIBS)
%C%_test_requests_CFLAGS = $(TEST_CFLAGS)

%C%_test_trace_SOURCES = %D%/test_trace.c %D%/random_plan.h %D%/random_trace.h \
	%D%/temporary.h
%C%_test_trace_LDADD = $(TEST_LIBS)
%C%_test_trace_CFLAGS = $(TEST_CFLAGS)

%C%_test_trace_refused_SOURCES = %D%/test_trace_refused.c %D%/random_plan.h \
	%D%/random_trace.h %D%/temporary.h
%C%_test_trace_refused_LDADD = $(TEST_LIBS)
%C%_test_trace_refused_CFLAGS = $(TEST_CFLAGS)

bench_programs += %D%/bench_plan
%C%_bench_plan_SOURCES = %D%/bench_plan.c
%C%_bench_plan_LDADD = $(TEST_LIBS)
%C%_bench_plan_CFLAGS = $(TEST_CFLAGS)

check_PROGRAMS += %D%/test_target
TESTS += %D%/test_target
%C%_test_target_SOURCES = %D%/test_target.c %D%/temporary.h
%C%_test_target_LDADD = $(TEST_LIBS)
%C%_test_target_CFLAGS = $(TEST_CFLAGS)

TESTS += %D%/test_plan_trace.sh
EXTRA_DIST += %D%/test_plan_trace.sh \
	%D%/check_plan_trace.py \
	%D%/plan_trace.py \
	%D%/plan_trace_read.py \
	%D%/plan_trace_run.py \
	%D%/plan_trace_step.py \
	%D%/random_trace.py \
	%D%/xxh3.py
