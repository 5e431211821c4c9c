/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/cmd/stress_impl.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#define NS_PER_S INT64_C(1000000000)

#define STUCK_S (CMD_STRESS_LOOKS * CMD_STRESS_LOOK_NS / NS_PER_S)

/* Looks at the threads that a violation has stopped, before they are left behind. */
#define LOOKS_AFTER 20 /* 2 s */

static void stop(struct cmd_stress *stress)
{
	/* Relaxed: a flag that tells of nothing else. */
	atomic_store_explicit(&stress->stop, true, memory_order_relaxed);
}

/* ------------------------------------------------------------------ violations */

void cmd_stress_fail(struct cmd_stress *stress, const char *format, ...)
{
	int sound = CMD_STRESS_SOUND;
	va_list arguments;

	/* Relaxed: the first one writes, nobody reads before BROKEN. */
	if (!atomic_compare_exchange_strong_explicit(
		    &stress->verdict, &sound, CMD_STRESS_BREAKING, memory_order_relaxed,
		    memory_order_relaxed))
		return;
	va_start(arguments, format);
	vsnprintf(stress->violation, sizeof(stress->violation), format, arguments);
	va_end(arguments);
	/* Release: pairs with the acquire in is_broken(). */
	atomic_store_explicit(&stress->verdict, CMD_STRESS_BROKEN, memory_order_release);
	stop(stress);
	quire_wake_all(&stress->wake);
}

static bool is_broken(const struct cmd_stress *stress)
{
	return atomic_load_explicit(&stress->verdict, memory_order_acquire) ==
	       CMD_STRESS_BROKEN;
}

bool cmd_stress_is_contested(const struct cmd_stress *stress, int32_t page)
{
	const struct cmd_stress_options *options = &stress->options;

	/* One thread at a time frees, where there is one giver, one thread or a lock. */
	return page % CMD_STRESS_CONTESTED == 0 && options->threads > 1 &&
	       !options->one_giver && options->kind == QUIRE_POOL_LOCK_FREE;
}

/* ------------------------------------------------------------------ run */

/* Does a number that should grow not do so any more? */
static bool is_stuck(int64_t number, int64_t *seen, int32_t *still)
{
	*still = number == *seen ? *still + 1 : 0;
	*seen = number;
	return *still >= CMD_STRESS_LOOKS;
}

static int64_t num_takes(const struct cmd_stress *stress)
{
	int64_t takes = 0;

	for (int64_t t = 0; t < stress->options.threads; t++) {
		/* Relaxed: a number. */
		takes += atomic_load_explicit(&stress->workers[t].takes,
		                              memory_order_relaxed);
	}
	return takes;
}

/* A thread whose turns do not grow has not come back from the pool.  If turns grow, but
 * takes do not, then the pages are gone: the end will say which. */
static void look_for_stuck(struct cmd_stress *stress)
{
	for (int64_t t = 0; t < stress->options.threads; t++) {
		struct cmd_worker *worker = &stress->workers[t];
		/* Relaxed: a number. */
		int64_t turns =
			atomic_load_explicit(&worker->turns, memory_order_relaxed);

		if (turns != CMD_STRESS_ENDED &&
		    is_stuck(turns, &worker->seen_turns, &worker->still))
			cmd_stress_fail(stress,
			                "thread %" PRId32 " has not come back from a "
			                "call of the pool for %" PRId64 " s",
			                worker->id, STUCK_S);
	}
	if (is_stuck(num_takes(stress), &stress->seen_takes, &stress->still)) {
		stress->is_dry = true;
		stop(stress);
	}
}

static void show_progress(const struct cmd_stress *stress, int64_t ns)
{
	int64_t all_ns = stress->options.seconds * NS_PER_S;

	if (all_ns == 0)
		cmd_progress_show(num_takes(stress), -1);
	else
		cmd_progress_show(ns < all_ns ? ns : all_ns, all_ns);
}

/* Until all threads have ended; false: a violation has stopped them, but some go on. */
static bool watch(struct cmd_stress *stress, int64_t start_ns)
{
	int64_t seconds = stress->options.seconds;
	int64_t end_ns = seconds != 0 ? start_ns + seconds * NS_PER_S : INT64_MAX;
	int32_t looks_after = 0;

	for (;;) {
		uint32_t value = quire_wake_value(&stress->wake);
		int64_t now_ns = quire_now_ns();
		int64_t look_ns = now_ns + CMD_STRESS_LOOK_NS;

		/* Relaxed: as in cmd_stress_work(). */
		if (atomic_load_explicit(&stress->running, memory_order_relaxed) == 0)
			return true;
		if (now_ns >= end_ns)
			stop(stress);
		show_progress(stress, now_ns - start_ns);
		if (now_ns < end_ns && end_ns < look_ns)
			look_ns = end_ns;
		if (quire_wake_sleep(&stress->wake, value, look_ns) == 0)
			continue;
		if (is_broken(stress) && ++looks_after == LOOKS_AFTER)
			return false;
		look_for_stuck(stress);
	}
}

int64_t cmd_stress_pages_taken(const struct cmd_stress *stress)
{
	int64_t pages = 0;

	for (int64_t t = 0; t < stress->options.threads; t++)
		pages += stress->workers[t].pages_taken;
	return pages;
}

/* Make the threads, and let them begin; when one cannot be made, none does. */
static int start_threads(struct cmd_stress *stress, int64_t *start_ns_out)
{
	int64_t threads = stress->options.threads;
	int64_t made = 0;
	int error = 0;

	while (error == 0 && made < threads) {
		struct cmd_worker *worker = &stress->workers[made];

		error = pthread_create(&worker->thread, NULL, cmd_stress_work, worker);
		made += error == 0;
	}
	if (error != 0)
		stop(stress);
	*start_ns_out = quire_now_ns();
	/* Relaxed: a flag; the threads were made after all that they read. */
	atomic_store_explicit(&stress->started, true, memory_order_relaxed);
	quire_wake_all(&stress->start);
	if (error == 0)
		return CMD_DONE;
	cmd_tell(NULL, 0, "thread %" PRId64 " of %" PRId64 " cannot be made: %s",
	         made + 1, threads, strerror(error));
	while (made-- > 0)
		pthread_join(stress->workers[made].thread, NULL);
	return CMD_BAD;
}

int cmd_stress_run(struct cmd_stress *stress)
{
	int64_t start_ns;
	int code;

	cmd_progress_start("stress", &stress->options.common);
	code = start_threads(stress, &start_ns);
	if (code != CMD_DONE)
		return code;
	stress->is_left_behind = !watch(stress, start_ns);
	stress->wall_ns = quire_now_ns() - start_ns;
	cmd_progress_end();
	for (int64_t t = 0; t < stress->options.threads; t++) {
		if (stress->is_left_behind)
			pthread_detach(stress->workers[t].thread);
		else
			pthread_join(stress->workers[t].thread, NULL);
	}
	if (!stress->is_left_behind)
		stress->wall_pages = cmd_stress_pages_taken(stress);
	if (!is_broken(stress))
		code = cmd_stress_end(stress);
	if (stress->is_dry)
		cmd_stress_fail(stress, "no take has succeeded for %" PRId64 " s",
		                STUCK_S);
	if (is_broken(stress)) {
		cmd_stress_tell(stress);
		code = CMD_FAILED;
	}
	return cmd_stress_report(stress, code);
}
