/*
 * symbolise.c - groups unresolved locations by module and asks libmew_symbols.so about each module once.
 * Layer L3. One thread, after the windows; what the library answers is copied, and the library is closed again.
 */
#include "config.h"

#include "symbolise.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../symbols/symbols.h"

#define LIBRARY "libmew_symbols.so"
#define NAMELESS "functions have no names: "

/* One module's worth of locations, in ascending order of offset. */
struct batch {
	struct mew_model *model;
	const uint32_t *locations;
	size_t n;
	uint32_t module;
	struct mew_line *lines; /* of the offset being answered */
	size_t nlines, capacity;
	size_t index;           /* of the offset being answered */
	const char *why;        /* the last reason: mostly the next one's too */
	const struct mew_symbolise_servers *servers; /* NULL: none */
};

const char *mew_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash == NULL ? path : slash + 1;
}

const char *mew_module_name(const struct mew_model *m, uint32_t module)
{
	return module < m->nmodules ? mew_base_name(m->modules[module].path) : "";
}

const char *mew_location_name(const struct mew_model *m, uint32_t location, char *buffer, size_t size)
{
	const struct mew_location *l = &m->locations[location];
	unsigned long long offset = l->start != 0 ? l->start : l->offset;

	if (l->nlines > 0)
		(void)snprintf(buffer, size, "%s", m->functions[m->lines[l->first_line].function].name);
	else if (l->module < m->nmodules)
		(void)snprintf(buffer, size, "%s+0x%llx", mew_module_name(m, l->module), offset);
	else
		(void)snprintf(buffer, size, "0x%llx", offset);
	return buffer;
}

/* --- loading ----------------------------------------------------------------------------------------------------- */

/* Returns the handle; NULL with *exists and err when the file is there and cannot be loaded. */
static void *load_file(const char *path, bool *exists, struct mew_error *err)
{
	void *handle;
	const char *text;

	*exists = access(path, F_OK) == 0;
	if (!*exists)
		return NULL;
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (handle == NULL) {
		text = dlerror();
		(void)mew_error_set(err, MEW_E_UNSUPPORTED, NAMELESS "%s cannot be loaded: %s", path,
				    text != NULL ? text : "no reason given");
	}
	return handle;
}

/* `folder`, below that of the file that holds this code: "" or one with a slash at its end. */
static void *load_beside(const char *folder, bool *exists, struct mew_error *err)
{
	static const char here = 0; /* an address in the file that holds this code */
	char path[PATH_MAX];
	Dl_info info;
	int n;

	*exists = false;
	if (dladdr(&here, &info) == 0 || info.dli_fname == NULL)
		return NULL;
	n = snprintf(path, sizeof path, "%.*s%s" LIBRARY, (int)(mew_base_name(info.dli_fname) - info.dli_fname),
		     info.dli_fname, folder);
	if (n < 0 || (size_t)n >= sizeof path)
		return NULL;
	return load_file(path, exists, err);
}

static void *load_library(struct mew_error *err)
{
	const char *named = secure_getenv("MEW_SYMBOLS"), *text;
	bool exists;
	void *handle;

	if (named != NULL && named[0] != '\0') {
		handle = load_file(named, &exists, err);
		if (!exists)
			(void)mew_error_set(err, MEW_E_UNSUPPORTED, NAMELESS "MEW_SYMBOLS names %s, which is not "
					    "there: unset it or correct it", named);
		return handle;
	}
	handle = load_beside("", &exists, err);
	if (!exists)
		handle = load_beside(".libs/", &exists, err); /* libtool's place for it, while nothing is installed */
	if (exists)
		return handle;
#ifdef MEW_LIBDIR
	handle = load_file(MEW_LIBDIR "/" LIBRARY, &exists, err);
	if (exists)
		return handle;
#endif
	handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (handle == NULL) {
		text = dlerror();
		(void)mew_error_set(err, MEW_E_UNSUPPORTED, NAMELESS "install " LIBRARY " beside libmew (%s)",
				    text != NULL ? text : "not found");
	}
	return handle;
}

