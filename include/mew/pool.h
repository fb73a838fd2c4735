/*
 * mew/pool.h - tell mew what an allocator of your own hands out: arenas, slabs, object pools.
 * Layer L0: this header alone, C11 and C++11; no library is needed for it.
 *
 *   static struct mew_pool arena = MEW_POOL("arena");
 *
 *   p = take_from_arena(size);  mew_pool_alloc(&arena, p, size);
 *   mew_pool_free(&arena, p);   give_back(p);
 *   mew_pool_reset(&arena);     forget_everything();
 *
 * A memory pass shows each name as a pool of its own (by_pool in mew(3)), with the rules of the heap: what is announced
 * in the loop counts, a pause admits nothing, releases of what did not count are ignored. The heap's figures are not
 * touched: what the pool itself takes from malloc is there as ever.
 *
 * Without a memory pass a call is a load and a branch, and nothing is called; without libmew_hooks in the process it
 * is a test of a constant. libmew_hooks is found when the program is linked with it, or preloaded (mew run does) into
 * a position-independent program.
 */
#ifndef MEW_POOL_H
#define MEW_POOL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A pool: by its name, so that objects of one name (a static one in a header) are one pool. MEW_POOL() is all the
 * initialisation there is. The object must live as long as calls name it.
 *
 * name  text that lives as long as the object; its first 63 bytes count
 */
struct mew_pool {
	const char *name;
	uint64_t known_; /* private: as which pool of which window */
};
#define MEW_POOL(text) { (text), 0 }

struct mew_pool_watch_ { /* private: who listens */
	void (*alloc)(struct mew_pool *pool, const void *block, size_t bytes);
	void (*free)(struct mew_pool *pool, const void *block);
	void (*reset)(struct mew_pool *pool);
};
extern const struct mew_pool_watch_ *mew_pool_watch_v1_ __attribute__((weak, visibility("default")));

#ifdef __cplusplus
#define MEW_POOL_NULL_ nullptr
#else
#define MEW_POOL_NULL_ NULL
#endif

static inline const struct mew_pool_watch_ *mew_pool_listener_(void)
{
	const struct mew_pool_watch_ *watch = MEW_POOL_NULL_;

	if (&mew_pool_watch_v1_ != MEW_POOL_NULL_)
		watch = __atomic_load_n(&mew_pool_watch_v1_, __ATOMIC_ACQUIRE);
	return watch;
}

/*
 * A block of the pool begins to live: call it once the block is there, before anybody else can free it. NULL is
 * ignored. A block that is announced again without a release in between replaces the first.
 *
 * Context  any thread, also inside malloc; keeps errno
 */
static inline void mew_pool_alloc(struct mew_pool *pool, const void *block, size_t bytes)
{
	const struct mew_pool_watch_ *watch = mew_pool_listener_();

	if (__builtin_expect(watch != MEW_POOL_NULL_, 0))
		watch->alloc(pool, block, bytes);
}

/* It ends: call it before the block can be handed out again. NULL is ignored. Context: as above. */
static inline void mew_pool_free(struct mew_pool *pool, const void *block)
{
	const struct mew_pool_watch_ *watch = mew_pool_listener_();

	if (__builtin_expect(watch != MEW_POOL_NULL_, 0))
		watch->free(pool, block);
}

/* All blocks of the pool end, whichever object of its name announced them; takes constant time. Context: as above. */
static inline void mew_pool_reset(struct mew_pool *pool)
{
	const struct mew_pool_watch_ *watch = mew_pool_listener_();

	if (__builtin_expect(watch != MEW_POOL_NULL_, 0))
		watch->reset(pool);
}

#ifdef __cplusplus
}
#endif

#endif
