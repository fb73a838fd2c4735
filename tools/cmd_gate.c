/*
 * cmd_gate.c - `mew gate`: flags, then measuring, judging, writing.
 * Layer L6. The command's thread.
 */
#include "config.h"

#include "cmd.h"

#include "cli.h"
#include "cli_trace.h"
#include "environment.h"
#include "error.h"
#include "gate.h"
#include "gate_check.h"
#include "gate_explain.h"
#include "gate_files.h"
#include "gate_resume.h"
#include "gate_step.h"
#include "rules_flags.h"
#include "writer.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

enum flag_id {
	F_BASE = 256, F_HEAD, F_CONTEXT, F_BUDGET, F_SAMPLES, F_ROUNDS, F_MEMORY, F_BASE_REV, F_HEAD_REV,
	F_WORKLOAD_REV,
	F_CALIBRATION, F_OUTPUT, F_HTML, F_TRACE, F_REDACT, F_TIMEOUT, F_COMMAND, F_COLD_EVERY, F_CONTENTION,
	F_CONTENTION_SAMPLES, F_MERGE, F_RESUME, F_GBENCH, F_COLOR, F_PROGRESS, F_HELP
};

static const struct mew_flag flags[] = {
	{ F_BASE, "base", required_argument, "--base PROG", "the benchmark program as it was" },
	{ F_HEAD, "head", required_argument, "--head PROG", "as it is to become" },
	{ F_CONTEXT, "context", required_argument, "--context NAME=PROG",
	  "a further program, shown beside the base and never judged" },
	{ F_BUDGET, "budget", required_argument, "--budget S",
	  "start no observation that will not end within S seconds (none)" },
	{ F_SAMPLES, "samples", required_argument, "--samples N",
	  "at most N pairs of processes a case (200); bootstrap: exactly (20)" },
	{ F_ROUNDS, "rounds", required_argument, "--rounds N", "samples of each side in a pair of processes (15)" },
	{ F_MEMORY, "memory", required_argument, "--memory ITERS",
	  "iterations of the exact pass (100); 0: time alone" },
	{ F_BASE_REV, "base-rev", required_argument, "--base-rev TEXT", "what the reports call the base" },
	{ F_HEAD_REV, "head-rev", required_argument, "--head-rev TEXT", "what the reports call the head" },
	{ F_WORKLOAD_REV, "workload-rev", required_argument, "--workload-rev TEXT",
	  "the input both work on, recorded" },
	{ F_CALIBRATION, "calibration", required_argument, "--calibration FILE",
	  "of `mew calibrate`; none (the one kept here, if any)" },
	{ F_OUTPUT, "output", required_argument, "--output DIR",
	  "mew-gate.md, summary.json, samples.json, junit.xml, metrics.otlp.json" },
	{ F_HTML, "html", required_argument, "--html FILE",
	  "flame graphs of what got worse, or of all (mew-gate.html in DIR)" },
	{ F_TRACE, "trace", optional_argument, "--trace[=FILE]",
	  "the gate on a timeline, for ui.perfetto.dev (" MEW_TRACE_DEFAULT ")" },
	{ F_REDACT, "redact", required_argument, "--redact RE", "show command lines in it, \"***\" for what matches" },
	{ F_TIMEOUT, "timeout", required_argument, "--timeout S",
	  "a case that takes longer than S seconds in a process is invalid (none)" },
	{ F_GBENCH, "gbench-program", no_argument, "--gbench-program",
	  "base and head are programs of Google Benchmark" },
	{ F_COMMAND, "command", required_argument, "--command PHASES",
	  "base and head are command lines: the phases file says how they run" },
	{ F_COLD_EVERY, "cold-every", required_argument, "--cold-every N",
	  "run cold phases in every N-th sample alone (1)" },
	{ F_CONTENTION, "contention", required_argument, "--contention N",
	  "then each phase with N runs side by side, judged by itself" },
	{ F_CONTENTION_SAMPLES, "contention-samples", required_argument, "--contention-samples N",
	  "at most N such pairs (24); bootstrap: exactly (10)" },
	{ F_MERGE, "merge", no_argument, "--merge DIR...", "join the samples of several machines into one verdict" },
	{ F_RESUME, "resume", required_argument, "--resume DIR",
	  "go on with an interrupted run, as its samples.json says" },
	{ 'q', NULL, no_argument, "-q", "no table: the exit code and the files alone" },
	{ 'v', NULL, no_argument, "-v", "also the exact metrics that are equal" },
	{ F_COLOR, "color", required_argument, "--color WHEN",
	  "auto, always or never; NO_COLOR and FORCE_COLOR are honoured" },
	{ F_PROGRESS, "progress", required_argument, "--progress WHEN", "auto, always or never, on standard error" },
	{ F_HELP, "help", no_argument, "--help", "print this" },
};

