/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_TESTS_RUNTIME_RECORDED_H
#define QUIRE_TESTS_RUNTIME_RECORDED_H
/* A fixture whose runtime is recorded into memory, and its lines. */
#include "directed.h"

#include <quire/runtime/record.h>

#include <pthread.h>
#include <stdlib.h>

#define RECORDED_BYTES (4 << 20)

/* What the recording wrote; its thread's until it has ended. */
struct recorded {
	size_t n;
	char bytes[RECORDED_BYTES];
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t changed;
	bool is_shut; /* a write waits until this is over */
	int waiting;  /* writes that do */
	int calls;    /* of the function, from 1 */
	int fails_at; /* the call that fails; 0: none does */
	int reports;  /* of the recording's end */
	struct quire_report report;
	char text[512]; /* of it */
};

static struct recorded recorded = {.lock = PTHREAD_MUTEX_INITIALIZER,
                                   .changed = PTHREAD_COND_INITIALIZER};

static inline enum quire_status recorded_write(void *argument, const void *bytes,
                                               size_t n)
{
	bool fails;

	(void)argument;
	pthread_mutex_lock(&recorded.lock);
	recorded.waiting++;
	pthread_cond_broadcast(&recorded.changed);
	while (recorded.is_shut)
		pthread_cond_wait(&recorded.changed, &recorded.lock);
	recorded.waiting--;
	fails = ++recorded.calls == recorded.fails_at;
	pthread_mutex_unlock(&recorded.lock);
	if (fails)
		return QUIRE_IO;
	must(recorded.n + n < RECORDED_BYTES);
	memcpy(recorded.bytes + recorded.n, bytes, n);
	recorded.n += n;
	recorded.bytes[recorded.n] = '\0';
	return QUIRE_OK;
}

static inline void recorded_shut(bool is_shut)
{
	pthread_mutex_lock(&recorded.lock);
	recorded.is_shut = is_shut;
	pthread_cond_broadcast(&recorded.changed);
	pthread_mutex_unlock(&recorded.lock);
}

/* Until the recording's thread stands in a write. */
static inline void recorded_await_write(void)
{
	pthread_mutex_lock(&recorded.lock);
	while (recorded.waiting == 0)
		pthread_cond_wait(&recorded.changed, &recorded.lock);
	pthread_mutex_unlock(&recorded.lock);
}

static inline void recorded_report(void *argument, const struct quire_report *report)
{
	(void)argument;
	if (report->kind != QUIRE_REPORT_RECORDING_ENDED)
		return;
	pthread_mutex_lock(&recorded.lock);
	recorded.reports++;
	recorded.report = *report;
	snprintf(recorded.text, sizeof(recorded.text), "%s", report->text);
	pthread_mutex_unlock(&recorded.lock);
}

/* Before the runtime is made. */
static inline void recorded_begin(struct fixture *f, int64_t num_pages, int64_t page_size)
{
	directed_begin(f, num_pages, page_size);
	f->config.hooks.on_report = recorded_report;
}

static inline struct quire_record_config recorded_config(void)
{
	struct quire_record_config config;

	quire_record_config_init(&config);
	config.write = recorded_write;
	config.digests = false;
	config.flush_ns = 1000000;
	return config;
}

static inline void recorded_create(struct fixture *f,
                                   const struct quire_record_config *config)
{
	struct quire_refusal refusal;

	fixture_create(f);
	must(quire_runtime_record_to(f->runtime, config, &refusal) == QUIRE_OK);
}

static inline struct quire_record_status recorded_status(struct fixture *f)
{
	struct quire_record_status status;

	must(quire_runtime_record_status(f->runtime, &status) == QUIRE_OK);
	return status;
}

/* Line i of what was written, from the header on, without its times; NULL: there are
 * fewer.  The answer is lent until the next call. */
static inline const char *recorded_line(int i)
{
	static char line[1 << 16];
	const char *from = recorded.bytes, *to, *times;
	size_t length;

	for (; i > 0 && from != NULL; i--)
		from = strchr(from, '\n') == NULL ? NULL : strchr(from, '\n') + 1;
	to = from == NULL ? NULL : strchr(from, '\n');
	if (to == NULL)
		return NULL;
	length = (size_t)(to - from);
	must(length < sizeof(line) - 1);
	memcpy(line, from, length);
	line[length] = '\0';
	times = strstr(line, ",\"times\":");
	if (times != NULL)
		strcpy(line + (times - line), "}");
	return line;
}

/* The lines behind the header are these. */
static inline void check_lines(const char *const *lines, int n)
{
	for (int i = 0; i < n; i++) {
		const char *got = recorded_line(i + 1);

		ck_assert_msg(got != NULL, "no line %d: %s", i + 1, lines[i]);
		ck_assert_msg(strcmp(got, lines[i]) == 0, "line %d is\n%s, not\n%s",
		              i + 1, got, lines[i]);
	}
	ck_assert_ptr_null(recorded_line(n + 1));
}

#define ck_assert_lines(...)                            \
	check_lines((const char *const[]){__VA_ARGS__}, \
	            (int)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)))

#define OK(pages) ",\"outcome\":{\"status\":\"OK\",\"detail\":0,\"pages\":[" pages "]}}"
#define DONE      ",\"outcome\":{\"status\":\"OK\",\"detail\":0}}"
#define REFUSED(status, detail) \
	",\"outcome\":{\"status\":\"" status "\",\"detail\":" detail "}}"
#define OUTSIDE(status) \
	",\"outcome\":{\"status\":\"" status "\",\"detail\":0,\"outside\":true}}"

#endif
