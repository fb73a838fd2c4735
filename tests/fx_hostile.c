/*
 * fx_hostile.c - a program that does what breaks preloaded tools, one thing a run, by the name of its first argument.
 * Test. 100 allocations first; what it prints does not depend on who watches.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *argument;
static volatile double sink;

static void burn(void)
{
	for (int i = 0; i < 20000000; i++)
		sink = sink * 0.5 + i;
}

/* --- ends --------------------------------------------------------------------------------------------------------- */

static void *exit_from_here(void *unused)
{
	(void)unused;
	burn();
	_exit(5);
}

static void *go_on_alone(void *unused)
{
	(void)unused;
	burn();
	exit(6);
}

static int thread_exit(void)
{
	pthread_t t;

	if (pthread_create(&t, NULL, exit_from_here, NULL) == 0)
		(void)pthread_join(t, NULL);
	return 1;
}

static int main_gone(void)
{
	pthread_t t;

	if (pthread_create(&t, NULL, go_on_alone, NULL) == 0)
		pthread_exit(NULL);
	return 1;
}

static int deeper(volatile int *n)
{
	volatile char room[4096];

	room[0] = (char)*n;
	(*n)++;
	return deeper(n) + room[0];
}

static int overflow(void)
{
	volatile int n = 0;

	return deeper(&n);
}

static void on_overflow(int number)
{
	static const char text[] = "caught\n";

	(void)number;
	if (write(1, text, sizeof text - 1) < 0)
		_exit(1);
	_exit(4);
}

static int alternate(void)
{
	static char room[65536];
	stack_t stack = { .ss_sp = room, .ss_size = sizeof room };
	struct sigaction action;

	memset(&action, 0, sizeof action);
	action.sa_handler = on_overflow;
	action.sa_flags = SA_ONSTACK;
	if (sigaltstack(&stack, NULL) != 0 || sigaction(SIGSEGV, &action, NULL) != 0)
		return 1;
	return overflow();
}

static int die(void)
{
	abort();
}

static int sigkill(void)
{
	return raise(SIGKILL);
}

static int fine(void)
{
	return 0;
}

static int become(void)
{
	(void)execl(argument, argument, "became", (char *)0);
	printf("no: %s\n", strerror(errno));
	return 9;
}

static int again(void)
{
	if (getenv("AGAIN") != NULL) {
		printf("LD_PRELOAD is %s\n", getenv("LD_PRELOAD"));
		return 0;
	}
	(void)setenv("AGAIN", "1", 1);
	(void)setenv("LD_PRELOAD", "libm.so.6", 1);
	(void)execl("/proc/self/exe", "hostile", "preload_again", (char *)0);
	return 1;
}

/* --- small stacks --------------------------------------------------------------------------------------------------- */

#define W "w", "w", "w", "w", "w", "w", "w", "w", "w", "w", "w", "w", "w", "w", "w", "w"
static void *many_words(void *unused)
{
	(void)unused;
	(void)execl("/bin/echo", "echo", W, W, W, W, W, W, W, W, W, W, W, W, (char *)0);
	return NULL;
}

static int on_small_stack(void *(*run)(void *))
{
	pthread_attr_t a;
	pthread_t t;

	if (pthread_attr_init(&a) != 0 || pthread_attr_setstacksize(&a, 16384) != 0 || pthread_create(&t, &a, run, NULL) != 0)
		return 1;
	(void)pthread_join(t, NULL);
	return 1;
}

static int words(void)
{
	return on_small_stack(many_words);
}

static void *start_and_wait(void *unused)
{
	static char *argv[] = { NULL, "return", NULL };
	int status = -1;
	pid_t pid;

	argv[0] = (char *)(unsigned long)argument;
	if (posix_spawnp(&pid, argument, NULL, NULL, argv, environ) == 0 && waitpid(pid, &status, 0) == pid)
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 98);
	return unused;
}

static int spawn_small(void)
{
	return on_small_stack(start_and_wait);
}

