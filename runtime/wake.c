/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/wake_impl.h"

#include <ck_pr.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000

/* Looks at the value between two at the clock, which costs as much as a few of them. */
#define LOOKS 16

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
	wake->also = NULL;
}

void quire_wake_chain(struct quire_wake *wake, struct quire_wake *also)
{
	wake->also = also;
}

uint32_t quire_wake_value(const struct quire_wake *wake)
{
	return ck_ec32_value(&wake->count);
}

void quire_wake_all(struct quire_wake *wake)
{
	ck_ec32_inc(&wake->count, &wake_mode);
	if (wake->also != NULL)
		ck_ec32_inc(&wake->also->count, &wake_mode);
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

void quire_spin_init(struct quire_spin *spin, int64_t spin_ns)
{
	*spin = (struct quire_spin){
		.ns = spin_ns < 0 ? QUIRE_SPIN_ADAPTIVE_NS : spin_ns,
		.adapts = spin_ns < 0,
	};
}

/* Was the wake raised before the time was over? */
static bool look(const struct quire_wake *wake, uint32_t value, int64_t deadline_ns,
                 int64_t spin_ns)
{
	int64_t now_ns = quire_now_ns();
	int64_t end_ns = now_ns + spin_ns;

	if (end_ns > deadline_ns)
		end_ns = deadline_ns;
	for (; now_ns < end_ns; now_ns = quire_now_ns()) {
		for (int i = 0; i < LOOKS; i++) {
			if (ck_ec32_value(&wake->count) != value)
				return true;
			ck_pr_stall();
		}
	}
	return false;
}

int quire_wake_await(struct quire_wake *wake, uint32_t value, int64_t deadline_ns,
                     struct quire_spin *spin)
{
	if (spin->skips > 0) {
		spin->skips--;
	} else if (spin->ns > 0) {
		if (look(wake, value, deadline_ns, spin->ns)) {
			spin->backoff /= 2;
			return 0;
		}
		if (spin->adapts) {
			spin->backoff = 2 * spin->backoff + 1;
			if (spin->backoff > QUIRE_SPIN_SKIPS_MAX)
				spin->backoff = QUIRE_SPIN_SKIPS_MAX;
			spin->skips = spin->backoff;
		}
	}
	return quire_wake_sleep(wake, value, deadline_ns);
}

int64_t quire_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}
