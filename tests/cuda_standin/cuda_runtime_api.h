/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_TESTS_CUDA_STANDIN_CUDA_RUNTIME_API_H
#define QUIRE_TESTS_CUDA_STANDIN_CUDA_RUNTIME_API_H
/*
 * The stand-in's cuda_runtime_api.h: of CUDA 13's runtime, what the project calls, with
 * CUDA's names, values and signatures, so that its host code compiles here and runs on
 * tests/cuda_standin/standin*.c where there is no toolkit and no device.  standin.h holds
 * what tests control, and says where the stand-in is stricter than a device.
 *
 * Source: CUDA Runtime API 13.0, the modules of the same names.
 */
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CUDART_VERSION 13000
#define CUDART_CB

/* name, value, text */
#define STANDIN_ERRORS(X)                                                                \
	X(cudaSuccess, 0, "no error")                                                    \
	X(cudaErrorInvalidValue, 1, "invalid argument")                                  \
	X(cudaErrorMemoryAllocation, 2, "out of memory")                                 \
	X(cudaErrorInitializationError, 3, "initialization error")                       \
	X(cudaErrorCudartUnloading, 4, "driver shutting down")                           \
	X(cudaErrorInvalidConfiguration, 9, "invalid configuration argument")            \
	X(cudaErrorInvalidMemcpyDirection, 21, "invalid copy direction for memcpy")      \
	X(cudaErrorStubLibrary, 34, "CUDA driver is a stub library")                     \
	X(cudaErrorInsufficientDriver, 35,                                               \
	  "CUDA driver version is insufficient for CUDA runtime version")                \
	X(cudaErrorCallRequiresNewerDriver, 36,                                          \
	  "API call is not supported in the installed CUDA driver")                      \
	X(cudaErrorDevicesUnavailable, 46,                                               \
	  "CUDA-capable device(s) is/are busy or unavailable")                           \
	X(cudaErrorInvalidDeviceFunction, 98, "invalid device function")                 \
	X(cudaErrorNoDevice, 100, "no CUDA-capable device is detected")                  \
	X(cudaErrorInvalidDevice, 101, "invalid device ordinal")                         \
	X(cudaErrorInvalidKernelImage, 200, "device kernel image is invalid")            \
	X(cudaErrorDeviceUninitialized, 201, "invalid device context")                   \
	X(cudaErrorNoKernelImageForDevice, 209,                                          \
	  "no kernel image is available for execution on the device")                    \
	X(cudaErrorECCUncorrectable, 214, "uncorrectable ECC error encountered")         \
	X(cudaErrorUnsupportedPtxVersion, 222,                                           \
	  "the provided PTX was compiled with an unsupported toolchain.")                \
	X(cudaErrorOperatingSystem, 304,                                                 \
	  "OS call failed or operation not supported on this OS")                        \
	X(cudaErrorInvalidResourceHandle, 400, "invalid resource handle")                \
	X(cudaErrorIllegalState, 401,                                                    \
	  "the operation cannot be performed in the present state")                      \
	X(cudaErrorNotReady, 600, "device not ready")                                    \
	X(cudaErrorIllegalAddress, 700, "an illegal memory access was encountered")      \
	X(cudaErrorLaunchOutOfResources, 701, "too many resources requested for launch") \
	X(cudaErrorLaunchTimeout, 702, "the launch timed out and was terminated")        \
	X(cudaErrorContextIsDestroyed, 709, "context is destroyed")                      \
	X(cudaErrorAssert, 710, "device-side assert triggered")                          \
	X(cudaErrorHostMemoryAlreadyRegistered, 712,                                     \
	  "part or all of the requested memory range is already mapped")                 \
	X(cudaErrorHostMemoryNotRegistered, 713,                                         \
	  "pointer does not correspond to a registered memory region")                   \
	X(cudaErrorHardwareStackError, 714, "hardware stack error")                      \
	X(cudaErrorIllegalInstruction, 715, "an illegal instruction was encountered")    \
	X(cudaErrorMisalignedAddress, 716, "misaligned address")                         \
	X(cudaErrorInvalidAddressSpace, 717,                                             \
	  "operation not supported on global/shared address space")                      \
	X(cudaErrorInvalidPc, 718, "invalid program counter")                            \
	X(cudaErrorLaunchFailure, 719, "unspecified launch failure")                     \
	X(cudaErrorNotPermitted, 800, "operation not permitted")                         \
	X(cudaErrorNotSupported, 801, "operation not supported")                         \
	X(cudaErrorSystemNotReady, 802, "system not yet initialized")                    \
	X(cudaErrorSystemDriverMismatch, 803,                                            \
	  "system has unsupported display driver / cuda driver combination")             \
	X(cudaErrorCompatNotSupportedOnDevice, 804,                                      \
	  "forward compatibility was attempted on non supported HW")                     \
	X(cudaErrorStreamCaptureUnsupported, 900,                                        \
	  "operation not permitted when stream is capturing")                            \
	X(cudaErrorStreamCaptureInvalidated, 901,                                        \
	  "operation failed due to a previous error during capture")                     \
	X(cudaErrorUnknown, 999, "unknown error")

