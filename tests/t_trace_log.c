/*
 * t_trace_log.c - the rings of the timeline, sections that were left, and the end of a traced run.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli_trace.h"
#include "fx_trace_rig.h"
#include "mew/trace.h"
#include "trace_check.h"
#include "trace_command.h"
#include "trace_fragment.h"
#include "trace_log.h"
#include "trace_merge.h"

/* --- command lines ---------------------------------------------------------------------------------------------- */

static void shown_as(const char *expression, const char *line, const char *wanted)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), n = strlen(line) + 1;
	char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *shown;

	assert_ptr_not_equal(pages, MAP_FAILED);
	assert_int_equal(mprotect(pages + page, page, PROT_NONE), 0);
	memcpy(pages + page - n, line, n); /* nothing may be read behind it */
	assert_true(mew_trace_redact(expression));
	shown = mew_trace_shown_line(pages + page - n);
	assert_string_equal(shown, wanted);
	free(shown);
	assert_true(mew_trace_redact(NULL));
	assert_int_equal(munmap(pages, 2 * page), 0);
}

static void what_matches_is_hidden(void **data)
{
	(void)data;
	shown_as("--token=[^ ]*", "a --token=x b --token=yz", "a *** b ***");
	shown_as("x*", "axxb", "a***b");
	shown_as("$", "abc", "abc");
	shown_as("(--token=.*)?$", "run", "run");
	shown_as("pw=.*|$", "run pw=x", "run ***");
	shown_as("^a", "aab", "***ab");
	shown_as("x*", "", "");
}

/* --- the writer's side ------------------------------------------------------------------------------------------ */

static void *other_thread(void *data)
{
	mew_section("elsewhere")
		mew_mark("m");
	return data;
}

static void records_of_threads_are_written(void **data)
{
	char path[200], *text;
	struct mew_trace_verdict v;
	struct mew_error err;
	pthread_t id;

	(void)data;
	(void)snprintf(path, sizeof path, "%s.out", rig_folder);
	assert_int_equal(mew_trace_log_begin(NULL, path, &err), MEW_OK);
	for (int i = 0; i < 300; i++) { /* more threads than there are rings: they are used again */
		assert_int_equal(pthread_create(&id, NULL, other_thread, NULL), 0);
		assert_int_equal(pthread_join(id, NULL), 0);
		if (i % 100 == 0)
			mew_trace_drain();
	}
	mew_section(mew_trace_name("built \"at\" run time\n"))
		mew_mark("m");
	mew_trace_log_end();
	text = rig_get_file(path);
	rig_has(text, "\"name\":\"elsewhere\"");
	rig_has(text, "built \\\"at\\\" run time\\u000a");
	free(text);
	assert_int_equal(mew_trace_check(path, rig_say, &v, &err), MEW_OK);
	assert_true(v.cut);
	if (v.faults > 0)
		fail_msg("%s", rig_said);
}

static void sections_that_were_left_end_with_what_is_around_them(void **data)
{
	struct mew_section outer, inner, late;
	char path[200], *text;
	struct mew_error err;
	unsigned before;

	(void)data;
	(void)snprintf(path, sizeof path, "%s.out", rig_folder);
	assert_int_equal(mew_trace_log_begin(NULL, path, &err), MEW_OK);
	outer = mew_section_begin("outer");
	inner = mew_section_begin("inner");
	mew_section_end(&outer); /* as after a longjmp: nobody ends the inner one */
	before = mew_trace_sections();
	late = mew_section_begin("late");
	mew_trace_settle(before);
	mew_section_end(&late); /* it is on the timeline already */
	mew_section_end(&inner);
	(void)mew_section_begin("last");
	mew_trace_log_end();
	text = rig_get_file(path);
	for (const char *name = "inner\0late\0last\0"; *name != '\0'; name += strlen(name) + 1) {
		const char *at = strstr(text, name), *line;

		assert_non_null(at);
		line = strstr(at, "\"unfinished\":true");
		assert_non_null(line);
		assert_true(line < strchr(at, '\n'));
	}
	assert_null(strstr(strstr(text, "\"late\"") + 1, "\"late\""));
	assert_true(strchr(strstr(text, "\"outer\""), '}') < strchr(strstr(text, "\"outer\""), '\n'));
	assert_int_equal(*(strchr(strstr(text, "\"outer\""), '}') + 1), ','); /* without arguments */
	free(text);
}