static void on_crash(int number)
{
	(void)number;
	(void)execl(argument, argument, "crashed", (char *)0);
	_exit(1);
}

/* A crash handler that becomes the program that reports the crash. */
static int crash_exec(void)
{
	const size_t guard = 65536; /* below it, where one page alone may be overrun */
	char *room = mmap(NULL, guard + 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t stack = { .ss_sp = room + guard, .ss_size = 8192 };
	struct sigaction action;

	memset(&action, 0, sizeof action);
	action.sa_handler = on_crash;
	action.sa_flags = SA_ONSTACK;
	if (room == MAP_FAILED || mprotect(room + guard, 8192, PROT_READ | PROT_WRITE) != 0)
		return 1;
	if (sigaltstack(&stack, NULL) != 0 || sigaction(SIGSEGV, &action, NULL) != 0)
		return 1;
	return raise(SIGSEGV);
}

/* --- how a program is named ----------------------------------------------------------------------------------------- */

/* Folder by folder, as a shell that is its own looks for a program: the first that runs. */
static int first_that_runs(void)
{
	char *words = strdup(argument), *rest = words;

	for (char *path = strsep(&rest, ":"); path != NULL; path = strsep(&rest, ":"))
		(void)execl(path, path, "return", (char *)0);
	return 1;
}

static int by_number(void)
{
	static char *const argv[] = { "number", "return", NULL };

	(void)fexecve(open(argument, O_RDONLY | O_CLOEXEC), argv, environ);
	return 1;
}

/* --- descriptors and signals ---------------------------------------------------------------------------------------- */

static int descriptors(void)
{
	int a = open("/dev/null", O_RDONLY), b;

	burn();
	b = dup(a);
	for (int i = 3; i < 1024; i++)
		(void)close(i);
	printf("%d %d\n", a, b);
	burn();
	return open("/dev/null", O_RDONLY) == 3 ? 0 : 1;
}

static void *work(void *unused)
{
	(void)unused;
	burn();
	return NULL;
}

/* What arrives while a thread works: nothing of this program sends anything. */
static int waits_all(void)
{
	const struct timespec limit = { 0, 200000000 };
	pthread_t t;
	sigset_t all;
	siginfo_t info;
	int got;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, NULL);
	if (pthread_create(&t, NULL, work, NULL) != 0)
		return 1;
	burn();
	got = sigtimedwait(&all, &info, &limit);
	(void)pthread_join(t, NULL);
	printf("%d\n", got);
	return 0;
}

static int by_descriptor(void)
{
	struct signalfd_siginfo info;
	sigset_t all;
	int fd;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	fd = signalfd(-1, &all, SFD_NONBLOCK);
	burn();
	printf("%d\n", (int)read(fd, &info, sizeof info));
	return 0;
}

/* --- limits --------------------------------------------------------------------------------------------------------- */

/* Some allocations fit below the limit, and not all. */
static int limited(void)
{
	const struct rlimit wanted = { (rlim_t)1 << 30, (rlim_t)1 << 30 };
	struct rlimit got;
	int n = 0;

	if (setrlimit(RLIMIT_AS, &wanted) != 0 || getrlimit(RLIMIT_AS, &got) != 0)
		return 1;
	while (n < 40 && malloc((size_t)32 << 20) != NULL)
		n++;
	printf("%llu %s\n", (unsigned long long)got.rlim_cur, n < 20 ? "too few" : n < 40 ? "some" : "all");
	return 0;
}

/* --- processes ------------------------------------------------------------------------------------------------------ */

static int zombie(void)
{
	int ready[2];
	char c;

	if (pipe(ready) != 0)
		return 1;
	if (fork() == 0)
		_exit(0);
	(void)close(ready[1]);
	return read(ready[0], &c, 1) == 0 ? 0 : 1; /* it is over */
}

static int spawn(void)
{
	int n = atoi(argument), status, bad = 0;

	for (int i = 0; i < n; i++) {
		pid_t pid = vfork();

		if (pid == 0) {
			(void)execl("/bin/true", "true", (char *)0);
			_exit(1);
		}
		bad += waitpid(pid, &status, 0) != pid || status != 0;
	}
	printf("%d started, %d failed\n", n, bad);
	return 0;
}

