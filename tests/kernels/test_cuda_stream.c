/* SPDX-License-Identifier: MIT */
/* Streams and events of the CUDA device: order, failure, notices. */
#include "config.h"

#include "tests/kernels/test_cuda.h"

#include <sched.h>
#include <unistd.h>

/* A cache of four pages of one token, the number of whose page stands in each; a stream
 * and lists for it. */
struct user {
	struct quire_device *device;
	struct quire_dstream *dstream;
	struct quire_cache *cache;
	int32_t *list; /* pinned: lists, then what is fetched */
};

#define LIST_BYTES 256

static const struct quire_shape shape = {QUIRE_MLA, QUIRE_F32, 1, 4, 1, 1, 1};

static void begin(struct user *u, const char *name)
{
	u->device = open_device(name);
	u->dstream = new_stream(u->device);
	u->list = new_pinned(u->device, LIST_BYTES);
	ck_assert_int_eq(quire_cache_create(u->device, &shape, &u->cache, NULL),
	                 QUIRE_OK);
	memcpy(u->list, (int32_t[]){0, 1, 2, 3}, 16);
	ck_assert_int_eq(copy(u->dstream, quire_cache_data_ptr(u->cache), u->list, 16),
	                 QUIRE_OK);
	ck_assert_int_eq(quire_dstream_synchronize(u->dstream, NULL), QUIRE_OK);
}

static void end(struct user *u)
{
	quire_dstream_destroy(u->dstream);
	quire_cache_destroy(u->cache);
	quire_device_release_pinned(u->device, u->list, LIST_BYTES);
	quire_device_destroy(u->device);
	expect_nothing_live();
}

/* Queue a copy of one page. */
static enum quire_status copy_page(struct user *u, struct quire_dstream *dstream,
                                   int place, int32_t source, int32_t target)
{
	int32_t *pair = u->list + 8 + 2 * place;

	pair[0] = source;
	pair[1] = target;
	return quire_cache_copy_pages(u->cache, dstream, pair, pair + 1, 1, NULL);
}

/* What the pages hold, by a stream that does not fail. */
static void expect_pages(struct user *u, int32_t a, int32_t b, int32_t c, int32_t d)
{
	struct quire_dstream *side = new_stream(u->device);
	int32_t wanted[] = {a, b, c, d};

	ck_assert_int_eq(copy(side, u->list, quire_cache_data_ptr(u->cache), 16),
	                 QUIRE_OK);
	ck_assert_int_eq(quire_dstream_synchronize(side, NULL), QUIRE_OK);
	ck_assert_mem_eq(u->list, wanted, 16);
	quire_dstream_destroy(side);
}

/* Give what wrongly does not wait the time to go on; no verdict hangs on it. */
static void let_others_run(void)
{
	for (int i = 0; i < 30; i++) {
		sched_yield();
		usleep(1000);
	}
}

/* ------------------------------------------------------------------ order */

/* A host function's step of a count: 1 to 2, 2 to 3, ... */
struct step {
	int *counter;
	int from;
};

static enum quire_status count_on(void *argument)
{
	struct step *step = argument;

	if (*step->counter != step->from)
		return QUIRE_BROKEN;
	*step->counter = step->from + 1;
	return QUIRE_OK;
}

START_TEST(host_functions_are_called_in_order_and_their_nodes_used_again)
{
	static struct step steps[600];
	struct user u;
	int counter = 0;

	begin(&u, "cuda");
	for (int i = 0; i < 600; i++) {
		steps[i] = (struct step){&counter, i};
		ck_assert_int_eq(quire_dstream_call(u.dstream, count_on, &steps[i]),
		                 QUIRE_OK);
		if (i % 50 == 0)
			ck_assert_int_eq(quire_dstream_synchronize(u.dstream, NULL),
			                 QUIRE_OK);
	}
	ck_assert_int_eq(quire_dstream_synchronize(u.dstream, NULL), QUIRE_OK);
	ck_assert_int_eq(counter, 600);
	end(&u);
}
END_TEST

