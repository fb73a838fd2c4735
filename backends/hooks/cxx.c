/*
 * cxx.c - libmew_hooks_cxx: operator new and delete over the hooks, where the allocator brings operators of its own.
 * Below all layers; any thread, before main too. libmew_hooks is found by a weak symbol; libstdc++ is not needed.
 *
 * jemalloc, tcmalloc and mimalloc define the operators and inline malloc into them, so hooks on malloc miss C++. Then
 * the operators here ask malloc, which reaches the hooks, for exactly what libstdc++'s operators ask it for: counts and
 * bytes are the same under every allocator. Where another operator new follows (libstdc++'s calls malloc, a program's
 * does what it likes), the call jumps on to it.
 */
#include "config.h"

#include "hooks.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include "internal.h"

extern const struct mew_hooks_api *mew_hooks_api(unsigned version) __attribute__((weak));

/* size_t in a mangled name. */
#if __SIZEOF_SIZE_T__ == 8
#define Z "m"
#else
#define Z "j"
#endif
#define ALIGN "St11align_val_t"
#define NOTHROW "RKSt9nothrow_t"

enum form {
	NEW,
	NEW_ARRAY,
	NEW_NOTHROW,
	NEW_ARRAY_NOTHROW,
	NEW_ALIGNED,
	NEW_ARRAY_ALIGNED,
	NEW_ALIGNED_NOTHROW,
	NEW_ARRAY_ALIGNED_NOTHROW,
	DELETE,
	DELETE_ARRAY,
	DELETE_SIZED,
	DELETE_ARRAY_SIZED,
	DELETE_NOTHROW,
	DELETE_ARRAY_NOTHROW,
	DELETE_ALIGNED,
	DELETE_ARRAY_ALIGNED,
	DELETE_SIZED_ALIGNED,
	DELETE_ARRAY_SIZED_ALIGNED,
	DELETE_ALIGNED_NOTHROW,
	DELETE_ARRAY_ALIGNED_NOTHROW,
	FORMS
};

static const char *const symbols[FORMS] = {
	[NEW] = "_Znw" Z,
	[NEW_ARRAY] = "_Zna" Z,
	[NEW_NOTHROW] = "_Znw" Z NOTHROW,
	[NEW_ARRAY_NOTHROW] = "_Zna" Z NOTHROW,
	[NEW_ALIGNED] = "_Znw" Z ALIGN,
	[NEW_ARRAY_ALIGNED] = "_Zna" Z ALIGN,
	[NEW_ALIGNED_NOTHROW] = "_Znw" Z ALIGN NOTHROW,
	[NEW_ARRAY_ALIGNED_NOTHROW] = "_Zna" Z ALIGN NOTHROW,
	[DELETE] = "_ZdlPv",
	[DELETE_ARRAY] = "_ZdaPv",
	[DELETE_SIZED] = "_ZdlPv" Z,
	[DELETE_ARRAY_SIZED] = "_ZdaPv" Z,
	[DELETE_NOTHROW] = "_ZdlPv" NOTHROW,
	[DELETE_ARRAY_NOTHROW] = "_ZdaPv" NOTHROW,
	[DELETE_ALIGNED] = "_ZdlPv" ALIGN,
	[DELETE_ARRAY_ALIGNED] = "_ZdaPv" ALIGN,
	[DELETE_SIZED_ALIGNED] = "_ZdlPv" Z ALIGN,
	[DELETE_ARRAY_SIZED_ALIGNED] = "_ZdaPv" Z ALIGN,
	[DELETE_ALIGNED_NOTHROW] = "_ZdlPv" ALIGN NOTHROW,
	[DELETE_ARRAY_ALIGNED_NOTHROW] = "_ZdaPv" ALIGN NOTHROW,
};

/* --- who follows -------------------------------------------------------------------------------------------------- */

static uintptr_t following[FORMS];                /* the next definition; 0 for none */
static uintptr_t onward[FORMS];                   /* the same where calls jump on to it; 0 where they are served here */
static const struct mew_malloc_family *allocator; /* behind the hooks, where it has operators of its own; or NULL */
static int resolved;                              /* atomic */

