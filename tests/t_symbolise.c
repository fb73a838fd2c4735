/*
 * t_symbolise.c - are functions, files, lines and inlined frames right, and is each missing name explained?
 * Test program. Needs libmew_symbols.so (MEW_SYMBOLS names it in a build tree) and a compiler for its fixtures.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "fx_sym_rig.h"
#include "symbolise.h"

#define CODE "fx_sym_code.c"
enum { FIRST, SECOND, STATIC, SLOTS }; /* as in fx_sym_code.c */

static void open_or_skip(struct sym_rig *r, const char *fixture, const char *flags)
{
	if (!rig_open(r, fixture, flags))
		skip();
}

static void symbolise_or_skip(struct sym_rig *r, size_t n, const char *build_id)
{
	rig_symbolise(r, n, build_id);
	if (r->status == MEW_E_UNSUPPORTED) {
		print_message("skipped: %s\n", r->error.text);
		rig_close(r);
		skip();
	}
	assert_int_equal(r->status, MEW_OK);
}

static void expect_code(const struct sym_rig *r)
{
	rig_expect(r, FIRST, 0, "fx_inner", "INNER", "INNER_CALL");
	rig_expect(r, FIRST, 1, "fx_middle", "MIDDLE", "MIDDLE_CALL");
	rig_expect(r, FIRST, 2, "fx_first", "FIRST", "FIRST_CALL");
	rig_expect(r, SECOND, 0, "fx_inner", "INNER", "INNER_CALL");
	rig_expect(r, SECOND, 1, "fx_second", "SECOND", "SECOND_CALL");
	rig_expect(r, STATIC, 0, "fx_static", "STATIC", "STATIC_CALL");
	assert_int_equal(r->model->locations[STATIC].nlines, 1);
	assert_null(r->model->locations[FIRST].why);
}

static void check_flags(const char *flags)
{
	struct sym_rig r;

	open_or_skip(&r, CODE, flags);
	symbolise_or_skip(&r, SLOTS, NULL);
	expect_code(&r);
	rig_close(&r);
}

static void names_functions_lines_and_inlined_frames(void **state)
{
	struct sym_rig r;
	const struct mew_location *first, *second;

	(void)state;
	open_or_skip(&r, CODE, "-g -O2");
	symbolise_or_skip(&r, SLOTS, NULL);
	expect_code(&r);
	first = &r.model->locations[FIRST];
	second = &r.model->locations[SECOND];
	assert_int_equal(r.model->lines[first->first_line].function, r.model->lines[second->first_line].function);
	rig_close(&r);
}

static void reads_every_flavour_of_debug_information(void **state)
{
	(void)state;
	check_flags("-gdwarf-4 -O2");
	check_flags("-g -gz -O1");
	check_flags("-g -gsplit-dwarf -O2");
	check_flags("-g -O0");
}

static void names_of_cxx_are_readable(void **state)
{
	struct sym_rig r;

	(void)state;
	open_or_skip(&r, "fx_sym_cxx.cc", "-g -O2");
	symbolise_or_skip(&r, 4, NULL);
#if defined HAVE_LIBIBERTY || defined HAVE_CXA_DEMANGLE
	rig_expect(&r, 0, 0, "int fx::twice<int>(int)", "TEMPLATE", "TEMPLATE_CALL");
	rig_expect(&r, 1, 0, "fx::counter::add(int)", "METHOD", "METHOD_CALL");
	rig_expect(&r, 2, 0, "(anonymous namespace)::hidden(int)", "HIDDEN", "HIDDEN_CALL");
	rig_expect(&r, 3, 0, "fx::step(int)", "STEP", "STEP_CALL");
	rig_expect(&r, 3, 1, "(anonymous namespace)::around(int)::local::act(int)", "ACT", "ACT_CALL");
#endif
	rig_close(&r);
}

/* --- separate debug files ---------------------------------------------------------------------------------------- */

static void split_or_skip(struct sym_rig *r, const char *place)
{
	if (rig_run(r, "mkdir -p .debug && objcopy --only-keep-debug fx.so %s && objcopy --strip-all fx.so && "
		       "objcopy --add-gnu-debuglink=%s fx.so", place, place))
		return;
	print_message("skipped: objcopy does not work here\n");
	rig_close(r);
	skip();
}

