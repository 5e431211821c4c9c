# SPDX-License-Identifier: MIT
nobase_quireinclude_HEADERS += %D%/ledger.h %D%/pool.h

libquire_core_la_SOURCES += \
	%D%/ledger.c \
	%D%/ledger_impl.h \
	%D%/pool.c \
	%D%/pool_check.c \
	%D%/pool_impl.h
