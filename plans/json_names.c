/* SPDX-License-Identifier: MIT */
/* Does a name stand twice in an object? */
#include "config.h"

#include "plans/json_impl.h"

#include <stdlib.h>
#include <xxhash.h>

/* So many names are compared with each other; more go through a hash table. */
#define FEW 16

static bool same_text(const struct quire_json_value *a, const struct quire_json_value *b)
{
	return a->size == b->size && memcmp(a->text, b->text, a->size) == 0;
}

static bool refuse_twice(const struct quire_json_value *name,
                         struct quire_json_fault *fault_out)
{
	*fault_out = (struct quire_json_fault){
		.what = "duplicate name", .name = name->text, .at = name->text};
	return false;
}

static bool few_unique(const struct quire_json_value *object,
                       struct quire_json_fault *fault_out)
{
	const struct quire_json_value *names[FEW];
	const struct quire_json_value *name = quire_json_first(object);

	for (uint32_t i = 0; i < object->size; i++) {
		names[i] = name;
		for (uint32_t j = 0; j < i; j++) {
			if (same_text(names[j], name))
				return refuse_twice(name, fault_out);
		}
		name = quire_json_next(name + 1);
	}
	return true;
}

/* A table of at least twice as many places as there are names, all of them empty. */
static bool clear_table(struct quire_json *json, uint32_t num_names, size_t *places_out)
{
	size_t places = 2 * FEW;
	uint64_t *table;

	while (places < 2 * (size_t)num_names)
		places *= 2;
	if (places > json->names_room) {
		table = realloc(json->names, places * sizeof(*table));
		if (table == NULL)
			return false;
		json->names = table;
		json->names_room = places;
	}
	memset(json->names, 0, places * sizeof(*json->names));
	*places_out = places;
	return true;
}

bool quire_json_names_unique(struct quire_json *json,
                             const struct quire_json_value *object,
                             struct quire_json_fault *fault_out)
{
	const struct quire_json_value *name = quire_json_first(object);
	size_t places, place;

	if (object->size <= FEW)
		return few_unique(object, fault_out);
	if (!clear_table(json, object->size, &places)) {
		*fault_out = (struct quire_json_fault){.at = name->text};
		return false;
	}
	for (uint32_t i = 0; i < object->size; i++, name = quire_json_next(name + 1)) {
		/* An address as the seed: no file can be made whose names collide. */
		uint64_t hash = XXH3_64bits_withSeed(name->text, name->size,
		                                     (uint64_t)(uintptr_t)json->names);
		uint64_t tag = hash & ~UINT64_C(0xffffffff);

		/* A place holds half of a hash, and where its name is, which is not 0. */
		for (place = hash & (places - 1); json->names[place] != 0;
		     place = (place + 1) & (places - 1)) {
			uint64_t held = json->names[place];

			if ((held & ~UINT64_C(0xffffffff)) == tag &&
			    same_text(json->values + (uint32_t)held, name))
				return refuse_twice(name, fault_out);
		}
		json->names[place] = tag | (uint64_t)(name - json->values);
	}
	return true;
}
