/*
 * fx_threads.c - a benchmark program whose cases make threads of their own, for the tests of the command.
 */
#define _GNU_SOURCE 1
#include <mew.h>

#include <pthread.h>
#include <sys/prctl.h>

static pthread_barrier_t gate;
static pthread_t pool[2];
static int quit;

static void spin(unsigned n)
{
	volatile unsigned x = 1;

	for (unsigned i = 0; i < n; i++)
		x = x * 3 + 1;
}

static void *work_in_pool(void *arg)
{
	(void)prctl(PR_SET_NAME, "pool");
	for (;;) {
		(void)pthread_barrier_wait(&gate);
		if (quit)
			return arg;
		spin(20000);
		(void)pthread_barrier_wait(&gate);
	}
}

static void open_pool(void *arg)
{
	(void)arg;
	quit = 0;
	(void)pthread_barrier_init(&gate, NULL, 3);
	for (unsigned i = 0; i < 2; i++)
		(void)pthread_create(&pool[i], NULL, work_in_pool, NULL);
}

static void close_pool(void *arg)
{
	(void)arg;
	quit = 1;
	(void)pthread_barrier_wait(&gate);
	for (unsigned i = 0; i < 2; i++)
		(void)pthread_join(pool[i], NULL);
	(void)pthread_barrier_destroy(&gate);
}

MEW_BENCHMARK_NAMED(pooled, "threads/pool", .setup = open_pool, .teardown = close_pool)
{
	MEW_LOOP(st) {
		(void)pthread_barrier_wait(&gate);
		(void)pthread_barrier_wait(&gate);
	}
}

static void *work_once(void *arg)
{
	(void)prctl(PR_SET_NAME, "once");
	spin(200000);
	return arg;
}

MEW_BENCHMARK_NAMED(each, "threads/each")
{
	MEW_LOOP(st) {
		pthread_t id;

		if (pthread_create(&id, NULL, work_once, NULL) == 0)
			(void)pthread_join(id, NULL);
	}
}

MEW_MAIN();