static const void *module_of(uintptr_t address)
{
	Dl_info info;

	return address != 0 && dladdr((const void *)address, &info) != 0 ? info.dli_fbase : NULL;
}

/* The allocator that the hooks lead to, when it also provides the next operator new. */
static const struct mew_malloc_family *find_allocator(void)
{
	const struct mew_hooks_api *(*find)(unsigned) = mew_hooks_api;
	const struct mew_hooks_api *api = find != NULL ? find(MEW_HOOKS_VERSION) : NULL;

	if (api == NULL || module_of((uintptr_t)api->next->do_malloc) != module_of(following[NEW]))
		return NULL;
	return api->next;
}

/* At load, so that no look-up falls into a window: a failed one allocates. Threads that come at once find the same. */
__attribute__((constructor, noinline)) static void resolve(void)
{
	const struct mew_malloc_family *own;

	if (__atomic_load_n(&resolved, __ATOMIC_ACQUIRE))
		return;
	for (size_t i = 0; i < FORMS; i++)
		__atomic_store_n(&following[i], (uintptr_t)dlsym(RTLD_NEXT, symbols[i]), __ATOMIC_RELAXED);
	own = find_allocator();
	for (size_t i = 0; i < FORMS; i++)
		__atomic_store_n(&onward[i], own == NULL ? following[i] : 0, __ATOMIC_RELAXED);
	__atomic_store_n(&allocator, own, __ATOMIC_RELAXED);
	__atomic_store_n(&resolved, 1, __ATOMIC_RELEASE);
}

static inline __attribute__((always_inline)) uintptr_t next_of(enum form form)
{
	if (__builtin_expect(!__atomic_load_n(&resolved, __ATOMIC_ACQUIRE), 0))
		resolve();
	return onward[form];
}

/* --- new ---------------------------------------------------------------------------------------------------------- */

typedef void *new_fn(size_t);
typedef void *new_nothrow_fn(size_t, const void *);
typedef void *new_aligned_fn(size_t, size_t);
typedef void *new_aligned_nothrow_fn(size_t, size_t, const void *);

static void *without_anyone(const void *nothrow)
{
	static const char text[] = "libmew_hooks_cxx: memory ran out, and no C++ library follows in the search order "
				   "to throw bad_alloc: link libstdc++ as a shared library\n";

	if (nothrow != NULL)
		return NULL;
	if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
		abort();
	abort();
}

/* Let the next operator new fail as it fails without us: it calls the new-handler, and throws. */
static void *hand_over(enum form form, size_t size, size_t alignment, const void *nothrow)
{
	uintptr_t next = following[form];

	if (next == 0)
		return without_anyone(nothrow);
	if (alignment == 0)
		return nothrow == NULL ? ((new_fn *)next)(size) : ((new_nothrow_fn *)next)(size, nothrow);
	if (nothrow == NULL)
		return ((new_aligned_fn *)next)(size, alignment);
	return ((new_aligned_nothrow_fn *)next)(size, alignment, nothrow);
}

/*
 * What libstdc++ asks for: no block of no bytes, and the size of an aligned one rounded up; a size that cannot be is
 * one that cannot be had. 0: an alignment that is no power of two is refused before anything is asked for.
 */
static inline __attribute__((always_inline)) size_t asked_bytes(size_t size, size_t alignment)
{
	size_t bytes = size != 0 ? size : 1;

	if (alignment == 0)
		return bytes;
	if ((alignment & (alignment - 1)) != 0)
		return 0;
	return bytes <= SIZE_MAX - (alignment - 1) ? (bytes + alignment - 1) & ~(alignment - 1) : SIZE_MAX;
}

/* There is none. Where a new-handler made room, the block came past the hooks: another one is taken in its place. */
static __attribute__((noinline)) void *refused(enum form form, size_t size, size_t alignment, const void *nothrow)
{
	size_t bytes = asked_bytes(size, alignment);
	void *block;

	do {
		block = hand_over(form, size, alignment, nothrow);
		if (block == NULL || allocator == NULL || bytes == 0)
			return block;
		allocator->do_free(block);
		block = alignment == 0 ? malloc(bytes) : aligned_alloc(alignment, bytes);
	} while (block == NULL);
	return block;
}

