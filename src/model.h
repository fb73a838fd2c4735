/*
 * model.h - what a session measured: cases with their rows, runs, stacks and samples, and the environment.
 * Layer L2. Filled through the sink (sink.h) and by the runner, then sealed: read-only from then on, without a lock.
 *
 * Units      _ns nanoseconds, _bytes bytes
 * Ownership  everything a model points to is its own and dies with it; setters copy what they are given
 * Context    one thread at a time until sealed, any thread after; never inside a window
 */
#ifndef MEW_MODEL_H
#define MEW_MODEL_H

#include "arena.h"
#include "base.h"
#include "mew.h"

enum mew_kind { MEW_KIND_TIME, MEW_KIND_MEMORY, MEW_KIND_CPU, MEW_KINDS };

/* "time", "memory", "cpu". */
const char *mew_kind_name(enum mew_kind kind);

/* --- the catalogue of figures: one table drives JSON, CSV, tables and presence --------------------------------- */

enum mew_value_type { MEW_VALUE_U64, MEW_VALUE_F64, MEW_VALUE_TEXT, MEW_VALUE_LIST };

struct mew_list_type; /* what a row of a list looks like */

struct mew_figure {
	const char *name;         /* the member's name, and the JSON key */
	const char *unit;         /* "ns", "s", "By", "1", "1/s", "By/s", "text", "list" */
	enum mew_value_type type;
	int bit;                  /* number of the presence bit */
	size_t offset;            /* of the member in its row */
	const char *help;         /* one line */
	const struct mew_list_type *list; /* MEW_VALUE_LIST: the member is a pointer to such rows; else NULL */
	bool special; /* of programs that have something most have not: people are not told that it is absent */
};

struct mew_list_type {
	size_t row_bytes;
	size_t count_offset; /* of the size_t with the number of rows, in the row of the case */
	const struct mew_figure *columns; /* numbers and texts; `offset` is in a row of the list, `bit` the place */
	size_t ncolumns;
};

/* All figures of a kind, in the order of the row; *count is returned. */
const struct mew_figure *mew_figures(enum mew_kind kind, size_t *count);

/* One reason for one absent figure; a row's `absent_` points to the first. */
struct mew_absent {
	int bit;
	const char *why;
	const struct mew_absent *next;
};

/* What all three row types begin with. */
struct mew_row_head {
	MEW_ROW_HEAD_
};

/* --- parts of a case -------------------------------------------------------------------------------------------- */

struct mew_run { /* one block of one phase: a body call, or a stretch of it */
	int phase; /* enum mew_phase */
	unsigned process, repetition;
	uint64_t loops; /* iterations per sample, batch overshoot included, of one thread */
	size_t nsamples;
	const uint64_t *real_ns; /* raw, one per sample; mean over threads */
	const uint64_t *cpu_ns;  /* all threads; NULL where it was not read */
	uint64_t context_switches, migrations, page_faults; /* over the whole block */
};

struct mew_counter {
	const char *name;
	double value;
};

struct mew_phase_data { /* what a hook put beside a phase */
	int phase;
	const char *key, *value;
};

struct mew_heap_stack { /* one allocation stack of a memory pass */
	uint32_t stack;
	uint64_t peak_bytes;       /* alive at the high-water mark */
	uint64_t cumulative_bytes; /* all of the window */
	uint64_t allocations;
	uint64_t net_bytes;        /* alive when the window closed */
};

struct mew_cpu_sample {
	uint32_t stack; /* MEW_NO_STACK: lost to unwinding */
	uint32_t thread;
	uint64_t time_ns; /* since the window opened */
	uint64_t weight_ns;
	bool blocked; /* its thread was not on a processor: it slept or waited for one */
};
#define MEW_NO_STACK UINT32_MAX

struct mew_sample_window { /* of a case in a traced run: where its samples belong on the timeline */
	int pid;            /* 0: on none */
	uint64_t zero_ns;   /* of that process's part of the timeline; tells it from a later one with its number */
	uint64_t opened_ns; /* CLOCK_MONOTONIC */
};

struct mew_case {
	const char *key;
	const char *label;   /* may be NULL */
	const char *program; /* path as given; NULL for an in-process run */
	const char *allocator; /* that it ran under, as asked for; NULL: its own, since none was */
	const char *tags;    /* may be NULL */
	const char *output;  /* what a failing body printed; may be NULL */
	bool left_threads;   /* threads were still running after the body */
	bool shares_key;     /* a case of another program has the same key */
	unsigned threads;
	unsigned kinds;      /* 1 << enum mew_kind for each row that exists */
	struct mew_result time;
	struct mew_memory_case memory;
	struct mew_cpu_case cpu;

