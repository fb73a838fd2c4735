/*
 * compare.h - saved results side by side: which cases belong together, what their figures say, what else differs.
 * Layer L6. The rules are those of src/verdict.h; files and tables are written from what stands here.
 *
 * Context  the command's thread
 */
#ifndef MEW_COMPARE_H
#define MEW_COMPARE_H

#include "base.h"
#include "model.h"
#include "rank.h"
#include "select.h"
#include "verdict.h"
#include "writer.h"

#define MEW_COMPARE_METRICS 5u /* as many as mew_metrics() has */

struct mew_compare_case {
	const struct mew_case *base, *head;
	char *title;
	struct mew_verdict verdicts[MEW_COMPARE_METRICS]; /* in the order of mew_metrics(): time first */
	size_t base_processes, head_processes;            /* with samples of time */
	/*
	 * The interval of time is not the one that decides: there were too few pairs of processes for that. It comes
	 * from resampling both sides by processes and samples, and knows as little of how processes differ as they do.
	 */
	bool is_rough;
	struct mew_mann_whitney ranks; /* of the processes' medians, the head as `a`; beside the verdict, not part of it */
	bool has_ranks;
};

struct mew_fact_difference {
	const char *name, *base, *head; /* NULL: not said in that file */
	bool machine;                   /* tells machines apart */
};

struct mew_comparison {
	const char *base_name, *head_name; /* of the files, borrowed */
	const struct mew_model *base, *head; /* borrowed */
	struct mew_compare_case *cases;    /* in both files, in the base's order */
	size_t ncases;
	const struct mew_case **missing, **added; /* in the base alone; in the head alone */
	size_t nmissing, nadded;
	struct mew_fact_difference *differences;
	size_t ndifferences;
	bool other_machine;
	double mean_ratio; /* geometric mean of the ratios of time; NaN without any */
	size_t nratios;
	enum mew_outcome outcome; /* of a gate: the worst one; invalid also where the cases are not the same or none */
	int exit_code; /* that it has: 0, 1, 3 or 4 */
};

/*
 * Compare two sealed models.
 *
 * rules    checked
 * select   cases to look at, by key, label and tags of either side
 * out      returned, freed by mew_compare_free() also after a failure
 * Returns  MEW_OK, MEW_E_INVALID (the margin of a case), MEW_E_NOMEM
 */
int mew_compare(const struct mew_rules *rules, const struct mew_select *select, struct mew_comparison *out,
		struct mew_error *err);
void mew_compare_free(struct mew_comparison *c);

/* Fill in the time verdict of a case, whose models are on the same machine or not. Returns MEW_OK or a status. */
int mew_compare_time(const struct mew_rules *rules, bool other_machine, struct mew_compare_case *c,
		     struct mew_error *err);

#define MEW_COMPARE_WORD_BYTES 64

/* A verdict in words: "slower", "within 2 %", "more", "equal", "not resolved". `out` has MEW_COMPARE_WORD_BYTES. */
void mew_compare_word(const struct mew_verdict *v, char *out);

/* What the gate says, whatever rules->unsure makes of the exit code: "pass", "regression", "inconclusive", "invalid". */
const char *mew_compare_gate_word(const struct mew_comparison *c);

/* Why the gate is invalid before any figure is looked at: ": cases are missing from the head"; "" for no reason. */
const char *mew_compare_misfit(const struct mew_comparison *c);

/* Is there a case whose key the rule's pattern fits? */
bool mew_compare_has_case_for(const struct mew_comparison *c, const struct mew_allow *allow);

/* --- output ----------------------------------------------------------------------------------------------------- */

struct mew_compare_set {
	const struct mew_rules *rules;
	const struct mew_comparison *list; /* each head against the same base */
	size_t n;
	bool gated;
	bool verbose;
};

struct mew_view; /* grid.h */

/*
 * For people: tables, or a history of more than two files. Returns MEW_OK or MEW_E_NOMEM; the writer keeps its error.
 */
int mew_compare_table(const struct mew_compare_set *set, const struct mew_view *view, struct mew_writer *w);

/* Bodies for mew_write_file(); data is a struct mew_compare_set. The formats stand above their writers. */
int mew_compare_markdown(struct mew_writer *w, void *data, struct mew_error *err);
int mew_compare_csv(struct mew_writer *w, void *data, struct mew_error *err);
int mew_compare_json(struct mew_writer *w, void *data, struct mew_error *err);

#endif
