/*
 * cmd_compare.c - `mew compare`: saved results side by side, and with --gate a verdict as the exit code.
 * Layer L6.
 */
#include "config.h"

#include "cmd.h"

#include "cli.h"
#include "compare.h"
#include "grid.h"
#include "output.h"
#include "read_json.h"
#include "rules_flags.h"
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

enum flag_id { F_GATE = 256, F_HTML, F_MARKDOWN, F_CSV, F_JSON, F_COLOR, F_HELP };

static const struct mew_flag flags[] = {
	{ F_GATE, "gate", no_argument, "--gate", "decide: the exit code is the verdict" },
	{ F_HTML, "html", required_argument, "--html FILE", "flame graphs of the difference between two files" },
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
	struct mew_rules_flags by;
	struct output outputs[MEW_CLI_LIST_MAX];
	size_t noutputs;
	const char *html;
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
	size_t n;
	const struct mew_flag *shared = mew_rules_flags(&n);

	(void)printf("usage: mew compare [flags] BASE.mew.json HEAD.mew.json...\n\n");
	mew_flags_help(flags, MEW_COUNTOF(flags), 26);
	mew_flags_help(shared, n, 26);
	(void)printf("\nMetrics: time, allocs, bytes, peak, leak. More than two files make a history.\n"
		     "Exit code: 0 fine; 2 usage or environment; 4 nothing to compare. With --gate:\n"
		     "0 pass; 1 regression; 2 usage or environment; 3 inconclusive; 4 invalid.\n");
}

static int bad(const char *shown, const char *value, const char *want)
{
	mew_cli_complain("compare: %s: \"%s\" is not %s; see --help", shown, value, want);
	return MEW_EXIT_USAGE;
}

static int output(struct command *c, mew_write_body_fn *body, const char *path)
{
	if (c->noutputs == MEW_CLI_LIST_MAX)
		return bad("output", path, "one of at most 32");
	c->outputs[c->noutputs++] = (struct output){ body, path };
	return MEW_EXIT_FINE;
}

static int apply(struct command *c, int id, char *value)
{
	switch (id) {
	case 'q':
		c->quiet = true;
		return MEW_EXIT_FINE;
	case 'v':
		c->verbose = true;
		return MEW_EXIT_FINE;
	case F_GATE:
		c->gated = true;
		return MEW_EXIT_FINE;
	case F_HTML:
		c->html = value;
		return MEW_EXIT_FINE;
	case F_MARKDOWN:
		return output(c, mew_compare_markdown, value);
	case F_CSV:
		return output(c, mew_compare_csv, value);
	case F_JSON:
		return output(c, mew_compare_json, value);
	case F_COLOR:
		return mew_when_parse(value, &c->color) ? MEW_EXIT_FINE :
		       bad("--color", value, "auto, always or never");
	case F_HELP:
		c->help = true;
		return MEW_EXIT_FINE;
	default:
		return mew_rules_flags_apply(&c->by, id, value);
	}
}

static int parse(struct command *c, int argc, char **argv)
{
	struct option options[MEW_FLAGS_MAX + 1] = { { NULL, 0, NULL, 0 } };
	size_t n;
	const struct mew_flag *shared = mew_rules_flags(&n);
	int id;

	(void)mew_flags_options(flags, MEW_COUNTOF(flags), options, mew_flags_options(shared, n, options, 0));
	optind = 0;
	opterr = 0;
	while ((id = getopt_long(argc, argv, ":k:F:t:qv", options, NULL)) != -1) {
		int code = id == '?' || id == ':' ? mew_cli_unknown(argv, id, options) : apply(c, id, optarg);

		if (code != MEW_EXIT_FINE)
			return code;
	}
	c->files = argv + optind;
	c->nfiles = (size_t)(argc - optind);
	return MEW_EXIT_FINE;
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

/* The page of `mew report BASE HEAD --html`. */
static int write_page(const struct command *c)
{
	const struct mew_report_input in = { .model = c->models[1], .base = c->models[0] };
	struct mew_error err;

	if (mew_output_report(mew_report_find("html"), &in, c->html, &err) != MEW_OK) {
		mew_cli_complain("%s", err.text);
		return MEW_EXIT_USAGE;
	}
	if (!c->quiet && strcmp(c->html, "-") != 0)
		(void)fprintf(stderr, "wrote %s\n", c->html);
	return MEW_EXIT_FINE;
}

static int write_all(const struct command *c, struct mew_compare_set *set)
{
	int code = MEW_EXIT_FINE;
	bool table = true;

	for (size_t i = 0; i < c->noutputs; i++)
		table = table && strcmp(c->outputs[i].path, "-") != 0;
	table = table && (c->html == NULL || strcmp(c->html, "-") != 0);
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
	return c->html == NULL || write_page(c) == MEW_EXIT_FINE ? code : MEW_EXIT_USAGE;
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
	int status = MEW_OK;

	for (size_t i = 0; status == MEW_OK && i + 1 < c->nfiles; i++) {
		c->comparisons[i] = (struct mew_comparison){ .base_name = c->files[0], .head_name = c->files[i + 1],
							     .base = c->models[0], .head = c->models[i + 1] };
		status = mew_compare(&c->by.rules, &c->by.select, &c->comparisons[i], err);
	}
	return status;
}

static int conclude(struct command *c)
{
	struct mew_compare_set set = { &c->by.rules, c->comparisons, c->nfiles - 1, c->gated, c->verbose };
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
	else if (read_models(c, &err) != MEW_OK || compare_models(c, &err) != MEW_OK)
		mew_cli_complain("compare: %s", err.text);
	else
		code = conclude(c);
	for (size_t i = 0; i < c->nfiles; i++) {
		if (c->comparisons != NULL)
			mew_compare_free(&c->comparisons[i]);
		if (c->models != NULL)
			mew_model_free(c->models[i]);
	}
	free(c->models);
	free(c->comparisons);
	return code;
}

int mew_cmd_compare(int argc, char **argv)
{
	struct command c = { .by = { .rules = { .resampling = { .seed = 1 } } } };
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
	if ((c.gated || c.html != NULL) && c.nfiles > 2) {
		mew_cli_complain("compare: %s two files, not %zu",
				 c.gated ? "--gate decides between" : "--html shows the difference of",
				 c.nfiles);
		return MEW_EXIT_USAGE;
	}
	code = mew_rules_flags_complete(&c.by);
	if (code == MEW_EXIT_FINE)
		code = run(&c);
	mew_rules_flags_fini(&c.by);
	return code;
}
