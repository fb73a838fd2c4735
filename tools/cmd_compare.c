/*
 * cmd_compare.c - `mew compare`: saved results side by side, and with --gate a verdict as the exit code.
 * Layer L6.
 */
#include "config.h"

#include "cmd.h"

#include "cli.h"
#include "compare.h"
#include "grid.h"
#include "read_allow.h"
#include "read_json.h"
#include "select.h"
#include "writer.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MOST_LIMITS 16

enum flag_id { F_GATE = 256, F_LIMIT, F_STRICT, F_ALLOW, F_INCONCLUSIVE, F_RULE, F_LEAST, F_SEED, F_MARKDOWN, F_CSV, F_JSON,
	       F_COLOR, F_HELP };

struct flag {
	int id;
	const char *name; /* NULL: letter only */
	int argument;
	const char *shown, *help;
};

static const struct flag flags[] = {
	{ 'k', NULL, required_argument, "-k RE", "cases whose name or label matches the extended regular expression" },
	{ 'F', NULL, required_argument, "-F TEXT", "cases whose name or label contains the text" },
	{ 't', NULL, required_argument, "-t TAG", "cases with the tag; given twice: with either" },
	{ F_GATE, "gate", no_argument, "--gate", "decide: the exit code is the verdict" },
	{ F_LIMIT, "limit", required_argument, "--limit METRIC=LIMIT",
	  "how much worse: time=3%, allocs=1|5% (time 2 %, others 0)" },
	{ F_STRICT, "strict", no_argument, "--strict", "exact figures must be equal, not only no worse" },
	{ F_ALLOW, "allow", required_argument, "--allow FILE", "other limits for some cases, each with a reason" },
	{ F_RULE, "rule", required_argument, "--rule WHICH", "time by signs (default) or bootstrap" },
	{ F_LEAST, "least-difference", required_argument, "--least-difference S",
	  "bootstrap: a smaller difference in seconds decides nothing (0)" },
	{ F_SEED, "seed", required_argument, "--seed N", "of resampling (1)" },
	{ F_INCONCLUSIVE, "inconclusive", required_argument, "--inconclusive HOW", "make exit code 3 a pass or a fail" },
	{ F_MARKDOWN, "markdown", required_argument, "--markdown FILE", "the comparison for a merge request" },
	{ F_CSV, "csv", required_argument, "--csv FILE", "a line per case and metric" },
	{ F_JSON, "json", required_argument, "--json FILE", "everything, for programs" },
	{ 'q', NULL, no_argument, "-q", "do not say which files were written" },
	{ 'v', NULL, no_argument, "-v", "also figures that are equal" },
	{ F_COLOR, "color", required_argument, "--color WHEN", "auto, always or never" },
	{ F_HELP, "help", no_argument, "--help", "print this" },
};

struct output {
	mew_write_body_fn *body;
	const char *path;
};

struct command {
	struct mew_rules rules;
	struct mew_metric_limit limits[MOST_LIMITS];
	struct mew_allow_list allows;
	char today[16];
	const char *allow_path, *pattern, *literal;
	const char *tags[MEW_CLI_LIST_MAX];
	size_t ntags;
	struct output outputs[MEW_CLI_LIST_MAX];
	size_t noutputs;
	bool gated, quiet, verbose, help;
	enum mew_when color;
	char **files;
	size_t nfiles;
	struct mew_model **models;
	struct mew_comparison *comparisons;
};

/* --- flags ------------------------------------------------------------------------------------------------------ */

static void help(void)
{
	(void)printf("usage: mew compare [flags] BASE.mew.json HEAD.mew.json...\n\n");
	for (size_t i = 0; i < MEW_COUNTOF(flags); i++)
		(void)printf("  %-22s %s\n", flags[i].shown, flags[i].help);
	(void)printf("\nMetrics: time, allocs, bytes, peak, leak. More than two files make a history.\n"
		     "Exit code: 0 fine; 2 usage or environment; 4 nothing to compare. With --gate: 0 pass; 1 regression;\n"
		     "2 usage or environment; 3 inconclusive; 4 invalid.\n");
}

static int bad(const char *shown, const char *value, const char *want)
{
	mew_cli_complain("compare: %s: \"%s\" is not %s; see --help", shown, value, want);
	return MEW_EXIT_USAGE;
}

static int limit(struct command *c, const char *text)
{
	const char *equals = strchr(text, '=');
	struct mew_metric_limit *l = &c->limits[c->rules.nlimits];
	const struct mew_metric *metric;
	char name[16];

	if (c->rules.nlimits == MOST_LIMITS)
		return bad("--limit", text, "one of at most 16");
	(void)snprintf(name, sizeof name, "%.*s", equals == NULL ? 0 : (int)(equals - text < 15 ? equals - text : 15), text);
	metric = mew_metric_find(name);
	if (metric == NULL || !mew_limit_parse(equals + 1, &l->limit))
		return bad("--limit", text, "like time=3%, allocs=0, bytes=5% or peak=64|10%");
	l->metric = metric->name;
	c->rules.nlimits++;
	return MEW_EXIT_FINE;
}

