/*
 * plan.h - which blocks of which cases run in which order: calibration, warm-up, repetitions, processes, passes.
 * Layer L4. Knows a driver, not whether it is this process or another.
 */
#ifndef MEW_PLAN_H
#define MEW_PLAN_H

#include "runner.h"

/* Open, run and close as in runner.h. After `renew` the next call reaches a fresh process; NULL when there is none. */
struct mew_driver {
	void *data;
	int (*open)(void *data, uint32_t item, enum mew_pass pass, struct mew_error *err);
	int (*run)(void *data, const struct mew_request *rq, struct mew_model *out, struct mew_error *err);
	int (*close)(void *data, uint32_t item, enum mew_pass pass, struct mew_error *err);
	char *(*said)(void *data); /* what was printed since the last open, for the caller to free; NULL: nothing */
	int (*renew)(void *data, struct mew_error *err);
};

struct mew_plan_case {
	uint32_t item;       /* of the driver's catalogue */
	const char *key, *label, *tags, *program; /* borrowed */
	const char *allocator; /* that it runs under; NULL: its own; borrowed */
	const char *after;   /* key or name that the entry comes after; may be NULL; borrowed */
	unsigned threads;
	double min_time;     /* of the entry; 0: the option's */
	uint64_t iterations;
	unsigned repetitions;

	uint64_t loops;      /* found by calibration */
	bool dead;           /* failed: no more blocks */
	bool open;
	uint64_t calibrated_ns; /* its loops were found then, for the timeline; 0: they were not */
	uint64_t ready_ns;   /* on the timeline: its next visit could begin then, if nothing else ran */
	uint64_t queued_ns;  /* its last visit waited so long while others ran; 0: it did not */
	uint64_t start_ns, end_ns; /* of its last visit in this pass */
};

/* The row of the case, with its threads, label and tags; made where it is not there. NULL without memory. */
struct mew_case *mew_plan_row(struct mew_model *m, const struct mew_plan_case *c);

struct mew_plan_options { /* all set; mew_plan_defaults() */
	double min_time, max_time, min_warmup_time, precision;
	uint64_t iterations;
	unsigned repetitions, processes;
	bool latency, interleave, dry_run;
	bool one_process;        /* timing: only process number `process` of all; the one after goes on with its cases */
	unsigned process;
	uint64_t ready_ns;       /* the pass could have begun its cases then, and ran others; 0: it begins now */
	uint64_t free_ns;        /* the last visit of the pass, in another call, ended then; 0: none that matters */
	const struct mew_plan_case *all; /* for the timeline: every case of the pass, where each has a call of its own; may be NULL */
	size_t nall;
	bool cold_resident;      /* growth of resident memory in the first call of the body, before any warm-up */
	uint64_t memory_iterations;
	bool stacks;
	double interval;
	uint64_t inner_iterations;
	bool pause_cpu;
	enum mew_clock clock;
	/* Called before each block, outside windows; may be NULL. Returns false to stop the run. */
	bool (*progress)(void *data, const struct mew_plan_case *c, enum mew_pass pass, size_t done, size_t total);
	void *progress_data;
};
void mew_plan_defaults(struct mew_plan_options *o);

/* Seconds as whole nanoseconds; what is too long is some 30 years. */
uint64_t mew_plan_ns(double seconds);

/*
 * Run a pass over all cases; failed cases get a row with the reason and do not stop the others.
 *
 * cases    n of them; loops, dead and open are the plan's
 * model    gets the rows, runs and stacks
 * Returns  MEW_OK, also when cases failed; MEW_E_BUSY when progress stopped the run; else the driver is unusable, and
 *          what its earlier processes measured has figures
 */
int mew_plan_run(const struct mew_driver *d, struct mew_plan_case *cases, size_t n, enum mew_pass pass,
		 const struct mew_plan_options *o, struct mew_model *model, struct mew_error *err);

/* Figures of time, from what there is, of a case that gets no more of its processes (one_process); it may have them. */
void mew_plan_end(struct mew_plan_case *c, const struct mew_plan_options *o, struct mew_model *model);

/*
 * Iterations per sample such that one lasts target_ns, from the last run of the row, a calibration; those, if it took
 * long.
 */
uint64_t mew_plan_loops(const struct mew_case *row, uint64_t target_ns);

/* The driver that runs blocks in this process. */
struct mew_driver mew_driver_direct(struct mew_runner *r);

#endif
