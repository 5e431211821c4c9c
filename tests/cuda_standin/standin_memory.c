/* SPDX-License-Identifier: MIT */
/*
 * Memory, in blocks of whole pages with a page behind each that nobody may touch; a block
 * ends at that page, as near as its alignment allows.  Device memory is closed to all
 * while no operation runs.
 */
#include "tests/cuda_standin/standin_impl.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define POISON     0xDB
#define ALIGNMENT  256
#define PAGE_BYTES ((size_t)4096)

struct block {
	struct block *next;
	enum standin_place place;
	int device;
	char *pointer;
	size_t bytes;
	/* What is mapped, less the last page. */
	char *pages;
	size_t pages_bytes;
};

/* Under the lock. */
static struct block *blocks;
static bool is_open;

static void protect(const struct block *block, int protection)
{
	if (block->place == STANDIN_DEVICE)
		mprotect(block->pages, block->pages_bytes, protection);
}

static void protect_all(int protection)
{
	for (const struct block *block = blocks; block != NULL; block = block->next)
		protect(block, protection);
}

void standin_open_memory(void)
{
	if (!is_open)
		protect_all(PROT_READ | PROT_WRITE);
	is_open = true;
}

void standin_close_memory(void)
{
	if (is_open)
		protect_all(PROT_NONE);
	is_open = false;
}

static void unmap(struct block *block)
{
	munmap(block->pages, block->pages_bytes + PAGE_BYTES);
	free(block);
}

/* Called under the lock. */
static size_t used_bytes(enum standin_place place, int device)
{
	size_t used = 0;

	for (const struct block *block = blocks; block != NULL; block = block->next)
		if (block->place == place &&
		    (block->device == device || place == STANDIN_PINNED))
			used += block->bytes;
	return used;
}

