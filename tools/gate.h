/*
 * gate.h - one comparison of two builds: what was asked, what was observed, what it means.
 * Layer L6. Filled by gate_programs.c, gate_command.c or gate_merge.c, judged by gate.c, written by the gate_*.c that
 * the name of a format ends in.
 */
#ifndef MEW_GATE_H
#define MEW_GATE_H

#include "calibration.h"
#include "gate_plan.h"
#include "gate_tool.h"
#include "model.h"
#include "pair.h"
#include "select.h"
#include "terminal.h"
#include "verdict.h"

#define MEW_GATE_SCHEMA 1
#define MEW_GATE_CONTEXTS 8
#define MEW_GATE_PAGE "mew-gate.html" /* beside mew-gate.md */

struct mew_gate_context { /* a further program: measured against the base, shown, never judged */
	const char *name, *program;
};

struct mew_gate_options {
	const char *programs[MEW_SIDES];
	const char *revisions[MEW_SIDES]; /* what the user calls them; NULL: unknown */
	const char *workload_revision;
	const char *ci_run;  /* where the machine of a forge says it runs; NULL: nowhere */
	struct mew_gate_context contexts[MEW_GATE_CONTEXTS];
	size_t ncontexts;
	const struct mew_select *select;
	struct mew_host_options host;
	double budget;       /* seconds; 0: none */
	unsigned pairs;      /* most observations of a case */
	bool fixed;          /* exactly that many: the exact interval instead of e-processes */
	unsigned rounds;     /* samples of each side in an observation */
	uint64_t memory_iterations; /* of the exact pass; 0: no such pass */
	uint64_t seed;
	const char *calibration; /* its file; "none"; NULL: the one in the usual place, if any */
	double extra_work;   /* a fraction that the head does more in each sample, for calibrating; 0: none */
	const char *output;  /* directory, or NULL */
	bool gbench;         /* the programs are of Google Benchmark */
	const char *html;    /* the page of flame graphs; NULL: MEW_GATE_PAGE in the directory, when a case got worse */
	const char *phases_file;               /* of commands; NULL: benchmark programs */
	const struct mew_command_plan *plan;   /* what it says */
	unsigned cold_every; /* a cold phase runs in each so-manieth sample; 0 is 1 */
	unsigned contention, contention_samples; /* runs side by side; 0: none */
	json_t *resumed;     /* samples.json of the run that goes on, or NULL */
	int argc;            /* of the command line, for the next resume */
	char **argv;
	bool quiet, verbose;
	enum mew_when color, progress;
};

struct mew_gate_observation { /* one pair of fresh processes */
	double log_ratio, ns[MEW_SIDES];
	uint64_t loops;
	unsigned rounds, disturbed, ties;
	int cpu;
	bool context;      /* measured against a context program */
	bool head_first;   /* commands: the head ran first */
	unsigned machine;  /* merged: which one took it */
};

struct mew_gate_series { /* observations in the order in which they were taken */
	struct mew_gate_observation *list;
	size_t n, capacity;
};

enum mew_gate_stage { MEW_GATE_LOOKING, MEW_GATE_CONFIRMING, MEW_GATE_DECIDED };

#define MEW_GATE_METRICS (MEW_PLAN_COUNTS + 8)

struct mew_gate_case {
	char *key, *label;
	struct mew_pair_case pair;
	struct mew_gate_series series;
	struct mew_gate_series contexts[MEW_GATE_CONTEXTS];
	bool lost[MEW_GATE_CONTEXTS]; /* it failed there, which was said */
	double noise_floor;          /* from a calibration, as a fraction; 0: not known */
	bool is_uncalibrated;        /* the calibration has other cases, but not this one */
	enum mew_gate_stage stage;
	enum mew_outcome flagged;    /* what the first look found, when the stage is beyond it */
	uint64_t seen_ns;            /* its last visit ended then, for the timeline; 0: there was none */
	size_t confirmed_from;       /* first observation of the confirmation */
	const struct mew_command_phase *phase; /* of commands; NULL: of programs */
	double *counts;              /* pair by pair, for each count of the phase the base's and the head's; NaN: absent */
	size_t npairs;
	struct mew_verdict exact[MEW_PLAN_COUNTS + 4]; /* merged: the worst of all machines */
	size_t nexact;
	unsigned reused;             /* samples that used the cold state of an earlier one */
	struct mew_verdict verdicts[MEW_GATE_METRICS]; /* time first, when it was measured */
	size_t nverdicts;
	char *reason;                /* it failed on a side, or exists on one alone: invalid */
	bool is_skipped;             /* on both sides: not compared, for the reason in `why` */
	char why[160];               /* a word on the verdict of time; "" for none */
};

