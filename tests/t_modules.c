/*
 * t_modules.c - what a snapshot knows of the loaded files, and that it follows dlopen and dlclose.
 * Test program.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base.h"
#include "modules.h"

/* A library of the system that is not loaded yet; NULL when all of these are. */
static const char *fresh_library(void)
{
	static const char *const names[] = { "libresolv.so.2", "libm.so.6", "libanl.so.1", "libnsl.so.1" };

	for (size_t i = 0; i < MEW_COUNTOF(names); i++) {
		void *loaded = dlopen(names[i], RTLD_LAZY | RTLD_NOLOAD), *handle;

		if (loaded != NULL) {
			(void)dlclose(loaded);
			continue;
		}
		handle = dlopen(names[i], RTLD_LAZY);
		if (handle != NULL && dlclose(handle) == 0)
			return names[i];
	}
	return NULL;
}

static const struct mew_module_map *module_of(const void *code)
{
	return mew_modules_find(mew_modules_current(), (uintptr_t)code);
}

/* The module whose path has this part; all zero for none. */
static struct mew_module_map named(const struct mew_modules *m, const char *part)
{
	for (size_t i = 0; i < m->n; i++) {
		if (strstr(m->map[i].path, part) != NULL)
			return m->map[i];
	}
	return (struct mew_module_map){ .path = "" };
}

static void nothing_is_known_before_the_first_snapshot(void **unused)
{
	(void)unused;
	assert_null(mew_modules_current());
	assert_null(mew_modules_find(NULL, 4096));
	assert_int_equal(mew_modules_renew(), 0);
	assert_non_null(mew_modules_current());
}

static void the_program_has_its_absolute_path(void **unused)
{
	const struct mew_module_map *map;
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);

	(void)unused;
	assert_true(n > 0);
	path[n] = '\0';
	assert_int_equal(mew_modules_renew(), 0);
	map = module_of((void *)(uintptr_t)the_program_has_its_absolute_path);
	assert_non_null(map);
	assert_string_equal(map->path, path);
	assert_false(map->gone);
}

static void libraries_have_path_bias_and_range(void **unused)
{
	const struct mew_module_map *map;
	void *in_libc = dlsym(RTLD_DEFAULT, "getppid");
	Dl_info info;

	(void)unused;
	if (in_libc == NULL || dladdr(in_libc, &info) == 0 ||
	    dladdr((void *)(uintptr_t)libraries_have_path_bias_and_range, &info) == 0) {
		printf("dladdr knows nothing: a static program\n");
		skip();
	}
	assert_int_not_equal(dladdr(in_libc, &info), 0);
	assert_int_equal(mew_modules_renew(), 0);
	map = module_of(in_libc);
	assert_non_null(map);
	assert_int_equal(map->path[0], '/');
	assert_string_equal(map->path, info.dli_fname);
	assert_int_equal(map->bias, (uintptr_t)info.dli_fbase); /* libraries are linked at 0 */
	assert_ptr_equal(mew_modules_find(mew_modules_current(), map->lo), map);
	assert_ptr_equal(mew_modules_find(mew_modules_current(), map->hi - 1), map);
	assert_ptr_not_equal(mew_modules_find(mew_modules_current(), map->hi), map);
}

static void maps_are_sorted_and_apart(void **unused)
{
	const struct mew_modules *m;

	(void)unused;
	assert_int_equal(mew_modules_renew(), 0);
	m = mew_modules_current();
	assert_true(m->n >= 1);
	for (size_t i = 0; i < m->n; i++) {
		assert_true(m->map[i].lo < m->map[i].hi);
		assert_true(i == 0 || m->map[i - 1].hi <= m->map[i].lo);
	}
	assert_null(mew_modules_find(m, 0));
	assert_null(mew_modules_find(m, UINTPTR_MAX));
}

