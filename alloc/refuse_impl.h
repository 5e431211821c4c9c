/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_ALLOC_REFUSE_IMPL_H
#define QUIRE_ALLOC_REFUSE_IMPL_H
/*
 * One way to say no: fill the caller's details, if wanted, and answer with their status.
 */
#include <quire/runtime/status.h>

static inline enum quire_status
alloc_refuse(struct quire_refusal *refusal_out, struct quire_refusal refusal)
{
	if (refusal_out)
		*refusal_out = refusal;
	return refusal.status;
}

#endif
