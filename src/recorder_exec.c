/*
 * recorder_exec.c - the exec family in a recorded program: no tick may be on its way when the program is replaced.
 * Layer L6. Any thread; also in a child of vfork, which shares our memory and has no ticks of its own.
 *
 * A signal that waits survives exec while its handler does not, and the default action of a real-time signal ends the
 * process. So the calling thread's ticks are stopped and those that wait thrown away; other threads end with the exec.
 */
#include "config.h"

#include "recorder_exec.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cpu_timer.h"
#include "os.h"
#include "recorder_held.h"
#include "recorder_left.h"

#define EXPORT __attribute__((visibility("default")))
#define WORDS_FEW 128 /* of a variadic call, on the stack */

typedef int exec_fn(const char *, char *const *, char *const *);
typedef int descriptor_fn(int, char *const *, char *const *);
typedef int at_fn(int, const char *, char *const *, char *const *, int);
static exec_fn *next_execve, *next_execvpe;
static descriptor_fn *next_fexecve;
static at_fn *next_execveat;
static struct mew_record_root *root; /* of the process that is recorded; NULL: none is */

/* ISO C has no conversion from data to function pointers. */
void mew_recorder_find(void *slot, const char *name)
{
	void *symbol = dlsym(RTLD_NEXT, name);

	memcpy(slot, &symbol, sizeof symbol);
}

void mew_recorder_exec_init(void)
{
	mew_recorder_find(&next_execve, "execve");
	mew_recorder_find(&next_execvpe, "execvpe");
	mew_recorder_find(&next_fexecve, "fexecve");
	mew_recorder_find(&next_execveat, "execveat");
}

void mew_recorder_exec_note(struct mew_record_root *of)
{
	root = of;
}

/*
 * What the process is about to become, and when, so that the report can say it: what it becomes has the same pid and is
 * what ends. NULL: it stays. Not in a child of vfork.
 */
static void note(const char *program, bool is_left_out)
{
	struct mew_record_root *r = root;
	size_t n = program != NULL ? strnlen(program, sizeof r->became - 1) : 0;

	if (r == NULL || r->pid != (int)getpid())
		return;
	if (n > 0)
		memcpy(r->became, program, n);
	r->became[n] = '\0';
	r->is_left_out = is_left_out;
	r->became_cpu_ns = program != NULL ? mew_os_process_cpu_ns() : 0;
	__atomic_store_n(&r->became_ns, program != NULL ? mew_os_now_ns() : 0, __ATOMIC_RELEASE);
}

/* Returns the thread whose ticks were stopped; NULL for none. */
static struct mew_cpu_thread *stop_ticks(const char *program, const struct mew_recorder_left_env *mine)
{
	struct mew_cpu_thread *t = mew_cpu_slot_of(mew_os_tid());
	int number = mew_cpu_signal_number();
	struct sigaction ours, ignore;

	if (next_execve == NULL)
		mew_recorder_exec_init(); /* another constructor was faster */
	note(program, mine->is_left_out);
	if (t == NULL || !mew_cpu_engine_is_open(t))
		return NULL;
	mew_cpu_thread_disarm(t);
	memset(&ignore, 0, sizeof ignore);
	ignore.sa_handler = SIG_IGN;
	if (mew_cpu_signal_is_ours(number) && sigaction(number, &ignore, &ours) == 0)
		(void)sigaction(number, &ours, NULL);
	return t;
}

/* The exec failed. */
static int go_on(struct mew_cpu_thread *t, struct mew_recorder_left_env *mine)
{
	int saved = errno;

	mew_recorder_left_free(mine);
	note(NULL, false);
	if (t != NULL)
		(void)mew_cpu_thread_arm(t, mew_os_now_ns());
	errno = saved;
	return -1;
}

EXPORT int execve(const char *path, char *const argv[], char *const envp[])
{
	struct mew_recorder_left_env mine;
	char *const *list = mew_recorder_left_env(path, false, envp, &mine);
	struct mew_cpu_thread *t = stop_ticks(path, &mine);

	(void)next_execve(path, argv, list);
	return go_on(t, &mine);
}

EXPORT int execvpe(const char *file, char *const argv[], char *const envp[])
{
	struct mew_recorder_left_env mine;
	char *const *list = mew_recorder_left_env(file, true, envp, &mine);
	struct mew_cpu_thread *t = stop_ticks(file, &mine);

	(void)next_execvpe(file, argv, list);
	return go_on(t, &mine);
}