#define STANDIN_ENUMERATOR(name, value, text) name = value,
enum cudaError { STANDIN_ERRORS(STANDIN_ENUMERATOR) };
#undef STANDIN_ENUMERATOR
typedef enum cudaError cudaError_t;

typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;
typedef struct CUgraphNode_st *cudaGraphNode_t;
typedef struct cudaGraphEdgeData_st cudaGraphEdgeData;
typedef void(CUDART_CB *cudaHostFn_t)(void *userData);

#define cudaStreamDefault     0x00
#define cudaStreamNonBlocking 0x01
#define cudaStreamLegacy      ((cudaStream_t)0x1)
#define cudaStreamPerThread   ((cudaStream_t)0x2)

#define cudaEventDefault        0x00
#define cudaEventBlockingSync   0x01
#define cudaEventDisableTiming  0x02
#define cudaEventInterprocess   0x04
#define cudaEventRecordDefault  0x00
#define cudaEventRecordExternal 0x01
#define cudaEventWaitDefault    0x00
#define cudaEventWaitExternal   0x01

#define cudaHostAllocDefault       0x00
#define cudaHostAllocPortable      0x01
#define cudaHostAllocMapped        0x02
#define cudaHostAllocWriteCombined 0x04

#define cudaCpuDeviceId     ((int)-1)
#define cudaInvalidDeviceId ((int)-2)

enum cudaMemcpyKind {
	cudaMemcpyHostToHost = 0,
	cudaMemcpyHostToDevice = 1,
	cudaMemcpyDeviceToHost = 2,
	cudaMemcpyDeviceToDevice = 3,
	cudaMemcpyDefault = 4
};

enum cudaMemoryType {
	cudaMemoryTypeUnregistered = 0,
	cudaMemoryTypeHost = 1,
	cudaMemoryTypeDevice = 2,
	cudaMemoryTypeManaged = 3
};

struct cudaPointerAttributes {
	enum cudaMemoryType type;
	int device;
	void *devicePointer;
	void *hostPointer;
	long reserved[8];
};

enum cudaMemLocationType {
	cudaMemLocationTypeInvalid = 0,
	cudaMemLocationTypeNone = 0,
	cudaMemLocationTypeDevice = 1,
	cudaMemLocationTypeHost = 2,
	cudaMemLocationTypeHostNuma = 3,
	cudaMemLocationTypeHostNumaCurrent = 4
};

struct cudaMemLocation {
	enum cudaMemLocationType type;
	int id;
};

enum cudaMemcpyFlags {
	cudaMemcpyFlagDefault = 0x0,
	cudaMemcpyFlagPreferOverlapWithCompute = 0x1
};

enum cudaMemcpySrcAccessOrder {
	cudaMemcpySrcAccessOrderInvalid = 0x0,
	cudaMemcpySrcAccessOrderStream = 0x1,
	cudaMemcpySrcAccessOrderDuringApiCall = 0x2,
	cudaMemcpySrcAccessOrderAny = 0x3,
	cudaMemcpySrcAccessOrderMax = 0x7FFFFFFF
};

struct cudaMemcpyAttributes {
	enum cudaMemcpySrcAccessOrder srcAccessOrder;
	struct cudaMemLocation srcLocHint;
	struct cudaMemLocation dstLocHint;
	unsigned int flags;
};

enum cudaStreamCaptureMode {
	cudaStreamCaptureModeGlobal = 0,
	cudaStreamCaptureModeThreadLocal = 1,
	cudaStreamCaptureModeRelaxed = 2
};

