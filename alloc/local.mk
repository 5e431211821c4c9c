# SPDX-License-Identifier: MIT
nobase_quireinclude_HEADERS += %D%/ledger.h %D%/pool.h

libquire_core_la_SOURCES += \
	%D%/fifo_impl.h \
	%D%/ledger.c \
	%D%/ledger_impl.h \
	%D%/lock_fifo.c \
	%D%/lock_fifo_impl.h \
	%D%/pool.c \
	%D%/pool_impl.h
if HAVE_CAS128
libquire_core_la_SOURCES += %D%/fifo.c %D%/fifo_check.c
endif
