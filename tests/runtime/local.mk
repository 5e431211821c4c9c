# SPDX-License-Identifier: MIT
# tests of runtime/.
check_PROGRAMS += %D%/test_commands
TESTS += %D%/test_commands
%C%_test_commands_SOURCES = %D%/test_commands.c %D%/fixture.h
%C%_test_commands_LDADD = $(TEST_LIBS)
%C%_test_commands_CFLAGS = $(TEST_CFLAGS)

check_PROGRAMS += %D%/test_steps
TESTS += %D%/test_steps
%C%_test_steps_SOURCES = %D%/test_steps.c %D%/fixture.h
%C%_test_steps_LDADD = $(TEST_LIBS)
%C%_test_steps_CFLAGS = $(TEST_CFLAGS)

bench_programs += %D%/bench_runtime
%C%_bench_runtime_SOURCES = %D%/bench_runtime.c %D%/fixture.h
%C%_bench_runtime_LDADD = $(TEST_LIBS)
%C%_bench_runtime_CFLAGS = $(TEST_CFLAGS)

bench_programs += %D%/bench_record
%C%_bench_record_SOURCES = %D%/bench_record.c %D%/fixture.h
%C%_bench_record_LDADD = $(TEST_LIBS)
%C%_bench_record_CFLAGS = $(TEST_CFLAGS)

bench-runtime: %D%/bench_runtime$(EXEEXT) %D%/bench_record$(EXEEXT)
	@./%D%/bench_runtime
	@./%D%/bench_record

check_PROGRAMS += %D%/test_status
TESTS += %D%/test_status
%C%_test_status_SOURCES = %D%/test_status.c
%C%_test_status_LDADD = $(TEST_LIBS)
%C%_test_status_CFLAGS = $(TEST_CFLAGS)

check_PROGRAMS += %D%/test_histogram
TESTS += %D%/test_histogram
%C%_test_histogram_SOURCES = %D%/test_histogram.c
%C%_test_histogram_LDADD = $(TEST_LIBS)
%C%_test_histogram_CFLAGS = $(TEST_CFLAGS)

check_PROGRAMS += %D%/test_wake
TESTS += %D%/test_wake
%C%_test_wake_SOURCES = %D%/test_wake.c
%C%_test_wake_LDADD = $(TEST_LIBS)
%C%_test_wake_CFLAGS = $(TEST_CFLAGS)

check_PROGRAMS += %D%/test_tickets
TESTS += %D%/test_tickets
%C%_test_tickets_SOURCES = %D%/test_tickets.c %D%/fixture.h
%C%_test_tickets_LDADD = $(TEST_LIBS)
%C%_test_tickets_CFLAGS = $(TEST_CFLAGS)

check_PROGRAMS += %D%/test_executor
TESTS += %D%/test_executor
%C%_test_executor_SOURCES = %D%/test_executor.c %D%/devices.h %D%/fixture.h
%C%_test_executor_LDADD = $(TEST_LIBS)
%C%_test_executor_CFLAGS = $(TEST_CFLAGS)

check_PROGRAMS += %D%/test_threads
TESTS += %D%/test_threads
%C%_test_threads_SOURCES = %D%/test_threads.c %D%/fixture.h
%C%_test_threads_LDADD = $(TEST_LIBS)
%C%_test_threads_CFLAGS = $(TEST_CFLAGS)

check_PROGRAMS += %D%/test_hooks
TESTS += %D%/test_hooks
%C%_test_hooks_SOURCES = %D%/test_hooks.c %D%/fixture.h
%C%_test_hooks_LDADD = $(TEST_LIBS)
%C%_test_hooks_CFLAGS = $(TEST_CFLAGS)

check_PROGRAMS += %D%/test_registry
TESTS += %D%/test_registry
%C%_test_registry_SOURCES = %D%/test_registry.c
%C%_test_registry_LDADD = $(TEST_LIBS)
%C%_test_registry_CFLAGS = $(TEST_CFLAGS)

check_PROGRAMS += %D%/test_lists
TESTS += %D%/test_lists
%C%_test_lists_SOURCES = %D%/test_lists.c
%C%_test_lists_LDADD = $(TEST_LIBS)
%C%_test_lists_CFLAGS = $(TEST_CFLAGS)

