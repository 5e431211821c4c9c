/* SPDX-License-Identifier: MIT */
/* Threads: the library's have names, CPUs and a hook, and do nothing while idle; the
 * caller's sleep until there is something to do, and sleep through nothing. */
#include "config.h"

#include "fixture.h"
#include "runtime/runtime_impl.h"
#include "tests/run_suite.h"

#include <check.h>
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define NUM_PAGES 16
#define PAGE_SIZE 4
#define STEPS     2000
#define FAR_NS    INT64_C(20000000000)
#define NS_PER_S  INT64_C(1000000000)

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* ------------------------------------------------------------------ the library's */

/* How many threads of this process have a name? */
static int threads_named(const char *name)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *task;
	int found = 0;

	must(tasks != NULL);
	while ((task = readdir(tasks)) != NULL) {
		char path[300], comm[32] = "";
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", task->d_name);
		file = fopen(path, "r");
		if (file == NULL)
			continue;
		if (fgets(comm, sizeof(comm), file) != NULL)
			comm[strcspn(comm, "\n")] = '\0';
		fclose(file);
		found += strcmp(comm, name) == 0;
	}
	closedir(tasks);
	return found;
}

START_TEST(threads_are_named_with_the_prefix_of_their_runtime)
{
	struct fixture f;

	fixture_begin(&f, "cpu", NUM_PAGES, PAGE_SIZE);
	f.config.threads = QUIRE_THREADS_LIBRARY;
	if (_i == 1)
		f.config.thread_prefix = "sixsix";
	fixture_create(&f);
	ck_assert_int_eq(threads_named("quire-planner"), _i == 0);
	ck_assert_int_eq(threads_named("quire-executor"), _i == 0);
	ck_assert_int_eq(threads_named("sixsix-planner"), _i == 1);
	ck_assert_int_eq(threads_named("sixsix-executor"), _i == 1);
	fixture_end(&f);
}
END_TEST

/* The device's threads name themselves, so only who waited for one finds its name. */
START_TEST(device_streams_are_named_with_the_prefix_too)
{
	struct fixture f;

	fixture_begin(&f, "cpu", NUM_PAGES, PAGE_SIZE);
	f.config.thread_prefix = "ab";
	fixture_create(&f);
	while (threads_named("ab-upload") == 0 || threads_named("ab-compute") == 0)
		sched_yield(); /* for ever, where it is wrong */
	fixture_end(&f);
}
END_TEST

struct seen {
	int calls[2];
	int cpus[2];
	int cpu[2];
};

static void look_at_thread(void *argument, enum quire_role role)
{
	struct seen *seen = argument;
	cpu_set_t cpus;

	must(sched_getaffinity(0, sizeof(cpus), &cpus) == 0);
	seen->calls[role]++;
	seen->cpus[role] = CPU_COUNT(&cpus);
	seen->cpu[role] = sched_getcpu();
}

/* The last CPU that this process may use. */
static int some_cpu(void)
{
	cpu_set_t cpus;
	int cpu = CPU_SETSIZE - 1;

	must(sched_getaffinity(0, sizeof(cpus), &cpus) == 0);
	while (!CPU_ISSET(cpu, &cpus))
		cpu--;
	return cpu;
}

START_TEST(each_thread_runs_where_it_should_from_its_first_call_on)
{
	struct seen seen = {{0}, {0}, {0}};
	int cpu = some_cpu();
	struct fixture f;

	fixture_begin(&f, "cpu:inline", NUM_PAGES, PAGE_SIZE);
	f.config.threads = QUIRE_THREADS_LIBRARY;
	f.config.planner_cpu = f.config.executor_cpu = cpu;
	f.config.hooks.on_thread = look_at_thread;
	f.config.hooks.on_thread_argument = &seen;
	fixture_create(&f);
	fixture_end(&f);
	for (int role = 0; role < 2; role++) {
		ck_assert_int_eq(seen.calls[role], 1);
		ck_assert_int_eq(seen.cpus[role], 1);
		ck_assert_int_eq(seen.cpu[role], cpu);
	}
}
END_TEST

