/* SPDX-License-Identifier: MIT */
/* The stand-in's captures and graphs. */
#include "config.h"

#include "tests/cuda_standin/standin_check.h"
#include "tests/run_suite.h"

#include <string.h>

static void begin(cudaStream_t stream)
{
	ck_assert_ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
}

static void expect_status(cudaStream_t stream, enum cudaStreamCaptureStatus wanted)
{
	enum cudaStreamCaptureStatus status;

	ck_assert_ok(cudaStreamIsCapturing(stream, &status));
	ck_assert_int_eq(status, wanted);
	ck_assert_ok(
		cudaStreamGetCaptureInfo(stream, &status, NULL, NULL, NULL, NULL, NULL));
	ck_assert_int_eq(status, wanted);
}

static void append_letter(void *text)
{
	size_t length = strlen(text);

	((char *)text)[length] = (char)('a' + length);
}

START_TEST(what_is_captured_runs_at_each_launch_and_not_before)
{
	cudaStream_t stream = new_stream();
	cudaStream_t other = new_stream();
	char *device = new_device_memory(8);
	char *pinned = new_pinned(8);
	char text[8] = "";
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	memset(pinned, 1, 8);
	expect_status(stream, cudaStreamCaptureStatusNone);
	begin(stream);
	expect_status(stream, cudaStreamCaptureStatusActive);
	expect_status(other, cudaStreamCaptureStatusNone);
	ck_assert_ok(cudaMemsetAsync(device, 5, 8, stream));
	ck_assert_ok(cudaMemcpyAsync(pinned, device, 4, cudaMemcpyDeviceToHost, stream));
	ck_assert_ok(cudaLaunchHostFunc(stream, append_letter, text));
	ck_assert_ok(cudaStreamEndCapture(stream, &graph));
	expect_status(stream, cudaStreamCaptureStatusNone);
	ck_assert_ok(cudaGraphInstantiate(&exec, graph, 0));
	ck_assert_int_eq(standin_live().graphs, 2);
	ck_assert_ok(cudaGraphDestroy(graph));
	ck_assert_cuda(cudaGraphDestroy(graph), cudaErrorInvalidValue);
	finish(stream);
	ck_assert_int_eq(pinned[0], 1);
	ck_assert_str_eq(text, "");
	ck_assert_ok(cudaGraphLaunch(exec, stream));
	ck_assert_ok(cudaGraphLaunch(exec, stream));
	finish(stream);
	ck_assert(memcmp(pinned, "\5\5\5\5\1\1\1\1", 8) == 0);
	ck_assert_str_eq(text, "ab");
	/* Also there, and after it was destroyed. */
	ck_assert_ok(cudaGraphLaunch(exec, other));
	ck_assert_ok(cudaGraphExecDestroy(exec));
	finish(other);
	ck_assert_str_eq(text, "abc");
	ck_assert_ok(cudaFree(device));
	ck_assert_ok(cudaFreeHost(pinned));
	ck_assert_ok(cudaStreamDestroy(stream));
	ck_assert_ok(cudaStreamDestroy(other));
	ck_assert_nothing_live();
}
END_TEST

START_TEST(a_graph_launched_while_another_is_captured_becomes_part_of_it)
{
	cudaStream_t stream = new_stream();
	char text[8] = "";
	cudaGraph_t graph[2];
	cudaGraphExec_t exec[2];

	for (int i = 0; i < 2; i++) {
		begin(stream);
		if (i == 1)
			ck_assert_ok(cudaGraphLaunch(exec[0], stream));
		ck_assert_ok(cudaLaunchHostFunc(stream, append_letter, text));
		ck_assert_ok(cudaLaunchHostFunc(stream, append_letter, text));
		ck_assert_ok(cudaStreamEndCapture(stream, &graph[i]));
		ck_assert_ok(cudaGraphInstantiate(&exec[i], graph[i], 0));
	}
	ck_assert_ok(cudaGraphLaunch(exec[1], stream));
	finish(stream);
	ck_assert_str_eq(text, "abcd");
}
END_TEST

