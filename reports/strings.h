/*
 * strings.h - a table in which each text stands once, for formats that name texts by number.
 * Layer L5.
 */
#ifndef MEW_STRINGS_H
#define MEW_STRINGS_H

#include "base.h"

struct mew_strings { /* begin with { 0 } */
	const char **all; /* borrowed texts by number, in the order of first use */
	uint32_t n;
	uint32_t *slots; /* numbers plus one; open addressing, 0 is free */
	size_t nslots;   /* twice the room of `all`; a power of two */
	bool failed;     /* no memory: every number is 0 from then on */
};

/* The number of a text. text: borrowed until mew_strings_fini(). */
uint32_t mew_strings_add(struct mew_strings *s, const char *text);
void mew_strings_fini(struct mew_strings *s);

#endif
