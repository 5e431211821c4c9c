# SPDX-License-Identifier: MIT
kernels_tests = \
	%D%/test_cache \
	%D%/test_device \
	%D%/test_dtype \
	%D%/test_layout
check_PROGRAMS += $(kernels_tests)
TESTS += $(kernels_tests)

%C%_test_cache_SOURCES = %D%/test_cache.c %D%/naive_cache.h
%C%_test_cache_LDADD = $(TEST_LIBS)
%C%_test_cache_CFLAGS = $(TEST_CFLAGS)

%C%_test_device_SOURCES = %D%/test_device.c
%C%_test_device_LDADD = $(TEST_LIBS)
%C%_test_device_CFLAGS = $(TEST_CFLAGS)

%C%_test_dtype_SOURCES = %D%/test_dtype.c
%C%_test_dtype_LDADD = $(TEST_LIBS) -lm
%C%_test_dtype_CFLAGS = $(TEST_CFLAGS)

%C%_test_layout_SOURCES = %D%/test_layout.c
%C%_test_layout_LDADD = $(TEST_LIBS)
%C%_test_layout_CFLAGS = $(TEST_CFLAGS)

# kernels/move.cu as C++ on a stand-in for CUDA.  It needs no C++ library, so it is linked as
# C is, with the flags of C.
%C%_test_move_cuda_SOURCES = %D%/test_move_cuda.c %D%/move_standin.cpp %D%/naive_cache.h \
	%D%/standin/cuda_runtime.h
%C%_test_move_cuda_LDADD = $(TEST_LIBS)
%C%_test_move_cuda_CFLAGS = $(TEST_CFLAGS)
%C%_test_move_cuda_CPPFLAGS = -I$(top_srcdir)/%D%/standin $(AM_CPPFLAGS)
%C%_test_move_cuda_CXXFLAGS = $(AM_CXXFLAGS) -fno-exceptions
%C%_test_move_cuda_LINK = $(LINK)
if HAVE_CXX
check_PROGRAMS += %D%/test_move_cuda
TESTS += %D%/test_move_cuda
endif

bench_programs += %D%/bench_cache
%C%_bench_cache_SOURCES = %D%/bench_cache.c
%C%_bench_cache_LDADD = $(TEST_LIBS)
%C%_bench_cache_CFLAGS = $(TEST_CFLAGS)