check_PROGRAMS += %D%/test_lengths
TESTS += %D%/test_lengths
%C%_test_lengths_SOURCES = %D%/test_lengths.c %D%/fixture.h
%C%_test_lengths_LDADD = $(TEST_LIBS)
%C%_test_lengths_CFLAGS = $(TEST_CFLAGS)

check_PROGRAMS += %D%/test_edges
TESTS += %D%/test_edges
%C%_test_edges_SOURCES = %D%/test_edges.c %D%/fixture.h
%C%_test_edges_LDADD = $(TEST_LIBS)
%C%_test_edges_CFLAGS = $(TEST_CFLAGS)

check_PROGRAMS += %D%/test_lanes
TESTS += %D%/test_lanes
%C%_test_lanes_SOURCES = %D%/test_lanes.c %D%/fixture.h
%C%_test_lanes_LDADD = $(TEST_LIBS)
%C%_test_lanes_CFLAGS = $(TEST_CFLAGS)

check_PROGRAMS += %D%/test_speculative
TESTS += %D%/test_speculative
%C%_test_speculative_SOURCES = %D%/test_speculative.c %D%/directed.h %D%/fixture.h
%C%_test_speculative_LDADD = $(TEST_LIBS)
%C%_test_speculative_CFLAGS = $(TEST_CFLAGS)

check_PROGRAMS += %D%/test_stacks
TESTS += %D%/test_stacks
%C%_test_stacks_SOURCES = %D%/test_stacks.c %D%/directed.h %D%/fixture.h
%C%_test_stacks_LDADD = $(TEST_LIBS)
%C%_test_stacks_CFLAGS = $(TEST_CFLAGS)

check_PROGRAMS += %D%/test_sharing
TESTS += %D%/test_sharing
%C%_test_sharing_SOURCES = %D%/test_sharing.c %D%/directed.h %D%/fixture.h
%C%_test_sharing_LDADD = $(TEST_LIBS)
%C%_test_sharing_CFLAGS = $(TEST_CFLAGS)

check_PROGRAMS += %D%/test_forks
TESTS += %D%/test_forks
%C%_test_forks_SOURCES = %D%/test_forks.c %D%/devices.h %D%/fixture.h
%C%_test_forks_LDADD = $(TEST_LIBS)
%C%_test_forks_CFLAGS = $(TEST_CFLAGS)

check_PROGRAMS += %D%/test_no_allocation
TESTS += %D%/test_no_allocation
%C%_test_no_allocation_SOURCES = %D%/test_no_allocation.c %D%/counting_malloc.h %D%/fixture.h
%C%_test_no_allocation_LDADD = $(TEST_LIBS)
%C%_test_no_allocation_CFLAGS = $(TEST_CFLAGS)

check_PROGRAMS += %D%/fault_runtime
TESTS += %D%/fault_runtime
%C%_fault_runtime_SOURCES = %D%/fault_runtime.c %D%/counting_malloc.h %D%/fixture.h
%C%_fault_runtime_LDADD = $(TEST_LIBS)
%C%_fault_runtime_CFLAGS = $(TEST_CFLAGS)

check_PROGRAMS += %D%/fault_steps
TESTS += %D%/fault_steps
%C%_fault_steps_SOURCES = %D%/fault_steps.c %D%/devices.h %D%/fixture.h
%C%_fault_steps_LDADD = $(TEST_LIBS)
%C%_fault_steps_CFLAGS = $(TEST_CFLAGS)

check_PROGRAMS += %D%/torture_runtime
TESTS += %D%/torture_runtime
%C%_torture_runtime_SOURCES = %D%/torture_runtime.c %D%/fixture.h
%C%_torture_runtime_LDADD = $(TEST_LIBS)
%C%_torture_runtime_CFLAGS = $(TEST_CFLAGS)

check_PROGRAMS += %D%/torture_readers
TESTS += %D%/torture_readers
%C%_torture_readers_SOURCES = %D%/torture_readers.c %D%/fixture.h
%C%_torture_readers_LDADD = $(TEST_LIBS)
%C%_torture_readers_CFLAGS = $(TEST_CFLAGS)