static int seed(struct command *c, const char *text)
{
	char *end;

	errno = 0;
	c->rules.resampling.seed = strtoull(text, &end, 10);
	return isdigit((unsigned char)text[0]) && *end == '\0' && errno == 0 ? MEW_EXIT_FINE
									      : bad("--seed", text, "a whole number");
}

static int least(struct command *c, const char *text)
{
	char *end;
	double value = strtod(text, &end);

	c->rules.least_difference_ns = value * 1e9;
	return end != text && *end == '\0' && isfinite(value) && value >= 0
		       ? MEW_EXIT_FINE
		       : bad("--least-difference", text, "a number of seconds, 0 or more");
}

static int output(struct command *c, mew_write_body_fn *body, const char *path)
{
	if (c->noutputs == MEW_CLI_LIST_MAX)
		return bad("output", path, "one of at most 32");
	c->outputs[c->noutputs++] = (struct output){ body, path };
	return MEW_EXIT_FINE;
}

static int apply_rule(struct command *c, int id, const char *value)
{
	switch (id) {
	case F_LIMIT:
		return limit(c, value);
	case F_STRICT:
		c->rules.strict = true;
		return MEW_EXIT_FINE;
	case F_ALLOW:
		c->allow_path = value;
		return MEW_EXIT_FINE;
	case F_RULE:
		if (strcmp(value, "signs") != 0 && strcmp(value, "bootstrap") != 0)
			return bad("--rule", value, "signs or bootstrap");
		c->rules.time_rule = value[0] == 's' ? MEW_TIME_SIGNS : MEW_TIME_BOOTSTRAP;
		return MEW_EXIT_FINE;
	case F_LEAST:
		return least(c, value);
	case F_SEED:
		return seed(c, value);
	default: /* F_INCONCLUSIVE */
		if (strcmp(value, "pass") != 0 && strcmp(value, "fail") != 0)
			return bad("--inconclusive", value, "pass or fail");
		c->rules.unsure = value[0] == 'p' ? MEW_UNSURE_PASS : MEW_UNSURE_FAIL;
		return MEW_EXIT_FINE;
	}
}

static int apply(struct command *c, int id, const char *value)
{
	switch (id) {
	case 'k':
		c->pattern = value;
		return MEW_EXIT_FINE;
	case 'F':
		c->literal = value;
		return MEW_EXIT_FINE;
	case 't':
		if (c->ntags == MEW_CLI_LIST_MAX)
			return bad("-t", value, "one of at most 32");
		c->tags[c->ntags++] = value;
		return MEW_EXIT_FINE;
	case 'q':
		c->quiet = true;
		return MEW_EXIT_FINE;
	case 'v':
		c->verbose = true;
		return MEW_EXIT_FINE;
	case F_GATE:
		c->gated = true;
		return MEW_EXIT_FINE;
	case F_MARKDOWN:
		return output(c, mew_compare_markdown, value);
	case F_CSV:
		return output(c, mew_compare_csv, value);
	case F_JSON:
		return output(c, mew_compare_json, value);
	case F_COLOR:
		return mew_when_parse(value, &c->color) ? MEW_EXIT_FINE : bad("--color", value, "auto, always or never");
	case F_HELP:
		c->help = true;
		return MEW_EXIT_FINE;
	default:
		return apply_rule(c, id, value);
	}
}

static int unknown(char **argv, int id)
{
	if (id == ':')
		mew_cli_complain("compare: %s needs a value; see --help", argv[optind - 1]);
	else
		mew_cli_complain("compare: there is no flag %s, or it takes no value; see --help", argv[optind - 1]);
	return MEW_EXIT_USAGE;
}

static int parse(struct command *c, int argc, char **argv)
{
	struct option options[MEW_COUNTOF(flags) + 1] = { 0 };
	size_t n = 0;
	int id;

	for (size_t i = 0; i < MEW_COUNTOF(flags); i++)
		if (flags[i].name != NULL)
			options[n++] = (struct option){ flags[i].name, flags[i].argument, NULL, flags[i].id };
	optind = 0;
	opterr = 0;
	while ((id = getopt_long(argc, argv, ":k:F:t:qv", options, NULL)) != -1) {
		int code = id == '?' || id == ':' ? unknown(argv, id) : apply(c, id, optarg);

		if (code != MEW_EXIT_FINE)
			return code;
	}
	c->files = argv + optind;
	c->nfiles = (size_t)(argc - optind);
	return MEW_EXIT_FINE;
}

/* --- rules ------------------------------------------------------------------------------------------------------ */

/* Which day it is decides whether an allow rule has expired; in UTC, so that it is the same in every place. */
static void find_today(struct command *c)
{
	time_t now = time(NULL);
	struct tm utc;

	if (gmtime_r(&now, &utc) != NULL && strftime(c->today, sizeof c->today, "%Y-%m-%d", &utc) != 0)
		c->rules.today = c->today;
}

static int take_rules(struct command *c, struct mew_error *err)
{
	int status = MEW_OK;

	c->rules.limits = c->limits;
	find_today(c);
	if (c->allow_path != NULL)
		status = mew_allow_read(c->allow_path, &c->allows, err);
	c->rules.allows = c->allows.list;
	c->rules.nallows = status == MEW_OK ? c->allows.n : 0;
	return status == MEW_OK ? mew_rules_check(&c->rules, err) : status;
}

