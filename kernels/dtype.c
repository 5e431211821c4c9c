/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <quire/kernels/dtype.h>

#include <string.h>

static const struct {
	const char *name;
	int64_t bytes;
} dtypes[QUIRE_DTYPE_COUNT] = {
	[QUIRE_F32] = {"f32", 4},       [QUIRE_F16] = {"f16", 2},
	[QUIRE_BF16] = {"bf16", 2},     [QUIRE_FP8_E4M3] = {"e4m3", 1},
	[QUIRE_FP8_E5M2] = {"e5m2", 1},
};

int64_t quire_dtype_bytes(enum quire_dtype dtype)
{
	return (unsigned)dtype < QUIRE_DTYPE_COUNT ? dtypes[dtype].bytes : 0;
}

const char *quire_dtype_name(enum quire_dtype dtype)
{
	return (unsigned)dtype < QUIRE_DTYPE_COUNT ? dtypes[dtype].name : "unknown";
}

enum quire_status quire_dtype_parse(const char *name, enum quire_dtype *dtype_out)
{
	for (int i = 0; name != NULL && i < QUIRE_DTYPE_COUNT; i++) {
		if (strcmp(name, dtypes[i].name) != 0)
			continue;
		*dtype_out = (enum quire_dtype)i;
		return QUIRE_OK;
	}
	return QUIRE_INVALID;
}
