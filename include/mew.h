/*
 * mew.h - benchmark cases of a C or C++ program: time, allocations and hot functions of the timing loop alone.
 *
 * This is the only header a user needs. Every name here begins with mew_ or MEW_; members that end in an underscore
 * are private. Nothing in this interface prints, logs or exits, except mew_main() and a budget that nobody handles.
 *
 * Units        *_ns nanoseconds, *_bytes bytes, counts plain; times without a suffix are seconds
 * Ownership    arguments are borrowed for the call; results belong to the caller and are freed by the function named
 * Errors       NULL or a negative enum mew_status; mew_last_error() has the sentence, per thread
 * Context      "caller thread" unless a function says otherwise; "body thread" means inside a benchmark body
 */
#ifndef MEW_H
#define MEW_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define MEW_VERSION "0.1.0"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define MEW_API __attribute__((visibility("default")))
#else
#error "mew needs gcc or clang"
#endif

/* Private: what the macros below need to be silent under either language's stricter warnings. */
#ifdef __cplusplus
#define MEW_CAST_(type, value) static_cast<type>(value)
#define MEW_NULL_ nullptr
#else
#define MEW_CAST_(type, value) ((type)(value))
#define MEW_NULL_ NULL
#endif
#define MEW_JOIN_(a, b) MEW_JOIN_NOW_(a, b)
#define MEW_JOIN_NOW_(a, b) a##b

/* --- status and errors ---------------------------------------------------------------------------------------- */

enum mew_status {
	MEW_OK = 0,
	MEW_E_INVALID = -1,     /* an argument, name, option or file is not usable */
	MEW_E_NOMEM = -2,
	MEW_E_UNSUPPORTED = -3, /* this machine, build or library cannot do it */
	MEW_E_DENIED = -4,      /* the system refused */
	MEW_E_BUSY = -5,        /* a profiling session is running in this process */
	MEW_E_IO = -6,
	MEW_E_LOOP = -7,        /* the body left its loop early, never entered it, or looped twice */
	MEW_E_LOST = -8,        /* records were dropped, figures would be wrong */
	MEW_E_BODY = -9         /* the body failed, threw, crashed or ran out of time */
};

struct mew_error {
	int status;     /* enum mew_status */
	int sys_errno;  /* errno of the failing call, or 0 */
	char text[240]; /* one sentence: the object and the remedy */
};

/*
 * The last failure on this thread.
 *
 * Returns  never NULL; status MEW_OK and an empty text where nothing failed yet; overwritten by the next failure
 * Context  any thread
 */
MEW_API const struct mew_error *mew_last_error(void);

/* Short name of a status, such as "MEW_E_LOOP". Returns a constant string. Context: any thread, signal. */
MEW_API const char *mew_status_name(int status);

/* Version of the library at run time; compare with MEW_VERSION. Context: any thread, signal. */
MEW_API const char *mew_version(void);

/* --- entries ---------------------------------------------------------------------------------------------------- */

struct mew_state;

typedef void mew_run_fn(struct mew_state *st, void *arg);
typedef void mew_setup_fn(void *arg);
typedef const char *mew_expect_fn(struct mew_state *st, void *arg);

/*
 * One benchmark, or a family of cases of it. Arrays of entries end with {0}. The layout is frozen.
 *
 * name         unique and not blank; no control characters, no "/case:"
 * run          the body; called once or more for each pass
 * arg          handed to run, setup, teardown and expect
 * cases        NULL, or labels ended by NULL: one case each, key "name/case:<i>"; no label twice
 * tags         NULL, or words separated by blanks
 * threads      benchmark threads; 0 means 1
 * setup        once per case and pass before the first body, outside every figure; may be NULL
 * teardown     once per case and pass after the last body, on every way out; may be NULL
 * after        key (or name) of an entry that must run before this one; may be NULL
 * expect       called after each complete body: NULL when it did what it must have done, else one sentence that
 *              fails the case, so that a fast result which did nothing is not a result; may be NULL
 * min_time     seconds to measure at least; 0 is the option's value
 * iterations   exactly so many per repetition; 0 lets mew decide
 * repetitions  0 is the option's value
 */
struct mew_entry {
	const char *name;
	mew_run_fn *run;
	void *arg;
	const char *const *cases;
	const char *tags;
	unsigned threads;
	mew_setup_fn *setup;
	mew_setup_fn *teardown;
	const char *after;
	mew_expect_fn *expect;
	double min_time;
	uint64_t iterations;
	unsigned repetitions;
	uint64_t reserved_[8]; /* zero */
};