static void uses_the_debug_file_of_a_stripped_library(void **state)
{
	static const char *const places[] = { "fx.so.debug", ".debug/fx.so.debug" };

	(void)state;
	for (size_t i = 0; i < MEW_COUNTOF(places); i++) {
		struct sym_rig r;

		open_or_skip(&r, CODE, "-g -O2");
		split_or_skip(&r, places[i]);
		symbolise_or_skip(&r, SLOTS, NULL);
		expect_code(&r);
		rig_close(&r);
	}
}

static void refuses_the_debug_file_of_another_build(void **state)
{
	struct sym_rig r;
	char name[64];

	(void)state;
	open_or_skip(&r, CODE, "-g -O2");
	split_or_skip(&r, "fx.so.debug");
	assert_true(rig_run(&r, "${CC:-cc} -g -O0 -fPIC -shared -Wl,--build-id -o other.so %s && "
				"objcopy --only-keep-debug other.so fx.so.debug", r.source));
	symbolise_or_skip(&r, SLOTS, NULL);
	assert_string_equal(mew_location_name(r.model, SECOND, name, sizeof name), "fx_second");
	assert_int_equal(r.model->lines[r.model->locations[SECOND].first_line].line, 0);
	rig_contains(r.model->locations[SECOND].why, "belongs to another build");
	assert_int_equal(r.model->locations[STATIC].nlines, 0);
	rig_close(&r);
}

static void debug_file_without_build_id_is_checked_by_its_checksum(void **state)
{
	struct sym_rig r;

	(void)state;
	open_or_skip(&r, CODE, "-g -O2 -Wl,--build-id=none");
	assert_string_equal(r.build_id, "");
	split_or_skip(&r, "fx.so.debug");
	symbolise_or_skip(&r, SLOTS, "");
	expect_code(&r);
	assert_true(rig_run(&r, "printf x >>fx.so.debug"));
	symbolise_or_skip(&r, SLOTS, "");
	rig_contains(r.model->locations[STATIC].why, "belongs to another build");
	rig_close(&r);
}

/* The C library's debug file, by build id alone, where the distribution's package is installed. */
static void finds_debug_files_by_build_id(void **state)
{
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD); /* a sanitizer has a qsort of its own */
	void *address = libc == NULL ? NULL : dlsym(libc, "qsort");
	struct mew_model *m = mew_model_new();
	struct mew_error error;
	char id[80], path[128];
	Dl_info info;
	int status;

	(void)state;
	assert_int_not_equal(dladdr(address, &info), 0);
	rig_build_id(info.dli_fbase, id);
	(void)snprintf(path, sizeof path, "/usr/lib/debug/.build-id/%.2s/%s.debug", id, id[0] == '\0' ? id : id + 2);
	(void)mew_model_location(m, mew_model_module(m, info.dli_fname, id, 1, false),
				 (uintptr_t)address - (uintptr_t)info.dli_fbase);
	status = access(path, R_OK) == 0 ? mew_symbolise(m, NULL, &error) : MEW_E_UNSUPPORTED;
	if (status == MEW_E_UNSUPPORTED) {
		print_message("skipped: no libmew_symbols.so, or no %s (libc6-dbg)\n", path);
		mew_model_free(m);
		skip();
	}
	assert_int_equal(m->locations[0].nlines, 1);
	assert_string_equal(m->functions[0].name, "qsort");
	rig_contains(m->functions[0].file, "sort");
	assert_int_not_equal(m->functions[0].line, 0);
	mew_model_free(m);
	assert_int_equal(dlclose(libc), 0);
}

/* --- what has no name says why ----------------------------------------------------------------------------------- */

static void stripped_code_is_named_by_module_and_offset(void **state)
{
	struct sym_rig r;
	char name[64], wanted[64];
	uint64_t start;

	(void)state;
	open_or_skip(&r, CODE, "-g -O2");
	assert_true(rig_run(&r, "strip fx.so"));
	symbolise_or_skip(&r, SLOTS, NULL);
	/* the unwind table still knows where the function begins, so that all its places share a name */
	start = r.model->locations[STATIC].start;
	assert_true(start > 0 && start <= r.offsets[STATIC] && r.offsets[STATIC] - start < 256);
	(void)snprintf(wanted, sizeof wanted, "fx.so+0x%llx", (unsigned long long)start);
	assert_string_equal(mew_location_name(r.model, STATIC, name, sizeof name), wanted);
	assert_int_equal(r.model->locations[STATIC].nlines, 0);
	rig_contains(r.model->locations[STATIC].why, "stripped");
	assert_string_equal(mew_location_name(r.model, SECOND, name, sizeof name), "fx_second");
	rig_close(&r);
}