	struct mew_run *runs;
	size_t nruns;
	struct mew_counter *counters;
	size_t ncounters;
	struct mew_phase_data *phase_data;
	size_t nphase_data;
	struct mew_heap_stack *heap_stacks;
	size_t nheap_stacks;
	struct mew_cpu_sample *samples; /* in time order per thread */
	size_t nsamples;
	struct mew_sample_window window;   /* that they count from */
	double bytes_per_iteration, items_per_iteration; /* what the body declared, all threads; 0 for none */
};

/* --- stacks and symbols ----------------------------------------------------------------------------------------- */

struct mew_module {
	const char *path;     /* absolute, or "[vdso]" */
	const char *build_id; /* lower-case hex; "" when the file has none */
	uint64_t size;        /* bytes of address space it covers */
	bool gone;            /* closed before the window's end */
};

struct mew_line { /* one function at one location; inlined ones come before the function they sit in */
	uint32_t function;
	uint32_t line; /* 0 unknown */
};

struct mew_location { /* a place in a module; equal places share one */
	uint32_t module; /* MEW_NO_MODULE: not in any */
	uint64_t offset; /* from the module's load bias; for a caller, of the call instruction's last byte */
	uint32_t first_line, nlines; /* into model->lines; 0 lines: unresolved */
	uint64_t start;              /* of the unnamed function it lies in, by the unwind table; 0 unknown */
	const char *why;             /* reason it is unresolved, or resolved without all its lines; else NULL */
};
#define MEW_NO_MODULE UINT32_MAX

struct mew_function {
	const char *name; /* demangled where possible */
	const char *file; /* "" unknown */
	uint32_t line;    /* of the definition; 0 unknown */
	uint32_t module;
};

struct mew_stack { /* locations, leaf first */
	uint32_t first, depth; /* into model->frames */
};

struct mew_fact { /* environment: one named fact */
	const char *name, *value;
};

struct mew_map; /* private: interning */

struct mew_model {
	struct mew_case *cases;
	size_t ncases;
	bool has_allocators; /* cases ran under allocators that were asked for */
	struct mew_fact *facts;
	size_t nfacts;
	char grade;                /* 'A' quiet .. 'D' do not trust small differences; 0 not graded */
	const char *grade_reason;
	struct mew_module *modules;
	size_t nmodules;
	struct mew_location *locations;
	size_t nlocations;
	struct mew_line *lines;
	size_t nlines;
	struct mew_function *functions;
	size_t nfunctions;
	struct mew_stack *stacks;
	size_t nstacks;
	uint32_t *frames; /* location numbers */
	size_t nframes;
	const char *hooks; /* names of the active hooks, blank-separated; "" none */
	bool sealed;

	struct mew_arena strings;
	struct mew_map *map;
};

/* Returns NULL without memory. */
struct mew_model *mew_model_new(void);
void mew_model_free(struct mew_model *m); /* NULL is fine */

/* Copies; NULL stays NULL. Returns NULL without memory (or for NULL). */
const char *mew_model_string(struct mew_model *m, const char *text);

/*
 * The case with this key and program (NULL matches NULL), made when it is not there. Pointers to cases move when one is
 * added. Returns NULL without memory, or once sealed.
 */
struct mew_case *mew_model_case(struct mew_model *m, const char *key, const char *program);
/* The same with one allocator of several; NULL is that of mew_model_case(). */
struct mew_case *mew_model_case_under(struct mew_model *m, const char *key, const char *program, const char *allocator);
struct mew_case *mew_model_find(const struct mew_model *m, const char *key);

/* Does the case have a row of that kind? */
static inline bool mew_case_has(const struct mew_case *c, enum mew_kind kind)
{
	return (c->kinds >> kind & 1u) != 0;
}

/* The row's head, of any kind. */
struct mew_row_head *mew_case_row(struct mew_case *c, enum mew_kind kind);

/* Mark a row as existing; fills key and label; status MEW_OK; figures set before stay. Returns NULL once sealed. */
struct mew_row_head *mew_model_row(struct mew_model *m, struct mew_case *c, enum mew_kind kind);