/* What may not be done while a stream captures. */
static cudaError_t forbidden(int number, cudaStream_t stream, void *device)
{
	static char pageable[8];
	const void *source = device;
	size_t bytes = 8, first = 0;
	struct cudaMemcpyAttributes attributes = {
		.srcAccessOrder = cudaMemcpySrcAccessOrderStream,
	};
	void *memory = NULL;

	switch (number) {
	case 0:
		return cudaStreamSynchronize(stream);
	case 1:
		return cudaStreamQuery(stream);
	case 2:
		return cudaMalloc(&memory, 8);
	case 3:
		return cudaHostAlloc(&memory, 8, 0);
	case 4:
		return cudaDeviceSynchronize();
	case 5:
		return cudaEventRecord(new_event(), stream);
	case 6:
		return cudaStreamWaitEvent(stream, new_event(), 0);
	case 7:
		return cudaMemcpyAsync(device, pageable, 8, cudaMemcpyDefault, stream);
	case 8:
		return cudaMemcpyAsync(pageable, device, 8, cudaMemcpyDefault, stream);
	default:
		memory = (char *)device + 8;
		return cudaMemcpyBatchAsync(&memory, &source, &bytes, 1, &attributes,
		                            &first, 1, stream);
	}
}
#define NUM_FORBIDDEN 10

START_TEST(what_is_not_permitted_spoils_the_capture_but_not_the_stream)
{
	cudaStream_t stream = new_stream();
	void *device = new_device_memory(16);
	cudaGraph_t graph = (cudaGraph_t)device;

	begin(stream);
	ck_assert_ok(cudaMemsetAsync(device, 1, 16, stream));
	ck_assert_cuda(forbidden(_i, stream, device), cudaErrorStreamCaptureUnsupported);
	expect_status(stream, cudaStreamCaptureStatusInvalidated);
	ck_assert_cuda(cudaMemsetAsync(device, 2, 16, stream),
	               cudaErrorStreamCaptureInvalidated);
	ck_assert_cuda(cudaStreamEndCapture(stream, &graph),
	               cudaErrorStreamCaptureInvalidated);
	ck_assert_ptr_null(graph);
	ck_assert_int_eq(standin_live().graphs, 0);
	expect_status(stream, cudaStreamCaptureStatusNone);
	ck_assert_ok(forbidden(_i, stream, device));
	finish(stream);
	/* And the next capture is a good one. */
	begin(stream);
	ck_assert_ok(cudaStreamEndCapture(stream, &graph));
	ck_assert_ok(cudaGraphDestroy(graph));
}
END_TEST

START_TEST(calls_that_do_not_fit_a_capture_are_refused)
{
	cudaStream_t stream = new_stream();
	cudaStream_t blocking;
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	ck_assert_ok(cudaStreamCreateWithPriority(&blocking, cudaStreamDefault, 0));
	ck_assert_cuda(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeGlobal),
	               cudaErrorStreamCaptureUnsupported);
	ck_assert_cuda(cudaStreamBeginCapture(NULL, cudaStreamCaptureModeGlobal),
	               cudaErrorStreamCaptureUnsupported);
	ck_assert_cuda(cudaStreamBeginCapture(stream, (enum cudaStreamCaptureMode)3),
	               cudaErrorInvalidValue);
	ck_assert_cuda(cudaStreamEndCapture(stream, &graph), cudaErrorIllegalState);
	begin(stream);
	ck_assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal),
	               cudaErrorIllegalState);
	ck_assert_ok(cudaStreamEndCapture(stream, &graph));
	ck_assert_cuda(cudaGraphInstantiate(&exec, NULL, 0), cudaErrorInvalidValue);
	ck_assert_cuda(cudaGraphInstantiate(&exec, graph, ~0ULL), cudaErrorInvalidValue);
	ck_assert_cuda(cudaGraphLaunch((cudaGraphExec_t)graph, stream),
	               cudaErrorInvalidValue);
	ck_assert_cuda(cudaGraphExecDestroy((cudaGraphExec_t)graph),
	               cudaErrorInvalidValue);
	ck_assert_ok(cudaGraphInstantiate(&exec, graph, 0));
	ck_assert_ok(cudaGraphLaunch(exec, stream));
	ck_assert_ok(cudaGraphDestroy(graph));
	ck_assert_ok(cudaGraphExecDestroy(exec));
	/* A stream that captures can be destroyed. */
	begin(stream);
	ck_assert_ok(cudaStreamDestroy(stream));
	ck_assert_ok(cudaStreamDestroy(blocking));
	ck_assert_nothing_live();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("standin_graph");
	TCase *tcase = tcase_create("graphs");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, standin_reset, standin_reset);
	tcase_add_test(tcase, what_is_captured_runs_at_each_launch_and_not_before);
	tcase_add_test(tcase,
	               a_graph_launched_while_another_is_captured_becomes_part_of_it);
	tcase_add_loop_test(tcase,
	                    what_is_not_permitted_spoils_the_capture_but_not_the_stream,
	                    0, NUM_FORBIDDEN);
	tcase_add_test(tcase, calls_that_do_not_fit_a_capture_are_refused);
	return run_suite(suite);
}
