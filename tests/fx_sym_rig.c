/*
 * fx_sym_rig.c - the fixtures' driver: compiler, loader and expectations in one place.
 * Test fixture.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fx_sym_rig.h"
#include "symbolise.h"

bool rig_run(const struct sym_rig *r, const char *format, ...)
{
	char command[2048];
	int used = snprintf(command, sizeof command, "cd %s && ", r->directory);
	va_list ap;

	assert_true(used > 0);
	va_start(ap, format);
	used += vsnprintf(command + used, sizeof command - (size_t)used, format, ap);
	va_end(ap);
	assert_true((size_t)used < sizeof command);
	return system(command) == 0;
}

static void find_source(struct sym_rig *r, const char *fixture)
{
	const char *root = getenv("srcdir");
	char path[PATH_MAX];

	if (root == NULL)
		root = ".";
	for (int i = 0; i < 2; i++) {
		(void)snprintf(path, sizeof path, i == 0 ? "%s/tests/%s" : "%s/%s", root, fixture);
		if (access(path, R_OK) == 0) {
			char *real = realpath(path, NULL);

			assert_non_null(real);
			assert_true((size_t)snprintf(r->source, sizeof r->source, "%s", real) < sizeof r->source);
			free(real);
			return;
		}
	}
	fail_msg("%s is not in %s or its tests/: set srcdir", fixture, root);
}

static bool compile(struct sym_rig *r, const char *flags)
{
	const char *compiler = strstr(r->source, ".cc") != NULL ? "${CXX:-c++}" : "${CC:-cc}";

	if (rig_run(r, "%s -Wl,--build-id %s -fPIC -shared -o %s %s 2>compiler.log", compiler, flags, r->library,
		    r->source))
		return true;
	print_message("skipped: %s %s does not compile the fixture here\n", compiler, flags);
	return false;
}

struct note_search {
	uintptr_t base;
	char *text;
};

static int take_build_id(struct dl_phdr_info *info, size_t size, void *data)
{
	struct note_search *s = data;

	(void)size;
	if (info->dlpi_addr != s->base)
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		const unsigned char *at = (const unsigned char *)(info->dlpi_addr + p->p_vaddr), *end = at + p->p_memsz;

		while (p->p_type == PT_NOTE && at + sizeof(ElfW(Nhdr)) <= end) {
			ElfW(Nhdr) note;

			memcpy(&note, at, sizeof note);
			at += sizeof note + ((note.n_namesz + 3u) & ~3u);
			for (unsigned j = 0; note.n_type == NT_GNU_BUILD_ID && j < note.n_descsz && j < 32; j++)
				(void)snprintf(s->text + 2 * j, 3, "%02x", at[j]);
			at += (note.n_descsz + 3u) & ~3u;
		}
	}
	return 1;
}

void rig_build_id(const void *base, char *text)
{
	text[0] = '\0';
	(void)dl_iterate_phdr(take_build_id, &(struct note_search){ (uintptr_t)base, text });
}

static void run_fixture(struct sym_rig *r)
{
	void *handle = dlopen(r->library, RTLD_NOW | RTLD_LOCAL), *symbol;
	const void *const *pcs;
	const int *slots;
	void (*run)(void);
	Dl_info info;

	if (handle == NULL)
		fail_msg("%s", dlerror());
	symbol = dlsym(handle, "fx_run");
	pcs = dlsym(handle, "fx_pcs");
	slots = dlsym(handle, "fx_slots");
	assert_non_null(symbol);
	assert_non_null(pcs);
	assert_non_null(slots);
	assert_in_range(*slots, 1, MEW_COUNTOF(r->offsets));
	memcpy(&run, &symbol, sizeof run);
	run();
	assert_int_not_equal(dladdr(symbol, &info), 0);
	for (int i = 0; i < *slots; i++)
		r->offsets[i] = (uintptr_t)pcs[i] - (uintptr_t)info.dli_fbase - 1;
	rig_build_id(info.dli_fbase, r->build_id);
	assert_int_equal(dlclose(handle), 0);
}

bool rig_open(struct sym_rig *r, const char *fixture, const char *flags)
{
	*r = (struct sym_rig){ .directory = "/tmp/mew-symbols-XXXXXX" };
	find_source(r, fixture);
	assert_non_null(mkdtemp(r->directory));
	(void)snprintf(r->library, sizeof r->library, "%s/fx.so", r->directory);
	if (!compile(r, flags)) {
		rig_close(r);
		return false;
	}
	run_fixture(r);
	return true;
}

void rig_close(struct sym_rig *r)
{
	mew_model_free(r->model);
	r->model = NULL;
	(void)rig_run(r, "rm -rf %s", r->directory);
}

void rig_symbolise(struct sym_rig *r, size_t n, const char *build_id)
{
	uint32_t module;

	mew_model_free(r->model);
	r->model = mew_model_new();
	assert_non_null(r->model);
	module = mew_model_module(r->model, r->library, build_id != NULL ? build_id : r->build_id, 4096, false);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(mew_model_location(r->model, module, r->offsets[i]), i);
	r->status = mew_symbolise(r->model, NULL, &r->error);
}

uint32_t rig_line(const struct sym_rig *r, const char *mark)
{
	char line[512], wanted[64];
	FILE *f = fopen(r->source, "r");
	uint32_t number = 0;

	assert_non_null(f);
	(void)snprintf(wanted, sizeof wanted, "line: %s ", mark);
	while (fgets(line, sizeof line, f) != NULL) {
		number++;
		if (strstr(line, wanted) != NULL) {
			(void)fclose(f);
			return number;
		}
	}
	(void)fclose(f);
	fail_msg("no line is marked %s", mark);
	return 0;
}

void rig_expect(const struct sym_rig *r, uint32_t location, uint32_t depth, const char *function,
		const char *definition, const char *line)
{
	const struct mew_location *l = &r->model->locations[location];
	const struct mew_function *f;

	if (depth >= l->nlines)
		fail_msg("location %u has %u frames (%s)", location, l->nlines, l->why != NULL ? l->why : "no reason");
	f = &r->model->functions[r->model->lines[l->first_line + depth].function];
	assert_string_equal(f->name, function);
	assert_string_equal(f->file, r->source);
	assert_int_equal(f->line, rig_line(r, definition));
	assert_int_equal(r->model->lines[l->first_line + depth].line, rig_line(r, line));
}

void rig_contains(const char *text, const char *part)
{
	if (text == NULL || strstr(text, part) == NULL)
		fail_msg("\"%s\" does not contain \"%s\"", text != NULL ? text : "(nothing)", part);
}
