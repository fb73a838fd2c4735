/*
 * hooks_link.c - libmew must not depend on libmew_hooks (libc would come first in the search, and nothing be counted),
 * so its one function is looked up: by a weak reference, and by name where a static link bound that reference to
 * nothing. Layer L0. Any thread.
 */
#include "config.h"

#include "hooks_link.h"

#include <dlfcn.h>
#include <string.h>

extern const struct mew_hooks_api *mew_hooks_api(unsigned version) __attribute__((weak));
extern const struct mew_threads_api *mew_threads_api(unsigned version) __attribute__((weak));

const struct mew_hooks_api *mew_hooks_link(void)
{
	const struct mew_hooks_api *(*find)(unsigned) = mew_hooks_api;
	const struct mew_hooks_api *api;

	if (find == NULL) {
		void *symbol = dlsym(RTLD_DEFAULT, "mew_hooks_api");

		memcpy(&find, &symbol, sizeof find); /* ISO C has no conversion from data to function pointers */
	}
	api = find != NULL ? find(MEW_HOOKS_VERSION) : NULL;
	return api != NULL && api->size >= sizeof *api ? api : NULL; /* an older build lacks the members at the end */
}

const struct mew_threads_api *mew_threads_link(void)
{
	const struct mew_threads_api *(*find)(unsigned) = mew_threads_api;
	const struct mew_threads_api *api;

	if (find == NULL) {
		void *symbol = dlsym(RTLD_DEFAULT, "mew_threads_api");

		memcpy(&find, &symbol, sizeof find);
	}
	api = find != NULL ? find(MEW_THREADS_VERSION) : NULL;
	return api != NULL && api->size >= sizeof *api && api->is_first() ? api : NULL;
}
