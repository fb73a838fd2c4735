/*
 * allocator.c - see allocator.h.
 * Layer L0. Caller thread, outside windows.
 */
#include "config.h"

#include "allocator.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

#include "elf_names.h"
#include "hooks_link.h"

extern void sanitizer_asan(void) __asm__("__asan_init") __attribute__((weak));
extern void sanitizer_tsan(void) __asm__("__tsan_init") __attribute__((weak));
extern void sanitizer_msan(void) __asm__("__msan_init") __attribute__((weak));

const char *mew_allocator_sanitizer(void)
{
	if (sanitizer_asan != NULL)
		return "AddressSanitizer";
	if (sanitizer_tsan != NULL)
		return "ThreadSanitizer";
	return sanitizer_msan != NULL ? "MemorySanitizer" : NULL;
}

struct program {
	bool has_loader;
	uintptr_t lo, hi; /* of its segments */
};

/* The first file the loader names is the program. */
static int look_at_program(struct dl_phdr_info *info, size_t size, void *data)
{
	struct program *p = data;

	(void)size;
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		uintptr_t at = info->dlpi_addr + h->p_vaddr;

		if (h->p_type == PT_INTERP)
			p->has_loader = true;
		if (h->p_type == PT_LOAD && (p->hi == 0 || at < p->lo))
			p->lo = at;
		if (h->p_type == PT_LOAD && at + h->p_memsz > p->hi)
			p->hi = at + h->p_memsz;
	}
	return 1;
}

static struct program program(void)
{
	struct program p = { false, 0, 0 };

	(void)dl_iterate_phdr(look_at_program, &p);
	return p;
}

bool mew_allocator_is_static(void)
{
	return !program().has_loader;
}

bool mew_allocator_is_privileged(void)
{
	return getauxval(AT_SECURE) != 0;
}

bool mew_allocator_in_program(uintptr_t address)
{
	struct program p = program();

	return address >= p.lo && address < p.hi;
}

const char *mew_allocator_first(uintptr_t *address)
{
	void *found = dlsym(RTLD_DEFAULT, "malloc");
	Dl_info info;

	if (address != NULL)
		*address = (uintptr_t)found;
	if (found == NULL || dladdr(found, &info) == 0 || info.dli_fname == NULL)
		return "another library";
	return info.dli_fname;
}

/* --- what the loader does not see -------------------------------------------------------------------------------- */

static bool is_malloc(void *data, const struct mew_elf_function *f)
{
	bool *found = data;

	*found = *found || (!f->is_chosen && strcmp(f->name, "malloc") == 0);
	return !*found;
}

bool mew_allocator_is_hidden(const struct mew_hooks_api *api)
{
	bool found = false;

	if (!mew_allocator_in_program((uintptr_t)api->arm))
		(void)mew_elf_functions("/proc/self/exe", "", is_malloc, &found);
	return found;
}

/* --- operator new ------------------------------------------------------------------------------------------------- */

/* The allocator's own malloc: behind the hooks where they come first, else the first of all. */
static bool find_allocator(const struct mew_hooks_api *api, Dl_info *out)
{
	void *first = dlsym(RTLD_DEFAULT, "malloc");
	Dl_info hooks;

	if (first == NULL || dladdr(first, out) == 0)
		return false;
	if (api == NULL || dladdr((void *)(uintptr_t)api->arm, &hooks) == 0 || hooks.dli_fbase != out->dli_fbase)
		return true;
	return dladdr((void *)(uintptr_t)api->next->do_malloc, out) != 0;
}

struct search {
	uintptr_t allocator; /* an address in it */
	bool found;
};

