/*
 * pools.c - the one word that the inline functions of mew/pool.h look at.
 * Below all layers. It is data that programs refer to weakly: a program that was linked to this library may hold a copy
 * of it (a copy relocation), so it must be reached by its exported name here too.
 */
#include "config.h"

#include "mew/pool.h"

#include "internal.h"

MEW_HOOKS_EXPORT const struct mew_pool_watch_ *mew_pool_watch_v1_;

bool mew_hooks_pools_watch(const struct mew_pool_watch_ *watch)
{
	const struct mew_pool_watch_ *none = NULL;

	if (watch == NULL) {
		__atomic_store_n(&mew_pool_watch_v1_, NULL, __ATOMIC_RELEASE);
		return true;
	}
	return __atomic_compare_exchange_n(&mew_pool_watch_v1_, &none, watch, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}
