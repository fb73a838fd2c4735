/*
 * fnv.h - the hash FNV-1a of Fowler, Noll and Vo: tells texts and files apart, no more.
 * Layer L0. Any context.
 */
#ifndef MEW_FNV_H
#define MEW_FNV_H

#include "base.h"

#define MEW_FNV_START UINT64_C(0xcbf29ce484222325)

/* `hash` with some bytes behind those that it is of. */
static inline uint64_t mew_fnv_bytes(uint64_t hash, const void *bytes, size_t n)
{
	const unsigned char *at = bytes;

	for (size_t i = 0; i < n; i++)
		hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
	return hash;
}

#endif
