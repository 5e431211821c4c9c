# SPDX-License-Identifier: MIT
kernels_tests = \
	%D%/test_cache \
	%D%/test_cache_config \
	%D%/test_cache_refused \
	%D%/test_convert \
	%D%/test_device \
	%D%/test_dtype \
	%D%/test_event \
	%D%/test_layout \
	%D%/test_move \
	%D%/test_members
check_PROGRAMS += $(kernels_tests)
TESTS += $(kernels_tests)

kernels_cache_headers = %D%/cache_fixture.h %D%/cache_table.h %D%/exact_convert.h \
	%D%/naive_cache.h
%C%_test_cache_SOURCES = %D%/test_cache.c $(kernels_cache_headers)
%C%_test_cache_LDADD = $(TEST_LIBS)
%C%_test_cache_CFLAGS = $(TEST_CFLAGS)

%C%_test_cache_config_SOURCES = %D%/test_cache_config.c
%C%_test_cache_config_LDADD = $(TEST_LIBS)
%C%_test_cache_config_CFLAGS = $(TEST_CFLAGS)

%C%_test_cache_refused_SOURCES = %D%/test_cache_refused.c $(kernels_cache_headers)
%C%_test_cache_refused_LDADD = $(TEST_LIBS)
%C%_test_cache_refused_CFLAGS = $(TEST_CFLAGS)

%C%_test_convert_SOURCES = %D%/test_convert.c %D%/exact_convert.h
%C%_test_convert_LDADD = $(TEST_LIBS) -lm
%C%_test_convert_CFLAGS = $(TEST_CFLAGS)

torture_programs += %D%/torture_convert
%C%_torture_convert_SOURCES = %D%/torture_convert.c %D%/exact_convert.h
%C%_torture_convert_LDADD = $(TEST_LIBS) -lm
%C%_torture_convert_CFLAGS = $(TEST_CFLAGS)

%C%_test_device_SOURCES = %D%/test_device.c %D%/device_user.h
%C%_test_device_LDADD = $(TEST_LIBS)
%C%_test_device_CFLAGS = $(TEST_CFLAGS)

%C%_test_dtype_SOURCES = %D%/test_dtype.c %D%/exact_convert.h
%C%_test_dtype_LDADD = $(TEST_LIBS) -lm
%C%_test_dtype_CFLAGS = $(TEST_CFLAGS)

%C%_test_event_SOURCES = %D%/test_event.c %D%/device_user.h
%C%_test_event_LDADD = $(TEST_LIBS)
%C%_test_event_CFLAGS = $(TEST_CFLAGS)

%C%_test_layout_SOURCES = %D%/test_layout.c $(kernels_cache_headers)
%C%_test_layout_LDADD = $(TEST_LIBS)
%C%_test_layout_CFLAGS = $(TEST_CFLAGS)

%C%_test_move_SOURCES = %D%/test_move.c %D%/exact_convert.h %D%/naive_cache.h
%C%_test_move_LDADD = $(TEST_LIBS) -lm
%C%_test_move_CFLAGS = $(TEST_CFLAGS)

%C%_test_members_SOURCES = %D%/test_members.c $(kernels_cache_headers)
%C%_test_members_LDADD = $(TEST_LIBS)
%C%_test_members_CFLAGS = $(TEST_CFLAGS)

check_PROGRAMS += %D%/fault_cache
TESTS += %D%/fault_cache
%C%_fault_cache_SOURCES = %D%/fault_cache.c tests/runtime/counting_malloc.h \
	$(kernels_cache_headers)
%C%_fault_cache_LDADD = $(TEST_LIBS)
%C%_fault_cache_CFLAGS = $(TEST_CFLAGS)

# The cache beside plain copies: bench-cache as a whole, the short one for bench.
EXTRA_PROGRAMS += %D%/bench_cache
%C%_bench_cache_SOURCES = %D%/bench_cache.c %D%/bench_moves.c %D%/bench_moves.h
%C%_bench_cache_LDADD = $(TEST_LIBS) -lm
%C%_bench_cache_CFLAGS = $(TEST_CFLAGS)

bench-cache: %D%/bench_cache$(EXEEXT)
	./%D%/bench_cache

bench_runs += bench-cache-quick
bench-cache-quick: %D%/bench_cache$(EXEEXT)
	@./%D%/bench_cache --quick