struct mew_registration_ { /* one node of the program's list; made by MEW_BENCHMARK, never by hand */
	const struct mew_entry *entry;
	struct mew_registration_ *next;
	const char *compiler; /* that built the body */
	int optimized;
};
#ifdef __clang__
#define MEW_COMPILER_ __VERSION__
#else
#define MEW_COMPILER_ "gcc " __VERSION__
#endif
#ifdef __OPTIMIZE__
#define MEW_BUILD_ MEW_COMPILER_, 1
#else
#define MEW_BUILD_ MEW_COMPILER_, 0
#endif
MEW_API void mew_register_(struct mew_registration_ *node);

/*
 * All entries that MEW_BENCHMARK registered in this process, in source order per file, ended by {0}.
 *
 * Returns  an array that the library owns, valid until the next call; empty when nothing is registered; NULL without memory
 */
MEW_API const struct mew_entry *mew_entries(void);

/* --- the state of a running body -------------------------------------------------------------------------------- */

/*
 * Begin or go on with the timing loop: private halves of MEW_LOOP.
 * Return the number of turns until the next call; 0 ends the loop.
 */
MEW_API uint64_t mew_loop_begin_(struct mew_state *st, uint64_t batch);
MEW_API uint64_t mew_loop_turn_(struct mew_state *st);

/*
 * MEW_LOOP(st) { ... }            the timing loop: one iteration per turn; everything else is outside the figures
 * MEW_LOOP_BATCH(st, n) { ... }   n iterations per turn, n >= 1; what really ran is counted, overshoot included
 *
 * The counter lives in a register: a turn costs one decrement and one jump. The empty asm keeps an empty body from
 * being deleted.
 */
#define MEW_LOOP(st) MEW_LOOP_BATCH(st, 1)
#define MEW_LOOP_BATCH(st, n)                                                                                          \
	for (uint64_t mew_left_ = mew_loop_begin_((st), MEW_CAST_(uint64_t, n));                                       \
	     mew_left_ != 0 || (mew_left_ = mew_loop_turn_(st)) != 0; mew_left_--, mew_turn_mark_())

static inline __attribute__((always_inline)) void mew_turn_mark_(void)
{
	__asm__ volatile("");
}

/*
 * Leave and enter the figures of the calling thread. Pairs nest by count; only the outermost pair acts.
 * A loop may end while paused; one that begins while paused stays so until the pause ends. Outside the loop nothing is
 * measured, paused or not.
 *
 * Context  body thread
 */
MEW_API void mew_pause(struct mew_state *st);
MEW_API void mew_resume(struct mew_state *st);

/*
 * MEW_PAUSED(st) { ... }: paused for the block, resumed on every way out of it but longjmp; a break leaves this block
 * only.
 */
#define MEW_PAUSED(st) MEW_PAUSED_IN_(st, MEW_JOIN_(mew_paused_, __LINE__), MEW_JOIN_(mew_once_, __LINE__))
#define MEW_PAUSED_IN_(st, paused, once)                                                                               \
	for (struct mew_state *paused __attribute__((cleanup(mew_paused_end_))) = mew_paused_begin_(st),               \
	     *once = paused;                                                                                           \
	     once; once = MEW_NULL_)

static inline struct mew_state *mew_paused_begin_(struct mew_state *st)
{
	mew_pause(st);
	return st;
}
static inline void mew_paused_end_(struct mew_state **st)
{
	mew_resume(*st);
}

/*
 * mew_keep(x)      the compiler must compute x and keep it; memory it points to may be read by someone
 * mew_clobber()    memory may have been read and written by someone
 *
 * mew_keep takes scalars, pointers, structs, arrays, rvalues and const objects, and evaluates x once.
 */
