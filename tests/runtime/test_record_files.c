/* SPDX-License-Identifier: MIT */
/* The files of a recording: those that cannot be made, or written any further, and whose
 * they are. */
#include "config.h"

#include "recorded_run.h"
#include "tests/run_suite.h"

#include <quire/plans/trace.h>
#include <quire/runtime/sanitize.h>

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Whole lines of a file are a trace; returns how many.  The rest begins one more. */
static int read_lines(const char *path)
{
	struct quire_trace_reader *reader;
	struct quire_trace_record record;
	struct quire_refusal refusal;
	enum quire_status status;
	int lines = 0;

	ck_assert_int_eq(quire_trace_open(path, &reader, &refusal), QUIRE_OK);
	while ((status = quire_trace_next(reader, &record, &refusal)) == QUIRE_OK)
		lines++;
	ck_assert_msg(status == QUIRE_END || refusal.line == lines + 2, "%s",
	              refusal.what);
	quire_trace_close(reader);
	return lines;
}

/* ------------------------------------------------------------------ failing writes */

START_TEST(the_n_th_write_fails)
{
	for (int n = 1; n < 12; n++) {
		struct quire_record_config config = recorded_config();
		int64_t deadline = now_ns() + PATIENCE_NS;
		const char *cut;

		memset(recorded.bytes, 0, recorded.n);
		recorded.n = 0;
		recorded.calls = recorded.reports = 0;
		recorded.fails_at = n;
		start(&config);
		while (recorded_status(&f).active && now_ns() < deadline) {
			run_steps(10); /* each look is a write */
			nap();
		}
		ck_assert_int_eq(await_end().refusal.status, QUIRE_IO);
		run_steps(10);
		ck_assert_int_eq(quire_runtime_record_end(f.runtime, NULL), QUIRE_IO);
		fixture_end(&f);
		ck_assert_int_eq(recorded.reports, 1);
		ck_assert_int_eq(recorded.report.status, QUIRE_IO);
		ck_assert_str_ne(recorded.text, "");
		cut = strrchr(recorded.bytes, '\n');
		ck_assert(n == 1 ? recorded.n == 0 : cut != NULL);
	}
}
END_TEST

/* In the midst of a look, by a write that fails or a label that is no text. */
START_TEST(the_timeline_of_a_trace_that_ends_says_nothing_twice)
{
	char timeline[] = "/tmp/quire-timeline-XXXXXX";
	struct quire_record_config config = recorded_config();

	close(mkstemp(timeline));
	config.timeline = timeline;
	recorded.fails_at = _i == 0 ? 2 : 0;
	recorded_shut(_i == 0);
	start(&config);
	if (_i == 0) {
		recorded_await_write();
		run_steps(4000); /* more lines than a writer gathers */
		recorded_shut(false);
	} else {
		run_steps(4);
		ck_assert_int_eq(extend_now(&f, 1, "gr\xfcn", 4, 0).refusal.status,
		                 QUIRE_OK);
	}
	ck_assert_int_eq(await_end().refusal.status, _i == 0 ? QUIRE_IO : QUIRE_FORMAT);
	fixture_end(&f);
	ck_assert_int_ge(count_plans(timeline), _i == 0 ? 1000 : 5);
	unlink(timeline);
}
END_TEST

/* A file that cannot be written any further: its path and the cause are told. */
static void check_full(const char *path, const char *cause)
{
	const struct quire_record_status status = await_end();

	ck_assert_int_eq(status.refusal.status, QUIRE_IO);
	ck_assert_ptr_nonnull(strstr(status.refusal.what, path));
	ck_assert_ptr_nonnull(strstr(status.refusal.what, cause));
	run_steps(50);
	ck_assert_int_eq(quire_runtime_record_end(f.runtime, NULL), QUIRE_IO);
	fixture_end(&f);
	ck_assert_int_eq(recorded.reports, 1);
	ck_assert_ptr_nonnull(strstr(recorded.text, cause));
}

