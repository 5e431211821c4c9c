/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_KERNELS_DLPACK_H
#define QUIRE_KERNELS_DLPACK_H
/*
 * DLPack's structs: its own header where there is one, else the same declarations.
 *
 * Source: DLPack, dlpack.h; the layout is the same in all versions since 0.5.
 */
/* A copy of it under another name, as PyTorch has one, may be there already. */
#if !defined(DLPACK_DLPACK_H_) && defined(__has_include)
#if __has_include(<dlpack/dlpack.h>)
#include <dlpack/dlpack.h>
#endif
#endif

#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
	kDLCPU = 1,
	kDLCUDA = 2,
} DLDeviceType;

typedef struct {
	DLDeviceType device_type;
	int device_id;
} DLDevice;

typedef enum {
	kDLFloat = 2U,
	kDLBfloat = 4U,
} DLDataTypeCode;

typedef struct {
	uint8_t code;
	uint8_t bits;
	uint16_t lanes;
} DLDataType;

typedef struct {
	void *data;
	DLDevice device;
	int32_t ndim;
	DLDataType dtype;
	int64_t *shape;
	int64_t *strides; /* in elements */
	uint64_t byte_offset;
} DLTensor;

typedef struct DLManagedTensor {
	DLTensor dl_tensor;
	void *manager_ctx;
	void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;

#ifdef __cplusplus
}
#endif
#endif

/* Codes that older headers do not have. */
#define QUIRE_DLPACK_FLOAT8_E4M3FN 10
#define QUIRE_DLPACK_FLOAT8_E5M2   12

#endif