static mew_symbols_resolve_fn *entry_of(void *handle, struct mew_error *err)
{
	mew_symbols_resolve_fn *entry;
	void *symbol = dlsym(handle, MEW_SYMBOLS_ENTRY);

	if (symbol == NULL)
		(void)mew_error_set(err, MEW_E_UNSUPPORTED, NAMELESS "the " LIBRARY " that was found lacks "
				    MEW_SYMBOLS_ENTRY "(): install the one of mew " MEW_VERSION);
	/* ISO C has no cast from an object to a function pointer; POSIX promises that the bytes are the same */
	memcpy(&entry, &symbol, sizeof entry);
	return entry;
}

int mew_symbolise_check_servers(struct mew_error *err)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	int state = -1;
	pid_t child;

	if (urls == NULL || urls[strspn(urls, " ")] == '\0')
		return mew_error_set(err, MEW_E_UNSUPPORTED,
				     "DEBUGINFOD_URLS names no server: set it, as in "
				     "DEBUGINFOD_URLS=https://debuginfod.debian.net");
	child = fork();
	if (child == 0)
		_exit(dlopen(MEW_SYMBOLS_DEBUGINFOD, RTLD_NOW | RTLD_LOCAL) == NULL);
	while (child > 0 && waitpid(child, &state, 0) < 0 && errno == EINTR)
		;
	if (child > 0 && state == 0)
		return MEW_OK;
	return mew_error_set(err, MEW_E_UNSUPPORTED,
			     MEW_SYMBOLS_DEBUGINFOD " cannot be loaded: install the package libdebuginfod1");
}

/* --- asking ------------------------------------------------------------------------------------------------------ */

static bool needs_name(const struct mew_model *m, const struct mew_location *l, bool again)
{
	return l->nlines == 0 || (again && m->lines[l->first_line].line == 0);
}

