/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_KERNELS_REFUSE_IMPL_H
#define QUIRE_KERNELS_REFUSE_IMPL_H
/* Filling refusals, for this folder. */
#include <quire/runtime/status.h>

#include <stddef.h>

/* quire_refuse - fill a refusal without numbers, when there is one; answers its status */
static inline enum quire_status quire_refuse(struct quire_refusal *refusal_out,
                                             enum quire_status status, const char *what)
{
	if (refusal_out != NULL)
		*refusal_out = (struct quire_refusal){
			.status = status,
			.what = what,
			.index = -1,
		};
	return status;
}

/*
 * quire_refuse_bound - INVALID: a value beyond its bound
 * @index:   its place in a list, -1 when there is none
 * @bound:   the nearest value that would be right
 */
static inline enum quire_status quire_refuse_bound(struct quire_refusal *refusal_out,
                                                   const char *what, int64_t index,
                                                   int64_t got, int64_t bound)
{
	quire_refuse(refusal_out, QUIRE_INVALID, what);
	if (refusal_out != NULL) {
		refusal_out->index = index;
		refusal_out->got = got;
		refusal_out->expected = bound;
	}
	return QUIRE_INVALID;
}

#endif
