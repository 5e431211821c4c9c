# SPDX-License-Identifier: MIT
check_PROGRAMS += \
	%D%/test_ledger \
	%D%/test_pool
TESTS += \
	%D%/test_ledger \
	%D%/test_pool
EXTRA_DIST += \
	%D%/model_pool.pml \
	%D%/model_pool.sh

# The FIFO's model: small pools in check, larger ones here.
if HAVE_CAS128
TESTS += %D%/model_pool.sh
endif
model:
	CC='$(CC)' $(SHELL) $(top_srcdir)/%D%/model_pool.sh full

%C%_test_ledger_SOURCES = %D%/test_ledger.c %D%/random.h
%C%_test_ledger_LDADD = $(TEST_LIBS)
%C%_test_ledger_CFLAGS = $(TEST_CFLAGS)

%C%_test_pool_SOURCES = %D%/test_pool.c %D%/fifo_model.h %D%/pool_ways.h \
	%D%/random.h
%C%_test_pool_LDADD = $(TEST_LIBS)
%C%_test_pool_CFLAGS = $(TEST_CFLAGS)

# The pool once more, for programs that build it in a way of their own: with points where
# a thread can be stopped, and with small groups, so that few pages make many.
pool_sources = alloc/lock_fifo.c alloc/pool.c
if HAVE_CAS128
pool_sources += alloc/fifo.c alloc/fifo_check.c
endif
with_points = -DQUIRE_POOL_POINTS
groups_of_3 = -DFIFO_LEAVES=1 -DFIFO_BRANCHES=1
groups_of_10 = -DFIFO_LEAVES=2 -DFIFO_BRANCHES=3

pool_programs = \
	%D%/test_fifo \
	%D%/test_pool_memory \
	%D%/test_pool_together \
	%D%/test_pool_wait
check_PROGRAMS += $(pool_programs)
TESTS += $(pool_programs)
%C%_test_fifo_SOURCES = %D%/test_fifo.c %D%/fifo_model.h %D%/random.h
%C%_test_fifo_LDADD = $(TEST_LIBS)
%C%_test_fifo_CFLAGS = $(TEST_CFLAGS)

%C%_test_pool_memory_SOURCES = %D%/test_pool_memory.c %D%/fifo_model.h \
	%D%/pool_ways.h %D%/random.h tests/runtime/counting_malloc.h
%C%_test_pool_memory_LDADD = $(TEST_LIBS)
%C%_test_pool_memory_CFLAGS = $(TEST_CFLAGS)

%C%_test_pool_together_SOURCES = %D%/test_pool_together.c %D%/fifo_model.h \
	%D%/pool_ways.h %D%/random.h
%C%_test_pool_together_LDADD = $(TEST_LIBS)
%C%_test_pool_together_CFLAGS = $(TEST_CFLAGS)

%C%_test_pool_wait_SOURCES = %D%/test_pool_wait.c %D%/caller.h %D%/fifo_model.h \
	%D%/random.h $(pool_sources)
%C%_test_pool_wait_LDADD = $(TEST_LIBS)
%C%_test_pool_wait_CFLAGS = $(TEST_CFLAGS) $(with_points)

if HAVE_CAS128
groups_programs = \
	%D%/test_fifo_small \
	%D%/test_pool_frozen \
	%D%/test_pool_frozen_small \
	%D%/test_pool_late \
	%D%/test_pool_late_small \
	%D%/test_pool_middle \
	%D%/test_pool_small \
	%D%/test_pool_weak \
	%D%/test_pool_weak_small
check_PROGRAMS += $(groups_programs)
TESTS += $(groups_programs)
endif
%C%_test_fifo_small_SOURCES = $(%C%_test_fifo_SOURCES) $(pool_sources)
%C%_test_fifo_small_LDADD = $(TEST_LIBS)
%C%_test_fifo_small_CFLAGS = $(TEST_CFLAGS) $(groups_of_3)

%C%_test_pool_small_SOURCES = $(%C%_test_pool_SOURCES) $(pool_sources)
%C%_test_pool_small_LDADD = $(TEST_LIBS)
%C%_test_pool_small_CFLAGS = $(TEST_CFLAGS) $(groups_of_3)

%C%_test_pool_middle_SOURCES = $(%C%_test_pool_SOURCES) $(pool_sources)
%C%_test_pool_middle_LDADD = $(TEST_LIBS)
%C%_test_pool_middle_CFLAGS = $(TEST_CFLAGS) $(groups_of_10)

%C%_test_pool_weak_SOURCES = %D%/test_pool_weak.c %D%/random.h %D%/weak_memory.c \
	%D%/weak_memory.h alloc/fifo_check.c
%C%_test_pool_weak_LDADD = $(TEST_LIBS)
%C%_test_pool_weak_CFLAGS = $(TEST_CFLAGS)

%C%_test_pool_weak_small_SOURCES = $(%C%_test_pool_weak_SOURCES)
%C%_test_pool_weak_small_LDADD = $(TEST_LIBS)
%C%_test_pool_weak_small_CFLAGS = $(TEST_CFLAGS) $(groups_of_3)

%C%_test_pool_frozen_SOURCES = %D%/test_pool_frozen.c %D%/caller.h %D%/fifo_model.h \
	%D%/frozen.h %D%/random.h $(pool_sources)
