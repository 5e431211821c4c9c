# SPDX-License-Identifier: MIT
nobase_quireinclude_HEADERS += %D%/cache.h %D%/device.h %D%/dlpack.h %D%/dtype.h \
	%D%/layout.h

libquire_core_la_SOURCES += \
	%D%/cache.c \
	%D%/cache_config.c \
	%D%/cache_impl.h \
	%D%/cache_view.c \
	%D%/convert_avx2.c \
	%D%/convert_avx512.c \
	%D%/convert_cpu.c \
	%D%/convert_impl.h \
	%D%/device.c \
	%D%/device_cpu.c \
	%D%/device_cpu_impl.h \
	%D%/device_impl.h \
	%D%/dstream_cpu.c \
	%D%/dtype.c \
	%D%/dtype_impl.h \
	%D%/event_cpu.c \
	%D%/grid_cuda_impl.h \
	%D%/layout.c \
	%D%/move_cpu.c \
	%D%/move_cuda_impl.h \
	%D%/move_impl.h \
	%D%/pages_cpu.c

# The CUDA device.  Tests build it on a stand-in for CUDA too.
cuda_sources = \
	%D%/device_cuda.c \
	%D%/device_cuda_impl.h \
	%D%/dstream_cuda.c \
	%D%/event_cuda.c \
	%D%/move_cuda.c \
	%D%/notice_cuda.c \
	%D%/track_cuda.c
cuda_kernels = %D%/move.cu %D%/pages.cu
AM_CPPFLAGS += $(CUDA_CPPFLAGS)
if HAVE_CUDA
libquire_core_la_SOURCES += $(cuda_sources) $(cuda_kernels)
else
libquire_core_la_SOURCES += %D%/device_cuda_none.c
endif