check_PROGRAMS += %D%/torture_abandon
TESTS += %D%/torture_abandon
%C%_torture_abandon_SOURCES = %D%/torture_abandon.c %D%/fixture.h
%C%_torture_abandon_LDADD = $(TEST_LIBS)
%C%_torture_abandon_CFLAGS = $(TEST_CFLAGS)

check_PROGRAMS += %D%/test_record
TESTS += %D%/test_record
%C%_test_record_SOURCES = %D%/test_record.c %D%/recorded.h %D%/directed.h %D%/fixture.h
%C%_test_record_LDADD = $(TEST_LIBS)
%C%_test_record_CFLAGS = $(TEST_CFLAGS)

check_PROGRAMS += %D%/test_record_rows
TESTS += %D%/test_record_rows
%C%_test_record_rows_SOURCES = %D%/test_record_rows.c %D%/recorded.h %D%/directed.h %D%/fixture.h
%C%_test_record_rows_LDADD = $(TEST_LIBS)
%C%_test_record_rows_CFLAGS = $(TEST_CFLAGS)

check_PROGRAMS += %D%/test_record_limits
TESTS += %D%/test_record_limits
%C%_test_record_limits_SOURCES = %D%/test_record_limits.c %D%/recorded.h \
	%D%/recorded_run.h %D%/directed.h %D%/fixture.h
%C%_test_record_limits_LDADD = $(TEST_LIBS)
%C%_test_record_limits_CFLAGS = $(TEST_CFLAGS)

check_PROGRAMS += %D%/test_record_files
TESTS += %D%/test_record_files
%C%_test_record_files_SOURCES = %D%/test_record_files.c %D%/recorded.h \
	%D%/recorded_run.h %D%/directed.h %D%/fixture.h
%C%_test_record_files_LDADD = $(TEST_LIBS)
%C%_test_record_files_CFLAGS = $(TEST_CFLAGS)

check_PROGRAMS += %D%/print_timeline
%C%_print_timeline_SOURCES = %D%/print_timeline.c %D%/fixture.h
%C%_print_timeline_LDADD = $(TEST_LIBS)
%C%_print_timeline_CFLAGS = $(TEST_CFLAGS)
TESTS += %D%/test_record_timeline.sh
EXTRA_DIST += %D%/test_record_timeline.sh %D%/check_timeline.py

check_PROGRAMS += %D%/random_recording
%C%_random_recording_SOURCES = %D%/random_recording.c %D%/fixture.h
%C%_random_recording_LDADD = $(TEST_LIBS)
%C%_random_recording_CFLAGS = $(TEST_CFLAGS)
TESTS += %D%/test_record_random.sh
EXTRA_DIST += %D%/test_record_random.sh

torture_runs += torture-record-random
torture-record-random: %D%/random_recording$(EXEEXT) quire$(EXEEXT)
	top_srcdir=$(top_srcdir) $(srcdir)/%D%/test_record_random.sh 1 300

check_PROGRAMS += %D%/torture_record
TESTS += %D%/torture_record
%C%_torture_record_SOURCES = %D%/torture_record.c %D%/fixture.h $(cmd_sources)
%C%_torture_record_LDADD = $(TEST_LIBS)
%C%_torture_record_CFLAGS = $(TEST_CFLAGS)

torture_runs += torture-record
torture-record: %D%/torture_record$(EXEEXT)
	./%D%/torture_record 100

model_sources = \
	%D%/model_image.c %D%/model_image.h \
	%D%/model_forks.c \
	%D%/model_lists.c %D%/model_lists.h \
	%D%/model_list_step.c \
	%D%/model_order.c %D%/model_order.h \
	%D%/model_plan.c \
	%D%/model_rules.c %D%/model_rules.h \
	%D%/model_step.c

check_PROGRAMS += %D%/print_model
%C%_print_model_SOURCES = %D%/print_model.c $(model_sources)
%C%_print_model_LDADD = $(TEST_LIBS)
%C%_print_model_CFLAGS = $(TEST_CFLAGS)
TESTS += %D%/test_model_specification.sh
EXTRA_DIST += %D%/test_model_specification.sh %D%/compare_model.py

