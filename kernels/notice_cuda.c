/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "kernels/device_cuda_impl.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

void quire_cuda_notifier_init(struct cuda_notifier *notifier,
                              const struct cuda_device *device, const char *name)
{
	notifier->device = device;
	snprintf(notifier->name, sizeof(notifier->name), "%s", name == NULL ? "" : name);
	pthread_mutex_init(&notifier->lock, NULL);
	pthread_cond_init(&notifier->work, NULL);
}

/* A broken context answers at once; what is not done, and cannot be waited for, is asked
 * for again. */
static void await(cudaEvent_t done)
{
	while (cudaEventSynchronize(done) != cudaSuccess &&
	       cudaEventQuery(done) == cudaErrorNotReady)
		;
}

static void *work(void *argument)
{
	struct cuda_notifier *notifier = argument;

	(void)cudaSetDevice(notifier->device->ordinal);
	pthread_mutex_lock(&notifier->lock);
	for (;;) {
		struct cuda_notice *notice;

		while (notifier->first == NULL && !notifier->closing)
			pthread_cond_wait(&notifier->work, &notifier->lock);
		notice = notifier->first;
		if (notice == NULL)
			break;
		notifier->first = notice->next;
		pthread_mutex_unlock(&notifier->lock);
		await(notice->done);
		notice->function(notice->argument);
		pthread_mutex_lock(&notifier->lock);
		notice->next = notifier->spare;
		notifier->spare = notice;
	}
	pthread_mutex_unlock(&notifier->lock);
	return NULL;
}

/* Signals are for the program's own threads. */
static int start_thread(struct cuda_notifier *notifier)
{
	sigset_t all;
	sigset_t before;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&notifier->thread, NULL, work, notifier);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error == 0 && notifier->name[0] != '\0')
		pthread_setname_np(notifier->thread, notifier->name);
	return error;
}

/* Called under the lock. */
static cudaError_t start(struct cuda_notifier *notifier)
{
	cudaError_t error;

	if (notifier->started)
		return cudaSuccess;
	error = cudaStreamCreateWithPriority(
		&notifier->side, cudaStreamNonBlocking,
		notifier->device->priority[QUIRE_PRIORITY_NORMAL]);
	if (error != cudaSuccess)
		return error;
	if (start_thread(notifier) != 0) {
		(void)cudaStreamDestroy(notifier->side);
		return cudaErrorOperatingSystem;
	}
	notifier->started = true;
	return cudaSuccess;
}

/* Called under the lock. */
static cudaError_t take_notice(struct cuda_notifier *notifier,
                               struct cuda_notice **notice_out)
{
	struct cuda_notice *notice = notifier->spare;
	cudaError_t error;

	if (notice != NULL) {
		notifier->spare = notice->next;
		*notice_out = notice;
		return cudaSuccess;
	}
	notice = malloc(sizeof(*notice));
	if (notice == NULL)
		return cudaErrorMemoryAllocation;
	error = cudaEventCreateWithFlags(&notice->done,
	                                 cudaEventBlockingSync | cudaEventDisableTiming);
	if (error != cudaSuccess) {
		free(notice);
		return error;
	}
	*notice_out = notice;
	return cudaSuccess;
}

/* Called under the lock, with the device current. */
static cudaError_t add(struct cuda_notifier *notifier, cudaEvent_t event,
                       void (*function)(void *argument), void *argument)
{
	struct cuda_notice *notice;
	cudaError_t error = start(notifier);

	if (error == cudaSuccess)
		error = take_notice(notifier, &notice);
	if (error != cudaSuccess)
		return error;
	error = cudaStreamWaitEvent(notifier->side, event, 0);
	if (error == cudaSuccess)
		error = cudaEventRecord(notice->done, notifier->side);
	if (error != cudaSuccess) {
		notice->next = notifier->spare;
		notifier->spare = notice;
		return error;
	}
	notice->next = NULL;
	notice->function = function;
	notice->argument = argument;
	if (notifier->first == NULL)
		notifier->first = notice;
	else
		notifier->last->next = notice;
	notifier->last = notice;
	pthread_cond_signal(&notifier->work);
	return cudaSuccess;
}

enum quire_status quire_cuda_notifier_add(struct cuda_notifier *notifier,
                                          cudaEvent_t event,
                                          void (*function)(void *argument),
                                          void *argument)
{
	enum quire_status status = QUIRE_CLOSED;
	cudaError_t error;
	int previous;

	pthread_mutex_lock(&notifier->lock);
	if (!notifier->closing) {
		error = quire_cuda_enter(notifier->device, &previous);
		if (error == cudaSuccess) {
			error = add(notifier, event, function, argument);
			quire_cuda_leave(notifier->device, previous);
		}
		status = quire_cuda_refuse(error, NULL);
	}
	pthread_mutex_unlock(&notifier->lock);
	return status;
}

void quire_cuda_notifier_close(struct cuda_notifier *notifier)
{
	pthread_mutex_lock(&notifier->lock);
	notifier->closing = true;
	pthread_cond_signal(&notifier->work);
	pthread_mutex_unlock(&notifier->lock);
	if (!notifier->started)
		return;
	pthread_join(notifier->thread, NULL);
	(void)cudaStreamDestroy(notifier->side);
	while (notifier->spare != NULL) {
		struct cuda_notice *notice = notifier->spare;

		notifier->spare = notice->next;
		(void)cudaEventDestroy(notice->done);
		free(notice);
	}
}