/* The build id of this program as the file on the disk has it; "" for none. */
static void read_build_id(char *text)
{
	ElfW(Ehdr) header;
	ElfW(Phdr) p;
	unsigned char note[256];
	int fd = open("/proc/self/exe", O_RDONLY);

	*text = '\0';
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &header, sizeof header, 0), sizeof header);
	for (unsigned i = 0; i < header.e_phnum; i++) {
		off_t at = (off_t)(header.e_phoff + i * sizeof p);

		assert_int_equal(pread(fd, &p, sizeof p, at), sizeof p);
		if (p.p_type != PT_NOTE || pread(fd, note, sizeof note, (off_t)p.p_offset) < 16 + 20)
			continue;
		if (memcmp(note + 4, "\x14\0\0\0\3\0\0\0GNU", 12) != 0) /* 20 bytes, type 3 */
			continue;
		for (size_t k = 0; k < 20; k++)
			(void)snprintf(text + 2 * k, 3, "%02x", note[16 + k]);
	}
	(void)close(fd);
}

static void build_ids_are_those_of_the_file(void **unused)
{
	char text[64];
	const struct mew_module_map *map;

	(void)unused;
	read_build_id(text);
	assert_int_equal(mew_modules_renew(), 0);
	map = module_of((void *)(uintptr_t)build_ids_are_those_of_the_file);
	assert_non_null(map);
	assert_string_equal(map->build_id, text);
}

static void the_vdso_is_a_module(void **unused)
{
	uintptr_t vdso = getauxval(AT_SYSINFO_EHDR);
	const struct mew_module_map *map;

	(void)unused;
	if (vdso == 0) {
		printf("the kernel gives this process no vDSO\n");
		skip();
	}
	assert_int_equal(mew_modules_renew(), 0);
	map = module_of((void *)vdso);
	assert_non_null(map);
	assert_string_equal(map->path, "[vdso]");
	assert_int_equal(named(mew_modules_current(), "vdso").lo, map->lo);
}

static void nothing_new_means_the_same_snapshot(void **unused)
{
	const struct mew_modules *before;

	(void)unused;
	assert_int_equal(mew_modules_renew(), 0);
	before = mew_modules_current();
	assert_int_equal(mew_modules_renew(), 0);
	assert_ptr_equal(mew_modules_current(), before);
}

static void *open_library(const char *name)
{
	void *handle = dlopen(name, RTLD_NOW);

	assert_non_null(handle);
	assert_int_equal(mew_modules_renew(), 0);
	return handle;
}

static void a_closed_library_keeps_its_name_until_it_returns(void **unused)
{
	const char *name = fresh_library();
	const struct mew_modules *first, *open, *closed, *again;
	struct mew_module_map was;
	void *handle;

	(void)unused;
	if (name == NULL) {
		printf("no library that is not loaded yet\n");
		skip();
		return; /* for readers that do not know that skip() does */
	}
	assert_int_equal(mew_modules_renew(), 0);
	first = mew_modules_current();
	handle = open_library(name);
	open = mew_modules_current();
	assert_true(open->generation > first->generation);
	was = named(open, name);
	assert_int_equal(was.path[0], '/');
	assert_false(was.gone);

	assert_int_equal(dlclose(handle), 0);
	assert_int_equal(mew_modules_renew(), 0);
	closed = mew_modules_current();
	assert_true(closed->generation > open->generation);
	assert_non_null(mew_modules_find(closed, was.lo));
	assert_true(mew_modules_find(closed, was.lo)->gone);
	assert_string_equal(mew_modules_find(closed, was.lo)->path, was.path);
	assert_null(mew_modules_find(closed, was.lo)->table); /* its code is not there any more */
	assert_false(mew_modules_find(open, was.lo)->gone);   /* an old snapshot does not change */

	handle = open_library(name);
	again = mew_modules_current();
	assert_int_not_equal(named(again, name).lo, 0);
	if (mew_modules_find(again, was.lo) != NULL && mew_modules_find(again, was.lo)->bias == was.bias) {
		assert_false(mew_modules_find(again, was.lo)->gone);
		assert_ptr_equal(mew_modules_find(again, was.lo)->table, was.table); /* not compiled twice */
	}
	assert_int_equal(dlclose(handle), 0);
}