START_TEST(a_cpu_that_is_not_there_is_refused_and_leaves_no_thread)
{
	struct quire_runtime *runtime = NULL;
	struct quire_refusal refusal;
	struct fixture f;

	fixture_begin(&f, "cpu:inline", NUM_PAGES, PAGE_SIZE);
	f.config.threads = QUIRE_THREADS_LIBRARY;
	if (_i == 0)
		f.config.planner_cpu = CPU_SETSIZE - 1;
	else
		f.config.executor_cpu = CPU_SETSIZE - 1;
	ck_assert_int_eq(quire_runtime_create(&f.config, &runtime, &refusal),
	                 QUIRE_INVALID);
	ck_assert_ptr_null(runtime);
	ck_assert_int_eq(refusal.got, CPU_SETSIZE - 1);
	ck_assert_int_eq(strncmp(refusal.what, _i == 0 ? "planner_cpu" : "executor_cpu",
	                         strlen("planner_cpu")),
	                 0);
	ck_assert_int_eq(threads_named("quire-planner"), 0);
	quire_cache_destroy(f.cache);
	quire_device_destroy(f.device);
}
END_TEST

START_TEST(bad_values_are_refused_by_name)
{
	static const char *const names[] = {"planner_cpu", "executor_cpu", "spin_ns",
	                                    "thread_prefix", "thread_prefix"};
	struct quire_runtime *runtime = NULL;
	struct quire_refusal refusal;
	struct fixture f;

	fixture_begin(&f, "cpu:inline", NUM_PAGES, PAGE_SIZE);
	if (_i == 0)
		f.config.planner_cpu = -2;
	else if (_i == 1)
		f.config.executor_cpu = CPU_SETSIZE;
	else if (_i == 2)
		f.config.spin_ns = -2;
	else
		f.config.thread_prefix = _i == 3 ? "" : "sevenel";
	ck_assert_int_eq(quire_runtime_create(&f.config, &runtime, &refusal),
	                 QUIRE_INVALID);
	ck_assert_int_eq(strncmp(refusal.what, names[_i], strlen(names[_i])), 0);
	quire_cache_destroy(f.cache);
	quire_device_destroy(f.device);
}
END_TEST

/* Two threads that look, on one CPU, would only keep each other from working. */
START_TEST(nobody_looks_before_sleeping_where_both_threads_have_one_cpu)
{
	struct quire_runtime_config config = {
		.planner_cpu = -1, .executor_cpu = -1, .spin_ns = 77};
	cpu_set_t before, one;
	int cpu = some_cpu();

	must(sched_getaffinity(0, sizeof(before), &before) == 0);
	if (CPU_COUNT(&before) > 1)
		ck_assert_int_eq(quire_threads_spin(&config), 77);
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	must(sched_setaffinity(0, sizeof(one), &one) == 0);
	ck_assert_int_eq(quire_threads_spin(&config), 0);
	config.planner_cpu = config.executor_cpu = 3;
	ck_assert_int_eq(quire_threads_spin(&config), 0);
	config.planner_cpu = 2; /* wherever the creator may run */
	ck_assert_int_eq(quire_threads_spin(&config), 77);
	must(sched_setaffinity(0, sizeof(before), &before) == 0);
}
END_TEST