check_PROGRAMS += %D%/test_model
TESTS += %D%/test_model
sim_sources = $(model_sources) \
	%D%/sim_caller.c %D%/sim_client.c %D%/sim_compare.c %D%/sim_cover.c \
	%D%/sim_device.c %D%/sim_device.h %D%/sim_modes.c %D%/sim_modes.h \
	%D%/sim_record.c $(cmd_sources) \
	%D%/sim_run.c %D%/sim_run.h %D%/sim_threads.c %D%/sim_trace.c %D%/sim_work.c
%C%_test_model_SOURCES = %D%/test_model.c $(sim_sources)
%C%_test_model_LDADD = $(TEST_LIBS)
%C%_test_model_CFLAGS = $(TEST_CFLAGS)

EXTRA_PROGRAMS += %D%/torture_model
%C%_torture_model_SOURCES = %D%/torture_model.c $(sim_sources)
%C%_torture_model_LDADD = $(TEST_LIBS)
%C%_torture_model_CFLAGS = $(TEST_CFLAGS)

check_PROGRAMS += %D%/test_same_digest
TESTS += %D%/test_same_digest
%C%_test_same_digest_SOURCES = %D%/test_same_digest.c $(model_sources)
%C%_test_same_digest_LDADD = $(TEST_LIBS)
%C%_test_same_digest_CFLAGS = $(TEST_CFLAGS)

check_PROGRAMS += %D%/test_engine
TESTS += %D%/test_engine
engine_sources = %D%/devices.h %D%/engine_dense.c %D%/engine_dense.h \
	%D%/engine_run.c %D%/engine_run.h %D%/engine_work.c
%C%_test_engine_SOURCES = %D%/test_engine.c $(engine_sources)
%C%_test_engine_LDADD = $(TEST_LIBS) -lm
%C%_test_engine_CFLAGS = $(TEST_CFLAGS)

check_PROGRAMS += %D%/test_pattern
TESTS += %D%/test_pattern
%C%_test_pattern_SOURCES = %D%/test_pattern.c runtime/cmd/pattern.c
%C%_test_pattern_LDADD = $(TEST_LIBS)
%C%_test_pattern_CFLAGS = $(TEST_CFLAGS)

check_PROGRAMS += %D%/test_streams
TESTS += %D%/test_streams
%C%_test_streams_SOURCES = %D%/test_streams.c runtime/cmd/streams.c
%C%_test_streams_LDADD = $(TEST_LIBS)
%C%_test_streams_CFLAGS = $(TEST_CFLAGS)

check_PROGRAMS += %D%/test_fates
TESTS += %D%/test_fates
%C%_test_fates_SOURCES = %D%/test_fates.c runtime/cmd/fates.c
%C%_test_fates_LDADD = $(TEST_LIBS)
%C%_test_fates_CFLAGS = $(TEST_CFLAGS)

check_PROGRAMS += %D%/test_content
TESTS += %D%/test_content
%C%_test_content_SOURCES = %D%/test_content.c runtime/cmd/content.c
%C%_test_content_LDADD = $(TEST_LIBS)
%C%_test_content_CFLAGS = $(TEST_CFLAGS)

check_PROGRAMS += %D%/test_fault
TESTS += %D%/test_fault
%C%_test_fault_SOURCES = %D%/test_fault.c runtime/cmd/fault.c runtime/cmd/progress.c
%C%_test_fault_LDADD = $(TEST_LIBS)
%C%_test_fault_CFLAGS = $(TEST_CFLAGS)

check_PROGRAMS += %D%/test_ring
TESTS += %D%/test_ring
%C%_test_ring_SOURCES = %D%/test_ring.c runtime/cmd/ring.c
%C%_test_ring_LDADD = $(TEST_LIBS)
%C%_test_ring_CFLAGS = $(TEST_CFLAGS)

check_PROGRAMS += %D%/test_tables
TESTS += %D%/test_tables
%C%_test_tables_SOURCES = %D%/test_tables.c runtime/cmd/divergence.c \
	runtime/cmd/fault.c runtime/cmd/image.c runtime/cmd/progress.c \
	runtime/cmd/report.c runtime/cmd/tables.c