/* Where the file has no path. The kernel takes NULL for no words, whatever the header says. */
static const char *first_word(char *const argv[])
{
	return argv != NULL ? argv[0] : NULL;
}

EXPORT int fexecve(int fd, char *const argv[], char *const envp[])
{
	struct mew_recorder_left_env mine;
	struct mew_cpu_thread *t;
	char *const *list;
	char path[32];

	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	list = mew_recorder_left_env(path, false, envp, &mine);
	t = stop_ticks(first_word(argv), &mine);
	(void)next_fexecve(fd, argv, list);
	return go_on(t, &mine);
}

/* glibc has it from 2.34 on; where it has none, nobody can have been linked with it. */
EXPORT int execveat(int folder, const char *path, char *const argv[], char *const envp[], int flags)
{
	struct mew_recorder_left_env mine;
	struct mew_cpu_thread *t;
	char *const *list;
	char place[32];

	(void)snprintf(place, sizeof place, "/proc/self/fd/%d", folder);
	if (path[0] == '\0')
		list = mew_recorder_left_env(place, false, envp, &mine);
	else /* a name below an open folder is not looked at */
		list = mew_recorder_left_env(path[0] == '/' || folder == AT_FDCWD ? path : NULL, false, envp, &mine);
	t = stop_ticks(path[0] != '\0' ? path : first_word(argv), &mine);
	errno = ENOSYS;
	if (next_execveat != NULL)
		(void)next_execveat(folder, path, argv, list, flags);
	return go_on(t, &mine);
}

EXPORT int execv(const char *path, char *const argv[])
{
	return execve(path, argv, environ);
}

EXPORT int execvp(const char *file, char *const argv[])
{
	return execvpe(file, argv, environ);
}

/* --- variadic forms ----------------------------------------------------------------------------------------------- */

static size_t count_words(const char *first, va_list *rest)
{
	size_t n = 0;

	for (const char *word = first; word != NULL; word = va_arg(*rest, const char *))
		n++;
	return n;
}

/*
 * The words of a call into `few`, or into a map of their own where they are many: a stack may be small. NULL without
 * memory.
 */
static char **gather(char *few[WORDS_FEW], size_t n, const char *first, va_list *rest)
{
	char **argv = n < WORDS_FEW ? few : mew_recorder_held_map((n + 1) * sizeof *argv);
	size_t i = 0;

	for (const char *word = first; word != NULL; word = va_arg(*rest, const char *))
		if (argv != NULL)
			argv[i++] = (char *)(uintptr_t)word;
	if (argv != NULL)
		argv[n] = NULL;
	else
		errno = ENOMEM;
	return argv;
}

/* The exec failed. */
static int give_back(char *few[WORDS_FEW], char **argv, size_t n)
{
	int saved = errno;

	if (argv != NULL && argv != few)
		mew_recorder_held_unmap(argv, (n + 1) * sizeof *argv);
	errno = saved;
	return -1;
}

EXPORT int execl(const char *path, const char *first, ...)
{
	char *few[WORDS_FEW], **argv;
	va_list rest;
	size_t n;

	va_start(rest, first);
	n = count_words(first, &rest);
	va_end(rest);
	va_start(rest, first);
	argv = gather(few, n, first, &rest);
	va_end(rest);
	if (argv != NULL)
		(void)execve(path, argv, environ);
	return give_back(few, argv, n);
}

EXPORT int execlp(const char *file, const char *first, ...)
{
	char *few[WORDS_FEW], **argv;
	va_list rest;
	size_t n;

	va_start(rest, first);
	n = count_words(first, &rest);
	va_end(rest);
	va_start(rest, first);
	argv = gather(few, n, first, &rest);
	va_end(rest);
	if (argv != NULL)
		(void)execvpe(file, argv, environ);
	return give_back(few, argv, n);
}

EXPORT int execle(const char *path, const char *first, ...)
{
	char *few[WORDS_FEW], **argv, *const *envp;
	va_list rest;
	size_t n;

	va_start(rest, first);
	n = count_words(first, &rest);
	va_end(rest);
	va_start(rest, first);
	argv = gather(few, n, first, &rest);
	envp = va_arg(rest, char *const *);
	va_end(rest);
	if (argv != NULL)
		(void)execve(path, argv, envp);
	return give_back(few, argv, n);
}
