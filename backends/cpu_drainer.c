/*
 * cpu_drainer.c - the thread of mew that walks the samples of the ring engine.
 * Layer L3. Started and ended by the runner thread, outside windows.
 */
#include "config.h"

#include "cpu_perfring.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "cpu_crew.h"

#define DRAIN_NS 2000000 /* 20 samples at 0.1 ms; a ring holds 500 */

struct mew_cpu_drainer {
	pthread_t thread;
	pid_t process;
	sem_t ready;
	_Atomic bool stops;
};

static void *run_drainer(void *data)
{
	static const struct timespec pause = { 0, DRAIN_NS };
	struct mew_cpu_drainer *d = data;

	(void)prctl(PR_SET_NAME, "mew:samples");
	mew_cpu_crew_hide();
	(void)sem_post(&d->ready);
	while (!atomic_load(&d->stops)) {
		mew_cpu_perfring_drain_all();
		(void)nanosleep(&pause, NULL);
	}
	return NULL;
}

struct mew_cpu_drainer *mew_cpu_drainer_start(void)
{
	struct mew_cpu_drainer *d = calloc(1, sizeof *d);
	sigset_t all, former;
	int error;

	if (d == NULL)
		return NULL;
	d->process = getpid();
	(void)sem_init(&d->ready, 0, 0);
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &former);
	error = pthread_create(&d->thread, NULL, run_drainer, d);
	(void)pthread_sigmask(SIG_SETMASK, &former, NULL);
	if (error != 0) {
		(void)sem_destroy(&d->ready);
		free(d);
		return NULL;
	}
	while (sem_wait(&d->ready) != 0 && errno == EINTR)
		;
	return d;
}

void mew_cpu_drainer_stop(struct mew_cpu_drainer *d)
{
	if (d == NULL)
		return;
	atomic_store(&d->stops, true);
	if (d->process == getpid()) { /* a child of fork has no such thread */
		(void)pthread_join(d->thread, NULL);
		(void)sem_destroy(&d->ready);
	}
	free(d);
}
