/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <quire/runtime/status.h>

#include <inttypes.h>
#include <stdio.h>

const char *quire_status_name(enum quire_status status)
{
	switch (status) {
#define QUIRE_STATUS_NAME(name, value, text) \
	case QUIRE_##name: \
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
	case QUIRE_##name: \
		return text;
		QUIRE_STATUS_LIST(QUIRE_STATUS_TEXT)
#undef QUIRE_STATUS_TEXT
	}
	return "unknown status";
}

static size_t written(int length)
{
	return length < 0 ? 0 : (size_t)length;
}

static size_t text_of_pages(const struct quire_refusal *r, char *text, size_t size)
{
	if (r->pages_short == 0)
		return written(snprintf(text, size,
		                        "not enough pages: %" PRId64 " requested, %" PRId64 " available",
		                        r->requested, r->available));
	return written(snprintf(text, size,
	                        "not enough pages: %" PRId64 " short at request %" PRIu64
	                        " label \"%s\"",
	                        r->pages_short, r->request, r->label));
}

static size_t text_of_stream(const struct quire_refusal *r, char *text, size_t size)
{
	const char *meaning = quire_status_text(r->status);

	if (r->status == QUIRE_STALE)
		return written(snprintf(text, size,
		                        "request %" PRIu64 " label \"%s\": segment expects length %" PRId64
		                        ", the stream has %" PRId64,
		                        r->request, r->label, r->expected, r->got));
	if (r->status == QUIRE_NO_REQUEST)
		return written(snprintf(text, size, "request %" PRIu64 ": %s", r->request, meaning));
	return written(snprintf(text, size, "request %" PRIu64 " label \"%s\": %s", r->request,
	                        r->label, meaning));
}

static size_t text_of_bound(const struct quire_refusal *r, char *text, size_t size)
{
	const char *head = r->status == QUIRE_LIMIT ? "limit exceeded: " : "invalid: ";
	size_t length = written(snprintf(text, size, "%s%s", head, r->what));
	size_t used = length < size ? length : size;

	if (r->index >= 0)
		length += written(snprintf(text + used, size - used, " [%" PRId64 "]", r->index));
	used = length < size ? length : size;
	if (r->expected != 0 || r->got != 0)
		length += written(snprintf(text + used, size - used,
		                           ": got %" PRId64 ", bound is %" PRId64, r->got, r->expected));
	return length;
}

size_t quire_refusal_text(const struct quire_refusal *r, char *text, size_t size)
{
	switch (r->status) {
	case QUIRE_NO_PAGES:
		return text_of_pages(r, text, size);
	case QUIRE_STALE:
	case QUIRE_OFFLOADED:
	case QUIRE_NO_REQUEST:
	case QUIRE_NO_LABEL:
		return text_of_stream(r, text, size);
	case QUIRE_LIMIT:
	case QUIRE_INVALID:
		return text_of_bound(r, text, size);
	case QUIRE_NOT_OWNED:
		return written(snprintf(text, size,
		                        "page %" PRId32 " (place %" PRId64 " in the list) is not owned, or "
		                        "was given back already",
		                        r->page, r->index));
	case QUIRE_IO:
	case QUIRE_FORMAT:
		if (r->line > 0)
			return written(snprintf(text, size, "line %" PRId64 ": %s", r->line, r->what));
		return written(snprintf(text, size, "%s", r->what));
	case QUIRE_AGAIN:
		return written(snprintf(text, size,
		                        "%s: %" PRId64 " pages free, %" PRId64 " retiring, %" PRId64
		                        " owned",
		                        quire_status_text(r->status), r->free, r->retiring, r->owned));
	default:
		if (r->what == NULL || r->what[0] == '\0')
			return written(snprintf(text, size, "%s", quire_status_text(r->status)));
		return written(snprintf(text, size, "%s: %s", quire_status_text(r->status), r->what));
	}
}
