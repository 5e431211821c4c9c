/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_RUNTIME_REFUSE_IMPL_H
#define QUIRE_RUNTIME_REFUSE_IMPL_H
/*
 * Saying no, in every room: fill the caller's details, if wanted, and answer their
 * status. A private leaf header: it includes no header of the project but status.h.
 */
#include <quire/runtime/status.h>

#include <stddef.h>

/* Leave the function with what went wrong, if something did. */
#define QUIRE_TRY(call)                                 \
	do {                                            \
		enum quire_status try_status_ = (call); \
		if (try_status_ != QUIRE_OK)            \
			return try_status_;             \
	} while (0)

/* Details of any kind. */
static inline enum quire_status quire_refuse(struct quire_refusal *refusal_out,
                                             struct quire_refusal refusal)
{
	if (refusal_out != NULL)
		*refusal_out = refusal;
	return refusal.status;
}

/* No numbers. */
static inline enum quire_status quire_refuse_what(struct quire_refusal *refusal_out,
                                                  enum quire_status status,
                                                  const char *what)
{
	return quire_refuse(
		refusal_out,
		(struct quire_refusal){.status = status, .what = what, .index = -1});
}

/* A page, without a place in a list. */
static inline enum quire_status quire_refuse_page(struct quire_refusal *refusal_out,
                                                  enum quire_status status,
                                                  const char *what, uint32_t page)
{
	return quire_refuse(refusal_out, (struct quire_refusal){.status = status,
	                                                        .what = what,
	                                                        .page = (int32_t)page});
}

/* A number beyond its bound; @index: its place in a list, -1 when there is none. */
static inline enum quire_status quire_refuse_bound(struct quire_refusal *refusal_out,
                                                   enum quire_status status,
                                                   const char *what, int64_t index,
                                                   int64_t got, int64_t expected)
{
	return quire_refuse(refusal_out, (struct quire_refusal){.status = status,
	                                                        .what = what,
	                                                        .index = index,
	                                                        .got = got,
	                                                        .expected = expected});
}

/* INVALID unless min <= got <= max. */
static inline enum quire_status quire_check_range(struct quire_refusal *refusal_out,
                                                  const char *what, int64_t index,
                                                  int64_t got, int64_t min, int64_t max)
{
	if (got < min || got > max)
		return quire_refuse_bound(refusal_out, QUIRE_INVALID, what, index, got,
		                          got < min ? min : max);
	return QUIRE_OK;
}

#endif
