/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_RUNTIME_REFUSE_IMPL_H
#define QUIRE_RUNTIME_REFUSE_IMPL_H
/* Filling refusals in one line; the status comes back, so that a caller can return it. */
#include <quire/runtime/status.h>

/* Leave the function with what went wrong, if something did. */
#define QUIRE_TRY(call) \
	do { \
		enum quire_status try_status_ = (call); \
		if (try_status_ != QUIRE_OK) \
			return try_status_; \
	} while (0)

static inline enum quire_status quire_refuse_what(struct quire_refusal *refusal,
                                                  enum quire_status status, const char *what)
{
	*refusal = (struct quire_refusal){.status = status, .what = what, .index = -1};
	return status;
}

static inline enum quire_status quire_refuse_bound(struct quire_refusal *refusal,
                                                   enum quire_status status, const char *what,
                                                   int64_t index, int64_t got, int64_t expected)
{
	*refusal = (struct quire_refusal){
		.status = status, .what = what, .index = index, .got = got, .expected = expected};
	return status;
}

#endif
