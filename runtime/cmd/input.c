/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/cmd_impl.h"

#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COPY_BYTES (64 << 10)

static bool copy_all(int from, FILE *to)
{
	char bytes[COPY_BYTES];
	ssize_t got = read(from, bytes, sizeof(bytes));

	while (got > 0) {
		if (fwrite(bytes, 1, (size_t)got, to) != (size_t)got)
			return false;
		got = read(from, bytes, sizeof(bytes));
	}
	return got == 0 && fflush(to) == 0;
}

static bool look_at(const char *name, bool is_input, struct stat *about)
{
	if (strcmp(name, "-") == 0)
		return fstat(is_input ? STDIN_FILENO : STDOUT_FILENO, about) == 0;
	return stat(name, about) == 0;
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

/* Will the two be one file, once it is there? */
static bool is_same_place(const char *one, const char *other)
{
	struct stat folder, other_folder;

	return strcmp(one, "-") != 0 && strcmp(other, "-") != 0 &&
	       strcmp(last_part(one), last_part(other)) == 0 &&
	       look_at_folder(one, &folder) && look_at_folder(other, &other_folder) &&
	       is_same(&folder, &other_folder);
}

bool cmd_is_same_file(const char *name, bool is_input, const char *output)
{
	struct stat from, to;

	if (!is_input && strcmp(name, output) == 0)
		return true;
	if (look_at(name, is_input, &from) && look_at(output, false, &to))
		return is_same(&from, &to) &&
		       (is_input ? S_ISREG(to.st_mode) : !S_ISCHR(to.st_mode));
	return !is_input && is_same_place(name, output);
}

int cmd_input_open(struct cmd_input *input, const char *name, bool twice)
{
	bool is_standard = strcmp(name, "-") == 0;
	struct stat about;
	int fd = STDIN_FILENO;
	bool copied;

	*input = (struct cmd_input){.name = name, .path = name};
	if (!twice ||
	    (!is_standard && (stat(name, &about) != 0 || S_ISREG(about.st_mode) ||
	                      S_ISDIR(about.st_mode))))
		return CMD_DONE;
	if (!is_standard)
		fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return CMD_DONE;
	input->copy = tmpfile();
	copied = input->copy != NULL && copy_all(fd, input->copy);
	if (!copied)
		cmd_tell(name, 0,
		         "cannot be copied to a temporary file: %m; give a regular file");
	if (!is_standard)
		close(fd);
	if (!copied) {
		cmd_input_close(input);
		return CMD_BAD;
	}
	snprintf(input->copy_path, sizeof(input->copy_path), "/proc/self/fd/%d",
	         fileno(input->copy));
	input->path = input->copy_path;
	return CMD_DONE;
}

void cmd_input_close(struct cmd_input *input)
{
	if (input->copy != NULL)
		fclose(input->copy);
	input->copy = NULL;
}
