/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <quire/kernels/cache.h>
#include <quire/runtime/limits.h>

#include "runtime/refuse_impl.h"

void quire_cache_config_init(struct quire_cache_config *config)
{
	*config = (struct quire_cache_config){
		.layout = QUIRE_NHD,
		.dtype = QUIRE_BF16,
		.max_num_pages = 2048,
		.page_size = 128,
		.num_ranks = 1,
	};
}

static enum quire_status must_divide(struct quire_refusal *refusal_out, const char *what,
                                     int64_t value, int64_t by)
{
	if (value % by != 0)
		return quire_refuse_what(refusal_out, QUIRE_INVALID, what);
	return QUIRE_OK;
}

static enum quire_status check_heads(const struct quire_cache_config *config,
                                     struct quire_refusal *refusal_out)
{
	enum quire_status status = quire_check_range(refusal_out, "num_ranks", -1,
	                                             config->num_ranks, 1, INT64_MAX);

	if (status == QUIRE_OK)
		status = quire_check_range(refusal_out, "num_kv_heads", -1,
		                           config->num_kv_heads, 1, INT64_MAX);
	if (status == QUIRE_OK)
		status = quire_check_range(refusal_out, "num_qo_heads", -1,
		                           config->num_qo_heads, 0, INT64_MAX);
	if (status != QUIRE_OK)
		return status;
	status = must_divide(refusal_out, "num_qo_heads: not a multiple of num_kv_heads",
	                     config->num_qo_heads, config->num_kv_heads);
	if (status != QUIRE_OK || config->num_ranks >= config->num_kv_heads)
		return status;
	return must_divide(refusal_out, "num_kv_heads: not a multiple of num_ranks",
	                   config->num_kv_heads, config->num_ranks);
}

/* The shape is right, so the pool's tokens are far from the end of int64. */
static enum quire_status check_length(const struct quire_cache_config *config,
                                      struct quire_refusal *refusal_out)
{
	int64_t max = config->max_num_pages * config->page_size;

	if (max > QUIRE_SEQ_TOKENS_MAX)
		max = QUIRE_SEQ_TOKENS_MAX;
	return quire_check_range(refusal_out, "max_seq_len", -1, config->max_seq_len, 1,
	                         max);
}

enum quire_status quire_cache_config_shape(const struct quire_cache_config *config,
                                           struct quire_shape *shape_out,
                                           struct quire_refusal *refusal_out)
{
	struct quire_geometry geometry;
	enum quire_status status = check_heads(config, refusal_out);
	struct quire_shape shape;

	/* In the shape this field has another name. */
	if (status == QUIRE_OK)
		status = quire_check_range(refusal_out, "max_num_pages", -1,
		                           config->max_num_pages, 1, QUIRE_PAGES_MAX);
	if (status != QUIRE_OK)
		return status;
	shape = (struct quire_shape){
		.layout = config->layout,
		.dtype = config->dtype,
		.num_layers = config->num_layers,
		.num_pages = config->max_num_pages,
		.page_size = config->page_size,
		.num_kv_heads = config->num_ranks >= config->num_kv_heads
	                                ? 1
	                                : config->num_kv_heads / config->num_ranks,
		.head_dim = config->head_dim,
	};
	if (config->layout == QUIRE_MLA)
		shape.num_kv_heads = config->num_kv_heads;
	status = quire_geometry_init(&shape, &geometry, refusal_out);
	if (status == QUIRE_OK)
		status = check_length(config, refusal_out);
	if (status == QUIRE_OK)
		*shape_out = shape;
	return status;
}
