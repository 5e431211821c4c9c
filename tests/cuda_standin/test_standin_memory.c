/* SPDX-License-Identifier: MIT */
/* The stand-in's memory, and what copies it refuses. */
#include "config.h"

#include "tests/cuda_standin/standin_check.h"
#include "tests/run_suite.h"

#include <cuda_runtime.h>

#include <stdlib.h>

struct increment {
	int *value;
};

static void increment(struct increment argument)
{
	*argument.value += 1;
}

static void call_increment(const void *function, const void *argument)
{
	((void (*)(struct increment))function)(*(const struct increment *)argument);
}

START_TEST(new_memory_is_aligned_and_poisoned)
{
	const size_t sizes[] = {1, 255, 256, 257, 4096, 100000};
	unsigned char *copy = malloc(100000);

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		unsigned char *device = new_device_memory(sizes[i]);
		const unsigned char *pinned = new_pinned(sizes[i]);

		ck_assert_uint_eq((uintptr_t)device % 256, 0);
		ck_assert_uint_eq((uintptr_t)pinned % 256, 0);
		ck_assert_ok(cudaMemcpy(copy, device, sizes[i], cudaMemcpyDeviceToHost));
		for (size_t b = 0; b < sizes[i]; b++)
			ck_assert(copy[b] == 0xDB && pinned[b] == 0xDB);
	}
	free(copy);
}
END_TEST

START_TEST(no_more_memory_is_given_than_there_is)
{
	void *first = NULL;
	void *second = NULL;
	size_t left;
	size_t total;

	standin_set_memory(1000);
	ck_assert_ok(cudaMalloc(&first, 600));
	ck_assert_cuda(cudaMalloc(&second, 401), cudaErrorMemoryAllocation);
	ck_assert_cuda(cudaMalloc(&second, SIZE_MAX), cudaErrorMemoryAllocation);
	ck_assert_ptr_null(second);
	ck_assert_ok(cudaMemGetInfo(&left, &total));
	ck_assert_uint_eq(left, 400);
	ck_assert_uint_eq(total, 1000);
	ck_assert_ok(cudaMalloc(&second, 400));
	ck_assert_ok(cudaFree(first));
	ck_assert_ok(cudaMalloc(&first, 600));
	ck_assert_ok(cudaHostAlloc(&first, 1000, 0));
	ck_assert_cuda(cudaHostAlloc(&second, 1, 0), cudaErrorMemoryAllocation);
	ck_assert_ok(cudaMalloc(&first, 0));
	ck_assert_ptr_null(first);
	ck_assert_cuda(cudaMalloc(NULL, 1), cudaErrorInvalidValue);
	ck_assert_cuda(cudaHostAlloc(&first, 1, 0x100), cudaErrorInvalidValue);
}
END_TEST

START_TEST(memory_is_freed_once_and_by_its_own_call)
{
	char *device = new_device_memory(100);
	char *pinned = new_pinned(100);

	ck_assert_int_eq(standin_live().device_blocks, 1);
	ck_assert_int_eq(standin_live().host_blocks, 1);
	ck_assert_cuda(cudaFree(pinned), cudaErrorInvalidValue);
	ck_assert_cuda(cudaFreeHost(device), cudaErrorInvalidValue);
	ck_assert_cuda(cudaFree(device + 1), cudaErrorInvalidValue);
	ck_assert_ok(cudaFree(device));
	ck_assert_ok(cudaFreeHost(pinned));
	ck_assert_cuda(cudaFree(device), cudaErrorInvalidValue);
	ck_assert_cuda(cudaFreeHost(pinned), cudaErrorInvalidValue);
	ck_assert_ok(cudaFree(NULL));
	ck_assert_ok(cudaFreeHost(NULL));
	ck_assert_nothing_live();
}
END_TEST

static void touch(void *byte)
{
	*(volatile char *)byte += 1;
}

START_TEST(touching_idle_device_memory_or_freed_memory_is_deadly)
{
	char *device = new_device_memory(100);
	char *pinned = new_pinned(100);

	ck_assert(is_deadly(touch, device));
	ck_assert(!is_deadly(touch, pinned));
	ck_assert_ok(cudaMemset(device, 0, 100));
	ck_assert_ok(cudaMemset(pinned, 0, 100));
	ck_assert_ok(cudaDeviceSynchronize());
	ck_assert(is_deadly(touch, device));
	ck_assert_ok(cudaFreeHost(pinned));
	ck_assert(is_deadly(touch, pinned));
}
END_TEST

/* A kernel on the integer that starts `past` bytes behind a block of 256. */
static void increment_past(void *past)
{
	char *block = new_device_memory(256);
	struct increment argument = {(int *)(block + *(int *)past)};
	void *arguments[] = {&argument};

	standin_register((const void *)increment, sizeof(argument), call_increment);
	cudaLaunchKernel((const void *)increment, (dim3){1, 1, 1}, (dim3){1, 1, 1},
	                 arguments, 0, NULL);
	cudaDeviceSynchronize();
}

START_TEST(a_kernel_that_leaves_its_block_is_deadly)
{
	ck_assert(!is_deadly(increment_past, &(int){252}));
	ck_assert(is_deadly(increment_past, &(int){256}));
}
END_TEST