static struct block *map_block(enum standin_place place, size_t bytes)
{
	struct block *block = malloc(sizeof(*block));
	size_t aligned = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	size_t pages_bytes = (aligned + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
	char *pages = mmap(NULL, pages_bytes + PAGE_BYTES, PROT_NONE,
	                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (block == NULL || pages == MAP_FAILED ||
	    mprotect(pages, pages_bytes, PROT_READ | PROT_WRITE) != 0) {
		if (pages != MAP_FAILED)
			munmap(pages, pages_bytes + PAGE_BYTES);
		free(block);
		return NULL;
	}
	*block = (struct block){
		.place = place,
		.device = standin_device(),
		.pointer = pages + pages_bytes - aligned,
		.bytes = bytes,
		.pages = pages,
		.pages_bytes = pages_bytes,
	};
	return block;
}

static cudaError_t allocate(enum standin_place place, void **pointer_out, size_t bytes)
{
	struct block *block = NULL;
	void *pointer = NULL;
	size_t used;

	if (pointer_out == NULL)
		return cudaErrorInvalidValue;
	if (bytes == 0) {
		*pointer_out = NULL;
		return cudaSuccess;
	}
	standin_lock();
	used = used_bytes(place, standin_device());
	if (used <= standin_memory_max() && bytes <= standin_memory_max() - used)
		block = map_block(place, bytes);
	if (block != NULL) {
		memset(block->pages, POISON, block->pages_bytes);
		if (!is_open)
			protect(block, PROT_NONE);
		block->next = blocks;
		blocks = block;
		pointer = block->pointer;
	}
	standin_unlock();
	if (pointer == NULL)
		return cudaErrorMemoryAllocation;
	*pointer_out = pointer;
	return cudaSuccess;
}

/* Called under the lock: where the pointer to a block stands; *it is NULL without one. */
static struct block **find_block(enum standin_place place, const void *pointer)
{
	struct block **block = &blocks;

	while (*block != NULL &&
	       !((*block)->place == place && (*block)->pointer == (const char *)pointer))
		block = &(*block)->next;
	return block;
}

static cudaError_t release(enum standin_place place, void *pointer)
{
	struct block **place_of_block;
	struct block *block;

	if (pointer == NULL)
		return cudaSuccess;
	for (int device = 0; device < standin_num_devices(); device++)
		standin_join_device(device);
	standin_lock();
	place_of_block = find_block(place, pointer);
	block = *place_of_block;
	if (block != NULL) {
		*place_of_block = block->next;
		unmap(block);
	}
	standin_unlock();
	return block != NULL ? cudaSuccess : cudaErrorInvalidValue;
}

/* Called under the lock: the block that holds any of these bytes. */
static const struct block *block_at(const void *pointer, size_t bytes)
{
	uintptr_t start = (uintptr_t)pointer;
	const struct block *block = blocks;

	while (block != NULL && (start >= (uintptr_t)block->pointer + block->bytes ||
	                         (start < (uintptr_t)block->pointer &&
	                          bytes <= (uintptr_t)block->pointer - start)))
		block = block->next;
	return block;
}

enum standin_place standin_place(const void *pointer, size_t bytes)
{
	enum standin_place place = STANDIN_PAGEABLE;
	const struct block *block;
	size_t offset;

	if (pointer == NULL)
		return STANDIN_OUTSIDE;
	standin_lock();
	block = block_at(pointer, bytes);
	if (block != NULL) {
		/* Wraps to more than the block when it starts before it. */
		offset = (size_t)((uintptr_t)pointer - (uintptr_t)block->pointer);
		place = offset < block->bytes && bytes <= block->bytes - offset
		                ? block->place
		                : STANDIN_OUTSIDE;
	}
	standin_unlock();
	return place;
}

void standin_count_blocks(struct standin_live *live)
{
	live->device_blocks = 0;
	live->host_blocks = 0;
	for (const struct block *block = blocks; block != NULL; block = block->next) {
		live->device_blocks += block->place == STANDIN_DEVICE;
		live->host_blocks += block->place == STANDIN_PINNED;
	}
}

void standin_end_blocks(void)
{
	standin_lock();
	while (blocks != NULL) {
		struct block *block = blocks;

		blocks = block->next;
		unmap(block);
	}
	standin_unlock();
}

cudaError_t cudaMalloc(void **pointer_out, size_t bytes)
{
	cudaError_t error = standin_enter(STANDIN_cudaMalloc);

	if (error != cudaSuccess)
		return error;
	if (standin_spoil_capture(NULL))
		return standin_answer(cudaErrorStreamCaptureUnsupported);
	return standin_answer(allocate(STANDIN_DEVICE, pointer_out, bytes));
}

cudaError_t cudaHostAlloc(void **pointer_out, size_t bytes, unsigned int flags)
{
	const unsigned int known =
		cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
	cudaError_t error = standin_enter(STANDIN_cudaHostAlloc);

	if (error != cudaSuccess)
		return error;
	if ((flags & ~known) != 0)
		return standin_answer(cudaErrorInvalidValue);
	if (standin_spoil_capture(NULL))
		return standin_answer(cudaErrorStreamCaptureUnsupported);
	return standin_answer(allocate(STANDIN_PINNED, pointer_out, bytes));
}

cudaError_t cudaFree(void *pointer)
{
	cudaError_t error = standin_admit(STANDIN_cudaFree);

	if (error != cudaSuccess)
		return error;
	return standin_leave(STANDIN_cudaFree, release(STANDIN_DEVICE, pointer));
}

cudaError_t cudaFreeHost(void *pointer)
{
	cudaError_t error = standin_admit(STANDIN_cudaFreeHost);

	if (error != cudaSuccess)
		return error;
	return standin_leave(STANDIN_cudaFreeHost, release(STANDIN_PINNED, pointer));
}

cudaError_t cudaMemGetInfo(size_t *free_out, size_t *total_out)
{
	cudaError_t error = standin_enter(STANDIN_cudaMemGetInfo);
	size_t used;
	size_t max;

	if (error != cudaSuccess)
		return error;
	if (free_out == NULL || total_out == NULL)
		return standin_answer(cudaErrorInvalidValue);
	standin_lock();
	used = used_bytes(STANDIN_DEVICE, standin_device());
	max = standin_memory_max();
	standin_unlock();
	*total_out = max;
	*free_out = used < max ? max - used : 0;
	return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes_out,
                                     const void *pointer)
{
	cudaError_t error = standin_enter(STANDIN_cudaPointerGetAttributes);
	struct cudaPointerAttributes attributes = {
		.type = cudaMemoryTypeUnregistered,
		.device = cudaInvalidDeviceId,
		.hostPointer = (void *)pointer,
	};
	const struct block *block;

	if (error != cudaSuccess)
		return error;
	if (attributes_out == NULL)
		return standin_answer(cudaErrorInvalidValue);
	standin_lock();
	block = block_at(pointer, 1);
	if (block != NULL) {
		attributes.device = block->device;
		attributes.devicePointer = (void *)pointer;
		attributes.type = cudaMemoryTypeHost;
	}
	if (block != NULL && block->place == STANDIN_DEVICE) {
		attributes.type = cudaMemoryTypeDevice;
		attributes.hostPointer = NULL;
	}
	standin_unlock();
	*attributes_out = attributes;
	return cudaSuccess;
}