START_TEST(copies_of_a_batch_and_kernels_run_in_order)
{
	struct user u;
	char *storage;

	begin(&u, "cuda");
	standin_set_jitter(3);
	storage = quire_cache_data_ptr(u.cache);
	for (int round = 0; round < 20; round++) {
		struct quire_range ranges[] = {
			{storage, storage + 4, 4},
			{u.list + 2, storage, 0},
			{storage + 8, storage, 4},
		};

		ck_assert_int_eq(quire_dstream_copy(u.dstream, ranges, 3), QUIRE_OK);
		ck_assert_int_eq(copy_page(&u, u.dstream, round, 2, 3), QUIRE_OK);
	}
	ck_assert_int_eq(quire_dstream_synchronize(u.dstream, NULL), QUIRE_OK);
	expect_pages(&u, 1, 1, 1, 1);
	end(&u);
}
END_TEST

/* ------------------------------------------------------------------ events */

START_TEST(an_event_stands_for_its_newest_record_at_the_call)
{
	struct quire_dstream *waiter;
	struct quire_event *event;
	struct user u;
	sem_t first;
	sem_t second;

	begin(&u, "cuda");
	waiter = new_stream(u.device);
	event = new_event(u.device);
	ck_assert_int_eq(quire_event_query(event), QUIRE_OK);
	ck_assert_int_eq(quire_event_synchronize(event), QUIRE_OK);
	ck_assert_int_eq(quire_dstream_wait_event(waiter, event), QUIRE_OK);
	close_gate(u.dstream, &first);
	ck_assert_int_eq(copy_page(&u, u.dstream, 0, 3, 0), QUIRE_OK);
	ck_assert_int_eq(quire_event_record(event, u.dstream), QUIRE_OK);
	ck_assert_int_eq(quire_event_query(event), QUIRE_AGAIN);
	/* Waits for the first record, and only for that. */
	ck_assert_int_eq(quire_dstream_wait_event(waiter, event), QUIRE_OK);
	ck_assert_int_eq(copy_page(&u, waiter, 1, 0, 1), QUIRE_OK);
	close_gate(u.dstream, &second);
	ck_assert_int_eq(quire_event_record(event, u.dstream), QUIRE_OK);
	let_others_run();
	sem_post(&first);
	ck_assert_int_eq(quire_dstream_synchronize(waiter, NULL), QUIRE_OK);
	ck_assert_int_eq(quire_event_query(event), QUIRE_AGAIN);
	sem_post(&second);
	ck_assert_int_eq(quire_event_synchronize(event), QUIRE_OK);
	ck_assert_int_eq(quire_event_query(event), QUIRE_OK);
	expect_pages(&u, 3, 3, 2, 3);
	quire_event_destroy(event);
	quire_dstream_destroy(waiter);
	end(&u);
}
END_TEST

START_TEST(elapsed_time_needs_two_timed_events_that_are_done)
{
	struct quire_event *timed[2];
	struct quire_event *untimed;
	struct user u;
	int64_t ns = -7;
	sem_t gate;

	begin(&u, "cuda");
	untimed = new_event(u.device);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(quire_event_create_timed(u.device, &timed[i]), QUIRE_OK);
	ck_assert_int_eq(quire_event_record(timed[0], u.dstream), QUIRE_OK);
	ck_assert_int_eq(quire_event_record(untimed, u.dstream), QUIRE_OK);
	ck_assert_int_eq(quire_dstream_synchronize(u.dstream, NULL), QUIRE_OK);
	ck_assert_int_eq(quire_event_elapsed(timed[0], untimed, &ns), QUIRE_INVALID);
	ck_assert_int_eq(quire_event_elapsed(untimed, timed[0], &ns), QUIRE_INVALID);
	ck_assert_int_eq(quire_event_elapsed(timed[0], timed[1], &ns), QUIRE_INVALID);
	close_gate(u.dstream, &gate);
	ck_assert_int_eq(quire_event_record(timed[1], u.dstream), QUIRE_OK);
	ck_assert_int_eq(quire_event_elapsed(timed[0], timed[1], &ns), QUIRE_AGAIN);
	ck_assert_int_eq(quire_event_elapsed(timed[1], timed[0], &ns), QUIRE_AGAIN);
	ck_assert_int_eq(quire_event_elapsed(timed[1], untimed, &ns), QUIRE_INVALID);
	ck_assert_int_eq(ns, -7);
	/* No bound above: a machine may be slow. */
	usleep(2000);
	sem_post(&gate);
	ck_assert_int_eq(quire_event_synchronize(timed[1]), QUIRE_OK);
	ck_assert_int_eq(quire_event_elapsed(timed[0], timed[1], &ns), QUIRE_OK);
	ck_assert_int_ge(ns, 2000000);
	ck_assert_int_eq(quire_event_elapsed(timed[1], timed[0], &ns), QUIRE_OK);
	ck_assert_int_le(ns, -2000000);
	for (int i = 0; i < 2; i++)
		quire_event_destroy(timed[i]);
	quire_event_destroy(untimed);
	end(&u);
}
END_TEST

