# SPDX-License-Identifier: MIT
check_PROGRAMS += \
	%D%/fault_trace \
	%D%/test_digest \
	%D%/test_golden \
	%D%/test_ideal \
	%D%/test_import \
	%D%/test_json \
	%D%/test_patch \
	%D%/test_plan \
	%D%/test_requests \
	%D%/test_trace \
	%D%/test_trace_packed \
	%D%/test_trace_refused

TESTS += \
	%D%/fault_trace \
	%D%/test_digest \
	%D%/test_golden \
	%D%/test_ideal \
	%D%/test_import \
	%D%/test_json \
	%D%/test_patch \
	%D%/test_plan \
	%D%/test_requests \
	%D%/test_trace \
	%D%/test_trace_packed \
	%D%/test_trace_refused

%C%_fault_trace_SOURCES = %D%/fault_trace.c tests/runtime/counting_malloc.h
%C%_fault_trace_LDADD = $(TEST_LIBS)
%C%_fault_trace_CFLAGS = $(TEST_CFLAGS)

%C%_test_digest_SOURCES = %D%/test_digest.c %D%/random_plan.h
%C%_test_digest_LDADD = $(TEST_LIBS)
%C%_test_digest_CFLAGS = $(TEST_CFLAGS)

%C%_test_golden_SOURCES = %D%/test_golden.c
%C%_test_golden_LDADD = $(TEST_LIBS)
%C%_test_golden_CFLAGS = $(TEST_CFLAGS) -DTOP_SRCDIR='"$(abs_top_srcdir)"'

%C%_test_ideal_SOURCES = %D%/test_ideal.c %D%/random_plan.h
%C%_test_ideal_LDADD = $(TEST_LIBS)
%C%_test_ideal_CFLAGS = $(TEST_CFLAGS)

%C%_test_import_SOURCES = %D%/test_import.c %D%/random_plan.h %D%/temporary.h
%C%_test_import_LDADD = $(TEST_LIBS)
%C%_test_import_CFLAGS = $(TEST_CFLAGS)

%C%_test_json_SOURCES = %D%/test_json.c %D%/random_plan.h
%C%_test_json_LDADD = $(TEST_LIBS)
%C%_test_json_CFLAGS = $(TEST_CFLAGS)

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
	%D%/same_record.h %D%/temporary.h
%C%_test_trace_LDADD = $(TEST_LIBS)
%C%_test_trace_CFLAGS = $(TEST_CFLAGS)

%C%_test_trace_packed_SOURCES = %D%/test_trace_packed.c %D%/random_plan.h \
	%D%/random_trace.h %D%/same_record.h %D%/temporary.h
%C%_test_trace_packed_LDADD = $(TEST_LIBS)
%C%_test_trace_packed_CFLAGS = $(TEST_CFLAGS)

%C%_test_trace_refused_SOURCES = %D%/test_trace_refused.c %D%/random_plan.h \
	%D%/random_trace.h %D%/temporary.h
%C%_test_trace_refused_LDADD = $(TEST_LIBS)
%C%_test_trace_refused_CFLAGS = $(TEST_CFLAGS)

bench_programs += %D%/bench_plan
%C%_bench_plan_SOURCES = %D%/bench_plan.c
%C%_bench_plan_LDADD = $(TEST_LIBS)
%C%_bench_plan_CFLAGS = $(TEST_CFLAGS)

bench_programs += %D%/bench_trace
%C%_bench_trace_SOURCES = %D%/bench_trace.c
%C%_bench_trace_LDADD = $(TEST_LIBS)
%C%_bench_trace_CFLAGS = $(TEST_CFLAGS) -DTOP_SRCDIR='"$(abs_top_srcdir)"'

bench-trace: %D%/bench_trace$(EXEEXT)
	@./%D%/bench_trace

check_PROGRAMS += %D%/test_target
TESTS += %D%/test_target
%C%_test_target_SOURCES = %D%/test_target.c %D%/temporary.h
%C%_test_target_LDADD = $(TEST_LIBS)
%C%_test_target_CFLAGS = $(TEST_CFLAGS)

# Fuzzers, built and run by tests/fuzz.sh with clang; their entries over the committed inputs.
EXTRA_PROGRAMS += %D%/fuzz_requests %D%/fuzz_trace
%C%_fuzz_requests_SOURCES = %D%/fuzz_requests.c %D%/fuzz_input.h
%C%_fuzz_requests_LDADD = $(TEST_LIBS)
%C%_fuzz_requests_LDFLAGS = -fsanitize=fuzzer
%C%_fuzz_trace_SOURCES = %D%/fuzz_trace.c %D%/fuzz_input.h %D%/same_record.h
%C%_fuzz_trace_LDADD = $(TEST_LIBS)
%C%_fuzz_trace_LDFLAGS = -fsanitize=fuzzer

check_PROGRAMS += %D%/test_seeds_requests %D%/test_seeds_trace
TESTS += %D%/test_seeds_requests %D%/test_seeds_trace
%C%_test_seeds_requests_SOURCES = %D%/fuzz_requests.c %D%/fuzz_main.c %D%/fuzz_input.h
%C%_test_seeds_requests_LDADD = $(TEST_LIBS)
%C%_test_seeds_requests_CFLAGS = $(TEST_CFLAGS) \
	-DSEEDS='"$(abs_top_srcdir)/%D%/seeds/requests"'
%C%_test_seeds_trace_SOURCES = %D%/fuzz_trace.c %D%/fuzz_main.c %D%/fuzz_input.h \
	%D%/same_record.h
%C%_test_seeds_trace_LDADD = $(TEST_LIBS)
%C%_test_seeds_trace_CFLAGS = $(TEST_CFLAGS) \
	-DSEEDS='"$(abs_top_srcdir)/%D%/seeds/trace"'
EXTRA_DIST += %D%/fuzz.dict %D%/seeds
TESTS += %D%/test_plan_trace.sh
EXTRA_DIST += %D%/test_plan_trace.sh \
	%D%/check_plan_trace.py \
	%D%/plan_trace.py \
	%D%/plan_trace_read.py \
	%D%/plan_trace_run.py \
	%D%/plan_trace_step.py \
	%D%/random_trace.py \
	%D%/xxh3.py
