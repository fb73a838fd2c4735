/*
 * t_writer_files.c - whole files: a report is there as a whole or not at all, whatever its directory, disk and name are.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error.h"
#include "writer.h"

#define NOBODY 65534

/* --- helpers ---------------------------------------------------------------------------------------------------- */

struct place { /* a directory of the test's own */
	char directory[64];
	char file[512];
};

static void place_init(struct place *p)
{
	strcpy(p->directory, "/tmp/t_writer.XXXXXX");
	assert_non_null(mkdtemp(p->directory));
	snprintf(p->file, sizeof p->file, "%s/report", p->directory);
}

static size_t entries_in(const char *directory)
{
	DIR *d = opendir(directory);
	size_t n = 0;

	assert_non_null(d);
	for (struct dirent *e = readdir(d); e != NULL; e = readdir(d))
		n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	closedir(d);
	return n;
}

static void place_fini(struct place *p)
{
	DIR *d = opendir(p->directory);

	assert_non_null(d);
	for (struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			assert_int_equal(unlinkat(dirfd(d), e->d_name, 0), 0);
	}
	closedir(d);
	assert_int_equal(rmdir(p->directory), 0);
}

static void put(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fputs(text, f) < 0, 0);
	assert_int_equal(fclose(f), 0);
}

static void assert_content(const char *path, const char *want)
{
	char got[256];
	FILE *f = fopen(path, "r");
	size_t n;

	assert_non_null(f);
	n = fread(got, 1, sizeof got - 1, f);
	fclose(f);
	got[n] = '\0';
	assert_string_equal(got, want);
}

static int write_new(struct mew_writer *w, void *data, struct mew_error *err)
{
	(void)data;
	(void)err;
	mew_write_text(w, "new");
	return MEW_OK;
}

static int write_much(struct mew_writer *w, void *data, struct mew_error *err)
{
	(void)data;
	(void)err;
	for (int i = 0; i < 10000; i++)
		mew_write_text(w, "0123456789");
	return MEW_OK;
}

static int write_half(struct mew_writer *w, void *data, struct mew_error *err)
{
	write_much(w, data, err);
	return mew_error_set(err, MEW_E_INVALID, "case 'a' has no stacks");
}

/* Root may write and replace anything: what must be refused, and what might hurt, runs as nobody. */
static int write_as_nobody(const char *path, mew_write_body_fn *body, struct mew_error *err)
{
	bool root = geteuid() == 0;
	int status;

	if (root)
		assert_int_equal(seteuid(NOBODY), 0);
	status = mew_write_file(path, body, NULL, err);
	if (root)
		assert_int_equal(seteuid(0), 0);
	return status;
}

/* --- whole files ------------------------------------------------------------------------------------------------ */