/* The trace, or the timeline beside one that is well. */
START_TEST(a_file_that_is_too_large_ends_the_recording_with_whole_lines)
{
	struct rlimit small = {.rlim_cur = 20000}, before;
	int64_t deadline = now_ns() + PATIENCE_NS;
	char path[] = "/tmp/quire-small-XXXXXX";
	struct quire_record_config config = recorded_config();
	struct stat about;

	close(mkstemp(path));
	signal(SIGXFSZ, SIG_IGN);
	if (_i == 0) {
		config.write = NULL;
		config.path = path;
	} else {
		config.timeline = path;
	}
	start(&config);
	must(getrlimit(RLIMIT_FSIZE, &before) == 0);
	small.rlim_max = before.rlim_max;
	must(setrlimit(RLIMIT_FSIZE, &small) == 0);
	while (recorded_status(&f).active && now_ns() < deadline)
		must(give_steps(10));
	must(setrlimit(RLIMIT_FSIZE, &before) == 0);
	check_full(path, strerror(EFBIG));
	must(stat(path, &about) == 0);
	ck_assert_int_eq(about.st_size, 20000);
	if (_i == 0)
		ck_assert_int_gt(read_lines(path), 50);
	unlink(path);
}
END_TEST

START_TEST(a_full_device_is_found_at_the_beginning)
{
	struct quire_record_config config = recorded_config();
	struct quire_refusal refusal;

	recorded_begin(&f, 64, 4);
	fixture_create(&f);
	config.write = NULL;
	config.path = "/dev/full";
	ck_assert_int_eq(quire_runtime_record_to(f.runtime, &config, &refusal), QUIRE_IO);
	ck_assert_ptr_nonnull(strstr(refusal.what, "/dev/full"));
	ck_assert_ptr_nonnull(strstr(refusal.what, strerror(ENOSPC)));
	config = recorded_config();
	config.timeline = "/dev/full";
	ck_assert_int_eq(quire_runtime_record_to(f.runtime, &config, &refusal), QUIRE_IO);
	ck_assert_ptr_nonnull(strstr(refusal.what, "/dev/full"));
	ck_assert_ptr_nonnull(strstr(refusal.what, strerror(ENOSPC)));
	fixture_end(&f);
}
END_TEST

START_TEST(a_pipe_that_nobody_reads_is_no_end_of_the_process)
{
	struct quire_record_config config = recorded_config();
	struct quire_refusal refusal;
	struct sigaction action;
	char name[32];
	sigset_t pending;
	int ends[2];

	must(pipe(ends) == 0);
	close(ends[0]);
	snprintf(name, sizeof(name), "/dev/fd/%d", ends[1]);
	signal(SIGPIPE, SIG_DFL);
	if (_i == 0) {
		config.write = NULL;
		config.path = name;
	} else {
		config.timeline = name;
	}
	recorded_begin(&f, 64, 4);
	fixture_create(&f);
	ck_assert_int_eq(quire_runtime_record_to(f.runtime, &config, &refusal), QUIRE_IO);
	ck_assert_ptr_nonnull(strstr(refusal.what, strerror(EPIPE)));
	must(sigpending(&pending) == 0 && sigaction(SIGPIPE, NULL, &action) == 0);
	ck_assert(!sigismember(&pending, SIGPIPE) && action.sa_handler == SIG_DFL);
	fixture_end(&f);
	close(ends[1]);
}
END_TEST

/* A process that is killed before its first command leaves the beginning of one. */
START_TEST(a_timeline_is_one_before_anything_happens)
{
	char timeline[] = "/tmp/quire-timeline-XXXXXX", text[4096] = "";
	struct quire_record_config config = recorded_config();
	FILE *file;

	close(mkstemp(timeline));
	config.timeline = timeline;
	recorded_begin(&f, 64, 4);
	recorded_create(&f, &config);
	file = fopen(timeline, "r");
	ck_assert_ptr_nonnull(file);
	ck_assert_int_gt(fread(text, 1, sizeof(text) - 1, file), 0);
	fclose(file);
	ck_assert_int_eq(strncmp(text, "[{", 2), 0);
	ck_assert_str_eq(text + strlen(text) - 3, "\"}}");
	fixture_end(&f);
	unlink(timeline);
}
END_TEST

