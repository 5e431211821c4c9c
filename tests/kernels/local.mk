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
	%D%/test_members \
	%D%/test_signals
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

%C%_test_signals_SOURCES = %D%/test_signals.c $(kernels_cache_headers)
%C%_test_signals_LDADD = $(TEST_LIBS) -lm
%C%_test_signals_CFLAGS = $(TEST_CFLAGS)

check_PROGRAMS += %D%/fault_cache
TESTS += %D%/fault_cache
%C%_fault_cache_SOURCES = %D%/fault_cache.c tests/runtime/counting_malloc.h \
	$(kernels_cache_headers)
%C%_fault_cache_LDADD = $(TEST_LIBS)
%C%_fault_cache_CFLAGS = $(TEST_CFLAGS)

# The CUDA device and its kernels, on a stand-in for CUDA.  A program takes the device of
# the library, if it has one, only where it finds none before.
if HAVE_CXX
check_LTLIBRARIES += %D%/libdevice_cuda.la
endif
%C%_libdevice_cuda_la_SOURCES = $(cuda_sources)
%C%_libdevice_cuda_la_CPPFLAGS = $(CUDA_STANDIN_CPPFLAGS)
CUDA_TEST_DEVICE = -Wl,-u,quire_device_create_cuda
CUDA_TEST_LIBS = %D%/libdevice_cuda.la $(CUDA_STANDIN_LIBS) $(TEST_LIBS)
cuda_tests = \
	%D%/test_cuda \
	%D%/test_cuda_cache \
	%D%/test_cuda_refused \
	%D%/test_cuda_stream \
	%D%/test_cuda_moves \
	%D%/test_cuda_graph \
	%D%/fault_cuda
if HAVE_CXX
check_PROGRAMS += $(cuda_tests)
TESTS += $(cuda_tests)
endif

%C%_test_cuda_SOURCES = %D%/test_cuda.c %D%/test_cuda.h
%C%_test_cuda_LDADD = $(CUDA_TEST_LIBS)
%C%_test_cuda_LDFLAGS = $(CUDA_TEST_DEVICE)
%C%_test_cuda_CPPFLAGS = $(CUDA_STANDIN_CPPFLAGS)
%C%_test_cuda_CFLAGS = $(TEST_CFLAGS)

%C%_test_cuda_stream_SOURCES = %D%/test_cuda_stream.c %D%/test_cuda.h
%C%_test_cuda_stream_LDADD = $(CUDA_TEST_LIBS)
%C%_test_cuda_stream_LDFLAGS = $(CUDA_TEST_DEVICE)
%C%_test_cuda_stream_CPPFLAGS = $(CUDA_STANDIN_CPPFLAGS)
%C%_test_cuda_stream_CFLAGS = $(TEST_CFLAGS)

%C%_fault_cuda_SOURCES = %D%/fault_cuda.c %D%/test_cuda.h
%C%_fault_cuda_LDADD = $(CUDA_TEST_LIBS)
%C%_fault_cuda_LDFLAGS = $(CUDA_TEST_DEVICE)
%C%_fault_cuda_CPPFLAGS = $(CUDA_STANDIN_CPPFLAGS)
%C%_fault_cuda_CFLAGS = $(TEST_CFLAGS)

# The table of the other devices for this one.
%C%_test_cuda_cache_SOURCES = %D%/test_cache.c $(kernels_cache_headers)
%C%_test_cuda_cache_LDADD = $(CUDA_TEST_LIBS)
%C%_test_cuda_cache_LDFLAGS = $(CUDA_TEST_DEVICE)
%C%_test_cuda_cache_CPPFLAGS = '-DCACHE_DEVICES="cuda","cuda+checks"' $(AM_CPPFLAGS)
%C%_test_cuda_cache_CFLAGS = $(TEST_CFLAGS)

%C%_test_cuda_refused_SOURCES = %D%/test_cache_refused.c $(kernels_cache_headers)
%C%_test_cuda_refused_LDADD = $(CUDA_TEST_LIBS)
%C%_test_cuda_refused_LDFLAGS = $(CUDA_TEST_DEVICE)
%C%_test_cuda_refused_CPPFLAGS = '-DCACHE_DEVICES="cuda","cuda+checks"' $(AM_CPPFLAGS)
%C%_test_cuda_refused_CFLAGS = $(TEST_CFLAGS)

%C%_test_cuda_moves_SOURCES = %D%/test_cuda_moves.c $(kernels_cache_headers)
%C%_test_cuda_moves_LDADD = $(CUDA_TEST_LIBS)
%C%_test_cuda_moves_LDFLAGS = $(CUDA_TEST_DEVICE)
%C%_test_cuda_moves_CPPFLAGS = $(CUDA_STANDIN_CPPFLAGS)
%C%_test_cuda_moves_CFLAGS = $(TEST_CFLAGS)

%C%_test_cuda_graph_SOURCES = %D%/test_cuda_graph.c $(kernels_cache_headers)
%C%_test_cuda_graph_LDADD = $(CUDA_TEST_LIBS)
%C%_test_cuda_graph_LDFLAGS = $(CUDA_TEST_DEVICE)
%C%_test_cuda_graph_CPPFLAGS = $(CUDA_STANDIN_CPPFLAGS)
%C%_test_cuda_graph_CFLAGS = $(TEST_CFLAGS)

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
