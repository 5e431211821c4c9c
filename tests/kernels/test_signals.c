/* SPDX-License-Identifier: MIT */
/* No signal reaches a thread of the library, and none comes from its arithmetic. */
#include "config.h"

#include "kernels/device_cpu_impl.h"
#include "tests/kernels/cache_fixture.h"
#include "tests/run_suite.h"

#include <fenv.h>
#include <pthread.h>
#include <signal.h>

#ifdef __x86_64__
#include <xmmintrin.h>
#endif

static void *block_mask(void *mask)
{
	pthread_sigmask(SIG_SETMASK, NULL, mask);
	return NULL;
}

START_TEST(a_thread_of_the_library_takes_no_signals)
{
	sigset_t before;
	sigset_t inside;
	sigset_t after;
	pthread_t thread;

	pthread_sigmask(SIG_SETMASK, NULL, &before);
	ck_assert_int_eq(quire_cpu_thread_start(&thread, NULL, block_mask, &inside), 0);
	pthread_join(thread, NULL);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	ck_assert_int_eq(sigismember(&inside, SIGTERM), 1);
	ck_assert_int_eq(sigismember(&inside, SIGUSR1), 1);
	ck_assert_int_eq(sigismember(&after, SIGTERM), sigismember(&before, SIGTERM));
	ck_assert_int_eq(sigismember(&after, SIGUSR1), sigismember(&before, SIGUSR1));
}
END_TEST

#ifdef __x86_64__

/* Masks of exceptions, rounding and flushing, without the flags.  The C library's
 * functions answer for the other unit. */
static void *note_control(void *control)
{
	*(unsigned *)control = _mm_getcsr() & ~(unsigned)_MM_EXCEPT_MASK;
	return NULL;
}

START_TEST(a_thread_of_the_library_begins_with_the_default_arithmetic)
{
	unsigned before;
	unsigned inside;
	unsigned after;
	pthread_t thread;

	feenableexcept(FE_INVALID | FE_INEXACT);
	fesetround(FE_UPWARD);
	_MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);
	note_control(&before);
	ck_assert_int_eq(quire_cpu_thread_start(&thread, NULL, note_control, &inside), 0);
	note_control(&after);
	fesetenv(FE_DFL_ENV);
	pthread_join(thread, NULL);
	ck_assert_uint_eq(inside, _MM_MASK_MASK);
	ck_assert_uint_ne(before, inside);
	ck_assert_uint_eq(after, before);
}
END_TEST

/* Their conversions are invalid, inexact, too large, too small, of subnormals. */
static const uint32_t f32_values[] = {0x7f800001, 0x3f800001, 0x7f7fffff, 0x33000001,
                                      0x00000001, 0xffbfffff, 0x7f800000, 0x80400000};
static const uint16_t f16_values[] = {0x7c01, 0x3c01, 0x7bff, 0x0001,
                                      0xfdff, 0x83ff, 0x7c00, 0xfe00};
#define NUM_VALUES 8

static const struct {
	const char *device;
	enum quire_dtype from;
	enum quire_dtype to;
} conversions[] = {
	{"cpu", QUIRE_F32, QUIRE_BF16},        {"cpu", QUIRE_F16, QUIRE_BF16},
	{"cpu", QUIRE_F32, QUIRE_F16},         {"cpu", QUIRE_F32, QUIRE_FP8_E4M3},
	{"cpu:2", QUIRE_F32, QUIRE_BF16},      {"cpu:2", QUIRE_F16, QUIRE_BF16},
	{"cpu:2", QUIRE_F32, QUIRE_F16},       {"cpu:2", QUIRE_F32, QUIRE_FP8_E4M3},
	{"cpu:inline", QUIRE_F32, QUIRE_BF16}, {"cpu:inline", QUIRE_F16, QUIRE_BF16},
	{"cpu:inline", QUIRE_F32, QUIRE_F16},  {"cpu:inline", QUIRE_F32, QUIRE_FP8_E4M3},
};
#define NUM_CONVERSIONS ((int)(sizeof(conversions) / sizeof(conversions[0])))

START_TEST(a_conversion_raises_no_signal_whatever_its_caller_has_unmasked)
{
	/* Enough to be divided. */
	enum { PAGES = 64, PAGE_SIZE = 16, DIM = 512, ROWS = PAGES * PAGE_SIZE };
	enum quire_dtype from = conversions[_i].from;
	struct quire_shape shape = {QUIRE_NHD, conversions[_i].to, 1, PAGES, PAGE_SIZE, 1,
	                            DIM};
	struct quire_slots slots = {.n = ROWS};
	enum quire_status status;
	int32_t list[PAGES];
	struct fixture f;
	unsigned before;
	unsigned after;
	char *rows;

	for (int32_t i = 0; i < PAGES; i++)
		list[i] = PAGES - 1 - i;
	/* The device's threads begin under what is unmasked here, too. */
	feenableexcept(FE_ALL_EXCEPT);
	note_control(&before);
	fixture_begin(&f, conversions[_i].device, &shape);
	slots.page = fixture_list(&f, list, PAGES);
	rows = fixture_pinned(&f, (size_t)ROWS * DIM * sizeof(float));
	for (int64_t i = 0; i < (int64_t)ROWS * DIM; i++)
		if (from == QUIRE_F32)
			((uint32_t *)rows)[i] = f32_values[i % NUM_VALUES];
		else
			((uint16_t *)rows)[i] = f16_values[i % NUM_VALUES];
	status = quire_cache_write_tokens(f.cache, f.dstream, 0, &slots, rows, rows, from,
	                                  NULL, NULL);
	if (status == QUIRE_OK)
		status = quire_dstream_synchronize(f.dstream, NULL);
	note_control(&after);
	fesetenv(FE_DFL_ENV);
	ck_assert_int_eq(status, QUIRE_OK);
	ck_assert_uint_eq(before & _MM_MASK_MASK & ~(unsigned)_MM_MASK_DENORM, 0);
	ck_assert_uint_eq(after, before);
	naive_write(&f.expected, 0, &slots, rows, rows, from);
	fixture_expect(&f, "write", 0);
	fixture_end(&f);
}
END_TEST

#endif

int main(void)
{
	Suite *suite = suite_create("signals");
	TCase *tcase = tcase_create("signals");

	exact_prepare();
	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, 30);
	tcase_add_test(tcase, a_thread_of_the_library_takes_no_signals);
#ifdef __x86_64__
	tcase_add_test(tcase, a_thread_of_the_library_begins_with_the_default_arithmetic);
	tcase_add_loop_test(
		tcase, a_conversion_raises_no_signal_whatever_its_caller_has_unmasked, 0,
		NUM_CONVERSIONS);
#endif
	return run_suite(suite);
}
