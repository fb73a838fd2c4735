/*
 * mew/cmocka.h - tests of cmocka on the timeline of a traced run (`mew run --trace`, mew(1)).
 * Layer L0: needs nothing of mew but this file, neither mew.h nor a library. Include it after cmocka.h, in one file a
 * group.
 *
 *     return mew_cmocka_run_group_tests(tests, group_setup, group_teardown);
 *
 * runs the group as cmocka_run_group_tests() does, with the same result. Where MEW_TRACE_DIR names a directory, each
 * set-up, test and teardown is also a slice there, in a process of its own on the timeline. Nothing that fails about
 * that fails a test.
 */
#ifndef MEW_CMOCKA_H
#define MEW_CMOCKA_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/*
 * mew_cmocka_run_group_tests(tests, setup, teardown)
 *
 * tests    an array of struct CMUnitTest; at most 1,000 of them are shown, a longer one runs without the timeline
 * setup, teardown  of the group; may be NULL
 * Returns  what cmocka_run_group_tests() returns
 * Context  one group at a time
 */
#define mew_cmocka_run_group_tests(tests, setup, teardown)                                                             \
	mew_cmocka_run_(#tests, tests, sizeof(tests) / sizeof((tests)[0]), setup, teardown)
#define mew_cmocka_run_group_tests_name(name, tests, setup, teardown)                                                  \
	mew_cmocka_run_(name, tests, sizeof(tests) / sizeof((tests)[0]), setup, teardown)

/* All below is private. */
enum { MEW_CMOCKA_TESTS_ = 1000 };

struct mew_cmocka_test_ { /* cmocka carries a pointer to it as the state; the test sees `user` */
	const struct CMUnitTest *test;
	void *user;
	int is_begun;
};

static struct {
	FILE *file;
	int64_t epoch_ns, zero_ns; /* the same moment on two clocks */
	CMFixtureFunction setup, teardown;
	void *user;
	const char *open;          /* what began last and has not ended; a test that fails never returns */
	const char *open_what;
	int64_t open_ns;
	struct mew_cmocka_test_ tests[MEW_CMOCKA_TESTS_];
	struct CMUnitTest wrapped[MEW_CMOCKA_TESTS_];
} mew_cmocka_;

static inline int64_t mew_cmocka_epoch_(void)
{
	struct timespec t = { 0, 0 };

	(void)timespec_get(&t, TIME_UTC);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* A clock that nobody sets, where the compiler's mode has one. */
static inline int64_t mew_cmocka_now_(void)
{
#ifdef CLOCK_MONOTONIC
	struct timespec t = { 0, 0 };

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
#else
	return mew_cmocka_epoch_();
#endif
}

static inline void mew_cmocka_text_(const char *text)
{
	for (; *text != '\0'; text++)
		if ((unsigned char)*text < 0x20)
			(void)fprintf(mew_cmocka_.file, "\\u%04x", (unsigned char)*text);
		else
			(void)fprintf(mew_cmocka_.file, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
}

static inline void mew_cmocka_slice_(const char *what, const char *name, int64_t start_ns, const char *state)
{
	int64_t at = mew_cmocka_.epoch_ns + start_ns - mew_cmocka_.zero_ns, length = mew_cmocka_now_() - start_ns;

	(void)fprintf(mew_cmocka_.file, "{\"ph\":\"X\",\"pid\":%ld,\"tid\":1,\"cat\":\"%s\",\"name\":\"",
		      (long)getpid(), what);
	mew_cmocka_text_(name);
	(void)fprintf(mew_cmocka_.file, "\",\"ts\":\"%lld.%03d\",\"dur\":%lld.%03d,\"args\":{\"state\":\"%s\"}},\n",
		      (long long)(at / 1000),
		      (int)(at % 1000), (long long)((length > 0 ? length : 1) / 1000),
		      (int)((length > 0 ? length : 1) % 1000), state);
	(void)fflush(mew_cmocka_.file); /* a test may crash or fork */
}

static inline void mew_cmocka_close_(const char *state)
{
	if (mew_cmocka_.open != NULL)
		mew_cmocka_slice_(mew_cmocka_.open_what, mew_cmocka_.open, mew_cmocka_.open_ns, state);
	mew_cmocka_.open = NULL;
}

static inline void mew_cmocka_open_(const char *what, const char *name)
{
	mew_cmocka_close_("failed or skipped");
	mew_cmocka_.open = name;
	mew_cmocka_.open_what = what;
	mew_cmocka_.open_ns = mew_cmocka_now_();
}

/* cmocka hands out the group's state where there is one, the test's own otherwise. */
static inline struct mew_cmocka_test_ *mew_cmocka_begin_(void **state)
{
	struct mew_cmocka_test_ *t = (struct mew_cmocka_test_ *)*state;

	if (!t->is_begun)
		t->user = mew_cmocka_.user != NULL ? mew_cmocka_.user : t->test->initial_state;
	t->is_begun = 1;
	return t;
}

static inline int mew_cmocka_test_setup_(void **state)
{
	struct mew_cmocka_test_ *t = mew_cmocka_begin_(state);
	int code;

	mew_cmocka_open_("set-up", t->test->name);
	code = t->test->setup_func(&t->user);
	mew_cmocka_close_(code == 0 ? "done" : "failed");
	return code;
}

static inline void mew_cmocka_test_run_(void **state)
{
	struct mew_cmocka_test_ *t = mew_cmocka_begin_(state);

	mew_cmocka_open_("test", t->test->name);
	t->test->test_func(&t->user);
	mew_cmocka_close_("done");
}

static inline int mew_cmocka_test_teardown_(void **state)
{
	struct mew_cmocka_test_ *t = mew_cmocka_begin_(state);
	int code;

	mew_cmocka_open_("teardown", t->test->name);
	code = t->test->teardown_func(&t->user);
	mew_cmocka_close_(code == 0 ? "done" : "failed");
	return code;
}

/* The group's own state stays here, so that cmocka hands out the tests' pointers. */
static inline int mew_cmocka_group_setup_(void **state)
{
	int code;

	(void)state;
	mew_cmocka_open_("set-up", "group set-up");
	code = mew_cmocka_.setup(&mew_cmocka_.user);
	mew_cmocka_close_(code == 0 ? "done" : "failed");
	return code;
}

static inline int mew_cmocka_group_teardown_(void **state)
{
	int code;

	(void)state;
	mew_cmocka_open_("teardown", "group teardown");
	code = mew_cmocka_.teardown(&mew_cmocka_.user);
	mew_cmocka_close_(code == 0 ? "done" : "failed");
	return code;
}

static inline int mew_cmocka_begin_file_(const char *group)
{
	const char *directory = getenv("MEW_TRACE_DIR");
	char path[4096];
	int n;

	if (directory == NULL || directory[0] == '\0')
		return 0;
	mew_cmocka_.epoch_ns = mew_cmocka_epoch_();
	mew_cmocka_.zero_ns = mew_cmocka_now_();
	n = snprintf(path, sizeof path, "%s/cmocka-%ld-%llx.json", directory, (long)getpid(),
		     (unsigned long long)mew_cmocka_.epoch_ns);
	if (n < 0 || (size_t)n >= sizeof path || (mew_cmocka_.file = fopen(path, "wxe")) == NULL)
		return 0;
	(void)fprintf(mew_cmocka_.file,
		      "[{\"ph\":\"M\",\"pid\":%ld,\"name\":\"process_name\",\"args\":{\"name\":\"cmocka: ",
		      (long)getpid());
	mew_cmocka_text_(group);
	(void)fprintf(mew_cmocka_.file, "\"}},\n{\"ph\":\"M\",\"pid\":%ld,\"tid\":1,\"name\":\"thread_name\",\"args\":{\"name\":\"tests\"}},\n",
		      (long)getpid());
	return 1;
}

static inline int mew_cmocka_run_(const char *group, const struct CMUnitTest *tests, size_t n, CMFixtureFunction setup,
				  CMFixtureFunction teardown)
{
	int code;

	if (n > MEW_CMOCKA_TESTS_ || !mew_cmocka_begin_file_(group))
		return _cmocka_run_group_tests(group, tests, n, setup, teardown);
	mew_cmocka_.setup = setup;
	mew_cmocka_.teardown = teardown;
	mew_cmocka_.user = NULL;
	for (size_t i = 0; i < n; i++) {
		struct CMUnitTest *w = &mew_cmocka_.wrapped[i];

		mew_cmocka_.tests[i].test = &tests[i];
		mew_cmocka_.tests[i].user = NULL;
		mew_cmocka_.tests[i].is_begun = 0;
		*w = tests[i];
		w->initial_state = &mew_cmocka_.tests[i];
		w->test_func = tests[i].test_func != NULL ? mew_cmocka_test_run_ : NULL;
		w->setup_func = tests[i].setup_func != NULL ? mew_cmocka_test_setup_ : NULL;
		w->teardown_func = tests[i].teardown_func != NULL ? mew_cmocka_test_teardown_ : NULL;
	}
	code = _cmocka_run_group_tests(group, mew_cmocka_.wrapped, n, setup != NULL ? mew_cmocka_group_setup_ : NULL,
				       teardown != NULL ? mew_cmocka_group_teardown_ : NULL);
	mew_cmocka_close_("failed or skipped");
	mew_cmocka_slice_("group", group, mew_cmocka_.zero_ns, code == 0 ? "done" : "failed");
	(void)fclose(mew_cmocka_.file);
	mew_cmocka_.file = NULL;
	return code;
}

#endif
