/*
 * guest_host.h - the command's side of a program whose framework drives the bodies: one process for all cases of a
 * pass. Layer L4.
 */
#ifndef MEW_GUEST_HOST_H
#define MEW_GUEST_HOST_H

#include "guest_channel.h"
#include "host.h"
#include "mew/guest.h"

struct mew_guest_host {
	const char *program;                    /* borrowed */
	const struct mew_host_options *options; /* borrowed */
	int output_fd, memory_fd;
	struct mew_guest_channel *channel;
	char **names;                           /* of the cases, in the order in which they run */
	size_t nnames;
	struct mew_model *facts;                /* of the process that listed them */
	bool counted;                           /* it takes a number of iterations */
	struct mew_guest_process {              /* the one that runs */
		int pid;                        /* 0: none */
		uint64_t at;                    /* its frames up to here were taken */
		uint64_t since_ns, started_ns;  /* of the last of them, or of its start */
	} process;
	char preload[4096];
};

struct mew_guest_turns {
	int page_fd;             /* of mew_pace_create() */
	unsigned side;           /* enum mew_side */
};

/* How a process is to run. */
struct mew_guest_request {
	enum mew_guest_pass pass;
	const char *filter;      /* Google Benchmark's regular expression; NULL: what the program runs by itself */
	double min_time;         /* seconds; 0: the program's */
	uint64_t iterations;     /* instead, where the host is counted; 0: none */
	const struct mew_guest_turns *turns; /* with another build's process; NULL: none */
	unsigned repetitions;    /* 0: the program's */
	bool interleave, stacks;
	uint64_t interval_ns;
	enum mew_clock clock;
	unsigned process;
	/* Called for each model as it comes, and about a hundred times a second with NULL. */
	void (*take)(void *data, struct mew_model *piece);
	void *data;
};

enum mew_guest_end { MEW_GUEST_ENDED, MEW_GUEST_TIMED_OUT, MEW_GUEST_CANCELLED };

/*
 * Start the program to learn its cases.
 *
 * Returns  MEW_OK; MEW_E_INVALID naming the program and what to do when it cannot be run, runs no benchmarks of Google
 *          Benchmark, or runs ones that mew cannot reach; mew_guest_close() is due in any case
 */
int mew_guest_open(struct mew_guest_host *h, const char *program, const struct mew_host_options *options,
		   struct mew_error *err);
void mew_guest_close(struct mew_guest_host *h);

/* Start a process. Returns MEW_OK, or a status when it could not be started. */
int mew_guest_start_process(struct mew_guest_host *h, const struct mew_guest_request *rq, struct mew_error *err);

/*
 * Take what it has reported by now.
 *
 * wait_status  as of waitpid(), when it has ended
 * Returns      whether it has ended, and what it started with it; *end says how
 */
bool mew_guest_look(struct mew_guest_host *h, const struct mew_guest_request *rq, enum mew_guest_end *end,
		    int *wait_status);

/* One process, until it ends; status and wait_status as of these two. */
int mew_guest_run_process(struct mew_guest_host *h, const struct mew_guest_request *rq, enum mew_guest_end *end,
			  int *wait_status, struct mew_error *err);

/* The number of the case of that name; h->nnames when there is none. */
size_t mew_guest_find(const struct mew_guest_host *h, const char *name);

/* A name as part of an expression for them: puts at most twice its length, without an end. Returns how much. */
size_t mew_guest_escape(char *out, const char *name);
/* The expression for that case alone; freed by the caller; NULL without memory. */
char *mew_guest_filter_one(const char *name);

/* What the processes printed since the last call; freed by the caller; NULL for nothing. */
char *mew_guest_take_output(struct mew_guest_host *h);

#endif