struct asked {
	struct mew_gate_options o;
	struct mew_rules_flags by;
	struct mew_command_plan plan;
	const char *resume;
	char **merged; /* directories */
	int nmerged;
	struct mew_gate_given given;
	bool help, merge, measured;
	struct mew_cli_trace trace;
};

static void help(void)
{
	size_t n;
	const struct mew_flag *shared = mew_rules_flags(&n);

	(void)printf("usage: mew gate --base PROG --head PROG [flags]\n\n");
	mew_flags_help(flags, MEW_COUNTOF(flags), 26);
	mew_flags_help(shared, n, 26);
	(void)printf("\nExit code: 0 pass; 1 a regression; 2 usage or environment; 3 inconclusive;\n"
		     "4 invalid measurement.\n");
}

/* --- values ----------------------------------------------------------------------------------------------------- */

/* It becomes a folder and a member of files, so it is plain, and no other arm's. */
static bool is_context_name(const struct asked *a, const char *name)
{
	if (name[0] == '\0' || name[0] == '.' || strlen(name) > 60 || name[strspn(name, MEW_PLAN_NAME)] != '\0' ||
	    strcmp(name, mew_side_name(MEW_BASE)) == 0 || strcmp(name, mew_side_name(MEW_HEAD)) == 0)
		return false;
	for (size_t i = 0; i < a->o.ncontexts; i++)
		if (strcmp(a->o.contexts[i].name, name) == 0)
			return false;
	return true;
}

static int context(struct asked *a, char *text)
{
	char *equals = strchr(text, '=');

	if (equals == NULL || equals == text || equals[1] == '\0')
		return mew_cli_bad("--context", text, "NAME=PROGRAM");
	if (a->o.ncontexts == MEW_GATE_CONTEXTS)
		return mew_cli_bad("--context", text, "one of at most 8");
	*equals = '\0';
	if (!is_context_name(a, text))
		return mew_cli_bad("--context", text,
				   "a name of its own of at most 60 letters, digits, and . _ - inside");
	a->o.contexts[a->o.ncontexts++] = (struct mew_gate_context){ text, equals + 1 };
	return MEW_EXIT_FINE;
}

static int bounded(const char *flag, const char *text, uint64_t most, unsigned *out)
{
	uint64_t value;

	if (mew_cli_count(flag, text, &value) != MEW_EXIT_FINE)
		return MEW_EXIT_USAGE;
	if (value > most)
		return mew_cli_bad(flag, text, most == MEW_PAIR_ROUNDS ? "at most 2048" : most == MEW_PLAN_JOBS ?
				   "at most 256" : "at most 100000");
	*out = (unsigned)value;
	return MEW_EXIT_FINE;
}

/* --- the parser ------------------------------------------------------------------------------------------------- */

static int apply_number(struct asked *a, int id, const char *value)
{
	switch (id) {
	case F_BUDGET:
		return mew_cli_seconds("--budget", value, 1e-9, &a->o.budget);
	case F_TIMEOUT:
		return mew_cli_seconds("--timeout", value, 1e-9, &a->o.host.timeout);
	case F_SAMPLES:
		return bounded("--samples", value, 100000, &a->o.pairs);
	case F_ROUNDS:
		return bounded("--rounds", value, MEW_PAIR_ROUNDS, &a->o.rounds);
	case F_MEMORY:
		a->o.memory_iterations = 0;
		return strcmp(value, "0") == 0 ? MEW_EXIT_FINE :
		       mew_cli_count("--memory", value, &a->o.memory_iterations);
	default:
		return -1;
	}
}