static void a_file_that_changed_or_went_is_not_used(void **state)
{
	struct sym_rig r;

	(void)state;
	open_or_skip(&r, CODE, "-g -O2");
	symbolise_or_skip(&r, SLOTS, "00112233445566778899aabbccddeeff00112233");
	for (size_t i = 0; i < SLOTS; i++) {
		assert_int_equal(r.model->locations[i].nlines, 0);
		rig_contains(r.model->locations[i].why, "no longer the file that ran");
	}
	assert_int_equal(unlink(r.library), 0);
	symbolise_or_skip(&r, SLOTS, NULL);
	rig_contains(r.model->locations[FIRST].why, "cannot be read any more");
	rig_close(&r);
}

static void an_address_in_no_module_says_so(void **state)
{
	struct mew_error error;
	struct mew_model *m = mew_model_new();
	uint32_t location = mew_model_location(m, MEW_NO_MODULE, 0x1234);
	char name[32];

	(void)state;
	(void)mew_symbolise(m, NULL, &error);
	rig_contains(m->locations[location].why, "in no loaded file");
	assert_string_equal(mew_location_name(m, location, name, sizeof name), "0x1234");
	mew_model_free(m);
}

static void a_missing_symboliser_is_explained(void **state)
{
	const char *had = getenv("MEW_SYMBOLS");
	char *saved = had == NULL ? NULL : strdup(had);
	struct mew_error error;
	struct mew_model *m = mew_model_new();
	uint32_t location = mew_model_location(m, mew_model_module(m, "/bin/sh", "", 1, false), 4096);

	(void)state;
	assert_int_equal(setenv("MEW_SYMBOLS", "/nowhere/libmew_symbols.so", 1), 0);
	assert_int_equal(mew_symbolise(m, NULL, &error), MEW_E_UNSUPPORTED);
	rig_contains(error.text, "/nowhere/libmew_symbols.so");
	rig_contains(m->locations[location].why, "/nowhere/libmew_symbols.so");
	assert_int_equal(setenv("MEW_SYMBOLS", "/proc/self/exe", 1), 0);
	assert_int_equal(mew_symbolise(m, NULL, &error), MEW_E_UNSUPPORTED);
	rig_contains(error.text, "cannot be loaded");
	if (saved != NULL)
		assert_int_equal(setenv("MEW_SYMBOLS", saved, 1), 0);
	else
		assert_int_equal(unsetenv("MEW_SYMBOLS"), 0);
	free(saved);
	mew_model_free(m);
}

static void the_vdso_is_read_from_this_process(void **state)
{
	struct mew_error error;
	struct mew_model *m = mew_model_new();
	uint32_t module = mew_model_module(m, "[vdso]", "", 8192, false);
	bool is_named = false;
	int status;

	(void)state;
	for (uint64_t offset = 0; offset < 8192; offset += 16)
		(void)mew_model_location(m, module, offset);
	status = getauxval(AT_SYSINFO_EHDR) == 0 ? MEW_E_UNSUPPORTED : mew_symbolise(m, NULL, &error);
	for (size_t i = 0; i < m->nfunctions; i++)
		is_named |= strstr(m->functions[i].name, "clock_gettime") != NULL;
	mew_model_free(m);
	if (status == MEW_E_UNSUPPORTED) {
		print_message("skipped: no vDSO, or no libmew_symbols.so\n");
		skip();
	}
	assert_int_equal(status, MEW_OK);
	assert_true(is_named);
}

/* --- damage ------------------------------------------------------------------------------------------------------ */

struct image {
	unsigned char *bytes;
	size_t n;
};

static struct image read_image(const char *path)
{
	struct image image = { NULL, 0 };
	FILE *f = fopen(path, "rb");

	assert_non_null(f);
	image.bytes = malloc(1 << 20);
	assert_non_null(image.bytes);
	image.n = fread(image.bytes, 1, 1 << 20, f);
	assert_true(image.n > sizeof(ElfW(Ehdr)) && image.n < 1 << 20);
	(void)fclose(f);
	return image;
}

