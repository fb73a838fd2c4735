/*
 * t_debug_files.c - debug information as distributions and linkers leave it: shared by dwz, packed by dwp; and files that
 * are gone when names are wanted. Every file is made by the real tool.
 * Test program. Needs libmew_symbols.so (MEW_SYMBOLS names it in a build tree) and a compiler.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fx_sym_rig.h"
#include "modules.h"
#include "sink.h"
#include "symbolise.h"

#define CODE "fx_sym_code.c"
enum { FIRST, SECOND, STATIC, SLOTS }; /* as in fx_sym_code.c */

static void open_or_skip(struct sym_rig *r, const char *flags)
{
	if (!rig_open(r, CODE, flags))
		skip();
}

/* The first word is the tool that may be missing. */
static void run_or_skip(struct sym_rig *r, const char *command)
{
	if (rig_run(r, "( %s ) >run.log 2>&1", command))
		return;
	print_message("skipped: this does not work here: %s\n", command);
	(void)rig_run(r, "tail -n 2 run.log");
	rig_close(r);
	skip();
}

static void symbolise_or_skip(struct sym_rig *r)
{
	rig_symbolise(r, SLOTS, NULL);
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
	rig_expect(r, STATIC, 0, "fx_static", "STATIC", "STATIC_CALL");
	for (uint32_t i = 0; i < SLOTS; i++)
		assert_null(r->model->locations[i].why);
}

/* --- dwz ---------------------------------------------------------------------------------------------------------- */

/* Two libraries of one source, so that dwz has something to share. */
static void share_or_skip(struct sym_rig *r, const char *flags)
{
	char command[1280];

	(void)snprintf(command, sizeof command,
		       "dwz --version && ${CC:-cc} -Wl,--build-id %s -DFX_OTHER=1 -fPIC -shared -o other.so %s && "
		       "for f in fx other; do objcopy --only-keep-debug $f.so $f.so.debug && strip $f.so && "
		       "objcopy --add-gnu-debuglink=$f.so.debug $f.so; done && "
		       "dwz -m shared.dwz -M shared.dwz fx.so.debug other.so.debug && test -s shared.dwz",
		       flags, r->source);
	run_or_skip(r, command);
}

static void names_that_dwz_moved_are_read_from_the_shared_file(void **state)
{
	static const char *const flags[] = { "-O2 -gdwarf-4", "-O2 -gdwarf-5" };

	(void)state;
	for (size_t i = 0; i < MEW_COUNTOF(flags); i++) {
		struct sym_rig r;

		open_or_skip(&r, flags[i]);
		share_or_skip(&r, flags[i]);
		symbolise_or_skip(&r);
		expect_code(&r);
		assert_true(rig_run(&r, "mv shared.dwz away"));
		symbolise_or_skip(&r);
		rig_contains(r.model->locations[STATIC].why, "shared.dwz, which fx.so.debug shares names with (dwz), was not found");
		assert_true(rig_run(&r, "cp other.so shared.dwz"));
		symbolise_or_skip(&r);
		rig_contains(r.model->locations[STATIC].why, "shared.dwz is another build than the one");
		/* the symbol table is the debug file's own */
		assert_int_equal(r.model->locations[STATIC].nlines, 1);
		assert_int_equal(r.model->lines[r.model->locations[STATIC].first_line].line, 0);
		rig_close(&r);
	}
}

static void a_file_that_dwz_shrank_alone_is_read(void **state)
{
	struct sym_rig r;

	(void)state;
	open_or_skip(&r, "-O2 -g");
	run_or_skip(&r, "dwz --version && dwz -o smaller.so fx.so && mv smaller.so fx.so");
	symbolise_or_skip(&r);
	expect_code(&r);
	rig_close(&r);
}

/* --- packages of split files -------------------------------------------------------------------------------------- */

