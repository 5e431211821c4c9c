# SPDX-License-Identifier: MIT
check_PROGRAMS += \
	%D%/test_ledger \
	%D%/test_pool \
	%D%/test_pool_frozen \
	%D%/test_pool_linear \
	%D%/torture_pool
TESTS += \
	%D%/test_ledger \
	%D%/test_pool \
	%D%/test_pool_frozen \
	%D%/test_pool_linear \
	%D%/torture_pool.sh
torture_programs += %D%/torture_pool
bench_programs += %D%/bench_pool
EXTRA_DIST += \
	%D%/model_pool.pml \
	%D%/model_pool.sh \
	%D%/torture_pool.sh

%C%_test_ledger_SOURCES = %D%/test_ledger.c %D%/random.h
%C%_test_ledger_LDADD = $(TEST_LIBS)
%C%_test_ledger_CFLAGS = $(TEST_CFLAGS)

%C%_test_pool_SOURCES = %D%/test_pool.c %D%/random.h
%C%_test_pool_LDADD = $(TEST_LIBS)
%C%_test_pool_CFLAGS = $(TEST_CFLAGS)

# The pool once more, with its stall points.
%C%_test_pool_frozen_SOURCES = %D%/test_pool_frozen.c alloc/pool.c
%C%_test_pool_frozen_LDADD = $(TEST_LIBS)
%C%_test_pool_frozen_CFLAGS = $(TEST_CFLAGS) -DQUIRE_POOL_POINTS

%C%_test_pool_linear_SOURCES = %D%/test_pool_linear.c %D%/random.h alloc/pool.c
%C%_test_pool_linear_LDADD = $(TEST_LIBS)
%C%_test_pool_linear_CFLAGS = $(TEST_CFLAGS) -DQUIRE_POOL_POINTS

%C%_torture_pool_SOURCES = %D%/torture_pool.c %D%/random.h
%C%_torture_pool_LDADD = $(TEST_LIBS)
%C%_torture_pool_CFLAGS = $(TEST_CFLAGS)

%C%_bench_pool_SOURCES = %D%/bench_pool.c %D%/random.h
%C%_bench_pool_LDADD = $(TEST_LIBS)
%C%_bench_pool_CFLAGS = $(TEST_CFLAGS)
