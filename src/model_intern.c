/*
 * model_intern.c - cases, modules, locations, functions and stacks: equal ones get equal numbers.
 * Layer L2. One thread at a time until sealed; never inside a window.
 */
#include "config.h"

#include "model.h"

#include <stdlib.h>
#include <string.h>

#include "fnv.h"
#include "model_private.h"

#define FIRST_SIZE ((size_t)64)

/* --- hashing ---------------------------------------------------------------------------------------------------- */

#define GOLDEN 0x9e3779b97f4a7c15u /* 2^64 over the golden ratio */

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * GOLDEN;
	return hash ^ hash >> 32;
}

static uint64_t mix_text(uint64_t hash, const char *text)
{
	return mix(mew_fnv_bytes(hash, text, strlen(text)), 0);
}

/* The upper half of a product: the tables use the low bits of this, which must depend on every bit of `hash`. */
static uint32_t fold(uint64_t hash)
{
	return (uint32_t)(hash * GOLDEN >> 32);
}

/* --- tables ----------------------------------------------------------------------------------------------------- */

typedef bool same_fn(const struct mew_model *m, uint32_t number, const void *key);

static uint32_t lookup(const struct mew_model *m, const struct mew_map_table *t, uint32_t hash, same_fn *same,
		       const void *key)
{
	if (t->size == 0)
		return UINT32_MAX;
	for (size_t i = hash & (t->size - 1); t->slots[i].number != 0; i = (i + 1) & (t->size - 1)) {
		uint32_t number = t->slots[i].number - 1;

		if (t->slots[i].hash == hash && same(m, number, key))
			return number;
	}
	return UINT32_MAX;
}

static void put(struct mew_map_slot *slots, size_t size, struct mew_map_slot slot)
{
	size_t i = slot.hash & (size - 1);

	while (slots[i].number != 0)
		i = (i + 1) & (size - 1);
	slots[i] = slot;
}

/* Room for one more, so that what follows the append of an item cannot fail. */
static int table_room(struct mew_map_table *t)
{
	size_t size = t->size == 0 ? FIRST_SIZE : t->size * 2;
	struct mew_map_slot *slots;

	if (t->used < t->size / 2)
		return 0;
	slots = calloc(size, sizeof *slots);
	if (slots == NULL)
		return -1;
	for (size_t i = 0; i < t->size; i++) {
		if (t->slots[i].number != 0)
			put(slots, size, t->slots[i]);
	}
	free(t->slots);
	t->slots = slots;
	t->size = size;
	return 0;
}

/* The last two numbers are kept for "none" and for the failure of an intern function. */
static int room(struct mew_map_table *t, void *array, size_t n, size_t item_bytes)
{
	return n < UINT32_MAX - 1 && table_room(t) == 0 ? mew_model_room(array, n, 1, item_bytes) : -1;
}

static uint32_t insert(struct mew_map_table *t, uint32_t hash, size_t *n)
{
	uint32_t number = (uint32_t)(*n)++;

	put(t->slots, t->size, (struct mew_map_slot){ .hash = hash, .number = number + 1 });
	t->used++;
	return number;
}

void mew_map_free(struct mew_map *map)
{
	if (map == NULL)
		return;
	free(map->cases.slots);
	free(map->modules.slots);
	free(map->locations.slots);
	free(map->functions.slots);
	free(map->stacks.slots);
	free(map);
}

/* --- cases ------------------------------------------------------------------------------------------------------ */

