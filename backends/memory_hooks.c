/*
 * memory_hooks.c - see memory_hooks.h.
 * Layer L3. Outside malloc; nothing here changes the process but the short self-test of the hooks.
 */
#include "config.h"

#include "memory_hooks.h"

#include <dlfcn.h>

#include "allocator.h"
#include "hooks_link.h"
#include "span_registry.h"

/* The hooks are absent. */
static int why_absent(struct mew_error *err)
{
	if (mew_allocator_is_static())
		return mew_error_set(err, MEW_E_UNSUPPORTED,
				     "this program is linked statically, so nothing can come between it and its "
				     "malloc: link it without -static");
	if (dlsym(RTLD_DEFAULT, "mew_hooks_api") != NULL)
		return mew_error_set(err, MEW_E_UNSUPPORTED,
				     "the libmew_hooks in this process is of another version than libmew: install "
				     "both from one build");
	if (mew_allocator_is_privileged())
		return mew_error_set(err, MEW_E_UNSUPPORTED,
				     "this program runs with the privileges of its file (setuid, setgid or "
				     "capabilities), and the loader preloads nothing into it: measure a copy without "
				     "them, or link it with -lmew_hooks");
	return mew_error_set(err, MEW_E_UNSUPPORTED,
			     "libmew_hooks is not in this process: add -lmew_hooks before other libraries "
			     "(pkg-config --libs mew does) or run it with `mew run`");
}

static int has_own_malloc(const char *program, struct mew_error *err)
{
	return mew_error_set(err, MEW_E_UNSUPPORTED,
			     "%s defines malloc itself (an allocator that is linked in statically?), and its calls go "
			     "there before any library: link that allocator as a shared library", program);
}

/* The hooks are there, and calls of libc do not come to them. */
static int why_not_first(struct mew_error *err)
{
	uintptr_t address;
	const char *path = mew_allocator_first(&address);

	if (mew_allocator_in_program(address))
		return has_own_malloc(path, err);
	return mew_error_set(err, MEW_E_UNSUPPORTED,
			     "libmew_hooks is loaded but not first, malloc is that of %s: put -lmew_hooks before it, "
			     "or run it with `mew run`", path);
}

/* Looked up once: a program does not change its mind, and its symbol table may be large. */
static bool hides_malloc(const struct mew_hooks_api *api)
{
	static int known; /* atomic; 1 no, 2 yes */
	int answer = __atomic_load_n(&known, __ATOMIC_RELAXED);

	if (answer == 0) {
		answer = mew_allocator_is_hidden(api) ? 2 : 1;
		__atomic_store_n(&known, answer, __ATOMIC_RELAXED);
	}
	return answer == 2;
}

int mew_memory_find_hooks(const struct mew_hooks_api **out, struct mew_error *err)
{
	const struct mew_hooks_api *api = mew_hooks_link();
	const char *name = mew_allocator_sanitizer();

	if (name != NULL)
		return mew_error_set(err, MEW_E_UNSUPPORTED,
				     "this program is built with %s, which replaces malloc itself: measure memory in "
				     "a build without -fsanitize", name);
	if (api == NULL)
		return why_absent(err);
	if (mew_spans_hold_hooks()) { /* proven when they took them, and a test now would find them armed */
		*out = api;
		return MEW_OK;
	}
	switch (api->selftest()) {
	case 1:
		if (hides_malloc(api))
			return has_own_malloc("this program", err);
		*out = api;
		return MEW_OK;
	case 0: return why_not_first(err);
	default: return mew_error_set(err, MEW_E_BUSY, "libmew_hooks is in use by another capture of this process");
	}
}
