/*
 * unwinder.c - see unwinder.h.
 * Layer L1. libunwind is never linked: it would put its own backtrace() in front of the program's.
 */
#include "config.h"

#include "unwinder.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "unwind.h"
#include "unwind_libunwind.h"

#define LIBUNWIND "libunwind.so.8"

static const struct way {
	const char *name, *note;
	mew_unwind_fn *walk;
} ways[] = {
	{ "table", NULL, mew_unwind_by_table },
	{ "fp",
	  "stacks by frame pointers (MEW_UNWINDER=fp): code without them, and the caller of a leaf, may be missing",
	  mew_unwind_by_frame_pointers },
	{ "libunwind", "stacks by libunwind (MEW_UNWINDER=libunwind): slower, and it takes locks in the measured code",
	  mew_unwind_by_libunwind },
};
static const struct way *in_use = &ways[0];

static const struct way *find(const char *name)
{
	if (name == NULL || name[0] == '\0')
		return &ways[0];
	for (size_t i = 0; i < MEW_COUNTOF(ways); i++)
		if (strcmp(ways[i].name, name) == 0)
			return &ways[i];
	return NULL;
}

int mew_unwinder_check(const char *name, struct mew_error *err)
{
	if (find(name) != NULL)
		return MEW_OK;
	return mew_error_set(err, MEW_E_INVALID, "MEW_UNWINDER is \"%.40s\": it must be table, fp or libunwind", name);
}

#ifdef MEW_LIBUNWIND_PREFIX
static void *find_symbol(void *library, const char *name)
{
	return library != NULL ? dlsym(library, name) : NULL;
}

/*
 * Local, so that its backtrace() and _Unwind_*() stand in front of nobody's. Stays loaded: a late thread may be in it.
 */
static int load_libunwind(struct mew_error *err)
{
	void *library, *init, *step, *get;

	if (mew_libunwind.init != NULL)
		return MEW_OK;
	library = dlopen(LIBUNWIND, RTLD_NOW | RTLD_LOCAL);
	init = find_symbol(library, MEW_LIBUNWIND_PREFIX "init_local2");
	step = find_symbol(library, MEW_LIBUNWIND_PREFIX "step");
	get = find_symbol(library, MEW_LIBUNWIND_PREFIX "get_reg");
	if (init == NULL || step == NULL || get == NULL)
		return mew_error_set(err, MEW_E_UNSUPPORTED,
				     "MEW_UNWINDER is libunwind, but " LIBUNWIND
				     " cannot be loaded: install it, or unset it");
	memcpy(&mew_libunwind.step, &step, sizeof step);
	memcpy(&mew_libunwind.get, &get, sizeof get);
	memcpy(&mew_libunwind.init, &init, sizeof init);
	return MEW_OK;
}
#else
static int load_libunwind(struct mew_error *err)
{
	return mew_error_set(err, MEW_E_UNSUPPORTED, "MEW_UNWINDER=libunwind works on x86-64 only: unset it");
}
#endif

int mew_unwinder_use(const char *name, struct mew_error *err)
{
	const struct way *way = find(name);
	int status = MEW_OK;

	if (way == NULL)
		return mew_unwinder_check(name, err);
	if (way->walk == mew_unwind_by_libunwind)
		status = load_libunwind(err);
	if (status != MEW_OK)
		return status;
	mew_unwind_use(way->walk);
	in_use = way;
	return MEW_OK;
}

int mew_unwinder_choose(struct mew_error *err)
{
	static bool chosen;
	int status;

	if (chosen)
		return MEW_OK;
	status = mew_unwinder_use(getenv("MEW_UNWINDER"), err);
	chosen = status == MEW_OK;
	return status;
}

const char *mew_unwinder_note(void)
{
	return in_use->note;
}
