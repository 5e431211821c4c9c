/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "plans/target_impl.h"

#include "plans/fault_impl.h"
#include "runtime/refuse_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Temporary names tried beside a target before giving up. */
#define NAMES_MAX 100

/* Links followed from a name to a descriptor. */
#define HOPS_MAX 8

/* Bytes that a temporary name is longer than its target's. */
#define NAME_TAIL_BYTES 40

/* Permissions of a file that replaces nothing, before the umask. */
#define MODE_NEW  0666
#define MODE_BITS 07777

static bool look_at(const char *name, struct stat *about)
{
	return (strcmp(name, "-") == 0 ? fstat(STDOUT_FILENO, about)
	                               : stat(name, about)) == 0;
}

static bool look_at_folder(const char *name, struct stat *about)
{
	char *copy = strdup(name); /* dirname writes to its argument */
	bool found = copy != NULL && stat(dirname(copy), about) == 0;

	free(copy);
	return found;
}

static const char *last_part(const char *name)
{
	const char *slash = strrchr(name, '/');

	return slash != NULL ? slash + 1 : name;
}

static bool is_same(const struct stat *one, const struct stat *other)
{
	return one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

bool quire_target_is_same(const char *one, const char *other)
{
	struct stat about, other_about;
	bool is_there = look_at(one, &about), other_is = look_at(other, &other_about);

	if (strcmp(one, other) == 0)
		return true;
	if (is_there && other_is)
		return is_same(&about, &other_about) && !S_ISCHR(about.st_mode);
	return !is_there && !other_is && strcmp(last_part(one), last_part(other)) == 0 &&
	       look_at_folder(one, &about) && look_at_folder(other, &other_about) &&
	       is_same(&about, &other_about);
}

static void free_names(struct quire_target *target)
{
	free(target->temporary);
	free(target->path);
	free(target->name);
	target->temporary = target->path = target->name = NULL;
}

/*
 * The descriptor of this process that a name stands for ("/dev/stdout", "/dev/fd/3"), by way
 * of links into /proc; -1: it stands for none.
 */
static int descriptor_of(const char *name)
{
	char self[sizeof("/proc//fd") + 3 * sizeof(long)];
	char link[PATH_MAX], folder[PATH_MAX], real[PATH_MAX];
	ssize_t length;
	int fd = -1;

	snprintf(self, sizeof(self), "/proc/%ld/fd", (long)getpid());
	snprintf(link, sizeof(link), "%s", name);
	for (int hops = 0; hops < HOPS_MAX; hops++) {
		strcpy(folder, link); /* dirname and basename write to their argument */
		if (realpath(dirname(folder), real) == NULL)
			return -1;
		strcpy(folder, link);
		if (strcmp(real, self) == 0)
			return sscanf(basename(folder), "%d", &fd) == 1 ? fd : -1;
		length = readlink(link, real, sizeof(real) - 1);
		if (length <= 0 || real[0] != '/')
			return -1;
		real[length] = '\0';
		strcpy(link, real);
	}
	return -1;
}

/* What a name that is no regular file stands for; what was written there stays. */
static enum quire_status open_straight(struct quire_target *target,
                                       struct quire_refusal *refusal_out)
{
	int fd = descriptor_of(target->name);

	target->fd = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0)
	                     : open(target->name, O_WRONLY | O_CLOEXEC);
	if (target->fd >= 0)
		return QUIRE_OK;
	return quire_fault(refusal_out, QUIRE_IO, 0, "cannot write to \"%s\": %m",
	                   target->name);
}

/* A name for the file, where it has none: free names are tried until @use takes one. */
static int try_names(struct quire_target *target, int (*use)(struct quire_target *target))
{
	for (int attempt = 0; attempt < NAMES_MAX; attempt++) {
		snprintf(target->temporary, strlen(target->path) + NAME_TAIL_BYTES,
		         "%s.%ld-%d.tmp", target->path, (long)getpid(), attempt);
		if (use(target) >= 0)
			return 0;
		if (errno != EEXIST)
			break;
	}
	return -1;
}

static int create_named(struct quire_target *target)
{
	target->fd = open(target->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
	                  target->mode);
	return target->fd;
}

