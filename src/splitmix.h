/*
 * splitmix.h - the generator that needs a number as its state: coins, and the state of a longer one.
 * Layer L0. Inline, so that the loops between samples may use it too.
 */
#ifndef MEW_SPLITMIX_H
#define MEW_SPLITMIX_H

#include "base.h"

/*
 * The next number of splitmix64 (Steele, Lea and Flood 2014); *state, which may start anywhere, moves on. Any context.
 */
static inline uint64_t mew_random_split(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

#endif
