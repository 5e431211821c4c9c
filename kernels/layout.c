/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <quire/kernels/layout.h>

#include "runtime/refuse_impl.h"

#include <stdbool.h>
#include <string.h>

/* A byte offset, and the sum of two of them, stay far from the end of int64. */
#define NBYTES_MAX (INT64_C(1) << 62)

/* The first field out of its range, in the order of struct quire_shape. */
static enum quire_status check_fields(const struct quire_shape *shape,
                                      struct quire_refusal *refusal_out)
{
	const struct {
		const char *name;
		int64_t value;
		int64_t min;
		int64_t max;
	} fields[] = {
		{"layout", (int)shape->layout, 0, QUIRE_LAYOUT_COUNT - 1},
		{"dtype", (int)shape->dtype, 0, QUIRE_DTYPE_COUNT - 1},
		{"num_layers", shape->num_layers, 1, NBYTES_MAX},
		{"num_pages", shape->num_pages, 1, QUIRE_PAGES_MAX},
		{"page_size", shape->page_size, 1, QUIRE_PAGE_SIZE_MAX},
		{"num_kv_heads", shape->num_kv_heads, 1,
	         shape->layout == QUIRE_MLA ? 1 : NBYTES_MAX},
		{"head_dim", shape->head_dim, 1, NBYTES_MAX},
	};

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		QUIRE_TRY(quire_check_range(refusal_out, fields[i].name, -1,
		                            fields[i].value, fields[i].min,
		                            fields[i].max));
	return QUIRE_OK;
}

/* False beyond NBYTES_MAX; *bytes is the size of the storage, at most INT64_MAX. */
static bool count_bytes(const struct quire_shape *shape, int64_t *bytes)
{
	const int64_t factors[] = {
		shape->layout == QUIRE_MLA ? 1 : 2,
		shape->num_pages,
		shape->page_size,
		shape->num_layers,
		shape->num_kv_heads,
		shape->head_dim,
	};

	*bytes = quire_dtype_bytes(shape->dtype);
	for (size_t i = 0; i < sizeof(factors) / sizeof(factors[0]); i++) {
		if (__builtin_mul_overflow(*bytes, factors[i], bytes)) {
			*bytes = INT64_MAX;
			return false;
		}
	}
	return *bytes <= NBYTES_MAX;
}

enum quire_status quire_geometry_init(const struct quire_shape *shape,
                                      struct quire_geometry *geometry_out,
                                      struct quire_refusal *refusal_out)
{
	enum quire_status status = check_fields(shape, refusal_out);
	struct quire_geometry g = {.num_layers = shape->num_layers};

	if (status != QUIRE_OK)
		return status;
	if (!count_bytes(shape, &g.nbytes))
		return quire_refuse_bound(refusal_out, QUIRE_INVALID,
		                          "bytes of the shape", -1, g.nbytes, NBYTES_MAX);
	g.num_pages = shape->num_pages;
	g.page_size = shape->page_size;
	g.num_kv = shape->layout == QUIRE_MLA ? 1 : 2;
	g.token_stride = shape->head_dim;
	g.pieces = shape->num_kv_heads;
	/* Where the heads of a token follow each other, its row is in one piece. */
	if (shape->layout == QUIRE_NHD || shape->page_size == 1) {
		g.token_stride *= shape->num_kv_heads;
		g.pieces = 1;
	}
	g.chunk_stride = g.page_size * g.token_stride;
	g.page_stride = g.num_kv * g.pieces * g.chunk_stride;
	g.layer_stride = g.num_pages * g.page_stride;
	g.element_bytes = quire_dtype_bytes(shape->dtype);
	g.row_bytes = g.pieces * g.token_stride * g.element_bytes;
	g.token_bytes = g.num_kv * g.row_bytes;
	g.dtype = shape->dtype;
	*geometry_out = g;
	return QUIRE_OK;
}

static const char *const names[QUIRE_LAYOUT_COUNT] = {
	[QUIRE_NHD] = "NHD",
	[QUIRE_HND] = "HND",
	[QUIRE_MLA] = "MLA",
};

const char *quire_layout_name(enum quire_layout layout)
{
	if ((unsigned)layout >= QUIRE_LAYOUT_COUNT)
		return "unknown";
	return names[layout];
}

enum quire_status quire_layout_parse(const char *name, enum quire_layout *layout_out)
{
	for (int i = 0; name != NULL && i < QUIRE_LAYOUT_COUNT; i++) {
		if (strcmp(name, names[i]) != 0)
			continue;
		*layout_out = (enum quire_layout)i;
		return QUIRE_OK;
	}
	return QUIRE_INVALID;
}
