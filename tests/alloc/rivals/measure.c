/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/histogram_impl.h"
#include "tests/alloc/rivals/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SERIES_MAX 1024

struct series {
	char measure[32];
	const struct rival *rival;
	int num_rounds;
	double values[ROUNDS_MAX];
};

static struct series all_series[SERIES_MAX];
static int num_series;

double measure_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static struct series *find(const char *measure, const struct rival *rival)
{
	for (int i = 0; i < num_series; i++) {
		if (all_series[i].rival == rival &&
		    strcmp(all_series[i].measure, measure) == 0)
			return &all_series[i];
	}
	return NULL;
}

void measure_add(const char *measure, const struct rival *rival, double value)
{
	struct series *series = find(measure, rival);

	if (!series) {
		rival_must(num_series < SERIES_MAX, "too many measures");
		series = &all_series[num_series++];
		snprintf(series->measure, sizeof(series->measure), "%s", measure);
		series->rival = rival;
	}
	rival_must(series->num_rounds < ROUNDS_MAX, "too many rounds");
	series->values[series->num_rounds++] = value;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double quantile_of(const double *values, int num, double quantile)
{
	double sorted[ROUNDS_MAX];

	if (num == 0)
		return NAN;
	memcpy(sorted, values, (size_t)num * sizeof(*values));
	qsort(sorted, (size_t)num, sizeof(*sorted), by_value);
	return sorted[(int)(quantile * (num - 1) + 0.5)];
}

double measure_value(const char *measure, const struct rival *rival, double quantile)
{
	const struct series *series = find(measure, rival);

	return series ? quantile_of(series->values, series->num_rounds, quantile) : NAN;
}

/* A rival that sat out the last rounds is compared in those that it had. */
double measure_ratio(const char *measure, const struct rival *rival,
                     const struct rival *to, double quantile)
{
	const struct series *over = find(measure, rival), *under = find(measure, to);
	double ratios[ROUNDS_MAX];
	int num = 0;

	while (over && under && num < over->num_rounds && num < under->num_rounds) {
		ratios[num] = over->values[num] / under->values[num];
		num++;
	}
	return quantile_of(ratios, num, quantile);
}

/* With three figures or more. */
static void print_number(double value)
{
	int decimals = 0;

	for (double limit = 100; value < limit && decimals < 5; limit /= 10)
		decimals++;
	printf(" %.*f", decimals, value);
}

static void print_line(const struct series *series, const char *unit, double quantile)
{
	const struct rival *rival = series->rival, *to = &rival_mutex_checks;
	const char *measure = series->measure;

	printf("%s.%s", measure, rival->name);
	print_number(measure_value(measure, rival, quantile));
	printf(" %s", unit);
	print_number(measure_ratio(measure, rival, to, 0.5));
	print_number(measure_value(measure, rival, 0.25));
	print_number(measure_value(measure, rival, 0.75));
	print_number(measure_ratio(measure, rival, to, 0.25));
	print_number(measure_ratio(measure, rival, to, 0.75));
	printf(" %d\n", series->num_rounds);
}

void measure_print(const char *measure, const char *unit, double quantile)
{
	const struct rival *rivals[RIVALS_MAX];
	int num_rivals = rivals_list(rivals);

	for (int i = 0; i < num_rivals; i++) {
		const struct series *series = find(measure, rivals[i]);

		if (series)
			print_line(series, unit, quantile);
	}
	fflush(stdout);
}

struct times {
	uint64_t num;
	uint64_t longest;
	uint64_t steps[QUIRE_HISTOGRAM_BUCKETS];
};

struct times *times_create(void)
{
	return rival_memory(sizeof(struct times));
}

void times_add(struct times *times, uint64_t ticks)
{
	times->steps[quire_histogram_bucket((int64_t)ticks)]++;
	times->num++;
	if (ticks > times->longest)
		times->longest = ticks;
}

void times_merge(struct times *times, const struct times *more)
{
	for (int i = 0; i < QUIRE_HISTOGRAM_BUCKETS; i++)
		times->steps[i] += more->steps[i];
	times->num += more->num;
	if (more->longest > times->longest)
		times->longest = more->longest;
}

/* Both clocks over the same 20 ms, once. */
static double ns_per_tick(void)
{
	static double ratio;
	struct timespec nap = {.tv_nsec = 20 * 1000 * 1000};

	if (ratio == 0) {
		double start_ns = measure_now_ns();
		uint64_t start = ticks_now();

		nanosleep(&nap, NULL);
		ratio = (measure_now_ns() - start_ns) / (double)(ticks_now() - start);
	}
	return ratio;
}

double times_quantile_ns(const struct times *times, double quantile)
{
	uint64_t seen = 0;

	for (int i = 0; i + 1 < QUIRE_HISTOGRAM_BUCKETS; i++) {
		seen += times->steps[i];
		if (seen && (double)seen >= quantile * (double)times->num) {
			uint64_t end = (uint64_t)quire_histogram_value(i + 1);

			if (end > times->longest)
				end = times->longest;
			return (double)end * ns_per_tick();
		}
	}
	return 0;
}
