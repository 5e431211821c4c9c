/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_TESTS_PLANS_SAME_RECORD_H
#define QUIRE_TESTS_PLANS_SAME_RECORD_H
/* Do two records of a plan trace say the same?  The lines they stand in may differ. */
#include <quire/plans/trace.h>

#include <string.h>

/* A list of none has no memory. */
static inline bool same_bytes(const void *a, const void *b, size_t size)
{
	return size == 0 || memcmp(a, b, size) == 0;
}

static inline bool same_text(const char *a, const char *b)
{
	return strcmp(a != NULL ? a : QUIRE_LABEL_MAIN,
	              b != NULL ? b : QUIRE_LABEL_MAIN) == 0;
}

static inline bool same_forks(const struct quire_fork *a, int32_t num_a,
                              const struct quire_fork *b, int32_t num_b)
{
	if (num_a != num_b)
		return false;
	for (int32_t i = 0; i < num_a; i++) {
		if (!same_text(a[i].source, b[i].source) ||
		    !same_text(a[i].target, b[i].target))
			return false;
	}
	return true;
}

static inline bool same_segments(const struct quire_step *a, const struct quire_step *b)
{
	if (a->num_segments != b->num_segments)
		return false;
	for (int32_t i = 0; i < a->num_segments; i++) {
		if (a->segments[i].request != b->segments[i].request ||
		    !same_text(a->segments[i].label, b->segments[i].label) ||
		    a->segments[i].span != b->segments[i].span ||
		    a->segments[i].at != b->segments[i].at)
			return false;
	}
	return true;
}

static inline bool same_combined(const struct quire_step *a, const struct quire_step *b)
{
	if (a->num_combined != b->num_combined)
		return false;
	for (int32_t i = 0; i < a->num_combined; i++) {
		const struct quire_combined *x = &a->combined[i], *y = &b->combined[i];

		if (strcmp(x->name, y->name) != 0 || x->num_labels != y->num_labels)
			return false;
		for (int32_t j = 0; j < x->num_labels; j++) {
			if (strcmp(x->labels[j], y->labels[j]) != 0)
				return false;
		}
	}
	return true;
}

static inline bool same_step(const struct quire_step *a, const struct quire_step *b)
{
	return same_segments(a, b) && same_combined(a, b) &&
	       a->bucket_tokens == b->bucket_tokens && a->bucket_rows == b->bucket_rows &&
	       a->flags == b->flags &&
	       same_forks(a->pre_forks, a->num_pre_forks, b->pre_forks,
	                  b->num_pre_forks) &&
	       same_forks(a->post_forks, a->num_post_forks, b->post_forks,
	                  b->num_post_forks);
}

static inline bool same_command(const struct quire_command *a,
                                const struct quire_command *b)
{
	if (a->kind != b->kind)
		return false;
	switch (a->kind) {
	case QUIRE_COMMAND_SUBMIT:
		return same_step(a->step, b->step);
	case QUIRE_COMMAND_PROMOTE:
	case QUIRE_COMMAND_ABANDON:
		return a->target == b->target;
	case QUIRE_COMMAND_RESET:
		return a->request == b->request && same_text(a->label, b->label) &&
		       a->keep_pages == b->keep_pages;
	case QUIRE_COMMAND_REWIND:
	case QUIRE_COMMAND_RELEASE_FRONT:
		return a->request == b->request && same_text(a->label, b->label) &&
		       a->tokens == b->tokens;
	case QUIRE_COMMAND_OPEN:
	case QUIRE_COMMAND_CLOSE:
		return a->request == b->request;
	}
	return false;
}

static inline bool same_outcome(const struct quire_trace_outcome *a,
                                const struct quire_trace_outcome *b)
{
	return a->status == b->status && a->detail == b->detail &&
	       a->is_outside == b->is_outside && a->has_digest == b->has_digest &&
	       (!a->has_digest || a->digest == b->digest) &&
	       a->has_pages == b->has_pages &&
	       (!a->has_pages || (a->num_pages == b->num_pages &&
	                          same_bytes(a->pages, b->pages,
	                                     (size_t)a->num_pages * sizeof(*a->pages))));
}

static inline bool same_prefix(const struct quire_trace_prefix *a,
                               const struct quire_trace_prefix *b)
{
	return a->tokens == b->tokens &&
	       (a->tokens == 0 ||
	        (a->num_keys == b->num_keys &&
	         same_bytes(a->keys, b->keys, (size_t)a->num_keys * sizeof(*a->keys))));
}

static inline bool same_times(const struct quire_trace_times *a,
                              const struct quire_trace_times *b)
{
	return a->given_ns == b->given_ns && a->decided_ns == b->decided_ns &&
	       a->issued_ns == b->issued_ns;
}

static inline bool same_record(const struct quire_trace_record *a,
                               const struct quire_trace_record *b)
{
	return a->id == b->id && same_command(&a->command, &b->command) &&
	       a->has_base == b->has_base && a->base == b->base &&
	       same_prefix(&a->prefix, &b->prefix) && a->has_outcome == b->has_outcome &&
	       (!a->has_outcome || same_outcome(&a->outcome, &b->outcome)) &&
	       a->has_times == b->has_times &&
	       (!a->has_times || same_times(&a->times, &b->times));
}

#endif