#ifdef __cplusplus
} /* a template follows */
template <class T> inline __attribute__((always_inline)) void mew_keep(const T &value)
{
	__asm__ volatile("" : : "r,m"(value) : "memory");
}
extern "C" {
#else
#define mew_keep(...)                                                                                                  \
	do {                                                                                                           \
		__extension__ __auto_type mew_value_ = (__VA_ARGS__);                                                  \
		__asm__ volatile("" : : "r,m"(mew_value_) : "memory");                                                 \
	} while (0)
#endif
static inline __attribute__((always_inline)) void mew_clobber(void)
{
	__asm__ volatile("" : : : "memory");
}

/*
 * Which case of the family this is; 0 for an entry without cases. Its label; NULL without cases. Context: body thread.
 */
MEW_API size_t mew_case_index(const struct mew_state *st);
MEW_API const char *mew_case_label(const struct mew_state *st);

/* Iterations this thread has completed in this body so far, batch overshoot included. Context: body thread. */
MEW_API uint64_t mew_iterations(const struct mew_state *st);

/* Benchmark threads of the case, and which of them this is (0 .. threads-1). Context: body thread. */
MEW_API unsigned mew_threads(const struct mew_state *st);
MEW_API unsigned mew_thread_index(const struct mew_state *st);

/*
 * What one iteration processes: shown as throughput per second. Threads each set their own; they are added up.
 * A value must be finite and not negative, else the case fails with MEW_E_INVALID. Context: body thread.
 */
MEW_API void mew_set_bytes(struct mew_state *st, double bytes_per_iteration);
MEW_API void mew_set_items(struct mew_state *st, double items_per_iteration);

enum mew_counter_flags {
	MEW_COUNTER_PLAIN = 0,         /* the value as it is */
	MEW_COUNTER_PER_ITERATION = 1, /* divided by the iterations of the body */
	MEW_COUNTER_RATE = 2,          /* divided by the seconds the loop ran */
	MEW_COUNTER_AVERAGE = 4,       /* averaged over threads instead of added */
	MEW_COUNTER_INVERT = 8         /* one over the result */
};
/*
 * A figure of the user's own, shown beside mew's: what the threads that set it gave, together, as it was where time was
 * taken. The name is copied; at most 16 per thread. Context: body thread.
 */
MEW_API void mew_set_counter(struct mew_state *st, const char *name, double value, unsigned flags);

/* A note shown beside the case's name; copied. Of threads that set one, the first's. Context: body thread. */
MEW_API void mew_set_label(struct mew_state *st, const char *label);

/*
 * Manual time: the seconds that this iteration took, added up over the iterations. A body that calls it once calls it
 * in every iteration; then these seconds are the case's real time. Context: body thread, inside the loop.
 */
MEW_API void mew_set_iteration_time(struct mew_state *st, double seconds);

/*
 * The case does not apply here (skip) or is wrong (fail): a row with the reason and without figures. The text is
 * copied.
 */
MEW_API void mew_skip(struct mew_state *st, const char *why);
MEW_API void mew_fail(struct mew_state *st, const char *why);
MEW_API void mew_fail_exception_(struct mew_state *st, const char *what);

/* --- figures ---------------------------------------------------------------------------------------------------- */

/* Bits of `present`, and the argument of the *_why functions. Numbers are never reused. */
enum mew_time_figure {
	MEW_FIG_MEDIAN_NS, MEW_FIG_MEDIAN_LOW_NS, MEW_FIG_MEDIAN_HIGH_NS, MEW_FIG_MEAN_NS, MEW_FIG_STDDEV_NS,
	MEW_FIG_MAD_NS,
	MEW_FIG_MIN_NS, MEW_FIG_MAX_NS, MEW_FIG_P90_NS, MEW_FIG_P99_NS, MEW_FIG_CPU_NS, MEW_FIG_ITERATIONS,
	MEW_FIG_LOOPS,
	MEW_FIG_SAMPLES, MEW_FIG_REPETITIONS, MEW_FIG_PROCESSES, MEW_FIG_BYTES_PER_SECOND, MEW_FIG_ITEMS_PER_SECOND,
	MEW_FIG_CONTEXT_SWITCHES, MEW_FIG_MIGRATIONS, MEW_FIG_PAGE_FAULTS, MEW_FIG_LOOP_OVERHEAD_NS,
	MEW_FIG_CLOCK_COST_NS
};
enum mew_memory_figure {
	MEW_FIG_PEAK_BYTES, MEW_FIG_TOTAL_BYTES, MEW_FIG_TOTAL_ALLOCATIONS, MEW_FIG_MEMORY_ITERATIONS,
	MEW_FIG_ALLOCATIONS_PER_ITERATION, MEW_FIG_CUMULATIVE_BYTES, MEW_FIG_BYTES_PER_ITERATION, MEW_FIG_FREES,
	MEW_FIG_REALLOCS_MOVED, MEW_FIG_REALLOCS_IN_PLACE, MEW_FIG_FAILED, MEW_FIG_FOREIGN_FREES, MEW_FIG_ADOPTED,
	MEW_FIG_NET_BYTES, MEW_FIG_NET_BLOCKS, MEW_FIG_MEMORY_LOST, MEW_FIG_MODE, MEW_FIG_LEAK_BYTES_PER_ITERATION,
	MEW_FIG_LEAK_BYTES_PER_ITERATION_LOW, MEW_FIG_LEAK_BYTES_PER_ITERATION_HIGH, MEW_FIG_ALLOCATIONS_FIRST,
	MEW_FIG_ALLOCATIONS_MIN, MEW_FIG_ALLOCATIONS_MAX, MEW_FIG_STEADY, MEW_FIG_TEMPORARY_ALLOCATIONS,
	MEW_FIG_PEAK_USABLE_BYTES, MEW_FIG_SIZE_HISTOGRAM, MEW_FIG_RSS_PEAK_DELTA_BYTES, MEW_FIG_MAPPED_PEAK_BYTES,
	MEW_FIG_BY_FUNCTION, MEW_FIG_BY_POOL, MEW_FIG_BOOKKEEPING_BYTES, MEW_FIG_JEMALLOC_ALLOCATED_OPEN,
	MEW_FIG_JEMALLOC_ALLOCATED_CLOSE, MEW_FIG_JEMALLOC_ACTIVE_OPEN, MEW_FIG_JEMALLOC_ACTIVE_CLOSE,
	MEW_FIG_JEMALLOC_RESIDENT_OPEN, MEW_FIG_JEMALLOC_RESIDENT_CLOSE, MEW_FIG_JEMALLOC_RETAINED_OPEN,
	MEW_FIG_JEMALLOC_RETAINED_CLOSE, MEW_FIG_JEMALLOC_FRAGMENTATION_OPEN, MEW_FIG_JEMALLOC_FRAGMENTATION_CLOSE,
	MEW_FIG_LIVE_BY_ITERATION
};
enum mew_cpu_figure {
	MEW_FIG_WALL_TIME, MEW_FIG_CPU_TIME, MEW_FIG_SAMPLE_COUNT, MEW_FIG_SAMPLE_WEIGHT, MEW_FIG_TOP_FUNCTION,
	MEW_FIG_TOP_FUNCTION_TOTAL_SELF_TIME, MEW_FIG_TOP_FUNCTION_SHARE, MEW_FIG_TOP_FUNCTION_SHARE_LOW,
	MEW_FIG_TOP_FUNCTION_SHARE_HIGH, MEW_FIG_INTERVAL, MEW_FIG_EFFECTIVE_INTERVAL, MEW_FIG_CPU_ITERATIONS,
	MEW_FIG_CPU_LOST,
	MEW_FIG_TRUNCATED, MEW_FIG_UNRESOLVED, MEW_FIG_CLOCK, MEW_FIG_ENGINE, MEW_FIG_ENGINE_REASON,
	MEW_FIG_OFF_CPU_TIME,
	MEW_FIG_BLOCKED_WEIGHT, MEW_FIG_SAMPLER_COST, MEW_FIG_WALL_TIME_CORRECTED, MEW_FIG_BY_THREAD, MEW_FIG_STOPS,
	MEW_FIG_CYCLES, MEW_FIG_INSTRUCTIONS, MEW_FIG_CACHE_MISSES, MEW_FIG_BRANCH_MISSES,
	MEW_FIG_CPU_BY_FUNCTION
};

/*
 * Rows. They are read through pointers only; new members come at the end. A member is meaningful when its bit
 * (1 << figure) is set in `present`; otherwise the *_why function says why it is absent. Strings live as long as the
 * row.
 */
#define MEW_ROW_HEAD_                                                                                                  \
	const char *key;      /* "name" or "name/case:<i>" */                                                          \
	const char *label;    /* the family's label, the one set by mew_set_label, or NULL */                          \
	const char *profiler; /* what measured: "loop", "latency" or "gbench"; "hooks"; "wall" or "cpu" */             \
	int status;           /* enum mew_status; other than MEW_OK: no figures */                                     \
	const char *reason;   /* one sentence; NULL when status is MEW_OK and there is nothing to say */               \
	uint64_t present;                                                                                              \
	const void *absent_;

struct mew_result { /* time per iteration, from the measurement/value runs */
	MEW_ROW_HEAD_
	double median_ns, median_low_ns, median_high_ns; /* with its exact 95 % order-statistic interval */
	double mean_ns, stddev_ns, mad_ns, min_ns, max_ns;
	double p90_ns, p99_ns;        /* of the samples; each is the mean of its batch of `loops` iterations */
	double cpu_ns;                /* median thread CPU time per iteration, all threads */
	uint64_t iterations;          /* all samples, all threads */
	uint64_t loops;               /* iterations per sample */
	uint64_t samples;
	uint64_t repetitions, processes;
	double bytes_per_second, items_per_second;
	double context_switches, migrations, page_faults; /* per sample */
	double loop_overhead_ns, clock_cost_ns;           /* of this process: one empty turn; one clock read */
};

struct mew_size_class { /* allocations of low .. high bytes: exact below 64, powers of two above */
	uint64_t low, high;
	uint64_t count;
};

struct mew_memory_function { /* what one function allocated itself */
	const char *function; /* "function (file.c:line)" as in top_function; above the C++ library's own */
	uint64_t peak_bytes;  /* alive at the high-water mark */
	uint64_t cumulative_bytes, allocations;
	uint64_t net_bytes;   /* alive when the window closed */
};

struct mew_memory_pool { /* what a named pool announced: see mew/pool.h */
	const char *name;
	uint64_t peak_bytes, allocations, cumulative_bytes, net_bytes;
};

struct mew_live_point { /* the heap after so many iterations of the loop */
	uint64_t iterations, live_bytes;
};

struct mew_memory_case { /* the heap of the loop; figures are defined in mew(3) */
	MEW_ROW_HEAD_
	uint64_t peak_bytes, total_bytes, total_allocations, iterations;
	double allocations_per_iteration;
	uint64_t cumulative_bytes;
	double bytes_per_iteration;
	uint64_t frees, reallocs_moved, reallocs_in_place, failed, foreign_frees, adopted;
	uint64_t net_bytes, net_blocks;
	uint64_t lost;
	const char *mode; /* "count" or "capture": without or with the stacks */
	double leak_bytes_per_iteration;                                 /* slope of the live bytes over the iterations */
	double leak_bytes_per_iteration_low, leak_bytes_per_iteration_high; /* its 95 % interval */
	uint64_t allocations_first, allocations_min, allocations_max;    /* of single iterations */
	uint64_t steady;                                                 /* 1: equal in all iterations but the first */
	uint64_t temporary_allocations;
	uint64_t peak_usable_bytes;
	const struct mew_size_class *size_histogram; /* classes that occur, smallest first */
	size_t nsize_histogram;
	uint64_t rss_peak_delta_bytes, mapped_peak_bytes;
	const struct mew_memory_function *by_function; /* largest peak first */
	size_t nby_function;
	const struct mew_memory_pool *by_pool; /* by name */
	size_t nby_pool;
	uint64_t bookkeeping_bytes; /* memory that mew itself needed for the window; in no other figure */
	uint64_t jemalloc_allocated_open, jemalloc_allocated_close; /* jemalloc's own figures at the window's edges */
	uint64_t jemalloc_active_open, jemalloc_active_close;
	uint64_t jemalloc_resident_open, jemalloc_resident_close;
	uint64_t jemalloc_retained_open, jemalloc_retained_close;
	double jemalloc_fragmentation_open, jemalloc_fragmentation_close; /* 1 - allocated / active */
	const struct mew_live_point *live_by_iteration; /* in the order of iterations, at most 50 of them evenly spaced */
	size_t nlive_by_iteration;
};

struct mew_cpu_thread_figures { /* one thread of the case */
	const char *name;  /* "benchmark thread 0", or the name that the program gave a thread of its own */
	uint64_t tid;
	double wall_time;  /* seconds in the window, pauses out */
	double cpu_time;   /* seconds of them on a processor; 0 where it was not read */
	uint64_t sample_count;
	double sample_weight; /* seconds */
};

struct mew_cpu_stop { /* how stacks ended */
	const char *reason; /* "complete", or why a walk went no further */
	uint64_t samples;
};

struct mew_cpu_function { /* the time that one function took itself */
	const char *function;                 /* as in top_function */
	double self_time;                     /* seconds */
	double share, share_low, share_high;  /* 0 .. 1, 95 % Wilson interval */
};

struct mew_cpu_case { /* where the time of the loop goes */
	MEW_ROW_HEAD_
	double wall_time, cpu_time; /* seconds */
	uint64_t sample_count;
	double sample_weight;     /* seconds */
	const char *top_function; /* "function (file.c:line)" */
	double top_function_total_self_time;
	double top_function_share, top_function_share_low, top_function_share_high; /* 0 .. 1, 95 % Wilson interval */
	double interval, effective_interval;                                       /* seconds: asked, delivered */
	uint64_t iterations;
	uint64_t lost, truncated, unresolved;
	const char *clock;         /* "wall" or "cpu": what the samples are spread over */
	const char *engine;        /* what made them: "timer", "perf", "cpu-timer" or "ring"; see mew(3) */
	const char *engine_reason; /* why no better engine did */
	double off_cpu_time;       /* wall_time minus cpu_time, all threads; seconds */
	double blocked_weight;     /* seconds of the samples whose thread was not on a processor */
	double sampler_cost;       /* seconds: samples times the calibrated cost of one */
	double wall_time_corrected; /* wall_time without it */
	const struct mew_cpu_thread_figures *by_thread;
	size_t nby_thread;
	const struct mew_cpu_stop *stops; /* most frequent first */
	size_t nstops;
	double cycles, instructions, cache_misses, branch_misses; /* of the window, all threads; scaled where counters were shared */
	const struct mew_cpu_function *by_function; /* largest self time first */
	size_t nby_function;
};

struct mew_results;         /* what mew_run() measured */
struct mew_memory_profiles; /* what mew_memory_profile() measured */
struct mew_cpu_profiles;    /* what mew_cpu_profile() measured */

MEW_API size_t mew_results_count(const struct mew_results *r);
MEW_API const struct mew_result *mew_results_at(const struct mew_results *r, size_t i);
MEW_API const struct mew_result *mew_results_find(const struct mew_results *r, const char *key);
MEW_API size_t mew_memory_count(const struct mew_memory_profiles *m);
MEW_API const struct mew_memory_case *mew_memory_at(const struct mew_memory_profiles *m, size_t i);
MEW_API const struct mew_memory_case *mew_memory_find(const struct mew_memory_profiles *m, const char *key);
MEW_API size_t mew_cpu_count(const struct mew_cpu_profiles *c);
MEW_API const struct mew_cpu_case *mew_cpu_at(const struct mew_cpu_profiles *c, size_t i);
MEW_API const struct mew_cpu_case *mew_cpu_find(const struct mew_cpu_profiles *c, const char *key);

/* Why a figure is absent; NULL when it is present. The string lives as long as the row. Context: any thread. */
MEW_API const char *mew_result_why(const struct mew_result *row, enum mew_time_figure figure);
MEW_API const char *mew_memory_why(const struct mew_memory_case *row, enum mew_memory_figure figure);
MEW_API const char *mew_cpu_why(const struct mew_cpu_case *row, enum mew_cpu_figure figure);

/* Per-case tables as text. Returns MEW_OK, MEW_E_INVALID or MEW_E_IO. */
MEW_API int mew_results_print(const struct mew_results *r, FILE *to);
MEW_API int mew_memory_print(const struct mew_memory_profiles *m, FILE *to);
MEW_API int mew_cpu_print(const struct mew_cpu_profiles *c, FILE *to);

MEW_API void mew_results_free(struct mew_results *r);
MEW_API void mew_memory_free(struct mew_memory_profiles *m);
MEW_API void mew_cpu_free(struct mew_cpu_profiles *c);

/*
 * Write results in a report format ("table", "json", "csv", ...) to a file, whole or not at all.
 *
 * path     created or replaced; "-" is standard output
 * Returns  MEW_OK; MEW_E_INVALID for an unknown format (the text lists them); MEW_E_IO
 */
MEW_API int mew_write(const struct mew_results *r, const char *format, const char *path);

/* --- hooks with phases ------------------------------------------------------------------------------------------ */

enum mew_phase { /* numbers never change; ignore those you do not know */
	MEW_PHASE_CALIBRATION_LOOPS = 1,
	MEW_PHASE_CALIBRATION_WARMUP = 2,
	MEW_PHASE_MEASUREMENT_WARMUP = 3,
	MEW_PHASE_MEASUREMENT_VALUE = 4,
	MEW_PHASE_MEMORY_WARMUP = 5,
	MEW_PHASE_MEMORY_VALUE = 6,
	MEW_PHASE_CPU_WARMUP = 7,
	MEW_PHASE_CPU_VALUE = 8
};
/* "measurement/value" and so on; NULL for an unknown number. Context: any thread. */
MEW_API const char *mew_phase_name(int phase);

struct mew_phase_info {
	int phase;            /* enum mew_phase */
	const char *group;    /* "calibration", "measurement", "memory", "cpu" */
	const char *step;     /* "loops", "warmup", "value" */
	const char *key;      /* of the case */
	uint64_t index;       /* how many blocks of this phase this case had before */
	uint64_t loops;       /* iterations per sample of the block; 0 when not yet known */
	unsigned repetition;  /* from 0 */
	void *private_;
	uint64_t reserved_[4];
};

/*
 * begin and end run around each block of a phase, on the thread that drives the case, outside every figure; teardown
 * runs once for each case and phase that was begun, on every way out. begin and end return 0, or another value which
 * fails the case with MEW_E_BODY and the hook's name; no other case suffers. Any of the three may be NULL.
 */
struct mew_hook {
	const char *name;
	int (*begin)(const struct mew_phase_info *info, void *data);
	int (*end)(const struct mew_phase_info *info, void *data);
	void (*teardown)(const struct mew_phase_info *info, void *data);
	void *data;
};

/* Put a value beside those of this phase in the result; both strings are copied. Context: inside a hook. */
MEW_API int mew_phase_set(const struct mew_phase_info *info, const char *key, const char *value);

struct mew_hook_registration_ {
	const struct mew_hook *hook;
	struct mew_hook_registration_ *next;
};
MEW_API void mew_register_hook_(struct mew_hook_registration_ *node);
/* Offer a hook (the name of a struct mew_hook object) to be selected by `--hook NAME`. At file scope. */
#define MEW_HOOK(h)                                                                                                    \
	__attribute__((constructor)) static void mew_hook_register_##h(void)                                           \
	{                                                                                                              \
		static struct mew_hook_registration_ node_ = { &h, NULL };                                             \
		mew_register_hook_(&node_);                                                                            \
	}                                                                                                              \
	struct mew_hook_registration_

/* --- runs ------------------------------------------------------------------------------------------------------- */

struct mew_run_options { /* zero means the default */
	size_t size;
	double min_time;        /* seconds to measure a case at least; default: until the figure is known */
	double max_time;        /* seconds in its loop, pauses counted, after which a case ends; default 0.5 */
	double min_warmup_time; /* seconds of warm-up before the first repetition; default 0.01 */
	double precision;       /* stop when the median's interval is within this fraction; default 0.01 */
	unsigned repetitions;   /* default 1 */
	uint64_t iterations;    /* exactly so many per repetition */
	int latency;            /* time single calls */
	int interleave;         /* repetitions of all cases in turn instead of case by case */
	const char *filter;     /* only keys or labels that match this extended regular expression */
	const struct mew_hook *hooks;
	size_t nhooks;
	int zero_; /* ends the designated arguments */
	uint64_t reserved_[8];
};
struct mew_memory_options {
	size_t size;
	uint64_t iterations;    /* default 100 */
	const char *flamegraph; /* write an HTML report with the stacks at the peak to this file */
	const char *filter;
	const struct mew_hook *hooks;
	size_t nhooks;
	int zero_;
	uint64_t reserved_[8];
};
enum mew_clock { /* what the samples of a CPU pass are spread over */
	MEW_CLOCK_WALL, /* time that passes, sleeping and waiting included */
	MEW_CLOCK_CPU   /* time that the thread spends on a processor */
};
struct mew_cpu_options {
	size_t size;
	double interval;           /* seconds between samples; default 0.0001 */
	uint64_t inner_iterations; /* exactly so many; default: until 1,000 iterations and 1,000 samples, or 2 s */
	const char *output;        /* write an HTML report with the flame graph to this file */
	const char *filter;
	int pause_cpu;             /* measure cpu_time in cases with pauses too: 156 ns or more a pause */
	const struct mew_hook *hooks;
	size_t nhooks;
	int zero_;
	uint64_t clock;            /* enum mew_clock; default MEW_CLOCK_WALL */
	uint64_t reserved_[7];
};

/*
 * Measure all cases of `entries` in this process, on the caller's thread (and the benchmark threads of a case).
 *
 * entries  borrowed; ended by {0}; every name is checked before anything runs
 * options  borrowed; NULL is all defaults; unknown trailing bytes must be zero
 * Returns  results to be freed by mew_results_free(), one row per case, failed ones included; NULL on error
 * Errors   MEW_E_INVALID (names, options, nothing to run), MEW_E_BUSY, MEW_E_NOMEM, MEW_E_IO
 */
MEW_API struct mew_results *mew_run_with(const struct mew_entry *entries, const struct mew_run_options *options);
MEW_API struct mew_memory_profiles *mew_memory_profile_with(const struct mew_entry *entries,
							     const struct mew_memory_options *options);
MEW_API struct mew_cpu_profiles *mew_cpu_profile_with(const struct mew_entry *entries,
						      const struct mew_cpu_options *options);

/*
 * The benchmark program's main: takes the flags of `mew run`, prints tables, returns the exit code (see mew(1)).
 */
MEW_API int mew_main(int argc, char **argv);

/*
 * A stack that is no thread's own, of a fiber or coroutine: while a thread runs on it, the stacks of the memory and the
 * CPU pass then go on to the fiber's first function. Unknown ones are cut after the leaf, and counted as truncated.
 * A fiber's frames need room for the signal frame too: 16 KiB is enough on most machines.
 *
 * lo, hi   its lowest address, and one past its highest; 64 stacks at once, none over another
 * Returns  MEW_OK; MEW_E_INVALID, MEW_E_NOMEM (all places are taken)
 * Context  any thread, also inside the loop; unregister before the memory is given back, and not while it runs on it
 */
MEW_API int mew_stack_register(const void *lo, const void *hi);
MEW_API int mew_stack_unregister(const void *lo);

/* --- spans and budgets: allocations of any code, in any test framework -------------------------------------------- */

#include "mew/span.h"

#ifdef __cplusplus
} /* extern "C" */
#include "mew/cxx.hpp"
#else