%C%_test_tables_LDADD = $(TEST_LIBS)
%C%_test_tables_CFLAGS = $(TEST_CFLAGS)
shrink_sources = runtime/cmd/cmd_impl.h runtime/cmd/fault.c runtime/cmd/lines.c \
	runtime/cmd/lines_impl.h runtime/cmd/progress.c \
	runtime/cmd/shrink_cut.c runtime/cmd/shrink_fates.c runtime/cmd/shrink_impl.h \
	runtime/cmd/shrink_learn.c runtime/cmd/shrink_model.c \
	runtime/cmd/shrink_model_impl.h \
	runtime/cmd/shrink_reduce.c runtime/cmd/shrink_try.c runtime/cmd/shrink_write.c

check_PROGRAMS += %D%/test_shrink
TESTS += %D%/test_shrink
%C%_test_shrink_SOURCES = %D%/test_shrink.c %D%/valid_trace.c %D%/valid_trace.h \
	%D%/devices.h %D%/fixture.h $(shrink_sources)
%C%_test_shrink_LDADD = $(TEST_LIBS)
%C%_test_shrink_CFLAGS = $(TEST_CFLAGS)

# The stress command over a broken pool, over the pool as it is, and over pools that are
# built once more with small groups (tests/alloc/local.mk).
stress_sources = \
	runtime/cmd/cmd_impl.h runtime/cmd/fault.c runtime/cmd/options.c \
	runtime/cmd/progress.c runtime/cmd/report.c \
	runtime/cmd/stress.c runtime/cmd/stress_bad.c runtime/cmd/stress_end.c \
	runtime/cmd/stress_impl.h runtime/cmd/stress_report.c runtime/cmd/stress_run.c \
	runtime/cmd/stress_work.c

check_PROGRAMS += %D%/test_stress
TESTS += %D%/test_stress
%C%_test_stress_SOURCES = %D%/test_stress.c %D%/broken_pool.c %D%/broken_pool.h \
	$(stress_sources)
%C%_test_stress_LDADD = $(TEST_LIBS)
%C%_test_stress_CFLAGS = $(TEST_CFLAGS) -DCMD_STRESS_LOOKS=20

torture_stress = %D%/torture_stress
%C%_torture_stress_SOURCES = %D%/torture_stress.c $(stress_sources)
%C%_torture_stress_LDADD = $(TEST_LIBS)
%C%_torture_stress_CFLAGS = $(TEST_CFLAGS)

if HAVE_CAS128
torture_stress += %D%/torture_stress_small %D%/torture_stress_middle
%C%_torture_stress_small_SOURCES = %D%/torture_stress.c $(stress_sources) \
	$(pool_sources)
%C%_torture_stress_small_LDADD = $(TEST_LIBS)
%C%_torture_stress_small_CFLAGS = $(TEST_CFLAGS) $(groups_of_3)
%C%_torture_stress_middle_SOURCES = %D%/torture_stress.c $(stress_sources) \
	$(pool_sources)
%C%_torture_stress_middle_LDADD = $(TEST_LIBS)
%C%_torture_stress_middle_CFLAGS = $(TEST_CFLAGS) $(groups_of_10)
endif
check_PROGRAMS += $(torture_stress)
TESTS += $(torture_stress)

cmd_tests = \
	%D%/test_cmd.sh \
	%D%/test_cmd_check.sh \
	%D%/test_cmd_diff.sh \
	%D%/test_cmd_labels.sh \
	%D%/test_cmd_layouts.sh \
	%D%/test_cmd_packed.sh \
	%D%/test_cmd_parts.sh \
	%D%/test_cmd_record.sh \
	%D%/test_cuda_replay.sh \
	%D%/test_cmd_refusals.sh \
	%D%/test_cmd_shrink.sh \
	%D%/test_cmd_speculative.sh \
	%D%/test_cmd_stress.sh \
	%D%/test_cmd_traces.sh \
	%D%/test_cmd_verify.sh
TESTS += $(cmd_tests)
EXTRA_DIST += $(cmd_tests) %D%/cmd.sh

# Longer runs of what make check runs shortly.
torture_runs += torture-stress
torture-stress: $(torture_stress)
	for program in $(torture_stress); do ./$$program --seconds 3 || exit 1; done

torture_runs += torture-readers
torture-readers: %D%/torture_readers$(EXEEXT)
	./%D%/torture_readers 30

torture_runs += torture-runtime
torture-runtime: %D%/torture_runtime$(EXEEXT)
	./%D%/torture_runtime 30

torture_runs += torture-model
torture-model: %D%/torture_model$(EXEEXT)
	./%D%/torture_model --lists 20000 --commands 80 -j 2