/*
 * alignment  0 for the forms without
 * nothrow    NULL for the forms that throw
 * ask        the call for `bytes`; in the operator itself, so that stacks end in it as they do in libstdc++'s
 */
#define OPERATOR_NEW(name, symbol, form, parameters, arguments, alignment, nothrow, ask)                               \
	void *name parameters __asm__(symbol);                                                                         \
	MEW_HOOKS_EXPORT MEW_HOOKS_JUMPS void *name parameters                                                         \
	{                                                                                                              \
		uintptr_t next = next_of(form);                                                                        \
		size_t bytes;                                                                                          \
		void *block;                                                                                           \
                                                                                                                       \
		if (next != 0)                                                                                         \
			MEW_HOOKS_JUMP return((void *(*)parameters)next) arguments;                                    \
		bytes = asked_bytes(size, alignment);                                                                  \
		block = bytes != 0 ? ask : NULL;                                                                       \
		return block != NULL ? block : refused(form, size, alignment, nothrow);                                \
	}

#define OPERATORS_NEW(name, letter, form)                                                                              \
	OPERATOR_NEW(name, "_Zn" letter Z, form, (size_t size), (size), 0, NULL, malloc(bytes))                        \
	OPERATOR_NEW(name##_nothrow, "_Zn" letter Z NOTHROW, form##_NOTHROW, (size_t size, const void *nothrow),       \
		     (size, nothrow), 0, nothrow, malloc(bytes))                                                       \
	OPERATOR_NEW(name##_aligned, "_Zn" letter Z ALIGN, form##_ALIGNED, (size_t size, size_t alignment),            \
		     (size, alignment), alignment, NULL, aligned_alloc(alignment, bytes))                              \
	OPERATOR_NEW(name##_aligned_nothrow, "_Zn" letter Z ALIGN NOTHROW, form##_ALIGNED_NOTHROW,                     \
		     (size_t size, size_t alignment, const void *nothrow), (size, alignment, nothrow), alignment,      \
		     nothrow, aligned_alloc(alignment, bytes))

OPERATORS_NEW(operator_new, "w", NEW)
OPERATORS_NEW(operator_new_array, "a", NEW_ARRAY)

/* --- delete ------------------------------------------------------------------------------------------------------- */

/* Sizes and alignments are hints for the allocator and never trusted for accounting. */
#define OPERATOR_DELETE(name, symbol, form, parameters, arguments)                                                     \
	void name parameters __asm__(symbol);                                                                          \
	MEW_HOOKS_EXPORT MEW_HOOKS_JUMPS void name parameters                                                          \
	{                                                                                                              \
		uintptr_t next = next_of(form);                                                                        \
                                                                                                                       \
		if (next != 0)                                                                                         \
			((void (*)parameters)next) arguments;                                                          \
		else                                                                                                   \
			free(block);                                                                                   \
	}

#define OPERATORS_DELETE(name, letter, form)                                                                           \
	OPERATOR_DELETE(name, "_Zd" letter "Pv", form, (void *block), (block))                                         \
	OPERATOR_DELETE(name##_sized, "_Zd" letter "Pv" Z, form##_SIZED, (void *block, size_t size), (block, size))    \
	OPERATOR_DELETE(name##_nothrow, "_Zd" letter "Pv" NOTHROW, form##_NOTHROW, (void *block, const void *nothrow), \
			(block, nothrow))                                                                              \
	OPERATOR_DELETE(name##_aligned, "_Zd" letter "Pv" ALIGN, form##_ALIGNED, (void *block, size_t alignment),      \
			(block, alignment))                                                                            \
	OPERATOR_DELETE(name##_sized_aligned, "_Zd" letter "Pv" Z ALIGN, form##_SIZED_ALIGNED,                         \
			(void *block, size_t size, size_t alignment), (block, size, alignment))                        \
	OPERATOR_DELETE(name##_aligned_nothrow, "_Zd" letter "Pv" ALIGN NOTHROW, form##_ALIGNED_NOTHROW,               \
			(void *block, size_t alignment, const void *nothrow), (block, alignment, nothrow))

OPERATORS_DELETE(operator_delete, "l", DELETE)
OPERATORS_DELETE(operator_delete_array, "a", DELETE_ARRAY)
