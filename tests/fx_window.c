/*
 * fx_window.c - a program with known counts of allocations between functions; built by tests/record_window.sh.
 * Before begins(): 100. In it: 7. Until ends(): 5, of them 2 in checks(). Behind it: 50. What it prints must not change.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__clang__)
#define CODE __attribute__((noinline))
#else
#define CODE __attribute__((noinline, noclone))
#endif
#define BARRIER __asm__ volatile("" : : : "memory")

int begins(int a, double b);
void ends(void);
int checks(const void *p);

static void *volatile sink;

static void take(int n, size_t size)
{
	for (int i = 0; i < n; i++)
		sink = malloc(size);
}

/* An argument in a vector register. */
CODE int begins(int a, double b)
{
	take(7, 100);
	return a + (int)(b * 2);
}

/* One byte of code. */
CODE void ends(void)
{
	BARRIER;
}

/* A jump among its first five bytes. */
CODE int checks(const void *p)
{
	if (p == NULL)
		return 3;
	take(2, 50);
	return 4;
}

/* A call by a register among its first five bytes: it returns to where it stands. */
void passes(void (*to)(void));
__asm__(".text\n.globl passes\n.type passes, @function\npasses: .cfi_startproc\n push %rax\n .cfi_adjust_cfa_offset 8\n"
	" call *%rdi\n pop %rdx\n .cfi_adjust_cfa_offset -8\n ret\n .cfi_endproc\n.size passes, . - passes\n");

static void rest(void)
{
	int was = checks(NULL);

	take(3, 30);
	printf("%d %d\n", was, checks("x"));
	passes(ends);
	take(50, 1000);
}

static void *blocked(void *argument)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	printf("%d\n", begins(1, *(double *)argument));
	return NULL;
}

static void *spins(void *argument)
{
	for (int i = 0; i < 100000; i++)
		*(long *)argument += checks(i % 2 == 0 ? NULL : NULL);
	return NULL;
}

static int many(void)
{
	pthread_t threads[4];
	long sums[4] = { 0 };

	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, spins, &sums[i]);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	printf("%ld\n", sums[0] + sums[1] + sums[2] + sums[3]);
	ends();
	return 0;
}

static int plugin(const char *path)
{
	void *handle = dlopen(path, RTLD_NOW);
	int (*late)(int);

	if (handle == NULL)
		return 1;
	*(void **)&late = dlsym(handle, "late");
	take(9, 10);
	printf("%d\n", late(4));
	rest();
	return 0;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	double half = 2.5;
	pthread_t t;

	setvbuf(stdout, NULL, _IONBF, 0);
	take(100, 1000);
	if (strcmp(how, "many") == 0)
		return many();
	if (strcmp(how, "plugin") == 0)
		return plugin(argv[2]);
	if (strcmp(how, "never") == 0)
		return 9;
	if (strcmp(how, "fork") == 0) {
		printf("%d\n", begins(1, half));
		if (fork() == 0) {
			take(11, 20);
			_exit(0);
		}
		(void)wait(NULL);
	} else if (strcmp(how, "thread") == 0) {
		pthread_create(&t, NULL, blocked, &half);
		pthread_join(t, NULL);
	} else {
		printf("%d\n", begins(1, half));
	}
	rest();
	if (strcmp(how, "becomes") == 0)
		(void)execl("/bin/echo", "echo", "another", (char *)0);
	return 0;
}
