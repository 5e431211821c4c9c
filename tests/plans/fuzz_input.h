/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_TESTS_PLANS_FUZZ_INPUT_H
#define QUIRE_TESTS_PLANS_FUZZ_INPUT_H
/* Bytes as a file in memory, for readers that want a path; demands that always hold. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define DEMAND(condition)                                                                \
	do {                                                                             \
		if (!(condition)) {                                                      \
			fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, \
			        #condition);                                             \
			abort();                                                         \
		}                                                                        \
	} while (0)

struct fuzz_file {
	int fd;
	char path[64];
};

static inline void fuzz_file_make(struct fuzz_file *file, const void *bytes, size_t size)
{
	const char *at = bytes;

	file->fd = memfd_create("fuzz", MFD_CLOEXEC);
	DEMAND(file->fd >= 0);
	snprintf(file->path, sizeof(file->path), "/proc/self/fd/%d", file->fd);
	while (size > 0) {
		ssize_t put = write(file->fd, at, size);

		DEMAND(put > 0);
		at += put;
		size -= (size_t)put;
	}
}

static inline void fuzz_file_end(const struct fuzz_file *file)
{
	close(file->fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

#endif