static void write_image(const char *path, const struct image *image)
{
	FILE *f = fopen(path, "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(image->bytes, 1, image->n, f), image->n);
	assert_int_equal(fclose(f), 0);
}

/* Overwrite bytes of the section of this name: all from `from` on with 0xff, or `n` of them at random places. */
static void damage(struct image *image, const char *section, size_t from, unsigned n)
{
	ElfW(Ehdr) head;
	ElfW(Shdr) names, s;

	memcpy(&head, image->bytes, sizeof head);
	memcpy(&names, image->bytes + head.e_shoff + head.e_shstrndx * sizeof names, sizeof names);
	for (size_t i = 0; i < head.e_shnum; i++) {
		memcpy(&s, image->bytes + head.e_shoff + i * sizeof s, sizeof s);
		if (strcmp((char *)image->bytes + names.sh_offset + s.sh_name, section) != 0)
			continue;
		for (unsigned j = 0; j < n; j++)
			image->bytes[s.sh_offset + (size_t)rand() % s.sh_size] = (unsigned char)rand();
		for (size_t j = from; n == 0 && j < s.sh_size; j++)
			image->bytes[s.sh_offset + j] = 0xff;
		return;
	}
	fail_msg("no section %s", section);
}

static void damaged_debug_information_is_named_and_the_symbol_still_found(void **state)
{
	static const struct {
		const char *section;
		size_t from;
	} cases[] = { { ".debug_info", 200 }, { ".debug_abbrev", 0 }, { ".debug_line", 4 }, { ".debug_info", 0 } };

	(void)state;
	for (size_t i = 0; i < MEW_COUNTOF(cases); i++) {
		struct sym_rig r;
		struct image image;
		char name[64];

		open_or_skip(&r, CODE, "-g -O2");
		image = read_image(r.library);
		damage(&image, cases[i].section, cases[i].from, 0);
		write_image(r.library, &image);
		free(image.bytes);
		symbolise_or_skip(&r, SLOTS, NULL);
		assert_string_equal(mew_location_name(r.model, STATIC, name, sizeof name), "fx_static");
		rig_contains(r.model->locations[STATIC].why, "debug information of fx.so is damaged");
		rig_close(&r);
	}
}

static void random_damage_never_crashes(void **state)
{
	static const char *const sections[] = { ".debug_info", ".debug_abbrev",   ".debug_line", ".debug_str",
						".symtab",     ".debug_line_str", ".strtab" };
	struct sym_rig r;
	struct image intact, image;

	(void)state;
	open_or_skip(&r, CODE, "-g -gdwarf-5 -O2");
	intact = read_image(r.library);
	image = (struct image){ malloc(intact.n), intact.n };
	assert_non_null(image.bytes);
	srand(1);
	for (unsigned i = 0; i < 70; i++) {
		memcpy(image.bytes, intact.bytes, intact.n);
		damage(&image, sections[i % MEW_COUNTOF(sections)], 0, 1 + i % 9);
		write_image(r.library, &image);
		symbolise_or_skip(&r, SLOTS, "");
		for (size_t j = 0; j < SLOTS; j++)
			assert_true(r.model->locations[j].nlines > 0 || r.model->locations[j].why != NULL);
	}
	free(intact.bytes);
	free(image.bytes);
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_functions_lines_and_inlined_frames),
		cmocka_unit_test(reads_every_flavour_of_debug_information),
		cmocka_unit_test(names_of_cxx_are_readable),
		cmocka_unit_test(uses_the_debug_file_of_a_stripped_library),
		cmocka_unit_test(refuses_the_debug_file_of_another_build),
		cmocka_unit_test(debug_file_without_build_id_is_checked_by_its_checksum),
		cmocka_unit_test(finds_debug_files_by_build_id),
		cmocka_unit_test(stripped_code_is_named_by_module_and_offset),
		cmocka_unit_test(a_file_that_changed_or_went_is_not_used),
		cmocka_unit_test(an_address_in_no_module_says_so),
		cmocka_unit_test(a_missing_symboliser_is_explained),
		cmocka_unit_test(the_vdso_is_read_from_this_process),
		cmocka_unit_test(damaged_debug_information_is_named_and_the_symbol_still_found),
		cmocka_unit_test(random_damage_never_crashes),
	};

	return cmocka_run_group_tests_name("symbolise", tests, NULL, NULL);
}
