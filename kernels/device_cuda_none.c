/* SPDX-License-Identifier: MIT */
/* The CUDA device of a library built without CUDA. */
#include "config.h"

#include "kernels/device_impl.h"
#include "runtime/refuse_impl.h"

enum quire_status quire_device_create_cuda(const char *rest,
                                           struct quire_device **device_out,
                                           struct quire_refusal *refusal_out)
{
	(void)rest;
	(void)device_out;
	return quire_refuse_what(refusal_out, QUIRE_DEVICE,
	                         "quire was built without CUDA");
}