static long mapped_pages(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long pages = 0;

	if (f == NULL || fscanf(f, "%ld", &pages) != 1)
		pages = 0;
	if (f != NULL)
		(void)fclose(f);
	return pages;
}

static void vfork_and_wait(void)
{
	pid_t pid = vfork();

	if (pid == 0) {
		(void)execl(argument, argument, "return", W, W, W, W, W, W, W, W, (char *)0); /* more than the wrapper has on the stack */
		_exit(1);
	}
	(void)waitpid(pid, NULL, 0);
}

/* Do children of vfork leave something in their parent? */
static int leaves(void)
{
	long before;

	vfork_and_wait();
	before = mapped_pages();
	for (int i = 0; i < 20; i++)
		vfork_and_wait();
	printf("%s\n", before == 0 || mapped_pages() - before > 10 ? "grown" : "steady");
	return 0;
}

static int forks(void)
{
	int n = atoi(argument), status, sum = 0;

	for (int i = 0; i < n; i++)
		if (fork() == 0) {
			for (int k = 0; k < i; k++)
				free(malloc(10));
			_exit(i);
		}
	for (int i = 0; i < n; i++)
		if (wait(&status) > 0)
			sum += WEXITSTATUS(status);
	printf("%d\n", sum);
	return 0;
}

/* A child that has no descriptor to answer by. */
static int fork_full(void)
{
	const struct rlimit few = { 32, 64 };
	int status;

	setrlimit(RLIMIT_NOFILE, &few);
	while (dup(0) >= 0)
		;
	if (fork() == 0) {
		free(malloc(10));
		_exit(dup(0) < 0 ? 3 : 4);
	}
	wait(&status);
	return WEXITSTATUS(status);
}

/* On one processor, so that the parent maps the first memory of its own before the child runs. */
static int fork_maps(void)
{
	int status, bad = 0;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof one, &one);
	for (int i = 0; i < 20; i++) {
		if (fork() == 0) {
			if (fork() == 0)
				_exit(0);
			mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			wait(&status);
			_exit(status != 0);
		}
		wait(&status);
		bad += status != 0;
	}
	return bad;
}

static int drop(void)
{
	if (setgid(65534) != 0 || setuid(65534) != 0)
		return 1;
	work(NULL);
	printf("%d\n", (int)getuid());
	return waits_all();
}

static int drop_fork(void)
{
	int status;

	if (setgid(65534) != 0 || setuid(65534) != 0)
		return 1;
	if (fork() == 0)
		_exit(7);
	(void)wait(&status);
	return WEXITSTATUS(status);
}

static const struct {
	const char *name;
	int (*run)(void);
} ways[] = {
	{ "return", fine }, { "thread_exit", thread_exit }, { "main_gone", main_gone }, { "overflow", overflow },
	{ "abort", die }, { "sigkill", sigkill }, { "alternate", alternate }, { "exec", become }, { "preload_again", again },
	{ "limited", limited }, { "words", words }, { "descriptors", descriptors }, { "waits_all", waits_all }, { "signalfd", by_descriptor },
	{ "spawn_small", spawn_small }, { "crash_exec", crash_exec }, { "first", first_that_runs }, { "fexecve", by_number },
	{ "leaves", leaves }, { "zombie", zombie }, { "spawn", spawn }, { "forks", forks }, { "fork_maps", fork_maps },
	{ "fork_full", fork_full },
	{ "drop", drop }, { "drop_fork", drop_fork },
};

int main(int argc, char **argv)
{
	for (int i = 0; i < 100; i++) {
		void *volatile block = malloc(10);

		free(block);
	}
	argument = argc > 2 ? argv[2] : "1";
	for (size_t i = 0; argc > 1 && i < sizeof ways / sizeof ways[0]; i++)
		if (strcmp(argv[1], ways[i].name) == 0)
			return ways[i].run();
	return 99;
}