static bool same_text(const char *a, const char *b)
{
	return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool same_case(const struct mew_model *m, uint32_t number, const void *key)
{
	const struct mew_case *a = &m->cases[number], *b = key;

	return strcmp(a->key, b->key) == 0 && same_text(a->program, b->program) &&
	       same_text(a->allocator, b->allocator);
}

/* Cases of other programs with the same key need to be told apart by people. Equal keys have equal hashes, so all of
 * them stand in one run of slots. */
static void mark_shared(struct mew_model *m, struct mew_case *c, uint32_t hash)
{
	const struct mew_map_table *t = &m->map->cases;

	for (size_t i = hash & (t->size - 1); t->slots[i].number != 0; i = (i + 1) & (t->size - 1)) {
		struct mew_case *other = &m->cases[t->slots[i].number - 1];

		if (t->slots[i].hash == hash && strcmp(other->key, c->key) == 0 &&
		    !same_text(other->program, c->program))
			c->shares_key = other->shares_key = true;
	}
}

struct mew_case *mew_model_case(struct mew_model *m, const char *key, const char *program)
{
	return mew_model_case_under(m, key, program, NULL);
}

/* The key alone enters the hash, so that a case of another program with the same key is found as well. */
struct mew_case *mew_model_case_under(struct mew_model *m, const char *key, const char *program, const char *allocator)
{
	struct mew_case c = { .key = key, .program = program, .allocator = allocator, .threads = 1 };
	uint32_t hash = fold(mix_text(0, key)), number;
	struct mew_map_table *t;

	if (m->sealed)
		return NULL;
	t = &m->map->cases;
	number = lookup(m, t, hash, same_case, &c);
	if (number != UINT32_MAX)
		return &m->cases[number];
	c.key = mew_model_string(m, key);
	c.program = mew_model_string(m, program);
	c.allocator = mew_model_string(m, allocator);
	if (c.key == NULL || (program != NULL && c.program == NULL) || (allocator != NULL && c.allocator == NULL) ||
	    room(t, &m->cases, m->ncases, sizeof c) != 0)
		return NULL;
	mark_shared(m, &c, hash);
	m->has_allocators = m->has_allocators || allocator != NULL;
	m->cases[m->ncases] = c;
	return &m->cases[insert(t, hash, &m->ncases)];
}

/* --- modules ---------------------------------------------------------------------------------------------------- */

static bool same_module(const struct mew_model *m, uint32_t number, const void *key)
{
	const struct mew_module *a = &m->modules[number], *b = key;

	return a->size == b->size && strcmp(a->path, b->path) == 0 && strcmp(a->build_id, b->build_id) == 0;
}

uint32_t mew_model_module(struct mew_model *m, const char *path, const char *build_id, uint64_t size, bool gone)
{
	struct mew_module module = { .path = path, .build_id = build_id, .size = size, .gone = gone };
	struct mew_map_table *t;
	uint32_t hash, number;

	if (m->sealed || path == NULL)
		return UINT32_MAX;
	if (build_id == NULL)
		module.build_id = "";
	t = &m->map->modules;
	hash = fold(mix(mix_text(mix_text(0, path), module.build_id), size));
	number = lookup(m, t, hash, same_module, &module);
	if (number != UINT32_MAX) {
		m->modules[number].gone |= gone;
		return number;
	}
	module.path = mew_model_string(m, path);
	module.build_id = mew_model_string(m, module.build_id);
	if (module.path == NULL || module.build_id == NULL || room(t, &m->modules, m->nmodules, sizeof module) != 0)
		return UINT32_MAX;
	m->modules[m->nmodules] = module;
	return insert(t, hash, &m->nmodules);
}

/* --- locations -------------------------------------------------------------------------------------------------- */

static bool same_location(const struct mew_model *m, uint32_t number, const void *key)
{
	const struct mew_location *a = &m->locations[number], *b = key;

	return a->module == b->module && a->offset == b->offset;
}

uint32_t mew_model_location(struct mew_model *m, uint32_t module, uint64_t offset)
{
	struct mew_location location = { .module = module, .offset = offset };
	uint32_t hash = fold(mix(mix(0, module), offset)), number;
	struct mew_map_table *t;

	if (m->sealed)
		return UINT32_MAX;
	t = &m->map->locations;
	number = lookup(m, t, hash, same_location, &location);
	if (number != UINT32_MAX)
		return number;
	if (room(t, &m->locations, m->nlocations, sizeof location) != 0)
		return UINT32_MAX;
	m->locations[m->nlocations] = location;
	return insert(t, hash, &m->nlocations);
}

/* Lines that a location had before stay in the array, unused, unless the new ones fit in their place. */
int mew_model_set_lines(struct mew_model *m, uint32_t location, const struct mew_line *lines, size_t n)
{
	struct mew_location *l;
	size_t first;

	if (m->sealed || location >= m->nlocations || n > UINT32_MAX)
		return -1;
	l = &m->locations[location];
	first = n <= l->nlines ? l->first_line : m->nlines;
	if (first == m->nlines) {
		if (n > UINT32_MAX - m->nlines || mew_model_room(&m->lines, m->nlines, n, sizeof *lines) != 0)
			return -1;
		m->nlines += n;
	}
	if (n > 0) {
		memcpy(&m->lines[first], lines, n * sizeof *lines);
		l->why = NULL;
	}
	l->first_line = (uint32_t)first;
	l->nlines = (uint32_t)n;
	return 0;
}

/* --- functions -------------------------------------------------------------------------------------------------- */

static bool same_function(const struct mew_model *m, uint32_t number, const void *key)
{
	const struct mew_function *a = &m->functions[number], *b = key;

	return a->line == b->line && a->module == b->module && strcmp(a->name, b->name) == 0 &&
	       strcmp(a->file, b->file) == 0;
}

uint32_t mew_model_function(struct mew_model *m, const char *name, const char *file, uint32_t line, uint32_t module)
{
	struct mew_function f = { .name = name, .file = file != NULL ? file : "", .line = line, .module = module };
	struct mew_map_table *t;
	uint32_t hash, number;

	if (m->sealed || name == NULL)
		return UINT32_MAX;
	t = &m->map->functions;
	hash = fold(mix(mix(mix_text(mix_text(0, name), f.file), line), module));
	number = lookup(m, t, hash, same_function, &f);
	if (number != UINT32_MAX)
		return number;
	f.name = mew_model_string(m, name);
	f.file = mew_model_string(m, f.file);
	if (f.name == NULL || f.file == NULL || room(t, &m->functions, m->nfunctions, sizeof f) != 0)
		return UINT32_MAX;
	m->functions[m->nfunctions] = f;
	return insert(t, hash, &m->nfunctions);
}

/* --- stacks ----------------------------------------------------------------------------------------------------- */

struct stack_key {
	const uint32_t *locations;
	size_t depth;
};

static bool same_stack(const struct mew_model *m, uint32_t number, const void *key)
{
	const struct mew_stack *a = &m->stacks[number];
	const struct stack_key *b = key;

	return a->depth == b->depth &&
	       (b->depth == 0 || memcmp(&m->frames[a->first], b->locations, b->depth * sizeof *b->locations) == 0);
}

uint32_t mew_model_stack(struct mew_model *m, const uint32_t *locations, size_t depth)
{
	struct stack_key key = { .locations = locations, .depth = depth };
	uint64_t hash = mix(0, depth);
	struct mew_map_table *t;
	uint32_t number;

	if (m->sealed || depth > UINT32_MAX - m->nframes)
		return UINT32_MAX;
	t = &m->map->stacks;
	for (size_t i = 0; i < depth; i++)
		hash = mix(hash, locations[i]);
	number = lookup(m, t, fold(hash), same_stack, &key);
	if (number != UINT32_MAX)
		return number;
	if (room(t, &m->stacks, m->nstacks, sizeof *m->stacks) != 0 ||
	    mew_model_room(&m->frames, m->nframes, depth, sizeof *m->frames) != 0)
		return UINT32_MAX;
	if (depth > 0)
		memcpy(&m->frames[m->nframes], locations, depth * sizeof *locations);
	m->stacks[m->nstacks] = (struct mew_stack){ .first = (uint32_t)m->nframes, .depth = (uint32_t)depth };
	m->nframes += depth;
	return insert(t, fold(hash), &m->nstacks);
}
