/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <quire/runtime/status.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

const char *quire_status_name(enum quire_status status)
{
	switch (status) {
#define QUIRE_STATUS_NAME(name, value, text) \
	case QUIRE_##name:                   \
		return #name;
		QUIRE_STATUS_LIST(QUIRE_STATUS_NAME)
#undef QUIRE_STATUS_NAME
	}
	return "UNKNOWN";
}

const char *quire_status_text(enum quire_status status)
{
	switch (status) {
#define QUIRE_STATUS_TEXT(name, value, text) \
	case QUIRE_##name:                   \
		return text;
		QUIRE_STATUS_LIST(QUIRE_STATUS_TEXT)
#undef QUIRE_STATUS_TEXT
	}
	return "unknown status";
}

/* A sentence that grows; `length` is that of the whole, kept or not. */
struct sentence {
	char *text;
	size_t size;
	size_t length;
};

__attribute__((format(printf, 2, 3))) static void add(struct sentence *s,
                                                      const char *format, ...)
{
	size_t used = s->length < s->size ? s->length : s->size;
	va_list arguments;
	int more;

	va_start(arguments, format);
	more = vsnprintf(s->size == 0 ? NULL : s->text + used, s->size - used, format,
	                 arguments);
	va_end(arguments);
	s->length += more < 0 ? 0 : (size_t)more;
}

static void add_stream(struct sentence *s, const struct quire_refusal *r)
{
	add(s, "request %" PRIu64 " label \"%s\"", r->request, r->label);
}

static void add_pages(struct sentence *s, const struct quire_refusal *r)
{
	add(s, "not enough pages: ");
	if (r->pages_short == 0) {
		add(s, "%" PRId64 " requested, %" PRId64 " available", r->requested,
		    r->available);
		return;
	}
	add(s, "%" PRId64 " short at ", r->pages_short);
	add_stream(s, r);
}

static void add_bound(struct sentence *s, const struct quire_refusal *r)
{
	add(s, "%s: %s", r->status == QUIRE_LIMIT ? "limit exceeded" : "invalid",
	    r->what);
	if (r->index >= 0)
		add(s, " [%" PRId64 "]", r->index);
	if (r->expected == r->got && r->got != 0)
		add(s, ": the most is %" PRId64, r->expected);
	else if (r->expected != r->got)
		add(s, ": got %" PRId64 ", %s is %" PRId64, r->got,
		    r->got < r->expected ? "the least" : "the most", r->expected);
	if (r->label[0] != '\0') {
		add(s, ", ");
		add_stream(s, r);
	}
}

static void add_broken(struct sentence *s, const struct quire_refusal *r)
{
	add(s, "%s: %s", quire_status_text(r->status), r->what);
	if (r->label[0] != '\0') {
		add(s, ", ");
		add_stream(s, r);
	} else if (r->page >= 0) {
		add(s, ", page %" PRId32, r->page);
	}
}

static void add_other(struct sentence *s, const struct quire_refusal *r)
{
	add(s, "%s", quire_status_text(r->status));
	if (r->what != NULL && r->what[0] != '\0')
		add(s, ": %s", r->what);
}

static void add_sentence(struct sentence *s, const struct quire_refusal *r)
{
	switch (r->status) {
	case QUIRE_NO_PAGES:
		add_pages(s, r);
		return;
	case QUIRE_TIMEOUT:
		add_other(s, r);
		if (r->requested)
			add(s, ", %" PRId64 " requested, %" PRId64 " available",
			    r->requested, r->available);
		return;
	case QUIRE_STALE:
		add_stream(s, r);
		add(s, ": segment expects length %" PRId64 ", the stream has %" PRId64,
		    r->expected, r->got);
		return;
	case QUIRE_HELD:
		add_other(s, r);
		if (r->ticket != 0)
			add(s, ": ticket %" PRIu64, r->ticket);
		return;
	case QUIRE_NO_REQUEST:
		add(s, "request %" PRIu64 ": %s", r->request,
		    quire_status_text(r->status));
		return;
	case QUIRE_OFFLOADED:
	case QUIRE_NO_LABEL:
		add_stream(s, r);
		add(s, ": %s", quire_status_text(r->status));
		return;
	case QUIRE_LIMIT:
	case QUIRE_INVALID:
		add_bound(s, r);
		return;
	case QUIRE_NOT_OWNED:
		add(s, "page %" PRId32 " (place %" PRId64 " in the list): %s", r->page,
		    r->index, quire_status_text(r->status));
		return;
	case QUIRE_IO:
	case QUIRE_FORMAT:
		if (r->line > 0)
			add(s, "line %" PRId64 ": ", r->line);
		add(s, "%s", r->what);
		return;
	case QUIRE_BROKEN:
		add_broken(s, r);
		return;
	case QUIRE_NO_MEMORY:
		add_other(s, r);
		if (r->requested)
			add(s, ", %" PRId64 " bytes", r->requested);
		return;
	case QUIRE_AGAIN:
		add_other(s, r);
		if (r->free != 0 || r->retiring != 0 || r->owned != 0)
			add(s,
			    ": %" PRId64 " pages free, %" PRId64 " retiring, %" PRId64
			    " owned",
			    r->free, r->retiring, r->owned);
		return;
	default:
		add_other(s, r);
		return;
	}
}

size_t quire_refusal_text(const struct quire_refusal *refusal, char *text, size_t size)
{
	struct sentence sentence = {.text = text, .size = size};

	if (size > 0)
		text[0] = '\0';
	add_sentence(&sentence, refusal);
	return sentence.length;
}
