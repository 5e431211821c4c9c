# SPDX-License-Identifier: MIT
nobase_quireinclude_HEADERS += %D%/cache.h %D%/device.h %D%/dtype.h %D%/layout.h

libquire_core_la_SOURCES += \
	%D%/cache.c \
	%D%/device.c \
	%D%/device_cpu.c \
	%D%/device_cpu_impl.h \
	%D%/device_impl.h \
	%D%/dstream_cpu.c \
	%D%/dtype.c \
	%D%/dtype_impl.h \
	%D%/event_cpu.c \
	%D%/layout.c \
	%D%/move_cpu.c \
	%D%/move_cuda_impl.h \
	%D%/move_impl.h \
	%D%/pages_cpu.c

# The kernels alone; a test compiles them as C++ where there is no CUDA.
if HAVE_CUDA
libquire_core_la_SOURCES += %D%/move.cu
endif
