/*
 * recorder_signals.c - waits for signals in a recorded program: the recorder's own is none that a program may wait for.
 * Layer L6. Any thread. A program that blocks every signal and takes what comes would take a tick for news.
 */
#include "config.h"

#include "recorder_exec.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <time.h>

#include "cpu_timer.h"

#define EXPORT __attribute__((visibility("default")))

typedef int wait_fn(const sigset_t *, siginfo_t *, const struct timespec *);
typedef int descriptor_fn(int, const sigset_t *, int);
static wait_fn *next_sigtimedwait;
static descriptor_fn *next_signalfd;

static bool guards; /* before, the captures themselves wait for it to see that it comes */

void mew_recorder_signals_guard(void)
{
	guards = true;
}

/* `set` without the recorder's signal, in `copy`. */
static const sigset_t *without_own(const sigset_t *set, sigset_t *copy)
{
	int number = mew_cpu_signal_number();

	if (!guards || set == NULL || number <= 0 || sigismember(set, number) != 1)
		return set;
	*copy = *set;
	(void)sigdelset(copy, number);
	return copy;
}

EXPORT int sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *limit)
{
	sigset_t copy;

	if (next_sigtimedwait == NULL)
		mew_recorder_find(&next_sigtimedwait, "sigtimedwait");
	return next_sigtimedwait(without_own(set, &copy), info, limit);
}

EXPORT int sigwaitinfo(const sigset_t *set, siginfo_t *info)
{
	return sigtimedwait(set, info, NULL);
}

/* As glibc's: errors are returned, and a handler that ran in between is none. */
EXPORT int sigwait(const sigset_t *set, int *number)
{
	siginfo_t info;
	int saved = errno, got, failure;

	do
		got = sigtimedwait(set, &info, NULL);
	while (got < 0 && errno == EINTR);
	failure = errno;
	errno = saved;
	if (got < 0)
		return failure;
	*number = info.si_signo;
	return 0;
}

EXPORT int signalfd(int fd, const sigset_t *set, int flags)
{
	sigset_t copy;

	if (next_signalfd == NULL)
		mew_recorder_find(&next_signalfd, "signalfd");
	return next_signalfd(fd, without_own(set, &copy), flags);
}
