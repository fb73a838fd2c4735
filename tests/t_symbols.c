/*
 * t_symbols.c - where names come from beside .debug_info: stubs, .gnu_debugdata, Rust's names, split files, line tables.
 * Test program. Needs libmew_symbols.so (MEW_SYMBOLS names it in a build tree), compilers and binutils.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fx_sym_rig.h"
#include "symbolise.h"

#define CODE "fx_sym_code.c"
enum { FIRST, SECOND, STATIC, SLOTS }; /* as in fx_sym_code.c */

static void open_or_skip(struct sym_rig *r, const char *fixture, const char *flags)
{
	if (!rig_open(r, fixture, flags))
		skip();
}

static void run_or_skip(struct sym_rig *r, const char *command)
{
	if (rig_run(r, "( %s ) >run.log 2>&1", command))
		return;
	print_message("skipped: this does not work here: %s\n", command);
	rig_close(r);
	skip();
}

static void symbolise_or_skip(struct sym_rig *r, size_t n)
{
	rig_symbolise(r, n, NULL);
	if (r->status == MEW_E_UNSUPPORTED) {
		print_message("skipped: %s\n", r->error.text);
		rig_close(r);
		skip();
	}
	assert_int_equal(r->status, MEW_OK);
}

static void expect_name(const struct sym_rig *r, uint32_t location, const char *wanted)
{
	char name[256];

	assert_string_equal(mew_location_name(r->model, location, name, sizeof name), wanted);
}

/* Address and size of a section of the fixture; 0 where it has none. */
static uint64_t find_section(const struct sym_rig *r, const char *name, uint64_t *bytes)
{
	char command[256], line[64] = "";
	FILE *p;

	(void)snprintf(command, sizeof command,
		       "readelf -SW %s | sed 's/\\[ *[0-9]*\\]//' | awk '$1 == \"%s\" { print $3, $5 }'", r->library, name);
	p = popen(command, "r");
	assert_non_null(p);
	(void)fgets(line, sizeof line, p);
	(void)pclose(p);
	*bytes = strchr(line, ' ') == NULL ? 0 : strtoull(strchr(line, ' '), NULL, 16);
	return *bytes == 0 ? 0 : strtoull(line, NULL, 16);
}

static void stubs_of_the_linkage_table_are_named_after_their_function(void **state)
{
#ifdef __x86_64__
	static const char *const flags[] = { "-O2", "-O2 -fcf-protection=none", "-O2 -fcf-protection=full -Wl,-z,now" };

	(void)state;
	for (size_t i = 0; i < MEW_COUNTOF(flags); i++) {
		struct sym_rig r;
		uint64_t bytes, at;
		char name[64];
		bool is_found = false;

		open_or_skip(&r, CODE, flags[i]);
		at = find_section(&r, ".plt.sec", &bytes);
		if (at == 0)
			at = find_section(&r, ".plt", &bytes);
		assert_int_not_equal(at, 0);
		assert_in_range(bytes, 16, 16 * MEW_COUNTOF(r.offsets));
		for (size_t k = 0; k < bytes / 16; k++)
			r.offsets[k] = at + 16 * k + 5;
		symbolise_or_skip(&r, (size_t)bytes / 16);
		for (size_t k = 0; k < bytes / 16; k++)
			is_found |= strcmp(mew_location_name(r.model, (uint32_t)k, name, sizeof name), "fx_mark@plt") == 0;
		assert_true(is_found);
		rig_close(&r);
	}
#else
	(void)state;
	print_message("skipped: stubs are named on x86-64 only\n");
	skip();
#endif
}

static void names_of_rust_are_readable_and_have_no_hash(void **state)
{
	struct sym_rig r;

	(void)state;
	open_or_skip(&r, "fx_sym_rust.c", "-O1");
	symbolise_or_skip(&r, 3);
#ifdef HAVE_LIBIBERTY
	expect_name(&r, 0, "core::fmt::write");
	expect_name(&r, 1, "<alloc::vec::Vec<T> as Drop>::drop");
	expect_name(&r, 2, "<mycrate::Thing>::act");
#endif
	rig_close(&r);
}