static int apply_command(struct asked *a, int id, const char *value)
{
	switch (id) {
	case F_COMMAND:
		a->o.phases_file = value;
		return MEW_EXIT_FINE;
	case F_COLD_EVERY:
		return bounded("--cold-every", value, 100000, &a->o.cold_every);
	case F_CONTENTION:
		return bounded("--contention", value, MEW_PLAN_JOBS, &a->o.contention);
	case F_CONTENTION_SAMPLES:
		return bounded("--contention-samples", value, 100000, &a->o.contention_samples);
	case F_GBENCH:
		a->o.gbench = true;
		return MEW_EXIT_FINE;
	case F_MERGE:
		a->merge = true;
		return MEW_EXIT_FINE;
	case F_RESUME:
		a->resume = value;
		return MEW_EXIT_FINE;
	default:
		return -1;
	}
}

static int apply_text(struct asked *a, int id, char *value)
{
	switch (id) {
	case F_BASE:
	case F_HEAD:
		a->o.programs[id == F_HEAD] = value;
		return MEW_EXIT_FINE;
	case F_BASE_REV:
	case F_HEAD_REV:
		a->o.revisions[id == F_HEAD_REV] = value;
		return MEW_EXIT_FINE;
	case F_WORKLOAD_REV:
		a->o.workload_revision = value;
		return MEW_EXIT_FINE;
	case F_CALIBRATION:
		a->o.calibration = value;
		return MEW_EXIT_FINE;
	case F_OUTPUT:
		a->o.output = value;
		return MEW_EXIT_FINE;
	case F_HTML:
		a->o.html = value;
		return strcmp(value, "-") == 0 ? mew_cli_bad("--html", value, "a file") : MEW_EXIT_FINE;
	case F_CONTEXT:
		return context(a, value);
	case F_TRACE:
		return mew_cli_trace_file(&a->trace, value);
	case F_REDACT:
		return mew_cli_trace_redact(value);
	default:
		return -1;
	}
}

static int apply(struct asked *a, int id, const char *value)
{
	switch (id) {
	case 'q':
		a->o.quiet = true;
		return MEW_EXIT_FINE;
	case 'v':
		a->o.verbose = true;
		return MEW_EXIT_FINE;
	case F_HELP:
		a->help = true;
		return MEW_EXIT_FINE;
	case F_COLOR:
	case F_PROGRESS:
		return mew_when_parse(value, id == F_COLOR ? &a->o.color : &a->o.progress) ?
			       MEW_EXIT_FINE :
			       mew_cli_bad(id == F_COLOR ? "--color" : "--progress", value, "auto, always or never");
	default:
		return -1;
	}
}

static int parse(struct asked *a, int argc, char **argv)
{
	struct option options[MEW_FLAGS_MAX + 1] = { { NULL, 0, NULL, 0 } };
	size_t n;
	const struct mew_flag *shared = mew_rules_flags(&n);
	int id;

	(void)mew_flags_options(flags, MEW_COUNTOF(flags), options, mew_flags_options(shared, n, options, 0));
	optind = 0;
	opterr = 0;
	while ((id = getopt_long(argc, argv, ":k:F:t:qv", options, NULL)) != -1) {
		int code = id == '?' || id == ':' ? mew_cli_unknown(argv, id, options) : apply(a, id, optarg);

		if (code == -1)
			code = apply_number(a, id, optarg);
		if (code == -1)
			code = apply_command(a, id, optarg);
		if (code == -1)
			code = apply_text(a, id, optarg);
		if (code == -1)
			code = mew_rules_flags_apply(&a->by, id, optarg);
		if (code != MEW_EXIT_FINE)
			return code;
		mew_gate_given(&a->given, flags, MEW_COUNTOF(flags), id);
	}
	a->merged = argv + optind;
	a->nmerged = a->merge ? argc - optind : 0;
	if (a->help || optind == argc || a->merge)
		return MEW_EXIT_FINE;
	mew_cli_complain("gate: \"%s\" stands alone: give the two programs by --base and --head", argv[optind]);
	return MEW_EXIT_USAGE;
}

/* --- what the flags leave open ---------------------------------------------------------------------------------- */

static const char *first_set(const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *value = getenv(names[i]);

		if (value != NULL && value[0] != '\0')
			return value;
	}
	return NULL;
}