static void what_does_not_fit_is_counted(void **data)
{
	char path[200], *text;
	struct mew_error err;

	(void)data;
	(void)snprintf(path, sizeof path, "%s.out", rig_folder);
	assert_int_equal(mew_trace_log_begin(NULL, path, &err), MEW_OK);
	for (unsigned i = 0; i < MEW_TRACE_RECORDS + 7; i++)
		mew_mark("m");
	mew_trace_drain();
	mew_trace_log_end();
	text = rig_get_file(path);
	free(text);
	(void)snprintf(path, sizeof path, "grep mew_dropped %s.out | tail -n 1 | grep -q '\"records\":7}'", rig_folder);
	assert_int_equal(system(path), 0);
}

/* A file that is larger than what is read would be lost whole. */
static void a_process_writes_no_more_than_is_read(void **data)
{
	struct mew_trace_verdict v;
	struct mew_error err;
	struct stat st;
	char path[200];

	(void)data;
	(void)snprintf(path, sizeof path, "%s.out", rig_folder);
	assert_int_equal(mew_trace_log_begin(NULL, path, &err), MEW_OK);
	for (unsigned turn = 0; turn < 30; turn++) {
		for (unsigned i = 0; i < MEW_TRACE_RECORDS; i++)
			mew_mark("a mark with a name that is as long as those of other people's programs sometimes are, or longer");
		mew_trace_drain();
	}
	mew_trace_log_end();
	assert_int_equal(stat(path, &st), 0);
	assert_in_range(st.st_size, MEW_FRAGMENT_MAX / 4, MEW_FRAGMENT_MAX);
	assert_int_equal(mew_trace_check(path, rig_say, &v, &err), MEW_OK);
	assert_in_range(v.events, 10000, 29 * MEW_TRACE_RECORDS);
	(void)snprintf(path, sizeof path, "tail -n 2 %s.out | grep -q '\"mew_dropped\".*\"records\":[1-9]'", rig_folder);
	assert_int_equal(system(path), 0);
}

static pthread_barrier_t met, may_end;

static void *one_of_many(void *data)
{
	mew_mark("one of many");
	(void)pthread_barrier_wait(&met);
	if (data == NULL) {
		(void)pthread_barrier_wait(&may_end);
		return NULL;
	}
	for (int i = 0; i < 2; i++) /* the first one ends; then the second wait is for the drain */
		(void)pthread_barrier_wait(data);
	mew_mark("after a place became free");
	return NULL;
}

static void a_thread_without_a_place_gets_one_that_is_freed(void **data)
{
	enum { MANY = MEW_TRACE_THREADS + 1 };
	pthread_t ids[MANY], late;
	pthread_barrier_t turn;
	struct mew_error err;
	char path[200];

	(void)data;
	(void)snprintf(path, sizeof path, "%s.out", rig_folder);
	assert_int_equal(mew_trace_log_begin(NULL, path, &err), MEW_OK);
	assert_int_equal(pthread_barrier_init(&met, NULL, 2), 0);
	assert_int_equal(pthread_barrier_init(&turn, NULL, 2), 0);
	assert_int_equal(pthread_barrier_init(&may_end, NULL, MANY + 1), 0);
	for (unsigned i = 0; i < MANY; i++) {
		assert_int_equal(pthread_create(&ids[i], NULL, one_of_many, NULL), 0);
		(void)pthread_barrier_wait(&met);
	}
	assert_int_equal(pthread_create(&late, NULL, one_of_many, &turn), 0);
	(void)pthread_barrier_wait(&met);
	(void)pthread_barrier_wait(&turn);
	(void)pthread_barrier_wait(&may_end);
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(pthread_join(ids[i], NULL), 0);
	mew_trace_drain();
	(void)pthread_barrier_wait(&turn);
	assert_int_equal(pthread_join(late, NULL), 0);
	mew_trace_log_end();
	(void)snprintf(path, sizeof path,
		       "grep -q 'after a place became free' %s.out && grep -q '\"mew_dropped\"' %s.out",
		       rig_folder, rig_folder);
	assert_int_equal(system(path), 0);
}

static void *fork_without_a_place(void *data)
{
	pid_t child;

	mew_mark("there is no place");
	child = fork();
	if (child == 0) {
		mew_mark("in the child");
		mew_trace_log_end();
		_exit(0);
	}
	(void)waitpid(child, NULL, 0);
	return data;
}

