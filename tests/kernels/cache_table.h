/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_TESTS_KERNELS_CACHE_TABLE_H
#define QUIRE_TESTS_KERNELS_CACHE_TABLE_H
/* The table of (device, layout, dtype) over which a test runs as a loop test. */
#include "tests/kernels/cache_fixture.h"
#include "tests/run_suite.h"

/* A program that is to test others names them and includes this file. */
#ifndef CACHE_DEVICES
#define CACHE_DEVICES "cpu", "cpu:inline", "cpu:2"
#endif

static const char *const devices[] = {CACHE_DEVICES};
#define NUM_DEVICES ((int)(sizeof(devices) / sizeof(devices[0])))

/* Numbers of a loop test over all devices, over all layouts, over all of the table. */
#define NUM_LAYOUTS (NUM_DEVICES * QUIRE_LAYOUT_COUNT)
#define NUM_ENTRIES (NUM_LAYOUTS * QUIRE_DTYPE_COUNT)

static inline const char *device_of(int entry)
{
	return devices[entry % NUM_DEVICES];
}

static inline enum quire_layout layout_of(int entry)
{
	return (enum quire_layout)(entry / NUM_DEVICES % QUIRE_LAYOUT_COUNT);
}

static inline enum quire_dtype dtype_of(int entry)
{
	return (enum quire_dtype)(entry / NUM_LAYOUTS);
}

static inline bool is_inline(const char *device)
{
	return strcmp(device, "cpu:inline") == 0;
}

/* A cpu reads rows at any byte, others at whole elements. */
static inline bool is_cpu(const char *device)
{
	return strncmp(device, "cpu", 3) == 0;
}

/* The shape of an entry; MLA has one head, whatever others have. */
static inline struct quire_shape shape_of(int entry, int64_t layers, int64_t pages,
                                          int64_t page_size, int64_t heads, int64_t dim)
{
	return (struct quire_shape){
		.layout = layout_of(entry),
		.dtype = dtype_of(entry),
		.num_layers = layers,
		.num_pages = pages,
		.page_size = page_size,
		.num_kv_heads = layout_of(entry) == QUIRE_MLA ? 1 : heads,
		.head_dim = dim,
	};
}

/* What rows a cache takes: its own dtype, or one of the three that convert. */
static inline enum quire_dtype any_source(uint64_t *seed, enum quire_dtype own)
{
	int32_t choice = random_in(seed, 0, 3);

	return choice == 3 ? own : (enum quire_dtype)choice;
}

/* One line of a program's list of tests. */
struct table_test {
	const TTest *test;
	int numbers;
};

static inline int run_table(const char *name, const struct table_test *tests, int num)
{
	Suite *suite = suite_create(name);
	TCase *table = tcase_create("devices, layouts, dtypes");

	exact_prepare();
	suite_add_tcase(suite, table);
	tcase_set_timeout(table, 60);
	for (int i = 0; i < num; i++)
		tcase_add_loop_test(table, tests[i].test, 0, tests[i].numbers);
	return run_suite(suite);
}

#endif
