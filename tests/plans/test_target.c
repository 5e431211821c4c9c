/* SPDX-License-Identifier: MIT */
/*
 * Output files: there whole or not at all, with the mode and through the links of what
 * was there.  Every test runs twice: with files without names, and as on a file system
 * that knows none.
 */
#include "config.h"

#include "plans/target_impl.h"

#include "temporary.h"
#include "tests/run_suite.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define WAYS 2

static struct temporary temporary;
static bool without_unnamed;

/* In the place of libc's: the library under test is linked statically. */
int open(const char *path, int flags, ...)
{
	va_list arguments;
	mode_t mode;

	va_start(arguments, flags);
	mode = va_arg(arguments, mode_t);
	va_end(arguments);
	if (without_unnamed && (flags & O_TMPFILE) == O_TMPFILE) {
		errno = EOPNOTSUPP;
		return -1;
	}
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

static void setup(void)
{
	temporary_make(&temporary);
}

static void teardown(void)
{
	temporary_end(&temporary);
}

static void put(const struct quire_target *target, const char *text)
{
	ck_assert_int_eq(write(target->fd, text, strlen(text)), (ssize_t)strlen(text));
}

static mode_t mode_of(const char *path)
{
	struct stat about;

	ck_assert_int_eq(stat(path, &about), 0);
	return about.st_mode & 07777;
}

START_TEST(a_target_changes_at_its_commit_and_not_before)
{
	struct quire_target target;

	without_unnamed = _i == 1;
	temporary_fill(&temporary, "old", 3);
	ck_assert_int_eq(quire_target_open(&target, temporary.path, NULL), QUIRE_OK);
	put(&target, "new");
	ck_assert(temporary_holds(&temporary, "old"));
	ck_assert_int_eq(quire_target_commit(&target, NULL), QUIRE_OK);
	ck_assert(temporary_holds(&temporary, "new"));
	ck_assert_int_eq(temporary_count(&temporary), 1);
	ck_assert_int_eq(quire_target_open(&target, temporary.path, NULL), QUIRE_OK);
	put(&target, "never");
	quire_target_discard(&target);
	ck_assert(temporary_holds(&temporary, "new"));
	ck_assert_int_eq(temporary_count(&temporary), 1);
}
END_TEST

START_TEST(a_target_that_is_not_there_is_made)
{
	struct quire_target target;

	without_unnamed = _i == 1;
	ck_assert_int_eq(quire_target_open(&target, temporary.path, NULL), QUIRE_OK);
	put(&target, "text");
	ck_assert_int_eq(quire_target_commit(&target, NULL), QUIRE_OK);
	ck_assert(temporary_holds(&temporary, "text"));
	ck_assert_int_eq(temporary_count(&temporary), 1);
}
END_TEST

START_TEST(a_replaced_file_keeps_its_mode)
{
	static const mode_t modes[] = {0600, 0640, 0666, 0755};
	struct quire_target target;

	without_unnamed = _i == 1;
	temporary_fill(&temporary, "old", 3);
	for (size_t m = 0; m < sizeof(modes) / sizeof(modes[0]); m++) {
		ck_assert_int_eq(chmod(temporary.path, modes[m]), 0);
		ck_assert_int_eq(quire_target_open(&target, temporary.path, NULL),
		                 QUIRE_OK);
		ck_assert_int_eq(quire_target_commit(&target, NULL), QUIRE_OK);
		ck_assert_uint_eq(mode_of(temporary.path), modes[m]);
	}
}
END_TEST

START_TEST(a_link_is_followed_and_stays_a_link)
{
	struct quire_target target;
	struct stat about;
	char link[80];

	without_unnamed = _i == 1;
	snprintf(link, sizeof(link), "%s/link", temporary.folder);
	ck_assert_int_eq(symlink("file", link), 0);
	ck_assert_int_eq(quire_target_open(&target, link, NULL),
	                 QUIRE_IO); /* leads nowhere */
	temporary_fill(&temporary, "old", 3);
	ck_assert_int_eq(quire_target_open(&target, link, NULL), QUIRE_OK);
	put(&target, "new");
	ck_assert_int_eq(quire_target_commit(&target, NULL), QUIRE_OK);
	ck_assert(temporary_holds(&temporary, "new"));
	ck_assert_int_eq(lstat(link, &about), 0);
	ck_assert(S_ISLNK(about.st_mode));
	ck_assert_int_eq(temporary_count(&temporary), 2);
	ck_assert_int_eq(unlink(link), 0);
}
END_TEST

START_TEST(a_pipe_is_written_to_as_it_is)
{
	struct quire_target target;
	char path[40], got[8] = "";
	int ends[2];

	without_unnamed = _i == 1;
	ck_assert_int_eq(pipe(ends), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", ends[1]);
	ck_assert_int_eq(quire_target_open(&target, path, NULL), QUIRE_OK);
	put(&target, "through");
	ck_assert_int_eq(quire_target_commit(&target, NULL), QUIRE_OK);
	ck_assert_int_eq(read(ends[0], got, sizeof(got)), 7);
	ck_assert_int_eq(memcmp(got, "through", 7), 0);
	close(ends[0]);
	close(ends[1]);
}
END_TEST

/* As a shell's `{ echo a; quire ... -o /dev/fd/N; echo b; } > file`. */
START_TEST(a_file_that_is_open_already_is_written_where_it_stands)
{
	struct quire_target target;
	char path[40], link[80];
	int fd;

	without_unnamed = _i == 1;
	temporary_fill(&temporary, "", 0);
	fd = open(temporary.path, O_WRONLY, 0);
	ck_assert_int_eq(write(fd, "a", 1), 1);
	snprintf(path, sizeof(path), "/dev/fd/%d", fd);
	ck_assert_int_eq(quire_target_open(&target, path, NULL), QUIRE_OK);
	put(&target, "bc");
	ck_assert_int_eq(quire_target_commit(&target, NULL), QUIRE_OK);
	snprintf(link, sizeof(link), "%s/link", temporary.folder);
	ck_assert_int_eq(symlink(path, link), 0);
	ck_assert_int_eq(quire_target_open(&target, link, NULL), QUIRE_OK);
	put(&target, "de");
	ck_assert_int_eq(quire_target_commit(&target, NULL), QUIRE_OK);
	ck_assert_int_eq(write(fd, "f", 1), 1);
	close(fd);
	ck_assert(temporary_holds(&temporary, "abcdef"));
	ck_assert_int_eq(unlink(link), 0);
}
END_TEST

START_TEST(a_folder_that_is_not_there_is_refused)
{
	struct quire_target target;
	struct quire_refusal refusal;

	without_unnamed = _i == 1;
	ck_assert_int_eq(quire_target_open(&target, "no/such/folder/x", &refusal),
	                 QUIRE_IO);
	ck_assert_ptr_nonnull(strstr(refusal.what, "no/such/folder/x"));
	ck_assert_int_eq(quire_target_open(&target, temporary.folder, &refusal),
	                 QUIRE_IO);
}
END_TEST

START_TEST(a_name_that_ends_like_a_folders_is_refused_before_anything_is_written)
{
	char path[80];
	struct quire_target target;
	struct quire_refusal refusal;

	without_unnamed = _i == 1;
	snprintf(path, sizeof(path), "%s/new/", temporary.folder);
	ck_assert_int_eq(quire_target_open(&target, path, &refusal), QUIRE_IO);
	ck_assert_ptr_nonnull(strstr(refusal.what, "folder"));
	ck_assert_int_eq(temporary_count(&temporary), 0);
}
END_TEST

START_TEST(two_names_of_one_target_are_known_before_and_after_it_is_there)
{
	const char *last = temporary.path + strlen(temporary.folder) + 1;
	char same[80], link[80], other[80], in[80];

	snprintf(same, sizeof(same), "%s/.//%s", temporary.folder, last);
	snprintf(other, sizeof(other), "%s/other", temporary.folder);
	snprintf(link, sizeof(link), "%s/link", temporary.folder);
	snprintf(in, sizeof(in), "%s/no/%s", temporary.folder, last);
	for (int is_there = 0; is_there < 2; is_there++) {
		ck_assert(quire_target_is_same(temporary.path, temporary.path));
		ck_assert(quire_target_is_same(temporary.path, same));
		ck_assert(quire_target_is_same(same, temporary.path));
		ck_assert(!quire_target_is_same(temporary.path, other));
		ck_assert(!quire_target_is_same(temporary.path, in));
		ck_assert(!quire_target_is_same(temporary.path, "-"));
		temporary_fill(&temporary, "", 0);
	}
	ck_assert_int_eq(symlink(last, link), 0);
	ck_assert(quire_target_is_same(temporary.path, link));
	ck_assert(quire_target_is_same("-", "-"));
	ck_assert(quire_target_is_same("/tmp", "/tmp/."));
	ck_assert(!quire_target_is_same("/dev/null", "/dev/../dev/null"));
	ck_assert_int_eq(unlink(link), 0);
}
END_TEST

/* Only with files without names: nothing can be left where nothing has a name. */
START_TEST(a_killed_process_leaves_nothing)
{
	struct quire_target target;
	int fd = open(temporary.folder, O_WRONLY | O_TMPFILE, 0600);
	pid_t child;
	int status;

	if (fd < 0)
		return; /* this file system knows none: it takes the other way */
	close(fd);
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		if (quire_target_open(&target, temporary.path, NULL) == QUIRE_OK)
			raise(SIGKILL);
		_exit(1);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFSIGNALED(status));
	ck_assert_int_eq(temporary_count(&temporary), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("target");
	TCase *tcase = tcase_create("target");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, a_target_changes_at_its_commit_and_not_before, 0,
	                    WAYS);
	tcase_add_loop_test(tcase, a_target_that_is_not_there_is_made, 0, WAYS);
	tcase_add_loop_test(tcase, a_replaced_file_keeps_its_mode, 0, WAYS);
	tcase_add_loop_test(tcase, a_link_is_followed_and_stays_a_link, 0, WAYS);
	tcase_add_loop_test(tcase, a_pipe_is_written_to_as_it_is, 0, WAYS);
	tcase_add_loop_test(tcase, a_file_that_is_open_already_is_written_where_it_stands,
	                    0, WAYS);
	tcase_add_loop_test(tcase, a_folder_that_is_not_there_is_refused, 0, WAYS);
	tcase_add_loop_test(
		tcase,
		a_name_that_ends_like_a_folders_is_refused_before_anything_is_written, 0,
		WAYS);
	tcase_add_test(tcase,
	               two_names_of_one_target_are_known_before_and_after_it_is_there);
	tcase_add_test(tcase, a_killed_process_leaves_nothing);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
