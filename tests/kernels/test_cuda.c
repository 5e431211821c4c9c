/* SPDX-License-Identifier: MIT */
/* The CUDA device: names, drivers, memory, the current device. */
#include "config.h"

/* What stands in its place in a library without CUDA. */
#define quire_device_create_cuda create_none
#include "kernels/device_cuda_none.c"
#undef quire_device_create_cuda

#include "tests/kernels/test_cuda.h"

START_TEST(devices_open_by_name_and_other_names_are_refused)
{
	const char *const good[] = {"cuda", "cuda:0", "cuda:1", "cuda+checks",
	                            "cuda:1+checks"};
	const char *const bad[] = {
		"cuda:",      "cuda:x",       "cuda:1x",         "cuda:-1",
		"cuda+check", "cuda+checksx", "cuda:+checks",    "cuda:1+checks+checks",
		"cuda1",      "cuda ",        "cuda:1234567890",
	};

	standin_set_devices(2);
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct quire_device *device = open_device(good[i]);

		ck_assert_str_eq(quire_device_name(device), good[i]);
		quire_device_destroy(device);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct quire_device *device = NULL;
		struct quire_refusal refusal;

		ck_assert_msg(quire_device_create(bad[i], &device, &refusal) ==
		                      QUIRE_INVALID,
		              "%s", bad[i]);
		ck_assert_str_eq(refusal.what,
		                 "device: none of cpu, cpu:inline, cpu:N, cuda, cuda:N");
		ck_assert_ptr_null(device);
	}
	expect_nothing_live();
}
END_TEST