/* Does a file other than the allocator need a C++ library? jemalloc needs one for its own operators. */
static int look_for_cxx(struct dl_phdr_info *info, size_t size, void *data)
{
	const ElfW(Dyn) *dynamic = NULL;
	struct search *s = data;
	const char *strings = NULL;

	(void)size;
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];

		if (h->p_type == PT_LOAD && s->allocator - (info->dlpi_addr + h->p_vaddr) < h->p_memsz)
			return 0;
		if (h->p_type == PT_DYNAMIC)
			dynamic = (const ElfW(Dyn) *)(info->dlpi_addr + h->p_vaddr);
	}
	for (const ElfW(Dyn) *d = dynamic; d != NULL && d->d_tag != DT_NULL; d++)
		if (d->d_tag == DT_STRTAB) /* most loaders make an address of it */
			strings = (const char *)(d->d_un.d_ptr +
						 (d->d_un.d_ptr < info->dlpi_addr ? info->dlpi_addr : 0));
	for (const ElfW(Dyn) *d = dynamic; strings != NULL && d->d_tag != DT_NULL; d++)
		if (d->d_tag == DT_NEEDED && (strncmp(strings + d->d_un.d_val, "libstdc++.", 10) == 0 ||
					      strncmp(strings + d->d_un.d_val, "libc++.", 7) == 0))
			s->found = true;
	return s->found;
}

const char *mew_allocator_own_operators(const struct mew_hooks_api *api)
{
	void *operator_new = dlsym(RTLD_DEFAULT, sizeof(size_t) == 8 ? "_Znwm" : "_Znwj");
	struct search cxx = { (uintptr_t)operator_new, false };
	Dl_info of_malloc, of_new;

	if (operator_new == NULL || !find_allocator(api, &of_malloc) || dladdr(operator_new, &of_new) == 0 ||
	    of_malloc.dli_fbase != of_new.dli_fbase)
		return NULL;
	(void)dl_iterate_phdr(look_for_cxx, &cxx);
	return cxx.found ? of_new.dli_fname : NULL;
}

/* --- versions ----------------------------------------------------------------------------------------------------- */

/* A function of that name of the file at `base`, not of another that is loaded too. */
static void *function_of(const void *base, const char *name)
{
	void *found = dlsym(RTLD_DEFAULT, name);
	Dl_info info;

	return found != NULL && dladdr(found, &info) != 0 && info.dli_fbase == base ? found : NULL;
}

typedef int read_control(const char *name, void *old, size_t *old_size, void *new_value, size_t new_size);
typedef int number_call(void);
typedef const char *text_call(void);
typedef const char *parts_call(int *major, int *minor, const char **patch);

/* jemalloc gives "5.3.0-0-gCOMMIT", mimalloc 209 for 2.0.9. */
static void ask_version(const void *base, char *version, size_t size)
{
	read_control *jemalloc = (read_control *)(uintptr_t)function_of(base, "mallctl");
	parts_call *tcmalloc = (parts_call *)(uintptr_t)function_of(base, "tc_version");
	number_call *mimalloc = (number_call *)(uintptr_t)function_of(base, "mi_version");
	text_call *glibc = (text_call *)(uintptr_t)function_of(base, "gnu_get_libc_version");
	const char *text = NULL;
	size_t bytes = sizeof text;
	int n, parts[2];

	version[0] = '\0';
	if (jemalloc != NULL && jemalloc("version", &text, &bytes, NULL, 0) == 0)
		(void)snprintf(version, size, "%.*s", (int)strcspn(text, "-"), text);
	else if (tcmalloc != NULL)
		(void)snprintf(version, size, "%s", tcmalloc(&parts[0], &parts[1], &text));
	else if (mimalloc != NULL && (n = mimalloc()) > 0)
		(void)snprintf(version, size, n < 10000 ? "%d.%d.%d" : "%d.%02d.%02d", n / (n < 10000 ? 100 : 10000),
			       n < 10000 ? n / 10 % 10 : n / 100 % 100, n < 10000 ? n % 10 : n % 100);
	else if (glibc != NULL)
		(void)snprintf(version, size, "%s", glibc());
}

const char *mew_allocator_in_use(const struct mew_hooks_api *api, char *version, size_t size)
{
	Dl_info info;

	version[0] = '\0';
	if (!find_allocator(api, &info) || info.dli_fname == NULL)
		return NULL;
	ask_version(info.dli_fbase, version, size);
	return info.dli_fname;
}

const char *mew_allocator_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}