/* What the machines of forges say of themselves. */
static void read_environment(struct asked *a)
{
	static const char *const runs[] = { "GITHUB_RUN_ID", "CI_PIPELINE_ID", "BUILD_ID" };
	static const char *const heads[] = { "GITHUB_SHA", "CI_COMMIT_SHA", "GIT_COMMIT" };
	static const char *const bases[] = { "CI_MERGE_REQUEST_DIFF_BASE_SHA" };

	a->o.ci_run = first_set(runs, MEW_COUNTOF(runs));
	if (a->o.revisions[MEW_HEAD] == NULL)
		a->o.revisions[MEW_HEAD] = first_set(heads, MEW_COUNTOF(heads));
	if (a->o.revisions[MEW_BASE] == NULL)
		a->o.revisions[MEW_BASE] = first_set(bases, MEW_COUNTOF(bases));
}

/* The phases file, and what the flags say that stand for commands alone; of runs to be joined, what theirs counted. */
static int complete_command(struct asked *a)
{
	struct mew_error err;
	int code = a->merge ? mew_gate_merge_counts(a->merged[0], &a->plan) : MEW_EXIT_FINE;

	a->by.rules.counts = a->plan.counts;
	a->by.rules.ncounts = a->plan.ncounts;
	if (a->o.phases_file == NULL)
		return code;
	if (mew_command_plan_read(a->o.phases_file, a->o.contention > 0, &a->plan, &err) != MEW_OK) {
		mew_cli_complain("%s", err.text);
		return MEW_EXIT_USAGE;
	}
	a->o.plan = &a->plan;
	a->o.memory_iterations = 0;
	a->by.rules.ncounts = a->plan.ncounts;
	if (a->o.contention_samples == 0) /* by signs 22 find a difference twice among 64 cases, and fewer than 15 in none */
		a->o.contention_samples = a->by.rules.time_rule == MEW_TIME_BOOTSTRAP ? 10 : 24;
	return MEW_EXIT_FINE;
}

/* What must be named: two sides, or directories. */
static int check_sides(const struct asked *a)
{
	bool both = a->o.programs[MEW_BASE] != NULL && a->o.programs[MEW_HEAD] != NULL;

	if (a->merge ? a->nmerged > 0 && a->o.programs[MEW_BASE] == NULL && a->o.programs[MEW_HEAD] == NULL : both)
		return MEW_EXIT_FINE;
	mew_cli_complain(a->merge ? "gate: name the directories to join, such as `mew gate --merge one two`, and no "
				    "programs" :
				    "gate: name both programs, such as `mew gate --base old/bench --head new/bench`");
	return MEW_EXIT_USAGE;
}

static int complete(struct asked *a)
{
	uint64_t *seed = &a->by.rules.resampling.seed;
	int code;

	if (mew_gate_check_given(&a->given) != MEW_EXIT_FINE || check_sides(a) != MEW_EXIT_FINE)
		return MEW_EXIT_USAGE;
	code = complete_command(a);
	if (code != MEW_EXIT_FINE)
		return code;
	if (a->o.resumed != NULL) {
		*seed = (uint64_t)json_integer_value(json_object_get(a->o.resumed, "seed"));
		a->by.seed_given = true;
	}
	if (!a->by.seed_given && getrandom(seed, sizeof *seed, 0) != sizeof *seed)
		*seed = (uint64_t)time(NULL);
	if (!a->by.seed_given)
		*seed >>= 11; /* what it is drawn to must pass through JSON's numbers, which may be doubles */
	a->o.seed = *seed;
	a->o.fixed = a->by.rules.time_rule == MEW_TIME_BOOTSTRAP;
	if (a->o.fixed && !mew_gate_is_given(&a->given, "--samples"))
		a->o.pairs = 20;
	read_environment(a);
	if (mew_rules_flags_complete(&a->by) != MEW_EXIT_FINE)
		return MEW_EXIT_USAGE;
	a->o.select = &a->by.select;
	return MEW_EXIT_FINE;
}

/* --- from the start to the verdict ------------------------------------------------------------------------------ */

static int judge_and_write(struct mew_gate *g)
{
	struct mew_error err, unwritten;
	int status = mew_gate_settle(g, &err), written = MEW_OK;

	if (status == MEW_OK) {
		mew_gate_explain(g);
		written = mew_gate_write_all(g, &unwritten);
		if (!g->options->quiet) /* also when the files could not be written: the verdict is known */
			status = mew_gate_print(g, &err);
	}
	if (status != MEW_OK)
		mew_cli_complain("%s", err.text);
	if (written != MEW_OK)
		mew_cli_complain("%s", unwritten.text);
	if (status != MEW_OK || written != MEW_OK)
		return MEW_EXIT_USAGE;
	if (g->interrupted)
		mew_cli_complain("interrupted: what was measured until then is kept");
	return g->exit_code;
}