static int64_t cpu_ns(void)
{
	struct rusage usage;

	must(getrusage(RUSAGE_SELF, &usage) == 0);
	return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * NS_PER_S +
	       (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000;
}

static void run_steps(struct fixture *f, int n)
{
	const struct quire_segment segment = {.request = 1, .at = QUIRE_AT_ANY};
	const struct quire_step step = {.segments = &segment, .num_segments = 1};

	for (int i = 0; i < n; i++)
		must(quire_runtime_wait(f->runtime, submit(f, &step), QUIRE_STAGE_RETIRED,
		                        now_ns() + FAR_NS, NULL) == QUIRE_OK);
}

/* With steps done before, so that all threads have looked and slept. */
START_TEST(an_idle_runtime_takes_no_cpu)
{
	struct timespec second = {.tv_sec = 1};
	struct fixture f;
	int64_t before_ns;

	fixture_begin(&f, "cpu", NUM_PAGES, PAGE_SIZE);
	f.config.threads = QUIRE_THREADS_LIBRARY;
	fixture_create(&f);
	must(quire_runtime_open(f.runtime, 1, NULL) == QUIRE_OK);
	run_steps(&f, 50);
	before_ns = cpu_ns();
	nanosleep(&second, NULL);
	ck_assert_int_lt(cpu_ns() - before_ns, NS_PER_S / 20);
	fixture_end(&f);
}
END_TEST

/* ------------------------------------------------------------------ the caller's */

/* Whoever polls: the planner, the executor, or both. */
struct driver {
	struct fixture *f;
	_Atomic bool *ends;
	bool plans, executes;
	bool slept_through;
	pthread_t thread;
};

static void *drive(void *argument)
{
	struct driver *driver = argument;
	struct quire_runtime *runtime = driver->f->runtime;

	while (!atomic_load(driver->ends)) {
		uint32_t value = quire_runtime_idle_value(runtime);
		bool moved = driver->plans && quire_planner_poll(runtime);

		moved |= driver->executes && quire_executor_poll(runtime);
		if (!moved && quire_runtime_idle(runtime, value, now_ns() + FAR_NS) ==
		                      QUIRE_TIMEOUT)
			driver->slept_through = true;
	}
	return NULL;
}

static void run_driven(const char *device, int drivers)
{
	_Atomic bool ends = false;
	struct fixture f;
	struct driver both[2] = {
		{.f = &f, .ends = &ends, .plans = true, .executes = drivers == 1},
		{.f = &f, .ends = &ends, .executes = true},
	};
	const struct quire_segment segment = {.request = 1, .at = QUIRE_AT_ANY};
	const struct quire_step step = {.segments = &segment, .num_segments = 1};
	uint64_t ticket;

	fixture_begin(&f, device, NUM_PAGES, PAGE_SIZE);
	fixture_create(&f);
	for (int i = 0; i < drivers; i++)
		must(pthread_create(&both[i].thread, NULL, drive, &both[i]) == 0);
	/* Who created it may not wait before others have polled both. */
	must(quire_runtime_open(f.runtime, 1, NULL) == QUIRE_OK);
	ticket = submit(&f, &step);
	while (quire_runtime_wait(f.runtime, ticket, QUIRE_STAGE_RETIRED, 0, NULL) !=
	       QUIRE_OK)
		sched_yield();
	run_steps(&f, STEPS);
	atomic_store(&ends, true);
	must(quire_runtime_open(f.runtime, 2, &ticket) == QUIRE_OK); /* wakes them */
	for (int i = 0; i < drivers; i++) {
		pthread_join(both[i].thread, NULL);
		ck_assert(!both[i].slept_through);
	}
	quire_runtime_destroy(f.runtime);
	quire_cache_destroy(f.cache);
	quire_device_destroy(f.device);
}

START_TEST(who_polls_both_sleeps_through_no_change)
{
	run_driven(_i == 0 ? "cpu" : "cpu:inline", 1);
}
END_TEST

START_TEST(two_threads_that_poll_one_each_sleep_through_no_change)
{
	run_driven(_i == 0 ? "cpu" : "cpu:inline", 2);
}
END_TEST

struct idler {
	struct fixture f;
	enum quire_status in_run, in_plan;
};

static enum quire_status idle_now(struct idler *idler)
{
	struct quire_runtime *runtime = idler->f.runtime;

	return quire_runtime_idle(runtime, quire_runtime_idle_value(runtime),
	                          QUIRE_NO_DEADLINE);
}

static enum quire_status idle_in_run(void *argument, const struct quire_plan *plan,
                                     struct quire_dstream *compute)
{
	struct idler *idler = argument;

	(void)plan;
	(void)compute;
	idler->in_run = idle_now(idler);
	return QUIRE_OK;
}

static enum quire_status idle_in_plan(void *argument, struct quire_plan *plan)
{
	struct idler *idler = argument;

	(void)plan;
	idler->in_plan = idle_now(idler);
	return QUIRE_OK;
}

START_TEST(idling_waits_in_no_callback_nor_beyond_a_deadline_nor_for_old_values)
{
	const struct quire_segment segment = {.request = 1, .at = 0};
	static struct idler idler;
	const struct quire_step step = {.segments = &segment,
	                                .num_segments = 1,
	                                .run = idle_in_run,
	                                .run_argument = &idler};
	struct quire_runtime *runtime;
	uint32_t value;

	fixture_begin(&idler.f, "cpu:inline", NUM_PAGES, PAGE_SIZE);
	idler.f.config.on_plan = idle_in_plan;
	idler.f.config.on_plan_argument = &idler;
	fixture_create(&idler.f);
	runtime = idler.f.runtime;
	ck_assert_int_eq(open_now(&idler.f, 1), QUIRE_OK);
	submit_now(&idler.f, &step);
	ck_assert_int_eq(idler.in_run, QUIRE_WOULD_BLOCK);
	ck_assert_int_eq(idler.in_plan, QUIRE_WOULD_BLOCK);
	value = quire_runtime_idle_value(runtime);
	ck_assert_int_eq(quire_runtime_idle(runtime, value, 0), QUIRE_TIMEOUT);
	ck_assert_int_eq(quire_runtime_idle(runtime, value, now_ns() + 2000000),
	                 QUIRE_TIMEOUT);
	must(quire_runtime_open(runtime, 2, NULL) == QUIRE_OK);
	ck_assert_int_eq(quire_runtime_idle(runtime, value, 0), QUIRE_OK);
	ck_assert_int_eq(quire_runtime_idle(runtime, value, QUIRE_NO_DEADLINE), QUIRE_OK);
	fixture_end(&idler.f);
}
END_TEST

START_TEST(a_runtime_with_threads_of_its_own_has_nobody_to_idle)
{
	struct fixture f;

	fixture_begin(&f, "cpu:inline", NUM_PAGES, PAGE_SIZE);
	f.config.threads = QUIRE_THREADS_LIBRARY;
	fixture_create(&f);
	ck_assert_int_eq(quire_runtime_idle(f.runtime,
	                                    quire_runtime_idle_value(f.runtime),
	                                    QUIRE_NO_DEADLINE),
	                 QUIRE_INVALID);
	fixture_end(&f);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("threads");
	TCase *tcase = tcase_create("threads");

	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, threads_are_named_with_the_prefix_of_their_runtime, 0,
	                    2);
	tcase_add_test(tcase, device_streams_are_named_with_the_prefix_too);
	tcase_add_test(tcase, each_thread_runs_where_it_should_from_its_first_call_on);
	tcase_add_loop_test(
		tcase, a_cpu_that_is_not_there_is_refused_and_leaves_no_thread, 0, 2);
	tcase_add_loop_test(tcase, bad_values_are_refused_by_name, 0, 5);
	tcase_add_test(tcase,
	               nobody_looks_before_sleeping_where_both_threads_have_one_cpu);
	tcase_add_test(tcase, an_idle_runtime_takes_no_cpu);
	tcase_add_loop_test(tcase, who_polls_both_sleeps_through_no_change, 0, 2);
	tcase_add_loop_test(tcase, two_threads_that_poll_one_each_sleep_through_no_change,
	                    0, 2);
	tcase_add_test(
		tcase,
		idling_waits_in_no_callback_nor_beyond_a_deadline_nor_for_old_values);
	tcase_add_test(tcase, a_runtime_with_threads_of_its_own_has_nobody_to_idle);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
