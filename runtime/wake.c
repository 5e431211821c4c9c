/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/wake_impl.h"

#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000

static int get_time(const struct ck_ec_ops *ops, struct timespec *out)
{
	(void)ops;
	return clock_gettime(CLOCK_MONOTONIC, out);
}

/* The deadline is absolute on CLOCK_MONOTONIC, as FUTEX_WAIT_BITSET takes it. */
static void wait32(const struct ck_ec_wait_state *state, const uint32_t *address,
                   uint32_t expected, const struct timespec *deadline)
{
	(void)state;
	syscall(SYS_futex, address, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, expected,
	        deadline, NULL, FUTEX_BITSET_MATCH_ANY);
}

static void wake32(const struct ck_ec_ops *ops, const uint32_t *address)
{
	(void)ops;
	syscall(SYS_futex, address, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT32_MAX, NULL,
	        NULL, 0);
}

static const struct ck_ec_ops wake_ops = {
	.gettime = get_time,
	.wait32 = wait32,
	.wake32 = wake32,
};

static const struct ck_ec_mode wake_mode = {.ops = &wake_ops, .single_producer = false};

void quire_wake_init(struct quire_wake *wake)
{
	ck_ec32_init(&wake->count, 0);
}

uint32_t quire_wake_value(const struct quire_wake *wake)
{
	return ck_ec32_value(&wake->count);
}

void quire_wake_all(struct quire_wake *wake)
{
	ck_ec32_inc(&wake->count, &wake_mode);
}

int quire_wake_sleep(struct quire_wake *wake, uint32_t value, int64_t deadline_ns)
{
	struct timespec deadline = {
		.tv_sec = deadline_ns / NS_PER_S,
		.tv_nsec = deadline_ns % NS_PER_S,
	};

	return ck_ec32_wait(&wake->count, &wake_mode, value,
	                    deadline_ns == INT64_MAX ? NULL : &deadline);
}

int64_t quire_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}
