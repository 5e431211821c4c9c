/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_TESTS_CUDA_STANDIN_STANDIN_IMPL_H
#define QUIRE_TESTS_CUDA_STANDIN_STANDIN_IMPL_H
/*
 * Inside the stand-in.  One lock guards everything but the contents of memory and what an
 * operation carries.  ThreadSanitizer does not see it: while it is held, accesses and
 * synchronization are ignored, so that the lock orders nothing in its eyes.  The order
 * that CUDA promises is made by edges alone.
 */
#include "tests/cuda_standin/standin.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

/* Release and acquire, outside the lock: what ThreadSanitizer is to see. */
struct standin_edge {
	atomic_int passed;
};

/* An operation of a stream; a record is one too. */
struct standin_op {
	struct standin_op *next;
	/* The stream until it has run and while it is the newest, events, waiters. */
	int users;
	bool done;
	/* From the caller to the stream's thread, and from there to who waits. */
	struct standin_edge ready;
	struct standin_edge ran;
	enum standin_work work;
	void (*run)(struct standin_op *op);
	int64_t finished_ns;
	size_t payload_bytes;
	_Alignas(16) char payload[];
};

struct CUstream_st {
	struct CUstream_st *next;
	int device;
	bool is_default;
	/* Does it wait for the default stream, and that for it? */
	bool blocking;
	/* Destroyed: its thread ends when the queue is empty. */
	bool closed;
	uint64_t random;
	/* More is queued, or it is closed. */
	pthread_cond_t work;
	/* The queue, without the operation that runs. */
	struct standin_op *first;
	struct standin_op *last;
	/* The newest operation ever queued; NULL: none. */
	struct standin_op *newest;
	/* What it captures; NULL: it does not. */
	cudaGraph_t graph;
	/* Something not permitted was tried meanwhile; false when it does not capture. */
	bool spoiled;
};

enum standin_place { STANDIN_PAGEABLE, STANDIN_PINNED, STANDIN_DEVICE, STANDIN_OUTSIDE };

/* standin.c */
void standin_lock(void);
void standin_unlock(void);
/* Under the lock. */
void standin_wait(pthread_cond_t *condition);
/* Some operation is done, or a stream's thread is through. */
extern pthread_cond_t standin_done;
void standin_edge_release(struct standin_edge *edge);
void standin_edge_acquire(struct standin_edge *edge);

/* Begin a call: it is counted; without driver or device, or in a host function, refused;
 * it answers what was ordered, or the sticky error. */
cudaError_t standin_enter(enum standin_entry entry);
/* The two halves, for a call that destroys, which does so whatever was ordered. */
cudaError_t standin_admit(enum standin_entry entry);
cudaError_t standin_leave(enum standin_entry entry, cudaError_t error);
/* End a call: remember an error for cudaGetLastError. */
cudaError_t standin_answer(cudaError_t error);
cudaError_t standin_sticky(void);

/* Called under the lock: may this operation do its work?  May break the device. */
bool standin_may_run(enum standin_work work);
uint64_t standin_jitter(void);
size_t standin_memory_max(void);
int standin_num_devices(void);
int standin_device(void);
/* Around a host function, in which no call is permitted. */
void standin_host_function(bool entered);

/* standin_op.c */
struct standin_op *standin_op_create(enum standin_work work,
                                     void (*run)(struct standin_op *op),
                                     size_t payload_bytes);
struct standin_op *standin_op_create_locked(enum standin_work work,
                                            void (*run)(struct standin_op *op),
                                            size_t payload_bytes);
/* One user less; NULL: nothing. */
void standin_op_drop(struct standin_op *op);
void standin_op_drop_locked(struct standin_op *op);
/* Each of a chain. */
void standin_op_drop_chain_locked(struct standin_op *op);
/* One more, before the push. */
void standin_op_share(struct standin_op *op);
/* Until it is done: await without order, join with it. */
void standin_op_await(struct standin_op *op);
void standin_op_join(struct standin_op *op);
/* Is it done?  Ordered behind it if so. */
bool standin_op_query(struct standin_op *op);

/* standin_thread.c: both under the lock. */
/* Detached: to destroy a stream does not wait for it, and must give no order. */
bool standin_thread_start_locked(cudaStream_t stream);
/* Until all threads are through with their streams. */
void standin_threads_end_locked(void);

/* standin_stream.c */
/* A handle's stream, the default one made when needed; NULL: no such stream. */
cudaStream_t standin_stream_find(cudaStream_t handle);
/* An operation, and those chained behind it, are given to the stream, even when this
 * fails: to its graph while it captures. */
cudaError_t standin_push(cudaStream_t stream, struct standin_op *chain);
/* Have the stream wait for another operation. */
cudaError_t standin_push_join(cudaStream_t stream, struct standin_op *joined);
/* Wait for all that was queued on a device, ordered behind it. */
void standin_join_device(int device);
/* A call that a capture does not permit: does the stream capture?  NULL: does any? */
bool standin_spoil_capture(cudaStream_t only);
int standin_count_streams(void);
void standin_end_streams(void);

/* standin_event.c */
int standin_count_events(void);
void standin_end_events(void);

/* standin_graph.c */
/* Called under the lock: a chain is given to the end of a graph. */
void standin_graph_take_locked(cudaGraph_t graph, struct standin_op *chain);
/* NULL is a no-op. */
void standin_graph_drop_locked(cudaGraph_t graph);
int standin_count_graphs(void);
void standin_end_graphs(void);

/* standin_memory.c */
enum standin_place standin_place(const void *pointer, size_t bytes);
/* Called under the lock: device memory can be touched, or not. */
void standin_open_memory(void);
void standin_close_memory(void);
void standin_count_blocks(struct standin_live *live);
void standin_end_blocks(void);

#endif
