# SPDX-License-Identifier: MIT
# runtime/cmd: the quire command.
bin_PROGRAMS += quire
quire_SOURCES = %D%/main.c $(cmd_sources)
# All but its main, for tests that call a command as a function.
cmd_sources = \
	%D%/batch.c \
	%D%/batch_impl.h \
	%D%/check.c \
	%D%/check_impl.h \
	%D%/cmd_impl.h \
	%D%/compare.c \
	%D%/content.c \
	%D%/content_impl.h \
	%D%/diff.c \
	%D%/diff_align.c \
	%D%/diff_impl.h \
	%D%/diff_key.c \
	%D%/diff_report.c \
	%D%/diff_side.c \
	%D%/diff_tell.c \
	%D%/divergence.c \
	%D%/divergence_impl.h \
	%D%/explain.c \
	%D%/fates.c \
	%D%/fates_impl.h \
	%D%/fault.c \
	%D%/image.c \
	%D%/image_impl.h \
	%D%/import.c \
	%D%/info.c \
	%D%/input.c \
	%D%/jobs.c \
	%D%/lines.c \
	%D%/lines_impl.h \
	%D%/marks.c \
	%D%/marks_impl.h \
	%D%/options.c \
	%D%/pace.c \
	%D%/pass.c \
	%D%/pattern.c \
	%D%/pattern_impl.h \
	%D%/progress.c \
	%D%/replay.c \
	%D%/replay_impl.h \
	%D%/report.c \
	%D%/reread.c \
	%D%/result.c \
	%D%/result_impl.h \
	%D%/rig.c \
	%D%/rig_impl.h \
	%D%/ring.c \
	%D%/ring_impl.h \
	%D%/run.c \
	%D%/settle.c \
	%D%/shrink.c \
	%D%/shrink_cut.c \
	%D%/shrink_fates.c \
	%D%/shrink_impl.h \
	%D%/shrink_learn.c \
	%D%/shrink_model.c \
	%D%/shrink_model_impl.h \
	%D%/shrink_reduce.c \
	%D%/shrink_run.c \
	%D%/shrink_try.c \
	%D%/shrink_write.c \
	%D%/speculate.c \
	%D%/streams.c \
	%D%/streams_impl.h \
	%D%/stress.c \
	%D%/stress_bad.c \
	%D%/stress_end.c \
	%D%/stress_impl.h \
	%D%/stress_report.c \
	%D%/stress_run.c \
	%D%/stress_work.c \
	%D%/summary.c \
	%D%/tables.c \
	%D%/tables_impl.h \
	%D%/verify.c \
	%D%/walk.c
quire_LDADD = libquire_core.la $(JANSSON_LIBS)
dist_man1_MANS = docs/quire.1

# The sample that the README replays, with its outcomes.
EXTRA_DIST += plans/sample.plan
