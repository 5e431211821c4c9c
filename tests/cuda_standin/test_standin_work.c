/* SPDX-License-Identifier: MIT */
/* The stand-in's kernels, and copies in batches. */
#include "config.h"

#include "tests/cuda_standin/standin_check.h"
#include "tests/run_suite.h"

#include <cuda_runtime.h>

/* A kernel that counts in every cell how often its thread ran, and adds the argument. */
struct counting {
	int *cells;
	int by;
};

static void count(struct counting counting)
{
	unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
	unsigned thread =
		(threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;

	counting.cells[block * blockDim.x * blockDim.y * blockDim.z + thread] +=
		counting.by;
}

static void call_count(const void *function, const void *argument)
{
	((void (*)(struct counting))function)(*(const struct counting *)argument);
}

static cudaError_t launch_count(struct counting counting, dim3 grid, dim3 block,
                                cudaStream_t stream)
{
	void *arguments[] = {&counting};

	return cudaLaunchKernel((const void *)count, grid, block, arguments, 0, stream);
}

START_TEST(a_kernel_runs_once_for_each_thread_with_the_argument_of_the_launch)
{
	enum { N = 2 * 3 * 5 * 7 * 2 * 3 };
	cudaStream_t stream = new_stream();
	int *cells = new_device_memory(N * sizeof(int));
	struct counting counting = {cells, 4};
	void *arguments[] = {&counting};
	int copy[N];
	sem_t gate;

	standin_register((const void *)count, sizeof(struct counting), call_count);
	ck_assert_ok(cudaMemsetAsync(cells, 0, N * sizeof(int), stream));
	close_gate(stream, &gate);
	ck_assert_ok(cudaLaunchKernel((const void *)count, (dim3){2, 3, 5},
	                              (dim3){7, 2, 3}, arguments, 0, stream));
	/* Copied at the launch: this is not seen. */
	counting.by = 100;
	sem_post(&gate);
	finish(stream);
	ck_assert_ok(cudaMemcpy(copy, cells, sizeof(copy), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++)
		ck_assert_int_eq(copy[i], 4);
}
END_TEST

START_TEST(grids_and_blocks_that_no_device_takes_are_refused)
{
	const dim3 one = {1, 1, 1};
	const dim3 wrong_grids[] = {{0, 1, 1},          {1, 0, 1},     {1, 1, 0},
	                            {0x80000000, 1, 1}, {1, 65536, 1}, {1, 1, 65536}};
	const dim3 wrong_blocks[] = {{0, 1, 1},    {1, 0, 1},  {1, 1, 0},  {1025, 1, 1},
	                             {1, 1025, 1}, {1, 1, 65}, {32, 33, 1}};
	struct counting counting = {new_device_memory(4096), 1};
	void *arguments[] = {&counting};

	ck_assert_cuda(launch_count(counting, one, one, NULL),
	               cudaErrorInvalidDeviceFunction);
	standin_register((const void *)count, sizeof(struct counting), call_count);
	ck_assert_ok(launch_count(counting, one, (dim3){32, 32, 1}, NULL));
	ck_assert_ok(launch_count(counting, one, (dim3){1, 16, 64}, NULL));
	for (size_t i = 0; i < sizeof(wrong_grids) / sizeof(wrong_grids[0]); i++)
		ck_assert_cuda(launch_count(counting, wrong_grids[i], one, NULL),
		               cudaErrorInvalidConfiguration);
	for (size_t i = 0; i < sizeof(wrong_blocks) / sizeof(wrong_blocks[0]); i++)
		ck_assert_cuda(launch_count(counting, one, wrong_blocks[i], NULL),
		               cudaErrorInvalidConfiguration);
	ck_assert_cuda(cudaLaunchKernel(NULL, one, one, arguments, 0, NULL),
	               cudaErrorInvalidDeviceFunction);
	ck_assert_cuda(cudaLaunchKernel((const void *)count, one, one, arguments,
	                                (48 << 10) + 1, NULL),
	               cudaErrorInvalidValue);
	ck_assert_ok(cudaDeviceSynchronize());
}
END_TEST

START_TEST(kernels_not_registered_by_themselves_are_called_as_those_of_no_name)
{
	int *cells = new_device_memory(sizeof(int));
	struct counting counting = {cells, 3};
	const dim3 one = {1, 1, 1};
	int copy = 0;

	ck_assert_ok(cudaMemset(cells, 0, sizeof(int)));
	standin_register(NULL, sizeof(struct counting), call_count);
	ck_assert_ok(launch_count(counting, one, one, NULL));
	ck_assert_ok(cudaMemcpy(&copy, cells, sizeof(int), cudaMemcpyDeviceToHost));
	ck_assert_int_eq(copy, 3);
}
END_TEST

/* Three copies in a row of pinned integers; `order` is the first's source order. */
static cudaError_t copy_batch(int *pinned, const size_t *sizes, size_t *first,
                              size_t num_attributes, enum cudaMemcpySrcAccessOrder order,
                              cudaStream_t stream)
{
	void *targets[] = {pinned + 1, pinned + 2, pinned + 3};
	const void *sources[] = {pinned, pinned + 1, pinned + 2};
	struct cudaMemcpyAttributes attributes[] = {
		{.srcAccessOrder = order},
		{.srcAccessOrder = cudaMemcpySrcAccessOrderStream},
	};

	return cudaMemcpyBatchAsync(targets, sources, sizes, 3, attributes, first,
	                            num_attributes, stream);
}

START_TEST(copies_of_a_batch_run_last_to_first_and_read_their_source_when_told)
{
	const size_t sizes[] = {4, 4, 4};
	size_t first[] = {0, 1};
	cudaStream_t stream = new_stream();
	int *pinned = new_pinned(4 * sizeof(int));
	sem_t gate;

	for (int at_call = 0; at_call < 2; at_call++) {
		for (int i = 0; i < 4; i++)
			pinned[i] = i + 1;
		close_gate(stream, &gate);
		ck_assert_ok(copy_batch(pinned, sizes, first, 2,
		                        at_call ? cudaMemcpySrcAccessOrderDuringApiCall
		                                : cudaMemcpySrcAccessOrderStream,
		                        stream));
		pinned[0] = 9;
		pinned[2] = 7;
		sem_post(&gate);
		finish(stream);
		ck_assert_int_eq(pinned[0], 9);
		ck_assert_int_eq(pinned[1], at_call ? 1 : 9);
		ck_assert_int_eq(pinned[2], 2);
		ck_assert_int_eq(pinned[3], 7);
	}
}
END_TEST

START_TEST(batches_with_wrong_attributes_sizes_or_streams_are_refused)
{
	const enum cudaMemcpySrcAccessOrder order = cudaMemcpySrcAccessOrderAny;
	const size_t sizes[] = {4, 4, 4};
	const size_t empty[] = {4, 0, 4};
	const size_t too_long[] = {4, 4, 8};
	cudaStream_t stream = new_stream();
	int *pinned = new_pinned(4 * sizeof(int));

	ck_assert_ok(copy_batch(pinned, sizes, (size_t[]){0, 2}, 2, order, stream));
	ck_assert_cuda(copy_batch(pinned, sizes, (size_t[]){0, 2}, 2, order, NULL),
	               cudaErrorInvalidValue);
	ck_assert_cuda(copy_batch(pinned, sizes, (size_t[]){1, 2}, 2, order, stream),
	               cudaErrorInvalidValue);
	ck_assert_cuda(copy_batch(pinned, sizes, (size_t[]){0, 0}, 2, order, stream),
	               cudaErrorInvalidValue);
	ck_assert_cuda(copy_batch(pinned, sizes, (size_t[]){0, 3}, 2, order, stream),
	               cudaErrorInvalidValue);
	ck_assert_cuda(copy_batch(pinned, sizes, (size_t[]){0}, 0, order, stream),
	               cudaErrorInvalidValue);
	ck_assert_cuda(copy_batch(pinned, sizes, (size_t[]){0}, 1,
	                          cudaMemcpySrcAccessOrderInvalid, stream),
	               cudaErrorInvalidValue);
	ck_assert_cuda(copy_batch(pinned, empty, (size_t[]){0}, 1, order, stream),
	               cudaErrorInvalidValue);
	ck_assert_cuda(copy_batch(pinned, too_long, (size_t[]){0}, 1, order, stream),
	               cudaErrorInvalidValue);
	finish(stream);
}
END_TEST

static void add_work(Suite *suite)
{
	TCase *tcase = tcase_create("work");

	tcase_add_checked_fixture(tcase, NULL, standin_reset);
	tcase_add_test(
		tcase,
		a_kernel_runs_once_for_each_thread_with_the_argument_of_the_launch);
	tcase_add_test(tcase, grids_and_blocks_that_no_device_takes_are_refused);
	tcase_add_test(
		tcase,
		kernels_not_registered_by_themselves_are_called_as_those_of_no_name);
	tcase_add_test(
		tcase,
		copies_of_a_batch_run_last_to_first_and_read_their_source_when_told);
	tcase_add_test(tcase, batches_with_wrong_attributes_sizes_or_streams_are_refused);
	suite_add_tcase(suite, tcase);
}

int main(void)
{
	Suite *suite = suite_create("standin work");

	add_work(suite);
	return run_suite(suite);
}