/* ------------------------------------------------------------------ failure */

START_TEST(a_failed_stream_does_nothing_more_and_tells_its_first_failure)
{
	enum quire_status answers[] = {QUIRE_IO, QUIRE_AGAIN};

	for (int i = 0; i < 2; i++) {
		enum quire_status wanted = i == 0 ? QUIRE_IO : QUIRE_CALLBACK;
		struct quire_refusal refusal;
		struct quire_event *before;
		struct quire_event *after;
		struct user u;
		sem_t gate;

		begin(&u, "cuda");
		before = new_event(u.device);
		after = new_event(u.device);
		close_gate(u.dstream, &gate);
		ck_assert_int_eq(copy_page(&u, u.dstream, 0, 1, 0), QUIRE_OK);
		ck_assert_int_eq(quire_event_record(before, u.dstream), QUIRE_OK);
		ck_assert_int_eq(quire_dstream_call(u.dstream, fail_with, &answers[i]),
		                 QUIRE_OK);
		/* A second failure, and a kernel, that do not come to pass. */
		ck_assert_int_eq(quire_dstream_call(u.dstream, fail_with,
		                                    &(enum quire_status){QUIRE_FORMAT}),
		                 QUIRE_OK);
		ck_assert_int_eq(copy_page(&u, u.dstream, 1, 1, 2), QUIRE_OK);
		ck_assert_int_eq(quire_event_record(after, u.dstream), QUIRE_OK);
		sem_post(&gate);
		ck_assert_int_eq(quire_event_synchronize(after), wanted);
		ck_assert_int_eq(quire_event_query(after), wanted);
		ck_assert_int_eq(quire_event_synchronize(before), QUIRE_OK);
		ck_assert_int_eq(quire_dstream_synchronize(u.dstream, &refusal), wanted);
		ck_assert_int_eq(refusal.status, wanted);
		ck_assert_str_eq(refusal.what,
		                 "a host function on the device stream failed");
		ck_assert_int_eq(refusal.index, -1);
		ck_assert_int_eq(copy_page(&u, u.dstream, 2, 1, 3), wanted);
		ck_assert_int_eq(copy(u.dstream, u.list, u.list + 4, 4), wanted);
		ck_assert_int_eq(quire_dstream_call(u.dstream, fail_with, NULL), wanted);
		ck_assert_int_eq(quire_event_record(before, u.dstream), QUIRE_OK);
		ck_assert_int_eq(quire_event_synchronize(before), wanted);
		expect_pages(&u, 1, 1, 2, 3);
		quire_event_destroy(before);
		quire_event_destroy(after);
		end(&u);
	}
}
END_TEST

START_TEST(a_fault_found_by_a_kernel_stops_what_is_queued_behind_it)
{
	struct quire_refusal refusal;
	struct quire_event *before;
	struct quire_event *after;
	struct user u;
	sem_t gate;

	begin(&u, "cuda+checks");
	before = new_event(u.device);
	after = new_event(u.device);
	close_gate(u.dstream, &gate);
	ck_assert_int_eq(copy_page(&u, u.dstream, 0, 1, 0), QUIRE_OK);
	ck_assert_int_eq(quire_event_record(before, u.dstream), QUIRE_OK);
	ck_assert_int_eq(copy_page(&u, u.dstream, 1, 1, 4), QUIRE_OK);
	ck_assert_int_eq(copy_page(&u, u.dstream, 2, 5, 1), QUIRE_OK);
	ck_assert_int_eq(copy_page(&u, u.dstream, 3, 1, 2), QUIRE_OK);
	ck_assert_int_eq(quire_event_record(after, u.dstream), QUIRE_OK);
	sem_post(&gate);
	ck_assert_int_eq(quire_event_synchronize(after), QUIRE_INVALID);
	ck_assert_int_eq(quire_event_synchronize(before), QUIRE_OK);
	ck_assert_int_eq(quire_dstream_synchronize(u.dstream, &refusal), QUIRE_INVALID);
	ck_assert_str_eq(refusal.what, "target");
	ck_assert_int_eq(refusal.index, 0);
	ck_assert_int_eq(refusal.got, 4);
	ck_assert_int_eq(refusal.expected, 3);
	expect_pages(&u, 1, 1, 2, 3);
	quire_event_destroy(before);
	quire_event_destroy(after);
	end(&u);
}
END_TEST