static void test_file_new_and_replaced(void **state)
{
	mode_t before = umask(027);
	struct mew_error err;
	struct place p;
	struct stat st;

	(void)state;
	place_init(&p);
	assert_int_equal(mew_write_file(p.file, write_new, NULL, &err), MEW_OK);
	assert_content(p.file, "new");
	assert_int_equal(stat(p.file, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_int_equal(mew_write_file(p.file, write_much, NULL, NULL), MEW_OK);
	assert_int_equal(stat(p.file, &st), 0);
	assert_int_equal(st.st_size, 100000);
	assert_int_equal(mew_write_file(p.file, write_new, NULL, &err), MEW_OK);
	assert_content(p.file, "new");
	assert_int_equal(entries_in(p.directory), 1);
	umask(before);
	place_fini(&p);
}

/* The old file is whole until the new one is, and the new one grows in the same directory. */
static int look_around(struct mew_writer *w, void *data, struct mew_error *err)
{
	struct place *p = data;

	write_much(w, NULL, err);
	assert_content(p->file, "old");
	assert_int_equal(entries_in(p->directory), 2);
	return MEW_OK;
}

static void test_file_old_until_new(void **state)
{
	struct mew_error err;
	struct place p;

	(void)state;
	place_init(&p);
	put(p.file, "old");
	assert_int_equal(mew_write_file(p.file, look_around, &p, &err), MEW_OK);
	assert_int_equal(entries_in(p.directory), 1);
	place_fini(&p);
}

static void test_file_body_fails(void **state)
{
	struct mew_error err;
	struct place p;

	(void)state;
	place_init(&p);
	put(p.file, "old");
	assert_int_equal(mew_write_file(p.file, write_half, NULL, &err), MEW_E_INVALID);
	assert_string_equal(err.text, "case 'a' has no stacks");
	assert_content(p.file, "old");
	assert_int_equal(entries_in(p.directory), 1);
	unlink(p.file);
	assert_int_equal(mew_write_file(p.file, write_half, NULL, &err), MEW_E_INVALID);
	assert_int_equal(entries_in(p.directory), 0);
	place_fini(&p);
}

static void test_file_no_directory(void **state)
{
	struct mew_error err;
	struct place p;
	char path[600];

	(void)state;
	place_init(&p);
	snprintf(path, sizeof path, "%s/none/report", p.directory);
	assert_int_equal(mew_write_file(path, write_new, NULL, &err), MEW_E_IO);
	assert_int_equal(err.sys_errno, ENOENT);
	assert_non_null(strstr(err.text, path));
	assert_int_equal(mew_write_file(p.directory, write_new, NULL, &err), MEW_E_IO);
	assert_int_equal(err.sys_errno, EISDIR);
	assert_non_null(strstr(err.text, "name a file in it"));
	assert_non_null(strstr(err.text, p.directory));
	assert_int_equal(entries_in(p.directory), 0);
	place_fini(&p);
}

static void test_file_check(void **state)
{
	struct mew_error err;
	struct place p;
	char path[600], pipe_name[600];

	(void)state;
	place_init(&p);
	assert_int_equal(mew_write_file_check("-", &err), MEW_OK);
	assert_int_equal(mew_write_file_check("/dev/null", &err), MEW_OK);
	assert_int_equal(mew_write_file_check(p.file, &err), MEW_OK);
	assert_int_equal(entries_in(p.directory), 0);
	put(p.file, "old");
	assert_int_equal(mew_write_file_check(p.file, &err), MEW_OK);
	assert_content(p.file, "old");
	assert_int_equal(entries_in(p.directory), 1);
	snprintf(path, sizeof path, "%s/none/report", p.directory);
	assert_int_equal(mew_write_file_check(path, &err), MEW_E_IO);
	assert_int_equal(err.sys_errno, ENOENT);
	assert_int_equal(mew_write_file_check(p.directory, &err), MEW_E_IO);
	snprintf(pipe_name, sizeof pipe_name, "%s/pipe", p.directory);
	assert_int_equal(mkfifo(pipe_name, 0600), 0);
	alarm(60); /* opening it would wait for a reader */
	assert_int_equal(mew_write_file_check(pipe_name, &err), MEW_OK);
	alarm(0);
	place_fini(&p);
}

static void test_file_unwritable_directory(void **state)
{
	struct mew_error err;
	struct place p;

	(void)state;
	place_init(&p);
	put(p.file, "old");
	assert_int_equal(chmod(p.directory, 0555), 0);
	assert_int_equal(write_as_nobody(p.file, write_new, &err), MEW_E_IO);
	assert_int_equal(err.sys_errno, EACCES);
	assert_non_null(strstr(err.text, p.file));
	assert_int_equal(chmod(p.directory, 0755), 0);
	assert_content(p.file, "old");
	assert_int_equal(entries_in(p.directory), 1);
	place_fini(&p);
}

static void test_file_full_device(void **state)
{
	struct mew_error err;
	struct place p;
	struct stat st;

	(void)state;
	if (stat("/dev/full", &st) != 0 || !S_ISCHR(st.st_mode)) {
		print_message("no /dev/full here\n");
		skip();
	}
	place_init(&p);
	assert_int_equal(symlink("/dev/full", p.file), 0);
	assert_int_equal(chmod(p.directory, 0777), 0);
	assert_int_equal(write_as_nobody(p.file, write_new, &err), MEW_E_IO);
	assert_int_equal(err.sys_errno, ENOSPC);
	assert_non_null(strstr(err.text, p.file));
	assert_int_equal(write_as_nobody(p.file, write_much, &err), MEW_E_IO);
	assert_int_equal(err.sys_errno, ENOSPC);
	assert_int_equal(lstat(p.file, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(stat("/dev/full", &st), 0);
	assert_true(S_ISCHR(st.st_mode)); /* not replaced by a plain file */
	assert_int_equal(entries_in(p.directory), 1);
	place_fini(&p);
}

static void test_file_through_link(void **state)
{
	struct mew_error err;
	struct place p;
	char target[600];
	struct stat st;

	(void)state;
	place_init(&p);
	snprintf(target, sizeof target, "%s/target", p.directory);
	put(target, "old");
	assert_int_equal(symlink("target", p.file), 0);
	assert_int_equal(mew_write_file(p.file, write_new, NULL, &err), MEW_OK);
	assert_int_equal(lstat(p.file, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_content(target, "new");
	assert_int_equal(entries_in(p.directory), 2);
	place_fini(&p);
}

/* The longest name the file system takes, a name without a directory, and leftovers of a crash with the same number. */
static void test_file_names(void **state)
{
	struct mew_error err;
	struct place p;
	char path[600], name[256], here[512];

	(void)state;
	place_init(&p);
	memset(name, 'n', 255);
	name[255] = '\0';
	snprintf(path, sizeof path, "%s/%s", p.directory, name);
	assert_int_equal(mew_write_file(path, write_new, NULL, &err), MEW_OK);
	assert_content(path, "new");
	assert_non_null(getcwd(here, sizeof here));
	assert_int_equal(chdir(p.directory), 0);
	assert_int_equal(mew_write_file("report", write_new, NULL, &err), MEW_OK);
	assert_int_equal(chdir(here), 0);
	assert_content(p.file, "new");
	for (unsigned i = 0; i < 60; i++) {
		snprintf(path, sizeof path, "%s/.mew-%ld-%u.tmp", p.directory, (long)getpid(), i);
		put(path, "left");
	}
	assert_int_equal(mew_write_file(p.file, write_much, NULL, &err), MEW_OK);
	assert_content(path, "left");
	assert_int_equal(entries_in(p.directory), 62);
	place_fini(&p);
}

static int to_stdout(const char *target, mew_write_body_fn *body, struct mew_error *err)
{
	int saved, fd, status;

	fflush(stdout);
	saved = dup(1);
	fd = open(target, O_WRONLY);
	assert_true(saved >= 0 && fd >= 0);
	assert_int_equal(dup2(fd, 1), 1);
	fputs("before ", stdout);
	status = mew_write_file("-", body, NULL, err);
	fflush(stdout);
	dup2(saved, 1);
	clearerr(stdout);
	close(saved);
	close(fd);
	return status;
}

static void test_file_stdout(void **state)
{
	struct mew_error err;
	struct place p;
	int status;

	(void)state;
	place_init(&p);
	put(p.file, "");
	status = to_stdout(p.file, write_new, &err);
	assert_int_equal(status, MEW_OK);
	assert_content(p.file, "before new");
	if (access("/dev/full", W_OK) == 0) {
		assert_int_equal(to_stdout("/dev/full", write_much, &err), MEW_E_IO);
		status = to_stdout("/dev/full", write_new, &err); /* too little to leave the stream by itself */
		assert_int_equal(status, MEW_E_IO);
		assert_int_equal(err.sys_errno, ENOSPC);
		assert_non_null(strstr(err.text, "standard output"));
	}
	place_fini(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_file_new_and_replaced),
		cmocka_unit_test(test_file_old_until_new),
		cmocka_unit_test(test_file_body_fails),
		cmocka_unit_test(test_file_no_directory),
		cmocka_unit_test(test_file_check),
		cmocka_unit_test(test_file_unwritable_directory),
		cmocka_unit_test(test_file_full_device),
		cmocka_unit_test(test_file_through_link),
		cmocka_unit_test(test_file_names),
		cmocka_unit_test(test_file_stdout),
	};

	return cmocka_run_group_tests_name("files", tests, NULL, NULL);
}
