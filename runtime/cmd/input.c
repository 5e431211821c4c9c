/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/cmd_impl.h"

#include <fcntl.h>
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

static bool look_at(const char *name, int standard, struct stat *about)
{
	return (strcmp(name, "-") == 0 ? fstat(standard, about) : stat(name, about)) == 0;
}

bool cmd_is_same_file(const char *input, const char *output)
{
	struct stat from, to;

	return look_at(input, STDIN_FILENO, &from) &&
	       look_at(output, STDOUT_FILENO, &to) && S_ISREG(to.st_mode) &&
	       from.st_dev == to.st_dev && from.st_ino == to.st_ino;
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