enum cudaStreamCaptureStatus {
	cudaStreamCaptureStatusNone = 0,
	cudaStreamCaptureStatusActive = 1,
	cudaStreamCaptureStatusInvalidated = 2
};

enum cudaDeviceAttr {
	cudaDevAttrMaxThreadsPerBlock = 1,
	cudaDevAttrMaxBlockDimX = 2,
	cudaDevAttrMaxBlockDimY = 3,
	cudaDevAttrMaxBlockDimZ = 4,
	cudaDevAttrMaxGridDimX = 5,
	cudaDevAttrMaxGridDimY = 6,
	cudaDevAttrMaxGridDimZ = 7,
	cudaDevAttrMaxSharedMemoryPerBlock = 8,
	cudaDevAttrWarpSize = 10,
	cudaDevAttrMultiProcessorCount = 16,
	cudaDevAttrIntegrated = 18,
	cudaDevAttrCanMapHostMemory = 19,
	cudaDevAttrComputeMode = 20,
	cudaDevAttrConcurrentKernels = 31,
	cudaDevAttrL2CacheSize = 38,
	cudaDevAttrMaxThreadsPerMultiProcessor = 39,
	cudaDevAttrAsyncEngineCount = 40,
	cudaDevAttrUnifiedAddressing = 41,
	cudaDevAttrComputeCapabilityMajor = 75,
	cudaDevAttrComputeCapabilityMinor = 76,
	cudaDevAttrStreamPrioritiesSupported = 78,
	cudaDevAttrMaxSharedMemoryPerMultiprocessor = 81,
	cudaDevAttrManagedMemory = 83,
	cudaDevAttrPageableMemoryAccess = 88,
	cudaDevAttrConcurrentManagedAccess = 89,
	cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,
	cudaDevAttrMaxBlocksPerMultiprocessor = 106,
	cudaDevAttrMemoryPoolsSupported = 115
};

typedef struct uint3 {
	unsigned int x, y, z;
} uint3;

typedef struct dim3 {
	unsigned int x, y, z;
#ifdef __cplusplus
	constexpr dim3(unsigned int vx = 1, unsigned int vy = 1, unsigned int vz = 1)
	    : x(vx), y(vy), z(vz)
	{
	}
#endif
} dim3;

const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);

cudaError_t cudaDriverGetVersion(int *driverVersion);
cudaError_t cudaRuntimeGetVersion(int *runtimeVersion);
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device);
cudaError_t cudaDeviceGetStreamPriorityRange(int *leastPriority, int *greatestPriority);
cudaError_t cudaDeviceSynchronize(void);

cudaError_t cudaMalloc(void **devPtr, size_t size);
cudaError_t cudaFree(void *devPtr);
cudaError_t cudaHostAlloc(void **pHost, size_t size, unsigned int flags);
cudaError_t cudaFreeHost(void *ptr);
cudaError_t cudaMemGetInfo(size_t *free, size_t *total);
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes,
                                     const void *ptr);

cudaError_t cudaMemcpy(void *dst, const void *src, size_t count,
                       enum cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t count,
                            enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemcpyBatchAsync(void *const *dsts, const void *const *srcs,
                                 const size_t *sizes, size_t count,
                                 struct cudaMemcpyAttributes *attrs, size_t *attrsIdxs,
                                 size_t numAttrs, cudaStream_t stream);
cudaError_t cudaMemset(void *devPtr, int value, size_t count);
cudaError_t cudaMemsetAsync(void *devPtr, int value, size_t count, cudaStream_t stream);

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *pStream, unsigned int flags,
                                         int priority);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                unsigned int flags);
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *pGraph);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream,
                                  enum cudaStreamCaptureStatus *pCaptureStatus);
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream,
                                     enum cudaStreamCaptureStatus *captureStatus_out,
                                     unsigned long long *id_out, cudaGraph_t *graph_out,
                                     const cudaGraphNode_t **dependencies_out,
                                     const cudaGraphEdgeData **edgeData_out,
                                     size_t *numDependencies_out);

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *pGraphExec, cudaGraph_t graph,
                                 unsigned long long flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t graphExec, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graphExec);

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end);

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *userData);
cudaError_t cudaLaunchKernel(const void *func, dim3 gridDim, dim3 blockDim, void **args,
                             size_t sharedMem, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