static int by_module_and_offset(const void *a, const void *b, void *data)
{
	const struct mew_location *all = data;
	const struct mew_location *x = &all[*(const uint32_t *)a], *y = &all[*(const uint32_t *)b];

	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Numbers of the unresolved locations, by module and offset. Returns NULL without memory or when there are none. */
static uint32_t *list_unresolved(const struct mew_model *m, bool again, size_t *count)
{
	uint32_t *list;
	size_t n = 0;

	for (size_t i = 0; i < m->nlocations; i++)
		n += needs_name(m, &m->locations[i], again);
	*count = n;
	list = n == 0 ? NULL : calloc(n, sizeof *list);
	if (list == NULL)
		return NULL;
	n = 0;
	for (size_t i = 0; i < m->nlocations; i++)
		if (needs_name(m, &m->locations[i], again))
			list[n++] = (uint32_t)i;
	qsort_r(list, n, sizeof *list, by_module_and_offset, m->locations);
	return list;
}

static int flush(struct batch *b)
{
	size_t n = b->nlines;

	b->nlines = 0;
	return n == 0 ? 0 : mew_model_set_lines(b->model, b->locations[b->index], b->lines, n);
}

static int take_frame(void *data, const struct mew_symbols_frame *f)
{
	struct batch *b = data;
	uint32_t function;

	if (f->index != b->index && flush(b) != 0)
		return -1;
	b->index = f->index;
	if (b->nlines == b->capacity) {
		size_t capacity = b->capacity == 0 ? 32 : 2 * b->capacity;
		struct mew_line *grown = reallocarray(b->lines, capacity, sizeof *grown);

		if (grown == NULL)
			return -1;
		b->lines = grown;
		b->capacity = capacity;
	}
	function = mew_model_function(b->model, f->function, f->file, f->function_line, b->module);
	if (function == UINT32_MAX)
		return -1;
	b->lines[b->nlines++] = (struct mew_line){ .function = function, .line = f->line };
	return 0;
}

static int take_note(void *data, size_t index, const char *why)
{
	struct batch *b = data;
	bool is_answer = b->nlines > 0 && b->index == index;

	/* lines clear a reason, so they go first */
	if (flush(b) != 0)
		return -1;
	if (b->why == NULL || strcmp(b->why, why) != 0)
		b->why = mew_model_string(b->model, why);
	if (b->why == NULL)
		return -1;
	/* a name that was there before keeps what was said about it */
	if (is_answer || b->model->locations[b->locations[index]].nlines == 0)
		b->model->locations[b->locations[index]].why = b->why;
	return 0;
}

static int take_start(void *data, size_t index, uint64_t start)
{
	struct batch *b = data;

	b->model->locations[b->locations[index]].start = start;
	return 0;
}

static void take_line(void *data, const char *line)
{
	const struct batch *b = data;

	b->servers->told(b->servers->data, line);
}

static int ask_module(struct batch *b, mew_symbols_resolve_fn *resolve)
{
	const struct mew_module *module = &b->model->modules[b->module];
	uint64_t *offsets = calloc(b->n, sizeof *offsets);
	struct mew_symbols_query query = { .abi = MEW_SYMBOLS_ABI, .path = module->path, .build_id = module->build_id,
					   .offsets = offsets, .n = b->n, .frame = take_frame, .note = take_note,
					   .start = take_start,
					   .data = b };
	int status = MEW_E_NOMEM;

	if (b->servers != NULL) {
		query.servers_until_ns = b->servers->until_ns;
		query.told = take_line;
	}
	if (offsets != NULL) {
		for (size_t i = 0; i < b->n; i++)
			offsets[i] = b->model->locations[b->locations[i]].offset;
		status = resolve(&query);
	}
	if (status == MEW_OK && flush(b) != 0)
		status = MEW_E_NOMEM;
	free(offsets);
	free(b->lines);
	return status;
}

static int explain_all(struct batch *b, const char *why)
{
	for (size_t i = 0; i < b->n; i++)
		if (take_note(b, i, why) != 0)
			return MEW_E_NOMEM;
	return MEW_OK;
}

/* resolve NULL: there is no library, and `why` is the reason. */
static int each_module(struct mew_model *m, const uint32_t *list, size_t n, mew_symbols_resolve_fn *resolve,
		       const struct mew_symbolise_servers *servers, const char *why)
{
	int status = MEW_OK;

	for (size_t i = 0, end; i < n && status == MEW_OK; i = end) {
		struct batch b = { .model = m, .locations = list + i, .module = m->locations[list[i]].module,
				   .servers = servers };

		for (end = i; end < n && m->locations[list[end]].module == b.module; end++)
			b.n++;
		if (b.module >= m->nmodules)
			status = explain_all(&b, "the address is in no loaded file: generated code, or a file closed "
						 "before the list of files was taken");
		else if (resolve == NULL)
			status = explain_all(&b, why);
		else
			status = ask_module(&b, resolve);
	}
	return status;
}

int mew_symbolise(struct mew_model *m, const struct mew_symbolise_servers *servers, struct mew_error *err)
{
	struct mew_error cause = { .status = MEW_OK };
	mew_symbols_resolve_fn *resolve = NULL;
	void *handle = NULL;
	size_t n;
	uint32_t *list = list_unresolved(m, servers != NULL && servers->again, &n);
	int status;

	if (n == 0)
		return MEW_OK;
	if (list == NULL)
		return mew_error_set(err, MEW_E_NOMEM, "no memory to name %zu addresses", n);
	handle = load_library(&cause);
	if (handle != NULL)
		resolve = entry_of(handle, &cause);
	status = each_module(m, list, n, resolve, servers, cause.text);
	if (status == MEW_E_NOMEM)
		(void)mew_error_set(err, MEW_E_NOMEM, "no memory to name %zu addresses", n);
	else if (status == MEW_E_UNSUPPORTED)
		(void)mew_error_set(err, status, NAMELESS "the " LIBRARY " that was found speaks another version: "
				    "install the one of mew " MEW_VERSION);
	else if (resolve == NULL)
		status = mew_error_set(err, MEW_E_UNSUPPORTED, "%s", cause.text);
	if (handle != NULL)
		(void)dlclose(handle);
	free(list);
	return status;
}
