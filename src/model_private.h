/*
 * model_private.h - what the files of the model share: growing arrays, interning tables.
 * Layer L2. For model.c, model_intern.c and model_merge.c only.
 */
#ifndef MEW_MODEL_PRIVATE_H
#define MEW_MODEL_PRIVATE_H

#include "model.h"

/*
 * Make room for `more` items after the `n` that *array holds. The capacity follows from n alone (the next power of two,
 * 8 at least), so arrays carry none; hence nothing else may resize them.
 *
 * array    address of the pointer to the items; the pointer moves
 * Returns  0, or -1 without memory: nothing changed
 */
int mew_model_room(void *array, size_t n, size_t more, size_t item_bytes);

/* Empty a row but for key, label and profiler; its stacks or samples go with its figures. */
void mew_model_clear(struct mew_case *c, enum mew_kind kind);

struct mew_map_slot {
	uint32_t hash;
	uint32_t number; /* plus one; 0: free */
};

struct mew_map_table { /* open addressing, linear probes, at most half full */
	struct mew_map_slot *slots;
	size_t size, used; /* size is 0 or a power of two */
};

struct mew_map {
	struct mew_map_table cases, modules, locations, functions, stacks;
};

/* NULL is fine. */
void mew_map_free(struct mew_map *map);

#endif
