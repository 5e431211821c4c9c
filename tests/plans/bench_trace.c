/* SPDX-License-Identifier: MIT */
/*
 * Reading a plan trace, from open to the last field of the last line, beside what jansson
 * needs to make trees of the same lines; and writing one.  One `name value unit ratio`
 * line each: MB of JSON a second, the median of the rounds, and that of the rounds' ratios
 * of times, below 1 where we are faster; 0 where there is nothing to compare with.
 */
#include "config.h"

#include <quire/plans/trace.h>

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 21
#define STEPS  400
#define ROWS   256

struct file {
	const char *path;
	char *text;
	size_t size;
	int64_t commands;
};

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void give_up(const char *what, const struct quire_refusal *refusal)
{
	fprintf(stderr, "bench_trace: %s: %s\n", what,
	        refusal != NULL ? refusal->what : "failed");
	exit(1);
}

static int compare_doubles(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

static double median(double *values)
{
	qsort(values, ROUNDS, sizeof(*values), compare_doubles);
	return values[ROUNDS / 2];
}

/* ---- a trace of decode steps, as a recording has them ---- */

static const struct quire_trace_header header = {
	.layout = "NHD",
	.dtype = "bf16",
	.num_layers = 1,
	.num_kv_heads = 1,
	.head_dim = 8,
	.page_size = 16,
	.num_pages = 1 << 16,
	.sink = true,
	.rows_max = ROWS,
	.tokens_max = 8192,
	.requests_max = 1024,
	.seq_tokens_max = 131072,
	.request_labels_max = 4,
	.tables_max = 4,
	.table_pages_max = 1 << 20,
	.source = "decode steps of 256 rows",
};

static void write_steps(struct quire_trace_writer *writer)
{
	static struct quire_segment segments[ROWS];
	struct quire_step step = {.segments = segments, .num_segments = ROWS};
	struct quire_trace_record record = {
		.command = {.kind = QUIRE_COMMAND_SUBMIT, .step = &step},
		.has_outcome = true,
		.outcome = {.status = QUIRE_OK, .has_digest = true},
	};
	struct quire_refusal refusal;

	for (uint64_t i = 0; i < STEPS; i++) {
		for (uint64_t r = 0; r < ROWS; r++)
			segments[r] = (struct quire_segment){
				.request = 9000 + r * 7,
				.label = QUIRE_LABEL_MAIN,
				.span = 1,
				.at = (int32_t)(500 + i + r * 13),
			};
		record.id = i + 1;
		record.outcome.digest = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
		if (quire_trace_write(writer, &record, &refusal) != QUIRE_OK)
			give_up("write", &refusal);
	}
}

static void make_decode(const char *path)
{
	struct quire_trace_writer *writer;
	struct quire_refusal refusal;

	if (quire_trace_create(path, &header, &writer, &refusal) != QUIRE_OK)
		give_up("create", &refusal);
	write_steps(writer);
	if (quire_trace_commit(writer, &refusal) != QUIRE_OK)
		give_up("commit", &refusal);
}

/* ---- one round each ---- */

static void load(struct file *file, const char *path)
{
	FILE *stream = fopen(path, "rb");
	long size;

	if (stream == NULL || fseek(stream, 0, SEEK_END) != 0)
		give_up(path, NULL);
	size = ftell(stream);
	rewind(stream);
	*file = (struct file){path, malloc((size_t)size), (size_t)size, 0};
	if (file->text == NULL || fread(file->text, 1, file->size, stream) != file->size)
		give_up(path, NULL);
	fclose(stream);
}

static double read_trace(struct file *file)
{
	int64_t start = now_ns(), commands = 0;
	struct quire_trace_reader *reader;
	struct quire_trace_record record;
	struct quire_refusal refusal;
	enum quire_status status;

	if (quire_trace_open(file->path, &reader, &refusal) != QUIRE_OK)
		give_up("open", &refusal);
	while ((status = quire_trace_next(reader, &record, &refusal)) == QUIRE_OK)
		commands++;
	if (status != QUIRE_END)
		give_up("next", &refusal);
	quire_trace_close(reader);
	file->commands = commands;
	return (double)(now_ns() - start);
}

static double read_jansson(const struct file *file)
{
	int64_t start = now_ns(), lines = 0;
	const char *line = file->text, *end = file->text + file->size;

	while (line < end) {
		const char *newline = memchr(line, '\n', (size_t)(end - line));
		json_t *root;

		if (newline == NULL)
			give_up("a line without an end", NULL);
		root = json_loadb(line, (size_t)(newline - line), JSON_REJECT_DUPLICATES,
		                  NULL);
		if (root == NULL)
			give_up("jansson", NULL);
		json_decref(root);
		lines++;
		line = newline + 1;
	}
	if (lines != file->commands + 1)
		give_up("the number of lines", NULL);
	return (double)(now_ns() - start);
}

static enum quire_status drop(void *argument, const void *bytes, size_t n)
{
	(void)bytes;
	*(size_t *)argument += n;
	return QUIRE_OK;
}

/* @written: filled with bytes of JSON; with compress, of zstd */
static double write_trace(bool compress, size_t *written)
{
	struct quire_trace_output output = {drop, written, compress};
	int64_t start = now_ns();
	struct quire_trace_writer *writer;
	struct quire_refusal refusal;

	*written = 0;
	if (quire_trace_create_to(&output, &header, &writer, &refusal) != QUIRE_OK)
		give_up("create", &refusal);
	write_steps(writer);
	if (quire_trace_commit(writer, &refusal) != QUIRE_OK)
		give_up("commit", &refusal);
	return (double)(now_ns() - start);
}

static void report(const char *name, size_t bytes, double *times, double *ratios)
{
	printf("%s %.0f MB/s %.3f\n", name, (double)bytes * 1000 / median(times),
	       ratios != NULL ? median(ratios) : 0);
}

static void bench_read(const char *name, const char *path)
{
	double times[ROUNDS], ratios[ROUNDS];
	struct file file;

	load(&file, path);
	for (int i = 0; i < ROUNDS; i++) {
		times[i] = read_trace(&file);
		ratios[i] = times[i] / read_jansson(&file);
	}
	report(name, file.size, times, ratios);
	free(file.text);
}

static void bench_write(const char *name, bool compress)
{
	double times[ROUNDS];
	size_t bytes = 0, packed = 0;

	write_trace(false, &bytes);
	for (int i = 0; i < ROUNDS; i++)
		times[i] = write_trace(compress, &packed);
	report(name, bytes, times, NULL);
	if (compress)
		printf("trace_packed %.1f %% 0\n",
		       100.0 * (double)packed / (double)bytes);
}

int main(void)
{
	char path[] = "bench_trace.XXXXXX";
	int fd = mkstemp(path);

	if (fd < 0)
		give_up("mkstemp", NULL);
	close(fd);
	make_decode(path);
	bench_read("trace_read_decode_256_rows", path);
	unlink(path);
	bench_read("trace_read_sample", TOP_SRCDIR "/plans/sample.plan");
	bench_write("trace_write_decode_256_rows", false);
	bench_write("trace_write_packed_256_rows", true);
	return 0;
}
