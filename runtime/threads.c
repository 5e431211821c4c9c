/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/refuse_impl.h"
#include "runtime/runtime_impl.h"

#include <quire/runtime/assert.h>

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>

/* Of a thread's name, with the final zero: Linux takes no more. */
#define NAME_BYTES 16

/* How often somebody looks who cannot be woken: by a program's own clock, or by a device
 * that failed. */
#define LOOK_NS 1000000

static const char *const role_names[] = {
	[QUIRE_ROLE_PLANNER] = "planner",
	[QUIRE_ROLE_EXECUTOR] = "executor",
};

/* ------------------------------------------------------------------ who is it? */

/* Threads are numbered when they are first asked for: addresses and ids of ended ones
 * would be given again. */
static _Thread_local uint64_t own_number; /* 0: not numbered yet */

uint64_t quire_this_thread(void)
{
	static _Atomic uint64_t numbered;

	if (own_number == 0) /* relaxed: each gets another one, in no order */
		own_number =
			atomic_fetch_add_explicit(&numbered, 1, memory_order_relaxed) + 1;
	return own_number;
}

/* Relaxed: a thread finds its own number only if it wrote it itself. */
static bool is_this(const _Atomic uint64_t *thread)
{
	return atomic_load_explicit(thread, memory_order_relaxed) == quire_this_thread();
}

/* Callbacks run on the planner's, the executor's and the recording's thread, and so does
 * whoever polls. */
bool quire_may_wait(struct quire_runtime *rt)
{
	return !is_this(&rt->planner_thread) && !is_this(&rt->executor_thread) &&
	       !is_this(&rt->recorder_thread);
}

bool quire_drives_planner(struct quire_runtime *rt)
{
	return rt->config.threads == QUIRE_THREADS_CALLER && is_this(&rt->planner_thread);
}

/* Of a poll of its own, or anywhere on the recording's; `inside` is that thread's. */
bool quire_is_inside(struct quire_runtime *rt)
{
	return (is_this(&rt->planner_thread) && rt->planner.inside) ||
	       (is_this(&rt->executor_thread) && rt->executor.inside) ||
	       is_this(&rt->recorder_thread);
}

/* ------------------------------------------------------------------ sleep */

/* Sleep until a deadline of the runtime's clock, and not beyond @look_ns of the real one.
 * Returns -1: the deadline passed; 0: look again. */
static int sleep_until(struct quire_runtime *rt, struct quire_wake *wake, uint32_t value,
                       int64_t deadline_ns, int64_t look_ns)
{
	int64_t until_ns = deadline_ns;

	if (rt->config.hooks.now_ns != NULL && deadline_ns != QUIRE_NO_DEADLINE)
		until_ns = quire_now_ns() + LOOK_NS;
	if (until_ns > look_ns)
		until_ns = look_ns;
	if (quire_wake_sleep(wake, value, until_ns) == 0)
		return 0;
	return quire_runtime_now(rt) >= deadline_ns ? -1 : 0;
}

int quire_runtime_sleep(struct quire_runtime *rt, struct quire_wake *wake, uint32_t value,
                        int64_t deadline_ns)
{
	return sleep_until(rt, wake, value, deadline_ns, QUIRE_NO_DEADLINE);
}

/* How long the executor may sleep: for ever; but while a failed runtime has steps on the
 * device it looks now and then, since it may have failed for want of memory for a
 * notice. */
static int64_t executor_look(struct quire_runtime *rt)
{
	/* Relaxed: a number that is seen late is seen at the next look. */
	if (quire_runtime_failed(rt) == NULL ||
	    atomic_load_explicit(&rt->numbers.issued_step, memory_order_relaxed) ==
	            atomic_load_explicit(&rt->numbers.retired_step, memory_order_relaxed))
		return QUIRE_NO_DEADLINE;
	return quire_now_ns() + LOOK_NS;
}

/* ------------------------------------------------------------------ the library's */

static void begin_thread(struct quire_runtime *rt, enum quire_role role)
{
	const struct quire_hooks *hooks = &rt->config.hooks;
	const struct quire_report report = {.kind = QUIRE_REPORT_THREAD_STARTED,
	                                    .text = role_names[role]};

	if (hooks->on_thread != NULL)
		hooks->on_thread(hooks->on_thread_argument, role);
	/* For what callbacks do on the device themselves. */
	(void)quire_device_enter(rt->device);
	quire_runtime_report(rt, &report);
}

