/*
 * host.h - the command's side: one benchmark program, driven through worker processes.
 * Layer L4. A crash, an endless loop or an exit in a body loses that case; the next one gets a fresh worker.
 */
#ifndef MEW_HOST_H
#define MEW_HOST_H

#include "plan.h"
#include "wire.h"

struct mew_host_case { /* as the worker lists it */
	char *key, *label, *tags, *after;
	unsigned threads;
	double min_time;
	uint64_t iterations;
	unsigned repetitions;
};

struct mew_host_options {
	bool capture;           /* keep what bodies print apart */
	double timeout;         /* seconds per case and pass; 0: none */
	const char *const *hooks; /* names to activate; borrowed */
	size_t nhooks;
	const volatile int *cancelled; /* may be NULL */
	const char *allocator;  /* file whose malloc its workers use; NULL: what they are linked with */
	bool apart;             /* a worker for each case */
	int inherited;          /* a descriptor that workers keep under its number; 0: none */
	void (*say)(const char *text); /* a line for the user, on the thread that drives the host; may be NULL */
};

struct mew_host {
	const char *program;    /* borrowed */
	const struct mew_host_options *options; /* borrowed */
	struct mew_host_case *cases;
	size_t ncases;
	char *hook_names;
	struct mew_model *facts; /* of the first worker, which had no preload of ours */

	/* the running worker */
	int pid, fd, output_fd;
	int wake_fd;            /* readable when waits shall look at `cancelled`; -1: a signal ends them */
	bool is_shared;         /* cases and facts are another host's */
	uint64_t started_ns;    /* for the timeline */
	const char *preload;    /* LD_PRELOAD for it, or NULL */
	enum mew_pass pass;
	unsigned char *opened;  /* per case: open in this worker */
	bool hooks_active;      /* this worker knows which user hooks run */
	bool greeted;           /* this worker has said what it is */
	bool preloaded;         /* it was started with a preload */
	bool used;              /* this worker has opened a case */
	bool threaded;          /* this worker ran a case with threads */
	bool lingers;           /* a worker had to be killed at its exit: later ones get less time for that */
	uint64_t deadline_ns;   /* of the open case */
	uint32_t deadline_item;
	struct mew_wire in, out;
	char preload_hooks[2048], preload_native[2048];
};

/*
 * Start a worker of the program and learn its cases.
 *
 * Returns  MEW_OK; MEW_E_INVALID naming the program when it cannot be started, is not a mew program, speaks another
 *          protocol, or its entries are not valid; mew_host_close() is due in any case
 */
int mew_host_open(struct mew_host *h, const char *program, const struct mew_host_options *options,
		  struct mew_error *err);
void mew_host_close(struct mew_host *h);

/*
 * A further host of the same program, with workers of its own, for another thread: no worker is started yet. A worker
 * dies with the thread that started it.
 *
 * from     open, and it stays so: its cases and facts are read
 * Returns  MEW_OK, MEW_E_NOMEM, MEW_E_IO; mew_host_close() is due in any case
 */
int mew_host_share(struct mew_host *h, const struct mew_host *from, struct mew_error *err);

/*
 * A fresh worker for a pass: timing with the native malloc ahead of the hooks, memory with the hooks first. One that
 * has run nothing yet is fresh, where the pass needs no preload.
 * Returns MEW_OK or a status with text.
 */
int mew_host_begin_pass(struct mew_host *h, enum mew_pass pass, struct mew_error *err);

/* The driver for mew_plan_run(); valid while the host is. */
struct mew_driver mew_host_driver(struct mew_host *h);

/* What the worker's bodies printed since the last call, NUL-ended; the caller frees it; NULL for nothing. */
char *mew_host_take_output(struct mew_host *h);

/* Kill the running worker and its children. Safe to call twice. */
void mew_host_kill(struct mew_host *h);

#endif