/* Whether or not the trace lists them. */
START_TEST(a_timeline_says_how_many_pages_a_step_took)
{
	char timeline[] = "/tmp/quire-timeline-XXXXXX", text[1 << 14] = "";
	struct quire_record_config config = recorded_config();
	FILE *file;

	close(mkstemp(timeline));
	config.timeline = timeline;
	config.pages = _i == 1;
	start(&config);
	/* 9 tokens in pages of 4. */
	ck_assert_int_eq(extend_now(&f, 1, NULL, 9, 0).refusal.status, QUIRE_OK);
	fixture_end(&f);
	file = fopen(timeline, "r");
	ck_assert_ptr_nonnull(file);
	ck_assert_int_gt(fread(text, 1, sizeof(text) - 1, file), 0);
	fclose(file);
	ck_assert_ptr_nonnull(strstr(text,
	                             "\"name\":\"plan 2\",\"args\":{\"status\":\"OK\","
	                             "\"rows\":1,\"pages\":3}}"));
	unlink(timeline);
}
END_TEST

/* ------------------------------------------------------------------ other processes */

#ifndef QUIRE_TSAN /* a process of several threads does not fork under it */
/* What is a timeline's is written by the process that records, and once. */
START_TEST(a_forked_process_leaves_the_files_alone)
{
	char path[] = "/tmp/quire-forked-XXXXXX", timeline[] = "/tmp/quire-forked-XXXXXX";
	struct quire_record_config config = recorded_config();
	char text[1 << 15] = "", *header;
	FILE *file;
	pid_t child;

	close(mkstemp(path));
	close(mkstemp(timeline));
	config.write = NULL;
	config.path = path;
	config.timeline = timeline;
	config.flush_ns = 10000000000;
	start(&config);
	run_steps(5);
	fflush(stdout);
	child = fork();
	if (child == 0)
		exit(0);
	ck_assert(child > 0 && waitpid(child, NULL, 0) == child);
	run_steps(5);
	ck_assert_int_eq(quire_runtime_record_end(f.runtime, NULL), QUIRE_OK);
	fixture_end(&f);
	ck_assert_int_eq(read_lines(path), 1 + 2 * (5 + 1));
	file = fopen(timeline, "r");
	ck_assert_ptr_nonnull(file);
	ck_assert_int_gt(fread(text, 1, sizeof(text) - 1, file), 0);
	fclose(file);
	header = strstr(text, "process_name");
	ck_assert_ptr_nonnull(header);
	ck_assert_ptr_null(strstr(header + 1, "process_name"));
	ck_assert_str_eq(text + strlen(text) - 3, "\n]\n");
	unlink(path);
	unlink(timeline);
}
END_TEST
#endif

/* ------------------------------------------------------------------ refused */

static void check_refused(struct quire_record_config config, enum quire_status status,
                          const char *what)
{
	struct quire_refusal refusal = {.what = ""};

	ck_assert_int_eq(quire_runtime_record_to(f.runtime, &config, &refusal), status);
	ck_assert_int_eq(refusal.status, status);
	ck_assert_msg(strstr(refusal.what, what) != NULL, "\"%s\" is not about \"%s\"",
	              refusal.what, what);
	ck_assert_int_eq(quire_runtime_record_to(f.runtime, &config, NULL), status);
}

