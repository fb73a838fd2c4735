/*
 * recorder_signals.c - waits for signals in a recorded program: the recorder's own is none that a program may wait for.
 * Layer L6. Any thread, signal handlers too. A program that blocks every signal and takes what comes would take a tick
 * for news; one that waits until a handler has run would go on with a tick.
 */
#include "config.h"

#include "recorder_exec.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "cpu_timer.h"

#define EXPORT __attribute__((visibility("default")))

typedef int wait_fn(const sigset_t *, siginfo_t *, const struct timespec *);
typedef int descriptor_fn(int, const sigset_t *, int);
typedef int suspend_fn(const sigset_t *);
typedef int ppoll_fn(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);
typedef int pselect_fn(int, fd_set *, fd_set *, fd_set *, const struct timespec *, const sigset_t *);
typedef int ppoll_checked_fn(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *, size_t);
typedef int epoll_fn(int, struct epoll_event *, int, int, const sigset_t *);
typedef int epoll2_fn(int, struct epoll_event *, int, const struct timespec *, const sigset_t *);
static wait_fn *next_sigtimedwait;
static descriptor_fn *next_signalfd;
static suspend_fn *next_sigsuspend;
static ppoll_fn *next_ppoll;
static pselect_fn *next_pselect;
static ppoll_checked_fn *next_ppoll_checked;
static epoll_fn *next_epoll_pwait;
static epoll2_fn *next_epoll_pwait2;

static bool guards; /* before, the captures themselves wait for it to see that it comes */

void mew_recorder_signals_guard(void)
{
	/* before a handler needs them; the others are for no handler */
	mew_recorder_find(&next_sigsuspend, "sigsuspend");
	mew_recorder_find(&next_ppoll, "ppoll");
	mew_recorder_find(&next_pselect, "pselect");
	mew_recorder_find(&next_ppoll_checked, "__ppoll_chk");
	mew_recorder_find(&next_epoll_pwait, "epoll_pwait");
	mew_recorder_find(&next_epoll_pwait2, "epoll_pwait2");
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

/* --- waits with a mask of their own: a tick comes when they are over ---------------------------------------------- */

/* `mask` and the recorder's signal, in `copy`. NULL stays: then the thread's own holds. */
static const sigset_t *with_own(const sigset_t *mask, sigset_t *copy)
{
	int number = mew_cpu_signal_number();

	if (!guards || mask == NULL || number <= 0)
		return mask;
	*copy = *mask;
	(void)sigaddset(copy, number);
	return copy;
}

EXPORT int sigsuspend(const sigset_t *mask)
{
	sigset_t copy;

	if (next_sigsuspend == NULL)
		mew_recorder_find(&next_sigsuspend, "sigsuspend");
	return next_sigsuspend(with_own(mask, &copy));
}

/* With the thread's own mask, without that signal; 0: with all of it. */
static int suspend_but_for(int number)
{
	sigset_t now;

	(void)sigemptyset(&now);
	(void)pthread_sigmask(SIG_BLOCK, NULL, &now);
	if (number != 0 && sigdelset(&now, number) != 0)
		return -1;
	return sigsuspend(&now);
}

EXPORT int pause(void)
{
	return suspend_but_for(0);
}

/* sigpause() is two functions, and which one a program gets its headers decide: names for the linker, none for C. */
int pause_without(int number) __asm__("__xpg_sigpause");
int pause_with(int mask) __asm__("sigpause");
int pause_either(int number_or_mask, int is_number) __asm__("__sigpause");

EXPORT int pause_without(int number)
{
	return suspend_but_for(number);
}

/* The first 32 signals, as in BSD. */
EXPORT int pause_with(int mask)
{
	sigset_t set;

	(void)sigemptyset(&set);
	for (int i = 0; i < 32; i++)
		if (((unsigned)mask >> i & 1u) != 0)
			(void)sigaddset(&set, i + 1);
	return sigsuspend(&set);
}

EXPORT int pause_either(int number_or_mask, int is_number)
{
	return is_number != 0 ? suspend_but_for(number_or_mask) : pause_with(number_or_mask);
}

EXPORT int ppoll(struct pollfd *list, nfds_t n, const struct timespec *limit, const sigset_t *mask)
{
	sigset_t copy;

	if (next_ppoll == NULL)
		mew_recorder_find(&next_ppoll, "ppoll");
	return next_ppoll(list, n, limit, with_own(mask, &copy));
}

/* ppoll() of programs built with _FORTIFY_SOURCE; the next one ends those whose list of so many bytes is too short. */
int ppoll_checked(struct pollfd *list, nfds_t n, const struct timespec *limit, const sigset_t *mask, size_t bytes)
	__asm__("__ppoll_chk");

EXPORT int ppoll_checked(struct pollfd *list, nfds_t n, const struct timespec *limit, const sigset_t *mask, size_t bytes)
{
	sigset_t copy;

	if (next_ppoll_checked == NULL)
		mew_recorder_find(&next_ppoll_checked, "__ppoll_chk");
	return next_ppoll_checked(list, n, limit, with_own(mask, &copy), bytes);
}

EXPORT int pselect(int n, fd_set *in, fd_set *out, fd_set *other, const struct timespec *limit, const sigset_t *mask)
{
	sigset_t copy;

	if (next_pselect == NULL)
		mew_recorder_find(&next_pselect, "pselect");
	return next_pselect(n, in, out, other, limit, with_own(mask, &copy));
}

EXPORT int epoll_pwait(int fd, struct epoll_event *events, int n, int limit_ms, const sigset_t *mask)
{
	sigset_t copy;

	if (next_epoll_pwait == NULL)
		mew_recorder_find(&next_epoll_pwait, "epoll_pwait");
	return next_epoll_pwait(fd, events, n, limit_ms, with_own(mask, &copy));
}

/* glibc has it from 2.35 on; where it has none, nobody can have been linked with it. */
EXPORT int epoll_pwait2(int fd, struct epoll_event *events, int n, const struct timespec *limit, const sigset_t *mask)
{
	sigset_t copy;

	if (next_epoll_pwait2 == NULL)
		mew_recorder_find(&next_epoll_pwait2, "epoll_pwait2");
	return next_epoll_pwait2(fd, events, n, limit, with_own(mask, &copy));
}
