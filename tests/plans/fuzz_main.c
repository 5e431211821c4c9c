/* SPDX-License-Identifier: MIT */
/* A fuzzer's entry over the committed inputs, without the fuzzer. */
#include "config.h"

#include "fuzz_input.h"

#include <dirent.h>

#define INPUT_BYTES_MAX (1 << 20)

static char bytes[INPUT_BYTES_MAX];

int main(void)
{
	DIR *folder = opendir(SEEDS);
	struct dirent *entry;
	int num = 0;

	DEMAND(folder != NULL);
	while ((entry = readdir(folder)) != NULL) {
		char path[4096];
		FILE *file;
		size_t size;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", SEEDS, entry->d_name);
		file = fopen(path, "rb");
		DEMAND(file != NULL);
		size = fread(bytes, 1, sizeof(bytes), file);
		DEMAND(ferror(file) == 0 && size < sizeof(bytes));
		fclose(file);
		LLVMFuzzerTestOneInput((const uint8_t *)bytes, size);
		num++;
	}
	closedir(folder);
	printf("%d inputs\n", num);
	DEMAND(num > 0);
	return 0;
}
