# SPDX-License-Identifier: MIT
# A CUDA runtime for tests, and the kernels as C++ on it.  Neither needs a C++ library, so
# they are linked as C is.
check_LTLIBRARIES += %D%/libcuda_standin.la
%C%_libcuda_standin_la_SOURCES = \
	%D%/cuda_runtime.h \
	%D%/cuda_runtime_api.h \
	%D%/standin.c \
	%D%/standin.h \
	%D%/standin_copy.c \
	%D%/standin_device.c \
	%D%/standin_event.c \
	%D%/standin_graph.c \
	%D%/standin_impl.h \
	%D%/standin_kernel.c \
	%D%/standin_memory.c \
	%D%/standin_op.c \
	%D%/standin_stream.c \
	%D%/standin_thread.c
%C%_libcuda_standin_la_CPPFLAGS = $(CUDA_STANDIN_CPPFLAGS)
%C%_libcuda_standin_la_CXXFLAGS = $(AM_CXXFLAGS) -fno-exceptions
%C%_libcuda_standin_la_LIBADD = $(PTHREAD_LIBS)
%C%_libcuda_standin_la_LINK = $(LINK)
if HAVE_CXX
%C%_libcuda_standin_la_SOURCES += %D%/kernels.cpp
endif

# For what is compiled against the stand-in, and what is linked with it: before TEST_LIBS.
CUDA_STANDIN_CPPFLAGS = -I$(top_srcdir)/%D% $(AM_CPPFLAGS)
CUDA_STANDIN_LIBS = %D%/libcuda_standin.la

standin_tests = \
	%D%/test_standin \
	%D%/test_standin_graph \
	%D%/test_standin_memory \
	%D%/test_standin_order \
	%D%/test_standin_race \
	%D%/test_standin_work
check_PROGRAMS += $(standin_tests)
TESTS += $(standin_tests)

%C%_test_standin_SOURCES = %D%/test_standin.c %D%/standin_check.h
%C%_test_standin_LDADD = $(CUDA_STANDIN_LIBS) $(CHECK_LIBS)
%C%_test_standin_CFLAGS = $(TEST_CFLAGS)
%C%_test_standin_CPPFLAGS = $(CUDA_STANDIN_CPPFLAGS)

%C%_test_standin_graph_SOURCES = %D%/test_standin_graph.c %D%/standin_check.h
%C%_test_standin_graph_LDADD = $(CUDA_STANDIN_LIBS) $(CHECK_LIBS)
%C%_test_standin_graph_CFLAGS = $(TEST_CFLAGS)
%C%_test_standin_graph_CPPFLAGS = $(CUDA_STANDIN_CPPFLAGS)

%C%_test_standin_memory_SOURCES = %D%/test_standin_memory.c %D%/standin_check.h
%C%_test_standin_memory_LDADD = $(CUDA_STANDIN_LIBS) $(CHECK_LIBS)
%C%_test_standin_memory_CFLAGS = $(TEST_CFLAGS)
%C%_test_standin_memory_CPPFLAGS = $(CUDA_STANDIN_CPPFLAGS)

%C%_test_standin_order_SOURCES = %D%/test_standin_order.c %D%/standin_check.h
%C%_test_standin_order_LDADD = $(CUDA_STANDIN_LIBS) $(CHECK_LIBS)
%C%_test_standin_order_CFLAGS = $(TEST_CFLAGS)
%C%_test_standin_order_CPPFLAGS = $(CUDA_STANDIN_CPPFLAGS)

%C%_test_standin_race_SOURCES = %D%/test_standin_race.c %D%/standin_check.h
%C%_test_standin_race_LDADD = $(CUDA_STANDIN_LIBS) $(CHECK_LIBS)
%C%_test_standin_race_CFLAGS = $(TEST_CFLAGS)
%C%_test_standin_race_CPPFLAGS = $(CUDA_STANDIN_CPPFLAGS)

%C%_test_standin_work_SOURCES = %D%/test_standin_work.c %D%/standin_check.h
%C%_test_standin_work_LDADD = $(CUDA_STANDIN_LIBS) $(CHECK_LIBS)
%C%_test_standin_work_CFLAGS = $(TEST_CFLAGS)
%C%_test_standin_work_CPPFLAGS = $(CUDA_STANDIN_CPPFLAGS)