/* --- output ----------------------------------------------------------------------------------------------------- */

static int write_table(const struct command *c, const struct mew_compare_set *set)
{
	struct mew_view view = {
		.width = (size_t)mew_terminal_width(STDOUT_FILENO),
		.color = mew_terminal_color(c->color, STDOUT_FILENO),
		.utf8 = mew_terminal_utf8(),
	};
	struct mew_writer w;
	int status;

	mew_writer_fd(&w, STDOUT_FILENO);
	status = mew_compare_table(set, &view, &w);
	if (mew_writer_finish(&w) != 0 || status != MEW_OK) {
		mew_cli_complain("standard output: %s", strerror(status == MEW_OK ? w.error : ENOMEM));
		return MEW_EXIT_USAGE;
	}
	return MEW_EXIT_FINE;
}

static int write_all(const struct command *c, struct mew_compare_set *set)
{
	int code = MEW_EXIT_FINE;
	bool table = true;

	for (size_t i = 0; i < c->noutputs; i++)
		table = table && strcmp(c->outputs[i].path, "-") != 0;
	if (table)
		code = write_table(c, set);
	for (size_t i = 0; i < c->noutputs; i++) {
		struct mew_error err;

		if (mew_write_file(c->outputs[i].path, c->outputs[i].body, set, &err) != MEW_OK) {
			mew_cli_complain("%s", err.text);
			code = MEW_EXIT_USAGE;
		} else if (!c->quiet && strcmp(c->outputs[i].path, "-") != 0) {
			(void)fprintf(stderr, "wrote %s\n", c->outputs[i].path);
		}
	}
	return code;
}

/* --- the whole -------------------------------------------------------------------------------------------------- */

static int read_models(struct command *c, struct mew_error *err)
{
	for (size_t i = 0; i < c->nfiles; i++) {
		c->models[i] = mew_read_json(c->files[i], err);
		if (c->models[i] == NULL)
			return err->status;
	}
	return MEW_OK;
}

static int compare_models(struct command *c, struct mew_error *err)
{
	struct mew_select select;
	int status = mew_select_init(&select, c->pattern, c->literal, c->tags, c->ntags, err);

	if (status != MEW_OK)
		return status;
	for (size_t i = 0; status == MEW_OK && i + 1 < c->nfiles; i++) {
		c->comparisons[i] = (struct mew_comparison){ .base_name = c->files[0], .head_name = c->files[i + 1],
							     .base = c->models[0], .head = c->models[i + 1] };
		status = mew_compare(&c->rules, &select, &c->comparisons[i], err);
	}
	mew_select_fini(&select);
	return status;
}

static int conclude(struct command *c)
{
	struct mew_compare_set set = { &c->rules, c->comparisons, c->nfiles - 1, c->gated, c->verbose };
	size_t cases = 0;
	int code = write_all(c, &set);

	for (size_t i = 0; i < set.n; i++)
		cases += set.list[i].ncases;
	if (cases == 0)
		mew_cli_complain("compare: nothing was compared: no case that was asked for is in both files");
	if (code != MEW_EXIT_FINE)
		return code;
	if (cases == 0)
		return MEW_EXIT_INVALID;
	return c->gated ? set.list[0].exit_code : MEW_EXIT_FINE;
}

static int run(struct command *c)
{
	struct mew_error err;
	int code = MEW_EXIT_USAGE;

	c->models = calloc(c->nfiles, sizeof(struct mew_model *));
	c->comparisons = calloc(c->nfiles, sizeof *c->comparisons);
	if (c->models == NULL || c->comparisons == NULL)
		mew_cli_complain("compare: no memory for %zu files", c->nfiles);
	else if (take_rules(c, &err) != MEW_OK || read_models(c, &err) != MEW_OK || compare_models(c, &err) != MEW_OK)
		mew_cli_complain("compare: %s", err.text);
	else
		code = conclude(c);
	for (size_t i = 0; i < c->nfiles; i++) {
		if (c->comparisons != NULL)
			mew_compare_free(&c->comparisons[i]);
		if (c->models != NULL)
			mew_model_free(c->models[i]);
	}
	mew_allow_free(&c->allows);
	free(c->models);
	free(c->comparisons);
	return code;
}

int mew_cmd_compare(int argc, char **argv)
{
	struct command c = { .rules = { .resampling = { .seed = 1 } } };
	int code = parse(&c, argc, argv);

	if (code != MEW_EXIT_FINE)
		return code;
	if (c.help) {
		help();
		return MEW_EXIT_FINE;
	}
	if (c.nfiles < 2) {
		mew_cli_complain("compare: name two or more files that `--json FILE` wrote, the base first");
		return MEW_EXIT_USAGE;
	}
	if (c.gated && c.nfiles > 2) {
		mew_cli_complain("compare: --gate decides between two files, not %zu", c.nfiles);
		return MEW_EXIT_USAGE;
	}
	return run(&c);
}
