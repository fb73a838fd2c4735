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
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "cpu_timer.h"
#include "os.h"

#define EXPORT __attribute__((visibility("default")))
#define WORDS_MAX 4096 /* of a variadic call */

typedef int exec_fn(const char *, char *const *, char *const *);
typedef int descriptor_fn(int, char *const *, char *const *);
static exec_fn *next_execve, *next_execvpe;
static descriptor_fn *next_fexecve;

/* ISO C has no conversion from data to function pointers. */
static void find(void *slot, const char *name)
{
	void *symbol = dlsym(RTLD_NEXT, name);

	memcpy(slot, &symbol, sizeof symbol);
}

void mew_recorder_exec_init(void)
{
	find(&next_execve, "execve");
	find(&next_execvpe, "execvpe");
	find(&next_fexecve, "fexecve");
}

/* Returns the thread whose ticks were stopped; NULL for none. */
static struct mew_cpu_thread *stop_ticks(void)
{
	struct mew_cpu_thread *t = mew_cpu_slot_of(mew_os_tid());
	int number = mew_cpu_signal_number();
	struct sigaction ours, ignore;

	if (next_execve == NULL)
		mew_recorder_exec_init(); /* another constructor was faster */
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
static int go_on(struct mew_cpu_thread *t)
{
	int saved = errno;

	if (t != NULL)
		(void)mew_cpu_thread_arm(t, mew_os_now_ns());
	errno = saved;
	return -1;
}

EXPORT int execve(const char *path, char *const argv[], char *const envp[])
{
	struct mew_cpu_thread *t = stop_ticks();

	(void)next_execve(path, argv, envp);
	return go_on(t);
}

EXPORT int execvpe(const char *file, char *const argv[], char *const envp[])
{
	struct mew_cpu_thread *t = stop_ticks();

	(void)next_execvpe(file, argv, envp);
	return go_on(t);
}

EXPORT int fexecve(int fd, char *const argv[], char *const envp[])
{
	struct mew_cpu_thread *t = stop_ticks();

	(void)next_fexecve(fd, argv, envp);
	return go_on(t);
}

EXPORT int execv(const char *path, char *const argv[])
{
	return execve(path, argv, environ);
}

EXPORT int execvp(const char *file, char *const argv[])
{
	return execvpe(file, argv, environ);
}

/* The words of a variadic call into `argv`; false when there are too many. */
static bool gather(char *argv[WORDS_MAX], const char *first, va_list *rest)
{
	size_t n = 0;

	for (const char *word = first; word != NULL; word = va_arg(*rest, const char *)) {
		if (n + 1 == WORDS_MAX) {
			errno = E2BIG;
			return false;
		}
		argv[n++] = (char *)(uintptr_t)word;
	}
	argv[n] = NULL;
	return true;
}

EXPORT int execl(const char *path, const char *first, ...)
{
	char *argv[WORDS_MAX];
	va_list rest;
	bool fits;

	va_start(rest, first);
	fits = gather(argv, first, &rest);
	va_end(rest);
	return fits ? execve(path, argv, environ) : -1;
}

EXPORT int execlp(const char *file, const char *first, ...)
{
	char *argv[WORDS_MAX];
	va_list rest;
	bool fits;

	va_start(rest, first);
	fits = gather(argv, first, &rest);
	va_end(rest);
	return fits ? execvpe(file, argv, environ) : -1;
}

EXPORT int execle(const char *path, const char *first, ...)
{
	char *argv[WORDS_MAX], *const *envp = NULL;
	va_list rest;
	bool fits;

	va_start(rest, first);
	fits = gather(argv, first, &rest);
	if (fits)
		envp = va_arg(rest, char *const *);
	va_end(rest);
	return fits ? execve(path, argv, envp) : -1;
}
