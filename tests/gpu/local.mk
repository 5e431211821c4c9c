# SPDX-License-Identifier: MIT
# What tests/gpu/run.sh runs on a machine with a GPU: `make gpu-programs` builds it anywhere
# where there is a toolkit.
EXTRA_DIST += %D%/run.sh
EXTRA_PROGRAMS += %D%/bench_gpu %D%/gpu_cache %D%/gpu_cache_refused

%C%_bench_gpu_SOURCES = %D%/bench_gpu.c
%C%_bench_gpu_LDADD = $(TEST_LIBS)

gpu_devices = -DCACHE_DEVICES='"cuda", "cuda+checks"'
%C%_gpu_cache_SOURCES = tests/kernels/test_cache.c $(kernels_cache_headers)
%C%_gpu_cache_CPPFLAGS = $(AM_CPPFLAGS) $(gpu_devices)
%C%_gpu_cache_CFLAGS = $(TEST_CFLAGS)
%C%_gpu_cache_LDADD = $(TEST_LIBS) -lm

%C%_gpu_cache_refused_SOURCES = tests/kernels/test_cache_refused.c $(kernels_cache_headers)
%C%_gpu_cache_refused_CPPFLAGS = $(AM_CPPFLAGS) $(gpu_devices)
%C%_gpu_cache_refused_CFLAGS = $(TEST_CFLAGS)
%C%_gpu_cache_refused_LDADD = $(TEST_LIBS) -lm

gpu-programs: quire$(EXEEXT) %D%/bench_gpu$(EXEEXT) %D%/gpu_cache$(EXEEXT) \
	%D%/gpu_cache_refused$(EXEEXT)