START_TEST(a_wrong_config_is_refused_by_its_field)
{
	static char source[257];
	struct quire_record_config good = recorded_config(), bad;
	struct quire_record_status status;

	recorded_begin(&f, 64, 4);
	fixture_create(&f);
	ck_assert_int_eq(quire_runtime_record_status(f.runtime, &status), QUIRE_INVALID);
	ck_assert_int_eq(quire_runtime_record_end(f.runtime, NULL), QUIRE_INVALID);
	bad = good, bad.config_bytes--;
	check_refused(bad, QUIRE_INVALID, "config_bytes");
	bad = good, bad.path = "/tmp/never";
	check_refused(bad, QUIRE_INVALID, "path, write");
	bad = good, bad.write = NULL;
	check_refused(bad, QUIRE_INVALID, "path, write, timeline");
	(void)unlink("/tmp/quire-never");
	bad = good, bad.write = NULL, bad.path = bad.timeline = "/tmp/quire-never";
	check_refused(bad, QUIRE_INVALID, "path, timeline");
	bad.timeline = "/tmp/./quire-never";
	check_refused(bad, QUIRE_INVALID, "path, timeline");
	ck_assert_int_ne(access("/tmp/quire-never", F_OK), 0);
	bad = good, bad.source = NULL;
	check_refused(bad, QUIRE_INVALID, "source");
	memset(source, 'x', sizeof(source) - 1);
	bad = good, bad.source = source;
	check_refused(bad, QUIRE_INVALID, "source");
	bad = good, bad.buffer_bytes = 0;
	check_refused(bad, QUIRE_INVALID, "buffer_bytes");
	bad = good, bad.buffer_bytes = (INT64_C(1) << 40) + 1;
	check_refused(bad, QUIRE_INVALID, "buffer_bytes");
	bad = good, bad.flush_ns = 999999;
	check_refused(bad, QUIRE_INVALID, "flush_ns");
	bad = good, bad.flush_ns = 10000000001;
	check_refused(bad, QUIRE_INVALID, "flush_ns");
	bad = good, bad.write = NULL, bad.path = "/nowhere/at/all";
	check_refused(bad, QUIRE_IO, "/nowhere/at/all");
	bad.path = "/tmp";
	check_refused(bad, QUIRE_IO, "/tmp");
	bad = good, bad.timeline = "/nowhere/at/all";
	check_refused(bad, QUIRE_IO, "/nowhere/at/all");
	source[255] = '\0';
	good.source = source; /* as long as it may be */
	ck_assert_int_eq(quire_runtime_record_to(f.runtime, &good, NULL), QUIRE_OK);
	fixture_end(&f);
	ck_assert_ptr_nonnull(strstr(recorded_line(0), source));
}
END_TEST

/* A clock that gives the runtime a command when it is first looked at. */
static int64_t intrude(void *argument)
{
	const struct quire_command open = {.kind = QUIRE_COMMAND_OPEN, .request = 7};
	bool *is_armed = argument;

	if (*is_armed) {
		*is_armed = false;
		must(quire_runtime_try_command(f.runtime, &open, NULL, NULL) == QUIRE_OK);
	}
	return now_ns();
}

/* Threads that are made from now on have a stack that no memory has room for. */
static void make_threads_impossible(void)
{
	pthread_attr_t attributes;

	must(pthread_attr_init(&attributes) == 0);
	must(pthread_attr_setstacksize(&attributes, (size_t)1 << 47) == 0);
	must(pthread_setattr_default_np(&attributes) == 0);
}

static const char all_there_is[] = "all there is\n";

static void make_file(char *template)
{
	int fd = mkstemp(template);

	must(write(fd, all_there_is, sizeof(all_there_is)) == sizeof(all_there_is));
	close(fd);
}

/* It is as it was made; it is ended here. */
static void check_file(const char *path)
{
	char got[2 * sizeof(all_there_is)];
	int fd = open(path, O_RDONLY);

	ck_assert_int_eq(read(fd, got, sizeof(got)), sizeof(all_there_is));
	ck_assert_str_eq(got, all_there_is);
	close(fd);
	unlink(path);
}