static void copy_file(const char *from, const char *to)
{
	FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
	char buffer[4096];
	size_t n;

	assert_non_null(in);
	assert_non_null(out);
	while ((n = fread(buffer, 1, sizeof buffer, in)) > 0)
		assert_int_equal(fwrite(buffer, 1, n, out), n);
	assert_int_equal(fclose(in), 0);
	assert_int_equal(fclose(out), 0);
}

static void a_library_opened_by_a_relative_name_has_an_absolute_path(void **unused)
{
	char directory[] = "/tmp/mew-modules-XXXXXX", path[64], here[PATH_MAX];
	const char *name = fresh_library();
	void *handle;

	(void)unused;
	if (name == NULL) {
		printf("no library that is not loaded yet\n");
		skip();
		return; /* for readers that do not know that skip() does */
	}
	handle = open_library(name);
	assert_non_null(mkdtemp(directory));
	(void)snprintf(path, sizeof path, "%s/plugin.so", directory);
	copy_file(named(mew_modules_current(), name).path, path);
	assert_int_equal(dlclose(handle), 0);

	assert_non_null(getcwd(here, sizeof here));
	assert_int_equal(chdir(directory), 0);
	handle = dlopen("./plugin.so", RTLD_NOW);
	assert_int_equal(chdir(here), 0); /* the name alone would mislead now */
	assert_non_null(handle);
	assert_int_equal(mew_modules_renew(), 0);
	assert_string_equal(named(mew_modules_current(), "plugin.so").path, path);
	assert_int_equal(dlclose(handle), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(directory), 0);
}

static atomic_bool reader_stops;

static void *read_snapshots(void *arg)
{
	uint64_t generation = 0;

	(void)arg;
	while (!atomic_load(&reader_stops)) {
		const struct mew_modules *m = mew_modules_current();

		if (m->generation < generation)
			return (void *)(uintptr_t)1;
		generation = m->generation;
		for (size_t i = 0; i < m->n; i++) {
			if (mew_modules_find(m, m->map[i].lo) != &m->map[i] || m->map[i].path[0] == '\0')
				return (void *)(uintptr_t)2;
		}
	}
	return NULL;
}

static void readers_see_whole_snapshots_while_libraries_come_and_go(void **unused)
{
	const char *name = fresh_library();
	pthread_t reader;
	void *failed;

	(void)unused;
	if (name == NULL) {
		printf("no library that is not loaded yet\n");
		skip();
		return; /* for readers that do not know that skip() does */
	}
	assert_int_equal(pthread_create(&reader, NULL, read_snapshots, NULL), 0);
	for (int i = 0; i < 50; i++) {
		void *handle = dlopen(name, RTLD_LAZY);

		assert_non_null(handle);
		assert_int_equal(mew_modules_renew(), 0);
		assert_int_equal(dlclose(handle), 0);
		assert_int_equal(mew_modules_renew(), 0);
	}
	atomic_store(&reader_stops, true);
	assert_int_equal(pthread_join(reader, &failed), 0);
	assert_null(failed);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_known_before_the_first_snapshot),
		cmocka_unit_test(the_program_has_its_absolute_path),
		cmocka_unit_test(libraries_have_path_bias_and_range),
		cmocka_unit_test(maps_are_sorted_and_apart),
		cmocka_unit_test(build_ids_are_those_of_the_file),
		cmocka_unit_test(the_vdso_is_a_module),
		cmocka_unit_test(nothing_new_means_the_same_snapshot),
		cmocka_unit_test(a_closed_library_keeps_its_name_until_it_returns),
		cmocka_unit_test(a_library_opened_by_a_relative_name_has_an_absolute_path),
		cmocka_unit_test(readers_see_whole_snapshots_while_libraries_come_and_go),
	};

	return cmocka_run_group_tests_name("modules", tests, NULL, NULL);
}
