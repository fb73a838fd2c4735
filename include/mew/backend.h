/*
 * mew/backend.h - the contract of a capture backend: one const object per file under backends/.
 * Layer L2. A backend never sees entries, files or names; it gets a window and pushes records into the sink.
 *
 * Order of calls for one body:
 *   case_begin                        runner thread, the case's set-up comes next; once for all its bodies
 *   open                              runner thread, nothing of the body has run
 *   thread_begin                      each benchmark thread, before the window; may allocate and make system calls
 *   begin                             one thread, all benchmark threads ready and waiting: the window opens
 *   pause / resume                    a benchmark thread, inside the window, outermost pairs only
 *   wait                              a benchmark thread, inside the window: it begins or ends to wait for the others
 *   turn                              a benchmark thread, inside the window: it has ended a turn of the loop, or several at once
 *   end                               one thread, all benchmark threads waiting: the window closes; nothing is recorded after
 *   thread_end                        each benchmark thread that had thread_begin
 *   drain                             runner thread, the body has returned: push what was seen
 *   close                             runner thread, always, also after a failure and when drain was skipped
 *   case_end                          runner thread, the case's teardown is over
 */
#ifndef MEW_BACKEND_H
#define MEW_BACKEND_H

#include "mew.h"

#include <stdbool.h>

#define MEW_BACKEND_ABI 1u

struct mew_capture; /* the backend's own */
struct mew_sink;    /* src/sink.h */

enum mew_pass {
	MEW_PASS_TIME, MEW_PASS_MEMORY, MEW_PASS_CPU, MEW_PASSES,
	MEW_PASS_RESIDENT = MEW_PASSES /* no pass of its own: a call of the body in the memory pass, without the hooks */
};

struct mew_capture_config {
	enum mew_pass pass;
	unsigned threads;        /* benchmark threads of the case */
	uint64_t interval_ns;    /* CPU pass: time between samples */
	int stacks;              /* memory pass: capture stacks */
	int pause_cpu;           /* CPU pass: read the CPU clock around pauses */
	enum mew_clock clock;    /* CPU pass: what the samples are spread over */
	int engine;              /* CPU pass: the backend's number of the one way to sample that is tried; 0: the best */
	int whole;               /* an unmodified program until its end: no descriptor and no signal more than the samples need */
	uintptr_t entry_lo, entry_hi; /* code range of the runner's call of the body: stacks end below it */
};

struct mew_backend {
	unsigned abi;      /* MEW_BACKEND_ABI */
	const char *name;  /* the row's `profiler` */
	const char *help;  /* one line */
	enum mew_pass pass;
	/*
	 * Can this process do it now? Returns MEW_OK or a status with the text saying what is missing and the remedy.
	 */
	int (*probe)(struct mew_error *err);
	int (*open)(struct mew_capture **out, const struct mew_capture_config *config, struct mew_error *err);
	int (*thread_begin)(struct mew_capture *c, unsigned thread, struct mew_error *err);
	int (*begin)(struct mew_capture *c, struct mew_error *err);
	void (*pause)(struct mew_capture *c, unsigned thread);
	void (*resume)(struct mew_capture *c, unsigned thread);
	void (*end)(struct mew_capture *c);
	void (*thread_end)(struct mew_capture *c, unsigned thread);
	int (*drain)(struct mew_capture *c, struct mew_sink *sink, struct mew_error *err);
	void (*close)(struct mew_capture *c);
	void (*turn)(struct mew_capture *c, unsigned thread, uint64_t iterations); /* may be NULL */
	void (*wait)(struct mew_capture *c, unsigned thread, bool waits); /* may be NULL; not a pause of the body's */
	void (*case_begin)(void); /* may be NULL; a case that was not ended gives way to the next one */
	void (*case_end)(void);   /* may be NULL */
};

#endif