struct mew_gate {
	const struct mew_gate_options *options;
	struct mew_rules rules;
	struct mew_gate_case *cases;
	size_t ncases;
	struct mew_model *models[MEW_SIDES]; /* exact pass and facts of each side */
	struct mew_model *recounts[MEW_SIDES]; /* a second exact pass of the cases whose sides differed in the first */
	char uncounted[240];         /* why cases have no exact figures, although these were asked for; "" */
	size_t nuncounted;           /* of them */
	struct mew_calibration *calibration; /* that the noise floors come from; NULL: none */
	uint64_t start_ns;           /* of the timing, on the monotonic clock */
	double seconds, earlier_s;   /* that it took; of them in the run that goes on here */
	unsigned processes;          /* pairs of them */
	bool out_of_time, interrupted;
	struct mew_tool tools[MEW_SIDES]; /* the file that each side is */
	struct mew_tool self;        /* the command that measured */
	unsigned machines;           /* merged: how many; 0: measured here */
	json_t *merged;              /* what they wrote; texts of the gate belong to it */
	struct mew_gate_options merged_options;
	struct mew_metric merged_metrics[MEW_PLAN_COUNTS];
	size_t nmerged_metrics;
	char identity[400];          /* why the two sides are not what they were at the start; "" */
	struct mew_model *profiles[MEW_SIDES]; /* of what gate_explain.c looked at, sealed; NULL: nothing */
	char html[1024];             /* the page that shows their difference; "" */
	char unexplained[300];       /* why there are no flame graphs, or not of every case; "" */
	enum mew_outcome outcome;
	int exit_code;
	uint64_t started_s;          /* epoch */
};

/* A gate without cases. Returns 0, or -1 without memory; mew_gate_fini() is due in any case. */
int mew_gate_init(struct mew_gate *g, const struct mew_gate_options *o, const struct mew_rules *rules);
void mew_gate_fini(struct mew_gate *g);
struct mew_gate_case *mew_gate_add(struct mew_gate *g, const char *key, const char *label);
/* The case is invalid from now on; the first reason stands. */
void mew_gate_fail(struct mew_gate_case *c, const char *format, ...) MEW_PRINTF(2, 3);

/* What a pair of processes said, as the gate keeps it. */
struct mew_gate_observation mew_gate_observation_of(const struct mew_pair_observation *o);
/* Take an observation; returns -1 without memory. */
int mew_gate_observe(struct mew_gate_series *s, const struct mew_gate_observation *o);

/*
 * After each observation: is the case decided? A difference must be found twice, by two sets of processes that have
 * none in common.
 *
 * cases      how many share the chance of a false alarm
 * Returns    MEW_OK or a status of mew_verdict_time()
 */
int mew_gate_look(const struct mew_gate *g, struct mew_gate_case *c, size_t cases, struct mew_error *err);

/* All verdicts, corrected for the number of cases; the outcome and the exit code. */
int mew_gate_settle(struct mew_gate *g, struct mew_error *err);

/* The verdict of time of a case, or NULL. */
const struct mew_verdict *mew_gate_time(const struct mew_gate_case *c);

/* --- exact figures of programs ---------------------------------------------------------------------------------- */

/* One exact pass on a side; `again`: the second one, of the cases whose sides differed in the first. */
typedef void mew_gate_exact_pass(void *data, enum mew_side side, bool again);
/* The exact pass on both sides, and the second one where it is wanted, until an interrupt. */
void mew_gate_exact_passes(struct mew_gate *g, mew_gate_exact_pass *pass, void *data);
/* After an exact pass on a side: the cases that failed in it fail the gate. */
void mew_gate_check_exact(struct mew_gate *g, const struct mew_model *m, enum mew_side side);
/* Do the sides differ in an exact figure of the case? Then it is counted again: what changes by itself is not exact. */
bool mew_gate_wants_recount(const struct mew_gate *g, const struct mew_gate_case *c);
/* The verdict of each exact figure. */
void mew_gate_settle_exact(struct mew_gate *g, struct mew_gate_case *c);