START_TEST(what_is_missing_is_said)
{
	const struct {
		int driver;
		int devices;
		enum standin_entry entry;
		cudaError_t error;
		enum quire_status status;
		const char *what;
	} cases[] = {
		{0, 1, 0, 0, QUIRE_DEVICE, "no NVIDIA driver here"},
		{12090, 1, 0, 0, QUIRE_DEVICE,
	         "the NVIDIA driver is too old for this program"},
		{13000, 0, 0, 0, QUIRE_DEVICE, "no CUDA device here"},
		{13000, 1, STANDIN_cudaDriverGetVersion, cudaErrorStubLibrary,
	         QUIRE_DEVICE, "the CUDA driver found is a stub library"},
		{13000, 1, STANDIN_cudaGetDeviceCount, cudaErrorStubLibrary, QUIRE_DEVICE,
	         "the CUDA driver found is a stub library"},
		{13000, 1, STANDIN_cudaLaunchKernel, cudaErrorNoKernelImageForDevice,
	         QUIRE_DEVICE, "no kernels were built for this CUDA device"},
		{13000, 1, STANDIN_cudaStreamCreateWithPriority,
	         cudaErrorMemoryAllocation, QUIRE_NO_MEMORY,
	         "memory of the CUDA device, or pinned memory"},
		{13000, 1, STANDIN_cudaDeviceGetStreamPriorityRange,
	         cudaErrorDevicesUnavailable, QUIRE_DEVICE,
	         "CUDA-capable device(s) is/are busy or unavailable"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct quire_device *device = NULL;
		struct quire_refusal refusal;

		standin_reset();
		standin_set_driver(cases[i].driver);
		standin_set_devices(cases[i].devices);
		if (cases[i].error != cudaSuccess)
			standin_fail(cases[i].entry, 1, false, cases[i].error);
		ck_assert_int_eq(quire_device_create("cuda", &device, &refusal),
		                 cases[i].status);
		ck_assert_int_eq(refusal.status, cases[i].status);
		ck_assert_str_eq(refusal.what, cases[i].what);
		ck_assert_ptr_null(device);
		expect_nothing_live();
	}
}
END_TEST

START_TEST(a_device_that_is_not_there_is_named_with_the_last_that_is)
{
	struct quire_device *device = NULL;
	struct quire_refusal refusal;

	standin_set_devices(2);
	ck_assert_int_eq(quire_device_create("cuda:2+checks", &device, &refusal),
	                 QUIRE_INVALID);
	ck_assert_str_eq(refusal.what, "device: number of a CUDA device");
	ck_assert_int_eq(refusal.got, 2);
	ck_assert_int_eq(refusal.expected, 1);
	ck_assert_int_eq(refusal.index, -1);
	ck_assert_ptr_null(device);
}
END_TEST

START_TEST(a_library_without_cuda_says_so)
{
	struct quire_device *device = NULL;
	struct quire_refusal refusal;

	ck_assert_int_eq(create_none("", &device, &refusal), QUIRE_DEVICE);
	ck_assert_str_eq(refusal.what, "quire was built without CUDA");
	ck_assert_ptr_null(device);
}
END_TEST

/* Any byte of it that is not 0. */
static bool is_zero(const char *memory, int64_t bytes)
{
	for (int64_t i = 0; i < bytes; i++)
		if (memory[i] != 0)
			return false;
	return true;
}

START_TEST(memory_is_zeroed_and_aligned)
{
	const int64_t sizes[] = {1, 63, 4096, 100001};
	struct quire_device *device = open_device("cuda");
	struct quire_dstream *dstream = new_stream(device);

	for (int i = 0; i < 4; i++) {
		char *memory = new_memory(device, sizes[i]);
		char *pinned = new_pinned(device, sizes[i]);

		ck_assert_int_eq((int64_t)((uintptr_t)memory % 64), 0);
		ck_assert_int_eq((int64_t)((uintptr_t)pinned % 64), 0);
		ck_assert(is_zero(pinned, sizes[i]));
		memset(pinned, 1, (size_t)sizes[i]);
		ck_assert_int_eq(copy(dstream, pinned, memory, sizes[i]), QUIRE_OK);
		ck_assert_int_eq(quire_dstream_synchronize(dstream, NULL), QUIRE_OK);
		ck_assert(is_zero(pinned, sizes[i]));
		quire_device_release(device, memory, sizes[i]);
		quire_device_release_pinned(device, pinned, sizes[i]);
	}
	quire_dstream_destroy(dstream);
	quire_device_destroy(device);
	expect_nothing_live();
}
END_TEST

START_TEST(more_memory_than_there_is_is_refused_and_nothing_is_broken)
{
	struct quire_device *device;
	struct quire_dstream *dstream;
	void *memory = NULL;

	standin_set_memory(1 << 20);
	device = open_device("cuda");
	dstream = new_stream(device);
	ck_assert_int_eq(quire_device_alloc(device, 2 << 20, &memory), QUIRE_NO_MEMORY);
	ck_assert_int_eq(quire_device_alloc_pinned(device, 2 << 20, &memory),
	                 QUIRE_NO_MEMORY);
	ck_assert_ptr_null(memory);
	ck_assert_int_eq(cudaGetLastError(), cudaSuccess);
	ck_assert_int_eq(quire_dstream_synchronize(dstream, NULL), QUIRE_OK);
	memory = new_memory(device, 1 << 19);
	quire_device_release(device, memory, 1 << 19);
	quire_dstream_destroy(dstream);
	quire_device_destroy(device);
	expect_nothing_live();
}
END_TEST

START_TEST(copies_without_room_for_their_marks_are_refused_and_the_stream_goes_on)
{
	const struct quire_shape shape = {QUIRE_NHD, QUIRE_F16, 1, 4096, 1, 1, 8};
	struct quire_device *device = open_device("cuda");
	struct quire_dstream *dstream = new_stream(device);
	struct quire_refusal refusal;
	struct quire_cache *cache;
	int32_t *pages = new_pinned(device, 64);

	memcpy(pages, (int32_t[]){0, 1, 2}, 12);
	ck_assert_int_eq(quire_cache_create(device, &shape, &cache, NULL), QUIRE_OK);
	for (int n = 1; n <= 2; n++) {
		standin_fail(STANDIN_cudaMalloc, n, false, cudaErrorMemoryAllocation);
		ck_assert_int_eq(quire_cache_copy_pages(cache, dstream, pages, pages + 1,
		                                        2, &refusal),
		                 QUIRE_NO_MEMORY);
		ck_assert_int_eq(refusal.status, QUIRE_NO_MEMORY);
	}
	ck_assert_int_eq(
		quire_cache_copy_pages(cache, dstream, pages, pages + 1, 2, &refusal),
		QUIRE_OK);
	ck_assert_int_eq(quire_dstream_synchronize(dstream, NULL), QUIRE_OK);
	quire_cache_destroy(cache);
	quire_device_release_pinned(device, pages, 64);
	quire_dstream_destroy(dstream);
	quire_device_destroy(device);
	expect_nothing_live();
}
END_TEST

START_TEST(a_stream_keeps_room_for_the_largest_cache_and_gives_it_back)
{
	const int64_t num_pages[] = {4, 5000, 4, 4999};
	struct quire_device *device = open_device("cuda");
	struct quire_dstream *dstream = new_stream(device);
	int32_t *pages = new_pinned(device, 64);
	int64_t allocations = 0;

	memcpy(pages, (int32_t[]){0, 1, 2}, 12);
	for (int i = 0; i < 4; i++) {
		struct quire_shape shape = {QUIRE_NHD, QUIRE_F16, 1, num_pages[i],
		                            1,         1,         8};
		struct quire_cache *cache;

		ck_assert_int_eq(quire_cache_create(device, &shape, &cache, NULL),
		                 QUIRE_OK);
		if (i == 2)
			allocations = standin_calls(STANDIN_cudaMalloc) - 1;
		ck_assert_int_eq(
			quire_cache_copy_pages(cache, dstream, pages, pages + 1, 2, NULL),
			QUIRE_OK);
		ck_assert_int_eq(quire_dstream_synchronize(dstream, NULL), QUIRE_OK);
		quire_cache_destroy(cache);
	}
	/* Two caches, and nothing else, since the second. */
	ck_assert_int_eq(standin_calls(STANDIN_cudaMalloc) - allocations, 2);
	quire_device_release_pinned(device, pages, 64);
	quire_dstream_destroy(dstream);
	quire_device_destroy(device);
	expect_nothing_live();
}
END_TEST

static int current_device(void)
{
	int current = -1;

	ck_assert_int_eq(cudaGetDevice(&current), cudaSuccess);
	return current;
}

static int device_of(const void *memory)
{
	struct cudaPointerAttributes attributes;

	ck_assert_int_eq(cudaPointerGetAttributes(&attributes, memory), cudaSuccess);
	return attributes.device;
}

static enum quire_status do_nothing(void *argument)
{
	(void)argument;
	return QUIRE_OK;
}

static void note(void *argument)
{
	sem_post(argument);
}

/* The stand-in refuses a launch on another device's stream, so all that is queued here is
 * queued with device 1 as the current one. */
START_TEST(the_current_device_is_as_before_every_call)
{
	const struct quire_shape shape = {QUIRE_HND, QUIRE_BF16, 2, 4, 2, 2, 8};
	struct quire_device *device;
	struct quire_dstream *dstream;
	struct quire_dstream *other;
	struct quire_event *event;
	struct quire_cache *cache;
	int32_t *pages;
	sem_t noted;

#define KEEPS(call)                                    \
	do {                                           \
		ck_assert_int_eq((call), QUIRE_OK);    \
		ck_assert_int_eq(current_device(), 2); \
	} while (0)

	sem_init(&noted, 0, 0);
	standin_set_devices(3);
	ck_assert_int_eq(cudaSetDevice(2), cudaSuccess);
	KEEPS(quire_device_create("cuda:1+checks", &device, NULL));
	KEEPS(quire_dstream_create(device, "one", &dstream));
	KEEPS(quire_dstream_create_with(device, "two", QUIRE_PRIORITY_HIGH, &other));
	KEEPS(quire_event_create(device, &event));
	KEEPS(quire_device_alloc_pinned(device, 64, (void **)&pages));
	KEEPS(quire_cache_create(device, &shape, &cache, NULL));
	ck_assert_int_eq(device_of(quire_cache_data_ptr(cache)), 1);
	memcpy(pages, (int32_t[]){0, 1, 2}, 12);
	KEEPS(copy(dstream, quire_cache_data_ptr(cache), pages, 12));
	KEEPS(quire_cache_copy_pages(cache, dstream, pages, pages + 1, 2, NULL));
	KEEPS(quire_dstream_call(dstream, do_nothing, NULL));
	KEEPS(quire_event_record(event, dstream));
	KEEPS(quire_dstream_wait_event(other, event));
	KEEPS(quire_event_notify(event, note, &noted));
	KEEPS(quire_event_synchronize(event));
	KEEPS(quire_event_query(event));
	KEEPS(quire_dstream_synchronize(other, NULL));
	quire_dstream_destroy(dstream);
	quire_dstream_destroy(other);
	quire_event_destroy(event);
	quire_cache_destroy(cache);
	quire_device_release_pinned(device, pages, 64);
	quire_device_destroy(device);
	ck_assert_int_eq(current_device(), 2);
	pass_gate(&noted);
	expect_nothing_live();
#undef KEEPS
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("cuda");
	TCase *tcase = tcase_create("stand-in");

	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, 20);
	tcase_add_test(tcase, devices_open_by_name_and_other_names_are_refused);
	tcase_add_test(tcase, what_is_missing_is_said);
	tcase_add_test(tcase, a_device_that_is_not_there_is_named_with_the_last_that_is);
	tcase_add_test(tcase, a_library_without_cuda_says_so);
	tcase_add_test(tcase, memory_is_zeroed_and_aligned);
	tcase_add_test(tcase, more_memory_than_there_is_is_refused_and_nothing_is_broken);
	tcase_add_test(
		tcase,
		copies_without_room_for_their_marks_are_refused_and_the_stream_goes_on);
	tcase_add_test(tcase,
	               a_stream_keeps_room_for_the_largest_cache_and_gives_it_back);
	tcase_add_test(tcase, the_current_device_is_as_before_every_call);
	return run_suite(suite);
}
