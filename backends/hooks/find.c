/*
 * find.c - the next definition of a function in the search order.
 * Below all layers; any thread, not malloc. Part of both libmew_hooks and libmew_threads.
 */
#include "config.h"

#include "internal.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

void mew_hooks_die(const char *text)
{
	ssize_t ignored = write(STDERR_FILENO, text, strlen(text));

	(void)ignored;
	_exit(127);
}

uintptr_t mew_hooks_module_base(uintptr_t address)
{
	Dl_info info;

	return address != 0 && dladdr((const void *)address, &info) != 0 ? (uintptr_t)info.dli_fbase : 0;
}

/*
 * The next function of that name in the search order. Where libc was put ahead of this library, to time malloc at its
 * native speed, nothing follows and the first one of all is it; our own calls must still work then, although nobody
 * else's come here.
 */
uintptr_t mew_hooks_find(const char *name)
{
	static const char here;
	uintptr_t found = (uintptr_t)dlsym(RTLD_NEXT, name);

	if (found == 0)
		found = (uintptr_t)dlsym(RTLD_DEFAULT, name);
	return mew_hooks_module_base(found) == mew_hooks_module_base((uintptr_t)&here) ? 0 : found;
}