START_TEST(pointers_are_told_apart)
{
	struct cudaPointerAttributes attributes;
	char *device = new_device_memory(100);
	char *pinned = new_pinned(100);

	ck_assert_ok(cudaPointerGetAttributes(&attributes, device + 99));
	ck_assert_int_eq(attributes.type, cudaMemoryTypeDevice);
	ck_assert_int_eq(attributes.device, 0);
	ck_assert_ptr_eq(attributes.devicePointer, device + 99);
	ck_assert_ptr_null(attributes.hostPointer);
	ck_assert_ok(cudaPointerGetAttributes(&attributes, pinned));
	ck_assert_int_eq(attributes.type, cudaMemoryTypeHost);
	ck_assert_ptr_eq(attributes.devicePointer, pinned);
	ck_assert_ptr_eq(attributes.hostPointer, pinned);
	ck_assert_ok(cudaPointerGetAttributes(&attributes, &attributes));
	ck_assert_int_eq(attributes.type, cudaMemoryTypeUnregistered);
	ck_assert_ptr_null(attributes.devicePointer);
	ck_assert_ok(cudaPointerGetAttributes(&attributes, device + 100));
	ck_assert_int_eq(attributes.type, cudaMemoryTypeUnregistered);
	ck_assert_cuda(cudaPointerGetAttributes(NULL, device), cudaErrorInvalidValue);
}
END_TEST

START_TEST(copies_go_only_in_the_direction_named)
{
	char pageable[2][16] = {{0}};
	char *device[] = {new_device_memory(16), new_device_memory(16)};
	char *pinned[] = {new_pinned(16), new_pinned(16)};
	char *const targets[] = {pageable[0], pinned[0], device[0]};
	char *const sources[] = {pageable[1], pinned[1], device[1]};

	for (int to = 0; to < 3; to++)
		for (int from = 0; from < 3; from++)
			for (int kind = 0; kind < 5; kind++) {
				bool right = kind == cudaMemcpyDefault ||
				             kind == 2 * (from == 2) + (to == 2);
				cudaError_t expected =
					right ? cudaSuccess : cudaErrorInvalidValue;

				ck_assert_cuda(
					cudaMemcpy(targets[to], sources[from], 16, kind),
					expected);
				ck_assert_cuda(cudaMemcpyAsync(targets[to], sources[from],
				                               16, kind, NULL),
				               expected);
			}
	ck_assert_cuda(cudaMemcpy(device[0], device[1], 16, 5),
	               cudaErrorInvalidMemcpyDirection);
}
END_TEST

START_TEST(copies_and_sets_that_leave_a_block_are_refused)
{
	char pageable[64] = {0};
	char *device = new_device_memory(16);
	char *pinned = new_pinned(16);

	for (int at = -1; at < 2; at++) {
		cudaError_t expected = at == 0 ? cudaSuccess : cudaErrorInvalidValue;

		ck_assert_cuda(cudaMemcpy(device + at, pageable, 16, cudaMemcpyDefault),
		               expected);
		ck_assert_cuda(cudaMemcpy(pageable, device + at, 16, cudaMemcpyDefault),
		               expected);
		ck_assert_cuda(cudaMemcpy(pinned + at, device, 16, cudaMemcpyDefault),
		               expected);
		ck_assert_cuda(cudaMemset(device + at, 0, 16), expected);
		ck_assert_cuda(cudaMemsetAsync(pinned + at, 0, 16, NULL), expected);
	}
	ck_assert_cuda(cudaMemset(device, 0, 17), cudaErrorInvalidValue);
	ck_assert_cuda(cudaMemset(pageable, 0, 1), cudaErrorInvalidValue);
	ck_assert_cuda(cudaMemcpy(device, NULL, 1, cudaMemcpyDefault),
	               cudaErrorInvalidValue);
	ck_assert_cuda(cudaMemcpy(NULL, device, 1, cudaMemcpyDefault),
	               cudaErrorInvalidValue);
	ck_assert_ok(cudaMemcpy(NULL, NULL, 0, cudaMemcpyDefault));
	ck_assert_ok(cudaMemcpyAsync(NULL, NULL, 0, cudaMemcpyDefault, NULL));
	ck_assert_ok(cudaMemset(NULL, 0, 0));
	ck_assert_ok(cudaFree(device));
	ck_assert_cuda(cudaMemcpy(pageable, device, 16, cudaMemcpyDeviceToHost),
	               cudaErrorInvalidValue);
}
END_TEST

static void add_memory(Suite *suite)
{
	TCase *tcase = tcase_create("memory");

	tcase_add_checked_fixture(tcase, NULL, standin_reset);
	tcase_add_test(tcase, new_memory_is_aligned_and_poisoned);
	tcase_add_test(tcase, no_more_memory_is_given_than_there_is);
	tcase_add_test(tcase, memory_is_freed_once_and_by_its_own_call);
	tcase_add_test(tcase, touching_idle_device_memory_or_freed_memory_is_deadly);
	tcase_add_test(tcase, a_kernel_that_leaves_its_block_is_deadly);
	tcase_add_test(tcase, pointers_are_told_apart);
	tcase_add_test(tcase, copies_go_only_in_the_direction_named);
	tcase_add_test(tcase, copies_and_sets_that_leave_a_block_are_refused);
	suite_add_tcase(suite, tcase);
}

int main(void)
{
	Suite *suite = suite_create("standin memory");

	add_memory(suite);
	return run_suite(suite);
}