/*
 * mew_run(entries, .min_time = 0.1), mew_memory_profile(entries, 100, .flamegraph = "m.html"), mew_cpu_profile(entries,
 * ...)
 */
#define mew_run(...) MEW_RUN_(__VA_ARGS__, .zero_ = 0)
#define MEW_RUN_(entries, ...)                                                                                         \
	mew_run_with((entries), &(const struct mew_run_options){ .size = sizeof(struct mew_run_options), __VA_ARGS__ })
#define mew_memory_profile(entries, ...) MEW_MEMORY_(entries, __VA_ARGS__, .zero_ = 0)
#define MEW_MEMORY_(entries, iters, ...)                                                                               \
	mew_memory_profile_with((entries), &(const struct mew_memory_options){                                         \
						   .size = sizeof(struct mew_memory_options),                          \
						   .iterations = (iters), __VA_ARGS__ })
#define mew_cpu_profile(...) MEW_CPU_(__VA_ARGS__, .zero_ = 0)
#define MEW_CPU_(entries, ...)                                                                                         \
	mew_cpu_profile_with((entries), &(const struct mew_cpu_options){ .size = sizeof(struct mew_cpu_options),       \
									  __VA_ARGS__ })

/*
 * MEW_BENCHMARK(id, .cases = sizes) { body }               an entry named "id"
 * MEW_BENCHMARK_NAMED(id, "zlib/inflate", ...) { body }    an entry with another name
 *
 * `st` and `arg` are in scope in the body, which becomes the function mew_body_<id>.
 */