/* The kernels of a stream look at nothing but their own stream's failure. */
START_TEST(a_failure_reaches_the_streams_that_wait_for_it_and_no_other)
{
	enum quire_status status = QUIRE_IO;
	struct quire_refusal refusal;
	struct quire_dstream *behind;
	struct quire_dstream *last;
	struct quire_dstream *spared;
	struct quire_event *early;
	struct quire_event *late;
	struct user u;
	sem_t gate;

	begin(&u, "cuda");
	behind = new_stream(u.device);
	last = new_stream(u.device);
	spared = new_stream(u.device);
	early = new_event(u.device);
	late = new_event(u.device);
	close_gate(u.dstream, &gate);
	ck_assert_int_eq(quire_event_record(early, u.dstream), QUIRE_OK);
	ck_assert_int_eq(quire_dstream_call(u.dstream, fail_with, &status), QUIRE_OK);
	ck_assert_int_eq(quire_event_record(late, u.dstream), QUIRE_OK);
	ck_assert_int_eq(quire_dstream_wait_event(behind, late), QUIRE_OK);
	ck_assert_int_eq(copy_page(&u, behind, 0, 3, 0), QUIRE_OK);
	ck_assert_int_eq(quire_event_record(late, behind), QUIRE_OK);
	ck_assert_int_eq(quire_dstream_wait_event(last, late), QUIRE_OK);
	ck_assert_int_eq(copy_page(&u, last, 1, 3, 1), QUIRE_OK);
	ck_assert_int_eq(quire_dstream_wait_event(spared, early), QUIRE_OK);
	ck_assert_int_eq(copy_page(&u, spared, 2, 3, 2), QUIRE_OK);
	/* It may end before the streams that follow it look. */
	sem_post(&gate);
	quire_dstream_destroy(u.dstream);
	u.dstream = NULL;
	ck_assert_int_eq(quire_dstream_synchronize(last, &refusal), QUIRE_IO);
	ck_assert_str_eq(refusal.what, "the device stream of an event waited for failed");
	ck_assert_int_eq(quire_dstream_synchronize(behind, &refusal), QUIRE_IO);
	ck_assert_str_eq(refusal.what, "the device stream of an event waited for failed");
	ck_assert_int_eq(quire_dstream_synchronize(spared, NULL), QUIRE_OK);
	ck_assert_int_eq(quire_event_query(late), QUIRE_IO);
	ck_assert_int_eq(quire_event_query(early), QUIRE_OK);
	/* Known by now, and told at once. */
	ck_assert_int_eq(quire_dstream_wait_event(spared, late), QUIRE_IO);
	ck_assert_int_eq(quire_dstream_synchronize(spared, &refusal), QUIRE_IO);
	ck_assert_str_eq(refusal.what, "the device stream of an event waited for failed");
	expect_pages(&u, 0, 1, 3, 3);
	quire_event_destroy(early);
	quire_event_destroy(late);
	quire_dstream_destroy(behind);
	quire_dstream_destroy(last);
	quire_dstream_destroy(spared);
	end(&u);
}
END_TEST

START_TEST(a_stream_is_followed_after_it_was_ended)
{
	enum quire_status status = QUIRE_IO;

	for (int i = 0; i < 2; i++) {
		struct quire_dstream *behind;
		struct quire_dstream *other;
		struct quire_event *event;
		struct user u;
		sem_t failing;
		sem_t gate;

		begin(&u, "cuda");
		behind = new_stream(u.device);
		other = new_stream(u.device);
		event = new_event(u.device);
		status = i == 0 ? QUIRE_IO : QUIRE_OK;
		close_gate(behind, &gate);
		close_gate(u.dstream, &failing);
		ck_assert_int_eq(quire_dstream_call(u.dstream, fail_with, &status),
		                 QUIRE_OK);
		ck_assert_int_eq(quire_event_record(event, u.dstream), QUIRE_OK);
		/* Not known to have failed when it is waited for. */
		ck_assert_int_eq(quire_dstream_wait_event(behind, event), QUIRE_OK);
		ck_assert_int_eq(quire_event_record(event, other), QUIRE_OK);
		sem_post(&failing);
		quire_dstream_destroy(u.dstream);
		u.dstream = NULL;
		ck_assert_int_eq(copy_page(&u, behind, 0, 3, 0), QUIRE_OK);
		sem_post(&gate);
		ck_assert_int_eq(quire_dstream_synchronize(behind, NULL), status);
		expect_pages(&u, i == 0 ? 0 : 3, 1, 2, 3);
		quire_event_destroy(event);
		quire_dstream_destroy(behind);
		quire_dstream_destroy(other);
		end(&u);
	}
}
END_TEST