static void the_child_of_a_thread_without_a_place_has_one(void **data)
{
	pthread_t ids[MEW_TRACE_THREADS], forks;
	struct mew_error err;
	char command[200];

	(void)data;
	assert_int_equal(mew_trace_log_begin(rig_folder, NULL, &err), MEW_OK);
	assert_int_equal(pthread_barrier_init(&met, NULL, 2), 0);
	assert_int_equal(pthread_barrier_init(&may_end, NULL, MEW_TRACE_THREADS + 1), 0);
	for (unsigned i = 0; i < MEW_TRACE_THREADS; i++) {
		assert_int_equal(pthread_create(&ids[i], NULL, one_of_many, NULL), 0);
		(void)pthread_barrier_wait(&met);
	}
	assert_int_equal(pthread_create(&forks, NULL, fork_without_a_place, NULL), 0);
	assert_int_equal(pthread_join(forks, NULL), 0);
	(void)pthread_barrier_wait(&may_end);
	for (unsigned i = 0; i < MEW_TRACE_THREADS; i++)
		assert_int_equal(pthread_join(ids[i], NULL), 0);
	mew_trace_log_end();
	(void)snprintf(command, sizeof command, "grep -q 'in the child' %s/mew-*.json", rig_folder);
	assert_int_equal(system(command), 0);
}

