/* SPDX-License-Identifier: MIT */
/* Versions, devices and their attributes, the names of errors. */
#include "tests/cuda_standin/standin_impl.h"

/* Those of a small sm_90 chip. */
static const struct {
	enum cudaDeviceAttr attribute;
	int value;
} attributes[] = {
	{cudaDevAttrMaxThreadsPerBlock, 1024},
	{cudaDevAttrMaxBlockDimX, 1024},
	{cudaDevAttrMaxBlockDimY, 1024},
	{cudaDevAttrMaxBlockDimZ, 64},
	{cudaDevAttrMaxGridDimX, 0x7fffffff},
	{cudaDevAttrMaxGridDimY, 65535},
	{cudaDevAttrMaxGridDimZ, 65535},
	{cudaDevAttrMaxSharedMemoryPerBlock, 48 << 10},
	{cudaDevAttrWarpSize, 32},
	{cudaDevAttrMultiProcessorCount, 4},
	{cudaDevAttrIntegrated, 0},
	{cudaDevAttrCanMapHostMemory, 1},
	{cudaDevAttrComputeMode, 0},
	{cudaDevAttrConcurrentKernels, 1},
	{cudaDevAttrL2CacheSize, 4 << 20},
	{cudaDevAttrMaxThreadsPerMultiProcessor, 2048},
	{cudaDevAttrAsyncEngineCount, 2},
	{cudaDevAttrUnifiedAddressing, 1},
	{cudaDevAttrComputeCapabilityMajor, 9},
	{cudaDevAttrComputeCapabilityMinor, 0},
	{cudaDevAttrStreamPrioritiesSupported, 1},
	{cudaDevAttrMaxSharedMemoryPerMultiprocessor, 228 << 10},
	{cudaDevAttrManagedMemory, 0},
	{cudaDevAttrPageableMemoryAccess, 0},
	{cudaDevAttrConcurrentManagedAccess, 0},
	{cudaDevAttrMaxSharedMemoryPerBlockOptin, 227 << 10},
	{cudaDevAttrMaxBlocksPerMultiprocessor, 32},
	{cudaDevAttrMemoryPoolsSupported, 0},
};

#define NUM_ATTRIBUTES (sizeof(attributes) / sizeof(attributes[0]))

const char *cudaGetErrorName(cudaError_t error)
{
#define STANDIN_CASE(name, value, text) \
	case name:                      \
		return #name;
	switch (error) {
		STANDIN_ERRORS(STANDIN_CASE)
	}
#undef STANDIN_CASE
	return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error)
{
#define STANDIN_CASE(name, value, text) \
	case name:                      \
		return text;
	switch (error) {
		STANDIN_ERRORS(STANDIN_CASE)
	}
#undef STANDIN_CASE
	return "unrecognized error code";
}

cudaError_t cudaRuntimeGetVersion(int *version_out)
{
	cudaError_t error = standin_enter(STANDIN_cudaRuntimeGetVersion);

	if (error != cudaSuccess)
		return error;
	if (version_out == NULL)
		return standin_answer(cudaErrorInvalidValue);
	*version_out = CUDART_VERSION;
	return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count_out)
{
	cudaError_t error = standin_enter(STANDIN_cudaGetDeviceCount);

	if (error != cudaSuccess)
		return error;
	if (count_out == NULL)
		return standin_answer(cudaErrorInvalidValue);
	*count_out = standin_num_devices();
	return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device_out)
{
	cudaError_t error = standin_enter(STANDIN_cudaGetDevice);

	if (error != cudaSuccess)
		return error;
	if (device_out == NULL)
		return standin_answer(cudaErrorInvalidValue);
	*device_out = standin_device();
	return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value_out, enum cudaDeviceAttr attribute,
                                   int device)
{
	cudaError_t error = standin_enter(STANDIN_cudaDeviceGetAttribute);

	if (error != cudaSuccess)
		return error;
	if (device < 0 || device >= standin_num_devices())
		return standin_answer(cudaErrorInvalidDevice);
	for (size_t i = 0; i < NUM_ATTRIBUTES && value_out != NULL; i++) {
		if (attributes[i].attribute != attribute)
			continue;
		*value_out = attributes[i].value;
		return cudaSuccess;
	}
	return standin_answer(cudaErrorInvalidValue);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least_out, int *greatest_out)
{
	cudaError_t error = standin_enter(STANDIN_cudaDeviceGetStreamPriorityRange);

	if (error != cudaSuccess)
		return error;
	if (least_out != NULL)
		*least_out = 0;
	if (greatest_out != NULL)
		*greatest_out = -5;
	return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void)
{
	cudaError_t error = standin_enter(STANDIN_cudaDeviceSynchronize);

	if (error != cudaSuccess)
		return error;
	if (standin_spoil_capture(NULL))
		return standin_answer(cudaErrorStreamCaptureUnsupported);
	standin_join_device(standin_device());
	return standin_answer(standin_sticky());
}