#define MEW_BENCHMARK(...) MEW_BENCHMARK_PICK_(__VA_ARGS__, .reserved_ = { 0 })
#define MEW_BENCHMARK_PICK_(id, ...) MEW_BENCHMARK_DEFINE_(id, #id, __VA_ARGS__)
#define MEW_BENCHMARK_NAMED(id, ...) MEW_BENCHMARK_NAMED_PICK_(id, __VA_ARGS__, .reserved_ = { 0 })
#define MEW_BENCHMARK_NAMED_PICK_(id, text, ...) MEW_BENCHMARK_DEFINE_(id, text, __VA_ARGS__)
#define MEW_BENCHMARK_DEFINE_(id, text, ...)                                                                           \
	static void mew_body_##id(struct mew_state *st, void *arg);                                                    \
	__attribute__((constructor)) static void mew_register_##id(void)                                               \
	{                                                                                                              \
		static const struct mew_entry entry_ = { .name = text, .run = mew_body_##id, __VA_ARGS__ };            \
		static struct mew_registration_ node_ = { &entry_, NULL, MEW_BUILD_ };                                             \
		mew_register_(&node_);                                                                                 \
	}                                                                                                              \
	static void mew_body_##id(struct mew_state *st __attribute__((unused)), void *arg __attribute__((unused)))
#endif

/* The program's main, last in its file, with or without a semicolon: the pragma keeps that one from a warning. */
#define MEW_MAIN()                                                                                                     \
	int main(int argc, char **argv)                                                                                \
	{                                                                                                              \
		return mew_main(argc, argv);                                                                           \
	}                                                                                                              \
	_Pragma("GCC diagnostic ignored \"-Wpedantic\"")

#endif