/* elfutils reads them from 0.191 on; before that, what is missing is counted and named, and lines stay. */
static void packages_of_split_files_are_read_or_named(void **state)
{
	static const struct {
		const char *compiler, *flags, *command;
	} ways[] = { { "gcc", "-O2 -gdwarf-4 -gsplit-dwarf", "timeout 20 dwp -e fx.so -o fx.so.dwp" },
		     { "gcc", "-O2 -gdwarf-4 -gsplit-dwarf", "timeout 20 llvm-dwp -e fx.so -o fx.so.dwp" },
		     { "clang", "-O2 -gdwarf-5 -gsplit-dwarf", "timeout 20 llvm-dwp -e fx.so -o fx.so.dwp" } };
	char *saved = getenv("CC") == NULL ? NULL : strdup(getenv("CC"));
	size_t tried = 0;

	(void)state;
	for (size_t i = 0; i < MEW_COUNTOF(ways); i++) {
		struct sym_rig r;
		const struct mew_location *l;

		assert_int_equal(setenv("CC", ways[i].compiler, 1), 0);
		if (!rig_open(&r, CODE, ways[i].flags))
			continue; /* it says so */
		if (!rig_run(&r, "%s >run.log 2>&1 && rm *.dwo", ways[i].command)) {
			print_message("not tried: %s of %s\n", ways[i].command, ways[i].flags);
			rig_close(&r);
			continue;
		}
		tried++;
		symbolise_or_skip(&r);
		l = &r.model->locations[STATIC];
		if (l->why == NULL) {
			expect_code(&r);
		} else {
			rig_contains(l->why, "1 of the compile units used is in fx.so.dwp");
			assert_int_equal(r.model->lines[l->first_line].line, rig_line(&r, "STATIC_CALL"));
		}
		rig_close(&r);
	}
	assert_int_equal(saved == NULL ? unsetenv("CC") : setenv("CC", saved, 1), 0);
	free(saved);
	if (tried == 0) {
		print_message("skipped: neither dwp (binutils) nor llvm-dwp (llvm) packs these files here\n");
		skip();
	}
}

/* --- files that are gone ------------------------------------------------------------------------------------------ */

/* A model with one place inside fx_second of the library at `path`, which is closed before that is told. */
static struct mew_model *sample_and_close(const char *path)
{
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL), *symbol;
	struct mew_model *m = mew_model_new();
	struct mew_sink sink = { .model = m };
	uintptr_t pc;

	if (handle == NULL)
		fail_msg("%s", dlerror());
	symbol = dlsym(handle, "fx_second");
	assert_non_null(symbol);
	assert_non_null(m);
	pc = (uintptr_t)symbol + 1;
	assert_int_equal(mew_modules_renew(), 0);
	assert_int_equal(dlclose(handle), 0);
	assert_int_equal(mew_modules_renew(), 0);
	assert_int_not_equal(mew_sink_stack(&sink, mew_modules_current(), &pc, 1), MEW_NO_STACK);
	assert_int_equal(m->nlocations, 1);
	assert_int_equal(m->nmodules, 1);
	assert_true(m->modules[0].gone);
	return m;
}

static void name_or_skip(struct sym_rig *r, struct mew_model *m)
{
	struct mew_error error;
	int status = mew_symbolise(m, NULL, &error);

	if (status == MEW_E_UNSUPPORTED) {
		print_message("skipped: %s\n", error.text);
		mew_model_free(m);
		rig_close(r);
		skip();
	}
	assert_int_equal(status, MEW_OK);
}

static void expect_model_name(const struct mew_model *m, const char *wanted)
{
	char name[256];

	assert_string_equal(mew_location_name(m, 0, name, sizeof name), wanted);
}

static void a_library_that_was_closed_keeps_its_names(void **state)
{
	struct sym_rig r;
	struct mew_model *m;

	(void)state;
	open_or_skip(&r, "-O2 -g");
	m = sample_and_close(r.library);
	name_or_skip(&r, m);
	expect_model_name(m, "fx_second");
	assert_null(m->locations[0].why);
	mew_model_free(m);
	rig_close(&r);
}

static void a_library_in_memory_is_known_by_the_build_id_of_its_mapping(void **state)
{
	struct sym_rig r;
	struct mew_model *m;
	char path[64];
	struct stat st;
	int from, to;

	(void)state;
	open_or_skip(&r, "-O2 -g");
	from = open(r.library, O_RDONLY | O_CLOEXEC);
	to = memfd_create("fx", MFD_CLOEXEC);
	assert_true(from >= 0 && to >= 0 && fstat(from, &st) == 0);
	assert_int_equal(sendfile(to, from, NULL, (size_t)st.st_size), st.st_size);
	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", to);
	m = sample_and_close(path);
	/* the descriptor's number means another file to whoever reads the result */
	assert_string_equal(m->modules[0].path, "/memfd:fx");
	assert_string_equal(m->modules[0].build_id, r.build_id);
	name_or_skip(&r, m);
	rig_contains(m->locations[0].why, "/memfd:fx was a file in memory (memfd)");
	mew_model_free(m);
	(void)close(from);
	(void)close(to);
	rig_close(&r);
}