/* Fail a row: status, sentence, every figure absent, its stacks or samples gone; runs stay. */
void mew_model_fail(struct mew_model *m, struct mew_case *c, enum mew_kind kind, int status, const char *reason);
/* Append a sentence to the row's reason without failing it. */
void mew_model_note(struct mew_model *m, struct mew_case *c, enum mew_kind kind, const char *note);

/*
 * Set a figure (and its presence bit), or say why it is absent; the last call counts. `bit` is the figure's enum value.
 * A value that is not finite, or that the figure's type cannot hold, leaves the figure absent.
 */
void mew_model_u64(struct mew_case *c, enum mew_kind kind, int bit, uint64_t value);
void mew_model_f64(struct mew_case *c, enum mew_kind kind, int bit, double value);
void mew_model_text(struct mew_model *m, struct mew_case *c, enum mew_kind kind, int bit, const char *value);
void mew_model_absent(struct mew_model *m, struct mew_case *c, enum mew_kind kind, int bit, const char *why);
/*
 * Set a list: its rows and their texts are copied. A text that is NULL, or no memory, leaves the figure absent.
 *
 * rows  n of the figure's row type; may be NULL for n == 0, which is a list without rows and not an absence
 */
void mew_model_list(struct mew_model *m, struct mew_case *c, enum mew_kind kind, int bit, const void *rows, size_t n);

/* The rows of a list figure; *n is returned, 0 also when it is absent. Row i begins at i * figure->list->row_bytes. */
const char *mew_row_list(const struct mew_row_head *row, const struct mew_figure *figure, size_t *n);
/* NULL when present. */
const char *mew_row_why(const struct mew_row_head *row, int bit);
static inline bool mew_row_has(const struct mew_row_head *row, int bit)
{
	return row->status == MEW_OK && (row->present >> bit & 1) != 0;
}

/*
 * Append to the lists of a case; arrays in *run are copied; a fact with a known name gets the new value.
 * Return 0, or -1 without memory.
 */
int mew_model_add_run(struct mew_model *m, struct mew_case *c, const struct mew_run *run);
int mew_model_add_counter(struct mew_model *m, struct mew_case *c, const char *name, double value);
int mew_model_add_phase_data(struct mew_model *m, struct mew_case *c, int phase, const char *key, const char *value);
int mew_model_add_heap_stack(struct mew_case *c, const struct mew_heap_stack *s);
int mew_model_add_sample(struct mew_case *c, const struct mew_cpu_sample *s);
int mew_model_add_fact(struct mew_model *m, const char *name, const char *value);
/* All facts of another model, which may be NULL; those that find no memory are left out. */
void mew_model_take_facts(struct mew_model *m, const struct mew_model *from);
/* Of what `mew record` made: what its window was. */
#define MEW_FACT_RECORDED "recorded"
/* NULL when there is no such fact. */
const char *mew_model_fact(const struct mew_model *m, const char *name);

/*
 * Intern; equal things get equal numbers. A module is known by path, build id and size; once gone it stays so.
 * Return UINT32_MAX without memory.
 */
uint32_t mew_model_module(struct mew_model *m, const char *path, const char *build_id, uint64_t size, bool gone);
uint32_t mew_model_location(struct mew_model *m, uint32_t module, uint64_t offset);
uint32_t mew_model_function(struct mew_model *m, const char *name, const char *file, uint32_t line, uint32_t module);
uint32_t mew_model_stack(struct mew_model *m, const uint32_t *locations, size_t depth);
/* Give a location its lines, innermost inlined function first; copied; its `why` goes. Returns 0 or -1. */
int mew_model_set_lines(struct mew_model *m, uint32_t location, const struct mew_line *lines, size_t n);

/*
 * Add everything of `from` to `into`, renumbering modules, functions, locations and stacks. Cases meet by key, program
 * and allocator. Rows that exist in `from` replace those in `into`, with their stacks or samples; so do counters of the
 * same name. Runs and phase data are appended. Facts that are there already stay; of two grades the worse stands.
 *
 * from     borrowed, may be sealed
 * Returns  0, or -1 without memory: `into` then holds a part and is good for mew_model_free() only
 */
int mew_model_merge(struct mew_model *into, const struct mew_model *from);

/* No more changes: setters that are given the model, intern functions and merges into it fail from now on. */
void mew_model_seal(struct mew_model *m);

#endif