/* ------------------------------------------------------------------ notices */

struct noted {
	_Atomic int count;
	int order[64];
};

struct notice {
	struct noted *noted;
	int number;
	sem_t *gate; /* passed first; NULL: none */
	bool is_slow;
};

static void take_note(void *argument)
{
	struct notice *notice = argument;

	if (notice->gate != NULL)
		pass_gate(notice->gate);
	if (notice->is_slow)
		let_others_run();
	notice->noted->order[notice->noted->count] = notice->number;
	notice->noted->count++;
}

START_TEST(notices_come_when_their_events_are_done_and_in_the_order_of_their_calls)
{
	struct quire_event *events[8];
	struct notice notices[9];
	struct noted noted = {0};
	struct user u;
	sem_t gate;

	begin(&u, "cuda");
	standin_set_jitter(7);
	for (int i = 0; i < 9; i++)
		notices[i] = (struct notice){.noted = &noted, .number = i};
	/* The stream is closing before the others are called. */
	notices[0].is_slow = true;
	for (int i = 0; i < 8; i++)
		events[i] = new_event(u.device);
	/* Never recorded is done. */
	ck_assert_int_eq(quire_event_notify(events[0], take_note, &notices[8]), QUIRE_OK);
	ck_assert_int_eq(noted.count, 1);
	ck_assert_int_eq(noted.order[0], 8);
	close_gate(u.dstream, &gate);
	for (int i = 0; i < 8; i++) {
		ck_assert_int_eq(quire_event_record(events[i / 2], u.dstream), QUIRE_OK);
		ck_assert_int_eq(copy_page(&u, u.dstream, i, 1, 2), QUIRE_OK);
		ck_assert_int_eq(
			quire_event_notify(events[i / 2], take_note, &notices[i]),
			QUIRE_OK);
	}
	let_others_run();
	ck_assert_int_eq(noted.count, 1);
	sem_post(&gate);
	/* All are called before the stream is gone. */
	quire_dstream_destroy(u.dstream);
	u.dstream = NULL;
	ck_assert_int_eq(noted.count, 9);
	for (int i = 0; i < 8; i++)
		ck_assert_int_eq(noted.order[1 + i], i);
	for (int i = 0; i < 8; i++)
		quire_event_destroy(events[i]);
	end(&u);
}
END_TEST

START_TEST(a_notice_is_of_the_record_at_its_call_and_does_not_hold_its_stream_up)
{
	struct quire_event *event;
	struct notice notice;
	struct noted noted = {0};
	struct user u;
	sem_t first;
	sem_t second;
	sem_t called;

	begin(&u, "cuda");
	sem_init(&called, 0, 0);
	notice = (struct notice){.noted = &noted, .number = 1, .gate = &called};
	event = new_event(u.device);
	close_gate(u.dstream, &first);
	ck_assert_int_eq(quire_event_record(event, u.dstream), QUIRE_OK);
	ck_assert_int_eq(quire_event_notify(event, take_note, &notice), QUIRE_OK);
	sem_post(&first);
	/* The notice has not returned, nor is it waited for. */
	ck_assert_int_eq(copy_page(&u, u.dstream, 0, 1, 0), QUIRE_OK);
	ck_assert_int_eq(quire_dstream_synchronize(u.dstream, NULL), QUIRE_OK);
	ck_assert_int_eq(noted.count, 0);
	/* Recorded again, behind a gate that the notice does not wait for. */
	close_gate(u.dstream, &second);
	ck_assert_int_eq(quire_event_record(event, u.dstream), QUIRE_OK);
	sem_post(&called);
	while (noted.count == 0)
		usleep(100);
	ck_assert_int_eq(quire_event_query(event), QUIRE_AGAIN);
	sem_post(&second);
	ck_assert_int_eq(quire_event_synchronize(event), QUIRE_OK);
	quire_event_destroy(event);
	end(&u);
}
END_TEST

/* ------------------------------------------------------------------ a broken device */