/* What this program says of itself when it runs as a file in memory: 0, or the number of what is wrong. */
static int look_at_myself(const char *build_id)
{
	struct mew_model *m = mew_model_new();
	struct mew_sink sink = { .model = m };
	uintptr_t pc = (uintptr_t)&look_at_myself + 1;
	struct mew_error error;
	int status, wrong = 0;

	if (m == NULL || mew_modules_renew() != 0 || mew_sink_stack(&sink, mew_modules_current(), &pc, 1) == MEW_NO_STACK)
		return 1;
	status = mew_symbolise(m, NULL, &error);
	if (m->nmodules != 1 || strcmp(m->modules[0].path, "/memfd:program") != 0)
		wrong = 2;
	else if (build_id[0] != '\0' && strcmp(m->modules[0].build_id, build_id) != 0)
		wrong = 3;
	else if (status == MEW_E_UNSUPPORTED)
		wrong = 77;
	else if (status != MEW_OK || m->locations[0].why == NULL ||
		 strstr(m->locations[0].why, "/memfd:program was a file in memory (memfd)") == NULL)
		wrong = 4;
	mew_model_free(m);
	return wrong;
}

/* In a forked child: become a copy of this program that lies in no file system. */
static void become_copy_in_memory(char *build_id)
{
	char name[] = "program", *const arguments[] = { name, build_id, NULL };
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), to = memfd_create("program", MFD_CLOEXEC);
	struct stat st;

	if (from >= 0 && to >= 0 && fstat(from, &st) == 0 && sendfile(to, from, NULL, (size_t)st.st_size) == st.st_size)
		(void)fexecve(to, arguments, environ);
	_exit(100);
}

static void a_program_in_memory_is_known_and_says_so(void **state)
{
	char build_id[65];
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(mew_modules_renew(), 0);
	(void)snprintf(build_id, sizeof build_id, "%s",
		       mew_modules_find(mew_modules_current(), (uintptr_t)&look_at_myself)->build_id);
	pid = fork();
	if (pid == 0)
		become_copy_in_memory(build_id);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77) {
		print_message("skipped: names are not read here\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_library_replaced_while_it_ran_is_not_named_by_the_new_one(void **state)
{
	struct sym_rig r;
	struct mew_model *m;

	(void)state;
	open_or_skip(&r, "-O2 -g");
	m = sample_and_close(r.library);
	assert_string_equal(m->modules[0].build_id, r.build_id);
	/* other code at the same addresses, under the same name */
	assert_true(rig_run(&r, "sed 's/fx_second/fx_wrong_/g' %s >other.c && ${CC:-cc} -O2 -g -Wl,--build-id -fPIC -shared "
				"-o fx.so.new other.c && mv fx.so.new fx.so", r.source));
	name_or_skip(&r, m);
	assert_int_equal(m->locations[0].nlines, 0);
	rig_contains(m->locations[0].why, "fx.so is no longer the file that ran");
	assert_int_equal(unlink(r.library), 0);
	name_or_skip(&r, m);
	rig_contains(m->locations[0].why, "cannot be read any more");
	mew_model_free(m);
	rig_close(&r);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_that_dwz_moved_are_read_from_the_shared_file),
		cmocka_unit_test(a_file_that_dwz_shrank_alone_is_read),
		cmocka_unit_test(packages_of_split_files_are_read_or_named),
		cmocka_unit_test(a_library_that_was_closed_keeps_its_names),
		cmocka_unit_test(a_library_in_memory_is_known_by_the_build_id_of_its_mapping),
		cmocka_unit_test(a_program_in_memory_is_known_and_says_so),
		cmocka_unit_test(a_library_replaced_while_it_ran_is_not_named_by_the_new_one),
	};

	if (argc > 1) /* run by one of the tests */
		return look_at_myself(argv[1]);
	return cmocka_run_group_tests_name("debug files", tests, NULL, NULL);
}
