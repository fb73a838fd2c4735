/*
 * stacks.h - what all reports of stacks share: the frames of a stack, the sums of a case, names fit for any reader.
 * Layer L5. Reads a sealed model.
 */
#ifndef MEW_STACKS_H
#define MEW_STACKS_H

#include "functions.h"
#include "model.h"
#include "writer.h"

#define MEW_NO_FUNCTION UINT32_MAX

/* --- frames ----------------------------------------------------------------------------------------------------- */

struct mew_stack_frame {
	uint32_t location; /* into m->locations */
	uint32_t function; /* into m->functions; MEW_NO_FUNCTION: the place has no name */
	uint32_t line;     /* where it calls or costs; 0 unknown */
	uint32_t inlined;  /* 0: the function that the compiler laid there; 1: what it inlined into that; and so on */
};

struct mew_stack_walk { /* private */
	const struct mew_model *m;
	uint32_t first, left; /* frames of the model that are still to come, outermost last */
	uint32_t lines;       /* of the location before, not yet given */
};

/* False for MEW_NO_STACK, and for a stack that holds no frame. */
static inline bool mew_stack_known(const struct mew_model *m, uint32_t stack)
{
	return stack < m->nstacks && m->stacks[stack].depth > 0;
}

/* Begin at the outermost frame. A stack that is not known has none. Context: any thread. */
struct mew_stack_walk mew_stack_begin(const struct mew_model *m, uint32_t stack);
/* The next frame, inwards; false at the end. */
bool mew_stack_next(struct mew_stack_walk *walk, struct mew_stack_frame *frame);

/* The place of a frame in the table of functions. */
static inline uint32_t mew_stack_function(const struct mew_shown_functions *f, const struct mew_stack_frame *frame)
{
	return frame->function == MEW_NO_FUNCTION ? f->of_location[frame->location] : f->of_function[frame->function];
}

/* --- sums ------------------------------------------------------------------------------------------------------- */

enum mew_stack_value {
	MEW_STACK_WEIGHT = 0, /* MEW_KIND_CPU: nanoseconds */
	MEW_STACK_SAMPLES,
	MEW_STACK_PEAK = 0, /* MEW_KIND_MEMORY: bytes alive at the high-water mark */
	MEW_STACK_CUMULATIVE,
	MEW_STACK_ALLOCATIONS,
	MEW_STACK_NET,
	MEW_STACK_VALUES
};

struct mew_stack_sum {
	uint32_t stack; /* MEW_NO_STACK: not known */
	uint32_t thread;
	bool blocked;
	uint64_t values[MEW_STACK_VALUES]; /* stay at INT64_MAX, the most that every format can hold */
};

/* a + b, or INT64_MAX. */
uint64_t mew_stack_plus(uint64_t a, uint64_t b);

/*
 * Add up the samples or allocation stacks of a case.
 *
 * apart    one sum for each stack, thread and state of the thread; otherwise one for each stack
 * n        returned
 * Returns  ascending by stack, thread and state, what has no stack last; freed by free(); NULL without memory
 * Context  any thread
 */
struct mew_stack_sum *mew_stack_sums(const struct mew_model *m, const struct mew_case *c, enum mew_kind kind,
				     bool apart, size_t *n);

struct mew_stack_metric {
	const char *what; /* "memory at the peak" */
	unsigned value;   /* enum mew_stack_value */
	bool bytes;       /* otherwise a count */
};
#define MEW_MEMORY_METRICS 4
/* What the memory stacks of a case tell, the figure that most ask for first. */
extern const struct mew_stack_metric mew_memory_metrics[MEW_MEMORY_METRICS];

/*
 * Whether a case of the model has a stack that counts something: samples with a weight, or blocks. Formats of one file
 * would be empty without. Context: any thread.
 */
bool mew_stack_any(const struct mew_model *m);

/* What the samples of a case are spread over: "wall" or "cpu". Context: any thread. */
const char *mew_stack_clock(const struct mew_case *c);

/* What one sample stands for: the interval that was delivered, else the one asked for; 0 unknown. */
uint64_t mew_stack_interval_ns(const struct mew_case *c);

/*
 * Pointers to c->samples ascending by time and then thread, or each thread by itself.
 *
 * Returns  freed by free(); NULL without memory
 */
const struct mew_cpu_sample **mew_stack_timeline(const struct mew_case *c, bool by_thread);

/* The module of the program that a case belongs to; MEW_NO_MODULE when no stack tells. Context: any thread. */
uint32_t mew_stack_program(const struct mew_model *m, const struct mew_case *c);

/* --- text ------------------------------------------------------------------------------------------------------- */

/*
 * Write a name as one line of valid UTF-8: control characters become blanks, bad bytes U+FFFD.
 *
 * never    a character that may not occur, '\0' for none: `instead` is written for it
 */
void mew_write_name(struct mew_writer *w, const char *name, char never, char instead);

/* Seconds as nanoseconds; 0 for what is not finite or not positive, INT64_MAX for more than that holds. */
uint64_t mew_seconds_ns(double seconds);

#endif