static void *end_thread(struct quire_runtime *rt, enum quire_role role)
{
	quire_runtime_report(rt, &(struct quire_report){.kind = QUIRE_REPORT_THREAD_ENDED,
	                                                .text = role_names[role]});
	return NULL;
}

static void *planner_main(void *argument)
{
	struct quire_runtime *rt = argument;
	struct quire_spin spin;

	atomic_store_explicit(&rt->planner_thread, quire_this_thread(),
	                      memory_order_relaxed);
	begin_thread(rt, QUIRE_ROLE_PLANNER);
	quire_spin_init(&spin, rt->config.spin_ns);
	for (;;) {
		uint32_t value = quire_wake_value(&rt->planner_wake);

		if (quire_planner_move(rt))
			continue;
		/* Pairs with the release in stop_planner. */
		if (atomic_load_explicit(&rt->stop, memory_order_acquire) >= 1 &&
		    quire_planner_is_idle(rt))
			return end_thread(rt, QUIRE_ROLE_PLANNER);
		(void)quire_wake_await(&rt->planner_wake, value, QUIRE_NO_DEADLINE,
		                       &spin);
	}
}

static void *executor_main(void *argument)
{
	struct quire_runtime *rt = argument;
	struct quire_spin spin;

	atomic_store_explicit(&rt->executor_thread, quire_this_thread(),
	                      memory_order_relaxed);
	begin_thread(rt, QUIRE_ROLE_EXECUTOR);
	quire_spin_init(&spin, rt->config.spin_ns);
	for (;;) {
		uint32_t value = quire_wake_value(&rt->executor_wake);

		if (quire_executor_move(rt))
			continue;
		/* Pairs with the release in stop_executor. */
		if (atomic_load_explicit(&rt->stop, memory_order_acquire) >= 2 &&
		    quire_executor_is_idle(rt))
			return end_thread(rt, QUIRE_ROLE_EXECUTOR);
		(void)quire_wake_await(&rt->executor_wake, value, executor_look(rt),
		                       &spin);
	}
}

static void stop_planner(struct quire_runtime *rt)
{
	atomic_store_explicit(&rt->stop, 1, memory_order_release);
	quire_wake_all(&rt->planner_wake);
	pthread_join(rt->threads[QUIRE_ROLE_PLANNER], NULL);
}

static void stop_executor(struct quire_runtime *rt)
{
	atomic_store_explicit(&rt->stop, 2, memory_order_release);
	quire_wake_all(&rt->executor_wake);
	pthread_join(rt->threads[QUIRE_ROLE_EXECUTOR], NULL);
}

/* Signals are for the program's own threads. */
static int create_thread(pthread_t *thread, const pthread_attr_t *attributes,
                         void *(*main)(void *argument), void *argument)
{
	sigset_t all, before;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(thread, attributes, main, argument);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}

static int create_thread_on(pthread_t *thread, int32_t cpu, void *(*main)(void *argument),
                            void *argument)
{
	pthread_attr_t attributes;
	cpu_set_t cpus;
	int error = pthread_attr_init(&attributes);

	if (error != 0)
		return error;
	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	error = pthread_attr_setaffinity_np(&attributes, sizeof(cpus), &cpus);
	if (error == 0)
		error = create_thread(thread, &attributes, main, argument);
	pthread_attr_destroy(&attributes);
	return error;
}

static enum quire_status start_thread(struct quire_runtime *rt, enum quire_role role,
                                      void *(*main)(void *argument),
                                      struct quire_refusal *refusal)
{
	bool plans = role == QUIRE_ROLE_PLANNER;
	int32_t cpu = plans ? rt->config.planner_cpu : rt->config.executor_cpu;
	pthread_t *thread = &rt->threads[role];
	char name[NAME_BYTES];
	int error = cpu < 0 ? create_thread(thread, NULL, main, rt)
	                    : create_thread_on(thread, cpu, main, rt);

	if (error == EINVAL && cpu >= 0)
		return quire_refuse_bound(refusal, QUIRE_INVALID,
		                          plans ? "planner_cpu: not to be had"
		                                : "executor_cpu: not to be had",
		                          -1, cpu, -1);
	if (error != 0)
		return quire_refuse_what(refusal, QUIRE_NO_MEMORY, "threads");
	snprintf(name, sizeof(name), "%s-%s", rt->config.thread_prefix, role_names[role]);
	pthread_setname_np(*thread, name);
	return QUIRE_OK;
}

/* ------------------------------------------------------------------ start, stop */