static int run(struct asked *a)
{
	struct mew_gate *g = calloc(1, sizeof *g);
	struct mew_error err;
	int code = MEW_EXIT_USAGE;

	mew_command_adopt();
	if (g == NULL || mew_gate_init(g, &a->o, &a->by.rules) != 0) {
		mew_cli_complain("no memory for the gate");
	} else if (mew_gate_directory(g, &err) != MEW_OK ||
		   (a->o.html != NULL && mew_write_file_check(a->o.html, &err) != MEW_OK)) {
		mew_cli_complain("%s", err.text);
	} else if (!a->merge && mew_gate_identify(g, &err) != MEW_OK) {
		mew_cli_complain("%s", err.text);
		code = a->o.resumed != NULL ? MEW_EXIT_INVALID : MEW_EXIT_USAGE;
	} else {
		/* joining measures nothing here */
		for (enum mew_side side = MEW_BASE; side < MEW_SIDES && !a->merge; side++)
			mew_environment_machine(g->models[side]);
		(void)mew_tool_file("/proc/self/exe", &g->self, &err); /* recorded; without /proc it stays unknown */
		code = a->merge ? mew_gate_merge(g, a->merged, a->nmerged) :
		       a->o.plan != NULL ? mew_gate_commands(g) : a->o.gbench ? mew_gate_guests(g) :
		       mew_gate_programs(g);
		a->measured = code == MEW_EXIT_FINE;
		if (a->measured)
			code = judge_and_write(g);
	}
	mew_command_sweep(); /* what a program let loose in a session of its own is a child of ours by now */
	if (g != NULL)
		mew_gate_fini(g);
	free(g);
	return code;
}

static int gate(struct asked *a)
{
	int code;

	if (a->help) {
		help();
		return MEW_EXIT_FINE;
	}
	a->o.host.cancelled = mew_cli_catch_interrupts();
	a->o.host.say = mew_cli_say;
	code = complete(a);
	if (code == MEW_EXIT_FINE) {
		code = mew_cli_trace_begin(&a->trace);
		if (code == MEW_EXIT_FINE) {
			code = run(a);
			code = mew_cli_trace_end(&a->trace, a->measured, code);
		}
	}
	mew_rules_flags_fini(&a->by);
	mew_command_plan_free(&a->plan);
	return code;
}

static struct asked defaults(int argc, char **argv)
{
	return (struct asked){
		.trace = { .argc = argc, .argv = argv },
		.o = { .pairs = 200, .rounds = 15, .memory_iterations = 100, .host = { .capture = true }, .argc = argc,
		       .argv = argv },
	};
}

/* The command line and the seed of an interrupted run, again. */
static int resume(const char *directory)
{
	struct mew_resumed from;
	struct mew_error err;
	struct asked a;
	char **argv = NULL;
	int code = MEW_EXIT_USAGE;

	if (mew_gate_resume_open(directory, &from, &err) != MEW_OK) {
		mew_cli_complain("%s", err.text);
	} else if ((argv = mew_gate_copy_arguments(from.argc, from.argv)) == NULL) {
		mew_cli_complain("no memory for the gate");
	} else {
		a = defaults(from.argc, argv);
		code = parse(&a, from.argc, from.argv);
		a.o.output = from.output;
		a.o.resumed = from.tree;
		if (code == MEW_EXIT_FINE)
			code = gate(&a);
	}
	mew_gate_free_arguments(argv);
	mew_resumed_fini(&from);
	return code;
}

int mew_cmd_gate(int argc, char **argv)
{
	char **kept = mew_gate_copy_arguments(argc, argv);
	struct asked a = defaults(kept != NULL ? argc : 0, kept);
	int code = parse(&a, argc, argv);

	if (code == MEW_EXIT_FINE && a.resume != NULL &&
	    (argc > 3 || (argc == 3 && strcmp(argv[1], "--resume") != 0))) {
		mew_cli_complain("gate: --resume takes every other flag from the run that goes on: give it alone");
		code = MEW_EXIT_USAGE;
	} else if (code == MEW_EXIT_FINE) {
		code = a.resume != NULL ? resume(a.resume) : gate(&a);
	}
	mew_gate_free_arguments(kept);
	return code;
}
