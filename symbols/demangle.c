/*
 * demangle.c - asks the C++ runtime's own demangler, linked where configure found it, else the one the process has.
 * Layer L3, inside libmew_symbols. Any thread; allocates.
 */
#include "config.h"

#include "demangle.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* A longer name is shown as it is: the demangler's recursion grows with it. */
#define LONGEST 16384

typedef char *demangle_fn(const char *mangled, char *buffer, size_t *bytes, int *status);

#ifdef HAVE_CXA_DEMANGLE
extern demangle_fn __cxa_demangle; /* the Itanium C++ ABI names it; <cxxabi.h> declares it for C++ only */

static demangle_fn *runtime(void)
{
	return __cxa_demangle;
}
#else
static demangle_fn *runtime(void)
{
	void *symbol = dlsym(RTLD_DEFAULT, "__cxa_demangle");
	demangle_fn *function;

	memcpy(&function, &symbol, sizeof function);
	return function;
}
#endif

bool mew_is_mangled(const char *name)
{
	return name[0] == '_' && name[1] == 'Z';
}

char *mew_demangle(const char *name, bool keep_clone)
{
	size_t n = strcspn(name, "@");
	char *copy, *readable = NULL;
	int status;

	if (n == 0)
		n = strlen(name);
	if (!keep_clone && mew_is_mangled(name) && memchr(name, '.', n) != NULL)
		n = strcspn(name, ".");
	copy = strndup(name, n);
	if (copy == NULL || !mew_is_mangled(copy) || n > LONGEST || runtime() == NULL)
		return copy;
	readable = runtime()(copy, NULL, NULL, &status);
	if (readable == NULL)
		return copy;
	free(copy);
	return readable;
}