bench_runs += bench-replay
bench-replay: quire$(EXEEXT)
	@top_srcdir='$(abs_top_srcdir)' top_builddir='$(abs_top_builddir)' \
		$(SHELL) $(srcdir)/%D%/bench_replay.sh
EXTRA_DIST += %D%/bench_replay.sh

TESTS += %D%/test_specification.sh
EXTRA_DIST += %D%/test_specification.sh %D%/specification.py

# A CUDA device, on the stand-in, that is not the current one of who polls.
%C%_test_current_device_SOURCES = %D%/test_current_device.c %D%/fixture.h
%C%_test_current_device_LDADD = $(CUDA_TEST_LIBS)
%C%_test_current_device_LDFLAGS = $(CUDA_TEST_DEVICE)
%C%_test_current_device_CPPFLAGS = $(CUDA_STANDIN_CPPFLAGS)
%C%_test_current_device_CFLAGS = $(TEST_CFLAGS)
if HAVE_CXX
check_PROGRAMS += %D%/test_current_device
TESTS += %D%/test_current_device
endif

# Suites that run on any device, on CUDA; a page that does not exist is found only where
# pages are looked at.
any_cuda_device = '-DTEST_DEVICES="cuda","cuda+checks","cuda:0"'
cuda_suites = \
	%D%/fault_cuda_steps \
	%D%/test_cuda_engine \
	%D%/test_cuda_executor \
	%D%/test_cuda_forks
if HAVE_CXX
check_PROGRAMS += $(cuda_suites)
TESTS += $(cuda_suites)
endif

%C%_fault_cuda_steps_SOURCES = %D%/fault_steps.c %D%/devices.h %D%/fixture.h
%C%_fault_cuda_steps_LDADD = $(CUDA_TEST_LIBS)
%C%_fault_cuda_steps_LDFLAGS = $(CUDA_TEST_DEVICE)
%C%_fault_cuda_steps_CPPFLAGS = \
	'-DTEST_DEVICES="cuda+checks","cuda:0+checks","cuda+checks"' $(AM_CPPFLAGS)
%C%_fault_cuda_steps_CFLAGS = $(TEST_CFLAGS)

%C%_test_cuda_engine_SOURCES = %D%/test_engine.c $(engine_sources)
%C%_test_cuda_engine_LDADD = $(CUDA_TEST_LIBS) -lm
%C%_test_cuda_engine_LDFLAGS = $(CUDA_TEST_DEVICE)
%C%_test_cuda_engine_CPPFLAGS = $(any_cuda_device) $(AM_CPPFLAGS)
%C%_test_cuda_engine_CFLAGS = $(TEST_CFLAGS)

%C%_test_cuda_executor_SOURCES = %D%/test_executor.c %D%/devices.h %D%/fixture.h
%C%_test_cuda_executor_LDADD = $(CUDA_TEST_LIBS)
%C%_test_cuda_executor_LDFLAGS = $(CUDA_TEST_DEVICE)
%C%_test_cuda_executor_CPPFLAGS = $(any_cuda_device) $(AM_CPPFLAGS)
%C%_test_cuda_executor_CFLAGS = $(TEST_CFLAGS)

%C%_test_cuda_forks_SOURCES = %D%/test_forks.c %D%/devices.h %D%/fixture.h
%C%_test_cuda_forks_LDADD = $(CUDA_TEST_LIBS)
%C%_test_cuda_forks_LDFLAGS = $(CUDA_TEST_DEVICE)
%C%_test_cuda_forks_CPPFLAGS = -DLISTS=4 $(any_cuda_device) $(AM_CPPFLAGS)
%C%_test_cuda_forks_CFLAGS = $(TEST_CFLAGS)

# The quire command whose CUDA device runs on the stand-in.
%C%_quire_cuda_SOURCES = $(quire_SOURCES)
%C%_quire_cuda_CPPFLAGS = $(AM_CPPFLAGS)
%C%_quire_cuda_LDADD = $(CUDA_TEST_LIBS) $(JANSSON_LIBS)
%C%_quire_cuda_LDFLAGS = $(CUDA_TEST_DEVICE)
if HAVE_CXX
check_PROGRAMS += %D%/quire_cuda
endif