START_TEST(a_broken_device_is_told_by_every_call_and_all_can_be_ended)
{
	const struct {
		enum standin_work work;
		cudaError_t error;
	} breaks[] = {
		{STANDIN_KERNEL, cudaErrorIllegalAddress},
		{STANDIN_COPY, cudaErrorECCUncorrectable},
	};

	for (int i = 0; i < 2; i++) {
		struct quire_refusal refusal;
		struct quire_dstream *dstream = NULL;
		struct quire_event *event;
		struct quire_event *done;
		struct notice notice;
		struct noted noted = {0};
		void *memory = NULL;
		struct user u;
		sem_t gate;

		standin_reset();
		begin(&u, "cuda");
		notice = (struct notice){.noted = &noted, .number = 1};
		event = new_event(u.device);
		done = new_event(u.device);
		ck_assert_int_eq(quire_event_record(done, u.dstream), QUIRE_OK);
		ck_assert_int_eq(quire_event_synchronize(done), QUIRE_OK);
		ck_assert_int_eq(quire_event_query(done), QUIRE_OK);
		close_gate(u.dstream, &gate);
		/* The gate is followed by a kernel of its own. */
		standin_break(breaks[i].work, 1, breaks[i].error);
		ck_assert_int_eq(
			copy(u.dstream, quire_cache_data_ptr(u.cache), u.list, 4),
			QUIRE_OK);
		ck_assert_int_eq(quire_event_record(event, u.dstream), QUIRE_OK);
		ck_assert_int_eq(quire_event_notify(event, take_note, &notice), QUIRE_OK);
		sem_post(&gate);
		ck_assert_int_eq(quire_event_synchronize(event), QUIRE_DEVICE);
		ck_assert_int_eq(quire_dstream_synchronize(u.dstream, &refusal),
		                 QUIRE_DEVICE);
		ck_assert_str_eq(refusal.what, cudaGetErrorString(breaks[i].error));
		ck_assert_int_eq(quire_event_query(event), QUIRE_DEVICE);
		ck_assert_int_eq(quire_event_query(done), QUIRE_OK);
		ck_assert_int_eq(copy_page(&u, u.dstream, 0, 1, 0), QUIRE_DEVICE);
		ck_assert_int_eq(copy(u.dstream, u.list, u.list + 4, 4), QUIRE_DEVICE);
		ck_assert_int_eq(quire_event_record(done, u.dstream), QUIRE_OK);
		ck_assert_int_eq(quire_event_query(done), QUIRE_DEVICE);
		ck_assert_int_eq(quire_event_synchronize(done), QUIRE_DEVICE);
		ck_assert_int_eq(quire_device_alloc(u.device, 64, &memory), QUIRE_DEVICE);
		ck_assert_int_eq(quire_device_alloc_pinned(u.device, 64, &memory),
		                 QUIRE_DEVICE);
		ck_assert_int_eq(quire_dstream_create(u.device, "new", &dstream),
		                 QUIRE_DEVICE);
		ck_assert_ptr_null(memory);
		ck_assert_ptr_null(dstream);
		quire_event_destroy(event);
		quire_event_destroy(done);
		end(&u);
		ck_assert_int_eq(noted.count, 1);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("cuda_stream");
	TCase *tcase = tcase_create("stand-in");

	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, 20);
	tcase_add_test(tcase,
	               host_functions_are_called_in_order_and_their_nodes_used_again);
	tcase_add_test(tcase, copies_of_a_batch_and_kernels_run_in_order);
	tcase_add_test(tcase, an_event_stands_for_its_newest_record_at_the_call);
	tcase_add_test(tcase, elapsed_time_needs_two_timed_events_that_are_done);
	tcase_add_test(tcase,
	               a_failed_stream_does_nothing_more_and_tells_its_first_failure);
	tcase_add_test(tcase, a_fault_found_by_a_kernel_stops_what_is_queued_behind_it);
	tcase_add_test(tcase,
	               a_failure_reaches_the_streams_that_wait_for_it_and_no_other);
	tcase_add_test(tcase, a_stream_is_followed_after_it_was_ended);
	tcase_add_test(
		tcase,
		notices_come_when_their_events_are_done_and_in_the_order_of_their_calls);
	tcase_add_test(
		tcase,
		a_notice_is_of_the_record_at_its_call_and_does_not_hold_its_stream_up);
	tcase_add_test(tcase, a_broken_device_is_told_by_every_call_and_all_can_be_ended);
	return run_suite(suite);
}
