/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_TESTS_TEMPORARY_H
#define QUIRE_TESTS_TEMPORARY_H
/*
 * A folder of a test's own, under the working directory, with files made of given bytes.
 */
#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct temporary {
	char folder[32];
	char path[64];
};

static inline void temporary_make(struct temporary *temporary)
{
	strcpy(temporary->folder, "quire-test.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(temporary->folder));
	snprintf(temporary->path, sizeof(temporary->path), "%s/file", temporary->folder);
}

static inline void temporary_fill(const struct temporary *temporary, const char *bytes,
                                  size_t size)
{
	FILE *file = fopen(temporary->path, "wb");

	ck_assert_ptr_nonnull(file);
	ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
	ck_assert_int_eq(fclose(file), 0);
}

/* Does the file hold exactly @text? */
static inline int temporary_holds(const struct temporary *temporary, const char *text)
{
	char got[4096];
	FILE *file = fopen(temporary->path, "rb");
	size_t size;

	ck_assert_ptr_nonnull(file);
	size = fread(got, 1, sizeof(got), file);
	fclose(file);
	return size == strlen(text) && memcmp(got, text, size) == 0;
}

static inline int temporary_count(const struct temporary *temporary)
{
	DIR *folder = opendir(temporary->folder);
	struct dirent *entry;
	int count = 0;

	ck_assert_ptr_nonnull(folder);
	while ((entry = readdir(folder)) != NULL)
		count += entry->d_name[0] != '.';
	closedir(folder);
	return count;
}

static inline void temporary_end(const struct temporary *temporary)
{
	unlink(temporary->path);
	ck_assert_int_eq(rmdir(temporary->folder), 0);
}

#endif