/* For want of a second file, as a command came in between, or for want of a thread. */
START_TEST(a_recording_that_does_not_begin_leaves_what_was_there)
{
	static bool is_armed;
	static const enum quire_status statuses[] = {QUIRE_IO, QUIRE_INVALID,
	                                             QUIRE_NO_MEMORY};
	static const char *const whats[] = {"/nowhere/at/all",
	                                    "a command was given before", "thread"};
	char path[] = "/tmp/quire-refused-XXXXXX";
	char timeline[] = "/tmp/quire-refused-XXXXXX";
	struct quire_record_config config = recorded_config();

	make_file(path);
	make_file(timeline);
	config.write = NULL;
	config.path = path;
	config.timeline = _i == 0 ? "/nowhere/at/all" : timeline;
	recorded_begin(&f, 64, 4);
	f.config.hooks.now_ns = intrude;
	f.config.hooks.now_argument = &is_armed;
	fixture_create(&f);
	is_armed = _i == 1;
	if (_i == 2)
		make_threads_impossible();
	check_refused(config, statuses[_i], whats[_i]);
	ck_assert(!is_armed);
	fixture_end(&f);
	check_file(path);
	check_file(timeline);
}
END_TEST

/* The second one does not touch the first one's files, though it names them. */
START_TEST(a_second_recording_is_refused_and_leaves_the_first_alone)
{
	char path[] = "/tmp/quire-twice-XXXXXX", timeline[] = "/tmp/quire-twice-XXXXXX";
	struct quire_record_config config = recorded_config();

	close(mkstemp(path));
	close(mkstemp(timeline));
	config.write = NULL;
	config.path = path;
	config.timeline = timeline;
	recorded_begin(&f, 64, 4);
	recorded_create(&f, &config);
	ck_assert_int_eq(read_lines(path), 0); /* but there is a header */
	ck_assert_int_eq(open_now(&f, 1), QUIRE_OK);
	run_steps(3);
	check_refused(config, QUIRE_INVALID, "recorded before");
	run_steps(3);
	ck_assert_int_eq(quire_runtime_record_end(f.runtime, NULL), QUIRE_OK);
	ck_assert_int_eq(quire_runtime_record_end(f.runtime, NULL), QUIRE_INVALID);
	check_refused(config, QUIRE_INVALID, "recorded before");
	fixture_end(&f);
	ck_assert_int_eq(read_lines(path), 1 + 2 * (3 + 1));
	ck_assert_int_eq(count_plans(timeline), 3 + 3);
	unlink(path);
	unlink(timeline);
}
END_TEST

START_TEST(a_recording_that_comes_late_is_refused_and_makes_no_file)
{
	struct quire_record_config config = recorded_config();
	char folder[] = "/tmp/quire-late-XXXXXX", path[64];
	struct stat about;

	must(mkdtemp(folder) != NULL);
	snprintf(path, sizeof(path), "%s/recording", folder);
	recorded_begin(&f, 64, 4);
	fixture_create(&f);
	ck_assert_int_eq(open_now(&f, 1), QUIRE_OK);
	config.write = NULL;
	config.path = path;
	check_refused(config, QUIRE_INVALID, "a command was given before");
	ck_assert_int_ne(stat(path, &about), 0);
	rmdir(folder);
	fixture_end(&f);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("record files");
	TCase *tcase = tcase_create("files");

	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, the_n_th_write_fails);
	tcase_add_loop_test(tcase, the_timeline_of_a_trace_that_ends_says_nothing_twice,
	                    0, 2);
	tcase_add_loop_test(tcase,
	                    a_file_that_is_too_large_ends_the_recording_with_whole_lines,
	                    0, 2);
	tcase_add_test(tcase, a_full_device_is_found_at_the_beginning);
	tcase_add_loop_test(tcase, a_pipe_that_nobody_reads_is_no_end_of_the_process, 0,
	                    2);
	tcase_add_test(tcase, a_timeline_is_one_before_anything_happens);
	tcase_add_loop_test(tcase, a_timeline_says_how_many_pages_a_step_took, 0, 2);
#ifndef QUIRE_TSAN
	tcase_add_test(tcase, a_forked_process_leaves_the_files_alone);
#endif
	tcase_add_test(tcase, a_wrong_config_is_refused_by_its_field);
	tcase_add_loop_test(tcase, a_recording_that_does_not_begin_leaves_what_was_there,
	                    0, 3);
	tcase_add_test(tcase, a_second_recording_is_refused_and_leaves_the_first_alone);
	tcase_add_test(tcase, a_recording_that_comes_late_is_refused_and_makes_no_file);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
