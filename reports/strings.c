/*
 * strings.c - see strings.h.
 * Layer L5. Any thread, one at a time for each table.
 */
#include "config.h"

#include "strings.h"

#include "fnv.h"

#include <stdlib.h>
#include <string.h>

static uint32_t *slot_of(const struct mew_strings *s, const char *text)
{
	uint64_t h = mew_fnv_bytes(MEW_FNV_START, text, strlen(text));
	size_t at = (size_t)(h ^ h >> 29) & (s->nslots - 1);

	while (s->slots[at] != 0 && strcmp(s->all[s->slots[at] - 1], text) != 0)
		at = (at + 1) & (s->nslots - 1);
	return &s->slots[at];
}

static bool grow(struct mew_strings *s)
{
	size_t room = s->nslots == 0 ? 64 : s->nslots;
	const char **all = room < UINT32_MAX / 2 ? realloc(s->all, room * sizeof(const char *)) : NULL;
	uint32_t *slots;

	if (all == NULL)
		return false;
	s->all = all;
	slots = calloc(room * 2, sizeof *slots);
	if (slots == NULL)
		return false;
	free(s->slots);
	s->slots = slots;
	s->nslots = room * 2;
	for (uint32_t i = 0; i < s->n; i++)
		*slot_of(s, s->all[i]) = i + 1;
	return true;
}

uint32_t mew_strings_add(struct mew_strings *s, const char *text)
{
	uint32_t *slot;

	if (!s->failed && s->n == s->nslots / 2 && !grow(s))
		s->failed = true;
	if (s->failed)
		return 0;
	slot = slot_of(s, text);
	if (*slot == 0) {
		s->all[s->n] = text;
		*slot = ++s->n;
	}
	return *slot - 1;
}

void mew_strings_fini(struct mew_strings *s)
{
	free(s->all);
	free(s->slots);
	*s = (struct mew_strings){ 0 };
}