/* --- ways to measure -------------------------------------------------------------------------------------------- */

/* Measure benchmark programs. Returns an exit code: MEW_EXIT_FINE when there is something to judge. */
int mew_gate_programs(struct mew_gate *g);

/* The same for programs of Google Benchmark. */
int mew_gate_guests(struct mew_gate *g);

/* Measure commands. Returns an exit code: MEW_EXIT_FINE when there is something to judge. */
int mew_gate_commands(struct mew_gate *g);

/*
 * Join the samples of runs on several machines, each paired within itself.
 * Returns an exit code: MEW_EXIT_FINE when there is something to judge.
 */
int mew_gate_merge(struct mew_gate *g, char *const *directories, int n);
/*
 * The counts that the commands of a run to be joined left, for limits to name: in out->counts, and what they borrow from
 * in out->tree, freed by mew_command_plan_free(). Returns an exit code.
 */
int mew_gate_merge_counts(const char *directory, struct mew_command_plan *out);
/* The verdict of time of merged samples: the machines are a level of the bootstrap. */
int mew_gate_merged_time(const struct mew_gate *g, const struct mew_gate_case *c, struct mew_verdict *v,
			 struct mew_error *err);

/* A sentence where the two sides are one and the same; NULL: they are not, or nobody looked. */
const char *mew_gate_sameness(const struct mew_gate *g);
/* What both sides are, at the start; with --resume it must be what it was. Returns MEW_OK or a status. */
int mew_gate_identify(struct mew_gate *g, struct mew_error *err);
/* Go on with the observations in options->resumed, of all cases that have some there; nothing where it is NULL. */
int mew_gate_continue(struct mew_gate *g, struct mew_error *err);

/*
 * The counts that a run left in a file: one for each of the phase's, added to `values`.
 *
 * values   ncounts of the phase; NaN stays where the file has none
 * required sums of the counts that "require" names, in its order
 * Returns  MEW_OK, or MEW_E_INVALID with what is wrong with the file
 */
int mew_gate_read_counts(const char *path, const struct mew_command_plan *plan, const struct mew_command_phase *phase,
			 double *values, double *required, struct mew_error *err);
/* Keep the counts of a pair. Returns -1 without memory. */
int mew_gate_count_pair(struct mew_gate_case *c, const double *base, const double *head);
/* The verdict of each count, its worst pair's. */
void mew_gate_settle_counts(struct mew_gate *g, struct mew_gate_case *c);

/* --- what is written -------------------------------------------------------------------------------------------- */

/* Called after every sweep, so that an interrupted run can be read: samples.json. Returns MEW_OK or MEW_E_IO. */
int mew_gate_write_samples(const struct mew_gate *g, struct mew_error *err);
/* At the end: summary.json, mew-gate.md, junit.xml, metrics.otlp.json into the directory. */
int mew_gate_write_all(const struct mew_gate *g, struct mew_error *err);
struct mew_json;
/* The counts of a case as members of its object. */
void mew_gate_put_counts(struct mew_json *j, const struct mew_gate *g, const struct mew_gate_case *c);
/* For people, on standard output. */
int mew_gate_print(const struct mew_gate *g, struct mew_error *err);

/* "slower by 1.8 % [1.6, 2.0]", "no difference resolved": what a verdict says. */
void mew_gate_words(const struct mew_verdict *v, char *text, size_t size);
/* "pairs of processes", "pairs of runs", "pairs": what an observation was. */
const char *mew_gate_pairs(const struct mew_gate *g);
#define MEW_GATE_CONTEXT_BYTES 192
/* "third +12.3 % of the base (+11.9 to +12.8)": what the k-th context measured in a case. False: nothing. */
bool mew_gate_context_words(const struct mew_gate *g, const struct mew_gate_case *c, size_t k,
			    char text[MEW_GATE_CONTEXT_BYTES]);
/* Which cases have no exact figures, and why. False: all have, or nobody asked for them. */
bool mew_gate_uncounted_words(const struct mew_gate *g, char *text, size_t size);
/* Is there a case whose key the rule's pattern fits? */
bool mew_gate_has_case_for(const struct mew_gate *g, const struct mew_allow *allow);
/* "PASS", "REGRESSION", "INCONCLUSIVE", "INVALID MEASUREMENT". */
const char *mew_gate_headline(const struct mew_gate *g);

#endif