static int link_unnamed(struct quire_target *target)
{
	char self[sizeof("/proc/self/fd/") + 3 * sizeof(int)];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", target->fd);
	return linkat(AT_FDCWD, self, AT_FDCWD, target->temporary, AT_SYMLINK_FOLLOW);
}

/* A new file in the folder of target->path. */
static int create(struct quire_target *target)
{
	strcpy(target->temporary, target->path); /* dirname writes to its argument */
	target->fd = open(dirname(target->temporary), O_WRONLY | O_TMPFILE | O_CLOEXEC,
	                  target->mode);
	target->unnamed = target->fd >= 0;
	if (target->fd >= 0)
		return 0;
	return try_names(target, create_named);
}

/* A file that a commit will put in the place of target->path. */
static enum quire_status open_beside(struct quire_target *target,
                                     struct quire_refusal *refusal_out)
{
	target->temporary = malloc(strlen(target->path) + NAME_TAIL_BYTES);
	if (target->temporary == NULL)
		return quire_fault(refusal_out, QUIRE_NO_MEMORY, 0,
		                   "no memory for a name");
	if (create(target) != 0)
		return quire_fault(refusal_out, QUIRE_IO, 0,
		                   "cannot create a file beside \"%s\": %m",
		                   target->path);
	return QUIRE_OK;
}

static enum quire_status open_file(struct quire_target *target,
                                   struct quire_refusal *refusal_out)
{
	struct stat about;

	if (stat(target->name, &about) != 0) {
		if (lstat(target->name, &about) == 0)
			return quire_fault(refusal_out, QUIRE_IO, 0,
			                   "\"%s\" is a link that leads nowhere",
			                   target->name);
		if (*last_part(target->name) == '\0')
			return quire_fault(refusal_out, QUIRE_IO, 0,
			                   "\"%s\" names a folder, not a file",
			                   target->name);
		target->path = strdup(target->name);
		if (target->path == NULL)
			return quire_fault(refusal_out, QUIRE_NO_MEMORY, 0,
			                   "no memory for a name");
		return open_beside(target, refusal_out);
	}
	if (S_ISREG(about.st_mode) && descriptor_of(target->name) < 0)
		target->path = realpath(target->name, NULL);
	if (target->path == NULL) /* no file, or one that is open already */
		return open_straight(target, refusal_out);
	target->mode = about.st_mode & MODE_BITS;
	QUIRE_TRY(open_beside(target, refusal_out));
	/* Past the umask; where that fails the mode is narrower, never wider. */
	(void)!fchmod(target->fd, target->mode);
	return QUIRE_OK;
}

enum quire_status quire_target_open(struct quire_target *target, const char *path,
                                    struct quire_refusal *refusal_out)
{
	enum quire_status status = QUIRE_OK;

	*target = (struct quire_target){
		.fd = STDOUT_FILENO, .mode = MODE_NEW, .name = strdup(path)};
	if (target->name == NULL)
		return quire_fault(refusal_out, QUIRE_NO_MEMORY, 0,
		                   "no memory for a name");
	if (strcmp(path, "-") != 0)
		status = open_file(target, refusal_out);
	if (status != QUIRE_OK)
		free_names(target);
	return status;
}

static int close_target(struct quire_target *target)
{
	int fd = target->fd;

	target->fd = STDOUT_FILENO;
	return fd == STDOUT_FILENO ? 0 : close(fd);
}

enum quire_status quire_target_commit(struct quire_target *target,
                                      struct quire_refusal *refusal_out)
{
	enum quire_status status = QUIRE_OK;

	if (target->unnamed && try_names(target, link_unnamed) == 0)
		target->unnamed = false;
	if (target->unnamed || close_target(target) != 0 ||
	    (target->path != NULL && rename(target->temporary, target->path) != 0))
		status = quire_fault(refusal_out, QUIRE_IO, 0,
		                     "cannot write to \"%s\": %m", target->name);
	if (status == QUIRE_OK)
		free_names(target);
	else
		quire_target_discard(target);
	return status;
}

void quire_target_discard(struct quire_target *target)
{
	close_target(target);
	if (target->path != NULL && !target->unnamed)
		unlink(target->temporary);
	free_names(target);
}