%C%_test_pool_frozen_LDADD = $(TEST_LIBS)
%C%_test_pool_frozen_CFLAGS = $(TEST_CFLAGS) $(with_points)

%C%_test_pool_frozen_small_SOURCES = $(%C%_test_pool_frozen_SOURCES)
%C%_test_pool_frozen_small_LDADD = $(TEST_LIBS)
%C%_test_pool_frozen_small_CFLAGS = $(TEST_CFLAGS) $(with_points) $(groups_of_3)

%C%_test_pool_late_SOURCES = %D%/test_pool_late.c %D%/caller.h %D%/fifo_model.h \
	%D%/frozen.h %D%/random.h $(pool_sources)
%C%_test_pool_late_LDADD = $(TEST_LIBS)
%C%_test_pool_late_CFLAGS = $(TEST_CFLAGS) $(with_points)

%C%_test_pool_late_small_SOURCES = $(%C%_test_pool_late_SOURCES)
%C%_test_pool_late_small_LDADD = $(TEST_LIBS)
%C%_test_pool_late_small_CFLAGS = $(TEST_CFLAGS) $(with_points) $(groups_of_3)

# Every history of a few threads has a sequential order, whatever the size of groups.
groups_of_7 = -DFIFO_LEAVES=2 -DFIFO_BRANCHES=2
linear_programs = %D%/test_pool_linear
if HAVE_CAS128
linear_programs += \
	%D%/test_pool_linear_middle \
	%D%/test_pool_linear_small
endif
check_PROGRAMS += %D%/test_linear_history $(linear_programs)
TESTS += %D%/test_linear_history $(linear_programs)
%C%_test_linear_history_SOURCES = \
	%D%/linear_history.c \
	%D%/linear_history.h \
	%D%/test_linear_history.c
%C%_test_linear_history_LDADD = $(TEST_LIBS)
%C%_test_linear_history_CFLAGS = $(TEST_CFLAGS)

%C%_test_pool_linear_SOURCES = \
	%D%/linear_history.c \
	%D%/linear_history.h \
	%D%/linear_rings.c \
	%D%/linear_rings.h \
	%D%/linear_trial.c \
	%D%/linear_trial.h \
	%D%/random.h \
	%D%/test_pool_linear.c \
	$(pool_sources)
%C%_test_pool_linear_LDADD = $(TEST_LIBS)
%C%_test_pool_linear_CFLAGS = $(TEST_CFLAGS) $(with_points)

%C%_test_pool_linear_middle_SOURCES = $(%C%_test_pool_linear_SOURCES)
%C%_test_pool_linear_middle_LDADD = $(TEST_LIBS)
%C%_test_pool_linear_middle_CFLAGS = $(TEST_CFLAGS) $(with_points) $(groups_of_7)

%C%_test_pool_linear_small_SOURCES = $(%C%_test_pool_linear_SOURCES)
%C%_test_pool_linear_small_LDADD = $(TEST_LIBS)
%C%_test_pool_linear_small_CFLAGS = $(TEST_CFLAGS) $(with_points) $(groups_of_3)

# Longer runs of what make check runs shortly.
torture_runs += torture-linear
torture-linear: $(linear_programs:=$(EXEEXT))
	@for program in $(linear_programs); do \
		./$$program --histories 200000 || exit 1; \
	done

# The pool beside its rivals: bench-alloc as a whole, the short one for bench.
EXTRA_PROGRAMS += %D%/bench_pool
%C%_bench_pool_SOURCES = \
	%D%/bench_pool.c \
	%D%/random.h \
	%D%/rivals/cases.h \
	%D%/rivals/ck_ring.c \
	%D%/rivals/measure.c \
	%D%/rivals/measure.h \
	%D%/rivals/mutex_ring.c \
	%D%/rivals/one_thread.c \
	%D%/rivals/pool.c \
	%D%/rivals/python.c \
	%D%/rivals/rival.h \
	%D%/rivals/rivals.c \
	%D%/rivals/threads.c \
	%D%/rivals/wfcqueue.c
%C%_bench_pool_LDADD = $(TEST_LIBS)
%C%_bench_pool_CFLAGS = $(TEST_CFLAGS) -DRIVALS_DIR='"$(abs_top_srcdir)/%D%/rivals"'
EXTRA_DIST += %D%/rivals/documented_fifo.py

# DPDK's flags are for the one file that needs them.
if HAVE_DPDK
EXTRA_LTLIBRARIES = %D%/rivals/librte_rivals.la
%C%_rivals_librte_rivals_la_SOURCES = %D%/rivals/rival.h %D%/rivals/rte_ring.c
%C%_rivals_librte_rivals_la_CFLAGS = $(TEST_CFLAGS) $(DPDK_CFLAGS)
%C%_bench_pool_LDADD += %D%/rivals/librte_rivals.la $(DPDK_LIBS)
CLEANFILES += %D%/rivals/librte_rivals.la
endif

bench-alloc: %D%/bench_pool$(EXEEXT)
	./%D%/bench_pool

bench_runs += bench-alloc-quick
bench-alloc-quick: %D%/bench_pool$(EXEEXT)
	@./%D%/bench_pool --quick