/* CPUs that the two threads have together, 2 standing for more. */
static int cpus_for_two(const struct quire_runtime_config *config)
{
	cpu_set_t cpus;

	if (config->planner_cpu >= 0 && config->executor_cpu >= 0)
		return config->planner_cpu == config->executor_cpu ? 1 : 2;
	if (sched_getaffinity(0, sizeof(cpus), &cpus) != 0)
		return 2; /* more CPUs than the set has room for */
	return CPU_COUNT(&cpus) == 1 ? 1 : 2;
}

int64_t quire_threads_spin(const struct quire_runtime_config *config)
{
	return cpus_for_two(config) == 1 ? 0 : config->spin_ns;
}

enum quire_status quire_threads_start(struct quire_runtime *rt,
                                      struct quire_refusal *refusal)
{
	enum quire_status status;

	/* Who creates a runtime without threads drives it, until somebody else polls. */
	if (rt->config.threads == QUIRE_THREADS_CALLER) {
		quire_wake_chain(&rt->planner_wake, &rt->executor_wake);
		atomic_store_explicit(&rt->planner_thread, quire_this_thread(),
		                      memory_order_relaxed);
		atomic_store_explicit(&rt->executor_thread, quire_this_thread(),
		                      memory_order_relaxed);
		return QUIRE_OK;
	}
	QUIRE_TRY(start_thread(rt, QUIRE_ROLE_PLANNER, planner_main, refusal));
	status = start_thread(rt, QUIRE_ROLE_EXECUTOR, executor_main, refusal);
	if (status != QUIRE_OK)
		stop_planner(rt);
	return status;
}

/* The caller's thread does what is left. */
static void poll_to_the_end(struct quire_runtime *rt)
{
	int previous = quire_device_enter(rt->device);

	atomic_store_explicit(&rt->planner_thread, quire_this_thread(),
	                      memory_order_relaxed);
	atomic_store_explicit(&rt->executor_thread, quire_this_thread(),
	                      memory_order_relaxed);
	for (;;) {
		uint32_t value = quire_wake_value(&rt->executor_wake);
		bool moved = quire_planner_move(rt);

		moved |= quire_executor_move(rt);
		if (moved)
			continue;
		if (quire_planner_is_idle(rt) && quire_executor_is_idle(rt))
			break;
		(void)quire_wake_sleep(&rt->executor_wake, value, executor_look(rt));
	}
	quire_device_leave(rt->device, previous);
}

void quire_threads_stop(struct quire_runtime *rt)
{
	if (rt->config.threads == QUIRE_THREADS_CALLER) {
		poll_to_the_end(rt);
		return;
	}
	QUIRE_ASSERT(quire_may_wait(rt)); /* not inside a callback */
	stop_planner(rt);
	stop_executor(rt);
}

/* ------------------------------------------------------------------ polls */

bool quire_planner_poll(struct quire_runtime *rt)
{
	if (rt->config.threads != QUIRE_THREADS_CALLER || rt->planner.inside)
		return false;
	atomic_store_explicit(&rt->planner_thread, quire_this_thread(),
	                      memory_order_relaxed);
	return quire_planner_move(rt);
}

bool quire_executor_poll(struct quire_runtime *rt)
{
	bool moved;
	int previous;

	if (rt->config.threads != QUIRE_THREADS_CALLER || rt->executor.inside)
		return false;
	atomic_store_explicit(&rt->executor_thread, quire_this_thread(),
	                      memory_order_relaxed);
	previous = quire_device_enter(rt->device);
	moved = quire_executor_move(rt);
	quire_device_leave(rt->device, previous);
	return moved;
}

uint32_t quire_runtime_idle_value(struct quire_runtime *rt)
{
	return quire_wake_value(&rt->executor_wake);
}

enum quire_status quire_runtime_idle(struct quire_runtime *rt, uint32_t value,
                                     int64_t deadline_ns)
{
	struct quire_wake *wake = &rt->executor_wake; /* raised for both machines */

	if (rt->config.threads != QUIRE_THREADS_CALLER)
		return QUIRE_INVALID;
	if (quire_wake_value(wake) != value)
		return QUIRE_OK;
	if (deadline_ns <= quire_runtime_now(rt))
		return QUIRE_TIMEOUT;
	if (quire_is_inside(rt))
		return QUIRE_WOULD_BLOCK;
	return sleep_until(rt, wake, value, deadline_ns, executor_look(rt)) == 0
	               ? QUIRE_OK
	               : QUIRE_TIMEOUT;
}
