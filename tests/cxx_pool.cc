/*
 * cxx_pool.cc - mew/pool.h in a program without any library of mew, as C and as C++: it compiles, runs and does nothing.
 * cxx.sh builds it. Exits with 1 when somebody listens.
 */
#include <mew/pool.h>

static struct mew_pool arena = MEW_POOL("arena");

int main(void)
{
	struct mew_pool local = MEW_POOL("local");
	char block[8];

	mew_pool_alloc(&arena, block, sizeof block);
	mew_pool_free(&arena, block);
	mew_pool_alloc(&local, block, sizeof block);
	mew_pool_reset(&local);
	return mew_pool_listener_() != NULL || arena.known_ != 0 ? 1 : 0;
}