static void small_symbol_table_of_a_stripped_library_is_read(void **state)
{
	struct sym_rig r;

	(void)state;
	open_or_skip(&r, CODE, "-O2");
	run_or_skip(&r, "objcopy -S --keep-symbol=fx_static fx.so mini && xz mini && strip fx.so && "
			"objcopy --add-section .gnu_debugdata=mini.xz fx.so");
	symbolise_or_skip(&r, SLOTS);
#ifdef HAVE_LZMA
	expect_name(&r, STATIC, "fx_static");
	assert_null(r.model->locations[STATIC].why);
	assert_true(rig_run(&r, "printf rubbish >bad && objcopy --update-section .gnu_debugdata=bad fx.so"));
	symbolise_or_skip(&r, SLOTS);
	rig_contains(r.model->locations[STATIC].why, "is damaged");
#else
	rig_contains(r.model->locations[STATIC].why, "built without liblzma");
#endif
	rig_close(&r);
}

/* Both compilers, plain and split, and every version that they still write. */
static void all_versions_of_both_compilers_give_the_same_lines(void **state)
{
	static const char *const flags[] = { "-gdwarf-2", "-gdwarf-3", "-gdwarf-4", "-gdwarf-5", "-gdwarf-4 -gsplit-dwarf",
					     "-gdwarf-5 -gsplit-dwarf", "-gdwarf-5 -gz" };
	char *saved = getenv("CC") == NULL ? NULL : strdup(getenv("CC"));

	(void)state;
	for (size_t i = 0; i < 2 * MEW_COUNTOF(flags); i++) {
		const char *flag = flags[i % MEW_COUNTOF(flags)];
		char all[64];
		struct sym_rig r;

		assert_int_equal(setenv("CC", i < MEW_COUNTOF(flags) ? "gcc" : "clang", 1), 0);
		(void)snprintf(all, sizeof all, "%s -O2", flag);
		if (!rig_open(&r, CODE, all))
			continue; /* it says so */
		rig_symbolise(&r, SLOTS, NULL);
		if (r.status == MEW_OK) {
			rig_expect(&r, FIRST, 0, "fx_inner", "INNER", "INNER_CALL");
			rig_expect(&r, FIRST, 2, "fx_first", "FIRST", "FIRST_CALL");
			rig_expect(&r, STATIC, 0, "fx_static", "STATIC", "STATIC_CALL");
		}
		rig_close(&r);
	}
	assert_int_equal(saved == NULL ? unsetenv("CC") : setenv("CC", saved, 1), 0);
	free(saved);
}

static void a_split_file_that_is_missing_is_named_and_lines_stay(void **state)
{
	struct sym_rig r;

	(void)state;
	open_or_skip(&r, CODE, "-g -gsplit-dwarf -O2");
	run_or_skip(&r, "rm *.dwo");
	symbolise_or_skip(&r, SLOTS);
	expect_name(&r, STATIC, "fx_static");
	assert_int_equal(r.model->lines[r.model->locations[STATIC].first_line].line, rig_line(&r, "STATIC_CALL"));
	rig_contains(r.model->locations[STATIC].why, "1 of the compile units used is in .dwo files that were not found (");
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stubs_of_the_linkage_table_are_named_after_their_function),
		cmocka_unit_test(names_of_rust_are_readable_and_have_no_hash),
		cmocka_unit_test(small_symbol_table_of_a_stripped_library_is_read),
		cmocka_unit_test(all_versions_of_both_compilers_give_the_same_lines),
		cmocka_unit_test(a_split_file_that_is_missing_is_named_and_lines_stay),
	};

	return cmocka_run_group_tests_name("symbols", tests, NULL, NULL);
}