/* The directory went away: the child has nowhere to write, and its parent, which has its file open, counts. */
static void what_a_child_cannot_write_is_counted_by_its_parent(void **data)
{
	char command[200];
	struct mew_error err;
	pid_t child;
	int status;

	(void)data;
	assert_int_equal(mew_trace_log_begin(rig_folder, NULL, &err), MEW_OK);
	mew_mark("first");
	mew_trace_drain();
	(void)snprintf(command, sizeof command, "mv %s %s.own", rig_folder, rig_folder);
	assert_int_equal(system(command), 0);
	child = fork();
	if (child == 0) {
		for (int i = 0; i < 3; i++)
			mew_mark("nowhere to go");
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	(void)snprintf(command, sizeof command, "mv %s.own %s", rig_folder, rig_folder);
	assert_int_equal(system(command), 0);
	mew_trace_log_end();
	(void)snprintf(command, sizeof command, "grep -q '\"mew_dropped\".*\"records\":3}' %s/mew-*.json", rig_folder);
	assert_int_equal(system(command), 0);
}

/* In a child each record is a write; one that is past its limit still says what it lost, and keeps to the limit. */
static void a_child_writes_no_more_than_is_read(void **data)
{
	char command[300];
	struct mew_error err;
	pid_t child;

	(void)data;
	assert_int_equal(mew_trace_log_begin(rig_folder, NULL, &err), MEW_OK);
	child = fork();
	if (child == 0) {
		memset(command, 'x', sizeof command - 1);
		command[sizeof command - 1] = '\0';
		for (int i = 0; i < 110000; i++)
			mew_mark(command);
		_exit(0);
	}
	(void)waitpid(child, NULL, 0);
	mew_trace_log_end();
	(void)snprintf(command, sizeof command, "n=$(grep -c mew_dropped %s/mew-*.json) && [ $n -gt 3 ] && [ $n -lt 20 ]",
		       rig_folder);
	assert_int_equal(system(command), 0);
}

static void nothing_is_taken_without_a_trace(void **data)
{
	struct mew_section s = mew_section_begin("s");

	(void)data;
	assert_int_equal(s.start_, 0);
	mew_section_end(&s);
	mew_mark("m");
	assert_int_equal(mew_stream_section(mew_stream("s"), "x", 1, 2), MEW_OK);
}

static void a_section_that_ends_before_it_starts_is_refused(void **data)
{
	char path[200];
	struct mew_error err;

	(void)data;
	(void)snprintf(path, sizeof path, "%s.out", rig_folder);
	assert_int_equal(mew_trace_log_begin(NULL, path, &err), MEW_OK);
	assert_int_equal(mew_stream_section(mew_stream("s"), "x", 5, 2), MEW_E_INVALID);
	assert_int_equal(mew_stream_section(mew_stream(""), "x", 2, 5), MEW_E_INVALID);
	mew_trace_log_end();
}

static void a_directory_that_is_a_link_is_refused(void **data)
{
	char link[200];
	struct mew_error err;

	(void)data;
	(void)snprintf(link, sizeof link, "%s.own", rig_folder);
	assert_int_equal(symlink(rig_folder, link), 0);
	assert_int_equal(mew_trace_log_begin(link, NULL, &err), MEW_E_INVALID);
	assert_int_equal(unlink(link), 0);
}

static void one_file_has_one_writer(void **data)
{
	struct mew_trace_fragment first, second;
	struct mew_error err;
	char path[200], *text;

	(void)data;
	(void)snprintf(path, sizeof path, "%s.out", rig_folder);
	rig_put_file(path, "what a run left that was killed");
	assert_int_equal(mew_trace_fragment_open(&first, path, &err), MEW_OK);
	mew_trace_fragment_write(&first, "one\n", 4);
	assert_int_equal(mew_trace_fragment_open(&second, path, &err), MEW_E_BUSY);
	assert_non_null(strstr(err.text, "choose another file"));
	mew_trace_fragment_write(&first, "two\n", 4);
	mew_trace_fragment_close(&first);
	text = rig_get_file(path);
	assert_string_equal(text, "one\ntwo\n");
	free(text);
	assert_int_equal(mew_trace_fragment_open(&second, path, &err), MEW_OK);
	mew_trace_fragment_close(&second);
}

static void a_file_stays_taken_until_its_trace_is_made(void **data)
{
	struct mew_trace_fragment other;
	struct mew_error err;
	char path[200];
	int lock;

	(void)data;
	assert_int_equal(mew_trace_log_hold(), -1);
	(void)snprintf(path, sizeof path, "%s.out", rig_folder);
	assert_int_equal(mew_trace_log_begin(NULL, path, &err), MEW_OK);
	lock = mew_trace_log_hold();
	assert_true(lock >= 0);
	mew_trace_log_end();
	assert_int_equal(mew_trace_fragment_open(&other, path, &err), MEW_E_BUSY);
	assert_int_equal(close(lock), 0);
	assert_int_equal(mew_trace_fragment_open(&other, path, &err), MEW_OK);
	mew_trace_fragment_close(&other);
}

/* --- the command's side ----------------------------------------------------------------------------------------- */

static size_t count_entries(const char *path)
{
	DIR *dir = opendir(path);
	size_t n = 0;

	assert_non_null(dir);
	for (struct dirent *d = readdir(dir); d != NULL; d = readdir(dir))
		n += d->d_name[0] != '.';
	(void)closedir(dir);
	return n;
}

/* Begins a traced run in the folder; a child of it may leave by exit(), too. */
static void leave_by_exit(bool with_child)
{
	struct mew_cli_trace t = { .file = "sub/t.json" };
	pid_t child = -1;
	int status = 0;

	if (chdir(rig_folder) != 0 || setenv("TMPDIR", rig_folder, 1) != 0 || mew_cli_trace_begin(&t) != MEW_EXIT_FINE)
		_exit(100);
	if (count_entries(rig_folder) != 2 || count_entries("sub") != 1) /* the directory of fragments, and sub/t.json.partial */
		_exit(101);
	if (with_child && (child = fork()) == 0)
		exit(0);
	if (with_child && (waitpid(child, &status, 0) != child || count_entries(rig_folder) != 2 || count_entries("sub") != 1))
		_exit(102);
	exit(7);
}

static int code_of(void (*body)(bool), bool argument)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		body(argument);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void an_exit_leaves_nothing_behind(void **data)
{
	char path[200];

	(void)data;
	assert_int_equal(code_of(leave_by_exit, false), 7);
	(void)snprintf(path, sizeof path, "%s/sub", rig_folder);
	assert_int_equal(count_entries(path), 0);
	assert_int_equal(count_entries(rig_folder), 1);
}

static void the_exit_of_a_child_takes_nothing_away(void **data)
{
	(void)data;
	assert_int_equal(code_of(leave_by_exit, true), 7);
	assert_int_equal(count_entries(rig_folder), 1);
}

int main(void)
{
	const struct CMUnitTest trace_log[] = {
		cmocka_unit_test(what_matches_is_hidden),
		cmocka_unit_test(sections_that_were_left_end_with_what_is_around_them),
		cmocka_unit_test(records_of_threads_are_written),
		cmocka_unit_test(what_does_not_fit_is_counted),
		cmocka_unit_test(a_process_writes_no_more_than_is_read),
		cmocka_unit_test(a_thread_without_a_place_gets_one_that_is_freed),
		cmocka_unit_test(the_child_of_a_thread_without_a_place_has_one),
		cmocka_unit_test(what_a_child_cannot_write_is_counted_by_its_parent),
		cmocka_unit_test(a_child_writes_no_more_than_is_read),
		cmocka_unit_test(nothing_is_taken_without_a_trace),
		cmocka_unit_test(a_section_that_ends_before_it_starts_is_refused),
		cmocka_unit_test(a_directory_that_is_a_link_is_refused),
		cmocka_unit_test(one_file_has_one_writer),
		cmocka_unit_test(a_file_stays_taken_until_its_trace_is_made),
		cmocka_unit_test(an_exit_leaves_nothing_behind),
		cmocka_unit_test(the_exit_of_a_child_takes_nothing_away),
	};
	struct CMUnitTest with_folder[MEW_COUNTOF(trace_log)];

	for (size_t i = 0; i < MEW_COUNTOF(trace_log); i++) {
		with_folder[i] = trace_log[i];
		with_folder[i].setup_func = rig_make_folder;
		with_folder[i].teardown_func = rig_remove_folder;
	}
	return _cmocka_run_group_tests("trace log", with_folder, MEW_COUNTOF(with_folder), NULL, NULL);
}
