/* SPDX-License-Identifier: MIT */
/* How a stream failed, for as long as somebody may ask. */
#include "config.h"

#include "kernels/device_cuda_impl.h"
#include "runtime/refuse_impl.h"

#include <stdlib.h>
#include <string.h>

cudaError_t quire_cuda_track_create(const struct cuda_device *device, cudaStream_t stream,
                                    const char *name, struct cuda_track **track_out)
{
	struct cuda_track *track = calloc(1, sizeof(*track));
	cudaError_t error = cudaErrorMemoryAllocation;

	if (track == NULL)
		return error;
	error = cudaHostAlloc((void **)&track->report, sizeof(*track->report),
	                      cudaHostAllocPortable | cudaHostAllocMapped);
	if (error != cudaSuccess)
		goto undo_track;
	memset(track->report, 0, sizeof(*track->report));
	error = cudaMalloc((void **)&track->state, sizeof(*track->state));
	if (error != cudaSuccess)
		goto undo_report;
	error = cudaMemsetAsync(track->state, 0, sizeof(*track->state), stream);
	if (error != cudaSuccess)
		goto undo_state;
	atomic_init(&track->users, 1);
	atomic_init(&track->guarded, device->checks);
	quire_cuda_notifier_init(&track->notifier, device, name);
	*track_out = track;
	return cudaSuccess;

undo_state:
	(void)cudaFree(track->state);
undo_report:
	(void)cudaFreeHost(track->report);
undo_track:
	free(track);
	return error;
}

void quire_cuda_track_drop(struct cuda_track *track)
{
	if (track == NULL)
		return;
	/* Acquire and release: the last user comes behind all that others did. */
	if (atomic_fetch_sub_explicit(&track->users, 1, memory_order_acq_rel) > 1)
		return;
	(void)quire_cuda_refuse(cudaFree(track->state), NULL);
	(void)quire_cuda_refuse(cudaFreeHost(track->report), NULL);
	pthread_cond_destroy(&track->notifier.work);
	pthread_mutex_destroy(&track->notifier.lock);
	free(track);
}

/* Acquire, with the release of the kernel or host function that left the fault. */
uint32_t quire_cuda_report_status(const struct quire_cuda_fault *report)
{
	return __atomic_load_n(&report->status, __ATOMIC_ACQUIRE);
}

enum quire_status quire_cuda_outcome(const struct cuda_track *track, int64_t position,
                                     struct quire_refusal *refusal_out)
{
	const struct quire_cuda_fault *report = track->report;
	bool ran = quire_cuda_report_status(report) != QUIRE_OK &&
	           report->position <= position;
	/* Acquire, with the release in refuse (dstream_cuda.c). */
	bool refused = atomic_load_explicit(&track->refused, memory_order_acquire) &&
	               track->refused_at <= position;
	struct quire_refusal refusal;

	if (!ran && !refused)
		return QUIRE_OK;
	if (refused && !(ran && report->position < track->refused_at))
		return quire_refuse(refusal_out, track->refusal);
	quire_cuda_describe(report, &refusal);
	return quire_refuse(refusal_out, refusal);
}
